"""The additions: matched AdvNegGrad, edge-difference SSD and SalUn, NPO, l1-sparse fine-tuning."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from test_unlearning_generic import SAME_VIEWS, SGD, TEN, far_pair, gradient, run, same, small, weights
from torch.nn.functional import cross_entropy, log_softmax

from lethe_lib.errors import InputError
from lethe_lib.unlearning import UNLEARNERS, EdgeForgetSpec, EdgeRequest, unlearn
from lethe_lib.unlearning.l1_sparse import ZERO, L1SparseSettings, penalty_weight, zero_share
from lethe_lib.unlearning.npo import gradient_weight, preference_loss

ADDITIONS = ("adv_neg_grad_matched", "ssd_edge_diff", "salun_edge_diff", "npo", "l1_sparse")


def test_additions_say_that_they_are():
    for method in ADDITIONS:
        assert UNLEARNERS[method].kind == "addition" and list(UNLEARNERS[method].settings) == ["corrected"]


@pytest.mark.parametrize("method", ADDITIONS)
def test_without_forget_samples_only_retain_terms_run(method):
    data, model, _ = small()
    bigger, pair = far_pair(data, model)
    result = unlearn(method, model, bigger, pair)
    uses = UNLEARNERS[method].uses_forget_samples
    assert result.status in (("no_forget_samples", "collapsed") if uses else ("ok", "collapsed"))
    assert same(result.model, model) == (method == "ssd_edge_diff")


@pytest.mark.parametrize("method", ["adv_neg_grad_matched", "npo", "l1_sparse"])
def test_forced_divergence_is_a_status(method):
    data, model, pairs = small(dropout=0.5)
    result = unlearn(method, model, data, pairs, optimiser="sgd", learning_rate=3e38)
    assert result.status == "diverged" and result.steps.backwards >= 1


@pytest.mark.parametrize("method", ["adv_neg_grad_matched", "npo", "l1_sparse"])
def test_unknown_optimiser_is_refused(method):
    data, model, pairs = small()
    with pytest.raises(InputError, match="nonsense.*choose"):
        unlearn(method, model, data, pairs, optimiser="nonsense")


@pytest.mark.parametrize("method", ["npo", "l1_sparse", "salun_edge_diff"])
def test_empty_retain_set_is_refused(method):
    data, model, pairs = small()
    everything = EdgeForgetSpec("hops", hops=25, train_only=False, retain_nodes="complement")
    with pytest.raises(InputError, match="no nodes"):
        run(method, model, data, pairs, everything)


# AdvNegGrad, matched


@pytest.mark.parametrize("dropout", [0.0, 0.5])
def test_equal_views_with_matched_weights_cancel(dropout):
    data, model, pairs = small(dropout=dropout)
    released, _ = run("adv_neg_grad_matched", model, data, pairs, SAME_VIEWS, steps=10, bounded=False, **SGD)
    assert torch.allclose(weights(released), weights(model), atol=1e-7)
    apart, _ = run(
        "adv_neg_grad", model, data, pairs, SAME_VIEWS, steps=10, bounded=False, w_retain=1.0, w_forget=1.0, **SGD
    )
    assert torch.allclose(weights(apart), weights(model), atol=1e-7) == (dropout == 0.0)  # other masks do not cancel


def test_matched_gradient_is_the_difference_of_the_moved_views():
    data, model, pairs = small()
    request = EdgeRequest(model, data, pairs, UNLEARNERS["adv_neg_grad_matched"].mapping["corrected"])
    moved, everyone = request.forget_nodes, request.split.train
    assert 0 < len(moved) < len(everyone)
    released, _ = run("adv_neg_grad_matched", model, data, pairs, request.spec, steps=1, bounded=False, **SGD)
    still = everyone[~torch.isin(everyone, moved)]
    share = len(moved) / len(everyone)
    influence = gradient(model, (share, request.retained, moved), (-share, data, moved))
    rest = gradient(model, (1 - share, data, still))
    assert torch.allclose(weights(released), weights(model) - 0.1 * (influence + rest), atol=1e-6)


def test_the_registered_mapping_is_the_one_that_runs():
    data, model, pairs = small()
    result = unlearn("adv_neg_grad_matched", model, data, pairs)
    assert result.request.spec == EdgeForgetSpec("affected")
    touched = torch.unique(pairs)
    assert len(result.request.forget_nodes) > len(touched[torch.isin(touched, result.request.split.train)])


# Edge-difference importance and saliency


def test_edge_importance_is_that_of_the_difference_of_the_views():
    data, model, pairs = small()
    request = EdgeRequest(model, data, pairs[:, :1])
    train, forget = request.split.train, request.forget_nodes
    sums = {"edges": torch.zeros_like(weights(model)), "whole": torch.zeros_like(weights(model))}
    for node in train:
        old = gradient(model, (1.0, data, node.view(1)))
        sums["whole"] += old.square() / len(train)
        if node in forget:
            sums["edges"] += (old - gradient(model, (1.0, request.retained, node.view(1)))).square() / len(forget)
    chosen = {"estimator": "exact", "alpha": 1.0, "dampening": 0.0}  # every selected weight becomes zero
    released, log = run("ssd_edge_diff", model, data, pairs[:, :1], **chosen)
    clear = (sums["edges"] - sums["whole"]).abs() > 1e-4 * sums["whole"]
    selected = (sums["edges"] > sums["whole"]) & clear
    assert selected.any() and torch.equal((weights(released) == 0) & clear, selected)
    nodes, _ = run("ssd", model, data, pairs[:, :1], **chosen)
    assert not same(released, nodes)


def test_edge_saliency_is_the_gradient_of_the_difference_of_the_views():
    data, model, pairs = small()
    request = EdgeRequest(model, data, pairs[:, :1])
    f, share = request.forget_nodes, 0.1
    slope = gradient(model, (1.0, data, f), (-1.0, request.retained, f)).abs()
    released, _ = run("salun_edge_diff", model, data, pairs[:, :1], share=share)
    moved = weights(released) != weights(model)
    largest = slope.argsort(descending=True)[: int(share * len(slope)) + 1]  # one more for a tie in rounding
    assert moved.any() and torch.isin(moved.nonzero().flatten(), largest).all()
    by_nodes, _ = run("salun", model, data, pairs[:, :1], share=share)
    assert not torch.equal(weights(by_nodes) != weights(model), moved)


@pytest.mark.parametrize(("edges", "nodes"), [("ssd_edge_diff", "ssd"), ("salun_edge_diff", "salun")])
def test_views_that_do_not_differ_leave_edge_importance_at_zero(edges, nodes):
    data, model, pairs = small()
    chosen = {"target_share": 0.2} if nodes == "ssd" else {"share": 0.0}
    mapping = EdgeForgetSpec(forget_graph="retained")  # both terms of the difference see G_r
    assert same(run(edges, model, data, pairs, mapping, **chosen)[0], model)
    if nodes == "ssd":
        assert not same(run(nodes, model, data, pairs, mapping, **chosen)[0], model)


# NPO


def test_preference_loss_by_hand():
    student, reference = torch.tensor([0.2, 0.5]).log(), torch.tensor([0.8, 0.5]).log()
    assert preference_loss(student, reference, 1.0).tolist() == pytest.approx([2 * math.log(1.25), 2 * math.log(2)])
    assert preference_loss(student, reference, 2.0).tolist() == pytest.approx([math.log(1 + 1 / 16), math.log(2)])
    assert gradient_weight(student, reference, 1.0).tolist() == pytest.approx([0.4, 1.0])


@settings(deadline=None)
@given(st.floats(-20, 0), st.floats(-20, 0), st.floats(0.01, 10))
def test_weight_is_the_slope_of_the_loss(student, reference, beta):
    p = torch.tensor([student], dtype=torch.float64, requires_grad=True)
    other = torch.tensor([reference], dtype=torch.float64)
    preference_loss(p, other, beta).sum().backward()
    weight = float(gradient_weight(p.detach(), other, beta))
    assert float(p.grad) == pytest.approx(weight, rel=1e-8, abs=1e-12) and 0 <= weight <= 2
    assert abs(student - reference) < 1e-9 or (weight < 1) == (student < reference)


@pytest.mark.parametrize("beta", [0.1, 1.0, 10.0])
def test_first_step_is_that_of_neg_grad(beta):
    data, model, pairs = small()
    ours, log = run("npo", model, data, pairs, steps=1, beta=beta, w_retain=0.0, w_forget=1.0, **SGD)
    theirs, _ = run("neg_grad", model, data, pairs, steps=1, clip=None, bound="none", **SGD)
    assert torch.allclose(weights(ours), weights(theirs), atol=1e-7) and not same(ours, model)
    assert log.rows[0]["mean_weight"] == pytest.approx(1.0)


def test_small_beta_recovers_neg_grad():
    data, model, pairs = small(dropout=0.5)
    chosen = {"steps": 15, "optimiser": "sgd", "learning_rate": 0.05}
    theirs, _ = run("neg_grad", model, data, pairs, clip=None, bound="none", **chosen)
    apart = []
    for beta in (1.0, 0.1, 0.01, 0.001):
        ours, _ = run("npo", model, data, pairs, beta=beta, w_retain=0.0, w_forget=1.0, **chosen)
        apart.append(float((weights(ours) - weights(theirs)).norm() / (weights(theirs) - weights(model)).norm()))
    assert all(a > b for a, b in zip(apart[:-1], apart[1:], strict=True)) and apart[-1] < 0.01 < 0.1 < apart[0]


def test_what_is_forgotten_is_let_go():
    data, model, pairs = small()
    chosen = {"steps": 60, "w_retain": 0.0, "w_forget": 1.0, "optimiser": "sgd", "learning_rate": 0.3}
    rows = run("npo", model, data, pairs, beta=2.0, **chosen)[1].rows
    shares, loss = [row["mean_weight"] for row in rows], [row["loss"] for row in rows]
    assert shares[0] == pytest.approx(1.0) and shares[-1] < 0.3
    assert all(a > b for a, b in zip(loss[:-1], loss[1:], strict=True))
    runaway = run("neg_grad", model, data, pairs, steps=60, clip=None, bound="none", optimiser="sgd", learning_rate=0.3)
    assert rows[0]["forget_loss"] < rows[-1]["forget_loss"] < 0.5 * runaway[1].rows[-1]["forget_loss"]


def test_gradient_of_npo_is_the_weighted_sum():
    data, model, pairs = small()
    request = EdgeRequest(model, data, pairs)
    f, r = request.forget_nodes, request.retain_nodes
    released, _ = run("npo", model, data, pairs, steps=2, w_retain=0.7, w_forget=0.4, beta=3.0, **SGD)
    student, start = model, log_softmax(model(data), 1)[f, data.y[f]].detach()
    for _ in range(2):
        now = log_softmax(student(data), 1)[f, data.y[f]].detach()
        shares = 2 * (3 * now).exp() / ((3 * now).exp() + (3 * start).exp())
        terms = [(-0.4 * float(w) / len(f), data, node.view(1)) for w, node in zip(shares, f, strict=True)]
        step = 0.1 * gradient(student, (0.7, request.retained, r), *terms)
        changed = torch.nn.utils.parameters_to_vector(student.parameters()).detach() - step
        student = type(model)(5, 3, hidden=8, dropout=0.0).eval()
        torch.nn.utils.vector_to_parameters(changed, student.parameters())
    assert torch.allclose(weights(released), weights(student), atol=1e-6)


def test_npo_without_forget_weight_is_fine_tuning():
    data, model, pairs = small(dropout=0.5, weight_decay=5e-4)
    ours, _ = run("npo", model, data, pairs, w_retain=1.0, w_forget=0.0, **TEN)
    assert same(ours, run("fine_tuning", model, data, pairs, **TEN)[0])


def test_npo_without_any_term_is_the_identity():
    data, model, pairs = small()
    assert same(run("npo", model, data, pairs, w_retain=0.0, w_forget=0.0)[0], model)


@pytest.mark.parametrize("beta", [0.0, -1.0, float("nan")])
def test_beta_must_be_positive(beta):
    data, model, pairs = small()
    with pytest.raises(InputError, match="beta"):
        unlearn("npo", model, data, pairs, beta=beta)


# l1-sparse fine-tuning


def test_without_penalty_it_is_fine_tuning_step_for_step():
    data, model, pairs = small(dropout=0.5, weight_decay=5e-4)
    theirs, fine = run("fine_tuning", model, data, pairs, **TEN)
    for chosen in ({"gamma": 0.0, "free_steps": 3}, {"gamma": 0.5, "free_steps": 10}):
        ours, log = run("l1_sparse", model, data, pairs, **TEN, **chosen)
        assert same(ours, theirs)
        assert [row["loss"] for row in log.rows[:-1]] == [row["loss"] for row in fine.rows]


def test_penalty_falls_linearly_and_ends_before_the_free_steps():
    schedule = L1SparseSettings(steps=10, free_steps=2, gamma=0.8)
    found = [penalty_weight(t, schedule) for t in range(10)]
    assert found == pytest.approx([0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1, 0.0, 0.0])
    data, model, pairs = small()
    rows = run("l1_sparse", model, data, pairs, steps=10, free_steps=2, gamma=0.8)[1].rows
    assert [row["gamma"] for row in rows[:-1]] == found


def test_a_penalised_step_by_hand():
    data, model, pairs = small()
    request = EdgeRequest(model, data, pairs)
    released, log = run("l1_sparse", model, data, pairs, steps=1, free_steps=0, gamma=0.05, **SGD)
    slope = gradient(model, (1.0, request.retained, request.retain_nodes)) + 0.05 * weights(model).sign()
    assert torch.allclose(weights(released), weights(model) - 0.1 * slope, atol=1e-6)
    size = float(weights(model).abs().sum())
    assert log.rows[0]["l1_norm"] == pytest.approx(size, rel=1e-5)
    loss = cross_entropy(model(request.retained)[request.retain_nodes], data.y[request.retain_nodes])
    assert log.rows[0]["loss"] == pytest.approx(float(loss.detach()) + 0.05 * size, rel=1e-5)


def test_zeros_are_counted_and_grow_with_the_penalty():
    data, model, pairs = small()
    chosen = {"steps": 400, "free_steps": 0, "learning_rate": 2e-3}
    shares = []
    for gamma in (0.0, 0.01, 0.1):
        released, log = run("l1_sparse", model, data, pairs, gamma=gamma, **chosen)
        last = log.rows[-1]
        by_hand = float((weights(released).abs() < ZERO).double().mean())
        assert last["zero_share_after"] == zero_share(released) == pytest.approx(by_hand)
        assert last["zero_share_before"] == zero_share(model)
        shares.append(last["zero_share_after"])
    assert shares[0] < shares[1] < shares[2] and shares[2] > 0.3


@pytest.mark.parametrize("free", [-1, 31])
def test_free_steps_out_of_range_are_refused(free):
    data, model, pairs = small()
    with pytest.raises(InputError, match="free_steps"):
        unlearn("l1_sparse", model, data, pairs, steps=30, free_steps=free)
