"""Claims of chapter 08: what the generic methods do to accuracy."""

import pandas as pd

from lethe_lib.reporting.claims import Claim, Finding
from lethe_lib.reporting.families import GRAPHS, TITLES, accuracy_cells, as_points, family_records
from lethe_lib.study.studies import GENERIC

CHAPTER = "08_gradient_family"
LIMIT = 0.02


def accuracy_kept(records: pd.DataFrame | None = None) -> pd.DataFrame:
    """The cells that L03 speaks of, GCN, with where they stand.

    Args:
        records: from ``family_records``; None reads the published ones.

    Returns:
        rows of ``accuracy_cells`` for the nine generic methods in which no run collapsed, diverged or failed, with
        ``place``: ``within`` (the interval lies within the limit), ``beyond`` (wholly outside) or ``unsure``.
    """
    cells = accuracy_cells(family_records() if records is None else records)
    cells = cells[(cells["backbone"] == "gcn") & cells["method"].isin(GENERIC) & (cells["broken"] == 0)].copy()
    beyond = (cells["low"] > LIMIT) | (cells["high"] < -LIMIT)
    within = (cells["low"] > -LIMIT) & (cells["high"] < LIMIT)
    cells["place"] = "unsure"
    cells.loc[beyond, "place"] = "beyond"
    cells.loc[within, "place"] = "within"
    return cells


def check_accuracy_kept() -> Finding:
    """Every cell of nine methods, five graphs, two sets and two presets must lie within the limit."""
    records = family_records()
    cells = accuracy_kept(records)
    counts = {preset: part["place"].value_counts() for preset, part in cells.groupby("preset")}
    places = set(cells["place"])
    verdict = "fails" if "beyond" in places else "inconclusive" if "unsure" in places else "holds"
    largest = cells.loc[cells["change"].abs().idxmax()]
    beyond = cells[cells["place"] == "beyond"]
    decisive = largest if beyond.empty else beyond.loc[beyond["change"].abs().idxmax()]
    told = "; ".join(
        f"preset {preset}: {count.get('within', 0)} cells within, {count.get('beyond', 0)} wholly beyond, "
        f"{count.get('unsure', 0)} undecided"
        for preset, count in counts.items()
    )
    gcn = accuracy_cells(records[(records["backbone"] == "gcn") & records["method"].isin(GENERIC)])
    detail = (
        f"{told[0].upper()}{told[1:]}; {int((gcn['broken'] > 0).sum())} cells with a collapsed run are left out. The mean "
        f"change exceeds two points in {int((cells['change'].abs() > LIMIT).sum())} cells, most in {_name(largest)}. "
        + ("No cell lies" if beyond.empty else f"{', '.join(_name(row) for _, row in beyond.iterrows())} lies")
        + " wholly beyond."
    )
    return Finding(verdict, float(decisive["change"]), (float(decisive["low"]), float(decisive["high"])), detail)


def _name(cell: pd.Series) -> str:
    """A cell and its mean change in words."""
    place = f"{GRAPHS.get(cell['data'], cell['data'])}, {cell['forget']}, {cell['preset']}"
    return f"{TITLES[cell['method']]} ({place}: {as_points(cell['change'])} points)"


CLAIMS = (
    Claim(
        id="L03",
        sentence="Algorithms that have not collapsed stay within 2 % of the original accuracy.",
        source="Lethe benchmark (arXiv:2610.21869)",
        estimand="Test accuracy of the released model on the retained graph minus that of the original, mean over three "
        "seeds, for each of the nine generic methods, five graphs, low and high 5 % sets, both presets, GCN; 2 % read as two "
        "percentage points. Collapsed: validation accuracy more than ten points below the original's, or below the largest "
        "class, in any seed. The graph-native methods follow in their own chapters.",
        threshold="Fails if the 95 % interval over seeds of any such cell lies wholly beyond two points, holds if every "
        "interval lies within.",
        chapter=CHAPTER,
        check=check_accuracy_kept,
    ),
)
