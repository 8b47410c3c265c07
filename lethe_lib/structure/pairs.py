"""Node pairs as requests: the checks every request passes, and uniform pairs that are not edges.

Pairs are int64 tensors of shape (2, n); (i, j) and (j, i) are the same pair.
"""

import numpy as np
import torch
from torch_geometric.data import Data

from lethe_lib.data import undirected_edges
from lethe_lib.errors import InputError


def check_pairs(data: Data, pairs: object) -> torch.Tensor:
    """A request for edges in canonical form.

    Args:
        data: a canonical graph.
        pairs: edges of the graph, anything that becomes an integer array of shape (2, n), in any orientation and order;
            n may be 0.

    Returns:
        int64 (2, n), i < j, sorted lexicographically.

    Raises:
        InputError: naming the first self-loop, duplicate, node out of range or pair that is not an edge.
    """
    return undirected_edges(data)[:, np.sort(edge_positions(data, pairs))]


def edge_positions(data: Data, pairs: object) -> np.ndarray:
    """Where the pairs stand in ``undirected_edges(data)``: NumPy int64 (n,), in the order given.

    Takes and refuses the same pairs as :func:`check_pairs`. Use it to index scores, such as those of
    ``walk_centrality``. (A NumPy array indexed by a torch tensor of length 1 would give a number, not an array.)
    """
    keys = _keys(data, ordered_pairs(data, pairs))
    edges = _keys(data, undirected_edges(data))
    positions = torch.searchsorted(edges, keys)
    found = positions < len(edges)
    found[found.clone()] = edges[positions[found]] == keys[found]
    if not bool(found.all()):
        culprit = int(keys[~found][0])
        pair = (culprit // data.num_nodes, culprit % data.num_nodes)
        raise InputError(f"the pair {pair} is not an edge of {data.name!r} ({int((~found).sum())} such pairs)")
    unique, counts = keys.unique(return_counts=True)
    if len(unique) < len(keys):
        culprit = int(unique[counts > 1][0])
        pair = (culprit // data.num_nodes, culprit % data.num_nodes)
        raise InputError(f"the pair {pair} occurs more than once: ask for every edge once, in one direction")
    return positions.numpy()


def ordered_pairs(data: Data, pairs: object) -> torch.Tensor:
    """Pairs of distinct nodes, edges or not, as int64 (2, n) with i < j, in the order given.

    Raises:
        InputError: for another shape or type, a self-loop or a node out of range.
    """
    try:
        pairs = torch.as_tensor(pairs)
    except (TypeError, ValueError, RuntimeError) as error:
        raise InputError(f"pairs are no array of shape (2, n): {error}") from error
    if pairs.numel() == 0:
        return torch.empty(2, 0, dtype=torch.int64)
    if pairs.dim() != 2 or pairs.shape[0] != 2:
        raise InputError(f"pairs have shape {tuple(pairs.shape)}: (2, n) needed")
    if pairs.is_floating_point() or pairs.is_complex() or pairs.dtype == torch.bool:
        raise InputError(f"pairs have type {pairs.dtype}: integers needed")
    pairs = pairs.detach().cpu().to(torch.int64)
    low, high = pairs.amin(0), pairs.amax(0)
    if int(low.min()) < 0 or int(high.max()) >= data.num_nodes:
        culprit = int(low.min()) if int(low.min()) < 0 else int(high.max())
        raise InputError(f"a pair names the node {culprit}, but nodes are 0 to {data.num_nodes - 1}")
    if bool((low == high).any()):
        node = int(low[low == high][0])
        raise InputError(f"the pair ({node}, {node}) is a self-loop: a pair joins two different nodes")
    return torch.stack([low, high])


def sample_non_edges(data: Data, count: int, generator: np.random.Generator) -> torch.Tensor:
    """Uniform node pairs that are not edges, without replacement and without rejection.

    Pairs i < j are numbered in lexicographic order; the r-th non-edge is found from r by a binary search in the numbers
    of the edges, each lowered by the count of edges before it.

    Args:
        data: a canonical graph.
        count: how many pairs.
        generator: source of randomness.

    Returns:
        int64 (2, count), i < j, in random order, so that every prefix is itself a uniform sample.

    Raises:
        InputError: when there are fewer than ``count`` non-edges.
    """
    if not isinstance(generator, np.random.Generator):
        raise InputError(
            f"generator is a {type(generator).__name__}: a numpy Generator needed, as from numpy_generator"
        )
    n, (rows, columns) = data.num_nodes, undirected_edges(data).numpy()
    starts = np.arange(n) * (2 * n - np.arange(n) - 1) // 2  # number of the pair (i, i + 1)
    free = n * (n - 1) // 2 - len(rows)
    if isinstance(count, bool) or not isinstance(count, int | np.integer) or not 0 <= count <= free:
        raise InputError(f"{count!r} non-edges were asked for: {data.name!r} has {free}, ask for an integer up to that")
    ranks = generator.choice(free, count, replace=False)
    free_before = starts[rows] + columns - rows - 1 - np.arange(len(rows))
    numbers = ranks + np.searchsorted(free_before, ranks, side="right")
    i = np.searchsorted(starts[: n - 1], numbers, side="right") - 1
    j = numbers - starts[i] + i + 1
    return torch.from_numpy(np.stack([i, j]).astype(np.int64))


def _keys(data: Data, pairs: torch.Tensor) -> torch.Tensor:
    return pairs[0] * data.num_nodes + pairs[1]
