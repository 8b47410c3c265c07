"""The influence step that GIF, CEU and IDEA share: where the optimum goes when edges leave the graph, to first order.

    T       = training nodes whose output can change (within the model's reach of an endpoint, on G)
    Delta g = sum_{i in T} grad loss_i(theta; G_r) - grad loss_i(theta; G)
    delta   = - (H + eta I)^-1 Delta g / m,     H = curvature of the mean objective on G_r at theta
    theta'  = theta + alpha delta               alpha = 1, or found by the safeguard where the model is not convex

Koh and Liang, "Understanding black-box predictions via influence functions", ICML 2017; for graphs Wu, Yang, Qian, Sui,
Wang, He, "GIF", WWW 2023, and Wu, Shen, Ning, Wang, Wang, "Certified edge unlearning for graph neural networks", KDD
2023. Ridge and objective noise are the same before and after, so they leave Delta g; only training labels enter.

Which graph H belongs to decides the order of the error. If theta is stationary on G, then with H on G_r the step is
Newton's from theta towards the optimum on G_r, and what is left is the curvature's change along the step, second order
in delta with one Lipschitz constant. With H on G (``hessian="old"``) a term (H_{G_r} - H_G) delta joins it, which no
Lipschitz constant in theta covers.

Where theta is not stationary (early stopping, dropout), the step does not aim at an optimum but at the point whose
gradient on G_r is what the gradient on G was: grad L(theta'; G_r) = grad L(theta; G). The row of the log holds both
gradient norms, so that a reader sees how far the theory is from the model.

The safeguard tries alpha = 1, 1/2, 1/4, ... and takes the one with the smallest mismatch
|grad L(theta'; G_r) - grad L(theta; G)|; where none makes it smaller than it was, alpha = 0 and the model stays (the
note says so). From a stationary model that is the gradient norm on G_r. From an early-stopped one it is not, and the
gradient norm on G_r itself would be no guide: it measures how unfinished training was, not what the edges left behind.
It uses training labels only.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch_geometric.data import Data

from lethe_lib.errors import InputError
from lethe_lib.models import Backbone
from lethe_lib.models.gcn import GCN
from lethe_lib.models.sgc import SGC
from lethe_lib.seeding import torch_generator
from lethe_lib.structure import affected_nodes, remove_edges
from lethe_lib.unlearning.curvature import Objective, Product
from lethe_lib.unlearning.request import EdgeRequest
from lethe_lib.unlearning.solvers import Solution, conjugate_gradient, largest_eigenvalue, lissa
from lethe_lib.unlearning.steps import StepLog, StepsDiverged

NO_OP = 1e-6
"""A step shorter than this share of the weights' norm is called effectively a no-op in the note."""

HALVINGS = 10
"""How often the safeguard halves alpha."""


@dataclass(frozen=True)
class InfluenceSettings:
    """Settings of the shared step.

    Attributes:
        hessian: graph of the curvature: ``new`` (G_r) or ``old`` (G).
        curvature: ``hessian`` or ``gauss_newton``; the same where the logits are linear in the weights. Where CG meets
            negative curvature the damping is raised until it does not, and the note says so.
        solver: ``cg`` or ``lissa``. iterations: most products of either. tolerance: of CG, relative residual.
        damping: CG's eta on the mean scale, in addition to the ridge.
        scale: LiSSA's s on the scale of the SUM of the losses, as papers state it; None measures the largest curvature.
        damp: LiSSA's d in [0, 1); d times s is its effective damping.
        safeguard: choose alpha for models whose objective is not convex; False takes alpha = 1.
    """

    hessian: str = "new"
    curvature: str = "hessian"
    solver: str = "cg"
    iterations: int = 100
    tolerance: float = 1e-8
    damping: float = 0.0
    scale: float | None = None
    damp: float = 0.0
    safeguard: bool = True

    def __post_init__(self):
        allowed = {"hessian": ("new", "old"), "curvature": ("hessian", "gauss_newton"), "solver": ("cg", "lissa")}
        for name, values in allowed.items():
            if getattr(self, name) not in values:
                raise InputError(f"{name}={getattr(self, name)!r} is unknown: choose {' or '.join(values)}")
        if self.damping < 0 or self.iterations < 1 or self.tolerance < 0:
            raise InputError("damping and tolerance must be at least 0, iterations at least 1")
        if self.scale is not None and self.scale <= 0:
            raise InputError(f"scale={self.scale} must be positive")
        if not 0 <= self.damp < 1:
            raise InputError(f"damp={self.damp} must lie in [0, 1)")


@dataclass(frozen=True)
class InfluenceStep:
    """One step and what it was made of, all on the mean scale.

    Attributes:
        theta: (p,), the weights after it.
        difference: Delta g / m, (p,).
        solution: of the linear system for it. length: alpha.
        row: the numbers for the log.
        note: a sentence for the reader, or nothing.
    """

    theta: torch.Tensor
    difference: torch.Tensor
    solution: Solution
    length: float
    row: dict[str, float]
    note: str


def is_linear(model: Backbone) -> bool:
    """Whether the logits are linear in the weights, which makes the training objective convex."""
    return isinstance(model, SGC) or (isinstance(model, GCN) and model.depth == 1)


def working_dtype(model: Backbone) -> torch.dtype:
    """float64 where the theory is exact (linear models), else the model's own."""
    return torch.float64 if is_linear(model) else next(model.parameters()).dtype


def ridge_of(model: Backbone) -> float:
    """The ridge of the objective that training minimised: Adam's weight decay."""
    return float(model.training_run.settings["weight_decay"])


def why_not_strongly_convex(model: Backbone) -> str:
    """Why no certificate can rest on the model's training objective: a sentence, empty where it is strongly convex."""
    if not is_linear(model):
        return f"the objective of {model.training_run.backbone} is not convex in its weights"
    if ridge_of(model) == 0:
        return "the model was trained without weight decay, so its objective is not strongly convex"
    return ""


def touched_training_nodes(model: Backbone, data: Data, pairs: torch.Tensor) -> torch.Tensor:
    """The training nodes whose logits can change when the pairs leave the graph, sorted int64."""
    nodes = affected_nodes(data, pairs, model.reach)
    return nodes[torch.isin(nodes, model.training_run.split.train)]


def chunks(request: EdgeRequest, chunk_size: int | None, seed: int) -> Iterator[tuple[Data, Data, torch.Tensor]]:
    """The request as a sequence of removals: (graph before, graph after, pairs removed).

    Pairs come in a random order that does not depend on the model, since certificates assume requests that do not.

    Args:
        request: the whole request. chunk_size: pairs in one removal; None for all at once. seed: of the order.
    """
    if chunk_size is not None and chunk_size < 1:
        raise InputError(f"chunk_size={chunk_size} must be at least 1 edge, or None for all at once")
    count = request.pairs.shape[1]
    if chunk_size is None or chunk_size >= count:
        yield request.data, request.retained, request.pairs
        return
    order = torch.randperm(count, generator=torch_generator(seed, "unlearning", "order of removal"))
    before = request.data
    for part in order.split(chunk_size):
        pairs = request.pairs[:, part]
        after = remove_edges(before, pairs)
        yield before, after, pairs
        before = after


def gradient_difference(before: Objective, after: Objective, theta: torch.Tensor, nodes: torch.Tensor) -> torch.Tensor:
    """Delta g / m, (p,): what the removal changes in the mean gradient. Exactly 0 if no node is given."""
    if len(nodes) == 0:
        return torch.zeros_like(theta)
    return (after.summed_gradient(theta, nodes) - before.summed_gradient(theta, nodes)) / len(after.nodes)


def influence_step(
    before: Objective,
    after: Objective,
    theta: torch.Tensor,
    touched: torch.Tensor,
    settings: InfluenceSettings,
) -> InfluenceStep:
    """One step from ``theta`` (module docstring).

    Args:
        before, after: the objective on the graph with and without the removed pairs.
        theta: (p,), in the dtype to work in.
        touched: nodes of Delta g.
        settings: of the step.

    Raises:
        StepsDiverged: LiSSA diverged.
    """
    difference = gradient_difference(before, after, theta, touched)
    gradient_old, gradient_new = before.gradient(theta), after.gradient(theta)
    solution, damping, note = _solve(after if settings.hessian == "new" else before, theta, difference, settings)
    length, moved = 1.0, theta - solution.x
    if settings.safeguard and not is_linear(after.model) and bool(difference.any()):
        length, moved, gradient_after = safeguarded(after, theta, -solution.x, gradient_old)
        if length == 0.0:
            note = _join(note, "no step length brought the training gradient nearer to the old one: the model stays")
    else:
        gradient_after = after.gradient(moved)
    step_norm, weight_norm = float((moved - theta).norm()), float(theta.norm())
    if len(touched) == 0:
        note = "no training node is within reach of the request, so the exact step is zero"
    elif length > 0 and step_norm < NO_OP * weight_norm:
        note = _join(note, f"effectively a no-op: the step is {step_norm / weight_norm:.1e} of the weights' norm")
    row = {
        "touched_nodes": float(len(touched)),
        "gradient_norm": float(gradient_old.norm()),
        "retained_gradient_norm": float(gradient_new.norm()),
        "difference_norm": float(difference.norm()),
        "solver_residual": solution.residual,
        "solver_iterations": float(solution.iterations),
        "damping": damping,
        "step_length": length,
        "step_norm": step_norm,
        "relative_step": step_norm / weight_norm if weight_norm else 0.0,
        "released_gradient_norm": float(gradient_after.norm()),
        "mismatch": float((gradient_after - gradient_old).norm()),
    }
    return InfluenceStep(moved, difference, solution, length, row, note)


def safeguarded(
    after: Objective, theta: torch.Tensor, direction: torch.Tensor, target: torch.Tensor
) -> tuple[float, torch.Tensor, torch.Tensor]:
    """The step length among 0, 1, 1/2, ... whose gradient on the retained graph is nearest to a target.

    Args:
        after: the objective there. theta: start. direction: the full step. target: the gradient before the removal.

    Returns:
        Length, weights and gradient of the choice.
    """
    start = after.gradient(theta)
    best, smallest = (0.0, theta, start), float((start - target).norm())
    for halving in range(HALVINGS + 1):
        length = 0.5**halving
        moved = theta + length * direction
        gradient = after.gradient(moved)
        mismatch = float((gradient - target).norm())
        if mismatch < smallest:
            best, smallest = (length, moved, gradient), mismatch
        elif best[0] > 0:
            break  # past the minimum
    return best


def _solve(
    curved: Objective, theta: torch.Tensor, v: torch.Tensor, settings: InfluenceSettings
) -> tuple[Solution, float, str]:
    """The solution of (H + damping I) x = v, the damping used, and a note if CG's had to be raised."""
    if not bool(v.any()):
        return Solution(v.clone(), 0.0, 0), settings.damping, ""
    product = curved.hessian(theta) if settings.curvature == "hessian" else curved.gauss_newton(theta)
    if settings.solver == "lissa":
        scale = largest_eigenvalue(product, v) if settings.scale is None else settings.scale / len(curved.nodes)
        return _by_lissa(product, v, scale, settings, curved), settings.damp * scale, ""
    damping = settings.damping
    while True:
        solution = conjugate_gradient(product, v, damping, settings.tolerance, settings.iterations)
        if not solution.negative_curvature:
            break
        damping = max(10 * damping, curved.ridge, 1e-4)
    raised = f"negative curvature: damping raised to {damping:.1e}" if damping > settings.damping else ""
    return solution, damping, raised


def _by_lissa(
    product: Product, v: torch.Tensor, scale: float, settings: InfluenceSettings, curved: Objective
) -> Solution:
    solution = lissa(product, v, scale, settings.damp, settings.iterations)
    if solution.diverged:
        raise StepsDiverged(
            f"LiSSA diverged after {solution.iterations} of {settings.iterations} iterations with scale "
            f"{scale * len(curved.nodes):.3g}: a curvature is negative or above twice the scale (both on the summed loss)",
            curved.log,
        )
    return solution


def _join(*notes: str) -> str:
    return "; ".join(filter(None, notes))


def add_note(log: StepLog, note: str) -> None:
    """Add a sentence to the log's note unless it stands there already."""
    if note not in log.note:
        log.note = _join(log.note, note)
