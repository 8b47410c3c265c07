"""What chapters show: claims, glued numbers, tables, shown source and provenance."""

import hashlib
import math
import sys
from types import SimpleNamespace

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
import torch
from bs4 import BeautifulSoup
from hypothesis import given
from hypothesis import strategies as st
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output
from matplotlib.colors import to_hex

from lethe_lib import paths
from lethe_lib.errors import InputError
from lethe_lib.registry import Registry
from lethe_lib.reporting import (
    PALETTE,
    Claim,
    Finding,
    as_text,
    check_claim,
    claim_table,
    glue_claim,
    glue_number,
    glue_text,
    interval_text,
    provenance,
    rounded,
    show_source,
    show_table,
    use_style,
)
from lethe_lib.reporting import tables as tables_module
from lethe_lib.reporting.claims import ClaimRegistry
from lethe_lib.study import load_records


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (0.123456, 0.123),
        (0.00012345, 0.000123),
        (12.34, 12.3),
        (123.4, 123),
        (99.96, 100),
        (45678.9, 45700),
        (119_081, 119_081),
        (np.int64(119_081), 119_081),
        (np.float32(0.5), 0.5),
        (torch.tensor(0.25), 0.25),
        (-2.0, -2.0),
        (0.0, 0.0),
        (math.inf, "∞"),
        (-math.inf, "-∞"),
    ],
)
def test_rounding_by_hand(value, expected):
    assert rounded(value) == expected
    assert type(rounded(value)) in (int, float, str)


@given(st.floats(min_value=-1e300, max_value=1e300), st.integers(1, 6))
def test_rounding_keeps_the_value_within_half_of_the_last_digit(value, digits):
    assert abs(rounded(value, digits) - value) <= 0.5000001 * abs(value) * 10.0 ** (1 - digits)


@given(st.floats(min_value=-1e6, max_value=1e6, allow_nan=False))
def test_text_says_the_rounded_value(value):
    assert float(as_text(value).replace(",", "")) == rounded(value)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (0.5, "0.500"),
        (0.0123, "0.0123"),
        (12.34, "12.3"),
        (1_234_567, "1,234,567"),
        (0.00002, "2.00e-05"),
        (0.0, "0.00"),
        (0.9996, "1.00"),
        (-0.25, "-0.250"),
        (math.inf, "∞"),
    ],
)
def test_text_by_hand(value, expected):
    assert as_text(value) == expected


def test_what_is_not_a_number_never_reaches_the_prose():
    with pytest.raises(InputError, match="not a number"):
        rounded(np.nan)
    with pytest.raises(InputError, match="empty"):
        glue_text("key", " ")


def glued(action):
    """What ``action`` glues: name -> text as the page gets it."""
    InteractiveShell.instance()
    with capture_output() as captured:
        action()
    mime = "application/papermill.record/text/plain"
    return {output.metadata["scrapbook"]["name"]: output.data[mime] for output in captured.outputs}


def test_numpy_and_torch_scalars_are_glued_as_plain_numbers():
    assert glued(lambda: glue_number("a", np.float64(0.123456))) == {"a": "0.123"}
    assert glued(lambda: glue_number("b", torch.tensor(2.0, dtype=torch.float64))) == {"b": "2.0"}
    assert glued(lambda: glue_number("c", np.int32(7))) == {"c": "7"}


def test_a_claim_is_glued_without_holes():
    claim = Claim("X1", "a sentence", "a source", "a mean", "above 1", "01_x", lambda: None)
    assert glued(lambda: glue_claim(claim, Finding("holds", 5.23456, (4.9, 5.6), "measured"))) == {
        "X1_verdict": "'holds'",
        "X1_effect": "'5.23'",
        "X1_interval": "'[4.90, 5.60]'",
        "X1_detail": "'measured'",
    }
    assert set(glued(lambda: glue_claim(claim, Finding("not testable here"))).values()) == {
        "'not testable here'",
        "'none'",
    }


@pytest.mark.parametrize(
    "arguments",
    [
        {"verdict": "passes"},
        {"verdict": "holds", "effect": math.nan},
        {"verdict": "holds", "interval": (2.0, 1.0)},
        {"verdict": "holds", "interval": (math.nan, 1.0)},
        {"verdict": "holds", "by_form": {"ratio": "maybe"}},
        {"verdict": "holds", "by_form": {"product": "holds"}},
    ],
)
def test_a_finding_that_says_nothing_clear_is_refused(arguments):
    with pytest.raises(InputError):
        Finding(**arguments)


def claims_module(monkeypatch, chapter, *names):
    made = [Claim(name, f"sentence {name}", "source", "estimand", "threshold", chapter, lambda: None) for name in names]
    monkeypatch.setitem(sys.modules, f"lethe_lib.reporting.claims_{chapter}", SimpleNamespace(CLAIMS=tuple(made)))


def test_claims_are_gathered_in_order_and_ids_are_unique(monkeypatch):
    claims_module(monkeypatch, "first", "B02", "B01")
    claims_module(monkeypatch, "second", "L01")
    assert list(ClaimRegistry(("first", "second"))) == ["B02", "B01", "L01"]
    claims_module(monkeypatch, "second", "B01")
    with pytest.raises(InputError, match="'B01'.*claims_second"):
        len(ClaimRegistry(("first", "second")))


def test_a_missing_module_of_claims_is_an_error():
    with pytest.raises(ImportError, match="claims_absent"):
        len(ClaimRegistry(("absent",)))


def shown(action):
    InteractiveShell.instance()
    with capture_output() as captured:
        action()
    return captured.outputs


def test_a_table_has_a_caption_header_cells_with_scope_and_escaped_text():
    frame = pd.DataFrame(
        {"graph": ["<a&b>", "c"], "edges": [119_081, 7], "ratio": [0.51234, math.nan], "ok": [True, False]}
    )
    (output,) = shown(lambda: show_table(frame, "Two graphs."))
    table = BeautifulSoup(output.data["text/html"], "html.parser").table
    assert table.caption.get_text() == "Two graphs."
    assert [cell.get_text() for cell in table.select('th[scope="col"]')] == ["graph", "edges", "ratio", "ok"]
    assert [cell.get_text() for cell in table.select('th[scope="row"]')] == ["<a&b>", "c"]
    assert [cell.get_text() for cell in table.select("td")] == ["119,081", "0.512", "yes", "7", "", "no"]
    assert "119,081 | 0.512" in output.data["text/plain"]


def test_intervals_are_not_broken_over_lines():
    frame = pd.DataFrame({"graph": ["a"], "AUC": ["0.694 [0.665, 0.723], more"], "list": ["[a, b c]"]})
    (output,) = shown(lambda: show_table(frame, "One graph."))
    cells = [cell.get_text() for cell in BeautifulSoup(output.data["text/html"], "html.parser").select("td")]
    assert cells == ["0.694 [0.665,\xa00.723], more", "[a, b c]"]
    (output,) = shown(lambda: show_table(frame.assign(small=-7.9e-5, text="one-two 3e-x"), "One graph."))
    spans = BeautifulSoup(output.data["text/html"], "html.parser").select("td span")
    assert [span.get_text() for span in spans] == ["-7.90e-05"] and "nowrap" in spans[0]["style"]


def test_a_long_table_is_refused():
    with pytest.raises(InputError, match="at most 20"):
        show_table(pd.DataFrame({"x": range(21)}), "Too long.")


def test_a_failed_claim_is_shown_like_any_other(monkeypatch):
    failed = Finding("fails", 0.2, (0.1, 0.3), "less than one", {"ratio": "fails", "odds": "holds"})
    claims = [
        Claim("L01", "sentence", "s", "an estimand", "a threshold", "c", lambda: failed),
        Claim("B05", "other", "s", "e", "t", "c", lambda: Finding("not testable here")),
    ]
    monkeypatch.setattr(tables_module, "CLAIMS", Registry("claim", {claim.id: claim for claim in claims}))
    monkeypatch.setattr(tables_module, "glue_claim", lambda claim, finding: None)
    table = claim_table(claims[0], failed)
    assert table.columns.tolist() == ["L01", "sentence"]
    assert table.to_numpy().tolist() == [
        ["Verdict", "fails"],
        ["Verdict, ratio form", "fails"],
        ["Verdict, odds form", "holds"],
        ["Effect", "0.200"],
        ["Interval", interval_text((0.1, 0.3))],
        ["What was found", "less than one"],
        ["Estimand", "an estimand"],
        ["Threshold", "a threshold"],
    ]
    assert "less than one" in shown(lambda: check_claim("L01"))[0].data["text/html"]
    assert claim_table(claims[1], claims[1].check())["B05"].tolist() == ["Verdict", "Estimand", "Threshold"]
    with pytest.raises(InputError, match="unknown claim"):
        check_claim("L99")


def test_shown_source_is_the_source_that_runs():
    (output,) = shown(lambda: show_source(rounded))
    text = output.data["text/markdown"]
    assert text.startswith("From `lethe_lib/reporting/glue.py`:")
    assert "def rounded(value: float, digits: int = 3)" in text
    assert text.endswith("value\n````")
    for without in (len, 3, pd.DataFrame):
        with pytest.raises(InputError, match="no source"):
            show_source(without)


def test_provenance_names_versions_parameters_records_and_data(capsys):
    load_records("displacement")
    provenance({"seed": 3}, [SimpleNamespace(name="tiny", content_hash="abc123")])
    printed = capsys.readouterr().out
    rows = dict(line.split("  ", 1) for line in printed.splitlines())
    assert rows["torch"].strip() == torch.__version__
    assert rows["parameter seed"].strip() == "3"
    assert rows["graph tiny"].strip() == "abc123"
    digest = hashlib.sha256((paths.results() / "displacement.parquet").read_bytes()).hexdigest()
    assert rows["records displacement.parquet"].strip() == digest[:16]
    assert int(rows["cores"]) >= 1
    assert "commit" in rows


def test_the_style_sets_resolution_and_distinct_colours():
    with plt.rc_context():
        use_style()
        assert plt.rcParams["figure.dpi"] == 150
        assert [to_hex(color) for color in plt.rcParams["axes.prop_cycle"].by_key()["color"]] == list(PALETTE)
    assert len(set(PALETTE)) == len(PALETTE) >= 8
