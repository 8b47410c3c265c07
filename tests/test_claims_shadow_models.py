"""What one node does to the others, the checks of B12 and B20 on made-up records, and the bench of shadow models."""

import networkx as nx
import numpy as np
import pandas as pd
import pytest
import torch

from lethe_lib.data import load_graph
from lethe_lib.errors import InputError
from lethe_lib.models import build
from lethe_lib.reporting import claims_shadow_models as claims
from lethe_lib.sampling import sample_nodes
from lethe_lib.seeding import numpy_generator
from lethe_lib.shadow import ShadowTraining, fit_shadow, training_graph
from lethe_lib.study import RecordStore, bench_shadow, one_node, publish, run
from lethe_lib.study.membership import COUNTS
from lethe_lib.study.one_node import OneNodeConfiguration, changes_without, moved_by_retraining, without_node

TINY = load_graph("synthetic-tiny")
CHECKS = {claim.id: claim.check for claim in claims.CLAIMS}


# One node


def test_isolating_a_node_does_to_the_others_what_deleting_it_does():
    sample = sample_nodes("uniform", TINY, 0.5, 0)
    graph, model = training_graph(TINY, sample), build(TINY, "gcn", 3, dropout=0.0).double()
    for position in (0, 17):
        others = np.arange(graph.num_nodes) != position
        deleted = training_graph(TINY, without_node(sample, position))
        with torch.no_grad():
            isolated = model(one_node.without_edges_of(graph, position))[others]
            torch.testing.assert_close(model(deleted), isolated, rtol=1e-12, atol=1e-12)


def test_what_changes_lies_in_the_ball_around_the_node():
    """A removed node changes its neighbours' degrees, so hidden rows change within two hops and logits within three."""
    sample = sample_nodes("uniform", TINY, 0.5, 1)
    graph, model = training_graph(TINY, sample), build(TINY, "gcn", 0, dropout=0.0)
    oracle = nx.Graph(graph.edge_index.T.tolist())
    oracle.add_nodes_from(range(graph.num_nodes))
    nodes = np.arange(0, graph.num_nodes, 4)
    found = changes_without(model, graph, nodes)
    for k, node in enumerate(nodes):
        balls = [len(nx.single_source_shortest_path_length(oracle, node, hops)) - 1 for hops in (2, 3)]
        assert found.hidden[k] == balls[0]
        assert found.outputs[k] == found.reached[k].sum() == balls[1]
        assert found.moved[k] <= found.outputs[k]
        assert not found.reached[k, node]
    assert found.outputs.max() > 10 > found.outputs.min()


def test_retraining_without_a_node_says_nothing_of_the_node_itself():
    sample = sample_nodes("uniform", TINY, 0.5, 0)
    how = {"backbone": "gcn", "training": ShadowTraining(epochs=0)}
    model = fit_shadow(training_graph(TINY, sample), seed=5, **how)
    moved = moved_by_retraining(TINY, sample, model, 4, 5, **how)
    at_fixed_weights = changes_without(model, training_graph(TINY, sample), [4])
    assert not moved[4] and moved.sum() == at_fixed_weights.moved[0]  # without training, removal is all there is


def test_the_study_publishes_what_the_claim_reads(tmp_path, monkeypatch):
    config = OneNodeConfiguration("synthetic-tiny", removed=10, retrained=2)
    store = RecordStore(tmp_path / "records")
    assert run(config, store)["status"] == "ok"
    assert run(config)["metrics"] == store.read(config.key)["metrics"]
    monkeypatch.setattr("lethe_lib.paths.results", lambda: tmp_path)
    publish("one_node", [config], store)
    table = claims.left_out(0.05)
    hidden = store.arrays(config.key)["hidden"]
    assert table["effect"].tolist() == [hidden.mean()]
    assert table["low"][0] < hidden.mean() < table["high"][0]
    assert CHECKS["B12"]().verdict in ("holds", "inconclusive", "fails")
    with pytest.raises(InputError, match="at most the size"):
        OneNodeConfiguration("synthetic-tiny", removed=121).measure(None, "cpu")


def left_out_records(hidden):
    rows = []
    for data, value in hidden.items():
        for ratio in (0.5, 1.0):
            rows.append(
                {
                    "data": data, "ratio": ratio, "removed": 100, "retrained": 10, "hidden_mean": value * ratio,
                    "hidden_error": 1.0, "moved_mean": 2.0, "retrained_share": 0.2, "other_seed_share": 0.4,
                }
            )  # fmt: skip
    return pd.DataFrame(rows)


@pytest.mark.parametrize(("smallest", "verdict"), [(15.0, "holds"), (5.0, "fails"), (11.0, "inconclusive")])
def test_many_others_change_on_every_whole_graph(monkeypatch, smallest, verdict):
    monkeypatch.setattr(claims, "load_records", lambda study: left_out_records({"a": smallest, "b": 100.0}))
    finding = CHECKS["B12"]()
    assert finding.verdict == verdict and finding.effect == smallest
    assert finding.interval[0] < smallest < finding.interval[1]


def test_a_graph_of_the_study_is_named_as_in_the_text(monkeypatch):
    monkeypatch.setattr(claims, "load_records", lambda study: left_out_records({"citeseer": 15.0, "b": 100.0}))
    assert "15.0 (CiteSeer) to 100" in CHECKS["B12"]().detail


# Accuracy and heterogeneity


def counts_of(true_positive_rates, n_in=100, n_out=100, false_positive_rate=0.1, seed=0):
    generator = numpy_generator(seed, "counts")
    nodes = len(true_positive_rates)
    false_negatives = generator.binomial(n_in, 1 - np.asarray(true_positive_rates))
    false_positives = generator.binomial(n_out, false_positive_rate, nodes)
    return np.stack([np.full(nodes, n_out), false_positives, np.full(nodes, n_in), false_negatives], axis=1)


def frame_of(counts, graph="a", sampler="uniform", epochs=200, release="full", backbone="gcn"):
    names = {"graph": graph, "backbone": backbone, "sampler": sampler, "edges": "", "ratio": 0.5, "epochs": epochs}
    return pd.DataFrame(counts, columns=COUNTS).assign(**names, release=release, node=np.arange(len(counts)))


ALIKE = np.full(4000, 0.4)
MIXED = np.where(np.arange(4000) % 3 == 0, 1.0, 0.1)  # the same mean
CONTROL = frame_of(counts_of(np.full(4000, 0.1), seed=9), epochs=0)


def test_advantage_and_its_noise_by_hand():
    value, noise = claims.advantages([[11, 2, 5, 1]])
    assert value[0] == pytest.approx(1 - 2 / 11 - 1 / 5)
    assert noise[0] == pytest.approx(2 / 11 * 9 / 11 / 10 + 1 / 5 * 4 / 5 / 4)
    assert claims.pooled_accuracy([[10, 1, 5, 1], [10, 3, 15, 5]]) == pytest.approx(1 - 0.5 * (4 / 20 + 6 / 20))


def test_binomial_noise_is_removed():
    assert claims.dispersion(counts_of(ALIKE)) == pytest.approx(1.0, abs=0.08)
    for first, second in ((2, 2), (5, 20), (0.5, 2), (0.2, 0.3)):  # wide, narrow, skewed, on both ends
        rates = numpy_generator(1, "rates").beta(first, second, 4000)
        for n_in in (20, 100):
            counts = counts_of(rates, n_in=n_in)
            assert claims.true_spread(counts) == pytest.approx(rates.std(), abs=0.01)
            assert claims.true_quantile(counts, 0.95) == pytest.approx(np.quantile(rates, 0.95) - 0.1, abs=0.04)
    assert claims.true_quantile(counts_of(ALIKE, n_in=20), 0.95) == pytest.approx(0.3, abs=0.03)


def test_the_noise_factor_comes_from_the_untrained_control():
    doubled = counts_of(0.1 + 0.05 * np.sign(np.arange(4000) % 2 - 0.5), seed=9)  # more spread than binomial
    frame = pd.concat([frame_of(counts_of(ALIKE)), frame_of(doubled, epochs=0)])
    factors = {setting.factor for setting in claims.settings_of(frame)}
    assert factors == {claims.dispersion(doubled)} and factors.pop() > 1.2
    with pytest.raises(InputError, match="untrained control"):
        claims.settings_of(frame_of(counts_of(ALIKE)))


def use_membership(monkeypatch, second, graphs=("a", "b")):
    """Two graphs with the same records: a setting whose nodes are alike, ``second``, and one of another accuracy."""
    records = pd.concat(
        [
            CONTROL,
            frame_of(counts_of(ALIKE)),
            frame_of(counts_of(second, seed=1), release="none"),
            frame_of(counts_of(np.full(4000, 0.9), seed=2), release="split"),
        ]
    )
    monkeypatch.setattr(claims, "load_records", lambda study: pd.DataFrame({"data": graphs}))
    monkeypatch.setattr(claims, "load_membership", lambda graph: records.assign(graph=graph))


@pytest.mark.parametrize(("second", "verdict", "gap"), [(MIXED, "holds", 0.6), (ALIKE, "fails", 0.0)])
def test_equal_accuracy_with_equal_and_unequal_nodes(monkeypatch, second, verdict, gap):
    use_membership(monkeypatch, second)
    finding = CHECKS["B20"]()
    assert finding.verdict == verdict
    assert finding.effect == pytest.approx(gap, abs=0.04)
    low, high = finding.interval
    assert low <= finding.effect <= high and high - low < 0.1
    table = claims.published_pairs()
    assert table["pairs"].tolist() == [1, 1]
    assert table["same_samples"].tolist() == table["effect"].tolist()  # sampler and ratio are the same here
    if gap:
        assert (table["upper"] == "gcn, uniform 0.5, none").all()
        assert table["dispersion_high"].min() > 5


def test_settings_of_unequal_accuracy_cannot_be_compared(monkeypatch):
    use_membership(monkeypatch, np.full(4000, 0.6))
    assert CHECKS["B20"]().verdict == "not testable here"


def test_pairs_can_be_kept_to_the_same_samples():
    other = [frame_of(counts_of(MIXED, seed=1), sampler="snowball"), CONTROL.assign(sampler="snowball")]
    settings = claims.settings_of(pd.concat([CONTROL, frame_of(counts_of(ALIKE)), *other]))
    assert claims.widest_pair(settings).gap > 0.5
    assert claims.widest_pair(settings, same_samples=True) is None


def test_nodes_with_few_runs_are_left_out():
    short = counts_of(MIXED)
    short[::2, 2] = 4
    settings = claims.settings_of(pd.concat([CONTROL, frame_of(short)]))
    trained = next(setting for setting in settings if setting.trained)
    assert trained.usable.sum() == 2000
    assert claims.widest_pair(settings) is None
    row = claims.spread_table([trained]).iloc[0]
    assert row["nodes"] == 2000 and row["dispersion"] > 5 and row["5 % point"] < row["mean"] < row["95 % point"]


# Speed


def test_the_bench_compares_the_same_training():
    errors = bench_shadow.agreement("synthetic-tiny")
    assert max(errors.values()) < 1e-4
