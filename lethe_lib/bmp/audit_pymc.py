"""Posterior of the parameters by Hamiltonian Monte Carlo, all nodes in one PyMC model.

Model after C. Yildirim et al., arXiv:2504.16683, with the region of S. Yildirim and M. Khosla, arXiv:2606.04069. A uniform point
of the region is a linear image of a uniform point of the square, so nothing is constrained and no area appears:

    e_left, e_right ~ HalfNormal(prior scale);  u, v ~ Uniform(0, 1)
    alpha* = (1 - L)/(U - L), beta* = L (U - 1)/(U - L), with L = e^-e_left, U = e^e_right
    alpha = u alpha* + v (1 - alpha*),  beta = 1 - u (1 - beta*) - v beta*
    false positives ~ Bin(n_out, alpha),  false negatives ~ Bin(n_in, beta)
    sample with the No-U-Turn sampler of nutpie where it is installed, else with PyMC's own

With a strength s the errors are uniform on R(e) without R(s e). Below the diagonal that is two triangles, which share the
side from the vertex of R(e) to that of R(s e) and end at (0, 1) and at (1, 0); above it, their mirror images. One pair (u, v)
is mapped into all four, and the likelihood is the average of the four by area: smooth, and exact for e.
"""

import importlib.util
import os
from dataclasses import dataclass, field

import numpy as np

from lethe_lib.bmp.audit_quadrature import LEARNT
from lethe_lib.errors import InputError

SAMPLERS = ("nutpie", "pymc")


def default_sampler() -> str:
    """``"nutpie"`` where it is installed, else PyMC's own sampler."""
    return "nutpie" if importlib.util.find_spec("nutpie") else "pymc"


@dataclass(frozen=True)
class PymcSettings:
    """Settings of the PyMC method.

    Args:
        chains, tune, draws: chains, warm-up steps and kept draws per chain.
        target_accept: acceptance rate that warm-up aims at; nearer to 1 means smaller steps and fewer divergences.
        sampler: one of SAMPLERS; by default nutpie where it is installed.
    """

    chains: int = 4
    tune: int = 500
    draws: int = 500
    target_accept: float = 0.9
    sampler: str = field(default_factory=default_sampler)

    def __post_init__(self):
        if min(self.chains, self.tune, self.draws) < 1 or not 0 < self.target_accept < 1:
            raise InputError(f"PyMC needs at least 1 chain, warm-up step and draw, target_accept in (0, 1); got {self}")
        if self.sampler not in SAMPLERS:
            raise InputError(f"unknown sampler {self.sampler!r}: choose {' or '.join(SAMPLERS)}")


def load_pymc():
    """PyMC, imported late because it takes seconds, and told not to look for a BLAS.

    Looking takes longer than compiling the model, which does no linear algebra, and ends in a warning where there is none.
    """
    import pymc
    import pytensor

    if "blas__ldflags" not in os.environ.get("PYTENSOR_FLAGS", ""):
        pytensor.config.blas__ldflags = ""
    return pymc


def audit_model(counts: np.ndarray, prior_scale: tuple[float, float], strength: float | str = 0.0):
    """The PyMC model of all nodes: dimensions ``node`` and ``parameter`` (left, right).

    Args:
        counts: (n, 4) integers: n_out, false positives, n_in, false negatives.
        prior_scale: scales of the half-normal priors of (e_left, e_right).
        strength: s in [0, 1), or LEARNT for an unknown s per node.
    """
    pm = load_pymc()
    import pytensor.tensor as pt

    n_out, positives, n_in, negatives = np.asarray(counts, dtype=np.int64).T
    with pm.Model(coords={"node": np.arange(len(counts)), "parameter": ["left", "right"]}) as model:
        excess = pm.HalfNormal("excess", sigma=np.asarray(prior_scale)[None, :], dims=("node", "parameter"))
        u, v = pm.Uniform("u", dims="node"), pm.Uniform("v", dims="node")
        left, right = excess[:, 0], excess[:, 1]
        if strength == 0:
            best_alpha, best_beta = _vertex(left, right)
            alpha = u * best_alpha + v * (1 - best_alpha)
            beta = 1 - u * (1 - best_beta) - v * best_beta
            pm.Binomial("false_positives", n=n_out, p=alpha, observed=positives, dims="node")
            pm.Binomial("false_negatives", n=n_in, p=beta, observed=negatives, dims="node")
        else:
            if strength == LEARNT:
                strength = pm.Uniform("strength", dims="node")
            logs = [
                share
                + pm.logp(pm.Binomial.dist(n_out, alpha), positives)
                + pm.logp(pm.Binomial.dist(n_in, beta), negatives)
                for alpha, beta, share in _ring_points(left, right, strength, u, v)
            ]
            pm.Potential("counts", pt.logsumexp(pt.stack(logs), axis=0), dims="node")
    return model


def _vertex(left, right):
    """Errors of the best attack. Numerator and denominator are divided by U: accurate and finite for all parameters."""
    import pytensor.tensor as pt

    both = -pt.expm1(-left - right)
    return -pt.expm1(-left) * pt.exp(-right) / both, -pt.expm1(-right) * pt.exp(-left) / both


def _ring_points(left, right, strength, u, v):
    """The images of (u, v) in the four triangles of the ring, (alpha, beta, log of the share of the area)."""
    import pytensor.tensor as pt

    outer, inner = _vertex(left, right), _vertex(strength * left, strength * right)
    root = pt.sqrt(u)  # a triangle is thin at its first corner
    # Twice the areas, from the cross products of the sides, with 1 - beta* = U alpha* and 1 - alpha* = beta* / L.
    near_no = inner[0] * (1 - outer[1]) * -pt.expm1(-(1 - strength) * right)
    near_yes = inner[1] * (1 - outer[0]) * -pt.expm1(-(1 - strength) * left)
    points = []
    for corner, area in (((0.0, 1.0), near_no), ((1.0, 0.0), near_yes)):
        alpha, beta = (
            start + root * ((1 - v) * (one - start) + v * (other - start))
            for start, one, other in zip(corner, outer, inner)
        )
        share = pt.log(area) - pt.log(2 * (near_no + near_yes))
        points += [(alpha, beta, share), (1 - alpha, 1 - beta, share)]
    return points


def pymc_sample(
    counts: np.ndarray,
    prior_scale: tuple[float, float],
    generator: np.random.Generator,
    strength: float | str = 0.0,
    settings: PymcSettings = PymcSettings(),
) -> tuple[np.ndarray, int]:
    """Posterior draws of the excess parameters of every node.

    Args:
        counts: (n, 4) integers: n_out, false positives, n_in, false negatives.
        prior_scale: scales of the half-normal priors of (e_left, e_right).
        generator: gives the sampler its seed.
        strength: s in [0, 1), or LEARNT.
        settings: numbers of chains and steps.

    Returns:
        Draws (chains, draws, n, 2) of (e_left, e_right), in ratio form, and the number of divergent steps.
    """
    pm = load_pymc()
    with audit_model(counts, prior_scale, strength):
        trace = pm.sample(
            draws=settings.draws,
            tune=settings.tune,
            chains=settings.chains,
            cores=1,
            target_accept=settings.target_accept,
            nuts_sampler=settings.sampler,
            random_seed=int(generator.integers(2**31 - 1)),
            progressbar=False,
            quiet=True,
            compute_convergence_checks=False,
        )
    return trace.posterior["excess"].to_numpy(), int(trace.sample_stats["diverging"].sum())
