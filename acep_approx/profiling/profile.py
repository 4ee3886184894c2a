"""What is in somebody's events; what each column is taken for, why, and how to say otherwise; and a first query."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from types import NoneType
from typing import Any

import numpy as np
import pyarrow as pa

from acep_approx.arguments import checked
from acep_approx.arrays import Ints
from acep_approx.errors import UsageError, expect
from acep_approx.events.columns import events_in_lists, plain_type, refuse_unreadable, to_arrow
from acep_approx.events.reading.files import find_files, named_paths
from acep_approx.events.reading.widening import one_table
from acep_approx.events.roles import Roles, open_times
from acep_approx.events.source import Source
from acep_approx.events.time import tick_unit
from acep_approx.events.time_formats import TimeFormat
from acep_approx.profiling import formatting
from acep_approx.profiling.columns import ColumnScan, TimeProfile, TimeScan, has_fractions, unit_of
from acep_approx.profiling.first_query import FirstQuery, ProfiledEvents, first_query
from acep_approx.profiling.logs import opened
from acep_approx.profiling.more_queries import more_queries
from acep_approx.profiling.roles import Pair, RoleFound, TypeAndKey, taken_roles, time_role
from acep_approx.profiling.seen import Look, SecondChoice, layout_words

KEPT_ROWS = 1_000_000
KEPT_BYTES = 128 * 2**20
"""So many of the first events are kept, for the first query."""
LOOKED_AT = 500
"""Columns that are looked at, where there are more: nobody reads on."""


class Scan:
    """What one pass over events finds.

    Parameters
    ----------
    source : Source
    given : dict
        The columns that were said to be ``time``, ``key`` and ``type``.
    unit : str or None
        The unit that was said.
    time_format : TimeFormat or None
        How times are written, as far as it was said.

    Attributes
    ----------
    columns : list of ColumnScan
    roles : Roles or None
        As a run takes them.
    time : RoleFound
    open_times : tuple of str
        Where no column is recognised as the time, although one holds times: why, and what to say. Else empty.
    unit : str or None
        Of the times: said, or plausible.
    times : TimeScan or None
        None where no column could be the time.
    schema : pyarrow.Schema
        The columns that are looked at.
    more_columns : int
        How many others there are.
    rows : int
    is_all : bool
        Whether there are no more rows.
    """

    def __init__(
        self, source: Source, given: dict[str, str | None], unit: str | None, time_format: TimeFormat | None
    ) -> None:
        self._source = source
        self._time_format = time_format
        self._given = given
        self.unit = unit
        refuse_unreadable(source.schema, [name for name in source.schema.names if name in given.values()])
        schema = source.readable
        self.roles: Roles | None = taken_roles(schema, given, unit, time_format) if schema.names else None
        played = [] if self.roles is None else [self.roles.time, self.roles.type, self.roles.key]
        others = [field for field in list(schema)[LOOKED_AT:] if field.name in (*given.values(), *played)]
        self.schema = pa.schema([*list(schema)[:LOOKED_AT], *others], schema.metadata)
        self.more_columns = len(schema) - len(self.schema)
        self.columns = [ColumnScan(field.name, field.type) for field in self.schema]
        self.open_times = open_times(source.schema) if self.roles is None else ()
        nothing = [pa.nulls(0, field.type) for field in self.schema]
        no_events = pa.RecordBatch.from_arrays(nothing, schema=self.schema)
        self.time = time_role(self.roles, given["time"], no_events, self.open_times)
        self.in_lists = events_in_lists(source.schema)
        self.times: TimeScan | None = None
        self.rows = 0
        self.is_all = True
        self._head: list[pa.RecordBatch] = []
        self._ticks: list[Ints] = []

    def read(self, most: int | None, on_progress: Callable[[int], None] | None) -> None:
        """Read the events, or so many of the first."""
        kept = 0
        for batch in self._batches(most):
            if self.rows == 0:
                self._begin(batch)
            for column, values in zip(self.columns, batch.columns, strict=True):
                column.add(values)
            ticks = None if self.times is None else self.times.add(batch.column(self.times.column))
            if kept < KEPT_BYTES and (room := KEPT_ROWS - sum(map(len, self._head))) > 0:
                kept += batch.nbytes
                self._head.append(batch.slice(0, room))
                self._ticks.append(np.zeros(len(batch), np.int64) if ticks is None else ticks[:room])
            self.rows += batch.num_rows
            if on_progress is not None:
                on_progress(self.rows)

    def _batches(self, most: int | None) -> Iterator[pa.RecordBatch]:
        left = most
        for batch in self._source.batches(self.schema.names):
            if left is not None:
                if left == 0 and batch.num_rows:
                    self.is_all = False
                    return
                self.is_all = batch.num_rows <= left
                batch = batch.slice(0, min(left, batch.num_rows))  # noqa: PLW2901
                left -= batch.num_rows
            if batch.num_rows:
                yield batch
            if not self.is_all:
                return

    def _begin(self, first: pa.RecordBatch) -> None:
        """Choose the column of the times, now that there are some."""
        self.time = time_role(self.roles, self._given["time"], first, self.open_times)
        column = self.time.best
        if column is None:
            return
        type_ = plain_type(first.schema.field(column).type)
        if self.unit is None and self._time_format is None:
            self.unit = unit_of(first.column(column)) if self.time.column else self.time.others[0].unit
            if self.unit is None and has_fractions(first.column(column)):
                self.unit = "s"
        unit = self.roles.unit if self.roles is not None and self.roles.time == column else None  # may be digits
        unit = unit or self.unit
        self.times = TimeScan(column, unit, tick_unit(type_, unit) is not None, self._time_format)

    def head(self) -> tuple[pa.Table, Ints]:
        """The first events, and their ticks."""
        if not self._head:
            return self.schema.empty_table(), np.zeros(0, np.int64)
        return one_table(self._head), np.concatenate(self._ticks)


@checked
def look(
    events: Any,
    *,
    time: str | None = None,
    key: str | None = None,
    type: str | None = None,  # noqa: A002  (the word of the query language)
    unit: str | None = None,
    rows: int | None = None,
    on_progress: Callable[[int], None] | None = None,
    **reading: Any,
) -> Look:
    """Look at some events: what is in them, what the columns are taken for, and a first query that has matches.

    Parameters
    ----------
    events : table, frame, dicts or paths
        As for ``Query.match``. What can be read only once is read.
    time, key, type, unit : str, optional
        As for ``Query.match``; inferred where not given, and said why.
    rows : int, optional
        Look at so many events only. Default: all.
    on_progress : callable, optional
        Called after each batch with the number of events looked at.
    **reading
        How files are read: ``format`` and others, as for ``open_source``. Rows that cannot be read are counted.

    Returns
    -------
    Look
        Prints itself; ``to_dict()`` has the same as data.

    Raises
    ------
    DataError
        The events cannot be read at all; ``ACEP-D002``: a column that was named is not there.
    UsageError
        ``ACEP-U126``: not a number of rows.

    Complexity: one pass. Memory does not grow with the input: at most ten thousand different values of each column,
    four million times and a million events are kept. What is beyond is estimated, and is said to be.

    Examples
    --------
    >>> names = ["login", "buy", "login", "login", "buy"]
    >>> seen = look([{"ts": ts, "user": "ab"[ts % 2], "action": name} for ts, name in enumerate(names)])
    >>> seen.rows, seen.time.column, seen.type.column, seen.type.best
    (5, 'ts', None, 'action')
    >>> print(seen.first.text)
    PATTERN SEQ(login a, buy b) WHERE [user] WITHIN 2
    >>> seen.first.matches, seen.first.options
    (1, {'type': 'action'})
    """
    expect("rows", rows, (int, NoneType), "a whole number")
    if rows is not None and rows < 1:
        raise UsageError(f"rows is {rows}", code="ACEP-U126", hint="look at one row at least, or leave it out for all")
    counting = {} if isinstance(events, Source) else {"on_malformed": "skip"}
    paths = _paths(events)
    source, reading, guessed = opened(events, paths, time, counting, reading)
    scan = Scan(source, {"time": time, "key": key, "type": type}, unit, TimeFormat.of(reading.get("time_format")))
    scan.read(rows, on_progress)
    given: dict[str, Any] = {"time": time, "key": key, "type": type}
    type_, key_, other = TypeAndKey(scan.columns, scan.rows, scan.time.best, scan.head()).roles(scan.roles, given)
    given |= reading
    if source.malformed.count:
        given["on_malformed"] = "skip"
    files = _files(paths, "lines" if reading.get("line_format") else reading.get("format"))
    times = None if scan.times is None else scan.times.profile()
    unseen = [f"{scan.more_columns:,} more columns, which were not looked at"] if scan.more_columns else []
    columns = tuple(column.profile() for column in scan.columns)
    first, more = _queries(scan, times, (type_, key_), given, paths)
    return Look(
        name="these events" if paths is None else ", ".join(paths),
        rows=scan.rows,
        is_all=scan.is_all,
        size=sum(file.stat().st_size for file in files) if files else None,
        understood=(*layout_words(source, len(files)), *guessed, *unseen),
        columns=columns,
        time=scan.time,
        type=type_,
        key=key_,
        second=None if other is None else _second(other, (type_, key_), given | {"unit": unit, "rows": rows}, paths),
        unit=scan.unit,
        is_unit_said=unit is not None,
        times=times,
        types=next((column.frequent for column in columns if column.name == type_.best), ()),
        malformed=source.malformed.count,
        reasons=tuple(source.malformed.reasons),
        first=first,
        more=more,
        is_python=paths is None,
    )


def _paths(events: Any) -> list[str] | None:
    if isinstance(events, str | Path):
        return [str(events)]
    if isinstance(events, list | tuple) and events and all(isinstance(item, str | Path) for item in events):
        return [str(item) for item in events]
    return None


def _files(paths: list[str] | None, format_: str | None) -> list[Path]:
    if paths is None or "-" in paths:
        return []
    if any(not path.is_file() and not path.is_dir() for name in paths for path in named_paths(name)):
        return []
    return [file.path for file in find_files(paths, format_)]


def _second(
    other: Pair, roles: tuple[RoleFound, RoleFound], given: dict[str, Any], paths: list[str] | None
) -> SecondChoice:
    """The type and the key that would do about as well, with what takes them."""
    chosen = {role.role: getattr(other, role.role) for role in roles if role.column is None}
    said = {name: value for name, value in (given | chosen).items() if value is not None}
    said.pop("on_malformed", None)  # looking never stops at a row
    return SecondChoice(other.type, other.key, formatting.look_command(paths, said))


def _queries(
    scan: Scan, times: TimeProfile | None, roles: tuple[RoleFound, RoleFound], given: dict[str, Any], paths: Any
) -> tuple[FirstQuery, tuple[FirstQuery, ...]]:
    """The first query, and others."""
    lacks = _lacking(scan)
    if lacks or times is None:
        return FirstQuery(lacks=lacks or "there are no times"), ()
    assert scan.times is not None, "there are times"
    options = given | {"unit": scan.unit, "sort": scan.times.late > 0, "time": given["time"]}
    if scan.time.column is None:  # it must be said, as none is taken
        options["time"] = given["time"] or scan.time.best
    wrong = scan.times.missing + scan.times.unreadable
    options |= {"on_malformed": "skip"} if wrong else {}
    options = {name: value for name, value in options.items() if value not in (None, False)}
    table, ticks = scan.head()
    if wrong:
        is_read = np.flatnonzero(ticks > np.iinfo(np.int64).min)
        table, ticks = table.take(to_arrow(is_read)), ticks[is_read]
    known = ProfiledEvents(table, ticks, scan.time, *roles, times.is_time, options)
    first = first_query(known, paths)
    return first, more_queries(known, first, paths)


def _lacking(scan: Scan) -> str:
    """Why there can be no query; empty where there can."""
    if scan.rows == 0:
        return "there are no events"
    if scan.open_times:
        return ": ".join(scan.open_times)
    if scan.times is None:
        why = scan.in_lists or (
            "events need one: times, dates, or numbers that rise; "
            "where rows stand in order, a column that numbers them will do"
        )
        return f"no column can be the time, and {why}"
    wrong = scan.times.missing + scan.times.unreadable
    if 2 * wrong > scan.rows or (wrong and not scan.times.is_counted):
        more = "" if scan.times.is_counted else "at least "
        said = f"{more}{wrong:,} rows have no time that can be read, and a run stops at the first: {scan.times.reason}"
        return f"{said}; {scan.times.hint}".rstrip("; ")
    return ""
