"""A delta variant of BMP: the bounds may fail with a small probability. Ours; no source states one.

odds :  Pr(M=1, W in E) <= e^eps_right Pr(M=0, W in E) + delta_right   for all events E
        Pr(M=0, W in E) <= e^eps_left  Pr(M=1, W in E) + delta_left
ratio:  the same with Pr(W in E | M) in place of Pr(M, W in E), as in differential privacy
smallest delta_right = sum over w of max{p(w, M=1) - e^eps_right p(w, M=0), 0}, attained by one event
"""

from dataclasses import dataclass
from fractions import Fraction
from numbers import Rational

import numpy as np

from lethe_lib.bmp.bounds import check_form, log_prior_odds
from lethe_lib.bmp.exact import NodeLaws
from lethe_lib.errors import InputError


def smallest_deltas(laws: NodeLaws, left_factor: Rational, right_factor: Rational, form: str):
    """The smallest (delta_left, delta_right) of one node at given parameters, exactly.

    Args:
        laws: prior and output laws of the node.
        left_factor, right_factor: e^eps_left and e^eps_right as non-negative rational numbers.
        form: ``"odds"`` (joint probabilities) or ``"ratio"`` (conditional probabilities).

    Returns:
        Two Fractions in [0, 1]; both 0 exactly when the parameters hold without delta.
    """
    if left_factor < 0 or right_factor < 0:
        raise InputError("the factors e^eps must not be negative")
    weight = laws.prior if check_form(form) == "odds" else Fraction(1)
    rest = 1 - laws.prior if form == "odds" else Fraction(1)
    left = right = Fraction(0)
    for output in laws.outside | laws.inside:
        member = weight * laws.inside.get(output, Fraction(0))
        absent = rest * laws.outside.get(output, Fraction(0))
        right += max(member - right_factor * absent, Fraction(0))
        left += max(absent - left_factor * member, Fraction(0))
    return left, right


@dataclass(frozen=True)
class DeltaRegion:
    """Errors that a test of a (eps, delta)-BMP algorithm can have: four inequalities with delta on the right.

    Args:
        eps_left, eps_right: parameters in ``form``.
        delta_left, delta_right: probabilities with which each side may fail, at least 0.
        prior: prior membership probability, used in odds form only.
        form: ``"odds"`` or ``"ratio"``.
    """

    eps_left: float
    eps_right: float
    delta_left: float
    delta_right: float
    prior: float
    form: str

    def __post_init__(self):
        check_form(self.form)
        log_prior_odds(self.prior)
        if not (self.delta_left >= 0 and self.delta_right >= 0):
            raise InputError("delta must be at least 0")
        if not np.isfinite([self.eps_left, self.eps_right]).all():
            raise InputError(
                "eps must be finite: a side without a bound has no probability of failing; use ErrorRegion"
            )

    def contains(self, alpha, beta, tolerance: float = 0.0) -> np.ndarray:
        """Whether conditional errors (alpha, beta) are possible, by the inequalities."""
        alpha, beta = np.asarray(alpha, dtype=np.float64), np.asarray(beta, dtype=np.float64)
        weight, rest = (self.prior, 1 - self.prior) if self.form == "odds" else (1.0, 1.0)
        right, left = np.exp(self.eps_right), np.exp(self.eps_left)
        slacks = (
            right * rest * alpha + self.delta_right - weight * (1 - beta),
            right * rest * (1 - alpha) + self.delta_right - weight * beta,
            left * weight * (1 - beta) + self.delta_left - rest * alpha,
            left * weight * beta + self.delta_left - rest * (1 - alpha),
        )
        return np.logical_and.reduce([slack >= -tolerance for slack in slacks])
