"""Selective Synaptic Dampening: shrink the weights that matter more to the forget set than to everything.

    I_D = importance over the training nodes on G,   I_f = importance over D_f on G
    selected = {i: I_f,i > alpha I_D,i}
    theta'_i = min(lambda I_D,i / I_f,i, 1) theta_i where selected, else theta_i

Foster, Schoepf, Brintrup, "Fast machine unlearning without retraining through selective synaptic dampening", AAAI 2024.
Importance is the mean squared gradient of the log-likelihood. No training. D is the whole training set, D_f included.

What alpha selects depends entirely on the estimator and on |D_f| / |train| (the ratio of exact importances is at most
|train| / |D_f|), so alpha is found from the share of weights to select, ``target_share``, and logged. It is never below
1: a weight that matters less to the forget set than to everything is left alone.

The entry ``ssd_edge_diff`` is our variant for edges: I_f is the mean square of grad loss_v(G) - grad loss_v(G_r), the
importance of the edges to these nodes instead of that of the nodes.

``published``: alpha = 50, lambda = 0.1, both importances by squares of set means, D_f = every node near the request.
"""

import math
from dataclasses import dataclass

import torch
from torch.nn.functional import cross_entropy
from torch_geometric.data import Data

from lethe_lib.errors import InputError
from lethe_lib.models import Backbone
from lethe_lib.unlearning.importance import loss_importance, node_order
from lethe_lib.unlearning.request import EDGE_REPLACE, PUBLISHED, EdgeRequest
from lethe_lib.unlearning.result import Unlearner
from lethe_lib.unlearning.steps import StepLog

TIE = 1e-4
"""Ratios of importances that differ by less than this, relatively, are taken as equal."""


@dataclass(frozen=True)
class SsdSettings:
    """Settings.

    Attributes:
        alpha: selection threshold; None finds it from ``target_share``.
        target_share: share of all weights to select, in [0, 1), where alpha is None; ties may add to it.
        dampening: lambda; smaller shrinks more.
        estimator: ``exact``, ``probes``, ``minibatch`` or ``published``. probes: backwards per set for ``probes``.
        batch: nodes in a batch for ``minibatch``.
        reference: graph of I_D: ``original`` or ``retained``.
    """

    alpha: float | None = None
    target_share: float = 0.005
    dampening: float = 1.0
    estimator: str = "probes"
    probes: int = 64
    batch: int = 32
    reference: str = "original"

    def __post_init__(self):
        if self.reference not in ("original", "retained"):
            raise InputError(f"reference={self.reference!r} is unknown: choose original or retained")
        if not 0.0 <= self.target_share < 1.0:
            raise InputError(f"target_share={self.target_share} must lie in [0, 1)")


def dampen(model: Backbone, request: EdgeRequest, settings: SsdSettings, seed: int) -> tuple[Backbone, StepLog]:
    """Dampen ``model`` in place.

    Cost 2 forwards and 2 K backwards with probes, |D_f| + |train| backwards exact. Without forget samples nothing is
    done.
    """
    return _dampen(model, request, settings, seed, edge_difference=False)


def dampen_by_edges(
    model: Backbone, request: EdgeRequest, settings: SsdSettings, seed: int
) -> tuple[Backbone, StepLog]:
    """The variant for edges: I_f from the difference of the two views' losses; cost one forward more."""
    return _dampen(model, request, settings, seed, edge_difference=True)


def _dampen(
    model: Backbone, request: EdgeRequest, settings: SsdSettings, seed: int, edge_difference: bool
) -> tuple[Backbone, StepLog]:
    forget, train = request.forget_nodes, request.split.train
    if len(forget) == 0:
        return model, StepLog()
    parameters = list(model.eval().parameters())
    ranks, log = None, StepLog()

    def losses(graph: Data, nodes: torch.Tensor) -> torch.Tensor:
        nonlocal ranks
        logits = model(graph)
        log.forwards += 1
        ranks = node_order(graph, logits) if ranks is None else ranks
        place = nodes.to(logits.device)
        return cross_entropy(logits[place], graph.y.to(logits.device)[place], reduction="none")

    def importance(values: torch.Tensor, nodes: torch.Tensor) -> list[torch.Tensor]:
        found, backwards = loss_importance(
            values, nodes, ranks, parameters, settings.estimator, seed, settings.probes, settings.batch
        )
        log.backwards += backwards
        return found

    of_forget = losses(request.forget_graph, forget)
    if edge_difference:
        of_forget = of_forget - losses(request.retained, forget)
    forget_importance = importance(of_forget, forget)
    whole = request.data if settings.reference == "original" else request.retained
    full_importance = importance(losses(whole, train), train)
    alpha = settings.alpha
    if alpha is None:
        alpha = threshold(forget_importance, full_importance, settings.target_share)
    selected = dampen_selected(parameters, forget_importance, full_importance, alpha, settings.dampening)
    total = sum(p.numel() for p in parameters)
    log.rows.append({"alpha": alpha, "selected_share": selected / total})
    return model, log


@torch.no_grad()
def dampen_selected(
    parameters: list[torch.Tensor],
    forget: list[torch.Tensor],
    full: list[torch.Tensor],
    alpha: float,
    dampening: float,
) -> int:
    """Shrink in place the weights with I_f > alpha I_D by min(lambda I_D / I_f, 1); returns how many were selected.

    Args:
        parameters: weights. forget, full: their importances I_f and I_D, non-negative float64.
        alpha: threshold, 0 to infinity (which selects nothing). dampening: lambda.
    """
    count = 0
    for parameter, of_forget, of_full in zip(parameters, forget, full, strict=True):
        # Compared before divided, so that 0/0 cannot arise: a selected weight has I_f > 0.
        selected = of_forget > alpha * of_full
        factor = (dampening * of_full[selected] / of_forget[selected]).clamp(max=1.0)
        parameter[selected] = (parameter[selected].double() * factor).to(parameter.dtype)
        count += int(selected.sum())
    return count


def threshold(forget: list[torch.Tensor], full: list[torch.Tensor], share: float) -> float:
    """The alpha, at least 1, above which the ratio I_f / I_D lies for the given share of the weights (rounded down).

    Weights that only forget nodes use all have the same ratio, |train| / |D_f| for exact importances. Where the share
    would cut through such a tie, the whole tie is selected, so that rounding does not choose among equals.
    """
    of_forget, of_full = (torch.cat([part.flatten() for part in parts]) for parts in (forget, full))
    ratio = torch.where(of_full > 0, of_forget / of_full, torch.where(of_forget > 0, math.inf, 0.0))
    count = int(share * len(ratio))
    if count == 0:
        return math.inf
    last = float(torch.topk(ratio, count).values[-1])
    below = ratio[ratio < last * (1.0 - TIE)] if last < math.inf else ratio[ratio < math.inf]
    following = float(below.max()) if len(below) else 0.0
    return max(1.0, 2.0 * following if last == math.inf else (last * (1.0 - TIE) + following) / 2)


SSD = Unlearner(
    dampen,
    {
        # Chosen by the published search of the study "tuning".
        "corrected": SsdSettings(target_share=0.05, dampening=1.0),
        "published": SsdSettings(alpha=50.0, dampening=0.1, estimator="published"),
    },
    "generic",
    "Foster, Schoepf, Brintrup, AAAI 2024",
    mapping={"corrected": EDGE_REPLACE, "published": PUBLISHED},
    uses_forget_samples=True,
)

SSD_EDGE_DIFF = Unlearner(
    dampen_by_edges,
    {"corrected": SsdSettings(target_share=0.15, dampening=1.0)},  # chosen by the search as well
    "addition",
    "ours, on SSD",
    mapping={"corrected": EDGE_REPLACE},
    uses_forget_samples=True,
)
