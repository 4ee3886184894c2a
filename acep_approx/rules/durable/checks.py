"""Whether a file is the store of these rules, whole, with tables as they were declared: asked before any of it is used.

Nothing is changed here. Values of tables may have been changed by hand between two runs, as long as they fit; so may
indexes, views and tables of one's own have been added.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import pyarrow as pa

from acep_approx.errors import StoreError
from acep_approx.query.rules.syntax import Column, Table
from acep_approx.rules.durable import layout, notes
from acep_approx.rules.durable.database import MARK, Database, damaged, unfit
from acep_approx.rules.durable.layout import table_of

_BY_HAND = re.compile(r"(CHECK constraint failed|\w*-?\w+ value) in ")
"""What SQLite's check says of values that do not fit: we say it better, of the row, when it is read."""


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
            raise unfit(database.path, _where(table, column, rows[0]))
    try:
        return table_of(database.rows(layout.select(table)), layout.schema_of(table))
    except pa.ArrowException as error:
        raise unfit(database.path, f"table {table.name!r}: {error}") from error


def _where(table: Table, column: Column, row: Sequence[object]) -> str:
    *key, value = row
    at = ", ".join(f"{name} = {_shown(part)}" for name, part in zip(table.key, key, strict=True))
    wanted = f"holds {column.holds}" if value is not None else "is part of the key"
    return f"column {column.name!r} of table {table.name!r} {wanted}, and is {_shown(value)} where {at}"


def _shown(value: object) -> str:
    return "NULL" if value is None else f"{value!r:.40}"
