"""Bernoulli (Poisson) sampling: every node is taken on its own with probability r.

    for each node i: put i into S with probability r, independently
    training edges: all edges between nodes of S

Memberships are independent, which no sampler of fixed size and no exploration offers; in return the size of the sample
varies (its mean is r n), and S may be empty. The prior of every node is r.
"""

from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations

import numpy as np
from numba import njit

from lethe_lib.sampling.graph import exact, target_size
from lethe_lib.sampling.randomness import next_float
from lethe_lib.sampling.sampler import Sampler


@dataclass(frozen=True)
class BernoulliSettings:
    """Bernoulli sampling has nothing to set but the ratio."""


def prepare(graph, ratio, settings):
    """The kernel's only parameter: the ratio itself, not floor(r n) / n."""
    target_size(graph, ratio)
    return (float(ratio),)


def plain(graph, ratio, settings, pick):
    """The algorithm in plain Python."""
    share = exact(ratio)
    return [node for node in range(graph.num_nodes) if pick([share, 1 - share]) == 0], []


@njit(nogil=True)
def kernel(row_start, neighbours, target, parameters, state, sampled, order, scratch, crossed):
    """The algorithm, compiled."""
    size = 0
    for node in range(len(sampled)):
        if next_float(state) < parameters[0]:
            sampled[node] = True
            order[size] = node
            size += 1
    return size, 0


def law(graph, ratio, settings):
    """A set of s nodes has probability r^s (1 - r)^(n - s)."""
    target_size(graph, ratio)
    share, nodes = exact(ratio), graph.num_nodes
    law = {
        frozenset(members): share**size * (1 - share) ** (nodes - size)
        for size in range(nodes + 1)
        for members in combinations(range(nodes), size)
    }
    return {members: probability for members, probability in law.items() if probability > Fraction(0)}


def exact_priors(graph, ratio, settings):
    """r for every node."""
    target_size(graph, ratio)
    prior = np.full(graph.num_nodes, float(ratio))
    return prior, 1 - prior, "closed form"


BERNOULLI = Sampler(
    name="bernoulli",
    settings=BernoulliSettings,
    prepare=prepare,
    kernel=kernel,
    plain=plain,
    law=law,
    exact_priors=exact_priors,
    fixed_size=False,
)
