"""A batch of a stream with what queries ask of it: each thing is computed once, for all of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeVar

import numpy as np
import pyarrow as pa

from acep_approx.arrays import Bools, ByKey, Ints, by_key
from acep_approx.automaton.letters import Truths
from acep_approx.engines.runs.event_columns import EventColumns
from acep_approx.errors import DataError
from acep_approx.events.columns import to_arrow
from acep_approx.events.roles import Roles
from acep_approx.events.stream import EventBatch
from acep_approx.events.time import tick_unit, ticks
from acep_approx.events.usable_rows import check_begun
from acep_approx.kernels.runs.vm import NULL
from acep_approx.query.syntax import Attribute, Expression

Column = TypeVar("Column", Ints, Bools)


class Together(Protocol):
    """Results of several queries that are made into one table."""

    def add(self, found: Any) -> None:
        """Take in those of some."""

    def table(self) -> pa.Table:
        """The table, once all queries are done with the batch."""


class ColumnOf:
    """Looks up the column of an attribute name in a batch."""

    def __init__(self, data: pa.RecordBatch, roles: Roles) -> None:
        self._data = data
        self._roles = roles

    def __call__(self, name: str) -> pa.Array:
        """The column; ``ts``, ``key`` and ``type`` mean the columns of these roles."""
        return self._data.column(self._roles.column(name))


class Computed:
    """What was computed of the events of a batch so far.

    Parameters
    ----------
    events : EventBatch
        In the types of the stream.
    column : callable
        Gives the column of an attribute name.
    words : EventColumns
        Of the stream: makes the words of an expression.
    encode : callable
        Gives the key slot of each event, for the names of some key columns.
    """

    def __init__(
        self,
        events: EventBatch,
        column: Callable[[str], pa.Array],
        words: EventColumns,
        encode: Callable[[tuple[str, ...], EventBatch], Ints],
    ) -> None:
        self.truths = Truths(len(events), column)
        self.classes: dict[object, Ints] = {}  # of events, by who tells classes apart
        self.keyed: dict[object, object] = {}  # see ``keyed_events``
        self.together: dict[object, tuple[object, Together]] = {}  # results of several queries, and one of these
        self._events = events
        self.column = column
        self._maker = words
        self._encode = encode
        self._slots: dict[tuple[str, ...], Ints] = {}
        self._by_key: dict[tuple[str, ...], ByKey] = {}
        self._words: dict[Expression, Ints] = {}
        self._failing: dict[Expression, DataError] = {}

    def forget_truths(self) -> None:
        """No query will ask any more which conditions hold."""
        self.truths = Truths(len(self._events), self.column)

    def slots(self, key_columns: tuple[str, ...]) -> Ints:
        """The key slot of each event; -1 where one of the columns is null."""
        if key_columns not in self._slots:
            self._slots[key_columns] = self._encode(key_columns, self._events)
        return self._slots[key_columns]

    def by_key(self, key_columns: tuple[str, ...]) -> ByKey:
        """The events grouped by their key slots; those without key are left out."""
        if key_columns not in self._by_key:
            self._by_key[key_columns] = by_key(self.slots(key_columns))
        return self._by_key[key_columns]

    def words(self, expression: Expression) -> Ints:
        """The value of an expression on each event, as the block machine reads it.

        Raises
        ------
        DataError
            ``ACEP-D201``, ``ACEP-D202``: it cannot be computed of some event.
        """
        if expression in self._failing:
            raise self._failing[expression]
        if expression not in self._words:
            try:
                self._words[expression] = self._maker.words(expression, len(self._events), self.column)
            except DataError as error:
                self._failing[expression] = error
                raise
        return self._words[expression]

    def words_at(self, expression: Expression, at: Ints) -> Ints:
        """The values of the events at some places."""
        places = to_arrow(at)
        return self._maker.words(expression, len(at), lambda name: self.column(name).take(places))


class StreamBatch(EventBatch):
    """Consecutive events of a stream, all of a batch or a piece of it.

    Parameters
    ----------
    events : EventBatch
    computed : Computed
        Of the whole batch.
    first : int, default 0
        Where in the batch these events begin.
    """

    def __init__(self, events: EventBatch, computed: Computed, first: int = 0) -> None:
        super().__init__(events.first_row, events.ticks, events.data, events.ids, events.rows)
        self.computed = computed
        self._first = first

    def by_key(self, key_columns: tuple[str, ...]) -> ByKey:
        """The events of a whole batch by key; see ``Computed.by_key``."""
        return self.computed.by_key(key_columns)

    def piece(self, first: int, rows: int) -> StreamBatch:
        """At most ``rows`` events from place ``first`` on; nothing is copied."""
        return StreamBatch(self.slice(first, rows), self.computed, self._first + first)

    def column(self, name: str) -> pa.Array:
        """The column of an attribute."""
        return self.computed.column(name)

    def values(self, name: str) -> pa.Array:
        """The values that these events have in the column of an attribute."""
        return self.computed.column(name).slice(self._first, len(self))

    def here(self, column: Column) -> Column:
        """Of an array of the whole batch the part of these events."""
        return column[self._first : self._first + len(self)]

    def slots(self, key_columns: tuple[str, ...]) -> Ints:
        """The key slot of each event; see ``Computed.slots``."""
        return self.here(self.computed.slots(key_columns))

    def starts(self, roles: Roles) -> Ints:
        """The tick at which each event began; see ``starts_of``."""
        return starts_of(self, roles)

    def words(self, expression: Expression, asked: Callable[[], Bools] | None = None) -> Ints:
        """The value of an expression on each event; see ``Computed.words``.

        Parameters
        ----------
        expression : Expression
        asked : callable, optional
            Gives for each event whether its value matters: of the others it is no error that it cannot be computed.
            Default: that of each event does.
        """
        try:
            return self.all_words(expression)
        except DataError:
            at = np.flatnonzero(asked()) if asked is not None else np.arange(len(self))
            if len(at) == len(self):
                raise
            words = np.full(len(self), NULL, np.int64)
            words[at] = self.computed.words_at(expression, self._first + at)
            return words

    def all_words(self, expression: Expression) -> Ints:
        """The same, of events that all matter."""
        return self.here(self.computed.words(expression))


class SomeEvents(StreamBatch):
    """Events of a whole batch that were looked up, one or more times; ``data`` are still those of the batch.

    Parameters
    ----------
    outer : StreamBatch
        The batch.
    at : int64, shape (events,)
        Where each stands in it.
    words : EventColumns
        Makes the words of an expression.
    """

    def __init__(self, outer: StreamBatch, at: Ints, words: EventColumns) -> None:
        self.outer, self.places = outer, at
        rows = at + outer.first_row if outer.rows is None else outer.rows[at]
        ids = None if outer.ids is None else outer.ids[at]
        events = EventBatch(outer.first_row, outer.ticks[at], outer.data, ids, rows)
        super().__init__(events, Computed(events, self.column, words, lambda names, _: outer.slots(names)[at]))
        self._columns: dict[str, pa.Array] = {}

    def at(self, ids: Ints) -> Ints:
        """Return the places in ``data`` of the events of these names."""
        return self.outer.at(ids)

    def column(self, name: str) -> pa.Array:
        """The column of an attribute."""
        if name not in self._columns:
            self._columns[name] = self.outer.column(name).take(to_arrow(self.places))
        return self._columns[name]

    def all_words(self, expression: Expression) -> Ints:
        """The value of an expression on each event; what is more than a column is computed of these events alone."""
        if isinstance(expression, Attribute):
            return self.outer.words(expression)[self.places]
        return super().all_words(expression)

    def starts(self, roles: Roles) -> Ints:
        """The tick at which each event began."""
        return self.outer.starts(roles)[self.places]

    def know_types(self) -> None:
        """Take over the types of the events, which are encoded once for the batch."""
        names, codes = self.outer.computed.truths.types
        self.computed.truths.know_types(names, codes[self.places])


def check_starts(schema: pa.Schema, roles: Roles) -> None:
    """Refuse a column that cannot say when events begin that end at the time of another column.

    Raises
    ------
    DataError
        ``ACEP-D003``: one is plain numbers, the other real time.
    """
    if roles.start is None:
        return
    types = [schema.field(name).type for name in (roles.start, roles.time)]
    if len({tick_unit(type_, roles.unit) for type_ in types if not pa.types.is_null(type_)}) > 1:
        raise DataError(
            f"events begin at {roles.start!r}, of type {types[0]}, and end at {roles.time!r}, of type {types[1]}",
            code="ACEP-D003",
            hint="give both columns one type: timestamps, or numbers of one unit",
        )


def starts_of(batch: EventBatch, roles: Roles) -> Ints:
    """The tick at which each event of a batch began; that at which it ended where no column says it.

    Raises
    ------
    DataError
        ``ACEP-D090``: an event ends before it begins; ``ACEP-D004``: it has no start.
    """
    if roles.start is None or not len(batch):
        return batch.ticks
    found = ticks(batch.data.column(roles.start), roles.unit, first_row=batch.first_row, format=roles.time_format)
    numbers = batch.rows
    check_begun(found, batch.ticks, roles, lambda at: batch.first_row + at if numbers is None else int(numbers[at]))
    return found
