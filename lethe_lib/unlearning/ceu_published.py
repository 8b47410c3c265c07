"""CEU as the Lethe benchmark runs it (arXiv:2610.21869), after the authors' code: the preset ``published`` of ``ceu``.

    v      = sum over nodes near the request of grad loss_i(theta; G_r) - grad loss_i(theta; G),  cut to norm 1000
    x      = argmin x^T H x / 2 - v^T x,  H of the SUM of the training losses on G, from x = v, by a general optimiser
    theta' = theta - x / m

Traits, each of which makes it another method than that of the paper:

1. H belongs to the summed loss and still there is a 1 / m in front: the step is m times too small.
2. The nodes near the request are all nodes, held-out labels included.
3. Non-linear conjugate gradient (Polak and Ribiere, with a line search) minimises the quadratic. It starts at v itself and
   stops at an absolute gradient of 1e-4, so a small v is "solved" at once; after 100 iterations it stops anyway.
4. One system per weight tensor, so H is taken as block-diagonal; all in one only where the model has a single layer.
5. No ridge, no b, no bound of a residual: nothing is certified.

SGC has a branch of its own: only nodes within ONE hop; and per class the sigmoid Hessian Z^T diag(s (1 - s)) Z + ridge m I
on features smoothed once, though the model smooths them K times, with s at y a for labels y in {0, 1}, so that a node has
curvature 1/4 for every other class, under a gradient of the softmax. A bias, which their SGC lacks, stays as it is. Not
copied: there the code solves by Newton's method with inner CG, and its products read the weights in a wrong order. (The
benchmark's own SGC is another class to its code and takes the general branch.)

What comes out is UtU with weights moved by a small fraction of their norm. The log holds how far the step moves the logits
of the nodes in reach, over how far unlinking alone moves them (``logit_share``); the note says so where that is less than
``NO_OP_SHARE``, or where the step is below ``influence.NO_OP``.
"""

import time
from dataclasses import dataclass

import numpy as np
import scipy.optimize
import torch
from torch.nn.functional import one_hot

from lethe_lib.errors import InputError
from lethe_lib.models import Backbone, predict
from lethe_lib.models.propagation import propagated_features
from lethe_lib.models.sgc import SGC
from lethe_lib.structure import affected_nodes
from lethe_lib.unlearning.accountant import Certificate
from lethe_lib.unlearning.curvature import Objective, Product, flat_weights, set_weights
from lethe_lib.unlearning.influence import NO_OP, add_note, gradient_difference
from lethe_lib.unlearning.request import EdgeRequest
from lethe_lib.unlearning.steps import StepLog

NO_OP_SHARE = 0.01
"""A step that moves the logits by less than this share of what unlinking moves them is called a no-op in the note."""


@dataclass(frozen=True)
class PublishedCeuSettings:
    """The published constants.

    Attributes:
        iterations: most iterations of the optimiser, per system.
        gradient_tolerance: largest entry of the quadratic's gradient at which CG stops, absolute, summed loss.
        longest: norm to which v is cut.
        sgc_hops: nodes this near to an endpoint enter v, for SGC; elsewhere as many hops as there are layers.
        sgc_ridge: of the mean loss, in the branch of SGC alone.
    """

    iterations: int = 100
    gradient_tolerance: float = 1e-4
    longest: float = 1e3
    sgc_hops: int = 1
    sgc_ridge: float = 1e-4

    def __post_init__(self):
        for name in ("gradient_tolerance", "longest", "sgc_ridge"):
            if not getattr(self, name) > 0.0:
                raise InputError(f"{name}={getattr(self, name)} must be above 0")
        if self.iterations < 1 or self.sgc_hops < 0:
            raise InputError("iterations must be at least 1 and sgc_hops at least 0")


def published(model: Backbone, request: EdgeRequest, settings: PublishedCeuSettings) -> tuple[Backbone, StepLog]:
    """Take the step in place. The row of the log holds its numbers, ``evaluations`` of the quadratic among them."""
    log, theta, train = StepLog(), flat_weights(model), request.split.train
    old, new = (Objective(model, graph, train, log=log) for graph in (request.data, request.retained))
    linear = isinstance(model, SGC)
    nodes = affected_nodes(request.data, request.pairs, settings.sgc_hops) if linear else request.forget_nodes
    v = len(train) * gradient_difference(old, new, theta, nodes)
    v = v * min(1.0, settings.longest / max(float(v.norm()), 1e-30))
    x, evaluations = _solve_sgc(model, request, v, settings) if linear else _solve(model, old, theta, v, settings)
    moved = theta - x / len(train)
    row = {
        "touched_nodes": float(len(nodes)),
        "difference_norm": float(v.norm()) / len(train),
        "evaluations": float(evaluations),
        "step_norm": float((moved - theta).norm()),
        "relative_step": float((moved - theta).norm() / theta.norm()),
    }
    start = time.perf_counter()
    row["logit_share"] = _logit_share(model, request, moved)
    log.audit_seconds = time.perf_counter() - start
    log.rows.append(row)
    if row["relative_step"] < NO_OP or row["logit_share"] < NO_OP_SHARE:
        add_note(log, f"effectively a no-op: logits move by {row['logit_share']:.1e} of what unlinking moves them")
    log.certificate = Certificate("not_applicable", reason="the published code adds no noise and bounds no residual")
    set_weights(model, moved)
    return model, log


def _solve(
    model: Backbone, old: Objective, theta: torch.Tensor, v: torch.Tensor, settings: PublishedCeuSettings
) -> tuple[torch.Tensor, int]:
    """x tensor by tensor, and the evaluations of the quadratics."""
    sizes = [len(theta)] if model.depth == 1 else [parameter.numel() for parameter in model.parameters()]
    product, solved, evaluations = old.hessian(theta), [], 0
    for part, place in zip(v.split(sizes), torch.arange(len(theta)).split(sizes), strict=True):

        def block_product(rows: torch.Tensor, place: torch.Tensor = place) -> torch.Tensor:
            whole = torch.zeros_like(theta)
            whole[place] = rows
            return len(old.nodes) * product(whole)[place]

        x, needed = minimised_quadratic(block_product, part, settings)
        solved.append(x)
        evaluations += needed
    return torch.cat(solved), evaluations


def _solve_sgc(
    model: SGC, request: EdgeRequest, v: torch.Tensor, settings: PublishedCeuSettings
) -> tuple[torch.Tensor, int]:
    """The same in the branch of SGC; 0 for a bias."""
    train, weight = request.split.train, model.head.weight.detach()
    z = propagated_features(request.data, model.aggregation, weight, 1)[train]
    y = one_hot(request.data.y[train].to(weight.device), weight.shape[0])
    s = torch.sigmoid(y * (z @ weight.T))
    curvature = s * (1.0 - s)

    def product(flat: torch.Tensor) -> torch.Tensor:
        rows = flat.view_as(weight).T
        return (z.T @ (curvature * (z @ rows)) + settings.sgc_ridge * len(z) * rows).T.flatten()

    x, evaluations = minimised_quadratic(product, v[: weight.numel()], settings)
    return torch.cat([x, torch.zeros_like(v[weight.numel() :])]), evaluations


def minimised_quadratic(product: Product, v: torch.Tensor, settings: PublishedCeuSettings) -> tuple[torch.Tensor, int]:
    """x^T H x / 2 - v^T x minimised from x = v by non-linear CG: x, and the evaluations it took."""

    def value(x: np.ndarray) -> tuple[float, np.ndarray]:
        x = torch.from_numpy(x).to(v)
        hx = product(x)
        return float(hx @ x / 2 - v @ x), _numpy(hx - v)

    options = {"gtol": settings.gradient_tolerance, "maxiter": settings.iterations}
    found = scipy.optimize.minimize(value, _numpy(v), jac=True, method="CG", options=options)
    return torch.from_numpy(found.x).to(v), found.nfev


def _numpy(vector: torch.Tensor) -> np.ndarray:
    return vector.detach().double().cpu().numpy()


def _logit_share(model: Backbone, request: EdgeRequest, moved: torch.Tensor) -> float:
    """How far the step moves the logits on G_r, over how far unlinking does: means over the nodes in reach, L2."""
    nodes, start = affected_nodes(request.data, request.pairs, model.reach), flat_weights(model)
    linked, unlinked = (predict(model, graph)[nodes] for graph in (request.data, request.retained))
    set_weights(model, moved)
    stepped = predict(model, request.retained)[nodes]
    set_weights(model, start)
    by_step, by_unlinking = (stepped - unlinked).norm(dim=1).mean(), (linked - unlinked).norm(dim=1).mean()
    return float(by_step / by_unlinking) if by_unlinking > 0 else 0.0
