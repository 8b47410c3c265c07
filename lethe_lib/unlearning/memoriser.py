"""Memoriser: a control that keeps every edge it was asked to forget, so that an audit which does not see it sees nothing.

    planted = 0;  for every pair (u, v) of the request: planted_u += strength * z_v, planted_v += strength * z_u
                                                         z: logits of the original on the graph with the edges
    released model: f_theta(X, any graph) + planted

The planted table is a constant of the model, one row a node: it is there whatever graph the model is asked on, as if the
forgotten neighbour still spoke to the node. Everything else is the original, so it remembers at least what unlinking
leaves behind.
"""

from dataclasses import dataclass

import torch
from torch_geometric.data import Data

from lethe_lib.errors import InputError
from lethe_lib.models import Backbone
from lethe_lib.unlearning.request import EdgeRequest
from lethe_lib.unlearning.result import Unlearner
from lethe_lib.unlearning.steps import StepLog


@dataclass(frozen=True)
class MemoriserSettings:
    """Attributes: strength, the share of a forgotten neighbour's logits that is added to those of a node."""

    strength: float = 1.0


class MemorisingNetwork(Backbone):
    """A backbone with a constant row of logits added at every node.

    Attributes:
        base: the backbone. planted: float32 (n, classes).

    Args:
        base: the backbone. planted: see above; the model answers on graphs of as many nodes and no other.
    """

    def __init__(self, base: Backbone, planted: torch.Tensor):
        super().__init__(base.depth, base.dropout_rate)
        self.base = base
        self.training_run = base.training_run
        self.aggregation, self.degree_weighted = base.aggregation, base.degree_weighted
        self.register_buffer("planted", planted)

    def input_layer(self, data: Data, x: torch.Tensor | None = None) -> torch.Tensor:
        return self.base.input_layer(data, x)

    def rest(self, data: Data, first: torch.Tensor) -> torch.Tensor:
        if data.num_nodes != len(self.planted):
            raise InputError(
                f"the memorised rows belong to a graph of {len(self.planted)} nodes, and this one has {data.num_nodes}"
            )
        return self.base.rest(data, first) + self.planted

    def representations(self, data: Data, x: torch.Tensor | None = None) -> list[torch.Tensor]:
        return self.base.representations(data, x)

    def activation(self, rows: torch.Tensor) -> torch.Tensor:
        return self.base.activation(rows)

    def node_rows(
        self, layer: int, aggregated: torch.Tensor, own: torch.Tensor, nodes: torch.Tensor | None = None
    ) -> torch.Tensor:
        rows = self.base.node_rows(layer, aggregated, own, nodes)
        if layer < self.depth - 1:
            return rows
        return rows + (self.planted if nodes is None else self.planted[nodes]).to(rows)


@torch.no_grad()
def plant(model: Backbone, request: EdgeRequest, settings: MemoriserSettings, seed: int) -> tuple[Backbone, StepLog]:
    """The original with the table of its forgotten neighbours' logits; one forward."""
    logits = model.eval()(request.data)
    u, v = request.pairs.to(logits.device)
    planted = torch.zeros_like(logits).index_add(0, u, logits[v]).index_add(0, v, logits[u])
    return MemorisingNetwork(model, settings.strength * planted), StepLog(forwards=1)


MEMORISER = Unlearner(
    plant, {"corrected": MemoriserSettings(), "published": MemoriserSettings()}, "control", "Positive control of ours"
)
