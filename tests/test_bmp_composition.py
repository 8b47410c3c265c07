"""Composition: exact cases, closed formulas against enumeration, and bounds over random laws."""

from fractions import Fraction
from itertools import product
from math import inf, log

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_bmp_exact import laws

from lethe_lib.bmp import (
    TARGETS,
    bmp_then_mp,
    chain,
    compose_rounds,
    conditional_ratio,
    exact_bounds,
    exact_rounds,
    flipped_bits,
    independent_releases,
    node_laws,
    publish,
)
from lethe_lib.bmp.examples import exclusive_or, independent, single
from lethe_lib.errors import InputError

F = Fraction
ONE_NODE = node_laws(single(F(1, 5)), flipped_bits([0], F(1, 4)), 0)
PRIOR = st.floats(0.05, 0.95)


def test_two_rounds_of_one_node():
    assert sorted(exact_rounds([ONE_NODE] * 2, "some round").values()) == [F(25, 144), F(43, 48), F(43, 48), F(33, 16)]
    assert sorted(exact_rounds([ONE_NODE] * 2, "all rounds").values()) == [F(1, 168), F(3, 88), F(3, 88), F(9, 40)]
    against = sorted(exact_rounds([ONE_NODE] * 2, "all against none").values())
    assert against == [F(1, 144), F(1, 16), F(1, 16), F(9, 16)]
    assert TARGETS["some round"].odds([F(1, 4)] * 2) == F(9, 16)
    assert TARGETS["all rounds"].odds([F(1, 4)] * 2) == F(1, 24)


def test_parameters_of_two_rounds_of_one_node():
    odds = [log(12)] * 2, [log(3 / 4)] * 2
    left, right = compose_rounds(*odds, "some round")
    assert right == pytest.approx(0.723918839227, abs=1e-12) and left == pytest.approx(1.750937474708, abs=1e-12)
    assert np.allclose(compose_rounds(*odds, "all rounds"), (log(168), log(9 / 40)), rtol=0, atol=1e-12)
    assert np.allclose(compose_rounds(*odds, "all against none"), (2 * log(12), 2 * log(3 / 4)), rtol=0, atol=1e-12)
    ratio = compose_rounds([log(3)] * 2, [log(3)] * 2, "some round", "ratio", priors=[1 / 5] * 2)
    assert np.allclose(ratio, (log(81 / 25), log(11 / 3)), rtol=0, atol=1e-12)


def test_second_flip_counts_the_prior_once():
    odds = independent_releases([log(12)] * 2, [log(3 / 4)] * 2, prior=1 / 5, form="odds")
    assert np.allclose(odds, (log(36), log(9 / 4)), rtol=0, atol=1e-12)
    # Adding the parameters as they are would promise less than what two flips reveal.
    assert 2 * log(3 / 4) < log(9 / 4)


def test_exclusive_or_reveals_what_each_release_hides():
    instance = exclusive_or()
    assert exact_bounds(instance.law, instance.channel).exact[0].interval("odds") == (1, 1)
    second = publish(lambda sample: 1 in sample)
    assert exact_bounds(instance.law, second).exact[0].interval("ratio") == (1, 1)
    both = exact_bounds(instance.law, chain(instance.channel, instance.second)).exact[0]
    assert (both.lower, both.upper) == (0, inf)
    assert "proves membership" in both.reason and "proves absence" in both.reason
    assert conditional_ratio(instance.law, instance.channel, instance.second, 0) == (0, inf)


@st.composite
def adaptive_channels(draw):
    """A second release as a table over (sample, first output)."""
    flips = draw(st.lists(st.fractions(F(1, 9), F(8, 9), max_denominator=9), min_size=32, max_size=32))
    return lambda sample, w1: {
        0: flips[sum(2**node for node in sample) * 4 + w1],
        1: 1 - flips[sum(2**node for node in sample) * 4 + w1],
    }


@settings(max_examples=40, deadline=None)
@given(laws(), adaptive_channels())
def test_bmp_then_conditional_mp_adds(case, second):
    law, first = case
    joint = exact_bounds(law, chain(first, second))
    for one, both in zip(exact_bounds(law, first).exact, joint.exact):
        mp_low, mp_high = conditional_ratio(law, first, second, one.node)
        for form in ("ratio", "odds"):
            low, high = one.interval(form)
            assert low * mp_low <= both.interval(form)[0] and both.interval(form)[1] <= high * mp_high
            added = bmp_then_mp(
                -np.log(float(low)), np.log(float(high)), -np.log(float(mp_low)), np.log(float(mp_high))
            )
            k = joint.nodes.index(one.node)
            assert joint.parameters(form).left[k] <= added.left + 1e-12
            assert joint.parameters(form).right[k] <= added.right + 1e-12


def test_bmp_then_mp_is_attained():
    """Independent membership and two flips of the same bit: the sums are exact."""
    law, flip = independent([F(1, 3), F(1, 2)]), flipped_bits([0, 1], F(1, 4))
    joint = exact_bounds(law, chain(flip, lambda sample, _: flip(sample)))
    one = exact_bounds(law, flip)
    low, high = conditional_ratio(law, flip, lambda sample, _: flip(sample), 0)
    added = bmp_then_mp(one.parameters("odds").left[0], one.parameters("odds").right[0], -log(low), log(high))
    assert np.allclose(added, [side[0] for side in joint.parameters("odds")], rtol=0, atol=1e-12)


def test_independent_noise_is_not_enough():
    """The exclusive-or example with noise in both releases: each says nothing about node 0, both together do."""
    law = independent([F(1, 2)] * 2)
    parity = lambda sample: {len(sample) % 2: F(3, 4), 1 - len(sample) % 2: F(1, 4)}  # noqa: E731
    second = flipped_bits([1], F(1, 4))
    assert exact_bounds(law, parity).exact[0].interval("ratio") == (1, 1)
    assert exact_bounds(law, second).exact[0].interval("ratio") == (1, 1)
    both = exact_bounds(law, chain(parity, lambda sample, _: second(sample))).exact[0]
    # Given parity and bit, the odds of M_0 = 1: (3/4 3/4 + 1/4 1/4) / (2 3/4 1/4) = 5/3.
    assert both.interval("ratio") == (F(3, 5), F(5, 3))


@settings(max_examples=30, deadline=None)
@given(laws(), laws(), st.sampled_from(list(TARGETS)))
def test_round_formulas_are_tight(one, other, target):
    """Different samplers and channels in the two rounds: formula = enumeration, in both forms."""
    rounds = [node_laws(*one, 0), node_laws(*other, 1)]
    bounds = [exact_bounds(*one), exact_bounds(*other)]
    parameters = {
        form: [[b.parameters(form)[side][k] for b, k in zip(bounds, (0, 1))] for side in (0, 1)]
        for form in ("ratio", "odds")
    }
    priors = [float(laws_of_node.prior) for laws_of_node in rounds]
    odds = [float(o) for o in exact_rounds(rounds, target).values()]
    exact = (-log(min(odds)), log(max(odds)))
    assert np.allclose(compose_rounds(*parameters["odds"], target, "odds", priors), exact, rtol=0, atol=1e-9)
    prior_log_odds = log(TARGETS[target].odds([laws_of_node.prior_odds for laws_of_node in rounds]))
    ratio = compose_rounds(*parameters["ratio"], target, "ratio", priors)
    assert np.allclose(ratio, (exact[0] + prior_log_odds, exact[1] - prior_log_odds), rtol=0, atol=1e-9)
    assert ratio.left <= sum(parameters["ratio"][0]) + 1e-9 and ratio.right <= sum(parameters["ratio"][1]) + 1e-9


@given(
    st.lists(st.tuples(st.floats(0, 5), st.floats(0, 5), PRIOR), min_size=2, max_size=6), st.sampled_from(list(TARGETS))
)
def test_both_forms_compose_alike(rounds, target):
    left, right, priors = (np.array(column) for column in zip(*rounds))
    shift = np.log(priors / (1 - priors))
    odds = compose_rounds(left - shift, right + shift, target, "odds", priors)
    ratio = compose_rounds(left, right, target, "ratio", priors)
    prior = TARGETS[target].log_odds(shift)
    assert np.allclose(odds, (ratio.left - prior, ratio.right + prior), rtol=0, atol=1e-9)


def test_exact_and_float_combinations_agree_and_survive_extremes():
    for target in TARGETS.values():
        for odds in product([F(1, 50), F(1), F(7, 3)], repeat=3):
            floats = target.log_odds(np.log(np.array(odds, dtype=float)))
            assert floats == pytest.approx(log(target.odds(odds)), abs=1e-12)
    assert TARGETS["some round"].odds([inf, F(1)]) == inf and TARGETS["some round"].odds([0, F(2)]) == 2
    assert TARGETS["all rounds"].odds([inf, F(2)]) == 2 and TARGETS["all rounds"].odds([0, F(2)]) == 0
    with np.errstate(over="raise", invalid="raise"):
        assert TARGETS["some round"].log_odds(np.array([900.0, 900.0])) == pytest.approx(1800)
        assert TARGETS["all rounds"].log_odds(np.array([-900.0, -900.0])) == pytest.approx(-1800)
    assert compose_rounds([inf, 1.0], [1.0, inf], "some round") == (
        pytest.approx(-log(np.expm1(np.log1p(np.exp(-1))))),
        inf,
    )


def test_composition_is_vectorised_over_nodes():
    rng = np.random.default_rng(0)
    left, right, priors = rng.random((3, 5)), rng.random((3, 5)), rng.uniform(0.1, 0.9, (3, 5))
    together = compose_rounds(left, right, "some round", "ratio", priors)
    for k in range(5):
        assert np.allclose(
            compose_rounds(left[:, k], right[:, k], "some round", "ratio", priors[:, k]),
            [side[k] for side in together],
        )


def test_bad_input():
    with pytest.raises(InputError, match="unknown target 'any'"):
        compose_rounds([1.0], [1.0], "any")
    with pytest.raises(InputError, match="give priors"):
        compose_rounds([1.0], [1.0], "some round", "ratio")
    with pytest.raises(InputError, match="prior bound"):
        compose_rounds([1.0, 1.0], [-3.0, 1.0], "some round", "odds", priors=[0.5, 0.5])
    with pytest.raises(InputError, match="prior bound"):
        bmp_then_mp(1.0, 1.0, -0.5, 0.5)
