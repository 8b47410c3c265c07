"""Cora, CiteSeer, PubMed: citation graphs in the Planetoid files.

Each file ``ind.<name>.<part>`` is a pickle written by Python 2, opened only after its sha256 was found to be the known
one (see ``files.py``), by an unpickler that knows six harmless names and refuses all others.

    nodes 0 .. |allx|-1 have features allx and labels ally (one-hot)
    row k of tx, ty belongs to node test.index[k], which come after them in another order
    a node in the range of test.index that is not in it has no edges and no label row: zero features, label 0
    graph: node -> list of neighbours

Sen, Namata, Bilgic, Getoor, Galligher, Eliassi-Rad, "Collective classification in network data", AI Magazine 2008;
prepared by Yang, Cohen, Salakhutdinov, "Revisiting semi-supervised learning with graph embeddings", ICML 2016.
"""

import pickle
from collections import defaultdict
from pathlib import Path

import numpy as np
import scipy.sparse
import torch
from torch_geometric.data import Data
from torch_geometric.datasets import Planetoid

from lethe_lib.data.files import DataSet, RawFiles, reading

_PARTS = ("x", "y", "tx", "ty", "allx", "ally", "graph", "test.index")
_READ = ("tx", "ty", "allx", "ally", "graph", "test.index")  # x and y repeat the first rows of allx and ally


def read_planetoid(found: dict[str, Path]) -> Data:
    """The graph in the files of one Planetoid data set, ``{"ind.<name>.<part>": path}``."""
    by_part = {name.split(".", 2)[2]: path for name, path in found.items()}
    parts = {}
    for part in _READ:
        with reading(by_part[part]):
            parts[part] = np.loadtxt(by_part[part], dtype=np.int64) if part == "test.index" else _load(by_part[part])
    with reading(by_part["test.index"]):
        test, first = parts["test.index"], parts["allx"].shape[0]
        n = int(test.max()) + 1
        x = np.zeros((n, parts["allx"].shape[1]), np.float32)
        x[:first] = parts["allx"].toarray()
        x[test] = parts["tx"].toarray()
        y = np.zeros(n, np.int64)
        y[:first] = parts["ally"].argmax(1)
        y[test] = parts["ty"].argmax(1)
    with reading(by_part["graph"]):
        graph = parts["graph"]
        rows = np.repeat(np.fromiter(graph, np.int64, len(graph)), [len(neighbours) for neighbours in graph.values()])
        columns = np.concatenate([np.asarray(neighbours, np.int64) for neighbours in graph.values()])
    return Data(x=torch.from_numpy(x), y=torch.from_numpy(y), edge_index=torch.from_numpy(np.stack([rows, columns])))


_KNOWN_NAMES = {
    ("collections", "defaultdict"): defaultdict,
    ("__builtin__", "list"): list,
    ("numpy", "dtype"): np.dtype,
    ("numpy", "ndarray"): np.ndarray,
    ("numpy.core.multiarray", "_reconstruct"): np._core.multiarray._reconstruct,
    ("scipy.sparse.csr", "csr_matrix"): scipy.sparse.csr_matrix,
}


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> type:
        if (module, name) not in _KNOWN_NAMES:
            raise pickle.UnpicklingError(f"the file names {module}.{name}, which a Planetoid file has no use for")
        return _KNOWN_NAMES[module, name]


def _load(path: Path) -> object:
    with open(path, "rb") as file:
        return _Unpickler(file, encoding="latin1").load()


def _data_set(name: str, folder: str, published: tuple[int, int, int, int], hashes: dict[str, str]) -> DataSet:
    return DataSet(
        name=name,
        read=read_planetoid,
        files=RawFiles(
            folder=f"{folder}/raw",
            names=tuple(f"ind.{name}.{part}" for part in _PARTS),
            sha256={f"ind.{name}.{part}": digest for part, digest in hashes.items()},
            pickles=True,
            address=lambda file: f"{Planetoid.url}/{file}",
        ),
        published=dict(zip(("nodes", "edges", "features", "classes"), published, strict=True)),
        reference="Sen et al. 2008; Yang, Cohen, Salakhutdinov 2016",
    )


DATA_SETS = (
    _data_set(
        "cora",
        "Cora",
        (2708, 5278, 1433, 7),
        {
            "x": "23cfa55d91c6f624233f5eb7b6e3f141f1bd2b2ae39608a63cf5d084bb27baab",
            "y": "94465c14eb53e04ca262198dcbb2521ee8af60fb3f3d546cd6ca24a511b0e7d1",
            "tx": "b9afbaa4a400df991f6f02ef677e1e44da55ffc04801fd02f9e673987829226a",
            "ty": "41f5ac76596a1699cc33f53084a2419e92961c42bb75f36fc38e616d348532ad",
            "allx": "9419ba2f26f5c35243db64aba110e0f35a04851609e0dc5433450676ca6b8543",
            "ally": "2b998f5cc7fedc86e7f97ca2498f47a1ffc1462c29e2d578b23bf3f62b6e7d71",
            "graph": "58f13302f39dde8852dad6fe6d15b89b077b6d7f837626bce671ef80344b383d",
            "test.index": "297ce89af2b51a6a194181c7dbe1796c6a1cf9cd9349a88383b1b1e227867875",
        },
    ),
    _data_set(
        "citeseer",
        "CiteSeer",
        (3327, 4552, 3703, 6),
        {
            "x": "d20de19150741e555de0ed037195630fc194114ebc7fd72ced62810148aa22f6",
            "y": "8ba87e515d8e3ee3cf52f6d2c5b86aa73f11ecad825a808455209ec26cd54924",
            "tx": "539a8906a2da97628d212f2fdd668c109a8b3f0d36574b59e5d3fd5b5303da21",
            "ty": "55e5bd1ba1e733a04598753ad1a8d57957f4b8f89e74519f41f4f4938767e4ce",
            "allx": "2ac30345d95c9ec933a817ee0bdd6a5f077f8c184a20e696910192d534414668",
            "ally": "f704b2d986dde6c2669934de1f3ae5696a6cf9455c0f6b2646a2d135ea0a1c95",
            "graph": "d79a4ef9d3e7169aee8946145f6b7306e35bc79bffad26346cfb94e10e9912a7",
            "test.index": "2af990671580b6b2df5d158d1038f8292e30c9cd821b5453f399659b25b723d4",
        },
    ),
    _data_set(
        "pubmed",
        "PubMed",
        (19717, 44324, 500, 3),
        {
            "x": "fbe9cb5c47200d1b7769a26e579be3b7130b556831f9d850e77c4c74f2599b33",
            "y": "e6c807633307a07ed659249006536a147c7999c797f11a2560752990181b41b3",
            "tx": "4eb5f5d0f30f26497eb0ac6ac9719d09c67e284f1ed0385c93f3ef27a671da3d",
            "ty": "ee2e0d4819d9fbcc403689c3bf2e49face401b605932f093bc58ab6461130fdd",
            "allx": "508e538e2abdccdd54c4d3e9f49d638b4af7107d85845f66ddea5a5152658b7e",
            "ally": "0c37bbe3b5014ec365e9d393cf4791925e5ed94fb194305d74f064a8d7b50f0e",
            "graph": "5b89f0036ca22909471f1e6558eb42fa06e0c730a577bde5b058b40638f81dc9",
            "test.index": "b101d421688bbaecbd82e8a18f1e282378d6830f3a37666f28ebc47f844341b5",
        },
    ),
)
