"""Claims as objects: what a source says, how it is tested, and what the test gave.

A chapter states its claims before any code, measures, and reports one :class:`Finding` per :class:`Claim`. A claim that
fails stays in the book as failed. Each chapter keeps its claims in one module ``claims_<chapter>.py`` with a tuple
named ``CLAIMS``; the list :data:`CHAPTERS_WITH_CLAIMS` names these modules.
"""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module

from lethe_lib.bmp import FORMS
from lethe_lib.errors import InputError
from lethe_lib.registry import Registry

VERDICTS = ("holds", "fails", "inconclusive", "not testable here")

# One name per module claims_<name>.py, in book order. A test finds unlisted modules, the import missing ones.
CHAPTERS_WITH_CLAIMS = (
    "bmp_theory",
    "sampling_priors",
    "shadow_models",
    "mcmc_audit",
    "bmp_findings",
    "walk_centrality",
    "accuracy_is_blind",
    "gradient_family",
    "distillation_family",
    "parameter_family",
    "certified_family",
    "structural_family",
    "attacks",
    "benchmark",
    "edge_audit",
)


@dataclass(frozen=True)
class Finding:
    """What the test of one claim gave.

    Args:
        verdict: one of :data:`VERDICTS`; for claims with two forms, how the statement as printed fares.
        effect: the measured value of the claim's estimand, in its unit; None where there is no single number.
        interval: the lower and the upper end of its interval; None for exact results.
        detail: one sentence for the reader: what was measured, on what, and why this verdict.
        by_form: for claims about Bayesian Membership Privacy, the verdict under each form, ``ratio`` and ``odds``.

    Raises:
        InputError: for a verdict or a form that does not exist, a value that is not a number, or an interval whose ends
            are swapped.

    Example:
        >>> Finding("holds", effect=5.2, interval=(4.9, 5.6)).verdict
        'holds'
    """

    verdict: str
    effect: float | None = None
    interval: tuple[float, float] | None = None
    detail: str = ""
    by_form: Mapping[str, str] | None = None

    def __post_init__(self):
        forms = dict(self.by_form or {})
        for verdict in (self.verdict, *forms.values()):
            if verdict not in VERDICTS:
                raise InputError(f"unknown verdict {verdict!r}: choose one of {', '.join(VERDICTS)}")
        unknown = set(forms) - set(FORMS)
        if unknown:
            raise InputError(f"unknown form {sorted(unknown)}: by_form takes the keys {' and '.join(FORMS)}")
        if self.effect is not None and math.isnan(self.effect):
            raise InputError("the effect of a finding is not a number: give None and say why in the detail")
        if self.interval is not None:
            low, high = self.interval
            if not low <= high:
                raise InputError(f"interval ({low}, {high}): give the lower end first, and numbers at both ends")


@dataclass(frozen=True)
class Claim:
    """One statement of a source, sharpened until a measurement can decide it.

    Args:
        id: stable and short, for example ``L07``; also the label of its block in the chapter, ``claim-l07``.
        sentence: the statement in one sentence.
        source: where it is made: a key of ``references.bib``, with the place where that helps.
        estimand: the quantity that decides it, with its unit and over what it is taken.
        threshold: what the estimand must do for ``holds`` and for ``fails``, fixed before looking at results.
        chapter: stem of the notebook that tests it, for example ``06_walk_centrality``.
        check: computes or reads what is needed, without arguments, and returns the finding.
    """

    id: str
    sentence: str
    source: str
    estimand: str
    threshold: str
    chapter: str
    check: Callable[[], Finding]


class ClaimRegistry(Registry):
    """The claims of several modules by id, in the order given; read at first use, since these modules import this one.

    Args:
        chapters: names as in :data:`CHAPTERS_WITH_CLAIMS`.

    Raises:
        ImportError: at first use, when a module is missing or broken.
        InputError: at first use, when two claims share an id.
    """

    def __init__(self, chapters: Iterable[str]):
        self.kind = "claim"
        self.chapters = tuple(chapters)

    @cached_property
    def _entries(self) -> dict[str, Claim]:
        entries = {}
        for chapter in self.chapters:
            for claim in import_module(f"lethe_lib.reporting.claims_{chapter}").CLAIMS:
                if claim.id in entries:
                    raise InputError(f"two claims have the id {claim.id!r}: rename the one in claims_{chapter}.py")
                entries[claim.id] = claim
        return entries


CLAIMS = ClaimRegistry(CHAPTERS_WITH_CLAIMS)
