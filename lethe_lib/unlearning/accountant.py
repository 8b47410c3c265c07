"""Objective perturbation and its budget: when an approximate removal is as good as retraining, and for how long.

    train     theta = argmin L(theta; D) + b . theta,   b ~ N(0, noise^2 I)
    request   D -> D': one approximate step;   |gradient of L_b(theta; D')| <= spent + step = new spent
    accept    while spent <= noise * epsilon / c,   c = sqrt(2 ln(1.5 / delta))
    else      train again on the current data with a fresh b, and start from its optimisation residual

Guo, Goldstein, Hannun, van der Maaten, "Certified data removal from machine learning models", ICML 2020. While the
budget lasts, the released weights are (epsilon, delta)-indistinguishable from those of retraining: the two differ by what a
shift of b by the residual does. The factor c is the classic one of the Gaussian mechanism, which is too small for a large
epsilon (above 8 at delta 1e-4), so a certificate also asks for the exact delta of that shift, :func:`gaussian_delta`.

What the certificate presumes: a strictly convex objective; residual and noise on the same scale (both of the summed
loss, or both of the mean); requests chosen without looking at released weights; b never published. It speaks of the
weights alone: an answer on a graph that still shows the neighbourhood tells what the graph tells.

With several classes, one-vs-rest, the weights of all classes are one vector and b is one isotropic draw, so residuals
of the classes enter as the L2 norm of all of them together. Comparing their sum with the number of classes times the
budget, as published code does, bounds neither a class nor the release.
"""

import math
from dataclasses import dataclass

from scipy.special import log_ndtr

from lethe_lib.errors import InputError

CERTIFICATE_STATUSES = ("valid", "budget_exhausted_retrained", "not_applicable")


@dataclass(frozen=True)
class Certificate:
    """What is guaranteed about released weights, and what was measured.

    Attributes:
        status: ``valid`` (approximate steps within the budget), ``budget_exhausted_retrained`` (the guarantee holds
            too, but it cost at least one retraining) or ``not_applicable`` (no guarantee, see ``reason``).
        epsilon, delta: of the guarantee; NaN where there is none.
        residual: exact norm of the perturbed objective's gradient on the retained graph; NaN if it was not measured.
            A diagnostic: acceptance never depends on it.
        bound: what the residual is proved to be below; NaN where nothing is proved.
        noise: standard deviation of each entry of b, on the scale of the residual; 0 without noise.
        retrainings: how often the budget ran out.
        reason: a sentence, empty for ``valid``.
    """

    status: str
    epsilon: float = math.nan
    delta: float = math.nan
    residual: float = math.nan
    bound: float = math.nan
    noise: float = 0.0
    retrainings: int = 0
    reason: str = ""

    def __post_init__(self):
        if self.status not in CERTIFICATE_STATUSES:
            raise InputError(f"unknown certificate status {self.status!r}: one of {', '.join(CERTIFICATE_STATUSES)}")
        if self.status != "valid" and not self.reason:
            raise InputError(f"a certificate that is {self.status} needs a reason")


def noise_factor(delta: float) -> float:
    """c = sqrt(2 ln(1.5 / delta)), the noise that one unit of residual needs at epsilon 1; 4.386 for delta 1e-4."""
    if not 0.0 < delta < 1.0:
        raise InputError(f"delta={delta} must lie in (0, 1)")
    return math.sqrt(2.0 * math.log(1.5 / delta))


def gaussian_delta(epsilon: float, shift: float) -> float:
    """The smallest delta for which N(0, 1) and N(shift, 1) are (epsilon, delta)-indistinguishable.

        Phi(shift / 2 - epsilon / shift) - exp(epsilon) Phi(-shift / 2 - epsilon / shift)

    Balle and Wang, "Improving the Gaussian mechanism for differential privacy", ICML 2018, theorem 8.

    Args:
        epsilon: at least 0. shift: in standard deviations, at least 0.

    Example:
        >>> round(gaussian_delta(0.0, 1.0), 4)  # the total variation distance
        0.3829
    """
    if shift == 0.0:
        return 0.0
    above, below = log_ndtr([shift / 2 - epsilon / shift, -shift / 2 - epsilon / shift])
    return max(math.exp(above) - math.exp(epsilon + below), 0.0)


class Accountant:
    """The budget of one perturbed model over any number of requests.

    Attributes:
        budget: the largest residual that (epsilon, delta) allows: noise * epsilon / c.
        spent: what the residual is proved to be below after the requests so far.
        retrainings: how often the model was trained again.

    Args:
        epsilon, delta: the guarantee wanted; epsilon above 0, delta in (0, 1).
        noise: standard deviation of each entry of b, above 0.
        initial: |gradient of L_b| at the trained model: training never reaches the optimum exactly.

    Example:
        >>> accountant = Accountant(epsilon=1.0, delta=1e-4, noise=0.1)
        >>> round(accountant.budget, 4)
        0.0228
        >>> accountant.charge(0.02), accountant.charge(0.01)
        (True, False)
    """

    def __init__(self, epsilon: float, delta: float, noise: float, initial: float = 0.0):
        if not epsilon > 0.0:
            raise InputError(f"epsilon={epsilon} must be above 0")
        if not noise > 0.0:
            raise InputError(f"noise={noise} must be above 0: without noise there is nothing to certify")
        self.epsilon, self.delta, self.noise = epsilon, delta, noise
        self.budget = noise * epsilon / noise_factor(delta)
        self.spent = initial
        self.extra = 0.0
        self.retrainings = 0

    def charge(self, step: float, extra: float = 0.0) -> bool:
        """Account for one request if the budget allows it.

        Args:
            step: bound of what this request adds to the residual.
            extra: bound of a part that does not add up over requests, such as the error of approximate features now.

        Returns:
            True: accepted and booked. False: nothing is booked; train again and call :meth:`restart`.
        """
        if not self.spent + step + extra <= self.budget:  # a NaN is not accepted either
            return False
        self.spent += step
        self.extra = extra
        return True

    def restart(self, initial: float, extra: float = 0.0) -> None:
        """The model was trained again with a fresh b: count it, and start from its residual."""
        self.retrainings += 1
        self.spent = initial
        self.extra = extra

    def certificate(self, residual: float = math.nan) -> Certificate:
        """The guarantee as it stands.

        ``not_applicable`` if not even the last training is within the budget, which then is too small for the
        optimiser, or for the approximation of the features; and if epsilon is so large that the budget is too.
        """
        bound = self.spent + self.extra
        numbers = (self.epsilon, self.delta, residual, bound, self.noise, self.retrainings)
        if not bound <= self.budget:
            reason = f"the residual after training alone may be {bound:.2e}, above the budget {self.budget:.2e}"
            return Certificate("not_applicable", math.nan, math.nan, *numbers[2:], reason)
        exact = gaussian_delta(self.epsilon, bound / self.noise)
        if exact > self.delta:
            reason = (
                f"the budget of so large an epsilon ({self.epsilon:g}) is too large: the noise gives delta {exact:.1e}"
            )
            return Certificate("not_applicable", math.nan, math.nan, *numbers[2:], reason)
        if self.retrainings:
            reason = f"the budget ran out and the model was trained again, {self.retrainings} time(s)"
            return Certificate("budget_exhausted_retrained", *numbers, reason)
        return Certificate("valid", *numbers)
