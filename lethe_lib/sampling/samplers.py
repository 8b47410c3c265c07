"""The registry of samplers. A new sampler is one file and one line here."""

from lethe_lib.registry import Registry
from lethe_lib.sampling.bernoulli import BERNOULLI
from lethe_lib.sampling.degree_weighted import DEGREE_WEIGHTED
from lethe_lib.sampling.ego import EGO
from lethe_lib.sampling.forest_fire import FOREST_FIRE
from lethe_lib.sampling.random_walk import RANDOM_WALK
from lethe_lib.sampling.snowball import SNOWBALL
from lethe_lib.sampling.uniform import UNIFORM

SAMPLERS = Registry(
    "sampler",
    {
        sampler.name: sampler
        for sampler in (UNIFORM, BERNOULLI, DEGREE_WEIGHTED, SNOWBALL, RANDOM_WALK, FOREST_FIRE, EGO)
    },
)
