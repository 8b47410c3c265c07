"""The pages of the book: what is staged, and that the check of the HTML finds what is wrong."""

import nbformat
import pytest
import yaml

from lethe_lib.study.book import check_html, publish, stage_book, status_page, toc_documents

GOOD = """<html><body><article><h1 id="top">Title</h1>
<p>A page with enough words on it that nobody would take it for an empty one, since it goes on and on for a while.</p>
<img src="../_images/abc.png" alt="A curve that rises."/> <a href="other.html#there">next</a> <a href="#top">up</a>
<a href="https://example.org/x">out</a> <span class="pasted-text">0.5</span>
<pre>{glue:text}`shown as code`</pre></article></body></html>"""


@pytest.fixture
def html(tmp_path):
    (tmp_path / "book").mkdir()
    (tmp_path / "book/page.html").write_text(GOOD)
    (tmp_path / "book/other.html").write_text(GOOD.replace('id="top"', 'id="top" name="there"').replace("h1", "h2"))
    return tmp_path


def problems_with(html, replaced, by):
    assert replaced in GOOD
    (html / "book/page.html").write_text(GOOD.replace(replaced, by))
    return check_html(html, ["book/page", "book/other"])


def test_good_pages_have_no_problems(html):
    assert check_html(html, ["book/page", "book/other"]) == []


@pytest.mark.parametrize(
    ("replaced", "by", "message"),
    [
        ('alt="A curve that rises."', "", "picture ../_images/abc.png has no alt text"),
        ('alt="A curve that rises."', 'alt=" "', "no alt text"),
        ('alt="A curve that rises."', 'alt="../_images/abc.png"', "no alt text"),
        ('alt="A curve that rises."', 'alt="figures/abc.png"', "no alt text"),
        ("other.html#there", "gone.html", "gone.html leads nowhere"),
        ("other.html#there", "other.html#gone", "no such place"),
        ('href="#top"', 'href="#bottom"', "no such place"),
        ('<span class="pasted-text">0.5</span>', '<span class="pasted-text"> </span>', "hole"),
        ("A page", "A page with Traceback (most recent call last)", "traceback"),
        ("<pre>", '<div class="output traceback">ValueError</div><pre>', "traceback"),
        ("<pre>", '<div class="output stderr">a warning</div><pre>', "error stream"),
        ("A page", "A page {glue:text}`x`", "unprocessed markup {glue"),
        ("A page", "A page {cite:t}`x`", "unprocessed markup {cite"),
    ],
)
def test_each_fault_is_found_and_its_page_named(html, replaced, by, message):
    problems = problems_with(html, replaced, by)
    assert len(problems) == 1
    assert problems[0].startswith("book/page.html: ")
    assert message in problems[0]


def test_missing_empty_and_wordless_pages_are_found(html):
    (html / "book/empty.html").write_text("")
    (html / "book/short.html").write_text("<html><body><article>Hello</article></body></html>")
    assert check_html(html, ["book/absent", "book/empty", "book/short"]) == [
        "book/absent.html: missing or empty",
        "book/empty.html: missing or empty",
        "book/short.html: has hardly any text",
    ]


def test_a_forbidden_text_is_found(html):
    (html / "book/page.html").write_text(GOOD.replace("A page", "A page from /home/me"))
    assert check_html(html, ["book/page"], forbidden=["/home/me"]) == ["book/page.html: contains '/home/me'"]


def executed_notebook(path, **parameters):
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell("# Chapter")])
    notebook.metadata.papermill = {"duration": 12.3, "parameters": parameters}
    nbformat.write(notebook, path)


@pytest.fixture
def checkout(tmp_path):
    """A checkout with two chapters in its table of contents, an outdated published copy, and executed copies."""
    root = tmp_path / "root"
    (root / "book/chapters").mkdir(parents=True)
    (root / "book/intro.md").write_text("# Intro")
    (root / "book/chapters/01_old.ipynb").write_text("{}")
    (root / "_config.yml").write_text("title: x\n")
    toc = {
        "format": "jb-book",
        "root": "book/intro",
        "parts": [
            {"caption": "I", "chapters": [{"file": "book/chapters/01_one"}]},
            {"caption": "End", "chapters": [{"file": "book/references"}]},
        ],
    }
    (root / "_toc.yml").write_text(yaml.safe_dump(toc))
    executed = tmp_path / "executed"
    executed.mkdir()
    executed_notebook(executed / "01_one.ipynb", seed=3)
    executed_notebook(executed / "02_two.ipynb")
    return root, executed


def test_staging_takes_fresh_chapters_and_adds_the_status_page(checkout, tmp_path):
    root, executed = checkout
    before = {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}
    stage = tmp_path / "stage"
    stage.mkdir()
    (stage / "leftover").write_text("x")
    stage_book(stage, executed, root)
    assert sorted(path.relative_to(stage).as_posix() for path in stage.rglob("*") if path.is_file()) == [
        "_config.yml",
        "_toc.yml",
        "book/chapters/01_one.ipynb",
        "book/chapters/02_two.ipynb",
        "book/intro.md",
        "book/status.md",
    ]
    assert toc_documents(root / "_toc.yml") == ["book/intro", "book/chapters/01_one", "book/references"]
    assert toc_documents(stage / "_toc.yml") == [*toc_documents(root / "_toc.yml"), "book/status"]
    assert {path: path.read_bytes() for path in root.rglob("*") if path.is_file()} == before


def test_the_status_page_tells_duration_and_parameters(checkout):
    _, executed = checkout
    rows = [line for line in status_page(sorted(executed.glob("*.ipynb"))).splitlines() if line.startswith("| {doc}")]
    assert rows == [
        "| {doc}`/book/chapters/01_one` | executed | 12 s | `seed = 3` |",
        "| {doc}`/book/chapters/02_two` | executed | 12 s | defaults |",
    ]


def test_publishing_replaces_all_reference_outputs(checkout):
    root, executed = checkout
    publish(executed, root / "book/chapters")
    published = {path.name: path.read_bytes() for path in (root / "book/chapters").iterdir()}
    assert published == {path.name: path.read_bytes() for path in executed.iterdir()}
