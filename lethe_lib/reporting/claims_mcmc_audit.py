"""The claim about the audit: does it recover (eps_L, eps_R) from the error counts of attacks?

Measured on the published simulated audits, whose parameters are known. Calibration under the audit's own model is necessary
and is reported in the detail; the claim is decided by coverage, on counts from the model and on counts of the best attack on
a noisy membership bit, where parameters are known exactly. The cells with flip probability 1/2 are left out of it: there the
truth is 0, which no interval of a positive parameter contains; chapter 04 shows how close to 0 they come.
"""

import numpy as np
import pandas as pd

from lethe_lib.bmp.audit_calibration import BINS, DRAWS, coverage, rank_p_value
from lethe_lib.bmp.audit_quadrature import LEARNT
from lethe_lib.reporting.claims import Claim, Finding
from lethe_lib.reporting.glue import as_text
from lethe_lib.study.audit_calibration import load_audit_calibration

CHAPTER = "04_mcmc_audit"
CELL = ["part", "method", "strength", "runs", "n_in", "flip"]
SIDES = ("left", "right")
LEAST_COVERAGE = 0.85  # nominal 0.90
LEVEL = 0.05


def coverage_cells(kind: str = "", where: str = "published") -> pd.DataFrame:
    """Coverage of the nominal 90 % intervals, per part, method, strength, design or flip probability, and side.

    Args:
        kind: "" for the region posterior, "corner_" for the corner posterior. Of audits from the model the corner is compared
            with the corner of the true errors, which is what it estimates.
        where: as in :func:`load_audit_calibration`.

    Returns:
        One row a cell and side: the columns of CELL (flip 0 and n_in for audits of the model), ``side``, ``audits`` with a
        good fit, ``share`` covered, ``low``, ``high`` (exact intervals of joint level 95 % over the cells).
    """
    table = load_audit_calibration(where)
    table = table[(table["status"] == "ok") & (table["flip"] != 0.5)]
    bits = table["part"] == "noisy bit"
    table = table.assign(n_in=table["n_in"].where(~bits, 0), flip=table["flip"].fillna(0.0))
    groups = list(table.groupby(CELL, observed=True))
    rows = []
    for key, cell in groups:
        for side in SIDES:
            truth = cell[f"true_{kind}{side}"]
            share, low, high = coverage(
                cell[f"{kind}{side}_5%"], cell[f"{kind}{side}_95%"], truth, 1 - LEVEL / (2 * len(groups))
            )
            rows.append(
                dict(zip(CELL, key)) | {"side": side, "audits": len(cell), "share": share, "low": low, "high": high}
            )
    return pd.DataFrame(rows)


def p_value_of_sides(ranks: np.ndarray, draws: int = DRAWS, bins: int = BINS) -> float:
    """Chi-square test that the ranks of either side are uniform, the smaller p-value doubled (Bonferroni).

    The two ranks of an audit depend on each other, since both come from the same counts; pooled they would not be
    independent, and deviations of opposite sides would cancel.

    Args:
        ranks: (n, 2). draws, bins: as in :func:`rank_p_value`.
    """
    return min(1.0, ranks.shape[1] * min(rank_p_value(side, draws, bins) for side in ranks.T))


def rank_tests(where: str = "published") -> pd.DataFrame:
    """Test that the ranks of the truth are uniform on both sides, per method and strength, designs together.

    Returns:
        ``method``, ``strength``, ``audits``, ``bad_fits`` and ``p_value``.
    """
    table = load_audit_calibration(where)
    table = table[table["part"] == "model"]
    rows = []
    for (method, strength), part in table.groupby(["method", "strength"], observed=True):
        ranks = part[[f"rank_{side}" for side in SIDES]].to_numpy()
        rows.append(
            {
                "method": method,
                "strength": strength,
                "audits": len(part),
                "bad_fits": int((part["status"] != "ok").sum()),
                "p_value": p_value_of_sides(ranks, int(part["rank_draws"].iloc[0])),
            }
        )
    return pd.DataFrame(rows)


def check_recovery() -> Finding:
    """B17: smallest coverage of nominal 90 % region posteriors whose strength is learnt, as in the predecessor's model."""
    cells, ranks = coverage_cells(), rank_tests()
    deciding = cells[cells["strength"] == LEARNT]
    worst = deciding.loc[deciding["share"].idxmin()]
    if (deciding["low"] > LEAST_COVERAGE).all():
        verdict = "holds"
    else:
        verdict = "fails" if (deciding["high"] < LEAST_COVERAGE).any() else "inconclusive"
    fixed, corner = (table[table["strength"] == "0.0"] for table in (cells, coverage_cells("corner_")))
    bits = {name: part[part["part"] == "noisy bit"]["share"] for name, part in (("region", fixed), ("corner", corner))}
    refuted = int((ranks["p_value"] * len(ranks) < LEVEL).sum())
    model = deciding[deciding["part"] == "model"]["share"]
    most, learnt_most = (part[part["part"] == "noisy bit"]["runs"].max() for part in (fixed, deciding))
    reach = f"up to {most} runs" + (
        f" (the learnt strength was run with at most {learnt_most})" if learnt_most < most else ""
    )
    detail = (
        f"The computation is right: ranks are uniform for {len(ranks) - refuted} of {len(ranks)} combinations of method and "
        f"strength, and on counts from its own model the intervals cover {as_text(model.min(), 2)} to "
        f"{as_text(model.max(), 2)}. But the model takes an attack for a random one: for the best attack on a noisy bit they "
        f"cover as little as "
        f"{as_text(worst['share'], 2)} with {worst['runs']} runs and flip probability {worst['flip']:g}; with the strength "
        f"fixed at 0, as little as {as_text(bits['region'].min(), 2)} with {reach}. The corner posterior covers "
        f"{as_text(bits['corner'].min(), 2)} to {as_text(bits['corner'].max(), 2)} there."
    )
    interval = (float(worst["low"]), float(worst["high"]))
    return Finding(verdict, float(worst["share"]), interval, detail, {"ratio": verdict, "odds": verdict})


CLAIMS = (
    Claim(
        id="B17",
        sentence="The MCMC audit recovers (eps_L, eps_R) from the error counts of membership attacks.",
        source="yildirim2026bmp",
        estimand="share of simulated audits whose nominal 90 % interval of the region posterior (strength unknown and "
        "uniform) holds the true parameter; smallest over counts from the model and of the best attack on a noisy bit, "
        "several numbers of runs and flip probabilities, and both sides; left out are flip probability 1/2, where the truth is "
        "0, which no interval of a positive parameter holds, and audits without a good fit (our reading of 'recovers')",
        threshold=f"holds when every cell's interval lies above {LEAST_COVERAGE:g}, fails when one lies below it (ours); the "
        "forms differ by a known shift, so they share the verdict",
        chapter=CHAPTER,
        check=check_recovery,
    ),
)
