"""LinkTeller: if scaling one node's features moves another node's logits, the two are guessed to be joined.

    I(u -> v) = lim_{d -> 0} || f(X with x_u (1 + d))_v - f(X)_v ||_2 / d   on the query graph, logits
    score(u, v) = I(u -> v) + I(v -> u)
    auc over forgotten edges against pairs that were never edges

Wu, Long, Zhang, Li, "LinkTeller: recovering private edges from graph neural networks via influence analysis", IEEE S&P
2022. There the server's graph is the secret and holds the edges (``query="original"``); after unlearning the model is
asked on the retained graph (the default). A network of depth L shows exactly no influence beyond L hops, with any
weights: on the retained graph most of this AUC is the share of forgotten pairs that are still close, which untrained
weights show just as well. Read it beside Gold and Untrained, with ``negatives="matched"``, and by hop class
(``strata.hop_strata``): the class of two hops holds the pairs that a network of two layers can tell apart at all.

The limit is computed exactly (modules ``influence`` and ``tangents``). ``published``: the variant of the Lethe
benchmark (arXiv:2610.21869): a float32 forward difference with step 1e-4, the larger id perturbed and the smaller one
read, at most 500 forgotten edges against at most 500 negatives. Where the exact score is 0, so is this one under a GCN of two
layers, of which only the rows that a node reaches are computed again; whether other code puts rounding noise there is open.
"""

from dataclasses import dataclass

import numpy as np
import torch
from torch_geometric.data import Data

from lethe_lib.attacks.auc import auc
from lethe_lib.attacks.influence import finite_difference, forward_mode, has_row_products, row_products
from lethe_lib.attacks.pairs import (
    NEGATIVES,
    attacked_edges,
    candidate_pairs,
    check_most,
    check_query,
    query_graph,
)
from lethe_lib.attacks.result import Attack, AttackResult
from lethe_lib.attacks.tangents import has_sparse_tangents, sparse_tangents
from lethe_lib.errors import InputError
from lethe_lib.models import Backbone
from lethe_lib.unlearning.memoriser import MemorisingNetwork


@dataclass(frozen=True)
class LinkTellerSettings:
    """Settings.

    Attributes:
        query: graph that the model is asked on, a name of ``pairs.QUERIES``.
        negatives: kind of negatives, as many as forgotten edges.
        symmetric: score both directions; else the larger id is perturbed and the smaller one read.
        delta: None for the exact derivative, else the relative step of a forward difference in the model's precision.
        most: at most this many forgotten edges, drawn at random, and as many negatives; None for all.
    """

    query: str = "retained"
    negatives: str = "uniform"
    symmetric: bool = True
    delta: float | None = None
    most: int | None = None

    def __post_init__(self):
        check_query(self.query)
        _ = NEGATIVES[self.negatives]  # an unknown name is an error
        if self.delta is not None and not self.delta > 0.0:
            raise InputError(f"delta={self.delta} must be positive, or None for the exact derivative")
        check_most(self.most)


def link_teller_influence(model: Backbone, data: Data, pairs: torch.Tensor) -> torch.Tensor:
    """How far the logits of one node move, at first order, when the features of another one are scaled.

    I(u -> v) = || d f(X)_v / d x_u  x_u ||_2, exact, in float64 and evaluation mode.

    Args:
        model: a backbone, trained or not; it is not changed.
        data: the graph that the model is asked on.
        pairs: int64, (2, n), ordered: row 0 the perturbed node u, row 1 the node v whose logits are read.

    Returns:
        float64, (n,), at least 0, in logits per unit of relative change; exactly 0.0 where u and v lie further apart
        than the model's depth, and where u has no features.

    Raises:
        InputError: pairs of another shape, nodes that are not in the graph, or a node paired with itself.

    Example:
        >>> from lethe_lib.data import load_graph, undirected_edges
        >>> from lethe_lib.models import build
        >>> graph = load_graph("synthetic-tiny")
        >>> link_teller_influence(build(graph), graph, undirected_edges(graph)).min().item() > 0
        True
    """
    perturbed, read = _checked(data, pairs)
    if isinstance(model, MemorisingNetwork):
        model = model.base  # what it adds does not depend on the features
    if has_row_products(model):
        influence = row_products(model, data, perturbed, read)
    elif has_sparse_tangents(model):
        influence = sparse_tangents(model, data, perturbed, read)
    else:
        influence = forward_mode(model, data, perturbed, read)
    return torch.from_numpy(influence)


def _checked(data: Data, pairs: torch.Tensor) -> tuple[np.ndarray, np.ndarray]:
    pairs = torch.as_tensor(pairs)
    if pairs.dim() != 2 or pairs.shape[0] != 2 or pairs.dtype != torch.int64:
        raise InputError(f"pairs must be int64 of shape (2, n), not {pairs.dtype} of shape {tuple(pairs.shape)}")
    if pairs.numel() and not (0 <= int(pairs.min()) and int(pairs.max()) < data.num_nodes):
        raise InputError(f"pairs name nodes outside 0 ... {data.num_nodes - 1}: they belong to another graph")
    if bool((pairs[0] == pairs[1]).any()):
        raise InputError(f"node {int(pairs[0][pairs[0] == pairs[1]][0])} is paired with itself: pairs join two nodes")
    perturbed, read = pairs.cpu().numpy()
    return perturbed, read


def link_teller(
    model: Backbone, data: Data, forget: torch.Tensor, settings: LinkTellerSettings, seed: int, preset: str
) -> AttackResult:
    """Score the forgotten edges and the negatives by influence.

    Extras: ``zero_forgotten`` and ``zero_negatives``, the shares of pairs with a score of exactly 0;
    ``featureless_nodes`` and ``isolated_nodes``, how many distinct nodes of the pairs have no features (they move
    nobody) or no edge in the query graph; with both directions also ``auc_one_direction``, the AUC when only the
    larger id is perturbed.
    """
    attacked = attacked_edges(data, forget, settings.most, seed)
    pairs, labels = candidate_pairs(data, forget, attacked, settings.negatives, attacked.shape[1], seed)

    graph = query_graph(data, forget, settings.query, seed)
    downwards = pairs.flip(0)  # i < j, so row 0 is now the larger id
    influence = _estimate(model, graph, torch.cat([downwards, pairs], 1) if settings.symmetric else downwards, settings)
    one_direction = influence[: len(labels)]
    scores = one_direction + influence[len(labels) :] if settings.symmetric else one_direction

    nodes = pairs.unique()
    joined = torch.zeros(graph.num_nodes, dtype=torch.bool)
    joined[graph.edge_index[0]] = True
    extras = {
        "zero_forgotten": float((scores[labels] == 0.0).mean()),
        "zero_negatives": float((scores[~labels] == 0.0).mean()),
        "featureless_nodes": float(_featureless(graph)[nodes].sum()),
        "isolated_nodes": float((~joined[nodes]).sum()),
    }
    if settings.symmetric:
        extras["auc_one_direction"] = auc(one_direction, labels)
    return AttackResult("link_teller", preset, pairs.numpy(), scores, labels, settings.query, extras=extras)


def _estimate(model: Backbone, graph: Data, pairs: torch.Tensor, settings: LinkTellerSettings) -> np.ndarray:
    if settings.delta is None:
        return link_teller_influence(model, graph, pairs).numpy()
    return finite_difference(model, graph, *_checked(graph, pairs), settings.delta)


def _featureless(data: Data) -> torch.Tensor:
    """Whether a node's features are all zero, bool (n,)."""
    size = torch.zeros(data.num_nodes)
    if data.x.layout == torch.strided:
        size = data.x.abs().sum(dim=1)
    else:
        row = torch.arange(data.num_nodes).repeat_interleave(data.x.crow_indices().diff())
        size.index_add_(0, row, data.x.values().abs())
    return size == 0.0


LINK_TELLER = Attack(
    link_teller,
    {"corrected": LinkTellerSettings(), "published": LinkTellerSettings(symmetric=False, delta=1e-4, most=500)},
    "edges",
    "Wu, Long, Zhang, Li, IEEE S&P 2022",
)
