"""Posterior of the parameters by Hamiltonian Monte Carlo, all nodes in one PyMC model.

Model after C. Yildirim et al., arXiv:2504.16683, with the region of S. Yildirim and M. Khosla, arXiv:2606.04069. A uniform point
of the region is a linear image of a uniform point of the square, so nothing is constrained and no area appears:

    e_left, e_right ~ HalfNormal(prior scale);  u, v ~ Uniform(0, 1)
    alpha* = (1 - L)/(U - L), beta* = L (U - 1)/(U - L), with L = e^-e_left, U = e^e_right
    alpha = u alpha* + v (1 - alpha*),  beta = 1 - u (1 - beta*) - v beta*
    false positives ~ Bin(n_out, alpha),  false negatives ~ Bin(n_in, beta)
    sample with the No-U-Turn sampler of nutpie where it is installed, else with PyMC's own
"""

import importlib.util
from dataclasses import dataclass, field

import numpy as np

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


def audit_model(counts: np.ndarray, prior_scale: tuple[float, float]):
    """The PyMC model of all nodes: dimensions ``node`` and ``parameter`` (left, right)."""
    # Imported here: PyMC takes seconds to import, and the other methods of the audit do without it.
    import pymc as pm
    import pytensor.tensor as pt

    n_out, positives, n_in, negatives = np.asarray(counts, dtype=np.int64).T
    with pm.Model(coords={"node": np.arange(len(counts)), "parameter": ["left", "right"]}) as model:
        excess = pm.HalfNormal("excess", sigma=np.asarray(prior_scale)[None, :], dims=("node", "parameter"))
        u, v = pm.Uniform("u", dims="node"), pm.Uniform("v", dims="node")
        left, right = excess[:, 0], excess[:, 1]
        # Numerator and denominator divided by U: accurate for small parameters, and finite for large ones.
        both = -pt.expm1(-left - right)
        best_alpha = -pt.expm1(-left) * pt.exp(-right) / both
        best_beta = -pt.expm1(-right) * pt.exp(-left) / both
        alpha = u * best_alpha + v * (1 - best_alpha)
        beta = 1 - u * (1 - best_beta) - v * best_beta
        pm.Binomial("false_positives", n=n_out, p=alpha, observed=positives, dims="node")
        pm.Binomial("false_negatives", n=n_in, p=beta, observed=negatives, dims="node")
    return model


def pymc_sample(
    counts: np.ndarray,
    prior_scale: tuple[float, float],
    generator: np.random.Generator,
    settings: PymcSettings = PymcSettings(),
) -> tuple[np.ndarray, int]:
    """Posterior draws of the excess parameters of every node.

    Args:
        counts: (n, 4) integers: n_out, false positives, n_in, false negatives.
        prior_scale: scales of the half-normal priors of (e_left, e_right).
        generator: gives the sampler its seed.
        settings: numbers of chains and steps.

    Returns:
        Draws (chains, draws, n, 2) of (e_left, e_right), in ratio form, and the number of divergent steps.
    """
    import pymc as pm

    with audit_model(counts, prior_scale):
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
