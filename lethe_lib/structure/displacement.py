"""Endpoint displacement: how far the endpoints of an edge move in a model's hidden space when the edge is removed.

    h = first hidden representation of the trained model, after its activation
    m(i, j) = (|h_i(G) - h_i(G without ij)| + |h_j(G) - h_j(G without ij)|) / 2          L2 norms, one edge at a time

The Lethe benchmark ("Lethe: Link Inference Attacks For Evaluation of Edge Unlearning Methods", 2026) prints values of
such a measure without a definition. Among the definitions that were tried, this one fits those values best.

Removing one edge changes what an endpoint aggregates in the first layer only through the lost neighbour and the
endpoint's own degree, so with g_i the aggregate of node i and d_i its degree (+ 1 for ``sym``, which counts the loop):

    sym    g_i' = sqrt(d_i / (d_i - 1)) (g_i - x_j / sqrt(d_i d_j) - x_i / d_i) + x_i / (d_i - 1)
    row    g_i' = (d_i g_i - x_j) / (d_i - 1)    with d_i counting the loop
    col    g_i' = g_i - x_j / d_j - x_i / d_i + x_i / (d_i - 1)    likewise
    mean   g_i' = (d_i g_i - x_j) / (d_i - 1), and 0 for the last neighbour
    sum    g_i' = g_i - x_j

which costs O(F) a pair instead of one forward pass. Models that learn their weights (attention) get the literal
computation, one forward pass a pair: use few pairs.
"""

import numpy as np
import scipy.sparse
import torch
from torch import nn
from torch_geometric.data import Data

from lethe_lib.data import adjacency, node_features
from lethe_lib.errors import InputError
from lethe_lib.structure.pairs import edge_positions, ordered_pairs
from lethe_lib.structure.removal import remove_edges

_CHUNK_NUMBERS = 2**22  # feature values per array held at a time


def endpoint_displacement(model: nn.Module, data: Data, pairs: object) -> np.ndarray:
    """The displacement m of every pair, each removed alone (module docstring).

    Args:
        model: a model trained on ``data``, with at least one hidden layer.
        data: the original graph, canonical.
        pairs: edges of it, (2, n).

    Returns:
        (n,) float64, at least 0, in the order given; the model is evaluated without dropout.

    Raises:
        InputError: for pairs that are not edges, or a model without hidden layer.
    """
    _check_hidden(model)
    edge_positions(data, pairs)
    pairs = ordered_pairs(data, pairs).numpy()
    training = model.training
    model.eval()
    try:
        with torch.no_grad():
            return (_one_by_one if model.aggregation is None else _locally)(model, data, pairs)
    finally:
        model.train(training)


def set_displacement(model: nn.Module, data: Data, pairs: object) -> np.ndarray:
    """The same mean over both endpoints when all pairs are removed at once: (n,) float64, in the order given.

    Arguments and errors are those of :func:`endpoint_displacement`; two forward passes.
    """
    _check_hidden(model)
    retained = remove_edges(data, pairs)
    pairs = ordered_pairs(data, pairs)
    training = model.training
    model.eval()
    try:
        with torch.no_grad():
            moved = _distance(model.representations(data)[0], model.representations(retained)[0])
    finally:
        model.train(training)
    return moved[pairs.numpy()].mean(0)


def _check_hidden(model: nn.Module) -> None:
    if model.depth < 2:
        raise InputError(f"the model has depth {model.depth}: without a hidden layer there is no hidden displacement")


def _one_by_one(model: nn.Module, data: Data, pairs: np.ndarray) -> np.ndarray:
    before = model.representations(data)[0]
    displacement = np.empty(pairs.shape[1])
    for position, pair in enumerate(pairs.T):
        after = model.representations(remove_edges(data, pair[:, None]))[0]
        ends = torch.from_numpy(pair).to(before.device)
        displacement[position] = _distance(before[ends], after[ends]).mean()
    return displacement


def _locally(model: nn.Module, data: Data, pairs: np.ndarray) -> np.ndarray:
    matrix, x = adjacency(data), node_features(data).astype(np.float64)
    degree = np.diff(matrix.indptr).astype(np.float64)
    parameter = next(model.parameters())

    def hidden(nodes: np.ndarray, *both: np.ndarray) -> torch.Tensor:
        layer = model.node_function(0, torch.from_numpy(nodes).to(parameter.device))
        return layer(*(torch.from_numpy(rows).to(parameter.device, parameter.dtype) for rows in both))

    chunk = max(1, _CHUNK_NUMBERS // x.shape[1])
    displacement = np.zeros(pairs.shape[1])
    for start in range(0, pairs.shape[1], chunk):
        part = slice(start, start + chunk)
        for ends, others in (pairs[:, part], pairs[::-1, part]):
            own, lost = _rows(x, ends), _rows(x, others)
            before, after = _AGGREGATES[model.aggregation](matrix, x, degree, ends, others, own, lost)
            displacement[part] += _distance(hidden(ends, before, own), hidden(ends, after, own)) / 2
    return displacement


def _sym(matrix, x, degree, i, j, own, lost):
    d_i, d_j = degree[i, None] + 1, degree[j, None] + 1
    scale = scipy.sparse.diags_array(1 / np.sqrt(degree + 1))
    before = _unique_rows((matrix[np.unique(i)] @ scale), x, i) / np.sqrt(d_i) + own / d_i
    after = np.sqrt(d_i / (d_i - 1)) * (before - lost / np.sqrt(d_i * d_j) - own / d_i) + own / (d_i - 1)
    return before, after


def _row(matrix, x, degree, i, j, own, lost):
    total = _unique_rows(matrix[np.unique(i)], x, i) + own
    return total / (degree[i, None] + 1), (total - lost) / degree[i, None]


def _col(matrix, x, degree, i, j, own, lost):
    d_i, d_j = degree[i, None] + 1, degree[j, None] + 1
    scale = scipy.sparse.diags_array(1 / (degree + 1))
    before = _unique_rows(matrix[np.unique(i)] @ scale, x, i) + own / d_i
    return before, before - lost / d_j - own / d_i + own / (d_i - 1)


def _mean(matrix, x, degree, i, j, own, lost):
    total = _unique_rows(matrix[np.unique(i)], x, i)
    left = degree[i, None] - 1
    after = np.where(left > 0, (total - lost) / np.maximum(left, 1), 0.0)
    return total / degree[i, None], after


def _sum(matrix, x, degree, i, j, own, lost):
    before = _unique_rows(matrix[np.unique(i)], x, i)
    return before, before - lost


_AGGREGATES = {"sym": _sym, "row": _row, "col": _col, "mean": _mean, "sum": _sum}


def _unique_rows(matrix, x, nodes: np.ndarray) -> np.ndarray:
    """Dense rows of matrix @ x for ``nodes``, from the rows of ``matrix`` for the distinct ones among them."""
    product = matrix @ x
    rows = product.toarray() if scipy.sparse.issparse(product) else product
    return rows[np.unique(nodes, return_inverse=True)[1]]


def _rows(x, nodes: np.ndarray) -> np.ndarray:
    rows = x[nodes]
    return rows.toarray() if scipy.sparse.issparse(rows) else rows


def _distance(first: torch.Tensor, second: torch.Tensor) -> np.ndarray:
    """L2 distance of matching rows, float64."""
    return (first.double() - second.double()).norm(dim=1).cpu().numpy()
