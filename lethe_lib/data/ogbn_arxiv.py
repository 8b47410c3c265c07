"""ogbn-arxiv: computer science papers and their citations, in the raw layout of the Open Graph Benchmark.

    edge.csv.gz, node-feat.csv.gz, node-label.csv.gz, node_year.csv.gz   comma-separated, no header
    num-node-list.csv.gz, num-edge-list.csv.gz                           one number each, to check the others against

Citations are directed; the graph is symmetrised. ``node_year`` is kept. The files are read as they are, with neither
``ogb`` nor ``torch.load``, so nothing is unpickled. No sha256 of them is known to us, so they are recorded in the
provenance and not compared; gzip carries its own check sums.

Hu, Fey, Zitnik, Dong, Ren, Liu, Catasta, Leskovec, "Open Graph Benchmark", NeurIPS 2020.
"""

import importlib.util
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from torch_geometric.data import Data

from lethe_lib.data.files import DataSet, RawFiles, reading

_NAMES = (
    "edge.csv.gz",
    "node-feat.csv.gz",
    "node-label.csv.gz",
    "node_year.csv.gz",
    "num-node-list.csv.gz",
    "num-edge-list.csv.gz",
)


def read_ogb(found: dict[str, Path]) -> Data:
    """The graph in the six files, ``{name: path}``, with ``node_year``."""
    nodes = int(_table(found["num-node-list.csv.gz"], np.int64, width=1)[0, 0])
    edges = int(_table(found["num-edge-list.csv.gz"], np.int64, width=1)[0, 0])
    x = _table(found["node-feat.csv.gz"], np.float32, nodes)
    y = _table(found["node-label.csv.gz"], np.int64, nodes, width=1)[:, 0]
    year = _table(found["node_year.csv.gz"], np.int64, nodes, width=1)[:, 0]
    links = _table(found["edge.csv.gz"], np.int64, edges, width=2)
    tensors = {"x": x, "y": y, "edge_index": links.T, "node_year": year}
    return Data(**{key: torch.from_numpy(np.array(value, order="C")) for key, value in tensors.items()})


def _table(path: Path, dtype: type, rows: int | None = None, width: int | None = None) -> np.ndarray:
    with reading(path):
        table = pd.read_csv(path, header=None, dtype=dtype, compression="gzip").to_numpy()
        if rows is not None and len(table) != rows:
            raise ValueError(f"{len(table)} lines where the lists announce {rows}")
        if width is not None and table.shape[1] != width:
            raise ValueError(f"{table.shape[1]} columns where {width} are expected")
    return table


def _address(_file: str) -> str:
    """The archive's address in OGB's own table, read without importing ogb, whose import asks the network."""
    package = importlib.util.find_spec("ogb")
    if package is None:
        raise RuntimeError("the package ogb, which knows the address, is not installed")
    table = pd.read_csv(Path(package.submodule_search_locations[0]) / "nodeproppred" / "master.csv", index_col=0)
    return table.loc["url", "ogbn-arxiv"].replace("http://", "https://", 1)


DATA_SETS = (
    DataSet(
        name="ogbn-arxiv",
        read=read_ogb,
        files=RawFiles(folder="ogbn_arxiv/raw", names=_NAMES, address=_address, archive=True),
        published={"nodes": 169343, "edges": 1157799, "features": 128, "classes": 40},
        reference="Hu et al. 2020",
    ),
)
