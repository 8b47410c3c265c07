"""What an attack returns, and how an attack is declared."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch_geometric.data import Data

from lethe_lib.attacks.auc import auc, auc_interval
from lethe_lib.attacks.rates import tpr_at_fpr
from lethe_lib.models import Backbone


@dataclass(frozen=True, eq=False)
class AttackResult:
    """The outcome of one attack on one model.

    Attributes:
        name, preset: the attack and its preset.
        targets: int64; (2, n) pairs i < j for an attack on edges, (n,) nodes for an attack on nodes.
        scores: float64, (n,); higher = more likely a forgotten edge (or a member).
        labels: bool, (n,); true for forgotten edges (or members).
        query: the graph that the model was asked on, for an attack on edges a name of ``pairs.QUERIES``.
        headline: the number that the preset calls its result: the signed AUC unless the attack's module says otherwise.
        extras: further numbers, by name.
    """

    name: str
    preset: str
    targets: np.ndarray
    scores: np.ndarray
    labels: np.ndarray
    query: str
    headline: float | None = None
    extras: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self):
        if self.headline is None:
            object.__setattr__(self, "headline", self.auc)

    @cached_property
    def auc(self) -> float:
        """Signed AUC in [0, 1]."""
        return auc(self.scores, self.labels)

    @cached_property
    def interval(self) -> tuple[float, float]:
        """95 % DeLong interval of the AUC over targets, model held fixed."""
        return auc_interval(self.scores, self.labels)

    @property
    def accuracy(self) -> float | None:
        """Share of targets that the attack's own classifier labels correctly; None for an attack that has none."""
        return self.extras.get("accuracy")

    @property
    def tpr_at_one_percent(self) -> float:
        """Share of the forgotten edges (or members) found when at most 1 % of the others are accused; chance is 0.01."""
        return tpr_at_fpr(self.scores, self.labels, 0.01)

    @property
    def folded_auc(self) -> float:
        """max(AUC, 1 - AUC), for comparison with published tables that fold; it hides the direction."""
        return max(self.auc, 1.0 - self.auc)


@dataclass(frozen=True)
class Attack:
    """One attack, as the registry holds it.

    Attributes:
        run: ``run(model, data, forget, settings, seed, preset) -> AttackResult`` with checked, canonical, non-empty
            ``forget``.
        settings: preset name to a frozen settings object; ``corrected`` is required.
        targets: ``edges`` or ``nodes``: what a score is about.
        reference: authors, venue, year.
    """

    run: Callable[[Backbone, Data, torch.Tensor, Any, int, str], AttackResult]
    settings: Mapping[str, Any]
    targets: str
    reference: str
