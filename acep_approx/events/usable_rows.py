"""Rows that cannot be used, as they have no time: an error that says where, or left out and counted."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from acep_approx.arrays import Bools, Ints
from acep_approx.errors import DataError
from acep_approx.events.columns import to_arrow, to_numpy
from acep_approx.events.date_and_time import DateAndTime, hinted
from acep_approx.events.reading.malformed import LEAVE_OUT, MalformedRows, Row, row_of
from acep_approx.events.roles import Roles
from acep_approx.events.time import ticks
from acep_approx.events.times_in_order import TimesInOrder
from acep_approx.events.usable_times import earlier, salvaged, usable_times

OF_A_ROW = ("ACEP-D004", "ACEP-D005", "ACEP-D006", "ACEP-D034", "ACEP-D086", "ACEP-D090", "ACEP-D121")
"""Errors for which one row may be to blame."""
_UNSHOWN = Row("", 0, "")
NAMES_NO_VALUE = ("ACEP-D004", "ACEP-D090")
"""Those that say of no value that it is wrong."""


@dataclass(frozen=True)
class TimeColumns:
    """Which columns say when events were.

    Parameters
    ----------
    roles : Roles
        Without ``start`` events need not say when they began.
    schema : pyarrow.Schema
        All columns that there are.
    joined : DateAndTime, optional
        The two columns that make a time.
    is_stamped : bool
        Whether events without a time get one later.
    """

    roles: Roles
    schema: pa.Schema
    joined: DateAndTime | None = None
    is_stamped: bool = False

    def joined_for(self, batch: pa.RecordBatch) -> DateAndTime | None:
        """What makes the time of a batch, if it has none yet."""
        name = self.roles.time
        return self.joined if self.joined and self.joined.name == name and name not in batch.schema.names else None


class UsableRows:
    """One pass over rows: each has a time, and a start where that is asked for.

    Parameters
    ----------
    columns : TimeColumns
    malformed : MalformedRows
        What happens to rows without.
    where : callable
        Says where a row of the batch given last stands; None: that is not known.
    first_row : int
        The number of the first row, for messages.

    Attributes
    ----------
    ticks : numpy.ndarray of int64
        Of the batch taken last.
    places : numpy.ndarray of int64 or None
        Which rows of that batch are left; None: all.
    left_out : int
        Rows so far that were left out.
    order : TimesInOrder
        What is known of the times so far.
    """

    def __init__(
        self,
        columns: TimeColumns,
        malformed: MalformedRows,
        where: Callable[[int], Row | None],
        first_row: int = 0,
    ) -> None:
        self.ticks: Ints = np.zeros(0, np.int64)
        self.places: Ints | None = None
        self.left_out = 0
        self.order = TimesInOrder()
        self._columns = columns
        self._roles = columns.roles
        self._malformed = malformed
        self._where = where
        self._row = first_row
        self._seen = 0
        self._first: tuple[str, str | None] | None = None  # that was left out: why, and what can be done

    @property
    def columns(self) -> list[str]:
        """The columns that must be read."""
        return [name for name in (self._roles.time, self._roles.start) if name is not None]

    def taken(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The rows of the next batch that can be used, with the time among their columns.

        Raises
        ------
        DataError
            Of a row without a time, where such rows are refused, the errors of ``time.ticks``; all others.
        """
        before = self.order.state
        self.places = None
        self._seen += batch.num_rows
        try:
            found = self._timed(batch)
        except DataError as error:
            if error.code not in OF_A_ROW:
                raise
            self.order.go_back(before)
            found = self._timed(self._sorted_out(batch, error))
        self._row += found.num_rows
        return found

    def finish(self, *, is_whole: bool) -> None:
        """No more rows come; ``is_whole``: nor will there be any later.

        Raises
        ------
        DataError
            ``ACEP-D034``: the order of the rows does not tell a time; ``ACEP-D140``: rows were left out, and not one
            can be used.
        """
        self.order.finish()
        if is_whole and self._first is not None and self.left_out == self._seen:
            raise DataError(f"not one row can be used; {self._first[0]}", code="ACEP-D140", hint=self._first[1])

    def _timed(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """A batch of which all rows can be used; sets ``ticks``."""
        roles = self._roles
        if (joined := self._columns.joined_for(batch)) is not None:
            batch = batch.append_column(joined.name, joined.times(batch, self._row))
        try:
            self.ticks = self._ticks(batch, roles.time, self.order)
        except DataError as error:
            raise hinted(error, self._columns.schema, roles.time) from error.__cause__
        if roles.start is not None and len(self.ticks):
            starts = self._ticks(batch, roles.start)
            check_begun(starts, self.ticks, roles, lambda place: self._row + place)
        return batch

    def _ticks(self, batch: pa.RecordBatch, name: str, order: TimesInOrder | None = None) -> Ints:
        roles, column = self._roles, batch.column(name)
        column = column.drop_null() if self._columns.is_stamped else column
        return ticks(column, roles.unit, first_row=self._row, format=roles.time_format, order=order)

    # --- rows that cannot be used -------------------------------------------------------------------------------

    def _sorted_out(self, batch: pa.RecordBatch, error: DataError) -> pa.RecordBatch:
        """The rows of a batch that can be used, where some cannot, as the error says: that is told of each."""
        usable = self._usable(batch)
        wrong = np.flatnonzero(~usable)
        if not len(wrong):
            raise error
        if self._malformed.policy == "refuse":
            raise self._refused(batch, int(wrong[0]), error)
        for row in wrong.tolist():
            if self._first is not None and not self._malformed.shows_more:
                self._malformed.add(_UNSHOWN, "")
                continue
            found = self._where(row) or row_of("events", self._row + self.left_out, batch, row)
            reason = self._reason(batch, row)
            self._malformed.add(found, _plain(reason.message))
            self._first = self._first or (f"{found.place}: {_plain(reason.message)}", reason.hint or error.hint)
        self.left_out += len(wrong)
        self.places = np.flatnonzero(usable)
        return batch.take(to_arrow(self.places))

    def _usable(self, batch: pa.RecordBatch) -> Bools:
        roles = self._roles
        if (joined := self._columns.joined_for(batch)) is not None:
            return joined.usable(batch)
        column = batch.column(roles.time)
        usable = usable_times(column, roles.unit, roles.time_format, self.order)
        if self._columns.is_stamped:
            usable |= to_numpy(column.is_null())
        if roles.start is not None:
            usable &= usable_times(batch.column(roles.start), roles.unit, roles.time_format)
            there = np.flatnonzero(usable)
            rest = batch.take(to_arrow(there))
            usable[there] = self._begun(rest.column(roles.start), rest.column(roles.time))
        return usable

    def _begun(self, starts: pa.Array, ends: pa.Array) -> Bools:
        roles = self._roles
        found = salvaged(starts, lambda some: ticks(some, roles.unit, format=roles.time_format))
        there = np.flatnonzero(found)
        pairs = [(starts, roles.time_format), (ends, earlier(roles.time_format))]
        begin, end = (ticks(one.take(to_arrow(there)), roles.unit, format=format_) for one, format_ in pairs)
        found[there] = begin <= end
        return found

    def _refused(self, batch: pa.RecordBatch, row: int, error: DataError) -> DataError:
        """The error of a row: where it stands, what is wrong with it, and what can be done."""
        alone = error if error.row == self._row + row and not self._columns.is_stamped else self._reason(batch, row)
        found, message = self._where(row), _plain(alone.message)
        if found is None:
            where = f"row {self._row + row}: {message}"
        else:
            where = f"{found.place}: {message}" + (f": {found.shown!r}" if alone.code in NAMES_NO_VALUE else "")
        hint = f"{alone.hint or error.hint}; or {LEAVE_OUT}"
        return DataError(where, code=alone.code, hint=hint, row=self._row + row)

    def _reason(self, batch: pa.RecordBatch, row: int) -> DataError:
        one = batch.slice(row, 1)
        try:
            alone = UsableRows(self._columns, self._malformed, self._where, self._row + row)
            alone._timed(one)
        except DataError as error:
            return error
        value = one.column(self._roles.time)[0].as_py()
        return DataError(
            f"{value!r} is no time as the others are: it is written otherwise, or there is no such day in that year",
            code="ACEP-D006",
        )


class Checked(Protocol):
    """An input, as far as it says where a row without a time stands."""

    def check(self, batch: pa.RecordBatch, first_row: int) -> None:
        """Refuse the batch given last if a row in it has no time."""
        ...

    def locate(self, error: DataError, first_row: int) -> None:
        """Let an error about a row of that batch say where it stands in a topic."""
        ...


def pushed(
    push: Callable[[pa.RecordBatch], Any], batch: pa.RecordBatch, source: Checked, first_row: int
) -> Any:
    """What ``push`` makes of the batch that a source gave last; the error about a row says where that stands.

    ``first_row`` is the number of the first row, as ``push`` counts them.

    Raises
    ------
    DataError
        As ``push``.
    """
    try:
        return push(batch)
    except DataError as error:
        if error.code in OF_A_ROW:
            source.check(batch, first_row)
        source.locate(error, first_row)
        raise


def check_begun(starts: Ints, ends: Ints, roles: Roles, rows: Callable[[int], int]) -> None:
    """Refuse events that end before they begin (``ACEP-D090``); ``rows`` gives their numbers."""
    wrong = np.flatnonzero(starts > ends)
    if len(wrong):
        row = rows(int(wrong[0]))
        raise DataError(
            f"row {row}: the event ends before it begins",
            code="ACEP-D090",
            hint=f"{roles.time!r} says when events end, {roles.start!r} when they begin",
            row=row,
        )


def _plain(message: str) -> str:
    return re.sub(r"^row \d+: ", "", message)
