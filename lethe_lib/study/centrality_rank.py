"""Does WalkCentrality order edges by how far their removal moves the endpoints, whatever the backbone?

    edges = EDGES edges drawn at random, the same for every backbone of a graph and seed
    rank  = Spearman correlation of WalkCentrality with the endpoint displacement m(e) of a trained model

WalkCentrality is built from the weights of a graph convolution. A backbone that aggregates with other weights, learnt ones
(attention) above all, need not move as it says: a correlation nearer to zero than the convolution's shows that.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from scipy.stats import spearmanr

from lethe_lib.data import undirected_edges
from lethe_lib.seeding import numpy_generator
from lethe_lib.structure import endpoint_displacement, walk_centrality
from lethe_lib.study.configuration import Configuration, Measurement
from lethe_lib.study.trained import graph, trained


@dataclass(frozen=True)
class CentralityRankConfiguration(Configuration):
    """One graph, backbone and seed.

    Attributes:
        backbone: registry name. edges: how many edges to draw; all where the graph has fewer. hops: k of WalkCentrality.
    """

    backbone: str = "gcn"
    edges: int = 400
    hops: int = 2

    def measure(self, models: Path | None, device: str) -> Measurement:
        data = graph(self.data)
        pairs, centrality = undirected_edges(data), walk_centrality(data, self.hops)
        count = min(self.edges, pairs.shape[1])
        drawn = numpy_generator(self.seed, "centrality rank", self.data).choice(pairs.shape[1], count, replace=False)
        model = trained(data, self.backbone, self.seed, self.preset, {}, models, device)
        moved = endpoint_displacement(model, data, pairs[:, drawn])
        metrics = {
            "pairs": count,
            "rank": float(spearmanr(centrality[drawn], moved).statistic),
            "displacement_mean": float(moved.mean()),
        }
        return Measurement("ok", "", metrics, {"centrality": centrality[drawn], "displacement": moved})


def centrality_rank(graphs: Iterable[str] = ("cora", "citeseer", "dblp")) -> list[Configuration]:
    """Five backbones trained to convergence on three graphs, three seeds, 400 edges each."""
    return [
        CentralityRankConfiguration(data, seed, backbone=backbone)
        for data in graphs
        for seed in (0, 1, 2)
        for backbone in ("gcn", "sgc", "sage", "gin", "gat")
    ]
