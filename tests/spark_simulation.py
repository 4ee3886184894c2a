"""A streaming job in one process without a JVM: the real code of driver, writer and shards on a model of Spark.

Its processes are killed and started again, its files are torn, late or stale; and after each step it is looked whether
what is promised holds.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
from pyspark.sql import Row

from acep_approx.ipc import to_ipc
from acep_approx.learning.online import LEARNER
from acep_approx.spark.plan import packing, processor
from acep_approx.spark.setup.control import CONTROL
from acep_approx.spark.streaming import stream
from acep_approx.spark.streaming.driver import Driver
from acep_approx.spark.streaming.sinks import folder_of
from acep_approx.spark.streaming.stream import Writer
from acep_approx.spark.worker.job import Job
from acep_approx.training import history_graph
from tests.spark_faults import Faults, Killed, cut, found_as
from tests.spark_model import Flow, Kept, Packed, Planned, Stream, Task, lines
from tests.spark_promises import check_control, check_history

MOST_ROWS = 12
"""Of a micro-batch that is cut otherwise after a restart."""
TOLD = ("weights.json", "shares.json")
"""What the driver tells the workers."""
READ = (*TOLD, LEARNER)
"""What workers read: also where the learner stood."""


@dataclass
class Simulation:
    """A job on its way through kills and restarts.

    Parameters
    ----------
    job : Job
    stream : Stream
    faults : Faults
        Its folder holds results, checkpoint and history.
    kills : tuple of (int, str)
        After how many writes below which folder each process is killed; the one after them lives.
    rate : float
        Chance of a fault wherever there can be one that kills nothing.
    is_cut : tuple of Planned, optional
        Micro-batches as they are to be cut; default: as ``stream`` has it, and at random after a restart.
    """

    job: Job
    stream: Stream
    faults: Faults
    kills: tuple[tuple[int, str], ...] = ()
    rate: float = 0.0
    is_cut: tuple[Planned, ...] = ()
    planned: list[Planned] = field(default_factory=list)
    states: list[dict[int, Kept]] = field(default_factory=lambda: [{}])
    done: list[dict[int, Task]] = field(default_factory=list)
    workers: list[dict[Any, Any]] = field(default_factory=lambda: [{}, {}])
    learned: list[int] = field(default_factory=list)
    began: Counter[int] = field(default_factory=Counter)
    events_of: defaultdict[int, dict[int, int]] = field(default_factory=lambda: defaultdict(dict))
    damaged: dict[Path, bytes] = field(default_factory=dict)
    may_forget: bool = False
    driver: Driver | None = None

    def __post_init__(self) -> None:
        self.dice = self.faults.dice
        self.control = self.faults.folder / "checkpoint" / CONTROL
        self.control.mkdir(parents=True)
        self.seen: list[dict[str, bytes]] = []

    # --- processes --------------------------------------------------------------------------------------------------

    def run(self) -> None:
        """Run the job to its end."""
        for session, (writes, below) in enumerate([*self.kills, (None, "")]):
            try:
                with self.faults.watching(writes, self.faults.folder / below if below else None):
                    self._session(is_restarted=session > 0)
            except Killed:
                self._check_files()
                self._lie_in_pieces()
            else:
                break
        self._check_files()

    def _session(self, *, is_restarted: bool) -> None:
        self.driver = driver = Driver(self.job, self.control)
        self._check_restored(driver)
        folder = self.faults.folder
        sinks = [(name, folder_of(folder / name)) for name in self.job.tables]
        writer = Writer(self.job, sinks, folder_of(folder / "late"), driver)
        while self._plan(is_restarted=is_restarted):
            self._micro_batch(writer, driver)
            is_restarted = False

    def _lie_in_pieces(self) -> None:
        """What may happen to files while nobody runs; workers are new processes mostly."""
        self.workers = [held if self._happens("a worker that outlived a driver", 0.3) else {} for held in self.workers]
        for name in (*READ, "began.json"):
            file = self.control / name
            if self.rate and file.exists() and self._happens(f"{name} damaged", self.rate / 2):
                cut(file, self.dice)
                self.damaged[file] = file.read_bytes()
                self.may_forget |= name == LEARNER

    def _happens(self, what: str, chance: float) -> bool:
        happens = self.dice.random() < chance
        self.faults.counts[what] += happens
        return happens

    # --- micro-batches ----------------------------------------------------------------------------------------------

    def _plan(self, *, is_restarted: bool) -> bool:
        """Log which micro-batch is next; False: there is none."""
        if len(self.planned) > len(self.done):
            return True
        batch, stream = len(self.planned), self.stream
        if self.is_cut:
            if batch < len(self.is_cut):
                self.planned.append(self.is_cut[batch])
            return batch < len(self.is_cut)
        before = self.planned[-1] if self.planned else Planned(0, 0, 0)
        first, watermark = before.end, stream.watermark(before.end)
        rows, has_moved = len(stream.events) - first, watermark > before.watermark
        if not rows and not has_moved:
            return False
        if not rows or (has_moved and first in stream.idle):
            end = first
        elif is_restarted and self._happens("cut otherwise", 0.9):
            end = first + min(rows, self.dice.randint(1, MOST_ROWS))
        else:
            end = min(end for end in stream.ends if end > first)
        self.faults.point("Spark logs the offsets")
        self.planned.append(Planned(first, end, watermark))
        return True

    def _micro_batch(self, writer: Writer, driver: Driver) -> None:
        batch = len(self.done)
        self.began[batch] += 1
        self.faults.counts["done twice"] += self.began[batch] > 1
        packed = Packed(self._called(batch), lambda number: self._task(number, batch), self._loses_rows)
        refresher = driver.learning[""].refresher if driver.learning else None
        before = refresher.batch if refresher is not None else -1
        with patch.object(stream, "Flow", Flow):
            writer(packed, batch)  # type: ignore[arg-type]
        if refresher is not None:
            self._note_learned(before, batch)
        self.faults.point("Spark commits")
        tasks = packed.tasks
        self.states.append({**self.states[-1], **{number: task.kept for number, task in tasks.items()}})
        self.done.append(tasks)
        self.seen.append(self._told())
        self.faults.counts["micro-batches"] += 1
        self._check_bound()

    def _called(self, batch: int) -> list[int]:
        """The shards that Spark calls: with rows, or a timer that has expired."""
        plan, kept = self.planned[batch], self.states[batch]
        with_rows = set(self.stream.shard[plan.first : plan.end].tolist())
        return sorted(with_rows | {n for n, its in kept.items() if any(t <= plan.watermark for t in its.timers)})

    def _loses_rows(self) -> bool:
        """Whether rows that were kept are lost with their worker.

        Not where a budget is split: the driver has the metrics by then, and the task would have to find the same
        ``weights.json`` again for these to be those of the rows.
        """
        is_split = self.job.spending is not None and self.job.shards > 1
        return not is_split and self._happens("rows lost and made again", self.rate / 3)

    def _task(self, number: int, batch: int) -> Task:
        """Have a worker do the task of a shard; the first one may be lost, or be done twice at the same time."""
        if self._happens("task done twice", self.rate):
            self._attempt(number, batch)
        return self._attempt(number, batch)

    def _attempt(self, number: int, batch: int) -> Task:
        plan, before = self.planned[batch], self.states[batch].get(number, Kept())
        self.faults.point("a worker keeps its state")
        worker, kept = self.dice.choice(self.workers), Kept(before.value, before.timers)
        mine = np.flatnonzero(self.stream.shard[plan.first : plan.end] == number) + plan.first
        self.dice.shuffle(mine)
        events = self.stream.events.take(pa.array(mine, pa.int64()))
        with ExitStack() as stack:
            stack.enter_context(patch.object(history_graph, "_held", worker))
            stack.enter_context(self._unwatched())
            if self.rate:
                self._disturb(stack)
            stack.enter_context(patch.object(processor, "batch_of_task", lambda: batch))
            task = Task(self._step(kept, number, events, plan.watermark), kept)
        self._note_events(number, batch, task)
        return task

    def _step(self, kept: Kept, number: int, events: pa.Table, watermark: int) -> list[Row]:
        """What Spark does with a shard: its rows, then the timers that have expired."""
        shard = processor.ShardProcessor(self.job, range(self.job.shards))
        timers = SimpleNamespace(getCurrentWatermarkInMs=lambda: watermark)
        shard.init(kept)  # type: ignore[arg-type]
        rows: list[Row] = []
        if len(events):
            payloads = [to_ipc(events.slice(at, 5)) for at in range(0, len(events), 5)]
            rows += shard.handleInputRows((number,), iter([Row(payload=one) for one in payloads]), timers)
        if any(timer <= watermark for timer in kept.timers):
            rows += shard.handleExpiredTimer((number,), timers, None)
        return rows

    # --- what workers find ------------------------------------------------------------------------------------------

    @contextmanager
    def _unwatched(self) -> Iterator[None]:
        """Workers write nothing: what is written here are the faults."""
        left, self.faults.left = self.faults.left, None
        writing = self.faults.writing
        yield
        self.faults.left, self.faults.writing = left, writing

    def _disturb(self, stack: ExitStack) -> None:
        """Let a worker find files stale, late or torn."""
        before = self.seen[-2] if len(self.seen) > 1 else {}
        for name, content in self._told().items():
            place = Path(name)
            if self._happens(f"stale {place.name}", self.rate / 2 if name in before else 0):
                stack.enter_context(found_as(place, before[name]))
            elif self._happens(f"late {place.name}", self.rate / 2 if place.name in READ else 0):
                stack.enter_context(found_as(place, self.dice.choice([None, content[: len(content) // 2]])))
        newest = self._newest_version()
        if newest is not None and self._happens("a version that is late or torn", self.rate):
            file = self.dice.choice(sorted(newest.iterdir()))
            stack.enter_context(found_as(file, self.dice.choice([None, file.read_bytes()[:100]])))

    def _told(self) -> dict[str, bytes]:
        """What workers could read by now."""
        files = [self.control / name for name in READ]
        if self._home is not None:
            files.append(self._home / "LATEST")
        return {str(file): file.read_bytes() for file in files if file.exists()}

    def _newest_version(self) -> Path | None:
        """The newest version, if it is not the only one: of a history without any other nothing could serve."""
        there = sorted(self._home.glob("v*")) if self._home is not None else []
        return there[-1] if len(there) > 1 else None

    @property
    def _home(self) -> Path | None:
        spending = self.job.spending
        return Path(spending.history) if spending is not None and spending.history is not None else None

    # --- promises ---------------------------------------------------------------------------------------------------

    def _note_learned(self, before: int, batch: int) -> None:
        if batch > before:
            self.learned.append(batch)
        self._check_learned()

    def _check_learned(self) -> None:
        """Each micro-batch was learned from once."""
        assert self.driver is not None
        refresher = self.driver.learning[""].refresher
        expected = sum(sum(self.events_of[batch].values()) for batch in self.learned)
        assert refresher.events == expected, f"learned from {refresher.events} events, not {expected}"

    def _note_events(self, number: int, batch: int, task: Task) -> None:
        """Note how many events a task has: the same number whenever it is done, and whoever does it."""
        events = task.sum("events")
        assert self.events_of[batch].setdefault(number, events) == events, "done again, a task has other events"

    def _check_restored(self, driver: Driver) -> None:
        """A restarted driver knows what was learned, each micro-batch once, and nothing that was committed is lost."""
        refresher = driver.learning[""].refresher if driver.learning else None
        if refresher is None:
            return
        committed = len(self.done) - 1
        if refresher.batch == -1:
            assert not self.learned or self.may_forget or committed < 0, "what was learned is gone"
            self.learned = []
        elif refresher.batch > max(self.learned, default=-1):
            assert refresher.batch == committed + 1, "learned from a micro-batch that never was"
            self.learned.append(refresher.batch)  # it was killed after it had written that down
        assert self.may_forget or refresher.batch >= committed, "a micro-batch that was committed is not learned from"
        self._check_learned()

    def _check_bound(self) -> None:
        """The steps of all micro-batches that count are within the budget of their events, and so is what was granted.

        The second is sharper: in tiny streams much of what is granted is not needed.
        """
        spending = self.job.spending
        if spending is None:
            return
        assert spending.full_work is not None
        all_rows = [row for tasks in self.done for task in tasks.values() for row in task.rows]
        rows = [row for row in all_rows if row.kind == packing.METRICS]
        events, steps = (sum(getattr(row, name) for row in rows) for name in ("events", "steps"))
        weighted = sum(row.weight * row.events for row in rows)
        assert weighted <= events + 1e-6, f"granted for {weighted:.3f} events, of which there are {events}"
        bound = events * spending.budget.amount / 100 * spending.full_work
        assert steps <= bound + 1e-6, f"{steps} run-steps after micro-batch {len(self.done) - 1}, allowed {bound:.2f}"
        self.faults.counts["run-steps"] += sum(task.sum("steps") for task in self.done[-1].values())

    def _check_files(self) -> None:
        """Whatever was killed, what is pointed to can be read, and no file is torn."""
        check_control(self.control, self.damaged)
        if self._home is not None:
            check_history(self._home, self.job.engines[""])

    # --- results ----------------------------------------------------------------------------------------------------

    def found(self) -> Counter[str]:
        """The rows of all tables of the program."""
        return sum((self.written(name) for name in self.job.tables), Counter())

    def written(self, name: str) -> Counter[str]:
        """The rows of all micro-batches, as a reader of the folder finds them."""
        return Counter(line for _, line in self.written_by_batch(name).elements())

    def written_by_batch(self, name: str) -> Counter[tuple[str, str]]:
        """The same, each with its micro-batch."""
        parts = (self.faults.folder / name).glob("batch=*/part-*")
        return Counter((part.parent.name, line) for part in parts for line in part.read_text().splitlines())

    def said_by_batch(self, kind: str) -> Counter[tuple[str, str]]:
        """What the tasks that counted at last have put out, likewise."""
        rows = [(n, row) for n, tasks in enumerate(self.done) for task in tasks.values() for row in task.rows]
        return Counter((f"batch={n}", line) for n, row in rows if row.kind == kind for line in lines(row))
