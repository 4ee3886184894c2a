"""What the docs say is true: their examples run, their output is the real one, their links lead somewhere.

In README.md and the pages of docs/, in the order of a page and in one folder per page:

* a ``python`` block is run;
* each line ``$ ...`` of a ``console`` block, with the lines ``> ...`` that go on with it, is run by bash; the lines
  after it are what it prints on stdout and stderr;
* a ``text`` or ``mermaid`` block right after one of these is what it prints.

``...`` alone on a line of output stands for any lines, within a line for any text. An ``acep`` block is a query
that must be right. Blocks of other kinds (``sh``) are not run.
"""

from __future__ import annotations

import ast
import contextlib
import doctest
import importlib
import io
import os
import re
import runpy
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

import acep_approx
from acep_approx.query.cel.names import resolved
from acep_approx.query.cel.parser import parse_cel
from acep_approx.query.checks import check
from acep_approx.query.parser import parse
from tests import forked
from tests.patience import PATIENCE

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
PROSE = [*PAGES, ROOT / "CHANGELOG.md", ROOT / "CONTRIBUTING.md"]
SOURCES = sorted(path for package in ("acep_approx", "history", "rl") for path in (ROOT / package).rglob("*.py"))
OURS = ("acep_approx", "docs", "experiments", "history", "rl", "tests")
CODE = re.compile(r"ACEP-[A-Z]\d+")
RULES = {
    "acep_approx/query/assemble.py": "Assembler.",
    "acep_approx/query/cel/parser.py": "CelAssembler.",
    "acep_approx/query/rules/parser.py": "RulesAssembler.",
}
"""Methods that are named after rules of a grammar, which says what they are."""


def name_of(path: Path) -> str:
    """Path within the project, to name a test."""
    return path.relative_to(ROOT).as_posix()


# --- examples -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, its text, where it begins, and whether it stands right after another one."""

    language: str
    text: str
    line: int
    follows: bool


def blocks(path: Path) -> Iterator[Block]:
    """The fenced blocks of a page."""
    page = path.read_text(encoding="utf-8")
    end = -1
    for found in re.finditer(r"^```(\w*)\n(.*?)^```$", page, re.DOTALL | re.MULTILINE):
        follows = end >= 0 and not page[end : found.start()].strip()
        yield Block(found[1], found[2], page.count("\n", 0, found.start()) + 1, follows)
        end = found.end()


def fits(shown: str, real: str) -> bool:
    """Whether real output is what a page shows, with ``...`` for what it leaves out."""
    lines = [line.rstrip() for line in shown.strip("\n").split("\n")]
    pattern = ""
    for line in lines:
        whole = line.strip() == "..."
        pattern += r"(?:.*\n)*?" if whole else re.escape(line).replace(r"\.\.\.", ".*?") + "\n"
    text = "".join(line.rstrip() + "\n" for line in real.strip("\n").split("\n"))
    return re.fullmatch(pattern, text) is not None


def test_output_may_be_left_out():
    assert fits("a\n...\nd", "a\nb\nc\nd\n")
    assert fits("a\n...", "a\n")
    assert fits("5 events in ... s", "5 events in 0.2 s\n")
    assert not fits("a\nd", "a\nb\nd\n")


def needs_spark(path: Path) -> bool:
    """Whether a page starts Spark in this process."""
    return any(block.language == "python" and "acep_approx.spark" in block.text for block in blocks(path))


def marks(path: Path) -> list[pytest.MarkDecorator]:
    """Pages with Spark share one session; the tutorial learns from real events, which takes a while."""
    is_slow = path.parent.name == "tutorial"
    return [pytest.mark.xdist_group("spark")] * needs_spark(path) + [pytest.mark.slow] * is_slow


@pytest.fixture(scope="session")
def program() -> Iterator[Path]:
    """The folder of a program ``acep``."""
    with TemporaryDirectory() as home, forked.program(Path(home)) as folder:
        yield folder


@pytest.mark.parametrize(
    "path",
    [pytest.param(path, marks=marks(path)) for path in PAGES],
    ids=name_of,
)
def test_examples_run_and_print_what_the_page_shows(path, tmp_path, monkeypatch, request):
    if needs_spark(path):
        request.getfixturevalue("spark")  # the one session of all tests
    if any(block.language == "console" for block in blocks(path)):
        monkeypatch.setenv("PATH", f"{request.getfixturevalue('program')}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    namespace: dict[str, object] = {"__name__": "__main__"}
    printed = None
    for block in blocks(path):
        where = f"{name_of(path)}, line {block.line}"
        if block.language == "python":
            printed = run_python(block.text, where, namespace)
        elif block.language == "console":
            printed = run_console(block.text, where)
        elif block.language in ("text", "mermaid") and block.follows and printed is not None:
            assert fits(block.text, printed), f"{where}: really printed is\n{printed}"
        else:
            printed = None
    for drawn in tmp_path.glob("*.svg"):  # a file of the name of a picture is that picture
        shown = ROOT / "docs" / "images" / drawn.name
        same = not shown.exists() or shown.read_text(encoding="utf-8") == drawn.read_text(encoding="utf-8")
        assert same, f"{name_of(shown)} is not what {name_of(path)} draws"


def run_python(code: str, where: str, namespace: dict[str, object]) -> str:
    """Run a block in the namespace of its page; returns what it prints."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(code, where, "exec"), namespace)
    return out.getvalue()


def run_console(text: str, where: str) -> str:
    """Run the commands of a block one by one, and compare what they print; returns what the last one prints."""
    assert text.startswith("$ "), f"{where}: a console block begins with a command"
    for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        first, *rest = part.splitlines(keepends=True)
        more = list(takewhile(lambda line: line.startswith("> "), rest))
        command, shown = first + "".join(line[2:] for line in more), "".join(rest[len(more) :])
        code, printed = run_bash(command)
        if shown.strip():
            assert fits(shown, printed), f"{where}: `{command.strip()}` really prints\n{printed}"
        else:
            assert code == 0, f"{where}: `{command.strip()}` fails\n{printed}"
    return printed


def run_bash(command: str) -> tuple[int, str]:
    """Run a command of the shell; returns its exit code, and what it prints."""
    done = subprocess.run(
        ["bash", "-c", command],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=PATIENCE,
    )
    compiling = r"^acep: compiling kernels.*\n"  # it depends on what ran before
    return done.returncode, re.sub(compiling, "", done.stdout, flags=re.M)


@pytest.mark.parametrize("name", ["flights", "history", "late"])
def test_the_picture_is_what_its_script_draws(name):
    script = ROOT / "docs" / "images" / f"{name}.py"
    drawn = runpy.run_path(str(script))[f"{name}_picture"]()
    shown = script.with_suffix(".svg").read_text(encoding="utf-8")
    assert drawn == shown, f"draw it again: python {name_of(script)}"


def test_the_screenshot_of_the_readme_is_small_and_as_wide_as_its_script_takes_it():
    """Each browser draws a little differently, so it is not compared."""
    shown = ROOT / "docs" / "images" / "explorer.png"
    width = runpy.run_path(str(shown.with_suffix(".py")))["WIDTH"]
    picture = shown.read_bytes()
    assert picture.startswith(b"\x89PNG")
    assert int.from_bytes(picture[16:20], "big") == width
    assert len(picture) < 150_000


@pytest.mark.parametrize("path", PAGES, ids=name_of)
def test_queries_are_right(path):
    for block in blocks(path):
        if block.language == "acep":
            check(parse(block.text))
        elif block.language == "cel":
            resolved(parse_cel(block.text), {})


def test_the_graphs_are_what_their_script_draws():
    script = runpy.run_path(str(ROOT / "docs" / "how-it-works" / "pictures.py"))
    for name in script["PICTURES"]:
        shown = (ROOT / "docs" / "images" / f"{name}.svg").read_text(encoding="utf-8")
        assert script["drawn"](name) == shown, "draw it again: python docs/how-it-works/pictures.py"


def test_docs_hold_pages_and_pictures_and_nothing_that_an_example_left_behind():
    kept = subprocess.run(["git", "ls-files", "docs"], cwd=ROOT, capture_output=True, text=True, check=False).stdout
    kinds = {Path(name).suffix for name in kept.splitlines()}
    here = {".md", ".svg", ".png", ".py", ".json", ".ipynb", ".1"}
    assert kinds <= here, "examples of a page run in a folder of their own, not in docs/"


# --- links ----------------------------------------------------------------------------------------------------


def anchors(path: Path) -> set[str]:
    """What GitHub makes of the headings of a page."""
    prose = re.sub(r"^```.*?^```$", "", path.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    headings = re.findall(r"^#+ (.*)$", prose, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("path", PROSE, ids=name_of)
def test_links_lead_somewhere(path):
    prose = re.sub(r"^```.*?^```$", "", path.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    prose = re.sub(r"`[^`\n]*`", "", prose)
    for target in re.findall(r"\]\(([^)\s]+)\)", prose):
        if re.match(r"[a-z]+:", target):
            continue
        file, _, anchor = target.partition("#")
        there = (path.parent / file).resolve() if file else path
        assert there.exists(), f"{name_of(path)}: {target}"
        assert there.is_relative_to(ROOT), f"{name_of(path)}: {target} leads out of the project"
        assert not anchor or anchor in anchors(there), f"{name_of(path)}: no heading {target}"


@pytest.mark.parametrize("path", sorted((ROOT / "docs").rglob("*.md")), ids=name_of)
def test_every_page_can_be_found_from_the_index(path):
    index = ROOT / "docs" / "index.md"
    linked = {(index.parent / link).resolve() for link in re.findall(r"\]\(([^)#\s]+)", index.read_text("utf-8"))}
    assert path == index or path in linked


def test_no_page_is_longer_than_ten_minutes():
    """Reference is looked up, all else is read: 2,000 words at most."""
    docs = ROOT / "docs"
    read = [path.relative_to(docs) for path in docs.rglob("*.md")]
    long = {
        page.as_posix()
        for page in read
        if page.parts[0] != "reference" and len((docs / page).read_text(encoding="utf-8").split()) > 2000
    }
    assert not long


def places() -> set[str]:
    """All files and folders of ours, from the root or from any folder on the way."""
    parts = [path.relative_to(ROOT).parts for folder in OURS for path in (ROOT / folder).rglob("*")]
    return {*OURS} | {"/".join(path[start:]) for path in parts for start in range(len(path))}


@pytest.mark.parametrize("path", [*PAGES, ROOT / "CONTRIBUTING.md"], ids=name_of)
def test_files_that_prose_names_are_there(path):
    prose = re.sub(r"^```.*?^```$", "", path.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    spans = re.findall(r"`([^`\n]*)`", prose)
    named = {name for span in spans for name in re.findall(r"(?<![\w*/])[\w/]+\.(?:py|lark)\b", span)}
    whose = "acep_approx/" if path in PAGES else ""  # pages also name folders of their examples
    named |= {span.rstrip("/") for span in spans if re.fullmatch(whose + r"[\w/]+/", span)}
    assert named <= places()


# --- the source -----------------------------------------------------------------------------------------------


def test_files_that_comments_name_are_there():
    """With their path from the root; what is quoted in strings is no less stale."""
    named = re.compile(r"(?<![\w/.])(?:docs|experiments|tests)/[\w/-]+\.(?:md|py|toml)\b")
    gone = {
        f"{path.relative_to(ROOT)}: {name}"
        for folder in ("acep_approx", "history", "rl", "experiments", "tests")
        for path in (ROOT / folder).rglob("*.py")
        for name in named.findall(path.read_text(encoding="utf-8"))
        if not (ROOT / name).exists()
    }
    assert not gone


def test_every_error_code_is_in_the_reference_and_no_other():
    raised = {
        node.value
        for path in SOURCES
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and CODE.fullmatch(node.value)
    }
    page = (ROOT / "docs" / "reference" / "errors.md").read_text(encoding="utf-8")
    lists = page[page.index("\n## The system") :]  # what is temporary is in them, too
    listed = re.findall(r"^\| `(ACEP-[A-Z]\d+)` \|", lists, re.MULTILINE)
    assert sorted(listed) == sorted(raised)


def is_overload(node: ast.AST) -> bool:
    """Whether a definition only says which types go together."""
    return any(isinstance(name, ast.Name) and name.id == "overload" for name in getattr(node, "decorator_list", ()))


def definitions(tree: ast.Module) -> Iterator[tuple[str, ast.AST]]:
    """Public functions and classes of a module, and public methods of its public classes."""
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    for node in tree.body:
        if isinstance(node, kinds) and not node.name.startswith("_"):
            yield node.name, node
            for inner in node.body if isinstance(node, ast.ClassDef) else ():
                if isinstance(inner, kinds) and not inner.name.startswith("_") and not is_overload(inner):
                    yield f"{node.name}.{inner.name}", inner


@pytest.mark.parametrize("path", SOURCES, ids=name_of)
def test_everything_public_has_a_docstring(path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    assert ast.get_docstring(tree), f"{name_of(path)} says nothing about itself"
    named_by_grammar = RULES.get(name_of(path), "-")
    silent = [name for name, node in definitions(tree) if not ast.get_docstring(node)]
    assert not [name for name in silent if not name.startswith(named_by_grammar)]


@pytest.mark.parametrize("name", acep_approx.__all__)
def test_every_exported_name_is_there_and_says_what_it_is(name):
    assert (getattr(acep_approx, name).__doc__ or "").strip()


@pytest.mark.parametrize("path", [p for p in SOURCES if ">>>" in p.read_text(encoding="utf-8")], ids=name_of)
def test_examples_in_docstrings(path):
    module = importlib.import_module(".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"))
    out = io.StringIO()
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    for test in doctest.DocTestFinder(exclude_empty=True).find(module):
        runner.run(test, out=out.write)
    assert not runner.failures, out.getvalue()
