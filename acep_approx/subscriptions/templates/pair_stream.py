"""Pairs of events and queries as a pipeline sees them: a stream whose keys are a query and a key, and its batches."""

from __future__ import annotations

import pyarrow as pa

from acep_approx.arrays import Ints
from acep_approx.engines.runs.event_columns import EventColumns
from acep_approx.events.columns import to_arrow
from acep_approx.events.keys import KeyCodes
from acep_approx.matching.stream_batch import SomeEvents, StreamBatch
from acep_approx.matching.stream_side import KeySlots, StreamSide
from acep_approx.query.parameters import MARK
from acep_approx.query.syntax import Expression
from acep_approx.subscriptions.templates.pairing import Pairing
from acep_approx.subscriptions.templates.query_table import QueryTable
from acep_approx.subscriptions.templates.template import asks_parameter

NUMBER = MARK + "query"
"""The column that says whose result a row is; in the results it is called ``query``."""


def numbered(table: pa.Table) -> pa.Table:
    """Results whose column of numbers has the name that it has in a set."""
    return table.rename_columns(["query" if name == NUMBER else name for name in table.column_names])


class PairKeys(KeyCodes):
    """The query and the key of each slot."""

    def __init__(self, table: QueryTable, pairing: Pairing, keys: KeySlots) -> None:
        super().__init__()
        self._table, self._pairing, self._outer = table, pairing, keys

    named: tuple[Ints, Ints] | None = None
    """Numbers of queries and slots of keys, where results are numbered: then they stand for slots."""

    def values(self, slots: Ints) -> list[pa.Array]:
        """The number of the query, then the values of the key."""
        if self.named is None:
            numbers, keys = self._table.numbers[self._pairing.row_of[slots]], self._pairing.key_of[slots]
        else:
            numbers, keys = (column[slots] for column in self.named)
        return [to_arrow(numbers), *(self._outer.keys.values(keys) if self._outer.columns else ())]


class PairStream(StreamSide):
    """What a pipeline sees of the stream: its columns, those that bring constants, and the pairs as keys."""

    def __init__(self, outer: StreamSide, table: QueryTable, columns: tuple[str, ...]) -> None:
        super().__init__(outer.schema, outer.roles, {**table.fields(), NUMBER: pa.int64()})
        self.texts = outer.texts
        self._know(self.schema)
        self.last_tick = outer.last_tick
        self.pairs = KeySlots((NUMBER, *columns))

    def slots_of(self, key_columns: tuple[str, ...]) -> KeySlots:
        """The slots of the pairs, whatever is asked."""
        assert key_columns == self.pairs.columns, "queries have the keys of their template"
        return self.pairs


class PairBatch(SomeEvents):
    """Pairs as a batch: events that were looked up for queries, and what these ask of them.

    Parameters
    ----------
    outer : StreamBatch
        The events.
    table : QueryTable
    columns : EventColumns
        Of the pipeline that reads it.
    at, rows : int64 arrays
        Per pair the place of the event and the row of the query.
    """

    def __init__(
        self, outer: StreamBatch, table: QueryTable, columns: EventColumns, at: Ints, rows: Ints
    ) -> None:
        super().__init__(outer, at, columns)
        self._table, self._rows = table, rows

    def column(self, name: str) -> pa.Array:
        """A column of the events, or the constants of a parameter, per pair."""
        if name.startswith(MARK):
            return self._table.arrow(name.removeprefix(MARK), self._rows)
        return super().column(name)

    def all_words(self, expression: Expression) -> Ints:
        """The value of an expression per pair: of that which asks no constant there is one for each event."""
        if not asks_parameter(expression):
            return self.outer.words(expression)[self.places]
        return StreamBatch.all_words(self, expression)
