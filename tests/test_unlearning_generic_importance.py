"""Importance estimators, Fisher Forgetting and Selective Synaptic Dampening against their definitions."""

import copy

import pytest
import torch
from torch.nn.functional import cross_entropy
from torch_geometric.data import Data

from lethe_lib.data import Split, canonical, undirected_edges
from lethe_lib.errors import InputError
from lethe_lib.models import BACKBONES, TrainingRun, build, predict
from lethe_lib.unlearning import UNLEARNERS, EdgeForgetSpec, EdgeRequest, unlearn
from lethe_lib.unlearning.fisher import FisherSettings, add_noise, head_parameters, noise_deviation
from lethe_lib.unlearning.importance import fisher_diagonal, loss_importance, node_order, squared_gradients
from lethe_lib.unlearning.ssd import dampen_selected, threshold


def small(seed=0, hidden=6, nodes=20):
    generator = torch.Generator().manual_seed(seed)
    ring = torch.stack([torch.arange(nodes), (torch.arange(nodes) + 1) % nodes])
    extra = torch.randint(0, nodes, (2, 15), generator=generator)
    x = torch.randn(nodes, 4, generator=generator)
    data = canonical(Data(x=x, edge_index=torch.cat([ring, extra], 1), y=torch.arange(nodes) % 3), "small", 3)
    model = build(data, "gcn", seed, hidden=hidden)
    order = torch.randperm(nodes, generator=generator)
    split = Split(*(part.sort().values for part in order.split([12, 4, nodes - 16])))
    model.training_run = TrainingRun("gcn", seed, "corrected", {"weight_decay": 0.0, "hidden": hidden}, split)
    return data, model, undirected_edges(data)[:, ::8]


def flat(parts):
    return torch.cat([part.detach().flatten().double() for part in parts])


def weights(model):
    return flat(model.parameters())


def node_losses(model, data, nodes):
    return cross_entropy(model(data)[nodes], data.y[nodes], reduction="none")


def importance(model, data, nodes, estimator, seed=0, **settings):
    losses = node_losses(model, data, nodes)
    ranks = node_order(data, model(data))
    return flat(loss_importance(losses, nodes, ranks, list(model.parameters()), estimator, seed, **settings)[0])


def loop_of_single_nodes(model, data, nodes):
    total = torch.zeros_like(weights(model))
    for node in nodes.tolist():
        model.zero_grad()
        cross_entropy(model(data)[[node]], data.y[[node]]).backward()
        total += flat([p.grad for p in model.parameters()]).square()
    model.zero_grad()
    return total / len(nodes)


# Estimators


def test_squared_gradients_by_hand():
    w = torch.tensor([1.0, 2.0], requires_grad=True)
    outputs = torch.stack([3 * w[0], w[0] * w[1]])  # Jacobian [[3, 0], [2, 1]]
    found = squared_gradients(outputs, [w], torch.eye(2))[0]
    assert found.tolist() == [13.0, 1.0] and found.dtype == torch.float64
    assert squared_gradients(outputs, [w], torch.tensor([[1.0, -1.0]]))[0].tolist() == [1.0, 1.0]
    unused = torch.zeros(3, requires_grad=True)
    assert squared_gradients(outputs, [unused], torch.eye(2))[0].tolist() == [0.0, 0.0, 0.0]


def test_exact_importance_is_the_loop_over_nodes_and_the_published_one_is_not():
    data, model, _ = small()
    nodes = model.training_run.split.train
    truth = loop_of_single_nodes(model, data, nodes)
    assert torch.allclose(importance(model, data, nodes, "exact"), truth, rtol=1e-4, atol=1e-9)
    assert torch.allclose(importance(model, data, nodes, "minibatch", batch=1), truth, rtol=1e-4, atol=1e-9)
    published = importance(model, data, nodes, "published")
    mean_gradient = torch.autograd.grad(node_losses(model, data, nodes).mean(), list(model.parameters()))
    assert torch.allclose(published, flat(mean_gradient).square() / len(nodes), rtol=1e-4, atol=1e-12)
    assert published.sum() < 0.1 * truth.sum()
    assert importance(model, data, nodes, "minibatch", batch=4).sum() < 0.7 * truth.sum()


def test_exact_importance_is_the_loop_to_six_digits_in_float64():
    data, model, _ = small()
    model, data = model.double(), copy.copy(data)
    data.x = data.x.double()
    nodes = model.training_run.split.train
    truth = loop_of_single_nodes(model, data, nodes)
    largest = truth.max()
    for estimator, settings in (("exact", {}), ("minibatch", {"batch": 1})):
        assert (importance(model, data, nodes, estimator, **settings) - truth).abs().max() < 1e-6 * largest
        clear = truth > 1e-12 * largest
        found = importance(model, data, nodes, estimator, **settings)
        assert torch.allclose(found[clear], truth[clear], rtol=1e-6, atol=0.0)
    assert not torch.allclose(importance(model, data, nodes, "published"), truth, rtol=0.1)


def test_one_batch_of_all_nodes_is_the_squared_mean_gradient():
    data, model, _ = small()
    nodes = model.training_run.split.train
    whole = importance(model, data, nodes, "minibatch", batch=len(nodes))
    assert torch.allclose(whole, importance(model, data, nodes, "published") * len(nodes), rtol=1e-5)


def test_probes_are_unbiased_for_importance():
    data, model, _ = small()
    nodes = model.training_run.split.train
    truth = importance(model, data, nodes, "exact")
    runs = torch.stack([importance(model, data, nodes, "probes", seed=s, probes=2) for s in range(100)])
    assert _share_within(runs, truth) > 0.98
    assert torch.corrcoef(torch.stack([runs.mean(0), truth]))[0, 1] > 0.98


def _share_within(runs, truth, errors=3.5):
    """Share of the weights whose mean over runs lies within so many standard errors of the truth."""
    error = runs.std(0) / len(runs) ** 0.5
    return ((runs.mean(0) - truth).abs() <= errors * error + 1e-12).double().mean()


def test_fisher_by_its_definition_and_probes_unbiased():
    data, model, _ = small()
    nodes, ranks = model.training_run.split.train, node_order(data, model(data))
    parameters = list(model.parameters())
    truth = torch.zeros_like(weights(model))
    for node in nodes.tolist():
        log_p = torch.log_softmax(model(data)[node], 0)
        for label in range(3):
            slope = torch.autograd.grad(log_p[label], parameters, retain_graph=True)
            truth += float(log_p[label].detach().exp()) * flat(slope).square() / len(nodes)
    logits = model(data)
    exact, backwards = fisher_diagonal(logits, nodes, ranks, parameters, "exact", 0)
    assert torch.allclose(flat(exact), truth, rtol=1e-4, atol=1e-9) and backwards == 3 * len(nodes)
    runs = torch.stack(
        [flat(fisher_diagonal(logits, nodes, ranks, parameters, "probes", s, probes=4)[0]) for s in range(200)]
    )
    assert _share_within(runs, truth, 3.0) > 0.98  # of dozens of weights, one may lie outside by chance
    assert abs(runs.mean(0).sum() / truth.sum() - 1) < 0.05
    published, backwards = fisher_diagonal(logits, nodes, ranks, parameters, "published", 0)
    assert backwards == 3 and not torch.allclose(flat(published), truth, rtol=0.1)
    by_class = torch.zeros_like(truth)
    for label in range(3):
        probability = torch.softmax(logits[nodes], 1)[:, label].detach()
        loss = (
            probability * torch.nn.functional.cross_entropy(logits[nodes], nodes * 0 + label, reduction="none")
        ).sum()
        by_class += flat(torch.autograd.grad(loss, parameters, retain_graph=True)).square() / len(nodes)
    assert torch.allclose(flat(published), by_class, rtol=1e-4, atol=1e-9)


def test_fisher_reads_no_label():
    data, model, _ = small()
    other = copy.copy(data)
    other.y = (data.y + 1) % 3
    pairs = undirected_edges(data)[:, :2]
    assert torch.equal(
        weights(unlearn("fisher", model, data, pairs).model), weights(unlearn("fisher", model, other, pairs).model)
    )


@pytest.mark.parametrize("estimator", ["magic", "EXACT"])
def test_unknown_estimators_and_empty_sets_are_refused(estimator):
    data, model, pairs = small()
    nobody = torch.empty(0, dtype=torch.int64)
    for method in ("fisher", "ssd"):
        with pytest.raises(InputError, match="unknown"):
            unlearn(method, model, data, pairs, estimator=estimator)
    with pytest.raises(InputError, match="no nodes"):
        importance(model, data, nobody, "exact")
    with pytest.raises(InputError, match="no nodes"):
        fisher_diagonal(model(data), nobody, node_order(data, model(data)), list(model.parameters()), "probes", 0)


def test_node_order_does_not_depend_on_the_numbers():
    data, model, _ = small()
    data.x[3] = data.x[7]  # told apart by their outputs
    logits = model(data)
    ranks = node_order(data, logits)
    assert ranks.sort().values.tolist() == list(range(20)) and abs(int(ranks[3] - ranks[7])) == 1
    assert (ranks[3] < ranks[7]) == (logits[3, 0] < logits[7, 0])
    order = torch.randperm(20, generator=torch.Generator().manual_seed(1))
    moved = Data(x=data.x[order])
    assert torch.equal(node_order(moved, logits[order]), ranks[order])
    assert torch.equal(node_order(Data(x=data.x.to_sparse_csr()), logits), ranks)


# Fisher Forgetting


@pytest.mark.parametrize("settings", [{"scale": 0.0}, {"law": "code", "alpha": 0.0}])
def test_no_noise_is_the_identity(settings):
    data, model, pairs = small()
    assert torch.equal(weights(unlearn("fisher", model, data, pairs, **settings).model), weights(model))


@pytest.mark.parametrize(
    ("settings", "slope"),
    [
        (FisherSettings(scale=0.1, floor=0.0), -0.25),
        (FisherSettings(law="code", alpha=1e-3, clamped=False, row_means=False), -0.5),
    ],
)
def test_noise_obeys_its_law(settings, slope):
    fisher = [torch.logspace(-4, 2, 12, dtype=torch.float64).view(3, 4)]
    deviation = noise_deviation(fisher, [False], settings)
    start = torch.arange(12.0).view(3, 4)
    draws = []
    for seed in range(2000):
        parameter = start.clone()
        add_noise((parameter,), deviation, seed)
        draws.append(parameter)
    draws = torch.stack(draws).double()
    spread = draws.std(0)
    assert torch.allclose(spread, deviation[0], rtol=0.05)
    assert ((draws.mean(0) - start).abs() < 4.5 * spread / 2000**0.5 + 1e-6).all()
    x, y = fisher[0].flatten().log(), spread.flatten().log()
    fitted = ((x - x.mean()) * (y - y.mean())).sum() / (x - x.mean()).square().sum()
    assert float(fitted) == pytest.approx(slope, abs=0.01)


def test_sixteen_times_the_information_halves_the_papers_noise():
    fisher = [torch.rand(5, 4, dtype=torch.float64) + 0.1, torch.rand(5, dtype=torch.float64) + 0.1]
    once = noise_deviation(fisher, [False, False], FisherSettings())
    more = noise_deviation([16 * f for f in fisher], [False, False], FisherSettings())
    assert torch.allclose(flat(once), 2 * flat(more))


def test_floor_bounds_the_noise_of_weights_without_information():
    fisher = [torch.tensor([0.0, 0.0, 1.0, 16.0, 81.0], dtype=torch.float64)]
    settings = FisherSettings(scale=1.0, floor=0.5)
    assert noise_deviation(fisher, [False], settings)[0].tolist() == pytest.approx([0.5, 0.5, 0.5, 0.5, 1 / 3])
    with pytest.raises(InputError, match="zero for every weight"):
        noise_deviation([torch.zeros(3, dtype=torch.float64)], [False], settings)


def test_law_of_the_code_by_hand():
    settings = FisherSettings(law="code", alpha=1e-6)
    matrix = torch.tensor([[1.0, 0.0], [0.25, 0.25]], dtype=torch.float64)
    vector = torch.tensor([0.5, 0.0], dtype=torch.float64)
    body = noise_deviation([matrix, vector], [False, False], settings)
    assert body[0].square().mul(1e6).tolist() == [pytest.approx([500.5] * 2), pytest.approx([4.0] * 2)]
    assert body[1].square().mul(1e6).tolist() == pytest.approx([20.0, 10_000.0])
    head = noise_deviation([matrix, vector], [True, True], settings)
    assert head[0].square().mul(1e6).tolist() == [pytest.approx([505.0] * 2), pytest.approx([40.0] * 2)]
    assert head[1].square().mul(1e6).tolist() == pytest.approx([20.0, 1000.0])  # tenfold once, not twice


@pytest.mark.parametrize("backbone", list(BACKBONES))
def test_the_head_is_told_by_its_place(backbone):
    data, _, _ = small()
    architecture = {} if backbone == "sgc" else {"hidden": 3}  # a hidden width that equals the number of classes
    model = build(data, backbone, 0, **architecture)
    head = head_parameters(model)
    others = [name for name, _ in model.named_parameters() if name not in head]
    assert head and bool(others) == (backbone != "sgc")
    assert all("head" in name or ".1" in name for name in head) and not any("head" in name for name in others)


def test_alpha_reaches_the_noise():
    data, model, pairs = small()
    runs = [unlearn("fisher", model, data, pairs, law="code", alpha=a) for a in (1e-6, 1e-4)]
    moved = [float((weights(r.model) - weights(model)).norm()) for r in runs]
    assert moved[1] == pytest.approx(10 * moved[0], rel=1e-2)
    expected = [r.steps.rows[0]["expected_noise_norm"] for r in runs]
    assert expected[1] == pytest.approx(10 * expected[0], rel=1e-6) and 0.3 < moved[0] / expected[0] < 3


# Selective Synaptic Dampening


def test_dampening_by_hand():
    parameter = torch.tensor([1.0, -2.0, 3.0, 4.0, 5.0])
    forget = [torch.tensor([4.0, 8.0, 1.0, 0.0, 3.0], dtype=torch.float64)]
    full = [torch.tensor([1.0, 1.0, 1.0, 0.0, 0.0], dtype=torch.float64)]
    assert dampen_selected([parameter], forget, full, alpha=2.0, dampening=1.0) == 3
    assert parameter.tolist() == [0.25, -0.25, 3.0, 4.0, 0.0]
    again = torch.tensor([1.0, -2.0, 3.0, 4.0, 5.0])
    dampen_selected([again], forget, full, alpha=2.0, dampening=6.0)
    assert again.tolist() == [1.0, -1.5, 3.0, 4.0, 0.0]


def test_infinite_threshold_is_the_identity():
    data, model, pairs = small()
    for settings in ({"alpha": float("inf")}, {"target_share": 0.0}):
        result = unlearn("ssd", model, data, pairs, **settings)
        assert torch.equal(weights(result.model), weights(model)) and result.steps.rows[0]["selected_share"] == 0


@pytest.mark.parametrize("estimator", ["exact", "probes", "minibatch", "published"])
@pytest.mark.parametrize("method", ["ssd", "ssd_edge_diff"])
def test_weights_only_shrink_and_only_where_selected(estimator, method):
    data, model, pairs = small()
    result = unlearn(method, model, data, pairs[:, :1], estimator=estimator, target_share=0.2)
    before, after = weights(model), weights(result.model)
    assert (after.abs() <= before.abs()).all() and (after * before >= 0).all()
    share = result.steps.rows[0]["selected_share"]
    assert 0 < share <= 0.5  # 0.2 and the weights that tie
    assert (before != after).double().mean() <= share


def test_selection_is_the_threshold_and_shrinks_with_it():
    data, model, pairs = small()
    request = EdgeRequest(model, data, pairs[:, :1])
    forget = importance(model, data, request.forget_nodes, "exact")
    full = importance(model, data, request.split.train, "exact")
    shares = []
    for alpha in (0.5, 1.0, 2.0, 4.0):
        result = unlearn("ssd", model, data, pairs[:, :1], alpha=alpha, estimator="exact", dampening=0.0)
        selected = forget > alpha * full
        zeroed = weights(result.model) == 0
        assert torch.equal(zeroed, selected | (weights(model) == 0))
        shares.append(result.steps.rows[0]["selected_share"])
        assert shares[-1] == pytest.approx(float(selected.double().mean()))
    assert shares == sorted(shares, reverse=True) and shares[0] > shares[-1]


@pytest.mark.parametrize("estimator", ["exact", "probes", "minibatch"])
def test_forgetting_everything_selects_nothing(estimator):
    data, model, pairs = small()
    request = EdgeRequest(model, data, pairs, EdgeForgetSpec("hops", hops=20))
    assert torch.equal(request.forget_nodes, request.split.train)
    entry = UNLEARNERS["ssd"]
    settings = type(entry.settings["corrected"])(estimator=estimator, target_share=0.5)
    released, log = entry.run(copy.deepcopy(model), request, settings, 0)
    assert torch.equal(weights(released), weights(model)) and log.rows[0]["alpha"] == 1.0


def test_threshold_selects_its_share():
    generator = torch.Generator().manual_seed(0)
    forget = [torch.rand(40, 20, generator=generator, dtype=torch.float64) * 10]
    full = [torch.rand(40, 20, generator=generator, dtype=torch.float64)]
    for share in (0.005, 0.1, 0.5):
        alpha = threshold(forget, full, share)
        selected = int((forget[0] > alpha * full[0]).sum())
        assert int(share * 800) <= selected <= int(share * 800) + 1  # plus a ratio within the tolerance of the last
    assert threshold(forget, forget, 0.5) == 1.0  # never below 1
    free = threshold([torch.tensor([1.0, 2.0, 3.0, 0.0])], [torch.tensor([0.0, 1.0, 2.0, 0.0])], 0.25)
    assert free == 4.0  # only the weight that the whole set does not use; 0/0 never counts
    tied = torch.tensor([3.0, 3.0 * (1 + 1e-9), 3.0 * (1 - 1e-9), 2.0])
    assert 2.0 < threshold([tied], [torch.ones(4)], 0.3) < 2.9  # a tie is selected as a whole


def test_a_common_factor_changes_nothing():
    forget, full = [torch.rand(50, dtype=torch.float64)], [torch.rand(50, dtype=torch.float64)]
    results = []
    for factor in (1.0, 2.0**-20):
        parameter = torch.linspace(-1, 1, 50)
        scaled = [f * factor for f in forget], [f * factor for f in full]
        alpha = threshold(*scaled, 0.2)
        dampen_selected([parameter], *scaled, alpha, 1.0)
        results.append(parameter)
    assert torch.equal(*results)


def test_dampening_moves_the_forgotten_view_most():
    data, model, pairs = small()
    request = EdgeRequest(model, data, pairs[:, :1])
    result = unlearn("ssd", model, data, pairs[:, :1], estimator="exact", alpha=1.5)
    moved = (predict(result.model, data) - predict(model, data)).norm(dim=1)
    others = torch.ones(data.num_nodes, dtype=torch.bool)
    others[request.forget_nodes] = False
    assert float(moved[request.forget_nodes].mean()) > float(moved[others].mean()) > 0


def test_importance_that_sets_share_a_node_use_its_sign():
    data, model, _ = small()
    train = model.training_run.split.train
    ranks, parameters = node_order(data, model(data)), list(model.parameters())
    losses = node_losses(model, data, train)
    one = loss_importance(losses[:1], train[:1], ranks, parameters, "probes", 0, probes=3)[0]
    assert torch.allclose(flat(one), importance(model, data, train[:1], "exact"), rtol=1e-5, atol=1e-12)


def test_settings_out_of_range_are_refused():
    data, model, pairs = small()
    for settings in ({"target_share": 1.0}, {"reference": "both"}):
        with pytest.raises(InputError):
            unlearn("ssd", model, data, pairs, **settings)
