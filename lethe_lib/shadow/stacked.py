"""Many models trained at once, as one batched network over the union of their graphs.

    P        block-diagonal propagation matrix of the B training graphs, each padded to n nodes
    W_l      weights of layer l, one leading axis for the model
    rows     (B, n, width);  every layer:  rows <- map_l(P rows, rows) with each model's own weights
    loss     sum over the models of the mean cross-entropy over their own nodes

The gradient of the sum with respect to the weights of one model is that of its own loss, and Adam works entry by entry, so
every model takes the steps that it would take alone. A graphics processor is busy with one such step where B small ones
would leave it waiting for launches; on a CPU one model a core is faster. Works for backbones that are a fixed aggregation
and a map of node rows (GCN, GraphSAGE, GIN, SGC) without dropout.
"""

from collections.abc import Sequence

import scipy.sparse
import torch
from torch.func import functional_call, stack_module_state, vmap
from torch.nn.functional import cross_entropy
from torch_geometric.data import Data

from lethe_lib.models import Backbone
from lethe_lib.models.propagation import SparseMatrix, dense_features, scipy_propagation


def stackable(model: Backbone) -> bool:
    """Whether models like this one can be trained stacked."""
    return model.aggregation is not None and model.dropout_rate == 0


class _NodeRows(torch.nn.Module):
    """``model.node_map`` as a forward, which is what functional calls need."""

    def __init__(self, model: Backbone):
        super().__init__()
        self.model = model

    def forward(self, layer: int, aggregated: torch.Tensor, own: torch.Tensor) -> torch.Tensor:
        return self.model.node_map(layer, aggregated, own)


def fit_stacked(
    models: Sequence[Backbone], graphs: Sequence[Data], epochs: int, learning_rate: float, weight_decay: float
) -> list[float]:
    """Train ``models`` in place, each on all nodes of its own graph; see the module docstring.

    Args:
        models: of one architecture, device and precision, for which :func:`stackable` holds.
        graphs: the training graph of each, with the same features and classes.
        epochs: full-batch steps, at least 1.
        learning_rate, weight_decay: Adam's.

    Returns:
        The loss of every model before its last step.
    """
    like = next(models[0].parameters())
    sizes = [graph.num_nodes for graph in graphs]
    shape = (len(graphs), max(sizes))
    rows = like.new_zeros((*shape, graphs[0].x.shape[1]))
    labels = torch.full(shape, -100, device=like.device)  # what the loss leaves out
    blocks = []
    for number, (graph, size) in enumerate(zip(graphs, sizes, strict=True)):
        rows[number, :size] = dense_features(graph, like)
        labels[number, :size] = graph.y.to(like.device)
        block = scipy.sparse.coo_array(scipy_propagation(graph, models[0].aggregation))
        block.resize((shape[1], shape[1]))
        blocks.append(block)
    union = scipy.sparse.csr_array(scipy.sparse.block_diag(blocks, format="csr"))
    matrix = SparseMatrix(union, like.dtype, like.device, symmetric=models[0].aggregation in ("sym", "sum"))
    counts = torch.tensor(sizes, device=like.device, dtype=like.dtype)

    shell = _NodeRows(models[0])
    weights, _ = stack_module_state([_NodeRows(model) for model in models])
    weights = {name: value.detach().requires_grad_() for name, value in weights.items()}
    depth = models[0].depth

    def aggregate(rows: torch.Tensor) -> torch.Tensor:
        return (matrix @ rows.reshape(-1, rows.shape[-1])).reshape(rows.shape)

    first = aggregate(rows)  # the features are constant, so this product is needed once
    apply = [
        vmap(lambda own_weights, aggregated, own, k=k: functional_call(shell, own_weights, (k, aggregated, own)))
        for k in range(depth)
    ]
    optimiser = torch.optim.Adam(weights.values(), lr=learning_rate, weight_decay=weight_decay)
    for _ in range(epochs):
        optimiser.zero_grad(set_to_none=True)
        hidden = apply[0](weights, first, rows)
        for layer in range(1, depth):
            hidden = apply[layer](weights, aggregate(hidden), hidden)
        loss = (
            cross_entropy(hidden.flatten(0, 1), labels.flatten(), reduction="none").reshape(shape).sum(dim=1) / counts
        )
        loss.sum().backward()
        optimiser.step()
    with torch.no_grad():
        for number, model in enumerate(models):
            for name, parameter in _NodeRows(model).named_parameters():
                parameter.copy_(weights[name][number])
    return loss.detach().tolist()
