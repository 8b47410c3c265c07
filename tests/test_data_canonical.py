"""The canonical form: what it is, what it refuses, and that its hash names the graph and nothing else."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch_geometric.data import Data, HeteroData
from torch_geometric.utils import is_undirected

from lethe_lib.data import (
    Split,
    adjacency,
    canonical,
    graph_statistics,
    load_graph,
    node_features,
    split_nodes,
    undirected_edges,
)
from lethe_lib.errors import InputError


def graph(edges=((0, 1), (1, 2), (2, 0)), n=4, **changes) -> Data:
    x = torch.arange(n * 2, dtype=torch.float32).reshape(n, 2)
    parts = {"x": x, "y": torch.arange(n) % 2, "edge_index": torch.tensor(edges, dtype=torch.int64).reshape(-1, 2).T}
    return Data(**(parts | changes))


@st.composite
def raw_graphs(draw) -> Data:
    n = draw(st.integers(1, 12))
    node = st.integers(0, n - 1)
    return graph(draw(st.lists(st.tuples(node, node), max_size=40)), n)


def test_hand_computed_form():
    data = canonical(graph([(2, 0), (0, 1), (1, 0), (0, 1), (3, 3)]), name="hand")
    assert data.edge_index.tolist() == [[0, 0, 1, 2], [1, 2, 0, 0]]
    assert undirected_edges(data).tolist() == [[0, 0], [1, 2]]
    assert adjacency(data).toarray().tolist() == [[0, 1, 1, 0], [1, 0, 0, 0], [1, 0, 0, 0], [0, 0, 0, 0]]
    assert (data.num_nodes, data.num_classes, data.name) == (4, 2, "hand")
    assert graph_statistics(data) == {
        "nodes": 4,
        "edges": 2,
        "features": 2,
        "classes": 2,
        "homophily": 0.5,
        "isolated": 1,
    }


@given(raw_graphs())
@settings(max_examples=60, deadline=None)
def test_canonical_is_simple_undirected_sorted_and_idempotent(raw):
    before = raw.edge_index.clone()
    data = canonical(raw)
    rows, columns = data.edge_index
    keys = rows * data.num_nodes + columns
    assert bool((keys[1:] > keys[:-1]).all()) and not bool((rows == columns).any())
    wanted = {frozenset(pair) for pair in raw.edge_index.T.tolist() if pair[0] != pair[1]}
    assert {frozenset(pair) for pair in undirected_edges(data).T.tolist()} == wanted
    assert is_undirected(data.edge_index, num_nodes=data.num_nodes)
    again = canonical(data)
    assert torch.equal(again.edge_index, data.edge_index) and again.content_hash == data.content_hash
    assert set(again.keys()) == set(data.keys())
    assert torch.equal(raw.edge_index, before)
    matrix = adjacency(data)
    assert matrix.nnz == len(keys) and (matrix != matrix.T).nnz == 0


@given(raw_graphs(), st.randoms(use_true_random=False))
@settings(max_examples=40, deadline=None)
def test_hash_is_the_same_whatever_the_order_and_direction(raw, random):
    edges = raw.edge_index.T.tolist()
    random.shuffle(edges)
    other = graph([pair[::-1] if random.random() < 0.5 else pair for pair in edges], raw.num_nodes)
    assert canonical(raw, name="a").content_hash == canonical(other, name="b").content_hash


def test_hash_changes_with_features_labels_and_edges():
    base = graph()
    changed = [
        graph(x=base.x + 1),
        graph(y=torch.tensor([1, 0, 0, 1])),
        graph([(0, 1), (1, 2), (2, 3)]),
        graph(n=5),
        graph(x=torch.cat([base.x, base.x], 1)),
    ]
    hashes = {canonical(data, num_classes=2).content_hash for data in [base, *changed]}
    assert len(hashes) == 6


@pytest.mark.filterwarnings("ignore:Sparse CSR tensor support")
def test_hash_does_not_depend_on_how_features_are_stored():
    x = torch.tensor([[0.0, 1.0], [2.0, 0.0], [0.0, 0.0], [0.5, 3.0]])
    forms = [
        x,
        x.double(),
        x.to_sparse_coo(),
        x.to_sparse_csr(),
        x.to_sparse_csc(),
        x.T.contiguous().T,
        torch.where(x == 0, -0.0, x),
    ]
    graphs = [canonical(graph(x=form)) for form in forms]
    assert len({data.content_hash for data in graphs}) == 1
    assert all(data.x.dtype == torch.float32 for data in graphs)
    assert [data.x.layout for data in graphs[2:5]] == [torch.sparse_csr] * 3
    assert graphs[2].x.to_dense().equal(x)
    for data in graphs[:1] + graphs[3:4]:
        stored = node_features(data)
        assert np.array_equal(stored if isinstance(stored, np.ndarray) else stored.toarray(), x.numpy())


def test_column_labels_and_years_are_flattened_and_masks_dropped():
    raw = graph(y=torch.tensor([[0], [2], [1], [0]]), node_year=torch.tensor([[2000], [2001], [2002], [2003]]))
    raw.train_mask, raw.edge_attr = torch.ones(4, dtype=torch.bool), torch.ones(3, 1)
    data = canonical(raw)
    assert data.y.tolist() == [0, 2, 1, 0] and data.num_classes == 3
    assert data.node_year.tolist() == [2000, 2001, 2002, 2003]
    assert "train_mask" not in data and "edge_attr" not in data


def test_no_edges_and_unconnected_graphs_are_fine():
    assert undirected_edges(canonical(graph([]))).shape == (2, 0)
    assert canonical(graph([(0, 1), (2, 3)])).num_edges == 4


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"x": None}, "torch tensor with a row of features for every node, and the graph has none"),
        ({"x": np.ones((4, 1))}, "x must be a torch tensor .*, not ndarray: use torch.from_numpy"),
        ({"y": np.zeros(4, int)}, "labels.* must be a torch tensor of integers, not ndarray"),
        ({"edge_index": np.zeros((2, 1), int)}, "edge_index must be a torch tensor of integers.*, not ndarray"),
        ({"x": torch.ones(4)}, "shape"),
        ({"x": torch.ones(4, 0)}, "shape"),
        ({"x": torch.tensor([[1.0], [float("nan")], [1.0], [1.0]])}, "1 entries that are NaN"),
        ({"x": torch.tensor([[1.0], [float("inf")], [1.0], [1.0]]).to_sparse_coo()}, "infinite"),
        ({"x": torch.ones(4, 2, dtype=torch.complex64)}, "complex"),
        ({"x": torch.full((4, 1), 1e300, dtype=torch.float64)}, "infinite"),
        ({"y": None}, "labels"),
        ({"y": torch.zeros(3, dtype=torch.int64)}, "each of the 4 nodes"),
        ({"y": torch.zeros(4, 2, dtype=torch.int64)}, "each of the 4 nodes"),
        ({"y": torch.zeros(4)}, "integers needed"),
        ({"y": torch.tensor([0, -1, 0, 0])}, "negative label -1"),
        ({"edge_index": None}, "edge_index"),
        ({"edge_index": torch.tensor([[0, 1, 2]])}, "shape"),
        ({"edge_index": torch.tensor([[0.0], [1.0]])}, "integers needed"),
        ({"edge_index": torch.tensor([[0], [4]])}, "node 4, but nodes are 0 to 3"),
        ({"edge_index": torch.tensor([[-1], [0]])}, "node -1"),
        ({"node_year": torch.zeros(2, dtype=torch.int64)}, "node_year"),
    ],
)
def test_bad_graphs_are_refused_by_name(changes, message):
    with pytest.raises(InputError, match=message):
        canonical(graph(**changes))


def test_other_things_are_refused():
    with pytest.raises(InputError, match="HeteroData"):
        canonical(HeteroData())
    with pytest.raises(InputError, match="num_classes is 1"):
        canonical(graph(), num_classes=1)
    with pytest.raises(InputError, match="canonical"):
        undirected_edges(graph())


@given(st.integers(3, 300), st.integers(0, 10), st.sampled_from(["corrected", "published"]))
@settings(max_examples=40, deadline=None)
def test_split_tiles_the_nodes(n, seed, preset):
    split = split_nodes(Data(num_nodes=n), seed, preset)
    parts = [split.train, split.val, split.test]
    assert torch.cat(parts).sort().values.tolist() == list(range(n))
    assert all(len(part) and torch.equal(part, part.sort().values) and part.dtype == torch.int64 for part in parts)
    assert len(split.test) == max(1, round(0.2 * n)) and abs(len(split.val) - 0.08 * n) <= 1


def test_split_depends_on_the_seed_only_under_corrected():
    data = load_graph("synthetic-tiny")

    def same(a: Split, b: Split) -> bool:
        return torch.equal(a.train, b.train) and torch.equal(a.val, b.val)

    assert same(split_nodes(data, 1), split_nodes(data, 1))
    assert not same(split_nodes(data, 1), split_nodes(data, 2))
    assert same(split_nodes(data, 1, "published"), split_nodes(data, 2, "published"))
    assert not same(split_nodes(data, 0, "published"), split_nodes(data, 0))
    with pytest.raises(InputError, match="preset"):
        split_nodes(data, 0, "other")
    with pytest.raises(InputError, match="2 nodes"):
        split_nodes(Data(num_nodes=2), 0)
