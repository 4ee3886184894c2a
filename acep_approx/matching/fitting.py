"""Batches against the schema that a query was set up for: what fits, what makes the schema wider, what is refused.

Nothing reaches an engine whose programs were made for columns of other types.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from acep_approx.errors import DataError, TextOrderWarning
from acep_approx.events.columns import decode_bytes, decoded, is_bytes, missing_column, plain_type
from acep_approx.events.reading.widening import as_wider, common_type, is_as_written
from acep_approx.events.roles import Roles
from acep_approx.events.stream import EventBatch
from acep_approx.query.shape import walk
from acep_approx.query.syntax import Aggregate, Attribute, Between, Binary, IsNull, QuerySyntax
from acep_approx.query.types import Kind, check_types, kinds


def columns_as_text(query: QuerySyntax, roles: Roles) -> frozenset[str]:
    """Columns whose bytes, if they hold any, are text to the query: all but those that it only shows."""
    named = [*_read_by(query), *(e.name for e in query.equivalences)]
    known = {"ts": roles.time, "key": roles.key, "type": roles.type}
    return frozenset(known.get(name) or name for name in [*named, "ts", "type"])


def compared_columns(query: QuerySyntax, roles: Roles) -> frozenset[str]:
    """Columns whose values a query compares or computes with, beside keys: it knows them as what they are."""
    known = {"ts": roles.time, "key": roles.key, "type": roles.type}
    return frozenset(known.get(name) or name for name in _read_by(query)) | {roles.type or ""}


def _read_by(query: QuerySyntax) -> list[str]:
    """The attributes that a query does more with than showing them and asking whether they are NULL."""
    read = [*query.predicates, *(d.condition for d in query.definitions), *(output.value for output in query.outputs)]
    shown = [output.value for output in query.outputs if isinstance(output.value, Attribute)]
    nodes = [node for part in read for node in walk(part)]
    asked = [node.operand for node in nodes if isinstance(node, IsNull)]
    leaves = Counter(node for node in nodes if isinstance(node, (Attribute, Aggregate)))
    leaves -= Counter(node for node in [*shown, *asked] if isinstance(node, Attribute))
    return [leaf.name for leaf in leaves if leaf.name is not None]


def with_text(schema: pa.Schema, names: Collection[str]) -> pa.Schema:
    """The schema with plain types, and strings where the columns ``names`` hold bytes."""
    types = {field.name: plain_type(field.type) for field in schema}
    return pa.schema(
        [(name, pa.string() if name in names and is_bytes(type_) else type_) for name, type_ in types.items()]
    )


def check_columns(query: QuerySyntax, schema: pa.Schema, roles: Roles) -> list[str]:
    """Refuse a query that names columns which are not there, or mixes types; gives the columns that it names.

    Raises
    ------
    QueryError
        See ``query.types.check_types``.
    """
    return [roles.column(name) for name in check_types(query, kinds_of(schema, roles))]


def kinds_of(schema: pa.Schema, roles: Roles) -> dict[str, Kind]:
    """The kind of every attribute: columns, and ``ts``, ``key`` and ``type`` for the columns of these roles."""
    known = kinds(schema)
    for name, column in (("ts", roles.time), ("key", roles.key), ("type", roles.type)):
        if column is not None:
            known[name] = known[column]
    return known


class Fitting:
    """Brings batches to the schema of a query.

    Parameters
    ----------
    schema : pyarrow.Schema
        As ``with_text`` gives it.
    columns : sequence of str
        Columns that each batch must have.
    keys, texts, compared : collection of str
        Of these the keys, those whose bytes are text, and those whose values are compared otherwise than as keys.
    """

    def __init__(
        self,
        schema: pa.Schema,
        columns: Iterable[str],
        keys: Collection[str],
        texts: Collection[str],
        compared: Collection[str] = (),
    ) -> None:
        self.columns = tuple(columns)
        self._keys = keys
        self._texts = texts
        self._compared = compared
        self.know(schema)

    def know(self, schema: pa.Schema) -> None:
        """Take over a wider schema."""
        self.schema = schema
        self._types = {name: schema.field(name).type for name in self.columns}
        self._fits: pa.Schema | None = None  # of the last batch that needed nothing; most of a stream look alike

    def wider(self, batch: EventBatch) -> pa.Schema | None:
        """The schema that holds this batch, too, where the one so far does not.

        Raises
        ------
        DataError
            ``ACEP-D002``: a column is missing; ``ACEP-D024``, of a key ``ACEP-D031``: a column has changed its type to
            one that does not go together with the one before; ``ACEP-D110``: whole numbers of a text file are followed
            by one that is a text, and the query compares them.
        """
        if self._fits is not None and self._fits.equals(batch.data.schema):
            return None
        changed = {}
        for name, known in self._types.items():
            type_ = common_type(known, self._type(batch, name)) or self._as_written(batch, name, known)
            if type_ is None:
                raise self._changed(batch, name, f"{known}, and now it is {self._type(batch, name)}")
            if not type_.equals(known):
                changed[name] = type_
        if not changed:
            return None
        return pa.schema([(field.name, changed.get(field.name, field.type)) for field in self.schema])

    def fitted(self, batch: EventBatch) -> EventBatch:
        """The batch in the types of the schema.

        Raises
        ------
        DataError
            ``ACEP-D024``, ``ACEP-D031``: a value cannot be held exactly; ``ACEP-D025``: bytes that are not UTF-8.
        """
        fields = batch.data.schema
        if self._fits is not None and self._fits.equals(fields):
            return batch
        if all(plain_type(fields.field(name).type).equals(type_) for name, type_ in self._types.items()):
            self._fits = fields
            return batch
        arrays = [
            self._column(batch, name) if name in self._types else batch.data.column(name) for name in fields.names
        ]
        return replace(batch, data=pa.RecordBatch.from_arrays(arrays, names=fields.names))

    def _as_written(self, batch: EventBatch, name: str, known: pa.DataType) -> pa.DataType | None:
        """Text, where whole numbers of a text file are followed by one that does not come back as it is written."""
        if not pa.types.is_integer(known) or not is_as_written(batch.data.schema.field(name)):
            return None
        if name in self._compared:
            texts = decoded(batch.data.column(name))
            place = max(pc.index(pc.match_substring_regex(texts, "^(0|-?[1-9][0-9]{0,17})$"), False).as_py(), 0)
            row = batch.first_row + place
            raise DataError(
                f"row {row}: column {name!r} was whole numbers so far, and {texts[place].as_py()!r} would not come "
                "back from its number as it is written",
                code="ACEP-D110",
                hint=f"say what the column holds: --column-type {name}=int if this is a number, {name}=text if it is a "
                "name (column_types= of open_source in Python)",
                row=row,
            )
        return pa.string()

    def _type(self, batch: EventBatch, name: str) -> pa.DataType:
        place = batch.data.schema.get_field_index(name)
        if place < 0:
            raise missing_column(name, batch.data.schema.names)
        type_ = plain_type(batch.data.schema.field(place).type)
        return pa.string() if name in self._texts and is_bytes(type_) else type_

    def _column(self, batch: EventBatch, name: str) -> pa.Array:
        column, type_ = batch.data.column(name), self._types[name]
        if pa.types.is_string(type_) and is_bytes(plain_type(column.type)):
            return decode_bytes(column, name)
        try:
            return as_wider(column, type_)
        except pa.ArrowInvalid as error:
            raise self._changed(batch, name, f"{type_}, and cannot hold all values exactly: {error}") from error

    def _changed(self, batch: EventBatch, name: str, what: str) -> DataError:
        role = "key " if name in self._keys else ""
        return DataError(
            f"from row {batch.first_row} on: the {role}column {name!r} was of type {what}",
            code="ACEP-D031" if role else "ACEP-D024",
            hint="give the column one type in all batches of a stream",
            row=batch.first_row,
        )


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
            is_number = are_numbers(some)
            numbers, texts = numbers + (pc.sum(is_number).as_py() or 0), texts + len(some)
            self._seen[name] = numbers, texts
            if texts > 1 and numbers >= MOSTLY * texts:
                self._seen[name] = numbers, LOOKED_AT
                _warn(name, some.filter(is_number)[0].as_py() if numbers else "")


def are_numbers(texts: pa.Array) -> pa.Array:
    """Which of some texts are numbers, however thousands stand apart."""
    return pc.and_(pc.match_substring_regex(texts, _NUMBER), pc.match_substring_regex(texts, _DIGIT))


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
