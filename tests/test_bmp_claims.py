"""The theory claims: verdicts, their reasons, and checks that can fail."""

from fractions import Fraction

import pytest

from lethe_lib.bmp import FORMS, PROPERTIES, flipped_bits, publish, tally
from lethe_lib.bmp.examples import Instance, exclusive_or, fixed_instances, instances, noisy_parity, single
from lethe_lib.bmp.properties import Tally
from lethe_lib.errors import InputError
from lethe_lib.reporting import claims_bmp_theory
from lethe_lib.reporting.claims_bmp_theory import CLAIMS

CHECKS = {claim.id: claim.check for claim in CLAIMS}

# claim: verdict under the ratio form, under the odds form
EXPECTED = {
    "B01": "holds holds",
    "B02": "holds holds",
    "B03": "holds holds",
    "B04": "holds holds",
    "B05": "fails holds",
    "B06": "fails holds",
    "B07": "holds holds",
    "B08": "holds holds",
    "B09": "holds holds",
    "B10": "holds holds",
    "B11": "fails holds",
    "B15": "holds holds",
    "B16": "fails holds",
    "B24": "holds holds",
    "B25": "fails holds",
}
# property: does it hold under the ratio form, under the odds form
TABLE = {
    "prior bound": (False, True),
    "perfect training": (False, True),
    "posterior": (False, True),
    "region and prior": (False, True),
    "joint region and prior": (True, True),
    "one to one": (True, True),
    "post-processing": (True, True),
    "then conditional MP": (True, True),
    "then marginal MP": (False, False),
    "two releases": (True, False),
    "rounds": (True, True),
    "rounds add, some round": (True, False),
    "rounds add, all rounds": (True, False),
    "rounds add, all against none": (True, True),
    "differential": (False, True),
    "differential, independent": (True, True),
    "MP as a case": (True, True),
    "right below MP": (False, True),
    "right at most MP": (True, True),
}


def test_the_claims_are_complete():
    assert [claim.id for claim in CLAIMS] == list(EXPECTED)
    for claim in CLAIMS:
        assert claim.sentence.endswith(".") and claim.estimand and claim.threshold
        assert claim.chapter == "01_bmp_theory" and claim.source == "yildirim2026bmp"


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.id)
def test_verdicts(claim):
    finding = claim.check()
    assert " ".join(finding.by_form[form] for form in FORMS) == EXPECTED[claim.id]
    assert finding.verdict == finding.by_form["ratio"]  # overall: the statement read with the printed formula
    assert finding.detail and finding.interval is None and finding.effect is not None


def test_findings_say_what_other_readings_of_the_words_would_decide(monkeypatch):
    finding = CHECKS["B16"]()
    assert finding.effect == 0  # sides on which MP is too weak in ratio form
    assert "The literal 'or' asks for one of the two and is met in ratio and odds form." in finding.detail
    assert "more than half of the nodes' it would hold in ratio and in odds form" in CHECKS["B25"]().detail
    monkeypatch.setattr(claims_bmp_theory, "tally_family", lambda name, form: Tally(10, 6 - (form == "odds"), "first"))
    assert "it would hold in neither form" in CHECKS["B25"]().detail


def test_certain_absence_is_given_its_probability():
    assert "absence has up to the probability 12/13" in CHECKS["B02"]().detail


def test_two_infinite_parameters_are_equal(monkeypatch):
    revealed = Instance("random, revealed", single(Fraction(1, 2)), publish(len), noisy_parity)
    monkeypatch.setattr(claims_bmp_theory, "instances", lambda: (revealed,))
    finding = CHECKS["B02"]()
    assert finding.effect == 0 and finding.by_form == {"ratio": "fails", "odds": "fails"}


@pytest.mark.parametrize("name", PROPERTIES)
def test_the_table_of_properties(name):
    family = (*fixed_instances(), *instances(30, seed=1)[-30:])
    assert tuple(tally(name, form, family).holds for form in FORMS) == TABLE[name]


def test_the_forms_agree_at_prior_one_half():
    even = [Instance("even", single(Fraction(1, 2)), flipped_bits([0], Fraction(1, 4)), noisy_parity)]
    for name in ("prior bound", "posterior", "two releases"):
        assert all(tally(name, form, even).holds for form in FORMS)
    # The target of two rounds has another prior than 1/2, so here the forms part again.
    assert [tally("rounds add, some round", form, even).holds for form in FORMS] == [True, False]


def test_exclusive_or_alone_refutes_marginal_composition():
    for form in FORMS:
        found = tally("then marginal MP", form, [exclusive_or()])
        assert not found.holds and found.first == "exclusive or"


def test_an_unknown_property_or_form_is_an_error():
    with pytest.raises(InputError, match="unknown property 'prior bounds'. Did you mean 'prior bound'"):
        tally("prior bounds", "odds", fixed_instances())
    with pytest.raises(InputError, match="unknown form"):
        tally("prior bound", "both", fixed_instances())
