"""GNNDelete, its collapse, and UnlinkToUnlearn, which it starts from."""

import copy
import os

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from lethe_lib.attacks import attack, link_teller_influence
from lethe_lib.attacks.influence import exact_model, forward_mode
from lethe_lib.attacks.tangents import has_sparse_tangents
from lethe_lib.data import Split, adjacency, canonical, load_graph, undirected_edges
from lethe_lib.errors import InputError
from lethe_lib.models import BACKBONES, TrainingRun, build, predict, train
from lethe_lib.structure import affected_nodes, endpoint_displacement, forget_set, remove_edges
from lethe_lib.unlearning import EdgeRequest, unlearn
from lethe_lib.unlearning.gnn_delete import (
    DeletionNetwork,
    GnnDeleteSettings,
    delete_with_operators,
    first_direction,
    layer_rows,
)

REAL = pytest.mark.skipif(not os.environ.get("LETHE_DATA"), reason="needs the real graphs: set LETHE_DATA")


def random_graph(seed, nodes=60, edges=70, width=6):
    generator = torch.Generator().manual_seed(seed)
    return canonical(
        Data(
            x=torch.randn(nodes, width, generator=generator),
            edge_index=torch.randint(0, nodes, (2, edges), generator=generator),
            y=torch.arange(nodes) % 3,
        ),
        "random",
        3,
    )


def untrained(data, backbone="gcn", seed=0, **architecture):
    """A model that never trained but has a training_run; biases are not zero, so that their place can be seen."""
    model = build(data, backbone, seed, **architecture)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() == 1:
                parameter.add_(0.1)
    order = torch.randperm(data.num_nodes, generator=torch.Generator().manual_seed(seed))
    split = Split(*(part.sort().values for part in order.split([40, 10, data.num_nodes - 50])))
    model.training_run = TrainingRun(backbone, seed, "corrected", {"weight_decay": 5e-4, **architecture}, split)
    return model


@pytest.fixture(scope="module")
def tiny():
    graph = load_graph("synthetic-tiny")
    return graph, train(graph, "gcn", seed=0, epochs=60, hidden=16)


# UnlinkToUnlearn


@pytest.mark.parametrize("backbone", list(BACKBONES))
def test_unlinking_is_the_original_on_the_retained_graph(backbone):
    data = random_graph(1)
    model = untrained(data, backbone)
    before = predict(model, data)  # whatever the model remembers of this graph must not reach the other one
    pairs = undirected_edges(data)[:, ::10]
    result = unlearn("utu", model, data, pairs)
    fresh = canonical(Data(x=data.x, edge_index=result.request.retained.edge_index, y=data.y), "fresh", 3)
    after = predict(result.model, result.request.retained)
    assert torch.equal(after, predict(copy.deepcopy(model), fresh))
    outside = np.setdiff1d(np.arange(60), affected_nodes(data, pairs, model.reach).numpy())
    assert len(outside) and torch.equal(after[outside], before[outside]) and not torch.equal(after, before)
    nothing = unlearn("utu", model, data, pairs[:, :0])
    assert torch.equal(predict(nothing.model, nothing.request.retained), before)


# GNNDelete


@pytest.mark.parametrize("backbone", list(BACKBONES))
@pytest.mark.parametrize("depth", [1, 2, 3])
def test_no_steps_are_unlinking_bit_for_bit(backbone, depth):
    for data in (random_graph(2), load_graph("synthetic-tiny")):  # dense and sparse features
        model = build(data, backbone, 3, layers=depth)
        model.training_run = TrainingRun(backbone, 3, "corrected", {}, Split(*torch.arange(60).split(20)))
        pairs = undirected_edges(data)[:, ::8]
        deleted, unlinked = (unlearn(method, model, data, pairs, **s).model for method, s in METHODS.items())
        for graph in (data, remove_edges(data, pairs)):
            assert torch.equal(predict(deleted, graph), predict(unlinked, graph))


METHODS = {"gnn_delete": {"epochs": 0}, "utu": {}}


@pytest.mark.parametrize("backbone", list(BACKBONES))
def test_only_operators_learn_and_only_the_region_changes(backbone):
    data = random_graph(3)
    model = untrained(data, backbone)
    pairs = undirected_edges(data)[:, :2]
    result = unlearn("gnn_delete", model, data, pairs, epochs=10, learning_rate=0.05)
    base = result.model.base
    assert all(torch.equal(value, model.state_dict()[name]) for name, value in base.state_dict().items())
    moving = {name for name, parameter in result.model.named_parameters() if parameter.requires_grad}
    assert moving == {"operators.0", "operators.1"}
    region = affected_nodes(data, pairs, 2)
    outside = np.setdiff1d(np.arange(60), region.numpy())
    unlinked, deleted = predict(model, result.request.retained), predict(result.model, result.request.retained)
    assert len(outside) and torch.equal(deleted[outside], unlinked[outside])
    assert not torch.allclose(deleted[region], unlinked[region], atol=1e-3)
    assert result.steps.backwards == 10 and result.steps.forwards == 12 and len(result.steps.rows) == 11


@pytest.mark.parametrize("ends_only", [False, True])
@pytest.mark.parametrize("depth", [2, 3])
def test_nothing_changes_beyond_the_reach_of_the_operators(depth, ends_only):
    """Operators behind layer l on S_l reach S_l and what the layers after it pass on: the last ball, or one hop more."""
    data = random_graph(6)
    model = untrained(data, layers=depth)
    pairs = undirected_edges(data)[:, :1]
    result = unlearn("gnn_delete", model, data, pairs, epochs=5, learning_rate=0.05, ends_only=ends_only)
    unlinked, deleted = predict(model, result.request.retained), predict(result.model, result.request.retained)
    changed = torch.nonzero((deleted != unlinked).any(dim=1)).flatten()
    radii = {0: 1, depth - 1: 2} if ends_only else {layer: layer + 1 for layer in range(depth)}
    reach = max(radius + depth - 1 - layer for layer, radius in radii.items())  # reach == depth for both kinds
    inside = affected_nodes(result.request.retained, pairs, reach)
    assert reach == depth and len(inside) < 60 and np.isin(changed, inside).all()
    assert len(np.setdiff1d(changed, affected_nodes(data, pairs, reach - 1)))


@pytest.mark.parametrize("depth", [2, 3])
def test_regions_are_balls(depth):
    data = random_graph(4)
    model = untrained(data, layers=depth)
    pairs = undirected_edges(data)[:, :3]
    released = unlearn("gnn_delete", model, data, pairs, epochs=0).model
    reach = np.eye(60) + adjacency(data).toarray() > 0
    inside = np.zeros(60, bool)
    inside[pairs.flatten()] = True
    for layer in range(depth):
        inside = reach[inside].any(axis=0)
        assert (released.region(layer).numpy() == np.flatnonzero(inside)).all()
    published = unlearn("gnn_delete", model, data, pairs, preset="published", epochs=0).model
    assert set(published.operators) == {"0", str(depth - 1)}
    assert torch.equal(published.region(depth - 1), affected_nodes(data, pairs, 2))
    assert all((operator == 1e-3).all() for operator in published.operators.values())


@pytest.mark.parametrize("backbone", list(BACKBONES))
def test_layers_learn_apart_unless_joint(backbone):
    data = random_graph(5)
    model = untrained(data, backbone)
    request = EdgeRequest(model, data, undirected_edges(data)[:, :4])
    network = delete_with_operators(copy.deepcopy(model), request, GnnDeleteSettings(epochs=0), 0)[0]
    for separate in (True, False):
        network.zero_grad()
        layer_rows(network, request.retained, separate)[1].square().mean().backward()
        first = network.operators["0"].grad
        assert (first is None) == separate
        assert network.operators["1"].grad.abs().max() > 0
    apart, joint = (unlearn("gnn_delete", model, data, request.pairs, epochs=3, joint=j).model for j in (False, True))
    assert not torch.equal(apart.operators["0"], joint.operators["0"])


def test_influence_alone_keeps_the_identity_on_the_retained_graph_only(tiny):
    data, model = tiny
    pairs = forget_set(data, "low")
    kept = unlearn("gnn_delete", model, data, pairs, weight=0.0, epochs=5)
    assert all(torch.equal(w, torch.eye(len(w))) for w in kept.model.operators.values())
    assert all(row["influence"] == 0.0 for row in kept.steps.rows[:-1])
    leaky = unlearn("gnn_delete", model, data, pairs, weight=0.0, epochs=5, graph="original")
    assert leaky.steps.rows[0]["influence"] > 0.0


def test_losses_by_hand():
    # A path 0 - 1 - 2 - 3 - 4 and one layer: GIN's sums are easy, but SGC with one hop is easier still.
    path = torch.tensor([[0, 1, 2, 3], [1, 2, 3, 4]])
    data = canonical(Data(x=torch.eye(5), edge_index=path, y=torch.tensor([0, 1, 0, 1, 0])), "path", 2)
    model = build(data, "sgc", layers=1, bias=False)
    model.training_run = TrainingRun("sgc", 0, "corrected", {}, Split(*torch.arange(5).split([2, 2, 1])))
    pairs = torch.tensor([[0], [1]])
    result = unlearn("gnn_delete", model, data, pairs, epochs=1, start="ones")
    h = predict(model, remove_edges(data, pairs)).double()
    w = torch.full((2, 2), 1e-3, dtype=torch.float64)
    generator_pairs = {(p, q) for p in range(5) for q in range(5) if p != q}
    possible = {
        round(float((torch.cat([(h @ w)[0] - h[p], (h @ w)[1] - h[q]])).square().mean()), 6) for p, q in generator_pairs
    }
    assert round(result.steps.rows[0]["consistency"], 6) in possible
    # the region is {0, 1, 2}, the endpoints are 0 and 1
    assert result.steps.rows[0]["influence"] == pytest.approx(float(((h @ w)[2] - h[2]).square().mean()), rel=1e-5)
    whole = unlearn("gnn_delete", model, data, pairs, epochs=1, start="ones", endpoints_in_influence=True)
    assert whole.steps.rows[0]["influence"] == pytest.approx(float(((h @ w)[:3] - h[:3]).square().mean()), rel=1e-5)


def test_training_lowers_the_loss_and_repeats_itself(tiny):
    data, model = tiny
    pairs = forget_set(data, "high")
    one, two = (unlearn("gnn_delete", model, data, pairs, seed=1) for _ in range(2))
    assert all(torch.equal(a, b) for a, b in zip(one.model.parameters(), two.model.parameters(), strict=True))
    assert one.steps.rows[-2]["loss"] < 0.9 * one.steps.rows[0]["loss"]
    other = unlearn("gnn_delete", model, data, pairs, seed=2)
    assert not torch.equal(one.model.operators["0"], other.model.operators["0"])


def test_collapse_to_one_direction_is_told(tiny):
    data, model = tiny
    pairs = forget_set(data, "low")
    ones = unlearn("gnn_delete", model, data, pairs, start="ones", epochs=0)
    assert ones.steps.rows[-1]["first_direction_0"] > 0.999999
    assert "layer 1" in ones.steps.note and "one direction" in ones.steps.note
    identity = unlearn("gnn_delete", model, data, pairs)
    assert identity.status == "ok" and identity.steps.note == ""
    assert 0 < identity.steps.rows[-1]["region_0"] < identity.steps.rows[-1]["region_1"] <= 1
    assert first_direction(torch.ones(5, 3)) == pytest.approx(1.0)
    assert first_direction(torch.eye(4)) == pytest.approx(0.25)
    assert first_direction(torch.zeros(4, 2)) == 1.0


@pytest.mark.parametrize("backbone", list(BACKBONES))
@pytest.mark.parametrize("depth", [1, 2, 3])
def test_influence_on_a_released_model_is_exact(backbone, depth):
    data = random_graph(6)
    pairs = undirected_edges(data)[:, :6]
    model = untrained(data, backbone, layers=depth, **({"heads": 2} if backbone == "gat" else {}))
    released = unlearn("gnn_delete", model, data, pairs, epochs=5, learning_rate=0.2).model
    assert has_sparse_tangents(released)  # no forward for every node, whatever the backbone
    graph, edges = remove_edges(data, pairs), undirected_edges(data)
    asked = torch.cat([pairs, pairs.flip(0), edges[:, 6:30]], dim=1)
    influence = link_teller_influence(released, graph, asked).numpy()
    assert np.allclose(influence, forward_mode(released, graph, *asked.numpy()), atol=1e-13)
    assert not np.allclose(influence, link_teller_influence(model, graph, asked).numpy()) or depth == 1
    exact, x = exact_model(released), data.x.double()
    for position in range(0, asked.shape[1], 3):
        u, v = asked[:, position].tolist()
        moved = []
        for sign in (1.0, -1.0):
            scaled = x.clone()
            scaled[u] *= 1.0 + sign * 1e-6
            moved.append(exact(graph, scaled)[v].detach())
        assert float((moved[0] - moved[1]).norm()) / 2e-6 == pytest.approx(influence[position], abs=1e-7, rel=1e-6)


@pytest.mark.parametrize("backbone", ["gcn", "gin", "sage"])
def test_displacement_of_a_released_model_is_the_literal_one(backbone):
    data = random_graph(7)
    pairs = undirected_edges(data)[:, :5]
    released = unlearn("gnn_delete", untrained(data, backbone), data, pairs, epochs=5, learning_rate=0.2).model
    graph = remove_edges(data, pairs)
    asked = undirected_edges(graph)[:, :8]
    fast = endpoint_displacement(released, graph, asked)
    released.aggregation = None  # one forward a pair
    assert np.allclose(fast, endpoint_displacement(released, graph, asked), atol=1e-5)


def test_released_model_answers_like_a_backbone(tiny):
    data, model = tiny
    pairs = forget_set(data, "low")
    released = unlearn("gnn_delete", model, data, pairs).model
    assert isinstance(released, DeletionNetwork) and released.training_run.backbone == "gcn"
    assert released.depth == 2 and released.reach == model.reach and released.aggregation == "sym"
    graph = remove_edges(data, pairs)
    assert released.representations(graph)[0].shape == model.representations(graph)[0].shape
    for name in ("link_teller", "link_stealing", "e_umia"):
        assert np.isfinite(attack(name, released, data, pairs).scores).all()
    with pytest.raises(InputError, match="120 nodes"):
        released(random_graph(1))
    again = unlearn("gnn_delete", released, graph, undirected_edges(graph)[:, :5], epochs=2)
    assert isinstance(again.model.base, DeletionNetwork) and again.status == "ok"
    fresh = copy.deepcopy(released)
    fresh.reset_parameters(torch.Generator())
    assert torch.equal(predict(fresh, graph), predict(model, graph))


@pytest.mark.parametrize("backbone", list(BACKBONES))
def test_every_edge_of_the_hub(backbone):
    data = random_graph(8)
    edges = undirected_edges(data)
    hub = torch.bincount(edges.flatten()).argmax()
    result = unlearn("gnn_delete", untrained(data, backbone), data, edges[:, (edges == hub).any(0)], epochs=5)
    assert result.status in ("ok", "collapsed")
    assert torch.isfinite(predict(result.model, result.request.retained)).all()


@pytest.mark.parametrize(
    "arguments", [{"start": "zeros"}, {"consistency": "logits"}, {"graph": "both"}, {"weight": 1.5}]
)
def test_unknown_settings_are_refused(tiny, arguments):
    data, model = tiny
    with pytest.raises(InputError):
        unlearn("gnn_delete", model, data, forget_set(data, "low"), **arguments)


def test_a_loss_that_overflows_is_a_status_and_releases_a_finite_model(tiny):
    data, model = tiny
    result = unlearn("gnn_delete", model, data, forget_set(data, "low"), learning_rate=1e10)
    assert result.status == "diverged" and "the loss is inf" in result.reason
    assert torch.isfinite(predict(result.model, result.request.retained)).all()
    assert result.model.generator is None and all(parameter.requires_grad for parameter in result.model.parameters())


@REAL
def test_collapse_is_made_by_start_and_budget():
    data = load_graph("cora")
    model = train(data, "gcn", seed=0)
    pairs, test = forget_set(data, "low"), model.training_run.split.test

    def accuracy(**settings):
        result = unlearn("gnn_delete", model, data, pairs, **settings)
        answers = predict(result.model, result.request.retained).argmax(1)
        return float((answers == data.y)[test].double().mean()), result.status

    short, status = accuracy(start="ones", epochs=10, learning_rate=1e-3)
    identity, fine = accuracy(epochs=10, learning_rate=1e-3)
    assert identity - short > 0.2 and status == "collapsed" and fine == "ok"
    longer, _ = accuracy(start="ones", epochs=100)
    assert longer - short > 0.15  # a budget alone repairs most of it
    assert accuracy(preset="published")[1] == "collapsed"
