"""Likelihood-ratio membership: fits without the scored trial, decisions, errors per node, and from there to the audit."""

import sys
from math import log

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import multivariate_normal, ncx2, norm
from sklearn.covariance import OAS
from sklearn.metrics import roc_auc_score, roc_curve

from lethe_lib.attacks import (
    PosteriorFeaturesSettings,
    advantage,
    auc,
    bayes_rule_test,
    best_threshold_test,
    count_errors,
    global_threshold_test,
    likelihood_ratio,
    likelihood_ratio_test,
    posterior_features_attack,
    tpr_at_fpr,
    unit_auc,
    unit_status,
)
from lethe_lib.attacks.likelihood_ratio import FLOOR, class_fits, shrunk_correlation
from lethe_lib.attacks.node_membership import best_thresholds, level_p_values
from lethe_lib.bmp import audit, pooled_audit
from lethe_lib.errors import InputError
from lethe_lib.seeding import numpy_generator


def trials(count=30, units=4, shift=1.0, size=None, prior=0.5, purpose="trials"):
    """Normal statistics, shifted where the unit was in."""
    generator = numpy_generator(0, purpose, count, units)
    member = generator.random((count, units)) < prior
    shape = member.shape if size is None else (*member.shape, size)
    own = generator.normal(3, 5, (units,) if size is None else (units, size))
    inside = member if size is None else member[..., None]
    return own + generator.normal(size=shape) + shift * inside, member


def by_hand(values, member, variance, fold):
    """The scores of one statistic, one trial and unit after the other, with NumPy's own moments."""
    scores = np.empty(member.shape)
    for t, i in np.ndindex(member.shape):
        rest = fold != fold[t]
        x = {side: values[rest & (member[:, i] == side), i] for side in (False, True)}
        if variance == "pooled":
            both = np.sqrt(sum(part.var() * len(part) for part in x.values()) / (rest.sum() - 2))
            sd = {False: both, True: both}
        else:
            sd = {side: part.std(ddof=1) for side, part in x.items()}
        logs = [norm.logpdf(values[t, i], x[side].mean(), sd[side]) for side in (False, True)]
        scores[t, i] = logs[1] - logs[0]
    return scores


# Scores


@pytest.mark.parametrize("variance", ["own", "pooled"])
@pytest.mark.parametrize("folds", [None, 2, 7])
def test_scores_against_a_loop(variance, folds):
    values, member = trials()
    fold = np.arange(len(values)) % (folds or len(values))
    assert likelihood_ratio(values, member, variance, folds) == pytest.approx(by_hand(values, member, variance, fold))


def test_scores_checkable_by_hand():
    member = np.array([[True], [True], [True], [False], [False], [False]])
    scores = likelihood_ratio(np.array([[9.0], [4.0], [6.0], [0.0], [2.0], [1.0]]), member)
    # Trial 0: in-trials 4 and 6 have mean 5 and variance 2, out-trials mean 1 and variance 1.
    assert scores[0, 0] == pytest.approx(-16 / 4 - log(2) / 2 + 64 / 2)


def test_several_statistics_add_up():
    values, member = trials(size=3)
    alone = sum(likelihood_ratio(values[..., one], member) for one in range(3))
    assert likelihood_ratio(values, member) == pytest.approx(alone)
    one = values[..., :1]
    assert likelihood_ratio(one, member, combine="joint") == pytest.approx(likelihood_ratio(one[..., 0], member))


@pytest.mark.parametrize("variance", ["own", "pooled"])
def test_joint_scores_against_a_loop(variance):
    values, member = trials(count=16, units=2, size=3)
    values[..., 1] += 2 * values[..., 0]
    expected = np.empty(member.shape)
    for t, i in np.ndindex(member.shape):
        rest = np.arange(len(values)) != t
        parts = [values[rest & (member[:, i] == side), i] for side in (False, True)]
        covariances = [np.cov(part.T) for part in parts]
        freedom = [len(part) - 1 for part in parts]
        if variance == "pooled":
            both = sum(c * f for c, f in zip(covariances, freedom)) / sum(freedom)
            covariances, freedom = [both, both], [sum(freedom)] * 2
        logs = []
        for part, covariance, degrees in zip(parts, covariances, freedom):
            sd = np.sqrt(np.diag(covariance))
            shrunk = shrunk_correlation(covariance / np.outer(sd, sd), degrees) * np.outer(sd, sd)
            logs.append(multivariate_normal.logpdf(values[t, i], part.mean(0), shrunk))
        expected[t, i] = logs[1] - logs[0]
    assert likelihood_ratio(values, member, variance, combine="joint") == pytest.approx(expected)


def test_shrinkage():
    strong = np.array([[1.0, 0.9], [0.9, 1.0]])
    few, many = (shrunk_correlation(strong, freedom)[0, 1] for freedom in (3, 3000))
    assert 0 < few < many < 0.9 and many == pytest.approx(0.9, abs=2e-3)
    assert shrunk_correlation(np.eye(3), 10) == pytest.approx(np.eye(3))
    # Many statistics: scikit-learn leaves out the terms 2/p, which no longer matter.
    draws = numpy_generator(1).normal(size=(50, 80))
    draws[:, 1:] += 2 * draws[:, :1]
    draws = (draws - draws.mean(0)) / draws.std(0)
    oracle = OAS(assume_centered=True).fit(draws).covariance_
    assert shrunk_correlation(np.corrcoef(draws.T), 50) == pytest.approx(oracle, abs=0.01)


def test_joint_fit_uses_what_statistics_share():
    """The second statistic is the noise of the first: useless alone, and all that is needed to clean it."""
    generator = numpy_generator(2)
    member = generator.random((60, 40)) < 0.5
    noise = generator.normal(size=member.shape)
    values = np.stack([member + noise, noise + 0.1 * generator.normal(size=member.shape)], axis=2)
    aucs = {c: roc_auc_score(member.ravel(), likelihood_ratio(values, member, "pooled", combine=c).ravel())
            for c in ("sum", "joint")}  # fmt: skip
    assert aucs["sum"] < 0.8 and aucs["joint"] > 0.95


@settings(max_examples=30, deadline=None)
@given(st.data(), st.sampled_from([None, 3]), st.sampled_from(["own", "pooled"]), st.sampled_from(["sum", "joint"]))
def test_a_score_uses_its_own_trial_through_its_value_only(data, folds, variance, combine):
    values, member = trials(count=12, units=2, size=2, purpose="e6")
    member[:, :] = np.arange(12)[:, None] // 3 % 2 == 0  # every fold leaves enough of both classes
    trial, unit = data.draw(st.integers(0, 11)), data.draw(st.integers(0, 1))
    changed = values.copy()
    changed[trial, unit] = data.draw(arrays(float, 2, elements=st.floats(-1e4, 1e4)))
    before, after = (likelihood_ratio(x, member, variance, folds, combine) for x in (values, changed))
    assert after[:, 1 - unit] == pytest.approx(before[:, 1 - unit], rel=1e-12)
    # The fits of its own fold do not know the value: put the old value in the place of another unit with the same trials.
    fits = [class_fits(x[..., 0], member, variance, folds) for x in (values, changed)]
    same = np.arange(12) % folds == trial % folds if folds else np.arange(12) == trial
    for name in ("mean_in", "mean_out", "variance_in", "variance_out"):
        old, new = (getattr(one, name)[same, unit] for one in fits)
        assert new == pytest.approx(old, rel=1e-9)
    others = same & (np.arange(12) != trial)
    assert after[others, unit] == pytest.approx(before[others, unit], rel=1e-8, abs=1e-8)
    if combine == "sum":
        fit = [class_fits(values[..., one], member, variance, folds) for one in range(2)]
        expected = sum(
            norm.logpdf(changed[trial, unit, k], f.mean_in[trial, unit], np.sqrt(f.variance_in[trial, unit]))
            - norm.logpdf(changed[trial, unit, k], f.mean_out[trial, unit], np.sqrt(f.variance_out[trial, unit]))
            for k, f in enumerate(fit)
        )
        assert after[trial, unit] == pytest.approx(expected, rel=1e-6, abs=1e-6)


@settings(max_examples=20, deadline=None)
@given(st.floats(-1e6, 1e6), st.floats(1e-3, 1e3), st.booleans(), st.permutations(range(4)))
def test_invariances(shift, scale, flip, order):
    values, member = trials()
    before = likelihood_ratio(values, member)
    moved = likelihood_ratio((-scale if flip else scale) * values + shift, member)
    assert moved == pytest.approx(
        before, rel=1e-4, abs=1e-4
    )  # direction, unit and origin of the statistic do not matter
    assert likelihood_ratio(values, ~member) == pytest.approx(-before)
    assert np.array_equal(likelihood_ratio(values[:, order], member[:, order]), before[:, order])


def test_blocks_of_units_do_not_matter(monkeypatch):
    values, member = trials(count=40, units=7, size=2)
    for combine in ("sum", "joint"):
        whole = likelihood_ratio(values, member, combine=combine)
        with monkeypatch.context() as patch:
            patch.setattr(sys.modules[class_fits.__module__], "BLOCK", 100)
            assert np.array_equal(likelihood_ratio(values, member, combine=combine), whole)


def test_outlier_in_its_own_trial_costs_no_digits():
    values, member = trials()
    clean = class_fits(values, member)
    values[3, 0] = 1e9
    assert class_fits(values, member).variance_in[3, 0] == pytest.approx(clean.variance_in[3, 0], rel=1e-12)


def test_class_without_spread_takes_the_floor():
    member = np.arange(10)[:, None] < 5
    values = np.where(member, 1.0, np.array([0, 0, 0, 0, 0, 0, 0.5, -0.5, 0.25, -0.25])[:, None])
    fits = class_fits(values, member)
    overall = np.delete(values[:, 0], 7).var(ddof=1)
    assert fits.variance_in[7, 0] == pytest.approx(FLOOR * overall)
    scores = likelihood_ratio(values, member)
    assert np.isfinite(scores).all() and (scores[member] > 0).all() and (scores[~member] < 0).all()


# Units and trials that cannot be scored


def test_statuses():
    member = np.zeros((8, 6), dtype=bool)
    member[::2] = True
    member[:, 0], member[:, 1] = False, True
    member[:, 2], member[:, 3] = np.arange(8) < 2, np.arange(8) >= 2
    values = numpy_generator(3).normal(size=member.shape)
    values[:, 4] = 0.1 + 0.2
    status = unit_status(values, member)
    assert list(status) == ["no_in", "no_out", "few_in", "few_out", "constant", "ok"]
    with pytest.raises(InputError, match="unit 0 cannot be scored: no_in .5 of 6 units: no_in 1, no_out 1, few_in 1"):
        likelihood_ratio(values, member)
    # Two in each class are enough for fits on all other trials, but not once a fold takes one away.
    assert unit_status(values[:, 5:], np.arange(8)[:, None] < 3)[0] == "ok"
    assert unit_status(values[:, 5:], np.arange(8)[:, None] < 3, folds=2)[0] == "few_in"


def test_constant_statistic_adds_nothing_beside_another():
    values, member = trials(size=2)
    values[..., 1] = 7.0
    for combine in ("sum", "joint"):
        assert likelihood_ratio(values, member, combine=combine) == pytest.approx(
            likelihood_ratio(values[..., 0], member), rel=1e-9
        )


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"statistics": np.zeros((30, 3))}, "got .30, 3. and .30, 4."),
        ({"statistics": np.zeros(30)}, "trials, units"),
        ({"member": np.zeros((30, 4))}, "array of bool, not of float64"),
        ({"folds": 1}, "folds = 1"),
        ({"folds": 31}, "folds = 31"),
        ({"variance": "global"}, "choose own or pooled"),
        ({"combine": "mean"}, "choose sum or joint"),
    ],
)
def test_bad_input(changes, message):
    values, member = trials()
    with pytest.raises(InputError, match=message):
        likelihood_ratio(**({"statistics": values, "member": member} | changes))


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_values_that_are_not_finite_are_named(bad):
    values, member = trials()
    values[5, 2] = values[5, 3] = bad
    with pytest.raises(InputError, match=f"unit 2 in trial 5 is {bad} .2 such values in 1 trials"):
        unit_status(values, member)


# Decisions


@pytest.mark.parametrize("variance", ["own", "pooled"])
def test_p_values_against_the_noncentral_chi_square_law(variance):
    values, member = trials(count=16, units=20)
    fits = class_fits(values, member, variance)
    expected = np.empty(member.shape)
    for t, i in np.ndindex(member.shape):
        m0, m1, v0, v1 = (getattr(fits, name)[t, i] for name in ("mean_out", "mean_in", "variance_out", "variance_in"))
        if variance == "pooled":
            expected[t, i] = norm.sf(np.sign(m1 - m0) * (values[t, i] - m0) / np.sqrt(v0))
            continue
        away = -(m1 / v1 - m0 / v0) / (1 / v1 - 1 / v0)  # minus the vertex of the parabola
        squared, parameter = (values[t, i] + away) ** 2 / v0, (m0 + away) ** 2 / v0
        expected[t, i] = ncx2.cdf(squared, 1, parameter) if v0 > v1 else ncx2.sf(squared, 1, parameter)
    assert level_p_values(values, member, variance) == pytest.approx(expected, rel=1e-6, abs=1e-8)


def test_p_values_against_draws():
    """The probability under the out-law that the log ratio is at least as large, by simulation."""
    values, member = trials(count=10, units=3)
    fits, scores = class_fits(values, member), likelihood_ratio(values, member)
    generator = numpy_generator(4)
    for t, i in np.ndindex(member.shape):
        m0, m1, v0, v1 = (getattr(fits, name)[t, i] for name in ("mean_out", "mean_in", "variance_out", "variance_in"))
        x = generator.normal(m0, np.sqrt(v0), 20_000)
        ratio = norm.logpdf(x, m1, np.sqrt(v1)) - norm.logpdf(x, m0, np.sqrt(v0))
        share = (ratio >= scores[t, i]).mean()
        assert level_p_values(values, member)[t, i] == pytest.approx(share, abs=0.02)


@pytest.mark.parametrize("variance", ["own", "pooled"])
@pytest.mark.parametrize("level", [0.05, 0.3])
def test_the_level_test_keeps_its_level(variance, level):
    values, member = trials(count=400, units=60, shift=1.5)
    counts = likelihood_ratio_test(values, member, level, variance)
    assert counts.ok.all()
    assert counts.false_positives.sum() / counts.n_out.sum() == pytest.approx(level, abs=0.015)
    power = 1 - counts.false_negatives.sum() / counts.n_in.sum()
    assert power == pytest.approx(norm.sf(norm.isf(level) - 1.5), abs=0.03)


def test_best_threshold_by_hand():
    scores = np.array([[5.0, 1.0], [4.0, 1.0], [3.0, 1.0], [2.0, 1.0], [1.0, 1.0]])
    member = np.array([[1, 1], [0, 1], [1, 0], [1, 0], [0, 0]]).astype(bool)
    assert list(best_thresholds(scores, member)) == [1.5, np.inf]


def test_best_threshold_test_finds_the_middle():
    values, member = trials(count=300, units=40, shift=2.0)
    counts = best_threshold_test(values, member, "pooled", folds=5)
    rates = counts.false_positives.sum() / counts.n_out.sum(), counts.false_negatives.sum() / counts.n_in.sum()
    assert rates == pytest.approx((norm.sf(1), norm.sf(1)), abs=0.03)


def test_bayes_rule_uses_the_prior_odds():
    values, member = trials(count=400, units=30, shift=2.0, prior=0.2)
    prior = np.full(30, 0.2)
    counts = bayes_rule_test(values, member, prior, "pooled")
    cut = 1 + log(4) / 2  # x above which 0.2 N(x; 2, 1) > 0.8 N(x; 0, 1)
    assert counts.false_positives.sum() / counts.n_out.sum() == pytest.approx(norm.sf(cut), abs=0.01)
    assert counts.false_negatives.sum() / counts.n_in.sum() == pytest.approx(norm.cdf(cut - 2), abs=0.03)
    wrong = counts.false_positives.sum() + counts.false_negatives.sum()
    for rival in (likelihood_ratio_test(values, member), best_threshold_test(values, member, folds=4)):
        assert wrong < rival.false_positives.sum() + rival.false_negatives.sum()
    # The rule on the scores themselves, and equal priors as the plain ratio.
    scores = likelihood_ratio(values, member, "pooled")
    assert np.array_equal(counts.arrays[1], ((scores > log(4)) & ~member).sum(0))


def test_counts_by_hand_and_statuses_without_decisions():
    says = np.array([[1, 0, 1], [1, 1, 1], [0, 0, 1]]).astype(bool)
    member = np.array([[1, 1, 1], [0, 0, 1], [0, 1, 1]]).astype(bool)
    counts = count_errors(says, member, np.array(["ok", "ok", "no_out"]))
    assert [list(one) for one in counts.arrays] == [[2, 1, 0], [1, 1, 0], [1, 2, 0], [0, 2, 0]]
    result = audit(*counts.arrays, 0.5, draws=0)
    assert list(result.status) == ["ok", "ok", "no_decisions"] and "its own status" in result.reason[2]


def test_nodes_that_cannot_be_scored_get_a_status_from_every_rule():
    values, member = trials(count=40)
    member[:, 1] = False
    values[:, 2] = 1.0
    rules = {
        "level": likelihood_ratio_test(values, member),
        "best": best_threshold_test(values, member),
        "bayes": bayes_rule_test(values, member, np.full(4, 0.5)),
    }
    for counts in rules.values():
        assert list(counts.status) == ["ok", "no_in", "constant", "ok"]
        assert [one[1] for one in counts.arrays] == [0, 0, 0, 0] and counts.n_in[0] > 0
    assert list(global_threshold_test(values, member).status) == ["ok", "no_in", "ok", "ok"]


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        (lambda x, m: likelihood_ratio_test(x, m, level=0.0), "level"),
        (lambda x, m: likelihood_ratio_test(x, m, level=1.0), "level"),
        (lambda x, m: bayes_rule_test(x, m, np.full(3, 0.5)), "one entry for each of 4 nodes"),
        (lambda x, m: bayes_rule_test(x, m, np.array([0, 0.5, 0.5, 0.5])), "strictly between 0 and 1"),
        (lambda x, m: likelihood_ratio_test(x[..., None], m), "one statistic per unit"),
        (lambda x, m: global_threshold_test(np.stack([x, x], 2), m), "one statistic per node, got 2"),
        (lambda x, m: global_threshold_test(x, np.ones_like(m)), "one class only"),
        (lambda x, m: count_errors(x, m), "bool arrays"),
    ],
)
def test_rules_refuse(rule, message):
    with pytest.raises(InputError, match=message):
        rule(*trials())


# Baselines


def test_global_threshold_is_blind_to_what_differs_between_nodes():
    """Nodes differ far more than membership moves them: one threshold fails where thresholds per node succeed."""
    values, member = trials(count=60, units=50, shift=2.0)
    blind, own = global_threshold_test(values, member, folds=5), likelihood_ratio_test(values, member)
    gain = {
        name: 1 - c.false_positives.sum() / c.n_out.sum() - c.false_negatives.sum() / c.n_in.sum()
        for name, c in (("blind", blind), ("own", own))
    }
    assert abs(gain["blind"]) < 0.25 and gain["own"] > 0.5
    # Where all nodes are alike, the one threshold is as good as it gets.
    alike = global_threshold_test(values - values.mean(0), member, folds=5)
    assert 1 - alike.false_positives.sum() / alike.n_out.sum() - alike.false_negatives.sum() / alike.n_in.sum() > 0.6


def test_posterior_features_attack():
    generator = numpy_generator(5, "posteriors")
    labels, member = generator.integers(0, 3, 300), generator.random(300) < 0.4
    logits = generator.normal(size=(300, 3)) + 3.0 * member[:, None] * np.eye(3)[labels]
    posteriors = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    quick = PosteriorFeaturesSettings(epochs=60, repeats=2)
    results = posterior_features_attack(posteriors, labels, member, "full", 1, quick)
    for result in results:
        assert len(result.targets) == 150 and np.array_equal(result.labels, member[result.targets])
        assert result.auc > 0.75 and result.extras["advantage"] > 0.4
        assert result.labels.sum() == pytest.approx(150 * member.mean(), abs=1)  # stratified
    assert not np.array_equal(results[0].targets, results[1].targets)
    again = posterior_features_attack(posteriors, labels, member, "full", 1, quick)
    assert np.array_equal(again[1].scores, results[1].scores)
    shuffled = posterior_features_attack(posteriors, labels, generator.permutation(member), "full", 1, quick)
    assert np.mean([result.auc for result in shuffled]) == pytest.approx(0.5, abs=0.12)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"labels": np.zeros(9, int)}, "must agree on n"),
        ({"member": np.zeros(10)}, "must agree on n"),
        ({"posteriors": np.ones((10, 2))}, "apply softmax"),
        ({"member": np.arange(10) < 3}, "4 members and 4 others, got 3 and 7"),
    ],
)
def test_posterior_features_refuses(changes, message):
    arguments = {"posteriors": np.full((10, 2), 0.5), "labels": np.zeros(10, int), "member": np.arange(10) < 5}
    with pytest.raises(InputError, match=message):
        posterior_features_attack(**(arguments | changes), query="full")


def test_posterior_features_settings_refuse():
    with pytest.raises(InputError, match="test_share"):
        PosteriorFeaturesSettings(test_share=1.0)


# Rates


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 6), st.booleans()), min_size=2, max_size=30), st.floats(0, 1))
def test_rates_against_scikit_learn(pairs, fpr):
    scores, labels = (np.array(side) for side in zip(*pairs))
    if labels.all() or not labels.any():
        with pytest.raises(InputError, match="both classes"):
            tpr_at_fpr(scores, labels)
        return
    false, true, _ = roc_curve(labels, scores, drop_intermediate=False)
    assert tpr_at_fpr(scores, labels, fpr) == pytest.approx(true[false <= fpr].max())
    assert advantage(scores, labels) == pytest.approx((true - false).max())
    assert unit_auc(scores[:, None], labels[:, None])[0] == pytest.approx(roc_auc_score(labels, scores))


def test_rates_refuse():
    with pytest.raises(InputError, match="fpr"):
        tpr_at_fpr([1, 2], [True, False], fpr=1.5)
    with pytest.raises(InputError, match="unit 1 has no member and non-member"):
        unit_auc(np.zeros((3, 2)), np.array([[1, 1], [0, 1], [1, 1]]))
    with pytest.raises(InputError, match="one shape"):
        unit_auc(np.zeros((3, 2)), np.zeros((3, 1)))


def test_unit_auc_of_a_statistic_that_knows_nothing():
    """Within folds it is one half; across left-out trials it is not, over many units the bias averages out."""
    values, member = trials(count=100, units=400, shift=0.0)
    folded = likelihood_ratio(values, member, folds=2)
    assert unit_auc(folded, member, folds=2).mean() == pytest.approx(0.5, abs=0.012)
    alone = likelihood_ratio(values, member)
    assert unit_auc(alone, member).mean() < 0.47
    assert auc(alone.ravel(), member.ravel()) == pytest.approx(0.5, abs=0.01)
    assert tpr_at_fpr(alone.ravel(), member.ravel(), 0.1) == pytest.approx(0.1, abs=0.01)


def test_unit_auc_within_folds_by_hand():
    scores = np.array([[3.0], [9.0], [1.0], [7.0]])  # fold 0 holds trials 0 and 2, fold 1 trials 1 and 3
    member = np.array([[True], [False], [False], [True]])
    assert unit_auc(scores, member, folds=2)[0] == 0.5 and unit_auc(scores, member)[0] == 0.5
    assert unit_auc(scores, member ^ np.array([[False], [True], [False], [True]]), folds=2)[0] == 1.0


# From planted statistics to the audit


def noisy_bits(runs, flip, units=300, prior=0.5):
    """The statistic is the membership bit itself, flipped with probability ``flip``."""
    generator = numpy_generator(6, "noisy bits", runs, flip)
    member = generator.random((runs, units)) < prior
    return (member ^ (generator.random(member.shape) < flip)).astype(float), member


@pytest.mark.parametrize("flip", [0.1, 0.25])
@pytest.mark.parametrize("rule", [likelihood_ratio_test, best_threshold_test])
def test_planted_leakage_is_found_by_attack_and_audit(rule, flip):
    """The exact bounds of a flipped bit are log((1 - q)/q) on both sides (theory chapter)."""
    values, member = noisy_bits(200, flip)
    counts = rule(values, member)
    rates = counts.false_positives.sum() / counts.n_out.sum(), counts.false_negatives.sum() / counts.n_in.sum()
    assert rates == pytest.approx((flip, flip), abs=0.01)  # the best errors there are
    truth, result = log((1 - flip) / flip), audit(*counts.arrays, 0.5, draws=0)
    inside = (result.corner_quantile(0.05, "ratio") <= truth) & (truth <= result.corner_quantile(0.95, "ratio"))
    assert result.ok.all() and inside.mean() > 0.84
    assert np.all(truth <= result.quantile(0.95, "ratio"))


def test_independent_statistic_leaves_no_excess():
    values, member = trials(count=200, units=200, shift=0.0)
    counts = likelihood_ratio_test(values, member)
    result = audit(*counts.arrays, 0.5, draws=0)
    assert np.quantile(result.corner_quantile(0.05, "ratio")[result.ok], 0.9) < 0.2
    pooled = pooled_audit(*counts.arrays, 0.5, grid=64)
    assert pooled.quantile(0.05).max() < 0.05
