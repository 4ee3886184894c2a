"""What a row of a stream of changes does: which column says it, and the codes that Flink and others write there."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from difflib import get_close_matches
from enum import IntEnum
from types import NoneType
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from acep_approx.errors import DataError, expect
from acep_approx.events.columns import decode_bytes, decoded, is_bytes, missing_column, plain_type, to_numpy
from acep_approx.events.roles import is_number

Codes = npt.NDArray[np.int8]

OP_NAMES = ("op", "__op", "_change_type", "mz_diff")
"""Columns that say it if no other is named: Debezium's, the same flattened, Delta's and Materialize's."""


class Op(IntEnum):
    """What a row does.

    An update comes as two rows, ``BEFORE`` (the event as it was, taken back) and ``AFTER`` (as it is now), or as one,
    ``UPDATE``: the event of this id goes, this one comes. ``WATERMARK`` is a punctuation: its time is the watermark.
    """

    INSERT = 0
    DELETE = 1
    BEFORE = 2
    AFTER = 3
    UPDATE = 4
    WATERMARK = 5


CODES = {
    Op.INSERT: ("+I", "INSERT", "insert", "c", "r", "+1", "1"),
    Op.DELETE: ("-D", "DELETE", "delete", "d", "-1"),
    Op.BEFORE: ("-U", "UPDATE_BEFORE", "update_preimage"),
    Op.AFTER: ("+U", "UPDATE_AFTER", "update_postimage"),
    Op.UPDATE: ("u",),
    Op.WATERMARK: ("watermark",),
}
"""Codes as they are written: Flink's (``RowKind``, short and long), Delta's (``_change_type``), Debezium's (``op``;
``r`` is a row of a snapshot) and Materialize's (``mz_diff``, a number)."""

_WORDS = {
    Op.INSERT: "an event comes",
    Op.DELETE: "it is taken back",
    Op.BEFORE: "it was so before an update",
    Op.AFTER: "and is so after it",
    Op.UPDATE: "both in one row",
    Op.WATERMARK: "a punctuation",
}
_TEXTS = [text for texts in CODES.values() for text in texts]
_OP_OF_TEXT = [op for op, texts in CODES.items() for _ in texts]
_UNKNOWN = -1


def find_op(names: Sequence[str], op: str | None, read: Collection[str]) -> str | None:
    """The column that says what each row does.

    Parameters
    ----------
    names : sequence of str
        The columns there are.
    op : str or None
        The column named by the user. None: the first of ``op``, ``__op``, ``_change_type``, ``mz_diff`` that is there
        and not in ``read``.
    read : collection of str
        Columns that the query reads: one that a condition is about holds data.

    Returns
    -------
    str or None
        None: no column says it, all rows are insertions.

    Raises
    ------
    DataError
        ``ACEP-D002``: there is no such column.
    UsageError
        ``ACEP-U053``: ``op`` is no text.

    Examples
    --------
    >>> find_op(["ts", "mz_diff", "op"], None, {"ts"}), find_op(["ts", "op"], None, {"ts", "op"})
    ('op', None)
    """
    expect("the name of a column", op, (str, NoneType), "its name as text")
    if op is not None:
        if op not in names:
            raise missing_column(op, names)
        return op
    return next((name for name in OP_NAMES if name in names and name not in read), None)


def ops_of(column: pa.Array, name: str, first_row: int = 0, progressed: pa.Array | None = None) -> Codes:
    """What each row does.

    Parameters
    ----------
    column : pyarrow.Array
        Texts of ``CODES``, in exactly this case, plain or dictionary-encoded; or the numbers 1 (an insertion) and -1 (a
        deletion).
    name : str
        Of the column, for messages.
    first_row : int
        Number of the first row over the whole input, for messages. Default 0.
    progressed : pyarrow.Array, optional
        Booleans, as Materialize's ``mz_progressed``. Where it is true the row is a punctuation, whatever the column
        says, also if that is nothing. Default: nowhere.

    Returns
    -------
    numpy.ndarray of int8
        An ``Op`` per row; may be read-only.

    Raises
    ------
    DataError
        ``ACEP-D070`` a null, a code that is not known, a number other than 1 and -1 (``row`` is the first), a column of
        another type; ``ACEP-D025`` bytes that are not UTF-8.

    Complexity: O(rows), in whole columns; of a dictionary each value is looked up once.

    Examples
    --------
    >>> ops_of(pa.array(["+I", "-U", "+U", "d"]), "op").tolist()
    [0, 2, 3, 1]
    >>> ops_of(pa.array([1, None, -1]), "mz_diff", progressed=pa.array([False, True, False])).tolist()
    [0, 5, 1]
    """
    codes = _codes(column, name)
    if progressed is not None and not pa.types.is_null(progressed.type):
        if not pa.types.is_boolean(progressed.type):
            raise DataError(
                f"the column that says which rows are progress is of type {progressed.type}",
                code="ACEP-D070",
                hint="it must hold booleans, as mz_progressed of Materialize does",
            )
        codes = np.where(to_numpy(progressed.fill_null(False)), np.int8(Op.WATERMARK), codes)
    if len(codes) and codes.min() == _UNKNOWN:
        place = int(codes.argmin())
        raise _unknown(column[place].as_py(), name, first_row + place)
    return codes


def _codes(column: pa.Array, name: str) -> Codes:
    type_ = plain_type(column.type)
    if pa.types.is_null(type_):
        return np.full(len(column), _UNKNOWN, np.int8)
    if is_bytes(type_):
        return _of_texts(decode_bytes(column, name))
    if pa.types.is_string(type_):
        return _of_texts(column)
    if is_number(type_):
        return _of_numbers(column)
    raise DataError(
        f"column {name!r} is of type {type_}, which cannot say what a row does",
        code="ACEP-D070",
        hint="it must hold texts, such as 'insert' and 'delete', or the numbers 1 and -1",
    )


def _of_texts(column: pa.Array) -> Codes:
    is_coded = pa.types.is_dictionary(column.type)
    texts = (column.dictionary if is_coded else column).cast(pa.string())
    codes = pa.array(_OP_OF_TEXT, pa.int8()).take(pc.index_in(texts, value_set=pa.array(_TEXTS)))
    if is_coded:
        codes = codes.take(column.indices)
    return to_numpy(codes.fill_null(_UNKNOWN) if codes.null_count else codes)


def _of_numbers(column: pa.Array) -> Codes:
    column = decoded(column)
    numbers = to_numpy(column.fill_null(0) if column.null_count else column)
    is_deletion = numbers == -1
    codes: Codes = is_deletion.view(np.int8)  # INSERT, DELETE
    is_known = is_deletion | (numbers == 1)
    return codes if is_known.all() else np.where(is_known, codes, np.int8(_UNKNOWN))


def _unknown(value: Any, name: str, row: int) -> DataError:
    known = "; ".join(f"{' '.join(CODES[op])} ({word})" for op, word in _WORDS.items())
    if value is None or value != value:  # noqa: PLR0124
        said = f"column {name!r} does not say what it does (null)"
        hint = "fill it in, 'insert' for a new event, or leave the row out before matching"
    elif _is_whole(value):
        said = f"column {name!r} says {value}, but in one row an event comes or goes once: 1 or -1"
        hint = "write one row for each time that the event comes or goes; rows of 0 times can be left out"
    else:
        text = value.decode(errors="replace") if isinstance(value, bytes) else str(value)
        said = f"column {name!r} says {text!r:.80}, which is no known code of a change"
        hint = _meant(text)
    return DataError(f"row {row}: {said}; the codes are: {known}", code="ACEP-D070", hint=hint, row=row)


def _is_whole(value: Any) -> bool:
    digits = str(value).strip().removeprefix("-").removeprefix("+").removesuffix(".0")
    return digits.isascii() and digits.isdigit()


def _meant(text: str) -> str:
    if text in ("t", "m"):
        return "Debezium's 't' (a table was emptied) and 'm' (a message) are no events: leave such rows out before"
    lowered = {known.lower(): known for known in _TEXTS}
    close = get_close_matches(text.strip().lower(), lowered, n=1)
    return f"did you mean {lowered[close[0]]!r}?" if close else "is it the column that says what a row does?"
