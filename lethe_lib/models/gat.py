"""GAT: graph attention network.

    s_ij = leaky_relu(a^T W h_j + c^T W h_i, slope 0.2)          for j in N(i) and j = i
    alpha_ij = softmax_j(s_ij),   H[i] = elu(sum_j alpha_ij W h_j + b),   no elu after the last layer

Velickovic, Cucurull, Casanova, Romero, Lio, Bengio, "Graph attention networks", ICLR 2018. Heads of hidden layers are
concatenated, each ``hidden`` wide; the output layer has one head. In training, dropout acts on the hidden rows and on
the attention weights.
"""

import torch
from torch import nn
from torch_geometric.data import Data

from lethe_lib.models.backbone import Backbone, linear
from lethe_lib.models.propagation import AttentionPattern, attention_pattern, project


class GAT(Backbone):
    """Args: inputs and classes (widths), hidden width per head, number of layers and of hidden heads, dropout rate."""

    def __init__(
        self, inputs: int, classes: int, hidden: int = 64, layers: int = 2, dropout: float = 0.5, heads: int = 1
    ):
        super().__init__(layers, dropout)
        self.heads = [heads] * (layers - 1) + [1]
        self.widths = [hidden] * (layers - 1) + [classes]
        rows_in = [inputs] + [hidden * heads] * (layers - 1)
        shapes = list(zip(rows_in, self.heads, self.widths, strict=True))
        self.linears = nn.ModuleList(linear(a, h * w, bias=False) for a, h, w in shapes)
        self.sender = nn.ParameterList(torch.empty(h, w) for _, h, w in shapes)
        self.receiver = nn.ParameterList(torch.empty(h, w) for _, h, w in shapes)
        self.biases = nn.ParameterList(torch.empty(h * w) for _, h, w in shapes)

    @property
    def input_layer_is_random(self) -> bool:
        return True  # dropout on the attention weights

    def activation(self, rows: torch.Tensor) -> torch.Tensor:
        return nn.functional.elu(rows)

    def convolve(self, layer: int, data: Data, rows: torch.Tensor | None) -> torch.Tensor:
        projected = project(data, self.linears[layer].weight, rows)
        return self.attend(layer, projected, attention_pattern(data, projected))

    def attend(
        self, layer: int, projected: torch.Tensor, pattern: AttentionPattern, receivers: slice = slice(None)
    ) -> torch.Tensor:
        """One layer before its activation, behind its projection.

        Args:
            layer: which one.
            projected: (senders, heads * width), W h of whoever may be listened to.
            pattern: who listens to whom.
            receivers: the rows of ``projected`` that the rows of the pattern belong to.
        """
        projected = projected.view(len(projected), self.heads[layer], self.widths[layer])
        to_receiver = (projected[receivers] * self.receiver[layer]).sum(-1)
        to_sender = (projected * self.sender[layer]).sum(-1)
        score = nn.functional.leaky_relu(to_sender[pattern.columns] + to_receiver[pattern.rows], 0.2)
        weight = self.dropout(pattern.softmax(score))
        heads = [pattern.aggregate(weight[:, h], projected[:, h]) for h in range(self.heads[layer])]
        return torch.cat(heads, dim=1) + self.biases[layer]
