"""Inclusion probabilities of successive sampling without replacement, as an integral over exponential clocks.

    give node i a clock T_i ~ Exp(w_i); the sample of size m are the first m clocks that ring
    with x = exp(-time), node j has rung with probability 1 - x^w_j, so the number N of the others that have rung
    is a sum of independent bits (Poisson binomial), and
    prior_i     = integral over x in [0, 1] of  w_i x^(w_i - 1) Pr(N_without_i(x) <= m - 1)  dx
    1 - prior_i = the same with Pr(N_without_i(x) >= m); taken on its own, so that log-odds of hubs keep their digits

The distribution function of N comes from its characteristic function on a window of consecutive counts, and the
integral from Gauss-Legendre nodes on the range of x where the distribution function moves. For integer weights the
integrand is a polynomial in x, so small graphs are integrated exactly. Source of the clocks: Rosen, "Asymptotic theory
for successive sampling with varying probabilities without replacement", 1972.
"""

import numpy as np
from scipy.optimize import brentq

_NODES = 192  # Gauss-Legendre nodes
_DEVIATIONS = 9.0  # a count this many standard deviations (and this many nodes) off its mean is as good as impossible


def inclusion_probabilities(weights: np.ndarray, size: int) -> tuple[np.ndarray, np.ndarray]:
    """The probability that each node is among the ``size`` nodes drawn, and that it is not.

    Args:
        weights: (n,) non-negative integers; nodes of weight 0 are never drawn.
        size: m, between 1 and the number of positive weights.

    Returns:
        Two (n,) float64 in [0, 1] that sum to 1 up to about 1e-9, each with small relative error; the first sums to m
        over the nodes. Equal weights get equal values.
    """
    values, inverse, multiplicity = np.unique(weights, return_inverse=True, return_counts=True)
    positive = values > 0
    rate, count = values[positive].astype(np.float64), multiplicity[positive].astype(np.float64)
    drawn, left_out = np.zeros(len(values)), np.ones(len(values))
    if size == count.sum():
        drawn[positive], left_out[positive] = 1.0, 0.0
    else:
        drawn[positive], left_out[positive] = _integrate(rate, count, size)
    return drawn[inverse], left_out[inverse]


def _integrate(rate, count, size):
    """Both integrals for each distinct positive weight."""
    low, high, period = _window(rate, count, size)
    points, masses = np.polynomial.legendre.leggauss(_NODES)
    points, masses = low + (high - low) * (points + 1) / 2, masses * (high - low) / 2

    # Characteristic function at the frequencies 0 .. 1/2; the others are complex conjugates.
    first = max(0, size - 1 - period // 2) if period < count.sum() + 1 else 0
    frequency = np.arange(period // 2 + 1)
    turns = np.exp(2j * np.pi * frequency / period)
    twice = np.where((frequency == 0) | (2 * frequency == period), 1.0, 2.0) / period
    back = np.exp(-2j * np.pi * np.outer(frequency, np.arange(first, first + period)) / period) * twice[:, None]
    back_below, back_above = back[:, : size - first].sum(axis=1), back[:, size - first :].sum(axis=1)

    drawn = -np.expm1(rate * np.log(high))  # rung before the count of the others can have reached m
    left_out = low**rate  # not rung when that count has surely reached m
    for x, mass in zip(points, masses, strict=True):
        stays = x**rate
        factors = stays[:, None] + (1 - stays)[:, None] * turns
        everyone = np.exp(count @ np.log(factors))
        density = mass * rate * x ** (rate - 1)
        drawn += density * ((everyone * back_below) / factors).sum(axis=1).real
        left_out += density * ((everyone * back_above) / factors).sum(axis=1).real
    return np.clip(drawn, 0.0, 1.0), np.clip(left_out, 0.0, 1.0)


def _window(rate, count, size):
    """The range of x in which the count of clocks that have rung passes m, and how many counts are possible in it."""

    def moments(time):
        rung = -np.expm1(-rate * time)
        return (count * rung).sum(), np.sqrt((count * rung * (1 - rung)).sum())

    def excess(time, sign):
        mean, deviation = moments(time)
        return mean + sign * _DEVIATIONS * (deviation + 1) - size

    end = 45.0 / rate.min()  # by then exp(-45) of the slowest clocks are left
    early = brentq(excess, 0.0, end, args=(1.0,)) if excess(0.0, 1.0) < 0 else 0.0
    late = brentq(excess, early, end, args=(-1.0,)) if excess(end, -1.0) > 0 else end
    low, high = np.exp(-late) if late < end else 0.0, np.exp(-early)
    deviation = max(moments(time)[1] for time in np.linspace(early, late, 65))
    return low, high, int(min(count.sum() + 1, np.ceil(4 * _DEVIATIONS * (deviation + 2))))
