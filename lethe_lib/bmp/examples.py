"""Small laws to enumerate: the worked examples of the theory chapter, standard samplers, and random rational laws.

An :class:`Instance` is a sampler's law with an output law and a second release on the same sample. The fixed instances
are those that a person can check by hand; the random ones make a statement about all laws falsifiable.
"""

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, cached_property
from itertools import combinations
from math import comb

import numpy as np

from lethe_lib.bmp.bounds import Bounds
from lethe_lib.bmp.channels import constant, flipped_bits, publish
from lethe_lib.bmp.exact import Law, NodeLaws, OutputLaw, exact_bounds, node_laws, nodes_of
from lethe_lib.errors import InputError
from lethe_lib.seeding import numpy_generator


def single(prior: Fraction, node: Hashable = 0) -> dict[frozenset, Fraction]:
    """One node, sampled with probability ``prior``."""
    return {frozenset({node}): Fraction(prior), frozenset(): 1 - Fraction(prior)}


def correlated_pair() -> dict[frozenset, Fraction]:
    """Two nodes that tend to be sampled together: both or neither with 2/5 each, one alone with 1/10 each."""
    together, alone = Fraction(2, 5), Fraction(1, 10)
    return {frozenset({0, 1}): together, frozenset(): together, frozenset({0}): alone, frozenset({1}): alone}


def independent(priors: Iterable[Fraction]) -> dict[frozenset, Fraction]:
    """Poisson sampling: node i is drawn with probability ``priors[i]``, independently of all others."""
    law = {frozenset(): Fraction(1)}
    for node, prior in enumerate(priors):
        inside = {sample | {node}: p * prior for sample, p in law.items()}
        law = {sample: p * (1 - Fraction(prior)) for sample, p in law.items()} | inside
    return {sample: p for sample, p in law.items() if p}


def fixed_size(nodes: int, size: int) -> dict[frozenset, Fraction]:
    """A uniform sample of exactly ``size`` out of ``nodes`` nodes."""
    if not 0 < size < nodes:
        raise InputError(f"the size of the sample must lie strictly between 0 and {nodes}, got {size}")
    return {frozenset(chosen): Fraction(1, comb(nodes, size)) for chosen in combinations(range(nodes), size)}


KITE_EDGES = ((0, 1), (0, 2), (1, 2), (2, 3), (3, 4))


def snowball_on_kite() -> dict[frozenset, Fraction]:
    """Snowball sampling of up to 3 nodes on the kite: uniform seed, one neighbour per popped node in random order."""
    thirtieths = {"01": 3, "012": 7, "02": 2, "023": 2, "12": 2, "123": 2, "23": 2, "234": 4, "34": 6}
    return {frozenset(map(int, sample)): Fraction(count, 30) for sample, count in thirtieths.items()}


@dataclass(frozen=True)
class Instance:
    """One case of enumeration.

    Args:
        name: for messages.
        law: law of the sample.
        channel: output law of a first release.
        second: law of a second release, from the sample and the first output.
    """

    name: str
    law: dict[frozenset, Fraction]
    channel: OutputLaw
    second: Callable[[frozenset, Hashable], Law]

    @cached_property
    def bounds(self) -> Bounds:
        """Exact bounds of the first release."""
        return exact_bounds(self.law, self.channel)

    @cached_property
    def laws(self) -> list[NodeLaws]:
        """The output laws of every node whose prior is neither 0 nor 1, in the order of ``bounds``."""
        return [node_laws(self.law, self.channel, node) for node in self.bounds.nodes]


def noisy_parity(sample: frozenset, first_output: Hashable) -> Law:
    """A second release that depends on the whole sample and on the first output: the parity of the size, with noise."""
    flip = Fraction(1, 4) if len(str(first_output)) % 2 else Fraction(1, 3)
    odd = len(sample) % 2
    return {odd: 1 - flip, 1 - odd: flip}


def exclusive_or() -> Instance:
    """Two independent fair memberships; the first release is their exclusive or, the second the bit of node 1.

    Each release alone says nothing about node 0, and both together reveal it.
    """
    half = Fraction(1, 2)
    second = publish(lambda sample: 1 in sample)
    return Instance(
        "exclusive or",
        independent([half, half]),
        publish(lambda sample: (0 in sample) != (1 in sample)),
        lambda sample, _: second(sample),
    )


def fixed_instances(q: Fraction = Fraction(1, 4)) -> tuple[Instance, ...]:
    """The worked examples, each publishing all membership bits with flip probability ``q``, and the special cases."""
    laws = {
        "one node, prior 1/5": single(Fraction(1, 5)),
        "one node, prior 4/5": single(Fraction(4, 5)),
        "correlated pair": correlated_pair(),
        "independent pair": independent([Fraction(1, 2)] * 2),
        "independent, unequal priors": independent([Fraction(1, 5), Fraction(2, 3), Fraction(1, 2)]),
        "2 of 4 nodes": fixed_size(4, 2),
        "snowball on the kite": snowball_on_kite(),
    }
    flipped = [Instance(name, law, flipped_bits(nodes_of(law), q), noisy_parity) for name, law in laws.items()]
    silent = Instance("snowball on the kite, nothing published", snowball_on_kite(), constant, noisy_parity)
    bare = Instance("correlated pair, size published", correlated_pair(), publish(len), noisy_parity)
    return (*flipped, silent, bare, exclusive_or())


def random_instance(generator: np.random.Generator, name: str = "random") -> Instance:
    """A random rational law over two or three nodes and a random channel with two to four outputs.

    Every node has a prior strictly between 0 and 1. One channel in four has impossible outputs, so that infinite
    parameters occur.
    """
    nodes, outputs = int(generator.integers(2, 4)), int(generator.integers(2, 5))
    samples = [frozenset(c) for size in range(nodes + 1) for c in combinations(range(nodes), size)]
    while True:
        weights = [int(weight) for weight in generator.integers(0, 6, len(samples))]
        law = {sample: Fraction(w, max(sum(weights), 1)) for sample, w in zip(samples, weights) if w}
        if all(0 < sum(p for sample, p in law.items() if node in sample) < 1 for node in range(nodes)):
            break
    smallest = 0 if generator.random() < 0.25 else 1
    table = {}
    for sample in samples:
        weights = [int(weight) for weight in generator.integers(smallest, 8, outputs)]
        weights[0] += not any(weights)
        table[sample] = {output: Fraction(w, sum(weights)) for output, w in enumerate(weights) if w}
    return Instance(name, law, table, noisy_parity)


@cache
def instances(count: int = 200, seed: int = 0) -> tuple[Instance, ...]:
    """The fixed instances and ``count`` random ones, the same for the same seed."""
    generator = numpy_generator(seed, "bmp", "instances")
    return (*fixed_instances(), *(random_instance(generator, f"random law {k}") for k in range(count)))
