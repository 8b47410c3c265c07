"""Local homophily: how alike the labels are around a node, and around a pair of nodes.

    h(v)    = share of the neighbours of v that have the label of v
    h(u, v) = the same over all neighbours of both ends, each against its own end, the pair itself left out

Node form: Pei et al., "Geom-GCN: geometric graph convolutional networks", ICLR 2020.
"""

import numpy as np
from torch_geometric.data import Data

from lethe_lib.structure.pairs import edge_positions, ordered_pairs


def node_homophily(data: Data) -> np.ndarray:
    """h(v) of every node: (n,) float64 in [0, 1], nan for isolated nodes; ``data`` is a canonical graph."""
    same, degree = _agreement(data)
    return _share(same, degree)


def edge_homophily(data: Data, pairs: object) -> np.ndarray:
    """h(u, v) of edges.

    Args:
        data: a canonical graph.
        pairs: edges of it, (2, n), in any orientation.

    Returns:
        (n,) float64 in [0, 1], in the order given; nan where the edge is the only one of both its ends.

    Raises:
        InputError: for pairs that are not edges.

    Example:
        On the path 0-1-2-3 with labels 0, 0, 1, 1 the edge 1-2 has h = 1: node 1 agrees with 0, node 2 with 3.
    """
    edge_positions(data, pairs)
    u, v = ordered_pairs(data, pairs).numpy()
    same, degree = _agreement(data)
    alike = data.y.numpy()[u] == data.y.numpy()[v]
    return _share(same[u] + same[v] - 2 * alike, degree[u] + degree[v] - 2)


def _agreement(data: Data) -> tuple[np.ndarray, np.ndarray]:
    """Neighbours with the node's own label, and neighbours, of every node."""
    source, sink = data.edge_index.numpy()
    labels = data.y.numpy()
    same = np.bincount(source, weights=labels[source] == labels[sink], minlength=len(labels))
    return same, np.bincount(source, minlength=len(labels))


def _share(same: np.ndarray, count: np.ndarray) -> np.ndarray:
    return np.where(count > 0, same / np.maximum(count, 1), np.nan)
