"""Area under the ROC curve: the signed value, its uncertainty, and the difference of two attacks on the same targets.

    auc = P(score of a positive > score of a negative) + P(tie) / 2

    ranks with ties shared -> placement of each positive: share of negatives below it (ties half)
                              placement of each negative: share of positives above it (ties half)
    auc      = mean placement of either class
    variance = var(placements of positives) / positives + var(placements of negatives) / negatives

DeLong, DeLong, Clarke-Pearson, "Comparing the areas under two or more correlated receiver operating characteristic
curves", Biometrics 1988; by ranks after Sun and Xu, IEEE Signal Processing Letters 2014.
"""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.stats import norm, rankdata

from lethe_lib.errors import InputError

if TYPE_CHECKING:
    from lethe_lib.attacks.result import AttackResult


@dataclass(frozen=True)
class Difference:
    """A difference of two AUCs.

    Attributes:
        value: first minus second, in [-1, 1]; positive where the first attack tells more.
        interval: its confidence interval, within [-1, 1].
    """

    value: float
    interval: tuple[float, float]


def placements(scores: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Where each target stands among the targets of the other class.

    Args:
        scores: (n,), higher = more likely positive; infinite values are ranks like any other.
        labels: (n,), true or 1 for positives.

    Returns:
        For each positive the share of negatives below it, and for each negative the share of positives above it, both
        in [0, 1] with ties counted half. The mean of either is the AUC.

    Raises:
        InputError: scores that are not numbers, different lengths, or a class without targets.
    """
    scores, labels = check_scores(scores, labels)
    positive, negative = scores[labels], scores[~labels]
    rank = rankdata(scores)
    below_positive = (rank[labels] - rankdata(positive)) / len(negative)
    above_negative = 1.0 - (rank[~labels] - rankdata(negative)) / len(positive)
    return below_positive, above_negative


def auc(scores: np.ndarray, labels: np.ndarray) -> float:
    """The probability that a random positive scores above a random negative, ties counted half.

    Args:
        scores: (n,), higher = more likely positive.
        labels: (n,), true or 1 for positives.

    Returns:
        Signed AUC in [0, 1]: 0.5 tells nothing, values below it mean that the score points the wrong way.

    Example:
        >>> auc([3.0, 1.0, 2.0, 1.0], [1, 1, 0, 0])
        0.625
    """
    scores, labels = check_scores(scores, labels)
    positive, negative = np.sort(scores[labels]), np.sort(scores[~labels])
    below, not_above = (np.searchsorted(negative, positive, side).sum() for side in ("left", "right"))
    return float((below + not_above) / (2 * len(positive) * len(negative)))


def auc_interval(scores: np.ndarray, labels: np.ndarray, level: float = 0.95) -> tuple[float, float]:
    """DeLong's confidence interval of the AUC, cut to [0, 1].

    Normal approximation with the targets as the random sample: the model is held fixed, so the interval says nothing
    about another training seed. It has no width where the classes are separated perfectly, and is [0, 1] where a class
    has a single target, from which no variance can be learned.
    """
    positive, negative = placements(scores, labels)
    return _interval(float(positive.mean()), _variance(positive, negative), level, 0.0)


def auc_variance(scores: np.ndarray, labels: np.ndarray) -> float:
    """DeLong's variance of the AUC over targets, at least 0; infinite where a class has a single target."""
    return _variance(*placements(scores, labels))


def paired_difference(first: "AttackResult", second: "AttackResult", level: float = 0.95) -> Difference:
    """How much more one attack run tells than another one about the same targets.

    The two AUCs are correlated because they share their targets; DeLong's variance of the difference takes that into
    account and is much smaller than the sum of the two variances.

    Args:
        first, second: results over the same pairs or nodes in the same order, for example of two models.
        level: confidence level.

    Raises:
        InputError: the targets differ.
    """
    check_same_targets([first, second])
    positive_a, negative_a = placements(first.scores, first.labels)
    positive_b, negative_b = placements(second.scores, second.labels)
    positive, negative = positive_a - positive_b, negative_a - negative_b
    value = float(positive.mean())
    return Difference(value, _interval(value, _variance(positive, negative), level, -1.0))


def check_same_targets(results: "list[AttackResult]") -> None:
    """Refuse results that were not asked about the same targets in the same order."""
    for other in results[1:]:
        same_labels = np.array_equal(results[0].labels, other.labels)
        if not same_labels or not np.array_equal(results[0].targets, other.targets):
            raise InputError(
                "the results are about different targets: run the attacks with the same forget set and seed"
            )


def check_scores(scores: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Scores as float64 and labels as bool, one of each a target; InputError where no AUC can be had."""
    scores, labels = np.asarray(scores, dtype=np.float64), np.asarray(labels).astype(bool)
    if scores.shape != labels.shape or scores.ndim != 1:
        raise InputError(f"scores {scores.shape} and labels {labels.shape} must be one-dimensional and of equal length")
    if np.isnan(scores).any():
        raise InputError(f"{int(np.isnan(scores).sum())} scores are NaN: an AUC needs numbers")
    if labels.all() or not labels.any():
        raise InputError(f"an AUC needs both classes: {labels.sum()} positives and {(~labels).sum()} negatives given")
    return scores, labels


def _variance(positive: np.ndarray, negative: np.ndarray) -> float:
    if len(positive) < 2 or len(negative) < 2:
        return math.inf
    return float(positive.var(ddof=1) / len(positive) + negative.var(ddof=1) / len(negative))


def _interval(value: float, variance: float, level: float, lowest: float) -> tuple[float, float]:
    half = float(norm.ppf(0.5 + level / 2.0)) * math.sqrt(variance)
    return max(lowest, value - half), min(1.0, value + half)
