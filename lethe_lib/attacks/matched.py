"""Matched negatives: for every forgotten edge a pair that was never an edge and that structure cannot tell from it.

    for each forgotten edge, in random order of its ends:
        keep one end; replace the other by a node that has, in the retained graph,
            the same hop distance from the kept end (2, 3 or more), and the same bucket of degrees,
            and the same label
        not an edge of the original graph, and not chosen before
    if no such node exists, keep the other end; if there is none either, the forgotten edge is left out

Both pairs then have equal hop class, degree buckets and labels at both ends, and they share a node: what is left to tell
them apart is which of two alike nodes the kept one was joined to. Nothing is relaxed: an edge without a match is dropped
and counted. Buckets of degrees are 0, 1-2, 3-6, 7-14, ... (equal whole part of log2 of the degree plus one).

Matched controls are common practice in case-control studies; for link attacks the structure to match on is named in the
critique of uniform negatives by Lethe's own protocol (arXiv:2610.21869), which matched degrees and hops in one variant.
"""

import numpy as np
import scipy.sparse
import torch
from torch_geometric.data import Data

from lethe_lib.attacks.hops import SOURCES, hops_from
from lethe_lib.data import adjacency
from lethe_lib.errors import InputError
from lethe_lib.structure import remove_edges


def node_kinds(data: Data) -> np.ndarray:
    """A number for each combination of degree bucket and label, int64 (n,)."""
    degree = np.diff(adjacency(data).indptr)
    bucket = np.floor(np.log2(degree + 1)).astype(np.int64)
    return bucket * int(data.num_classes) + data.y.numpy()


def matched_non_edges(
    data: Data, forget: torch.Tensor, attacked: torch.Tensor, generator: np.random.Generator
) -> tuple[torch.Tensor, np.ndarray]:
    """One matched pair for every attacked edge that has one (module docstring).

    Args:
        data: the original graph. forget: (2, n) canonical pairs, the whole request.
        attacked: (2, k) of these pairs.
        generator: source of randomness.

    Returns:
        int64 (2, m) pairs i < j, all different, and bool (k,): which attacked edges they belong to, in the same order.

    Raises:
        InputError: no attacked edge has a match.
    """
    retained = remove_edges(data, forget)
    matrix = scipy.sparse.csr_array(adjacency(retained, dtype=np.float32))
    kinds = node_kinds(retained)
    order = np.argsort(kinds, kind="stable")
    of_kind = dict(
        zip(np.unique(kinds).tolist(), np.split(order, np.flatnonzero(np.diff(kinds[order])) + 1), strict=True)
    )
    forgotten = np.concatenate([forget.numpy(), forget.flip(0).numpy()], axis=1)
    partners = scipy.sparse.csr_array((np.ones(forgotten.shape[1]), forgotten), shape=matrix.shape)

    swapped = generator.random(attacked.shape[1]) < 0.5
    ends = np.where(swapped, attacked.numpy()[::-1], attacked.numpy())  # row 0: the end to keep first
    found: dict[int, tuple[int, int]] = {}
    used: set[tuple[int, int]] = set()
    for kept, replaced in (ends, ends[::-1]):
        waiting = np.array([i for i in np.argsort(kept, kind="stable") if int(i) not in found], dtype=np.int64)
        sources, rank = np.unique(kept[waiting], return_inverse=True)
        for first in range(0, len(sources), SOURCES):
            block = sources[first : first + SOURCES]
            distance = hops_from(matrix, block)
            of_pair = distance.copy()
            rows = partners[block].tocoo()
            distance[rows.row, rows.col] = 0  # an edge of the original graph is never a negative
            for i in waiting[(rank >= first) & (rank < first + len(block))]:
                row = np.searchsorted(block, kept[i])
                nodes = of_kind[int(kinds[replaced[i]])]
                nodes = nodes[distance[row, nodes] == of_pair[row, replaced[i]]]
                for other in generator.permutation(nodes).tolist():
                    pair = (min(int(kept[i]), other), max(int(kept[i]), other))
                    if pair not in used:
                        used.add(pair)
                        found[int(i)] = pair
                        break
    if not found:
        raise InputError(
            f"none of the {attacked.shape[1]} forgotten edges has a matched non-edge: use negatives='uniform'"
        )
    has_match = np.isin(np.arange(attacked.shape[1]), list(found))
    pairs = np.array([found[i] for i in np.flatnonzero(has_match).tolist()], dtype=np.int64).T
    return torch.from_numpy(np.ascontiguousarray(pairs)), has_match
