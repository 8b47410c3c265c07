"""Snowball sampling: waves of at most k neighbours from a few seeds of every class.

    S <- seeds_per_class uniform nodes of every class; queue <- S in random order
    while the queue is not empty and |S| < m = floor(r n):
        take u from the front of the queue; shuffle its neighbours and look at the first k of them
        each one v that is not in S, while |S| < m: put v into S and at the end of the queue
    training edges: the pairs (u, v) looked at ("visited"), or all edges between nodes of S ("induced")

Source: the snowball split of Khosla, "Impact of Graph Structure on Membership-Inference Risk for GNNs",
arXiv:2601.17130 (k = 3, ten seeds a class), which Bayesian Membership Privacy (arXiv:2606.04069) builds on; snowball
sampling itself: Goodman, 1961. With one class and one seed it is snowball from one uniform node.

A sample **starves** when the queue empties first; it is then smaller than m, as published. ``fresh_starts=True`` goes
on from a uniform node outside S instead. Preset ``published`` keeps two quirks. The pair (u, v) becomes a training edge
even when v was refused because S was full, so that an edge can lead out of the sample. And the seeds wait class by
class (our reading: the source does not give their order), so that at small ratios the classes with small numbers grow
and the others do not; ``corrected`` keeps pairs inside S and does not depend on how the classes are numbered.
"""

from dataclasses import dataclass

import numpy as np
from numba import njit

from lethe_lib.errors import InputError
from lethe_lib.sampling.graph import target_size
from lethe_lib.sampling.randomness import fresh_node, next_below, shuffle_first
from lethe_lib.sampling.sampler import VISITED, Sampler, check_count, check_edges, pick_one, pick_ordered


@dataclass(frozen=True)
class SnowballSettings:
    """Settings of snowball sampling.

    Attributes:
        k: neighbours looked at from each node.
        seeds_per_class: uniform seeds drawn from each class.
        edges: "visited" (the pairs looked at) or "induced".
        fresh_starts: when the queue is empty, go on from a uniform node outside the sample instead of stopping short.
        preset: "corrected", or "published": seeds wait class by class, and pairs with refused nodes are kept.
    """

    k: int = 3
    seeds_per_class: int = 10
    edges: str = VISITED
    fresh_starts: bool = False
    preset: str = "corrected"

    def __post_init__(self):
        check_count("k", self.k)
        check_count("seeds_per_class", self.seeds_per_class)
        check_edges(self.edges)
        if self.preset not in ("corrected", "published"):
            raise InputError(f"preset must be 'corrected' or 'published', not {self.preset!r}")


def prepare(graph, ratio, settings):
    """The kernel's parameters: nodes sorted by class, where each class starts, and the settings."""
    if graph.labels is None:
        raise InputError("snowball draws its seeds per class, but the graph has no labels y")
    sizes = np.bincount(graph.labels, minlength=graph.num_classes)
    short = np.flatnonzero(sizes < settings.seeds_per_class)
    if len(short):
        raise InputError(
            f"class {short[0]} has {sizes[short[0]]} nodes, fewer than seeds_per_class={settings.seeds_per_class}: "
            "use fewer seeds, or merge or drop the class"
        )
    seeds, target = settings.seeds_per_class * graph.num_classes, target_size(graph, ratio)
    if seeds > target:
        raise InputError(
            f"ratio {ratio!r} asks for {target} nodes, fewer than the {seeds} seeds "
            f"({settings.seeds_per_class} in each of {graph.num_classes} classes): raise the ratio or use fewer seeds"
        )
    by_class = np.argsort(graph.labels, kind="stable")
    class_start = np.concatenate([[0], np.cumsum(sizes)])
    published = settings.preset == "published"
    return by_class, class_start, settings.seeds_per_class, settings.k, settings.fresh_starts, published


def plain(graph, ratio, settings, pick):
    """The algorithm in plain Python."""
    by_class, class_start, seeds_per_class, k, fresh_starts, published = prepare(graph, ratio, settings)
    target, sample, pairs = target_size(graph, ratio), [], []
    for first, last in zip(class_start[:-1], class_start[1:], strict=True):
        sample += pick_ordered(pick, by_class[first:last].tolist(), seeds_per_class)
    if not published:
        sample = pick_ordered(pick, sample, len(sample))
    head = 0
    while len(sample) < target:
        if head == len(sample):
            if not fresh_starts:
                break
            sample.append(pick_one(pick, [node for node in range(graph.num_nodes) if node not in sample]))
            continue
        node, head = sample[head], head + 1
        around = graph.neighbours_of(node)
        for other in pick_ordered(pick, around, min(k, len(around))):
            if other not in sample and len(sample) < target:
                sample.append(other)
            if other in sample or published:
                pairs.append((min(node, other), max(node, other)))
    return sample, pairs


@njit(nogil=True)
def kernel(row_start, neighbours, target, parameters, state, sampled, order, scratch, crossed):
    """The algorithm, compiled; ``order`` is sample and queue in one, ``head`` the front of the queue."""
    by_class, class_start, seeds_per_class, k, fresh_starts, published = parameters
    size = 0
    for label in range(len(class_start) - 1):
        first, length = class_start[label], class_start[label + 1] - class_start[label]
        drawn = 0
        while drawn < seeds_per_class:
            # Drawing again until the node is new gives a uniform ordered choice without touching by_class.
            node = by_class[first + next_below(state, length)]
            if not sampled[node]:
                sampled[node] = True
                order[size] = node
                size += 1
                drawn += 1
    if not published:
        shuffle_first(state, order, size, size - 1)
    starts, head = size, 0
    while size < target:
        if head == size:
            if not fresh_starts:
                break
            node = fresh_node(state, sampled)
            sampled[node] = True
            order[size] = node
            size += 1
            starts += 1
            continue
        node = order[head]
        head += 1
        first, degree = row_start[node], row_start[node + 1] - row_start[node]
        for i in range(degree):
            scratch[i] = first + i
        looked_at = min(k, degree)
        shuffle_first(state, scratch, degree, looked_at)
        for i in range(looked_at):
            other = neighbours[scratch[i]]
            if not sampled[other] and size < target:
                sampled[other] = True
                order[size] = other
                size += 1
            if len(crossed) and (sampled[other] or published):
                crossed[scratch[i]] = True
    return size, starts


SNOWBALL = Sampler(name="snowball", settings=SnowballSettings, prepare=prepare, kernel=kernel, plain=plain)
