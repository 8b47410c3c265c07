"""Link Stealing, attack 0: nodes that the model treats alike are guessed to be joined.

    p_v = softmax(f(X, query graph)_v)   for every endpoint of a candidate pair
    score(u, v) = - distance(p_u, p_v)
    auc over forgotten edges against pairs that were never edges, for each of eight distances

He, Jia, Backes, Gong, Zhang, "Stealing links from graph neural networks", USENIX Security 2021. The attacker knows
posteriors only. The model is asked on the retained graph by default (``query``); linked nodes tend to be of one
class, so a part of this score is homophily that a model without the edge shows as well: read it beside Gold and
Untrained.

``published``: the variant of the Lethe benchmark (arXiv:2610.21869), which draws one non-edge for every five edges of
the graph with one fixed seed and folds the AUC; the folded value is the headline there, the signed one stays beside it.
"""

from dataclasses import dataclass

import numpy as np
import torch
from torch_geometric.data import Data

from lethe_lib.attacks.auc import auc
from lethe_lib.attacks.pairs import (
    NEGATIVES,
    attacked_edges,
    candidate_pairs,
    check_most,
    check_query,
    query_graph,
)
from lethe_lib.attacks.result import Attack, AttackResult
from lethe_lib.errors import InputError
from lethe_lib.models import Backbone, predict
from lethe_lib.registry import Registry

CONSTANT_ROW = 1e-14
"""A row whose distance from its mean is below this is constant: what is left is rounding of the mean."""


def cosine(p: np.ndarray, q: np.ndarray) -> np.ndarray:
    """1 - cos of the angle between rows, in [0, 2]; written as a difference, so that close rows lose no digits."""
    unit_p, unit_q = (rows / np.linalg.norm(rows, axis=1, keepdims=True) for rows in (p, q))
    return 0.5 * ((unit_p - unit_q) ** 2).sum(axis=1)


def correlation(p: np.ndarray, q: np.ndarray) -> np.ndarray:
    """1 - Pearson correlation of rows, in [0, 2]; 1 where a row is constant and the ratio is 0 / 0."""
    p, q = (rows - rows.mean(axis=1, keepdims=True) for rows in (p, q))
    constant = np.minimum(np.linalg.norm(p, axis=1), np.linalg.norm(q, axis=1)) < CONSTANT_ROW
    distance = np.ones(len(p))
    distance[~constant] = cosine(p[~constant], q[~constant])
    return distance


def euclidean(p: np.ndarray, q: np.ndarray) -> np.ndarray:
    """Length of the difference."""
    return np.sqrt(sqeuclidean(p, q))


def sqeuclidean(p: np.ndarray, q: np.ndarray) -> np.ndarray:
    """Squared length of the difference."""
    return ((p - q) ** 2).sum(axis=1)


def chebyshev(p: np.ndarray, q: np.ndarray) -> np.ndarray:
    """Largest coordinate of the difference."""
    return np.abs(p - q).max(axis=1)


def cityblock(p: np.ndarray, q: np.ndarray) -> np.ndarray:
    """Sum of the coordinates of the difference."""
    return np.abs(p - q).sum(axis=1)


def braycurtis(p: np.ndarray, q: np.ndarray) -> np.ndarray:
    """Sum of the differences over the sum of the sums, in [0, 1]; half of cityblock for posteriors."""
    return np.abs(p - q).sum(axis=1) / np.abs(p + q).sum(axis=1)


def canberra(p: np.ndarray, q: np.ndarray) -> np.ndarray:
    """Sum of relative differences; a coordinate that is 0 in both rows adds 0."""
    total = np.abs(p) + np.abs(q)
    return (np.abs(p - q) / np.where(total == 0.0, 1.0, total)).sum(axis=1)


DISTANCES: Registry = Registry(
    "distance",
    {
        function.__name__: function
        for function in (
            cosine,
            euclidean,
            correlation,
            chebyshev,
            braycurtis,
            canberra,
            cityblock,
            sqeuclidean,
        )
    },
)
"""Name to ``distance(p, q) -> (n,)`` for float64 rows of posteriors: symmetric, never NaN, 0 for equal rows (but see
``correlation``)."""


@dataclass(frozen=True)
class LinkStealingSettings:
    """Settings.

    Attributes:
        distance: name of the distance behind the scores; all eight AUCs are in the result's extras.
        query: graph that the model is asked on, a name of ``pairs.QUERIES``.
        negatives: kind of negatives.
        negatives_per_edge: None for as many negatives as forgotten edges, else this share of all edges of the graph.
        negatives_seed: None to follow the attack's seed, else the seed of the negatives.
        folded: whether the headline is max(AUC, 1 - AUC).
        most: at most this many forgotten edges, drawn at random; None for all.
    """

    distance: str = "cosine"
    query: str = "retained"
    negatives: str = "uniform"
    negatives_per_edge: float | None = None
    negatives_seed: int | None = None
    folded: bool = False
    most: int | None = None

    def __post_init__(self):
        check_query(self.query)
        check_most(self.most)
        _ = DISTANCES[self.distance], NEGATIVES[self.negatives]  # unknown names are errors
        if self.negatives_per_edge is not None and not self.negatives_per_edge > 0.0:
            raise InputError(f"negatives_per_edge={self.negatives_per_edge} must be positive, or None for one to one")


def posteriors(model: Backbone, graph: Data) -> np.ndarray:
    """Class probabilities of all nodes, float64 (n, classes), computed from the logits in float64."""
    return torch.softmax(predict(model, graph).double(), dim=1).numpy()


def link_stealing(
    model: Backbone, data: Data, forget: torch.Tensor, settings: LinkStealingSettings, seed: int, preset: str
) -> AttackResult:
    """Score the forgotten edges and the negatives by the likeness of their endpoints' posteriors.

    Extras: ``auc_<distance>`` (signed) and ``folded_auc_<distance>`` for all eight distances.
    """
    attacked = attacked_edges(data, forget, settings.most, seed)
    count = attacked.shape[1]
    if settings.negatives_per_edge is not None:
        count = max(1, int(settings.negatives_per_edge * (data.edge_index.shape[1] // 2)))
    negatives_seed = seed if settings.negatives_seed is None else settings.negatives_seed
    pairs, labels = candidate_pairs(data, forget, attacked, settings.negatives, count, negatives_seed)

    posterior = posteriors(model, query_graph(data, forget, settings.query, seed))
    p, q = posterior[pairs[0]], posterior[pairs[1]]
    scores = {name: -distance(p, q) for name, distance in DISTANCES.items()}
    areas = {name: auc(values, labels) for name, values in scores.items()}
    area = areas[settings.distance]
    return AttackResult(
        "link_stealing",
        preset,
        pairs.numpy(),
        scores[settings.distance],
        labels,
        settings.query,
        headline=max(area, 1.0 - area) if settings.folded else area,
        extras={f"auc_{name}": value for name, value in areas.items()}
        | {f"folded_auc_{name}": max(value, 1.0 - value) for name, value in areas.items()},
    )


LINK_STEALING = Attack(
    link_stealing,
    {
        "corrected": LinkStealingSettings(),
        "published": LinkStealingSettings(negatives_per_edge=0.2, negatives_seed=1, folded=True),
    },
    "edges",
    "He, Jia, Backes, Gong, Zhang, USENIX Security 2021",
)
