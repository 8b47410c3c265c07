"""Edge unlearning: one request, many methods, one algorithm a file.

To add a method, write a function ``run(model, request, settings, seed) -> (model, StepLog)`` and register it:

    >>> from lethe_lib.unlearning import UNLEARNERS, Unlearner, NoSettings, StepLog
    >>> def forget_nothing(model, request, settings, seed):
    ...     return model, StepLog()
    >>> _ = UNLEARNERS.register("nothing", Unlearner(forget_nothing, {"corrected": NoSettings()}, "addition", "me"))
"""

import copy
import time

import torch
from torch_geometric.data import Data

from lethe_lib.errors import InputError, TrainingDiverged
from lethe_lib.models import Backbone, predict
from lethe_lib.registry import Registry, of_preset
from lethe_lib.unlearning.adv_neg_grad import ADV_NEG_GRAD, ADV_NEG_GRAD_MATCHED
from lethe_lib.unlearning.bad_teaching import BAD_TEACHING
from lethe_lib.unlearning.ceu import CEU
from lethe_lib.unlearning.cgu import CGU
from lethe_lib.unlearning.controls import GOLD, ORIGINAL, UNTRAINED, NoSettings
from lethe_lib.unlearning.fine_tuning import FINE_TUNING
from lethe_lib.unlearning.fisher import FISHER
from lethe_lib.unlearning.gif import GIF
from lethe_lib.unlearning.gnn_delete import GNN_DELETE
from lethe_lib.unlearning.idea import IDEA
from lethe_lib.unlearning.l1_sparse import L1_SPARSE
from lethe_lib.unlearning.memoriser import MEMORISER
from lethe_lib.unlearning.neg_grad import NEG_GRAD
from lethe_lib.unlearning.npo import NPO
from lethe_lib.unlearning.request import CORRECTIVE, EDGE_REPLACE, PUBLISHED, EdgeForgetSpec, EdgeRequest
from lethe_lib.unlearning.result import STATUSES, Unlearner, UnlearningResult
from lethe_lib.unlearning.salun import SALUN, SALUN_EDGE_DIFF
from lethe_lib.unlearning.scalegun import SCALEGUN
from lethe_lib.unlearning.scrub import SCRUB
from lethe_lib.unlearning.ssd import SSD, SSD_EDGE_DIFF
from lethe_lib.unlearning.steps import StepEngine, StepLog, StepsDiverged, finite
from lethe_lib.unlearning.unlink import UNLINK
from lethe_lib.unlearning.unsir import UNSIR

UNLEARNERS = Registry(
    "unlearner",
    {
        "original": ORIGINAL,
        "gold": GOLD,
        "untrained": UNTRAINED,
        "memoriser": MEMORISER,
        "utu": UNLINK,
        "fine_tuning": FINE_TUNING,
        "neg_grad": NEG_GRAD,
        "adv_neg_grad": ADV_NEG_GRAD,
        "unsir": UNSIR,
        "bad_teaching": BAD_TEACHING,
        "scrub": SCRUB,
        "fisher": FISHER,
        "ssd": SSD,
        "salun": SALUN,
        "adv_neg_grad_matched": ADV_NEG_GRAD_MATCHED,
        "ssd_edge_diff": SSD_EDGE_DIFF,
        "salun_edge_diff": SALUN_EDGE_DIFF,
        "npo": NPO,
        "l1_sparse": L1_SPARSE,
        "gif": GIF,
        "ceu": CEU,
        "idea": IDEA,
        "cgu": CGU,
        "scalegun": SCALEGUN,
        "gnn_delete": GNN_DELETE,
    },
)

COLLAPSE_DROP = 0.10
"""A method has collapsed when its validation accuracy on the retained graph is more than this below the original's, or
below the share of the largest class."""


def unlearn(
    method: str,
    model: Backbone,
    data: Data,
    forget: torch.Tensor,
    seed: int = 0,
    preset: str = "corrected",
    mapping: EdgeForgetSpec | None = None,
    **settings,
) -> UnlearningResult:
    """Remove the influence of edges from a trained model.

    Args:
        method: a name of ``UNLEARNERS``.
        model: a model from ``train``; it is not changed.
        data: the original graph, with the edges.
        forget: (2, n) pairs to forget; either direction of a pair stands for both.
        seed: seed of the method's own randomness (for ``gold``: of the new initial weights and dropout).
        preset: ``corrected``, or ``published`` where the method has it.
        mapping: how the request becomes samples; None takes the method's own.
        **settings: fields of the method's settings that replace the preset's.

    Returns:
        The released model with its status. It is to be evaluated on ``result.request.retained``, the graph without the
        pairs (``original`` alone answers on the graph with them). A method that does not apply to the backbone, or that
        diverges, is a status, never an exception.

    Raises:
        InputError: unknown names or settings, pairs that are not edges of the graph, a mapping that leaves nothing to
            train on, a method that changes the graph in place.

    Example:
        >>> from lethe_lib.data import load_graph
        >>> from lethe_lib.models import train
        >>> from lethe_lib.structure import forget_set
        >>> graph = load_graph("synthetic-tiny")
        >>> result = unlearn("utu", train(graph, epochs=60), graph, forget_set(graph, "low"))
        >>> result.status
        'ok'
    """
    entry = UNLEARNERS[method]
    chosen = of_preset(method, entry.settings, preset, settings)
    mapping = entry.mapping.get(preset, EDGE_REPLACE) if mapping is None else mapping

    released = copy.deepcopy(model).eval()
    start = time.perf_counter()
    request = EdgeRequest(model, data, forget, mapping)
    if request.empty and entry.needs_request:
        return UnlearningResult(released, "noop", "the request is empty", 0.0, StepLog(), request, entry.serves)
    if entry.backbones is not None and model.training_run.backbone not in entry.backbones:
        reason = f"{method} applies to {', '.join(entry.backbones)}, not to {model.training_run.backbone}"
        return UnlearningResult(released, "unsupported", reason, 0.0, StepLog(), request, entry.serves)
    status, reason = "ok", ""
    if entry.uses_forget_samples and len(request.forget_nodes) == 0:
        status, reason = "no_forget_samples", "no training node lies near the request: forget terms were dropped"
    before = _changes(request)
    try:
        released, log = entry.run(released, request, chosen, seed)
    except TrainingDiverged as error:
        seconds = time.perf_counter() - start
        log = error.log if isinstance(error, StepsDiverged) else StepLog()
        released.generator = None  # a method may have put operators around a frozen model
        released.requires_grad_(True)
        return UnlearningResult(released.eval(), "diverged", str(error), seconds, log, request, entry.serves)
    if _changes(request) != before:
        raise InputError(f"{method} changed the graph that it was given: copy a tensor first, and load the graph again")
    seconds = time.perf_counter() - start - log.original_seconds - log.audit_seconds
    if not finite(released):
        reason = "a weight of the released model is not finite; the original was released in its place"
        released = copy.deepcopy(model).eval()
        return UnlearningResult(released, "diverged", reason, seconds, log, request, entry.serves)
    if log.note:
        reason = f"{reason}; {log.note}" if reason else log.note
    if entry.kind != "control":
        collapse = _collapse(model, released, request)
        if collapse:
            status, reason = "collapsed", f"{collapse}; {reason}" if reason else collapse
    return UnlearningResult(released.eval(), status, reason, seconds, log, request, entry.serves)


def _changes(request: EdgeRequest) -> list[int]:
    """How often the tensors of the graph were changed in place: they are shared with all runs on it."""
    graphs = (request.data, request.retained)
    return [tensor._version for one in graphs for tensor in (one.x, one.edge_index, one.y)]


def _collapse(model: Backbone, released: Backbone, request: EdgeRequest) -> str:
    """A sentence if the released model has collapsed, else nothing. Reads validation labels, no test label."""
    held_out = request.split.val
    labels = request.data.y[held_out]
    before = predict(model, request.data)[held_out].argmax(1).eq(labels).double().mean().item()
    after = predict(released, request.retained)[held_out].argmax(1).eq(labels).double().mean().item()
    majority = labels.bincount().max().item() / len(labels)
    floor = max(majority, before - COLLAPSE_DROP)
    return f"validation accuracy {after:.3f} is below {floor:.3f}" if after < floor else ""


__all__ = [
    "COLLAPSE_DROP",
    "CORRECTIVE",
    "EDGE_REPLACE",
    "PUBLISHED",
    "STATUSES",
    "UNLEARNERS",
    "EdgeForgetSpec",
    "EdgeRequest",
    "NoSettings",
    "StepEngine",
    "StepLog",
    "StepsDiverged",
    "UnlearningResult",
    "Unlearner",
    "unlearn",
]
