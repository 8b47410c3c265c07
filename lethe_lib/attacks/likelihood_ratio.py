"""Membership by likelihood ratio: one pair of normal laws per unit, fitted without the trial that is scored.

A unit is what may or may not be in the training data of a trial: a node, or an edge. Every trial t trains on its own sample
and yields a statistic x[t, i] for every unit i. After N. Carlini et al., "Membership Inference Attacks From First
Principles", arXiv:2112.03570.

    for every unit i and trial t, from the other trials (or the trials of the other folds) alone:
        mean_in, var_in   <- trials whose training data held unit i
        mean_out, var_out <- trials whose training data did not
        score[t, i] = log N(x[t, i]; mean_in, var_in) - log N(x[t, i]; mean_out, var_out)
    several statistics: sum of their scores, or one multivariate normal law per class with shrunk correlations

Variance, since the known implementations disagree: unbiased, that is squared deviations from the class's own mean divided by
(count - 1); ``pooled`` takes the deviations of both classes divided by (count_in + count_out - 2). No variance is taken
below FLOOR times the variance of all other trials of the unit together, so that a class without spread stays finite.

The sums without a trial are sums of what comes before and after it, not a total minus its own value: nothing cancels, and a
score depends on its own trial through the scored value only.

Scores of different trials come from different fits. Compare them over many units, or, within one unit, inside a fold (see
``rates.unit_auc``): a member that is left out drags the fit of its class away from itself.
"""

from dataclasses import dataclass

import numba
import numpy as np

from lethe_lib.errors import InputError

VARIANCES = ("own", "pooled")
COMBINATIONS = ("sum", "joint")
LEAST = 2  # trials per class that every fit needs: with fewer there is no unbiased variance
FLOOR = 1e-6  # smallest variance of a class, as a share of the variance over all trials of the unit
CONSTANT = 1e-12  # a standard deviation below this share of the largest absolute value is rounding
BLOCK = 8_000_000  # numbers in one array of a block of units, which bounds the memory
STATUSES = ("ok", "no_in", "no_out", "few_in", "few_out", "constant")


@dataclass(frozen=True)
class ClassFits:
    """Normal fits of every unit and trial, from the other trials; all arrays have the shape of the statistics.

    Args:
        mean_out, mean_in: means of the two classes.
        variance_out, variance_in: variances, above 0; equal when pooled.
        known: whether the other trials differ at all. Where they do not, the statistic says nothing.
    """

    mean_out: np.ndarray
    mean_in: np.ndarray
    variance_out: np.ndarray
    variance_in: np.ndarray
    known: np.ndarray


def likelihood_ratio(
    statistics, member, variance: str = "own", folds: int | None = None, combine: str = "sum"
) -> np.ndarray:
    """Evidence that a unit was in the training data of a trial, from what the other trials teach about the unit.

    Args:
        statistics: (T, n) float, or (T, n, S) for S statistics per unit; their direction does not matter, as every unit
            is calibrated on its own.
        member: (T, n) bool, whether unit i was in the training data of trial t.
        variance: ``own`` fits a variance per class, ``pooled`` one for both.
        folds: None leaves out the scored trial alone; a number leaves out its fold, trial t being in fold t mod folds.
        combine: for several statistics: ``sum`` adds their log ratios as if they were independent; ``joint`` fits
            multivariate normal laws whose correlations are shrunk towards 0.

    Returns:
        (T, n) float64, log of the density when in over the density when out; above 0 speaks for membership.

    Raises:
        InputError: shapes that do not match, values that are not finite, or units that cannot be scored; select the others
            with :func:`unit_status`.

    Example:
        >>> member = np.tile([[True], [False]], (4, 1))
        >>> bool((likelihood_ratio(np.arange(8.0)[:, None] / 9 + member, member)[member] > 0).all())
        True
    """
    values, member, fold = check_trials(statistics, member, folds)
    _check_choice("variance", variance, VARIANCES)
    _check_choice("combine", combine, COMBINATIONS)
    refuse_unusable(_status(values, member, fold))
    trials, units, count = values.shape
    scores = np.empty((trials, units))
    log_ratio = _sum_of_ratios if combine == "sum" else _joint_ratio
    width = max(1, BLOCK // (trials * (count if combine == "sum" else count**2)))
    for start in range(0, units, width):
        block = slice(start, start + width)
        centred, size = values[:, block] - _centre(values[:, block]), np.abs(values[:, block]).max(0)
        scores[:, block] = log_ratio(centred, size, member[:, block], variance, fold)
    return scores


def unit_status(statistics, member, folds: int | None = None) -> np.ndarray:
    """Why a unit cannot be scored, (n,) of STATUSES.

    ``no_in`` and ``no_out``: never, or always, in the training data. ``few_in`` and ``few_out``: fewer than LEAST trials of
    that class remain for some fit. ``constant``: no statistic of the unit ever changes.
    """
    return _status(*check_trials(statistics, member, folds))


def class_fits(statistics, member, variance: str = "own", folds: int | None = None) -> ClassFits:
    """The normal fits behind the scores of one statistic per unit; arguments as in :func:`likelihood_ratio`."""
    values, member, fold = check_trials(statistics, member, folds)
    _check_choice("variance", variance, VARIANCES)
    if np.ndim(statistics) != 2:
        raise InputError(f"fits are given for one statistic per unit, (T, n), not for shape {np.shape(statistics)}")
    refuse_unusable(_status(values, member, fold))
    centre = _centre(values)
    fits = _fits(values - centre, np.abs(values).max(0), member, variance, fold)
    arrays = fits.mean_out + centre, fits.mean_in + centre, fits.variance_out, fits.variance_in, fits.known
    return ClassFits(*(array[..., 0] for array in arrays))


def check_trials(statistics, member, folds: int | None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Statistics (T, n, S), memberships (T, n) and the fold of every trial (T,), checked."""
    values, given = np.asarray(statistics, dtype=np.float64), np.asarray(member)
    if values.ndim not in (2, 3) or given.shape != values.shape[:2] or 0 in values.shape:
        raise InputError(
            "statistics must have shape (trials, units) or (trials, units, statistics) and member (trials, units); got "
            f"{values.shape} and {given.shape}"
        )
    if given.dtype != bool:
        raise InputError(f"member must be an array of bool, not of {given.dtype}: compare with 1, or use astype(bool)")
    bad = ~np.isfinite(values)
    if bad.any():
        trial, unit = np.argwhere(bad)[0][:2]
        raise InputError(
            f"the statistic of unit {unit} in trial {trial} is {values[bad].flat[0]} ({bad.sum()} such values in "
            f"{bad.any(axis=(1, *range(2, values.ndim))).sum()} trials): leave such trials out, and find out why they exist"
        )
    trials = len(values)
    if folds is not None and not 2 <= folds <= trials:
        raise InputError(f"folds = {folds} must lie between 2 and the number of trials, {trials}, or be None")
    fold = np.arange(trials) % (trials if folds is None else folds)
    return values.reshape(*given.shape, -1), given, fold


def refuse_unusable(status: np.ndarray) -> None:
    """An InputError that names the first unit that cannot be scored, when there is one."""
    bad = np.flatnonzero(status != "ok")
    if bad.size:
        kinds = ", ".join(f"{name} {np.sum(status == name)}" for name in STATUSES[1:] if np.any(status == name))
        raise InputError(
            f"unit {bad[0]} cannot be scored: {status[bad[0]]} ({bad.size} of {status.size} units: {kinds}). "
            'Keep the units whose unit_status(...) is "ok", or run more trials'
        )


def _check_choice(name: str, value: str, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise InputError(f"{name} = {value!r} is unknown: choose {' or '.join(allowed)}")


def _status(values: np.ndarray, member: np.ndarray, fold: np.ndarray) -> np.ndarray:
    count_in, count_out = (_fewest_of_others(side, fold) for side in (member, ~member))
    spread, size = values.std(0), np.abs(values).max(0)
    status = np.full(member.shape[1], "ok", dtype=object)
    for name, where in (
        ("constant", np.all(spread <= CONSTANT * size, axis=1)),
        ("few_out", count_out < LEAST),
        ("few_in", count_in < LEAST),
        ("no_out", member.all(0)),
        ("no_in", ~member.any(0)),
    ):
        status[where] = name
    return status.astype(str)


def _fewest_of_others(side: np.ndarray, fold: np.ndarray) -> np.ndarray:
    """How many trials of a class are left, (n,), when the fold that holds most of them is left out."""
    folds = fold.max() + 1
    most = side.any(0) if folds == len(fold) else np.max([side[fold == one].sum(0) for one in range(folds)], axis=0)
    return side.sum(0) - most


def _centre(values: np.ndarray) -> np.ndarray:
    """A value amid those of each unit. Any centre gives the same fits; such a one keeps the sums of squares accurate."""
    return np.median(values, axis=0)


def _of_others(values: np.ndarray, fold: np.ndarray) -> np.ndarray:
    """For every trial the sum over the trials of all other folds, the same shape as ``values``."""
    folds = fold.max() + 1
    alone = folds == len(fold)
    grouped = values if alone else np.stack([values[fold == one].sum(0) for one in range(folds)])
    others = np.zeros_like(grouped)
    np.cumsum(grouped[:-1], axis=0, out=others[1:])
    others[:-1] += np.cumsum(grouped[:0:-1], axis=0)[::-1]
    return others if alone else others[fold]


def _fits(centred: np.ndarray, size: np.ndarray, member: np.ndarray, variance: str, fold: np.ndarray) -> ClassFits:
    """Fits of every statistic on its own, (T, n, S), from centred values; ``size`` is the largest of the original ones."""
    fits = ClassFits(*(np.empty_like(centred) for _ in range(4)), np.empty(centred.shape, bool))
    arrays = fits.mean_out, fits.mean_in, fits.variance_out, fits.variance_in, fits.known
    _fit_columns(centred, size, member, fold, fold.max() + 1, variance == "pooled", *arrays)
    return fits


@numba.njit(cache=True)
def _fit_columns(centred, size, member, fold, folds, pooled, mean_out, mean_in, variance_out, variance_in, known):
    """Fill the last five arrays, one statistic of one unit after another: sums of all of them at once leave the cache."""
    trials, units, count = centred.shape
    own, before, after = np.zeros((folds, 6)), np.zeros((folds, 6)), np.zeros((folds, 6))
    for unit in range(units):
        for one in range(count):
            own[:] = 0.0
            for trial in range(trials):
                group, side = fold[trial], 3 * member[trial, unit]
                value = centred[trial, unit, one]
                own[group, side] += 1.0
                own[group, side + 1] += value
                own[group, side + 2] += value * value
            for group in range(1, folds):
                for number in range(6):
                    before[group, number] = before[group - 1, number] + own[group - 1, number]
                    after[folds - 1 - group, number] = after[folds - group, number] + own[folds - group, number]
            for trial in range(trials):
                first, last = before[fold[trial]], after[fold[trial]]
                count_out, total_out, square_out = first[0] + last[0], first[1] + last[1], first[2] + last[2]
                count_in, total_in, square_in = first[3] + last[3], first[4] + last[4], first[5] + last[5]
                every, total = count_out + count_in, total_out + total_in
                overall = (square_out + square_in - total * total / every) / (every - 1.0)
                moves = overall > (CONSTANT * size[unit, one]) ** 2
                scatter_out = square_out - total_out * total_out / count_out
                scatter_in = square_in - total_in * total_in / count_in
                if pooled:
                    scatter_out = scatter_in = (scatter_out + scatter_in) / (every - 2.0)
                else:
                    scatter_out, scatter_in = scatter_out / (count_out - 1.0), scatter_in / (count_in - 1.0)
                smallest = FLOOR * overall if moves else 1.0
                mean_out[trial, unit, one], mean_in[trial, unit, one] = total_out / count_out, total_in / count_in
                variance_out[trial, unit, one] = max(scatter_out, smallest)
                variance_in[trial, unit, one] = max(scatter_in, smallest)
                known[trial, unit, one] = moves


def _sum_of_ratios(centred, size, member, variance: str, fold) -> np.ndarray:
    fits = _fits(centred, size, member, variance, fold)
    ratio = (centred - fits.mean_out) ** 2 / fits.variance_out - (centred - fits.mean_in) ** 2 / fits.variance_in
    ratio += np.log(fits.variance_out / fits.variance_in)
    return np.where(fits.known, ratio / 2, 0.0).sum(2)


def _joint_ratio(centred, size, member, variance: str, fold) -> np.ndarray:
    """Ratio of two multivariate normal laws: means and variances of the single fits, and shrunk correlations."""
    fits = _fits(centred, size, member, variance, fold)
    known = fits.known[..., :, None] & fits.known[..., None, :]
    means = fits.mean_out, fits.mean_in
    spreads = np.sqrt(fits.variance_out), np.sqrt(fits.variance_in)
    freedom, scatters = [], []
    for inside, mean in zip((~member, member), means):
        weight = inside[..., None].astype(np.float64)
        count = _of_others(weight, fold)[..., None]
        products = _of_others((weight * centred)[..., :, None] * centred[..., None, :], fold)
        scatters.append(products - count * mean[..., :, None] * mean[..., None, :])
        freedom.append(count - 1)
    if variance == "pooled":
        freedom, scatters = [freedom[0] + freedom[1]] * 2, [scatters[0] + scatters[1]] * 2
    logs = []
    for mean, spread, degrees, scatter in zip(means, spreads, freedom, scatters):
        correlation = known * scatter / degrees / (spread[..., :, None] * spread[..., None, :])
        shrunk = shrunk_correlation(correlation, degrees)
        away = np.where(fits.known, (centred - mean) / spread, 0.0)
        distance = np.sum(away * np.linalg.solve(shrunk, away[..., None])[..., 0], axis=-1)
        logs.append(-0.5 * (distance + np.linalg.slogdet(shrunk)[1]) - np.log(spread).sum(-1))
    return logs[1] - logs[0]


def shrunk_correlation(correlation: np.ndarray, freedom) -> np.ndarray:
    """Correlation matrices moved towards no correlation by the oracle approximating shrinkage.

    Y. Chen, A. Wiesel, Y. Eldar, A. Hero, "Shrinkage algorithms for MMSE covariance estimation", IEEE Transactions on Signal
    Processing 2010, equation 23, with the number of samples replaced by the degrees of freedom.

    Args:
        correlation: (..., S, S), symmetric; the diagonal is taken as 1.
        freedom: degrees of freedom behind it, broadcasting against (..., 1, 1).
    """
    size = correlation.shape[-1]
    identity = np.eye(size)
    off = correlation * (1 - identity)
    squares = size + np.sum(off**2, axis=(-2, -1), keepdims=True)  # trace of the squared matrix
    excess = (np.asarray(freedom) + 1 - 2 / size) * (squares - size)
    share = np.minimum(((1 - 2 / size) * squares + size**2) / np.where(excess > 0, excess, 1e-300), 1.0)
    return (1 - share) * off + identity
