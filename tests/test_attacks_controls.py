"""Matched negatives, hop classes, the ladder of knowledge, and the attacks that learn or act."""

import math

import networkx
import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score
from torch_geometric.data import Data

from lethe_lib.attacks import ATTACKS, QUERIES, attack, hop_distances, hop_strata, link_teller_influence
from lethe_lib.attacks.hops import BEYOND, hops_from
from lethe_lib.attacks.influence import forward_mode
from lethe_lib.attacks.link_stealing_supervised import labelled_pairs, pair_features
from lethe_lib.attacks.matched import matched_non_edges, node_kinds
from lethe_lib.attacks.pairs import attacked_edges, query_graph
from lethe_lib.attacks.strata import auc_within, stratify
from lethe_lib.attacks.trend_attack import (
    TrendSettings,
    confidence_trends,
    half_graph,
    halves,
    pair_and_trends,
    shadow_model,
    shadow_pairs,
)
from lethe_lib.data import adjacency, canonical, load_graph, undirected_edges, with_edges
from lethe_lib.errors import InputError
from lethe_lib.models import BACKBONES, build, predict, train
from lethe_lib.structure import forget_set, remove_edges
from lethe_lib.unlearning import unlearn

EDGE_ATTACKS = [name for name in ATTACKS if ATTACKS[name].targets == "edges"]


def small_graph(edges: list[tuple[int, int]], nodes: int, classes: int = 2) -> Data:
    x = torch.from_numpy(np.random.default_rng(0).normal(size=(nodes, 4))).float()
    pairs = torch.tensor(edges, dtype=torch.int64).reshape(-1, 2).T
    return canonical(Data(x=x, y=torch.arange(nodes) % classes, edge_index=pairs), "test", classes)


def by_networkx(data: Data, pairs: torch.Tensor) -> list[int]:
    graph = networkx.Graph(undirected_edges(data).T.tolist())
    graph.add_nodes_from(range(data.num_nodes))
    lengths = dict(networkx.all_pairs_shortest_path_length(graph, cutoff=3))
    return [lengths[u].get(v, BEYOND) for u, v in pairs.T.tolist()]


# --- hop distances ---


@given(st.lists(st.tuples(st.integers(0, 11), st.integers(0, 11)), max_size=16))
@settings(deadline=None, max_examples=40)
def test_hop_distances_are_shortest_paths(edges):
    data = small_graph([edge for edge in edges if edge[0] != edge[1]], 12)
    pairs = torch.triu_indices(12, 12, 1)
    expected = by_networkx(data, pairs)
    assert hop_distances(data, pairs).tolist() == expected
    assert hop_distances(data, pairs.flip(0)).tolist() == expected
    matrix = hops_from(adjacency(data).astype(np.float32), np.arange(12))
    assert matrix[pairs[0], pairs[1]].tolist() == expected
    assert (np.diag(matrix) == 0).all()


def test_no_pairs_have_no_distances(graph):
    assert hop_distances(graph, torch.empty(2, 0, dtype=torch.int64)).shape == (0,)


# --- matched negatives ---


@given(st.integers(0, 10**6), st.sampled_from(["low", "high", "random", "community"]))
@settings(deadline=None, max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_matched_negatives_are_alike_in_every_stated_way(seed, kind):
    graph = load_graph("synthetic-tiny")
    forget = forget_set(graph, kind, 0.1, seed=seed % 7)
    attacked = attacked_edges(graph, forget, 25, seed)
    pairs, kept = matched_non_edges(graph, forget, attacked, np.random.default_rng(seed))
    mine, retained = attacked[:, torch.from_numpy(kept)], remove_edges(graph, forget)
    assert pairs.shape == mine.shape
    assert by_networkx(retained, pairs) == by_networkx(retained, mine)
    kinds = node_kinds(retained)
    assert np.array_equal(np.sort(kinds[pairs.numpy()], axis=0), np.sort(kinds[mine.numpy()], axis=0))
    assert all(len(set(a) & set(b)) == 1 for a, b in zip(pairs.T.tolist(), mine.T.tolist(), strict=True))
    edges = set(map(tuple, undirected_edges(graph).T.tolist()))
    chosen = list(map(tuple, pairs.T.tolist()))
    assert not edges & set(chosen)
    assert len(set(chosen)) == len(chosen)
    assert (pairs[0] < pairs[1]).all()


def test_an_edge_without_a_match_is_dropped_and_nothing_is_relaxed():
    """Ring 0-1-...-7 with the chord 0-4, labels even and odd. Without the chord only 4 is more than 3 hops from 0."""
    ring = [(i, (i + 1) % 8) for i in range(8)] + [(0, 4)]
    data = small_graph(ring, 8)
    chord = torch.tensor([[0], [4]])
    with pytest.raises(InputError, match="none of the 1 forgotten edges has a matched non-edge"):
        matched_non_edges(data, chord, chord, np.random.default_rng(0))
    forget = torch.tensor([[0, 0], [1, 4]])  # without 0-1 as well, the ring is a path 1-2-...-7-0
    pairs, kept = matched_non_edges(data, forget, forget, np.random.default_rng(0))
    assert by_networkx(remove_edges(data, forget), forget) == [BEYOND, BEYOND]
    # 0-4: keep 0, take 2 (even, over 3 hops away; 4 itself is forgotten); 0-1: keep 0, take 3, or keep 1, take 6
    assert kept.tolist() == [True, True]
    assert pairs[:, 1].tolist() == [0, 2]
    assert pairs[:, 0].tolist() in ([0, 3], [1, 6])
    both = torch.tensor([[0, 0, 2], [1, 4, 3]])  # now the path falls apart: 1-2 and 3-4-5-6-7-0
    pairs, kept = matched_non_edges(data, both, both, np.random.default_rng(0))
    assert len(set(map(tuple, pairs.T.tolist()))) == kept.sum()


def test_matched_negatives_serve_every_edge_attack(graph, model, forget):
    for name in EDGE_ATTACKS:
        first, second = (attack(name, model, graph, forget, seed=2, negatives="matched") for _ in range(2))
        assert np.array_equal(first.scores, second.scores)
        assert first.labels.sum() == (~first.labels).sum() <= forget.shape[1]
        counts = hop_strata(first, graph, forget)
        assert counts.forgotten == counts.negatives
        assert counts.compared == 1.0
    with pytest.raises(InputError, match="one to each"):
        attack("link_stealing", model, graph, forget, preset="published", negatives="matched")


def test_what_is_remembered_between_calls_is_not_handed_out(graph, model, forget):
    first = attack("link_stealing", model, graph, forget)
    first.targets[:], first.labels[:] = 0, False
    assert attack("link_stealing", model, graph, forget).labels.sum() == forget.shape[1]


# --- hop strata ---


def test_strata_by_hand():
    scores = np.array([5.0, 1.0, 3.0, 4.0, 9.0, 0.0])
    labels = np.array([1, 1, 0, 0, 1, 0])
    hops = np.array([2, 2, 2, 2, 3, BEYOND])
    found = stratify(scores, labels, hops)
    assert found.forgotten == {"2": 2, "3": 1, ">3": 0}
    assert found.negatives == {"2": 2, "3": 0, ">3": 1}
    assert found.areas == {"2": 0.5}
    assert (found.auc, found.compared) == (0.5, pytest.approx(2 / 3))
    assert auc_within(scores, labels, hops, 2) == 0.5
    assert math.isnan(auc_within(scores, labels, np.full(6, 3), 2))
    apart = stratify(scores[3:], labels[3:], np.array([2, 3, BEYOND]))
    assert math.isnan(apart.auc)
    assert apart.compared == 0.0
    assert apart.interval == (0.0, 1.0)


@given(st.integers(0, 1000))
@settings(deadline=None, max_examples=20)
def test_strata_limits(seed):
    """One stratum is the plain AUC; a score that reads the distance alone is one half in every stratum."""
    generator = np.random.default_rng(seed)
    scores, labels = generator.normal(size=60), np.arange(60) < 30
    whole = stratify(scores, labels, np.full(60, 2))
    assert whole.auc == pytest.approx(roc_auc_score(labels, scores))
    assert whole.interval[0] <= whole.auc <= whole.interval[1]
    hops = generator.choice([2, 3, BEYOND], 60)
    assert stratify(-hops.astype(float), labels, hops).auc == pytest.approx(0.5)


def test_link_teller_is_one_half_beyond_its_depth(graph, model, forget):
    found = attack("link_teller", model, graph, forget)
    strata = hop_strata(found, graph, forget)
    assert {strata.areas[name] for name in ("3", ">3") if name in strata.areas} == {0.5}
    with pytest.raises(InputError, match="an attack on nodes"):
        hop_strata(attack("e_umia", model, graph, forget), graph, forget)


# --- the ladder ---


def test_ladder_of_query_graphs(graph, forget):
    graphs = {query: query_graph(graph, forget, query, seed=4) for query in QUERIES}
    edges = {query: set(map(tuple, undirected_edges(g).T.tolist())) for query, g in graphs.items()}
    assert edges["none"] == set() < edges["partial"] < edges["retained"] < edges["original"]
    assert len(edges["partial"]) == len(edges["retained"]) // 2
    assert edges["original"] - edges["retained"] == set(map(tuple, forget.T.tolist()))
    assert all(g.num_nodes == graph.num_nodes for g in graphs.values())
    other = query_graph(graph, forget, "partial", seed=5)
    assert edges["partial"] != set(map(tuple, undirected_edges(other).T.tolist()))
    assert query_graph(graph, forget, "partial", seed=4).content_hash == graphs["partial"].content_hash


def test_without_edges_link_teller_sees_nothing(graph, model, forget):
    found = attack("link_teller", model, graph, forget, query="none")
    assert not found.scores.any()
    assert (found.auc, found.tpr_at_one_percent) == (0.5, 0.0)


def test_true_positive_rate_at_one_percent(graph, model, forget):
    found = attack("link_teller", model, graph, forget, query="original")
    highest = found.scores[~found.labels].max()  # of 36 negatives none may be accused
    assert found.tpr_at_one_percent == pytest.approx((found.scores[found.labels] > highest).mean())


# --- Memoriser: the positive control ---


def test_the_toggle_finds_the_memoriser_and_link_teller_cannot(graph, model, forget):
    planted, honest = (unlearn(name, model, graph, forget).model for name in ("memoriser", "utu"))
    areas = {
        name: [attack(name, m, graph, forget, negatives="matched").auc for m in (planted, honest)]
        for name in ("edge_toggle", "link_teller", "link_stealing")
    }
    assert areas["edge_toggle"][0] > 0.95 > areas["edge_toggle"][1]
    assert areas["link_stealing"][0] > areas["link_stealing"][1] + 0.1
    assert areas["link_teller"][0] == pytest.approx(areas["link_teller"][1])  # constants have no derivative


@pytest.mark.parametrize("backbone", list(BACKBONES))
def test_influence_under_the_memoriser_is_that_of_its_own_forward(backbone, graph, forget):
    planted = unlearn("memoriser", train(graph, backbone, 1, epochs=5, patience=5), graph, forget).model
    for asked in (graph, remove_edges(graph, forget)):  # with the remembered pairs and without them
        pairs = torch.cat([forget[:, :8], undirected_edges(asked)[:, :8]], dim=1)
        expected = forward_mode(planted, asked, *pairs.numpy())
        assert np.allclose(link_teller_influence(planted, asked, pairs), expected, atol=1e-13)


# --- symmetry, degenerate rows ---


def test_pair_features_are_symmetric_and_never_nan():
    rows = np.vstack([np.eye(3), np.full((1, 3), 1 / 3), [[0.5, 0.5, 0.0]]])
    pairs = torch.triu_indices(5, 5)
    for entropies in (False, True):
        found = pair_features(rows, pairs, entropies)
        assert np.isfinite(found).all()
        assert np.array_equal(found, pair_features(rows, pairs.flip(0), entropies))
        assert found.shape[1] == (12 if entropies else 20)


def test_models_with_constant_answers_are_attacked_without_nan(graph, forget):
    constant = build(graph)
    with torch.no_grad():
        for parameter in constant.parameters():
            parameter.zero_()
    for name in EDGE_ATTACKS:
        found = attack(name, constant, graph, forget)
        assert np.isfinite(found.scores).all()
        if name == "e_umia_edges":  # its degrees are left
            assert (found.extras["auc_answers"], found.auc) == (0.5, pytest.approx(found.extras["auc_structure"]))
        elif name != "trend_attack":
            assert found.auc == 0.5


# --- supervised Link Stealing ---


@given(st.integers(0, 10**6))
@settings(deadline=None, max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_attacked_pair_and_no_forgotten_edge_is_labelled(seed):
    graph = load_graph("synthetic-tiny")
    forget = forget_set(graph, "random", 0.2, seed=seed % 5)
    attacked = torch.cat([forget, torch.triu_indices(120, 120, 1)[:, seed % 1000 :: 97]], dim=1)
    given_pairs, known = labelled_pairs(graph, forget, attacked, 50, seed)
    asked = {tuple(sorted(pair)) for pair in attacked.T.tolist()}
    pairs = list(map(tuple, given_pairs.T.tolist()))
    edges = set(map(tuple, undirected_edges(remove_edges(graph, forget)).T.tolist()))
    assert set(pairs[: known.sum()]) <= edges
    assert not set(pairs[known.sum() :]) & (set(map(tuple, undirected_edges(graph).T.tolist())) | asked)
    assert known.sum() == (~known).sum() == 50
    assert len(set(pairs)) == 100


def test_supervised_link_stealing_learns_the_labelled_pairs(graph, model, forget):
    found = attack("link_stealing_supervised", model, graph, forget)
    plain = attack("link_stealing", model, graph, forget)
    assert found.extras["auc_labelled"] > 0.7
    assert found.extras["labelled_pairs"] == 2 * (360 - forget.shape[1])
    assert found.auc > plain.auc - 0.15
    with pytest.raises(InputError, match="labelled=0"):
        attack("link_stealing_supervised", model, graph, forget, labelled=0)
    everything = undirected_edges(graph)
    with pytest.raises(InputError, match="no edge is left"):
        labelled_pairs(graph, everything, everything, 5, 0)


# --- edge toggle ---


def test_toggle_scores_equal_two_whole_forwards(graph, model, forget):
    found = attack("edge_toggle", model, graph, forget, most=4)
    base = remove_edges(graph, forget)
    before = predict(model, base).double()
    keys = base.edge_index[0] * 120 + base.edge_index[1]
    for (u, v), score in zip(found.targets.T.tolist(), found.scores):
        joined = torch.cat([keys, torch.tensor([u * 120 + v, v * 120 + u])]).sort().values
        after = predict(model, with_edges(base, torch.stack([joined // 120, joined % 120]))).double()
        expected = sum(float((after[w] - before[w]).norm()) for w in (u, v))
        assert score == pytest.approx(expected, rel=1e-4, abs=1e-5)
    assert found.labels.sum() == 4


# --- TrendAttack ---


def test_trends_on_a_path_by_hand():
    """0-1-2 with confidences 0.9, 0.6, 0.6 and an isolated node 3. Means with loops: 0.75, 0.7, 0.6; then .725, .6833, .65."""
    path = small_graph([(0, 1), (1, 2)], 4)
    rows = np.array([[0.9, 0.1], [0.6, 0.4], [0.4, 0.6], [0.8, 0.2]])
    assert confidence_trends(rows, path).tolist() == [[0, 0], [1, 0], [0, 1], [0, 0]]
    features = pair_and_trends(rows, path, torch.tensor([[0], [1]]))
    assert features[0, 8:].tolist() == [0, 0, 1, 0]
    mirrored = pair_and_trends(rows, path, torch.tensor([[1], [0]]))
    assert mirrored[0, 8:].tolist() == [1, 0, 0, 0]
    assert np.array_equal(features[:, :8], mirrored[:, :8])
    assert pair_and_trends(rows, path, torch.tensor([[0], [1]]), trends=False).shape == (1, 8)


def test_halves_cut_a_barbell_at_its_bridge():
    one = [(i, j) for i in range(6) for j in range(i)]
    barbell = small_graph([*one, *((i + 6, j + 6) for i, j in one), (0, 6)], 12)
    half = halves(barbell, seed=0)
    assert half.sum() == 6
    assert len(set(half[:6].tolist())) == len(set(half[6:].tolist())) == 1
    assert halves(small_graph([], 11)).sum() == 5
    with pytest.raises(InputError, match="5 nodes is too small"):
        halves(small_graph([], 5))


def test_the_shadow_sees_no_forgotten_edge(graph, forget):
    retained = remove_edges(graph, forget)
    half = half_graph(retained, 0)
    nodes = np.flatnonzero(halves(retained, 0))
    inside = {(int(nodes[u]), int(nodes[v])) for u, v in undirected_edges(half).T.tolist()}
    assert inside <= set(map(tuple, undirected_edges(retained).T.tolist()))
    assert torch.equal(half.y, graph.y[nodes])
    found = shadow_model(graph, forget, TrendSettings(), 0)
    given_pairs, known = shadow_pairs(found, 0)
    edges = set(map(tuple, undirected_edges(found.data).T.tolist()))
    pairs = list(map(tuple, given_pairs.T.tolist()))
    assert set(pairs[: known.sum()]) <= edges
    assert not set(pairs[known.sum() :]) & edges
    assert set(map(tuple, found.forget.T.tolist())) <= set(pairs[: known.sum()])


def test_trend_attack_reports_other_edges_and_is_symmetric(graph, model, forget):
    found = attack("trend_attack", model, graph, forget)
    assert set(found.extras) == {"auc_members", "auc_all", "auc_shadow", "shadow_nodes"}
    assert found.extras["shadow_nodes"] == 60
    assert found.extras["auc_all"] == pytest.approx((found.auc + found.extras["auc_members"]) / 2, abs=0.05)
    other = attack("trend_attack", model, graph, forget, method="fine_tuning")
    assert not np.array_equal(other.scores, found.scores)
    for bad in ({"method": "nothing"}, {"method_preset": "paper"}, {"backbone": "mlp"}, {"fraction": 1.0}):
        with pytest.raises(InputError):
            attack("trend_attack", model, graph, forget, **bad)
