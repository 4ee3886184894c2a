"""The durable store of a run: opened once, read once, then a transaction for each checkpoint."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self, get_args

import pyarrow as pa
import pyarrow.compute as pc

from acep_approx.errors import StoreError, UsageError
from acep_approx.query.rules.syntax import Table
from acep_approx.rules.durable import layout, notes
from acep_approx.rules.durable.database import MARK, PAGE, Database, Synchronous, damaged, store_error
from acep_approx.rules.durable.layout import rows_of, table_of
from acep_approx.rules.durable.notes import Checkpoint
from acep_approx.rules.words import schema_of

_BY_HAND = re.compile(r"(CHECK constraint failed|\w*-?\w+ value) in ")
"""What SQLite's check says of values that do not fit: we say it better, of the row, when it is read."""
NULL = "NULL"


def check_file(database: Database, tables: Sequence[Table], program: str) -> None:
    """Refuse a file that is not new and not the store of these rules.

    Raises
    ------
    StoreError
        ``ACEP-R207``: of another format; ``ACEP-R208``: of other rules; ``ACEP-R209``: damaged; ``ACEP-R210``: a table
        is not as it was declared.

    Complexity: O(file), read once.
    """
    _check_format(database)
    found = [text for (text,) in database.rows("PRAGMA quick_check")]
    if wrong := [text for text in found if text != "ok" and not _BY_HAND.match(str(text))]:
        raise damaged(database.path, "; ".join(map(str, wrong[:3])))
    for name in notes.TABLES:
        if _columns_of(database, name) != notes.columns(name):
            raise damaged(database.path, f"the table {name!r} is missing, or not as it was made")
    _check_program(database, program)
    for table in tables:
        _check_table(database, table)
    _check_triggers(database, [*notes.TABLES, *(table.name for table in tables)])


def _check_format(database: Database) -> None:
    has_format = "format" in _columns_of(database, MARK)
    formats = database.rows("SELECT format FROM acep_file") if has_format else []
    if len(formats) != 1:
        raise damaged(database.path, f"the table {MARK!r} is not as it was made")
    if formats[0][0] != notes.FORMAT:
        raise StoreError(
            f"the store {str(database.path)!r} has format {formats[0][0]!r:.20}, this version reads {notes.FORMAT}",
            code="ACEP-R207",
            hint="go on with the version that wrote it, or begin with a new file",
        )


def _check_program(database: Database, program: str) -> None:
    theirs = database.rows("SELECT program FROM acep_file")[0][0]
    if theirs == program:
        return
    had, have = (str(text).splitlines() for text in (theirs, program))
    same = next((n for n, (a, b) in enumerate(zip(had, have, strict=False)) if a != b), min(len(had), len(have)))
    one, other = (lines[same].strip() if same < len(lines) else "(nothing)" for lines in (had, have))
    raise StoreError(
        f"the store {str(database.path)!r} is of other rules: it has {one!r:.160}, these have {other!r:.160}",
        code="ACEP-R208",
        hint="name another file; rows that are to be kept can be read from this one, and given to the start of the run",
    )


def _columns_of(database: Database, table: str) -> list[str]:
    return [row[1] for row in database.rows(f"PRAGMA table_xinfo({layout.quoted(table)})")]


def _check_table(database: Database, table: Table) -> None:
    """Names, types and the key; in which order columns stand makes no difference."""
    kinds = database.rows("SELECT type FROM sqlite_master WHERE name = ?", table.name)
    if kinds != [("table",)]:
        raise _not_as_declared(database, table, "there is no such table" if not kinds else "it is no table")
    there = {name: (kind.upper(), key > 0) for _, name, kind, _, _, key, _ in database.rows(
        f"PRAGMA table_xinfo({layout.quoted(table.name)})")}  # fmt: skip
    for column in table.columns:
        if column.name not in there:
            raise _not_as_declared(database, table, f"it has no column {column.name!r}")
        kind, is_key = there.pop(column.name)
        if kind != layout.DECLARED[column.holds]:
            wanted = layout.DECLARED[column.holds]
            raise _not_as_declared(database, table, f"column {column.name!r} is {kind or 'of no type'}, not {wanted}")
        if is_key != (column.name in table.key):
            part = "is part of the key" if is_key else "is no part of the key"
            raise _not_as_declared(database, table, f"column {column.name!r} {part}")
    if there:
        raise _not_as_declared(database, table, f"it has a column {next(iter(there))!r}")


def _check_triggers(database: Database, names: Sequence[str]) -> None:
    """Triggers could change rows behind the back of the run."""
    lower = {name.lower() for name in names}
    for trigger, name in database.rows("SELECT name, tbl_name FROM sqlite_master WHERE type = 'trigger'"):
        if name.lower() in lower:
            raise StoreError(
                f"the store {str(database.path)!r} has a trigger {trigger!r} on the table {name!r}",
                code="ACEP-R210",
                hint=f"DROP TRIGGER {layout.quoted(trigger)}; what changed in a run it tells itself, in its changes",
            )


def _not_as_declared(database: Database, table: Table, what: str) -> StoreError:
    return StoreError(
        f"the table {table.name!r} of the store {str(database.path)!r} is not as the rules declare it: {what}",
        code="ACEP-R210",
        hint="values may be changed by hand, columns may not; it was made with\n" + layout.create(table),
    )


def read_rows(database: Database, table: Table) -> pa.Table:
    """All rows of a table, in the order of the key.

    Raises
    ------
    StoreError
        ``ACEP-R211``: a value does not fit the type of its column, or one of the key is NULL.
    """
    for column in table.columns:
        if rows := database.rows(layout.unfit(table, column)):
            *key, value = (NULL if part is None else f"{part!r:.40}" for part in rows[0])
            at = ", ".join(f"{name} = {part}" for name, part in zip(table.key, key, strict=True))
            wanted = "is part of the key" if value == NULL else f"holds {column.holds}"
            what = f"column {column.name!r} of table {table.name!r} {wanted}, and is {value} where {at}"
            raise store_error("ACEP-R211", database.path, what)
    try:
        return table_of(database.rows(layout.select(table)), schema_of(table))
    except pa.ArrowException as error:
        raise store_error("ACEP-R211", database.path, f"table {table.name!r}: {error}") from error


DELETED = "deleted"
"""The last column of changes."""


class Durable:
    """A store of rules in a file.

    Parameters
    ----------
    path : path
        A file that such a run wrote, or one that is not there yet. It is made by the first checkpoint.
    tables : sequence of Table
        Those of the rules.
    program : str
        The canonical text of the rules. A file of other rules is refused.
    synchronous : {"FULL", "NORMAL"}, default "FULL"
        Whether a checkpoint waits until it is on the disk. Either way it is whole or not there, whatever happens. With
        NORMAL the last checkpoints may be missing after a failure of the machine, not of the process.

    Raises
    ------
    UsageError
        ``ACEP-R201``, ``ACEP-R202``: there can be no such file; ``ACEP-R213``: a file cannot hold such tables;
        ``ACEP-R214``: no such ``synchronous``.
    StoreError
        The system refuses (``ACEP-R203``); another run has it open (``ACEP-R204``); it is no file of SQLite
        (``ACEP-R205``), a database of something else (``ACEP-R206``), of another format (``ACEP-R207``), of other rules
        (``ACEP-R208``), damaged (``ACEP-R209``); a table is not as it was declared (``ACEP-R210``).

    Notes
    -----
    No two runs have a file open at a time, see ``database``. Each method may raise ``ACEP-R203``, and ``ACEP-R212``
    where somebody has written all the same; what was committed then holds.

    Complexity: to open it, O(file); a checkpoint, O(changed rows x log(rows) + state).

    Examples
    --------
    >>> import tempfile
    >>> from acep_approx.query import parse_rules
    >>> place = Path(tempfile.mkdtemp()) / "store.db"
    >>> tables = parse_rules("TABLE room (id text, n int, KEY (id)) RULE r ON PATTERN A a WITHIN 1").tables
    >>> with Durable(place, tables, "TABLE room ...") as store:
    ...     print(store.load())
    ...     rows = pa.table({"id": ["hall"], "n": [1], "deleted": [False]})
    ...     _ = store.commit(Checkpoint(12, b"state", {"room": rows}))
    None
    >>> with Durable(place, tables, "TABLE room ...") as store:
    ...     last = store.load()
    >>> last.offset, last.engine, last.changes["room"].to_pylist()
    (12, b'state', [{'id': 'hall', 'n': 1, 'deleted': False}])
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        tables: Sequence[Table],
        program: str,
        *,
        synchronous: Synchronous = "FULL",
    ) -> None:
        if synchronous not in get_args(Synchronous):
            raise UsageError(f"synchronous is {synchronous!r:.40}", code="ACEP-R214", hint="FULL or NORMAL")
        layout.check_names(tables)
        self.tables = {table.name: table for table in tables}
        self.program = program
        self._database = Database(Path(path), synchronous)
        try:
            self._is_new = self._database.is_empty()
            if not self._is_new:
                check_file(self._database, tables, program)
        except BaseException:
            self.close()
            raise

    @property
    def path(self) -> Path:
        """The file."""
        return self._database.path

    @property
    def is_closed(self) -> bool:
        """Whether the file was let go of: by ``close``, or because another tool has written it."""
        return self._database.is_closed

    def load(self) -> Checkpoint | None:
        """The last checkpoint, with all rows of all tables as its changes; None where there is none yet.

        What waits is not in it: see ``take_matches`` and ``pending_calls``. Rows that were changed by hand since are as
        they are now.

        Raises
        ------
        StoreError
            ``ACEP-R209``: the state is not as it was written; ``ACEP-R211``: a value does not fit.

        Complexity: O(rows).
        """
        if self._is_new:
            return None
        offset, engine = notes.read_state(self._database)
        rows = {name: read_rows(self._database, table) for name, table in self.tables.items()}
        return Checkpoint(offset, engine, {name: none_deleted(table) for name, table in rows.items()})

    def commit(self, checkpoint: Checkpoint) -> list[int]:
        """Write a checkpoint: all of it or nothing.

        The first one makes the tables, so its changes are all rows that the run begins with.

        Returns
        -------
        list of int
            The numbers of its matches, in their order, but of tables without rows.

        Raises
        ------
        StoreError
            ``ACEP-R203``: e.g. the disk is full; ``ACEP-R215``: a value that a file cannot hold; ``ACEP-R216``: an
            index that was made by hand does not take a row. The file is as it was before.
        ValueError
            The columns of changes are not those of the table.
        """
        size = len(checkpoint.engine)
        with self._database.transaction() as connection:
            if self._is_new:
                notes.make(connection, self.program)
                for table in self.tables.values():
                    connection.execute(layout.create(table))
            for name, rows in checkpoint.changes.items():
                self._write(self.tables[name], rows)
                size += rows.num_rows * PAGE  # at worst each is on a page of its own
            notes.write_state(connection, checkpoint.offset, checkpoint.engine, is_first=self._is_new)
            notes.forget_matches(connection, checkpoint.taken)
            notes.forget_calls(connection, checkpoint.made)
            numbers, more = notes.add_matches(connection, checkpoint.matches)
            size += more
            if checkpoint.calls is not None:
                size += notes.add_calls(connection, checkpoint.calls)
        self._is_new = False
        self._database.wrote(size)
        return numbers

    def _write(self, table: Table, rows: pa.Table) -> None:
        if pa.schema(list(rows.schema)[:-1]) != schema_of(table) or rows.schema.types[-1] != pa.bool_():
            raise ValueError(f"changes of table {table.name!r} have the columns {rows.schema}")
        is_deleted = rows.column(rows.num_columns - 1)
        connection = self._database.connection
        gone = rows.filter(is_deleted).columns[: len(table.key)]
        connection.executemany(layout.delete(table), rows_of(gone))
        stays = rows.filter(pc.invert(is_deleted)).columns[:-1]
        connection.executemany(layout.upsert(table), rows_of(stays))

    def take_matches(self) -> list[notes.Kept]:
        """Matches that are committed and not yet taken, in order; they stay until ``taken`` is called.

        Raises
        ------
        StoreError
            ``ACEP-R209``: they are not as they were written.
        """
        return [] if self._is_new else notes.read_matches(self._database)

    def taken(self, numbers: Iterable[int]) -> None:
        """Matches of these numbers are no longer needed: a transaction of its own, or see ``Checkpoint.taken``."""
        if (gone := [*numbers]) and not self._is_new:
            with self._database.transaction() as connection:
                notes.forget_matches(connection, gone)

    def pending_calls(self) -> pa.Table:
        """Calls that are committed and not yet made, in order: columns as ``notes.CALLS`` names them.

        Raises
        ------
        StoreError
            ``ACEP-R209``: they are not as they were written.
        """
        return notes.NO_CALLS if self._is_new else notes.read_calls(self._database)

    def delivered(self, ids: Iterable[str]) -> None:
        """Calls of these ids have been made: a transaction of its own, or see ``Checkpoint.made``."""
        if (gone := [*ids]) and not self._is_new:
            with self._database.transaction() as connection:
                notes.forget_calls(connection, gone)
            self._database.wrote(len(gone) * PAGE)

    def close(self) -> None:
        """Let go of the file; what was not committed is not there. May be called twice."""
        self._database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def none_deleted(rows: pa.Table) -> pa.Table:
    """Rows as changes, none of which is deleted."""
    return rows.append_column(DELETED, pa.repeat(pa.scalar(value=False), rows.num_rows))
