"""What a level of a set runs: one query, or many at once, as one side of its stream."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

import numpy as np
import pyarrow as pa

from acep_approx.archive import Scope
from acep_approx.arrays import Ints
from acep_approx.events.columns import to_arrow
from acep_approx.matching.pipeline import Pipeline
from acep_approx.matching.renumber import renumbered, row_columns
from acep_approx.matching.state import restore_query, save_query
from acep_approx.matching.stream_batch import StreamBatch
from acep_approx.matching.stream_side import QuerySide, StreamSide
from acep_approx.subscriptions.graph import Entry

NUMBER = "query"
"""The column of results that says by its number whose they are: int64."""


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


class Member(QuerySide, Protocol):
    """One query or many, which take part in the batches of a stream together.

    The tables that it gives have an int64 column ``query``: the number of the query that a row is a result of.
    """

    stream: StreamSide

    @property
    def numbers(self) -> tuple[int, ...]:
        """The queries whose results it gives, in the order of adding."""

    def join(self) -> None:
        """Take part in the batches from now on."""

    def remove(self, number: int) -> Iterator[pa.Table]:
        """Let go of a query; gives what of it waited for the end of a window. The last one leaves the stream, too."""

    def finish(self) -> Iterator[pa.Table]:
        """What was still waiting for the end of its window."""

    def nothing(self) -> pa.Table:
        """An empty table with the columns of the results."""

    def joined(self, tables: list[pa.Table]) -> pa.Table:
        """Tables of results as one, with the types that the columns have got by now."""

    def save_side(self, scope: Scope) -> None:
        """Save its state."""

    def restore_side(self, scope: Scope) -> None:
        """Go on from what ``save_side`` saved."""


class OneQuery(Pipeline):
    """A query by itself.

    Parameters
    ----------
    stream : StreamSide
    entry : Entry
    columns_of : dict of str to tuple of str, optional
        If it is in CEL: the columns of the streams that it reads. Default: those that the entry has.

    Raises
    ------
    DataError, QueryError
        A column is missing or has the wrong type.
    """

    def __init__(
        self, stream: StreamSide, entry: Entry, columns_of: dict[str, tuple[str, ...]] | None = None
    ) -> None:
        self.number = entry.number
        self._entry = entry
        self._rows = row_columns(entry.plan, entry.output) if entry.level else ()  # below there are rows only
        columns_of = columns_of or entry.columns_of
        super().__init__(stream, entry.plan, entry.output, joins=False, columns_of=columns_of)

    def join(self) -> None:
        """Take part in the batches from now on; the columns of its streams are those of now, for ever."""
        super().join()
        self._entry.columns_of = self.columns_of

    @property
    def numbers(self) -> tuple[int, ...]:
        """The query."""
        return (self.number,)

    def run(self, batch: StreamBatch) -> Iterator[pa.Table]:
        """Run a batch that was prepared."""
        return map(self._numbered, super().run(batch))

    def pass_time(self, tick: int) -> Iterator[pa.Table]:
        """What waited for windows that end before ``tick``."""
        return map(self._numbered, super().pass_time(tick))

    def end_keys(self, slots: Ints) -> Iterator[pa.Table]:
        """What waited for the streams of some keys."""
        return map(self._numbered, super().end_keys(slots))

    def finish(self) -> Iterator[pa.Table]:
        """What was still waiting for the end of its window."""
        return map(self._numbered, super().finish())

    def remove(self, number: int) -> Iterator[pa.Table]:
        """Leave the stream; gives what waited for the end of a window."""
        assert number == self.number, "it has no other query"
        yield from self.finish()
        self.stream.remove(self)

    def nothing(self) -> pa.Table:
        """An empty table with the columns of the results."""
        return self._numbered(super().nothing())

    def save_side(self, scope: Scope) -> None:
        """Save its state."""
        save_query(self, scope)

    def restore_side(self, scope: Scope) -> None:
        """Go on from a state."""
        restore_query(self, scope)

    def _numbered(self, table: pa.Table) -> pa.Table:
        if self._rows and table.num_rows:
            table = renumbered(table, self._rows, rows_shown)
        return table.add_column(0, NUMBER, to_arrow(np.full(table.num_rows, self.number)))
