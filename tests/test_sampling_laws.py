"""The samplers' laws: hand-computed fractions, invariances, and compiled draws against enumeration."""

from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sampling_graphs import disconnected, kite, random_graph, relabelled, small_graph
from scipy.stats import chisquare

from lethe_lib.errors import InputError
from lethe_lib.sampling import (
    SAMPLERS,
    draw_memberships,
    enumerate_paths,
    inclusion_priors,
    law_priors,
    sample_law,
    sample_nodes,
    sampling_graph,
)

# One entry per behaviour of a sampler; settings small enough for enumeration.
CASES = {
    "uniform": ("uniform", {}),
    "bernoulli": ("bernoulli", {}),
    "degree_weighted": ("degree_weighted", {}),
    "degree_weighted, offset": ("degree_weighted", {"offset": 2}),
    "snowball": ("snowball", {"k": 2, "seeds_per_class": 1}),
    "snowball, fresh": ("snowball", {"k": 1, "seeds_per_class": 1, "fresh_starts": True}),
    "snowball, published": ("snowball", {"k": 2, "seeds_per_class": 1, "preset": "published"}),
    "random_walk": ("random_walk", {"restart": 0.3, "patience": 3}),
    "random_walk, homing": ("random_walk", {"restart": 0.7, "patience": 6}),
    "random_walk, one start": ("random_walk", {"restart": 0.0, "patience": 2, "fresh_starts": False}),
    "forest_fire": ("forest_fire", {"burn": 0.4}),
    "forest_fire, one fire": ("forest_fire", {"burn": 0.6, "fresh_starts": False}),
    "ego": ("ego", {"fanouts": (2, 1)}),
    "ego, chain": ("ego", {"fanouts": (1, 1)}),
}
# Each case's chi-square test is made at this level, with fixed seeds.
LEVEL = 1e-3


def assert_same_law(observed: Counter, law: dict):
    """Chi-square test of observed counts against a law, with rare outcomes merged; impossible outcomes are refused."""
    total = sum(observed.values())
    assert not set(observed) - set(law), "an outcome that the law excludes"
    expected = {outcome: float(mass) * total for outcome, mass in law.items()}
    common = [outcome for outcome, count in expected.items() if count >= 5]
    seen, hoped = [observed[o] for o in common], [expected[o] for o in common]
    if (rest := total - sum(hoped)) > 1e-6:
        seen.append(total - sum(seen))
        hoped.append(rest)
    if len(hoped) > 1:
        assert chisquare(seen, hoped).pvalue > LEVEL


def as_sets(memberships):
    return Counter(frozenset(np.flatnonzero(row).tolist()) for row in memberships)


def test_snowball_on_the_kite_has_the_fractions_computed_by_hand():
    law = sample_law("snowball", kite(), 0.6, k=1, seeds_per_class=1)
    assert law == {
        frozenset({0, 1}): Fraction(1, 10),
        frozenset({0, 1, 2}): Fraction(7, 30),
        frozenset({0, 2}): Fraction(1, 15),
        frozenset({0, 2, 3}): Fraction(1, 15),
        frozenset({1, 2}): Fraction(1, 15),
        frozenset({1, 2, 3}): Fraction(1, 15),
        frozenset({2, 3}): Fraction(1, 15),
        frozenset({2, 3, 4}): Fraction(2, 15),
        frozenset({3, 4}): Fraction(1, 5),
    }
    assert law_priors(law, 5) == [Fraction(a, b) for a, b in [(7, 15), (7, 15), (7, 10), (8, 15), (1, 3)]]


def test_degree_weighted_on_a_path_by_hand():
    # Degrees 1, 2, 1. First draw: the middle with 1/2. If it is not first, it is second with 2/3.
    law = sample_law("degree_weighted", small_graph([(0, 1), (1, 2)], 3), Fraction(2, 3))
    assert law == {
        frozenset({0, 1}): Fraction(1, 4) + Fraction(1, 4) * Fraction(2, 3),
        frozenset({1, 2}): Fraction(1, 4) + Fraction(1, 4) * Fraction(2, 3),
        frozenset({0, 2}): 2 * Fraction(1, 4) * Fraction(1, 3),
    }


def test_random_walk_on_a_path_by_hand():
    # From an end the walk must pass the middle; from the middle it finds either end. With two nodes and patience 1, the
    # first step succeeds unless it is a restart, and then the next start is one of the two other nodes.
    law = sample_law("random_walk", small_graph([(0, 1), (1, 2)], 3), Fraction(2, 3), restart=0.5, patience=1)
    third, half = Fraction(1, 3), Fraction(1, 2)
    # {0, 2}: start at 0 (or 2), restart at once, then the other end with probability 1/2.
    assert law[frozenset({0, 2})] == 2 * third * half * half
    assert law[frozenset({0, 1})] == law[frozenset({1, 2})] == (1 - law[frozenset({0, 2})]) / 2


def test_forest_fire_on_an_edge_and_a_lone_node_by_hand():
    data = small_graph([(0, 1)], 3)
    burn = Fraction(2, 5)
    law = sample_law("forest_fire", data, Fraction(2, 3), burn=burn)
    # From 0 or 1 the fire spreads with probability `burn`, else a new one starts at one of the two other nodes.
    assert law[frozenset({0, 1})] == Fraction(2, 3) * (burn + (1 - burn) / 2)


def test_ego_with_one_neighbour_on_a_star_by_hand():
    data = small_graph([(0, 1), (0, 2), (0, 3)], 4)
    law = sample_law("ego", data, 0.5, fanouts=(1,))
    assert law == {frozenset({0, leaf}): Fraction(1, 3) for leaf in (1, 2, 3)}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("graph", [kite, disconnected])
def test_compiled_draws_follow_the_enumerated_law(case, graph):
    sampler, options = CASES[case]
    law = sample_law(sampler, graph(), 0.6, **options)
    assert sum(law.values()) == 1
    assert_same_law(as_sets(draw_memberships(sampler, graph(), 0.6, 20_000, seed=1, **options)), law)


@pytest.mark.parametrize("options", [{"restart": 0.3, "patience": 3}, {"patience": 2, "fresh_starts": False}])
def test_the_plain_random_walk_follows_its_markov_chain(options):
    data, entry, generator = disconnected(), SAMPLERS["random_walk"], np.random.default_rng(0)

    def pick(weights):
        return int(generator.choice(len(weights), p=np.array(weights, dtype=float) / float(sum(weights))))

    graph, chosen = sampling_graph(data), entry.configure(options)
    draws = Counter(frozenset(entry.plain(graph, 0.6, chosen, pick)[0]) for _ in range(2000))
    assert_same_law(draws, sample_law("random_walk", data, 0.6, **options))


def test_snowball_ignores_how_classes_are_numbered_unless_published():
    data, renumbered = disconnected(), disconnected()
    renumbered.y = 1 - renumbered.y
    options = {"k": 1, "seeds_per_class": 1}
    assert sample_law("snowball", data, 0.5, **options) == sample_law("snowball", renumbered, 0.5, **options)
    options["preset"] = "published"
    assert sample_law("snowball", data, 0.5, **options) != sample_law("snowball", renumbered, 0.5, **options)


@pytest.mark.parametrize("case", ["uniform", "bernoulli"])
def test_direct_laws_are_those_of_the_plain_programs(case):
    entry, graph = SAMPLERS[case], sampling_graph(kite())
    chosen = entry.configure({})
    paths = enumerate_paths(lambda pick: frozenset(entry.plain(graph, 0.4, chosen, pick)[0]))
    assert paths == sample_law(case, kite(), 0.4)


@pytest.mark.parametrize(
    "case", ["snowball", "snowball, fresh", "snowball, published", "forest_fire", "ego", "ego, chain"]
)
def test_nodes_and_visited_edges_follow_their_joint_law(case):
    sampler, options = CASES[case]
    options = {**options, "edges": "visited"}
    entry, graph = SAMPLERS[sampler], sampling_graph(kite())
    chosen = entry.configure(options)

    def program(pick):
        nodes, pairs = entry.plain(graph, 0.6, chosen, pick)
        return frozenset(nodes), frozenset(pairs)

    def draw(seed):
        sample = sample_nodes(sampler, graph, 0.6, seed, **options)
        return frozenset(sample.nodes.tolist()), frozenset(map(tuple, sample.edges.T.tolist()))

    assert_same_law(Counter(map(draw, range(3000))), enumerate_paths(program))


@pytest.mark.parametrize("case", CASES)
def test_laws_do_not_depend_on_node_names(case):
    sampler, options = CASES[case]
    order = [3, 5, 0, 2, 1, 4]
    law = sample_law(sampler, disconnected(), 0.5, **options)
    renamed = sample_law(sampler, relabelled(disconnected(), order), 0.5, **options)
    assert renamed == {frozenset(order[node] for node in members): mass for members, mass in law.items()}


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000), st.sampled_from(sorted(CASES)), st.sampled_from([0.34, 0.5, 0.67]))
def test_laws_of_random_graphs_are_consistent(seed, case, ratio):
    sampler, options = CASES[case]
    data = random_graph(seed, density=0.3)
    try:
        law = sample_law(sampler, data, ratio, **options)
    except InputError as error:
        assert "positive weight" in str(error)  # too few nodes with neighbours for degree-weighted sampling
        return
    target = int(Fraction(str(ratio)) * 6)
    assert sum(law.values()) == 1
    assert all(mass > 0 for mass in law.values())
    if SAMPLERS[sampler].fixed_size:
        assert all(len(members) <= target for members in law)
    if sampler in ("uniform", "degree_weighted", "ego") or options.get("fresh_starts", sampler != "bernoulli"):
        if sampler != "snowball" or options.get("fresh_starts"):
            assert {len(members) for members in law} == {target}
    # The priors sum to the mean size.
    assert sum(law_priors(law, 6)) == sum(len(members) * mass for members, mass in law.items())


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 6), st.integers(1, 3))
def test_exact_priors_are_those_of_the_enumerated_law(seed, size, offset):
    data = random_graph(seed, density=0.5)
    ratio = Fraction(size, 6)
    for sampler, options in [("uniform", {}), ("bernoulli", {}), ("degree_weighted", {"offset": offset})]:
        priors = inclusion_priors(sampler, data, ratio, **options)
        expected = law_priors(sample_law(sampler, data, ratio, **options), 6)
        assert priors.method == ("quadrature" if sampler == "degree_weighted" else "closed form")
        np.testing.assert_allclose(priors.prior, [float(p) for p in expected], atol=1e-12)
        inner = [node for node, prior in enumerate(expected) if 0 < prior < 1]
        odds = [float(expected[node] / (1 - expected[node])) for node in inner]
        np.testing.assert_allclose(priors.log_odds[inner], np.log(odds), rtol=1e-9, atol=1e-9)


def test_too_large_a_law_is_refused(monkeypatch):
    monkeypatch.setattr("lethe_lib.sampling.law._MOST_PATHS", 100)
    with pytest.raises(InputError, match="decision paths"):
        sample_law("degree_weighted", random_graph(0, nodes=8, density=0.8), 0.5)
