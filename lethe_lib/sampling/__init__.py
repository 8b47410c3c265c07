"""Graph samplers: which nodes enter a training graph, over which edges it is trained, and how likely each node was.

``sample_nodes`` makes one draw, ``draw_counts`` and ``draw_memberships`` many, ``inclusion_priors`` gives every node's
probability of being sampled, and ``sample_law`` the exact law on a small graph. ``SAMPLERS`` lists the samplers.
"""

from lethe_lib.sampling.draws import DrawCounts, draw_counts, draw_memberships, sample_nodes
from lethe_lib.sampling.graph import SamplingGraph, sampling_graph, target_size
from lethe_lib.sampling.law import enumerate_paths, law_priors, sample_law
from lethe_lib.sampling.priors import InclusionPriors, inclusion_priors, priors_from_counts
from lethe_lib.sampling.sampler import Sampler, TrainingSample
from lethe_lib.sampling.samplers import SAMPLERS
from lethe_lib.sampling.summary import (
    Contrast,
    PriorBound,
    decile_contrast,
    log_odds_spread,
    sampled_prior_bounds,
    total_variation,
)

__all__ = [
    "SAMPLERS",
    "Contrast",
    "DrawCounts",
    "InclusionPriors",
    "PriorBound",
    "Sampler",
    "SamplingGraph",
    "TrainingSample",
    "decile_contrast",
    "draw_counts",
    "draw_memberships",
    "enumerate_paths",
    "inclusion_priors",
    "law_priors",
    "log_odds_spread",
    "sampled_prior_bounds",
    "priors_from_counts",
    "sample_law",
    "sample_nodes",
    "sampling_graph",
    "target_size",
    "total_variation",
]
