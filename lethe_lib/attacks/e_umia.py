"""E-UMIA: is a node near the forgotten edges told apart, by its loss, from a node that was never trained on?

    positives = nodes within the model's hops of a forgotten edge that were trained on
    negatives = test nodes
    score(v)  = - cross entropy of f(X, query graph)_v against the label of v

The unlearning membership inference attack of the Lethe benchmark (arXiv:2610.21869) in the form that its tables use. It
is an attack on nodes: it measures the gap between training and test losses, and says nothing about any single edge, nor
about whether an edge was ever there. Without a gap it stays at one half for every method. The model is asked on the
retained graph by default.

``published``: positives are all near nodes outside the test set (validation nodes too), in ascending id; both groups
are cut to the size of the smaller; a logistic regression on the loss alone, three random splits of 70 / 30 (here
seeded); the headline is its accuracy, though it was printed as an AUC. For SGC the benchmark looked one hop far
(``hops=1``).
"""

from dataclasses import dataclass

import numpy as np
import torch
from sklearn.base import BaseEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import balanced_accuracy_score
from sklearn.model_selection import StratifiedKFold, StratifiedShuffleSplit, cross_val_predict, cross_val_score
from torch.nn.functional import cross_entropy
from torch_geometric.data import Data

from lethe_lib.attacks.pairs import check_query, query_graph
from lethe_lib.attacks.result import Attack, AttackResult
from lethe_lib.errors import InputError
from lethe_lib.models import Backbone, predict
from lethe_lib.seeding import derive_seed
from lethe_lib.structure import affected_nodes

FOLDS = 5


@dataclass(frozen=True)
class EUMIASettings:
    """Settings.

    Attributes:
        query: graph that the model is asked on, a name of ``pairs.QUERIES``.
        hops: radius around the endpoints; None for the model's depth.
        trained_only: positives are training nodes; else all near nodes outside the test set.
        equal_groups: cut both groups to the size of the smaller, lowest ids first, and report the accuracy of three
            random splits as the headline; else keep all nodes and report the cross-fitted balanced accuracy beside
            the AUC.
    """

    query: str = "retained"
    hops: int | None = None
    trained_only: bool = True
    equal_groups: bool = False

    def __post_init__(self):
        check_query(self.query)
        if self.hops is not None and self.hops < 0:
            raise InputError(f"hops={self.hops} must be 0 or more, or None for the model's depth")


def e_umia(
    model: Backbone, data: Data, forget: torch.Tensor, settings: EUMIASettings, seed: int, preset: str
) -> AttackResult:
    """Score the nodes near the forgotten edges and the test nodes by their loss.

    Extras: ``accuracy`` of a logistic regression on the loss: over three random splits (``published``), or
    cross-fitted and with both groups weighing the same (``corrected``), absent there if a group has a single node.
    """
    if model.training_run is None:
        raise InputError("e_umia needs to know the training and test nodes, but the model has no training_run")
    split = model.training_run.split
    near = affected_nodes(data, forget, model.depth if settings.hops is None else settings.hops)
    members = near[torch.isin(near, split.train) if settings.trained_only else ~torch.isin(near, split.test)]
    others = split.test
    if settings.equal_groups:
        size = min(len(members), len(others))
        members, others = members[:size], others[:size]
    least = 2 if settings.equal_groups else 1  # two of each can be split with both groups on both sides
    if min(len(members), len(others)) < least:
        raise InputError(
            f"e_umia needs {least} nodes near the forgotten edges and as many test nodes, but there are {len(members)} "
            f"and {len(others)}: forget more edges"
        )

    nodes = torch.cat([members, others])
    logits = predict(model, query_graph(data, forget, settings.query, seed))[nodes].double()
    loss = cross_entropy(logits, data.y[nodes], reduction="none").numpy()
    labels = np.arange(len(nodes)) < len(members)
    fold_seed = derive_seed(seed, "e_umia folds") % 2**32
    fitted = shuffled_accuracy if settings.equal_groups else _cross_fitted_accuracy
    extras = fitted(loss[:, None], labels, fold_seed)
    headline = extras["accuracy"] if settings.equal_groups else None
    return AttackResult("e_umia", preset, nodes.numpy(), -loss, labels, settings.query, headline, extras)


def shuffled_accuracy(
    features: np.ndarray, labels: np.ndarray, seed: int, classifier: BaseEstimator | None = None
) -> dict[str, float]:
    """Mean accuracy of a classifier over three random splits of 70 / 30, as ``accuracy``.

    Args:
        features: (n, k). labels: bool (n,). seed: of the splits. classifier: a logistic regression if None.
    """
    splits = StratifiedShuffleSplit(n_splits=3, test_size=0.3, random_state=seed)
    classifier = LogisticRegression() if classifier is None else classifier
    found = cross_val_score(classifier, features, labels, cv=splits, scoring="accuracy", error_score="raise")
    return {"accuracy": float(found.mean())}


def _cross_fitted_accuracy(loss: np.ndarray, labels: np.ndarray, seed: int) -> dict[str, float]:
    folds = min(FOLDS, int(labels.sum()), int((~labels).sum()))
    if folds < 2:
        return {}
    splits = StratifiedKFold(folds, shuffle=True, random_state=seed)
    guess = cross_val_predict(LogisticRegression(class_weight="balanced"), loss, labels, cv=splits)
    return {"accuracy": float(balanced_accuracy_score(labels, guess))}


E_UMIA = Attack(
    e_umia,
    {"corrected": EUMIASettings(), "published": EUMIASettings(trained_only=False, equal_groups=True)},
    "nodes",
    "Lethe benchmark, arXiv:2610.21869",
)
