"""Events by their row numbers: what stands behind results that were found elsewhere, by a set, by rules, or live."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from acep_approx.arguments import checked
from acep_approx.arrays import Ints
from acep_approx.errors import UsageError
from acep_approx.events.columns import encode_text, to_arrow, to_numpy
from acep_approx.events.reading.memory import REFUSED
from acep_approx.events.reading.widening import one_table
from acep_approx.events.source import open_source
from acep_approx.results.matched_events import free_name


@checked
def events_at(events: Any, rows: Any, **reading: Any) -> pa.Table:
    """The events of some row numbers, with all columns.

    Parameters
    ----------
    events : as for ``Query.match``
        The input that the rows count, in its order.
    rows : column of a result, or sequence of int
        Row numbers, or lists of them; nulls are left out.
    **reading
        How files are read; see ``open_source``.

    Returns
    -------
    pyarrow.Table
        ``row`` (int64; ``row_`` where the events have such a column), then the columns of the events. In order, each
        once.

    Raises
    ------
    UsageError
        ``ACEP-U148``: there is no such row.

    Complexity: reads the events up to the last row once; memory for what is found.

    Examples
    --------
    >>> from acep_approx import QuerySet
    >>> events = [{"ts": 1, "type": "A", "x": 5}, {"ts": 2, "type": "C", "x": 6}, {"ts": 3, "type": "B", "x": 7}]
    >>> desk = QuerySet()
    >>> _ = desk.add("PATTERN SEQ(A a, B b) WITHIN 5", id="ab")
    >>> found = desk.match(events)["ab"]
    >>> events_at(events, found["b"]).to_pylist()
    [{'row': 2, 'ts': 3, 'type': 'B', 'x': 7}]
    """
    wanted, source = _numbers(rows), open_source(events, **reading)
    parts, first = [], 0
    for batch in source.batches(source.readable.names) if len(wanted) else ():
        mine = wanted[np.searchsorted(wanted, first) : np.searchsorted(wanted, first + batch.num_rows)]
        if len(mine):
            columns = [encode_text(column).take(to_arrow(mine - first)) for column in batch.columns]
            parts.append(pa.RecordBatch.from_arrays(columns, names=batch.schema.names))
        first += batch.num_rows
        if first > wanted[-1]:
            break
    if len(wanted) and (wanted[-1] >= first or wanted[0] < 0):
        wrong = int(wanted[-1] if wanted[-1] >= first else wanted[0])
        raise UsageError(
            f"there is no row {wrong} in {first:,} events", code="ACEP-U148", hint="give the events that were matched"
        )
    table = one_table(parts).cast(source.readable) if parts else source.readable.empty_table()
    return table.add_column(0, free_name("row", source.schema.names), to_arrow(wanted))


def _numbers(rows: Any) -> Ints:
    """Row numbers that rise, each once."""
    column = rows.combine_chunks() if isinstance(rows, pa.ChunkedArray) else rows
    try:
        column = column if isinstance(column, pa.Array) else pa.array(column)
    except (*REFUSED, LookupError) as error:  # such as of a frame, which has no items by number
        raise UsageError(
            f"rows is {rows!r:.80}: {error}", code="ACEP-U148", hint="give the column of a variable, or whole numbers"
        ) from error
    while pa.types.is_list(column.type):
        column = column.flatten()
    if pa.types.is_null(column.type):
        return np.zeros(0, np.int64)
    if not pa.types.is_integer(column.type):
        raise UsageError(
            f"values of type {column.type} are no row numbers",
            code="ACEP-U148",
            hint="give the column of a variable, found without bind or RETURN",
        )
    try:
        found: Ints = np.unique(to_numpy(pc.drop_null(column).cast(pa.int64())))
    except pa.ArrowInvalid as error:
        raise UsageError(
            f"there is no such row: {error}", code="ACEP-U148", hint="give the events that were matched"
        ) from error
    return found
