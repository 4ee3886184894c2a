"""Makes a recording: all cases, played in some processes."""

from __future__ import annotations

import gc
import json
import multiprocessing
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import cache, partial
from importlib import import_module
from pathlib import Path

from experiments.recordings import worlds
from experiments.recordings.case import Case
from experiments.recordings.playing import Player, command, here

ROOT = Path(__file__).resolve().parent.parent.parent
SETTINGS = {
    "ACEP_JIT": "1", "COLUMNS": "140", "LINES": "40", "NO_COLOR": "1", "TZ": "UTC", "PYTHONHASHSEED": "0",
    "TERM": "dumb", "LC_ALL": "C.UTF-8", "OMP_NUM_THREADS": "1",
}  # fmt: skip
LOADED = ("pandas", "pydantic", "rich.table", "river.drift", "sklearn.ensemble", "typer._adapters", "prometheus_client")
"""What only some commands load, up to a second each time."""
SPARK = "spark/"


class _Worker:
    """What a process of the pool keeps."""

    player: Player


def begin(tree: Path, world: Path, *, forks: bool = True) -> None:
    """Make this process one that plays cases of a tree: load all of it, and what cases would load again and again.

    ``experiments`` is ours, ``acep_approx`` that of the tree.
    """
    sys.path.insert(0, str(tree))
    import acep_approx

    assert Path(acep_approx.__file__).is_relative_to(tree), acep_approx.__file__
    for name in LOADED:
        try:
            import_module(name)
        except ImportError:
            continue
    _Worker.player = Player(tree, world, forks=forks)
    if forks:
        from experiments.recordings.calls import warm

        warm()
        warm_commands()
        gc.freeze()  # what is shared is not copied to look for garbage in it


def warm_commands() -> None:
    """Make the command once, as Typer would for each run, and load what commands load on first use."""
    import typer.main

    from acep_approx.cli.main import app

    typer.main.get_command = cache(typer.main.get_command)
    typer.main.get_command(app)
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        (home / "e.csv").write_text("ts,type\n1,A\n2,B\n", encoding="utf-8")
        for words in (["check", "AB WITHIN 5"], ["explain", "AB WITHIN 5"], ["run", "AB WITHIN 5", "e.csv"]):
            here(partial(command, words), b"", home, (home / "out", home / "err"))


def _played(case: Case) -> tuple[str, float]:
    started = time.perf_counter()
    return _Worker.player.play(case), time.perf_counter() - started


def _prepared(world: Path) -> None:
    """Write the world, and the histories that many cases read."""
    worlds.make(world)
    maker = Player(Path("/"), world)
    for line in worlds.TRAINED:
        told = maker._line(line, world, world.parent)
        assert told[0] == "exit code 0", told


def record(folder: Path, tree: Path, cases: Sequence[Case], processes: int) -> dict[str, float]:
    """Play cases of a tree, and write what each printed and wrote; returns how many seconds each took."""
    os.environ.update(SETTINGS)
    os.environ["PYTHONPATH"] = os.pathsep.join([str(tree), str(ROOT)])
    tree = tree.resolve()
    home = Path(tempfile.mkdtemp(prefix="recording-")).resolve()
    world = home / "world"
    context = multiprocessing.get_context("spawn")
    seconds: dict[str, float] = {}
    try:
        with ProcessPoolExecutor(1, context, begin, (tree, world)) as pool:
            pool.submit(_prepared, world).result()
        on_spark = [case for case in cases if case.name.startswith(SPARK)]
        here = [case for case in cases if not case.name.startswith(SPARK)]
        for some, number, starting in ((here, processes, begin), (on_spark, 1, begin_spark)):
            if some:
                with ProcessPoolExecutor(number, context, starting, (tree, world)) as pool:
                    waiting = {pool.submit(_played, case): case for case in some}
                    for done in as_completed(waiting):
                        text, seconds[waiting[done].name] = done.result()
                        _write(folder / f"{waiting[done].name}.txt", text)
    finally:
        shutil.rmtree(home, ignore_errors=True)
    (folder / "recording.json").write_text(json.dumps({"tree": str(tree), "cases": len(cases)}, indent=1))
    return seconds


def _write(place: Path, text: str) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(text, encoding="utf-8")


def begin_spark(tree: Path, world: Path) -> None:
    """Make this process the one that plays cases on Spark, in one session."""
    begin(tree, world, forks=False)
    from acep_approx.spark import session

    session("local[2]", **{"spark.driver.memory": "1g", "spark.ui.enabled": "false"})
