"""Objects inside events as columns: the field ``user`` of ``meta`` is the column ``meta.user``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from acep_approx.events.columns import plain_schema

Path = tuple[str, ...]
MOST_FIELDS = 1000
"""An object inside events with more different names is a map: its names are values, and no columns."""


def has_objects(schema: pa.Schema) -> bool:
    """Whether a column holds objects."""
    return any(pa.types.is_struct(field.type) for field in schema)


def paths_of(schema: pa.Schema) -> dict[str, Path]:
    """The columns with the fields of objects, and how to get at each.

    Examples
    --------
    >>> schema = pa.schema([("ts", pa.int64()), ("meta", pa.struct([("user", pa.string())]))])
    >>> paths_of(schema)
    {'ts': ('ts',), 'meta.user': ('meta', 'user')}
    """
    return {".".join(path): path for path, _ in _leaves(schema, ())}


def _leaves(fields: Iterable[pa.Field], above: Path) -> Iterator[tuple[Path, pa.Field]]:
    for field in fields:
        path = (*above, field.name)
        if pa.types.is_struct(field.type):
            yield from _leaves(field.type, path)
        else:
            yield path, field


def flat_schema(schema: pa.Schema, where: str) -> pa.Schema:
    """The schema with the fields of objects as columns; refuses two of one name (``ACEP-D015``)."""
    if not has_objects(schema):
        return schema
    found = [field.with_name(".".join(path)) for path, field in _leaves(schema, ())]
    return plain_schema(pa.schema(found), where)


def column_at(batch: pa.RecordBatch | pa.Table, path: Path) -> Any:
    """A column, or a field of its objects; null where there is no object."""
    column = batch.column(path[0])
    return pc.struct_field(column, list(path[1:])) if len(path) > 1 else column


def nested_schema(columns: Mapping[Path, pa.DataType]) -> pa.Schema:
    """The schema of objects that have these fields, and no others."""
    return pa.schema(_fields(list(columns.items()), 0))


def _fields(columns: list[tuple[Path, pa.DataType]], depth: int) -> list[tuple[str, pa.DataType]]:
    found = []
    for name in dict.fromkeys(path[depth] for path, _ in columns):
        here = [(path, type_) for path, type_ in columns if path[depth] == name]
        is_leaf = len(here[0][0]) == depth + 1
        found.append((name, here[0][1] if is_leaf else pa.struct(_fields(here, depth + 1))))
    return found


def flat_row(row: Mapping[str, Any]) -> dict[str, Any]:
    """An event with the fields of its dicts as its own.

    Examples
    --------
    >>> flat_row({"ts": 1, "meta": {"user": {"id": 7}, "ok": None}})
    {'ts': 1, 'meta.user.id': 7, 'meta.ok': None}
    """
    flat: dict[str, Any] = {}
    for name, value in row.items():
        if isinstance(value, Mapping):
            flat.update((f"{name}.{inner}", one) for inner, one in flat_row(value).items())
        else:
            flat[name] = value
    return flat


def maps_among(names: Iterable[str]) -> tuple[str, ...]:
    """Objects that are maps, by the columns that their fields would be; each with a point behind its name."""
    fields: dict[str, set[str]] = {}
    for name in names:
        parts = name.split(".")
        for depth in range(1, len(parts)):
            fields.setdefault(".".join(parts[:depth]), set()).add(parts[depth])
    return tuple(f"{name}." for name, inner in fields.items() if len(inner) > MOST_FIELDS)


def map_note(name: str) -> str:
    """What is to be said of a map."""
    return f"{name} left out: it holds more than {MOST_FIELDS:,} different names, which are values and no columns"
