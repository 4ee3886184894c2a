"""A query over events that the watermark has passed, in order of time: nothing that it puts out is ever taken back."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext

import numpy as np
import pyarrow as pa

from acep_approx.archive import Scope
from acep_approx.arrays import Ints
from acep_approx.events.source import BATCH_ROWS
from acep_approx.matching.pipeline import Pipeline
from acep_approx.ranges import COUNT, number_in
from acep_approx.revisions.changelog import Changelog
from acep_approx.revisions.segments import PlacedEvents, Tail
from acep_approx.run.events import Events
from acep_approx.run.watermarks import NEVER

MANY = 1 << 16
"""Events that are kept, in windows of events, before it is looked which of them something still points to."""


class FinalRun:
    """Runs events that will not change.

    Parameters
    ----------
    pipeline : Pipeline
        A raw one.
    changelog : Changelog
        Puts results out.
    """

    def __init__(self, pipeline: Pipeline, changelog: Changelog) -> None:
        self.pipeline = pipeline
        self._is_stamped = not pipeline.stamps.is_raw
        self.tail = Tail()
        self.tail.gap = 1
        self._changelog = changelog
        self._events = 0
        self._kept = 0

    def take(self, due: Sequence[Events], gone: tuple[Ints, Ints], watermark: int) -> list[pa.Table]:
        """Run events that are due, in order, up to the watermark; gives results. None has gone of those before it."""
        assert not len(gone[1]), "what the watermark has passed does not change"
        tables: list[pa.Table] = []
        for events in due:
            for at in range(0, len(events), BATCH_ROWS):  # as long as those of a plain run
                first, part = self._events, events.slice(at, BATCH_ROWS)
                self._note(part)
                tables += self._shown(self.pipeline.stream.run(part.batch(self.pipeline.columns, first)))
        if watermark > NEVER:
            stream = self.pipeline.stream
            over = watermark if stream.ends or stream.last_tick is None else min(watermark, stream.last_tick)
            tables += self._shown(stream.pass_time(over))
            self._forget(watermark)
        return tables

    def _note(self, events: Events) -> None:
        """Remember which row each event is, unless they come in the order of their rows."""
        first, tail = self._events, self.tail
        self._events += len(events)
        tail.last_place = self._events - 1
        tail.note_order(tail.last_place, events.arrival)
        if self._changelog.needed or tail.in_order < self._events:
            place = np.arange(first, self._events)
            tail.passed.append(PlacedEvents.of(events, place, place))

    def _forget(self, tick: int) -> None:
        pipeline, tail = self.pipeline, self.tail
        if pipeline.plan.query.is_algebra:  # results are known with their last event, and name no other
            tail.forget(tick)
        elif not pipeline.preparer.is_count:
            tail.forget(tick - 2 * pipeline.window)  # points with a negation at the end wait for two windows
        elif tail.held > 2 * self._kept + MANY:
            tail.keep_only(pipeline.forget_all_but(np.zeros(0, np.int64)))
            self._kept = tail.held

    def settle(self, watermark: int) -> None:
        """Nothing: what was run is final."""

    def finish(self) -> list[pa.Table]:
        """The stream has ended."""
        return self._shown((0, table) for table in self.pipeline.finish())

    def header(self) -> dict[str, int]:
        """What ``take_up`` needs beside the events."""
        return {"events": self._events, "in_order": self.tail.in_order, "last_place": self.tail.last_place}

    def save(self, scope: Scope) -> None:
        """Save what ``header`` has not: nothing."""

    def load(self, scope: Scope) -> None:
        """Take over what ``save`` saved."""

    def at_base(self) -> AbstractContextManager[None]:
        """While the state is saved; nothing need be done for that."""
        return nullcontext()

    def take_up(self, header: dict[str, int], passed: PlacedEvents, _tail: PlacedEvents) -> None:
        """Go on from a state."""
        self._events = number_in("events", header["events"], 0, COUNT)
        self.tail.in_order = number_in("in_order", header["in_order"], 0, self._events + 1)
        self.tail.last_place = number_in("last_place", header["last_place"], -COUNT, COUNT)
        self.tail.passed = [passed] if len(passed) else []

    def _shown(self, raw: Iterable[tuple[int, pa.Table]]) -> list[pa.Table]:
        """Results as they come: behind the last one, keys may be forgotten."""
        show = self._changelog.in_rows if self._is_stamped else self._changelog.came
        return [show(table, self.tail) for _, table in raw if table.num_rows]
