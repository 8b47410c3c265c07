"""What every backbone is: a stack of message-passing layers over one graph, readable layer by layer."""

from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from torch import nn
from torch.nn.utils import skip_init
from torch_geometric.data import Data

from lethe_lib.data import Split


@dataclass(frozen=True)
class TrainingRun:
    """How a model came to be; everything that is needed to train it again on another graph.

    Attributes:
        backbone: registry name.
        seed: seed of the split (preset ``corrected``), of the initial weights and of dropout.
        preset: ``corrected`` or ``published``.
        settings: the full training settings, defaults included.
        split: node indices for training, validation and test.
        epochs: epochs run. best_epoch: the epoch whose weights were kept.
        history: validation loss after every epoch.
        seconds: wall time of the training loop.
    """

    backbone: str
    seed: int
    preset: str
    settings: dict
    split: Split
    epochs: int = 0
    best_epoch: int = 0
    history: tuple[float, ...] = field(default=(), repr=False)
    seconds: float = 0.0


class Backbone(nn.Module):
    """A message-passing network of ``depth`` layers, each an aggregation over neighbours and a map of node rows.

    Subclasses set the class attributes, build their parameters with :func:`linear`, and write :meth:`convolve`; those
    whose aggregation is linear also write :meth:`node_rows`, which buys them the exact sparse LinkTeller.

    Attributes:
        depth: number of message-passing hops.
        reach: hops around the endpoints of a removed edge within which outputs can change: ``depth`` where a weight
            depends on the sender's degree (GCN, SGC), else ``depth - 1``.
        aggregation: a kind of ``propagation`` (``sym``, ``row``, ``col``, ``mean``, ``sum``), or None where the weights
            are learned.
        training_run: how the model was trained; None for a model that never was.
        generator: source of dropout masks in training mode; None takes torch's default generator.
    """

    aggregation: str | None = None
    degree_weighted: bool = False

    def __init__(self, depth: int, dropout: float):
        super().__init__()
        self.depth = depth
        self.dropout_rate = dropout
        self.training_run: TrainingRun | None = None
        self.generator: torch.Generator | None = None

    @property
    def reach(self) -> int:
        return self.depth if self.degree_weighted else self.depth - 1

    def convolve(self, layer: int, data: Data, rows: torch.Tensor | None) -> torch.Tensor:
        """One layer before its activation; ``rows`` None stands for the graph's own features. Last layer: logits."""
        raise NotImplementedError

    def activation(self, rows: torch.Tensor) -> torch.Tensor:
        """The map between layers."""
        return torch.relu(rows)

    def node_rows(
        self, layer: int, aggregated: torch.Tensor, own: torch.Tensor, nodes: torch.Tensor | None = None
    ) -> torch.Tensor:
        """One layer before its activation, as a map of each node's aggregated neighbours and own row.

        ``node_rows(l, P h, h)`` equals ``convolve(l, graph, h)`` in evaluation mode. Only where ``aggregation`` is not
        None.

        Args:
            layer: which one.
            aggregated, own: (rows, width) each.
            nodes: whose rows these are, for models that do not treat all nodes alike; None for all in order.
        """
        raise NotImplementedError

    def node_map(
        self, layer: int, aggregated: torch.Tensor, own: torch.Tensor, nodes: torch.Tensor | None = None
    ) -> torch.Tensor:
        """:meth:`node_rows` with the activation behind all but the last layer."""
        rows = self.node_rows(layer, aggregated, own, nodes)
        return rows if layer == self.depth - 1 else self.activation(rows)

    def node_function(
        self, layer: int, nodes: torch.Tensor | None = None
    ) -> Callable[[torch.Tensor, torch.Tensor], torch.Tensor]:
        """:meth:`node_map` of one layer, as a function of (aggregated, own)."""
        return lambda aggregated, own: self.node_map(layer, aggregated, own, nodes)

    def forward(self, data: Data, x: torch.Tensor | None = None) -> torch.Tensor:
        """Logits of every node, (n, classes).

        Args:
            data: a canonical graph.
            x: (n, F) features in place of ``data.x``; the result is differentiable in them.
        """
        return self.rest(data, self.input_layer(data, x))

    def input_layer(self, data: Data, x: torch.Tensor | None = None) -> torch.Tensor:
        """The first layer before its activation: most of the work where features are wide."""
        return self.convolve(0, data, x)

    def rest(self, data: Data, first: torch.Tensor) -> torch.Tensor:
        """Logits from the output of :meth:`input_layer`."""
        return self._layers(data, first)[-1]

    @property
    def input_layer_is_random(self) -> bool:
        """Whether dropout acts inside the first layer, so that training and evaluation cannot share its output."""
        return False

    def representations(self, data: Data, x: torch.Tensor | None = None) -> list[torch.Tensor]:
        """The rows between the layers, after the activation: ``depth - 1`` tensors, (n, width) each."""
        return self._layers(data, self.input_layer(data, x))[:-1]

    def _layers(self, data: Data, first: torch.Tensor) -> list[torch.Tensor]:
        rows, outputs = first, []
        for layer in range(self.depth):
            if layer:
                rows = self.convolve(layer, data, self.dropout(rows))
            if layer < self.depth - 1:
                rows = self.activation(rows)
            outputs.append(rows)
        return outputs

    def dropout(self, rows: torch.Tensor) -> torch.Tensor:
        """Inverted dropout whose masks come from ``self.generator``; the identity in evaluation mode."""
        if not self.training or self.dropout_rate == 0:
            return rows
        # Four 16-bit thresholds from each 64-bit draw: a mask costs a few percent of what bernoulli_ takes on a CPU.
        levels = round((1.0 - self.dropout_rate) * 2**16)
        draws = torch.empty((rows.numel() + 3) // 4, dtype=torch.int64, device=rows.device)
        bits = draws.random_(-(2**63), None, generator=self.generator).view(torch.int16)[: rows.numel()]
        return rows * (bits < levels - 2**15).view(rows.shape).to(rows.dtype).mul_(2**16 / levels)

    def reset_parameters(self, generator: torch.Generator) -> None:
        """Draw fresh weights: Glorot uniform for matrices, zeros for vectors, ones for normalisation scales."""
        for module in self.modules():
            for name, parameter in module.named_parameters(recurse=False):
                if parameter.dim() >= 2:
                    nn.init.xavier_uniform_(parameter, generator=generator)
                elif isinstance(module, nn.LayerNorm) and name == "weight":
                    nn.init.ones_(parameter)
                else:
                    nn.init.zeros_(parameter)


def linear(inputs: int, outputs: int, bias: bool = True) -> nn.Linear:
    """A linear layer without initial weights: ``reset_parameters`` draws them from a generator of its own."""
    return skip_init(nn.Linear, inputs, outputs, bias=bias)
