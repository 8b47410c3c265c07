"""What unlearning costs: seconds of every registered method as a fraction of retraining, on one graph in one process."""

import statistics
from collections.abc import Iterable

import torch
from torch_geometric.data import Data

from lethe_lib.data import load_graph
from lethe_lib.errors import DataNotFound
from lethe_lib.models import Backbone, train
from lethe_lib.structure import forget_set
from lethe_lib.unlearning import UNLEARNERS, unlearn

REPEATS = 3
SGC_ALONE = tuple(name for name, entry in UNLEARNERS.items() if entry.backbones == ("sgc",))
SHORT = 10
"""Epochs of the shortened training on ``arxiv-like``."""

ARXIV_LIKE_EPOCHS = 395
"""Epochs that a full training takes on ``arxiv-like`` (GCN, seed 0, preset ``corrected``), from one real run, which took
more than four minutes: ``train(load_graph("arxiv-like")).training_run.epochs`` finds it again."""


def bench() -> dict[str, dict[str, float]]:
    """Measure and print, for a GCN and 5 % low-centrality edges, preset ``corrected``.

    Methods that exist for SGC alone are measured against the retraining of an SGC.

    On Photo (a generated graph of its size where Photo cannot be had) everything is timed in full: Gold once, every
    other method ``REPEATS`` times, of which the median counts. On ``arxiv-like`` every method is timed in full, once, on
    an original that was trained for ``SHORT`` epochs only; Gold is timed over as many epochs, and its seconds are those
    per epoch times the epochs of a full run. What a method costs depends on the weights only where a bound on the forget
    loss ends its ascent early.

    Returns:
        Graph and backbone -> method -> seconds over Gold's seconds; methods that do not apply are left out.
    """
    try:
        data = load_graph("photo")
    except DataNotFound as missing:
        print(f"Photo cannot be had, measuring on a generated graph of its size instead: {missing}")
        data = load_graph("photo-like")
    found = {"photo gcn": fractions(train(data), data, repeats=REPEATS)}
    found["photo sgc"] = fractions(train(data, "sgc"), data, SGC_ALONE)
    data = load_graph("arxiv-like")
    found["arxiv-like gcn"] = fractions(train(data, epochs=SHORT), data, epochs=ARXIV_LIKE_EPOCHS)
    return found


def fractions(
    model: Backbone,
    data: Data,
    methods: Iterable[str] = tuple(UNLEARNERS),
    repeats: int = 1,
    epochs: int | None = None,
) -> dict[str, float]:
    """Seconds of methods over those of Gold, printed as they come.

    Args:
        model: the original.
        data: its graph.
        methods: names of unlearners; all that are registered by default.
        repeats: runs of every method but Gold; the median counts.
        epochs: epochs of a full training, where the original's was cut short; Gold is then timed over the original's
            epochs and scaled.
    """
    pairs = forget_set(data, "low")
    gold = unlearn("gold", model, data, pairs)
    trained_for = gold.model.training_run.epochs
    seconds = gold.seconds if epochs is None else gold.seconds / trained_for * epochs
    how = "" if epochs is None else f", scaled from {gold.seconds:.1f} s over {trained_for} epochs"
    print(
        f"Unlearning {pairs.shape[1]:,} edges of {data.name}, {model.training_run.backbone}, "
        f"{torch.get_num_threads()} thread(s)\n"
        f"  {'gold':22s} {seconds:8.2f} s  {epochs or trained_for} epochs{how}",
        flush=True,
    )
    found = {"gold": 1.0}
    for method in methods:
        if method in found:
            continue
        results = [unlearn(method, model, data, pairs) for _ in range(repeats)]
        status = results[0].status
        if status == "unsupported":
            print(f"  {method:22s} {'':8s}    {results[0].reason}", flush=True)
            continue
        took = statistics.median(result.seconds for result in results)
        found[method] = took / seconds
        steps = results[0].steps
        print(
            f"  {method:22s} {took:8.2f} s  {100 * found[method]:6.2f} % of Gold's  "
            f"{steps.forwards} forwards, {steps.backwards} backwards{'' if status == 'ok' else f' ({status})'}",
            flush=True,
        )
    return found
