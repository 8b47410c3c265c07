"""How many draws per second each sampler makes, beside a plain snowball on networkx, all in one run.

once: compile, and convert the graph for either side (not timed)
several rounds: time a batch of draws of every sampler and of the plain snowball, one after the other
report the median over rounds of draws per second, and its ratio to the plain snowball of the same round
"""

import random
from collections import deque
from time import perf_counter

import networkx as nx
import numpy as np
import pandas as pd

from lethe_lib.data import adjacency, load_graph
from lethe_lib.errors import DataNotFound
from lethe_lib.sampling import SAMPLERS, draw_counts, sampling_graph, target_size
from lethe_lib.sampling.snowball import SnowballSettings

PLAIN = "snowball on networkx"


def plain_snowball(graph: nx.Graph, classes: list[list[int]], target: int, settings, generator: random.Random) -> set:
    """One snowball sample with ordinary Python containers: the same algorithm, for comparison of speed."""
    seeds = [node for members in classes for node in generator.sample(members, settings.seeds_per_class)]
    generator.shuffle(seeds)
    queue, sample = deque(seeds), set(seeds)
    while queue and len(sample) < target:
        node = queue.popleft()
        around = list(graph.neighbors(node))
        generator.shuffle(around)
        for other in around[: settings.k]:
            if other not in sample and len(sample) < target:
                sample.add(other)
                queue.append(other)
    return sample


def sampler_speeds(graph: str | None = None, ratio: float = 0.1, rounds: int = 5, draws: int = 2000) -> pd.DataFrame:
    """Draws per second of every sampler, on one thread, and how many times those of the plain snowball they are.

    Args:
        graph: name of a graph; Cora by default, or the generated graph where Cora's files are not to be had.
        ratio: share of nodes to sample.
        rounds: repetitions; medians are reported.
        draws: draws per round of each sampler, a hundredth of that of the plain snowball.

    Returns:
        One row a sampler: ``graph``, ``sampler``, ``draws_per_second``, ``ratio`` (to the plain snowball) and
        ``seconds_for_10000``; the last row is the plain snowball itself.
    """
    if graph is None:
        try:
            data = load_graph("cora")
        except DataNotFound:
            data = load_graph("synthetic")
    else:
        data = load_graph(graph)
    compiled, plain, settings = sampling_graph(data), nx.from_scipy_sparse_array(adjacency(data)), SnowballSettings()
    classes = [np.flatnonzero(compiled.labels == label).tolist() for label in range(compiled.num_classes)]
    target, generator = target_size(compiled, ratio), random.Random(0)
    for sampler in SAMPLERS:
        draw_counts(sampler, compiled, ratio, 1)

    speeds = {name: [] for name in (*SAMPLERS, PLAIN)}
    for turn in range(rounds):
        for sampler in SAMPLERS:
            start = perf_counter()
            draw_counts(sampler, compiled, ratio, draws, seed=turn)
            speeds[sampler].append(draws / (perf_counter() - start))
        few = max(1, draws // 100)
        start = perf_counter()
        for _ in range(few):
            plain_snowball(plain, classes, target, settings, generator)
        speeds[PLAIN].append(few / (perf_counter() - start))
    table = np.array(list(speeds.values()))
    speed = np.median(table, axis=1)
    return pd.DataFrame(
        {
            "graph": data.name,
            "sampler": list(speeds),
            "draws_per_second": speed,
            "ratio": np.median(table / table[-1], axis=1),
            "seconds_for_10000": 10_000 / speed,
        }
    )


def bench_samplers() -> None:
    """Print draws per second and ratios on Cora (the generated graph without its files), at ratios 0.1 and 0.5."""
    for ratio in (0.1, 0.5):
        table = sampler_speeds(ratio=ratio)
        print(f"draws per second on {table['graph'][0]}, ratio {ratio}, one thread")
        print(table.drop(columns="graph").to_string(index=False, float_format=lambda value: f"{value:,.1f}"))


if __name__ == "__main__":
    bench_samplers()
