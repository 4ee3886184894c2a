"""What queries of a template add to it: their constants, in columns of their own until a table has them."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from acep_approx.arrays import Ints
from acep_approx.engines.runs.event_columns import Kind
from acep_approx.events.columns import to_numpy
from acep_approx.subscriptions.templates.query_table import QueryTable, kind_of
from acep_approx.subscriptions.templates.template import Template

_CODES: dict[Kind, str] = {"int": "q", "float": "d"}
_ARROW: dict[Kind, pa.DataType] = {"int": pa.int64(), "float": pa.float64(), "truth": pa.bool_(), "text": pa.string()}


class Alike(NamedTuple):
    """Some queries of a template: the kinds of its parameters, and for each a column of constants."""

    template: Template
    kinds: tuple[Kind, ...]
    columns: tuple[Sequence[Any], ...]

    @property
    def queries(self) -> int:
        """How many."""
        return len(self.columns[0])

    @property
    def key(self) -> tuple[object, ...]:
        """The same for queries that one table can hold."""
        return id(self.template), *self.kinds

    @classmethod
    def one(cls, template: Template, constants: Mapping[str, Any]) -> Alike:
        """A query with constants that the template can have."""
        values = [constants[name] for name in template.parameters]
        return cls(template, tuple(map(kind_of, values)), tuple((value,) for value in values))

    @classmethod
    def of(cls, template: Template, rows: pa.RecordBatch) -> Alike | None:
        """A query for each of some rows; None where that must be looked at row by row."""
        columns = [rows.column(name) for name in template.parameters]
        kinds = [kind for column in columns if (kind := _kind_of(column.type)) and not column.null_count]
        if len(kinds) < len(columns):
            return None
        alike = cls(template, tuple(kinds), tuple(map(_values, columns, kinds)))
        if template.window is not None:
            windows = alike.columns[template.parameters.index(template.window)]
            if not all(template.can_have({template.window: one}) for one in (min(windows), max(windows))):
                return None
        return alike


class Shared:
    """What queries have in common that came together: a template, and constants of the same kinds.

    Parameters
    ----------
    template : Template
    kinds : tuple of {"int", "float", "truth", "text"}
        Of the constants, in the order of the parameters: one table holds those of the same kinds.
    """

    __slots__ = ("_columns", "_gone", "_numbers", "key", "kinds", "template")

    def __init__(self, template: Template, kinds: Sequence[Kind]) -> None:
        self.template, self.kinds = template, tuple(kinds)
        self.key = id(template), *self.kinds  # as of ``Alike``
        self._begin()

    def _begin(self) -> None:
        self._numbers = array("q")
        self._gone: set[int] = set()
        self._columns: list[Any] = [array(_CODES[kind]) if kind in _CODES else [] for kind in self.kinds]

    def new_table(self) -> QueryTable:
        """A table without rows for queries like these."""
        return QueryTable(dict(zip(self.template.parameters, self.kinds, strict=True)))

    # --- those that wait for their table ----------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self._numbers) - len(self._gone)

    def add(self, numbers: Iterable[int], columns: Iterable[Sequence[Any]]) -> None:
        """Hold the constants of some queries, a column for each parameter."""
        self._numbers.extend(numbers)
        for column, values in zip(self._columns, columns, strict=True):
            column.extend(values)

    def add_table(self, numbers: Iterable[int], table: pa.Table) -> None:
        """The same, of what ``waiting`` gave, or another table with columns named as the parameters."""
        self.add(numbers, map(_values, table.select(self.template.parameters).combine_chunks().columns, self.kinds))

    def drop(self, number: int) -> None:
        """Forget the constants of a query."""
        self._gone.add(number)

    def waiting(self) -> tuple[Ints, pa.Table]:
        """The numbers of those that wait, and a column with the constants for each parameter."""
        numbers = np.array(self._numbers, np.int64)
        columns = [
            pa.array(np.array(column) if kind in _CODES else column, _ARROW[kind])
            for column, kind in zip(self._columns, self.kinds, strict=True)
        ]
        table = pa.table(dict(zip(self.template.parameters, columns, strict=True)))
        if self._gone:
            stay = ~np.isin(numbers, [*self._gone])
            numbers, table = numbers[stay], table.filter(pa.array(stay))
        return numbers, table

    def take(self) -> tuple[Ints, pa.Table]:
        """The same; they wait no more."""
        found = self.waiting()
        self._begin()
        return found


def has_64_bits(values: Iterable[Any]) -> bool:
    """Whether a column can hold what of some values are whole numbers."""
    return all(-(2**63) <= value < 2**63 for value in values if isinstance(value, int))


def _kind_of(type_: pa.DataType) -> Kind | None:
    """The kind of the constants in a column of a type; None for other values."""
    if pa.types.is_dictionary(type_):
        type_ = type_.value_type
    if pa.types.is_string(type_) or pa.types.is_large_string(type_):
        return "text"
    if pa.types.is_integer(type_) and type_ != pa.uint64():  # the largest of these are beyond all constants
        return "int"
    if type_ in (pa.float32(), pa.float64()):
        return "float"
    return "truth" if pa.types.is_boolean(type_) else None


def _values(column: pa.Array, kind: Kind) -> list[Any]:
    """The constants in a column without NULLs."""
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    values: list[Any] = to_numpy(column.cast(_ARROW[kind])).tolist() if kind in _CODES else column.to_pylist()
    return values
