"""The request to forget edges, and what it means for methods that were made to forget samples.

No labelled sample is deleted by an edge request: every training node keeps its label, and only its view of the graph
changes. Removing the pairs E_f turns the graph G into G_r, and

    |V_L| L(theta; G)   = sum over untouched nodes + sum over touched nodes of loss(f(G)_v, y_v)
    |V_L| L(theta; G_r) = sum over untouched nodes + sum over touched nodes of loss(f(G_r)_v, y_v),

so edge unlearning deletes the old views of the touched training nodes and inserts their new views. That is the default
mapping: forget terms read training nodes on G, retain terms read all training nodes on G_r. Retraining trains on the
endpoints too, so they stay in the retain set.

The mapping ``published`` is the benchmark's (arXiv:2610.21869): forget set = every node near the request, test nodes
with their labels included; retain set = all other nodes; both on G. It leaks test labels and never sees G_r; it exists
to reproduce published numbers.
"""

from dataclasses import dataclass
from functools import cached_property

import torch
from torch_geometric.data import Data

from lethe_lib.errors import InputError
from lethe_lib.models import Backbone
from lethe_lib.structure import affected_nodes, check_pairs, remove_edges


@dataclass(frozen=True)
class EdgeForgetSpec:
    """How an edge request becomes forget and retain samples.

    Attributes:
        forget_nodes: ``endpoints``; ``hops`` (all nodes within ``hops`` of an endpoint); ``affected`` (output moved by
            more than ``threshold``); ``displaced`` (smallest set that holds the share ``share`` of all movement).
        hops: radius for ``hops``; None takes the model's depth.
        threshold: least movement in logits, L2, for ``affected``.
        share: share of the total movement for ``displaced``, in (0, 1].
        train_only: drop every node outside the training set, so that no other label can be read.
        forget_graph: ``original`` or ``retained``: the graph on which forget terms are evaluated.
        retain_nodes: ``train``; ``train_minus_forget``; ``complement`` (every node that is not a forget node).
        retain_graph: ``retained`` or ``original``.
        weights: ``uniform`` or ``displacement`` (proportional to the node's movement, mean 1), for forget terms.
    """

    forget_nodes: str = "endpoints"
    hops: int | None = None
    threshold: float = 0.0
    share: float = 0.9
    train_only: bool = True
    forget_graph: str = "original"
    retain_nodes: str = "train"
    retain_graph: str = "retained"
    weights: str = "uniform"

    def __post_init__(self):
        allowed = {
            "forget_nodes": ("endpoints", "hops", "affected", "displaced"),
            "forget_graph": ("original", "retained"),
            "retain_nodes": ("train", "train_minus_forget", "complement"),
            "retain_graph": ("retained", "original"),
            "weights": ("uniform", "displacement"),
        }
        for name, values in allowed.items():
            if getattr(self, name) not in values:
                raise InputError(f"{name}={getattr(self, name)!r} is unknown: choose one of {', '.join(values)}")
        if not 0.0 < self.share <= 1.0:
            raise InputError(f"share={self.share} must lie in (0, 1]")


EDGE_REPLACE = EdgeForgetSpec()
"""The default: delete the old views of the training endpoints, keep every training node as G_r shows it."""

PUBLISHED = EdgeForgetSpec(
    forget_nodes="hops", train_only=False, retain_nodes="complement", retain_graph="original", forget_graph="original"
)
"""The benchmark's mapping. Reads validation and test labels."""

CORRECTIVE = EdgeForgetSpec(retain_nodes="train_minus_forget", forget_graph="retained")
"""The mapping of corrective unlearning: endpoints apart from the rest, everything on the retained graph."""


class EdgeRequest:
    """One request, built once and read by every method: the two graphs and the node sets of a mapping.

    Attributes:
        data: the original graph G. retained: the graph G_r without the pairs.
        pairs: int64, (2, n) canonical pairs.
        split: the model's training, validation and test nodes.
        spec: the mapping.

    Args:
        model: the trained model (its split is read, and its movement where the mapping asks for it).
        data: the original graph.
        forget: (2, n) pairs of G; checked: edges of the graph, no loop, no pair twice.
        spec: the mapping.
    """

    def __init__(self, model: Backbone, data: Data, forget: torch.Tensor, spec: EdgeForgetSpec = EDGE_REPLACE):
        if model.training_run is None:
            raise InputError("the model has no training_run, so its training nodes are unknown: train it with train()")
        self.data = data
        self.pairs = check_pairs(data, forget)
        self.retained = remove_edges(data, self.pairs)
        self.split = model.training_run.split
        self.spec = spec
        self._model = model

    @property
    def empty(self) -> bool:
        return self.pairs.shape[1] == 0

    @cached_property
    def movement(self) -> torch.Tensor:
        """How far each node's logits move when the pairs leave the graph: ||f(G)_v - f(G_r)_v||_2, (n,)."""
        mode = self._model.training
        self._model.eval()
        with torch.no_grad():
            moved = (self._model(self.data) - self._model(self.retained)).norm(dim=1).cpu()
        self._model.train(mode)
        return moved

    @cached_property
    def forget_nodes(self) -> torch.Tensor:
        """The nodes of the forget term, sorted int64."""
        spec = self.spec
        if spec.forget_nodes == "endpoints":
            nodes = torch.unique(self.pairs)
        elif spec.forget_nodes == "hops":
            nodes = affected_nodes(self.data, self.pairs, self._model.depth if spec.hops is None else spec.hops)
        elif spec.forget_nodes == "affected":
            nodes = torch.nonzero(self.movement > spec.threshold).flatten()
        else:
            order = torch.argsort(self.movement, descending=True, stable=True)
            total = self.movement[order].double().cumsum(0)
            count = int(torch.searchsorted(total, spec.share * total[-1])) + 1 if total[-1] > 0 else 0
            nodes = torch.sort(order[:count]).values
        return _intersect(nodes, self.split.train) if spec.train_only else nodes

    @cached_property
    def retain_nodes(self) -> torch.Tensor:
        """The nodes of the retain term, sorted int64."""
        if self.spec.retain_nodes == "train":
            return self.split.train
        universe = (
            self.split.train if self.spec.retain_nodes == "train_minus_forget" else torch.arange(self.data.num_nodes)
        )
        return universe[~torch.isin(universe, self.forget_nodes)]

    @property
    def forget_graph(self) -> Data:
        return self.data if self.spec.forget_graph == "original" else self.retained

    @property
    def retain_graph(self) -> Data:
        return self.retained if self.spec.retain_graph == "retained" else self.data

    @cached_property
    def forget_weights(self) -> torch.Tensor:
        """Weights of the forget nodes, float32 with mean 1, in the order of ``forget_nodes``."""
        if self.spec.weights == "uniform":
            return torch.ones(len(self.forget_nodes))
        moved = self.movement[self.forget_nodes]
        if len(moved) == 0 or moved.sum() == 0:
            return torch.ones(len(moved))
        return moved / moved.mean()


def _intersect(nodes: torch.Tensor, others: torch.Tensor) -> torch.Tensor:
    return nodes[torch.isin(nodes, others)]
