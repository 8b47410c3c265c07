"""The benchmark: leaderboard, own unlearners from outside, claims of chapter 14, findings in the README, verdicts."""

import json
import re
import sys
from dataclasses import asdict, replace

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from bs4 import BeautifulSoup
from PIL import Image

from lethe_lib import paths
from lethe_lib.__main__ import main as command_line
from lethe_lib.errors import InputError
from lethe_lib.reporting import CLAIMS, Finding, claims_attacks, claims_benchmark
from lethe_lib.reporting.benchmark_figures import distance_from_gold, fronts_figure, pareto_front, ranking_figure
from lethe_lib.reporting.benchmark_tests import (
    controls_against_gold,
    gold_tests_table,
    graded,
    low_minus_high,
    methods_against_gold,
    pooled_and_dependent,
    ranking,
    sets_table,
    told_apart,
)
from lethe_lib.reporting.findings import BEGIN, END, FIGURE, PAGES, findings, findings_figure, with_findings
from lethe_lib.reporting.leaderboard import (
    MethodCards,
    SortableTable,
    blindness,
    interval_cells,
    leaderboard_table,
    retrained_runs,
    with_retrainings,
)
from lethe_lib.reporting.verdicts import NOT_TESTED, SOURCE_IDS, ClaimsView, decided_later, untested
from lethe_lib.study import RecordStore, run
from lethe_lib.study.benchmark import (
    STUDIES_READ,
    benchmark_excess,
    benchmark_records,
    cell_board,
    leaderboard,
    missing_studies,
    not_ok,
    residual_memory_table,
    with_outcomes,
)
from lethe_lib.study.centrality_rank import CentralityRankConfiguration
from lethe_lib.study.configuration import preset_settings
from lethe_lib.study.edge_audit import HEADLINE, EdgeAuditConfiguration
from lethe_lib.study.leaderboard import own_method
from lethe_lib.study.verify import LONG, places, sample
from lethe_lib.unlearning import UNLEARNERS

OWN = """
from lethe_lib.unlearning import UNLEARNERS, NoSettings, StepLog, Unlearner

def {name}(model, request, settings, seed):
    for parameter in model.parameters():
        parameter.data.mul_(0.9)
    return model, StepLog()

{upper} = Unlearner({name}, {{"corrected": NoSettings()}}, "addition", "a test")
"""
CALL = 'UNLEARNERS.register("{name}", {upper})\n'


@pytest.fixture(autouse=True)
def clean():
    before = dict(UNLEARNERS._entries)
    yield
    UNLEARNERS._entries.clear()
    UNLEARNERS._entries.update(before)
    plt.close("all")


def own_file(folder, name, call=True):
    path = folder / f"{name}.py"
    path.write_text((OWN + (CALL if call else "")).format(name=name, upper=name.upper()))
    return path


@pytest.fixture(scope="module")
def tables():
    return benchmark_records(), benchmark_excess()


# Records of several studies as one table


def run_row(method, seed, seconds, status="ok", accuracy=0.8, data="g", forget="low", **more):
    row = {"data": data, "preset": "corrected", "backbone": "gcn", "forget": forget, "method": method, "seed": seed}
    row |= {"seconds": seconds, "status": status, "accuracy_test": accuracy, "original_accuracy_test": 0.9}
    return {**row, "reason": "", **more}


def test_costs_are_over_the_golds_of_the_same_cell_and_seed():
    rows = [run_row("gold", 0, 2.0), run_row("gold", 0, 4.0), run_row("gold", 1, 10.0), run_row("scrub", 0, 6.0)]
    rows += [
        run_row("scrub", 1, 1.0, "collapsed", 0.5),
        run_row("ceu", 0, 0.0, "unsupported", 0.9),
        run_row("scrub", 7, 1.0),
    ]
    found = with_outcomes(pd.DataFrame(rows))
    assert found["share"].tolist()[:5] == pytest.approx([2 / 3, 4 / 3, 1.0, 2.0, 0.1])
    assert found["share"].isna().tolist()[5:] == [True, True]  # released nothing of its own; no Gold
    assert found["change"].tolist()[:5] == pytest.approx([-0.1, -0.1, -0.1, -0.1, -0.4]) and np.isnan(
        found["change"][5]
    )
    assert found["broken"].tolist() == [False, False, False, False, True, False, False]


def test_every_run_counts_once_and_as_its_preset_means_it(tables):
    records, excess = tables
    assert records["key"].is_unique
    assert not excess.duplicated(["data", "preset", "backbone", "forget", "method", "attack"]).any()
    assert set(records["fraction"]) == {0.05} and set(records["study"]) <= set(STUDIES_READ)
    for row in records.sample(40, random_state=0).to_dict("records"):
        config = json.loads(row["config_json"])
        assert config["training"] == []
    with pytest.raises(InputError, match="is published"):
        benchmark_records(["no_such_study"])


def test_a_study_that_is_not_published_is_named(tmp_path, monkeypatch):
    monkeypatch.setenv("LETHE_RESULTS", str(tmp_path))
    assert set(STUDIES_READ) < set(missing_studies())
    assert residual_memory_table().empty


def test_residual_memory_is_that_of_the_main_setting_of_the_audit(tmp_path, monkeypatch):
    own = preset_settings("scrub", "corrected")
    plain = EdgeAuditConfiguration("cora", method="scrub", trials=32, settings=own)
    kinds = {"varied": replace(plain, settings=tuple({**dict(own), "epochs": 3}.items()))}
    kinds |= {"plain": plain, "sgc": replace(plain, backbone="sgc", trials=64)}
    kinds |= {"long": replace(plain, training=(("epochs", 200),)), "high": replace(plain, pool="high")}
    kinds |= {"preset": replace(plain, preset="published"), "graph": replace(plain, data="dblp")}
    rows = [
        {"key": key, "method": "scrub", "backbone": c.backbone, "config_json": json.dumps(asdict(c))}
        for key, c in kinds.items()
    ]
    memory = [
        {"key": key, "method": "scrub", "adversary": adversary, "residual": value, "to_remove": True}
        | {"residual_low": value - 0.1, "residual_high": value + 0.1}
        for key in kinds
        for adversary, value in ((HEADLINE, 0.1 if key == "varied" else 0.5), ("posteriors", 0.9))
    ]
    pd.DataFrame(rows).to_parquet(tmp_path / "edge_audit.parquet")
    pd.DataFrame(memory).to_parquet(tmp_path / "edge_audit_memory.parquet")
    monkeypatch.setenv("LETHE_RESULTS", str(tmp_path))
    found = residual_memory_table()
    assert found["backbone"].tolist() == ["gcn", "sgc"] and found["residual"].tolist() == [0.5, 0.5]
    assert residual_memory_table("dblp")["backbone"].tolist() == ["gcn"]
    again = {"key": "again", "method": "scrub", "backbone": "gcn"}
    again["config_json"] = json.dumps(asdict(replace(plain, trials=64)))
    pd.DataFrame([*rows, again]).to_parquet(tmp_path / "edge_audit.parquet")
    pd.DataFrame([*memory, {**memory[0], "key": "again"}]).to_parquet(tmp_path / "edge_audit_memory.parquet")
    with pytest.raises(InputError, match="several runs of scrub"):
        residual_memory_table()


def test_the_leaderboard_counts_a_graph_once_and_gives_intervals_over_graphs(tables):
    records, excess = tables
    board = leaderboard(records, excess, residual_memory_table()).set_index("method")
    own = records[(records["method"] == "scrub") & (records["backbone"] == "gcn")]
    own = graded(own)
    by_graph = own.groupby("data")["change"].mean()
    assert board.loc["scrub", "change"] == pytest.approx(by_graph.mean())
    assert board.loc["scrub", "change_low"] < by_graph.mean() < board.loc["scrub", "change_high"]
    assert board.loc["scrub", "share"] == pytest.approx(own["share"].median())
    assert board.loc["scrub", "graphs"] == own["data"].nunique() and board.loc["scrub", "runs"] == len(own)
    assert (board["kind"] != "control").sum() >= 15
    assert np.isnan(board.loc["gold", "link_teller_excess_low"]) and board.loc["gold", "link_teller_excess"] == 0.0


def test_one_cell_lists_controls_first_and_then_by_leakage(tables):
    records, excess = tables
    part = [
        t[(t[["data", "preset", "backbone", "forget"]] == ["cora", "corrected", "gcn", "low"]).all(axis=1)]
        for t in tables
    ]
    board = cell_board(*part)
    assert (board["kind"] == "control").tolist() == sorted((board["kind"] == "control").tolist(), reverse=True)
    attacks = [f"{n}_excess" for n in ("link_teller", "link_stealing", "e_umia")]
    assert board[board["kind"] != "control"][attacks].abs().mean(axis=1).is_monotonic_increasing


def test_far_below_gold_ranks_as_badly_as_far_above():
    records = with_outcomes(pd.DataFrame([run_row(name, 0, 1.0) for name in ("gold", "scrub", "fisher", "ssd", "npo")]))
    leaks = [leak_row(name, "g", value) for name, value in (("scrub", -0.3), ("fisher", 0.2), ("ssd", -0.01))]
    leaks = pd.DataFrame(leaks).assign(excess_low=np.nan, excess_high=np.nan)
    assert cell_board(records, leaks)["method"].tolist() == ["gold", "ssd", "fisher", "scrub", "npo"]


def test_runs_that_did_not_end_well_are_all_counted(tables):
    records, _ = tables
    counted = not_ok(records)
    assert counted["runs"].sum() == (records["status"] != "ok").sum()
    rows = pd.DataFrame([run_row("scrub", 0, 1.0), run_row("scrub", 1, 1.0, "failed", reason="boom")])
    (only,) = not_ok(rows).to_dict("records")
    assert (only["status"], only["runs"], only["of"], only["where"], only["reason"]) == (
        "failed",
        1,
        2,
        "gcn g low (1)",
        "boom",
    )


# Your own unlearner


def test_an_unlearner_from_a_file_appears_in_the_leaderboard_after_one_command(tmp_path, capsys):
    file, records = own_file(tmp_path, "own_shrink"), tmp_path / "records"
    command = ["leaderboard", "--file", str(file), "--graphs", "synthetic-tiny", "--sets", "low", "--seeds", "2"]
    command += ["--records", str(records)]
    assert command_line(command) == 0
    printed = capsys.readouterr().out
    (row,) = [line for line in printed.splitlines() if "> own_shrink" in line]
    assert "addition" in row and len(re.findall(r"\[[^\]]*\]", row)) == 4  # accuracy and three attacks, with intervals
    assert all(name in printed for name in ("gold", "untrained", "original", "utu"))
    files = {path: path.stat().st_mtime_ns for path in (records / "leaderboard").iterdir()}
    UNLEARNERS._entries.pop("own_shrink")
    assert command_line(command) == 0  # resumes: nothing is computed again
    assert "14 runs, 14 done before, 0 to do" in capsys.readouterr().out
    assert files == {path: path.stat().st_mtime_ns for path in (records / "leaderboard").iterdir()}
    store = RecordStore(records / "leaderboard")
    sources = {store.read(key)["config"].get("source", "") for key in store.keys()}
    assert len(sources) == 2  # none for the controls, the file's hash for the method


def test_an_unlearner_is_found_by_its_entry_point(tmp_path, monkeypatch):
    own_file(tmp_path, "own_entry", call=False)
    info = tmp_path / "own_entry-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: own-entry\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[lethe_lib.unlearners]\nown_entry = own_entry:OWN_ENTRY\nbad = own_entry:CALLS\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    name, source = own_method(None, "own_entry")
    assert name == "own_entry" and "own_entry" in UNLEARNERS and len(source) == 64
    sys.modules["own_entry"].CALLS = 3
    with pytest.raises(InputError, match="let it name an Unlearner"):
        own_method(None, "bad")
    with pytest.raises(InputError, match="unknown unlearner"):
        own_method(None, "nobody_has_this")


def test_a_file_with_several_unlearners_needs_a_choice(tmp_path):
    file = own_file(tmp_path, "own_first")
    file.write_text(file.read_text() + 'UNLEARNERS.register("own_second", OWN_FIRST)\n')
    with pytest.raises(InputError, match="choose one with --method"):
        own_method(file, None)
    for name in ("own_first", "own_second"):
        UNLEARNERS._entries.pop(name)
    assert own_method(file, "own_second")[0] == "own_second"
    for name in ("own_first", "own_second"):
        UNLEARNERS._entries.pop(name)
    with pytest.raises(InputError, match="and not 'third'"):
        own_method(file, "third")


def test_a_cell_without_published_rows_asks_for_a_method(capsys):
    assert command_line(["leaderboard", "--graphs", "synthetic-tiny", "--sets", "low"]) == 1
    assert "nothing is published" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("option", "message"),
    [
        (["--graphs", "core"], "unknown data set 'core'. Did you mean 'cora'?"),
        (["--sets", "nosuch"], "unknown forget set 'nosuch'"),
        (["--backbone", "nosuch"], "unknown backbone 'nosuch'"),
        (["--preset", "nosuch"], "unknown preset 'nosuch': choose corrected or published"),
        (["--method", "l1_sparse", "--preset", "published"], "l1_sparse has no preset 'published': choose corrected"),
    ],
)
def test_names_that_the_leaderboard_does_not_know_are_named(option, message, capsys):
    assert command_line(["leaderboard", *option]) == 1
    assert message in capsys.readouterr().err


# Statistics of the chapter


def leak_row(method, data, excess, attack="link_stealing", forget="low", auc=0.5):
    row = {"data": data, "preset": "corrected", "backbone": "gcn", "forget": forget, "method": method, "attack": attack}
    return {**row, "excess": excess, "excess_low": excess - 0.015, "excess_high": excess + 0.015, "auc": auc}


def test_methods_are_tested_over_settings_with_correction():
    graphs = [f"g{number}" for number in range(8)]
    rows = [leak_row("scrub", g, 0.01 * (k + 1), forget=f) for k, g in enumerate(graphs) for f in ("low", "high")]
    rows += [leak_row("fisher", g, 0.01 * (-1) ** k * (k + 1)) for k, g in enumerate(graphs)]
    rows += [leak_row("ssd", g, 0.5) for g in graphs[:3]] + [leak_row("gold", g, 0.0) for g in graphs]
    found = methods_against_gold(pd.DataFrame(rows), "link_stealing").set_index("method")
    assert list(found.index) == ["scrub", "fisher"]  # three settings are too few, Gold is no method
    assert found.loc["scrub", "p"] == pytest.approx(2 / 2**8) and found.loc["scrub", "settings"] == 8
    assert found.loc["scrub", "p_holm"] == pytest.approx(4 / 2**8)
    assert found.loc["scrub", "effect"] == 1.0 and abs(found.loc["fisher", "effect"]) < 0.2
    assert found[["above", "below", "cells"]].to_numpy().tolist() == [[14, 0, 16], [3, 4, 8]]
    tied = [leak_row("npo", g, 0.0) for g in graphs]
    found = methods_against_gold(pd.DataFrame([*rows, *tied]), "link_stealing").set_index("method")
    assert found.loc["npo", ["excess", "effect", "p", "p_holm"]].tolist() == [0.0, 0.0, 1.0, 1.0]
    assert found.loc["scrub", "p_holm"] == pytest.approx(6 / 2**8)


def test_copies_of_a_setting_shrink_the_pooled_p_value_alone():
    rows = [
        run_row(method, 0, 1.0, data=f"g{graph}", forget=forget, link_teller_auc=auc)
        for graph in range(4)
        for method in [name for name in UNLEARNERS if name != "original"][:12]
        for forget, auc in (("low", 0.8 + 0.01 * graph), ("high", 0.6))
    ]
    records = with_outcomes(pd.DataFrame(rows))
    many = pooled_and_dependent(low_minus_high(records, list(UNLEARNERS)))
    one = pooled_and_dependent(low_minus_high(records, ["scrub"]))
    assert (many["cells"], one["cells"]) == (48, 4) and many["p_normal"] < 1e-8 < one["p_normal"]
    assert many["p_graphs"] == one["p_graphs"] == pytest.approx(2**-4)
    assert many["mean"] == pytest.approx(one["mean"]) == pytest.approx(0.215)
    with pytest.raises(InputError, match="no cell"):
        pooled_and_dependent(low_minus_high(records, ["nobody"]))


def test_controls_stand_above_the_methods_and_are_not_corrected_for():
    graphs = [f"g{number}" for number in range(6)]
    rows = [leak_row("scrub", g, 0.01 * (k + 1)) for k, g in enumerate(graphs)]
    rows += [leak_row("untrained", g, -0.3 - 0.01 * k) for k, g in enumerate(graphs)]
    rows += [leak_row("gold", g, 0.0) for g in graphs] + [leak_row("original", g, 0.1) for g in graphs[:2]]
    excess = pd.DataFrame(rows)
    found = controls_against_gold(excess, "link_stealing").set_index("method")
    assert list(found.index) == ["original", "gold", "untrained"] and found["p_holm"].isna().all()
    assert found["p"].isna().tolist() == [True, True, False] and found.loc["untrained", "p"] == pytest.approx(2 / 2**6)
    told = pd.DataFrame({"method": ["utu", "scrub", "ssd"], "excess": [-0.1, 0.1, 0.2], "p_holm": [0.01, 0.04, 0.2]})
    assert told_apart(told) == "2 (UtU below; SCRUB above)" and told_apart(told[2:]) == "0"
    lines = repr(gold_tests_table(excess, "link_stealing", "corrected", "c")).splitlines()
    assert [line.split(" | ")[0] for line in lines[2:]] == ["Original on G", "Gold", "Untrained", "SCRUB"]


def test_sets_between_the_extremes_by_hand():
    rows = [
        leak_row(method, graph, 0.0, "link_teller", forget, auc)
        for graph, low in (("g", 0.9), ("h", 0.8))
        for method, aucs in (
            ("gold", (low, 0.7, 0.95, 0.5)),
            ("untrained", (low, 0.4, 0.6, 0.5)),
            ("utu", (low, 0.7, 0.95, 0.5)),
            ("ssd", (low, 0.4, 0.6, 0.5)),
        )
        for forget, auc in zip(("low", "community", "random", "high"), aucs, strict=True)
    ]
    rows.append(leak_row("gold", "without the other sets", 0.0, "link_teller", "low", 0.1))
    found = sets_table(pd.DataFrame(rows)).set_index("model")
    assert list(found.index) == ["Gold", "Untrained", "methods, mean"] and (found["graphs"] == 2).all()
    assert found["low"].tolist() == pytest.approx([0.85] * 3) and found["community"].tolist() == pytest.approx(
        [0.7, 0.4, 0.55]
    )
    assert found["community_between"].tolist() == [1.0, 0.0, 0.5] and found["random_between"].tolist() == [
        0.0,
        1.0,
        0.5,
    ]


def test_pareto_front_by_hand():
    x, y = np.array([1.0, 2.0, 3.0, 3.0, 1.0]), np.array([3.0, 2.0, 1.0, 2.0, 3.0])
    assert pareto_front(x, y).tolist() == [True, True, True, False, True]  # equal points beat nobody


def test_the_distance_from_gold_does_not_cancel_sides(tables):
    """Above Gold on low sets and as far below on high ones: no excess in the mean, and a distance all the same."""
    records, excess = tables
    own = excess["method"] == "scrub"
    sides = np.where(excess["forget"] == "low", 0.2, -0.2)
    excess = excess.assign(excess=np.where(own, sides, excess["excess"]))
    excess = excess[excess["forget"].isin(["low", "high"])]
    board = leaderboard(records, excess, residual_memory_table()).set_index("method")
    assert board.loc["scrub", "link_stealing_distance"] == pytest.approx(0.2)
    assert abs(board.loc["scrub", "link_stealing_excess"]) < 0.01
    away = distance_from_gold(board.assign(link_teller_distance=9.0), ["link_stealing"])
    assert (
        away["scrub"] == pytest.approx(0.2) and distance_from_gold(board.assign(link_teller_distance=9.0)).eq(9).all()
    )
    counted = methods_against_gold(
        excess.assign(excess_low=excess["excess"] - 0.1, excess_high=excess["excess"] + 0.1), "link_stealing"
    )
    row = counted.set_index("method").loc["scrub"]
    assert row["above"] == row["below"] == row["cells"] / 2


def test_figures_draw_what_they_are_given(tables):
    records, excess = tables
    board = leaderboard(records, excess, residual_memory_table())
    assert len([ax for ax in fronts_figure(board).axes if ax.axison]) == 3 + bool(board["residual"].notna().any())
    found = ranking(graded(records), "change", smallest_first=False)
    (ax,) = ranking_figure({"accuracy": found}).axes
    texts = " ".join(text.get_text() for text in ax.texts)
    assert all(f"{rank:.1f}" in texts for rank in found.mean_ranks)


# Tables of the page


def test_the_leaderboard_can_be_sorted_read_aloud_and_scrolls_in_its_box(tables):
    records, excess = tables
    board = leaderboard(records, excess, residual_memory_table())
    table = leaderboard_table(board, {"utu": "<none & such>"}, "A caption")
    soup = BeautifulSoup(table._repr_html_(), "html.parser")
    box = soup.find("div", role="region")
    assert "overflow-x: auto" in box["style"] and box["tabindex"] == "0" and box["aria-label"] == "A caption"
    heads = soup.select("thead th")
    assert all(head.button and head["scope"] == "col" for head in heads)
    rows = soup.select("tbody tr")
    assert len(rows) == len(board) and all(row.th["scope"] == "row" for row in rows)
    place = [head.get_text() for head in heads].index("Seconds over Gold's")
    keys = [row.find_all(["th", "td"])[place]["data-value"] for row in rows]
    assert [float(key) for key in keys] == pytest.approx(board["share"].tolist(), rel=1e-6)
    assert "<none" not in str(soup) and "aria-sort" in soup.script.get_text()
    assert len(repr(table).splitlines()) == len(board) + 2


def test_columns_of_attacks_say_where_they_are_blind_and_sort_by_distance(tables):
    board = leaderboard(*tables, residual_memory_table())
    blind = pd.DataFrame({"blind": [3, 0, 1], "settings": 4, "is_blind": [True, False, False]})
    blind.index = ["link_teller", "link_stealing", "e_umia"]
    table = leaderboard_table(board, {}, "c", blind)
    assert "LinkTeller over Gold, blind in 3 of 4 settings" in table.shown and "E-UMIA over Gold" in table.shown
    assert (table.values["Link Stealing over Gold"].dropna() >= 0).all()
    plain = leaderboard_table(board, {}, "c")
    assert "LinkTeller over Gold" in plain.shown


def test_blindness_is_that_of_the_memoriser(monkeypatch):
    rows = [
        {"attack": attack, "query": query, "negatives": negatives, "method": method, "blind": flag}
        for attack, flags in (("link_teller", (True, True)), ("link_stealing", (False, True)), ("edge_toggle", (True,)))
        for flag in flags
        for query in ("retained", "none")
        for negatives in ("uniform", "matched")
        for method in ("gold", "utu")
    ]
    rows += [{"attack": "e_umia", "query": "retained", "negatives": "", "method": "gold", "blind": False}]
    module = sys.modules[blindness.__module__]
    monkeypatch.setattr(module, "controls_excess", lambda: pd.DataFrame(rows))
    found = blindness()
    assert found["blind"].tolist() == [2, 1, 0] and found["settings"].tolist() == [2, 2, 1]
    assert found["is_blind"].tolist() == [True, False, False]


def test_sortable_values_without_a_number_are_empty():
    shown = pd.DataFrame({"a": ["x", "y"], "b": ["1", ""]})
    table = SortableTable(shown, pd.DataFrame({"b": [1.0, np.nan], "a": ["x", "y"]}), "c")
    cells = BeautifulSoup(table._repr_html_(), "html.parser").select("tbody td")
    assert [cell["data-value"] for cell in cells] == ["1", ""]


def test_there_is_a_card_for_every_method(tables):
    records, excess = tables
    board = leaderboard(records, excess, residual_memory_table())
    cards = MethodCards(board, not_ok(records), {"ceu": "not applicable"})
    soup = BeautifulSoup(cards._repr_html_(), "html.parser")
    assert len(soup.find_all("section")) == len(board)
    scrub = soup.find("section", attrs={"aria-label": "SCRUB"}).get_text()
    assert "collapsed under published" in scrub


# Claims


@pytest.mark.parametrize("name", ["L01", "L19", "L26", "L28"])
def test_claims_of_the_benchmark_can_be_checked(name):
    finding = CLAIMS[name].check()
    assert finding.verdict in ("holds", "fails", "inconclusive", "not testable here") and finding.detail
    assert name != "L28" or finding.verdict == "not testable here"


@pytest.fixture
def given(monkeypatch):
    """Put made-up records, excess and audit in the place of the published ones, for all claims that read the benchmark."""

    def replace(records, excess=None, audit=None):
        for module in (claims_benchmark, claims_attacks):
            monkeypatch.setattr(module, "benchmark_records", lambda: with_outcomes(pd.DataFrame(records)))
            monkeypatch.setattr(module, "benchmark_excess", lambda: pd.DataFrame(excess))
        monkeypatch.setattr(claims_benchmark, "missing_studies", lambda: [] if audit else ["edge_audit"])
        monkeypatch.setattr(claims_benchmark, "plain_runs", lambda: pd.DataFrame(audit))

    return replace


def cost_rows(shares, gold=2.0, graphs=("cora", "citeseer", "pubmed"), backbone="gcn"):
    """Runs of Gold and of methods at given shares of its seconds, three seeds with a little noise."""
    rows = []
    for data in graphs:
        for seed, noise in enumerate((0.99, 1.0, 1.01)):
            rows.append(run_row("gold", seed, gold, data=data, backbone=backbone))
            for name, share in shares.items():
                rows.append(run_row(name, seed, gold * share * noise, data=data, backbone=backbone, backwards=5.0))
    return rows


@pytest.mark.parametrize(
    ("shares", "gold", "verdict"),
    [
        ({"scrub": 3.0, "idea": 2.0, "fisher": 0.5}, 2.0, "holds"),
        ({"scrub": 3.0, "idea": 2.0, "fisher": 0.5}, 61.0, "fails"),  # retraining is no matter of seconds
        ({"scrub": 0.5, "idea": 0.5, "fisher": 2.0}, 2.0, "fails"),
        ({"scrub": 2.0, "idea": 1.0, "fisher": 0.5}, 2.0, "inconclusive"),
        ({"scrub": 0.5, "idea": 0.5, "utu": 9.0, "npo": 9.0}, 2.0, "fails"),  # unlinking and additions do not count
    ],
)
def test_special_algorithms_are_slower_or_not(given, shares, gold, verdict):
    given(cost_rows(shares, gold) + cost_rows({"cgu": 3.0}, gold, ("cora",), "sgc"))
    finding = CLAIMS["L01"].check()
    assert finding.verdict == verdict
    counted = [share for name, share in shares.items() if name not in ("utu", "npo")]
    assert finding.effect == pytest.approx(np.exp(np.mean(np.log(counted))), rel=1e-3)


NATIVE = ("ceu", "idea", "gnn_delete")


def audit_rows(tuned, native, graphs=("cora", "dblp", "pubmed"), backbone="gcn", natives=NATIVE, **more):
    """AUCs of SCRUB and Fisher Forgetting, and of graph-native methods, on low pools, a little apart over graphs."""
    noise = dict(zip(graphs, (-0.001, 0.0, 0.001), strict=False))
    plain = {"preset": "corrected", "backbone": backbone, "pool": "low", "status": "ok", "to_remove": True}
    values = dict.fromkeys(("scrub", "fisher"), tuned) | dict.fromkeys(natives, native)
    rows = [
        {**plain, "data": data, "method": name, "auc": auc + (n if name in ("scrub", "fisher") else 0.0)}
        for data, n in noise.items()
        for name, auc in values.items()
    ]
    return [row | more for row in rows]


def benchmark_costs(tuned, native):
    graphs, shares = ("cora", "dblp", "pubmed"), {"scrub": tuned, "fisher": tuned}
    gcn = cost_rows(shares | dict.fromkeys(NATIVE, native), graphs=graphs)
    return gcn + cost_rows(shares | {"cgu": native, "scalegun": native}, graphs=graphs, backbone="sgc")


@pytest.mark.parametrize(
    ("memory", "cost", "verdict"),
    [
        ((0.55, 0.60), (0.1, 0.5), "holds"),
        ((0.60, 0.55), (0.1, 0.5), "fails"),
        ((0.55, 0.60), (0.5, 0.1), "fails"),
        ((0.60, 0.60), (0.1, 0.5), "inconclusive"),
    ],
)
def test_generic_methods_win_by_memory_and_cost(given, memory, cost, verdict):
    sgc = audit_rows(*memory, backbone="sgc", natives=("cgu", "scalegun"))
    broken = audit_rows(0.9, 0.5, status="collapsed", pool="high") + audit_rows(
        0.9, 0.5, to_remove=False, pool="random"
    )
    given(benchmark_costs(*cost), audit=audit_rows(*memory) + sgc + broken)
    finding = CLAIMS["L19"].check()
    assert finding.verdict == verdict and finding.effect == pytest.approx(memory[0] - memory[1], abs=1e-9)
    assert "Budgets are not equal: backward passes of a request, median, SCRUB 5" in finding.detail


def test_generic_methods_cannot_win_where_the_audit_is_silent(given):
    costs = benchmark_costs(0.1, 0.5)
    given(costs)
    assert CLAIMS["L19"].check().verdict == "not testable here"
    given(costs, audit=audit_rows(0.55, 0.60, ("cora",)))
    finding = CLAIMS["L19"].check()
    shown = claims_benchmark.generic_table().set_index(["method", "against"])
    assert finding.verdict == "not testable here" and shown.loc[("SCRUB", "CEU"), "AUC minus its"] == "-0.051"
    assert "Without a memory to compare: CGU, ScaleGUN." in finding.detail
    given(costs, audit=audit_rows(0.55, 0.60))  # the two methods for SGC alone were not audited
    assert CLAIMS["L19"].check().verdict == "inconclusive"


def test_runs_that_trained_again_are_no_graph_native_ones(given):
    costs = benchmark_costs(0.1, 0.5)
    for row in costs:
        row["certificate_retrainings"] = float(row["method"] == "scalegun")
    sgc = {"backbone": "sgc", "certified_epsilon": 1.0}
    audit = [
        *audit_rows(0.55, 0.60),
        *audit_rows(0.55, 0.50, natives=("cgu",), retrained=1.0, **sgc),  # retraining, which would win
        *audit_rows(0.55, 0.50, natives=("scalegun",), retrained=np.nan, **sgc),
    ]
    given(costs, audit=[row for row in audit if row["method"] in NATIVE or row["backbone"] == "gcn"] + audit[-10:])
    table = claims_benchmark.generic_table().set_index(["method", "against"])
    assert table.loc[("SCRUB", "CGU")].tolist() == ["none", 0, "0.2 [0.2, 0.2]", 3]
    assert table.loc[("SCRUB", "ScaleGUN")].tolist() == ["none", 0, "none", 0]
    assert CLAIMS["L19"].check().verdict == "inconclusive"
    for row in audit:
        row["retrained"] = 0.5  # some trials without training again are a test of the method
    given(costs, audit=audit)
    assert CLAIMS["L19"].check().verdict == "fails"


def test_two_graphs_show_both_values_and_more_an_interval():
    values = [pd.Series(numbers) for numbers in ([0.1], [0.1, -0.2], [0.1, 0.1, 0.1])]
    assert [claims_benchmark._difference("memory", own) for own in values] == [
        "+0.100",
        "+0.100, -0.200",
        "+0.100 [+0.100, +0.100]",
    ]
    assert claims_benchmark._difference("time", np.log(pd.Series([0.5, 2.0]))) == "0.5, 2"


def test_methods_that_trained_again_are_marked_and_on_no_front(tables):
    records, excess = tables
    board = leaderboard(records, excess, residual_memory_table())
    again = retrained_runs(records, board)
    runs = records[(records["preset"] == "corrected") & records["forget"].isin(["low", "high"])]
    runs = runs[(runs["backbone"] == "sgc") & (runs["method"] == "cgu")]
    assert again.loc["cgu", "again"] == (runs["certificate_retrainings"] > 0).sum() > 0 and again.loc[
        "cgu", "runs"
    ] == len(runs)
    assert "scrub" not in again.index
    texts = with_retrainings({"cgu": "budget exhausted", "scrub": "none"}, again)
    assert texts["scrub"] == "none" and texts["cgu"].startswith("budget exhausted; trained again in ")
    free = fronts_figure(board.assign(residual=np.where(board["method"] == "cgu", -9.0, board["residual"])))
    barred = fronts_figure(board, {"cgu": 0.9, "scrub": 0.4})
    assert any("CGU" in ax.get_title() for ax in free.axes) and not any("CGU" in ax.get_title() for ax in barred.axes)
    labels = [text.get_text() for text in barred.legends[0].get_texts()]
    assert labels[-1] == "trained again (CGU in 90 % of runs)"


def test_what_rounds_to_zero_has_no_sign():
    table = pd.DataFrame({"x": [-0.0001, 0.5], "x_low": [-0.0004, np.nan], "x_high": [0.0, np.nan]})
    assert interval_cells(table, "x", 1, 3) == ["0.000 [0.000, 0.000]", "+0.500"]
    assert interval_cells(table, "x", 1, 3, signed=False) == ["0.000 [0.000, 0.000]", "0.500"]


def test_orders_over_seeds_are_correlations_of_single_seeds(given, monkeypatch):
    monkeypatch.setattr(claims_benchmark, "backbone_agreement", lambda: pd.DataFrame({"data": ["g"]}))
    rows = []
    for seed, order in enumerate((SAME, SAME, SHUFFLED)):
        for name, place in zip(
            ("scrub", "fisher", "ssd", "salun", "npo", "neg_grad", "unsir", "gif", "idea", "gnn_delete"), order
        ):
            rows.append(run_row(name, seed, 1.0, accuracy=0.01 * place, link_stealing_auc=0.5 - 0.01 * place))
        rows.append(run_row("gold", seed, 1.0, link_stealing_auc=0.1 * seed))
    given(rows)
    found = claims_benchmark.seed_agreement().iloc[0]
    expected = (1 + 2 * np.corrcoef(SAME, SHUFFLED)[0, 1]) / 3
    assert found["accuracy_order"] == pytest.approx(expected) and found["stealing_order"] == pytest.approx(expected)


def backbone_rows(other_order, teller=(0.9, 0.6), only=()):
    """Ten methods on one graph and five backbones; ``other_order`` of the GCN's order elsewhere; ``only`` under the GCN."""
    names = ("scrub", "fisher", "ssd", "salun", "npo", "neg_grad", "unsir", "gif", "idea", "gnn_delete")
    records, excess = [], []
    for backbone in ("gcn", "gat", "gin", "sage", "sgc"):
        for place, name in enumerate(names):
            if backbone != "gcn" and name in only:
                continue
            value = 0.01 * (place if backbone == "gcn" else other_order[place])
            for forget, auc in zip(("low", "high"), teller, strict=True):
                more = {"backbone": backbone, "forget": forget}
                records.append(run_row(name, 0, 1.0, accuracy=0.8 + value) | more)
                excess.append(leak_row(name, "g", value, "link_stealing") | more)
                excess.append(leak_row(name, "g", 0.0, "link_teller", auc=auc) | more)
    return records, excess


SAME, SHUFFLED = tuple(range(10)), (4, 9, 1, 6, 0, 8, 3, 5, 2, 7)


@pytest.mark.parametrize(
    ("order", "teller", "verdict"),
    [
        (SAME, (0.9, 0.6), "holds"),
        (SAME, (0.6, 0.9), "fails"),
        (SHUFFLED, (0.9, 0.6), "fails"),
    ],
)
def test_conclusions_hold_over_backbones_or_not(given, monkeypatch, order, teller, verdict):
    monkeypatch.setitem(claims_benchmark.GRAPH_TITLES, "g", "G")
    given(*backbone_rows(order, teller))
    finding = CLAIMS["L26"].check()
    assert finding.verdict == verdict and "Compared were 10 methods" in finding.detail
    assert finding.effect == pytest.approx(1.0 if order == SAME else np.corrcoef(SAME, SHUFFLED)[0, 1])


def test_orders_that_agree_under_some_backbones_decide_nothing(given, monkeypatch):
    monkeypatch.setitem(claims_benchmark.GRAPH_TITLES, "g", "G")
    records, excess = backbone_rows(SAME)
    other, leaks = backbone_rows(SHUFFLED)
    swap = ("gat", "gin")
    records, excess = (
        [row for row in same if row["backbone"] not in swap] + [row for row in mixed if row["backbone"] in swap]
        for same, mixed in ((records, other), (excess, leaks))
    )
    given(records, excess)
    assert CLAIMS["L26"].check().verdict == "inconclusive"


def test_the_sets_of_a_backbone_are_compared_on_controls_too(given, monkeypatch):
    records, excess = backbone_rows(SAME)
    controls = [
        leak_row("untrained", "g", 0.0, "link_teller", forget, auc) | {"backbone": "gat"}
        for forget, auc in (("low", 0.9), ("high", 0.7))
    ]
    given(records, [*excess, *controls])
    table = claims_benchmark.backbone_agreement().set_index("backbone")
    assert table.loc["gat", "untrained_gap"] == pytest.approx(0.2)
    assert table["untrained_gap"].drop("gat").isna().all() and table["gold_gap"].isna().all()


def test_methods_that_are_not_under_every_backbone_are_named(given, monkeypatch):
    monkeypatch.setitem(claims_benchmark.GRAPH_TITLES, "g", "G")
    records, excess = backbone_rows(SAME, only=("idea",))
    alone = [row for row in excess if not (row["forget"] == "high" and row["method"] == "gif")]
    given(records, alone)  # a method with one of the two sets is not compared
    finding = CLAIMS["L26"].check()
    assert finding.verdict == "holds" and "Compared were 8 methods" in finding.detail
    assert finding.detail.endswith("on record under the GCN but not under every other backbone: IDEA.")
    given([row for row in records if row["backbone"] != "gat"], [row for row in excess if row["backbone"] != "gat"])
    assert CLAIMS["L26"].check().verdict == "not testable here"


def attacked_rows(values, backbone="gcn", graphs=("photo", "computers", "dblp")):
    """Runs of methods with the same AUC of every attack; ``values``: method -> AUC on the low set, the high one is 0.1 less."""
    rows = []
    for data in graphs:
        for forget, less in (("low", 0.0), ("high", 0.1)):
            for seed, noise in enumerate((-1e-4, 0.0, 1e-4)):
                for method, auc in values.items():
                    more = {"preset": "published", "backbone": backbone, "method_seed": np.nan}
                    names = (
                        "link_teller_auc",
                        "link_stealing_auc",
                        "link_stealing_auc_folded",
                        "e_umia_accuracy",
                        "e_umia_auc",
                    )
                    more |= dict.fromkeys(names, auc - less + noise)
                    rows.append(run_row(method, seed, 1.0, data=data, forget=forget, **more))
    return rows


ALIKE = dict.fromkeys(("gold", "utu", "untrained", "scrub", "memoriser"), 0.6)


def test_claims_about_all_algorithms_read_the_graph_native_ones(given, monkeypatch):
    monkeypatch.setattr(claims_attacks, "BAND", (0.48, 0.61))
    given(attacked_rows(ALIKE | {"idea": 0.6}))
    assert CLAIMS["L04"].check().verdict == "holds" and CLAIMS["L05"].check().verdict == "fails"
    assert CLAIMS["L10"].check().verdict == "holds"
    assert "Methods of the benchmark without such a run: " in CLAIMS["L04"].check().detail
    given(attacked_rows(ALIKE | {"idea": 0.9, "memoriser": 0.1}))  # the planted one is no algorithm
    assert CLAIMS["L04"].check().verdict == "fails" and CLAIMS["L05"].check().verdict == "holds"
    sgc = attacked_rows({"untrained": 0.6, "cgu": 0.6}, "sgc")
    for row in sgc:
        row["link_teller_auc"] *= -1  # under SGC alone the high sets score higher
    given(attacked_rows(ALIKE) + sgc)
    assert CLAIMS["L10"].check().verdict == "fails"


def test_one_seed_of_a_method_neither_decides_the_band_nor_the_spread(given, monkeypatch):
    monkeypatch.setattr(claims_attacks, "BAND", (0.48, 0.61))
    rows = attacked_rows(ALIKE) + [row for row in attacked_rows({"idea": 0.9}) if row["seed"] == 0]
    given(rows)
    assert CLAIMS["L04"].check().verdict == "inconclusive" and CLAIMS["L05"].check().verdict == "fails"


def test_no_algorithm_resists_only_if_the_graph_native_ones_do_not_either(given):
    def leaks(values, backbone="gcn"):
        numbers = [(name, v - 0.01, v, v + 0.01) for name, v in values.items()]
        return [
            leak_row(name, "photo", v, "link_teller")
            | {"backbone": backbone, "excess_low": low, "excess_high": high, "gold_auc": 0.5}
            for name, low, v, high in numbers
        ]

    every = leaks({"scrub": 0.1, "idea": 0.2, "gold": 0.0, "original": 0.0, "untrained": 0.0, "memoriser": 0.0})
    given([], every)
    assert CLAIMS["L11"].check().verdict == "holds"
    given([], every + leaks({"cgu": 0.0, "scrub": 0.0}, "sgc"))  # SGC counts for the method that has no GCN
    finding = CLAIMS["L11"].check()
    assert finding.verdict == "fails" and "1 of 3 algorithms stay" in finding.detail


@pytest.mark.parametrize(
    ("shift", "verdict"), [(0.2, "holds"), (0.0, "inconclusive"), (-0.2, "fails")], ids=["worse", "alike", "better"]
)
def test_attention_is_judged_by_the_paired_difference(monkeypatch, shift, verdict):
    noise = {0: -0.01, 1: 0.0, 2: 0.01}
    rows = [
        {"data": data, "seed": seed, "backbone": backbone, "rank": -0.6 + (shift + n if backbone == "gat" else 0.0)}
        for data in ("cora", "dblp")
        for seed, n in noise.items()
        for backbone in ("gcn", "gat", "gin", "sage", "sgc")
    ]
    monkeypatch.setattr(claims_benchmark, "load_records", lambda *_: pd.DataFrame(rows))
    found = claims_benchmark.check_attention()
    assert found.verdict == verdict and found.effect == pytest.approx(shift, abs=1e-9)


def test_centrality_rank_runs_and_compares_the_same_edges():
    gcn, gat = (
        run(CentralityRankConfiguration("synthetic-tiny", backbone=name, edges=60))["metrics"]
        for name in ("gcn", "gat")
    )
    assert -1 <= gcn["rank"] <= 1 and -1 <= gat["rank"] <= 1 and gcn["rank"] != gat["rank"]
    assert gcn["pairs"] == 60 and gcn["displacement_mean"] > 0


def test_all_statements_of_the_sources_are_on_the_page_of_verdicts():
    assert len(SOURCE_IDS) == 53 and len(set(SOURCE_IDS)) == 53
    assert untested([]) == list(SOURCE_IDS) and untested(SOURCE_IDS) == []
    findings = {"L28": Finding("not testable here", detail="<why>"), "L07": Finding("holds", 1.0, (0.5, 1.5))}
    view = ClaimsView(findings, untested(findings))
    assert {row[0] for row in view.rows} == set(SOURCE_IDS) and view.rows[0][0] == "L07"
    assert view.counts() == {"holds": 1, "not testable here": 1, NOT_TESTED: 51}
    soup = BeautifulSoup(view._repr_html_(), "html.parser")
    assert soup.find("a", string="L07")["href"] == "06_walk_centrality.html#claim-l07"
    assert [b["data-verdict"] for b in soup.find_all("button")] == ["", "holds", "not testable here", NOT_TESTED]
    assert {row["data-verdict"] for row in soup.select("tbody tr")} == {"holds", "not testable here", NOT_TESTED}
    for row in soup.select("tbody tr"):
        claim = CLAIMS[row.th.get_text()] if row["data-verdict"] != NOT_TESTED else None
        assert (row.details is None) == (claim is None)
        if claim is not None:
            assert claim.threshold in row.details.get_text() and claim.estimand in row.details.get_text()
    assert all(len(row) == len(view.columns) for row in view.rows)


def test_claims_that_were_changed_late_say_so():
    """Every chapter that admits to it in prose names a claim whose estimand says it, too."""
    late = decided_later()
    assert {"L07", "L08", "L13", "L17", "L19", "L20", "L25", "L27", "O11", "O12", "O13"} <= set(late)
    assert all("after a first look" in CLAIMS[name].estimand.lower() for name in late)
    for script in (paths.repository() / "notebooks").glob("*.py"):
        text = script.read_text(encoding="utf-8")
        if re.search(r"had been seen", text):
            assert any(CLAIMS[name].chapter == script.stem for name in late), script.stem


# README and verify


def test_the_readme_and_the_introduction_say_what_the_records_say():
    lines = findings()
    for name, figure in PAGES.items():
        page = (paths.repository() / name).read_text(encoding="utf-8")
        assert (paths.repository() / name).parent / figure == paths.repository() / FIGURE
        assert with_findings(page, lines, figure) == page, "run: python -m lethe_lib findings"
    _, digest = findings_figure()
    with Image.open(paths.repository() / FIGURE) as picture:
        assert picture.text["Description"] == digest, "run: python -m lethe_lib findings"


def test_findings_need_their_markers():
    with pytest.raises(InputError, match="markers|needs the lines"):
        with_findings("no markers", ["one"], FIGURE)
    with pytest.raises(InputError, match="needs the lines"):
        with_findings(f"{END} {BEGIN}", ["one"], FIGURE)


def test_a_sample_to_verify_covers_every_study_and_kind():
    rows = pd.DataFrame({"study": ["a"] * 900 + ["b"] * 3 + ["c"] * 2, "kind": ["x"] * 903 + ["y", "z"]})
    for seed in range(20):
        chosen = sample(rows, 20, seed)
        assert len(set(chosen)) == 20 and chosen == sorted(chosen)
        assert set(rows.iloc[chosen].agg(tuple, axis=1)) == {("a", "x"), ("b", "x"), ("c", "y"), ("c", "z")}
    assert sample(rows, 20, 0) == sample(rows, 20, 0) != sample(rows, 20, 1)
    assert len(sample(rows.head(5), 20, 0)) == 5
    assert "edge_audit" in LONG


def test_records_to_verify_are_found_by_their_keys():
    rows = pd.DataFrame({"study": ["a", "b", "b"], "key": ["k1", "k2", "k1"]})
    assert places(rows, ["k2", "k1", "k1"]) == [0, 1]
    with pytest.raises(InputError, match="no published record has the key k3"):
        places(rows, ["k1", "k3"])
