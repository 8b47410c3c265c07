"""The published runs of the generic methods, runs that two studies share, and the cost bench."""

from dataclasses import replace

import pytest

from lethe_lib.data import load_graph
from lethe_lib.models import train
from lethe_lib.study import STUDIES, RecordStore, UnlearningConfiguration, bench_unlearning, run
from lethe_lib.study.bench_unlearning import fractions
from lethe_lib.study.run_study import take_over
from lethe_lib.study.studies import ADDITIONS, CONTROLS, GENERIC, generic_unlearning
from lethe_lib.unlearning import UNLEARNERS

TINY = UnlearningConfiguration("synthetic-tiny", attacks=("link_stealing",), training=(("epochs", 10),))


def test_the_study_holds_all_generic_methods():
    assert set(GENERIC) == {name for name, entry in UNLEARNERS.items() if entry.kind == "generic"}
    assert all(UNLEARNERS[name].kind == "addition" for name in ADDITIONS)


def test_every_cell_has_its_controls_and_every_method_its_presets():
    cells = {}
    for config in generic_unlearning():
        cell = (config.data, config.backbone, config.preset, config.seed, config.forget)
        cells.setdefault(cell, []).append(config)
    assert len(cells) == 5 * 2 * 3 * 2 + 4 * 3 * 2
    for (data, backbone, preset, _, _), configs in cells.items():
        names = [config.method for config in configs]
        assert names.count("gold") == 3
        assert set(names) == {name for name, _ in CONTROLS} | {
            name for name in GENERIC + ADDITIONS if preset in UNLEARNERS[name].settings
        }
        assert backbone == "gcn" or (data == "cora" and preset == "corrected")


def test_settings_are_written_out_so_that_a_changed_preset_is_another_run(monkeypatch):
    before = {config.key for config in generic_unlearning(["cora"])}
    for config in generic_unlearning(["cora"]):
        preset = UNLEARNERS[config.method].settings[config.preset]
        assert dict(config.settings) == ({} if config.method in dict(CONTROLS) else vars(preset))
    entry = UNLEARNERS["npo"]
    changed = replace(entry, settings={"corrected": replace(entry.settings["corrected"], beta=7.0)})
    monkeypatch.setitem(UNLEARNERS._entries, "npo", changed)
    after = {config.key for config in generic_unlearning(["cora"])}
    assert len(after - before) == len(before - after) == 5 * 3 * 2  # five backbones, three seeds, two forget sets


def test_controls_of_the_gcn_are_those_of_the_first_slice():
    first = {config.key for config in STUDIES["first_slice"]()}
    for config in generic_unlearning():
        if config.backbone == "gcn":
            assert (config.key in first) == (config.method in {*dict(CONTROLS), "fine_tuning"})


def test_a_run_of_another_study_is_taken_over_and_not_repeated(tmp_path):
    configs = [replace(TINY, method=method) for method in ("utu", "fine_tuning", "untrained")]
    first, second = RecordStore(tmp_path / "first"), RecordStore(tmp_path / "second")
    assert take_over(configs, second, tmp_path) == 0
    records = [run(config, first) for config in configs[:2]]
    assert take_over(configs, second, tmp_path) == 2
    assert list(second.keys()) == sorted(record["key"] for record in records)
    for record in records:
        kept, source = second.read(record["key"]), first.read(record["key"])
        assert {**kept, "arrays_sha256": ""} == {**source, "arrays_sha256": ""}
        ours, theirs = second.arrays(record["key"]), first.arrays(record["key"])
        assert ours.keys() == theirs.keys() and all((ours[name] == theirs[name]).all() for name in ours)
    assert take_over(configs, second, tmp_path) == 0


def test_a_damaged_run_is_not_taken_over(tmp_path):
    first, second = RecordStore(tmp_path / "first"), RecordStore(tmp_path / "second")
    run(TINY, first)
    path = tmp_path / "first" / f"{TINY.key}.json"
    path.write_text(path.read_text()[:-20])
    assert take_over([TINY], second, tmp_path) == 0 and not second.finished(TINY.key)


def test_cost_is_a_fraction_of_golds(capsys):
    few = ("original", "gold", "utu", "neg_grad", "fisher")
    data = load_graph("synthetic-tiny")
    model = train(data, epochs=10)
    found = fractions(model, data, few)
    assert set(found) == set(few) and found["gold"] == 1.0
    assert all(value > 0 for value in found.values())
    text = capsys.readouterr().out
    assert "10 epochs" in text and "scaled" not in text and "forwards" in text
    fractions(model, data, few, epochs=1000)
    assert "1000 epochs, scaled from" in capsys.readouterr().out


def test_scaling_multiplies_golds_seconds(monkeypatch):
    class Outcome:
        status, reason = "ok", ""

        def __init__(self, method, model):
            self.seconds, self.model = {"gold": 2.0, "utu": 0.5}[method], model
            self.steps = type("Steps", (), {"forwards": 0, "backwards": 0})

    data = load_graph("synthetic-tiny")
    model = train(data, epochs=10)
    monkeypatch.setattr(bench_unlearning, "unlearn", lambda method, model, data, pairs: Outcome(method, model))
    assert fractions(model, data, ("gold", "utu"))["utu"] == pytest.approx(0.25)
    assert fractions(model, data, ("gold", "utu"), epochs=40)["utu"] == pytest.approx(0.0625)  # Gold: 8 s
