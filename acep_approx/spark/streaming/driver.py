"""What the driver does after each micro-batch: it splits the budget anew, and lets engines learn.

It tells the workers by files, each replaced at once: whoever reads sees the one before or the new one. A micro-batch
that is done twice, after a crash, is learned from once.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from acep_approx.shedding.splitting import Need, Split, split
from acep_approx.shedding.timing import Overhead, whole_seconds
from acep_approx.spark.streaming.engine_learning import EngineLearning, verdict_of

if TYPE_CHECKING:
    from pyspark.sql import Row

    from acep_approx.learning.judging import Verdict
    from acep_approx.spark.worker.job import Job
    from acep_approx.spark.worker.spending import Spending

log = logging.getLogger("acep_approx.spark")
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

    Attributes
    ----------
    learning : dict of str to EngineLearning
        Of a job that learns: its engines of which the driver learns.
    """

    job: Job
    control: Path
    learning: dict[str, EngineLearning] = field(init=False, default_factory=dict)
    _last: Taken | None = field(init=False, default=None)
    _started: bool = field(init=False, default=False)
    _warned: bool = field(init=False, default=False)

    def __post_init__(self) -> None:
        programs = [part.program for part in self.job.parts]
        self._pin = programs[0].pinning(programs, self.job.setting)
        spending = self.job.spending
        if spending is not None and spending.learns and self.job.sheds and not spending.budget.is_unlimited:
            engines = self.job.engines
            for name, query in engines.items():
                self.learning[name] = EngineLearning(self.job, self.control, name, query, len(engines))

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
        return verdict_of([*self.learning.values()])

    def process(self, metrics: Sequence[Row], batch: int) -> None:
        """Learn from the metrics of a micro-batch."""
        spending = self.job.spending
        if spending is None or not self.job.sheds:
            return
        if spending.budget.needs_clock:
            self._last = Taken.of(metrics, batch, self.job.shards, spending.cores)
        self._split(spending, metrics, batch)
        found: dict[str, list[bytes]] = {name: [] for name in self.learning}
        for row in metrics:
            for name, sample in self.job.part_of(row.shard).program.samples(bytes(row.payload)).items():
                found.setdefault(name, []).append(sample)
        for name, one in self.learning.items():
            one.process(batch, found[name])

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
