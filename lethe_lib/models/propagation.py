"""Sparse message passing: one matrix per graph and kind, built once, multiplied fast, never stale.

A message-passing layer multiplies node rows H by a sparse matrix P of the graph. Gather and scatter over ``edge_index``
writes an edges x width tensor for every layer; one sparse-dense product does not, and is several times faster on a CPU.
The backward pass multiplies by the transpose, which for symmetric matrices is the same object.

Kinds of P, with A the adjacency matrix, I the identity, D the degrees:

- ``sym``  D~^-1/2 (A + I) D~^-1/2 with D~ = D + I    (GCN, SGC: Kipf and Welling 2017)
- ``row``  D~^-1 (A + I), rows sum to 1              (certified graph unlearning: Chien, Pan, Milenkovic 2023)
- ``col``  (A + I) D~^-1, columns sum to 1           (what the Lethe benchmark's code for it computes)
- ``mean`` D^-1 A, a zero row for an isolated node    (GraphSAGE with mean aggregation)
- ``sum``  A                                          (GIN)

Everything derived from a graph hangs on its ``edge_index`` or ``x`` tensor by a weak key and is dropped with it.
``remove_edges`` makes a new ``edge_index``, and a change in place raises the tensor's version counter, so a matrix or a
normalisation can never outlive the edges that it was made from.
"""

import warnings
from collections.abc import Callable
from functools import cached_property

import numpy as np
import scipy.sparse
import torch
from torch.utils.weak import WeakIdKeyDictionary
from torch_geometric.data import Data

from lethe_lib.data import adjacency
from lethe_lib.errors import InputError

SPARSE_FEATURE_DENSITY = 0.15
"""Below this share of non-zeros, X W by a sparse product beats the dense one (measured break-even)."""

_derived: WeakIdKeyDictionary = WeakIdKeyDictionary()


def _cached(anchor: torch.Tensor, key: tuple, make: Callable[[], object]) -> object:
    """The value of ``make()`` for this tensor, remembered until the tensor dies or is changed in place."""
    version, values = _derived.get(anchor, (None, None))
    if version != anchor._version:
        values = {}
        _derived[anchor] = (anchor._version, values)
    if key not in values:
        values[key] = make()
    return values[key]


class SparseMatrix:
    """A constant sparse matrix with its transpose, multiplied from the left onto dense rows.

    Differentiable in the dense factor to any order, in reverse and in forward mode.

    Attributes:
        matrix: torch CSR, (rows, columns).
        transpose: torch CSR, (columns, rows); the same object for a symmetric matrix.
    """

    def __init__(self, matrix: scipy.sparse.csr_array, dtype: torch.dtype, device: torch.device, symmetric: bool):
        self.matrix = _torch_csr(matrix, dtype, device)
        self.transpose = self.matrix if symmetric else _torch_csr(matrix.T.tocsr(), dtype, device)

    def __matmul__(self, dense: torch.Tensor) -> torch.Tensor:
        return _Product.apply(self, False, dense)


class _Product(torch.autograd.Function):
    """``matrix @ dense`` or ``transpose @ dense``. The sparse side is no tensor argument: transforms leave it alone."""

    @staticmethod
    def forward(sparse, transposed, dense):
        return (sparse.transpose if transposed else sparse.matrix) @ dense

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.sparse, ctx.transposed, _ = inputs

    @staticmethod
    def backward(ctx, gradient):
        return None, None, _Product.apply(ctx.sparse, not ctx.transposed, gradient)

    @staticmethod
    def jvp(ctx, _sparse, _transposed, tangent):
        return _Product.apply(ctx.sparse, ctx.transposed, tangent)


def _torch_csr(matrix: scipy.sparse.csr_array, dtype: torch.dtype, device: torch.device) -> torch.Tensor:
    matrix.sort_indices()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Sparse CSR tensor support is in beta")
        return torch.sparse_csr_tensor(
            torch.from_numpy(matrix.indptr.astype(np.int32)),  # 32-bit indices: less memory traffic
            torch.from_numpy(matrix.indices.astype(np.int32)),
            torch.from_numpy(matrix.data).to(dtype),
            size=matrix.shape,
            check_invariants=False,
        ).to(device)


def scipy_propagation(data: Data, kind: str) -> scipy.sparse.csr_array:
    """The propagation matrix of a kind (module docstring) in float64, for exact computations.

    Args:
        data: a canonical graph.
        kind: ``sym``, ``row``, ``col``, ``mean`` or ``sum``.

    Returns:
        scipy CSR, (n, n); the caller must not change it.
    """
    return _cached(data.edge_index, ("scipy", kind), lambda: _build(data, kind))


def _build(data: Data, kind: str) -> scipy.sparse.csr_array:
    matrix = scipy.sparse.csr_array(adjacency(data, dtype=np.float64))
    if kind == "sum":
        return matrix
    if kind == "mean":
        degree = np.diff(matrix.indptr)
        matrix.data = np.repeat(1.0 / np.maximum(degree, 1), degree)
        return matrix
    if kind in ("sym", "row", "col"):
        matrix = scipy.sparse.csr_array(matrix + scipy.sparse.eye_array(data.num_nodes, format="csr"))
        degree = np.diff(matrix.indptr)
        if kind == "sym":
            scale = 1.0 / np.sqrt(degree)
            matrix.data = np.repeat(scale, degree) * scale[matrix.indices]
        else:
            matrix.data = np.repeat(1.0 / degree, degree) if kind == "row" else (1.0 / degree)[matrix.indices]
        return matrix
    raise InputError(f"unknown propagation {kind!r}: choose sym, row, col, mean or sum")


def propagation(data: Data, kind: str, like: torch.Tensor) -> SparseMatrix:
    """The propagation matrix of a kind (module docstring) in the dtype and on the device of ``like``."""
    return _cached(
        data.edge_index,
        (kind, like.dtype, like.device),
        lambda: SparseMatrix(scipy_propagation(data, kind), like.dtype, like.device, symmetric=kind in ("sym", "sum")),
    )


def features(data: Data, like: torch.Tensor) -> torch.Tensor | SparseMatrix:
    """The node features in the dtype and on the device of ``like``: a sparse matrix where that is the faster form."""
    x = data.x

    def make():
        sparse = x.layout != torch.strided
        nonzero = x.values().count_nonzero() if sparse else x.count_nonzero()
        if nonzero >= SPARSE_FEATURE_DENSITY * x.shape[0] * x.shape[1]:
            dense = (x.to_dense() if sparse else x).to(device=like.device, dtype=like.dtype)
            return None if dense is x else dense  # a value that holds its own key would never be dropped
        if sparse:
            parts = (x.values().numpy(), x.col_indices().numpy(), x.crow_indices().numpy())
            matrix = scipy.sparse.csr_array(parts, shape=tuple(x.shape))
        else:
            matrix = scipy.sparse.csr_array(x.numpy())
        return SparseMatrix(matrix, like.dtype, like.device, symmetric=False)

    found = _cached(x, ("features", like.dtype, like.device), make)
    return x if found is None else found


def dense_features(data: Data, like: torch.Tensor) -> torch.Tensor:
    """The node features as a dense tensor, (n, F), in the dtype and on the device of ``like``."""
    x = data.x if data.x.layout == torch.strided else data.x.to_dense()
    return x.to(device=like.device, dtype=like.dtype)


def project(data: Data, weight: torch.Tensor, x: torch.Tensor | None = None) -> torch.Tensor:
    """X W^T for the graph's features, or for ``x`` in their place (differentiable in ``x``)."""
    return (features(data, weight) if x is None else x) @ weight.T


def propagate_project(
    data: Data, kind: str, weight: torch.Tensor, x: torch.Tensor | None = None, power: int = 1
) -> torch.Tensor:
    """P^power X W^T, the input layer of most backbones, by the cheapest exact order.

    Dense features: P^power X is computed once per graph and remembered (nothing random comes before it), which leaves
    one dense product a step. Sparse features: X W^T first, then the narrow propagation.

    Args:
        data: a canonical graph.
        kind: see the module docstring.
        weight: (out, F).
        x: (n, F) features in place of the graph's; differentiable, nothing is remembered.
        power: how often P is applied.

    Returns:
        (n, out).
    """
    matrix = propagation(data, kind, weight)
    if x is None:
        x = features(data, weight)
        if isinstance(x, torch.Tensor):
            return propagated_features(data, kind, weight, power) @ weight.T
    rows = x @ weight.T
    for _ in range(power):
        rows = matrix @ rows
    return rows


def propagated_features(data: Data, kind: str, like: torch.Tensor, power: int) -> torch.Tensor:
    """P^power X as a dense tensor, (n, F), remembered for this pair of edges and features."""

    def make():
        rows = dense_features(data, like)
        for _ in range(power):
            rows = propagation(data, kind, like) @ rows
        return data.x, data.x._version, rows

    key = ("propagated features", kind, power, like.dtype, like.device, id(data.x), data.x._version)
    return _cached(data.edge_index, key, make)[2]


class AttentionPattern:
    """Who listens to whom, for layers that learn a weight for each: softmax over a row, and the weighted sum.

    Args:
        matrix: CSR with sorted indices, (receivers, senders); its entries count, not their values. Backward passes need a
            symmetric one.
        device: where the weights live.

    Attributes:
        rows, columns: int64, (entries,); receiver and sender of each entry, sorted by row.
    """

    def __init__(self, matrix: scipy.sparse.csr_array, device: torch.device):
        self.shape, self._matrix = matrix.shape, matrix
        self.columns = torch.from_numpy(matrix.indices.astype(np.int64)).to(device)
        self.rows = torch.from_numpy(np.repeat(np.arange(self.shape[0]), np.diff(matrix.indptr))).to(device)
        self._pointers = torch.from_numpy(matrix.indptr.astype(np.int32)).to(device)
        self._indices = self.columns.int()

    @cached_property
    def _mirror(self) -> torch.Tensor:
        """The transpose of a symmetric pattern has the same rows and columns, with its values in this order."""
        indices, pointers = self._matrix.indices, self._matrix.indptr
        places = scipy.sparse.csr_array((np.arange(len(indices)), indices, pointers), shape=self.shape).T.tocsr()
        places.sort_indices()
        return torch.from_numpy(places.data.astype(np.int64)).to(self.columns.device)

    def softmax(self, score: torch.Tensor) -> torch.Tensor:
        """Softmax of (entries, heads) scores over the entries of each row."""
        index = self.rows[:, None].expand_as(score)
        peak = torch.full((self.shape[0], score.shape[1]), -torch.inf, dtype=score.dtype, device=score.device)
        peak = peak.scatter_reduce(0, index, score.detach(), "amax")
        weight = (score - peak[self.rows]).exp()
        total = torch.zeros_like(peak).index_add(0, self.rows, weight)
        return weight / total[self.rows]

    def aggregate(self, weight: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
        """sum_j weight_ij rows_j for every i; (entries,) weights and (n, width) rows give (n, width)."""
        return _WeightedSum.apply(self, weight, rows)

    def matrix(self, weight: torch.Tensor) -> torch.Tensor:
        """The torch CSR matrix with these values."""
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Sparse CSR tensor support is in beta")
            return torch.sparse_csr_tensor(
                self._pointers, self._indices, weight, size=self.shape, check_invariants=False
            )

    def mirrored(self, weight: torch.Tensor) -> torch.Tensor:
        """The values of the transposed matrix, in the order of the pattern."""
        return weight[self._mirror]


class _Bilinear(torch.autograd.Function):
    """A function of a pattern and two tensors, linear in each of them."""

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.pattern, *factors = inputs
        ctx.save_for_backward(*factors)
        ctx.save_for_forward(*factors)


def _bilinear_tangent(function: type[_Bilinear], ctx, one_tangent, other_tangent) -> torch.Tensor:
    one, other = ctx.saved_tensors
    return function.apply(ctx.pattern, one_tangent, other) + function.apply(ctx.pattern, one, other_tangent)


class _WeightedSum(_Bilinear):
    """sum_j weight_ij rows_j for every row i of a pattern, (n, width)."""

    @staticmethod
    def forward(pattern, weight, rows):
        return pattern.matrix(weight) @ rows

    @staticmethod
    def backward(ctx, gradient):
        weight, rows = ctx.saved_tensors
        pattern = ctx.pattern
        to_weight = _EntryProducts.apply(pattern, gradient, rows)
        return None, to_weight, _WeightedSum.apply(pattern, pattern.mirrored(weight), gradient)

    @staticmethod
    def jvp(ctx, _pattern, *tangents):
        return _bilinear_tangent(_WeightedSum, ctx, *tangents)


class _EntryProducts(_Bilinear):
    """left_i . right_j for every entry (i, j) of a pattern, (entries,)."""

    @staticmethod
    def forward(pattern, left, right):
        products = left.new_empty(len(pattern.rows))
        size = ENTRIES if left.device.type == "cpu" else max(1, len(products))
        for first in range(0, len(products), size):
            block = slice(first, first + size)
            part = left.index_select(0, pattern.rows[block]).mul_(right.index_select(0, pattern.columns[block]))
            torch.sum(part, -1, out=products[block])
        return products

    @staticmethod
    def backward(ctx, gradient):
        left, right = ctx.saved_tensors
        pattern = ctx.pattern
        to_right = _WeightedSum.apply(pattern, pattern.mirrored(gradient), left)
        return None, _WeightedSum.apply(pattern, gradient, right), to_right

    @staticmethod
    def jvp(ctx, _pattern, *tangents):
        return _bilinear_tangent(_EntryProducts, ctx, *tangents)


ENTRIES = 8192
"""Entries of a pattern whose rows are gathered at a time on a CPU, where they stay in the cache."""


def attention_pattern(data: Data, like: torch.Tensor) -> AttentionPattern:
    """Every node and its neighbours, A + I, on the device of ``like``."""
    return _cached(
        data.edge_index,
        ("attention", like.device),
        lambda: AttentionPattern(scipy_propagation(data, "sym"), like.device),
    )
