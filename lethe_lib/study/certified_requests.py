"""How far a certificate carries: requests from one edge to 5 % of the graph, and what the noise behind it costs, on SGC.

    for every size n: from the method's own original remove the first n edges of one random order at once
        -> seconds of the step, exact residual of what it leaves, proved bound, test accuracy of what is released
    the same edges one by one, the first ``stream`` of them
    for every noise: train the method's original with it on the graph with the edges -> test accuracy
    seconds of one retraining of the method's own original, and of Gold (the SGC retrained), in the same run

Steps are taken as if the budget were endless, so that bound and residual belong to the step and not to a retraining. A
guarantee (epsilon, delta) needs noise of c bound / epsilon, c = sqrt(2 ln(1.5 / delta)): where the method's noise is less,
its budget is gone and it trains again, which costs ``retraining_seconds`` on top. CEU is on the scale of the mean loss,
CGU and ScaleGUN on that of the sum. CEU takes every step twice, with the Hessian of the graph without the edges and with
that of the graph with them, for which the same formula is no bound.

IDEA adds its noise to the weights after the step: its row holds the exact gradient norm before that noise, the
calibrated standard deviation in place of the needed noise, and no bound of the residual.
"""

import copy
import math
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from torch_geometric.data import Data

from lethe_lib.data import Split
from lethe_lib.errors import InputError
from lethe_lib.evaluation import accuracy
from lethe_lib.models import Backbone, predict
from lethe_lib.seeding import torch_generator
from lethe_lib.structure import forget_set, remove_edges
from lethe_lib.study.configuration import Configuration, Measurement
from lethe_lib.study.store import RecordStore
from lethe_lib.study.trained import graph, trained
from lethe_lib.unlearning import UNLEARNERS, unlearn
from lethe_lib.unlearning.accountant import noise_factor
from lethe_lib.unlearning.certified_head import CertifiedHead

COUNTS = (1, 10)
"""Edges after which a stream of single edges is measured."""

SIZES = {"cora": (1, 10, 100, 0.005, 0.01, 0.02, 0.05)}
FEWER_SIZES = (1, 100, 0.01, 0.05)
"""Sizes of the request by graph, and on the others: numbers of edges, and shares of all edges of the graph."""

ENDLESS = 1e9
"""An epsilon whose budget no step uses up."""

NOISES = {
    "ceu": (1e-5, 1e-4, 1e-3, 1e-2),
    "cgu": (1e-2, 1e-1, 1.0, 10.0),
    "scalegun": (1e-2, 1e-1, 1.0, 10.0),
    "idea": (1e-3, 1e-2, 1e-1, 1.0),
}
"""Method -> standard deviations that are tried: of b on the method's own scale, for IDEA of the noise on the weights."""

NOISE = {"ceu": 1e-4, "cgu": 1e-1, "scalegun": 1e-1, "idea": 1e-2}
"""Method -> the noise under which its steps are taken: presets, and for CEU, whose preset adds none, one that models bear."""

PAPER_RIDGE = 1e-2
"""Of CGU in its paper; preset ``corrected`` has a hundredth of it."""

SEEDS = {"cora": (0, 1), "dblp": (0,), "photo": (0, 1)}
"""Graph -> seeds; one where a run takes minutes."""

WIDE = ("cora", "photo")
"""Graphs on which all noises are tried and single edges served, where the rows are few or the features narrow."""

STEP_COLUMNS = ("edges", "single", "new_hessian", "seconds", "residual", "bound", "needed_noise", "accuracy")
"""Of the table of steps: request, served edge by edge or at once, whose Hessian, what it took and what it left."""


@dataclass(frozen=True)
class CertifiedRequestConfiguration(Configuration):
    """One certified method on one graph, over sizes of the request and over noises.

    Attributes:
        method: ``ceu``, ``cgu``, ``scalegun`` or ``idea``. backbone: registry name; the theory is about ``sgc``.
        forget, fraction: kind of the forget set whose edges are taken in random order, and its share of all edges.
        sizes: of the requests, numbers of edges from 1, shares of all edges below; the whole forget set comes last.
        noise: under which the steps are taken. noises: for which the original is trained, on top.
        stream: edges that CGU and ScaleGUN also serve one by one.
        settings: replacements for other settings of preset ``corrected``, as (name, value) pairs.
    """

    method: str = "cgu"
    backbone: str = "sgc"
    forget: str = "random"
    fraction: float = 0.05
    sizes: tuple[float, ...] = FEWER_SIZES
    noise: float = 0.1
    noises: tuple[float, ...] = ()
    stream: int = 0
    settings: tuple[tuple[str, object], ...] = ()

    def measure(self, models: Path | None, device: str) -> Measurement:
        if self.method not in NOISES:
            raise InputError(f"{self.method!r} is no certified method: choose one of {', '.join(NOISES)}")
        data = graph(self.data)
        original = trained(data, self.backbone, self.seed, self.preset, {}, models, device)
        pairs = in_random_order(forget_set(data, self.forget, self.fraction, self.seed), self.seed)
        case = Case(
            data, original, original.training_run.split, self.method, self.seed, dict(self.settings), self.noise
        )
        gold = unlearn("gold", original, data, pairs, self.seed, self.preset)
        sizes = request_sizes(data, self.sizes, pairs.shape[1])
        own, steps = SERVED[self.method](case, pairs, sizes, self.stream)
        accuracies = [case.accuracy_with(noise) for noise in self.noises]
        metrics = {
            "pairs": pairs.shape[1],
            "gold_seconds": gold.seconds,
            "gold_accuracy": case.accuracy(gold.model, gold.request.retained),
            "original_accuracy": case.accuracy(original, data),
            **own,
        }
        table = np.array([[row[name] for name in STEP_COLUMNS] for row in steps], dtype=float)
        arrays = {"steps": table, "noises": np.array(self.noises, dtype=float), "accuracies": np.array(accuracies)}
        return Measurement("ok", "", metrics, arrays)


@dataclass(frozen=True)
class Case:
    """What the rows of one run share.

    Attributes:
        data, original, split: the graph, the trained victim and its nodes.
        method, seed, settings: of the unlearner. noise: under which the steps are taken.
    """

    data: Data
    original: Backbone
    split: Split
    method: str
    seed: int
    settings: dict[str, object]
    noise: float

    def accuracy(self, model: Backbone, served: Data) -> float:
        """Test accuracy of a model on a graph."""
        return accuracy(predict(model, served), self.data.y, self.split.test)

    def open_head(self, noise: float) -> CertifiedHead:
        """The own original of CGU or ScaleGUN under an endless budget; the solver's tolerance is that of epsilon 1."""
        entry = UNLEARNERS[self.method]
        chosen = replace(entry.settings["corrected"], **self.settings)
        chosen = replace(chosen, noise=noise, epsilon=ENDLESS, tolerance=chosen.tolerance / ENDLESS)
        return entry.session(self.original, self.data, chosen, self.seed)

    def accuracy_with(self, noise: float) -> float:
        """Test accuracy, on the graph with the edges, of the method's original (IDEA: the victim) with a noise."""
        if self.method in ("cgu", "scalegun"):
            return self.accuracy(self.open_head(noise).release(), self.data)
        nothing = {"ceu": {"noise": noise, "epsilon": ENDLESS}, "idea": {"sigma": noise}}[self.method]
        one = in_random_order(forget_set(self.data, "random", 0.05, self.seed), self.seed)[:, :1]
        released = unlearn(self.method, self.original, self.data, one, self.seed, **self.settings, **nothing)
        return self.accuracy(released.model, released.request.retained)


def request_sizes(data: Data, sizes: Iterable[float], most: int) -> list[int]:
    """Sizes as numbers of edges, each once, ascending; none above ``most``, which comes last.

    Args:
        data: the graph. sizes: numbers of edges from 1, shares of all edges below. most: edges that there are.
    """
    edges = data.edge_index.shape[1] // 2
    counts = {round(size) if size >= 1 else round(size * edges) for size in sizes}
    return sorted({count for count in counts if 1 <= count < most} | {most})


def in_random_order(pairs: torch.Tensor, seed: int) -> torch.Tensor:
    """The pairs in an order that depends on the seed alone."""
    order = torch.randperm(pairs.shape[1], generator=torch_generator(seed, "study", "order of requests"))
    return pairs[:, order]


def serve_by_head(
    case: Case, pairs: torch.Tensor, sizes: list[int], single: int
) -> tuple[dict[str, float], list[dict[str, float]]]:
    """CGU and ScaleGUN: every request from a copy of one opened head; the first ``single`` edges one by one as well.

    Returns:
        Numbers of the run, and one row of ``STEP_COLUMNS`` per request.
    """
    start = time.perf_counter()
    opened = case.open_head(case.noise)
    own = {"own_seconds": time.perf_counter() - start, "own_accuracy": case.accuracy(opened.release(), case.data)}
    factor = noise_factor(opened.settings.delta)
    own |= {"noise": case.noise, "budget": case.noise / factor, "training_nodes": len(opened.train)}
    _copy(opened).remove(pairs[:, :1])  # compiles what is compiled
    steps = []
    for size in sizes:
        head = _copy(opened)
        start = time.perf_counter()
        head.remove(pairs[:, :size])
        released = head.release()
        seconds = time.perf_counter() - start
        steps.append(_head_row(case, head, released, pairs[:, :size], seconds, factor, single=False))
    head, seconds = _copy(opened), 0.0
    for number in range(min(single, pairs.shape[1])):
        start = time.perf_counter()
        head.remove(pairs[:, number : number + 1])
        seconds += time.perf_counter() - start
        if number + 1 in COUNTS:
            served = pairs[:, : number + 1]
            steps.append(_head_row(case, head, head.release(), served, seconds, factor, single=True))
    head = _copy(opened)
    head.accountant.spent = math.inf  # so that this request trains again
    start = time.perf_counter()
    head.remove(pairs)
    step = next(row["seconds"] for row in steps if row["edges"] == pairs.shape[1] and not row["single"])
    own["retraining_seconds"] = max(0.0, time.perf_counter() - start - step)
    return own, steps


def _head_row(case: Case, head: CertifiedHead, released, served, seconds, factor, single) -> dict[str, float]:
    bound = head.accountant.spent + head.accountant.extra
    return {
        "edges": served.shape[1],
        "single": single,
        "new_hessian": True,
        "seconds": seconds,
        "residual": head.residual(),
        "bound": bound,
        "needed_noise": factor * bound,
        "accuracy": case.accuracy(released, remove_edges(case.data, served)),
    }


def _copy(head: CertifiedHead) -> CertifiedHead:
    """A head in the same state that shares what no request changes."""
    shared = (head.model, head.rows.data, head.settings)
    return copy.deepcopy(head, {id(part): part for part in shared})


def serve_by_influence(
    case: Case, pairs: torch.Tensor, sizes: list[int], single: int
) -> tuple[dict[str, float], list[dict[str, float]]]:
    """CEU and IDEA: every request is a run of its own, from the victim. See :func:`serve_by_head`."""
    if single:
        why = {
            "ceu": "these runs take CEU's requests at once, from one original each; one after the other they are served by "
            "lethe_lib.unlearning.stream",
            "idea": "no guarantee over several requests is proved for IDEA, whose noise belongs to one release",
        }
        raise InputError(f"stream={single}: {why[case.method]}: leave stream at 0")
    steps, seconds = [], []
    for size in sizes:
        for hessian in ("new", "old") if case.method == "ceu" else ("new",):
            row, training = _influence_row(case, pairs[:, :size], hessian)
            steps.append(row)
            seconds.append(training)
    delta = replace(UNLEARNERS[case.method].settings["corrected"], **case.settings).delta
    own = {"own_accuracy": case.accuracy_with(case.noise), "noise": case.noise}
    if case.method == "ceu":
        own |= {"budget": case.noise / noise_factor(delta), "own_seconds": float(np.median(seconds))}
        own["retraining_seconds"] = own["own_seconds"]
    return own | {"training_nodes": len(case.split.train)}, steps


def _influence_row(case: Case, served: torch.Tensor, hessian: str) -> tuple[dict[str, float], float]:
    """One row, and the seconds of training the method's own original, which the row leaves out."""
    noise = {"noise": case.noise, "epsilon": ENDLESS} if case.method == "ceu" else {"sigma": case.noise}
    settings = {**case.settings, **noise, "hessian": hessian}
    found = unlearn(case.method, case.original, case.data, served, case.seed, **settings)
    log, certificate = found.steps.rows[-1], found.steps.certificate
    bound = log["bound"] if case.method == "ceu" else float("nan")  # the formula, whatever it is worth with H on G
    factor = noise_factor(UNLEARNERS[case.method].settings["corrected"].delta)
    row = {
        "edges": served.shape[1],
        "single": False,
        "new_hessian": hessian == "new",
        "seconds": found.seconds,
        "residual": certificate.residual,
        "bound": bound,
        "needed_noise": factor * bound if case.method == "ceu" else log["sigma_calibrated"],
        "accuracy": case.accuracy(found.model, found.request.retained),
    }
    return row, found.steps.original_seconds


SERVED = {"cgu": serve_by_head, "scalegun": serve_by_head, "ceu": serve_by_influence, "idea": serve_by_influence}
"""Method -> how its requests are served."""


def certified_requests(graphs: Iterable[str] = tuple(SEEDS)) -> list[Configuration]:
    """The four methods on SGC, CGU also with its paper's ridge; noises and single edges on ``WIDE``, more sizes on Cora."""
    configs = []
    for data in graphs:
        for seed in SEEDS.get(data, (0, 1, 2)):
            for method in NOISES:
                shared = {"method": method, "noise": NOISE[method], "sizes": SIZES.get(data, FEWER_SIZES)}
                if data in WIDE:
                    single = COUNTS[-1] if SERVED[method] is serve_by_head else 0
                    shared |= {"noises": NOISES[method], "stream": single}
                for ridge in (None, PAPER_RIDGE) if method == "cgu" else (None,):
                    settings = () if ridge is None else (("ridge", ridge),)
                    configs.append(CertifiedRequestConfiguration(data, seed, **shared, settings=settings))
    return configs


def frames(configs: list[CertifiedRequestConfiguration], store: RecordStore) -> dict[str, pd.DataFrame]:
    """The tables beside the records: ``steps``, one row per request, and ``noise``, one row per noise.

    Both start with graph, seed, method and ridge (that of preset ``corrected`` is NaN); ``steps`` also holds the seconds
    of Gold and of one retraining of the method's original, and the method's noise and budget.
    """
    steps, noise = [], []
    for config, record, arrays in _records(configs, store):
        ridge = dict(config.settings).get("ridge", np.nan)
        named = {"data": config.data, "seed": config.seed, "method": config.method, "ridge": ridge}
        table = pd.DataFrame(arrays["steps"], columns=STEP_COLUMNS)
        for name in ("single", "new_hessian"):
            table[name] = table[name].astype(bool)
        names = ("gold_seconds", "retraining_seconds", "own_seconds", "noise", "budget", "training_nodes")
        shared = {name: record["metrics"].get(name, np.nan) for name in names}
        steps.append(table.astype({"edges": int}).assign(**named, **shared))
        noise.append(pd.DataFrame({"noise": arrays["noises"], "accuracy": arrays["accuracies"]}).assign(**named))
    return {"steps": pd.concat(steps, ignore_index=True), "noise": pd.concat(noise, ignore_index=True)}


def _records(configs, store) -> Iterator[tuple[CertifiedRequestConfiguration, dict, dict[str, np.ndarray]]]:
    for config in configs:
        record = store.read(config.key)
        if record["status"] == "ok":
            yield config, record, store.arrays(config.key)
