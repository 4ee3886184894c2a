"""What is in somebody's events; what each column is taken for, why, and how to say otherwise; and a first query."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import NoneType
from typing import Any

import numpy as np

from acep_approx.arguments import checked
from acep_approx.diagrams.fragments import never_raises
from acep_approx.errors import UsageError, expect
from acep_approx.events.columns import to_arrow
from acep_approx.events.reading.files import find_files, named_paths
from acep_approx.events.source import Source, open_source
from acep_approx.events.time_formats import TimeFormat
from acep_approx.profiling import formatting
from acep_approx.profiling.first_query import FirstQuery, ProfiledEvents, first_query
from acep_approx.profiling.layout_words import layout_words
from acep_approx.profiling.roles import RoleFound
from acep_approx.profiling.scan import Scan
from acep_approx.profiling.stream_profile import SecondChoice, StreamProfile
from acep_approx.profiling.text import as_text
from acep_approx.profiling.times import TimeProfile
from acep_approx.profiling.type_and_key import Pair, TypeAndKey
from acep_approx.visible import visible


class Look(StreamProfile):
    """What is in some events; made by ``look``. Prints itself, and draws itself in a notebook."""

    def __str__(self) -> str:
        return as_text(self)

    def __repr__(self) -> str:
        return f"<Look at {visible(self.name)}: {self.rows:,} rows, {len(self.columns)} columns>"

    @never_raises
    def _repr_html_(self) -> str:
        from acep_approx.profiling.views import look_view

        return look_view(self)


@checked
def look(
    events: Any,
    *,
    time: str | None = None,
    key: str | None = None,
    type: str | None = None,  # noqa: A002  (the word of the query language)
    unit: str | None = None,
    rows: int | None = None,
    on_progress: Callable[[int], None] | None = None,
    **reading: Any,
) -> Look:
    """Look at some events: what is in them, what the columns are taken for, and a first query that has matches.

    Parameters
    ----------
    events : table, frame, dicts or paths
        As for ``Query.match``. What can be read only once is read.
    time, key, type, unit : str, optional
        As for ``Query.match``; inferred where not given, and said why.
    rows : int, optional
        Look at so many events only. Default: all.
    on_progress : callable, optional
        Called after each batch with the number of events looked at.
    **reading
        How files are read: ``format`` and others, as for ``open_source``. Rows that cannot be read are counted.

    Returns
    -------
    Look
        Prints itself; ``to_dict()`` has the same as data.

    Raises
    ------
    DataError
        The events cannot be read at all; ``ACEP-D002``: a column that was named is not there.
    UsageError
        ``ACEP-U126``: not a number of rows.

    Complexity: one pass. Memory does not grow with the input: at most ten thousand different values of each column,
    four million times and a million events are kept. What is beyond is estimated, and is said to be.

    Examples
    --------
    >>> names = ["login", "buy", "login", "login", "buy"]
    >>> seen = look([{"ts": ts, "user": "ab"[ts % 2], "action": name} for ts, name in enumerate(names)])
    >>> seen.rows, seen.time.column, seen.type.column, seen.type.best
    (5, 'ts', None, 'action')
    >>> print(seen.first.text)
    PATTERN SEQ(login a, buy b) WHERE [user] WITHIN 2
    >>> seen.first.matches, seen.first.options
    (1, {'type': 'action'})
    """
    expect("rows", rows, (int, NoneType), "a whole number")
    if rows is not None and rows < 1:
        raise UsageError(f"rows is {rows}", code="ACEP-U126", hint="look at one row at least, or leave it out for all")
    counting = {} if isinstance(events, Source) else {"on_malformed": "skip"}
    source = open_source(events, time=time, **(counting | reading))
    scan = Scan(source, {"time": time, "key": key, "type": type}, unit, TimeFormat.of(reading.get("time_format")))
    scan.read(rows, on_progress)
    given: dict[str, Any] = {"time": time, "key": key, "type": type}
    type_, key_, other = TypeAndKey(scan.columns, scan.rows, scan.time.best, scan.head()).roles(scan.roles, given)
    given |= reading
    if source.malformed.count:
        given["on_malformed"] = "skip"
    paths = _paths(events)
    files = _files(paths, "lines" if reading.get("line_format") else reading.get("format"))
    times = None if scan.times is None else scan.times.profile()
    return Look(
        name="these events" if paths is None else ", ".join(paths),
        rows=scan.rows,
        is_all=scan.is_all,
        size=sum(file.stat().st_size for file in files) if files else None,
        understood=(*layout_words(source, len(files)), *_unseen(scan.more_columns)),
        columns=tuple(column.profile() for column in scan.columns),
        time=scan.time,
        type=type_,
        key=key_,
        second=None if other is None else _second(other, (type_, key_), given | {"unit": unit, "rows": rows}, paths),
        unit=scan.unit,
        is_unit_said=unit is not None,
        times=times,
        types=_types(scan, type_),
        malformed=source.malformed.count,
        reasons=tuple(source.malformed.reasons),
        first=_first(scan, times, (type_, key_), given, paths),
    )


def _unseen(columns: int) -> list[str]:
    """What is to be said of columns that were not looked at."""
    return [f"{columns:,} more columns, which were not looked at"] if columns else []


def _paths(events: Any) -> list[str] | None:
    """The paths of events that are files."""
    if isinstance(events, str | Path):
        return [str(events)]
    if isinstance(events, list | tuple) and events and all(isinstance(item, str | Path) for item in events):
        return [str(item) for item in events]
    return None


def _files(paths: list[str] | None, format_: str | None) -> list[Path]:
    """The files of events; none of events that are no files."""
    if paths is None or "-" in paths:
        return []
    if any(not path.is_file() and not path.is_dir() for name in paths for path in named_paths(name)):
        return []
    return [file.path for file in find_files(paths, format_)]


def _second(
    other: Pair, roles: tuple[RoleFound, RoleFound], given: dict[str, Any], paths: list[str] | None
) -> SecondChoice:
    """The type and the key that would do about as well, with what takes them."""
    chosen = {role.role: getattr(other, role.role) for role in roles if role.column is None}
    said = {name: value for name, value in (given | chosen).items() if value is not None}
    said.pop("on_malformed", None)  # looking never stops at a row
    return SecondChoice(other.type, other.key, formatting.look_command(paths, said))


def _types(scan: Scan, role: RoleFound) -> tuple[tuple[str, int], ...]:
    """The types with their counts."""
    found = [column.profile().frequent for column in scan.columns if column.name == role.best]
    return found[0] if found else ()


def _first(
    scan: Scan, times: TimeProfile | None, roles: tuple[RoleFound, RoleFound], given: dict[str, Any], paths: Any
) -> FirstQuery:
    """The first query, or why there is none."""
    if scan.rows == 0:
        return FirstQuery(lacks="there are no events")
    if scan.open_times:
        return FirstQuery(lacks=": ".join(scan.open_times))
    if scan.times is None:
        why = scan.in_lists or (
            "events need one: times, dates, or numbers that rise; "
            "where rows stand in order, a column that numbers them will do"
        )
        return FirstQuery(lacks=f"no column can be the time, and {why}")
    wrong = scan.times.missing + scan.times.unreadable
    if 2 * wrong > scan.rows or (wrong and not scan.times.is_counted):
        more = "" if scan.times.is_counted else "at least "
        return FirstQuery(
            lacks=f"{more}{wrong:,} rows have no time that can be read, and a run stops at the first: "
            f"{scan.times.reason}; {scan.times.hint}".rstrip("; ")
        )
    if times is None:
        return FirstQuery(lacks="there are no times")
    options = given | {"unit": scan.unit, "sort": scan.times.late > 0, "time": given["time"] or _unsaid(scan.time)}
    options |= {"on_malformed": "skip"} if wrong else {}
    options = {name: value for name, value in options.items() if value not in (None, False)}
    table, ticks = scan.head()
    if wrong:
        is_read = np.flatnonzero(ticks > np.iinfo(np.int64).min)
        table, ticks = table.take(to_arrow(is_read)), ticks[is_read]
    return first_query(ProfiledEvents(table, ticks, scan.time, *roles, times.is_time, options), paths)


def _unsaid(role: RoleFound) -> str | None:
    """The column that must be said, as none is taken."""
    return role.best if role.column is None else None
