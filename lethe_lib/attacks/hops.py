"""How many hops apart the nodes of a pair are, up to three: what separates structure from memory.

    1, 2, 3    length of the shortest path
    BEYOND     longer, or there is none

A network of two layers moves nothing between nodes more than two hops apart, so in which of these classes a pair falls
decides much of what attacks on a graph see, whatever was learned on it.
"""

import numpy as np
import scipy.sparse
import torch
from torch_geometric.data import Data

from lethe_lib.attacks.influence import chunks, reached, step
from lethe_lib.data import adjacency

BEYOND = 4
SOURCES = 256
"""Sources of one breadth-first search at a time, which bounds the memory to this many rows of the graph's size."""


def hop_distances(data: Data, pairs: torch.Tensor) -> np.ndarray:
    """Hop distance of every pair: walks from both ends meet in the middle, by products of sparse rows.

    Args:
        data: a canonical graph.
        pairs: int64 (2, n), two different nodes each, in any orientation.

    Returns:
        int64 (n,), 1 to 3, or ``BEYOND``.

    Example:
        >>> from lethe_lib.data import load_graph, undirected_edges
        >>> graph = load_graph("synthetic-tiny")
        >>> hop_distances(graph, undirected_edges(graph)).max()
        1
    """
    matrix = scipy.sparse.csr_array(adjacency(data))
    u, v = pairs.numpy()
    bound = reached(matrix, 2)
    u, v = (
        np.where(bound[u] <= bound[v], u, v),
        np.where(bound[u] <= bound[v], v, u),
    )  # the long walk from the cheap end
    distance = np.full(len(u), BEYOND, dtype=np.int64)
    for chunk in chunks(16 * (bound[u] + np.diff(matrix.indptr)[v])):
        for hops in (3, 2, 1):
            walks = step(matrix, u[chunk], hops - 1).multiply(matrix[v[chunk]]).sum(axis=1)
            distance[chunk][np.asarray(walks) > 0] = hops
    return distance


def hops_from(matrix: scipy.sparse.csr_array, sources: np.ndarray) -> np.ndarray:
    """Hop distance from a few nodes to all nodes, by three products with the adjacency matrix.

    Args:
        matrix: symmetric adjacency of ones, (n, n).
        sources: nodes, (s,); keep s below a few hundred.

    Returns:
        int8 (s, n): 0 at the source itself, 1 to 3, or ``BEYOND``.
    """
    start = np.zeros((matrix.shape[0], len(sources)), dtype=np.float32)
    start[sources, np.arange(len(sources))] = 1.0
    walks, distance = start, np.full(start.shape, BEYOND, dtype=np.int8)
    distance[start > 0] = 0
    for hops in (1, 2, 3):
        walks = (matrix @ walks > 0).astype(np.float32)
        distance[(walks > 0) & (distance == BEYOND)] = hops
    return distance.T
