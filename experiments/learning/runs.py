"""Runs inside a budget, with a history, learning, or both: what they find of the exact answer, and what they take.

A budget is a tenth of the run-steps that the exact run does after lossless merging, with an audit of a twentieth of it:
the same for all runs. All that a run does is inside it, the cohort of one that learns as well.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from acep_approx import Budget, HistoryGraph, Matcher, Query
from acep_approx.engines.progress import RunProgress
from acep_approx.engines.runs.tables import RunTables
from acep_approx.events import EventBatch
from acep_approx.kernels.runs.scores import AUDIT_TOKENS, ON_PASSES, PASS_TOKENS
from acep_approx.shedding.load import Load
from acep_approx.shedding.shedder import Shedder
from experiments.shedding import metrics as shed_metrics

Bools = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.int64]

PERCENT = 10
BATCH = 1 << 16
"""Events that are pushed at a time."""


@dataclass(frozen=True)
class Answer:
    """The match points of an exact run, and what it took.

    Attributes
    ----------
    rows, ticks : int64 arrays, shape (points,)
        By row.
    window : int
        In ticks.
    steps : float
        Run-steps.
    """

    rows: Ints
    ticks: Ints
    window: int
    steps: float


@dataclass(frozen=True)
class Found:
    """What a run with a budget found in the last part of its stream, and what that took.

    Attributes
    ----------
    rows : int64 array
        Of match points, counted from the first event of the part.
    work : float
        Run-steps, those of passes and of the cohort as well.
    seconds, learning : float
        CPU time, and that part of it which is learning.
    alarms : int
        Of drift.
    """

    rows: Ints
    work: float
    seconds: float
    learning: float
    alarms: int

    def recall(self, of: Answer, part: Bools) -> float:
        """Share of some of the match points that was found; NaN where there are none."""
        return float(np.isin(of.rows[part], self.rows).mean()) if part.any() else float("nan")


class Clocked(Shedder):
    """Counts the CPU time that learning takes: unlike that of the clock on the wall, other programs do not change it.

    Attributes
    ----------
    learning_cpu : float
        In seconds.
    steps : int
        Run-steps of the run alone.
    """

    learning_cpu = 0.0
    steps = 0

    @property
    def work(self) -> float:
        """Run-steps so far, with those of passes and of the cohort."""
        return self.steps + float(self.arena.on_passes) + self.beside.steps

    def end_piece(self, batch: EventBatch, progress: RunProgress, seconds: float) -> None:
        """Remember the run-steps."""
        super().end_piece(batch, progress, seconds)
        self.steps = progress.steps

    def forget_savings(self) -> None:
        """Give back what was not used: what follows is to have no more than its own share."""
        self.arena.grant(-max(self.arena.left, 0.0) / (1 - ON_PASSES))
        for saved in (PASS_TOKENS, AUDIT_TOKENS):
            self.arena.floats[saved] = min(self.arena.floats[saved], 0.0)
        self._waiting = 0  # events of no interest, that are granted for with the next
        self.beside.quota = min(self.beside.quota, float(self.beside.steps))

    def bind(self, tables: RunTables) -> None:
        """Clock what is learned at the end of each piece."""
        super().bind(tables)
        if self.online is not None:
            self.online.end_piece = self._clocked(self.online.end_piece)  # type: ignore[method-assign]

    def _clocked(self, learn: Callable[..., None]) -> Callable[..., None]:
        def clocked(*given: Any, **more: Any) -> None:
            begun = time.process_time()
            learn(*given, **more)
            self.learning_cpu += time.process_time() - begun

        return clocked


def answer(query: Query, events: pa.Table, unit: str | None) -> Answer:
    """The exact answer.

    Parameters
    ----------
    query : Query
        One that the runs engine answers.
    events : pyarrow.Table
    unit : str or None
        Of the time column.
    """
    found = shed_metrics.exact(Matcher(query.plan, unit=unit), events)
    rows, ticks, _ = shed_metrics.points(found.answer)
    return Answer(rows, ticks, found.window, found.steps)


def offline(query: Query, events: pa.Table, unit: str | None) -> HistoryGraph:
    """A history of past events."""
    return HistoryGraph(query).fit(events, unit=unit)


def run(
    query: Query, parts: Sequence[pa.Table], unit: str | None, full_work: float, *, seed: int = 0,
    history: HistoryGraph | None = None, learns: bool = False,
) -> Found:  # fmt: skip
    """Match the parts of a stream, one after the other, with a tenth of the work.

    Parameters
    ----------
    query : Query
    parts : sequence of pyarrow.Table
        Of the last it is said what was found. What was saved up before it is lost.
    unit : str or None
        Of the time column.
    full_work : float
        Run-steps per event of the exact run.
    seed : int, default 0
        Of coins.
    history : HistoryGraph, optional
    learns : bool, default False
    """
    load = Load(Budget.parse(f"{PERCENT}%"), history, learns=learns, full_work=full_work, seed=seed)
    shedder = Clocked(query.plan, load)
    matcher = Matcher(query.plan, unit=unit, shedding=shedder)
    before = seconds = learning = 0.0
    for number, part in enumerate(parts):
        if number:
            shedder.forget_savings()
        before, learning, begun = shedder.work, shedder.learning_cpu, time.process_time()
        for first in range(0, len(part), BATCH):
            matcher.push(part.slice(first, BATCH))
        seconds = time.process_time() - begun
    matcher.finish()
    shedder.finish()
    work = shedder.work - before
    assert work <= PERCENT / 100 * full_work * len(parts[-1]) * (1 + 1e-9) + 1, "the bound was passed"
    rows = shedder.metrics.points.row - sum(map(len, parts[:-1]))
    alarms = len(shedder.online.learner.alarms) if shedder.online else 0
    return Found(rows, work, seconds, shedder.learning_cpu - learning, alarms)
