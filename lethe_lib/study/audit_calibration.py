"""Calibration of the audit: simulated audits with known parameters, by every method, and audits of the best attack.

    model      parameters, errors and counts from the audit's own model (two designs, three strengths): rank of the truth
               among posterior draws, quantiles of the region posterior and of the corner posterior
    noisy bit  the output is the membership bit, flipped with probability q, and the attack repeats it: the best attack
               there is, whose exact parameters are log((1 - q)/q) on both sides; q = 1/2 reveals nothing

One row per simulated audit, in ratio form; in odds form parameter and interval move together, so nothing else changes.
"""

import argparse
import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from lethe_lib import paths
from lethe_lib.bmp import audit
from lethe_lib.bmp.audit_calibration import DRAWS, calibration_ranks, simulate
from lethe_lib.bmp.audit_quadrature import LEARNT
from lethe_lib.errors import DataNotFound
from lethe_lib.registry import Registry
from lethe_lib.seeding import derive_seed, numpy_generator
from lethe_lib.study.provenance import environment
from lethe_lib.study.tables import read_table

NAME = "audit_calibration"
SEED = 0
DESIGNS = ((100, 100), (180, 20))  # runs without and with the node: 200 runs at prior 1/2 and 1/10
FLIPS = (0.1, 0.25, 0.4, 0.5)
RUNS = (50, 200, 1000)
BITS = 400  # audits per flip probability and number of runs


class Part(NamedTuple):
    """Audits of one method: how many per design, with which strengths and settings."""

    size: int
    strengths: tuple[float | str, ...]
    settings: dict


METHODS = Registry(
    "part of this study",
    {
        "quadrature": Part(2000, (0.0, 0.5, LEARNT), {"draws": 2000}),
        "mhaar": Part(400, (0.0, 0.5, LEARNT), {"draws": 2000}),
        "pymc": Part(60, (0.0,), {"chains": 2, "tune": 500, "draws": 750}),
        "noisy bit": Part(BITS, (0.0, LEARNT), {"draws": 0}),
    },
)


def model_rows(method: str, strength: float | str, design: tuple[int, int], seed: int = SEED) -> pd.DataFrame:
    """Audits of one method, strength and design on counts from the model."""
    part = METHODS[method]
    simulated = simulate(part.size, *design, derive_seed(seed, method), strength=strength)
    result = audit(*simulated.counts.T, 0.5, method, strength=strength, seed=seed, **part.settings)
    ranks = calibration_ranks(result, simulated.excess)
    frame = _frame(result, simulated.counts, simulated.excess, simulated.corner)
    return frame.assign(
        part="model", method=method, strength=str(strength), flip=np.nan, rank_left=ranks[:, 0], rank_right=ranks[:, 1]
    )


def noisy_bit_rows(flip: float, runs: int, strength: float | str, seed: int = SEED) -> pd.DataFrame:
    """Audits by quadrature of the attack that repeats a noisy membership bit, at prior one half."""
    part = METHODS["noisy bit"]
    generator = numpy_generator(seed, "noisy bit", flip, runs)
    n_in = generator.binomial(runs, 0.5, part.size)
    positives, negatives = generator.binomial(runs - n_in, flip), generator.binomial(n_in, flip)
    counts = np.stack([runs - n_in, positives, n_in, negatives], axis=1)
    result = audit(*counts.T, 0.5, strength=strength, seed=seed, **part.settings)
    truth = np.full((part.size, 2), np.log((1 - flip) / flip))
    frame = _frame(result, counts, truth, truth)
    return frame.assign(
        part="noisy bit", method="quadrature", strength=str(strength), flip=flip, rank_left=-1, rank_right=-1
    )


def _frame(result, counts: np.ndarray, truth: np.ndarray, corner: np.ndarray) -> pd.DataFrame:
    columns = dict(zip(("n_out", "false_positives", "n_in", "false_negatives"), counts.T.astype(np.int16)))
    columns |= {"status": result.status.astype(str)}
    for side, name in enumerate(("left", "right")):
        columns |= {f"true_{name}": truth[:, side], f"true_corner_{name}": corner[:, side]}
        columns |= {f"{name}_mean": result.mean("ratio")[:, side]}
        for level in (0.05, 0.5, 0.95):
            columns[f"{name}_{level:.0%}"] = result.quantile(level, "ratio")[:, side]
            columns[f"corner_{name}_{level:.0%}"] = result.corner_quantile(level, "ratio")[:, side]
    for name in ("rhat", "ess", "divergences"):
        columns[name] = result.convergence.get(name, np.full(len(counts), np.nan))
    return pd.DataFrame({name: _smaller(values) for name, values in columns.items()})


def _smaller(values: np.ndarray) -> np.ndarray:
    return values.astype(np.float32) if values.dtype == np.float64 else values


class Cell(NamedTuple):
    """Audits that are simulated together: of a method on a design (runs without and with the node), or of noisy bits."""

    method: str
    strength: float | str
    design: tuple[int, int] = (0, 0)
    flip: float = np.nan
    runs: int = 0

    def __str__(self) -> str:
        where = (
            f"flip {self.flip}, {self.runs} runs" if self.runs else f"{self.design[0]} without, {self.design[1]} with"
        )
        return f"{self.method}, strength {self.strength}, {where}"

    def rows(self) -> pd.DataFrame:
        """Simulate and audit."""
        if self.runs:
            return noisy_bit_rows(self.flip, self.runs, self.strength).assign(runs=self.runs)
        return model_rows(self.method, self.strength, self.design).assign(runs=sum(self.design))

    def of(self, table: pd.DataFrame) -> pd.DataFrame:
        """The rows of this cell in a table of the study."""
        mine = table["strength"] == str(self.strength)
        if self.runs:
            mine &= (table["part"] == "noisy bit") & np.isclose(table["flip"], self.flip) & (table["runs"] == self.runs)
        else:
            mine &= (table["part"] == "model") & (table["method"] == self.method) & (table["n_in"] == self.design[1])
        return table[mine]


def cells(names) -> list[Cell]:
    """All cells of the named parts."""
    found = []
    for name in names:
        strengths = METHODS[name].strengths
        if name == "noisy bit":
            # A learnt strength needs a table per strength: left out where the runs call for the finest grids.
            found += [
                Cell(name, strength, flip=flip, runs=runs)
                for runs in RUNS
                for flip in FLIPS
                for strength in (strengths if runs < max(RUNS) else strengths[:1])
            ]
        else:
            found += [Cell(name, strength, design) for strength in strengths for design in DESIGNS]
    return found


def published_cells() -> list[str]:
    """What of the published table can be recomputed on its own."""
    table = load_audit_calibration()
    return [str(cell) for cell in cells(METHODS) if len(cell.of(table))]


def recomputed(cell: str) -> Iterator[tuple[pd.DataFrame, pd.DataFrame]]:
    """Published rows and fresh ones, in the same order, of one of the ``published_cells``."""
    one = next(one for one in cells(METHODS) if str(one) == cell)
    yield one.of(load_audit_calibration()), one.rows().sort_values("n_in", kind="stable", ignore_index=True)


def load_audit_calibration(where: str | Path = "published") -> pd.DataFrame:
    """The simulated audits, one row each.

    Args:
        where: "published", or a file that ``python -m lethe_lib.study.audit_calibration --out`` wrote.

    Returns:
        Columns ``part``, ``method``, ``strength`` and ``flip``; the counts and ``runs``; ``true_left``, ``true_right`` and the
        corner of the true errors; ``rank_*`` among DRAWS posterior draws, -1 where not taken; mean and quantiles of region
        and corner posterior (nan where the ``status`` is not ok); diagnostics; provenance.

    Raises:
        DataNotFound: no such file.
    """
    path = paths.results() / f"{NAME}.parquet" if where == "published" else Path(where)
    if not path.exists():
        raise DataNotFound(f"no audit calibration at {path}: compute it with `python -m lethe_lib run {NAME}`")
    return read_table(path)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of this study."""
    parser.add_argument("--only", nargs="+", default=list(METHODS), metavar="PART", help=f"of {', '.join(METHODS)}")
    parser.add_argument("--out", type=Path, default=None, help=f"file (default: results/{NAME}.parquet)")


def main(arguments: argparse.Namespace) -> int:
    """Compute the study and write its table; parts that are not asked for are kept from the file that is there."""
    for name in arguments.only:
        METHODS[name]
    path = arguments.out or paths.results() / f"{NAME}.parquet"
    frames = []
    for cell in cells(arguments.only):
        print(cell, flush=True)
        frames.append(cell.rows())
    found = pd.concat(frames, ignore_index=True)
    provenance = {f"provenance_{key}": value for key, value in environment().items()}
    found = found.assign(seed=SEED, rank_draws=DRAWS, **provenance)
    if path.exists() and set(arguments.only) != set(METHODS):
        before = read_table(path)
        done = found[["part", "method"]].drop_duplicates()
        again = before.merge(done, how="left", indicator=True)["_merge"].eq("both").to_numpy()
        found = pd.concat([before[~again], found], ignore_index=True)
    found = found.sort_values(["part", "method", "strength", "runs", "flip", "n_in"], kind="stable", ignore_index=True)
    for name in found.select_dtypes(["object", "string"]).columns:
        found[name] = found[name].astype("category")
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        found.to_parquet(unfinished, compression="zstd", index=False)
        os.replace(unfinished, path)
    finally:
        unfinished.unlink(missing_ok=True)
    return 0


if __name__ == "__main__":
    options = argparse.ArgumentParser(description="Calibration of the audit on simulated audits.")
    add_arguments(options)
    raise SystemExit(main(options.parse_args()))
