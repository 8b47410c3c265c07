"""Bayes-optimal membership tests: what the best attack on one node can do, exactly and as a bound from parameters.

Reference: S. Yildirim, M. Khosla, arXiv:2606.04069 (membership inference as a Bayesian test); formulas derived here.

    Bayes test          say "member" iff o Lambda(w) > 1
    Bayes error         sum over w of min{prior p(w|M=1), (1 - prior) p(w|M=0)}
    largest advantage   sum over w of max{p(w|M=1) - p(w|M=0), 0} = largest TPR - FPR of any test
    from (L, U) alone   Bayes error >= min{prior, 1 - prior, (1 - prior) alpha* + prior beta*}, advantage <= area,
                        both attained by a mechanism with two outputs
"""

from collections.abc import Hashable
from fractions import Fraction

import numpy as np

from lethe_lib.bmp.bounds import Parameters, check_possible, from_ratio, to_ratio
from lethe_lib.bmp.exact import Law, NodeLaws
from lethe_lib.bmp.region import error_region
from lethe_lib.errors import InputError


def bayes_test(laws: NodeLaws) -> dict[Hashable, bool]:
    """The decision of the Bayes-optimal test for every output: True means "member". Ties go to "non-member".

    The family of tests is that of Neyman and Pearson (thresholds on the likelihood ratio); the prior picks which.
    """
    return {output: ratio * laws.prior_odds > 1 for output, ratio in laws.ratios().items()}


def errors_of(laws: NodeLaws, decisions: dict[Hashable, bool]) -> tuple[Fraction, Fraction]:
    """The exact conditional errors (alpha, beta) of a deterministic test given as output -> says "member"."""
    alpha = sum((p for output, p in laws.outside.items() if decisions[output]), Fraction(0))
    beta = sum((p for output, p in laws.inside.items() if not decisions[output]), Fraction(0))
    return alpha, beta


def bayes_error(laws: NodeLaws) -> Fraction:
    """The smallest possible error probability of any attack that knows the prior; at most min(prior, 1 - prior)."""
    alpha, beta = errors_of(laws, bayes_test(laws))
    return (1 - laws.prior) * alpha + laws.prior * beta


def largest_advantage(laws: NodeLaws) -> Fraction:
    """The largest TPR - FPR of any attack, the total-variation distance of the two output laws; in [0, 1]."""
    outputs = laws.outside | laws.inside
    gaps = (laws.inside.get(w, Fraction(0)) - laws.outside.get(w, Fraction(0)) for w in outputs)
    return sum((gap for gap in gaps if gap > 0), Fraction(0))


def best_vertex(lower: Fraction, upper: Fraction | float) -> tuple[Fraction, Fraction]:
    """(alpha*, beta*) in rational arithmetic, for 0 <= L < 1 < U (U may be infinite)."""
    if not 0 <= lower < 1 < upper:
        raise InputError(f"the best vertex needs 0 <= L < 1 < U, got L = {lower}, U = {upper}")
    inverse_upper = 1 / upper if upper != float("inf") else Fraction(0)
    both = 1 - lower * inverse_upper
    return (1 - lower) * inverse_upper / both, lower * (1 - inverse_upper) / both


def extremal_mechanism(lower: Fraction, upper: Fraction | float) -> tuple[Law, Law]:
    """The two-output mechanism with likelihood ratios exactly L and U, the strongest that these bounds allow.

    Returns:
        (law of the output for members, law for non-members), over outputs 1 (ratio U) and 0 (ratio L).
    """
    alpha, beta = best_vertex(lower, upper)
    return {1: 1 - beta, 0: beta}, {1: alpha, 0: 1 - alpha}


def smallest_bayes_error(eps_left, eps_right, prior, form: str) -> np.ndarray:
    """The bound below which no attack's error probability can fall, from parameters and prior, per node."""
    region = error_region(eps_left, eps_right, prior, form)
    alpha, beta = region.vertex
    prior = np.asarray(prior, dtype=np.float64)
    return np.minimum(np.minimum(prior, 1 - prior), (1 - prior) * alpha + prior * beta)


def posterior_interval(eps_left, eps_right) -> tuple[np.ndarray, np.ndarray]:
    """What odds-form parameters say about the posterior membership probability, whatever the prior: (p-, p+).

    With ``eps_right <= 0`` p+ is at most 1/2 and the Bayes test never says "member"; with ``eps_left <= 0`` p- is at
    least 1/2 and it never says "non-member".

    Raises:
        InputError: parameters that no algorithm has at any prior, eps_left + eps_right < 0.
    """
    left, right = check_possible(eps_left, eps_right)
    return 1 / (1 + np.exp(left)), 1 / (1 + np.exp(-right))


def mp_from_bmp(eps_left, eps_right, prior, form: str) -> np.ndarray:
    """The smallest MP parameter that BMP parameters imply, per node: the larger side in ratio form."""
    return np.maximum(*to_ratio(eps_left, eps_right, prior, form))


def bmp_from_mp(eps, prior) -> Parameters:
    """The odds-form parameters to which MP(eps) is equivalent, per node: (eps - log o, eps + log o)."""
    return from_ratio(eps, eps, prior, "odds")
