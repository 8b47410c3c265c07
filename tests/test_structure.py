"""Pairs, removal, affected nodes and displacement, against brute force and literal recomputation."""

import os
from collections import deque

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch_geometric.data import Data

from lethe_lib.data import canonical, load_graph, undirected_edges
from lethe_lib.errors import InputError
from lethe_lib.models import BACKBONES, build, train
from lethe_lib.seeding import numpy_generator
from lethe_lib.structure import (
    affected_nodes,
    check_pairs,
    edge_homophily,
    edge_positions,
    endpoint_displacement,
    forget_set,
    node_homophily,
    remove_edges,
    sample_non_edges,
    set_displacement,
)

needs_graphs = pytest.mark.skipif(not os.environ.get("LETHE_DATA"), reason="needs the real graphs: set LETHE_DATA")


def random_graph(n: int, m: int, seed: int, features: int = 5) -> Data:
    generator = torch.Generator().manual_seed(seed)
    return canonical(
        Data(
            x=torch.randn(n, features, generator=generator),
            y=torch.arange(n) % 3,
            edge_index=torch.randint(0, n, (2, m), generator=generator),
        ),
        name="random",
        num_classes=3,
    )


@st.composite
def graphs_with_requests(draw) -> tuple[Data, torch.Tensor]:
    """A random graph and some of its edges, in random order and orientation."""
    data = random_graph(draw(st.integers(2, 14)), draw(st.integers(0, 30)), draw(st.integers(0, 10**6)))
    edges = undirected_edges(data)
    chosen = draw(st.permutations(range(edges.shape[1])))[: draw(st.integers(0, edges.shape[1]))]
    pairs = edges[:, torch.tensor(chosen, dtype=torch.int64)]
    flip = torch.tensor(draw(st.lists(st.booleans(), min_size=len(chosen), max_size=len(chosen))), dtype=torch.bool)
    pairs[:, flip] = pairs[:, flip].flip(0)
    return data, pairs


PATH = canonical(
    Data(
        x=torch.eye(5), y=torch.tensor([0, 0, 1, 1, 0]), edge_index=torch.tensor([[0, 1, 2], [1, 2, 3]])
    ),  # 0 - 1 - 2 - 3, and 4 alone
    name="path",
)


# Pairs


@given(graphs_with_requests())
@settings(max_examples=60, deadline=None)
def test_pairs_are_found_where_they_stand(case):
    data, pairs = case
    positions = edge_positions(data, pairs)
    assert torch.equal(undirected_edges(data)[:, positions], pairs.sort(0).values)
    checked = check_pairs(data, pairs.numpy())
    assert torch.equal(checked, undirected_edges(data)[:, np.sort(positions)])
    assert torch.equal(check_pairs(data, checked), checked)


@pytest.mark.parametrize(
    ("pairs", "message"),
    [
        ([[0], [2]], r"\(0, 2\) is not an edge of 'path' \(1 such"),
        ([[3], [4]], r"\(3, 4\) is not an edge"),
        ([[0, 1], [1, 0]], r"\(0, 1\) occurs more than once"),
        ([[2], [2]], "self-loop"),
        ([[0], [5]], "node 5, but nodes are 0 to 4"),
        ([[-1], [1]], "node -1"),
        ([[0.0], [1.0]], "integers"),
        ([[True], [False]], "integers"),
        ([[0, 1]], "shape"),
        ([[0, 1], [1]], "no array"),
        ([0, 1], "shape"),
    ],
)
def test_bad_pairs_are_refused_by_name(pairs, message):
    for function in (check_pairs, edge_positions, remove_edges):
        with pytest.raises(InputError, match=message):
            function(PATH, pairs)


def test_empty_requests_are_fine():
    for empty in ([], torch.empty(2, 0), np.empty((2, 0), np.int64)):
        assert check_pairs(PATH, empty).shape == (2, 0) and check_pairs(PATH, empty).dtype == torch.int64
        assert edge_positions(PATH, empty).shape == (0,)


def test_graphs_out_of_form_are_refused():
    with pytest.raises(InputError, match="canonical"):
        check_pairs(Data(x=torch.eye(2), y=torch.zeros(2), edge_index=torch.tensor([[0], [1]])), [[0], [1]])


# Pairs that are not edges


@given(st.integers(2, 14), st.integers(0, 40), st.integers(0, 10**6))
@settings(max_examples=60, deadline=None)
def test_all_non_edges_are_the_complement(n, m, seed):
    data = random_graph(n, m, seed)
    edges = {tuple(pair) for pair in undirected_edges(data).T.tolist()}
    complement = {(i, j) for i in range(n) for j in range(i + 1, n)} - edges
    sample = sample_non_edges(data, len(complement), numpy_generator(seed, "test"))
    assert sample.shape == (2, len(complement)) and sample.dtype == torch.int64
    assert {tuple(pair) for pair in sample.T.tolist()} == complement
    with pytest.raises(InputError, match="has"):
        sample_non_edges(data, len(complement) + 1, numpy_generator(seed, "test"))


def test_non_edges_are_uniform_and_repeatable():
    data = random_graph(8, 6, 1)
    free = 28 - undirected_edges(data).shape[1]
    generator = numpy_generator(0, "test")
    draws = torch.cat([sample_non_edges(data, 3, generator) for _ in range(4_000)], 1)
    counts = torch.unique(draws[0] * 8 + draws[1], return_counts=True)[1]
    expected = 12_000 / free
    assert len(counts) == free
    assert float(((counts - expected) ** 2 / expected).sum()) < free + 5 * (2 * free) ** 0.5  # chi squared
    again = sample_non_edges(data, 5, numpy_generator(3, "test"))
    assert torch.equal(again, sample_non_edges(data, 5, numpy_generator(3, "test")))
    with pytest.raises(InputError, match="numpy Generator"):
        sample_non_edges(data, 1, torch.Generator())
    with pytest.raises(InputError, match="-1 non-edges"):
        sample_non_edges(data, -1, generator)


# Removal


@given(graphs_with_requests())
@settings(max_examples=60, deadline=None)
def test_removal_takes_both_directions_and_nothing_else(case):
    data, pairs = case
    before, old_hash = data.edge_index.clone(), data.content_hash
    retained = remove_edges(data, pairs)
    gone = {frozenset(pair) for pair in pairs.T.tolist()}
    wanted = [pair for pair in data.edge_index.T.tolist() if frozenset(pair) not in gone]
    assert retained.edge_index.T.tolist() == wanted
    assert retained.num_edges == data.num_edges - 2 * pairs.shape[1]
    assert retained.x is data.x and retained.y is data.y and retained.num_nodes == data.num_nodes
    assert torch.equal(data.edge_index, before) and data.content_hash == old_hash
    assert (retained.content_hash == old_hash) == (pairs.shape[1] == 0)
    literal = Data(x=data.x, y=data.y, edge_index=torch.tensor(wanted, dtype=torch.int64).reshape(-1, 2).T)
    assert retained.content_hash == canonical(literal, num_classes=3).content_hash


def test_removal_in_two_steps_is_removal_in_one_and_keeps_what_hangs_on_the_nodes():
    data = load_graph("synthetic-tiny")
    edges = undirected_edges(data)
    at_once = remove_edges(data, edges[:, ::3])
    half = edges[:, ::3][:, ::2]
    later = edges[:, ::3][:, 1::2]
    in_steps = remove_edges(remove_edges(data, half), later)
    assert in_steps.content_hash == at_once.content_hash
    assert torch.equal(at_once.node_year, data.node_year)
    assert (at_once.name, at_once.num_classes) == (data.name, data.num_classes)
    with pytest.raises(InputError, match="not an edge"):
        remove_edges(at_once, edges[:, :1])
    bare = remove_edges(data, edges)
    assert bare.num_edges == 0 and bare.num_nodes == 120
    assert remove_edges(bare, []).content_hash == bare.content_hash
    unchanged = remove_edges(data, [])
    assert torch.equal(unchanged.edge_index, data.edge_index) and unchanged.edge_index is not data.edge_index


# Affected nodes


@given(graphs_with_requests(), st.integers(0, 5))
@settings(max_examples=80, deadline=None)
def test_affected_nodes_against_breadth_first_search(case, hops):
    data, pairs = case
    distance = dict.fromkeys(pairs.flatten().tolist(), 0)
    queue = deque(distance)
    while queue:
        node = queue.popleft()
        for neighbour in data.edge_index[1][data.edge_index[0] == node].tolist():
            if neighbour not in distance:
                distance[neighbour] = distance[node] + 1
                queue.append(neighbour)
    wanted = sorted(node for node, steps in distance.items() if steps <= hops)
    affected = affected_nodes(data, pairs, hops)
    assert affected.tolist() == wanted and affected.dtype == torch.int64
    assert affected_nodes(remove_edges(data, pairs), pairs, hops).tolist() == wanted


def operator(data: Data, kind: str) -> np.ndarray:
    """Dense propagation of one layer; GIN and GraphSAGE add the own row with another weight."""
    n = data.num_nodes
    matrix = np.zeros((n, n))
    matrix[tuple(data.edge_index.numpy())] = 1
    if kind == "sym":
        loops = matrix + np.eye(n)
        scale = 1 / np.sqrt(loops.sum(1))
        return scale[:, None] * loops * scale
    if kind in ("row", "col"):  # rows, or columns, that sum to 1
        loops = matrix + np.eye(n)
        return loops / loops.sum(1 if kind == "row" else 0, keepdims=True)
    if kind == "mean":
        return matrix / np.maximum(matrix.sum(1, keepdims=True), 1) + 0.7 * np.eye(n)
    return matrix + 1.3 * np.eye(n)


@pytest.mark.parametrize(("kind", "fewer"), [("sym", 0), ("col", 0), ("row", 1), ("mean", 1), ("sum", 1)])
@pytest.mark.parametrize("depth", [1, 2, 3])
def test_exactly_the_ball_changes(kind, fewer, depth):
    """The outputs of a linear network change on the ball of ``depth`` (sym, col) or ``depth - 1`` hops, and nowhere else."""
    for seed in range(20):
        data = random_graph(40, 50, seed)
        pairs = forget_set(data, "random", 0.05, seed)
        rows = numpy_generator(seed, "rows").standard_normal((40, 4))
        before, after = rows, rows
        for _ in range(depth):
            before, after = operator(data, kind) @ before, operator(remove_edges(data, pairs), kind) @ after
        changed = np.flatnonzero(np.abs(before - after).max(1) > 1e-12)
        assert changed.tolist() == affected_nodes(data, pairs, depth - fewer).tolist()


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_exactly_the_ball_of_attention_changes(depth):
    """GAT: a removed neighbour renormalises the rows of its two ends alone, so one hop less than there are layers."""
    for seed in range(10):
        data = in_float64(random_graph(40, 50, seed))
        pairs = forget_set(data, "random", 0.05, seed)
        model = build(data, "gat", seed, layers=depth).double().eval()
        with torch.no_grad():
            moved = (model(data) - model(remove_edges(data, pairs))).abs().max(1).values
        changed = torch.nonzero(moved > 1e-12).flatten()
        assert (
            changed.tolist()
            == affected_nodes(data, pairs, depth - 1).tolist()
            == affected_nodes(data, pairs, model.reach).tolist()
        )


def test_affected_by_hand_and_bad_hops():
    assert affected_nodes(PATH, [[0], [1]], 0).tolist() == [0, 1]
    assert affected_nodes(PATH, [[1], [0]], 1).tolist() == [0, 1, 2]
    assert affected_nodes(PATH, [[0, 3], [4, 4]], 0).tolist() == [0, 3, 4]  # pairs need not be edges
    assert affected_nodes(PATH, [], 3).tolist() == []
    for hops in (-1, 1.0, True, None):
        with pytest.raises(InputError, match="hops"):
            affected_nodes(PATH, [[0], [1]], hops)


# Displacement


def in_float64(data: Data) -> Data:
    data.x = data.x.double()
    return data


@pytest.mark.parametrize("backbone", list(BACKBONES))
@pytest.mark.parametrize("sparse", [False, True])
def test_displacement_equals_literal_removal(backbone, sparse):
    data = random_graph(25, 45, 3)
    if sparse:
        data.x = data.x.to_sparse_csr()
    data = in_float64(data)
    model = build(data, backbone).double()
    pairs = undirected_edges(data).flip(0)
    pairs = pairs[:, torch.randperm(pairs.shape[1], generator=torch.Generator().manual_seed(0))]
    before = model.representations(data)[0].detach()
    wanted = []
    for pair in pairs.T:
        after = model.representations(remove_edges(data, pair[:, None]))[0].detach()
        wanted.append(float((before - after)[pair].norm(dim=1).mean()))
    displacement = endpoint_displacement(model, data, pairs)
    assert displacement.dtype == np.float64
    np.testing.assert_allclose(displacement, wanted, rtol=1e-10, atol=1e-12)
    assert max(wanted) > 0.01

    retained = remove_edges(data, pairs[:, ::4])
    moved = (before - model.representations(retained)[0]).norm(dim=1).detach().numpy()
    np.testing.assert_allclose(
        set_displacement(model, data, pairs[:, ::4]), moved[pairs[:, ::4].numpy()].mean(0), rtol=1e-10
    )


def test_displacement_by_hand():
    """Removing (0, 1) of the path in an identity layer of sums: both ends lose the one-hot row of the other."""

    class Sums(torch.nn.Module):
        depth, aggregation = 2, "sum"

        def __init__(self):
            super().__init__()
            self.scale = torch.nn.Parameter(torch.tensor(2.0))

        def node_function(self, layer, nodes=None):
            return lambda aggregated, own: torch.relu(self.scale * aggregated)

    model = Sums().train()
    assert endpoint_displacement(model, PATH, [[0, 2], [1, 1]]).tolist() == [2.0, 2.0]
    assert model.training  # the mode is put back
    assert endpoint_displacement(model, PATH, []).shape == (0,)


def test_displacement_in_chunks_is_the_same(monkeypatch):
    data = random_graph(30, 60, 5)
    model = build(data, "gcn")
    whole = endpoint_displacement(model, data, undirected_edges(data))
    monkeypatch.setattr("lethe_lib.structure.displacement._CHUNK_NUMBERS", 35)
    np.testing.assert_allclose(endpoint_displacement(model, data, undirected_edges(data)), whole, atol=1e-6)


def test_displacement_refuses_what_has_none():
    data = random_graph(30, 60, 5)
    with pytest.raises(InputError, match="depth 1"):
        endpoint_displacement(build(data, "gcn", layers=1), data, undirected_edges(data))
    with pytest.raises(InputError, match="not an edge"):
        endpoint_displacement(build(data, "gcn"), data, sample_non_edges(data, 2, numpy_generator(0)))


@needs_graphs
def test_low_edges_move_their_endpoints_more_one_by_one_and_less_as_a_set():
    data = load_graph("photo")
    model = train(data, "gcn", preset="published", epochs=30)
    low, high = forget_set(data, "low"), forget_set(data, "high")
    assert endpoint_displacement(model, data, low).mean() > 3 * endpoint_displacement(model, data, high).mean()
    assert set_displacement(model, data, low).mean() < set_displacement(model, data, high).mean() / 3


def test_homophily_by_hand():
    path = canonical(
        Data(x=torch.eye(5), edge_index=torch.tensor([[0, 1, 2], [1, 2, 3]]), y=torch.tensor([0, 0, 1, 1, 0])), "path"
    )
    np.testing.assert_equal(node_homophily(path), [1, 0.5, 0.5, 1, np.nan])
    np.testing.assert_equal(edge_homophily(path, [[2, 0, 3], [1, 1, 2]]), [1, 0, 0])
    alone = canonical(Data(x=torch.eye(2), edge_index=torch.tensor([[0], [1]]), y=torch.tensor([0, 1])), "pair")
    np.testing.assert_equal(edge_homophily(alone, [[0], [1]]), [np.nan])
    with pytest.raises(InputError, match=r"\(0, 2\) is not an edge"):
        edge_homophily(path, [[0], [2]])


@settings(max_examples=30, deadline=None)
@given(n=st.integers(4, 25), m=st.integers(3, 60), seed=st.integers(0, 10**6))
def test_homophily_of_an_edge_is_that_of_its_ends_without_it(n, m, seed):
    graph = random_graph(n, m, seed)
    edges = undirected_edges(graph)
    found = edge_homophily(graph, edges)
    for number, (u, v) in enumerate(edges.T.tolist()):
        rest = remove_edges(graph, [[u], [v]]).edge_index
        at_ends = rest[:, (rest[0] == u) | (rest[0] == v)]
        agreeing = graph.y[at_ends[0]] == graph.y[at_ends[1]]
        expected = agreeing.double().mean().item() if len(agreeing) else np.nan
        np.testing.assert_allclose(found[number], expected, rtol=1e-12)
