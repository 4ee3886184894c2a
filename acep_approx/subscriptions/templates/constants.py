"""The constants that users give a template: what can be one, and where; all else is refused before a query is made."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NoReturn

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from acep_approx.errors import QueryError, UsageError
from acep_approx.query.cel.shape import computed_in
from acep_approx.query.cel.syntax import CelQuery
from acep_approx.query.syntax import Moment, Parameter
from acep_approx.subscriptions.templates.literals import Syntax, uses

_KINDS = "a number, a text, TRUE or FALSE, or a time"


def require_columns(syntax: Syntax, columns: list[str]) -> None:
    """See to it that a table has a column for each parameter.

    Raises
    ------
    UsageError
        ``ACEP-U070``: one is missing.
    """
    for name in uses(syntax):
        if name not in columns:
            raise UsageError(
                f"the table has no column {name!r}, and the template asks for :{name}",
                code="ACEP-U070",
                hint=f"its columns are {', '.join(columns) or '(none)'}; give it a column {name!r}",
            )


def checked(syntax: Syntax, rows: pa.RecordBatch, first: int) -> pa.RecordBatch:
    """Rows of constants of which each can stand in the place of its parameter; times are texts, see ``constants_in``.

    Parameters
    ----------
    syntax : QuerySyntax or CelQuery
        The template.
    rows : pyarrow.RecordBatch
        A column for each parameter.
    first : int
        The number of the first row.

    Raises
    ------
    UsageError
        ``ACEP-U070``: a constant is NULL or NaN, of a type that no constant has, or of another one than its place.
    QueryError
        ``ACEP-Q045``: a window below 0, without an end, or a fraction of ticks.

    Complexity: O(rows), vectorised.
    """
    window = None if syntax.window is None else syntax.window.parameter
    outputs = computed_in(syntax) if isinstance(syntax, CelQuery) else [output.value for output in syntax.outputs]
    shown = {node.name for node in outputs if isinstance(node, Parameter)}
    given = {name: _plain(rows.column(name)) for name in uses(syntax)}
    for name, column in given.items():
        _refuse_nulls(name, column, first)
        if not _is_constant(column.type):
            what = f"the column {name!r} holds values of type {column.type}, and no constant is one"
            _refuse(what, f"it is {_KINDS}")
        if window is not None and name == window.name:
            _check_windows(syntax, name, column, first)
        if pa.types.is_floating(column.type) and pc.any(pc.is_inf(column)).as_py():
            _refuse(f"the column {name!r} has an infinite number", "write one that a query can have, such as 1e308")
        if pa.types.is_temporal(column.type) and name in shown:
            what = f":{name} is a time, and a result cannot show one that stands in the query"
            _refuse(what, "compare it with a column of times, and show that column")
    return pa.RecordBatch.from_pydict(given) if given else rows


def constants_in(syntax: Syntax, rows: pa.RecordBatch) -> Iterator[dict[str, Any]]:
    """The constants of each of some rows, by the names of the parameters."""
    names = [*uses(syntax)]
    if not names:
        return ({} for _ in range(rows.num_rows))
    columns = [_values(name, rows.column(name)) for name in names]
    return (dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True))


def _values(name: str, column: pa.Array) -> list[Any]:
    """Values as Python has them; times as texts in ISO 8601, in UTC where they have a zone."""
    if not pa.types.is_temporal(column.type):
        values: list[Any] = column.to_pylist()
        return values
    zone = "UTC" if pa.types.is_timestamp(column.type) and column.type.tz else None
    try:
        return [Moment(value.isoformat()) for value in column.cast(pa.timestamp("us", zone)).to_pylist()]
    except (pa.ArrowInvalid, ValueError, OverflowError):
        what = f"the column {name!r} holds a time that is finer than microseconds, or before the year 1 or after 9999"
        _refuse(what, "round these times to microseconds")


def _plain(column: pa.Array) -> pa.Array:
    """Values without a dictionary; half floats as floats."""
    if pa.types.is_dictionary(column.type):
        return _plain(column.dictionary_decode())
    return column.cast(pa.float32()) if pa.types.is_float16(column.type) else column


def _is_constant(type_: pa.DataType) -> bool:
    is_text = pa.types.is_string(type_) or pa.types.is_large_string(type_) or pa.types.is_string_view(type_)
    is_number = pa.types.is_integer(type_) or pa.types.is_floating(type_)
    is_time = pa.types.is_timestamp(type_) or pa.types.is_date(type_)
    return bool(is_text or is_number or is_time or pa.types.is_boolean(type_))


def _refuse_nulls(name: str, column: pa.Array, first: int) -> None:
    wrong = pc.is_null(column, nan_is_null=pa.types.is_floating(column.type))
    if pc.any(wrong).as_py():
        row = first + pc.index(wrong, True).as_py()
        what = f"the column {name!r} has no value in row {row}, and the template asks for :{name}"
        _refuse(what, "give each query a value for each parameter, or leave these rows out")


def _check_windows(syntax: Syntax, name: str, column: pa.Array, first: int) -> None:
    if not pa.types.is_integer(column.type) and not pa.types.is_floating(column.type):
        what = f"the window is WITHIN :{name}, and the column {name!r} holds values of type {column.type}"
        _refuse(what, "give it a column of numbers")
    window = syntax.window
    assert window is not None, "it has a parameter"
    values = column.to_numpy(zero_copy_only=False)
    wrong = (values < 0) | ~np.isfinite(values)
    hint = "a window is 0 or longer"
    if window.unit in ("events", "ticks"):
        wrong |= values != np.floor(values)
        hint = "events and ticks are whole numbers from 0; for time write a unit, as in WITHIN :{name} s"
    if wrong.any():
        row = int(np.flatnonzero(wrong)[0])
        start, end = window.span
        raise QueryError(
            f"a window of {values[row]} {window.unit} in row {first + row} of the table",
            code="ACEP-Q045",
            hint=hint.format(name=name),
            text=syntax.text,
            start=start,
            end=end,
        )


def _refuse(what: str, hint: str) -> NoReturn:
    raise UsageError(what, code="ACEP-U070", hint=hint)
