"""Requests one after the other: what each costs, what the certificate has left, and what is really left.

    open the method's original on the graph with the edges, if it keeps a state of its own
    for every block of edges: serve it, timed; then, untimed, measure the residual and release a model

A method with a ``session`` (CEU, CGU, ScaleGUN) goes on from its own state: what its requests leave is bounded together,
charged to one budget, and the time of training again counts to the request that caused it. Any other method starts every
request from the model that the request before released, on the graph that was left, with the request number in its seed.

Nothing of that is proved to compose. IDEA is the case in point: its theorem is about the noise of one release. A second
request starts from weights that hold the noise of the first, and adds its own; where every release of n had a guarantee
(epsilon, delta) of its own, all n together would have n epsilon and n delta, which nobody keeps books of here. So such a
stream has no bound and no budget, and says so in ``note``.
"""

import math
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import torch
from torch_geometric.data import Data

from lethe_lib.errors import InputError
from lethe_lib.models import Backbone
from lethe_lib.registry import of_preset
from lethe_lib.structure import remove_edges
from lethe_lib.unlearning import UNLEARNERS, Unlearner, unlearn


@dataclass(frozen=True)
class Served:
    """One request of a stream.

    Attributes:
        edges: in this block.
        seconds: wall time of serving it, training again included: neither the release nor the measurement of the
            residual.
        status: as in ``unlearn``; sessions say ``ok``.
        residual: exact |grad L_b| on the graph that is left; NaN where the method has no certificate.
        bound: proved bound of it after all requests so far; NaN where nothing is proved.
        budget: largest bound that the guarantee allows; NaN without one, as for CEU without ``noise``.
        retrainings: so far. retrained: whether this request caused one.
        model: released after this request. graph: what is left, on which the model answers.
        note: what a reader of the numbers must know; mostly nothing.
    """

    edges: int
    seconds: float
    status: str
    residual: float
    bound: float
    budget: float
    retrainings: int
    retrained: bool
    model: Backbone
    graph: Data
    note: str = ""


def stream(
    method: str,
    model: Backbone,
    data: Data,
    blocks: Iterable[torch.Tensor],
    seed: int = 0,
    preset: str = "corrected",
    **settings,
) -> Iterator[Served]:
    """Serve blocks of edges in turn.

    Args:
        method: a name of ``UNLEARNERS``.
        model: a model from ``train``; it is not changed.
        data: the graph with all the edges.
        blocks: (2, n) pairs each; no pair twice, n at least 1. ``pairs.split(1, dim=1)`` sends edge by edge.
        seed, preset, **settings: as in ``unlearn``. The request number is part of the seed of methods without session.

    Yields:
        One :class:`Served` per block, as soon as it is served.

    Raises:
        InputError: unknown names, a backbone that the method does not apply to, a preset without session, a block that
            is empty or not of edges that are left.

    Example:
        >>> from lethe_lib.data import load_graph
        >>> from lethe_lib.models import train
        >>> from lethe_lib.structure import forget_set
        >>> graph = load_graph("synthetic-tiny")
        >>> blocks = forget_set(graph, "random", 0.01).split(1, dim=1)
        >>> [served.edges for served in stream("cgu", train(graph, "sgc", epochs=60), graph, blocks)]
        [1, 1, 1]
    """
    entry = UNLEARNERS[method]
    backbone = model.training_run.backbone if model.training_run else None
    if entry.backbones is not None and backbone not in entry.backbones:
        raise InputError(f"{method} applies to {', '.join(entry.backbones)}, not to {backbone}")
    if entry.session is None:
        return _chained(method, model, data, blocks, seed, preset, settings)
    if preset != "corrected":
        raise InputError(f"a stream of {method} has the preset corrected only, not {preset!r}")
    return _in_session(entry, model, data, blocks, seed, of_preset(method, entry.settings, preset, settings))


def _in_session(
    entry: Unlearner, model: Backbone, data: Data, blocks: Iterable[torch.Tensor], seed: int, settings: object
) -> Iterator[Served]:
    session, graph = entry.session(model, data, settings, seed), data
    for pairs in blocks:
        _check(pairs)
        start = time.perf_counter()
        row = session.remove(pairs)
        seconds = time.perf_counter() - start
        graph, books = remove_edges(graph, pairs), session.accountant
        certificate = session.certificate(session.residual())
        yield Served(
            edges=pairs.shape[1],
            seconds=seconds,
            status="ok",
            residual=certificate.residual,
            bound=certificate.bound,
            budget=books.budget if books else math.nan,
            retrainings=books.retrainings if books else 0,
            retrained=bool(row["retrained"]),
            model=session.release(),
            graph=graph,
            note=certificate.reason if certificate.status == "not_applicable" else "",
        )


def _chained(
    method: str, model: Backbone, data: Data, blocks: Iterable[torch.Tensor], seed: int, preset: str, settings: dict
) -> Iterator[Served]:
    for number, pairs in enumerate(blocks):
        _check(pairs)
        result = unlearn(method, model, data, pairs, seed + number, preset, **settings)
        certificate = result.steps.certificate
        model, data = result.model, result.request.retained
        yield Served(
            edges=pairs.shape[1],
            seconds=result.seconds,
            status=result.status,
            residual=certificate.residual if certificate else math.nan,
            bound=math.nan,
            budget=math.nan,
            retrainings=0,
            retrained=False,
            model=model,
            graph=data,
            note=f"{method}: no guarantee over several requests is proved" if certificate else "",
        )


def _check(pairs: torch.Tensor) -> None:
    if pairs.dim() != 2 or pairs.shape[1] == 0:
        raise InputError(f"a block of shape {tuple(pairs.shape)}: pairs (2, n) with n at least 1 needed")
