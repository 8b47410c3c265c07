"""Exact bounds by enumeration: every sample, every output, in rational arithmetic.

Reference: S. Yildirim, M. Khosla, arXiv:2606.04069 (BMP, MP, MDP, BMDP); the enumeration is ours.

    for each node i:
        p(w, M_i=1) = sum over samples S that hold i of Pr(S) p(w|S);   likewise p(w, M_i=0)
        Lambda(w)   = p(w|M_i=1) / p(w|M_i=0);                          L, U = min, max over w       (BMP, MP)
        for each context m = memberships of all other nodes:
            the same with S in {m, m + i} only;                         min, max over m and w        (MDP, BMDP)

Made for laws small enough to list. Infinite bounds are returned as infinite, with the output that proves membership
or absence; nodes whose prior is 0 or 1 are set apart.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import inf
from numbers import Rational
from typing import NamedTuple

from lethe_lib.bmp.bounds import Bounds, ExactNode, check_form
from lethe_lib.errors import InputError

Law = Mapping[Hashable, Fraction]
OutputLaw = Callable[[frozenset], Law] | Mapping[frozenset, Law]


def check_law(law: Mapping | Iterable, what: str = "the law") -> dict[Hashable, Fraction]:
    """A finite law with its impossible outcomes dropped and repeated outcomes added up.

    Args:
        law: outcome -> probability, or pairs (outcome, probability). Probabilities are fractions or integers.
        what: name for messages.

    Raises:
        InputError: a float (not exact), a negative probability, or a sum other than 1.
    """
    pairs = law.items() if isinstance(law, Mapping) else law
    checked: dict[Hashable, Fraction] = {}
    for outcome, probability in pairs:
        if not isinstance(probability, Rational):
            raise InputError(f"{what}: the probability of {outcome!r} is {probability!r}; give a Fraction, not a float")
        if probability < 0:
            raise InputError(f"{what}: the probability of {outcome!r} is negative ({probability})")
        if probability:
            checked[outcome] = checked.get(outcome, Fraction(0)) + Fraction(probability)
    total = sum(checked.values())
    if total != 1:
        raise InputError(f"{what}: the probabilities sum to {total}, not to 1")
    return checked


def check_sample_law(sample_law: Mapping | Iterable) -> dict[frozenset, Fraction]:
    """A sampler's law as frozenset -> Fraction, checked by :func:`check_law`."""
    pairs = sample_law.items() if isinstance(sample_law, Mapping) else sample_law
    sets = []
    for sample, probability in pairs:
        if not isinstance(sample, frozenset | set | tuple | list):
            raise InputError(f"the sample law: {sample!r} is not a set of nodes; write frozenset({{...}})")
        sets.append((frozenset(sample), probability))
    return check_law(sets, "the sample law")


def output_law_of(output_law: OutputLaw, sample: frozenset) -> dict[Hashable, Fraction]:
    """The checked law of the output when ``sample`` is the training set."""
    if isinstance(output_law, Mapping):
        if sample not in output_law:
            raise InputError(f"the output law has no entry for the sample {sorted(sample)}")
        return check_law(output_law[sample], f"the output law of sample {sorted(sample)}")
    return check_law(output_law(sample), f"the output law of sample {sorted(sample)}")


def nodes_of(sample_law: Mapping, nodes: Iterable | None = None) -> tuple[Hashable, ...]:
    """The nodes in order: those given, which must cover every sample, or all that occur, sorted."""
    occurring = set().union(*sample_law)
    if nodes is None:
        return tuple(sorted(occurring))
    nodes = tuple(nodes)
    if missing := occurring - set(nodes):
        raise InputError(f"the sample law draws nodes that are not listed: {sorted(missing)}")
    return nodes


class NodeLaws(NamedTuple):
    """The test between membership and absence of one node: its prior and the two laws of the output."""

    node: Hashable
    prior: Fraction
    inside: dict[Hashable, Fraction]
    outside: dict[Hashable, Fraction]

    @property
    def prior_odds(self) -> Fraction:
        return self.prior / (1 - self.prior)

    def ratios(self) -> dict[Hashable, Fraction | float]:
        """The likelihood ratio of every output that can occur, infinite where absence is impossible."""
        outputs = self.outside | self.inside
        return {w: quotient(self.inside.get(w, Fraction(0)), self.outside.get(w, Fraction(0))) for w in outputs}


def quotient(top: Fraction, bottom: Fraction) -> Fraction | float:
    """top / bottom, infinite for a zero denominator."""
    return top / bottom if bottom else inf


def node_laws(sample_law: Mapping | Iterable, output_law: OutputLaw, node: Hashable) -> NodeLaws:
    """The prior of one node and the exact laws of the output with and without it.

    Raises:
        InputError: the node's prior is 0 or 1, so that one of the two laws does not exist.
    """
    law = check_sample_law(sample_law)
    prior = _prior(law, node)
    if prior in (0, 1):
        raise InputError(f"node {node!r} has prior {prior}: it is {'always' if prior else 'never'} sampled")
    return _node_laws(law, {sample: output_law_of(output_law, sample) for sample in law}, node, prior)


def _prior(law: dict[frozenset, Fraction], node: Hashable) -> Fraction:
    return sum((p for sample, p in law.items() if node in sample), Fraction(0))


def _node_laws(law, channel, node, prior) -> NodeLaws:
    laws: dict[bool, dict[Hashable, Fraction]] = {True: {}, False: {}}
    for sample, p in law.items():
        member = node in sample
        scaled = p / (prior if member else 1 - prior)
        for output, q in channel[sample].items():
            laws[member][output] = laws[member].get(output, Fraction(0)) + scaled * q
    return NodeLaws(node, prior, laws[True], laws[False])


def bounds_of(laws: NodeLaws) -> ExactNode:
    """Smallest and largest likelihood ratio of one node, with the reason where a parameter is infinite."""
    ratios = laws.ratios()
    lower, upper = min(ratios.values()), max(ratios.values())
    reasons = []
    if upper == inf:
        reasons.append(f"output {max(ratios, key=ratios.get)!r} proves membership")
    if lower == 0:
        reasons.append(f"output {min(ratios, key=ratios.get)!r} proves absence")
    return ExactNode(laws.node, laws.prior, lower, upper, "; ".join(reasons))


def exact_bounds(sample_law: Mapping | Iterable, output_law: OutputLaw, nodes: Iterable | None = None) -> Bounds:
    """Bounds of the likelihood ratio of every node, by full enumeration.

    Args:
        sample_law: law of the training set, frozenset of nodes -> Fraction (or pairs); must sum to 1.
        output_law: what training publishes: a function (or mapping) from a sample to a law output -> Fraction.
        nodes: all nodes in order; by default those that occur in some sample.

    Returns:
        Bounds with ``exact`` filled in; ``parameters("ratio")`` and ``parameters("odds")`` give both forms. Nodes that
        are always or never sampled are in ``degenerate``.

    Example:
        >>> half = Fraction(1, 2)
        >>> law = {frozenset({0}): half, frozenset(): half}
        >>> exact_bounds(law, lambda sample: {len(sample): Fraction(3, 4), 1 - len(sample): Fraction(1, 4)}).upper
        array([3.])
    """
    law = check_sample_law(sample_law)
    channel = {sample: output_law_of(output_law, sample) for sample in law}
    exact, degenerate = [], {}
    for node in nodes_of(law, nodes):
        prior = _prior(law, node)
        if prior in (0, 1):
            degenerate[node] = f"prior {prior}: {'always' if prior else 'never'} sampled"
        else:
            exact.append(bounds_of(_node_laws(law, channel, node, prior)))
    arrays = ([float(getattr(one, name)) for one in exact] for name in ("lower", "upper", "prior"))
    return Bounds(*arrays, nodes=tuple(one.node for one in exact), exact=tuple(exact), degenerate=degenerate)


@dataclass(frozen=True)
class DifferentialNode:
    """MDP and BMDP of one node: bounds over all contexts, a context being the memberships of all other nodes.

    Args:
        node: the node.
        ratio: smallest and largest likelihood ratio over open contexts (MDP), (1, 1) when there are none.
        odds: smallest and largest posterior odds over all contexts (BMDP), 0 or infinite where one decides the node.
        open_contexts: number of contexts that leave the membership open.
        decided_contexts: number of contexts that determine the membership.
        reason: why MDP is empty or BMDP infinite, or "".
    """

    node: Hashable
    ratio: tuple[Fraction, Fraction | float]
    odds: tuple[Fraction, Fraction | float]
    open_contexts: int
    decided_contexts: int
    reason: str

    def interval(self, form: str) -> tuple[Fraction, Fraction | float]:
        """(e^-eps_left, e^eps_right): MDP for ``ratio``, BMDP for ``odds``."""
        return self.odds if check_form(form) == "odds" else self.ratio


def exact_differential(
    sample_law: Mapping | Iterable, output_law: OutputLaw, nodes: Iterable | None = None
) -> tuple[DifferentialNode, ...]:
    """MDP and BMDP of every node, by full enumeration over the memberships of all other nodes.

    MDP is a condition only where both memberships are possible in a context; with no such context it is empty, and
    ``reason`` says so. BMDP counts every context: one that determines the node makes the posterior odds 0 or infinite.
    """
    law = check_sample_law(sample_law)
    channel = {sample: output_law_of(output_law, sample) for sample in law}
    return tuple(_differential(law, channel, node) for node in nodes_of(law, nodes))


def _differential(law, channel, node) -> DifferentialNode:
    ratios, odds, open_contexts, decided = [], [], 0, []
    for context in {sample - {node} for sample in law}:
        with_node, without = context | {node}, context
        if with_node not in law or without not in law:
            decided.append(inf if with_node in law else Fraction(0))
            continue
        open_contexts += 1
        pair = {with_node: law[with_node], without: law[without]}
        total = sum(pair.values())
        laws = _node_laws({sample: p / total for sample, p in pair.items()}, channel, node, law[with_node] / total)
        values = laws.ratios().values()
        ratios += values
        odds += [value * laws.prior_odds for value in values]
    reasons = [] if open_contexts else ["MDP is empty: every context determines the node"]
    if decided:
        reasons.append(f"BMDP is infinite: {len(decided)} contexts determine the node")
    return DifferentialNode(
        node,
        (min(ratios, default=Fraction(1)), max(ratios, default=Fraction(1))),
        (min(odds + decided), max(odds + decided)),
        open_contexts,
        len(decided),
        "; ".join(reasons),
    )
