"""ScaleGUN: certified graph unlearning without propagating again: CGU's step on lazily repaired features.

    prepare   x_i = features / largest row norm;  z^ = P_sym^K x up to a threshold, by push (``lazy_push``)
    request   remove the edges from reserves and residues, push;  z^' differs from z^ in few rows
              D = H(z^')^-1 (grad L(W; z^) - grad L(W; z^'));  W' = W + D
    bound     |grad L_b(W'; Z')| on the EXACT rows  <=  CGU's bound on z^'  +  approximation error of z^' at W'
    certify   as CGU, approximation error included

Yi, Wei, "Scalable and certifiable graph unlearning: overcoming the approximation error barrier", ICLR 2025. The head,
its own original and what is released are those of CGU (module ``cgu``), with P_sym, so the released model is an SGC
without bias; it answers with exact propagation.

Approximation error. With A_j a bound of sum_i |z^_ij - z_ij|, |l'| <= 1 and |l''| <= 1/4, the gradient of class k on z^
and on exact rows differ by at most

    (1 + 1/4 |w_k| max_i |z^_i|) |(A_j)_j|,

and A_j is the sum of the absolute residues, which push keeps up to date. Only the present z^ enters: against z^ itself
the residual adds up over requests as in CGU, and the gap between z^ and the exact rows is counted once, at the end.

Differences from the paper: those of CGU; features are scaled but not centred, since P_sym is not row-stochastic; the
residues enter with absolute values (the published code sums them with their signs, which bounds nothing).

``published``: module ``certified_published``; what runs there under this name has no push.
"""

from dataclasses import dataclass

import numpy as np
import torch
from torch_geometric.data import Data

from lethe_lib.errors import InputError
from lethe_lib.models import Backbone, scipy_propagation
from lethe_lib.structure import remove_edges
from lethe_lib.unlearning.certified_head import CertifiedHead, HeadSettings, prepared_features, serve
from lethe_lib.unlearning.certified_published import PublishedSettings, published
from lethe_lib.unlearning.influence import chunks
from lethe_lib.unlearning.lazy_push import LazyPush
from lethe_lib.unlearning.request import EdgeRequest
from lethe_lib.unlearning.result import Unlearner
from lethe_lib.unlearning.steps import StepLog


@dataclass(frozen=True)
class ScaleGunSettings(HeadSettings):
    """Settings of the head, and of its rows.

    Attributes:
        threshold: largest residue that may stay, for features of norm at most 1; 0 keeps z^ exact.
    """

    threshold: float = 1e-7

    def __post_init__(self):
        super().__post_init__()
        if not self.threshold >= 0.0:
            raise InputError(f"threshold={self.threshold} must be at least 0")


class LazyRows:
    """z^ of a shrinking graph, in the form that :class:`CertifiedHead` reads."""

    operator = "sym"

    def __init__(self, data: Data, depth: int, threshold: float):
        self.data, self.removed = data, []
        features, self.mean, self.scale = prepared_features(data, standardise=False, normalise=True)
        self.push = LazyPush(data, features, depth, threshold)

    @property
    def rows(self) -> np.ndarray:
        return self.push.z

    def remove(self, pairs: torch.Tensor) -> np.ndarray:
        """Remove edges, and return the nodes whose rows were written anew, sorted."""
        changed = self.push.remove(pairs)
        self.removed.append(pairs)
        return changed

    def gradient_error(self, w: torch.Tensor, longest: float) -> float:
        """At most so far is a gradient on z^ from that on the exact rows: L2 norm over all classes."""
        classes = 1.0 + w.norm(dim=0) * longest / 4.0
        return float(classes.norm() * np.linalg.norm(self.push.residue_sum))

    def exact_rows(self, nodes: np.ndarray) -> np.ndarray:
        """P_sym^K x of the present graph by full propagation: for audits."""
        graph = remove_edges(self.data, torch.cat(self.removed, dim=1)) if self.removed else self.data
        rows = self.push.x
        for _ in range(self.push.depth):
            rows = scipy_propagation(graph, "sym") @ rows
        return rows[nodes]


def open_session(model: Backbone, data: Data, settings: ScaleGunSettings, seed: int) -> CertifiedHead:
    """The method's original on a graph, ready for requests; its ``release`` before any of them is that original."""
    return CertifiedHead(model, data, LazyRows(data, model.depth, settings.threshold), settings, seed)


def scalegun(
    model: Backbone, request: EdgeRequest, settings: ScaleGunSettings | PublishedSettings, seed: int
) -> tuple[Backbone, StepLog]:
    """Train the method's original on G, remove the request from it, release; see :func:`serve` for the log."""
    if isinstance(settings, PublishedSettings):
        return published(model, request, settings, seed)
    blocks = (pairs for _, _, pairs in chunks(request, settings.chunk_size, seed))
    return serve(lambda: open_session(model, request.data, settings, seed), blocks)


SCALEGUN = Unlearner(
    scalegun,
    {"corrected": ScaleGunSettings(), "published": PublishedSettings(most=500, stale=True)},
    "graph-native",
    "Yi, Wei, ICLR 2025",
    backbones=("sgc",),
    session=open_session,
)
