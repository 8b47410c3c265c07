"""One test per stated property of BMP: from one law and one form to a truth value per case, in exact arithmetic.

:mod:`lethe_lib.bmp.properties` says in words what each of these functions tests and collects them in a table. All take
the form and an instance; ``low, high`` are the tight (e^-eps_left, e^eps_right) of a node in that form. Most properties
are implications from the tight parameters to something else, so one case refutes a form that does not imply it.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from fractions import Fraction
from math import inf

from lethe_lib.bmp.bayes import best_vertex, errors_of
from lethe_lib.bmp.bounds import ExactNode
from lethe_lib.bmp.channels import chain, constant, post_process
from lethe_lib.bmp.composition import TARGETS, conditional_ratio, exact_rounds
from lethe_lib.bmp.exact import NodeLaws, exact_bounds, exact_differential
from lethe_lib.bmp.examples import Instance, independent

Cases = Iterator[bool]


def _nodes(instance: Instance) -> Iterator[tuple[ExactNode, NodeLaws]]:
    return zip(instance.bounds.exact, instance.laws)


def _inside(values: Iterable, low, high) -> bool:
    return all(low <= value <= high for value in values)


def _is_proper(node: ExactNode) -> bool:
    """Whether both parameters are finite and the output says something, so that the region has an interior."""
    return 0 < node.lower < 1 < node.upper < inf


def prior_bound(form: str, instance: Instance) -> Cases:
    for node in instance.bounds.exact:
        low, high = node.interval(form)
        yield low <= node.prior_odds <= high


def perfect_training(form: str, instance: Instance) -> Cases:
    for node in exact_bounds(instance.law, constant).exact:
        if node.prior_odds != 1:
            low, high = node.interval(form)
            yield high > 1 or low < 1


def region_depends_on_prior(form: str, instance: Instance, joint: bool = False) -> Cases:
    for node in filter(_is_proper, instance.bounds.exact):
        low, high = node.interval(form)
        corners = set()
        for weight in (Fraction(1, 3), Fraction(2, 3)):
            # The same parameters at two priors that both respect the prior bounds low < o < high.
            odds = low + weight * (high - low)
            scale = odds if form == "odds" else 1
            prior = odds / (1 + odds)
            alpha, beta = best_vertex(low / scale, high / scale)
            corners.add(((1 - prior) * alpha, prior * beta) if joint else (alpha, beta))
        yield len(corners) == 2


def joint_region_depends_on_prior(form: str, instance: Instance) -> Cases:
    return region_depends_on_prior(form, instance, joint=True)


def posterior(form: str, instance: Instance) -> Cases:
    for node, laws in _nodes(instance):
        low, high = node.interval(form)
        yield _inside((ratio * node.prior_odds for ratio in laws.ratios().values()), low, high)


def post_processing(form: str, instance: Instance) -> Cases:
    maps = (
        lambda w: {_number(w) % 2: Fraction(1)},
        lambda w: {_number(w) % 3: Fraction(2, 3), "noise": Fraction(1, 3)},
        constant,
    )
    for function in maps:
        processed = exact_bounds(instance.law, post_process(instance.channel, function))
        for before, after in zip(instance.bounds.exact, processed.exact):
            yield _inside(after.interval(form), *before.interval(form))


def _number(output) -> int:
    """A whole number that depends on an output in the same way on every machine."""
    return sum(map(ord, str(output)))


def bmp_then_mp(form: str, instance: Instance, given_first: bool = True) -> Cases:
    both = {sample: chain(instance.channel, instance.second)(sample) for sample in instance.law}
    second = exact_bounds(instance.law, post_process(both, lambda pair: {pair[1]: Fraction(1)}))
    for first, alone, joint in zip(instance.bounds.exact, second.exact, exact_bounds(instance.law, both).exact):
        low, high = first.interval(form)
        mp_low, mp_high = alone.interval("ratio")
        if given_first:
            mp_low, mp_high = conditional_ratio(instance.law, instance.channel, instance.second, first.node)
        if 0 not in (low, mp_low) and inf not in (high, mp_high):
            yield _inside(joint.interval(form), low * mp_low, high * mp_high)


def bmp_then_marginal_mp(form: str, instance: Instance) -> Cases:
    return bmp_then_mp(form, instance, given_first=False)


def two_releases_add(form: str, instance: Instance) -> Cases:
    for node, laws in _nodes(instance):
        if inf > node.upper and node.lower > 0:
            low, high = node.interval(form)
            scale = node.prior_odds if form == "odds" else 1
            # Both releases see the node's bit only, so they are independent given it.
            yield _inside(
                (scale * a * b for a in laws.ratios().values() for b in laws.ratios().values()), low**2, high**2
            )


def _two_rounds(form: str, instance: Instance, target: str) -> Iterator[tuple]:
    """Node, exact interval of two rounds, and what divides odds in this form.

    Only laws of at most 8 outputs are taken, since all pairs of outputs are enumerated.
    """
    for node, laws in _nodes(instance):
        if len(laws.ratios()) <= 8:
            prior = TARGETS[target].odds([node.prior_odds] * 2)
            odds = exact_rounds((laws, laws), target).values()
            scale = prior if form == "ratio" else 1
            yield node, (min(odds) / scale, max(odds) / scale), scale


def rounds(form: str, instance: Instance) -> Cases:
    for name, target in TARGETS.items():
        for node, exact, scale in _two_rounds(form, instance, name):
            yield exact == tuple(target.odds([end, end]) / scale for end in node.interval("odds"))


def rounds_add(target: str) -> Callable[[str, Instance], Cases]:
    def cases(form: str, instance: Instance) -> Cases:
        for node, exact, _ in _two_rounds(form, instance, target):
            low, high = node.interval(form)
            yield _inside(exact, low**2, high**2)

    return cases


def _deterministic_tests(laws: NodeLaws) -> list[tuple[Fraction, Fraction]]:
    """Errors of every deterministic test, or of the tests at a threshold and on one output when there are many."""
    ratios = laws.ratios()
    if len(ratios) <= 6:
        outputs = sorted(ratios, key=str)
        chosen = [{w for k, w in enumerate(outputs) if mask >> k & 1} for mask in range(2 ** len(outputs))]
    else:
        chosen = [{w for w in ratios if ratios[w] > t} for t in set(ratios.values())] + [{w} for w in ratios]
        chosen += [set(ratios) - members for members in chosen]
    return [errors_of(laws, {w: w in members for w in ratios}) for members in chosen]


def one_to_one(form: str, instance: Instance) -> Cases:
    for node, laws in _nodes(instance):
        if not _is_proper(node):
            continue
        low, high = node.interval(form)
        # Weights (prior, 1 - prior) give the odds form of the four inequalities, (1, 1) the ratio form.
        weight, rest = (node.prior, 1 - node.prior) if form == "odds" else (1, 1)
        sides = [
            (weight * top, rest * bottom)
            for alpha, beta in _deterministic_tests(laws)
            for top, bottom in ((1 - beta, alpha), (beta, 1 - alpha))
            if (top, bottom) != (0, 0)
        ]
        inside_region = all(low * bottom <= top <= high * bottom for top, bottom in sides)
        smallest = (min(top / bottom for top, bottom in sides), max(top / bottom for top, bottom in sides))
        alpha, beta = best_vertex(node.lower, node.upper)
        from_corner = (weight * beta / (rest * (1 - alpha)), weight * (1 - beta) / (rest * alpha))
        yield inside_region and smallest == from_corner == (low, high)


def differential_implies_marginal(form: str, instance: Instance) -> Cases:
    for node, differential in zip(instance.bounds.exact, exact_differential(instance.law, instance.channel)):
        yield _inside(node.interval(form), *differential.interval(form))


def differential_implies_marginal_independent(form: str, instance: Instance) -> Cases:
    law = independent([node.prior for node in instance.bounds.exact])
    return differential_implies_marginal(form, replace(instance, law=law))


def mp_is_special_case(form: str, instance: Instance) -> Cases:
    for node in instance.bounds.exact:
        if 0 < node.lower and node.upper < inf:
            low, high = node.interval(form)
            scale = node.prior_odds if form == "odds" else 1
            tight = max(node.upper, 1 / node.lower)
            for factor in (tight, (1 + tight) / 2, 2 * tight):  # MP(log factor) holds for the first and the last
                is_mp = node.upper <= factor and node.lower >= 1 / factor
                yield is_mp == (high <= factor * scale and low >= scale / factor)


def right_below_mp(form: str, instance: Instance) -> Cases:
    for node in instance.bounds.exact:
        if node.prior < Fraction(1, 2) and 0 < node.lower and node.upper < inf:
            yield node.interval(form)[1] < max(node.upper, 1 / node.lower)


def right_at_most_mp(form: str, instance: Instance) -> Cases:
    for node in instance.bounds.exact:
        if node.prior < Fraction(1, 2):
            yield node.interval(form)[1] <= (max(node.upper, 1 / node.lower) if node.lower else inf)
