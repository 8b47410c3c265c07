"""What an unlearning run returns, and how a method is declared."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from torch_geometric.data import Data

from lethe_lib.models import Backbone
from lethe_lib.unlearning.request import EdgeForgetSpec, EdgeRequest
from lethe_lib.unlearning.steps import StepLog

STATUSES = ("ok", "noop", "no_forget_samples", "collapsed", "diverged", "unsupported", "failed")
"""``noop``: an empty request. ``no_forget_samples``: the mapping left the forget term without nodes, retain terms ran.
``collapsed``: validation accuracy on the retained graph fell below the stated floor. ``diverged``: not finite.
``unsupported``: the method does not apply to this backbone. ``failed``: an error, given as the reason."""


@dataclass(frozen=True)
class UnlearningResult:
    """The outcome of one request.

    Attributes:
        model: the released model, in evaluation mode; for ``diverged`` the last finite one, for ``unsupported`` the
            original.
        status, reason: one of ``STATUSES`` and a sentence (for ``ok`` empty, or a note of the method).
        seconds: wall time from the request to the released model: edge removal and all training, no evaluation, and
            not what the log reports apart.
        steps: counts of forwards and backwards, the path, and the certificate where the method has one.
        request: the request as the method saw it; ``request.retained`` is the graph to evaluate on.
        serves: the graph on which the model answers: ``retained``, or ``original`` for the control ``original``.
    """

    model: Backbone
    status: str
    reason: str
    seconds: float
    steps: StepLog
    request: EdgeRequest
    serves: str = "retained"


@dataclass(frozen=True)
class Unlearner:
    """One method, as the registry holds it.

    Attributes:
        run: ``run(model, request, settings, seed) -> (model, StepLog)``; ``model`` is a private copy to change.
        settings: preset name to a frozen settings object; ``corrected`` is required.
        mapping: preset name to the mapping of the request.
        kind: ``control``, ``generic``, ``graph-native`` or ``addition``.
        reference: authors, venue, year.
        serves: see ``UnlearningResult``.
        needs_request: whether an empty request means that nothing is to be done.
        uses_forget_samples: whether the method has a forget term that an empty node set disables.
        backbones: names it applies to; None for all.
        session: ``session(model, data, settings, seed)`` opens what keeps its state between requests (see ``stream``);
            None for methods that start every request from a model alone.
    """

    run: Callable[[Backbone, EdgeRequest, Any, int], tuple[Backbone, StepLog]]
    settings: Mapping[str, Any]
    kind: str
    reference: str
    mapping: Mapping[str, EdgeForgetSpec] = field(default_factory=dict)
    serves: str = "retained"
    needs_request: bool = True
    uses_forget_samples: bool = False
    backbones: tuple[str, ...] | None = None
    session: Callable[[Backbone, Data, Any, int], Any] | None = None
