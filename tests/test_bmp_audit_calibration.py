"""Calibration of the audit: simulated audits, uniform ranks of the truth, coverage, and what the tests must refuse."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.stats import kstest

from lethe_lib.bmp import audit, error_region
from lethe_lib.bmp.audit_calibration import (
    DRAWS,
    calibration_ranks,
    coverage,
    rank_gap,
    rank_p_value,
    simulate,
)
from lethe_lib.errors import DataNotFound, InputError
from lethe_lib.reporting import claims_mcmc_audit
from lethe_lib.seeding import numpy_generator
from lethe_lib.study import audit_calibration
from lethe_lib.study.verify import frames_difference

SMALLEST_P = 1e-3


def ranks_of(method, size, strength=0.0, prior_scale=1.0, wrong_scale=None, **settings):
    """Ranks, audit and truth of simulated audits; ``wrong_scale`` analyses them with another prior than the true one."""
    simulated = simulate(size, 40, 15, 3, prior_scale, strength)
    result = audit(
        *simulated.counts.T, 0.4, method, prior_scale=wrong_scale or prior_scale, strength=strength, **settings
    )
    return calibration_ranks(result, simulated.excess), result, simulated


@pytest.mark.parametrize("strength", [0.0, 0.6, "learnt"])
def test_simulated_audits_follow_the_model(strength):
    simulated = simulate(2000, 500_000, 500_000, 0, (0.5, 2.0), strength)
    assert kstest(simulated.excess[:, 0] / 0.5, "halfnorm").pvalue > SMALLEST_P
    assert kstest(simulated.excess[:, 1] / 2.0, "halfnorm").pvalue > SMALLEST_P
    assert np.all(simulated.corner <= simulated.excess + 1e-9)
    alpha, beta = (simulated.counts[:, k] / 500_000 for k in (1, 3))
    assert error_region(*simulated.excess.T).contains(alpha, beta, 5e-3).all()
    if strength == 0.0:
        u, v = error_region(*simulated.excess.T).coordinates(alpha, beta)
        broad = simulated.excess.min(1) > 0.3  # in thin regions the noise of the counts blurs the coordinates
        assert kstest(u[broad], "uniform").pvalue > SMALLEST_P and kstest(v[broad], "uniform").pvalue > SMALLEST_P
    if strength == 0.6:
        assert np.all((simulated.corner > 0.6 * simulated.excess).any(1))


@pytest.mark.parametrize("strength", [0.0, 0.5, "learnt"])
def test_ranks_of_the_quadrature_are_uniform(strength):
    ranks, result, _ = ranks_of("quadrature", 500, strength, grid=64)
    assert result.ok.all()
    for side in ranks.T:
        gap, band = rank_gap(side, level=0.999)
        assert rank_p_value(side) > SMALLEST_P and np.abs(gap).max() < band


@pytest.mark.parametrize("strength", [0.0, 0.5, "learnt"])
def test_ranks_of_mhaar_are_uniform(strength):
    ranks, _, _ = ranks_of("mhaar", 60, strength, prior_scale=3.0)
    assert rank_p_value(ranks) > SMALLEST_P  # both parameters together: 120 ranks


def test_ranks_of_pymc_are_uniform():
    ranks, _, _ = ranks_of("pymc", 50, chains=2, tune=200, draws=200, target_accept=0.8)
    assert rank_p_value(ranks) > SMALLEST_P


def test_a_wrong_posterior_is_found():
    """Controls: another prior, a wrong strength, and left and right swapped."""
    for wrong in ({"wrong_scale": 0.6}, {"wrong_scale": 2.0}):
        ranks, _, _ = ranks_of("quadrature", 500, grid=64, **wrong)
        assert rank_p_value(ranks) < 1e-6
    for true, assumed in ((0.9, 0.0), (0.0, 0.9)):
        simulated = simulate(500, 100, 100, 3, 3.0, true)
        result = audit(*simulated.counts.T, 0.4, prior_scale=3.0, strength=assumed, grid=64)
        assert rank_p_value(calibration_ranks(result, simulated.excess)) < 1e-6
    simulated = simulate(500, 40, 15, 3, (0.5, 2.0))
    swapped = audit(*simulated.counts.T, 0.4, prior_scale=(0.5, 2.0), grid=64)
    assert rank_p_value(calibration_ranks(swapped, simulated.excess[:, ::-1])) < 1e-12


def test_coverage_of_both_posteriors():
    """Under the model the region posterior covers the parameters, the corner posterior the corner of the errors."""
    simulated = simulate(1500, 100, 60, 3)
    result = audit(*simulated.counts.T, 0.4, grid=64, draws=0)
    for side in range(2):
        region, corner = (
            coverage(*(quantile(q, "ratio")[:, side] for q in (0.05, 0.95)), truth[:, side])
            for quantile, truth in (
                (result.quantile, simulated.excess),
                (result.corner_quantile, simulated.corner),
            )
        )
        assert region[0] == pytest.approx(0.9, abs=0.03) and region[1] < region[0] < region[2]
        assert corner[0] == pytest.approx(0.88, abs=0.05)  # a little below nominal: no prior, and folded at chance
        # The corner's lower end is below the parameters far more often than nominal: no attack exceeds them.
        assert (result.corner_quantile(0.05, "ratio")[:, side] <= simulated.excess[:, side]).mean() > 0.97


def test_ranks_by_hand():
    result = audit(10, [1, 2], 10, [1, 2], 0.5, draws=4)
    result = replace(result, draws=np.array([[[1.0, 1.0], [2.0, 2.0]]] * 4)[None])
    assert calibration_ranks(result, np.array([[1.5, 0.5], [1.5, 2.5]]), draws=4).tolist() == [[4, 0], [0, 4]]


def test_rank_tests_on_known_ranks():
    uniform = np.tile(np.arange(DRAWS + 1), 10)
    gap, band = rank_gap(uniform)
    assert rank_p_value(uniform) == 1.0 and np.abs(gap).max() < 1e-12
    assert band == pytest.approx(1.358 / np.sqrt(1000), rel=0.02)
    piled = np.concatenate([uniform, np.full(100, DRAWS)])
    gap, band = rank_gap(piled)
    assert rank_p_value(piled) < 1e-6 and gap.min() == pytest.approx(-0.99 * 100 / 1100) and np.abs(gap).max() > band


def test_the_chi_square_test_keeps_its_level():
    generator = numpy_generator(1)
    values = [rank_p_value(generator.integers(0, DRAWS + 1, 300)) for _ in range(400)]
    assert kstest(values, "uniform").pvalue > SMALLEST_P


def test_coverage_by_hand():
    share, low, high = coverage([0.0, 0.0, 0.0], [1.0, 1.0, 0.2], [0.5, 1.0, 0.5])
    assert share == pytest.approx(2 / 3) and (low, high) == pytest.approx((0.0943, 0.9916), abs=1e-4)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: rank_p_value(np.zeros(50, int)), "at least 100 audits"),
        (lambda: rank_p_value(np.zeros(500, int), draws=98), "equal bins"),
        (lambda: calibration_ranks(audit(9, 1, 9, 1, 0.5, draws=10), np.ones((1, 2))), "got 10"),
        (lambda: calibration_ranks(audit(9, 1, 0, 0, 0.5), np.ones((1, 2))), "nodes without draws"),
        (lambda: simulate(10, 5, 5, 0, strength=1.0), "strength"),
        (lambda: simulate(10, 5, 5, 0, prior_scale=0), "prior_scale"),
    ],
)
def test_refusals(call, message):
    with pytest.raises(InputError, match=message):
        call()


# The study and the claim


@pytest.fixture(scope="module")
def small_study(tmp_path_factory):
    """A small run of the study, without PyMC, whose rows are made by the same functions."""
    folder = tmp_path_factory.mktemp("study")
    parts = {
        name: part._replace(size=size, strengths=(0.5,))
        for (name, part), size in zip(audit_calibration.METHODS.items(), (30, 10, 0, 20))
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(audit_calibration, "METHODS", parts)
        patch.setattr(audit_calibration, "RUNS", (20, 50, 60))
        patch.setattr(audit_calibration, "FLIPS", (0.25, 0.5))
        options = audit_calibration.argparse.Namespace(only=["quadrature", "noisy bit"], out=folder / "a.parquet")
        assert audit_calibration.main(options) == 0
        options.only = ["mhaar"]
        assert audit_calibration.main(options) == 0  # kept and added
        yield folder / "a.parquet", audit_calibration.load_audit_calibration(folder / "a.parquet")


def test_the_study_writes_what_it_simulated(small_study):
    _, table = small_study
    sizes = table.groupby(["part", "method"], observed=True).size()
    assert (
        sizes["model", "quadrature"] == 60 and sizes["model", "mhaar"] == 20 and sizes["noisy bit", "quadrature"] == 120
    )
    model = table[table["part"] == "model"]
    assert model[["rank_left", "rank_right"]].min().min() >= 0 and model["rank_left"].max() <= DRAWS
    ok = table[table["status"] == "ok"]
    assert np.all(ok["left_5%"] < ok["left_95%"]) and ok["corner_right_5%"].notna().all()
    bits = table[(table["part"] == "noisy bit") & (table["flip"] == 0.25)]
    assert bits["true_left"].to_numpy() == pytest.approx(np.log(3))
    assert (bits["n_out"] + bits["n_in"] == bits["runs"]).all()
    assert "provenance_commit" in table


def test_published_cells_are_recomputed_to_the_last_digit(small_study, tmp_path, monkeypatch):
    path, table = small_study
    monkeypatch.setenv("LETHE_RESULTS", str(tmp_path))
    (tmp_path / "audit_calibration.parquet").write_bytes(path.read_bytes())
    cells = audit_calibration.published_cells()
    assert len(cells) == len(set(cells)) == 2 + 2 + 3 * 2  # designs of two methods; runs and flips
    assert sum(len(one.of(table)) for one in audit_calibration.cells(audit_calibration.METHODS)) == len(table)
    for cell in cells:
        assert frames_difference(audit_calibration.recomputed(cell)) == (0.0, "")


def test_missing_records_say_what_to_do(tmp_path):
    with pytest.raises(DataNotFound, match="run audit_calibration"):
        audit_calibration.load_audit_calibration(tmp_path / "none.parquet")


def simulated_rows(**columns) -> pd.DataFrame:
    """Audits of the model as the study keeps them, 200 unless a column has another length."""
    ranks = np.arange(200) % (DRAWS + 1)
    plain = {"part": "model", "method": "quadrature", "strength": "0.0", "status": "ok", "flip": np.nan, "runs": 200}
    plain |= {"n_in": 100, "rank_draws": DRAWS, "rank_left": ranks, "rank_right": ranks}
    for side in claims_mcmc_audit.SIDES:
        plain |= {f"true_{side}": 1.0, f"{side}_5%": 0.5, f"{side}_95%": 1.5}
        plain |= {f"true_corner_{side}": 1.0, f"corner_{side}_5%": 0.5, f"corner_{side}_95%": 1.5}
    return pd.DataFrame(plain | columns)


def test_faults_of_opposite_sides_do_not_cancel(monkeypatch):
    low = np.arange(200) % 50
    for left, right, uniform in ((low, DRAWS - low, False), (np.arange(200) % 100, np.arange(200) % 100, True)):
        rows = simulated_rows(rank_left=left, rank_right=right)
        monkeypatch.setattr(claims_mcmc_audit, "load_audit_calibration", lambda where, rows=rows: rows)
        assert (claims_mcmc_audit.rank_tests()["p_value"].item() > SMALLEST_P) == uniform
    assert rank_p_value(np.concatenate([low, DRAWS - low])) == 1.0  # what pooled ranks would say


def test_coverage_at_strength_0_is_not_that_of_a_learnt_strength(monkeypatch):
    bits = {"part": "noisy bit", "flip": 0.25}
    rows = [
        simulated_rows(strength="learnt"),
        simulated_rows(**bits, true_left=np.repeat([1.0, 2.0], [160, 40])),  # covers 0.80
        simulated_rows(**bits, strength="learnt", true_left=np.repeat([1.0, 2.0], [100, 100])),  # covers 0.50
    ]
    table = pd.concat(rows, ignore_index=True)
    monkeypatch.setattr(claims_mcmc_audit, "load_audit_calibration", lambda where: table)
    finding = claims_mcmc_audit.check_recovery()
    assert finding.effect == 0.5 and "with the strength fixed at 0, as little as 0.80" in finding.detail


def test_the_claim_fails_for_the_best_attack_and_holds_without_it():
    finding = claims_mcmc_audit.check_recovery()
    assert finding.verdict == "fails" and finding.by_form == {"ratio": "fails", "odds": "fails"}
    assert finding.effect < 0.85 and finding.interval[0] <= finding.effect <= finding.interval[1] < 0.85
    cells = claims_mcmc_audit.coverage_cells()
    model = cells[cells["part"] == "model"]
    assert ((model["low"] < 0.9) & (0.9 < model["high"])).all()
    corner = claims_mcmc_audit.coverage_cells("corner_")
    assert corner[corner["part"] == "noisy bit"]["share"].min() > 0.85
    ranks = claims_mcmc_audit.rank_tests()
    assert set(ranks["method"]) == {"quadrature", "mhaar", "pymc"}
    assert (ranks["p_value"] * len(ranks) > 0.05).all()
