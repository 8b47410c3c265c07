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
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch.nn.functional import cross_entropy
from torch.optim.optimizer import register_optimizer_step_pre_hook
from torch_geometric.data import Data

from lethe_lib.data import load_graph
from lethe_lib.evaluation import accuracy, posterior_distance
from lethe_lib.models import Backbone, predict, train
from lethe_lib.reporting.style import PALETTE
from lethe_lib.reporting.titles import METHOD_TITLES
from lethe_lib.structure import forget_set
from lethe_lib.study.configuration import weight_change
from lethe_lib.unlearning import UNLEARNERS, EdgeForgetSpec, EdgeRequest, UnlearningResult, unlearn
from lethe_lib.unlearning.steps import guessing_loss, matched_mean

MEASURES = {
    "forget_loss": "forget loss, nats",
    "retain_loss": "retain loss, nats",
    "accuracy_val": "validation accuracy",
    "distance": "distance to Gold",
    "weight_change": "weight change",
}
"""What :meth:`Case.measure` gives that the figures show, with the titles of their panels."""

MARKERS = "osD^vP*X"


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


def released_models(case: Case, methods: tuple[str, ...], seed: int = 0) -> pd.DataFrame:
    """What methods release for the request under each of their presets, beside the original's weights and the Golds.

    Args:
        case: the request. methods: registry names. seed: of the methods.

    Returns:
        one row per model: ``method``, the numbers of :meth:`Case.measure` but for ``distance_other``, and, of methods
        only, ``backwards`` and ``status``.
    """
    rows = [{"method": "Original's weights", **case.measure(case.original)}]
    rows += [{"method": f"Gold {number}", **case.measure(gold)} for number, gold in enumerate(case.golds)]
    for name in methods:
        for preset in UNLEARNERS[name].settings:
            found = unlearn(name, case.original, case.data, case.pairs, seed, preset)
            row = {"method": f"{METHOD_TITLES[name]}, {preset}", **case.measure(found.model)}
            rows.append({**row, "backwards": found.steps.backwards, "status": found.status})
    return pd.DataFrame(rows).drop(columns="distance_other")


def path_figure(runs: Mapping[str, Followed], case: Case) -> Figure:
    """One panel per measure over the steps of several runs, with the levels of the Golds (:func:`mark_levels`).

    Args:
        runs: title -> followed run. case: the request that all of them answer.
    """
    fig, axes = plt.subplots(3, 2, figsize=(7, 7.5))
    panels = dict(zip(MEASURES, axes.flat, strict=False))
    for (name, run), colour, marker in zip(runs.items(), PALETTE, MARKERS, strict=False):
        every = max(1, len(run.path) // 8)
        for measure, ax in panels.items():
            style = {"color": colour, "marker": marker, "markersize": 4, "markevery": every}
            ax.plot(run.path["step"], run.path[measure], label=name, **style)
    for measure, ax in panels.items():
        ax.set(title=MEASURES[measure], xlabel="step")
        mark_levels(ax, measure, case)
    axes.flat[-1].axis("off")
    axes.flat[-1].legend(*panels["forget_loss"].get_legend_handles_labels(), loc="center")
    return fig


def sweep(
    case: Case,
    method: str,
    values: Mapping[float, Mapping[str, object]],
    forms: Mapping[str, Mapping[str, object]] | None = None,
    seeds: tuple[int, ...] = (0,),
) -> pd.DataFrame:
    """The released models of a method over the values of one setting.

    Args:
        case: the request. method: to run, preset ``corrected``.
        values: what stands on the axis -> the settings that belong to it.
        forms: name of a line -> settings that all of its values share; None for one line without a name.
        seeds: of the method, one run each.

    Returns:
        one row per run: ``form``, ``value``, ``status`` and the numbers of :meth:`Case.measure`.
    """
    rows = []
    for form, shared in (forms or {"": {}}).items():
        for value, own in values.items():
            for seed in seeds:
                result = unlearn(method, case.original, case.data, case.pairs, seed, **shared, **own)
                rows.append({"form": form, "value": value, "status": result.status, **case.measure(result.model)})
    return pd.DataFrame(rows)


def sweep_figure(sweeps: Mapping[str, tuple[str, pd.DataFrame]], case: Case) -> Figure:
    """One row of panels per sweep: forget loss, validation accuracy and distance to Gold.

    Args:
        sweeps: title -> (label of the axis, table from :func:`sweep`). Positive values that span more than a factor of
            20 stand on a logarithmic axis.
        case: the request that all of them answer.
    """
    shown = ("forget_loss", "accuracy_val", "distance")  # as many as stay readable on a small screen
    fig, axes = plt.subplots(len(sweeps), 3, figsize=(7, 0.4 + 1.9 * len(sweeps)), squeeze=False)
    for line, (title, (label, table)) in zip(axes, sweeps.items(), strict=True):
        panels = dict(zip(shown, line, strict=True))
        _draw_lines(panels, table, "value")
        for measure, ax in panels.items():
            ax.set(xlabel=label, xscale=_scale(table["value"]))
            mark_levels(ax, measure, case)
        line[0].set_ylabel(title, weight="bold")
        if table["form"].nunique() > 1:
            line[1].legend(handles=line[1].get_lines()[: table["form"].nunique()], fontsize=6)
    for measure, ax in zip(shown, axes[0], strict=True):
        ax.set_title(MEASURES[measure])
    return fig


def dose_figure(table: pd.DataFrame, label: str, case: Case, against: str = "value") -> Figure:
    """One panel per measure over the dose of a method that takes no step, one line per form, mean and range over draws.

    Args:
        table: rows with ``form``, ``value`` (the dose) and the numbers of :meth:`Case.measure`. label: of the axis.
        case: the request. against: ``value``, or ``weight_change`` to put that on the axis, with no panel of its own.
    """
    shown = [measure for measure in MEASURES if measure != against]
    shape, size = ((3, 2), (7, 7.5)) if len(shown) == 5 else ((2, 2), (7, 5.6))
    fig, axes = plt.subplots(*shape, figsize=size)
    panels = dict(zip(shown, axes.flat, strict=False))
    _draw_lines(panels, table, against)
    for measure, ax in panels.items():
        ax.set(title=MEASURES[measure], xlabel=label, xscale=_scale(table[against]))
        mark_levels(ax, measure, case)
    handles = panels["forget_loss"].get_legend_handles_labels()
    if len(shown) == 5:
        axes.flat[-1].axis("off")
        axes.flat[-1].legend(*handles, loc="center", fontsize=8)
    else:
        fig.legend(*handles, loc="outside lower center", ncols=2)
    return fig


def mark_levels(ax: Axes, measure: str, case: Case) -> None:
    """The exact answers behind the lines of a panel.

    Grey: the range over the Golds, in the panel of distances the distance between two Golds; in that of the forget loss
    also the reference (dashed) and, where the panel reaches it, log C (dotted).
    """
    if measure in ("forget_loss", "retain_loss", "accuracy_val"):
        levels = case.gold_levels[measure]
        ax.axhspan(levels.min(), levels.max(), color="0.8", zorder=0, label="Gold")
    if measure == "forget_loss":
        ax.axhline(case.reference_loss, color="0.3", linestyle="--", linewidth=1)
        if ax.get_ylim()[1] > case.guessing_loss:
            ax.axhline(case.guessing_loss, color="0.3", linestyle=":", linewidth=1)
    if measure == "distance":
        ax.axhline(case.floor, color="0.6", linewidth=4, zorder=0)


def _draw_lines(panels: Mapping[str, Axes], table: pd.DataFrame, against: str) -> None:
    """Mean and range over the draws of every (form, value), one colour and marker per form."""
    for (form, part), colour, marker in zip(table.groupby("form", sort=False), PALETTE, MARKERS, strict=False):
        runs = part.groupby("value", sort=False)
        place = runs[against].mean()
        for measure, ax in panels.items():
            mean, least, most = (getattr(runs[measure], name)() for name in ("mean", "min", "max"))
            ax.plot(place, mean, color=colour, marker=marker, markersize=4, label=form)
            ax.fill_between(place, least, most, color=colour, alpha=0.15)


def _scale(values: pd.Series) -> str:
    return "log" if values.min() > 0 and values.max() > 20 * values.min() else "linear"


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
