"""The exact law of a sampler on a small graph, in rational arithmetic.

    run the plain program again and again; every call of pick(weights) is a fork in a tree of decisions
    follow each branch once, multiplying the probabilities of the choices made on the way
    add the probability of each path to the set of nodes that it sampled

Exact means: fractions, no rounding, sum 1. The number of paths grows fast; graphs of up to about eight nodes are meant.
"""

from collections import defaultdict
from collections.abc import Callable, Hashable
from fractions import Fraction

from lethe_lib.errors import InputError
from lethe_lib.sampling.graph import sampling_graph, target_size
from lethe_lib.sampling.samplers import SAMPLERS

_MOST_PATHS = 2_000_000


def sample_law(sampler: str, data, ratio, **settings) -> dict[frozenset, Fraction]:
    """The probability of every node set that a sampler can draw.

    Args:
        sampler: a name in ``SAMPLERS``.
        data: a small canonical graph.
        ratio: share of all nodes, in (0, 1]. Floats are read as their decimal digits (0.6 is 3/5).
        **settings: the fields of the sampler's settings.

    Returns:
        Node set -> probability, exact fractions that sum to 1; impossible sets are left out.

    Raises:
        InputError: the graph has too many decision paths to list.

    Example:
        On the path 0 - 1 - 2 a degree-weighted sample of one node is {1} with probability 1/2, else {0} or {2}.
    """
    entry = SAMPLERS[sampler]
    chosen = entry.configure(settings)
    graph = sampling_graph(data)
    target_size(graph, ratio)
    entry.prepare(graph, ratio, chosen)
    if entry.law is not None:
        return entry.law(graph, ratio, chosen)
    return enumerate_paths(lambda pick: frozenset(entry.plain(graph, ratio, chosen, pick)[0]))


def law_priors(law: dict[frozenset, Fraction], nodes: int) -> list[Fraction]:
    """The inclusion probability of each node under an enumerated law."""
    return [sum((mass for members, mass in law.items() if node in members), Fraction(0)) for node in range(nodes)]


def enumerate_paths(program: Callable[[Callable], Hashable]) -> dict[Hashable, Fraction]:
    """The exact law of a program's result, where the program takes all its randomness from ``pick(weights)``."""
    law: dict[Hashable, Fraction] = defaultdict(Fraction)
    waiting, paths = [()], 0
    while waiting:
        if (paths := paths + 1) > _MOST_PATHS:
            raise InputError(f"more than {_MOST_PATHS:,} decision paths: use a smaller graph, ratio or setting")
        path = _Path(waiting.pop())
        result = program(path.pick)
        law[result] += path.probability
        waiting.extend(path.branches)
    return dict(law)


class _Path:
    """Replays given choices, then takes the first possible choice at every new fork and notes the others."""

    def __init__(self, choices: tuple[int, ...]):
        self.replayed = choices
        self.taken: tuple[int, ...] = ()
        self.branches: list[tuple[int, ...]] = []
        self.probability = Fraction(1)

    def pick(self, weights) -> int:
        if len(self.taken) < len(self.replayed):
            choice = self.replayed[len(self.taken)]
        else:
            choice, *others = [position for position, weight in enumerate(weights) if weight > 0]
            self.branches.extend((*self.taken, other) for other in others)
        self.taken = (*self.taken, choice)
        self.probability *= Fraction(weights[choice]) / Fraction(sum(weights))
        return choice
