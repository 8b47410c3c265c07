"""The result of an audit: numbers of every node in both forms, why some have none, and the way to a file.

Reference: S. Yildirim, M. Khosla, arXiv:2606.04069. Everything is kept in ratio form, the excess over what sampling alone
leaks; the odds form adds (-log o, +log o) with the prior odds o of the node.
"""

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from lethe_lib.bmp.audit_quadrature import LEVELS
from lethe_lib.bmp.bounds import FORMS, check_form
from lethe_lib.errors import InputError

PARAMETERS = ("left", "right")
STATUSES = ("ok", "no_in", "no_out", "no_decisions", "degenerate_prior", "bad_fit")


@dataclass(frozen=True)
class Audit:
    """Posterior of the privacy parameters of every node. Arrays of size 2 hold (left, right).

    Where the status is not ``"ok"`` all numbers are nan and ``reason`` says why.

    Args:
        nodes: names of the nodes, (n,).
        prior: prior membership probabilities, (n,).
        counts: n_out, false positives, n_in, false negatives, (n, 4).
        status, reason: one of STATUSES per node, and a sentence, "" when ok, (n,).
        ratio_mean, ratio_quantiles: posterior means (n, 2) and quantiles at LEVELS (n, 2, 5), in ratio form.
        corner_ratio_mean, corner_ratio_quantiles: the same of the corner posterior.
        evidence: probability of the counts under the model, (n,); nan for the sampling methods.
        convergence: diagnostics per node by name: ``mass_error``, or ``rhat``, ``ess`` (worse of left and right) and
            ``divergences`` (of the whole model).
        draws: posterior draws in ratio form, (chains, draws, n, 2), also of nodes with a bad fit.
        settings: method and all settings.
    """

    nodes: np.ndarray
    prior: np.ndarray
    counts: np.ndarray
    status: np.ndarray
    reason: np.ndarray
    ratio_mean: np.ndarray
    ratio_quantiles: np.ndarray
    corner_ratio_mean: np.ndarray
    corner_ratio_quantiles: np.ndarray
    evidence: np.ndarray
    convergence: Mapping[str, np.ndarray]
    draws: np.ndarray
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def ok(self) -> np.ndarray:
        """Which nodes have numbers, (n,)."""
        return self.status == "ok"

    def shift(self, form: str) -> np.ndarray:
        """What to add to ratio form, (n, 2): 0, or (-log o, +log o); infinite where the prior is 0 or 1."""
        if check_form(form) == "ratio":
            return np.zeros((len(self.prior), 2))
        with np.errstate(divide="ignore"):
            log_odds = np.log(self.prior) - np.log1p(-self.prior)
        return np.stack([-log_odds, log_odds], axis=1)

    def mean(self, form: str) -> np.ndarray:
        """Posterior means, (n, 2)."""
        return self.ratio_mean + self.shift(form)

    def quantile(self, level: float, form: str) -> np.ndarray:
        """Posterior quantiles at one of LEVELS, (n, 2). Level 0.05 is the lower bound under the model."""
        return self.ratio_quantiles[:, :, level_index(level)] + self.shift(form)

    def corner_mean(self, form: str) -> np.ndarray:
        """Means of the corner posterior, (n, 2)."""
        return self.corner_ratio_mean + self.shift(form)

    def corner_quantile(self, level: float, form: str) -> np.ndarray:
        """Quantiles of the corner posterior at one of LEVELS, (n, 2).

        Level 0.05 bounds from below whatever the attack, if its error counts are binomial.
        """
        return self.corner_ratio_quantiles[:, :, level_index(level)] + self.shift(form)

    def frame(self, form: str) -> pd.DataFrame:
        """One row per node: prior, status, and mean, 5, 50 and 95 % points of both parameters and of the corner."""
        columns = {"prior": self.prior, "status": self.status, "evidence": self.evidence}
        for kind, mean, quantile in (
            ("eps", self.mean, self.quantile),
            ("corner", self.corner_mean, self.corner_quantile),
        ):
            for side, name in enumerate(PARAMETERS):
                columns[f"{kind}_{name} mean"] = mean(form)[:, side]
                for level in (0.05, 0.5, 0.95):
                    columns[f"{kind}_{name} {level:.0%}"] = quantile(level, form)[:, side]
        return pd.DataFrame(columns, index=pd.Index(self.nodes, name="node"))

    def to_inference_data(self):
        """All of it as ArviZ InferenceData, to keep with ``.to_netcdf(path, engine="h5netcdf")``.

        Returns:
            Groups ``posterior`` (eps_ratio and eps_odds by chain, draw, node, parameter), ``summary`` (means, quantiles,
            corner, evidence, status, reason and diagnostics by node), ``observed_data`` and ``constant_data``.
            Quadrature has one chain of independent draws.
        """
        per_node, per_parameter = ("node",), ("node", "parameter")
        coordinates = {"node": self.nodes, "parameter": list(PARAMETERS)}
        posterior, summary = {}, {}
        for form in FORMS:
            posterior[f"eps_{form}"] = (("chain", "draw", *per_parameter), self.draws + self.shift(form))
            for kind, mean, quantile in (
                ("eps", self.mean, self.quantile),
                ("corner", self.corner_mean, self.corner_quantile),
            ):
                summary[f"{kind}_{form}_mean"] = (per_parameter, mean(form))
                values = np.stack([quantile(level, form) for level in LEVELS], axis=-1)
                summary[f"{kind}_{form}_quantiles"] = ((*per_parameter, "level"), values)
        summary["evidence"] = (per_node, self.evidence)
        summary |= {name: (per_node, values) for name, values in self.convergence.items()}
        summary |= {name: (per_node, getattr(self, name).astype(str)) for name in ("status", "reason")}
        n_out, positives, n_in, negatives = self.counts.T
        observed = {"false_positives": (per_node, positives), "false_negatives": (per_node, negatives)}
        constant = {"n_out": (per_node, n_out), "n_in": (per_node, n_in), "prior": (per_node, self.prior)}
        attributes = {name: str(value) for name, value in self.settings.items()}
        return load_arviz().InferenceData(
            posterior=xr.Dataset(posterior, coordinates, attributes),
            summary=xr.Dataset(summary, coordinates | {"level": list(LEVELS)}, attributes),
            observed_data=xr.Dataset(observed, {"node": self.nodes}),
            constant_data=xr.Dataset(constant, {"node": self.nodes}),
        )


def level_index(level: float) -> int:
    """The place of ``level`` in LEVELS, or an InputError."""
    if level not in LEVELS:
        raise InputError(f"quantiles are kept at the levels {', '.join(map(str, LEVELS))}, not at {level:g}")
    return LEVELS.index(level)


def load_arviz():
    """ArviZ, imported late because it takes seconds, without its notice that the next version will be different."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "\\s*ArviZ is undergoing a major refactor", FutureWarning)
        import arviz
    return arviz
