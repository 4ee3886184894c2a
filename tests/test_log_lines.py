"""Logs: a pattern says what the lines of a file hold; what does not fit is a malformed row."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pyarrow as pa
import pytest

from acep_approx import compile_query
from acep_approx.errors import DataError, UsageError
from acep_approx.events import TimeFormat, open_source
from acep_approx.events.reading.formats.log_lines import READY, line_pattern
from tests.command_line import acep

APACHE = (
    '10.0.0.7 - ann [31/Jan/2013:17:45:00 +0100] "GET /a?b=1 HTTP/1.1" 200 512\n'
    '10.0.0.8 - - [31/Jan/2013:17:45:01 +0100] "POST /b HTTP/1.1" 404 - "http://x/\\"y" "Mozilla/5.0 (X11)"\n'
    '10.0.0.8 - - [31/Jan/2013:17:45:02 +0100] "\\x16\\x03" 400 0 "-" "-"\n'
)
JAVA = (
    "2013-01-31 17:45:00,120 INFO  [t-1] start 7\n"
    "2013-01-31 17:45:01,000 ERROR [t-2] failed 8\n"
    "java.lang.IllegalStateException: late\n"
    "\tat shop.Till.pay(Till.java:7)\n"
    "\n"
    "2013-01-31 17:45:02,500 INFO  [t-1] end 9\n"
)
JAVA_FORMAT = r"(?P<time>\S+ \S+) +(?P<level>\w+) +\[(?P<thread>[^\]]+)\] (?P<word>\w+) (?P<n>\d+)"


def write(path, text):
    path.write_text(text)
    return path


def rows_of(source):
    return [row for batch in source.batches() for row in batch.to_pylist()]


def failure(call, kind=DataError):
    with pytest.raises(kind) as caught:
        call()
    return caught.value


def test_lines_of_apache(tmp_path):
    source = open_source(write(tmp_path / "access.log", APACHE), line_format="apache")
    first, second, third = rows_of(source)
    assert first == {
        "host": "10.0.0.7",
        "user": "ann",
        "time": datetime(2013, 1, 31, 16, 45, tzinfo=UTC),
        "method": "GET",
        "path": "/a?b=1",
        "protocol": "HTTP/1.1",
        "status": 200,
        "size": 512,
        "referer": None,
        "agent": None,
    }
    assert (second["size"], second["agent"], second["referer"]) == (None, "Mozilla/5.0 (X11)", 'http://x/\\"y')
    assert (third["method"], third["status"], third["user"]) == (None, 400, None)
    assert (source.understood.format, list(source.understood.times)) == ("lines", ["time"])


def test_lines_of_syslog(tmp_path):
    path = write(tmp_path / "sys.log", "Jan 31 17:45:00 db1 sshd[77]: Accepted: ann\n<13>Feb  1 00:00:00 db1 cron: x\n")
    source = open_source(path, line_format="syslog", time_format=TimeFormat(year=2013))
    first, second = rows_of(source)
    assert (first["time"], first["app"], first["pid"]) == (datetime(2013, 1, 31, 17, 45), "sshd", 77)  # noqa: DTZ001
    assert (second["priority"], second["pid"], second["message"]) == (13, None, "x")
    new = write(tmp_path / "new.log", '<34>1 2013-01-31T17:45:00Z db1 su - ID47 [a b="c"] it failed\n')
    (row,) = rows_of(open_source(new, line_format="syslog5424"))
    assert row["time"] == datetime(2013, 1, 31, 17, 45, tzinfo=UTC)
    assert (row["kind"], row["message"]) == ("ID47", "it failed")


@pytest.mark.parametrize("template", ["{time} {level}  [{thread}] {message}", JAVA_FORMAT])
def test_tracebacks_are_malformed_rows(tmp_path, template):
    path = write(tmp_path / "java.log", JAVA.replace("ERROR", "WARN "))
    error = failure(lambda: rows_of(open_source(path, line_format=template)))
    assert (error.code, "java.log, line 3: the line does not fit" in error.message) == ("ACEP-D020", True)
    rejects = tmp_path / "rejects.jsonl"
    source = open_source(path, line_format=template, on_malformed="skip", rejects=rejects)
    found = rows_of(source)
    assert [row["thread"] for row in found] == ["t-1", "t-2", "t-1"]
    assert [row["time"].microsecond for row in found] == [120_000, 0, 500_000]
    assert source.malformed.count == 2
    assert [json.loads(line)["line"] for line in rejects.read_text().splitlines()] == [3, 4]


def test_types_are_those_of_the_values(tmp_path, monkeypatch):
    monkeypatch.setattr("acep_approx.events.reading.text.BLOCK_BYTES", 32)
    lines = ["1 1.5 true 2013-01-31 7 -", "2 2 false 2013-02-01 8 -", "3 x true 2013-02-01 9 a", "4 4 true - 9.5 b"]
    text = "".join(f"{line}\n" for line in lines) + "5 5 true 2013-02-01 99999999999999999999 c"
    path = write(tmp_path / "e.log", text)
    source = open_source(path, line_format="{n} {x} {ok} {day} {id} {late}", on_malformed="skip")
    assert source.schema.types[:3] == [pa.int64(), pa.float64(), pa.bool_()]
    found = rows_of(source)
    assert [row["n"] for row in found] == [1, 2, 4]
    assert [row["id"] for row in found] == [7, 8, 9.5]
    assert [row["late"] for row in found] == [None, None, "b"]
    assert "column 'x' is double in the first rows" in source.malformed.reasons[0]
    assert "99999999999999999999" in source.malformed.reasons[1]


def test_what_is_no_format_is_refused(tmp_path):
    path = write(tmp_path / "e.log", "a b\n")
    for wrong in ("words", "{a} {a}", r"(?P<a>\S+", r"(?P<a>x)(?P<a>y)"):
        assert failure(lambda: open_source(path, line_format=wrong), UsageError).code == "ACEP-U120"  # noqa: B023
    assert failure(lambda: open_source(path, format="lines"), UsageError).code == "ACEP-U120"
    assert failure(lambda: open_source(path, line_format="{a}", format="csv"), UsageError).code == "ACEP-U121"
    error = failure(lambda: open_source(path, line_format="{a};{b}"))
    assert (error.code, "'a b'" in error.message) == ("ACEP-D038", True)
    assert rows_of(open_source(write(tmp_path / "none.log", ""), line_format="{a} {b}")) == []


def test_every_ready_format_is_one():
    for name in READY:
        assert line_pattern(name) == READY[name]
        assert "time" in pa.compute.extract_regex(pa.nulls(1, pa.string()), pattern=READY[name]).type.names


def test_folders_and_pipes(tmp_path):
    write(tmp_path / "1.log", "1 A\n")
    write(tmp_path / "2.log", "2 B\n")
    write(tmp_path / "notes.md", "nothing")
    query = "PATTERN SEQ(A a, B b) WITHIN 5"
    done = acep("run", query, str(tmp_path), "--line-format", "{ts} {type}", "--format", "jsonl")
    assert json.loads(done.stdout)["b.ts"] == 2
    done = acep("run", query, "-", "--line-format", "{ts} {type}", "--format", "jsonl", stdin=[b"1 A\n2", b" B\n"])
    assert json.loads(done.stdout)["b.ts"] == 2
    found = compile_query(query).match(open_source(tmp_path, line_format="{ts} {type}"))
    assert len(found) == 1


def test_long_logs_are_read_in_blocks(tmp_path, monkeypatch):
    monkeypatch.setattr("acep_approx.events.reading.text.BLOCK_BYTES", 4096)
    path = write(tmp_path / "big.log", JAVA * 1000)
    source = open_source(path, line_format=JAVA_FORMAT, on_malformed="skip")
    sizes = [batch.num_rows for batch in source.batches(["n"])]
    assert (sum(sizes), source.malformed.count) == (3000, 2000)
    assert max(sizes) < 100


def matched(path, template, query, **said):
    written = TimeFormat(**said) if said else None
    source = open_source(path, line_format=template, on_malformed="skip", time_format=written)
    return [match.values for match in compile_query(query).match(source, type="level")], source


@pytest.mark.parametrize(
    ("template", "lines", "said"),
    [
        ("{time}, {level} {what}", "2016-09-28 04:30:30, A      CBS\n2016-09-28 04:30:31, B\tCSI a b\n", {}),
        (
            "{time} {pid} {level} {tag}: {message}",
            "03-17 16:13:38.811  1702 A Window: a\n03-17 16:13:39.820  170 B Window: b: c\n",
            {"text": "%m-%d %H:%M:%S", "year": 2017},
        ),
        (
            "{time} {pid} {level} {what}",
            "081109 203518 148 A dfs.Data: x\n081109 203519   3 B dfs: y\n",
            {"text": "%y%m%d %H%M%S"},
        ),
        ("[{time}] [{level}] {what}", "[Sun Dec 04 04:47:44 2005] [A] x\n[Sun Dec 04 04:47:45 2005] [B] y\n", {}),
        ("{time} {level} {what}", "Sun Dec  4 04:47:44 2005 A x\nSun Dec  4 04:47:45 2005 B y\n", {}),
        ("{time} {level} {what}", "17/06/29 20:10:40 A x\n17/06/30 20:10:41 B y\n", {"text": "%y/%m/%d %H:%M:%S"}),
        ("{time}|{level}|{what}", "20251125-09:09:51:290|A|x\n20251125-09:09:51:990|B|y\n", {}),
        ("{date} {time} {level} {what}", "2024-03-28 09:30:00 A x\n2024-03-28 09:31:00 B y\n", {}),
        ("{time} {level} {what}", "2024-03-28  09:30:00 A x\n2024-03-28 09:31:00 B y\n", {}),
        ("{time} {level} {what}", "Mar  8  09:30:00 A x\nMar  8 09:31:00 B y\n", {"year": 2024}),
        ("{time} {level} {what}", "1117838570 A x\n1117838573 B y\n", {}),
        (
            "{time} {level} {what}",
            "20240331  093000 A x\n20240331  093001 B y\n",
            {"text": "%Y%m%d %H%M%S"},
        ),
    ],
)
def test_a_time_of_a_template_is_a_time_and_a_blank_any_number(tmp_path, template, lines, said):
    directives = "#Software: Microsoft A\n#Version: 1.0 A x\njava.lang.Error: A late\n"
    path = write(tmp_path / "a.log", directives + lines)
    window = "5" if lines.startswith("1117") else "2 d"
    found, source = matched(path, template, f"PATTERN SEQ(A a, B b) WITHIN {window}", **said)
    assert found == [{"a": 0, "b": 1}]
    assert source.malformed.count == len(directives.splitlines())
