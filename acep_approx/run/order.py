"""The order of a stream: its batches go on in order of time, epoch by epoch, and what comes late is left out.

An epoch is all events of one time. It is complete when an event of a later time has come.

Source: Demers et al., CIDR 2007, section 4.2 (a priority queue with a bound) and 4.3 (epochs); how far a stream is
complete: Chandramouli, Goldstein, Maier, PVLDB 3(1) 2010, section 2.4 (see ``Watermarks``).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
import pyarrow as pa

from acep_approx.archive import Scope
from acep_approx.arrays import Ints
from acep_approx.errors import DataError
from acep_approx.events.columns import encode_text, to_numpy
from acep_approx.events.stream import EventBatch
from acep_approx.ranges import COUNT, TICK, Range, check
from acep_approx.run.events import Events
from acep_approx.run.left_out import LATE, LeftOut
from acep_approx.run.waiting import Waiting
from acep_approx.run.watermarks import NEVER, Watermarks

NUMBERS = ("arrived", "passed", "newest", "floor")
FEW = 1 << 12
"""Events up to which it is cheaper to copy them behind those that waited than to run two batches."""


@dataclass(frozen=True)
class Wait:
    """How long events wait for others that may precede them.

    Parameters
    ----------
    watermarks : Watermarks
        Say how far the stream is complete.
    source, sequence : str, optional
        The columns that say where an event comes from, and its number there; see ``Watermarks``.
    ties : sequence of str, optional
        The columns that order events of one time. Default: they go on in the order of their arrival.
    """

    watermarks: Watermarks
    source: str | None = None
    sequence: str | None = None
    ties: Sequence[str] = ()

    @property
    def reads(self) -> tuple[str, ...]:
        """Columns that events must have."""
        return tuple(name for name in (self.source, self.sequence, *self.ties) if name is not None)


class Order:
    """Holds events back until their epochs are complete, and lets them go on in order of time.

    Parameters
    ----------
    wait : Wait, optional
        Events may come out of order: they wait until the watermark has passed them. Those that come later than that are
        left out. Default: they come in order, and one that does not is an error.

    Attributes
    ----------
    arrived : int
        Events so far.
    passed : int
        Events given on so far.
    newest : int or None
        The latest time so far.
    floor : int
        Before this time no event comes any more.
    left_out : LeftOut
        Events that came all the same.
    is_joining : bool
        Whether all that is pushed is copied behind what waited: two batches cost many queries more than that.
    """

    def __init__(self, wait: Wait | None = None) -> None:
        self.wait: Wait | None = None
        self.arrived = self.passed = 0
        self.is_joining = False
        self.newest: int | None = None
        self.floor = NEVER
        self.left_out = LeftOut()
        self.open: list[EventBatch] = []  # the last epoch, where events come in order
        self.waiting = Waiting()
        if wait is not None:
            self.wait_for(wait)

    def wait_for(self, wait: Wait) -> None:
        """Let events come out of order, before the first one."""
        self.wait, self.waiting = wait, Waiting(wait.ties)
        if self.floor > NEVER:
            wait.watermarks.punctuate(self.floor)

    @property
    def is_holding(self) -> bool:
        """Whether events wait."""
        return bool(self.open) or bool(self.waiting.parts)

    def push(self, batch: EventBatch) -> Iterator[EventBatch]:
        """Take in events; gives those of epochs that are complete now, in order.

        Raises
        ------
        DataError
            ``ACEP-D007``: time runs backwards.
        """
        if self.wait is None:
            yield from self._in_order(batch)
        else:
            yield from self._put_in_order(batch, self.wait)

    def close(self, before: int | None = None) -> Iterator[EventBatch]:
        """No event before this time comes any more, none at all by default: gives those that waited for it."""
        if self.open:
            held = joined(self.open)
            cut = len(held) if before is None else int(np.searchsorted(held.ticks, before))
            self.open = [held.slice(cut, len(held) - cut)] if cut < len(held) else []
            if cut:
                yield self._passed(held.slice(0, cut))
        elif self.waiting.parts:
            yield from self._due(self.waiting.due(before))
        if before is not None:
            self.floor = max(self.floor, before)
            if self.wait is not None and self.floor > self.wait.watermarks.current:
                self.wait.watermarks.punctuate(self.floor)
        elif self.newest is not None:
            self.floor = max(self.floor, self.newest + 1)
            if self.wait is not None:
                self.wait.watermarks.close(self.floor)

    # --- state ----------------------------------------------------------------------------------------------

    def save(self, scope: Scope) -> None:
        """Keep where the stream stands, and what waits."""
        scope.head |= {name: getattr(self, name) for name in NUMBERS}
        self.left_out.save(scope.sub("left out"))
        if self.wait is not None:
            wait = {"source": self.wait.source, "sequence": self.wait.sequence, "ties": [*self.wait.ties]}
            scope.head["wait"] = wait | {"watermarks": self.wait.watermarks.header()}
        waiting = scope.sub("waiting")
        for number, held in enumerate(self.open):
            part = waiting.sub(f"open {number}", {"first_row": held.first_row}, {"tick": held.ticks})
            part.put("data", held.data)
        for number, events in enumerate(self.waiting.parts):
            part = waiting.sub(str(number), {}, {"tick": events.tick, "arrival": events.arrival})
            part.put("data", events.data)

    @classmethod
    def restored(cls, scope: Scope) -> Self:
        """Go on from what ``save`` kept.

        Raises
        ------
        Exception
            What ``ranges.reading`` takes for damage.
        """
        made, saved = cls(), scope.head
        if (wait := saved.get("wait")) is not None:
            ties = wait.pop("ties")
            names = (wait["source"], wait["sequence"], *ties)
            check("columns", good=isinstance(ties, list) and all(isinstance(name, str | None) for name in names))
            made.wait_for(Wait(Watermarks.restore(wait["watermarks"]), wait["source"], wait["sequence"], ties))
        for name in NUMBERS:
            if name != "newest" or saved[name] is not None:
                scope.number(name, -COUNT if name in ("newest", "floor") else 0)
            setattr(made, name, saved[name])
        made.left_out.load(scope.parts["left out"])
        for name, part in scope.parts["waiting"].parts.items():
            table = part.table("data").combine_chunks()
            columns = [encode_text(column.combine_chunks()) for column in table.columns]
            data = pa.RecordBatch.from_arrays(columns, names=table.column_names)
            tick = part.array("tick", Range(data.num_rows, -TICK, TICK))
            if name.startswith("open "):
                made.open.append(EventBatch(part.number("first_row"), tick, data))
            else:
                arrival = part.array("arrival", Range(data.num_rows, 0, COUNT))
                made.waiting.add(Events(tick, arrival, arrival, data))
        return made

    # --- order ----------------------------------------------------------------------------------------------

    def _in_order(self, batch: EventBatch) -> Iterator[EventBatch]:
        first, last = int(batch.ticks[0]), int(batch.ticks[-1])
        since = self.floor if self.newest is None else max(self.newest, self.floor)
        if first < since:
            raise DataError(
                f"row {batch.first_row}: time runs backwards from batch to batch, {first} after {since}",
                code="ACEP-D007",
                row=batch.first_row,
                hint="push events in order of time, or let the set put them in order: --reorder '5 s' (reorder= in "
                "Python)",
            )
        self.arrived += len(batch)
        if self.open and last == self.newest:
            self.open.append(batch)
            return
        open_from = int(np.searchsorted(batch.ticks, last))
        waited, self.open = self.open, [_copied(batch, open_from)]
        of_theirs = int(np.searchsorted(batch.ticks, since, side="right")) if waited else 0
        self.newest = last
        if waited and (self.is_joining or open_from - of_theirs <= FEW):
            of_theirs = open_from
        if waited:
            yield self._passed(joined([*waited, *([batch.slice(0, of_theirs)] if of_theirs else [])]))
        if of_theirs < open_from:
            yield self._passed(batch.slice(of_theirs, open_from - of_theirs))

    def _put_in_order(self, batch: EventBatch, wait: Wait) -> Iterator[EventBatch]:
        arrival = batch.first_row + np.arange(len(batch))
        source = None if wait.source is None else batch.data.column(wait.source)
        sequence = None if wait.sequence is None else numbers_of(batch.data.column(wait.sequence), wait.sequence)
        is_late = batch.ticks < wait.watermarks.advance(batch.ticks, source, sequence)
        self.arrived += len(batch)
        late = np.flatnonzero(is_late)
        self.left_out.add(batch.data, late, [LATE] * len(late), arrival)
        self.newest = int(batch.ticks.max()) if self.newest is None else max(self.newest, int(batch.ticks.max()))
        self.waiting.add(Events(batch.ticks, arrival, arrival, batch.data).where(~is_late))
        if wait.watermarks.current > self.floor:
            yield from self.close(wait.watermarks.current)

    def _due(self, parts: Sequence[Events]) -> Iterator[EventBatch]:
        for part in parts:
            yield self._passed(replace(part.batch(part.data.schema.names, 0), ids=part.arrival))

    def _passed(self, events: EventBatch) -> EventBatch:
        first = self.passed
        self.passed += len(events)
        return replace(events, first_row=first)


def joined(parts: Sequence[EventBatch]) -> EventBatch:
    """Several parts that follow one another, at least one, as one."""
    if len(parts) == 1:
        return parts[0]
    none = [part.ticks[:0] for part in parts]
    whole = Events.joined([Events(p.ticks, no, no, p.data) for p, no in zip(parts, none, strict=True)])
    return whole.batch(whole.data.schema.names, parts[0].first_row)


def numbers_of(column: pa.Array, name: str) -> Ints:
    """The numbers of events in a column.

    Raises
    ------
    DataError
        ``ACEP-D074``: they are no whole numbers.
    """
    try:
        if pa.types.is_integer(column.type) and not column.null_count:
            numbers: Ints = to_numpy(column.cast(pa.int64()))
            return numbers
        what = "are not whole numbers, or some are missing"
    except pa.ArrowInvalid:
        what = "are too large: one is beyond 2^63 - 1"
    raise DataError(
        f"the sequence numbers in {name!r} {what}",
        code="ACEP-D074",
        hint="give each event a whole number, one more than that of the event before it",
    )


def _copied(batch: EventBatch, first: int) -> EventBatch:
    """The events from a place on, without the memory of those before it."""
    places = np.arange(first, len(batch))
    if not first:
        return batch
    return EventBatch(batch.first_row + first, batch.ticks[places], batch.data.take(pa.array(places)))
