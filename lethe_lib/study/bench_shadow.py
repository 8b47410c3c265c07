"""Speed of shadow models: ours against a plain PyTorch Geometric loop, both with one model a core.

for Cora and Photo (generated graphs where the files cannot be had):
    one model in float32 and float64 on either side, 20 epochs from the same weights: largest difference of the logits
    two processes; warm up either side
    several rounds: ours trains some models, then the plain loop trains some, each on its own sample of half of the nodes
    report models per second of either side (medians over rounds) and their ratio

Either side draws the sample, builds the training graph and trains 200 epochs; the sample is drawn by the same code. The
plain loop holds dense features and ``edge_index`` and remembers the normalisation, as ``GCNConv(cached=True)`` does.
"""

import statistics
import time

import joblib
import torch
from torch.nn.functional import cross_entropy
from torch_geometric.data import Data

from lethe_lib.errors import DataNotFound
from lethe_lib.models import Backbone, build
from lethe_lib.models.propagation import dense_features
from lethe_lib.sampling import TrainingSample, sample_nodes
from lethe_lib.shadow import ShadowTraining, fit_shadow, training_graph
from lethe_lib.study.bench_training import Reference
from lethe_lib.study.trained import graph

PROCESSES = 2
TOTAL = 64
AGREEMENT_EPOCHS = 20
PLAN = (("cora", "synthetic", 8.0, 16, 2, 4), ("photo", "photo-like", 2.0, 4, 2, 3))
"""Graph, what stands in for it, target ratio, models a round of ours and of the plain loop, rounds."""


def bench() -> None:
    """Measure and print both graphs."""
    for name, other, target, ours, plain, rounds in PLAN:
        try:
            graph(name)
        except DataNotFound:
            print(f"{name} cannot be had, measuring on {other} instead")
            name = other
        shadow_speed(name, target, ours, plain, rounds)


def shadow_speed(
    name: str, target: float, ours: int, plain: int, rounds: int, training: ShadowTraining | None = None
) -> dict[str, float]:
    """Models per second of either side on one graph, printed with the agreement of their logits.

    Args:
        name: of the graph. target: ratio that is printed beside the measured one.
        ours, plain: models a round on either side. rounds: how often.
        training: the schedule; None takes ``ShadowTraining()``.

    Returns:
        ``ours`` and ``plain`` (models per second with two processes), ``ratio``, and ``ours_error`` and ``plain_error``: the
        largest difference of float32 logits from those of the plain loop in float64, over the largest of these logits.
    """
    training = ShadowTraining() if training is None else training
    sides = {"ours": (_train_ours, ours), "plain": (_train_plain, plain)}
    seconds = {side: [] for side in sides}
    with joblib.Parallel(n_jobs=PROCESSES) as parallel:
        for turn in range(rounds + 1):
            for side, (train, count) in sides.items():
                schedule = training if turn else ShadowTraining(epochs=2)  # the first turn loads and compiles
                start = time.perf_counter()
                parallel(
                    joblib.delayed(_in_process)(train, name, turn * count + i, schedule)
                    for i in range(count if turn else PROCESSES)
                )
                if turn:
                    seconds[side].append((time.perf_counter() - start) / count)
    found = {side: 1 / statistics.median(values) for side, values in seconds.items()}
    found["ratio"] = found["ours"] / found["plain"]
    found |= agreement(name)
    print(
        f"shadow GCNs on {name}, half of the nodes, {training.epochs} epochs, {training.hidden} hidden units, "
        f"{PROCESSES} processes\n"
        f"  ours                {found['ours']:8.2f} models/s (from {ours * rounds} models), {TOTAL} take "
        f"{TOTAL / found['ours']:.0f} s\n"
        f"  PyTorch Geometric   {found['plain']:8.2f} models/s (from {plain * rounds} models), {TOTAL} would take "
        f"{TOTAL / found['plain']:.0f} s\n"
        f"  ratio               {found['ratio']:8.1f} (target {target:g})\n"
        f"  float32 logits after {AGREEMENT_EPOCHS} epochs against float64, relative to the largest: ours "
        f"{found['ours_error']:.1e}, PyTorch Geometric {found['plain_error']:.1e}",
        flush=True,
    )
    return found


def agreement(name: str, epochs: int = AGREEMENT_EPOCHS) -> dict[str, float]:
    """How far float32 logits of either side are from those of the plain loop in float64; see :func:`shadow_speed`."""
    data, training = graph(name), ShadowTraining(epochs=epochs)
    sample = sample_nodes("uniform", data, 0.5, 0)
    small = training_graph(data, sample)
    model = fit_shadow(small, "gcn", 0, training)
    with torch.no_grad():
        logits = {"ours_error": model(small).double()}
    for key, dtype in (("plain_error", torch.float32), ("exact", torch.float64)):
        plain, subgraph = _plain(data, sample, 0, training, dtype)
        with torch.no_grad():
            logits[key] = plain(subgraph).double()
    exact = logits.pop("exact")
    return {key: float((value - exact).abs().max() / exact.abs().max()) for key, value in logits.items()}


def _in_process(train, name: str, number: int, training: ShadowTraining) -> None:
    torch.set_num_threads(1)  # one model a core
    data = graph(name)
    train(data, sample_nodes("uniform", data, 0.5, number), number, training)


def _train_ours(data: Data, sample: TrainingSample, seed: int, training: ShadowTraining) -> Backbone:
    return fit_shadow(training_graph(data, sample), "gcn", seed, training)


def _train_plain(data: Data, sample: TrainingSample, seed: int, training: ShadowTraining) -> torch.nn.Module:
    return _plain(data, sample, seed, training)[0]


def _plain(
    data: Data, sample: TrainingSample, seed: int, training: ShadowTraining, dtype: torch.dtype = torch.float32
) -> tuple[torch.nn.Module, Data]:
    """Train as in the textbook; returns the model and the subgraph it was trained on."""
    position = torch.full((data.num_nodes,), -1)
    position[sample.nodes] = torch.arange(len(sample.nodes))
    x = dense_features(data, torch.empty(0, dtype=dtype))[sample.nodes]
    subgraph = Data(x=x, edge_index=position[sample.edge_index], y=data.y[sample.nodes])
    model = Reference(build(data, "gcn", seed, **training.architecture("gcn"))).to(dtype)
    optimiser = torch.optim.Adam(model.parameters(), lr=training.learning_rate, weight_decay=training.weight_decay)
    for _ in range(training.epochs):
        optimiser.zero_grad()
        cross_entropy(model(subgraph), subgraph.y).backward()
        optimiser.step()
    return model, subgraph
