"""BadTeaching: imitate a competent teacher on the retained view and an incompetent one on the forgotten view.

    competent = theta, frozen;   incompetent = the same architecture with random weights, frozen;   theta' = theta
    repeat S times:
        K_f = sum_{v in D_f} KL(p_incompetent(G)_v || p_theta'(G)_v)
        K_r = sum_{v in train} KL(p_competent(G_r)_v || p_theta'(G_r)_v)
        theta' <- theta' - step of grad (K_f + K_r) / (|D_f| + |train|)

Chundawat, Tarun, Mandal, Kankanhalli, "Can bad teaching induce forgetting? Unlearning in deep networks using an
incompetent teacher", AAAI 2023. Temperature T on both. The competent teacher sees G_r like the student: on G it would
hand the forgotten edges on. No label is read, so a mapping with ``train_only=False`` leaks none.

A random GNN answers smoothly over the graph, so what it teaches is alike for linked nodes. ``teacher="uniform"`` is the
control without that trace; ``teacher="edge_ignorant"`` is a variant for edges: the student learns to answer on G as the
original answers on G_r. Full-batch steps in place of the paper's mini-batches; weight decay as the original's.

``published``: the benchmark's single Adam step, every node near the request against all others, both on G, without
dropout.
"""

import copy
from dataclasses import dataclass

import torch

from lethe_lib.errors import InputError
from lethe_lib.models import Backbone
from lethe_lib.seeding import derive_seed, torch_generator
from lethe_lib.unlearning.controls import NoSettings, never_train
from lethe_lib.unlearning.importance import node_order
from lethe_lib.unlearning.request import EDGE_REPLACE, PUBLISHED, EdgeRequest
from lethe_lib.unlearning.result import Unlearner
from lethe_lib.unlearning.steps import StepEngine, StepLog, divergence


@dataclass(frozen=True)
class BadTeachingSettings:
    """Settings.

    Attributes:
        steps: full-batch steps. optimiser: ``adam`` or ``sgd``. learning_rate: of the optimiser.
        temperature: T, divides all logits.
        teacher: ``random``, ``uniform`` or ``edge_ignorant``: who teaches the forgotten view.
        retain_share: share of the retain nodes, drawn once per run, that the competent teacher teaches. The paper's code
            takes 0.3, which gives the forget nodes more weight.
        dropout: whether the student trains with dropout.
    """

    steps: int = 10
    optimiser: str = "adam"
    learning_rate: float = 1e-4
    temperature: float = 1.0
    teacher: str = "random"
    retain_share: float = 1.0
    dropout: bool = True

    def __post_init__(self):
        if self.teacher not in ("random", "uniform", "edge_ignorant"):
            raise InputError(f"teacher={self.teacher!r} is unknown: choose random, uniform or edge_ignorant")
        if not 0.0 < self.retain_share <= 1.0:
            raise InputError(f"retain_share={self.retain_share} must lie in (0, 1]")


def teach_badly(
    model: Backbone, request: EdgeRequest, settings: BadTeachingSettings, seed: int
) -> tuple[Backbone, StepLog]:
    """Run the steps on ``model`` in place.

    Cost: a forward for each teacher (the uniform one needs none, and the two share theirs where both are the original
    on the same graph), then 2S forwards and 2S backwards. Without forget samples the competent teacher alone remains.
    The log's rows hold both divergences; losses are not among them, since no label is read.
    """
    decay = model.training_run.settings["weight_decay"]
    engine = StepEngine(model, settings.optimiser, settings.learning_rate, decay, seed)
    forget = request.forget_nodes.to(engine.device)
    competent = engine.observe(copy.deepcopy(model), request.retain_graph)
    retain = _subset(request, competent, settings.retain_share, seed).to(engine.device)
    incompetent = _incompetent(engine, model, request, settings.teacher, competent, seed) if len(forget) else None
    total = len(forget) + len(retain)
    for _ in range(settings.steps):
        logits = engine.forward(request.retain_graph, dropout=settings.dropout)[retain]
        near = divergence(competent[retain], logits, settings.temperature)
        loss, logged = len(retain) / total * near, {"retain_divergence": float(near.detach())}
        if incompetent is not None:
            logits = engine.forward(request.forget_graph, dropout=settings.dropout)[forget]
            far = divergence(incompetent[forget], logits, settings.temperature)
            loss = loss + len(forget) / total * far
            logged["forget_divergence"] = float(far.detach())
        engine.step(loss, backwards=1 if incompetent is None else 2, **logged)
    return model, engine.finish()


def _incompetent(
    engine: StepEngine, model: Backbone, request: EdgeRequest, teacher: str, competent: torch.Tensor, seed: int
) -> torch.Tensor:
    """Logits, (n, C), that the student is to give on the forget graph."""
    if teacher == "uniform":
        return torch.zeros_like(competent)
    if teacher == "edge_ignorant":
        shared = request.retain_graph is request.retained
        return competent if shared else engine.observe(copy.deepcopy(model), request.retained)
    # A stream of its own: with the original's seed this would be the very start of the original's training.
    random, _ = never_train(model, request, NoSettings(), derive_seed(seed, "incompetent teacher"))
    return engine.observe(random, request.forget_graph)


def _subset(request: EdgeRequest, competent: torch.Tensor, share: float, seed: int) -> torch.Tensor:
    """The retain nodes that are taught, sorted; drawn in an order that does not depend on how nodes are numbered."""
    nodes = request.retain_nodes
    if share == 1.0:
        return nodes
    count = max(1, round(share * len(nodes)))
    drawn = torch.randperm(len(nodes), generator=torch_generator(seed, "unlearning", "retain subset"))[:count]
    ordered = nodes[torch.argsort(node_order(request.retain_graph, competent)[nodes])]
    return ordered[drawn].sort().values


BAD_TEACHING = Unlearner(
    teach_badly,
    {
        # Chosen by the published search of the study "tuning".
        "corrected": BadTeachingSettings(steps=5, learning_rate=3e-4),
        "published": BadTeachingSettings(steps=1, learning_rate=1e-3, dropout=False),
    },
    "generic",
    "Chundawat, Tarun, Mandal, Kankanhalli, AAAI 2023",
    mapping={"corrected": EDGE_REPLACE, "published": PUBLISHED},
    uses_forget_samples=True,
)
