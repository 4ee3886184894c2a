"""Whole numbers in text files that floats do not hold exactly: found, so that two of them are never taken for one."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from acep_approx.arrays import Ints
from acep_approx.events.columns import to_numpy

ALL_EXACT = 2.0**53
"""Whole numbers below are exact as floats."""
WHOLE = r"^[+-]?\d+$"


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
