"""Many shadow models, each on its own sampled subgraph: the statistics of all nodes under all of them.

    for t in 1 .. T:
        S_t <- sampler(graph, ratio);  model_t <- train on the subgraph of S_t
        for every release r: confidence[t, r, i] <- what the released model says of node i
    member[t, i] <- i in S_t

Model t depends on (seed, t) and the settings only, not on how models are shared out among processes. On CPUs models are
trained one at a time on each core, since full-batch training of one small graph leaves nothing to gain from stacking; on a
graphics processor they are stacked. Their statistics are kept in parts of a bounded size, written as they are finished, so
a killed run resumes.
"""

import hashlib
import json
import os
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path

import joblib
import numpy as np
import torch
import xarray as xr

from lethe_lib.errors import DamagedFile, InputError, TrainingDiverged
from lethe_lib.models import resolve_device
from lethe_lib.sampling import sample_nodes
from lethe_lib.seeding import derive_seed
from lethe_lib.shadow.fit import ShadowTraining, fit_shadows
from lethe_lib.shadow.statistics import Release, confidence_from_logits, released_logits
from lethe_lib.shadow.training_graph import query_graph, training_graph

SHADOW_VERSION = 1
"""Raise it when a change alters what shadow models say; older parts then count as missing."""

LARGEST_PART = 25


def train_shadows(
    data,
    sampler: str = "uniform",
    ratio: float = 0.5,
    models: int = 200,
    backbone: str = "gcn",
    seed: int = 0,
    *,
    releases: Sequence[Release] = (Release("split"), Release("full"), Release("none")),
    training: ShadowTraining | None = None,
    sampler_settings: dict | None = None,
    folder: str | Path | None = None,
    workers: int = 1,
    memory_mib: int = 1024,
    device: str = "auto",
    progress: Callable[[str], None] = lambda line: None,
) -> xr.Dataset:
    """Train shadow models and collect what each of them says of every node.

    Args:
        data: a canonical graph.
        sampler: a name of ``SAMPLERS``. ratio: share of the nodes in each sample.
        models: how many, T.
        backbone: a name of ``BACKBONES``.
        seed: of samples, initial weights and noise.
        releases: the views and noises under which each model is queried.
        training: the schedule; None takes ``ShadowTraining()``.
        sampler_settings: settings of the sampler.
        folder: finished parts are kept there and found again; None keeps nothing.
        workers: local processes, each with one model at a time.
        memory_mib: bound on the statistics held at once, in this process and in each worker, and on the features of the
            models that are stacked.
        device: ``auto``, ``cpu``, ``cuda``, ...
        progress: called with a line of text after every part.

    Returns:
        Data set with ``confidence`` (model, release, node) float32, higher = surer of the true label; ``member``
        (model, node) bool; ``accuracy`` (model, release, group) of members and others; ``size`` (model,), nodes in the
        sample; coordinates ``release`` (labels), ``group``; attributes that say how it was made. Save it with
        ``to_netcdf``.

    Raises:
        InputError: unknown names or settings, fewer than 2 models, statistics that exceed ``memory_mib``.
        TrainingDiverged: a model's loss or statistic is not finite; the message names the model.
        DamagedFile: a kept part is not readable; the message names it.

    Example:
        >>> from lethe_lib.data import load_graph
        >>> shadows = train_shadows(load_graph("synthetic-tiny"), models=3, training=ShadowTraining(epochs=5))
        >>> dict(shadows.confidence.sizes)
        {'model': 3, 'release': 3, 'node': 120}
    """
    training = ShadowTraining() if training is None else training
    releases = tuple(releases)
    if models < 2:
        raise InputError(f"shadow models are compared with each other: models must be at least 2, not {models}")
    if not releases or len({release.label for release in releases}) < len(releases):
        raise InputError("releases must be distinct, and at least one")
    bytes_per_model = data.num_nodes * (4 * len(releases) + 1)
    budget = memory_mib * 2**20
    if models * bytes_per_model > budget:
        raise InputError(
            f"{models} models x {len(releases)} releases x {data.num_nodes} nodes need "
            f"{models * bytes_per_model / 2**20:.0f} MiB: raise memory_mib, or ask for fewer models or releases"
        )
    settings = {
        "sampler": sampler,
        "ratio": float(ratio),
        "backbone": backbone,
        "seed": seed,
        "releases": [asdict(release) for release in releases],
        "training": asdict(training),
        "sampler_settings": dict(sampler_settings or {}),
        "data_hash": data.content_hash,
        "version": SHADOW_VERSION,
    }
    parts = [range(first, min(first + LARGEST_PART, models)) for first in range(0, models, LARGEST_PART)]
    keep = None if folder is None else Path(folder) / _key(settings)
    work = [
        joblib.delayed(_part)(data, part, settings, releases, training, keep, device, workers, memory_mib)
        for part in parts
    ]
    found, done = [], 0
    for arrays in joblib.Parallel(n_jobs=workers, return_as="generator")(work):
        found.append(arrays)
        done += len(arrays["size"])
        progress(f"{data.name}, {backbone}, {sampler} {ratio:g}: {done}/{models} shadow models")
    joined = {name: np.concatenate([part[name] for part in found]) for name in found[0]}
    return xr.Dataset(
        {
            "confidence": (("model", "release", "node"), joined["confidence"]),
            "member": (("model", "node"), joined["member"]),
            "accuracy": (("model", "release", "group"), joined["accuracy"]),
            "size": (("model",), joined["size"]),
        },
        coords={"release": [release.label for release in releases], "group": ["members", "others"]},
        attrs={"graph": data.name, "settings": json.dumps(settings, sort_keys=True)},
    )


def _key(settings: dict) -> str:
    return hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()[:20]


def _part(data, numbers, settings, releases, training, keep, device, workers, memory_mib) -> dict[str, np.ndarray]:
    """The statistics of some models, from the folder if they are there."""
    path = None if keep is None else keep / f"models_{numbers.start:05d}_{numbers.stop:05d}.nc"
    if path is not None and path.exists():
        try:
            with xr.open_dataset(path, engine="h5netcdf") as stored:
                return {name: stored[name].values for name in stored.data_vars}
        except (OSError, ValueError, KeyError) as error:
            raise DamagedFile(
                f"{path} is not a readable part of a shadow run ({error}): delete it to compute it again"
            ) from error
    if workers > 1:
        torch.set_num_threads(1)  # one model a core
    edgeless = query_graph(data, None, "none")  # the same for every model, with all that models derive from it
    device = resolve_device(device)
    stack = 1 if torch.device(device).type == "cpu" else stack_size(data, settings["ratio"], memory_mib)
    rows = []
    for first in range(numbers.start, numbers.stop, stack):
        together = range(first, min(first + stack, numbers.stop))
        seeds = [derive_seed(settings["seed"], "shadow", number) for number in together]
        samples = [
            sample_nodes(settings["sampler"], data, settings["ratio"], seed, **settings["sampler_settings"])
            for seed in seeds
        ]
        graphs = [training_graph(data, sample) for sample in samples]
        models = fit_shadows(graphs, settings["backbone"], seeds, training, device)
        for asked in zip(together, seeds, samples, models, strict=True):
            rows.append(_answers(data, edgeless, releases, *asked))
    arrays = {name: np.stack([row[name] for row in rows]) for name in rows[0]}
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        unfinished = path.with_name(f".{path.name}.{os.getpid()}")
        stored = {
            name: (tuple(f"{name}_{axis}" for axis in range(value.ndim)), value) for name, value in arrays.items()
        }
        xr.Dataset(stored).to_netcdf(unfinished, engine="h5netcdf")
        os.replace(unfinished, path)
    return arrays


def stack_size(data, ratio: float, memory_mib: int) -> int:
    """How many models' features, and those propagated once, fit into the memory as dense float32; at least 1."""
    bytes_per_model = 2 * 4 * ratio * data.num_nodes * data.x.shape[1]
    return max(1, int(memory_mib * 2**20 / bytes_per_model))


def _answers(data, edgeless, releases, number: int, seed: int, sample, model) -> dict:
    """What model ``number``, trained on ``sample``, says of every node."""
    member = np.zeros(data.num_nodes, dtype=bool)
    member[sample.nodes.numpy()] = True
    graphs = {a: edgeless if a == "none" else query_graph(data, sample, a) for a in {r.access for r in releases}}
    confidence, accuracy = [], []
    for release in releases:
        logits = released_logits(model, graphs[release.access], release, seed)
        confidence.append(confidence_from_logits(logits, data.y).astype(np.float32))
        right = (logits.argmax(dim=1) == data.y).numpy()
        accuracy.append([right[member].mean(), right[~member].mean() if not member.all() else np.nan])
    confidence = np.stack(confidence)
    if not np.isfinite(confidence).all():
        raise TrainingDiverged(f"shadow model {number} on {data.name} says something that is not finite")
    return {"confidence": confidence, "member": member, "accuracy": np.array(accuracy), "size": np.array(member.sum())}
