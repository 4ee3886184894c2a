"""When events began, where a column says so."""

from __future__ import annotations

import pyarrow as pa

from acep_approx.arrays import Ints
from acep_approx.errors import DataError
from acep_approx.events.roles import Roles
from acep_approx.events.stream import EventBatch
from acep_approx.events.time import tick_unit, ticks
from acep_approx.events.usable_rows import check_begun


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
