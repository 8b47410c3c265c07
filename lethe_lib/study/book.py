"""The HTML book: execute every chapter, stage a copy of the sources around them, build it strictly, check the pages.

    execute every notebook into _build/executed
    stage _config.yml, _toc.yml and book/ under _build/stage, the executed copies in place of the published ones
    add a status page: which chapter ran, how long, with which parameters
    jupyter-book build, nit-picky, warnings are errors -> _build/html
    check the HTML: every page, alt texts, links, no traceback, no hole where a number should be

No tracked file changes, except by publishing, which replaces book/chapters by the executed copies.
"""

import argparse
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from urllib.parse import unquote, urlsplit

import nbformat
import yaml
from bs4 import BeautifulSoup

from lethe_lib.errors import LetheError
from lethe_lib.paths import repository
from lethe_lib.study.chapters import chapters, execute_chapters, report_progress

STATUS_PAGE = "book/status"


class BookFailed(LetheError):
    """The book could not be built, or a built page is not as it must be."""


def toc_documents(toc: Path) -> list[str]:
    """The documents of a table of contents in reading order, without suffix, such as ``book/intro``."""
    content = yaml.safe_load(toc.read_text(encoding="utf-8"))
    entries = [entry for part in content.get("parts", [content]) for entry in part["chapters"]]
    return [content["root"], *(entry["file"] for entry in entries)]


def stage_book(stage: Path, executed: Path, root: Path | None = None) -> None:
    """Copy everything that the book is built from into ``stage``, with the chapters found in ``executed``.

    Args:
        stage: folder to create; what it held is removed.
        executed: folder of executed notebooks.
        root: of the checkout.
    """
    root = root or repository()
    shutil.rmtree(stage, ignore_errors=True)
    shutil.copytree(root / "book", stage / "book", ignore=shutil.ignore_patterns("*.ipynb", ".ipynb_checkpoints"))
    shutil.copyfile(root / "_config.yml", stage / "_config.yml")
    (stage / "book/chapters").mkdir(exist_ok=True)
    notebooks = sorted(executed.glob("[0-9][0-9]_*.ipynb"))
    for notebook in notebooks:
        shutil.copyfile(notebook, stage / "book/chapters" / notebook.name)
    toc = yaml.safe_load((root / "_toc.yml").read_text(encoding="utf-8"))
    toc["parts"][-1]["chapters"].append({"file": STATUS_PAGE})
    (stage / "_toc.yml").write_text(yaml.safe_dump(toc, sort_keys=False), encoding="utf-8")
    (stage / f"{STATUS_PAGE}.md").write_text(status_page(notebooks), encoding="utf-8")


def status_page(notebooks: Iterable[Path]) -> str:
    """A page in MyST that lists executed notebooks with their status, duration and parameters."""
    lines = [
        "(status)=",
        "# Status of this build",
        "",
        "Every chapter was executed for this build; the figures and numbers on its page come from that execution.",
        "A chapter without parameters of its own ran with the defaults that its parameters cell shows.",
        "",
        "| chapter | status | duration | parameters |",
        "|---|---|---|---|",
    ]
    for path in notebooks:
        run = nbformat.read(path, as_version=4).metadata.papermill
        given = ", ".join(f"`{name} = {value!r}`" for name, value in run["parameters"].items()) or "defaults"
        lines.append(f"| {{doc}}`/book/chapters/{path.stem}` | executed | {run['duration']:.0f} s | {given} |")
    return "\n".join(lines) + "\n"


def build_html(stage: Path, build: Path) -> Path:
    """Build the staged book into ``build/_build/html`` and return that folder; any warning is an error.

    Raises:
        BookFailed: when jupyter-book reports an error or a warning.
    """
    html = build / "_build/html"
    for stale in (html, html.with_name(".doctrees")):
        shutil.rmtree(stale, ignore_errors=True)
    jupyter_book = [sys.executable, "-c", "from jupyter_book.cli.main import main; main()"]
    options = ["--path-output", str(build), "--all", "-n", "-W", "--keep-going", "-q"]
    finished = subprocess.run([*jupyter_book, "build", str(stage), *options])
    if finished.returncode:
        raise BookFailed("jupyter-book found errors or warnings: they are listed above")
    return html


def check_html(html: Path, documents: Iterable[str], forbidden: Iterable[str] = ()) -> list[str]:
    """Everything that is wrong with the built pages, one line each; an empty list when all is well.

    Args:
        html: folder of the built book.
        documents: the pages that must exist, such as ``book/intro``.
        forbidden: texts that no page may contain, such as the absolute path of the checkout.

    Returns:
        lines such as ``book/intro.html: picture figures/a.png has no alt text``.
    """
    pages = {html / f"{document}.html" for document in documents}
    problems = [f"{page.relative_to(html)}: missing or empty" for page in sorted(pages) if not _has_content(page)]
    parsed = {page: _parse(page) for page in sorted(pages) if _has_content(page)}
    for page, soup in parsed.items():
        found = [*_article_problems(soup), *_link_problems(page, soup, parsed)]
        found += [f"contains {text!r}" for text in forbidden if text in page.read_text(encoding="utf-8")]
        problems += [f"{page.relative_to(html)}: {problem}" for problem in found]
    return problems


def _has_content(page: Path) -> bool:
    return page.is_file() and page.stat().st_size > 0


def _parse(page: Path) -> BeautifulSoup:
    return BeautifulSoup(page.read_text(encoding="utf-8"), "html.parser")


def _article_problems(soup: BeautifulSoup) -> list[str]:
    article = soup.find("article") or soup.body
    if article is None or len(article.get_text(strip=True)) < 100:
        return ["has hardly any text"]
    problems = []
    for image in article.find_all("img"):
        alt, source = image.get("alt", "").strip(), image.get("src", "")
        # Sphinx puts the path of the picture where no alt text was written.
        if not alt or Path(alt).name == Path(unquote(source)).name or alt.startswith(("../", "_images/")):
            problems.append(f"picture {source} has no alt text")
    if article.select(".output.traceback") or "Traceback (most recent call last)" in article.get_text():
        problems.append("shows a traceback")
    if article.select(".output.stderr"):
        problems.append("shows text that a cell wrote to the error stream")
    for span in article.select(".pasted-text, .pasted-inline"):
        if not span.get_text(strip=True) and not span.find("img"):
            problems.append("has a hole where a glued value should be")
    for markup in ("{glue", "{cite", "{numref", "{ref}"):
        if any(markup in text for text in _prose(article)):
            problems.append(f"shows unprocessed markup {markup}")
    return problems


def _prose(article) -> list[str]:
    return [text for text in article.find_all(string=True) if not text.find_parent(["pre", "code", "script"])]


def _link_problems(page: Path, soup: BeautifulSoup, parsed: dict[Path, BeautifulSoup]) -> list[str]:
    problems = []
    for link in soup.select("article a[href], nav a[href]"):
        target = urlsplit(link["href"])
        if target.scheme or target.netloc or link["href"] == "#":
            continue
        file = (page.parent / unquote(target.path)).resolve() if target.path else page
        if not file.is_file():
            problems.append(f"link to {link['href']} leads nowhere")
            continue
        fragment = unquote(target.fragment)
        if fragment and file.suffix == ".html":
            other = parsed.get(file) or _parse(file)
            if not other.find(id=fragment) and not other.find(attrs={"name": fragment}):
                problems.append(f"link to {link['href']}: the page has no such place")
    return problems


def publish(executed: Path, published: Path) -> None:
    """Replace the published reference outputs by freshly executed copies; chapters that no longer exist go.

    Args:
        executed: folder that holds an executed copy of every chapter.
        published: ``book/chapters``.
    """
    published.mkdir(parents=True, exist_ok=True)
    fresh = sorted(executed.glob("[0-9][0-9]_*.ipynb"))
    for old in published.glob("*.ipynb"):
        if old.name not in {path.name for path in fresh}:
            old.unlink()
    for notebook in fresh:
        shutil.copyfile(notebook, published / notebook.name)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the command line of ``python -m lethe_lib book``."""
    parser.add_argument("--publish", action="store_true", help="refresh book/chapters (tracked) instead of building")
    parser.add_argument("-j", "--processes", type=int, default=2, help="chapters executed at once (default: 2)")


def main(arguments: argparse.Namespace) -> int:
    """Run ``python -m lethe_lib book``: build and check the book, or publish; 1 when a chapter failed."""
    root = repository()
    build = root / "_build"
    executed = build / "executed"
    shutil.rmtree(executed, ignore_errors=True)
    names = list(chapters())
    if report_progress(execute_chapters(names, executed, processes=arguments.processes), len(names)):
        return 1
    if arguments.publish:
        publish(executed, root / "book/chapters")
        print(f"refreshed {len(names)} chapter(s) in {root / 'book/chapters'}")
        return 0
    print("building the HTML pages", flush=True)
    stage = build / "stage"
    stage_book(stage, executed, root)
    html = build_html(stage, root)
    problems = check_html(html, toc_documents(stage / "_toc.yml"), forbidden=[str(root)])
    if problems:
        raise BookFailed("the built pages have problems:\n  " + "\n  ".join(problems))
    print(f"checked {len(list(html.rglob('*.html')))} pages\nthe book is at {html / 'index.html'}")
    return 0
