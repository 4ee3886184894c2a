"""Very many names of columns: refused before memory is spent on them, or values of a map that are no columns."""

import json

import pyarrow as pa
import pyarrow.json as arrow_json
import pyarrow.parquet as pq
import pytest

from acep_approx import compile_query, look
from acep_approx.errors import DataError
from acep_approx.events import open_source
from acep_approx.events.columns import MOST_COLUMNS
from acep_approx.events.live.source import follow
from acep_approx.events.reading.formats.json import WideNames, different_names
from acep_approx.events.reading.nested import MOST_FIELDS
from tests.command_line import acep

QUERY = "PATTERN SEQ(A a, B b) WITHIN 1"
ROWS = 10_200
FRESH = [{"ts": row, "type": "AB"[row % 2], f"name{row}": row} for row in range(ROWS)]
MAPS = [{"ts": row, "type": "AB"[row % 2], "counts": {f"user{row}": {"n": 1}}} for row in range(ROWS)]


def jsonl(rows):
    """Rows as JSON lines."""
    return "".join(json.dumps(row) + "\n" for row in rows)


@pytest.fixture
def bounded(monkeypatch):
    """Lets no test take more memory for columns than a few rows of them."""
    spent = []
    from acep_approx.events.reading.formats import json as json_format

    read = json_format._read_json

    def counting(data, schema, lines=None):
        table = read(data, schema, lines)
        spent.append(table.nbytes)
        return table

    monkeypatch.setattr(json_format, "_read_json", counting)
    yield
    assert max(spent, default=0) < 2**26


@pytest.mark.usefixtures("bounded")
def test_a_fresh_name_in_every_row_of_json_is_refused_with_examples(tmp_path):
    path = tmp_path / "fresh.jsonl"
    path.write_text(jsonl(FRESH))
    for command in ("run", QUERY, str(path)), ("look", str(path)), ("look", "-"):
        shown = acep(*command, stdin=path.read_bytes(), code=4).output
        assert all(word in shown for word in ("ACEP-D130", "'name1", "jq"))


@pytest.mark.usefixtures("bounded")
def test_a_map_with_ids_as_names_is_no_column_and_the_others_are(tmp_path):
    path = tmp_path / "maps.jsonl"
    path.write_text(jsonl(MAPS))
    found = acep("run", QUERY, str(path), "--output", "count")
    assert json.loads(found.stdout)["matches"] == ROWS // 2
    assert f"counts left out: it holds more than {MOST_FIELDS:,}" in found.stderr
    assert [column.name for column in look(path).columns] == ["ts", "type"]
    assert open_source(MAPS).schema.names == open_source(iter(MAPS)).schema.names == ["ts", "type"]
    assert len(compile_query(QUERY).match(MAPS)) == ROWS // 2
    assert "counts left out" in open_source(MAPS).notes[0]


@pytest.mark.usefixtures("bounded")
def test_a_small_object_inside_events_stays_columns(tmp_path):
    path = tmp_path / "small.jsonl"
    path.write_text(jsonl(MAPS[:MOST_FIELDS]))
    assert len(open_source(path).schema.names) == MOST_FIELDS + 2


@pytest.mark.usefixtures("bounded")
@pytest.mark.parametrize("rows", [FRESH, MAPS])
def test_followed_and_piped_input_reads_the_columns_it_needs(tmp_path, rows):
    path = tmp_path / "rows.jsonl"
    path.write_text(jsonl(rows))
    source = follow(path, until_idle=0)
    assert sum(1 for _ in compile_query(QUERY).match(source)) == ROWS // 2
    found = acep("run", QUERY, "-", "--output", "count", stdin=path.read_bytes())
    assert json.loads(found.stdout)["matches"] == ROWS // 2


def test_wide_tables_are_refused_or_looked_at_in_part(tmp_path):
    names = ["ts", "type", *(f"c{i}" for i in range(MOST_COLUMNS))]
    (tmp_path / "wide.csv").write_text(",".join(names) + "\n1,A" + ",1" * MOST_COLUMNS + "\n")
    table = pa.table({name: pa.array([1]) for name in names})
    pq.write_table(table, tmp_path / "wide.parquet")
    for events in (tmp_path / "wide.csv", tmp_path / "wide.parquet", table, [dict.fromkeys(names, 1)], iter(FRESH)):
        with pytest.raises(DataError) as error:
            open_source(events)
        assert error.value.code == "ACEP-D130"
    seen = look(table.select(names[:3000]))
    assert len(seen.columns) < 600
    assert "2,500 more columns, which were not looked at" in str(seen)
    assert len(open_source(table.select(names[:MOST_COLUMNS])).schema) == MOST_COLUMNS


def test_names_are_counted_as_they_stand_outside_of_texts():
    rows = [
        {f"n{row % 1500}": 'a "quoted": text', "text": "x\\", "b": {f"m{row % 700}": [1, {"k": ":"}]}}
        for row in range(3000)
    ]
    assert different_names(jsonl(rows).encode()) == 1500 + 700 + 3
    assert different_names(b'{"a":1}\n') == 1


def test_types_of_wide_json_are_those_of_the_first_values(tmp_path):
    rows = [{"ts": row, "type": "A", f"c{row % 1200}": row / 2 if row % 2 else row} for row in range(15_000)]
    path = tmp_path / "sparse.jsonl"
    path.write_text(jsonl(rows))
    source = open_source(path)
    assert len(source.schema) == 1202
    batches = list(source.batches(["ts", "c7", "c8"]))
    values = [value for batch in batches for value in batch.column(1).to_pylist() if value is not None]
    assert values == [row / 2 for row in range(7, 15_000, 1200)]
    assert [batch.num_rows for batch in source.batches(source.schema.names[:2])] == [15_000]
    wide = [batch.num_rows for batch in source.batches()]
    assert len(wide) > 1
    assert sum(wide) == 15_000


def test_a_line_of_very_many_names_does_not_reach_the_parser():
    wide = {"ts": 1, "m": {f"n{i}": i for i in range(20_000)}, "o": {"p": {f"n{i}": i for i in range(2000)}, "q": 1}}
    read = []

    def parsed(data):
        read.append(data)
        return arrow_json.read_json(pa.BufferReader(data))

    names = WideNames("f", parsed)
    assert list(names.columns(jsonl([wide]).encode())) == [("ts",), ("o", "q")]
    assert names.maps == [("m",), ("o", "p")]
    assert sum(map(len, read)) < 100
    with pytest.raises(DataError, match="ACEP-D130"):
        names.columns(jsonl([{f"n{i}": i for i in range(20_000)}]).encode())
    assert list(names.columns(b'{"a": [' + b'":",' * 20_000 + b'""]}\n')) == [("ts",), ("o", "q"), ("a",)]
