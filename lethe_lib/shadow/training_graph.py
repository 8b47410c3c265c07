"""The graphs of one shadow model: what it trains on, and what it is asked about.

A sample splits the nodes into members and others. Training sees the members and the training edges between them, and
nothing else. At inference an adversary's query may reach the model over

- ``split``: the training edges among members and all edges among the others, none between (the inductive split),
- ``full``: every edge of the graph (the transductive view),
- ``none``: no edge at all, features only.

The three views are those of Khosla, "Impact of Graph Structure on Membership-Inference Risk for GNNs",
arXiv:2601.17130.
"""

import numpy as np
import scipy.sparse
import torch
from torch_geometric.data import Data

from lethe_lib.data import with_edges
from lethe_lib.errors import InputError
from lethe_lib.models.propagation import features
from lethe_lib.sampling import TrainingSample

ACCESS = ("split", "full", "none")


def training_graph(data: Data, sample: TrainingSample) -> Data:
    """The members alone, renumbered in their order, with the training edges between them.

    Args:
        data: a canonical graph with a label on every node.
        sample: one draw of a sampler. An edge with an end outside ``sample.nodes`` (snowball's ``published`` preset
            can leave one) does not reach training.

    Returns:
        A canonical graph of the sampled nodes.

    Raises:
        InputError: an empty sample.
    """
    if len(sample.nodes) == 0:
        raise InputError("the sample has no node: choose a larger ratio")
    position = torch.full((data.num_nodes,), -1)
    position[sample.nodes] = torch.arange(len(sample.nodes))
    edges = position[sample.edge_index]
    edges = edges[:, (edges >= 0).all(dim=0)]
    return Data(
        x=_feature_rows(data, sample.nodes),
        edge_index=edges,
        y=data.y[sample.nodes],
        num_nodes=len(sample.nodes),
        num_classes=data.num_classes,
        name=f"{data.name} (sample)",
        content_hash="",
    )


def query_graph(data: Data, sample: TrainingSample, access: str) -> Data:
    """The graph on which the adversary queries the model, with all nodes of ``data``; ``access`` is one of ``ACCESS``."""
    if access == "full":
        return data
    if access == "none":
        return with_edges(data, data.edge_index[:, :0])
    if access != "split":
        raise InputError(f"unknown edge access {access!r}: choose {', '.join(ACCESS)}")
    member = torch.zeros(data.num_nodes, dtype=torch.bool)
    member[sample.nodes] = True
    source, sink = data.edge_index
    among_others = data.edge_index[:, ~member[source] & ~member[sink]].numpy()
    trained_on = sample.edge_index
    trained_on = trained_on[:, member[trained_on].all(dim=0)].numpy()
    edges = np.concatenate([among_others, trained_on], axis=1)
    return with_edges(data, torch.from_numpy(edges[:, np.lexsort((edges[1], edges[0]))]))


def _feature_rows(data: Data, nodes: torch.Tensor) -> torch.Tensor:
    """The features of some nodes, sparse where models multiply them sparse."""
    x = features(data, torch.empty(0))
    if isinstance(x, torch.Tensor):
        return x[nodes]
    x = x.matrix
    shape = (data.num_nodes, data.x.shape[1])
    rows = scipy.sparse.csr_array((x.values().numpy(), x.col_indices().numpy(), x.crow_indices().numpy()), shape=shape)
    rows = rows[nodes.numpy()]
    parts = (rows.indptr.astype(np.int64), rows.indices.astype(np.int64), rows.data)
    return torch.sparse_csr_tensor(*map(torch.from_numpy, parts), size=rows.shape, check_invariants=False)
