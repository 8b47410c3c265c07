"""What holds for every attack of the registry: names of nodes do not matter, and a higher score means forgotten."""

import copy
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

import lethe_lib.attacks.e_umia_edges as edge_umia_module
import lethe_lib.attacks.link_stealing_supervised as supervised_module
import lethe_lib.attacks.pairs as pairs_module
import lethe_lib.attacks.trend_attack as trend_module
from lethe_lib.attacks import ATTACKS, AttackResult, attack, auc
from lethe_lib.data import Split, canonical
from lethe_lib.unlearning import unlearn

SEES = ("link_stealing", "link_stealing_supervised", "edge_toggle", "trend_attack", "e_umia_edges")
"""Attacks that find the Memoriser's edges."""

BLIND = ("link_teller",)
"""Attacks on edges that cannot: what the Memoriser adds to the logits has no derivative."""

ON_NODES = ("e_umia",)
"""Attacks on nodes: they have members to find, and no edges."""

DRAWS = (
    (pairs_module, "_candidate_pairs"),
    (supervised_module, "labelled_pairs"),
    (trend_module, "labelled_pairs"),
    (trend_module, "shadow_model"),
    (edge_umia_module, "matched_kept_edges"),
    (edge_umia_module, "shared_folds"),
)
"""Everything that an attack draws by the numbers of the nodes."""


@pytest.fixture(scope="module")
def released(graph, model, forget):
    return {name: unlearn(name, model, graph, forget).model for name in ("memoriser", "utu")}


def test_every_attack_has_a_place_in_the_contract():
    assert set(SEES) | set(BLIND) == {name for name in ATTACKS if ATTACKS[name].targets == "edges"}
    assert set(ON_NODES) == {name for name in ATTACKS if ATTACKS[name].targets == "nodes"}
    assert not set(SEES) & set(BLIND)


# --- names of nodes ---


def renumbered(value: object, new_name: torch.Tensor) -> object:
    """Pairs of nodes under new names, in the same order; what is no pair of nodes stays."""
    if isinstance(value, tuple):
        return tuple(renumbered(part, new_name) for part in value)
    if isinstance(value, torch.Tensor):
        return new_name[value].sort(dim=0).values
    return value


class Replay:
    """First call through and keep the answers; then give the same answers again, under new names.

    Draws on another graph, that of a shadow model, have numbers of their own and pass.
    """

    def __init__(self, draw: Callable, new_name: torch.Tensor):
        self.draw, self.new_name, self.kept, self.again = draw, new_name, [], False

    def __call__(self, *arguments, **named):
        if isinstance(arguments[0], Data) and arguments[0].num_nodes != len(self.new_name):
            return self.draw(*arguments, **named)
        if self.again:
            return renumbered(self.kept.pop(0), self.new_name)
        self.kept.append(self.draw(*arguments, **named))
        return self.kept[-1]


@pytest.mark.parametrize("name", list(ATTACKS))
def test_renumbering_the_nodes_changes_nothing(graph, model, forget, name, monkeypatch):
    """Draws depend on the numbers of the nodes, and are therefore taken over; given them, all else must be the same.

    Without that, only the distribution of the draws is the same. For E-UMIA on nodes, whose members and folds have no
    draw of pairs, scores and AUC are compared, and not the accuracy over folds. The presets ``published`` are left out:
    the benchmark perturbs the end with the larger number, and cuts groups to the lowest ones.
    """
    new_name = torch.randperm(graph.num_nodes, generator=torch.Generator().manual_seed(1))
    old = torch.argsort(new_name)
    renamed = canonical(
        Data(x=graph.x.to_dense()[old], y=graph.y[old], edge_index=new_name[graph.edge_index]), "new", 3
    )
    split = model.training_run.split
    other = copy.deepcopy(model)
    parts = {part: new_name[getattr(split, part)] for part in ("train", "val", "test")}
    other.training_run = replace(model.training_run, split=Split(**parts))
    replays = [Replay(getattr(module, draw), new_name) for module, draw in DRAWS]
    for (module, draw), replay in zip(DRAWS, replays, strict=True):
        monkeypatch.setattr(module, draw, replay)

    def run(model, data: Data, forget: torch.Tensor) -> AttackResult:  # as ``attack`` does, the order of forget kept
        return ATTACKS[name].run(model, data, forget, ATTACKS[name].settings["corrected"], 0, "corrected")

    first = run(model, graph, forget)
    for replay in replays:
        replay.again = True
    second = run(other, renamed, renumbered(forget, new_name))
    assert not any(replay.kept for replay in replays)
    assert second.auc == pytest.approx(first.auc, abs=2e-3)  # a near tie may turn by rounding
    ends = new_name[torch.from_numpy(first.targets)]
    if name in ON_NODES:
        score = dict(zip(second.targets.tolist(), second.scores, strict=True))
        matched = np.array([score[node] for node in ends.tolist()])
        assert {*second.targets[second.labels].tolist()} == {*ends[torch.from_numpy(first.labels)].tolist()}
    else:
        assert torch.equal(ends.sort(dim=0).values, torch.from_numpy(second.targets))
        assert np.array_equal(first.labels, second.labels)
        matched = second.scores
    np.testing.assert_allclose(matched, first.scores, rtol=1e-3, atol=1e-4)
    assert np.ptp(first.scores) > 0


# --- direction ---


@pytest.mark.parametrize("name", SEES)
def test_a_higher_score_means_forgotten(graph, forget, released, name):
    """A model that keeps the forgotten edges raises the AUC above one half and above that of the weights alone."""
    keeps, weights = (attack(name, released[kind], graph, forget, negatives="matched") for kind in ("memoriser", "utu"))
    assert keeps.auc > 0.6
    assert keeps.auc > weights.auc + 0.05
    assert keeps.scores[keeps.labels].mean() > keeps.scores[~keeps.labels].mean()
    assert auc(keeps.scores, ~keeps.labels) == pytest.approx(1 - keeps.auc)


@pytest.mark.parametrize("name", BLIND)
def test_blind_attacks_do_not_move(graph, forget, released, name):
    for negatives in ("matched", "uniform"):
        keeps, weights = (
            attack(name, released[kind], graph, forget, negatives=negatives) for kind in ("memoriser", "utu")
        )
        np.testing.assert_allclose(keeps.scores, weights.scores, rtol=1e-6)
        assert keeps.auc == pytest.approx(weights.auc)


@pytest.mark.parametrize("name", ["link_teller", "link_stealing", "link_stealing_supervised"])
def test_on_the_graph_with_the_edges_joined_pairs_score_higher(graph, model, forget, name):
    """The direction of an attack that is blind to the Memoriser: messages along the very edges that are asked about."""
    found, hidden = (attack(name, model, graph, forget, query=query) for query in ("original", "retained"))
    assert found.auc > 0.7
    assert found.auc > hidden.auc


@pytest.mark.parametrize("name", ON_NODES)
def test_members_of_an_attack_on_nodes_score_higher(graph, model, forget, name, monkeypatch):
    """Answers that are right on training nodes and wrong on others, then the other way round."""
    trained = torch.zeros(graph.num_nodes, dtype=torch.bool)
    trained[model.training_run.split.train] = True
    right = 5.0 * torch.nn.functional.one_hot(graph.y, 3).float()
    for rows, expected in ((trained, 1.0), (~trained, 0.0)):
        answers = torch.where(rows[:, None], right, -right)
        monkeypatch.setattr(f"lethe_lib.attacks.{name}.predict", lambda model, data, answers=answers: answers)
        assert attack(name, model, graph, forget).auc == expected


@pytest.mark.parametrize("name", ON_NODES)
def test_an_attack_on_nodes_is_blind_to_single_edges(graph, model, forget, name):
    """Other edges between the same ends, the same answers: the same scores. No pair enters them."""
    ends = forget.unique()
    inside = torch.isin(graph.edge_index, ends).all(dim=0) & (graph.edge_index[0] < graph.edge_index[1])
    others = graph.edge_index[:, inside]
    others = others[:, ~torch.isin(others[0] * 1000 + others[1], forget[0] * 1000 + forget[1])]
    assert others.shape[1] > 10
    more = torch.cat([forget, others[:, :10]], dim=1)
    first, second = (attack(name, model, graph, request, query="original") for request in (forget, more))
    assert np.array_equal(first.targets, second.targets)
    assert np.array_equal(first.scores, second.scores)
