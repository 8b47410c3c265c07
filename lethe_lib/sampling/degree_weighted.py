"""Degree-weighted sampling: a fixed number of nodes, drawn one after the other in proportion to their degree.

    repeat m = floor(r n) times:
        draw a node that is not in S yet, with probability (degree + offset) / sum of the same over nodes not in S
        put it into S
    training edges: all edges between nodes of S

This is successive sampling without replacement (Hajek, "Sampling from a finite population", 1981). It is the same as
giving node i an exponential clock of rate w_i = degree_i + offset and taking the first m clocks that ring, which turns
the inclusion prior into a one-dimensional integral (``successive.py``). With offset 0 an isolated node has weight 0: it
is never sampled, its prior is exactly 0, and the target may not exceed the number of nodes with neighbours.
"""

from dataclasses import dataclass

import numpy as np
from numba import njit

from lethe_lib.errors import InputError
from lethe_lib.sampling.graph import target_size
from lethe_lib.sampling.randomness import next_below
from lethe_lib.sampling.sampler import Sampler, check_count
from lethe_lib.sampling.successive import inclusion_probabilities


@dataclass(frozen=True)
class DegreeWeightedSettings:
    """Settings of degree-weighted sampling.

    Attributes:
        offset: integer added to every degree. 0 keeps isolated nodes out; 1 gives them a chance.
    """

    offset: int = 0

    def __post_init__(self):
        check_count("offset", self.offset, least=0)


def prepare(graph, ratio, settings):
    """The kernel's only parameter: the weights, (n,) int64."""
    weights = graph.degrees + settings.offset
    target, reachable = target_size(graph, ratio), int((weights > 0).sum())
    if target > reachable:
        raise InputError(
            f"ratio {ratio!r} asks for {target} nodes, but only {reachable} have a positive weight: "
            "use a smaller ratio, or offset=1 to let isolated nodes in"
        )
    return (weights,)


def plain(graph, ratio, settings, pick):
    """The algorithm in plain Python."""
    weights, nodes = prepare(graph, ratio, settings)[0].tolist(), []
    for _ in range(target_size(graph, ratio)):
        node = pick(weights)
        nodes.append(node)
        weights[node] = 0
    return nodes, []


@njit(nogil=True)
def kernel(row_start, neighbours, target, parameters, state, sampled, order, scratch, crossed):
    """The algorithm, compiled, on a tree of partial sums (Fenwick): a draw and a removal cost log n each."""
    weights = parameters[0]
    nodes = len(weights)
    tree = np.zeros(nodes + 1, np.int64)
    total = 0
    for i in range(1, nodes + 1):
        total += weights[i - 1]
        tree[i] += weights[i - 1]
        parent = i + (i & -i)
        if parent <= nodes:
            tree[parent] += tree[i]
    top = 1
    while 2 * top <= nodes:
        top *= 2
    for i in range(target):
        left = next_below(state, total)
        node, step = 0, top
        while step > 0:
            if node + step <= nodes and tree[node + step] <= left:
                node += step
                left -= tree[node]
            step //= 2
        order[i] = node
        sampled[node] = True
        total -= weights[node]
        j = node + 1
        while j <= nodes:
            tree[j] -= weights[node]
            j += j & -j
    return target, 0


def exact_priors(graph, ratio, settings):
    """The clock integral, by quadrature; exact to about 1e-9."""
    weights = prepare(graph, ratio, settings)[0]
    return *inclusion_probabilities(weights, target_size(graph, ratio)), "quadrature"


DEGREE_WEIGHTED = Sampler(
    name="degree_weighted",
    settings=DegreeWeightedSettings,
    prepare=prepare,
    kernel=kernel,
    plain=plain,
    exact_priors=exact_priors,
)
