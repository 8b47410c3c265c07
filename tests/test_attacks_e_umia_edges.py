"""E-UMIA on edges: its features by hand and by rebuilding the graph, its candidates, its folds, and what it sees."""

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch.nn.functional import cross_entropy
from torch_geometric.data import Data

from lethe_lib.attacks import attack, auc
from lethe_lib.attacks.e_umia_edges import (
    ANSWERS,
    KEPT_EDGES,
    cross_fitted,
    margin,
    matched_kept_edges,
    shared_folds,
    toggle_features,
    without_candidates,
)
from lethe_lib.attacks.pairs import query_graph
from lethe_lib.data import adjacency, canonical, load_graph, undirected_edges
from lethe_lib.errors import InputError
from lethe_lib.models import build, predict
from lethe_lib.structure import forget_set, remove_edges
from lethe_lib.unlearning.memoriser import MemorisingNetwork


def joined(edges: list[list[int]], like: Data) -> Data:
    """A graph with the nodes of another one and these edges, built from nothing else."""
    pairs = torch.tensor(edges, dtype=torch.int64).reshape(-1, 2).T
    return canonical(Data(x=like.x, y=like.y, edge_index=pairs), "rebuilt", like.num_classes)


# --- features ---


def test_features_of_a_lone_pair_by_hand():
    """Nodes 0 and 1 alone; one layer f = (A_hat x, 0) with x = (1, 0): apart (1, 0), joined (1/2, 1/2); labels 0 and 1."""
    empty = canonical(
        Data(
            x=torch.tensor([[1.0], [0.0]]),
            y=torch.tensor([0, 1]),
            edge_index=torch.empty(2, 0, dtype=torch.int64),
        ),
        "two nodes",
        2,
    )
    linear = build(empty, "sgc", layers=1)
    with torch.no_grad():
        linear.head.weight.copy_(torch.tensor([[1.0], [0.0]]))
        linear.head.bias.zero_()
    falls = [np.log1p(np.exp(-1.0)) - np.log1p(np.exp(-0.5)), np.log(2.0) - np.log1p(np.exp(0.5))]
    expected = [*sorted(falls), -0.5, -0.5, 0.0, 0.0, 0.0, 0.0]
    np.testing.assert_allclose(toggle_features(linear, empty, torch.tensor([[0], [1]])), [expected], atol=1e-6)


@pytest.mark.parametrize("backbone", ["gcn", "sage", "gat"])
def test_features_equal_those_of_graphs_rebuilt_for_every_pair(graph, forget, backbone):
    net = build(graph, backbone, seed=3, hidden=8)
    pairs = torch.cat([forget[:, :4], undirected_edges(remove_edges(graph, forget))[:, 10:200:60]], dim=1)
    gone = {tuple(pair) for pair in torch.cat([forget, pairs], dim=1).T.tolist()}
    rest = [pair for pair in undirected_edges(graph).T.tolist() if tuple(pair) not in gone]
    base = joined(rest, graph)
    found = toggle_features(net, without_candidates(remove_edges(graph, forget), pairs), pairs)
    before = predict(net, base).double()
    neighbours = [{b if a == w else a for a, b in rest if w in (a, b)} for w in range(graph.num_nodes)]
    for row, (u, v) in zip(found, pairs.T.tolist(), strict=True):
        after = predict(net, joined([*rest, [u, v]], graph)).double()
        falls, rises = [], []
        for w in (u, v):
            label = int(graph.y[w])
            falls.append(float(cross_entropy(before[w], graph.y[w]) - cross_entropy(after[w], graph.y[w])))
            gaps = [float(z[label] - max(z[c] for c in range(len(z)) if c != label)) for z in (before[w], after[w])]
            rises.append(gaps[1] - gaps[0])
        degrees = [np.log1p(len(neighbours[w])) for w in (u, v)]
        graph_only = [*sorted(degrees), graph.y[u] == graph.y[v], np.log1p(len(neighbours[u] & neighbours[v]))]
        np.testing.assert_allclose(row, [*sorted(falls), *sorted(rises), *map(float, graph_only)], atol=2e-5)
        np.testing.assert_allclose(
            row, toggle_features(net, base, torch.tensor([[v], [u]]))[0], atol=2e-5
        )  # ends swapped, and asked about alone


def test_margins_by_hand():
    logits = torch.tensor([[[3.0, 1.0, 2.0], [0.0, 5.0, 4.0]]])
    assert margin(logits, torch.tensor([[0, 2]])).tolist() == [[1.0, -1.0]]


# --- candidates ---


@given(st.integers(0, 10**6), st.sampled_from(["low", "high", "random", "community"]), st.booleans())
@settings(deadline=None, max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_kept_edges_are_alike_in_every_stated_way(seed, kind, same_degrees):
    graph = load_graph("synthetic-tiny")
    forget = forget_set(graph, kind, 0.1, seed=seed % 7)
    pairs, kept = matched_kept_edges(graph, forget, forget, same_degrees, np.random.default_rng(seed))
    mine, retained = forget[:, torch.from_numpy(kept)], remove_edges(graph, forget)
    degree = np.diff(adjacency(retained).indptr)

    def ends(pair, own):
        bucket = [int(np.log2(degree[w] - own + 1)) if same_degrees else 0 for w in pair]
        return sorted(zip(graph.y[pair].tolist(), bucket))

    assert pairs.shape == mine.shape
    for one, other in zip(mine.T.tolist(), pairs.T.tolist(), strict=True):
        assert ends(one, 0) == ends(other, 1)
    chosen = list(map(tuple, pairs.T.tolist()))
    assert len(set(chosen)) == len(chosen)
    assert set(chosen) <= set(map(tuple, undirected_edges(retained).T.tolist()))


def test_an_edge_without_a_like_is_dropped_and_an_empty_match_refused():
    """Labels 0 0 1 1 1: the forgotten 0-1 joins two zeros, and no other edge does; 2-3 has the kept 3-4."""
    edges = torch.tensor([[0, 2, 3, 1], [1, 3, 4, 2]])
    data = canonical(Data(x=torch.eye(5), y=torch.tensor([0, 0, 1, 1, 1]), edge_index=edges), "test", 2)
    forget = torch.tensor([[0, 2], [1, 3]])
    pairs, kept = matched_kept_edges(data, forget, forget, False, np.random.default_rng(0))
    assert (pairs.T.tolist(), kept.tolist()) == ([[3, 4]], [False, True])
    # degrees without the edge itself: 2-3 has 1 and 1, in one bucket, and 3-4 has 0 and 0, in another
    with pytest.raises(InputError, match="none of the 2 forgotten edges has a kept edge like it"):
        matched_kept_edges(data, forget, forget, True, np.random.default_rng(0))
    with pytest.raises(InputError, match="needs 2 forgotten edges with negatives, but 1 of 2"):
        attack("e_umia_edges", build(data), data, forget, same_degrees=False)


@pytest.mark.parametrize("query", ["none", "partial", "retained"])
def test_no_candidate_is_in_the_graph_that_is_asked(graph, model, forget, query):
    found = attack("e_umia_edges", model, graph, forget, query=query)
    asked = without_candidates(query_graph(graph, forget, query), torch.from_numpy(found.targets))
    candidates = set(map(tuple, found.targets.T.tolist()))
    edges = set(map(tuple, undirected_edges(graph).T.tolist()))
    assert candidates <= edges
    assert not candidates & set(map(tuple, undirected_edges(asked).T.tolist()))
    assert {tuple(pair) for pair in found.targets[:, found.labels].T.tolist()} <= set(map(tuple, forget.T.tolist()))
    lost = undirected_edges(query_graph(graph, forget, query)).shape[1] - undirected_edges(asked).shape[1]
    assert lost == {"none": 0, "retained": (~found.labels).sum()}.get(query, lost) <= (~found.labels).sum()


def test_all_models_face_the_same_candidates(graph, model, forget):
    first = attack("e_umia_edges", model, graph, forget, seed=5)
    other = attack("e_umia_edges", build(graph, "gin", seed=1), graph, forget, seed=5)
    assert np.array_equal(first.targets, other.targets)
    assert first.extras["auc_structure"] == other.extras["auc_structure"]
    assert not np.array_equal(first.targets, attack("e_umia_edges", model, graph, forget, seed=6).targets)


def test_published_matches_on_labels_and_reports_an_accuracy(graph, model, forget):
    found = attack("e_umia_edges", model, graph, forget, preset="published")
    assert found.labels.sum() == (~found.labels).sum() == forget.shape[1]
    assert found.headline == found.accuracy != found.auc
    labels = np.sort(graph.y.numpy()[found.targets], axis=0)
    assert np.array_equal(labels[:, found.labels], labels[:, ~found.labels])
    assert attack("e_umia_edges", model, graph, forget, preset="published", most=12).labels.sum() == 12
    own = attack("e_umia_edges", model, graph, forget)
    assert own.headline == own.auc
    assert own.accuracy == ((own.scores > 0) == own.labels).mean()


# --- what it learns ---


def test_an_edge_and_its_match_share_a_fold():
    labels = np.arange(26) < 13
    fold = shared_folds(labels, np.random.default_rng(0))
    assert np.array_equal(fold[labels], fold[~labels])
    assert sorted(np.bincount(fold[labels])) == [2, 2, 3, 3, 3]
    assert set(shared_folds(np.arange(5) < 2, np.random.default_rng(0))[:2]) == {0, 1}


def test_a_candidate_is_scored_by_a_classifier_that_never_saw_it():
    generator = np.random.default_rng(0)
    features, labels = generator.normal(size=(60, 8)), np.arange(60) < 30
    fold = shared_folds(labels, generator)
    scores = cross_fitted(features, labels, fold, 0)
    flipped = labels.copy()
    flipped[fold == 2] = ~labels[fold == 2]
    assert np.array_equal(cross_fitted(features, flipped, fold, 0)[fold == 2], scores[fold == 2])
    assert not np.array_equal(cross_fitted(features, flipped, fold, 0)[fold != 2], scores[fold != 2])


def test_permuted_labels_give_one_half_and_a_telling_feature_gives_one(graph, model, forget):
    found = attack("e_umia_edges", model, graph, forget, negatives="uniform")
    pairs = torch.from_numpy(found.targets)
    features = toggle_features(model, remove_edges(graph, forget), pairs)
    generator = np.random.default_rng(1)
    areas = []
    for _ in range(30):
        labels = generator.permutation(found.labels)
        areas.append(auc(cross_fitted(features, labels, shared_folds(labels, generator), 0), labels))
    assert np.mean(areas) == pytest.approx(0.5, abs=0.06)
    for sign in (1.0, -1.0):  # whichever way a feature points, a higher score means forgotten
        features[:, 0] = sign * found.labels
        assert auc(cross_fitted(features, found.labels, shared_folds(found.labels, generator), 0), found.labels) == 1.0


def test_it_tells_models_that_know_one_kind_and_not_those_that_know_both(graph, model, forget):
    """Planted: who recognises the forgotten edges, the kept ones (as Gold would, if it remembered), or both."""
    said = predict(model, graph)
    honest = attack("e_umia_edges", model, graph, forget)
    asked = {"forgotten": honest.labels, "kept": ~honest.labels, "both": honest.labels | True}
    found = {
        name: attack(
            "e_umia_edges",
            MemorisingNetwork(model, said, torch.from_numpy(honest.targets[:, chosen])),
            graph,
            forget,
        )
        for name, chosen in asked.items()
    }
    assert found["forgotten"].auc > 0.85
    assert found["kept"].auc > 0.85
    assert found["both"].auc < 0.7
    assert honest.auc < 0.7
    assert {result.extras["auc_structure"] for result in found.values()} == {honest.extras["auc_structure"]}
    assert found["forgotten"].extras["auc_answers"] > 0.85


def test_structure_is_read_off_the_last_features(graph, model, forget):
    found = attack("e_umia_edges", model, graph, forget)
    asked = without_candidates(remove_edges(graph, forget), torch.from_numpy(found.targets))
    own, other = (toggle_features(m, asked, torch.from_numpy(found.targets)) for m in (model, build(graph, seed=4)))
    assert np.array_equal(own[:, ANSWERS:], other[:, ANSWERS:])
    assert not np.isclose(own[:, :ANSWERS], other[:, :ANSWERS]).all(axis=1).any()


def test_bad_input(graph, model, forget):
    for bad in ({"negatives": "nearby"}, {"query": "original"}, {"query": "secret"}, {"most": 0}):
        with pytest.raises(InputError):
            attack("e_umia_edges", model, graph, forget, **bad)
    with pytest.raises(InputError, match=f"choose one of {KEPT_EDGES}, uniform, matched"):
        attack("e_umia_edges", model, graph, forget, negatives="nearby")
    with pytest.raises(InputError, match="needs 2 forgotten edges"):
        attack("e_umia_edges", model, graph, forget[:, :1], negatives="uniform")
