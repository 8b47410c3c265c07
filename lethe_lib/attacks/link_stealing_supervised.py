"""Link Stealing, attack 3: what joined nodes look like is learned from edges that the attacker knows.

    labelled = edges of the retained graph (1) and as many pairs that were never edges (0); no forgotten edge
    features of a pair = eight distances of the two posteriors, and the average, product, |a - b| and (a - b)^2 of
                         the posteriors, class by class
    fit a classifier on the labelled pairs
    score(u, v) = its log odds, on forgotten edges against negatives

He, Jia, Backes, Gong, Zhang, "Stealing links from graph neural networks", USENIX Security 2021. Known edges are joined in
the graph that the model is asked on, and forgotten ones are not: what is learned from the former need not carry over.

Differences: a logistic regression on standardised features is the default (``hidden=0``; the features are few and
symmetric already). ``published`` is the variant of the Lethe benchmark (arXiv:2610.21869): a small neural network, and
the four operators on the two entropies in place of the posteriors.
"""

import warnings
from dataclasses import dataclass

import numpy as np
import torch
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from torch_geometric.data import Data

from lethe_lib.attacks.link_stealing import DISTANCES, posteriors
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
from lethe_lib.data import undirected_edges
from lethe_lib.errors import InputError
from lethe_lib.models import Backbone
from lethe_lib.seeding import derive_seed
from lethe_lib.structure import remove_edges, sample_non_edges

EPOCHS = 50


@dataclass(frozen=True)
class SupervisedSettings:
    """Settings.

    Attributes:
        query: graph that the model is asked on, a name of ``pairs.QUERIES``. The labelled edges are known in any case.
        negatives: kind of negatives, as many as forgotten edges; the labelled non-edges are uniform.
        most: at most this many forgotten edges, drawn at random; None for all.
        labelled: at most this many labelled edges, and as many labelled non-edges.
        entropies: operators on the entropies of the posteriors; else on the posteriors.
        hidden: units of the hidden layer of a network trained for 50 epochs; 0 for a logistic regression.
    """

    query: str = "retained"
    negatives: str = "uniform"
    most: int | None = None
    labelled: int = 1000
    entropies: bool = False
    hidden: int = 0

    def __post_init__(self):
        check_query(self.query)
        check_most(self.most)
        _ = NEGATIVES[self.negatives]  # an unknown name is an error
        if self.labelled < 1 or self.hidden < 0:
            raise InputError(f"labelled={self.labelled} must be at least 1 and hidden={self.hidden} at least 0")


def link_stealing_supervised(
    model: Backbone, data: Data, forget: torch.Tensor, settings: SupervisedSettings, seed: int, preset: str
) -> AttackResult:
    """Learn from known edges, score the forgotten ones and the negatives.

    Extras: ``labelled_pairs``, how many the attack learned from; ``auc_labelled``, how well it separates those.
    """
    attacked = attacked_edges(data, forget, settings.most, seed)
    pairs, labels = candidate_pairs(data, forget, attacked, settings.negatives, attacked.shape[1], seed)
    given, known = labelled_pairs(data, forget, pairs, settings.labelled, seed)

    rows = posteriors(model, query_graph(data, forget, settings.query, seed))
    classifier = pair_classifier(settings.hidden, derive_seed(seed, "link stealing, supervised") % 2**32)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the number of epochs is part of the attack
        classifier.fit(pair_features(rows, given, settings.entropies), known)
    scores, of_known = (log_odds(classifier, pair_features(rows, p, settings.entropies)) for p in (pairs, given))
    fitted = AttackResult("link_stealing_supervised", preset, given.numpy(), of_known, known, settings.query)
    extras = {"labelled_pairs": float(len(known)), "auc_labelled": fitted.auc}
    return AttackResult(
        "link_stealing_supervised", preset, pairs.numpy(), scores, labels, settings.query, extras=extras
    )


def labelled_pairs(
    data: Data, forget: torch.Tensor, attacked: torch.Tensor, most: int, seed: int
) -> tuple[torch.Tensor, np.ndarray]:
    """What the attacker is told: retained edges and as many non-edges, apart from every pair that is attacked.

    Args:
        data: the original graph. forget: the request. attacked: (2, n) pairs that must not occur.
        most: largest number of edges. seed: of the draw.

    Returns:
        int64 (2, 2m) pairs and bool (2m,), true for the edges, which come first.
    """
    generator = request_generator(seed, "labelled pairs", data, forget)
    edges = undirected_edges(remove_edges(data, forget))
    if edges.shape[1] == 0:
        raise InputError("no edge is left for the attacker to learn from: forget fewer edges")
    edges = edges[:, np.sort(generator.permutation(edges.shape[1])[:most])]
    spare = attacked.shape[1]  # that many of the drawn pairs may be attacked ones
    free = data.num_nodes * (data.num_nodes - 1) // 2 - undirected_edges(data).shape[1]
    drawn = sample_non_edges(data, min(edges.shape[1] + spare, free), generator)
    drawn = drawn[:, ~torch.isin(_keys(data, drawn), _keys(data, attacked))][:, : edges.shape[1]]
    return torch.cat([edges, drawn], dim=1), np.arange(edges.shape[1] + drawn.shape[1]) < edges.shape[1]


def pair_features(rows: np.ndarray, pairs: torch.Tensor, entropies: bool = False) -> np.ndarray:
    """Eight distances and four operators of the two posteriors of each pair; swapping the ends changes nothing.

    Args:
        rows: posteriors, (n, classes). pairs: int64 (2, m). entropies: operators on entropies instead.

    Returns:
        float64 (m, 8 + 4 classes), or (m, 12) with entropies; never NaN.
    """
    first, second = pairs.numpy()
    p, q = rows[first], rows[second]
    distances = np.stack([distance(p, q) for distance in DISTANCES.values()], axis=1)
    if entropies:
        p, q = (-(part * np.log(np.maximum(part, np.finfo(float).tiny))).sum(axis=1, keepdims=True) for part in (p, q))
    return np.hstack([distances, (p + q) / 2, p * q, np.abs(p - q), (p - q) ** 2])


def pair_classifier(hidden: int, state: int) -> Pipeline:
    """Standardise, then a logistic regression, or a network with one hidden layer."""
    if hidden:
        return make_pipeline(StandardScaler(), MLPClassifier((hidden,), max_iter=EPOCHS, random_state=state))
    return make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))


def log_odds(classifier: Pipeline, features: np.ndarray) -> np.ndarray:
    """Log odds of the positive class, float64 (n,)."""
    chance = np.clip(classifier.predict_proba(features), 1e-15, 1.0)
    return np.log(chance[:, 1]) - np.log(chance[:, 0])


def _keys(data: Data, pairs: torch.Tensor) -> torch.Tensor:
    return pairs.amin(0) * data.num_nodes + pairs.amax(0)


LINK_STEALING_SUPERVISED = Attack(
    link_stealing_supervised,
    {"corrected": SupervisedSettings(), "published": SupervisedSettings(entropies=True, hidden=32)},
    "edges",
    "He, Jia, Backes, Gong, Zhang, USENIX Security 2021",
)
