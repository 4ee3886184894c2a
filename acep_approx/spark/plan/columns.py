"""Columns of DataFrames, as the rest of the package sees them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_type
from pyspark.sql.types import StructType

from acep_approx.events.columns import plain_schema
from acep_approx.events.roles import Roles


def arrow_schema(schema: StructType) -> pa.Schema:
    """The columns of a DataFrame, as far as they can be those of events; times are in UTC."""
    fields = []
    for field in schema:
        try:
            fields.append(pa.field(field.name, to_arrow_type(field.dataType, timezone="UTC")))
        except PySparkException:  # a type that Arrow does not have; nobody can ask for it
            continue
    return plain_schema(pa.schema(fields), "the DataFrame")


def carried_roles(roles: Roles, names: Sequence[str]) -> Roles:
    """Roles of the columns that are carried; others may look as if they had one, and nobody asks for them."""
    key, type_ = (name if name in names else None for name in (roles.key, roles.type))
    return replace(roles, key=key, type=type_)


def column(name: str) -> Column:
    """A column by its name, dots and all."""
    return F.col(quoted(name))


def places(schema: pa.Schema) -> list[str]:
    """Names for columns that are carried to Python: PySpark gives it none whose name has a dot."""
    return [f"_{place}" for place in range(len(schema))]


def rising(names: Sequence[str]) -> list[Column]:
    """The order of ``worker.order``: by these columns, nulls last."""
    return [column(name).asc_nulls_last() for name in names]


_LENGTH = re.compile(r"\s*(\d+)\s*(ms|s|min|h)\s*", re.ASCII)
_IN_SPARK = {"ms": "milliseconds", "s": "seconds", "min": "minutes", "h": "hours"}


def interval(length: str) -> str:
    """Return a length of time in Spark's words, which it may be in already.

    Examples
    --------
    >>> interval("10 s"), interval("5min"), interval("10 seconds")
    ('10 seconds', '5 minutes', '10 seconds')
    """
    found = _LENGTH.fullmatch(length)
    return length if found is None else f"{found[1]} {_IN_SPARK[found[2]]}"


def quoted(name: str) -> str:
    """A column's name where Spark would take a dot for a field of a struct."""
    return "`" + name.replace("`", "``") + "`"
