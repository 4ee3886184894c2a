"""Files that are no store of these rules, or not any more: each has its error, and none is changed."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from random import Random
from threading import Timer
from typing import Any

import pyarrow as pa
import pytest

from acep_approx.errors import AcepError, StoreError, UsageError
from acep_approx.query.rules.syntax import Column, Table
from acep_approx.rules.durable import layout, notes
from acep_approx.rules.durable.notes import Checkpoint
from acep_approx.rules.durable.store import Durable
from tests.cases import cases
from tests.rule_stores import EVERYTHING, PROGRAM, STATUS, calls, changed, plainly, rows_in


@pytest.fixture
def place(tmp_path):
    return tmp_path / "store.db"


@pytest.fixture
def written(place):
    """A store with rows, matches and a call."""
    rows = changed(STATUS, [("a", "safe", 1), ("b", None, None)])
    with Durable(place, (STATUS,), PROGRAM) as store:
        store.commit(Checkpoint(5, b"state", {"status": rows}, {"warn": pa.table({"n": [1, 2]})}, calls("warn:1:0")))
    return place


def read_all(place: Path, tables: Sequence[Table] = (STATUS,), program: str = PROGRAM) -> Any:
    """Open a file, and read all that is in it."""
    with Durable(place, tables, program) as store:
        return store.load(), store.take_matches(), store.pending_calls()


def refusal(place: Path, *tables: Table, program: str = PROGRAM) -> AcepError:
    """Why a file is refused, when it is opened or read; the file must be what it was."""
    before = place.read_bytes() if place.is_file() else None
    with pytest.raises(AcepError) as caught:
        read_all(place, tables or (STATUS,), program)
    assert before is None or place.read_bytes() == before
    assert caught.value.hint
    return caught.value


# --- places -----------------------------------------------------------------------------------------------------------


def test_a_folder_and_other_things_that_are_no_files(tmp_path):
    error = refusal(tmp_path)
    assert (error.code, error.exit_code) == ("ACEP-R201", 2)
    assert "which is a folder" in error.message
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    assert "which is no ordinary file" in str(refusal(pipe))


def test_a_folder_that_is_missing_is_not_made(tmp_path):
    error = refusal(tmp_path / "none" / "store.db")
    assert (error.code, error.exit_code) == ("ACEP-R202", 2)
    assert repr(str(tmp_path / "none")) in error.message
    assert not [*tmp_path.iterdir()]


@pytest.mark.skipif(not Path("/proc/self").is_dir(), reason="no folder that nobody may write")
def test_a_folder_that_cannot_be_written():
    error = refusal(Path("/proc/store.db"))
    assert (error.code, error.exit_code) == ("ACEP-R203", 4)
    assert "unable to open database file" in error.message


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everything")
def test_a_file_that_may_not_be_written(written):
    written.chmod(0o400)
    assert "readonly" in str(refusal(written))


def test_a_path_through_a_file(written):
    assert refusal(written / "store.db").code in ("ACEP-R202", "ACEP-R203")


def test_a_name_with_signs_of_urls_is_a_name(tmp_path):
    place = tmp_path / "a?mode=ro#é %20;:memory:.db"
    with Durable(place, (STATUS,), PROGRAM) as store:
        store.commit(Checkpoint(1, b""))
    assert [entry.name for entry in tmp_path.iterdir()] == [place.name]


def test_an_empty_file_is_a_new_one(place):
    place.touch()
    with Durable(place, (STATUS,), PROGRAM) as store:
        assert store.load() is None


def test_a_new_file_may_be_read_while_it_is_taken(place):
    """SQLite makes a log beside it, for which nobody may be reading: a run waits until the reader has ended."""
    place.touch()
    reader = sqlite3.connect(place, isolation_level=None, check_same_thread=False)
    reader.execute("BEGIN")
    reader.execute("SELECT * FROM sqlite_master").fetchall()
    ends = Timer(0.1, reader.close)
    ends.start()
    with Durable(place, (EVERYTHING, STATUS), PROGRAM) as store:
        assert store.load() is None
    ends.join()


# --- files of something else ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "content", [b"no store", b"hcw,level\na,safe\n" * 1000, bytes(5000), b"SQLite format 3\0", b"PAR1" * 400]
)
def test_a_file_that_is_none_of_sqlite(place, content):
    place.write_bytes(content)
    error = refusal(place)
    assert (error.code, error.exit_code) == ("ACEP-R205", 4)
    assert "is no file of SQLite" in error.message


def test_a_database_of_something_else(place):
    plainly(place, "CREATE TABLE status (hcw TEXT)")
    error = refusal(place)
    assert error.code == "ACEP-R206"
    assert "has 'status'" in error.message
    assert plainly(place, "PRAGMA journal_mode") == [("delete",)]


def test_a_database_with_a_table_that_is_called_like_ours(place):
    plainly(place, "CREATE TABLE acep_file (x)")
    with pytest.raises(StoreError, match=r"ACEP-R209: .* the table 'acep_file' is not as it was made"):
        read_all(place)
    assert plainly(place, "SELECT name FROM sqlite_master") == [("acep_file",)]


@pytest.mark.parametrize("number", ["2", "'one'", "x'01'"])
def test_another_format(written, number):
    plainly(written, f"UPDATE acep_file SET format = {number}")
    assert refusal(written).code == "ACEP-R207"


def test_other_rules(written):
    error = refusal(written, program=PROGRAM.replace("warn", "alarm"))
    assert error.code == "ACEP-R208"
    assert "it has 'RULE warn ...', these have 'RULE alarm ...'" in error.message
    assert "it has 'RULE warn ...', these have '(nothing)'" in str(refusal(written, program=PROGRAM.splitlines()[0]))
    assert "it has '(nothing)', these have 'more'" in str(refusal(written, program=PROGRAM + "\nmore"))


# --- tables that were changed -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("statement", "says"),
    [
        ("DROP TABLE status", "there is no such table"),
        ("ALTER TABLE status RENAME TO state", "there is no such table"),
        ("ALTER TABLE status DROP COLUMN n", "it has no column 'n'"),
        ("ALTER TABLE status RENAME COLUMN n TO m", "it has no column 'n'"),
        ("ALTER TABLE status ADD COLUMN more TEXT", "it has a column 'more'"),
        ("CREATE TRIGGER mine AFTER UPDATE ON Status BEGIN DELETE FROM status; END", "a trigger 'mine' on the table"),
        ("CREATE TRIGGER mine AFTER UPDATE ON acep_checkpoint BEGIN DELETE FROM status; END", "a trigger 'mine' on"),
    ],
)
def test_columns_that_were_changed_by_hand(written, statement, says):
    try:
        plainly(written, statement)
    except sqlite3.OperationalError as error:  # old versions of SQLite
        pytest.skip(str(error))
    error = refusal(written)
    assert error.code == "ACEP-R210"
    assert says in error.message


@pytest.mark.parametrize(
    ("table", "says"),
    [
        ("hcw TEXT PRIMARY KEY, level INTEGER, n INTEGER", "column 'level' is INTEGER, not TEXT"),
        ("hcw TEXT PRIMARY KEY, level, n INTEGER", "column 'level' is of no type, not TEXT"),
        ("hcw TEXT, level TEXT, n INTEGER", "column 'hcw' is no part of the key"),
        ("hcw TEXT, level TEXT, n INTEGER, PRIMARY KEY (hcw, n)", "column 'n' is part of the key"),
    ],
)
def test_a_table_that_was_made_anew(written, table, says):
    plainly(written, "DROP TABLE status")
    plainly(written, f"CREATE TABLE status ({table})")
    error = refusal(written)
    assert error.code == "ACEP-R210"
    assert says in error.message
    assert 'CREATE TABLE "status" (' in str(error)


def test_a_view_is_no_table(written):
    plainly(written, "DROP TABLE status")
    plainly(written, "CREATE VIEW status AS SELECT 'a' AS hcw, 'b' AS level, 1 AS n")
    assert "it is no table" in str(refusal(written))


def test_a_table_that_was_made_anew_as_it_was(written):
    """In another order, without what SQLite is to check, as some tools copy tables."""
    plainly(written, "DROP TABLE status")
    plainly(written, "CREATE TABLE status (n integer, level text, hcw text primary key)")
    plainly(written, "INSERT INTO status VALUES (1, 'safe', 'a')")
    with Durable(written, (STATUS,), PROGRAM) as store:
        assert rows_in(store.load(), STATUS) == [("a", "safe", 1)]
        store.commit(Checkpoint(6, b"", {"status": changed(STATUS, [("a", "safe", 2)])}))
        assert rows_in(store.load(), STATUS) == [("a", "safe", 2)]


# --- values that were changed -----------------------------------------------------------------------------------------


@pytest.fixture
def unchecked(place):
    """A store whose tables SQLite no longer checks."""
    with Durable(place, (EVERYTHING,), PROGRAM) as store:
        store.commit(Checkpoint(5, b"state"))
    plainly(place, 'DROP TABLE "order"')
    inside = ", ".join(f'"{column.name}" {layout.DECLARED[column.holds]}' for column in EVERYTHING.columns)
    plainly(place, f'CREATE TABLE "order" ({inside}, PRIMARY KEY ("group", i))')
    plainly(place, """INSERT INTO "order" VALUES ('g', 1, 0.5, 1, '2024-03-01 12:00:00.000005', 's', 9)""")
    return place


@pytest.mark.parametrize(
    ("column", "value", "says"),
    [
        ("i", "'one'", "column 'i' of table 'order' holds int, and is 'one' where group = 'g', i = 'one'"),
        ("i", "1.5", "column 'i' of table 'order' holds int, and is 1.5"),
        ("i", "NULL", "column 'i' of table 'order' is part of the key, and is NULL where group = 'g', i = NULL"),
        ("group", "NULL", "column 'group' of table 'order' is part of the key, and is NULL"),
        ("group", "x'00'", "column 'group' of table 'order' holds text, and is b'\\x00'"),
        ("f", "'x'", "column 'f' of table 'order' holds float, and is 'x'"),
        ("b", "2", "column 'b' of table 'order' holds bool, and is 2"),
        ("b", "'yes'", "column 'b' of table 'order' holds bool, and is 'yes'"),
        ("t", "'2024-03-01'", "column 't' of table 'order' holds time, and is '2024-03-01'"),
        ("t", "'2023-02-29 12:00:00.000005'", "2023-02-29"),
        ("t", "'2024-02-29 24:00:00.000005'", "2024-02-29 24"),
        ("t", "'0000-03-01 12:00:00.000005'", "a time lies before the year 1"),
        ("t", "'2024-03-01 12:00:00.000005' || char(0)", "2024-03-01"),
        ("t", "1709294400", "column 't' of table 'order' holds time, and is 1709294400"),
        ("s", "x'00'", "column 's' of table 'order' holds text, and is b'\\x00'"),
        ("s", "CAST(x'61ff' AS TEXT)", "Could not decode to UTF-8 column 's'"),
        ("group", "CAST(x'eda080' AS TEXT)", "Could not decode to UTF-8 column 'group'"),
    ],
)
def test_values_that_do_not_fit(unchecked, column, value, says):
    plainly(unchecked, f'UPDATE "order" SET "{column}" = {value}')
    error = refusal(unchecked, EVERYTHING)
    assert error.code == "ACEP-R211"
    assert says in error.message


def test_values_that_sqlite_was_told_not_to_check(place):
    """SQLite's own check tells it, too, but does not say where."""
    with Durable(place, (EVERYTHING,), PROGRAM) as store:
        store.commit(Checkpoint(5, b"state", {"order": changed(EVERYTHING, [("g", 1, 0.5, True, None, "s", 9)])}))
    connection = sqlite3.connect(place)
    with connection:
        connection.execute("PRAGMA ignore_check_constraints = ON")
        connection.execute('UPDATE "order" SET b = 7')
    connection.close()
    error = refusal(place, EVERYTHING)
    assert error.code == "ACEP-R211"
    assert "column 'b' of table 'order' holds bool, and is 7 where group = 'g', i = 1" in error.message


# --- what only the run writes -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "statement",
    [
        *(f"DROP TABLE {name}" for name in notes.TABLES if name != "acep_file"),
        *(f"ALTER TABLE {name} ADD COLUMN more" for name in notes.TABLES),
        "DELETE FROM acep_file",
        "DELETE FROM acep_checkpoint",
        "INSERT INTO acep_checkpoint SELECT * FROM acep_checkpoint",
        "UPDATE acep_checkpoint SET offset = 4",
        "UPDATE acep_checkpoint SET offset = 'four'",
        "UPDATE acep_checkpoint SET engine = x'00'",
        "UPDATE acep_checkpoint SET engine = 'state'",
        "UPDATE acep_checkpoint SET sha256 = x'00'",
        "UPDATE acep_matches SET arrow = zeroblob(200)",
        "UPDATE acep_matches SET arrow = 'text'",
        "UPDATE acep_matches SET rule = 'other'",
        "UPDATE acep_matches SET rule = x'00'",
        "UPDATE acep_calls SET id = x'00'",
        "UPDATE acep_calls SET time = 1.5",
        "UPDATE acep_calls SET time = 'noon'",
        "UPDATE acep_calls SET row = 'first'",
        "UPDATE acep_calls SET zone = x'00'",
        "UPDATE acep_calls SET zone = 'Atlantis', time = '2024-03-01 12:00:00.000000'",
        "UPDATE acep_calls SET arguments = '['",
        "UPDATE acep_calls SET arguments = '{}'",
    ],
)
def test_notes_of_ours_that_were_changed(written, statement):
    plainly(written, statement)
    assert refusal(written).code == "ACEP-R209"


def test_a_file_that_is_damaged_anywhere_is_refused_or_its_values_fit(written, tmp_path):
    """Never a crash, and never a state that was not written. Values of tables anyone may have changed."""
    dice, whole, codes = Random(1), written.read_bytes(), set()
    for number in range(cases(500)):
        content, place = bytearray(whole), tmp_path / f"damaged{number}.db"
        for _ in range(dice.choice((1, 1, 8))):
            content[dice.randrange(len(content))] ^= 1 << dice.randrange(8)
        place.write_bytes(content[: dice.randrange(len(content))] if dice.random() < 0.2 else content)
        try:
            last, matches, _ = read_all(place)
        except StoreError as error:
            codes.add(error.code)
            continue
        if last is not None:  # it was cut to nothing
            assert (last.offset, last.engine) == (5, b"state")
            rows_in(last, STATUS)
            assert [kept.matches for kept in matches] in ([], [pa.table({"n": [1, 2]})])
    assert {"ACEP-R209"} <= codes <= {f"ACEP-R{code}" for code in range(203, 212)}


# --- tables that no file can hold -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tables", "says"),
    [
        ([Table("acep_status", STATUS.columns, ("hcw",))], "names begin like 'acep_status'"),
        ([Table("SQLite_x", STATUS.columns, ("hcw",))], "names begin like 'SQLite_x'"),
        ([STATUS, Table("Status", STATUS.columns, ("hcw",))], "two tables, 'status' and 'Status', are one name in SQL"),
        (
            [Table("t", (Column("a", "int"), Column("b", "int"), Column("A", "int")), ("a",))],
            "'a' and 'A', are one name",
        ),
        ([Table("t", tuple(Column(f"c{n}", "int") for n in range(2001)), ("c0",))], "table 't' has 2,001 columns"),
    ],
)
def test_tables_that_no_file_can_hold(place, tables, says):
    error = refusal(place, *tables)
    assert isinstance(error, UsageError)
    assert error.code == "ACEP-R213"
    assert says in error.message
    assert not place.exists()


def test_as_many_columns_as_there_may_be(place):
    table = Table("t", tuple(Column(f"c{n}", "int") for n in range(layout.MOST_COLUMNS)), ("c0",))
    with Durable(place, (table,), PROGRAM) as store:
        store.commit(Checkpoint(1, b"", {"t": changed(table, [range(layout.MOST_COLUMNS)])}))
        assert rows_in(store.load(), table) == [tuple(range(layout.MOST_COLUMNS))]


def test_no_such_synchronous(place):
    with pytest.raises(UsageError, match="ACEP-R214"):
        Durable(place, (STATUS,), PROGRAM, synchronous="OFF")  # type: ignore[arg-type]
