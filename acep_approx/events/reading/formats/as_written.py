"""Numbers of text files: whether they come back as they are written, and which of them floats do not hold exactly.

``007`` does not come from 7. A column of text files holds numbers only if all its values do; else ids that differ would
become one. Decimals are numbers however many zeros end them: ``1.50`` is 1.5.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import chain

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from acep_approx.arrays import Bools, Ints
from acep_approx.events.columns import to_numpy

MARK = b"\x1f"
"""What ``marked`` writes ahead of numbers between quotes: it is in no number."""
PIECE = 1 << 17
"""Bytes that are looked at together: they stay in the cache."""

OVERLAP = 512
"""Of them with the next ones, for values that go on there."""

_WHOLE = r"^\s*(0|-?[1-9]\d*)\s*$"
_SHORTEST = r"-?[1-9]e(-0[5-9]|-[1-9]\d\d?|\+1[6-9]|\+[2-9]\d|\+[12]\d\d|\+30\d)"
"""How floats of one digit are written shortest."""
_DECIMAL = rf"^\s*(0|-?[1-9]\d*|-?(0|[1-9]\d*)?\.\d*([eE][+-]?\d+)?|{_SHORTEST})\s*$"
_POWER_OF_SOMETHING = r"^[^eE]*[1-9][^eE]*[eE]"
_TIME_OF_DAY = r"^\d\d:\d\d:\d\d$"
_ZERO, _POINT, _PLUS, _MINUS, _LINE_END, _E, _X, _QUOTE = (np.uint8(ord(sign)) for sign in '0.+-\nex"')
_SMALL, _TEN = np.uint8(0x20), np.uint8(10)
TRUTHS = (("true", "false"), ("True", "False"), ("TRUE", "FALSE"))
"""How booleans are spelled; a column of text has one of these ways."""
ALL_EXACT = 2.0**53
"""Whole numbers below are exact as floats."""
WHOLE = r"^[+-]?\d+$"


def is_finite(column: pa.ChunkedArray) -> bool:
    """Whether all floats of a column are numbers."""
    return bool(pc.all(pc.is_finite(column)).as_py() is not False)


def is_of_words(type_: pa.DataType) -> bool:
    """Whether texts of a type are few, or of one form: booleans, times of day."""
    return bool(pa.types.is_boolean(type_) or pa.types.is_time(type_))


def spelling(texts: pa.Array) -> tuple[str, ...]:
    """How the first of some texts that are booleans is spelled; nothing if there is none."""
    there = texts.drop_null()
    return next((two for two in TRUTHS if len(there) and there[0].as_py() in two), ())


def in_words(texts: pa.Array, type_: pa.DataType, truth: tuple[str, ...]) -> pa.Array:
    """Texts as booleans that are spelled as ``truth``, or as times of day.

    Raises
    ------
    pyarrow.ArrowInvalid
        One would not come back as it is written.
    """
    if pa.types.is_boolean(type_):
        place = pc.index_in(texts, pa.array(truth, pa.string()))
        wrong = _first(texts, pc.or_(pc.is_valid(place), pc.is_null(texts)))
        values = pc.equal(place, 0)
    else:
        wrong = _first(texts, pc.match_substring_regex(texts, _TIME_OF_DAY))
        there = pc.binary_join_element_wise("1970-01-01T", texts, "") if wrong is None else texts
        values = there.cast(pa.timestamp("s")).cast(type_) if wrong is None else texts
    if wrong is not None:
        raise pa.ArrowInvalid(f"{wrong!r} is not written as the values before it")
    return values


def changed(texts: pa.Array, values: pa.Array) -> str | None:
    """The first of some texts that does not come back from its number.

    Parameters
    ----------
    texts : pyarrow.Array
        As they are written; numbers between quotes are marked.
    values : pyarrow.Array
        The same as whole numbers or floats.

    Returns
    -------
    str or None
        As it is written, without marks.

    Examples
    --------
    >>> changed(pa.array(["7", "007"]), pa.array([7, 7])), changed(pa.array(["1.50"]), pa.array([1.5]))
    ('007', None)
    """
    if pa.types.is_integer(values.type):
        return _first(texts, pc.match_substring_regex(texts, _WHOLE))
    is_lost = pc.and_(pc.equal(values, 0.0), pc.match_substring_regex(texts, _POWER_OF_SOMETHING))
    is_decimal = pc.and_(pc.match_substring_regex(texts, _DECIMAL), pc.is_finite(values))
    return _first(texts, pc.and_(is_decimal, pc.invert(is_lost)))


def _first(texts: pa.Array, comes_back: pa.Array) -> str | None:
    is_right = to_numpy(pc.fill_null(comes_back, True))
    return None if is_right.all() else str(texts[int(is_right.argmin())].as_py()).lstrip(MARK.decode())


def not_as_written(name: str, type_: pa.DataType, text: str) -> pa.ArrowInvalid:
    """What is wrong with a row that has such a text among numbers, as the parser would say it."""
    return pa.ArrowInvalid(
        f"column {name!r} is {type_} in the first rows, and {text!r} would not come back from its number as it is "
        f"written: say what the column holds, --column-type {name}=text"
    )


def is_followed(data: bytes, first: bytes, second: bytes) -> bool:
    """Whether a byte stands right behind another one; a search for two bytes is slow where the first is frequent."""
    whole = np.frombuffer(data, np.uint8)
    pieces = (whole[at : at + PIECE + 1] for at in range(0, len(whole), PIECE))
    return any(((piece[:-1] == first[0]) & (piece[1:] == second[0])).any() for piece in pieces)


def may_differ(data: bytes, delimiter: bytes, *, has_decimals: bool = True) -> bool:
    """Whether there may be numbers in rows of CSV that do not come back; quick, and seldom true where there are none.

    Parameters
    ----------
    data : bytes
        Whole rows.
    delimiter : bytes
        One.
    has_decimals : bool
        Whether there are columns of decimals: only there an ``e`` can stand in a number.

    Notes
    -----
    Complexity: a few passes over the bytes, piece by piece, so that these stay in the cache.
    """
    signs = [sign for sign in b'+-" \t' if sign in data]
    has_powers = has_decimals and (b"e" in data or b"E" in data)
    first, last = data[: data.find(b"\n") + 1], data[data.rfind(b"\n", 0, -1) + 1 :]
    edges = b"".join((b"\n", first, last, b"\n" * 6))
    whole = np.frombuffer(data, np.uint8)
    pieces = (whole[at : at + PIECE + OVERLAP] for at in range(0, len(whole), PIECE))
    return any(
        _may_differ(piece, delimiter[0], signs) or (has_powers and _has_power(piece, delimiter[0]))
        for piece in chain([np.frombuffer(edges, np.uint8)], pieces)
    )


def _may_differ(piece: npt.NDArray[np.uint8], delimiter: int, signs: list[int]) -> bool:
    """Whether a value in a part of the bytes begins with what does not come back; ``signs`` are those that occur."""
    is_start = piece[:-3] == delimiter
    is_start |= piece[:-3] == _LINE_END
    second, third = piece[1:-2], piece[2:-1]
    zeros = np.flatnonzero(is_start & (second == _ZERO))
    after = third[zeros]
    if len(zeros) and (((after - _ZERO) < _TEN) | ((after | _SMALL) == _X)).any():
        return True
    for sign in signs:
        places = np.flatnonzero(is_start & (second == sign))
        if len(places) and _ahead(piece, places + 1, sign):
            return True
    return False


def _ahead(piece: npt.NDArray[np.uint8], places: Ints, sign: int) -> bool:
    """Whether a sign stands ahead of what it makes another text: any but ``-0.5`` behind a minus, numbers in quotes."""
    after = piece[places + 1]
    if sign == _MINUS:
        return bool(((after == _ZERO) & (piece[places + 2] != _POINT)).any())
    if sign == _QUOTE:
        return bool((((after - _ZERO) < _TEN) | (after <= _POINT) & (after != _QUOTE)).any())
    return True


def _has_power(piece: npt.NDArray[np.uint8], delimiter: int) -> bool:
    """Whether digits without a point and then an ``e`` begin a value, or there is a power that no float reaches."""
    is_e = (piece[1:-4] | _SMALL) == _E
    is_e &= (piece[:-5] - _ZERO) < _TEN
    places = np.flatnonzero(is_e) + 1
    if not len(places):
        return False
    is_digit = (piece - _ZERO) < _TEN
    powers = places + 1 + ((piece[places + 1] == _MINUS) | (piece[places + 1] == _PLUS))
    if (is_digit[powers] & is_digit[powers + 1] & is_digit[powers + 2]).any():
        return True
    others = np.flatnonzero(~is_digit)
    before = others[np.maximum(np.searchsorted(others, places) - 1, 0)]
    ahead = np.maximum(before - 1, 0)
    starts = [_is_start(piece[at], delimiter) for at in (before, ahead)]
    return bool((starts[0] | (piece[before] == _MINUS) & starts[1]).any())


def _is_start(signs: npt.NDArray[np.uint8], delimiter: int) -> Bools:
    is_start: Bools = (signs == delimiter) | (signs == _LINE_END) | (signs == _QUOTE)
    return is_start


def marked(data: bytes, delimiter: bytes) -> bytes:
    """Rows of CSV with a mark ahead of numbers that stand between quotes."""
    if b'"' not in data:
        return data
    sign = re.escape(delimiter)
    return re.sub(rb'(?m)(^|%b)"(?=[ \t+.0-9-][^"\n]*"(?:%b|\r|$))' % (sign, sign), rb'\1"' + MARK, data)


def large_floats(table: pa.Table) -> Iterator[tuple[str, Ints]]:
    """Columns of floats, each with the rows of values so large that whole numbers may have been rounded.

    Complexity: one pass over the columns of floats.
    """
    for name, column in zip(table.column_names, table.columns, strict=True):
        if not pa.types.is_float64(column.type):
            continue
        ends = pc.min_max(column).as_py()
        if ends["min"] is not None and max(-ends["min"], ends["max"]) >= ALL_EXACT:
            is_large = pc.fill_null(pc.greater_equal(pc.abs(column), ALL_EXACT), False)
            yield name, np.flatnonzero(to_numpy(is_large.combine_chunks()))


def rounded_texts(texts: pa.Array) -> str | None:
    """The first of some values of CSV that is a whole number and no float."""
    whole = texts.filter(pc.match_substring_regex(texts, WHOLE))
    return next((text for text in whole.to_pylist() if int(text) != int(float(text))), None)


def rounded_lines(data: bytes, path: tuple[str, ...], rows: Ints) -> str | None:
    """The first of some lines of JSON, counted without blank ones, that has such a number in a column; the number."""
    lines = [line for line in data.split(b"\n") if line and not line.isspace()]
    for row in rows.tolist():
        value = json.loads(lines[row])
        for name in path:
            value = value.get(name)
        if isinstance(value, int) and value != int(float(value)):
            return str(value)
    return None


def column_in(message: str) -> str | None:
    """The column of which Arrow says that a number of JSON stands where it was told to read strings."""
    found = re.search(r"Column\(/(.*)\) changed from string to number", message)
    return found.group(1) if found else None


def refusal(name: str, number: str) -> pa.ArrowInvalid:
    """What is wrong with a row that has such a number among fractions, as the parser would say it."""
    return pa.ArrowInvalid(f"column {name!r} is double, and that cannot hold the whole number {number} exactly")
