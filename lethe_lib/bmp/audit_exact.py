"""Probability of the error counts of one attack given the parameters, by one-dimensional quadrature: slow and exact.

Model of C. Yildirim et al., arXiv:2504.16683, with the region R of ``region.py``: errors uniform on R, binomial counts.
Integrating the likelihood over beta leaves the distribution function I of a Beta law, and one integral over alpha:

    lo(alpha) = max(1 - U alpha, L (1 - alpha)),   hi(alpha) = min(1 - L alpha, U (1 - alpha))
    F(e) = int Bin(X; n_out, alpha) [I_hi(Y+1, n_in-Y+1) - I_lo(Y+1, n_in-Y+1)] / (n_in + 1) d alpha
    m(e) = F(e) / area(R(e))
    with strength s: m(e) = (F(e) - F(s e)) / (area(R(e)) - area(R(s e)))
    the integrand has kinks at the corners alpha* and 1 - alpha*, and all its weight near X / n_out
"""

from math import exp

import numpy as np
from scipy.stats import beta as beta_law

from lethe_lib.bmp.region import error_region
from lethe_lib.errors import InputError

LARGEST = 700.0  # e^700 is still a double
TAILS = (1e-14, 1e-6, 1e-2, 0.2, 0.5, 0.8, 1 - 1e-2, 1 - 1e-6, 1 - 1e-14)
NODES, WEIGHTS = np.polynomial.legendre.leggauss(24)


def marginal_likelihood(excess_left, excess_right, counts, strength: float = 0.0) -> np.ndarray:
    """Probability of the counts given parameters in ratio form, to about ten digits.

    Args:
        excess_left, excess_right: parameters in ratio form, in (0, 700], any shapes that broadcast.
        counts: (n_out, false positives, n_in, false negatives) of one node.
        strength: s in [0, 1): the errors are known to lie outside R(s e).

    Returns:
        Array of the broadcast shape, in (0, 1). It tends to 1 / ((n_out + 1)(n_in + 1)) for large parameters.

    Raises:
        InputError: parameters of 0 (the region has no area, and the limit depends on how they go to 0) or bad counts.

    Example:
        >>> print(f"{marginal_likelihood(1.0, 2.0, (90, 9, 10, 4)):.6e}")
        1.106316e-03
    """
    left, right = np.broadcast_arrays(np.asarray(excess_left, np.float64), np.asarray(excess_right, np.float64))
    if not (np.all((left > 0) & (left <= LARGEST)) and np.all((right > 0) & (right <= LARGEST))):
        raise InputError(f"the marginal likelihood needs parameters in (0, {LARGEST:g}]: at 0 the region has no area")
    if not 0 <= strength < 1:
        raise InputError(f"the strength must lie in [0, 1), got {strength:g}")
    n_out, positives, n_in, negatives = (int(count) for count in counts)
    if not (0 <= positives <= n_out and 0 <= negatives <= n_in):
        raise InputError(f"counts must satisfy 0 <= false positives <= n_out and likewise inside, got {tuple(counts)}")
    values = np.empty(left.shape)
    for index in np.ndindex(left.shape):
        pair = left[index], right[index]
        mass, area = _inside(*pair, n_out, positives, n_in, negatives), error_region(*pair).area
        if strength > 0:
            inner = strength * pair[0], strength * pair[1]
            mass, area = mass - _inside(*inner, n_out, positives, n_in, negatives), area - error_region(*inner).area
        values[index] = mass / area
    return values[()]


def _inside(left: float, right: float, n_out: int, positives: int, n_in: int, negatives: int) -> float:
    """The likelihood integrated over the region, by Gauss-Legendre rules between all points where it changes its pace."""
    low, up = exp(-left), exp(right)
    law_out, law_in = (
        beta_law(count + 1, total - count + 1) for count, total in ((positives, n_out), (negatives, n_in))
    )
    corner = float(error_region(left, right).vertex[0])
    betas = law_in.ppf(TAILS)
    borders = (1 - betas) / up, 1 - betas / low, (1 - betas) / low, 1 - betas / up  # where lo or hi passes them
    cuts = np.concatenate([[0.0, corner, 1 - corner, 1.0], law_out.ppf(TAILS), *borders])
    cuts = np.unique(np.clip(cuts, 0.0, 1.0))
    half = np.diff(cuts)[:, None] / 2
    alpha = cuts[:-1, None] + half * (1 + NODES)
    lo, hi = np.maximum(1 - up * alpha, low * (1 - alpha)), np.minimum(1 - low * alpha, up * (1 - alpha))
    # Rounding at the ends of the diagonal may leave hi just below lo: then nothing lies between.
    between = law_in.cdf(np.maximum(hi, lo)) - law_in.cdf(lo)
    return float(np.sum(half * WEIGHTS * law_out.pdf(alpha) * between)) / ((n_out + 1) * (n_in + 1))
