"""Kernels that run as Python until another process has compiled them; how that process begins and ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from acep_approx.jit import background, cache, compiler, kinds, tiers
from acep_approx.jit.kernel import Kernel
from acep_approx.kernels import ahead
from acep_approx.kernels.group import classify
from acep_approx.kernels.runs.lineage import reach
from tests.command_line import acep
from tests.patience import PATIENCE, until
from tests.processes import ROOT, python

MATCH = """
from acep_approx import compile_query
query = compile_query("PATTERN SEQ(A a, B b) WHERE [key] AND b.x > a.x WITHIN 5 ERRORS 1")
print(len(query.match([{"ts": i, "type": "AB"[i % 2], "key": 1, "x": i} for i in range(8)])))
"""
END = "from acep_approx.jit import background; background.close(is_interrupted=True)"
ORDER = """
import os, signal, sys, time
import numpy as np
from acep_approx.jit import background, tiers
from acep_approx.kernels.group import order_by

tiers.LONG = 1e9  # however busy the machine is, nothing is said of it
def in_order():
    order = np.zeros(5, np.int64)
    order_by(np.array([3, 1, 0, 1, 2]), np.arange(5), np.zeros(6, np.int64), order)
    return order.tolist()
"""
"""One small kernel, which is compiled in an instant."""
UNTIL_COMPILED = "while not order_by.kinds: assert in_order() == [2, 1, 3, 4, 0]; time.sleep(0.01)\n"
LARGE = """
from acep_approx.kernels.ahead import all_kernels
large, args = next((kernel, args) for kernel, args in all_kernels() if kernel.__module__.endswith("runs.advance"))
assert tiers.machine_code(large, args) is None
print(background._compiler.process.pid, flush=True)
"""
"""Asks for a kernel that takes long."""


def is_running(process: int) -> bool:
    """Whether there is such a process, which has not ended."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.fixture
def process() -> Iterator[tiers._Process]:
    """What a process knows at first, by default."""
    before, tiers._process = tiers._process, tiers._Process()
    tiers._process.mode = ""
    tiers._say.cache_clear()
    yield tiers._process
    tiers._process = before


@pytest.fixture
def no_background(monkeypatch: pytest.MonkeyPatch) -> None:
    """No process can be started."""
    monkeypatch.setattr(background, "compiles", lambda *_: False)


def reached() -> tuple[Any, ...]:
    """Arguments of a small kernel."""
    return tuple(np.zeros(size, np.int64) for size in (1, 1, 6, 6, 1))


# --- which tier ---------------------------------------------------------------------------------------------------


def test_a_first_query_is_answered_without_numba_and_without_a_word(tmp_path: Path) -> None:
    code = MATCH + "import sys; print('numba' in sys.modules, 'llvmlite' in sys.modules)\n" + END
    done = python("-c", code, ACEP_JIT="", NUMBA_CACHE_DIR=str(tmp_path))
    assert (done.stdout.split(), done.stderr) == (["17", "False", "False"], "")


def test_a_small_query_does_not_load_what_is_there(tmp_path: Path) -> None:
    """To load it takes longer than to run it."""
    code = ORDER + "tiers.load_at_once()\n" + UNTIL_COMPILED
    assert python("-c", code, ACEP_JIT="", NUMBA_CACHE_DIR=str(tmp_path)).returncode == 0
    code = ORDER + "in_order(); print('numba' in sys.modules); tiers.load_at_once(); time.sleep(0.1); in_order()\n"
    done = python("-c", code + "print(order_by.kinds != set())", ACEP_JIT="", NUMBA_CACHE_DIR=str(tmp_path))
    assert done.stdout.split() == ["False", "True"], done.stderr


def test_a_run_takes_machine_code_when_it_appears(tmp_path: Path) -> None:
    code = ORDER + "tiers.load_at_once()\nassert order_by.is_interpreted\n" + UNTIL_COMPILED
    done = python("-c", code + "print(in_order(), order_by.is_interpreted)", ACEP_JIT="", NUMBA_CACHE_DIR=str(tmp_path))
    assert (done.stdout, done.stderr) == ("[2, 1, 3, 4, 0] False\n", "")


@pytest.mark.parametrize("mode", ["0", "1"])
def test_by_the_environment_nothing_or_all_is_compiled_first(mode: str, tmp_path: Path) -> None:
    code = ORDER + "in_order(); print(order_by.made is not None, background._compiler.process, order_by.is_interpreted)"
    done = python("-c", code, ACEP_JIT=mode, NUMBA_CACHE_DIR=str(tmp_path))
    assert done.stdout.split() == [str(mode == "1"), "None", str(mode == "0")]


def test_another_word_in_the_environment_is_not_taken_for_one_of_them(tmp_path: Path) -> None:
    done = python("-c", ORDER + "print(in_order())", ACEP_JIT="yes", NUMBA_CACHE_DIR=str(tmp_path))
    assert done.stdout == "[2, 1, 3, 4, 0]\n"
    assert done.stderr == "acep: ACEP_JIT is 0 (never compile) or 1 (compile first), not 'yes': it is not looked at\n"


def test_a_budget_of_time_waits_for_machine_code(process: tiers._Process) -> None:
    """Interpreted it would shed nearly everything; a budget of run-steps is the same in both tiers."""
    from acep_approx import compile_query

    query = compile_query("PATTERN SEQ(A a, B b) WHERE b.x > a.x WITHIN 5")
    query.matcher(budget="5 steps/event")
    assert process.mode == ""
    query.matcher(budget="1000 events/s")
    assert process.mode == "1"


def test_kernels_of_other_kinds_of_arguments_are_compiled_for_them(process: tiers._Process) -> None:
    process.mode = "1"
    args = reached()
    reach(*args)
    known = set(reach.kinds)
    args[0].flags.writeable = False
    reach(*args)
    assert len(reach.kinds - known) <= 1
    assert kinds.kind_of(args) in reach.kinds
    reach.kinds &= known


# --- where no other process can compile ---------------------------------------------------------------------------


def unknown(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A small kernel that nothing is known of, and that is nowhere kept."""
    from acep_approx.jit.kernel import block_kernel

    made = block_kernel(reach.function)
    monkeypatch.setattr(tiers, "is_kept", lambda *_: False)
    return made


@pytest.mark.usefixtures("no_background")
def test_a_kernel_that_has_taken_long_is_compiled_here(process: tiers._Process, monkeypatch, caplog) -> None:
    kernel = unknown(monkeypatch)
    kernel(*reached())
    assert kernel.made is None
    kernel.seconds = tiers.COMPILING + 1
    process.next_look.clear()
    monkeypatch.setattr(tiers, "directory", lambda: None)
    kernel(*reached())
    assert kernel.made is not None
    assert "they cannot be kept" in caplog.text or not caplog.records  # as it was loaded from where tests keep it


@pytest.mark.usefixtures("no_background")
def test_a_kernel_that_cannot_be_compiled_stays_interpreted(process: tiers._Process, monkeypatch, caplog) -> None:
    def fails(*_: Any) -> None:
        raise RuntimeError("no LLVM")

    kernel = unknown(monkeypatch)
    monkeypatch.setattr(tiers, "made_now", fails)
    kernel.seconds = tiers.COMPILING + 1
    for _ in range(3):
        kernel(*reached())
        process.next_look = {one: min(when, 0.0) if when < 1e12 else when for one, when in process.next_look.items()}
    assert [record.getMessage() for record in caplog.records] == [
        "reach cannot be compiled, and this run is slower: no LLVM"
    ]


@pytest.mark.parametrize("why", ["frozen", "no interpreter", "no locks", "no folder"])
def test_without_a_process_the_run_goes_on(process: tiers._Process, why: str, monkeypatch) -> None:
    """In a program that is packed with its interpreter, embedded, on Windows, or where nothing can be kept."""
    kernel = unknown(monkeypatch)
    if why == "frozen":
        monkeypatch.setattr(sys, "frozen", True, raising=False)
    elif why == "no interpreter":
        monkeypatch.setattr(sys, "executable", None)
    elif why == "no locks":
        monkeypatch.setattr(cache, "fcntl", None)
    else:
        monkeypatch.setattr(tiers, "directory", lambda: None)
    kernel(*reached())
    assert kernel.made is None
    assert background._compiler.process is None


@pytest.mark.parametrize("cores", [1, 2])
def test_a_long_run_says_once_what_it_waits_for(process: tiers._Process, cores: int, monkeypatch, caplog) -> None:
    """On a single core it does wait: the compiler would get nothing of it."""
    kernel, looks = unknown(monkeypatch), []
    monkeypatch.setattr(tiers, "cores", lambda: cores)
    monkeypatch.setattr(background, "compiles", lambda *_: True)
    monkeypatch.setattr(background, "is_at_work", lambda: looks.append(1) or len(looks) < 3)
    for _ in range(2):
        process.next_look.clear()
        process.seconds = tiers.LONG + 1
        kernel(*reached())
    said = tiers.WAITING if cores == 1 else tiers.IN_THE_MEANTIME
    assert [record.getMessage() for record in caplog.records] == [said]
    assert len(looks) == (4 if cores == 1 else 0)


def test_what_another_user_has_compiled_is_read(tmp_path: Path, monkeypatch) -> None:
    """An image is filled by root; who runs it may not write there."""
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    folder = cache.directory.__wrapped__()
    assert folder is not None
    assert folder.is_relative_to(tmp_path)
    monkeypatch.setattr(cache, "directory", lambda: folder)
    assert cache.folders.__wrapped__() == (folder,), "it was chosen, and can be written"
    of_mine = tmp_path.parent / "mine"
    monkeypatch.setattr(cache, "directory", lambda: of_mine)
    found = cache.folders.__wrapped__()
    assert found[:2] == (of_mine, folder)
    (folder / f"{cache.stem(reach, 'some kind')}-machine.code").touch()
    monkeypatch.setattr(cache, "folders", lambda: found)
    assert cache.is_kept(reach, "some kind")
    assert not cache.is_kept(reach, "another kind")


# --- the process that compiles ------------------------------------------------------------------------------------


def started(words: list[str], folder: Path) -> subprocess.Popen[str]:
    """A run of Python, with a cache of its own."""
    environment = {**os.environ, "ACEP_JIT": "", "NUMBA_CACHE_DIR": str(folder), "PYTHONPATH": str(ROOT)}
    command = [sys.executable, *words]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, env=environment, cwd=ROOT, stdin=pipe, stdout=pipe, stderr=pipe, text=True)


def compiling_for(process: int) -> int | None:
    """The process that compiles for another one."""
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            if int(stat.read_text().rpartition(")")[2].split()[1]) == process:
                return int(stat.parent.name)
    return None


@pytest.mark.parametrize("how", ["script", "acep"])
def test_an_interrupt_ends_both(how: str, tmp_path: Path) -> None:
    """Of this process alone, as by a program that supervises it: a terminal tells both."""
    words = ["-c", f"{ORDER}{LARGE}time.sleep(300)"]
    if how == "acep":
        (tmp_path / "events.csv").write_text("ts,type,x\n1,a,1\n2,b,2\n")
        query = "PATTERN SEQ(a a, b b) WHERE b.x > a.x WITHIN 5"
        words = ["-m", "acep_approx.cli.main", "run", query, str(tmp_path / "events.csv"), "--follow"]
    with started(words, tmp_path) as run:
        assert run.stdout is not None
        run.stdout.readline()
        compiling = compiling_for(run.pid)
        assert compiling is not None
        run.send_signal(signal.SIGINT)
        run.wait(PATIENCE)
    until(lambda: not is_running(compiling))


def test_it_goes_on_at_the_lowest_priority_when_the_run_has_ended(tmp_path: Path) -> None:
    with started(["-c", ORDER + LARGE], tmp_path) as run:
        out, err = run.communicate(timeout=PATIENCE)
    compiling = int(out)
    try:
        assert (run.returncode, err) == (0, "")
        until(lambda: os.getpriority(os.PRIO_PROCESS, compiling) == compiler.LOWEST)
    finally:
        os.kill(compiling, signal.SIGKILL)


def test_it_has_two_minutes_then(tmp_path: Path) -> None:
    code = (
        "import sys, time; from acep_approx.jit import compiler; compiler.AFTERWARDS = 0.1\n"
        "class Slow:\n    def prepare(self, args): time.sleep(300)\n"
        "sys.modules['slow'] = sys.modules['__main__']; compiler.main()"
    )
    request = b"cslow\nSlow\n(tR)\x86."  # a kernel that takes long, and its arguments
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, input=request, capture_output=True, check=False, timeout=PATIENCE
    )
    assert (done.returncode, done.stdout, done.stderr) == (1, b"", b"")


def test_there_is_one_on_a_machine(tmp_path: Path) -> None:
    """Others go on interpreted, and do not start one."""
    with started(["-c", f"{ORDER}{LARGE}sys.stdin.read()"], tmp_path) as first:
        assert first.stdout is not None
        compiling = int(first.stdout.readline())
        other = ORDER + "print(in_order(), background._compiler.process)"
        done = python("-c", other, ACEP_JIT="", NUMBA_CACHE_DIR=str(tmp_path))
        assert done.stdout == "[2, 1, 3, 4, 0] None\n", done.stderr
        os.kill(compiling, signal.SIGKILL)
        until(lambda: not is_running(compiling))
        code = ORDER + "tiers.load_at_once()\n" + UNTIL_COMPILED  # what was killed has left no lock behind
        assert python("-c", code, ACEP_JIT="", NUMBA_CACHE_DIR=str(tmp_path)).returncode == 0
        first.communicate("", timeout=PATIENCE)


def test_another_one_takes_the_place_of_one_that_was_killed(tmp_path: Path) -> None:
    kill = "os.kill(background._compiler.process.pid, signal.SIGKILL); background._compiler.process.wait()\n"
    code = f"{ORDER}tiers.load_at_once()\nin_order()\n{kill}{UNTIL_COMPILED}print(in_order())"
    done = python("-c", code, ACEP_JIT="", NUMBA_CACHE_DIR=str(tmp_path))
    assert (done.stdout, done.stderr) == ("[2, 1, 3, 4, 0]\n", "")


def test_processes_that_are_forked_have_none_of_it(tmp_path: Path) -> None:
    """It belongs to who has started it: the fork neither writes to it nor keeps it from its end."""
    code = f"""{ORDER}{LARGE}
child = os.fork()
if child == 0:
    assert background._compiler.process is None
    assert in_order() == [2, 1, 3, 4, 0]
    os._exit(0)
print(os.waitpid(child, 0)[1], background.is_at_work())
background.close(is_interrupted=True)
"""
    done = python("-W", "error", "-c", code, ACEP_JIT="", NUMBA_CACHE_DIR=str(tmp_path))
    assert (done.stdout.splitlines()[1:], done.stderr) == (["0 True"], "")


def test_threads_change_tiers_together(tmp_path: Path) -> None:
    code = f"""{ORDER}
from threading import Thread
tiers.load_at_once()
def run():
    {UNTIL_COMPILED}
threads = [Thread(target=run) for _ in range(4)]
for one in threads: one.start()
for one in threads: one.join()
print(in_order(), order_by.is_interpreted)
"""
    done = python("-c", code, ACEP_JIT="", NUMBA_CACHE_DIR=str(tmp_path))
    assert (done.stdout, done.stderr) == ("[2, 1, 3, 4, 0] False\n", "")


# --- all kernels --------------------------------------------------------------------------------------------------


def test_each_kernel_has_a_file_of_its_own_for_each_kind_of_arguments() -> None:
    all_of_them = list(ahead.all_kernels())
    made = set()
    for path in (ROOT / "acep_approx" / "kernels").rglob("*.py"):
        module = import_module(".".join(path.relative_to(ROOT).with_suffix("").parts))
        made |= {one for one in vars(module).values() if isinstance(one, Kernel)}
    assert {one for one, _ in all_of_them} == made
    stems = {cache.stem(kernel, kinds.kind_of(args)) for kernel, args in all_of_them}
    assert len(stems) == len(all_of_them) > 50


def test_what_differs_to_the_compiler_is_of_different_kinds() -> None:
    numba = pytest.importorskip("numba")
    column = np.arange(6)
    fixed = column.copy()
    fixed.flags.writeable = False
    values: list[Any] = [column, fixed, column[::2], column.reshape(2, 3), column.astype(float), column > 2, 7, 7.5]
    values += [True, None, np.uint64(7), (column, 7), (column, None), reach.interpreted and (fixed,)]
    for one in values:
        for other in values:
            is_alike = numba.typeof(one) == numba.typeof(other)
            assert (kinds.kind_of(one) == kinds.kind_of(other)) == is_alike, (one, other)
        assert kinds.kind_of(kinds.like(one)) == kinds.kind_of(one)
    for (kernel, args), (next_kernel, others) in pairwise(ahead.all_kernels()):
        if kernel is next_kernel:
            assert list(map(numba.typeof, args)) != list(map(numba.typeof, others))


USED = """
from acep_approx.jit import kernel as jit
from acep_approx.jit import kinds
from acep_approx.kernels import ahead
used = set()
choose = jit.Kernel._choose
def noting(kernel, *args):
    used.add((kernel, kinds.kind_of(args)))
    return choose(kernel, *args)
jit.Kernel._choose = noting
from tests import compile_kernels
compile_kernels.main()
known = {(kernel, kinds.kind_of(args)) for kernel, args in ahead.all_kernels()}
print(len(used) > 20, sorted(f"{one.__name__} {kind}" for one, kind in used - known))
"""


def test_all_kinds_that_are_used_are_compiled_ahead_of_time() -> None:
    done = python("-c", USED, ACEP_JIT="0")
    assert done.stdout == "True []\n", done.stderr


def test_acep_warm_compiles_all_there_is(monkeypatch) -> None:
    few = [(kernel, args) for kernel, args in ahead.all_kernels() if kernel in (classify, reach)]
    monkeypatch.setattr(ahead, "all_kernels", lambda: iter(few))
    done = acep("warm")
    assert done.stderr.splitlines()[0].startswith("compiling 2 kernels")
    assert done.stderr.splitlines()[-1] == f"2 kernels in {cache.directory()}"
    assert acep("warm", "-q").stderr == ""


def test_acep_warm_says_why_it_cannot(monkeypatch) -> None:
    monkeypatch.setattr(cache, "directory", lambda: None)
    assert "ACEP-U212" in acep("warm", code=2).stderr
    monkeypatch.setenv("ACEP_JIT", "0")
    assert "ACEP-U211" in acep("warm", code=2).stderr
