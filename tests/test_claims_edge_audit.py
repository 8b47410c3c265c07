"""Verdicts of chapter 15 on constructed runs, where they can be read off, and the controls of the published records."""

import numpy as np
import pandas as pd
import pytest

from lethe_lib.errors import InputError
from lethe_lib.reporting import claims_edge_audit as claims
from lethe_lib.seeding import numpy_generator
from lethe_lib.study.edge_audit import NULL_DRAWS


def runs(rows, half=0.02):
    """Runs from (graph, pool, method, auc, residual, accuracy, certified epsilon)."""
    names = ["data", "pool", "method", "auc", "residual", "accuracy_test", "certified_epsilon"]
    table = pd.DataFrame(rows, columns=names)
    table["low"], table["high"] = table["auc"] - half, table["auc"] + half
    table["residual_low"], table["residual_high"] = table["residual"] - 0.1, table["residual"] + 0.1
    table["backbone"], table["preset"], table["status"] = "gcn", "corrected", "ok"
    table["to_remove"], table["trials"] = table["residual"].notna(), 32
    other = table.drop_duplicates(["data", "pool", "method"]).set_index(["data", "method", "pool"])["auc"].unstack()
    gap = (other["low"] - other["high"]) if {"low", "high"} <= set(other) else other.iloc[:, 0] * np.nan
    at = pd.MultiIndex.from_frame(table[["data", "method"]])
    table["gap"] = np.where(table["pool"] == "low", gap.reindex(at), np.nan)
    table["gap_low"], table["gap_high"] = table["gap"] - 1.5 * half, table["gap"] + 1.5 * half
    return table


def given(monkeypatch, rows, **columns):
    monkeypatch.setattr(claims, "plain_runs", lambda where="published", any_ridge=False: runs(rows).assign(**columns))


NAN = float("nan")
CORA = [
    ("cora", "low", "utu", 0.70, 1.0, 0.90, NAN),
    ("cora", "high", "utu", 0.58, 1.0, 0.90, NAN),
    ("cora", "low", "memoriser", 1.0, 2.5, 0.90, NAN),
    ("cora", "low", "gold", 0.5, 0.0, 0.90, NAN),
    ("cora", "high", "gold", 0.5, 0.0, 0.90, NAN),
]


def test_memory_on_every_graph(monkeypatch):
    given(monkeypatch, CORA)
    found = claims.check_memory()
    assert found.verdict == "holds" and found.effect == 0.58  # the smallest of all pools
    assert found.interval == pytest.approx((0.56, 0.60)) and "largest on Cora, low pool" in found.detail
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
    assert found.interval == pytest.approx((0.09, 0.15))  # that of the records, trials left out in common
    assert "(Cora)" in found.detail and "Without both pools: DBLP." in found.detail
    small = [("citeseer", pool, "utu", auc, 1.0, 0.9, NAN) for pool, auc in (("low", 0.66), ("high", 0.61))]
    given(monkeypatch, [*CORA, *small])
    found = claims.check_centrality()
    assert found.effect == pytest.approx(0.05) and "on CiteSeer, the largest on Cora" in found.detail
    given(monkeypatch, [("cora", "low", "utu", 0.58, 1.0, 0.9, NAN), ("cora", "high", "utu", 0.70, 1.0, 0.9, NAN)])
    assert claims.check_centrality().verdict == "fails"
    given(monkeypatch, [("cora", "low", "utu", 0.58, 1.0, 0.9, NAN)])
    assert claims.check_centrality().verdict == "not testable here"


def test_a_method_must_remove_half_in_every_setting_at_a_point_of_accuracy(monkeypatch):
    good = [("cora", pool, "fine_tuning", 0.53, 0.2, 0.895, NAN) for pool in ("low", "high")]
    given(monkeypatch, [*CORA, *good])
    assert claims.check_removal().verdict == "holds"
    given(monkeypatch, [*CORA, good[0], ("cora", "high", "fine_tuning", 0.53, 0.2, 0.88, NAN)])
    found = claims.check_removal()
    assert found.verdict == "inconclusive"  # two points lost in one setting
    assert (
        "less than half in 2 of 2, in 1 for at most" in found.detail and "(too dear: Cora, high pool)" in found.detail
    )
    given(monkeypatch, [*CORA, good[0], ("cora", "high", "fine_tuning", 0.56, 0.45, 0.9, NAN)])
    assert claims.check_removal().verdict == "inconclusive"  # the interval of one setting reaches over one half
    given(monkeypatch, [*CORA, ("cora", "low", "scrub", 0.69, 0.9, 0.9, NAN)])
    assert claims.check_removal().verdict == "fails"
    given(monkeypatch, CORA)
    assert claims.check_removal().verdict == "not testable here"


def test_a_method_that_was_not_run_everywhere_proves_nothing(monkeypatch):
    part = ("cora", "low", "fine_tuning", 0.53, 0.2, 0.9, NAN)
    given(monkeypatch, [*CORA, part])
    found = claims.check_removal()
    assert found.verdict == "inconclusive"
    assert "all 2 settings that can tell: none" in found.detail and "not in all: Fine-tuning" in found.detail
    assert (
        "less than half in 1 of 2, in 1 for at most a point of accuracy, with a worst change of +0.0 points."
        in found.detail
    )
    given(monkeypatch, [*CORA, part, part])  # the same setting twice is one setting
    assert claims.check_removal().verdict == "inconclusive"
    given(monkeypatch, [*CORA, part, ("photo", "low", "utu", 0.50, NAN, 0.9, NAN), (*part[:1], "high", *part[2:])])
    assert claims.check_removal().verdict == "holds"  # where there is nothing to remove, nothing is missing


def test_settings_with_too_little_memory_to_tell_do_not_decide(monkeypatch):
    both = [("cora", pool, "fine_tuning", 0.53, 0.2, 0.895, NAN) for pool in ("low", "high")]
    weak = [("photo", "low", "utu", 0.51, 1.0, 0.9, NAN), ("photo", "low", "fine_tuning", 0.51, 0.9, 0.9, NAN)]
    given(monkeypatch, [*CORA, *both, *weak])  # nothing is known of Gold there
    found = claims.check_removal()
    assert found.verdict == "holds" and "too little memory to tell: Photo, low pool." in found.detail
    rows = [*CORA, *both, *weak, ("photo", "low", "gold", 0.5, 0.0, 0.9, NAN)]
    for half, verdict in ((0.6, "holds"), (0.4, "inconclusive")):  # of Gold on Photo; its interval alone decides
        given(monkeypatch, rows, residual_low=[row[4] - 0.1 for row in rows[:-1]] + [-half],
              residual_high=[row[4] + 0.1 for row in rows[:-1]] + [half])  # fmt: skip
        assert claims.check_removal().verdict == verdict


def test_methods_are_compared_by_what_they_share_and_by_what_they_cover(monkeypatch):
    rows = [
        ("cora", "low", "gif", 0.6, 0.3, 0.9, NAN),  # least of all, where it was run
        ("cora", "low", "scrub", 0.6, 0.4, 0.9, NAN),
        ("cora", "high", "scrub", 0.6, 1.0, 0.9, NAN),
    ]
    given(monkeypatch, [*CORA, *rows])
    table = claims.removing_methods()
    assert table["method"].tolist() == ["scrub", "gif"] and table["covers"].tolist() == [True, False]
    # excesses added up: (0.1 + 0.1) over (0.2 + 0.08), and 0.1 over 0.2 on Cora low alone
    assert table["residual"].tolist() == pytest.approx([0.2 / 0.28, 0.5])
    assert table["residual_shared"].tolist() == pytest.approx([0.5, 0.5])
    assert table["settings"].tolist() == [2, 1] and table.attrs["settings"] == 2
    # half widths of 0.1 of both pools of Cora, weighed by the memory, add up to 0.1
    assert table["half_width"].tolist() == pytest.approx([0.1, 0.1]) and table["residual_joint"].isna().all()
    given(monkeypatch, [*CORA, rows[0], rows[2]])
    assert claims.removing_methods()["residual_shared"].isna().all()


def test_intervals_of_a_sum_over_settings_and_the_joint_fit(monkeypatch):
    """Half widths are added within a graph and squared over graphs; the joint fit has its own memory to remove."""
    rows = [
        *CORA,
        ("dblp", "low", "utu", 0.62, 1.0, 0.9, NAN),
        ("dblp", "low", "gold", 0.5, 0.0, 0.9, NAN),
        *[
            (name, pool, "scrub", 0.53, 0.2, 0.9, NAN)
            for name, pool in (("cora", "low"), ("cora", "high"), ("dblp", "low"))
        ],
    ]
    joint = [0.5 + 2 * (row[3] - 0.5) if row[2] == "utu" else row[3] for row in rows]
    given(monkeypatch, rows, toggle_joint_auc=joint)
    row = claims.removing_methods().iloc[0]
    assert row["residual"] == pytest.approx(0.09 / 0.40) and row["residual_joint"] == pytest.approx(0.09 / 0.80)
    assert row["half_width"] == pytest.approx(0.1 * np.hypot(0.28, 0.12) / 0.40)
    found = claims.check_removal()
    assert found.interval == pytest.approx((row["residual"] - row["half_width"], row["residual"] + row["half_width"]))


def test_low_pools_as_the_weakness_of_all_methods(monkeypatch):
    pair = [("cora", "low", "scrub", 0.66, 0.8, 0.9, NAN), ("cora", "high", "scrub", 0.65, 0.9, 0.9, NAN)]
    given(monkeypatch, [*CORA, *pair])
    found = claims.check_fatal_weakness()
    assert found.verdict == "inconclusive" and found.effect == pytest.approx(0.01)
    assert len(claims.pool_gaps()) == 2  # Gold and the Memoriser are controls
    status = ["ok"] * len(CORA) + ["ok", "collapsed"]  # on the high pool
    given(monkeypatch, [*CORA, *pair], status=status)
    assert claims.pool_gaps()["method"].tolist() == ["utu"]
    given(monkeypatch, CORA)
    assert claims.check_fatal_weakness().verdict == "holds"


def test_the_bound_of_a_certificate(monkeypatch):
    assert claims.certified_bound(0.0) == 0.5 and claims.certified_bound(20.0) == pytest.approx(1.0)
    # likelihood ratio at most e^(2 eps) either way: the best test has error rates 1 / (1 + e^(2 eps)), and so one corner
    corner = 1 / (1 + np.exp(2 * 0.3))
    assert claims.certified_bound(0.3) == pytest.approx(1 - corner)
    certified = ("cora", "low", "cgu", 0.50, 0.0, 0.9, 0.1)
    given(monkeypatch, [*CORA, certified], retrained=0.25)
    found = claims.check_certificates()
    assert found.verdict == "holds" and "25% of the trials" in found.detail and "No run" not in found.detail
    assert "by unlinking, in 1 of them: CGU on Cora, low pool with epsilon 0.1, 32 trials." in found.detail
    given(monkeypatch, [*CORA, certified], retrained=0.25, status=["ok"] * len(CORA) + ["collapsed"])
    assert claims.check_certificates().verdict == "inconclusive"
    given(monkeypatch, [*CORA, (*certified[:-1], 2.0)], retrained=0.25)  # a bound that unlinking does not reach either
    found = claims.check_certificates()
    assert found.verdict == "inconclusive" and "No run that did not collapse" in found.detail
    given(monkeypatch, [*CORA, ("dblp", *certified[1:])], retrained=0.25)  # nor where there is no unlinking to compare
    assert claims.check_certificates().verdict == "inconclusive"
    given(monkeypatch, [*CORA, ("cora", "low", "cgu", 0.62, 0.6, 0.9, 0.1)], retrained=0.0)
    assert claims.check_certificates().verdict == "fails"
    given(monkeypatch, [*CORA, ("cora", "low", "cgu", 0.54, 0.6, 0.9, 0.1)], retrained=0.0)
    assert claims.check_certificates().verdict == "inconclusive"  # the bound is inside the interval
    given(monkeypatch, CORA)
    assert claims.check_certificates().verdict == "not testable here"


def test_certified_runs_that_trained_again_do_not_count(monkeypatch):
    certified = [("cora", "low", "cgu", 0.50, 0.0, 0.9, 0.1), ("cora", "high", "scalegun", 0.62, 0.6, 0.9, 0.1)]
    given(monkeypatch, [*CORA, *certified], retrained=1.0)
    found = claims.check_certificates()
    assert found.verdict == "not testable here" and found.detail.startswith("2 of 2 certified runs trained again")
    given(monkeypatch, [*CORA, *certified])  # records without the column
    found = claims.check_certificates()
    assert found.verdict == "not testable here" and "Of 2 it is not recorded" in found.detail
    given(monkeypatch, [*CORA, *certified], retrained=[NAN] * len(CORA) + [1.0, 0.5])
    found = claims.check_certificates()  # the run that is left breaks its bound
    assert found.verdict == "fails" and found.effect == 0.62 and found.detail.startswith("1 of 2")


# The controls


def controls(monkeypatch):
    """Gold, one untrained model under two ways of training, one that never changes, one with priors that rise; UtU."""
    table = pd.DataFrame(
        {
            "method": ["gold", "untrained", "untrained", "untrained", "untrained", "utu"],
            "preset": ["corrected", "corrected", "published", "corrected", "corrected", "corrected"],
            "auc": [0.51, 0.49, 0.49, 0.5, 0.512, 0.7],
            "null_auc": [0.501, 0.5, 0.5, 0.5, 0.511, 0.5],
            "null_error": [0.005, 0.005, 0.005, 0.0, 0.004, 0.005],
            "same_seed": [False, False, False, True, False, False],
            "spread": [0.0, 0.0, 0.0, 0.0, 0.25, 0.0],
        }
    ).assign(data="cora", backbone="gcn", pool="low", trials=64)
    monkeypatch.setattr(claims, "audited_runs", lambda where="published": table)


def test_the_distance_of_controls_by_hand(monkeypatch):
    controls(monkeypatch)
    rows = claims.control_rows()
    assert rows["preset"].tolist() == ["corrected"] * 4  # an untrained model has no training: once is enough
    assert rows["expected"].tolist() == [0.5, 0.5, 0.5, 0.511]
    assert rows["distance"].tolist() == pytest.approx([2.0, -2.0, NAN, 0.25], nan_ok=True)


def test_what_many_rows_may_do_by_chance():
    assert claims.allowed_distance(1) == pytest.approx(2.001, abs=0.001)
    values = np.abs(numpy_generator(0, "many rows").standard_t(NULL_DRAWS - 1, (4000, 30)))
    assert 0.03 < (values.max(1) > claims.allowed_distance(30)).mean() < 0.07
    with pytest.raises(InputError, match="neither Gold nor Untrained"):
        claims.allowed_distance(0)


def test_published_controls_have_no_memory():
    """Exact answers in every published setting, allowing for how many there are."""
    rows = claims.control_rows()
    constant = rows[rows["distance"].isna()]
    assert (constant["auc"] == 0.5).all() and constant["same_seed"].all()
    varying = rows[rows["distance"].notna()]
    assert len(varying) >= 20
    assert varying["distance"].abs().max() < claims.allowed_distance(len(varying))
    # Nor do they lean to one side; rows that share coins go together, so the allowance is wide.
    assert abs(varying["distance"].mean()) < 1 and 0.5 < varying["distance"].std() < 1.6


def test_published_coins_tossed_again_have_one_half():
    runs = claims.audited_runs()
    runs = runs[runs["spread"] == 0]
    assert len(runs) > 100 and (runs["null_auc"] - 0.5).abs().max() < 0.005


def test_the_published_memoriser_is_seen_everywhere():
    runs = claims.plain_runs()
    cell = ["data", "backbone", "pool", "preset"]
    planted = runs[runs["method"] == "memoriser"]
    every = claims.audited_runs()
    assert every[every["method"] == "memoriser"]["auc"].min() > 0.95
    unlinked = set(map(tuple, runs.loc[runs["method"] == "utu", cell].to_numpy()))
    assert len(unlinked) > 8 and unlinked == set(map(tuple, planted[cell].to_numpy()))


# Memory and the place of an edge


def test_rank_correlations_with_intervals():
    x = numpy_generator(0, "rank correlations").standard_normal((3, 300))
    edges = pd.DataFrame({"edge_auc": x[0], "same": x[0] ** 3, "other": x[1], "one": 1.0, "mixed": x[0] + x[2]})
    edges.loc[5, "edge_auc"] = np.nan
    found = claims.rank_correlations(edges, ("same", "other", "one", "mixed"))
    assert found["same"] == pytest.approx((1.0, 1.0, 1.0)) and np.isnan(found["one"]).all()
    for name in ("other", "mixed"):
        value, low, high = found[name]
        assert value == pytest.approx(edges[name].corr(edges["edge_auc"], method="spearman"), abs=1e-9)
        fisher = np.tanh(np.arctanh(value) + 1.96 * np.array([-1, 1]) * np.sqrt((1 + value**2 / 2) / 296))
        assert np.allclose([low, high], fisher, atol=0.03)
    few = claims.rank_correlations(edges.iloc[:2], ("other",))
    assert np.isnan(few["other"]).all()
