"""Stores of rules in files, for tests: tables, checkpoints, and a process that makes checkpoints until it is killed.

``python -m tests.rule_stores FILE`` goes on from the last checkpoint of a file, for ever. Checkpoint ``n`` is a
function of ``n``: whoever reads the file can tell whether it holds all of one checkpoint and nothing of another.
"""

from __future__ import annotations

import sqlite3
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from acep_approx.query.rules.syntax import Column, Table
from acep_approx.rules.durable import database
from acep_approx.rules.durable.notes import NO_CALLS, Checkpoint
from acep_approx.rules.durable.store import Durable
from acep_approx.rules.words import schema_of

PROGRAM = "TABLE status (...)\nRULE warn ..."
STATUS = Table("status", (Column("hcw", "text"), Column("level", "text"), Column("n", "int")), ("hcw",))
EVERYTHING = Table(
    "order",  # a word of SQL
    (
        Column("group", "text"),
        Column("i", "int"),
        Column("f", "float"),
        Column("b", "bool"),
        Column("t", "time"),
        Column("s", "text"),
        Column("deleted", "int"),
    ),
    ("group", "i"),
)
"""A column of each type; names that are words of SQL, and one that changes have, too."""


def changed(table: Table, rows: Iterable[Sequence[Any]], gone: Iterable[Sequence[Any]] = ()) -> pa.Table:
    """Changes: rows that are there, and keys of rows that are not."""
    schema = schema_of(table)
    rows, gone = [*rows], [*gone]
    filled = [*rows, *((*key, *[None] * len(table.values)) for key in gone)]
    columns = zip(*filled, strict=True) if filled else [()] * len(schema)
    arrays = [pa.array(values, field.type) for values, field in zip(columns, schema, strict=True)]
    schema = schema.append(pa.field("deleted", pa.bool_()))
    return pa.table([*arrays, pa.array([False] * len(rows) + [True] * len(gone), pa.bool_())], schema=schema)


def calls(*ids: str, time: Any = 7) -> pa.Table:
    """Calls of some ids."""
    rows = [{"id": id_, "rule": "warn", "name": "badge", "time": time, "row": 3, "arguments": '["x"]'} for id_ in ids]
    return pa.Table.from_pylist(rows, NO_CALLS.schema) if isinstance(time, int) else pa.Table.from_pylist(rows)


def rows_in(checkpoint: Checkpoint | None, table: Table) -> list[tuple[Any, ...]]:
    """The rows of a table in a checkpoint that was loaded."""
    assert checkpoint is not None
    found = checkpoint.changes[table.name]
    assert found.schema.types == [*schema_of(table).types, pa.bool_()]
    return [tuple(row.values())[: len(table.columns)] for row in by_position(found)]


def by_position(table: pa.Table) -> list[dict[int, Any]]:
    """Rows by the number of the column, for two may have one name."""
    columns = [column.to_pylist() for column in table.columns]
    return [dict(enumerate(row)) for row in zip(*columns, strict=True)]


def plainly(path: Path, statement: str, *values: Any) -> list[Any]:
    """What any tool does: read or write a file, and commit."""
    connection = sqlite3.connect(path, timeout=0)
    try:
        with connection:
            return connection.execute(statement, values).fetchall()
    finally:
        connection.close()


# --- checkpoints that are a function of their number ------------------------------------------------------------------

RING = Table("ring", (Column("place", "int"), Column("n", "int")), ("place",))
SUMS = Table("sums", (Column("name", "text"), Column("total", "int")), ("name",))
PLACES, NAMES, EVERY = 50, 7, 5


def checkpoint_of(n: int) -> Checkpoint:
    """Checkpoint ``n``, from 1: one row changes in each table and one is deleted; a match and a call."""
    changes = {
        "ring": changed(RING, [(n % PLACES, n)], [((n + PLACES // 2) % PLACES,)]),
        "sums": changed(SUMS, [(f"name {n % NAMES}", n)]),
    }
    return Checkpoint(n, engine_of(n), changes, {"warn": pa.table({"n": [n]})}, calls(f"warn:{n}:0"))


def engine_of(n: int) -> bytes:
    """The state of the engine: large enough that it takes a while to be written."""
    return str(n).encode() * 20_000


def content_of(n: int) -> Mapping[str, list[tuple[Any, ...]]]:
    """All rows after checkpoint ``n``."""
    ring = [(m % PLACES, m) for m in range(max(1, n - PLACES // 2 + 1), n + 1)]
    return {"ring": sorted(ring), "sums": sorted((f"name {m % NAMES}", m) for m in range(max(1, n - NAMES + 1), n + 1))}


def check_whole(store: Durable) -> int:
    """Check that a store holds exactly one checkpoint; returns its number, 0 where there is none."""
    last = store.load()
    if last is None:
        assert not store.take_matches()
        assert store.pending_calls().num_rows == 0
        return 0
    assert last.engine == engine_of(last.offset)
    assert {"ring": rows_in(last, RING), "sums": rows_in(last, SUMS)} == content_of(last.offset)
    waits = [kept.matches["n"].to_pylist() for kept in store.take_matches()]
    since = [[n] for n in range((last.offset - 1) // EVERY * EVERY + 1, last.offset + 1)]
    assert waits == since or (last.offset % EVERY == 0 and not waits)  # taken after every fifth checkpoint
    assert store.pending_calls()["id"].to_pylist() in ([], [f"warn:{last.offset}:0"])
    return last.offset


def main(path: str) -> None:
    """Make checkpoints until somebody kills the process."""
    database.FOLD = 200  # it is to be killed while the log is folded, too
    with Durable(path, (RING, SUMS), PROGRAM) as store:
        n = check_whole(store)
        while True:
            if n and n % EVERY == 0:
                store.taken([kept.number for kept in store.take_matches()])
            store.delivered(store.pending_calls()["id"].to_pylist())
            n += 1
            store.commit(checkpoint_of(n))


if __name__ == "__main__":
    main(sys.argv[1])
