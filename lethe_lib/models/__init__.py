"""Graph neural networks: one backbone a file, one training loop, and fast exact sparse propagation under them."""

from lethe_lib.models.backbone import Backbone, TrainingRun
from lethe_lib.models.propagation import propagation, scipy_propagation
from lethe_lib.models.train import (
    BACKBONES,
    PRESETS,
    TrainingSettings,
    build,
    fit,
    predict,
    preset_of,
    resolve_device,
    retrain,
    train,
)

__all__ = [
    "BACKBONES",
    "PRESETS",
    "Backbone",
    "TrainingRun",
    "TrainingSettings",
    "build",
    "fit",
    "predict",
    "preset_of",
    "propagation",
    "resolve_device",
    "retrain",
    "scipy_propagation",
    "train",
]
