"""Training one shadow model: full batch, a fixed number of Adam steps, no validation set.

Every sampled node is a training node, so there is nothing to stop early on; the schedule is that of Khosla
(arXiv:2601.17130): two layers of 64 units, no dropout, Adam at 0.01 with weight decay 5e-4, 200 epochs.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch.nn.functional import cross_entropy
from torch_geometric.data import Data

from lethe_lib.errors import InputError, TrainingDiverged
from lethe_lib.models import Backbone, build
from lethe_lib.shadow.compiled_gcn import applies, fit_compiled
from lethe_lib.shadow.stacked import fit_stacked, stackable


@dataclass(frozen=True)
class ShadowTraining:
    """How each shadow model is trained.

    Attributes:
        epochs: full-batch steps; 0 leaves the model untrained, the control that can know nothing of its sample.
        learning_rate, weight_decay: Adam's.
        hidden, layers: of the network (``hidden`` is ignored by SGC, which has none).
        heads: attention heads of GAT's hidden layers.
        dropout: rate on hidden rows.
    """

    epochs: int = 200
    learning_rate: float = 0.01
    weight_decay: float = 5e-4
    hidden: int = 64
    layers: int = 2
    heads: int = 1
    dropout: float = 0.0

    def __post_init__(self):
        for name, least in (("epochs", 0), ("hidden", 1), ("layers", 1), ("heads", 1)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < least:
                raise InputError(f"{name} must be an integer of at least {least}, not {value!r}")
        if not self.learning_rate > 0:
            raise InputError(f"learning_rate must be positive, not {self.learning_rate!r}")

    def architecture(self, backbone: str) -> dict:
        """The arguments of a backbone that these settings fix."""
        if backbone == "sgc":
            return {"layers": self.layers}
        extra = {"heads": self.heads} if backbone == "gat" else {}
        return {"hidden": self.hidden, "layers": self.layers, "dropout": self.dropout, **extra}


def fit_shadow(
    data: Data,
    backbone: str,
    seed: int,
    training: ShadowTraining,
    device: torch.device | str = "cpu",
    dtype=torch.float32,
) -> Backbone:
    """Train a model on all nodes of a training graph.

    Args:
        data: from :func:`training_graph`.
        backbone: a name of ``BACKBONES``.
        seed: of the initial weights and of dropout.
        training: the schedule.
        device, dtype: where and in which precision.

    Returns:
        The model in evaluation mode.

    Raises:
        TrainingDiverged: the loss stopped being finite.
    """
    model = build(data, backbone, seed, **training.architecture(backbone)).to(device=device, dtype=dtype).train()
    if training.epochs == 0:
        return model.eval()
    if applies(model, data):
        loss = fit_compiled(model, data, training.epochs, training.learning_rate, training.weight_decay)
    else:
        loss = _fit(model, data, training, seed)
    return _finished(model, loss, data, backbone, training)


def fit_shadows(
    graphs: Sequence[Data], backbone: str, seeds: Sequence[int], training: ShadowTraining, device: torch.device | str
) -> list[Backbone]:
    """Train a model on each graph, as :func:`fit_shadow` does: stacked on a graphics processor, one by one elsewhere.

    Args:
        graphs, seeds: one of each for every model; the other arguments as in :func:`fit_shadow`.
    """
    if torch.device(device).type == "cpu" or training.epochs == 0:
        return [fit_shadow(graph, backbone, seed, training, device) for graph, seed in zip(graphs, seeds, strict=True)]
    architecture = training.architecture(backbone)
    models = [
        build(graph, backbone, seed, **architecture).to(device) for graph, seed in zip(graphs, seeds, strict=True)
    ]
    if not stackable(models[0]):
        return [fit_shadow(graph, backbone, seed, training, device) for graph, seed in zip(graphs, seeds, strict=True)]
    losses = fit_stacked(models, graphs, training.epochs, training.learning_rate, training.weight_decay)
    return [_finished(*found, backbone, training) for found in zip(models, losses, graphs, strict=True)]


def _finished(model: Backbone, loss: float, data: Data, backbone: str, training: ShadowTraining) -> Backbone:
    if not math.isfinite(loss):
        raise TrainingDiverged(f"{backbone} on {data.name}: the loss is {loss} after {training.epochs} epochs")
    return model.eval()


def _fit(model: Backbone, data: Data, training: ShadowTraining, seed: int) -> float:
    """The same training by automatic differentiation, for every backbone and device."""
    parameters = list(model.parameters())
    labels = data.y.to(parameters[0].device)
    model.generator = torch.Generator(device=parameters[0].device).manual_seed(seed)
    optimiser = torch.optim.Adam(parameters, lr=training.learning_rate, weight_decay=training.weight_decay, fused=True)
    for _ in range(training.epochs):
        optimiser.zero_grad(set_to_none=True)
        loss = cross_entropy(model(data), labels)
        loss.backward()
        optimiser.step()
    model.generator = None
    return float(loss.detach())
