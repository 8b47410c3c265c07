"""Claims of chapter 15, most of them our own: what trained models remember of single edges, and what unlearning leaves of it."""

import json

import numpy as np
import pandas as pd

from lethe_lib.reporting.claims import Claim, Finding
from lethe_lib.study import load_records
from lethe_lib.study.edge_audit import CONTROLS, HEADLINE, EdgeAuditConfiguration

CHAPTER = "15_edge_audit"
SOURCE = "This book"
HALF = 0.5  # O12: residual memory
POINT = 0.01  # O12: accuracy that a method may cost
VARIED = ("training", "edge_share", "feature_share", "projection", "train_share")


def audited_runs(where: str = "published") -> pd.DataFrame:
    """The records of the edge audit beside their residual memory, one row a run.

    Returns:
        The columns of the records; of the headline's memory ``residual``, ``residual_low``, ``residual_high``,
        ``to_remove``, ``detectable``; and ``auc``, ``low``, ``high``, the headline's AUC with its interval.
    """
    records, memory = load_records("edge_audit", where), load_records("edge_audit_memory", where)
    headline = memory[memory["adversary"] == HEADLINE].drop(columns=["adversary", "method"])
    return records.merge(headline, on="key", how="left", validate="one_to_one")


def plain_runs(where: str = "published") -> pd.DataFrame:
    """The runs of :func:`audited_runs` in the main setting: fresh seeds, equal priors, nothing varied, all backbones."""
    runs = audited_runs(where)
    default, configs = EdgeAuditConfiguration(""), [json.loads(text) for text in runs["config_json"]]
    names = (*VARIED, "same_seed", "spread", "prior", "fraction", "hops", "source")
    plain = [all(_frozen(config[name]) == getattr(default, name) for name in names) for config in configs]
    return runs[plain]


def _frozen(value: object) -> object:
    return tuple(value) if isinstance(value, list) else value


def _gcn(runs: pd.DataFrame) -> pd.DataFrame:
    return runs[(runs["backbone"] == "gcn") & (runs["preset"] == "corrected")]


def check_memory() -> Finding:
    """O10: the AUC of unlinking, on every graph and pool."""
    runs = _gcn(plain_runs())
    unlinked = runs[runs["method"] == "utu"]
    seen = unlinked.groupby("data")["low"].max() > 0.5
    blind = runs[(runs["method"] == "memoriser") & (runs["auc"] < 0.95)]["data"].unique()
    without = [name for name in seen.index[~seen] if name not in blind]
    everywhere = bool((unlinked["low"] > 0.5).all())
    verdict = "holds" if everywhere else "fails" if without else "inconclusive"
    most = unlinked.loc[unlinked["auc"].idxmax()]
    detail = (
        f"The AUC lies above one half with its whole interval in {int((unlinked['low'] > 0.5).sum())} of {len(unlinked)} pools; "
        f"it is largest on {most['data']}, pool {most['pool']}. "
        + (f"No memory is seen on {', '.join(without)}, where the Memoriser is." if without else "")
    )
    return Finding(verdict, float(most["auc"]), (float(most["low"]), float(most["high"])), detail.strip())


def check_centrality() -> Finding:
    """O11: the AUC of unlinking, low pool minus high pool, on graphs where either is remembered."""
    runs = _gcn(plain_runs())
    unlinked = runs[(runs["method"] == "utu") & runs["pool"].isin(["low", "high"])]
    unlinked = unlinked[unlinked.groupby("data")["pool"].transform("nunique") == 2]
    if unlinked.empty:
        return Finding("not testable here", detail="No graph has both pools audited.")
    table = unlinked.pivot(index="data", columns="pool", values=["auc", "low", "high"])
    table = table[(table["low"] > 0.5).any(axis=1)]
    if table.empty:
        return Finding("not testable here", detail="No graph with both pools audited shows memory in either.")
    gap = table["auc"]["low"] - table["auc"]["high"]
    half = np.hypot(*(table["auc"][pool] - table["low"][pool] for pool in ("low", "high")))
    above, below = gap - half > 0, gap + half < 0
    verdict = "holds" if above.all() else "fails" if below.any() else "inconclusive"
    first = gap.abs().idxmax()
    detail = (
        f"Low-centrality edges are remembered more on {int(above.sum())} and less on {int(below.sum())} of the graphs with "
        f"memory and both pools audited ({', '.join(gap.index)}); the largest difference is on {first}."
    )
    return Finding(
        verdict, float(gap[first]), (float(gap[first] - half[first]), float(gap[first] + half[first])), detail
    )


def removing_methods(where: str = "published") -> pd.DataFrame:
    """Every approximate method over the settings (GCN, preset corrected) in which there is memory to remove.

    Returns:
        One row a method, least residual memory first: ``settings``; ``residual`` (mean), ``residual_high`` (largest upper
        end); ``accuracy_change`` (worst, against unlinking); ``removes``, whether every upper end is below one half at a
        cost of at most one point of accuracy.
    """
    runs = _gcn(plain_runs(where))
    runs = runs[runs["to_remove"].eq(True)]
    cell = ["data", "pool"]
    reference = runs[runs["method"] == "utu"].set_index(cell)["accuracy_test"]
    approximate = runs[~runs["method"].isin(CONTROLS)].copy()
    index = pd.MultiIndex.from_frame(approximate[cell])
    approximate["accuracy_change"] = approximate["accuracy_test"].to_numpy() - reference.reindex(index).to_numpy()
    approximate["removes"] = (approximate["residual_high"] < HALF) & (approximate["accuracy_change"] >= -POINT)
    table = approximate.groupby("method").agg(
        settings=("residual", "size"),
        residual=("residual", "mean"),
        residual_low=("residual_low", "min"),
        residual_high=("residual_high", "max"),
        accuracy_change=("accuracy_change", "min"),
        removes=("removes", "all"),
        removes_once=("removes", "any"),
    )
    return table.sort_values("residual").reset_index()


def check_removal() -> Finding:
    """O12: whether some approximate method removes half of the memory in every setting."""
    table = removing_methods()
    if table.empty:
        return Finding(
            "not testable here", detail="No setting of the GCN has memory to remove and an approximate method."
        )
    good = table[table["removes"]]
    verdict = "holds" if len(good) else "inconclusive" if table["removes_once"].any() else "fails"
    best = good.iloc[0] if len(good) else table.iloc[0]
    names = ", ".join(good["method"]) if len(good) else "none"
    detail = (
        f"Methods that do so in every setting with memory: {names}. {best['method']} leaves {best['residual']:.2f} of the memory "
        f"on average over {int(best['settings'])} settings, at a worst change of accuracy of {best['accuracy_change']:+.1%}."
    )
    return Finding(
        verdict, float(best["residual"]), (float(best["residual_low"]), float(best["residual_high"])), detail
    )


def certified_bound(epsilon: float) -> float:
    """The largest AUC between two models that are both epsilon-indistinguishable from a third, delta left out.

    Their laws are then within 2 epsilon of each other, and the best curve goes through the corner of that region:
    (1 + tanh(epsilon)) / 2.
    """
    return float((1 + np.tanh(epsilon)) / 2)


def check_certificates() -> Finding:
    """O13: AUCs of certified methods against the bound that their certificate implies."""
    runs = plain_runs()
    certified = runs[runs["certified_epsilon"].notna()].copy()
    if certified.empty:
        return Finding("not testable here", detail="No audited method carries a certificate.")
    certified["bound"] = certified["certified_epsilon"].map(certified_bound)
    certified["slack"] = certified["bound"] - certified["auc"]
    broken = certified[certified["low"] > certified["bound"]]
    safe = bool((certified["high"] < certified["bound"]).all())
    verdict = "fails" if len(broken) else "holds" if safe else "inconclusive"
    worst = certified.loc[certified["slack"].idxmin()]
    detail = (
        f"{len(certified)} certified runs; the one closest to its bound is {worst['method']} on {worst['data']}, with an AUC of "
        f"{worst['auc']:.3f} against {worst['bound']:.3f}."
    )
    return Finding(verdict, float(worst["auc"]), (float(worst["low"]), float(worst["high"])), detail)


def pool_gaps(where: str = "published") -> pd.DataFrame:
    """AUC on the low pool minus that on the high pool of every method that releases a trained model and did not collapse.

    Returns:
        One row per (graph, method) under GCN and preset corrected, on graphs where unlinking shows memory in either pool:
        ``gap`` with ``low`` and ``high``, half widths of the two pools added in quadrature.
    """
    runs = _gcn(plain_runs(where))
    unlinked = runs[(runs["method"] == "utu") & runs["pool"].isin(["low", "high"])]
    remembering = unlinked.groupby("data")["low"].max()
    runs = runs[runs["data"].isin(remembering.index[remembering > 0.5])]
    runs = runs[~runs["method"].isin(["gold", "untrained", "memoriser"]) & (runs["status"] == "ok")]
    table = runs.pivot(index=["data", "method"], columns="pool", values=["auc", "low"])
    if not {"low", "high"} <= set(table["auc"].columns):
        return pd.DataFrame(columns=["data", "method", "gap", "low", "high"])
    table = table.dropna(subset=[(value, pool) for value in ("auc", "low") for pool in ("low", "high")])
    gap = table["auc"]["low"] - table["auc"]["high"]
    half = np.hypot(*(table["auc"][pool] - table["low"][pool] for pool in ("low", "high")))
    return pd.DataFrame({"gap": gap, "low": gap - half, "high": gap + half}).reset_index()


def check_fatal_weakness() -> Finding:
    """L27: low-centrality edges against high-centrality edges, method by method."""
    table = pool_gaps()
    if table.empty:
        return Finding("not testable here", detail="No graph with memory has methods audited on both pools.")
    above, below = table["low"] > 0, table["high"] < 0
    verdict = "holds" if above.all() else "fails" if below.any() else "inconclusive"
    least = table.loc[table["gap"].idxmin()]
    detail = (
        f"In {int(above.sum())} of {len(table)} cells (graph, method) the low pool is remembered more with the whole interval, "
        f"in {int(below.sum())} the high pool. The smallest difference is that of {least['method']} on {least['data']}."
    )
    return Finding(verdict, float(least["gap"]), (float(least["low"]), float(least["high"])), detail)


ESTIMAND = "AUC over (edge, trial) of the likelihood ratio from posteriors and edge toggle, randomised audit"

CLAIMS = (
    Claim(
        id="O10",
        sentence="GCNs trained to convergence remember single edges, on every graph audited.",
        source=SOURCE,
        estimand=f"{ESTIMAND}, unlinked GCN under preset corrected, low, high and random pools of 5 % of the edges.",
        threshold="Holds if the 95 % interval lies above one half in every pool of every graph, fails if no pool of some graph "
        "shows memory although the Memoriser is seen there.",
        chapter=CHAPTER,
        check=check_memory,
    ),
    Claim(
        id="O11",
        sentence="Low-centrality edges are remembered more than high-centrality edges.",
        source=SOURCE,
        estimand=f"{ESTIMAND}, unlinked GCN: low minus high pool, graphs with both pools audited on which either is remembered.",
        threshold="Holds if the 95 % interval lies above zero on every such graph, fails if it lies below on any.",
        chapter=CHAPTER,
        check=check_centrality,
    ),
    Claim(
        id="O12",
        sentence="Some approximate method removes at least half of what unlinking leaves, for at most one point of accuracy.",
        source=SOURCE,
        estimand="Residual memory, (AUC - 1/2) over that of unlinking, and test accuracy against unlinking; GCN, every graph and "
        "pool with memory to remove.",
        threshold="Holds if one method has the upper end below one half and loses at most a point in every such setting, fails "
        "if none does in any.",
        chapter=CHAPTER,
        check=check_removal,
    ),
    Claim(
        id="O13",
        sentence="Certified methods reveal less of an edge than their certificate allows.",
        source=SOURCE,
        estimand=f"{ESTIMAND}, methods with a certificate (epsilon, delta), against (1 + tanh(epsilon)) / 2, the largest AUC "
        "between two models that are both epsilon-close to retraining.",
        threshold="Holds if every upper end lies below the bound, fails if a lower end lies above.",
        chapter=CHAPTER,
        check=check_certificates,
    ),
    Claim(
        id="L27",
        sentence="Low-centrality edges are the fatal weakness of all methods.",
        source="Lethe benchmark (arXiv:2610.21869)",
        estimand=f"{ESTIMAND}: low minus high pool, for every approximate method and unlinking, GCN, preset corrected, on graphs "
        "where unlinking shows memory in either pool. Our reading: a weakness is what a method still gives away, and structure "
        "must not count.",
        threshold="Holds if the 95 % interval lies above zero for every method on every such graph, fails if it lies below for "
        "any.",
        chapter=CHAPTER,
        check=check_fatal_weakness,
    ),
)
