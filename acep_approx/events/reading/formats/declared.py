"""Columns whose type is said: each value is read from its text as that, or its row is malformed.

The texts of numbers may have signs that stand between thousands; with these said, columns that have them are numbers.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc

from acep_approx.events.columns import to_numpy
from acep_approx.events.reading.formats.shared import with_type
from acep_approx.events.reading.layout import Layout
from acep_approx.events.roles import time_column
from acep_approx.shell import quoted

TYPES = {"text": pa.string(), "int": pa.int64(), "float": pa.float64(), "bool": pa.bool_()}
"""What is read for the words of ``--column-type``."""
_TRUE, _FALSE = ["true", "t", "yes", "y", "1"], ["false", "f", "no", "n", "0"]
_NUMBER, _WHOLE = r"^\s*-?\d+(\.\d+)?([eE][+-]?\d+)?\s*$", r"^\s*-?\d{1,18}\s*$"
_FLOAT = r"^[+-]?((\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|(?i:inf|infinity|nan))$"


class Declared:
    """What is said of the types of columns, and what follows from the sign between thousands.

    Parameters
    ----------
    layout : Layout
    """

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._decimal = layout.decimal or "."
        self._thousands = layout.thousands
        self._said = layout.types
        self._found: dict[str, str] = {}
        self._time: dict[str, str] = {}

    def __contains__(self, name: str) -> bool:
        return name in self._said or name in self._found or name in self._time

    @property
    def said(self) -> Mapping[str, str]:
        """The words that are said, by column."""
        return self._said

    @property
    def with_thousands(self) -> tuple[str, ...]:
        """Columns that are numbers because of the sign between thousands."""
        return tuple(self._found)

    def forget(self) -> None:
        """Other rows are the first ones."""
        self._found, self._time = {}, {}

    def names(self, schema: pa.Schema) -> list[str]:
        """The columns of these."""
        return [name for name in schema.names if name in self]

    def find_thousands(self, table: pa.Table) -> bool:
        """Find columns of text that are numbers with a sign between thousands, and say whether there is any."""
        if self._thousands is None:
            return False
        for name, chunked in zip(table.column_names, table.columns, strict=True):
            if not pa.types.is_string(chunked.type) or name in self:
                continue
            texts = chunked.combine_chunks().drop_null()
            has_sign = pc.any(pc.match_substring(texts, self._thousands)).as_py()
            if has_sign and pc.all(pc.match_substring_regex(texts, self._pattern)).as_py():
                self._found[name] = "float"
        return bool(self._found)

    def open_time(self, schema: pa.Schema) -> list[str]:
        """The column that is the time, if it is one of texts, of which nobody says how they are written."""
        name = self._layout.time or time_column(schema) or ""
        if name not in schema.names or name in self or self._layout.time_format is not None:
            return []
        return [name] if pa.types.is_string(schema.field(name).type) else []

    def find_time(self, name: str, texts: pa.Array) -> bool:
        """Take the texts of the column that is the time for numbers, where most of them are, and some are none.

        Rows with those are malformed ones: else one of them would make a text of each time.
        """
        is_number = to_numpy(pc.match_substring_regex(texts, _NUMBER))
        if is_number.all() or 2 * is_number.sum() <= len(texts):
            return False
        wholes = to_numpy(pc.match_substring_regex(texts, _WHOLE)).sum()
        self._time[name] = "int" if 2 * wholes > is_number.sum() else "float"
        return True

    def types(self, schema: pa.Schema) -> pa.Schema:
        """A schema with these columns in their types."""
        for name in self.names(schema):
            schema = with_type(schema, name, TYPES[self._word(name)])
        return schema

    def converted(self, name: str, texts: pa.Array) -> pa.Array:
        """Texts as what their column holds.

        Raises
        ------
        pyarrow.ArrowInvalid
            One is none.
        """
        word = self._word(name)
        plain = texts if word == "text" else pc.utf8_trim_whitespace(texts)
        is_right, values = self._read(plain, word)
        wrong = pc.invert(pc.fill_null(is_right, True))
        if pc.any(wrong).as_py():
            text = texts[int(to_numpy(wrong).argmax())].as_py()
            nothing = "" if re.search(r"\d", text) else f"; if it stands for no value: --null {quoted(text):.60}"
            how = "holds times as numbers" if name in self._time else f"is said to be {word}"
            raise pa.ArrowInvalid(f"column {name!r} {how}, and {text!r:.60} is none{nothing}")
        return values if values is not None else self._numbers(plain, word)

    def _word(self, name: str) -> str:
        return self._said.get(name) or self._found.get(name) or self._time[name]

    def _read(self, texts: pa.Array, word: str) -> tuple[pa.Array, pa.Array | None]:
        """Which texts can be read; and their values, but for numbers."""
        if word == "text":
            return pc.true_unless_null(texts), texts
        if word == "bool":
            small = pc.utf8_lower(texts)
            is_true = pc.is_in(small, pa.array(_TRUE))
            known = pc.or_(is_true, pc.is_in(small, pa.array(_FALSE)))
            return pc.or_(known, pc.is_null(texts)), pc.if_else(pc.is_valid(texts), is_true, None)
        if word == "int":
            return pc.match_substring_regex(self._plain(texts), r"^[+-]?\d+$"), None
        return pc.match_substring_regex(self._plain(texts), _FLOAT), None

    def _numbers(self, texts: pa.Array, word: str) -> pa.Array:
        """Texts of numbers as such; a whole number must fit into 64 bits."""
        return pc.replace_substring_regex(self._plain(texts), r"^\+", "").cast(TYPES[word])

    @property
    def _pattern(self) -> str:
        """A number in groups of three digits."""
        sign, point = re.escape(self._thousands or ""), re.escape(self._decimal)
        return rf"^[+-]?(\d+|\d{{1,3}}({sign}\d{{3}})+)({point}\d+)?$"

    def _plain(self, texts: pa.Array) -> pa.Array:
        """Numbers without signs between thousands, and with a point before the fraction."""
        if self._thousands is not None:
            in_groups = pc.match_substring_regex(texts, self._pattern)
            texts = pc.if_else(in_groups, pc.replace_substring(texts, self._thousands, ""), texts)
        if self._decimal != ".":
            texts = pc.replace_substring(texts, self._decimal, ".")
        return texts


def without(texts: pa.Array, nulls: tuple[str, ...]) -> pa.Array:
    """Texts with null where one of these stands."""
    return pc.if_else(pc.is_in(texts, pa.array(nulls, pa.string())), pa.scalar(None, pa.string()), texts)
