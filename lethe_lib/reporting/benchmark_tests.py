"""The statistics of chapter 14: methods against Gold, the source's pooled test and what is left of it, rankings.

A *setting* is a graph with a backbone. Settings of one graph share its edges, so tests over settings are still hopeful, and
whole graphs drawn at a time stand beside them.
"""

import numpy as np
import pandas as pd

from lethe_lib.errors import InputError
from lethe_lib.evaluation import Ranking, cluster_bootstrap, holm, rank_methods, sign_test, signed_rank
from lethe_lib.unlearning import UNLEARNERS

SETTING = ["data", "backbone"]
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
        interval of the mean excess with whole graphs drawn (NaN with one graph).
    """
    part = graded(excess[excess["attack"] == attack], preset)
    rows = []
    for method in [name for name in UNLEARNERS if name in set(part["method"]) and UNLEARNERS[name].kind != "control"]:
        values = part[part["method"] == method].groupby(SETTING)["excess"].mean()
        if len(values) < FEWEST:
            continue
        found, graphs = signed_rank(values), values.index.get_level_values("data")
        low, high = cluster_bootstrap(values, list(graphs))[1:] if graphs.nunique() > 1 else (np.nan, np.nan)
        row = {"method": method, "settings": found.count, "excess": float(values.mean()), "effect": found.effect}
        rows.append({**row, "p": found.p_exact, "graphs_low": low, "graphs_high": high})
    table = pd.DataFrame(rows)
    table["p_holm"] = holm(table["p"])
    return table


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
    """AUC by forget set where all four kinds are published, GCN.

    Args:
        excess: from ``benchmark_excess``. preset: of the methods.

    Returns:
        one row per (data, attack): Gold's AUC on ``low``, ``community``, ``random`` and ``high`` sets; ``community_between``
        and ``random_between``, the share of the methods whose AUC there lies strictly between their AUCs on low and high.
    """
    part = excess[(excess["preset"] == preset) & (excess["backbone"] == "gcn")]
    wide = part.pivot_table(index=["data", "attack", "method"], columns="forget", values="auc")
    wide = wide.reindex(columns=["low", "community", "random", "high"]).dropna()
    controls = [UNLEARNERS[name].kind == "control" for name in wide.index.get_level_values("method")]
    methods, rows = wide[~np.array(controls, dtype=bool)], []
    for (data, attack), own in methods.groupby(["data", "attack"], sort=False):
        least, most = own[["low", "high"]].min(axis=1), own[["low", "high"]].max(axis=1)
        row = {"data": data, "attack": attack, **wide.loc[data, attack, "gold"].to_dict()}
        for kind in ("community", "random"):
            row[f"{kind}_between"] = float(((own[kind] > least) & (own[kind] < most)).mean())
        rows.append(row)
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
