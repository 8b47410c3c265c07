"""Inclusion priors gamma_i = Pr(node i is sampled), and how well they are known.

    where a formula exists (uniform, Bernoulli) or a one-dimensional integral (degree-weighted): use it
    otherwise draw T samples; node i is in c_i of them
    prior <- (c + 1/2) / (T + 1), log-odds <- log((c + 1/2) / (T - c + 1/2))
    standard error of the log-odds <- 1 / sqrt(T prior (1 - prior)); interval of the prior <- Jeffreys

The prior enters Bayesian Membership Privacy (Yildirim and Khosla, arXiv:2606.04069) through its log-odds, so that is
where its uncertainty is stated. Interval: Brown, Cai and DasGupta, "Interval estimation for a binomial proportion",
2001.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import logit
from scipy.stats import beta

from lethe_lib.errors import InputError
from lethe_lib.sampling.draws import draw_counts
from lethe_lib.sampling.graph import sampling_graph, target_size
from lethe_lib.sampling.sampler import check_count
from lethe_lib.sampling.samplers import SAMPLERS


@dataclass(frozen=True)
class InclusionPriors:
    """The inclusion prior of every node, with its uncertainty.

    Attributes:
        prior: (n,) float64, probability of being sampled, in [0, 1].
        log_odds: (n,) float64, log(prior / (1 - prior)); infinite where the prior is known to be 0 or 1.
        standard_error: (n,) float64, of ``log_odds``; 0 where the prior is known exactly.
        interval: (2, n) float64, lower and upper end for ``prior``; both equal to it where it is known exactly.
        draws: number of draws T behind a simulation, else 0.
        method: "closed form", "quadrature" (exact to about 1e-9) or "simulation".
        degenerate: (d,) int64, nodes whose prior is 0 or 1; after a simulation those sampled in none or all of
            the draws, which is all that T draws can tell. Report them apart: their prior odds are 0 or infinite.
    """

    prior: np.ndarray
    log_odds: np.ndarray
    standard_error: np.ndarray
    interval: np.ndarray
    draws: int
    method: str
    degenerate: np.ndarray

    @property
    def log_odds_interval(self) -> np.ndarray:
        """(2, n) float64: the ends of ``interval`` as log-odds; they may be infinite."""
        return logit(self.interval)


def inclusion_priors(
    sampler: str,
    data,
    ratio,
    draws: int = 10_000,
    seed: int = 0,
    *,
    simulate: bool = False,
    confidence: float = 0.95,
    threads: int = 1,
    **settings,
) -> InclusionPriors:
    """The probability of each node to be sampled: exact where a formula exists, by simulation otherwise.

    Args:
        sampler: a name in ``SAMPLERS``.
        data: canonical graph, or its ``sampling_graph``.
        ratio: share of all nodes, in (0, 1].
        draws: number of draws T of a simulation; not used where the prior is exact.
        seed: seed of a simulation.
        simulate: simulate even where the prior is known exactly, for instance to check the one by the other.
        confidence: nominal coverage of the interval.
        threads: of a simulation; the result does not depend on it.
        **settings: the fields of the sampler's settings.

    Raises:
        InputError: an unknown sampler or setting, or a ratio that the graph cannot serve.

    Example:
        >>> inclusion_priors("uniform", load_graph("cora"), ratio=0.1).prior[0]  # doctest: +SKIP
        0.09970457902511078
    """
    entry = SAMPLERS[sampler]
    chosen = entry.configure(settings)
    if entry.exact_priors is None or simulate:
        counted = draw_counts(sampler, data, ratio, draws, seed, threads=threads, **settings)
        return priors_from_counts(counted.counts, draws, confidence)
    graph = sampling_graph(data)
    target_size(graph, ratio)
    prior, complement, method = entry.exact_priors(graph, ratio, chosen)
    with np.errstate(divide="ignore"):
        log_odds = np.log(prior) - np.log(complement)
    return InclusionPriors(
        prior=prior,
        log_odds=log_odds,
        standard_error=np.zeros(len(prior)),
        interval=np.stack([prior, prior]),
        draws=0,
        method=method,
        degenerate=np.flatnonzero(np.isinf(log_odds)),
    )


def priors_from_counts(counts: np.ndarray, draws: int, confidence: float = 0.95) -> InclusionPriors:
    """The simulated priors behind given counts.

    Args:
        counts: (n,) in how many draws each node was sampled.
        draws: number of draws T.
        confidence: nominal coverage of the interval, in (0, 1).

    Raises:
        InputError: counts outside 0..T, or a confidence outside (0, 1).
    """
    check_count("draws", draws)
    counts = np.asarray(counts, dtype=np.float64)
    if not 0 < confidence < 1:
        raise InputError(f"confidence must be in (0, 1), not {confidence!r}")
    if ((counts < 0) | (counts > draws)).any():
        raise InputError(f"counts must lie between 0 and draws={draws}")
    prior = (counts + 0.5) / (draws + 1)
    tail = (1 - confidence) / 2
    lower = beta.ppf(tail, counts + 0.5, draws - counts + 0.5)
    upper = beta.ppf(1 - tail, counts + 0.5, draws - counts + 0.5)
    # A node seen never (always) may have prior 0 (1); Jeffreys' interval alone would exclude that.
    lower[counts == 0], upper[counts == draws] = 0.0, 1.0
    return InclusionPriors(
        prior=prior,
        log_odds=np.log(counts + 0.5) - np.log(draws - counts + 0.5),
        standard_error=1 / np.sqrt(draws * prior * (1 - prior)),
        interval=np.stack([lower, upper]),
        draws=draws,
        method="simulation",
        degenerate=np.flatnonzero((counts == 0) | (counts == draws)),
    )
