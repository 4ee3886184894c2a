"""The part of the stream that may still change, in segments: events, their results, and a snapshot before each.

Events have places in the order of the stream, with gaps, so that others can come in between.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
import pyarrow as pa

from acep_approx.arrays import Bools, Ints
from acep_approx.events.columns import to_arrow, to_numpy
from acep_approx.events.reading.widening import one_table
from acep_approx.matching.outputs.output import SLOT
from acep_approx.matching.snapshots import QuerySnapshot
from acep_approx.ranges import impossible
from acep_approx.revisions.names import words_of_ids
from acep_approx.run.events import Events, in_order


@dataclass(frozen=True)
class PlacedEvents(Events):
    """Events in the order of the stream, with their places in it.

    ``place`` rises from event to event, with gaps for those that come late; ``slot`` is that of the key, -1 where a
    change of the event changes nothing.
    """

    place: Ints
    slot: Ints
    arrays: ClassVar[tuple[str, ...]] = (*Events.arrays, "place", "slot")

    @classmethod
    def of(cls, events: Events, place: Ints, slot: Ints) -> PlacedEvents:
        """Events that are in order, with their places and slots."""
        return cls(events.tick, events.arrival, events.tie, events.data, place, slot)

    def plain(self) -> Events:
        """The same without places and slots."""
        return Events(self.tick, self.arrival, self.tie, self.data)


def places_between(old: Ints, is_new: Bools, low: int, high: int) -> Ints | None:
    """Places for events that come in between others.

    Parameters
    ----------
    old : int64 array
        In the order of all, without the new ones: the places of the others.
    is_new : bool array, shape (all,)
    low, high : int
        The places before and behind all of them.

    Returns
    -------
    int64 array or None
        Of the new ones, in order; None where there is no room.

    Examples
    --------
    >>> places_between(np.array([100, 200]), np.array([True, False, True, True, False]), 0, 300).tolist()
    [50, 133, 166]
    """
    borders = np.concatenate(([low], old, [high]))
    before = np.cumsum(~is_new)[is_new]  # how many of the others come before each
    first, last = borders[before], borders[before + 1]
    at = np.arange(len(before))
    begins = np.searchsorted(before, before, side="left")
    count = np.searchsorted(before, before, side="right") - begins
    if (last - first <= count).any():
        return None
    found: Ints = first + (last - first) * (at - begins + 1) // (count + 1)
    return found


GAP = 256
"""Free places behind an event that comes in order: so many may come late before places are given anew."""
PARTS = 64
"""Parts of a segment that are put together before they are too many to look through."""


@dataclass
class Segment:
    """Events from the tick ``since`` on, up to that of the next segment.

    ``snapshot`` is of before the first of them; ``before``: how many events the stream had then; ``results``: raw
    tables of what they completed.
    """

    since: int
    snapshot: QuerySnapshot
    before: int
    parts: list[PlacedEvents] = field(default_factory=list)
    results: list[pa.Table] = field(default_factory=list)

    def add(self, events: PlacedEvents) -> None:
        """Take in events behind all others."""
        if len(self.parts) >= PARTS:
            self.parts = [PlacedEvents.joined(self.parts)]
        self.parts.append(events)

    def add_results(self, tables: Sequence[pa.Table]) -> None:
        """Take in raw results."""
        self.results += [table for table in tables if table.num_rows]
        if len(self.results) > PARTS:
            self.results = [pa.concat_tables(self.results).combine_chunks()]

    @property
    def events(self) -> PlacedEvents:
        """All events, in order."""
        self.parts = [PlacedEvents.joined(self.parts)]
        return self.parts[0]

    def __len__(self) -> int:
        return sum(map(len, self.parts))


def slots_in(results: pa.Table) -> Ints:
    """The key slot of each raw result."""
    slots: Ints = to_numpy(results.column(SLOT).combine_chunks())
    return slots


class Tail:
    """The segments of the stream, the events of the window before them, and events just taken back.

    Attributes
    ----------
    segments : list of Segment
        The first one reaches back as far as events may still change.
    passed : list of PlacedEvents
        Events that will not change, and that matches may still bind.
    removed : list of PlacedEvents
        Events that were taken back, while results with them are.
    last_place : int
        Of all events so far.
    in_order : int
        Events from the beginning of the stream on that came in order, as long as no other has come between them: their
        places tell the numbers of their rows.
    gap : int
        Places of two events that come in order are so far apart.
    base_place : int
        The last place before the first segment.
    has_twins : bool
        Whether several events may have one time and one id: what is kept then, is kept with those beside it.
    """

    def __init__(self) -> None:
        self.segments: list[Segment] = []
        self.passed: list[PlacedEvents] = []
        self.removed: list[PlacedEvents] = []
        self.gap = GAP
        self.last_place = -GAP
        self.base_place = -1
        self.in_order = 0
        self.has_twins = False

    def __len__(self) -> int:
        return sum(map(len, self.segments))

    @property
    def held(self) -> int:
        """Events that are held in all."""
        return len(self) + sum(map(len, self.passed))

    def next_places(self, events: int, gap: int = 0) -> Ints:
        """Places for events behind all others, so far apart."""
        gap = max(gap, self.gap)
        first, self.last_place = self.last_place, self.last_place + gap * events
        return np.arange(first + gap, self.last_place + gap, gap)

    def note_order(self, place: int, arrival: Ints) -> None:
        """Remember whether all events so far came in order, with these, of the rows ``arrival``, behind all others.

        ``place`` is that of the last one: the gaps between places behind all others are equal.
        """
        if not len(arrival) or arrival[0] != self.in_order:
            return
        last = self.in_order + len(arrival) - 1
        if arrival[-1] == last and place == last * self.gap and (arrival[1:] > arrival[:-1]).all():
            self.in_order = last + 1

    def segment_of(self, ticks: Ints) -> Ints:
        """The segments that events of these times belong to."""
        borders = np.array([segment.since for segment in self.segments[1:]], np.int64)
        return np.searchsorted(borders, ticks, side="right")

    def remove(self, number: int, arrivals: Ints) -> PlacedEvents:
        """Take events out of a segment, named by their rows; they can be looked up until ``removed`` is emptied."""
        segment = self.segments[number]
        which = np.isin(segment.events.arrival, arrivals)
        gone = segment.events.where(which)
        segment.parts = [segment.events.where(~which)]
        self.removed.append(gone)
        return gone

    def insert(self, number: int, events: Events, slot: Ints, id: str | None) -> PlacedEvents | None:  # noqa: A002
        """Put events, in order, into a segment, each in its place; None where there is no room between two others.

        Complexity: O(events of the segment), and of those between the first and the last of the new ones O(n log n).
        """
        self.in_order = 0
        segment = self.segments[number]
        old = segment.events
        first = int(np.searchsorted(old.tick, events.tick.min(), side="left"))
        last = int(np.searchsorted(old.tick, events.tick.max(), side="right"))
        both_ids = () if id is None else [old.data.slice(first, last - first).select([id]), events.data.select([id])]
        ids = [one_table(both_ids).column(0).combine_chunks()] if both_ids else ()
        tick = np.concatenate((old.tick[first:last], events.tick))
        order = in_order(tick, np.concatenate((old.tie[first:last], events.tie)), ids)
        is_new = order >= last - first
        low = int(old.place[first - 1]) if first else self._before(number)
        high = int(old.place[last]) if last < len(old) else self._behind(number, len(events))
        places = places_between(old.place[first:last], is_new, low, high)
        if places is None:
            return None
        placed = PlacedEvents.of(events, places, slot)  # the new ones are in order, by the same columns
        both = PlacedEvents.joined([old, placed])
        segment.parts = [both.take(np.argsort(both.place, kind="stable"))]
        self.last_place = max(self.last_place, int(places[-1]))
        return placed

    def _before(self, number: int) -> int:
        for segment in reversed(self.segments[:number]):
            for part in reversed(segment.parts):
                if len(part):
                    return int(part.place[-1])
        return self.base_place

    def _behind(self, number: int, events: int) -> int:
        """The first place behind a segment; behind the last one there is room for so many events."""
        for segment in self.segments[number + 1 :]:
            for part in segment.parts:
                if len(part):
                    return int(part.place[0])
        return self.last_place + self.gap * (events + 1)

    # --- letting go -----------------------------------------------------------------------------------------

    def pass_segments(self, segments: int) -> None:
        """The first segments will not change any more."""
        for segment in self.segments[:segments]:
            self.passed += [part for part in segment.parts if len(part)]
        del self.segments[:segments]
        if self.passed:
            self.base_place = max(self.base_place, int(self.passed[-1].place[-1]))

    def forget(self, floor: int) -> None:
        """Let go of events before the tick ``floor`` that will not change."""
        kept = 0
        while kept < len(self.passed) and self.passed[kept].tick[-1] < floor:
            kept += 1
        del self.passed[:kept]
        if len(self.passed) > PARTS:
            self.passed = [PlacedEvents.joined(self.passed)]

    def keep_only(self, places: Ints) -> None:
        """Let go of events that will not change and are not at these places."""
        named = [np.isin(part.place, places) for part in self.passed]
        if self.has_twins:
            kept_ticks = [part.tick[which] for part, which in zip(self.passed, named, strict=True)]
            ticks = np.concatenate([np.zeros(0, np.int64), *kept_ticks])
            named = [np.isin(part.tick, ticks) for part in self.passed]
        kept = [part.where(which) for part, which in zip(self.passed, named, strict=True)]
        whole = [part for part in kept if len(part)]
        self.passed = [PlacedEvents.joined(whole)] if whole else []

    # --- looking up -----------------------------------------------------------------------------------------

    def parts(self) -> list[PlacedEvents]:
        """All events held, in order but for those taken back, which come last."""
        of_segments = [part for segment in self.segments for part in segment.parts]
        return [part for part in (*self.passed, *of_segments, *self.removed) if len(part)]


class Lookup:
    """Finds events by their places.

    Parameters
    ----------
    parts : sequence of PlacedEvents
        Each ascending.
    places : int64 array
        Of all events that will be asked for; parts that have none of them are left out.
    schema : pyarrow.Schema
        The types of columns where there are no events.
    tail : Tail
        Where the parts are from.
    """

    def __init__(self, parts: Sequence[PlacedEvents], places: Ints, schema: pa.Schema, tail: Tail) -> None:
        self._schema = schema
        self._columns: dict[str, pa.ChunkedArray] = {}
        self._in_order, self._gap, self.has_twins = tail.in_order * tail.gap, tail.gap, tail.has_twins
        if not parts:
            self._parts, self._order, self._place = [], None, np.zeros(0, np.int64)
            return
        low, high = int(places.min(initial=2**62)), int(places.max(initial=-1))
        if self.has_twins:  # no event was taken back, so all parts are in order
            first = sum(part.place[-1] < low for part in parts)
            while 0 < first < len(parts) and parts[first - 1].tick[-1] == parts[first].tick[0]:
                first -= 1
            low = int(parts[first].place[0]) if first < len(parts) else low
        self._parts = [part for part in parts if part.place[-1] >= low and part.place[0] <= high]
        joined = np.concatenate([np.zeros(0, np.int64), *(part.place for part in self._parts)])
        is_sorted = bool((joined[1:] > joined[:-1]).all())
        self._order = None if is_sorted else np.argsort(joined, kind="stable")
        self._place = joined if self._order is None else joined[self._order]

    def find(self, places: Ints) -> Ints:
        """Where events stand among all."""
        at = np.searchsorted(self._place, places)
        if len(at) and at.max() >= len(self._place):
            raise impossible("an event that is not kept")  # only a state can name one
        return at if self._order is None else self._order[at]

    def arrivals(self, places: Ints) -> Ints:
        """In which row of the input events came."""
        if self._in_order and places.max(initial=-1) < self._in_order:
            return places // self._gap if self._gap > 1 else places
        arrival = np.concatenate([np.zeros(0, np.int64), *(part.arrival for part in self._parts)])
        if not self._in_order:
            result: Ints = arrival[self.find(places)]
            return result
        later = places >= self._in_order
        result = places // self._gap
        result[later] = arrival[self.find(places[later])]
        return result

    def ticks(self, places: Ints) -> Ints:
        """The times of events."""
        ticks: Ints = self._joined_ticks()[self.find(places)]
        return ticks

    def ticks_of(self, places: Ints, missing: Bools) -> pa.Array:
        """The same where some are ``missing``: null there."""
        ticks = np.zeros(len(places), np.int64)
        ticks[~missing] = self.ticks(places[~missing])
        return to_arrow(ticks, ~missing if missing.any() else None)

    def ties(self, places: Ints) -> Ints:
        """What ``Events.tie`` says of events."""
        tie: Ints = np.concatenate([np.zeros(0, np.int64), *(part.tie for part in self._parts)])[self.find(places)]
        return tie

    def twins(self, id: str, places: Ints) -> Ints:  # noqa: A002  (what users call it)
        """How many events of the same time and id stand before each.

        Complexity: O(events) where there may be some and several have one time.
        """
        number = np.zeros(len(places), np.int64)
        if not self.has_twins:
            return number
        tick, at = self._joined_ticks(), self.find(places)
        before = np.maximum(at - 1, 0)
        tied = np.flatnonzero((tick[before] == tick[at]) & (at > before))
        if not len(tied):
            return number
        some = np.flatnonzero(np.isin(tick, tick[at[tied]]))
        words = words_of_ids(self.take(id, self._place[some], np.zeros(len(some), np.bool_)))
        differs = np.logical_or.reduce([column[1:] != column[:-1] for column in (tick[some], *words)])
        begins = np.flatnonzero(np.append(True, differs))
        rank = np.arange(len(some)) - np.repeat(begins, np.diff(np.append(begins, len(some))))
        number[tied] = rank[np.searchsorted(some, at[tied])]
        return number

    def _joined_ticks(self) -> Ints:
        return np.concatenate([np.zeros(0, np.int64), *(part.tick for part in self._parts)])

    def take(self, column: str, places: Ints, missing: Bools) -> pa.Array:
        """Values of a column of some events; null where ``missing``."""
        if not self._parts and missing.all():
            return pa.nulls(len(places), self._schema.field(column).type)
        if column not in self._columns:
            table = one_table([part.data.select([column]) for part in self._parts])
            self._columns[column] = table.column(0)
        at = np.zeros(len(places), np.int64)
        at[~missing] = self.find(places[~missing])
        values = self._columns[column].take(to_arrow(at, ~missing if missing.any() else None))
        values = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
        return values.dictionary_decode() if pa.types.is_dictionary(values.type) else values
