"""One run = one frozen configuration -> one record.

A configuration is a frozen dataclass with a ``measure`` method. Its key is a hash of its class, its fields and the
stage version, so a changed setting or a changed meaning is another run. Two kinds are shared by several studies: an
unlearning run with its attacks, and the displacement of edge endpoints.
"""

import hashlib
import json
from dataclasses import asdict, dataclass, field
from pathlib import Path

import numpy as np
import torch
from torch_geometric.data import Data

from lethe_lib.attacks import attack
from lethe_lib.evaluation import utility
from lethe_lib.models import Backbone, predict
from lethe_lib.structure import endpoint_displacement, forget_set, set_displacement
from lethe_lib.study.trained import graph, trained
from lethe_lib.unlearning import UNLEARNERS, UnlearningResult, unlearn
from lethe_lib.unlearning.accountant import Certificate

STAGE_VERSION = 1
"""Raise it when a change in the library changes what records say; older records then count as missing."""


@dataclass(frozen=True)
class Measurement:
    """What a run found: a status with its reason, named numbers, and arrays that need more than one number."""

    status: str
    reason: str
    metrics: dict[str, float]
    arrays: dict[str, np.ndarray] = field(default_factory=dict)


@dataclass(frozen=True)
class Configuration:
    """Base of all configurations.

    Attributes:
        data: graph name. seed: of the split, the original's training and the forget set.
        preset: ``corrected`` or ``published``.
    """

    data: str
    seed: int = 0
    preset: str = "corrected"

    @property
    def key(self) -> str:
        """Hash of the class, the fields and the stage version: the name of the record."""
        identity = json.dumps([STAGE_VERSION, type(self).__name__, asdict(self)], sort_keys=True)
        return hashlib.sha256(identity.encode()).hexdigest()[:20]

    @property
    def group(self) -> tuple:
        """Runs of one group share a trained original, so one worker does them one after the other."""
        return (self.data, self.preset, self.seed)

    def data_hash(self) -> str:
        """What identifies the data: the content hash of the graph."""
        return graph(self.data).content_hash

    def measure(self, models: Path | None, device: str) -> Measurement:
        """Do the run; ``models`` is the folder of the cache of originals (None: no cache)."""
        raise NotImplementedError


@dataclass(frozen=True)
class UnlearningConfiguration(Configuration):
    """Train the original, unlearn a forget set, evaluate and attack what is released.

    Attributes:
        backbone: registry name. method: registry name of the unlearner.
        forget, fraction, hops: kind of the forget set, its share of all edges, and k of WalkCentrality.
        method_seed: seed of the method's own randomness; None takes ``seed``.
        attacks: names of attacks to run on the released model.
        training, settings: replacements for the preset's training and method settings, as (name, value) pairs.
    """

    backbone: str = "gcn"
    method: str = "utu"
    forget: str = "low"
    fraction: float = 0.05
    hops: int = 2
    method_seed: int | None = None
    attacks: tuple[str, ...] = ("link_teller", "link_stealing", "e_umia")
    training: tuple[tuple[str, object], ...] = ()
    settings: tuple[tuple[str, object], ...] = ()

    @property
    def group(self) -> tuple:
        return (self.data, self.preset, self.seed, self.backbone, self.training)

    def measure(self, models: Path | None, device: str) -> Measurement:
        data, pairs, original, result = released(self, models, device)
        metrics = {
            "forgotten_pairs": pairs.shape[1],
            "seconds": result.seconds,
            "forwards": result.steps.forwards,
            "backwards": result.steps.backwards,
            "original_seconds": original.training_run.seconds,
            "original_epochs": original.training_run.epochs,
            "weight_change": weight_change(original, result.model),
        }
        metrics |= certificate_metrics(result.steps.certificate)
        if result.status == "unsupported":
            return Measurement(result.status, result.reason, metrics)
        served = data if result.serves == "original" else result.request.retained
        metrics |= utility(predict(result.model, served), data.y, original.training_run.split)
        metrics |= {
            "original_" + k: v for k, v in utility(predict(original, data), data.y, original.training_run.split).items()
        }
        arrays = {}
        for name in self.attacks:
            found = attack(name, result.model, data, pairs, self.seed, self.preset, query=result.serves)
            low, high = found.interval
            metrics |= {
                f"{name}_auc": found.auc,
                f"{name}_auc_low": low,
                f"{name}_auc_high": high,
                f"{name}_auc_folded": found.folded_auc,
                **{f"{name}_{key}": value for key, value in found.extras.items()},
            }
            arrays[f"{name}_scores"] = np.asarray(found.scores, dtype=np.float64)
            arrays[f"{name}_labels"] = np.asarray(found.labels, dtype=bool)
        return Measurement(result.status, result.reason, metrics, arrays)


@dataclass(frozen=True)
class DisplacementConfiguration(Configuration):
    """How far removing edges moves the hidden rows of their endpoints: one edge at a time, and the whole set at once.

    Attributes:
        backbone: registry name. forget, fraction, hops: as in :class:`UnlearningConfiguration`.
    """

    backbone: str = "gcn"
    forget: str = "low"
    fraction: float = 0.05
    hops: int = 2

    def measure(self, models: Path | None, device: str) -> Measurement:
        data = graph(self.data)
        pairs = forget_set(data, self.forget, self.fraction, self.seed, self.hops)
        original = trained(data, self.backbone, self.seed, self.preset, {}, models, device)
        single = np.asarray(endpoint_displacement(original, data, pairs))
        together = np.asarray(set_displacement(original, data, pairs))
        metrics = {
            "forgotten_pairs": pairs.shape[1],
            "single_mean": float(single.mean()),
            "single_median": float(np.median(single)),
            "single_error": float(single.std(ddof=1) / np.sqrt(len(single))),
            "set_mean": float(together.mean()),
            "set_median": float(np.median(together)),
            "set_error": float(together.std(ddof=1) / np.sqrt(len(together))),
        }
        return Measurement("ok", "", metrics, {"single": single, "set": together})


def released(
    config: Configuration, models: Path | None, device: str
) -> tuple[Data, torch.Tensor, Backbone, UnlearningResult]:
    """Train the original and let the method release a model: the graph, the forgotten pairs, the original, the outcome.

    Args:
        config: has the fields of :class:`UnlearningConfiguration`, but for the attacks.
        models, device: as in :meth:`Configuration.measure`.
    """
    data = graph(config.data)
    pairs = forget_set(data, config.forget, config.fraction, config.seed, config.hops)
    original = trained(data, config.backbone, config.seed, config.preset, dict(config.training), models, device)
    method_seed = config.seed if config.method_seed is None else config.method_seed
    result = unlearn(config.method, original, data, pairs, method_seed, config.preset, **dict(config.settings))
    return data, pairs, original, result


def preset_settings(method: str, preset: str) -> tuple[tuple[str, object], ...]:
    """The settings that a method has under a preset now, as a configuration's ``settings``."""
    return tuple(asdict(UNLEARNERS[method].settings[preset]).items())


def certificate_metrics(certificate: Certificate | None) -> dict[str, float]:
    """The numbers of a certificate, by names that start with ``certificate_``; none for methods that claim nothing.

    ``certificate_given`` is 1 where the guarantee holds, after retrainings or without, and 0 where it does not apply;
    ``certificate_epsilon`` and ``certificate_delta`` are NaN there, other numbers where they were not measured or proved.
    """
    if certificate is None:
        return {}
    names = ("epsilon", "delta", "residual", "bound", "noise", "retrainings")
    numbers = {f"certificate_{name}": float(getattr(certificate, name)) for name in names}
    return {"certificate_given": float(certificate.status != "not_applicable"), **numbers}


def weight_change(a: torch.nn.Module, b: torch.nn.Module) -> float:
    """L2 distance of two models' parameters over the norm of the first; NaN where the shapes differ."""
    first, second = list(a.parameters()), list(b.parameters())
    if [p.shape for p in first] != [p.shape for p in second]:
        return float("nan")
    with torch.no_grad():
        change = sum(float((p - q).double().pow(2).sum()) for p, q in zip(first, second, strict=True))
        norm = sum(float(p.double().pow(2).sum()) for p in first)
    return (change / norm) ** 0.5
