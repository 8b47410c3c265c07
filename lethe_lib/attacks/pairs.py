"""The question that attacks on edges share: which pairs are candidates, and on which graph the model is asked.

    positives = forgotten edges
    negatives = pairs that were never edges of the original graph
    query graph = the original graph without the forgotten edges, or (control ``original``) with them

The negatives come from a generator that depends on the seed, the graph and the forget set alone. Every model, method
and attack therefore faces the same pairs, so differences between them are paired.
"""

import hashlib

import numpy as np
import torch
from torch_geometric.data import Data

from lethe_lib.errors import InputError
from lethe_lib.registry import Registry
from lethe_lib.seeding import numpy_generator
from lethe_lib.structure import remove_edges, sample_non_edges

QUERIES = ("retained", "original")

NEGATIVES = Registry("kind of negatives", {"uniform": sample_non_edges})
"""Name to ``draw(data, count, generator) -> (2, count)``; ``uniform``: all non-edges of the original graph alike."""


def check_query(query: str) -> None:
    """Refuse a query graph that is neither ``retained`` nor ``original``."""
    if query not in QUERIES:
        raise InputError(f"query={query!r} is unknown: choose {' or '.join(QUERIES)}")


def query_graph(data: Data, forget: torch.Tensor, query: str) -> Data:
    """The graph that the model is asked on: ``data`` itself for ``original``, without the pairs for ``retained``."""
    return data if query == "original" else remove_edges(data, forget)


def request_generator(seed: int, purpose: str, data: Data, forget: torch.Tensor) -> np.random.Generator:
    """A generator that depends on the seed, the purpose, the original graph and the forget set, on nothing else."""
    digest = hashlib.sha256(forget.numpy().tobytes()).hexdigest()
    return numpy_generator(seed, purpose, data.content_hash, digest)


def candidate_pairs(
    data: Data, forgotten: torch.Tensor, negatives: str, count: int, generator: np.random.Generator
) -> tuple[torch.Tensor, np.ndarray]:
    """Forgotten edges followed by ``count`` negatives.

    Args:
        data: the original graph; a forgotten edge is therefore never a negative.
        forgotten: (2, n) canonical pairs.
        negatives: a name of ``NEGATIVES``.
        count: number of negatives.
        generator: source of the negatives.

    Returns:
        int64 (2, n + count) pairs and bool (n + count,) labels, true for forgotten edges.
    """
    drawn = NEGATIVES[negatives](data, count, generator)
    labels = np.arange(forgotten.shape[1] + drawn.shape[1]) < forgotten.shape[1]
    return torch.cat([forgotten, drawn], dim=1), labels
