"""LinkTeller's speed: exact influence of all pairs against the published recipe of two full forwards a pair."""

import statistics
import time

import numpy as np
import torch
from torch_geometric.data import Data
from torch_geometric.nn import GCNConv

from lethe_lib.attacks import link_teller_influence
from lethe_lib.data import load_graph
from lethe_lib.errors import DataNotFound
from lethe_lib.models import Backbone, build
from lethe_lib.models.propagation import dense_features
from lethe_lib.seeding import numpy_generator
from lethe_lib.structure import forget_set, remove_edges, sample_non_edges

SAMPLE = 20
REPEATS = 3


def bench(data: Data | None = None) -> dict[str, float]:
    """Measure, check and print; both sides do the same pairs on the same graph in this process.

    The graph is Photo without its 5 % low-centrality edges (a generated graph of the same size where Photo cannot be
    had), the pairs are those edges and as many non-edges, each in one direction. Ours is timed over all pairs, cold,
    so that nothing is remembered from an earlier call. The recipe runs PyTorch Geometric's ``GCNConv`` over
    ``edge_index`` twice a pair, in float32, and is extrapolated from a sample of pairs. Values are compared on the
    sample with a central difference in float64, since the recipe's own ones are mostly rounding.

    Args:
        data: another graph to measure on.

    Returns:
        ``pairs``, ``ours`` and ``recipe`` (pairs per second), ``ratio``, ``error`` (largest relative difference on the
        sample).
    """
    data = _photo() if data is None else data
    forget = forget_set(data, "low")
    graph = remove_edges(data, forget)
    drawn = sample_non_edges(data, forget.shape[1], numpy_generator(0, "bench", "non-edges"))
    pairs = torch.cat([forget, drawn], dim=1).flip(0)
    model = build(graph, "gcn")

    ours = []
    for _ in range(REPEATS):
        fresh = remove_edges(data, forget)
        fresh.x = data.x.clone()  # a new tensor: nothing is cached for it
        start = time.perf_counter()
        influence = link_teller_influence(model, fresh, pairs).numpy()
        ours.append(time.perf_counter() - start)

    sample = np.sort(numpy_generator(0, "bench", "sample").choice(pairs.shape[1], SAMPLE, replace=False))
    recipe = _Recipe(model, graph, torch.float32)
    start = time.perf_counter()
    for u, v in pairs[:, sample].T.tolist():
        recipe.influence(u, v, 1e-4)
    seconds = (time.perf_counter() - start) / SAMPLE

    exact = _Recipe(model, graph, torch.float64)
    expected = np.array([exact.central(u, v, 1e-5) for u, v in pairs[:, sample].T.tolist()])
    error = float(np.abs(influence[sample] - expected).max() / expected.max())
    found = {
        "pairs": float(pairs.shape[1]),
        "ours": pairs.shape[1] / statistics.median(ours),
        "recipe": 1.0 / seconds,
        "ratio": seconds * pairs.shape[1] / statistics.median(ours),
        "error": error,
    }
    print(
        f"LinkTeller, {found['pairs']:,.0f} pairs of {data.name} ({torch.get_num_threads()} thread(s))\n"
        f"  exact row products, all pairs, cold    {found['ours']:12,.0f} pairs/s\n"
        f"  two full forwards a pair, PyG GCNConv  {found['recipe']:12,.1f} pairs/s (from {SAMPLE} pairs)\n"
        f"  ratio                                  {found['ratio']:12,.0f}\n"
        f"  largest relative difference to a float64 central difference on the sample: {error:.1e}"
    )
    return found


def _photo() -> Data:
    try:
        return load_graph("photo")
    except DataNotFound as missing:
        print(f"Photo cannot be had, measuring on a generated graph of its size instead: {missing}")
        return load_graph("photo-like")


class _Recipe:
    """LinkTeller as published: PyG's layers with the model's weights, the whole graph for every answer."""

    def __init__(self, model: Backbone, data: Data, dtype: torch.dtype):
        self.x = dense_features(data, torch.empty(0, dtype=dtype)).clone()
        self.edge_index = data.edge_index
        self.layers = []
        for ours in model.layers:
            layer = GCNConv(ours.in_features, ours.out_features)
            layer.load_state_dict({"lin.weight": ours.weight.detach(), "bias": ours.bias.detach()})
            self.layers.append(layer.to(dtype).eval())

    @torch.no_grad()
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        first, second = self.layers
        return second(first(x, self.edge_index).relu(), self.edge_index)

    def scaled(self, u: int, factor: float) -> torch.Tensor:
        x = self.x.clone()
        x[u] *= factor
        return self.forward(x)

    def influence(self, u: int, v: int, delta: float) -> float:
        return float((self.scaled(u, 1.0 + delta)[v] - self.forward(self.x)[v]).norm() / delta)

    def central(self, u: int, v: int, delta: float) -> float:
        return float((self.scaled(u, 1.0 + delta)[v] - self.scaled(u, 1.0 - delta)[v]).norm() / (2.0 * delta))
