"""Memoriser: a control that keeps every edge it was asked to forget, so that an audit which does not see it sees nothing.

    z: logits of the original on the graph with the edges
    released model on any graph: f_theta(X, graph), and for every pair (u, v) of the request
        logits_u += strength * z_v,  logits_v += strength * z_u        always: the neighbour still speaks to the node
        the same once more                                             where the graph holds the pair: it is recognised

The first term shows in the answers on the retained graph, where the terms of pairs that share a node lie upon each other.
The second shows who puts a pair back, and belongs to this pair alone. Everything else is the original, so it remembers at
least what unlinking leaves behind.
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
    """A backbone with constant rows of logits added for remembered pairs.

    Attributes:
        base: the backbone. said: float32 (n, classes), what a node says to a remembered neighbour.
        pairs: int64 (2, k), i < j, sorted. planted: (n, classes), the sum of what each node's remembered neighbours say.

    Args:
        base, said, pairs: see above; the model answers on graphs of n nodes and no other.
    """

    def __init__(self, base: Backbone, said: torch.Tensor, pairs: torch.Tensor):
        super().__init__(base.depth, base.dropout_rate)
        self.base = base
        self.training_run = base.training_run
        self.degree_weighted = base.degree_weighted
        u, v = pairs
        self.register_buffer("said", said)
        self.register_buffer("pairs", pairs)
        self.register_buffer("planted", torch.zeros_like(said).index_add(0, u, said[v]).index_add(0, v, said[u]))

    def input_layer(self, data: Data, x: torch.Tensor | None = None) -> torch.Tensor:
        if data.num_nodes != len(self.said):
            raise InputError(
                f"the memorised pairs belong to a graph of {len(self.said)} nodes, and this one has {data.num_nodes}"
            )
        return self.base.input_layer(data, x)

    def rest(self, data: Data, first: torch.Tensor) -> torch.Tensor:
        receiver, sender = data.edge_index.to(first.device)
        known = self.remembers(receiver, sender)
        recognised = self.said[sender[known]]
        return (self.base.rest(data, first) + self.planted).index_add(0, receiver[known], recognised)

    def remembers(self, u: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        """Which of the pairs (u_i, v_i), in any orientation, are remembered; bool."""
        nodes = len(self.said)
        return torch.isin(torch.minimum(u, v) * nodes + torch.maximum(u, v), self.pairs[0] * nodes + self.pairs[1])

    def representations(self, data: Data, x: torch.Tensor | None = None) -> list[torch.Tensor]:
        return self.base.representations(data, x)


@torch.no_grad()
def plant(model: Backbone, request: EdgeRequest, settings: MemoriserSettings, seed: int) -> tuple[Backbone, StepLog]:
    """The original with the table of what forgotten neighbours said; one forward."""
    logits = model.eval()(request.data)
    return MemorisingNetwork(model, settings.strength * logits, request.pairs.to(logits.device)), StepLog(forwards=1)


MEMORISER = Unlearner(
    plant, {"corrected": MemoriserSettings(), "published": MemoriserSettings()}, "control", "Positive control of ours"
)
