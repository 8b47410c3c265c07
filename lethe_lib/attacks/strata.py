"""One attack, hop class by hop class: AUC among pairs that are equally far apart in the retained graph.

    stratum = pairs at 2 hops, at 3 hops, or further apart (not connected included) in the retained graph
    AUC of a stratum = its forgotten edges against its negatives
    stratified AUC   = mean over the strata with both classes, weighted by their forgotten edges

Between pairs of one stratum the bare distance cannot score. For LinkTeller on a network of L layers the strata beyond L
hops have an AUC of exactly one half, as all their scores are 0; ``auc_within`` keeps the pairs within reach alone.
"""

import math
from dataclasses import dataclass

import numpy as np
import torch
from scipy.stats import norm
from torch_geometric.data import Data

from lethe_lib.attacks.auc import auc, auc_variance
from lethe_lib.attacks.hops import BEYOND, hop_distances
from lethe_lib.attacks.result import AttackResult
from lethe_lib.errors import InputError
from lethe_lib.structure import remove_edges

STRATA = {2: "2", 3: "3", BEYOND: ">3"}
"""Hop distance in the retained graph -> how tables call it."""


@dataclass(frozen=True)
class HopStrata:
    """AUCs within hop classes.

    Attributes:
        forgotten, negatives: how many pairs each stratum of ``STRATA`` has of either kind.
        areas: AUC of each stratum that has both kinds.
        auc: stratified AUC, signed, in [0, 1]; NaN if no stratum has both kinds. interval: 95 %, DeLong's within strata.
        compared: share of the forgotten edges that stand in a stratum with negatives, in [0, 1].
    """

    forgotten: dict[str, int]
    negatives: dict[str, int]
    areas: dict[str, float]
    auc: float
    interval: tuple[float, float]
    compared: float


def hop_strata(result: AttackResult, data: Data, forget: torch.Tensor) -> HopStrata:
    """Split the pairs of an attack on edges by their hop distance in the retained graph.

    Args:
        result: of an attack on edges. data: the original graph. forget: the request that was attacked.
    """
    return stratify(result.scores, result.labels, retained_hops(result, data, forget))


def retained_hops(result: AttackResult, data: Data, forget: torch.Tensor) -> np.ndarray:
    """Hop distance in the retained graph of every pair of an attack on edges, int64 (n,): 2, 3 or ``BEYOND``."""
    if result.targets.ndim != 2:
        raise InputError(f"{result.name} is an attack on nodes: only pairs have a distance")
    return hop_distances(remove_edges(data, forget), torch.from_numpy(result.targets))


def stratify(scores: np.ndarray, labels: np.ndarray, hops: np.ndarray) -> HopStrata:
    """The arithmetic of :func:`hop_strata`.

    Args:
        scores, labels: (n,), as in ``auc``. hops: (n,), keys of ``STRATA``.

    Example:
        >>> found = stratify(np.array([3.0, 1.0, 2.0, 5.0]), np.array([1, 0, 1, 0]), np.array([2, 2, 3, 3]))
        >>> found.areas, found.auc
        ({'2': 1.0, '3': 0.0}, 0.5)
    """
    scores, labels, hops = np.asarray(scores), np.asarray(labels).astype(bool), np.asarray(hops)
    forgotten = {name: int((labels & (hops == distance)).sum()) for distance, name in STRATA.items()}
    negatives = {name: int((~labels & (hops == distance)).sum()) for distance, name in STRATA.items()}
    areas, variance = {}, 0.0
    both = {distance: name for distance, name in STRATA.items() if forgotten[name] and negatives[name]}
    total = sum(forgotten[name] for name in both.values())
    for distance, name in both.items():
        inside = hops == distance
        areas[name] = auc(scores[inside], labels[inside])
        variance += (forgotten[name] / total) ** 2 * auc_variance(scores[inside], labels[inside])
    compared = total / max(1, int(labels.sum()))
    if not areas:
        return HopStrata(forgotten, negatives, areas, math.nan, (0.0, 1.0), 0.0)
    area = sum(forgotten[name] / total * value for name, value in areas.items())
    half = float(norm.ppf(0.975)) * math.sqrt(variance)
    return HopStrata(forgotten, negatives, areas, area, (max(0.0, area - half), min(1.0, area + half)), float(compared))


def auc_within(scores: np.ndarray, labels: np.ndarray, hops: np.ndarray, depth: int) -> float:
    """AUC among the pairs within ``depth`` hops; NaN where these lack one of the classes.

    Args:
        scores, labels, hops: (n,), as in :func:`stratify`. depth: layers of the network.
    """
    near = np.asarray(hops) <= depth
    labels = np.asarray(labels).astype(bool)
    if len(set(labels[near].tolist())) < 2:
        return math.nan
    return auc(np.asarray(scores)[near], labels[near])
