"""GNNDelete: one small operator per layer, trained on the neighbourhood of the request; the model itself is frozen.

    S_l = nodes within l hops of an endpoint
    h'_l = layer_l(h'_{l-1}) before its activation, and on S_l times W_l;        W_l = I at the start, h = all W_l at I
    DEC_l = mean of (h'_l[u] - h_l[p])^2, (h'_l[v] - h_l[q])^2 over forgotten (u, v), each with a random pair (p, q)
    NI_l  = mean of (h'_l[w] - h_l[w])^2 over w in S_l that are no endpoints         both means over all entries of the rows
    W_l by Adam on  weight DEC_l + (1 - weight) NI_l,  layer by layer: the input of a layer is a constant to its loss
    answer on G_r with the operators in place

Cheng, Dasoulas, He, Agarwal, Zitnik, "GNNDelete: a general strategy for unlearning in graph neural networks", ICLR
2023. h is the original model on G_r, so with W_l = I the released model is the unlinked one bit for bit, and NI is 0
there; random pairs are drawn once and kept. They are drawn by node number: the same graph with its nodes numbered
otherwise gets other pairs, and so other operators, equal in distribution alone. Outputs outside S_L never change, but for
``ends_only`` with three layers or more, where those within L hops can.

SGC has no rows between its hops. Its operators act on the class scores after every hop, which is the same network
written as K layers, the first of which projects; at W = I it answers with SGC's own arithmetic.

Differences from the paper: its operators start at 0.001 in every entry (``start="ones"``), which maps every row of the
region to one direction and takes thousands of small steps to leave; with few steps the model collapses. Ours start at
the identity. It takes 1,500 steps at rate 1e-3; 100 at 1e-2 reach the same loss. Its NI is the mean over nodes of the SUM
of a row's squares, ours is smaller by the width of the layer, and so weighs less against DEC, a mean over entries in both.
Its task is link prediction, so its last layer is an embedding; here it holds the logits.

``published``: the traits of the Lethe benchmark (arXiv:2610.21869): ones / 1000 and 10 epochs; DEC compares scores of
forgotten edges with scores of fresh random pairs, h'[u] . h'[v] against h'[p] . h'[q]; NI with the endpoints; training on
G with dropout, all operators on the summed loss; operators after the first and the last layer only, for 1 and 2 hops. The
benchmark trains on the edges within two hops of the request and draws its pairs among non-edges, one for each direction.
"""

from dataclasses import dataclass

import numpy as np
import torch
from torch import nn
from torch_geometric.data import Data

from lethe_lib.errors import InputError
from lethe_lib.models import Backbone
from lethe_lib.models.propagation import propagate_project, propagation
from lethe_lib.models.sgc import SGC
from lethe_lib.seeding import numpy_generator
from lethe_lib.structure import affected_nodes
from lethe_lib.unlearning.request import EdgeRequest
from lethe_lib.unlearning.result import Unlearner
from lethe_lib.unlearning.steps import StepEngine, StepLog

RANK_ONE = 0.999
"""Share of the squared singular values on the first one above which the region's rows count as collapsed to a line."""


@dataclass(frozen=True)
class GnnDeleteSettings:
    """Settings.

    Attributes:
        epochs: full-batch steps. learning_rate: of Adam.
        weight: of DEC; NI has the rest.
        start: initial operators: ``identity`` or ``ones`` (0.001 in every entry).
        consistency: ``rows`` (DEC as above) or ``scores`` (dot products, fresh pairs every epoch).
        endpoints_in_influence: NI over the whole of S_l.
        joint: train all operators on the sum of all losses; else each on its own layer's.
        dropout: train in training mode.
        graph: graph of the training forwards, ``retained`` or ``original``.
        ends_only: operators after the first layer (1 hop) and the last one (2 hops) only.
    """

    epochs: int = 100
    learning_rate: float = 1e-2
    weight: float = 0.5
    start: str = "identity"
    consistency: str = "rows"
    endpoints_in_influence: bool = False
    joint: bool = False
    dropout: bool = False
    graph: str = "retained"
    ends_only: bool = False

    def __post_init__(self):
        allowed = {
            "start": ("identity", "ones"),
            "consistency": ("rows", "scores"),
            "graph": ("retained", "original"),
        }
        for name, values in allowed.items():
            if getattr(self, name) not in values:
                raise InputError(f"{name}={getattr(self, name)!r} is unknown: choose {' or '.join(values)}")
        if not 0.0 <= self.weight <= 1.0:
            raise InputError(f"weight={self.weight} must lie in [0, 1]")


class DeletionNetwork(Backbone):
    """A frozen backbone with an operator behind some of its layers, for the nodes of a region of one graph.

    Attributes:
        base: the backbone, without gradients.
        operators: float32, (width_l, width_l), by the number of the layer as a string.
        regions: sorted node indices for every layer that has an operator.

    Args:
        base: the backbone; it is frozen in place.
        regions: layer -> node indices.
        widths: of the output of every layer.
        nodes: number of nodes of the graph: the model answers on no other.
    """

    def __init__(self, base: Backbone, regions: dict[int, torch.Tensor], widths: list[int], nodes: int):
        super().__init__(base.depth, base.dropout_rate)
        self.base = base.requires_grad_(False)
        self.nodes = nodes
        self.training_run = base.training_run
        self.aggregation, self.degree_weighted = base.aggregation, base.degree_weighted
        like = next(base.parameters())
        self.operators = nn.ParameterDict({str(layer): torch.eye(widths[layer]).to(like) for layer in regions})
        for layer, region in regions.items():
            self.register_buffer(f"region_{layer}", region.to(like.device))
        self.eval()

    def region(self, layer: int) -> torch.Tensor:
        return getattr(self, f"region_{layer}")

    def reset_parameters(self, generator: torch.Generator) -> None:
        """Operators back to the identity: they have no random start."""
        with torch.no_grad():
            for operator in self.operators.values():
                operator.copy_(torch.eye(len(operator)))

    def apply_operator(self, layer: int, rows: torch.Tensor, nodes: torch.Tensor | None = None) -> torch.Tensor:
        """Rows behind a layer, those of its region times the operator.

        Args:
            layer: number of the layer.
            rows: (r, width).
            nodes: whose rows these are; None for all nodes in order.
        """
        if str(layer) not in self.operators:
            return rows
        region = self.region(layer)
        inside = region if nodes is None else torch.nonzero(torch.isin(nodes, region)).flatten()
        return rows.index_copy(0, inside, rows[inside] @ self.operators[str(layer)])

    def check(self, data: Data) -> None:
        """Refuse a graph with other nodes than those that the regions name."""
        if data.num_nodes != self.nodes:
            raise InputError(
                f"the deletion operators belong to a graph of {self.nodes} nodes, and this one has {data.num_nodes}"
            )

    def convolve(self, layer: int, data: Data, rows: torch.Tensor | None) -> torch.Tensor:
        self.check(data)
        # The base draws its dropout masks (on attention, in heads) where this model does.
        self.base.generator = self.generator
        return self.apply_operator(layer, self.base.convolve(layer, data, rows))

    def activation(self, rows: torch.Tensor) -> torch.Tensor:
        return self.base.activation(rows)

    @property
    def input_layer_is_random(self) -> bool:
        return self.base.input_layer_is_random

    def node_rows(
        self, layer: int, aggregated: torch.Tensor, own: torch.Tensor, nodes: torch.Tensor | None = None
    ) -> torch.Tensor:
        return self.apply_operator(layer, self.base.node_rows(layer, aggregated, own, nodes), nodes)


class DeletionSGC(DeletionNetwork):
    """The same for SGC: operators on the class scores after every hop."""

    def convolve(self, layer: int, data: Data, rows: torch.Tensor | None) -> torch.Tensor:
        self.check(data)
        head, kind = self.base.head, self.base.aggregation
        if layer == 0:
            scores = propagate_project(data, kind, head.weight, rows)
        else:
            scores = propagation(data, kind, rows) @ rows
        return self.apply_operator(layer, self._with_bias(layer, scores))

    def node_rows(
        self, layer: int, aggregated: torch.Tensor, own: torch.Tensor, nodes: torch.Tensor | None = None
    ) -> torch.Tensor:
        scores = aggregated @ self.base.head.weight.T if layer == 0 else aggregated
        return self.apply_operator(layer, self._with_bias(layer, scores), nodes)

    def forward(self, data: Data, x: torch.Tensor | None = None) -> torch.Tensor:
        """SGC's own logits plus what the operators change: at the identity that is 0, and the logits are SGC's bits."""
        self.check(data)
        logits, weight, kind = self.base(data, x), self.base.head.weight, self.base.aggregation
        change = torch.zeros_like(logits)
        for layer in range(self.depth):
            if layer:
                change = propagation(data, kind, change) @ change
            if str(layer) in self.operators:
                last = layer == self.depth - 1
                scores = logits if last else propagate_project(data, kind, weight, x, power=layer + 1)
                region, operator = self.region(layer), self.operators[str(layer)]
                moved = (scores + change)[region] @ (operator - torch.eye(len(operator)).to(operator))
                change = change.index_add(0, region, moved)
        return logits + change

    def _with_bias(self, layer: int, scores: torch.Tensor) -> torch.Tensor:
        bias = self.base.head.bias
        return scores if layer < self.depth - 1 or bias is None else scores + bias


def delete_with_operators(
    model: Backbone, request: EdgeRequest, settings: GnnDeleteSettings, seed: int
) -> tuple[Backbone, StepLog]:
    """Freeze the model, train the operators, and release both together.

    Cost: one forward and one backward an epoch, and two forwards for the rows to compare with. The rows of the log hold
    ``consistency`` (DEC) and ``influence`` (NI), summed over layers. The last row holds for every layer with an operator
    ``region`` (share of all nodes) and ``first_direction`` (share of the squared singular values of the region's rows on
    the first one); the note says where the rows have collapsed to a line.
    """
    hops = {0: 1, model.depth - 1: 2} if settings.ends_only else {layer: layer + 1 for layer in range(model.depth)}
    regions = {layer: affected_nodes(request.data, request.pairs, radius) for layer, radius in hops.items()}
    if isinstance(model, SGC):
        network = DeletionSGC(model, regions, [int(request.data.num_classes)] * model.depth, request.data.num_nodes)
    else:
        with torch.no_grad():
            widths = [rows.shape[1] for rows in layer_rows(model, request.retained)]
        network = DeletionNetwork(model, regions, widths, request.data.num_nodes)
    graph = request.retained if settings.graph == "retained" else request.data
    with torch.no_grad():  # the operators are still the identity
        reference = layer_rows(network, request.retained)
        first = None if settings.dropout and model.input_layer_is_random else network.convolve(0, graph, None)
    if settings.start == "ones":
        with torch.no_grad():
            for operator in network.operators.values():
                operator.fill_(1e-3)

    engine = StepEngine(network, "adam", settings.learning_rate, 0.0, seed, "gnn_delete")
    engine.log.forwards += 2
    ends = request.pairs.to(engine.device)
    inner = {layer: _inner(regions[layer], request.pairs, settings).to(engine.device) for layer in hops}
    generator = numpy_generator(seed, "unlearning", "gnn_delete", "random pairs")
    others = _random_pairs(generator, request).to(engine.device)
    network.train(settings.dropout)
    for _ in range(settings.epochs):
        outputs = layer_rows(network, graph, not settings.joint, first)
        engine.log.forwards += 1
        if settings.consistency == "scores":
            others = _random_pairs(generator, request).to(engine.device)
        consistency, influence = torch.zeros((), device=engine.device), torch.zeros((), device=engine.device)
        for layer in hops:
            now, before = outputs[layer], reference[layer]
            if settings.consistency == "rows":
                consistency = consistency + (now[ends] - before[others]).square().mean()
            else:
                apart = (now[ends[0]] * now[ends[1]]).sum(1) - (now[others[0]] * now[others[1]]).sum(1)
                consistency = consistency + apart.square().mean()
            if len(inner[layer]):
                influence = influence + (now[inner[layer]] - before[inner[layer]]).square().mean()
        loss = settings.weight * consistency + (1.0 - settings.weight) * influence
        engine.step(loss, consistency=float(consistency.detach()), influence=float(influence.detach()))
    log = engine.finish()
    network.base.generator = None
    _describe(network, request, log)
    return network, log


def layer_rows(
    network: Backbone, data: Data, separate: bool = False, first: torch.Tensor | None = None
) -> list[torch.Tensor]:
    """The rows behind every layer before its activation.

    Args:
        network: its mode decides about dropout.
        data: the graph.
        separate: cut the gradient between layers, so that a loss on a layer trains that layer's operator alone.
        first: the first layer's rows without operator, if they are known; None computes them.

    Returns:
        ``depth`` tensors, (n, width) each; the last holds the logits. For SGC and its operators: class scores.
    """
    outputs, rows = [], None
    for layer in range(network.depth):
        if layer:
            rows = network.dropout(network.activation(outputs[-1]))
            rows = rows.detach() if separate else rows
        known = layer == 0 and first is not None
        outputs.append(network.apply_operator(0, first) if known else network.convolve(layer, data, rows))
    return outputs


def first_direction(rows: torch.Tensor) -> float:
    """Share of the squared singular values on the first one, in (0, 1]; 1 for rows on a line through 0, or all 0."""
    squares = torch.linalg.svdvals(rows.detach().double().cpu()).square()
    total = float(squares.sum())
    return float(squares[0]) / total if total > 0 else 1.0


def _inner(region: torch.Tensor, pairs: torch.Tensor, settings: GnnDeleteSettings) -> torch.Tensor:
    return region if settings.endpoints_in_influence else region[~torch.isin(region, pairs)]


def _random_pairs(generator: np.random.Generator, request: EdgeRequest) -> torch.Tensor:
    """As many pairs of two distinct nodes as there are pairs in the request, (2, n)."""
    n, count = request.data.num_nodes, request.pairs.shape[1]
    first = generator.integers(n, size=count)
    second = (first + 1 + generator.integers(n - 1, size=count)) % n
    return torch.from_numpy(np.stack([first, second]))


@torch.no_grad()
def _describe(network: DeletionNetwork, request: EdgeRequest, log: StepLog) -> None:
    """The last row of the log, and a note where the region's rows lie on a line."""
    rows = layer_rows(network, request.retained)
    row, collapsed = {}, []
    for name in network.operators:
        region = network.region(int(name))
        row[f"region_{name}"] = len(region) / network.nodes
        row[f"first_direction_{name}"] = first_direction(rows[int(name)][region])
        if row[f"first_direction_{name}"] > RANK_ONE and len(region) > 1:
            collapsed.append(str(int(name) + 1))
    log.rows.append(row)
    if collapsed:
        log.note = f"the region's rows behind layer {' and '.join(collapsed)} have collapsed to one direction"


GNN_DELETE = Unlearner(
    delete_with_operators,
    {
        "corrected": GnnDeleteSettings(),
        "published": GnnDeleteSettings(
            epochs=10,
            learning_rate=1e-3,
            start="ones",
            consistency="scores",
            endpoints_in_influence=True,
            joint=True,
            dropout=True,
            graph="original",
            ends_only=True,
        ),
    },
    "graph-native",
    "Cheng, Dasoulas, He, Agarwal, Zitnik, ICLR 2023",
)
