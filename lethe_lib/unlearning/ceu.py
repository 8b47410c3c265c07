"""CEU: certified edge unlearning, one Newton-like step by conjugate gradient, and what its certificate is worth.

    train     theta = argmin L(.; G) + b^T theta,   b ~ N(0, noise^2 I)                           L as in ``curvature``
    step      theta' = theta - H^-1 1/m sum_{i in T} [grad loss_i(theta; G_r) - grad loss_i(theta; G)],   H on G_r
    bound     |grad L_b(theta'; G_r)| <= r_0 + taylor + solver + rounding
    certify   (epsilon, delta) if the bound is at most noise * epsilon / c (``accountant``), else train again on G_r

Wu, Shen, Ning, Wang, Wang, "Certified edge unlearning for graph neural networks", KDD 2023.

The four terms, for logits a = W z that are linear in the weights (SGC), with ~z = (z, 1) where there is a bias:

- r_0, the gradient norm that training left. Early stopping leaves far more than a step adds.
- taylor = gamma / (2 m) sum_i |~z_i| |W_delta ~z_i|^2 over the training nodes on G_r. Softmax cross-entropy has as its
  third derivative the third central moment of the direction under p; a variable with range w has one of at most
  w^3 / (6 sqrt 3), and a unit direction has range at most sqrt 2, so gamma = sqrt 2 / (3 sqrt 3) = 0.272.
- solver, the residual of the linear system, damping included; rounding, from float64 to the model's float32.

Differences from the paper:

1. H on G_r. On G (``hessian="old"``) the term (H_{G_r} - H_G) delta is first order in the number of edges and in no
   bound, so the certificate is not applicable.
2. The bound holds for the softmax and includes r_0, which the paper takes as 0.
3. Where H is indefinite (no linear model) the damping is raised until CG meets no negative curvature, starting from the
   ridge as in the paper, and the step length is safeguarded. No certificate is given for such models.

With ``noise`` = 0 nothing was perturbed in training, and a small gradient says nothing about indistinguishability: the
certificate is ``not_applicable``, residual and bound are reported. ``noise`` > 0 first trains the linear model on G with
b in the objective, from the given weights to stationarity, since that is the model the theory is about.

``step="published"``: the benchmark's and the authors' code: Hessian of the sum of the losses together with 1/m, so a
step m times too small; H on G; one system per weight tensor; every node near the request, held-out labels included; the
gradient cut to norm 1000. CG starts at 0 and stops at negative curvature, where their optimiser would walk on.
"""

import math
import time
from dataclasses import dataclass

import torch

from lethe_lib.errors import InputError
from lethe_lib.models import Backbone
from lethe_lib.models.propagation import propagated_features
from lethe_lib.seeding import torch_generator
from lethe_lib.unlearning.accountant import Accountant, Certificate
from lethe_lib.unlearning.curvature import Objective, flat_weights, set_weights
from lethe_lib.unlearning.influence import (
    InfluenceSettings,
    add_note,
    chunks,
    gradient_difference,
    influence_step,
    is_linear,
    ridge_of,
    touched_training_nodes,
    why_not_strongly_convex,
    working_dtype,
)
from lethe_lib.unlearning.request import EDGE_REPLACE, PUBLISHED, EdgeRequest
from lethe_lib.unlearning.result import Unlearner
from lethe_lib.unlearning.solvers import conjugate_gradient, minimise
from lethe_lib.unlearning.steps import StepLog

SOFTMAX_GAMMA = math.sqrt(2.0) / (3.0 * math.sqrt(3.0))
"""Lipschitz constant of the Hessian of log-sum-exp, in L2 norms; reached between two classes."""


@dataclass(frozen=True)
class CeuSettings(InfluenceSettings):
    """Settings of the shared step, and of the certificate.

    Attributes:
        noise: standard deviation of each entry of b on the mean scale; 0 trains nothing. Linear models only.
        epsilon, delta: the guarantee wanted.
        chunk_size: edges removed in one step, with everything evaluated anew in between; None removes all at once.
        step: ``influence``, or ``published`` for the traits of the published code; the latter reads only
            ``iterations`` and ``tolerance``.
    """

    iterations: int = 300
    noise: float = 0.0
    epsilon: float = 1.0
    delta: float = 1e-4
    chunk_size: int | None = None
    step: str = "influence"

    def __post_init__(self):
        super().__post_init__()
        if self.step not in ("influence", "published"):
            raise InputError(f"step={self.step!r} is unknown: choose influence or published")
        if self.noise < 0:
            raise InputError(f"noise={self.noise} must be at least 0")


def certified_edge_unlearning(
    model: Backbone, request: EdgeRequest, settings: CeuSettings, seed: int
) -> tuple[Backbone, StepLog]:
    """Take the step, or one step per chunk, in place; the certificate is in the log.

    The rows hold, besides the numbers of the shared step, ``bound`` (so far), ``taylor`` (of this step), ``retrained``
    (1 if the budget ran out here).
    """
    if settings.step == "published":
        return _published(model, request, settings)
    ridge, train, log = ridge_of(model), request.split.train, StepLog()
    certifiable = is_linear(model) and ridge > 0
    if settings.noise > 0 and not certifiable:
        raise InputError(
            f"noise={settings.noise} trains the model again with a noisy objective, for which it must be linear with a "
            f"positive weight decay; this is {model.training_run.backbone} with weight decay {ridge}: leave noise at 0"
        )
    theta, noise, accountant = flat_weights(model, working_dtype(model)), None, None
    dtype = next(model.parameters()).dtype
    if settings.noise > 0:
        start = time.perf_counter()
        theta, noise, initial = _train_with_noise(model, request.data, train, ridge, theta, settings, seed, log)
        log.original_seconds = time.perf_counter() - start
        accountant = Accountant(settings.epsilon, settings.delta, settings.noise, initial)
    bound = math.nan
    for before, after, pairs in chunks(request, settings.chunk_size, seed):
        touched = touched_training_nodes(model, before, pairs)
        old, new = (Objective(model, graph, train, ridge, noise, log) for graph in (before, after))
        step = influence_step(old, new, theta, touched, settings)
        row = {**step.row, "retrained": 0.0}
        if is_linear(model):
            taylor, rounding = taylor_bound(new, step.theta - theta), rounding_bound(new, step.theta, dtype)
            unsolved = step.solution.residual * float(step.difference.norm())
            added = taylor + unsolved + row["damping"] * float(step.solution.x.norm())
            bound = (bound if log.rows else row["gradient_norm"]) + added
            row |= {"taylor": taylor, "bound": bound + rounding}
        theta = step.theta
        if accountant is not None and not accountant.charge(added, rounding):
            theta, noise, bound = _train_with_noise(
                model, after, train, ridge, theta, settings, seed, log, accountant.retrainings + 1
            )
            new = replace_noise(new, noise)
            rounding = rounding_bound(new, theta, dtype)
            accountant.restart(bound, rounding)
            row |= {"retrained": 1.0, "bound": bound + rounding}
        log.rows.append(row)
        add_note(log, step.note)
    released = theta.to(dtype).to(theta.dtype)
    residual = float(new.gradient(released).norm())
    log.certificate = _certificate(model, settings, accountant, residual, log.rows[-1].get("bound", math.nan))
    set_weights(model, theta)
    return model, log


def taylor_bound(objective: Objective, delta: torch.Tensor) -> float:
    """An upper bound of |grad L(theta + delta) - grad L(theta) - H(theta) delta| for a linear model, any theta.

    Args:
        objective: on the graph that H belongs to. delta: (p,).

    Returns:
        On the mean scale, at least 0: second order in delta.
    """
    rows, moves = _rows_and_moves(objective, delta)
    return float(SOFTMAX_GAMMA / 2 * (rows * moves.square()).mean())


def rounding_bound(objective: Objective, theta: torch.Tensor, dtype: torch.dtype) -> float:
    """An upper bound of how far the gradient moves when a linear model's weights are rounded to a dtype."""
    error = theta.to(dtype).to(theta.dtype) - theta
    rows, moves = _rows_and_moves(objective, error)
    return float((rows * moves).mean() / 2 + objective.ridge * error.norm())  # |diag p - p p^T| <= 1/2


def _rows_and_moves(objective: Objective, delta: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """|~z_i| of the training nodes, and how far delta moves their logits, both (m,)."""
    model, data, nodes = objective.model, objective.data, objective.nodes.to(delta.device)
    rows = propagated_features(data, model.aggregation, delta, model.depth)[nodes].square().sum(1)
    bias = any(name.endswith("bias") for name, _ in model.named_parameters())
    with torch.no_grad():
        moves = objective.logits(delta)[nodes].norm(dim=1)
    return (rows + float(bias)).sqrt(), moves


def replace_noise(objective: Objective, noise: torch.Tensor) -> Objective:
    """The same objective with another b."""
    return Objective(objective.model, objective.data, objective.nodes, objective.ridge, noise, objective.log)


def _train_with_noise(
    model, data, train, ridge, theta, settings, seed, log, draw=0
) -> tuple[torch.Tensor, torch.Tensor, float]:
    """Weights that minimise L_b with a fresh b, that b, and the gradient norm that is left."""
    generator = torch_generator(seed, "unlearning", "objective noise", draw)
    noise = settings.noise * torch.randn(theta.shape, generator=generator, dtype=torch.float64)
    objective = Objective(model, data, train, ridge, noise.to(theta), log)
    theta = minimise(objective, theta)
    return theta, objective.noise, float(objective.gradient(theta).norm())


def _certificate(
    model: Backbone, settings: CeuSettings, accountant: Accountant | None, residual: float, bound: float
) -> Certificate:
    """What may be said of the released weights."""
    reason = why_not_strongly_convex(model)
    if not reason and settings.hessian == "old":
        reason = "the Hessian is that of the graph with the edges: no bound of the residual is proved"
    elif not reason and accountant is None:
        reason = "no noise in the training objective: residual and bound do not make models indistinguishable"
    if not reason:
        return accountant.certificate(residual)
    proved = math.nan if settings.hessian == "old" else bound
    return Certificate("not_applicable", residual=residual, bound=proved, noise=settings.noise, reason=reason)


def _published(model: Backbone, request: EdgeRequest, settings: CeuSettings) -> tuple[Backbone, StepLog]:
    """The traits of the published code (module docstring), on the scale of the summed loss as there."""
    log, theta, train = StepLog(), flat_weights(model), request.split.train
    old, new = (Objective(model, graph, train, log=log) for graph in (request.data, request.retained))
    m = len(train)
    v = m * gradient_difference(old, new, theta, request.forget_nodes)
    v = v * min(1.0, 1e3 / max(float(v.norm()), 1e-30))
    product, x, start, negative = old.hessian(theta), torch.zeros_like(theta), 0, 0
    for parameter in model.parameters():
        block = slice(start, start + parameter.numel())
        start = block.stop

        def block_product(part: torch.Tensor, block: slice = block) -> torch.Tensor:
            whole = torch.zeros_like(theta)
            whole[block] = part
            return m * product(whole)[block]

        solution = conjugate_gradient(block_product, v[block], 0.0, settings.tolerance, settings.iterations)
        x[block] = solution.x
        negative += solution.negative_curvature
    step = x / m
    set_weights(model, theta - step)
    relative = float(step.norm() / theta.norm())
    log.rows.append(
        {
            "touched_nodes": float(len(request.forget_nodes)),
            "difference_norm": float(v.norm()) / m,
            "step_norm": float(step.norm()),
            "relative_step": relative,
            "blocks_with_negative_curvature": float(negative),
        }
    )
    log.certificate = Certificate("not_applicable", reason="the published code adds no noise and bounds no residual")
    return model, log


CEU = Unlearner(
    certified_edge_unlearning,
    {"corrected": CeuSettings(), "published": CeuSettings(step="published", hessian="old", iterations=100)},
    "graph-native",
    "Wu, Shen, Ning, Wang, Wang, KDD 2023",
    mapping={"corrected": EDGE_REPLACE, "published": PUBLISHED},
)
