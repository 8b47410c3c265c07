"""NegGrad: gradient ascent on the forget samples.

    theta' = theta
    repeat S times:
        stop if mean_{v in D_f} loss(f_theta'(G)_v, y_v) >= bound
        theta' <- theta' + step of grad mean_{v in D_f} w_v loss(f_theta'(G)_v, y_v), gradient norm at most ``clip``

The baseline of Golatkar, Achille, Soatto, CVPR 2020, in the form of Choi and Na, "Towards machine unlearning
benchmarks: forgetting the personal identities in facial recognition systems", 2023: ascent on the forget samples alone.
The request enters through the old views of the training endpoints; G_r is never seen.

Cross-entropy has no upper bound, so ascent ends in a wrecked model unless something stops it. Guards, all of them
settings: few steps at a small rate, the clip, and a bound on the forget loss. ``bound="validation"`` stops at the loss
of validation nodes of the same classes and degrees, which is what a model that never trained on these nodes would show,
and never later than at log C; it costs S + 1 further forwards. The default stops at log C alone: it comes late, but it
reads no held-out label, so that a run depends on the training labels only; the number and the rate of its steps, which
were chosen on validation nodes of other seeds, keep it away from the bound. No weight decay: the step is the gradient's
alone.

``published``: the benchmark's single Adam step on every node near the request, unguarded.
"""

import math
from dataclasses import dataclass

from torch.nn.functional import cross_entropy

from lethe_lib.errors import InputError
from lethe_lib.models import Backbone
from lethe_lib.unlearning.request import EDGE_REPLACE, PUBLISHED, EdgeRequest
from lethe_lib.unlearning.result import Unlearner
from lethe_lib.unlearning.steps import StepEngine, StepLog, guessing_loss, matched_mean


@dataclass(frozen=True)
class NegGradSettings:
    """Settings.

    Attributes:
        steps: most full-batch steps. optimiser: ``adam`` or ``sgd``. learning_rate: of the optimiser.
        clip: largest gradient norm of a step; None for none.
        bound: forget loss at which ascent stops: ``guessing`` (log C, measured on the step's own forward),
            ``validation`` (class- and degree-matched validation loss of the original on G, measured in evaluation mode,
            or log C where that is less; reads validation labels) or ``none``.
    """

    steps: int = 10
    optimiser: str = "adam"
    learning_rate: float = 1e-4
    clip: float | None = 1.0
    bound: str = "guessing"


def ascend(model: Backbone, request: EdgeRequest, settings: NegGradSettings, seed: int) -> tuple[Backbone, StepLog]:
    """Run the ascent on ``model`` in place.

    Cost S forwards and S backwards for S steps taken (one forward more where a bound ended them); ``validation`` adds
    a forward for the reference and one for every step. Without forget samples nothing is done. The log's rows hold the
    forget loss before each step, and the bound where there is one; a row ``stopped_at`` tells which step was not taken.
    """
    if settings.bound not in ("guessing", "validation", "none"):
        raise InputError(f"bound={settings.bound!r} is unknown: choose guessing, validation or none")
    engine = StepEngine(model, settings.optimiser, settings.learning_rate, 0.0, seed)
    graph, nodes = request.forget_graph, request.forget_nodes
    if len(nodes) == 0:
        return model, engine.finish()
    held_out = settings.bound == "validation"
    bound = math.inf
    if settings.bound == "guessing":
        bound = guessing_loss(graph)
    elif held_out:
        losses = cross_entropy(engine.observe(model, graph), graph.y.to(engine.device), reduction="none")
        bound = min(matched_mean(losses, graph, nodes, request.split.val), guessing_loss(graph))
    for number in range(1, settings.steps + 1):
        loss = engine.cross_entropy(engine.forward(graph), graph, nodes, request.forget_weights)
        level = float(loss.detach())
        if held_out:
            level = float(engine.cross_entropy(engine.observe(model, graph), graph, nodes))
        if bound <= level < math.inf:
            engine.log.rows.append({"stopped_at": float(number), "forget_loss": level, "bound": bound})
            break
        extra = {} if bound == math.inf else {"bound": bound}
        engine.step(-loss, clip=settings.clip, forget_loss=level, **extra)
    return model, engine.finish()


NEG_GRAD = Unlearner(
    ascend,
    {
        # Chosen by the published search of the study "tuning".
        "corrected": NegGradSettings(steps=5, learning_rate=1e-4),
        "published": NegGradSettings(steps=1, learning_rate=1e-3, clip=None, bound="none"),
    },
    "generic",
    "Golatkar, Achille, Soatto, CVPR 2020 (baseline); Choi, Na, 2023",
    mapping={"corrected": EDGE_REPLACE, "published": PUBLISHED},
    uses_forget_samples=True,
)
