"""``python -m lethe_lib findings``: the main findings in a few lines with one figure, from published records.

They go into README.md and into the introduction of the book.

Every number comes from ``results/``; the text stands between two markers, so that a test can tell whether it is up to date.
The figure carries the hash of the numbers that it draws.
"""

import argparse
import hashlib

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from lethe_lib.errors import InputError
from lethe_lib.paths import repository
from lethe_lib.reporting.claims import CLAIMS
from lethe_lib.reporting.claims_accuracy_is_blind import accuracy_changes
from lethe_lib.reporting.claims_edge_audit import gcn_runs, removing_methods
from lethe_lib.reporting.glue import as_text, interval_text
from lethe_lib.reporting.leaderboard import blindness, retrained_runs
from lethe_lib.reporting.style import PALETTE, use_style
from lethe_lib.reporting.titles import ATTACK_TITLES, METHOD_TITLES
from lethe_lib.study.benchmark import (
    benchmark_excess,
    benchmark_records,
    leaderboard,
    residual_memory_table,
)

BEGIN, END = "<!-- findings: begin -->", "<!-- findings: end -->"
FIGURE = "book/figures/findings.png"
PAGES = {"README.md": FIGURE, "book/intro.md": "figures/findings.png"}
"""Page -> where the figure lies as seen from it."""
READS_THE_GRAPH = 0.05
"""An attack whose AUC training moves by less than this, anywhere, tells hardly anything of the model."""
ALT = (
    "Left: AUC of LinkTeller on an untrained network against that on a retrained one, a point per graph, backbone and forget "
    "set; the points lie on the diagonal. Right: seconds over Gold's on a logarithmic scale against the change of test "
    "accuracy, a point per method; nearly all lie left of one and near zero."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    parser.add_argument("--check", action="store_true", help="change nothing; 1 if a page is not up to date")


def main(arguments: argparse.Namespace) -> int:
    """Run the command."""
    lines = findings()
    old = {name: (repository() / name).read_text(encoding="utf-8") for name in PAGES}
    new = {name: with_findings(text, lines, PAGES[name]) for name, text in old.items()}
    if arguments.check:
        stale = [name for name in PAGES if new[name] != old[name]]
        print(f"not up to date: {', '.join(stale)}; python -m lethe_lib findings" if stale else "up to date")
        return int(bool(stale))
    for name, text in new.items():
        (repository() / name).write_text(text, encoding="utf-8")
    figure, digest = findings_figure()
    figure.savefig(repository() / FIGURE, metadata={"Software": None, "Description": digest})
    print(f"wrote {', '.join((*PAGES, FIGURE))}")
    return 0


def with_findings(page: str, lines: list[str], figure: str) -> str:
    """The text of a page with what stands between the markers replaced by the figure and the findings.

    Args:
        page: the text. lines: from :func:`findings`. figure: path of the figure as seen from the page.

    Raises:
        InputError: a marker is missing.
    """
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise InputError(f"the page needs the lines {BEGIN} and {END}, in this order")
    listed = "\n".join(f"{number}. {line}" for number, line in enumerate(lines, 1))
    return f"{before}{BEGIN}\n![{ALT}]({figure})\n\n{listed}\n{END}{after}"


def findings() -> list[str]:
    """The findings, one sentence or two each; the last one only where the edge audit is published."""
    records, excess, memory = benchmark_records(), benchmark_excess(), residual_memory_table()
    lines = [_membership(), _accuracy(), _structure(excess), _benchmark(records, excess, memory)]
    return lines + ([_memory()] if memory["to_remove"].any() else [])


def _membership() -> str:
    found = CLAIMS["B20"].check()
    return (
        "**Membership.** Attack accuracy hides who is exposed: on every graph there are two settings of nearly equal global "
        f"accuracy whose most exposed nodes differ in advantage by at least {as_text(found.effect)} "
        f"{interval_text(found.interval)}."
    )


def _accuracy() -> str:
    table = accuracy_changes()
    halves = table[(table["forget"] == "low") & (table["fraction"] == 0.5)]
    low = 100 * halves["change"].abs().max()
    table = table[table["forget"] == "random"]
    small, large = (100 * table[table["fraction"] == share]["change"].abs().max() for share in (0.05, 0.5))
    return (
        f"**Accuracy.** Retraining without a random 5 % of the edges moves test accuracy by at most {small:.1f} points on "
        f"{table['data'].nunique()} graphs, without a random half by at most {large:.1f}, without the low-centrality half by up "
        f"to {low:.1f}: at the size of a request it hardly tells whether edges were forgotten."
    )


def _structure(excess: pd.DataFrame) -> str:
    table = structure_table(excess)
    gap = (table["untrained"] - table["gold"]).abs().max()
    low, high = (table[table["forget"] == kind]["untrained"].mean() for kind in ("low", "high"))
    end = ": it reads the graph and hardly the model." if gap < READS_THE_GRAPH else "."
    return (
        f"**Structure.** LinkTeller scores {low:.2f} on low-centrality and {high:.2f} on high-centrality edges of an *untrained* "
        f"network, within {as_text(gap, 2)} of a retrained one in all {len(table)} cells{end}"
    )


def _benchmark(records: pd.DataFrame, excess: pd.DataFrame, memory: pd.DataFrame) -> str:
    board = leaderboard(records, excess, memory)
    methods = board[board["kind"] != "control"]
    cells = excess[(excess["preset"] == "corrected") & excess["method"].isin(methods["method"])]
    blind = blindness()["is_blind"]
    sides = [
        f"{ATTACK_TITLES[name]} finds {(part['excess_low'] > 0).sum():,} of {len(part):,} comparisons with Gold (method, cell) "
        f"above it with the whole interval and {(part['excess_high'] < 0).sum():,} below"
        for name, part in cells.groupby("attack", sort=False)
        if not blind[name]
    ]
    unseeing = " and ".join(ATTACK_TITLES[name] for name in blind.index[blind]) or "none"
    working = methods[methods["method"] != "utu"]
    worst, more = working.loc[working["change"].idxmin()], int((working["share"] > 1).sum())
    again = retrained_runs(records, methods)
    often = [METHOD_TITLES[name] for name in again.index[again["share"] > 0.5]]
    others = f"; {' and '.join(often)} trained again in most runs, which is retraining" if often else ""
    cost, change = 100 * working["share"].median(), 100 * working["change"].median()
    return (
        f"**Unlearning.** {len(methods)} methods. {'; '.join(sides)}: either side tells the model from a retrained one. Blind to "
        f"planted memory in most settings: {unseeing}. The median cost is {cost:.0f} % of retraining; "
        f"{more} {'method costs' if more == 1 else 'methods cost'} more{others}. Accuracy changes by {change:+.1f} points in the "
        f"median and by {100 * worst['change']:+.1f} at worst ({METHOD_TITLES[worst['method']]})."
    )


def _memory() -> str:
    methods, runs = removing_methods(), gcn_runs()
    unlinked = runs[runs["method"] == "utu"]
    everywhere = methods[methods["covers"]]
    best, worst = everywhere.iloc[0], everywhere.loc[everywhere["residual"].idxmax()]
    return (
        "**Memory.** In the randomised edge audit, where an exact answer has an AUC of one half, unlinking leaves memory in "
        f"{unlinked['to_remove'].eq(True).sum()} of {len(unlinked)} settings (graph, pool), with AUCs up to "
        f"{unlinked['auc'].max():.2f}. Of {len(methods)} methods {methods['removes'].sum() or 'none'} is shown to remove half of "
        f"it in all {methods.attrs['settings']} settings that can tell, for at most a point of accuracy; added up over them "
        f"{METHOD_TITLES[best['method']]} leaves {best['residual']:.2f} of it, where training stopped early, and "
        f"{METHOD_TITLES[worst['method']]} {worst['residual']:.1f} times as much as unlinking"
        f"{': it writes the request into the model' if worst['residual'] > 1 else ''}."
    )


def structure_table(excess: pd.DataFrame) -> pd.DataFrame:
    """AUC of LinkTeller on the untrained network and on Gold, one row per cell of preset ``corrected``."""
    part = excess[(excess["attack"] == "link_teller") & (excess["method"] == "untrained")]
    part = part[part["preset"] == "corrected"].rename(columns={"auc": "untrained", "gold_auc": "gold"})
    return part[["data", "backbone", "forget", "untrained", "gold"]].reset_index(drop=True)


def findings_figure() -> tuple[Figure, str]:
    """The figure of the README, and the hash of the numbers in it."""
    use_style()
    records, excess, memory = benchmark_records(), benchmark_excess(), residual_memory_table()
    structure, board = structure_table(excess), leaderboard(records, excess, memory)
    board = board[board["kind"] != "control"]
    fig, (left, right) = plt.subplots(1, 2, figsize=(9, 3.8))
    colours = {"low": PALETTE[1], "high": PALETTE[0], "random": PALETTE[2], "community": PALETTE[4]}
    for kind, part in structure.groupby("forget", sort=True):
        left.plot(part["gold"], part["untrained"], "o", color=colours[kind], markersize=5, label=kind)
    left.plot([0.5, 1], [0.5, 1], color="0.5", linewidth=1, zorder=0)
    left.set(
        xlabel="AUC on a retrained network", ylabel="AUC on an untrained network", title="LinkTeller reads the graph"
    )
    left.legend(title="forget set")
    kinds = {"generic": ("o", PALETTE[0]), "graph-native": ("s", PALETTE[1]), "addition": ("^", PALETTE[2])}
    for kind, (marker, colour) in kinds.items():
        part = board[board["kind"] == kind]
        right.plot(
            part["share"], 100 * part["change"], marker, color=colour, markersize=6, label=kind, linestyle="none"
        )
    right.axvline(1, color="0.5", linewidth=1)
    right.axhline(0, color="0.5", linewidth=1)
    right.set(xscale="log", xlabel="seconds over Gold's, median", ylabel="accuracy, change in points")
    right.set_title("Accuracy and cost of unlearning")
    right.legend(title="methods")
    drawn = [structure[["gold", "untrained"]], board[["share", "change"]]]
    numbers = np.concatenate([table.to_numpy(dtype=float).ravel() for table in drawn])
    digest = hashlib.sha256(",".join(f"{number:.6g}" for number in numbers).encode()).hexdigest()
    return fig, digest
