"""Verdicts of chapter 15 on constructed runs, where they can be read off."""

import numpy as np
import pandas as pd
import pytest

from lethe_lib.reporting import claims_edge_audit as claims


def runs(rows, half=0.02):
    """Runs from (graph, pool, method, auc, residual, accuracy, certified epsilon)."""
    names = ["data", "pool", "method", "auc", "residual", "accuracy_test", "certified_epsilon"]
    table = pd.DataFrame(rows, columns=names)
    table["low"], table["high"] = table["auc"] - half, table["auc"] + half
    table["residual_low"], table["residual_high"] = table["residual"] - 0.1, table["residual"] + 0.1
    table["backbone"], table["preset"], table["status"] = "gcn", "corrected", "ok"
    table["to_remove"] = table["residual"].notna()
    return table


def given(monkeypatch, rows):
    monkeypatch.setattr(claims, "plain_runs", lambda where="published": runs(rows))


NAN = float("nan")
CORA = [
    ("cora", "low", "utu", 0.70, 1.0, 0.90, NAN),
    ("cora", "high", "utu", 0.58, 1.0, 0.90, NAN),
    ("cora", "low", "memoriser", 1.0, 2.5, 0.90, NAN),
]


def test_memory_on_every_graph(monkeypatch):
    given(monkeypatch, CORA)
    assert claims.check_memory().verdict == "holds"
    given(monkeypatch, [*CORA, ("photo", "low", "utu", 0.50, NAN, 0.9, NAN)])
    assert claims.check_memory().verdict == "fails"
    given(
        monkeypatch,
        [*CORA, ("photo", "low", "utu", 0.50, NAN, 0.9, NAN), ("photo", "low", "memoriser", 0.6, NAN, 0.9, NAN)],
    )
    assert claims.check_memory().verdict == "inconclusive"  # there the audit is blind


def test_graphs_with_one_pool_do_not_enter_the_comparison_of_pools(monkeypatch):
    given(monkeypatch, [*CORA, ("dblp", "low", "utu", 0.64, 1.0, 0.9, NAN)])
    found = claims.check_centrality()
    assert found.verdict == "holds" and found.effect == pytest.approx(0.12)
    assert found.interval == pytest.approx((0.12 - 0.02 * np.sqrt(2), 0.12 + 0.02 * np.sqrt(2)))
    assert "(cora)" in found.detail
    given(monkeypatch, [("cora", "low", "utu", 0.58, 1.0, 0.9, NAN), ("cora", "high", "utu", 0.70, 1.0, 0.9, NAN)])
    assert claims.check_centrality().verdict == "fails"
    given(monkeypatch, [("cora", "low", "utu", 0.58, 1.0, 0.9, NAN)])
    assert claims.check_centrality().verdict == "not testable here"


def test_a_method_must_remove_half_in_every_setting_at_a_point_of_accuracy(monkeypatch):
    good = [("cora", pool, "fine_tuning", 0.53, 0.2, 0.895, NAN) for pool in ("low", "high")]
    given(monkeypatch, [*CORA, *good])
    assert claims.check_removal().verdict == "holds"
    given(monkeypatch, [*CORA, good[0], ("cora", "high", "fine_tuning", 0.53, 0.2, 0.88, NAN)])
    assert claims.check_removal().verdict == "inconclusive"  # two points lost in one setting
    given(monkeypatch, [*CORA, ("cora", "low", "scrub", 0.69, 0.9, 0.9, NAN)])
    assert claims.check_removal().verdict == "fails"


def test_low_pools_as_the_weakness_of_all_methods(monkeypatch):
    pair = [("cora", "low", "scrub", 0.66, 0.8, 0.9, NAN), ("cora", "high", "scrub", 0.65, 0.9, 0.9, NAN)]
    given(monkeypatch, [*CORA, *pair])
    found = claims.check_fatal_weakness()
    assert found.verdict == "inconclusive" and found.effect == pytest.approx(0.01)
    assert len(claims.pool_gaps()) == 2  # the Memoriser is a control
    given(monkeypatch, CORA)
    assert claims.check_fatal_weakness().verdict == "holds"


def test_the_bound_of_a_certificate(monkeypatch):
    assert claims.certified_bound(0.0) == 0.5 and claims.certified_bound(20.0) == pytest.approx(1.0)
    # likelihood ratio at most e^(2 eps) either way: the best test has error rates 1 / (1 + e^(2 eps)), and so one corner
    corner = 1 / (1 + np.exp(2 * 0.3))
    assert claims.certified_bound(0.3) == pytest.approx(1 - corner)
    given(monkeypatch, [*CORA, ("cora", "low", "cgu", 0.50, 0.0, 0.9, 0.1)])
    assert claims.check_certificates().verdict == "holds"
    given(monkeypatch, [*CORA, ("cora", "low", "cgu", 0.62, 0.6, 0.9, 0.1)])
    assert claims.check_certificates().verdict == "fails"
    given(monkeypatch, CORA)
    assert claims.check_certificates().verdict == "not testable here"
