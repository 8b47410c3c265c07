"""The theoretical claims about Bayesian Membership Privacy, each decided by exact enumeration.

Every check runs over the same family: the worked examples of the chapter and a few hundred random rational laws with a
fixed seed. The definition is known to us in the form printed in a summary (``ratio``); the other statements point to
posterior odds (``odds``). ``by_form`` gives both verdicts, and the overall verdict is that of the statement read with
the printed formula. A universal statement *holds* when no case violates it and *fails* with the first violation; where
the source is vague, estimand and threshold are our reading.
"""

from fractions import Fraction
from math import inf

from lethe_lib.bmp import (
    FORMS,
    PROPERTIES,
    bayes_test,
    bounds_of,
    constant,
    errors_of,
    exact_bounds,
    exact_differential,
    extremal_mechanism,
    flipped_bits,
    largest_advantage,
    node_laws,
    publish,
    tally_family,
)
from lethe_lib.bmp.examples import correlated_pair, fixed_size, independent, instances, single, snowball_on_kite
from lethe_lib.reporting.claims import Claim, Finding

SOURCE = "yildirim2026bmp"
CHAPTER = "01_bmp_theory"
FLIP = Fraction(1, 4)
NO_VIOLATION = "holds under a form when no case violates it; fails with one violation (all cases exact, so no interval)"


def _finding(by_form: dict[str, bool], effect: float, detail: str) -> Finding:
    verdicts = {form: "holds" if by_form[form] else "fails" for form in FORMS}
    return Finding(verdicts["ratio"], effect=effect, detail=detail, by_form=verdicts)


def _universal(name: str, note: str = "") -> Finding:
    """The finding of one property over the whole family; the effect is the number of violations in ratio form."""
    tallies = {form: tally_family(name, form) for form in FORMS}
    words = []
    for form, found in tallies.items():
        if found.holds:
            words.append(f"{form.capitalize()} form: no violation in {found.cases} cases")
        else:
            example = f"{found.violations} of {found.cases} cases, first by: {found.first}"
            words.append(f"{form.capitalize()} form: violated in {example}")
    detail = ". ".join(words) + "." + (f" {note}" if note else "")
    return _finding({form: found.holds for form, found in tallies.items()}, tallies["ratio"].violations, detail)


def _universal_claim(claim_id: str, sentence: str, name: str, note: str = "") -> Claim:
    return Claim(
        claim_id,
        sentence,
        SOURCE,
        f"number of cases that violate: {PROPERTIES[name].reading}",
        NO_VIOLATION,
        CHAPTER,
        lambda: _universal(name, note),
    )


def check_definition() -> Finding:
    """B01: from joint probabilities alone, both quantities stay within the bounds, which are attained."""
    cases, violations, from_prior = 0, {form: 0 for form in FORMS}, 0
    for instance in instances():
        for node, laws in zip(instance.bounds.exact, instance.laws):
            values = {form: [] for form in FORMS}
            for output, likelihood_ratio in laws.ratios().items():
                member = laws.prior * laws.inside.get(output, Fraction(0))
                absent = (1 - laws.prior) * laws.outside.get(output, Fraction(0))
                odds = member / absent if absent else inf
                values["odds"].append(odds)
                values["ratio"].append(odds * (1 - laws.prior) / laws.prior)
                from_prior += values["ratio"][-1] != likelihood_ratio
                cases += 1
            for form in FORMS:
                violations[form] += (min(values[form]), max(values[form])) != node.interval(form)
    detail = (
        f"In all {cases} pairs of node and output the bounds contain both quantities and are attained. The printed "
        f"quantity differs from the likelihood ratio in {from_prior} of them: the prior cancels."
    )
    return _finding({form: not violations[form] and not from_prior for form in FORMS}, violations["ratio"], detail)


def check_asymmetry() -> Finding:
    """B02: share of nodes of random laws whose two parameters differ."""
    nodes = [node for instance in instances() for node in instance.bounds.exact if instance.name.startswith("random")]
    # 1 / inf is 0, so that two infinite parameters count as equal; as a product they would be no number.
    share = {
        form: sum(low != 1 / high for low, high in (n.interval(form) for n in nodes)) / len(nodes) for form in FORMS
    }
    single_node = exact_bounds(single(Fraction(1, 5)), flipped_bits([0], FLIP)).exact[0]
    low, high = single_node.interval("odds")
    detail = (
        f"The parameters differ for {share['ratio']:.0%} (ratio) and {share['odds']:.0%} (odds) of {len(nodes)} nodes "
        "of random laws. One node with prior 1/5 and a bit flipped with probability 1/4 has posterior odds between "
        f"{low} and {high}: membership is never likelier than not, absence has up to the probability {1 / (1 + low)}."
    )
    return _finding({form: share[form] > 0.5 for form in FORMS}, share["ratio"], detail)


def check_one_sided() -> Finding:
    """B03: with one side fixed, the other risk can be nothing less than certainty, and the fixed side does not move."""
    cases, violations = 0, {form: 0 for form in FORMS}
    for instance in instances():
        for node in instance.bounds.exact:
            if not 0 < node.lower < 1 < node.upper < inf:
                continue
            cases += 1
            right_only, left_only = (
                _two_output_bounds(node.prior, *pair) for pair in ((0, node.upper), (node.lower, inf))
            )
            for form in FORMS:
                low, high = node.interval(form)
                kept = right_only.interval(form)[1] == high and left_only.interval(form)[0] == low
                free = right_only.interval(form)[0] == 0 and left_only.interval(form)[1] == inf
                violations[form] += not (kept and free)
    detail = (
        f"For each of {cases} nodes there is a mechanism with the same eps_R that proves absence, and one with the "
        "same eps_L that proves membership: a one-sided parameter limits its own risk and leaves the other free."
    )
    return _finding({form: not violations[form] for form in FORMS}, violations["ratio"], detail)


def _two_output_bounds(prior, lower, upper):
    inside, outside = extremal_mechanism(Fraction(lower), upper)
    return bounds_of(node_laws(single(prior), {frozenset({0}): inside, frozenset(): outside}, 0))


def check_differential_impractical() -> Finding:
    """B04: fixed-size samplers decide every context; independent membership is the control."""
    usable, nodes, revealed = {form: 0 for form in FORMS}, 0, 0
    for count in (3, 4, 5):
        for size in range(1, count):
            law = fixed_size(count, size)
            open_sample = publish(lambda sample: tuple(sorted(sample)))
            for one, all_revealed in zip(
                exact_differential(law, flipped_bits(range(count), FLIP)), exact_differential(law, open_sample)
            ):
                nodes += 1
                usable["odds"] += one.odds != (0, inf)
                usable["ratio"] += one.open_contexts > 0
                revealed += all_revealed.ratio == (1, 1)
    kite = exact_differential(snowball_on_kite(), flipped_bits(range(5), FLIP))
    infinite = sum(inf in one.odds or 0 in one.odds for one in kite)
    control = exact_differential(independent([Fraction(1, 5), Fraction(2, 3)]), flipped_bits([0, 1], FLIP))
    finite = all(0 < one.odds[0] and one.odds[1] < inf for one in control)
    detail = (
        f"Fixed-size samples: BMDP is infinite in odds form for {nodes - usable['odds']} of {nodes} nodes; in ratio "
        f"form no context leaves the node open, so the condition is empty and even publishing the sample satisfies it "
        f"({revealed} of {nodes}). Snowball on the kite: infinite for {infinite} of 5 nodes. Independent membership: "
        f"{'finite' if finite else 'infinite'}."
    )
    return _finding({form: finite and usable[form] == 0 for form in FORMS}, usable["ratio"], detail)


def check_best_test() -> Finding:
    """B15: one mechanism, hence equal errors of every test, two priors, two Bayes tests."""
    channel = flipped_bits([0], FLIP)
    rare, even = (node_laws(single(prior), channel, 0) for prior in (Fraction(1, 5), Fraction(1, 2)))
    follow_the_bit = {(0,): False, (1,): True}
    equal_errors = errors_of(rare, follow_the_bit) == errors_of(even, follow_the_bit) and rare.ratios() == even.ratios()
    different_tests = bayes_test(rare) != bayes_test(even)
    pairs = {
        name: node_laws(law, flipped_bits([0, 1], FLIP), 0)
        for name, law in {"correlated": correlated_pair(), "apart": independent([Fraction(1, 2)] * 2)}.items()
    }
    advantages = {name: largest_advantage(laws) for name, laws in pairs.items()}
    detail = (
        "A bit flipped with probability 1/4 gives errors (1/4, 1/4) at every prior, but the Bayes test follows the bit "
        "at prior 1/2 and never says member at prior 1/5. And equal largest advantage, "
        f"{advantages['correlated']} in both pairs, goes with largest posterior odds "
        f"{bounds_of(pairs['correlated']).upper} and {bounds_of(pairs['apart']).upper}."
    )
    holds = equal_errors and different_tests and advantages["correlated"] == advantages["apart"]
    return _finding({form: holds for form in FORMS}, int(equal_errors and different_tests), detail)


def check_uniform_prior() -> Finding:
    """B16: on the kite, sides of nodes where the MP parameter overstates and where it understates the BMP parameter.

    The effect is the number of sides on which it understates in ratio form.
    """
    nodes = exact_bounds(snowball_on_kite(), flipped_bits(range(5), FLIP)).exact
    strict, weak = {form: 0 for form in FORMS}, {form: 0 for form in FORMS}
    for node in nodes:
        mp = max(node.upper, 1 / node.lower)
        for form in FORMS:
            low, high = node.interval(form)
            strict[form] += (high < mp) + (1 / low < mp)
            weak[form] += (high > mp) + (1 / low > mp)
    literal = " and ".join(form for form in FORMS if strict[form] + weak[form]) or "neither"
    detail = (
        f"Snowball on the kite, {2 * len(nodes)} sides of 5 nodes. Odds form: MP is too strict on {strict['odds']} and too "
        f"weak on {weak['odds']}. Ratio form: too strict on {strict['ratio']}, too weak on {weak['ratio']}, since MP "
        f"is the larger side by definition. The literal 'or' asks for one of the two and is met in {literal} form."
    )
    return _finding({form: strict[form] > 0 and weak[form] > 0 for form in FORMS}, weak["ratio"], detail)


def check_perfect_training() -> Finding:
    """B06, with the size of the leak on the kite when nothing at all is published."""
    left, right = exact_bounds(snowball_on_kite(), constant).worst("odds")
    note = f"Snowball on the kite with nothing published: eps_L + eps_R = {left + right:.3f} in odds form."
    return _universal("perfect training", note)


def check_right_below_mp() -> Finding:
    """B25, and how it would fare if "generally" meant more than half of the nodes, as "in general" does in B02."""
    tallies = {form: tally_family("right below MP", form) for form in FORMS}
    most = [form for form, found in tallies.items() if 2 * found.violations < found.cases]
    note = (
        "At most the MP parameter it is in both forms, which in ratio form is true by definition. With 'generally' as "
        f"'for more than half of the nodes' it would hold in {' and in '.join(most) or 'neither'} form."
    )
    return _universal("right below MP", note)


CLAIMS = (
    Claim(
        "B01",
        "BMP bounds posterior odds over prior odds between e^-eps_L and e^eps_R for every output and node.",
        SOURCE,
        "number of nodes for which the tight bounds are not the extremes of the bounded quantity, in each form",
        "holds under a form when the number is 0 and the printed quantity equals the likelihood ratio for every output",
        CHAPTER,
        check_definition,
    ),
    Claim(
        "B02",
        "eps_L and eps_R differ in general: revealing membership and revealing absence are different risks.",
        SOURCE,
        "share of nodes of random laws whose tight eps_L and eps_R differ (our reading of 'in general')",
        "holds under a form when the share is above 1/2",
        CHAPTER,
        check_asymmetry,
    ),
    Claim(
        "B03",
        "The one-sided versions BMP-R and BMP-L isolate one risk.",
        SOURCE,
        "number of nodes for which fixing one parameter also restricts the other (our reading of 'isolate')",
        NO_VIOLATION,
        CHAPTER,
        check_one_sided,
    ),
    Claim(
        "B04",
        "The differential version BMDP is impractical on graphs because of structural coupling.",
        SOURCE,
        "number of nodes of fixed-size samplers for which BMDP is finite (odds) or a condition at all (ratio)",
        "holds under a form when the number is 0 while independent membership gives finite parameters (our reading)",
        CHAPTER,
        check_differential_impractical,
    ),
    _universal_claim("B05", "eps_L and eps_R are bounded below by the ratio of the priors.", "prior bound"),
    Claim(
        "B06",
        "Even perfectly private training cannot hide what sampling itself leaks.",
        SOURCE,
        f"number of cases that violate: {PROPERTIES['perfect training'].reading}",
        NO_VIOLATION,
        CHAPTER,
        check_perfect_training,
    ),
    _universal_claim("B07", "Post-processing cannot increase the parameters.", "post-processing"),
    _universal_claim(
        "B08",
        "BMP composes with MP on one sample: the parameters add (our reading: MP given the first output).",
        "then conditional MP",
        "MP of the second output alone is not enough: in the exclusive or, two silent releases together reveal a node.",
    ),
    _universal_claim(
        "B09",
        "BMP composes with BMP over independent sample-and-train rounds, for each of three targets.",
        "rounds",
        "Plain addition is exact for all against none; for the other two targets it is a bound in ratio form only.",
    ),
    _universal_claim(
        "B10",
        "The parameters and the regions of possible errors correspond one to one.",
        "one to one",
        "Both parameters must lie above their prior bounds: with one of them at its bound the ratio is constant, and "
        "all such pairs share the segment alpha + beta = 1.",
    ),
    _universal_claim(
        "B11",
        "The region of possible errors depends on the prior of the node.",
        "region and prior",
        "That is for conditional errors; the region of joint errors depends on the prior in both forms.",
    ),
    Claim(
        "B15",
        "Type I and type II errors alone do not determine the best membership test.",
        SOURCE,
        "whether one mechanism with equal errors of every test has different Bayes tests at two priors",
        "holds when the errors are equal and the tests differ (one exact pair suffices)",
        CHAPTER,
        check_best_test,
    ),
    Claim(
        "B16",
        "Notions with a uniform prior are too strict for some and too weak for others on graphs (exact part).",
        SOURCE,
        "sides of nodes, under snowball sampling of the kite, where the MP parameter is above and where below BMP's",
        "holds under a form when both numbers are positive (our reading of 'too strict or too weak': both errors occur in "
        "one graph)",
        CHAPTER,
        check_uniform_prior,
    ),
    _universal_claim("B24", "BMP generalises membership privacy: MP is a special case.", "MP as a case"),
    Claim(
        "B25",
        "BMP-R is generally below the MP parameter (exact part: for every node with prior under one half).",
        SOURCE,
        f"number of cases that violate: {PROPERTIES['right below MP'].reading}",
        NO_VIOLATION,
        CHAPTER,
        check_right_below_mp,
    ),
)
