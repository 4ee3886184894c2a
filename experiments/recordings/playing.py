"""Plays cases: each line in a process of its own that is forked from one which has loaded everything."""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import signal
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from experiments.recordings.case import Case
from experiments.recordings.files import changed, shown, snapshot
from experiments.recordings.stable import stable

PATIENCE = 120
"""Seconds after which a line is broken off."""
SERVED = "metrics.txt"
"""Where the numbers for Prometheus at the end of a run are put."""


class Player:
    """Plays cases for one tree.

    Parameters
    ----------
    tree : Path
        Whose ``acep_approx`` runs.
    world : Path
        The files that each case finds.
    forks : bool, default True
        Each line in a process of its own; else in this one, as a session of Spark wants it.
    """

    def __init__(self, tree: Path, world: Path, *, forks: bool = True) -> None:
        self._tree, self._world, self._forks = tree, world, forks

    def play(self, case: Case) -> str:
        """What a case prints and writes, as one text."""
        home = Path(tempfile.mkdtemp(prefix="recorded-")).resolve()
        folder = home / "here"
        shutil.copytree(self._world, folder)
        places = {str(folder): "HERE", str(home): "HOME", str(self._tree): "TREE"}
        told = []
        try:
            for line in case.lines:
                before = snapshot(folder)
                told += [f"$ {line}", *self._line(line, folder, home)]
                for name in changed(before, snapshot(folder)):
                    told += [f"=== {name}", shown(folder, name)]
        finally:
            shutil.rmtree(home, ignore_errors=True)
        text = stable("\n".join(told), places)
        return _sorted_parts(text) if not self._forks else text

    def _line(self, line: str, folder: Path, home: Path) -> list[str]:
        """Play one line; its exit code and what it said."""
        if line.startswith("@call "):
            return self._run(lambda: call(line.removeprefix("@call ")), b"", folder, home)
        if line.startswith("@"):
            edit(line, folder)
            return []
        words, _, given = line.partition(" < ")
        data = (folder / given.strip()).read_bytes() if given else b""
        return self._run(lambda: command(shlex.split(words)), data, folder, home)

    def _run(self, work: Callable[[], int], data: bytes, folder: Path, home: Path) -> list[str]:
        out, err = home / "stdout", home / "stderr"
        code = (forked if self._forks else here)(work, data, folder, (out, err))
        texts = [path.read_text(encoding="utf-8", errors="backslashreplace") for path in (out, err)]
        if not self._forks:
            texts[1] = "\n".join(line for line in texts[1].splitlines() if not _of_spark(line))
        return [f"exit code {code}", "--- stdout", texts[0], "--- stderr", texts[1]]


def _of_spark(line: str) -> bool:
    """Whether Spark says this, not we."""
    return any(word in line for word in (" WARN ", " INFO ", "log4j", "setLogLevel", "incubator", "Picked up"))


def _sorted_parts(text: str) -> str:
    """Spark's files without their names, and rows without their order."""
    blocks = text.split("\n=== ")
    rows = []
    for block in blocks[1:]:
        name, _, content = block.partition("\n")
        if "_spark_metadata" in name or name.endswith((".crc", "_SUCCESS")):
            continue
        folder = name.rpartition("/")[0] if "part-" in name else name
        rows += [f"{folder}: {line}" for line in content.splitlines()]
    return "\n".join([*sorted(blocks[0].splitlines()), *sorted(rows)])


def edit(line: str, folder: Path) -> None:
    """Change files as a case asks."""
    verb, name, *rest = line[1:].split(" ", 2)
    path = folder / name
    if verb == "append":
        with path.open("a") as file:
            file.write(rest[0].strip().replace("\\n", "\n"))
    elif verb == "copy":
        shutil.copyfile(path, folder / rest[0].strip())
    elif verb == "remove":
        path.unlink()
    else:
        raise ValueError(line)


def command(words: Sequence[str]) -> int:
    """Be ``acep`` with these words; its exit code."""
    from acep_approx.cli.main import main

    sys.argv = ["acep", *words]
    with numbers_kept() if "--metrics-port" in words else contextlib.nullcontext():
        return ended(main)


@contextlib.contextmanager
def numbers_kept() -> Iterator[None]:
    """Write the numbers for Prometheus that a run has at its end to a file."""
    import prometheus_client

    registries = []

    class Kept(prometheus_client.CollectorRegistry):
        def __init__(self, *args: Any, **more: Any) -> None:
            super().__init__(*args, **more)
            registries.append(self)

    prometheus_client.CollectorRegistry = Kept  # type: ignore[misc]
    yield
    lines = [line for one in registries for line in prometheus_client.generate_latest(one).decode().splitlines()]
    Path(SERVED).write_text("\n".join(line for line in lines if "_created" not in line) + "\n")


def ended(main: Callable[[], object]) -> int:
    """Run something to its end; the exit code that a process would have."""
    try:
        main()
    except SystemExit as end:
        if isinstance(end.code, str):
            print(end.code, file=sys.stderr)
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    else:
        code = 0
    sys.stdout.flush()
    sys.stderr.flush()
    return code


def call(name: str) -> int:
    """Call a function of ``calls``, which prints."""
    from experiments.recordings.calls import CALLS

    return ended(CALLS[name])


def piped(data: bytes) -> int:
    """The reading end of a pipe that holds some bytes."""
    reading, writing = os.pipe()
    if len(data) < 60_000:
        os.write(writing, data)
        os.close(writing)
        return reading

    def feed() -> None:
        with contextlib.suppress(BrokenPipeError), os.fdopen(writing, "wb") as file:
            file.write(data)

    threading.Thread(target=feed, daemon=True).start()
    return reading


def forked(work: Callable[[], int], data: bytes, folder: Path, places: tuple[Path, Path]) -> int:
    """Do some work in a process that is forked from this one, with files in the place of its streams."""
    feeder = _feeder(data)
    if pid := os.fork():
        os.close(feeder)
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    code = 99
    try:
        os.setpgid(0, 0)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.alarm(PATIENCE)
        os.chdir(folder)
        os.dup2(feeder, 0)
        for number, place in enumerate(places, start=1):
            os.dup2(os.open(place, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
        sys.stdin = open(0, closefd=False)  # noqa: SIM115
        sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
        sys.stderr = open(2, "w", encoding="utf-8", closefd=False, buffering=1)  # noqa: SIM115
        code = work()
    except BaseException as error:  # noqa: BLE001 - recorded as it is
        print(crashed(error), file=sys.stderr)
    finally:
        with contextlib.suppress(Exception):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


def crashed(error: BaseException) -> str:
    """How an error is recorded that nobody has caught: without the lines of the sources that it passed."""
    return f"CRASH {type(error).__name__}: {error}"


def _feeder(data: bytes) -> int:
    """What a forked process reads: a pipe, or where it is too large for one a pipe that another process feeds."""
    if len(data) < 60_000:
        return piped(data)
    reading, writing = os.pipe()
    if os.fork():
        os.close(writing)
        return reading
    os.close(reading)
    with contextlib.suppress(BrokenPipeError), os.fdopen(writing, "wb") as file:
        file.write(data)
    os._exit(0)


def here(work: Callable[[], int], data: bytes, folder: Path, places: tuple[Path, Path]) -> int:
    """Do some work in this process, with files in the place of its streams."""
    kept = [os.dup(number) for number in range(3)]
    streams, place = (sys.stdout, sys.stderr), Path.cwd()
    os.dup2(piped(data), 0)
    for number, target in enumerate(places, start=1):
        os.dup2(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
    sys.stdout, sys.stderr = open(1, "w", closefd=False), open(2, "w", closefd=False)  # noqa: SIM115
    os.chdir(folder)
    try:
        return work()
    except Exception as error:  # noqa: BLE001 - recorded as it is
        print(crashed(error), file=sys.stderr)
        return 99
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        sys.stdout, sys.stderr = streams
        os.chdir(place)
        for number, old in enumerate(kept):
            os.dup2(old, number)
            os.close(old)
