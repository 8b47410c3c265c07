"""polblogs: political blogs of 2004 and the links between them; two classes, no features.

    adjacency.tsv   per link: id <tab> id (directed; symmetrised here)
    labels.tsv      one class per node

The data set has no node features. Every node gets the constant feature 1, which adds no information: a message-passing
model sees structure alone. Nothing is made up from the graph, since a feature that encodes edges would itself have to
be unlearned with them.

Adamic, Glance, "The political blogosphere and the 2004 US election", LinkKDD 2005.
"""

from pathlib import Path

import numpy as np
import torch
from torch_geometric.data import Data
from torch_geometric.datasets import PolBlogs

from lethe_lib.data.files import DataSet, RawFiles, reading


def read_polblogs(found: dict[str, Path]) -> Data:
    """The graph in the two text files, ``{name: path}``, with one constant feature."""
    with reading(found["adjacency.tsv"]):
        links = np.loadtxt(found["adjacency.tsv"], dtype=np.int64, usecols=(0, 1), ndmin=2)
    with reading(found["labels.tsv"]):
        y = np.loadtxt(found["labels.tsv"], dtype=np.int64, ndmin=1)
    return Data(x=torch.ones(len(y), 1), y=torch.from_numpy(y), edge_index=torch.from_numpy(links.T.copy()))


DATA_SETS = (
    DataSet(
        name="polblogs",
        read=read_polblogs,
        files=RawFiles(
            folder="PolBlogs/raw",
            names=("adjacency.tsv", "labels.tsv"),
            sha256={
                "adjacency.tsv": "aadf21706bc68886c4493d79026520974ccb5749d5c1aaaefab2080d2fc6e39c",
                "labels.tsv": "6d53ecdabe0c41da893d7115f4d1cf8fd5488e5d3b9998a2f070e1dbfeaee896",
            },
            address=lambda _file: PolBlogs.url,
            archive=True,
        ),
        published={"nodes": 1490, "edges": 16715, "features": 1, "classes": 2},
        reference="Adamic and Glance 2005",
    ),
)
