"""IDEA: an influence step by LiSSA, then Gaussian noise on the weights.

    v       = 1/m sum_{i in T} grad loss_i(theta; G_r) - grad loss_i(theta; G),   T within reach, endpoints included
    theta-  = theta - LiSSA(H, v)
    theta'  = theta- + N(0, sigma^2 I)
    zeta    = sqrt(4 C |T| / (m ridge)) + r_0 / ridge + |theta- - theta|  >=  |theta- - optimum on G_r|
    (epsilon, delta) would need  sigma >= zeta / epsilon * sqrt(2 ln(1.25 / delta)),   epsilon <= 1

Dong, Zhang, Lei, Zou, Li, "IDEA: a flexible framework of certified unlearning for graph neural networks", KDD 2024. The
noise is the method: without it the step is that of GIF. The first term of zeta is how far two optima of ridge-strongly
convex objectives can lie apart when |T| of m losses change and all lie in [0, C]; the second is ours, since theta is no
optimum after early stopping.

sigma is set by hand in the paper (0.1 to 0.6 for GCN, 0.005 for GIN, 0.001 for GAT), since the calibrated one destroys
the model: it is a hundred times larger and more. Both are in the log's row, next to a third, ``sigma_from_gradient``:
strong convexity also gives |theta- - optimum| <= |grad L(theta-; G_r)| / ridge, which is measured, and far smaller.
A noise that depends on the data can tell of them itself: ``sigma_from_gradient`` does altogether, so it is a diagnostic
and no guarantee; zeta does through |theta- - theta|, as in the paper, and through r_0, so its guarantee is for a sigma that
is set beforehand and turns out to be large enough. The certificate is ``not_applicable`` while sigma is below the calibrated
value, where the model is not convex, and where a loss above C is met, which is looked up at theta and not at both optima.
``sigma=None`` takes the calibrated value.

Over several requests nothing is proved: every release has noise of its own, and the next step starts from noisy weights.
``stream`` serves it one request after the other without a bound, and says so.

Differences from the paper: curvature on G_r, by Gauss and Newton, with a measured scale, safeguard and ridge, as in
``gif``. The noise has a standard deviation of 0.01 by default, at which models still work here.

``published``: the Hessian of the summed loss on G with scale 500, damp 0.01 (an effective damping of 5 on the summed
loss), the scale doubled up to five times if LiSSA diverges and no step after that (the code waits for a number that is
not finite, where we stop at a residual above |v|, and so applies steps that ours gives up); the noise thrown away; 10 steps
of Adam on G_r at a hundredth of the training rate; held-out labels in the gradient. The code starts its search for T at all
training nodes; nodes whose view does not change add nothing, so T is every node near the request.
"""

import math
from dataclasses import dataclass, replace

import torch

from lethe_lib.errors import InputError
from lethe_lib.models import Backbone
from lethe_lib.seeding import torch_generator
from lethe_lib.unlearning.accountant import Certificate
from lethe_lib.unlearning.curvature import Objective, flat_weights, set_weights
from lethe_lib.unlearning.influence import (
    InfluenceSettings,
    add_note,
    influence_step,
    ridge_of,
    touched_training_nodes,
    why_not_strongly_convex,
    working_dtype,
)
from lethe_lib.unlearning.request import EDGE_REPLACE, PUBLISHED, EdgeRequest
from lethe_lib.unlearning.result import Unlearner
from lethe_lib.unlearning.steps import StepEngine, StepLog, StepsDiverged


@dataclass(frozen=True)
class IdeaSettings(InfluenceSettings):
    """Settings of the shared step, of the noise and of what the noise would have to be.

    Attributes:
        sigma: standard deviation of the noise on every weight; None takes the calibrated value; 0 adds none.
        epsilon, delta: the guarantee that the calibrated value is for; epsilon in (0, 1].
        loss_bound: C, assumed of every loss at both optima, checked at theta.
        doublings: how often a diverging LiSSA may try again with twice the scale before the step is given up; with 0,
            the default, divergence ends the run.
        fine_tuning_steps: steps of Adam on G_r after the release, at a hundredth of the training rate.
        held_out_labels: take the gradient difference over every forget node of the mapping, training node or not.
    """

    curvature: str = "gauss_newton"
    solver: str = "lissa"
    sigma: float | None = 0.01
    epsilon: float = 1.0
    delta: float = 1e-4
    loss_bound: float = 3.0
    doublings: int = 0
    fine_tuning_steps: int = 0
    held_out_labels: bool = False

    def __post_init__(self):
        super().__post_init__()
        if self.sigma is not None and self.sigma < 0:
            raise InputError(f"sigma={self.sigma} must be at least 0, or None for the calibrated value")
        if not 0 < self.epsilon <= 1 or not 0 < self.delta < 1:
            raise InputError("the Gaussian mechanism needs epsilon in (0, 1] and delta in (0, 1)")


def influence_with_noise(
    model: Backbone, request: EdgeRequest, settings: IdeaSettings, seed: int
) -> tuple[Backbone, StepLog]:
    """Take the step and add the noise in place; the certificate is in the log."""
    log, theta, train = StepLog(), flat_weights(model, working_dtype(model)), request.split.train
    touched = touched_training_nodes(model, request.data, request.pairs)
    nodes = request.forget_nodes if settings.held_out_labels else touched
    ridge = 0.0 if settings.held_out_labels else ridge_of(model)
    old, new = (Objective(model, graph, train, ridge, log=log) for graph in (request.data, request.retained))
    row, moved = _step(old, new, theta, nodes, settings)
    add_note(log, row.pop("note"))
    zeta = distance_bound(len(touched), len(train), ridge_of(model), settings.loss_bound)
    if ridge_of(model) > 0:
        zeta += row["gradient_norm"] / ridge_of(model)
    zeta += float((moved - theta).norm())
    calibrated = calibrated_sigma(zeta, settings.epsilon, settings.delta)
    sigma = calibrated if settings.sigma is None else settings.sigma
    largest_loss = max(float(o.losses(theta, touched).detach().max()) if len(touched) else 0.0 for o in (old, new))
    row |= {
        "sigma": sigma,
        "sigma_calibrated": calibrated,
        "sigma_from_gradient": calibrated_sigma(
            row["released_gradient_norm"] / ridge_of(model) if ridge_of(model) > 0 else math.inf,
            settings.epsilon,
            settings.delta,
        ),
        "zeta": zeta,
        "largest_loss": largest_loss,
    }
    log.rows.append(row)
    if not math.isfinite(sigma):
        raise InputError("sigma=None needs a positive weight decay: without it no noise is enough; set sigma")
    if sigma > 0:
        generator = torch_generator(seed, "unlearning", "release noise")
        draw = torch.randn(theta.shape, generator=generator, dtype=torch.float64).to(moved)
        moved = moved + sigma * draw
    set_weights(model, moved)
    log.certificate = _certificate(model, settings, sigma, calibrated, row)
    if settings.fine_tuning_steps:
        _fine_tune(model, request, settings.fine_tuning_steps, seed, log)
    return model, log


def distance_bound(changed: int, training_nodes: int, ridge: float, loss_bound: float) -> float:
    """How far the optima of two objectives can lie apart that differ in some losses: sqrt(4 C |T| / (m ridge)).

    Args:
        changed: |T|. training_nodes: m. ridge: strong convexity, on the mean scale. loss_bound: 0 <= loss <= C.

    Returns:
        In L2; infinite without a ridge. With |loss| <= C instead the 4 is an 8.

    Example:
        >>> round(distance_bound(500, 2000, 0.05, 3.0), 2)
        7.75
    """
    if changed == 0:
        return 0.0
    return math.sqrt(4 * loss_bound * changed / (training_nodes * ridge)) if ridge > 0 else math.inf


def calibrated_sigma(distance: float, epsilon: float, delta: float) -> float:
    """Standard deviation with which the Gaussian mechanism hides a distance: distance / epsilon sqrt(2 ln(1.25 / delta))."""
    return distance / epsilon * math.sqrt(2 * math.log(1.25 / delta))


def _step(
    old: Objective, new: Objective, theta: torch.Tensor, nodes: torch.Tensor, settings: IdeaSettings
) -> tuple[dict, torch.Tensor]:
    """The step's row with its note, and the weights after it; a diverging LiSSA may double its scale."""
    for attempt in range(settings.doublings + 1):
        scale = settings.scale if settings.scale is None else settings.scale * 2**attempt
        try:
            step = influence_step(old, new, theta, nodes, replace(settings, scale=scale))
            note = step.note
            if attempt:
                note = f"LiSSA diverged until its scale was doubled {attempt} times" + (f"; {note}" if note else "")
            return {**step.row, "doublings": float(attempt), "note": note}, step.theta
        except StepsDiverged:
            if settings.doublings == 0:
                raise
    gradient = float(new.gradient(theta).norm())
    row = {"gradient_norm": float(old.gradient(theta).norm()), "released_gradient_norm": gradient, "step_norm": 0.0}
    row["note"] = f"LiSSA diverged at {settings.doublings + 1} scales: no step was taken, as the published code does"
    return row, theta


def _certificate(
    model: Backbone, settings: IdeaSettings, sigma: float, calibrated: float, row: dict[str, float]
) -> Certificate:
    """What may be said of the released weights; the residual is the gradient norm on G_r before the noise."""
    reason = why_not_strongly_convex(model) or _why_noise_hides_too_little(settings, sigma, calibrated, row)
    numbers = {"residual": row["released_gradient_norm"], "noise": sigma}
    if reason:
        return Certificate("not_applicable", **numbers, reason=reason)
    return Certificate("valid", settings.epsilon, settings.delta, **numbers)


def _why_noise_hides_too_little(settings: IdeaSettings, sigma: float, calibrated: float, row: dict[str, float]) -> str:
    """Why the noise on the weights is no guarantee: a sentence, empty where it is one."""
    if sigma == 0:
        return "no noise was added to the weights"
    if settings.fine_tuning_steps:
        return "the weights were trained on after the noise"
    if sigma < calibrated:
        return f"sigma {sigma:.3g} is below the calibrated {calibrated:.3g}"
    if row["largest_loss"] > settings.loss_bound:
        return f"a loss of {row['largest_loss']:.3g} exceeds the assumed bound {settings.loss_bound:.3g}"
    return ""


def _fine_tune(model: Backbone, request: EdgeRequest, steps: int, seed: int, log: StepLog) -> None:
    """Steps of Adam on the retained graph and training nodes, counted in the log."""
    run = model.training_run.settings
    engine = StepEngine(model, "adam", run["learning_rate"] / 100, run["weight_decay"], seed)
    for _ in range(steps):
        engine.step(engine.cross_entropy(engine.forward(request.retained), request.retained, request.split.train))
    tuned = engine.finish()
    log.forwards += tuned.forwards
    log.backwards += tuned.backwards


IDEA = Unlearner(
    influence_with_noise,
    {
        "corrected": IdeaSettings(),
        "published": IdeaSettings(
            hessian="old",
            curvature="hessian",
            scale=500.0,
            damp=0.01,
            sigma=0.0,
            safeguard=False,
            doublings=5,
            fine_tuning_steps=10,
            held_out_labels=True,
        ),
    },
    "graph-native",
    "Dong, Zhang, Lei, Zou, Li, KDD 2024",
    mapping={"corrected": EDGE_REPLACE, "published": PUBLISHED},
)
