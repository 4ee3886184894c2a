"""JSON as people have it: arrays, objects around them, objects over many lines, objects inside events."""

from __future__ import annotations

import io
import json
from random import Random

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from acep_approx import compile_query
from acep_approx.errors import DataError
from acep_approx.events import infer_roles, open_source
from acep_approx.events.reading.files import find_files
from acep_approx.events.reading.formats.json_documents import AsLines, document_of
from acep_approx.profiling import look
from acep_approx.query.parser import parse
from acep_approx.query.printer import to_text
from acep_approx.spark.sources.files import needs_our_reader
from tests.cases import cases
from tests.command_line import acep

ROWS = [{"ts": 1, "type": "A", "x": 1.5}, {"ts": 2, "type": "B", "x": 2.5}]


def read(events, **how):
    return [row for batch in open_source(events, **how).batches() for row in batch.to_pylist()]


def write(path, text):
    path.write_text(text)
    return path


def failure(call):
    with pytest.raises(DataError) as caught:
        call()
    return caught.value


@pytest.mark.parametrize(
    ("text", "array"),
    [
        (json.dumps(ROWS), None),
        (json.dumps(ROWS, indent=2), None),
        ("\n" + json.dumps(ROWS, indent="\t").replace("\n", "\r\n") + "\n", None),
        ("\n".join(map(json.dumps, ROWS)), None),
        ("\n".join(json.dumps(row, indent=1) for row in ROWS), None),
        (json.dumps({"ok": True, "page": {"of": [1, 2]}, "events": ROWS, "next": [3]}), "events"),
        (json.dumps({"note": '"events": [{', "data": ROWS, "more": None}, indent=4), "data"),
    ],
)
def test_documents_have_the_same_events(tmp_path, text, array):
    source = open_source(write(tmp_path / "e.json", text))
    assert [row for batch in source.batches() for row in batch.to_pylist()] == ROWS
    assert (source.understood.array, bool(array) == any("array" in note for note in source.notes)) == (array, True)
    assert read(write(tmp_path / "e.txt", text)) == ROWS
    if text.lstrip().startswith("["):
        assert read(write(tmp_path / "e.jsonl", text)) == ROWS


def test_a_single_object_is_an_event(tmp_path):
    assert read(write(tmp_path / "e.json", json.dumps(ROWS[0], indent=2))) == ROWS[:1]
    assert read(write(tmp_path / "e.json", "[]")) == []


def test_lines_whose_events_hold_arrays_are_lines(tmp_path):
    rows = [{"ts": 1, "items": [{"sku": 7}]}, {"ts": 2, "items": []}]
    assert read(write(tmp_path / "e.json", "\n".join(map(json.dumps, rows)))) == rows


def test_what_is_wrong_in_a_document_is_told(tmp_path):
    cut = write(tmp_path / "cut.json", json.dumps(ROWS, indent=1)[:-3])
    assert failure(lambda: read(cut)).code == "ACEP-D013"
    two = write(tmp_path / "two.json", json.dumps({"a": ROWS, "b": ROWS}))
    error = failure(lambda: read(two))
    assert error.code == "ACEP-D037"
    assert "'a' and 'b'" in error.message
    mixed = write(tmp_path / "mixed.json", json.dumps([ROWS[0], 7, ROWS[1]], indent=1))
    error = failure(lambda: read(mixed))
    assert (error.code, "event 2: not a JSON object" in error.message) == ("ACEP-D020", True)
    source = open_source(mixed, on_malformed="skip")
    assert [row for batch in source.batches() for row in batch.to_pylist()] == ROWS
    assert source.malformed.count == 1
    after = write(tmp_path / "after.json", json.dumps(ROWS) + " [1]")
    assert failure(lambda: read(after)).code == "ACEP-D020"


def test_an_array_comes_through_a_pipe(monkeypatch):
    for text in (json.dumps(ROWS), json.dumps(ROWS, indent=1)):
        found = acep("run", "PATTERN SEQ(A a, B b) WITHIN 5", "-", "--format", "jsonl", stdin=text.encode())
        assert json.loads(found.stdout)["b.ts"] == 2
    wrapped = json.dumps({"events": ROWS}).encode()
    asked = ("run", "PATTERN SEQ(A a, B b) WITHIN 5", "-", "--format", "jsonl", "--input-format", "json")
    assert json.loads(acep(*asked, stdin=wrapped).stdout)["b.ts"] == 2


def a_value(dice, depth=0):
    kind = dice.randrange(7 if depth < 3 else 5)
    if kind < 5:
        return [1, 1.5, None, 'a"b\\', 'x{[,]}\n\\"'][kind]
    if kind == 5:
        return [a_value(dice, depth + 1) for _ in range(dice.randrange(3))]
    return {dice.choice('ab"\\'): a_value(dice, depth + 1) for _ in range(dice.randrange(3))}


class Pieces(io.BytesIO):
    """A stream that gives so many bytes at once."""

    def __init__(self, data, size):
        super().__init__(data)
        self._size = size

    def read1(self, size=-1):
        return super().read(self._size)


@pytest.mark.parametrize("seed", range(cases(200)))
def test_lines_are_made_of_any_document_in_any_pieces(seed):
    dice = Random(seed)
    objects = [{f"k{n}": a_value(dice) for n in range(dice.randrange(4))} for _ in range(dice.randrange(1, 5))]
    indent = dice.choice([None, 1])
    texts = {
        "array": json.dumps(objects, indent=indent),
        "object": json.dumps({"s": "[{", "n": {"z": [{}]}, "events": objects, "t": [1]}, indent=indent),
        "objects": "\n".join(json.dumps({"x": 1} | one, indent=1) for one in objects),
    }
    for kind, text in texts.items():
        if kind == "objects" and document_of(text.encode()).kind == "object":
            continue  # an object that holds an array of objects
        document = document_of(text.encode())
        assert document.kind == kind
        lines = AsLines(Pieces(text.encode(), dice.choice([1, 2, 7, 50, 10_000])), document, "x")
        data = b"".join(iter(lambda: lines.read(100), b""))  # noqa: B023
        found = [json.loads(line) for line in data.split(b"\n") if line.strip()]
        assert found == ([{"x": 1} | one for one in objects] if kind == "objects" else objects)


def test_long_arrays_are_read_in_blocks(tmp_path, monkeypatch):
    monkeypatch.setattr("acep_approx.events.reading.text.BLOCK_BYTES", 256)
    rows = [{"ts": n, "x": {"y": n / 2}} for n in range(500)]
    source = open_source(write(tmp_path / "e.json", json.dumps(rows, indent=2)))
    sizes = [batch.num_rows for batch in source.batches()]
    assert sum(sizes) == 500
    assert max(sizes) < 20


# --- objects inside events --------------------------------------------------------------------------------------------

NESTED = [
    {"meta": {"ts": 1, "user": {"id": 7}}, "event": {"name": "A"}, "price": 3},
    {"meta": {"ts": 2, "user": {"id": 8}}, "event": {"name": "B"}, "price": 4},
    {"meta": {"ts": 3, "user": {"id": 7}}, "event": {"name": "B"}, "price": 4},
    {"meta": {"ts": 4, "user": None}, "event": {"name": "B"}, "price": 9},
]
QUERY = "PATTERN SEQ(A a, B b) WHERE [meta.user.id] AND b.meta.ts > a.meta.ts WITHIN 5 RETURN b.meta.user.id AS who"
ROLES = {"time": "meta.ts", "type": "event.name"}


@pytest.mark.parametrize("kind", ["jsonl", "json", "parquet", "dicts", "generator", "table", "reader", "frame"])
def test_fields_of_objects_are_columns(tmp_path, kind):
    table = pa.Table.from_pylist(NESTED)
    pq.write_table(table, tmp_path / "e.parquet")
    events = {
        "jsonl": lambda: write(tmp_path / "e.jsonl", "\n".join(map(json.dumps, NESTED))),
        "json": lambda: write(tmp_path / "e.json", json.dumps(NESTED, indent=1)),
        "parquet": lambda: tmp_path / "e.parquet",
        "dicts": lambda: NESTED,
        "generator": lambda: iter(NESTED),
        "table": lambda: table,
        "reader": table.to_reader,
        "frame": lambda: pd.DataFrame(NESTED),
    }[kind]
    assert {"meta.ts", "meta.user.id", "event.name", "price"} <= {*open_source(events()).schema.names}
    found = compile_query(QUERY).match(events(), **ROLES).to_arrow()
    assert found.select(["meta.user.id", "who", "start", "end"]).to_pylist() == [
        {"meta.user.id": 7, "who": 7, "start": 1, "end": 3}
    ]


def test_queries_name_fields_with_dots_or_in_quotes():
    plain = parse("PATTERN SEQ(A a, B+ b[]) WHERE [m.u] AND b[i].m.x.y > a.m.x AND max(b[].m.x) > 1 WITHIN 5")
    quoted = "PATTERN SEQ(A a, B+ b[]) WHERE [`m.u`] AND b[i].`m.x.y` > a.`m.x` AND max(b[].`m.x`) > 1 WITHIN 5"
    assert parse(to_text(plain)) == plain
    assert to_text(parse(quoted)) == to_text(plain)
    assert [one.name for one in plain.equivalences] == ["m.u"]


def test_a_matcher_takes_nested_events_in_pieces():
    matcher = compile_query(QUERY).matcher(**ROLES)
    found = [matcher.push([event]).num_rows for event in NESTED]
    assert found == [0, 0, 1, 0]


def test_numbers_and_times_in_objects_are_as_exact_as_others(tmp_path):
    rows = [{"m": {"id": 2**63 + 5, "at": "31.01.2013 17:45"}}, {"m": {"id": 7, "at": "31.01.2013 17:46"}}, {"m": None}]
    source = open_source(write(tmp_path / "e.jsonl", "\n".join(map(json.dumps, rows))))
    assert source.schema == pa.schema([("m.id", pa.string()), ("m.at", pa.timestamp("us"))])
    assert [row["m.id"] for batch in source.batches() for row in batch.to_pylist()] == [str(2**63 + 5), "7", None]
    assert source.understood.nested == ("m.id", "m.at")


def test_a_value_in_the_place_of_an_object_is_malformed(tmp_path, monkeypatch):
    monkeypatch.setattr("acep_approx.events.reading.text.BLOCK_BYTES", 16)
    text = '{"m": {"x": 1}}\n{"m": {"x": 2, "y": 3}}\n{"m": 5}\n{"m": {"x": 4}}\n'
    source = open_source(write(tmp_path / "e.jsonl", text), on_malformed="skip")
    assert [row["m.x"] for batch in source.batches() for row in batch.to_pylist()] == [1, 2, 4]
    assert source.malformed.count == 1


def test_two_columns_of_one_name_are_refused(tmp_path):
    path = write(tmp_path / "e.jsonl", '{"a.b": 1, "a": {"b": 2}}\n')
    assert failure(lambda: open_source(path)).code == "ACEP-D015"
    table = pa.table({"a.b": [1], "a": [{"b": 2}]})
    assert failure(lambda: open_source(table)).code == "ACEP-D015"


def test_spark_leaves_files_with_objects_to_our_reader(tmp_path):
    pq.write_table(pa.Table.from_pylist(NESTED), tmp_path / "nested.parquet")
    pq.write_table(pa.table({"ts": [1], "x": [2.5]}), tmp_path / "flat.parquet")
    found = {file.path.name: needs_our_reader([file]) for file in find_files([tmp_path])}
    assert found == {"flat.parquet": False, "nested.parquet": True}


MIXED = [
    '{"ts": 1, "type": "A", "m": "x", "n": 1.50, "o": {"p": "q"}}',
    '{"ts": 2, "type": "B", "m": [32, "\\u00e9\\"", {"a": []}], "n": 2, "o": {"p": {"r": 1}}}',
    '{"ts": 3, "type": "C", "m": {"a": 1}, "n": 3, "o": {"p": ["s"]}}',
]


@pytest.mark.parametrize("order", [(0, 1, 2), (0, 2, 1)])
@pytest.mark.parametrize("block", [None, 64])
def test_a_list_or_an_object_among_texts_is_its_json_text(tmp_path, monkeypatch, order, block):
    if block is not None:
        monkeypatch.setattr("acep_approx.events.reading.text.BLOCK_BYTES", block)
    path = tmp_path / "in.jsonl"
    path.write_text("".join(MIXED[row] + "\n" for row in order))
    rows = {row["ts"]: row for batch in open_source(path).batches() for row in batch.to_pylist()}
    assert [rows[ts]["m"] for ts in (1, 2, 3)] == ["x", '[32, "\\u00e9\\"", {"a": []}]', '{"a": 1}']
    assert [rows[ts]["o.p"] for ts in (1, 2, 3)] == ["q", '{"r": 1}', '["s"]']
    assert [rows[ts]["n"] for ts in (1, 2, 3)] == [1.5, 2.0, 3.0]


@pytest.mark.parametrize(
    "text",
    [
        '{"all": [{"in": [{"when": 1, "kind": "A"}]}]}\n',
        '[{"all": [{"in": [{"when": 1, "kind": "A"}]}]}]',
        '{"x": "y", "all": {"in": [{"when": 1, "kind": "A"}]}}\n',
    ],
)
def test_events_in_a_list_are_told_with_its_name(tmp_path, text):
    path = tmp_path / "in.jsonl"
    path.write_text(text)
    schema = open_source(path).schema
    for roles in ({"time": "when"}, {}):
        with pytest.raises(DataError) as refused:
            infer_roles(schema, **roles)
        assert refused.value.code == ("ACEP-D002" if roles else "ACEP-D001")
        assert '."in"?' in refused.value.hint
    assert '."in"?' in str(look(path))
