"""Loaders on files of the real layouts: small ones made here, damaged ones, and the published files where present."""

import gzip
import io
import json
import os
import pickle
import shutil
import socket
import zipfile

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import torch

from lethe_lib import paths
from lethe_lib.data import DATASETS, DataSet, canonical, graph_statistics, load_graph, undirected_edges
from lethe_lib.data import files as files_module
from lethe_lib.data.files import RawFiles, find_files, search_path
from lethe_lib.data.npz_graphs import read_npz_graph
from lethe_lib.data.planetoid import read_planetoid
from lethe_lib.data.polblogs import read_polblogs
from lethe_lib.data.wikipedia import read_geom_gcn
from lethe_lib.errors import DamagedFile, DataNotFound, InputError

REAL = [name for name, entry in DATASETS.items() if isinstance(entry, DataSet)]
needs_graphs = pytest.mark.skipif(not os.environ.get("LETHE_DATA"), reason="needs the real graphs: set LETHE_DATA")


@pytest.fixture
def nothing_here(tmp_path, monkeypatch):
    """No LETHE_DATA, an empty cache, and no network."""
    monkeypatch.delenv("LETHE_DATA", raising=False)
    monkeypatch.setenv("LETHE_CACHE", str(tmp_path / "cache"))

    def refuse(*_args, **_kwargs):
        raise OSError("the network is unreachable")

    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    monkeypatch.setattr(socket.socket, "connect", refuse)
    return tmp_path


# Small files of each raw layout


def write_npz(path, n=6):
    path.parent.mkdir(parents=True, exist_ok=True)
    links = sp.csr_matrix(([1.0, 1.0, 1.0, 1.0], ([0, 1, 1, 3], [1, 0, 2, 3])), shape=(n, n))
    attributes = sp.csr_matrix(np.arange(n * 3).reshape(n, 3) % 4 * 1.0)
    arrays = {f"adj_{part}": getattr(links, part) for part in ("data", "indices", "indptr", "shape")}
    arrays |= {f"attr_{part}": getattr(attributes, part) for part in ("data", "indices", "indptr", "shape")}
    np.savez(path, labels=np.array([0, 1, 0, 1, 2, 2]), **arrays)
    return path


def write_flickr(root):
    folder = root / "Flickr" / "raw"
    folder.mkdir(parents=True)
    sp.save_npz(folder / "adj_full.npz", sp.csr_matrix(([1.0, 1.0, 1.0], ([0, 1, 2], [1, 0, 3])), shape=(4, 4)))
    np.save(folder / "feats.npy", np.arange(8.0).reshape(4, 2))
    (folder / "class_map.json").write_text(json.dumps({"3": 2, "0": 0, "1": 1, "2": 0}))
    (folder / "role.json").write_text(json.dumps({"tr": [0, 1], "va": [2], "te": [3]}))
    return folder


ARXIV_TABLES = {
    "edge": [[0, 1], [2, 1], [2, 3]],
    "node-feat": [[0.5, 1.0], [0.0, -1.0], [2.0, 2.0], [1.0, 1.0]],
    "node-label": [[0], [3], [1], [0]],
    "node_year": [[1999], [2020], [2018], [2018]],
    "num-node-list": [[4]],
    "num-edge-list": [[3]],
}


def write_arxiv(root, **changes):
    folder = root / "ogbn_arxiv" / "raw"
    folder.mkdir(parents=True)
    for name, rows in (ARXIV_TABLES | changes).items():
        pd.DataFrame(rows).to_csv(folder / f"{name}.csv.gz", header=False, index=False)
    return folder


class Python2Pickler(pickle.Pickler):
    """Writes arrays with the old names and with their bytes as text, as Python 2 did."""

    def reducer_override(self, value):
        if type(value) is not np.ndarray:
            return NotImplemented
        content = value.tobytes().decode("latin1")
        make = np._core.multiarray._reconstruct
        return make, (np.ndarray, (0,), "b"), (1, value.shape, value.dtype, False, content)


def as_python_2(value):
    buffer = io.BytesIO()
    Python2Pickler(buffer, protocol=2).dump(value)
    names = (
        (b"cnumpy._core.multiarray\n", b"cnumpy.core.multiarray\n"),
        (b"cscipy.sparse._csr\n", b"cscipy.sparse.csr\n"),
    )
    content = buffer.getvalue()
    for now, then in names:
        content = content.replace(now, then)
    return content


def write_planetoid(folder):
    """Five training nodes 0-4; test rows for the nodes 7 and 5, in this order; node 6 has no row of its own."""
    folder.mkdir(parents=True)
    one_hot = np.eye(3, dtype=np.int32)
    rows = sp.csr_matrix(np.arange(1.0, 21.0, dtype=np.float32).reshape(5, 4))
    parts = {
        "allx": rows,
        "ally": one_hot[[0, 1, 2, 0, 1]],
        "x": rows[:2],
        "y": one_hot[[0, 1]],
        "tx": sp.csr_matrix(np.array([[7, 7, 7, 7], [5, 5, 5, 5]], np.float32)),
        "ty": one_hot[[2, 1]],
        "graph": {0: [1, 1, 0], 1: [0], 2: [5], 5: [2], 7: [4], 4: [7], 6: [], 3: []},
    }
    found = {}
    for part, value in parts.items():
        found[f"ind.mini.{part}"] = folder / f"ind.mini.{part}"
        found[f"ind.mini.{part}"].write_bytes(as_python_2(value))
    found["ind.mini.test.index"] = folder / "ind.mini.test.index"
    found["ind.mini.test.index"].write_text("7\n5\n")
    return found


def test_npz_layout(tmp_path):
    path = write_npz(tmp_path / "mini.npz")
    data = canonical(read_npz_graph({"mini.npz": path}))
    assert undirected_edges(data).tolist() == [[0, 1], [1, 2]]
    assert data.x.unique().tolist() == [0, 1] and data.num_classes == 3
    assert data.x[0].tolist() == [0, 1, 1]


@pytest.mark.parametrize("damage", ["truncate", "flip", "empty", "object"])
def test_damaged_npz_is_named(tmp_path, damage):
    path = write_npz(tmp_path / "mini.npz")
    content = bytearray(path.read_bytes())
    if damage == "truncate":
        path.write_bytes(content[: len(content) // 2])
    elif damage == "flip":
        place = content.index(b"labels.npy") + 150
        content[place] ^= 0xFF
        path.write_bytes(content)
    elif damage == "empty":
        path.write_bytes(b"")
    else:
        with np.load(path) as arrays:
            changed = dict(arrays) | {"labels": np.array([None] * 6)}
        np.savez(path, **changed)
    with pytest.raises(DamagedFile, match="mini.npz"):
        read_npz_graph({"mini.npz": path})


def test_an_npz_with_indices_out_of_range_is_damaged(tmp_path):
    path = write_npz(tmp_path / "mini.npz")
    with np.load(path) as arrays:
        changed = dict(arrays)
    changed["adj_indices"] = changed["adj_indices"] + 10
    np.savez(path, **changed)
    with pytest.raises(DamagedFile, match="mini.npz"):
        read_npz_graph({"mini.npz": path})


def test_another_graph_under_a_known_name_is_refused(nothing_here):
    write_npz(nothing_here / "Photo" / "raw" / "amazon_electronics_photo.npz")
    with pytest.raises(DamagedFile, match="neither the known file .* nor the same graph"):
        load_graph("photo", root=nothing_here)


def test_flickr_layout(nothing_here):
    write_flickr(nothing_here)
    data = load_graph("flickr", root=nothing_here)
    assert undirected_edges(data).tolist() == [[0, 2], [1, 3]]
    assert data.y.tolist() == [0, 1, 0, 2] and data.x.tolist() == [[0, 1], [2, 3], [4, 5], [6, 7]]
    assert set(data.provenance) == {"adj_full.npz", "feats.npy", "class_map.json"}
    assert all(len(digest) == 64 for digest in data.provenance.values())


def test_damaged_flickr_is_named(nothing_here):
    folder = write_flickr(nothing_here)
    whole = {path: path.read_bytes() for path in folder.iterdir()}
    for name, content in (
        ("adj_full.npz", whole[folder / "adj_full.npz"][:100]),
        ("feats.npy", whole[folder / "feats.npy"][:-8]),
        ("class_map.json", b'{"0": 1, "1"'),
        ("class_map.json", b'{"0": 1, "1": 0}'),
    ):
        (folder / name).write_bytes(content)
        with pytest.raises(DamagedFile, match=name):
            load_graph("flickr", root=nothing_here)
        (folder / name).write_bytes(whole[folder / name])
    np.save(folder / "feats.npy", np.array([[np.nan, 0]] * 4))
    with pytest.raises(InputError, match="NaN"):
        load_graph("flickr", root=nothing_here)


def test_arxiv_layout(nothing_here):
    write_arxiv(nothing_here)
    data = load_graph("ogbn-arxiv", root=nothing_here)
    assert undirected_edges(data).tolist() == [[0, 1, 2], [1, 2, 3]]
    assert data.num_edges == 6 and data.y.tolist() == [0, 3, 1, 0] and data.num_classes == 4
    assert data.node_year.tolist() == [1999, 2020, 2018, 2018]
    assert data.x.tolist() == ARXIV_TABLES["node-feat"]


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({"num-edge-list": [[4]]}, "edge.csv.gz"),
        ({"node-label": [[0], [1]]}, "node-label.csv.gz"),
        ({"edge": [[0, 1, 0]] * 3}, "edge.csv.gz"),
        ({"node-feat": [["a", 1]] * 4}, "node-feat.csv.gz"),
    ],
)
def test_inconsistent_arxiv_files_are_named(nothing_here, changes, name):
    write_arxiv(nothing_here, **changes)
    with pytest.raises(DamagedFile, match=name):
        load_graph("ogbn-arxiv", root=nothing_here)


def test_truncated_gzip_is_named(nothing_here):
    path = write_arxiv(nothing_here) / "node-feat.csv.gz"
    path.write_bytes(gzip.compress(b"1,2\n" * 4000)[:-12])
    with pytest.raises(DamagedFile, match="node-feat"):
        load_graph("ogbn-arxiv", root=nothing_here)


def test_geom_gcn_layout(tmp_path):
    nodes, links = tmp_path / "out1_node_feature_label.txt", tmp_path / "out1_graph_edges.txt"
    nodes.write_text("node_id\tfeature\tlabel\n1\t0,1,1\t2\n0\t1,0,0\t0\n2\t0,0,0\t1\n")
    links.write_text("node_id\tnode_id\n0\t1\n1\t0\n2\t2\n1\t2\n")
    found = {nodes.name: nodes, links.name: links}
    data = canonical(read_geom_gcn(found))
    assert data.x.tolist() == [[1, 0, 0], [0, 1, 1], [0, 0, 0]] and data.y.tolist() == [0, 2, 1]
    assert undirected_edges(data).tolist() == [[0, 1], [1, 2]]
    nodes.write_text("node_id\tfeature\tlabel\n1\t0,1\t2\n0\t1,0,0\t0\n")
    with pytest.raises(DamagedFile, match="out1_node_feature_label"):
        read_geom_gcn(found)


def test_polblogs_layout_gets_one_constant_feature(tmp_path):
    (tmp_path / "adjacency.tsv").write_text("0\t1\n1\t0\n2\t1\n")
    (tmp_path / "labels.tsv").write_text("0\n1\n1\n")
    data = canonical(read_polblogs({name: tmp_path / name for name in ("adjacency.tsv", "labels.tsv")}))
    assert data.x.tolist() == [[1], [1], [1]] and undirected_edges(data).tolist() == [[0, 1], [1, 2]]


def test_planetoid_layout_with_a_test_node_that_has_no_row(tmp_path):
    data = canonical(read_planetoid(write_planetoid(tmp_path / "raw")))
    assert data.num_nodes == 8
    assert data.x[:5].tolist() == np.arange(1.0, 21.0).reshape(5, 4).tolist()
    assert data.x[5:].tolist() == [[5] * 4, [0] * 4, [7] * 4]
    assert data.y.tolist() == [0, 1, 2, 0, 1, 1, 0, 2]
    assert undirected_edges(data).tolist() == [[0, 2, 4], [1, 5, 7]]


def test_a_pickle_that_names_other_things_is_refused(tmp_path):
    found = write_planetoid(tmp_path / "raw")
    found["ind.mini.graph"].write_bytes(b"cos\nsystem\n(S'true'\ntR.")
    with pytest.raises(DamagedFile, match="names os.system"):
        read_planetoid(found)


def test_a_pickle_of_unknown_origin_is_never_opened(nothing_here, monkeypatch):
    folder = nothing_here / "Cora" / "raw"
    folder.mkdir(parents=True)
    for name in DATASETS["cora"].files.names:
        (folder / name).write_bytes(b"cos\nsystem\n(S'true'\ntR.")
    monkeypatch.setattr(pickle, "load", lambda *_args, **_kwargs: pytest.fail("a pickle was opened"))
    with pytest.raises(DamagedFile, match="sha256"):
        load_graph("cora", root=nothing_here)


# Where files are sought


def test_missing_files_are_named_with_places_and_variable(nothing_here, monkeypatch):
    monkeypatch.setenv("LETHE_DATA", str(nothing_here / "shelf"))
    for name in REAL:
        with pytest.raises(DataNotFound) as error:
            load_graph(name, root=nothing_here)
        message = str(error.value)
        assert "LETHE_DATA" in message and str(nothing_here / "shelf") in message and str(paths.cache()) in message
        assert all(file in message for file in DATASETS[name].files.names)
        assert "download" in message


def test_search_order(nothing_here, monkeypatch):
    monkeypatch.setenv("LETHE_DATA", "/b")
    assert [str(place) for place in search_path("/a")] == ["/a", "/b", str(paths.cache() / "data")]
    monkeypatch.delenv("LETHE_DATA")
    assert search_path() == [paths.cache() / "data"]
    raw = RawFiles("f", ("one", "two"))
    for place, names in (("a", ["one"]), ("b", ["one", "two"])):
        (nothing_here / place / "f").mkdir(parents=True)
        for name in names:
            (nothing_here / place / "f" / name).write_text("")
    monkeypatch.setenv("LETHE_DATA", str(nothing_here / "b"))
    assert find_files("x", raw, nothing_here / "a")["one"] == nothing_here / "b" / "f" / "one"
    with pytest.raises(InputError, match="not a folder"):
        find_files("x", raw, nothing_here / "none")


def test_download_checks_and_keeps_only_whole_sets(nothing_here, monkeypatch):
    source = nothing_here / "source"
    source.mkdir()
    with zipfile.ZipFile(source / "all.zip", "w") as archive:
        archive.writestr("top/raw/one", "1")
        archive.writestr("top/raw/two", "2")
        archive.writestr("top/../../evil", "x")
    fetched = []

    def retrieve(url, known_hash, fname, path, progressbar):
        fetched.append(url)
        shutil.copy(source / url, path / fname)

    monkeypatch.setattr(files_module.pooch, "retrieve", retrieve)
    raw = RawFiles("set", ("one", "two"), address=lambda _name: "all.zip", archive=True)
    found = find_files("x", raw)
    assert {name: path.read_text() for name, path in found.items()} == {"one": "1", "two": "2"}
    assert sorted(path.name for path in (paths.cache() / "data" / "set").iterdir()) == ["one", "two"]
    find_files("x", raw)
    assert fetched == ["all.zip"]

    (source / "p").write_bytes(b"not what was published")
    with pytest.raises(DamagedFile, match="sha256"):
        find_files("x", RawFiles("pickles", ("p",), {"p": "0" * 64}, pickles=True, address=lambda name: name))
    assert list((paths.cache() / "data" / "pickles").iterdir()) == []


def test_addresses_come_from_the_data_set_classes(monkeypatch):
    for name in REAL:
        raw = DATASETS[name].files
        if raw.address:
            for file in raw.names:
                assert raw.address(file).startswith(("https://", files_module.GOOGLE_DRIVE))
    assert DATASETS["photo"].files.address("f.npz").endswith("/npz/f.npz")
    assert DATASETS["dblp"].files.address("dblp.npz").endswith("/dblp.npz")


def test_names_and_errors():
    assert list(DATASETS)[:4] == ["synthetic-tiny", "synthetic", "photo-like", "arxiv-like"]
    assert {"cora", "citeseer", "pubmed", "photo", "computers", "dblp", "flickr", "ogbn-arxiv"} <= set(REAL)
    assert {"cora_ml", "chameleon", "twitch-de", "twitch-es", "polblogs"} <= set(REAL)
    with pytest.raises(InputError, match="Did you mean 'photo'"):
        load_graph("Photo")


# The published graphs

HOMOPHILY = {
    "photo": 0.8272,
    "computers": 0.7772,
    "dblp": 0.8279,
    "cora_ml": 0.7886,
    "twitch-de": 0.6322,
    "twitch-es": 0.5800,
}
ISOLATED = {"photo": 115, "computers": 281}


def load_if_present(name):
    try:
        find_files(name, RawFiles(DATASETS[name].files.folder, DATASETS[name].files.names))
    except DataNotFound:
        pytest.skip(f"the files of {name} are not here")
    return load_graph(name)


@needs_graphs
@pytest.mark.parametrize("name", REAL)
def test_published_statistics(name):
    data = load_if_present(name)
    counted = graph_statistics(data)
    assert {key: counted[key] for key in DATASETS[name].published} == DATASETS[name].published
    assert round(counted["homophily"], 4) == HOMOPHILY.get(name, round(counted["homophily"], 4))
    assert counted["isolated"] == ISOLATED.get(name, counted["isolated"])
    assert data.name == name
    known = DATASETS[name].files.sha256
    assert data.provenance == {key: known.get(key, data.provenance[key]) for key in DATASETS[name].files.names}


PYG_LOADERS = {
    "cora": ("Planetoid", "Cora", {}),
    "citeseer": ("Planetoid", "CiteSeer", {}),
    "pubmed": ("Planetoid", "PubMed", {}),
    "photo": ("Amazon", "Photo", {}),
    "computers": ("Amazon", "Computers", {}),
    "dblp": ("CitationFull", "DBLP", {}),
    "cora_ml": ("CitationFull", "Cora_ML", {}),
    "chameleon": ("WikipediaNetwork", "chameleon", {"geom_gcn_preprocess": True}),
}


@needs_graphs
@pytest.mark.parametrize("name", PYG_LOADERS)
def test_same_graph_as_pyg_loads(name, tmp_path):
    import torch_geometric.datasets

    data = load_if_present(name)
    folder = DATASETS[name].files.folder
    shutil.copytree(f"{os.environ['LETHE_DATA']}/{folder}", tmp_path / folder)
    for place in [tmp_path, *tmp_path.rglob("*")]:
        place.chmod(0o755)
    class_name, set_name, options = PYG_LOADERS[name]
    theirs = getattr(torch_geometric.datasets, class_name)(str(tmp_path), set_name, **options)[0]
    assert torch.equal(data.x, theirs.x) and torch.equal(data.y, theirs.y)
    assert canonical(theirs).content_hash == data.content_hash


@needs_graphs
def test_an_altered_pickle_of_a_real_graph_is_refused(tmp_path):
    load_if_present("cora")
    folder = tmp_path / "Cora" / "raw"
    shutil.copytree(f"{os.environ['LETHE_DATA']}/Cora/raw", folder)
    folder.chmod(0o755)
    path = folder / "ind.cora.tx"
    path.chmod(0o644)
    path.write_bytes(path.read_bytes()[:-10])
    with pytest.raises(DamagedFile, match="ind.cora.tx"):
        load_graph("cora", root=tmp_path)
