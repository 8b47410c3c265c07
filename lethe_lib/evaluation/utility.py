"""Utility: how well a released model still classifies, and how far its answers moved.

All functions read logits that were computed on a graph of the caller's choice; nothing here asks a model. Compare
methods on one graph only: accuracies on the original and on the retained graph are different quantities.
"""

from dataclasses import fields

import torch

from lethe_lib.data import Split
from lethe_lib.errors import InputError


def accuracy(logits: torch.Tensor, labels: torch.Tensor, nodes: torch.Tensor) -> float:
    """Share of nodes whose largest logit is their label, in [0, 1].

    Args:
        logits: (n, classes). labels: int64 (n,). nodes: int64, at least one.
    """
    _check(logits, labels, nodes)
    return float((logits[nodes].argmax(dim=1) == labels[nodes]).double().mean())


def macro_f1(logits: torch.Tensor, labels: torch.Tensor, nodes: torch.Tensor) -> float:
    """Mean of the F1 scores of the classes that occur among the labels or the predictions of the nodes, in [0, 1].

    F1 of a class = 2 hits / (nodes of the class + predictions of the class). Every class weighs the same, so a model
    that answers one class alone scores low although its accuracy may not be.

    Args:
        logits: (n, classes). labels: int64 (n,). nodes: int64, at least one.
    """
    _check(logits, labels, nodes)
    predicted, actual, classes = logits[nodes].argmax(dim=1), labels[nodes], logits.shape[1]
    hits = actual[predicted == actual].bincount(minlength=classes).double()
    total = actual.bincount(minlength=classes) + predicted.bincount(minlength=classes)
    return float((2.0 * hits[total > 0] / total[total > 0]).mean())


def utility(logits: torch.Tensor, labels: torch.Tensor, split: Split) -> dict[str, float]:
    """Accuracy and macro-F1 on every part of a split.

    Args:
        logits: (n, classes). labels: int64 (n,). split: training, validation and test nodes.

    Returns:
        ``accuracy_train``, ``macro_f1_train``, ``accuracy_val``, ...; a part without nodes is left out.
    """
    result = {}
    for part in (field.name for field in fields(split)):
        nodes = getattr(split, part)
        if len(nodes):
            result[f"accuracy_{part}"] = accuracy(logits, labels, nodes)
            result[f"macro_f1_{part}"] = macro_f1(logits, labels, nodes)
    return result


def posterior_distance(first: torch.Tensor, second: torch.Tensor, nodes: torch.Tensor | None = None) -> torch.Tensor:
    """Total variation between two models' posteriors, node by node: the largest difference in any event's probability.

    Args:
        first, second: logits, (n, classes) each. nodes: int64; None for all.

    Returns:
        float64 (nodes,), in [0, 1]; 0 where the posteriors are equal.
    """
    if first.shape != second.shape:
        raise InputError(f"logits of shape {tuple(first.shape)} and {tuple(second.shape)} cannot be compared")
    if nodes is not None:
        first, second = first[nodes], second[nodes]
    return 0.5 * (torch.softmax(first.double(), dim=1) - torch.softmax(second.double(), dim=1)).abs().sum(dim=1)


def _check(logits: torch.Tensor, labels: torch.Tensor, nodes: torch.Tensor) -> None:
    if len(logits) != len(labels):
        raise InputError(f"{len(logits)} rows of logits but {len(labels)} labels: they belong to different graphs")
    if len(nodes) == 0:
        raise InputError("no nodes to evaluate on: check the split")
