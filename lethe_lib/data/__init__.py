"""Graphs by name, in one canonical form, and how their nodes are split."""

from collections.abc import Callable
from pathlib import Path

from torch_geometric.data import Data

from lethe_lib.data import flickr, npz_graphs, ogbn_arxiv, planetoid, polblogs, wikipedia
from lethe_lib.data.canonical import (
    adjacency,
    canonical,
    check_canonical,
    graph_statistics,
    node_features,
    undirected_edges,
    with_edges,
)
from lethe_lib.data.files import DataSet, RawFiles, search_path
from lethe_lib.data.splits import Split, split_nodes
from lethe_lib.data.synthetic import BlockModel, generate, synthetic
from lethe_lib.registry import Registry

Loader = Callable[[str | Path | None], Data]


def _generated(size: str) -> Loader:
    return lambda _root=None: synthetic(size)


DATASETS = Registry(
    "data set",
    {
        "synthetic-tiny": _generated("tiny"),
        "synthetic": _generated("small"),
        "photo-like": _generated("photo-like"),
        "arxiv-like": _generated("arxiv-like"),
        **{
            entry.name: entry
            for family in (planetoid, npz_graphs, flickr, ogbn_arxiv, wikipedia, polblogs)
            for entry in family.DATA_SETS
        },
    },
)
"""Name -> loader, a function of a root folder (or None) that returns a canonical graph."""


def load_graph(name: str, root: str | Path | None = None) -> Data:
    """A graph by name, in canonical form.

    Raw files are sought under ``root``, then under the folder in the environment variable ``LETHE_DATA``, then in the
    user cache, and are downloaded into the cache as a last resort. Generated graphs need no files.

    Args:
        name: a name in ``DATASETS``.
        root: folder with raw files, in the layout of PyTorch Geometric's and OGB's data set classes.

    Returns:
        The graph: see :func:`canonical`. Real graphs carry ``provenance``, file name -> sha256.

    Raises:
        InputError: for an unknown name or a root that is no folder.
        DataNotFound: naming the missing files and where they were sought.
        DamagedFile: naming a file that is not what it should be.

    Example:
        >>> load_graph("synthetic-tiny").num_nodes
        120
    """
    data = DATASETS[name](root)
    check_canonical(data)
    return data


__all__ = [
    "DATASETS",
    "BlockModel",
    "DataSet",
    "Loader",
    "RawFiles",
    "Split",
    "adjacency",
    "canonical",
    "check_canonical",
    "generate",
    "graph_statistics",
    "load_graph",
    "node_features",
    "search_path",
    "split_nodes",
    "synthetic",
    "undirected_edges",
    "with_edges",
]
