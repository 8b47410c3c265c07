"""Uniform sampling of a fixed number of nodes: every set of m = floor(r n) nodes is equally likely.

    order <- a uniform permutation of the nodes
    S <- the first m of them
    training edges: all edges between nodes of S

This is the sampler called "random" in the studies of membership inference on graphs. The prior of every node is m / n.
"""

from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from math import comb

import numpy as np
from numba import njit

from lethe_lib.sampling.graph import target_size
from lethe_lib.sampling.randomness import shuffle_first
from lethe_lib.sampling.sampler import Sampler, pick_ordered


@dataclass(frozen=True)
class UniformSettings:
    """Uniform sampling has nothing to set but the ratio."""


def plain(graph, ratio, settings, pick):
    """The algorithm in plain Python."""
    return pick_ordered(pick, range(graph.num_nodes), target_size(graph, ratio)), []


@njit(nogil=True)
def kernel(row_start, neighbours, target, parameters, state, sampled, order, scratch, crossed):
    """The algorithm, compiled."""
    for node in range(len(order)):
        order[node] = node
    shuffle_first(state, order, len(order), target)
    for i in range(target):
        sampled[order[i]] = True
    return target, 0


def law(graph, ratio, settings):
    """Every set of m nodes has probability 1 / C(n, m)."""
    size = target_size(graph, ratio)
    probability = Fraction(1, comb(graph.num_nodes, size))
    return {frozenset(nodes): probability for nodes in combinations(range(graph.num_nodes), size)}


def exact_priors(graph, ratio, settings):
    """m / n for every node."""
    prior = np.full(graph.num_nodes, target_size(graph, ratio) / graph.num_nodes)
    return prior, 1 - prior, "closed form"


UNIFORM = Sampler(
    name="uniform",
    settings=UniformSettings,
    prepare=lambda graph, ratio, settings: (),
    kernel=kernel,
    plain=plain,
    law=law,
    exact_priors=exact_priors,
)
