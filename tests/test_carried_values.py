"""Values that no operator reads, such as lists and times of day, come out of CEL as they went in; open types, too."""

from __future__ import annotations

import datetime as dt
import uuid
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from acep_approx import AcepError, QuerySet, compile_query, compile_rules
from acep_approx.events.carried import from_texts, to_texts
from acep_approx.events.columns import encode_text, plain_type
from acep_approx.events.writing.tables import json_lines
from tests.command_line import acep


def counts(type_: pa.DataType) -> pa.Array:
    """Times or lengths of time that differ in their last digit."""
    return pa.array([5, 3, None, 5], pa.int64()).cast(type_)


COLUMNS: dict[str, pa.Array] = {
    "nulls": pa.nulls(4),
    "half": pa.array([1.5, 0.5, None, 1.5], pa.float16()),
    "int": pa.array([2, 1, None, 2], pa.uint8()),
    "text": pa.array(["b", "a", None, "b"], pa.large_string()),
    "bytes": pa.array([b"\xff", b"b", None, b"\xff"]),
    "long bytes": pa.array([b"\xff", b"b", None, b"\xff"], pa.large_binary()),
    "fixed bytes": pa.array([b"\xff\x00", b"bb", None, b"\xff\x00"], pa.binary(2)),
    "coded bytes": pa.array([b"\xff", b"b", None, b"\xff"]).dictionary_encode(),
    "date": pa.array([dt.date(2024, 1, 2), dt.date(2024, 1, 1), None, dt.date(2024, 1, 2)]),
    "time": counts(pa.time64("ns")),
    "short time": pa.array([dt.time(5), dt.time(3), None, dt.time(5)], pa.time32("s")),
    "zoned": counts(pa.timestamp("ns", "Europe/Vienna")),
    "length of time": counts(pa.duration("ns")),
    "interval": pa.array([pa.MonthDayNano([1, 2, 3]), pa.MonthDayNano([0, 0, 0]), None, pa.MonthDayNano([1, 2, 3])]),
    "list": pa.array([[2, None], [], None, [2, None]]),
    "long list": pa.array([["b"], [], None, ["b"]], pa.large_list(pa.string())),
    "fixed list": pa.array([[1.5, 2.0], [0.0, -0.0], None, [1.5, 2.0]], pa.list_(pa.float32(), 2)),
    "list view": pa.array([[2], [], None, [2]], pa.list_view(pa.int64())),
    "list of bytes": pa.array([[b"\xff"], [], None, [b"\xff"]]),
    "list of decimals": pa.array([[Decimal("1.50")], [], None, [Decimal("1.50")]], pa.list_(pa.decimal128(38, 2))),
    "list of structs": pa.array([[{"at": dt.time(1), "n": None}], [None], None, [{"at": dt.time(1), "n": None}]]),
    "list of nulls": pa.array([[None], [], None, [None]]),
    "map": pa.array([[("a", 1), ("b", None)], [], None, [("a", 1), ("b", None)]], pa.map_(pa.string(), pa.int64())),
    "uuid": pa.ExtensionArray.from_storage(
        pa.uuid(), pa.array([uuid.UUID(int=n).bytes if n else None for n in (2, 1, 0, 2)], pa.binary(16))
    ),
}
SELECTS = ("SELECT c FROM A", "SELECT c_1 AS c FROM A NEXT B", "SELECT c_1 AS c FROM (SELECT * FROM A) FOLD{,,} B")


def table(column: pa.Array) -> pa.Table:
    """An A with each value, and a B after all."""
    column = encode_text(column)
    every = pa.concat_arrays([column, column.slice(0, 1)])
    return pa.table({"ts": range(5), "type": ["A"] * 4 + ["B"], "c": every})


def pushed(query: Any, events: pa.Table, *, saves: bool = False) -> list[Any]:
    """The attribute c of what comes of events one by one."""
    matcher, found = query.matcher(), []
    for place in range(events.num_rows):
        found += matcher.push(events.slice(place, 1)).to_pylist()
        if saves:
            matcher = query.from_state(matcher.state_bytes())
    return [row["c"] for row in found + matcher.finish().to_pylist()]


@pytest.mark.parametrize("name", COLUMNS)
def test_values_of_every_type_have_texts(name: str) -> None:
    column = encode_text(COLUMNS[name])
    texts = to_texts(column)
    back = from_texts(texts, plain_type(column.type))
    assert back.type == plain_type(column.type)
    assert back.equals(column) or pa.types.is_dictionary(column.type)
    assert to_texts(column.slice(1)) == texts[1:], "what is cut off does not matter"
    assert texts[0] == texts[3]
    assert texts[2] is None


@pytest.mark.parametrize(("text", "name"), [(SELECTS[0], name) for name in COLUMNS] + [
    (text, name) for text in SELECTS[1:] for name in ("nulls", "half", "bytes", "list", "list of structs", "uuid")
])  # fmt: skip
def test_cel_shows_what_it_read(text: str, name: str) -> None:
    """At once, in any piece, from a saved state, in a set: the same values in the same order, in their type."""
    events, query = table(COLUMNS[name]), compile_query(text)
    whole = query.match(events).to_arrow().column("c")
    assert whole.type == plain_type(COLUMNS[name].type)
    texts = to_texts(whole.combine_chunks())
    assert sorted(map(str, texts)) == sorted(map(str, to_texts(encode_text(COLUMNS[name]).cast(whole.type))))
    if name not in ("time", "zoned"):  # Python has no nanoseconds
        assert pushed(query, events) == pushed(query, events, saves=True) == whole.to_pylist()
    one = QuerySet()
    one.add(text, id="q")
    assert to_texts(one.match(events)["q"].column("c").combine_chunks()) == texts


@pytest.mark.parametrize("name", COLUMNS)
def test_what_is_published_is_read(name: str) -> None:
    events, one = table(COLUMNS[name]), QuerySet()
    one.add("PATTERN A a WITHIN 5 RETURN a.c AS c PUBLISH P", id="p")
    one.add("SELECT c FROM A PUBLISH Q", id="q")
    one.add("SELECT c FROM P", id="of p")
    one.add("SELECT c FROM Q", id="of q")
    results = one.match(events)
    for reader in ("of p", "of q"):
        found = results[reader].column("c").combine_chunks()
        assert to_texts(found) == to_texts(encode_text(COLUMNS[name]).cast(found.type))


@pytest.mark.parametrize("form", ["jsonl", "csv"])
def test_the_command_line_shows_them(tmp_path: Any, form: str) -> None:
    path = tmp_path / "events.jsonl"
    path.write_text('{"ts": 0, "type": "A", "c": [1, 2], "d": null}\n')
    shown = acep("run", "SELECT c, d FROM A", str(path), "--format", form).stdout
    assert ("[1, 2]" in shown and "null" in shown) if form == "jsonl" else "1;2," in shown


def test_equal_results_are_one_row() -> None:
    events = [{"ts": 0, "type": "A", "c": [1]}, {"ts": 0, "type": "A", "c": [1]}, {"ts": 1, "type": "B", "c": None}]
    found = compile_query("SELECT c_1 AS c FROM A NEXT B").match(events).to_arrow()
    assert found.select(["c", "times"]).to_pylist() == [{"c": [1], "times": 2}]


def test_values_without_an_order_stand_in_that_of_their_texts() -> None:
    events = [{"ts": n, "type": "A", "c": c} for n, c in enumerate(([3], [1], None, [2]))]
    found = compile_query("SELECT c_1 AS c FROM A NEXT B").match([*events, {"ts": 9, "type": "B"}]).to_arrow()
    assert found["c"].to_pylist() == [[3], [1], None, [2]], "by when they began"
    events = [{**event, "ts": 0} for event in events]
    found = compile_query("SELECT c_1 AS c FROM A NEXT B").match([*events, {"ts": 9, "type": "B"}]).to_arrow()
    assert found["c"].to_pylist() == [[1], [2], [3], None]


def test_a_register_holds_values_of_one_type() -> None:
    text = "SELECT m FROM (SELECT *, c AS n, c AS m FROM A) FOLD{,, $2.d AS n, $.n AS m} B"
    events = [{"ts": 0, "type": "A", "c": [1], "d": dt.time(1)}, {"ts": 1, "type": "B", "c": [1], "d": dt.time(2)}]
    with pytest.raises(AcepError, match=r"ACEP-Q913: '[mn]' holds .* kinds: list<item: int64> and time64"):
        compile_query(text).match(events).to_arrow()


def test_bytes_that_a_condition_reads_are_text() -> None:
    events = [{"ts": 0, "type": "A", "c": b"x"}, {"ts": 1, "type": "B", "c": b"x"}]
    assert compile_query("SELECT c FROM A NEXT{$1.c = $2.c} B").match(events).to_arrow()["c"].to_pylist() == ["x"]
    events[0]["c"] = b"\xff"
    assert compile_query("PATTERN SEQ(A a, B b) WHERE a.c IS NOT NULL WITHIN 5").match(events).counts().num_rows == 1
    both = QuerySet()
    both.add("SELECT c FROM B", id="shows")
    both.add("PATTERN B b WHERE b.c = 'x' WITHIN 5", id="reads")
    assert both.match(events[1:])["shows"]["c"].to_pylist() == [b"x"]


# --- open types -------------------------------------------------------------------------------------------------------

FIRST = [{"ts": 0, "type": "A", "c": None}, {"ts": 0, "type": "B", "c": None}]
REGISTERS = (
    "PATTERN AUTOMATON (REGISTERS n {}  a -> b ON A t SET n = t.c  b -> d ON B t WHEN {}  FINAL d) WITHIN 50 RETURN n"
)
OPEN = {
    "WHEN": (REGISTERS.format("INT", "t.c > n"), [4, 5]),
    "WHEN, of floats": (REGISTERS.format("FLOAT", "t.c > n"), [4.5, 5.5]),
    "WHEN, whole numbers in a float": (REGISTERS.format("FLOAT", "t.c + 1 > n * 1"), [4, 5]),
    "WHEN, of texts": (REGISTERS.format("TEXT", "t.c > n OR t.c IS NULL"), ["a", "b"]),
    "WHEN, of booleans": (REGISTERS.format("BOOLEAN", "t.c != n"), [True, False]),
    "WHEN, of times": (REGISTERS.format("TIME", "t.c > n"), [dt.date(2024, 1, 1), dt.date(2024, 1, 2)]),
    "SET, in steps": (
        """PATTERN AUTOMATON (REGISTERS n INT = 0  a -> b ON A t SET n = n + t.c  b -> d ON B t SET n = n * t.c
        FINAL d) WITHIN 50 RETURN n""",
        [4, 5],
    ),
    "FOLD, a sum": ("SELECT n FROM (SELECT *, 0 AS n FROM A) FOLD{, , $.n + $2.c AS n} B", [4, 5]),
    "FOLD, the last": ("SELECT n FROM (SELECT *, 0.5 AS n FROM A) FOLD{, , $2.c AS n} B", [4, 5]),
    "FOLD, NULL first": ("SELECT n FROM (SELECT *, NULL AS n FROM A) FOLD{, , $2.c AS n} B", ["x", "y"]),
    "FOLD, both open": ("SELECT m FROM (SELECT *, c AS n, c AS m FROM A) FOLD{, , $2.c AS n, $.n AS m} B", [4.5, 5.5]),
    "FOLD, a condition": ("SELECT n FROM (SELECT *, 0 AS n FROM A) FOLD{$.n < $2.c, $2.c > 0, $2.c AS n} B", [4, 5]),
    "NEXT": ("SELECT c_1, c FROM A NEXT{$1.c < $2.c OR $1.c IS NULL} B", ["a", "b"]),
    "lists": ("SELECT c_1, c FROM A NEXT B", [[1], [2]]),
    "empty lists first": ("SELECT c_1, c FROM A NEXT B", [[], [2]]),
}


@pytest.mark.parametrize("what", OPEN)
def test_a_type_is_settled_when_its_first_value_comes(what: str) -> None:
    """Nulls in batches of their own, with a saved state in between, as in one table of a known type."""
    text, values = OPEN[what]
    query = compile_query(text)
    events = [*FIRST, {"ts": 5, "type": "A", "c": values[0]}, {"ts": 6, "type": "B", "c": values[1]}]
    wanted = query.match(events).to_arrow().to_pylist()
    assert wanted
    for cuts in ([1, 1, 1, 1], [2, 2], [3, 1]):
        for saves in (False, True):
            matcher, found, at = query.matcher(), [], 0
            for size in cuts:
                found += matcher.push(events[at : at + size]).to_pylist()
                at += size
                matcher = query.from_state(matcher.state_bytes()) if saves else matcher
            assert found + matcher.finish().to_pylist() == wanted


@pytest.mark.parametrize(("what", "value", "code"), [
    ("WHEN", "x", "Q061"), ("WHEN", 1.5, "Q913"), ("SET, in steps", 1.5, "Q913"), ("WHEN, of texts", 1, "Q061"),
    ("FOLD, a sum", "x", "Q062"),
])  # fmt: skip
def test_a_type_that_does_not_fit_is_refused_when_it_comes(what: str, value: Any, code: str) -> None:
    matcher = compile_query(OPEN[what][0]).matcher()
    matcher.push(FIRST)
    with pytest.raises(AcepError, match=f"ACEP-{code}"):
        matcher.push([{"ts": 5, "type": "A", "c": value}, {"ts": 6, "type": "B", "c": value}])


# --- rules ------------------------------------------------------------------------------------------------------------


def stored(value: str, holds: str, cells: list[Any], at_once: bool) -> Any:
    """What stands in a table at last, or how the run was refused."""
    table, action = f"TABLE t (id text, n {holds}, KEY (id))", f"UPDATE t SET n = {value} AT ('p')"
    text = f"{table}\nRULE r ON PATTERN A a WITHIN 1 DO {action} END"
    events = [{"ts": tick, "type": "A", "c": cell} for tick, cell in enumerate(cells)]
    first = {"float": 1.0, "int": 1, "text": "x", "bool": True, "time": None}[holds]
    try:
        run = compile_rules(text).start(store={"t": [{"id": "p", "n": first}]})
        for some in [events] if at_once else [[event] for event in events]:
            run.push(some)
        run.finish()
    except AcepError as error:
        return error.code
    return run.store["t"].to_pylist()[0]["n"]


@pytest.mark.parametrize(("value", "holds", "cells", "wanted"), [
    ("old.n + a.c", "float", [1, 1.5], 3.5),
    ("old.n + a.c", "float", [None, 1.5], None),
    ("a.c * 2", "float", [None, 1.5], 3.0),
    ("old.n + a.c", "int", [1, 2.0], 4),
    ("a.c", "text", [None, "b"], "b"),
    ("a.c = 'x'", "bool", [None, "x"], True),
    ("a.c", "int", [None, "b"], "ACEP-R010"),
    ("a.c", "int", [None, [1]], "ACEP-R010"),
    ("a.c", "int", [None, dt.time(1)], "ACEP-R010"),
    ("a.c", "text", [None, 1], "ACEP-R010"),
    ("a.c", "bool", [None, 1], "ACEP-R010"),
    ("a.c", "time", [None, 1], "ACEP-R010"),
])  # fmt: skip
def test_rules_follow_types_that_come_late(value: str, holds: str, cells: list[Any], wanted: Any) -> None:
    assert stored(value, holds, cells, at_once=True) == wanted
    assert stored(value, holds, cells, at_once=False) == wanted


# --- other libraries --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", COLUMNS)
def test_other_libraries_get_them(name: str) -> None:
    """Values that Python or polars has not are kept, or refused with a code."""
    found, several = compile_query(SELECTS[0]).match(table(COLUMNS[name])), QuerySet()
    several.add(SELECTS[0], id="q")
    assert len(found.to_pandas()) == len(several.match(table(COLUMNS[name])).to_pandas()) == 4
    if name in ("interval", "list view"):
        with pytest.raises(AcepError, match="ACEP-D157"):
            found.to_polars()
    else:
        assert found.to_polars().height == 4


def test_tensors_and_fine_times_are_written_as_lists_and_texts() -> None:
    tensor = pa.ExtensionArray.from_storage(
        pa.fixed_shape_tensor(pa.int32(), [2]), pa.array([[1, 2]], pa.list_(pa.int32(), 2))
    )
    times = pa.array([[1]], pa.list_(pa.int64())).cast(pa.list_(pa.time64("ns")))
    lines = bytes(json_lines(pa.table({"x": tensor, "y": times})))
    assert lines == b'{"x": [1, 2], "y": ["00:00:00.000000001"]}\n'


def test_the_lowest_whole_number_is_refused_by_the_name_of_its_column() -> None:
    with pytest.raises(AcepError, match="ACEP-D201: the whole number -9223372036854775808 of 'c'"):
        compile_query(SELECTS[0]).match([{"ts": 0, "type": "A", "c": -(2**63)}]).to_arrow()
