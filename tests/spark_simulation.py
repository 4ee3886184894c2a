"""A streaming job in one process without a JVM: the real code of driver, writer and shards, and a model of Spark.

What the model takes Spark to promise:

* The offset log says which rows a micro-batch has, and its watermark. A micro-batch that was logged is done again with
  the same rows; one that was not may be cut otherwise after a restart.
* The state after a micro-batch counts once that is committed; what is done again begins with the state before it.
* A task may be done several times, by any worker, also after its rows were read once: the last one counts.
* ``foreachBatch`` is called again for a micro-batch that was not committed.
* Overwriting a folder deletes it, writes files aside and moves them into place: a kill may leave any of that.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from shutil import rmtree
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
from pyspark.sql import Row

from acep_approx.events.reading.ipc import from_ipc, to_ipc
from acep_approx.spark.plan import outputs, processor
from acep_approx.spark.streaming.driver import LEARNER, Driver
from acep_approx.spark.streaming.stream import CONTROL, Writer
from acep_approx.spark.worker.job import Job
from acep_approx.training import versions
from tests.spark_faults import Faults, Killed, cut, found_as
from tests.spark_promises import check_control, check_history

MOST_ROWS = 12
"""Of a micro-batch that is cut otherwise after a restart."""
TOLD = ("weights.json", "shares.json")
"""What the driver tells the workers."""


@dataclass(frozen=True)
class Planned:
    """An entry of the offset log: rows from ``first`` to before ``end``, and the watermark."""

    first: int
    end: int
    watermark: int


@dataclass(frozen=True)
class Stream:
    """Rows in the order in which they arrive, and how an unbroken run cuts them.

    ``shard`` of each row; ``ends`` of micro-batches; ``idle`` are those ends after which the source has nothing for a
    while, so that a micro-batch without rows follows; ``delay`` of the watermark.
    """

    events: pa.Table
    shard: np.ndarray
    ends: tuple[int, ...]
    idle: frozenset[int]
    delay: int

    def watermark(self, first: int) -> int:
        """That of a micro-batch which begins with this row."""
        latest = max((tick for tick in self.events["ts"][:first].to_pylist() if tick is not None), default=0)
        return max(latest - self.delay, 0)


@dataclass
class Kept:
    """What Spark keeps for a shard: its state and its timers. It is also the handle that a processor gets."""

    value: tuple[bytes] | None = None
    timers: frozenset[int] = frozenset()

    def getValueState(self, name: str, schema: str) -> Kept:
        return self

    def exists(self) -> bool:
        return self.value is not None

    def get(self) -> tuple[bytes] | None:
        return self.value

    def update(self, value: tuple[bytes]) -> None:
        self.value = value

    def listTimers(self) -> Iterator[int]:
        return iter(self.timers)

    def registerTimer(self, milliseconds: int) -> None:
        self.timers |= {milliseconds}

    def deleteTimer(self, milliseconds: int) -> None:
        self.timers -= {milliseconds}


@dataclass
class Task:
    """What a shard has done in a micro-batch: its rows, and what it keeps."""

    rows: list[Row]
    kept: Kept

    def sum(self, column: str) -> int:
        """Of the metrics."""
        return sum(getattr(row, column) for row in self.rows if row.kind == outputs.METRICS)


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
    events_of: dict[int, int] = field(default_factory=dict)
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
        writer = Writer(_Flow(self.job), folder / "found", folder / "late", driver)  # type: ignore[arg-type]
        while self._plan(is_restarted=is_restarted):
            self._micro_batch(writer, driver)
            is_restarted = False

    def _lie_in_pieces(self) -> None:
        """What may happen to files while nobody runs; workers are new processes mostly."""
        self.workers = [held if self._happens("a worker that outlived a driver", 0.3) else {} for held in self.workers]
        for name in (*TOLD, LEARNER, "began.json"):
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
        packed = Packed(self, batch)
        before = driver.refresher.batch if driver.refresher is not None else -1
        writer(packed, batch)  # type: ignore[arg-type]
        if driver.refresher is not None:
            self._note_learned(before, batch)
        self.faults.point("Spark commits")
        tasks = packed.tasks()
        self.states.append({**self.states[-1], **{number: task.kept for number, task in tasks.items()}})
        self.done.append(tasks)
        self.seen.append(self._told())
        self.faults.counts["micro-batches"] += 1
        self._check_bound()

    def called(self, batch: int) -> list[int]:
        """The shards that Spark calls: with rows, or a timer that has expired."""
        plan, kept = self.planned[batch], self.states[batch]
        with_rows = set(self.stream.shard[plan.first : plan.end].tolist())
        return sorted(with_rows | {n for n, its in kept.items() if any(t <= plan.watermark for t in its.timers)})

    def loses_rows(self) -> bool:
        """Whether rows that were kept are lost with their worker.

        Not where a budget is split: the driver has the metrics by then, and the task would have to find the same
        ``weights.json`` again for these to be those of the rows.
        """
        is_split = self.job.spending is not None and self.job.shards > 1
        return not is_split and self._happens("rows lost and made again", self.rate / 3)

    def task(self, number: int, batch: int) -> Task:
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
            stack.enter_context(patch.object(versions, "_held", worker))
            stack.enter_context(self._unwatched())
            if self.rate:
                self._disturb(stack)
            told = SimpleNamespace(getLocalProperty={processor.BATCH: str(batch)}.get)
            stack.enter_context(patch.object(processor, "TaskContext", SimpleNamespace(get=lambda: told)))
            rows = self._step(kept, number, events, plan.watermark)
        return Task(rows, kept)

    def _step(self, kept: Kept, number: int, events: pa.Table, watermark: int) -> list[Row]:
        """What Spark does with a shard: its rows, then the timers that have expired."""
        shard, timers = processor.ShardProcessor(self.job), SimpleNamespace(getCurrentWatermarkInMs=lambda: watermark)
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
            elif self._happens(f"late {place.name}", self.rate / 2 if place.name in TOLD else 0):
                stack.enter_context(found_as(place, self.dice.choice([None, content[: len(content) // 2]])))
        newest = self._newest_version()
        if newest is not None and self._happens("a version that is late or torn", self.rate):
            file = self.dice.choice(sorted(newest.iterdir()))
            stack.enter_context(found_as(file, self.dice.choice([None, file.read_bytes()[:100]])))

    def _told(self) -> dict[str, bytes]:
        """What workers could read by now."""
        files = [self.control / name for name in TOLD]
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
        refresher = self.driver.refresher
        assert refresher is not None
        expected = sum(self.events_of[batch] for batch in self.learned)
        assert refresher.events == expected, f"learned from {refresher.events} events, not {expected}"

    def count(self, batch: int, tasks: dict[int, Task]) -> None:
        """Note how many events a micro-batch has: the same number whenever it is done, and whoever does it."""
        events = sum(task.sum("events") for task in tasks.values())
        assert self.events_of.setdefault(batch, events) == events, "done again, a micro-batch has other events"

    def _check_restored(self, driver: Driver) -> None:
        """A restarted driver knows what was learned, each micro-batch once, and nothing that was committed is lost."""
        refresher = driver.refresher
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
        rows = [row for row in all_rows if row.kind == outputs.METRICS]
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
            check_history(self._home, self.job.query)

    # --- results ----------------------------------------------------------------------------------------------------

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


@dataclass
class Packed:
    """What ``foreachBatch`` gets: the rows of all shards, kept in memory, where they may be lost and made again."""

    simulation: Simulation
    batch: int
    _tasks: dict[int, Task] = field(default_factory=dict)
    _is_first: bool = True

    def persist(self) -> None:
        """Nothing is done yet."""

    def unpersist(self) -> None:
        """Nothing is kept any longer."""

    def tasks(self) -> dict[int, Task]:
        """What each shard did at last."""
        return self._tasks

    def of_kind(self, kind: str) -> list[Row]:
        """Rows of a kind; shards that were not asked yet, or whose rows are lost, are asked."""
        simulation = self.simulation
        for number in simulation.called(self.batch):
            is_lost = number in self._tasks and simulation.loses_rows()
            if number not in self._tasks or is_lost:
                self._tasks[number] = simulation.task(number, self.batch)
        simulation.count(self.batch, self._tasks)
        return [row for task in self._tasks.values() for row in task.rows if row.kind == kind]


@dataclass(frozen=True)
class _Flow:
    """The part of a flow that ``foreachBatch`` asks for."""

    job: Job

    def metrics(self, packed: Packed) -> Any:
        return SimpleNamespace(collect=lambda: packed.of_kind(outputs.METRICS))

    def matches(self, packed: Packed) -> Any:
        return _Table(packed, outputs.MATCHES)

    def late(self, packed: Packed) -> Any:
        return _Table(packed, outputs.LATE)


@dataclass(frozen=True)
class _Table:
    """Rows of a kind, which can be written as Spark writes: aside, and then moved into place."""

    packed: Packed
    kind: str

    @property
    def write(self) -> _Table:
        return self

    def mode(self, mode: str) -> _Table:
        assert mode == "overwrite"
        return self

    def parquet(self, place: str) -> None:
        folder = Path(place)
        if folder.exists():
            rmtree(folder)
        aside = folder / "_temporary"
        aside.mkdir(parents=True)
        for row in self.packed.of_kind(self.kind):
            (aside / f"part-{row.shard}").write_text("".join(f"{line}\n" for line in lines(row)))
        for part in sorted(aside.iterdir()):
            part.rename(folder / part.name)
        rmtree(aside)
        (folder / "_SUCCESS").touch()


def lines(row: Row) -> list[str]:
    """The results or events that a row holds, in words."""
    return [str(one) for one in from_ipc(row.payload).to_pylist()]
