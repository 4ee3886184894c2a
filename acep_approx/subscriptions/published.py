"""What queries publish, as events: rows of results, and where they stand between the events of the stream."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from acep_approx.arrays import Ints
from acep_approx.errors import DataError
from acep_approx.events.columns import encode_text, to_arrow, to_numpy
from acep_approx.events.reading.widening import common_type, one_table
from acep_approx.events.roles import Roles
from acep_approx.events.stream import EventBatch
from acep_approx.events.time import tick_unit
from acep_approx.matching.stream_batch import starts_of
from acep_approx.subscriptions.graph import NUMBER, Entry, is_hidden

BEGAN = "$start"
"""The column that says when each event began, above level 0; no attribute of a text has its name."""
START, TYPE = "start", "type"
"""Columns that published events have, beside the time of the stream: when a result began; of which stream they are
(where no column of the events says their type)."""
MOST_EVENTS = 10_000_000
"""Events that the results of a query may be in one batch; each takes tens of bytes."""
OF_RESULTS = frozenset((NUMBER, "errors", "start", "end", "missing", "times"))


FIRST_ID = 1 << 43
"""Published events have names from here on, which no row of the stream has."""


def rows_shown(ids: Ints) -> Ints:
    """Names of events as users see them: rows of the stream, and -1, -2 and so on for those that were published.

    Examples
    --------
    >>> rows_shown(np.array([7, FIRST_ID, FIRST_ID + 1])).tolist()
    [7, -1, -2]
    """
    return np.where(ids >= FIRST_ID, FIRST_ID - 1 - ids, ids)


def roles_above(roles: Roles) -> Roles:
    """The roles of columns where published events are among the others."""
    return replace(roles, type=roles.type or TYPE, start=BEGAN)


@dataclass(frozen=True)
class Published:
    """Results that are events of the stream ``name``.

    ``number`` are the queries that they are of, ``level`` the level these run on.
    """

    name: str
    level: int
    number: Ints
    ticks: Ints
    ids: Ints
    began: pa.Array
    data: dict[str, Any]

    def __len__(self) -> int:
        return len(self.ticks)


class Publishing:
    """Makes events of the results of a query, or of all that have its template.

    Parameters
    ----------
    entry : Entry
        It publishes.
    results : pyarrow.Schema
        Of its results.
    roles : Roles

    Attributes
    ----------
    attributes : tuple of str
        Of the events: what SELECT or RETURN names.
    schema : pyarrow.Schema
        Of these.

    Raises
    ------
    DataError
        ``ACEP-D080``: an attribute has the name of the time or the type.
    """

    def __init__(self, entry: Entry, results: pa.Schema, roles: Roles) -> None:
        self.entry = entry
        self.attributes = tuple(output.name for output in entry.plan.query.outputs)
        if entry.plan.cel is not None:
            self.attributes = tuple(name for name in results.names if name not in OF_RESULTS)
        own = {roles.time: "the time", roles_above(roles).type: "the type"}
        for name in own.keys() & set(self.attributes):
            raise DataError(
                f"{entry.id!r} publishes {name!r} as an attribute of {_named(entry)}, and this column is {own[name]}",
                code="ACEP-D080",
                hint="give it another name; the time of a published event is its end, its type the name of its stream",
            )
        shown = [START, *(name for name in self.attributes if name != START)]  # when it began is an attribute, too
        self.schema = pa.schema([results.field(name) for name in shown if name in results.names])

    def events(self, table: pa.Table, first_id: int) -> Published:
        """The events that some results are; their names count from ``first_id``.

        Raises
        ------
        DataError
            ``ACEP-D083``: they are too many, as results were derived in so many ways.
        """
        if "times" in table.column_names:
            times = to_numpy(table.column("times").combine_chunks())
            if (times != 1).any():
                if times.sum(dtype=float) > MOST_EVENTS:
                    raise DataError(
                        f"{self.entry.id!r} publishes results that were derived {times.sum(dtype=float):.2g} times in "
                        f"one batch, and each is an event of {_named(self.entry)}: more than {MOST_EVENTS:,}",
                        code="ACEP-D083",
                        hint="let it find less: WITHIN, a condition in NEXT or FOLD; or push fewer events at a time",
                    )
                table = table.take(to_arrow(np.repeat(np.arange(table.num_rows), times)))
        ends = to_numpy(table.column("end").combine_chunks().cast(pa.int64()))
        data = {name: encode_text(table.column(name).combine_chunks()) for name in self.schema.names}
        ids = FIRST_ID + first_id + np.arange(table.num_rows)
        number, began = to_numpy(table.column(NUMBER).combine_chunks()), table.column("start").combine_chunks()
        return Published(str(self.entry.publish), self.entry.level, number, ends, ids, began, data)


def _named(entry: Entry) -> str:
    """The stream that a query publishes, as messages name it."""
    return "a stream of its own" if is_hidden(str(entry.publish)) else repr(entry.publish)


def unified(base: pa.Schema, streams: Sequence[Publishing]) -> pa.Schema:
    """The columns of the events of a stream together with those that are published.

    Raises
    ------
    DataError
        ``ACEP-D081``: two publish one stream with different attributes; ``ACEP-D082``: a name stands for columns whose
        types do not go together.
    """
    types = {field.name: (field.type, "the events") for field in base}
    alike: dict[str, Publishing] = {}
    for one in streams:
        name = str(one.entry.publish)
        first = alike.setdefault(name, one)
        if set(first.attributes) != set(one.attributes):
            theirs, ours = (", ".join(some.attributes) or "none" for some in (first, one))
            raise DataError(
                f"{first.entry.id!r} and {one.entry.id!r} publish {name!r} with different attributes: {theirs}; {ours}",
                code="ACEP-D081",
                hint="name the same ones, with AS, or publish under another name",
            )
        for field in one.schema:
            known, whose = types.get(field.name, (pa.null(), ""))
            wider = common_type(known, field.type)
            if wider is None:
                raise DataError(
                    f"the column {field.name!r} is {known} in {whose}, and {field.type} in what {one.entry.id!r} "
                    f"publishes as {_named(one.entry)}",
                    code="ACEP-D082",
                    hint="give the attribute another name, with AS",
                )
            types[field.name] = (wider, whose or f"what {one.entry.id!r} publishes as {_named(one.entry)}")
    return pa.schema([(name, type_) for name, (type_, _) in types.items()])


def merged(
    base: EventBatch,
    parts: Sequence[Published],
    columns: Sequence[str],
    roles: Roles,
    first_row: int,
    moments: EventBatch | None = None,
) -> EventBatch:
    """The events of a batch with those published: by time, then those of the stream first, by level, by query.

    Parameters
    ----------
    base : EventBatch
        At no time of which more events will come.
    parts : sequence of Published
        At times of these events.
    columns : sequence of str
        What is asked for; NULL where an event does not have it.
    roles : Roles
        Of the events of the stream.
    first_row : int
        The number of the first event, published ones counted.
    moments : EventBatch, optional
        Has a row at each time of ``parts``. Default: ``base``.
    """
    moments = base if moments is None else moments
    ids = base.first_row + np.arange(len(base)) if base.ids is None else base.ids
    found = [_of_base(base, columns, roles), *(_of_part(moments, part, roles) for part in parts)]
    sizes = [len(base), *map(len, parts)]
    shown = [
        pa.RecordBatch.from_pydict({name: own[name] if name in own else pa.nulls(size) for name in columns})
        for own, size in zip(found, sizes, strict=True)
    ]
    if not parts:
        return EventBatch(first_row, base.ticks, shown[0], ids)
    all_ids = np.concatenate([ids, *(part.ids for part in parts)])
    times = np.concatenate([base.ticks, *(part.ticks for part in parts)])
    level = np.repeat([-1, *(part.level for part in parts)], sizes)
    number = np.concatenate([np.full(len(base), -1), *(part.number for part in parts)])
    order = np.lexsort((number, level, times))
    table = one_table(shown).combine_chunks().take(to_arrow(order))
    arrays = [encode_text(column.combine_chunks()) for column in table.columns]
    data = pa.RecordBatch.from_arrays(arrays, names=table.column_names)
    return EventBatch(first_row, times[order], data, all_ids[order])


def _of_base(base: EventBatch, columns: Sequence[str], roles: Roles) -> dict[str, pa.Array]:
    own = dict(zip(base.data.schema.names, base.data.columns, strict=True))
    if BEGAN in columns:
        began = to_arrow(starts_of(base, roles))
        own[BEGAN] = began.cast(began_type(base.data.column(roles.time).type, roles.unit))
    return own


def began_type(time: pa.DataType, unit: str | None) -> pa.DataType:
    """The type of the column that says when events began."""
    return pa.int64() if tick_unit(time, unit) is None else pa.timestamp("us", tz="UTC")


def _of_part(moments: EventBatch, part: Published, roles: Roles) -> dict[str, pa.Array]:
    own = dict(part.data)
    own[BEGAN] = part.began
    # the end of a result is the time of an event of the stream, so that it need not be made of the tick again
    own[roles.time] = moments.data.column(roles.time).take(to_arrow(np.searchsorted(moments.ticks, part.ticks)))
    own[str(roles_above(roles).type)] = pa.DictionaryArray.from_arrays(
        to_arrow(np.zeros(len(part), np.int64)).cast(pa.int32()), pa.array([part.name])
    )
    return own
