"""The events that a live run may still point to: their ticks and the columns that results need."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from acep_approx.arrays import Ints
from acep_approx.engines.batches import Grouped
from acep_approx.events.stream import EventBatch
from acep_approx.ranges import COUNT, TICK, Range, check, check_arrays, impossible


class Recent:
    """Keeps the relevant events of the window, as columns, in order of their ids.

    Parameters
    ----------
    schema : pyarrow.Schema
        Of the events.
    columns : sequence of str
        Columns to keep beside id and tick.

    Attributes
    ----------
    rows : numpy.ndarray of int64
        In which order events came, where their ids do not say so; else none.

    Notes
    -----
    Memory is bounded by the relevant events that runs can still reach: by time where the window is time, else by the
    events that ``keep_only`` is told.
    """

    def __init__(self, schema: pa.Schema, columns: Sequence[str]) -> None:
        self.columns = tuple(columns)
        self.ids: Ints = np.zeros(0, np.int64)
        self.rows: Ints = np.zeros(0, np.int64)
        self.ticks: Ints = np.zeros(0, np.int64)
        self.data: pa.Table = pa.schema([schema.field(name) for name in columns if name in schema.names]).empty_table()

    is_fed = False
    """Whether someone else takes its events in: who runs them for many queries."""
    is_restored = False
    """Whether a state said which events there are: what it points to elsewhere may not be among them."""

    def add(self, events: Grouped, batch: EventBatch) -> None:
        """Take in the events of a batch that a letter holds on, unless someone else does it."""
        if not self.is_fed:
            self.feed(events, batch)

    def feed(self, events: Grouped, batch: EventBatch) -> None:
        """Take in the events of a batch that a letter holds on."""
        if self.is_restored and len(self.rows) != (0 if batch.ids is None else len(self.ids)):
            raise impossible("events without the order in which they came")
        places = np.sort(events.at)
        rows = places + batch.first_row if batch.rows is None else batch.rows[places]
        if batch.rows is not None and len(self.ids) and len(rows) and rows[0] <= self.ids[-1]:  # some were here before
            is_new = ~np.isin(rows, self.ids)
            places, rows = places[is_new], rows[is_new]
        is_in_order = not len(self.ids) or not len(rows) or rows[0] > self.ids[-1]
        self.ids = np.concatenate((self.ids, rows if batch.ids is None else batch.ids[places]))
        self.ticks = np.concatenate((self.ticks, batch.ticks[places]))
        if self.columns:
            added = batch.data.select(list(self.columns)).take(pa.array(places))
            plain = pa.Table.from_batches([added]).cast(self.data.schema)
            self.data = pa.concat_tables([self.data, plain])
        if batch.ids is not None:
            self.rows = np.concatenate((self.rows, rows))
            self._take(np.argsort(self.ids))
        elif not is_in_order:
            self._take(np.argsort(self.ids))

    def restore(self, ids: Ints, rows: Ints, ticks: Ints, data: pa.Table) -> None:
        """Take over the events of a state.

        Raises
        ------
        DamagedError
            They are not such events.
        """
        arrays = {"ids": ids, "rows": rows, "ticks": ticks}
        held, in_order = Range(ids.size, 0, COUNT), Range(rows.size and ids.size, 0, COUNT)
        check_arrays(arrays, {"ids": held, "rows": in_order, "ticks": Range(ids.size, -TICK, TICK)})
        check("ids", good=(ids[1:] > ids[:-1]).all())
        check("rows", good=len(np.unique(rows)) == len(rows))
        check("data", good=data.schema.equals(self.data.schema) and data.num_rows == ids.size * bool(self.columns))
        self.ids, self.rows, self.ticks, self.data = ids, rows, ticks, data
        self.is_restored = True

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

    def keep_only(self, ids: Ints) -> None:
        """Forget all other events."""
        self._keep(np.isin(self.ids, ids))

    def remove(self, ids: Ints) -> None:
        """Forget some events: others may get their ids."""
        self._keep(~np.isin(self.ids, ids))

    def _keep(self, wanted: npt.NDArray[np.bool_]) -> None:
        if wanted.all():
            return
        self._take(np.flatnonzero(wanted))

    def _take(self, places: Ints) -> None:
        self.ids, self.ticks = self.ids[places], self.ticks[places]
        self.rows = self.rows[places] if len(self.rows) else self.rows
        if self.columns:
            self.data = self.data.take(pa.array(places)).combine_chunks()

    def find(self, ids: Ints) -> Ints:
        """Where the events of these ids stand in the columns; each must have been added.

        Raises
        ------
        DataError
            ``ACEP-D040``: one was not, as only a state that was changed leads to.
        """
        places = np.searchsorted(self.ids, ids)
        if self.is_restored:
            self._check_found(places, self.ids, ids)
        return places

    @staticmethod
    def _check_found(places: Ints, known: Ints, wanted: Ints) -> None:
        if len(wanted) and (not len(known) or (known[places.clip(max=len(known) - 1)] != wanted).any()):
            raise impossible("an event that is not kept")

    def rows_of(self, ids: Ints) -> Ints:
        """The rows of some events: in which order they came; -1 for those that have been forgotten."""
        if not len(self.rows):
            return ids
        places = np.searchsorted(self.ids, ids).clip(max=len(self.rows) - 1)
        return np.where(self.ids[places] == ids, self.rows[places], -1)

    def ids_of(self, rows: Ints) -> Ints:
        """The events of some rows; each must have been added."""
        if not len(self.rows):
            return rows
        order = np.argsort(self.rows)
        places = np.searchsorted(self.rows, rows, sorter=order)
        if self.is_restored:
            self._check_found(places, self.rows[order], rows)
        return self.ids[order[places]]

    def take(self, column: str, ids: Ints, missing: npt.NDArray[np.bool_]) -> pa.Array:
        """Values of ``column`` of some events; null where ``missing``."""
        if not len(self.ids):
            return pa.nulls(len(ids), self.data.schema.field(column).type)
        places = pa.array(self.find(np.where(missing, self.ids[0], ids)), mask=missing)
        return self.data.column(column).take(places).combine_chunks()

    def ticks_of(self, ids: Ints, missing: npt.NDArray[np.bool_]) -> pa.Array:
        """The ticks of some events; null where ``missing``."""
        if not len(self.ids):
            return pa.nulls(len(ids), pa.int64())
        return pa.array(self.ticks[self.find(np.where(missing, self.ids[0], ids))], mask=missing)
