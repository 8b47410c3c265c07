"""Shadow models: exact training, the graphs of one model, statistics, resumption, bad input."""

import json

import joblib
import numpy as np
import pytest
import torch
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn.functional import cross_entropy
from torch_geometric.data import Data
from torch_geometric.nn import GATConv, GCNConv, SAGEConv

from lethe_lib.data import canonical, load_graph
from lethe_lib.errors import DamagedFile, InputError, TrainingDiverged
from lethe_lib.models import build
from lethe_lib.sampling import TrainingSample, sample_nodes
from lethe_lib.shadow import (
    Release,
    ShadowTraining,
    compiled_gcn,
    confidence_from_logits,
    fit_compiled,
    fit_shadow,
    loss_from_confidence,
    many,
    query_graph,
    released_logits,
    train_shadows,
    training_graph,
)
from lethe_lib.shadow.stacked import fit_stacked, stackable

SHORT = ShadowTraining(epochs=5, hidden=8)


@pytest.fixture(scope="module")
def tiny():
    return load_graph("synthetic-tiny")


def random_graph(nodes, edges, density, seed):
    generator = np.random.default_rng(seed)
    x = (generator.random((nodes, 60)) < density).astype(np.float32) * generator.random((nodes, 60)).astype(np.float32)
    return canonical(
        Data(
            x=torch.from_numpy(x),
            edge_index=torch.from_numpy(generator.integers(0, nodes, (2, edges))),
            y=torch.from_numpy(generator.integers(0, 3, nodes)),
        ),
        "random",
        3,
    )


def autograd(model, data, epochs, rate=0.01, decay=5e-4):
    """The plain loop, with torch's own Adam."""
    optimiser = torch.optim.Adam(model.parameters(), lr=rate, weight_decay=decay)
    for _ in range(epochs):
        optimiser.zero_grad()
        cross_entropy(model.train()(data), data.y).backward()
        optimiser.step()
    return model.eval()


@settings(max_examples=15, deadline=None)
@given(nodes=st.integers(3, 40), edges=st.integers(0, 80), seed=st.integers(0, 10**6))
def test_compiled_training_equals_the_framework(nodes, edges, seed):
    data = random_graph(nodes, edges, 0.05, seed)
    model = build(data, "gcn", seed, hidden=8, dropout=0.0).double()
    assert compiled_gcn.applies(model, data)
    reference = autograd(build(data, "gcn", seed, hidden=8, dropout=0.0).double(), data, 25)
    loss = fit_compiled(model, data, 25, 0.01, 5e-4)
    with torch.no_grad():
        torch.testing.assert_close(model(data), reference(data), rtol=1e-10, atol=1e-10)
    assert np.isfinite(loss)
    for ours, theirs in zip(model.parameters(), reference.parameters(), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-9, atol=1e-10)


def test_compiled_training_reports_the_loss_before_the_last_step():
    data = random_graph(20, 40, 0.05, 1)
    model = build(data, "gcn", 0, hidden=8, dropout=0.0).double()
    with torch.no_grad():
        before = float(cross_entropy(model(data), data.y))
    assert fit_compiled(model, data, 1, 0.01, 0.0) == pytest.approx(before, abs=1e-12)


def test_compiled_training_is_refused_where_it_would_compute_something_else(tiny):
    sparse = random_graph(20, 40, 0.05, 1)
    assert not compiled_gcn.applies(build(sparse, "gcn", dropout=0.5), sparse)
    assert not compiled_gcn.applies(build(sparse, "gcn", dropout=0.0, layers=3), sparse)
    assert not compiled_gcn.applies(build(sparse, "sage", dropout=0.0), sparse)
    dense = random_graph(20, 40, 0.9, 1)
    assert not compiled_gcn.applies(build(dense, "gcn", dropout=0.0), dense)


class Convolutions(torch.nn.Module):
    """Two layers of PyTorch Geometric over ``edge_index``."""

    def __init__(self, first, second, activation):
        super().__init__()
        self.first, self.second, self.activation = first, second, activation

    def forward(self, data):
        return self.second(self.activation(self.first(data.x.to(torch.float64), data.edge_index)), data.edge_index)


def reference_network(model, backbone):
    layers = []
    for layer in range(2):
        if backbone == "gcn":
            ours = model.layers[layer]
            conv = GCNConv(ours.in_features, ours.out_features)
            pairs = [(conv.lin.weight, ours.weight), (conv.bias, ours.bias)]
        elif backbone == "sage":
            near, own = model.neighbours[layer], model.own[layer]
            conv = SAGEConv(near.in_features, near.out_features)
            pairs = [(conv.lin_l.weight, near.weight), (conv.lin_l.bias, near.bias), (conv.lin_r.weight, own.weight)]
        else:
            ours = model.linears[layer]
            conv = GATConv(ours.in_features, ours.out_features)
            pairs = [
                (conv.lin.weight, ours.weight),
                (conv.att_src, model.sender[layer][None]),
                (conv.att_dst, model.receiver[layer][None]),
                (conv.bias, model.biases[layer]),
            ]
        for theirs, mine in pairs:
            theirs.data = mine.detach().clone().double()
        layers.append(conv)
    return Convolutions(*layers, torch.nn.functional.elu if backbone == "gat" else torch.relu).double()


@pytest.mark.parametrize("backbone", ["gcn", "sage", "gat"])
@pytest.mark.parametrize("density", [0.05, 0.6])
def test_training_equals_a_plain_loop_over_pytorch_geometric(backbone, density):
    data = random_graph(50, 120, density, 3)
    dense = data.clone()
    training = ShadowTraining(epochs=30, hidden=8)
    ours = fit_shadow(data, backbone, 7, training, dtype=torch.float64)
    start = build(data, backbone, 7, **training.architecture(backbone)).double()
    theirs = autograd(reference_network(start, backbone), dense, 30)
    with torch.no_grad():
        torch.testing.assert_close(ours(data), theirs(dense), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("backbone", ["gcn", "sage", "gin", "sgc"])
@pytest.mark.parametrize("layers", [1, 3])
def test_stacked_models_are_those_trained_alone(backbone, layers, tiny):
    """On samples of different sizes, one of them hardly more than a few nodes."""
    training = ShadowTraining(epochs=20, hidden=8, layers=layers)
    ratios = (0.5, 0.3, 0.05)
    graphs = [training_graph(tiny, sample_nodes("uniform", tiny, ratio, 1)) for ratio in ratios]
    alone = [fit_shadow(graph, backbone, seed, training, dtype=torch.float64) for seed, graph in enumerate(graphs)]
    stacked = [
        build(graph, backbone, seed, **training.architecture(backbone)).double() for seed, graph in enumerate(graphs)
    ]
    assert stackable(stacked[0])
    losses = fit_stacked(stacked, graphs, training.epochs, training.learning_rate, training.weight_decay)
    assert len(losses) == 3 and all(np.isfinite(losses))
    for one, other in zip(alone, stacked, strict=True):
        for theirs, mine in zip(one.parameters(), other.parameters(), strict=True):
            torch.testing.assert_close(mine, theirs, rtol=1e-10, atol=1e-10)


def test_attention_and_dropout_are_not_stacked(tiny):
    assert not stackable(build(tiny, "gat", 0, dropout=0.0))
    assert not stackable(build(tiny, "gcn", 0, dropout=0.5))


def test_a_stack_fits_into_the_memory(tiny):
    one = 2 * 4 * 0.5 * tiny.num_nodes * tiny.x.shape[1]
    assert many.stack_size(tiny, 0.5, 1) == int(2**20 / one)
    assert many.stack_size(tiny, 0.5, 0) == 1


@pytest.mark.parametrize("backbone", ["gcn", "sage", "gat", "gin", "sgc"])
def test_every_backbone_learns_its_sample(backbone, tiny):
    sample = sample_nodes("uniform", tiny, 0.5, 0)
    graph = training_graph(tiny, sample)
    model = fit_shadow(graph, backbone, 0, ShadowTraining(epochs=100, hidden=16))
    with torch.no_grad():
        assert (model(graph).argmax(1) == graph.y).double().mean() > 0.8
    assert not model.training


def test_no_epoch_leaves_the_initial_weights(tiny):
    graph = training_graph(tiny, sample_nodes("uniform", tiny, 0.5, 0))
    model, start = fit_shadow(graph, "gcn", 3, ShadowTraining(epochs=0)), build(graph, "gcn", 3, dropout=0.0)
    assert all(torch.equal(a, b) for a, b in zip(model.parameters(), start.parameters(), strict=True))
    assert not model.training


# ---- the graphs of one model


@pytest.fixture
def path():
    """0 - 1 - 2 - 3 - 4 with a chord 0 - 2."""
    edges = torch.tensor([[0, 1, 2, 3, 0], [1, 2, 3, 4, 2]])
    return canonical(Data(x=torch.eye(5), edge_index=edges, y=torch.tensor([0, 1, 0, 1, 0])), "path", 2)


def sample_of(nodes, edges):
    return TrainingSample(torch.tensor(nodes), torch.tensor(edges).T.reshape(2, -1), "visited", len(nodes), 1, False)


def pairs(graph):
    return {tuple(pair) for pair in graph.edge_index.T.tolist() if pair[0] < pair[1]}


def test_the_graphs_of_a_sample_by_hand(path):
    sample = sample_of([0, 2, 3], [[0, 2]])  # the edge 2 - 3 was not visited
    graph = training_graph(path, sample)
    assert graph.num_nodes == 3 and pairs(graph) == {(0, 1)}
    assert graph.y.tolist() == [0, 0, 1]
    assert torch.equal(graph.x.to_dense(), path.x[[0, 2, 3]])
    assert pairs(query_graph(path, sample, "split")) == {(0, 2)}  # 1 and 4 have no edge between them
    assert pairs(query_graph(path, sample_of([0, 1, 2], [[0, 1]]), "split")) == {(0, 1), (3, 4)}
    assert pairs(query_graph(path, sample, "full")) == pairs(path)
    assert pairs(query_graph(path, sample, "none")) == set()


def test_an_edge_that_leaves_the_sample_does_not_reach_training(path):
    sample = sample_of([0, 2], [[0, 2], [2, 3]])
    assert pairs(training_graph(path, sample)) == {(0, 1)}
    assert pairs(query_graph(path, sample, "split")) == {(0, 2), (3, 4)}


def test_training_never_sees_nodes_outside_the_sample(tiny):
    sample = sample_nodes("snowball", tiny, 0.4, 3)
    changed = tiny.clone()
    outside = torch.ones(tiny.num_nodes, dtype=torch.bool)
    outside[sample.nodes] = False
    x = tiny.x.to_dense().clone()
    x[outside] = 7.0
    y = tiny.y.clone()
    y[outside] = 0
    changed = canonical(Data(x=x, edge_index=tiny.edge_index, y=y), "changed", tiny.num_classes)
    first, second = (fit_shadow(training_graph(g, sample), "gcn", 1, SHORT) for g in (tiny, changed))
    for a, b in zip(first.parameters(), second.parameters(), strict=True):
        torch.testing.assert_close(a, b, rtol=0, atol=1e-5)  # sparse and dense products round differently


# ---- statistics


@settings(max_examples=50, deadline=None)
@given(st.lists(st.floats(-30, 30), min_size=3, max_size=3), st.integers(0, 2))
def test_confidence_is_the_log_odds_of_the_label(row, label):
    logits = torch.tensor([row], dtype=torch.float64)
    p = float(logits.softmax(dim=1)[0, label])
    found = confidence_from_logits(logits, torch.tensor([label]))
    assert p == pytest.approx(1 / (1 + np.exp(-found[0])), rel=1e-9)
    assert loss_from_confidence(found)[0] == pytest.approx(
        float(cross_entropy(logits, torch.tensor([label]))), abs=1e-9
    )


def test_confidence_stays_finite_where_a_probability_rounds_to_one():
    found = confidence_from_logits(torch.tensor([[500.0, -500.0], [-500.0, 500.0]]), torch.tensor([0, 0]))
    assert found.tolist() == [1000.0, -1000.0]


def test_noise_is_reproducible_has_its_scale_and_leaves_the_model_alone(tiny):
    model = build(tiny, "gcn", 0)
    before = [p.clone() for p in model.parameters()]
    clean = released_logits(model, tiny, Release("full"), 0)
    noisy = released_logits(model, tiny, Release("full", "logits", 2.0), 0)
    assert (noisy - clean).std() == pytest.approx(2.0, rel=0.1)
    again = released_logits(model, tiny, Release("full", "weights", 0.1), 0)
    assert torch.equal(again, released_logits(model, tiny, Release("full", "weights", 0.1), 0))
    assert not torch.equal(again, clean)
    assert not torch.equal(again, released_logits(model, tiny, Release("full", "weights", 0.1), 1))
    assert all(torch.equal(a, b) for a, b in zip(before, model.parameters(), strict=True))


@pytest.mark.parametrize(
    "wrong", [("some",), ("full", "weights"), ("full", "none", 0.1), ("full", "salt", 0.1), ("full", "logits", -1.0)]
)
def test_a_release_that_makes_no_sense_is_refused(wrong):
    with pytest.raises(InputError):
        Release(*wrong)


# ---- many models


def test_the_statistics_are_those_of_each_model(tiny):
    releases = (Release("split"), Release("full", "weights", 0.05))
    found = train_shadows(tiny, "snowball", 0.4, 3, "gcn", seed=5, releases=releases, training=SHORT)
    assert found.confidence.dims == ("model", "release", "node") and found.member.dims == ("model", "node")
    assert found.release.values.tolist() == ["split", "full, weights 0.05"]
    number = 2
    seed = many.derive_seed(5, "shadow", number)
    sample = sample_nodes("snowball", tiny, 0.4, seed)
    assert np.flatnonzero(found.member[number]).tolist() == sample.nodes.tolist()
    assert int(found["size"][number]) == len(sample.nodes)
    model = fit_shadow(training_graph(tiny, sample), "gcn", seed, SHORT)
    expected = confidence_from_logits(
        released_logits(model, query_graph(tiny, sample, "split"), releases[0], seed), tiny.y
    )
    np.testing.assert_allclose(found.confidence[number, 0], expected, rtol=1e-6)
    assert json.loads(found.attrs["settings"])["training"]["epochs"] == 5


def test_models_do_not_depend_on_processes_or_on_how_many_there_are(tiny, monkeypatch):
    monkeypatch.setattr(many, "LARGEST_PART", 2)
    one = train_shadows(tiny, models=5, training=SHORT)
    with joblib.parallel_config(backend="threading"):
        two = train_shadows(tiny, models=5, training=SHORT, workers=2)
    xr.testing.assert_identical(one, two)
    xr.testing.assert_identical(one.isel(model=slice(0, 3)), train_shadows(tiny, models=3, training=SHORT))


def test_a_killed_run_goes_on_where_it_stopped(tiny, tmp_path, monkeypatch):
    monkeypatch.setattr(many, "LARGEST_PART", 2)
    trained, real = [], many._answers

    def counted(data, edgeless, releases, number, *rest):
        if number == 4 and len(trained) == 4:
            trained.append("killed")
            raise KeyboardInterrupt
        trained.append(number)
        return real(data, edgeless, releases, number, *rest)

    monkeypatch.setattr(many, "_answers", counted)
    with pytest.raises(KeyboardInterrupt):
        train_shadows(tiny, models=6, training=SHORT, folder=tmp_path)
    found = train_shadows(tiny, models=6, training=SHORT, folder=tmp_path)
    assert trained == [0, 1, 2, 3, "killed", 4, 5]
    xr.testing.assert_identical(found, train_shadows(tiny, models=6, training=SHORT))
    xr.testing.assert_identical(found, train_shadows(tiny, models=6, training=SHORT, folder=tmp_path))
    assert len(trained) == 13  # the last call read everything
    train_shadows(tiny, models=6, training=ShadowTraining(epochs=6, hidden=8), folder=tmp_path)
    assert len(trained) == 19  # other settings are other models


def test_a_damaged_part_is_named(tiny, tmp_path):
    train_shadows(tiny, models=2, training=SHORT, folder=tmp_path)
    part = next(tmp_path.rglob("models_*.nc"))
    part.write_bytes(part.read_bytes()[:100])
    with pytest.raises(DamagedFile, match=part.name):
        train_shadows(tiny, models=2, training=SHORT, folder=tmp_path)


def test_the_statistics_survive_netcdf(tiny, tmp_path):
    found = train_shadows(tiny, models=2, training=SHORT)
    found.to_netcdf(tmp_path / "shadows.nc", engine="h5netcdf")
    with xr.open_dataset(tmp_path / "shadows.nc", engine="h5netcdf") as stored:
        xr.testing.assert_identical(stored.load(), found)


def test_bad_requests_are_refused(tiny):
    with pytest.raises(InputError, match="at least 2"):
        train_shadows(tiny, models=1)
    with pytest.raises(InputError, match="memory_mib"):
        train_shadows(tiny, models=10_000, memory_mib=1)
    with pytest.raises(InputError, match="sampler"):
        train_shadows(tiny, "snowbal", models=2)
    with pytest.raises(InputError, match="backbone"):
        train_shadows(tiny, backbone="gnc", models=2)
    with pytest.raises(InputError, match="distinct"):
        train_shadows(tiny, models=2, releases=())
    with pytest.raises(InputError, match="epochs"):
        ShadowTraining(epochs=-1)
    with pytest.raises(TrainingDiverged):
        train_shadows(tiny, models=2, training=ShadowTraining(epochs=5, learning_rate=1e38))
