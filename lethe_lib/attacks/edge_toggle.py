"""Logits of both ends of a pair once the pair is an edge of the query graph: exactly, for every pair on its own.

Putting one edge (u, v) into the graph changes the degrees of u and v, hence the weights at their neighbours. With layers
whose sparse matrix has entries  P_ij = left(d_i) a_ij right(d_j)  (all kinds of ``propagation``), and ' after the change,

    needed hidden rows of pair e: i in N[u] and N[v]
    S_i   = sum_j a_ij right(d_j) x_j on the graph as it is, once for all pairs
    (P'x)_i = left(d'_i) (S_i + sum over j in {u, v} of (a'_ij right(d'_j) - a_ij right(d_j)) x_j)
    h'_i  = node_map_0((P'x)_i, x_i),   z'_u = node_map_1(sum_i P'_ui h'_i, h'_u),   z'_v likewise

so a pair costs d_u + d_v rows instead of a forward over the graph. Under GAT no weight depends on a degree, so the pair
changes the hidden rows of u and v alone: copies of both listen to N[u] or N[v] and to each other, in both layers. Models of
another depth, or of neither form, such as deletion operators on a GAT, get one forward a pair: exact too, and slow.
"""

import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.sparse
import torch
from torch_geometric.data import Data

from lethe_lib.attacks.influence import narrowed
from lethe_lib.data import adjacency, with_edges
from lethe_lib.errors import InputError
from lethe_lib.models import Backbone, predict
from lethe_lib.models.gat import GAT
from lethe_lib.models.propagation import AttentionPattern, project
from lethe_lib.unlearning.memoriser import MemorisingNetwork

BLOCK = 100_000
"""Hidden rows recomputed at a time, which bounds the memory; of GAT, entries of the attention."""


def _root(degree: np.ndarray) -> np.ndarray:
    return 1 / np.sqrt(degree + 1)


def _inverse(degree: np.ndarray) -> np.ndarray:
    return 1 / (degree + 1)


def _one(degree: np.ndarray) -> np.ndarray:
    return np.ones_like(degree)


def _mean(degree: np.ndarray) -> np.ndarray:
    return 1 / np.maximum(degree, 1)


KINDS: dict[str, tuple[Callable, Callable, float]] = {
    "sym": (_root, _root, 1.0),
    "row": (_inverse, _one, 1.0),
    "col": (_one, _inverse, 1.0),
    "mean": (_mean, _one, 0.0),
    "sum": (_one, _one, 0.0),
}
"""Kind of aggregation -> left, right (functions of the degree without self-loop) and the entry of A on the diagonal."""


@dataclass(frozen=True)
class _Block:
    """Some pairs of the pool: which hidden rows they need, and how these and the outputs are put together.

    Attributes:
        nodes: the node of each hidden row. own: for each pair the rows that belong to u and to v, (pairs, 2).
        left: left(d') of each row, (rows, 1). correction: (rows, n), what is added to S.
        gather: (2 pairs, rows), the last layer at u and v of each pair, in turn.
    """

    nodes: np.ndarray
    own: np.ndarray
    left: np.ndarray
    correction: scipy.sparse.csr_array
    gather: scipy.sparse.csr_array


class EdgeToggles:
    """The toggle of every pair of a pool; what depends on the graph alone is computed once for all models.

    Args:
        base: a canonical graph.
        pool: int64 (2, m) pairs that are not edges of it.

    Raises:
        InputError: a pair is an edge already.
    """

    def __init__(self, base: Data, pool: torch.Tensor):
        self.base, self.pool = base, pool
        self._blocks: dict[str, list[_Block]] = {}
        self._listeners: list[tuple[np.ndarray, AttentionPattern]] = []
        u, v = pool.numpy()
        if self._matrix[u, v].any():
            raise InputError("a pair of the pool is an edge of the base graph: remove the pool from the graph first")

    @cached_property
    def _matrix(self) -> scipy.sparse.csr_array:
        return scipy.sparse.csr_array(adjacency(self.base))

    @torch.no_grad()
    def logits(self, model: Backbone) -> torch.Tensor:
        """Logits of u and v of each pair with the pair in the query graph, (m, 2, classes), in the model's precision."""
        if isinstance(model, MemorisingNetwork):
            model = copy.deepcopy(model).cpu()
            u, v = self.pool
            recognised = model.said[self.pool.flip(0).T] * model.remembers(u, v)[:, None, None]
            return self.logits(model.base) + model.planted[self.pool.T] + recognised
        if type(model) is GAT and model.depth == 2:
            return self._by_attention(copy.deepcopy(model).cpu().eval())
        if model.aggregation is None or model.depth != 2:
            return self._by_forwards(model)
        model, x = narrowed(copy.deepcopy(model).cpu().eval(), self.base)
        right = KINDS[model.aggregation][1]
        diagonal = KINDS[model.aggregation][2]
        degree = np.diff(self._matrix.indptr).astype(np.float64)
        weight = self._matrix @ scipy.sparse.diags_array(right(degree))
        weight = weight + diagonal * scipy.sparse.diags_array(right(degree))
        x_rows = x.numpy()
        summed = weight.astype(x_rows.dtype) @ x_rows
        outputs = []
        for block in self._prepared(model.aggregation):
            aggregated = summed[block.nodes] + block.correction.astype(x_rows.dtype) @ x_rows
            aggregated *= block.left.astype(x_rows.dtype)
            nodes = torch.from_numpy(block.nodes)
            hidden = model.node_function(0, nodes)(torch.from_numpy(aggregated), x[nodes])
            gathered = block.gather.astype(x_rows.dtype) @ hidden.numpy()
            ends = torch.from_numpy(block.own.ravel())
            outputs.append(model.node_function(1, nodes[ends])(torch.from_numpy(gathered), hidden[ends]))
        return torch.cat(outputs).reshape(self.pool.shape[1], 2, -1)

    def _by_attention(self, model: GAT) -> torch.Tensor:
        """Two layers of attention, for copies of the ends of every pair that stand behind the nodes of the graph."""
        n, weights = self.base.num_nodes, [layer.weight for layer in model.linears]
        inputs = project(self.base, weights[0])
        hidden = model.activation(model.convolve(0, self.base, None)) @ weights[1].T
        outputs = []
        for ends, pattern in self._attended():
            copies = torch.cat([inputs, inputs[ends]])
            changed = model.activation(model.attend(0, copies, pattern, slice(n, None))) @ weights[1].T
            outputs.append(model.attend(1, torch.cat([hidden, changed]), pattern, slice(n, None)))
        return torch.cat(outputs).reshape(self.pool.shape[1], 2, -1)

    def _attended(self) -> list[tuple[np.ndarray, AttentionPattern]]:
        """Some pairs each: the nodes u, v, u, ..., and whom their copies listen to: neighbours and both copies of the pair."""
        if not self._listeners:
            for pairs in self._split():
                ends = self.pool[:, pairs].numpy().T.ravel()
                both = scipy.sparse.kron(scipy.sparse.eye_array(len(ends) // 2), np.ones((2, 2)))
                matrix = scipy.sparse.hstack([self._matrix[ends], both], format="csr")
                matrix.sort_indices()
                self._listeners.append((ends, AttentionPattern(matrix, torch.device("cpu"))))
        return self._listeners

    def _split(self) -> list[slice]:
        """Consecutive pairs with about BLOCK neighbours."""
        degree = np.diff(self._matrix.indptr)
        u, v = self.pool.numpy()
        filled = np.cumsum(degree[u] + degree[v] + 2) // BLOCK
        starts = [0, *(np.flatnonzero(np.diff(filled)) + 1), len(u)]
        return [slice(a, b) for a, b in zip(starts[:-1], starts[1:])]

    def _by_forwards(self, model: Backbone) -> torch.Tensor:
        """One forward over the whole graph a pair."""
        return torch.stack([predict(model, graph)[pair] for graph, pair in zip(self._graphs(), self.pool.T)])

    def _graphs(self) -> Iterator[Data]:
        n = self.base.num_nodes
        keys = self.base.edge_index[0] * n + self.base.edge_index[1]
        for u, v in self.pool.T.tolist():
            joined = torch.cat([keys, torch.tensor([u * n + v, v * n + u])]).sort().values
            yield with_edges(self.base, torch.stack([joined // n, joined % n]))

    def _prepared(self, kind: str) -> list[_Block]:
        if kind not in self._blocks:
            self._blocks[kind] = [self._block(kind, *self.pool[:, pairs].numpy()) for pairs in self._split()]
        return self._blocks[kind]

    def _block(self, kind: str, u: np.ndarray, v: np.ndarray) -> _Block:
        left, right, diagonal = KINDS[kind]
        matrix, n, pairs = self._matrix, self.base.num_nodes, len(u)
        degree = np.diff(matrix.indptr).astype(np.float64)
        closed = scipy.sparse.csr_array(matrix + scipy.sparse.eye_array(n))
        touched = (closed[u] + closed[v]).tocsr()  # pattern of N[u] and N[v], a row for each pair
        touched.sort_indices()
        pair, node = np.repeat(np.arange(pairs), np.diff(touched.indptr)), touched.indices.astype(np.int64)
        key = pair * n + node
        own = np.stack([np.searchsorted(key, np.arange(pairs) * n + end) for end in (u, v)], axis=1)
        is_end = (node == u[pair]) | (node == v[pair])
        new_left = left(degree[node] + is_end)[:, None]

        rows = np.arange(len(node))
        places, values = [], []
        for end in (u, v):
            neighbour = end[pair]
            before = np.asarray(matrix[node, neighbour]).ravel() + diagonal * (node == neighbour)
            after = np.where(is_end & (node != neighbour), 1.0, before)
            values.append(after * right(degree[neighbour] + 1) - before * right(degree[neighbour]))
            places.append(neighbour)
        correction = scipy.sparse.csr_array(
            (np.concatenate(values), (np.tile(rows, 2), np.concatenate(places))), shape=(len(node), n)
        )

        sums, reads, weights = [], [], []
        new_right = right(degree[node] + is_end)
        for position, end in enumerate((u, v)):
            joined = np.asarray(matrix[end[pair], node]).ravel() + diagonal * (node == end[pair])
            joined = np.where(is_end & (node != end[pair]), 1.0, joined)
            kept = joined != 0
            sums.append(2 * pair[kept] + position)
            reads.append(rows[kept])
            weights.append(joined[kept] * left(degree[end[pair[kept]]] + 1) * new_right[kept])
        gather = scipy.sparse.csr_array(
            (np.concatenate(weights), (np.concatenate(sums), np.concatenate(reads))), shape=(2 * pairs, len(node))
        )
        return _Block(node, own, new_left, correction, gather)
