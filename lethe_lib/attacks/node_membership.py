"""Decisions about node membership and their errors, node by node: what the audit of privacy parameters is fed with.

The scores are those of ``likelihood_ratio.py``; a decision about a trial never uses that trial. Three rules:

    likelihood_ratio_test  member iff the log ratio exceeds its (1 - level) quantile under the fitted out-law of the trial;
                           exact for one statistic, see :func:`level_p_values`
    best_threshold_test    threshold that maximises TPR - FPR on the other folds; any number of statistics
    bayes_rule_test        member iff prior odds x likelihood ratio > 1: the fewest wrong decisions on average

The level is one under the fitted law; with few trials the fits are noisy and the real false-positive rate is somewhat higher.
The audit counts the real errors, so this does no harm. With a small prior the Bayes rule may never say "member", and then its
errors (0, 1) tell the audit nothing. S. Yildirim, M. Khosla, arXiv:2606.04069; level 0.1 as in C. Yildirim et al.,
arXiv:2504.16683.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

from lethe_lib.attacks.likelihood_ratio import check_trials, class_fits, likelihood_ratio, unit_status
from lethe_lib.bmp import log_prior_odds
from lethe_lib.errors import InputError


@dataclass(frozen=True, eq=False)
class ErrorCounts:
    """Errors of one attack per node over all trials; ``audit(*counts.arrays, priors)`` takes them as they are.

    Args:
        n_out: trials without the node in which the attack decided, (n,) int64.
        false_positives: those in which it said "member".
        n_in: trials with the node in which it decided.
        false_negatives: those in which it said "non-member".
        status: "ok", or why the attack made no decision about the node (see ``likelihood_ratio.STATUSES``), (n,). Then all
            four counts are 0, and the audit gives the node no numbers.
    """

    n_out: np.ndarray
    false_positives: np.ndarray
    n_in: np.ndarray
    false_negatives: np.ndarray
    status: np.ndarray

    @property
    def ok(self) -> np.ndarray:
        """Nodes with decisions, (n,) bool."""
        return self.status == "ok"

    @property
    def arrays(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """n_out, false_positives, n_in, false_negatives: the order of the audit's arguments."""
        return self.n_out, self.false_positives, self.n_in, self.false_negatives


def likelihood_ratio_test(
    statistics, member, level: float = 0.1, variance: str = "own", folds: int | None = None
) -> ErrorCounts:
    """Test at a fixed level, from one statistic per node.

    Args:
        statistics: (T, n) float.
        member: (T, n) bool.
        level: false-positive rate that the test aims at, in (0, 1).
        variance, folds: of the fits, see :func:`lethe_lib.attacks.likelihood_ratio.likelihood_ratio`.

    Raises:
        InputError: bad shapes, values or levels. Nodes that cannot be scored are no error: they get a status.
    """
    if not 0 < level < 1:
        raise InputError(f"the level must lie strictly between 0 and 1, got {level:g}")
    status = unit_status(statistics, member, folds)
    statistics, member = np.asarray(statistics, dtype=np.float64), np.asarray(member)
    ok = status == "ok"
    says = np.zeros(member.shape, dtype=bool)
    if ok.any():
        says[:, ok] = level_p_values(statistics[:, ok], member[:, ok], variance, folds) <= level
    return count_errors(says, member, status)


def level_p_values(statistics, member, variance: str = "own", folds: int | None = None) -> np.ndarray:
    """Probability, under the out-law fitted without the trial, of a log ratio at least as large as the one observed.

    The log ratio of two normal laws is a parabola in x with its vertex at c = (m_in/v_in - m_out/v_out)/(1/v_in - 1/v_out).
    If v_in < v_out, larger ratios lie between x and its mirror 2c - x; if v_in > v_out, outside them; if the variances are
    equal, beyond x on the side of m_in. So the probability is a difference of two normal distribution functions, the same
    as that of the non-central chi-square law with one degree of freedom.

    Returns:
        (T, n) in [0, 1]; small values speak for membership.
    """
    fits = class_fits(statistics, member, variance, folds)
    values = np.asarray(statistics, dtype=np.float64)
    gap = 1 / fits.variance_in - 1 / fits.variance_out
    equal = np.abs(gap) * np.maximum(fits.variance_in, fits.variance_out) < 1e-12
    centre = (fits.mean_in / fits.variance_in - fits.mean_out / fits.variance_out) / np.where(equal, 1.0, gap)
    mirror = 2 * centre - values
    scale = np.sqrt(fits.variance_out)
    low, high = ((f(values, mirror) - fits.mean_out) / scale for f in (np.minimum, np.maximum))
    between, outside = ndtr(high) - ndtr(low), ndtr(low) + ndtr(-high)
    side = np.where(fits.mean_in >= fits.mean_out, -1.0, 1.0)
    beyond = ndtr(side * (values - fits.mean_out) / scale)
    p_values = np.where(equal, beyond, np.where(gap > 0, between, outside))
    return np.where(fits.known & ~(equal & (fits.mean_in == fits.mean_out)), p_values, 1.0)


def best_threshold_test(
    statistics, member, variance: str = "own", folds: int = 10, combine: str = "sum"
) -> ErrorCounts:
    """Test with the threshold on the log ratio that maximises TPR - FPR of the node on the other folds.

    Args:
        statistics: (T, n) float, or (T, n, S).
        member: (T, n) bool.
        variance, folds, combine: see :func:`lethe_lib.attacks.likelihood_ratio.likelihood_ratio`.
    """
    return cross_fitted_test(statistics, member, best_thresholds, variance, folds, combine)


def cross_fitted_test(
    statistics,
    member,
    thresholds: Callable[[np.ndarray, np.ndarray], np.ndarray],
    variance: str,
    folds: int,
    combine: str,
) -> ErrorCounts:
    """Test of every unit against a threshold that the other folds give.

    Fold by fold, the other trials are scored among themselves, leaving one out, and give the thresholds; fits on all of them
    give the scores of the fold.

    Args:
        statistics: (T, n) float, or (T, n, S).
        member: (T, n) bool.
        thresholds: from the scores and memberships of the other folds, (t, k) each, to the thresholds of k units, (k,).
        variance, folds, combine: see :func:`lethe_lib.attacks.likelihood_ratio.likelihood_ratio`.
    """
    values, member, fold = check_trials(statistics, member, folds)
    status = unit_status(values, member, folds)
    for one in range(folds):
        inner = unit_status(values[fold != one], member[fold != one])
        status = np.where(status == "ok", inner, status)
    ok = status == "ok"
    says = np.zeros(member.shape, dtype=bool)
    if ok.any():
        values, inside = values[:, ok], member[:, ok]
        scores = likelihood_ratio(values, inside, variance, folds, combine)
        for one in range(folds):
            rest = fold != one
            among = likelihood_ratio(values[rest], inside[rest], variance, combine=combine)
            says[np.ix_(~rest, ok)] = scores[~rest] > thresholds(among, inside[rest])
    return count_errors(says, member, status)


def bayes_rule_test(
    statistics, member, priors, variance: str = "own", folds: int | None = None, combine: str = "sum"
) -> ErrorCounts:
    """Test that says "member" where the posterior odds exceed 1.

    Args:
        statistics, member: as in :func:`lethe_lib.attacks.likelihood_ratio.likelihood_ratio`.
        priors: prior membership probability of every node, (n,), strictly between 0 and 1.
        variance, folds, combine: of the fits.
    """
    values, member, _ = check_trials(statistics, member, folds)
    shift = log_prior_odds(priors)
    if shift.shape != member.shape[1:]:
        raise InputError(f"priors must have one entry for each of {member.shape[1]} nodes, got shape {shift.shape}")
    status = unit_status(values, member, folds)
    ok = status == "ok"
    says = np.zeros(member.shape, dtype=bool)
    if ok.any():
        says[:, ok] = likelihood_ratio(values[:, ok], member[:, ok], variance, folds, combine) + shift[ok] > 0
    return count_errors(says, member, status)


def count_errors(says_member, member, status=None) -> ErrorCounts:
    """Errors per node from decisions (T, n) and the truth (T, n); nodes with another status than ``ok`` get counts of 0."""
    says, member = np.asarray(says_member), np.asarray(member)
    if says.shape != member.shape or says.ndim != 2 or says.dtype != bool or member.dtype != bool:
        raise InputError(
            f"decisions {says.shape} and member {member.shape} must be bool arrays of one shape (trials, nodes)"
        )
    status = np.full(member.shape[1], "ok") if status is None else np.asarray(status)
    counts = (~member).sum(0), (says & ~member).sum(0), member.sum(0), (~says & member).sum(0)
    return ErrorCounts(*(np.where(status == "ok", one, 0).astype(np.int64) for one in counts), status)


def best_thresholds(scores: np.ndarray, member: np.ndarray) -> np.ndarray:
    """For every node the threshold that maximises TPR - FPR over its trials, (n,); infinite when none is above 0.

    It lies in the middle between two neighbouring scores; the lowest false-positive rate wins ties.

    Args:
        scores, member: (T, n); every node has both classes.
    """
    order = np.argsort(-scores, axis=0, kind="stable")
    scores, member = np.take_along_axis(scores, order, axis=0), np.take_along_axis(member, order, axis=0)
    gain = np.cumsum(member / member.sum(0) - ~member / (~member).sum(0), axis=0)[:-1]
    gain[scores[:-1] == scores[1:]] = -1.0  # no threshold lies between equal scores
    best = gain.argmax(0)[None]
    above, below = (np.take_along_axis(part, best, axis=0)[0] for part in (scores[:-1], scores[1:]))
    return np.where(np.take_along_axis(gain, best, axis=0)[0] > 1e-12, (above + below) / 2, np.inf)
