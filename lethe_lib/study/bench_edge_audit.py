"""The edge audit's speed: trials per second against a plain loop of PyTorch Geometric."""

import time

import numpy as np
import torch
from torch.nn.functional import cross_entropy, dropout
from torch_geometric.data import Data
from torch_geometric.nn import GATConv, GCNConv

from lethe_lib.attacks.edge_design import EdgeDesign, edge_design, release
from lethe_lib.attacks.edge_statistics import edge_statistics, statistic_names
from lethe_lib.attacks.edge_toggle import EdgeToggles
from lethe_lib.data import load_graph, split_nodes
from lethe_lib.errors import DataNotFound
from lethe_lib.models import PRESETS, build, train
from lethe_lib.models.propagation import dense_features
from lethe_lib.structure import forget_set

TRIALS = 3
PAIRS = 20
"""Of the pool, put into the graph one by one under GAT."""


class Plain(torch.nn.Module):
    """Two layers over ``edge_index``, 64 hidden units, dropout on the hidden rows."""

    def __init__(self, inputs: int, classes: int, layer: type = GCNConv):
        super().__init__()
        self.convs = torch.nn.ModuleList([layer(inputs, 64), layer(64, classes)])

    def forward(self, x: torch.Tensor, edge_index: torch.Tensor) -> torch.Tensor:
        hidden = torch.relu(self.convs[0](x, edge_index))
        return self.convs[1](dropout(hidden, 0.5, self.training), edge_index)


def bench(name: str = "cora", pool: str = "low") -> dict[str, float]:
    """Measure and print; both sides do the same trials of unlinking on the same graph in this process, in turn.

    A trial trains an original, releases it, and reads the statistics of all pairs of the pool on the base graph. The plain
    loop trains for as many epochs as ours did, with a validation forward each, and puts every pair into the query graph
    with a forward of its own. Times without that toggle, and of that toggle under GAT, are given beside.

    Args:
        name: a graph; ``photo-like`` is generated where its files cannot be had.
        pool: kind of forget set.

    Returns:
        ``ours`` and ``plain`` (trials per CPU second), ``ratio``; ``ratio_without_toggle``; ``ratio_gat``.
    """
    try:
        data = load_graph(name)
    except DataNotFound as missing:
        print(f"{name} cannot be had, measuring on a generated graph instead: {missing}")
        data = load_graph("photo-like")
    design = edge_design(data, forget_set(data, pool), 4)
    split = split_nodes(data, 0)
    toggles = EdgeToggles(design.base, design.pool)
    edge_statistics(train(data, epochs=1), design.base, design.pool, toggles)  # what is computed once a graph
    ours, plain = np.zeros(2), np.zeros(2)  # seconds of training, and of the toggle
    for trial in range(TRIALS):
        start = time.process_time()
        original = train(design.graph(trial), "gcn", design.training_seeds[trial], split=split)
        model = release(design, trial, original, "utu").model
        edge_statistics(model, design.base, design.pool)
        middle = time.process_time()
        toggles.logits(model)
        ours += middle - start, time.process_time() - middle
        plain += _plain_trial(design, trial, split, original.training_run.epochs)
    result = {"ours": TRIALS / ours.sum(), "plain": TRIALS / plain.sum(), "ratio": plain.sum() / ours.sum()}
    result["ratio_without_toggle"] = plain[0] / ours[0]
    result["ratio_gat"] = _gat_toggle(design, toggles)
    print(
        f"Edge audit on {data.name}, pool of {design.pool.shape[1]:,} edges, {len(statistic_names())} statistics "
        f"({torch.get_num_threads()} thread(s), CPU time)\n"
        f"  ours                                   {result['ours']:8.3f} trials/s\n"
        f"  plain loop, PyG GCNConv over edges     {result['plain']:8.3f} trials/s\n"
        f"  ratio {result['ratio']:.1f}x (target 4x); without the edge toggle {result['ratio_without_toggle']:.1f}x, "
        f"the toggle under GAT {result['ratio_gat']:.0f}x"
    )
    return result


@torch.no_grad()
def _gat_toggle(design: EdgeDesign, toggles: EdgeToggles) -> float:
    """How many times the CPU time of our toggle of the pool under GAT a forward a pair takes, from PAIRS of its pairs."""
    base, model = design.base, build(design.base, "gat", 0).eval()
    plain = Plain(base.x.shape[1], base.num_classes, GATConv).eval()
    x, pairs = dense_features(base, next(plain.parameters())), design.pool[:, :PAIRS]
    toggles.logits(model)  # what is computed once a graph
    start = time.process_time()
    toggles.logits(model)
    middle = time.process_time()
    for pair in pairs.T:
        plain(x, _with_pair(base, pair))
    return (time.process_time() - middle) * design.pool.shape[1] / pairs.shape[1] / (middle - start)


def _plain_trial(design: EdgeDesign, trial: int, split, epochs: int) -> np.ndarray:
    """CPU seconds of a trial in the plain loop: training and answers, and the toggle."""
    torch.manual_seed(trial)
    start = time.process_time()
    graph, base = design.graph(trial), design.base
    model, schedule = Plain(graph.x.shape[1], graph.num_classes), PRESETS["corrected"]
    x = dense_features(graph, next(model.parameters()))
    optimiser = torch.optim.Adam(model.parameters(), lr=schedule.learning_rate, weight_decay=schedule.weight_decay)
    for _ in range(epochs):
        optimiser.zero_grad(set_to_none=True)
        cross_entropy(model.train()(x, graph.edge_index)[split.train], graph.y[split.train]).backward()
        optimiser.step()
        with torch.no_grad():
            cross_entropy(model.eval()(x, graph.edge_index)[split.val], graph.y[split.val])
    with torch.no_grad():
        model.eval()(x, base.edge_index).softmax(dim=1)
        middle = time.process_time()
        for pair in design.pool.T:
            model(x, _with_pair(base, pair))[pair]
    return np.array([middle - start, time.process_time() - middle])


def _with_pair(base: Data, pair: torch.Tensor) -> torch.Tensor:
    return torch.cat([base.edge_index, torch.stack([pair, pair.flip(0)], dim=1)], dim=1)
