"""The request, the controls, UnlinkToUnlearn and Fine-tuning, and the contract that every registered method obeys."""

import copy
import os
from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch_geometric.data import Data

from lethe_lib.data import Split, canonical, load_graph, undirected_edges
from lethe_lib.errors import InputError
from lethe_lib.models import BACKBONES, TrainingRun, build, predict, retrain, train
from lethe_lib.structure import affected_nodes, forget_set, remove_edges
from lethe_lib.unlearning import (
    CORRECTIVE,
    PUBLISHED,
    UNLEARNERS,
    EdgeForgetSpec,
    EdgeRequest,
    NoSettings,
    StepLog,
    Unlearner,
    unlearn,
)

REAL = pytest.mark.skipif(not os.environ.get("LETHE_DATA"), reason="needs the real graphs: set LETHE_DATA")
NO_PAIRS = torch.empty((2, 0), dtype=torch.int64)
CONTROLS = [name for name, entry in UNLEARNERS.items() if entry.kind == "control"]


@pytest.fixture(scope="module")
def graph():
    return load_graph("synthetic-tiny")


@pytest.fixture(scope="module")
def model(graph):
    return train(graph, "gcn", seed=0, epochs=80, hidden=16)


def same_weights(a, b):
    return all(torch.equal(p, q) for p, q in zip(a.state_dict().values(), b.state_dict().values(), strict=True))


def random_graph(seed, nodes=25, edges=30):
    generator = torch.Generator().manual_seed(seed)
    return canonical(
        Data(
            x=torch.randn(nodes, 5, generator=generator),
            edge_index=torch.randint(0, nodes, (2, edges), generator=generator),
            y=torch.arange(nodes) % 2,
        ),
        "random",
        2,
    )


def untrained(data, backbone="gcn", seed=0, **architecture):
    """A model that never trained but has a training_run, so that methods can read its split."""
    model = build(data, backbone, seed, **architecture)
    order = torch.randperm(data.num_nodes, generator=torch.Generator().manual_seed(seed))
    split = Split(*(part.sort().values for part in order.split([15, 5, data.num_nodes - 20])))
    settings_ = {"learning_rate": 0.01, "weight_decay": 5e-4, "epochs": 5, **architecture}
    model.training_run = TrainingRun(backbone, seed, "corrected", settings_, split)
    return model


# The request


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10_000), st.sampled_from(list(BACKBONES)), st.integers(1, 3))
def test_movement_is_zero_outside_the_reach(seed, backbone, depth):
    data = random_graph(seed)
    model = untrained(data, backbone, layers=depth).double()
    pairs = undirected_edges(data)[:, :2]
    request = EdgeRequest(model, data, pairs, EdgeForgetSpec("affected", threshold=1e-12, train_only=False))
    ball = affected_nodes(data, pairs, model.reach)
    assert torch.isin(request.forget_nodes, ball).all()


def test_linear_model_moves_exactly_the_ball():
    data = random_graph(3)
    model = untrained(data, "sgc", layers=2).double()
    pairs = undirected_edges(data)[:, :2]
    request = EdgeRequest(model, data, pairs, EdgeForgetSpec("affected", threshold=1e-12, train_only=False))
    assert torch.equal(request.forget_nodes, affected_nodes(data, pairs, 2))


def test_removal_takes_both_directions_and_nothing_else(graph, model):
    pairs = forget_set(graph, "random", 0.1)
    request = EdgeRequest(model, graph, pairs)
    before = set(map(tuple, graph.edge_index.T.tolist()))
    after = set(map(tuple, request.retained.edge_index.T.tolist()))
    gone = {tuple(p) for p in pairs.T.tolist()} | {tuple(p) for p in pairs.flip(0).T.tolist()}
    assert before - after == gone and after < before
    assert request.retained.num_edges == graph.num_edges - 2 * pairs.shape[1]


def test_forget_and_remaining_training_nodes_tile_the_training_set(graph, model):
    request = EdgeRequest(model, graph, forget_set(graph, "low"), CORRECTIVE)
    together = torch.cat([request.forget_nodes, request.retain_nodes]).sort().values
    assert torch.equal(together, model.training_run.split.train)


def test_mappings(graph, model):
    pairs = forget_set(graph, "low")
    split = model.training_run.split
    default = EdgeRequest(model, graph, pairs)
    endpoints = torch.unique(pairs)
    assert torch.equal(default.forget_nodes, endpoints[torch.isin(endpoints, split.train)])
    assert torch.equal(default.retain_nodes, split.train)
    assert default.forget_graph is graph and default.retain_graph is default.retained
    published = EdgeRequest(model, graph, pairs, PUBLISHED)
    assert torch.equal(published.forget_nodes, affected_nodes(graph, pairs, 2))
    assert len(published.forget_nodes) + len(published.retain_nodes) == graph.num_nodes
    assert published.retain_graph is graph
    all_movement = EdgeRequest(model, graph, pairs, EdgeForgetSpec("displaced", share=1.0, train_only=False))
    most = EdgeRequest(model, graph, pairs, EdgeForgetSpec("displaced", share=0.5, train_only=False))
    moved, total = most.movement[most.forget_nodes].sum(), most.movement.sum()
    assert moved >= 0.5 * total and len(most.forget_nodes) < len(all_movement.forget_nodes)
    smallest = most.movement[most.forget_nodes].min()
    assert moved - smallest < 0.5 * total  # no smaller set holds the share
    weighted = EdgeRequest(model, graph, pairs, EdgeForgetSpec(weights="displacement"))
    assert float(weighted.forget_weights.mean()) == pytest.approx(1.0, abs=1e-5)
    moved = weighted.movement[weighted.forget_nodes]
    assert torch.allclose(weighted.forget_weights * moved.mean(), moved, atol=1e-5)


@pytest.mark.parametrize(
    "arguments", [{"forget_nodes": "khop"}, {"retain_graph": "both"}, {"share": 0.0}, {"weights": "degree"}]
)
def test_unknown_mapping_is_refused(arguments):
    with pytest.raises(InputError):
        EdgeForgetSpec(**arguments)


@pytest.mark.parametrize(
    ("pairs", "message"),
    [
        (torch.tensor([[0], [0]]), "loop"),
        (torch.tensor([[0, 0], [0, 0]]), "loop"),
        (torch.tensor([[0], [10_000]]), "node"),
        (torch.zeros(3, 2, dtype=torch.long), "shape"),
    ],
)
def test_bad_pairs_are_refused(graph, model, pairs, message):
    with pytest.raises(InputError, match=message):
        unlearn("utu", model, graph, pairs)


def test_pairs_that_are_no_edges_or_come_twice_are_refused(graph, model):
    edges = undirected_edges(graph)
    present = set(map(tuple, edges.T.tolist()))
    absent = next((0, j) for j in range(1, graph.num_nodes) if (0, j) not in present)
    with pytest.raises(InputError, match="not edges|no edge|is not an edge"):
        unlearn("utu", model, graph, torch.tensor([absent]).T)
    with pytest.raises(InputError, match="more than once"):
        unlearn("utu", model, graph, torch.cat([edges[:, :1], edges[:, :1].flip(0)], 1))


def test_a_model_without_training_run_is_refused(graph):
    with pytest.raises(InputError, match="training_run"):
        unlearn("utu", build(graph), graph, forget_set(graph, "low"))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"method": "fine_tunning"}, "Did you mean 'fine_tuning'"),
        ({"method": "fine_tuning", "preset": "paper"}, "corrected or published"),
        ({"method": "fine_tuning", "step": 3}, "It has: steps, optimiser"),
        ({"method": "fine_tuning", "optimiser": "lbfgs"}, "adam or sgd"),
    ],
)
def test_unknown_names_are_refused(graph, model, arguments, message):
    with pytest.raises(InputError, match=message):
        unlearn(model=model, data=graph, forget=forget_set(graph, "low"), **arguments)


# The contract: every method, backbone and hostile graph


def hostile_graphs():
    star = torch.stack([torch.zeros(24, dtype=torch.long), torch.arange(1, 25)])
    two_parts = torch.cat([torch.combinations(torch.arange(6)).T, torch.combinations(torch.arange(12, 18)).T], 1)
    for name, pairs in {"star": star, "disconnected with isolated nodes": two_parts}.items():
        x = torch.randn(25, 5, generator=torch.Generator().manual_seed(1))
        yield name, canonical(Data(x=x, edge_index=pairs, y=torch.arange(25) % 3), name, 3)


HOSTILE = dict(hostile_graphs())


@pytest.mark.parametrize("backbone", list(BACKBONES))
@pytest.mark.parametrize("method", list(UNLEARNERS))
@pytest.mark.parametrize("graph_name", list(HOSTILE))
@pytest.mark.parametrize("share", ["one edge", "every edge"])
def test_contract(method, backbone, graph_name, share):
    data = HOSTILE[graph_name]
    model = untrained(data, backbone)
    pairs = undirected_edges(data)[:, : 1 if share == "one edge" else None]
    weights, edges = copy.deepcopy(model.state_dict()), data.edge_index.clone()
    results = [unlearn(method, model, data, pairs, seed=3) for _ in range(2)]
    if results[0].status == "unsupported":
        assert results[0].reason
        return
    first, second = results
    assert first.status in ("ok", "collapsed", "no_forget_samples")
    assert same_weights(first.model, second.model)  # same seed, same answer
    assert all(torch.equal(weights[k], v) for k, v in model.state_dict().items())  # the caller's model is untouched
    assert torch.equal(data.edge_index, edges) and not model.training
    assert not first.model.training and first.model.generator is None
    assert torch.isfinite(predict(first.model, first.request.retained)).all()
    assert first.request.retained.num_edges == data.num_edges - 2 * pairs.shape[1]


@pytest.mark.parametrize("method", [m for m in UNLEARNERS if UNLEARNERS[m].needs_request])
def test_empty_request_changes_nothing(graph, model, method):
    result = unlearn(method, model, graph, NO_PAIRS)
    assert result.status == "noop" and same_weights(result.model, model)


@pytest.mark.parametrize("method", list(UNLEARNERS))
def test_no_label_outside_the_training_set_is_read(graph, model, method):
    pairs = forget_set(graph, "low")
    held_out = torch.cat([model.training_run.split.val, model.training_run.split.test])
    if method == "gold":  # early stopping reads validation labels, by design
        held_out = model.training_run.split.test
    other = copy.copy(graph)
    other.y = graph.y.clone()
    other.y[held_out] = (graph.y[held_out] + 1) % graph.num_classes
    assert same_weights(unlearn(method, model, graph, pairs).model, unlearn(method, model, other, pairs).model)


def test_published_fine_tuning_does_read_test_labels(graph, model):
    pairs = forget_set(graph, "low")
    other = copy.copy(graph)
    other.y = (graph.y + 1) % graph.num_classes
    other.y[model.training_run.split.train] = graph.y[model.training_run.split.train]
    runs = [unlearn("fine_tuning", model, g, pairs, preset="published").model for g in (graph, other)]
    assert not same_weights(*runs)


# Fresh weights and random pairs of nodes are drawn by number.
@pytest.mark.parametrize("method", [m for m in UNLEARNERS if m not in ("gold", "untrained", "gnn_delete")])
def test_renumbering_the_nodes_renumbers_the_answer(method):
    data = random_graph(7)
    model = untrained(data, "gcn", dropout=0.0)
    order = torch.randperm(25, generator=torch.Generator().manual_seed(2))
    place = torch.argsort(order)
    moved = canonical(Data(x=data.x[order], edge_index=place[data.edge_index], y=data.y[order]), "moved", 2)
    split = model.training_run.split
    moved_model = copy.deepcopy(model)
    parts = (place[part].sort().values for part in (split.train, split.val, split.test))
    moved_model.training_run = replace(model.training_run, split=Split(*parts))
    pairs = undirected_edges(data)[:, :3]
    a = unlearn(method, model, data, pairs)
    b = unlearn(method, moved_model, moved, place[pairs])
    served_a = data if a.serves == "original" else a.request.retained
    served_b = moved if b.serves == "original" else b.request.retained
    assert torch.allclose(predict(a.model, served_a)[order], predict(b.model, served_b), atol=1e-5)


def test_a_method_of_ones_own(graph, model):
    def shrink(model, request, settings, seed):
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.mul_(0.5)
        return model, StepLog()

    UNLEARNERS.register("shrink", Unlearner(shrink, {"corrected": NoSettings()}, "addition", "a test"))
    try:
        result = unlearn("shrink", model, graph, forget_set(graph, "low"))
        assert torch.equal(result.model.layers[0].weight, model.layers[0].weight * 0.5)
        with pytest.raises(InputError, match="exists already"):
            UNLEARNERS.register("shrink", None)
    finally:
        del UNLEARNERS._entries["shrink"]


def test_undeclared_backbone_is_unsupported(graph, model):
    entry = Unlearner(lambda *_: None, {"corrected": NoSettings()}, "addition", "a test", backbones=("sgc",))
    UNLEARNERS.register("linear only", entry)
    try:
        result = unlearn("linear only", model, graph, forget_set(graph, "low"))
        assert result.status == "unsupported" and "sgc" in result.reason and same_weights(result.model, model)
    finally:
        del UNLEARNERS._entries["linear only"]


def test_divergence_and_collapse_are_statuses(graph, model):
    pairs = forget_set(graph, "low")
    broken = unlearn("fine_tuning", model, graph, pairs, optimiser="sgd", learning_rate=1e38)
    assert broken.status == "diverged" and "step" in broken.reason
    wrecked = unlearn("fine_tuning", model, graph, pairs, learning_rate=3.0, steps=2)
    assert wrecked.status == "collapsed" and "validation accuracy" in wrecked.reason


# Gold


def test_gold_on_nothing_with_the_originals_seed_is_the_original(graph, model):
    gold = unlearn("gold", model, graph, NO_PAIRS, seed=model.training_run.seed)
    assert same_weights(gold.model, model)


def test_gold_is_training_on_the_retained_graph(graph, model):
    pairs = forget_set(graph, "high")
    gold = unlearn("gold", model, graph, pairs, seed=5).model
    assert same_weights(gold, retrain(remove_edges(graph, pairs), model.training_run, seed=5))


def test_gold_cannot_read_the_original_weights(graph, model):
    pairs = forget_set(graph, "high")
    other = copy.deepcopy(model)
    with torch.no_grad():
        for parameter in other.parameters():
            parameter.add_(1.0)
    assert same_weights(unlearn("gold", model, graph, pairs).model, unlearn("gold", other, graph, pairs).model)


def test_gold_counts_its_training(graph, model):
    gold = unlearn("gold", model, graph, forget_set(graph, "low"))
    epochs = gold.model.training_run.epochs
    assert gold.steps.backwards == epochs and gold.steps.forwards == 2 * epochs
    assert gold.seconds >= gold.model.training_run.seconds > 0


# UnlinkToUnlearn


def test_utu_keeps_the_weights_and_moves_only_the_ball(graph, model):
    pairs = forget_set(graph, "low")
    result = unlearn("utu", model, graph, pairs)
    assert same_weights(result.model, model)
    moved = (predict(model, graph) != predict(result.model, result.request.retained)).any(1)
    outside = torch.ones(graph.num_nodes, dtype=torch.bool)
    outside[affected_nodes(graph, pairs, 2)] = False
    assert not (moved & outside).any() and moved.any()


def test_utu_is_undone_by_putting_the_edges_back(graph, model):
    result = unlearn("utu", model, graph, forget_set(graph, "low"))
    assert torch.equal(predict(result.model, graph), predict(model, graph))


# Fine-tuning


def test_fine_tuning_without_steps_is_the_identity(graph, model):
    assert same_weights(unlearn("fine_tuning", model, graph, forget_set(graph, "low"), steps=0).model, model)


def test_fine_tuning_stays_at_a_converged_optimum():
    data = random_graph(1)
    model = untrained(data, "sgc", layers=1)
    run = model.training_run
    optimiser = torch.optim.LBFGS(
        model.parameters(), lr=1, max_iter=2000, tolerance_grad=1e-12, tolerance_change=0, line_search_fn="strong_wolfe"
    )
    model.double()

    def loss():
        optimiser.zero_grad()
        value = torch.nn.functional.cross_entropy(model(data)[run.split.train], data.y[run.split.train])
        penalty = run.settings["weight_decay"] / 2 * sum(p.pow(2).sum() for p in model.parameters())
        (value + penalty).backward()
        return value + penalty

    optimiser.step(loss)
    # An edge between nodes of another part: nothing that any training node sees changes.
    isolated = canonical(
        Data(
            x=torch.cat([data.x, torch.zeros(2, 5)]),
            edge_index=torch.cat([data.edge_index, torch.tensor([[25], [26]])], 1),
            y=torch.cat([data.y, torch.zeros(2, dtype=torch.long)]),
        ),
        "with a far edge",
        2,
    )
    result = unlearn("fine_tuning", model, isolated, torch.tensor([[25], [26]]), optimiser="sgd", learning_rate=0.1)
    pairs = zip(model.parameters(), result.model.parameters(), strict=True)
    assert max(float((a - b).detach().abs().max()) for a, b in pairs) < 1e-5


def test_fine_tuning_reads_only_the_retained_graph(graph, model):
    pairs = forget_set(graph, "low")
    retained = remove_edges(graph, pairs)
    entry = UNLEARNERS["fine_tuning"]
    whole = EdgeRequest(model, graph, pairs)
    blind = EdgeRequest(model, retained, NO_PAIRS)  # what is left when the request was never known
    runs = [entry.run(copy.deepcopy(model), r, entry.settings["corrected"], 0)[0] for r in (whole, blind)]
    assert same_weights(*runs)


def test_first_adam_step_is_at_most_the_learning_rate(graph, model):
    result = unlearn("fine_tuning", model, graph, forget_set(graph, "low"), steps=1, learning_rate=1e-3)
    changes = [
        float((a - b).detach().abs().max()) for a, b in zip(model.parameters(), result.model.parameters(), strict=True)
    ]
    assert 0.9e-3 < max(changes) <= 1e-3 * 1.0001


def test_fine_tuning_lowers_the_retained_training_loss(graph, model):
    result = unlearn("fine_tuning", model, graph, forget_set(graph, "low"), steps=30, learning_rate=1e-2)
    nodes, served = model.training_run.split.train, result.request.retained
    losses = [
        float(torch.nn.functional.cross_entropy(predict(m, served)[nodes], graph.y[nodes]))
        for m in (model, result.model)
    ]
    assert losses[1] < losses[0]
    assert result.steps.forwards == result.steps.backwards == len(result.steps.rows) == 30


@REAL
def test_status_of_every_method_on_a_real_graph():
    data = load_graph("cora")
    model = train(data, "gcn", seed=0)
    pairs = forget_set(data, "low")
    for method, entry in UNLEARNERS.items():
        applies = entry.backbones is None or "gcn" in entry.backbones
        assert unlearn(method, model, data, pairs).status == ("ok" if applies else "unsupported")
