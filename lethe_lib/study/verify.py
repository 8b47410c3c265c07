"""``python -m lethe_lib verify``: recompute a random sample of the published records, some of every study, and compare.

Studies that are tables of simulations in place of lists of runs are recomputed by cells, say all draws of one sampler.

``--key`` recomputes those records that a table or a figure rests on, whatever their study.

Two honest runs of one configuration agree to the last digit on one machine and one set of versions. On another
processor or another build of the numerical libraries, float32 training drifts apart; ``--tolerance`` says how much
difference still counts as agreement. Where a training or a solver then stops after another number of steps, the model is one
more draw of the same procedure: such a record is said to have drifted, and its other numbers are held against ``--drift``.
Timings and memory are not compared.
"""

import argparse
import json
import math
from collections.abc import Collection, Iterable
from importlib import import_module

import numpy as np
import pandas as pd

from lethe_lib import paths
from lethe_lib.errors import InputError
from lethe_lib.seeding import numpy_generator
from lethe_lib.study.parameters import at_least
from lethe_lib.study.records import TIMED, configuration, load_records
from lethe_lib.study.runner import run
from lethe_lib.study.studies import OWN_STUDIES, STUDIES, require_study

LONG = ("membership", "edge_audit", "edge_audit_variations")
"""Studies whose records take minutes each (hundreds of models); name them to recompute some."""

STEPS = ("original_epochs", "forwards", "backwards")
"""Metrics that count the steps of trainings and solvers."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    parser.add_argument("study", nargs="*", help=f"published studies (default: all but {', '.join(LONG)})")
    parser.add_argument("--key", nargs="+", default=[], help="keys of the records to recompute, instead of a sample")
    parser.add_argument("--count", type=at_least(1), default=20, help="records to recompute (default: 20)")
    parser.add_argument("--seed", type=int, default=0, help="seed of the sample (default: 0)")
    parser.add_argument("--tolerance", type=float, default=0.02, help="largest difference, relative above 1 (0.02)")
    parser.add_argument("--drift", type=float, default=0.05, help="the same after another number of steps (0.05)")


def main(arguments: argparse.Namespace) -> int:
    """Run the command; 0 when every recomputed record agrees."""
    for name in arguments.study:
        require_study(name)
    published = [name for name in STUDIES if (paths.results() / f"{name}.parquet").exists()] + list(OWN_STUDIES)
    short = published if arguments.key else [name for name in published if name not in LONG]
    rows = pd.concat([units(name) for name in arguments.study or short], ignore_index=True)
    chosen = places(rows, arguments.key) if arguments.key else sample(rows, arguments.count, arguments.seed)
    count, disagreements, drifted = len(chosen), 0, 0
    for number, row in enumerate(rows.iloc[chosen].to_dict("records"), 1):
        if row["study"] in OWN_STUDIES:
            worst, where = frames_difference(import_module(OWN_STUDIES[row["study"]]).recomputed(row["key"]))
            agrees = worst <= arguments.tolerance
        else:
            record = run(configuration(row["kind"], json.loads(row["config_json"])))
            worst, where = difference(row, record)
            agrees = worst <= arguments.tolerance and record["status"] == row["status"]
            if not agrees and (steps := other_steps(row, record)):
                worst, where = difference(row, record, (*TIMED, *STEPS, "weight_change"))
                agrees, where = worst <= arguments.drift and record["status"] == row["status"], f"{where}; {steps}"
                drifted += agrees
        disagreements += not agrees
        verdict = "agrees" if agrees else "DIFFERS"
        print(
            f"{number}/{count} {verdict}: {row['study']} {row['key']}, largest difference {worst:.2g} {where}",
            flush=True,
        )
    among = f", {drifted} of them within {arguments.drift} after another number of steps" if drifted else ""
    print(f"{count - disagreements} of {count} records agree within {arguments.tolerance}{among}")
    return 1 if disagreements else 0


def units(study: str) -> pd.DataFrame:
    """What can be recomputed of a study, one row each with ``study``, ``kind`` and ``key``: its records, or its cells."""
    if study not in OWN_STUDIES:
        return load_records(study).assign(study=study)
    return pd.DataFrame({"key": import_module(OWN_STUDIES[study]).published_cells(), "kind": "cell", "study": study})


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


def other_steps(row: dict, record: dict) -> str:
    """Which counts of steps differ from those of the published row, in words; empty where none does."""
    pairs = {name: (row.get(name, math.nan), record["metrics"].get(name, math.nan)) for name in STEPS}
    changed = {name: pair for name, pair in pairs.items() if not np.isnan(pair).any() and pair[0] != pair[1]}
    return ", ".join(f"{name} {new:g} in place of {old:g}" for name, (old, new) in changed.items())


def difference(row: dict, record: dict, left_out: Collection[str] = TIMED) -> tuple[float, str]:
    """The largest difference between a published row and a fresh record, and the metric where it occurs.

    Absolute below one, relative above; infinite where one side has a number and the other has none.

    Args:
        row: published. record: fresh. left_out: metrics that are not compared.
    """
    worst, where = 0.0, ""
    for name, value in record["metrics"].items():
        if name in left_out:
            continue
        gap = _gap(np.array(row.get(name, math.nan)), np.array(value))
        if gap > worst:
            worst, where = gap, f"in {name}"
    return worst, where


def frames_difference(pairs: Iterable[tuple[pd.DataFrame, pd.DataFrame]]) -> tuple[float, str]:
    """The largest difference between published tables and fresh ones, and the column where it occurs.

    Measured as in :func:`difference`, over the columns of the fresh tables; infinite where texts or numbers of rows differ.
    """
    worst, where = 0.0, ""
    for published, fresh in pairs:
        if len(published) != len(fresh):
            return math.inf, f"in the number of rows, {len(fresh)} where {len(published)} are published"
        for name in fresh:
            old, new = published[name].to_numpy(), fresh[name].to_numpy()
            if fresh[name].dtype.kind in "biuf":
                old, new = old.astype(np.float64), new.astype(np.float64)
                apart = old != new  # infinite log odds are equal, too
                gap = _gap(old[apart], new[apart])
            else:
                gap = 0.0 if np.array_equal(old.astype(str), new.astype(str)) else math.inf
            if gap > worst:
                worst, where = gap, f"in {name}"
    return worst, where


def _gap(published: np.ndarray, fresh: np.ndarray) -> float:
    """The largest difference of numbers, relative above one, infinite where one side alone has a number or both are infinite."""
    with np.errstate(invalid="ignore"):
        gaps = np.abs(fresh - published) / np.maximum(1.0, np.abs(published))
    gaps = np.where(np.isnan(published) & np.isnan(fresh), 0.0, gaps)
    return math.inf if np.isnan(gaps).any() else float(gaps.max(initial=0.0))
