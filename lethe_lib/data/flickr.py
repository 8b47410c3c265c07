"""flickr: images linked by shared properties, in the raw layout of GraphSAINT.

    adj_full.npz     data, indices, indptr, shape: adjacency matrix, CSR
    feats.npy        (n, 500) features
    class_map.json   node id -> class
    (role.json, the published split, is not read: splits are drawn by split_nodes)

No sha256 of these files is known to us, so they are recorded in the provenance and not compared; npz, npy and json need
no unpickling, and the first carries its own check sums.

Zeng, Zhou, Srivastava, Kannan, Prasanna, "GraphSAINT: graph sampling based inductive learning method", ICLR 2020.
"""

import json
from pathlib import Path

import numpy as np
import scipy.sparse
import torch
from torch_geometric.data import Data
from torch_geometric.datasets import Flickr

from lethe_lib.data.files import GOOGLE_DRIVE, DataSet, RawFiles, reading

_IDS = {"adj_full.npz": Flickr.adj_full_id, "feats.npy": Flickr.feats_id, "class_map.json": Flickr.class_map_id}


def read_graphsaint(found: dict[str, Path]) -> Data:
    """The graph in the three files, ``{name: path}``."""
    with reading(found["adj_full.npz"]), np.load(found["adj_full.npz"], allow_pickle=False) as arrays:
        parts = (arrays["data"], arrays["indices"], arrays["indptr"])
        links = scipy.sparse.csr_matrix(parts, shape=tuple(arrays["shape"]))
        links.check_format(full_check=True)
        links = links.tocoo()
    with reading(found["feats.npy"]):
        x = np.load(found["feats.npy"], allow_pickle=False).astype(np.float32)
        if len(x) != links.shape[0]:
            raise ValueError(f"{len(x)} rows of features for {links.shape[0]} nodes")
    with reading(found["class_map.json"]):
        classes = {int(node): int(label) for node, label in json.loads(found["class_map.json"].read_text()).items()}
        if sorted(classes) != list(range(len(x))):
            raise ValueError(f"the keys are not the node ids 0 to {len(x) - 1}")
        y = np.array([classes[node] for node in range(len(x))], np.int64)
    edges = np.stack([links.row, links.col]).astype(np.int64)
    return Data(x=torch.from_numpy(x), y=torch.from_numpy(y), edge_index=torch.from_numpy(edges))


DATA_SETS = (
    DataSet(
        name="flickr",
        read=read_graphsaint,
        files=RawFiles(folder="Flickr/raw", names=tuple(_IDS), address=lambda file: GOOGLE_DRIVE + _IDS[file]),
        published={"nodes": 89250, "edges": 449878, "features": 500, "classes": 7},
        reference="Zeng et al. 2020",
    ),
)
