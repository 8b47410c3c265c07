"""Bayesian Membership Privacy: definitions in both forms, error regions, composition, and exact enumeration.

``bounds`` holds the parameters of each node, ``exact`` enumerates small laws, ``channels`` and ``examples`` are what to
enumerate, ``region`` links parameters and attack errors, ``bayes`` has the optimal attack, ``composition`` and
``coupling`` what several releases and differential privacy imply, ``delta`` a variant that may fail, and ``properties``
tests every stated property under both forms.
"""

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
    "FORMS",
    "PROPERTIES",
    "TARGETS",
    "Bounds",
    "Coupling",
    "DeltaRegion",
    "DifferentialNode",
    "ErrorRegion",
    "ExactNode",
    "NodeLaws",
    "Parameters",
    "Property",
    "Tally",
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
    "log_prior_odds",
    "mp_from_bmp",
    "node_laws",
    "post_process",
    "posterior_interval",
    "prior_bounds",
    "publish",
    "smallest_bayes_error",
    "smallest_deltas",
    "smallest_parameters",
    "tally",
    "tally_family",
    "to_ratio",
]
