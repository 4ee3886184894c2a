"""Which values are one key, and that `why` finds each: floats, NaN, -0.0, null, times, bytes; numbers as types."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from acep_approx import AcepError, QuerySet, compile_query, look
from acep_approx.events.keys import KeyCodes
from tests.command_line import acep

NAN = float("nan")
PAIRS = [("A", NAN), ("B", NAN), ("A", 0.0), ("B", -0.0), ("A", None), ("B", None), ("A", 1.0), ("B", 1.0)]
AFTER = [("C", float(n)) for n in range(100, 150)]
"""So that a batch is not looked up event by event."""
SAME = "PATTERN SEQ(A a, B b) WHERE [key] WITHIN 500 RETURN b.ts AS at"
EQUAL = "PATTERN SEQ(A a, B b) WHERE a.key = b.key WITHIN 500 RETURN b.ts AS at"
CEL = "SELECT key FROM A NEXT{$1.key = $2.key} B"


def events(pairs: list[tuple[str, float | None]]) -> pa.Table:
    types, keys = zip(*pairs, strict=True)
    return pa.table({"ts": range(len(pairs)), "type": types, "key": pa.array(keys, pa.float64(), from_pandas=False)})


def ends(rows: list[dict[str, Any]]) -> list[tuple[str, int]]:
    """The keys of matches as text, as NaN equals nothing, with their ends."""
    return [(str(row.get("key")), row["end"]) for row in rows]


@pytest.mark.parametrize("pairs", [PAIRS, PAIRS + AFTER], ids=["few", "many"])
@pytest.mark.parametrize(("text", "wanted"), [
    (SAME, [("nan", 1), ("0.0", 3), ("1.0", 7)]), (EQUAL, [("None", 3), ("None", 7)]), (CEL, [("-0.0", 3), ("1.0", 7)]),
])  # fmt: skip
def test_keys_are_one_in_every_way_of_running(pairs: Any, text: str, wanted: list[tuple[str, int]]) -> None:
    table, query, one = events(pairs), compile_query(text), QuerySet()
    assert ends(query.match(table).to_arrow().to_pylist()) == wanted
    coded = table.set_column(2, "key", table["key"].combine_chunks().dictionary_encode())
    halves = table.set_column(2, "key", table["key"].cast(pa.float16()))
    for other in (coded, halves, table.to_pylist()):
        assert ends(query.match(other).to_arrow().to_pylist()) == wanted
    for options in ({}, {"watermark": 3}):
        matcher, found = query.matcher(**options), []
        for place in range(len(pairs)):
            found += matcher.push(table.slice(place, 1)).to_pylist()
        assert ends(found + matcher.finish().to_pylist()) == wanted
    one.add(text, id="q")
    assert ends(one.match(table)["q"].to_pylist()) == wanted
    assert ends(query.match(table.to_pandas()).to_arrow().to_pylist()) == [row for row in wanted if row[0] != "nan"]


def test_a_null_among_whole_numbers_changes_no_role() -> None:
    frame = pd.DataFrame({"ts": [0, 1, 2, 3], "type": [1, 2, 2, None], "key": [1, None, 1, 1]})
    found = compile_query("PATTERN SEQ('1' a, '2' b) WHERE [key] WITHIN 5").match(frame)
    assert found.to_arrow().select(["key", "start", "end"]).to_pylist() == [{"key": 1.0, "start": 0, "end": 2}]
    assert "key" in str(look(frame.drop(columns="type").assign(type=["A", "B", "B", "A"])))


def test_a_type_that_becomes_a_float_keeps_its_name() -> None:
    matcher, found = compile_query("PATTERN SEQ('1' a, '2' b, '2.5' c) WITHIN 9").matcher(), []
    for tick, type_ in enumerate((1, 2.0, 2.5, NAN, None)):
        found += matcher.push([{"ts": tick, "type": type_}]).to_pylist()
    assert [row["end"] for row in found + matcher.finish().to_pylist()] == [2]


def test_a_uuid_is_no_type() -> None:
    table = pa.table({"ts": [0], "t": pa.ExtensionArray.from_storage(pa.uuid(), pa.array([b"\0" * 16], pa.binary(16)))})
    with pytest.raises(AcepError, match="ACEP-D009"):
        compile_query("PATTERN A a WITHIN 5").match(table, type="t").to_arrow()


def test_zero_is_shown_without_a_sign() -> None:
    """Whichever of the two came first."""
    keys = KeyCodes()
    assert keys.encode([pa.array([-0.0, 0.0, NAN, -NAN])]).tolist() == [0, 0, 1, 1]
    assert str(keys.value(0)) == "(0.0,)"
    many = KeyCodes()
    assert set(many.encode([pa.array([-0.0, 0.0] * 40), pa.array(["a"] * 80)]).tolist()) == {0}


# --- why --------------------------------------------------------------------------------------------------------------

ASKED = "PATTERN SEQ(A a, B b) WHERE [y] WITHIN 5"
KEYS = {
    "NaN": (pa.array([NAN, 1.5]), "nan"),
    "a half NaN": (pa.array([NAN, 1.5], pa.float16()), "nan"),
    "a half float": (pa.array([0.5, 1.5], pa.float16()), "0.5"),
    "infinity": (pa.array([float("inf"), 1.5]), "inf"),
    "zero": (pa.array([-0.0, 1.5]), "0"),
    "a short float": (pa.array([0.5, 1.5], pa.float32()), "0.5"),
    "a long number": (pa.array([2**64 - 1, 1], pa.uint64()), str(2**64 - 1)),
    "a boolean": (pa.array([True, False]), "true"),
    "a date": (pa.array([dt.date(2024, 1, 1), dt.date(2024, 1, 2)]), "2024-01-01"),
    "a time": (pa.array([1, 2]).cast(pa.timestamp("us")), "1970-01-01T00:00:00.000001"),
    "a time with a zone": (pa.array([1, 2]).cast(pa.timestamp("us", "UTC")), "1970-01-01T00:00:00.000001Z"),
    "bytes": (pa.array([b"a", b"c"]), "a"),
    "a text with =": (pa.array(["a=b", "c"]), "a=b"),
}


@pytest.mark.parametrize("what", KEYS)
def test_why_finds_every_key(what: str, tmp_path: Any) -> None:
    """`why` finds the key by itself, from a value, from a text, and on the command line."""
    column, text = KEYS[what]
    table, query = pa.table({"ts": [0, 1], "type": ["A", "B"], "y": column}), compile_query(ASKED)
    assert str(query.why(table)).startswith("no match: no y has both a and b")
    for key in (column[0].as_py(), text, {"y": text}):
        answer = str(query.why(table, around=0, key=key))
        assert "the furthest partial match has 1 event" in answer
        assert "b'" not in answer
    pq.write_table(table, tmp_path / "events.parquet")
    shown = acep("why", ASKED, str(tmp_path / "events.parquet"), "--around", "0", "--key", text).stdout
    assert "the furthest partial match has 1 event" in shown


def test_null_is_no_key_to_ask_about() -> None:
    query, rows = compile_query(ASKED), [{"ts": 0, "type": "A", "y": None}, {"ts": 1, "type": "B", "y": None}]
    assert str(query.why(rows)).startswith("no match: no event has a value for y")
    with pytest.raises(AcepError, match=r"ACEP-U111.*belongs to no key"):
        query.why(rows, around=0, key={"y": None})
