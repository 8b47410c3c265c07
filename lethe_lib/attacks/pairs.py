"""The question that attacks on edges share: which pairs are candidates, and on which graph the model is asked.

    positives = forgotten edges
    negatives = pairs that were never edges of the original graph
    query graph = what the attacker knows of the graph, and hands to the model together with the features

The attacker's knowledge is a ladder: ``none`` (no edge), ``partial`` (half of the retained edges, drawn at random),
``retained`` (all of them: the original graph without the forgotten edges), ``original`` (the full graph, with the
forgotten edges: nothing is left to find out, and the rung shows what an attack scores when the secret lies open).

The negatives come from a generator that depends on the seed, the graph and the forget set alone. Every model, method
and attack therefore faces the same pairs, so differences between them are paired.
"""

import hashlib
from collections.abc import Callable
from functools import lru_cache

import numpy as np
import torch
from torch_geometric.data import Data

from lethe_lib.attacks.matched import matched_non_edges
from lethe_lib.data import undirected_edges, with_edges
from lethe_lib.errors import InputError
from lethe_lib.registry import Registry
from lethe_lib.seeding import numpy_generator
from lethe_lib.structure import remove_edges, sample_non_edges

QUERIES = ("none", "partial", "retained", "original")
KNOWN_SHARE = 0.5
"""Share of the retained edges that the attacker knows under ``partial``."""


def uniform_negatives(
    data: Data, forget: torch.Tensor, attacked: torch.Tensor, count: int, generator: np.random.Generator
) -> tuple[torch.Tensor, np.ndarray]:
    """All non-edges of the original graph alike; every attacked edge stays."""
    return sample_non_edges(data, count, generator), np.ones(attacked.shape[1], dtype=bool)


def matched_negatives(
    data: Data, forget: torch.Tensor, attacked: torch.Tensor, count: int, generator: np.random.Generator
) -> tuple[torch.Tensor, np.ndarray]:
    """One non-edge for every attacked edge, alike in the retained graph; edges without one drop out (see ``matched``)."""
    if count != attacked.shape[1]:
        raise InputError("matched negatives come one to each forgotten edge: leave their number to the attack")
    return matched_non_edges(data, forget, attacked, generator)


NEGATIVES = Registry("kind of negatives", {"uniform": uniform_negatives, "matched": matched_negatives})
"""Name to ``draw(data, forget, attacked, count, generator) -> (pairs (2, m), kept)``, where ``attacked`` (2, k) are those
pairs of the request ``forget`` that are asked about, and ``kept``, bool (k,), says which of them stay candidates."""


def check_query(query: str) -> None:
    """Refuse a query graph that is no name of ``QUERIES``."""
    if query not in QUERIES:
        raise InputError(f"query={query!r} is unknown: choose {' or '.join(QUERIES)}")


class ByContent:
    """A value with a key: two of them are equal when their keys are, so that results can be remembered by content."""

    def __init__(self, value: object, key: object):
        self.value, self.key = value, key

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ByContent) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)


def by_content(data: Data, *pairs: torch.Tensor) -> ByContent:
    """A graph with some pairs, equal to any other with the same content."""
    return ByContent((data, *pairs), (data.content_hash, *(part.numpy().tobytes() for part in pairs)))


def query_graph(data: Data, forget: torch.Tensor, query: str, seed: int = 0) -> Data:
    """The graph that the model is asked on (module docstring); the last few are remembered.

    Args:
        data: the original graph. forget: (2, n) canonical pairs. query: a name of ``QUERIES``.
        seed: seed of the half that is known under ``partial``; the half depends on graph and request too.
    """
    return data if query == "original" else _query_graph(by_content(data, forget), query, seed)


@lru_cache(maxsize=4)
def _query_graph(request: ByContent, query: str, seed: int) -> Data:
    data, forget = request.value
    if query == "none":
        return with_edges(data, data.edge_index[:, :0])
    retained = remove_edges(data, forget)
    if query == "retained":
        return retained
    edges = undirected_edges(retained)
    order = request_generator(seed, "known edges", data, forget).permutation(edges.shape[1])
    return remove_edges(retained, edges[:, np.sort(order[int(KNOWN_SHARE * len(order)) :])])


def attacked_edges(data: Data, forget: torch.Tensor, most: int | None, seed: int) -> torch.Tensor:
    """The forgotten edges that are asked about: all, or ``most`` of them at random, in the order of the request."""
    if most is None or forget.shape[1] <= most:
        return forget
    drawn = request_generator(seed, "forgotten edges to attack", data, forget)
    return forget[:, np.sort(drawn.choice(forget.shape[1], most, replace=False))]


def check_most(most: int | None) -> None:
    """Refuse a largest number of attacked edges below one."""
    if most is not None and most < 1:
        raise InputError(f"most={most} must be at least 1, or None for all forgotten edges")


def request_generator(seed: int, purpose: str, data: Data, forget: torch.Tensor) -> np.random.Generator:
    """A generator that depends on the seed, the purpose, the original graph and the forget set, on nothing else."""
    digest = hashlib.sha256(forget.numpy().tobytes()).hexdigest()
    return numpy_generator(seed, purpose, data.content_hash, digest)


def candidate_pairs(
    data: Data, forget: torch.Tensor, attacked: torch.Tensor, negatives: str, count: int, seed: int
) -> tuple[torch.Tensor, np.ndarray]:
    """Forgotten edges followed by negatives; the last few answers are remembered.

    Args:
        data: the original graph; a forgotten edge is therefore never a negative.
        forget: (2, n) canonical pairs, the request. attacked: (2, k) of them.
        negatives: a name of ``NEGATIVES``.
        count: number of negatives that is asked for.
        seed: of the negatives, which depend on it, the graph and the request alone.

    Returns:
        int64 (2, m) pairs and bool (m,) labels, true for forgotten edges.
    """
    pairs, labels = _candidate_pairs(by_content(data, forget, attacked), NEGATIVES[negatives], count, seed)
    return pairs.clone(), labels.copy()


@lru_cache(maxsize=8)
def _candidate_pairs(request: ByContent, draw: Callable, count: int, seed: int) -> tuple[torch.Tensor, np.ndarray]:
    data, forget, attacked = request.value
    drawn, kept = draw(data, forget, attacked, count, request_generator(seed, "non-edges", data, forget))
    attacked = attacked[:, torch.from_numpy(kept)]
    labels = np.arange(attacked.shape[1] + drawn.shape[1]) < attacked.shape[1]
    return torch.cat([attacked, drawn], dim=1), labels
