"""Claims of chapter 14: cost, generic against graph-native methods, attention, backbones, link prediction."""

from itertools import product

import numpy as np
import pandas as pd
from scipy.stats import spearmanr

from lethe_lib.evaluation import mean_interval, ratio_interval
from lethe_lib.reporting.claims import Claim, Finding
from lethe_lib.reporting.families import TITLES
from lethe_lib.reporting.leaderboard import BACKBONE_TITLES, GRAPH_TITLES
from lethe_lib.study import load_records
from lethe_lib.study.benchmark import benchmark_excess, benchmark_records
from lethe_lib.unlearning import UNLEARNERS

CHAPTER = "14_benchmark"
SMALL = ("cora", "citeseer", "pubmed")
A_MINUTE = 60.0  # L01: "retraining takes seconds"
SAME_ORDER = 0.5  # L26: rank correlation of methods over backbones
TUNED = ("scrub", "fisher")
DEFENCE = ("link_teller", "link_stealing")


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
    return pd.DataFrame(rows)


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
    apart = ", ".join(f"{TITLES[r.method]} {r.ratio:.2g} on {GRAPH_TITLES[r.data]}" for r in alone.itertuples())
    detail = (
        f"Retraining takes, in seconds: {golds}. Of {len(table)} (method, graph) pairs of {table['method'].nunique()} methods "
        f"{slower} are slower with their whole interval and {faster} faster; slowest is {TITLES[worst['method']]} on "
        f"{GRAPH_TITLES[worst['data']]}, {worst['ratio']:.2g} times Gold. Preset published: "
        f"{slow} of {len(published)} slower, {fast} faster. Seconds are from a shared machine and noisy; each is held against "
        "the Golds of the same cell and seed."
        + (f" Methods for SGC alone, not counted: {apart} times Gold." if apart else "")
    )
    return Finding(verdict, mean, (low, high), detail)


def generic_against_native() -> pd.DataFrame:
    """SCRUB and Fisher Forgetting minus the graph-native methods of the same cell: GCN, preset ``corrected``.

    Returns:
        one row per (method, cell): ``defence``, mean excess over Gold of LinkTeller and Link Stealing minus the mean of the
        graph-native methods; ``distance``, the same of its size without the sign; ``time``, log of the ratio of the geometric
        mean costs; ``native``, their names. Unlinking is not among them, as it computes nothing.
    """
    records, excess = benchmark_records(), benchmark_excess()
    axes = ["data", "forget"]
    records, excess = (t[(t["preset"] == "corrected") & (t["backbone"] == "gcn")] for t in (records, excess))
    cost = records[records["share"].notna()].groupby([*axes, "method"])["share"].apply(lambda v: np.log(v).mean())
    leak = excess[excess["attack"].isin(DEFENCE)].groupby([*axes, "method"])["excess"]
    away = leak.apply(lambda values: values.abs().mean())
    cells = pd.DataFrame({"time": cost, "defence": leak.mean(), "distance": away}).dropna().reset_index()
    kinds = cells["method"].map(lambda name: UNLEARNERS[name].kind)
    native = cells[(kinds == "graph-native") & (cells["method"] != "utu")]
    means = native.groupby(axes)[["time", "defence", "distance"]].mean()
    names = native.groupby(axes)["method"].agg(lambda values: ", ".join(TITLES[name] for name in values))
    tuned = cells[cells["method"].isin(TUNED)].set_index([*axes, "method"])
    tuned = tuned.join(means, on=axes, rsuffix="_native").join(names.rename("native"), on=axes).dropna()
    for column in ("time", "defence", "distance"):
        tuned[column] -= tuned.pop(f"{column}_native")
    return tuned.reset_index()


def check_generic_wins() -> Finding:
    """L19: both tuned generic methods must leak less and cost less than the graph-native ones, over graphs."""
    table = generic_against_native()
    if table["data"].nunique() < 2:
        return Finding(
            "not testable here", detail="The published records hold graph-native methods on fewer than two graphs."
        )
    ends, words = {}, []
    for method, column in product(TUNED, ("defence", "time")):
        values = table[table["method"] == method].groupby("data")[column].mean()
        ends[method, column] = mean_interval(values)
        mean, low, high = ends[method, column]
        if column == "time":
            words.append(f"costs {np.exp(mean):.2g} [{np.exp(low):.2g}, {np.exp(high):.2g}] times as much")
        else:
            words.append(f"{TITLES[method]} has an excess {mean:+.4f} [{low:+.4f}, {high:+.4f}] above theirs")
    lowest = all(high < 0 for _, _, high in ends.values())
    beaten = any(low > 0 for _, low, _ in ends.values())
    verdict = "holds" if lowest else "fails" if beaten else "inconclusive"
    away, native = table["distance"].mean(), sorted({name for names in table["native"] for name in names.split(", ")})
    worst = max((ends[method, "defence"] for method in TUNED), key=lambda found: found[0])
    detail = (
        f"Over {table['data'].nunique()} graphs and {table[['data', 'forget']].drop_duplicates().shape[0]} cells: "
        f"{'; '.join(', it '.join(words[i : i + 2]) for i in (0, 2))}. Graph-native: {', '.join(native)}. "
        f"Without the sign, the excess of the two is {away:+.4f} against theirs in the mean: nearer to Gold where that is "
        "negative. Budgets are those of each "
        "method's preset and were tuned for the generic methods alone; residual memory stands in the leaderboard."
    )
    return Finding(verdict, worst[0], worst[1:], detail)


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
        the share of methods whose LinkTeller AUC is higher on low sets; ``methods``, how many were compared.
    """
    records, excess = benchmark_records(), benchmark_excess()
    graded = [t[(t["preset"] == "corrected") & t["forget"].isin(["low", "high"])] for t in (records, excess)]
    records, excess = (
        t[t["method"].map(lambda name: UNLEARNERS[name].kind in ("generic", "addition"))] for t in graded
    )
    axes = ["data", "backbone", "method"]
    table = pd.DataFrame({"change": records.groupby(axes)["change"].mean()})
    table["stealing"] = excess[excess["attack"] == "link_stealing"].groupby(axes)["excess"].mean()
    teller = excess[excess["attack"] == "link_teller"].pivot(index=axes, columns="forget", values="auc")
    table["low_above_high"] = teller["low"] > teller["high"]
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
            share = float(own.loc[backbone]["low_above_high"].astype(bool).mean())
            rows.append({"data": data, "backbone": backbone, **orders, "low_above_high": share, "methods": len(both)})
    return pd.DataFrame(rows)


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
    detail = (
        f"LinkTeller is higher on the low set for {where} method and backbone, on "
        f"{' and '.join(GRAPH_TITLES[name] for name in others['data'].unique())}. Rank correlation over methods with the GCN, "
        f"mean over graphs: {'; '.join(words)}."
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
        estimand="Per cell, the method's mean excess over Gold of LinkTeller and Link Stealing minus the mean of the "
        "graph-native methods, and the ratio of their costs; GCN, preset corrected; t intervals over graphs. Lower excess is "
        "read as better defence, as in the source. The effect printed is the larger of the two methods' excess differences.",
        threshold="Holds if for both methods both 95 % intervals, of the excess difference and of the log cost ratio, lie below "
        "zero; fails if one of the four lies above.",
        chapter=CHAPTER,
        check=check_generic_wins,
    ),
    Claim(
        id="L25",
        sentence="WalkCentrality does not carry over exactly to attention models.",
        source=SOURCE,
        estimand="Spearman correlation of WalkCentrality with the endpoint displacement of 400 random edges, GAT minus GCN, "
        "paired by seed and edges, trained to convergence; each graph. The smallest difference over graphs is printed. Our "
        "reading: high centrality promises small displacement, so a less negative correlation is worse.",
        threshold="Holds if the 95 % interval of the difference lies above zero on every graph, fails if it lies below zero on "
        "any.",
        chapter=CHAPTER,
        check=check_attention,
    ),
    Claim(
        id="L26",
        sentence="The conclusions hold over five backbones.",
        source=SOURCE,
        estimand="On the graphs with records of all five backbones: whether LinkTeller's AUC is higher on the low than on the "
        "high set for every method, and the rank correlation over methods with the GCN, mean of that of the accuracy change and "
        "that of the excess of Link Stealing; t interval over (graph, backbone) pairs. Which conclusions are meant is our "
        "reading.",
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
