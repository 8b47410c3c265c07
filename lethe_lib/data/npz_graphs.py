"""Photo, Computers, DBLP, Cora_ML, twitch-de, twitch-es: graphs kept as the arrays of two sparse matrices in one npz.

    adj_data, adj_indices, adj_indptr, adj_shape     adjacency matrix, CSR
    attr_data, attr_indices, attr_indptr, attr_shape feature matrix, CSR; every positive value counts as 1
    labels                                           one class per node

No array holds Python objects, so nothing is unpickled.

Shchur, Mumme, Bojchevski, Guennemann, "Pitfalls of graph neural network evaluation", 2018 (Photo, Computers);
Bojchevski, Guennemann, "Deep Gaussian embedding of graphs", ICLR 2018 (DBLP, Cora_ML);
Rozemberczki, Allen, Sarkar, "Multi-scale attributed node embedding", 2021 (twitch).
"""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import scipy.sparse
import torch
from torch_geometric.data import Data
from torch_geometric.datasets import Amazon, CitationFull

from lethe_lib.data.files import DataSet, RawFiles, reading


def read_npz_graph(found: dict[str, Path]) -> Data:
    """The graph in the one npz file, ``{name: path}``."""
    (path,) = found.values()
    with reading(path), np.load(path, allow_pickle=False) as arrays:
        features = _matrix(arrays, "attr")
        links = _matrix(arrays, "adj").tocoo()
        labels = arrays["labels"].astype(np.int64)
        if features.shape[0] != links.shape[0]:
            raise ValueError(f"{features.shape[0]} rows of features for {links.shape[0]} nodes")
    x = features.toarray().astype(np.float32)
    x[x > 0] = 1
    edges = np.stack([links.row, links.col]).astype(np.int64)
    return Data(x=torch.from_numpy(x), y=torch.from_numpy(labels), edge_index=torch.from_numpy(edges))


def _matrix(arrays: np.lib.npyio.NpzFile, prefix: str) -> scipy.sparse.csr_matrix:
    parts = tuple(arrays[f"{prefix}_{part}"] for part in ("data", "indices", "indptr"))
    matrix = scipy.sparse.csr_matrix(parts, shape=tuple(arrays[f"{prefix}_shape"]))
    matrix.check_format(full_check=True)
    return matrix


def _data_set(
    name: str,
    path: str,
    published: tuple[int, int, int, int],
    digest: str,
    reference: str,
    address: Callable[[str], str] | None,
) -> DataSet:
    folder, file = path.rsplit("/", 1)
    return DataSet(
        name=name,
        read=read_npz_graph,
        files=RawFiles(folder=folder, names=(file,), sha256={file: digest}, address=address),
        published=dict(zip(("nodes", "edges", "features", "classes"), published, strict=True)),
        reference=reference,
    )


def _amazon(file: str) -> str:
    return f"{Amazon.url.rstrip('/')}/{file}"


def _citation(file: str) -> str:
    return CitationFull.url.format(file.removesuffix(".npz"))


DATA_SETS = (
    _data_set(
        "photo",
        "Photo/raw/amazon_electronics_photo.npz",
        (7650, 119081, 745, 8),
        "a9c510d56c077fd98bd77ff1117d648d16f6008e5508d3a520232c850cc6f106",
        "McAuley et al. 2015; Shchur et al. 2018",
        _amazon,
    ),
    _data_set(
        "computers",
        "Computers/raw/amazon_electronics_computers.npz",
        (13752, 245861, 767, 10),
        "ad5c82698a929f8f2ae28e7b6e737bb6206be13d7c0fbb8ded92ec3589b09235",
        "McAuley et al. 2015; Shchur et al. 2018",
        _amazon,
    ),
    _data_set(
        "dblp",
        "dblp/raw/dblp.npz",
        (17716, 52867, 1639, 4),
        "750874dc86d975a01801a8512488cbe6a4b26ac29c2886f59803ac2ec21157ca",
        "Pan et al. 2016; Bojchevski and Guennemann 2018",
        _citation,
    ),
    _data_set(
        "cora_ml",
        "cora_ml/raw/cora_ml.npz",
        (2995, 8158, 2879, 7),
        "0460d25b737774a78a588838daf20afe9291b4eb89da2aa3d517244d3fc2bb0b",
        "McCallum et al. 2000; Bojchevski and Guennemann 2018",
        _citation,
    ),
    _data_set(
        "twitch-de",
        "musae/twitch_DE.npz",
        (9498, 153138, 3170, 2),
        "40b608b6e4afb7a49e31e55bac70119202656bfeb31df47502297b1741c557b5",
        "Rozemberczki, Allen, Sarkar 2021",
        None,  # the copy offered for download has another layout, with pickled arrays
    ),
    _data_set(
        "twitch-es",
        "musae/twitch_ES.npz",
        (4648, 59382, 3170, 2),
        "8dde7d1d2256f8307e29d63aca5126bf5562d96dbf4a75f0847d04e3b68f15aa",
        "Rozemberczki, Allen, Sarkar 2021",
        None,
    ),
)
