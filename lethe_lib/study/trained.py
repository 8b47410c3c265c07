"""A rebuildable cache of trained models: plain arrays and the training record, no pickle.

An original is shared by every method, forget set and attack that starts from it. Losing the cache costs time only.
"""

import hashlib
import json
from dataclasses import asdict
from functools import lru_cache
from pathlib import Path

import numpy as np
import torch
from torch_geometric.data import Data

from lethe_lib.data import Split, load_graph, split_nodes
from lethe_lib.models import Backbone, TrainingRun, build, resolve_device, train
from lethe_lib.models.train import TrainingSettings
from lethe_lib.study.store import RecordStore

MODEL_VERSION = 1
"""Raise it when training changes in a way that changes weights."""


@lru_cache(maxsize=4)
def graph(name: str, root: str | None = None) -> Data:
    """A loaded graph, kept while a study works on it."""
    return load_graph(name, root)


def trained(
    data: Data,
    backbone: str,
    seed: int,
    preset: str,
    settings: dict,
    folder: Path | None,
    device: str = "auto",
    split: Split | None = None,
) -> Backbone:
    """The model that ``train`` gives for these arguments: from the cache in ``folder``, or trained and stored there.

    ``folder`` None trains without a cache. ``split`` None takes the split of the seed. A damaged cache file is set aside and
    the model trained again.
    """
    if folder is None:
        return train(data, backbone, seed, device, preset, split, **settings)
    identity = [MODEL_VERSION, data.content_hash, backbone, seed, preset, sorted(settings.items())]
    if split is not None:
        identity.append([hashlib.sha256(part.numpy().tobytes()).hexdigest() for part in vars(split).values()])
    key = hashlib.sha256(json.dumps(identity).encode()).hexdigest()[:20]
    store = RecordStore(folder)
    if not store.finished(key):
        model = train(data, backbone, seed, device, preset, split, **settings)
        run = asdict(model.training_run)
        del run["split"]
        weights = {name: value.cpu().numpy() for name, value in model.state_dict().items()}
        store.write(key, {"run": run}, weights)
        return model
    run = store.read(key)["run"]
    split = split_nodes(data, seed, preset) if split is None else split
    architecture = {k: v for k, v in run["settings"].items() if k not in TrainingSettings.__dataclass_fields__}
    model = build(data, backbone, seed, preset, **architecture)
    weights = {name: torch.from_numpy(np.asarray(value)) for name, value in store.arrays(key).items()}
    model.load_state_dict(weights)
    model.training_run = TrainingRun(**{**run, "history": tuple(run["history"])}, split=split)
    return model.to(resolve_device(device)).eval()
