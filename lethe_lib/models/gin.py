"""GIN: graph isomorphism network.

    H_{l+1}[i] = relu(norm(MLP_l(H_l[i] + sum_{j in N(i)} H_l[j]))),   MLP = linear, relu, linear
    logits = linear(H_L)

Xu, Hu, Leskovec, Jegelka, "How powerful are graph neural networks?", ICLR 2019, with epsilon = 0.

Sums grow with the degree: on a graph with hubs the rows differ by factors of hundreds and plain GIN trains badly or not
at all. The authors put batch normalisation behind the aggregation. We normalise each node's row instead (LayerNorm),
both before and after the MLP's second map, which tames the scale without tying nodes to each other: outputs still
depend on the ``depth``-hop neighbourhood alone, as exact influence needs, and there are no running statistics to
unlearn. ``norm=False`` is the plain network of the published benchmark.
"""

import torch
from torch import nn
from torch_geometric.data import Data

from lethe_lib.models.backbone import Backbone, linear
from lethe_lib.models.propagation import project, propagate_project, propagation


class GIN(Backbone):
    """Args: inputs and classes (widths), hidden width, number of layers, dropout on hidden rows, LayerNorm or not."""

    aggregation = "sum"

    def __init__(
        self, inputs: int, classes: int, hidden: int = 64, layers: int = 2, dropout: float = 0.5, norm: bool = True
    ):
        super().__init__(layers, dropout)
        widths = [inputs] + [hidden] * (layers - 1)
        self.first = nn.ModuleList(linear(width, hidden) for width in widths)
        self.second = nn.ModuleList(linear(hidden, hidden) for _ in widths)
        self.norm_first = nn.ModuleList(nn.LayerNorm(hidden) if norm else nn.Identity() for _ in widths)
        self.norm_second = nn.ModuleList(nn.LayerNorm(hidden) if norm else nn.Identity() for _ in widths)
        self.head = linear(hidden, classes)

    @property
    def input_layer_is_random(self) -> bool:
        return self.depth == 1  # the head, with its dropout, belongs to the last layer

    def convolve(self, layer: int, data: Data, rows: torch.Tensor | None) -> torch.Tensor:
        first = self.first[layer]
        if layer == 0:
            summed = propagate_project(data, "sum", first.weight, rows) + project(data, first.weight, rows)
        else:
            projected = rows @ first.weight.T
            summed = propagation(data, "sum", projected) @ projected + projected
        return self._rest(layer, summed + first.bias)

    def node_rows(
        self, layer: int, aggregated: torch.Tensor, own: torch.Tensor, nodes: torch.Tensor | None = None
    ) -> torch.Tensor:
        return self._rest(layer, self.first[layer](aggregated + own))

    def _rest(self, layer: int, rows: torch.Tensor) -> torch.Tensor:
        """Everything behind the first linear map, before the activation between layers; logits for the last layer."""
        rows = self.norm_second[layer](self.second[layer](torch.relu(self.norm_first[layer](rows))))
        return rows if layer < self.depth - 1 else self.head(self.dropout(torch.relu(rows)))
