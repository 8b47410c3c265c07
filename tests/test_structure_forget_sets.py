"""WalkCentrality against dense matrix powers, and the forget sets drawn from it and from other rules."""

import os

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch_geometric.data import Data

from lethe_lib.data import adjacency, canonical, load_graph, undirected_edges
from lethe_lib.errors import DataNotFound, InputError
from lethe_lib.structure import (
    FORGET_SETS,
    check_pairs,
    edge_positions,
    forget_set,
    remove_edges,
    walk_centrality,
    walk_weights,
)

needs_graphs = pytest.mark.skipif(not os.environ.get("LETHE_DATA"), reason="needs the real graphs: set LETHE_DATA")


def graph(edges, n, y=None, **more) -> Data:
    edge_index = torch.tensor(edges, dtype=torch.int64).reshape(-1, 2).T
    y = torch.zeros(n, dtype=torch.int64) if y is None else torch.tensor(y)
    return canonical(Data(x=torch.ones(n, 1), y=y, edge_index=edge_index, **more), name="hand")


@st.composite
def graphs(draw) -> Data:
    n = draw(st.integers(1, 12))
    node = st.integers(0, n - 1)
    return graph(draw(st.lists(st.tuples(node, node), max_size=40)), n)


def dense_operator(data: Data) -> np.ndarray:
    matrix = adjacency(data).toarray() + np.eye(data.num_nodes)
    return matrix / np.sqrt(np.outer(matrix.sum(1), matrix.sum(1)))


# WalkCentrality


@given(graphs(), st.integers(1, 6))
@settings(max_examples=80, deadline=None)
def test_walk_centrality_against_dense_matrix_powers(data, k):
    powers = [np.linalg.matrix_power(dense_operator(data), t).sum(1) for t in range(k)]
    scores = walk_centrality(data, k)
    i, j = undirected_edges(data).numpy()
    wanted = sum(powers[t][i] * powers[k - 1 - t][j] for t in range(k))
    assert scores.dtype == np.float64 and scores.shape == i.shape
    np.testing.assert_allclose(scores, wanted, rtol=1e-12)
    np.testing.assert_allclose(walk_weights(data, k), np.stack(powers, 1), rtol=1e-12)


def test_walk_centrality_is_the_derivative_of_all_walks():
    """d (1' P^k 1) / d P_ij by finite differences of the dense power."""
    data = load_graph("synthetic-tiny")
    operator, k, step = dense_operator(data), 3, 1e-6
    scores = walk_centrality(data, k)
    for position in (0, 17, 200):
        i, j = undirected_edges(data)[:, position].tolist()
        more, less = operator.copy(), operator.copy()
        more[i, j] += step
        less[i, j] -= step
        total = [np.linalg.matrix_power(matrix, k).sum() for matrix in (more, less)]
        assert scores[position] == pytest.approx((total[0] - total[1]) / (2 * step), rel=1e-6)


def test_walk_centrality_by_hand():
    path = graph([(0, 1), (1, 2)], 4)  # degrees with loops 2, 3, 2, 1
    end, middle = 1 / 2 + 1 / 6**0.5, 1 / 3 + 2 / 6**0.5
    assert walk_centrality(path, 1).tolist() == [1, 1]
    np.testing.assert_allclose(walk_centrality(path), [end + middle] * 2)
    assert walk_centrality(graph([], 3)).shape == (0,)


def test_regular_graphs_have_score_k_everywhere():
    ring = graph([(i, (i + 1) % 9) for i in range(9)], 9)
    for k in (1, 2, 5):
        np.testing.assert_allclose(walk_centrality(ring, k), np.full(9, float(k)))


@pytest.mark.parametrize("k", [0, -1, 1.5, True, "2", None])
def test_bad_k_is_refused(k):
    with pytest.raises(InputError, match="k is"):
        walk_centrality(graph([(0, 1)], 2), k)


# Forget sets

TINY = load_graph("synthetic-tiny")


@given(st.sampled_from(list(FORGET_SETS)), st.floats(0.003, 0.3), st.integers(0, 5))
@settings(max_examples=60, deadline=None)
def test_forget_sets_are_edges_of_the_right_number(kind, fraction, seed):
    budget = int(fraction * 360)
    try:
        pairs = forget_set(TINY, kind, fraction, seed)
    except InputError as error:
        assert kind.startswith("community") and "smaller fraction" in str(error)
        return
    assert torch.equal(check_pairs(TINY, pairs), pairs)
    if kind.startswith("community"):
        assert 0.99 * budget <= pairs.shape[1] <= budget
    else:
        assert pairs.shape[1] == budget
    assert torch.equal(pairs, forget_set(TINY, kind, fraction, seed))


@given(st.floats(0.003, 0.5), st.integers(1, 4))
@settings(max_examples=30, deadline=None)
def test_low_and_high_are_the_two_ends(fraction, k):
    scores = walk_centrality(TINY, k)
    low = edge_positions(TINY, forget_set(TINY, "low", fraction, k=k))
    high = edge_positions(TINY, forget_set(TINY, "high", fraction, k=k))
    assert not set(low.tolist()) & set(high.tolist())
    assert sorted(scores[low]) == sorted(scores)[: len(low)]
    assert sorted(scores[high]) == sorted(scores)[-len(high) :]


def test_ties_fall_by_node_numbers():
    ring = graph([(i, (i + 1) % 10) for i in range(10)], 10)
    assert walk_centrality(ring, 1).tolist() == [1.0] * 10
    assert forget_set(ring, "low", 0.3, k=1).tolist() == undirected_edges(ring)[:, :3].tolist()
    assert forget_set(ring, "high", 0.3, k=1).tolist() == undirected_edges(ring)[:, -3:].tolist()


def test_seed_moves_random_and_not_low():
    assert not torch.equal(forget_set(TINY, "random", seed=0), forget_set(TINY, "random", seed=1))
    assert torch.equal(forget_set(TINY, "low", seed=0), forget_set(TINY, "low", seed=1))


def test_random_is_uniform_over_edges():
    counts = np.zeros(360)
    for seed in range(600):
        counts[edge_positions(TINY, forget_set(TINY, "random", 0.1, seed))] += 1
    expected = 60.0
    assert ((counts - expected) ** 2 / (expected * 0.9)).sum() < 360 + 5 * 720**0.5


def clique(nodes):
    return [(i, j) for i in nodes for j in nodes if i < j]


def test_community_is_the_smallest_class_that_funds_the_budget():
    # classes 0, 1, 2 with 3, 10 and 15 inner edges, and 2 edges between them: 30 in all
    edges = clique(range(3)) + clique(range(3, 8)) + clique(range(8, 14)) + [(0, 3), (7, 8)]
    data = graph(edges, 14, [0] * 3 + [1] * 5 + [2] * 6)

    def classes(pairs):
        return {int(data.y[i]) for i in pairs.flatten()}

    small = forget_set(data, "community", 0.1)  # budget 3: class 0, whole
    assert small.tolist() == [[0, 0, 1], [1, 2, 2]]
    middle = forget_set(data, "community", 0.2)  # budget 6: class 1, sampled
    assert classes(middle) == {1} and middle.shape == (2, 6)
    assert not torch.equal(middle, forget_set(data, "community", 0.2, seed=1))
    assert classes(forget_set(data, "community", 0.5)) == {2}  # budget 15: class 2, whole
    with pytest.raises(InputError, match="the largest has 15"):
        forget_set(data, "community", 0.6)


def test_community_tolerates_one_percent():
    # one class with 105 inner edges, and a matching that brings the budget to 106 but the class to 105
    data = graph(clique(range(15)) + [(15 + 2 * i, 16 + 2 * i) for i in range(15)], 45, [0] * 15 + list(range(1, 31)))
    assert int(106 / 120 * 120) == 106
    assert forget_set(data, "community", 106 / 120).tolist() == torch.tensor(clique(range(15))).T.tolist()
    with pytest.raises(InputError, match="smaller fraction"):
        forget_set(data, "community", 107.5 / 120)


def test_louvain_finds_planted_communities():
    edges = clique(range(6)) + clique(range(6, 13)) + [(0, 6)]
    data = graph(edges, 13)
    assert forget_set(data, "community_louvain", 0.4).max() <= 5  # budget 14 of 37: the first clique has 15
    assert forget_set(data, "community_louvain", 0.5).min() >= 6  # budget 18: only the second, with 21
    with pytest.raises(InputError, match="Louvain community"):
        forget_set(data, "community_louvain", 0.6)


def test_temporal_takes_the_most_recent_edges():
    years = [2000, 2001, 2002, 2003, 2003]
    data = graph([(0, 1), (1, 2), (0, 2), (2, 3), (0, 4)], 5, node_year=torch.tensor(years))
    # edge years: (0,1) 2001, (0,2) 2002, (1,2) 2002, (0,4) 2003, (2,3) 2003
    assert forget_set(data, "temporal", 0.4).tolist() == [[0, 2], [4, 3]]
    three = {tuple(map(tuple, forget_set(data, "temporal", 0.6, seed=seed).T.tolist())) for seed in range(20)}
    assert three == {((0, 2), (0, 4), (2, 3)), ((0, 4), (1, 2), (2, 3))}
    assert forget_set(data, "temporal", 0.4, year=2002).tolist() == [[0, 1], [2, 2]]
    assert forget_set(data, "temporal", 0.2, year=2001).tolist() == [[0], [1]]
    with pytest.raises(InputError, match="1 edges of 2001"):
        forget_set(data, "temporal", 0.4, year=2001)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"kind": "easy"}, "unknown forget set"),
        ({"kind": "rnadom"}, "Did you mean 'random'"),
        ({"kind": "random", "fraction": 0.0}, "fraction is 0.0"),
        ({"kind": "random", "fraction": 1.0}, "fraction is 1.0"),
        ({"kind": "random", "fraction": 1}, "fraction is 1"),
        ({"kind": "random", "fraction": -0.1}, "fraction"),
        ({"kind": "random", "fraction": float("nan")}, "fraction"),
        ({"kind": "random", "fraction": "0.1"}, "fraction"),
        ({"kind": "random", "fraction": True}, "fraction"),
        ({"kind": "random", "fraction": 0.001}, "less than one edge"),
        ({"kind": "random", "year": 2018}, "only temporal"),
        ({"kind": "low", "k": 0}, "k is 0"),
    ],
)
def test_bad_requests_are_refused(arguments, message):
    with pytest.raises(InputError, match=message):
        forget_set(TINY, **arguments)


def test_temporal_needs_years():
    with pytest.raises(InputError, match="no node_year"):
        forget_set(graph([(0, 1), (1, 2)], 3), "temporal", 0.5)


# The published graphs


def real(name: str) -> Data:
    try:
        return load_graph(name)
    except DataNotFound:
        pytest.skip(f"the files of {name} are not here")


@needs_graphs
@pytest.mark.parametrize(
    ("name", "budget"),
    [("photo", 5954), ("computers", 12293), ("dblp", 2643), ("pubmed", 2216), ("cora", 263), ("citeseer", 227)],
)
def test_five_percent_budgets(name, budget):
    data = real(name)
    for kind in ("low", "high", "random"):
        assert forget_set(data, kind).shape == (2, budget)


@needs_graphs
def test_published_cohorts():
    """Photo: class 0 with all its 5,953 inner edges, one short of the budget. DBLP: class 2."""
    for name, label, edges in (("photo", 0, 5953), ("dblp", 2, 2643)):
        data = real(name)
        pairs = forget_set(data, "community")
        assert pairs.shape == (2, edges) and data.y[pairs].unique().tolist() == [label]


@needs_graphs
@pytest.mark.parametrize(
    ("name", "low", "high"), [("photo", 0.938, 0.231), ("computers", 0.933, 0.173), ("dblp", 0.501, 0.158)]
)
def test_reachability_of_low_and_high_sets(name, low, high):
    """The share of forgotten pairs still within two hops: it depends on the self-loops in P, and is known to 0.001."""
    data = real(name)
    for kind, share in (("low", low), ("high", high)):
        pairs = forget_set(data, kind)
        matrix = adjacency(remove_edges(data, pairs))
        common = matrix[pairs[0].numpy()].multiply(matrix[pairs[1].numpy()]).sum(1)
        assert float((np.asarray(common) > 0).mean()) == pytest.approx(share, abs=0.001)
