"""The values of events that runs test and carry: one 64-bit word per event and column.

Numbers are integers or floats, truth values 0 and 1, times and durations integers of one unit, texts codes of one
dictionary. Other values are carried as texts, which no operator reads. A column of nothing but nulls has an open kind,
"null".
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from acep_approx.arrays import Ints
from acep_approx.errors import DataError
from acep_approx.events.carried import from_texts, to_texts
from acep_approx.events.columns import plain_type, to_numpy
from acep_approx.kernels.runs.vm import NULL
from acep_approx.query.evaluate import evaluate
from acep_approx.query.shape import walk
from acep_approx.query.syntax import Attribute, Constant, Expression, Lasting

MANY_TEXTS = 1 << 16
"""Texts up to which none is forgotten."""
Kind = Literal["int", "float", "truth", "time", "duration", "text", "other", "null"]
CODED = ("text", "other")
"""Kinds whose words are codes of texts."""
ColumnOf = Callable[[str], pa.Array]


class Texts:
    """Codes of texts, the same in all columns, and for all queries on a stream.

    Attributes
    ----------
    ranks : numpy.ndarray of int64
        Per code the text's place in the order of code points, where it is asked for.
    """

    def __init__(self) -> None:
        self._codes: dict[str, int] = {}
        self._values: list[str] = []
        self.ranks: Ints = np.zeros(1, np.int64)
        self._is_ordered = False
        self._constants = 0
        self._kept = 0

    @property
    def is_ordered(self) -> bool:
        """Whether some condition asks for their order."""
        return self._is_ordered

    @is_ordered.setter
    def is_ordered(self, wanted: bool) -> None:
        """Ask for their order; texts that are known already get their ranks at once."""
        self._is_ordered = wanted
        self._rank()

    def restore(self, known: list[str]) -> None:
        """Give ``known`` texts the codes 0, 1, 2, ..."""
        self._codes = {text: code for code, text in enumerate(known)}
        self._values = list(self._codes)
        self._rank()

    def __len__(self) -> int:
        return len(self._codes)

    @property
    def values(self) -> list[str]:
        """All texts in order of their codes; the list grows with them."""
        return self._values

    @property
    def has_many(self) -> bool:
        """Whether there are so many, and twice as many as after the last ``keep``, that some should be forgotten."""
        return len(self._codes) > max(MANY_TEXTS, 2 * self._kept)

    def keep(self, held: Ints) -> Ints:
        """Forget all texts but the constants of queries and those with the codes ``held``.

        Returns
        -------
        numpy.ndarray of int64
            Per code so far its new one.

        Complexity: O(texts).
        """
        wanted = np.zeros(len(self._codes), np.bool_)
        wanted[: self._constants] = True
        wanted[held] = True
        self.restore([text for text, is_wanted in zip(self._codes, wanted.tolist(), strict=True) if is_wanted])
        self._kept = len(self._codes)
        return np.cumsum(wanted) - 1

    def code(self, text: str) -> int:
        """The code of a constant; it stays the same, so whatever comes before it is never forgotten."""
        code = self._code_of(text)
        self._constants = max(self._constants, code + 1)
        self._rank()
        return code

    def encode(self, column: pa.Array) -> Ints:
        """The codes of a column, ``NULL`` where it is null; of values that are no texts those of their texts."""
        if not pa.types.is_string(plain_type(column.type)):
            return self._known(to_texts(column))
        if not pa.types.is_dictionary(column.type) or len(column.dictionary) > len(column):
            column = column.cast(pa.string()).dictionary_encode()
        table = np.append(self._known(column.dictionary.to_pylist()), NULL)
        places = pc.fill_null(column.indices.cast(pa.int64()), len(table) - 1)
        result: Ints = table[to_numpy(places)]
        return result

    def carried(self, codes: Ints, type_: pa.DataType) -> pa.Array:
        """The values of a type that ``encode`` gave these codes."""
        known, place = np.unique(codes[codes != NULL], return_inverse=True)
        texts = self.values
        found = from_texts([*(texts[code] for code in known.tolist()), None], type_)
        places = np.full(len(codes), len(known))
        places[codes != NULL] = place
        return found.take(pa.array(places))

    def _known(self, words: list[str | None]) -> Ints:
        """The codes of some texts; new ones get the next codes."""
        before = len(self._codes)
        codes = [NULL if word is None else self._code_of(word) for word in words]
        if len(self._codes) > before:
            self._rank()
        return np.array(codes, np.int64)

    def _code_of(self, text: str) -> int:
        code = self._codes.setdefault(text, len(self._values))
        if code == len(self._values):
            self._values.append(text)
        return code

    def _rank(self) -> None:
        if not self.is_ordered:
            return
        order = sorted(range(len(self._codes)), key=list(self._codes).__getitem__)
        self.ranks = np.zeros(max(len(order), 1), np.int64)
        self.ranks[order] = np.arange(len(order))


class EventColumns:
    """The columns that one query asks for, of one schema.

    Parameters
    ----------
    schema : pyarrow.Schema
    column_of : callable
        Gives the column name of an attribute.
    texts : Texts, optional
        Those of the stream. Default: of this query alone.
    """

    def __init__(self, schema: pa.Schema, column_of: Callable[[str], str], texts: Texts | None = None) -> None:
        self.texts = Texts() if texts is None else texts
        self._schema = schema
        self._column_of = column_of
        self._places: dict[Expression, int] = {}
        self._kinds: dict[Expression, Kind] = {}
        self._named: dict[str, str] = {}  # by the names that are asked for their columns; see ``apart``
        units = [field.type.unit for field in schema if pa.types.is_timestamp(field.type)]
        self.unit = "ns" if "ns" in units else "us"

    @property
    def schema(self) -> pa.Schema:
        """Of the events."""
        return self._schema

    def like(self, other: EventColumns) -> bool:
        """Have the columns of another one of this schema, if names mean the same; nothing was asked for before."""
        if any(self._column_of(name) != column for name, column in other._named.items()):
            return False
        self._places, self._kinds = other._places.copy(), other._kinds.copy()
        if other.texts.is_ordered:
            self.texts.is_ordered = True
        return True

    def apart(self) -> EventColumns:
        """The same columns with texts of their own, of which none is there, for ``like``."""
        other = EventColumns(self._schema, self._column_of)
        other.like(self)
        nodes = (node for one in (*self._places, *self._kinds) for node in walk(one))
        other._named = {node.name: self._column_of(node.name) for node in nodes if isinstance(node, Attribute)}
        return other

    @property
    def expressions(self) -> tuple[Expression, ...]:
        """What is evaluated on each event, in order of the columns."""
        return tuple(self._places)

    def place(self, expression: Expression) -> int:
        """The number of the column of ``expression`` (attributes without variable)."""
        return self._places.setdefault(expression, len(self._places))

    def kind(self, expression: Expression) -> Kind:
        """What its values are."""
        if expression not in self._kinds:
            none = self._evaluate(expression, lambda name: pa.nulls(0, self.type_of(name)), 0)
            self._kinds[expression] = _held_kind(expression, none.type)
        return self._kinds[expression]

    def type_of(self, name: str) -> pa.DataType:
        """The type of the column of an attribute."""
        return self._schema.field(self._column_of(name)).type

    def constant(self, value: Constant, like: Kind) -> int:
        """A constant as a word, to stand beside values of kind ``like``."""
        if value.value is None:
            return NULL if like != "float" else float_word(float("nan"))
        if isinstance(value.value, str) and like == "time":
            moment = pc.cast(evaluate_time(value), pa.timestamp(self.unit))
            return int(moment.value)
        if isinstance(value.value, str):
            return self.texts.code(value.value)
        return float_word(float(value.value)) if like == "float" else int(value.value)

    def lasting(self, length: Lasting) -> int:
        """A length of time as a word.

        Raises
        ------
        DataError
            ACEP-D201: 64 bits cannot hold it in the unit of the times.
        """
        return int(self._in_unit(pa.scalar(length.microseconds, pa.duration("us")), "duration").as_py())

    def words(self, expression: Expression, rows: int, column: ColumnOf) -> Ints:
        """The values of an expression on the events of a batch: one word each; floats by their bits.

        They depend on the stream alone, its texts and its finest unit of time, and are the same for all queries.

        Raises
        ------
        DataError
            ACEP-D201: a whole number passed 64 bits, or is the lowest one, which stands for NULL.
        """
        named = f" of {self._column_of(expression.name)!r}" if isinstance(expression, Attribute) else ""
        values = self._evaluate(expression, column, rows)
        return self._words(values, _held_kind(expression, values.type), named)

    def _evaluate(self, expression: Expression, column: ColumnOf, rows: int) -> pa.Array:
        if isinstance(expression, Attribute):
            values = column(expression.name)
            if _held_kind(expression, values.type) in CODED:
                return values
        found = evaluate(expression, lambda leaf: column(str(leaf.name)))
        found = found.combine_chunks() if isinstance(found, pa.ChunkedArray) else found
        return pa.repeat(found, rows) if isinstance(found, pa.Scalar) else found

    def _words(self, values: pa.Array, kind: Kind, named: str) -> Ints:
        if kind in CODED:
            return self.texts.encode(values)
        if kind == "float":
            floats = pc.fill_null(values.cast(pa.float64()), float("nan"))
            return np.ascontiguousarray(to_numpy(floats)).view(np.int64)
        if kind in ("time", "duration"):
            values = self._in_unit(values, kind)
        values = values if values.type.equals(pa.int64()) else values.cast(pa.int64())
        words: Ints = to_numpy(pc.fill_null(values, NULL) if values.null_count else values)
        if np.count_nonzero(words == NULL) > values.null_count:
            raise DataError(
                f"the whole number {NULL}{named} cannot be compared with other events, nor carried to results of CEL",
                code="ACEP-D201",
                hint="it is the lowest of 64 bits, and stands for NULL here; use NULL in the data",
            )
        return words

    def _in_unit(self, values: Any, kind: Kind) -> Any:
        """Times and durations in the finest unit of the schema, as whole numbers."""
        try:
            finest = pa.timestamp(self.unit) if kind == "time" else pa.duration(self.unit)
            return values.cast(finest).cast(pa.int64())
        except pa.ArrowInvalid as error:
            raise DataError(
                f"a {kind} in a condition cannot be counted in {self.unit} with 64 bits: {error}",
                code="ACEP-D201",
                hint="times of nanoseconds reach from 1677 to 2262; give all times the same, coarser unit",
            ) from error


def kind_of(type_: pa.DataType) -> Kind:  # noqa: PLR0911  one for each kind
    """What values of an Arrow type are to the block machine."""
    if pa.types.is_dictionary(type_):
        type_ = type_.value_type
    if pa.types.is_floating(type_) or pa.types.is_decimal(type_):
        return "float"
    if pa.types.is_boolean(type_):
        return "truth"
    if pa.types.is_timestamp(type_) or pa.types.is_date(type_):
        return "time"
    if pa.types.is_duration(type_):
        return "duration"
    if pa.types.is_integer(type_):
        return "int"
    if pa.types.is_null(type_):
        return "null"
    return "text" if pa.types.is_string(plain_type(type_)) else "other"


def _held_kind(expression: Expression, type_: pa.DataType) -> Kind:
    """What the values of an expression are; a column of durations is carried as it is."""
    found = kind_of(type_)
    return "other" if found == "duration" and isinstance(expression, Attribute) else found


def float_word(value: float) -> int:
    """The bits of a float as an integer."""
    return int(np.array([value]).view(np.int64)[0])


def evaluate_time(value: Constant) -> Any:
    """A text constant as a point in time."""
    from datetime import UTC, datetime

    moment = datetime.fromisoformat(str(value.value))
    return pa.scalar(moment if moment.tzinfo is None else moment.astimezone(UTC).replace(tzinfo=None))
