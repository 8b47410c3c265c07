"""The figures of chapter 14: fronts, low against high sets, critical differences."""

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator

from lethe_lib.evaluation import Ranking
from lethe_lib.reporting.style import PALETTE
from lethe_lib.reporting.titles import ATTACK_TITLES, BACKBONE_TITLES, GRAPH_TITLES, METHOD_TITLES, method_title
from lethe_lib.study.benchmark import ATTACK_NAMES
from lethe_lib.unlearning import UNLEARNERS

CONTROL_MARKS = {
    "gold": {"marker": "_", "color": "black", "markersize": 11, "markeredgewidth": 2},
    "untrained": {"marker": "x", "markersize": 7, "markeredgewidth": 2},
    "original": {"marker": "o", "markersize": 6, "markeredgewidth": 1.6, "fillstyle": "none"},
}
"""Control -> its mark, which has the colour of the forget set where it has none of its own."""
KINDS = {"generic": ("o", PALETTE[0]), "graph-native": ("s", PALETTE[1]), "addition": ("^", PALETTE[2])}


def pareto_front(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Which points no other point beats: smaller is better on both axes, and equal points beat nobody.

    Args:
        first, second: (n,) finite numbers.

    Returns:
        (n,) bool.

    Example:
        >>> pareto_front(np.array([1.0, 2.0, 2.0]), np.array([2.0, 1.0, 3.0])).tolist()
        [True, True, False]
    """
    better = (first[:, None] <= first) & (second[:, None] <= second)
    strictly = (first[:, None] < first) | (second[:, None] < second)
    return ~(better & strictly).any(axis=0)


def distance_from_gold(board: pd.DataFrame, attacks: Sequence[str] = ATTACK_NAMES) -> pd.Series:
    """The largest mean distance of an AUC from Gold's among the attacks; neither side of Gold is good.

    Args:
        board: from ``leaderboard``. attacks: those that count.
    """
    return board[[f"{name}_distance" for name in attacks]].max(axis=1)


def fronts_figure(
    board: pd.DataFrame, retrained: Mapping[str, float] | None = None, attacks: Sequence[str] = ATTACK_NAMES
) -> Figure:
    """Utility, leakage and cost two at a time, a point per method; the line joins the methods that no other beats, whose
    names stand above the panel.

    Leakage is the distance from Gold; where residual memory is published, a further panel shows it. Axes are logarithmic
    where all values are positive, that of residual memory apart.

    Args:
        board: from ``leaderboard``.
        retrained: method -> share of its runs that trained again; those above one half are hollow and on no front.
        attacks: those whose distance from Gold counts.
    """
    again = {name: share for name, share in (retrained or {}).items() if share > 0.5 and name in set(board["method"])}
    board = board[board["kind"] != "control"].assign(
        loss=-100 * board["change"], leak=distance_from_gold(board, attacks)
    )
    board["again"] = board["method"].isin(again)
    titles = {
        "share": "seconds over Gold's",
        "loss": "loss of accuracy, points",
        "leak": "mean distance from Gold, AUC",
    }
    panels = [("share", "loss"), ("share", "leak"), ("loss", "leak")]
    if board["residual"].notna().any():
        titles["residual"] = "residual memory, Cora low"
        panels.append(("share", "residual"))
    lines = -(-len(panels) // 2)
    fig, axes = plt.subplots(lines, 2, figsize=(9.5, 0.5 + 3.9 * lines))
    for ax, (x, y) in zip(axes.flat, panels, strict=False):
        _front_panel(ax, board.dropna(subset=[x, y]), x, y)
        logarithmic = {name: name != "residual" and bool((board[name].dropna() > 0).all()) for name in (x, y)}
        scales = {name: "log" if flag else "linear" for name, flag in logarithmic.items()}
        ax.set(xlabel=titles[x], ylabel=titles[y], xscale=scales[x], yscale=scales[y])
        for axis, name in ((ax.xaxis, x), (ax.yaxis, y)):
            if name != "share" and logarithmic[name]:
                axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
                axis.set_major_formatter("{x:g}")
                axis.set_minor_formatter("")
    for ax in axes.flat[len(panels) :]:
        ax.axis("off")
    handles = [plt.Line2D([], [], color=c, marker=m, linestyle="none", label=kind) for kind, (m, c) in KINDS.items()]
    if again:
        names = ", ".join(f"{METHOD_TITLES[name]} in {100 * share:.0f} %" for name, share in again.items())
        style = {"marker": "o", "linestyle": "none", "color": "0.3", "fillstyle": "none"}
        handles.append(plt.Line2D([], [], label=f"trained again ({names} of runs)", **style))
    fig.legend(handles=handles, loc="outside lower center", ncols=2)
    return fig


def _front_panel(ax: Axes, part: pd.DataFrame, x: str, y: str) -> None:
    for kind, (marker, colour) in KINDS.items():
        own = part[part["kind"] == kind]
        for fill, points in (("full", own[~own["again"]]), ("none", own[own["again"]])):
            ax.plot(points[x], points[y], marker, color=colour, markersize=6, fillstyle=fill)
    part = part[~part["again"]]
    front = part[pareto_front(part[x].to_numpy(), part[y].to_numpy())].sort_values(x)
    ax.plot(front[x], front[y], color="0.2", linewidth=1.4, drawstyle="steps-post")
    for number, row in enumerate(front.to_dict("records"), 1):
        ax.annotate(str(number), (row[x], row[y]), (-9, -11), textcoords="offset points", fontsize=9)
    names = [f"{number} {method_title(name)}" for number, name in enumerate(front["method"], 1)]
    lines = [", ".join(names[first : first + 3]) for first in range(0, len(names), 3)]
    ax.set_title("\n".join(lines), fontsize=9)
    ax.margins(0.12)


def low_high_figure(excess: pd.DataFrame, preset: str = "corrected") -> Figure:
    """AUC of every attack on low and high sets, GCN: a bar over the methods; Gold a line, Untrained a cross, Original a ring.

    Original answers on the full graph, all others on the retained one.
    """
    part = excess[(excess["preset"] == preset) & (excess["backbone"] == "gcn") & excess["forget"].isin(["low", "high"])]
    kinds = part["method"].map(lambda name: UNLEARNERS[name].kind)
    graphs = [name for name in GRAPH_TITLES if name in set(part["data"])]
    fig, axes = plt.subplots(2, 2, figsize=(9, 7.2), sharey=True)
    for ax, attack in zip(axes.flat, ATTACK_NAMES, strict=False):
        for colour, forget, shift in ((PALETTE[1], "low", -0.17), (PALETTE[0], "high", 0.17)):
            cell = part[(part["attack"] == attack) & (part["forget"] == forget)]
            for place, data in enumerate(graphs):
                own = cell[cell["data"] == data]
                methods = own[kinds.loc[own.index] != "control"]["auc"]
                ax.plot([place + shift] * 2, [methods.min(), methods.max()], color=colour, linewidth=6, alpha=0.45)
                for method, style in CONTROL_MARKS.items():
                    areas = own[own["method"] == method]["auc"]
                    ax.plot([place + shift] * len(areas), areas, linestyle="none", **{"color": colour, **style})
        ax.axhline(0.5, color="0.5", linewidth=1)
        ax.set_title(ATTACK_TITLES[attack])
        ax.set_xticks(range(len(graphs)), [GRAPH_TITLES[name] for name in graphs], rotation=45, ha="right")
    for ax in axes[:, 0]:
        ax.set_ylabel("AUC")
    handles = [
        plt.Line2D([], [], color=PALETTE[1], linewidth=6, alpha=0.45, label="methods, low set"),
        plt.Line2D([], [], color=PALETTE[0], linewidth=6, alpha=0.45, label="methods, high set"),
        *(
            plt.Line2D([], [], label=METHOD_TITLES[name], linestyle="none", **{"color": "0.4", **style})
            for name, style in CONTROL_MARKS.items()
        ),
    ]
    axes[1, 1].axis("off")
    axes[1, 1].legend(handles=handles, loc="center")
    return fig


def ranking_figure(rankings: dict[str, Ranking]) -> Figure:
    """Critical-difference diagrams, one panel per criterion: mean ranks, best on the left, bars join what is not told apart."""
    tallest = max(len(found.mean_ranks) for found in rankings.values())
    fig, axes = plt.subplots(len(rankings), 1, figsize=(9, len(rankings) * (1.3 + 0.17 * tallest)), squeeze=False)
    for ax, (title, found) in zip(axes.flat, rankings.items(), strict=True):
        _ranking_panel(ax, found, title)
    return fig


def _ranking_panel(ax: Axes, found: Ranking, title: str) -> None:
    """Names stand left for the better half and right for the other, each joined to its mean rank by a line."""
    ranks, count = found.mean_ranks, len(found.mean_ranks)
    half = -(-count // 2)
    ax.set(xlim=(1 - 0.22 * count, count + 0.22 * count), ylim=(half + 1.2, -1.6), title=title)
    ax.plot([1, count], [0, 0], color="black", linewidth=1)
    for tick in range(1, count + 1):
        ax.plot([tick, tick], [0, -0.2], color="black", linewidth=1)
        ax.text(tick, -0.35, str(tick), ha="center", va="bottom", fontsize=8)
    for place, (name, rank) in enumerate(ranks.items()):
        left = place < half
        line = 1.2 + (place if left else count - 1 - place)
        end = 1 - 0.3 if left else count + 0.3
        ax.plot([rank, rank, end], [0, line, line], color="0.55", linewidth=0.8)
        label = f"{method_title(name)}  {rank:.1f}" if left else f"{rank:.1f}  {method_title(name)}"
        ax.text(
            end, line, f"{label} " if left else f" {label}", ha="right" if left else "left", va="center", fontsize=8
        )
    for level, (first, last) in enumerate(found.groups):
        height = 0.25 + 0.22 * (level % 4)
        ax.plot([ranks[first] - 0.05, ranks[last] + 0.05], [height] * 2, color=PALETTE[3], linewidth=3)
    ax.plot([1, 1 + found.critical_difference], [-1.25, -1.25], color="black", linewidth=2)
    ax.text(
        1 + found.critical_difference + 0.1,
        -1.25,
        f"critical difference, {found.settings} settings",
        va="center",
        fontsize=8,
    )
    ax.axis("off")


def attention_figure(table: pd.DataFrame) -> Figure:
    """Rank correlation of WalkCentrality with displacement, a group per graph and a marker per backbone, with t intervals.

    Args:
        table: from ``claims_benchmark.rank_table``.
    """
    graphs = list(dict.fromkeys(table["data"]))
    fig, ax = plt.subplots(figsize=(7.5, 3.8))
    for number, (backbone, title) in enumerate(BACKBONE_TITLES.items()):
        own = table[table["backbone"] == backbone].set_index("data").reindex(graphs)
        places = np.arange(len(graphs)) + 0.14 * (number - 2)
        reach = [own["rank"] - own["low"], own["high"] - own["rank"]]
        ax.errorbar(places, own["rank"], reach, fmt="osD^v"[number], color=PALETTE[number], label=title, linewidth=1.5)
    ax.axhline(0, color="0.5", linewidth=1)
    ax.set_xticks(range(len(graphs)), [GRAPH_TITLES.get(name, name) for name in graphs])
    ax.set_ylabel("rank correlation")
    fig.legend(*ax.get_legend_handles_labels(), loc="outside lower center", ncols=5)
    return fig
