"""Claims of chapter 12: the collapse of GNNDelete."""

import numpy as np
import pandas as pd

from lethe_lib.evaluation import mean_interval
from lethe_lib.reporting.claims import Claim, Finding
from lethe_lib.reporting.families import as_points, prediction_interval
from lethe_lib.reporting.native_family import PRINTED_COLLAPSE, chosen_settings, collapse_records
from lethe_lib.reporting.titles import GRAPH_TITLES
from lethe_lib.study.studies import written_out

CHAPTER = "12_structural_family"
SOURCE = "Lethe benchmark (arXiv:2610.21869)"


def released_as_preset(records: pd.DataFrame) -> pd.DataFrame:
    """The runs whose settings are those of their preset, of Photo and Computers."""
    records = records[records["data"].isin(PRINTED_COLLAPSE)]
    preset = {name: dict(written_out("gnn_delete", name)) for name in ("published", "corrected")}
    same = [chosen_settings(row.config_json) == preset[row.preset] for row in records.itertuples()]
    return records[np.array(same, dtype=bool)]


def collapse_verdict(runs: pd.DataFrame) -> str:
    """Under one preset: ``holds`` if all runs collapsed, ``fails`` if none did."""
    share = (runs["status"] == "collapsed").mean()
    return "holds" if share == 1 else "fails" if share == 0 else "inconclusive"


def check_collapse() -> Finding:
    """Every run of the benchmark's form on Photo and Computers must collapse; the corrected form is judged beside it."""
    records = released_as_preset(collapse_records())
    words, own = [], records[records["preset"] == "published"]
    for (preset, data), part in records.groupby(["preset", "data"], sort=False):
        collapsed = int((part["status"] == "collapsed").sum())
        text = f"{GRAPH_TITLES[data]}, {preset}: accuracy {100 * part['accuracy_test'].mean():.1f} %, {collapsed} of {len(part)}"
        if preset == "published":
            low, high = prediction_interval(part["accuracy_test"])
            inside = "within" if low <= PRINTED_COLLAPSE[data] <= high else "outside"
            text += f", printed {100 * PRINTED_COLLAPSE[data]:.1f} lies {inside} what a further seed gives"
        words.append(text)
    means = {data: mean_interval(part["change"]) for data, part in own.groupby("data")}
    least = max(means, key=lambda data: means[data][0])
    effect, low, high = means[least]
    verdicts = [f"{preset} {collapse_verdict(part)}" for preset, part in records.groupby("preset", sort=False)]
    detail = (
        f"By preset: {', '.join(verdicts)}. Collapsed runs of all: {'; '.join(words)}. "
        f"Effect: change of accuracy against UtU on {GRAPH_TITLES[least]}, where it is "
        f"smaller ({as_points(effect)} points). ogbn-arxiv is not among our graphs."
    )
    return Finding(collapse_verdict(own), effect, (low, high), detail)


CLAIMS = (
    Claim(
        id="L18",
        sentence="GNNDelete collapses (34.6 % on Photo, 37.9 % on Computers, 22.6 % on ogbn-arxiv).",
        source=SOURCE,
        estimand="Runs whose validation accuracy falls more than ten points below the original's or below the largest class; "
        "GCN, high 5 % sets of Photo and Computers, three seeds, preset published. Preset corrected has a verdict of its own "
        "beside it; the printed accuracies are held against the prediction interval of our seeds; ogbn-arxiv is not testable "
        "here.",
        threshold="Holds if all such runs collapse, fails if none does.",
        chapter=CHAPTER,
        check=check_collapse,
    ),
)
