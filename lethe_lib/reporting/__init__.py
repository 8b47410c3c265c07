"""What a chapter shows: claims and verdicts, glued numbers, tables, figures in one style, and provenance."""

from lethe_lib.reporting.claims import CLAIMS, VERDICTS, Claim, Finding
from lethe_lib.reporting.glue import as_text, glue_claim, glue_number, glue_text, interval_text, rounded
from lethe_lib.reporting.provenance import provenance, show_source
from lethe_lib.reporting.style import PALETTE, use_style
from lethe_lib.reporting.tables import Table, check_claim, claim_table, show_table
from lethe_lib.study.parameters import check_parameters

__all__ = [
    "CLAIMS",
    "PALETTE",
    "VERDICTS",
    "Claim",
    "Finding",
    "Table",
    "as_text",
    "check_claim",
    "check_parameters",
    "claim_table",
    "glue_claim",
    "glue_number",
    "glue_text",
    "interval_text",
    "provenance",
    "rounded",
    "show_source",
    "show_table",
    "use_style",
]
