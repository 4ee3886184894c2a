"""Which column plays which role: the time, the key, the type of an event."""

from __future__ import annotations

import dataclasses
import json
import logging
from collections.abc import Callable, Collection, Iterable
from types import NoneType
from typing import Any

import pyarrow as pa

from acep_approx.errors import DataError, UsageError, expect
from acep_approx.events.columns import can_be_told_apart, events_in_lists, missing_column, plain_type
from acep_approx.events.time_formats import TimeFormat
from acep_approx.shell import option_of

LOG = logging.getLogger("acep_approx.input")
BROKER_TIME = "kafka_time"
"""The column of the times at which a broker took messages: the time only where it is named."""
TIME_NAMES = ("ts", "time", "timestamp", "event_time", "datetime", "date")
TYPE_NAMES = ("type", "event_type", "event", "kind")
KEY_NAMES = ("key",)
OTHER_TIME_NAMES = (
    *("@timestamp", "time:timestamp", "event_timestamp", "eventtime", "_time", "created_at", "createdat"),
    *("occurred_at", "timegenerated", "time_generated", "date_time", "log_time", "logtime"),
)
"""What other tools call the time; taken where nothing else tells."""
OTHER_TYPE_NAMES = (
    *("event_name", "eventname", "event.action", "event.name", "event.type", "event_action", "eventtype"),
    *("concept:name", "activity", "activity_name", "activityname"),
)
"""What other tools call the type."""
OTHER_KEY_NAMES = (
    *("case:concept:name", "case_id", "caseid", "case id", "trace_id", "traceid", "trace.id", "correlation_id"),
)
"""What other tools call that to which events belong."""
UNITS = ("ns", "us", "ms", "s")
TIME_MARK = b"acep.time"
"""Where the metadata of a schema names the column that is the time, if neither names nor types tell."""
ZONE_OF_LETTERS = "say which: --time-zone NAME, such as America/New_York (time_format= in Python)"
WRITTEN_MARK = b"acep.written"
"""Of columns that were read from text, or joined of two: times without a zone are in UTC, whatever their type is."""
OPEN_TIMES_MARK = b"acep.open_times"
"""Where it names columns of text whose values are times in several formats, with these, as JSON."""


@dataclasses.dataclass(frozen=True)
class Roles:
    """Which column plays which role.

    Parameters
    ----------
    time : str
        Column that orders the events.
    key : str or None
        Column meant by ``key`` in a query.
    type : str or None
        Column meant by ``type`` in a query; the event types of a pattern are its values.
    unit : str or None
        Unit of a time column of numbers: ``ns``, ``us``, ``ms`` or ``s``, or how they are written as digits, such as
        ``%Y%m%d``; None: plain ticks, or the column holds timestamps, dates or ISO-8601 strings.
    start : str or None
        Column that says when an event began, in the same unit as ``time``, which says when it ended: queries in CEL ask
        for it. None: events have no duration.
    time_format : TimeFormat or None
        How times of text are written, and the zone of those that have none. None: as ``events.time.ticks`` finds it.
    columns : tuple of str
        All that there are, for messages; a state does not hold them.
    """

    time: str
    key: str | None = None
    type: str | None = None
    unit: str | None = None
    start: str | None = None
    time_format: TimeFormat | None = None
    columns: tuple[str, ...] = dataclasses.field(default=(), repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "time_format", TimeFormat.of(self.time_format))  # a state holds it as plain values

    @property
    def plain(self) -> dict[str, Any]:
        """The same as plain values, which a state can hold: the arguments of another one."""
        others = {name: value for name, value in vars(self).items() if name not in ("time_format", "columns")}
        return others | TimeFormat.plain(self.time_format)

    @property
    def named(self) -> dict[str, str | None]:
        """What ``infer_roles`` may be told, for whoever knows it already."""
        return {"time": self.time, "key": self.key, "type": self.type, "unit": self.unit}

    def read_in(self, columns: Collection[str]) -> Roles:
        """The same without a start that nobody asks for: it is not among the columns that are read."""
        return self if self.start is None or self.start in columns else dataclasses.replace(self, start=None)

    def means_column(self, name: str) -> bool:
        """Whether the name of a column means this column in a query, and not one that plays a role."""
        roles = {"ts": self.time, "key": self.key, "type": self.type}
        return roles.get(name, name) == name

    def column(self, name: str) -> str:
        """The column that a name in a query means.

        ``ts``, ``key`` and ``type`` always mean the role columns; any other name is the column of that name.

        Parameters
        ----------
        name : str
            Attribute as written in the query.

        Returns
        -------
        str
            Name of a column. Whether it exists is not checked here.

        Raises
        ------
        DataError
            ``ACEP-D008``: ``key`` or ``type`` was asked for and no column plays that role.

        Examples
        --------
        >>> roles = Roles(time="when", key="user")
        >>> roles.column("ts"), roles.column("key"), roles.column("price")
        ('when', 'user', 'price')
        """
        if name == "ts":
            return self.time
        if name not in ("key", "type"):
            return name
        column = self.key if name == "key" else self.type
        if column is None:
            raise DataError(
                f"the query uses {name!r}, but no column of the events plays that role"
                + (f"; the columns are: {', '.join(self.columns)}" if self.columns else ""),
                code="ACEP-D008",
                hint=f"name the column with {option_of(name)} COLUMN "
                f"({name}='COLUMN' in Python, where look(events) shows which it could be)",
            )
        return column


def infer_roles(
    schema: pa.Schema,
    *,
    time: str | None = None,
    key: str | None = None,
    type: str | None = None,  # noqa: A002  (the word of the query language)
    unit: str | None = None,
    start: str | None = None,
    time_format: str | TimeFormat | None = None,
) -> Roles:
    """Find the roles of the columns: given names win, the rest is inferred from names and types.

    Parameters
    ----------
    schema : pyarrow.Schema
        The columns of the events.
    time, key, type, start : str, optional
        Columns that play these roles. Default: no column says when events began; time is the first of ``ts``, ``time``,
        ``timestamp``, ``event_time``, ``datetime``, ``date`` that can be a time, or else the only timestamp column, or
        else the DatetimeIndex of a frame of pandas, or else the first of ``OTHER_TIME_NAMES``, such as ``@timestamp``;
        type is the first of ``type``, ``event_type``, ``event``, ``kind``, then of ``OTHER_TYPE_NAMES``; key is the
        first of ``key`` and ``OTHER_KEY_NAMES``. Case matters only if two names differ in nothing else.
    unit : str, optional
        Of a time column of numbers.
    time_format : str or TimeFormat, optional
        How times are written in a column of text, and the zone of times that have none.

    Returns
    -------
    Roles
        The roles; key and type are None where no column fits.

    Raises
    ------
    DataError
        ``ACEP-D001`` no column can be the time; ``ACEP-D002`` a given column is not there; ``ACEP-D085`` the time is
        given as two columns, and those are not joined here; ``ACEP-D003`` the time column has a type that cannot be a
        time; ``ACEP-D009`` the given type column holds what cannot be told apart, such as lists.
    UsageError
        ``ACEP-U101`` a unit is given for a column that has its own; ``ACEP-U102`` there is no such unit; ``ACEP-U117``,
        ``ACEP-U118`` not a format of times, no such time zone; ``ACEP-U124`` a format for a column of numbers.

    Examples
    --------
    >>> infer_roles(pa.schema([("ts", pa.int64()), ("user", pa.string())]), key="user", unit="ms")
    Roles(time='ts', key='user', type=None, unit='ms', start=None, time_format=None)
    """
    expect("unit", unit, (str, NoneType), f"one of {', '.join(UNITS)}")
    for name in (time, key, type, start):
        expect("the name of a column", name, (str, NoneType), "its name as text")
        if name is not None and name == time and _are_two_columns(name, schema):
            raise DataError(
                f"{name!r} is a date and a time of day in two columns, which are not joined here",
                code="ACEP-D085",
                hint="join them before, into one column of times, or read files and tables without Spark and --follow",
            )
        if name is not None and name not in schema.names:
            raise missing_column(name, schema.names, hint=events_in_lists(schema, name) or None)
    if type is not None and not can_be_told_apart(plain_type(schema.field(type).type)):
        raise DataError(
            f"column {type!r} is of type {schema.field(type).type}, which cannot say the type of an event",
            code="ACEP-D009",
            hint="use a column of strings: --type COLUMN",
        )
    time = time or _infer_time(schema)
    written = TimeFormat.of(time_format)
    type_ = plain_type(schema.field(time).type)
    unit = None if written is not None and unit == written.text else unit  # roles that were found before
    _check_unit(time, type_, unit)
    if written is not None and written.text is not None and is_number(type_):
        unit = _digits(time, written, unit)
    if start is not None and not can_be_time(plain_type(schema.field(start).type)):
        raise DataError(
            f"column {start!r} is of type {schema.field(start).type}, which cannot be the time at which an event began",
            code="ACEP-D003",
            hint="use a column like that of the time: --start COLUMN",
        )
    if WRITTEN_MARK in (schema.metadata or {}) and (written is None or written.zone is None):
        is_naive = pa.types.is_timestamp(type_) and type_.tz is None
        if is_naive or pa.types.is_date(type_):
            written = dataclasses.replace(written or TimeFormat(), zone="UTC")
    roles = Roles(
        time=time,
        key=key or _first(schema, (*KEY_NAMES, *OTHER_KEY_NAMES), _is_one_value),
        type=type or _first(schema, (*TYPE_NAMES, *OTHER_TYPE_NAMES), can_be_told_apart),
        unit=unit,
        start=start,
        time_format=written,
        columns=tuple(schema.names),
    )
    LOG.info("time: %r, type: %r, key: %r, unit: %s", roles.time, roles.type, roles.key, roles.unit or "as it is")
    LOG.debug("columns: %s", ", ".join(f"{field.name} {field.type}" for field in schema))
    return roles


def _are_two_columns(name: str, schema: pa.Schema) -> bool:
    parts = [name.split("+", 1), name.rsplit("+", 1)]
    return name not in schema.names and any({part.strip() for part in two} <= {*schema.names} for two in parts)


def joined_column(schema: pa.Schema) -> str | None:
    """The column that is made of a date and a time of day; see ``events.date_and_time``."""
    for field in schema:
        if "+" in field.name and pa.types.is_timestamp(plain_type(field.type)):
            date, _, clock = field.name.partition("+")
            if date in schema.names and clock in schema.names:
                return str(field.name)
    return None


def time_column(schema: pa.Schema) -> str | None:
    """The column that is the time as far as names and types tell; None: they do not."""
    found = _first(schema, TIME_NAMES, can_be_time)
    if found is None:
        stamps = [field.name for field in schema if pa.types.is_timestamp(plain_type(field.type))]
        stamps = [name for name in stamps if name != BROKER_TIME]
        found = stamps[0] if len(stamps) == 1 else None
    return found


def _infer_time(schema: pa.Schema) -> str:
    found = joined_column(schema) or time_column(schema)
    if found is None and (marked := (schema.metadata or {}).get(TIME_MARK)) is not None:
        found = marked.decode()
    found = found or _first(schema, OTHER_TIME_NAMES, can_be_time)
    if found is None:
        raise DataError(
            f"no column is recognised as the time; the columns are: {', '.join(schema.names) or '(none)'}",
            code="ACEP-D001",
            hint=": ".join(open_times(schema))
            or events_in_lists(schema)
            or f"name it with --time {BROKER_TIME if BROKER_TIME in schema.names else 'COLUMN'} "
            "(time= in Python, where look(events) shows which it could be)",
        )
    return found


def open_times(schema: pa.Schema) -> tuple[()] | tuple[str, str]:
    """Of a column whose times fit several formats, or lack the year: that it is so, and what to say; or nothing."""
    marked: dict[str, list[str]] = json.loads((schema.metadata or {}).get(OPEN_TIMES_MARK, b"{}"))
    for name, fitting in marked.items():
        if len(fitting) == 1 and "%Z" in fitting[0]:
            return f"the times of {name!r} end in letters that may name several zones", ZONE_OF_LETTERS
        if len(fitting) == 1:
            return f"the times of {name!r} ({fitting[0]}) have no year", "say --time-year, such as 2013"
        formats = " or ".join(f"--time-format {text!r}" for text in fitting)
        return f"the times of {name!r} fit more than one format", f"say {formats} (time_format= in Python)"
    return ()


def _first(schema: pa.Schema, wanted: Iterable[str], fits: Callable[[pa.DataType], bool]) -> str | None:
    lowered = {name.lower(): name for name in reversed(schema.names)}
    for name in wanted:
        column = name if name in schema.names else lowered.get(name)
        if column is not None and fits(plain_type(schema.field(column).type)):
            return column
    return None


def _check_unit(time: str, type_: pa.DataType, unit: str | None) -> None:
    if not can_be_time(type_):
        raise DataError(
            f"column {time!r} is of type {type_}, which cannot be the time of an event",
            code="ACEP-D003",
            hint="use a column of timestamps, dates, numbers or ISO-8601 strings: --time COLUMN",
        )
    if unit is None:
        return
    if unit not in UNITS:
        raise UsageError(
            f"there is no time unit {unit!r}", code="ACEP-U102", hint=f"the units are {', '.join(UNITS)}"
        )
    if not is_number(type_) and not pa.types.is_string(type_):
        raise UsageError(
            f"unit {unit!r} is given, but the time column {time!r} of type {type_} has its own",
            code="ACEP-U101",
            hint="leave the unit out: it is only for time columns of numbers",
        )


def _digits(time: str, written: TimeFormat, unit: str | None) -> str | None:
    if written.is_of_digits and unit is None:
        return written.text
    what = "holds numbers" if unit is None else f"holds numbers that count {unit}"
    raise UsageError(
        f"a format of times is given ({written.text}), and the time column {time!r} {what}",
        code="ACEP-U124",
        hint="say what they count: --unit s (unit='s' in Python), or how they are written: --time-format %Y%m%d; "
        "or name another column: --time COLUMN",
    )


def is_number(type_: pa.DataType) -> bool:
    """Whether a type is an integer or a float."""
    return bool(pa.types.is_integer(type_) or pa.types.is_floating(type_))


def can_be_time(type_: pa.DataType) -> bool:
    """Whether a column of this (plain) type can be the time of events.

    A column of nothing but nulls can: without rows its type is not known.
    """
    of_dates = pa.types.is_timestamp(type_) or pa.types.is_date(type_)
    return bool(is_number(type_) or of_dates or pa.types.is_string(type_) or pa.types.is_null(type_))


def _is_one_value(type_: pa.DataType) -> bool:
    """Whether values of a plain type are no lists or objects. Floats are taken: whole numbers with NULL may be such."""
    return not pa.types.is_nested(type_)
