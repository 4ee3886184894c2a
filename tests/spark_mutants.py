"""Variants of driver, writer, shards and files that are known to be wrong: simulated faults must notice each of them.

Each is a context in which the real code is another one.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any
from unittest.mock import patch

from acep_approx.learning.online import LEARNER
from acep_approx.shedding import splitting
from acep_approx.shedding.refresher import Refresher
from acep_approx.shedding.splitting import Split
from acep_approx.spark.streaming import driver, engine_learning
from acep_approx.spark.streaming.driver import Driver
from acep_approx.spark.streaming.sinks import Folder
from acep_approx.spark.streaming.stream import Writer
from acep_approx.spark.worker import held
from acep_approx.spark.worker.shard import Shard
from acep_approx.spark.worker.spending import Spending
from acep_approx.training.history_graph import HistoryGraph
from history import files, store, versions
from tests.spark_schedules import EXACT, LEARNING, SPLIT

Mutant = Callable[[], AbstractContextManager[Any]]


def a_shard_begins_anew() -> AbstractContextManager[Any]:
    """The processor ignores the state."""
    return patch.object(held, "taken", lambda job, told, number, state, batch: Shard(job, number, None, batch))


def a_shard_is_known_by_its_number() -> AbstractContextManager[Any]:
    """A worker goes on from where it stands, whatever state Spark has."""
    return patch.object(held, "digest", lambda state: b"")


def a_shard_that_was_taken_stays() -> AbstractContextManager[Any]:
    """A task that is done again goes on from what the first one came to."""

    class Held(OrderedDict):  # type: ignore[type-arg]
        def pop(self, key: Any, default: Any = None) -> Any:
            return self.get(key, default)

    return patch.object(held, "_HELD", Held())


def waiting_events_are_not_kept() -> AbstractContextManager[Any]:
    """The state has no events that wait for the watermark."""
    real = Shard.to_bytes

    def to_bytes(self: Shard) -> bytes:
        self.order.waiting.due()
        return real(self)

    return patch.object(Shard, "to_bytes", to_bytes)


def nobody_wakes_a_shard() -> AbstractContextManager[Any]:
    """No timer is set for events that wait."""
    return patch.object(Shard, "waits_until", None)


def results_are_written_beside() -> AbstractContextManager[Any]:
    """A micro-batch that is done again does not replace what it wrote."""
    real, numbers = Folder.write, count()

    def write(self: Folder, table: Any, batch: int, rows: int, *, is_first: bool) -> None:
        real(self, table, f"{batch}-{next(numbers)}", rows, is_first=is_first)  # type: ignore[arg-type]

    return patch.object(Folder, "write", write)


def left_overs_stay() -> AbstractContextManager[Any]:
    """What a crash has left stays where a micro-batch that is done again finds nothing."""
    return patch.object(Writer, "is_first", property(lambda self: False, lambda self, value: None), create=True)


def every_time_is_learned_from() -> AbstractContextManager[Any]:
    """Also a micro-batch that was learned from before."""
    real = Driver.process

    def process(self: Driver, metrics: Any, batch: int) -> None:
        for one in self.learning.values():
            one.refresher.batch = min(one.refresher.batch, batch - 1)
        real(self, metrics, batch)

    return patch.object(Driver, "process", process)


def what_was_learned_is_not_kept() -> AbstractContextManager[Any]:
    """A restarted driver begins anew."""
    real = engine_learning.replace_file
    return patch.object(
        engine_learning, "replace_file", lambda place, raw: None if place.name == LEARNER else real(place, raw)
    )


def counts_are_not_kept() -> AbstractContextManager[Any]:
    """A restarted driver knows which micro-batch was the last, and not how many events there were."""
    real = Refresher.restore

    def restore(self: Refresher, raw: bytes) -> None:
        real(self, raw)
        self.events = 0

    return patch.object(Refresher, "restore", restore)


def in_place(place: Path, content: bytes) -> None:
    """Write a file so that others can see half of it."""
    place.write_bytes(content)


def weights_are_written_in_place() -> AbstractContextManager[Any]:
    return patch.object(files, "replace_file", in_place)


def the_pointer_is_written_in_place() -> AbstractContextManager[Any]:
    return patch.object(versions, "replace_file", in_place)


@contextmanager
def a_version_is_pointed_to_before_it_is_there() -> Iterator[None]:
    """The pointer comes first."""
    real = store._write

    def write(graph: Any, home: Path, version: int, *rest: Any) -> Path:
        versions.point(home, version)
        return real(graph, home, version, *rest)

    with patch.object(store, "_write", write):
        yield


def workers_want_what_is_pointed_to() -> AbstractContextManager[Any]:
    """No other version serves."""

    def newest(self: Spending, query: Any) -> HistoryGraph | None:
        return HistoryGraph.load(self.history, query) if self.history and store.is_history(self.history) else None

    return patch.object(Spending, "newest", newest)


@contextmanager
def a_surplus_is_for_anybody() -> Iterator[None]:
    """It is given whichever micro-batch it is for, and one that is done again counts as it was done at first."""
    weight, split = Split.weight, splitting.split

    def again(before: Split, needs: Any, batch: int, **options: Any) -> Split:
        return split(replace(before, before=None), needs, batch, **options)

    with (
        patch.object(Split, "weight", lambda self, shard, events, batch=None: weight(self, shard, events)),
        patch.object(driver, "split", again),
    ):
        yield


@contextmanager
def savings_are_made_up() -> Iterator[None]:
    """A file that cannot be read is taken for one that has saved a lot."""
    real = Split.load.__func__  # type: ignore[attr-defined]

    def load(cls: type[Split], folder: Any, shards: int) -> Split:
        try:
            json.loads((Path(folder) / Split.FILE).read_text())
        except (OSError, ValueError):
            return Split((2.0,) * shards, (9.0,) * shards, 9.0 * shards)
        return real(cls, folder, shards)

    with patch.object(Split, "load", classmethod(load)):
        yield


MUTANTS: dict[Mutant, str] = {
    a_shard_begins_anew: EXACT,
    a_shard_is_known_by_its_number: EXACT,
    a_shard_that_was_taken_stays: EXACT,
    waiting_events_are_not_kept: EXACT,
    nobody_wakes_a_shard: EXACT,
    results_are_written_beside: EXACT,
    left_overs_stay: SPLIT,
    every_time_is_learned_from: LEARNING,
    what_was_learned_is_not_kept: LEARNING,
    counts_are_not_kept: LEARNING,
    weights_are_written_in_place: SPLIT,
    the_pointer_is_written_in_place: LEARNING,
    a_version_is_pointed_to_before_it_is_there: LEARNING,
    workers_want_what_is_pointed_to: LEARNING,
    a_surplus_is_for_anybody: SPLIT,
    savings_are_made_up: SPLIT,
}
"""Each with the sort of job that notices it."""
