"""Texts that no file and no program written in C can take: halves of characters, and zero bytes."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest

from acep_approx import QuerySet, compile_query, compile_rules, look
from acep_approx.errors import AcepError, DataError, QueryError, UsageError
from acep_approx.events import follow, open_source

HALF, BYTE, ZERO = "\ud800", "x\udcff", "a\0b"
QUERY = compile_query("PATTERN SEQ(A a, B b) WITHIN 5")
EVENTS = pa.table({"ts": [1, 2], "type": ["A", "B"], "v": ["x", "y"]})


@pytest.mark.parametrize("half", [HALF, BYTE])
@pytest.mark.parametrize(
    "text",
    [
        "PATTERN SEQ(A a, B b) WHERE a.v = '{}' WITHIN 5",
        "PATTERN SEQ(A a, '{}' b) WITHIN 5",
        "PATTERN SEQ(A a{}, B b) WITHIN 5",
        "a(b|{})d WITHIN 5",
        "SELECT * FROM FILTER{{a = '{}'}}(S)",
    ],
)
def test_a_query_that_is_no_text_is_refused(text, half):
    with pytest.raises(QueryError) as caught:
        compile_query(text.format(half))
    assert caught.value.code == "ACEP-Q190"
    str(caught.value).encode()


def test_rules_that_are_no_text_are_refused():
    with pytest.raises(QueryError) as caught:
        compile_rules(f"TABLE t (a text, KEY (a)) -- {HALF}")
    assert caught.value.code == "ACEP-Q190"


@pytest.mark.parametrize("half", [HALF, BYTE])
def test_values_and_names_that_are_no_text_are_refused(half):
    cases = (({"v": half}, "v", "ACEP-D018"), ({half: 1}, "v", "ACEP-D191"), ({"v": {"w": half}}, "v.w", "ACEP-D018"))
    for event, shown, code in cases:
        query = compile_query(f"PATTERN SEQ(A a, B b) WITHIN 5 RETURN a.{shown} AS v")
        with pytest.raises(DataError) as caught:
            query.match([{"ts": 1, "type": "A", **event}]).to_arrow()
        assert caught.value.code == code
        str(caught.value).encode()


def test_zero_bytes_are_values_as_others():
    events = [{"ts": 1, "type": "A", "v": ZERO}, {"ts": 2, "type": "B", "v": ZERO}]
    found = compile_query("PATTERN SEQ(A a, B b) WHERE a.v = b.v WITHIN 5 RETURN a.v AS v").match(events)
    assert found.to_arrow()["v"].to_pylist() == [ZERO]


def test_halves_in_json_are_malformed_rows(tmp_path):
    rows = [{"ts": 1, "type": "A", "v": HALF}, {"ts": 2, "type": "A", "v": "x"}, {"ts": 3, "type": "B", "v": "\udc00"}]
    for name, text in (("s.jsonl", "\n".join(map(json.dumps, rows))), ("s.json", json.dumps(rows))):
        (tmp_path / name).write_text(text)
        with pytest.raises(DataError) as caught:
            QUERY.match(tmp_path / name).to_arrow()
        assert caught.value.code == "ACEP-D020"
        assert "1 row" in str(look(open_source(tmp_path / name, on_malformed="skip")))


@pytest.mark.parametrize("bad", [HALF, BYTE, ZERO])
def test_arguments_that_are_no_text_are_refused(bad, tmp_path):
    file = tmp_path / "e.csv"
    file.write_text("ts,type\n1,A\n2,B\n")
    for call in (
        lambda: open_source(tmp_path / bad),
        lambda: open_source(str(tmp_path / bad) + "*"),
        lambda: QUERY.match(EVENTS, time=bad).to_arrow(),
        lambda: QUERY.match(EVENTS, key=bad).to_arrow(),
        lambda: QUERY.match(EVENTS, bind=bad).to_arrow(),
        lambda: open_source(file, delimiter=bad),
        lambda: open_source(file, encoding=bad),
        lambda: open_source(file, time_format=bad),
        lambda: follow(f"kafka://localhost:1/{bad}", until_idle=0),
        lambda: follow(f"kafka://localhost:1/t?group={bad}", until_idle=0),
        lambda: follow("kafka://localhost:1/t%00", until_idle=0),
        lambda: follow(f"kafka://local{bad}:1/t", until_idle=0),
        lambda: follow("kafka://localhost:1/t", kafka={"sasl.username": bad}),
        lambda: follow("kafka://localhost:1/t", kafka={bad: "x"}),
    ):
        with pytest.raises(AcepError) as caught:
            call()
        str(caught.value).encode()


@pytest.mark.parametrize("bad", [HALF, ZERO])
def test_outputs_with_names_that_no_file_has_are_refused(bad, tmp_path):
    file = tmp_path / "e.csv"
    file.write_text("ts,type\n1,A\n2,B\n")
    for call in (
        lambda: QUERY.match(EVENTS).page(tmp_path / f"{bad}.html"),
        lambda: list(QUERY.follow(file, until_idle=0, checkpoint=tmp_path / bad)),
        lambda: open_source(file, on_malformed="skip", rejects=tmp_path / bad),
        lambda: open_source(file, on_late="skip", late=tmp_path / f"{bad}.csv"),
        lambda: follow(file, on_malformed="skip", rejects=tmp_path / bad),
    ):
        with pytest.raises(UsageError) as caught:
            call()
        assert caught.value.code == "ACEP-U191"


def test_a_query_of_a_set_is_removed_by_what_add_gave():
    desk, other = QuerySet(), QuerySet()
    first, second = desk.add("PATTERN SEQ(A a, B b) WITHIN 5"), desk.add("PATTERN SEQ(A a, B b) WITHIN 6", id="two")
    twin = other.add("PATTERN SEQ(A a, B b) WITHIN 5")
    assert twin.id == first.id
    with pytest.raises(UsageError, match="of another set") as caught:
        desk.remove(twin)
    assert caught.value.code == "ACEP-U060"
    assert desk.text(second) == desk.text("two")
    assert desk.subscription(second) is second
    desk.remove(first)
    assert list(desk) == ["two"]
    with pytest.raises(UsageError) as caught:
        desk.remove(first)
    assert caught.value.code == "ACEP-U060"
    for wrong in (None, 1, [second]):
        with pytest.raises(UsageError) as caught:
            desk.remove(wrong)
        assert caught.value.code == "ACEP-U053"
    with pytest.raises(UsageError) as caught:
        desk.add("PATTERN SEQ(A a, B b) WITHIN 7", id=HALF)
    assert caught.value.code == "ACEP-U191"
