"""The columns of a file of events, for messages, of which the first ones need not show all columns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path as FilePath
from typing import Self

import pyarrow as pa

from acep_approx.errors import DataError
from acep_approx.events.columns import plain_schema
from acep_approx.events.reading.formats.json import JsonFormat
from acep_approx.events.reading.formats.readings import TYPES
from acep_approx.events.reading.layout import Layout
from acep_approx.events.reading.nested import Path
from acep_approx.events.roles import time_column
from acep_approx.events.source import open_source
from acep_approx.events.time_formats import MICROSECONDS, MICROSECONDS_UTC, TimeFormat


@dataclass(frozen=True)
class FileColumns:
    """Columns of JSON objects, as a file of events has them; made by ``of``.

    Parameters
    ----------
    text : pyarrow.Schema
        The columns, in the types in which values are parsed: ISO-8601 times are texts, as in any file of text.
    stamps : frozenset of str
        Columns that are timestamps in the file.
    paths : mapping of str to Path
        Where values stand within objects.
    times : mapping of str to TimeFormat
        Columns that hold times in another format than ISO-8601.
    """

    text: pa.Schema
    stamps: frozenset[str] = frozenset()
    paths: Mapping[str, Path] = field(default_factory=dict)
    times: Mapping[str, TimeFormat] = field(default_factory=dict)

    @classmethod
    def of(cls, file: str | FilePath, layout: Layout) -> Self:
        """Return the columns of a file.

        Parameters
        ----------
        file : path
            Parquet, CSV or JSON lines.
        layout : Layout
            What is said of the values in the objects.

        Raises
        ------
        DataError
            As ``open_source``; ``ACEP-S022``: there are no columns in the file.
        """
        source = open_source(file)
        known = plain_schema(source.schema, str(file))
        if not len(known):
            raise DataError(f"{file}: there are no columns in it", code="ACEP-S022", hint="name a file with events")
        written = source.understood
        if written is None or written.format == "parquet":
            nested, times = tuple(known.names), {}
        else:
            nested, times = written.nested, dict(written.times)
        said, time = layout.time_format, layout.time or time_column(known)
        if said is not None and time is not None and (said.text is not None or said.zone is not None):
            times[time] = said
        text = pa.schema([one.with_type(_parsed_type(one, layout, times)) for one in known])
        paths = {name: tuple(name.split(".")) for name in known.names if name in nested}
        stamps = frozenset(one.name for one in known if pa.types.is_timestamp(one.type))
        return cls(text, stamps, paths, times)

    def format(self, name: str, layout: Layout) -> JsonFormat:
        """Return how messages with these columns are read; ``name`` is that of the topic, for errors."""
        return JsonFormat(name, layout, is_one_each=True, paths=dict(self.paths), times=dict(self.times))


def _parsed_type(column: pa.Field, layout: Layout, times: Mapping[str, TimeFormat]) -> pa.DataType:
    """The type in which values of a column are parsed: times, and values that are never there, as text."""
    if column.name in layout.types:
        return TYPES[layout.types[column.name]]
    if column.name in times:
        return MICROSECONDS_UTC if times[column.name].is_utc else MICROSECONDS
    type_ = column.type
    is_text = pa.types.is_timestamp(type_) or pa.types.is_time(type_) or pa.types.is_null(type_)
    return pa.string() if is_text else type_
