"""Output laws to enumerate with: what training may publish about its sample, and ways to combine releases.

A channel is a function from a sample (frozenset of nodes) to a law output -> Fraction. All randomness of a channel is
independent of the sampler. Dwork and Roth, "The algorithmic foundations of differential privacy" (2014), section 3.2,
describe the flipped bits (randomised response).
"""

from collections.abc import Callable, Hashable, Iterable
from fractions import Fraction
from itertools import product

from lethe_lib.bmp.exact import Law, OutputLaw, output_law_of
from lethe_lib.errors import InputError


def flipped_bits(nodes: Iterable[Hashable], q: Fraction) -> Callable[[frozenset], Law]:
    """Publish every membership bit, each flipped with probability ``q`` on its own.

    Each bit alone is node-differentially private with parameter log((1-q)/q).

    Args:
        nodes: whose bits are published, in the order of the output tuple.
        q: flip probability, a fraction strictly between 0 and 1.
    """
    nodes, q = tuple(nodes), Fraction(q)
    if not 0 < q < 1:
        raise InputError(f"the flip probability must lie strictly between 0 and 1, got {q}")

    def channel(sample: frozenset) -> Law:
        law = {}
        for output in product((0, 1), repeat=len(nodes)):
            probability = Fraction(1)
            for node, bit in zip(nodes, output):
                probability *= 1 - q if bit == (node in sample) else q
            law[output] = probability
        return law

    return channel


def constant(sample: frozenset) -> Law:
    """Publish nothing: perfectly private training."""
    return {"nothing": Fraction(1)}


def publish(function: Callable[[frozenset], Hashable]) -> Callable[[frozenset], Law]:
    """Publish a deterministic function of the sample, without noise."""
    return lambda sample: {function(sample): Fraction(1)}


def chain(first: OutputLaw, second: Callable[[frozenset, Hashable], Law]) -> Callable[[frozenset], Law]:
    """Publish ``first`` and then ``second``, which sees the same sample and the first output."""

    def channel(sample: frozenset) -> Law:
        return {
            (w1, w2): p1 * p2
            for w1, p1 in output_law_of(first, sample).items()
            for w2, p2 in second(sample, w1).items()
            if p1 * p2
        }

    return channel


def post_process(channel: OutputLaw, function: Callable[[Hashable], Law]) -> Callable[[frozenset], Law]:
    """Replace every output by a draw from ``function(output)``, which does not see the sample."""

    def processed(sample: frozenset) -> Law:
        law: dict[Hashable, Fraction] = {}
        for output, p in output_law_of(channel, sample).items():
            for new, q in function(output).items():
                law[new] = law.get(new, Fraction(0)) + p * q
        return law

    return processed
