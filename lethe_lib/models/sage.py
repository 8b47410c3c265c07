"""GraphSAGE with mean aggregation over all neighbours.

    H_{l+1}[i] = relu(W_l mean_{j in N(i)} H_l[j] + V_l H_l[i] + b_l),   no relu after the last layer

Hamilton, Ying, Leskovec, "Inductive representation learning on large graphs", NeurIPS 2017. An isolated node aggregates
to zero. No neighbour sampling: the graphs here fit in memory, and sampling would add noise to every comparison.
"""

import torch
from torch import nn
from torch_geometric.data import Data

from lethe_lib.models.backbone import Backbone, linear
from lethe_lib.models.propagation import project, propagate_project, propagation


class GraphSAGE(Backbone):
    """Args: inputs and classes (widths), hidden width, number of layers, dropout rate on hidden rows."""

    aggregation = "mean"

    def __init__(self, inputs: int, classes: int, hidden: int = 64, layers: int = 2, dropout: float = 0.5):
        super().__init__(layers, dropout)
        widths = [inputs] + [hidden] * (layers - 1) + [classes]
        pairs = list(zip(widths[:-1], widths[1:], strict=True))
        self.neighbours = nn.ModuleList(linear(a, b) for a, b in pairs)
        self.own = nn.ModuleList(linear(a, b, bias=False) for a, b in pairs)

    def convolve(self, layer: int, data: Data, rows: torch.Tensor | None) -> torch.Tensor:
        neighbours, own = self.neighbours[layer], self.own[layer]
        if layer == 0:
            aggregated = propagate_project(data, "mean", neighbours.weight, rows)
            return aggregated + neighbours.bias + project(data, own.weight, rows)
        aggregated = propagation(data, "mean", rows) @ (rows @ neighbours.weight.T)
        return aggregated + neighbours.bias + own(rows)

    def node_rows(
        self, layer: int, aggregated: torch.Tensor, own: torch.Tensor, nodes: torch.Tensor | None = None
    ) -> torch.Tensor:
        return self.neighbours[layer](aggregated) + self.own[layer](own)
