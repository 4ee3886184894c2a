"""Row numbers of the whole input in results that were found without the late events."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from acep_approx.arrays import Ints
from acep_approx.events.columns import to_arrow, to_numpy
from acep_approx.matching.outputs.bind import ROWS, Wide
from acep_approx.matching.outputs.kinds import KINDS
from acep_approx.planning.planner import Plan

Numbers = Callable[[Ints], Ints]


def row_columns(plan: Plan, output: str, bind: tuple[str, ...] | Wide = ()) -> tuple[str, ...]:
    """Which columns of an output hold row numbers.

    Parameters
    ----------
    plan : Plan
    output : str
    bind : tuple of str or Wide
        What ``bound_names`` gave.
    """
    if bind:
        keeps_rows = isinstance(bind, Wide) and bind.keeps_rows
        return tuple(f"{ROWS}{name}" for name in plan.automaton.shown) if keeps_rows else ()
    if not KINDS[output].binds:
        return ("row",)
    if plan.query.outputs:
        return ()
    return ("events",) if plan.query.is_regex else plan.automaton.shown


def renumbered(table: pa.Table, columns: Sequence[str], original: Numbers) -> pa.Table:
    """A table with other row numbers in some columns: int64, with nulls, or lists of int64.

    Parameters
    ----------
    table : pyarrow.Table
    columns : sequence of str
    original : callable
        Gives for row numbers the others; ``LateEvents.original``.

    Examples
    --------
    >>> table = pa.table({"a": [0, None], "b": [[2, 3], []]})
    >>> renumbered(table, ["a", "b"], lambda rows: 10 * rows).to_pylist()
    [{'a': 0, 'b': [20, 30]}, {'a': None, 'b': []}]
    """
    for name in columns:
        column = table.column(name).combine_chunks()
        table = table.set_column(table.column_names.index(name), name, renumbered_column(column, original))
    return table


def renumbered_column(column: pa.Array, original: Numbers) -> pa.Array:
    """Such a column with other row numbers."""
    if not pa.types.is_list(column.type):
        if not column.null_count:
            return to_arrow(original(to_numpy(column)))
        rows = original(to_numpy(pc.fill_null(column, 0)))
        return pa.array(rows, mask=to_numpy(pc.is_null(column)))
    ends = np.cumsum(to_numpy(column.value_lengths()), dtype=np.int32)
    rows = original(to_numpy(column.flatten()))
    return pa.ListArray.from_arrays(pa.array(np.insert(ends, 0, 0)), pa.array(rows))
