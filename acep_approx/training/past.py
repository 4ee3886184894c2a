"""Past events in memory, where they are cut to see what a history would find, and into which portions.

A portion has all events of some keys, so that each can be run on its own, here or elsewhere. What a run cost is known
only up to the end of the chunk that it is looked at in, and chunks end where enough events have come. So counts depend
a little on which events are run together; portions lay that down. Source: ours.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any
from zlib import crc32

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from acep_approx.arrays import Ints
from acep_approx.errors import expect
from acep_approx.events.columns import encode_text, plain_type, text_codes, to_arrow, to_numpy
from acep_approx.events.keys import as_key
from acep_approx.events.reading.widening import one_table
from acep_approx.events.roles import Roles
from acep_approx.events.source import BATCH_ROWS, open_source
from acep_approx.events.stream import EventBatch, read_events
from acep_approx.matching.execution import Execution
from acep_approx.matching.outputs.kinds import POINTS
from acep_approx.planning.planner import Plan

PORTION = 1 << 17
"""Events of a portion, as a rule; at most twice as many."""
BITS = 16
"""Of a hash; so many portions at most, by their logarithm."""
SPREAD = 40_503
"""Knuth's multiplier for 16 bits, 2**16 over the golden ratio: it parts keys that differ in few bits."""
AGAIN = 31
"""What the hash of the columns before is multiplied with."""
EXACT = 2.0**53
"""Floating point keys are taken by their whole part below this size; all others are one."""


def portions(plan: Plan, events: int, each: int = PORTION) -> int:
    """How many portions a past is cut into: a power of two, by its number of events alone.

    Parameters
    ----------
    plan : Plan
    events : int
        Of the whole past.
    each : int, default 131,072
        Events of a portion, at least, if keys were of one size.

    Returns
    -------
    int
        1 where the query has no key, or asks which events follow one another in the whole stream.

    Examples
    --------
    >>> from acep_approx import compile_query
    >>> plan = compile_query("PATTERN SEQ(A a, B b) WHERE [key] WITHIN 5").plan
    >>> [portions(plan, events) for events in (0, 262_143, 262_144, 10_000_000)]
    [1, 1, 2, 64]
    """
    if not plan.query.equivalences or plan.counted == "stream":
        return 1
    return int(1 << min(max((events // each).bit_length() - 1, 0), BITS))


def portion_of(columns: Sequence[pa.Array], number: int) -> Ints:
    """The portion of each event, by a hash of its key that is the same in every process.

    Parameters
    ----------
    columns : sequence of pyarrow.Array
        The columns of the key.
    number : int
        Of portions.

    Returns
    -------
    int64 array
        From 0; 0 where any of the columns is null.

    Complexity: O(events), and a checksum for each distinct text.

    Examples
    --------
    >>> portion_of([pa.array(["ann", "bob", None, "ann"])], 8).tolist()
    [2, 4, 0, 2]
    """
    found = np.zeros(len(columns[0]), np.uint64)
    known = np.ones(len(columns[0]), np.bool_)
    for column in columns:
        words = _words(as_key(column))
        for by in (32, 16):
            words = words ^ (words >> np.uint64(by))
        found = (found * np.uint64(AGAIN) + (words & np.uint64(2**BITS - 1))) & np.uint64(2**BITS - 1)
        known &= to_numpy(column.is_valid())
    spread = (found * np.uint64(SPREAD)) & np.uint64(2**BITS - 1)
    return np.where(known, (spread * np.uint64(number)) >> np.uint64(BITS), np.uint64(0)).astype(np.int64)


def _words(column: pa.Array) -> npt.NDArray[np.uint64]:
    """64 bits for each value: checksums of texts, whole numbers as they are; anything where there is none."""
    type_ = plain_type(column.type)
    if pa.types.is_null(type_):
        return np.zeros(len(column), np.uint64)
    if pa.types.is_string(type_):
        coded = encode_text(column)
        sums = [crc32(text.encode()) for text in coded.dictionary.to_pylist()]
        return np.array([*sums, 0], np.uint64)[text_codes(coded)]
    plain = column.dictionary_decode() if pa.types.is_dictionary(column.type) else column
    if pa.types.is_floating(type_):
        values = to_numpy(pc.fill_null(plain.cast(pa.float64()), 0.0))
        is_whole = np.abs(values) < EXACT
        return np.where(is_whole, np.floor(np.where(is_whole, values, 0.0)), 0.0).astype(np.int64).view(np.uint64)
    if pa.types.is_timestamp(type_):
        plain = plain.cast(pa.timestamp("us", tz=type_.tz), safe=False)
    elif pa.types.is_date(type_):
        plain = plain.cast(pa.date32()).cast(pa.int32())
    whole = to_numpy(pc.fill_null(plain.cast(pa.int64(), safe=False), 0))
    return whole.astype(np.int64).view(np.uint64)


# --- the past -----------------------------------------------------------------------------------------------

HELD_OUT = 0.4
"""Share of the past, its end, that readings are judged on; the graph learns from it afterwards."""
MOST_HELD_OUT = 1 << 18
"""Events that are held out at most."""
MOST_TRIED = 1 << 20
"""Events ahead of those that readings are tried with at most."""


class Past:
    """Past events, read once: in memory, of the columns that the query asks for.

    The same events are cut into the same batches, however they came.

    Parameters
    ----------
    plan : Plan
    events : what ``Query.match`` takes
    roles : dict
        ``time``, ``key``, ``type``, ``unit``, and how files are read: as for ``Query.match``.
    skipped : int, default 0
        Events ahead of these, where these are only the end of the past.

    Attributes
    ----------
    schema : pyarrow.Schema
    roles : Roles
    window : int
        Of the query, in ticks.
    ticks : int64 array, shape (events,)
    data : pyarrow.Table
        The columns that the query asks for.
    """

    def __init__(self, plan: Plan, events: Any, roles: dict[str, Any], skipped: int = 0) -> None:
        self.skipped = skipped
        names = ("time", "key", "type", "unit", "start", "time_format")
        named = {name: roles.pop(name) for name in names if name in roles}
        sort = roles.pop("sort", False)
        expect("sort", sort, bool, "True or False")
        times = {name: named.get(name) for name in ("time", "time_format")}
        source = open_source(events, **(roles | times))
        pipeline = Execution(plan, output=POINTS, **named).bind(source.schema)
        self.roles: Roles = pipeline.roles
        self.window = pipeline.window
        self.key_columns = tuple(self.roles.column(e.name) for e in plan.query.equivalences)
        batches = list(read_events(source, pipeline.roles, columns=pipeline.columns, sort=sort))
        self.ticks: Ints = np.concatenate([np.zeros(0, np.int64), *(batch.ticks for batch in batches)])
        self.data: pa.Table = pa.table({})
        if batches:
            self.data = one_table([batch.data for batch in batches]).combine_chunks()
        known = {field.name: plain_type(field.type) for field in self.data.schema}
        self.schema = pa.schema([(field.name, known.get(field.name, field.type)) for field in source.schema])

    def __len__(self) -> int:
        return len(self.ticks)

    def bind(self, matcher: Execution) -> None:
        """Bind a matcher to the columns of these events."""
        matcher.bind(self.schema, self.roles)

    def batches(self, first: int = 0, last: int | None = None) -> Iterator[EventBatch]:
        """The events from one place to another, numbered from the first one of the past."""
        last = len(self) if last is None else last
        for start in range(first, last, BATCH_ROWS):
            rows = min(BATCH_ROWS, last - start)
            row = self.skipped + start
            yield event_batch(row, self.ticks[start : start + rows], self.data.slice(start, rows))

    def portions(self, number: int) -> Iterator[Iterator[EventBatch]]:
        """The batches of each portion of the past; in each of them events are numbered from 0.

        Complexity: O(events), and memory for their order.
        """
        if number == 1:
            yield self.batches()
            return
        columns = [self.data.column(name) for name in self.key_columns]
        parts = [
            portion_of([column.slice(start, BATCH_ROWS).combine_chunks() for column in columns], number)
            for start in range(0, len(self), BATCH_ROWS)
        ]
        portion = np.concatenate(parts)
        order = np.argsort(portion.astype(np.uint16), kind="stable")
        ends = np.cumsum(np.bincount(portion, minlength=number))
        for rows in np.split(order, ends[:-1]):
            if len(rows):
                yield self._taken(rows)

    def _taken(self, rows: Ints) -> Iterator[EventBatch]:
        for start in range(0, len(rows), BATCH_ROWS):
            some = rows[start : start + BATCH_ROWS]
            yield event_batch(start, self.ticks[some], self.data.take(to_arrow(some)))

    def cut(self) -> tuple[int, int]:
        """Where the events begin that readings are tried with, and those that they are judged on.

        The latter are the last 40%, at most 2**18; before them come at most 2**20 others. No tick is torn, so the cuts
        do not depend on the order of its events.
        """
        whole = self.skipped + len(self)
        held_out = self._tick_begins(max(int((1 - HELD_OUT) * whole), whole - MOST_HELD_OUT) - self.skipped)
        return self._tick_begins(max(held_out - MOST_TRIED, 0)), held_out

    def _tick_begins(self, place: int) -> int:
        return int(np.searchsorted(self.ticks, self.ticks[place])) if len(self) else 0


def event_batch(first_row: int, ticks: Ints, data: pa.Table) -> EventBatch:
    """A batch whose texts are numbered in order of appearance, so that it is the same wherever it was made."""
    arrays = []
    for column in data.columns:
        values = column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column
        whole = values.combine_chunks()
        if isinstance(whole, pa.ChunkedArray):  # older versions of Arrow give one where there are no rows
            whole = pa.concat_arrays(whole.chunks) if whole.num_chunks else pa.array([], whole.type)
        arrays.append(encode_text(whole))
    return EventBatch(first_row, ticks, pa.RecordBatch.from_arrays(arrays, names=data.column_names))
