"""The error region: every pair of errors that a membership test of an algorithm can have, and back to parameters.

Reference: S. Yildirim, M. Khosla, arXiv:2606.04069 (region R_eta of the parameters); geometry and inverse are ours.

A test has alpha = Pr(says member | non-member) and beta = Pr(says non-member | member). If L <= Lambda <= U, then

    L alpha <= 1 - beta <= U alpha        L (1 - alpha) <= beta <= U (1 - alpha)

which is the parallelogram (0, 1), (alpha*, beta*), (1, 0), (1 - alpha*, 1 - beta*) with
alpha* = (1 - L)/(U - L), beta* = L (U - 1)/(U - L), and area 1 - alpha* - beta*, the largest advantage TPR - FPR.
Joint errors (Pr(says member, non-member), Pr(says non-member, member)) are ((1 - prior) alpha, prior beta).
"""

from dataclasses import dataclass

import numpy as np

from lethe_lib.bmp.bounds import Parameters, from_ratio, log_prior_odds, to_ratio
from lethe_lib.errors import InputError


@dataclass(frozen=True)
class ErrorRegion:
    """The parallelogram of possible errors, for one node or an array of nodes.

    Args:
        excess_left, excess_right: parameters in ratio form, at least 0, of one common shape (...).
        prior: prior membership probability, shape (...), or None; needed for the odds form and for joint errors.
        joint: whether points are joint errors (weighted with the prior) instead of conditional ones.
    """

    excess_left: np.ndarray
    excess_right: np.ndarray
    prior: np.ndarray | None = None
    joint: bool = False

    @property
    def scale(self) -> tuple[np.ndarray, np.ndarray]:
        """What turns conditional errors into the errors of this region: (1, 1), or (1 - prior, prior)."""
        return (1 - self.prior, self.prior) if self.joint else (np.float64(1.0), np.float64(1.0))

    @property
    def vertex(self) -> tuple[np.ndarray, np.ndarray]:
        """(alpha*, beta*), the conditional errors of the strongest attack.

        When an excess is 0 the likelihood ratio is constant and the region is the segment alpha + beta = 1; its middle
        is returned then.
        """
        inside, outside, both = self._complements()
        with np.errstate(invalid="ignore", divide="ignore"):
            alpha = inside * np.exp(-self.excess_right) / both
            beta = outside * np.exp(-self.excess_left) / both
        flat = (inside == 0) | (outside == 0)
        return np.where(flat, 0.5, alpha), np.where(flat, 0.5, beta)

    @property
    def vertices(self) -> np.ndarray:
        """The corners in order, shape (..., 4, 2), from (0, 1) through the best attack to (1, 0) and its mirror."""
        alpha, beta = self.vertex
        zero, one = np.zeros_like(alpha), np.ones_like(alpha)
        corners = [(zero, one), (alpha, beta), (one, zero), (1 - alpha, 1 - beta)]
        return np.stack([np.stack([a * self.scale[0], b * self.scale[1]], axis=-1) for a, b in corners], axis=-2)

    @property
    def area(self) -> np.ndarray:
        """Area; for conditional errors it equals the largest advantage TPR - FPR of any attack."""
        inside, outside, both = self._complements()
        with np.errstate(invalid="ignore"):
            area = np.where(both > 0, inside * outside / np.where(both > 0, both, 1.0), 0.0)
        return area * self.scale[0] * self.scale[1]

    def _complements(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """1 - L, 1 - 1/U and 1 - L/U, accurate for small parameters."""
        return tuple(-np.expm1(-e) for e in (self.excess_left, self.excess_right, self.excess_left + self.excess_right))

    def contains(self, alpha, beta, tolerance: float = 0.0) -> np.ndarray:
        """Whether each point lies in the region (borders included), by the four inequalities."""
        alpha, beta = (np.asarray(error, dtype=np.float64) / s for error, s in zip((alpha, beta), self.scale))
        low, inverse_up = np.exp(-self.excess_left), np.exp(-self.excess_right)
        gaps = (
            1 - beta - low * alpha,
            alpha - inverse_up * (1 - beta),
            beta - low * (1 - alpha),
            1 - alpha - inverse_up * beta,
        )
        return np.logical_and.reduce([gap >= -tolerance for gap in gaps])

    def draw(self, generator: np.random.Generator, size: int) -> tuple[np.ndarray, np.ndarray]:
        """``size`` uniform points, two arrays of shape (size, ...), by the parallelogram map and without rejection.

        On the segment left by parameters of 0 the map gives the triangular law with its mode in the middle, the limit
        of the uniform laws as both parameters shrink at the same rate.
        """
        shape = (size, *np.shape(self.vertex[0]))
        return self.at(generator.random(shape), generator.random(shape))

    def at(self, u, v) -> tuple[np.ndarray, np.ndarray]:
        """The errors at coordinates (u, v) in [0, 1]^2: the corner (0, 1) plus u and v times the two edges."""
        alpha, beta = self.vertex
        return (
            (u * alpha + v * (1 - alpha)) * self.scale[0],
            (1 - u * (1 - beta) - v * beta) * self.scale[1],
        )

    def coordinates(self, alpha, beta) -> tuple[np.ndarray, np.ndarray]:
        """The inverse of :meth:`at`, for a region with an interior."""
        if not np.all(self.area > 0):
            raise InputError("a region without interior has no coordinates: raise both parameters above their bounds")
        alpha, beta = (np.asarray(error, dtype=np.float64) / s for error, s in zip((alpha, beta), self.scale))
        best_alpha, best_beta = self.vertex
        determinant = 1 - best_alpha - best_beta
        u = ((1 - best_alpha) * (1 - beta) - best_beta * alpha) / determinant
        v = ((1 - best_beta) * alpha - best_alpha * (1 - beta)) / determinant
        return u, v

    def parameters(self, form: str) -> Parameters:
        """The parameters of this region, in either form."""
        return from_ratio(self.excess_left, self.excess_right, self.prior, form)


def error_region(eps_left, eps_right, prior=None, form: str = "ratio", joint: bool = False) -> ErrorRegion:
    """The region of errors that parameters allow.

    Args:
        eps_left, eps_right: parameters in ``form``; infinity leaves that side free (one-sided BMP-R or BMP-L).
        prior: prior membership probability; needed for the odds form and for joint errors.
        form: ``"ratio"`` (likelihood ratio, the printed formula) or ``"odds"`` (posterior odds).
        joint: give joint instead of conditional errors.

    Raises:
        InputError: a parameter below its prior bound (the region would be empty), a bad prior, or a missing one.

    Example:
        >>> float(round(error_region(np.log(2), np.log(2)).area, 6))
        0.333333
    """
    if joint and prior is None:
        raise InputError("joint errors are weighted with the prior: give prior=...")
    excess = to_ratio(eps_left, eps_right, prior, form)
    if prior is not None:
        log_prior_odds(prior)
        excess_left, excess_right, prior = np.broadcast_arrays(*excess, np.asarray(prior, dtype=np.float64))
    else:
        excess_left, excess_right = np.broadcast_arrays(*excess)
    return ErrorRegion(excess_left, excess_right, prior, joint)


def smallest_parameters(alpha, beta, prior=None, form: str = "ratio") -> Parameters:
    """The smallest parameters whose region contains an observed pair of conditional errors.

    An attack bounds an algorithm from below only: the true parameters are at least these. A verdict that never occurs
    (0/0) says nothing and is left out.

    Args:
        alpha, beta: false-positive and false-negative rates in [0, 1], any shapes that broadcast.
        prior, form: as in :func:`error_region`.
    """
    alpha, beta = np.broadcast_arrays(np.asarray(alpha, dtype=np.float64), np.asarray(beta, dtype=np.float64))
    if not (np.all((alpha >= 0) & (alpha <= 1)) and np.all((beta >= 0) & (beta <= 1))):
        raise InputError("error rates must lie in [0, 1]")
    with np.errstate(divide="ignore", invalid="ignore"):
        member = np.log1p(-beta) - np.log(alpha)
        absent = np.log(beta) - np.log1p(-alpha)
    # A verdict that never occurs gives -inf - -inf = nan, which fmax and fmin skip.
    right, left = np.fmax(member, absent), -np.fmin(member, absent)
    return from_ratio(np.maximum(left, 0.0), np.maximum(right, 0.0), prior, form)


def count_parameters(true_positives, false_positives, true_negatives, false_negatives) -> Parameters:
    """The same in odds form from counts of joint draws, where memberships come from the sampler: no prior is needed.

    Returns:
        eps_left = -log of the smallest, eps_right = log of the largest of TP/FP and FN/TN.
    """
    counts = np.broadcast_arrays(
        *(np.asarray(c, dtype=np.float64) for c in (true_positives, false_positives, true_negatives, false_negatives))
    )
    if any((c < 0).any() for c in counts):
        raise InputError("counts must not be negative")
    tp, fp, tn, fn = counts
    with np.errstate(divide="ignore", invalid="ignore"):
        member, absent = np.log(tp) - np.log(fp), np.log(fn) - np.log(tn)
    return Parameters(-np.fmin(member, absent), np.fmax(member, absent))
