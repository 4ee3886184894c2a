"""Types of columns that are said, what stands for null, signs between thousands; and texts compared by order."""

from __future__ import annotations

import io
import json
import sys
import warnings

import pytest

from acep_approx import QuerySet, TextOrderWarning, compile_query, compile_rules
from acep_approx.errors import DataError, QueryError, UsageError
from acep_approx.events import open_source
from acep_approx.events.live.source import follow


def rows(path, **how):
    return [row for batch in open_source(path, **how).batches() for row in batch.to_pylist()]


def written(folder, name, text):
    (folder / name).write_text(text)
    return folder / name


def test_csv_is_read_as_said(tmp_path):
    file = written(tmp_path, "in.csv", "ts,id,n,x,b\n1,7,+007,1e3,yes\n2,007,,NA,0\n")
    said = {"id": "text", "n": "int", "x": "float", "b": "bool"}
    wanted = [
        {"ts": 1, "id": "7", "n": 7, "x": 1000.0, "b": True},
        {"ts": 2, "id": "007", "n": None, "x": None, "b": False},
    ]
    assert rows(file, column_types=said) == wanted
    assert rows(file, column_types=["id=text,n=int", "x=float", "b=bool"]) == wanted
    assert rows(file, column_types="id=text,n=int,x=float,b=bool") == wanted


def test_json_is_read_as_said_whether_it_has_texts_or_numbers(tmp_path):
    lines = '{"ts":1,"p":"9.5","id":7,"n":{"v":"1"}}\n{"ts":2,"p":10,"id":"007","n":{"v":2}}\n{"ts":3,"id":1.50}\n'
    file = written(tmp_path, "in.jsonl", lines)
    found = rows(file, column_types={"p": "float", "id": "text", "n.v": "int"})
    assert [(row["p"], row["id"], row["n.v"]) for row in found] == [
        (9.5, "7", 1),
        (10.0, "007", 2),
        (None, "1.50", None),
    ]


def test_lines_of_a_log_are_read_as_said(tmp_path):
    file = written(tmp_path, "in.log", "1 A 7\n2 B *\n3 B 8\n")
    how = {"line_format": "{ts} {type} {id}", "column_types": "id=text", "null": "*"}
    assert [row["id"] for row in rows(file, **how)] == ["7", None, "8"]


def test_what_does_not_fit_is_a_malformed_row(tmp_path):
    for name, text in (
        ("in.csv", "ts,x\n1,5\n2,a5\n3,6\n"),
        ("in.jsonl", '{"ts":1,"x":5}\n{"ts":2,"x":"a5"}\n{"ts":3,"x":6}\n'),
    ):
        file = written(tmp_path, name, text)
        with pytest.raises(DataError, match=r"column 'x' is said to be int, and 'a5' is none"):
            rows(file, column_types="x=int")
        source = open_source(file, column_types="x=int", on_malformed="skip")
        assert [row["x"] for batch in source.batches() for row in batch.to_pylist()] == [5, 6]
        assert source.malformed.count == 1
    with pytest.raises(DataError, match=r"'n/a' is none; if it stands for no value: --null n/a"):
        rows(written(tmp_path, "null.csv", "ts,x\n1,5\n2,n/a\n"), column_types="x=int")


def test_a_field_that_changes_its_type_can_be_read_as_text(tmp_path):
    file = written(tmp_path, "in.jsonl", '{"ts":1,"x":5}\n{"ts":2,"x":"a5"}\n')
    with pytest.raises(DataError) as error:
        rows(file)
    assert "--column-type x=text" in str(error.value.hint)
    assert [row["x"] for row in rows(file, column_types="x=text")] == ["5", "a5"]


def test_a_column_of_json_that_is_said_to_be_text_may_hold_anything(tmp_path):
    values = [[1, "y"], 2, True, "x", {"x": 0.50}, None, 1.50]
    file = written(tmp_path, "in.jsonl", "".join(json.dumps({"ts": n, "x": x}) + "\n" for n, x in enumerate(values)))
    texts = ['[1, "y"]', "2", "true", "x", '{"x": 0.5}', None, "1.5"]
    assert [row["x"] for row in rows(file, column_types="x=text")] == texts


def test_null_is_what_is_said(tmp_path):
    file = written(tmp_path, "in.csv", "ts,x,y\n1,-,NA\n2,5,AT\n3,,\n")
    assert rows(file, null="-") == [
        {"ts": 1, "x": None, "y": "NA"},
        {"ts": 2, "x": 5, "y": "AT"},
        {"ts": 3, "x": None, "y": None},
    ]
    lines = written(tmp_path, "in.jsonl", '{"ts":1,"x":"-"}\n{"ts":2,"x":"b"}\n')
    assert [row["x"] for row in rows(lines, null=["-"])] == [None, "b"]


@pytest.mark.parametrize(
    ("sign", "decimal", "texts", "values"),
    [
        (",", None, ('"9,000"', '"10,000"', "500"), [9000.0, 10000.0, 500.0]),
        (",", None, ('"1,234.5"', "7", "8.25"), [1234.5, 7.0, 8.25]),
        (".", ",", ('"1.234,5"', "7", '"8,25"'), [1234.5, 7.0, 8.25]),
        (" ", None, ("9 000", "1 000 000", "5"), [9000.0, 1000000.0, 5.0]),
    ],
)
def test_thousands(tmp_path, sign, decimal, texts, values):
    file = written(tmp_path, "in.csv", "ts,x\n" + "".join(f"{ts},{text}\n" for ts, text in enumerate(texts)))
    more = {} if decimal is None else {"decimal": decimal, "delimiter": ","} if decimal != "," else {}
    if decimal == ",":
        file.write_text("ts;x\n" + "".join(f"{ts};{text}\n" for ts, text in enumerate(texts)))
        more = {"decimal": ","}
    assert [row["x"] for row in rows(file, thousands=sign, **more)] == values
    assert [row["x"] for row in rows(file, thousands=sign, column_types="x=float", **more)] == values


@pytest.mark.parametrize(
    ("how", "code", "words"),
    [
        ({"column_types": "y=int"}, "ACEP-U205", "the columns are: ts, x"),
        ({"column_types": "x=number"}, "ACEP-U206", "the types are text, int, float, bool"),
        ({"column_types": "x"}, "ACEP-U206", "--column-type id=text"),
        ({"column_types": ["x=int", "x=text"]}, "ACEP-U206", "two types"),
        ({"thousands": "x"}, "ACEP-U207", "it is one of"),
        ({"thousands": ",", "decimal": ","}, "ACEP-U207", "decimal sign"),
    ],
)
def test_what_is_said_wrongly_is_refused(tmp_path, how, code, words):
    file = written(tmp_path, "in.csv", "ts;x\n1;5\n")
    with pytest.raises(UsageError, match=words) as raised:
        open_source(file, **how)
    assert raised.value.code == code
    with pytest.raises(UsageError, match="events are an object"):
        open_source([{"ts": 1, "x": "5"}], column_types={"x": "int"})


@pytest.mark.parametrize("name", ["in.csv", "in.jsonl"])
def test_types_are_said_of_input_that_comes(tmp_path, monkeypatch, name):
    lines = {
        "in.csv": "ts,type,id\n1,A,7\n2,B,007\n3,B,7\n",
        "in.jsonl": "".join(
            f'{{"ts":{ts},"type":"{kind}","id":{text}}}\n'
            for ts, kind, text in ((1, "A", 7), (2, "B", '"007"'), (3, "B", 7))
        ),
    }
    file = written(tmp_path, name, lines[name])
    query = compile_query("PATTERN SEQ(A a, B b) WHERE [id] WITHIN 5 RETURN a.id AS one, b.ts AS t")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(lines[name].encode())))
    for source in (
        open_source(file, column_types="id=text"),
        open_source("-", column_types="id=text"),
        follow(file, until_idle=0, column_types="id=text"),
    ):
        assert [match.values for match in query.match(source)] == [{"one": "7", "t": 3}]


def test_a_run_that_goes_on_keeps_its_types(tmp_path):
    file = written(tmp_path, "in.csv", "ts,type,id\n1,A,7\n")
    live = follow(file, until_idle=0)
    assert [batch.num_rows for batch in live.batches()] == [1]
    place = live.place()
    with file.open("a") as more:
        more.write("2,B,8\n")
    assert [batch.num_rows for batch in follow(file, until_idle=0, resumed=place).batches()] == [1]
    with pytest.raises(UsageError, match="id' is said to be text, and the run that goes on has int64"):
        follow(file, until_idle=0, resumed=place, column_types="id=text")


PRICES = [{"ts": ts, "type": "A", "p": p} for ts, p in enumerate(("9.5", "10.1", "9.9"))]
RISING = "PATTERN SEQ(A a, A b) WHERE b.p > a.p WITHIN 5"


@pytest.mark.parametrize(
    "query",
    [
        RISING,
        "PATTERN A a WHERE a.p BETWEEN '1' AND '10' WITHIN 5",
        "PATTERN A+ a[] WITHIN 5 RETURN max(a[].p) AS top",
    ],
)
def test_the_order_of_texts_that_are_numbers_is_never_silent(query):
    with pytest.warns(TextOrderWarning, match=r"column 'p' is text, .*--column-type p=float"):
        list(compile_query(query).match(PRICES))
    with pytest.warns(TextOrderWarning):
        list(compile_query(query).match([*PRICES, {"ts": 3, "type": "A", "p": "n/a"}]))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        list(compile_query(query).match([row | {"p": f"x{row['p']}"} for row in PRICES]))
        len(compile_query("PATTERN SEQ(A a, A b) WHERE b.p = a.p AND b.p = '9.5' WITHIN 5").match(PRICES))


def test_sets_and_rules_and_matchers_say_it_too():
    desk = QuerySet()
    desk.add(RISING)
    with pytest.warns(TextOrderWarning):
        list(desk.batches(PRICES))
    text = f"TABLE t (k text, n int, KEY (k))\nRULE r ON {RISING}\nDO UPSERT t SET n = 1 AT (b.p)\nEND"
    rules = compile_rules(text)
    with pytest.warns(TextOrderWarning):
        rules.run(PRICES)
    matcher = compile_query(RISING).matcher()
    matcher.push(PRICES[:1])
    with pytest.warns(TextOrderWarning):
        matcher.push(PRICES[1:2])


@pytest.mark.parametrize(("condition", "quotes"), [("a.p > 10", False), ("a.p = 10", True)])
def test_the_hint_leads_from_a_refusal_to_no_wrong_answer(condition, quotes):
    with pytest.raises(QueryError, match=r"--column-type p=float") as raised:
        len(compile_query(f"PATTERN A a WHERE {condition} WITHIN 5").match(PRICES))
    assert ("strings stand in quotes" in str(raised.value.hint)) is quotes
