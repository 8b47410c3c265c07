"""The controls beside which every method stands: Original, Gold, Untrained.

- ``original``: the model before unlearning, still answering on the graph that holds the edges.
- ``gold``: trained again from scratch on the retained graph, same architecture, schedule and training nodes. The exact
  answer to the request. With the original's seed it starts from the original's initial weights; with another seed it
  shows how far two exact answers lie apart.
- ``untrained``: initial weights that never saw a label. What an attack scores on it is read off the graph, not the
model.
"""

from dataclasses import dataclass, replace

from lethe_lib.models import Backbone, build, retrain
from lethe_lib.models.train import TrainingSettings
from lethe_lib.unlearning.request import EdgeRequest
from lethe_lib.unlearning.result import Unlearner
from lethe_lib.unlearning.steps import StepLog


@dataclass(frozen=True)
class NoSettings:
    """A control has nothing to set."""


def keep(model: Backbone, request: EdgeRequest, settings: NoSettings, seed: int) -> tuple[Backbone, StepLog]:
    """The same model, bit for bit."""
    return model, StepLog()


def retrain_from_scratch(
    model: Backbone, request: EdgeRequest, settings: NoSettings, seed: int
) -> tuple[Backbone, StepLog]:
    """Train on G_r as the original was trained on G; the weights of ``model`` are not read."""
    gold = retrain(request.retained, model.training_run, seed, device=str(next(model.parameters()).device))
    epochs = gold.training_run.epochs
    return gold, StepLog(forwards=2 * epochs, backwards=epochs)


def never_train(model: Backbone, request: EdgeRequest, settings: NoSettings, seed: int) -> tuple[Backbone, StepLog]:
    """Initial weights of the same architecture."""
    run = model.training_run
    schedule = TrainingSettings.__dataclass_fields__
    architecture = {name: value for name, value in run.settings.items() if name not in schedule}
    fresh = build(request.data, run.backbone, seed, run.preset, **architecture)
    fresh.training_run = replace(run, seed=seed, epochs=0, best_epoch=0, history=(), seconds=0.0)
    return fresh.to(next(model.parameters()).device), StepLog()


_BOTH = {"corrected": NoSettings(), "published": NoSettings()}

ORIGINAL = Unlearner(keep, _BOTH, "control", "", serves="original")
GOLD = Unlearner(retrain_from_scratch, _BOTH, "control", "", needs_request=False)
UNTRAINED = Unlearner(never_train, _BOTH, "control", "", needs_request=False)
