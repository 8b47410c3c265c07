"""Small graphs in canonical form for the sampling tests, built by hand."""

import numpy as np
import torch
from torch_geometric.data import Data


def small_graph(edges, nodes, labels=None):
    """A canonical graph from undirected pairs; one class unless labels are given."""
    both = sorted({(i, j) for i, j in edges} | {(j, i) for i, j in edges})
    labels = [0] * nodes if labels is None else list(labels)
    data = Data(
        x=torch.eye(nodes),
        edge_index=torch.tensor(both, dtype=torch.int64).reshape(-1, 2).T.contiguous(),
        y=torch.tensor(labels, dtype=torch.int64),
    )
    data.num_classes = max(labels) + 1
    return data


def kite():
    """A triangle 0, 1, 2 with the tail 2 - 3 - 4."""
    return small_graph([(0, 1), (0, 2), (1, 2), (2, 3), (3, 4)], 5)


def disconnected():
    """A triangle 0, 1, 2, an edge 3 - 4 and the isolated node 5; classes {0, 1, 5} and {2, 3, 4}."""
    return small_graph([(0, 1), (0, 2), (1, 2), (3, 4)], 6, labels=[0, 0, 1, 1, 1, 0])


def random_graph(seed, nodes=6, density=0.35):
    """A random graph that may be disconnected."""
    generator = np.random.default_rng(seed)
    pairs = [(i, j) for i in range(nodes) for j in range(i + 1, nodes) if generator.random() < density]
    return small_graph(pairs, nodes)


def relabelled(data, order):
    """The same graph with node i renamed order[i]."""
    order = list(order)
    edges = [(order[i], order[j]) for i, j in data.edge_index.T.tolist() if i < j]
    labels = [0] * len(order)
    for node, label in enumerate(data.y.tolist()):
        labels[order[node]] = label
    return small_graph(edges, len(order), labels)
