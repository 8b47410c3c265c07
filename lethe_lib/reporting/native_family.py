"""What chapters 11 and 12 show of the published records: certificates against the size of the request, and GNNDelete.

Certified methods live on scales of their own (mean or sum of the losses), so residual and bound are given in budgets: 1 is
the largest residual that (epsilon, delta) = (1, 1e-4) allows under the noise with which the method's original was trained.
"""

import json

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lethe_lib.reporting.families import (
    GRAPHS,
    NATIVE,
    as_points,
    family_records,
    outcomes,
    seeds_interval,
)
from lethe_lib.reporting.style import PALETTE
from lethe_lib.reporting.titles import ATTACK_TITLES, GRAPH_TITLES, METHOD_TITLES
from lethe_lib.study import load_records
from lethe_lib.unlearning import UNLEARNERS

REQUESTS, COLLAPSE = "certified_requests", "gnn_delete_collapse"
CERTIFIED = ("ceu", "cgu", "scalegun")
"""Methods whose certificate bounds a residual."""

STYLES = {
    "CEU, new Hessian": (PALETTE[0], "o"),
    "CEU, old Hessian": (PALETTE[1], "s"),
    "CGU": (PALETTE[2], "D"),
    "CGU, paper's ridge": (PALETTE[4], "v"),
    "ScaleGUN": (PALETTE[3], "^"),
    "IDEA": (PALETTE[5], "P"),
}
"""Line of a figure -> colour and marker."""

PRINTED_COLLAPSE = {"photo": 0.346, "computers": 0.379}
"""Test accuracy of GNNDelete as the benchmark prints it: GCN, high set, one seed."""


def beside_gold(methods: tuple[str, ...], backbone: str = "gcn") -> pd.DataFrame:
    """The table ``outcomes`` of the graph-native methods, as narrow as a page.

    Returns:
        its rows without times, which another study measures beside Gold, and without the spread over seeds, which the
        figures draw; ``cells``, and in an attack's column, headed by the attack alone, those of them above/below Gold.
    """
    table = outcomes(methods, NATIVE, backbone)
    attacks = {f"{title} above/below": title for title in ATTACK_TITLES.values()}
    counts = table[list(attacks)].apply(lambda column: column.str.split(" of ").str[0]).rename(columns=attacks)
    cells = table[next(iter(attacks))].str.split(" of ").str[1].rename("cells")
    return pd.concat(
        [table[["method", "preset", "accuracy, points", "worst cell", "collapsed"]], cells, counts], axis=1
    )


# Certificates


def request_steps(where: str = "published") -> pd.DataFrame:
    """The steps of every certified method, one row per request.

    Returns:
        the table ``certified_requests_steps`` with ``line`` (a key of ``STYLES``), ``residual_budgets`` and
        ``bound_budgets`` (both over the budget), ``exhausted`` (the budget does not carry this request), ``total`` (seconds
        of the step, and of one retraining where it is exhausted) and ``ratio`` (``total`` over Gold's seconds).
    """
    steps = load_records(f"{REQUESTS}_steps", where).copy()
    steps["line"] = [
        f"CEU, {'new' if row.new_hessian else 'old'} Hessian"
        if row.method == "ceu"
        else METHOD_TITLES[row.method] + (", paper's ridge" if row.ridge == row.ridge else "")
        for row in steps.itertuples()
    ]
    steps["residual_budgets"] = steps["residual"] / steps["budget"]
    steps["bound_budgets"] = steps["bound"] / steps["budget"]
    steps["exhausted"] = steps["bound_budgets"] > 1
    steps["total"] = steps["seconds"] + np.where(steps["exhausted"], steps["retraining_seconds"], 0.0)
    steps["ratio"] = steps["total"] / steps["gold_seconds"]
    return steps


def bound_figure(steps: pd.DataFrame) -> Figure:
    """Residual (full line) and bound (dashed) in budgets against the number of removed edges, a panel per graph.

    Args:
        steps: from :func:`request_steps`; geometric means over seeds.
    """
    shown = steps[steps["method"].isin(CERTIFIED) & ~steps["single"]]
    graphs = [name for name in GRAPHS if name in set(shown["data"])]
    fig, axes = _panels(len(graphs), height=3.2)
    for ax, data in zip(axes, graphs, strict=True):
        for line, part in shown[shown["data"] == data].groupby("line"):
            colour, marker = STYLES[line]
            means = geometric_means(part, ("residual_budgets", "bound_budgets"))
            ax.plot(means.index, means["residual_budgets"], marker=marker, color=colour, markersize=4, label=line)
            ax.plot(
                means.index, means["bound_budgets"], "--", marker=marker, color=colour, markersize=4, fillstyle="none"
            )
        ax.axhline(1, color="0.3", linewidth=1)
        ax.set(xscale="log", yscale="log", title=GRAPH_TITLES[data])
    _label(axes, "edges removed at once", "in budgets of (1, 1e-4)")
    found = _labelled(axes)
    found["exact residual"] = plt.Line2D([], [], color="0.3")
    found["bound"] = plt.Line2D([], [], color="0.3", linestyle="--")
    fig.legend(found.values(), found.keys(), loc="outside lower center", ncols=2)
    return fig


def _panels(count: int, height: float) -> tuple[Figure, list[Axes]]:
    """A figure of ``count`` panels with a common vertical axis, two to a line so that labels stay readable on a phone.

    Args:
        height: of a line, in inches.
    """
    lines = -(-count // 2)
    fig, axes = plt.subplots(lines, min(count, 2), figsize=(7.5, 1.4 + height * lines), sharey=True, squeeze=False)
    for ax in axes.flat[count:]:
        ax.remove()
    return fig, list(axes.flat[:count])


def _label(axes: list[Axes], x: str, y: str) -> None:
    """Names of the axes: below every panel, and at the left ones."""
    for ax in axes:
        ax.set_xlabel(x)
    for ax in axes[::2]:
        ax.set_ylabel(y)


def _labelled(axes: list[Axes]) -> dict[str, Artist]:
    """Label -> line or area, over all panels, each label once."""
    found = {}
    for ax in axes:
        handles, labels = ax.get_legend_handles_labels()
        found |= dict(zip(labels, handles, strict=True))
    return found


def geometric_means(part: pd.DataFrame, columns: tuple[str, ...]) -> pd.DataFrame:
    """Geometric means over seeds by number of edges; zeros, which no logarithm shows, are left out."""
    positive = part[["edges", *columns]].replace(0.0, np.nan)
    return np.exp(positive.set_index("edges").apply(np.log).groupby(level="edges").mean())


def time_figure(steps: pd.DataFrame) -> Figure:
    """Seconds over Gold's against the size of the request, a panel per graph; a cross where a seed includes a retraining.

    Args:
        steps: from :func:`request_steps`; geometric means over seeds.
    """
    shown = steps[~steps["single"] & (steps["line"] != "CEU, old Hessian")]
    graphs = [name for name in GRAPHS if name in set(shown["data"])]
    fig, axes = _panels(len(graphs), height=2.9)
    for ax, data in zip(axes, graphs, strict=True):
        for line, part in shown[shown["data"] == data].groupby("line"):
            colour, marker = STYLES[line]
            means = geometric_means(part, ("ratio",))["ratio"]
            ax.plot(means.index, means, marker=marker, color=colour, markersize=4, label=line)
            again = part.groupby("edges")["exhausted"].any()
            ax.plot(means.index[again], means[again], "x", color="black", markersize=7)
        ax.axhline(1, color="0.3", linewidth=1)
        ax.set(xscale="log", yscale="log", title=GRAPH_TITLES[data])
    _label(axes, "edges removed at once", "seconds over Gold's")
    found = _labelled(axes)
    found["with a retraining"] = plt.Line2D([], [], color="black", marker="x", linestyle="")
    fig.legend(found.values(), found.keys(), loc="outside lower center", ncols=2)
    return fig


def noise_figure(steps: pd.DataFrame, where: str = "published") -> Figure:
    """Test accuracy of the method's original against its noise, a panel per method, with the noise that requests need.

    Below the curves, in the colour of the graph: the noise that the bound of one edge (a bar) and of 5 % (a triangle) asks
    for; for IDEA the calibrated noise on the weights.

    Args:
        steps: from :func:`request_steps`. where: as in ``load_records``, for the accuracies.
    """
    accuracies = load_records(f"{REQUESTS}_noise", where)
    accuracies = accuracies[accuracies["ridge"].isna()]
    steps = steps[steps["ridge"].isna() & ~steps["single"] & steps["new_hessian"]]
    graphs = [name for name in GRAPHS if name in set(accuracies["data"])]
    fig, axes = _panels(4, height=2.5)
    for ax, method in zip(axes, (*CERTIFIED, "idea"), strict=True):
        for number, data in enumerate(graphs):
            colour = PALETTE[list(GRAPHS).index(data)]
            mine = accuracies[(accuracies["method"] == method) & (accuracies["data"] == data)]
            means = mine.groupby("noise")["accuracy"].mean()
            ax.plot(means.index, means, "o-", color=colour, markersize=4, label=GRAPH_TITLES[data])
            needed = steps[(steps["method"] == method) & (steps["data"] == data)]
            needed = geometric_means(needed, ("needed_noise",))["needed_noise"].dropna()
            level = 0.02 + 0.05 * number
            ax.plot(needed.iloc[0], level, "|", color=colour, markersize=10, markeredgewidth=2)
            ax.plot(needed.iloc[-1], level, ">", color=colour, markersize=6)
        ax.set(xscale="log", title=METHOD_TITLES[method])
    axes[0].set_ylim(0, 1)
    _label(axes, "noise", "test accuracy")
    handles, labels = axes[0].get_legend_handles_labels()
    handles += [
        plt.Line2D([], [], color="0.3", marker="|", linestyle="", markersize=10, markeredgewidth=2),
        plt.Line2D([], [], color="0.3", marker=">", linestyle=""),
    ]
    fig.legend(handles, [*labels, "needed for 1 edge", "needed for 5 %"], loc="outside lower center", ncols=4)
    return fig


def needed_noise_table(steps: pd.DataFrame, where: str = "published", tolerated: float = 0.02) -> pd.DataFrame:
    """Noise that requests need, geometric means over seeds, beside noise that models bear, one row per graph and method.

    Args:
        steps: from :func:`request_steps`. tolerated: loss of test accuracy that still counts as borne.

    Returns:
        ``needed, 1 edge``; ``needed, 5 %``; ``borne``, the largest noise tried whose mean accuracy lies at most
        ``tolerated`` below that of the smallest, NaN where none was tried; ``largest request``, the number of edges
        in the largest one that the method's noise carries in every seed, of those in the whole one.
    """
    accuracies = load_records(f"{REQUESTS}_noise", where)
    steps = steps[steps["new_hessian"] & ~steps["single"]]
    rows = []
    for (data, method, ridge), part in steps.groupby(["data", "method", "ridge"], dropna=False, sort=False):
        same = accuracies["ridge"].isna() if ridge != ridge else accuracies["ridge"] == ridge
        mine = accuracies[(accuracies["data"] == data) & (accuracies["method"] == method) & same]
        means = mine.groupby("noise")["accuracy"].mean()
        borne = means[means >= means.iloc[0] - tolerated].index.max() if len(means) else np.nan
        needed = geometric_means(part, ("needed_noise",))["needed_noise"]
        over = part["needed_noise"] > part["noise"]
        exhausted = over.groupby(part["edges"]).any()
        carried = exhausted.index[~exhausted]
        rows.append(
            {
                "graph": GRAPH_TITLES[data],
                "method": METHOD_TITLES[method] + (", paper's ridge" if ridge == ridge else ""),
                "needed, 1 edge": needed.iloc[0],
                "needed, 5 %": needed.iloc[-1],
                "borne": borne,
                "largest request": f"{carried.max()} of {needed.index.max()}" if len(carried) else "none",
            }
        )
    return pd.DataFrame(rows)


def ridge_table(steps: pd.DataFrame, where: str = "published") -> pd.DataFrame:
    """What the ridge of CGU's own head costs in accuracy and buys in budget, one row per graph and ridge.

    Args:
        steps: from :func:`request_steps`. where: as in ``load_records``, for the accuracies.

    Returns:
        ``head, %``, test accuracy of the head before any request, and ``trained SGC, %``, that of the victim, means over
        seeds; ``5 %, budgets``, the bound of the whole request over the budget, geometric mean; ``carried, %``, the largest
        request that the budget carries in every seed, as a share of the whole one.
    """
    records = load_records(REQUESTS, where)
    records = records[(records["method"] == "cgu") & (records["status"] == "ok")]
    given = records["config_json"].map(lambda text: chosen_settings(text).get("ridge", np.nan))
    default, rows = UNLEARNERS["cgu"].settings["corrected"].ridge, []
    steps = steps[(steps["method"] == "cgu") & ~steps["single"]]
    for (data, ridge), runs in records.groupby(["data", given.fillna(default)], sort=False):
        part = steps[(steps["data"] == data) & (steps["ridge"].fillna(default) == ridge)]
        bounds = geometric_means(part, ("bound_budgets",))["bound_budgets"]
        carried = bounds.index[part.groupby("edges")["bound_budgets"].max().reindex(bounds.index) <= 1]
        rows.append(
            {
                "graph": GRAPH_TITLES[data],
                "ridge": ridge,
                "head, %": 100 * float(runs["own_accuracy"].mean()),
                "trained SGC, %": 100 * float(runs["original_accuracy"].mean()),
                "5 %, budgets": bounds.iloc[-1],
                "carried, %": 100 * carried.max() / bounds.index[-1] if len(carried) else 0.0,
            }
        )
    return pd.DataFrame(rows).sort_values(["graph", "ridge"], ignore_index=True)


def residual_table(where: str = "published") -> pd.DataFrame:
    """Exact gradient norm of CEU's and IDEA's released models by backbone, of the study of graph-native methods.

    Returns:
        one row per graph, backbone and method, preset ``corrected``: median ``residual`` over seeds and sets, certificates
        given of all runs, and the noise on the gradient that a guarantee would need for such a residual, c times it.
    """
    records = family_records(where, NATIVE)
    shown = records[records["method"].isin(("ceu", "idea")) & (records["preset"] == "corrected")]
    rows = []
    for (data, backbone, method), part in shown.groupby(["data", "backbone", "method"], sort=False):
        rows.append(
            {
                "graph": GRAPH_TITLES[data],
                "backbone": backbone.upper(),
                "method": METHOD_TITLES[method],
                "residual": float(part["certificate_residual"].median()),
                "certificates": f"{int(part['certificate_given'].sum())} of {len(part)}",
                "accuracy, points": as_points(part["change"].mean()),
            }
        )
    return pd.DataFrame(rows)


def seconds_table(steps: pd.DataFrame) -> pd.DataFrame:
    """Seconds over those of Gold in the same run, per graph and line: geometric means over seeds.

    Args:
        steps: from :func:`request_steps`.

    Returns:
        ``1 edge`` and ``5 %``, each with a retraining where the budget is gone; ``5 %, step alone``; ``Gold, s``; and
        ``retraining, s``, of the method's own original.
    """
    shown = steps[~steps["single"] & (steps["line"] != "CEU, old Hessian")]
    shown = shown.assign(alone=shown["seconds"] / shown["gold_seconds"])
    rows = []
    for (data, line), part in shown.groupby(["data", "line"], sort=False):
        means = geometric_means(part, ("ratio", "alone"))
        rows.append(
            {
                "graph": GRAPH_TITLES[data],
                "method": line,
                "1 edge": means["ratio"].iloc[0],
                "5 %": means["ratio"].iloc[-1],
                "5 %, step alone": means["alone"].iloc[-1],
                "Gold, s": float(part["gold_seconds"].median()),
                "retraining, s": float(part["retraining_seconds"].median()),
            }
        )
    return pd.DataFrame(rows)


# GNNDelete


def collapse_records(where: str = "published") -> pd.DataFrame:
    """The runs of GNNDelete over start and epochs.

    Returns:
        the records with ``start``, ``epochs``, and ``change``, test accuracy minus that of UtU of the same cell.
    """
    records = load_records(COLLAPSE, where).copy()
    cell = ["data", "preset", "seed"]
    unlinked = records[records["method"] == "utu"].set_index(cell)["accuracy_test"].rename("unlinked")
    records = records[records["method"] == "gnn_delete"].join(unlinked, on=cell)
    settings = records["config_json"].map(chosen_settings)
    records["start"] = settings.map(lambda chosen: chosen["start"])
    records["epochs"] = settings.map(lambda chosen: int(chosen["epochs"]))
    records["change"] = records["accuracy_test"] - records["unlinked"]
    return records


def chosen_settings(config_json: str) -> dict[str, object]:
    """The method's settings of a record as a dict."""
    return dict(json.loads(config_json)["settings"])


def collapse_figure(records: pd.DataFrame) -> Figure:
    """Test accuracy against epochs, a line of panels a graph, a column a preset; UtU grey, the printed number dotted.

    Args:
        records: from :func:`collapse_records`.
    """
    graphs = [name for name in GRAPHS if name in set(records["data"])]
    figsize = (7.0, 1.2 + 1.9 * len(graphs))
    fig, axes = plt.subplots(len(graphs), 2, figsize=figsize, sharex=True, sharey=True, squeeze=False)
    for line, preset in zip(axes.T, ("published", "corrected"), strict=True):
        for ax, data in zip(line, graphs, strict=True):
            part = records[(records["data"] == data) & (records["preset"] == preset)]
            ax.axhspan(part["unlinked"].min() - 0.004, part["unlinked"].max() + 0.004, color="0.75", label="UtU")
            for (start, mine), (colour, marker) in zip(
                part.groupby("start", sort=True), ((PALETTE[0], "o"), (PALETTE[1], "s")), strict=False
            ):
                found = mine.groupby("epochs")["accuracy_test"].agg(["mean", "min", "max"])
                label = {"ones": "ones / 1000", "identity": "identity"}[start]
                ax.plot(found.index, found["mean"], marker=marker, color=colour, label=label)
                ax.fill_between(found.index, found["min"], found["max"], color=colour, alpha=0.2)
            if preset == "published" and data in PRINTED_COLLAPSE:
                ax.axhline(PRINTED_COLLAPSE[data], color="0.2", linestyle=":", label="printed")
            ax.set(title=f"{GRAPH_TITLES[data]}, {preset}", xscale="log", ylim=(0, 1))
    _label(list(axes.flat), "epochs", "test accuracy")
    found = _labelled(list(axes.flat))
    fig.legend(found.values(), found.keys(), loc="outside lower center", ncols=4)
    return fig


def collapse_table(records: pd.DataFrame) -> pd.DataFrame:
    """Mean change against UtU in points, over graphs and seeds, with the collapsed runs: rows preset, start and epochs."""
    rows = []
    for (preset, start, epochs), part in records.groupby(["preset", "start", "epochs"]):
        change, low, high = seeds_interval(part.groupby("data")["change"].mean())
        rows.append(
            {
                "preset": preset,
                "start": {"ones": "ones / 1000", "identity": "identity"}[start],
                "epochs": epochs,
                "change, points": as_points(change),
                "interval over graphs": f"[{as_points(low)}, {as_points(high)}]" if np.isfinite(low) else "one graph",
                "collapsed": f"{int((part['status'] == 'collapsed').sum())} of {len(part)}",
            }
        )
    return pd.DataFrame(rows)
