"""Paired tests and rankings: hand-computed cases, SciPy as an oracle, and the benchmark's own number."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from lethe_lib.errors import InputError
from lethe_lib.evaluation import cluster_bootstrap, holm, rank_methods, sign_test, signed_rank


def test_the_benchmark_s_pooled_test_says_that_every_difference_is_positive():
    """W = 9591 = 138 * 139 / 2, and p < 1e-23 is the normal approximation; the exact p-value is 2^-138."""
    found = signed_rank(np.linspace(0.01, 0.6, 138), "greater")
    assert (found.count, found.statistic, found.effect) == (138, 9591.0, 1.0)
    assert found.p_normal == pytest.approx(1.08e-24, rel=0.01)
    assert signed_rank(np.linspace(0.01, 0.6, 138)).p_normal == pytest.approx(2.16e-24, rel=0.01)
    assert found.p_exact == pytest.approx(2.0**-138, rel=1e-9)
    one_negative = np.linspace(0.01, 0.6, 138)
    one_negative[0] *= -1
    assert signed_rank(one_negative, "greater").statistic == 9590.0


def test_signed_rank_by_hand():
    found = signed_rank([1.0, -2.0, 3.0, 0.0, 4.0], "greater")  # ranks 1, 2, 3, 4; the zero is left out
    assert (found.count, found.statistic) == (4, 8.0)
    assert found.effect == pytest.approx((8 - 2) / 10)
    assert found.p_exact == pytest.approx(3 / 16)  # sums of at least 8: {4,3,2,1}, {4,3,2}, {4,3,1}
    tied = signed_rank([1.0, 1.0, -1.0], "greater")  # all ranks 2: two or three signs up out of eight
    assert (tied.statistic, tied.p_exact) == (4.0, pytest.approx(4 / 8))


@given(st.lists(st.integers(-50, 50).filter(bool), min_size=1, max_size=12), st.sampled_from(["greater", "less"]))
@settings(deadline=None)
def test_exact_p_values_equal_an_enumeration_of_the_signs(values, alternative):
    ranks = stats.rankdata(np.abs(values))
    signs = (np.arange(2 ** len(values))[:, None] >> np.arange(len(values))) & 1
    sums, observed = signs @ ranks, ranks[np.array(values) > 0].sum()
    share = np.mean(sums >= observed - 1e-9) if alternative == "greater" else np.mean(sums <= observed + 1e-9)
    assert signed_rank(values, alternative).p_exact == pytest.approx(share)


@given(st.lists(st.floats(-5, 5).filter(lambda x: abs(x) > 1e-6), min_size=5, max_size=60, unique_by=abs))
@settings(deadline=None)
def test_normal_p_values_equal_scipy(values):
    for alternative in ("greater", "less", "two-sided"):
        oracle = stats.wilcoxon(values, alternative=alternative, method="approx", correction=False)
        assert signed_rank(values, alternative).p_normal == pytest.approx(oracle.pvalue)


@given(st.lists(st.integers(-9, 9), min_size=1, max_size=30).filter(any))
@settings(deadline=None)
def test_turning_the_differences_round_turns_the_test_round(values):
    up, down = signed_rank(values, "greater"), signed_rank([-value for value in values], "less")
    assert up.p_exact == pytest.approx(down.p_exact) and up.effect == pytest.approx(-down.effect)
    assert -1.0 <= up.effect <= 1.0 and 0.0 < up.p_exact <= 1.0 + 1e-12


def test_sign_test_and_holm_by_hand():
    assert sign_test([1, 2, 3, 4, -1, 0], "greater") == (4, 5, pytest.approx(6 / 32))
    assert holm([0.01, 0.04, 0.03, 0.005]).tolist() == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.9, 0.8]).tolist() == [1.0, 1.0]


@given(st.lists(st.floats(0, 1), min_size=1, max_size=10))
def test_holm_lies_between_the_raw_and_the_bonferroni_p_values_and_keeps_their_order(p):
    adjusted = holm(p)
    assert (adjusted >= np.array(p) - 1e-12).all() and (adjusted <= np.minimum(1, len(p) * np.array(p)) + 1e-12).all()
    order = np.argsort(p)
    assert (np.diff(adjusted[order]) >= 0).all()


def test_cluster_bootstrap_counts_clusters_and_not_cells():
    """A hundred copies of each graph's value say no more than the value itself; cells drawn one by one would."""
    values, names = [0.0, 1.0, 5.0], ["a", "b", "c"]
    once, often = cluster_bootstrap(values, names), cluster_bootstrap(np.repeat(values, 100), np.repeat(names, 100))
    assert once == often and once[0] == pytest.approx(2.0)
    means = [np.mean(draw) for draw in np.array(np.meshgrid(values, values, values)).reshape(3, -1).T]
    assert once[1:] == pytest.approx(np.quantile(means, [0.025, 0.975], method="inverted_cdf"), abs=0.02)


def test_ranking_by_hand_and_critical_difference_of_the_literature():
    """Demšar (2006), table 5: q_0.05 = 3.164 for ten methods, so CD = 3.164 sqrt(10 * 11 / (6 * 12)) for twelve settings."""
    ten = pd.DataFrame(np.tile(np.arange(10.0), (12, 1)), columns=list("abcdefghij"))
    found = rank_methods(ten)
    assert found.critical_difference == pytest.approx(3.164 * np.sqrt(110 / 72), abs=2e-3)
    assert found.mean_ranks.tolist() == list(range(1, 11)) and found.settings == 12
    assert found.groups == tuple((name, chr(ord(name) + 3)) for name in "abcdefg")  # CD 3.9: ranks up to 3 apart
    assert found.p_value < 1e-15


def test_ties_share_ranks_and_friedman_equals_scipy():
    table = pd.DataFrame({"a": [1.0, 2.0, 1.0, 4.0], "b": [1.0, 1.0, 2.0, 5.0], "c": [3.0, 3.0, 3.0, 3.0]})
    found = rank_methods(table)
    assert found.mean_ranks.to_dict() == {"a": (1.5 + 2 + 1 + 2) / 4, "b": (1.5 + 1 + 2 + 3) / 4, "c": 2.5}
    assert found.p_value == pytest.approx(stats.friedmanchisquare(table["a"], table["b"], table["c"]).pvalue)
    assert found.groups == (("a", "c"),)


def test_what_is_tied_everywhere_is_not_told_apart():
    found = signed_rank([0.0, 0.0])
    assert (found.count, found.statistic, found.effect, found.p_normal, found.p_exact) == (0, 0.0, 0.0, 1.0, 1.0)
    ranking = rank_methods(pd.DataFrame({name: [1.0, 2.0, 3.0] for name in "abc"}))
    assert ranking.p_value == 1.0 and ranking.mean_ranks.tolist() == [2.0] * 3 and ranking.groups == (("a", "c"),)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: signed_rank([]), "at least one"),
        (lambda: signed_rank([1.0, np.nan]), "finite"),
        (lambda: signed_rank([1.0], "up"), "alternative"),
        (lambda: sign_test([0.0]), "no sign"),
        (lambda: cluster_bootstrap([1.0, 2.0], ["a", "a"]), "two different"),
        (lambda: rank_methods(pd.DataFrame({"a": [1.0, 2.0], "b": [1.0, 2.0]})), "two and three"),
        (lambda: rank_methods(pd.DataFrame({"a": [1.0, np.nan], "b": [1.0, 2.0], "c": [1.0, 2.0]})), "incomplete"),
    ],
)
def test_what_cannot_be_tested_is_refused(call, message):
    with pytest.raises(InputError, match=message):
        call()
