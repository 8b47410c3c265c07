"""TrendAttack: are the ends of an unlearned edge less sure of themselves than their neighbours are?

    shadow: halve the retained graph, train a model on one half, let the same method unlearn some edges of it
    tau_0(v) = largest class probability of v,  tau_{k+1}(v) = mean of tau_k over v and its neighbours   (query graph)
    features of a pair = distances of the posteriors, and for both ends the bits tau_{k+1} > tau_k, k = 0, 1
    fit a classifier on the shadow: its unlearned edges and as many others against pairs that were never edges
    score(u, v) = log odds of the classifier, mean over both orders of the ends; on the target model

Zhang, Wang, Zhang, Liu, Wang, "Unlearning inversion attacks for graph neural networks", WSDM 2026, arXiv:2506.00808: next
to unlearned edges models lose confidence, and the trend of confidence around a node betrays it. The attacker knows the
retained graph, features and labels of one half, the architecture, the training schedule and the method; the settings name
its guess of these, since a released model does not tell. No forgotten edge is in the shadow graph; the shadow's non-edges
are drawn from all pairs that it does not join, so that, rarely, a forgotten edge is among them.

Differences: the graph is halved by the signs of the Fiedler vector of its normalised Laplacian, cut at the median (METIS is
not a dependency); the target is trained on the whole graph and not on the other half; the mean over neighbours is the plain
one; no reference network without a graph (the query ``none`` shows what that would know).
"""

import warnings
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import scipy.sparse
import torch
from scipy.sparse.linalg import lobpcg
from torch_geometric.data import Data

from lethe_lib.attacks.auc import auc
from lethe_lib.attacks.link_stealing import DISTANCES, posteriors
from lethe_lib.attacks.link_stealing_supervised import labelled_pairs, log_odds, pair_classifier
from lethe_lib.attacks.pairs import (
    NEGATIVES,
    ByContent,
    attacked_edges,
    by_content,
    candidate_pairs,
    check_most,
    check_query,
    query_graph,
)
from lethe_lib.attacks.result import Attack, AttackResult
from lethe_lib.data import adjacency, canonical, undirected_edges
from lethe_lib.errors import InputError
from lethe_lib.models import BACKBONES, Backbone, preset_of, scipy_propagation, train
from lethe_lib.registry import of_preset
from lethe_lib.seeding import derive_seed, numpy_generator
from lethe_lib.structure import forget_set, remove_edges
from lethe_lib.unlearning import UNLEARNERS, unlearn

HOPS = 2
"""Steps of averaging, as in the source."""

SMALLEST = 10
"""Nodes that a graph needs to be halved."""


@dataclass(frozen=True)
class TrendSettings:
    """Settings.

    Attributes:
        query: graph that both models are asked on, a name of ``pairs.QUERIES``.
        negatives: kind of negatives, as many as forgotten edges; the shadow's non-edges are uniform.
        most: at most this many forgotten edges, drawn at random; None for all.
        method, method_preset: the unlearner of the shadow model, as the attacker guesses it.
        backbone, training: architecture and training preset of the shadow model, as the attacker guesses them.
        fraction: share of the shadow's edges that it unlearns, drawn at random.
        trends: use the bits of the trend; else the distances alone.
    """

    query: str = "retained"
    negatives: str = "uniform"
    most: int | None = None
    method: str = "utu"
    method_preset: str = "corrected"
    backbone: str = "gcn"
    training: str = "corrected"
    fraction: float = 0.05
    trends: bool = True

    def __post_init__(self):
        check_query(self.query)
        check_most(self.most)
        _ = NEGATIVES[self.negatives], BACKBONES[self.backbone], preset_of(self.training)  # unknown names are errors
        of_preset(self.method, UNLEARNERS[self.method].settings, self.method_preset, {})  # an unknown one is an error
        if not 0.0 < self.fraction < 1.0:
            raise InputError(f"fraction={self.fraction} must lie between 0 and 1")


@dataclass(frozen=True)
class Shadow:
    """The attacker's own unlearned model: its graph, the edges it unlearned, and the model after it."""

    data: Data
    forget: torch.Tensor
    model: Backbone


def trend_attack(
    model: Backbone, data: Data, forget: torch.Tensor, settings: TrendSettings, seed: int, preset: str
) -> AttackResult:
    """Learn on a shadow model what unlearned edges look like, and score the target's pairs.

    Extras: ``auc_members``, the AUC of other edges of the retained graph against the same negatives; ``auc_all``, of
    forgotten and other edges together; ``auc_shadow``, the fit on the shadow's own pairs; ``shadow_nodes``.
    """
    attacked = attacked_edges(data, forget, settings.most, seed)
    pairs, labels = candidate_pairs(data, forget, attacked, settings.negatives, attacked.shape[1], seed)
    shadow = shadow_model(data, forget, settings, seed)

    given, known = shadow_pairs(shadow, seed)
    classifier = pair_classifier(0, derive_seed(seed, "trend attack") % 2**32)
    asked = query_graph(shadow.data, shadow.forget, settings.query, seed)
    features = pair_and_trends(posteriors(shadow.model, asked), asked, given, settings.trends)
    mirrored = pair_and_trends(posteriors(shadow.model, asked), asked, given.flip(0), settings.trends)
    classifier.fit(np.concatenate([features, mirrored]), np.tile(known, 2))

    graph = query_graph(data, forget, settings.query, seed)
    rows = posteriors(model, graph)
    others, is_edge = labelled_pairs(data, forget, pairs, int(labels.sum()), seed)
    others = others[:, torch.from_numpy(is_edge)]

    def scored(rows: np.ndarray, graph: Data, pairs: torch.Tensor) -> np.ndarray:
        both = [log_odds(classifier, pair_and_trends(rows, graph, p, settings.trends)) for p in (pairs, pairs.flip(0))]
        return (both[0] + both[1]) / 2

    scores, of_others = scored(rows, graph, pairs), scored(rows, graph, others)
    of_shadow = scored(posteriors(shadow.model, asked), asked, given)
    against = np.concatenate([of_others, scores[~labels]])
    extras = {
        "auc_members": auc(against, np.arange(len(against)) < len(of_others)),
        "auc_all": auc(np.concatenate([of_others, scores]), np.concatenate([np.ones(len(of_others), bool), labels])),
        "auc_shadow": auc(of_shadow, known),
        "shadow_nodes": float(shadow.data.num_nodes),
    }
    return AttackResult("trend_attack", preset, pairs.numpy(), scores, labels, settings.query, extras=extras)


def confidence_trends(rows: np.ndarray, graph: Data) -> np.ndarray:
    """Whether the mean confidence around a node rises from one hop to the next.

    Args:
        rows: posteriors, (n, classes). graph: the query graph.

    Returns:
        float64 (n, 2) of zeros and ones: tau_1 > tau_0, tau_2 > tau_1. A node without neighbours has zeros.
    """
    average = scipy_propagation(graph, "row")
    levels = [rows.max(axis=1)]
    for _ in range(HOPS):
        levels.append(average @ levels[-1])
    margin = 1e-12  # equal levels must not differ by rounding
    return np.stack([after > before + margin for before, after in zip(levels[:-1], levels[1:])], axis=1).astype(float)


def pair_and_trends(rows: np.ndarray, graph: Data, pairs: torch.Tensor, trends: bool = True) -> np.ndarray:
    """Eight distances of each pair, then the bits of its first and of its second end; swapping ends swaps the bits."""
    first, second = pairs.numpy()
    p, q = rows[first], rows[second]
    features = np.stack([distance(p, q) for distance in DISTANCES.values()], axis=1)
    if not trends:
        return features
    bits = confidence_trends(rows, graph)
    return np.hstack([features, bits[first], bits[second]])


def halves(data: Data, seed: int = 0) -> np.ndarray:
    """A balanced split of the nodes that cuts few edges: the Fiedler vector of the normalised Laplacian, at its median.

    Args:
        data: a canonical graph; it need not be connected. seed: of the iteration's start.

    Returns:
        bool (n,), true for one half; the halves differ by at most one node.

    Raises:
        InputError: fewer than ``SMALLEST`` nodes.
    """
    matrix = scipy.sparse.csr_array(adjacency(data))
    n = data.num_nodes
    if n < SMALLEST:
        raise InputError(f"a graph of {n} nodes is too small to be halved for a shadow model: {SMALLEST} are needed")
    scale = 1.0 / np.sqrt(np.maximum(np.diff(matrix.indptr), 1))
    laplacian = scipy.sparse.eye_array(n, format="csr") - (
        scipy.sparse.diags_array(scale) @ matrix @ scipy.sparse.diags_array(scale)
    )
    constant = np.sqrt(np.diff(matrix.indptr) + 1e-9)[:, None]
    start = numpy_generator(seed, "fiedler vector").normal(size=(n, 1))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", category=UserWarning)  # a rough vector is enough: it is cut at its median
        _, vector = lobpcg(laplacian, start, Y=constant / np.linalg.norm(constant), largest=False, tol=1e-3, maxiter=60)
    order = np.argsort(vector[:, 0] * scale, kind="stable")
    half = np.zeros(n, dtype=bool)
    half[order[: n // 2]] = True
    return half


def shadow_model(data: Data, forget: torch.Tensor, settings: TrendSettings, seed: int) -> Shadow:
    """Train and unlearn on one half of the retained graph; the last few are remembered."""
    retained = remove_edges(data, forget)
    how = (settings.backbone, settings.training, settings.method, settings.method_preset, settings.fraction)
    return _unlearned_half(by_content(retained), *how, seed)


def shadow_pairs(shadow: Shadow, seed: int) -> tuple[torch.Tensor, np.ndarray]:
    """Unlearned edges of the shadow, as many others, and as many non-edges as both together, with labels."""
    count = shadow.forget.shape[1]
    others, is_edge = labelled_pairs(shadow.data, shadow.forget, shadow.forget, 2 * count, seed)
    edges, rest = others[:, is_edge], others[:, ~is_edge]
    edges = edges[:, numpy_generator(seed, "shadow edges").permutation(edges.shape[1])[:count]]
    given = torch.cat([shadow.forget, edges, rest[:, : count + edges.shape[1]]], dim=1)
    return given, np.arange(given.shape[1]) < count + edges.shape[1]


def half_graph(retained: Data, seed: int) -> Data:
    """The subgraph of one half of the nodes, nodes numbered anew."""
    nodes = torch.from_numpy(np.flatnonzero(halves(retained, seed)))
    place = torch.full((retained.num_nodes,), -1, dtype=torch.int64)
    place[nodes] = torch.arange(len(nodes))
    edges = place[undirected_edges(retained)]
    edges = edges[:, (edges >= 0).all(dim=0)]
    x = retained.x if retained.x.layout == torch.strided else retained.x.to_dense()
    x = x[nodes] if retained.x.layout == torch.strided else x[nodes].to_sparse_csr()
    return canonical(Data(x=x, y=retained.y[nodes], edge_index=edges), f"half of {retained.name}", retained.num_classes)


@lru_cache(maxsize=4)
def _trained_half(key: ByContent, backbone: str, training: str, seed: int) -> tuple[Data, Backbone]:
    half = half_graph(key.value[0], seed)
    return half, train(half, backbone, derive_seed(seed, "shadow") % 2**31, preset=training)


@lru_cache(maxsize=4)
def _unlearned_half(
    key: ByContent, backbone: str, training: str, method: str, method_preset: str, fraction: float, seed: int
) -> Shadow:
    half, original = _trained_half(key, backbone, training, seed)
    forget = forget_set(half, "random", fraction, derive_seed(seed, "shadow request") % 2**31)
    return Shadow(half, forget, unlearn(method, original, half, forget, seed, method_preset).model)


TREND_ATTACK = Attack(
    trend_attack,
    {"corrected": TrendSettings()},
    "edges",
    "Zhang, Wang, Zhang, Liu, Wang, WSDM 2026",
)
