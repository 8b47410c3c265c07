"""CGU: certified graph unlearning, one Newton step per request on a convex head over smoothed features.

    prepare   x_i = (standardised features) / (largest row norm),  Z = P^K X,  P = D~^-1 (A + I)
    train     W = argmin L_b(W; Z), b ~ N(0, noise^2 I)                      one-vs-rest logistic (``ovr_logistic``)
    request   Z' = P'^K X;  D = H(Z')^-1 (grad L(W; Z) - grad L(W; Z'));  W' = W + D
    bound     |grad L_b(W'; Z')| <= spent + step bound(D) + what the solver left
    certify   while that is at most noise * epsilon / c (``accountant``), else train again on Z' with a fresh b

Chien, Pan, Milenkovic, "Efficient model updates for approximate unlearning of graph-structured data", ICLR 2023.

Whose edges are forgotten. The theory is about a model that was trained with noise on a strictly convex objective, which
no trained victim is. So the method has an original of its own: the same split, the same number of hops, its own head,
trained on the graph with the edges; that training is reported apart (``original_seconds``) and is where unlearning
starts. The weights of the given model are not read. What is released is a linear model of the same kind as the victim,
whose logits are the C one-vs-rest scores; softmax and argmax read them as usual, but they were not trained to be the
logits of one softmax.

Differences from the paper:

1. All classes are one weight vector with one isotropic b: the L2 norm over classes is compared with the budget. The
   paper's code compares the sum over classes with C times the budget, which bounds neither.
2. The residual that training left is charged at the start, and what the linear solver leaves at every request.
3. The bound uses each row's own product with the step, and the exact largest third derivative (``pointwise``, ``third``):
   10 to 50 times smaller than the published form, and proved in the same lines.
4. ``ridge`` is 1e-4. The paper's 1e-2 leaves a far easier budget, but on dense graphs with features scaled to norm 1 it
   flattens the model: see the chapter on certified methods. ``noise`` is 0.1, as in the examples of the paper's code, whose
   default is 0.01.
5. Requests may be blocks of edges. A block of B edges takes one step, and its bound grows with the square of the step.

Only rows within K - 1 hops of an endpoint change, so Z is kept with all its powers and only those rows are computed.

``published``: module ``certified_published``.
"""

from dataclasses import dataclass

from torch_geometric.data import Data

from lethe_lib.errors import InputError
from lethe_lib.models import Backbone
from lethe_lib.unlearning.certified_head import RELEASED, CertifiedHead, HeadSettings, Propagated, serve
from lethe_lib.unlearning.certified_published import PublishedSettings, published
from lethe_lib.unlearning.influence import chunks
from lethe_lib.unlearning.request import EdgeRequest
from lethe_lib.unlearning.result import Unlearner
from lethe_lib.unlearning.steps import StepLog


@dataclass(frozen=True)
class CguSettings(HeadSettings):
    """Settings of the head, and of its rows.

    Attributes:
        operator: the propagation: ``row``, ``sym`` or ``col``.
        standardise: features to mean 0 and deviation 1 before they are scaled; with ``row`` only.
    """

    operator: str = "row"
    standardise: bool = True

    def __post_init__(self):
        super().__post_init__()
        if self.operator not in RELEASED:
            raise InputError(f"operator={self.operator!r} is unknown: choose {', '.join(RELEASED)}")
        if self.standardise and self.operator != "row":
            raise InputError(f"standardise needs operator='row', not {self.operator!r}: set standardise=False")


def open_session(model: Backbone, data: Data, settings: CguSettings, seed: int) -> CertifiedHead:
    """The method's original on a graph, ready for requests; its ``release`` before any of them is that original."""
    rows = Propagated(data, model.depth, settings.operator, settings.standardise)
    return CertifiedHead(model, data, rows, settings, seed)


def certified_graph_unlearning(
    model: Backbone, request: EdgeRequest, settings: CguSettings | PublishedSettings, seed: int
) -> tuple[Backbone, StepLog]:
    """Train the method's original on G, remove the request from it, release; see :func:`serve` for the log."""
    if isinstance(settings, PublishedSettings):
        return published(model, request, settings, seed)
    blocks = (pairs for _, _, pairs in chunks(request, settings.chunk_size, seed))
    return serve(lambda: open_session(model, request.data, settings, seed), blocks)


CGU = Unlearner(
    certified_graph_unlearning,
    {"corrected": CguSettings(), "published": PublishedSettings(random_edges=100, keep_bias=True)},
    "graph-native",
    "Chien, Pan, Milenkovic, ICLR 2023",
    backbones=("sgc",),
    session=open_session,
)
