"""E-UMIA on edges: is a forgotten edge told from a kept one by what the model answers when it is put back?

    candidates = forgotten edges, and for each a retained edge whose ends have the same labels and degree buckets
    G_c        = query graph without any candidate, forgotten or kept
    features of (u, v) = fall of the loss and rise of the margin at both ends when (u, v) is put into G_c     (4)
                         degrees of both ends, do the labels agree, common neighbours, all in G_c             (4)
    score(u, v) = out-of-fold log odds of a logistic regression; an edge and its match share a fold

The variant on edges of the Lethe benchmark's attack (arXiv:2610.21869). Both kinds were edges of the original graph, and
each is asked about absent and present, all other candidates absent: the graph that the model is asked on does not tell
which is which. What can tell them is structure (how the forget set was chosen: ``auc_structure``, and a part of
``auc_answers``, as an edge moves a node with few neighbours more) and training:

    Original, UtU   were fitted with both kinds: nothing but structure is left, whatever they remember
    Untrained       with neither: structure alone
    Gold            with the kept edges only: structure, and whatever a kept edge left behind in the weights

So here memory of single edges sets Gold apart and leaves UtU where Untrained is, which is the reverse of attacks against
pairs that were never edges: one half is no proof of forgetting. E-UMIA on nodes asks which nodes were trained on and sees
no edge; here labels of nodes are needed, and no node need have been trained on. ``negatives="uniform"`` and ``"matched"``
ask the usual question with the same features: pairs that were never edges, which no model was fitted with.

The classifier is told for the other folds which candidates were forgotten. An outsider is not: this is an auditor's attack.

``published``: at most 200 forgotten edges, matched on labels alone; the headline is the accuracy over three random splits,
as in the benchmark's attack on nodes. The eighth feature, the common neighbours, is our choice, as are logarithms of
counts, and the graph from which all candidates are absent.
"""

from dataclasses import dataclass

import numpy as np
import scipy.sparse
import torch
from torch.nn.functional import cross_entropy
from torch_geometric.data import Data

from lethe_lib.attacks.auc import auc
from lethe_lib.attacks.e_umia import FOLDS, shuffled_accuracy
from lethe_lib.attacks.edge_toggle import EdgeToggles
from lethe_lib.attacks.link_stealing_supervised import log_odds, pair_classifier
from lethe_lib.attacks.pairs import (
    NEGATIVES,
    attacked_edges,
    candidate_pairs,
    check_most,
    check_query,
    query_graph,
    request_generator,
)
from lethe_lib.attacks.result import Attack, AttackResult
from lethe_lib.data import adjacency, undirected_edges
from lethe_lib.errors import InputError
from lethe_lib.models import Backbone, predict
from lethe_lib.seeding import derive_seed
from lethe_lib.structure import remove_edges

KEPT_EDGES = "kept edges"
"""The kind of negatives that only this attack has."""

ANSWERS = 4
"""The first features come from the model's answers, the others from the graph alone."""


@dataclass(frozen=True)
class EdgeUMIASettings:
    """Settings.

    Attributes:
        query: graph that the candidates are taken from, ``none``, ``partial`` or ``retained``.
        negatives: ``kept edges``, or a kind of pairs that were never edges; as many as forgotten edges.
        same_degrees: match kept edges on degree buckets and labels; else on labels alone.
        most: at most this many forgotten edges, drawn at random; None for all.
        three_splits: the headline is the accuracy over three random splits; else the cross-fitted AUC.
    """

    query: str = "retained"
    negatives: str = KEPT_EDGES
    same_degrees: bool = True
    most: int | None = 500
    three_splits: bool = False

    def __post_init__(self):
        check_query(self.query)
        check_most(self.most)
        if self.negatives != KEPT_EDGES and self.negatives not in NEGATIVES:
            known = ", ".join((KEPT_EDGES, *NEGATIVES))
            raise InputError(f"negatives={self.negatives!r} is unknown: choose one of {known}")
        if self.query == "original":
            raise InputError("query='original' holds the forgotten pairs already: toggle them on the retained graph")


def e_umia_edges(
    model: Backbone, data: Data, forget: torch.Tensor, settings: EdgeUMIASettings, seed: int, preset: str
) -> AttackResult:
    """Toggle every candidate, and learn in folds which of them were to be forgotten.

    Extras: ``accuracy`` of the classifier, out of fold or over three random splits; ``auc_structure`` and ``auc_answers``,
    the AUCs with the four features of the graph alone and the four of the answers alone.
    """
    attacked = attacked_edges(data, forget, settings.most, seed)
    if settings.negatives == KEPT_EDGES:
        generator = request_generator(seed, "kept edges", data, forget)
        drawn, kept = matched_kept_edges(data, forget, attacked, settings.same_degrees, generator)
        pairs = torch.cat([attacked[:, torch.from_numpy(kept)], drawn], dim=1)
        labels = np.arange(pairs.shape[1]) < int(kept.sum())
    else:
        pairs, labels = candidate_pairs(data, forget, attacked, settings.negatives, attacked.shape[1], seed)
    if min(labels.sum(), (~labels).sum()) < 2:
        raise InputError(
            f"e_umia_edges learns in folds and needs 2 forgotten edges with negatives, but {int(labels.sum())} of "
            f"{attacked.shape[1]} has one: forget more edges, or use negatives='uniform'"
        )

    without = without_candidates(query_graph(data, forget, settings.query, seed), pairs)
    features = toggle_features(model, without, pairs)
    fold = shared_folds(labels, request_generator(seed, "folds", data, forget))
    state = derive_seed(seed, "e_umia edges") % 2**32
    scores = cross_fitted(features, labels, fold, state)
    extras = {
        "accuracy": float(((scores > 0) == labels).mean()),
        "auc_structure": auc(cross_fitted(features[:, ANSWERS:], labels, fold, state), labels),
        "auc_answers": auc(cross_fitted(features[:, :ANSWERS], labels, fold, state), labels),
    }
    if settings.three_splits:
        extras |= shuffled_accuracy(features, labels, state, pair_classifier(0, state))
    headline = extras["accuracy"] if settings.three_splits else None
    return AttackResult("e_umia_edges", preset, pairs.numpy(), scores, labels, settings.query, headline, extras)


def matched_kept_edges(
    data: Data, forget: torch.Tensor, attacked: torch.Tensor, same_degrees: bool, generator: np.random.Generator
) -> tuple[torch.Tensor, np.ndarray]:
    """One retained edge for every attacked edge, alike at both ends; which of several, and who goes without, is drawn.

    Alike: the same two labels and, with ``same_degrees``, the same bucket of degrees (0, 1-2, 3-6, ...) at the ends with
    either label. Degrees are counted in the retained graph without the edge itself, for both kinds.

    Args:
        data: the original graph. forget: (2, n) canonical pairs, the request. attacked: (2, k) of them.
        same_degrees: see above. generator: source of randomness.

    Returns:
        int64 (2, m) retained edges i < j, all different, and bool (k,): which attacked edges they belong to, in order.

    Raises:
        InputError: no attacked edge has a match.
    """
    retained = remove_edges(data, forget)
    edges = undirected_edges(retained)
    degree = np.diff(adjacency(retained).indptr)

    def kind(pairs: torch.Tensor, own: int) -> np.ndarray:
        ends = data.y.numpy()[pairs.numpy()]
        if same_degrees:
            bucket = np.floor(np.log2(degree[pairs.numpy()] - own + 1)).astype(np.int64)
            ends = bucket * int(data.num_classes) + ends
        low, high = np.sort(ends, axis=0)
        return low * (64 * int(data.num_classes)) + high  # a degree has fewer than 64 bits

    wanted, offered = kind(attacked, own=0), kind(edges, own=1)
    match = np.full(len(wanted), -1)
    for value in np.unique(wanted):
        mine, theirs = (generator.permutation(np.flatnonzero(side == value)) for side in (wanted, offered))
        count = min(len(mine), len(theirs))
        match[mine[:count]] = theirs[:count]
    kept = match >= 0
    if not kept.any():
        raise InputError(
            f"none of the {len(wanted)} forgotten edges has a kept edge like it: use same_degrees=False, or "
            "negatives='uniform'"
        )
    return edges[:, torch.from_numpy(match[kept])], kept


def without_candidates(graph: Data, pairs: torch.Tensor) -> Data:
    """The query graph without those of the pairs (2, m) that it holds."""
    u, v = pairs.numpy()
    held = np.asarray(scipy.sparse.csr_array(adjacency(graph))[u, v]).ravel() != 0
    return remove_edges(graph, pairs[:, torch.from_numpy(held)])


def toggle_features(model: Backbone, without: Data, pairs: torch.Tensor) -> np.ndarray:
    """The eight features of each pair; of two ends the smaller value comes first, so swapping them changes nothing.

    Args:
        model: the released model. without: a graph with labels that holds none of the pairs. pairs: int64 (2, m).

    Returns:
        float64 (m, 8): fall of the cross entropy (2), rise of the margin (2), log(1 + degree) (2), 1 where both labels
        agree, log(1 + number of common neighbours).
    """
    labels = without.y[pairs.T]
    before = predict(model, without)[pairs.T].double()
    after = EdgeToggles(without, pairs).logits(model).cpu().double()
    fall, rise = loss(before, labels) - loss(after, labels), margin(after, labels) - margin(before, labels)
    matrix = scipy.sparse.csr_array(adjacency(without)).astype(np.float64)
    u, v = pairs.numpy()
    degree = np.log1p(np.diff(matrix.indptr)[pairs.numpy().T])
    common = np.log1p(np.asarray(matrix[u].multiply(matrix[v]).sum(axis=1)).ravel())
    agree = (labels[:, 0] == labels[:, 1]).double().numpy()
    ends = [np.sort(values, axis=1) for values in (fall.numpy(), rise.numpy(), degree)]
    return np.column_stack([*ends, agree, common])


def loss(logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """Cross entropy of each end, (m, 2), for logits (m, 2, classes) and labels (m, 2)."""
    return cross_entropy(logits.flatten(0, 1), labels.flatten(), reduction="none").reshape(labels.shape)


def margin(logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """Logit of the label minus the largest other one, (m, 2)."""
    own = logits.gather(2, labels[:, :, None])
    others = logits.scatter(2, labels[:, :, None], -torch.inf)
    return own[:, :, 0] - others.amax(dim=2)


def shared_folds(labels: np.ndarray, generator: np.random.Generator) -> np.ndarray:
    """A fold for each candidate, int (m,): the i-th forgotten edge and the i-th negative are in the same one."""
    smaller = int(min(labels.sum(), (~labels).sum()))
    order = generator.permutation(smaller) % min(FOLDS, smaller)
    fold = np.empty(len(labels), dtype=np.int64)
    for kind in (labels, ~labels):
        fold[kind] = order[np.arange(kind.sum()) % smaller]
    return fold


def cross_fitted(features: np.ndarray, labels: np.ndarray, fold: np.ndarray, state: int) -> np.ndarray:
    """Log odds of being forgotten, float64 (m,), of each candidate by a classifier that was fitted without its fold."""
    scores = np.empty(len(labels))
    for one in np.unique(fold):
        inside = fold == one
        classifier = pair_classifier(0, state).fit(features[~inside], labels[~inside])
        scores[inside] = log_odds(classifier, features[inside])
    return scores


E_UMIA_EDGES = Attack(
    e_umia_edges,
    {
        "corrected": EdgeUMIASettings(),
        "published": EdgeUMIASettings(same_degrees=False, most=200, three_splits=True),
    },
    "edges",
    "Lethe benchmark, arXiv:2610.21869",
)
