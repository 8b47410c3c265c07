"""The cost of WalkCentrality on generated graphs, beside the sparse products that it is made of."""

import time
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
import torch
from torch_geometric.data import Data

from lethe_lib.data import adjacency, canonical
from lethe_lib.seeding import numpy_generator
from lethe_lib.structure import walk_centrality
from lethe_lib.study.configuration import Configuration, Measurement


@lru_cache(maxsize=1)  # runs that differ in k alone follow one another
def random_graph(edges: int, seed: int, mean_degree: int = 20) -> Data:
    """A uniform random graph with about ``edges`` edges (loops and doubles among the draws are dropped)."""
    generator = numpy_generator(seed, "random graph", edges)
    nodes = max(2, 2 * edges // mean_degree)
    pairs = torch.from_numpy(generator.integers(0, nodes, (2, edges), dtype=np.int64))
    blank = Data(x=torch.ones(nodes, 1), edge_index=pairs, y=torch.zeros(nodes, dtype=torch.long))
    return canonical(blank, f"random-{edges}", num_classes=1)


@dataclass(frozen=True)
class CentralityCostConfiguration(Configuration):
    """Seconds of WalkCentrality of all edges of a random graph, and of ``hops`` sparse products with its matrix.

    Both are CPU seconds of this process, the median over ``repetitions``, taken in turn.

    Attributes:
        edges: number of random pairs drawn. hops: k of WalkCentrality.
    """

    edges: int = 100_000
    hops: int = 2
    repetitions: int = 5

    @property
    def group(self) -> tuple:
        return (self.edges, self.seed)

    def data_hash(self) -> str:
        return f"random graph, {self.edges} pairs, seed {self.seed}"

    def measure(self, models: Path | None, device: str) -> Measurement:
        data = random_graph(self.edges, self.seed)
        matrix, ones = adjacency(data), np.ones(data.num_nodes)
        walk_centrality(data, self.hops)  # compiles on first use
        scores, products = [], []
        for _ in range(self.repetitions):
            start = time.process_time()
            walk_centrality(data, self.hops)
            middle = time.process_time()
            vector = ones
            for _ in range(self.hops):
                vector = matrix @ vector
            products.append(time.process_time() - middle)
            scores.append(middle - start)
        metrics = {
            "pairs": data.num_edges // 2,
            "nodes": data.num_nodes,
            "seconds": float(np.median(scores)),
            "products_seconds": float(np.median(products)),
        }
        return Measurement("ok", "", metrics)
