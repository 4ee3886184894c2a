"""``acep run|check|explain --queries``: a folder of queries, of which a wrong one does not stop the others."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from acep_approx import QuerySet
from acep_approx.cli.query_folder import split_texts
from tests.command_line import acep

UP = "PATTERN SEQ(S a, S b) WHERE b.p > a.p WITHIN 3 RETURN b.p AS p PUBLISH Up"
FILES = {
    "up.acep": f"{UP};\n-- id: top\nPATTERN Up u WHERE u.p > 3 WITHIN 3 RETURN u.p AS p;\n",
    "high.acep": "PATTERN S a WHERE a.p >= :low WITHIN 3",
    "high.csv": "low\n2\n4\n",
    "notes.txt": "no query",
}
EVENTS = "ts,type,p\n1,S,1\n2,S,2\n3,S,5\n"
WRONG = "-- fine; really\nPATTERN S a WITHIN 3;\nPATTERN S a WITHN 3"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "queries").mkdir()
    for name, text in FILES.items():
        (tmp_path / "queries" / name).write_text(text)
    (tmp_path / "events.csv").write_text(EVENTS)
    return tmp_path


def rows_of(text: str) -> list[dict]:
    return [json.loads(line) for line in text.splitlines()]


def test_rows_of_all_queries_say_whose_they_are(here: Path) -> None:
    done = acep("run", "--queries", "queries", "events.csv")
    rows = rows_of(done.stdout)
    assert [(row["query"], row["end"]) for row in rows] == [
        ("high[0]", 2), ("up:1", 2), ("high[0]", 3), ("high[1]", 3), ("up:1", 3), ("up:1", 3), ("top", 3), ("top", 3)
    ]  # fmt: skip
    assert {name: rows[-1][name] for name in ("missing", "p", "a.p")} == {"missing": [], "p": 5, "a.p": None}
    assert [row["a.p"] for row in rows] == [2, None, 5, 5, *[None] * 4]
    assert "3 events read, 4 queries" in done.stderr
    assert "4 queries with results: up:1 3, " in done.stderr


def test_queries_in_cel_read_one_another_and_know_when_events_began(here: Path) -> None:
    (here / "trips.csv").write_text("ts,type,left,id\n5,Trip,1,a\n9,Trip,4,b\n9,Trip,6,c\n")
    for file in (here / "queries").iterdir():
        file.unlink()
    pairs = "SELECT id_1 AS first, id AS second FROM Trip NEXT Trip"
    (here / "queries" / "trips.cel").write_text(f"{pairs} PUBLISH Pair; SELECT second FROM FILTER{{DUR > 3}}(Pair)")
    rows = rows_of(acep("run", "--queries", "queries", "trips.csv", "--start", "left").stdout)
    assert [(row["query"], row["start"], row["first"], row["second"]) for row in rows] == [
        ("trips:1", 1, "a", "c"), ("trips:2", 1, None, "c")
    ]  # fmt: skip
    alone = rows_of(acep("run", pairs, "trips.csv", "--start", "left").stdout)
    assert alone == [{"first": "a", "second": "c", "start": 1, "end": 9, "times": 1}]
    assert "left (start, int64)" in acep("check", pairs, "--input", "trips.csv", "--start", "left").stdout
    assert "ACEP-D002" in acep("check", "--queries", "queries", "--input", "trips.csv", "--start", "x", code=4).stderr
    assert "Pair: published by trips:1; read by trips:2" in acep("explain", "--queries", "queries").stdout


def test_of_many_queries_without_a_match_the_first_ones_say_why(here: Path) -> None:
    (here / "queries" / "high.csv").write_text("low\n7\n8\n9\n")
    (here / "down.csv").write_text("ts,type,p\n1,S,3\n2,S,2\n3,S,1\n")
    said = acep("run", "--queries", "queries", "down.csv", "--key", "p").stderr
    assert "queries without a match: high[0], high[1], high[2], up:1, top\n  high[0]: " in said
    assert "passes a.p >= 7 (the largest is 3)\n" in said or "passes a.p >= 7 (the nearest is 3)\n" in said
    assert "  high[2]: " in said
    assert "  up:1: " not in said
    assert "to see more of high[0]: acep why 'PATTERN S a WHERE a.p >= 7 WITHIN 3' down.csv --key-column p" in said
    (here / "queries" / "high.acep").unlink()
    said = acep("run", "--queries", "queries", "down.csv").stderr
    assert "  up:1: " in said
    assert "  top: it reads Up, which other queries publish: up:1\n" in said
    piped = acep("run", "--queries", "queries", "-", stdin=(here / "down.csv").read_bytes()).stderr
    assert piped.endswith("queries without a match: up:1, top\n")


def test_all_formats_and_outputs_hold_what_a_set_finds(here: Path) -> None:
    desk = QuerySet()
    desk.add(UP, id="up:1")
    (here / "queries" / "high.acep").unlink()
    (here / "queries" / "up.acep").write_text(f"-- id: up:1\n{UP}")
    for output in ("matches", "points"):
        for form in ("jsonl", "csv", "parquet"):
            acep("run", "--queries", "queries", "events.csv", "--output", output, "-o", f"x.{form}", "-q")
    table = desk.match("events.csv").table()
    assert pq.read_table("x.parquet").num_rows == 2  # points
    assert len(rows_of((here / "x.jsonl").read_text())) == 2
    acep("run", "--queries", "queries", "events.csv", "-o", "x.parquet", "-q")
    assert pq.read_table("x.parquet").to_pylist() == table.to_pylist()
    counts = acep("run", "--queries", "queries", "events.csv", "--output", "count", "--format", "csv", "-q").stdout
    assert counts == "query,errors,matches\nup:1,0,3\n"
    assert "up:1" in acep("run", "--queries", "queries", "events.csv", "--format", "table", "--limit", "1").stdout


def test_many_batches_and_none(here: Path) -> None:
    events = pa.table({"ts": range(300_000), "type": ["S"] * 300_000, "p": [1] * 300_000})
    pq.write_table(events, "long.parquet")
    (here / "queries" / "high.csv").write_text("low\n1\n")
    acep("run", "--queries", "queries", "long.parquet", "-o", "x.parquet", "-q")
    assert pq.read_table("x.parquet").column("end").to_pylist() == [*range(300_000)]
    (here / "none.csv").write_text("ts,type,p\n1,T,1\n")
    assert acep("run", "--queries", "queries", "none.csv", "-q").stdout == ""
    header = acep("run", "--queries", "queries", "none.csv", "--format", "csv", "-q").stdout
    assert header == "query,start,end,errors,times,missing,a.ts,a.p,p\n"


def test_a_wrong_query_is_told_with_its_place_and_the_others_run(here: Path) -> None:
    (here / "queries" / "bad.acep").write_text(WRONG)
    (here / "queries" / "up.acep").write_text(f"{UP};\n\nPATTERN Up u WHERE u.q > 3 WITHIN 3")
    done = acep("run", "--queries", "queries", "events.csv", code=3)
    assert re.search(
        r"error queries/bad.acep: ACEP-Q001: unexpected `WITHN`.*\(line 3, column 13\)\n"
        r"  PATTERN S a WITHN 3\n              \^\^\^\^\^\n",
        done.stderr,
    )
    misfit = "error queries/up.acep: up:2: ACEP-Q060: no attribute 'q' (line 3, column 20)"
    assert misfit in done.stderr
    assert "2 queries left out, as reported above" in done.stderr
    assert {row["query"] for row in rows_of(done.stdout)} == {"bad:1", "high[0]", "high[1]", "up:1"}
    for command in (("run", "events.csv"), ("check", "--input", "events.csv")):
        strict = acep(command[0], "--queries", "queries", *command[1:], "--strict", code=3)
        assert strict.stdout == ""
        assert "ACEP-Q931" in strict.stderr
    checked = acep("check", "--queries", "queries", "--input", "events.csv", code=3)
    assert checked.stdout == "4 queries are right and can be run\n2 queries are wrong\n"
    assert misfit in checked.stderr


def test_one_wrong_query_of_many(here: Path) -> None:
    texts = [f"PATTERN S a WHERE a.p > {number} WITHIN 3" for number in range(10_000)]
    texts[123] = texts[123].replace("WHERE", "WERE")
    (here / "queries" / "many.acep").write_text(";\n".join(texts))
    done = acep("run", "--queries", "queries", "events.csv", code=3)
    assert "many.acep: ACEP-Q001" in done.stderr
    assert "(line 124, column 13)" in done.stderr
    assert "10,003 queries" in done.stderr
    assert sum(row["query"].startswith("many") for row in rows_of(done.stdout)) == 1 + 2 + 5


def test_rows_of_a_template_that_are_wrong_alike_are_told_once(here: Path) -> None:
    (here / "queries" / "off.acep").write_text("PATTERN S a WHERE a.q > :low WITHIN 3")
    (here / "queries" / "off.csv").write_text("low\n1\n2\n3\n")
    done = acep("run", "--queries", "queries", "events.csv", code=3).stderr
    assert done.count("no attribute 'q'") == 1  # nor is it said why they have no match
    assert "error queries/off.acep: off[0]: ACEP-Q060" in done
    assert "  2 more queries of this file have the same error\n" in done
    assert "3 queries left out, as reported above" in done


def test_explain_says_who_feeds_whom(here: Path) -> None:
    assert acep("explain", "--queries", "queries").stdout.splitlines() == [
        "4 queries in queries",
        "level 0: high[0], high[1], up:1 see the events of the stream",
        "level 1: top see them, and what levels below publish",
        "Up: published by up:1; read by top",
    ]


def test_events_in_disorder_and_without_time(here: Path) -> None:
    (here / "mixed.csv").write_text("ts,type,p\n2,S,2\n1,S,1\n3,S,5\n")
    assert "ACEP-D007" in acep("run", "--queries", "queries", "mixed.csv", code=4).stderr
    plain, mixed = (
        acep("run", "--queries", "queries", name, *more, "-q").stdout
        for name, more in (("events.csv", ()), ("mixed.csv", ("--reorder", "5")))
    )
    assert [row["end"] for row in rows_of(plain)] == [row["end"] for row in rows_of(mixed)]
    assert "left out" not in acep("run", "--queries", "queries", "mixed.csv", "--reorder", "1").stderr
    too_late = acep("run", "--queries", "queries", "mixed.csv", "--reorder", "0").stderr
    assert "1 event left out that came late" in too_late
    (here / "timeless.csv").write_text("type,p\nS,1\nS,2\n")
    (here / "queries" / "up.acep").unlink()
    (here / "queries" / "high.acep").write_text("PATTERN S a WHERE a.p >= :low WITHIN 3 s")
    assert len(rows_of(acep("run", "--queries", "queries", "timeless.csv", "--stamp", "-q").stdout)) == 1


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("run", "--queries", "queries", "events.csv", "--learn"), "ACEP-U040: --learn is about a load budget"),
        (("run", "--queries", "queries", "events.csv", "--seed", "2"), "ACEP-U040: --seed"),
        (("train", "--queries", "queries", "events.csv", "-o", "new", "--more"), "ACEP-U064: --more and --queries"),
        (("run", "--queries", "queries", "events.csv", "--spark", "--stamp"), "ACEP-S072: --stamp does not go with"),
        (("run", "--queries", "queries", "events.csv", "--emit", "early"), "ACEP-U064: --emit and --queries"),
        (("run", "--queries", "queries", "events.csv", "--output", "partial"), "ACEP-U064: --output partial"),
        (("run", "ab WITHIN 5", "events.csv", "--strict"), "ACEP-U064: --strict is of use with --queries only"),
        (("run", "--queries", "nowhere", "events.csv"), "ACEP-U068: 'nowhere' is no folder"),
        (("run", "--queries", ".", "events.csv"), "ACEP-U068: '.' has no files *.acep or *.cel"),
        (("run", "--queries", "queries"), "ACEP-U069: the argument INPUT is missing"),
        (("run", "--queries", "queries", "--follow"), "ACEP-U069: the argument INPUT is missing"),
        (("run",), "ACEP-U069: the argument QUERY is missing"),
        (("run", "ab WITHIN 5"), "ACEP-U069: the argument INPUT is missing"),
        (("check",), "ACEP-U069"),
        (("explain",), "ACEP-U069"),
    ],
)
def test_what_makes_no_sense(here: Path, arguments: tuple[str, ...], told: str) -> None:
    assert told in acep(*arguments, code=2).stderr


def test_texts_end_at_semicolons_outside_quotes_and_comments() -> None:
    whole = "a 'x;''y' ; -- b; c\n`d;e` - 1;;\n -- only; this\n; f"
    assert [text.strip() for _, text in split_texts(whole)] == ["a 'x;''y'", "-- b; c\n`d;e` - 1", "f"]
    assert all(whole[at:].startswith(text) for at, text in split_texts(whole))
    assert [text for _, text in split_texts("'never closed; a")] == ["'never closed; a"]


def test_beside_a_folder_there_is_no_query(here: Path) -> None:
    """It was passed over without a word: who meant events by it took the queries for checked against them."""
    done = acep("explain", "--queries", "queries", "events.csv", code=2)
    assert "error ACEP-U064: 'events.csv' and --queries do not go together" in done.stderr
    asked = [acep("check", "--queries", "queries", *events) for events in (["events.csv"], ["--input", "events.csv"])]
    assert asked[0].stdout == asked[1].stdout
    assert "ACEP-D002" in acep("check", "--queries", "queries", "events.csv", "--start", "x", code=4).stderr


def test_a_folder_called_like_a_file_of_queries_is_passed_over(here: Path) -> None:
    (here / "queries" / "old.acep").mkdir()
    done = acep("run", "--queries", "queries", "events.csv")
    assert len(rows_of(done.stdout)) == 8
    assert "4 queries" in done.stderr


def test_a_folder_in_the_place_of_a_query_is_told_as_such(here: Path) -> None:
    for name in ("some.acep", "@some.acep", "@queries"):
        (here / "some.acep").mkdir(exist_ok=True)
        told = acep("check", name, code=2).stderr
        assert f"ACEP-U010: the query cannot be read from '{name.removeprefix('@')}': Is a directory" in told
        assert f"--queries {name.removeprefix('@')}" in told


def test_a_query_may_be_called_like_a_folder(here: Path) -> None:
    query = "PATTERN SEQ(A a, B b) WITHIN 5"
    (here / query).mkdir()
    for command in ("check", "explain"):
        acep(command, query)


def test_a_file_of_queries_that_is_no_text_is_told(here: Path) -> None:
    (here / "queries" / "bytes.acep").write_bytes(b"PATTERN SEQ(A a, B b) -- \xff\nWITHIN 5")
    assert "bytes.acep': it is not UTF-8 text" in acep("check", "--queries", "queries", code=2).stderr
    (here / "queries" / "bytes.acep").write_bytes(b"\xef\xbb\xbfPATTERN SEQ(A a, B b) WITHIN 5")
    acep("check", "--queries", "queries")


# --- a file for each query, and one for all ---------------------------------------------------------------------


@pytest.mark.parametrize("form", ["jsonl", "csv", "parquet"])
@pytest.mark.parametrize("out", ["out/", "there"])
def test_a_folder_gets_a_file_for_each_query_with_what_it_finds_alone(here: Path, form: str, out: str) -> None:
    (here / "there").mkdir()
    (here / "queries" / "up.acep").write_text(f"{UP};\n-- id: a/b\nPATTERN S a WHERE a.p > 9 WITHIN 3")
    (here / "alone.acep").write_text(UP)
    done = acep("run", "--queries", "queries", "events.csv", "-o", out, "--format", form)
    written = {path.name for path in (here / out).iterdir()}
    assert written == {f"{name}.{form}" for name in ("high[0]", "high[1]", "up:1", "a%2Fb")}
    assert "6 matches" in done.stderr
    acep("run", "alone.acep", "events.csv", "-o", f"alone.{form}")
    assert (here / out / f"up:1.{form}").read_bytes() == (here / f"alone.{form}").read_bytes()
    if form == "csv":
        assert (here / out / "a%2Fb.csv").read_text() == "errors,start,end,missing,a.ts,a.p\n"


def test_a_folder_gets_counts_of_each_query(here: Path) -> None:
    acep("run", "--queries", "queries", "events.csv", "-o", "out/", "--output", "count")
    assert (here / "out" / "up:1.jsonl").read_text() == '{"errors": 0, "matches": 3}\n'


def test_no_file_of_a_folder_is_an_input_or_is_read_again(here: Path) -> None:
    (here / "day").mkdir()
    (here / "day" / "events.csv").write_text(EVENTS)
    assert "ACEP-U013" in acep("run", "--queries", "queries", "day", "-o", "day", "--format", "csv", code=2).stderr
    (here / "queries" / "up.acep").write_text(f"-- id: high\n{UP}")
    written = acep("run", "--queries", "queries", "events.csv", "-o", "queries", "--format", "csv", code=2)
    assert "results of high would go to 'queries/high.csv', which is one of the inputs" in written.stderr


def test_one_file_has_the_columns_of_all_queries(here: Path) -> None:
    for file in (here / "queries").iterdir():
        file.unlink()
    texts = [
        "PATTERN SEQ(S a, S b) WITHIN 1 RETURN a.p AS p, b.p + 0.5 AS next",
        "PATTERN SEQ(S+ a[], T b) WITHIN 1",
        "PATTERN S a WHERE a.p > 4 WITHIN 3",
        "PATTERN S a WHERE a.p > 4 WITHIN 3 RETURN a.p AS next",
    ]
    (here / "queries" / "q.acep").write_text(";\n".join(texts))
    acep("run", "--queries", "queries", "events.csv", "-o", "all.csv", "--bind", "row")
    assert (here / "all.csv").read_text().splitlines() == [
        "query,start,end,errors,times,missing,p,next,a,b",
        'q:1,1,2,0,1,"",1,2.5,,',
        'q:1,2,3,0,1,"",2,5.5,,',
        'q:3,3,3,0,1,"",,,2,',
        'q:4,3,3,0,1,"",,5,,',
    ]
    acep("run", "--queries", "queries", "events.csv", "-o", "all.parquet", "--bind", "row")
    table = pq.read_table("all.parquet")
    assert table.schema.field("next").type == pa.float64()
    assert table["a"].to_pylist() == [None, None, "2", None]  # rows of one event, and lists of them
    desk = QuerySet()
    for number, text in enumerate(texts, 1):
        desk.add(text, id=f"q:{number}")
    assert desk.match("events.csv").table().to_pylist() == table.to_pylist()
    assert desk.match([{"ts": 1, "type": "U", "p": 1}]).table().schema.names == table.schema.names


@pytest.mark.parametrize("form", ["jsonl", "csv"])
def test_a_folder_goes_on_from_a_checkpoint(here: Path, form: str) -> None:
    live = ("run", "--queries", "queries", "events.csv", "--follow", "--until-idle", "0 s", "-q")
    acep("run", "--queries", "queries", "events.csv", "-o", "wanted/", "--format", form, "-q")
    (here / "events.csv").write_text("ts,type,p\n1,S,1\n2,S,2\n")
    acep(*live, "--checkpoint", "cp", "-o", "out/", "--format", form)
    with (here / "out" / f"up:1.{form}").open("a") as file:
        file.write("what came after the checkpoint\n")
    with (here / "events.csv").open("a") as file:
        file.write("3,S,5\n")
    acep(*live, "--checkpoint", "cp", "-o", "out/", "--format", form, "--finish")
    for path in (here / "wanted").iterdir():
        assert (here / "out" / path.name).read_text() == path.read_text(), path.name


@pytest.mark.filterwarnings("ignore::acep_approx.errors.FewPointsWarning")
def test_a_folder_within_a_budget_with_what_was_learned_of_it(here: Path) -> None:
    three = "PATTERN SEQ(S a, S b, T c) WHERE b.p <> a.p AND c.p > {}b.p WITHIN 30"
    for file in (here / "queries").iterdir():
        file.unlink()
    (here / "queries" / "some.acep").write_text(f"-- id: some\n-- weight: 7\n{three.format('')}")
    (here / "queries" / "many.acep").write_text(f"-- weight: w\n{three.format(':add + ')}")
    (here / "queries" / "many.csv").write_text("add,w\n0,1\n1,3\n2,1\n")
    lines = [f"{ts},{'SST'[ts % 3]},{ts * ts % 11}" for ts in range(240)]
    for name, some in (("past", lines[:120]), ("now", lines[120:])):
        (here / f"{name}.csv").write_text("\n".join(["ts,type,p", *some]))
    done = acep("train", "--queries", "queries", "past.csv", "-o", "known")
    assert "learned: 2 of the queries and templates of 4 queries" in done.stderr
    what = ["run", "--queries", "queries", "now.csv", "--output", "points"]
    done = acep(*what, "--budget", "20%", "--history", "known", "--shed", "shed.csv")
    exact = {(row["query"], row["end"]) for row in rows_of(acep(*what).stdout)}
    assert {(row["query"], row["end"]) for row in rows_of(done.stdout)} <= exact
    assert "budget of 20% for all queries, policy history, seed 0" in done.stderr
    assert (here / "shed.csv").read_text().startswith("query,")
    done = acep(*what, "--budget", "20%", code=2)
    assert "ACEP-U034" in done.stderr
