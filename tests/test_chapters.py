"""Execution of chapters: parameters are checked before anything runs, copies go elsewhere and leak nothing."""

import errno
import json

import jupytext
import nbformat
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lethe_lib.__main__ import COMMANDS
from lethe_lib.__main__ import main as command_line
from lethe_lib.errors import InputError
from lethe_lib.study import chapters, verify
from lethe_lib.study.chapters import ChapterFailed, execute_chapter, execute_chapters, find_chapter
from lethe_lib.study.parameters import check_parameters, checked_values, declared_parameters, writable_folder

CELL = """
# what a reader may change
seed: int = 0  # random seed
rate: float = 0.01  # learning rate
fresh: bool = False  # compute instead of reading records
seeds: list[int] = [0, 1]  # seeds of the models
kind: str = "low"  # forget set
hops: tuple[int, ...] = (1, 2)  # lengths of walks
name: str | None = None  # data set
cut: float | None = None  # threshold
"""


@pytest.fixture
def declared():
    return declared_parameters(CELL)


def test_parameters_cell_gives_names_types_defaults_and_help(declared):
    assert list(declared) == ["seed", "rate", "fresh", "seeds", "kind", "hops", "name", "cut"]
    assert declared["rate"].type is float
    assert declared["hops"].type == tuple[int, ...]
    assert declared["seeds"].default == [0, 1]
    assert declared["fresh"].help == "compute instead of reading records"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("seed = 0  # no type", "seed = 0"),
        ("seed: int = 1 + 1  # derived", "literal"),
        ("seed: int = max(1, 2)  # a call", "literal"),
        ("seed: Path = 'x'  # a type of the notebook", "plain type"),
        ("seed: int = 1.5  # not an int", "not int"),
        ("seed: bool = 1  # not a bool", "not bool"),
        ("seed: int = True  # a bool is no number", "not int"),
        ("seed: int = 0", "comment"),
        ("import os", "import os"),
    ],
)
def test_a_parameters_cell_that_cannot_be_used_is_refused(line, message):
    with pytest.raises(InputError, match=message):
        declared_parameters(line)


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("seed", "3", 3),
        ("rate", "1e-2", 0.01),  # YAML and papermill leave this as text
        ("rate", 1, 1.0),
        ("fresh", "true", True),
        ("seeds", "[3, 4]", [3, 4]),
        ("seeds", [], []),
        ("kind", "high", "high"),
        ("hops", "[3]", (3,)),
        ("name", "3", "3"),
        ("name", "none", None),
        ("cut", "2.5e-1", 0.25),
        ("cut", None, None),
    ],
)
def test_text_is_read_as_the_declared_type(declared, name, value, expected):
    read = checked_values({name: value}, declared, "chapter x")[name]
    assert read == expected
    assert type(read) is type(expected)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("seed", "1.5"),
        ("seed", 1.0),
        ("seed", True),
        ("rate", "fast"),
        ("rate", False),
        ("fresh", 1),
        ("seeds", "3"),
        ("seeds", "[1, two]"),
        ("seeds", [1, True]),
        ("kind", 1),
        ("hops", "[1.5]"),
        ("name", 3),
        ("cut", "[1]"),
    ],
)
def test_a_wrong_type_is_refused_with_the_parameter_named(declared, name, value):
    with pytest.raises(InputError, match=f"'{name}' of chapter x must be"):
        checked_values({name: value}, declared, "chapter x")


def test_an_unknown_name_is_refused_with_the_closest_one(declared):
    with pytest.raises(InputError, match="Did you mean 'seeds'"):
        checked_values({"sseeds": [1]}, declared, "chapter x")


@given(st.integers(), st.floats(allow_nan=False), st.booleans(), st.lists(st.integers()))
def test_what_is_printed_is_read_back(seed, rate, fresh, seeds):
    given_text = {"seed": str(seed), "rate": str(rate), "fresh": str(fresh), "seeds": json.dumps(seeds)}
    read = checked_values(given_text, declared_parameters(CELL), "chapter x")
    assert read == {"seed": seed, "rate": rate, "fresh": fresh, "seeds": seeds}


def running(*cells, **values):
    """A notebook's globals after these cells have run."""
    defaults = {
        "seed": 0,
        "rate": 0.01,
        "fresh": False,
        "seeds": [0],
        "kind": "low",
        "hops": (1,),
        "name": None,
        "cut": None,
    }
    return {"In": ["", *cells, "check_parameters(globals())"], **defaults, **values}


def test_a_running_notebook_accepts_its_defaults_and_good_values():
    check_parameters(running(CELL))
    check_parameters(
        running("%matplotlib inline", CELL, "# Parameters\nrate = 1\nkind = 'high'\n", rate=1, kind="high")
    )


def test_a_running_notebook_refuses_what_papermill_lets_through():
    with pytest.raises(InputError, match="no parameter 'sed'. Did you mean 'seed'"):
        check_parameters(running(CELL, "# Parameters\nsed = 1\n", sed=1))
    with pytest.raises(InputError, match="write 1.0e-2"):
        check_parameters(running(CELL, "# Parameters\nrate = '1e-2'\n", rate="1e-2"))
    with pytest.raises(InputError, match="'fresh' of this chapter must be bool"):
        check_parameters(running(CELL, "# Parameters\nfresh = 'true'\n", fresh="true"))


def test_a_running_notebook_asks_for_its_parameters_cell():
    with pytest.raises(InputError, match="run the cell tagged"):
        check_parameters({"In": ["", "import os"]})


def test_without_a_history_nothing_was_injected():
    check_parameters({})
    check_parameters({"In": [""]})


NOTEBOOK = """# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # A chapter

# %% tags=["parameters"]
n: int = 2  # how many
fail: bool = False  # raise an error

# %%
assert not fail, "told to fail"
print(list(range(n)))
"""


def write_pair(folder, name):
    folder.mkdir(exist_ok=True)
    notebook = jupytext.reads(NOTEBOOK, fmt="py:percent")
    jupytext.write(notebook, folder / f"{name}.py", fmt="py:percent")
    jupytext.write(notebook, folder / f"{name}.ipynb")


@pytest.fixture
def folder(tmp_path):
    write_pair(tmp_path / "sources", "01_first_chapter")
    write_pair(tmp_path / "sources", "02_second")
    return tmp_path / "sources"


def test_chapters_are_found_by_name_and_number(folder):
    for name in ("01", "1", "first_chapter", "01_first_chapter"):
        assert find_chapter(name, folder).name == "01_first_chapter.ipynb"
    with pytest.raises(InputError, match="Did you mean 'first_chapter'"):
        find_chapter("first_chaptre", folder)


def test_an_executed_copy_carries_its_parameters_and_nothing_of_this_machine(folder, tmp_path):
    before = {path: path.read_bytes() for path in folder.iterdir()}
    copy = execute_chapter("01", {"n": "3"}, tmp_path / "out {1}", folder)
    assert copy == tmp_path / "out {1}" / "01_first_chapter.ipynb"
    notebook = nbformat.read(copy, as_version=4)
    nbformat.validate(notebook)
    assert notebook.metadata.papermill.parameters == {"n": 3}
    assert set(notebook.metadata.papermill) == {"parameters", "duration"}
    injected = next(cell for cell in notebook.cells if "injected-parameters" in cell.metadata.get("tags", []))
    assert "hide-input" in injected.metadata.tags
    assert injected.source == "# Parameters\nn = 3\n"
    assert notebook.cells[-1].outputs[0].text == "[0, 1, 2]\n"
    assert str(tmp_path) not in copy.read_text()
    assert "start_time" not in copy.read_text()
    assert {path: path.read_bytes() for path in folder.iterdir()} == before
    assert [path.name for path in copy.parent.iterdir()] == [copy.name]


def test_one_failing_chapter_does_not_stop_the_others(folder, tmp_path):
    script = folder / "02_second.py"
    broken = jupytext.reads(NOTEBOOK.replace("fail: bool = False", "fail: bool = True"), fmt="py:percent")
    jupytext.write(broken, script, fmt="py:percent")
    jupytext.write(broken, script.with_suffix(".ipynb"))
    outcomes = {name: error for name, _, error in execute_chapters(["02", "01"], tmp_path / "out", folder=folder)}
    assert outcomes["01"] is None
    assert "AssertionError: told to fail" in outcomes["02"]
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        "01_first_chapter.ipynb",
        "02_second.failed.ipynb",
    ]


def test_a_failing_cell_is_an_error_that_names_it(folder, tmp_path):
    with pytest.raises(ChapterFailed, match="01_first_chapter.*told to fail"):
        execute_chapter("01", {"fail": True}, tmp_path / "out", folder)


def test_bad_requests_are_refused_before_anything_runs(folder, tmp_path, monkeypatch):
    monkeypatch.setattr(chapters.papermill, "execute_notebook", lambda *_, **__: pytest.fail("a notebook was executed"))
    out = tmp_path / "out"
    for name, parameters, message in [
        ("03", {}, "unknown chapter '03'"),
        ("01", {"m": 1}, "no parameter 'm'"),
        ("01", {"n": "many"}, "must be int"),
    ]:
        with pytest.raises(InputError, match=message):
            execute_chapter(name, parameters, out, folder)
    with pytest.raises(InputError, match="choose another folder"):
        execute_chapter("01", {}, folder, folder)
    with open(folder / "01_first_chapter.py", "a") as script:
        script.write("\nprint('edited')\n")
    with pytest.raises(InputError, match="jupytext --sync"):
        execute_chapter("01", {}, out, folder)
    (folder / "02_second.py").unlink()
    with pytest.raises(InputError, match=r"no 02_second\.py"):
        execute_chapter("02", {}, out, folder)
    assert not out.exists()


def test_the_command_line_wins_over_the_file(tmp_path):
    parser = chapters.argparse.ArgumentParser()
    chapters.add_arguments(parser)
    file = tmp_path / "mine.yml"
    file.write_text("seed: 1\nrate: 1e-2\n")
    given_parameters = chapters.given_parameters(parser.parse_args(["01", "-f", str(file), "-p", "seed=a=b"]))
    assert given_parameters == {"seed": "a=b", "rate": "1e-2"}


@pytest.mark.parametrize(
    ("arguments", "content"),
    [(["-p", "seed"], ""), (["-f", "missing.yml"], ""), (["-f", "mine.yml"], "- a list"), (["-f", "mine.yml"], "a: [")],
)
def test_parameters_that_cannot_be_read_are_refused(arguments, content, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.yml").write_text(content)
    parser = chapters.argparse.ArgumentParser()
    chapters.add_arguments(parser)
    with pytest.raises(InputError):
        chapters.given_parameters(parser.parse_args(["01", *arguments]))


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help(command, capsys):
    with pytest.raises(SystemExit) as leaving:
        command_line([command, "--help"])
    assert leaving.value.code == 0
    assert command in capsys.readouterr().out


def test_an_error_that_a_user_can_mend_is_one_line_and_a_status(capsys):
    assert command_line(["chapters", "no_such_chapter"]) == 1
    printed = capsys.readouterr()
    assert printed.err.startswith("error: unknown chapter 'no_such_chapter'")
    assert "Traceback" not in printed.err


def test_a_name_that_is_a_number_is_refused_as_any_other(tmp_path, capsys):
    (tmp_path / "mine.yml").write_text("2: 3\n")
    assert command_line(["chapters", "06", "-f", str(tmp_path / "mine.yml"), "-o", str(tmp_path / "out")]) == 1
    assert "has no parameter 2." in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments",
    [
        ["chapters", "06", "-j", "0"],
        ["run", "first_slice", "--workers", "0"],
        ["leaderboard", "--seeds", "-1"],
        ["leaderboard", "--seeds", "two"],
        ["audit-edges", "--method", "utu", "--trials", "15"],
        ["verify", "--count", "0"],
    ],
)
def test_numbers_that_are_too_small_are_refused(arguments, capsys):
    with pytest.raises(SystemExit) as leaving:
        command_line(arguments)
    assert leaving.value.code == 2
    assert "is no whole number of at least" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "option"),
    [
        (["chapters", "06", "-o"], "--out"),
        (["run", "first_slice", "--records"], "--records"),
        (["leaderboard", "--method", "utu", "--records"], "--records"),
        (["audit-edges", "--method", "utu", "--records"], "--records"),
    ],
)
def test_a_folder_that_cannot_be_written_is_refused_before_anything_runs(arguments, option, tmp_path, capsys):
    (tmp_path / "file").write_text("")
    assert command_line([*arguments, str(tmp_path / "file" / "below")]) == 1
    printed = capsys.readouterr()
    assert printed.err == f"error: {tmp_path / 'file'} is no folder: choose another one with {option}\n"
    assert not printed.out


def test_a_folder_is_tried_and_not_made(tmp_path, monkeypatch):
    assert writable_folder(tmp_path / "a" / "b", "--out") == tmp_path / "a" / "b"
    assert not list(tmp_path.iterdir())

    def refuse(dir):
        raise OSError(errno.EROFS, "Read-only file system", str(dir))

    monkeypatch.setattr("tempfile.TemporaryFile", refuse)
    with pytest.raises(InputError, match=r"cannot be written \(Read-only file system\)"):
        writable_folder(tmp_path / "a", "--out")


def leave(arguments):
    raise SystemExit(0)


def raises(error):
    def main(arguments):
        raise error

    return main


@pytest.mark.parametrize(
    ("main", "status", "message"),
    [
        (raises(KeyboardInterrupt()), 130, "\ninterrupted: what is finished is kept; run the same command again"),
        (
            raises(PermissionError(errno.EACCES, "Permission denied", "/some/place")),
            1,
            "error: /some/place: Permission",
        ),
        (raises(OSError(errno.ENOSPC, "No space left on device")), 1, "error: No space left on device: choose a place"),
        (leave, 1, "called exit"),
    ],
)
def test_what_ends_a_command_from_outside_is_one_line_and_a_status(main, status, message, monkeypatch, capsys):
    monkeypatch.setattr(verify, "main", main)
    assert command_line(["verify"]) == status
    error = capsys.readouterr().err
    assert message in error and len(error.strip().splitlines()) == 1


def test_faults_of_the_library_are_not_hidden(monkeypatch):
    monkeypatch.setattr(verify, "main", raises(OSError(errno.EIO, "Input/output error")))
    with pytest.raises(OSError, match="Input/output"):
        command_line(["verify"])


@pytest.mark.parametrize("command", ["run", "verify"])
def test_an_unknown_study_is_an_error_that_lists_all(command, capsys):
    assert command_line([command, "nosuch"]) == 1
    error = capsys.readouterr().err
    assert "unknown study 'nosuch'" in error
    assert all(name in error for name in ("first_slice", "sampling_priors", "audit_calibration"))
