"""The events of matches as rows, single matches, and results in other libraries."""

from __future__ import annotations

import copy
import dataclasses
import pickle
import sys
from dataclasses import replace
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from acep_approx import Match, Matches, compile_query, compile_rules
from acep_approx.errors import UsageError
from acep_approx.results import events_at
from tests.command_line import acep

EVENTS = pa.table({
    "ts": pa.array([minute * 60 for minute in range(40)], pa.timestamp("s")).cast(pa.timestamp("us")),
    "type": ["ABCA"[n % 4] for n in range(40)],
    "user": ["ann" if n % 3 else "bob" for n in range(40)],
    "x": [n * 7 % 11 for n in range(40)],
})  # fmt: skip
QUERIES = {
    "sequence": "PATTERN SEQ(A a, B b) WITHIN 5 min",
    "missing": "PATTERN SEQ(A a, B b, C c) WITHIN 6 min ERRORS 1",
    "repeated": "PATTERN SEQ(A a, B+ b[], C c) WHERE [user] WITHIN 9 min ERRORS 1",
    "all missing": "PATTERN SEQ(A a, B+ b[], C c) WITHIN 2 min ERRORS 2",
    "optional": "PATTERN SEQ(A a, B? b, C c) WITHIN 4 min",
    "either": "PATTERN SEQ(A a, (B b | C c)) WITHIN 3 min ERRORS 1",
    "absent": "PATTERN SEQ(A a, ~C c, B b) WITHIN 7 min",
    "conditions": "PATTERN SEQ(A a, B b) WHERE [user] AND b.x > a.x WITHIN 9 min ERRORS 1",
    "returned": "PATTERN SEQ(A a, B b, C c) WHERE c.x > a.x WITHIN 6 min ERRORS 1 RETURN b.x AS x",
    "counted": "PATTERN SEQ(A a, B b) WITHIN 5 events",
    "expression": "ab WITHIN 5 min",
    "no match": "PATTERN SEQ(C c, C d) WHERE d.x > 99 WITHIN 5 min",
}
COLUMNS = ["match", "variable", "missing", "row", "ts", "type", "user", "x"]


def question(text: str, events: Any = EVENTS, **options: Any) -> Matches:
    if not text.startswith("PATTERN"):
        events = events.set_column(1, "type", pa.array([kind.lower() for kind in events["type"].to_pylist()]))
    return compile_query(text).match(events, **options)


def rows_of(text: str) -> list[dict[str, Any]]:
    """The events of the matches of a query, by the row numbers that they show and the names of what is missing."""
    shown, found = [], question(text.split(" RETURN ", maxsplit=1)[0])
    variables = found.plan.automaton.shown
    events = EVENTS.to_pylist()
    if found.plan.query.is_regex:
        variables = ("events",)
        events = [{**event, "type": event["type"].lower()} for event in events]
    for number, match in enumerate(found):
        for name in variables:
            rows = match[name]
            rows = rows if isinstance(rows, list) else [] if rows is None else [rows]
            own = {"match": number, "variable": None if variables == ("events",) else name}
            shown += [{**own, "missing": False, "row": row, **events[row]} for row in rows]
            gone = {**own, "missing": True, "row": None, **dict.fromkeys(EVENTS.column_names)}
            shown += [gone] * match.missing.count(name)
    return shown


@pytest.mark.parametrize("name", QUERIES)
def test_the_events_are_those_of_the_rows(name):
    found = question(QUERIES[name]).events()
    assert found.column_names == COLUMNS
    assert found.to_pylist() == rows_of(QUERIES[name])
    assert found.schema.field("x").type == pa.int64()
    assert found.num_rows or name == "no match"


def test_registers_that_are_returned_tell_matches_apart_and_are_no_events():
    text = """PATTERN AUTOMATON (
        REGISTERS n = 0
        s -> t ON A a SET n = x
        t -> u ON B b
        FINAL u) WITHIN 5 min RETURN n"""
    found = compile_query(text).match(EVENTS)
    table = found.to_arrow()
    events = found.events()
    assert events.column_names == COLUMNS
    assert events.num_rows == 2 * table.num_rows
    assert events.filter(pa.compute.equal(events["variable"], "a"))["x"].to_pylist() == table["n"].to_pylist()


@pytest.mark.parametrize(
    "options", [{"sort": True}, {"on_late": "skip"}, {"limit": 3}, {"bind": "x"}, {"merge": "none"}]
)
def test_options_play_their_roles(options):
    late = pa.concat_tables([EVENTS.slice(0, 10), EVENTS.slice(3, 2), EVENTS.slice(10)])
    found = question(QUERIES["missing"], late if options.keys() & {"sort", "on_late"} else EVENTS, **options)
    plain = found if "bind" not in options else question(QUERIES["missing"])
    table, events = plain.to_arrow(), found.events()
    for name in "abc":
        is_there = pa.compute.invert(events["missing"])
        mine = events.filter(pa.compute.and_(pa.compute.equal(events["variable"], name), is_there))
        rows = [row for row in table[name].to_pylist() if row is not None]
        assert mine["row"].to_pylist() == rows
        if "sort" not in options:
            source = late if "on_late" in options else EVENTS
            assert mine["x"].to_pylist() == source["x"].take(pa.array(rows)).to_pylist()
    assert events["match"].to_pylist()[-1] == table.num_rows - 1
    assert found.source.late.count == (2 if "on_late" in options else 0)


def test_it_is_a_run_like_any_other():
    found = question(QUERIES["missing"])
    found.events()
    assert found.work.events == EVENTS.num_rows
    assert found.to_arrow().column_names == ["errors", "start", "end", "missing", "a", "b", "c"]
    some = compile_query(QUERIES["conditions"]).match_within(EVENTS, "1 runs", audit=0)
    events = some.events()
    assert some.record().events == EVENTS.num_rows
    assert some.record().shed_runs > 0
    assert set(events["match"].to_pylist()) == set(range(some.to_arrow().num_rows))


def test_events_that_can_be_read_only_once():
    once = question(QUERIES["repeated"], EVENTS.to_reader())
    assert once.events() == question(QUERIES["repeated"]).events()
    with pytest.raises(UsageError, match="only once"):
        once.events()


def test_names_that_events_have_too():
    events = EVENTS.rename_columns(["ts", "type", "row", "match"]).append_column("match_", EVENTS["x"])
    found = question(QUERIES["sequence"], events).events()
    assert found.column_names == ["match__", "variable", "missing", "row_", "ts", "type", "row", "match", "match_"]


def test_tables_come_as_a_stream():
    found = question(QUERIES["sequence"], [EVENTS.slice(n, 4) for n in range(0, 40, 4)])
    tables = [table for table in found.event_tables() if table.num_rows]
    assert len(tables) > 3
    assert pa.concat_tables(tables) == question(QUERIES["sequence"]).events()


def test_no_events():
    assert question(QUERIES["sequence"], []).events().num_rows == 0
    assert question(QUERIES["sequence"], EVENTS.slice(0, 0)).events().column_names == COLUMNS


def test_results_in_cel_name_no_events():
    query = compile_query("SELECT * FROM FILTER{x > 3}(S)")
    with pytest.raises(UsageError) as caught:
        query.match(EVENTS.set_column(1, "type", pa.array(["S"] * 40))).events()
    assert caught.value.code == "ACEP-U148"


# --- by row numbers ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "events", [EVENTS, EVENTS.to_pylist(), [EVENTS.slice(0, 7), EVENTS.slice(7)], pl.from_arrow(EVENTS)]
)
def test_events_at_rows(events):
    rows = [3, 17, 17, 39, None]
    for asked in (rows, pa.array(rows), pa.chunked_array([rows[:2], rows[2:]]), pa.array([[3, 17], None, [39]])):
        found = events_at(events, asked)
        assert found.drop_columns("row").to_pylist() == EVENTS.take(pa.array([3, 17, 39])).to_pylist()
        assert found["row"].to_pylist() == [3, 17, 39]
    assert events_at(events, []).column_names == ["row", *EVENTS.column_names]
    assert events_at(events, pa.nulls(3)).num_rows == 0


def test_events_at_rows_of_a_set_of_rules_and_of_a_reader():
    rules = compile_rules("RULE ab ON PATTERN SEQ(A a, B b) WITHIN 5 min")
    found = rules.run(EVENTS)["ab"]
    kinds = events_at(EVENTS.to_reader(), found["b"])["type"].to_pylist()
    assert kinds
    assert set(kinds) == {"B"}


@pytest.mark.parametrize("rows", [[40], [-1], [2.5], ["a"]])
def test_rows_that_are_not_there(rows):
    with pytest.raises(UsageError) as caught:
        events_at(EVENTS, rows)
    assert caught.value.code == "ACEP-U148"


# --- single matches ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", QUERIES)
def test_the_events_of_one_match(name):
    found = question(QUERIES[name])
    every = found.events()
    for match in [*found][:3] + [*found][-1:]:
        assert match.events().to_pylist() == every.filter(pa.compute.equal(every["match"], match.number)).to_pylist()


def test_a_match_that_is_not_found_again():
    first = question(QUERIES["sequence"])[0]
    for other in (replace(first, errors=7), Match(0, 1, 2, {}, (), {})):
        with pytest.raises(UsageError) as caught:
            other.events()
        assert caught.value.code == "ACEP-U148"
    changing = [dict(event) for event in EVENTS.to_pylist()]
    match = question(QUERIES["sequence"], changing)[0]
    changing[0]["type"] = "C"
    with pytest.raises(UsageError, match="not found again"):
        match.events()


def test_matches_by_number():
    found = question(QUERIES["missing"])
    every = list(found)
    assert [match.number for match in every] == list(range(len(every)))
    for number in (0, 3, -1, -4):
        assert found[number] == every[number]
    for part in (slice(5), slice(2, 7), slice(2, None, 3), slice(-3, None), slice(None, None, -1), slice(900, None)):
        assert found[part] == every[part]
    for number in (len(every), -len(every) - 1):
        with pytest.raises(IndexError, match=str(number)):
            found[number]
    with pytest.raises(UsageError, match="ACEP-U053"):
        found["a"]


def test_the_first_few():
    found = question(QUERIES["missing"])
    assert found.head(3).to_arrow() == found.to_arrow().slice(0, 3)
    assert len(found.head()) == 5
    assert len(question(QUERIES["missing"], limit=2).head(4)) == 2
    assert found.head(0).to_arrow().num_rows == 0
    assert found.limit is None
    for wrong in (-1, 2.5):
        with pytest.raises(UsageError):
            found.head(wrong)
    read: list[int] = []
    small = [EVENTS.slice(n, 4) for n in range(0, 40, 4)]
    first = question(QUERIES["sequence"], small, on_progress=read.append)[0]
    assert first.number == 0
    assert sum(1 for _ in read) < 3


def test_whether_there_is_a_match():
    assert question(QUERIES["missing"])
    assert not question(QUERIES["no match"])
    assert not question(QUERIES["missing"], limit=0)
    with pytest.raises(TypeError, match="only once"):
        bool(question(QUERIES["missing"], EVENTS.to_reader()))


def test_a_match_goes_where_its_events_do_not():
    match = question(QUERIES["missing"])[2]
    for other in (pickle.loads(pickle.dumps(match)), copy.deepcopy(match)):
        assert other == match
        assert other.number == 2
        with pytest.raises(UsageError, match="not found in events"):
            other.events()
    assert dataclasses.asdict(match)["values"] == match.values


# --- other libraries --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", QUERIES)
def test_results_in_other_libraries(name):
    found = question(QUERIES[name])
    table = found.to_arrow()
    assert pa.table(found) == table
    assert pl.DataFrame(found).to_dicts() == table.to_pylist()
    assert found.to_polars().equals(pl.DataFrame(found))
    assert duckdb.sql("SELECT count(*) FROM found").fetchall() == [(table.num_rows,)]
    assert found.to_pandas().shape == (table.num_rows, table.num_columns)


def test_results_of_events_that_can_be_read_only_once():
    for read in (pa.table, pl.DataFrame, lambda once: duckdb.sql("SELECT * FROM once").to_arrow_table()):
        assert len(read(question(QUERIES["missing"], EVENTS.to_reader()))) == len(question(QUERIES["missing"]))


def test_tables_of_rules_in_other_libraries():
    rules = compile_rules("""
    TABLE seen (who text, x int, KEY (who))
    RULE see ON PATTERN A a WITHIN 1 s DO UPSERT seen SET x = a.x AT (a.user) END""")
    run = rules.start()
    run.push(EVENTS)
    seen = run.store["seen"]
    assert pl.DataFrame(seen).to_dicts() == seen.to_pylist() != []


def test_results_are_made_as_they_are_read():
    read: list[int] = []
    small = [EVENTS.slice(n, 4) for n in range(0, 40, 4)]
    reader = pa.RecordBatchReader.from_stream(question(QUERIES["sequence"], small, on_progress=read.append))
    assert not read
    while not reader.read_next_batch().num_rows:
        pass
    assert len(read) < 10


def test_types_that_come_late_or_change():
    late = [{"ts": 1, "type": "A", "k": None}, {"ts": 2, "type": "A", "k": "x"}, {"ts": 3, "type": "B", "k": "x"}]
    parts = [pa.Table.from_pylist(late[:1]), pa.Table.from_pylist(late[1:])]
    query = compile_query("PATTERN SEQ(A a, B b) WHERE [k] WITHIN 5")
    assert pa.table(query.match(iter(late)))["k"].to_pylist() == ["x"]
    assert pa.table(query.match(iter(parts)))["k"].to_pylist() == ["x"]
    wider = iter([pa.table({"ts": [1], "type": ["A"], "v": [1]}), pa.table({"ts": [2], "type": ["A"], "v": [2.5]})])
    with pytest.raises(pa.ArrowInvalid, match="ACEP-D068"):
        pa.table(compile_query("PATTERN A a WITHIN 5").match(wider, bind="v"))


def test_polars_is_not_there(monkeypatch):
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(UsageError, match="needs polars") as caught:
        question(QUERIES["sequence"]).to_polars()
    assert (caught.value.code, caught.value.hint) == ("ACEP-U149", "pip install polars")


# --- the command line -------------------------------------------------------------------------------------------


def test_the_command_line(tmp_path):
    file, out = tmp_path / "events.parquet", tmp_path / "out.parquet"
    pq.write_table(EVENTS, file)
    said = acep("run", QUERIES["missing"], str(file), "--output", "events", "-o", str(out)).stderr
    wanted = question(QUERIES["missing"]).events()
    assert pq.read_table(out).to_pylist() == wanted.to_pylist()
    assert f"\n{wanted.num_rows} events\n" in said
    assert "40 events read" in said
    shown = acep("run", QUERIES["missing"], str(file), "--output", "events", "--format", "table", "--limit", "4").stdout
    assert "true" in shown
    assert "B" in shown
    budget = ("--output", "events", "--budget", "5 runs", "--format", "csv")
    assert acep("run", QUERIES["conditions"], str(file), *budget).stdout.startswith(",".join(COLUMNS))
    refused = acep("run", QUERIES["missing"], str(file), "--output", "events", "--watermark", "5 min", code=2)
    assert "ACEP-U055" in refused.stderr
