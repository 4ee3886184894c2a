"""The events that a live run may still point to: their ticks and the columns that results need."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from acep_approx.arrays import Ints


class Recent:
    """Keeps the relevant events of the window, as columns, in order of their rows.

    Parameters
    ----------
    schema : pyarrow.Schema
        Of the events.
    columns : sequence of str
        Columns to keep beside row and tick.

    Notes
    -----
    Memory is bounded by the relevant events that runs can still reach: by time where the window is time, else by the
    rows that ``keep_rows`` is told.
    """

    def __init__(self, schema: pa.Schema, columns: Sequence[str]) -> None:
        self.columns = tuple(columns)
        self.rows: Ints = np.zeros(0, np.int64)
        self.ticks: Ints = np.zeros(0, np.int64)
        self.data: pa.Table = pa.schema([schema.field(name) for name in columns if name in schema.names]).empty_table()

    def add(self, rows: Ints, ticks: Ints, data: pa.RecordBatch, first_row: int) -> None:
        """Take in events by their (sorted) row numbers from a batch that starts at ``first_row``."""
        self.rows = np.concatenate((self.rows, rows))
        self.ticks = np.concatenate((self.ticks, ticks[rows - first_row]))
        if self.columns:
            added = data.select(list(self.columns)).take(pa.array(rows - first_row))
            plain = pa.Table.from_batches([added]).cast(self.data.schema)
            self.data = pa.concat_tables([self.data, plain])

    def widened(self, schema: pa.Schema) -> pa.Table:
        """``data`` with the types of a wider schema.

        Raises
        ------
        pyarrow.ArrowInvalid
            A value cannot be held exactly.
        """
        return self.data.cast(pa.schema([schema.field(name) for name in self.data.column_names]))

    def drop_before(self, tick: int) -> None:
        """Forget events older than ``tick``."""
        self._keep(self.ticks >= tick)

    def keep_rows(self, rows: Ints) -> None:
        """Forget all events but ``rows``."""
        self._keep(np.isin(self.rows, rows))

    def _keep(self, wanted: npt.NDArray[np.bool_]) -> None:
        if wanted.all():
            return
        self.rows, self.ticks = self.rows[wanted], self.ticks[wanted]
        if self.columns:
            self.data = self.data.filter(pa.array(wanted)).combine_chunks()

    def find(self, rows: Ints) -> Ints:
        """Places of ``rows`` in the columns; each must have been added."""
        return np.searchsorted(self.rows, rows)

    def take(self, column: str, rows: Ints, missing: npt.NDArray[np.bool_]) -> pa.Array:
        """Values of ``column`` at ``rows``; null where ``missing``."""
        if not len(self.rows):
            return pa.nulls(len(rows), self.data.schema.field(column).type)
        places = pa.array(self.find(np.where(missing, self.rows[0], rows)), mask=missing)
        return self.data.column(column).take(places).combine_chunks()
