"""Records: one run, one file, whole or not at all; resumable, comparable, publishable."""

import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

from lethe_lib import paths
from lethe_lib.__main__ import main as command_line
from lethe_lib.data import load_graph
from lethe_lib.errors import DamagedFile, DataNotFound, InputError, TrainingDiverged
from lethe_lib.study import (
    STUDIES,
    Configuration,
    DisplacementConfiguration,
    RecordStore,
    UnlearningConfiguration,
    load_records,
    publish,
    run,
    run_all,
    verify,
)
from lethe_lib.study.records import TIMED, configuration, published_settings
from lethe_lib.study.trained import trained
from lethe_lib.study.verify import difference, frames_difference

TINY = UnlearningConfiguration(
    "synthetic-tiny", method="fine_tuning", attacks=("link_teller", "link_stealing"), training=(("epochs", 15),)
)


def comparable(record):
    return {name: value for name, value in record["metrics"].items() if name not in TIMED}


# The store


def test_a_record_comes_back_as_it_was_written(tmp_path):
    store = RecordStore(tmp_path / "new")
    store.write("a", {"status": "ok", "value": 1.5}, {"x": np.arange(3.0)})
    assert store.read("a")["value"] == 1.5
    assert np.array_equal(store.arrays("a")["x"], np.arange(3.0))
    assert list(store.keys()) == ["a"] and store.finished("a") and not store.finished("b")
    with pytest.raises(KeyError):
        store.read("b")


@pytest.mark.parametrize("damage", ["truncate", "empty", "alter", "binary"])
def test_a_damaged_record_is_named_and_computed_again(tmp_path, damage, capsys):
    store = RecordStore(tmp_path)
    first = run(TINY, store)
    path = tmp_path / f"{TINY.key}.json"
    content = path.read_bytes()
    bad = {"truncate": content[: len(content) // 2], "empty": b"", "binary": b"\xff\xfe" + content}
    path.write_bytes(bad.get(damage) if damage != "alter" else content.replace(b'"ok"', b'"no"'))
    with pytest.raises(DamagedFile, match=TINY.key):
        store.read(TINY.key)
    again = run(TINY, store)
    assert TINY.key in capsys.readouterr().out
    assert comparable(again) == comparable(first)
    assert (tmp_path / f"{TINY.key}.damaged").exists() and store.finished(TINY.key)


def test_damaged_or_missing_arrays_are_found(tmp_path):
    store = RecordStore(tmp_path)
    run(TINY, store)
    arrays = tmp_path / f"{TINY.key}.npz"
    arrays.write_bytes(arrays.read_bytes()[:-7])
    with pytest.raises(DamagedFile, match="npz"):
        store.arrays(TINY.key)
    assert not store.finished(TINY.key)
    run(TINY, store)
    arrays.unlink()
    assert not store.finished(TINY.key)


def test_a_write_that_fails_leaves_the_old_record(tmp_path, monkeypatch):
    store = RecordStore(tmp_path)
    store.write("a", {"value": 1})

    def fail(*_):
        raise OSError("disk full")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="disk full"):
        store.write("a", {"value": 2})
    monkeypatch.undo()
    assert store.read("a")["value"] == 1
    assert [path.name for path in tmp_path.iterdir()] == ["a.json"]


def test_a_killed_study_resumes(tmp_path):
    """A process is killed in the middle of writing records; what it left is whole, and the rest is done afterwards."""
    script = textwrap.dedent(
        f"""
        from lethe_lib.study import RecordStore, UnlearningConfiguration, run_all
        configs = [UnlearningConfiguration("synthetic-tiny", seed, method=m, attacks=("link_stealing",),
                   training=(("epochs", 30),)) for seed in range(40) for m in ("utu", "fine_tuning", "gold")]
        run_all(configs, RecordStore({str(tmp_path)!r}))
        """
    )
    process = subprocess.Popen([sys.executable, "-c", script], cwd=paths.repository(), stdout=subprocess.DEVNULL)
    deadline = time.monotonic() + 120
    while len(list(tmp_path.glob("*.json"))) < 4 and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait()
    store = RecordStore(tmp_path)
    keys = list(store.keys())
    assert len(keys) >= 4
    assert all(store.finished(key) for key in keys)  # nothing half written
    configs = [
        UnlearningConfiguration(
            "synthetic-tiny", 0, method=method, attacks=("link_stealing",), training=(("epochs", 30),)
        )
        for method in ("utu", "fine_tuning", "gold")
    ]
    before = {key: (tmp_path / f"{key}.json").stat().st_mtime_ns for key in keys}
    lines = []
    run_all(configs, store, progress=lines.append)
    assert lines[0] == "3 runs, 3 done before, 0 to do"
    assert {key: (tmp_path / f"{key}.json").stat().st_mtime_ns for key in keys} == before


# Runs


def test_the_same_seed_gives_the_same_record():
    first, second = run(TINY), run(TINY)
    assert comparable(first) == comparable(second)
    other = run(replace(TINY, seed=1))
    assert comparable(other) != comparable(first)


def test_a_record_holds_what_is_needed_to_trust_it():
    record = run(TINY)
    assert record["status"] == "ok" and record["config"]["method"] == "fine_tuning"
    assert {"seconds", "accuracy_test", "macro_f1_test", "link_teller_auc", "link_stealing_auc_folded"} <= set(
        record["metrics"]
    )
    provenance = record["provenance"]
    assert provenance["data_hash"] == load_graph("synthetic-tiny").content_hash
    assert {"torch", "commit", "device", "threads", "stage", "cores"} <= set(provenance)
    assert record["peak_memory_mib"] > 0 and record["peak_memory_scope"] in ("run", "process")
    json.dumps(record)


def test_the_key_follows_every_field():
    changes = {"data": "cora", "seed": 1, "preset": "published", "backbone": "sgc", "method": "utu", "forget": "high"}
    changes |= {
        "fraction": 0.1,
        "hops": 3,
        "method_seed": 4,
        "attacks": (),
        "training": (),
        "settings": (("steps", 1),),
    }
    keys = {replace(TINY, **{name: value}).key for name, value in changes.items()} | {TINY.key}
    assert len(keys) == len(changes) + 1
    assert DisplacementConfiguration("cora").key != UnlearningConfiguration("cora").key


def test_workers_and_the_cache_do_not_change_records(tmp_path):
    configs = [replace(TINY, seed=seed, method=method) for seed in (0, 1) for method in ("utu", "gold")]
    stores = [RecordStore(tmp_path / name) for name in ("serial", "parallel", "cached")]
    run_all(configs, stores[0])
    run_all(configs, stores[1], workers=2)
    run_all(configs, stores[2], models=tmp_path / "models")
    run_all(configs, RecordStore(tmp_path / "again"), models=tmp_path / "models")
    for config in configs:
        records = [store.read(config.key) for store in [*stores, RecordStore(tmp_path / "again")]]
        assert all(comparable(record) == comparable(records[0]) for record in records)
    assert len(list((tmp_path / "models").glob("*.json"))) == 2


def test_cached_models_answer_alike_and_damage_is_mended(tmp_path):
    data = load_graph("synthetic-tiny")
    arguments = (data, "gcn", 3, "corrected", {"epochs": 10, "hidden": 8}, tmp_path)
    fresh, cached = trained(*arguments), trained(*arguments)
    assert torch.equal(fresh(data), cached(data))
    assert cached.training_run.settings == fresh.training_run.settings
    assert torch.equal(cached.training_run.split.test, fresh.training_run.split.test)
    weights = next(tmp_path.glob("*.npz"))
    weights.write_bytes(weights.read_bytes()[:100])
    assert torch.equal(trained(*arguments)(data), fresh(data))


@dataclass(frozen=True)
class Breaking(Configuration):
    error: str = "runtime"

    def measure(self, models, device):
        errors = {"runtime": RuntimeError("boom"), "diverged": TrainingDiverged("nan"), "input": InputError("bad")}
        errors |= {"memory": MemoryError("full"), "device": torch.OutOfMemoryError("full")}
        raise errors[self.error]


def test_a_method_that_breaks_is_a_record_and_bad_input_is_an_error(tmp_path):
    store = RecordStore(tmp_path)
    failed = run(Breaking("synthetic-tiny"), store)
    assert failed["status"] == "failed" and "RuntimeError" in failed["reason"] and "boom" in failed["reason"]
    assert run(Breaking("synthetic-tiny", error="diverged"))["status"] == "diverged"
    with pytest.raises(InputError, match="bad"):
        run(Breaking("synthetic-tiny", error="input"), store)
    for error, kind in (("memory", MemoryError), ("device", torch.OutOfMemoryError)):  # says nothing of the method
        with pytest.raises(kind):
            run(Breaking("synthetic-tiny", error=error), store)
    for device in ("nosuch", *(() if torch.cuda.is_available() else ("cuda",))):
        with pytest.raises(InputError, match=f"{device}.*choose auto"):
            run(Breaking("synthetic-tiny"), store, device=device)
        with pytest.raises(InputError, match=f"{device}.*choose auto"):
            run_all([Breaking("synthetic-tiny", error="diverged")], store, device=device)
    assert len(list(store.keys())) == 1


def test_records_of_another_graph_of_the_same_name_are_not_taken_for_this_ones(tmp_path, monkeypatch):
    store, config = RecordStore(tmp_path), Breaking("synthetic-tiny")
    assert run(config, store) == run(config, store)
    monkeypatch.setattr(Breaking, "data_hash", lambda self: "another")
    for again in (lambda: run(config, store), lambda: run_all([config], store, progress=lambda line: None)):
        with pytest.raises(InputError, match="another graph with the name 'synthetic-tiny'.*new name"):
            again()

    def gone(self):
        raise DataNotFound("no file")

    monkeypatch.setattr(Breaking, "data_hash", gone)
    assert run(config, store)["status"] == "failed"  # records outlive their data


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"data": "corra"}, InputError, "Did you mean 'cora'"),
        ({"method": "golden"}, InputError, "Did you mean 'gold'"),
        ({"forget": "easy"}, InputError, "low, high"),
        ({"fraction": 1.5}, InputError, "fraction"),
        ({"fraction": 0.0}, InputError, "fraction"),
        ({"attacks": ("link_tailor",)}, InputError, "link_teller"),
        ({"preset": "paper"}, InputError, "corrected"),
    ],
)
def test_bad_configurations_are_refused(tmp_path, change, error, message):
    store = RecordStore(tmp_path)
    with pytest.raises(error, match=message):
        run(replace(TINY, **change), store)
    assert not list(store.keys())


def test_a_missing_data_set_is_an_error_that_says_what_to_do(tmp_path, monkeypatch):
    from lethe_lib.study.trained import graph

    graph.cache_clear()
    monkeypatch.setenv("LETHE_DATA", str(tmp_path))
    monkeypatch.setenv("LETHE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("lethe_lib.data.files.download", lambda *_: (_ for _ in ()).throw(OSError("no network")))
    with pytest.raises(DataNotFound, match="LETHE_DATA"):
        run(replace(TINY, data="photo"))


def test_displacement_run():
    record = run(DisplacementConfiguration("synthetic-tiny", forget="high"))
    assert record["status"] == "ok"
    assert record["metrics"]["single_mean"] > 0 and record["metrics"]["set_mean"] > 0


# Publishing


def small_study():
    methods = [("original", 0), ("gold", 0), ("gold", 1), ("utu", 0), ("untrained", 0)]
    return [
        UnlearningConfiguration(
            "synthetic-tiny", seed, method=method, method_seed=seed + 1000 * shift, training=(("epochs", 15),)
        )
        for seed in (0, 1)
        for method, shift in methods
    ]


def test_tables_are_compared_column_by_column():
    old = pd.DataFrame({"a": [1.0, np.nan, np.inf], "b": ["x", "y", "z"], "n": np.array([0, 3, 5], np.uint16)})
    assert frames_difference([(old, old.copy()), (old.assign(other=1), old)]) == (0.0, "")
    assert frames_difference([(old, old.assign(a=[1.25, np.nan, np.inf]))]) == (0.25, "in a")
    assert frames_difference([(old, old.assign(n=[0, 3, 4]))]) == (0.2, "in n")
    assert frames_difference([(old, old.assign(b=["x", "y", "w"]))]) == (np.inf, "in b")
    assert frames_difference([(old, old.assign(a=[1.0, 0.0, np.inf]))]) == (np.inf, "in a")
    assert frames_difference([(old, old.assign(a=[1.0, np.nan, -np.inf]))]) == (np.inf, "in a")
    assert "number of rows" in frames_difference([(old, old.head(2))])[1]


def test_publish_and_load(tmp_path, monkeypatch):
    monkeypatch.setenv("LETHE_RESULTS", str(tmp_path / "results"))
    store, configs = RecordStore(tmp_path / "store"), small_study()
    run_all(configs[:-1], store)
    with pytest.raises(InputError, match="1 of 10 runs"):
        publish("small", configs, store)
    with pytest.raises(InputError, match="run small"):
        load_records("small")
    run_all(configs, store)
    files = publish("small", configs, store)
    assert [path.name for path in files] == ["small.parquet", "small_excess.parquet"]
    rows = load_records("small")
    assert len(rows) == 10 and set(rows["method"]) == {"original", "gold", "utu", "untrained"}
    assert rows.equals(load_records("small"))
    again = load_records("small", tmp_path / "store")
    assert again["key"].tolist() == rows["key"].tolist()
    for row in rows.to_dict("records"):
        config = configuration(row["kind"], json.loads(row["config_json"]))
        assert config in configs and config.key == row["key"]
    record = run(configs[3])
    row = rows[rows["key"] == configs[3].key].iloc[0].to_dict()
    assert difference(row, record)[0] == 0.0
    record["metrics"]["accuracy_test"] += 0.3
    assert difference(row, record) == (pytest.approx(0.3), "in accuracy_test")
    excess = load_records("small_excess")
    gold = excess[excess["method"] == "gold"]
    assert (gold["excess_low"] <= 0).all() and (gold["excess_high"] >= 0).all()
    utu = excess[(excess["method"] == "utu") & (excess["attack"] == "link_teller")].iloc[0]
    means = rows.groupby("method")["link_teller_auc"].mean()
    assert utu["excess"] == pytest.approx(means["utu"] - means["gold"])


def test_a_published_study_is_extended_without_its_old_runs(tmp_path, monkeypatch, capsys):
    """Setting by setting: what is published whole is left alone, and the tables are those of a study published at once."""
    monkeypatch.setenv("LETHE_RESULTS", str(tmp_path / "results"))
    old, store = small_study(), RecordStore(tmp_path / "records" / "grows")
    new = [replace(config, forget="high") for config in old]
    monkeypatch.setitem(STUDIES._entries, "grows", lambda: new + old)
    extend = ["run", "grows", "--publish", "--extend", "--records", str(tmp_path / "records")]
    assert command_line(extend) == 1
    assert "run grows --publish" in capsys.readouterr().err  # nothing is published
    run_all(new + old, store)
    publish("grows", new + old, store)
    whole = [load_records("grows"), load_records("grows_excess")]
    publish("grows", old, store)
    assert len(load_records("grows")) == len(old)
    for config in old:
        (store.folder / f"{config.key}.json").unlink()
    assert command_line(extend) == 0
    assert "10 of 20 runs are published" in capsys.readouterr().out
    for before, name in zip(whole, ("grows", "grows_excess"), strict=True):
        assert frames_difference([(before, load_records(name))]) == (0.0, "")
        assert load_records(name).columns.tolist() == before.columns.tolist()
    assert not any(store.finished(config.key) for config in old)
    # a setting with a run that is not published, and one with a run too many, are made anew
    assert published_settings("grows", [*new, *old[1:]]) == {config.key for config in new}
    assert published_settings("grows", [*new, *old, replace(old[0], seed=7)]) == {config.key for config in new}
    assert published_settings("grows", [replace(config, seed=8) for config in old]) == set()
    monkeypatch.setitem(STUDIES._entries, "grows", lambda: old)  # and nothing is to do: the other half goes
    assert command_line(extend) == 0
    assert len(load_records("grows")) == len(old) and set(load_records("grows_excess")["forget"]) == {"low"}


def test_extending_is_refused_where_it_cannot_be_done(capsys):
    assert command_line(["run", "first_slice", "--extend"]) == 1
    assert "give both" in capsys.readouterr().err
    assert command_line(["run", "edge_audit", "--publish", "--extend"]) == 1
    assert "as a whole" in capsys.readouterr().err
    assert command_line(["run", "sampling_priors", "--publish", "--extend"]) == 1
    assert "takes no --extend" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("steps", "more", "shift", "status", "told"),
    [
        ("original_epochs", 0, 0.0, 0, "1 of 1 records agree within 0.02"),
        ("original_epochs", 0, 0.03, 1, "0 of 1"),
        ("original_epochs", 40, 0.03, 0, "1 of 1 records agree within 0.02, 1 of them within 0.05"),
        ("backwards", 40, 0.0, 0, "1 of them within 0.05"),
        ("forwards", 40, 0.06, 1, "0 of 1"),
    ],
)
def test_a_record_whose_training_stopped_elsewhere_is_said_to_have_drifted(
    tmp_path, monkeypatch, capsys, steps, more, shift, status, told
):
    monkeypatch.setenv("LETHE_RESULTS", str(tmp_path / "results"))
    store, config = RecordStore(tmp_path / "records"), small_study()[3]
    monkeypatch.setitem(STUDIES._entries, "small", small_study)
    run_all(small_study(), store)
    publish("small", small_study(), store)
    record = store.read(config.key)
    again = {**record, "metrics": dict(record["metrics"])}
    again["metrics"][steps] += more
    again["metrics"]["accuracy_test"] += shift
    monkeypatch.setattr(verify, "run", lambda config: again)
    assert command_line(["verify", "small", "--key", config.key]) == status
    printed = capsys.readouterr().out
    assert told in printed and (f"{steps} " in printed) == (more > 0)


def test_an_empty_store_says_how_to_fill_it(tmp_path):
    with pytest.raises(InputError, match="python -m lethe_lib run"):
        load_records("first_slice", tmp_path)


def test_an_unknown_kind_of_record_is_refused():
    with pytest.raises(InputError, match="unknown kind"):
        configuration("Nothing", {})


def test_every_study_has_distinct_runs():
    for name, make in STUDIES.items():
        configs = make()
        assert len({config.key for config in configs}) == len(configs) > 0, name


PUBLISHED = sorted(path.stem for path in paths.results().glob("*.parquet") if path.stem in STUDIES)


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_records_are_those_of_the_study(name):
    rows = load_records(name)
    assert rows["key"].tolist() == [
        configuration(kind, json.loads(text)).key for kind, text in zip(rows["kind"], rows["config_json"], strict=True)
    ]
    assert set(rows["key"]) == {config.key for config in STUDIES[name]()}
    assert (Path(paths.results()) / f"{name}.parquet").stat().st_size < 5_000_000
