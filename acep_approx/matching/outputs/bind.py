"""What stands in results for the events that a match binds: their row numbers, or values of their columns.

Rows of a distributed stream have no numbers that anyone could look up; a column that says which event it is, does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from acep_approx.arrays import Bools, Ints
from acep_approx.errors import DataError, UsageError, expect
from acep_approx.events.columns import missing_column, to_numpy
from acep_approx.events.roles import Roles
from acep_approx.events.stream import EventBatch
from acep_approx.events.time import as_shown
from acep_approx.matching.outputs.kinds import MATCHES, OutputKind
from acep_approx.query.syntax import QuerySyntax

Take = Callable[[str, Ints, Bools], pa.Array]
"""Values of a column at some rows, NULL where they are missing; ``Recent.take`` is one."""


def bound_names(bind: str | Sequence[str] | None, query: QuerySyntax, output: OutputKind = MATCHES) -> tuple[str, ...]:
    """The columns that a user names; none for row numbers.

    Raises
    ------
    UsageError
        ``ACEP-U051``: no name, or one twice; or there is nothing that they could stand for.
    """
    if bind is None:
        return ()
    expect("bind", bind, (str, Sequence), "the name of a column, or several")
    names = (bind,) if isinstance(bind, str) else tuple(bind)
    for name in names:
        expect("a column of bind", name, str, "its name as text")
    if not names or len(set(names)) < len(names):
        raise UsageError(
            f"bind is {bind!r}", code="ACEP-U051", hint="name a column of the events, or several different ones"
        )
    if query.is_algebra and not output.is_point:
        raise UsageError(
            f"bind={bind!r} and a query in CEL do not go together: its results name no events",
            code="ACEP-U051",
            hint="leave --bind out (bind= in Python): SELECT says which attributes results have; --output points "
            "(output='points') shows their last events",
        )
    shows = bool(query.outputs) and not output.is_point
    if shows or output.is_linked:
        raise UsageError(
            f"bind={bind!r} and {'RETURN' if shows else 'compressed output'} do not go together",
            code="ACEP-U051",
            hint="leave bind out: RETURN says what is shown of events, compressed output keeps row numbers",
        )
    return names


class BoundEvents:
    """Puts events into columns: as row numbers, as values of one column, or as structs of several.

    Parameters
    ----------
    names : tuple of str
        Columns of the events; none for row numbers.
    schema : pyarrow.Schema
        Of the events.
    roles : Roles
        The times of the events are shown as all times of results are.

    Raises
    ------
    DataError
        A column is missing.
    """

    def __init__(self, names: tuple[str, ...], schema: pa.Schema, roles: Roles) -> None:
        for name in names:
            if name not in schema.names:
                raise missing_column(name, schema.names)
        self.names = names
        self.roles = roles
        self.know(schema)

    def know(self, schema: pa.Schema) -> None:
        """Take over the schema of the events."""
        self._schema = schema

    def shown(self, rows: pa.Array, take: Take) -> pa.Array:
        """What stands for ``rows``: int64 with nulls, or lists of int64."""
        if not self.names:
            return rows
        if not pa.types.is_list(rows.type):
            return self._values(to_numpy(pc.fill_null(rows, 0)), to_numpy(pc.is_null(rows)), take)
        flat = to_numpy(rows.flatten())
        return pa.ListArray.from_arrays(rows.offsets, self._values(flat, np.zeros(len(flat), np.bool_), take))

    def column(self, rows: Ints, take: Take, others: Sequence[str]) -> dict[str, pa.Array]:
        """A column of single events: ``row``, named like the one column, or ``event`` where there are several.

        Raises
        ------
        DataError
            ``ACEP-D043``: one of the ``others`` of the result has that name.
        """
        name = self.names[0] if len(self.names) == 1 else "event" if self.names else "row"
        if name in others:
            raise DataError(
                f"{name!r} stands for events and is another column: the result would have two columns of that name",
                code="ACEP-D043",
                hint="bind events by another column, or by several",
            )
        return {name: self.shown(pa.array(rows), take)}

    def of_batch(self, batch: EventBatch) -> Take:
        """Looks values up in the batch that has all rows asked for."""

        def take(name: str, rows: Ints, _: Bools) -> pa.Array:
            if not len(rows):
                return pa.nulls(0, self._schema.field(name).type)
            values = batch.data.column(name).take(pa.array(batch.at(rows)))
            return values.cast(self._schema.field(name).type)  # batches have texts as codes

        return take

    def _values(self, rows: Ints, missing: Bools, take: Take) -> pa.Array:
        columns = [as_shown(take(name, rows, missing), name, self.roles) for name in self.names]
        if len(columns) == 1:
            return columns[0]
        return pa.StructArray.from_arrays(columns, names=list(self.names), mask=pa.array(missing))
