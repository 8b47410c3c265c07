"""Which nodes a removed edge can reach.

    reached = endpoints;  repeat hops times: reached = reached and all their neighbours

Removing edges from a message-passing model of depth k changes the outputs of exactly these nodes, in general position:
GCN and SGC, whose weights depend on the sender's degree, hops = k; GIN, GraphSAGE with means, GAT, hops = k - 1
(the model's ``reach``). With ReLU it can be fewer, since dead units hide changes. The ball is the same before and after
the removal, because both ends of every removed edge belong to it.
"""

import numpy as np
import torch
from torch_geometric.data import Data

from lethe_lib.data import adjacency
from lethe_lib.errors import InputError
from lethe_lib.structure.pairs import ordered_pairs


def affected_nodes(data: Data, pairs: object, hops: int) -> torch.Tensor:
    """The nodes within some hops of an endpoint of any pair.

    Args:
        data: a canonical graph.
        pairs: node pairs (2, n), edges or not; n may be 0.
        hops: 0 gives the endpoints alone.

    Returns:
        Sorted int64.

    Raises:
        InputError: for negative hops or pairs that name no nodes of the graph.
    """
    if isinstance(hops, bool) or not isinstance(hops, int | np.integer) or hops < 0:
        raise InputError(f"hops is {hops!r}: an integer of at least 0 needed")
    reached = np.zeros(data.num_nodes, bool)
    frontier = ordered_pairs(data, pairs).unique().numpy()
    reached[frontier] = True
    matrix = adjacency(data, dtype=bool)
    for _ in range(hops):
        neighbours = np.unique(matrix[frontier].indices)
        frontier = neighbours[~reached[neighbours]]
        reached[frontier] = True
    return torch.from_numpy(np.flatnonzero(reached))
