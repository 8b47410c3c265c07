"""Edge removal: the retained graph of a request."""

import torch
from torch_geometric.data import Data

from lethe_lib.data import with_edges
from lethe_lib.structure.pairs import check_pairs


def remove_edges(data: Data, pairs: object) -> Data:
    """The graph without some of its edges.

    Args:
        data: a canonical graph; it is not changed.
        pairs: edges of the graph, (2, n) in any orientation and order; n may be 0, and all edges may go.

    Returns:
        A new canonical graph without either direction of these edges. Nodes stay, isolated ones too; ``x`` and ``y``
        are shared with ``data``; ``edge_index`` is a new tensor and ``content_hash`` is renewed.

    Raises:
        InputError: for pairs that :func:`check_pairs` refuses.

    Example:
        >>> data = load_graph("synthetic-tiny")
        >>> retained = remove_edges(data, forget_set(data, "random", fraction=0.5))
        >>> data.num_edges, retained.num_edges
        (720, 360)
    """
    gone = check_pairs(data, pairs)
    n = data.num_nodes
    keys = data.edge_index[0] * n + data.edge_index[1]
    stays = torch.ones(len(keys), dtype=torch.bool)
    stays[torch.searchsorted(keys, gone[0] * n + gone[1])] = False
    stays[torch.searchsorted(keys, gone[1] * n + gone[0])] = False
    return with_edges(data, data.edge_index[:, stays])
