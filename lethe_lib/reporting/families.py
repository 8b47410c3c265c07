"""What the chapters on families of methods show of the published records.

The records of the study ``generic_unlearning``, and those of ``graph_native`` where a function is told so, hold every
method beside its controls. A *cell* is one graph, forget set,
preset and backbone, with its seeds; every function takes the graphs, seeds and backbones that it finds. Collapsed runs
stay in every table and figure, marked as such.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from scipy import stats

from lethe_lib.errors import InputError
from lethe_lib.evaluation import mean_interval
from lethe_lib.reporting.glue import as_text, fixed
from lethe_lib.reporting.style import PALETTE
from lethe_lib.reporting.titles import ATTACK_TITLES, METHOD_TITLES, graph_title
from lethe_lib.study import load_records
from lethe_lib.study.benchmark import BROKEN as BROKEN
from lethe_lib.study.benchmark import sides_of_gold, with_outcomes
from lethe_lib.study.tuning import TOLERATED, tuning_table
from lethe_lib.unlearning import UNLEARNERS

STUDY = "generic_unlearning"
NATIVE = "graph_native"
GRAPHS = ("photo", "computers", "dblp", "cora", "pubmed")

PRINTED = {
    "photo": {
        "utu": (0.908, 0.639),
        "gold": (0.903, 0.635),
        "fine_tuning": (0.888, 0.714),
        "neg_grad": (0.806, 0.597),
        "scrub": (0.854, 0.605),
        "salun": (0.897, 0.727),
    },
    "computers": {
        "utu": (0.799, 0.525),
        "gold": (0.816, 0.587),
        "fine_tuning": (0.791, 0.554),
        "neg_grad": (0.763, 0.661),
        "scrub": (0.479, 0.839),
        "salun": (0.838, 0.543),
    },
}
"""Test accuracy and folded AUC of Link Stealing as the benchmark prints them: GCN, high set, one seed. Its Original is
asked on the retained graph, which is our UtU."""


def family_records(where: str = "published", study: str = STUDY) -> pd.DataFrame:
    """The records of a study's methods and their controls, one row per run, with three columns more.

    Returns:
        the records with ``change`` (test accuracy of the released model minus that of the original, each on the graph on
        which it answers), ``share`` (seconds over the mean seconds of the Golds of the same cell and seed), and
        ``broken`` (collapsed, diverged or failed).
    """
    return with_outcomes(load_records(study, where))


def accuracy_cells(records: pd.DataFrame) -> pd.DataFrame:
    """Accuracy of every method in every cell.

    Args:
        records: from :func:`family_records`.

    Returns:
        one row per (method, preset, backbone, data, forget): mean ``accuracy``; mean ``change`` with ``low`` and ``high``
        of the 95 % t interval over seeds; ``least`` and ``most``, its extremes over seeds; ``spread``, its standard
        deviation; median ``share``; ``broken``, how many runs collapsed, diverged or failed, of ``runs``. A failed run has
        no accuracy, so it enters ``broken`` and ``runs`` alone.
    """
    rows = []
    for key, group in records.groupby(["method", "preset", "backbone", "data", "forget"], sort=False):
        change, low, high = seeds_interval(group["change"])
        rows.append(
            {
                **dict(zip(("method", "preset", "backbone", "data", "forget"), key, strict=True)),
                "accuracy": float(group["accuracy_test"].mean()),
                "change": change,
                "low": low,
                "high": high,
                "least": float(group["change"].min()),
                "most": float(group["change"].max()),
                "spread": float(group["change"].std(ddof=1)),
                "share": float(group["share"].median()),
                "broken": int(group["broken"].sum()),
                "runs": len(group),
            }
        )
    return pd.DataFrame(rows)


def excess_cells(where: str = "published", study: str = STUDY) -> pd.DataFrame:
    """Excess over Gold of every method, attack and cell, with the ends of its bootstrap interval."""
    return load_records(f"{study}_excess", where)


def outcomes(methods: tuple[str, ...], study: str = STUDY, backbone: str = "gcn") -> pd.DataFrame:
    """What became of the methods, over all graphs and both forget sets of one backbone: a table for the reader.

    Returns:
        one row per method and preset: mean and worst change of test accuracy in points with the worst cell, spread over
        seeds (root mean square over cells), collapsed runs, seconds as a percentage of Gold's (median over cells), and for
        every attack the cells whose whole interval lies above or below Gold.
    """
    cells, excess = accuracy_cells(family_records(study=study)), excess_cells(study=study)
    cells, excess = (table[table["backbone"] == backbone] for table in (cells, excess))
    rows = []
    for method in methods:
        for preset in ("corrected", "published"):
            mine = cells[(cells["method"] == method) & (cells["preset"] == preset)]
            if mine.empty:
                continue
            worst = mine.loc[mine["change"].idxmin()]
            row = {
                "method": METHOD_TITLES[method],
                "preset": preset,
                "accuracy, points": as_points(mine["change"].mean()),
                "worst cell": f"{as_points(worst['change'])} ({graph_title(worst['data'])}, {worst['forget']})",
                "seeds": f"±{100 * float(np.sqrt(np.mean(mine['spread'] ** 2))):.1f}",
                "collapsed": f"{mine['broken'].sum()} of {mine['runs'].sum()}",
                "time, % of Gold": as_text(100 * float(mine["share"].median()), 2),
            }
            attacked = excess[(excess["method"] == method) & (excess["preset"] == preset)]
            for name, title in ATTACK_TITLES.items():
                part = attacked[attacked["attack"] == name]
                above, below = sides_of_gold(part)
                row[f"{title} above/below"] = f"{above}/{below} of {len(part)}"
            rows.append(row)
    return pd.DataFrame(rows)


def collapsed_cells(methods: tuple[str, ...], study: str = STUDY, backbone: str = "gcn") -> str:
    """Where runs of the methods collapsed, diverged or failed, as part of a sentence; ``nowhere`` where none did."""
    cells = accuracy_cells(family_records(study=study))
    cells = cells[(cells["broken"] > 0) & cells["method"].isin(methods) & (cells["backbone"] == backbone)]
    words = []
    for (method, preset), part in cells.groupby(["method", "preset"], sort=False):
        places = [f"{graph_title(row.data)} {row.forget} ({row.broken} of {row.runs})" for row in part.itertuples()]
        words.append(f"{METHOD_TITLES[method]} under {preset} on {', '.join(places)}")
    return "; ".join(words) or "nowhere"


def accuracy_figure(methods: tuple[str, ...], study: str = STUDY, backbone: str = "gcn") -> Figure:
    """Change of test accuracy of every method on every graph, one backbone: presets by forget sets.

    The bar runs over the seeds; a cross marks a cell in which a run collapsed or diverged.
    """
    cells = accuracy_cells(family_records(study=study))
    cells = cells[cells["backbone"] == backbone]
    shown = [method for method in methods if method in set(cells["method"])]
    fig, axes = plt.subplots(2, 2, figsize=(9, 1.8 + 0.75 * len(shown)), sharex="row", sharey=True)
    for line, preset in zip(axes, ("corrected", "published"), strict=True):
        for ax, forget in zip(line, ("low", "high"), strict=True):
            part = cells[(cells["preset"] == preset) & (cells["forget"] == forget)]
            for place, colour, row in _places(part, shown):
                ax.plot([100 * row["least"], 100 * row["most"]], [place, place], color=colour, linewidth=1.5)
                ax.plot(100 * row["change"], place, color=colour, **_mark(row["broken"]))
            ax.axvline(0, color="0.5", linewidth=1)
            ax.set(title=f"{preset}, {forget} set")
            ax.xaxis.set_major_locator(MaxNLocator(6))
            at_the_end = {"xycoords": ("axes fraction", "data"), "ha": "right", "va": "center", "color": "0.4"}
            for place, method in enumerate(shown):
                if method not in set(part["method"]):
                    ax.annotate("not run", (0.98, place), **at_the_end)
            ax.set_yticks(range(len(shown)), [METHOD_TITLES[method] for method in shown])
    axes[0, 0].invert_yaxis()
    for ax in axes[-1]:
        ax.set_xlabel("change of test accuracy, points")
    _graph_legend(fig, cells)
    return fig


def excess_figure(methods: tuple[str, ...], preset: str, study: str = STUDY, backbone: str = "gcn") -> Figure:
    """Excess over Gold of every method on every graph, one backbone, with bootstrap intervals: attacks by forget sets.

    Every panel has its own scale. The light band is the interval of Gold against the other Golds, the widest over the
    graphs; a cross marks a cell in which a run collapsed or diverged.
    """
    records, excess = family_records(study=study), excess_cells(study=study)
    cell = ["method", "preset", "backbone", "data", "forget"]
    broken = records.groupby(cell)["broken"].sum().rename("broken")
    excess = excess.join(broken, on=cell)
    excess = excess[(excess["backbone"] == backbone) & (excess["preset"] == preset)]
    shown = [method for method in methods if method in set(excess["method"])]
    fig, axes = plt.subplots(3, 2, figsize=(9, 2.0 + 1.05 * len(shown)), sharey=True)
    for line, (name, title) in zip(axes, ATTACK_TITLES.items(), strict=True):
        for ax, forget in zip(line, ("low", "high"), strict=True):
            part = excess[(excess["attack"] == name) & (excess["forget"] == forget)]
            gold = part[part["method"] == "gold"]
            ax.axvspan(gold["excess_low"].min(), gold["excess_high"].max(), color="0.85", zorder=0)
            for place, colour, row in _places(part, shown):
                ax.plot([row["excess_low"], row["excess_high"]], [place, place], color=colour, linewidth=1.5)
                ax.plot(row["excess"], place, color=colour, **_mark(row["broken"]))
            ax.axvline(0, color="0.5", linewidth=1)
            ax.set(title=f"{title}, {forget} set")
            ax.xaxis.set_major_locator(MaxNLocator(5))
            ax.set_yticks(range(len(shown)), [METHOD_TITLES[method] for method in shown])
    axes[0, 0].invert_yaxis()
    for ax in axes[-1]:
        ax.set_xlabel(f"AUC above that of Gold, preset {preset}")
    _graph_legend(fig, excess)
    return fig


def excess_sentence(methods: tuple[str, ...], preset: str, study: str = STUDY, backbone: str = "gcn") -> str:
    """How many cells of the methods lie above or below Gold with their whole interval, as part of a sentence.

    ``by chance`` is the number of cells of an attack that 95 % intervals leave outside where no method differs from Gold.

    Example:
        ``LinkTeller 1 above and 0 below, Link Stealing 3 above and 12 below, E-UMIA 0 above and 2 below, each of 40 cells
        (by chance 2)``.
    """
    excess = excess_cells(study=study)
    excess = excess[(excess["backbone"] == backbone) & (excess["preset"] == preset) & excess["method"].isin(methods)]
    words = []
    for name, title in ATTACK_TITLES.items():
        part = excess[excess["attack"] == name]
        above, below = sides_of_gold(part)
        words.append(f"{title} {above} above and {below} below")
    cells = len(excess) // len(ATTACK_TITLES)
    return f"{', '.join(words)}, each of {cells} cells (by chance {0.05 * cells:g})"


def backbones_table(methods: tuple[str, ...]) -> pd.DataFrame:
    """Other backbones than the GCN beside it, preset ``corrected``: mean change of test accuracy in points.

    Returns:
        one row per method, one column per backbone on the graph that has several; a note says where runs collapsed.
    """
    cells = accuracy_cells(family_records())
    others = cells[(cells["backbone"] != "gcn") & cells["method"].isin(methods)]
    cells = cells[cells["data"].isin(others["data"]) & (cells["preset"] == "corrected") & cells["method"].isin(methods)]
    rows = []
    for method in methods:
        row = {"method": METHOD_TITLES[method]}
        for backbone in dict.fromkeys(cells["backbone"]):
            mine = cells[(cells["method"] == method) & (cells["backbone"] == backbone)]
            note = " (collapsed)" if mine["broken"].sum() else ""
            row[{"sage": "SAGE"}.get(backbone, backbone.upper())] = f"{as_points(mine['change'].mean())}{note}"
        rows.append(row)
    return pd.DataFrame(rows)


# The benchmark's own table beside ours


def prediction_interval(values: pd.Series, level: float = 0.95) -> tuple[float, float]:
    """Where one further seed falls with the given probability, if seeds are normal: mean ± t s sqrt(1 + 1/n).

    Args:
        values: at least two numbers, one per seed.
        level: of the interval.

    Example:
        >>> [round(end, 2) for end in prediction_interval(pd.Series([1.0, 2.0, 3.0]))]
        [-2.97, 6.97]
    """
    numbers = np.asarray(values, dtype=float)
    mean, _, _ = mean_interval(numbers)  # refuses fewer than two values and values that are not finite
    half = stats.t.ppf(0.5 + level / 2, len(numbers) - 1) * numbers.std(ddof=1) * np.sqrt(1 + 1 / len(numbers))
    return mean - float(half), mean + float(half)


def printed_rows(methods: tuple[str, ...], data: str = "photo") -> pd.DataFrame:
    """The benchmark's printed row and ours under preset ``published``: GCN, high set, of one graph.

    A printed number comes from one seed. It agrees (``yes``) if it lies within the range of our seeds; ``perhaps`` if it
    lies outside but where one further seed of ours falls with probability 0.95; else ``no``. Gold is the one that starts
    from the original's initial weights, as in the benchmark.

    Returns:
        one row per method: for ``accuracy`` and ``stealing`` (folded AUC of Link Stealing) the ``_printed`` value, ``_ours``
        (mean), ``_least`` and ``_most`` (over seeds), ``_low`` and ``_high`` (prediction interval), ``_agrees``; and
        ``broken``, how many runs collapsed or diverged.

    Raises:
        InputError: the records lack such a row.
    """
    records = family_records()
    records = records[(records["data"] == data) & (records["forget"] == "high") & (records["backbone"] == "gcn")]
    records = records[(records["preset"] == "published") & records["method_seed"].isna()]
    rows = []
    for method in methods:
        mine = records[records["method"] == method]
        if mine.empty:
            raise InputError(f"no published-preset record of {method} on {data}, high set: run the study {STUDY} first")
        row = {"method": method, "broken": int(mine["broken"].sum()), "seeds": len(mine)}
        columns = {"accuracy": "accuracy_test", "stealing": "link_stealing_auc_folded"}
        for (name, column), printed in zip(columns.items(), PRINTED[data][method], strict=True):
            low, high = np.clip(prediction_interval(mine[column]), 0.0, 1.0).tolist()
            least, most = float(mine[column].min()), float(mine[column].max())
            row |= {
                f"{name}_printed": printed,
                f"{name}_ours": float(mine[column].mean()),
                f"{name}_least": least,
                f"{name}_most": most,
                f"{name}_low": low,
                f"{name}_high": high,
                f"{name}_agrees": "yes" if least <= printed <= most else "perhaps" if low <= printed <= high else "no",
            }
        rows.append(row)
    return pd.DataFrame(rows)


def printed_table(rows: pd.DataFrame) -> pd.DataFrame:
    """:func:`printed_rows` as a reader sees it: accuracy in percent, both numbers with our range over seeds."""
    shown = []
    for row in rows.to_dict("records"):
        line = {"row": "Original" if row["method"] == "utu" else METHOD_TITLES[row["method"]]}
        for name, title, scale, digits in (("accuracy", "accuracy, %", 100, 1), ("stealing", "Link Stealing", 1, 3)):
            values = [scale * row[f"{name}_{part}"] for part in ("printed", "ours", "least", "most")]
            printed, ours, least, most = (f"{value:.{digits}f}" for value in values)
            line |= {
                f"{title}, printed": printed,
                f"{title}, ours (seeds)": f"{ours} ({least} to {most})",
                f"{title}, agrees": row[f"{name}_agrees"],
            }
        shown.append(line)
    return pd.DataFrame(shown)


def mismatch_sentences(rows: pd.DataFrame) -> list[str]:
    """A sentence for every number of :func:`printed_rows` outside our seeds, measured from the Original's row too.

    Args:
        rows: from :func:`printed_rows`, with the row ``utu``.
    """
    original = rows.set_index("method").loc["utu"]
    kinds = (("accuracy", "accuracy", 100, 1, " points"), ("stealing", "Link Stealing (folded)", 1, 3, ""))
    sentences = []
    for row in rows.to_dict("records"):
        title = "Original" if row["method"] == "utu" else METHOD_TITLES[row["method"]]
        for name, what, scale, digits, unit in kinds:
            if row[f"{name}_agrees"] == "yes":
                continue
            parts = ("ours", "printed", "low", "high")
            ours, printed, low, high = (f"{scale * row[f'{name}_{part}']:.{digits}f}" for part in parts)
            would = "might" if row[f"{name}_agrees"] == "perhaps" else "would not"
            sentence = f"{title}, {what}: {ours} against {printed} printed"
            if row["method"] != "utu":
                mine, theirs = (row[f"{name}_{part}"] - original[f"{name}_{part}"] for part in ("ours", "printed"))
                direction = "the same direction" if mine * theirs > 0 else "not the same direction"
                sentence += f" ({scale * mine:+.{digits}f} against {scale * theirs:+.{digits}f}{unit}"
                sentence += f" from the Original of its table, {direction})"
            sentences.append(f"{sentence}; a further seed of ours {would} give it ({low} to {high}).")
    return sentences


# The search for settings


def search(methods: tuple[str, ...]) -> pd.DataFrame:
    """The rows of ``tuning_table`` that belong to the methods, of the published search."""
    table = tuning_table(load_records("tuning"))
    return table[table["method"].isin(methods)]


def chosen_table(methods: tuple[str, ...]) -> pd.DataFrame:
    """The chosen settings of the methods, with what the rule weighed.

    Returns:
        one row a method: ``chosen``; ``admissible`` settings of those tried; ``accuracy``, change on validation nodes in points;
        ``loss`` on the forget samples and ``aim``, the reference loss, in nats; ``change`` of the weights.
    """
    table = search(methods)
    rows = []
    for method in methods:
        tried = table[table["method"] == method]
        for row in tried[tried["chosen"]].to_dict("records"):
            rows.append(
                {
                    "method": METHOD_TITLES[method],
                    "chosen": ", ".join(
                        f"{name.replace('_', ' ')} {value:g}" for name, value in row["settings"].items()
                    ),
                    "admissible": f"{tried['admissible'].sum()} of {len(tried)}",
                    "accuracy": as_points(row["accuracy_change"]),
                    "loss": row["forget_loss"],
                    "aim": row["reference_loss"],
                    "change": row["weight_change"],
                }
            )
    return pd.DataFrame(rows)


def search_figure(methods: tuple[str, ...]) -> Figure:
    """Every setting that was tried: what it costs against how near it comes to what the rule aims at, one panel a method.

    Colour is the first setting of the grid; the chosen setting is ringed; left of the dotted line a setting is not
    admissible.
    """
    table = search(methods)
    columns = min(2, len(methods))
    lines = -(-len(methods) // columns)
    fig, axes = plt.subplots(lines, columns, figsize=(3.5 * columns, 0.4 + 2.6 * lines), squeeze=False)
    for ax, method in zip(axes.flat, methods, strict=False):
        tried = table[table["method"] == method]
        aim = "gap" if UNLEARNERS[method].uses_forget_samples else "weight_change"
        _search_panel(ax, tried, aim)
        ax.set(title=METHOD_TITLES[method], ylabel=f"{aim.replace('_', ' ')}{', nats' if aim == 'gap' else ''}")
    for ax in axes.flat[len(methods) :]:
        ax.axis("off")
    fig.supxlabel("change of validation accuracy on the worst graph, points")
    return fig


def _search_panel(ax: Axes, tried: pd.DataFrame, aim: str) -> None:
    """One method's panel; the horizontal axis is linear within a point of zero and logarithmic beyond."""
    ax.set_xscale("symlog", linthresh=1.0)
    ticks = [-80, -30, -10, -3, -1, 0, 1]
    ax.set_xticks(ticks, [str(tick) for tick in ticks])
    least, most = 100 * tried["accuracy_change"].min(), 100 * tried["accuracy_change"].max()
    ax.set_xlim(1.3 * min(least, -1.0), max(1.3 * most, 0.3))
    main = next(iter(tried["settings"].iloc[0]))
    values = tried["settings"].map(lambda settings: settings[main])
    for colour, value in zip(PALETTE, sorted(set(values)), strict=False):
        part = tried[values == value]
        ax.plot(100 * part["accuracy_change"], part[aim], "o", color=colour, markersize=5, label=f"{value:g}")
    chosen = tried[tried["chosen"]]
    ax.plot(100 * chosen["accuracy_change"], chosen[aim], "o", color="black", fillstyle="none", markersize=11)
    ax.axvline(-100 * TOLERATED, color="0.5", linestyle=":")
    ax.legend(title=main.replace("_", " "), fontsize=7, title_fontsize=7)


# Helpers


def seeds_interval(values: pd.Series) -> tuple[float, float, float]:
    """``mean_interval`` over the runs that have a value; with one value, the value and an interval that says nothing.

    Args:
        values: one number per run; NaN for a run that failed.

    Returns:
        mean, lower end, upper end; minus and plus infinity as ends where there is one value, NaN where there is none.
    """
    values = values.dropna()
    if len(values) >= 2:
        return mean_interval(values)
    return (float(values.iloc[0]), -np.inf, np.inf) if len(values) else (np.nan, np.nan, np.nan)


def as_points(change: float) -> str:
    """A change of a share in percentage points, signed, one decimal.

    Example:
        >>> as_points(-0.0123)
        '-1.2'
    """
    return fixed(100 * change, 1)


def _places(part: pd.DataFrame, methods: list[str]):
    """Height, colour and row for every method and graph: graphs of a method lie side by side in the order of GRAPHS."""
    names = _graphs(part)
    for line, method in enumerate(methods):
        for number, data in enumerate(names):
            offset = 0.6 * ((number + 0.5) / len(names) - 0.5)
            for row in part[(part["method"] == method) & (part["data"] == data)].to_dict("records"):
                yield line + offset, _colour(data), row


def _graphs(table: pd.DataFrame) -> list[str]:
    present = set(table["data"])
    return [name for name in GRAPHS if name in present] + sorted(present - set(GRAPHS))


def _colour(data: str) -> str:
    return PALETTE[list(GRAPHS).index(data) if data in GRAPHS else len(GRAPHS)]


def _graph_legend(fig: Figure, table: pd.DataFrame) -> None:
    names = _graphs(table)
    handles = [plt.Line2D([], [], color=_colour(name), marker="o", linewidth=1.5) for name in names]
    handles.append(plt.Line2D([], [], color="0.3", linestyle="", **_mark(broken=True)))
    labels = [*(graph_title(name) for name in names), "a run collapsed"]
    fig.legend(handles, labels, loc="outside lower center", ncols=len(labels))


def _mark(broken: bool) -> dict[str, object]:
    """Marker of a cell: a point, or a cross where a run collapsed or diverged."""
    return {"marker": "x", "markersize": 8, "markeredgewidth": 2} if broken else {"marker": "o", "markersize": 5}
