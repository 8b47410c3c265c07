"""The AUC, its interval and paired differences, against scikit-learn, hand computation and simulation."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score

from lethe_lib.attacks import AttackResult, auc, auc_interval, paired_difference, placements
from lethe_lib.errors import InputError


def result(scores, labels, targets=None) -> AttackResult:
    scores, labels = np.asarray(scores, float), np.asarray(labels, bool)
    targets = np.arange(len(labels)) if targets is None else targets
    return AttackResult("test", "corrected", targets, scores, labels, "retained")


scored = st.lists(st.tuples(st.integers(-3, 3), st.booleans()), min_size=2, max_size=40).filter(
    lambda rows: len({label for _, label in rows}) == 2
)


@given(scored)
@settings(deadline=None)
def test_auc_equals_scikit_learn_ties_included(rows):
    scores, labels = map(np.array, zip(*rows, strict=True))
    assert auc(scores, labels) == pytest.approx(roc_auc_score(labels, scores), abs=1e-12)


@given(scored)
@settings(deadline=None)
def test_auc_of_negated_scores_is_one_minus_auc_and_both_placements_average_to_it(rows):
    scores, labels = map(np.array, zip(*rows, strict=True))
    assert auc(-scores, labels) == pytest.approx(1.0 - auc(scores, labels), abs=1e-12)
    positive, negative = placements(scores, labels)
    assert positive.mean() == pytest.approx(auc(scores, labels), abs=1e-12)
    assert negative.mean() == pytest.approx(auc(scores, labels), abs=1e-12)


def test_limits():
    assert auc([2.0, 1.0], [1, 0]) == 1.0
    assert auc([1.0, 2.0], [1, 0]) == 0.0
    assert auc([1.0, 1.0, 1.0], [1, 0, 0]) == 0.5
    assert auc([np.inf, 0.0, -np.inf], [1, 0, 0]) == 1.0


def test_placements_and_variance_by_hand():
    """Positives 3, 1 against negatives 2, 1: placements 1, 1/4 and 1/2, 3/4; variance .28125 / 2 + .03125 / 2."""
    scores, labels = np.array([3.0, 1.0, 2.0, 1.0]), np.array([1, 1, 0, 0])
    positive, negative = placements(scores, labels)
    assert positive.tolist() == [1.0, 0.25]
    assert negative.tolist() == [0.5, 0.75]
    low, high = auc_interval(scores, labels, level=0.5)
    half = 0.6744897501960817 * np.sqrt(0.28125 / 2 + 0.03125 / 2)
    assert (low, high) == pytest.approx((0.625 - half, 0.625 + half))


def test_interval_covers_the_true_auc_as_often_as_it_says():
    """Exponential against exponential of three times the scale: the true AUC is 3/4."""
    generator = np.random.default_rng(0)
    labels = np.repeat([True, False], [40, 60])
    covered = 0
    for _ in range(500):
        scores = generator.exponential(np.where(labels, 3.0, 1.0))
        low, high = auc_interval(scores, labels)
        covered += low <= 0.75 <= high
    assert 0.91 <= covered / 500 <= 0.98


def test_interval_with_a_single_positive_knows_nothing():
    assert auc_interval([3.0, 1.0, 2.0], [1, 0, 0]) == (0.0, 1.0)


def test_paired_difference_is_narrower_than_unpaired_and_signed():
    generator = np.random.default_rng(1)
    labels = np.repeat([True, False], 200)
    base = generator.normal(size=400) + labels
    first, second = result(base + 0.4 * labels, labels), result(base + 0.05 * generator.normal(size=400), labels)
    found = paired_difference(first, second)
    assert found.value == pytest.approx(first.auc - second.auc)
    assert found.interval[0] > 0.0
    unpaired = (first.interval[1] - first.interval[0]) ** 2 + (second.interval[1] - second.interval[0]) ** 2
    assert (found.interval[1] - found.interval[0]) ** 2 < 0.2 * unpaired
    back = paired_difference(second, first)
    assert back.value == pytest.approx(-found.value)
    assert back.interval == pytest.approx((-found.interval[1], -found.interval[0]))


def test_paired_difference_agrees_with_a_bootstrap():
    generator = np.random.default_rng(2)
    labels = np.repeat([True, False], [120, 80])
    a = generator.normal(size=200) + labels
    b = 0.6 * a + 0.8 * generator.normal(size=200)
    low, high = paired_difference(result(a, labels), result(b, labels)).interval
    draws = []
    for _ in range(1500):
        chosen = np.concatenate([generator.integers(0, 120, 120), generator.integers(120, 200, 80)])
        draws.append(auc(a[chosen], labels[chosen]) - auc(b[chosen], labels[chosen]))
    assert np.quantile(draws, [0.025, 0.975]) == pytest.approx([low, high], abs=0.025)


def test_same_result_differs_by_nothing():
    same = result([3.0, 1.0, 2.0, 0.0], [1, 0, 1, 0])
    assert paired_difference(same, same).value == 0.0
    assert paired_difference(same, same).interval == (0.0, 0.0)


def test_different_targets_are_refused():
    labels = [1, 0, 1, 0]
    with pytest.raises(InputError, match="different targets"):
        paired_difference(result([1, 2, 3, 4], labels), result([1, 2, 3, 4], labels, np.arange(1, 5)))
    with pytest.raises(InputError, match="different targets"):
        paired_difference(result([1, 2, 3, 4], labels), result([1, 2, 3, 4], [0, 1, 0, 1]))


@pytest.mark.parametrize(
    ("scores", "labels", "culprit"),
    [
        ([1.0, np.nan], [1, 0], "NaN"),
        ([1.0, 2.0], [1, 1], "0 negatives"),
        ([1.0, 2.0], [0, 0], "0 positives"),
        ([1.0, 2.0, 3.0], [1, 0], "equal length"),
    ],
)
def test_bad_input_is_refused(scores, labels, culprit):
    with pytest.raises(InputError, match=culprit):
        auc(scores, labels)


def test_result_folds_only_for_display():
    low = result([0.0, 1.0, 2.0, 3.0], [1, 1, 0, 0])
    assert (low.auc, low.folded_auc, low.headline) == (0.0, 1.0, 0.0)
    assert low.interval == (0.0, 0.0)
    assert low.accuracy is None
