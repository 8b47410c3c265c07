"""Leakage: how much more an attack tells about a method's models than about models that never saw the edges.

An AUC of one half is not the ideal: retrained models score well above it where linked nodes are alike or stay close in
the retained graph. What a method leaks is its excess over Gold. With one split, forget set and set of pairs per seed,

    excess of a seed = mean AUC of the method's runs - mean AUC of the Golds        on the same pairs
    excess           = mean over seeds

    repeat: draw seeds; within a seed draw positives and negatives (shared by all its models), runs and Golds,
            all with replacement
            AUC of a model on the draw = mean drawn placement of positives + of negatives - AUC
    interval = percentiles of the excesses

The AUC of a draw is taken to first order (the placements of DeLong et al., Biometrics 1988, are its influence values),
which makes a repeat a product of matrices. With few seeds a percentile interval is too narrow; with one seed it covers
the pairs and the runs of that seed alone.
"""

from collections.abc import Hashable, Mapping, Sequence

import numpy as np

from lethe_lib.attacks import placements
from lethe_lib.errors import InputError
from lethe_lib.seeding import numpy_generator

BLOCK = 2**21  # draws held in memory at a time

Run = tuple[np.ndarray, np.ndarray]
"""Scores and labels of one attack on one model."""


def excess_over_gold(
    method: Mapping[Hashable, Sequence[Run]],
    golds: Mapping[Hashable, Sequence[Run]],
    same: bool = False,
    seed: int = 0,
    replicates: int = 1000,
    level: float = 0.95,
) -> dict[str, float]:
    """The excess AUC of a method over Gold, with a bootstrap interval over seeds, runs and pairs.

    Args:
        method: for each seed, (scores, labels) of one attack on the method's models, at least one.
        golds: for each seed, the same on retrained models, about the same pairs in the same order. Seeds that only one
            side has are left out.
        same: ``method`` is Gold itself. Then one Gold of each seed, drawn anew every time, is held against the others
            of its seed: the excess is 0 by symmetry and the interval is the noise of an exact answer. Needs two Golds.
        seed: seed of the bootstrap.
        replicates: number of draws.
        level: confidence level.

    Returns:
        ``auc`` and ``gold_auc``, means over seeds; ``excess``, their difference, in [-1, 1], above 0 where the method
        tells more than Gold; ``excess_low`` and ``excess_high``, the interval; ``gold_spread``, the largest difference
        between two Golds of a seed; ``seeds``, how many were used.

    Raises:
        InputError: no common seed, a seed without runs, too few Golds, or runs of a seed about different pairs.

    Example:
        >>> labels = np.array([True, True, False, False])
        >>> sharp, blunt = np.array([4.0, 3.0, 2.0, 1.0]), np.array([4.0, 2.0, 3.0, 1.0])
        >>> excess_over_gold({0: [(sharp, labels)]}, {0: [(blunt, labels)]})["excess"]
        0.25
    """
    seeds = [key for key in method if key in golds]
    if not seeds:
        raise InputError(f"the method has seeds {list(method)} and Gold has {list(golds)}: they need a common one")
    generator = numpy_generator(seed, "excess over gold")
    area, gold_area, spread, drawn = [], [], [], []
    for key in seeds:
        runs = golds[key] if same else [*method[key], *golds[key]]
        first_gold = 0 if same else len(method[key])
        _check(key, runs, first_gold, same)
        parts = [placements(*run) for run in runs]
        positive, negative = (np.stack(side, axis=1) for side in zip(*parts, strict=True))  # (targets, models) each
        exact = positive.mean(axis=0)
        gold = exact[first_gold:]
        area.append(gold.mean() if same else exact[:first_gold].mean())
        gold_area.append(gold.mean())
        spread.append(np.ptp(gold))
        areas = _drawn_means(positive, replicates, generator) + _drawn_means(negative, replicates, generator) - exact
        if same:
            drawn.append(_one_against_the_others(areas, generator))
        else:
            drawn.append(_resampled(areas[:, :first_gold], generator) - _resampled(areas[:, first_gold:], generator))
    low, high = np.quantile(_resampled(np.stack(drawn, axis=1), generator), [0.5 - level / 2.0, 0.5 + level / 2.0])
    return {
        "auc": float(np.mean(area)),
        "gold_auc": float(np.mean(gold_area)),
        "excess": float(np.mean(area) - np.mean(gold_area)),
        "excess_low": float(low),
        "excess_high": float(high),
        "gold_spread": float(max(spread)),
        "seeds": float(len(seeds)),
    }


def _check(key: Hashable, runs: Sequence[Run], first_gold: int, same: bool) -> None:
    if len(runs) - first_gold < (2 if same else 1) or (not same and first_gold == 0):
        raise InputError(f"seed {key!r} has {first_gold} runs of the method and {len(runs) - first_gold} of Gold")
    if any(not np.array_equal(labels, runs[0][1]) for _, labels in runs):
        raise InputError(f"the runs of seed {key!r} are about different pairs: attack the same forget set and seed")


def _drawn_means(values: np.ndarray, replicates: int, generator: np.random.Generator) -> np.ndarray:
    """Means of the columns over targets drawn with replacement, (replicates, models)."""
    count = len(values)
    means, size = [], max(1, BLOCK // count)
    for first in range(0, replicates, size):
        rows = np.arange(min(size, replicates - first))[:, None]
        drawn = generator.integers(0, count, (len(rows), count)) + rows * count
        times = np.bincount(drawn.ravel(), minlength=len(rows) * count).reshape(len(rows), count)
        means.append(times @ values / count)
    return np.concatenate(means)


def _resampled(values: np.ndarray, generator: np.random.Generator) -> np.ndarray:
    """Means over columns drawn with replacement, anew in every row, (replicates,)."""
    chosen = generator.integers(0, values.shape[1], values.shape)
    return np.take_along_axis(values, chosen, axis=1).mean(axis=1)


def _one_against_the_others(values: np.ndarray, generator: np.random.Generator) -> np.ndarray:
    """In every row one column, drawn at random, minus the mean of the others, (replicates,)."""
    models = values.shape[1]
    one = np.take_along_axis(values, generator.integers(0, models, (len(values), 1)), axis=1)[:, 0]
    return one - (values.sum(axis=1) - one) / (models - 1)
