"""Odd columns and odd arguments: a column that no query reads is not noticed, and all else raises but AcepError."""

from __future__ import annotations

import random
import re
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from acep_approx import AcepError, Budget, DataError, HistoryGraph, compile_query, compile_rules, look, seq
from acep_approx.events import columns, open_source
from acep_approx.results import events_at
from history.errors import HistoryError
from tests.cases import cases
from tests.command_line import acep
from tests.odd_arguments import EVENTS, NOT_TRIED, QUERY, argument_calls, public_calls, subjects
from tests.odd_calls import PLAIN, OddCall, column_calls, written

BATCH = {"ts": [0, 1], "type": ["A", "B"]}
MIXED = [{"ts": 0, "type": "A", "note": 1}, {"ts": 1, "type": "B", "note": "x"}]


@pytest.fixture(autouse=True)
def quiet(tmp_path, monkeypatch) -> Iterator[None]:
    """In a folder of its own, as odd paths are written to; what is warned of does not matter."""
    monkeypatch.chdir(tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


ARGUMENTS = 700
"""Calls with odd arguments by default."""


def some(calls: list[Any], number: int) -> list[Any]:
    """So many of them, always the same; all with ``ACEP_CASES=full``."""
    return random.Random(47).sample(calls, min(len(calls), cases(len(calls), number)))


def faults(calls: list[OddCall]) -> list[str]:
    """What is wrong with how these calls end."""
    return [fault for call in calls if (fault := call.fault()) is not None]


def of_columns(folder: Path) -> list[OddCall]:
    """Every odd column that no query reads; unions that are pushed; a look at every type; and some of all others."""
    always = re.compile("not read: |not read, pushed: .*union|look: Arrow, .*, values$")
    calls = [*column_calls(folder)]
    others = [call for call in calls if not always.match(call.name)]
    return [call for call in calls if always.match(call.name)] + some(others, 300)


def of_arguments(folder: Path) -> list[OddCall]:
    """Some of all public calls with odd arguments."""
    return some([*argument_calls(folder)], ARGUMENTS)


NO_NAMES = ["x" * 5000, "a\0b", "\ud800"]
"""What no file can be called."""


@pytest.mark.parametrize("name", NO_NAMES, ids=["long", "null", "half"])
def test_names_that_nothing_can_have(name):
    for call in (PLAIN.match, PLAIN.follow):
        with pytest.raises(AcepError, match=r"ACEP-D01[02]"):
            call(name)
    known = HistoryGraph(QUERY).fit(EVENTS)
    for call in (known.save, lambda name: HistoryGraph.load(name, QUERY)):
        with pytest.raises(HistoryError, match="ACEP-H009"):
            call(name)


def test_places_that_no_match_has():
    matches = QUERY.match(EVENTS)
    for place in (10**30, -(10**30), 2**63, 2**63 - 1):
        with pytest.raises(AcepError, match="ACEP-U161"):
            matches[place]
    every = list(matches)
    assert every
    assert matches[-(10**30) : 10**30] == matches[: 2**63] == every
    assert matches[10**30 :] == []
    for place in (np.timedelta64(1, "s"), slice(np.timedelta64(1, "s")), slice(None, None, 0)):
        with pytest.raises(AcepError, match="ACEP-U053"):
            matches[place]


@pytest.mark.parametrize("rows", [pd.DataFrame({"x": [1]}), np.array(5), "-1"], ids=["frame", "number", "text"])
def test_what_is_no_list_of_numbers(rows):
    with pytest.raises(AcepError, match=r"ACEP-U(148|053)"):
        events_at(EVENTS, rows)
    with pytest.raises(AcepError, match=r"ACEP-U(008|053)"):
        QUERY.match(EVENTS).compressed().expand(rows)


def test_numbers_of_events_beyond_64_bits_are_refused_in_words():
    events = pa.table({"ts": [1, 2], "type": ["A", "B"], "n": pa.array([2**64 - 2, 2**64 - 1], pa.uint64())})
    with pytest.raises(DataError, match=r"ACEP-D074.*beyond 2"):
        PLAIN.matcher(sequence="n").push(events)
    with pytest.raises(AcepError, match="ACEP-U148"):
        events_at(events, events["n"])


def test_categories_of_intervals_are_no_hindrance():
    """Where they are not read, and where they are carried along."""
    frame = pd.DataFrame(EVENTS).assign(n=pd.cut([*range(len(EVENTS))], 3))
    frame.loc[2, "n"] = None
    assert len(QUERY.match(frame)) == len(QUERY.match(EVENTS))
    matcher = QUERY.matcher(watermark=2, id="id", changelog=True)
    found = matcher.push(frame).num_rows + matcher.finish().num_rows
    assert found == len(QUERY.match(EVENTS))


def test_odd_columns(tmp_path):
    assert not faults(of_columns(tmp_path))


def test_odd_arguments(tmp_path):
    assert not faults(of_arguments(tmp_path))


@pytest.mark.parametrize("form", ["table", "csv", "jsonl"])
def test_files_of_any_type_on_the_command_line(tmp_path, form):
    """What each type is written as; of the types that have no text in Arrow all, else every fifth."""
    hard = re.compile("binary|map|duration|month|list|float16|uuid|json|tensor")
    files = [(kind, path) for n, (kind, path) in enumerate(written(tmp_path)) if hard.search(kind) or n % 5 == 0]
    for kind, path in some(files, 8):
        if "struct" not in kind:  # whose fields are the columns
            acep("run", "PATTERN SEQ(A a, B b) WITHIN 5", str(path), "--bind", "n", "--format", form)
    acep("run", "PATTERN SEQ(A a, B b) WITHIN 5", str(files[-1][1]), "--output", "events", "--format", form)
    acep("look", str(files[-1][1]))


def test_bytes_and_maps_in_a_table_for_people(tmp_path):
    table = pa.table(BATCH | {"b": [b"\xff", b"x"], "m": pa.array([[("p", 1)]] * 2, pa.map_(pa.string(), pa.int64()))})
    pq.write_table(table, tmp_path / "odd.parquet")
    query = "PATTERN SEQ(A a, B b) WITHIN 5 RETURN a.b AS b, a.m AS m"
    shown = acep("run", query, "odd.parquet", "--format", "table").output
    assert r"b'\xff'" in shown
    assert "p" in shown


def test_how_many_calls_there_are(tmp_path):
    """And how many of them are made by default."""
    arguments = [*argument_calls(tmp_path)]
    assert len(arguments) >= 30_000
    assert len(of_columns(tmp_path)) + len(some(arguments, ARGUMENTS)) >= 1_500


@pytest.mark.parametrize(
    ("place", "before", "calls", "names"),
    [
        ("acep_approx.events.columns._holds_unions", lambda _: False, of_columns, "not read, pushed: .*union"),
        ("acep_approx.profiling.columns.can_be_told_apart", lambda _: True, of_columns, "look"),
        ("acep_approx.arguments._expect", lambda *_: None, of_arguments, "(seq|parse|Match|QuerySet)"),
        ("acep_approx.events.reading.memory.REFUSED", (pa.ArrowException,), of_columns, "not read: pandas, "),
    ],
    ids=["unions", "look", "arguments", "frames"],
)
def test_faults_that_are_put_back_are_noticed(tmp_path, monkeypatch, place, before, calls, names):
    """Those that were mended, one at a time; among the very calls that are made above."""
    made = [call for call in calls(tmp_path) if re.match(names, call.name)]
    assert made
    assert not faults(made)
    monkeypatch.setattr(place, before)
    columns._plain.cache_clear()
    try:
        assert faults(made)
    finally:
        columns._plain.cache_clear()


def test_every_public_call_is_tried(tmp_path):
    """A new one must be added to the subjects, or be listed with those that are not tried."""
    tried = {re.split("[, (]", subject.name)[0] for subject in subjects(tmp_path)}
    there = {*public_calls()}
    assert there - tried - NOT_TRIED.keys() == set()
    assert NOT_TRIED.keys() - there == set()


# --- what it found ------------------------------------------------------------------------------------------


def unions() -> pa.Table:
    values = [pa.array([1, 2]), pa.array(["x", "y"])]
    return pa.table(BATCH).append_column("u", pa.UnionArray.from_sparse(pa.array([0, 1], pa.int8()), values))


def parts() -> list[pa.RecordBatch]:
    """Batches that do not go together."""
    return [pa.record_batch({name: [value] for name, value in row.items()}) for row in MIXED]


@pytest.mark.parametrize(
    "events",
    [
        MIXED,
        pd.DataFrame(MIXED),
        pd.DataFrame(BATCH | {"note": pd.arrays.SparseArray([0, 1])}),
        pd.DataFrame(BATCH | {"note": np.array([1, 2], np.clongdouble)}),
        np.array([(0, b"A", 2j), (1, b"B", 3j)], [("ts", "i8"), ("type", "S1"), ("note", "c16")]),
        unions(),
        parts(),
    ],
    ids=["dicts", "frame", "sparse", "complex", "numpy", "unions", "batches"],
)
def test_a_column_that_no_query_reads_never_stops_a_run(events):
    assert len(PLAIN.match(events)) == 1
    assert PLAIN.match(events).events().num_rows == 2
    assert look(events).rows + look(events).malformed == 2


@pytest.mark.parametrize(
    ("events", "code"),
    [
        (MIXED, "ACEP-D018"),
        (pd.DataFrame(MIXED), "ACEP-D018"),
        (unions().rename_columns(["ts", "type", "note"]), "ACEP-D018"),
        (parts(), "ACEP-D066"),
    ],
)
def test_to_read_such_a_column_is_an_error(events, code):
    query = compile_query("PATTERN A a WHERE a.note > 0 WITHIN 5")
    with pytest.raises(DataError, match="note") as caught:
        query.match(events).to_arrow()
    assert caught.value.code == code
    with pytest.raises(DataError, match="note"):
        list(open_source(events).batches())


def test_a_sparse_column_can_be_read():
    frame = pd.DataFrame(BATCH | {"x": pd.arrays.SparseArray([0, 1])})
    assert len(compile_query("PATTERN SEQ(A a, B b) WHERE b.x > a.x WITHIN 5").match(frame)) == 1


def test_look_tells_of_a_column_that_cannot_be_read():
    frame = pd.DataFrame(MIXED)
    assert "note cannot be read: " in str(look(frame))
    with pytest.raises(DataError, match="note"):
        look(frame, key="note")


@pytest.mark.parametrize(
    ("values", "shown"),
    [
        (pa.array([1, 2], pa.duration("ms")), "0:00:00.001"),
        (pa.array([1.5, 2.5], pa.float16()), "1.5"),
        (pa.array([1, 2], pa.decimal32(5, 2)), "1.00"),
        (pa.ExtensionArray.from_storage(pa.uuid(), pa.array([bytes(16)] * 2, pa.binary(16))), "00000000-0000-0000"),
        (pa.ExtensionArray.from_storage(pa.json_(), pa.array(["[1]", "{}"])), "[1]"),
        (pa.array([b"\xff", b"x"], pa.binary_view()), "xff"),
        (pa.DictionaryArray.from_arrays([0, 1], pa.array(["a", "b"], pa.string_view())), "a"),
    ],
    ids=["durations", "half floats", "decimals", "uuid", "json", "views of bytes", "coded views"],
)
def test_look_at_any_type(values, shown):
    found = look(pa.table(BATCH | {"n": values}))
    assert shown in next(column.examples[0] for column in found.columns if column.name == "n")
    assert str(found)


def test_names_and_places_that_are_not_there():
    """They are errors of this package, and those of Python's protocols."""
    events = [{"ts": 0, "type": "A"}, {"ts": 1, "type": "B"}]
    matches = PLAIN.match(events)
    with pytest.raises(AcepError, match="ACEP-U161") as caught:
        matches[7]
    assert isinstance(caught.value, IndexError)
    with pytest.raises(AcepError, match="ACEP-U160") as caught:
        matches[0]["zz"]
    assert isinstance(caught.value, KeyError)
    run = compile_rules("TABLE t (id text, KEY (id))\nRULE r ON PATTERN A a WITHIN 1").run(events)
    assert run.get("zz") is None
    assert run.store.get("zz") is None
    for wrong in (lambda: run["zz"], lambda: run.store["zz"]):
        with pytest.raises(AcepError, match="ACEP-U160"):
            wrong()


@pytest.mark.parametrize(
    ("call", "code"),
    [
        (lambda: Budget(float("nan"), "runs"), "U030"),
        (lambda: Budget(1, "nonsense"), "U030"),
        (lambda: HistoryGraph(QUERY, gap="x"), "U162"),
        (lambda: HistoryGraph(QUERY, most_bundles=0), "U162"),
        (lambda: QUERY.match(EVENTS).no_match(most=-1), "U126"),
        (lambda: QUERY.match(EVENTS).page("no/such/folder.html"), "U012"),
        (lambda: QUERY.match(EVENTS, unit=np.array([])), "U053"),
        (lambda: QUERY.match(np.array(5)), "U107"),
        (lambda: seq(5), "U053"),
        (lambda: compile_rules("RULE r ON PATTERN A a WITHIN 1").start(calls=5), "U053"),
    ],
)
def test_arguments_that_no_call_can_use(call, code):
    with pytest.raises(AcepError, match=f"ACEP-{code}"):
        call()


def test_more_than_there_can_be_is_all():
    assert len(QUERY.match(EVENTS, limit=2**70).to_arrow()) == len(QUERY.match(EVENTS).to_arrow())
    assert look(EVENTS, rows=2**70).rows == len(EVENTS)
    most, more = (QUERY.match_within(EVENTS, Budget(amount, "runs")) for amount in (2.0**40, 2.0**80))
    assert more.to_arrow() == most.to_arrow()


def test_events_that_nothing_can_name():
    matcher = PLAIN.matcher(watermark=2, id="id", changelog=True)
    with pytest.raises(DataError, match="ACEP-D151"):
        matcher.push(pa.table({"ts": [0], "type": ["A"], "id": [[1]]}))


def test_a_time_that_python_cannot_hold():
    far = pa.table({"ts": [0, 1], "type": ["A", "B"], "when": pa.array([2**40] * 2, pa.timestamp("s"))})
    found = compile_query("PATTERN SEQ(A a, B b) WITHIN 5 RETURN a.when AS w").match(far)
    assert found.to_arrow().num_rows == 1
    with pytest.raises(DataError, match="ACEP-D166"):
        list(found)
