"""How much released models remember of edges: likelihood ratios per edge, and what they amount to over trials.

    scores[t, e] = log density of x_te among trials with e over that among trials without e,
                   fitted without trial t                                        (likelihood_ratio.py, nothing new)
    AUC      = over all (edge, trial)
    interval = from the AUCs without each group of trials (jackknife): trials are the independent units, the edges of
               one trial share a model and are not
    null     = AUCs when the coins are tossed again and the answers stay: exact, whatever the answers depend on
    residual memory = (AUC - 1/2) / (AUC of unlinking - 1/2), trials left out in common for both

The coins are tossed by the audit, so tossing them again gives the exact distribution of the AUC of a model that never saw
them (a randomisation test, R. Fisher 1935); its spread says how small a memory the design could have found. Scores follow
N. Carlini et al., arXiv:2112.03570, with one variance for both classes, which a few dozen trials can carry.

Every trial is scored, and helps to score all others. Drawing trials with replacement while their scores stay would count
the first part alone, and the intervals would be too narrow; fitting anew on drawn trials would let copies of a trial score
each other. So groups of trials are left out instead. That errs on the safe side: with little memory the intervals are wider
than they need be.
"""

from dataclasses import dataclass

import numpy as np
from scipy.stats import norm
from scipy.stats import t as student
from sklearn.linear_model import LogisticRegression

from lethe_lib.attacks.auc import auc
from lethe_lib.attacks.likelihood_ratio import likelihood_ratio, unit_status
from lethe_lib.attacks.node_membership import ErrorCounts, cross_fitted_test
from lethe_lib.attacks.rates import unit_auc
from lethe_lib.errors import InputError
from lethe_lib.seeding import numpy_generator

VARIANCE = "pooled"
FOLD_SIZE = 8
"""Trials in a fold, where trials are scored by folds."""

GROUPS = 16
"""Most groups of trials for the intervals."""

LEAST_TRIALS = 16
"""With fewer, the AUC without memory is not one half: a score leaves out its own trial, which tilts the fits of small classes."""


@dataclass(frozen=True, eq=False)
class EdgeScores:
    """Scores of the edges that can be scored.

    Attributes:
        values: (T, k) float64; higher = more likely in. An edge whose statistics never change scores 0 in every trial.
        member: (T, k) bool, the coins.
        edges: positions of the k edges in the pool.
    """

    values: np.ndarray
    member: np.ndarray
    edges: np.ndarray


def edge_scores(statistics, member, combine: str = "sum", folds: int | None = None) -> EdgeScores:
    """Log likelihood ratios of all edges, each from the other trials.

    Args:
        statistics: (T, S, m): trial, statistic, edge.
        member: (T, m) bool.
        combine: ``sum`` or ``joint``, see :func:`lethe_lib.attacks.likelihood_ratio.likelihood_ratio`.
        folds: None leaves out the scored trial alone.

    Raises:
        InputError: no edge was in and out of enough trials, or arrays that do not fit.
    """
    values, member = _by_unit(statistics, member)
    status = unit_status(values, member, folds)
    usable = np.flatnonzero((status == "ok") | (status == "constant"))
    if not usable.size:
        raise InputError(
            f"no edge was in and out of enough of {len(member)} trials: run more of them, at least {LEAST_TRIALS} "
            "(intervals are from scores without some of the trials)"
        )
    scores = np.zeros((len(member), usable.size))
    moving = status[usable] == "ok"
    if moving.any():
        chosen = usable[moving]
        scores[:, moving] = likelihood_ratio(values[:, chosen], member[:, chosen], VARIANCE, folds, combine)
    return EdgeScores(scores, member[:, usable], usable)


def pooled_scores(statistics, member) -> EdgeScores:
    """The attack without calibration per edge: one logistic regression for all edges, trained on the other folds.

    Arguments as in :func:`edge_scores`. Trials are split into folds of about FOLD_SIZE.
    """
    values, member = _by_unit(statistics, member)
    trials, edges, count = values.shape
    fold = np.arange(trials) % _folds(trials)
    scores = np.empty(member.shape)
    for one in range(fold.max() + 1):
        rest = fold != one
        train = values[rest].reshape(-1, count)
        centre, scale = train.mean(0), train.std(0)
        scale[scale == 0] = 1.0
        model = LogisticRegression(max_iter=1000).fit((train - centre) / scale, member[rest].ravel())
        tested = (values[~rest].reshape(-1, count) - centre) / scale
        scores[~rest] = model.decision_function(tested).reshape(-1, edges)
    return EdgeScores(scores, member, np.arange(edges))


@dataclass(frozen=True, eq=False)
class Estimate:
    """An AUC with what it would be without some trials.

    Attributes:
        auc: over all (edge, trial); signed, in [0, 1].
        without: (G,), the same without each of G groups of trials, scores fitted anew.
        trials: how many there are.
    """

    auc: float
    without: np.ndarray
    trials: int

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """Interval over trials, from the spread of ``without``."""
        half = jackknife_width(self.without, level)
        return max(0.0, self.auc - half), min(1.0, self.auc + half)


def edge_auc(scores: EdgeScores) -> float:
    """The AUC over all (edge, trial)."""
    return auc(scores.values.ravel(), scores.member.ravel())


def estimate(statistics, member) -> Estimate:
    """The AUC of the attack with its interval over trials; trial t is in group t mod GROUPS.

    Args:
        statistics: (T, S, m). member: (T, m) bool.
    """
    statistics, member = np.asarray(statistics), np.asarray(member)
    groups = min(GROUPS, len(member))
    group = np.arange(len(member)) % groups
    without = [edge_auc(edge_scores(statistics[group != one], member[group != one])) for one in range(groups)]
    return Estimate(edge_auc(edge_scores(statistics, member)), np.array(without), len(member))


def jackknife_width(without: np.ndarray, level: float = 0.95) -> float:
    """Half the width of an interval, from values without each of G groups of equal size: Student's t, G - 1 degrees."""
    groups = len(without)
    error = np.sqrt((groups - 1) / groups * np.sum((without - without.mean()) ** 2))
    return float(student.isf(0.5 - level / 2, groups - 1) * error)


@dataclass(frozen=True)
class ResidualMemory:
    """What is left of the memory that unlinking leaves.

    Attributes:
        value: (AUC - 1/2) / (AUC of unlinking - 1/2): 1 for unlinking itself, 0 for an exact answer; nan where there is
            nothing to remove.
        low, high: interval over trials.
        to_remove: whether the interval of unlinking's AUC lies above one half. Otherwise the graph cannot rank methods.
    """

    value: float
    low: float
    high: float
    to_remove: bool


def residual_memory(method: Estimate, unlinked: Estimate, level: float = 0.95) -> ResidualMemory:
    """Residual memory of a method with an interval over trials, which are left out in common for both.

    Args:
        method, unlinked: of the method and of ``utu``, from the same trials in the same order.
    """
    if method.trials != unlinked.trials:
        raise InputError(f"the method has {method.trials} trials and unlinking {unlinked.trials}: use the same trials")
    if not unlinked.interval(level)[0] > 0.5:
        return ResidualMemory(float("nan"), float("nan"), float("nan"), False)
    value = (method.auc - 0.5) / (unlinked.auc - 0.5)
    half = jackknife_width((method.without - 0.5) / (unlinked.without - 0.5), level)
    return ResidualMemory(value, value - half, value + half, True)


def null_aucs(statistics, prior, draws: int = 100, seed: int = 0) -> np.ndarray:
    """AUCs of the same answers when the coins are tossed again, (draws,).

    Their mean is the control of permuted labels, their spread the standard error of the AUC under no memory, and the share
    of them at or above the AUC of the true coins the p-value of "no memory".

    Args:
        statistics: (T, S, m).
        prior: gamma, (m,).
        draws: how often.
        seed: of the tosses.
    """
    statistics, prior = np.asarray(statistics), np.asarray(prior, dtype=np.float64)
    trials, _, edges = statistics.shape
    generator = numpy_generator(seed, "edge audit", "tossed again")
    return np.array(
        [edge_auc(edge_scores(statistics, generator.random((trials, edges)) < prior)) for _ in range(draws)]
    )


def smallest_detectable(error: float, level: float = 0.05, power: float = 0.8) -> float:
    """The excess of the AUC over one half that a one-sided test at ``level`` finds with probability ``power``.

    Args:
        error: standard error of the AUC under no memory, for example the standard deviation of :func:`null_aucs`.

    Returns:
        (z_level + z_power) times the error. Over the excess of unlinking it is the smallest detectable residual memory.
    """
    return float((norm.isf(level) + norm.isf(1 - power)) * error)


def edge_aucs(statistics, member, combine: str = "sum") -> tuple[np.ndarray, np.ndarray]:
    """The AUC over trials of every edge on its own.

    Trials are scored by folds of about FOLD_SIZE and compared within their fold (see ``rates.unit_auc``).

    Returns:
        (k,) AUCs and (k,) positions in the pool of the edges that have one.
    """
    folds = _folds(len(member))
    scores = edge_scores(statistics, member, combine, folds)
    fold = np.arange(len(scores.member)) % folds
    mixed = [scores.member[fold == one].any(0) & ~scores.member[fold == one].all(0) for one in range(folds)]
    known = np.any(mixed, axis=0)
    return unit_auc(scores.values[:, known], scores.member[:, known], folds), scores.edges[known]


def level_test(statistics, member, level: float = 0.1, combine: str = "sum") -> ErrorCounts:
    """Errors of a test at a fixed level, edge by edge: what the audit of privacy parameters is fed with.

    Fold by fold, the other trials are scored among themselves, leaving one out; a normal law fitted to the scores of those
    without the edge gives the threshold that a share ``level`` of them should exceed, and fits on all other trials give the
    scores of the fold. The level is met on average only; the audit counts the real errors.

    Args:
        statistics: (T, S, m). member: (T, m) bool.
        level: share of false positives that the test aims at, in (0, 1).
        combine: as in :func:`edge_scores`.

    Returns:
        Counts for all m edges; those that cannot be scored have a status and counts of 0.
    """
    if not 0 < level < 1:
        raise InputError(f"the level must lie strictly between 0 and 1, got {level:g}")
    values, member = _by_unit(statistics, member)

    def exceeded_at_level(scores: np.ndarray, inside: np.ndarray) -> np.ndarray:
        outside = np.ma.masked_array(scores, mask=inside)
        return (outside.mean(0) + norm.isf(level) * outside.std(0, ddof=1)).filled(np.inf)

    return cross_fitted_test(values, member, exceeded_at_level, VARIANCE, _folds(len(member)), combine)


def _folds(trials: int) -> int:
    return max(2, round(trials / FOLD_SIZE))


def _by_unit(statistics, member) -> tuple[np.ndarray, np.ndarray]:
    """(T, m, S) statistics, as the likelihood ratio takes them, and (T, m) coins."""
    statistics, member = np.asarray(statistics, dtype=np.float64), np.asarray(member)
    if statistics.ndim != 3 or member.shape != (statistics.shape[0], statistics.shape[2]) or member.dtype != bool:
        raise InputError(
            "statistics must have shape (trials, statistics, edges) and member (trials, edges) of bool; got "
            f"{statistics.shape} and {member.shape} of {member.dtype}"
        )
    return np.moveaxis(statistics, 1, 2), member
