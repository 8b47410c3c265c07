"""Claims of chapter 07: what accuracy can tell about removed edges."""

import pandas as pd

from lethe_lib.evaluation import mean_interval
from lethe_lib.reporting.claims import Claim, Finding
from lethe_lib.reporting.titles import GRAPH_TITLES
from lethe_lib.study import load_records

CHAPTER = "07_accuracy_is_blind"
LIMIT = 0.05


def accuracy_changes(where: str = "published") -> pd.DataFrame:
    """Test accuracy after retraining on the retained graph minus test accuracy before, for every graph, set and share.

    Returns:
        one row per (data, forget, fraction): ``change`` with the ends ``low`` and ``high`` of the 95 % t interval over
        seeds, the number of ``seeds``, and the mean accuracies ``before`` and ``after``.
    """
    records = load_records("edge_removal", where)
    rows = []
    for (data, forget, fraction), group in records.groupby(["data", "forget", "fraction"], sort=False):
        change, low, high = mean_interval(group["accuracy_test"] - group["original_accuracy_test"])
        rows.append(
            {
                "data": data,
                "forget": forget,
                "fraction": fraction,
                "change": change,
                "low": low,
                "high": high,
                "seeds": len(group),
                "before": float(group["original_accuracy_test"].mean()),
                "after": float(group["accuracy_test"].mean()),
            }
        )
    return pd.DataFrame(rows)


def small_request_changes(where: str = "published") -> pd.DataFrame:
    """Test accuracy of Gold minus that of the original at 5 % of the edges, trained to convergence.

    Every seed's change is the mean over its retrained models.

    Returns:
        one row per (data, forget): ``change`` with the ends ``low`` and ``high`` of the 95 % t interval over seeds.
    """
    records = load_records("first_slice", where)
    gold = records[(records["preset"] == "corrected") & (records["method"] == "gold")]
    change = (gold["accuracy_test"] - gold["original_accuracy_test"]).groupby(
        [gold["data"], gold["forget"], gold["seed"]], sort=False
    )
    rows = []
    for (data, forget), seeds in change.mean().groupby(["data", "forget"], sort=False):
        middle, low, high = mean_interval(seeds)
        rows.append({"data": data, "forget": forget, "change": middle, "low": low, "high": high})
    return pd.DataFrame(rows)


def check_blindness() -> Finding:
    """The largest mean change over all graphs and shares, random sets."""
    table = accuracy_changes()
    table = table[table["forget"] == "random"]
    too_far = table[table[["low", "high"]].abs().min(axis=1).gt(LIMIT) & (table["low"] * table["high"] > 0)]
    unsure = table[table[["low", "high"]].abs().max(axis=1) >= LIMIT]
    verdict = "fails" if len(too_far) else "inconclusive" if len(unsure) else "holds"
    worst = table.loc[table["change"].abs().idxmax()]
    small = table[table["fraction"] <= 0.05]["change"].abs().max()
    where = ", ".join(sorted({f"{GRAPH_TITLES[row.data]} at {row.fraction:.0%}" for row in too_far.itertuples()}))
    detail = (
        f"Random sets: the largest mean change is {worst['change']:+.1%} ({GRAPH_TITLES[worst['data']]}, "
        f"{worst['fraction']:.0%} of the edges removed); up to 5 % of the edges it is {small:.1%}. "
        + (f"Beyond the limit with its whole interval: {where}." if where else "No interval lies beyond the limit.")
    )
    return Finding(verdict, float(worst["change"]), (float(worst["low"]), float(worst["high"])), detail)


CLAIMS = (
    Claim(
        id="L02",
        sentence="Removing up to 50 % of the edges and retraining moves test accuracy by less than 5 %.",
        source="Lethe benchmark (arXiv:2610.21869)",
        estimand="Change of test accuracy, retrained on the retained graph minus original, GCN trained to convergence, random "
        "sets of 1 % to 50 % of the edges, six graphs, five seeds; 5 % read as five percentage points.",
        threshold="Holds if every 95 % interval lies within five points of zero, fails if one lies wholly beyond.",
        chapter=CHAPTER,
        check=check_blindness,
    ),
)
