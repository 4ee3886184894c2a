"""Our own tables in the file of a store: whose file it is, and the state of the run at the last checkpoint.

All their names begin with ``acep_``. ``acep_file`` and ``acep_checkpoint`` have one row each. The first checkpoint
makes them, so there is no store without one.

A checkpoint is all that a run needs to go on from a place in the stream, and what has come of it by then.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from acep_approx.rules.durable.database import Database, damaged


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
        Calls that are to be made, in order; columns as ``waiting.CALLS`` names them.
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
