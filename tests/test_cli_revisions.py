"""``acep run`` over events that come late, are updated or taken back: it ends where a run over the sorted file ends."""

from __future__ import annotations

import csv
import io
import json
import re
from collections import Counter
from itertools import pairwise
from pathlib import Path
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from acep_approx import compile_query
from acep_approx.errors import UsageError
from tests.cases import cases
from tests.command_line import acep, csv_text
from tests.live_run import Run

pytestmark = pytest.mark.usefixtures("folder")

NAMES = ("ts", "id", "key", "type", "x", "op")
PLAIN = NAMES[:-1]
CELLS = "PATTERN SEQ(A a, B b, C c) WHERE [key] WITHIN 12 ERRORS 1"
RUNS = "PATTERN SEQ(A a, ~(C c), B+ b[]) WHERE [key] AND b[i].x >= a.x AND c.x > 1 WITHIN 9"
RETURNING = "PATTERN SEQ(A a, B b) WHERE b.x > a.x WITHIN 5 RETURN a.id AS first, b.x AS x"
QUERIES = {"cells": CELLS, "runs": RUNS, "return": RETURNING}
ASKED = [("cells", "matches"), ("cells", "points"), ("runs", "matches"), ("runs", "points"), ("return", "matches")]
FORMATS = ("jsonl", "csv", "parquet", "table")
EARLY = ("--watermark", "1000", "--id", "id", "--emit", "early")


# --- streams --------------------------------------------------------------------------------------------------


class Story:
    """A stream that comes in disorder, with updates and retractions, and what remains of it.

    ``rows`` as they come, each with its code; ``live``: the events that remain, in order of time and id.
    """

    def __init__(self, seed: int, events: int = 80) -> None:
        random = Random(seed)
        self.rows: list[tuple] = []
        live: dict[int, tuple] = {}
        for number in range(events):
            ts = number + random.randint(-6, 6)
            live[number] = self.say("+I", (ts, number, random.choice("kl"), random.choice("ABC"), random.randint(0, 3)))
            if random.random() < 0.3:
                gone = random.choice(sorted(live))
                old = live.pop(gone)
                self.say("-D", old)
                if random.random() < 0.5:
                    live[gone] = self.say("+I", (*old[:3], random.choice("ABC"), random.randint(0, 3)))
        self.live = sorted(live.values(), key=lambda event: event[:2])

    def say(self, op: str, event: tuple) -> tuple:
        """One row."""
        self.rows.append((*event, op))
        return event

    def write(self, parts: int = 6) -> None:
        """As ``days``, a folder of files, and as ``sorted.csv``, what remains of it in order and without codes."""
        Path("days").mkdir()
        for number in range(parts):
            rows = self.rows[number * len(self.rows) // parts : (number + 1) * len(self.rows) // parts]
            Path(f"days/{number}.csv").write_text(csv_text(rows, NAMES), encoding="utf-8")
        Path("sorted.csv").write_text(csv_text(self.live, PLAIN), encoding="utf-8")


def read(words: list[str], form: str) -> list[dict]:
    """What a run puts out in some format, as rows."""
    if form == "parquet":
        assert not acep("run", *words, "-o", "out.parquet").stdout
        return pq.read_table("out.parquet").to_pylist()
    text = acep("run", *words, "--format", form, *(["--limit", "100000"] if form == "table" else [])).stdout
    if form == "jsonl":
        return [json.loads(line) for line in text.splitlines()]
    if form == "csv":
        return list(csv.DictReader(io.StringIO(text)))
    cells = [[cell.strip() for cell in re.split("[│┃]", line)[1:-1]] for line in text.splitlines() if line[0] in "│┃"]
    return [dict(zip(cells[0], row, strict=True)) for row in cells[1:]]


def net(rows: list[dict]) -> Counter:
    """What remains when all rows have been followed; nothing is taken back that was not put out."""
    held: Counter = Counter()
    ids: dict[str, list[str]] = {}
    for row in rows:
        shown = json.dumps({name: value for name, value in row.items() if name not in ("op", "match_id")}, default=str)
        held[shown] += {"+I": 1, "-D": -1}[row["op"]]
        assert held[shown] >= 0
        assert re.fullmatch("[0-9a-f]{32}", row["match_id"])
        if row["op"] == "+I":
            ids.setdefault(row["match_id"], []).append(shown)
        else:
            ids[row["match_id"]].remove(shown)
    return +held


def plain(rows: list[dict]) -> Counter:
    """Results of a plain run, as ``net`` has them."""
    return Counter(json.dumps(row, default=str) for row in rows)


def bound(query: str, output: str = "matches") -> list[str]:
    """The options with which each run shows the same columns."""
    return ["--output", output, *([] if "RETURN" in query else ["--bind", "id"])]


# --- it ends where the sorted file ends -------------------------------------------------------------------------


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize(("name", "output"), ASKED)
def test_what_a_changelog_comes_to_is_found_in_the_sorted_file(name, output, form):
    query = QUERIES[name]
    Story(1).write()
    changes = read([query, "days", *EARLY, *bound(query, output)], form)
    assert any(row["op"] == "-D" for row in changes)
    assert net(changes) == plain(read([query, "sorted.csv", *bound(query, output)], form))


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize(("name", "output"), ASKED)
def test_final_results_are_those_of_the_sorted_file(name, output, form):
    query = QUERIES[name]
    Story(2).write()
    found = read([query, "days", "--watermark", "1000", "--id", "id", *bound(query, output)], form)
    assert found == read([query, "sorted.csv", *bound(query, output)], form)
    assert found


@pytest.mark.parametrize("seed", range(3, 3 + cases(5, 3)))
@pytest.mark.parametrize("emit", ["early", "48", "final"])
def test_any_emit_and_any_pieces_come_to_the_same(seed, emit):
    """A delay that lets everything in; on standard input a line may be a batch of its own."""
    random, story = Random(seed), Story(seed, events=50)
    story.write()
    options = ["--watermark", "50", "--id", "id", "--emit", emit, "--changelog", *bound(CELLS)]
    expected = plain(read([CELLS, "sorted.csv", *bound(CELLS)], "jsonl"))
    assert net(read([CELLS, "days", *options], "jsonl")) == expected
    lines = csv_text(story.rows, NAMES).encode().splitlines(keepends=True)
    ends = [0, *sorted({random.randrange(1, len(lines)) for _ in lines}), len(lines)]
    pieces = [b"".join(lines[start:end]) for start, end in pairwise(ends)]
    piped = acep("run", CELLS, "-", *options, stdin=pieces).stdout
    changes = [json.loads(line) for line in piped.splitlines()]
    assert net(changes) == expected
    assert any(row["op"] == "-D" for row in changes) == (emit != "final")


@pytest.mark.parametrize("emit", ["early", "final", "4"])
def test_counts_are_those_of_the_sorted_file(emit):
    Story(9).write()
    options = ["--watermark", "1000", "--id", "id", "--emit", emit, "--output", "count"]
    assert read([CELLS, "days", *options], "jsonl") == read([CELLS, "sorted.csv", "--output", "count"], "jsonl")
    result = acep("run", CELLS, "days", *options, "--format", "table")
    assert "matches" in result.stdout
    assert "put out" not in result.stderr


def test_parquet_in_and_out():
    story = Story(10)
    story.write()
    pq.write_table(pa.Table.from_pylist([dict(zip(NAMES, row, strict=True)) for row in story.rows]), "in.parquet")
    found = read([CELLS, "in.parquet", "--watermark", "1000", "--id", "id", *bound(CELLS)], "jsonl")
    assert found == read([CELLS, "sorted.csv", *bound(CELLS)], "jsonl")


def test_without_ids_events_are_named_by_their_content_and_shown_by_their_rows():
    rows = [(1, "A", "+I"), (3, "B", "+I"), (2, "A", "+I"), (1, "A", "-D")]
    Path("e.csv").write_text(csv_text(rows, ("ts", "type", "op")), encoding="utf-8")
    (match,) = read(["PATTERN SEQ(A a, B b) WITHIN 9", "e.csv", "--watermark", "5", "--bind", "row"], "jsonl")
    assert (match["a"], match["b"]) == (2, 1)


def test_columns_are_found_under_any_name():
    rows = [(1, "A", "insert"), (3, "B", "insert"), (3, "B", "delete"), (2, "B", "insert")]
    Path("e.csv").write_text(csv_text(rows, ("when", "what", "does")), encoding="utf-8")
    words = ["PATTERN SEQ(A a, B b) WITHIN 9 s", "e.csv", "--time", "when", "--type", "what", "--unit", "s"]
    (match,) = read([*words, "--op", "does", "--watermark", "5s"], "jsonl")
    assert (match["a.when"], match["b.when"]) == (match["start"], match["end"])
    assert (match["start"], match["end"]) == ("1970-01-01T00:00:01Z", "1970-01-01T00:00:02Z")


def test_a_column_of_data_may_be_called_op():
    rows = [(1, "A", "read"), (3, "B", "write")]
    Path("e.csv").write_text(csv_text(rows, ("ts", "type", "op")), encoding="utf-8")
    words = ["PATTERN SEQ(A a, B b) WITHIN 9", "e.csv", "--watermark", "5"]
    assert "ACEP-D070" in acep("run", *words, code=4).stderr
    assert len(read([*words, "--op", "none"], "jsonl")) == 1


# --- the changelog ------------------------------------------------------------------------------------------------


def test_a_changelog_is_implied_unless_all_is_final():
    Story(11).write()
    words = [CELLS, "days", "--watermark", "1000", "--id", "id"]
    assert "op" not in read(words, "jsonl")[0]
    for more in (["--emit", "early"], ["--emit", "5"], ["--changelog"], ["--changelog", "--emit", "final"]):
        assert list(read([*words, *more], "jsonl")[0])[-2:] == ["op", "match_id"]


def test_a_match_has_one_id_however_it_is_put_out():
    Story(12).write()
    words = [CELLS, "days", "--watermark", "1000", "--id", "id"]
    final = read([*words, "--changelog"], "jsonl")
    assert {row["op"] for row in final} == {"+I"}
    ids = [row["match_id"] for row in final]
    assert len(set(ids)) == len(ids)
    live: set[str] = set()
    for row in read([*words, "--emit", "early"], "jsonl"):
        live ^= {row["match_id"]}
    assert live == set(ids)


def test_a_changelog_of_plain_events_can_be_had_from_python_too():
    query = compile_query("PATTERN SEQ(A a, B b) WITHIN 9")
    matcher = query.matcher(changelog=True)
    matcher.push([{"ts": 1, "type": "A"}, {"ts": 2, "type": "B"}])
    assert matcher.finish().column("op").to_pylist() == ["+I"]
    assert query.matcher(changelog=False, watermark=5).push([{"ts": 1, "type": "A"}]).column_names[-1] == "b"
    with pytest.raises(UsageError, match="ACEP-U055"):
        query.matcher(changelog=False, emit="early")
    with pytest.raises(UsageError, match="ACEP-U053"):
        query.matcher(changelog="yes")


def test_results_come_while_events_do():
    run = Run("PATTERN SEQ(A a, ~(C c), B b) WITHIN 9", "-", "--watermark", "3", "--emit", "early", "--id", "id")
    run.write("ts,id,type\n1,a,A\n")
    run.write("5,b,B\n")
    first = json.loads(run.line())
    assert (first["a.ts"], first["a.id"], first["b.id"], first["op"]) == (1, "a", "b", "+I")
    run.write("3,c,C\n")
    assert json.loads(run.line()) == first | {"op": "-D"}
    assert run.end() == []


def test_final_results_come_when_the_watermark_has_passed_them():
    run = Run("PATTERN SEQ(A a, B b) WITHIN 9", "-", "--watermark", "3")
    run.write("ts,type\n1,A\n5,B\n3,B\n9,C\n")
    assert [json.loads(run.line())["b.ts"] for _ in range(2)] == [3, 5]
    run.write("10,B\n")
    assert [json.loads(line)["b.ts"] for line in run.end()] == [10]


# --- what is left out ---------------------------------------------------------------------------------------------

TORN = [
    (1, "a", "A", "+I"), (20, "b", "B", "+I"), (9, "c", "B", "+I"), (15, "x", "B", "-D"), (21, "b", "C", "+I"),
    (12, "", "", "watermark"), (30, "d", "D", "+I"),
]  # fmt: skip
REASONS = [("late", 2, 9, "c"), ("unknown", 3, 15, "x"), ("duplicate", 4, 21, "b"), ("backwards", 5, 12, None)]


def torn(form: str) -> list[tuple]:
    """Reason, row, time and id of the rows that ``--late`` has."""
    if form == "parquet":
        rows = pq.read_table("late.parquet").to_pylist()
    else:
        text = Path(f"late.{form}").read_text(encoding="utf-8")
        rows = list(csv.DictReader(io.StringIO(text))) if form == "csv" else list(map(json.loads, text.splitlines()))
    assert all(list(row) == ["reason", "row", "ts", "id", "type", "op"] for row in rows)
    return [(row["reason"], int(row["row"]), int(row["ts"]), row["id"] or None) for row in rows]


@pytest.mark.parametrize("form", ["jsonl", "csv", "parquet"])
@pytest.mark.parametrize("more", [[], ["--on-late", "skip"]])
def test_what_is_left_out_is_written_down_and_counted(form, more):
    Path("torn.csv").write_text(csv_text(TORN, ("ts", "id", "type", "op")), encoding="utf-8")
    words = ["run", "PATTERN SEQ(A a, B b) WITHIN 30", "torn.csv", "--watermark", "6", "--id", "id", *more]
    result = acep(*words, "--late", f"late.{form}")
    assert torn(form) == REASONS
    assert json.loads(result.stdout)["b.id"] == "b"
    read_, left_out, *_ = result.stderr.splitlines()
    assert re.fullmatch(r"7 rows read: 3 events inserted; \d+\.\d\d s", read_)
    assert left_out.startswith("4 rows left out: 1 late, 1 unknown (")
    assert left_out.endswith(f"written to late.{form}")
    counted = acep(*words).stderr
    assert "1 backwards" in counted
    assert "to keep such rows: --late FILE" in counted
    assert acep(*words, "-q").stderr == ""


@pytest.mark.parametrize("form", ["jsonl", "csv", "parquet"])
def test_a_file_of_late_events_is_there_where_none_is_late(form):
    Story(13).write()
    acep("run", CELLS, "days", *EARLY, "--late", f"late.{form}")
    if form == "parquet":
        assert pq.read_table("late.parquet").column_names == ["reason", "row", *NAMES]
    else:
        header = "reason,row," + ",".join(NAMES) + "\n"
        assert Path(f"late.{form}").read_text(encoding="utf-8") == (header if form == "csv" else "")
    assert not list(Path().glob("*.part"))


def test_a_column_that_is_called_as_ours_is_kept_apart():
    rows = [(1, "A", 7, "why"), (9, "B", 8, "so"), (2, "B", 9, "late as well")]
    Path("e.csv").write_text(csv_text(rows, ("ts", "type", "row", "reason")), encoding="utf-8")
    acep("run", "PATTERN SEQ(A a, B b) WITHIN 30", "e.csv", "--watermark", "3", "--late", "late.jsonl")
    (late,) = map(json.loads, Path("late.jsonl").read_text(encoding="utf-8").splitlines())
    assert late == {"reason_": "late", "row_": 2, "ts": 2, "type": "B", "row": 9, "reason": "late as well"}


def test_an_event_at_the_watermark_is_not_late():
    Path("e.csv").write_text(csv_text([(1, "A"), (9, "C"), (6, "B"), (5, "B")], ("ts", "type")), encoding="utf-8")
    result = acep("run", "PATTERN SEQ(A a, B b) WITHIN 30", "e.csv", "--watermark", "3")
    assert [json.loads(line)["b.ts"] for line in result.stdout.splitlines()] == [6]
    assert "1 late;" in result.stderr


def test_malformed_rows_are_left_out_as_elsewhere():
    Path("e.csv").write_text("ts,type\n1,A\n5\n3,B\n2,B\n", encoding="utf-8")
    words = ["run", "PATTERN SEQ(A a, B b) WITHIN 9", "e.csv", "--watermark", "5"]
    assert "ACEP-D020" in acep(*words, code=4).stderr
    result = acep(*words, "--on-malformed", "skip", "--rejects", "bad.jsonl")
    assert [json.loads(line)["b.ts"] for line in result.stdout.splitlines()] == [2, 3]
    assert "1 row left out that could not be read" in result.stderr
    assert json.loads(Path("bad.jsonl").read_text(encoding="utf-8"))["line"] == 3


# --- the summary ------------------------------------------------------------------------------------------------


def test_the_summary_says_what_was_put_out_and_taken_back():
    Path("days").mkdir()
    rows = [(1, "a", "A", "+I"), (3, "b", "B", "+I"), (4, "c", "B", "+I")]
    Path("days/1.csv").write_text(csv_text(rows, ("ts", "id", "type", "op")), encoding="utf-8")
    Path("days/2.csv").write_text(csv_text([(3, "b", "B", "-D")], ("ts", "id", "type", "op")), encoding="utf-8")
    result = acep("run", "PATTERN SEQ(A a, B b) WITHIN 9", "days", *EARLY, "-o", "out.csv")
    assert result.stderr.splitlines()[1:] == [
        "2 matches put out, 1 of them taken back; at the end 1 match: 1 with 0 errors"
    ]
    assert "4 rows read: 3 events inserted, 1 retracted;" in result.stderr
    cut = acep("run", "PATTERN SEQ(A a, B b) WITHIN 9", "days", *EARLY, "--limit", "1").stderr
    assert "stopped after 1 match, there are more" in cut


def sourced(rows: list[tuple], *more: str) -> str:
    """The last line on stderr of a run over rows of several sources."""
    Path("e.csv").write_text(csv_text(rows, ("ts", "from", "type", "n")), encoding="utf-8")
    return acep("run", "PATTERN SEQ(A a, B b) WITHIN 9", "e.csv", *more).stderr.splitlines()[-1]


def test_the_summary_says_which_source_holds_the_watermark_back():
    rows = [(1, "p", "A", 1), (3, "q", "A", 1), (9, "p", "B", 2), (4, "q", "B", 2)]
    by_source = ("--source", "from", "--watermark", "1")
    assert sourced(rows, *by_source) == "the watermark came to 3, held back by source 'q'"
    assert sourced(rows, *by_source, "--idle", "2") == "idle, and not waited for: 'q'"
    assert sourced(rows, "--source", "from", "--emit", "early") == (
        "the watermark never moved, held back by source 'p', source 'q'"
    )
    timed = sourced(rows, "--source", "from", "--watermark", "1 s", "--unit", "s", "--within", "9 s")
    assert timed == "the watermark came to 1970-01-01T00:00:03Z, held back by source 'q'"
    many = [(1, f"s{number}", "A", 1) for number in range(8)]
    assert sourced(many, *by_source).endswith("source 's3', source 's4' and 3 more")


def test_the_summary_says_which_number_is_missing():
    rows = [(1, "p", "A", 1), (3, "p", "B", 2), (9, "p", "B", 4)]
    assert sourced(rows, "--sequence", "n") == "the watermark came to 3, held back by number 3, which never came"
    assert sourced(rows, "--sequence", "n", "--source", "from").endswith("by number 3, which never came of source 'p'")
    assert "watermark" not in sourced(rows[:2], "--sequence", "n")


def test_a_type_that_never_occurs_is_told_of():
    Path("e.csv").write_text(csv_text([(2, "Packed"), (1, "Packed")], ("ts", "type")), encoding="utf-8")
    with pytest.warns(UserWarning, match="did you mean 'Packed'"):
        compile_query("PATTERN Pakked p WITHIN 9").match([{"ts": 1, "type": "Packed"}]).to_arrow()
    result = acep("run", "PATTERN SEQ(Packed p, Pakced q) WITHIN 9", "e.csv", "--watermark", "5", "-q")
    assert "no event has the type 'Pakced'" in result.stderr


# --- nothing there --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["", "ts,id,key,type,x,op\n"])
def test_an_empty_input_has_no_results(text):
    name = "empty.csv" if text else "empty.jsonl"
    Path(name).write_text(text, encoding="utf-8")
    for output in ("matches", "points"):
        words = ["run", CELLS, name, *EARLY, "--output", output]
        assert acep(*words, "--format", "jsonl").stdout == ""
        assert acep(*words, "--format", "table").stdout == f"no {output}\n"
        assert "0 rows read; " in acep(*words, "-o", "none.parquet", "--late", "late.csv").stderr
        assert pq.read_table("none.parquet").num_rows == 0
    counted = acep("run", CELLS, name, *EARLY, "--output", "count").stdout
    assert list(map(json.loads, counted.splitlines())) == [{"errors": e, "matches": 0} for e in (0, 1)]


# --- wrong usage and wrong data -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "code", "named"),
    [
        ("--watermark 5parsec", "ACEP-U056", "5parsec"),
        ("--watermark -5", "ACEP-U056", "-5"),
        ("--watermark 5 --emit soon", "ACEP-U056", "soon"),
        ("--emit 5events", "ACEP-U056", "5events"),
        ("--watermark 5 --source key --idle long", "ACEP-U056", "long"),
        ("--watermark 5 --idle 5", "ACEP-U055", "--source"),
        ("--watermark 5 --sort", "ACEP-U055", "--sort does not go with --watermark"),
        ("--emit early --budget 20% --shed x.csv", "ACEP-U055", "--shed does not go with --emit"),
        ("--emit early --budget 20% --expand", "ACEP-U055", "--expand does not go with --emit"),
        ("--op op --history h", "ACEP-U040", "--history"),
        ("--op op --learn", "ACEP-U040", "--learn"),
        ("--changelog --expand", "ACEP-U055", "--expand does not go with --changelog"),
        ("--sequence x --shed s.csv", "ACEP-U055", "--shed does not go with --sequence"),
        ("--watermark 5 --output partial", "ACEP-U055", "--output partial does not go with --watermark"),
        ("--watermark 5 --output bundles", "ACEP-U055", "--output bundles does not go with --watermark"),
        ("--watermark 5 --output compressed -o f", "ACEP-U055", "--output compressed does not go with --watermark"),
        ("--watermark 5 --output count --changelog", "ACEP-U055", "--changelog"),
        ("--watermark 5 --output count --limit 3", "ACEP-U015", "--limit"),
        ("--watermark 5 --on-late refuse", "ACEP-U055", "--on-late refuse does not go with --watermark"),
        ("--watermark 5 --late e.csv", "ACEP-U013", "e.csv"),
        ("--watermark 5 --late x.csv -o x.csv", "ACEP-U017", "x.csv"),
        ("--watermark 5 --late x.csv --on-malformed skip --rejects x.csv", "ACEP-U017", "x.csv"),
        ("--watermark 5 --late x.txt", "ACEP-U018", "x.txt"),
        ("--watermark 5 --late nowhere/x.csv", "ACEP-U114", "nowhere"),
        ("--watermark 5 --format parquet", "ACEP-U011", "-o FILE"),
        ("--watermark 5 --merge some", "ACEP-U006", "some"),
        ("--watermark 5 --bind id --bind id", "ACEP-U051", "id"),
        ("--id id", "ACEP-S071", "--bind"),
        ("--late x.csv", "ACEP-U114", "--on-late skip"),
    ],
)
def test_options_that_make_no_sense(words, code, named):
    Path("e.csv").write_text(csv_text([(1, 1, "k", "A", 0, "+I")], NAMES), encoding="utf-8")
    there = sorted(Path().iterdir())
    result = acep("run", CELLS, "e.csv", *words.split(), code=2)
    assert code in result.stderr
    assert named in result.stderr
    assert not result.stdout
    assert sorted(Path().iterdir()) == there


ROWS = [(1, 1, "k", "A", 0, "+I"), (2, 2, "k", "B", 0, "+I"), (3, 3, "k", "B", 0, "+I")]


@pytest.mark.parametrize(
    ("rows", "words", "code", "named"),
    [
        ([*ROWS, (2, 2, "k", "B", 0, "gone")], "", "ACEP-D070", "row 3: column 'op' says 'gone'"),
        ([*ROWS, (2, 2, "k", "B", 0, "")], "", "ACEP-D070", "row 3"),
        (ROWS, "--op type", "ACEP-D070", "row 0: column 'type' says 'A'"),
        (ROWS, "--op what", "ACEP-D002", "what"),
        (ROWS, "--id what", "ACEP-D002", "what"),
        (ROWS, "--source what", "ACEP-D002", "what"),
        (ROWS, "--sequence key", "ACEP-D074", "key"),
        (ROWS, "--source x --idle 5s", "ACEP-D073", "idle='5s'"),
        (ROWS, "--emit 5s", "ACEP-D073", "emit='5s'"),
        ([*ROWS, (2, 2, "k", "C", 0, "u")], "", "ACEP-D071", "row 3"),
        ([*ROWS, ("", 2, "k", "C", 0, "+I")], "", "ACEP-D004", "e.csv, line 5: the event has no time"),
    ],
)
def test_wrong_events(rows, words, code, named):
    Path("e.csv").write_text(csv_text(rows, NAMES), encoding="utf-8")
    result = acep("run", CELLS, "e.csv", "--watermark", "5", *words.split(), "-o", "out.csv", code=4)
    assert code in result.stderr
    assert named in result.stderr
    assert not Path("out.csv").exists()


@pytest.mark.parametrize("more", ["RETURN a.id AS op", "RETURN a.id AS match_id"])
def test_a_result_may_not_be_called_like_a_column_of_the_changelog(more):
    Path("e.csv").write_text(csv_text(ROWS, NAMES), encoding="utf-8")
    words = ["run", f"PATTERN SEQ(A a, B b) WITHIN 9 {more}", "e.csv", "--watermark", "5"]
    assert len(acep(*words).stdout.splitlines()) == 2
    for changelog in (["--changelog"], ["--emit", "early"]):
        assert "ACEP-D043" in acep(*words, *changelog, code=4).stderr


def test_a_length_with_a_unit_needs_times():
    Path("e.csv").write_text(csv_text(ROWS, NAMES), encoding="utf-8")
    for given in ("5s", "5 s", "5 seconds"):
        assert "ACEP-D073" in acep("run", CELLS, "e.csv", "--watermark", given, code=4).stderr
    timed = ["run", CELLS, "e.csv", "--unit", "s", "--within", "9 s", "--watermark"]
    assert len({acep(*timed, given).stdout for given in ("5s", "5 s", "5 seconds")}) == 1
    assert "ACEP-D073" in acep(*timed, "5", code=4).stderr


def test_what_came_before_a_wrong_row_stays_written():
    """As in a plain run: of files what the batches before have brought."""
    Path("days").mkdir()
    Path("days/1.csv").write_text(csv_text(ROWS, NAMES), encoding="utf-8")
    Path("days/2.csv").write_text(csv_text([(4, 4, "k", "C", 0, "?")], NAMES), encoding="utf-8")
    result = acep("run", "PATTERN SEQ(A a, B b) WITHIN 9", "days", *EARLY, "--late", "late.csv", code=4)
    assert len(result.stdout.splitlines()) == 2
    assert "row 3" in result.stderr
    assert not list(Path().glob("*.part"))


def test_help_has_a_panel_for_it():
    shown = acep("run", "--help").stdout
    _, panel = shown.split("─ Late and revised events ─", 1)
    panel = panel.split("─ Budget ─")[0]
    options = ["--watermark", "--emit", "--changelog", "--op", "--id", "--source", "--sequence", "--idle"]
    assert re.findall(r"^│ (--\S+)", panel, re.MULTILINE) == options


# --- inside a load budget -------------------------------------------------------------------------------------


@pytest.mark.parametrize("output", ["matches", "points"])
def test_a_budget_pays_for_corrections(output):
    """What is out in the end is part of what the plain run finds; with all of the work it is the same."""
    Story(3).write()
    words = [RUNS, "days", "--id", "id", *EARLY, *bound(RUNS, output), "--output", output]
    exact = net(read(words, "jsonl"))
    whole = net(read([*words, "--budget", "100%", "--full-work", "5"], "jsonl"))
    assert whole == exact
    some = net(read([*words, "--budget", "1 steps/event"], "jsonl"))
    names = ("id",) if output == "points" else ("start", "end", "a.id", "b.id")
    shown = [{str([json.loads(row).get(name) for name in names]) for row in found} for found in (some, exact)]
    assert shown[0] <= shown[1]
    assert 0 < len(shown[0]) < len(shown[1])


def test_final_results_inside_a_budget_are_those_of_the_sorted_file():
    Story(4).write()
    words = ["--budget", "2 steps/event", "--policy", "random", "--format", "jsonl"]
    late = acep("run", RUNS, "days", "--watermark", "1000", "--id", "id", *bound(RUNS), *words)
    plain_run = acep("run", RUNS, "sorted.csv", *bound(RUNS), *words)
    assert late.stdout == plain_run.stdout != ""
    assert "work: " in late.stderr
    assert "policy random" in late.stderr


def test_a_report_and_a_page_of_corrections_inside_a_budget():
    Story(5).write()
    budget = ("--budget", "2 steps/event")
    said = acep("run", RUNS, "days", *EARLY, *budget, "--report", "r.html", "--page", "p.html").stderr
    assert "there is no audit where results may be taken back" in said
    assert "run-steps of" in said
    assert "taken back" in Path("r.html").read_text(encoding="utf-8")
    assert "Estimated recall" in Path("p.html").read_text(encoding="utf-8")
    assert "learned: " in acep("run", RUNS, "days", *EARLY, *budget, "--learn").stderr
