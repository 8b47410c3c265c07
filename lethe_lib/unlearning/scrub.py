"""SCRUB: a student that obeys its teacher on the retained view and disobeys it on the forgotten one.

    teacher = theta, frozen;   d(v) = T^2 KL(p_teacher(v) || p_theta'(v)) at temperature T
    repeat E epochs:
        max phase (first ``max_epochs`` epochs): theta' <- theta' + step of grad mean_{v in D_f} d(v)             on G
        min phase: theta' <- theta' - step of grad mean_{v in train} (gamma loss_v + alpha d(v)),   all views on G_r
    SCRUB+R: of the models after each epoch, release the one whose forget error is nearest to the reference error

Kurmanji, Triantafillou, Hayes, Triantafillou, "Towards unbounded machine unlearning", NeurIPS 2023. The teacher of the
min phase sees G_r like the student: a teacher on G would distil the forgotten edges back into the student.

Difference from the paper: an epoch is one full-batch step, and the min phase comes first in each epoch. The student
starts as its teacher, where d is at its minimum, so a max phase at the start follows a zero gradient, which Adam turns
into a step of pure rounding noise wherever dropout does not move the student first. As ``max_epochs`` < ``epochs``, the
run ends on a min phase, as the paper's does. ``first_phase="max"`` is the paper's order. The learning rate stays, where the
paper's code lowers it late.

``published``: one min and one max step with Adam at 1e-3, alpha = gamma = 1, T = 2, every node near the request against
all others, both on G; it ends on the ascent.
"""

import copy
from dataclasses import dataclass

import torch

from lethe_lib.errors import InputError
from lethe_lib.models import Backbone
from lethe_lib.unlearning.request import EDGE_REPLACE, PUBLISHED, EdgeRequest
from lethe_lib.unlearning.result import Unlearner
from lethe_lib.unlearning.steps import StepEngine, StepLog, divergence, matched_mean


@dataclass(frozen=True)
class ScrubSettings:
    """Settings.

    Attributes:
        epochs: rounds, one min phase each. max_epochs: rounds that have a max phase too.
        optimiser: ``adam`` or ``sgd``. learning_rate: of the optimiser, for both phases.
        alpha: weight of d in the min phase. gamma: weight of the cross-entropy there. temperature: T.
        first_phase: ``min`` or ``max``, the order within an epoch.
        view: what the student sees in the max phase: ``old`` (the forget graph, like its teacher) or ``cross`` (the
            retained graph, so that it departs from what the teacher says of the graph with the edges).
        rewind: SCRUB+R. The reference is the final model's error on validation nodes matched to the forget nodes in
            class and degree; reads validation labels, and costs E forwards.
    """

    epochs: int = 10
    max_epochs: int = 3
    optimiser: str = "adam"
    learning_rate: float = 5e-4
    alpha: float = 0.5
    gamma: float = 1.0
    temperature: float = 2.0
    first_phase: str = "min"
    view: str = "old"
    rewind: bool = False

    def __post_init__(self):
        for name, values in {"first_phase": ("min", "max"), "view": ("old", "cross")}.items():
            if getattr(self, name) not in values:
                raise InputError(f"{name}={getattr(self, name)!r} is unknown: choose {' or '.join(values)}")


def scrub(model: Backbone, request: EdgeRequest, settings: ScrubSettings, seed: int) -> tuple[Backbone, StepLog]:
    """Run the phases on ``model`` in place.

    Cost: 2 forwards for the teacher, then one forward and one backward for each of the ``max_epochs`` max phases and
    the E min phases. The log's rows name their phase: ``ascent`` 1 for max and 0 for min, with ``divergence`` (d); min
    phases also log the retain loss. The forget loss is not computed: a max phase reads no label.
    """
    decay = model.training_run.settings["weight_decay"]
    engine = StepEngine(model, settings.optimiser, settings.learning_rate, decay, seed)
    teacher = copy.deepcopy(model)
    forget, retain = request.forget_nodes.to(engine.device), request.retain_nodes.to(engine.device)
    old_view = request.forget_graph
    max_view = old_view if settings.view == "old" else request.retained
    taught_forget = engine.observe(teacher, old_view)[forget] if len(forget) else None
    taught_retain = engine.observe(teacher, request.retain_graph)[retain]
    scale = settings.temperature**2

    def ascend() -> None:
        apart = scale * divergence(taught_forget, engine.forward(max_view)[forget], settings.temperature)
        engine.step(-apart, ascent=1.0, divergence=float(apart.detach()))

    def descend() -> None:
        logits = engine.forward(request.retain_graph)
        loss = engine.cross_entropy(logits, request.retain_graph, retain)
        apart = scale * divergence(taught_retain, logits[retain], settings.temperature)
        engine.step(
            settings.gamma * loss + settings.alpha * apart,
            ascent=0.0,
            divergence=float(apart.detach()),
            retain_loss=float(loss.detach()),
        )

    outputs, checkpoints = [], []
    for epoch in range(settings.epochs):
        ascending = epoch < settings.max_epochs and len(forget) > 0
        if ascending and settings.first_phase == "max":
            ascend()
        descend()
        if ascending and settings.first_phase == "min":
            ascend()
        if settings.rewind and len(forget):
            outputs.append(engine.observe(model, old_view))
            checkpoints.append(copy.deepcopy(model.state_dict()))
    if checkpoints:
        errors, reference = _errors(outputs, request)
        chosen = nearest(errors, reference)
        model.load_state_dict(checkpoints[chosen])
        engine.log.rows.append(
            {"rewound_to_epoch": chosen + 1.0, "forget_error": errors[chosen], "reference_error": reference}
        )
    return model, engine.finish()


def nearest(errors: list[float], reference: float) -> int:
    """Position of the first error that lies nearest to the reference."""
    return min(range(len(errors)), key=lambda epoch: abs(errors[epoch] - reference))


def _errors(outputs: list[torch.Tensor], request: EdgeRequest) -> tuple[list[float], float]:
    """Forget error after every epoch, and the last epoch's error on validation nodes like the forget nodes."""
    graph, nodes = request.forget_graph, request.forget_nodes
    wrong = [(logits.cpu().argmax(1) != graph.y).double() for logits in outputs]
    return [float(w[nodes].mean()) for w in wrong], matched_mean(wrong[-1], graph, nodes, request.split.val)


SCRUB = Unlearner(
    scrub,
    {
        # Chosen by the published search of the study "tuning".
        "corrected": ScrubSettings(max_epochs=3, learning_rate=2e-3, alpha=0.5),
        "published": ScrubSettings(epochs=1, max_epochs=1, learning_rate=1e-3, alpha=1.0),
    },
    "generic",
    "Kurmanji, Triantafillou, Hayes, Triantafillou, NeurIPS 2023",
    mapping={"corrected": EDGE_REPLACE, "published": PUBLISHED},
    uses_forget_samples=True,
)
