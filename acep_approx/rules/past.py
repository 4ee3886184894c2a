"""Rows of a table as they were: for conditions on complete matches that read the store as of an earlier event."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from acep_approx.archive import Scope
from acep_approx.arrays import Bools, Ints
from acep_approx.ranges import COUNT, TICK, Range, check
from acep_approx.rules.table import TableRows
from acep_approx.rules.words import from_words


class PastRows:
    """What stood in rows before each write of a window that ends now.

    Parameters
    ----------
    columns : int
        Of the table, beside the key.

    Attributes
    ----------
    window : int
        In ticks: earlier writes are forgotten.
    """

    def __init__(self, columns: int) -> None:
        self.window = 0
        self._columns = columns
        self._width = 2 * columns + 1
        self._place = np.zeros(0, np.int64)
        self._time = np.zeros(0, np.int64)
        self._row = np.zeros(0, np.int64)
        self._before = np.zeros((0, self._width), np.int64)  # as ``kernels.rules.sweep.Done.before`` has it

    def add(self, place: Ints, time: Ints, row: Ints, before: Ints) -> None:
        """Keep what stood in rows before later writes, which are in order."""
        self._place = np.concatenate((self._place, place))
        self._time = np.concatenate((self._time, time))
        self._row = np.concatenate((self._row, row))
        self._before = np.concatenate((self._before, before.reshape(-1, self._width)))

    def forget(self, now: int) -> None:
        """Let go of what no match that is completed from now on can ask for."""
        first = int(np.searchsorted(self._time, now - self.window))
        if 2 * first > len(self._time):
            self._place, self._time = self._place[first:], self._time[first:]
            self._row, self._before = self._row[first:], self._before[first:]

    def look(self, column: int | None, rows: Ints, places: Ints) -> tuple[Bools, Bools, Ints, Bools]:
        """What stood in rows as of transactions.

        Returns
        -------
        known : bool
            Whether a row was written since; else it is what it was then.
        present, words, ok : arrays
            Whether there was a row, and its value in the column.

        Complexity: O((n + kept) log kept).
        """
        kept = len(self._row)
        order = np.argsort(self._row * kept + np.arange(kept)) if kept else np.zeros(0, np.int64)
        keys = self._row[order] * kept + order
        at = np.searchsorted(keys, rows * kept + np.searchsorted(self._place, places))
        found = np.append(order, kept)[np.minimum(at, kept)]
        known = found < kept
        known[known] = self._row[found[known]] == rows[known]
        before = self._before[np.where(known, found, 0)] if kept else np.zeros((len(rows), self._width), np.int64)
        words = before[:, 1 + (column or 0)] if self._columns else before[:, 0]
        ok = before[:, 1 + self._columns + (column or 0)] != 0 if self._columns else before[:, 0] != 0
        return known, before[:, 0] != 0, words, ok

    @property
    def rows(self) -> Ints:
        """The row of each write."""
        return self._row

    # --- state ------------------------------------------------------------------------------------------------

    def save(self, scope: Scope, table: TableRows) -> None:
        """Save the state; of numbers and codes, which are others after a restart, what they stand for."""
        scope.arrays |= {"place": self._place, "time": self._time, "before": self._before.reshape(-1)}
        scope.put("keys", pa.table(table.key_columns(self._row)))
        scope.put("texts", pa.table({table.columns[n].name: self._texts(n, table) for n in _of_texts(table)}))

    def _texts(self, column: int, table: TableRows) -> pa.Array:
        words, ok = self._before[:, 1 + column], self._before[:, 1 + self._columns + column] != 0
        return from_words(words, ok, "text", table.texts)

    def restore(self, scope: Scope, table: TableRows) -> None:
        """Take over what ``save`` saved.

        Raises
        ------
        Exception
            What ``ranges.reading`` takes for damage.
        """
        keys, texts = ([one.combine_chunks() for one in scope.table(name).columns] for name in ("keys", "texts"))
        before = scope.array("before").reshape(-1, self._width).copy()
        for column, values in zip(_of_texts(table), texts, strict=True):
            before[:, 1 + column] = table.texts.encode(values)
        row, kept = table.row_of(keys), len(before)
        place, time = scope.array("place", Range(kept, 0, COUNT)), scope.array("time", Range(kept, -TICK, TICK))
        check("past", good=len(row) == kept and (row >= 0).all())
        check("past", good=(place[1:] >= place[:-1]).all() and (time[1:] >= time[:-1]).all())
        check("past", good=((before[:, 0] == 0) | (before[:, 0] == 1)).all())
        self.add(place, time, row, before)


def _of_texts(table: TableRows) -> list[int]:
    return [number for number, column in enumerate(table.columns) if column.holds == "text"]
