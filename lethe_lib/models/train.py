"""One training loop for every backbone: full batch, Adam, early stopping on the validation nodes.

Preset ``corrected`` trains until the validation loss has not improved for ``patience`` epochs and always returns the
best weights. Preset ``published`` is the schedule of the Lethe benchmark (arXiv:2610.21869): 100 epochs at most, a rate
that falls linearly to half, patience 10 with a minimum improvement of 0.01, best weights restored only if patience ran
out, and one split for all seeds. It leaves models visibly under-trained; it exists to compare with the published
tables.
"""

import math
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields, replace

import torch
from torch.nn.functional import cross_entropy
from torch_geometric.data import Data

from lethe_lib.data import Split, split_nodes
from lethe_lib.errors import InputError, TrainingDiverged
from lethe_lib.models.backbone import Backbone, TrainingRun
from lethe_lib.models.gat import GAT
from lethe_lib.models.gcn import GCN
from lethe_lib.models.gin import GIN
from lethe_lib.models.sage import GraphSAGE
from lethe_lib.models.sgc import SGC
from lethe_lib.registry import Registry
from lethe_lib.seeding import torch_generator

BACKBONES = Registry("backbone", {"gcn": GCN, "gat": GAT, "gin": GIN, "sage": GraphSAGE, "sgc": SGC})


@dataclass(frozen=True)
class TrainingSettings:
    """Settings of the training loop.

    Attributes:
        learning_rate: Adam's rate at the start. final_rate: the share of it reached after ``decay_epochs``, linearly.
        weight_decay: L2 penalty on all parameters, as Adam applies it.
        epochs: most epochs. patience: epochs without improvement before stopping.
        min_delta: smallest fall of the validation loss that counts as an improvement.
        always_restore: return the best weights also when ``epochs`` ran out first.
    """

    learning_rate: float = 0.01
    weight_decay: float = 5e-4
    epochs: int = 1000
    patience: int = 50
    min_delta: float = 1e-3
    final_rate: float = 1.0
    decay_epochs: int = 100
    always_restore: bool = True


PRESETS = {
    "corrected": TrainingSettings(),
    "published": TrainingSettings(
        learning_rate=1e-3,
        weight_decay=0.0,
        epochs=100,
        patience=10,
        min_delta=0.01,
        final_rate=0.5,
        always_restore=False,
    ),
}
BACKBONE_SETTINGS = {"sgc": {"learning_rate": 0.1}}
"""Preset ``corrected``: SGC has one convex layer, which at 0.01 is far from converged after 1,000 epochs."""

PUBLISHED_ARCHITECTURE = {"gin": {"norm": False}, "sgc": {"bias": False}}


def preset_of(preset: str) -> TrainingSettings:
    """The training settings of a preset; an unknown name is an InputError."""
    if preset not in PRESETS:
        raise InputError(f"unknown preset {preset!r}: choose {' or '.join(PRESETS)}")
    return PRESETS[preset]


def resolve_device(device: str) -> torch.device:
    """``auto`` is CUDA where there is one, else the CPU; any other name is taken as torch understands it.

    Raises:
        InputError: torch knows no such device, or it has no CUDA here.
    """
    if device == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        found = torch.device(device)
    except RuntimeError:
        raise InputError(f"unknown device {device!r}: choose auto, cpu, cuda, or cuda:0") from None
    if found.type == "cuda" and not torch.cuda.is_available():
        raise InputError(f"device={device!r} cannot be used, as torch sees no CUDA device: choose auto or cpu")
    return found


def build(data: Data, backbone: str = "gcn", seed: int = 0, preset: str = "corrected", **architecture) -> Backbone:
    """An untrained model for a graph, in evaluation mode on the CPU.

    Args:
        data: a canonical graph; its feature width and class count size the model.
        backbone: ``gcn``, ``gat``, ``gin``, ``sage`` or ``sgc``, or a name that was registered.
        seed: seed of the initial weights.
        preset: ``published`` removes GIN's normalisation and SGC's bias, as in the benchmark.
        **architecture: arguments of the backbone, such as ``hidden``, ``layers``, ``dropout``, ``heads``.

    Raises:
        InputError: unknown backbone or argument, or a graph that is not in canonical form.
    """
    if "content_hash" not in data:
        raise InputError("the graph is not in canonical form: pass it through lethe_lib.data.canonical first")
    defaults = PUBLISHED_ARCHITECTURE.get(backbone, {}) if preset == "published" else {}
    try:
        model = BACKBONES[backbone](data.x.shape[1], int(data.num_classes), **{**defaults, **architecture})
    except TypeError as error:
        raise InputError(f"backbone {backbone!r} does not take these settings: {error}") from error
    model.reset_parameters(torch_generator(seed, "initial weights", backbone))
    return model.eval()


def train(
    data: Data,
    backbone: str = "gcn",
    seed: int = 0,
    device: str = "auto",
    preset: str = "corrected",
    split: Split | None = None,
    **settings,
) -> Backbone:
    """Train a backbone on the labelled training nodes of a graph.

    Args:
        data: a canonical graph.
        backbone: a name of ``BACKBONES``.
        seed: seed of the split (preset ``corrected``), the initial weights and the dropout masks.
        device: ``auto``, ``cpu``, ``cuda``, ...
        preset: ``corrected`` (converged) or ``published`` (the benchmark's schedule).
        split: node indices to use instead of the seed's own split.
        **settings: fields of ``TrainingSettings`` or arguments of the backbone that replace the preset's.

    Returns:
        The model in evaluation mode, with its ``training_run``. On a CPU the same arguments give the same weights.

    Raises:
        InputError: unknown names or settings, no training or validation nodes, labels out of range.
        TrainingDiverged: the loss stopped being finite.

    Example:
        >>> from lethe_lib.data import load_graph
        >>> model = train(load_graph("synthetic-tiny"), "gcn", seed=1, epochs=5)
        >>> model.training_run.epochs
        5
    """
    names = {field.name for field in fields(TrainingSettings)}
    if preset == "corrected":
        settings = {**BACKBONE_SETTINGS.get(backbone, {}), **settings}
    schedule = replace(preset_of(preset), **{k: v for k, v in settings.items() if k in names})
    architecture = {k: v for k, v in settings.items() if k not in names}
    split = split_nodes(data, seed, preset) if split is None else split
    model = build(data, backbone, seed, preset, **architecture).to(resolve_device(device))
    run = TrainingRun(backbone, seed, preset, {**asdict(schedule), **architecture}, split)
    return fit(model, data, run, schedule)


def retrain(data: Data, run: TrainingRun, seed: int | None = None, device: str = "auto") -> Backbone:
    """Train again as ``run`` says, same split, on another graph; ``seed`` None keeps the seed of the run."""
    seed = run.seed if seed is None else seed
    return train(data, run.backbone, seed, device, run.preset, split=run.split, **run.settings)


def fit(
    model: Backbone,
    data: Data,
    run: TrainingRun,
    schedule: TrainingSettings,
    on_epoch: Callable[[int, float], None] | None = None,
) -> Backbone:
    """The training loop itself: trains ``model`` in place and returns it in evaluation mode with its record."""
    device = next(model.parameters()).device
    nodes, held_out = run.split.train.to(device), run.split.val.to(device)
    if len(nodes) == 0 or len(held_out) == 0:
        raise InputError("training needs at least one training and one validation node: check the split")
    labels = data.y.to(device)
    optimiser = torch.optim.Adam(model.parameters(), lr=schedule.learning_rate, weight_decay=schedule.weight_decay)
    model.generator = torch_generator(run.seed, "dropout", run.backbone, device=str(device))
    best_loss, best_epoch, best_weights, history = math.inf, 0, None, []
    start = time.perf_counter()
    # The first layer is computed once per weights: for the validation after one step and for the training of the next.
    first = None if model.input_layer_is_random else model.train().input_layer(data)
    for epoch in range(1, schedule.epochs + 1):
        progress = min((epoch - 1) / schedule.decay_epochs, 1.0)
        for group in optimiser.param_groups:
            group["lr"] = schedule.learning_rate * (1.0 + (schedule.final_rate - 1.0) * progress)
        model.train()
        optimiser.zero_grad(set_to_none=True)
        logits = model(data) if first is None else model.rest(data, first)
        cross_entropy(logits[nodes], labels[nodes]).backward()
        optimiser.step()
        model.eval()
        if first is not None:
            first = model.input_layer(data)
        with torch.no_grad():
            logits = model(data) if first is None else model.rest(data, first.detach())
            validation = float(cross_entropy(logits[held_out], labels[held_out]))
        history.append(validation)
        if not math.isfinite(validation):
            raise TrainingDiverged(
                f"{run.backbone} on {data.name}: the validation loss is {validation} after epoch {epoch}; "
                f"try a smaller learning_rate than {schedule.learning_rate}"
            )
        if validation < best_loss - schedule.min_delta:
            best_loss, best_epoch = validation, epoch
            best_weights = {name: value.clone() for name, value in model.state_dict().items()}
        if on_epoch is not None:
            on_epoch(epoch, validation)
        if epoch - best_epoch >= schedule.patience:
            break
    stopped_early = len(history) - best_epoch >= schedule.patience
    if best_weights is not None and (schedule.always_restore or stopped_early):
        model.load_state_dict(best_weights)
    model.generator = None
    model.training_run = replace(
        run,
        epochs=len(history),
        best_epoch=best_epoch,
        history=tuple(history),
        seconds=time.perf_counter() - start,
    )
    return model.eval()


@torch.no_grad()
def predict(model: Backbone, data: Data) -> torch.Tensor:
    """Logits in evaluation mode, (n, classes), on the CPU; the model's mode is left as it was."""
    mode = model.training
    logits = model.eval()(data).cpu()
    model.train(mode)
    return logits
