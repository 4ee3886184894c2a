"""What has come of the events up to the last checkpoint, and waits: matches to be taken, calls to be made.

Both stay in the file until it is said that they have been handed on. A run that dies between the two hands them on
again: at least once, in order, under the same numbers and ids.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import repeat

import pyarrow as pa
import pyarrow.compute as pc

from acep_approx.errors import StoreError
from acep_approx.ipc import from_ipc, to_ipc
from acep_approx.rules.durable.database import Database, damaged
from acep_approx.rules.durable.layout import bound, table_of
from acep_approx.rules.durable.notes import digest

CALLS = ("id", "rule", "name", "time", "row", "arguments")
"""Columns of calls: texts, but ``time`` (whole numbers, or timestamps, with a zone or without) and ``row`` (a whole
number or NULL). ``arguments`` is a list as JSON."""
_TYPES = (pa.string(), pa.string(), pa.string(), pa.int64(), pa.int64(), pa.string())
NO_CALLS = pa.schema(zip(CALLS, _TYPES, strict=True)).empty_table()
_TIME = CALLS.index("time")
_ADD = "INSERT INTO acep_calls (id, rule, name, time, row, arguments, zone) VALUES (?, ?, ?, ?, ?, ?, ?)"
_READ = "SELECT id, rule, name, time, row, arguments, zone FROM acep_calls ORDER BY number"
_WRONG = """SELECT id FROM acep_calls WHERE NOT (
    typeof(id) = 'text' AND typeof(rule) = 'text' AND typeof(name) = 'text' AND typeof(time) IN ('integer', 'text')
    AND typeof(row) IN ('integer', 'null') AND typeof(arguments) = 'text' AND typeof(zone) IN ('text', 'null')
) LIMIT 1"""


@dataclass(frozen=True)
class Kept:
    """Matches of a rule that were found up to one checkpoint, and their number among all such."""

    number: int
    rule: str
    matches: pa.Table


def add_matches(connection: sqlite3.Connection, matches: Mapping[str, pa.Table]) -> tuple[list[int], int]:
    """Keep matches; returns their numbers, and their size in bytes."""
    numbers, size = [], 0
    for rule, table in matches.items():
        if table.num_rows:
            arrow = to_ipc(table)
            size += len(arrow)
            kept = (rule, table.num_rows, arrow, digest(rule, arrow))
            done = connection.execute("INSERT INTO acep_matches (rule, rows, arrow, sha256) VALUES (?, ?, ?, ?)", kept)
            assert done.lastrowid is not None
            numbers.append(done.lastrowid)
    return numbers, size


def read_matches(database: Database) -> list[Kept]:
    """Matches that wait, in the order of their numbers.

    Raises
    ------
    StoreError
        ``ACEP-R209``: they are not as they were written.
    """
    found = []
    for number, rule, arrow, kept in database.rows("SELECT number, rule, arrow, sha256 FROM acep_matches ORDER BY 1"):
        if not (isinstance(rule, str) and isinstance(arrow, bytes)) or kept != digest(rule, arrow):
            raise damaged(database.path, f"matches number {number} are not those that were written")
        try:
            found.append(Kept(number, rule, from_ipc(arrow)))
        except (pa.ArrowException, OSError) as error:
            raise damaged(database.path, f"matches number {number}: {error}") from error
    return found


def forget_matches(connection: sqlite3.Connection, numbers: Iterable[int]) -> None:
    """Matches of these numbers have been taken."""
    connection.executemany("DELETE FROM acep_matches WHERE number = ?", [(number,) for number in numbers])


def add_calls(connection: sqlite3.Connection, calls: pa.Table) -> int:
    """Keep calls; returns their size in bytes."""
    kind, zone = calls.schema.field("time").type, None
    if pa.types.is_timestamp(kind):
        zone = kind.tz
        calls = calls.set_column(_TIME, "time", calls["time"].cast(pa.timestamp("us")))
    columns = [bound(calls[name]) for name in CALLS]
    connection.executemany(_ADD, zip(*columns, repeat(zone, len(calls)), strict=True))
    return int(calls.nbytes)


def read_calls(database: Database) -> pa.Table:
    """Calls that wait, in order.

    Raises
    ------
    StoreError
        ``ACEP-R209``: they are not as they were written.
    """
    if wrong := database.rows(_WRONG):
        raise _wrong_call(database, wrong[0][0])
    rows = database.rows(_READ)
    for id_, *_, arguments, _ in rows:
        if not _is_list(arguments):
            raise _wrong_call(database, id_)
    if not rows:
        return NO_CALLS
    zone, is_time = rows[0][-1], isinstance(rows[0][_TIME], str)
    schema = NO_CALLS.schema
    if is_time:
        schema = schema.set(_TIME, pa.field("time", pa.timestamp("us")))
    try:
        calls = table_of([row[: len(CALLS)] for row in rows], schema)
        return calls if zone is None or not is_time else calls.set_column(_TIME, "time", _in_zone(calls["time"], zone))
    except pa.ArrowException as error:
        raise damaged(database.path, f"the time of a call: {error}") from error


def _in_zone(times: pa.ChunkedArray, zone: str) -> pa.ChunkedArray:
    pc.assume_timezone(times.slice(0, 1), zone)  # refuses a zone that there is not
    return times.cast(pa.timestamp("us", zone))


def forget_calls(connection: sqlite3.Connection, ids: Iterable[str]) -> None:
    """Calls of these ids have been made."""
    connection.executemany("DELETE FROM acep_calls WHERE id = ?", [(id_,) for id_ in ids])


def _wrong_call(database: Database, which: object) -> StoreError:
    return damaged(database.path, f"call {which!r:.80} in acep_calls is not as it was written")


def _is_list(text: str) -> bool:
    try:
        return isinstance(json.loads(text), list)
    except (ValueError, RecursionError):
        return False
