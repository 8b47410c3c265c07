"""Rates of a membership score beside its AUC: what it finds at a small price, its best threshold, and unit by unit.

    tpr_at_fpr  largest share of positives above a threshold that at most a share ``fpr`` of the negatives exceed
    advantage   largest TPR - FPR of any threshold
    unit_auc    AUC over trials, for every unit on its own

The true-positive rate at a low false-positive rate is what N. Carlini et al., arXiv:2112.03570, ask of a membership attack.
"""

import numpy as np
from scipy.stats import rankdata

from lethe_lib.attacks.auc import check_scores
from lethe_lib.errors import InputError


def tpr_at_fpr(scores, labels, fpr: float = 0.01) -> float:
    """The largest true-positive rate of a threshold whose false-positive rate is at most ``fpr``.

    Ties are never split and nothing is interpolated, so a score that cannot afford a single positive gives 0.

    Args:
        scores: (n,), higher = more likely positive.
        labels: (n,), true for positives.
        fpr: in [0, 1].

    Returns:
        A share of the positives, in [0, 1]. A score that knows nothing has about ``fpr``.

    Example:
        >>> tpr_at_fpr([5, 4, 3, 2, 1], [True, True, False, True, False], fpr=0.0)
        0.6666666666666666
    """
    if not 0 <= fpr <= 1:
        raise InputError(f"fpr = {fpr} must lie in [0, 1]")
    true, false = roc(scores, labels)
    return float(true[false <= fpr].max())


def advantage(scores, labels) -> float:
    """The largest TPR - FPR of any threshold, in [0, 1]; chosen on the scores themselves, so above 0 by chance alone."""
    true, false = roc(scores, labels)
    return float((true - false).max())


def roc(scores, labels) -> tuple[np.ndarray, np.ndarray]:
    """True- and false-positive rates of all thresholds, from "no positive" to "all positive"."""
    scores, labels = check_scores(scores, labels)
    order = np.argsort(-scores, kind="stable")
    cuts = np.append(np.flatnonzero(np.diff(scores[order])), len(order) - 1)
    true, false = (np.append(0, np.cumsum(side[order])[cuts]) / side.sum() for side in (labels, ~labels))
    return true, false


def unit_auc(scores, member, folds: int | None = None) -> np.ndarray:
    """The AUC of every unit over trials: does it score higher in the trials that held it?

    Cross-fitted scores must be compared within their fold alone: a member that is left out drags the fit of its class away
    from itself, so that across folds the AUC of a statistic that knows nothing is below one half (by about 0.04 with 200
    trials that are left out one by one). Score with few folds and give the same number here.

    Args:
        scores, member: (T, n) float and bool.
        folds: of the scores; trial t is in fold t mod folds. None for scores that no trial had a part in.

    Returns:
        (n,) signed AUC in [0, 1], ties counted half; the folds weigh as many pairs as they have.

    Raises:
        InputError: a unit without a pair of a member and a non-member in any fold, scores that are not numbers, shapes that
            do not match.
    """
    scores, member = np.asarray(scores, dtype=np.float64), np.asarray(member).astype(bool)
    if scores.ndim != 2 or scores.shape != member.shape or np.isnan(scores).any():
        raise InputError(
            f"scores {scores.shape} and member {member.shape} must be numbers of one shape (trials, units)"
        )
    won, pairs = np.zeros(scores.shape[1]), np.zeros(scores.shape[1])
    for fold in range(folds or 1):
        own, inside = scores[fold :: folds or 1], member[fold :: folds or 1]
        count = inside.sum(0)
        won += np.where(inside, rankdata(own, axis=0), 0.0).sum(0) - count * (count + 1) / 2
        pairs += count * (len(inside) - count)
    if not pairs.all():
        raise InputError(
            f"unit {np.argmin(pairs)} has no member and non-member to compare: leave it out, or use fewer folds"
        )
    return won / pairs
