"""A run of a method followed step by step, beside the exact answers.

    case: a graph, its original, the pairs to forget, and three Golds: the first from the original's initial weights
    follow: note the weights before every optimiser step and at the end, then measure each of these models

What is measured of a model, always in evaluation mode and always on the same nodes, whatever a method looks at itself:
the loss on the training endpoints of the pairs on G (forget loss), the loss on all training nodes on G_r (retain loss),
validation accuracy on G_r, the distance to Gold (total variation of the posteriors on G_r, mean over all nodes), and how
far the weights went.
"""

import copy
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import torch
from matplotlib.figure import Figure
from torch.nn.functional import cross_entropy
from torch.optim.optimizer import register_optimizer_step_pre_hook
from torch_geometric.data import Data

from lethe_lib.data import load_graph
from lethe_lib.evaluation import accuracy, posterior_distance
from lethe_lib.models import Backbone, predict, train
from lethe_lib.reporting.style import PALETTE
from lethe_lib.structure import forget_set
from lethe_lib.study.configuration import weight_change
from lethe_lib.unlearning import EdgeForgetSpec, EdgeRequest, UnlearningResult, unlearn
from lethe_lib.unlearning.steps import guessing_loss, matched_mean

MEASURES = {
    "forget_loss": "forget loss, nats",
    "retain_loss": "retain loss, nats",
    "accuracy_val": "validation accuracy",
    "distance": "distance to Gold",
    "weight_change": "weight change",
}
"""What :meth:`Case.measure` gives that the figures show, with the titles of their panels."""


@dataclass(frozen=True)
class Case:
    """One request on one graph, with its exact answers.

    Attributes:
        data: the graph G. original: the model to unlearn from. pairs: the edges to forget.
        golds: retrained on G_r: the first from the original's initial weights, the others from new ones.
    """

    data: Data
    original: Backbone
    pairs: torch.Tensor
    golds: tuple[Backbone, ...]

    @cached_property
    def request(self) -> EdgeRequest:
        """The request under the default mapping: its forget nodes are the training endpoints."""
        return EdgeRequest(self.original, self.data, self.pairs)

    @cached_property
    def gold_logits(self) -> list[torch.Tensor]:
        """Logits of every Gold on G_r."""
        return [predict(gold, self.request.retained) for gold in self.golds]

    @cached_property
    def floor(self) -> float:
        """Mean distance of the first Gold to the others: two exact answers are not closer than this."""
        first, *others = self.gold_logits
        return float(np.mean([float(posterior_distance(first, other).mean()) for other in others]))

    @cached_property
    def gold_levels(self) -> pd.DataFrame:
        """What :meth:`measure` gives for every Gold."""
        return pd.DataFrame([self.measure(gold) for gold in self.golds])

    @cached_property
    def reference_loss(self) -> float:
        """Loss of the original on validation nodes like the forget nodes, on G: what it shows where it never trained."""
        losses = cross_entropy(predict(self.original, self.data), self.data.y, reduction="none")
        return matched_mean(losses, self.data, self.request.forget_nodes, self.request.split.val)

    @property
    def guessing_loss(self) -> float:
        """log C, the loss of a model that knows nothing."""
        return guessing_loss(self.data)

    def measure(self, model: Backbone) -> dict[str, float]:
        """The numbers of one model (module docstring); ``distance`` to the first Gold, ``distance_other`` to the others."""
        before, after = predict(model, self.data), predict(model, self.request.retained)
        labels, split, forgotten = self.data.y, self.request.split, self.request.forget_nodes
        first, *others = (float(posterior_distance(after, gold).mean()) for gold in self.gold_logits)
        return {
            "forget_loss": float(cross_entropy(before[forgotten], labels[forgotten])),
            "retain_loss": float(cross_entropy(after[split.train], labels[split.train])),
            "accuracy_val": accuracy(after, labels, split.val),
            "distance": first,
            "distance_other": float(np.mean(others)),
            "weight_change": weight_change(self.original, model),
        }


def live_case(
    dataset: str, backbone: str, seed: int, forget: str, fraction: float, preset: str = "corrected", golds: int = 3
) -> Case:
    """Train an original and its Golds.

    Args:
        dataset: name for ``load_graph``. backbone: registry name. seed: of split, training and forget set.
        forget, fraction: kind of the forget set and its share of the edges. preset: of the training.
        golds: how many, at least 2.
    """
    data = load_graph(dataset)
    original = train(data, backbone, seed=seed, preset=preset)
    pairs = forget_set(data, forget, fraction, seed)
    seeds = [seed + 1000 * offset for offset in range(golds)]
    return Case(data, original, pairs, tuple(unlearn("gold", original, data, pairs, s, preset).model for s in seeds))


@dataclass(frozen=True)
class Followed:
    """A followed run.

    Attributes:
        path: one row per model on the way, the original first: ``step`` and the numbers of :meth:`Case.measure`.
        result: what ``unlearn`` returned.
    """

    path: pd.DataFrame
    result: UnlearningResult


def follow(
    case: Case,
    method: str,
    preset: str = "corrected",
    mapping: EdgeForgetSpec | None = None,
    seed: int = 0,
    **settings,
) -> Followed:
    """Run a method once and measure it after every step.

    The weights are noted before each optimiser step and at the end, so what a method does between two steps (putting
    frozen weights back, say) is seen. For a method without steps the path has two rows: before and after.

    Args:
        case: the request. method, preset, mapping, seed, **settings: as for ``unlearn``.
    """
    with _weights_before_steps(case.original) as noted:
        result = unlearn(method, case.original, case.data, case.pairs, seed, preset, mapping, **settings)
    model = copy.deepcopy(case.original)
    rows = []
    for weights in noted or [[p.detach() for p in model.parameters()]]:
        with torch.no_grad():
            for parameter, value in zip(model.parameters(), weights, strict=True):
                parameter.copy_(value)
        rows.append(case.measure(model))
    rows.append(case.measure(result.model))
    path = pd.DataFrame(rows)
    path.insert(0, "step", range(len(path)))
    return Followed(path, result)


def path_figure(runs: Mapping[str, Followed], case: Case) -> Figure:
    """One panel per measure over the steps of several runs, with the levels of the Golds.

    Grey: the range over the Golds, in the panel of distances the distance between two Golds, in that of the forget loss
    also the reference (dashed) and log C (dotted).

    Args:
        runs: title -> followed run. case: the request that all of them answer.
    """
    fig, axes = plt.subplots(2, 3, figsize=(9, 5.2))
    panels = dict(zip(MEASURES, axes.flat, strict=False))
    markers = "osD^vP*X"
    for (name, run), colour, marker in zip(runs.items(), PALETTE, markers, strict=False):
        every = max(1, len(run.path) // 8)
        for measure, ax in panels.items():
            style = {"color": colour, "marker": marker, "markersize": 4, "markevery": every}
            ax.plot(run.path["step"], run.path[measure], label=name, **style)
    for measure, ax in panels.items():
        ax.set(title=MEASURES[measure], xlabel="step")
        if measure in ("forget_loss", "retain_loss", "accuracy_val"):
            levels = case.gold_levels[measure]
            ax.axhspan(levels.min(), levels.max(), color="0.8", zorder=0, label="Gold")
    panels["forget_loss"].axhline(case.reference_loss, color="0.3", linestyle="--", linewidth=1)
    if panels["forget_loss"].get_ylim()[1] > case.guessing_loss:
        panels["forget_loss"].axhline(case.guessing_loss, color="0.3", linestyle=":", linewidth=1)
    panels["distance"].axhline(case.floor, color="0.6", linewidth=4, zorder=0)
    axes.flat[-1].axis("off")
    axes.flat[-1].legend(*panels["forget_loss"].get_legend_handles_labels(), loc="center")
    return fig


@contextmanager
def _weights_before_steps(model: Backbone) -> Iterator[list[list[torch.Tensor]]]:
    """Copies of the weights before every step of an optimiser whose tensors have the shapes of the model's.

    Methods that optimise something else as well, such as input noise, are told apart by these shapes.
    """
    shapes = [parameter.shape for parameter in model.parameters()]
    noted: list[list[torch.Tensor]] = []

    def note(optimiser: torch.optim.Optimizer, args: tuple, kwargs: dict) -> None:
        tensors = [tensor for group in optimiser.param_groups for tensor in group["params"]]
        if [tensor.shape for tensor in tensors] == shapes:
            noted.append([tensor.detach().clone() for tensor in tensors])

    handle = register_optimizer_step_pre_hook(note)
    try:
        yield noted
    finally:
        handle.remove()
