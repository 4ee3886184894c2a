"""What is promised of the files that the driver of a streaming job writes, whenever it was killed."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from acep_approx import HistoryGraph
from acep_approx.learning.learner import LEARNER as LEARNED
from acep_approx.learning.online import LEARNER
from acep_approx.planning.compiled import CompiledQuery
from acep_approx.spark.streaming.engine_learning import BEGAN
from acep_approx.training import history_graph
from acep_approx.training.history_graph import newest
from history.files import read_json
from history.store import is_history
from history.versions import LATEST


def check_control(control: Path, damaged: Mapping[Path, bytes]) -> None:
    """What the driver tells the workers, and itself, is whole, or not there; but for what a disk has damaged."""
    for name in ("weights.json", "shares.json", BEGAN, LEARNER):
        file = control / name
        if not file.exists() or file.read_bytes() == damaged.get(file):
            continue
        if name == LEARNER:
            LEARNED.unpack(file.read_bytes())
        else:
            read_json(file)


def check_history(home: Path, query: CompiledQuery) -> None:
    """The version that is pointed to can be read, and a worker that is new finds one as soon as there is any."""
    if (home / LATEST).exists():
        HistoryGraph.load(home, query)
    if is_history(home):
        held, history_graph._held = history_graph._held, {}
        try:
            newest(home, query)
        finally:
            history_graph._held = held
