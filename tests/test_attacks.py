"""The attacks as users call them: what they are asked about, their presets, and each attack's own arithmetic."""

import os

import numpy as np
import pytest
import scipy.spatial.distance
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from torch.nn.functional import cross_entropy
from torch_geometric.data import Data

from lethe_lib.attacks import ATTACKS, NEGATIVES, attack, link_teller_influence
from lethe_lib.attacks.influence import finite_difference
from lethe_lib.attacks.link_stealing import DISTANCES
from lethe_lib.data import Split, canonical, load_graph, undirected_edges
from lethe_lib.errors import InputError
from lethe_lib.models import build, predict, train
from lethe_lib.structure import affected_nodes, forget_set, remove_edges

EDGE_ATTACKS = [name for name in ATTACKS if ATTACKS[name].targets == "edges"]
CASES = [(name, preset) for name in ATTACKS for preset in ATTACKS[name].settings]


# --- every attack, both presets ---


@pytest.mark.parametrize(("name", "preset"), CASES)
def test_result_is_complete_and_the_same_again(graph, model, forget, name, preset):
    first, second = (attack(name, model, graph, forget, seed=3, preset=preset) for _ in range(2))
    assert (first.name, first.preset, first.query) == (name, preset, "retained")
    assert first.scores.dtype == np.float64
    assert first.labels.dtype == bool
    assert first.scores.shape == first.labels.shape == first.targets.shape[-1:]
    assert np.isfinite(first.scores).all()
    assert first.auc == pytest.approx(roc_auc_score(first.labels, first.scores), abs=1e-12)
    assert first.interval[0] <= first.auc <= first.interval[1]
    assert all(isinstance(value, float) for value in first.extras.values())
    assert np.array_equal(first.scores, second.scores)
    assert np.array_equal(first.targets, second.targets)
    assert first.extras == second.extras


@pytest.mark.parametrize(("name", "preset"), CASES)
def test_the_model_is_asked_on_the_retained_graph_unless_told_otherwise(graph, model, forget, name, preset):
    retained = attack(name, model, graph, forget, preset=preset)
    if name in ("edge_toggle", "e_umia_edges"):  # they put pairs into the graph, and there they are
        with pytest.raises(InputError, match="holds the forgotten pairs already"):
            attack(name, model, graph, forget, preset=preset, query="original")
        return
    original = attack(name, model, graph, forget, preset=preset, query="original")
    assert (retained.query, original.query) == ("retained", "original")
    assert np.array_equal(retained.targets, original.targets)
    assert not np.array_equal(retained.scores, original.scores)


@pytest.mark.parametrize("name", list(ATTACKS))
def test_orientation_and_order_of_the_request_do_not_matter(graph, model, forget, name):
    shuffled = forget.flip(0)[:, torch.randperm(forget.shape[1], generator=torch.Generator().manual_seed(0))]
    assert np.array_equal(attack(name, model, graph, forget).scores, attack(name, model, graph, shuffled).scores)


@pytest.mark.parametrize("backbone", ["gcn", "gat", "gin", "sage", "sgc"])
def test_untrained_models_of_every_backbone_can_be_attacked(graph, forget, backbone):
    fresh = build(graph, backbone, seed=1)
    for name in EDGE_ATTACKS:
        for preset in ATTACKS[name].settings:
            assert 0.0 <= attack(name, fresh, graph, forget, preset=preset).auc <= 1.0
    with pytest.raises(InputError, match="training_run"):
        attack("e_umia", fresh, graph, forget)


def test_all_models_and_all_edge_attacks_face_the_same_pairs(graph, model, forget):
    other = build(graph, "gin", seed=9)
    asked = [(name, m) for name in EDGE_ATTACKS for m in (model, other)]
    results = [attack(name, m, graph, forget, seed=5, negatives="uniform") for name, m in asked]
    for found in results[1:]:
        assert np.array_equal(found.targets, results[0].targets)
        assert np.array_equal(found.labels, results[0].labels)
    assert not np.array_equal(attack("link_teller", model, graph, forget, seed=6).targets, results[0].targets)
    fewer = attack("link_teller", model, graph, forget[:, 1:], seed=5)
    assert not np.array_equal(fewer.targets[:, ~fewer.labels][:, :5], results[0].targets[:, ~results[0].labels][:, :5])


@pytest.mark.parametrize("name", EDGE_ATTACKS)
def test_candidates_are_the_forgotten_edges_and_pairs_that_were_never_edges(graph, model, forget, name):
    found = attack(name, model, graph, forget, negatives="uniform")
    assert np.array_equal(found.targets[:, found.labels], forget.numpy())
    negatives = found.targets[:, ~found.labels]
    edges = set(map(tuple, undirected_edges(graph).T.tolist()))
    assert negatives.shape == forget.shape
    assert len(set(map(tuple, negatives.T.tolist()))) == negatives.shape[1]
    assert not edges & set(map(tuple, negatives.T.tolist()))
    assert (negatives[0] < negatives[1]).all()


def test_refusals(graph, model, forget):
    with pytest.raises(InputError, match="Did you mean 'link_teller'"):
        attack("linkteller", model, graph, forget)
    none = torch.empty(2, 0, dtype=torch.int64)
    for name in ATTACKS:
        with pytest.raises(InputError, match="needs forgotten edges"):
            attack(name, model, graph, none)
        with pytest.raises(InputError, match="no preset 'paper'"):
            attack(name, model, graph, forget, preset="paper")
        with pytest.raises(InputError, match=r"no setting epsilon. It has: .*query"):
            attack(name, model, graph, forget, epsilon=1.0)
        with pytest.raises(InputError, match="query='secret'"):
            attack(name, model, graph, forget, query="secret")
    with pytest.raises(InputError, match="self-loop"):
        attack("link_teller", model, graph, torch.tensor([[1], [1]]))
    for bad in ({"delta": 0.0}, {"most": 0}, {"negatives": "nearby"}):
        with pytest.raises(InputError):
            attack("link_teller", model, graph, forget, **bad)
    for bad in ({"distance": "hamming"}, {"negatives_per_edge": 0.0}, {"negatives": "nearby"}):
        with pytest.raises(InputError):
            attack("link_stealing", model, graph, forget, **bad)
    with pytest.raises(InputError, match="hops=-1"):
        attack("e_umia", model, graph, forget, hops=-1)


def test_new_kinds_of_negatives_are_one_registration(graph, model, forget):
    def first_non_edges(data, forget, attacked, count, generator):
        return NEGATIVES["uniform"](data, forget, attacked, count, np.random.default_rng(0))

    NEGATIVES.register("test-only", first_non_edges)
    found = attack("link_teller", model, graph, forget, negatives="test-only")
    expected, _ = first_non_edges(graph, forget, forget, forget.shape[1], None)
    assert np.array_equal(found.targets[:, ~found.labels], expected.numpy())


# --- LinkTeller ---


def test_link_teller_scores_are_the_sum_of_both_directions(graph, model, forget):
    found = attack("link_teller", model, graph, forget)
    pairs, retained = torch.from_numpy(found.targets), remove_edges(graph, forget)
    down, up = (link_teller_influence(model, retained, p).numpy() for p in (pairs.flip(0), pairs))
    np.testing.assert_allclose(found.scores, down + up, rtol=1e-12)
    one = attack("link_teller", model, graph, forget, symmetric=False)
    np.testing.assert_allclose(one.scores, down, rtol=1e-12)
    assert found.extras["auc_one_direction"] == pytest.approx(one.auc)
    assert found.extras["zero_negatives"] == (found.scores[~found.labels] == 0.0).mean() > 0.0


def test_published_link_teller_perturbs_the_larger_id_in_float32(graph, model, forget):
    found = attack("link_teller", model, graph, forget, preset="published")
    low, high = found.targets
    expected = finite_difference(model, remove_edges(graph, forget), high, low, 1e-4)
    assert np.array_equal(found.scores, expected)
    exact = attack("link_teller", model, graph, forget, symmetric=False)
    assert np.abs(found.scores - exact.scores).max() < 0.05 * exact.scores.max()
    assert not np.array_equal(found.scores, exact.scores)


def test_published_link_teller_caps_both_groups(graph, model, forget):
    found = attack("link_teller", model, graph, forget, preset="published", most=10)
    assert found.labels.sum() == 10
    assert (~found.labels).sum() == 10
    chosen = set(map(tuple, found.targets[:, found.labels].T.tolist()))
    assert chosen < set(map(tuple, forget.T.tolist()))
    assert chosen != set(map(tuple, forget[:, :10].T.tolist()))
    assert ATTACKS["link_teller"].settings["published"].most == 500


def test_link_teller_counts_nodes_that_cannot_show_influence():
    """A path 0-1-2-3 and a triangle 4-5-6; without the edge 0-1 node 0 is isolated, and node 2 has no features."""
    edges = torch.tensor([[0, 1, 2, 4, 5, 4], [1, 2, 3, 5, 6, 6]])
    x = torch.ones(7, 2)
    x[2] = 0.0
    for features in (x, x.to_sparse_csr()):
        data = canonical(Data(x=features, y=torch.tensor([0, 1, 0, 1, 0, 1, 0]), edge_index=edges))
        found = attack("link_teller", build(data), data, torch.tensor([[0, 1], [1, 2]]), seed=1)
        nodes = np.unique(found.targets)
        assert found.extras["featureless_nodes"] == float(2 in nodes) == 1.0
        assert found.extras["isolated_nodes"] == float(0 in nodes) + float(1 in nodes) == 2.0
        assert found.extras["zero_forgotten"] == 1.0


# --- Link Stealing ---

rows = st.lists(st.floats(0.0, 1.0), min_size=4, max_size=4).filter(lambda row: sum(row) > 1e-3)


@given(rows, rows)
@settings(deadline=None)
def test_distances_equal_scipy_and_are_symmetric(p, q):
    p, q = np.array([p]) / np.sum(p), np.array([q]) / np.sum(q)
    for name, distance in DISTANCES.items():
        found = distance(p, q)
        assert np.array_equal(found, distance(q, p))
        constant = min(np.ptp(p), np.ptp(q)) < 1e-7  # scipy: 0 / 0 or rounding; ours is stated to be 1 there
        if not (name == "correlation" and constant):
            expected = getattr(scipy.spatial.distance, name)(p[0], q[0])
            assert found[0] == pytest.approx(expected, rel=1e-9, abs=1e-9)


def test_distances_of_rows_without_spread_are_numbers():
    one_hot, uniform, tilted = np.eye(5)[:1], np.full((1, 5), 0.2), np.array([[0.5, 0.2, 0.1, 0.1, 0.1]])
    for name, distance in DISTANCES.items():
        for p in (one_hot, tilted, uniform):
            for q in (one_hot, tilted, uniform, np.eye(5)[1:2]):
                assert np.isfinite(distance(p, q)).all()
        assert distance(one_hot, one_hot)[0] == 0.0
        assert distance(tilted, tilted)[0] == 0.0
        assert distance(uniform, uniform)[0] == (1.0 if name == "correlation" else 0.0)
    assert DISTANCES["correlation"](uniform, tilted)[0] == 1.0
    assert len(DISTANCES) == 8


def test_link_stealing_scores_are_negated_distances_of_posteriors(graph, model, forget):
    found = attack("link_stealing", model, graph, forget)
    posterior = torch.softmax(predict(model, remove_edges(graph, forget)).double(), 1).numpy()
    expected = [-scipy.spatial.distance.cosine(posterior[u], posterior[v]) for u, v in found.targets.T]
    np.testing.assert_allclose(found.scores, expected, atol=1e-12)
    for name in DISTANCES:
        other = attack("link_stealing", model, graph, forget, distance=name)
        assert found.extras[f"auc_{name}"] == pytest.approx(other.auc, abs=1e-12)
        assert found.extras[f"folded_auc_{name}"] == pytest.approx(other.folded_auc, abs=1e-12)


def test_published_link_stealing_draws_by_a_fixed_seed_and_folds(graph, model, forget):
    first, second = (attack("link_stealing", model, graph, forget, seed=s, preset="published") for s in (0, 8))
    assert np.array_equal(first.targets, second.targets)
    assert (~first.labels).sum() == int(0.2 * undirected_edges(graph).shape[1])
    assert first.headline == first.folded_auc


def planted(homophily: float) -> Data:
    """200 nodes of two kinds; features tell the kind; four neighbours each, of the same kind with this chance."""
    generator = np.random.default_rng(0)
    y = np.repeat([0, 1], 100)
    rows = np.repeat(np.arange(200), 4)
    same = generator.random(800) < homophily
    columns = generator.integers(0, 100, 800) + 100 * np.where(same, y[rows], 1 - y[rows])
    kept = rows != columns
    x = torch.from_numpy(generator.normal(size=(200, 5)) * 0.3).float()
    x[:, 0] += torch.from_numpy(2.0 * y - 1.0)
    edges = torch.from_numpy(np.stack([rows[kept], columns[kept]]))
    return canonical(Data(x=x, y=torch.from_numpy(y), edge_index=edges))


def test_link_stealing_grows_with_planted_homophily():
    """Posteriors that depend on the node's kind alone: the attack then measures homophily."""
    areas = []
    for homophily in (0.1, 0.5, 0.9):
        data = planted(homophily)
        kind = build(data, "sgc", layers=1)
        with torch.no_grad():
            kind.head.weight.zero_()
            kind.head.bias.zero_()
            kind.head.weight[:, 0] = torch.tensor([-1.0, 1.0])
        areas.append(attack("link_stealing", kind, data, forget_set(data, "random", 0.3)).auc)
    assert areas[0] < areas[1] < areas[2]
    assert areas[0] < 0.5 < areas[2]


@pytest.mark.skipif(not os.environ.get("LETHE_DATA"), reason="needs the real graphs: set LETHE_DATA")
def test_link_stealing_on_cora_with_its_edges_is_where_an_independent_implementation_found_it():
    """All edges of Cora against as many non-edges; GCN with 16 units, 200 epochs, on the public split."""
    raw = load_graph("cora")
    x = raw.x.to_dense()
    graph = canonical(Data(x=x / x.sum(1, keepdim=True), y=raw.y, edge_index=raw.edge_index), name="cora")
    public = Split(torch.arange(140), torch.arange(140, 640), torch.arange(1708, 2708))
    model = train(graph, "gcn", split=public, hidden=16, epochs=200, patience=200, always_restore=False)
    found = attack("link_stealing", model, graph, undirected_edges(graph), query="original").extras
    expected = {"cosine": 0.919, "euclidean": 0.890, "correlation": 0.928, "chebyshev": 0.877, "braycurtis": 0.896}
    expected |= {"canberra": 0.704, "cityblock": 0.896}
    assert {name: found[f"auc_{name}"] for name in expected} == pytest.approx(expected, abs=0.02)


# --- E-UMIA ---


def test_e_umia_population_and_score(graph, model, forget):
    found = attack("e_umia", model, graph, forget[:, :3])
    split = model.training_run.split
    near = set(affected_nodes(graph, forget[:, :3], model.depth).tolist())
    assert set(found.targets[found.labels].tolist()) == near & set(split.train.tolist())
    assert found.targets[~found.labels].tolist() == split.test.tolist()
    logits = predict(model, remove_edges(graph, forget[:, :3])).double()
    loss = cross_entropy(logits, graph.y, reduction="none").numpy()
    np.testing.assert_allclose(found.scores, -loss[found.targets], rtol=1e-12)
    assert found.headline == found.auc
    assert 0.0 <= found.accuracy <= 1.0
    closer = attack("e_umia", model, graph, forget[:, :3], hops=0)
    assert set(closer.targets[closer.labels].tolist()) == set(forget[:, :3].unique().tolist()) & set(
        split.train.tolist()
    )


def test_published_e_umia_cuts_groups_by_id_and_reports_accuracy(graph, model, forget):
    found = attack("e_umia", model, graph, forget, preset="published")
    split = model.training_run.split
    near = affected_nodes(graph, forget, model.depth)
    members = near[~torch.isin(near, split.test)]
    size = min(len(members), len(split.test))
    assert len(members) > len(split.test) == size
    assert found.targets[found.labels].tolist() == members[:size].tolist()
    assert found.targets[~found.labels].tolist() == split.test[:size].tolist()
    assert found.headline == found.accuracy
    repeated = attack("e_umia", model, graph, forget, preset="published", seed=1)
    assert np.array_equal(repeated.scores, found.scores)


def test_e_umia_accuracy_of_a_perfectly_separated_loss():
    from lethe_lib.attacks.e_umia import _cross_fitted_accuracy, shuffled_accuracy

    loss, labels = np.repeat([0.01, 6.0], 30)[:, None], np.repeat([True, False], 30)
    assert LogisticRegression().fit(loss, labels).score(loss, labels) == 1.0
    assert shuffled_accuracy(loss, labels, 0) == {"accuracy": 1.0}
    assert _cross_fitted_accuracy(loss, labels, 0) == {"accuracy": 1.0}
    same = np.zeros((60, 1))
    assert _cross_fitted_accuracy(same, labels, 0)["accuracy"] == 0.5
    assert _cross_fitted_accuracy(loss[29:], labels[29:], 0) == {}


def test_e_umia_needs_trained_nodes_nearby(graph, model):
    test = set(model.training_run.split.test.tolist()) | set(model.training_run.split.val.tolist())
    edges = undirected_edges(graph)
    outside = [k for k, (u, v) in enumerate(edges.T.tolist()) if u in test and v in test]
    assert outside
    with pytest.raises(InputError, match="0 and"):
        attack("e_umia", model, graph, edges[:, outside[:1]], hops=0)
