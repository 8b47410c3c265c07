"""Composition: what several releases reveal together, on one sample or over rounds with a fresh sample each.

Reference: S. Yildirim, M. Khosla, arXiv:2606.04069 (BMP with MP, BMP with BMP); conditions and formulas derived here.

One sample:
    BMP, then MP *given the first output*  : parameters add, in both forms
    two releases independent given M       : odds = o1 o2 / o, so odds-form parameters add with the prior counted once
K rounds, each with its own sample and training, o_k = posterior odds of round k:
    some round       odds = prod(1 + o_k) - 1
    all rounds       odds = 1 / (prod(1 + 1/o_k) - 1)
    all against none odds = prod o_k
Each is increasing in every o_k, so inserting e^eps_right and e^-eps_left gives the parameters of the composition.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from fractions import Fraction
from itertools import product
from math import inf, prod
from typing import NamedTuple

import numpy as np

from lethe_lib.bmp.bounds import Parameters, check_form, check_possible, from_ratio, log_prior_odds, to_ratio
from lethe_lib.bmp.channels import chain
from lethe_lib.bmp.exact import Law, NodeLaws, OutputLaw, node_laws, quotient
from lethe_lib.errors import InputError
from lethe_lib.registry import Registry


def bmp_then_mp(eps_left, eps_right, mp_left, mp_right) -> Parameters:
    """BMP of a first output, then a second output on the same sample that is MP given every first output: sums.

    The second bound must hold conditionally: e^-mp_left <= p(w2|M=1,w1)/p(w2|M=0,w1) <= e^mp_right for all w1, w2
    (:func:`conditional_ratio` computes it). MP of the second output alone is not enough: the exclusive-or example.
    The result is in the form of ``eps_left`` and ``eps_right``.
    """
    left, right = check_possible(eps_left, eps_right)
    mp = to_ratio(mp_left, mp_right)
    return Parameters(left + mp.left, right + mp.right)


def independent_releases(eps_left, eps_right, prior=None, form: str = "ratio") -> Parameters:
    """Several releases of one sample that are independent given the node's membership.

    Args:
        eps_left, eps_right: one entry per release along the first axis, in ``form``.
        prior: prior of the node, needed for the odds form, where it must be counted once and not once per release.
    """
    excess = to_ratio(eps_left, eps_right, prior, form)
    return from_ratio(excess.left.sum(axis=0), excess.right.sum(axis=0), prior, form)


def conditional_ratio(
    sample_law: Mapping | Iterable,
    first: OutputLaw,
    second: Callable[[frozenset, Hashable], Law],
    node: Hashable,
) -> tuple[Fraction, Fraction | float]:
    """Smallest and largest p(w2|M=1,w1)/p(w2|M=0,w1) over all w1 and w2: the exact condition of BMP-then-MP.

    Args:
        sample_law: law of the one sample.
        first: output law of the first release.
        second: function (sample, first output) -> law of the second output.
        node: the node.

    A first output that proves membership or absence leaves one conditional law only and gives no condition.
    """
    joint = node_laws(sample_law, chain(first, second), node)
    marginal = node_laws(sample_law, first, node)
    ratios = []
    for w1, w2 in joint.outside | joint.inside:
        if w1 in marginal.inside and w1 in marginal.outside:
            inside = joint.inside.get((w1, w2), Fraction(0)) / marginal.inside[w1]
            outside = joint.outside.get((w1, w2), Fraction(0)) / marginal.outside[w1]
            ratios.append(quotient(inside, outside))
    return min(ratios, default=Fraction(1)), max(ratios, default=Fraction(1))


class Target(NamedTuple):
    """What an adversary asks about the K memberships of one node, one per round.

    ``odds`` maps the odds of each round to the odds of "yes" in rational arithmetic, ``log_odds`` does the same for
    float logarithms of shape (K, ...), and ``answer`` says whether a pattern of memberships is a "yes" (True), a "no"
    (False) or excluded (None).
    """

    odds: Callable[[Sequence], Fraction | float]
    log_odds: Callable[[np.ndarray], np.ndarray]
    answer: Callable[[tuple[bool, ...]], bool | None]


def inverse(value: Fraction | float) -> Fraction | float:
    """1 / value, with 1/0 infinite and 1/infinite exactly 0."""
    return Fraction(0) if value == inf else quotient(Fraction(1), value)


def _some_odds(odds: Sequence) -> Fraction | float:
    return prod(1 + o for o in odds) - 1


def _some_log_odds(log_odds: np.ndarray) -> np.ndarray:
    total = np.logaddexp(0.0, log_odds).sum(axis=0)
    with np.errstate(divide="ignore"):
        return total + np.log(-np.expm1(-total))  # log(e^total - 1) without overflow


# Membership in all rounds is the mirror of absence in some round, hence the inverted odds.
TARGETS = Registry(
    "target",
    {
        "some round": Target(_some_odds, _some_log_odds, any),
        "all rounds": Target(
            lambda odds: inverse(_some_odds([inverse(o) for o in odds])), lambda x: -_some_log_odds(-x), all
        ),
        "all against none": Target(
            prod, lambda x: x.sum(axis=0), lambda members: all(members) if len(set(members)) == 1 else None
        ),
    },
)


def compose_rounds(eps_left, eps_right, target: str, form: str = "odds", priors=None) -> Parameters:
    """The parameters of K independent sample-and-train rounds together; attained by the extreme outputs.

    Args:
        eps_left, eps_right: parameters of each round in ``form``, shape (K, ...).
        target: what is inferred: membership in ``"some round"`` (against none), in ``"all rounds"`` (against not all),
            or in ``"all against none"`` (mixed patterns excluded).
        form: form of the given and of the returned parameters.
        priors: prior of the node in each round, shape (K, ...); needed for the ratio form, checked in odds form.

    Returns:
        (eps_left, eps_right), shape (...). In ratio form they are at most the sums over the rounds, for every target.

    Example:
        >>> left, right = compose_rounds([1.0, 2.0], [1.0, 2.0], "all against none")
        >>> float(left), float(right)
        (3.0, 3.0)
    """
    combine = TARGETS[target].log_odds
    left, right = np.asarray(eps_left, dtype=np.float64), np.asarray(eps_right, dtype=np.float64)
    if check_form(form) == "ratio":
        if priors is None:
            raise InputError("the ratio form of a composition depends on the prior of every round: give priors=...")
        left, right = from_ratio(*to_ratio(left, right), priors, "odds")
    elif priors is not None:
        to_ratio(left, right, priors, "odds")
    else:
        check_possible(left, right)
    left, right = -combine(-left), combine(right)
    if form == "odds":
        return Parameters(left, right)
    log_odds = log_prior_odds(priors)
    prior_of_target = combine(np.broadcast_to(log_odds, np.broadcast_shapes(log_odds.shape, np.shape(eps_left))))
    return Parameters(left + prior_of_target, right - prior_of_target)


def exact_rounds(rounds: Sequence[NodeLaws], target: str) -> dict[tuple, Fraction | float]:
    """Posterior odds of a target for every tuple of outputs, by enumeration of all memberships over the rounds.

    An independent check of the closed formulas: nothing here uses them.
    """
    answer = TARGETS[target].answer
    odds = {}
    for outputs in product(*(laws.outside | laws.inside for laws in rounds)):
        mass = {True: Fraction(0), False: Fraction(0), None: Fraction(0)}
        for members in product((False, True), repeat=len(rounds)):
            mass[answer(members)] += prod(
                laws.prior * laws.inside.get(w, Fraction(0))
                if member
                else (1 - laws.prior) * laws.outside.get(w, Fraction(0))
                for laws, member, w in zip(rounds, members, outputs)
            )
        if mass[True] or mass[False]:
            odds[outputs] = quotient(mass[True], mass[False])
    return odds
