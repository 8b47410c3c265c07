"""What all nodes together say: one pair of parameters for the whole algorithm, or a prior scale learnt from all nodes.

Model of ``audit.py``; pooling in the odds form follows the "for all nodes" of S. Yildirim, M. Khosla, arXiv:2606.04069; the
learnt scale is parametric empirical Bayes (Efron, "Large-Scale Inference", 2010, chapter 1).

    pooled        common (eps_left, eps_right) in odds form, so node i has e_left = eps_left + log o_i and
                  e_right = eps_right - log o_i; no algorithm is below max(-log o_i) and max(log o_i), so
                  eps = these bounds + half-normal;  posterior = prior x product over nodes of m_i(e)
    hierarchical  e of every node half-normal with scales common to all nodes, which maximise the sum over nodes of
                  log evidence; then audit(..., prior_scale=these)

Both need the table of marginal likelihoods that the quadrature computes anyway.
"""

from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize
from scipy.sparse import csr_array

from lethe_lib.bmp.audit import PRIOR_SCALE, check_counts, check_scale
from lethe_lib.bmp.audit_quadrature import (
    GridSettings,
    MarginalTable,
    check_strength,
    from_density,
    grid_edges,
    grid_end,
    half_normal,
    interpolation_matrix,
    marginal_tables,
    spacing,
    strength_rule,
)
from lethe_lib.bmp.audit_result import level_index
from lethe_lib.bmp.bounds import Parameters, prior_bounds
from lethe_lib.errors import InputError

SMALLEST = 1e-300  # a marginal likelihood below counts as this: its logarithm must stay finite
MASS_LIMIT = 0.02  # largest error of the total mass of any node
FEWEST_CELLS = 4  # that the 5 to 95 % interval of the common parameters spans: from there on its width is within 2 %
NARROW = 0.03  # nats: intervals below are not resolved further, such as those at 0 where nothing leaks
MOST_CELLS = 1024  # per axis
COARSE = 2  # the learnt scale looks at every second edge of the grid
SCALES = (0.05, 10.0)  # range in which scales are sought


@dataclass(frozen=True)
class PooledAudit:
    """Posterior of parameters common to all nodes, in odds form. Arrays of size 2 hold (left, right).

    Args:
        bounds: the prior bounds of all nodes together, (2,): no algorithm is below.
        mean, quantiles: posterior mean (2,) and quantiles at LEVELS, (2, 5).
        log_evidence: log probability of all counts under the model.
        strength: posterior mean of the attack strength, or the given one.
        nodes: number of nodes that were pooled.
    """

    bounds: np.ndarray
    mean: np.ndarray
    quantiles: np.ndarray
    log_evidence: float
    strength: float
    nodes: int

    def quantile(self, level: float) -> np.ndarray:
        """Posterior quantiles at one of LEVELS, (2,)."""
        return self.quantiles[:, level_index(level)]


def pooled_audit(
    n_out,
    false_positives,
    n_in,
    false_negatives,
    priors,
    prior_scale=PRIOR_SCALE,
    strength: float | str = 0.0,
    grid: int = 128,
) -> PooledAudit:
    """Posterior of one pair (eps_left, eps_right) for all nodes, from one attack per node.

    Counts of different nodes are taken as independent given the parameters; nodes that share shadow models are not quite,
    so intervals are rather too narrow.

    Args:
        n_out, false_positives, n_in, false_negatives, priors: as in :func:`lethe_lib.bmp.audit`. Every node must be usable.
        prior_scale: scale of the half-normal prior of what lies above the common prior bounds.
        strength: s in [0, 1), as in :func:`lethe_lib.bmp.audit`; "learnt" here means one unknown s for all nodes.
        grid: cells per axis to begin with. More nodes give narrower posteriors: the cells are doubled until the 5 to 95 %
            intervals span FEWEST_CELLS of them or are NARROW, up to MOST_CELLS.

    Raises:
        InputError: bad data; a node that was never in, never out, or has prior 0 or 1: leave such nodes out; or so many nodes
            that MOST_CELLS are too few.
    """
    counts, prior, scale = _usable(n_out, false_positives, n_in, false_negatives, priors, prior_scale)
    check_strength(strength)
    GridSettings(grid)  # refuses a grid that is too coarse
    own = np.stack(prior_bounds(prior), axis=1)
    bounds = own.max(0)
    extra = bounds - own  # how far each node's excess begins above 0, both sides at least 0
    above = grid_edges(grid, grid_end(scale))
    edges = grid_edges(grid, above[-1] + extra.max())
    keys, multiples = np.unique(np.column_stack([counts, extra]), axis=0, return_counts=True)
    strengths, shares = strength_rule(strength)
    totals = np.stack([_log_likelihood(keys, multiples, edges, above, one) for one in strengths])
    weight = [half_normal(above, one) * spacing(above) for one in scale]
    joints = np.exp(totals - totals.max()) * shares[:, None, None] * weight[0][:, None] * weight[1]
    joint, evidence = joints.sum(0), joints.sum()
    mean, quantiles = zip(*(from_density(joint.sum(axis)[None] / evidence, above) for axis in (1, 0)))
    mean, quantiles = np.concatenate(mean), np.concatenate(quantiles)
    ends = quantiles[:, [0, -1]]
    spanned, width = np.diff(np.interp(ends, above, np.arange(len(above)))), np.diff(ends)
    if ((spanned < FEWEST_CELLS) & (width > NARROW)).any():
        if 2 * grid > MOST_CELLS:
            raise InputError(
                f"{len(counts)} nodes know the parameters better than {grid} cells per axis: pool fewer of them"
            )
        return pooled_audit(*counts.T, prior, scale, strength, 2 * grid)
    log_evidence = float(np.log(evidence) + totals.max())
    learnt = float(strengths @ joints.sum((1, 2)) / evidence)
    return PooledAudit(bounds, bounds + mean, bounds[:, None] + quantiles, log_evidence, learnt, len(counts))


def _log_likelihood(keys, multiples, edges, above, strength: float) -> np.ndarray:
    """Log probability of all counts at all pairs of common parameters, their bounds plus ``above``."""
    total, start = np.zeros((len(above), len(above))), 0
    for table in marginal_tables(keys[:, :4].astype(np.int64), edges, strength):
        _check_mass(table, len(edges) - 1)
        logs = np.log(np.maximum(table.marginal, SMALLEST))
        for index, one in enumerate(logs):
            left, right = (csr_array(interpolation_matrix(edges, above + more)) for more in keys[start + index, 4:])
            total += multiples[start + index] * ((right @ (left @ one).T).T + np.log(table.scale[index]))
        start += len(logs)
    return total


def learnt_prior_scale(
    n_out, false_positives, n_in, false_negatives, priors, strength: float | str = 0.0, grid: int = 128
) -> Parameters:
    """The prior scales of the excess parameters under which all nodes together are most probable.

    Args:
        n_out, false_positives, n_in, false_negatives, priors, grid: as in :func:`pooled_audit`.
        strength: as in :func:`lethe_lib.bmp.audit`.

    Returns:
        Scales (left, right) within SCALES, for ``audit(..., prior_scale=...)``: the hierarchical audit.
    """
    counts, _, scale = _usable(n_out, false_positives, n_in, false_negatives, priors, SCALES[1])
    check_strength(strength)
    GridSettings(grid)
    distinct, multiples = np.unique(counts, axis=0, return_counts=True)
    if grid % COARSE:
        raise InputError(f"grid = {grid} must be a multiple of {COARSE}")
    edges = grid_edges(grid, grid_end(scale))
    coarse = edges[::COARSE]
    parts = []
    for table in marginal_tables(distinct, edges, strength):
        _check_mass(table, grid)
        parts.append(table.marginal[:, ::COARSE, ::COARSE])
    marginal = np.concatenate(parts)

    def loss(log_scales: np.ndarray) -> float:
        left, right = (half_normal(coarse, one) * spacing(coarse) for one in np.exp(log_scales))
        return -float(multiples @ np.log(marginal @ right @ left))

    limits = np.log(SCALES)
    best = minimize(loss, np.zeros(2), method="L-BFGS-B", bounds=[tuple(limits)] * 2)
    if not best.success:
        raise ArithmeticError(f"no best prior scale was found: {best.message}")
    return Parameters(*np.exp(best.x))


def _check_mass(table: MarginalTable, grid: int) -> None:
    error = np.abs(table.mass - 1).max()
    if error > MASS_LIMIT:
        raise InputError(f"{grid} cells per axis miss {error:.1%} of the mass of a node with so many runs: double grid")


def _usable(n_out, false_positives, n_in, false_negatives, priors, prior_scale):
    counts, prior, nodes = check_counts(n_out, false_positives, n_in, false_negatives, priors)
    bad = (counts[:, 0] == 0) | (counts[:, 2] == 0) | (prior <= 0) | (prior >= 1)
    if bad.any():
        raise InputError(
            f"node {nodes[bad][0]} ({bad.sum()} such nodes) was never in, never out, or has prior 0 or 1: "
            "leave out what audit(...) gives another status than ok"
        )
    return counts, prior, check_scale(prior_scale)
