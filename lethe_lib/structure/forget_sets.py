"""Forget sets: which edges a request asks to forget, drawn so that requests differ in kind and not in size.

    budget = int(fraction * m)
    low, high          the budget edges with the lowest / highest WalkCentrality, ties by (u, v)
    random             uniform
    community          edges inside the smallest label class that funds the budget
    community_louvain  edges inside the smallest Louvain community that funds the budget
    temporal           the most recent edges, or edges of one year; an edge is as old as its younger endpoint

Sets of the Lethe benchmark ("Lethe: Link Inference Attacks For Evaluation of Edge Unlearning Methods", 2026), whose
community set is a label cohort; Louvain communities (Blondel, Guillaume, Lambiotte, Lefebvre, "Fast unfolding of
communities in large networks", 2008) are our alternative.
"""

from collections.abc import Callable
from dataclasses import dataclass

import networkx
import numpy as np
import torch
from torch_geometric.data import Data

from lethe_lib.data import undirected_edges
from lethe_lib.errors import InputError
from lethe_lib.registry import Registry
from lethe_lib.seeding import derive_seed, numpy_generator
from lethe_lib.structure.walk_centrality import walk_centrality

COHORT_TOLERANCE = 0.01
"""A cohort funds a budget when it has at least 1 - 0.01 of it; one smaller than the budget is taken whole."""


@dataclass(frozen=True)
class Draw:
    """What the rule of a forget set may use: the budget in edges, the seed, k of WalkCentrality, and a year."""

    budget: int
    seed: int = 0
    k: int = 2
    year: int | None = None


Rule = Callable[[Data, Draw], np.ndarray]


def forget_set(
    data: Data, kind: str, fraction: float = 0.05, seed: int = 0, k: int = 2, year: int | None = None
) -> torch.Tensor:
    """The edges of one forget set (module docstring).

    Args:
        data: a canonical graph; ``node_year`` is needed for ``temporal``.
        kind: a name in ``FORGET_SETS``.
        fraction: share of all undirected edges, in (0, 1); it must come to at least one edge and leave one.
        seed: used by every kind but ``low`` and ``high``.
        k: steps of WalkCentrality, for ``low`` and ``high``.
        year: for ``temporal`` only: draw from the edges of this year. The default takes the most recent years whole,
            and of the last year that is needed a random part.

    Returns:
        int64 (2, budget), i < j, sorted lexicographically (not by rank). A cohort may give up to 1 % fewer edges.

    Raises:
        InputError: for an unknown kind, a fraction out of range, or a kind that the graph cannot fund.
    """
    rule = FORGET_SETS[kind]
    edges = undirected_edges(data)
    if isinstance(fraction, bool) or not isinstance(fraction, int | float) or not 0 < fraction < 1:
        raise InputError(f"fraction is {fraction!r}: a share of the edges between 0 and 1 needed, both excluded")
    budget = int(fraction * edges.shape[1])
    if budget < 1:
        raise InputError(f"fraction {fraction} of the {edges.shape[1]} edges of {data.name!r} is less than one edge")
    if year is not None and kind != "temporal":
        raise InputError(f"year is given, but the forget set {kind!r} has no use for it: only temporal has")
    positions = rule(data, Draw(budget, seed, k, year))
    return edges[:, torch.from_numpy(np.sort(positions))]


def _by_centrality(data: Data, draw: Draw) -> np.ndarray:
    return np.argsort(walk_centrality(data, draw.k), kind="stable")  # edges are sorted, so ties fall by (u, v)


def _low(data: Data, draw: Draw) -> np.ndarray:
    return _by_centrality(data, draw)[: draw.budget]


def _high(data: Data, draw: Draw) -> np.ndarray:
    return _by_centrality(data, draw)[-draw.budget :]


def _random(data: Data, draw: Draw) -> np.ndarray:
    m = data.edge_index.shape[1] // 2
    return numpy_generator(draw.seed, "forget_set", "random").choice(m, draw.budget, replace=False)


def _community(data: Data, draw: Draw) -> np.ndarray:
    return _cohort(data, data.y.numpy(), draw, "label class")


def _community_louvain(data: Data, draw: Draw) -> np.ndarray:
    graph = networkx.Graph()
    graph.add_nodes_from(range(data.num_nodes))
    graph.add_edges_from(undirected_edges(data).T.tolist())
    seed = derive_seed(draw.seed, "forget_set", "louvain")
    label = np.empty(data.num_nodes, np.int64)
    for number, members in enumerate(networkx.community.louvain_communities(graph, seed=seed)):
        label[list(members)] = number
    return _cohort(data, label, draw, "Louvain community")


def _cohort(data: Data, label: np.ndarray, draw: Draw, what: str) -> np.ndarray:
    """Edges inside the group of nodes that has the fewest edges among those with enough of them."""
    rows, columns = undirected_edges(data).numpy()
    inside = np.where(label[rows] == label[columns], label[rows], -1)
    sizes = np.bincount(inside[inside >= 0], minlength=label.max() + 1)
    enough = sizes >= (1 - COHORT_TOLERANCE) * draw.budget
    if not enough.any():
        raise InputError(
            f"no {what} of {data.name!r} has {draw.budget} edges inside it (the largest has {sizes.max()}): "
            "choose a smaller fraction"
        )
    group = np.argmin(np.where(enough, sizes, np.iinfo(sizes.dtype).max))
    members = np.flatnonzero(inside == group)
    return _sample(members, draw, "community")


def _temporal(data: Data, draw: Draw) -> np.ndarray:
    if "node_year" not in data:
        raise InputError(f"{data.name!r} has no node_year, which a temporal forget set needs: choose another kind")
    rows, columns = undirected_edges(data).numpy()
    year = data.node_year.numpy()
    time = np.maximum(year[rows], year[columns])
    if draw.year is not None:
        eligible = np.flatnonzero(time == draw.year)
        if len(eligible) < draw.budget:
            raise InputError(
                f"{data.name!r} has {len(eligible)} edges of {draw.year}, fewer than the {draw.budget} asked for: "
                "choose a smaller fraction or another year"
            )
        return _sample(eligible, draw, "temporal")
    boundary = np.sort(time)[-draw.budget]
    newer = np.flatnonzero(time > boundary)
    rest = Draw(draw.budget - len(newer), draw.seed)
    return np.concatenate([newer, _sample(np.flatnonzero(time == boundary), rest, "temporal")])


def _sample(positions: np.ndarray, draw: Draw, purpose: str) -> np.ndarray:
    if len(positions) <= draw.budget:
        return positions
    return numpy_generator(draw.seed, "forget_set", purpose).choice(positions, draw.budget, replace=False)


FORGET_SETS: Registry = Registry(
    "forget set",
    {
        "low": _low,
        "high": _high,
        "random": _random,
        "community": _community,
        "community_louvain": _community_louvain,
        "temporal": _temporal,
    },
)
"""Kind -> rule, a function of the graph and a ``Draw`` that returns distinct positions in ``undirected_edges``."""
