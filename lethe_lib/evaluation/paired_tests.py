"""Tests of paired differences: the pooled test of the benchmark, and tests that respect what depends on what.

    signed rank    W = sum of the ranks of |d| over d > 0;  r = (W+ - W-) / (W+ + W-)   matched-pairs rank-biserial
    normal p       (W - n(n+1)/4) / sqrt(n(n+1)(2n+1)/24 - ties)                        what large samples get
    exact p        share of the 2^n sign vectors with a sum of ranks at least as large (Wilcoxon 1945)
    Holm           the k-th smallest of m p-values times m - k + 1, made monotone (Holm 1979)
    cluster        resample whole clusters with replacement, mean of the cluster means   (percentile interval)

A test takes its differences to be independent. Methods on one graph share its pairs, its split and its original, so a test
over all (graph, backbone, method) cells counts the same fact many times; one difference per setting, or whole graphs drawn
at a time, does not.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

from lethe_lib.errors import InputError
from lethe_lib.seeding import numpy_generator

ALTERNATIVES = {"two-sided": 0, "greater": 1, "less": -1}


@dataclass(frozen=True)
class SignedRank:
    """What a signed-rank test found.

    Attributes:
        count: differences that are not zero. statistic: W, the sum of the ranks of the positive ones.
        p_normal: p-value by the normal approximation, without continuity correction.
        p_exact: exact p-value, over all signs of the ranks found (ties share their mean rank).
        effect: matched-pairs rank-biserial correlation, in [-1, 1]; 1 where every difference is positive.

    Where every difference is zero the sides are tied: ``count``, ``statistic`` and ``effect`` are 0, the p-values 1.
    """

    count: int
    statistic: float
    p_normal: float
    p_exact: float
    effect: float


def signed_rank(differences: Sequence[float], alternative: str = "two-sided") -> SignedRank:
    """Wilcoxon's signed-rank test that paired differences are symmetric around zero; zeros are left out.

    Args:
        differences: one number per independent pair.
        alternative: ``greater`` asks whether they tend to lie above zero, ``less`` below, ``two-sided`` either.

    Raises:
        InputError: no number, one that is not finite, or an unknown alternative.

    Example:
        >>> found = signed_rank([1.0, 2.0, 3.0], "greater")
        >>> found.statistic, found.p_exact, found.effect
        (6.0, 0.125, 1.0)
    """
    if alternative not in ALTERNATIVES:
        raise InputError(f"unknown alternative {alternative!r}: choose one of {', '.join(ALTERNATIVES)}")
    values = _finite(differences)
    values = values[values != 0]
    if values.size == 0:  # tied everywhere: no sign speaks for either side
        return SignedRank(0, 0.0, 1.0, 1.0, 0.0)
    ranks, count = stats.rankdata(np.abs(values)), values.size
    above = float(ranks[values > 0].sum())
    total = count * (count + 1) / 2
    _, ties = np.unique(ranks, return_counts=True)
    variance = count * (count + 1) * (2 * count + 1) / 24 - float((ties**3 - ties).sum()) / 48
    z = (above - total / 2) / np.sqrt(variance)
    tails = {"greater": stats.norm.sf(z), "less": stats.norm.cdf(z), "two-sided": 2 * stats.norm.sf(abs(z))}
    return SignedRank(
        count, above, float(tails[alternative]), _exact_p(ranks, above, alternative), (2 * above - total) / total
    )


def _exact_p(ranks: np.ndarray, statistic: float, alternative: str) -> float:
    """Share of the sign vectors as extreme as the one found, by the distribution of the sum of a random subset."""
    doubled = np.rint(2 * ranks).astype(int)  # mean ranks of ties are halves
    mass = np.zeros(doubled.sum() + 1)
    mass[0] = 1.0
    for rank in doubled:
        mass[rank:] = 0.5 * (mass[rank:] + mass[:-rank])
        mass[:rank] *= 0.5
    place = round(2 * statistic)
    upper, lower = float(mass[place:].sum()), float(mass[: place + 1].sum())
    return {"greater": upper, "less": lower, "two-sided": min(1.0, 2 * min(upper, lower))}[alternative]


def sign_test(differences: Sequence[float], alternative: str = "two-sided") -> tuple[int, int, float]:
    """Exact sign test: how many of the differences that are not zero are positive, of how many, and the p-value.

    Example:
        >>> sign_test([0.1, 0.2, 0.3, -0.1], "greater")
        (3, 4, 0.3125)
    """
    values = _finite(differences)
    positive, count = int((values > 0).sum()), int((values != 0).sum())
    if count == 0:
        raise InputError("every difference is zero: there is no sign to test")
    return positive, count, float(stats.binomtest(positive, count, 0.5, alternative).pvalue)


def holm(p_values: Sequence[float]) -> np.ndarray:
    """p-values adjusted for having looked at all of them (Holm's step-down procedure), in the order given.

    Example:
        >>> holm([0.01, 0.04, 0.03]).tolist()
        [0.03, 0.06, 0.06]
    """
    p = _finite(p_values)
    order = np.argsort(p, kind="stable")
    stepped = np.maximum.accumulate(p[order] * (p.size - np.arange(p.size)))
    adjusted = np.empty(p.size)
    adjusted[order] = np.minimum(stepped, 1.0)
    return adjusted


def cluster_bootstrap(
    values: Sequence[float], clusters: Sequence[Hashable], seed: int = 0, replicates: int = 10_000, level: float = 0.95
) -> tuple[float, float, float]:
    """Mean of the cluster means, with the percentile interval of drawing whole clusters with replacement.

    Args:
        values: one number per cell. clusters: what the cell belongs to, for example its graph; at least two different.
        seed, replicates, level: of the bootstrap.

    Returns:
        mean, lower end, upper end. With few clusters such an interval is too narrow.

    Example:
        >>> cluster_bootstrap([1.0, 1.0, 1.0, 3.0], ["a", "a", "a", "b"])
        (2.0, 1.0, 3.0)
    """
    values = _finite(values)
    names = list(dict.fromkeys(clusters))
    if len(clusters) != values.size or len(names) < 2:
        raise InputError(
            f"{values.size} values of {len(names)} clusters: give each its cluster, at least two different"
        )
    means = np.array([values[[own == name for own in clusters]].mean() for name in names])
    drawn = numpy_generator(seed, "cluster bootstrap").integers(0, len(names), (replicates, len(names)))
    low, high = np.quantile(means[drawn].mean(axis=1), [0.5 - level / 2, 0.5 + level / 2])
    return float(means.mean()), float(low), float(high)


def _finite(values: Sequence[float]) -> np.ndarray:
    numbers = np.asarray(values, dtype=float)
    if numbers.ndim != 1 or numbers.size == 0 or not np.isfinite(numbers).all():
        raise InputError("a paired test takes a list of finite numbers, at least one")
    return numbers
