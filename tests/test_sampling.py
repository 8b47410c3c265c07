"""Draws, priors and their uncertainty: sizes, determinism, calibration, edges, and refusals."""

import os
from fractions import Fraction

import networkx as nx
import numpy as np
import pytest
import torch
from sampling_graphs import disconnected, kite, random_graph, small_graph
from scipy.special import logit
from scipy.stats import binom

from lethe_lib.errors import InputError
from lethe_lib.sampling import (
    SAMPLERS,
    draw_counts,
    draw_memberships,
    inclusion_priors,
    law_priors,
    priors_from_counts,
    sample_law,
    sample_nodes,
    sampling_graph,
    target_size,
)

needs_real_graphs = pytest.mark.skipif(not os.environ.get("LETHE_DATA"), reason="needs the real graphs: set LETHE_DATA")
SMALL = {"snowball": {"seeds_per_class": 2}}


@pytest.fixture(scope="module")
def blocks():
    """A connected graph of 300 nodes in three classes, with hubs."""
    graph = nx.barabasi_albert_graph(300, 2, seed=3)
    return small_graph(list(graph.edges), 300, labels=[node % 3 for node in range(300)])


def pairs_of(sample):
    return set(map(tuple, sample.edges.T.tolist()))


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_contract_of_a_draw(sampler, blocks):
    sample = sample_nodes(sampler, blocks, 0.2, seed=4, **SMALL.get(sampler, {}))
    nodes, edges = sample.nodes, sample.edges
    assert nodes.dtype == edges.dtype == torch.int64
    assert (nodes.diff() > 0).all() and nodes.min() >= 0 and nodes.max() < 300
    assert sample.target == 60 and sample.kind in ("induced", "visited") and not sample.starved
    if SAMPLERS[sampler].fixed_size:
        assert len(nodes) == 60
    members = set(nodes.tolist())
    within = {(i, j) for i, j in blocks.edge_index.T.tolist() if i < j and i in members and j in members}
    assert pairs_of(sample) <= within
    if sample.kind == "induced":
        assert pairs_of(sample) == within
    assert edges.T.tolist() == sorted(edges.T.tolist())
    both = sample.edge_index
    assert both.shape[1] == 2 * edges.shape[1] and both.T.tolist() == sorted(both.T.tolist())


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_draws_are_determined_by_the_seed(sampler, blocks):
    options = SMALL.get(sampler, {})
    first, again, other = (sample_nodes(sampler, blocks, 0.2, seed, **options) for seed in (7, 7, 8))
    assert torch.equal(first.nodes, again.nodes) and torch.equal(first.edges, again.edges)
    assert not torch.equal(first.nodes, other.nodes)


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_counts_do_not_depend_on_threads_or_on_how_draws_are_split(sampler, blocks):
    options = SMALL.get(sampler, {})
    whole = draw_counts(sampler, blocks, 0.2, 101, seed=5, **options)
    threaded = draw_counts(sampler, blocks, 0.2, 101, seed=5, threads=3, **options)
    head = draw_counts(sampler, blocks, 0.2, 40, seed=5, **options)
    tail = draw_counts(sampler, blocks, 0.2, 61, seed=5, first=40, **options)
    assert np.array_equal(whole.counts, threaded.counts) and np.array_equal(whole.sizes, threaded.sizes)
    assert np.array_equal(whole.counts, head.counts + tail.counts)
    assert whole.counts.sum() == whole.sizes.sum()
    memberships = draw_memberships(sampler, blocks, 0.2, 101, seed=5, **options)
    assert np.array_equal(memberships.sum(axis=0), whole.counts)
    assert np.array_equal(np.flatnonzero(memberships[0]), sample_nodes(sampler, blocks, 0.2, 5, **options).nodes)


def test_target_is_the_floor_in_decimal_arithmetic():
    assert target_size(sampling_graph(small_graph([(0, 1)], 100)), 0.29) == 29
    assert target_size(sampling_graph(kite()), Fraction(3, 5)) == 3
    assert target_size(sampling_graph(kite()), 1) == 5
    assert target_size(sampling_graph(kite()), np.float32(0.5)) == 2


def test_induced_and_visited_edges_of_one_draw():
    data = small_graph([(0, 1), (1, 2), (2, 3), (0, 3)], 4)
    visited, induced = (sample_nodes("snowball", data, 1.0, 2, k=1, seeds_per_class=1, edges=e, fresh_starts=True)
                        for e in ("visited", "induced"))  # fmt: skip
    assert torch.equal(visited.nodes, induced.nodes)
    assert pairs_of(induced) == {(0, 1), (1, 2), (2, 3), (0, 3)}
    assert pairs_of(visited) < pairs_of(induced)


def test_only_the_published_preset_keeps_pairs_with_refused_nodes():
    # A star: the centre is one of at most two nodes, so most neighbours that it looks at are refused.
    data = small_graph([(0, leaf) for leaf in range(1, 6)], 6)
    for seed in range(20):
        options = {"k": 5, "seeds_per_class": 1}
        corrected = sample_nodes("snowball", data, Fraction(1, 3), seed, **options)
        published = sample_nodes("snowball", data, Fraction(1, 3), seed, preset="published", **options)
        assert torch.equal(corrected.nodes, published.nodes) and len(corrected.nodes) == 2
        assert set(corrected.edges.flatten().tolist()) <= set(corrected.nodes.tolist())
        if published.nodes[0] == 0 and len(pairs_of(published)) > 1:  # the centre was the seed
            assert pairs_of(published) == {(0, leaf) for leaf in range(1, 6)}
            break
    else:
        raise AssertionError("no draw started at the centre")


def test_snowball_draws_its_seeds_from_every_class():
    memberships = draw_memberships("snowball", disconnected(), Fraction(2, 3), 500, k=1, seeds_per_class=2)
    labels = np.array([0, 0, 1, 1, 1, 0])
    for label in (0, 1):
        assert (memberships[:, labels == label].sum(axis=1) >= 2).all()


def test_snowball_starves_where_its_frontier_runs_dry_and_fresh_starts_mend_it():
    data = small_graph([(0, 1), (2, 3), (4, 5)], 6)
    counted = draw_counts("snowball", data, 1.0, 50, seeds_per_class=1)
    assert counted.starved.all() and (counted.sizes == 2).all() and counted.target == 6
    assert sample_nodes("snowball", data, 1.0, seeds_per_class=1).starved
    mended = draw_counts("snowball", data, 1.0, 50, seeds_per_class=1, fresh_starts=True)
    assert not mended.starved.any() and (mended.sizes == 6).all() and (mended.starts == 3).all()


@pytest.mark.parametrize("sampler", ["random_walk", "forest_fire"])
def test_walks_and_fires_in_a_disconnected_graph(sampler):
    data = small_graph([(0, 1), (2, 3)], 5)
    mended = draw_counts(sampler, data, 1.0, 50)
    assert (mended.sizes == 5).all() and (mended.starts >= 3).all() and not mended.starved.any()
    short = draw_counts(sampler, data, 1.0, 50, fresh_starts=False)
    assert short.starved.all() and (short.sizes <= 2).all() and (short.starts == 1).all()


def test_isolated_nodes_are_never_drawn_by_degree_unless_an_offset_lets_them():
    data = disconnected()
    assert draw_counts("degree_weighted", data, 0.5, 2000).counts[5] == 0
    priors = inclusion_priors("degree_weighted", data, 0.5)
    assert priors.prior[5] == 0 and priors.log_odds[5] == -np.inf and priors.degenerate.tolist() == [5]
    assert inclusion_priors("degree_weighted", data, 0.5, offset=1).degenerate.tolist() == []
    with pytest.raises(InputError, match="only 5 have a positive weight"):
        sample_nodes("degree_weighted", data, 1.0)


def test_bernoulli_has_a_binomial_size_and_independent_members():
    memberships = draw_memberships("bernoulli", small_graph([], 40), 0.3, 20_000, seed=2)
    sizes = memberships.sum(axis=1)
    assert abs(sizes.mean() - 12) < 4 * np.sqrt(40 * 0.21 / 20_000)
    assert abs(sizes.var() / (40 * 0.21) - 1) < 0.05
    correlation = np.corrcoef(memberships.T.astype(float))[np.triu_indices(40, 1)]
    assert np.abs(correlation).max() < 5 / np.sqrt(20_000)


def test_simulated_priors_by_hand():
    priors = priors_from_counts(np.array([0, 30, 99, 100]), draws=100)
    np.testing.assert_allclose(priors.prior, np.array([0.5, 30.5, 99.5, 100.5]) / 101)
    np.testing.assert_allclose(priors.log_odds, logit(priors.prior))
    np.testing.assert_allclose(priors.standard_error[1], 1 / np.sqrt(100 * 30.5 / 101 * 70.5 / 101))
    assert priors.degenerate.tolist() == [0, 3] and priors.method == "simulation" and priors.draws == 100
    assert priors.interval[0, 0] == 0 and priors.interval[1, 3] == 1
    assert ((priors.interval[0] <= priors.prior) & (priors.prior <= priors.interval[1])).all()
    assert priors.log_odds_interval[0, 0] == -np.inf
    wide, narrow = (priors_from_counts(np.array([30]), 100, c).interval for c in (0.99, 0.5))
    assert wide[0] < narrow[0] < narrow[1] < wide[1]


def test_all_nodes_are_certain_at_ratio_one():
    for sampler in ("uniform", "bernoulli", "degree_weighted"):
        priors = inclusion_priors(sampler, kite(), 1.0)
        assert (priors.prior == 1).all() and np.isposinf(priors.log_odds).all() and len(priors.degenerate) == 5
    simulated = inclusion_priors("ego", kite(), 1.0, draws=200)
    assert len(simulated.degenerate) == 5 and np.isfinite(simulated.log_odds).all()


def test_simulation_agrees_with_the_closed_forms(blocks):
    for sampler in ("uniform", "bernoulli", "degree_weighted"):
        known = inclusion_priors(sampler, blocks, 0.3)
        found = inclusion_priors(sampler, blocks, 0.3, draws=4000, seed=9, simulate=True, threads=2)
        assert known.draws == 0 and found.draws == 4000
        score = (found.prior - known.prior) / np.sqrt(known.prior * (1 - known.prior) / 4000)
        assert abs(np.sqrt((score**2).mean()) - 1) < 0.2


@pytest.mark.parametrize(
    ("sampler", "options"),
    [
        ("snowball", {"k": 2, "seeds_per_class": 1}),
        ("random_walk", {"restart": 0.2, "patience": 3}),
        ("forest_fire", {"burn": 0.5}),
        ("ego", {"fanouts": (2,)}),
    ],
)
def test_stated_intervals_cover_the_enumerated_priors_at_the_nominal_rate(sampler, options):
    draws, covered, expected, scores = 300, [], [], []
    counts = np.arange(draws + 1)
    low, high = priors_from_counts(counts, draws).interval
    for graph in range(60):
        data = random_graph(1000 + graph)
        truth = np.array([float(p) for p in law_priors(sample_law(sampler, data, 0.5, **options), 6)])
        found = inclusion_priors(sampler, data, 0.5, draws=draws, seed=graph, **options)
        covered.append(((found.interval[0] <= truth) & (truth <= found.interval[1])).mean())
        # What exactly binomial counts would give, so that the test is about the simulation and the formula alike.
        inside = (low[:, None] <= truth) & (truth <= high[:, None])
        expected.append((binom.pmf(counts[:, None], draws, truth) * inside).sum(axis=0).mean())
        inner = (truth > 0.1) & (truth < 0.9)
        scores.extend(((found.log_odds - logit(truth)) / found.standard_error)[inner])
    difference = np.array(covered) - np.array(expected)
    assert abs(difference.mean()) < 3.5 * difference.std(ddof=1) / np.sqrt(len(difference))
    assert abs(np.mean(expected) - 0.95) < 0.015
    assert abs(np.mean(covered) - 0.95) < 0.03
    assert abs(np.sqrt(np.mean(np.square(scores))) - 1) < 0.15


def test_the_simulated_prior_of_a_seed_is_at_least_its_seed_probability(blocks):
    priors = inclusion_priors("snowball", blocks, 0.2, draws=2000, seeds_per_class=2)
    assert priors.interval[1].min() > 2 / 100


@pytest.mark.parametrize("sampler", SAMPLERS)
@pytest.mark.parametrize("ratio", [0, -0.1, 1.5, float("nan"), "half", None])
def test_ratios_outside_zero_to_one_are_refused(sampler, ratio):
    with pytest.raises(InputError, match="ratio"):
        sample_nodes(sampler, kite(), ratio)


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_a_ratio_below_one_node_is_refused(sampler):
    with pytest.raises(InputError, match="less than one node"):
        draw_counts(sampler, kite(), 0.1, 10)


def test_unknown_names_and_settings_are_refused():
    with pytest.raises(InputError, match="Did you mean 'snowball'"):
        sample_nodes("snowbal", kite(), 0.5)
    with pytest.raises(InputError, match="no setting hops"):
        sample_nodes("ego", kite(), 0.5, hops=2)
    with pytest.raises(InputError, match="no setting k"):
        inclusion_priors("uniform", kite(), 0.5, k=3)


@pytest.mark.parametrize(
    ("sampler", "options", "message"),
    [
        ("snowball", {}, "class 0 has 5 nodes, fewer than seeds_per_class=10"),
        ("snowball", {"seeds_per_class": 4}, "asks for 3 nodes, fewer than the 4 seeds"),
        ("snowball", {"k": 0}, "k must be an integer of at least 1"),
        ("snowball", {"seeds_per_class": 1, "edges": "all"}, "edges must be"),
        ("snowball", {"seeds_per_class": 1, "preset": "new"}, "preset must be"),
        ("random_walk", {"restart": 1.0}, "restart must be"),
        ("random_walk", {"patience": 0}, "patience must be"),
        ("forest_fire", {"burn": 1}, "burn must be"),
        ("ego", {"fanouts": ()}, "fanouts must list"),
        ("ego", {"fanouts": (2, 0)}, "every fanout must be"),
        ("degree_weighted", {"offset": -1}, "offset must be"),
        ("degree_weighted", {"offset": 0.5}, "offset must be"),
    ],
)
def test_bad_settings_are_refused_with_the_culprit_named(sampler, options, message):
    with pytest.raises(InputError, match=message):
        sample_nodes(sampler, kite(), 0.6, **options)


def test_an_empty_class_is_refused():
    data = kite()
    data.num_classes = 2
    with pytest.raises(InputError, match="class 1 has 0 nodes"):
        sample_nodes("snowball", data, 0.6, seeds_per_class=1)


def test_graphs_out_of_canonical_form_are_refused():
    unsorted, one_way, empty, unlabelled = kite(), kite(), small_graph([], 1), kite()
    unsorted.edge_index = unsorted.edge_index.flip(1)
    one_way.edge_index = one_way.edge_index[:, one_way.edge_index[0] < one_way.edge_index[1]]
    for data in (unsorted, one_way):
        with pytest.raises(InputError, match="canonical"):
            sample_nodes("uniform", data, 0.5)
    empty.x, empty.y = torch.empty(0, 1), torch.empty(0, dtype=torch.int64)
    with pytest.raises(InputError, match="no nodes"):
        sample_nodes("uniform", empty, 0.5)
    unlabelled.y = None
    with pytest.raises(InputError, match="no labels"):
        sample_nodes("snowball", unlabelled, 0.6)
    assert len(sample_nodes("random_walk", unlabelled, 0.6).nodes) == 3


@pytest.mark.parametrize("keyword", [{"draws": 0}, {"draws": 2.5}, {"threads": 0}, {"first": -1}, {"seed": 0.5}])
def test_bad_numbers_of_draws_are_refused(keyword):
    with pytest.raises(InputError, match=next(iter(keyword))):
        draw_counts("uniform", kite(), 0.6, **{"draws": 10, **keyword})


def test_bad_counts_are_refused():
    with pytest.raises(InputError, match="between 0 and"):
        priors_from_counts(np.array([11]), draws=10)
    with pytest.raises(InputError, match="confidence"):
        priors_from_counts(np.array([1]), draws=10, confidence=1.0)


@needs_real_graphs
def test_sizes_on_cora():
    from lethe_lib.data import load_graph

    data = load_graph("cora")
    for ratio, size in [(0.1, 270), (0.5, 1354)]:
        for sampler, entry in SAMPLERS.items():
            sample = sample_nodes(sampler, data, ratio, seed=1)
            assert sample.target == size
            assert len(sample.nodes) == size or not entry.fixed_size
    assert sample_nodes("snowball", data, 0.1).starts == 70


@needs_real_graphs
def test_snowball_starves_on_citeseer_at_one_half():
    # CiteSeer falls into 438 components, and the seeds reach too few of them.
    from lethe_lib.data import load_graph

    counted = draw_counts("snowball", load_graph("citeseer"), 0.5, 50)
    assert counted.starved.all() and counted.target == 1663
