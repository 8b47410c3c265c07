"""UNSIR: impair with learned noise, then repair.

    X~ = X with the rows of D_f replaced by noise N
    repeat K times: N <- N + step of grad_N mean_{v in D_f} loss(f_theta(X~, G)_v, y_v);   rescale N's rows
    impair: step on mean_{D_f} loss(f_theta'(X~, G)_v, y_v) + mean_{train} loss(f_theta'(X, G_r)_v, y_v)
    repair: S steps of fine-tuning on G_r

Tarun, Chundawat, Mandal, Kankanhalli, "Fast yet effective machine unlearning", IEEE TNNLS 2023, made for forgetting
classes; for single samples Choi and Na, 2023.

Noise on a node travels along its edges, so noise much larger than the features wrecks the retained nodes. Here N starts
normal with the features' standard deviation per column, and each of its rows is scaled, at the start and after every
step, to the length of the row it replaces. Two things differ from the paper by that: its penalty lambda |N|^2, which has
nothing left to do, is dropped; and N is dense also where features are sparse, as bags of words are, so a noised row has
the length of a node's features and not their pattern. Noise is learned on the fixed original without dropout.

``published`` (``noise="add"``): standard normal noise is added to every row near the request, moves its outputs as far
as it can in mean square (5 Adam steps at 0.1) and is cut to [-1, 1]; the impair step trains all other nodes under
noised and clean features, the repair step the nodes near the request, all on G. The start of the noise is our reading.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch.nn.functional import cross_entropy

from lethe_lib.errors import InputError
from lethe_lib.models import Backbone
from lethe_lib.models.propagation import dense_features
from lethe_lib.seeding import torch_generator
from lethe_lib.unlearning.importance import node_order
from lethe_lib.unlearning.request import EDGE_REPLACE, PUBLISHED, EdgeRequest
from lethe_lib.unlearning.result import Unlearner
from lethe_lib.unlearning.steps import StepEngine, StepLog


@dataclass(frozen=True)
class UnsirSettings:
    """Settings.

    Attributes:
        noise: ``replace`` or ``add`` (the benchmark's).
        noise_steps: Adam steps on the noise. noise_rate: their rate; under ``replace`` in units of the root mean square
            of the replaced rows' entries.
        impair_steps, impair_rate: Adam steps and rate of the impair phase.
        repair_steps, repair_rate: those of the repair phase, with a fresh optimiser.
    """

    noise: str = "replace"
    noise_steps: int = 5
    noise_rate: float = 0.1
    impair_steps: int = 1
    impair_rate: float = 1e-3
    repair_steps: int = 10
    repair_rate: float = 1e-3

    def __post_init__(self):
        if self.noise not in ("replace", "add"):
            raise InputError(f"noise={self.noise!r} is unknown: choose replace or add")


def impair_and_repair(
    model: Backbone, request: EdgeRequest, settings: UnsirSettings, seed: int
) -> tuple[Backbone, StepLog]:
    """Run noise, impair and repair on ``model`` in place.

    Cost: one forward for the clean outputs, a forward and a backward (to the features alone) for each noise step, two of
    both for each impair step, one of both for each repair step. Without forget samples no noise is learned and the
    impair step trains on the retain nodes alone.
    """
    decay = model.training_run.settings["weight_decay"]
    engine = StepEngine(model, "adam", settings.impair_rate, decay, seed)
    forget_graph, retain_graph = request.forget_graph, request.retain_graph
    forget, retain = request.forget_nodes, request.retain_nodes
    noised = None
    if len(forget) and settings.impair_steps:
        learn = replacing_noise if settings.noise == "replace" else added_noise
        noised = learn(engine, request, settings, seed)
    impaired = forget if settings.noise == "replace" else retain
    for _ in range(settings.impair_steps):
        loss = engine.cross_entropy(engine.forward(retain_graph), retain_graph, retain)
        logged = {"retain_loss": float(loss.detach())}
        if noised is not None:
            noise_loss = engine.cross_entropy(engine.forward(forget_graph, noised), forget_graph, impaired)
            loss, logged["noise_loss"] = loss + noise_loss, float(noise_loss.detach())
        engine.step(loss, backwards=1 if noised is None else 2, **logged)
    engine.optimiser.state.clear()
    for group in engine.optimiser.param_groups:
        group["lr"] = settings.repair_rate
    replaced = settings.noise == "replace"
    graph, nodes = (retain_graph, retain) if replaced else (forget_graph, forget)
    for _ in range(settings.repair_steps):
        loss = engine.cross_entropy(engine.forward(graph), graph, nodes)
        engine.step(loss, **{"retain_loss" if replaced else "forget_loss": float(loss.detach())})
    return model, engine.finish()


def replacing_noise(engine: StepEngine, request: EdgeRequest, settings: UnsirSettings, seed: int) -> torch.Tensor:
    """Features (n, F) whose forget rows are noise of the rows' own lengths that raises the forget loss.

    The log gets the loss before every noise step.
    """
    graph = request.forget_graph
    x, place, noise, _ = _start(engine, request, seed)
    lengths = x[place].norm(dim=1, keepdim=True)
    noise = _rescale(noise * x[request.split.train.to(x.device)].std(dim=0, unbiased=False), lengths)
    labels = graph.y.to(x.device)[place]
    rate = settings.noise_rate * float(lengths.square().mean() / x.shape[1]) ** 0.5

    def value(rows: torch.Tensor) -> torch.Tensor:
        return cross_entropy(engine.forward(graph, x.index_copy(0, place, rows), dropout=False)[place], labels)

    noise = _climb(engine, settings.noise_steps, noise, rate, value, lambda rows: _rescale(rows, lengths))
    return x.index_copy(0, place, noise)


def added_noise(engine: StepEngine, request: EdgeRequest, settings: UnsirSettings, seed: int) -> torch.Tensor:
    """Features (n, F) with noise in [-1, 1] on the forget rows that moves their logits far in mean square."""
    graph = request.forget_graph
    x, place, noise, clean = _start(engine, request, seed)

    def value(rows: torch.Tensor) -> torch.Tensor:
        logits = engine.forward(graph, x.index_add(0, place, rows), dropout=False)
        return (logits - clean)[place].square().mean()

    noise = _climb(engine, settings.noise_steps, noise, settings.noise_rate, value, lambda rows: rows)
    return x.index_add(0, place, noise.clamp(-1.0, 1.0))


def _start(
    engine: StepEngine, request: EdgeRequest, seed: int
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """Features (n, F), forget nodes, their standard normal rows dealt by ``node_order``, clean logits."""
    x = dense_features(request.forget_graph, next(engine.model.parameters()))
    clean = engine.observe(engine.model, request.forget_graph)
    ranks = torch.argsort(torch.argsort(node_order(request.forget_graph, clean)[request.forget_nodes]))
    draws = torch.randn((len(ranks), x.shape[1]), generator=torch_generator(seed, "unlearning", "noise"))
    return x, request.forget_nodes.to(x.device), draws[ranks].to(x), clean


def _climb(
    engine: StepEngine,
    steps: int,
    noise: torch.Tensor,
    rate: float,
    value: Callable[[torch.Tensor], torch.Tensor],
    project: Callable[[torch.Tensor], torch.Tensor],
) -> torch.Tensor:
    """Adam ascent of ``value`` on the noise alone, projected after each step; the weights get no gradient."""
    noise = noise.clone().requires_grad_()
    optimiser = torch.optim.Adam([noise], lr=rate, maximize=True)
    for _ in range(steps):
        reached = value(noise)
        (noise.grad,) = torch.autograd.grad(reached, [noise])
        engine.log.backwards += 1
        engine.log.rows.append({"noise_objective": float(reached.detach())})
        optimiser.step()
        with torch.no_grad():
            noise.copy_(project(noise))
    return noise.detach()


def _rescale(rows: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
    return rows * (lengths / rows.norm(dim=1, keepdim=True).clamp(min=1e-12))


UNSIR = Unlearner(
    impair_and_repair,
    {
        # Chosen by the published search of the study "tuning".
        "corrected": UnsirSettings(impair_steps=5, impair_rate=1e-3, repair_steps=5),
        "published": UnsirSettings(noise="add", repair_steps=1),
    },
    "generic",
    "Tarun, Chundawat, Mandal, Kankanhalli, IEEE TNNLS 2023; Choi, Na, 2023",
    mapping={"corrected": EDGE_REPLACE, "published": PUBLISHED},
    uses_forget_samples=True,
)
