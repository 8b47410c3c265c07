"""Summaries of priors, the study that publishes them, and the claims that read it."""

import argparse
import importlib
import json
import os
import shutil

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from sampling_graphs import kite
from sklearn.metrics import roc_auc_score

from lethe_lib.__main__ import main as command_line
from lethe_lib.data import adjacency, canonical, load_graph
from lethe_lib.errors import DataNotFound, InputError
from lethe_lib.reporting import claims_sampling_priors as claims
from lethe_lib.sampling import (
    SAMPLERS,
    decile_contrast,
    draw_counts,
    draw_memberships,
    inclusion_priors,
    log_odds_spread,
    priors_from_counts,
    sampled_prior_bounds,
    total_variation,
)
from lethe_lib.study import bench_samplers, sampling_priors, verify

needs_real_graphs = pytest.mark.skipif(not os.environ.get("LETHE_DATA"), reason="needs the real graphs: set LETHE_DATA")


@pytest.fixture(scope="module")
def published(tmp_path_factory):
    """A small run of the study on the generated graph, stored as if it were Cora."""
    folder = tmp_path_factory.mktemp("study")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sampling_priors, "load_graph", lambda name: load_graph("synthetic"))
        patch.setattr(sampling_priors, "CHALLENGES", 8)
        sampling_priors.study_graph(
            "cora", folder, 400, 3, 1, ("uniform", "degree_weighted", "snowball"), (0.1, 0.5), lambda text: None
        )
    return folder


def test_published_cells_are_recomputed_and_compared(published, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(sampling_priors, "load_graph", lambda name: load_graph("synthetic"))
    monkeypatch.setattr(sampling_priors, "CHALLENGES", 8)
    monkeypatch.setenv("LETHE_RESULTS", str(tmp_path))
    shutil.copytree(published, tmp_path / "sampling_priors")
    options = argparse.Namespace(study=["sampling_priors"], key=[], count=20, seed=0, tolerance=0.02)
    assert verify.main(options) == 0
    assert capsys.readouterr().out.count("largest difference 0") == 6
    path = tmp_path / "sampling_priors" / "cora" / "priors.parquet"
    table = pd.read_parquet(path)
    spoilt = (table["sampler"] == "snowball") & (table["ratio"] == 0.5) & (table["node"] == 7)
    table.loc[spoilt, "second_half"] += np.uint16(40)
    table.to_parquet(path)
    assert verify.main(options) == 1
    found = [line for line in capsys.readouterr().out.splitlines() if "DIFFERS" in line]
    assert len(found) == 1 and "cora snowball 0.5" in found[0] and "in second_half" in found[0]
    options.key = ["cora uniform 0.1"]
    assert verify.main(options) == 0


def test_total_variation_by_hand():
    assert total_variation(np.array([0.3, 0.1, 0.1, 0.1])) == pytest.approx(0.25)
    assert total_variation(np.full(7, 0.4)) == pytest.approx(0)


def test_spread_takes_monte_carlo_noise_away():
    counts = np.random.default_rng(0).binomial(500, 0.3, size=4000)
    equal = priors_from_counts(counts, 500)
    assert log_odds_spread(equal) < 0.3 * equal.log_odds.std()
    truth = np.random.default_rng(1).normal(-1, 0.5, size=4000)
    counts = np.random.default_rng(2).binomial(500, 1 / (1 + np.exp(-truth)))
    assert log_odds_spread(priors_from_counts(counts, 500)) == pytest.approx(0.5, rel=0.05)


def test_spread_of_exact_priors_leaves_degenerate_nodes_out():
    priors = inclusion_priors("degree_weighted", load_graph("synthetic-tiny"), 0.3)
    assert log_odds_spread(priors) == pytest.approx(priors.log_odds[np.isfinite(priors.log_odds)].std(ddof=1))
    assert log_odds_spread(inclusion_priors("uniform", kite(), 1.0)) == 0


def test_bounds_are_those_of_the_chosen_nodes_on_other_draws():
    right, left = sampled_prior_bounds(np.array([5, 90, 40]), np.array([10, 80, 40]), 100)
    assert (right.node, left.node) == (1, 0)
    assert right.value == pytest.approx(np.log(80.5 / 20.5)) and left.value == pytest.approx(np.log(90.5 / 10.5))
    for bound in (right, left):
        assert bound.interval[0] < bound.value < bound.interval[1]
    always, _ = sampled_prior_bounds(np.array([100, 3]), np.array([100, 3]), 100)
    assert always.interval[1] == np.inf and np.isfinite(always.interval[0])
    with pytest.raises(InputError, match="different nodes"):
        sampled_prior_bounds(np.array([1]), np.array([1, 2]), 10)


def test_bounds_of_equal_priors_are_not_inflated_by_noise():
    gaps, naive = [], []
    for seed in range(40):
        first, second = (draw_counts("uniform", load_graph("synthetic-tiny"), 0.3, 100, seed, first=f).counts
                         for f in (0, 100))  # fmt: skip
        right, left = sampled_prior_bounds(first, second, 100)
        gaps.append(right.value + left.value)
        odds = priors_from_counts(first, 100).log_odds
        naive.append(odds.max() - odds.min())
    assert abs(np.mean(gaps)) < 4 * np.std(gaps) / np.sqrt(len(gaps))
    assert np.mean(naive) > 0.5


def test_contrast_by_hand_and_its_error():
    memberships = np.zeros((4, 20), dtype=bool)
    memberships[:, 19] = True  # always in; its tenth is {18, 19}
    memberships[:2, 0] = True  # in half of the draws; its tenth is {0, 1}
    contrast = decile_contrast(np.arange(20), memberships)
    assert (contrast.top, contrast.bottom) == (0.5, 0.25)
    assert contrast.log_ratio == pytest.approx(np.log(2))
    # Influence of a draw: 1 - bottom / mean = -1 or 1, with standard deviation sqrt(4 / 3).
    assert contrast.standard_error == pytest.approx(np.sqrt(4 / 3) / 2)
    assert decile_contrast(np.arange(20), memberships & (np.arange(20) > 9)).log_ratio == np.inf


def test_contrast_of_a_uniform_sampler_is_zero_within_its_error():
    data, scores = load_graph("synthetic-tiny"), []
    for seed in range(100):
        chosen = draw_counts("uniform", data, 0.3, 50, seed).counts
        contrast = decile_contrast(chosen, draw_memberships("uniform", data, 0.3, 200, seed, first=50))
        scores.append(contrast.log_ratio / contrast.standard_error)
    assert abs(np.mean(scores)) < 0.4 and 0.8 < np.std(scores) < 1.25


def test_structure_of_the_kite_by_hand():
    structure = sampling_priors.structure_of(canonical(kite(), name="kite"))
    assert structure["degree"].tolist() == [2, 2, 3, 2, 1]
    assert structure["core"].tolist() == [2, 2, 2, 1, 1]
    assert structure["component"].tolist() == [5] * 5
    np.testing.assert_allclose(structure["neighbour_degree"], [2.5, 2.5, 2, 2, 2])


def test_cross_fitted_auc_is_one_half_without_signal_and_rises_with_it():
    generator = np.random.default_rng(0)
    features = generator.normal(size=(400, 3))
    nothing = [sampling_priors.cross_fitted_auc(features, generator.random(400) < 0.3, seed) for seed in range(40)]
    assert abs(np.mean(nothing) - 0.5) < 4 * np.std(nothing) / np.sqrt(40)
    member = features[:, 0] + 0.5 * generator.normal(size=400) > 0
    fitted = sampling_priors.cross_fitted_auc(features, member, 0)
    assert fitted == pytest.approx(roc_auc_score(member, features[:, 0]), abs=0.03) and fitted > 0.9
    assert sampling_priors.cross_fitted_auc(-features, member, 0) == pytest.approx(fitted)


def test_the_study_stores_counts_that_can_be_recomputed(published):
    table = sampling_priors.load_sampling_priors(published)
    data = load_graph("synthetic")
    cell = table[(table["sampler"] == "snowball") & (table["ratio"] == 0.1)]
    recomputed = inclusion_priors("snowball", data, 0.1, draws=400, seed=3)
    np.testing.assert_array_equal(cell["node"], np.arange(data.num_nodes))
    np.testing.assert_allclose(cell["prior"], recomputed.prior)
    np.testing.assert_allclose(cell["standard_error"], recomputed.standard_error)
    np.testing.assert_allclose([cell["lower"], cell["upper"]], recomputed.interval)
    assert cell["exact_prior"].isna().all()
    known = table[(table["sampler"] == "degree_weighted") & (table["ratio"] == 0.5)]
    np.testing.assert_allclose(
        known["exact_prior"], inclusion_priors("degree_weighted", data, 0.5).prior.astype(np.float32)
    )
    provenance = json.loads((published / "cora" / "provenance.json").read_text())
    assert provenance["data_hash"] == data.content_hash and provenance["settings"]["snowball"]["k"] == 3
    assert not list(published.glob("**/.*"))


def test_membership_can_be_told_from_structure_unless_the_sampler_ignores_it(published):
    mean = sampling_priors.load_table("distinguishability", published).groupby("sampler", observed=True)
    aucs = mean[["degree", "structure", "prior"]].mean()
    assert abs(aucs.loc["uniform"] - 0.5).max() < 0.04
    assert aucs.loc["degree_weighted"].min() > 0.6 and aucs.loc["snowball"].min() > 0.55


def test_missing_results_and_unknown_tables_are_named(tmp_path, published):
    with pytest.raises(DataNotFound, match="any graph"):
        sampling_priors.load_sampling_priors(tmp_path)
    with pytest.raises(DataNotFound, match="pubmed"):
        sampling_priors.load_table("draws", published, graphs=["cora", "pubmed"])
    with pytest.raises(InputError, match="unknown table"):
        sampling_priors.load_table("counts", published)


@pytest.mark.parametrize(
    ("options", "message"),
    [(["--only", "core"], "Did you mean 'cora'"), (["--draws", "1"], "--draws must lie between")],
)
def test_bad_options_are_refused_before_any_work(options, message):
    parser = argparse.ArgumentParser()
    sampling_priors.add_arguments(parser)
    with pytest.raises(InputError, match=message):
        sampling_priors.main(parser.parse_args(options))


@pytest.mark.parametrize("study", ["sampling_priors", "audit_calibration"])
def test_tables_of_simulations_are_published_only_when_asked(study, tmp_path, monkeypatch, capsys):
    calls = []
    module = importlib.import_module(f"lethe_lib.study.{study}")
    monkeypatch.setattr(module, "main", lambda options: calls.append(options) or 0)
    assert command_line(["run", study, "--only", "some", "--records", str(tmp_path)]) == 0
    assert calls[0].only == ["some"] and calls[0].out.relative_to(tmp_path / study).name in ("", f"{study}.parquet")
    assert f"writing to {calls[0].out}" in capsys.readouterr().out
    assert command_line(["run", study, "--publish"]) == 0
    assert calls[1].out is None and len(calls[1].only) > 1
    for options, named in (
        (["--preset", "corrected", "--workers", "2"], "--preset, --workers"),
        (["--device", "cpu"], "--device"),
        (["--publish", "--records", str(tmp_path)], "leave out --records"),
    ):
        assert command_line(["run", study, *options]) == 1
        assert named in capsys.readouterr().err
    assert len(calls) == 2


def as_published(monkeypatch, folder):
    for name in ("load_table", "load_sampling_priors"):
        original = getattr(sampling_priors, name)
        monkeypatch.setattr(claims, name, lambda *given, original=original: original(*given, where=folder))


def test_claims_are_decided_from_the_tables(published, monkeypatch):
    as_published(monkeypatch, published)
    findings = {claim.id: claim.check() for claim in claims.CLAIMS}
    assert list(findings) == ["B13", "B14", "O01"]
    for finding in findings.values():
        assert finding.interval[0] <= finding.effect <= finding.interval[1] and "Uniform" in finding.detail
    assert findings["B13"].verdict == "holds"
    assert findings["O01"].by_form == {"ratio": "fails", "odds": findings["O01"].verdict}


def test_a_uniform_sampler_would_fail_the_claims(published, monkeypatch):
    as_published(monkeypatch, published)
    monkeypatch.setattr(claims, "DECIDING", "uniform")
    assert {claim.id: claim.check().verdict for claim in claims.CLAIMS} == dict.fromkeys(["B13", "B14", "O01"], "fails")


def test_verdict_of_the_smallest_cell():
    cells = pd.DataFrame({"effect": [3.0, 2.0], "low": [2.5, 1.8], "high": [3.5, 2.2]})
    assert claims.smallest_cell(cells, 1.5)[0] == "holds" and claims.smallest_cell(cells, 1.5)[1]["effect"] == 2
    assert claims.smallest_cell(cells, 2.0)[0] == "inconclusive"
    assert claims.smallest_cell(cells, 2.3)[0] == "fails"


def test_the_plain_snowball_of_the_benchmark_has_the_same_law():
    import random

    data, target, draws = load_graph("synthetic-tiny"), 24, 4000
    settings = SAMPLERS["snowball"].settings(k=2, seeds_per_class=2)
    graph = nx.from_scipy_sparse_array(adjacency(data))
    classes = [np.flatnonzero(data.y.numpy() == label).tolist() for label in range(3)]
    generator, counts = random.Random(0), np.zeros(120)
    for _ in range(draws):
        counts[list(bench_samplers.plain_snowball(graph, classes, target, settings, generator))] += 1
    compiled = draw_counts("snowball", data, 0.2, draws, k=2, seeds_per_class=2).counts
    shared = (counts + compiled) / (2 * draws)
    scores = (counts - compiled) / np.sqrt(2 * draws * shared * (1 - shared))
    assert abs(np.sqrt(np.mean(scores**2)) - 1) < 0.25


def test_the_benchmark_measures_every_sampler_beside_the_plain_one():
    table = bench_samplers.sampler_speeds("synthetic-tiny", ratio=0.3, rounds=1, draws=10)
    assert table["sampler"].tolist() == [*SAMPLERS, bench_samplers.PLAIN]
    assert (table["draws_per_second"] > 0).all() and table["ratio"].iloc[-1] == 1


@needs_real_graphs
def test_published_counts_are_recomputed_exactly():
    table = sampling_priors.load_sampling_priors(graphs=["cora"])
    data = load_graph("cora")
    provenance = json.loads((sampling_priors.paths.results() / "sampling_priors/cora/provenance.json").read_text())
    assert provenance["data_hash"] == data.content_hash
    for sampler in ("snowball", "ego"):
        cell = table[(table["sampler"] == sampler) & (table["ratio"] == 0.1)]
        half = provenance["draws"] // 2
        first = draw_counts(sampler, data, 0.1, half, provenance["seed"])
        np.testing.assert_array_equal(cell["first_half"], first.counts)
