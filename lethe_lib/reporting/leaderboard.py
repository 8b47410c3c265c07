"""The leaderboard and the cards of the methods as a page shows them: sortable, readable without a mouse, without network."""

from collections.abc import Collection, Mapping, Sequence
from html import escape

import numpy as np
import pandas as pd

from lethe_lib.reporting.attack_controls import controls_excess
from lethe_lib.reporting.glue import fixed
from lethe_lib.reporting.titles import ATTACK_TITLES, BACKBONE_TITLES, method_title
from lethe_lib.study.benchmark import ATTACK_NAMES
from lethe_lib.unlearning import UNLEARNERS, unlearn

SORT = """<script>
(function () {
  const table = document.currentScript.previousElementSibling.querySelector("table");
  const body = table.tBodies[0], buttons = Array.from(table.querySelectorAll("thead button"));
  buttons.forEach(function (button, column) {
    button.addEventListener("click", function () {
      const head = button.parentElement, up = head.getAttribute("aria-sort") !== "ascending";
      buttons.forEach(function (other) { other.parentElement.removeAttribute("aria-sort"); });
      head.setAttribute("aria-sort", up ? "ascending" : "descending");
      const value = function (row) { return row.cells[column].dataset.value; };
      const order = function (a, b) {
        const x = value(a), y = value(b);
        if (x === "" || y === "") { return (x === "") - (y === ""); }
        const number = Number(x) - Number(y);
        return (up ? 1 : -1) * (isNaN(number) ? x.localeCompare(y) : number);
      };
      Array.from(body.rows).sort(order).forEach(function (row) { body.appendChild(row); });
    });
  });
})();
</script>"""


class SortableTable:
    """A long table whose columns can be sorted: HTML with a few lines of script, plain text for comparison.

    It scrolls inside its own box on narrow screens; headers are buttons, and rows without a value go last.

    Args:
        shown: text of every cell; its first column becomes the row headers.
        values: what to sort by, numbers or texts, of the same shape and columns.
        caption: one sentence that says what the rows are.
        wrap: columns of prose, whose lines may break.
    """

    def __init__(self, shown: pd.DataFrame, values: pd.DataFrame, caption: str, wrap: Collection[str] = ()):
        self.shown, self.values, self.caption = shown, values[list(shown.columns)], caption
        self.styles = [_style(name in wrap) for name in shown.columns]

    def _repr_html_(self) -> str:
        cell = 'scope="col" style="white-space: normal"'
        button = (
            'type="button" style="all: unset; cursor: pointer; font-weight: bold; text-decoration: underline dotted"'
        )
        head = "".join(f"<th {cell}><button {button}>{escape(name)}</button></th>" for name in self.shown.columns)
        rows = []
        for texts, keys in zip(self.shown.itertuples(index=False), self.values.itertuples(index=False), strict=True):
            cells = [
                f'<{tag} data-value="{escape(_key(key))}" style="{style}">{escape(text)}</{tag.split()[0]}>'
                for tag, text, key, style in zip(_tags(len(texts)), texts, keys, self.styles, strict=True)
            ]
            rows.append(f"<tr>{''.join(cells)}</tr>")
        box = f'role="region" tabindex="0" aria-label="{escape(self.caption)}" style="overflow-x: auto"'
        table = f'<table class="table"><thead><tr>{head}</tr></thead><tbody>{"".join(rows)}</tbody></table>'
        # The caption stands outside the box, where it does not scroll away with wide tables.
        return f"<div><p>{escape(self.caption)} Select a column to sort by it.</p><div {box}>{table}</div></div>{SORT}"

    def __repr__(self) -> str:
        lines = [" | ".join(row) for row in [tuple(self.shown.columns), *self.shown.itertuples(index=False, name=None)]]
        return "\n".join([self.caption, *lines])


def _style(wrap: bool) -> str:
    return "white-space: normal; min-width: 16rem" if wrap else "white-space: nowrap"


def _tags(count: int) -> list[str]:
    return ['th scope="row"', *["td"] * (count - 1)]


def _key(value: object) -> str:
    if isinstance(value, str):
        return value
    return "" if pd.isna(value) else f"{float(value):.9g}"


def blindness() -> pd.DataFrame:
    """In how many settings of ``attack_controls`` an attack of the benchmark cannot tell the planted Memoriser from Gold.

    Returns:
        indexed by attack: ``blind`` of ``settings`` (graph, forget set), retained graph, the benchmark's own negatives; and
        ``is_blind``, whether these are more than half.
    """
    table = controls_excess()
    table = table[(table["query"] == "retained") & (table["method"] == "gold") & table["attack"].isin(ATTACK_NAMES)]
    flags = table[table["negatives"] != "matched"].groupby("attack")["blind"].apply(lambda own: own.astype(bool))
    found = flags.groupby("attack").agg(blind="sum", settings="size").reindex(list(ATTACK_NAMES))
    return found.assign(is_blind=found["blind"] > found["settings"] / 2)


def leaderboard_table(
    board: pd.DataFrame, certificates: Mapping[str, str], caption: str, blind: pd.DataFrame | None = None
) -> SortableTable:
    """A :func:`lethe_lib.study.benchmark.leaderboard` for the reader.

    Args:
        board: the numbers. Columns of attacks are sorted by the distance from Gold, as neither side of it is good.
        certificates: method -> what is certified of its release, from :func:`with_retrainings`.
        caption: of the table.
        blind: from :func:`blindness`; the columns of attacks that are blind then say so.
    """
    shown, values = pd.DataFrame(), pd.DataFrame()

    def add(title: str, texts: Sequence[str], keys: Sequence) -> None:
        shown[title], values[title] = list(texts), list(keys)

    def add_attacks(names: Sequence[str]) -> None:
        for name in names:
            note = (
                f", blind in {blind.loc[name, 'blind']} of {blind.loc[name, 'settings']} settings"
                if is_blind[name]
                else ""
            )
            texts = interval_cells(board, f"{name}_excess", 1, 3)
            add(f"{ATTACK_TITLES[name]} over Gold{note}", texts, board[f"{name}_excess"].abs())

    titles = [method_title(name) for name in board["method"]]
    backbones = [BACKBONE_TITLES.get(name, name) for name in board["backbone"]]
    names = [t if b == "GCN" else f"{t} ({b})" for t, b in zip(titles, backbones, strict=True)]
    add("Method", names, names)
    add("Accuracy, points", interval_cells(board, "change", 100, 1), board["change"])
    is_blind = {name: blind is not None and bool(blind.loc[name, "is_blind"]) for name in ATTACK_NAMES}
    add_attacks([name for name in ATTACK_NAMES if not is_blind[name]])
    add("Residual memory, Cora low", interval_cells(board, "residual", 1, 2, signed=False), board["residual"])
    add("Seconds over Gold's", [_number(value, 3) for value in board["share"]], board["share"])
    add("on Photo", [_number(value, 3) for value in board["share_photo"]], board["share_photo"])
    add_attacks([name for name in ATTACK_NAMES if is_blind[name]])
    given = [certificates.get(name, "none") for name in board["method"]]
    add("Certificate", given, given)
    for title, column in (("Family", "kind"), ("Runs", "runs"), ("Graphs", "graphs"), ("Broken", "broken")):
        add(title, board[column].astype(str), board[column])
    return SortableTable(shown, values, caption)


def certificates_of(methods: Sequence[str], data, models: Mapping[str, object], pairs) -> dict[str, str]:
    """What every method certifies of a release with its preset ``corrected``: one run each on a small graph.

    Args:
        methods: names. data: a graph. models: backbone -> trained model, for methods without GCN too. pairs: to forget.

    Returns:
        ``none`` for methods that claim nothing, else the status of the certificate with its parameters.
    """
    found = {}
    for name in methods:
        backbones = UNLEARNERS[name].backbones or tuple(models)
        model = models[next(backbone for backbone in models if backbone in backbones)]
        certificate = unlearn(name, model, data, pairs).steps.certificate
        if certificate is None:
            found[name] = "none"
        elif certificate.status == "valid":
            found[name] = f"epsilon {certificate.epsilon:g}, delta {certificate.delta:.2g}"
        else:
            found[name] = certificate.status.replace("_retrained", "").replace("_", " ")
    return found


def trained_again(records: pd.DataFrame) -> pd.Series:
    """Which runs trained again because the budget of their certificate was spent: what they release is a Gold."""
    return records.reindex(columns=["certificate_retrainings"])["certificate_retrainings"] > 0


def retrained_runs(records: pd.DataFrame, board: pd.DataFrame, preset: str = "corrected") -> pd.DataFrame:
    """How many of the runs behind a leaderboard trained again.

    Args:
        records: from ``benchmark_records``. board: from ``leaderboard``, of the same ``preset``.

    Returns:
        indexed by method, those with such a run alone: ``again`` of ``runs``, and their ``share``.
    """
    runs = records[(records["preset"] == preset) & records["forget"].isin(["low", "high"])]
    runs = runs.merge(board[["method", "backbone"]])
    found = trained_again(runs).groupby(runs["method"]).agg(again="sum", runs="size")
    return found[found["again"] > 0].assign(share=lambda table: table["again"] / table["runs"])


def with_retrainings(certificates: Mapping[str, str], again: pd.DataFrame) -> dict[str, str]:
    """Certificates as the tables show them: those of methods in :func:`retrained_runs` say how often they trained again."""
    return {
        name: f"{text}; trained again in {again.loc[name, 'again']} of {again.loc[name, 'runs']} runs"
        if name in again.index
        else text
        for name, text in certificates.items()
    }


class MethodCards:
    """One compact card per method, from records: a grid that becomes one column on narrow screens.

    Args:
        board: from :func:`lethe_lib.study.benchmark.leaderboard`.
        failures: from :func:`lethe_lib.study.benchmark.not_ok`.
        certificates: from :func:`with_retrainings`.
    """

    def __init__(self, board: pd.DataFrame, failures: pd.DataFrame, certificates: Mapping[str, str]):
        self.cards = [_card(row, failures, certificates) for row in board.to_dict("records")]

    def _repr_html_(self) -> str:
        grid = "display: grid; grid-template-columns: repeat(auto-fill, minmax(min(17rem, 100%), 1fr)); gap: 0.8rem"
        box = "border: 1px solid #8888; border-radius: 0.4rem; padding: 0.6rem 0.8rem; font-size: 0.85em"
        line = "display: flex; justify-content: space-between; gap: 0.6rem"
        cards = []
        for title, reference, lines in self.cards:
            items = "".join(
                f'<div style="{line}"><dt>{escape(name)}</dt><dd style="margin: 0; text-align: right">{escape(value)}</dd></div>'
                for name, value in lines
            )
            cards.append(
                f'<section aria-label="{escape(title)}" style="{box}"><strong>{escape(title)}</strong><br>'
                f'<em>{escape(reference)}</em><dl style="margin: 0.4rem 0 0">{items}</dl></section>'
            )
        return f'<div style="{grid}">{"".join(cards)}</div>'

    def __repr__(self) -> str:
        return "\n".join(
            f"{title} ({reference}): " + "; ".join(f"{name} {value}" for name, value in lines)
            for title, reference, lines in self.cards
        )


def _card(row: dict, failures: pd.DataFrame, certificates: Mapping[str, str]) -> tuple[str, str, list[tuple[str, str]]]:
    name, entry, one = row["method"], UNLEARNERS[row["method"]], pd.DataFrame([row])
    lines = [("Family", f"{row['kind']}, shown on {BACKBONE_TITLES[row['backbone']]}, {row['graphs']} graphs")]
    lines += [("Accuracy, points", interval_cells(one, "change", 100, 1)[0])]
    for attack in ATTACK_NAMES:
        lines += [
            (f"{ATTACK_TITLES[attack]} over Gold", interval_cells(one, f"{attack}_excess", 1, 3)[0] or "no record")
        ]
    share = [_number(row[part], 2) for part in ("share", "share_first", "share_third")]
    lines += [("Seconds over Gold's", f"{share[0]} (quartiles {share[1]} and {share[2]})")]
    lines += [("Residual memory, Cora low", interval_cells(one, "residual", 1, 2, signed=False)[0] or "not audited")]
    lines += [("Certificate", certificates.get(name, "none"))]
    own = failures[failures["method"] == name]
    broken = "; ".join(f"{r.runs} of {r.of} {r.status} under {r.preset}" for r in own.itertuples())
    lines += [("Not ok", broken or "no run")]
    return method_title(name), entry.reference or "control", lines


def interval_cells(table: pd.DataFrame, column: str, scale: float, digits: int, signed: bool = True) -> list[str]:
    """A column with the ends of its interval as text; empty where there is no value, alone where there is no interval."""
    cells = []
    for value, low, high in table[[column, f"{column}_low", f"{column}_high"]].itertuples(index=False, name=None):
        if pd.isna(value):
            cells.append("")
            continue
        text, *ends = (fixed(scale * number, digits, signed) for number in (value, low, high))
        cells.append(f"{text} [{ends[0]}, {ends[1]}]" if np.isfinite([low, high]).all() else text)
    return cells


def _number(value: float, digits: int) -> str:
    return "" if pd.isna(value) else f"{value:.{digits}g}"
