"""Claims of chapter 10: methods that raise Link Stealing."""

import pandas as pd

from lethe_lib.errors import InputError
from lethe_lib.evaluation import mean_interval
from lethe_lib.reporting.claims import Claim, Finding
from lethe_lib.reporting.families import family_records
from lethe_lib.reporting.titles import METHOD_TITLES

CHAPTER = "10_parameter_family"
METHODS = ("fine_tuning", "salun")


def stealing_raised() -> pd.DataFrame:
    """Link Stealing of Fine-tuning and SalUn minus that of the original's weights, seed by seed: Photo, high set, GCN.

    Returns:
        one row per (preset, method): mean ``raised`` of the folded AUC with ``low`` and ``high`` of its 95 % t interval,
        and ``signed``, the same mean without folding.
    """
    records = family_records()
    records = records[(records["data"] == "photo") & (records["forget"] == "high") & (records["backbone"] == "gcn")]
    rows = []
    for preset in ("published", "corrected"):
        part = records[records["preset"] == preset].set_index("seed")
        base = part[part["method"] == "utu"]
        for method in METHODS:
            mine = part[part["method"] == method]
            if mine.empty or base.empty:
                raise InputError(
                    f"no record of {method} beside utu on photo, high set, {preset}: run generic_unlearning"
                )
            names = ("link_stealing_auc_folded", "link_stealing_auc")
            folded, signed = ((mine[name] - base[name]).dropna() for name in names)
            raised, low, high = mean_interval(folded)
            rows.append(
                {
                    "preset": preset,
                    "method": method,
                    "raised": raised,
                    "low": low,
                    "high": high,
                    "signed": float(signed.mean()),
                }
            )
    return pd.DataFrame(rows)


def check_stealing_raised() -> Finding:
    """Both methods must raise the folded AUC over that of the original's weights, under the benchmark's form of them."""
    table = stealing_raised()
    own = table[table["preset"] == "published"]
    verdict = "holds" if (own["low"] > 0).all() else "fails" if (own["high"] < 0).any() else "inconclusive"
    least = own.loc[own["raised"].idxmin()]
    words = [
        f"{METHOD_TITLES[row.method]}, {row.preset}: {row.raised:+.3f} [{row.low:+.3f}, {row.high:+.3f}], "
        f"signed {row.signed:+.3f}"
        for row in table.itertuples()
    ]
    detail = f"Change of the AUC against the original's weights on the same graph. {'; '.join(words)}."
    return Finding(verdict, float(least["raised"]), (float(least["low"]), float(least["high"])), detail)


CLAIMS = (
    Claim(
        id="L23",
        sentence="Fine-tuning and SalUn raise Link Stealing on Photo (.714 and .727 against .639).",
        source="Lethe benchmark (arXiv:2610.21869)",
        estimand="Folded AUC of Link Stealing of the method minus that of the original's weights, both on the retained graph, "
        "paired by seed; Photo, high 5 % set, GCN, preset published, three seeds; the smaller of the two methods' means. "
        "Preset corrected, and the change without folding, are reported beside it.",
        threshold="Holds if the 95 % intervals over seeds of both methods lie above zero, fails if one lies below.",
        chapter=CHAPTER,
        check=check_stealing_raised,
    ),
)
