"""What CGU and ScaleGUN share: a convex head over smoothed features that serves one request after the other.

    open      rows of P^K X on the graph with the edges;  W = argmin L_b(W; Z), b ~ N(0, noise^2 I)
    request   Z -> Z';  D = H(Z')^-1 (grad L(W; Z) - grad L(W; Z'));  W' = W + D
    charge    step bound(D) + what the solver left, and the error of the rows;  over budget: train again, fresh b
    release   W as a linear model on the raw features

The methods differ in how they keep the rows (:class:`Propagated` here, ``lazy_push``). Loss, Hessian and bounds are in
``ovr_logistic``, the budget in ``accountant``.
"""

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse
import torch
from torch_geometric.data import Data

from lethe_lib.data import node_features
from lethe_lib.errors import InputError
from lethe_lib.models import Backbone, scipy_propagation
from lethe_lib.models.sgc import SGC, ColSGC, RowSGC
from lethe_lib.seeding import torch_generator
from lethe_lib.structure import affected_nodes, remove_edges
from lethe_lib.unlearning.accountant import Accountant, Certificate
from lethe_lib.unlearning.curvature import Product
from lethe_lib.unlearning.ovr_logistic import (
    LARGEST_THIRD_DERIVATIVE,
    fit,
    gradient,
    hessian,
    newton_step,
    pointwise_bound,
    row_gradient,
    signs,
    spectral_norm,
    step_bound,
)
from lethe_lib.unlearning.steps import StepLog

RELEASED = {"sym": SGC, "row": RowSGC, "col": ColSGC}


@dataclass(frozen=True)
class HeadSettings:
    """Settings of the convex head. All norms are on the scale of the summed loss: m times those of the mean loss.

    Attributes:
        epsilon, delta: the guarantee wanted.
        noise: standard deviation of each entry of b.
        ridge: of the mean loss; m * ridge in the sum.
        chunk_size: edges served as one request, in random order; None serves all at once.
        pointwise: the smaller bound of ``ovr_logistic``; False takes the published form.
        third: largest third derivative of the loss that the bounds use.
        tolerance: what the linear solver may leave of a gradient, as a share of the budget.
    """

    epsilon: float = 1.0
    delta: float = 1e-4
    noise: float = 0.1
    ridge: float = 1e-4
    chunk_size: int | None = None
    pointwise: bool = True
    third: float = LARGEST_THIRD_DERIVATIVE
    tolerance: float = 1e-5

    def __post_init__(self):
        for name in ("noise", "ridge", "third", "tolerance"):
            if not getattr(self, name) > 0.0:
                raise InputError(f"{name}={getattr(self, name)} must be above 0")


class Propagated:
    """P^K X of a shrinking graph, exactly, with only the rows recomputed that a removal changes.

    Attributes:
        rows: float64, (n, F), P^K X of the present graph.
        mean, scale: float64, (F,): the features X are (x - mean) / scale.

    Args:
        data: the graph. depth: K. operator: kind of P, ``row``, ``sym`` or ``col``.
        standardise: features to mean 0 and deviation 1. For ``row`` only: a centred released model needs a bias, and
            P^K times a constant column is that constant only where rows of P sum to 1.
        normalise: divide the features by the largest row norm.
    """

    def __init__(self, data: Data, depth: int, operator: str, standardise: bool, normalise: bool = True):
        self.data, self.operator = data, operator
        features, self.mean, self.scale = prepared_features(data, standardise, normalise)
        matrix = scipy_propagation(data, operator)
        self.levels = [features]
        for _ in range(depth):
            self.levels.append(matrix @ self.levels[-1])

    @property
    def rows(self) -> np.ndarray:
        return self.levels[-1]

    def remove(self, pairs: torch.Tensor) -> np.ndarray:
        """Remove edges, and return the nodes whose rows may have changed, sorted."""
        before, self.data = self.data, remove_edges(self.data, pairs)
        matrix = scipy_propagation(self.data, self.operator)
        late = 1 if self.operator == "row" else 0  # the sender's degree is in no weight: one hop less
        changed = np.zeros(0, np.int64)
        for level in range(1, len(self.levels)):
            changed = affected_nodes(before, pairs, level - late).numpy()
            self.levels[level][changed] = matrix[changed] @ self.levels[level - 1]
        return changed

    def gradient_error(self, w: torch.Tensor, longest: float) -> float:
        """How far a gradient on ``rows`` can be from that on exact rows: not at all."""
        return 0.0

    def exact_rows(self, nodes: np.ndarray) -> np.ndarray:
        return self.rows[nodes]


def prepared_features(data: Data, standardise: bool, normalise: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(x - mean) / scale in float64, with mean and scale, (F,) each.

    With ``normalise`` no row is longer than 1. A constant feature becomes 0 when standardised, and all-zero features
    stay.
    """
    x = node_features(data)
    x = (x.toarray() if scipy.sparse.issparse(x) else x).astype(np.float64)
    mean, scale = np.zeros(x.shape[1]), np.ones(x.shape[1])
    if standardise:
        mean, scale = x.mean(axis=0), x.std(axis=0)
        scale[scale == 0.0] = 1.0
    x = (x - mean) / scale
    if normalise:
        longest = np.linalg.norm(x, axis=1).max()
        if longest > 0.0:
            x, scale = x / longest, scale * longest
    return x, mean, scale


class CertifiedHead:
    """The method's own original and what has become of it: open once, then one :meth:`remove` per request.

    Attributes:
        weights: float64, (F, C). noise: the b of the present weights, (F, C). z: the training nodes' rows, (m, F).
        accountant: the budget.
        log: one row per request; see :meth:`remove`.

    Args:
        model: the victim: its split, depth, device and dtype are read, its weights are not.
        data: the graph with the edges.
        rows: keeps the smoothed rows, as :class:`Propagated` does.
        settings: of the head.
        seed: of the draws of b.
    """

    fit_tolerance = 1e-10
    """Training stops when the gradient is this share of the one at W = 0."""

    def __init__(self, model: Backbone, data: Data, rows: Any, settings: HeadSettings, seed: int):
        self.model, self.rows, self.settings, self.seed = model, rows, settings, seed
        self.train = model.training_run.split.train
        self.place = np.full(data.num_nodes, -1)
        self.place[self.train.numpy()] = np.arange(len(self.train))
        self.y = signs(data.y[self.train], int(data.num_classes))
        self.z = torch.from_numpy(self.rows.rows[self.train.numpy()])
        self.log: list[dict[str, float]] = []
        self.accountant = Accountant(settings.epsilon, settings.delta, settings.noise, self._fit(0))
        self.accountant.extra = self._approximation()

    def _fit(self, draw: int) -> float:
        """Train from scratch on the present rows with a fresh b; what is left of the gradient."""
        generator = torch_generator(self.seed, "unlearning", "noise of the head", draw)
        shape = (self.z.shape[1], self.y.shape[1])
        self.noise = self.settings.noise * torch.randn(shape, generator=generator, dtype=torch.float64)
        self.weights, left = fit(self.z, self.y, self.settings.ridge, self.noise, self.fit_tolerance)
        return left

    def _approximation(self) -> float:
        return self.rows.gradient_error(self.weights, float(self.z.norm(dim=1).max()))

    def curvature(self) -> tuple[Product, float]:
        """H at the present rows and weights, and a number that is at least |Z|_2."""
        return hessian(self.z, self.weights, self.settings.ridge), spectral_norm(self.z)

    def step_bounds(self, step: torch.Tensor, norm: float) -> torch.Tensor:
        """What a step leaves of the gradient at most, for every class, (C,); ``norm`` is at least |Z|_2."""
        bound = pointwise_bound if self.settings.pointwise else step_bound
        return bound(self.z, step, norm, self.settings.third)

    def total(self, bounds: torch.Tensor) -> float:
        """One bound for the release from those of the classes, (C,)."""
        return float(bounds.norm())

    def remove(self, pairs: torch.Tensor) -> dict[str, float]:
        """Serve one request.

        Args:
            pairs: (2, n) edges of the present graph.

        Returns:
            The row of the log: ``edges``; ``touched_nodes`` (training nodes whose rows changed); ``difference_norm``
            (the gradient to cancel); ``step_norm``; ``products`` of the solver; ``step_bound``; ``left`` by the solver;
            ``approximation`` (of the rows, now); ``bound`` (so far, what the certificate states); ``retrained``.
        """
        settings = self.settings
        touched = self.place[self.rows.remove(pairs)]
        touched = torch.from_numpy(touched[touched >= 0])
        y = self.y[touched]
        difference = row_gradient(self.z[touched], y, self.weights)
        self.z[touched] = torch.from_numpy(self.rows.rows[self.train[touched].numpy()])
        difference -= row_gradient(self.z[touched], y, self.weights)

        size = float(difference.norm())
        tolerance = min(1e-2, settings.tolerance * self.accountant.budget / size) if size > 0 else 1.0
        curvature, norm = self.curvature()
        step, left, products = newton_step(curvature, difference, tolerance)
        step_bounded = self.total(self.step_bounds(step, norm))
        self.weights = self.weights + step
        accepted = self.accountant.charge(step_bounded + left, self._approximation())
        if not accepted:
            initial = self._fit(self.accountant.retrainings + 1)
            self.accountant.restart(initial, self._approximation())
        row = {
            "edges": float(pairs.shape[1]),
            "touched_nodes": float(len(touched)),
            "difference_norm": size,
            "step_norm": float(step.norm()),
            "products": float(products),
            "step_bound": step_bounded,
            "left": left,
            "approximation": self.accountant.extra,
            "bound": self.accountant.spent + self.accountant.extra,
            "retrained": float(not accepted),
        }
        self.log.append(row)
        return row

    def residual(self) -> float:
        """|grad L_b| at the present weights on the exact rows of the present graph: what the bound is about."""
        z = torch.from_numpy(self.rows.exact_rows(self.train.numpy()))
        return float(gradient(z, self.y, self.weights, self.settings.ridge, self.noise).norm())

    def certificate(self, residual: float) -> Certificate:
        """The guarantee for the present weights, with the residual that was measured."""
        return self.accountant.certificate(residual)

    def release(self) -> Backbone:
        """The present weights as a model of raw features: scaling and centring are folded into weight and bias."""
        scaled = self.weights.T / torch.from_numpy(self.rows.scale)
        bias = -scaled @ torch.from_numpy(self.rows.mean) if bool(self.rows.mean.any()) else None
        kind = RELEASED[self.rows.operator]
        released = kind(scaled.shape[1], scaled.shape[0], layers=self.model.depth, bias=bias is not None)
        with torch.no_grad():
            released.head.weight.copy_(scaled)
            if bias is not None:
                released.head.bias.copy_(bias)
        released.training_run = self.model.training_run
        parameter = next(self.model.parameters())
        return released.to(parameter.device, parameter.dtype).eval()


def serve(open_head: Callable[[], CertifiedHead], requests: Iterable[torch.Tensor]) -> tuple[Backbone, StepLog]:
    """Open a head, serve requests, release; the exact residual is measured afterwards.

    Args:
        open_head: trains the method's original on the graph with the edges.
        requests: blocks of edges, (2, n) each.

    Returns:
        The released model and a log with one row per request (:meth:`CertifiedHead.remove`), the certificate, and the
        seconds that are not unlearning. ``forwards`` and ``backwards`` stay 0: nothing runs over the whole graph.
    """
    start = time.perf_counter()
    head = open_head()
    opened = time.perf_counter()
    for pairs in requests:
        head.remove(pairs)
    released = head.release()
    served = time.perf_counter()
    log = StepLog(rows=head.log, certificate=head.certificate(head.residual()))
    log.original_seconds, log.audit_seconds = opened - start, time.perf_counter() - served
    return released, log
