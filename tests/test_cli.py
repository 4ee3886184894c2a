"""The command line: what goes in, what comes out on which stream, and with which exit code."""

from __future__ import annotations

import csv
import gzip
import io
import json
import re
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.main import get_command

from acep_approx import compile_query
from acep_approx.cli.main import app
from acep_approx.cli.options.output import SHOWN
from tests.command_line import NAMES, ROWS, acep, csv_text

pytestmark = pytest.mark.usefixtures("folder")

QUERY = "PATTERN SEQ(Packed p, Loaded l, Delivered d) WHERE [key] WITHIN 12 h ERRORS 1 WEIGHTS (p = 2, d = 2)"
AB = "PATTERN SEQ(A a, B b) WITHIN 20"
FOUND = [
    ("box 1", 0, "2024-05-01T08:00:00Z", "2024-05-01T09:30:00Z", [], "2024-05-01T08:06:00Z"),
    ("box 1", 1, "2024-05-01T08:00:00Z", "2024-05-01T09:30:00Z", ["l"], None),
    ("box 2", 1, "2024-05-01T08:05:00.5Z", "2024-05-01T10:00:00Z", ["l"], None),
]
COLUMNS = ("key", "errors", "start", "end", "missing", "p.ts", "l.ts", "d.ts")
MATCHES = [dict(zip(COLUMNS, (*row[:5], row[2], row[5], row[3]), strict=True)) for row in FOUND]


def json_text(rows=ROWS) -> str:
    """Rows as JSON lines."""
    return "".join(json.dumps(dict(zip(NAMES, row, strict=True))) + "\n" for row in rows)


def lines(text: str) -> list[dict]:
    """What JSON lines say."""
    return [json.loads(line) for line in text.splitlines()]


# --- queries and inputs ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["{}", "@{}"])
@pytest.mark.parametrize("name", ["lost.acep", "lost"])
def test_a_query_can_stand_in_a_file(how, name):
    Path(name).write_text("\ufeff" + QUERY + "  -- a comment\n", encoding="utf-8")
    assert lines(acep("run", how.format(name), "events.csv").stdout) == MATCHES


@pytest.mark.parametrize("name", ["nowhere.acep", "@nowhere", "@", "@."])
def test_a_query_file_that_cannot_be_read(name):
    result = acep("run", name, "events.csv", code=2)
    assert result.stderr.startswith("error ACEP-U010")
    assert not result.stdout


def test_a_query_file_that_is_no_text():
    Path("lost.acep").write_bytes(b"\xff\xfe\x00")
    assert "it is not UTF-8 text" in acep("check", "lost.acep", code=2).stderr


def write_parquet(path: str) -> None:
    times = pa.array([row[0] for row in ROWS]).cast(pa.timestamp("ms", tz="UTC"))
    rest = {name: [row[i] for row in ROWS] for i, name in enumerate(NAMES) if i}
    pq.write_table(pa.table({"ts": times, **rest}), path)


INPUTS = {
    "events.csv": lambda path: Path(path).write_text(csv_text(), encoding="utf-8"),
    "events.jsonl": lambda path: Path(path).write_text(json_text(), encoding="utf-8"),
    "events.csv.gz": lambda path: Path(path).write_bytes(gzip.compress(csv_text().encode())),
    "events.jsonl.gz": lambda path: Path(path).write_bytes(gzip.compress(json_text().encode())),
    "events.parquet": write_parquet,
}


@pytest.mark.parametrize("name", INPUTS)
def test_every_format_of_input(name):
    INPUTS[name](name)
    assert lines(acep("run", QUERY, name).stdout) == MATCHES


@pytest.mark.parametrize("name", INPUTS)
def test_standard_input_tells_its_format(name):
    INPUTS[name](name)
    assert lines(acep("run", QUERY, "-", stdin=Path(name).read_bytes()).stdout) == MATCHES


def test_the_format_of_input_can_be_said():
    Path("words.log").write_text("nothing\nto read\n", encoding="utf-8")
    assert "--input-format" in acep("run", QUERY, "words.log", code=4).stderr
    Path("events.log").write_text(json_text(), encoding="utf-8")
    assert lines(acep("run", QUERY, "events.log").stdout) == MATCHES
    assert lines(acep("run", QUERY, "events.log", "--input-format", "jsonl").stdout) == MATCHES
    result = acep("run", QUERY, "-", "--input-format", "csv", "--format", "csv", stdin=csv_text().encode())
    assert result.stdout.startswith("key,errors,")


@pytest.mark.parametrize("inputs", [["day"], ["day/1.csv", "day/2.csv"]], ids=["folder", "files"])
def test_several_files_are_one_stream(inputs):
    Path("day").mkdir()
    Path("day/1.csv").write_text(csv_text(ROWS[:2]), encoding="utf-8")
    Path("day/2.csv").write_text(csv_text(ROWS[2:]), encoding="utf-8")
    assert lines(acep("run", QUERY, *inputs).stdout) == MATCHES


def test_columns_can_be_named():
    rows = [(1, "x", "A"), (2, "y", "B"), (3, "x", "B")]
    Path("odd.csv").write_text(csv_text(rows, ("when", "who", "what")), encoding="utf-8")
    names = ["--time", "when", "--key", "who", "--type", "what"]
    query = "PATTERN SEQ(A a, B b) WHERE [key] WITHIN 5 s"
    assert "--unit" in acep("run", query, "odd.csv", *names, code=3).stderr
    (match,) = lines(acep("run", query, "odd.csv", *names, "--unit", "s").stdout)
    assert (match["a.when"], match["b.when"]) == ("1970-01-01T00:00:01Z", "1970-01-01T00:00:03Z")
    assert match["end"] == "1970-01-01T00:00:03Z"
    assert "ACEP-D001" in acep("run", query, "odd.csv", "--unit", "s", code=4).stderr


def test_errors_and_within_replace_the_query_s():
    assert [m["errors"] for m in lines(acep("run", QUERY, "events.csv", "--errors", "0").stdout)] == [0]
    assert [m["errors"] for m in lines(acep("run", QUERY, "events.csv", "-k", "1").stdout)] == [0, 1, 1]
    assert [m["key"] for m in lines(acep("run", QUERY, "events.csv", "--within", "100 min").stdout)] == ["box 1"] * 2
    assert "ACEP-Q007" in acep("run", QUERY, "events.csv", "--within", "2 parsec", code=3).stderr
    assert "ACEP-Q040" in acep("run", QUERY, "events.csv", "--errors", "5", code=3).stderr


def test_input_out_of_order_is_refused_or_sorted():
    Path("mixed.csv").write_text(csv_text(ROWS[::-1]), encoding="utf-8")
    result = acep("run", QUERY, "mixed.csv", code=4)
    assert "ACEP-D007" in result.stderr
    assert "--sort" in result.stderr
    assert lines(acep("run", QUERY, "mixed.csv", "--sort").stdout) == MATCHES


def test_an_empty_file_has_no_matches():
    Path("empty.jsonl").touch()
    for output in ("matches", "points", "bundles"):
        assert acep("run", QUERY, "empty.jsonl", "--output", output).stdout == ""
        assert acep("run", QUERY, "empty.jsonl", "--output", output, "--format", "table").stdout == f"no {output}\n"
        acep("run", QUERY, "empty.jsonl", "--output", output, "-o", "none.parquet")
        assert pq.read_table("none.parquet").num_rows == 0
    counts = lines(acep("run", QUERY, "empty.jsonl", "--output", "count").stdout)
    assert counts == [{"errors": 0, "matches": 0}, {"errors": 1, "matches": 0}]


# --- malformed rows -------------------------------------------------------------------------------------------


@pytest.fixture
def torn(folder) -> str:
    """A file with a row that is too long and a row of the wrong type."""
    text = csv_text([*ROWS[:3], ("2024-05-01T08:07:00Z", "box 1", "Loaded", 1, "?"), ("soon", "box 1", "Loaded", 1)])
    rest = "".join(csv_text(ROWS[3:]).splitlines(keepends=True)[1:])
    Path("torn.csv").write_text(text + rest, encoding="utf-8")
    return "torn.csv"


def test_malformed_rows_are_refused(torn):
    result = acep("run", QUERY, torn, code=4)
    assert "ACEP-D020" in result.stderr
    assert "torn.csv, line 5" in result.stderr
    assert "--on-malformed skip" in result.stderr
    assert not result.stdout
    acep("run", QUERY, torn, "--on-malformed", "refuse", code=4)
    acep("run", QUERY, torn, "--on-malformed", "ignore", code=2)


def test_a_failed_run_leaves_no_file(torn):
    Path("old.csv").write_text("old", encoding="utf-8")
    acep("run", QUERY, torn, "-o", "old.csv", code=4)
    assert Path("old.csv").read_text(encoding="utf-8") == "old"
    assert not list(Path().glob("*.part"))


def test_malformed_rows_can_be_skipped_and_kept(torn):
    Path("torn.csv").write_text(Path("torn.csv").read_text(encoding="utf-8").replace("soon,", ","), encoding="utf-8")
    result = acep("run", QUERY, torn, "--on-malformed", "skip", "--rejects", "bad.jsonl")
    assert "2 rows left out that could not be read; torn.csv, line 5" in result.stderr
    *_, bad = lines(Path("bad.jsonl").read_text(encoding="utf-8"))
    assert (bad["line"], bad["reason"]) == (6, "the event has no time (null or NaN)")
    Path("torn.csv").write_text(csv_text([*ROWS[:3], ("x",), *ROWS[3:]]), encoding="utf-8")
    result = acep("run", QUERY, torn, "--on-malformed", "skip", "--rejects", "bad.jsonl")
    assert lines(result.stdout) == MATCHES
    assert "1 row left out that could not be read; torn.csv, line 5" in result.stderr
    (bad,) = lines(Path("bad.jsonl").read_text(encoding="utf-8"))
    assert (bad["line"], bad["text"]) == (5, "x")


def test_rejects_need_skip_and_a_file_of_their_own(torn):
    result = acep("run", QUERY, torn, "--rejects", "bad.jsonl", code=2)
    assert "ACEP-U106" in result.stderr
    assert "--on-malformed skip" in result.stderr
    skip = ["--on-malformed", "skip"]
    assert "ACEP-U013" in acep("run", QUERY, torn, *skip, "--rejects", torn, code=2).stderr
    assert "ACEP-U017" in acep("run", QUERY, torn, *skip, "--rejects", "x.csv", "-o", "x.csv", code=2).stderr


# --- results --------------------------------------------------------------------------------------------------

EXPECTED = {
    "matches": MATCHES,
    "points": [
        {"key": "box 1", "errors": 0, "start": FOUND[0][2], "end": FOUND[0][3], "row": 3, "missing": []},
        {"key": "box 2", "errors": 1, "start": FOUND[2][2], "end": FOUND[2][3], "row": 4, "missing": ["l"]},
    ],
    "bundles": [
        {"key": "box 1", "first": FOUND[0][3], "last": FOUND[0][3], "points": 1, "errors": 0},
        {"key": "box 2", "first": FOUND[2][3], "last": FOUND[2][3], "points": 1, "errors": 1},
    ],
    "count": [{"errors": 0, "matches": 1}, {"errors": 1, "matches": 2}],
}


def as_csv(row: dict) -> dict:
    """What a row becomes in CSV."""
    texts = {name: ";".join(value) if isinstance(value, list) else value for name, value in row.items()}
    return {name: "" if value is None else str(value) for name, value in texts.items()}


def as_table(row: dict) -> list[str]:
    """What a row becomes on a terminal."""
    gone = row.get("missing", ())
    row = {name: ", ".join(value) if isinstance(value, list) else value for name, value in row.items()}
    empty = {name: "(missing)" if name.removesuffix(".ts") in gone else "-" for name in row}
    return [empty[name] if value is None else str(value) for name, value in row.items()]


@pytest.mark.parametrize("output", EXPECTED)
@pytest.mark.parametrize("target", ["stdout", "file"])
def test_jsonl(output, target):
    arguments = ["-o", "out.jsonl"] if target == "file" else ["--format", "jsonl"]
    text = acep("run", QUERY, "events.csv", "--output", output, *arguments).stdout
    if target == "file":
        assert not text
        text = Path("out.jsonl").read_text(encoding="utf-8")
    assert lines(text) == EXPECTED[output]


@pytest.mark.parametrize("output", EXPECTED)
@pytest.mark.parametrize("target", ["stdout", "file"])
def test_csv(output, target):
    arguments = ["-o", "out.csv"] if target == "file" else ["--format", "csv"]
    text = acep("run", QUERY, "events.csv", "--output", output, *arguments).stdout
    if target == "file":
        assert not text
        text = Path("out.csv").read_text(encoding="utf-8")
    assert list(csv.DictReader(io.StringIO(text))) == [as_csv(row) for row in EXPECTED[output]]


@pytest.mark.parametrize("output", EXPECTED)
def test_parquet(output):
    assert not acep("run", QUERY, "events.csv", "--output", output, "-o", "out.parquet").stdout
    matches = compile_query(QUERY).match("events.csv")
    tables = {"matches": matches.table, "points": matches.points, "bundles": matches.bundles}
    counts = pa.table({name: [row[name] for row in EXPECTED["count"]] for name in ("errors", "matches")})
    expected = tables[output]() if output in tables else counts
    found = pq.read_table("out.parquet")
    assert found.column_names == expected.column_names
    assert found.to_pylist() == expected.to_pylist()
    assert not list(Path().glob("*.part"))


@pytest.mark.parametrize("output", EXPECTED)
def test_table(output):
    text = acep("run", QUERY, "events.csv", "--output", output, "--format", "table").stdout
    cells = [[cell.strip() for cell in re.split("[│┃]", line)[1:-1]] for line in text.splitlines() if line[0] in "│┃"]
    assert cells[0] == list(EXPECTED[output][0])
    assert cells[1:] == [as_table(row) for row in EXPECTED[output]]


def test_texts_and_numbers_come_out_as_they_are():
    events = [{"ts": 0, "type": "A", "s": 'a "b", ;\n[red]ü', "x": 1.5}, {"ts": 1, "type": "B", "s": "", "x": None}]
    Path("e.jsonl").write_text("".join(json.dumps(event) + "\n" for event in events), encoding="utf-8")
    query = f"{AB} RETURN a.s AS s, b.s AS t, a.x AS x, b.x AS y"
    (match,) = lines(acep("run", query, "e.jsonl").stdout)
    assert (match["s"], match["t"], match["x"], match["y"]) == (events[0]["s"], "", 1.5, None)
    (row,) = csv.DictReader(io.StringIO(acep("run", query, "e.jsonl", "--format", "csv").stdout, newline=""))
    assert (row["s"], row["t"], row["x"], row["y"]) == (events[0]["s"], "", "1.5", "")
    assert "[red]ü" in acep("run", query, "e.jsonl", "--format", "table").stdout


def test_what_repeats_is_a_list():
    Path("e.csv").write_text(csv_text([(i, "A") for i in range(8)] + [(8, "B")], ("ts", "type")), encoding="utf-8")
    query = "PATTERN SEQ(A{7,8} a, B b) WITHIN 20"
    found = [m["a.ts"] for m in lines(acep("run", query, "e.csv").stdout)]
    assert list(range(8)) in found
    assert len(found) == 9
    assert "0;1;2;3;4;5;6;7" in acep("run", query, "e.csv", "--format", "csv").stdout
    assert "0, 1, 2, 3, 4, ... (8)" in acep("run", query, "e.csv", "--format", "table").stdout
    (match,) = lines(acep("run", "A{8}B WITHIN 20", "e.csv").stdout)
    assert match["events"] == list(range(9))


def test_limit():
    result = acep("run", QUERY, "events.csv", "--limit", "2")
    assert lines(result.stdout) == MATCHES[:2]
    assert "stopped after 2 matches, there are more" in result.stderr
    assert "stopped" not in acep("run", QUERY, "events.csv", "--limit", "3").stderr
    assert acep("run", QUERY, "events.csv", "--limit", "0").stdout == ""
    assert "ACEP-U015" in acep("run", QUERY, "events.csv", "--limit", "2", "--output", "count", code=2).stderr


def test_a_table_shows_few_rows():
    rows = [(i, "AB"[i % 2]) for i in range(200)]
    Path("e.csv").write_text(csv_text(rows, ("ts", "type")), encoding="utf-8")
    result = acep("run", AB, "e.csv", "--format", "table", "--output", "points")
    assert sum(line.startswith("│") for line in result.stdout.splitlines()) == SHOWN
    assert "stopped after 20 points" in result.stderr
    longer = acep("run", AB, "e.csv", "--format", "table", "--output", "points", "--limit", "1000").stdout
    assert sum(line.startswith("│") for line in longer.splitlines()) == 100


def test_the_summary_says_what_was_found():
    result = acep("run", QUERY, "events.csv")
    assert re.fullmatch(
        r"5 events read, 5 relevant to the query; \d+\.\d\d s\n3 matches: 1 with 0 errors, 2 with 1 error\n",
        result.stderr,
    )
    assert acep("run", QUERY, "events.csv", "--quiet").stderr == ""


LIGHTER = "PATTERN SEQ(Packed p, Delivered d) WHERE d.kg <= p.kg WITHIN 12 h"


def test_the_engine_can_be_chosen():
    assert lines(acep("run", QUERY, "events.csv", "--engine", "cells").stdout) == MATCHES
    by_runs = acep("run", QUERY, "events.csv", "--engine", "runs")
    assert lines(by_runs.stdout) == MATCHES
    assert "met" in by_runs.stderr
    refused = acep("run", LIGHTER, "events.csv", "--engine", "cells", code=3)
    assert "ACEP-Q900" in refused.stderr
    assert "--engine" in acep("run", LIGHTER, "events.csv", "--engine", "fast", code=2).stderr


@pytest.mark.parametrize("merge", ["equal,pareto,chain", "equal", "none"])
def test_merging_changes_the_work_alone(merge):
    for output in ("matches", "points", "count"):
        result = acep("run", LIGHTER, "events.csv", "--output", output, "--merge", merge)
        default = acep("run", LIGHTER, "events.csv", "--output", output)
        assert sorted(result.stdout.splitlines()) == sorted(default.stdout.splitlines())
    (told,) = re.findall(r"runs met, 0\.8 per event; at most 2 at once; 5 made, (\d+)% merged$", result.stderr, re.M)
    assert (int(told) == 0) == (merge == "none")
    assert "ACEP-U006" in acep("run", LIGHTER, "events.csv", "--merge", "equal,some", "-o", "x.csv", code=2).stderr
    assert not Path("x.csv").exists()


def test_compressed_output_is_two_files():
    result = acep("run", LIGHTER, "events.csv", "--output", "compressed", "-o", "found")
    assert not result.stdout
    assert "2 hits: 2 with 0 errors" in result.stderr
    compressed = compile_query(LIGHTER).match("events.csv").compressed()
    assert pq.read_table("found/hits.parquet").to_pylist() == compressed.hits.to_pylist()
    assert pq.read_table("found/links.parquet").to_pylist() == compressed.links.to_pylist()
    acep("run", QUERY, "events.csv", "--output", "compressed", "-o", "found", "-q")
    assert pq.read_table("found/hits.parquet").num_rows == 3
    assert not list(Path("found").glob("*.part"))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "ACEP-U019"),
        (["-o", "x", "--format", "csv"], "ACEP-U019"),
        (["-o", "x", "--limit", "1"], "ACEP-U015"),
        (["-o", "events.csv"], "ACEP-U013"),
        (["-o", "nowhere/x"], "ACEP-U012"),
    ],
)
def test_compressed_output_needs_a_folder(arguments, said):
    assert said in acep("run", LIGHTER, "events.csv", "--output", "compressed", *arguments, code=2).stderr
    refused = acep("run", LIGHTER + " NON OVERLAP", "events.csv", "--output", "compressed", "-o", "x", code=2)
    assert "ACEP-U007" in refused.stderr
    assert [path.name for path in Path().iterdir()] == ["events.csv"]


def test_events_without_key_are_told():
    Path("e.csv").write_text(csv_text([*ROWS, ("2024-05-01T11:00:00Z", "", "Packed", 1)]), encoding="utf-8")
    assert "1 event left out: no value for [key]" in acep("run", QUERY, "e.csv").stderr


# --- wrong usage ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--format", "parquet"], "ACEP-U011"),
        (["-o", "nowhere/out.csv"], "ACEP-U012"),
        (["-o", "."], "ACEP-U012"),
        (["-o", "events.csv"], "ACEP-U013"),
        (["-o", "out.csv", "--format", "table"], "ACEP-U014"),
        (["-o", "out.csv.gz"], "ACEP-U018"),
        (["--errors", "-1"], "--errors"),
        (["--errors", "many"], "--errors"),
        (["--limit", "-1"], "--limit"),
        (["--output", "all"], "--output"),
        (["--format", "xml"], "--format"),
        (["--unit", "h"], "--unit"),
        (["--unit", "s"], "ACEP-U101"),
        (["--colour"], "--colour"),
        (["-"], "ACEP-U108"),
    ],
)
def test_wrong_usage(arguments, said):
    result = acep("run", QUERY, "events.csv", *arguments, code=2)
    assert said in result.stderr
    assert not result.stdout
    assert [path.name for path in Path().iterdir()] == ["events.csv"]


@pytest.mark.parametrize("arguments", [[], ["run"], ["run", QUERY], ["check"], ["nosuch"], ["explain", "a", "b"]])
def test_wrong_commands(arguments):
    acep(*arguments, code=2)


@pytest.mark.parametrize("command", [["run", "events.csv"], ["check"], ["explain"]], ids=lambda c: c[0])
@pytest.mark.parametrize(
    ("query", "message", "caret"),
    [
        ("PATTERN SEQ(A a, B b) WHERE c.x > 1 WITHIN 5", "error ACEP-Q030: no variable 'c'", "    " + 26 * " " + "^^^"),
        (
            "PATTERN SEQ(A+ a[], B+ b[]) WHERE skip_till_next_match { b[i].x > a[i].x + a[i-1].x } WITHIN 5",
            "error ACEP-Q900",
            "    " + 55 * " " + 26 * "^",
        ),
        ("ab", "error ACEP-Q005: WITHIN is missing", "    ^"),
    ],
    ids=["wrong", "not runnable", "window"],
)
def test_a_wrong_query_is_shown_with_its_place(command, query, message, caret):
    name, *inputs = command
    result = acep(name, query, *inputs, code=3)
    assert result.stderr.startswith(message)
    _, shown, below, *_ = result.stderr.splitlines()
    assert shown == f"  {query}"
    assert below.startswith(caret)
    assert not result.stdout


def test_wrong_data():
    assert "did you mean 'events.csv'" in acep("run", QUERY, "event.csv", code=4).stderr
    assert "ACEP-D002" in acep("run", QUERY, "events.csv", "--time", "when", code=4).stderr
    assert "ACEP-Q060" in acep("run", AB.replace("WITHIN", "WHERE a.nope > 1 WITHIN"), "events.csv", code=3).stderr


# --- check and explain ----------------------------------------------------------------------------------------


def test_check():
    result = acep("check", QUERY)
    assert result.stdout.startswith("the query is right and can be run\n")
    assert "4 states, 4 arcs, 3 letters, k = 1" in result.stdout
    assert "reads" not in result.stdout
    assert not result.stderr


@pytest.mark.parametrize("name", INPUTS)
def test_check_against_events(name):
    INPUTS[name](name)
    shown = acep("check", QUERY, "--input", name).stdout.splitlines()[-1]
    times = r"(timestamp\[.s, tz=UTC\]|string)"
    assert re.fullmatch(rf"reads +ts \(time, {times}\), key \(key, string\), type \(type, string\)", shown)
    assert acep("check", QUERY, "--input", "-", stdin=Path(name).read_bytes()).stdout.splitlines()[-1] == shown


def test_check_finds_what_does_not_fit_the_events():
    query = AB.replace("WITHIN 20", "WHERE a.typ > 1 WITHIN 20 s")
    result = acep("check", query, "--input", "events.csv", code=3)
    assert "did you mean `type`?" in result.stderr
    assert not result.stdout
    assert "ACEP-Q061" in acep("check", query.replace("typ ", "key "), "--input", "events.csv", code=3).stderr
    assert "ACEP-D002" in acep("check", QUERY, "--input", "events.csv", "--key", "box", code=4).stderr
    assert "kg (key, double)" in acep("check", QUERY, "--input", "events.csv", "--key", "kg").stdout
    Path("events.log").write_text(json_text() + "torn\n", encoding="utf-8")
    assert "reads" in acep("check", QUERY, "--input", "events.log", "--input-format", "jsonl").stdout


@pytest.mark.parametrize("form", ["text", "mermaid", "dot", "json"])
def test_explain(form):
    result = acep("explain", QUERY, "--format", form)
    assert result.stdout == compile_query(QUERY).explain(form).rstrip("\n") + "\n"
    assert not result.stderr


def test_explain_in_no_such_format():
    acep("explain", QUERY, "--format", "png", code=2)


# --- help ------------------------------------------------------------------------------------------------------


def test_version_and_help():
    assert re.fullmatch(r"acep \d+\.\d+\.\d+\n", acep("--version").stdout)
    for command in ("run", "check", "explain", "demo"):
        assert command in acep("--help").stdout
        assert "Usage: acep" in acep(command, "-h").stdout


PANELS = [
    "Question", "With add", "With list", "Matching", "Keys", "Output", "Input", "Live input", "Many queries",
    "Active rules", "Late and revised events", "Budget", "Learning", "Reports", "Spark", "Streams on Spark", "General",
]  # fmt: skip


@pytest.mark.parametrize("name", get_command(app).commands)
def test_options_are_in_panels_that_come_in_the_same_order_everywhere(name):
    shown = re.findall(r"^╭─ (.+?) ─", acep(name, "--help").stdout, re.MULTILINE)
    assert [panel for panel in shown if panel != "Arguments"] == [panel for panel in PANELS if panel in shown]


def test_commands_are_listed_by_what_they_are_for():
    shown = acep("--help").stdout
    panels = re.findall(r"^╭─ (.+?) ─", shown, re.MULTILINE)
    assert panels == ["General", "First look", "Run", "Ask why", "Learn and tune", "Clusters and images"]
    listed = re.findall(r"^│ (\w+)  +\w", shown, re.MULTILINE)
    assert set(listed) == set(get_command(app).commands)


def test_help_shows_square_brackets():
    assert "[attribute]" in acep("why", "--help").stdout


def test_counts_beyond_64_bits_are_written_whole():
    """Ten points of at least 2**63 - 1 matches each: no format is too narrow for them."""
    rows = [{"ts": i, "type": "a" if i < 66 else "b"} for i in range(76)]
    Path("many.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    counted = ("run", "a+b WITHIN 1000", "many.jsonl", "--output", "count")
    found = acep(*counted)
    assert lines(found.stdout) == [{"errors": 0, "matches": 10 * (2**63 - 1), "at_least": True}]
    assert "warning there are more matches than can be counted" in found.stderr
    assert f"0,{10 * (2**63 - 1)},true" in acep(*counted, "--format", "csv").stdout
    assert "more than 9.2e19" in acep(*counted, "--format", "table").stdout
    acep(*counted, "-o", "count.parquet")
    assert pq.read_table("count.parquet").to_pylist() == [{"errors": 0, "matches": 10 * (2**63 - 1), "at_least": True}]
    acep(*counted, "--page", "page.html")
    assert "More than 9.2e19 matches" in Path("page.html").read_text(encoding="utf-8")
    Path("queries").mkdir()
    Path("queries/many.acep").write_text("a+b WITHIN 1000", encoding="utf-8")
    found = acep("run", "--queries", "queries", "many.jsonl", "--output", "count")
    assert lines(found.stdout) == [{"query": "many", "errors": 0, "matches": 10 * (2**63 - 1), "at_least": True}]
    assert "many more than 9.2e19" in found.stderr
