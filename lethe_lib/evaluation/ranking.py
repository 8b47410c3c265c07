"""Many methods over many settings: do their ranks differ, and which differences can these settings tell apart?

    rank the methods within every setting (1 = smallest value, ties share their mean rank)
    Friedman (1937)   do the mean ranks differ at all?
    Nemenyi (1963)    CD = q_alpha sqrt(k (k + 1) / (6 N)),  q_alpha = quantile of the studentised range / sqrt(2)
    two methods whose mean ranks differ by less than CD are not told apart        (Demšar, JMLR 2006)

The settings count as independent: give one row per setting, not one per seed.
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy import stats

from lethe_lib.errors import InputError


@dataclass(frozen=True)
class Ranking:
    """Mean ranks of methods over settings.

    Attributes:
        mean_ranks: method -> mean rank, sorted, 1 = best. settings: how many rows were ranked.
        p_value: of Friedman's test that all methods rank alike; 1 where they are tied in every setting.
        critical_difference: Nemenyi's CD.
        groups: maximal runs of neighbours in the order whose ends are less than CD apart, each as (first, last) method.
    """

    mean_ranks: pd.Series
    settings: int
    p_value: float
    critical_difference: float
    groups: tuple[tuple[str, str], ...]


def rank_methods(values: pd.DataFrame, level: float = 0.95) -> Ranking:
    """Rank the columns of a table within its rows; the smallest value is the best.

    Args:
        values: one row per setting, one column per method, no holes; at least two rows and three columns.
        level: of Nemenyi's comparison.

    Raises:
        InputError: holes, or too few settings or methods.

    Example:
        >>> table = pd.DataFrame({"a": [1, 1, 1, 1], "b": [2, 2, 2, 3], "c": [3, 3, 3, 2]})
        >>> rank_methods(table).mean_ranks.tolist()
        [1.0, 2.25, 2.75]
    """
    settings, methods = values.shape
    if settings < 2 or methods < 3:
        raise InputError(f"{settings} settings and {methods} methods: a ranking needs at least two and three")
    if not np.isfinite(values.to_numpy(dtype=float)).all():
        raise InputError("a ranking takes one finite value of every method in every setting: leave out incomplete rows")
    means = values.rank(axis=1).mean().sort_values(kind="stable")
    tied = (values.nunique(axis=1) == 1).all()  # Friedman's statistic is 0 / 0 there
    p_value = 1.0 if tied else float(stats.friedmanchisquare(*(values[name] for name in values.columns)).pvalue)
    quantile = stats.studentized_range.ppf(level, methods, np.inf) / np.sqrt(2)
    distance = float(quantile * np.sqrt(methods * (methods + 1) / (6 * settings)))
    return Ranking(means, settings, p_value, distance, _groups(means, distance))


def _groups(means: pd.Series, distance: float) -> tuple[tuple[str, str], ...]:
    groups, covered = [], -1
    for first in range(len(means)):
        last = int(np.searchsorted(means.to_numpy(), means.iloc[first] + distance, side="left")) - 1
        if last > first and last > covered:
            groups.append((means.index[first], means.index[last]))
            covered = last
    return tuple(groups)
