"""Small tables that screen readers can follow: a caption, header cells with a scope, the same bytes each time."""

import re
from html import escape
from numbers import Real

import pandas as pd
from IPython.display import display

from lethe_lib.bmp import FORMS
from lethe_lib.errors import InputError
from lethe_lib.reporting.claims import CLAIMS, Claim, Finding
from lethe_lib.reporting.glue import as_text, glue_claim, interval_text

MOST_ROWS = 20


class Table:
    """A data frame as a notebook shows it: HTML for the page, plain text for comparison with the published output.

    Args:
        frame: at most 20 rows; its index is dropped, its first column becomes the row headers.
        caption: one sentence that says what the rows are.
        digits: significant digits of numbers that are not counts.

    Raises:
        InputError: for more than 20 rows; a longer table belongs in a figure or a file.
    """

    def __init__(self, frame: pd.DataFrame, caption: str, digits: int = 3):
        if len(frame) > MOST_ROWS:
            raise InputError(f"a table of {len(frame)} rows is too long to read: show at most {MOST_ROWS}")
        self.caption = caption
        self.columns = [str(column) for column in frame.columns]
        self.rows = [[_cell(value, digits) for value in row] for row in frame.itertuples(index=False, name=None)]

    def _repr_html_(self) -> str:
        head = "".join(f'<th scope="col">{escape(column)}</th>' for column in self.columns)
        body = "".join(
            f'<tr><th scope="row">{unbroken(first)}</th>{"".join(f"<td>{unbroken(cell)}</td>" for cell in rest)}</tr>'
            for first, *rest in self.rows
        )
        return (
            f'<table class="table"><caption><span>{escape(self.caption)}</span></caption>'
            f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
        )

    def __repr__(self) -> str:
        lines = [" | ".join(cells) for cells in (self.columns, *self.rows)]
        return "\n".join([self.caption, *lines])


def unbroken(cell: str) -> str:
    """A cell as HTML; no line breaks inside an interval or a number with an exponent."""
    cell = re.sub(r"(?<=\[)[^\[\] ]+, [^\[\] ]+(?=\])", lambda ends: ends[0].replace(" ", "&nbsp;"), escape(cell))
    return re.sub(r"[-+]?\d[\d.]*e-\d+", r'<span style="white-space: nowrap">\g<0></span>', cell)


def _cell(value: object, digits: int) -> str:
    if value is None or (isinstance(value, Real) and pd.isna(value)):
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return as_text(value, digits) if isinstance(value, Real) else str(value)


def show_table(frame: pd.DataFrame, caption: str, digits: int = 3) -> None:
    """Display ``frame`` as a :class:`Table`."""
    display(Table(frame, caption, digits))


def claim_table(claim: Claim, finding: Finding) -> pd.DataFrame:
    """What one claim states, how it is judged, and what was found, one row each: narrow enough for a phone.

    Returns:
        a data frame with two columns, whose names are the id and the statement of the claim; rows Verdict (under the ratio
        and the odds form as well, where the finding has them), Effect, Interval, What was found, Estimand, Threshold, those
        that are empty left out.
    """
    rows = {"Verdict": finding.verdict}
    rows |= {f"Verdict, {form} form": (finding.by_form or {}).get(form, "") for form in FORMS}
    rows["Effect"] = "" if finding.effect is None else as_text(finding.effect)
    rows["Interval"] = "" if finding.interval is None else interval_text(finding.interval)
    rows |= {"What was found": finding.detail, "Estimand": claim.estimand, "Threshold": claim.threshold}
    return pd.DataFrame([row for row in rows.items() if row[1]], columns=[claim.id, claim.sentence])


def check_claim(claim_id: str) -> Finding:
    """Run the check of one claim, show estimand, threshold and outcome, and make the outcome available to the prose.

    Args:
        claim_id: for example ``L07``.

    Returns:
        The finding, whose verdict is one of ``VERDICTS``; a claim that fails is a finding like any other.

    Raises:
        InputError: for an id that no claim has.
    """
    claim = CLAIMS[claim_id]
    finding = claim.check()
    glue_claim(claim, finding)
    show_table(claim_table(claim, finding), f"Claim {claim_id}, what was measured, and our verdict.")
    return finding
