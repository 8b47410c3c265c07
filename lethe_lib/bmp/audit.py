"""Audit of Bayesian Membership Privacy: from the error counts of an attack to what is known of every node's parameters.

Reference: S. Yildirim, M. Khosla, arXiv:2606.04069; the model is C. Yildirim et al., arXiv:2504.16683, with its region replaced.

    data        per node: in n_out runs without it the attack said "member" false_positives times,
                in n_in runs with it "non-member" false_negatives times
    model       excess parameters e half-normal; errors (alpha, beta) uniform on the region R(e); binomial counts
    two forms   ratio: e itself;  odds: e_left - log o and e_right + log o, so the prior bounds always hold
    methods     quadrature (the reference, all nodes at once), pymc, mhaar: three ways to the same posterior
    corner      beside it: errors with a flat prior, pushed through the smallest parameters that allow them

What the numbers can say. With one attack per node the data hardly inform the upper tail: a larger region holds the same
errors too, so the upper quantiles follow the prior. The lower tail is informed, but the model takes the attack for a random
one of its region. Where it is nearly the best one, the 5 % quantile rises above the true parameter as runs are added;
``strength`` weakens that, but ties one of the two parameters only: errors outside R(s e) are near the border on one side.
The 5 % quantile of the corner is a lower bound without such an assumption, but for the fold at chance: corners are positive,
so for a useless attack it lies a little above 0. Report both.

Both take the error counts for binomial. Counts of a test vary more when one fit serves all its runs: then intervals are too
narrow, and the lower bound is one less often than nominally. The predecessor's bivariate normal likelihood, for counts that
depend on each other, is not implemented.
"""

from collections.abc import Callable
from dataclasses import fields
from typing import NamedTuple

import numpy as np
import xarray as xr

from lethe_lib.bmp.audit_mhaar import MhaarSettings, mhaar
from lethe_lib.bmp.audit_pymc import PymcSettings, pymc_sample
from lethe_lib.bmp.audit_quadrature import LEVELS, GridPosterior, GridSettings, check_strength, quadrature
from lethe_lib.bmp.audit_result import Audit, load_arviz
from lethe_lib.errors import InputError
from lethe_lib.registry import Registry, changed
from lethe_lib.seeding import numpy_generator

PRIOR_SCALE = float(np.sqrt(10.0))
RHAT_LIMIT, ESS_LIMIT = 1.01, 400  # Vehtari et al., "Rank-normalization, folding, and localization", 2021
DIVERGENCE_LIMIT = 0.01  # largest share of divergent steps


class Fit(NamedTuple):
    """What a method returns for its nodes; see Audit for the shapes. ``reasons`` are "" where the fit is good."""

    evidence: np.ndarray
    mean: np.ndarray
    quantiles: np.ndarray
    corner_mean: np.ndarray
    corner_quantiles: np.ndarray
    convergence: dict[str, np.ndarray]
    draws: np.ndarray
    reasons: np.ndarray


class Method(NamedTuple):
    """An entry of AUDITS: the class of settings, and the fit of (counts, prior scales, generator, strength, settings)."""

    settings: type
    fit: Callable[..., Fit]


def audit(
    n_out,
    false_positives,
    n_in,
    false_negatives,
    priors,
    method: str = "quadrature",
    prior_scale: float | tuple[float, float] = PRIOR_SCALE,
    strength: float | str = 0.0,
    seed: int = 0,
    nodes=None,
    **settings,
) -> Audit:
    """Posterior of (eps_left, eps_right) of every node from the error counts of one attack per node.

    Args:
        n_out, n_in: numbers of runs without and with the node, integers, (n,) or one number for all.
        false_positives: runs without the node in which the attack said "member".
        false_negatives: runs with the node in which it said "non-member".
        priors: prior membership probability of every node.
        method: a name in AUDITS.
        prior_scale: scale of the half-normal prior of the excess parameters, or a pair (left, right). The default is that of
            the predecessor (variance 10). Try others: the upper quantiles follow it.
        strength: s in [0, 1): the attack is known to be so good that its errors lie outside the region of s e. "learnt": s
            is unknown, uniform on (0, 1) for every node on its own, and integrated out.
        seed: of all draws.
        nodes: names of the nodes; by default 0 to n - 1.
        settings: of the method, see GridSettings, PymcSettings and MhaarSettings.

    Returns:
        Audit with means and quantiles in both forms, corner posterior, evidence, statuses and diagnostics.

    Raises:
        InputError: shapes that do not match, counts that are not integers or out of range, priors outside [0, 1], unknown
            methods and settings. Nodes never in, never out, or with prior 0 or 1 are no error: they get a status.

    Example:
        >>> result = audit(n_out=90, false_positives=9, n_in=10, false_negatives=4, priors=[0.1])
        >>> result.quantile(0.05, "ratio").round(2)
        array([[0.64, 1.51]])
    """
    entry = AUDITS[method]
    chosen = changed(method, entry.settings(), settings)
    counts, prior, nodes = check_counts(n_out, false_positives, n_in, false_negatives, priors, nodes)
    scale = check_scale(prior_scale)
    check_strength(strength)
    status, reason = _usable(counts, prior)
    usable = np.flatnonzero(status == "ok")
    fit = entry.fit(counts[usable], scale, numpy_generator(seed, "audit", method), strength, chosen)
    reason[usable] = fit.reasons
    good = fit.reasons == ""
    status[usable[~good]] = "bad_fit"

    def spread(values: np.ndarray, keep: np.ndarray) -> np.ndarray:
        result = np.full((len(prior), *values.shape[1:]), np.nan)
        result[usable[keep]] = values[keep]
        return result

    every = np.ones(len(usable), dtype=bool)
    return Audit(
        nodes=nodes,
        prior=prior,
        counts=counts,
        status=status,
        reason=reason,
        ratio_mean=spread(fit.mean, good),
        ratio_quantiles=spread(fit.quantiles, good),
        corner_ratio_mean=spread(fit.corner_mean, good),
        corner_ratio_quantiles=spread(fit.corner_quantiles, good),
        evidence=spread(fit.evidence, good),
        convergence={name: spread(values, every) for name, values in fit.convergence.items()},
        draws=np.moveaxis(spread(np.moveaxis(fit.draws, 2, 0), every), 0, 2),
        settings={"method": method, "prior_scale": scale, "strength": strength, "seed": seed}
        | {one.name: getattr(chosen, one.name) for one in fields(chosen)},
    )


def check_counts(n_out, false_positives, n_in, false_negatives, priors, nodes=None):
    """Counts (n, 4), priors (n,) and names (n,), checked."""
    given = {
        "n_out": n_out,
        "false_positives": false_positives,
        "n_in": n_in,
        "false_negatives": false_negatives,
        "priors": priors,
    }
    arrays = {name: np.atleast_1d(np.asarray(values, dtype=np.float64)) for name, values in given.items()}
    sizes = {name: array.shape for name, array in arrays.items()}
    longest = max(array.size for array in arrays.values())
    if any(array.ndim != 1 or array.size not in (1, longest) for array in arrays.values()) or longest == 0:
        raise InputError(f"the arrays must have one entry per node, or be one number for all nodes; got shapes {sizes}")
    arrays = {name: np.broadcast_to(array, longest) for name, array in arrays.items()}
    nodes = np.arange(longest) if nodes is None else np.asarray(nodes)
    if nodes.shape != (longest,):
        raise InputError(f"nodes must name all {longest} nodes, got shape {nodes.shape}")
    prior = arrays.pop("priors").copy()
    _refuse(~((prior >= 0) & (prior <= 1)), "priors", prior, nodes, "give probabilities in [0, 1]")
    for name, values in arrays.items():
        whole = np.isfinite(values) & (values >= 0) & (np.floor(values) == values)
        _refuse(~whole, name, values, nodes, "give whole numbers of runs, at least 0")
    for name, total in (("false_positives", "n_out"), ("false_negatives", "n_in")):
        advice = f"there cannot be more errors than runs in {total}"
        _refuse(arrays[name] > arrays[total], name, arrays[name], nodes, advice)
    return np.stack(list(arrays.values()), axis=1).astype(np.int64), prior, nodes


def _refuse(bad: np.ndarray, name: str, values: np.ndarray, nodes: np.ndarray, advice: str) -> None:
    if bad.any():
        first = np.flatnonzero(bad)[0]
        raise InputError(f"{name} of node {nodes[first]} is {values[first]:g} ({bad.sum()} such nodes): {advice}")


def check_scale(prior_scale) -> tuple[float, float]:
    """The prior scales (left, right), both positive."""
    scale = np.asarray(prior_scale, dtype=np.float64)
    if scale.shape not in ((), (2,)) or not np.all((scale > 0) & np.isfinite(scale)):
        raise InputError(f"prior_scale must be a positive number or a pair (left, right) of them, got {prior_scale}")
    left, right = np.broadcast_to(scale, 2).tolist()
    return left, right


def _usable(counts: np.ndarray, prior: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Status and reason of every node before anything is fitted."""
    status = np.full(len(prior), "ok", dtype=object)
    reason = np.full(len(prior), "", dtype=object)
    for name, where, why in (
        ("no_in", counts[:, 2] == 0, "no run with this node: draw more runs, or stratify them"),
        ("no_out", counts[:, 0] == 0, "no run without this node: draw more runs, or stratify them"),
        ("no_decisions", (counts[:, 0] == 0) & (counts[:, 2] == 0), "the attack made no decision: see its own status"),
        ("degenerate_prior", prior == 0, "prior 0: the sampler never takes this node, so nothing can be learnt of it"),
        ("degenerate_prior", prior == 1, "prior 1: the sampler always takes this node, so nothing is left to learn"),
    ):
        status[where], reason[where] = name, why
    return status, reason


def _by_distinct_counts(counts, scale, generator, strength, settings) -> tuple[GridPosterior, np.ndarray]:
    """The grid posterior of all distinct count vectors, and for every node which of them is its own."""
    distinct, copies = np.unique(counts, axis=0, return_inverse=True)
    if not len(distinct):
        distinct = np.array([[1, 0, 1, 0]])  # no usable node: any vector gives the shapes
    return quadrature(distinct, scale, generator, strength, settings), copies.reshape(-1)


def _grid_reasons(mass_error: np.ndarray, settings: GridSettings) -> np.ndarray:
    reasons = np.full(len(mass_error), "", dtype=object)
    for index in np.flatnonzero(~(mass_error <= settings.tolerance)):
        reasons[index] = f"the finest grid is wrong by {mass_error[index]:.1%} of the mass: raise largest"
    return reasons


def _fit_quadrature(counts, scale, generator, strength, settings: GridSettings) -> Fit:
    grid, copies = _by_distinct_counts(counts, scale, generator, strength, settings)
    draws = grid.draws[:, copies]
    reasons = _grid_reasons(grid.mass_error[copies], settings)
    reasons[~(grid.evidence[copies] > 0)] = "the prior excludes these counts: raise prior_scale"
    # Nodes with equal counts get the same draws in different orders, so that no dependence between nodes is made up.
    order = np.argsort(generator.random(draws.shape[:2]), axis=0)[..., None]
    return Fit(
        evidence=grid.evidence[copies],
        mean=grid.mean[copies],
        quantiles=grid.quantiles[copies],
        corner_mean=grid.corner_mean[copies],
        corner_quantiles=grid.corner_quantiles[copies],
        convergence={"mass_error": grid.mass_error[copies]},
        draws=np.take_along_axis(draws, order, axis=0)[None],
        reasons=reasons,
    )


def _fit_pymc(counts, scale, generator, strength, settings: PymcSettings) -> Fit:
    load_arviz()
    none = np.empty((settings.chains, settings.draws, 0, 2)), 0
    return _from_draws(counts, *(pymc_sample(counts, scale, generator, strength, settings) if len(counts) else none))


def _fit_mhaar(counts, scale, generator, strength, settings: MhaarSettings) -> Fit:
    return _from_draws(counts, mhaar(counts, scale, generator, strength, settings), 0)


def _from_draws(counts: np.ndarray, draws: np.ndarray, divergences: int) -> Fit:
    """Summaries and diagnostics of draws (chains, draws, n, 2); the corner does not need them and comes from the grid."""
    rhat, ess = _diagnostics(draws)
    flat = draws.reshape(draws.shape[0] * draws.shape[1], len(counts), 2)
    # The corner has no prior, so any scale will do.
    settings = GridSettings(draws=0)
    corner, copies = _by_distinct_counts(counts, (1.0, 1.0), numpy_generator(0), 0.0, settings)
    reasons = _grid_reasons(corner.mass_error[copies], settings)
    for index in range(len(counts)):
        complaints = [reasons[index]] if reasons[index] else []
        if not rhat[index] <= RHAT_LIMIT:
            complaints.append(f"R-hat {rhat[index]:.3f} is above {RHAT_LIMIT:g}: draw more")
        if not ess[index] >= ESS_LIMIT:
            complaints.append(f"effective sample size {ess[index]:.0f} is below {ESS_LIMIT}: draw more")
        if divergences > DIVERGENCE_LIMIT * draws.shape[0] * draws.shape[1]:
            complaints.append(f"{divergences} divergent steps: raise target_accept")
        reasons[index] = "; ".join(complaints)
    return Fit(
        evidence=np.full(len(counts), np.nan),
        mean=draws.mean((0, 1)),
        quantiles=np.moveaxis(np.quantile(flat, LEVELS, axis=0), 0, -1),
        corner_mean=corner.corner_mean[copies],
        corner_quantiles=corner.corner_quantiles[copies],
        convergence={"rhat": rhat, "ess": ess, "divergences": np.full(len(counts), float(divergences))},
        draws=draws,
        reasons=reasons,
    )


def _diagnostics(draws: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rank-normalised R-hat, and the smaller of bulk and tail effective sample size; the worse of both parameters."""
    if not draws.shape[2]:
        return np.empty(0), np.empty(0)
    az = load_arviz()
    data = xr.Dataset({"x": (("chain", "draw", "node", "parameter"), draws)})
    rhat = az.rhat(data)["x"].max("parameter", skipna=False).to_numpy()
    sizes = [az.ess(data, method=kind)["x"].min("parameter", skipna=False).to_numpy() for kind in ("bulk", "tail")]
    return rhat, np.minimum(*sizes)


AUDITS = Registry(
    "audit method",
    {
        "quadrature": Method(GridSettings, _fit_quadrature),
        "pymc": Method(PymcSettings, _fit_pymc),
        "mhaar": Method(MhaarSettings, _fit_mhaar),
    },
)
