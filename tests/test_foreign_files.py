"""Files as people have them: other delimiters, headers, encodings and compressions than the plain ones."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import tarfile
import zipfile

import pandas as pd
import pyarrow as pa
import pytest

from acep_approx import compile_query
from acep_approx.errors import DataError, UsageError
from acep_approx.events import follow, infer_roles, open_source
from acep_approx.profiling import look
from tests.command_line import acep

ROWS = [{"ts": 1, "type": "A", "price": 1.5}, {"ts": 2, "type": "B", "price": 2.0}]
PLAIN = b"ts,type,price\n1,A,1.5\n2,B,2\n"


def read(events, **how):
    return [row for batch in open_source(events, **how).batches() for row in batch.to_pylist()]


def write(path, data):
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return path


def failure(events, kind=DataError, **how):
    with pytest.raises(kind) as caught:
        read(events, **how)
    return caught.value


# --- delimiters and headers -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "text", "delimiter"),
    [
        ("e.csv", "ts;type;price\n1;A;1.5\n2;B;2\n", ";"),
        ("e.csv", "ts\ttype\tprice\n1\tA\t1.5\n2\tB\t2\n", "\t"),
        ("e.csv", "ts|type|price\n1|A|1.5\n2|B|2\n", "|"),
        ("e.tsv", "ts\ttype\tprice\n1\tA\t1.5\n2\tB\t2\n", "\t"),
        ("commas.tsv", "ts,type,price\n1,A,1.5\n2,B,2\n", ","),
        ("e.psv", "ts|type|price\n1|A|1.5\n2|B|2\n", "|"),
        ("e.txt", "ts;type;price\n1;A;1.5\n2;B;2\n", ";"),
        ("e.csv", "ts;type;price\r\n1;A;1,5\r\n2;B;2\r\n", ";"),
        ("e.csv", "\n# exported\n# by hand\n\nts, type ,price\n1,A,1.5\n2,B,2\n", ","),
        ("e.csv", "#ts,type,price\n1,A,1.5\n2,B,2\n", ","),
        ("e.csv", "sep=;\nts;type;price\n1;A;1,5\n2;B;2\n", ";"),
        ("e.csv", "ts;type;price;\n1;A;1.5;\n2;B;2;\n", ";"),
        ("e.csv", "Account 7;;\nts;type;price\n1;A;1,5\n2;B;2\n", ";"),
        ("e.csv", "Report\n\nts;type;price\n1;A;1.5\n2;B;2\n", ";"),
        ("e.csv", "Report\r\n,,\r\nts,type,price\r\n1,A,1.5\r\n2,B,2\r\n,,\r\n,,\r\n", ","),
        ("e.csv", 'ts;type;price\n1;"A";1.5\n;;\n2;B;2\n;;', ";"),
        ("e.csv", "ts,type,price\n1,A,1.5,\n2,B,2,\n", ","),
        ("e.csv", '\ufeffts;type;price\n1;"A";1.5\n2;"B";2\n', ";"),
        ("e.csv", "ts, type, price\n1, A, 1.5\n2,  B, 2\n", ","),
        ("e.csv", '"ts", "type", "price"\n1, "A", 1.5\n 2, B, 2\n,,\n', ","),
        ("e.csv", "ts| type| price\r\n1| A| 1.5\r\n2| B| 2\r\n", "|"),
    ],
)
def test_rows_are_the_same_however_they_are_written(tmp_path, name, text, delimiter):
    source = open_source(write(tmp_path / name, text))
    assert [row for batch in source.batches() for row in batch.to_pylist()] == ROWS
    assert source.understood.delimiter == delimiter
    assert any("delimiter" in note for note in source.notes) == (delimiter != ",")


def test_quotes_open_after_the_delimiter_that_is_there(tmp_path):
    path = write(tmp_path / "e.csv", 'ts;text\n1;"a;b\nc"\n2;x,"y\n3;5" pipe\n')
    assert [row["text"] for row in read(path)] == ["a;b\nc", 'x,"y', '5" pipe']


@pytest.mark.parametrize("text", ["ts\n1\n2\n", "a|b;c\n1|2;3\n", "a;b\n1\n2\n"])
def test_a_delimiter_is_never_guessed(tmp_path, text):
    assert open_source(write(tmp_path / "e.csv", text)).understood.delimiter == ","


def test_spaces_behind_delimiters_belong_to_no_value(tmp_path):
    path = write(tmp_path / "e.csv", 'ts, "text", n\n1, "a, ""b""", 4\n2,  c d,\n3, 5" pipe, 6\n')
    assert read(path) == [
        {"ts": 1, "text": 'a, "b"', "n": 4},
        {"ts": 2, "text": "c d", "n": None},
        {"ts": 3, "text": '5" pipe', "n": 6},
    ]
    assert open_source(path).notes == ["the space behind each ',' left out"]
    for text in ("ts,text\n1, a\n2, b\n", "ts, text\n1,b\n2, a\n"):  # not the header, or not the first row
        assert " a" in [row["text"] for row in read(write(path, text))]


@pytest.mark.parametrize(
    "text",
    [
        "# by hand\n#\nts,type\n1,A\n2,B\n",
        "\n#ts,type\n1,A\n2,B\n",
        "sep=;\nts;type\n1;A\n2;B\n",
        "Report;;\n;;\nts;type;n\n1;A;2\n2;B;3\n",
        "Report\n\nts,type,n\n1,A,2\n2,B,3\n",
        'Report,\nts, "type", n,\n1, A, "2,2",\n2, B, "3,3",\n',
        "Report;\n\nts;type;n;\n1;A;2;\n2;B;3;\n",
        "ts, type\n1, A\n2,B\n",
        'ts, type, text\n1, A, x\n2, B, "a\n b"\n',
    ],
)
def test_a_stream_is_read_like_a_file(tmp_path, monkeypatch, text):
    path = write(tmp_path / "e.csv", text)
    there = read(path)
    assert [(row["ts"], row["type"]) for row in there] == [(1, "A"), (2, "B")]
    for source in (standard_input(monkeypatch, text), follow(path, until_idle=0)):
        source.settle(infer_roles)
        assert [row for batch in source.batches() for row in batch.to_pylist()] == there


def standard_input(monkeypatch, text, **how):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    return open_source("-", **how)


def test_a_tie_is_told(tmp_path):
    source = open_source(write(tmp_path / "e.csv", "ts\ttype, kind\n1\tA, b\n2\tB, c\n"))
    assert (source.understood.delimiter, "'\\t' fits as well" in source.notes[0]) == (",", True)


def test_a_log_is_not_taken_for_csv(tmp_path):
    path = write(tmp_path / "app.log", "2013-01-31 17:45:00,120 INFO x\n2013-01-31 17:45:01,000 INFO y\n")
    error = failure(path)
    assert (error.code, "--line-format" in error.hint) == ("ACEP-D012", True)


def test_a_delimiter_can_be_said(tmp_path):
    path = write(tmp_path / "e.csv", "ts|x;y\n1|2;3\n")
    assert read(path, delimiter="|") == [{"ts": 1, "x;y": "2;3"}]
    assert read(path, delimiter=";") == [{"ts|x": "1|2", "y": 3}]
    tabs = write(tmp_path / "t.csv", "ts\tx\n1\t2\n")
    for name in ("tab", "\\t", "\t"):
        assert read(tabs, delimiter=name) == [{"ts": 1, "x": 2}]
    for wrong in ("ab", "x", '"', ""):
        assert failure(path, UsageError, delimiter=wrong).code == "ACEP-U116"


def test_columns_of_a_file_without_a_header(tmp_path):
    path = write(tmp_path / "e.csv", "1,A,1.5\n2,B,2\n")
    error = failure(path)
    assert error.code == "ACEP-D026"
    assert "--columns" in error.hint
    assert read(path, columns=["ts", "type", "price"]) == ROWS
    assert read(path, columns="ts,type,price") == ROWS
    assert open_source(path, columns="ts,type,price").understood.header is False
    assert read(write(tmp_path / "h.csv", PLAIN), columns="ts,type,price") == ROWS
    assert failure(path, columns="ts,type").code == "ACEP-D020"
    assert failure(path, UsageError, columns="ts,ts,x").code == "ACEP-U122"
    assert failure(path, UsageError, columns=[]).code == "ACEP-U122"


def test_numbers_may_be_names_of_columns(tmp_path):
    assert read(write(tmp_path / "e.csv", "ts,2019,2020\n1,2,3\n")) == [{"ts": 1, "2019": 2, "2020": 3}]


def test_decimal_commas(tmp_path):
    path = write(tmp_path / "e.csv", "ts;x;y;z\n1;1.234,5;1,234;1,5\n2;3;4;n/a?\n")
    source = open_source(path)
    assert read(source) == [
        {"ts": 1, "x": 1234.5, "y": "1,234", "z": "1,5"},
        {"ts": 2, "x": 3.0, "y": "4", "z": "n/a?"},
    ]
    assert source.understood.decimal_commas == ("x",)
    assert any("y" in note and "--decimal" in note for note in source.notes)
    assert [row["y"] for row in read(path, decimal=",")] == [1.234, 4.0]
    assert [row["x"] for row in read(path, decimal=".")] == ["1.234,5", "3"]
    assert failure(path, UsageError, decimal=";").code == "ACEP-U123"


def test_a_later_value_without_the_comma_of_the_others_is_malformed(tmp_path, monkeypatch):
    monkeypatch.setattr("acep_approx.events.reading.text.BLOCK_BYTES", 16)
    path = write(tmp_path / "e.csv", "ts;x\n1;1,5\n2;2,5\n3;x\n4;1.5\n5;2\n")
    source = open_source(path, on_malformed="skip")
    assert [row["x"] for row in read(source)] == [1.5, 2.5, 2.0]
    assert source.malformed.count == 2
    assert "'x' holds numbers with a decimal comma" in source.malformed.reasons[0]


# --- encodings and compression ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32", "utf-8-sig"])
def test_marks_of_encodings_are_understood(tmp_path, encoding):
    path = write(tmp_path / "e.csv", "ts,type\n1,\u00d6l\n".encode(encoding))
    assert read(path) == [{"ts": 1, "type": "\u00d6l"}]


def test_other_encodings_are_said(tmp_path):
    path = write(tmp_path / "e.csv", "ts,type\n1,\u00d6l\n".encode("latin-1"))
    error = failure(path)
    assert error.code == "ACEP-D014"
    assert "--encoding" in error.hint
    assert read(path, encoding="latin-1") == read(path, encoding="cp1252") == [{"ts": 1, "type": "\u00d6l"}]
    assert failure(path, encoding="ascii").code == "ACEP-D029"
    assert failure(path, UsageError, encoding="klingon").code == "ACEP-U119"


def zipped(*members):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name in members:
            archive.writestr(name, PLAIN)
    return file.getvalue()


def tarred():
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as archive:
        info = tarfile.TarInfo("e.csv")
        info.size = len(PLAIN)
        archive.addfile(info, io.BytesIO(PLAIN))
    return file.getvalue()


PACKED = {
    "gzip": gzip.compress(PLAIN),
    "bzip2": bz2.compress(PLAIN),
    "xz": lzma.compress(PLAIN),
    "zstd": pa.compress(PLAIN, "zstd", asbytes=True),
    "lz4": pa.compress(PLAIN, "lz4", asbytes=True),
    "zip": zipped("a.csv"),
}


@pytest.mark.parametrize("kind", PACKED)
def test_compression_is_told_by_the_content(tmp_path, monkeypatch, kind):
    source = open_source(write(tmp_path / "e.csv", PACKED[kind]))
    assert source.understood.compression == kind
    assert read(source) == read(source) == ROWS
    suffix = {"gzip": "gz", "bzip2": "bz2", "zstd": "zst"}.get(kind, kind)
    write(tmp_path / f"f.csv.{suffix}", PACKED[kind])
    assert len(read(tmp_path)) == 4
    monkeypatch.setattr(
        "acep_approx.events.reading.arriving.standard_input", lambda: io.BufferedReader(io.BytesIO(PACKED[kind]))
    )
    assert read("-") == ROWS


def test_what_is_cut_off_or_an_archive_is_refused(tmp_path):
    for kind in ("bzip2", "xz", "zstd", "zip"):
        assert failure(write(tmp_path / "e.csv", PACKED[kind][:-10])).code == "ACEP-D013", kind
    assert failure(write(tmp_path / "e.zip", zipped("a.csv", "b.csv")), format="csv").code == "ACEP-D028"
    assert failure(write(tmp_path / "e.csv", tarred())).code == "ACEP-D028"
    assert failure(write(tmp_path / "e.csv.gz", gzip.compress(tarred()))).code == "ACEP-D028"


def test_what_a_format_has_not_is_refused(tmp_path):
    path = write(tmp_path / "e.jsonl", '{"ts": 1}\n')
    assert failure(path, UsageError, delimiter=";").code == "ACEP-U121"
    assert failure([{"ts": 1}], UsageError, delimiter=";").code == "ACEP-U121"
    assert failure(open_source(path), UsageError, encoding="latin-1").code == "ACEP-U147"
    with pytest.raises(TypeError, match="delimeter"):
        open_source(path, delimeter=";")


def test_files_that_are_written_differently_are_one_stream_and_told_apart(tmp_path):
    one = write(tmp_path / "one.csv", "ts,type,price\n2024-01-01T00:00:00Z,A,1.5\n")
    two = write(tmp_path / "two.csv", "ts;type;price\n13.02.2024;B;2,5\n".encode("utf-16"))
    more = [write(tmp_path / f"{n}.csv", f"ts;type;price\n{n}.03.2024;B;3,5\n") for n in (14, 15)]
    source = open_source([one, two, *more])
    assert [row["price"] for batch in source.batches() for row in batch.to_pylist()] == [1.5, 2.5, 3.5, 3.5]
    assert source.notes == [
        f"of {two}: encoding utf-16",
        f"of {two} and 2 more: delimiter ';', decimal comma in price, times of ts as %d.%m.%Y, the day first",
    ]
    assert not open_source(one).notes
    assert open_source(more).notes[0] == "delimiter ';'"
    assert f"of {more[0]}: delimiter ';'" in "; ".join(look([one, more[0]]).understood)


@pytest.mark.parametrize("text", ["ts#type#price\n3#B#2\n4#A#2\n", "when;what\n3;B\n4;A\n"])
def test_a_file_that_shares_no_column_is_told_by_its_name(tmp_path, text):
    other = write(tmp_path / "other.csv", text)
    error = failure([write(tmp_path / "e.csv", PLAIN), other])
    assert (error.code, str(other) in error.message) == ("ACEP-D170", True)
    empty = write(tmp_path / "empty.jsonl", "")
    assert read([empty, tmp_path / "e.csv"]) == ROWS


def test_times_of_one_file_that_are_not_sure_are_told(tmp_path):
    sure = write(tmp_path / "sure.csv", "ts,type\n2024-01-01,A\n")
    other = write(tmp_path / "other.csv", "ts,type\n01/02/2024,A\n")
    for files in ([sure, other], [other, sure]):
        with pytest.raises(DataError, match="01/02/2024") as caught:
            compile_query("PATTERN SEQ(A a, A b) WITHIN 5 d").match(files).to_arrow()
        assert caught.value.code in ("ACEP-D006", "ACEP-D032")  # behind a sure one, or by itself
        assert "--time-format '%d/%m/%Y" in str(caught.value.hint)


def test_the_command_line_says_how_it_read(tmp_path):
    path = write(tmp_path / "e.csv", "ts;type;price\n1;A;1,5\n2;B;2,5\n")
    done = acep("run", "PATTERN SEQ(A a, B b) WHERE b.price > a.price WITHIN 5", str(path))
    assert "read with delimiter ';'; decimal comma in price" in done.stderr
    asked = ("check", "PATTERN SEQ(A a, B b) WITHIN 5", "--input", str(path))
    assert "read with delimiter ';'" in acep(*asked).stderr
    acep(*asked, "--delimiter", "tab", code=4)


def test_a_source_is_taken_as_events(tmp_path):
    path = write(tmp_path / "e.csv", "1;A;1.5\n2;B;2\n")
    query = compile_query("PATTERN SEQ(A a, B b) WITHIN 5")
    found = query.match(open_source(path, columns="ts,type,price"))
    assert [match.values for match in found] == [{"a": 0, "b": 1}]


@pytest.mark.parametrize(
    "text",
    [
        "ts,,\n1,A,1.5\n2,B,2\n",  # the names of two columns are lacking, which is no title
        "report of,,\n1,A,1.5\n2,B,2\n",
    ],
)
def test_what_may_be_a_header_is_no_title(tmp_path, text):
    assert failure(write(tmp_path / "e.csv", text)).code == "ACEP-D015"


def test_a_header_that_is_too_short_is_no_title(tmp_path):
    error = failure(write(tmp_path / "e.csv", "ts,type\n1,A,1.5\n2,B,2\n"))
    assert (error.code, "line 2" in error.message) == ("ACEP-D020", True)


def test_lines_count_on_over_empty_rows(tmp_path):
    error = failure(write(tmp_path / "e.csv", "ts,type,price\n,,\n1,A,1\n,,\n2,B\n"))
    assert (error.code, "line 5" in error.message) == ("ACEP-D020", True)


def test_what_looks_like_an_empty_row_within_quotes_is_a_value(tmp_path):
    path = write(tmp_path / "e.csv", 'ts,type,price\n1,"A\n,,\nB",1\n')
    assert read(path) == [{"ts": 1, "type": "A\n,,\nB", "price": 1}]


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("e.pkl", b"\x80\x05\x95\x00\x00", "pickle"),
        ("e.csv", b"SQLite format 3\x00" + bytes(90), "sqlite3 -header -csv"),
        ("e.csv", b"\n<!DOCTYPE html>\n<html>", "login"),
        ("e.feather", b"ARROW1\x00\x00", "read_feather"),
        ("e.xls", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "Excel"),
    ],
)
def test_files_of_other_kinds_are_named(tmp_path, name, content, says):
    error = failure(write(tmp_path / name, content))
    assert error.code == "ACEP-D180"
    assert says in error.message + error.hint


@pytest.mark.parametrize(
    ("content", "holds"),
    [(b'{"ts": 1, "type": "A"}\n', "json"), (b'[\n {"ts": 1}]', "json"), (b"PAR1\x15\x04\xe0PAR1", "parquet")],
)
def test_names_that_lie_are_told(tmp_path, content, holds):
    error = failure(write(tmp_path / "e.csv", content))
    assert error.code == "ACEP-D182"
    assert f"--input-format {holds}" in error.hint


@pytest.mark.parametrize(
    ("address", "says"),
    [
        ("https://example.com/a.csv", "curl -L -o FILE 'https://example.com/a.csv'"),
        ("dbfs://bucket/a.parquet", "copy it here first, or to a store that is read: s3://"),
        ("file:///data/a.csv", "/data/a.csv"),
    ],
)
def test_addresses_are_no_files(address, says):
    error = failure(address)
    assert error.code == "ACEP-D181"
    assert address in error.message
    assert says in error.hint


def test_a_name_with_stars_stands_for_files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for place, row in enumerate(PLAIN.splitlines()[1:]):
        write(tmp_path / f"e{place}.csv", PLAIN.splitlines()[0] + b"\n" + row + b"\n")
    write(tmp_path / "e[1].csv", PLAIN)
    assert read("e?.csv") == ROWS
    assert read("e[1].csv") == ROWS  # a file that is called so
    assert failure("f*.csv").code == "ACEP-D010"
    assert "6" not in acep("look", "e?.csv").output.split("rows")[0]
    assert "'e?.csv'" in acep("look", "e?.csv").output


def test_logs_of_common_kinds_are_told_by_their_lines(tmp_path):
    apache = '10.0.0.1 - - [03/Feb/2025:07:00:26 +0000] "GET / HTTP/1.1" 200 2987 "-" "Mozilla/5.0" 0.1\n'
    assert "--line-format apache" in failure(write(tmp_path / "access.log", apache * 3)).hint
    syslog = "Mar 28 09:30:00 web sshd[7]: accepted\n"
    assert "--line-format syslog" in failure(write(tmp_path / "sys.log", syslog)).hint
    assert "apache, syslog" in failure(write(tmp_path / "other.log", "it is done\n")).hint


def test_fields_of_objects_are_suggested_by_their_last_name(tmp_path):
    path = write(tmp_path / "e.jsonl", '{"timestamp": 1, "payload": {"temp": 3, "state": "A"}}\n')
    query = "PATTERN SEQ(A a, A b) WHERE b.temp > 1 WITHIN 5"
    assert "did you mean `payload.temp`?" in acep("run", query, str(path), "--type", "payload.state", code=3).output
    assert "did you mean 'payload.state'?" in acep("run", query, str(path), "--type", "state", code=4).output


def test_a_day_beside_a_time_of_day_of_any_name_is_told(tmp_path):
    path = write(tmp_path / "e.csv", "Buchung;Uhrzeit;Art\n31.01.2025;09:30:00;A\n31.01.2025;09:31:00;B\n")
    assert any("--time Buchung+Uhrzeit" in note for note in noted(path))
    path = write(tmp_path / "e.csv", "Buchung;Uhrzeit;Art\n31.01.2025 08:00;09:30:00;A\n31.01.2025 08:10;09:31:00;B\n")
    assert not any("--time" in note for note in noted(path))


def test_what_is_given_in_python_by_mistake_is_named():
    assert "this is text" in failure("ts,type\n1,A\n").message
    assert "pyarrow.table(events)" in failure({"ts": [1], "type": ["A"]}, UsageError).hint
    assert "column 'v' holds values of several types" in failure(pd.DataFrame({"ts": [1, 2], "v": ["a", 1]})).message


def noted(path):
    source = open_source(path)
    assert source.schema.names  # the notes are on these
    return source.notes


def test_commands_to_copy_have_quotes_that_people_can_read(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "doors.csv", "ts,type\n1,in\n2,out\n")
    query = "PATTERN SEQ('in' a, 'away' b) WITHIN 5"
    assert f'acep why "{query}" doors.csv' in acep("run", query, "doors.csv").output


def test_the_first_matches_are_called_so():
    matches = compile_query("PATTERN SEQ(A a, B b) WITHIN 5").match(ROWS)
    assert repr(matches.head(1)).startswith("<The first 1 matches of ")
    assert "The first 1 matches of those of 1 match point in" in matches.head(1)._repr_html_()
    assert "The first" not in repr(matches)


@pytest.mark.parametrize("name", ["PATTERN SEQ(A a, B b) WITHIN 5 " * 20, ""])
def test_what_cannot_be_a_name_is_no_file(name):
    assert failure(name).code == "ACEP-D010"


@pytest.mark.parametrize("text", ['ts,type\n1,A\n2,"B\n3,C\n', 'ts,type\n1,A\n2,"B', 'ts, type\n1, A\n2, "B\n3, C\n'])
def test_a_quote_that_is_never_closed_swallows_no_events(tmp_path, monkeypatch, text):
    path = write(tmp_path / "e.csv", text)
    assert "line 3: a double quote opens a value, and none closes it" in failure(path).message
    for source in (open_source(path, on_malformed="skip"), standard_input(monkeypatch, text, on_malformed="skip")):
        assert [row for batch in source.batches() for row in batch.to_pylist()] == [{"ts": 1, "type": "A"}]
        assert source.malformed.count == 1


@pytest.mark.parametrize(
    ("head", "kind"),
    [
        ('<?xml version="1.0" ?>\n<log xes.version="1.0"><trace/></log>\n', "a log of XES"),
        ('<log xes.version="1.0"><trace/></log>\n', "a log of XES"),
        ('<?xml version="1.0"?><!-- x --><svg width="1"/>\n', "a drawing, SVG"),
        ("<rss version='2.0'></rss>\n", "a feed, RSS"),
        ("<Events><Event/></Events>\n", "XML"),
        ("<?xml version='1.0'?><data/>\n", "XML"),
        ("ElfFile\0\0", "EVTX"),
        ("\n\r\r\n____", "pcapng"),
    ],
)
@pytest.mark.parametrize("name", ["e", "e.csv", "e.xml"])
def test_files_of_other_programs_are_named(tmp_path, name, head, kind):
    error = failure(write(tmp_path / name, head))
    assert error.code == "ACEP-D180"
    assert kind in error.message
    assert error.hint


def test_lines_that_begin_with_a_bracket_are_no_xml(tmp_path):
    path = write(tmp_path / "a.log", "<34>Mar 28 09:30:00 db1 su: x\n<logger> y\n")
    assert len(read(path, line_format="{all}")) == 2


@pytest.mark.parametrize("name", ["n.txt", "n", "n.log"])
def test_names_of_columns_say_that_files_are_csv(tmp_path, name):
    path = write(tmp_path / name, "!AIVDM,2,1630526404\n!SAVDM,1,1630526405\n")
    expected = [{"type": "!AIVDM", "n": 2, "ts": 1630526404}, {"type": "!SAVDM", "n": 1, "ts": 1630526405}]
    assert read(path, columns="type,n,ts") == expected
    followed = follow(path, until_idle=0, columns="type,n,ts")
    assert [row for batch in followed.batches() for row in batch.to_pylist()] == expected
    if name != "n":
        assert read(tmp_path, columns="type,n,ts") == expected
