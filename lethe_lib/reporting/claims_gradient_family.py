"""Claims of chapter 08: what the benchmark's methods do to accuracy."""

import pandas as pd

from lethe_lib.reporting.claims import Claim, Finding
from lethe_lib.reporting.families import accuracy_cells, as_points
from lethe_lib.reporting.titles import GRAPH_TITLES, METHOD_TITLES
from lethe_lib.study.benchmark import benchmark_records, on_main_backbone
from lethe_lib.unlearning import UNLEARNERS

CHAPTER = "08_gradient_family"
LIMIT = 0.02


def counted_cells() -> pd.DataFrame:
    """Rows of ``accuracy_cells`` for the benchmark's methods, low and high sets, two seeds or more, broken cells too."""
    records = on_main_backbone(benchmark_records())
    kinds = records["method"].map(lambda name: UNLEARNERS[name].kind)
    records = records[kinds.isin(("generic", "graph-native")) & records["forget"].isin(("low", "high"))]
    cells = accuracy_cells(records[records["status"] != "unsupported"])
    return cells[cells["runs"] > 1]


def accuracy_kept(cells: pd.DataFrame | None = None) -> pd.DataFrame:
    """The cells that L03 speaks of, with where they stand.

    Args:
        cells: from :func:`counted_cells`; None computes them.

    Returns:
        rows of :func:`counted_cells` in which no run collapsed, diverged or failed, with ``place``: ``within`` (the interval
        lies within the limit), ``beyond`` (wholly outside) or ``unsure``.
    """
    cells = counted_cells() if cells is None else cells
    cells = cells[cells["broken"] == 0].copy()
    beyond = (cells["low"] > LIMIT) | (cells["high"] < -LIMIT)
    within = (cells["low"] > -LIMIT) & (cells["high"] < LIMIT)
    cells["place"] = "unsure"
    cells.loc[beyond, "place"] = "beyond"
    cells.loc[within, "place"] = "within"
    return cells


def check_accuracy_kept() -> Finding:
    """Every cell of the benchmark's methods, generic and graph-native, must lie within the limit."""
    every = counted_cells()
    cells = accuracy_kept(every)
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
    detail = (
        f"{told[0].upper()}{told[1:]}; {int((every['broken'] > 0).sum())} cells with a collapsed run are left out. "
        f"{cells['method'].nunique()} methods on {cells['data'].nunique()} graphs. The mean "
        f"change exceeds two points in {int((cells['change'].abs() > LIMIT).sum())} cells, most in {cell_name(largest)}. "
        + f"Wholly beyond: {', '.join(cell_name(row) for _, row in beyond.iterrows()) or 'none'}."
    )
    return Finding(verdict, float(decisive["change"]), (float(decisive["low"]), float(decisive["high"])), detail)


def cell_name(cell: pd.Series) -> str:
    """A cell and its mean change in words."""
    place = f"{GRAPH_TITLES.get(cell['data'], cell['data'])}, {cell['forget']}, {cell['preset']}"
    return f"{METHOD_TITLES[cell['method']]} ({place}: {as_points(cell['change'])} points)"


CLAIMS = (
    Claim(
        id="L03",
        sentence="Algorithms that have not collapsed stay within 2 % of the original accuracy.",
        source="Lethe benchmark (arXiv:2610.21869)",
        estimand="Test accuracy of the released model on the retained graph minus that of the original on the original graph, "
        "mean over seeds (two or more), for each generic and graph-native method that the benchmark's records hold, on every "
        "graph, low and high 5 % sets, both presets, GCN, or SGC for a method that takes no other; 2 % read as two percentage "
        "points. Collapsed: validation accuracy more than ten points below the original's, or below the largest class, in any "
        "seed. The set of runs was widened after a first look: it had been that of the generic methods.",
        threshold="Fails if the 95 % interval over seeds of any such cell lies wholly beyond two points, holds if every "
        "interval lies within.",
        chapter=CHAPTER,
        check=check_accuracy_kept,
    ),
)
