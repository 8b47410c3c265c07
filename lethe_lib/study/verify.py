"""``python -m lethe_lib verify``: recompute a random sample of the published records, some of every study, and compare.

``--key`` recomputes those records that a table or a figure rests on, whatever their study.

Two honest runs of one configuration agree to the last digit on one machine and one set of versions. On another
processor or another build of the numerical libraries, float32 training drifts apart; ``--tolerance`` says how much
difference still counts as agreement. Timings and memory are not compared.
"""

import argparse
import json
import math

import pandas as pd

from lethe_lib import paths
from lethe_lib.errors import InputError
from lethe_lib.seeding import numpy_generator
from lethe_lib.study.records import TIMED, configuration, load_records
from lethe_lib.study.runner import run
from lethe_lib.study.studies import STUDIES

LONG = ("membership", "edge_audit", "edge_audit_variations")
"""Studies whose records take minutes each (hundreds of models); name them to recompute some."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    parser.add_argument("study", nargs="*", help=f"published studies (default: all but {', '.join(LONG)})")
    parser.add_argument("--key", nargs="+", default=[], help="keys of the records to recompute, instead of a sample")
    parser.add_argument("--count", type=int, default=20, help="records to recompute (default: 20)")
    parser.add_argument("--seed", type=int, default=0, help="seed of the sample (default: 0)")
    parser.add_argument("--tolerance", type=float, default=0.02, help="largest difference, relative above 1 (0.02)")


def main(arguments: argparse.Namespace) -> int:
    """Run the command; 0 when every recomputed record agrees."""
    published = [name for name in STUDIES if (paths.results() / f"{name}.parquet").exists()]
    short = published if arguments.key else [name for name in published if name not in LONG]
    rows = pd.concat([load_records(name).assign(study=name) for name in arguments.study or short], ignore_index=True)
    chosen = places(rows, arguments.key) if arguments.key else sample(rows, arguments.count, arguments.seed)
    count, disagreements = len(chosen), 0
    for number, row in enumerate(rows.iloc[chosen].to_dict("records"), 1):
        config = configuration(row["kind"], json.loads(row["config_json"]))
        record = run(config)
        worst, where = difference(row, record)
        agrees = worst <= arguments.tolerance and record["status"] == row["status"]
        disagreements += not agrees
        verdict = "agrees" if agrees else "DIFFERS"
        print(
            f"{number}/{count} {verdict}: {row['study']} {config.key}, largest difference {worst:.2g} {where}",
            flush=True,
        )
    print(f"{count - disagreements} of {count} records agree within {arguments.tolerance}")
    return 1 if disagreements else 0


def places(rows: pd.DataFrame, keys: list[str]) -> list[int]:
    """Places of the rows with these keys, the first of each.

    Raises:
        InputError: no row has a key.
    """
    first = {key: place for place, key in reversed(list(enumerate(rows["key"])))}
    unknown = [key for key in keys if key not in first]
    if unknown:
        raise InputError(
            f"no published record has the key {', '.join(unknown)}: keys are in the column `key` of results/<study>.parquet"
        )
    return sorted(first[key] for key in set(keys))


def sample(rows: pd.DataFrame, count: int, seed: int) -> list[int]:
    """Places of the rows to recompute: one of every study, or kind of run within it, and then any, all at random.

    Args:
        rows: published records with their ``study`` and ``kind``. count: how many, if there are as many.
        seed: of the draw.

    Returns:
        sorted places; with a ``count`` below the number of studies the first studies of the draw are covered.
    """
    order = numpy_generator(seed, "verify").permutation(len(rows))
    first = ~rows[["study", "kind"]].iloc[order].duplicated().to_numpy()
    return sorted([*order[first], *order[~first]][:count])


def difference(row: dict, record: dict) -> tuple[float, str]:
    """The largest difference between a published row and a fresh record, and the metric where it occurs.

    Absolute below one, relative above; timings left out; infinite where one side has a number and the other has none.
    """
    worst, where = 0.0, ""
    for name, value in record["metrics"].items():
        if name in TIMED:
            continue
        published = row.get(name, math.nan)
        if math.isnan(value) and math.isnan(published):
            continue
        gap = abs(value - published) / max(1.0, abs(published))
        gap = math.inf if math.isnan(gap) else gap
        if gap > worst:
            worst, where = gap, f"in {name}"
    return worst, where
