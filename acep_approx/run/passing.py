"""What a program passes on to one of a second stage: rows of one table, which has an order wherever they come from.

Queries that read what others publish, and rules that read what others write, may have other keys than these. Then two
programs run them, each in shards of its own. The first puts out, beside its results, a table of ``PassedColumns``:

* the events that the second one reads, as they are, and
* what is published, or written, each with the columns of the event that completed it.

The order of the rows is that of these events, and behind each of them that of what it completed (``MAKER``, then
``PLACE``), whatever shard they come from. Ours.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from zlib import crc32

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from acep_approx.arrays import Ints
from acep_approx.events.columns import decoded, to_arrow, to_numpy
from acep_approx.events.roles import Roles
from acep_approx.events.stream import EventBatch

OWN = "_acep "
"""What the columns begin with that are none of the events."""
MAKER, PLACE = f"{OWN}maker", f"{OWN}place"
"""By its number what made a row, or ``AN_EVENT``; and the place of the row among those of its shard."""
AN_EVENT = -1
Columns = dict[str, pa.Array]
TO_ALL = -1
"""In the place of a number that tells keys apart: every shard needs the row."""


@dataclass(frozen=True)
class PassedColumns:
    """What a program passes on.

    Parameters
    ----------
    streams : dict of str to pyarrow.Schema
        What is published or written, by the name of the stream or of the table, with its columns.
    types : frozenset of str or None
        The types of events that the second stage reads. None: any event may matter to it.
    keys : tuple of tuple of str
        By which columns the rows are matched apart, for each program of the second stage; none: they stay together.
    to_all : bool
        Whether all shards of the second stage need what is published or written.
    """

    streams: Mapping[str, pa.Schema]
    types: frozenset[str] | None
    keys: tuple[tuple[str, ...], ...]
    to_all: bool = False

    def schema(self, events: pa.Schema) -> pa.Schema:
        """The columns of the table, for events of these columns."""
        own = [(MAKER, pa.int64()), (PLACE, pa.int64())]
        shown = [
            (column_of(stream, field.name), field.type) for stream, known in self.streams.items() for field in known
        ]
        apart = [(hash_of(number), pa.int64()) for number in range(len(self.keys))]
        return pa.schema([*events, *own, *shown, *apart])


def hash_of(number: int) -> str:
    """The column by which rows are matched apart in a program of the second stage."""
    return f"{OWN}hash {number}"


def column_of(stream: str, name: str) -> str:
    """What a column of a stream, or of a table, is called in what is passed on."""
    return f"{OWN}{stream} {name}"


class Passing:
    """Collects what a program passes on, while it runs.

    Parameters
    ----------
    columns : PassedColumns
    events : pyarrow.Schema
        The columns of the events.
    roles : Roles
    has_events : bool
        Whether it passes events on, too: of several programs that get the same events one does.

    Attributes
    ----------
    streams : tuple of str
        What is passed on of what is published, or written.
    """

    def __init__(self, columns: PassedColumns, events: pa.Schema, roles: Roles, *, has_events: bool) -> None:
        self._columns, self._events, self._roles, self._has_events = columns, events, roles, has_events
        self._schema = columns.schema(events)
        self.streams = tuple(columns.streams)
        self._parts: list[pa.Table] = []
        self._batch: EventBatch | None = None
        self._passed = 0

    def begin(self, batch: EventBatch) -> None:
        """Take in the events of a batch before it is run."""
        self._batch = batch
        if self._has_events and len(batch):
            events = self._chosen(batch.data.select(self._events.names))
            self._add(events, {MAKER: to_arrow(np.full(events.num_rows, AN_EVENT))}, _columns(events))

    def results(self, stream: str, makers: pa.Array, shown: pa.Table, rows: Ints) -> None:
        """Take in what is published as a stream, or written to a table.

        Parameters
        ----------
        stream : str
        makers : pyarrow.Array of int64
            By their numbers what made them.
        shown : pyarrow.Table
            Its columns, with others.
        rows : int64 array
            The events of the batch that completed them.
        """
        assert self._batch is not None, "a batch is run"
        if stream in self.streams and len(rows):
            events = self._batch.data.select(self._events.names).take(to_arrow(self._batch.at(rows)))
            known = _columns(shown)
            own = {column_of(stream, name): known[name] for name in self._columns.streams[stream].names}
            self._add(events, {MAKER: makers, **own}, None if self._columns.to_all else known)

    def take(self) -> pa.Table:
        """What there is to pass on since the last call."""
        parts, self._parts = self._parts, []
        return pa.concat_tables(parts) if parts else self._schema.empty_table()

    def _chosen(self, events: pa.RecordBatch) -> pa.RecordBatch:
        """The events that somebody reads."""
        types, type_ = self._columns.types, self._roles.type
        if types is None or type_ is None:
            return events
        is_read = pc.is_in(decoded(events.column(type_)), pa.array(sorted(types), pa.string()))
        return events.filter(is_read)

    def _add(self, events: pa.RecordBatch, own: dict[str, pa.Array], keyed: Columns | None) -> None:
        size = events.num_rows
        own |= _columns(events)
        own[PLACE] = to_arrow(self._passed + np.arange(size))
        for number, keys in enumerate(self._columns.keys):
            known = None if keyed is None else [keyed[key] for key in keys if key in keyed]
            own[hash_of(number)] = to_arrow(np.full(size, TO_ALL) if known is None else _hashed(known, size))
        self._passed += size
        fields = zip(self._schema.names, self._schema.types, strict=True)
        columns = [own[name].cast(type_) if name in own else pa.nulls(size, type_) for name, type_ in fields]
        self._parts.append(pa.Table.from_arrays(columns, schema=self._schema))


def _columns(table: pa.Table | pa.RecordBatch) -> Columns:
    """The columns of a table by their names, each in one piece."""
    columns = (one.combine_chunks() if isinstance(one, pa.ChunkedArray) else one for one in table.columns)
    return dict(zip(table.schema.names, columns, strict=True))


def _hashed(columns: Sequence[pa.Array], size: int) -> Ints:
    """A number for each row, the same where values are equal, whatever their types; from 0 on."""
    found = np.zeros(size, np.int64)
    for column in columns:
        values = decoded(column)
        if pa.types.is_date(values.type) or pa.types.is_timestamp(values.type):
            values = values.cast(pa.timestamp("us"), safe=False).cast(pa.int64())
        if pa.types.is_boolean(values.type) or pa.types.is_decimal(values.type) or pa.types.is_integer(values.type):
            values = values.cast(pa.float64(), safe=False)
        coded = (pc.add(values, 0.0) if pa.types.is_floating(values.type) else values).dictionary_encode()
        of_value = np.array([crc32(str(one).encode()) for one in coded.dictionary.to_pylist()] or [0], np.int64)
        at = to_numpy(coded.indices.fill_null(0)).astype(np.int64)
        found = (found * 31 + np.where(to_numpy(coded.is_null()), 0, of_value[at])) & ((1 << 40) - 1)
    return found


def events_in(schema: pa.Schema) -> pa.Schema:
    """The columns of the events among those of a table that is passed on."""
    return pa.schema([field for field in schema if not field.name.startswith(OWN)])


def own_columns(schema: pa.Schema) -> Iterator[str]:
    """The other ones."""
    return (name for name in schema.names if name.startswith(OWN))
