"""Posterior of the parameters of every node by a cumulative sum over a grid: the reference of the audit.

Model (after C. Yildirim et al., arXiv:2504.16683, with the region of S. Yildirim and M. Khosla, arXiv:2606.04069): excess
parameters e_left, e_right are half-normal, the errors (alpha, beta) of the attack are uniform on the region R(e), false
positives are Bin(n_out, alpha), false negatives Bin(n_in, beta). Why no integration is needed: every point with
alpha + beta < 1 is the corner of exactly one region, that of l = log((1-alpha)/beta), r = log((1-beta)/alpha), and lies in
R(e) iff l <= e_left and r <= e_right; a point and its mirror (1-alpha, 1-beta) lie in the same regions.

    on a grid of (l, r): cell weight = likelihood at (alpha, beta) and at its mirror x half the exact area of the cell
    F = cumulative sum of the weights along both axes        = likelihood integrated over R(e)
    marginal likelihood(e) = F(e) / area(e)                  with strength s: (F(e) - F(s e)) / (area(e) - area(s e))
    strength learnt: the average of these over s, uniform on (0, 1), by a Gauss-Legendre rule
    posterior(e) = marginal likelihood x prior, normalised on the grid
    corner posterior (errors flat on the square, pushed through the smallest parameters) = the cell weights themselves

The weights of all cells sum to 1 exactly, which the grid misses by the reported ``mass_error``.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy.integrate import cumulative_simpson
from scipy.interpolate import PchipInterpolator
from scipy.special import betaln

from lethe_lib.bmp.region import error_region
from lethe_lib.errors import InputError

LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95)
MEMORY = 256e6  # bytes for the tables of one batch of count vectors
PRIOR_TAIL = 6.5  # the grid ends this many prior scales from 0: beyond lie 1e-10 of the prior
CORNER_END = 20.0  # and not before this, so that corners are covered whatever the prior is
ARRAYS = ("evidence", "mean", "quantiles", "corner_mean", "corner_quantiles", "mass_error")  # one row per count vector
TINY = 1e-200  # probabilities below are 0: their slopes would overflow
REFINE = 8  # points per cell when a distribution function is inverted
LEARNT = "learnt"  # a strength that is uniform on (0, 1) and integrated out
STRENGTHS = 10  # points of the rule for that integral


@dataclass(frozen=True)
class GridSettings:
    """Settings of the quadrature.

    Args:
        grid: number of cells per axis at first. 128 gives means to about 1e-3, 512 to about 1e-5.
        tolerance: largest mass error. Count vectors above it, from hundreds of runs, are done again with twice the cells.
        largest: no grid has more cells per axis than this.
        draws: joint posterior draws per node, taken from the grid with an explicit generator.
    """

    grid: int = 128
    tolerance: float = 2e-3
    largest: int = 1024
    draws: int = 1000

    def __post_init__(self):
        if self.grid < 8:
            raise InputError(f"grid = {self.grid} is too coarse: use at least 8 cells per axis, 128 by default")
        if self.draws < 0:
            raise InputError(f"draws = {self.draws} must not be negative")


@dataclass(frozen=True)
class GridPosterior:
    """What the grid gives for each of k count vectors; axis 1 of size 2 is (left, right), in ratio form.

    Args:
        evidence: probability of the counts under the model, shape (k,); 0 when the prior excludes them, and then mean,
            quantiles and draws are nan.
        mean, quantiles: posterior mean (k, 2) and quantiles at LEVELS (k, 2, 5) of the excess parameters.
        corner_mean, corner_quantiles: the same of the corner.
        mass_error: |sum of all cell weights - 1|, shape (k,).
        draws: joint draws, shape (draws, k, 2).
    """

    evidence: np.ndarray
    mean: np.ndarray
    quantiles: np.ndarray
    corner_mean: np.ndarray
    corner_quantiles: np.ndarray
    mass_error: np.ndarray
    draws: np.ndarray


def quadrature(
    counts: np.ndarray,
    prior_scale: tuple[float, float],
    generator: np.random.Generator,
    strength: float | str = 0.0,
    settings: GridSettings = GridSettings(),
) -> GridPosterior:
    """Posterior and corner posterior of every count vector.

    Args:
        counts: (k, 4) integers: n_out, false positives, n_in, false negatives, with n_out and n_in at least 1.
        prior_scale: scales of the half-normal priors of (e_left, e_right).
        generator: for the joint draws.
        strength: s in [0, 1); the errors are uniform on R(e) without R(s e), so that attacks are known to be that good.
            LEARNT: s is not known, and uniform on (0, 1) for every node.
        settings: grid and number of draws.
    """
    counts, cells = np.asarray(counts), settings.grid
    result = _on_one_grid(counts, prior_scale, generator, strength, cells, settings.draws)
    while (coarse := np.flatnonzero(result.mass_error > settings.tolerance)).size and 2 * cells <= settings.largest:
        cells *= 2
        finer = _on_one_grid(counts[coarse], prior_scale, generator, strength, cells, settings.draws)
        for name in ARRAYS:
            getattr(result, name)[coarse] = getattr(finer, name)
        result.draws[:, coarse] = finer.draws
    return result


def _on_one_grid(counts, prior_scale, generator, strength: float | str, cells: int, draws: int) -> GridPosterior:
    edges = grid_edges(cells, grid_end(prior_scale))
    weight = [half_normal(edges, scale) * spacing(edges) for scale in prior_scale]
    parts = []
    for table in marginal_tables(counts, edges, strength):
        joint = table.marginal * weight[0][:, None] * weight[1][None, :]
        evidence = joint.sum((1, 2))
        excluded = ~(evidence > 0)
        joint[excluded] = 1.0  # any law will do: its numbers are blanked below
        share = 1 / joint.sum((1, 2))[:, None]
        mean, quantiles = zip(*(from_density(joint.sum(axis) * share, edges) for axis in (2, 1)))
        corner = [table.corner.sum(axis) / table.mass[:, None] for axis in (2, 1)]
        corner_mean, corner_quantiles = zip(*(_from_cells(mass, edges) for mass in corner))
        part = GridPosterior(
            evidence * table.scale,
            np.stack(mean, 1),
            np.stack(quantiles, 1),
            np.stack(corner_mean, 1),
            np.stack(corner_quantiles, 1),
            np.abs(table.mass - 1),
            _joint_draws(joint, edges, generator, draws),
        )
        part.mean[excluded] = part.quantiles[excluded] = part.draws[:, excluded] = np.nan
        parts.append(part)
    stacked = {name: np.concatenate([getattr(part, name) for part in parts]) for name in ARRAYS}
    return GridPosterior(**stacked, draws=np.concatenate([part.draws for part in parts], axis=1))


def grid_end(prior_scale: tuple[float, float]) -> float:
    """Where grids may end: nothing of note lies beyond, neither of the prior nor of the corner."""
    return max(CORNER_END, PRIOR_TAIL * max(prior_scale))


def grid_edges(grid: int, end: float) -> np.ndarray:
    """Edges of the cells from 0 to ``end``, (grid + 1,): fourth powers, dense near 0 where regions change fastest."""
    return end * np.linspace(0, 1, grid + 1) ** 4


@dataclass(frozen=True)
class MarginalTable:
    """Tables of one batch of count vectors.

    Args:
        marginal: marginal likelihood over ``scale`` at all pairs of edges, (k, grid + 1, grid + 1).
        corner: weights of the cells, (k, grid, grid); rows are e_left, columns e_right.
        mass: their sums, 1 up to the error of the grid, (k,).
        scale: 1 / ((n_out + 1)(n_in + 1)), the probability of the counts when errors are uniform on the square, (k,).
    """

    marginal: np.ndarray
    corner: np.ndarray
    mass: np.ndarray
    scale: np.ndarray


def check_strength(strength: float | str) -> float | str:
    """``strength`` itself, or an InputError."""
    if isinstance(strength, str):
        if strength != LEARNT:
            raise InputError(f"the strength must be a number in [0, 1) or {LEARNT!r}, got {strength!r}")
    elif not 0 <= strength < 1:
        raise InputError(f"the strength must lie in [0, 1), got {strength:g}")
    return strength


def strength_rule(strength: float | str) -> tuple[np.ndarray, np.ndarray]:
    """Strengths and weights, summing to 1, whose weighted average of marginal likelihoods is that under ``strength``."""
    if strength != LEARNT:
        return np.array([strength]), np.ones(1)
    points, weights = np.polynomial.legendre.leggauss(STRENGTHS)
    return (points + 1) / 2, weights / 2


def marginal_tables(counts: np.ndarray, edges: np.ndarray, strength: float | str = 0.0) -> Iterator[MarginalTable]:
    """Marginal likelihoods on the grid, in batches of bounded memory, in the order of ``counts``."""
    counts = np.asarray(counts, dtype=np.float64)
    area = error_region(edges[:, None], edges[None, :]).area
    measure = np.diff(np.diff(area, axis=0), axis=1) / 2
    middle = edges[-1] * ((np.arange(len(edges) - 1) + 0.5) / (len(edges) - 1)) ** 4
    alpha, beta = error_region(middle[:, None], middle[None, :]).vertex
    logs = np.stack([np.log(alpha), np.log1p(-alpha), np.log(beta), np.log1p(-beta)]).reshape(4, -1)
    batch = max(1, int(MEMORY / (4 * 8 * area.size)))
    for start in range(0, len(counts), batch):
        n_out, positives, n_in, negatives = counts[start : start + batch].T
        powers = np.stack([positives, n_out - positives, negatives, n_in - negatives], axis=1)
        constant = (betaln(powers[:, 0] + 1, powers[:, 1] + 1) + betaln(powers[:, 2] + 1, powers[:, 3] + 1))[:, None]
        # The mirror (1 - alpha, 1 - beta) swaps the powers of alpha and 1 - alpha, and of beta and 1 - beta.
        corner = np.exp(powers @ logs - constant)
        corner += np.exp(powers[:, [1, 0, 3, 2]] @ logs - constant)
        corner = corner.reshape(-1, *measure.shape) * measure
        inside = np.zeros((len(corner), *area.shape))
        np.cumsum(corner, axis=1, out=inside[:, 1:, 1:])
        np.cumsum(inside[:, 1:, 1:], axis=2, out=inside[:, 1:, 1:])
        mass = inside[:, -1, -1].copy()
        average = marginal = _per_area(inside, area)
        if strength != 0:
            parts = ((w, _without_inner(average, edges, area, s)) for s, w in zip(*strength_rule(strength)))
            marginal = sum(weight * part for weight, part in parts)
        yield MarginalTable(marginal, corner, mass, 1 / ((n_out + 1) * (n_in + 1)))


def _per_area(inside: np.ndarray, area: np.ndarray) -> np.ndarray:
    """The likelihood averaged over each region. At the border e = 0, which has no area and no weight, the neighbour."""
    inside[:, 1:, 1:] /= area[1:, 1:]
    inside[:, 0, :] = inside[:, 1, :]
    inside[:, :, 0] = inside[:, :, 1]
    return inside


def _without_inner(average: np.ndarray, edges: np.ndarray, area: np.ndarray, strength: float) -> np.ndarray:
    """Averages over R(e) without R(s e); the average over R(s e) by interpolation, its area exactly."""
    inner = average
    for axis in (1, 2):
        left, share = _between(edges, strength * edges)
        share = share[:, None] if axis == 1 else share
        inner = (1 - share) * inner.take(left, axis) + share * inner.take(left + 1, axis)
    inner_area = error_region(strength * edges[:, None], strength * edges[None, :]).area
    ring = np.where(area > 0, area - inner_area, 1.0)
    return np.maximum(average * area - inner * inner_area, 0.0) / ring


def interpolation_matrix(edges: np.ndarray, points: np.ndarray) -> np.ndarray:
    """Matrix (len(points), len(edges)) of linear interpolation in the fourth root of the parameter."""
    left, share = _between(edges, points)
    matrix, rows = np.zeros((len(points), len(edges))), np.arange(len(points))
    matrix[rows, left], matrix[rows, left + 1] = 1 - share, share
    return matrix


def _between(edges: np.ndarray, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The edge on the left of each point, and how far towards the next it lies in the fourth root, in [0, 1]."""
    position = (points / edges[-1]) ** 0.25 * (len(edges) - 1)
    left = np.minimum(position.astype(np.int64), len(edges) - 2)
    return left, position - left


def half_normal(edges: np.ndarray, scale: float) -> np.ndarray:
    return np.sqrt(2 / np.pi) / scale * np.exp(-0.5 * (edges / scale) ** 2)


def spacing(edges: np.ndarray) -> np.ndarray:
    """Trapezoid weights in the fourth root q of e: de = 4 end q^3 dq; they vanish at 0, as the prior does at the end."""
    cells = len(edges) - 1
    return 4 * edges[-1] * (np.arange(cells + 1) / cells) ** 3 / cells


def from_density(mass: np.ndarray, edges: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean (k,) and quantiles (k, 5) from the trapezoid masses (k, grid + 1) of a density at the edges."""
    cumulative = cumulative_simpson(mass, dx=1.0, axis=1, initial=0.0)
    return mass @ edges, _invert(cumulative / cumulative[:, -1:], edges)


def _from_cells(mass: np.ndarray, edges: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean (k,) and quantiles (k, 5) from the masses (k, grid) of the cells."""
    middle = edges[-1] * ((np.arange(len(edges) - 1) + 0.5) / (len(edges) - 1)) ** 4
    cumulative = np.concatenate([np.zeros((len(mass), 1)), np.cumsum(mass, axis=1)], axis=1)
    return mass @ middle, _invert(cumulative, edges)


def _invert(cumulative: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """Quantiles (k, 5) of distribution functions (k, grid + 1) given at the edges, by monotone cubic interpolation."""
    cells = len(edges) - 1
    fine = np.linspace(0, 1, REFINE * cells + 1)
    cumulative = np.maximum.accumulate(np.where(cumulative < TINY, 0.0, cumulative), axis=1)
    values = PchipInterpolator(np.linspace(0, 1, cells + 1), cumulative, axis=1)(fine)
    rows, quantiles = np.arange(len(values)), []
    for level in LEVELS:
        right = np.clip((values < level).sum(1), 1, len(fine) - 1)
        low, high = values[rows, right - 1], values[rows, right]
        share = np.clip((level - low) / np.where(high > low, high - low, 1.0), 0, 1)
        quantiles.append(edges[-1] * (fine[right - 1] + share * (fine[right] - fine[right - 1])) ** 4)
    return np.stack(quantiles, axis=1)


def _joint_draws(joint: np.ndarray, edges: np.ndarray, generator: np.random.Generator, draws: int) -> np.ndarray:
    """Draws (draws, k, 2): an edge pair by its mass, moved uniformly by up to half a cell in the fourth root."""
    cells = len(edges) - 1
    result = np.empty((draws, len(joint), 2))
    for index, table in enumerate(joint):
        cumulative = np.cumsum(table)
        chosen = np.searchsorted(cumulative, generator.random(draws) * cumulative[-1], side="right")
        pair = np.stack(np.unravel_index(chosen, table.shape), axis=1)
        position = (pair + generator.random((draws, 2)) - 0.5) / cells
        result[:, index] = edges[-1] * np.abs(position) ** 4
    return result
