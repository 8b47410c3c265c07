"""Every stated property of BMP as a test on small laws, in both forms, in exact arithmetic.

Reference: the statements are those of S. Yildirim, M. Khosla, arXiv:2606.04069, as far as known; the sharp readings,
the counter-examples and the tests are ours.

    for each form in (ratio, odds), each instance, each node:
        low, high = (e^-eps_left, e^eps_right), exact;   o = prior odds
        does the property hold here?         -> it holds under a form when no case violates it
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache

from lethe_lib.bmp import cases
from lethe_lib.bmp.bounds import check_form
from lethe_lib.bmp.composition import TARGETS
from lethe_lib.bmp.examples import Instance, instances
from lethe_lib.registry import Registry


@dataclass(frozen=True)
class Property:
    """One stated property: its name in a table, its sharp reading, and a test that yields one truth value per case."""

    title: str
    reading: str
    cases: Callable[[str, Instance], Iterator[bool]]


@dataclass(frozen=True)
class Tally:
    """How a property fared under one form: number of cases, of violations, and the first instance that violates it."""

    cases: int
    violations: int
    first: str

    @property
    def holds(self) -> bool:
        return self.cases > 0 and self.violations == 0


def tally(name: str, form: str, family: Iterable[Instance]) -> Tally:
    """Test one property of :data:`PROPERTIES` under one form on a family of instances."""
    check_form(form)
    total, violations, first = 0, 0, ""
    for instance in family:
        results = list(PROPERTIES[name].cases(form, instance))
        total += len(results)
        violations += results.count(False)
        if not (first or all(results)):
            first = instance.name
    return Tally(total, violations, first)


@cache
def tally_family(name: str, form: str, count: int = 200, seed: int = 0) -> Tally:
    """:func:`tally` over the fixed instances and ``count`` random laws, computed once per process."""
    return tally(name, form, instances(count, seed))


PROPERTIES = Registry(
    "property",
    {
        "prior bound": Property("prior bounds", "eps_R >= log o and eps_L >= -log o for every node", cases.prior_bound),
        "perfect training": Property(
            "perfect training still leaks",
            "with an output independent of the sample, a node with prior other than 1/2 has a positive parameter",
            cases.perfect_training,
        ),
        "posterior": Property(
            "posterior reading",
            "the parameters alone bound the posterior odds of membership, whatever the prior",
            cases.posterior,
        ),
        "region and prior": Property(
            "region depends on the prior (conditional errors)",
            "equal parameters at two admissible priors give different regions of (alpha, beta)",
            cases.region_depends_on_prior,
        ),
        "joint region and prior": Property(
            "region depends on the prior (joint errors)",
            "equal parameters at two admissible priors give different regions of joint errors",
            cases.joint_region_depends_on_prior,
        ),
        "one to one": Property(
            "one region per pair of parameters",
            "all tests lie in the region; the smallest parameters of all tests, and of its corner, are the tight ones",
            cases.one_to_one,
        ),
        "post-processing": Property(
            "post-processing", "no function of the output has larger parameters", cases.post_processing
        ),
        "then conditional MP": Property(
            "BMP then MP, MP given the first output",
            "the parameters of both outputs are at most the sums",
            cases.bmp_then_mp,
        ),
        "then marginal MP": Property(
            "BMP then MP, MP of the second output alone",
            "the parameters of both outputs are at most the sums",
            cases.bmp_then_marginal_mp,
        ),
        "two releases": Property(
            "two releases of one bit add",
            "two releases independent given the membership have at most the sums of their parameters",
            cases.two_releases_add,
        ),
        "rounds": Property(
            "independent rounds, target formulas",
            "the formulas for some round, all rounds, all against none give the tight parameters of two rounds",
            cases.rounds,
        ),
        **{
            f"rounds add, {target}": Property(
                f"independent rounds add, target {target}",
                f"two rounds have at most the sums of their parameters for the target {target}",
                cases.rounds_add(target),
            )
            for target in TARGETS
        },
        "differential": Property(
            "differential version implies BMP",
            "the version that conditions on all other memberships implies the version that does not",
            cases.differential_implies_marginal,
        ),
        "differential, independent": Property(
            "the same, independent membership",
            "the same implication when memberships are independent",
            cases.differential_implies_marginal_independent,
        ),
        "MP as a case": Property(
            "MP is a special case",
            "MP(eps) holds exactly when BMP holds with parameters eps, in odds form shifted by the log prior odds",
            cases.mp_is_special_case,
        ),
        "right below MP": Property(
            "BMP-R below MP", "eps_R < eps of MP for every node with prior under 1/2", cases.right_below_mp
        ),
        "right at most MP": Property(
            "BMP-R at most MP", "eps_R <= eps of MP for every node with prior under 1/2", cases.right_at_most_mp
        ),
    },
)
