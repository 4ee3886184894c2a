"""Kernels compiled and not compiled; where compiled code cannot be kept."""

from __future__ import annotations

import logging
import os
import tempfile
from pathlib import Path

import pytest

from acep_approx.jit import cache, compiling, private
from acep_approx.spark.setup.package import write_package
from tests.cases import FULL, cases
from tests.corpus_cases import NAMED
from tests.marking_pickle import marking_pickle
from tests.processes import ROOT, python

MATCH = """
from acep_approx import compile_query
print(len(compile_query("a(b|c)db WITHIN 5 ERRORS 2").match([{"ts": i, "type": t} for i, t in enumerate("cdaeb")])))
"""

RUNS = """
from tests.checked_index import check_every_index
check_every_index()
from random import Random
from tests.rich_worlds import rich_world
from tests.runs_engine import agrees
for seed in range({worlds}):
    agrees(rich_world(Random(seed), chooses=False))
print(seed + 1)
"""


def each_case_one_way() -> list[str]:
    """Tests of the corpus: each case in one of its ways, listed, counted or detected in turn."""
    ways, calls = ("auto", "runs", "runs without merging"), ("matches", "counts", "points")
    chosen = [(calls[i % 3], ways[i // 3 % 3], name) for i, name in enumerate(NAMED)]
    chosen += [("returns", ways[i % 3], name) for i, name in enumerate(NAMED) if "returns" in NAMED[name]]
    return [f"tests/test_corpus.py::test_{call}[{name}-{way}]" for call, way, name in chosen]


def test_kernels_run_as_plain_python() -> None:
    """The corpus without numba: the same source, for debugging and for line coverage."""
    tests = ["tests/test_corpus.py"] if FULL else each_case_one_way()
    done = python("-m", "pytest", "-q", "-p", "no:cacheprovider", *tests, ACEP_JIT="0")
    assert done.returncode == 0, done.stdout
    assert f"{len(tests)} passed" in done.stdout or FULL


def test_plain_python_does_not_import_numba() -> None:
    """ACEP_JIT=0 is the mode without numba."""
    done = python("-c", MATCH + "import sys; print('numba' in sys.modules)", ACEP_JIT="0")
    assert done.stdout.split() == ["5", "False"], done.stderr


SMALL = """
from acep_approx.jit import cache, compiling
from acep_approx.kernels.runs import selection
import acep_approx, numpy as np
if {changed}:
    cache.sources = lambda: "other sources"
compiled, how = compiling.compiled, ["loaded"]
compiling.compiled = lambda *given: how.append("compiled") or compiled(*given)
selection.contained(*(np.zeros(size, np.int64) for size in (0, 1, 1, 1, 2, 0)), np.zeros(1, np.bool_))
print(how[-1])
"""


def small(*, changed: bool = False, **environment: str) -> tuple[str, str]:
    """Call one small kernel: whether it was loaded or compiled, and what is said on stderr."""
    done = python("-P", "-c", SMALL.format(changed=changed), **environment)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip(), done.stderr


RECORD = """
from typing import NamedTuple
import numpy as np
from acep_approx.jit.kernel import kernel
class {name}(NamedTuple):
    words: np.ndarray
@kernel
def first(record):
    return record.words[0]
print(first({name}(np.array([7]))))
"""


def test_compiled_code_for_records_that_are_gone_is_compiled_anew(tmp_path: Path) -> None:
    """As after an upgrade: the cache names the records that kernels took before."""
    for name in ("Before", "After"):
        (tmp_path / "of_records.py").write_text(RECORD.format(name=name))
        environment = {"NUMBA_CACHE_DIR": str(tmp_path / "cache"), "PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}"}
        done = python("-c", "import of_records", **environment)
        assert done.stdout.split() == ["7"], done.stderr


def test_compiled_code_is_taken_only_for_the_sources_it_was_made_of(tmp_path: Path) -> None:
    """A helper in another file has changed: numba alone would take the old code."""
    runs = [small(changed=c, PYTHONPATH=str(ROOT), NUMBA_CACHE_DIR=str(tmp_path)) for c in (False, False, True)]
    assert [how for how, _ in runs] == ["compiled", "loaded", "compiled"]


def test_it_is_said_when_kernels_are_compiled_and_only_then(tmp_path: Path) -> None:
    runs = [python("-c", MATCH, NUMBA_CACHE_DIR=str(tmp_path)) for _ in range(2)]
    assert [run.stdout.split() for run in runs] == [["5"], ["5"]]
    assert runs[0].stderr.count("acep: kernels are being compiled, once per machine") == runs[0].stderr.count("\n") == 1
    assert runs[1].stderr == ""


@pytest.mark.parametrize("quiet", [True, False])
def test_quiet_commands_do_not_say_it(tmp_path: Path, quiet: bool) -> None:
    (tmp_path / "events.csv").write_text("ts,type\n1,a\n2,b\n")
    command = ["run", "ab WITHIN 5", str(tmp_path / "events.csv"), "--output", "points", *(["-q"] if quiet else [])]
    done = python("-m", "acep_approx.cli.main", *command, NUMBA_CACHE_DIR=str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert ("kernels are being compiled" in done.stderr) is not quiet


def test_a_program_with_a_log_finds_it_there(tmp_path: Path) -> None:
    log = tmp_path / "log"
    script = f"import logging; logging.basicConfig(filename={str(log)!r})\n{SMALL.format(changed=False)}"
    done = python("-c", script, NUMBA_CACHE_DIR=str(tmp_path))
    assert (done.returncode, done.stderr) == (0, "")
    assert log.read_text().startswith("WARNING:acep_approx.kernels:kernels are being compiled")


def test_kernels_in_a_zip_are_kept_wherever_it_lies(tmp_path: Path) -> None:
    """Spark puts the zip elsewhere for each job."""
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        write_package(tmp_path / name / "acep.zip")
    home = {"NUMBA_CACHE_DIR": "", "XDG_CACHE_HOME": str(tmp_path / "caches")}
    chosen = {"NUMBA_CACHE_DIR": str(tmp_path / "chosen"), "XDG_CACHE_HOME": str(tmp_path / "none")}
    for where in (home, chosen):
        runs = [small(PYTHONPATH=str(tmp_path / name / "acep.zip"), **where) for name in ("one", "two")]
        assert [how for how, _ in runs] == ["compiled", "loaded"]
    assert {path.name for path in tmp_path.iterdir()} == {"one", "two", "caches", "chosen"}


class Places:
    """An installation, and the places where compiled code may be kept; none can be written until it is asked for."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.own, self.caches, self.temporary, self.chosen = (
            folder / name for name in ("own", "caches", "temporary", "chosen")
        )
        self.own.mkdir()
        (self.own / "__pycache__").write_text("a file: nothing can be put into it, not even by root")
        for file in (self.caches, self.temporary, self.chosen):
            file.write_text("a file")
        monkeypatch.setattr(cache, "__file__", str(self.own / "cache.py"))
        monkeypatch.setattr(cache.sys, "platform", "linux")
        monkeypatch.setattr(tempfile, "tempdir", str(self.temporary))
        monkeypatch.setenv("XDG_CACHE_HOME", str(self.caches))
        monkeypatch.setenv("NUMBA_CACHE_DIR", str(self.chosen))

    def found(self) -> Path | None:
        """Where it would be kept."""
        return cache.directory.__wrapped__()


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Places:
    return Places(tmp_path, monkeypatch)


def opened(file: Path) -> Path:
    """A directory in place of a file."""
    file.unlink()
    file.mkdir()
    return file


def test_the_first_place_that_can_be_written_is_taken(places: Places) -> None:
    assert places.found() is None
    assert places.found() is None, "looking for a place does not make one"
    of_this_user = opened(places.temporary) / f"acep-approx-{os.getuid()}"
    assert places.found().parent == of_this_user
    assert of_this_user.stat().st_mode & 0o777 == 0o700
    opened(places.caches)
    assert places.found().parent == places.caches / "acep-approx"
    opened(places.own / "__pycache__")
    assert places.found() == places.own / "__pycache__"
    opened(places.chosen)
    assert places.found().parent == places.chosen


def test_code_that_others_could_have_written_is_not_run(places: Places, tmp_path: Path) -> None:
    folder = opened(places.temporary) / f"acep-approx-{os.getuid()}"
    folder.mkdir()
    folder.chmod(0o777)
    assert places.found() is None
    folder.rmdir()
    open_to_all = tmp_path / "open"
    open_to_all.mkdir()
    open_to_all.chmod(0o777)
    folder.symlink_to(open_to_all, target_is_directory=True)
    assert places.found() is None
    open_to_all.chmod(0o755)
    assert places.found() is not None, "a link to what is ours is as good as that"


@pytest.mark.parametrize("mode", [0o775, 0o757, 0o777])
def test_each_place_obeys_one_rule(places: Places, mode: int) -> None:
    """The place that the user has chosen, and the package's own, as those among caches and temporary files."""
    for file in (places.temporary, places.caches, places.own / "__pycache__", places.chosen):
        opened(file)
    for place, following in (
        (places.chosen, places.own / "__pycache__"),
        (places.own / "__pycache__", places.caches / "acep-approx"),
        (places.caches / "acep-approx", places.temporary / f"acep-approx-{os.getuid()}"),
    ):
        place.chmod(mode)
        found = places.found()
        assert found is not None
        assert found.is_relative_to(following), place
        found.mkdir(exist_ok=True)


def test_a_folder_above_that_others_may_write_is_said_with_the_repair(
    places: Places, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """They could put another folder in its place."""
    monkeypatch.setattr(logging.getLogger(), "handlers", [])
    private.LOG.setLevel(logging.NOTSET)  # commands with -q, run in this process, have set it
    private.say_not_used.cache_clear()
    above = tmp_path / "a b"
    below = above / "mine"
    below.mkdir(parents=True)
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(below))
    above.chmod(0o775)
    assert (places.found(), places.found()) == (None, None)
    assert capsys.readouterr().err.splitlines() == [
        ("acep: compiled code is not taken from where others could have put it: "
        f"others may write to {above}; type: chmod go-w '{above}'")
    ]
    assert list(below.iterdir()) == [], "nothing is made in such a place"
    above.chmod(0o1777)
    assert places.found() is not None, "as /tmp is: nobody renames what belongs to somebody else"
    above.chmod(0o755)
    assert places.found() is not None


def test_links_are_followed_as_the_system_does(places: Places, tmp_path: Path) -> None:
    home, other = tmp_path / "home", tmp_path / "other" / "deep"
    home.mkdir()
    other.mkdir(parents=True)
    (home / "relative").symlink_to(Path("..") / "other" / "deep")
    (home / "absolute").symlink_to(other)
    (home / "round").symlink_to("round")
    for name in ("relative", "absolute", "relative/../deep"):
        assert private.private_folder(home / name, 0o700) is None
    with pytest.raises(OSError, match="symbolic links"):
        private.private_folder(home / "round", 0o700)
    other.parent.chmod(0o777)
    for name in ("relative", "absolute", "relative/../deep"):
        fault = private.private_folder(home / name, 0o700)
        assert fault is not None
        assert fault.place == other.parent


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a directory away")
def test_what_belongs_to_somebody_else_is_not_used(places: Places, tmp_path: Path) -> None:
    folder = opened(places.temporary) / f"acep-approx-{os.getuid()}"
    folder.mkdir(mode=0o700)
    os.chown(folder, 1234, 1234)
    assert places.found() is None
    os.chown(folder, 0, 0)
    assert places.found() is not None
    link = tmp_path / "link"
    link.symlink_to(folder)
    os.chown(link, 1234, 1234, follow_symlinks=False)
    fault = private.private_folder(link, 0o700)
    assert fault is not None
    assert fault.words == f"{link} belongs to user 1234"
    os.chown(places.temporary, 1234, 1234)
    assert places.found() is None, "they could put another folder in its place"


class Result:
    """What numba has compiled, as far as it is kept."""

    def _reduce(self) -> tuple[str]:
        return ("code",)


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that machine code is kept in, and looked for; what numba made of it is what is in a file."""
    folder = tmp_path / "cache"
    folder.mkdir()
    monkeypatch.setattr(compiling, "directory", lambda: folder)
    monkeypatch.setattr(compiling, "folders", lambda: (folder,))
    monkeypatch.setattr(compiling.CompileResult, "_rebuild", lambda _, code: code)
    return folder


def of_kernel() -> compiling._Kept:
    """The file of a kernel."""
    made = compiling._Kept()
    made.stem = "kernel"
    return made


@pytest.mark.parametrize("how", ["group", "others", "link", "owner"])
def test_a_file_that_others_could_have_written_is_not_run(kept: Path, tmp_path: Path, how: str) -> None:
    """The folder may have been open to others before, or a link leads out of it."""
    made, mark = of_kernel(), tmp_path / "mark"
    made.save_overload(None, Result())
    assert made.load_overload(None, None) == "code"
    (file,) = kept.iterdir()
    file.unlink()
    target = tmp_path / "other" if how == "link" else file
    target.write_bytes(marking_pickle(mark))
    if how == "link":
        file.symlink_to(target)
    elif how == "owner":
        if os.getuid() != 0:
            pytest.skip("only root can give a file away")
        os.chown(file, 1234, 1234)
    else:
        file.chmod(0o664 if how == "group" else 0o646)
    assert made.load_overload(None, None) is None
    assert not mark.exists()
    made.save_overload(None, Result())
    assert made.load_overload(None, None) == "code", "it is compiled, and takes the place of what was there"


@pytest.mark.parametrize("content", [b"", b"\x80", b"no pickle", b"(lp0\n", b"cnumba.gone\nRecord\n."])
def test_a_damaged_file_is_as_good_as_none(kept: Path, content: bytes) -> None:
    made = of_kernel()
    made.save_overload(None, Result())
    (file,) = kept.iterdir()
    file.write_bytes(content)
    assert made.load_overload(None, None) is None


def test_what_is_kept_under_any_umask_is_used(kept: Path, tmp_path: Path) -> None:
    before, made = os.umask(0), of_kernel()
    try:
        assert private.private_folder(tmp_path / "a" / "b", 0o777) is None
        made.save_overload(None, Result())
    finally:
        os.umask(before)
    assert private.private_folder(tmp_path / "a" / "b", 0o777) is None
    assert made.load_overload(None, None) == "code"


def test_without_a_home_there_are_temporary_files(places: Places, monkeypatch: pytest.MonkeyPatch) -> None:
    opened(places.temporary)
    monkeypatch.delenv("XDG_CACHE_HOME")

    def no_home(_: Path) -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "expanduser", no_home)
    assert places.found().parent.parent == places.temporary


NOWHERE = """
from acep_approx.jit import cache, compiling, tiers
cache.directory.cache_clear()
cache.directory = compiling.directory = tiers.directory = lambda: None
"""


def test_compiled_code_that_cannot_be_kept(tmp_path: Path) -> None:
    """No place to write to (a read-only container without a home): compiled by each process, and said so."""
    runs = [python("-c", NOWHERE + SMALL.format(changed=False), NUMBA_CACHE_DIR=str(tmp_path)) for _ in range(2)]
    assert [run.stdout.split() for run in runs] == [["compiled"]] * 2, runs
    assert all("each process must do so" in run.stderr for run in runs)
    assert list(tmp_path.iterdir()) == []


def test_the_runs_engine_as_plain_python() -> None:
    """Against brute force without numba, where an index out of range is an error and nothing wraps around."""
    worlds = cases(60)
    warnings = ("-W", "error", "-W", "ignore:no event has the type")
    done = python(*warnings, "-c", RUNS.format(worlds=worlds), ACEP_JIT="0")
    assert done.stdout.split() == [str(worlds)], done.stderr
