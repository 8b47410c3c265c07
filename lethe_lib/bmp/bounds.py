"""Privacy parameters of each node from the bounds of its likelihood ratio, in both forms of the definition.

Reference: S. Yildirim, M. Khosla, "Bayesian Membership Privacy for Graph Neural Networks", arXiv:2606.04069.

A sampler draws the training nodes S, training gives an output W, and M = 1 says that a node is in S. With the prior
odds o = Pr(M=1)/Pr(M=0) and the likelihood ratio Lambda(w) = p(w|M=1)/p(w|M=0) the posterior odds are o Lambda(w).

    L, U      = infimum and supremum of Lambda over the outputs
    ratio     : e^-eps_left <= Lambda <= e^eps_right          eps_left = -log L,          eps_right = log U
    odds      : e^-eps_left <= o Lambda <= e^eps_right        eps_left = -log L - log o,  eps_right = log U + log o
    BMP-R / BMP-L keep eps_right / eps_left alone;            MP = max of the two parameters in ratio form

The forms differ by the log prior odds and nothing else, so one pair (L, U) per node serves both.
"""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import NamedTuple

import numpy as np
import pandas as pd

from lethe_lib.errors import InputError

FORMS = ("ratio", "odds")
ROUNDING = 1e-12  # parameters this little beyond a prior bound are rounding, not a violation


class Parameters(NamedTuple):
    """Privacy parameters: ``left`` limits what is learnt about absence, ``right`` what is learnt about membership."""

    left: np.ndarray
    right: np.ndarray


class ExactNode(NamedTuple):
    """One node in rational arithmetic: prior, bounds of the likelihood ratio, and why a bound is infinite."""

    node: Hashable
    prior: Fraction
    lower: Fraction
    upper: Fraction | float
    reason: str

    @property
    def prior_odds(self) -> Fraction:
        return self.prior / (1 - self.prior)

    def interval(self, form: str) -> tuple[Fraction, Fraction | float]:
        """(e^-eps_left, e^eps_right) as exact numbers, in one form."""
        scale = self.prior_odds if check_form(form) == "odds" else 1
        return self.lower * scale, self.upper * scale


def check_form(form: str) -> str:
    """``form`` itself, or an InputError that lists the two forms."""
    if form not in FORMS:
        raise InputError(f"unknown form {form!r}: choose 'ratio' (likelihood ratio) or 'odds' (posterior odds)")
    return form


def log_prior_odds(prior) -> np.ndarray:
    """log(prior / (1 - prior)), for priors strictly between 0 and 1.

    Raises:
        InputError: a prior of 0 or 1. Such a node has only one conditional law, so nothing can be inferred from the
            output; leave it out and report it apart.
    """
    prior = np.asarray(prior, dtype=np.float64)
    bad = ~((prior > 0) & (prior < 1))
    if bad.any():
        raise InputError(
            f"a prior must lie strictly between 0 and 1, got {prior[bad].flat[0]:g} "
            f"({int(bad.sum())} of {prior.size}): leave degenerate nodes out and report them apart"
        )
    return np.log(prior) - np.log1p(-prior)


def prior_bounds(prior) -> Parameters:
    """The smallest parameters in odds form that any training can reach, node by node.

    The likelihood ratio averages to 1 over the outputs of non-members, so L <= 1 <= U. Hence eps_right >= log o and
    eps_left >= -log o, with equality when the output does not depend on the node's membership. For all nodes at once
    take the maximum of each side. In ratio form both bounds are 0.
    """
    log_odds = log_prior_odds(prior)
    return Parameters(-log_odds, log_odds)


def to_ratio(eps_left, eps_right, prior=None, form: str = "ratio") -> Parameters:
    """Parameters in ratio form, checked against the prior bounds.

    Args:
        eps_left, eps_right: parameters in ``form``, any shapes that broadcast; infinity means no bound on that side.
        prior: prior membership probability, needed for the odds form.
        form: the form of the given parameters.

    Returns:
        Parameters of at least 0: the excess over what sampling alone leaks.

    Raises:
        InputError: a parameter below its prior bound (no algorithm has it), or odds form without a prior.
    """
    left, right = np.asarray(eps_left, dtype=np.float64), np.asarray(eps_right, dtype=np.float64)
    shift = np.float64(0.0)
    if check_form(form) == "odds":
        if prior is None:
            raise InputError("the odds form needs the prior of each node: give prior=...")
        shift = log_prior_odds(prior)
    excess = Parameters(left + shift, right - shift)
    _check_prior_bound("left", excess.left, -shift, "-log(prior odds)" if form == "odds" else "of the ratio form")
    _check_prior_bound("right", excess.right, shift, "log(prior odds)" if form == "odds" else "of the ratio form")
    return Parameters(np.maximum(excess.left, 0.0), np.maximum(excess.right, 0.0))


def check_possible(eps_left, eps_right) -> tuple[np.ndarray, np.ndarray]:
    """Both parameters as arrays, whichever their form.

    Raises:
        InputError: their sum is below 0, which no algorithm has at any prior.
    """
    left, right = np.asarray(eps_left, dtype=np.float64), np.asarray(eps_right, dtype=np.float64)
    total = left + right
    if not np.all(total >= -ROUNDING):
        raise InputError(
            f"eps_left + eps_right = {np.nanmin(total):g} is below 0: no algorithm has such parameters at any prior; raise one"
        )
    return left, right


def _check_prior_bound(side: str, excess: np.ndarray, bound: np.ndarray, name: str) -> None:
    bad = ~(excess >= -ROUNDING)
    if bad.any():
        bound = np.broadcast_to(bound, excess.shape)[bad].flat[0] + 0.0  # + 0.0 turns -0 into 0
        raise InputError(
            f"eps_{side} = {excess[bad].flat[0] + bound:g} is below the prior bound {name} = {bound:g}: no algorithm "
            f"has it and the error region is empty; raise eps_{side} to {bound:g} or more"
        )


def from_ratio(excess_left, excess_right, prior=None, form: str = "ratio") -> Parameters:
    """The inverse of :func:`to_ratio`: from ratio form to ``form``."""
    left, right = np.asarray(excess_left, dtype=np.float64), np.asarray(excess_right, dtype=np.float64)
    if check_form(form) == "ratio":
        return Parameters(left, right)
    if prior is None:
        raise InputError("the odds form needs the prior of each node: give prior=...")
    shift = log_prior_odds(prior)
    return Parameters(left - shift, right + shift)


@dataclass(frozen=True)
class Bounds:
    """Bounds of the likelihood ratio of every node, from which all parameters follow.

    Args:
        lower: L per node, in [0, 1], shape (n,). 0 means that some output proves absence.
        upper: U per node, in [1, inf], shape (n,). Infinity means that some output proves membership.
        prior: prior membership probability per node, strictly between 0 and 1, shape (n,).
        nodes: names of the nodes, in the order of the arrays.
        exact: the same in rational arithmetic, when the bounds come from enumeration.
        degenerate: nodes with prior 0 or 1, kept out of the arrays, each with the reason.
    """

    lower: np.ndarray
    upper: np.ndarray
    prior: np.ndarray
    nodes: tuple[Hashable, ...] = ()
    exact: tuple[ExactNode, ...] = ()
    degenerate: Mapping[Hashable, str] = field(default_factory=dict)

    def __post_init__(self):
        for name in ("lower", "upper", "prior"):
            object.__setattr__(self, name, np.atleast_1d(np.asarray(getattr(self, name), dtype=np.float64)))
        if not self.nodes:
            object.__setattr__(self, "nodes", tuple(range(len(self.prior))))
        if not self.lower.shape == self.upper.shape == self.prior.shape == (len(self.nodes),):
            raise InputError("lower, upper, prior and nodes must have one entry per node")
        log_prior_odds(self.prior)
        if not (np.all(self.lower >= 0) and np.all(self.lower <= 1 + ROUNDING) and np.all(self.upper >= 1 - ROUNDING)):
            raise InputError("a likelihood ratio averages to 1, so 0 <= lower <= 1 <= upper must hold for every node")

    @classmethod
    def from_parameters(cls, eps_left, eps_right, prior, form: str, nodes=()) -> "Bounds":
        """The bounds that given parameters promise (the inverse of :meth:`parameters`)."""
        excess = to_ratio(eps_left, eps_right, prior, form)
        arrays = np.broadcast_arrays(np.exp(-excess.left), np.exp(excess.right), np.asarray(prior, dtype=np.float64))
        return cls(*arrays, nodes=tuple(nodes))

    @property
    def log_prior_odds(self) -> np.ndarray:
        """log o per node: what the odds form adds to ``eps_right`` and takes from ``eps_left``."""
        return log_prior_odds(self.prior)

    def parameters(self, form: str) -> Parameters:
        """The smallest (eps_left, eps_right) of each node, shape (n,) each, infinite where an output is a proof."""
        with np.errstate(divide="ignore"):
            return from_ratio(-np.log(self.lower) + 0.0, np.log(self.upper), self.prior, form)

    def bmp_left(self, form: str) -> np.ndarray:
        """The one-sided parameter BMP-L of each node: how surely an output can reveal absence."""
        return self.parameters(form).left

    def bmp_right(self, form: str) -> np.ndarray:
        """The one-sided parameter BMP-R of each node: how surely an output can reveal membership."""
        return self.parameters(form).right

    @property
    def mp(self) -> np.ndarray:
        """The membership-privacy parameter of each node: the larger of both sides in ratio form."""
        return np.maximum(*self.parameters("ratio"))

    def worst(self, form: str) -> Parameters:
        """The parameters of the whole algorithm: the maximum of each side over the nodes (not always one node)."""
        left, right = self.parameters(form)
        return Parameters(left.max(), right.max())

    def frame(self) -> pd.DataFrame:
        """One row per node: prior, L, U, both parameters in both forms, and MP."""
        columns = {"prior": self.prior, "L": self.lower, "U": self.upper}
        for form in FORMS:
            left, right = self.parameters(form)
            columns |= {f"eps_left ({form})": left, f"eps_right ({form})": right}
        return pd.DataFrame(columns | {"MP": self.mp}, index=pd.Index(self.nodes, name="node"))
