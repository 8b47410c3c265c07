"""Backbones against PyTorch Geometric's layers, fast propagation, and the training loop."""

import copy
import os
import sys
import warnings

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch_geometric.data import Data
from torch_geometric.nn import GATConv, GCNConv, GINConv, SAGEConv, SGConv

from lethe_lib.data import Split, canonical, load_graph
from lethe_lib.errors import InputError, TrainingDiverged
from lethe_lib.models import (
    BACKBONES,
    TrainingRun,
    TrainingSettings,
    build,
    fit,
    predict,
    propagation,
    retrain,
    scipy_propagation,
    train,
)
from lethe_lib.models.propagation import AttentionPattern, _derived, features, propagated_features
from lethe_lib.seeding import torch_generator
from lethe_lib.structure import affected_nodes, remove_edges

REAL = pytest.mark.skipif(not os.environ.get("LETHE_DATA"), reason="needs the real graphs: set LETHE_DATA")


def graph(nodes: int = 12, edges: int = 20, width: int = 6, seed: int = 0, density: float = 1.0) -> Data:
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(nodes, width, generator=generator)
    x = x * (torch.rand(nodes, width, generator=generator) < density)
    pairs = torch.randint(0, nodes, (2, edges), generator=generator)
    y = torch.arange(nodes) % 3
    return canonical(Data(x=x, edge_index=pairs, y=y), name="random", num_classes=3)


class Reference(torch.nn.Module):
    """The same networks from PyTorch Geometric's own layers, with the weights of ours."""

    def __init__(self, name, ours):
        super().__init__()
        self.name, self.ours = name, ours
        self.layers = torch.nn.ModuleList(getattr(self, name)(layer) for layer in range(self.count))

    @property
    def count(self):
        return 1 if self.name == "sgc" else self.ours.depth

    def gcn(self, layer):
        source = self.ours.layers[layer]
        conv = GCNConv(source.in_features, source.out_features)
        conv.lin.weight, conv.bias = source.weight, source.bias
        return conv

    def sgc(self, layer):
        conv = SGConv(self.ours.head.in_features, self.ours.head.out_features, K=self.ours.depth)
        conv.lin.weight, conv.lin.bias = self.ours.head.weight, self.ours.head.bias
        return conv

    def sage(self, layer):
        neighbours, own = self.ours.neighbours[layer], self.ours.own[layer]
        conv = SAGEConv(own.in_features, own.out_features)
        conv.lin_l.weight, conv.lin_l.bias, conv.lin_r.weight = neighbours.weight, neighbours.bias, own.weight
        return conv

    def gin(self, layer):
        o = self.ours
        parts = [o.first[layer], o.norm_first[layer], torch.nn.ReLU(), o.second[layer], o.norm_second[layer]]
        conv = GINConv(torch.nn.Identity())  # its constructor would draw new weights for the network it is given
        conv.nn = torch.nn.Sequential(*parts)
        return conv

    def gat(self, layer):
        o = self.ours
        heads, width = o.heads[layer], o.widths[layer]
        conv = GATConv(o.linears[layer].in_features, width, heads=heads)
        conv.lin.weight = o.linears[layer].weight
        conv.att_src = torch.nn.Parameter(o.sender[layer].detach()[None])
        conv.att_dst = torch.nn.Parameter(o.receiver[layer].detach()[None])
        conv.bias = o.biases[layer]
        return conv

    def forward(self, data):
        rows = data.x
        for layer, conv in enumerate(self.layers):
            rows = conv(rows, data.edge_index)
            if layer < self.count - 1:
                rows = self.ours.activation(rows)
        return self.ours.head(torch.relu(rows)) if self.name == "gin" else rows


@pytest.mark.parametrize("density", [1.0, 0.08])
@pytest.mark.parametrize("depth", [1, 2, 3])
@pytest.mark.parametrize("name", list(BACKBONES))
def test_equals_the_layers_of_pytorch_geometric(name, depth, density):
    data = graph(nodes=40, edges=70, width=20, density=density)
    extra = {"heads": 2} if name == "gat" else {}
    ours = build(data, name, seed=3, layers=depth, **extra)
    with torch.no_grad():
        for parameter in ours.parameters():  # biases start at zero: make them count
            parameter.add_(torch.randn(parameter.shape, generator=torch.Generator().manual_seed(1)) * 0.1)
    expected = Reference(name, ours).eval()(data)
    assert torch.allclose(ours(data), expected, atol=1e-5)
    assert torch.allclose(ours(data, data.x), expected, atol=1e-5)


@REAL
@pytest.mark.parametrize("name", list(BACKBONES))
def test_equals_pytorch_geometric_on_a_real_graph(name):
    data = load_graph("cora")
    ours = build(data, name, seed=0)
    assert torch.allclose(ours(data), Reference(name, ours).eval()(data), atol=1e-5)


@pytest.mark.parametrize("name", list(BACKBONES))
def test_gradients_equal_those_of_pytorch_geometric(name):
    data = graph(nodes=30, edges=60, width=8)
    ours = build(data, name, seed=1).double()
    data64 = copy.copy(data)
    data64.x = data.x.double()
    parameters = list(ours.parameters())
    target = torch.randn(30, 3, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    mine = torch.autograd.grad((ours(data) * target).sum(), parameters)
    reference = Reference(name, ours).eval()
    theirs = torch.autograd.grad((reference(data64) * target).sum(), parameters, allow_unused=True)
    attention = [p for p in parameters if name == "gat" and p.dim() == 2 and p.shape[0] == 1]
    for parameter, a, b in zip(parameters, mine, theirs, strict=True):
        if any(parameter is q for q in attention):
            continue  # copied into PyG's layout, so its gradient lands on the copy
        assert torch.allclose(a, b, atol=1e-10)


def test_attention_is_the_same_in_blocks_of_any_size(monkeypatch):
    data, gradients = load_graph("synthetic-tiny"), []
    for entries in (8192, 7):
        monkeypatch.setattr(sys.modules[AttentionPattern.__module__], "ENTRIES", entries)
        model = build(data, "gat", seed=0, heads=2)
        model(data).square().sum().backward()
        gradients.append([parameter.grad for parameter in model.parameters()])
    assert all(torch.equal(*pair) for pair in zip(*gradients, strict=True))


@pytest.mark.parametrize("name", list(BACKBONES))
def test_differentiates_twice_and_forward(name):
    data = graph(nodes=8, edges=14, width=4)
    model = build(data, name, seed=0, layers=2, **({} if name == "sgc" else {"hidden": 3})).double()
    x = data.x.double().requires_grad_()
    assert torch.autograd.gradcheck(lambda x: model(data, x), x)
    assert torch.autograd.gradgradcheck(lambda x: torch.sin(model(data, x)), x)
    tangent = torch.randn(x.shape, dtype=x.dtype, generator=torch.Generator().manual_seed(1))
    _, forward = torch.func.jvp(lambda x: model(data, x), (x.detach(),), (tangent,))
    step = 1e-6
    central = (model(data, x + step * tangent) - model(data, x - step * tangent)) / (2 * step)
    assert torch.allclose(forward, central, atol=1e-7)


@pytest.mark.parametrize("name", [n for n in BACKBONES if n != "gat"])
def test_node_map_is_the_layer(name):
    data = graph(nodes=25, edges=50, width=7)
    model = build(data, name, seed=5, layers=3).double()
    matrix = torch.from_numpy(scipy_propagation(data, model.aggregation).toarray())
    rows = data.x.double()
    for layer, expected in enumerate([*model.representations(data), model(data)]):
        rows = model.node_map(layer, matrix @ rows, rows)
        assert torch.allclose(rows, expected, atol=1e-10)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000), st.sampled_from(list(BACKBONES)), st.integers(1, 3))
def test_outputs_change_only_within_reach(seed, name, depth):
    data = graph(nodes=20, edges=22, seed=seed)
    pairs = data.edge_index[:, data.edge_index[0] < data.edge_index[1]][:, :1]
    model = build(data, name, seed=seed, layers=depth).double()
    changed = (model(data) - model(remove_edges(data, pairs))).abs().amax(1) > 1e-12
    inside = torch.zeros(20, dtype=torch.bool)
    inside[affected_nodes(data, pairs, model.reach)] = True
    assert not (changed & ~inside).any()


def test_normalisation_never_survives_a_removal():
    data = graph(nodes=20, edges=40)
    model = build(data, "gcn", seed=0)
    before = model(data)
    pairs = data.edge_index[:, data.edge_index[0] < data.edge_index[1]][:, :5]
    removed = remove_edges(data, pairs)
    fresh = canonical(Data(x=data.x, edge_index=removed.edge_index.clone(), y=data.y), "fresh", 3)
    assert torch.equal(model(removed), model(fresh))
    assert not torch.allclose(model(removed), before)
    assert torch.equal(model(data), before)


def test_change_in_place_rebuilds_the_matrix():
    data = graph(nodes=20, edges=40)
    model = build(data, "gcn", seed=0)
    model(data)
    keep = data.edge_index[:, 2:]
    data.edge_index.resize_(2, 0)
    data.edge_index.resize_(2, keep.shape[1]).copy_(keep)
    edges = data.edge_index
    both = {(int(a), int(b)) for a, b in edges.T} & {(int(b), int(a)) for a, b in edges.T}
    symmetric = torch.tensor(sorted(both)).T
    data.edge_index.resize_(symmetric.shape).copy_(symmetric)
    fresh = canonical(Data(x=data.x, edge_index=symmetric.clone(), y=data.y), "fresh", 3)
    assert torch.equal(model(data), model(fresh))


def test_change_of_features_in_place_is_seen():
    data = graph()
    model = build(data, "gcn", seed=0)
    model(data)
    data.x.mul_(2.0)
    assert torch.allclose(model(data), model(data, data.x))


def test_derived_matrices_die_with_their_graph():
    data = graph()
    build(data, "gcn")(data)
    before = len(_derived)
    del data
    assert len(_derived) < before


def test_propagation_sums():
    data = graph(nodes=15, edges=20)
    degree = torch.from_numpy(scipy_propagation(data, "sum").sum(1))
    mean = torch.from_numpy(scipy_propagation(data, "mean").sum(1))
    assert torch.equal(mean[degree > 0].round(decimals=12), torch.ones(int((degree > 0).sum()), dtype=torch.float64))
    assert (mean[degree == 0] == 0).all()
    symmetric = scipy_propagation(data, "sym")
    assert abs(symmetric - symmetric.T).max() < 1e-15
    rows, columns = scipy_propagation(data, "row"), scipy_propagation(data, "col")
    assert abs(rows.sum(1) - 1).max() < 1e-15 and abs(columns.sum(0) - 1).max() < 1e-15
    assert (abs(rows - columns.T)).max() == 0 and (rows.indptr == symmetric.indptr).all()
    with pytest.raises(InputError, match="choose sym, row, col, mean or sum"):
        scipy_propagation(data, "max")


def test_features_take_the_sparse_form_when_sparse():
    like = torch.zeros(())
    assert isinstance(features(graph(density=1.0), like), torch.Tensor)
    sparse = graph(nodes=50, width=40, density=0.05)
    assert not isinstance(features(sparse, like), torch.Tensor)
    product = features(sparse, like) @ torch.eye(40)
    assert torch.allclose(product, sparse.x)
    expected = propagation(sparse, "sym", like) @ (propagation(sparse, "sym", like) @ sparse.x)
    assert torch.allclose(propagated_features(sparse, "sym", like, 2), expected, atol=1e-6)


def test_sparse_csr_features_give_the_same_logits():
    data = graph(nodes=50, width=40, density=0.05)
    model = build(data, "gcn", seed=0)
    dense = model(data)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        data.x = data.x.to_sparse_csr()
    assert torch.allclose(model(data), dense, atol=1e-6)


def test_attention_is_a_distribution_over_neighbours():
    data = graph(nodes=15, edges=30)
    pattern = AttentionPattern(scipy_propagation(data, "sym"), torch.device("cpu"))
    score = torch.randn(len(pattern.rows), 2, generator=torch.Generator().manual_seed(0)) * 30
    weight = pattern.softmax(score)
    assert torch.allclose(torch.zeros(15, 2).index_add(0, pattern.rows, weight), torch.ones(15, 2))


def test_dropout_keeps_the_mean_and_follows_its_generator():
    model = build(graph(), "gcn", dropout=0.3).train()
    rows = torch.ones(1000, 333)
    model.generator = torch.Generator().manual_seed(1)
    first = model.dropout(rows)
    model.generator = torch.Generator().manual_seed(1)
    assert torch.equal(first, model.dropout(rows))
    assert abs(float((first == 0).float().mean()) - 0.3) < 0.005
    assert abs(float(first.mean()) - 1.0) < 0.005
    assert torch.equal(model.eval().dropout(rows), rows)


@pytest.mark.parametrize("name", list(BACKBONES))
def test_training_learns_and_repeats_itself(name):
    data = load_graph("synthetic-tiny")
    model = train(data, name, seed=1, epochs=60)
    again = train(data, name, seed=1, epochs=60)
    other = train(data, name, seed=2, epochs=60)
    weights = [parameter.detach() for parameter in model.parameters()]
    assert all(torch.equal(a, b) for a, b in zip(weights, again.parameters(), strict=True))
    assert not all(torch.equal(a, b) for a, b in zip(weights, other.parameters(), strict=True))
    assert not model.training and model.generator is None
    nodes = model.training_run.split.train
    accuracy = predict(model, data)[nodes].argmax(1).eq(data.y[nodes]).float().mean()
    majority = data.y[nodes].bincount().max() / len(nodes)
    assert accuracy > majority + 0.2


def test_training_leaves_the_global_random_state_alone():
    data = load_graph("synthetic-tiny")
    torch.manual_seed(5)
    before = torch.get_rng_state()
    train(data, "gat", seed=0, epochs=3)
    assert torch.equal(before, torch.get_rng_state())


def plain_training(data, model, split, settings):
    """The training loop as one would write it first: every forward from scratch."""
    model.generator = torch_generator(0, "dropout", "gcn")
    optimiser = torch.optim.Adam(model.parameters(), lr=settings.learning_rate, weight_decay=settings.weight_decay)
    losses = []
    for _ in range(settings.epochs):
        model.train()
        optimiser.zero_grad()
        torch.nn.functional.cross_entropy(model(data)[split.train], data.y[split.train]).backward()
        optimiser.step()
        model.eval()
        with torch.no_grad():
            losses.append(float(torch.nn.functional.cross_entropy(model(data)[split.val], data.y[split.val])))
    return losses


@pytest.mark.parametrize("name", list(BACKBONES))
def test_shared_first_layer_changes_nothing(name):
    data = load_graph("synthetic-tiny")
    split = train(data, "gcn", epochs=1).training_run.split
    settings_ = TrainingSettings(epochs=12, patience=100, learning_rate=0.01)
    model = build(data, name, seed=0)
    run = TrainingRun("gcn", 0, "corrected", {}, split)
    fitted = fit(copy.deepcopy(model), data, run, settings_)
    expected = plain_training(data, model, split, settings_)
    assert torch.allclose(torch.tensor(fitted.training_run.history), torch.tensor(expected), rtol=1e-5)


def test_early_stopping_returns_the_best_weights():
    data = load_graph("synthetic-tiny")
    model = train(data, "gcn", seed=0, epochs=400, patience=5, learning_rate=0.05)
    run = model.training_run
    assert run.epochs == run.best_epoch + 5
    split = run.split
    loss = torch.nn.functional.cross_entropy(predict(model, data)[split.val], data.y[split.val])
    assert float(loss) == pytest.approx(run.history[run.best_epoch - 1], rel=1e-5)


def test_published_schedule():
    data = load_graph("synthetic-tiny")
    first = train(data, "gcn", seed=0, preset="published")
    second = train(data, "gcn", seed=7, preset="published")
    assert torch.equal(first.training_run.split.test, second.training_run.split.test)
    assert first.training_run.epochs <= 100
    assert first.training_run.settings["learning_rate"] == 1e-3
    assert build(data, "sgc", preset="published").head.bias is None
    assert not any(isinstance(m, torch.nn.LayerNorm) for m in build(data, "gin", preset="published").modules())


def test_retraining_with_the_same_seed_is_the_same_model():
    data = load_graph("synthetic-tiny")
    model = train(data, "gcn", seed=4, epochs=20, hidden=8)
    again = retrain(data, model.training_run)
    assert all(torch.equal(a, b) for a, b in zip(model.parameters(), again.parameters(), strict=True))
    assert again.layers[0].out_features == 8


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"backbone": "gcnn"}, "Did you mean 'gcn'"),
        ({"preset": "paper"}, "corrected or published"),
        ({"hiden": 3}, "does not take these settings"),
        ({"split": Split(torch.arange(0), torch.arange(3), torch.arange(3, 6))}, "at least one training"),
    ],
)
def test_bad_input_is_refused(arguments, message):
    with pytest.raises(InputError, match=message):
        train(load_graph("synthetic-tiny"), **{"epochs": 2, **arguments})


def test_a_graph_that_is_not_canonical_is_refused():
    data = Data(x=torch.zeros(3, 2), edge_index=torch.tensor([[0], [1]]), y=torch.zeros(3, dtype=torch.long))
    with pytest.raises(InputError, match="canonical"):
        train(data)


def test_divergence_is_an_error_that_names_the_epoch():
    data = load_graph("synthetic-tiny")
    with pytest.raises(TrainingDiverged, match="epoch"):
        train(data, "gcn", learning_rate=1e30, epochs=20)


@pytest.mark.parametrize("density", [0.05, 0.9])
def test_what_is_remembered_of_a_graph_dies_with_it(density):
    import gc
    import weakref

    x = (torch.rand(30, 20) < density).float()
    data = canonical(Data(x=x, edge_index=torch.randint(0, 30, (2, 60)), y=torch.arange(30) % 3), "mortal", 3)
    build(data, "gcn", 0)(data)
    build(data, "sage", 0)(data)
    kept = [weakref.ref(data.x), weakref.ref(data.edge_index)]
    del data, x
    gc.collect()
    assert [reference() for reference in kept] == [None, None]
