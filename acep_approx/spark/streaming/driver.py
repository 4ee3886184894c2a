"""What the driver does after each micro-batch: it splits the budget anew, and refreshes the history.

It tells the workers by files, each replaced at once: whoever reads sees the one before or the new one. A micro-batch
that is done twice, after a crash, is learned from once.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from acep_approx.learning.online import LEARNER
from acep_approx.shedding.refresher import Refresher
from acep_approx.shedding.splitting import Need, Split, split
from acep_approx.shedding.timing import Overhead, whole_seconds
from acep_approx.training.history_graph import HistoryGraph
from history.errors import HistoryError
from history.files import read_json, replace_file
from history.places import place_of
from history.store import is_history, point_to_newest, prune

if TYPE_CHECKING:
    from pyspark.sql import Row

    from acep_approx.learning.judging import Verdict
    from acep_approx.spark.worker.job import Job
    from acep_approx.spark.worker.spending import Spending

log = logging.getLogger("acep_approx.spark")
BEGAN = "began.json"
KEPT_VERSIONS = 8
FORECASTS = 5
"""Forecasts after which it is said that a budget is too small."""


@dataclass(frozen=True)
class Taken:
    """What the matchers of a micro-batch took: its number, events matched by shard, and seconds of the busiest core."""

    batch: int
    of_shards: tuple[int, ...]
    seconds: float

    @property
    def events(self) -> int:
        """That were matched in all."""
        return sum(self.of_shards)

    @classmethod
    def of(cls, metrics: Sequence[Row], batch: int, shards: int, cores: int) -> Taken:
        """Add up shards: more time than was granted does not count, as the next budget must leave room for it."""
        of_shards = [0] * shards
        for row in metrics:
            of_shards[row.shard] += row.events
        spent = [min(row.spent, row.granted) if row.granted else row.spent for row in metrics] or [0.0]
        return cls(batch, tuple(of_shards), max(*spent, sum(spent) / max(cores, 1)))


@dataclass
class Driver:
    """The driver's side of a budget.

    Parameters
    ----------
    job : Job
    control : Path
        Folder of what it tells the workers, and of what it must know after a restart.
    """

    job: Job
    control: Path
    refresher: Refresher | None = field(init=False, default=None)
    _last: Taken | None = field(init=False, default=None)
    _started: bool = field(init=False, default=False)
    _warned: bool = field(init=False, default=False)

    def __post_init__(self) -> None:
        programs = [part.program for part in self.job.parts]
        self._pin = programs[0].pinning(programs, self.job.setting)
        spending, query = self.job.spending, self.job.query
        if spending is None or query is None or not spending.learns or not self.job.sheds:
            return
        version, began = self._began_with(), None
        if version is not None:
            began = HistoryGraph.load(self._history, query, version=version)
        load = spending.load(spending.budget, began)
        self.refresher = Refresher(query, self.job.plain, self.job.roles, load)
        saved = self.control / LEARNER
        if saved.exists():
            try:
                self.refresher.restore(saved.read_bytes())
            except ValueError:
                log.warning("%s cannot be read: what runs are worth is learned anew", saved)

    def __reduce__(self) -> tuple[type[Driver], tuple[Job, Path]]:
        """In another process it begins as here: what it knows is in its folder."""
        return Driver, (self.job, self.control)

    def begin(self, batch: int) -> None:
        """Fix what changes between micro-batches, before anything of this one is done."""
        if self._pin is not None:
            self._pin(batch)

    @property
    def verdict(self) -> Verdict | None:
        """What learning has come to by now; None where nothing is learned."""
        return self.refresher.verdict if self.refresher is not None else None

    def process(self, metrics: Sequence[Row], batch: int) -> None:
        """Learn from the metrics of a micro-batch."""
        spending, refresher = self.job.spending, self.refresher
        if spending is None or not self.job.sheds:
            return
        if spending.budget.needs_clock:
            self._last = Taken.of(metrics, batch, self.job.shards, spending.cores)
        self._split(spending, metrics, batch)
        if refresher is None or batch <= refresher.batch:
            return
        refresher.process(batch, [bytes(row.payload) for row in metrics])
        if refresher.is_due():
            self._save(refresher.refreshed(), batch)
        if refresher.shares is not None:
            refresher.shares.save(self.control)
        replace_file(self.control / LEARNER, refresher.to_bytes())

    def measured(self, batch: int, rows: int, seconds: float) -> None:
        """A micro-batch is over: tell the workers how much time is left to them in the next one.

        Parameters
        ----------
        batch : int
        rows : int
            That came in.
        seconds : float
            That it took as a whole, as Spark has it.
        """
        taken, self._last = self._last, None
        started, self._started = self._started, True
        spending = self.job.spending
        if spending is None or taken is None or taken.batch != batch:
            return
        if not started:  # the first one loads kernels and opens files
            return
        beside = max(seconds - taken.seconds, 0.0)
        made = Overhead.load(self.control).observe(batch, rows + taken.events, beside, taken.of_shards)
        made.save(self.control)
        known, whole = made.seconds(rows + taken.events), whole_seconds(spending.budget, taken.events)
        if not self._warned and len(made.errors) >= FORECASTS and 0 < whole < known:  # nothing is left for the matchers
            self._warned = True
            log.warning(
                "Spark alone takes %.2g s of a micro-batch of %s rows, and the budget of %s is %.2g s: hardly anything"
                " is matched. Give it a larger budget, fewer shards, or more cores",
                known, f"{rows + taken.events:,}", spending.budget, whole,
            )  # fmt: skip

    def _split(self, spending: Spending, metrics: Sequence[Row], batch: int) -> None:
        shards, budget = self.job.shards, spending.budget
        on_own_core = budget.needs_clock and shards <= spending.cores
        if shards < 2 or on_own_core:  # time that a shard does not use is of no use to one on another core
            return
        if budget.unit == "%" and len(self.job.parts) > 1:  # an event's worth is not the same work in each part
            return
        needs = [Need(0, 1.0, 0, 0, 0.0)] * shards
        for row in metrics:
            needs[row.shard] = Need(row.events, row.weight, row.steps, row.bound, row.price)
        by_events = budget.unit not in ("runs", "ms/batch")
        split(Split.load(self.control, shards), needs, batch, by_events=by_events).save(self.control)

    def _save(self, made: HistoryGraph, batch: int) -> None:
        """Add a version to the history; where that fails the workers go on with the last good one."""
        home = self._history
        try:
            point_to_newest(home)
            folder = made.save(home, new_version=is_history(home))
            prune(home, KEPT_VERSIONS, since=self._began_with() or 0)
        except (HistoryError, OSError) as error:
            log.warning("micro-batch %d: the history could not be refreshed: %s", batch, error)
        else:
            log.info("micro-batch %d: the history is refreshed: %s", batch, folder)

    @property
    def _history(self) -> Path:
        assert self._spending.history is not None
        return place_of(self._spending.history)

    @property
    def _spending(self) -> Spending:
        assert self.job.spending is not None, "there is a budget"
        return self.job.spending

    def _began_with(self) -> int | None:
        """The version of the history that the job began with, also after a restart; None: nothing was known."""
        place = self.control / BEGAN
        if place.exists():
            try:
                version: int | None = read_json(place)
            except ValueError:
                version = -1
            if version is None or (type(version) is int and version > 0):
                return version
            log.warning("%s cannot be read: the job is taken to have begun with the version that holds now", place)
        assert self.job.query is not None, "it learns of one"
        known = self._spending.newest(self.job.query)
        version = known.version_ if known is not None else None
        replace_file(place, json.dumps(version).encode())
        return version
