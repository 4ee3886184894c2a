"""The events of a page: read once more, and only those that it shows are kept."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from acep_approx.arrays import Ints
from acep_approx.events.columns import can_be_text, readable
from acep_approx.events.roles import Roles
from acep_approx.events.source import BATCH_ROWS, Source
from acep_approx.events.stream import as_they_come, read_events
from acep_approx.events.writing.tables import plain_text
from acep_approx.pages.explorer import EventShown, MatchShown

MOST_COLUMNS, LONGEST = 6, 120
"""Columns shown that no query names, and characters of a value."""


@dataclass(frozen=True)
class EventColumns:
    """Which values of events are shown.

    Attributes
    ----------
    names : tuple of str
        For people: attributes as queries name them, then other columns.
    columns : tuple of str
        Their columns.
    used : int
        The first so many are those that queries name.
    """

    names: tuple[str, ...]
    columns: tuple[str, ...]
    used: int

    @classmethod
    def of(cls, roles: Roles, schema: pa.Schema, named: Iterable[str], hidden: Iterable[str]) -> EventColumns:
        """Those that are named, and some others of the input.

        Parameters
        ----------
        roles : Roles
        schema : pyarrow.Schema
        named : iterable of str
            Attributes; those that are no column are left out.
        hidden : iterable of str
            Attributes that are shown elsewhere: the keys.
        """
        away = {roles.time, roles.type, *map(roles.column, hidden)}
        used = [n for n in dict.fromkeys(named) if roles.column(n) in schema.names and roles.column(n) not in away]
        taken = away | set(map(roles.column, used))
        others = [name for name in readable(schema).names if name not in taken and can_be_text(schema.field(name).type)]
        names = (*used, *others[:MOST_COLUMNS])
        columns = (*map(roles.column, used), *others[:MOST_COLUMNS])
        return cls(names, columns, len(used))


def events_at(
    source: Source, roles: Roles, rows: Ints, shown: EventColumns, *, sort: bool, is_in_order: bool = True
) -> dict[int, EventShown]:
    """The events of some rows.

    Parameters
    ----------
    source : Source
        Read until the last of them.
    roles : Roles
    rows : numpy.ndarray of int64
        As results name them, in order, all different.
    shown : EventColumns
    sort : bool
        Whether events are sorted by time first.
    is_in_order : bool
        Whether they must come in order of time.

    Complexity: reads the columns shown; memory for the rows.
    """
    found: dict[int, EventShown] = {}
    if not len(rows):
        return found
    types = () if roles.type is None else (roles.type,)
    columns = tuple(dict.fromkeys([*types, *shown.columns]))
    if is_in_order:
        batches = read_events(source, roles, columns=columns, sort=sort)
    else:
        batches = as_they_come(source, roles, list(columns), BATCH_ROWS, 0)
    for batch in batches:
        numbers = source.late.original(np.arange(batch.first_row, batch.first_row + len(batch)))
        places = np.flatnonzero(np.isin(numbers, rows, assume_unique=True))
        if len(places):
            data = batch.data.take(pa.array(places))
            read = [texts(data.column(name)) for name in (*types, *shown.columns)]
            kinds = read.pop(0) if types else [None] * len(places)
            cells = zip(*read, strict=True) if read else iter([()] * len(places))
            ticks = batch.ticks[places].tolist()
            for row, tick, kind, values in zip(numbers[places].tolist(), ticks, kinds, cells, strict=True):
                found[row] = EventShown(tick, kind, tuple(values))
        if len(found) == len(rows):
            break
    return found


def in_time_order(matches: list[MatchShown], events: Mapping[int, EventShown]) -> list[MatchShown]:
    """The matches with their events in order of time, whatever their numbers; those that are not known stay."""
    return [
        replace(match, events=tuple(sorted(match.events, key=lambda bound: events[bound[1]].tick)))
        if all(row in events for _, row in match.events)
        else match
        for match in matches
    ]


def texts(column: pa.Array | pa.ChunkedArray) -> list[str | None]:
    """Values for people."""
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    type_ = column.type
    if pa.types.is_dictionary(type_):
        column = column.cast(type_.value_type)
    if pa.types.is_struct(column.type):
        values: list[str | None] = [None if value is None else str(value) for value in column.to_pylist()]
    else:
        values = plain_text(column, ", ").to_pylist()
    return [value if value is None or len(value) <= LONGEST else value[: LONGEST - 1] + "…" for value in values]
