"""Fine-tuning: continue training on the retained graph.

    theta' = theta
    repeat S times: theta' <- theta' - step of grad mean_{v in train} loss(f_theta'(G_r)_v, y_v)

The baseline of Golatkar, Achille, Soatto, "Eternal sunshine of the spotless net", CVPR 2020. The request enters only
through G_r: nothing pushes the old views out, so any forgetting is a by-product of further training. The weight decay
is the one that the original was trained with, so that a converged original on an empty request stays where it is.

``published``: the benchmark's single Adam step on every node near the request, test nodes with their labels included,
on the graph that still holds the forgotten edges.
"""

from dataclasses import dataclass

from lethe_lib.models import Backbone
from lethe_lib.unlearning.request import EDGE_REPLACE, PUBLISHED, EdgeRequest
from lethe_lib.unlearning.result import Unlearner
from lethe_lib.unlearning.steps import StepEngine, StepLog


@dataclass(frozen=True)
class FineTuningSettings:
    """Settings.

    Attributes:
        steps: full-batch steps. optimiser: ``adam`` or ``sgd``. learning_rate: of the optimiser.
        on_forget_nodes: train on the forget nodes and graph instead of the retain nodes and graph (the benchmark's
            trait).
    """

    steps: int = 10
    optimiser: str = "adam"
    learning_rate: float = 1e-3
    on_forget_nodes: bool = False


def fine_tune(
    model: Backbone, request: EdgeRequest, settings: FineTuningSettings, seed: int
) -> tuple[Backbone, StepLog]:
    """Run the steps on ``model`` in place; cost S forwards and S backwards.

    The log holds the retain loss before every step (``on_forget_nodes``: the forget loss), that of the step's own forward.
    """
    decay = model.training_run.settings["weight_decay"]
    engine = StepEngine(model, settings.optimiser, settings.learning_rate, decay, seed, "fine_tuning")
    forget = settings.on_forget_nodes
    graph = request.forget_graph if forget else request.retain_graph
    nodes = request.forget_nodes if forget else request.retain_nodes
    name = "forget_loss" if forget else "retain_loss"
    for _ in range(settings.steps):
        loss = engine.cross_entropy(engine.forward(graph), graph, nodes)
        engine.step(loss, **{name: float(loss.detach())})
    return model, engine.finish()


FINE_TUNING = Unlearner(
    fine_tune,
    {
        # Chosen by the published search of the study "tuning".
        "corrected": FineTuningSettings(steps=50, learning_rate=3e-3),
        "published": FineTuningSettings(steps=1, on_forget_nodes=True),
    },
    "generic",
    "Golatkar, Achille, Soatto, CVPR 2020 (baseline)",
    mapping={"corrected": EDGE_REPLACE, "published": PUBLISHED},
)
