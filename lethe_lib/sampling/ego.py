"""Ego sampling: the sampled neighbourhoods of uniform centres, a few neighbours of each node at every hop.

    while |S| < m = floor(r n):
        centre <- a uniform node outside S; put it into S; layer <- {centre}
        for each fanout f, hop by hop: every u of the layer draws min(f, degree) distinct neighbours, uniformly;
            those outside S enter S, while |S| < m, and form the next layer
    training edges: the edges drawn, between nodes of S ("visited"), or all edges between nodes of S ("induced")

Source: the neighbour sampling of Hamilton, Ying and Leskovec, "Inductive representation learning on large graphs",
NeurIPS 2017, used here to cut out one training graph: an ego network does not grow again from nodes that an earlier one
took. A centre without neighbours is an ego network of one node, so this sampler never starves.
"""

from dataclasses import dataclass

import numpy as np
from numba import njit

from lethe_lib.errors import InputError
from lethe_lib.sampling.graph import target_size
from lethe_lib.sampling.randomness import fresh_node, shuffle_first
from lethe_lib.sampling.sampler import VISITED, Sampler, check_count, check_edges, pick_one, pick_ordered


@dataclass(frozen=True)
class EgoSettings:
    """Settings of ego sampling.

    Attributes:
        fanouts: neighbours drawn from each node, one entry a hop.
        edges: "visited" (the edges drawn) or "induced".
    """

    fanouts: tuple[int, ...] = (5, 5)
    edges: str = VISITED

    def __post_init__(self):
        if not isinstance(self.fanouts, (tuple, list)) or not self.fanouts:
            raise InputError(f"fanouts must list one integer per hop, such as (5, 5), not {self.fanouts!r}")
        for fanout in self.fanouts:
            check_count("every fanout", fanout)
        check_edges(self.edges)


def prepare(graph, ratio, settings):
    """The kernel's only parameter: the fanouts, (hops,) int64."""
    target_size(graph, ratio)
    return (np.array(settings.fanouts, dtype=np.int64),)


def plain(graph, ratio, settings, pick):
    """The algorithm in plain Python."""
    target, sample, pairs = target_size(graph, ratio), [], []
    while len(sample) < target:
        layer = [pick_one(pick, [node for node in range(graph.num_nodes) if node not in sample])]
        sample += layer
        for fanout in settings.fanouts:
            following = []
            for node in layer:
                if len(sample) == target:
                    break
                around = graph.neighbours_of(node)
                for other in pick_ordered(pick, around, min(fanout, len(around))):
                    if other not in sample and len(sample) < target:
                        sample.append(other)
                        following.append(other)
                    if other in sample:
                        pairs.append((min(node, other), max(node, other)))
            layer = following
    return sample, pairs


@njit(nogil=True)
def kernel(row_start, neighbours, target, parameters, state, sampled, order, scratch, crossed):
    """The algorithm, compiled; a layer is a stretch of ``order``."""
    fanouts = parameters[0]
    size, starts = 0, 0
    while size < target:
        centre = fresh_node(state, sampled)
        sampled[centre] = True
        order[size] = centre
        layer = size
        size += 1
        starts += 1
        for fanout in fanouts:
            layer_end = size
            for member in range(layer, layer_end):
                if size == target:
                    break
                node = order[member]
                first, degree = row_start[node], row_start[node + 1] - row_start[node]
                for i in range(degree):
                    scratch[i] = first + i
                drawn = min(fanout, degree)
                shuffle_first(state, scratch, degree, drawn)
                for i in range(drawn):
                    other = neighbours[scratch[i]]
                    if not sampled[other] and size < target:
                        sampled[other] = True
                        order[size] = other
                        size += 1
                    if len(crossed) and sampled[other]:
                        crossed[scratch[i]] = True
            layer = layer_end
    return size, starts


EGO = Sampler(name="ego", settings=EgoSettings, prepare=prepare, kernel=kernel, plain=plain)
