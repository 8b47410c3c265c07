"""The whole training of a small GCN in one compiled loop.

    A = P (X W1) + b1,  H = relu(A),  Z = P (H W2) + b2,  loss = mean cross-entropy of softmax(Z)
    G = (softmax(Z) - onehot) / n,  B = P G,  dA = (B W2^T) * [A > 0]
    grad W2 = H^T B,  grad W1 = X^T (P dA),  then Adam with the L2 penalty added to the gradient

A GCN on the few thousand nodes and sparse features of a citation graph does so little arithmetic an epoch that a
framework's calls cost more than the work. Compiled by numba, the same arithmetic takes a fraction of the time, holds no
lock, and needs no memory but its buffers. It computes what ``GCN`` with two layers and no dropout computes under
``torch.optim.Adam``; the tests compare the two in float64.
"""

import numpy as np
import scipy.sparse
import torch
from numba import njit

from lethe_lib.models.gcn import GCN
from lethe_lib.models.propagation import SparseMatrix, features, scipy_propagation

BETA_1, BETA_2, EPSILON = 0.9, 0.999, 1e-8


def applies(model: torch.nn.Module, data) -> bool:
    """Whether this trainer can stand in for the framework: a two-layer GCN without dropout on sparse features."""
    plain = type(model) is GCN and model.depth == 2 and model.dropout_rate == 0
    parameter = next(model.parameters())
    return plain and parameter.device.type == "cpu" and isinstance(features(data, parameter), SparseMatrix)


def fit_compiled(model: GCN, data, epochs: int, learning_rate: float, weight_decay: float) -> float:
    """Train ``model`` in place on all nodes of ``data``; see the module docstring.

    Args:
        model: a model for which :func:`applies` holds.
        data: the training graph; every node is labelled.
        epochs: full-batch steps.
        learning_rate, weight_decay: Adam's.

    Returns:
        The loss before the last step.
    """
    dtype = next(model.parameters()).detach().numpy().dtype
    x = data.x
    if x.layout == torch.strided:
        x = scipy.sparse.csr_array(x.numpy())
    else:
        x = scipy.sparse.csr_array((x.values(), x.col_indices(), x.crow_indices()), shape=tuple(x.shape))
    by_feature = x.tocsc()
    matrix = scipy_propagation(data, "sym")
    first, second = model.layers
    # W1 is kept feature by feature and W2 class by class: every inner loop then runs over the contiguous hidden units.
    shared = (first.weight.T, first.bias, second.weight, second.bias)
    weights = [np.array(parameter.detach().numpy(), order="C") for parameter in shared]
    loss = _train(
        x.indptr.astype(np.int32), x.indices.astype(np.int32), x.data.astype(dtype),
        by_feature.indptr.astype(np.int32), by_feature.indices.astype(np.int32), by_feature.data.astype(dtype),
        matrix.indptr.astype(np.int32), matrix.indices.astype(np.int32), matrix.data.astype(dtype),
        data.y.numpy(), *weights, epochs, dtype.type(learning_rate), dtype.type(weight_decay),
    )  # fmt: skip
    with torch.no_grad():
        for parameter, value in zip(shared, weights, strict=True):
            parameter.copy_(torch.from_numpy(value))
    return float(loss)


@njit(fastmath={"contract", "reassoc"}, nogil=True, cache=True)
def _sparse_times(pointers, columns, values, dense, out):
    """out = sparse @ dense, row by row."""
    width = dense.shape[1]
    for row in range(len(pointers) - 1):
        target = out[row]
        target[:] = 0
        for position in range(pointers[row], pointers[row + 1]):
            value, source = values[position], dense[columns[position]]
            for k in range(width):
                target[k] += value * source[k]


@njit(fastmath={"contract", "reassoc"}, nogil=True, cache=True)
def _adam(weight, gradient, mean, square, rate, root, epsilon, decay):
    """One Adam step on a vector; ``rate`` and ``root`` carry the bias corrections of this step."""
    one = weight.dtype.type(1)
    beta_1, beta_2 = weight.dtype.type(BETA_1), weight.dtype.type(BETA_2)
    for k in range(len(weight)):
        slope = gradient[k] + decay * weight[k]
        mean[k] = beta_1 * mean[k] + (one - beta_1) * slope
        square[k] = beta_2 * square[k] + (one - beta_2) * slope * slope
        weight[k] -= rate * mean[k] / (np.sqrt(square[k]) * root + epsilon)


@njit(fastmath={"contract", "reassoc"}, nogil=True, cache=True)
def _train(
    x_rows, x_columns, x_values, xt_rows, xt_columns, xt_values, p_rows, p_columns, p_values,
    labels, w1, b1, w2, b2, epochs, learning_rate, decay,
):  # fmt: skip
    nodes, hidden, classes, inputs = len(labels), w1.shape[1], w2.shape[0], w1.shape[0]
    dtype = w1.dtype
    projected, active = np.empty((nodes, hidden), dtype), np.empty((nodes, hidden), dtype)
    scores, outputs = np.empty((nodes, classes), dtype), np.empty((nodes, classes), dtype)
    row_gradient = np.empty(hidden, dtype)
    means = (np.zeros_like(w1), np.zeros_like(b1), np.zeros_like(w2), np.zeros_like(b2))
    squares = (np.zeros_like(w1), np.zeros_like(b1), np.zeros_like(w2), np.zeros_like(b2))
    share = dtype.type(1) / dtype.type(nodes)
    zero = dtype.type(0)
    epsilon = dtype.type(EPSILON)
    loss = zero
    for epoch in range(epochs):
        rate = dtype.type(learning_rate / (1.0 - BETA_1 ** (epoch + 1)))
        root = dtype.type(1.0 / np.sqrt(1.0 - BETA_2 ** (epoch + 1)))
        _sparse_times(x_rows, x_columns, x_values, w1, projected)
        _sparse_times(p_rows, p_columns, p_values, projected, active)
        for i in range(nodes):
            row = active[i]
            for k in range(hidden):
                row[k] = max(row[k] + b1[k], zero)
        np.dot(active, w2.T, scores)
        _sparse_times(p_rows, p_columns, p_values, scores, outputs)

        loss = zero
        for i in range(nodes):
            row = outputs[i]
            peak = row[0] + b2[0]
            for c in range(classes):
                row[c] += b2[c]
                peak = max(peak, row[c])
            true = row[labels[i]]
            total = zero
            for c in range(classes):
                row[c] = np.exp(row[c] - peak)
                total += row[c]
            loss += (np.log(total) + peak - true) * share
            for c in range(classes):
                row[c] *= share / total
            row[labels[i]] -= share
        bias_2 = np.zeros_like(b2)
        for i in range(nodes):
            for c in range(classes):
                bias_2[c] += outputs[i, c]
        _sparse_times(p_rows, p_columns, p_values, outputs, scores)  # scores now hold B = P G

        gradient_2, bias_1 = np.dot(scores.T, active), np.zeros_like(b1)
        np.dot(scores, w2, projected)  # projected now holds B W2^T, then dA
        for i in range(nodes):
            row, into = active[i], projected[i]
            for k in range(hidden):
                into[k] = into[k] if row[k] > zero else zero
                bias_1[k] += into[k]
        _sparse_times(p_rows, p_columns, p_values, projected, active)  # active now holds P dA
        for f in range(inputs):
            row_gradient[:] = 0
            for position in range(xt_rows[f], xt_rows[f + 1]):
                value, source = xt_values[position], active[xt_columns[position]]
                for k in range(hidden):
                    row_gradient[k] += value * source[k]
            _adam(w1[f], row_gradient, means[0][f], squares[0][f], rate, root, epsilon, decay)
        for c in range(classes):
            _adam(w2[c], gradient_2[c], means[2][c], squares[2][c], rate, root, epsilon, decay)
        _adam(b1, bias_1, means[1], squares[1], rate, root, epsilon, decay)
        _adam(b2, bias_2, means[3], squares[3], rate, root, epsilon, decay)
    return loss
