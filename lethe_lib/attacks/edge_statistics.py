"""What an adversary reads off a released model about a pair that may have been an edge: a few numbers per pair.

    p = softmax(z) of the model asked on the base graph B, u and v the ends of a pair of the pool
    posteriors   log distance of p_u and p_v (cosine; symmetric Kullback-Leibler), confidence in the true label at both
                 ends, distance and product of the logits
    toggle       with the pair put into the query graph: change of the confidence, and size of the change of the logits,
                 at both ends
    weights      log distance (cosine) of the last hidden rows of u and v, and their product

No statistic has a direction: the attack calibrates every edge on its own. Distances are taken by their logarithm and the
confidence as log p - log(1 - p), which over trainings are closer to normal than the plain values. Logits are centred in
each node, so that the posteriors determine them. The labels of the ends are taken as known.
"""

import numpy as np
import torch
from torch_geometric.data import Data

from lethe_lib.attacks.edge_toggle import EdgeToggles
from lethe_lib.attacks.link_stealing import cosine
from lethe_lib.errors import InputError
from lethe_lib.models import Backbone, predict
from lethe_lib.shadow import confidence_from_logits

POSTERIORS = (
    "posterior_cosine",
    "posterior_kl",
    "confidence_u",
    "confidence_v",
    "logit_distance",
    "logit_product",
)
TOGGLE = ("toggle_confidence_u", "toggle_confidence_v", "toggle_size_u", "toggle_size_v")
WEIGHTS = ("hidden_cosine", "hidden_product")
SMALLEST = 1e-12
"""Added to distances before their logarithm: two equal rows are as close as rounding lets them be."""

ADVERSARIES = {"posteriors": POSTERIORS, "toggle": POSTERIORS + TOGGLE, "weights": POSTERIORS + TOGGLE + WEIGHTS}
"""What each adversary may read; each knows what the one before knows."""


def statistic_names(toggle: bool = True) -> tuple[str, ...]:
    """The statistics in the order of :func:`edge_statistics`."""
    return POSTERIORS + (TOGGLE if toggle else ()) + WEIGHTS


@torch.no_grad()
def edge_statistics(model: Backbone, base: Data, pool: torch.Tensor, toggles: EdgeToggles | None = None) -> np.ndarray:
    """All statistics of all pairs for one released model.

    Args:
        model: the released model; it is not changed.
        base: the graph on which it is asked, without the pairs.
        pool: (2, m) pairs.
        toggles: ``EdgeToggles(base, pool)``, kept over trials; None leaves the toggle out.

    Returns:
        float32 (statistics, m), in the order of ``statistic_names(toggles is not None)``.

    Raises:
        InputError: the model has no hidden rows, or says something that is not finite.
    """
    logits = predict(model, base).double()
    ends = pool.numpy()
    u, v = ends  # numpy indices, as a tensor of length 1 would take a number out of an array
    log_p = torch.log_softmax(logits, dim=1)
    p = log_p.exp().numpy()
    centred = logits - logits.mean(dim=1, keepdim=True)
    confidence = confidence_from_logits(logits, base.y)
    rows = [
        np.log(cosine(p[u], p[v]) + SMALLEST),
        np.log(((p[u] - p[v]) * (log_p[u] - log_p[v]).numpy()).sum(1) + SMALLEST),
        confidence[u],
        confidence[v],
        (centred[u] - centred[v]).norm(dim=1).numpy(),
        (centred[u] * centred[v]).sum(dim=1).numpy(),
    ]
    if toggles is not None:
        toggled = toggles.logits(model).double()
        for end, nodes in enumerate(ends):
            rows.append(confidence_from_logits(toggled[:, end], base.y[nodes]) - confidence[nodes])
        for end, nodes in enumerate(ends):
            change = toggled[:, end] - logits[nodes]
            rows.append((change - change.mean(dim=1, keepdim=True)).norm(dim=1).numpy())
    hidden = model.representations(base)
    if not hidden:
        raise InputError(f"{type(model).__name__} has no hidden rows: the audit needs a model of at least two layers")
    hidden = hidden[-1].cpu().double()
    own, other = hidden[u], hidden[v]
    size = own.norm(dim=1) * other.norm(dim=1)
    product = (own * other).sum(dim=1)
    rows += [torch.log(1 - product / size.clamp(min=SMALLEST) + SMALLEST).numpy(), product.numpy()]
    statistics = np.stack(rows).astype(np.float32)
    if not np.isfinite(statistics).all():
        name = statistic_names(toggles is not None)[int(np.argmax(~np.isfinite(statistics).all(1)))]
        raise InputError(f"the released model gives a {name} that is not finite: look at its logits on the base graph")
    return statistics
