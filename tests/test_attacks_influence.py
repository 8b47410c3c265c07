"""LinkTeller's influence: every way to compute it against finite differences, closed forms and each other."""

import os

import networkx as nx
import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from lethe_lib.attacks import attack, link_teller_influence
from lethe_lib.attacks import influence as influence_module
from lethe_lib.attacks.influence import (
    chunks,
    exact_model,
    finite_difference,
    forward_mode,
    has_row_products,
    row_products,
)
from lethe_lib.attacks.tangents import sparse_tangents
from lethe_lib.data import adjacency, canonical, load_graph
from lethe_lib.errors import InputError
from lethe_lib.models import BACKBONES, build, scipy_propagation, train
from lethe_lib.models.gcn import GCN
from lethe_lib.models.propagation import dense_features
from lethe_lib.study.bench_link_teller import bench

real_graphs = pytest.mark.skipif(not os.environ.get("LETHE_DATA"), reason="needs the real graphs: set LETHE_DATA")
BACKBONE_NAMES = ("gcn", "gat", "gin", "sage", "sgc")
DELTA = 1e-6


@pytest.fixture(scope="module")
def graph() -> Data:
    """40 nodes in two loosely joined rings with chords: diameter above 3, one isolated node, one without features."""
    edges = [(i, (i + 1) % 20) for i in range(20)] + [(20 + i, 20 + (i + 1) % 19) for i in range(19)]
    edges += [(0, 7), (3, 12), (22, 30), (25, 36), (0, 20), (5, 9), (5, 15)]
    generator = torch.Generator().manual_seed(1)
    x = torch.rand(40, 9, generator=generator) + 0.1
    x[11] = 0.0
    y = torch.randint(0, 3, (40,), generator=generator)
    return canonical(Data(x=x, y=y, edge_index=torch.tensor(edges).T), name="rings", num_classes=3)


def make(graph: Data, backbone: str, depth: int):
    extra = {"heads": 2} if backbone == "gat" else {}
    extra |= {} if backbone == "sgc" else {"hidden": 6}
    model = build(graph, backbone, seed=3, layers=depth, **extra)
    generator = torch.Generator().manual_seed(2)
    with torch.no_grad():
        for parameter in model.parameters():  # biases and scales away from their initial zeros and ones
            parameter += 0.1 * torch.randn(parameter.shape, generator=generator)
    return model


def all_pairs(data: Data) -> torch.Tensor:
    n = data.num_nodes
    pairs = torch.cartesian_prod(torch.arange(n), torch.arange(n)).T
    return pairs[:, pairs[0] != pairs[1]]


def central_difference(model, data: Data, pairs: torch.Tensor) -> np.ndarray:
    exact = exact_model(model)
    x = dense_features(data, next(exact.parameters()))
    result = np.zeros(pairs.shape[1])
    with torch.no_grad():
        for u in pairs[0].unique().tolist():
            more, less = x.clone(), x.clone()
            more[u] *= 1.0 + DELTA
            less[u] *= 1.0 - DELTA
            change = (exact(data, more) - exact(data, less)) / (2.0 * DELTA)
            chosen = pairs[0] == u
            result[chosen.numpy()] = change[pairs[1][chosen]].norm(dim=1).numpy()
    return result


def hops_between(data: Data, pairs: torch.Tensor) -> np.ndarray:
    distance = dict(nx.all_pairs_shortest_path_length(nx.from_scipy_sparse_array(adjacency(data))))
    return np.array([distance[u].get(v, np.inf) for u, v in pairs.T.tolist()])


def test_all_backbones_are_covered():
    assert set(BACKBONE_NAMES) == set(BACKBONES)


@pytest.mark.parametrize("depth", [1, 2, 3])
@pytest.mark.parametrize("backbone", BACKBONE_NAMES)
def test_exact_influence_equals_finite_difference_and_every_way_agrees(graph, backbone, depth):
    model, pairs = make(graph, backbone, depth), all_pairs(graph)
    influence = link_teller_influence(model, graph, pairs).numpy()
    difference = central_difference(model, graph, pairs)
    assert influence.dtype == np.float64
    assert np.abs(influence - difference).max() < 1e-8 * difference.max()
    u, v = pairs.numpy()
    ways = [sparse_tangents, forward_mode] + ([row_products] if has_row_products(model) else [])
    for way in ways:
        np.testing.assert_allclose(way(model, graph, u, v), influence, rtol=1e-9, atol=1e-13 * influence.max())


@pytest.mark.parametrize("depth", [1, 2, 3])
@pytest.mark.parametrize("backbone", BACKBONE_NAMES)
def test_influence_is_exactly_zero_beyond_the_depth_and_only_there(graph, backbone, depth):
    model, pairs = make(graph, backbone, depth), all_pairs(graph)
    far = hops_between(graph, pairs) > depth
    featureless = (pairs[0] == 11).numpy()
    u, v = pairs.numpy()
    ways = [sparse_tangents, forward_mode] + ([row_products] if has_row_products(model) else [])
    assert 0.1 < far.mean() < 1.0
    for way in ways:
        influence = way(model, graph, u, v)
        assert (influence[far] == 0.0).all()
        assert (influence[featureless] == 0.0).all()
        assert (influence[~far & ~featureless] > 0.0).mean() > 0.8  # not all: a relu can block every way


@pytest.mark.parametrize("depth", [1, 2, 3, 4])
def test_linear_network_has_a_closed_form(graph, depth):
    model, pairs = make(graph, "sgc", depth), all_pairs(graph)
    power = np.linalg.matrix_power(scipy_propagation(graph, "sym").toarray(), depth)
    size = np.linalg.norm(graph.x.double().numpy() @ model.head.weight.detach().double().numpy().T, axis=1)
    closed = np.abs(power[pairs[1], pairs[0]]) * size[pairs[0]]
    np.testing.assert_allclose(link_teller_influence(model, graph, pairs), closed, rtol=1e-8, atol=1e-15)


def test_two_node_gcn_by_hand():
    """Two joined nodes, one feature, no hidden layer: P is 1/2 everywhere, so I(u -> v) = |x_u w| / 2."""
    data = canonical(Data(x=torch.tensor([[2.0], [-3.0]]), y=torch.tensor([0, 1]), edge_index=torch.tensor([[0], [1]])))
    model = GCN(1, 2, layers=1).eval()
    with torch.no_grad():
        model.layers[0].weight.copy_(torch.tensor([[3.0], [4.0]]))
        model.layers[0].bias.zero_()
    influence = link_teller_influence(model, data, torch.tensor([[0, 1], [1, 0]]))
    assert influence.tolist() == pytest.approx([2.0 * 5.0 / 2.0, 3.0 * 5.0 / 2.0], rel=1e-12)


@pytest.mark.parametrize("backbone", BACKBONE_NAMES)
def test_chunks_do_not_change_the_result(graph, backbone, monkeypatch):
    model, pairs = make(graph, backbone, 2), all_pairs(graph)
    whole = link_teller_influence(model, graph, pairs)
    monkeypatch.setattr(influence_module, "MEMORY_BUDGET", 4096)
    monkeypatch.setattr("lethe_lib.attacks.tangents.MEMORY_BUDGET", 4096)
    assert len(list(chunks(np.full(100, 100.0)))) > 2
    torch.testing.assert_close(link_teller_influence(model, graph, pairs), whole, rtol=1e-12, atol=1e-15)


def test_chunks_cover_every_pair_once():
    cost = np.array([1.0, 2.0 * influence_module.MEMORY_BUDGET, 1.0, 1.0])
    assert [i for chunk in chunks(cost) for i in range(4)[chunk]] == [0, 1, 2, 3]
    assert list(chunks(np.array([]))) == []


@pytest.mark.parametrize("backbone", BACKBONE_NAMES)
def test_influence_follows_a_renaming_of_the_nodes(graph, backbone):
    model, pairs = make(graph, backbone, 2), all_pairs(graph)
    name = torch.randperm(graph.num_nodes, generator=torch.Generator().manual_seed(5))
    old = torch.argsort(name)
    renamed = canonical(Data(x=graph.x[old], y=graph.y[old], edge_index=name[graph.edge_index]), num_classes=3)
    torch.testing.assert_close(
        link_teller_influence(model, renamed, name[pairs]),
        link_teller_influence(model, graph, pairs),
        rtol=1e-9,
        atol=1e-14,
    )


def test_sparse_features_give_the_same_influence(graph):
    x = graph.x.clone()
    x[:, 2:] = 0.0
    dense = canonical(Data(x=x, y=graph.y, edge_index=graph.edge_index), num_classes=3)
    sparse = canonical(Data(x=x.to_sparse_csr(), y=graph.y, edge_index=graph.edge_index), num_classes=3)
    for backbone in BACKBONE_NAMES:
        model = make(graph, backbone, 2)
        torch.testing.assert_close(
            link_teller_influence(model, sparse, all_pairs(graph)),
            link_teller_influence(model, dense, all_pairs(graph)),
            rtol=1e-12,
            atol=1e-15,
        )


class OwnGCN(GCN):
    """A backbone of somebody else: features are read in a way that the library cannot know."""

    def convolve(self, layer, data, rows):
        if layer == 0:
            rows = torch.sin(dense_features(data, self.layers[0].weight) if rows is None else rows)
        return super().convolve(layer, data, rows)


def test_a_backbone_of_unknown_kind_takes_the_general_way(graph):
    model = OwnGCN(9, 3, hidden=5)
    model.reset_parameters(torch.Generator().manual_seed(0))
    model.aggregation = None
    pairs = all_pairs(graph)
    difference = central_difference(model, graph, pairs)
    assert not has_row_products(model)
    assert np.abs(link_teller_influence(model, graph, pairs).numpy() - difference).max() < 1e-8 * difference.max()


def test_the_model_is_left_as_it_was_and_training_mode_does_not_matter(graph):
    for backbone in BACKBONE_NAMES:
        model = make(graph, backbone, 2)
        before = {name: value.clone() for name, value in model.state_dict().items()}
        pairs = all_pairs(graph)[:, :50]
        quiet = link_teller_influence(model, graph, pairs)
        model.train()
        assert torch.equal(link_teller_influence(model, graph, pairs), quiet)
        u, v = pairs.numpy()
        first, second = (finite_difference(model, graph, u, v, 1e-4) for _ in range(2))
        assert np.array_equal(first, second)
        assert model.training
        assert all(torch.equal(before[name], value) for name, value in model.state_dict().items())


def test_local_finite_difference_equals_two_full_forwards(graph):
    """The GCN's difference over the reached rows alone, against the whole forward with and without the change."""
    model, delta = make(graph, "gcn", 2).double(), 1e-3
    u, v = all_pairs(graph)[:, ::7].numpy()
    with torch.no_grad():
        before, expected = model(graph), []
        for perturbed, read in zip(u, v, strict=True):
            x = graph.x.double().clone()
            x[perturbed] *= 1.0 + delta
            expected.append(float((model(graph, x)[read] - before[read]).norm() / delta))
    np.testing.assert_allclose(finite_difference(model, graph, u, v, delta), expected, atol=1e-10)


def test_float32_differences_of_zero_pairs_are_below_the_noise_floor(graph):
    """Rounding of the published recipe: it may give a pair out of reach up to 1e-2, where the exact score is 0."""
    pairs = all_pairs(graph)
    far = hops_between(graph, pairs) > 2
    u, v = pairs.numpy()
    for backbone in BACKBONE_NAMES:
        model = make(graph, backbone, 2)
        noisy, exact = finite_difference(model, graph, u, v, 1e-4), link_teller_influence(model, graph, pairs).numpy()
        assert noisy[far].max() <= 1e-2
        np.testing.assert_allclose(noisy[~far], exact[~far], rtol=0.05, atol=2e-2)


@pytest.mark.parametrize(
    ("pairs", "culprit"),
    [
        (torch.tensor([[0, 1]]), "shape"),
        (torch.tensor([[0.0], [1.0]]), "int64"),
        (torch.tensor([[0], [40]]), "outside"),
        (torch.tensor([[3], [3]]), "node 3"),
    ],
)
def test_bad_pairs_are_refused(graph, pairs, culprit):
    with pytest.raises(InputError, match=culprit):
        link_teller_influence(make(graph, "gcn", 2), graph, pairs)


def test_no_pairs_and_no_reachable_pairs(graph):
    for backbone in BACKBONE_NAMES:
        for depth in (1, 2, 3):
            model = make(graph, backbone, depth)
            assert link_teller_influence(model, graph, torch.empty(2, 0, dtype=torch.int64)).shape == (0,)
            isolated = torch.tensor([[39, 39, 2], [0, 1, 39]])
            assert link_teller_influence(model, graph, isolated).tolist() == [0.0, 0.0, 0.0]


def test_benchmark_compares_equal_values(capsys):
    found = bench(load_graph("synthetic-tiny"))
    assert found["error"] < 1e-6
    assert found["ratio"] > 0.0
    assert f"{found['ratio']:,.0f}" in capsys.readouterr().out


@real_graphs
def test_edges_of_cora_are_found_when_the_queried_graph_has_them():
    graph = load_graph("cora")
    model = train(graph, "gcn", epochs=60, patience=60)
    chosen = np.sort(np.random.default_rng(0).choice(5_278, 500, replace=False))
    edges = graph.edge_index[:, graph.edge_index[0] < graph.edge_index[1]][:, chosen]
    result = attack("link_teller", model, graph, edges, query="original")
    assert result.auc > 0.95
