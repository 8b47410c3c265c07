"""Posterior of the parameters by Metropolis-Hastings with averaged acceptance ratios (MHAAR), one chain per node.

Reference: the algorithm of C. Yildirim et al., arXiv:2504.16683 (after Andrieu et al., "On the utility of Metropolis-Hastings
with asymmetric acceptance ratio", arXiv:1803.09527), with the region R of Bayesian membership privacy. One step:

    propose log e' = log e + N(0, step^2) for both parameters at once
    candidates: the current errors and K - 1 fresh draws of (alpha, beta) ~ Beta(X+1, n_out-X+1) x Beta(Y+1, n_in-Y+1)
    weight of a candidate under e: 1[in R(e), not in R(s e)] / (area R(e) - area R(s e))
    accept e' with the ratio of priors x Jacobian (e'_left e'_right) / (e_left e_right) x (sum of weights' / of weights)
    redraw the current errors from the candidates by their weights under the parameters that were kept
    strength learnt: s' = s + N(0, 0.3^2) reflected into (0, 1), proposed together with e'; its prior is uniform

Differences from the reference: two parameters instead of one; candidates from the Beta laws, for which the likelihood
cancels, instead of from the uniform law; the Jacobian of the log proposal is included; ``step`` adapts during warm-up.
"""

from dataclasses import dataclass

import numpy as np
from numba import njit

from lethe_lib.bmp.audit_quadrature import LEARNT
from lethe_lib.bmp.region import smallest_parameters
from lethe_lib.errors import InputError

TARGET = 0.3  # acceptance rate that warm-up aims at
LOG_STEP = 2.0  # bounds of the adapted log step
STRENGTH_START, STRENGTH_STEP = 0.5, 0.3  # of a strength that is learnt


@dataclass(frozen=True)
class MhaarSettings:
    """Settings of MHAAR.

    Args:
        chains, tune, draws: chains per node, warm-up steps, and kept draws per chain.
        thin: steps per kept draw.
        candidates: K, at least 2.
        step: first standard deviation of the proposal, on the log scale.
    """

    chains: int = 4
    tune: int = 500
    draws: int = 1000
    thin: int = 4
    candidates: int = 8
    step: float = 1.0

    def __post_init__(self):
        if self.candidates < 2 or min(self.chains, self.draws, self.thin) < 1 or self.tune < 0 or not self.step > 0:
            raise InputError(f"MHAAR needs 2 candidates, 1 chain, draw and step per draw, and step > 0; got {self}")


def mhaar(
    counts: np.ndarray,
    prior_scale: tuple[float, float],
    generator: np.random.Generator,
    strength: float | str = 0.0,
    settings: MhaarSettings = MhaarSettings(),
) -> np.ndarray:
    """Posterior draws of the excess parameters of every node.

    Chains start apart: errors from their Beta laws, parameters some way above the corner of these errors.

    Args:
        counts: (n, 4) integers: n_out, false positives, n_in, false negatives.
        prior_scale: scales of the half-normal priors of (e_left, e_right).
        generator: of all draws.
        strength: s in [0, 1), or LEARNT.
        settings: numbers of chains, steps and candidates.

    Returns:
        Draws (chains, draws, n, 2) of (e_left, e_right), in ratio form.
    """
    counts = np.asarray(counts, dtype=np.float64)
    n_out, positives, n_in, negatives = counts.T
    shapes = np.stack([positives + 1, n_out - positives + 1, negatives + 1, n_in - negatives + 1], axis=1)
    start = generator.beta(shapes[:, ::2], shapes[:, 1::2], (settings.chains, len(counts), 2))
    corner = np.stack(smallest_parameters(start[..., 0], start[..., 1]), axis=-1)
    learn = strength == LEARNT
    strength = STRENGTH_START if learn else float(strength)
    # Any factor in (1, 1/s) puts these errors into R(e) and, at its lower end, outside R(s e).
    factor = 1 + generator.random(corner.shape[:-1] + (1,)) * min(2.0, (1 - strength) / max(strength, 1e-9))
    draws = np.empty((settings.chains, settings.draws, len(counts), 2))
    _run(
        shapes, start, corner * factor, np.asarray(prior_scale, dtype=np.float64), strength, learn, settings.step,
        settings.tune, settings.thin, settings.candidates, generator, draws,
    )  # fmt: skip
    return draws


@njit(cache=True)
def _area(left, right):
    return np.expm1(-left) * np.expm1(-right) / -np.expm1(-left - right)


@njit(cache=True)
def _ring(left, right, strength):
    """Area of R(e) without R(s e)."""
    return _area(left, right) - (_area(strength * left, strength * right) if strength > 0 else 0.0)


@njit(cache=True)
def _inside(left, right, corner_left, corner_right, strength):
    """1 when errors with this corner lie in R(e) and outside R(s e)."""
    if corner_left > left or corner_right > right:
        return 0
    return 0 if corner_left <= strength * left and corner_right <= strength * right else 1


@njit(cache=True)
def _run(shapes, start, parameters, scale, first_strength, learn, step, tune, thin, size, generator, draws):
    chains, kept, nodes, _ = draws.shape
    corner_left, corner_right = np.empty(size), np.empty(size)
    here, there = np.empty(size), np.empty(size)
    for chain in range(chains):
        for node in range(nodes):
            left, right = parameters[chain, node]
            alpha, beta = start[chain, node]
            corner_left[0], corner_right[0] = _corner(alpha, beta)
            strength = new_strength = first_strength
            log_step = np.log(step)
            for iteration in range(tune + kept * thin):
                for k in range(1, size):
                    alpha = generator.beta(shapes[node, 0], shapes[node, 1])
                    beta = generator.beta(shapes[node, 2], shapes[node, 3])
                    corner_left[k], corner_right[k] = _corner(alpha, beta)
                new_left = left * np.exp(np.exp(log_step) * generator.normal())
                new_right = right * np.exp(np.exp(log_step) * generator.normal())
                if learn:
                    new_strength = _reflected(strength + STRENGTH_STEP * generator.normal())
                for k in range(size):
                    here[k] = _inside(left, right, corner_left[k], corner_right[k], strength)
                    there[k] = _inside(new_left, new_right, corner_left[k], corner_right[k], new_strength)
                accepted = False
                if there.sum() > 0:
                    log_ratio = np.log(there.sum() / _ring(new_left, new_right, new_strength))
                    log_ratio -= np.log(here.sum() / _ring(left, right, strength))
                    log_ratio += np.log(new_left * new_right) - np.log(left * right)  # Jacobian
                    log_ratio += 0.5 * ((left / scale[0]) ** 2 - (new_left / scale[0]) ** 2)
                    log_ratio += 0.5 * ((right / scale[1]) ** 2 - (new_right / scale[1]) ** 2)
                    accepted = np.log(generator.random()) < log_ratio
                if accepted:
                    left, right, strength = new_left, new_right, new_strength
                weights = there if accepted else here
                chosen = _pick(weights, generator)
                corner_left[0], corner_right[0] = corner_left[chosen], corner_right[chosen]
                if iteration < tune:
                    log_step += ((1.0 if accepted else 0.0) - TARGET) / np.sqrt(iteration + 1.0)
                    log_step = min(max(log_step, -LOG_STEP), LOG_STEP)
                elif (iteration - tune) % thin == thin - 1:
                    draws[chain, (iteration - tune) // thin, node, 0] = left
                    draws[chain, (iteration - tune) // thin, node, 1] = right


@njit(cache=True)
def _corner(alpha, beta):
    """Smallest parameters of interior errors: (l, r) of the point or of its mirror, whichever is positive."""
    left, right = np.log1p(-alpha) - np.log(beta), np.log1p(-beta) - np.log(alpha)
    return (left, right) if alpha + beta < 1 else (-right, -left)


@njit(cache=True)
def _reflected(value):
    """``value`` folded into [0, 1] by mirrors at both ends, which keeps a symmetric proposal symmetric."""
    value = abs(value) % 2.0
    return 2.0 - value if value > 1.0 else value


@njit(cache=True)
def _pick(weights, generator):
    """An index with probability proportional to its weight of 0 or 1."""
    remaining = generator.random() * weights.sum()
    last = 0
    for k in range(len(weights)):
        if weights[k] > 0:
            last = k
            remaining -= weights[k]
            if remaining < 0:
                return k
    return last
