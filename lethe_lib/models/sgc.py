"""SGC: simple graph convolution, a linear model on K times smoothed features.

    Z = P^K X W^T + b,   P = D~^-1/2 (A + I) D~^-1/2

Wu, Souza, Zhang, Fifty, Yu, Weinberger, "Simplifying graph convolutional networks", ICML 2019. Each of the K hops
counts as a layer, so ``depth`` and ``reach`` are K although there is one weight matrix.

``RowSGC`` and ``ColSGC`` are the same with other matrices P, as certified methods release them; they are not trained.
"""

import torch
from torch_geometric.data import Data

from lethe_lib.models.backbone import Backbone, linear
from lethe_lib.models.propagation import propagate_project, propagation


class SGC(Backbone):
    """Args: inputs and classes (widths), number of hops ``layers``, whether there is a bias."""

    aggregation = "sym"
    degree_weighted = True

    def __init__(self, inputs: int, classes: int, layers: int = 2, bias: bool = True):
        super().__init__(layers, dropout=0.0)
        self.head = linear(inputs, classes, bias)

    def input_layer(self, data: Data, x: torch.Tensor | None = None) -> torch.Tensor:
        """The whole model: the logits."""
        logits = propagate_project(data, self.aggregation, self.head.weight, x, power=self.depth)
        return logits if self.head.bias is None else logits + self.head.bias

    def activation(self, rows: torch.Tensor) -> torch.Tensor:
        """None between hops."""
        return rows

    def rest(self, data: Data, first: torch.Tensor) -> torch.Tensor:
        return first

    def representations(self, data: Data, x: torch.Tensor | None = None) -> list[torch.Tensor]:
        """The smoothed features P X, ..., P^(K-1) X, (n, F) each."""
        eye = torch.eye(self.head.in_features, dtype=self.head.weight.dtype, device=self.head.weight.device)
        rows, smoothed = x, []
        for hop in range(self.depth - 1):
            matrix = propagation(data, self.aggregation, eye)
            rows = propagate_project(data, self.aggregation, eye, x) if hop == 0 else matrix @ rows
            smoothed.append(rows)
        return smoothed

    def node_rows(
        self, layer: int, aggregated: torch.Tensor, own: torch.Tensor, nodes: torch.Tensor | None = None
    ) -> torch.Tensor:
        return self.head(aggregated) if layer == self.depth - 1 else aggregated


class RowSGC(SGC):
    """P = D~^-1 (A + I): a node's row depends on its own degree alone, so a removal reaches one hop less far."""

    aggregation = "row"
    degree_weighted = False


class ColSGC(SGC):
    """P = (A + I) D~^-1."""

    aggregation = "col"
