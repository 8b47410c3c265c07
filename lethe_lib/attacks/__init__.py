"""Attacks on forgotten edges: one question, many scores, one attack a file.

To add an attack, write ``run(model, data, forget, settings, seed, preset) -> AttackResult`` and register it:

    >>> from lethe_lib.attacks import ATTACKS, Attack
    >>> from lethe_lib.attacks.link_stealing import LinkStealingSettings, link_stealing
    >>> _ = ATTACKS.register("mine", Attack(link_stealing, {"corrected": LinkStealingSettings()}, "edges", "me"))
"""

import torch
from torch_geometric.data import Data

from lethe_lib.attacks.auc import Difference, auc, auc_interval, paired_difference, placements
from lethe_lib.attacks.e_umia import E_UMIA
from lethe_lib.attacks.e_umia_edges import E_UMIA_EDGES
from lethe_lib.attacks.global_threshold import global_threshold_test
from lethe_lib.attacks.hops import hop_distances
from lethe_lib.attacks.likelihood_ratio import likelihood_ratio, unit_status
from lethe_lib.attacks.link_stealing import LINK_STEALING
from lethe_lib.attacks.link_stealing_supervised import LINK_STEALING_SUPERVISED
from lethe_lib.attacks.link_teller import LINK_TELLER, link_teller_influence
from lethe_lib.attacks.node_membership import (
    ErrorCounts,
    bayes_rule_test,
    best_threshold_test,
    count_errors,
    likelihood_ratio_test,
)
from lethe_lib.attacks.pairs import NEGATIVES, QUERIES
from lethe_lib.attacks.posterior_features import PosteriorFeaturesSettings, posterior_features_attack
from lethe_lib.attacks.rates import advantage, tpr_at_fpr, unit_auc
from lethe_lib.attacks.result import Attack, AttackResult
from lethe_lib.attacks.strata import HopStrata, hop_strata
from lethe_lib.attacks.toggle_attack import EDGE_TOGGLE
from lethe_lib.attacks.trend_attack import TREND_ATTACK
from lethe_lib.errors import InputError
from lethe_lib.models import Backbone
from lethe_lib.registry import Registry, of_preset
from lethe_lib.structure import check_pairs

ATTACKS = Registry(
    "attack",
    {
        "link_teller": LINK_TELLER,
        "link_stealing": LINK_STEALING,
        "link_stealing_supervised": LINK_STEALING_SUPERVISED,
        "edge_toggle": EDGE_TOGGLE,
        "trend_attack": TREND_ATTACK,
        "e_umia": E_UMIA,
        "e_umia_edges": E_UMIA_EDGES,
    },
)


def attack(
    name: str,
    model: Backbone,
    data: Data,
    forget: torch.Tensor,
    seed: int = 0,
    preset: str = "corrected",
    **settings,
) -> AttackResult:
    """Ask a released model about forgotten edges, and measure how much its answers give away.

    The model is asked on the retained graph, ``data`` without the pairs; ``query="original"`` asks it on ``data``
    itself, which is right for the original model before unlearning and for no other. ``none`` and ``partial`` are attackers
    who know less of the graph.

    Args:
        name: a name of ``ATTACKS``.
        model: the released model (``unlearn(...).model``), trained or not; it is not changed.
        data: the original graph, with the edges.
        forget: (2, n) pairs that were to be forgotten, at least one.
        seed: seed of the negatives and of the attack's own randomness. The same seed, graph and forget set give the
            same pairs, whatever the model.
        preset: ``corrected`` or ``published``.
        **settings: fields of the attack's settings that replace the preset's.

    Returns:
        Scores, labels and AUC. An AUC means little alone: compare it with the same attack on Gold and Untrained.

    Raises:
        InputError: unknown names or settings, no pairs, pairs that are not edges of the graph.

    Example:
        >>> from lethe_lib.data import load_graph
        >>> from lethe_lib.models import train
        >>> from lethe_lib.structure import forget_set
        >>> graph = load_graph("synthetic-tiny")
        >>> result = attack("link_teller", train(graph, epochs=60), graph, forget_set(graph, "low"))
        >>> 0.0 <= result.auc <= 1.0
        True
    """
    entry = ATTACKS[name]
    chosen = of_preset(name, entry.settings, preset, settings)
    forget = check_pairs(data, forget)
    if forget.shape[1] == 0:
        raise InputError(f"{name} needs forgotten edges to attack, but the forget set is empty")
    return entry.run(model, data, forget, chosen, seed, preset)


__all__ = [
    "ATTACKS",
    "NEGATIVES",
    "QUERIES",
    "Attack",
    "AttackResult",
    "Difference",
    "ErrorCounts",
    "HopStrata",
    "PosteriorFeaturesSettings",
    "advantage",
    "attack",
    "auc",
    "auc_interval",
    "bayes_rule_test",
    "best_threshold_test",
    "count_errors",
    "global_threshold_test",
    "hop_distances",
    "hop_strata",
    "likelihood_ratio",
    "likelihood_ratio_test",
    "link_teller_influence",
    "paired_difference",
    "placements",
    "posterior_features_attack",
    "tpr_at_fpr",
    "unit_auc",
    "unit_status",
]
