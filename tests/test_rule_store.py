"""The store of rules in a file: what was committed is what is loaded, and what other tools read."""

from __future__ import annotations

import math
import sqlite3
import string
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from acep_approx.errors import StoreError, UsageError
from acep_approx.query.rules.syntax import Column, Table
from acep_approx.rules.durable import database, layout
from acep_approx.rules.durable.layout import EARLIEST, LATEST
from acep_approx.rules.durable.notes import Checkpoint
from acep_approx.rules.durable.store import Durable
from tests.cases import cases, examples
from tests.rule_stores import EVERYTHING, PROGRAM, STATUS, calls, changed, plainly, rows_in

NOON = datetime(2024, 3, 1, 12, 0, 0, 5)  # noqa: DTZ001  times of tables have no zone


@pytest.fixture
def place(tmp_path):
    return tmp_path / "store.db"


def opened(place: Path, *tables: Table, **how: Any) -> Durable:
    return Durable(place, tables or (STATUS,), PROGRAM, **how)


# --- values -----------------------------------------------------------------------------------------------------------

VALUES: dict[str, st.SearchStrategy[Any]] = {
    "int": st.one_of(st.integers(-3, 3), st.integers(-(2**63), 2**63 - 1)),
    "float": st.floats(allow_nan=False).map(lambda x: x + 0.0),  # SQLite has one zero
    "text": st.one_of(
        st.sampled_from(["", "a", "A", "'", '"', "\0", "a\0b", "1", "NULL", "é", "e\u0301", "\U0001f600"]), st.text()
    ),
    "bool": st.booleans(),
    "time": st.datetimes(datetime(1, 1, 1), datetime(9999, 12, 31, 23, 59, 59, 999_999)),  # noqa: DTZ001
}
NAMES = st.one_of(
    st.sampled_from(["order", "select", "rowid", "oid", "_rowid_", "deleted", "key", "index", "größe", "x", "y"]),
    st.text(string.ascii_lowercase, min_size=1, max_size=3),
)


@st.composite
def tables(draw) -> Table:
    """A table with columns of any types, and a key of one or several of them in any order."""
    names = draw(st.lists(NAMES, min_size=1, max_size=6, unique=True))
    columns = tuple(Column(name, draw(st.sampled_from([*VALUES]))) for name in names)
    key = draw(st.permutations(names))[: draw(st.integers(1, len(names)))]
    return Table(draw(NAMES), columns, tuple(key))


@st.composite
def histories(draw) -> tuple[Table, list[Any]]:
    """A table, and what happens to it: new rows and deleted keys, or None: the file is closed and opened."""
    table = draw(tables())
    pool = draw(
        st.lists(st.tuples(*(VALUES[column.holds] for column in table.keys)), min_size=1, max_size=8, unique=True)
    )
    steps = []
    for _ in range(draw(st.integers(1, 5))):
        touched = draw(st.lists(st.sampled_from(pool), unique=True))
        rows, gone = [], []
        for key in touched:
            if draw(st.integers(0, 3)):
                rows.append((*key, *(draw(st.none() | VALUES[column.holds]) for column in table.values)))
            else:
                gone.append(key)
        steps.append((rows, gone))
        if draw(st.booleans()):
            steps.append(None)
    return table, steps


def by_key(table: Table, rows: Any) -> dict[Any, Any]:
    """Rows by key: 0.0 and FALSE are other keys than 0, as they are in columns of other types."""
    return {row[: len(table.key)]: row for row in rows}


@given(histories())
@settings(examples(300), max_examples=cases(300, 12))
def test_what_was_committed_is_what_is_loaded(history):
    table, steps = history
    expected: dict[Any, Any] = {}
    with TemporaryDirectory() as folder:
        place = Path(folder) / "store.db"
        store = opened(place, table, synchronous="NORMAL")
        for number, step in enumerate(steps):
            if step is None:
                store.close()
                store = opened(place, table, synchronous="NORMAL")
                continue
            rows, gone = step
            store.commit(Checkpoint(number, bytes([number]), {table.name: changed(table, rows, gone)}))
            expected |= by_key(table, rows)
            expected = {key: row for key, row in expected.items() if key not in gone}
            last = store.load()
            assert (last.offset, last.engine) == (number, bytes([number]))
            found = rows_in(last, table)
            assert len(found) == len(expected)
            assert by_key(table, found) == expected
        store.close()


def test_values_at_the_ends_of_their_types(place):
    rows = [
        ("", -(2**63), -math.inf, True, datetime(1, 1, 1), "\0", 0),  # noqa: DTZ001
        ("'", 2**63 - 1, math.inf, False, datetime(9999, 12, 31, 23, 59, 59, 999_999), '\'; DROP TABLE "order"; --', 1),  # noqa: DTZ001
        ("\0", 2**53 + 1, 5e-324, None, None, None, None),
    ]
    with opened(place, EVERYTHING) as store:
        store.commit(Checkpoint(0, b"", {"order": changed(EVERYTHING, rows)}))
    with opened(place, EVERYTHING) as store:
        assert sorted(rows_in(store.load(), EVERYTHING)) == sorted(rows)


def test_rows_come_in_the_order_of_the_key(place):
    table = Table("t", (Column("x", "int"), Column("a", "text"), Column("b", "int")), ("b", "a"))
    with opened(place, table) as store:
        store.commit(Checkpoint(0, b"", {"t": changed(table, [(2, "a", 0), (1, "b", 0), (1, "B", 0), (-1, "z", 0)])}))
        assert [row[:2] for row in rows_in(store.load(), table)] == [(-1, "z"), (1, "B"), (1, "b"), (2, "a")]


def test_there_may_be_no_tables(place):
    for _ in range(2):
        with Durable(place, (), PROGRAM) as store:
            store.commit(Checkpoint(3, b"state"))
            assert store.load().changes == {}


@pytest.mark.parametrize("tick", [-(2**60), EARLIEST - 1, LATEST + 1, 2**60])
def test_a_time_that_no_file_holds_is_refused_and_nothing_is_written(place, tick):
    beyond = pa.array([tick], pa.timestamp("us"))
    rows = changed(EVERYTHING, [("g", 1, 0.5, True, NOON, "s", 1)])
    with opened(place, EVERYTHING) as store:
        store.commit(Checkpoint(1, b"one", {"order": rows}))
        with pytest.raises(StoreError, match="ACEP-R215: a time lies outside the years 1 to 9999"):
            store.commit(Checkpoint(2, b"two", {"order": rows.set_column(4, "t", beyond)}))
        assert (store.load().offset, len(rows_in(store.load(), EVERYTHING))) == (1, 1)


def test_columns_of_another_table_are_a_mistake_of_ours(place):
    with opened(place) as store, pytest.raises(ValueError, match="changes of table 'status' have the columns"):
        store.commit(Checkpoint(1, b"", {"status": changed(EVERYTHING, [])}))


# --- what other tools read --------------------------------------------------------------------------------------------


def test_other_tools_read_tables_with_their_names_and_types(place):
    with opened(place, EVERYTHING) as store:
        store.commit(Checkpoint(5, b"", {"order": changed(EVERYTHING, [("g", 1, 0.5, True, NOON, "s", 9)])}))
        assert plainly(place, 'SELECT * FROM "order"') == [("g", 1, 0.5, 1, "2024-03-01 12:00:00.000005", "s", 9)]
        types = {name: kind for _, name, kind, *_ in plainly(place, 'PRAGMA table_info("order")')}
        assert [*types.values()] == ["TEXT", "INTEGER", "REAL", "INTEGER", "TIMESTAMP", "TEXT", "INTEGER"]
        seconds = plainly(place, """SELECT strftime('%s', t), date(t, '+1 day') FROM "order" """)
        assert seconds == [(str(int(NOON.replace(tzinfo=UTC).timestamp())), "2024-03-02")]
        assert plainly(place, "SELECT format, program FROM acep_file") == [(1, PROGRAM)]
        assert plainly(place, "SELECT offset FROM acep_checkpoint") == [(5,)]
        connection = sqlite3.connect(place)
        frame = pd.read_sql('SELECT * FROM "order"', connection, parse_dates=["t"])
        connection.close()
        assert frame["t"][0] == pd.Timestamp(NOON)
    assert place.read_bytes()[68:72] == b"acep"
    assert [entry.name for entry in place.parent.iterdir()] == ["store.db"]  # nothing is left beside it


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("i", "'one'"), ("i", "1.5"), ("i", "NULL"), ("i", "x'00'"), ("group", "NULL"), ("f", "'x'"), ("b", "2"),
        ("b", "'true'"), ("t", "'2024-03-01'"), ("t", "'2024-03-01T12:00:00.000005'"), ("t", "1709294400"),
        ("t", "'2024-03-01 12:00:00'"), ("s", "x'00'"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused_by_sqlite_whoever_writes_it(place, column, value):
    with opened(place, EVERYTHING) as store:
        store.commit(Checkpoint(5, b"", {"order": changed(EVERYTHING, [("g", 1, 0.5, True, NOON, "s", 9)])}))
    with pytest.raises(sqlite3.IntegrityError, match="constraint failed"):
        plainly(place, f'UPDATE "order" SET "{column}" = {value}')


def test_rows_that_are_changed_by_hand_between_runs_are_taken_over(place):
    with opened(place) as store:
        store.commit(Checkpoint(5, b"", {"status": changed(STATUS, [("a", "safe", 1), ("b", "safe", 2)])}))
    plainly(place, "UPDATE status SET level = 'warning' WHERE hcw = 'a'")
    plainly(place, "DELETE FROM status WHERE hcw = 'b'")
    plainly(place, "INSERT INTO status (hcw, n) VALUES (12, '7')")  # SQLite makes them what the columns hold
    plainly(place, "CREATE INDEX mine ON status (level)")
    plainly(place, "CREATE TABLE notes (mine)")
    plainly(place, "CREATE VIEW warned AS SELECT hcw FROM status WHERE level = 'warning'")
    with opened(place) as store:
        assert rows_in(store.load(), STATUS) == [("12", None, 7), ("a", "warning", 1)]
        store.commit(Checkpoint(6, b"", {"status": changed(STATUS, [("c", "warning", 1)])}))
    assert plainly(place, "SELECT hcw FROM warned ORDER BY hcw") == [("a",), ("c",)]


# --- matches and calls ------------------------------------------------------------------------------------------------


def test_matches_wait_until_they_are_taken(place):
    found = [pa.table({"ts": pa.array([NOON], pa.timestamp("us")), "a": [[1, 2]]}), pa.table({"n": [1, 2]})]
    with opened(place) as store:
        assert store.take_matches() == []
        store.commit(Checkpoint(1, b"", matches={"warn": found[0], "quiet": found[1].slice(0, 0)}))
        store.commit(Checkpoint(2, b"", matches={"note": found[1], "warn": found[0]}))
    for _ in range(2):  # at least once
        with opened(place) as store:
            kept = store.take_matches()
            assert [(one.number, one.rule) for one in kept] == [(1, "warn"), (2, "note"), (3, "warn")]
            assert [one.matches for one in kept] == [found[0], found[1], found[0]]
    with opened(place) as store:
        store.taken([1, 2])
        assert [one.number for one in store.take_matches()] == [3]
        store.taken([3])
        store.commit(Checkpoint(3, b"", matches={"warn": found[0]}))
        assert [one.number for one in store.take_matches()] == [4]  # no number is used twice
        assert store.commit(Checkpoint(4, b"", matches={"a": found[0], "b": found[1]}, taken=[4])) == [5, 6]
        assert [one.number for one in store.take_matches()] == [5, 6]
    (blob,) = plainly(place, "SELECT arrow FROM acep_matches")[0]
    assert pa.ipc.open_stream(blob).read_all() == found[0]  # whoever has Arrow can read them


def test_calls_wait_until_they_are_made(place):
    with opened(place) as store:
        assert store.pending_calls().num_rows == 0
        store.commit(Checkpoint(1, b"", calls=calls("warn:9:0", "warn:9:1")))
        store.commit(Checkpoint(2, b"", calls=calls("warn:10:0")))
    with opened(place) as store:
        assert store.pending_calls()["id"].to_pylist() == ["warn:9:0", "warn:9:1", "warn:10:0"]
        store.delivered(["warn:9:0"])
    with opened(place) as store:
        assert store.pending_calls() == calls("warn:9:1", "warn:10:0")
        store.delivered(["warn:9:1", "warn:10:0", "never made"])
        assert store.pending_calls() == calls()
        store.commit(Checkpoint(3, b"", calls=calls("warn:11:0")))
        store.commit(Checkpoint(4, b"", calls=calls("warn:12:0"), made=["warn:11:0"]))
        assert store.pending_calls()["id"].to_pylist() == ["warn:12:0"]


@pytest.mark.parametrize("zone", [None, "UTC", "America/New_York", "+02:00"])
@pytest.mark.parametrize("unit", ["us", "s", "ms", "ns"])
def test_calls_keep_the_time_of_the_stream(place, unit, zone):
    made = calls("warn:9:0", "warn:9:1", time=NOON.replace(microsecond=0))
    given = made.set_column(3, "time", made["time"].cast(pa.timestamp(unit, zone)))
    with opened(place) as store:
        store.commit(Checkpoint(1, b"", calls=given))
        assert store.pending_calls().schema.field("time").type == pa.timestamp("us", zone)
        assert store.pending_calls().to_pylist() == given.to_pylist()
        store.delivered(["warn:9:1"])
        assert plainly(place, "SELECT time, row FROM acep_calls") == [("2024-03-01 12:00:00.000000", 3)]


# --- one writer, many readers -----------------------------------------------------------------------------------------


def test_a_file_has_one_run_at_a_time(place):
    with opened(place) as first:
        for _ in range(2):
            with pytest.raises(StoreError, match=r"ACEP-R204: another run has the store .* open, or another tool"):
                opened(place)
            first.commit(Checkpoint(1, b""))
    with opened(place) as second:
        assert second.load().offset == 1


def test_others_read_and_do_not_write_while_a_run_has_it_open(place):
    with opened(place) as store:
        store.commit(Checkpoint(1, b"", {"status": changed(STATUS, [("a", "safe", 1)])}))
        reader = sqlite3.connect(place, isolation_level=None)
        reader.execute("BEGIN")
        before = reader.execute("SELECT * FROM status").fetchall()
        store.commit(Checkpoint(2, b"", {"status": changed(STATUS, [("a", "safe", 2)])}))
        assert reader.execute("SELECT * FROM status").fetchall() == before == [("a", "safe", 1)]
        reader.execute("COMMIT")
        assert reader.execute("SELECT * FROM status").fetchall() == [("a", "safe", 2)]
        reader.close()
        with pytest.raises(sqlite3.OperationalError, match="database is locked"):
            plainly(place, "DELETE FROM status")


def test_a_run_that_finds_the_file_written_by_another_stops_and_leaves_it(place):
    """It can come in between two transactions, within microseconds; here it is let in."""
    with opened(place) as store:
        store.commit(Checkpoint(1, b"", {"status": changed(STATUS, [("a", "safe", 1)])}))
        store._database.connection.execute("ROLLBACK")
        plainly(place, "UPDATE status SET n = 99")
        with pytest.raises(StoreError, match="ACEP-R212: another tool has written the store"):
            store.commit(Checkpoint(2, b"", {"status": changed(STATUS, [("a", "safe", 2)])}))
        assert store.is_closed
        with opened(place) as again:
            assert (again.load().offset, rows_in(again.load(), STATUS)) == (1, [("a", "safe", 99)])
        for use in (store.load, store.take_matches, store.pending_calls, lambda: store.commit(Checkpoint(2, b""))):
            with pytest.raises(UsageError, match=r"ACEP-R217: the store .* was closed"):
                use()


def test_the_log_does_not_grow_without_end(place, monkeypatch):
    monkeypatch.setattr(database, "FOLD", 100)
    log = place.with_name("store.db-wal")
    with opened(place) as store:
        sizes = []
        for number in range(60):
            store.commit(Checkpoint(number, bytes(100_000), {"status": changed(STATUS, [(f"k{number}", "safe", 1)])}))
            sizes.append(log.stat().st_size)
        assert max(sizes) == max(sizes[:10]) < 2 * 100 * database.PAGE
        assert len(rows_in(store.load(), STATUS)) == 60


@pytest.mark.parametrize(("synchronous", "number"), [("FULL", 2), ("NORMAL", 1)])
def test_a_checkpoint_is_on_the_disk_if_that_is_asked_for(place, synchronous, number):
    with opened(place, synchronous=synchronous) as store:
        assert store._database.rows("PRAGMA synchronous") == [(number,)]


# --- commits that fail ------------------------------------------------------------------------------------------------


def test_a_full_disk_leaves_the_last_checkpoint(place):
    with opened(place) as store:
        store.commit(Checkpoint(1, b"one", {"status": changed(STATUS, [("a", "safe", 1)])}))
        pages = store._database.rows("PRAGMA page_count")[0][0]
        store._database.rows(f"PRAGMA max_page_count = {pages + 2}")
        with pytest.raises(StoreError, match=r"ACEP-R203: the file of the store .* cannot be used: .*full"):
            store.commit(Checkpoint(2, bytes(100_000), {"status": changed(STATUS, [("a", "safe", 2)])}))
        assert rows_in(store.load(), STATUS) == [("a", "safe", 1)]
        with pytest.raises(StoreError, match="ACEP-R204"):
            opened(place)  # it is still held
        store._database.rows("PRAGMA max_page_count = 1000000")
        store.commit(Checkpoint(2, bytes(100_000), {"status": changed(STATUS, [("a", "safe", 2)])}))
    with opened(place) as store:
        assert (store.load().offset, rows_in(store.load(), STATUS)) == (2, [("a", "safe", 2)])


def test_an_index_of_somebodys_own_may_refuse_rows(place):
    with opened(place) as store:
        store.commit(Checkpoint(1, b"", {"status": changed(STATUS, [("a", "safe", 1)])}))
    plainly(place, "CREATE UNIQUE INDEX mine ON status (n)")
    with opened(place) as store:
        with pytest.raises(StoreError, match=r"ACEP-R216: .* does not take a row: UNIQUE constraint failed: status\.n"):
            store.commit(Checkpoint(2, b"", {"status": changed(STATUS, [("b", "safe", 1)])}))
        assert (store.load().offset, rows_in(store.load(), STATUS)) == (1, [("a", "safe", 1)])


def test_a_run_that_dies_before_its_first_checkpoint_leaves_nothing_to_go_on_with(place):
    with opened(place) as store:
        assert store.load() is None
    with opened(place, EVERYTHING) as store:  # of other tables: the file is still free
        assert store.load() is None


def test_statements_are_as_they_are_documented():
    assert layout.create(STATUS) == (
        'CREATE TABLE "status" (\n'
        '  "hcw" TEXT NOT NULL CHECK (typeof("hcw") = \'text\'),\n'
        '  "level" TEXT CHECK ("level" IS NULL OR typeof("level") = \'text\'),\n'
        '  "n" INTEGER CHECK ("n" IS NULL OR typeof("n") = \'integer\'),\n'
        '  PRIMARY KEY ("hcw")\n'
        ") WITHOUT ROWID"
    )
