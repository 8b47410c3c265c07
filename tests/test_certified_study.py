"""Records of certificates: their metrics, the study over request sizes, and what chapters 11 and 12 read from both."""

import json
import math

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
import torch

from lethe_lib.errors import InputError
from lethe_lib.models import train
from lethe_lib.reporting import claims_certified_family, claims_structural_family, native_family
from lethe_lib.structure import forget_set
from lethe_lib.study import certified_requests as study
from lethe_lib.study.configuration import UnlearningConfiguration, certificate_metrics
from lethe_lib.study.records import KINDS, TABLES_BESIDE
from lethe_lib.study.runner import run
from lethe_lib.study.store import RecordStore
from lethe_lib.study.studies import PUBLISHED_EDGES, STUDIES, gnn_delete_collapse, graph_native, written_out
from lethe_lib.study.trained import graph
from lethe_lib.unlearning import unlearn
from lethe_lib.unlearning.accountant import Certificate, noise_factor

GRAPH = "synthetic-tiny"


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


# Certificates in the metrics of a run


def test_a_certificate_becomes_metrics_and_its_absence_none():
    assert certificate_metrics(None) == {}
    found = certificate_metrics(Certificate("valid", 1.0, 1e-4, residual=2e-3, bound=5e-3, noise=0.1))
    assert found["certificate_given"] == 1.0 and found["certificate_bound"] == 5e-3
    assert found["certificate_retrainings"] == 0.0 and found["certificate_epsilon"] == 1.0
    refused = certificate_metrics(Certificate("not_applicable", residual=0.1, reason="no noise"))
    assert refused["certificate_given"] == 0.0 and math.isnan(refused["certificate_epsilon"])
    retrained = certificate_metrics(Certificate("budget_exhausted_retrained", 1.0, 1e-4, retrainings=3, reason="spent"))
    assert retrained["certificate_given"] == 1.0 and retrained["certificate_retrainings"] == 3.0


@pytest.mark.parametrize(("method", "has"), [("cgu", True), ("ceu", True), ("utu", False), ("gnn_delete", False)])
def test_records_hold_a_certificate_where_the_method_has_one(method, has):
    config = UnlearningConfiguration(GRAPH, backbone="sgc", method=method, attacks=(), training=(("epochs", 30),))
    metrics = run(config)["metrics"]
    assert ("certificate_residual" in metrics) == has
    assert not any(name.startswith("certificate_") for name in metrics) or has


def test_keys_of_older_records_have_not_changed():
    fields = list(UnlearningConfiguration.__dataclass_fields__)
    assert fields[3:] == [
        "backbone", "method", "forget", "fraction", "hops", "method_seed", "attacks", "training", "settings",
    ]  # fmt: skip


# The study over request sizes


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    store = RecordStore(tmp_path_factory.mktemp("requests"))
    configs = [
        study.CertifiedRequestConfiguration(
            GRAPH, method=method, noise=study.NOISE[method], noises=(study.NOISE[method],), stream=stream
        )
        for method, stream in (("ceu", 0), ("idea", 0), ("cgu", 2), ("scalegun", 0))
    ]
    for config in configs:
        record = run(config, store)
        assert record["status"] == "ok", record["reason"]
    return configs, store


def test_request_sizes_are_counts_and_shares():
    data = graph(GRAPH)
    edges = data.edge_index.shape[1] // 2
    most = round(0.05 * edges)
    sizes = study.request_sizes(data, (1, 10, 0.01, 0.05, 10_000), most)
    assert sizes == sorted(set(sizes)) and sizes[0] == 1 and sizes[-1] == most
    assert round(0.01 * edges) in sizes and 10 in sizes


def test_the_order_of_requests_depends_on_the_seed_alone():
    pairs = forget_set(graph(GRAPH), "random", 0.05, 0)
    first, again, other = (study.in_random_order(pairs, seed) for seed in (0, 0, 1))
    assert torch.equal(first, again) and not torch.equal(first, other)
    assert torch.equal(torch.sort(first[0] * 10_000 + first[1]).values, torch.sort(pairs[0] * 10_000 + pairs[1]).values)


def test_bounds_with_a_proof_are_kept_and_tables_have_every_request(stored):
    tables = study.frames(*stored)
    steps = tables["steps"]
    assert set(steps["method"]) == {"ceu", "idea", "cgu", "scalegun"} and len(tables["noise"]) == 4
    proved = steps[steps["new_hessian"] & (steps["method"] != "idea")]
    assert (proved["residual"] <= proved["bound"] + 1e-10).all() and len(proved) >= 9
    assert np.allclose(proved["needed_noise"], noise_factor(1e-4) * proved["bound"])
    assert steps.loc[steps["method"] == "idea", "bound"].isna().all()
    assert (~steps.loc[steps["method"] == "ceu", "new_hessian"]).sum() * 2 == (steps["method"] == "ceu").sum()
    single = steps[steps["single"]]
    assert set(single["method"]) == {"cgu"} and set(single["edges"]) == {1}
    assert (steps["gold_seconds"] > 0).all() and (steps["accuracy"] > 0.3).all()


def test_one_request_is_what_the_method_does_with_it(stored):
    """A row of CGU is its step under a budget that nothing exhausts."""
    data, pairs = graph(GRAPH), forget_set(graph(GRAPH), "random", 0.05, 0)
    pairs = study.in_random_order(pairs, 0)
    result = unlearn("cgu", train(data, "sgc"), data, pairs, 0, noise=0.1, epsilon=1e9, tolerance=1e-14)
    steps = study.frames(*stored)["steps"]
    row = steps[(steps["method"] == "cgu") & (steps["edges"] == pairs.shape[1])].iloc[0]
    assert row["bound"] == pytest.approx(result.steps.certificate.bound, rel=1e-6)
    assert row["residual"] == pytest.approx(result.steps.certificate.residual, rel=1e-3, abs=1e-9)


def test_only_certified_methods_can_be_asked_and_only_heads_stream():
    with pytest.raises(InputError, match="no certified method"):
        study.CertifiedRequestConfiguration(GRAPH, method="utu").measure(None, "cpu")
    for method, reason in (("ceu", "lethe_lib.unlearning.stream"), ("idea", "several requests")):
        with pytest.raises(InputError, match="stream=3") as refused:
            study.CertifiedRequestConfiguration(GRAPH, method=method, noise=1e-4, stream=3).measure(None, "cpu")
        assert reason in str(refused.value)


def test_training_with_noise_is_not_counted_as_unlearning():
    data = graph(GRAPH)
    model = train(data, "sgc", epochs=30)
    pairs = forget_set(data, "random", 0.02, 0)
    assert unlearn("ceu", model, data, pairs, noise=1e-4).steps.original_seconds > 0
    assert unlearn("ceu", model, data, pairs).steps.original_seconds == 0


# The lists of runs


def test_studies_are_registered_with_their_kinds():
    assert {"graph_native", "gnn_delete_collapse", "certified_requests"} <= set(STUDIES)
    assert KINDS["CertifiedRequestConfiguration"] in TABLES_BESIDE
    for name in ("graph_native", "gnn_delete_collapse", "certified_requests"):
        keys = [config.key for config in STUDIES[name]()]
        assert len(set(keys)) == len(keys) > 0


def test_graph_native_settings_are_written_out_and_heads_of_the_benchmark_are_cut_short():
    configs = graph_native(["cora"])
    heads = [c for c in configs if c.preset == "published" and c.method in PUBLISHED_EDGES]
    assert {c.method for c in heads} == set(PUBLISHED_EDGES) and len(heads) == 2
    assert all(dict(c.settings)[name] == 20 for c in heads for name in PUBLISHED_EDGES[c.method])
    methods = {(c.backbone, c.method) for c in configs if c.preset == "corrected"}
    assert {("sgc", "cgu"), ("sgc", "memoriser"), ("gcn", "gnn_delete"), ("gcn", "gold")} <= methods
    ceu = next(c for c in configs if c.method == "ceu" and c.preset == "corrected")
    assert ceu.settings == written_out("ceu", "corrected") != ()


def test_the_collapse_study_changes_start_and_epochs_alone():
    configs = [c for c in gnn_delete_collapse(["photo"]) if c.method == "gnn_delete"]
    for config in configs:
        changed = {
            name for name, value in written_out("gnn_delete", config.preset) if dict(config.settings)[name] != value
        }
        assert changed <= {"start", "epochs"}
    assert {dict(c.settings)["start"] for c in configs} == {"ones", "identity"}


# What the chapters read


def planted_steps():
    rows = [
        {
            "data": "cora", "seed": seed, "method": method, "ridge": np.nan, "edges": edges, "single": False,
            "new_hessian": True, "seconds": 0.1 * edges, "residual": 1e-3 * edges, "bound": 2e-3 * edges,
            "needed_noise": 8e-3 * edges, "accuracy": 0.8, "gold_seconds": 1.0, "retraining_seconds": 5.0,
            "own_seconds": 5.0, "noise": 0.02, "budget": 0.01, "training_nodes": 100,
        }
        for seed in (0, 1)
        for method in ("ceu", "cgu", "scalegun")
        for edges in (1, 10)
    ]  # fmt: skip
    return pd.DataFrame(rows)


@pytest.fixture
def tables(monkeypatch):
    noise = pd.DataFrame(
        [
            {"data": "cora", "seed": 0, "method": m, "ridge": np.nan, "noise": n, "accuracy": a}
            for m in ("ceu", "cgu", "scalegun", "idea")
            for n, a in ((0.01, 0.8), (0.1, 0.79), (1.0, 0.5))
        ]
    )
    runs = [
        {
            "data": "cora", "method": "cgu", "status": "ok", "own_accuracy": a, "original_accuracy": 0.9,
            "config_json": json.dumps({"settings": settings}),
        }
        for settings, a in (([], 0.8), ([], 0.9), ([["ridge", 1e-2]], 0.6))
    ]  # fmt: skip
    held = {
        "certified_requests_steps": planted_steps(),
        "certified_requests_noise": noise,
        "certified_requests": pd.DataFrame(runs),
    }
    monkeypatch.setattr(native_family, "load_records", lambda name, where="published": held[name])
    return held


def test_request_steps_count_a_retraining_where_the_budget_is_gone(tables):
    steps = native_family.request_steps()
    small, large = (steps[steps["edges"] == n].iloc[0] for n in (1, 10))
    assert not small["exhausted"] and small["ratio"] == pytest.approx(0.1)
    assert large["exhausted"] and large["ratio"] == pytest.approx(1.0 + 5.0)
    assert large["bound_budgets"] == pytest.approx(2.0)
    needed = native_family.needed_noise_table(steps).set_index("method")
    assert needed.loc["CGU", "borne"] == 0.1 and needed.loc["CGU", "largest request"] == "1 of 10"
    assert needed.loc["CGU", "needed, 5 %"] == pytest.approx(8e-2)


def test_a_request_is_carried_when_every_seed_carries_it(tables):
    """The second seed needs more noise and has a larger bound: it decides, and it is the one that trains again."""
    steps = tables["certified_requests_steps"]
    worse = (steps["seed"] == 1) & (steps["edges"] == 1)
    steps.loc[worse, ["needed_noise", "bound"]] = [0.032, 0.02]
    steps = native_family.request_steps()
    needed = native_family.needed_noise_table(steps).set_index("method")
    assert needed.loc["CGU", "largest request"] == "none"
    assert needed.loc["CGU", "needed, 1 edge"] == pytest.approx(0.016)  # geometric mean of 0.008 and 0.032
    tables["certified_requests"] = tables["certified_requests"].head(2)  # one ridge
    assert native_family.ridge_table(steps)["carried, %"].tolist() == [0.0]
    crosses = [line for line in native_family.time_figure(steps).axes[0].lines if line.get_marker() == "x"]
    assert [line.get_xdata().tolist() for line in crosses] == [[1, 10]] * 3


def test_the_ridge_table_pairs_accuracy_with_budget(tables):
    weak = tables["certified_requests_steps"]
    strong = weak[weak["method"] == "cgu"].assign(ridge=1e-2, bound=1e-3)
    tables["certified_requests_steps"] = pd.concat([weak, strong], ignore_index=True)
    table = native_family.ridge_table(native_family.request_steps()).set_index("ridge")
    assert table.loc[1e-4, "head, %"] == pytest.approx(85.0) and table.loc[1e-2, "head, %"] == pytest.approx(60.0)
    assert table.loc[1e-4, "5 %, budgets"] == pytest.approx(2.0) and table.loc[1e-4, "carried, %"] == pytest.approx(
        10.0
    )
    assert table.loc[1e-2, "5 %, budgets"] == pytest.approx(0.1) and table.loc[1e-2, "carried, %"] == 100.0


def test_figures_of_certificates_draw_what_is_there(tables):
    steps = native_family.request_steps()
    assert len(native_family.bound_figure(steps).axes) == 1
    assert len(native_family.time_figure(steps).axes) == 1
    assert len(native_family.noise_figure(steps[steps["method"] != "idea"].pipe(with_idea)).axes) == 4
    three = pd.concat([steps.assign(data=name) for name in ("photo", "dblp", "cora")])
    assert [ax.get_title() for ax in native_family.bound_figure(three).axes] == ["Photo", "DBLP", "Cora"]


def test_the_table_beside_gold_keeps_the_counts_of_attacks(monkeypatch):
    row = {
        "method": "UtU", "preset": "corrected", "accuracy, points": "-0.2", "worst cell": "-1.0 (Cora, low)", "seeds": "±0.1",
        "collapsed": "0 of 3", "time, % of Gold": "1.0", "LinkTeller above/below": "0/0 of 1",
        "Link Stealing above/below": "0/1 of 1", "E-UMIA above/below": "1/0 of 1",
    }  # fmt: skip
    monkeypatch.setattr(native_family, "outcomes", lambda methods, study, backbone: pd.DataFrame([row]))
    shown = native_family.beside_gold(("utu",), "sgc").iloc[0]
    assert len(shown) == 9 and shown[["LinkTeller", "Link Stealing", "E-UMIA"]].tolist() == ["0/0", "0/1", "1/0"]
    assert shown["cells"] == "1"


def with_idea(steps):
    return pd.concat([steps, steps[steps["method"] == "cgu"].assign(method="idea", line="IDEA")], ignore_index=True)


def collapse_rows(accuracy):
    rows = []
    for data in ("photo", "computers"):
        for seed in (0, 1, 2):
            cell = {"data": data, "preset": "published", "seed": seed, "status": "ok"}
            rows.append({**cell, "method": "utu", "accuracy_test": 0.9, "config_json": json.dumps({"settings": []})})
            for start, epochs in (("ones", 10), ("identity", 10)):
                settings = {**dict(written_out("gnn_delete", "published")), "start": start, "epochs": epochs}
                value = accuracy if start == "ones" else 0.85
                rows.append(
                    {
                        **cell,
                        "method": "gnn_delete",
                        "accuracy_test": value + 0.01 * seed,
                        "status": "collapsed" if value < 0.8 else "ok",
                        "config_json": json.dumps({"settings": list(settings.items())}),
                    }
                )
    return pd.DataFrame(rows)


@pytest.mark.parametrize(("accuracy", "verdict"), [(0.35, "holds"), (0.85, "fails")])
def test_the_claim_of_collapse_reads_the_runs_with_the_settings_of_the_preset(monkeypatch, accuracy, verdict):
    monkeypatch.setattr(native_family, "load_records", lambda name, where="published": collapse_rows(accuracy))
    finding = claims_structural_family.check_collapse()
    assert finding.verdict == verdict and finding.effect == pytest.approx(accuracy + 0.01 - 0.9)
    assert ("within what" if accuracy == 0.35 else "outside what") in finding.detail
    assert f"published {verdict}" in finding.detail and "corrected" not in finding.detail.split(".")[0]
    both = native_family.collapse_records()
    assert claims_structural_family.collapse_verdict(both[:0].assign(status=[])) == "inconclusive"
    records = native_family.collapse_records()
    assert len(native_family.collapse_figure(records).axes) == 4 and len(native_family.collapse_table(records)) == 2


def gap_table(gap, half):
    rows = [{"preset": "published", "data": d, "gap": gap, "low": gap - half, "high": gap + half} for d in "ab"]
    return pd.DataFrame(rows)


@pytest.mark.parametrize(
    ("gap", "half", "verdict"),
    [(0.03, 0.01, "holds"), (0.03, 0.05, "inconclusive"), (0.1, 0.01, "fails"), (-0.02, 0.01, "fails")],
)
def test_the_price_of_the_linear_backbone(gap, half, verdict):
    assert claims_certified_family.gap_verdict(gap_table(gap, half)) == verdict


def test_the_graphs_of_the_source_decide_on_the_price_of_the_linear_backbone(monkeypatch):
    rows = gap_table(0.03, 0.01).assign(data=["photo", "computers"])
    far = gap_table(0.4, 0.01).assign(data=["cora", "pubmed"])
    monkeypatch.setattr(claims_certified_family, "backbone_gap", lambda: pd.concat([rows, far], ignore_index=True))
    finding = claims_certified_family.check_backbone_gap()
    assert finding.verdict == "holds" and finding.effect == 0.03
    assert "published: fails" in finding.detail and "Photo and Computers decide" in finding.detail


@pytest.mark.parametrize(("gold", "verdict"), [(1.0, "holds"), (100.0, "fails")])
def test_the_cost_of_certified_updates(monkeypatch, tables, gold, verdict):
    steps = planted_steps()
    idea = steps[steps["method"] == "cgu"].assign(method="idea", seconds=30.0, bound=np.nan, budget=np.nan)
    steps = pd.concat([steps, idea], ignore_index=True).assign(gold_seconds=gold)
    steps = pd.concat([steps, steps.assign(data="dblp", seconds=1.05 * steps["seconds"])], ignore_index=True)
    steps["gold_seconds"] *= 1 + 0.01 * steps["seed"]
    tables["certified_requests_steps"] = steps
    shares = {"ceu": (0.7, 0.8), "idea": (1.4, 1.5), "cgu": (170.0,)}
    records = pd.DataFrame(
        [
            {"backbone": "sgc", "preset": "published", "method": m, "share": s, "data": data}
            for m, values in shares.items()
            for s, data in zip(values, ("cora", "dblp"))
        ]
    )
    monkeypatch.setattr(claims_certified_family, "family_records", lambda *args, **kwargs: records)
    finding = claims_certified_family.check_dearer_than_gold()
    assert finding.verdict == verdict and finding.interval[0] < finding.effect < finding.interval[1]
    assert f"corrected: {verdict}" in finding.detail and "published: fails" not in finding.detail  # 0.7 and 0.8 are few
    assert "published: inconclusive" in finding.detail and "CGU 170 (one graph)" in finding.detail
    published = claims_certified_family.published_ratios()
    assert claims_certified_family.dearer_verdict(published.assign(high=0.9)) == "fails"
    every = pd.DataFrame({"low": [1.1] * 4, "high": [1.2] * 4})
    assert claims_certified_family.dearer_verdict(every) == "holds"
    assert claims_certified_family.dearer_verdict(every[:3]) == "inconclusive"
    ratios = claims_certified_family.time_ratios().set_index("method")
    assert ratios.loc["cgu", "ratio"] == pytest.approx(6.0 / gold, rel=0.02)  # a step of 1 s and a retraining of 5 s
    assert ratios["runs"].eq(2).all()
    one = claims_certified_family._over_graphs(pd.Series([1.0, 4.0, 8.0]), pd.Series(["a", "a", "b"]))
    assert one[0] == pytest.approx(4.0)  # of 2 and 8
    assert ratios.loc["idea", "ratio"] == pytest.approx(ratios.loc["idea", "alone"])
    assert len(native_family.seconds_table(native_family.request_steps())) == 8


@pytest.mark.parametrize(("given", "factor", "verdict"), [(0, 2.0, "holds"), (1, 2.0, "fails"), (0, 0.5, "fails")])
def test_the_scope_of_certificates(monkeypatch, tables, given, factor, verdict):
    tables["certified_requests_steps"]["bound"] = factor * tables["certified_requests_steps"]["residual"]
    records = pd.DataFrame(
        [
            {
                "backbone": "gcn", "method": m, "preset": preset, "certificate_given": given * (preset == "corrected"),
                "certificate_residual": 0.05,
            }
            for m in ("ceu", "idea")
            for preset in ("corrected", "published")
        ]
    )  # fmt: skip
    monkeypatch.setattr(claims_certified_family, "family_records", lambda *args, **kwargs: records)
    finding = claims_certified_family.check_linear_only()
    assert finding.verdict == verdict and f"Corrected: {verdict}" in finding.detail
    assert "published: inconclusive (0 certificates in 2 runs" in finding.detail
