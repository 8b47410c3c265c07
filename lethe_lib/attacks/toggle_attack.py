"""Edge toggle: put the pair into the query graph and see how far the answers at its ends move.

    f(G_q)_w and f(G_q + (u, v))_w    logits at w = u, v without and with the pair, all else equal
    score(u, v) = || f(G_q + (u, v))_u - f(G_q)_u || + the same at v

An active attack: the attacker hands the graph to the model, so it may try any edge. A model that recognises a pair it was
trained with answers in another way once the pair is back; what every model shows is that an edge moves its ends, the more
so the fewer neighbours they have, which is structure: read the score with matched negatives and beside Gold.
The audit of edges (module ``edge_statistics``) uses the same toggle with many models.

The answers with the pair are exact (module ``edge_toggle``): for two layers a few rows a pair, for others a forward each.
On the full graph the forgotten pair is there already, so the query ``original`` is refused.
"""

from dataclasses import dataclass

import numpy as np
import torch
from torch.nn.functional import cross_entropy
from torch_geometric.data import Data

from lethe_lib.attacks.auc import auc
from lethe_lib.attacks.edge_toggle import EdgeToggles
from lethe_lib.attacks.pairs import (
    NEGATIVES,
    attacked_edges,
    candidate_pairs,
    check_most,
    check_query,
    query_graph,
)
from lethe_lib.attacks.result import Attack, AttackResult
from lethe_lib.errors import InputError
from lethe_lib.models import Backbone, predict


@dataclass(frozen=True)
class ToggleSettings:
    """Settings.

    Attributes:
        query: graph into which the pair is put, ``none``, ``partial`` or ``retained``.
        negatives: kind of negatives, as many as forgotten edges.
        most: at most this many forgotten edges, drawn at random; None for all. A pair of hubs costs as many rows as the
            two have neighbours.
    """

    query: str = "retained"
    negatives: str = "uniform"
    most: int | None = 500

    def __post_init__(self):
        check_query(self.query)
        check_most(self.most)
        _ = NEGATIVES[self.negatives]  # an unknown name is an error
        if self.query == "original":
            raise InputError("query='original' holds the forgotten pairs already: toggle them on the retained graph")


def edge_toggle(
    model: Backbone, data: Data, forget: torch.Tensor, settings: ToggleSettings, seed: int, preset: str
) -> AttackResult:
    """Score the forgotten edges and the negatives by how far their ends move.

    Extras: ``auc_loss``, the AUC of the fall in the loss of both ends (their labels are needed for it): an edge that was
    trained with should help.
    """
    attacked = attacked_edges(data, forget, settings.most, seed)
    pairs, labels = candidate_pairs(data, forget, attacked, settings.negatives, attacked.shape[1], seed)
    graph = query_graph(data, forget, settings.query, seed)
    before, after = predict(model, graph)[pairs.T].double(), EdgeToggles(graph, pairs).logits(model).cpu().double()
    scores = (after - before).norm(dim=2).sum(dim=1).numpy()
    extras = {"auc_loss": auc(_loss(before, data, pairs) - _loss(after, data, pairs), labels)}
    return AttackResult("edge_toggle", preset, pairs.numpy(), scores, labels, settings.query, extras=extras)


def _loss(logits: torch.Tensor, data: Data, pairs: torch.Tensor) -> np.ndarray:
    """Cross entropy of both ends together, (n,), for logits (n, 2, classes)."""
    losses = cross_entropy(logits.flatten(0, 1), data.y[pairs.T.flatten()], reduction="none")
    return losses.reshape(-1, 2).sum(dim=1).numpy()


EDGE_TOGGLE = Attack(edge_toggle, {"corrected": ToggleSettings()}, "edges", "Lethe benchmark, arXiv:2610.21869")
