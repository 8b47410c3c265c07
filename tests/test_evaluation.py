"""Utility and leakage, against scikit-learn, limits and simulation."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import accuracy_score, f1_score, roc_auc_score

from lethe_lib.attacks import auc
from lethe_lib.data import Split
from lethe_lib.errors import InputError
from lethe_lib.evaluation import accuracy, excess_over_gold, excesses_over_gold, macro_f1, posterior_distance, utility


@given(st.integers(1, 40), st.integers(2, 5), st.integers(0, 10_000))
@settings(deadline=None)
def test_accuracy_and_macro_f1_equal_scikit_learn(count, classes, seed):
    generator = torch.Generator().manual_seed(seed)
    logits = torch.randn(count, classes, generator=generator)
    labels = torch.randint(0, classes, (count,), generator=generator)
    nodes = torch.arange(0, count, 2)
    actual, predicted = labels[nodes].numpy(), logits[nodes].argmax(1).numpy()
    assert accuracy(logits, labels, nodes) == pytest.approx(accuracy_score(actual, predicted))
    assert macro_f1(logits, labels, nodes) == pytest.approx(f1_score(actual, predicted, average="macro"))


def test_one_class_answers_are_accurate_but_score_low():
    logits, labels = torch.tensor([[1.0, 0.0]]).repeat(10, 1), torch.tensor([0] * 9 + [1])
    nodes = torch.arange(10)
    assert accuracy(logits, labels, nodes) == pytest.approx(0.9)
    assert macro_f1(logits, labels, nodes) == pytest.approx((2 * 9 / 19) / 2)


def test_utility_names_every_part_that_has_nodes():
    logits, labels = torch.eye(3), torch.tensor([0, 1, 0])
    split = Split(torch.tensor([0, 1]), torch.tensor([], dtype=torch.int64), torch.tensor([2]))
    found = utility(logits, labels, split)
    assert found == {"accuracy_train": 1.0, "macro_f1_train": 1.0, "accuracy_test": 0.0, "macro_f1_test": 0.0}


def test_utility_refuses_what_does_not_fit():
    with pytest.raises(InputError, match="different graphs"):
        accuracy(torch.eye(3), torch.tensor([0, 1]), torch.tensor([0]))
    with pytest.raises(InputError, match="no nodes"):
        macro_f1(torch.eye(2), torch.tensor([0, 1]), torch.tensor([], dtype=torch.int64))
    with pytest.raises(InputError, match="cannot be compared"):
        posterior_distance(torch.eye(2), torch.eye(3))


def test_posterior_distance_by_hand():
    first = torch.tensor([[0.0, 0.0], [50.0, -50.0], [1.0, 3.0]])
    second = torch.tensor([[0.0, float(np.log(3.0))], [-50.0, 50.0], [11.0, 13.0]])
    assert posterior_distance(first, second).tolist() == pytest.approx([0.25, 1.0, 0.0], abs=1e-6)
    assert posterior_distance(first, second, torch.tensor([1])).tolist() == pytest.approx([1.0])


def runs(generator, labels, gap: float, count: int, noise: float = 0.3) -> list:
    """Attacks on models that share the pairs' own scores and differ by noise; ``gap`` moves the positives up."""
    base = generator.normal(size=len(labels))
    return [(base + gap * labels + noise * generator.normal(size=len(labels)), labels) for _ in range(count)]


def test_excess_is_the_difference_of_mean_aucs():
    generator = np.random.default_rng(0)
    method, golds = {}, {}
    for seed in (0, 1):
        labels = np.repeat([True, False], [60, 50 + seed])
        both = runs(generator, labels, 0.5, 5)
        method[seed] = [(scores + labels, labels) for scores, _ in both[:2]]
        golds[seed] = both[2:]
    method[7] = method[0]  # a seed that Gold has not
    found = excess_over_gold(method, golds)
    area = np.mean([np.mean([roc_auc_score(y, s) for s, y in method[seed]]) for seed in (0, 1)])
    gold = np.mean([np.mean([roc_auc_score(y, s) for s, y in golds[seed]]) for seed in (0, 1)])
    assert found["auc"] == pytest.approx(area)
    assert found["gold_auc"] == pytest.approx(gold)
    assert found["excess"] == pytest.approx(area - gold)
    assert 0.0 < found["excess_low"] < found["excess"] < found["excess_high"]
    assert found["seeds"] == 2.0
    aucs = {seed: [roc_auc_score(y, s) for s, y in golds[seed]] for seed in golds}
    assert found["gold_spread"] == pytest.approx(max(np.ptp(values) for values in aucs.values()))


def test_interval_agrees_with_an_exact_bootstrap_over_pairs():
    generator = np.random.default_rng(1)
    labels = np.repeat([True, False], [120, 80])
    one, other = runs(generator, labels, 0.8, 2, noise=1.0)
    found = excess_over_gold({0: [one]}, {0: [other]})
    draws = []
    for _ in range(1500):
        chosen = np.concatenate([generator.integers(0, 120, 120), generator.integers(120, 200, 80)])
        draws.append(auc(one[0][chosen], labels[chosen]) - auc(other[0][chosen], labels[chosen]))
    assert [found["excess_low"], found["excess_high"]] == pytest.approx(np.quantile(draws, [0.025, 0.975]), abs=0.02)


def test_interval_covers_no_excess_as_often_as_it_says():
    """Method and Gold are exchangeable here, with many seeds, so the true excess is 0."""
    generator = np.random.default_rng(2)
    labels = np.repeat([True, False], 30)
    covered = 0
    for repeat in range(60):
        both = {seed: runs(generator, labels, 0.5, 2, noise=1.0) for seed in range(8)}
        found = excess_over_gold(
            {s: r[:1] for s, r in both.items()}, {s: r[1:] for s, r in both.items()}, seed=repeat, replicates=400
        )
        covered += found["excess_low"] <= 0.0 <= found["excess_high"]
    assert covered >= 52


def test_identical_models_have_no_excess_at_all():
    labels = np.repeat([True, False], 20)
    run = runs(np.random.default_rng(3), labels, 0.5, 1)[0]
    found = excess_over_gold({0: [run]}, {0: [run, run]})
    assert (found["excess"], found["gold_spread"]) == (0.0, 0.0)
    assert found["excess_low"] == pytest.approx(0.0, abs=1e-12)
    assert found["excess_high"] == pytest.approx(0.0, abs=1e-12)


def test_gold_against_itself_is_zero_with_the_noise_of_an_exact_answer():
    labels = np.repeat([True, False], 40)
    generator = np.random.default_rng(4)
    quiet, loud = ({seed: runs(generator, labels, 0.5, 3, noise) for seed in range(3)} for noise in (0.1, 1.0))
    small, large = (excess_over_gold(golds, golds, same=True) for golds in (quiet, loud))
    assert small["excess"] == large["excess"] == 0.0
    assert large["excess_low"] < small["excess_low"] < 0.0 < small["excess_high"] < large["excess_high"]
    assert small["gold_spread"] < large["gold_spread"]


def test_excess_is_the_same_again_and_follows_its_seed():
    labels = np.repeat([True, False], 25)
    one, two, three = runs(np.random.default_rng(5), labels, 0.5, 3)
    first, again, other = (excess_over_gold({0: [one]}, {0: [two, three]}, seed=s) for s in (0, 0, 1))
    assert first == again
    assert first["excess_low"] != other["excess_low"]


def test_methods_together_have_the_excesses_that_they_have_alone():
    generator = np.random.default_rng(6)
    labels = np.repeat([True, False], [40, 35])
    golds = {seed: runs(generator, labels, 0.5, 3) for seed in range(3)}
    methods = {name: {seed: runs(generator, labels, 0.7, 1) for seed in range(3)} for name in ("a", "b")}
    methods |= {
        "two runs": {seed: runs(generator, labels, 0.7, 2) for seed in range(3)},
        "gold": golds,
        "fewer": {2: methods["a"][2]},
    }
    found = excesses_over_gold(methods, golds, replicates=200)
    assert list(found) == list(methods)
    for name, by_seed in methods.items():
        alone = excess_over_gold(by_seed, golds, same=name == "gold", replicates=200)
        assert found[name] == pytest.approx(alone, abs=1e-12)
    assert found["fewer"]["seeds"] == 1.0 and found["gold"]["excess"] == 0.0


def test_excess_refuses_what_cannot_be_compared():
    labels = np.repeat([True, False], 5)
    run, other = (np.arange(10.0), labels), (np.arange(10.0), ~labels)
    with pytest.raises(InputError, match="common"):
        excess_over_gold({0: [run]}, {1: [run]})
    with pytest.raises(InputError, match="different pairs"):
        excess_over_gold({0: [run]}, {0: [other]})
    with pytest.raises(InputError, match="0 runs of the method"):
        excess_over_gold({0: []}, {0: [run]})
    with pytest.raises(InputError, match="seed 0"):
        excess_over_gold({0: [run]}, {0: [run]}, same=True)
