"""The step engine of every method that trains: optimiser, dropout stream, counters, guards against non-finite numbers.

Costs are counted in full-batch forwards and backwards, which does not depend on the machine.
"""

from dataclasses import dataclass, field

import torch
from torch.nn.functional import cross_entropy
from torch_geometric.data import Data

from lethe_lib.errors import InputError, TrainingDiverged
from lethe_lib.models import Backbone
from lethe_lib.seeding import torch_generator


@dataclass
class StepLog:
    """What a run did: counts of forwards and backwards, and one row of named numbers per step."""

    forwards: int = 0
    backwards: int = 0
    rows: list[dict[str, float]] = field(default_factory=list)


class StepEngine:
    """A fresh optimiser on a model, with its own random stream and its log.

    Args:
        model: the model to change in place.
        optimiser: ``adam`` or ``sgd`` (without momentum).
        learning_rate, weight_decay: as torch's optimisers take them.
        seed, purpose: name the random stream of the dropout masks.
    """

    def __init__(
        self,
        model: Backbone,
        optimiser: str,
        learning_rate: float,
        weight_decay: float,
        seed: int,
        purpose: str,
    ):
        kinds = {"adam": torch.optim.Adam, "sgd": torch.optim.SGD}
        if optimiser not in kinds:
            raise InputError(f"unknown optimiser {optimiser!r}: choose {' or '.join(kinds)}")
        self.model = model
        self.device = next(model.parameters()).device
        self.optimiser = kinds[optimiser](model.parameters(), lr=learning_rate, weight_decay=weight_decay)
        self.log = StepLog()
        model.generator = torch_generator(seed, "unlearning", purpose, device=str(self.device))

    def forward(self, data: Data) -> torch.Tensor:
        """Logits in training mode, counted."""
        self.log.forwards += 1
        self.model.train()
        return self.model(data)

    def cross_entropy(self, logits: torch.Tensor, data: Data, nodes: torch.Tensor) -> torch.Tensor:
        """Mean cross-entropy over ``nodes``; an empty set is an error, never a NaN."""
        if len(nodes) == 0:
            raise InputError("a loss over no nodes: this mapping leaves nothing to train on; choose another mapping")
        nodes = nodes.to(self.device)
        return cross_entropy(logits[nodes], data.y.to(self.device)[nodes])

    def step(self, loss: torch.Tensor, **logged: float) -> None:
        """One descent step on ``loss``; keeps the last finite weights and raises when the loss is not finite."""
        if not torch.isfinite(loss):
            raise TrainingDiverged(f"the loss is {float(loss.detach())} at step {len(self.log.rows) + 1}")
        self.optimiser.zero_grad(set_to_none=True)
        loss.backward()
        self.log.backwards += 1
        self.optimiser.step()
        self.log.rows.append({"loss": float(loss.detach()), **logged})

    def finish(self) -> StepLog:
        """Leave the model in evaluation mode without a random stream, and hand over the log."""
        self.model.generator = None
        self.model.eval()
        return self.log
