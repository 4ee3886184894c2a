"""What is installed: the wheel, the guard against foreign packages of our names, and who may import whom."""

from __future__ import annotations

import ast
import email
import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path
from typing import NamedTuple

import pytest

import acep_approx
from tests.patience import PATIENCE
from tests.processes import as_started

ROOT = Path(__file__).parent.parent
PACKAGES = ("acep_approx", "history", "rl")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def run_python(code: str, *paths: Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run some code in a fresh interpreter that looks in ``paths`` before all installed packages."""
    environment = as_started(PYTHONPATH=os.pathsep.join(map(str, paths)))
    return subprocess.run(
        [sys.executable, "-c", code],
        cwd=cwd,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE,
    )


# --- the wheel --------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of this tree, built without the network."""
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=PATIENCE)
    assert built.returncode == 0, built.stdout + built.stderr
    (path,) = folder.glob("*.whl")
    return path


def beside(name: str) -> bool:
    """Whether a file of the wheel is of none of the packages."""
    return ".dist-info/" in name or ".data/" in name


def test_the_tests_run_this_tree_whatever_is_installed():
    assert Path(acep_approx.__file__).parent.parent == ROOT


def test_the_wheel_is_this_tree_byte_for_byte(wheel):
    """So what is tested here is what users install."""
    here = {
        path.relative_to(ROOT).as_posix(): path.read_bytes()
        for package in PACKAGES
        for path in (ROOT / package).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    with zipfile.ZipFile(wheel) as archive:
        packed = {name: archive.read(name) for name in archive.namelist() if not beside(name)}
    assert packed == here


def test_the_wheel_installs_the_manual_page(wheel):
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [name for name in archive.namelist() if ".data/" in name]
        assert name.endswith(".data/data/share/man/man1/acep.1")
        assert archive.read(name) == (ROOT / "docs/reference/acep.1").read_bytes()


def test_the_wheel_has_types_the_grammar_and_the_licence(wheel):
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    assert {f"{package}/py.typed" for package in PACKAGES} <= set(names)
    assert "acep_approx/query/grammar.lark" in names
    assert [name for name in names if name.endswith(".dist-info/licenses/LICENSE")]
    assert {name.split("/")[0] for name in names if not beside(name)} == set(PACKAGES)


def test_the_version_is_the_same_everywhere(wheel):
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        metadata = email.message_from_bytes(archive.read(name))
    assert metadata["Version"] == PROJECT["version"] == acep_approx.__version__
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert f"## [{acep_approx.__version__}]" in changelog


def test_each_package_is_pinned_in_one_place():
    wanted = [*PROJECT["dependencies"], *(one for some in PROJECT["optional-dependencies"].values() for one in some)]
    names = [re.split(r"[<>=~!;\[ ]", one)[0] for one in wanted]
    assert [name for name in dict.fromkeys(names) if names.count(name) > 1] == [PROJECT["name"]]
    extras = {one for some in wanted if some.startswith(PROJECT["name"]) for one in some[:-1].split("[")[1].split(",")}
    assert extras <= PROJECT["optional-dependencies"].keys()


def test_the_unpacked_wheel_runs_away_from_this_tree(wheel, tmp_path):
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "site")
    code = (
        "import acep_approx; from acep_approx.cli.main import main\n"
        "events = [{'ts': 1, 'type': 'A'}, {'ts': 2, 'type': 'C'}]\n"
        "query = acep_approx.compile_query('PATTERN SEQ(A a, B b, C c) WITHIN 5 ERRORS 1')\n"
        "print(acep_approx.__file__, [m.missing for m in query.match(events)])"
    )
    done = run_python(code, tmp_path / "site", cwd=tmp_path)
    assert done.stdout.split(maxsplit=1) == [str(tmp_path / "site/acep_approx/__init__.py"), "[('b',)]\n"], done.stderr


# --- the guard --------------------------------------------------------------------------------------------


NAMES = ("history", "rl")
IMPORTS = "import acep_approx"
RUNS = "import os; os.environ['ACEP_JIT'] = '0'; "  # numba takes half of the time
RUNS += f"{IMPORTS}; print(len(acep_approx.compile_query('PATTERN A a WITHIN 5').match([{{'ts': 1, 'type': 'A'}}])))"


MINE = "print('was run'); MINE = True"
THEN = "; import history, rl; print(hasattr(history, 'MINE'), hasattr(rl, 'MINE'))"


@pytest.mark.parametrize(("name", "kind"), [*zip(NAMES, ("file", "package"), strict=True)])
@pytest.mark.parametrize("how", ["script", "path", "imported before"])
def test_somebodys_own_file_of_our_name_stays_theirs(name, kind, how, tmp_path):
    """Ours is loaded from its place, theirs is not run; who imports the name gets theirs, before and after."""
    mine = tmp_path / "mine"
    stand_in = mine / name / "__init__.py" if kind == "package" else mine / f"{name}.py"
    stand_in.parent.mkdir(parents=True)
    stand_in.write_text(MINE, encoding="utf-8")
    script = mine / "script.py"
    script.write_text(f"import {name}\n{RUNS}{THEN}" if how == "imported before" else RUNS + THEN, encoding="utf-8")
    done = run_python(script.read_text() if how == "path" else f"import runpy; runpy.run_path({str(script)!r})",
                      mine, ROOT, cwd=tmp_path)  # fmt: skip
    said = ["was run", "1"] if how == "imported before" else ["1", "was run"]
    assert done.stdout.splitlines() == [*said, f"{name == 'history'} {name == 'rl'}"], done.stderr


def test_a_history_is_learned_beside_files_of_our_names(tmp_path):
    """What is loaded when it is used comes from our modules, too; and so does what was saved."""
    for name in NAMES:
        (tmp_path / f"{name}.py").write_text(MINE, encoding="utf-8")
    script = tmp_path / "script.py"
    script.write_text(
        "import pickle, acep_approx as acep\n"
        "query = acep.compile_query('PATTERN SEQ(A a, B b, C c) WHERE b.x > a.x AND c.x > b.x WITHIN 20')\n"
        "events = [{'ts': t, 'type': 'ABC'[t % 3], 'x': t * 7 % 10} for t in range(300)]\n"
        "known = acep.HistoryGraph(query).fit(events)\n"
        "known.save('known'); known = acep.HistoryGraph.load('known', query)\n"
        "found = query.match_within(events, '50%', history=known, learn=True)\n"
        "print(len(found.to_arrow()) > 0)\n"
        "print(type(pickle.loads(pickle.dumps(known.graph_))) is type(known.graph_))\n",  # pickle imports the bare name
        encoding="utf-8",
    )
    environment = as_started()
    command = [sys.executable, str(script)]
    done = subprocess.run(
        command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=120
    )
    assert [line for line in done.stdout.splitlines() if line != "was run"] == ["True", "True"], done.stderr
    assert done.stdout.startswith("True"), done.stderr


@pytest.mark.parametrize("name", NAMES)
def test_a_script_of_our_name_runs(name, tmp_path):
    script = tmp_path / f"{name}.py"
    script.write_text(RUNS, encoding="utf-8")
    command = [sys.executable, str(script)]
    environment = as_started()
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=60)
    assert done.stdout == "1\n", done.stderr


@pytest.mark.parametrize("how", ["beside", "imported before"])
@pytest.mark.parametrize(("name", "module"), [("history", "store"), ("rl", "chart")])
def test_a_package_with_modules_called_as_ours_is_named(name, module, how, tmp_path):
    """Only one of the two could be imported by that name."""
    (tmp_path / name).mkdir()
    for file in ("__init__.py", f"{module}.py"):
        (tmp_path / name / file).write_text("", encoding="utf-8")
    before = f"import {name}.{module}; " if how == "imported before" else ""
    done = run_python(before + RUNS, tmp_path, ROOT, cwd=tmp_path)
    assert f"ImportError: {tmp_path / name} is in the way" in done.stderr
    assert "rename it, or start Python where" in done.stderr
    assert "pip" not in done.stderr


def test_the_bare_names_are_imported_by_nobody():
    """They may be somebody else's."""
    for path in modules(*PACKAGES):
        text = path.read_text(encoding="utf-8")
        assert not re.search(r"^\s*(from (history|rl) import|import (history|rl)\b)", text, re.MULTILINE), path


@pytest.mark.parametrize(
    ("kind", "is_first"), [("file", False), ("package", False), ("folder", False), ("folder", True)]
)
def test_what_python_does_not_find_first_is_in_nobodys_way(kind, is_first, tmp_path):
    """Files behind this package, and folders that are no packages wherever they are."""
    for name in NAMES:
        inside = {"file": f"{name}.py", "package": f"{name}/__init__.py", "folder": f"{name}/notes.py"}[kind]
        (tmp_path / inside).parent.mkdir(exist_ok=True)
        (tmp_path / inside).write_text("raise SystemExit('was run')", encoding="utf-8")
    paths = (tmp_path, ROOT) if is_first else (ROOT, tmp_path)
    done = run_python(RUNS, *paths, cwd=tmp_path if is_first else ROOT)
    assert (done.stdout, done.returncode) == ("1\n", 0), done.stderr


def test_folders_that_were_imported_before_stay_theirs(tmp_path):
    for name in NAMES:
        (tmp_path / name).mkdir()
    code = f"import sys; all, sys.path[:] = [*sys.path], [{str(tmp_path)!r}]; import history, rl; sys.path[:] = all; "
    code += f"{RUNS}; print(*(sys.modules[name].__path__[0] for name in {NAMES}))"
    done = run_python(code, ROOT, cwd=tmp_path)
    assert done.stdout.split() == ["1", *(str(tmp_path / name) for name in NAMES)], done.stderr


@pytest.fixture
def site(wheel, tmp_path):
    """This package as it is installed, in a folder of its own."""
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "site-packages")
    return tmp_path / "site-packages"


@pytest.mark.parametrize("name", NAMES)
def test_another_distribution_that_has_replaced_a_package_is_named(name, site, tmp_path):
    """PyPI has other packages that install ``rl`` or ``history``; each overwrites the other's files."""
    (site / name / "__init__.py").write_text("", encoding="utf-8")
    done = run_python(RUNS, site, cwd=tmp_path)
    assert "is not as acep-approx installed it; repair with: pip install --force-reinstall acep-approx" in done.stderr
    other = site / "other_agent-1.0.dist-info"
    other.mkdir()
    (other / "METADATA").write_text("Metadata-Version: 2.1\nName: other-agent\nVersion: 1.0\n", encoding="utf-8")
    (other / "RECORD").write_text(f"{name}/__init__.py,,\nother_agent-1.0.dist-info/METADATA,,\n", encoding="utf-8")
    done = run_python(RUNS, site, cwd=tmp_path)
    assert f"{site / name / '__init__.py'} belongs to another distribution, other-agent, and acep-approx" in done.stderr
    assert "pip uninstall other-agent, then pip install --force-reinstall acep-approx" in done.stderr


@pytest.mark.parametrize("name", NAMES)
def test_a_package_that_was_taken_away_is_missed(name, site, tmp_path):
    shutil.rmtree(site / name)
    (tmp_path / name).mkdir()  # no package either
    done = run_python(RUNS, site, cwd=tmp_path)
    assert f"ImportError: the package {name!r} of acep-approx is not there any more; repair with: pip" in done.stderr


def test_packages_in_a_zip_are_found(wheel, tmp_path):
    """As Spark's workers have them."""
    assert run_python(IMPORTS, wheel, cwd=tmp_path).returncode == 0


# --- who imports whom -------------------------------------------------------------------------------------

FROM_THE_TOP = (
    {"cli"},
    {"profiling"},
    {"api"},
    {"spark"},
    {"results"},
    {"shedding"},
    {"learning", "rules"},
    {"training", "why", "revisions", "subscriptions", "live"},
    {"matching", "run"},
    {"planning", "engines", "pages"},
    {"automaton", "timeline"},
    {"query", "events", "budget"},
    {"kernels"},
    {"jit"},
    {"diagrams"},
    {"archive"},
    {"arguments", "ranges"},
    {"arrays", "errors", "ipc", "shell", "siblings"},
    {"masks", "object_cache", "visible", "without_pandas"},
)
"""Parts of ``acep_approx``: each imports only what stands below it, for type checkers and inside functions too."""
FLOOR = {part: number for number, parts in enumerate(FROM_THE_TOP) for part in parts}


def modules(*packages: str) -> list[Path]:
    """All modules of some packages."""
    return sorted(path for package in packages for path in (ROOT / package).rglob("*.py"))


NAMED = {"id", "attr", "name", "asname"}
"""Fields of the nodes of a tree that hold names."""


class Source(NamedTuple):
    """What a module imports, which names stand in it, and the last names of what it calls."""

    imports: frozenset[str]
    names: frozenset[str]
    called: frozenset[str]


@cache
def source(path: Path) -> Source:
    """A module, which is parsed once for all tests."""
    imports, names, called = set[str](), set[str](), set[str]()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names.update(getattr(node, field) for field in node._fields if field in NAMED)
        if isinstance(node, ast.Import):
            imports |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: write imports in full"
            imports |= {node.module or "", *(f"{node.module}.{alias.name}" for alias in node.names)}
        elif isinstance(node, ast.Call):
            called.add(getattr(node.func, "attr", None) or getattr(node.func, "id", ""))
    return Source(frozenset(imports), frozenset(names), frozenset(called))


def imported(path: Path) -> frozenset[str]:
    """Names of the modules that a module imports: at once, inside functions, or for type checkers."""
    return source(path).imports


def top(name: str) -> str:
    """``acep_approx.query.parser`` -> ``acep_approx``."""
    return name.split(".", maxsplit=1)[0]


@pytest.mark.parametrize("path", modules("acep_approx"), ids=lambda path: path.relative_to(ROOT).as_posix())
def test_imports_run_one_way(path):
    part = path.relative_to(ROOT / "acep_approx").parts[0].removesuffix(".py")
    if part == "__init__":
        return  # its public names are loaded when they are used
    assert part in FLOOR, f"{part} is new: give it a place in FROM_THE_TOP and in CONTRIBUTING.md"
    inner = {name.split(".")[1] for name in imported(path) if name.startswith("acep_approx.")} - {"__version__", part}
    assert {name for name in inner if FLOOR[name] <= FLOOR[part]} == set()


FACES = {"Query", "Matcher"}
"""What stands in ``api``; below it a query is a plan, and a matcher an ``Execution``."""


@pytest.mark.parametrize("path", modules("acep_approx"), ids=lambda path: path.relative_to(ROOT).as_posix())
def test_nothing_below_api_names_a_face(path):
    part = path.relative_to(ROOT / "acep_approx").parts[0].removesuffix(".py")
    if part == "__init__" or FLOOR[part] <= FLOOR["api"]:
        return
    assert not source(path).names & FACES


def test_contributing_shows_these_floors():
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    (shown,) = re.findall(r"^```text\n(cli .*?)^```$", page, re.MULTILINE | re.DOTALL)
    floors = [line.split("  ")[0].split(", ") for line in shown.splitlines()]
    assert [set(floor) for floor in floors] == list(FROM_THE_TOP)


@pytest.mark.parametrize("path", modules("history", "rl"), ids=lambda path: path.relative_to(ROOT).as_posix())
def test_history_and_rl_know_nothing_of_the_matcher(path):
    ours = {top(name) for name in imported(path)} & {"acep_approx", "history", "rl"}
    package = path.relative_to(ROOT).parts[0]
    assert ours <= {"rl": {"rl", "history"}, "history": {"history"}}[package]


def test_no_files_import_each_other_in_a_circle():
    """Also none that are for type checkers only, or inside functions; the faces of packages name what is below them."""
    names = {}
    for path in modules(*PACKAGES):
        if path.name != "__init__.py":
            names[".".join(path.relative_to(ROOT).with_suffix("").parts)] = path
    graph = {name: {m for m in imported(path) if m in names} - {name} for name, path in names.items()}
    TopologicalSorter(graph).prepare()  # raises CycleError with the circle


def test_no_module_is_named_in_a_string():
    """An import by a name in a string would hide a circle; only public names of packages are loaded that way."""
    for path in modules(*PACKAGES):
        hidden = source(path).called & {"import_module", "__import__"}
        # siblings looks whose packages they are
        assert not hidden or path.relative_to(ROOT).as_posix() in {"history/lazy.py", "acep_approx/siblings.py"}, path


def test_only_two_modules_import_numba():
    users = {path.relative_to(ROOT).as_posix() for path in modules(*PACKAGES) if "numba" in map(top, imported(path))}
    assert users == {"acep_approx/jit/compiling.py", "acep_approx/jit/helpers.py"}


def test_no_test_imports_another():
    """Helpers are in files of their own."""
    for path in (ROOT / "tests").rglob("*.py"):
        if re.search(r"tests\.test_|from tests import", path.read_text(encoding="utf-8")):  # to parse all takes seconds
            assert not [name for name in imported(path) if name.startswith("tests.test_")], path


def test_the_package_imports_no_tests_and_no_experiments():
    for path in modules(*PACKAGES):
        assert not {top(name) for name in imported(path)} & {"tests", "experiments"}, path


def test_no_other_files_lie_about() -> None:
    """What somebody wrote while trying things out was committed twice."""
    if shutil.which("git") is None or not (ROOT / ".git").exists():
        pytest.skip("this is no checkout of git")
    done = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True)
    texts = {"CHANGELOG.md", "CONTRIBUTING.md", "LICENSE", "README.md"}
    known = texts | {".gitignore", ".mkdocs.yml", ".pre-commit-config.yaml", "pyproject.toml"}
    assert {name for name in done.stdout.split() if "/" not in name} == known
