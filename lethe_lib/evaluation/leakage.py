"""Leakage: how much more an attack tells about a method's models than about models that never saw the edges.

An AUC of one half is not the ideal: retrained models score well above it where linked nodes are alike or stay close in
the retained graph. What a method leaks is its excess over Gold. With one split, forget set and set of pairs per seed,

    excess of a seed = mean AUC of the method's runs - mean AUC of the Golds        on the same pairs
    excess           = mean over seeds

    repeat: draw seeds; within a seed draw positives and negatives (shared by all models of all methods), runs and
            Golds, all with replacement
            AUC of a model on the draw = mean drawn placement of positives + of negatives - AUC
    interval = percentiles of the excesses

The AUC of a draw is taken to first order (the placements of DeLong et al., Biometrics 1988, are its influence values),
which makes a repeat a product of matrices. With few seeds an interval errs to either side: the draw of seeds understates what
differs between them, the draws within count anew what seeds show already. With one seed it covers the pairs and the runs of
that seed alone, and is too short where models differ on many pairs at once.
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
    return excesses_over_gold({"": method}, golds, "" if same else None, seed, replicates, level)[""]


def excesses_over_gold(
    methods: Mapping[str, Mapping[Hashable, Sequence[Run]]],
    golds: Mapping[Hashable, Sequence[Run]],
    gold: str | None = "gold",
    seed: int = 0,
    replicates: int = 1000,
    level: float = 0.95,
) -> dict[str, dict[str, float]]:
    """:func:`excess_over_gold` of many methods about the same pairs, at little more than the cost of one.

    Args:
        methods: name -> what one method is there; methods with equal seeds and numbers of runs share all draws.
        golds, seed, replicates, level: as there.
        gold: name of the entry that is Gold itself, if there is one.

    Returns:
        Name -> the same numbers, to rounding.
    """
    groups: dict[tuple, list[str]] = {}
    for name, by_seed in methods.items():
        seeds = tuple(key for key in by_seed if key in golds)
        if not seeds:
            raise InputError(f"the method has seeds {list(by_seed)} and Gold has {list(golds)}: they need a common one")
        groups.setdefault((name == gold, seeds, *(len(by_seed[key]) for key in seeds)), []).append(name)
    found = {}
    for (same, seeds, *_), names in groups.items():
        generator = numpy_generator(seed, "excess over gold")
        found |= _of_group(names, methods, {key: golds[key] for key in seeds}, same, generator, replicates, level)
    return {name: found[name] for name in methods}


def _of_group(names, methods, golds, same: bool, generator: np.random.Generator, replicates: int, level: float) -> dict:
    """The excesses of methods with the same seeds and numbers of runs, or of Gold itself, from the same draws."""
    area, gold_area, spread, drawn = [], [], [], []  # of every seed: (methods,), number, number, (replicates, methods)
    for key, exact_models in golds.items():
        own = [] if same else [run for name in names for run in methods[name][key]]
        _check(key, own, exact_models, same)
        parts = [placements(*run) for run in (*own, *exact_models)]
        positive, negative = (np.stack(side, axis=1) for side in zip(*parts, strict=True))  # (targets, models) each
        exact = positive.mean(axis=0)
        gold = exact[len(own) :]
        gold_area.append(gold.mean())
        spread.append(np.ptp(gold))
        areas = _drawn_means(positive, replicates, generator) + _drawn_means(negative, replicates, generator) - exact
        if same:
            area.append(gold.mean(keepdims=True))
            drawn.append(_one_against_the_others(areas, generator)[:, None])
        else:
            area.append(exact[: len(own)].reshape(len(names), -1).mean(axis=1))
            of_methods = _resampled(areas[:, : len(own)].reshape(replicates, len(names), -1), generator)
            drawn.append(of_methods - _resampled(areas[:, None, len(own) :], generator))
    every = _resampled(np.stack(drawn, axis=2), generator)
    low, high = np.quantile(every, [0.5 - level / 2.0, 0.5 + level / 2.0], axis=0)
    mean, gold_mean = np.mean(area, axis=0), float(np.mean(gold_area))
    return {
        name: {
            "auc": float(mean[number]),
            "gold_auc": gold_mean,
            "excess": float(mean[number]) - gold_mean,
            "excess_low": float(low[number]),
            "excess_high": float(high[number]),
            "gold_spread": float(max(spread)),
            "seeds": float(len(golds)),
        }
        for number, name in enumerate(names)
    }


def _check(key: Hashable, own: Sequence[Run], golds: Sequence[Run], same: bool) -> None:
    if len(golds) < (2 if same else 1) or not (own or same):
        raise InputError(f"seed {key!r} has {len(own)} runs of the method and {len(golds)} of Gold")
    runs = [*own, *golds]
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
    """Means over the last axis drawn with replacement, anew in every row and the same for all methods, (rows, methods)."""
    chosen = generator.integers(0, values.shape[2], (len(values), 1, values.shape[2]))
    return np.take_along_axis(values, chosen, axis=2).mean(axis=2)


def _one_against_the_others(values: np.ndarray, generator: np.random.Generator) -> np.ndarray:
    """In every row one column, drawn at random, minus the mean of the others, (replicates,)."""
    models = values.shape[1]
    one = np.take_along_axis(values, generator.integers(0, models, (len(values), 1)), axis=1)[:, 0]
    return one - (values.sum(axis=1) - one) / (models - 1)
