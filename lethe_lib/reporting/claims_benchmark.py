"""Claims of chapter 14: cost, generic against graph-native methods, attention, backbones, link prediction."""

from itertools import combinations, product

import numpy as np
import pandas as pd
from scipy.stats import spearmanr

from lethe_lib.evaluation import mean_interval, ratio_interval
from lethe_lib.reporting.claims import Claim, Finding
from lethe_lib.reporting.claims_edge_audit import only_retrained, plain_runs
from lethe_lib.reporting.leaderboard import trained_again
from lethe_lib.reporting.titles import BACKBONE_TITLES, GRAPH_TITLES, METHOD_TITLES
from lethe_lib.study import load_records
from lethe_lib.study.benchmark import AUDIT, benchmark_excess, benchmark_records, main_backbone, missing_studies
from lethe_lib.unlearning import UNLEARNERS

CHAPTER = "14_benchmark"
SMALL = ("cora", "citeseer", "pubmed")
A_MINUTE = 60.0  # L01: "retraining takes seconds"
SAME_ORDER = 0.5  # L26: rank correlation of methods over backbones
TUNED = ("scrub", "fisher")


def small_graph_costs(records: pd.DataFrame, preset: str = "corrected", backbone: str = "gcn") -> pd.DataFrame:
    """Seconds over Gold's on the three small graphs, low and high sets, for the methods of the benchmark.

    Args:
        records: from ``benchmark_records``.
        preset, backbone: of the methods.

    Returns:
        one row per (method, data): geometric mean ``ratio`` with ``low`` and ``high`` of its 95 % t interval over runs,
        quartiles ``first`` and ``third``, and ``gold``, mean seconds of the Golds. Unlinking, which computes nothing, and
        additions are left out.
    """
    records = records[(records["preset"] == preset) & (records["backbone"] == backbone) & records["data"].isin(SMALL)]
    records = records[records["forget"].isin(["low", "high"]) & records["share"].notna()]
    rows = []
    for (method, data), part in records.groupby(["method", "data"], sort=True):
        if UNLEARNERS[method].kind not in ("generic", "graph-native") or method == "utu" or len(part) < 2:
            continue
        ratio, low, high = ratio_interval(part["seconds"], part["gold_seconds"])
        first, third = part["share"].quantile([0.25, 0.75])
        row = {"method": method, "data": data, "ratio": ratio, "low": low, "high": high, "first": first, "third": third}
        rows.append({**row, "gold": float(part["gold_seconds"].mean())})
    return pd.DataFrame(rows, columns=["method", "data", "ratio", "low", "high", "first", "third", "gold"])


def check_small_graphs() -> Finding:
    """L01: retraining within a minute, and more than half of the (method, graph) pairs slower than it."""
    records = benchmark_records()
    table = small_graph_costs(records)
    slower, faster = int((table["low"] > 1).sum()), int((table["high"] < 1).sum())
    quick = bool((table["gold"] < A_MINUTE).all())
    half = len(table) / 2
    verdict = "holds" if quick and slower > half else "fails" if not quick or faster > half else "inconclusive"
    per_method = np.log(table.groupby("method")["ratio"].apply(lambda values: np.exp(np.log(values).mean())))
    mean, low, high = (float(np.exp(value)) for value in mean_interval(per_method))
    golds = ", ".join(f"{GRAPH_TITLES[name]} {part['gold'].mean():.1f}" for name, part in table.groupby("data"))
    worst = table.loc[table["ratio"].idxmax()]
    published = small_graph_costs(records, "published")
    slow, fast = int((published["low"] > 1).sum()), int((published["high"] < 1).sum())
    alone = small_graph_costs(records, backbone="sgc")
    alone = alone[~alone["method"].isin(table["method"])]
    apart = ", ".join(f"{METHOD_TITLES[r.method]} {r.ratio:.2g} on {GRAPH_TITLES[r.data]}" for r in alone.itertuples())
    detail = (
        f"Retraining takes, in seconds: {golds}. Of {len(table)} (method, graph) pairs of {table['method'].nunique()} methods "
        f"{slower} are slower with their whole interval and {faster} faster; slowest is {METHOD_TITLES[worst['method']]} on "
        f"{GRAPH_TITLES[worst['data']]}, {worst['ratio']:.2g} times Gold. Preset published: "
        f"{slow} of {len(published)} slower, {fast} faster. Seconds are from a shared machine and noisy; each is held against "
        "the Golds of the same cell and seed."
        + (f" Methods for SGC alone, not counted: {apart} times Gold." if apart else "")
    )
    return Finding(verdict, mean, (low, high), detail)


def generic_against_native() -> pd.DataFrame:
    """SCRUB and Fisher Forgetting against every graph-native method, pair by pair, preset ``corrected``.

    Under the GCN, or for a graph-native method without GCN under its own backbone. Unlinking is not among them, as it
    computes nothing.

    Returns:
        one row per (method, native, data): ``memory``, AUC of the edge audit of the method minus that of the graph-native
        one, mean over pools in which unlinking leaves memory and both were audited and did not collapse; ``time``, log of the
        ratio of their costs, mean over low and high sets; NaN where the records do not hold both. Runs in which a method
        trained again, its budget spent, are left out.
    """
    records = benchmark_records()
    records = records[(records["preset"] == "corrected") & records["forget"].isin(["low", "high"])]
    records = records[records["share"].notna() & ~trained_again(records)].rename(columns={"forget": "pool"})
    axes = ["backbone", "data", "pool", "method"]
    measured = {"time": records.groupby(axes)["share"].apply(lambda values: np.log(values).mean())}
    if AUDIT not in missing_studies():
        runs = plain_runs()
        runs = runs[(runs["preset"] == "corrected") & (runs["status"] == "ok") & runs["to_remove"].eq(True)]
        runs = runs[~only_retrained(runs)]
        measured["memory"] = runs.groupby(axes)["auc"].mean()
    rows = {}
    for column, values in measured.items():
        wide = values.unstack("method")
        for method, native in product(TUNED, native_methods()):
            if {method, native} <= set(wide):
                own = (wide[method] - wide[native]).dropna()
                own = own[own.index.get_level_values("backbone") == native_methods()[native]]
                for data, value in own.groupby("data").mean().items():
                    rows.setdefault((method, native, data), {})[column] = value
    index = pd.MultiIndex.from_tuples(rows, names=["method", "native", "data"])
    return pd.DataFrame(list(rows.values()), index, columns=["memory", "time"]).reset_index()


def native_methods() -> dict[str, str]:
    """The benchmark's graph-native methods that compute something, each with the backbone on which it is compared."""
    native = (name for name, entry in UNLEARNERS.items() if entry.kind == "graph-native" and name != "utu")
    return {name: main_backbone(name) for name in native}


def generic_differences() -> dict[tuple[str, str, str], pd.Series]:
    """The values of :func:`generic_against_native` over graphs, by (method, native, ``memory`` or ``time``)."""
    values = {}
    for (method, native), part in generic_against_native().groupby(["method", "native"], sort=False):
        values |= {(method, native, column): part[column].dropna() for column in ("memory", "time")}
    return {key: own for key, own in values.items() if len(own)}


def generic_table() -> pd.DataFrame:
    """L19 pair by pair for the reader: mean with its t interval over graphs; with two graphs both values instead."""
    values, rows = generic_differences(), []
    for method, native in product(TUNED, native_methods()):
        row = {"method": METHOD_TITLES[method], "against": METHOD_TITLES[native]}
        for column, title in (("memory", "AUC minus its"), ("time", "seconds over its")):
            own = values.get((method, native, column), ())
            row |= {title: _difference(column, own), f"graphs, {title.split()[0]}": len(own)}
        rows.append(row)
    return pd.DataFrame(rows)


def _difference(column: str, values: pd.Series) -> str:
    """One value, two, or a mean with its t interval; of logarithms, as ratios."""
    if not len(values):
        return "none"
    mean, *ends = mean_interval(values) if len(values) > 2 else tuple(values)
    mean, *ends = (f"{value:+.3f}" if column == "memory" else f"{np.exp(value):.2g}" for value in (mean, *ends))
    return f"{mean} [{', '.join(ends)}]" if len(ends) > 1 else ", ".join((mean, *ends))


def check_generic_wins() -> Finding:
    """L19: both tuned generic methods must leave less memory and cost less than each graph-native one, over graphs."""
    values, pairs = generic_differences(), len(TUNED) * len(native_methods())
    ends = {key: mean_interval(own) for key, own in values.items() if len(own) > 1}
    memory = {key: found for key, found in ends.items() if key[2] == "memory"}
    beaten = any(low > 0 for _, low, _ in ends.values())
    lowest = all(high < 0 for _, _, high in ends.values()) and len(ends) == 2 * pairs
    known = {method for method, _, _ in memory} == set(TUNED)
    verdict = "fails" if beaten else "not testable here" if not known else "holds" if lowest else "inconclusive"
    told = []
    for column, title in (("memory", "memory"), ("time", "seconds")):
        own = [found for key, found in ends.items() if key[2] == column]
        better, worse = sum(high < 0 for _, _, high in own), sum(low > 0 for _, low, _ in own)
        told.append(f"{title}: less in {better} of {pairs} pairs with the whole interval, more in {worse}")
    rest = [METHOD_TITLES[name] for name in native_methods() if not any(key[1:] == (name, "memory") for key in values)]
    detail = (
        f"{'; '.join(told)}, pair by pair in the chapter. Without a memory to compare: {', '.join(rest) or 'none'}. Budgets "
        f"are not equal: backward passes of a request, median, {passes()} (0: a solver of its own); those of the presets, tuned "
        "for the generic methods alone."
    )
    worst = max(memory.values()) if known else (None, None, None)
    return Finding(verdict, worst[0], worst[1:] if known else None, detail[0].upper() + detail[1:])


def passes() -> str:
    """Median backward passes of a request, tuned and graph-native methods, preset ``corrected``; 0 with a solver of its own."""
    records = benchmark_records()
    records = records[(records["preset"] == "corrected") & (records["status"] != "unsupported")]
    names = [name for name in (*TUNED, *native_methods()) if name in set(records["method"])]
    median = records.groupby("method")["backwards"].median()
    return ", ".join(f"{METHOD_TITLES[name]} {median[name]:.0f}" for name in names)


def rank_table(where: str = "published") -> pd.DataFrame:
    """Rank correlation of WalkCentrality and endpoint displacement, one row per (data, backbone) with ``rank`` and its ends."""
    records, rows = load_records("centrality_rank", where), []
    for (data, backbone), part in records.groupby(["data", "backbone"], sort=False):
        rank, low, high = mean_interval(part["rank"])
        rows.append({"data": data, "backbone": backbone, "rank": rank, "low": low, "high": high, "seeds": len(part)})
    return pd.DataFrame(rows)


def check_attention() -> Finding:
    """L25: agreement of displacement with WalkCentrality, GCN minus GAT, paired by seed, on every graph."""
    records = load_records("centrality_rank")
    table = records.pivot(index=["data", "seed"], columns="backbone", values="rank")
    lost = {data: mean_interval(part["gat"] - part["gcn"]) for data, part in table.groupby("data")}
    verdict = "holds" if all(low > 0 for _, low, _ in lost.values()) else "inconclusive"
    if any(high < 0 for _, _, high in lost.values()):
        verdict = "fails"
    least = min(lost.values(), key=lambda found: found[0])
    means = rank_table().pivot(index="backbone", columns="data", values="rank")
    words = [
        f"{BACKBONE_TITLES[name]} {', '.join(f'{GRAPH_TITLES[data]} {value:+.2f}' for data, value in row.items())}"
        for name, row in means.iterrows()
    ]
    detail = (
        "Rank correlation of WalkCentrality with the displacement of single edges; minus one would be the measure's promise. "
        f"{'; '.join(words)}."
    )
    return Finding(verdict, least[0], least[1:], detail)


def backbone_agreement() -> pd.DataFrame:
    """Do the methods behave alike under other backbones: low and high sets of the graphs that have all five.

    Returns:
        one row per (data, backbone), the GCN too: ``accuracy_order`` and ``stealing_order``, rank correlation over methods
        with the GCN of the change of accuracy and of the excess of Link Stealing (means over both sets); ``low_above_high``,
        the share of methods whose LinkTeller AUC is higher on low sets; ``gold_gap`` and ``untrained_gap``, that AUC on low
        minus on high sets for these controls (NaN without a record); ``methods``, how many were compared, generic,
        graph-native and additions; ``absent``, which of the GCN's have no record there.
    """
    records, excess = benchmark_records(), benchmark_excess()
    graded = [t[(t["preset"] == "corrected") & t["forget"].isin(["low", "high"])] for t in (records, excess)]
    areas = graded[1][graded[1]["attack"] == "link_teller"]
    areas = areas.pivot_table(index=["data", "backbone", "method"], columns="forget", values="auc")
    areas = areas.reindex(columns=["low", "high"])
    gaps = (areas["low"] - areas["high"]).to_dict()
    records, excess = (t[t["method"].map(lambda name: UNLEARNERS[name].kind != "control")] for t in graded)
    axes = ["data", "backbone", "method"]
    table = pd.DataFrame({"change": records.groupby(axes)["change"].mean()})
    table["stealing"] = excess[excess["attack"] == "link_stealing"].groupby(axes)["excess"].mean()
    teller = excess[excess["attack"] == "link_teller"].pivot(index=axes, columns="forget", values="auc")
    table["low_minus_high"] = teller["low"] - teller["high"]
    table = table.dropna()
    rows = []
    for data in table.index.unique("data"):
        own = table.loc[data]
        if set(own.index.unique("backbone")) < set(BACKBONE_TITLES):
            continue
        for backbone in BACKBONE_TITLES:
            both = own.loc[backbone].join(own.loc["gcn"], rsuffix="_gcn", how="inner")
            orders = {
                f"{title}_order": float(spearmanr(both[column], both[f"{column}_gcn"]).statistic)
                for title, column in (("accuracy", "change"), ("stealing", "stealing"))
            }
            row = {"data": data, "backbone": backbone, **orders, "methods": len(both)}
            row["low_above_high"] = float((own.loc[backbone]["low_minus_high"] > 0).mean())
            row |= {f"{name}_gap": gaps.get((data, backbone, name), np.nan) for name in ("gold", "untrained")}
            rows.append(row | {"absent": tuple(name for name in own.loc["gcn"].index if name not in both.index)})
    columns = ["data", "backbone", "accuracy_order", "stealing_order", "low_above_high"]
    columns += ["gold_gap", "untrained_gap", "methods", "absent"]
    return pd.DataFrame(rows, columns=columns)


def seed_agreement() -> pd.DataFrame:
    """How far the methods' order under the GCN agrees between seeds, on the graphs of :func:`backbone_agreement`.

    Returns:
        one row per graph: ``accuracy_order`` and ``stealing_order``, rank correlations over methods between one seed and
        another, mean over pairs of seeds; of the same quantities as there, and of as many methods as both seeds have.
    """
    records = benchmark_records()
    records = records[(records["preset"] == "corrected") & records["forget"].isin(["low", "high"])]
    records = records[(records["backbone"] == "gcn") & records["data"].isin(backbone_agreement()["data"])]
    cell = ["data", "forget", "seed"]
    golds = records[records["method"] == "gold"].groupby(cell)["link_stealing_auc"].mean().rename("gold_auc")
    records = records[records["method"].map(lambda name: UNLEARNERS[name].kind != "control")].join(golds, on=cell)
    records = records.assign(stealing=records["link_stealing_auc"] - records["gold_auc"])
    rows = []
    for data, part in records.groupby("data"):
        row = {"data": data}
        for title, column in (("accuracy", "change"), ("stealing", "stealing")):
            wide = part.groupby(["method", "seed"])[column].mean().unstack("seed").dropna()
            orders = [spearmanr(wide[one], wide[other]).statistic for one, other in combinations(wide, 2)]
            row[f"{title}_order"] = float(np.mean(orders)) if orders else np.nan
        rows.append(row)
    return pd.DataFrame(rows, columns=["data", "accuracy_order", "stealing_order"])


def check_backbones() -> Finding:
    """L26: LinkTeller higher on low sets for every method and backbone, and the methods in the GCN's order."""
    table = backbone_agreement()
    others = table[table["backbone"] != "gcn"]
    if others.empty:
        return Finding("not testable here", detail="No graph has published records of all five backbones.")
    orders = 0.5 * (others["accuracy_order"] + others["stealing_order"])
    mean, low, high = mean_interval(orders)
    everywhere = bool((table["low_above_high"] == 1).all())
    verdict = "inconclusive" if everywhere else "fails"
    if everywhere and (low > SAME_ORDER or high < SAME_ORDER):
        verdict = "holds" if low > SAME_ORDER else "fails"
    words = [
        f"{BACKBONE_TITLES[name]}: accuracy {part['accuracy_order'].mean():+.2f}, Link Stealing "
        f"{part['stealing_order'].mean():+.2f}"
        for name, part in others.groupby("backbone")
    ]
    where = "every" if everywhere else "not every"
    absent = ", ".join(METHOD_TITLES[name] for name in UNLEARNERS if any(name in names for names in others["absent"]))
    counts = " to ".join(map(str, sorted({int(others["methods"].min()), int(others["methods"].max())})))
    detail = (
        f"LinkTeller is higher on the low set for {where} method and backbone, on "
        f"{' and '.join(GRAPH_TITLES[name] for name in others['data'].unique())}. Rank correlation over methods with the GCN, "
        f"mean over graphs: {'; '.join(words)}. Compared were {counts} methods, generic, graph-native and additions"
        + (f"; on record under the GCN but not under every other backbone: {absent}." if absent else ".")
    )
    return Finding(verdict, mean, (low, high), detail)


def check_link_prediction() -> Finding:
    """L28: what is missing."""
    return Finding(
        "not testable here",
        detail="The library trains node classifiers alone: it has no link predictor (an encoder with a decoder of pairs), so "
        "neither utility nor attacks of such a model can be computed, and the source publishes no number to compare with.",
    )


SOURCE = "Lethe benchmark (arXiv:2610.21869)"
CLAIMS = (
    Claim(
        id="L01",
        sentence="On Cora, CiteSeer and PubMed retraining takes seconds, and special algorithms are slower.",
        source=SOURCE,
        estimand="Seconds of a method over the mean seconds of the Golds of the same cell and seed, geometric mean over runs, "
        "per method and graph; GCN, low and high 5 % sets, preset corrected, the benchmark's methods but unlinking. The effect "
        "is the geometric mean over methods with a t interval over methods. 'Slower' read as: more than half of the pairs.",
        threshold="Holds if retraining stays under a minute on all three graphs and the 95 % interval lies above 1 for more "
        "than half of the (method, graph) pairs; fails if retraining does not, or the interval lies below 1 for more than half.",
        chapter=CHAPTER,
        check=check_small_graphs,
    ),
    Claim(
        id="L19",
        sentence="Tuned generic methods (SCRUB, Fisher Forgetting) beat graph-native ones in defence and time.",
        source=SOURCE,
        estimand="For SCRUB and Fisher Forgetting against each graph-native method but unlinking (CEU, IDEA, GNNDelete under "
        "GCN; CGU, ScaleGUN under SGC), preset corrected: AUC of the edge audit of the one minus that of the other, over pools "
        "in which unlinking leaves memory, and the ratio of their seconds over Gold's, low and high 5 % sets; t intervals over "
        "graphs. Budgets are those of the presets. The effect printed is the largest difference of memory. Changed after a first "
        "look: defence had been the excess over Gold of LinkTeller, which turned out blind to memory, and Link Stealing, "
        "against the mean of the graph-native methods; and runs in which a certified method trained again, its budget spent, "
        "are left out, of the audit those that did so in every trial: they are retraining.",
        threshold="Holds if for every pair both 95 % intervals, of the AUC difference and of the log cost ratio, lie below zero; "
        "fails if one lies above; not testable while the audit holds either method beside graph-native ones on fewer than two "
        "graphs.",
        chapter=CHAPTER,
        check=check_generic_wins,
    ),
    Claim(
        id="L25",
        sentence="WalkCentrality does not carry over exactly to attention models.",
        source=SOURCE,
        estimand="Spearman correlation of WalkCentrality with the endpoint displacement of 400 random edges, GAT minus GCN, "
        "paired by seed and edges, trained to convergence; each graph. The smallest difference over graphs is printed. Our "
        "reading: high centrality promises small displacement, so a less negative correlation is worse. Cut to three graphs, "
        "for want of time, after a first look at partial results of two.",
        threshold="Holds if the 95 % interval of the difference lies above zero on every graph, fails if it lies below zero on "
        "any.",
        chapter=CHAPTER,
        check=check_attention,
    ),
    Claim(
        id="L26",
        sentence="The conclusions hold over five backbones.",
        source=SOURCE,
        estimand="On the graphs with records of all five backbones, preset corrected: whether LinkTeller's AUC is higher on the "
        "low than on the high set for every method, generic, graph-native or addition, that is on record there, and the rank "
        "correlation over methods with the GCN, mean of that of the accuracy change and that of the excess of Link Stealing; t "
        "interval over (graph, backbone) pairs. Which conclusions are meant is our reading. The set of methods was widened "
        "after a first look: the graph-native ones had been left out.",
        threshold=f"Holds if the first is so everywhere and the interval lies above {SAME_ORDER}, fails if it is "
        "not, or the interval lies below.",
        chapter=CHAPTER,
        check=check_backbones,
    ),
    Claim(
        id="L28",
        sentence="The protocol extends to link prediction.",
        source=SOURCE,
        estimand="Excess over Gold of the attacks on a link predictor after unlearning, and its AUC on held-out edges.",
        threshold="Not set, since nothing can be measured.",
        chapter=CHAPTER,
        check=check_link_prediction,
    ),
)
