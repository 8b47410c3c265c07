"""Structure of the repository: chapters and their pairs, claims, pins, licences, the order of the rooms."""

import ast
import os
import re
import shutil
import subprocess
import tomllib
from functools import cache

import jupytext
import nbformat
import pytest
import yaml
from nbval.plugin import get_sanitize_patterns
from pybtex.database import parse_file

import lethe_lib
from lethe_lib.__main__ import COMMANDS
from lethe_lib.environment import prepare_environment
from lethe_lib.paths import repository
from lethe_lib.reporting import CLAIMS
from lethe_lib.reporting.claims import CHAPTERS_WITH_CLAIMS
from lethe_lib.study.book import toc_documents
from lethe_lib.study.chapters import cell_sources, chapter_parameters

ROOT = repository()
SCRIPTS = sorted((ROOT / "notebooks").glob("*.py"))
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
PUBLISHED = sorted((ROOT / "book/chapters").glob("*.ipynb"))
ROOMS = (
    "data",
    "models",
    "structure",
    "sampling",
    "shadow",
    "bmp",
    "unlearning",
    "attacks",
    "evaluation",
    "study",
    "reporting",
)
CLAIM_BLOCK = re.compile(r"^:label: claim-([a-z0-9-]+)$", re.MULTILINE)


def each(paths):
    return pytest.mark.parametrize("path", paths, ids=lambda path: path.stem)


@cache
def read_script(path):
    return jupytext.read(path)


def prose(path):
    return [cell.source for cell in read_script(path).cells if cell.cell_type == "markdown"]


# Chapters


def test_scripts_and_notebooks_are_pairs():
    assert [path.stem for path in SCRIPTS] == [path.stem for path in NOTEBOOKS]
    assert all(re.fullmatch(r"\d\d_[a-z0-9_]+", path.stem) for path in SCRIPTS)
    assert SCRIPTS


@each(SCRIPTS)
def test_a_pair_says_the_same_and_the_notebook_has_no_outputs(path):
    notebook = nbformat.read(path.with_suffix(".ipynb"), as_version=4)
    assert cell_sources(read_script(path)) == cell_sources(notebook), f"run: jupytext --sync {path.name}"
    assert not any(cell.get("outputs") for cell in notebook.cells)


@each(SCRIPTS)
def test_every_chapter_runs_on_the_kernel_python3(path):
    assert read_script(path).metadata.kernelspec.name == "python3"


@each(SCRIPTS)
def test_parameters_are_typed_literals_and_are_checked_in_the_next_code_cell(path):
    code = [cell for cell in read_script(path).cells if cell.cell_type == "code"]
    tagged = [index for index, cell in enumerate(code) if "parameters" in cell.metadata.get("tags", [])]
    assert tagged == [0], "the parameters cell is the first code cell, and there is one"
    assert chapter_parameters(path.with_suffix(".ipynb"))
    assert "check_parameters(globals())" in code[1].source
    assert "hide-input" in code[1].metadata.tags


@each(SCRIPTS)
def test_a_chapter_has_its_frame(path):
    text = "\n".join(prose(path))
    assert re.match(r"\(ch-[a-z0-9-]+\)=\n# \S", prose(path)[0]), "a label ch-..., then the title"
    for heading in ("## What would change our mind", "## Summary", "## Exercises"):
        assert heading in text
    last = read_script(path).cells[-1]
    assert "provenance(" in last.source
    assert {"nbval-ignore-output", "hide-input"} <= set(last.metadata.tags)
    assert not any("remove-input" in cell.metadata.get("tags", []) for cell in read_script(path).cells)
    assert not any("remove-cell" in cell.metadata.get("tags", []) for cell in read_script(path).cells)


@each(SCRIPTS)
def test_every_figure_has_a_caption_and_alt_text(path):
    for cell in read_script(path).cells:
        if "mystnb" in cell.metadata:
            assert len(cell.metadata.mystnb.figure.caption) > 10
            assert len(cell.metadata.mystnb.image.alt) > 10
        elif cell.cell_type == "code":
            assert not re.search(r"\bplt\.(subplots|figure|show)\(|sns\.\w+plot\(", cell.source), (
                f"a cell that draws needs mystnb metadata with figure and image:\n{cell.source}"
            )


@each(SCRIPTS)
def test_no_number_is_typed_by_hand_into_results_or_summary(path):
    """A heuristic: decimals in these sections are glued, quoted from a source, mathematics, or settings."""
    decimal = r"(?<![\w.-])\d+\.\d+(?![\w.-])"
    code = "\n".join(cell.source for cell in read_script(path).cells if cell.cell_type == "code")
    section, found = "", []
    for line in "\n\n".join(prose(path)).splitlines():
        section = line.removeprefix("## ") if line.startswith("## ") else section
        if section.startswith(("Results", "Summary")) and "{cite" not in line:
            plain = re.sub(r"\{[a-z:]+\}`[^`]*`|`[^`]*`|\$[^$]*\$", "", line)
            found += [number for number in re.findall(decimal, plain) if number not in re.findall(decimal, code)]
    assert found == []


@each(SCRIPTS)
def test_citations_are_in_the_bibliography(path):
    text = "\n".join(prose(path))
    cited = {key.strip() for keys in re.findall(r"\{cite:?\w*\}`([^`]+)`", text) for key in keys.split(",")}
    assert cited <= set(parse_file(ROOT / "book/references.bib").entries)


@each([*NOTEBOOKS, *PUBLISHED])
def test_no_notebook_is_heavy(path):
    assert path.stat().st_size < 2_000_000


# Published outputs


def test_every_chapter_is_published():
    assert [path.stem for path in PUBLISHED] == [path.stem for path in NOTEBOOKS], "run: make publish"


@each(PUBLISHED)
def test_a_published_copy_is_of_the_chapter_as_it_is_and_leaks_nothing(path):
    published = nbformat.read(path, as_version=4)
    source = nbformat.read(ROOT / "notebooks" / path.name, as_version=4)
    assert cell_sources(published) == cell_sources(source), "run: make publish"
    assert set(published.metadata.papermill) == {"duration", "parameters"}
    assert all(cell.execution_count for cell in published.cells if cell.cell_type == "code" and cell.source)
    text = path.read_text(encoding="utf-8")
    assert str(ROOT) not in text
    assert not re.search(r"it/s\]|application/vnd.jupyter.widget", text), "progress bars and widgets stay out"


# Table of contents


def test_the_table_of_contents_lists_what_exists_and_every_chapter():
    documents = toc_documents(ROOT / "_toc.yml")
    for document in documents:
        page = ROOT / document
        twin = ROOT / "notebooks" / f"{page.name}.ipynb"
        assert page.with_suffix(".md").is_file() or twin.is_file(), f"{document} does not exist"
    listed = [document.rsplit("/", 1)[1] for document in documents if document.startswith("book/chapters/")]
    assert listed == [path.stem for path in NOTEBOOKS]
    pages = {f"book/{path.stem}" for path in (ROOT / "book").glob("*.md")}
    assert pages <= set(documents)


# Claims


def test_every_module_of_claims_is_listed():
    modules = {path.stem.removeprefix("claims_") for path in (ROOT / "lethe_lib/reporting").glob("claims_*.py")}
    assert set(CHAPTERS_WITH_CLAIMS) == modules
    assert len(set(CHAPTERS_WITH_CLAIMS)) == len(CHAPTERS_WITH_CLAIMS)


def test_every_claim_is_complete_and_belongs_to_a_chapter():
    chapters = {path.stem for path in NOTEBOOKS}
    for claim in CLAIMS.values():
        assert re.fullmatch(r"[A-Z]\d\d[a-z]?", claim.id), claim.id
        assert claim.chapter in chapters, claim
        assert all([claim.sentence, claim.source, claim.estimand, claim.threshold]), claim


@each(SCRIPTS)
def test_the_claims_that_a_chapter_states_are_the_claims_that_it_tests(path):
    stated = CLAIM_BLOCK.findall("\n".join(prose(path)))
    tested = [claim.id.lower() for claim in CLAIMS.values() if claim.chapter == path.stem]
    assert sorted(stated) == sorted(tested)


def test_no_two_figures_of_the_book_share_a_name():
    cells = [cell for path in SCRIPTS for cell in read_script(path).cells if "mystnb" in cell.metadata]
    names = [cell.metadata.mystnb.figure.name for cell in cells]
    assert len(names) > 30 and len(names) == len(set(names))


def test_no_claim_is_stated_twice():
    stated = [label for path in SCRIPTS for label in CLAIM_BLOCK.findall("\n".join(prose(path)))]
    assert len(stated) == len(set(stated))


# Files of the frame


def test_the_sanitizer_is_read_in_full():
    """A line without the space after its colon would be skipped without a word."""
    text = "took 1.25 s at 0x7f3a, a figure of 640x480"
    for regex, replacement in get_sanitize_patterns((ROOT / "tests/nbval_sanitize.cfg").read_text()):
        text = re.sub(regex, replacement, text)
    assert text == "took SECONDS at 0xADDR, a figure of 640x480"


def test_every_dependency_is_pinned_exactly():
    pins = [line for line in (ROOT / "requirements.lock").read_text().splitlines() if not line.startswith("#")]
    assert all(re.fullmatch(r"[A-Za-z0-9._-]+==[0-9][0-9a-z.]*(\.post\d+)?", pin) for pin in pins)
    names = {re.sub(r"[-_.]+", "-", pin.split("==")[0]).lower() for pin in pins}
    assert len(names) == len(pins)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    for requirement in [*project["dependencies"], *extras["book"], *extras["test"]]:
        assert re.split(r"[<>=]", requirement)[0] in names, requirement
    assert "jupyter-book==1.0.4.post1" in pins


def test_conda_users_get_the_same_pins():
    environment = yaml.safe_load((ROOT / "environment.yml").read_text())
    assert {"pip": ["-r requirements.lock", "-e ."]} in environment["dependencies"]


def test_the_citation_file_has_what_its_format_requires():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert citation["cff-version"] == "1.2.0"
    assert citation["version"] == lethe_lib.__version__
    assert citation["message"] and citation["title"] and citation["license"] == "MIT"
    for work in [citation, *citation["references"]]:
        assert all("name" in author or {"family-names", "given-names"} <= set(author) for author in work["authors"])
    assert all({"type", "title", "authors"} <= set(work) for work in citation["references"])


def test_both_licences_are_named():
    text = (ROOT / "LICENSE").read_text()
    assert "MIT License" in text and "creativecommons.org/licenses/by/4.0" in text


def test_commands_in_the_documentation_exist():
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    text = "\n".join(page.read_text(encoding="utf-8") for page in [ROOT / "README.md", *(ROOT / "book").glob("*.md")])
    assert {"book", "test", "publish", "verify", "bench"} <= targets
    assert set(re.findall(r"(?:`|\$ )make ([a-z]+)", text)) <= targets
    assert set(re.findall(r"python -m lethe_lib ([a-z-]+)", text)) <= set(COMMANDS)


@pytest.mark.skipif(not shutil.which("bash"), reason="needs bash")
def test_the_ci_script_is_valid_and_executable():
    script = ROOT / ".ci/run"
    assert script.stat().st_mode & 0o111
    assert subprocess.run(["bash", "-n", script]).returncode == 0
    assert "set -euo pipefail" in script.read_text()


# The library


def test_a_room_imports_only_rooms_before_it():
    for path in (ROOT / "lethe_lib").glob("*/*.py"):
        room = path.parent.name
        for node in ast.walk(ast.parse(path.read_text())):
            modules = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            modules += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            for module in modules:
                other = module.removeprefix("lethe_lib.").split(".")[0]
                if module.startswith("lethe_lib.") and other in ROOMS:
                    assert ROOMS.index(other) <= ROOMS.index(room), f"{path.relative_to(ROOT)} imports {module}"


def test_threads_agree_and_kernels_choose_their_own_drawing_backend(monkeypatch):
    for name in ("NUMBA_NUM_THREADS", "GOMP_SPINCOUNT", "OMP_WAIT_POLICY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    monkeypatch.setenv("MPLBACKEND", "Agg")
    monkeypatch.setenv("PYTHONWARNINGS", "default")
    prepare_environment()
    prepare_environment()
    assert os.environ["PYTHONWARNINGS"] == "default,ignore:IProgress not found"
    assert os.environ["NUMBA_NUM_THREADS"] == os.environ["OMP_NUM_THREADS"] == "3"
    assert (os.environ["GOMP_SPINCOUNT"], os.environ["OMP_WAIT_POLICY"]) == ("0", "passive")
    assert os.environ["TQDM_DISABLE"] == "1"
    assert "MPLBACKEND" not in os.environ
