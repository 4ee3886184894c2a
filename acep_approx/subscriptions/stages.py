"""Sets in two stages: what the queries of the first publish is passed on to those of the second, as rows of one table.

Queries that read what others publish may have other keys than these. Then two sets run them, each in shards of its own:
the first puts out, beside its results, a table of ``PassedColumns``, which has

* the events that a query of the second set reads, as they are, and
* what is published for it, each result with the columns of the event that completed it.

So the rows have an order, whatever shard they come of: that of these events, and behind each of them that of what it
completed (``QUERY``, then ``PLACE``). The second set knows the queries of the first, as it must know what they publish;
it takes their results out of the table, in the place of running them.

Ours. A set that runs as one meets the same events in the same order: see ``published.merged``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING
from zlib import crc32

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from acep_approx.arrays import Ints
from acep_approx.engines.columns import Listed
from acep_approx.events.columns import decoded, to_arrow, to_numpy
from acep_approx.events.reading.widening import common_type
from acep_approx.events.stream import EventBatch
from acep_approx.matching.choice import Shown
from acep_approx.matching.outputs.recent import Recent
from acep_approx.matching.outputs.tables import NO_REGISTERS, BindingColumns
from acep_approx.subscriptions.graph import NUMBER
from acep_approx.subscriptions.published import START, Publishing

if TYPE_CHECKING:
    from acep_approx.events.roles import Roles
    from acep_approx.subscriptions.members import Member

OWN = "_acep "
"""What the columns begin with that are none of the events."""
QUERY, PLACE = f"{OWN}query", f"{OWN}place"
"""Whose result a row is, by its number, or ``AN_EVENT``; and the place of the result among those of its shard."""
AN_EVENT = -1
COMPLETED_BY = " row"
"""The column of results that says which event completed each; no attribute has its name, as none has a blank there."""


class _PlacedColumns(BindingColumns):
    """The columns of matches, with the row of the last event that each binds."""

    def shown(
        self, listed: Listed, recent: Recent, registers: Mapping[str, pa.Array] = NO_REGISTERS
    ) -> dict[str, pa.Array]:
        """What users see, and what they do not."""
        last = np.full(len(listed), AN_EVENT)
        for ids in listed.single:
            np.maximum(last, ids, out=last)
        for offsets, ids in listed.lists:
            has = np.flatnonzero(np.diff(offsets))
            last[has] = np.maximum(last[has], np.maximum.reduceat(ids, offsets[:-1][has])) if len(has) else last[has]
        return {**super().shown(listed, recent, registers), COMPLETED_BY: to_arrow(last)}


PLACED = Shown(bindings=_PlacedColumns)
"""How results are shown that are passed on."""


@dataclass(frozen=True)
class PassedColumns:
    """What a set passes on.

    Parameters
    ----------
    streams : dict of str to pyarrow.Schema
        What is published for the second set, with the columns of its results.
    types : frozenset of str or None
        The types of events that queries of the second set read. None: any event may matter to them.
    keys : tuple of tuple of str
        By which columns the rows are matched apart, for each set of the second stage; none: they stay together.
    """

    streams: Mapping[str, pa.Schema]
    types: frozenset[str] | None
    keys: tuple[tuple[str, ...], ...]

    def schema(self, events: pa.Schema) -> pa.Schema:
        """The columns of the table, for events of these columns."""
        own = [(QUERY, pa.int64()), (PLACE, pa.int64())]
        shown = [
            (_result(stream, field.name), field.type) for stream, known in self.streams.items() for field in known
        ]
        apart = [(hash_of(number), pa.int64()) for number in range(len(self.keys))]
        return pa.schema([*events, *own, *shown, *apart])


def hash_of(number: int) -> str:
    """The column by which rows are matched apart in a set of the second stage."""
    return f"{OWN}hash {number}"


def _result(stream: str, name: str) -> str:
    return f"{OWN}{stream} {name}"


def columns_of(results: Sequence[pa.Schema], attributes: Sequence[str]) -> pa.Schema:
    """The columns of the results of queries that publish one stream, as far as they are of its events."""
    types: dict[str, pa.DataType] = {}
    for name in dict.fromkeys([START, "end", *attributes]):
        types[name] = pa.null()
        for known in results:
            wider = common_type(types[name], known.field(name).type)
            assert wider is not None, "who reads the stream was refused otherwise"
            types[name] = wider
    return pa.schema([*types.items()])


class Passing:
    """Collects what a set passes on, while it runs.

    Parameters
    ----------
    columns : PassedColumns
    events : pyarrow.Schema
        The columns of the events.
    roles : Roles
    has_events : bool
        Whether it passes events on, too: of several sets that get the same events one does.
    """

    def __init__(self, columns: PassedColumns, events: pa.Schema, roles: Roles, *, has_events: bool) -> None:
        self._columns, self._events, self._roles, self._has_events = columns, events, roles, has_events
        self._schema = columns.schema(events)
        self._parts: list[pa.Table] = []
        self._batch: EventBatch | None = None
        self._passed = 0

    def begin(self, batch: EventBatch) -> None:
        """Take in the events of a batch before it is run."""
        self._batch = batch
        if self._has_events and len(batch):
            events = self._chosen(batch.data.select(self._events.names))
            self._add(events, {QUERY: to_arrow(np.full(events.num_rows, AN_EVENT))}, events)

    def results(self, member: Member, table: pa.Table, completed_by: pa.ChunkedArray) -> None:
        """Take in results, with the rows of the events of the batch that completed them."""
        assert self._batch is not None, "a batch is run"
        assert member.publishing is not None, "it publishes"
        stream = str(member.publishing.entry.publish)
        if stream not in self._columns.streams or not table.num_rows:
            return
        at = self._batch.at(to_numpy(completed_by.combine_chunks()))
        events = self._batch.data.select(self._events.names).take(to_arrow(at))
        shown = {name: table.column(name).combine_chunks() for name in self._columns.streams[stream].names}
        own = {_result(stream, name): column for name, column in shown.items()}
        self._add(events, {QUERY: table.column(NUMBER).combine_chunks(), **own}, pa.RecordBatch.from_pydict(shown))

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

    def _add(self, events: pa.RecordBatch, own: dict[str, pa.Array], keyed: pa.RecordBatch) -> None:
        size = events.num_rows
        own |= dict(zip(events.schema.names, events.columns, strict=True))
        own[PLACE] = to_arrow(self._passed + np.arange(size))
        for number, keys in enumerate(self._columns.keys):
            own[hash_of(number)] = to_arrow(_hashed([keyed.column(k) for k in keys if k in keyed.schema.names], size))
        self._passed += size
        fields = zip(self._schema.names, self._schema.types, strict=True)
        columns = [own[name].cast(type_) if name in own else pa.nulls(size, type_) for name, type_ in fields]
        self._parts.append(pa.Table.from_arrays(columns, schema=self._schema))


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


class Given:
    """A batch of what another set has passed on.

    Parameters
    ----------
    batch : EventBatch

    Attributes
    ----------
    events : EventBatch
        The events among its rows, under the numbers of these rows.
    """

    def __init__(self, batch: EventBatch) -> None:
        self._number = to_numpy(batch.data.column(QUERY)).astype(np.int64)
        self._batch = batch
        at = np.flatnonzero(self._number == AN_EVENT)
        names = [name for name in batch.data.schema.names if not name.startswith(OWN)]
        data = batch.data.select(names).take(to_arrow(at))
        self.events = EventBatch(batch.first_row, batch.ticks[at], data, batch.first_row + at)

    def results(self, member: Member, publishing: Publishing) -> pa.Table:
        """The results of a member that are published, in order."""
        stream, data = str(publishing.entry.publish), self._batch.data
        at = to_arrow(np.flatnonzero(np.isin(self._number, member.numbers)))
        known = member.nothing().schema
        names = [START, "end", *publishing.attributes]
        shown = {name: data.column(_result(stream, name)).take(at) for name in dict.fromkeys(names)}
        columns = {name: column.cast(known.field(name).type) for name, column in shown.items()}
        return pa.table({NUMBER: data.column(QUERY).take(at), **columns})


def events_in(schema: pa.Schema) -> pa.Schema:
    """The columns of the events among those of a table that is passed on."""
    return pa.schema([field for field in schema if not field.name.startswith(OWN)])


def own_columns(schema: pa.Schema) -> Iterator[str]:
    """The other ones."""
    return (name for name in schema.names if name.startswith(OWN))
