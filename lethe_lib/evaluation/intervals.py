"""Intervals for means over seeds: few values, so Student's t and nothing cleverer."""

from collections.abc import Sequence

import numpy as np
from scipy import stats

from lethe_lib.errors import InputError


def mean_interval(values: Sequence[float], level: float = 0.95) -> tuple[float, float, float]:
    """The mean of independent values with its t interval.

    Args:
        values: at least two numbers, one per seed.
        level: confidence level.

    Returns:
        mean, lower end, upper end.

    Example:
        >>> [round(number, 3) for number in mean_interval([1.0, 2.0, 3.0])]
        [2.0, -0.484, 4.484]
    """
    values = np.asarray(values, dtype=float)
    if values.size < 2 or not np.isfinite(values).all():
        raise InputError(f"an interval needs at least two finite values, one per seed; got {values.tolist()}")
    half = stats.t.ppf(0.5 + level / 2, values.size - 1) * values.std(ddof=1) / np.sqrt(values.size)
    return float(values.mean()), float(values.mean() - half), float(values.mean() + half)


def ratio_interval(over: Sequence[float], under: Sequence[float], level: float = 0.95) -> tuple[float, float, float]:
    """The geometric mean of paired ratios with the t interval of its logarithm.

    Args:
        over, under: positive numbers, one pair per seed.
        level: confidence level.

    Returns:
        ratio, lower end, upper end.
    """
    over, under = np.asarray(over, dtype=float), np.asarray(under, dtype=float)
    if over.shape != under.shape or (over <= 0).any() or (under <= 0).any():
        raise InputError("a ratio needs as many positive values above as below")
    mean, low, high = mean_interval(np.log(over / under), level)
    return float(np.exp(mean)), float(np.exp(low)), float(np.exp(high))
