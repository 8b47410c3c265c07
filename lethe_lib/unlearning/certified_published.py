"""What the Lethe benchmark runs under the names CGU and ScaleGUN (arXiv:2610.21869): the preset ``published`` of both.

    Z = P^K X with P = (A + I) D~^-1 and raw features;  a fresh one-vs-rest head with b, the victim's weights discarded
    cgu:       as many edges, 100 at most, drawn at random from the whole graph; the victim's bias stays under the weights
    scalegun:  the first 500 edges of the request, one by one; H and |Z|_2 as of the last training; bias 0
    bound of a step: |Z|_2 |step| |Z step| / 4, as if no row of Z were longer than 1
    accept while the sum over classes of the bounds is at most C times the budget, without the residual of training

No push anywhere, so this says nothing about what ScaleGUN costs; the rows of CGU's log are not about the request. The
sum rule bounds neither a class nor the release, and a stale Hessian voids the bound of a step: no certificate. Newton
steps to a gradient of 1e-3 of the first one stand in for 100 steps of LBFGS.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch_geometric.data import Data

from lethe_lib.data import undirected_edges
from lethe_lib.errors import InputError
from lethe_lib.models import Backbone
from lethe_lib.seeding import torch_generator
from lethe_lib.unlearning.accountant import Certificate
from lethe_lib.unlearning.certified_head import CertifiedHead, HeadSettings, Propagated, serve
from lethe_lib.unlearning.curvature import Product
from lethe_lib.unlearning.ovr_logistic import hessian, spectral_norm, step_bound
from lethe_lib.unlearning.request import EdgeRequest
from lethe_lib.unlearning.steps import StepLog


@dataclass(frozen=True)
class PublishedSettings(HeadSettings):
    """Settings of the head with the benchmark's values, and its traits.

    Attributes:
        random_edges: serve as many edges of the whole graph in place of the request, at most so many; None serves it.
        most: serve only so many edges of the request, the first ones; None serves all.
        stale: keep H and |Z|_2 of the graph and weights that were last trained.
        keep_bias: put the victim's bias under the released weights.
    """

    noise: float = 1e-2
    ridge: float = 1e-2
    pointwise: bool = False
    third: float = 0.25
    random_edges: int | None = None
    most: int | None = None
    stale: bool = False
    keep_bias: bool = False

    def __post_init__(self):
        super().__post_init__()
        for name in ("random_edges", "most"):
            if getattr(self, name) is not None and getattr(self, name) < 1:
                raise InputError(f"{name}={getattr(self, name)} must be at least 1, or None")


class PublishedHead(CertifiedHead):
    """The head with the benchmark's accounting."""

    fit_tolerance = 1e-3

    def __init__(self, model: Backbone, data: Data, settings: PublishedSettings, seed: int):
        rows = Propagated(data, model.depth, "col", standardise=False, normalise=False)
        super().__init__(model, data, rows, settings, seed)

    def _fit(self, draw: int) -> float:
        super()._fit(draw)
        if (
            self.settings.stale
        ):  # rows change in place, so that a Hessian of the rows as they are now needs a copy of them
            self.trained = (hessian(self.z.clone(), self.weights, self.settings.ridge), spectral_norm(self.z))
        return 0.0

    def curvature(self) -> tuple[Product, float]:
        return self.trained if self.settings.stale else super().curvature()

    def step_bounds(self, step: torch.Tensor, norm: float) -> torch.Tensor:
        if self.settings.pointwise:
            return super().step_bounds(step, norm)
        return step_bound(self.z, step, norm, self.settings.third, longest=1.0)

    def total(self, bounds: torch.Tensor) -> float:
        return float(bounds.mean())

    def certificate(self, residual: float) -> Certificate:
        books = self.accountant
        return Certificate(
            "not_applicable",
            residual=residual,
            noise=books.noise,
            retrainings=books.retrainings,
            reason="what was compared with the budget bounds neither a class nor the release",
        )

    def release(self) -> Backbone:
        released, bias = super().release(), self.model.head.bias
        if self.settings.keep_bias and bias is not None:
            released.head.bias = torch.nn.Parameter(bias.detach().clone())
        return released


def published(
    model: Backbone, request: EdgeRequest, settings: PublishedSettings, seed: int
) -> tuple[Backbone, StepLog]:
    """As :func:`serve`, edge by edge."""
    return serve(lambda: PublishedHead(model, request.data, settings, seed), _edges(request, settings, seed))


def _edges(request: EdgeRequest, settings: PublishedSettings, seed: int) -> Iterable[torch.Tensor]:
    pairs = request.pairs
    if settings.random_edges is not None:
        pairs = undirected_edges(request.data)
        order = torch.randperm(pairs.shape[1], generator=torch_generator(seed, "unlearning", "random edges"))
        pairs = pairs[:, order[: min(settings.random_edges, request.pairs.shape[1])]]
    return pairs[:, : settings.most].split(1, dim=1)
