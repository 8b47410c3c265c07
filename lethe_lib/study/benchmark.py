"""The benchmark as one table: what all published studies say of every method, held against Gold.

    read   the published studies of STUDIES_READ; say which are missing
    keep   runs as the preset means them (no varied setting or schedule), 5 % sets; one copy of a run that studies share
    add    change of test accuracy, seconds over those of the Golds of the same cell and seed, whether the run broke
    join   excess over Gold per cell and attack; residual memory from the edge audit, where it is published
    rank   a row per method: means over graphs, with t intervals over graphs, since runs on one graph share all but seeds

A *cell* is a graph, preset, backbone and forget set. Nothing here is computed anew, so every number can be traced to records.
"""

import json
from collections.abc import Iterable
from dataclasses import asdict

import numpy as np
import pandas as pd

from lethe_lib import paths
from lethe_lib.errors import InputError
from lethe_lib.evaluation import mean_interval
from lethe_lib.study.edge_audit import HEADLINE, EdgeAuditConfiguration
from lethe_lib.study.records import load_records
from lethe_lib.unlearning import UNLEARNERS

STUDIES_READ = ("first_slice", "generic_unlearning", "benchmark_cells", "graph_native")
AUDIT = "edge_audit"
CELL = ["data", "preset", "backbone", "forget"]
ATTACK_NAMES = ("link_teller", "link_stealing", "e_umia")
BROKEN = ("collapsed", "diverged", "failed")
WITHOUT_ANSWER = ("diverged", "failed", "unsupported")
"""Statuses whose run released no model of the method's, so that it has neither accuracy nor leakage."""


def missing_studies() -> list[str]:
    """The studies that the leaderboard would read but that are not published."""
    return [name for name in (*STUDIES_READ, AUDIT) if not _published(name)]


def benchmark_records(studies: Iterable[str] = STUDIES_READ) -> pd.DataFrame:
    """The plain runs of the published studies, one row per run, each run once.

    Returns:
        the records with ``study``, and the columns of :func:`with_outcomes`.

    Raises:
        InputError: none of the studies is published.
    """
    tables = [_plain(name)[0].assign(study=name) for name in studies if _published(name)]
    if not tables:
        raise InputError(
            f"none of {', '.join(studies)} is published: `python -m lethe_lib run {STUDIES_READ[0]} --publish`"
        )
    return with_outcomes(pd.concat(tables, ignore_index=True).drop_duplicates("key", ignore_index=True))


def with_outcomes(records: pd.DataFrame) -> pd.DataFrame:
    """Records of unlearning with three columns more.

    Returns:
        the records with ``change`` (test accuracy of the released model on the retained graph minus that of the original on
        the original graph, so that UtU's is what the graph alone changes), ``share`` (seconds over the mean seconds of the
        Golds of the same cell and seed; NaN without a Gold) and ``broken`` (collapsed, diverged or failed).
    """
    records = records.copy()
    golds = records[records["method"] == "gold"].groupby([*CELL, "seed"])["seconds"].mean().rename("gold_seconds")
    records = records.join(golds, on=[*CELL, "seed"])
    records["change"] = records["accuracy_test"] - records["original_accuracy_test"]
    records["share"] = records["seconds"] / records["gold_seconds"]
    records.loc[records["status"].isin(WITHOUT_ANSWER), ["change", "share"]] = np.nan
    records["broken"] = records["status"].isin(BROKEN)
    return records


def benchmark_excess(studies: Iterable[str] = STUDIES_READ) -> pd.DataFrame:
    """Excess over Gold per (cell, method, attack) of the published studies, with the ends of its bootstrap interval.

    A study may vary a method's settings within a cell; its excess there mixes them and is left out.
    """
    tables = []
    for name in filter(_published, studies):
        mixed = _plain(name)[1]
        table = load_records(f"{name}_excess")
        keys = pd.MultiIndex.from_frame(table[[*CELL, "method"]])
        tables.append(table[(table["fraction"] == 0.05) & ~keys.isin(mixed)])
    return pd.concat(tables, ignore_index=True).drop_duplicates([*CELL, "method", "attack"], ignore_index=True)


def sides_of_gold(excess: pd.DataFrame) -> tuple[int, int]:
    """How many rows of a table of excesses lie above Gold with their whole interval, and how many below.

    Example:
        >>> sides_of_gold(pd.DataFrame({"excess_low": [0.1, -0.3, -0.1], "excess_high": [0.2, -0.2, 0.1]}))
        (1, 1)
    """
    return int((excess["excess_low"] > 0).sum()), int((excess["excess_high"] < 0).sum())


def main_backbone(method: str) -> str:
    """The backbone under which a method is compared with others: the GCN, or the first that it takes where it does not."""
    takes = UNLEARNERS[method].backbones
    return "gcn" if takes is None or "gcn" in takes else takes[0]


def on_main_backbone(table: pd.DataFrame) -> pd.DataFrame:
    """The rows of every method under its :func:`main_backbone`."""
    return table[table["backbone"] == table["method"].map(main_backbone)]


def residual_memory_table(data: str = "cora", pool: str = "low") -> pd.DataFrame:
    """Residual memory of every method in the main setting of the edge audit, headline adversary, preset ``corrected``.

    The audit also runs some methods with other settings than their preset's; such runs are left out.

    Returns:
        one row per (method, backbone): ``residual`` with its ends, ``to_remove``; no rows where the audit is not published.

    Raises:
        InputError: two runs of one method and backbone in that setting, of which neither is the one to show.
    """
    columns = ["method", "backbone", "residual", "residual_low", "residual_high", "to_remove"]
    if not _published(AUDIT):
        return pd.DataFrame(columns=columns)
    records, memory = load_records(AUDIT), load_records(f"{AUDIT}_memory")
    plain = EdgeAuditConfiguration(data, pool=pool)
    free = ("method", "backbone", "settings", "trials")
    expected = {name: value for name, value in json.loads(json.dumps(asdict(plain))).items() if name not in free}
    configs = [json.loads(text) for text in records["config_json"]]
    own = [{name: c[name] for name in expected} == expected and _has_own_settings(c) for c in configs]
    memory = memory[memory["adversary"] == HEADLINE].drop(columns="method")
    table = records.loc[own, ["key", "method", "backbone"]].merge(memory, on="key")[columns]
    twice = table[table.duplicated(["method", "backbone"])]
    if len(twice):
        raise InputError(f"{AUDIT} has several runs of {twice['method'].iloc[0]} on {data}, {pool}: which is meant?")
    return table


def leaderboard(
    records: pd.DataFrame, excess: pd.DataFrame, memory: pd.DataFrame, preset: str = "corrected"
) -> pd.DataFrame:
    """One row per method: accuracy, leakage, cost and residual memory over all graphs, low and high sets.

    GCN, or for a method without GCN the backbone that it has. A graph counts once: its value is the mean over its cells.
    Gold's excess is zero by definition, so it has no interval.

    Args:
        records: from :func:`benchmark_records`. excess: from :func:`benchmark_excess`. memory: from
            :func:`residual_memory_table`.

    Returns:
        ``method``, ``kind``, ``backbone``, ``graphs``, ``runs``, ``broken``; ``change`` of test accuracy, and for every
        attack its ``<attack>_excess``, each with ``_low`` and ``_high`` of a 95 % t interval over graphs (NaN with one
        graph), and its ``<attack>_distance``, the same mean of the size of the excess, so that cells above and below Gold do
        not cancel; ``share``, median seconds over Gold's with quartiles ``share_first`` and ``share_third``; ``share_photo``;
        ``residual`` with its ends.
    """
    chosen = (records["preset"] == preset) & records["forget"].isin(["low", "high"])
    records, rows = records[chosen & (records["status"] != "unsupported")], []
    for method in [name for name in UNLEARNERS if name in set(records["method"])]:
        mine = records[records["method"] == method]
        backbone = "gcn" if "gcn" in set(mine["backbone"]) else mine["backbone"].iloc[0]
        mine = mine[mine["backbone"] == backbone]
        row = {"method": method, "kind": UNLEARNERS[method].kind, "backbone": backbone}
        row |= {"graphs": mine["data"].nunique(), "runs": len(mine), "broken": int(mine["broken"].sum())}
        row |= _over_graphs("change", mine.groupby("data")["change"].mean())
        leaks = excess[(excess["method"] == method) & (excess["backbone"] == backbone) & (excess["preset"] == preset)]
        leaks = leaks[leaks["forget"].isin(["low", "high"])]
        for attack in ATTACK_NAMES:
            part = leaks[leaks["attack"] == attack]
            row |= _over_graphs(f"{attack}_excess", part.groupby("data")["excess"].mean())
            row[f"{attack}_distance"] = float(part["excess"].abs().groupby(part["data"]).mean().mean())
            if method == "gold":  # zero by definition: an interval over graphs would say nothing
                row |= {f"{attack}_excess_low": np.nan, f"{attack}_excess_high": np.nan}
        quartiles = mine["share"].quantile([0.25, 0.5, 0.75])
        row |= dict(zip(("share_first", "share", "share_third"), quartiles, strict=True))
        row["share_photo"] = mine[mine["data"] == "photo"]["share"].median()
        left = memory[(memory["method"] == method) & (memory["backbone"] == backbone)]
        ends = ("residual", "residual_low", "residual_high")
        row |= dict(zip(ends, left.iloc[0][list(ends)] if len(left) else (np.nan,) * 3, strict=True))
        rows.append(row)
    return pd.DataFrame(rows)


def cell_board(records: pd.DataFrame, excess: pd.DataFrame) -> pd.DataFrame:
    """The same of one cell: intervals of the accuracy over seeds, of the excess over pairs and seeds.

    Args:
        records, excess: rows of one cell, from any of the functions above.

    Returns:
        one row per method, by the mean distance from Gold over the attacks, smallest first, as neither side of Gold is good;
        controls stay on top.
    """
    rows = []
    for method, mine in records.groupby("method", sort=False):
        row = {
            "method": method,
            "kind": UNLEARNERS[method].kind,
            "runs": len(mine),
            "broken": int(mine["broken"].sum()),
        }
        row |= _over_graphs("change", mine["change"])
        for leak in excess[excess["method"] == method].to_dict("records"):
            name = f"{leak['attack']}_excess"
            row |= {name: leak["excess"], f"{name}_low": leak["excess_low"], f"{name}_high": leak["excess_high"]}
        rows.append({**row, "share": mine["share"].median()})
    table = pd.DataFrame(rows)
    order = [name for name in table.columns if name.endswith("_excess")]
    table["place"] = table[order].abs().mean(axis=1) if order else 0.0
    controls = table["kind"] == "control"
    return pd.concat([table[controls], table[~controls].sort_values("place")], ignore_index=True).drop(columns="place")


def not_ok(records: pd.DataFrame) -> pd.DataFrame:
    """Every run that did not end ``ok``, counted: one row per (method, preset, status), with places and a reason.

    Returns:
        ``method``, ``preset``, ``status``, ``runs``, ``of``, ``where`` (backbone, graph and set with counts), ``reason``
        (of the first such run).
    """
    rows, total = [], records.groupby(["method", "preset"]).size()
    for key, part in records[records["status"] != "ok"].groupby(["method", "preset", "status"], sort=True):
        places = part.groupby(["backbone", "data", "forget"], sort=True).size()
        where = ", ".join(f"{b} {d} {f} ({n})" for (b, d, f), n in places.items())
        row = dict(zip(("method", "preset", "status"), key, strict=True))
        rows.append(
            {**row, "runs": len(part), "of": int(total[key[:2]]), "where": where, "reason": part["reason"].iloc[0]}
        )
    columns = ["method", "preset", "status", "runs", "of", "where", "reason"]
    return pd.DataFrame(rows, columns=columns)


def _published(study: str) -> bool:
    return (paths.results() / f"{study}.parquet").exists()


def _over_graphs(name: str, values: pd.Series) -> dict[str, float]:
    """Mean and t interval of one value per graph or seed; a mean alone where there is one, NaN where there is none."""
    values = values.dropna()
    low = high = np.nan
    if len(values) >= 2:
        _, low, high = mean_interval(values)
    return {name: float(values.mean()), f"{name}_low": low, f"{name}_high": high}


def _plain(study: str) -> tuple[pd.DataFrame, pd.MultiIndex]:
    """The runs of a published study as their preset means them, and the (cell, method) where it has others too."""
    records = load_records(study)
    plain = np.array([_is_plain(json.loads(text)) for text in records["config_json"]], dtype=bool)
    varied = records.loc[~plain, [*CELL, "method"]].drop_duplicates()
    return records[plain], pd.MultiIndex.from_frame(varied)


def _is_plain(config: dict) -> bool:
    if config["method"] not in UNLEARNERS or config["training"] or config["fraction"] != 0.05 or config["hops"] != 2:
        return False
    return _has_own_settings(config)


def _has_own_settings(config: dict) -> bool:
    """Whether a run has the settings of its preset, written out or left out."""
    settings = UNLEARNERS[config["method"]].settings
    if not config["settings"] or config["preset"] not in settings:
        return not config["settings"]
    return dict(config["settings"]) == json.loads(json.dumps(asdict(settings[config["preset"]])))
