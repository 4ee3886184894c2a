"""A model of Spark: what it keeps for a stream and its shards, and what ``foreachBatch`` gets of a micro-batch.

What the model takes Spark to promise:

* The offset log says which rows a micro-batch has, and its watermark. A micro-batch that was logged is done again with
  the same rows; one that was not may be cut otherwise after a restart.
* The state after a micro-batch counts once that is committed; what is done again begins with the state before it.
* A task may be done several times, by any worker, also after its rows were read once: the last one counts.
* ``foreachBatch`` is called again for a micro-batch that was not committed.
* Overwriting a folder deletes it, writes files aside and moves them into place: a kill may leave any of that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from shutil import rmtree
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
from pyspark.sql import Row

from acep_approx.ipc import from_ipc
from acep_approx.spark.plan import packing
from acep_approx.spark.worker.job import Job


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
        return sum(getattr(row, column) for row in self.rows if row.kind == packing.METRICS)


@dataclass
class Packed:
    """What ``foreachBatch`` gets: the rows of all shards, kept in memory, where they may be lost and made again.

    ``run`` has a worker do the task of a shard; ``tasks`` are what each did at last.
    """

    shards: Sequence[int]
    run: Callable[[int], Task]
    are_lost: Callable[[], bool]
    tasks: dict[int, Task] = field(default_factory=dict)
    sparkSession: ClassVar[object] = None
    """It is not that of a client of Spark Connect."""

    def persist(self) -> None:
        """Nothing is done yet."""

    def unpersist(self) -> None:
        """Nothing is kept any longer."""

    def select(self, column: str) -> Any:
        """The kinds of rows that there are."""
        assert column == "kind"
        kinds = {row.kind for task in self.tasks.values() for row in task.rows}
        rows = [Row(kind=kind) for kind in sorted(kinds)]
        return SimpleNamespace(distinct=lambda: SimpleNamespace(collect=lambda: rows))

    def of_kind(self, kind: str) -> list[Row]:
        """Rows of a kind; shards that were not asked yet, or whose rows are lost, are asked."""
        for number in self.shards:
            if number not in self.tasks or self.are_lost():
                self.tasks[number] = self.run(number)
        return [row for task in self.tasks.values() for row in task.rows if row.kind == kind]


@dataclass(frozen=True)
class Flow:
    """The part of a flow that ``foreachBatch`` asks for."""

    job: Job
    events: Packed

    def metrics(self, packed: Packed) -> Any:
        return SimpleNamespace(collect=lambda: packed.of_kind(packing.METRICS))

    def table(self, name: str, packed: Packed) -> Any:
        return _Table(packed, name)

    def late(self, packed: Packed) -> Any:
        return _Table(packed, packing.LATE)


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
