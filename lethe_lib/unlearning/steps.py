"""The step engine of every method that trains: optimiser, dropout stream, counters, guards against collapse.

Costs are counted in full-batch forwards and backwards, which does not depend on the machine. Guards are settings of the
methods and leave their trace in the log; none of them changes a method unseen:

- ``clip``: the gradient norm of a step that ascends is cut to this value;
- a loss bound at which ascent stops: log C, the loss of guessing, or :func:`matched_mean` over validation nodes;
- a step that leaves a weight that is not finite is taken back, and the run ends as ``diverged``.
"""

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import torch
from torch.nn.functional import cross_entropy
from torch.nn.utils import clip_grad_norm_
from torch_geometric.data import Data

from lethe_lib.errors import InputError, TrainingDiverged
from lethe_lib.models import Backbone
from lethe_lib.seeding import torch_generator

if TYPE_CHECKING:
    from lethe_lib.unlearning.accountant import Certificate


@dataclass
class StepLog:
    """What a run did.

    Attributes:
        forwards, backwards: counts over the whole graph.
        rows: one row of named numbers per step; for methods that solve linear systems, with the residuals. The losses
            are those that the step computed anyway, in training mode, under the names ``forget_loss`` and
            ``retain_loss``: a method without a forget term logs no forget loss, and one that reads no label logs none
            at all. ``reporting.followed_runs.follow`` measures both losses of any method after every step, in
            evaluation mode and always on the same nodes, by forwards that do not count as the method's.
        note: a sentence on what a reader of the result must know though the run is ``ok``; it becomes the reason.
        certificate: what is claimed of the released model; None for methods that claim nothing.
        original_seconds: spent on training, on the graph with the edges, an original of the method's own, which would
            stand before any request. audit_seconds: spent on measuring what the method itself does not need. Neither
            counts as unlearning.
    """

    forwards: int = 0
    backwards: int = 0
    rows: list[dict[str, float]] = field(default_factory=list)
    note: str = ""
    certificate: "Certificate | None" = None
    original_seconds: float = 0.0
    audit_seconds: float = 0.0


class StepsDiverged(TrainingDiverged):
    """A step met a number that is not finite; the model has its last finite weights, ``log`` tells the way there."""

    def __init__(self, message: str, log: StepLog):
        super().__init__(message)
        self.log = log


class StepEngine:
    """A fresh optimiser on a model, with its own random stream and its log.

    Args:
        model: the model to change in place.
        optimiser: ``adam`` or ``sgd``.
        learning_rate, weight_decay: as torch's optimisers take them.
        seed, purpose: name the random stream of the dropout masks. The default is the stream of fine-tuning, so that a
            method whose further terms are switched off takes fine-tuning's steps bit for bit.
        momentum: of ``sgd``.
    """

    def __init__(
        self,
        model: Backbone,
        optimiser: str,
        learning_rate: float,
        weight_decay: float,
        seed: int,
        purpose: str = "fine_tuning",
        momentum: float = 0.0,
    ):
        kinds = {"adam": torch.optim.Adam, "sgd": torch.optim.SGD}
        if optimiser not in kinds:
            raise InputError(f"unknown optimiser {optimiser!r}: choose {' or '.join(kinds)}")
        if momentum and optimiser != "sgd":
            raise InputError(f"momentum={momentum} is a setting of sgd; with {optimiser} leave it at 0")
        extra = {"momentum": momentum} if momentum else {}
        self.model = model
        self.device = next(model.parameters()).device
        self.optimiser = kinds[optimiser](model.parameters(), lr=learning_rate, weight_decay=weight_decay, **extra)
        self.log = StepLog()
        model.generator = torch_generator(seed, "unlearning", purpose, device=str(self.device))
        self._before_forward = model.generator.get_state()

    def forward(
        self, data: Data, x: torch.Tensor | None = None, dropout: bool = True, repeat_masks: bool = False
    ) -> torch.Tensor:
        """Logits to differentiate, counted.

        Args:
            data: the graph.
            x: features in place of the graph's.
            dropout: training mode; False evaluates without dropout.
            repeat_masks: draw the dropout masks of the forward before again. Masks of node rows are then the same; GAT
                also drops attention weights, whose number depends on the graph, so there they are not.
        """
        self.log.forwards += 1
        self.model.train(dropout)
        if repeat_masks:
            self.model.generator.set_state(self._before_forward)
        else:
            self._before_forward = self.model.generator.get_state()
        return self.model(data, x)

    @torch.no_grad()
    def observe(self, model: Backbone, data: Data) -> torch.Tensor:
        """Logits of a teacher, or of the model itself, in evaluation mode and without a gradient; counted."""
        self.log.forwards += 1
        return model.eval()(data)

    def cross_entropy(
        self, logits: torch.Tensor, data: Data, nodes: torch.Tensor, weights: torch.Tensor | None = None
    ) -> torch.Tensor:
        """Mean cross-entropy over ``nodes``, weighted if ``weights`` are given; no node is an error, never a NaN."""
        _refuse_empty(nodes)
        nodes = nodes.to(self.device)
        labels = data.y.to(self.device)[nodes]
        if weights is None:
            return cross_entropy(logits[nodes], labels)
        weights = weights.to(self.device)
        return (cross_entropy(logits[nodes], labels, reduction="none") * weights).sum() / weights.sum()

    def step(self, loss: torch.Tensor, backwards: int = 1, clip: float | None = None, **logged: float) -> None:
        """One descent step on ``loss``.

        Args:
            loss: a scalar; negate it to ascend.
            backwards: graphs that the loss was evaluated on, for the count.
            clip: largest gradient norm; None leaves the gradient as it is.
            **logged: numbers for this step's row of the log.

        Raises:
            StepsDiverged: the loss, or a weight after the step, is not finite; the model has its last finite weights.
        """
        number = len(self.log.rows) + 1
        if not torch.isfinite(loss):
            raise StepsDiverged(f"the loss is {float(loss.detach())} at step {number}", self.finish())
        self.optimiser.zero_grad(set_to_none=True)
        loss.backward()
        self.log.backwards += backwards
        row = {"loss": float(loss.detach()), **logged}
        if clip is not None:
            row["gradient_norm"] = float(clip_grad_norm_(self.model.parameters(), clip))
        moving = [parameter for parameter in self.model.parameters() if parameter.requires_grad]
        before = [parameter.detach().clone() for parameter in moving]
        self.optimiser.step()
        if not all(bool(torch.isfinite(parameter).all()) for parameter in moving):
            with torch.no_grad():
                for parameter, value in zip(moving, before, strict=True):
                    parameter.copy_(value)
            raise StepsDiverged(f"a weight is not finite after step {number}; the step was taken back", self.finish())
        self.log.rows.append(row)

    def finish(self) -> StepLog:
        """Leave the model in evaluation mode without a random stream, and hand over the log."""
        self.model.generator = None
        self.model.zero_grad(set_to_none=True)
        self.model.eval()
        return self.log


def finite(model: Backbone) -> bool:
    """Whether every weight is finite."""
    return all(bool(torch.isfinite(parameter).all()) for parameter in model.parameters())


def divergence(teacher: torch.Tensor, student: torch.Tensor, temperature: float = 1.0) -> torch.Tensor:
    """Mean over the rows of KL(p_teacher || p_student) at a temperature, in nats; zero iff the posteriors are equal.

    Args:
        teacher, student: (m, C) logits.
        temperature: divides both logits.
    """
    _refuse_empty(teacher)
    wanted = torch.log_softmax(teacher / temperature, dim=1)
    given = torch.log_softmax(student / temperature, dim=1)
    return (wanted.exp() * (wanted - given)).sum(dim=1).mean()


def guessing_loss(data: Data) -> float:
    """log C: the cross-entropy of a model that knows nothing, in nats."""
    return math.log(int(data.num_classes))


def matched_mean(values: torch.Tensor, data: Data, nodes: torch.Tensor, reference: torch.Tensor) -> float:
    """Mean of a per-node number over reference nodes that are like ``nodes`` in class and degree.

    Every node of ``nodes`` contributes the mean over the reference nodes of its class and degree bin (bins double in
    width: 0, 1, 2 to 3, 4 to 7, ...); where that cell is empty, over those of its class; where its class is missing
    too, over all. It tells what a number would be on such nodes if they had not been trained on. Reads the labels of
    the reference nodes.

    Args:
        values: (n,) numbers, one for every node of the graph.
        data: the graph that gives classes and degrees.
        nodes, reference: node indices, neither empty.

    Example:
        With nodes of one class whose degrees all lie in one bin, it is the plain mean over the reference nodes of that
        class and bin.
    """
    _refuse_empty(nodes)
    _refuse_empty(reference)
    degree = torch.bincount(data.edge_index[0], minlength=data.num_nodes)
    cell = torch.floor(torch.log2(degree.double().clamp(min=0.5))).long() + 1  # degree 0 is bin 0
    values = values.detach().cpu().double()[reference]
    total = 0.0
    for node in nodes.tolist():
        same_class = data.y[reference] == data.y[node]
        like = same_class & (cell[reference] == cell[node])
        chosen = like if like.any() else same_class if same_class.any() else torch.ones_like(like)
        total += float(values[chosen].mean())
    return total / len(nodes)


def _refuse_empty(nodes: torch.Tensor) -> None:
    if len(nodes) == 0:
        raise InputError("a loss over no nodes: this mapping leaves nothing to train on; choose another mapping")
