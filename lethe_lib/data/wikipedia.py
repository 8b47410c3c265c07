"""chameleon: Wikipedia pages and their links, in the five-class version of Geom-GCN.

    out1_node_feature_label.txt   header, then per node: id <tab> comma-separated 0/1 features <tab> label
    out1_graph_edges.txt          header, then per link: id <tab> id (directed; symmetrised here)

Many nodes of this graph are duplicates of one another, a known flaw.

Rozemberczki, Allen, Sarkar, "Multi-scale attributed node embedding", 2021; classes by Pei, Wei, Chang, Lei, Yang,
"Geom-GCN", ICLR 2020.
"""

from pathlib import Path

import numpy as np
import pandas as pd
import torch
from torch_geometric.data import Data
from torch_geometric.datasets import WikipediaNetwork

from lethe_lib.data.files import DataSet, RawFiles, reading

_NODES, _LINKS = "out1_node_feature_label.txt", "out1_graph_edges.txt"


def read_geom_gcn(found: dict[str, Path]) -> Data:
    """The graph in the two text files, ``{name: path}``."""
    with reading(found[_NODES]):
        table = pd.read_csv(found[_NODES], sep="\t", dtype={"feature": str})
        if not np.array_equal(np.sort(table["node_id"].to_numpy()), np.arange(len(table))):
            raise ValueError("node ids are not 0 to n - 1, each once")
        table = table.sort_values("node_id")
        x = np.loadtxt(table["feature"].to_list(), dtype=np.float32, delimiter=",", ndmin=2)
        y = table["label"].to_numpy(np.int64, copy=True)
    with reading(found[_LINKS]):
        links = np.loadtxt(found[_LINKS], dtype=np.int64, skiprows=1, ndmin=2)
    return Data(x=torch.from_numpy(x), y=torch.from_numpy(y), edge_index=torch.from_numpy(links.T.copy()))


DATA_SETS = (
    DataSet(
        name="chameleon",
        read=read_geom_gcn,
        files=RawFiles(
            folder="chameleon/geom_gcn/raw",
            names=(_NODES, _LINKS),
            sha256={
                _NODES: "5fd29736ff31b43a1bfcf305bc8b4cffc3103fb0957667976b2ea0f78aedcf5b",
                _LINKS: "45ac593de9207470090230c8fd76beeb2f60b5371a9be088e8bf31e7f0619a4b",
            },
            address=lambda file: f"{WikipediaNetwork.processed_url}/new_data/chameleon/{file}",
        ),
        published={"nodes": 2277, "edges": 31371, "features": 2325, "classes": 5},
        reference="Rozemberczki, Allen, Sarkar 2021; Pei et al. 2020",
    ),
)
