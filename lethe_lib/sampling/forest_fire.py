"""Forest fire: burn a random number of neighbours of every burning node, and light a new fire when it dies.

    while |S| < m = floor(r n):
        if no node of S is waiting: light a fire at a uniform node outside S
        take the longest waiting node u; x <- number of successes, each of probability `burn`, before the first failure
        put min(x, all) of u's neighbours outside S, uniformly chosen, into S, while |S| < m
    training edges: all edges between nodes of S ("induced"), or those along which the fire spread ("visited")

Source: Leskovec and Faloutsos, "Sampling from large graphs", KDD 2006 (burn 0.7; x has mean burn / (1 - burn)). Fires
die often, so new ones belong to the method; with ``fresh_starts=False`` only one is lit and the sample may **starve**.
"""

from dataclasses import dataclass

from numba import njit

from lethe_lib.errors import InputError
from lethe_lib.sampling.graph import exact, target_size
from lethe_lib.sampling.randomness import fresh_node, next_float, shuffle_first
from lethe_lib.sampling.sampler import INDUCED, Sampler, check_edges, pick_one, pick_ordered


@dataclass(frozen=True)
class ForestFireSettings:
    """Settings of forest fire sampling.

    Attributes:
        burn: probability of burning one more neighbour; in [0, 1).
        edges: "induced" or "visited" (the edges along which the fire spread: a forest).
        fresh_starts: light a new fire when one dies, instead of stopping short.
    """

    burn: float = 0.7
    edges: str = INDUCED
    fresh_starts: bool = True

    def __post_init__(self):
        if not 0 <= self.burn < 1:
            raise InputError(f"burn must be a probability in [0, 1), not {self.burn!r}")
        check_edges(self.edges)


def prepare(graph, ratio, settings):
    """The kernel's parameters."""
    target_size(graph, ratio)
    return float(settings.burn), settings.fresh_starts


def plain(graph, ratio, settings, pick):
    """The algorithm in plain Python."""
    target, burn = target_size(graph, ratio), exact(settings.burn)
    sample, pairs, head = [], [], 0
    while len(sample) < target:
        if head == len(sample):
            if sample and not settings.fresh_starts:
                break
            sample.append(pick_one(pick, [node for node in range(graph.num_nodes) if node not in sample]))
            continue
        node, head = sample[head], head + 1
        left = [other for other in graph.neighbours_of(node) if other not in sample]
        burnt = 0
        while burnt < len(left) and pick([burn, 1 - burn]) == 0:
            burnt += 1
        for other in pick_ordered(pick, left, burnt):
            if len(sample) < target:
                sample.append(other)
                pairs.append((min(node, other), max(node, other)))
    return sample, pairs


@njit(nogil=True)
def kernel(row_start, neighbours, target, parameters, state, sampled, order, scratch, crossed):
    """The algorithm, compiled; ``order`` is sample and queue in one, ``head`` the front of the queue."""
    burn, fresh_starts = parameters
    size, starts, head = 0, 0, 0
    while size < target:
        if head == size:
            if size > 0 and not fresh_starts:
                break
            node = fresh_node(state, sampled)
            sampled[node] = True
            order[size] = node
            size += 1
            starts += 1
            continue
        node = order[head]
        head += 1
        left = 0
        for position in range(row_start[node], row_start[node + 1]):
            if not sampled[neighbours[position]]:
                scratch[left] = position
                left += 1
        burnt = 0
        while burnt < left and next_float(state) < burn:
            burnt += 1
        shuffle_first(state, scratch, left, burnt)
        for i in range(min(burnt, target - size)):
            other = neighbours[scratch[i]]
            sampled[other] = True
            order[size] = other
            size += 1
            if len(crossed):
                crossed[scratch[i]] = True
    return size, starts


FOREST_FIRE = Sampler(name="forest_fire", settings=ForestFireSettings, prepare=prepare, kernel=kernel, plain=plain)
