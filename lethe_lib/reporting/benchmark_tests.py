"""The statistics of chapter 14: methods against Gold, the source's pooled test and what is left of it, rankings.

A *setting* is a graph with a backbone. Settings of one graph share its edges, so tests over settings are still hopeful, and
whole graphs drawn at a time stand beside them.
"""

import numpy as np
import pandas as pd

from lethe_lib.errors import InputError
from lethe_lib.evaluation import Ranking, cluster_bootstrap, holm, rank_methods, sign_test, signed_rank
from lethe_lib.reporting.leaderboard import SortableTable, interval_cells
from lethe_lib.reporting.titles import ATTACK_TITLES, METHOD_TITLES, method_title
from lethe_lib.study.benchmark import ATTACK_NAMES, sides_of_gold
from lethe_lib.unlearning import UNLEARNERS

SETTING = ["data", "backbone"]
COLUMNS = ["method", "settings", "excess", "effect", "p", "graphs_low", "graphs_high", "above", "below", "cells"]
FEWEST = 6
"""Settings below which no exact two-sided signed-rank test can reach a p-value of 0.05."""


def graded(table: pd.DataFrame, preset: str = "corrected") -> pd.DataFrame:
    """The rows of a preset on low and high sets."""
    return table[(table["preset"] == preset) & table["forget"].isin(["low", "high"])]


def methods_against_gold(excess: pd.DataFrame, attack: str, preset: str = "corrected") -> pd.DataFrame:
    """Signed-rank test of every method against Gold over settings, corrected for the number of methods.

    Args:
        excess: from ``benchmark_excess``.
        attack: name. preset: of the methods.

    Returns:
        one row per method with at least FEWEST settings, controls left out: ``settings``; ``excess``, the mean over settings
        of the mean of both sets;
        ``effect``, rank-biserial; exact ``p``; ``p_holm``, over the methods of the table; ``graphs_low`` and ``graphs_high``,
        interval of the mean excess with whole graphs drawn (NaN with one graph); ``above`` and ``below``, in how many of the
        ``cells`` (setting, set) the whole interval of the excess lies on that side. The test asks for a direction that
        settings share: a method that is above Gold in some cells and below in others may pass it and differ everywhere.
    """
    part = graded(excess[excess["attack"] == attack], preset)
    rows = []
    for method in [name for name in UNLEARNERS if name in set(part["method"]) and UNLEARNERS[name].kind != "control"]:
        own = part[part["method"] == method]
        values = own.groupby(SETTING)["excess"].mean()
        if len(values) >= FEWEST:
            rows.append(_against_gold(method, values) | _sides(own))
    table = pd.DataFrame(rows, columns=COLUMNS)
    table["p_holm"] = holm(table["p"]) if len(table) else table["p"]
    return table


def told_apart(table: pd.DataFrame, level: float = 0.05) -> str:
    """The methods that a test tells apart from Gold after correction, with their side, as part of a sentence.

    Args:
        table: from :func:`methods_against_gold`. level: of the corrected p-value.

    Example:
        ``1 (UtU below)``
    """
    told = table[table["p_holm"] < level]
    names = [f"{method_title(row.method)} {'above' if row.excess > 0 else 'below'}" for row in told.itertuples()]
    return f"{len(told)} ({'; '.join(names)})" if names else "0"


def controls_against_gold(excess: pd.DataFrame, attack: str, preset: str = "corrected") -> pd.DataFrame:
    """The controls as :func:`methods_against_gold` has the methods: what the numbers look like where the answer is known.

    Returns:
        rows for Original on the full graph, Gold, Untrained and Memoriser, where they are on record, with the same columns.
        Gold's excess is zero by definition, so it has no test; nothing is corrected.
    """
    part = graded(excess[excess["attack"] == attack], preset)
    rows = []
    for method in [name for name in UNLEARNERS if name in set(part["method"]) and UNLEARNERS[name].kind == "control"]:
        own = part[part["method"] == method]
        values = own.groupby(SETTING)["excess"].mean()
        if (values == 0).all() or len(values) < FEWEST:
            row = {"method": method, "settings": len(values), "excess": float(values.mean())}
        else:
            row = _against_gold(method, values)
        rows.append(row | _sides(own))
    return pd.DataFrame(rows, columns=[*COLUMNS, "p_holm"])


def _sides(part: pd.DataFrame) -> dict[str, int]:
    return dict(zip(("above", "below"), sides_of_gold(part), strict=True)) | {"cells": len(part)}


def least_settings(methods: int, level: float = 0.05) -> int:
    """Settings with which an exact two-sided signed-rank test can fall below ``level`` in Holm's first step.

    Example:
        >>> least_settings(1), least_settings(21)
        (6, 10)
    """
    return int(np.ceil(np.log2(2 * methods / level)))


def _against_gold(method: str, values: pd.Series) -> dict[str, object]:
    """Test and interval of one method's excesses, one a setting."""
    found, graphs = signed_rank(values), values.index.get_level_values("data")
    low, high = cluster_bootstrap(values, list(graphs))[1:] if graphs.nunique() > 1 else (np.nan, np.nan)
    row = {"method": method, "settings": found.count, "excess": float(values.mean()), "effect": found.effect}
    return {**row, "p": found.p_exact, "graphs_low": low, "graphs_high": high}


def gold_tests_table(excess: pd.DataFrame, attack: str, preset: str, caption: str) -> SortableTable:
    """Controls and methods against Gold for the reader: every row, controls first, then the smallest p-value first."""
    methods = methods_against_gold(excess, attack, preset).sort_values("p", kind="stable")
    table = pd.concat(
        [controls_against_gold(excess, attack, preset).astype({"p_holm": float}), methods], ignore_index=True
    )
    titles = [method_title(name) for name in table["method"]]
    families = [UNLEARNERS[name].kind for name in table["method"]]
    intervals = interval_cells(table.rename(columns=lambda name: name.replace("graphs", "excess")), "excess", 1, 4)
    shown = pd.DataFrame({"Method": titles})
    values = shown.copy()
    shown["Excess, graphs drawn"], values["Excess, graphs drawn"] = intervals, table["excess"].abs()
    sides = [f"{row.above}, {row.below} of {row.cells}" for row in table.itertuples()]
    shown["Above, below"], values["Above, below"] = sides, table["above"] + table["below"]
    for title, column in (("p, Holm", "p_holm"), ("p", "p"), ("Effect", "effect")):
        shown[title] = ["" if pd.isna(value) else f"{value:.3g}" for value in table[column]]
        values[title] = table[column]
    shown["Settings"], values["Settings"] = table["settings"].astype(str), table["settings"]
    shown["Family"] = values["Family"] = families
    return SortableTable(shown, values, caption)


def low_minus_high(records: pd.DataFrame, methods: list[str], attack: str = "link_teller") -> pd.DataFrame:
    """AUC on the low minus AUC on the high set, mean over seeds, of every (graph, backbone, preset, method).

    Args:
        records: from ``benchmark_records``. methods: which. attack: whose AUC.

    Returns:
        columns data, backbone, preset, method and ``difference``; cells with a broken run are left out.
    """
    axes = [*SETTING, "preset", "method"]
    part = records[records["method"].isin(methods) & records["forget"].isin(["low", "high"])]
    broken = part.groupby(axes)["broken"].any()
    means = part.groupby([*axes, "forget"])[f"{attack}_auc"].mean().unstack("forget")
    means = means.reindex(columns=["low", "high"]).dropna()
    means = means[~broken.reindex(means.index)]
    return (means["low"] - means["high"]).rename("difference").reset_index()


def pooled_and_dependent(differences: pd.DataFrame) -> dict[str, float]:
    """The source's pooled signed-rank test beside tests that respect dependence.

    Args:
        differences: from :func:`low_minus_high`.

    Returns:
        ``cells``, ``statistic`` and ``p_normal`` of the pooled test; ``settings`` and ``settings_positive`` with ``p_settings``
        of the sign test over (graph, backbone); ``graphs`` and ``p_graphs`` of the sign test over graphs; ``mean`` with ``low``
        and ``high``, whole graphs drawn.

    Raises:
        InputError: no differences.
    """
    if differences.empty:
        raise InputError("there is no cell with a low and a high set")
    pooled = signed_rank(differences["difference"], "greater")
    settings = differences.groupby(SETTING)["difference"].mean()
    graphs = differences.groupby("data")["difference"].mean()
    positive, count, p_settings = sign_test(settings, "greater")
    _, graph_count, p_graphs = sign_test(graphs, "greater")
    mean, low, high = cluster_bootstrap(differences["difference"], differences["data"].tolist())
    return {
        "cells": pooled.count,
        "statistic": pooled.statistic,
        "p_normal": pooled.p_normal,
        "settings": count,
        "settings_positive": positive,
        "p_settings": p_settings,
        "graphs": graph_count,
        "p_graphs": p_graphs,
        "mean": mean,
        "low": low,
        "high": high,
    }


def sets_table(excess: pd.DataFrame, preset: str = "corrected") -> pd.DataFrame:
    """AUC by forget set, means over the graphs where all four kinds are published, GCN; controls beside the methods.

    Args:
        excess: from ``benchmark_excess``. preset: of the methods.

    Returns:
        one row per attack and model (Original on the full graph, Gold, Untrained, Memoriser, and the mean of the methods):
        ``graphs``; AUC on ``low``, ``community``, ``random`` and ``high`` sets; ``community_between`` and ``random_between``,
        the share of the graphs, or of the graphs and methods, where the AUC lies strictly between those on low and high.
    """
    part = excess[(excess["preset"] == preset) & (excess["backbone"] == "gcn")]
    wide = part.pivot_table(index=["attack", "method", "data"], columns="forget", values="auc")
    wide = wide.reindex(columns=["low", "community", "random", "high"]).dropna()
    least, most = wide[["low", "high"]].min(axis=1), wide[["low", "high"]].max(axis=1)
    for kind in ("community", "random"):
        wide[f"{kind}_between"] = (wide[kind] > least) & (wide[kind] < most)
    names = wide.index.get_level_values("method")
    model = ["methods, mean" if UNLEARNERS[name].kind != "control" else METHOD_TITLES[name] for name in names]
    wide = wide.reset_index().assign(model=model)
    rows = []
    for attack in ATTACK_NAMES:
        for title in (
            *(METHOD_TITLES[name] for name in ("original", "gold", "untrained", "memoriser")),
            "methods, mean",
        ):
            own = wide[(wide["attack"] == attack) & (wide["model"] == title)]
            if len(own):
                row = {"attack": ATTACK_TITLES[attack], "model": title, "graphs": own["data"].nunique()}
                rows.append(
                    row | own.drop(columns=["attack", "method", "data", "model"]).astype(float).mean().to_dict()
                )
    return pd.DataFrame(rows)


def ranking(table: pd.DataFrame, value: str, smallest_first: bool = True) -> Ranking:
    """Rank the methods that have a value in every setting that most methods have.

    Args:
        table: rows with data, backbone, method, and the column ``value``; means are taken within a (setting, method).
        value: a column. smallest_first: whether small values are good.
    """
    wide = table.groupby([*SETTING, "method"])[value].mean().unstack("method")
    wide = wide[[name for name in wide if UNLEARNERS[name].kind != "control"]]
    wide = wide.loc[:, wide.notna().sum() > 0.8 * wide.notna().sum().max()].dropna()
    return rank_methods(wide if smallest_first else -wide)
