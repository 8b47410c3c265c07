"""Lazy forward push: smoothed features of a shrinking graph, with every removal repaired where it matters only.

    wanted: z = D^-1/2 p_L,   p_0 = D^1/2 x,   p_{l+1} = A D^-1 p_l            A with self-loops, so z = P_sym^L x
    kept for every level: reserve q_l and residue r_l with   q_0 + r_0 = D^1/2 x,   q_{l+1} + r_{l+1} = A D^-1 q_l
    push (l, u):  for every neighbour w of u:  r_{l+1}[w] += r_l[u] / d_u;   then q_l[u] += r_l[u],  r_l[u] = 0
    push every (l, u), l < L, with some |r_l[u]| > threshold;  level L takes everything at once, so r_L = 0
    answer: z^ = D^-1/2 q_L

    remove (u, v):  for a in {u, v}: keep q_l[a] / d_a, move the rest of q_l[a] into r_l[a];
                    r_0[a] += (sqrt(d_a - 1) - sqrt(d_a)) x_a;
                    r_{l+1}[u] -= q_l[v] / d_v,  r_{l+1}[v] -= q_l[u] / d_u;          then push

Yi, Wei, "Scalable and certifiable graph unlearning: overcoming the approximation error barrier", ICLR 2025. Keeping
q / d leaves every neighbour's invariant alone, so a removal costs a few rows per level before pushes. Here a push moves
the row of a node whole, all features at once: rows are contiguous, and pushing more than the rule asks for is always
sound.

What is left of the residues bounds the error. In the norm of D^-1/2, A D^-1 does not lengthen, so for every feature
|z^ - z|_2 <= sum_l |D^-1/2 r_l|_2; and A D^-1 keeps sums of absolute values, so sum_u |z^_u - z_u| <= sum_l sum_u |r_l[u]|.
Sums with sign bound nothing: on a regular graph with features of column sum 0 and a large threshold they are 0 while z^
is 0 (a fault of published code).
"""

import numba
import numpy as np
import scipy.sparse
import torch
from torch_geometric.data import Data

from lethe_lib.data import adjacency
from lethe_lib.errors import InputError


class LazyPush:
    """Reserves and residues of P_sym^depth x, kept up to a threshold under edge removals.

    Attributes:
        z: float64, (n, F): the approximation of P_sym^depth x.
        residue_sum: float64, (F,): sum over levels and nodes of |r|; bounds the column sums of |z^ - z|.
        pushes: rows pushed so far.
        reserve, residue: float64, (depth + 1, n, F) and (depth, n, F).
        degree: float64, (n,), with the self-loop.

    Args:
        data: the graph.
        x: float64, (n, F).
        depth: L, at least 1.
        threshold: largest residue that may stay, at least 0; 0 keeps z exact.
    """

    def __init__(self, data: Data, x: np.ndarray, depth: int, threshold: float):
        if not threshold >= 0.0:
            raise InputError(f"threshold={threshold} must be at least 0")
        matrix = scipy.sparse.csr_array(adjacency(data) + scipy.sparse.eye_array(data.num_nodes, format="csr"))
        matrix.sort_indices()
        self.pointers, self.neighbours = matrix.indptr.astype(np.int64), matrix.indices.astype(np.int64)
        self.alive = np.ones(len(self.neighbours), np.bool_)
        self.degree = np.diff(self.pointers).astype(np.float64)
        self.x, self.depth, self.threshold = np.ascontiguousarray(x, dtype=np.float64), depth, float(threshold)
        n, width = x.shape
        self.reserve = np.zeros((depth + 1, n, width))
        self.residue = np.zeros((depth, n, width))
        self.residue[0] = np.sqrt(self.degree)[:, None] * self.x
        self.residue_sum = np.abs(self.residue[0]).sum(axis=0)
        self.pushes = 0
        self.z = np.zeros((n, width))
        self._marks = np.zeros((depth + 1, n), np.bool_)
        self._marks[0] = True
        self._settle([np.arange(n)] + [np.zeros(0, np.int64)] * depth)
        self.residue_sum = np.abs(self.residue).sum(axis=(0, 1))  # without the rounding of all the pushes

    def remove(self, pairs: torch.Tensor) -> np.ndarray:
        """Remove edges.

        Args:
            pairs: (2, n) edges of the present graph, each once.

        Returns:
            The nodes whose row of z was written anew, sorted.

        Raises:
            InputError: a pair that is not an edge of the present graph; nothing is changed.
        """
        ends = np.ascontiguousarray(torch.as_tensor(pairs).cpu().numpy().T.astype(np.int64))
        places = np.empty_like(ends)
        for column, (first, second) in enumerate(((0, 1), (1, 0))):
            for row, (u, v) in enumerate(zip(ends[:, first], ends[:, second], strict=True)):
                lo, hi = self.pointers[u], self.pointers[u + 1]
                place = lo + np.searchsorted(self.neighbours[lo:hi], v)
                if u == v or place == hi or self.neighbours[place] != v or not self.alive[place]:
                    raise InputError(f"({u}, {v}) is not an edge of the present graph: it cannot be removed")
                places[row, column] = place
        if len(np.unique(places)) != places.size:
            raise InputError("a pair comes more than once: give every edge once")
        _unlink(
            ends, places, self.alive, self.degree, self.x, self.reserve, self.residue, self.residue_sum, self._marks
        )
        touched = np.unique(ends)
        return self._settle([touched] * (self.depth + 1))

    def _settle(self, touched: list[np.ndarray]) -> np.ndarray:
        """Push until no residue is above the threshold, and write the rows of z that changed.

        ``touched`` names, for every level, the nodes whose rows changed; ``_marks`` has them marked.
        """
        following = touched[0]
        for level in range(self.depth):
            following, pushed = _push(
                level, following, self.pointers, self.neighbours, self.alive, self.degree, self.reserve, self.residue,
                self.residue_sum, self._marks, self.threshold,
            )  # fmt: skip
            self._marks[level, touched[level]] = False
            following = np.concatenate([touched[level + 1], following])
            touched[level + 1] = following
            self.pushes += pushed
        changed = np.sort(following)
        self._marks[self.depth, changed] = False
        self.z[changed] = self.reserve[self.depth, changed] / np.sqrt(self.degree[changed])[:, None]
        return changed


@numba.njit(cache=True)
def _shift(residue, residue_sum, change):
    """Add ``change`` to a residue row, and keep the sum of absolute values."""
    for j in range(len(change)):
        before = abs(residue[j])
        residue[j] += change[j]
        residue_sum[j] += abs(residue[j]) - before


@numba.njit(cache=True)
def _unlink(ends, places, alive, degree, x, reserve, residue, residue_sum, marks):
    """Take edges out of graph, degrees and invariants, and mark the rows that this touches on every level."""
    levels = len(residue)
    for row in range(len(ends)):
        u, v = ends[row]
        alive[places[row, 0]] = False
        alive[places[row, 1]] = False
        for level in range(levels):
            to_u, to_v = reserve[level, v] / degree[v], reserve[level, u] / degree[u]
            if level + 1 < levels:
                _shift(residue[level + 1, u], residue_sum, -to_u)
                _shift(residue[level + 1, v], residue_sum, -to_v)
            else:
                reserve[levels, u] -= to_u
                reserve[levels, v] -= to_v
        for a in (u, v):
            d = degree[a]
            _shift(residue[0, a], residue_sum, (np.sqrt(d - 1.0) - np.sqrt(d)) * x[a])
            for level in range(levels):
                moved = reserve[level, a] / d
                _shift(residue[level, a], residue_sum, moved)
                reserve[level, a] -= moved
            degree[a] = d - 1.0
            marks[:, a] = True


@numba.njit(cache=True)
def _push(level, candidates, pointers, neighbours, alive, degree, reserve, residue, residue_sum, marks, threshold):
    """Push the candidates whose residue is too large; the neighbours newly marked on the next level, and the count."""
    last = level + 1 == len(residue)
    found = np.empty(marks.shape[1], np.int64)
    count = pushed = 0
    for u in candidates:
        row = residue[level, u]
        if np.abs(row).max() <= threshold:
            continue
        pushed += 1
        share = row / degree[u]
        for place in range(pointers[u], pointers[u + 1]):
            if not alive[place]:
                continue
            w = neighbours[place]
            if last:
                for j in range(len(share)):
                    reserve[level + 1, w, j] += share[j]
            else:
                _shift(residue[level + 1, w], residue_sum, share)
            if not marks[level + 1, w]:
                marks[level + 1, w] = True
                found[count] = w
                count += 1
        for j in range(len(row)):
            reserve[level, u, j] += row[j]
            residue_sum[j] -= abs(row[j])
            row[j] = 0.0
    return found[:count].copy(), pushed
