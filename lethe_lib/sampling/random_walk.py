"""Random walk with restart: the distinct nodes that a walker passes until enough are found.

    u <- start <- a uniform node; S <- {start}
    while |S| < m = floor(r n):
        with probability `restart`: u <- start
        otherwise: v <- a uniform neighbour of u; u <- v; put v into S
        after `patience` steps in a row without a new node: start <- a uniform node outside S; put it into S; u <- start
    training edges: all edges between nodes of S ("induced"), or those that the walker crossed ("visited")

Source: Leskovec and Faloutsos, "Sampling from large graphs", KDD 2006, whose walker also jumps to a new start when
stuck. In a disconnected graph, and around an isolated start, patience is what lets the walk go on; with
``fresh_starts=False`` it stops there instead, and the sample has **starved**.
"""

from collections import defaultdict
from dataclasses import dataclass
from fractions import Fraction

from numba import njit

from lethe_lib.errors import InputError
from lethe_lib.sampling.graph import exact, target_size
from lethe_lib.sampling.randomness import fresh_node, next_below, next_float
from lethe_lib.sampling.sampler import INDUCED, Sampler, check_count, check_edges, pick_one


@dataclass(frozen=True)
class RandomWalkSettings:
    """Settings of the random walk with restart.

    Attributes:
        restart: probability, at each step, of going back to the start; in [0, 1).
        patience: steps in a row without a new node after which the walk counts as stuck.
        edges: "induced" or "visited".
        fresh_starts: when stuck, go on from a uniform node outside the sample instead of stopping short.
    """

    restart: float = 0.15
    patience: int = 100
    edges: str = INDUCED
    fresh_starts: bool = True

    def __post_init__(self):
        if not 0 <= self.restart < 1:
            raise InputError(f"restart must be a probability in [0, 1), not {self.restart!r}")
        check_count("patience", self.patience)
        check_edges(self.edges)


def prepare(graph, ratio, settings):
    """The kernel's parameters."""
    target_size(graph, ratio)
    return float(settings.restart), settings.patience, settings.fresh_starts


def plain(graph, ratio, settings, pick):
    """The algorithm in plain Python."""
    target, restart = target_size(graph, ratio), exact(settings.restart)
    sample, pairs, idle = [], [], settings.patience
    while len(sample) < target:
        if idle == settings.patience:
            if sample and not settings.fresh_starts:
                break
            node = start = pick_one(pick, [other for other in range(graph.num_nodes) if other not in sample])
            sample.append(node)
            idle = 0
            continue
        idle += 1
        around = graph.neighbours_of(node)
        if not around or pick([restart, 1 - restart]) == 0:
            node = start
            continue
        other = pick_one(pick, around)
        pairs.append((min(node, other), max(node, other)))
        node = other
        if node not in sample:
            sample.append(node)
            idle = 0
    return sample, pairs


@njit(nogil=True)
def kernel(row_start, neighbours, target, parameters, state, sampled, order, scratch, crossed):
    """The algorithm, compiled."""
    restart, patience, fresh_starts = parameters
    size, starts, idle, start, node = 0, 0, patience, 0, 0
    while size < target:
        if idle >= patience:
            if size > 0 and not fresh_starts:
                break
            start = fresh_node(state, sampled)
            node = start
            sampled[node] = True
            order[size] = node
            size += 1
            starts += 1
            idle = 0
            continue
        idle += 1
        degree = row_start[node + 1] - row_start[node]
        if degree == 0:
            idle = patience  # an isolated start never leaves: no need to wait
            continue
        if next_float(state) < restart:
            node = start
            continue
        position = row_start[node] + next_below(state, degree)
        if len(crossed):
            crossed[position] = True
        node = neighbours[position]
        if not sampled[node]:
            sampled[node] = True
            order[size] = node
            size += 1
            idle = 0
    return size, starts


def law(graph, ratio, settings):
    """The law as a Markov chain over (S, start, position), since the plain program has too many paths to list.

    The states are visited in the order of |S|. Within one S the walker's position is followed for ``patience`` steps;
    mass that steps outside S moves to the larger set, and what is left after the last step is stuck.
    """
    target, restart = target_size(graph, ratio), exact(settings.restart)
    nodes = range(graph.num_nodes)
    law = defaultdict(Fraction)
    layer = {(frozenset({node}), node, node): Fraction(1, graph.num_nodes) for node in nodes}
    while layer:
        following = defaultdict(Fraction)
        for (sample, start, node), mass in layer.items():
            if len(sample) == target:
                law[sample] += mass
                continue
            inside = {node: mass}
            for _ in range(settings.patience):
                moved = defaultdict(Fraction)
                for here, weight in inside.items():
                    around = graph.neighbours_of(here)
                    moved[start] += weight * (restart if around else 1)
                    for other in around:
                        step = weight * (1 - restart) / len(around)
                        if other in sample:
                            moved[other] += step
                        else:
                            following[sample | {other}, start, other] += step
                inside = moved
            stuck = sum(inside.values())
            if not settings.fresh_starts:
                law[sample] += stuck
                continue
            outside = [other for other in nodes if other not in sample]
            for other in outside:
                following[sample | {other}, other, other] += stuck / len(outside)
        layer = following
    return {sample: mass for sample, mass in law.items() if mass > 0}


RANDOM_WALK = Sampler(
    name="random_walk", settings=RandomWalkSettings, prepare=prepare, kernel=kernel, plain=plain, law=law
)
