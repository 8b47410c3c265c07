"""How far inclusion priors are from uniform, and what they reveal before any training.

Every extreme of noisy estimates is biased outwards: the largest of n simulated log-odds is too large. So nodes are
chosen on one set of draws and measured on another, which makes the estimate of the chosen node unbiased, and a lower
bound for the true extreme.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import logit

from lethe_lib.errors import InputError
from lethe_lib.sampling.priors import InclusionPriors, priors_from_counts


def log_odds_spread(priors: InclusionPriors) -> float:
    """The standard deviation over nodes of the true log-odds: Monte Carlo variance removed, degenerate nodes left out.

    Returns:
        nats, at least 0; 0 where the estimates vary no more than their standard errors explain.
    """
    kept = np.setdiff1d(np.arange(len(priors.prior)), priors.degenerate)
    if len(kept) < 2:
        return 0.0
    noise = np.mean(priors.standard_error[kept] ** 2)
    # Differences to one node, so that equal priors have variance 0 without rounding.
    variance = np.var(priors.log_odds[kept] - priors.log_odds[kept[0]], ddof=1)
    return float(np.sqrt(max(0.0, variance - noise)))


def total_variation(prior: np.ndarray) -> float:
    """Total variation distance between the shares prior_i / sum(prior) and the uniform shares 1 / n.

    It is the share of places in a sample that would have to go to other nodes to make every node equally likely.

    Args:
        prior: (n,) inclusion probabilities, not all 0.

    Returns:
        in [0, 1); 0 for a uniform sampler. Simulated priors add a floor of Monte Carlo noise, which is that of the
        uniform sampler with the same number of draws.

    Example:
        Priors 0.3, 0.1, 0.1, 0.1 have shares 1/2, 1/6, 1/6, 1/6, and distance 1/4.
    """
    share = np.asarray(prior, dtype=np.float64) / np.sum(prior)
    return float(np.abs(share - 1 / len(share)).sum() / 2)


@dataclass(frozen=True)
class PriorBound:
    """A parameter that no training, however private, can go below (posterior-odds form of BMP).

    Attributes:
        value: log prior odds of ``node`` for revealing membership (eps_R), minus the log prior odds for revealing
            non-membership (eps_L), in nats.
        interval: (lower, upper) of that value; the upper end is infinite where the draws cannot tell the prior from 0
            or 1.
        node: the node that sets the bound.
    """

    value: float
    interval: tuple[float, float]
    node: int


def sampled_prior_bounds(choose: np.ndarray, measure: np.ndarray, draws: int, confidence: float = 0.95):
    """Lower bounds of eps_R and eps_L that follow from sampling alone: max_i log o_i and max_i (-log o_i).

    Args:
        choose: (n,) counts over one set of ``draws`` draws, on which the extreme nodes are chosen.
        measure: (n,) counts over another set of ``draws`` draws, on which they are measured.
        draws: number of draws in each set.
        confidence: of each interval.

    Returns:
        (eps_R bound, eps_L bound), two ``PriorBound``.

    Raises:
        InputError: the two sets of counts are not of the same length.
    """
    if np.shape(choose) != np.shape(measure):
        raise InputError(f"choose and measure count different nodes: {np.shape(choose)} and {np.shape(measure)}")
    bounds = []
    for sign, node in ((1, int(np.argmax(choose))), (-1, int(np.argmin(choose)))):
        found = priors_from_counts(np.asarray(measure)[[node]], draws, confidence)
        low, high = sorted(sign * logit(found.interval[:, 0]))
        bounds.append(PriorBound(float(sign * found.log_odds[0]), (float(low), float(high)), node))
    return tuple(bounds)


@dataclass(frozen=True)
class Contrast:
    """How much likelier the likeliest tenth of the nodes is than the least likely tenth.

    Attributes:
        top: mean prior of the top tenth.
        bottom: mean prior of the bottom tenth.
        log_ratio: log(top / bottom), in nats; infinite where the bottom tenth was never sampled.
        standard_error: of ``log_ratio``, from the variation between draws.
    """

    top: float
    bottom: float
    log_ratio: float
    standard_error: float


def decile_contrast(choose: np.ndarray, memberships: np.ndarray) -> Contrast:
    """The contrast between the tenths of the nodes with the largest and the smallest counts, on other draws.

    Args:
        choose: (n,) counts by which the tenths are chosen.
        memberships: (draws, n) bool of independent draws, on which they are measured.

    Example:
        A uniform sampler has a log ratio of 0 up to its standard error, whatever ``choose`` says.
    """
    order = np.argsort(choose, kind="stable")
    tenth = max(1, len(order) // 10)
    bottom, top = memberships[:, order[:tenth]].mean(axis=1), memberships[:, order[-tenth:]].mean(axis=1)
    if bottom.mean() == 0:
        return Contrast(float(top.mean()), 0.0, float("inf"), 0.0)
    influence = top / top.mean() - bottom / bottom.mean()
    return Contrast(
        top=float(top.mean()),
        bottom=float(bottom.mean()),
        log_ratio=float(np.log(top.mean() / bottom.mean())),
        standard_error=float(influence.std(ddof=1) / np.sqrt(len(influence))),
    )
