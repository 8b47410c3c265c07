"""All claims on one page: which ids there are, which have no check yet, and a table that can be filtered by verdict.

A claim whose estimand was changed or chosen when results had been seen says so in it, with the words of FIRST_LOOK.
"""

from collections.abc import Iterable, Mapping
from html import escape

from lethe_lib.reporting.claims import CLAIMS, VERDICTS, Finding
from lethe_lib.reporting.glue import as_text, interval_text
from lethe_lib.reporting.tables import unbroken

SOURCE_IDS = tuple([f"B{number:02d}" for number in range(1, 26)] + [f"L{number:02d}" for number in range(1, 29)])
"""The statements of the two sources: 25 on Bayesian Membership Privacy, 28 of the Lethe benchmark."""
NOT_TESTED = "not yet tested"
FIRST_LOOK = "after a first look"

NARROW = """<style>
@media (max-width: 600px) {
  .claims-view thead { display: none; }
  .claims-view table, .claims-view tbody, .claims-view tr, .claims-view th, .claims-view td { display: block; width: auto; }
  .claims-view caption { display: block; }
  .claims-view tr[hidden] { display: none; }
  .claims-view th, .claims-view td { border: 0; }
  .claims-view tbody tr { border-top: 1px solid; padding: 0.4rem 0; }
  .claims-view td:empty { display: none; }
  .claims-view td[data-column]::before { content: attr(data-column) ": "; font-weight: bold; }
}
</style>"""
"""On a phone every claim is a block of lines, since a wide table would hide verdict and finding."""

FILTER = """<script>
(function () {
  const box = document.currentScript.previousElementSibling;
  const buttons = Array.from(box.querySelectorAll("button")), rows = Array.from(box.querySelectorAll("tbody tr"));
  buttons.forEach(function (button) {
    button.addEventListener("click", function () {
      buttons.forEach(function (other) { other.setAttribute("aria-pressed", String(other === button)); });
      const verdict = button.dataset.verdict;
      rows.forEach(function (row) { row.hidden = verdict !== "" && row.dataset.verdict !== verdict; });
    });
  });
})();
</script>"""


def untested(tested: Iterable[str] | None = None) -> list[str]:
    """The ids of the sources' statements that no check decides.

    Args:
        tested: ids that have one; None for those of ``CLAIMS``.

    Example:
        >>> untested(SOURCE_IDS[1:])
        ['B01']
    """
    known = set(CLAIMS if tested is None else tested)
    return [name for name in SOURCE_IDS if name not in known]


def decided_later() -> list[str]:
    """The ids of the claims whose estimand was changed or chosen after results had been seen, in order."""
    return sorted(name for name, claim in CLAIMS.items() if FIRST_LOOK in f"{claim.estimand} {claim.threshold}".lower())


class ClaimsView:
    """Every claim with effect, interval, verdict and a link to its chapter, sorted by verdict; filterable.

    Estimand and threshold unfold under the statement, so that the table stays narrow enough for a phone.

    Args:
        findings: claim id -> finding. missing: ids without a check, listed as not yet tested.
    """

    columns = ("Claim", "Statement", "Verdict", "Effect", "Interval", "What was found", "Estimand", "Threshold")
    unfolded = ("Estimand", "Threshold")

    def __init__(self, findings: Mapping[str, Finding], missing: Iterable[str] = ()):
        order = {verdict: place for place, verdict in enumerate(VERDICTS)}
        names = sorted(findings, key=lambda name: (order[findings[name].verdict], name))
        self.rows = [_row(name, findings[name]) for name in names]
        self.rows += [
            (name, "", NOT_TESTED, "", "", "No check has been written for this statement.", "", "") for name in missing
        ]

    def counts(self) -> dict[str, int]:
        """How many rows have each verdict, those that occur."""
        verdicts = [row[2] for row in self.rows]
        return {name: verdicts.count(name) for name in (*VERDICTS, NOT_TESTED) if name in verdicts}

    def _repr_html_(self) -> str:
        button = 'type="button" style="margin: 0 0.4rem 0.4rem 0; padding: 0.2rem 0.6rem"'
        choices = [("", f"all ({len(self.rows)})"), *((name, f"{name} ({n})") for name, n in self.counts().items())]
        buttons = "".join(
            f'<button {button} data-verdict="{escape(name)}" aria-pressed="{str(not name).lower()}">{escape(text)}</button>'
            for name, text in choices
        )
        shown = [column for column in self.columns if column not in self.unfolded]
        head = "".join(f'<th scope="col">{escape(column)}</th>' for column in shown)
        body = "".join(self._html_row(dict(zip(self.columns, row, strict=True))) for row in self.rows)
        label = "Every claim, sorted by verdict"
        box = f'role="region" tabindex="0" aria-label="{label}" style="overflow-x: auto"'
        caption = f"<caption>{label}. The id leads to the chapter.</caption>"
        table = f'<table class="table">{caption}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'
        choice = f'<div role="group" aria-label="Show claims by verdict">{buttons}</div>'
        return f'{NARROW}<div class="claims-view">{choice}<div {box}>{table}</div></div>{FILTER}'

    def _html_row(self, row: dict[str, str]) -> str:
        judged = "".join(f"<p><strong>{name}.</strong> {escape(row[name])}</p>" for name in self.unfolded if row[name])
        details = f"<details><summary>Estimand and threshold</summary>{judged}</details>" if judged else ""
        wide = 'data-column="What was found" style="min-width: 16rem; overflow-wrap: anywhere"'
        found = f"<td {wide}>{escape(row['What was found'])}</td>"
        names = ("Verdict", "Effect", "Interval")
        short = "".join(f'<td data-column="{name}">{unbroken(row[name])}</td>' for name in names)
        return (
            f'<tr data-verdict="{escape(row["Verdict"])}"><th scope="row">{_link(row["Claim"])}</th>'
            f'<td style="min-width: 12rem">{escape(row["Statement"])}{details}</td>{short}{found}</tr>'
        )

    def __repr__(self) -> str:
        return "\n".join(" | ".join(row) for row in (self.columns, *self.rows))


def _row(name: str, finding: Finding) -> tuple[str, ...]:
    claim = CLAIMS[name]
    effect = "" if finding.effect is None else as_text(finding.effect)
    interval = "" if finding.interval is None else interval_text(finding.interval)
    forms = "; ".join(f"{form} form: {verdict}" for form, verdict in (finding.by_form or {}).items())
    found = f"{finding.detail} {forms.capitalize()}." if forms else finding.detail
    return (name, claim.sentence, finding.verdict, effect, interval, found, claim.estimand, claim.threshold)


def _link(name: str) -> str:
    if name not in CLAIMS:
        return escape(name)
    return f'<a href="{CLAIMS[name].chapter}.html#claim-{name.lower()}">{escape(name)}</a>'
