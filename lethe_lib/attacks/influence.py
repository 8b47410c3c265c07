"""Exact influence of one node's features on another node's logits, for many pairs at once, in float64.

    I(u -> v) = || d f(X)_v / d x_u  x_u ||_2

is the limit of LinkTeller's finite difference: the change of v's logits when u's features grow by a small factor. A
message-passing network of depth L moves nothing further than L hops, so almost everything that a forward over the whole
graph computes is irrelevant to a pair. Three ways, from the special to the general, all equal where they apply:

1. ``row_products``: SGC, and two layers of the form relu(P H W^T + H V^T + b). With W_1 x for all nodes and Z, the
   hidden rows before relu, computed once, a pair of a GCN costs one product of two sparse rows:
       I(u -> v) = || W_2 ((sum_j P_vj P_ju 1[Z_j > 0]) o W_1 x_u) ||
2. ``sparse_tangents`` (module ``tangents``): any depth, any backbone whose layers are a sparse matrix and a map of node
   rows, and GAT, also under the operators of GNNDelete. Tangents visit only the nodes between u and v.
3. ``forward_mode``: any backbone. One forward-mode derivative of the whole network for every distinct u.

A pair further apart than L hops gets exactly 0.0 in each.
"""

import copy
from collections.abc import Callable, Iterator

import numpy as np
import scipy.sparse
import torch
from torch import nn
from torch.autograd import forward_ad
from torch_geometric.data import Data

from lethe_lib.models import Backbone, scipy_propagation
from lethe_lib.models.gat import GAT
from lethe_lib.models.gcn import GCN
from lethe_lib.models.gin import GIN
from lethe_lib.models.propagation import dense_features, project
from lethe_lib.models.sage import GraphSAGE
from lethe_lib.models.sgc import SGC, ColSGC, RowSGC
from lethe_lib.unlearning.gnn_delete import DeletionNetwork, DeletionSGC
from lethe_lib.unlearning.memoriser import MemorisingNetwork

MEMORY_BUDGET = 256 * 2**20
"""Bytes that the working arrays of one chunk of pairs may take, roughly."""

FEATURE_READERS: dict[type, Callable[[Backbone], list[nn.Linear]]] = {
    GCN: lambda model: [model.layers[0]],
    GAT: lambda model: [model.linears[0]],
    GIN: lambda model: [model.first[0]],
    GraphSAGE: lambda model: [model.neighbours[0], model.own[0]],
    SGC: lambda model: [model.head],
    RowSGC: lambda model: [model.head],
    ColSGC: lambda model: [model.head],
    DeletionNetwork: lambda model: feature_readers(model.base),
    DeletionSGC: lambda model: [model.base.head],
    MemorisingNetwork: lambda model: feature_readers(model.base),
}
"""The linear maps through which a backbone reads the features, where nothing else reads them."""


def feature_readers(model: Backbone) -> list[nn.Linear]:
    """The maps of ``FEATURE_READERS`` for a model; none where it is not known what reads its features."""
    return FEATURE_READERS[type(model)](model) if type(model) in FEATURE_READERS else []


def exact_model(model: Backbone) -> Backbone:
    """A float64 copy on the CPU in evaluation mode."""
    return copy.deepcopy(model).double().cpu().eval()


def narrowed(model: Backbone, data: Data) -> tuple[Backbone, torch.Tensor]:
    """Change a private copy of a model, and make features for it, so that narrower rows give the same logits.

    Where features are read through linear maps W alone, X W^T can take their place and selections of its columns the
    place of W. Scaling a row of X scales the same row of X W^T, so no influence changes. Other backbones keep their
    features.

    Returns:
        The model and its features, (n, width), in the model's dtype and on its device.
    """
    readers = feature_readers(model)
    if not readers:
        return model, dense_features(data, next(model.parameters()))
    weight = torch.cat([reader.weight for reader in readers])
    columns = torch.eye(len(weight)).to(weight).split([len(reader.weight) for reader in readers])
    for reader, chosen in zip(readers, columns, strict=True):
        reader.weight = nn.Parameter(chosen)
    return model, project(data, weight)


def has_row_products(model: Backbone) -> bool:
    """Whether :func:`row_products` knows this backbone at this depth."""
    return type(model) in (SGC, RowSGC, ColSGC) or (type(model) in (GCN, GraphSAGE) and model.depth == 2)


@torch.no_grad()
def row_products(model: Backbone, data: Data, perturbed: np.ndarray, read: np.ndarray) -> np.ndarray:
    """Influence by products of two sparse rows a pair; see the module docstring.

    Args:
        model: an SGC of any depth, or a GCN or GraphSAGE of depth 2.
        data: the graph that the model is asked on.
        perturbed, read: int64, (n,): u and v of each pair, u != v.

    Returns:
        float64, (n,), at least 0.
    """
    model = exact_model(model)
    return (_linear_products if isinstance(model, SGC) else _two_layer_products)(model, data, perturbed, read)


def _linear_products(model: SGC, data: Data, perturbed: np.ndarray, read: np.ndarray) -> np.ndarray:
    """|(P^L)_vu| ||W x_u||; the walks from v and from u meet in the middle."""
    matrix = scipy_propagation(data, model.aggregation)
    transpose = matrix if model.aggregation == "sym" else matrix.T.tocsr()
    size = project(data, model.head.weight).norm(dim=1).numpy()
    left, right = model.depth - model.depth // 2, model.depth // 2
    cost = reached(matrix, left)[read] + reached(matrix, right)[perturbed]  # the pattern is symmetric for every kind
    influence = np.zeros(len(read))
    for chunk in chunks(32 * cost):
        walks = step(matrix, read[chunk], left).multiply(step(transpose, perturbed[chunk], right)).sum(axis=1)
        influence[chunk] = np.abs(walks) * size[perturbed[chunk]]
    return influence


def _two_layer_products(model: GCN | GraphSAGE, data: Data, perturbed: np.ndarray, read: np.ndarray) -> np.ndarray:
    matrix = scipy_propagation(data, model.aggregation)
    transpose = matrix if model.aggregation == "sym" else matrix.T.tocsr()
    first, second = model.layers if isinstance(model, GCN) else model.neighbours
    message = project(data, first.weight).numpy()
    hidden = matrix @ message + first.bias.numpy()
    if isinstance(model, GraphSAGE):
        own = project(data, model.own[0].weight).numpy()
        hidden += own
    active = (hidden > 0.0).astype(np.float64)

    degree = np.diff(matrix.indptr)
    influence = np.zeros(len(read))
    for chunk in chunks(32 * (degree[read] + degree[perturbed]) + 24 * active.shape[1]):
        u, v = perturbed[chunk], read[chunk]
        aggregated = (matrix[v].multiply(transpose[u]) @ active) * message[u]
        if isinstance(model, GCN):
            tangent = aggregated @ second.weight.numpy().T
        else:  # the own rows: u's in the first layer, v's in the second
            direct = matrix[v, u][:, None]
            aggregated += direct * active[u] * own[u]
            kept = direct * active[v] * message[u]
            tangent = aggregated @ second.weight.numpy().T + kept @ model.own[1].weight.numpy().T
        influence[chunk] = np.linalg.norm(tangent, axis=1)
    return influence


@torch.no_grad()
def forward_mode(model: Backbone, data: Data, perturbed: np.ndarray, read: np.ndarray) -> np.ndarray:
    """Influence by one forward-mode derivative of the whole network for each distinct perturbed node.

    Args:
        model: any backbone.
        data: the graph that the model is asked on.
        perturbed, read: int64, (n,): u and v of each pair.

    Returns:
        float64, (n,), at least 0.
    """
    model, x = narrowed(exact_model(model), data)
    direction = torch.zeros_like(x)
    influence = np.zeros(len(read))
    for u, members in _by_node(perturbed):
        direction[u] = x[u]
        with forward_ad.dual_level():
            logits = forward_ad.unpack_dual(model(data, forward_ad.make_dual(x, direction))).tangent
        influence[members] = logits[read[members]].norm(dim=1).numpy()
        direction[u] = 0.0
    return influence


@torch.no_grad()
def finite_difference(model: Backbone, data: Data, perturbed: np.ndarray, read: np.ndarray, delta: float) -> np.ndarray:
    """LinkTeller's own estimate: || f((1 + delta) x_u)_v - f(x_u)_v || / delta, in the precision of the model.

    One forward for each distinct perturbed node, behind the first linear map where the backbone has one, and for a GCN
    of depth 2 only over the rows that the node reaches. In float32 the difference of two nearly equal logits over a
    small ``delta`` is mostly rounding for weak pairs.

    Args:
        model: any backbone.
        data: the graph that the model is asked on.
        perturbed, read: int64, (n,): u and v of each pair.
        delta: relative step, above 0.

    Returns:
        float64, (n,), at least 0.
    """
    model, x = narrowed(copy.deepcopy(model).eval(), data)
    if type(model) is GCN and model.depth == 2:
        return _local_difference(model.cpu(), data, x.cpu(), perturbed, read, delta)
    before = model(data, x)
    x = x.clone()  # without features to narrow it may be the graph's own tensor
    influence = np.zeros(len(read))
    for u, members in _by_node(perturbed):
        kept = x[u].clone()
        x[u] = kept * (1.0 + delta)
        change = (model(data, x)[read[members]] - before[read[members]]) / delta
        influence[members] = change.norm(dim=1).cpu().numpy()
        x[u] = kept
    return influence


def _local_difference(
    model: GCN, data: Data, x: torch.Tensor, perturbed: np.ndarray, read: np.ndarray, delta: float
) -> np.ndarray:
    """The same difference by recomputing only the rows that u reaches: its neighbours' hidden rows, then v's logits.

    Every recomputed row is summed whole, in the precision of the model, as the full forward would sum it.
    """
    first, second = (layer.weight.numpy() for layer in model.layers)
    bias, last_bias = (layer.bias.numpy() for layer in model.layers)
    message = x.numpy() @ first.T
    matrix = scipy_propagation(data, "sym").astype(message.dtype)
    step_size = np.asarray(1.0 + delta, message.dtype)

    def sent(rows: np.ndarray) -> np.ndarray:  # what nodes with these aggregated rows send to the second layer
        return np.maximum(rows + bias, 0) @ second.T

    sending = sent(matrix @ message)
    before = matrix @ sending + last_bias
    influence = np.zeros(len(read))
    for u, members in _by_node(perturbed):
        reached_rows = matrix.indices[matrix.indptr[u] : matrix.indptr[u + 1]]
        kept, kept_sending = message[u].copy(), sending[reached_rows]
        message[u] = kept * step_size
        sending[reached_rows] = sent(matrix[reached_rows] @ message)
        after = matrix[read[members]] @ sending + last_bias
        influence[members] = np.linalg.norm((after - before[read[members]]) / delta, axis=1)
        message[u], sending[reached_rows] = kept, kept_sending
    return influence


def _by_node(nodes: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
    """Each distinct node with the positions at which it stands."""
    order = np.argsort(nodes, kind="stable")
    distinct, first = np.unique(nodes[order], return_index=True)
    return zip(distinct.tolist(), np.split(order, first[1:]), strict=True)


def step(matrix: scipy.sparse.csr_array, nodes: np.ndarray, hops: int) -> scipy.sparse.csr_array:
    """Rows of matrix^hops, (nodes, n)."""
    count, pointers = len(nodes), np.arange(len(nodes) + 1)
    if hops == 0:
        return scipy.sparse.csr_array((np.ones(count), nodes, pointers), shape=(count, matrix.shape[0]))
    rows = matrix[nodes]
    for _ in range(hops - 1):
        rows = rows @ matrix
    rows.sort_indices()
    return rows


def reached(matrix: scipy.sparse.csr_array, hops: int) -> np.ndarray:
    """An upper bound of the number of nodes within some hops of each node, (n,)."""
    pattern = scipy.sparse.csr_array((np.ones(matrix.nnz), matrix.indices, matrix.indptr), shape=matrix.shape)
    bound = np.ones(matrix.shape[0])
    for _ in range(hops):
        bound = np.minimum(pattern @ bound, matrix.shape[0])
    return bound


def chunks(cost: np.ndarray) -> Iterator[slice]:
    """Consecutive pairs whose working arrays, ``cost`` bytes a pair, fit the memory budget together."""
    filled = np.cumsum(cost) // MEMORY_BUDGET
    edges = [0, *(np.flatnonzero(np.diff(filled)) + 1).tolist(), len(cost)]
    return (slice(first, last) for first, last in zip(edges[:-1], edges[1:], strict=True) if last > first)
