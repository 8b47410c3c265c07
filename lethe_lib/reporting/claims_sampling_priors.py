"""The claims about samplers: unequal priors, exchangeability broken before training, and bounds that no training beats.

All are measured on the published draws from Cora, CiteSeer, PubMed and Photo, at ratios 0.1 and 0.5: eight cells. The
sampler that decides is snowball, the one that the source uses beside uniform sampling; the others are named in the
detail. A claim about every cell is decided by intervals whose joint level is 95 % (Bonferroni over the cells).
"""

import numpy as np
import pandas as pd
from scipy.stats import norm, t

from lethe_lib.reporting.claims import Claim, Finding
from lethe_lib.reporting.glue import as_text
from lethe_lib.reporting.titles import graph_title
from lethe_lib.sampling import sampled_prior_bounds
from lethe_lib.study.sampling_priors import load_sampling_priors, load_table

CHAPTER = "02_sampling_priors"
TITLES = {name: graph_title(name) for name in ("cora", "citeseer", "pubmed", "photo")}  # graphs of Part I
DECIDING = "snowball"
CONTROL = "uniform"
CELL = ["graph", "ratio"]
LEVEL = 0.05

LEAST_RATIO = 1.5  # B13: the likeliest tenth of the nodes against the least likely tenth
LEAST_AUC = 0.55  # B14
LEAST_GAP = 1.0  # O01: nats


def smallest_cell(cells: pd.DataFrame, threshold: float) -> tuple[str, pd.Series]:
    """The verdict over all cells, and the cell with the smallest effect.

    Args:
        cells: columns ``effect``, ``low`` and ``high``, one row a cell.
        threshold: every cell must exceed it.

    Returns:
        "holds" when every interval lies above the threshold, "fails" when one lies below it, else "inconclusive"; and
        the row with the smallest effect.
    """
    if (cells["low"] > threshold).all():
        verdict = "holds"
    else:
        verdict = "fails" if (cells["high"] < threshold).any() else "inconclusive"
    return verdict, cells.loc[cells["effect"].idxmin()]


def prior_ratios(level: float) -> pd.DataFrame:
    """How many times likelier the likeliest tenth is than the least likely tenth, per graph, ratio and sampler."""
    table = load_table("draws")
    width = norm.ppf(1 - level / 2) * table["log_ratio_error"]
    return table.assign(
        effect=np.exp(table["log_ratio"]),
        low=np.exp(table["log_ratio"] - width),
        high=np.exp(table["log_ratio"] + width),
    )


def structure_aucs(level: float, score: str = "structure") -> pd.DataFrame:
    """The mean AUC over draws for telling members by ``score``, per graph, ratio and sampler, with a t interval."""
    groups = load_table("distinguishability").groupby([*CELL, "sampler"], observed=True)[score]
    table = groups.agg(["mean", "sem", "count"]).reset_index()
    width = t.ppf(1 - level / 2, table["count"] - 1) * table["sem"]
    return table.assign(effect=table["mean"], low=table["mean"] - width, high=table["mean"] + width)


def prior_gaps(level: float) -> pd.DataFrame:
    """The bounds of eps_R and eps_L that sampling alone sets, and their sum, per graph, ratio and sampler (odds form).

    Nodes are chosen on the first half of the draws and measured on the second; the interval of the sum adds the ends.

    Returns:
        Columns ``eps_right``, ``eps_left`` (nats; each with ``_low``, and ``_high``, which is infinite where the draws
        cannot tell the prior from 0 or 1), and ``effect``, ``low``, ``high`` of the sum.
    """
    rows = []
    for (graph, ratio, sampler), cell in load_sampling_priors().groupby([*CELL, "sampler"], observed=True):
        right, left = sampled_prior_bounds(
            cell["first_half"], cell["second_half"], int(cell["draws"].iloc[0]) // 2, confidence=1 - level / 2
        )
        row = {"graph": graph, "ratio": ratio, "sampler": sampler}
        for side, bound in (("eps_right", right), ("eps_left", left)):
            row |= {side: bound.value, f"{side}_low": bound.interval[0], f"{side}_high": bound.interval[1]}
        row |= {"effect": right.value + left.value}
        row |= {end: row[f"eps_right_{end}"] + row[f"eps_left_{end}"] for end in ("low", "high")}
        rows.append(row)
    return pd.DataFrame(rows)


def _decide(table: pd.DataFrame, threshold: float, unit: str) -> tuple[str, pd.Series, str]:
    """Verdict, deciding cell, and a sentence on it, on the control and on the other samplers."""
    cells = table[table["sampler"] == DECIDING]
    verdict, worst = smallest_cell(cells, threshold)
    smallest = table.groupby("sampler", observed=True)["effect"].agg(["min", "max"])
    others = [name for name in smallest.index if name not in (DECIDING, CONTROL, "bernoulli")]
    detail = (
        f"Snowball: smallest over {len(cells)} cells on {graph_title(worst['graph'])} at ratio {worst['ratio']:g}. "
        f"Uniform sampling, where all priors are equal: {as_text(smallest.loc[CONTROL, 'min'])} to "
        f"{as_text(smallest.loc[CONTROL, 'max'])}{unit}. Smallest for the other samplers: "
        + ", ".join(f"{name.replace('_', ' ')} {as_text(smallest.loc[name, 'min'])}" for name in others)
        + "."
    )
    return verdict, worst, detail


def _cells(table: pd.DataFrame) -> int:
    return len(table[CELL].drop_duplicates())


def check_unequal_priors() -> Finding:
    """B13: the ratio between the likeliest and the least likely tenth of the nodes."""
    table = prior_ratios(LEVEL / _cells(load_table("draws")))
    verdict, worst, detail = _decide(table, LEAST_RATIO, " times")
    return Finding(verdict, float(worst["effect"]), (float(worst["low"]), float(worst["high"])), detail)


def check_exchangeability() -> Finding:
    """B14: the AUC of a classifier on structure for telling sampled nodes from the others before training."""
    table = structure_aucs(LEVEL / _cells(load_table("draws")))
    verdict, worst, detail = _decide(table, LEAST_AUC, "")
    return Finding(verdict, float(worst["effect"]), (float(worst["low"]), float(worst["high"])), detail)


def check_prior_gap() -> Finding:
    """O01: the sum of the smallest eps_R and eps_L, which sampling sets whatever the training does."""
    table = prior_gaps(LEVEL / _cells(load_table("draws")))
    verdict, worst, detail = _decide(table, LEAST_GAP, " nats, which is Monte Carlo noise around 0")
    detail += " In ratio form the prior cancels and both bounds are 0."
    interval = (float(worst["low"]), float(worst["high"]))
    return Finding(verdict, float(worst["effect"]), interval, detail, {"ratio": "fails", "odds": verdict})


CLAIMS = (
    Claim(
        id="B13",
        sentence="Some nodes of a graph are inherently more likely to be sampled into the training graph than others.",
        source="yildirim2026bmp",
        estimand="mean prior of the likeliest tenth of the nodes divided by that of the least likely tenth, under "
        "snowball sampling; tenths chosen on one half of the draws and measured on the other; smallest over graphs and "
        "ratios",
        threshold=f"holds when every cell's interval lies above {LEAST_RATIO:g}, fails when one lies below it (ours)",
        chapter=CHAPTER,
        check=check_unequal_priors,
    ),
    Claim(
        id="B14",
        sentence="Training and other nodes are distinguishable before any training: they are not exchangeable.",
        source="yildirim2026bmp",
        estimand="AUC of a cross-fitted logistic regression on degree, core number, component size and mean neighbour "
        "degree for telling the nodes of a snowball sample from the others, mean over draws; smallest over graphs and "
        "ratios",
        threshold=f"holds when every cell's interval lies above {LEAST_AUC:g}, fails when one lies below it (ours)",
        chapter=CHAPTER,
        check=check_exchangeability,
    ),
    Claim(
        id="O01",
        sentence="In odds form, snowball sampling alone keeps eps_L + eps_R above one nat, whatever the training does.",
        source="this book, from the prior bounds of yildirim2026bmp",
        estimand="max over nodes of the log prior odds minus their min, in nats; the two nodes chosen on one half of "
        "the draws and measured on the other; smallest over graphs and ratios",
        threshold=f"holds when every cell's interval lies above {LEAST_GAP:g} nat, fails when one lies below it",
        chapter=CHAPTER,
        check=check_prior_gap,
    ),
)
