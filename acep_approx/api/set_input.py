"""A whole input, or what is pushed, as batches through the queries of a set."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from acep_approx.arguments import checked
from acep_approx.errors import UsageError, expect
from acep_approx.events.source import BATCH_ROWS, Source, open_source
from acep_approx.events.stamped import StampedEvents
from acep_approx.events.stream import EventBatch, as_they_come, read_events
from acep_approx.events.time import tick_unit
from acep_approx.order.lateness import LATENESS, Lateness
from acep_approx.order.order import Order
from acep_approx.planning.durations import Duration, check_duration
from acep_approx.subscriptions.levels import Results
from acep_approx.subscriptions.members import Member
from acep_approx.subscriptions.running import Misfit, Running


@dataclass(frozen=True)
class Reading:
    """How events of a set are read.

    Parameters
    ----------
    reorder : str or int, optional
        By how much they may be out of order.
    stamp : bool
        Whether those without a time get that of the clock.
    watermark, source, sequence, idle
        See ``Lateness``; ``watermark`` and ``reorder`` are the same.
    """

    reorder: Duration | None = None
    stamp: bool = False
    watermark: Duration | None = None
    source: str | None = None
    sequence: str | None = None
    idle: Duration | None = None

    def __post_init__(self) -> None:
        expect("stamp", self.stamp, bool, "True or False")
        if self.reorder is not None:
            check_duration("reorder", self.reorder)
            if self.watermark is not None:
                raise UsageError(
                    "reorder= and watermark= are the same, and both are given", code="ACEP-U064", hint="leave one out"
                )
        self.lateness()

    def lateness(self) -> Lateness | None:
        """How late events may come; None: they come in order."""
        asked = {name: getattr(self, name) for name in LATENESS}
        if self.reorder is not None:
            asked["watermark"] = self.reorder
        return Lateness(**asked) if any(value is not None for value in asked.values()) else None

    def begin(self, running: Running, schema: pa.Schema, on_misfit: Misfit | None = None) -> dict[int, Member]:
        """Get ready for events of these columns; see ``Running.begin``."""
        is_new = running.levels is None
        coming = running.begin(schema, on_misfit=on_misfit)
        lateness = self.lateness()
        if is_new and lateness is not None and running.levels is not None:
            roles = running.levels.roles
            is_time = tick_unit(schema.field(roles.time).type, roles.unit) is not None
            called = "watermark" if self.reorder is None else "reorder"
            running.order = Order(lateness.wait(is_time=is_time, called=called))
        return coming

    def pushed(self, running: Running, source: Source) -> Results:
        """The results of more events."""
        return self._results(running, self._opened(running, source))

    @checked
    def batches(
        self,
        running: Running,
        events: Any,
        *,
        sort: bool = False,
        on_progress: Callable[[int], None] | None = None,
        on_misfit: Misfit | None = None,
        **reading: Any,
    ) -> Iterator[list[tuple[Member, pa.Table]]]:
        """The results of a whole input, batch by batch."""
        source = self._opened(running, open_source(events, **{"time": running.wanted["time"]} | reading))
        source.late.check(sort=sort)
        some: list[tuple[Member, pa.Table]] = []
        is_over = False

        def done() -> None:
            nonlocal is_over
            is_over = True
            if on_progress is not None:
                on_progress(running.order.arrived + source.late.count)

        for result in self._results(running, source, sort=sort, on_batch=done, on_misfit=on_misfit):
            if is_over and some:
                yield some
                some = []
            is_over = False
            some.append(result)
        yield [*some, *running.finish()]

    def _opened(self, running: Running, source: Source) -> Source:
        if not self.stamp:
            return source
        wanted = running.wanted
        return Source(StampedEvents(source, wanted["time"] or "ts", wanted["unit"]), source.malformed, source.late)

    def _results(
        self,
        running: Running,
        source: Source,
        *,
        sort: bool = False,
        on_batch: Callable[[], None] | None = None,
        on_misfit: Misfit | None = None,
    ) -> Results:
        if not len(source.schema):  # no columns, no events: an empty list
            return
        coming = self.begin(running, source.schema, on_misfit)
        columns = running.columns(coming)
        source.expect(columns)
        with source.locating():
            for batch in _read(running, source, columns, sort=sort):
                yield from running.push(batch, coming)
                if on_batch:
                    on_batch()


def _read(running: Running, source: Source, columns: tuple[str, ...], *, sort: bool) -> Iterator[EventBatch]:
    assert running.levels is not None, "it has begun"
    roles, first = running.levels.roles, running.order.arrived
    if running.order.wait is None or sort:
        return read_events(source, roles, columns=columns, sort=sort, first_row=first)
    return as_they_come(source, roles, list(columns), BATCH_ROWS, first)
