"""Fisher Forgetting: noise on every weight, large where the retained data do not mind.

    F = diagonal Fisher information of theta over the training nodes on G_r
    law ``paper``:  theta' = theta + scale F^{-1/4} eps,   eps ~ N(0, I)
    law ``code``:   theta' = theta + sqrt(V) eps,  V = alpha min(1 / (F + 1e-8), 1e3), row means, last layer apart

Golatkar, Achille, Soatto, "Eternal sunshine of the spotless net", CVPR 2020. The first law minimises the retained loss
under the noise plus a KL term that bounds what the weights tell (scale = (lambda sigma_h^2)^{1/4}); the authors' code
follows the second, whose standard deviation goes with F^{-1/2}: V is averaged over the inputs of each unit, cut at 1e2
instead of 1e3 in the last layer, and then tenfold there and for vectors.

The forget set is not used: a request enters only through G_r, and when few edges of many go, this is close to adding
noise to the model. Under ``paper`` small values of F are raised to a quantile of the positive ones, as a weight without
information would get unbounded noise.

``published``: law ``code`` with alpha = 3e-6, F over every node that keeps an edge, on G, by squares of summed
gradients, which is no Fisher information (see ``importance``).
"""

import math
from dataclasses import dataclass

import torch

from lethe_lib.errors import InputError
from lethe_lib.models import Backbone
from lethe_lib.seeding import torch_generator
from lethe_lib.unlearning.importance import fisher_diagonal, node_order
from lethe_lib.unlearning.request import EDGE_REPLACE, PUBLISHED, EdgeRequest
from lethe_lib.unlearning.result import Unlearner
from lethe_lib.unlearning.steps import StepLog


@dataclass(frozen=True)
class FisherSettings:
    """Settings.

    Attributes:
        law: ``paper`` or ``code``.
        scale: of law ``paper``; 0 adds no noise. alpha: of law ``code``; 0 adds no noise.
        floor: quantile in [0, 1] of the positive Fisher values below which values are raised to it (law ``paper``).
        clamped, row_means: the cuts and the row means of law ``code``.
        estimator: ``probes``, ``exact`` or ``published``. probes: backwards for ``probes``.
        linked_nodes: average over every node that keeps an edge, on G, instead of the retain nodes and graph.
    """

    law: str = "paper"
    scale: float = 3e-3
    alpha: float = 1e-6
    floor: float = 0.1
    clamped: bool = True
    row_means: bool = True
    estimator: str = "probes"
    probes: int = 16
    linked_nodes: bool = False

    def __post_init__(self):
        if self.law not in ("paper", "code"):
            raise InputError(f"law={self.law!r} is unknown: choose paper or code")


def forget_by_noise(
    model: Backbone, request: EdgeRequest, settings: FisherSettings, seed: int
) -> tuple[Backbone, StepLog]:
    """Add the noise to ``model`` in place; cost one forward and K backwards (``exact``: one per node and class).

    The log holds the expected norm of the noise, and its ratio to the norm of the weights.
    """
    graph, nodes = request.retain_graph, request.retain_nodes
    if settings.linked_nodes:
        graph, nodes = request.data, torch.unique(request.retained.edge_index)
    names, parameters = zip(*model.named_parameters(), strict=True)
    logits = model.eval()(graph)
    fisher, backwards = fisher_diagonal(
        logits, nodes, node_order(graph, logits), list(parameters), settings.estimator, seed, settings.probes
    )
    size = sum(float(p.detach().square().sum()) for p in parameters) ** 0.5
    head = head_parameters(model)
    deviations = noise_deviation(fisher, [name in head for name in names], settings)
    add_noise(parameters, deviations, seed)
    expected = sum(float(d.square().sum()) for d in deviations) ** 0.5
    row = {"expected_noise_norm": expected, "relative_noise_norm": expected / size if size else math.inf}
    return model, StepLog(forwards=1, backwards=backwards, rows=[row])


def noise_deviation(fisher: list[torch.Tensor], head: list[bool], settings: FisherSettings) -> list[torch.Tensor]:
    """Standard deviation of the noise on every weight.

    Args:
        fisher: one non-negative float64 tensor per parameter.
        head: which parameters belong to the last layer.
        settings: the law and its constants.

    Returns:
        One tensor per parameter, of its shape.
    """
    if settings.law == "paper":
        everything = torch.cat([f.flatten() for f in fisher])
        positive = everything[everything > 0].cpu().numpy()
        if len(positive) == 0:
            raise InputError(
                "the Fisher information is zero for every weight, so the noise is unbounded: use law='code'"
            )
        least = float(torch.from_numpy(positive).sort().values[int(settings.floor * (len(positive) - 1))])
        return [settings.scale * f.clamp(min=least) ** -0.25 for f in fisher]
    deviations = []
    for information, last in zip(fisher, head, strict=True):
        variance = 1.0 / (information + 1e-8)
        if settings.clamped:
            variance = variance.clamp(max=1e2 if last else 1e3)
        variance = settings.alpha * variance
        if variance.dim() > 1 and settings.row_means:
            variance = variance.mean(dim=1, keepdim=True).expand_as(variance)
        variance = variance * (10.0 if last or variance.dim() == 1 else 1.0)
        deviations.append(variance.sqrt())
    return deviations


@torch.no_grad()
def add_noise(parameters: tuple[torch.Tensor, ...], deviations: list[torch.Tensor], seed: int) -> None:
    """Add independent normal noise of the given standard deviations, in place."""
    generator = torch_generator(seed, "unlearning", "fisher noise")
    for parameter, deviation in zip(parameters, deviations, strict=True):
        draw = torch.randn(parameter.shape, generator=generator).to(parameter.device)
        parameter.add_((deviation * draw).to(parameter.dtype))


def head_parameters(model: Backbone) -> set[str]:
    """Names of the parameters that make the logits: those of the module ``head``, else those of the last layer's number.

    Told by place and not by shape, since a hidden width may equal the number of classes.
    """
    names = [name for name, _ in model.named_parameters()]
    if hasattr(model, "head"):
        return {name for name in names if name.startswith("head.")}
    return {name for name in names if str(model.depth - 1) in name.split(".")}


FISHER = Unlearner(
    forget_by_noise,
    {
        # Chosen by the published search of the study "tuning".
        "corrected": FisherSettings(scale=4e-3, floor=0.1),
        "published": FisherSettings(law="code", alpha=3e-6, estimator="published", linked_nodes=True),
    },
    "generic",
    "Golatkar, Achille, Soatto, CVPR 2020",
    mapping={"corrected": EDGE_REPLACE, "published": PUBLISHED},
)
