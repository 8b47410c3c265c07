"""What one node does to the others: how many representations change when it is left out of the training graph.

    for every graph and ratio: sample a training graph, train one model on it
        for each of ``removed`` random nodes: take its edges away, at fixed weights
            -> other nodes with other hidden rows, with other outputs, with a posterior that moves by more than MOVED
        for each of ``retrained`` random nodes: delete it, train again from the same initial weights
            -> share of the other nodes whose posterior moves by more than MOVED; the same among the nodes that the
               removal alone cannot reach; and, for scale, the share under another seed with no node deleted

Taking the edges away does to all other nodes what deleting the node does, since a node without edges sends nothing.
Rows are compared in float64, so that "changes" means more than rounding.
"""

import copy
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from torch_geometric.data import Data

from lethe_lib.errors import InputError
from lethe_lib.evaluation import posterior_distance
from lethe_lib.models import Backbone
from lethe_lib.models.propagation import features
from lethe_lib.sampling import TrainingSample, sample_nodes
from lethe_lib.seeding import derive_seed, numpy_generator
from lethe_lib.shadow import ShadowTraining, fit_shadow, training_graph
from lethe_lib.study.configuration import Configuration, Measurement
from lethe_lib.study.trained import graph

GRAPHS = ("cora", "citeseer", "pubmed", "photo")
REMOVED = {0.1: 100, 0.5: 100, 1.0: 500}
"""Ratio -> nodes left out at fixed weights; more of them on whole graphs, which decide the claim."""

RETRAINED = {"cora": 10, "citeseer": 10}
"""Graph -> nodes for which the model is trained again, on training graphs of at least half of the nodes."""

MOVED = 0.01
"""Total variation between two posteriors of a node above which it counts as moved."""

ROUNDING = 1e-9
"""Relative difference of a row, in float64, below which it counts as unchanged."""


@dataclass(frozen=True)
class Changes:
    """How many other nodes change when one node is left out, (k,) int64 each, one entry a removed node.

    Attributes:
        hidden: nodes with another row in the first hidden layer. outputs: nodes with other logits.
        moved: nodes whose posterior moves by more than MOVED in total variation.
        reached: (k, n) bool, the nodes counted in ``outputs``.
    """

    hidden: np.ndarray
    outputs: np.ndarray
    moved: np.ndarray
    reached: np.ndarray


def changes_without(model: Backbone, data: Data, nodes) -> Changes:
    """Leave out single nodes at fixed weights and count what changes elsewhere.

    Args:
        model: a backbone with a hidden layer; a copy of it is evaluated in float64.
        data: the graph that it is asked on.
        nodes: (k,) positions of the nodes to leave out, one at a time.
    """
    model = copy.deepcopy(model).double()
    hidden, logits = _rows(model, data)
    counts, reached = [], []
    for node in nodes:
        others = np.arange(data.num_nodes) != int(node)
        new_hidden, new_logits = _rows(model, without_edges_of(data, int(node)))
        outputs = _differ(logits, new_logits) & others
        moved = posterior_distance(logits, new_logits).numpy() > MOVED
        counts.append([(_differ(hidden, new_hidden) & others).sum(), outputs.sum(), (moved & others).sum()])
        reached.append(outputs)
    return Changes(*np.array(counts, dtype=np.int64).T, np.array(reached))


def moved_by_retraining(data: Data, sample: TrainingSample, model: Backbone, node: int, seed: int, **how) -> np.ndarray:
    """Which other nodes move when one node is deleted and the model trained again from the same initial weights.

    Each model is asked on its own training graph.

    Args:
        data: the whole graph. sample: the nodes and edges that ``model`` was trained on.
        node: position, among the sampled nodes, of the one to delete.
        seed: of the initial weights, the same as that of ``model``.
        **how: ``backbone`` and ``training`` of :func:`lethe_lib.shadow.fit_shadow`.

    Returns:
        (s,) bool over the sampled nodes, False for the deleted one.
    """
    kept = without_node(sample, node)
    others = torch.isin(sample.nodes, kept.nodes).numpy()
    smaller = training_graph(data, kept)
    before = _logits(model, training_graph(data, sample))[others]
    after = _logits(fit_shadow(smaller, seed=seed, **how), smaller)
    moved = np.zeros(len(sample.nodes), dtype=bool)
    moved[others] = posterior_distance(before, after).numpy() > MOVED
    return moved


def without_edges_of(data: Data, node: int) -> Data:
    """The graph with one node isolated; node rows are shared."""
    other = copy.copy(data)
    other.edge_index = data.edge_index[:, (data.edge_index != node).all(dim=0)]
    other.content_hash = ""
    return other


def without_node(sample: TrainingSample, position: int) -> TrainingSample:
    """The sample without the node at a position of ``sample.nodes``, and without its edges."""
    node = sample.nodes[position]
    kept = sample.nodes[sample.nodes != node]
    return replace(sample, nodes=kept, edges=sample.edges[:, (sample.edges != node).all(dim=0)])


@dataclass(frozen=True)
class OneNodeConfiguration(Configuration):
    """One training graph, one model, and what single nodes of it do to the others.

    Attributes:
        backbone: registry name. ratio: share of the nodes in the training graph, a uniform sample with induced edges.
        removed: nodes left out at fixed weights. retrained: nodes deleted before training again.
    """

    backbone: str = "gcn"
    ratio: float = 1.0
    removed: int = 100
    retrained: int = 0

    @property
    def group(self) -> tuple:
        """Nothing is shared between settings."""
        return (self.key,)

    def measure(self, models: Path | None, device: str) -> Measurement:
        data, how = graph(self.data), {"backbone": self.backbone, "training": ShadowTraining()}
        sample = sample_nodes("uniform", data, self.ratio, self.seed)
        trained_on = training_graph(data, sample)
        size = trained_on.num_nodes
        if not 0 <= self.retrained <= self.removed <= size:
            raise InputError(
                f"{self.removed} nodes to remove and {self.retrained} to retrain without, of {size} in the sample: "
                "choose removed at most the size, and retrained at most removed"
            )
        seed = derive_seed(self.seed, "one node")
        model = fit_shadow(trained_on, seed=seed, **how)
        nodes = numpy_generator(self.seed, "one node", "removed").choice(size, self.removed, replace=False)
        found = changes_without(model, trained_on, nodes)
        counts = {"hidden": found.hidden, "outputs": found.outputs, "moved": found.moved}
        metrics = {"sampled": size, "mean_degree": trained_on.num_edges / size}
        for name, values in counts.items():
            metrics |= {
                f"{name}_mean": values.mean(),
                f"{name}_error": values.std(ddof=1) / np.sqrt(len(values)),
                f"{name}_median": np.median(values),
                f"{name}_largest": values.max(),
            }
        if self.retrained:
            moved = np.array(
                [moved_by_retraining(data, sample, model, int(node), seed, **how) for node in nodes[: self.retrained]]
            )
            shares = moved.sum(axis=1) / (size - 1)
            beyond = ~found.reached[: self.retrained]
            beyond[np.arange(self.retrained), nodes[: self.retrained]] = False
            other_model = fit_shadow(trained_on, seed=derive_seed(self.seed, "one node", "another"), **how)
            distance = posterior_distance(_logits(model, trained_on), _logits(other_model, trained_on))
            other = distance.numpy() > MOVED
            metrics |= {
                "retrained_share": shares.mean(),
                "retrained_error": shares.std(ddof=1) / np.sqrt(len(shares)),
                "retrained_beyond": (moved & beyond).sum() / beyond.sum(),
                "other_seed_share": other.mean(),
            }
        return Measurement("ok", "", metrics, counts)


def one_node(graphs=GRAPHS) -> list[Configuration]:
    """Training graphs of a tenth, of half and of all nodes, under GCN."""
    return [
        OneNodeConfiguration(
            name, ratio=ratio, removed=removed, retrained=RETRAINED.get(name, 0) if ratio >= 0.5 else 0
        )
        for name in graphs
        for ratio, removed in REMOVED.items()
    ]


@torch.no_grad()
def _rows(model: Backbone, data: Data) -> tuple[torch.Tensor, torch.Tensor]:
    """Rows of the first hidden layer, and logits, in evaluation mode."""
    x = features(data, next(model.parameters()))
    # Dense features handed over are projected before they are propagated; else every new graph would propagate them wide.
    first = model.eval().input_layer(data, x if isinstance(x, torch.Tensor) else None)
    return model.activation(first), model.rest(data, first)


@torch.no_grad()
def _logits(model: Backbone, data: Data) -> torch.Tensor:
    return model.eval()(data).double()


def _differ(before: torch.Tensor, after: torch.Tensor) -> np.ndarray:
    scale = torch.maximum(before.abs().amax(dim=1), after.abs().amax(dim=1))
    return ((before - after).abs().amax(dim=1) > ROUNDING * scale).numpy()
