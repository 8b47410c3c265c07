"""What the chapter on attacks shows of the records of ``attack_controls``.

A *setting* is a graph and a forget set. Tables and figures take whichever graphs, sets and methods the records hold.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from lethe_lib.attacks.strata import STRATA
from lethe_lib.reporting.style import PALETTE
from lethe_lib.reporting.titles import GRAPH_TITLES, METHOD_TITLES, graph_title
from lethe_lib.study import load_records
from lethe_lib.study.attack_controls import MAIN, METHODS, OTHER_METHODS, RUNGS, TREND_METHODS, WIDER, question
from lethe_lib.study.benchmark import benchmark_records, sides_of_gold

STUDY = "attack_controls"
ATTACKS = {
    "link_teller": "LinkTeller",
    "link_stealing": "Link Stealing",
    "link_stealing_supervised": "Link Stealing, supervised",
    "edge_toggle": "Edge toggle",
    "e_umia": "E-UMIA",
    "e_umia_edges": "E-UMIA on edges",
    "trend_attack": "TrendAttack",
}
MAIN_ATTACKS = tuple(name for name in ATTACKS if name in {asked for asked, _, _ in MAIN})
RUNG_TITLES = dict(zip(RUNGS, ("none", "partial", "retained", "full"), strict=True))
CONTROL_TITLES = ("Original, full graph", "Original's weights (UtU)", "Gold", "Untrained")
FEWEST_NEGATIVES = 20
"""With fewer negatives in a hop class its AUC is not shown: a single one can move it by more than 0.05."""

SAME = 0.02
"""An AUC that moves by less than this when training is left out is read off the graph, not off the model."""


def controls_records(where: str = "published") -> pd.DataFrame:
    """One row per run, with the numbers of every question as columns ``<attack>.<query>.<negatives>_<number>``."""
    return load_records(STUDY, where)


def controls_excess(where: str = "published") -> pd.DataFrame:
    """One row per graph, forget set, question and method: AUC in excess of Gold, and whether the attack is blind there."""
    return load_records(f"{STUDY}_excess", where)


def structure_table() -> pd.DataFrame:
    """For every attack on the retained graph: what Gold has, what training adds, and whether memory is seen.

    Returns:
        one row per attack and kind of negatives, means over settings: the AUC of the Original on the full graph (empty where
        the attack was not asked there), of Gold and of Untrained, the mean distance of the last to Gold, the excess of the
        original's weights and of the Memoriser, in how many settings the attack is blind, and what it reads: ``the graph``
        if Untrained is on average within ``SAME`` of Gold, else ``the model too``; ``, blind`` where that is so in most
        settings.
    """
    table = controls_excess()
    table = table[table["attack"].isin(MAIN_ATTACKS)]
    full = table[(table["query"] == "original") & (table["method"] == "utu")]
    full = full.groupby(["attack", "negatives"])["auc"].mean()
    table = table[table["query"] == "retained"]
    rows = []
    for name, negatives in _attacks_and_negatives(table):
        part = table[(table["attack"] == name) & (table["negatives"] == negatives)]
        by_method = {method: rows_of.set_index(["data", "forget"]) for method, rows_of in part.groupby("method")}
        gold = by_method["gold"]
        moved = (by_method["untrained"]["auc"] - gold["auc"]).abs().mean()
        blind = gold["blind"].astype(bool)
        reads = "the graph" if moved < SAME else "the model too"
        rows.append(
            {
                "attack": ATTACKS[name],
                "negatives": negatives or "(nodes)",
                "Original, full graph": full.get((name, negatives), np.nan),
                "Gold": gold["auc"].mean(),
                "Untrained": by_method["untrained"]["auc"].mean(),
                "Untrained, distance to Gold": moved,
                "original's weights, excess": by_method["utu"]["excess"].mean(),
                "Memoriser, excess": by_method["memoriser"]["excess"].mean(),
                "blind": f"{int(blind.sum())} of {len(blind)}",
                "reads": f"{reads}, blind" if blind.mean() > 0.5 else reads,
            }
        )
    return pd.DataFrame(rows)


def setting_table(data: str, forget: str, negatives: str) -> pd.DataFrame:
    """All models of one setting: AUC of every attack, Original on the full graph first.

    Args:
        data, forget: the setting. negatives: ``uniform`` or ``matched``; E-UMIA has none of its own.

    Returns:
        one row per model, one column per attack: AUC, or empty where the question was not asked.
    """
    table = controls_excess()
    table = table[(table["data"] == data) & (table["forget"] == forget) & table["negatives"].isin((negatives, ""))]
    rows = []
    for title, method, query in _models():
        part = table[(table["method"] == method) & (table["query"] == query)].set_index("attack")["auc"]
        if len(part):
            rows.append({"model": title} | {ATTACKS[name]: part.get(name, np.nan) for name in MAIN_ATTACKS})
    return pd.DataFrame(rows)


def rate_table(negatives: str) -> pd.DataFrame:
    """True-positive rate at 1 % false positives, mean over settings: models as rows, attacks as columns."""
    table = controls_excess()
    table = table[table["negatives"].isin((negatives, "")) & table["attack"].isin(MAIN_ATTACKS)]
    rows = []
    for title, method, query in _models():
        part = table[(table["method"] == method) & (table["query"] == query)].groupby("attack")["tpr"].mean()
        rows.append({"model": title} | {ATTACKS[name]: part.get(name, np.nan) for name in MAIN_ATTACKS})
    return pd.DataFrame(rows)


def trend_table() -> pd.DataFrame:
    """TrendAttack on every model it was asked about, means over settings.

    Returns:
        one row per model and for either kind of negatives: AUC of ``forgotten`` edges, of ``other edges`` and of ``all``, the
        rate of forgotten edges found at ``1 %`` false positives, and in how many settings the interval of the excess over
        Gold lies ``above, below`` zero.
    """
    records, excess, rows = controls_records(), controls_excess(), []
    excess = excess[excess["attack"] == "trend_attack"]
    if excess.empty:
        return pd.DataFrame()
    for title, method, query in _models(TREND_METHODS):
        own = excess[(excess["method"] == method) & (excess["query"] == query)]
        row = {"model": title}
        for negatives in ("uniform", "matched"):
            tag, part = question("trend_attack", query, negatives), own[own["negatives"] == negatives]
            settings = records[records["method"] == method].groupby(["data", "forget"])
            for name, number in (("forgotten", "auc"), ("other edges", "auc_members"), ("all", "auc_all")):
                row[f"{negatives}: {name}"] = float(settings[f"{tag}_{number}"].mean().mean())
            row[f"{negatives}: 1 %"] = part["tpr"].mean()
            if query == "retained":
                row[f"{negatives}: above, below"] = _sides(part)
        rows.append(row)
    return pd.DataFrame(rows)


def _sides(part: pd.DataFrame) -> str:
    return "{}, {} of {}".format(*sides_of_gold(part), len(part))


def blind_settings(attack: str) -> str:
    """Where an attack is blind on the retained graph, per kind of negatives, as part of a sentence."""
    table = controls_excess()
    table = table[(table["attack"] == attack) & (table["query"] == "retained") & (table["method"] == "gold")]
    words = []
    for negatives, part in table.groupby("negatives", sort=False):
        places = [f"{graph_title(row.data)}, {row.forget}" for row in part[part["blind"].astype(bool)].itertuples()]
        words.append(f"{negatives} {len(places)} of {len(part)}" + (f" ({'; '.join(places)})" if places else ""))
    return "; ".join(words) or "not asked"


def kept_edges_table() -> pd.DataFrame:
    """E-UMIA on edges over all settings: forgotten edges against kept ones, and against pairs that were never edges.

    Returns:
        one row per model and for either kind of negatives: mean ``AUC`` over settings, the rate found at ``1 %`` false
        positives, and in how many settings the interval of the excess over Gold lies ``above, below`` zero; controls first.
    """
    table = controls_excess()
    table = table[table["attack"] == "e_umia_edges"]
    rows = []
    for title, method, query in _models(METHODS + OTHER_METHODS):
        own = table[(table["method"] == method) & (table["query"] == query)]
        if own.empty:
            continue
        row = {"model": title}
        for negatives in ("kept edges", "matched"):
            part = own[own["negatives"] == negatives]
            row |= {f"{negatives}: AUC": part["auc"].mean(), f"{negatives}: 1 %": part["tpr"].mean()}
            row[f"{negatives}: above, below"] = _sides(part)
        rows.append(row)
    return pd.DataFrame(rows)


def community_margins() -> pd.DataFrame:
    """LinkTeller on community sets beside the low and the high set: retained graph, uniform negatives.

    The area of a set is the mean over seeds of the original's weights (every model has the same, to the third digit).

    Returns:
        one row per graph and definition: ``area``, ``low_set``, ``high_set``; ``margin``, the distance to the nearer of the
        two, positive between them, with ``low`` and ``high`` of its 95 % interval.
    """
    records = controls_records()
    records = records[(records["method"] == "utu") & records["link_teller.retained.uniform_auc"].notna()]
    records = records[records["data"] != "arxiv-like"]
    rows = []
    for data, part in records.groupby("data", sort=False):
        sets = {forget: _area(rows_of) for forget, rows_of in part.groupby("forget")}
        for forget, definition in (("community", "label cohort"), ("community_louvain", "Louvain community")):
            if forget not in sets:
                continue
            area, error = sets[forget]
            (low_area, low_error), (high_area, high_error) = sets["low"], sets["high"]
            sides = [(low_area - area, low_error), (area - high_area, high_error)]
            margin, other = min(sides)
            half = 1.96 * np.hypot(error, other)
            row = {"data": data, "definition": definition, "area": area, "low_set": low_area, "high_set": high_area}
            rows.append(row | {"margin": margin, "low": margin - half, "high": margin + half})
    return pd.DataFrame(rows)


def hanley_mcneil(area: float, positives: float, negatives: float) -> float:
    """Standard error of an AUC from its value and the sizes of the classes (Hanley and McNeil, Radiology 1982).

    Example:
        >>> round(hanley_mcneil(0.5, 100, 100), 3)
        0.041
    """
    first, second = area / (2 - area), 2 * area**2 / (1 + area)
    variance = area * (1 - area) + (positives - 1) * (first - area**2) + (negatives - 1) * (second - area**2)
    return float(np.sqrt(variance / (positives * negatives)))


def strata_table(name: str = "link_teller", negatives: str = "uniform") -> pd.DataFrame:
    """An attack by hop class and by model, on low and high sets of every graph, mean over seeds.

    Returns:
        one row per setting: share of the pairs within two hops of either kind, in percent; AUC of the flag that says so; AUC
        over all pairs of the Original on the full graph and of its weights, Gold and Untrained on the retained one; AUC of
        the original's weights within two hops, beyond three, and stratified, with the negatives, added over seeds, of the class
        (for the stratified one, of the smallest class with forgotten edges). Below ``FEWEST_NEGATIVES`` the AUC is missing.
    """
    records, tag, full = (
        controls_records(),
        question(name, "retained", negatives),
        question(name, "original", negatives),
    )
    records = records[records["forget"].isin(("low", "high"))]
    records = records[records[f"{tag}_auc"].notna() & (records["data"] != "arxiv-like")]
    rows = []
    for (data, forget), part in records.groupby(["data", "forget"], sort=False):
        own = part[part["method"] == "utu"]
        mean = own[[c for c in part if c.startswith(f"{tag}_")]].mean().rename(lambda c: c.removeprefix(f"{tag}_"))
        near = [
            100 * mean[f"{kind}_2"] / sum(mean[f"{kind}_{s}"] for s in STRATA.values())
            for kind in ("forgotten", "negatives")
        ]
        areas = part.groupby("method")[f"{tag}_auc"].mean()
        negatives_of = {s: int(own[f"{tag}_negatives_{s}"].sum()) for s in STRATA.values()}
        smallest = min(count for s, count in negatives_of.items() if mean[f"forgotten_{s}"] > 0)
        rows.append(
            {
                "setting": f"{graph_title(data)}, {forget}",
                "forgotten within 2 hops, %": near[0],
                "negatives within 2 hops, %": near[1],
                "AUC of that bare flag": mean["auc_near"],
                "Original, full graph": own[f"{full}_auc"].mean(),
                "original's weights": areas["utu"],
                "Gold": areas["gold"],
                "Untrained": areas["untrained"],
                "negatives, 2 hops": negatives_of["2"],
                "weights, 2 hops": _if_enough(mean["auc_2"], negatives_of["2"]),
                "negatives beyond": negatives_of[">3"],
                "AUC beyond": _if_enough(mean["auc_>3"], negatives_of[">3"]),
                "negatives, smallest class": smallest,
                "stratified": _if_enough(mean["auc_stratified"], smallest),
            }
        )
    return pd.DataFrame(rows)


def control_areas(attack: str, preset: str, forget: str) -> pd.DataFrame:
    """An attack as the benchmark asks it, all forgotten edges against uniform negatives, on the controls under GCN.

    Returns:
        one row per graph (index), one column per control: signed AUC, mean over seeds.
    """
    records = benchmark_records()
    records = records[(records["backbone"] == "gcn") & (records["preset"] == preset) & (records["forget"] == forget)]
    areas = records.groupby(["data", "method"])[f"{attack}_auc"].mean().unstack()
    titles = {"original": "Original, full graph", "utu": "Original's weights (UtU)"}
    return areas.rename(columns=titles | {name: METHOD_TITLES[name] for name in ("gold", "untrained")})[
        list(CONTROL_TITLES)
    ]


def with_controls(numbers: pd.DataFrame, data: str = "dblp") -> pd.DataFrame:
    """Printed LinkTeller values with rows of the controls behind them, which the source does not print.

    Args:
        numbers: ``method``, ``forget``, ``printed``, ``ours`` (preset ``published``) and ``exact`` (``corrected``, which is a
            preset of training too, so of other models).
        data: the graph.
    """
    forgets = ("low", "high")
    ours, exact = (
        {forget: control_areas("link_teller", preset, forget).loc[data] for forget in forgets}
        for preset in ("published", "corrected")
    )
    rows = [
        {"method": title, "forget": forget, "ours": ours[forget][title], "exact": exact[forget][title]}
        for title in CONTROL_TITLES
        if title != METHOD_TITLES["gold"]
        for forget in forgets
    ]
    named = numbers.assign(method=numbers["method"].map(METHOD_TITLES))
    return pd.concat([named, pd.DataFrame(rows)], ignore_index=True)


def controls_figure(forgets: tuple[str, ...] = ("low", "high")) -> Figure:
    """AUC of every attack on the controls, uniform against matched negatives: a panel per attack and set, a colour per graph.

    Filled: uniform negatives, hollow: matched. Original answers on the full graph, all others on the retained one.
    """
    table = controls_excess()
    table = table[table["forget"].isin(forgets) & table["attack"].isin(MAIN_ATTACKS)]
    models = [entry for entry in _models() if entry[1] not in METHODS]
    names = [name for name in GRAPH_TITLES if name in set(table["data"])]
    size = (2 + 3 * len(forgets), 1.2 + 1.7 * len(MAIN_ATTACKS))
    fig, axes = plt.subplots(len(MAIN_ATTACKS), len(forgets), figsize=size, sharex=True, sharey=True, squeeze=False)
    for line, attack in zip(axes, MAIN_ATTACKS, strict=True):
        for ax, forget in zip(line, forgets, strict=True):
            own = table[(table["attack"] == attack) & (table["forget"] == forget)]
            for place, (_, method, query) in enumerate(models):
                for number, data in enumerate(names):
                    part = own[(own["method"] == method) & (own["query"] == query) & (own["data"] == data)]
                    height = place + 0.6 * ((number + 0.5) / len(names) - 0.5)
                    for row in part.itertuples():
                        filled = row.negatives != "matched"
                        style = {"color": PALETTE[number], "markersize": 5, "fillstyle": "full" if filled else "none"}
                        ax.plot(row.auc, height, "o", **style)
            ax.axvline(0.5, color="0.5", linewidth=1)
            ax.set(xlim=(-0.03, 1.03), xticks=(0, 0.5, 1))
            ax.set_title(f"{ATTACKS[attack]}, {forget} set", fontsize=10)
            ax.set_yticks(range(len(models)), [title for title, _, _ in models])
    for ax in axes[-1]:
        ax.set_xlabel("AUC")
    axes[0, 0].invert_yaxis()
    handles = [plt.Line2D([], [], color=PALETTE[k], marker="o", linestyle="") for k in range(len(names))]
    handles += [
        plt.Line2D([], [], color="0.3", marker="o", linestyle="", fillstyle=style) for style in ("full", "none")
    ]
    labels = [GRAPH_TITLES[name] for name in names] + ["uniform", "matched"]
    fig.legend(handles, labels, loc="outside lower center", ncols=4)
    return fig


def ladder_figure(forget: str) -> Figure:
    """AUC over the rungs of the attacker's knowledge, mean over graphs: attacks by kinds of negatives, a line per control.

    Gold is a ring, since it lies on the original's weights nearly everywhere.
    """
    table = controls_excess()
    table = table[(table["forget"] == forget) & table["attack"].isin(MAIN_ATTACKS)]
    size = (8, 1 + 1.8 * len(MAIN_ATTACKS))
    fig, axes = plt.subplots(len(MAIN_ATTACKS), 2, figsize=size, sharex=True, sharey=True)
    markers = {"gold": "o", "utu": "s", "untrained": "D", "memoriser": "^"}
    ring = {"fillstyle": "none", "markersize": 10, "linestyle": ":", "zorder": 3}
    for line, attack in zip(axes, MAIN_ATTACKS, strict=True):
        for ax, negatives in zip(line, ("uniform", "matched"), strict=True):
            kind = "" if attack == "e_umia" else negatives
            part = table[(table["attack"] == attack) & (table["negatives"] == kind)]
            for colour, (method, marker) in zip(PALETTE, markers.items(), strict=False):
                means = part[part["method"] == method].groupby("query")["auc"].mean().reindex(RUNGS).dropna()
                places = [RUNGS.index(query) for query in means.index]
                label = "Original's weights" if method == "utu" else METHOD_TITLES[method]
                style = {"linestyle": "-", "markersize": 5, **(ring if method == "gold" else {})}
                ax.plot(places, means, marker, color=colour, label=label, **style)
            ax.axhline(0.5, color="0.5", linewidth=1)
            ax.set_xticks(range(len(RUNGS)), RUNG_TITLES.values())
            ax.set(xlim=(-0.3, len(RUNGS) - 0.7), title=f"{ATTACKS[attack]}, {kind or 'nodes'}")
        line[0].set_ylabel("AUC")
    fig.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=4)
    return fig


def methods_figure() -> Figure:
    """Excess over Gold against matched negatives, low and high sets, with bootstrap intervals; blind settings are hollow.

    Intervals are over pairs and seeds, over pairs alone on graphs with one seed.
    """
    table = controls_excess()
    table = table[
        (table["query"] == "retained") & table["negatives"].isin(("matched", "")) & table["attack"].isin(MAIN_ATTACKS)
    ]
    shown = ("gold", "utu", "memoriser", *METHODS)
    names = [name for name in GRAPH_TITLES if name in set(table["data"])]
    fig, axes = plt.subplots(len(MAIN_ATTACKS), 2, figsize=(8.5, 12.5), sharey=True, sharex="row")
    for line, attack in zip(axes, MAIN_ATTACKS, strict=True):
        for ax, forget in zip(line, ("low", "high"), strict=True):
            part = table[(table["forget"] == forget) & (table["attack"] == attack)]
            for place, method in enumerate(shown):
                for row in part[part["method"] == method].itertuples():
                    number = names.index(row.data)
                    height = place + 0.6 * ((number + 0.5) / len(names) - 0.5)
                    ax.plot([row.excess_low, row.excess_high], [height] * 2, color=PALETTE[number], linewidth=1.3)
                    style = "none" if row.blind else "full"
                    ax.plot(row.excess, height, "o", color=PALETTE[number], markersize=4, fillstyle=style)
            ax.axvline(0, color="0.5", linewidth=1)
            ax.xaxis.set_major_locator(MaxNLocator(5))
            ax.set_yticks(range(len(shown)), [METHOD_TITLES[method] for method in shown])
            ax.set_title(f"{ATTACKS[attack]}, {forget} set")
    axes[0, 0].invert_yaxis()
    for ax in axes[-1]:
        ax.set_xlabel("AUC above that of Gold")
    handles = [plt.Line2D([], [], color=PALETTE[k], marker="o", linewidth=1.3) for k in range(len(names))]
    handles.append(plt.Line2D([], [], color="0.3", marker="o", linestyle="", fillstyle="none"))
    fig.legend(
        handles, [*(GRAPH_TITLES[name] for name in names), "blind"], loc="outside lower center", ncols=len(names) + 1
    )
    return fig


def memory_table(method: str = "utu") -> pd.DataFrame:
    """Where a method shows more than Gold against matched negatives, on the retained graph.

    Settings with one seed are counted apart: there the interval is over pairs alone, knows nothing of what another training
    would give, and errs on the short side.

    Returns:
        one row per attack on edges: ``settings`` with several seeds in which it is not blind, in how many of them the interval
        of the excess lies ``above`` or ``below`` zero, the same three of settings with one seed (``..., one seed``); of both
        the mean ``excess``, and the ``largest`` with its setting; for comparison the mean excess of ``Untrained``. Attacks
        that are blind everywhere are left out.
    """
    table = controls_excess()
    table = table[(table["query"] == "retained") & (table["negatives"] == "matched")]
    table = table[~table["blind"].astype(bool) & table["attack"].isin(MAIN_ATTACKS)]
    rows = []
    for name in MAIN_ATTACKS:
        asked = table[table["attack"] == name]
        part, fresh = (asked[asked["method"] == own] for own in (method, "untrained"))
        if part.empty:
            continue
        most, row = part.loc[part["excess"].idxmax()], {"attack": ATTACKS[name]}
        for suffix, counted in (("", part[part["seeds"] > 1]), (", one seed", part[part["seeds"] == 1])):
            row[f"settings{suffix}"] = len(counted)
            row[f"above{suffix}"], row[f"below{suffix}"] = sides_of_gold(counted)
        row |= {
            "excess": float(part["excess"].mean()),
            "largest": float(most["excess"]),
            "where": f"{graph_title(most['data'])}, {most['forget']}",
            "Untrained": float(fresh["excess"].mean()),
        }
        rows.append(row)
    return pd.DataFrame(rows)


def every_method() -> pd.DataFrame:
    """All methods that the GCN has under all attacks: where each lies above or below Gold on the retained graph.

    Matched negatives, the settings of the graphs ``WIDER`` in which the attack is not blind.

    Returns:
        one row per method and attack, controls first: ``settings``, in how many of them the interval of the excess lies
        ``above`` or ``below`` zero, and the mean ``excess``.
    """
    table = controls_excess()
    table = table[(table["query"] == "retained") & table["negatives"].isin(("matched", "")) & table["data"].isin(WIDER)]
    table = table[~table["blind"].astype(bool) & table["attack"].isin(MAIN_ATTACKS)]
    table = table.assign(above=table["excess_low"] > 0, below=table["excess_high"] < 0)
    asked = ("utu", "untrained", "memoriser", *METHODS, *OTHER_METHODS)
    grouped = table[table["method"].isin(asked)].groupby(["method", "attack"])
    counts = grouped.agg(
        settings=("excess", "size"), above=("above", "sum"), below=("below", "sum"), excess=("excess", "mean")
    )
    order = [(method, attack) for method in asked for attack in MAIN_ATTACKS if (method, attack) in counts.index]
    return counts.loc[order].reset_index()


def blind_attacks() -> str:
    """Which attacks are blind in more than half of the settings on the retained graph, as part of a sentence."""
    table = structure_table()
    found = table[table["reads"].str.endswith("blind")]
    return "; ".join(f"{row.attack} ({row.negatives.strip('()')})" for row in found.itertuples()) or "none"


def graph_readers() -> str:
    """Which attacks score the same on models that were never trained, as part of a sentence."""
    table = structure_table()
    found = table[table["reads"].str.startswith("the graph")]
    return "; ".join(f"{row.attack} ({row.negatives.strip('()')})" for row in found.itertuples()) or "none"


def _models(methods: tuple[str, ...] = METHODS) -> list[tuple[str, str, str]]:
    """(title, method, query) of the rows of every table: the controls, then the methods."""
    controls = [("Original, full graph", "utu", "original"), ("Original's weights (UtU)", "utu", "retained")]
    controls += [(METHOD_TITLES[name], name, "retained") for name in ("gold", "untrained", "memoriser")]
    return controls + [(METHOD_TITLES[name], name, "retained") for name in methods]


def _if_enough(area: float, negatives: int) -> float:
    return float(area) if negatives >= FEWEST_NEGATIVES else np.nan


def _attacks_and_negatives(table: pd.DataFrame) -> list[tuple[str, str]]:
    found = set(zip(table["attack"], table["negatives"], strict=True))
    return [(name, kind) for name in MAIN_ATTACKS for kind in ("uniform", "matched", "") if (name, kind) in found]


def _area(records: pd.DataFrame) -> tuple[float, float]:
    """Mean AUC of LinkTeller over seeds, and the standard error over the pairs of one seed."""
    tag = "link_teller.retained.uniform"
    area, positives = records[f"{tag}_auc"].mean(), records[f"{tag}_positives"].mean()
    # Not divided by the number of seeds: low and high sets are the same edges in every seed, so seeds add no positives.
    return float(area), hanley_mcneil(area, positives, positives)
