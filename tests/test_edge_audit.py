"""The randomised edge audit: design, exact toggles, statistics, attack, residual memory, records, and the command."""

import copy
from dataclasses import asdict, replace
from functools import partial
from math import log
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm
from torch_geometric.data import Data

from lethe_lib.__main__ import main as command_line
from lethe_lib.attacks import bayes_rule_test
from lethe_lib.attacks.edge_design import edge_design, release, rising_prior
from lethe_lib.attacks.edge_membership import (
    GROUPS,
    LEAST_TRIALS,
    Estimate,
    edge_auc,
    edge_aucs,
    edge_scores,
    estimate,
    jackknife_width,
    level_test,
    null_aucs,
    pooled_scores,
    residual_memory,
    smallest_detectable,
)
from lethe_lib.attacks.edge_statistics import ADVERSARIES, edge_statistics, statistic_names
from lethe_lib.attacks.edge_toggle import EdgeToggles
from lethe_lib.attacks.likelihood_ratio import class_fits
from lethe_lib.bmp import audit
from lethe_lib.data import Split, canonical, load_graph, split_nodes, undirected_edges
from lethe_lib.errors import InputError
from lethe_lib.models import BACKBONES, PRESETS, build, predict, train
from lethe_lib.models.gat import GAT
from lethe_lib.models.sgc import ColSGC, RowSGC
from lethe_lib.seeding import numpy_generator
from lethe_lib.structure import edge_homophily, forget_set, remove_edges
from lethe_lib.study import (
    RecordStore,
    audit_edges,
    edge_audit_runs,
    edge_audit_tables,
    load_records,
    publish,
    run,
    run_all,
)
from lethe_lib.study import edge_audit as study
from lethe_lib.study.edge_audit import CONTROLS, EdgeAuditConfiguration, varied_graph
from lethe_lib.study.edge_audit_tables import edges_frame, load_audited_edges, memory_frame, trial_statistics
from lethe_lib.unlearning import UNLEARNERS, unlearn

FAST = {"epochs": 20, "hidden": 8, "learning_rate": 0.05}
TRIALS = 16
SHORT = {"gnn_delete": {"epochs": 5}, "unsir": {"repair_steps": 2}, "fisher": {"probes": 2}, "ssd": {"probes": 2}}


@pytest.fixture(scope="module")
def graph():
    return load_graph("synthetic-tiny")


@pytest.fixture(scope="module")
def audited(graph):
    """Pool kind -> design and the statistics of the controls, all trained for a moment only."""
    split, found = split_nodes(graph, 0), {}
    for pool in ("low", "random"):
        design = edge_design(graph, forget_set(graph, pool), TRIALS)
        toggles = EdgeToggles(design.base, design.pool)
        statistics = {name: [] for name in CONTROLS}
        for trial in range(TRIALS):
            original = train(design.graph(trial), "gcn", design.training_seeds[trial], split=split, **FAST)
            for name, rows in statistics.items():
                model = release(design, trial, original, name).model
                rows.append(edge_statistics(model, design.base, design.pool, toggles))
        found[pool] = design, {name: np.stack(rows) for name, rows in statistics.items()}
    return found


def normal_trials(trials=32, count=3, edges=40, effect=1.0, seed=0):
    """Statistics whose mean moves by an amount of each edge's own when the edge is in; trials share a factor."""
    generator = numpy_generator(seed, "edge audit test")
    member = generator.random((trials, edges)) < 0.5
    shift = effect * np.abs(numpy_generator(0, "shift").standard_normal((count, edges)))
    shared = generator.standard_normal((trials, 1, 1)) * numpy_generator(0, "load").standard_normal((count, edges))
    noise = generator.standard_normal((trials, count, edges))
    return shared + noise + shift * member[:, None], member


# The design


def test_the_graphs_of_a_trial(graph):
    pool = forget_set(graph, "random", 0.1)
    design = edge_design(graph, pool, 8)
    assert design.base.content_hash == remove_edges(graph, pool).content_hash
    for trial in range(8):
        inside = set(map(tuple, undirected_edges(design.graph(trial)).T.tolist()))
        base = set(map(tuple, undirected_edges(design.base).T.tolist()))
        coins = {tuple(pair) for pair, coin in zip(pool.T.tolist(), design.member[trial], strict=True) if coin}
        assert inside - base == coins == {tuple(pair) for pair in design.included(trial).T.tolist()}
        assert base < inside


def test_coins_are_independent_of_seeds_of_each_other_and_of_the_number_of_trials(graph):
    pool = forget_set(graph, "random", 0.3)
    design = edge_design(graph, pool, 400)
    member = design.member.astype(float)
    trials, edges = member.shape
    assert abs(member.mean() - 0.5) < 4 * 0.5 / np.sqrt(member.size)
    correlation = np.corrcoef(member.T)[np.triu_indices(edges, 1)] * np.sqrt(trials)
    assert abs(correlation.mean()) < 4 / np.sqrt(len(correlation)) and 0.9 < correlation.std() < 1.1
    seeds = np.array(design.training_seeds, dtype=float)
    assert abs(np.corrcoef(seeds, member.sum(1))[0, 1]) * np.sqrt(trials) < 3.5
    low_bits = np.array([seed & 1 for seed in design.training_seeds], dtype=float)
    with_bits = np.array([np.corrcoef(low_bits, column)[0, 1] for column in member.T]) * np.sqrt(trials)
    assert abs(with_bits.mean()) < 4 / np.sqrt(edges) and np.abs(with_bits).max() < 4.5
    shorter = edge_design(graph, pool, 8)
    assert np.array_equal(shorter.member, design.member[:8]) and shorter.training_seeds == design.training_seeds[:8]
    same = edge_design(graph, pool, 400, same_training_seed=True)
    assert np.array_equal(same.member, design.member) and len(set(same.training_seeds)) == 1
    assert len(set(design.training_seeds)) == 400
    other = edge_design(graph, pool, 400, prior=0.2)
    assert other.training_seeds == design.training_seeds and abs(other.member.mean() - 0.2) < 0.02


def test_priors_rise_with_centrality(graph):
    low, high = forget_set(graph, "low", 0.05), forget_set(graph, "high", 0.05)
    pool = torch.cat([low, high], 1)
    ends = {tuple(pair) for pair in low.T.tolist()}
    prior = rising_prior(graph, pool, 0.5, 0.3)
    ordered = sorted(map(tuple, pool.T.tolist()))
    assert prior.mean() == pytest.approx(0.5) and prior.min() >= 0.2 - 1e-9 and prior.max() <= 0.8 + 1e-9
    lows = np.array([pair in ends for pair in ordered])
    assert prior[lows].max() < prior[~lows].min()
    assert np.array_equal(rising_prior(graph, pool, 0.4, 0.0), np.full(len(ordered), 0.4))
    design = edge_design(graph, pool, 600, prior)
    assert np.abs(design.member.mean(0) - prior).max() < 4.5 * 0.5 / np.sqrt(600)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"pool": torch.empty(2, 0, dtype=torch.int64)}, "0 of the 360 edges"),
        ({"pool": "all"}, "360 of the 360"),
        ({"trials": 3}, "at least 4"),
        ({"trials": 8.0}, "at least 4"),
        ({"prior": 0.0}, "between 0 and 1"),
        ({"prior": 1.0}, "between 0 and 1"),
        ({"prior": np.r_[np.full(17, 0.5), np.nan]}, "for edge 17"),
        ({"prior": np.full(5, 0.5)}, "each of the 18 edges"),
        ({"pool": torch.tensor([[0], [0]])}, "self-loop"),
    ],
)
def test_designs_that_cannot_be_used_are_refused(graph, arguments, message):
    arguments = {"pool": forget_set(graph, "random"), "trials": 8, **arguments}
    if isinstance(arguments["pool"], str):
        arguments["pool"] = undirected_edges(graph)
    with pytest.raises(InputError, match=message):
        edge_design(graph, **arguments)


# The toggle


def random_model(kind, data, seed):
    generator = torch.Generator().manual_seed(seed)
    model = kind(data.x.shape[1], data.num_classes) if callable(kind) else build(data, kind, seed)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator) / 3)
    return model.double().eval()


TOGGLED = [*BACKBONES, RowSGC, ColSGC, partial(GAT, heads=3), partial(GAT, layers=3)]


@settings(max_examples=40, deadline=None)
@given(st.sampled_from(TOGGLED), st.integers(0, 10_000), st.integers(1, 60))
def test_toggles_are_the_forwards_with_the_pair_in_the_graph(kind, seed, edges):
    generator = torch.Generator().manual_seed(seed)
    index = torch.randint(0, 18, (2, edges + 5), generator=generator)
    x = torch.randn(20, 4, generator=generator)  # nodes 18 and 19 are isolated
    data = canonical(Data(x=x, edge_index=index, y=torch.arange(20) % 3), "random", 3)
    pool = undirected_edges(data)[:, ::2]
    base = remove_edges(data, pool)
    model, toggles = random_model(kind, data, seed), EdgeToggles(base, pool)
    found = toggles.logits(model)
    for number in range(pool.shape[1]):
        others = torch.cat([pool[:, :number], pool[:, number + 1 :]], 1)
        expected = predict(model, remove_edges(data, others))[pool[:, number]]
        assert torch.allclose(found[number], expected, atol=1e-10)


@pytest.mark.parametrize("method", ["memoriser", "gnn_delete"])
def test_toggles_of_models_that_treat_nodes_apart(graph, method):
    pool = forget_set(graph, "high", 0.1)
    design = edge_design(graph, pool, 4)
    original = train(design.graph(0), "gcn", 0, split=split_nodes(graph, 0), **FAST)
    model = release(design, 0, original, method, **SHORT.get(method, {})).model.double()
    toggles = EdgeToggles(design.base, pool)
    assert torch.allclose(toggles.logits(model), toggles._by_forwards(model), atol=1e-10)


@pytest.mark.parametrize(("kind", "blocks"), [("gcn", lambda t: t._blocks["sym"]), ("gat", lambda t: t._listeners)])
def test_blocks_of_pairs_do_not_change_the_toggle(graph, monkeypatch, kind, blocks):
    pool = forget_set(graph, "random", 0.1)
    base, model = remove_edges(graph, pool), random_model(kind, graph, 0)
    whole = EdgeToggles(base, pool).logits(model)
    monkeypatch.setattr("lethe_lib.attacks.edge_toggle.BLOCK", 25)
    pieces = EdgeToggles(base, pool)
    assert torch.allclose(pieces.logits(model), whole, atol=1e-12) and len(blocks(pieces)) > 5


def test_an_edge_that_is_there_already_is_no_toggle(graph):
    with pytest.raises(InputError, match="is an edge of the base graph"):
        EdgeToggles(graph, forget_set(graph, "random"))


# The statistics


def test_statistics_by_hand():
    """Two nodes of class 0 and 1 with logits (1, 0) and (0, 2), and hidden rows that are the features."""
    data = canonical(Data(x=torch.eye(2), edge_index=torch.empty(2, 0, dtype=torch.int64), y=torch.tensor([0, 1])))
    model = build(data, "gcn", hidden=2)
    with torch.no_grad():
        model.layers[0].weight.copy_(torch.tensor([[3.0, 4.0], [0.0, 3.0]]))
        model.layers[0].bias.zero_()
        model.layers[1].weight.copy_(
            torch.linalg.solve(torch.tensor([[3.0, 0.0], [4.0, 3.0]]), torch.diag(torch.tensor([1.0, 2.0]))).T
        )
        model.layers[1].bias.zero_()
    row = dict(zip(statistic_names(False), edge_statistics(model, data, torch.tensor([[0], [1]]))[:, 0], strict=True))
    p, q = 1 / (1 + np.exp(-1)), 1 / (1 + np.exp(-2))
    cos = (p * (1 - q) + (1 - p) * q) / np.hypot(p, 1 - p) / np.hypot(q, 1 - q)
    kl = (p - (1 - q)) * log(p / (1 - q)) + ((1 - p) - q) * log((1 - p) / q)
    expected = {
        "posterior_cosine": log(1 - cos),
        "posterior_kl": log(kl),
        "confidence_u": 1.0,
        "confidence_v": 2.0,
        "logit_distance": np.hypot(1.5, 1.5),
        "logit_product": -1.0,
        "hidden_cosine": log(1 - 12 / 15),
        "hidden_product": 12.0,
    }
    assert row == pytest.approx(expected, rel=1e-5)


def test_adversaries_read_more_and_more():
    names = statistic_names()
    posteriors, toggle, weights = (ADVERSARIES[name] for name in ("posteriors", "toggle", "weights"))
    assert set(posteriors) < set(toggle) < set(weights) == set(names) and len(set(names)) == len(names)
    assert set(statistic_names(False)) == {name for name in names if not name.startswith("toggle")}


def test_posteriors_decide_what_the_first_adversary_reads(graph):
    pool = forget_set(graph, "random")
    base, model = remove_edges(graph, pool), build(graph, "gcn", 1)
    other = copy.deepcopy(model)
    with torch.no_grad():
        other.layers[1].bias.add_(3.0)  # another constant in all logits: the same posteriors
    a, b = (edge_statistics(one, base, pool, EdgeToggles(base, pool)) for one in (model, other))
    assert np.allclose(a, b, rtol=1e-3, atol=1e-4)


def test_models_without_hidden_rows_or_with_infinite_answers_are_refused(graph):
    pool = forget_set(graph, "random")
    base = remove_edges(graph, pool)
    with pytest.raises(InputError, match="hidden rows"):
        edge_statistics(build(graph, "gcn", layers=1), base, pool)
    broken = build(graph, "gcn")
    with torch.no_grad():
        broken.layers[1].bias.fill_(torch.nan)
    with pytest.raises(InputError, match="posterior_cosine that is not finite"):
        edge_statistics(broken, base, pool)


@pytest.mark.parametrize("method", [name for name in UNLEARNERS if name not in ("cgu", "scalegun")])
def test_every_method_can_be_audited(graph, method):
    design = edge_design(graph, forget_set(graph, "low"), 4)
    original = train(design.graph(0), "gcn", 0, split=split_nodes(graph, 0), **FAST)
    result = release(design, 0, original, method, **SHORT.get(method, {}))
    assert result.request.retained.content_hash == design.base.content_hash
    statistics = edge_statistics(result.model, design.base, design.pool, EdgeToggles(design.base, design.pool))
    assert statistics.dtype == np.float32 and np.isfinite(statistics).all()
    assert statistics.shape == (len(statistic_names()), design.pool.shape[1])


@pytest.mark.parametrize("method", ["cgu", "scalegun"])
def test_the_certified_methods_of_sgc_can_be_audited(graph, method):
    design = edge_design(graph, forget_set(graph, "low"), 4)
    original = train(design.graph(0), "sgc", 0, split=split_nodes(graph, 0), epochs=5)
    result = release(design, 0, original, method)
    statistics = edge_statistics(result.model, design.base, design.pool, EdgeToggles(design.base, design.pool))
    assert result.status != "unsupported" and np.isfinite(statistics).all()


# The checks of the design: exact answers, permuted labels, the memoriser


@pytest.mark.parametrize("pool", ["low", "random"])
@pytest.mark.parametrize("control", ["gold", "untrained"])
@pytest.mark.parametrize("trials", [12, 16])
def test_what_never_saw_the_edges_has_one_half(audited, pool, control, trials):
    design, statistics = audited[pool]
    found, member = statistics[control][:trials], design.member[:trials]
    error = null_aucs(found, design.prior, 25).std(ddof=1)
    assert abs(edge_auc(edge_scores(found, member)) - 0.5) < 2.5 * error
    assert abs(edge_auc(edge_scores(found, member, "joint")) - 0.5) < 3 * error


@pytest.mark.parametrize("pool", ["low", "random"])
def test_permuted_labels_have_one_half(audited, pool):
    design, statistics = audited[pool]
    tossed = null_aucs(statistics["memoriser"], design.prior, 25)
    assert abs(tossed.mean() - 0.5) < 3 * tossed.std(ddof=1) / 5
    generator = numpy_generator(0, "permuted labels")
    permuted = np.stack([generator.permutation(column) for column in design.member.T], axis=1)
    assert abs(edge_auc(edge_scores(statistics["memoriser"], permuted)) - 0.5) < 3 * tossed.std(ddof=1)


@pytest.mark.parametrize("pool", ["low", "random"])
def test_the_memoriser_is_seen(audited, pool):
    design, statistics = audited[pool]
    for wanted, least in (("posteriors", 0.9), ("toggle", 0.95), ("weights", 0.95)):
        read = statistics["memoriser"][:, [statistic_names().index(name) for name in ADVERSARIES[wanted]]]
        assert edge_auc(edge_scores(read, design.member)) > least
    assert (np.array(null_aucs(statistics["memoriser"], design.prior, 20)) < 0.7).all()


def test_retraining_by_request_is_training_on_the_base_graph(graph, audited):
    """And it cannot depend on the coins: the same seeds with other coins give the same model."""
    design, statistics = audited["random"]
    toggles = EdgeToggles(design.base, design.pool)
    flipped = replace(design, member=~design.member)
    for trial in (0, 5):
        seed = design.training_seeds[trial]
        model = train(design.base, "gcn", seed, split=split_nodes(graph, 0), **FAST)
        expected = edge_statistics(model, design.base, design.pool, toggles)
        assert np.array_equal(statistics["gold"][trial], expected)
        original = train(flipped.graph(trial), "gcn", seed, split=split_nodes(graph, 0), **FAST)
        again = release(flipped, trial, original, "gold").model
        assert np.array_equal(edge_statistics(again, design.base, design.pool, toggles), expected)


def test_unlinking_is_the_original_asked_on_the_base_graph(graph, audited):
    design, statistics = audited["low"]
    model = train(design.graph(3), "gcn", design.training_seeds[3], split=split_nodes(graph, 0), **FAST)
    expected = edge_statistics(model, design.base, design.pool, EdgeToggles(design.base, design.pool))
    assert np.array_equal(statistics["utu"][3], expected)


def test_renumbering_the_nodes_changes_nothing(graph):
    order = torch.randperm(graph.num_nodes, generator=torch.Generator().manual_seed(1))
    place = torch.argsort(order)
    moved = canonical(Data(x=graph.x[order], edge_index=place[graph.edge_index], y=graph.y[order]), "moved", 3)
    design = edge_design(graph, forget_set(graph, "random"), 12)
    pool = place[design.pool].sort(0).values
    rank = np.lexsort((pool[1].numpy(), pool[0].numpy()))  # where each edge stands in the moved pool
    moved_design = replace(
        design, data=moved, pool=pool[:, rank], member=design.member[:, rank], prior=design.prior[rank]
    )
    split = split_nodes(graph, 0)
    moved_split = Split(*(place[part].sort().values for part in (split.train, split.val, split.test)))
    both = []
    for one, nodes in ((design, split), (moved_design, moved_split)):
        toggles = EdgeToggles(one.base, one.pool)
        rows = []
        for trial in range(12):
            seed = one.training_seeds[trial]
            original = train(one.graph(trial), "gcn", seed, split=nodes, dropout=0.0, epochs=8, hidden=8)
            rows.append(edge_statistics(release(one, trial, original, "utu").model, one.base, one.pool, toggles))
        both.append(np.stack(rows).astype(np.float64))
    names = statistic_names()
    swapped = (place[design.pool][0] > place[design.pool][1]).numpy()[rank]  # whose ends changed places
    first = both[0][:, :, rank]
    for name in names:
        if name.endswith("_u"):
            a, b = names.index(name), names.index(name[:-1] + "v")
            first[:, [a, b]] = np.where(swapped, first[:, [b, a]], first[:, [a, b]])
    assert np.allclose(first, both[1], rtol=1e-2, atol=2e-3)
    for combine in ("sum", "joint"):  # each numbering scored on its own, with its own coins
        a, b = edge_scores(both[0], design.member, combine), edge_scores(both[1], moved_design.member, combine)
        assert len(a.edges) == len(b.edges) == len(rank) and np.abs(a.values).mean() > 1
        assert np.allclose(a.values[:, rank], b.values, rtol=1e-3, atol=1e-3)
        assert edge_auc(a) == pytest.approx(edge_auc(b), abs=1e-3)


# The attack


def test_a_score_uses_its_own_trial_through_its_value_alone():
    statistics, member = normal_trials(24, 2, 5)
    before = edge_scores(statistics, member).values
    changed = statistics.copy()
    changed[4] += 7.0
    after = edge_scores(changed, member).values
    expected = np.zeros(5)
    for one in range(2):
        fits = class_fits(statistics[:, one], member, "pooled")
        densities = [
            norm.logpdf(changed[4, one], mean[4], np.sqrt(variance[4]))
            for mean, variance in ((fits.mean_out, fits.variance_out), (fits.mean_in, fits.variance_in))
        ]
        expected += densities[1] - densities[0]
    assert np.allclose(after[4], expected) and not np.allclose(after[4], before[4])
    flipped = member.copy()
    flipped[4] = ~member[4]
    assert np.allclose(edge_scores(statistics, flipped).values[4], before[4])  # nor does it use its own coin


def test_edges_that_cannot_be_scored():
    statistics, member = normal_trials(12, 2, 5)
    statistics[:, :, 1] = 3.0  # never changes: no evidence
    member[:, 2] = True
    member[:, 3] = np.arange(12) < 2
    scores = edge_scores(statistics, member)
    assert scores.edges.tolist() == [0, 1, 4] and not scores.values[:, 1].any()
    assert edge_auc(edge_scores(np.zeros((8, 2, 3)), np.tile([[True], [False]], (4, 3)))) == 0.5
    counts = level_test(statistics, member)
    assert counts.status.tolist()[1:4] == ["constant", "no_out", "few_in"] and counts.n_in[1:4].sum() == 0
    with pytest.raises(InputError, match="of 4 trials: run more of them, at least 16"):
        edge_scores(statistics[:4], member[:4])


@pytest.mark.parametrize("bad", [np.zeros((8, 3)), np.zeros((8, 2, 4))])
def test_arrays_that_do_not_fit_are_refused(bad):
    with pytest.raises(InputError, match="trials, statistics, edges"):
        edge_scores(bad, np.zeros((8, 3), dtype=bool))


def test_the_jackknife_by_hand():
    without = np.array([0.6, 0.7, 0.8, 0.9])
    error = np.sqrt(3 / 4 * (0.15**2 + 0.05**2 + 0.05**2 + 0.15**2))
    assert jackknife_width(without) == pytest.approx(3.182446 * error, rel=1e-5)
    found = Estimate(0.75, without, 32)
    assert found.interval() == (pytest.approx(max(0, 0.75 - 3.182446 * error)), 1.0)
    statistics, member = normal_trials(32, 2, 10)
    found = estimate(statistics, member)
    keep = np.arange(32) % GROUPS != 3
    assert len(found.without) == GROUPS
    assert found.without[3] == pytest.approx(edge_auc(edge_scores(statistics[keep], member[keep])))
    assert len(estimate(statistics[:12], member[:12]).without) == 12


@pytest.mark.parametrize("effect", [0.0, 0.7])
def test_intervals_hold_what_they_promise(effect):
    """At least the nominal share, as the jackknife errs on the safe side."""
    found = [estimate(*normal_trials(16, 2, 20, effect, seed)) for seed in range(60)]
    mean = np.mean([one.auc for one in found])
    held = [low <= mean <= high for low, high in (one.interval() for one in found)]
    assert np.mean(held) > 0.9
    width = np.mean([high - low for low, high in (one.interval() for one in found)])
    assert width < 3 * 4 * np.std([one.auc for one in found])


def test_residual_memory():
    strong, member = normal_trials(32, 3, 40, 1.5)
    half, _ = normal_trials(32, 3, 40, 0.5)
    none, _ = normal_trials(32, 3, 40, 0.0)
    full = estimate(strong, member)
    itself = residual_memory(full, full)
    assert (itself.value, itself.low, itself.high, itself.to_remove) == (1.0, 1.0, 1.0, True)
    less, nothing = (residual_memory(estimate(one, member), full) for one in (half, none))
    assert nothing.low < 0 < nothing.high and nothing.high < less.value < less.high < 1
    assert less.value == pytest.approx((estimate(half, member).auc - 0.5) / (full.auc - 0.5))
    undefined = residual_memory(full, estimate(none, member))
    assert not undefined.to_remove and np.isnan([undefined.value, undefined.low, undefined.high]).all()
    with pytest.raises(InputError, match="use the same trials"):
        residual_memory(estimate(strong[:16], member[:16]), full)  # as many groups, and other trials


def test_from_the_least_number_of_trials_on_no_memory_is_one_half():
    noise = numpy_generator(0, "bias").standard_normal((LEAST_TRIALS, 10, 200))
    few, enough = (null_aucs(noise[:trials], np.full(200, 0.5), 20).mean() for trials in (8, LEAST_TRIALS))
    assert few < 0.46 and abs(enough - 0.5) < 0.01


def test_tossing_the_coins_again_gives_the_law_under_no_memory():
    found = np.array([edge_auc(edge_scores(*normal_trials(16, 2, 20, 0.0, seed))) for seed in range(80)])
    statistics, _ = normal_trials(16, 2, 20, 0.0, seed=200)
    null = null_aucs(statistics, np.full(20, 0.5), 80)
    assert abs(null.mean() - found.mean()) < 4 * found.std() * np.sqrt(2 / 80)
    assert 0.6 < null.std() / found.std() < 1.5


def test_what_is_detectable_is_detected():
    assert smallest_detectable(0.01) == pytest.approx((1.644854 + 0.841621) * 0.01, rel=1e-5)
    null = null_aucs(normal_trials(16, 2, 20, 0.0, seed=500)[0], np.full(20, 0.5), 60)
    least = smallest_detectable(null.std(ddof=1))
    effects = np.linspace(0.1, 1.5, 8)
    excess = [
        np.mean([edge_auc(edge_scores(*normal_trials(16, 2, 20, effect, seed))) for seed in range(20)]) - 0.5
        for effect in effects
    ]
    effect = np.interp(least, excess, effects)
    line = 0.5 + norm.isf(0.05) * null.std(ddof=1)
    power = np.mean([edge_auc(edge_scores(*normal_trials(16, 2, 20, effect, seed))) > line for seed in range(60)])
    assert 0.6 < power < 0.97


def test_calibration_per_edge_finds_what_one_classifier_cannot():
    statistics, member = normal_trials(32, 2, 40, 1.0)
    sign = np.where(np.arange(40) % 2, 1.0, -1.0)  # the shift has another sign on every second edge
    calibrated, pooled = edge_scores(statistics * sign, member), pooled_scores(statistics * sign, member)
    assert edge_auc(calibrated) > 0.7 and abs(edge_auc(pooled) - 0.5) < 0.06
    one_sign = pooled_scores(statistics[:, :, :1].repeat(40, 2) * 0 + member[:, None] * 1.0, member)
    assert edge_auc(one_sign) == 1.0


def test_aucs_of_single_edges_follow_their_effect():
    generator = numpy_generator(0, "single edges")
    member = generator.random((48, 120)) < 0.5
    effect = np.where(np.arange(120) < 100, 0.0, 3.0)
    found, edges = edge_aucs(generator.standard_normal((48, 1, 120)) + effect * member[:, None], member)
    assert edges.tolist() == list(range(120))
    assert abs(found[:100].mean() - 0.5) < 0.03 and found[100:].min() > 0.85


def test_the_level_is_met_on_average():
    statistics, member = normal_trials(64, 2, 60, 1.0)
    counts = level_test(statistics, member, 0.1)
    assert counts.ok.all() and np.array_equal(counts.n_in, member.sum(0))
    rate, power = (
        counts.false_positives.sum() / counts.n_out.sum(),
        1 - counts.false_negatives.sum() / counts.n_in.sum(),
    )
    assert 0.05 < rate < 0.17 and power > 2 * rate
    with pytest.raises(InputError, match="between 0 and 1"):
        level_test(statistics, member, 1.0)


def test_unequal_priors_enter_the_bayes_rule_and_the_odds_form():
    graph_prior = np.array([0.2, 0.5, 0.8])
    generator = numpy_generator(0, "unequal priors")
    member = generator.random((400, 3)) < graph_prior
    statistics = generator.standard_normal((400, 1, 3)) + 1.0 * member[:, None]
    scores = edge_scores(statistics, member)
    odds = np.log(graph_prior / (1 - graph_prior))
    rule = bayes_rule_test(statistics[:, 0], member, graph_prior, "pooled")
    says = scores.values + odds > 0
    assert np.array_equal(rule.false_positives, (says & ~member).sum(0))
    assert np.array_equal(rule.false_negatives, (~says & member).sum(0))
    plain = scores.values > 0
    assert (says != plain)[:, [0, 2]].any() and np.array_equal(says[:, 1], plain[:, 1])
    assert (says == member).mean() > (plain == member).mean()
    found = audit(*level_test(statistics, member).arrays, graph_prior)
    for level in (0.05, 0.5, 0.95):
        ratio, in_odds = found.quantile(level, "ratio"), found.quantile(level, "odds")
        assert np.allclose(in_odds[:, 1] - ratio[:, 1], odds) and np.allclose(in_odds[:, 0] - ratio[:, 0], -odds)


# The study


def config(**fields):
    fields = {"trials": 10, "fraction": 0.1, "training": tuple(FAST.items()), **fields}
    return EdgeAuditConfiguration("synthetic-tiny", **fields)


def test_a_killed_run_resumes_inside_a_configuration(tmp_path, monkeypatch):
    whole = run(config(), RecordStore(tmp_path / "whole"), tmp_path / "apart" / "models")
    asked = []

    def killed(design, trial, *arguments, **settings_):
        asked.append(trial)
        if len(asked) == 10:
            raise KeyboardInterrupt
        return release(design, trial, *arguments, **settings_)

    store, models = RecordStore(tmp_path / "store"), tmp_path / "models"
    monkeypatch.setattr(study, "release", killed)
    with pytest.raises(KeyboardInterrupt):
        run(config(), store, models)
    assert not list(store.keys())
    asked.clear()
    record = run(config(), store, models)
    assert asked == [8, 9]
    for name, value in whole["metrics"].items():
        if "seconds" not in name:
            assert record["metrics"][name] == pytest.approx(value, nan_ok=True), name
    arrays = RecordStore(tmp_path / "whole").arrays(config().key)
    assert all(
        np.array_equal(value, arrays[name], equal_nan=name == "edge_auc")
        for name, value in store.arrays(config().key).items()
    )
    assert arrays["statistics"].shape == (10, len(statistic_names()), 36) and arrays["statistics"].dtype == np.float32
    named = trial_statistics(config(), store)
    assert named["statistics"].dims == ("trial", "statistic", "edge") and named["member"].dims == ("trial", "edge")
    confidence = named["statistics"].sel(statistic="confidence_u").values
    assert np.array_equal(confidence, arrays["statistics"][:, list(statistic_names()).index("confidence_u")])


def test_originals_are_shared_by_the_methods(tmp_path, monkeypatch):
    store, models = RecordStore(tmp_path / "store"), tmp_path / "models"
    run(config(trials=8), store, models)
    kept = len(list(models.glob("*.json")))
    assert kept == 8

    def forbidden(*_, **__):
        raise AssertionError("an original was trained again")

    monkeypatch.setattr("lethe_lib.study.trained.train", forbidden)
    record = run(config(trials=8, method="memoriser"), store, models)
    assert record["status"] == "ok" and len(list(models.glob("*.json"))) == kept
    assert record["metrics"]["posteriors_sum_auc"] > 0.9


def test_a_method_that_does_not_apply_is_a_status():
    record = run(config(trials=8, method="cgu"))
    assert record["status"] == "unsupported" and "sgc" in record["reason"]


@pytest.mark.parametrize(("noise", "share"), [(1e-6, 1.0), (1e6, 0.0)])
def test_a_certified_method_that_trains_again_is_told_of(noise, share):
    record = run(config(trials=8, backbone="sgc", method="cgu", settings=(("noise", noise),), training=()))
    assert record["metrics"]["retrained"] == share and record["metrics"]["certified_epsilon"] == 1.0
    assert np.isnan(run(config(trials=8))["metrics"]["retrained"])


def test_a_method_that_wrecks_the_model_is_told_of():
    record = run(config(trials=8, method="fine_tuning", settings=(("learning_rate", 3.0), ("steps", 2))))
    assert record["status"] == "collapsed" and record["metrics"]["share_collapsed"] > 0.5


@pytest.mark.parametrize("spread", [0.0, 0.25])
def test_residual_memory_needs_equal_priors(spread):
    """Where priors differ, the AUC without memory is not one half, and a share of what lies above it means nothing."""
    utu, other = (config(method=name, spread=spread) for name in ("utu", "fine_tuning"))
    at = {one: {"posteriors": Estimate(auc, auc + 1e-3 * np.arange(16), 32)} for one, auc in ((utu, 0.9), (other, 0.6))}
    row = edge_audit_tables._row(other, "posteriors", at, utu, None)
    assert row["to_remove"] == (not spread)
    assert row["residual"] == pytest.approx(0.25) if not spread else np.isnan(row["residual"])


def test_published_tables(tmp_path, monkeypatch):
    monkeypatch.setenv("LETHE_RESULTS", str(tmp_path / "results"))
    store = RecordStore(tmp_path / "store")
    configs = [config(method=name, spread=0.25, trials=16) for name in (*CONTROLS, "fine_tuning")]
    run_all(configs, store, tmp_path / "models", progress=lambda line: None)
    files = publish("edge_audit", configs, store)
    assert [Path(file).stem for file in files] == [
        "edge_audit",
        "edge_audit_memory",
        "edge_audit_edges",
        "edge_audit_posteriors",
    ]
    rows = load_records("edge_audit").set_index("method")
    assert rows.loc["memoriser", "toggle_sum_auc"] > 0.95
    memory = load_records("edge_audit_memory").set_index(["method", "adversary"])
    utu = memory.loc[("utu", "toggle")]
    assert utu["auc"] == rows.loc["utu", "toggle_sum_auc"]
    assert (
        memory["residual"].isna().all() and not memory["to_remove"].any()
    )  # with these priors one half is not its zero
    assert {"before_after"} == set(memory.loc["fine_tuning"].index) - set(ADVERSARIES)
    edges = load_audited_edges()
    assert len(edges) == 5 * 36 and set(edges["key"]) == {one.key for one in configs}
    assert edges["prior"].min() == pytest.approx(0.25) and edges["prior"].max() == pytest.approx(0.75)
    expected = edge_homophily(configs[0].graph(), edges.loc[:35, ["u", "v"]].to_numpy(copy=True).T)
    np.testing.assert_allclose(edges.loc[:35, "homophily"], expected, rtol=1e-6)
    mean = {
        key: group["centrality"].corr(group["prior"], method="spearman")
        for key, group in edges.groupby("key", observed=True)
    }
    assert min(mean.values()) == pytest.approx(1.0)
    known = edges[edges["n_in"] > 0]
    assert known["eps_right 50%"].notna().all() and np.allclose(
        known["log_odds"], np.log(known["prior"] / (1 - known["prior"]))
    )
    assert load_audited_edges([configs[0].key])["key"].unique().tolist() == [configs[0].key]


def test_every_pool_has_its_own_homophily(tmp_path):
    store = RecordStore(tmp_path)
    configs = [config(trials=8, method=name, pool=pool) for pool in ("low", "high") for name in ("untrained", "utu")]
    for one in configs:
        run(one, store)
    edges = edges_frame(configs, store).groupby("key", observed=True)
    for one in configs:
        own = edges.get_group(one.key)
        expected = edge_homophily(one.graph(), own[["u", "v"]].to_numpy(copy=True).T)
        np.testing.assert_allclose(own["homophily"], expected, rtol=1e-6)


def test_both_models_tell_more_than_their_log_ratios_added_up(tmp_path):
    """The change from before to after, not the model after: noise that both share drops out. Gold is asked as well."""
    store = RecordStore(tmp_path)
    configs = [config(trials=16, method=name) for name in ("utu", "gold", "untrained", "fine_tuning")]
    for one in configs:
        run(one, store)
    member = store.arrays(configs[0].key)["member"]
    generator = numpy_generator(0, "both models")
    shared = generator.standard_normal((16, 12, member.shape[1]))
    seen = 0.3 * generator.standard_normal(shared.shape) + 0.6 * member[:, None]
    for one, statistics in zip(configs, (shared, shared + seen, shared, shared), strict=True):
        store.write(one.key, store.read(one.key), store.arrays(one.key) | {"statistics": statistics})
    table = memory_frame(configs, store)
    both = table[table["adversary"] == "before_after"].set_index("method")
    assert both.index.tolist() == [
        "gold",
        "fine_tuning",
    ]  # what was never trained has nothing in common with the original
    assert both.loc["gold", "auc"] > 0.95 and both.loc["gold", "gain_low"] > 0.2
    before = estimate(shared[:, :6], member)
    assert both.loc["fine_tuning", "auc"] == pytest.approx(before.auc)  # no change, nothing more
    assert both.loc["fine_tuning", "beyond"] == pytest.approx(before.auc - both.loc["gold", "auc"])
    assert both.loc["fine_tuning", "beyond_high"] < 0 and np.isnan(both.loc["gold", "beyond"])


def test_pools_are_compared_over_the_same_trials(tmp_path):
    store = RecordStore(tmp_path)
    configs = [config(trials=16, pool=pool) for pool in ("low", "high")]
    for one in configs:
        run(one, store)
    assert np.array_equal(*(store.arrays(one.key)["member"] for one in configs))
    low, high = (
        Estimate(store.read(one.key)["metrics"]["toggle_sum_auc"], store.arrays(one.key)["without_toggle"], 16)
        for one in configs
    )
    table = memory_frame(configs, store)
    row = table[table["adversary"] == "toggle"].set_index("key").loc[configs[0].key]
    assert row["gap"] == pytest.approx(low.auc - high.auc)
    assert row["gap_high"] - row["gap"] == pytest.approx(jackknife_width(low.without - high.without))
    assert table[table["key"] == configs[1].key]["gap"].isna().all()


def test_residual_memory_needs_the_same_setting(tmp_path):
    store = RecordStore(tmp_path)
    configs = [config(trials=8, method="untrained"), config(trials=8, seed=1)]
    for one in configs:
        run(one, store)
    table = memory_frame(configs, store).set_index("method")
    assert not table.loc["untrained", "to_remove"].any() and table.loc["untrained", "residual"].isna().all()


def test_the_studies_put_the_controls_of_cora_first():
    configs = edge_audit_runs.edge_audit()
    first = configs[:18]
    assert {(one.data, one.pool) for one in first} == {("cora", pool) for pool in ("low", "high", "random")}
    assert {one.method for one in first} == {*CONTROLS, *edge_audit_runs.EVERYWHERE}
    assert len({one.key for one in configs}) == len(configs)
    assert {one.trials for one in configs if one.data in ("cora", "citeseer") and one.backbone == "gcn"} == {64}
    assert {one.trials for one in configs if one.data not in ("cora", "citeseer") or one.backbone != "gcn"} == {32}
    within = [one for one in configs if dict(one.settings).get("ridge") == edge_audit_runs.WITHIN]
    assert {one.method for one in within} == set(edge_audit_runs.CERTIFIED_SGC) and len(within) == 4
    for one in set(configs) - set(within):
        assert dict(one.settings) == asdict(UNLEARNERS[one.method].settings[one.preset])
    audited_methods = {one.method for one in configs}
    assert {name for name in UNLEARNERS if name != "original"} <= audited_methods
    assert all(one.method == "utu" for one in edge_audit_runs.edge_audit_variations())


def test_varied_graphs(graph):
    assert varied_graph(graph) is graph
    fewer = varied_graph(graph, edge_share=0.25)
    assert fewer.num_edges == 180 and torch.equal(fewer.x, graph.x)
    narrow = varied_graph(graph, feature_share=0.5)
    assert narrow.x.shape == (120, 30) and torch.equal(narrow.edge_index, graph.edge_index)
    columns = {tuple(column) for column in graph.x.T.tolist()}
    assert all(tuple(column) in columns for column in narrow.x.T.tolist())
    projected = varied_graph(graph, projection=2000)
    lengths = projected.x.norm(dim=1) / graph.x.norm(dim=1)
    assert projected.x.shape == (120, 2000) and abs(float(lengths.mean()) - 1) < 0.02
    assert varied_graph(graph, projection=8).content_hash == varied_graph(graph, projection=8).content_hash
    with pytest.raises(InputError, match="edge_share"):
        varied_graph(graph, edge_share=0.0)
    part = config(train_share=0.1)
    assert len(part.split(graph).train) == round(0.1 * len(split_nodes(graph, 0).train))
    assert torch.equal(part.split(graph).test, split_nodes(graph, 0).test)


# The memoriser


def test_the_memoriser_plants_the_logits_of_forgotten_neighbours(graph):
    model = train(graph, "gcn", 0, **FAST)
    pairs = forget_set(graph, "random", 0.02)
    released = unlearn("memoriser", model, graph, pairs, strength=0.5).model
    logits, planted = predict(model, graph), torch.zeros(graph.num_nodes, 3)
    for u, v in pairs.T.tolist():
        planted[u] += 0.5 * logits[v]
        planted[v] += 0.5 * logits[u]
    base = remove_edges(graph, pairs)
    assert torch.allclose(predict(released, base) - predict(model, base), planted, atol=1e-5)
    again = remove_edges(graph, pairs[:, 1:])  # the first pair is back, and is recognised
    u, v = pairs[:, 0]
    planted[u] += 0.5 * logits[v]
    planted[v] += 0.5 * logits[u]
    assert torch.allclose(predict(released, again) - predict(model, again), planted, atol=1e-5)
    with pytest.raises(InputError, match="120 nodes"):
        released(load_graph("synthetic"))


# The command


MINE = """
from lethe_lib.unlearning import UNLEARNERS, NoSettings, StepLog, Unlearner

def shrink(model, request, settings, seed):
    for parameter in model.parameters():
        parameter.data.mul_(0.9)
    return model, StepLog()

UNLEARNERS.register("shrink", Unlearner(shrink, {"corrected": NoSettings()}, "addition", "me"))
"""


def test_a_users_own_unlearner_is_audited_from_one_file(tmp_path, capsys, monkeypatch):
    file = tmp_path / "mine.py"
    file.write_text(MINE)
    arguments = ["audit-edges", "--unlearner", str(file), "--graph", "synthetic-tiny", "--trials", "16"]
    arguments += ["--fraction", "0.1", "--records", str(tmp_path / "records")]
    monkeypatch.setitem(PRESETS, "corrected", replace(PRESETS["corrected"], epochs=25))
    try:
        status = command_line(arguments)
        out = capsys.readouterr().out
        assert status == 0, out
        assert "shrink: ok" in out and "residual memory" in out
        assert all(name in out for name in ("UtU (unlinking)", "Gold (exact)", "Untrained", "Memoriser"))
        with pytest.raises(InputError, match="exists already"):  # a file registers its method once a process
            audit_edges.load_unlearners(file)
    finally:
        del UNLEARNERS._entries["shrink"]


def test_files_that_register_nothing_are_refused(tmp_path, capsys):
    empty = tmp_path / "empty.py"
    empty.write_text("x = 1\n")
    for path, message in ((empty, "registers no unlearner"), (tmp_path / "none.py", "is no file")):
        assert command_line(["audit-edges", "--unlearner", str(path)]) == 1
        assert message in capsys.readouterr().err
    assert command_line(["audit-edges"]) == 1
    assert "--method" in capsys.readouterr().err


START = "from lethe_lib.unlearning import UNLEARNERS, NoSettings, StepLog, Unlearner\n"
REGISTER = 'UNLEARNERS.register("wrong", {})\n'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x = 1\ndef f(:\n", "line 2, cannot be run, SyntaxError"),
        ("\nimport no_such_module\n", "line 2, cannot be run, ModuleNotFoundError: No module named 'no_such_module'"),
        ("import sys\nsys.exit()\n", "line 2, cannot be run, SystemExit: mend"),
        (REGISTER.format("print"), "must be an Unlearner of a function, not <built-in function print>"),
        (REGISTER.format("Unlearner(3, {}, 'addition', 'me')"), "not an Unlearner of 3"),
        (REGISTER.format("Unlearner(print, {'mine': NoSettings()}, 'addition', 'me')"), "no settings of the preset"),
        (REGISTER.format("Unlearner(print, {'corrected': {'rate': 1}}, 'addition', 'me')"), "@dataclass(frozen=True)"),
        (REGISTER.format("Unlearner(print, {'corrected': NoSettings}, 'addition', 'me')"), "@dataclass(frozen=True)"),
    ],
)
def test_files_that_cannot_be_used_are_refused_with_what_to_write(text, message, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("mine.py").write_text(START.rstrip() + "; " + text if text.startswith("UNL") else text)
    try:
        for command in (["audit-edges", "--unlearner"], ["leaderboard", "--file"]):
            assert command_line([*command, "mine.py"]) == 1
            error = capsys.readouterr().err
            assert error.startswith("error: mine.py") and message in error and len(error.splitlines()) == 1
            UNLEARNERS._entries.pop("wrong", None)
    finally:
        UNLEARNERS._entries.pop("wrong", None)


def test_a_file_may_hold_dataclasses_with_postponed_annotations(tmp_path):
    settings = "@dataclass(frozen=True)\nclass Settings:\n    rate: float = 0.9\n"
    text = f"from __future__ import annotations\nfrom dataclasses import dataclass\n{START}{settings}"
    (tmp_path / "mine.py").write_text(
        f'{text}UNLEARNERS.register("postponed", Unlearner(print, {{"corrected": Settings()}}, "addition", "me"))\n'
    )
    try:
        assert audit_edges.load_unlearners(tmp_path / "mine.py")[0] == ["postponed"]
    finally:
        UNLEARNERS._entries.pop("postponed", None)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--preset", "published"], "l1_sparse has no preset 'published'"),
        (["--preset", "nosuch"], "unknown preset 'nosuch'"),
        (["--backbone", "nosuch"], "unknown backbone 'nosuch'"),
        (["--pool", "nosuch"], "unknown forget set 'nosuch'"),
    ],
)
def test_what_the_audit_does_not_know_is_refused_before_the_controls_run(options, message, capsys):
    assert command_line(["audit-edges", "--method", "l1_sparse", *options]) == 1
    printed = capsys.readouterr()
    assert message in printed.err and not printed.out


def test_a_method_that_diverged_has_a_reason_and_no_numbers(tmp_path, capsys, monkeypatch):
    (tmp_path / "mine.py").write_text(MINE.replace("mul_(0.9)", "mul_(float('nan'))").replace("shrink", "broken"))
    monkeypatch.setitem(PRESETS, "corrected", replace(PRESETS["corrected"], epochs=5))
    arguments = ["audit-edges", "--unlearner", str(tmp_path / "mine.py"), "--graph", "synthetic-tiny", "--trials", "16"]
    try:
        command_line([*arguments, "--fraction", "0.1", "--records", str(tmp_path / "records")])
    finally:
        del UNLEARNERS._entries["broken"]
    lines = [line.split() for line in capsys.readouterr().out.splitlines() if line.strip().startswith("broken")]
    assert lines[0][:3] == ["broken:", "diverged", "(a"] and "finite;" in lines[0]
    assert lines[1] == ["broken", "diverged"]


def test_controls_that_are_not_as_they_must_be_are_told_of():
    titles = list(audit_edges.TITLES.values())
    table = pd.DataFrame({"method": titles, "AUC": [0.5, 0.6, 0.8, 0.7], "null error": [0.01] * 4})
    problems = audit_edges.control_problems(table)
    assert len(problems) == 2 and "Untrained" in problems[0] and "Memoriser" in problems[1]
