"""GCN: graph convolutional network.

    H_0 = X
    H_{l+1} = relu(P H_l W_l^T + b_l),   P = D~^-1/2 (A + I) D~^-1/2,   no relu after the last layer

Kipf and Welling, "Semi-supervised classification with graph convolutional networks", ICLR 2017. Dropout acts on the
hidden rows only, so P X is a constant of the graph.
"""

import torch
from torch import nn
from torch_geometric.data import Data

from lethe_lib.models.backbone import Backbone, linear
from lethe_lib.models.propagation import propagate_project, propagation


class GCN(Backbone):
    """Args: inputs and classes (widths), hidden width, number of layers, dropout rate on hidden rows."""

    aggregation = "sym"
    degree_weighted = True

    def __init__(self, inputs: int, classes: int, hidden: int = 64, layers: int = 2, dropout: float = 0.5):
        super().__init__(layers, dropout)
        widths = [inputs] + [hidden] * (layers - 1) + [classes]
        self.layers = nn.ModuleList(linear(a, b) for a, b in zip(widths[:-1], widths[1:], strict=True))

    def convolve(self, layer: int, data: Data, rows: torch.Tensor | None) -> torch.Tensor:
        weight, bias = self.layers[layer].weight, self.layers[layer].bias
        if layer == 0:
            return propagate_project(data, "sym", weight, rows) + bias
        return propagation(data, "sym", weight) @ (rows @ weight.T) + bias

    def node_rows(
        self, layer: int, aggregated: torch.Tensor, own: torch.Tensor, nodes: torch.Tensor | None = None
    ) -> torch.Tensor:
        return self.layers[layer](aggregated)
