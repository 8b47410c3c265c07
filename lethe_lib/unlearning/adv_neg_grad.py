"""AdvNegGrad (NegGrad+): descend on the retained view, ascend on the forgotten one, in one step.

    theta' = theta
    repeat S times:
        L_r = mean_{v in train} loss(f_theta'(G_r)_v, y_v)
        L_f = mean_{v in D_f} loss(f_theta'(G)_v, y_v)
        theta' <- theta' - step of grad (w_retain L_r - w_forget L_f)

NegGrad+ of Kurmanji, Triantafillou, Hayes, Triantafillou, "Towards unbounded machine unlearning", NeurIPS 2023, has the
weights beta and 1 - beta (default 0.95); Advanced NegGrad of Choi and Na, 2023, has 1 and 1. With ``bounded`` the
forget term is min(L_f, log C), so steps that find the forget loss above that of guessing follow the retain term alone.
The weight decay is the original's.

The entry ``adv_neg_grad_matched`` is our variant for edges: w_retain = 1, w_forget = |D_f| / |train|, D_f = the training
nodes whose output moves, and the same dropout masks in both forwards. With all training nodes kept as G_r shows them,
the gradient is then grad L(G_r) - 1/|train| sum_{v in D_f} grad loss_v(G): the difference of views that influence
removal works with, to first order, and old and new views nearly cancel. Hence plain SGD: Adam would turn the small rest
into steps of full length, which wrecks the model where most training nodes are moved.

``published``: the benchmark's single Adam step with weights 1 and 1, every node near the request against all others,
both on G, unguarded.
"""

from dataclasses import dataclass

from lethe_lib.models import Backbone
from lethe_lib.unlearning.request import EDGE_REPLACE, PUBLISHED, EdgeForgetSpec, EdgeRequest
from lethe_lib.unlearning.result import Unlearner
from lethe_lib.unlearning.steps import StepEngine, StepLog, guessing_loss


@dataclass(frozen=True)
class AdvNegGradSettings:
    """Settings.

    Attributes:
        steps: full-batch steps. optimiser: ``adam`` or ``sgd``. learning_rate: of the optimiser.
        w_retain, w_forget: weights of the two mean losses; with ``w_forget`` 0 no forget forward is made, and with
            ``w_retain`` 0 no retain forward.
        clip: largest gradient norm of a step; None for none.
        bounded: cut the forget loss at log C.
    """

    steps: int = 10
    optimiser: str = "adam"
    learning_rate: float = 1e-3
    w_retain: float = 0.95
    w_forget: float = 0.05
    clip: float | None = None
    bounded: bool = True


@dataclass(frozen=True)
class MatchedSettings:
    """Settings of the matched variant, whose weights follow from the request.

    Attributes:
        steps, optimiser, learning_rate, clip, bounded: as in :class:`AdvNegGradSettings`.
    """

    steps: int = 10
    optimiser: str = "sgd"
    learning_rate: float = 0.1
    clip: float | None = None
    bounded: bool = True


def descend_and_ascend(
    model: Backbone, request: EdgeRequest, settings: AdvNegGradSettings, seed: int
) -> tuple[Backbone, StepLog]:
    """Run the steps on ``model`` in place; cost 2S forwards and 2S backwards, less one backward where the bound cuts."""
    return _steps(model, request, settings, seed, settings.w_retain, settings.w_forget, repeat_masks=False)


def swap_views(model: Backbone, request: EdgeRequest, settings: MatchedSettings, seed: int) -> tuple[Backbone, StepLog]:
    """The matched variant: weights 1 and |D_f| / |retain nodes|, the same masks in both forwards; same cost."""
    w_forget = len(request.forget_nodes) / max(len(request.retain_nodes), 1)
    return _steps(model, request, settings, seed, 1.0, w_forget, repeat_masks=True)


def _steps(
    model: Backbone,
    request: EdgeRequest,
    settings: AdvNegGradSettings | MatchedSettings,
    seed: int,
    w_retain: float,
    w_forget: float,
    repeat_masks: bool,
) -> tuple[Backbone, StepLog]:
    decay = model.training_run.settings["weight_decay"]
    engine = StepEngine(model, settings.optimiser, settings.learning_rate, decay, seed)
    forgetting = w_forget != 0 and len(request.forget_nodes) > 0
    bound = guessing_loss(request.data) if settings.bounded else float("inf")
    for _ in range(settings.steps):
        terms, logged = [], {}
        if w_retain:
            graph, nodes = request.retain_graph, request.retain_nodes
            retain_loss = engine.cross_entropy(engine.forward(graph), graph, nodes)
            terms.append(w_retain * retain_loss)
            logged["retain_loss"] = float(retain_loss.detach())
        if forgetting:
            graph, nodes = request.forget_graph, request.forget_nodes
            logits = engine.forward(graph, repeat_masks=repeat_masks)
            forget_loss = engine.cross_entropy(logits, graph, nodes, request.forget_weights)
            logged["forget_loss"] = float(forget_loss.detach())
            if not forget_loss >= bound:
                terms.append(-w_forget * forget_loss)
        if not terms:  # nothing to retain, and the forget loss is above its bound
            break
        engine.step(sum(terms), backwards=len(terms), clip=settings.clip, **logged)
    return model, engine.finish()


ADV_NEG_GRAD = Unlearner(
    descend_and_ascend,
    {
        # Chosen by the published search of the study "tuning".
        "corrected": AdvNegGradSettings(steps=10, learning_rate=1e-3, w_retain=0.8, w_forget=0.2),
        "published": AdvNegGradSettings(steps=1, learning_rate=1e-3, w_retain=1.0, w_forget=1.0, bounded=False),
    },
    "generic",
    "Kurmanji, Triantafillou, Hayes, Triantafillou, NeurIPS 2023; Choi, Na, 2023",
    mapping={"corrected": EDGE_REPLACE, "published": PUBLISHED},
    uses_forget_samples=True,
)

ADV_NEG_GRAD_MATCHED = Unlearner(
    swap_views,
    {"corrected": MatchedSettings(steps=10, learning_rate=1.0)},  # chosen by the search as well
    "addition",
    "ours, on AdvNegGrad",
    mapping={"corrected": EdgeForgetSpec("affected")},
    uses_forget_samples=True,
)
