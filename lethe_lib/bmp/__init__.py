"""Bayesian Membership Privacy: definitions in both forms, error regions, composition, and exact enumeration.

``bounds`` holds the parameters of each node, ``exact`` enumerates small laws, ``channels`` and ``examples`` are what to
enumerate, ``region`` links parameters and attack errors, ``bayes`` has the optimal attack, ``composition`` and
``coupling`` what several releases and differential privacy imply, ``delta`` a variant that may fail, and ``properties``
tests every stated property under both forms. ``audit`` turns error counts of attacks into posteriors of the parameters, and
``audit_calibration`` simulates audits whose answer is known.
"""

from lethe_lib.bmp.audit import AUDITS, audit
from lethe_lib.bmp.audit_exact import marginal_likelihood
from lethe_lib.bmp.audit_mhaar import MhaarSettings, mhaar
from lethe_lib.bmp.audit_pooled import PooledAudit, learnt_prior_scale, pooled_audit
from lethe_lib.bmp.audit_pymc import PymcSettings, audit_model
from lethe_lib.bmp.audit_quadrature import LEVELS, GridSettings, quadrature
from lethe_lib.bmp.audit_result import STATUSES, Audit
from lethe_lib.bmp.bayes import (
    bayes_error,
    bayes_test,
    best_vertex,
    bmp_from_mp,
    errors_of,
    extremal_mechanism,
    largest_advantage,
    mp_from_bmp,
    posterior_interval,
    smallest_bayes_error,
)
from lethe_lib.bmp.bounds import (
    FORMS,
    Bounds,
    ExactNode,
    Parameters,
    from_ratio,
    log_prior_odds,
    prior_bounds,
    to_ratio,
)
from lethe_lib.bmp.channels import chain, constant, flipped_bits, post_process, publish
from lethe_lib.bmp.composition import (
    TARGETS,
    bmp_then_mp,
    compose_rounds,
    conditional_ratio,
    exact_rounds,
    independent_releases,
)
from lethe_lib.bmp.coupling import Coupling, bounds_from_node_dp, closest_coupling
from lethe_lib.bmp.delta import DeltaRegion, smallest_deltas
from lethe_lib.bmp.exact import (
    DifferentialNode,
    NodeLaws,
    bounds_of,
    exact_bounds,
    exact_differential,
    node_laws,
)
from lethe_lib.bmp.properties import PROPERTIES, Property, Tally, tally, tally_family
from lethe_lib.bmp.region import ErrorRegion, count_parameters, error_region, smallest_parameters

__all__ = [
    "AUDITS",
    "FORMS",
    "LEVELS",
    "PROPERTIES",
    "STATUSES",
    "TARGETS",
    "Audit",
    "Bounds",
    "Coupling",
    "DeltaRegion",
    "DifferentialNode",
    "ErrorRegion",
    "ExactNode",
    "GridSettings",
    "MhaarSettings",
    "NodeLaws",
    "Parameters",
    "PooledAudit",
    "Property",
    "PymcSettings",
    "Tally",
    "audit",
    "audit_model",
    "bayes_error",
    "bayes_test",
    "best_vertex",
    "bmp_from_mp",
    "bmp_then_mp",
    "bounds_from_node_dp",
    "bounds_of",
    "chain",
    "closest_coupling",
    "compose_rounds",
    "conditional_ratio",
    "constant",
    "count_parameters",
    "error_region",
    "errors_of",
    "exact_bounds",
    "exact_differential",
    "exact_rounds",
    "extremal_mechanism",
    "flipped_bits",
    "from_ratio",
    "independent_releases",
    "largest_advantage",
    "learnt_prior_scale",
    "log_prior_odds",
    "marginal_likelihood",
    "mhaar",
    "mp_from_bmp",
    "node_laws",
    "pooled_audit",
    "post_process",
    "posterior_interval",
    "prior_bounds",
    "publish",
    "quadrature",
    "smallest_bayes_error",
    "smallest_deltas",
    "smallest_parameters",
    "tally",
    "tally_family",
    "to_ratio",
]
