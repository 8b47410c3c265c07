"""Exact cases of the BMP theory, worked by hand, and properties of enumeration over random laws."""

from fractions import Fraction
from itertools import combinations
from math import inf, log

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lethe_lib.bmp import (
    Bounds,
    bayes_error,
    bayes_test,
    best_vertex,
    bmp_from_mp,
    bounds_from_node_dp,
    closest_coupling,
    constant,
    errors_of,
    exact_bounds,
    exact_differential,
    extremal_mechanism,
    flipped_bits,
    from_ratio,
    largest_advantage,
    mp_from_bmp,
    node_laws,
    post_process,
    posterior_interval,
    prior_bounds,
    publish,
    smallest_bayes_error,
    smallest_deltas,
    to_ratio,
)
from lethe_lib.bmp.delta import DeltaRegion
from lethe_lib.bmp.examples import correlated_pair, fixed_size, independent, single, snowball_on_kite
from lethe_lib.errors import InputError

F = Fraction
Q = F(1, 4)

KITE_LAW = {
    frozenset({0, 1}): F(1, 10),
    frozenset({0, 1, 2}): F(7, 30),
    frozenset({0, 2}): F(1, 15),
    frozenset({0, 2, 3}): F(1, 15),
    frozenset({1, 2}): F(1, 15),
    frozenset({1, 2, 3}): F(1, 15),
    frozenset({2, 3}): F(1, 15),
    frozenset({2, 3, 4}): F(2, 15),
    frozenset({3, 4}): F(1, 5),
}
# node: prior, largest and smallest posterior odds, alpha*, beta*, area, Bayes error, largest advantage
KITE_TABLE = {
    0: "7/15 342/25 2/93 15875/254048 2561/111146 1626235/1778336 209/960 16159/28672",
    1: "7/15 342/25 2/93 15875/254048 2561/111146 1626235/1778336 209/960 16159/28672",
    2: "7/10 131/9 433/1467 299/2092 4763/43932 16445/21966 289/1280 1/2",
    3: "8/15 468/7 16/351 674/41039 1610/41039 38755/41039 1517/7680 1079/1792",
    4: "1/3 891/59 1/133 7729/236888 1723/118444 225713/236888 7/40 6261/10240",
}


@st.composite
def laws(draw, positive_outputs=True):
    """A rational sampler law over 2 or 3 nodes with proper priors, and a channel as a table."""
    nodes = draw(st.integers(2, 3))
    samples = [frozenset(c) for size in range(nodes + 1) for c in combinations(range(nodes), size)]
    weights = draw(st.lists(st.integers(0, 6), min_size=len(samples), max_size=len(samples)))
    # The empty and the full sample are always possible, so that no prior is 0 or 1.
    weights = [w + (sample in (samples[0], samples[-1])) for w, sample in zip(weights, samples)]
    law = {sample: F(w, sum(weights)) for sample, w in zip(samples, weights) if w}
    outputs = draw(st.integers(2, 4))
    table = {}
    for sample in samples:
        w = draw(st.lists(st.integers(1 if positive_outputs else 0, 9), min_size=outputs, max_size=outputs))
        w[0] += not any(w)
        table[sample] = {k: F(value, sum(w)) for k, value in enumerate(w)}
    return law, table


# --- exact cases -----------------------------------------------------------------------------------------------------


def test_one_node():
    law, channel = single(F(1, 5)), flipped_bits([0], Q)
    bounds = exact_bounds(law, channel)
    (node,) = bounds.exact
    assert (node.lower, node.upper, node.prior_odds) == (F(1, 3), 3, F(1, 4))
    assert node.interval("odds") == (F(1, 12), F(3, 4))
    odds = bounds.parameters("odds")
    assert odds.right == pytest.approx(-0.287682072452, abs=1e-12)
    assert odds.left == pytest.approx(2.484906649788, abs=1e-12)
    assert np.allclose(bounds.parameters("ratio"), 1.098612288668, rtol=0, atol=1e-12)
    assert best_vertex(node.lower, node.upper) == (Q, Q)
    laws = node_laws(law, channel, 0)
    assert bayes_error(laws) == F(1, 5)
    assert largest_advantage(laws) == F(1, 2)
    assert not any(bayes_test(laws).values())  # eps_right < 0: the best test never says "member"
    assert posterior_interval(*bounds.parameters("odds"))[1] < 0.5


def test_second_flip_of_one_bit():
    channel = flipped_bits([0], Q)
    twice = lambda sample: {  # noqa: E731
        (a, b): p * q for a, p in channel(sample).items() for b, q in channel(sample).items()
    }
    assert exact_bounds(single(F(1, 5)), twice).exact[0].interval("odds") == (F(1, 36), F(9, 4))


def test_correlated_pair_against_independent_pair():
    channel = flipped_bits([0, 1], Q)
    bounds = exact_bounds(correlated_pair(), channel)
    for node in bounds.exact:
        assert node.interval("odds") == node.interval("ratio") == (F(7, 39), F(39, 7))
    assert np.allclose(bounds.mp, 1.717651497074, rtol=0, atol=1e-12)
    for node in exact_differential(correlated_pair(), channel):
        assert node.ratio == (F(1, 3), 3)
        assert node.odds == (F(1, 12), 12)
        assert (node.open_contexts, node.decided_contexts, node.reason) == (2, 0, "")
    apart = independent([F(1, 2)] * 2)
    assert [node.interval("odds") for node in exact_bounds(apart, channel).exact] == [(F(1, 3), 3)] * 2
    # Membership differential privacy carries over to membership privacy without dependence, and not with it.
    assert all(node.ratio == (F(1, 3), 3) for node in exact_differential(apart, channel))
    for law in (correlated_pair(), apart):
        assert largest_advantage(node_laws(law, channel, 0)) == F(1, 2)


def test_snowball_law_of_the_examples():
    assert snowball_on_kite() == KITE_LAW


@pytest.mark.parametrize("node", KITE_TABLE)
def test_snowball_on_the_kite(node):
    expected = [F(word) for word in KITE_TABLE[node].split()]
    channel = flipped_bits(range(5), Q)
    exact = exact_bounds(KITE_LAW, channel).exact[node]
    laws = node_laws(KITE_LAW, channel, node)
    low, high = exact.interval("odds")
    alpha, beta = best_vertex(exact.lower, exact.upper)
    found = [exact.prior, high, low, alpha, beta, 1 - alpha - beta, bayes_error(laws), largest_advantage(laws)]
    assert found == expected


def test_infinite_bounds_say_why():
    exact = exact_bounds(single(F(1, 3)), publish(len)).exact[0]
    assert (exact.lower, exact.upper) == (0, inf)
    assert exact.reason == "output 1 proves membership; output 0 proves absence"
    bounds = exact_bounds(single(F(1, 3)), publish(len))
    assert bounds.parameters("odds").left[0] == bounds.parameters("ratio").right[0] == inf
    assert bounds.mp[0] == inf


def test_degenerate_nodes_are_reported_apart():
    law = {frozenset({0, 1}): F(1, 2), frozenset({1}): F(1, 2)}
    bounds = exact_bounds(law, constant, nodes=[0, 1, 2])
    assert bounds.nodes == (0,)
    assert bounds.degenerate == {1: "prior 1: always sampled", 2: "prior 0: never sampled"}
    with pytest.raises(InputError, match="node 1 has prior 1: it is always sampled"):
        node_laws(law, constant, 1)


def test_fixed_size_makes_the_differential_version_infinite():
    law = fixed_size(4, 2)
    for node in exact_differential(law, flipped_bits(range(4), Q)):
        assert node.odds == (0, inf)
        assert node.open_contexts == 0 and node.decided_contexts == 6
        assert "MDP is empty" in node.reason and "BMDP is infinite: 6 contexts" in node.reason
    # Where every context decides, MDP is an empty condition: it even allows to publish the sample itself.
    revealed = publish(lambda sample: tuple(sorted(sample)))
    assert all(node.ratio == (1, 1) for node in exact_differential(law, revealed))
    assert all(exact_bounds(law, revealed).mp == inf)


def test_independent_membership_has_finite_differential_bounds():
    for node in exact_differential(independent([F(1, 5), F(2, 3)]), flipped_bits([0, 1], Q)):
        assert node.decided_contexts == 0
        assert node.ratio == (F(1, 3), 3)


# --- Bounds, conversions, prior bounds -------------------------------------------------------------------------------


def test_worst_node_can_differ_between_the_forms():
    bounds = Bounds([0.5, 0.25], [4.0, 2.0], [0.1, 0.9])
    assert bounds.worst("ratio").right == pytest.approx(log(4))
    assert bounds.worst("odds").right == pytest.approx(log(18))
    assert bounds.bmp_left("ratio") == pytest.approx([log(2), log(4)])
    assert bounds.bmp_right("odds") == pytest.approx([log(4 / 9), log(18)])


def test_bounds_frame_and_round_trip():
    bounds = exact_bounds(KITE_LAW, flipped_bits(range(5), Q))
    frame = bounds.frame()
    gap = frame["eps_right (odds)"] - frame["eps_right (ratio)"]
    assert np.allclose(gap, bounds.log_prior_odds, rtol=0, atol=1e-12)
    assert np.allclose(frame["eps_left (ratio)"] - frame["eps_left (odds)"], bounds.log_prior_odds, rtol=0, atol=1e-12)
    for form in ("ratio", "odds"):
        again = Bounds.from_parameters(*bounds.parameters(form), bounds.prior, form)
        assert np.allclose(again.lower, bounds.lower, rtol=1e-12)
        assert np.allclose(again.upper, bounds.upper, rtol=1e-12)


def test_perfect_training_attains_the_prior_bounds():
    bounds = exact_bounds(KITE_LAW, constant)
    assert np.allclose(bounds.parameters("odds"), prior_bounds(bounds.prior), rtol=0, atol=1e-12)
    assert np.array_equal(bounds.parameters("ratio"), np.zeros((2, 5)))
    left, right = bounds.worst("odds")
    # log odds of the priors: 7/3 for node 2 at most, 1/2 for node 4 at least.
    assert left + right == pytest.approx(log(7 / 3) - log(1 / 2), abs=1e-12)


def test_mp_is_bmp_with_equal_excess():
    priors = np.array([0.1, 0.5, 0.8])
    odds = bmp_from_mp(1.5, priors)
    assert np.allclose(mp_from_bmp(*odds, priors, "odds"), 1.5)
    assert np.allclose(odds.right - odds.left, 2 * np.log(priors / (1 - priors)))


def test_smallest_bayes_error_never_exceeds_the_exact_one():
    channel = flipped_bits(range(5), Q)
    bounds = exact_bounds(KITE_LAW, channel)
    bound = smallest_bayes_error(*bounds.parameters("odds"), bounds.prior, "odds")
    exact = [float(bayes_error(node_laws(KITE_LAW, channel, node))) for node in range(5)]
    assert np.all(bound <= np.array(exact) + 1e-12)


@given(st.fractions(F(1, 50), F(49, 50)), st.fractions(F(51, 50), F(50)), st.fractions(F(1, 50), F(49, 50)))
def test_extremal_mechanism_attains_the_bounds(lower, upper, prior):
    inside, outside = extremal_mechanism(lower, upper)
    law, channel = single(prior), {frozenset({0}): inside, frozenset(): outside}
    exact = exact_bounds(law, channel).exact[0]
    assert (exact.lower, exact.upper) == (lower, upper)
    laws = node_laws(law, channel, 0)
    alpha, beta = best_vertex(lower, upper)
    assert largest_advantage(laws) == 1 - alpha - beta == (upper - 1) * (1 - lower) / (upper - lower)
    error = bayes_error(laws)
    assert error == min(prior, 1 - prior, (1 - prior) * alpha + prior * beta)
    parameters = Bounds([lower], [upper], [prior]).parameters("odds")
    assert smallest_bayes_error(*parameters, float(prior), "odds") == pytest.approx(float(error), abs=1e-12)
    # Its output has the two posteriors at the ends of the interval, with the stated probability.
    p_minus, p_plus = posterior_interval(*parameters)
    marginal = float(prior * inside[1] + (1 - prior) * outside[1])
    assert marginal == pytest.approx(((float(prior) - p_minus) / (p_plus - p_minus))[0], abs=1e-9)


# --- properties over random laws -------------------------------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(laws())
def test_the_forms_differ_by_the_log_prior_odds(case):
    bounds = exact_bounds(*case)
    ratio, odds = bounds.parameters("ratio"), bounds.parameters("odds")
    assert np.allclose(odds.right - ratio.right, bounds.log_prior_odds, rtol=0, atol=1e-12)
    assert np.allclose(ratio.left - odds.left, bounds.log_prior_odds, rtol=0, atol=1e-12)
    for node in bounds.exact:
        low, high = node.interval("odds")
        assert (low / node.lower, high / node.upper) == (node.prior_odds, node.prior_odds)


@settings(max_examples=60, deadline=None)
@given(laws())
def test_prior_bounds_hold(case):
    bounds = exact_bounds(*case)
    assert all(node.lower <= 1 <= node.upper for node in bounds.exact)
    left, right = prior_bounds(bounds.prior)
    found = bounds.parameters("odds")
    assert np.all(found.left >= left - 1e-12) and np.all(found.right >= right - 1e-12)


@settings(max_examples=60, deadline=None)
@given(laws(), st.lists(st.integers(0, 5), min_size=4, max_size=4))
def test_post_processing_never_increases(case, weights):
    law, table = case
    noisy = lambda w: {0: F(weights[w], 5), 1: 1 - F(weights[w], 5)}  # noqa: E731
    for before, after in zip(exact_bounds(law, table).exact, exact_bounds(law, post_process(table, noisy)).exact):
        assert before.lower <= after.lower and after.upper <= before.upper


@settings(max_examples=60, deadline=None)
@given(laws())
def test_advantage_is_at_most_the_area_and_bayes_error_at_least_its_bound(case):
    law, table = case
    for node in exact_bounds(law, table).exact:
        laws_of_node = node_laws(law, table, node.node)
        advantage, error = largest_advantage(laws_of_node), bayes_error(laws_of_node)
        if node.lower == 1:
            assert advantage == 0 and error == min(node.prior, 1 - node.prior)
            continue
        alpha, beta = best_vertex(node.lower, node.upper)
        assert advantage <= 1 - alpha - beta
        assert error >= min(node.prior, 1 - node.prior, (1 - node.prior) * alpha + node.prior * beta)


@settings(max_examples=60, deadline=None)
@given(laws())
def test_bayes_test_beats_every_deterministic_test(case):
    law, table = case
    laws_of_node = node_laws(law, table, 0)
    outputs = list(laws_of_node.ratios())
    errors = []
    for mask in range(2 ** len(outputs)):
        alpha, beta = errors_of(laws_of_node, {w: bool(mask >> k & 1) for k, w in enumerate(outputs)})
        errors.append((1 - laws_of_node.prior) * alpha + laws_of_node.prior * beta)
    assert bayes_error(laws_of_node) == min(errors)


@settings(max_examples=60, deadline=None)
@given(laws(positive_outputs=False))
def test_differential_version_implies_bmp_in_odds_form(case):
    for marginal, differential in zip(exact_bounds(*case).exact, exact_differential(*case)):
        low, high = marginal.interval("odds")
        assert differential.odds[0] <= low and high <= differential.odds[1]


@settings(max_examples=40, deadline=None)
@given(laws(), st.lists(st.fractions(F(1, 9), F(8, 9), max_denominator=9), min_size=3, max_size=3))
def test_mdp_implies_mp_for_independent_membership(case, priors):
    _, table = case
    law = independent(priors[: max(map(len, table))])
    for marginal, differential in zip(exact_bounds(law, table).exact, exact_differential(law, table)):
        assert differential.ratio[0] <= marginal.lower and marginal.upper <= differential.ratio[1]


# --- couplings -------------------------------------------------------------------------------------------------------


def test_coupling_distance_of_known_samplers():
    assert closest_coupling(independent([F(1, 5), F(2, 3), F(1, 2)]), 1).distance == 1
    assert closest_coupling(fixed_size(4, 2), 3).distance == 2
    assert closest_coupling(correlated_pair(), 0).distance == 2
    disjoint = {frozenset({0, 1, 2}): F(1, 2), frozenset({3, 4, 5}): F(1, 2)}
    assert closest_coupling(disjoint, 0).distance == 6  # twice the size of the sample


def test_coupling_plan_has_the_right_marginals():
    for node in range(5):
        coupling = closest_coupling(KITE_LAW, node)
        prior = sum(p for sample, p in KITE_LAW.items() if node in sample)
        for side, member in ((0, True), (1, False)):
            expected = {s: p / (prior if member else 1 - prior) for s, p in KITE_LAW.items() if (node in s) == member}
            found = dict.fromkeys(expected, F(0))
            for pair, p in coupling.plan.items():
                found[pair[side]] += p
            assert found == expected
        assert max(len(a ^ b) for a, b in coupling.plan) == coupling.distance


@settings(max_examples=25, deadline=None)
@given(laws())
def test_coupling_distance_agrees_with_hall_condition(case):
    """Independent oracle: by Strassen's theorem k works iff every set of samples has enough neighbours within k."""
    law, _ = case
    prior = sum(p for sample, p in law.items() if 0 in sample)
    inside = {s: p / prior for s, p in law.items() if 0 in s}
    outside = {s: p / (1 - prior) for s, p in law.items() if 0 not in s}
    subsets = [c for size in range(1, len(inside) + 1) for c in combinations(inside, size)]

    def works(k):
        near = lambda group: {s for s in outside if any(len(s ^ one) <= k for one in group)}  # noqa: E731
        return all(sum(inside[s] for s in group) <= sum(outside[s] for s in near(group)) for group in subsets)

    assert closest_coupling(law, 0).distance == next(k for k in range(1, 9) if works(k))


@pytest.mark.parametrize("law", [KITE_LAW, correlated_pair(), fixed_size(4, 2), independent([F(1, 3), F(1, 2)])])
def test_node_dp_bounds_contain_the_truth(law):
    nodes = sorted(set().union(*law))
    promised = bounds_from_node_dp(law, log(3))  # each flipped bit has eps = log((1 - q)/q) = log 3
    exact = exact_bounds(law, flipped_bits(nodes, Q))
    assert np.all(promised.upper >= exact.upper * (1 - 1e-12))
    assert np.all(promised.lower <= exact.lower * (1 + 1e-12))


# --- the delta variant -----------------------------------------------------------------------------------------------


@settings(max_examples=40, deadline=None)
@given(laws(), st.fractions(F(1, 4), F(3)), st.fractions(F(1, 4), F(3)), st.sampled_from(["ratio", "odds"]))
def test_smallest_deltas_are_the_worst_event(case, left, right, form):
    law, table = case
    laws_of_node = node_laws(law, table, 0)
    weight, rest = (laws_of_node.prior, 1 - laws_of_node.prior) if form == "odds" else (1, 1)
    outputs = list(laws_of_node.ratios())
    worst_left = worst_right = F(0)
    region = DeltaRegion(
        log(left),
        log(right),
        *map(float, smallest_deltas(laws_of_node, left, right, form)),
        float(laws_of_node.prior),
        form,
    )
    for mask in range(2 ** len(outputs)):
        event = [w for k, w in enumerate(outputs) if mask >> k & 1]
        member = weight * sum(laws_of_node.inside.get(w, 0) for w in event)
        absent = rest * sum(laws_of_node.outside.get(w, 0) for w in event)
        worst_right = max(worst_right, member - right * absent)
        worst_left = max(worst_left, absent - left * member)
        errors = errors_of(laws_of_node, {w: w in event for w in outputs})
        assert region.contains(*map(float, errors), tolerance=1e-12)
    assert smallest_deltas(laws_of_node, left, right, form) == (worst_left, worst_right)


@settings(max_examples=30, deadline=None)
@given(laws(), st.sampled_from(["ratio", "odds"]))
def test_deltas_vanish_exactly_at_the_parameters(case, form):
    law, table = case
    node, laws_of_node = exact_bounds(law, table).exact[0], node_laws(law, table, 0)
    low, high = node.interval(form)
    assert smallest_deltas(laws_of_node, 1 / low, high, form) == (0, 0)
    if node.lower < 1:
        left, right = smallest_deltas(laws_of_node, 1 / low * F(99, 100), high * F(99, 100), form)
        assert left > 0 and right > 0


# --- bad input -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("law", "message"),
    [
        ({frozenset({0}): F(1, 2)}, "sum to 1/2, not to 1"),
        ({frozenset({0}): F(3, 2), frozenset(): F(-1, 2)}, r"probability of frozenset\(\) is negative"),
        ({frozenset({0}): 0.5, frozenset(): 0.5}, "give a Fraction, not a float"),
        ({"01": F(1)}, "'01' is not a set of nodes"),
    ],
)
def test_bad_sample_laws(law, message):
    with pytest.raises(InputError, match=message):
        exact_bounds(law, constant)


def test_bad_output_laws():
    law = single(F(1, 2))
    with pytest.raises(InputError, match=r"the output law of sample \[\]: the probabilities sum to 2/3"):
        exact_bounds(law, lambda sample: {0: F(2, 3) if not sample else F(1)})
    with pytest.raises(InputError, match="negative"):
        exact_bounds(law, lambda sample: {0: F(2), 1: F(-1)})
    with pytest.raises(InputError, match=r"no entry for the sample \[0\]"):
        exact_bounds(law, {frozenset(): {0: F(1)}})
    with pytest.raises(InputError, match="flip probability"):
        flipped_bits([0], F(1))
    with pytest.raises(InputError, match="not listed"):
        exact_bounds(law, constant, nodes=[1])


def test_bad_priors_and_parameters():
    for prior in (0.0, 1.0, -0.1, float("nan")):
        with pytest.raises(InputError, match="strictly between 0 and 1"):
            prior_bounds([0.5, prior])
    with pytest.raises(InputError, match=r"eps_right = 0.5 is below the prior bound log\(prior odds\) = 1.38629"):
        to_ratio(3.0, 0.5, 0.8, "odds")
    with pytest.raises(InputError, match=r"eps_left = 1 is below the prior bound -log\(prior odds\) = 1.38629"):
        to_ratio(1.0, 0.5, 0.2, "odds")
    with pytest.raises(InputError, match="eps_left = -0.1 is below the prior bound of the ratio form = 0"):
        to_ratio(-0.1, 0.5)
    with pytest.raises(InputError, match="eps_left = nan"):
        to_ratio(float("nan"), 0.5)
    for convert in (to_ratio, from_ratio):
        with pytest.raises(InputError, match="needs the prior"):
            convert(1.0, 1.0, None, "odds")
    with pytest.raises(InputError, match="unknown form 'log'"):
        to_ratio(1.0, 1.0, 0.5, "log")
    with pytest.raises(InputError, match="lower <= 1 <= upper"):
        Bounds([1.2], [2.0], [0.5])
    with pytest.raises(InputError, match="one entry per node"):
        Bounds([0.5, 0.5], [2.0], [0.5])
    with pytest.raises(InputError, match="best vertex"):
        best_vertex(F(1), F(1))
    with pytest.raises(InputError, match="nothing to couple"):
        closest_coupling({frozenset({0}): F(1)}, 0)
    with pytest.raises(InputError, match="eps must be at least 0"):
        bounds_from_node_dp(single(F(1, 2)), -1.0)
    with pytest.raises(InputError, match="between 0 and 3"):
        fixed_size(3, 3)
    with pytest.raises(InputError, match="delta must be at least 0"):
        DeltaRegion(1.0, 1.0, -0.1, 0.0, 0.5, "odds")
    with pytest.raises(InputError, match="eps must be finite"):
        DeltaRegion(1.0, np.inf, 0.0, 0.0, 0.5, "odds")
    with pytest.raises(InputError, match="eps_left . eps_right = -6 is below 0"):
        posterior_interval([1.0, -3.0], [-1.0, -3.0])
