"""Is the audit right? Simulated audits with known parameters, ranks of the truth, and coverage of intervals.

Reference: S. Talts et al., "Validating Bayesian Inference Algorithms with Simulation-Based Calibration", arXiv:1804.06788.

    simulate   e from its prior, errors uniform on R(e) (without R(s e)), binomial counts: exactly the model of ``audit.py``
    rank       of the true e among L posterior draws: uniform on 0, ..., L when the posterior is computed right
    test       chi-square of the ranks in equal bins; the largest gap of their distribution function beside it
    coverage   share of audits whose interval holds the truth, with an exact binomial interval

Uniform ranks say that the computation is right for the model, not that the model is right for an attack: that is what audits
of attacks outside the model show, such as the best attack on a noisy bit.
"""

from dataclasses import dataclass

import numpy as np
from scipy.stats import binomtest, chisquare, kstwo

from lethe_lib.bmp.audit import PRIOR_SCALE, check_scale
from lethe_lib.bmp.audit_quadrature import LEARNT, check_strength
from lethe_lib.bmp.audit_result import Audit
from lethe_lib.bmp.region import error_region, smallest_parameters
from lethe_lib.errors import InputError
from lethe_lib.seeding import numpy_generator

DRAWS = 99  # posterior draws per rank, so that there are 100 ranks
BINS = 20


@dataclass(frozen=True)
class SimulatedAudits:
    """Audits whose answer is known. Arrays of size 2 hold (left, right), in ratio form.

    Args:
        excess: true parameters, (n, 2).
        corner: smallest parameters that allow the true errors, (n, 2); never above ``excess``.
        counts: n_out, false positives, n_in, false negatives, (n, 4).
    """

    excess: np.ndarray
    corner: np.ndarray
    counts: np.ndarray


def simulate(size: int, n_out: int, n_in: int, seed: int, prior_scale=PRIOR_SCALE, strength: float | str = 0.0):
    """Draw parameters, errors and counts from the audit's own model.

    Args:
        size: number of audits n.
        n_out, n_in: runs without and with the node.
        seed: of all draws.
        prior_scale, strength: as in :func:`lethe_lib.bmp.audit`.
    """
    scale, strength = check_scale(prior_scale), check_strength(strength)
    generator = numpy_generator(seed, "simulated audits", n_out, n_in, strength)
    excess = np.abs(generator.normal(size=(size, 2))) * scale
    strengths = generator.random(size) if strength == LEARNT else np.full(size, strength)
    errors, missing = np.empty((size, 2)), np.arange(size)
    while missing.size:  # rejection of R(s e), node by node with its own parameters
        left, right = excess[missing].T
        drawn = np.stack(error_region(left, right).draw(generator, 1), axis=-1)[0]
        errors[missing] = drawn
        inner = error_region(strengths[missing] * left, strengths[missing] * right)
        missing = missing[(strengths[missing] > 0) & inner.contains(*drawn.T)]
    positives, negatives = generator.binomial([[n_out], [n_in]], errors.T)
    counts = np.stack(np.broadcast_arrays(n_out, positives, n_in, negatives), axis=1)
    return SimulatedAudits(excess, np.stack(smallest_parameters(*errors.T), axis=1), counts)


def calibration_ranks(result: Audit, excess: np.ndarray, draws: int = DRAWS) -> np.ndarray:
    """The number of posterior draws below the truth, (n, 2), whole numbers from 0 to ``draws``.

    Draws are taken at equal distances from all chains, so that neighbours hardly depend on each other. Nodes with a bad fit
    count too: leaving them out would hide what is wrong with them.

    Args:
        result: an audit with at least ``draws`` draws per node.
        excess: true parameters in ratio form, (n, 2).
        draws: number of draws to rank among.
    """
    flat = result.draws.reshape(-1, *result.draws.shape[2:])
    if len(flat) < draws or np.isnan(flat).any():
        raise InputError(
            f"ranks among {draws} draws need as many for every node, got {len(flat)}, or nodes without draws"
        )
    chosen = flat[np.linspace(0, len(flat) - 1, draws).round().astype(int)]
    return (chosen < excess).sum(0)


def rank_p_value(ranks: np.ndarray, draws: int = DRAWS, bins: int = BINS) -> float:
    """Probability of ranks at least as uneven, if they are uniform on 0, ..., ``draws``: chi-square test in equal bins.

    Args:
        ranks: independent ones, so of one side: the two ranks of an audit come from the same counts.
        draws, bins: numbers of posterior draws behind a rank, and of bins.
    """
    ranks = np.asarray(ranks)
    if (draws + 1) % bins:
        raise InputError(f"{draws + 1} ranks do not fit into {bins} equal bins")
    if ranks.size < 5 * bins:
        raise InputError(f"{ranks.size} ranks are too few for {bins} bins: simulate at least {5 * bins} audits")
    return float(chisquare(np.bincount(ranks.ravel() * bins // (draws + 1), minlength=bins)).pvalue)


def rank_gap(ranks: np.ndarray, draws: int = DRAWS, level: float = 0.95) -> tuple[np.ndarray, float]:
    """The distribution function of independent ranks minus that of uniform ones, and how large it may get by chance.

    Returns:
        Gaps at ranks 0 to ``draws``, (draws + 1,), and the half-width of the simultaneous band of the given level
        (Kolmogorov's, which for discrete ranks is rather too wide).
    """
    counts = np.bincount(np.asarray(ranks).ravel(), minlength=draws + 1)
    uniform = np.arange(1, draws + 2) / (draws + 1)
    return np.cumsum(counts) / counts.sum() - uniform, float(kstwo.ppf(level, counts.sum()))


def coverage(low, high, truth, level: float = 0.95) -> tuple[float, float, float]:
    """Share of intervals [low, high] that hold the truth, with an exact binomial interval of the share.

    Returns:
        share, lower end, upper end.
    """
    inside = (np.asarray(low) <= truth) & (truth <= np.asarray(high))
    test = binomtest(int(inside.sum()), inside.size)
    interval = test.proportion_ci(level)
    return float(inside.mean()), float(interval.low), float(interval.high)
