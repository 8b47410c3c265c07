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

Requests one after the other (:class:`CeuSession`, ``stream``): one b, and taylor and solver terms that add up until the
budget is gone; r_0 and the rounding of the present release enter once. A whole request is a session with one block.

``published``: module ``ceu_published``.
"""

import copy
import math
import time
from dataclasses import dataclass

import torch
from torch_geometric.data import Data

from lethe_lib.errors import InputError
from lethe_lib.models import Backbone
from lethe_lib.models.propagation import propagated_features
from lethe_lib.seeding import torch_generator
from lethe_lib.structure import remove_edges
from lethe_lib.unlearning.accountant import Accountant, Certificate
from lethe_lib.unlearning.ceu_published import PublishedCeuSettings, published
from lethe_lib.unlearning.curvature import Objective, flat_weights, set_weights
from lethe_lib.unlearning.influence import (
    InfluenceSettings,
    add_note,
    chunks,
    influence_step,
    is_linear,
    ridge_of,
    touched_training_nodes,
    why_not_strongly_convex,
    working_dtype,
)
from lethe_lib.unlearning.request import EDGE_REPLACE, PUBLISHED, EdgeRequest
from lethe_lib.unlearning.result import Unlearner
from lethe_lib.unlearning.solvers import minimise
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
        step: ``influence``; names the algorithm in records. The preset ``published`` has settings of its own.
    """

    iterations: int = 300
    noise: float = 0.0
    epsilon: float = 1.0
    delta: float = 1e-4
    chunk_size: int | None = None
    step: str = "influence"

    def __post_init__(self):
        super().__post_init__()
        if self.step != "influence":
            raise InputError(f"step={self.step!r} is unknown: leave it, and choose the algorithm by the preset")
        if self.noise < 0:
            raise InputError(f"noise={self.noise} must be at least 0")


class CeuSession:
    """The model under removal: open once, then one :meth:`remove` per request.

    Attributes:
        theta: (p,), the weights, in the dtype to work in; the release rounds them to the model's.
        noise: b of the present weights, (p,); None without objective noise.
        accountant: the budget; None without objective noise.
        data: the present graph. log: one row per request, see :meth:`remove`.

    Args:
        model: gives architecture, split, ridge and the weights to start from; it is not changed.
        data: the graph with the edges.
        settings: of the step and the certificate.
        seed: of the draws of b.

    Raises:
        InputError: objective noise for a model that is not linear or has no ridge.
    """

    def __init__(self, model: Backbone, data: Data, settings: CeuSettings, seed: int):
        self.model, self.data, self.settings, self.seed = model, data, settings, seed
        self.train, self.ridge = model.training_run.split.train, ridge_of(model)
        self.log, self.bound = StepLog(), math.nan
        self.theta, self.noise, self.accountant = flat_weights(model, working_dtype(model)), None, None
        if settings.noise > 0:
            if not (is_linear(model) and self.ridge > 0):
                raise InputError(
                    f"noise={settings.noise} trains the model again with a noisy objective, for which it must be linear "
                    f"with a positive weight decay; this is {model.training_run.backbone} with weight decay "
                    f"{self.ridge}: leave noise at 0"
                )
            start = time.perf_counter()
            initial = self._train_with_noise(0)
            self.log.original_seconds = time.perf_counter() - start
            self.accountant = Accountant(settings.epsilon, settings.delta, settings.noise, initial)

    def objective(self, data: Data) -> Objective:
        """L_b with the present b on a graph."""
        return Objective(self.model, data, self.train, self.ridge, self.noise, self.log)

    def remove(self, pairs: torch.Tensor) -> dict[str, float]:
        """Serve one request.

        Args:
            pairs: (2, n) edges of the present graph.

        Returns:
            The row of the log: besides the numbers of the shared step ``bound`` (so far), ``taylor`` (of this step) and
            ``retrained`` (1 if the budget ran out here).
        """
        before, self.data = self.data, remove_edges(self.data, pairs)
        touched = touched_training_nodes(self.model, before, pairs)
        new = self.objective(self.data)
        step = influence_step(self.objective(before), new, self.theta, touched, self.settings)
        row, move, self.theta = {**step.row, "retrained": 0.0}, step.theta - self.theta, step.theta
        if is_linear(self.model):
            taylor, rounding = taylor_bound(new, move), self._rounding(new)
            unsolved = step.solution.residual * float(step.difference.norm())
            added = taylor + unsolved + row["damping"] * float(step.solution.x.norm())
            self.bound = (self.bound if self.log.rows else row["gradient_norm"]) + added
            if self.accountant is not None and not self.accountant.charge(added, rounding):
                self.bound = self._train_with_noise(self.accountant.retrainings + 1)
                rounding = self._rounding(self.objective(self.data))
                self.accountant.restart(self.bound, rounding)
                row["retrained"] = 1.0
            row |= {"taylor": taylor, "bound": self.bound + rounding}
        self.log.rows.append(row)
        add_note(self.log, step.note)
        return row

    def residual(self) -> float:
        """|grad L_b| at the released weights on the present graph: what the bound is about."""
        released = self.theta.to(next(self.model.parameters()).dtype).to(self.theta.dtype)
        return float(self.objective(self.data).gradient(released).norm())

    def certificate(self, residual: float) -> Certificate:
        """What may be said of the released weights, with the residual that was measured."""
        reason, old = why_not_strongly_convex(self.model), self.settings.hessian == "old"
        if not reason and old:
            reason = "the Hessian is that of the graph with the edges: no bound of the residual is proved"
        elif not reason and self.accountant is None:
            reason = "no noise in the training objective: residual and bound do not make models indistinguishable"
        if not reason:
            return self.accountant.certificate(residual)
        proved = math.nan if old or not self.log.rows else self.log.rows[-1].get("bound", math.nan)
        return Certificate("not_applicable", residual=residual, bound=proved, noise=self.settings.noise, reason=reason)

    def release(self) -> Backbone:
        """The present weights in a copy of the model."""
        released = copy.deepcopy(self.model).eval()
        set_weights(released, self.theta)
        return released

    def _train_with_noise(self, draw: int) -> float:
        """Minimise L_b on the present graph with a fresh b, from the present weights; what is left of the gradient."""
        generator = torch_generator(self.seed, "unlearning", "objective noise", draw)
        noise = self.settings.noise * torch.randn(self.theta.shape, generator=generator, dtype=torch.float64)
        self.noise = noise.to(self.theta)
        objective = self.objective(self.data)
        self.theta = minimise(objective, self.theta)
        return float(objective.gradient(self.theta).norm())

    def _rounding(self, objective: Objective) -> float:
        return rounding_bound(objective, self.theta, next(self.model.parameters()).dtype)


def certified_edge_unlearning(
    model: Backbone, request: EdgeRequest, settings: CeuSettings | PublishedCeuSettings, seed: int
) -> tuple[Backbone, StepLog]:
    """Take the step, or one step per chunk; see :meth:`CeuSession.remove` for the log, which holds the certificate."""
    if isinstance(settings, PublishedCeuSettings):
        return published(model, request, settings)
    session = CeuSession(model, request.data, settings, seed)
    for _, _, pairs in chunks(request, settings.chunk_size, seed):
        session.remove(pairs)
    session.log.certificate = session.certificate(session.residual())
    return session.release(), session.log


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


CEU = Unlearner(
    certified_edge_unlearning,
    {"corrected": CeuSettings(), "published": PublishedCeuSettings()},
    "graph-native",
    "Wu, Shen, Ning, Wang, Wang, KDD 2023",
    mapping={"corrected": EDGE_REPLACE, "published": PUBLISHED},
    session=CeuSession,
)
