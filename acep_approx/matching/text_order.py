"""Texts that are numbers and are compared by their order as texts, where ``'9'`` stands behind ``'10'``: a warning."""

from __future__ import annotations

import warnings
from collections.abc import Iterable

import pyarrow as pa
import pyarrow.compute as pc

from acep_approx.errors import TextOrderWarning
from acep_approx.events.columns import decoded, plain_type
from acep_approx.events.roles import Roles
from acep_approx.query.shape import walk
from acep_approx.query.syntax import Aggregate, Attribute, Between, Binary, QuerySyntax

LOOKED_AT = 1_000
"""Values of a column that are looked at."""
MOSTLY = 0.5
"""Share of values that are numbers, from which on a column of texts is likely one of numbers."""
_NUMBER = r"^\s*[+-]?(\d+|\d{1,3}([,. '_]\d{3})+)?([.,]\d+)?([eE][+-]?\d+)?\s*$"
_DIGIT = r"\d"
_ORDERS = ("<", "<=", ">", ">=")


def columns_in_order(query: QuerySyntax, roles: Roles) -> frozenset[str]:
    """Columns whose values a query compares by their order, or takes the least or greatest of."""
    read = [*query.predicates, *(d.condition for d in query.definitions), *(output.value for output in query.outputs)]
    found: set[str] = set()
    for node in (node for part in read for node in walk(part)):
        if isinstance(node, Binary) and node.op in _ORDERS:
            sides = [node.left, node.right]
        elif isinstance(node, Between):
            sides = [node.operand, node.low, node.high]
        else:
            sides = [node] if isinstance(node, Aggregate) and node.function in ("min", "max") else []
        found |= {side.name for side in sides if isinstance(side, (Attribute, Aggregate)) and side.name is not None}
    known = {"ts": roles.time, "key": roles.key, "type": roles.type}
    return frozenset(known.get(name) or name for name in found)


class TextOrder:
    """Looks at the first values of columns that are compared by order, and warns of texts that are numbers, once."""

    def __init__(self) -> None:
        self._seen: dict[str, tuple[int, int]] = {}

    def look(self, batch: pa.RecordBatch, columns: Iterable[str]) -> None:
        """Look at a batch.

        Parameters
        ----------
        batch : pyarrow.RecordBatch
        columns : iterable of str
            Those that are compared by order.
        """
        for name in columns:
            numbers, texts = self._seen.get(name, (0, 0))
            place = batch.schema.get_field_index(name) if texts < LOOKED_AT else -1
            if place < 0 or not pa.types.is_string(plain_type(batch.schema.field(place).type)):
                continue
            some = decoded(batch.column(place).slice(0, LOOKED_AT)).drop_null()
            is_number = pc.and_(pc.match_substring_regex(some, _NUMBER), pc.match_substring_regex(some, _DIGIT))
            numbers, texts = numbers + (pc.sum(is_number).as_py() or 0), texts + len(some)
            self._seen[name] = numbers, texts
            if texts > 1 and numbers >= MOSTLY * texts:
                self._seen[name] = numbers, LOOKED_AT
                _warn(name, some.filter(is_number)[0].as_py() if numbers else "")


def _warn(name: str, shown: str) -> None:
    sign = next((sign for sign in ", '_" if sign in shown.strip()), None)
    more = f" --thousands {sign!r}" if sign else ""
    warnings.warn(
        f"column {name!r} is text, and most of its values are numbers ({shown!r}): texts are compared letter by "
        f"letter, '10' comes before '9'; to compare numbers say --column-type {name}=float{more} (in Python "
        f"column_types={{{name!r}: 'float'}} of open_source, or a column of numbers)",
        TextOrderWarning,
        stacklevel=2,
    )
