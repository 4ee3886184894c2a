import gzip
import json
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from acep_approx.errors import DataError, UsageError
from acep_approx.events import blocks
from acep_approx.events.source import open_source

ROOT = Path(__file__).parent.parent
ROWS = [
    {"ts": 1, "type": "A", "price": 1.5},
    {"ts": 2, "type": "B", "price": None},
    {"ts": 3, "type": "A", "price": 2.0},
]
CSV = b"ts,type,price\n1,A,1.5\n2,B,\n3,A,2.0\n"
JSONL = b'{"ts":1,"type":"A","price":1.5}\n{"ts":2,"type":"B"}\n\n{"ts":3,"type":"A","price":2}\n'


def read(source, **kwargs):
    return [row for batch in source.batches(**kwargs) for row in batch.to_pylist()]


def write(path, data):
    path.write_bytes(data)
    return path


def failure(events, kind=DataError, **kwargs):
    with pytest.raises(kind) as caught:
        read(open_source(events, **kwargs))
    return caught.value


@pytest.fixture
def files(tmp_path):
    write(tmp_path / "e.csv", CSV)
    write(tmp_path / "e.jsonl", JSONL)
    write(tmp_path / "e.csv.gz", gzip.compress(CSV))
    write(tmp_path / "e.ndjson.gz", gzip.compress(JSONL))
    pq.write_table(pa.Table.from_pylist(ROWS), tmp_path / "e.parquet")
    return tmp_path


@pytest.mark.parametrize("name", ["e.csv", "e.jsonl", "e.csv.gz", "e.ndjson.gz", "e.parquet"])
def test_files(files, name):
    source = open_source(files / name)
    assert source.schema == pa.schema([("ts", pa.int64()), ("type", pa.string()), ("price", pa.float64())])
    assert source.reusable
    assert source.rows == (3 if name == "e.parquet" else None)
    for _ in range(2):
        assert read(source) == ROWS
        assert read(source, columns=["price", "ts"]) == [{"price": r["price"], "ts": r["ts"]} for r in ROWS]
        assert [b.num_rows for b in source.batches(["ts"], batch_rows=2)] == [2, 1]


def objects():
    table = pa.Table.from_pylist(ROWS)
    return {
        "table": (table, True, 3),
        "batch": (table.to_batches()[0], True, 3),
        "reader": (table.to_reader(), False, None),
        "frame": (table.to_pandas(), True, 3),
        "list": (ROWS, True, 3),
        "generator": ((row for row in ROWS), False, None),
    }


@pytest.mark.parametrize("kind", objects())
def test_objects(kind):
    events, reusable, rows = objects()[kind]
    source = open_source(events)
    assert (source.reusable, source.rows) == (reusable, rows)
    assert source.schema.names == ["ts", "type", "price"]
    assert read(source, batch_rows=2) == ROWS
    if reusable:
        assert read(source, columns=["type"]) == [{"type": r["type"]} for r in ROWS]
    else:
        with pytest.raises(UsageError, match="only once") as caught:
            source.batches()
        assert caught.value.code == "ACEP-U103"


def test_unknown_column(files):
    with pytest.raises(DataError, match="'prize'") as caught:
        open_source(files / "e.csv").batches(["prize"])
    assert (caught.value.code, caught.value.hint) == ("ACEP-D002", "did you mean 'price'?")


def test_encodings_do_not_show_in_the_schema():
    coded = pa.array(["a", "b"]).dictionary_encode()
    source = open_source(pa.table({"x": coded, "y": pa.array(["c", "d"], pa.large_string())}))
    assert source.schema.types == [pa.string(), pa.string()]


def test_several_files_and_folders(tmp_path):
    (tmp_path / "b").mkdir()
    write(tmp_path / "a.csv", b"ts,x,y\n1,1,\n")
    write(tmp_path / "b" / "c.jsonl", b'{"ts":2,"x":2.5,"z":"q"}\n')
    write(tmp_path / "b" / "_SUCCESS", b"")
    write(tmp_path / "notes.txt", b"no events")
    pq.write_table(pa.table({"ts": pa.array([3], pa.int32()), "y": ["w"]}), tmp_path / "d.parquet")
    everything = [
        {"ts": 1, "x": 1.0, "y": None, "z": None},
        {"ts": 2, "x": 2.5, "y": None, "z": "q"},
        {"ts": 3, "x": None, "y": "w", "z": None},
    ]
    source = open_source(tmp_path)
    assert source.schema.types == [pa.int64(), pa.float64(), pa.string(), pa.string()]
    assert read(source) == everything
    assert read(open_source([tmp_path / "a.csv", str(tmp_path / "b"), tmp_path / "d.parquet"])) == everything
    assert read(source, columns=["z"]) == [{"z": row["z"]} for row in everything]


def test_types_that_do_not_go_together(tmp_path):
    write(tmp_path / "a.jsonl", b'{"ts":1,"x":1}\n')
    write(tmp_path / "b.csv", b"ts,x\n1,one\n")
    error = failure(tmp_path)
    assert error.code == "ACEP-D016"
    assert "'x' is int64 in" in error.message
    assert "string in" in error.message
    assert "b.csv" in error.message


def test_a_column_that_is_text_in_one_file_of_csv_is_text_as_written_in_all(tmp_path):
    write(tmp_path / "a.csv", b"ts,x\n1,1.50\n")
    write(tmp_path / "b.csv", b"ts,x\n2,007\n")
    assert [row["x"] for batch in open_source(tmp_path).batches() for row in batch.to_pylist()] == ["1.50", "007"]


@pytest.mark.parametrize(
    ("name", "data", "code", "words"),
    [
        ("empty.csv", b"", "ACEP-D015", "empty"),
        ("blank.csv", b"\n\n", "ACEP-D015", "empty"),
        ("twins.csv", b"a,a\n1,2\n", "ACEP-D015", "'a'"),
        ("mac.csv", b"a,b\r1,2\r", "ACEP-D015", "header"),
        ("latin.csv", b"a,b\n1,caf\xe9\n", "ACEP-D014", "line 2: byte 0xe9 is not UTF-8"),
        ("latin.jsonl", b'{"a":1}\n{"a":"caf\xe9"}\n', "ACEP-D014", "line 2"),
        ("broken.parquet", b"PAR1 this is not Parquet", "ACEP-D013", "broken.parquet"),
        ("nothing.parquet", b"", "ACEP-D013", "0 bytes"),
        ("cut.csv.gz", gzip.compress(CSV * 1000, mtime=0)[:-20], "ACEP-D013", "cut.csv.gz"),
        ("events.txt", b"ts\n1\n", "ACEP-D012", "events.txt"),
        ("events.parquet.gz", b"", "ACEP-D012", "events.parquet.gz"),
        ("short.csv", b"a,b\n1,2\n3\n", "ACEP-D020", "line 3: Expected 2 columns, got 1: '3'"),
        ("long.csv", b'a,b\n1,"x\ny"\n3,4,5\n', "ACEP-D020", "line 4: Expected 2 columns, got 3: '3,4,5'"),
        ("cut.jsonl", b'{"a":1}\n{"a":\n', "ACEP-D020", "line 2: not a JSON object"),
        ("null.jsonl", b"null\n", "ACEP-D020", "line 1: not a JSON object"),
        ("two.jsonl", b'{"a":1}\n{"a":1} 7\n', "ACEP-D020", "line 2: not a JSON object: '{\"a\":1} 7'"),
        ("twice.jsonl", b'{"a":1}\n{"a":1,"a":2}\n', "ACEP-D020", "line 2: Column(/a) was specified twice"),
        (
            "deep.jsonl",
            b'{"a":' + b"[" * 10**6 + b"]" * 10**6 + b"}\n",
            "ACEP-D020",
            "line 1: more than 100 objects",
        ),
        ("changes.jsonl", b'{"a":1}\n{"a":"x"}\n', "ACEP-D020", "line 2"),
    ],
)
def test_bad_files(tmp_path, name, data, code, words):
    error = failure(write(tmp_path / name, data))
    assert error.code == code
    assert words in str(error)
    assert error.hint


def test_files_that_are_not_there(tmp_path):
    write(tmp_path / "events.csv", CSV)
    error = failure(tmp_path / "event.csv")
    assert error.code == "ACEP-D010"
    assert "events.csv" in error.hint
    (tmp_path / "folder").mkdir()
    write(tmp_path / "folder" / "x.txt", CSV)
    assert failure(tmp_path / "folder").code == "ACEP-D011"


def test_format_wins_over_the_name(tmp_path):
    path = write(tmp_path / "events.txt", CSV)
    assert read(open_source(path, format="csv")) == ROWS
    assert failure(path, UsageError, format="xml").code == "ACEP-U104"
    assert failure(path, format="parquet").code == "ACEP-D013"
    assert failure(path, format="jsonl").code == "ACEP-D020"
    assert failure(path, format="jsonl", on_malformed="skip").code == "ACEP-D021"


def test_no_events(tmp_path):
    pq.write_table(pa.Table.from_pylist(ROWS).slice(0, 0), tmp_path / "e.parquet")
    for events in (
        write(tmp_path / "e.csv", b"ts,x\n"),
        write(tmp_path / "e.jsonl", b""),
        tmp_path / "e.parquet",
        [],
        iter([]),
    ):
        assert read(open_source(events)) == []
    assert open_source(tmp_path / "e.csv").schema.names == ["ts", "x"]
    assert open_source([]).schema.names == []


def test_malformed_rows_are_skipped_counted_and_written(tmp_path):
    data = b"ts,x\n" + b"".join(b"%d,%d\n" % (i, i) for i in range(1000))
    data += b"1000,x\n1001\n\n1002,2\n,1,1\n1003,3"
    path, rejects = write(tmp_path / "e.csv", data), tmp_path / "rejects.jsonl"
    source = open_source(path, on_malformed="skip", rejects=rejects)
    for _ in range(2):
        rows = read(source)
        assert [row["ts"] for row in rows] == [*range(1001), 1002, 1003]
        assert rows[1000]["x"] == "x"  # one value in the first block, and x is a column of strings
        assert source.malformed.count == 2
    written = [json.loads(line) for line in rejects.read_text().splitlines()]
    assert [(w["line"], w["text"]) for w in written] == [(1003, "1001"), (1006, ",1,1")]
    assert written[-1]["reason"] == "Expected 2 columns, got 3"
    assert written[-1]["file"] == str(path)
    assert source.malformed.reasons[-1].endswith("line 1006: Expected 2 columns, got 3")


def test_values_that_do_not_fit_the_types_of_the_first_rows(tmp_path, monkeypatch):
    monkeypatch.setattr("acep_approx.events.reading.text.BLOCK_BYTES", 64)
    csv = write(tmp_path / "e.csv", b"ts,x\n" + b"1,1\n" * 50 + b"2,oops\n3,3\n")
    error = failure(csv)
    assert "line 52: column 'x' is int64 in the first rows, and this value is not: '2,oops'" in error.message
    assert read(open_source(csv), columns=["ts"])[-2:] == [
        {"ts": 2},
        {"ts": 3},
    ]  # only what is asked for is checked
    source = open_source(csv, on_malformed="skip")
    assert read(source)[-1] == {"ts": 3, "x": 3}
    assert source.malformed.count == 1
    jsonl = write(tmp_path / "e.jsonl", b'{"ts":1}\n' * 50 + b'{"ts":"u"}\nnull\n{"ts":3,"new":1}\n')
    source = open_source(jsonl, on_malformed="skip")
    assert read(source)[-2:] == [{"ts": 1}, {"ts": 3}]
    assert [reason.split("line ")[1] for reason in source.malformed.reasons] == [
        "51: Column(/ts) changed from number to string",
        "52: not a JSON object",
    ]


def test_first_rows_of_json_may_be_malformed_too(tmp_path):
    path = write(tmp_path / "e.jsonl", b'oops\nnull\n{"ts":1}\n{"ts":"x"}\n{"ts":2}\n')
    source = open_source(path, on_malformed="skip")
    assert read(source) == [{"ts": 1}, {"ts": 2}]
    assert source.malformed.count == 3


def test_options_for_malformed_rows(tmp_path):
    path = write(tmp_path / "e.csv", CSV)
    assert failure(path, UsageError, on_malformed="ignore").code == "ACEP-U105"
    assert failure(path, UsageError, rejects=tmp_path / "r").code == "ACEP-U106"
    assert failure(path, UsageError, on_malformed="skip", rejects=path).code == "ACEP-U106"
    assert failure(path, UsageError, on_malformed="skip", rejects=tmp_path / "no" / "r").code == "ACEP-U106"
    assert path.read_bytes() == CSV


@pytest.mark.parametrize("size", [16, 64, 1 << 20])
def test_blocks_do_not_change_the_rows(tmp_path, monkeypatch, size):
    monkeypatch.setattr("acep_approx.events.reading.text.BLOCK_BYTES", size)
    first = b'n,s\r\n1,"a"\r\n2,"b"\r\n'
    odd = b'3,"x\r\ny, ""z"""\r\n\r\n4,5" pipe\r\n5,"\xc3\xa9\n"\r\n6,""\r\n7,NA\r\n8,"NA"\r\n9,'
    source = open_source(write(tmp_path / "e.csv", b"\xef\xbb\xbf" + first + odd))
    texts = ["a", "b", 'x\r\ny, "z"', '5" pipe', "\xe9\n", "", None, "NA", None]
    assert read(source) == [{"n": n, "s": s} for n, s in enumerate(texts, 1)]


def test_last_whole_row():
    for text, rows in [
        (b'a\n"b\nc', b"a\n"),
        (b'a\n"b\n', b"a\n"),
        (b'"a\n', b""),
        (b'5" x\ny', b'5" x\n'),
        (b"a", b""),
    ]:
        assert text[: blocks.last_line_end(text, quotes=b",")] == rows


def test_times_in_text_may_get_finer(tmp_path):
    path = write(tmp_path / "e.csv", b"ts\n2020-01-01T00:00:00Z\n")
    assert open_source(path).schema.field("ts").type == pa.timestamp("us", tz="UTC")


@pytest.mark.parametrize("name", ["e.csv", "e.jsonl", "e.csv.gz", "e.ndjson.gz", "e.parquet"])
def test_standard_input(files, name):
    program = (
        "import sys; from acep_approx.events import open_source; s = open_source('-');"
        "print([r for b in s.batches() for r in b.to_pylist()], s.reusable, 'pandas' in sys.modules)"
    )
    with (files / name).open("rb") as stdin:
        out = subprocess.run(
            [sys.executable, "-c", program], stdin=stdin, capture_output=True, cwd=ROOT, check=True
        )
    assert out.stdout.decode().strip() == f"{ROWS} False False"


def test_standard_input_is_streamed():
    program = (
        "import sys; from acep_approx.events import open_source; batches = open_source('-').batches();"
        "print(next(batches).num_rows > 0, flush=True); list(batches)"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT
    ) as process:
        process.stdin.write(b"ts,x\n" + b"1,2\n" * (blocks.BLOCK_BYTES // 4 + 20_000))
        process.stdin.flush()
        assert process.stdout.readline() == b"True\n"  # while the input is still open
        process.stdin.close()


def test_standard_input_alone(tmp_path):
    assert failure(["-", write(tmp_path / "e.csv", CSV)], UsageError).code == "ACEP-U108"


def test_dicts():
    assert read(open_source([{"ts": 1}, {"ts": 2, "x": 1}])) == [{"ts": 1, "x": None}, {"ts": 2, "x": 1}]
    many = [{"ts": i} for i in range(25_000)]
    assert read(open_source(iter(many))) == many
    assert read(open_source(row for row in many)) == many
    assert failure([{"ts": 1}, "x"]).code == "ACEP-D023"
    assert failure([{"ts": 1}, {1: 1}]).row == 1
    assert failure([{"ts": 1}, {"ts": "x"}]).code == "ACEP-D018"
    error = failure(iter([*many, {"ts": 1, "extra": 2}]))
    assert (error.code, error.row) == ("ACEP-D022", 25_000)
    assert "'extra'" in error.message
    assert read(open_source([*many, {"ts": 1.5}]))[-2:] == [{"ts": 24_999}, {"ts": 1.5}]
    error = failure([*many, {"ts": "1"}])
    assert (error.code, error.row) == ("ACEP-D018", 25_000)
    assert failure([*many, {"ts": 2**70}]).code == "ACEP-D018"


def test_frames():
    frame = pd.DataFrame({"x": [1.5, None]}, index=pd.DatetimeIndex(["2020-01-01", "2020-01-02"], name="ts"))
    source = open_source(frame)
    assert source.schema.names == ["ts", "x"]
    assert [row["x"] for row in read(source)] == [1.5, None]
    assert failure(pd.DataFrame({"x": [1, "a"]})).code == "ACEP-D018"
    assert failure(pd.DataFrame([[1, 2]], columns=["a", "a"])).code == "ACEP-D015"
    assert read(open_source(pd.DataFrame([[1, 2]]))) == [{"0": 1, "1": 2}]


def test_other_objects():
    for events in (5, {"ts": [1]}, b"x", None):
        assert failure(events, UsageError).code == "ACEP-U107"
    assert failure(pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"])).code == "ACEP-D015"


@pytest.mark.parametrize("batch_rows", [7, 10_000, 100_000])
def test_dicts_of_a_generator_are_read_in_any_pieces(batch_rows: int) -> None:
    rows = [{"ts": n, "x": n if n < 10_000 else n + 0.5} for n in range(20_003)]
    source = open_source(row for row in rows)
    batches = list(source.batches(["x", "ts"], batch_rows))
    assert [value for batch in batches for value in batch.column("x").to_pylist()] == [row["x"] for row in rows]
    assert [value for batch in batches for value in batch.column("ts").to_pylist()] == [*range(20_003)]
    assert [row for batch in open_source(iter(rows[:3])).batches(["ts"], batch_rows) for row in batch.to_pylist()] == [
        {"ts": 0}, {"ts": 1}, {"ts": 2}
    ]  # fmt: skip
