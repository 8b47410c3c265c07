"""From node-level differential privacy to BMP: how far apart the samples with and without a node are.

References: V. Strassen, "The existence of probability measures with given marginals" (1965); L. Ford, D. Fulkerson,
"Maximal flow through a network" (1956). The link to membership privacy is derived here.

    S1 ~ S | M_i = 1,  S0 ~ S | M_i = 0
    k  = smallest number such that some coupling has |S1 symmetric difference S0| <= k with certainty
    if training is eps-DP for adding or removing one node, then |log Lambda_i| <= k eps

    for k in the occurring distances, ascending by bisection:
        feasible iff the bipartite graph {(S1, S0): distance <= k} carries a flow of 1 between the two laws

Independent membership has k = 1, a uniform sample of fixed size k = 2; structure makes k grow, and with it the loss of
the protection that differential privacy promises. The flow runs on integers, so the answer is exact.
"""

from bisect import bisect_left
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import lcm

import networkx as nx

from lethe_lib.bmp.bounds import Bounds
from lethe_lib.bmp.exact import check_sample_law, nodes_of
from lethe_lib.errors import InputError


@dataclass(frozen=True)
class Coupling:
    """The tightest coupling of the samples with and without one node.

    Args:
        distance: largest symmetric difference of coupled samples, the node itself included; at least 1.
        plan: probability of every coupled pair (sample with the node, sample without it).
    """

    distance: int
    plan: dict[tuple[frozenset, frozenset], Fraction]


def closest_coupling(sample_law: Mapping | Iterable, node: Hashable) -> Coupling:
    """The coupling of S|M=1 and S|M=0 whose worst symmetric difference is smallest.

    Args:
        sample_law: law of the training set, frozenset -> Fraction.
        node: a node whose prior is neither 0 nor 1.

    Example:
        >>> pair = {frozenset({0}): Fraction(1, 2), frozenset({1}): Fraction(1, 2)}
        >>> closest_coupling(pair, 0).distance
        2
    """
    law = check_sample_law(sample_law)
    prior = sum((p for sample, p in law.items() if node in sample), Fraction(0))
    if prior in (0, 1):
        raise InputError(f"node {node!r} has prior {prior}: there is nothing to couple")
    inside = {sample: p / prior for sample, p in law.items() if node in sample}
    outside = {sample: p / (1 - prior) for sample, p in law.items() if node not in sample}
    scale = lcm(*(p.denominator for p in (*inside.values(), *outside.values())))
    distances = sorted({len(one ^ other) for one in inside for other in outside})

    def flow(limit: int) -> tuple[int, dict]:
        graph = nx.DiGraph()
        for side, part in (("in", inside), ("out", outside)):
            for sample, p in part.items():
                ends = ("source", (side, sample)) if side == "in" else ((side, sample), "sink")
                graph.add_edge(*ends, capacity=int(p * scale))
        graph.add_edges_from(
            (("in", one), ("out", other)) for one in inside for other in outside if len(one ^ other) <= limit
        )
        return nx.maximum_flow(graph, "source", "sink")

    place = bisect_left(distances, True, key=lambda limit: flow(limit)[0] == scale)
    _, flows = flow(distances[place])
    plan = {
        (one, other): Fraction(amount, scale)
        for one in inside
        for (_, other), amount in flows[("in", one)].items()
        if amount
    }
    return Coupling(distances[place], plan)


def bounds_from_node_dp(sample_law: Mapping | Iterable, eps: float) -> Bounds:
    """What node-level eps-DP of the training guarantees for each node under a sampler: |log Lambda| <= k eps.

    Args:
        sample_law: law of the training set.
        eps: differential-privacy parameter for adding or removing one node of the sample, at least 0.

    Returns:
        Bounds with L = e^(-k eps) and U = e^(k eps), k from :func:`closest_coupling`; nodes always sampled are in
        ``degenerate``, and the law names no node that is never sampled.
    """
    if not eps >= 0:
        raise InputError(f"eps must be at least 0, got {eps}")
    law = check_sample_law(sample_law)
    priors = {node: sum((p for s, p in law.items() if node in s), Fraction(0)) for node in nodes_of(law)}
    proper = [node for node, prior in priors.items() if prior < 1]
    total = [eps * closest_coupling(law, node).distance for node in proper]
    bounds = Bounds.from_parameters(total, total, [float(priors[node]) for node in proper], "ratio", proper)
    degenerate = {node: "prior 1: always sampled" for node in priors if node not in proper}
    return Bounds(bounds.lower, bounds.upper, bounds.prior, bounds.nodes, degenerate=degenerate)
