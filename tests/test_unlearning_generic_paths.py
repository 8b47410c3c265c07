"""The path of the generic methods: what their own logs hold, and what is measured of them from outside."""

import numpy as np
import pandas as pd
import pytest
import torch
from test_unlearning_generic import run, small
from torch.nn.functional import cross_entropy

from lethe_lib.models import predict
from lethe_lib.reporting import families
from lethe_lib.reporting.followed_runs import (
    MEASURES,
    dose_figure,
    follow,
    live_case,
    released_models,
    sweep,
    sweep_figure,
)
from lethe_lib.reporting.titles import METHOD_TITLES
from lethe_lib.unlearning import UNLEARNERS, EdgeRequest, unlearn

CHAPTERS = [name for name, entry in UNLEARNERS.items() if entry.kind in ("generic", "addition") and name != "gif"]
THREE = {
    "scrub": {"epochs": 2, "max_epochs": 1},
    "salun": {"epochs": 3},
    "salun_edge_diff": {"epochs": 3},
    "unsir": {"impair_steps": 1, "repair_steps": 2},
    "l1_sparse": {"steps": 3, "free_steps": 1},
    **dict.fromkeys(
        ("fine_tuning", "neg_grad", "adv_neg_grad", "adv_neg_grad_matched", "npo", "bad_teaching"), {"steps": 3}
    ),
}
"""Settings with which the methods take three optimiser steps; the others take none."""


@pytest.fixture(scope="module")
def case():
    return live_case("synthetic-tiny", "gcn", seed=0, forget="high", fraction=0.05, golds=2)


@pytest.mark.parametrize("method", CHAPTERS)
def test_every_method_is_measured_after_every_step(case, method):
    bound = {"bound": "none"} if method == "neg_grad" else {}
    found = follow(case, method, **THREE.get(method, {}), **bound)
    assert len(found.path) == 1 + (3 if method in THREE else 1)
    assert set(MEASURES) < set(found.path.columns) and found.path.notna().all(axis=None)
    first, last = found.path.iloc[0], found.path.iloc[-1]
    assert first["weight_change"] == 0.0 and dict(first[list(MEASURES)]) == pytest.approx(
        {name: case.measure(case.original)[name] for name in MEASURES}
    )
    assert dict(last[list(MEASURES)]) == pytest.approx(
        {name: case.measure(found.result.model)[name] for name in MEASURES}
    )


def test_following_costs_the_method_nothing(case):
    alone = unlearn("bad_teaching", case.original, case.data, case.pairs, steps=3)
    found = follow(case, "bad_teaching", steps=3).result
    assert (found.steps.forwards, found.steps.backwards) == (alone.steps.forwards, alone.steps.backwards)
    assert found.steps.rows == alone.steps.rows


@pytest.mark.parametrize(
    ("method", "settings", "losses"),
    [
        ("fine_tuning", {}, {"retain_loss"}),
        ("fine_tuning", {"on_forget_nodes": True}, {"forget_loss"}),
        ("neg_grad", {"bound": "none"}, {"forget_loss"}),
        ("adv_neg_grad", {}, {"forget_loss", "retain_loss"}),
        ("adv_neg_grad_matched", {}, {"forget_loss", "retain_loss"}),
        ("npo", {}, {"forget_loss", "retain_loss"}),
        ("l1_sparse", {}, {"retain_loss"}),
        ("unsir", {}, {"retain_loss"}),
        ("bad_teaching", {}, set()),  # reads no label
        ("scrub", {"max_epochs": 0}, {"retain_loss"}),
        ("salun", {}, {"forget_loss", "retain_loss"}),
        ("salun_edge_diff", {}, {"forget_loss", "retain_loss"}),
    ],
)
def test_a_log_holds_the_losses_that_its_steps_compute(method, settings, losses):
    data, model, pairs = small()
    request = EdgeRequest(model, data, pairs, UNLEARNERS[method].mapping["corrected"])
    rows = run(method, model, data, pairs, request.spec, **{**THREE[method], **settings})[1].rows
    steps = [row for row in rows if "loss" in row]
    assert len(steps) >= 2
    for row in steps:
        assert {"forget_loss", "retain_loss"} & set(row) == losses
    before = {
        name: float(cross_entropy(predict(model, graph)[nodes], data.y[nodes]))
        for name, graph, nodes in (
            ("forget_loss", data, request.forget_nodes),
            ("retain_loss", request.retained, request.retain_nodes),
        )
    }
    for name in losses:  # without dropout the first step sees the original
        assert steps[0][name] == pytest.approx(before[name], rel=1e-5)


def test_fisher_logs_its_noise_beside_the_weights():
    data, model, pairs = small()
    row = run("fisher", model, data, pairs)[1].rows[0]
    size = float(torch.cat([p.detach().flatten() for p in model.parameters()]).norm())
    assert row["relative_noise_norm"] == pytest.approx(row["expected_noise_norm"] / size, rel=1e-5) and size > 0


def test_a_sweep_measures_the_released_models(case):
    values = {0: {"steps": 0}, 5: {"steps": 5}}
    table = sweep(
        case, "fine_tuning", values, {"slow": {"learning_rate": 1e-4}, "fast": {"learning_rate": 1e-2}}, (0, 1)
    )
    assert len(table) == 2 * 2 * 2 and list(table["form"].unique()) == ["slow", "fast"]
    start = case.measure(case.original)
    for row in table[table["value"] == 0].to_dict("records"):
        assert {name: row[name] for name in start} == pytest.approx(start)
    moved = table[table["value"] == 5].groupby("form")["weight_change"].mean()
    assert 0 < moved["slow"] < moved["fast"]
    direct = unlearn("fine_tuning", case.original, case.data, case.pairs, 1, steps=5, learning_rate=1e-2)
    ours = table[(table["form"] == "fast") & (table["value"] == 5)].iloc[1]
    assert ours["distance"] == pytest.approx(case.measure(direct.model)["distance"]) and ours["status"] == direct.status


def lines_of(ax):
    return {line.get_label(): line for line in ax.get_lines() if not line.get_label().startswith("_")}


def test_figures_of_sweeps_draw_means_over_draws(case):
    steps = sweep(case, "fine_tuning", {n: {"steps": n} for n in (1, 3, 30)})
    noise = sweep(case, "fisher", {s: {"scale": s} for s in (1e-3, 8e-3)}, {"a": {}, "b": {"floor": 0.5}}, (0, 1, 2))
    fig = sweep_figure({"first": ("steps", steps), "second": ("scale", noise)}, case)
    shown = ("forget_loss", "accuracy_val", "distance")
    assert len(fig.axes) == 6 and [ax.get_title() for ax in fig.axes[:3]] == [MEASURES[name] for name in shown]
    assert [ax.get_xscale() for ax in fig.axes] == ["log"] * 3 + ["linear"] * 3
    for line, table in ((fig.axes[:3], steps), (fig.axes[3:], noise)):
        for ax, measure in zip(line, shown, strict=True):
            drawn = [line for line in ax.get_lines() if line.get_marker() not in ("None", "")]
            for form, found in zip(table["form"].unique(), drawn, strict=True):
                mean = table[table["form"] == form].groupby("value")[measure].mean()
                assert np.allclose(found.get_ydata(), mean) and np.allclose(found.get_xdata(), mean.index)


def test_the_figure_of_doses_has_a_panel_for_every_measure(case):
    noise = sweep(case, "fisher", {s: {"scale": s} for s in (1e-3, 8e-3)}, {"a": {}}, (0, 1))
    by_value = dose_figure(noise, "scale", case)
    assert [ax.get_title() for ax in by_value.axes if ax.axison] == list(MEASURES.values())
    by_change = dose_figure(noise, "weight change", case, against="weight_change")
    assert [ax.get_title() for ax in by_change.axes if ax.axison] == list(MEASURES.values())[:-1]
    mean = noise.groupby("value")[["weight_change", "retain_loss"]].mean()
    drawn = lines_of(by_change.axes[1])["a"]
    assert np.allclose(drawn.get_xdata(), mean["weight_change"]) and np.allclose(drawn.get_ydata(), mean["retain_loss"])


def test_released_models_stand_beside_the_exact_answers(case):
    table = released_models(case, ("neg_grad", "npo"))
    assert table["method"].tolist() == [
        *("Original's weights", "Gold 0", "Gold 1"),
        *("NegGrad, corrected", "NegGrad, published", f"{METHOD_TITLES['npo']}, corrected"),
    ]
    assert table["status"].isna().tolist() == [True] * 3 + [False] * 3 and pd.isna(table["backwards"].iloc[0])
    assert table["weight_change"].iloc[0] == 0.0 and table["distance"].iloc[1] == 0.0
    result = unlearn("npo", case.original, case.data, case.pairs)
    assert table["distance"].iloc[-1] == pytest.approx(case.measure(result.model)["distance"])


def test_excess_is_counted_by_whole_intervals(monkeypatch):
    rows = [
        ("npo", "link_teller", "low", 0.1, 0.2),
        ("npo", "link_teller", "high", -0.2, -0.1),
        ("npo", "link_stealing", "low", -0.1, 0.1),
        ("npo", "link_stealing", "high", 0.1, 0.2),
        ("npo", "e_umia", "low", -0.2, -0.1),
        ("npo", "e_umia", "high", -0.2, -0.1),
        ("gold", "e_umia", "high", 0.1, 0.2),
    ]
    table = pd.DataFrame(rows, columns=["method", "attack", "forget", "excess_low", "excess_high"])
    table = table.assign(backbone="gcn", preset="corrected")
    monkeypatch.setattr(families, "excess_cells", lambda study: pd.concat([table, table.assign(preset="published")]))
    assert families.excess_sentence(("npo",), "corrected") == (
        "LinkTeller 1 above and 1 below, Link Stealing 1 above and 0 below, E-UMIA 0 above and 2 below, each of 2 cells "
        "(by chance 0.1)"
    )
