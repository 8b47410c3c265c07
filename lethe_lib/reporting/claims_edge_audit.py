"""Claims of chapter 15, most of them our own: what trained models remember of single edges, and what unlearning leaves of it."""

import json
from collections.abc import Iterable

import numpy as np
import pandas as pd
from scipy.stats import t as student

from lethe_lib.errors import InputError
from lethe_lib.reporting.claims import Claim, Finding
from lethe_lib.reporting.titles import METHOD_TITLES, graph_title
from lethe_lib.seeding import numpy_generator
from lethe_lib.study import load_records
from lethe_lib.study.edge_audit import CONTROLS, HEADLINE, NULL_DRAWS, EdgeAuditConfiguration
from lethe_lib.study.edge_audit_runs import CERTIFIED_SGC, WITHIN

CHAPTER = "15_edge_audit"
SOURCE = "This book"
HALF = 0.5  # O12: residual memory
POINT = 0.01  # O12: accuracy that a method may cost
SETTING = ["data", "backbone", "preset", "pool"]
VARIED = ("training", "edge_share", "feature_share", "projection", "train_share")


def audited_runs(where: str = "published") -> pd.DataFrame:
    """The records of the edge audit beside their residual memory, one row a run.

    Returns:
        The columns of the records; of the headline's memory ``residual``, ``residual_low``, ``residual_high``,
        ``to_remove``, ``detectable``, ``gap``, ``gap_low``, ``gap_high``; and ``auc``, ``low``, ``high``, the headline's AUC
        with its interval.
    """
    records, memory = load_records("edge_audit", where), load_records("edge_audit_memory", where)
    headline = memory[memory["adversary"] == HEADLINE].drop(columns=["adversary", "method"])
    return records.merge(headline, on="key", how="left", validate="one_to_one")


def plain_runs(where: str = "published", any_ridge: bool = False) -> pd.DataFrame:
    """The runs of :func:`audited_runs` in the main setting: fresh seeds, equal priors, nothing varied, all backbones.

    Args:
        where: as in ``load_records``.
        any_ridge: also those of certified methods whose ridge ``WITHIN`` is not that of their preset.

    Returns:
        The columns of :func:`audited_runs`, and ``ridge``, the method's setting, nan where it has none.
    """
    runs = audited_runs(where)
    default, configs = EdgeAuditConfiguration(""), [json.loads(text) for text in runs["config_json"]]
    names = (*VARIED, "same_seed", "spread", "prior", "fraction", "hops", "source")
    plain = np.array([all(_frozen(config[name]) == getattr(default, name) for name in names) for config in configs])
    runs["ridge"] = [dict(config["settings"]).get("ridge", np.nan) for config in configs]
    other = runs["method"].isin(CERTIFIED_SGC) & (runs["ridge"] == WITHIN)
    return runs[plain & (any_ridge | ~other)]


def _frozen(value: object) -> object:
    return tuple(value) if isinstance(value, list) else value


def gcn_runs(where: str = "published") -> pd.DataFrame:
    """The :func:`plain_runs` of the GCN under preset ``corrected``: all graphs, pools and methods."""
    runs = plain_runs(where)
    return runs[(runs["backbone"] == "gcn") & (runs["preset"] == "corrected")]


def control_rows(where: str = "published") -> pd.DataFrame:
    """Gold and Untrained in every published setting, and how far they are from what no memory gives.

    Returns:
        The columns of :func:`audited_runs`, one row per distinct measurement (an untrained model is the same under every
        way of training, and is then listed once); ``expected``, one half, or the AUC of coins tossed again where priors
        differ between edges, as edges that are in more often then have higher scores without any memory; ``distance`` from
        it in standard errors under no memory, nan where the model is the same in every trial and so has no spread.
    """
    runs = audited_runs(where)
    runs = runs[runs["method"].isin(["gold", "untrained"])]
    same = ["data", "backbone", "pool", "method", "trials", "same_seed", "spread", "auc", "null_error"]
    runs = runs.drop_duplicates(same).copy()
    runs["expected"] = runs["null_auc"].where(runs["spread"] > 0, 0.5)
    runs["distance"] = (runs["auc"] - runs["expected"]) / runs["null_error"].where(runs["null_error"] > 0)
    return runs


def allowed_distance(count: int, level: float = 0.05) -> float:
    """The number of standard errors that none of ``count`` values exceeds with probability 1 - level or more.

    Two-sided, by Bonferroni's inequality; by Student's law, as every standard error comes from NULL_DRAWS draws.

    Example:
        >>> round(allowed_distance(1), 2), round(allowed_distance(25), 2)
        (2.0, 3.25)
    """
    if count < 1:
        raise InputError("no value is to be compared: the records hold neither Gold nor Untrained")
    return float(student.isf(level / (2 * count), NULL_DRAWS - 1))


def rank_correlations(
    edges: pd.DataFrame, names: tuple[str, ...], draws: int = 500
) -> dict[str, tuple[float, float, float]]:
    """Spearman's correlation of the AUC of single edges with their place in the graph, with 95 % intervals over edges.

    Args:
        edges: one row an edge with ``edge_auc`` and the columns ``names``; edges where one of them is nan are left out.
        names: columns to correlate it with.
        draws: bootstrap samples of edges; ranks are taken once.

    Returns:
        name -> (correlation, lower end, upper end) in [-1, 1]; nan where all edges agree in that column.
    """
    known = edges.dropna(subset=["edge_auc", *names])
    count = len(known)
    if count < 3:
        return dict.fromkeys(names, (np.nan,) * 3)
    generator = numpy_generator(0, "edge audit", "correlations")
    weights = np.vstack([np.ones(count), generator.multinomial(count, np.full(count, 1 / count), size=draws)]) / count
    y = known["edge_auc"].rank().to_numpy() / count
    found = {}
    for name in names:
        x = known[name].astype(float).rank().to_numpy() / count
        x_mean, y_mean = weights @ x, weights @ y
        spread = (weights @ x**2 - x_mean**2) * (weights @ y**2 - y_mean**2)
        if np.ptp(x) == 0 or np.ptp(y) == 0:
            found[name] = (np.nan,) * 3
            continue
        usable = spread > 1e-12  # a sample may hold edges of one kind alone
        values = (weights @ (x * y) - x_mean * y_mean)[usable] / np.sqrt(spread[usable])
        found[name] = (float(values[0]), *map(float, np.quantile(values[1:], [0.025, 0.975])))
    return found


def _place(run: pd.Series) -> str:
    """Graph and pool of a run, in words."""
    return f"{graph_title(run['data'])}, {run['pool']} pool"


def _names(names: Iterable[str]) -> str:
    """Titles of methods or graphs, in words."""
    return "; ".join(METHOD_TITLES.get(name) or graph_title(name) for name in names) or "none"


def check_memory() -> Finding:
    """O10: the AUC of unlinking, on every graph and pool."""
    runs = gcn_runs()
    unlinked = runs[runs["method"] == "utu"]
    seen = unlinked.groupby("data")["low"].max() > 0.5
    blind = runs[(runs["method"] == "memoriser") & (runs["auc"] < 0.95)]["data"].unique()
    without = [name for name in seen.index[~seen] if name not in blind]
    everywhere = bool((unlinked["low"] > 0.5).all())
    verdict = "holds" if everywhere else "fails" if without else "inconclusive"
    most, least = unlinked.loc[unlinked["auc"].idxmax()], unlinked.loc[unlinked["auc"].idxmin()]
    detail = (
        f"The AUC lies above one half with its whole interval in {int((unlinked['low'] > 0.5).sum())} of {len(unlinked)} pools; "
        f"it is smallest on {_place(least)}, the effect given here, and largest on {_place(most)}, with {most['auc']:.3f}. "
        + (f"No memory is seen on {_names(without)}, where the Memoriser is." if without else "")
    )
    return Finding(verdict, float(least["auc"]), (float(least["low"]), float(least["high"])), detail.strip())


def check_centrality() -> Finding:
    """O11: the AUC of unlinking, low pool minus high pool, on graphs where either is remembered."""
    unlinked = gcn_runs()
    unlinked = unlinked[(unlinked["method"] == "utu") & unlinked["pool"].isin(["low", "high"])]
    pools = unlinked.groupby("data")["pool"].nunique()
    alone = sorted(pools.index[pools < 2])
    table = pool_gaps()
    table = table[table["method"] == "utu"].set_index("data")
    if table.empty:
        return Finding("not testable here", detail="No graph with both pools audited shows memory in either.")
    above, below = table["low"] > 0, table["high"] < 0
    verdict = "holds" if above.all() else "fails" if below.any() else "inconclusive"
    first, most = table["gap"].idxmin(), table["gap"].idxmax()
    detail = (
        f"Low-centrality edges are remembered more on {int(above.sum())} and less on {int(below.sum())} of the graphs with "
        f"memory and both pools audited ({_names(table.index)}); the smallest difference, the effect given here, is on "
        f"{_names([first])}, the largest on {_names([most])}, with {table['gap'].max():.3f}."
        + (f" Without both pools: {_names(alone)}." if alone else "")
    )
    least = table.loc[first]
    return Finding(verdict, float(least["gap"]), (float(least["low"]), float(least["high"])), detail)


def telling_settings(runs: pd.DataFrame) -> pd.Series:
    """Settings that can tell whether half of the memory is gone.

    These are the settings with memory to remove in which half the width of the interval of Gold's residual memory is below one
    half: where it is wider, an exact answer that comes out at zero could not be shown to leave less.

    Args:
        runs: from :func:`gcn_runs`, or a part of it.

    Returns:
        bool over the index of the rows of unlinking with memory to remove.
    """
    unlinked = runs[(runs["method"] == "utu") & runs["to_remove"].eq(True)]
    gold = runs[runs["method"] == "gold"].drop_duplicates(SETTING).set_index(SETTING)
    half = (gold["residual_high"] - gold["residual_low"]) / 2
    return pd.Series(half.reindex(pd.MultiIndex.from_frame(unlinked[SETTING])).to_numpy() < HALF, index=unlinked.index)


def removing_methods(where: str = "published") -> pd.DataFrame:
    """Every approximate method over the settings (GCN, preset corrected) of :func:`telling_settings`.

    Returns:
        One row a method, those audited in every such setting first, then by residual memory: ``settings`` and ``covers``,
        whether these are all; ``residual``, the excess of the AUC over one half, added up over its settings, over that of
        unlinking, so that settings count by the memory that there is; ``residual_shared`` (the same over the settings in which
        every method was audited, nan if there is none) and ``residual_joint`` (with the joint fit in place of the sum);
        ``half_width`` of a 95 % interval of ``residual``; ``residual_low`` and ``residual_high`` (lowest and highest end over
        settings); ``accuracy_change`` (worst, against unlinking); ``below_half``, in how many settings the upper end is below
        one half; ``costs``, the settings in which more than a point of accuracy is lost; ``halves``, whether every upper
        end is below one half without such a loss; ``halves_in``, in how many settings that is so; ``removes``, ``halves``
        and ``covers``. ``attrs["settings"]`` is the number of settings, ``attrs["undecided"]`` names those with memory that
        were left out.

    The half width is on the safe side: pools of one graph share their training seeds, so their half widths are added, those of
    graphs are squared and added. The weights of the settings, the memory that there is, are taken as they are.
    """
    runs = gcn_runs(where)
    runs = runs.assign(
        place=[_place(run) for _, run in runs.iterrows()],
        excess=runs["auc"] - 0.5,
        joint=runs.get(f"{HEADLINE}_joint_auc", np.nan) - 0.5,
    )
    able = telling_settings(runs)
    reference = runs.loc[able.index].assign(able=able).drop_duplicates("place").set_index("place")
    undecided = reference.index[~reference["able"]].tolist()
    reference = reference.loc[reference["able"], ["accuracy_test", "excess", "joint"]].add_prefix("utu_")
    approximate = runs[~runs["method"].isin(CONTROLS)].merge(reference.reset_index(), on="place")
    approximate["accuracy_change"] = approximate["accuracy_test"] - approximate["utu_accuracy_test"]
    approximate["below"] = approximate["residual_high"] < HALF
    approximate["halves"] = approximate["below"] & (approximate["accuracy_change"] >= -POINT)
    half = approximate["residual_high"] - approximate["residual"]
    approximate["weighed"] = half * approximate["utu_excess"]
    methods_of = approximate.groupby("place")["method"].nunique()
    shared = methods_of.index[methods_of == approximate["method"].nunique()]
    table = approximate.groupby("method").agg(
        settings=("place", "nunique"),
        residual_low=("residual_low", "min"),
        residual_high=("residual_high", "max"),
        accuracy_change=("accuracy_change", "min"),
        below_half=("below", "sum"),
        halves=("halves", "all"),
        halves_in=("halves", "sum"),
    )
    for name, part in (("", approximate), ("_shared", approximate[approximate["place"].isin(shared)])):
        sums = part.groupby("method")[["excess", "utu_excess"]].sum()
        table[f"residual{name}"] = (sums["excess"] / sums["utu_excess"]).reindex(table.index)
    sums = approximate.groupby("method")[["joint", "utu_joint", "utu_excess"]].sum()
    table["residual_joint"] = sums["joint"] / sums["utu_joint"]
    by_graph = approximate.groupby(["method", "data"])["weighed"].sum() ** 2
    table["half_width"] = np.sqrt(by_graph.groupby("method").sum()) / sums["utu_excess"]
    dear = approximate[approximate["accuracy_change"] < -POINT]
    table["costs"] = [dear.loc[dear["method"] == name, "place"].tolist() for name in table.index]
    table["covers"] = table["settings"] == len(reference)
    table["removes"] = table["halves"] & table["covers"]
    table = table.sort_values(["covers", "residual"], ascending=[False, True]).reset_index()
    table.attrs |= {"settings": len(reference), "undecided": undecided}
    return table


def in_short(table: pd.DataFrame) -> str:
    """What rows of :func:`removing_methods` say, in a sentence; empty without rows."""
    count = table.attrs["settings"]
    parts = [
        f"{_names([row.method])} leaves {row.residual:.2f} [{row.residual - row.half_width:.2f}, "
        f"{row.residual + row.half_width:.2f}] of the memory, added up over settings; it is shown to leave less than half in "
        f"{row.below_half} of {count}, in {row.halves_in} for at most a point of accuracy, with a worst change of "
        f"{100 * row.accuracy_change:+.1f} points" + (f" (too dear: {', '.join(row.costs)})" if row.costs else "")
        for row in table.itertuples()
    ]
    return f"{'; '.join(parts)}." if parts else ""


def check_removal() -> Finding:
    """O12: whether some approximate method removes half of the memory in every setting."""
    table = removing_methods()
    if table.empty:
        return Finding(
            "not testable here", detail="No setting of the GCN has enough memory to remove and an approximate method."
        )
    good, partly = table[table["removes"]], table[table["halves"] & ~table["covers"]]
    verdict = "holds" if len(good) else "inconclusive" if table["halves_in"].any() else "fails"
    leading = good.head(1) if len(good) else table.head(2)
    best, count = leading.iloc[0], table.attrs["settings"]
    undecided = table.attrs["undecided"]
    detail = (
        f"Methods that do so in all {count} settings that can tell: {_names(good['method'])}; wherever they were run, but not in "
        f"all: {_names(partly['method'])}. {in_short(leading)} The effect, with its interval, is that of the first."
        + (f" With too little memory to tell: {'; '.join(undecided)}." if undecided else "")
    )
    interval = tuple(float(best["residual"] + sign * best["half_width"]) for sign in (-1, 1))
    return Finding(verdict, float(best["residual"]), interval, detail)


def certified_bound(epsilon: float) -> float:
    """An AUC that no attack exceeds between two models both epsilon-indistinguishable from a third, delta left out.

    Their laws are then within 2 epsilon of each other, and the largest AUC in that region has the curve through its corner:
    (1 + tanh(epsilon)) / 2. Being close to a third law as well, they stay a little below it.
    """
    return float((1 + np.tanh(epsilon)) / 2)


def certified_runs(where: str = "published") -> pd.DataFrame:
    """The runs of :func:`plain_runs` that carry a certificate.

    Returns:
        Their columns; ``retrained``, the share of trials in which the method trained again as its budget was spent (nan where
        it is not recorded); ``bound``, see :func:`certified_bound`; ``slack``, the bound minus the AUC; ``approximate``,
        whether some trial is known to have done without training again (in the others the released model is Gold's);
        ``unlinked``, the lower end of the AUC of unlinking in the same setting, nan where that was not run; ``tests``, whether
        the run could refute its certificate: approximate, not collapsed, and unlinking exceeds the bound.
    """
    runs = plain_runs(where, any_ridge=True)
    certified = runs[runs["certified_epsilon"].notna()].copy()
    if "retrained" not in certified:
        certified["retrained"] = np.nan
    certified["bound"] = certified["certified_epsilon"].map(certified_bound)
    certified["slack"] = certified["bound"] - certified["auc"]
    certified["approximate"] = ~only_retrained(certified)
    unlinked = runs[runs["method"] == "utu"].set_index(SETTING)["low"]
    certified["unlinked"] = unlinked.reindex(pd.MultiIndex.from_frame(certified[SETTING])).to_numpy()
    able = certified["approximate"] & (certified["status"] != "collapsed")
    certified["tests"] = able & (certified["bound"] < certified["unlinked"])
    return certified


def only_retrained(runs: pd.DataFrame) -> pd.Series:
    """Which runs of certified methods trained again in every trial, or are not known to have done without."""
    runs = runs.reindex(columns=["certified_epsilon", "retrained"])
    return runs["certified_epsilon"].notna() & ~(runs["retrained"] < 1)


def check_certificates() -> Finding:
    """O13: AUCs of certified methods against the bound that their certificate implies."""
    certified = certified_runs()
    if certified.empty:
        return Finding("not testable here", detail="No audited method carries a certificate.")
    told, unknown = certified[certified["approximate"]], int(certified["retrained"].isna().sum())
    counts = f"{int(certified['retrained'].eq(1).sum())} of {len(certified)} certified runs trained again in every trial: Gold, "
    counts += "not a test of the certificate." + (f" Of {unknown} it is not recorded." if unknown else "")
    if told.empty:
        return Finding("not testable here", detail=f"{counts} None is left to test the bound.")
    broken = told[told["low"] > told["bound"]]
    safe = bool((told["high"] < told["bound"]).all())
    tested = told[told["tests"]]
    verdict = "fails" if len(broken) else "holds" if safe and len(tested) else "inconclusive"
    worst = told.loc[told["slack"].idxmin()]
    detail = (
        f"{counts} Of the other {len(told)} the one closest to its bound is {_names([worst['method']])} on {_place(worst)}, "
        f"with an AUC of {worst['auc']:.3f} against {worst['bound']:.3f}; it trained again in {worst['retrained']:.0%} of the "
        "trials."
    )
    if len(tested):
        runs = (
            f"{_names([run['method']])} on {_place(run)} with epsilon {run['certified_epsilon']:g}, {run['trials']:.0f} trials"
            for _, run in tested.iterrows()
        )
        detail += (
            f" The bound could have been broken, as it is by unlinking, in {len(tested)} of them: {'; '.join(runs)}."
        )
    else:
        detail += (
            " No run that did not collapse has a bound that unlinking alone exceeds, so that none could have broken it."
        )
    return Finding(verdict, float(worst["auc"]), (float(worst["low"]), float(worst["high"])), detail)


def pool_gaps(where: str = "published") -> pd.DataFrame:
    """AUC on the low pool minus that on the high pool of every method that releases a trained model and did not collapse.

    Returns:
        One row per (graph, method) under GCN and preset corrected, on graphs where unlinking shows memory in either pool:
        ``gap`` with ``low`` and ``high``, of a 95 % interval over trials, which are left out of both pools in common.
    """
    runs = gcn_runs(where)
    runs = runs[runs["pool"].isin(["low", "high"]) & (runs["status"] == "ok")]
    remembering = runs[runs["method"] == "utu"].groupby("data")["low"].max()
    runs = runs[runs["data"].isin(remembering.index[remembering > 0.5])]
    runs = runs[~runs["method"].isin(["gold", "untrained", "memoriser"])]
    both = runs.groupby(["data", "method"])["pool"].transform("nunique") == 2
    table = runs.loc[both & (runs["pool"] == "low"), ["data", "method", "gap", "gap_low", "gap_high"]]
    return table.rename(columns={"gap_low": "low", "gap_high": "high"}).dropna().reset_index(drop=True)


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
        f"in {int(below.sum())} the high pool. The smallest difference is that of {_names([least['method']])} on "
        f"{_names([least['data']])}."
    )
    return Finding(verdict, float(least["gap"]), (float(least["low"]), float(least["high"])), detail)


ESTIMAND = "AUC over (edge, trial) of the likelihood ratio from posteriors and edge toggle, randomised audit"

CLAIMS = (
    Claim(
        id="O10",
        sentence="GCNs trained with early stopping remember single edges, on every graph audited.",
        source=SOURCE,
        estimand=f"{ESTIMAND}, unlinked GCN under preset corrected, low, high and random pools of 5 % of the edges; "
        "smallest over them. After a first look the sentence says early stopping, where it said trained to convergence.",
        threshold="Holds if the 95 % interval lies above one half in every pool of every graph, fails if no pool of some graph "
        "shows memory although the Memoriser is seen there.",
        chapter=CHAPTER,
        check=check_memory,
    ),
    Claim(
        id="O11",
        sentence="Low-centrality edges are remembered more than high-centrality edges.",
        source=SOURCE,
        estimand=f"{ESTIMAND}, unlinked GCN: low minus high pool, graphs with both pools audited on which either is remembered; "
        "smallest over them. After a first look: trials are left out of both pools in common, as they share coins and seeds, "
        "where the two had been taken for independent.",
        threshold="Holds if the 95 % interval lies above zero on every such graph, fails if it lies below on any.",
        chapter=CHAPTER,
        check=check_centrality,
    ),
    Claim(
        id="O12",
        sentence="Some approximate method removes at least half of what unlinking leaves, for at most one point of accuracy.",
        source=SOURCE,
        estimand="Residual memory, (AUC - 1/2) over that of unlinking, and test accuracy against unlinking; GCN, every graph and "
        "pool with enough memory to tell whether half of it is gone. After a first look: a method must have been run in every "
        "such setting, and settings in which not even Gold could be shown to leave less than half no longer count: those where "
        "half the width of the interval of Gold's residual memory is one half or more; the effect has an interval of its own, "
        "where the lowest and the highest end over settings stood.",
        threshold="Holds if one method, audited in every such setting, has the upper end below one half and loses at most a "
        "point in all of them; fails if none does in any; inconclusive otherwise, also if a method does so wherever it was run "
        "but was not run everywhere.",
        chapter=CHAPTER,
        check=check_removal,
    ),
    Claim(
        id="O13",
        sentence="Certified methods reveal less of an edge than their certificate allows.",
        source=SOURCE,
        estimand=f"{ESTIMAND}, methods with a certificate (epsilon, delta), against (1 + tanh(epsilon)) / 2, which the AUC "
        "between two models both epsilon-close to retraining does not exceed. After a first look: runs that trained again in "
        "every trial, their budget spent, are left out, as they are retraining, and so are runs of which this is not known; "
        "a bound that unlinking itself does not exceed tests nothing, nor does a model that collapsed; the runs with epsilon 0.5 "
        "were added then, as unlinking exceeded no bound of the first ones.",
        threshold="Holds if every upper end lies below the bound and in some setting unlinking lies above it and the released "
        "model did not collapse, fails if a lower end lies above.",
        chapter=CHAPTER,
        check=check_certificates,
    ),
    Claim(
        id="L27",
        sentence="Low-centrality edges are the fatal weakness of all methods.",
        source="Lethe benchmark (arXiv:2610.21869)",
        estimand=f"{ESTIMAND}: low minus high pool, for every approximate method and unlinking, GCN, preset corrected, on graphs "
        "where unlinking shows memory in either pool. Our reading: a weakness is what a method still gives away, and structure "
        "must not count. After a first look: trials are left out of both pools in common, where these had been taken for "
        "independent.",
        threshold="Holds if the 95 % interval lies above zero for every method on every such graph, fails if it lies below for "
        "any.",
        chapter=CHAPTER,
        check=check_fatal_weakness,
    ),
)
