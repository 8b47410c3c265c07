"""Draws: one training sample with its edges, or many draws counted in one compiled loop.

Draw t of (seed, sampler) has a random stream of its own, so counts do not depend on how the draws are shared out among
threads, and ``sample_nodes(..., seed)`` is draw 0 of that seed.
"""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import torch
from numba import njit

from lethe_lib.errors import InputError
from lethe_lib.sampling.graph import SamplingGraph, sampling_graph, target_size
from lethe_lib.sampling.randomness import start_stream
from lethe_lib.sampling.sampler import INDUCED, VISITED, TrainingSample, check_count
from lethe_lib.sampling.samplers import SAMPLERS
from lethe_lib.seeding import derive_seed


@dataclass(frozen=True)
class DrawCounts:
    """What many draws of one sampler gave.

    Attributes:
        counts: (n,) int64, in how many draws each node was sampled.
        sizes: (draws,) int64, the size of each sample.
        starts: (draws,) int64, from how many nodes each exploration started.
        target: the number of nodes asked for, floor(r n).
        starved: (draws,) bool, samples smaller than asked for because the exploration ran dry.
    """

    counts: np.ndarray
    sizes: np.ndarray
    starts: np.ndarray
    target: int
    starved: np.ndarray


def sample_nodes(sampler: str, data, ratio, seed: int = 0, **settings) -> TrainingSample:
    """One draw of a sampler, with the training edges that it defines.

    Args:
        sampler: a name in ``SAMPLERS``.
        data: canonical graph, or its ``sampling_graph``.
        ratio: share r of all nodes, in (0, 1]; a float, or a Fraction.
        seed: the draw is a function of seed, sampler, graph, ratio and settings only.
        **settings: the fields of the sampler's settings.

    Returns:
        The sorted nodes, the training edges and their kind, and whether the exploration starved.

    Raises:
        InputError: an unknown sampler or setting, or a ratio that the graph cannot serve.

    Example:
        >>> sample = sample_nodes("snowball", load_graph("cora"), ratio=0.1, seed=0)  # doctest: +SKIP
        >>> len(sample.nodes), sample.kind  # doctest: +SKIP
        (270, 'visited')
    """
    entry, chosen, graph, parameters = _resolve(sampler, data, ratio, settings)
    target, nodes = target_size(graph, ratio), graph.num_nodes
    kind = getattr(chosen, "edges", INDUCED)
    sampled, order = np.zeros(nodes, dtype=np.bool_), np.empty(nodes, dtype=np.int64)
    crossed = np.zeros(len(graph.neighbours) if kind == VISITED else 0, dtype=np.bool_)
    state = np.zeros(1, dtype=np.uint64)
    start_stream(state, _key(sampler, seed), 0)
    size, starts = entry.kernel(
        graph.row_start, graph.neighbours, target, parameters, state, sampled, order, _scratch(graph), crossed
    )
    source = np.repeat(np.arange(nodes), graph.degrees)
    if kind == INDUCED:
        crossed = sampled[source] & sampled[graph.neighbours]
    source, sink = source[crossed], graph.neighbours[crossed]
    keys = np.unique(np.minimum(source, sink) * nodes + np.maximum(source, sink))
    return TrainingSample(
        nodes=torch.from_numpy(np.sort(order[:size])),
        edges=torch.from_numpy(np.stack([keys // nodes, keys % nodes])),
        kind=kind,
        target=target,
        starts=int(starts),
        starved=bool(entry.fixed_size and size < target),
    )


def draw_counts(
    sampler: str, data, ratio, draws: int, seed: int = 0, *, first: int = 0, threads: int = 1, **settings
) -> DrawCounts:
    """In how many of many draws each node is sampled, counted in one compiled loop.

    Args:
        sampler: a name in ``SAMPLERS``.
        data: canonical graph, or its ``sampling_graph``.
        ratio: share of all nodes, in (0, 1].
        draws: number of draws T.
        seed: draws are numbered within a seed; other seeds give independent ones.
        first: number of the first draw, so that ``[0, T)`` can be split into independent parts.
        threads: compiled loops run side by side. The result does not depend on it.
        **settings: the fields of the sampler's settings.
    """
    check_count("draws", draws)
    check_count("threads", threads)
    check_count("first", first, least=0)
    entry, _, graph, parameters = _resolve(sampler, data, ratio, settings)
    target, key = target_size(graph, ratio), _key(sampler, seed)
    sizes, starts = np.zeros(draws, dtype=np.int64), np.zeros(draws, dtype=np.int64)
    bounds = np.linspace(0, draws, min(threads, draws) + 1).astype(np.int64)
    parts = np.zeros((len(bounds) - 1, graph.num_nodes), dtype=np.int64)

    def count(part):
        low, high = bounds[part], bounds[part + 1]
        _count_draws(
            entry.kernel, graph.row_start, graph.neighbours, target, parameters, key, first + low,
            parts[part], sizes[low:high], starts[low:high], _scratch(graph),
        )  # fmt: skip

    with ThreadPoolExecutor(len(parts)) as pool:
        list(pool.map(count, range(len(parts))))
    starved = (sizes < target) & entry.fixed_size
    return DrawCounts(parts.sum(axis=0), sizes, starts, target, starved)


def draw_memberships(sampler: str, data, ratio, draws: int, seed: int = 0, *, first: int = 0, **settings) -> np.ndarray:
    """Which nodes each of many draws sampled: (draws, n) bool. Its column sums are those of ``draw_counts``."""
    check_count("draws", draws)
    check_count("first", first, least=0)
    entry, _, graph, parameters = _resolve(sampler, data, ratio, settings)
    sampled = np.zeros((draws, graph.num_nodes), dtype=np.bool_)
    _record_draws(
        entry.kernel, graph.row_start, graph.neighbours, target_size(graph, ratio), parameters, _key(sampler, seed),
        first, sampled, _scratch(graph),
    )  # fmt: skip
    return sampled


@njit(nogil=True)
def _count_draws(kernel, row_start, neighbours, target, parameters, key, first, counts, sizes, starts, scratch):
    state = np.zeros(1, np.uint64)
    sampled = np.zeros(len(counts), np.bool_)
    order = np.empty(len(counts), np.int64)
    crossed = np.zeros(0, np.bool_)
    for draw in range(len(sizes)):
        start_stream(state, key, first + draw)
        size, begun = kernel(row_start, neighbours, target, parameters, state, sampled, order, scratch, crossed)
        sizes[draw] = size
        starts[draw] = begun
        for i in range(size):
            counts[order[i]] += 1
            sampled[order[i]] = False


@njit(nogil=True)
def _record_draws(kernel, row_start, neighbours, target, parameters, key, first, sampled, scratch):
    state = np.zeros(1, np.uint64)
    order = np.empty(sampled.shape[1], np.int64)
    crossed = np.zeros(0, np.bool_)
    for draw in range(len(sampled)):
        start_stream(state, key, first + draw)
        kernel(row_start, neighbours, target, parameters, state, sampled[draw], order, scratch, crossed)


def _resolve(sampler, data, ratio, settings):
    entry = SAMPLERS[sampler]
    chosen = entry.configure(settings)
    graph = sampling_graph(data)
    target_size(graph, ratio)
    return entry, chosen, graph, entry.prepare(graph, ratio, chosen)


def _key(sampler: str, seed: int) -> np.uint64:
    if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)):
        raise InputError(f"seed must be an integer, not {seed!r}")
    return np.uint64(derive_seed(seed, "sampling", sampler))


def _scratch(graph: SamplingGraph) -> np.ndarray:
    return np.empty(int(graph.degrees.max(initial=0)), dtype=np.int64)
