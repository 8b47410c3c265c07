"""Exact influence by tangents that visit only the nodes between u and v.

For a pair (u, v) and a network of depth L, the derivative of the rows behind layer l in the direction "scale x_u" is
zero outside the l-hop ball of u, and what it is outside the (L - l)-hop ball of v does not matter to v's logits:

    tangent_0 = x_u at u
    for each layer l:
        nodes = what u reaches (first half of the layers), what reaches v (second half), both (in the middle)
        aggregated = P tangent, own = tangent, at these nodes        P: the layer's sparse matrix
        tangent = d node_map(P h, h) in the direction (aggregated, own), by forward mode at the rows h of the whole
        graph
    I(u -> v) = || tangent_L at v ||

All pairs of a chunk are pushed together: one row for each (pair, node) that carries a tangent. The rows h are computed
once. Attention weights depend on the rows, so GAT, alone or under deletion operators, has its own step with their
derivative written out.
"""

from dataclasses import dataclass

import numpy as np
import scipy.sparse
import torch
from torch.nn.functional import leaky_relu
from torch_geometric.data import Data

from lethe_lib.attacks.influence import MEMORY_BUDGET, chunks, exact_model, narrowed, reached, step
from lethe_lib.data import adjacency
from lethe_lib.models import Backbone, scipy_propagation
from lethe_lib.models.gat import GAT
from lethe_lib.models.propagation import attention_pattern
from lethe_lib.unlearning.gnn_delete import DeletionNetwork

SLOPE = 0.2  # of GAT's leaky_relu below 0


def has_sparse_tangents(model: Backbone) -> bool:
    """Whether :func:`sparse_tangents` knows this backbone."""
    return model.aggregation is not None or type(_attending(model)) is GAT


def _attending(model: Backbone) -> Backbone:
    """The network whose layers a model runs: its own, or those under its deletion operators."""
    return model.base if type(model) is DeletionNetwork else model


@torch.no_grad()
def sparse_tangents(model: Backbone, data: Data, perturbed: np.ndarray, read: np.ndarray) -> np.ndarray:
    """Influence by tangents that travel only where u reaches and v is reached.

    Args:
        model: a backbone with a linear ``aggregation``, or a GAT, also under deletion operators; any depth.
        data: the graph that the model is asked on.
        perturbed, read: int64, (n,): u and v of each pair.

    Returns:
        float64, (n,), at least 0.
    """
    model, x = narrowed(exact_model(model), data)
    stack = (_AttentionLayers if type(_attending(model)) is GAT else _LinearLayers)(model, data, x)
    reach = scipy.sparse.csr_array(adjacency(data) + scipy.sparse.eye_array(data.num_nodes, format="csr"))
    middle = model.depth // 2
    cost = reached(reach, middle)[perturbed] + reached(reach, model.depth - middle)[read]
    influence = np.zeros(len(read))
    for chunk in chunks(8 * (stack.width + 4) * cost):
        layers = _layers_between(reach, perturbed[chunk], read[chunk], model.depth)
        tangent = x.numpy()[layers[0].node]
        for layer in range(model.depth):
            tangent = stack.push(layer, layers[layer], layers[layer + 1], tangent)
        influence[chunk][layers[-1].pair] = np.linalg.norm(tangent, axis=1)
    return influence


@dataclass(frozen=True)
class _Items:
    """The (pair, node) combinations that carry a tangent at one layer, sorted; ``key`` = pair * nodes + node."""

    pair: np.ndarray
    node: np.ndarray
    key: np.ndarray

    def find(self, key: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Position of each key, and whether it is there at all."""
        position = np.minimum(np.searchsorted(self.key, key), max(len(self.key) - 1, 0))
        return position, self.key[position] == key if len(self.key) else np.zeros(len(key), dtype=bool)


def _layers_between(reach: scipy.sparse.csr_array, u: np.ndarray, v: np.ndarray, depth: int) -> list[_Items]:
    """Which nodes carry a tangent from u that v will see, layer by layer; pairs out of reach carry none at all.

    Up to the middle: what u reaches. From the middle on: what reaches v. In the middle: both, which decides the pair.
    """
    middle = depth // 2
    meeting = step(reach, u, middle).multiply(step(reach, v, depth - middle)).tocsr()
    joined = np.flatnonzero(np.diff(meeting.indptr))
    layers = []
    for layer in range(depth + 1):
        if layer == middle:
            rows = meeting[joined]
        elif layer < middle:
            rows = step(reach, u[joined], layer)
        else:
            rows = step(reach, v[joined], depth - layer)
        rows.sort_indices()
        pair, node = np.repeat(joined, np.diff(rows.indptr)), rows.indices.astype(np.int64)
        layers.append(_Items(pair, node, pair * reach.shape[0] + node))
    return layers


def _coupling(
    matrix: scipy.sparse.csr_array, transpose: scipy.sparse.csr_array, source: _Items, target: _Items
) -> scipy.sparse.csr_array:
    """P between the items of two layers: entry P_ij for target (p, i) and source (p, j) of the same pair p."""
    degree = np.diff(matrix.indptr)
    from_target = degree[target.node].sum() <= degree[source.node].sum()  # walk the side with fewer neighbours
    walked, sought, rows = (target, source, matrix) if from_target else (source, target, transpose)
    block = rows[walked.node]
    start = np.repeat(np.arange(len(walked.node)), np.diff(block.indptr))
    end, there = sought.find(walked.pair[start] * matrix.shape[0] + block.indices)
    start, end, value = start[there], end[there], block.data[there]
    place = (start, end) if from_target else (end, start)
    return scipy.sparse.csr_array((value, place), shape=(len(target.node), len(source.node)))


class _LinearLayers:
    """Layers that are a constant sparse matrix and a map of node rows: primal rows once, tangents by ``push``.

    Args:
        model: float64 model with an ``aggregation``.
        data: the graph.
        x: float64 (n, width) features.
    """

    def __init__(self, model: Backbone, data: Data, x: torch.Tensor):
        self.model = model
        self.matrix = scipy_propagation(data, model.aggregation)
        self.transpose = scipy.sparse.csr_array(self.matrix.T)
        self.rows = []  # what each node map reads: (aggregated, own)
        own = x
        for layer in range(model.depth):
            self.rows.append((torch.from_numpy(self.matrix @ own.numpy()), own))
            if layer < model.depth - 1:
                own = model.node_function(layer)(*self.rows[layer])
        self.width = max(own.shape[1] for _, own in self.rows)

    def push(self, layer: int, source: _Items, target: _Items, tangent: np.ndarray) -> np.ndarray:
        """Tangents behind a layer, (items of target, width), from those before it, (items of source, width)."""
        aggregated, own = self.rows[layer]
        coupling = _coupling(self.matrix, self.transpose, source, target)
        position, there = source.find(target.key)
        size = max(1, MEMORY_BUDGET // (64 * self.width))
        pushed = []
        for first in range(0, len(target.node), size):
            block = slice(first, first + size)
            node = torch.from_numpy(target.node[block])
            tangents = coupling[block] @ tangent, tangent[position[block]] * there[block, None]
            function = self.model.node_function(layer, node)
            moved = torch.func.jvp(function, (aggregated[node], own[node]), tuple(map(torch.from_numpy, tangents)))
            pushed.append(moved[1].numpy())
        return np.concatenate(pushed) if pushed else np.zeros((0, 1))


class _AttentionLayers:
    """Layers of GAT. With m = W h, weights a_ij = softmax_j(leaky_relu(s_ij)), r_ij the slope of leaky_relu at s_ij:

        d out_i = sum_j a_ij (d m_j + r_ij d send_j (m_j - out_i))  +  d receive_i sum_j a_ij r_ij (m_j - out_i)

    where send = m . c, receive = m . a, out without bias; the last term, the own row's, needs no walk over neighbours.

    Args:
        model: float64 GAT, or deletion operators on one: they act behind each layer, on all of its rows alike.
        data: the graph.
        x: float64 (n, width) features.
    """

    def __init__(self, model: GAT | DeletionNetwork, data: Data, x: torch.Tensor):
        self.released, self.model = model, _attending(model)
        model = self.model
        pattern = scipy_propagation(data, "sym")
        entry = scipy.sparse.csr_array((np.arange(pattern.nnz), pattern.indices, pattern.indptr), shape=pattern.shape)
        self.entries, self.transposed = entry, scipy.sparse.csr_array(entry.T)
        self.width = max(x.shape[1], *(h * w for h, w in zip(model.heads, model.widths, strict=True)))
        attention, self.layers = attention_pattern(data, x), []
        rows = x
        for layer in range(model.depth):
            heads, outputs = [], []
            for head in range(model.heads[layer]):
                message = rows @ _head_weight(model, layer, head).T
                score = (message @ model.sender[layer][head])[attention.columns]
                score += (message @ model.receiver[layer][head])[attention.rows]
                weight = attention.softmax(leaky_relu(score, SLOPE)[:, None])[:, 0]
                sloped = torch.where(score > 0, weight, SLOPE * weight)
                output = attention.aggregate(weight, message)
                total = attention.aggregate(sloped, torch.ones_like(message[:, :1]))
                own = attention.aggregate(sloped, message) - total * output
                heads.append(tuple(part.numpy() for part in (message, weight, sloped, output, own)))
                outputs.append(output)
            before = self._behind(layer, torch.cat(outputs, dim=1) + model.biases[layer])
            self.layers.append((heads, before))
            rows = model.activation(before)

    def push(self, layer: int, source: _Items, target: _Items, tangent: np.ndarray) -> np.ndarray:
        """Tangents behind a layer, (items of target, width), from those before it, (items of source, width)."""
        place = _coupling(self.entries, self.transposed, source, target)
        position, there = source.find(target.key)
        heads, before = self.layers[layer]
        pushed = []
        for head, (message, weight, sloped, output, own) in enumerate(heads):
            moved = tangent @ _head_weight(self.model, layer, head).numpy().T
            sent = (moved @ self.model.sender[layer][head].numpy())[:, None]
            received = (moved @ self.model.receiver[layer][head].numpy())[position] * there
            by_weight, by_slope = (
                scipy.sparse.csr_array((values[place.data], place.indices, place.indptr), shape=place.shape)
                for values in (weight, sloped)
            )
            change = by_weight @ moved + by_slope @ (sent * message[source.node])
            change -= (by_slope @ sent) * output[target.node]
            pushed.append(change + received[:, None] * own[target.node])
        nodes = torch.from_numpy(target.node)
        change = self._behind(layer, torch.from_numpy(np.concatenate(pushed, axis=1)), nodes)
        if layer < self.model.depth - 1:
            at = before[nodes]
            change = torch.func.jvp(self.model.activation, (at,), (change,))[1]
        return change.numpy()

    def _behind(self, layer: int, rows: torch.Tensor, nodes: torch.Tensor | None = None) -> torch.Tensor:
        """Rows, or tangents, behind the operator of a layer, which is linear."""
        if self.released is self.model:
            return rows
        return self.released.apply_operator(layer, rows, nodes)


def _head_weight(model: GAT, layer: int, head: int) -> torch.Tensor:
    return model.linears[layer].weight[head * model.widths[layer] : (head + 1) * model.widths[layer]]
