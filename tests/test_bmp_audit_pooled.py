"""Pooled and hierarchical audits: against the audit of one node, brute force, and simulated nodes."""

import numpy as np
import pytest

from lethe_lib.bmp import (
    LEVELS,
    audit,
    audit_pooled,
    error_region,
    learnt_prior_scale,
    log_prior_odds,
    marginal_likelihood,
    pooled_audit,
)
from lethe_lib.errors import InputError
from lethe_lib.seeding import numpy_generator


def simulated(excess_left, excess_right, purpose, n_out=40, n_in=25):
    """Counts of one attack per node, with errors uniform on the region of the node."""
    generator = numpy_generator(0, "pooled", purpose)
    alpha, beta = (errors[0] for errors in error_region(excess_left, excess_right).draw(generator, 1))
    return n_out, generator.binomial(n_out, alpha), n_in, generator.binomial(n_in, beta)


def test_one_node_is_the_audit_of_that_node():
    pooled, alone = pooled_audit(90, 9, 10, 4, 0.1), audit(90, 9, 10, 4, 0.1, draws=0)
    assert pooled.mean == pytest.approx(alone.mean("odds")[0], abs=1e-9)
    for level in LEVELS:
        assert pooled.quantile(level) == pytest.approx(alone.quantile(level, "odds")[0], abs=1e-9)
    assert pooled.log_evidence == pytest.approx(np.log(alone.evidence[0]), abs=1e-9)


def test_two_nodes_against_brute_force():
    counts, priors = [(30, 5, 12, 3), (25, 9, 18, 5)], np.array([0.3, 0.45])
    pooled = pooled_audit(*np.array(counts).T, priors, prior_scale=1.5, grid=256)
    log_odds = log_prior_odds(priors)
    bounds = np.array([(-log_odds).max(), log_odds.max()])
    assert pooled.bounds == pytest.approx(bounds) and pooled.nodes == 2
    roots, weights = np.polynomial.legendre.leggauss(20)
    above = 7.5 * ((roots + 1) / 2) ** 2
    weights = weights * 7.5 * (roots + 1) / 2 * np.exp(-0.5 * (above / 1.5) ** 2) * np.sqrt(2 / np.pi) / 1.5
    joint = weights[:, None] * weights
    for vector, shift in zip(counts, log_odds):
        left, right = bounds[0] + above + shift, bounds[1] + above - shift
        joint = joint * marginal_likelihood(left[:, None], right, vector)
    assert pooled.log_evidence == pytest.approx(np.log(joint.sum()), abs=3e-3)
    mean = np.array([joint.sum(1) @ above, joint.sum(0) @ above]) / joint.sum()
    assert pooled.mean == pytest.approx(bounds + mean, abs=3e-3)


def test_common_parameters_are_recovered_and_better_known_than_of_one_node():
    """Twenty simulated algorithms: the 90 % intervals cover as they say, and pooling makes them narrow."""
    truth, covered, widths = np.array([1.6, 0.9]), [], []
    for simulation in range(20):
        priors = numpy_generator(simulation, "priors").uniform(0.35, 0.65, 60)
        shift = log_prior_odds(priors)
        counts = simulated(truth[0] + shift, truth[1] - shift, f"common {simulation}")
        pooled = pooled_audit(*counts, priors)
        covered.append((pooled.quantile(0.05) < truth) & (truth < pooled.quantile(0.95)))
        widths.append(pooled.quantile(0.95) - pooled.quantile(0.05))
        assert np.all(pooled.quantile(0.05) >= pooled.bounds)
    assert 0.78 <= np.mean(covered) <= 0.99
    single = audit(*counts, priors, draws=0)
    assert np.all(np.mean(widths, 0) < 0.5 * (single.quantile(0.95, "odds") - single.quantile(0.05, "odds")).mean(0))


def test_one_learnt_strength_for_all_nodes():
    """The best attack on every node. Without strength the lower ends lie above the truth; a learnt strength is found to be
    high and brings them down. It binds one side only, since errors outside R(s e) are near the border on one side."""
    generator, truth = numpy_generator(3, "strong attacks"), np.log(3)
    positives, negatives = generator.binomial(60, 0.25, 40), generator.binomial(60, 0.25, 40)
    fixed = pooled_audit(60, positives, 60, negatives, 0.5)
    learnt = pooled_audit(60, positives, 60, negatives, 0.5, strength="learnt")
    assert fixed.strength == 0.0 and learnt.strength > 0.7 and learnt.log_evidence > fixed.log_evidence + 10
    assert np.all(fixed.quantile(0.05) > truth + 0.3) and np.all(learnt.quantile(0.05) < truth + 0.2)
    assert np.all(learnt.quantile(0.95) > fixed.quantile(0.95))
    # With one node, one strength for all is one strength for each.
    alone = pooled_audit(30, 5, 12, 3, 0.4, strength="learnt", grid=64)
    single = audit(30, 5, 12, 3, 0.4, strength="learnt", grid=64, draws=0)
    assert alone.log_evidence == pytest.approx(np.log(single.evidence[0]), abs=1e-9)


def test_cells_are_doubled_until_they_resolve_the_interval(monkeypatch):
    """Five hundred nodes know the parameters to within two cells of the default grid, whose intervals are then too wide."""
    generator = numpy_generator(0, "many nodes")
    counts = 60, generator.binomial(60, 0.27, 500), 40, generator.binomial(40, 0.27, 500)
    found, fine = pooled_audit(*counts, 0.5), pooled_audit(*counts, 0.5, grid=512)
    widths = [one.quantile(0.95) - one.quantile(0.05) for one in (found, fine)]
    assert widths[0] == pytest.approx(widths[1], rel=0.04)
    assert found.mean == pytest.approx(fine.mean, abs=2e-3)
    monkeypatch.setattr(audit_pooled, "MOST_CELLS", 128)
    with pytest.raises(InputError, match="500 nodes .* pool fewer of them"):
        pooled_audit(*counts, 0.5)


def test_order_of_nodes_does_not_matter():
    counts = np.array([(30, 5, 12, 3), (25, 9, 18, 5), (30, 5, 12, 3)])
    priors = np.array([0.3, 0.4, 0.3])
    first = pooled_audit(*counts.T, priors, grid=64)
    again = pooled_audit(*counts[::-1].T, priors[::-1], grid=64)
    assert first.log_evidence == pytest.approx(again.log_evidence) and first.mean == pytest.approx(again.mean)


def test_learnt_scale_is_that_of_the_simulation():
    scales = np.array([0.6, 2.0])
    excess = np.abs(numpy_generator(2, "excess").normal(size=(1500, 2))) * scales
    n_out, positives, n_in, negatives = simulated(*excess.T, "scales")
    learnt = learnt_prior_scale(n_out, positives, n_in, negatives, 0.4)
    assert np.array(learnt) == pytest.approx(scales, rel=0.25)
    swapped = learnt_prior_scale(n_in, negatives, n_out, positives, 0.6)
    assert np.array(swapped) == pytest.approx(np.array(learnt)[::-1], rel=1e-3)
    hierarchical = audit(n_out, positives, n_in, negatives, 0.4, prior_scale=learnt, draws=0)
    default = audit(n_out, positives, n_in, negatives, 0.4, draws=0)
    error = [np.sqrt(np.mean((one.mean("ratio") - excess) ** 2, axis=0)) for one in (hierarchical, default)]
    assert np.all(error[0] < 0.9 * error[1])
    assert np.log(hierarchical.evidence).sum() > np.log(default.evidence).sum()


@pytest.mark.parametrize(
    ("function", "changes", "message"),
    [
        (pooled_audit, {"n_in": [4, 0], "false_negatives": [1, 0]}, "node 1 .1 such nodes. was never in"),
        (pooled_audit, {"priors": [1.0, 0.5]}, "node 0"),
        (pooled_audit, {"false_positives": [11, 0]}, "more errors than runs"),
        (pooled_audit, {"prior_scale": -1}, "prior_scale"),
        (pooled_audit, {"strength": 1.5}, "strength"),
        (pooled_audit, {"grid": 2}, "too coarse"),
        (pooled_audit, {"n_out": 3000, "false_positives": 1500, "n_in": 3000, "false_negatives": 1500}, "double grid"),
        (learnt_prior_scale, {"priors": 0.0}, "never in"),
        (learnt_prior_scale, {"grid": 33}, "multiple of 2"),
    ],
)
def test_bad_input(function, changes, message):
    arguments = {"n_out": 10, "false_positives": [1, 2], "n_in": 5, "false_negatives": [1, 1], "priors": 0.3}
    with pytest.raises(InputError, match=message):
        function(**(arguments | changes))


def test_pooled_quantile_levels():
    with pytest.raises(InputError, match="levels"):
        pooled_audit(10, 1, 10, 1, 0.5, grid=32).quantile(0.9)
