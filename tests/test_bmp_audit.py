"""The audit: reference values, three methods that agree, planted leakage, and data that cannot be used."""

from fractions import Fraction
from math import log

import arviz as az
import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

from lethe_lib.bmp import (
    AUDITS,
    Audit,
    GridSettings,
    audit,
    error_region,
    exact_bounds,
    flipped_bits,
    log_prior_odds,
    marginal_likelihood,
    quadrature,
    smallest_parameters,
)
from lethe_lib.bmp.audit_pymc import _ring_points, load_pymc
from lethe_lib.bmp.audit_quadrature import grid_edges, interpolation_matrix, marginal_tables
from lethe_lib.bmp.examples import single
from lethe_lib.errors import InputError
from lethe_lib.seeding import numpy_generator

GOOD, USELESS = (90, 9, 10, 4), (90, 45, 10, 5)
# Marginal likelihoods of GOOD from an independent two-dimensional quadrature.
MARGINALS = {(1, 2): 1.1063161581e-3, (1, 1): 9.360740353e-5, (2, 1): 7.520725037e-5, (0.5, 0.5): 1.227301896e-5}
MARGINALS[3, 3] = 1.10269071e-3
MEAN = [2.74088, 3.52767]
QUANTILES = [[0.635, 2.316, 6.259], [1.510, 3.159, 6.774]]
CORNER = [[0.311, 0.772, 1.497], [1.031, 1.699, 2.345]]
EVIDENCE = 6.094441e-4


def one_audit(counts, prior=0.1, **settings) -> Audit:
    """The audit of one or more count vectors."""
    n_out, positives, n_in, negatives = np.atleast_2d(counts).T
    return audit(n_out, positives, n_in, negatives, prior, **settings)


# The exact marginal likelihood


@pytest.mark.parametrize("parameters", MARGINALS)
def test_marginal_likelihood_references(parameters):
    assert marginal_likelihood(*parameters, GOOD) == pytest.approx(MARGINALS[parameters], rel=1e-8)


def test_marginal_likelihood_limits():
    assert marginal_likelihood(1e-4, 1e-4, GOOD) == pytest.approx(3.63694e-6, rel=2e-6)
    assert marginal_likelihood(60, 60, GOOD) == pytest.approx(1 / (91 * 11), rel=1e-12)
    alpha = (np.arange(20000) + 0.5) / 20000  # parameter 0 on the right: errors uniform on the segment alpha + beta = 1
    segment = np.mean(10 * alpha * (1 - alpha) ** 4 * 4 * (1 - alpha) ** 3 * alpha)
    assert marginal_likelihood(2.0, 1e-7, (5, 1, 4, 3)) == pytest.approx(segment / 2, rel=1e-6)


@pytest.mark.parametrize("strength", [0.0, 0.6])
def test_marginal_likelihood_against_uniform_draws(strength):
    counts, left, right = (12, 3, 7, 2), 1.3, 0.7
    alpha, beta = error_region(left, right).draw(numpy_generator(0), 400_000)
    outside = ~error_region(strength * left, strength * right).contains(alpha, beta) if strength else alpha >= 0
    alpha, beta = alpha[outside], beta[outside]
    likelihood = 220 * alpha**3 * (1 - alpha) ** 9 * 21 * beta**2 * (1 - beta) ** 5
    error = likelihood.std() / np.sqrt(len(likelihood))
    assert abs(marginal_likelihood(left, right, counts, strength) - likelihood.mean()) < 4 * error


def test_marginal_likelihoods_of_all_counts_sum_to_one():
    total = sum(marginal_likelihood(0.4, 2.5, (4, x, 3, y), 0.3) for x in range(5) for y in range(4))
    assert total == pytest.approx(1, abs=1e-11)


def test_predecessor_with_fixed_strength():
    """One parameter for both sides, 500 runs each, 200 errors each: means and quantiles known to 5 and 4 digits."""
    points = 22 * ((np.arange(1, 401)) / 400) ** 3
    slope = np.gradient(points)
    for strength, mean, quantiles in [(0, 2.16296, [0.4607, 1.5856, 5.7342]), (0.5, 0.60134, [0.3783, 0.5834, 0.8811])]:
        mass = marginal_likelihood(points, points, (500, 200, 500, 200), strength) * np.exp(-(points**2) / 20) * slope
        cumulative = (np.cumsum(mass) - mass / 2) / mass.sum()
        assert mass @ points / mass.sum() == pytest.approx(mean, abs=1e-3)
        assert np.interp([0.05, 0.5, 0.95], cumulative, points) == pytest.approx(quantiles, abs=3e-3)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0.0, 1.0, GOOD), "no area"),
        ((1.0, np.inf, GOOD), "no area"),
        ((1.0, 1.0, (10, 11, 5, 1)), "0 <= false positives"),
        ((1.0, 1.0, GOOD, 1.0), "strength"),
    ],
)
def test_marginal_likelihood_refuses(arguments, message):
    with pytest.raises(InputError, match=message):
        marginal_likelihood(*arguments)


# The grid


@pytest.mark.parametrize(
    ("grid", "mean_error", "quantile_error", "evidence_error"), [(128, 5e-4, 2e-3, 1e-3), (512, 3e-5, 1e-3, 2e-5)]
)
def test_quadrature_references(grid, mean_error, quantile_error, evidence_error):
    result = one_audit(GOOD, grid=grid, largest=grid)
    assert result.mean("ratio")[0] == pytest.approx(MEAN, abs=mean_error)
    assert result.ratio_quantiles[0][:, [0, 2, 4]] == pytest.approx(np.array(QUANTILES), abs=quantile_error)
    assert result.corner_ratio_quantiles[0][:, [0, 2, 4]] == pytest.approx(np.array(CORNER), abs=3e-3)
    assert result.evidence[0] == pytest.approx(EVIDENCE, rel=evidence_error)


def test_useless_attack():
    """The caution: the upper tail is the prior's; the corner shows that there is next to nothing."""
    result = one_audit(USELESS)
    right = [result.quantile(level, "ratio")[0, 1] for level in (0.05, 0.5, 0.95)]
    corner = [result.corner_quantile(level, "ratio")[0, 1] for level in (0.05, 0.5, 0.95)]
    assert right == pytest.approx([0.12, 1.59, 5.85], abs=6e-3)
    assert corner == pytest.approx([0.019, 0.193, 0.488], abs=1e-3)


@pytest.mark.parametrize("strength", [0.0, 0.5])
def test_grid_against_exact_marginals(strength):
    edges = grid_edges(512, 20.0)
    table = next(marginal_tables([GOOD], edges, strength))
    chosen = np.flatnonzero((edges > 0.4) & (edges < 6))[::30]
    exact = marginal_likelihood(edges[chosen][:, None], edges[chosen], GOOD, strength)
    assert table.marginal[0][np.ix_(chosen, chosen)] * table.scale[0] == pytest.approx(
        exact, rel=1e-3 if strength == 0 else 3e-3
    )
    for (left, right), value in MARGINALS.items() if not strength else ():
        rows, columns = (interpolation_matrix(edges, np.array([e])) for e in (left, right))
        assert (rows @ table.marginal[0] @ columns.T)[0, 0] * table.scale[0] == pytest.approx(value, rel=1e-3)


def test_evidence_of_all_counts_sums_to_one():
    counts = [(5, x, 3, y) for x in range(6) for y in range(4)]
    result = quadrature(np.array(counts), (1.0, 2.0), numpy_generator(0), settings=GridSettings(draws=0))
    assert result.evidence.sum() == pytest.approx(1, abs=1e-3)


def test_corner_against_sampling():
    generator = numpy_generator(3)
    corner = np.stack(smallest_parameters(generator.beta(7, 35, 400_000), generator.beta(11, 19, 400_000)), axis=1)
    result = one_audit((40, 6, 28, 10))
    for level in (0.05, 0.25, 0.5, 0.75, 0.95):
        assert result.corner_quantile(level, "ratio")[0] == pytest.approx(np.quantile(corner, level, axis=0), abs=0.01)
    assert result.corner_mean("ratio")[0] == pytest.approx(corner.mean(0), abs=5e-3)


def test_joint_draws_follow_the_grid():
    result = one_audit([GOOD, USELESS, GOOD], draws=40_000)
    assert result.draws.shape == (1, 40_000, 3, 2)
    assert result.draws.mean((0, 1)) == pytest.approx(result.mean("ratio"), abs=0.05)
    assert np.quantile(result.draws, 0.05, axis=(0, 1)) == pytest.approx(result.quantile(0.05, "ratio"), abs=0.02)
    assert not np.array_equal(result.draws[:, :, 0], result.draws[:, :, 2])  # equal counts, other order


@settings(max_examples=15, deadline=None)
@given(st.integers(1, 60), st.integers(1, 60), st.data())
def test_symmetries(n_out, n_in, data):
    positives, negatives = data.draw(st.integers(0, n_out)), data.draw(st.integers(0, n_in))
    counts = [
        (n_out, positives, n_in, negatives),
        (n_in, negatives, n_out, positives),  # roles of in and out swapped: left and right swap
        (n_out, n_out - positives, n_in, n_in - negatives),  # decisions inverted: the same algorithm
    ]
    result = one_audit(counts, grid=64, draws=0)
    for values in (result.ratio_mean, result.ratio_quantiles, result.corner_ratio_quantiles, result.corner_ratio_mean):
        assert values[1] == pytest.approx(values[0][::-1], abs=1e-9)
        assert values[2] == pytest.approx(values[0], abs=1e-9)
    assert np.all(np.diff(result.ratio_quantiles, axis=2) > 0) and np.all(result.ratio_quantiles >= 0)


def test_learnt_strength_is_the_average_over_strengths():
    """Evidence and mean by brute force: exact marginal likelihoods, averaged over s and weighted with the prior."""
    counts, scale = (12, 3, 7, 2), 1.0
    points, weights = np.polynomial.legendre.leggauss(10)
    roots, shares = (points + 1) / 2, weights / 2
    excess = 6.5 * roots**2
    prior = 13 * roots * shares * np.exp(-0.5 * (excess / scale) ** 2) * np.sqrt(2 / np.pi) / scale
    marginal = sum(
        share * marginal_likelihood(excess[:, None], excess, counts, strength) for strength, share in zip(roots, shares)
    )
    joint = marginal * prior[:, None] * prior
    result = one_audit(counts, strength="learnt", prior_scale=scale, grid=256)
    assert result.evidence[0] == pytest.approx(joint.sum(), rel=2e-3)
    mean = np.array([joint.sum(1) @ excess, joint.sum(0) @ excess]) / joint.sum()
    assert result.mean("ratio")[0] == pytest.approx(mean, abs=3e-3)


# Sampling methods


@pytest.mark.parametrize("strength", [0.0, 0.5, "learnt"])
def test_mhaar_agrees(strength):
    assert_agrees(one_audit([GOOD, USELESS], method="mhaar", strength=strength, draws=3000), [GOOD, USELESS], strength)


def test_pymc_agrees():
    assert_agrees(one_audit([GOOD, USELESS], method="pymc", chains=2, draws=2000), [GOOD, USELESS], 0.0)


def test_pymc_with_a_learnt_strength():
    """Short chains, so a status may complain; the next test shows that the model is exactly the one it should be."""
    settings = {"chains": 2, "tune": 200, "draws": 200, "target_accept": 0.8}
    result, expected = (one_audit(GOOD, strength="learnt", **more) for more in ({"method": "pymc", **settings}, {}))
    for side in range(2):
        draws = result.draws[:, :, 0, side]
        assert abs(draws.mean() - expected.mean("ratio")[0, side]) < 4 * draws.std() / np.sqrt(az.ess(draws))


def test_the_ring_of_the_pymc_model_averages_to_the_marginal_likelihood():
    """Over a fine grid of (u, v), the weighted likelihood of the four triangles is the exact marginal likelihood."""
    load_pymc()
    parameters, square = pt.dscalars("left", "right", "strength"), pt.dvectors("u", "v")
    points = _ring_points(*parameters, *square)
    evaluate = pytensor.function(
        [*parameters, *square], [part for point in points for part in point], mode="FAST_COMPILE"
    )
    grid = (np.arange(300) + 0.5) / 300
    u, v = (side.ravel() for side in np.meshgrid(grid, grid))
    for left, right, strength in ((1.3, 0.7, 0.6), (0.2, 3.0, 0.9), (2.0, 2.0, 0.05)):
        values = evaluate(left, right, strength, u, v)
        average = 0.0
        for alpha, beta, share in zip(values[::3], values[1::3], values[2::3]):
            assert error_region(left, right).contains(alpha, beta, 1e-12).all()
            assert not error_region(strength * left, strength * right).contains(alpha, beta, -1e-12).any()
            average += np.exp(share) * np.mean(binom.pmf(3, 12, alpha) * binom.pmf(2, 7, beta))
        assert average == pytest.approx(marginal_likelihood(left, right, (12, 3, 7, 2), strength), rel=1e-5)


def assert_agrees(result, counts, strength):
    """Means and quantiles within four Monte Carlo standard errors of the grid; the rest the same or not given."""
    expected = one_audit(counts, strength=strength, grid=256)
    assert result.ok.all(), result.reason
    for node in range(len(counts)):
        for side in range(2):
            draws = result.draws[:, :, node, side]
            error = draws.std() / np.sqrt(az.ess(draws))
            assert abs(result.mean("ratio")[node, side] - expected.mean("ratio")[node, side]) < 4 * error
            for level in (0.05, 0.5, 0.95):
                share = (draws < expected.quantile(level, "ratio")[node, side]).mean()
                assert abs(share - level) < 4 * np.sqrt(level * (1 - level) / result.convergence["ess"][node])
    assert result.corner_mean("ratio") == pytest.approx(expected.corner_mean("ratio"), abs=2e-3)
    assert np.isnan(result.evidence).all()


def test_short_chains_are_a_status_not_a_number():
    result = one_audit([GOOD, USELESS], method="mhaar", draws=20, tune=5)
    assert list(result.status) == ["bad_fit", "bad_fit"]
    assert "effective sample size" in result.reason[0]
    assert np.isnan(result.mean("odds")).all() and np.isnan(result.corner_quantile(0.5, "ratio")).all()
    assert np.isfinite(result.draws).all()


# Forms, planted leakage


def test_forms_differ_by_the_log_prior_odds():
    prior = np.array([0.1, 0.5, 0.8])
    result = audit(50, [3, 9, 30], 20, [2, 4, 8], prior)
    shift = np.stack([-log_prior_odds(prior), log_prior_odds(prior)], axis=1)
    assert result.mean("odds") - result.mean("ratio") == pytest.approx(shift)
    assert result.corner_mean("odds") - result.corner_mean("ratio") == pytest.approx(shift)
    for level in (0.05, 0.95):
        assert result.quantile(level, "odds") - result.quantile(level, "ratio") == pytest.approx(shift)
        assert np.all(result.quantile(level, "odds") >= shift)  # the prior bounds hold
    assert result.quantile(0.5, "odds")[0, 0] == pytest.approx(result.quantile(0.5, "ratio")[0, 0] + log(9))


def planted(runs, prior_percent, size=400, **settings):
    """Audits where the output is the membership bit, flipped with probability 1/4, and the attack repeats it."""
    exact = exact_bounds(single(Fraction(prior_percent, 100)), flipped_bits([0], Fraction(1, 4)))
    generator = numpy_generator(5, "planted", runs, prior_percent)
    n_in = generator.binomial(runs, prior_percent / 100, size)
    positives, negatives = generator.binomial(runs - n_in, 0.25), generator.binomial(n_in, 0.25)
    result = audit(runs - n_in, positives, n_in, negatives, prior_percent / 100, draws=0, **settings)
    return result, {form: np.stack(exact.parameters(form), axis=1) for form in ("ratio", "odds")}


@pytest.mark.parametrize("prior_percent", [20, 50])
def test_planted_leakage_is_recovered(prior_percent):
    result, truth = planted(300, prior_percent)
    for form in ("ratio", "odds"):
        assert result.corner_mean(form).mean(0) == pytest.approx(truth[form][0], abs=0.05)
        below = result.corner_quantile(0.05, form) <= truth[form]
        above = truth[form] <= result.corner_quantile(0.95, form)
        assert (below & above).mean(0) == pytest.approx([0.9, 0.9], abs=0.04)
        assert np.all(truth[form] <= result.quantile(0.95, form))


def test_planted_leakage_inside_the_posterior_interval():
    result, truth = planted(50, 50, strength=0.9)
    for form in ("ratio", "odds"):
        inside = (result.quantile(0.05, form) <= truth[form]) & (truth[form] <= result.quantile(0.95, form))
        assert inside.mean() > 0.85


def test_lower_bound_of_the_model_fails_for_the_best_attack():
    """A property of the model, not of its computation: it takes the attack for a random one, and this one is the best."""
    few, truth = planted(50, 50)
    many, _ = planted(1000, 50)
    covered = [(one.quantile(0.05, "ratio") <= truth["ratio"]).mean() for one in (few, many)]
    assert covered[0] > 0.65 and covered[1] < 0.2
    learnt, _ = planted(200, 50, 80, strength="learnt")  # helps, but is no cure
    fixed, _ = planted(200, 50, 80)
    covered = [(one.quantile(0.05, "ratio") <= truth["ratio"]).mean() for one in (fixed, learnt)]
    assert covered[0] + 0.15 < covered[1] < 0.8


def test_independent_output_leaves_no_excess():
    generator = numpy_generator(6)
    result = audit(150, generator.binomial(150, 0.4, 200), 150, generator.binomial(150, 0.6, 200), 0.5, draws=0)
    assert np.median(result.corner_quantile(0.05, "ratio")) < 0.03
    assert np.quantile(result.corner_quantile(0.05, "ratio"), 0.9) < 0.15


# Data that cannot be used


def test_statuses():
    result = audit([10, 0, 10, 10, 10], [1, 0, 1, 1, 1], [5, 5, 0, 5, 5], [1, 1, 0, 1, 1], [0.3, 0.9, 0.01, 0, 1])
    assert list(result.status) == ["ok", "no_out", "no_in", "degenerate_prior", "degenerate_prior"]
    assert result.reason[0] == "" and all(result.reason[1:])
    assert np.isfinite(result.mean("odds")[0]).all() and np.isnan(result.mean("odds")[1:]).all()
    assert np.isnan(result.evidence[1:]).all()
    assert result.mean("ratio")[0] == pytest.approx(audit(10, 1, 5, 1, 0.3).mean("ratio")[0])


@pytest.mark.parametrize("method", AUDITS)
def test_no_usable_node(method):
    result = audit([0, 4], [0, 1], [5, 0], [1, 0], 0.5, method=method)
    assert list(result.status) == ["no_out", "no_in"] and np.isnan(result.mean("ratio")).all()


def test_many_runs_get_a_finer_grid_or_a_status():
    counts = [(2000, 1000, 2000, 1000), GOOD]
    fine, coarse = one_audit(counts), one_audit(counts, largest=128)
    assert fine.ok.all() and np.all(fine.convergence["mass_error"] < 2e-3)
    assert list(coarse.status) == ["bad_fit", "ok"] and "raise largest" in coarse.reason[0]
    assert np.isnan(coarse.quantile(0.05, "ratio")[0]).all()
    generator = numpy_generator(4)
    errors = generator.beta(1001, 1001, (2, 400_000))
    corner = np.stack(smallest_parameters(*errors), axis=1)
    assert fine.corner_quantile(0.95, "ratio")[0] == pytest.approx(np.quantile(corner, 0.95, axis=0), rel=0.01)


def test_counts_that_the_prior_excludes_are_a_bad_fit():
    result = audit(600, [6, 300], 600, [6, 300], 0.5, prior_scale=1e-3)
    assert list(result.status) == ["bad_fit", "ok"] and "raise prior_scale" in result.reason[0]
    assert np.isnan(result.draws[:, :, 0]).all() and np.isfinite(result.draws[:, :, 1]).all()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"n_out": [10, 10]}, "one entry per node"),
        ({"priors": np.full((3, 1), 0.5)}, "one entry per node"),
        ({"false_positives": [1, 11, 1]}, "false_positives of node 1 is 11.*more errors than runs in n_out"),
        ({"false_negatives": [1, 1, 7]}, "false_negatives of node 2 is 7.*n_in"),
        ({"n_in": [5, -1, 5]}, "n_in of node 1 is -1"),
        ({"false_positives": [1, 1.5, 1]}, "whole numbers"),
        ({"n_out": [10, np.nan, 10]}, "whole numbers"),
        ({"priors": [0.1, 1.2, 0.3]}, "priors of node 1 is 1.2"),
        ({"priors": [0.1, np.nan, 0.3]}, "priors of node 1"),
        ({"nodes": ["a", "b"]}, "name all 3 nodes"),
        ({"method": "quadrture"}, "Did you mean 'quadrature'"),
        ({"chains": 3}, "quadrature has no setting chains. It has: grid, tolerance, largest, draws"),
        ({"grid": 4}, "too coarse"),
        ({"draws": -1}, "negative"),
        ({"method": "mhaar", "candidates": 1}, "2 candidates"),
        ({"method": "pymc", "target_accept": 1.0}, "target_accept"),
        ({"method": "pymc", "sampler": "gibbs"}, "nutpie or pymc"),
        ({"strength": "weak"}, "a number in .0, 1. or 'learnt'"),
        ({"strength": 1.0}, "strength"),
        ({"prior_scale": 0.0}, "prior_scale"),
        ({"prior_scale": (1.0, 2.0, 3.0)}, "prior_scale"),
    ],
)
def test_bad_input(changes, message):
    arguments = {"n_out": 10, "false_positives": [1, 2, 3], "n_in": 5, "false_negatives": 1, "priors": 0.3}
    with pytest.raises(InputError, match=message):
        audit(**(arguments | changes))


def test_unknown_form_and_level():
    result = one_audit(GOOD)
    with pytest.raises(InputError, match="unknown form"):
        result.mean("logit")
    with pytest.raises(InputError, match="quantiles are kept at the levels"):
        result.quantile(0.9, "ratio")


# Results that last


@pytest.mark.parametrize("method", ["quadrature", "mhaar"])
def test_round_trip(tmp_path, method):
    result = audit([90, 0, 90], [9, 0, 45], [10, 5, 10], [4, 1, 5], 0.1, method=method, nodes=["a", "b", "c"])
    result.to_inference_data().to_netcdf(tmp_path / "audit.nc", engine="h5netcdf")
    stored = az.from_netcdf(tmp_path / "audit.nc", engine="h5netcdf")
    assert stored.posterior["eps_odds"].dims == ("chain", "draw", "node", "parameter")
    assert stored.posterior.attrs["method"] == method
    eps = stored.posterior["eps_odds"].sel(node="c", parameter="right")
    assert eps.to_numpy() == pytest.approx(result.draws[:, :, 2, 1] - log(9))
    summary = stored.summary.sel(node="a", parameter="left")
    assert float(summary["eps_ratio_quantiles"].sel(level=0.5)) == pytest.approx(result.quantile(0.5, "ratio")[0, 0])
    assert float(summary["corner_odds_mean"]) == pytest.approx(result.corner_mean("odds")[0, 0])
    assert list(stored.summary["status"].to_numpy()) == ["ok", "no_out", "ok"]
    assert set(result.convergence) <= set(stored.summary)
    assert list(stored.observed_data["false_positives"].to_numpy()) == [9, 0, 45]


@pytest.mark.parametrize("method", ["quadrature", "mhaar"])
def test_same_seed_same_draws(method):
    first, again, other = (one_audit(GOOD, method=method, seed=seed, draws=100).draws for seed in (0, 0, 1))
    assert np.array_equal(first, again) and not np.array_equal(first, other)


def test_no_draws_are_kept_when_none_are_wanted(tmp_path):
    one_audit(GOOD, draws=0).to_inference_data().to_netcdf(tmp_path / "audit.nc", engine="h5netcdf")
    assert az.from_netcdf(tmp_path / "audit.nc", engine="h5netcdf").posterior["eps_ratio"].shape == (1, 0, 1, 2)


def test_frame():
    frame = one_audit([GOOD, USELESS]).frame("odds")
    assert list(frame.index) == [0, 1] and frame["status"].eq("ok").all()
    assert frame.loc[0, "eps_right 5%"] == pytest.approx(1.510 - log(9), abs=3e-3)
    assert frame.loc[0, "corner_left 50%"] == pytest.approx(0.772 + log(9), abs=3e-3)


def test_prior_scale_moves_the_upper_tail_but_hardly_the_lower():
    narrow, wide = (one_audit(GOOD, prior_scale=scale) for scale in (2.0, 6.0))
    assert np.all(wide.quantile(0.95, "ratio") > 1.5 * narrow.quantile(0.95, "ratio"))
    assert np.all(np.abs(wide.quantile(0.05, "ratio") - narrow.quantile(0.05, "ratio")) < 0.6)
    pair = one_audit(GOOD, prior_scale=(2.0, 6.0))
    assert pair.mean("ratio")[0, 1] > narrow.mean("ratio")[0, 1]
