"""Our own tables in the file of a store: whose file it is, the state of the run at the last checkpoint, and what waits.

All their names begin with ``acep_``. ``acep_file`` and ``acep_checkpoint`` have one row each. The first checkpoint
makes them, so there is no store without one.

A checkpoint is all that a run needs to go on from a place in the stream, and what has come of it by then.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import repeat
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from acep_approx.errors import StoreError
from acep_approx.ipc import from_ipc, to_ipc
from acep_approx.rules.durable.database import Database, damaged
from acep_approx.rules.durable.layout import bound, table_of


@dataclass(frozen=True)
class Checkpoint:
    """What one transaction writes, and what the next run begins with.

    Parameters
    ----------
    offset : int
        How many events of the stream are in it.
    engine : bytes
        The state of whatever runs the rules, which is kept as it is.
    changes : mapping of str to pyarrow.Table
        By table, the rows that have changed since the checkpoint before, each key once: the columns of the key in its
        order, the other columns in the order of the text, and at last, whatever the others are called, a column
        ``deleted`` (bool). Of a row that is deleted only the key counts. Types as ``words.ARROW`` has them.
    matches : mapping of str to pyarrow.Table, optional
        By rule, matches that nobody has got yet.
    calls : pyarrow.Table, optional
        Calls that are to be made, in order; columns as ``CALLS`` names them.
    taken : sequence of int, optional
        Numbers of matches of earlier checkpoints that have been taken since.
    made : sequence of str, optional
        Ids of calls of earlier checkpoints that have been made since.
    """

    offset: int
    engine: bytes
    changes: Mapping[str, pa.Table] = field(default_factory=dict)
    matches: Mapping[str, pa.Table] = field(default_factory=dict)
    calls: pa.Table | None = None
    taken: Sequence[int] = ()
    made: Sequence[str] = ()


FORMAT = 1
"""Changes when the layout does."""
APPLICATION = int.from_bytes(b"acep", "big")
"""Bytes 68 to 71 of the file, so that ``file`` and others can tell what it is; nothing depends on it."""
TABLES = {
    "acep_file": "format INTEGER NOT NULL, program TEXT NOT NULL, program_sha256 TEXT NOT NULL",
    "acep_checkpoint": "offset INTEGER NOT NULL, engine BLOB NOT NULL, sha256 BLOB NOT NULL",
    "acep_matches": (
        "number INTEGER PRIMARY KEY AUTOINCREMENT, rule TEXT NOT NULL, rows INTEGER NOT NULL, arrow BLOB NOT NULL, "
        "sha256 BLOB NOT NULL"
    ),
    "acep_calls": (
        "number INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, rule TEXT NOT NULL, name TEXT NOT NULL, "
        "time NOT NULL, zone TEXT, row INTEGER, arguments TEXT NOT NULL"
    ),
}
"""Numbers of matches and calls are never used twice, also when all are gone. The time of a call is a whole number, or a
text like all times, in UTC; then ``zone`` is that in which the stream shows its times, if it has one."""


def columns(name: str) -> list[str]:
    """The columns of one of our tables."""
    return [column.split()[0] for column in TABLES[name].split(", ")]


def make(connection: sqlite3.Connection, program: str) -> None:
    """Make our tables, and say whose file it is."""
    for name, inside in TABLES.items():
        connection.execute(f"CREATE TABLE {name} ({inside})")
    connection.execute(f"PRAGMA application_id = {APPLICATION}")
    digest = hashlib.sha256(program.encode()).hexdigest()
    connection.execute("INSERT INTO acep_file VALUES (?, ?, ?)", (FORMAT, program, digest))


def write_state(connection: sqlite3.Connection, offset: int, engine: bytes, *, is_first: bool) -> None:
    """Write where the run stands."""
    kept = (offset, engine, digest(offset, engine))
    if is_first:
        connection.execute("INSERT INTO acep_checkpoint VALUES (?, ?, ?)", kept)
    else:
        connection.execute("UPDATE acep_checkpoint SET offset = ?, engine = ?, sha256 = ?", kept)


def read_state(database: Database) -> tuple[int, bytes]:
    """Where the run stands.

    Raises
    ------
    StoreError
        ``ACEP-R209``: it is not as it was written.
    """
    rows = database.rows("SELECT offset, engine, sha256 FROM acep_checkpoint")
    if len(rows) != 1 or [type(value) for value in rows[0]] != [int, bytes, bytes]:
        raise damaged(database.path, "there is no checkpoint, or more than one")
    offset, engine, kept = rows[0]
    if kept != digest(offset, engine):
        raise damaged(database.path, "the state of the run is not the one that was written")
    return offset, engine


def digest(*parts: Any) -> bytes:
    """What tells bytes that have changed from those that were written: they are indices that kernels follow."""
    found = hashlib.sha256()
    for part in parts:
        found.update(part if isinstance(part, bytes) else f"{part};".encode())
    return found.digest()


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
        if zone is not None and is_time:
            pc.assume_timezone(calls["time"].slice(0, 1), zone)  # refuses a zone that there is not
            calls = calls.set_column(_TIME, "time", calls["time"].cast(pa.timestamp("us", zone)))
        return calls
    except pa.ArrowException as error:
        raise damaged(database.path, f"the time of a call: {error}") from error


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
