"""What an adversary reads off a released model, node by node.

The statistic is the logit-scaled confidence in the node's own label, log p_y - log(1 - p_y): close to normal over
models, which the plain loss is not (Carlini et al., "Membership inference attacks from first principles", 2022). It
determines the loss: loss = log(1 + exp(-confidence)).
"""

import copy
from dataclasses import dataclass

import numpy as np
import torch

from lethe_lib.errors import InputError
from lethe_lib.models import Backbone, predict
from lethe_lib.seeding import torch_generator
from lethe_lib.shadow.training_graph import ACCESS

NOISE = ("none", "weights", "logits")


@dataclass(frozen=True)
class Release:
    """What the adversary may query: over which edges, and behind which noise.

    Attributes:
        access: ``split``, ``full`` or ``none``, see ``training_graph``.
        noise: ``none``; ``weights`` (Gaussian noise on every weight before release); ``logits`` (on every answer).
        scale: standard deviation of the noise.
    """

    access: str = "full"
    noise: str = "none"
    scale: float = 0.0

    def __post_init__(self):
        if self.access not in ACCESS:
            raise InputError(f"unknown edge access {self.access!r}: choose {', '.join(ACCESS)}")
        if self.noise not in NOISE:
            raise InputError(f"unknown noise {self.noise!r}: choose {', '.join(NOISE)}")
        if (self.noise == "none") != (self.scale == 0) or not self.scale >= 0:
            raise InputError(f"noise {self.noise!r} does not go with scale {self.scale!r}")

    @property
    def label(self) -> str:
        """A short name, the coordinate along the axis ``release``."""
        return self.access if self.noise == "none" else f"{self.access}, {self.noise} {self.scale:g}"


def confidence_from_logits(logits: torch.Tensor, labels: torch.Tensor) -> np.ndarray:
    """The logit-scaled confidence in each node's label.

    Args:
        logits: (n, classes).
        labels: (n,) int64.

    Returns:
        (n,) float64; higher means that the model is surer of the label. Finite wherever the logits are.
    """
    logits = logits.double()
    true = logits.gather(1, labels[:, None])[:, 0]
    others = logits.scatter(1, labels[:, None], -torch.inf).logsumexp(dim=1)
    return (true - others).numpy()


def loss_from_confidence(confidence: np.ndarray) -> np.ndarray:
    """The cross-entropy of each node, exactly, from its logit-scaled confidence; same shape."""
    return np.logaddexp(0.0, -np.asarray(confidence, dtype=np.float64))


def released_logits(model: Backbone, graph, release: Release, seed: int) -> torch.Tensor:
    """The answers that leave the model under a release, (n, classes), on the CPU; ``model`` is not changed."""
    if release.noise == "weights":
        generator = torch_generator(seed, "weight noise", release.label)
        model = copy.deepcopy(model)
        with torch.no_grad():
            for parameter in model.parameters():
                noise = torch.randn(parameter.shape, generator=generator, dtype=parameter.dtype)
                parameter.add_(release.scale * noise.to(parameter.device))
    logits = predict(model, graph)
    if release.noise == "logits":
        generator = torch_generator(seed, "logit noise", release.label)
        logits = logits + release.scale * torch.randn(logits.shape, generator=generator, dtype=logits.dtype)
    return logits
