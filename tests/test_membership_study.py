"""The membership study: records, counts of every node, their posteriors, and the control that knows nothing."""

import json

import numpy as np
import pandas as pd
import pytest

from lethe_lib import paths
from lethe_lib.attacks import likelihood_ratio_test
from lethe_lib.bmp import audit
from lethe_lib.errors import InputError
from lethe_lib.shadow import ShadowTraining, train_shadows
from lethe_lib.study import RecordStore, membership, publish, run
from lethe_lib.study.membership import (
    COUNTS,
    RELEASES,
    MembershipConfiguration,
    attack_figures,
    load_membership,
    settings_frame,
)
from lethe_lib.study.records import configuration, load_records

SMALL = MembershipConfiguration("synthetic-tiny", models=30, epochs=40)


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    store = RecordStore(tmp_path_factory.mktemp("records") / "membership")
    for config in (SMALL, MembershipConfiguration("synthetic-tiny", models=30, epochs=0)):
        assert run(config, store)["status"] == "ok"
    return store


def test_a_record_holds_the_errors_of_the_attack_on_its_shadow_models(store):
    from lethe_lib.data import load_graph

    shadows = train_shadows(
        load_graph("synthetic-tiny"), models=30, releases=RELEASES, training=ShadowTraining(epochs=40)
    )
    arrays = store.arrays(SMALL.key)
    for number, release in enumerate(RELEASES):
        counts = likelihood_ratio_test(shadows.confidence.values[:, number].astype(float), shadows.member.values)
        np.testing.assert_array_equal(arrays[release.label], np.stack(counts.arrays))


def test_an_untrained_model_knows_nothing_of_its_sample_unless_the_query_graph_tells(store):
    control = MembershipConfiguration("synthetic-tiny", models=30, epochs=0)
    metrics = store.read(control.key)["metrics"]
    pairs = 30 * 120 / 2
    for release in ("full", "none"):
        assert abs(metrics[f"{release}: auc"] - 0.5) < 4 / np.sqrt(12 * pairs / 15)
    assert store.read(SMALL.key)["metrics"]["full: auc"] > metrics["full: auc"] + 0.05


def test_publishing_writes_counts_and_their_posteriors(store, tmp_path, monkeypatch):
    monkeypatch.setattr(paths, "results", lambda: tmp_path)
    configs = [SMALL, MembershipConfiguration("synthetic-tiny", models=30, epochs=0)]
    files = publish("membership", configs, store)
    assert [file.name for file in files] == [
        "membership.parquet", "membership_nodes.parquet", "membership_posteriors.parquet", "membership_positions.parquet",
    ]  # fmt: skip
    nodes, posteriors, positions = (pd.read_parquet(file) for file in files[1:])
    assert positions["node"].tolist() == list(range(120))
    assert len(nodes) == 120 * (len(RELEASES) + 3)  # noisy releases of the trained GCN alone
    assert nodes.loc[nodes["n_in"] > 0, ["n_in", "n_out"]].sum(axis=1).eq(30).all()
    row = posteriors.iloc[len(posteriors) // 2]
    expected = audit(*(int(row[name]) for name in COUNTS), 0.5)
    assert row["eps_right 5%"] == pytest.approx(expected.quantile(0.05, "ratio")[0, 1], abs=1e-5)
    assert row["corner_left 50%"] == pytest.approx(expected.corner_quantile(0.5, "ratio")[0, 0], abs=1e-5)
    settings = settings_frame(load_records("membership"))
    assert len(settings) == 2 * len(RELEASES)
    trained = settings[(settings["epochs"] == 40) & (settings["release"] == "full")].iloc[0]
    assert trained["auc"] == store.read(SMALL.key)["metrics"]["full: auc"]


def test_a_published_row_gives_back_its_configuration(store):
    record = store.read(SMALL.key)
    assert configuration(record["kind"], json.loads(json.dumps(record["config"]))) == SMALL


def test_positions_by_hand():
    from lethe_lib.data import load_graph

    data = load_graph("synthetic-tiny")
    positions = membership.positions_frame(["synthetic-tiny"])
    node = int(positions["degree"].idxmax())
    neighbours = data.edge_index[1][data.edge_index[0] == node]
    assert positions["degree"][node] == len(neighbours)
    assert positions["homophily"][node] == pytest.approx(float((data.y[neighbours] == data.y[node]).double().mean()))
    assert positions["homophily"][positions["degree"] == 0].isna().all()


def test_the_study_covers_what_it_says():
    configs = membership.membership()
    every = {(name, r) for name in membership.GRAPHS for r in (0.1, 0.5)}
    for sampler in ("uniform", "snowball"):
        for epochs in (200, 0):
            cell = [c for c in configs if (c.sampler, c.epochs, c.edges) == (sampler, epochs, "")]
            assert {(c.data, c.ratio) for c in cell if c.backbone == "gcn"} == every
            others = {(c.backbone, c.data, c.ratio) for c in cell if c.backbone != "gcn"}
            assert others == {(name, "cora", r) for name in ("sage", "gat") for r in (0.1, 0.5)}
    induced = {(c.data, c.backbone, c.sampler) for c in configs if c.edges}
    assert induced == {("cora", "gcn", "snowball")}
    assert all(config.models >= 200 for config in configs)
    assert len({config.key for config in configs}) == len(configs) == 52


def test_too_few_models_and_missing_results_are_named(tmp_path, monkeypatch):
    with pytest.raises(InputError, match="more models"):
        few = np.arange(8)[:, None] == np.zeros(3)  # every node in one model alone
        noise = np.random.default_rng(0).normal(size=few.shape)
        attack_figures(noise, few, likelihood_ratio_test(noise, few))
    monkeypatch.setattr(paths, "results", lambda: tmp_path)
    with pytest.raises(InputError, match="run membership"):
        load_membership()


def test_figures_of_a_perfect_and_of_a_blind_attack():
    generator = np.random.default_rng(0)
    member = generator.random((60, 40)) < 0.5
    noise = generator.normal(size=member.shape)
    perfect = attack_figures(noise + 50 * member, member, likelihood_ratio_test(noise + 50 * member, member))
    assert perfect["auc"] == 1 and perfect["tpr at 1% fpr"] == 1 and perfect["balanced accuracy"] > 0.9
    blind = attack_figures(noise, member, likelihood_ratio_test(noise, member))
    assert abs(blind["auc"] - 0.5) < 0.06 and abs(blind["balanced accuracy"] - 0.5) < 0.05
