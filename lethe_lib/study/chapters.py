"""Execution of chapters: one notebook, its parameters, an executed copy in another folder.

find the notebook by its name, check that it says the same as the .py file that people edit
check every given parameter against the parameters cell, before anything runs
execute the notebook with papermill in a temporary folder
take paths and clock times out of its metadata, hide the injected cell behind a toggle
move the executed copy to where it was asked for
"""

import argparse
import shutil
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import jupytext
import nbformat
import papermill
import yaml
from joblib import Parallel, delayed

from lethe_lib.errors import InputError, LetheError
from lethe_lib.paths import repository
from lethe_lib.study.parameters import Parameter, at_least, checked_values, declared_parameters, writable_folder

KERNEL = "python3"


class ChapterFailed(LetheError):
    """A cell of a chapter raised an error. The message names the cell and says where the partial copy lies."""


def chapters(folder: Path | None = None) -> dict[str, Path]:
    """The notebooks of the book by name, such as ``06_walk_centrality``, in the order of the book.

    Args:
        folder: where the pairs of ``NN_name.py`` and ``NN_name.ipynb`` lie; by default ``notebooks/`` of the checkout.
    """
    folder = folder or repository() / "notebooks"
    return {path.stem: path for path in sorted(folder.glob("[0-9][0-9]_*.ipynb"))}


def find_chapter(name: str, folder: Path | None = None) -> Path:
    """The notebook of a chapter named in full (``06_walk_centrality``), by number (``06`` or ``6``) or without it.

    Raises:
        InputError: for a name that no chapter has.
    """
    known = chapters(folder)
    for stem, path in known.items():
        if name in (stem, *stem.split("_", 1)) or name.zfill(2) == stem[:2]:
            return path
    close = get_close_matches(name, [form for stem in known for form in (stem, stem.split("_", 1)[1])], n=1)
    hint = f" Did you mean {close[0]!r}?" if close else ""
    raise InputError(f"unknown chapter {name!r}.{hint} Chapters: {', '.join(known) or 'none'}")


def chapter_parameters(path: Path) -> dict[str, Parameter]:
    """The parameters that a notebook declares, by name; none when it has no cell tagged ``parameters``."""
    for cell in nbformat.read(path, as_version=4).cells:
        if "parameters" in cell.metadata.get("tags", []):
            return declared_parameters(cell.source)
    return {}


def execute_chapter(
    name: str, parameters: Mapping[str, Any] | None = None, out: Path | str = "executed", folder: Path | None = None
) -> Path:
    """Execute one chapter and return the path of the executed copy, ``out/NN_name.ipynb``.

    Args:
        name: as for :func:`find_chapter`.
        parameters: parameter name -> value, or text that is read as the declared type.
        out: folder of the executed copy, created when missing; not the folder of the notebooks.
        folder: where the notebooks lie, by default ``notebooks/`` of the checkout.

    Raises:
        InputError: before anything runs, for an unknown chapter, an unknown parameter, a value of the wrong type, a
            notebook that differs from its .py file, or ``out`` being the folder of the notebooks.
        ChapterFailed: when a cell raises; the copy up to that cell is kept as ``NN_name.failed.ipynb``.
    """
    notebook = find_chapter(name, folder)
    values = checked_values(parameters or {}, chapter_parameters(notebook), f"chapter {notebook.stem}")
    _refuse_stale_pair(notebook)
    out = Path(out)
    if out.resolve() == notebook.parent.resolve():
        raise InputError(f"{out} holds the sources of the chapters: choose another folder for executed copies")
    out.mkdir(parents=True, exist_ok=True)
    target, failed = out / notebook.name, out / f"{notebook.stem}.failed.ipynb"
    failed.unlink(missing_ok=True)

    # Papermill formats braces in paths, so it works under names without any; the copy is moved when it is complete.
    with tempfile.TemporaryDirectory(prefix="chapter") as scratch:
        copied, executed = Path(scratch, "in.ipynb"), Path(scratch, "out.ipynb")
        shutil.copyfile(notebook, copied)
        start = time.monotonic()
        try:
            papermill.execute_notebook(
                copied, executed, values, kernel_name=KERNEL, progress_bar=False, start_timeout=300
            )
        except papermill.PapermillExecutionError as error:
            shutil.move(executed, failed)
            raise ChapterFailed(
                f"chapter {notebook.stem}: cell [{error.exec_count}] raised {error.ename}: {error.evalue}\n"
                f"the copy up to that cell is {failed}"
            ) from None
        content = nbformat.read(executed, as_version=4)
    _clean(content, values, time.monotonic() - start)
    unfinished = target.with_suffix(".part")
    nbformat.write(content, unfinished)
    unfinished.replace(target)
    return target


def execute_chapters(
    names: Iterable[str],
    out: Path | str,
    parameters: Mapping[str, Any] | None = None,
    processes: int = 2,
    folder: Path | None = None,
) -> Iterator[tuple[str, float, str | None]]:
    """Execute several chapters in local processes, yielding each as it ends.

    Args:
        names: of the chapters.
        out: folder of the executed copies.
        parameters: passed to every chapter.
        processes: how many run at once.
        folder: where the notebooks lie, by default ``notebooks/`` of the checkout.

    Yields:
        name of the chapter, its seconds, and the message of its error or None.
    """
    tasks = (delayed(_timed)(name, parameters, out, folder) for name in names)
    yield from Parallel(n_jobs=processes, return_as="generator_unordered")(tasks)


def _timed(name: str, parameters: Mapping[str, Any] | None, out: Path | str, folder: Path | None):
    start = time.monotonic()
    try:
        execute_chapter(name, parameters, out, folder)
    except LetheError as error:  # reported by the caller, after the other chapters
        return name, time.monotonic() - start, str(error)
    return name, time.monotonic() - start, None


def cell_sources(notebook) -> list[tuple[str, str]]:
    """Type and text of every cell that an author wrote, without what papermill injected."""
    return [
        (cell.cell_type, cell.source.strip())
        for cell in notebook.cells
        if "injected-parameters" not in cell.metadata.get("tags", [])
    ]


def _refuse_stale_pair(notebook: Path) -> None:
    script = notebook.with_suffix(".py")
    if not script.exists():
        raise InputError(f"{notebook.name} has no {script.name} beside it: run `jupytext --sync {notebook}`")
    if cell_sources(jupytext.read(script)) != cell_sources(nbformat.read(notebook, as_version=4)):
        raise InputError(f"{script.name} and {notebook.name} differ: run `jupytext --sync {script}` first")


def _clean(content, values: Mapping[str, Any], seconds: float) -> None:
    """Keep the parameters and the duration; drop paths, clock times and random ids; fold the injected cell."""
    content.metadata.papermill = {"parameters": dict(values), "duration": round(seconds, 1)}
    content.metadata.get("language_info", {}).pop("version", None)
    for cell in content.cells:
        cell.metadata.pop("papermill", None)
        cell.metadata.pop("execution", None)
        if "injected-parameters" in cell.metadata.get("tags", []):
            cell.id = "injected-parameters"
            cell.metadata.tags = ["injected-parameters", "hide-input"]


def print_chapters() -> None:
    """Print every chapter with its parameters, their types, defaults and meaning."""
    for name, path in chapters().items():
        print(name)
        for parameter in chapter_parameters(path).values():
            print(f"    {parameter.name}: {parameter.annotation} = {parameter.default!r}    {parameter.help}")


def given_parameters(arguments: argparse.Namespace) -> dict[str, Any]:
    """The parameters of a command line: those of ``--file``, then those of ``--parameter``, which win.

    Raises:
        InputError: for a file that is no YAML mapping, or an assignment without ``=``.
    """
    given = {}
    if arguments.file:
        try:
            given = yaml.safe_load(Path(arguments.file).read_text(encoding="utf-8")) or {}
        except (OSError, yaml.YAMLError) as error:
            raise InputError(f"cannot read parameters from {arguments.file}: {error}") from None
        if not isinstance(given, dict):
            raise InputError(f"{arguments.file} must hold lines like `seed: 1`")
    for assignment in arguments.parameter:
        name, equals, value = assignment.partition("=")
        if not equals:
            raise InputError(f"write --parameter NAME=VALUE, not {assignment!r}")
        given[name.strip()] = value
    return given


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the command line of ``python -m lethe_lib chapters``."""
    parser.description = "Execute chapters with your own parameters. Without a name: list chapters and parameters."
    parser.epilog = "example: python -m lethe_lib chapters 06_walk_centrality -p dataset=photo -p seed=3"
    parser.add_argument("name", nargs="*", help="chapter, such as 06_walk_centrality, 6 or walk_centrality")
    parser.add_argument("-p", "--parameter", action="append", default=[], metavar="NAME=VALUE", help="may be repeated")
    parser.add_argument("-f", "--file", metavar="FILE.yml", help="YAML file of parameters")
    parser.add_argument("-o", "--out", default="executed", help="folder of the executed copies (default: executed)")
    parser.add_argument("-j", "--processes", type=at_least(1), default=2, help="chapters executed at once (default: 2)")


def main(arguments: argparse.Namespace) -> int:
    """Run ``python -m lethe_lib chapters``; the exit status is 1 when a chapter failed."""
    if not arguments.name:
        print_chapters()
        return 0
    names = list(dict.fromkeys(find_chapter(name).stem for name in arguments.name))
    given = given_parameters(arguments)
    for name in names:  # refuse before the first one runs
        checked_values(given, chapter_parameters(find_chapter(name)), f"chapter {name}")
    writable_folder(arguments.out, "--out")
    return report_progress(execute_chapters(names, arguments.out, given, arguments.processes), len(names))


def report_progress(outcomes: Iterable[tuple[str, float, str | None]], total: int) -> int:
    """Print a line for each chapter as it ends; 1 when one failed, else 0."""
    print(f"executing {total} chapter(s)", flush=True)
    failures = []
    for number, (name, seconds, error) in enumerate(outcomes, start=1):
        print(f"  [{number}/{total}] {name}: {'FAILED' if error else 'done'} after {seconds:.0f} s", flush=True)
        failures += [error] if error else []
    for error in failures:
        print(error, flush=True)
    return 1 if failures else 0
