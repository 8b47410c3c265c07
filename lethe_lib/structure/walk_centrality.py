"""WalkCentrality: how many walks of k steps use an edge, in the weights of a graph convolution.

    P = D~^-1/2 (A + I) D~^-1/2,   D~ = D + I
    r_0 = 1,  r_{t+1} = P r_t                              (k - 1 sparse products)
    WC(i, j) = sum_{t < k} r_t[i] r_{k-1-t}[j]             (one pass over the edges)

``r_t[i]`` is the total weight of walks of t steps that end in i, so each term counts the walks of k steps whose step
t + 1 crosses the edge; the edge's own weight is left out. The sum is symmetric in (i, j), and it is the derivative of
1' P^k 1 with respect to the entry (i, j) of P. Time O(k |E|), memory O(k |V| + |E|), float64.

Measure of the Lethe benchmark ("Lethe: Link Inference Attacks For Evaluation of Edge Unlearning Methods", 2026), which
uses k = 2: the score is then r_1[i] + r_1[j]. Self-loops belong to P, as in the GCN whose depth k is meant: with them
the forget sets drawn from the score have the reachability that is known of the benchmark's, without them they do not.
"""

import numba
import numpy as np
from torch_geometric.data import Data

from lethe_lib.data import check_canonical
from lethe_lib.errors import InputError


def walk_centrality(data: Data, k: int = 2) -> np.ndarray:
    """WalkCentrality of every edge (module docstring).

    Args:
        data: a canonical graph.
        k: number of steps, at least 1; the depth of the model in mind. k = 1 gives 1 for every edge.

    Returns:
        (m,) float64, positive, in the order of ``undirected_edges(data)``. Higher: more walks pass through the edge.

    Raises:
        InputError: for k below 1 or no integer.
    """
    _check_steps(data, k)
    pointers, columns = _pattern(data)
    scores = np.ones(len(columns) // 2)
    if k > 1:
        _sum_over_edges(pointers, columns, _later_walks(pointers, columns, k), scores)
    return scores


def walk_weights(data: Data, k: int = 2) -> np.ndarray:
    """The node vectors r_0, ..., r_{k-1} of the module docstring, as the columns of an (n, k) float64 array."""
    _check_steps(data, k)
    return np.hstack([np.ones((data.num_nodes, 1)), _later_walks(*_pattern(data), k)])


def _check_steps(data: Data, k: int) -> None:
    check_canonical(data)
    if isinstance(k, bool) or not isinstance(k, int | np.integer) or k < 1:
        raise InputError(f"k is {k!r}: the number of steps must be an integer of at least 1")


def _pattern(data: Data) -> tuple[np.ndarray, np.ndarray]:
    """Row pointers and column indices of A. Edges are sorted, so ``edge_index`` itself is the matrix, without a copy."""
    rows, columns = data.edge_index.numpy()
    pointers = np.zeros(data.num_nodes + 1, np.int64)
    np.cumsum(np.bincount(rows, minlength=data.num_nodes), out=pointers[1:])
    # Unsigned numbers: compiled code then need not look for negative indices, which count from the end.
    return pointers.view(np.uint64), columns.view(np.uint64)


def _later_walks(pointers: np.ndarray, columns: np.ndarray, k: int) -> np.ndarray:
    """r_1, ..., r_{k-1} as the columns of an (n, k - 1) array."""
    scale = 1.0 / np.sqrt(np.diff(pointers) + 1.0)
    step, sums = np.ones(len(scale)), np.empty(len(scale))
    walks = np.empty((len(scale), k - 1))
    for t in range(k - 1):
        scaled = scale * step  # P = S (A + I) S: two scalings of a vector spare the matrix its values
        _sum_over_neighbours(pointers, columns, scaled, sums)
        step = scale * (sums + scaled)
        walks[:, t] = step
    return walks


@numba.njit(cache=True)
def _sum_over_neighbours(pointers, columns, vector, sums):
    one, two, three, four = np.uint64(1), np.uint64(2), np.uint64(3), np.uint64(4)
    for i in range(len(sums)):
        q, end = pointers[i], pointers[i + 1]
        a = b = c = d = 0.0  # four sums that do not wait for one another
        while q + four <= end:
            a += vector[columns[q]]
            b += vector[columns[q + one]]
            c += vector[columns[q + two]]
            d += vector[columns[q + three]]
            q += four
        while q < end:
            a += vector[columns[q]]
            q += one
        sums[i] = (a + b) + (c + d)


@numba.njit(cache=True)
def _sum_over_edges(pointers, columns, walks, scores):
    """The sum over t for every edge i < j. As r_0 = 1, its first and last terms are r_{k-1}[j] and r_{k-1}[i]."""
    one, last, edge = np.uint64(1), walks.shape[1] - 1, 0
    mirrored = np.empty(last)
    for i in range(len(pointers) - 1):
        for t in range(last):
            mirrored[t] = walks[i, last - 1 - t]
        q, end = pointers[i], pointers[i + 1]
        while q < end and columns[q] < np.uint64(i):
            q += one
        while q < end:
            j = columns[q]
            total = walks[i, last] + walks[j, last]
            for t in range(last):
                total += mirrored[t] * walks[j, t]
            scores[edge] = total
            edge += 1
            q += one
