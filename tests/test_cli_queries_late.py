"""``acep run --queries`` over events that come late: as the set in Python, as the sorted stream, also after a stop."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import Any

import pyarrow.parquet as pq
import pytest

from acep_approx import QuerySet, Wide
from tests.cases import cases
from tests.command_line import acep

QUERIES = {
    "pair": "PATTERN SEQ(A a, B b) WITHIN 4",
    "gone": "PATTERN SEQ(A a, ~(B b)) WHERE [k] WITHIN 3",
    "rises": "PATTERN SEQ(A a, A b) WHERE b.p > a.p WITHIN 6",
}
ONE = QUERIES["pair"]
ASKED = [
    ("--watermark", "2"),
    ("--watermark", "2", "--source", "s"),
    ("--watermark", "1", "--source", "s", "--idle", "4"),
    ("--sequence", "n"),
    ("--watermark", "4", "--sequence", "n"),
    ("--reorder", "2"),
    ("--reorder", "2", "--source", "s"),
]
RUN = ("run", "--queries", "queries", "events.csv")
END = ("--follow", "--until-idle", "0s")


def lines_of(random: Random, number: int) -> list[str]:
    """Lines of CSV out of order: events of three sources, each with its number."""
    events = [
        (n // 2, random.choice("AB"), random.randrange(2), random.randrange(5), "xyz"[n % 3], n) for n in range(number)
    ]
    events.sort(key=lambda event: event[0] + random.randrange(5))
    return [",".join(map(str, event)) + "\n" for event in events]


HEADER = "ts,type,k,p,s,n\n"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "queries").mkdir()
    for name, text in QUERIES.items():
        (tmp_path / "queries" / f"{name}.acep").write_text(text)
    (tmp_path / "events.csv").write_text(HEADER + "".join(lines_of(Random(7), 60)))
    return tmp_path


def desk_of(**asked: Any) -> QuerySet:
    desk = QuerySet(bind=Wide(), **asked)
    for name in sorted(QUERIES):
        desk.add(QUERIES[name], id=name)
    return desk


def in_python(asked: tuple[str, ...]) -> dict[str, Any]:
    """The options as arguments of ``QuerySet``."""
    given = dict(zip(asked[::2], asked[1::2], strict=True))
    return {name.removeprefix("--"): int(text) if text.isdigit() else text for name, text in given.items()}


def rows_of(text: str) -> list[dict]:
    return [json.loads(line) for line in text.splitlines()]


@pytest.mark.parametrize("asked", ASKED, ids=" ".join)
@pytest.mark.parametrize("seed", range(cases(5, 2)))
def test_it_finds_what_the_set_finds_and_writes_what_it_leaves_out(
    here: Path, asked: tuple[str, ...], seed: int
) -> None:
    (here / "events.csv").write_text(HEADER + "".join(lines_of(Random(seed), 60)))
    desk = desk_of(**in_python(asked))
    expected = desk.match("events.csv", late="expected.csv").table()
    acep(*RUN, *asked, "-o", "found.parquet", "-q")
    assert pq.read_table("found.parquet").to_pylist() == expected.to_pylist()
    done = acep(*RUN, *asked, "-o", "found.jsonl", "--late", "late.csv")
    assert len((here / "found.jsonl").read_text().splitlines()) == expected.num_rows
    late = (here / "late.csv").read_text()
    assert late == (here / "expected.csv").read_text()
    assert late.startswith(f"reason,row,{HEADER}")
    if desk.late_in_match:
        rows = "row" if desk.late_in_match == 1 else "rows"
        told = f"{desk.late_in_match} {rows} left out: {desk.late_in_match} late; written to late.csv"
        assert told in done.stderr
    if "--watermark" in asked:
        acep("run", ONE, "events.csv", *asked, "--late", "alone.csv", "-q")
        assert late == (here / "alone.csv").read_text()
    counts = rows_of(acep(*RUN, *asked, "--output", "count", "-q").stdout)
    assert sum(row["matches"] for row in counts) == expected.num_rows


def test_it_finds_what_there_is_in_the_sorted_stream_of_what_is_not_late(here: Path) -> None:
    acep(*RUN, "--watermark", "2", "--late", "late.jsonl", "-o", "found.jsonl", "-q")
    late = {row["row"] for row in rows_of((here / "late.jsonl").read_text())}
    assert late
    lines = (here / "events.csv").read_text().splitlines(keepends=True)[1:]
    left = [line for number, line in enumerate(lines) if number not in late]
    (here / "sorted.csv").write_text(HEADER + "".join(sorted(left, key=lambda line: int(line.split(",")[0]))))
    acep("run", "--queries", "queries", "sorted.csv", "--output", "points", "-o", "sorted.jsonl", "-q")
    acep(*RUN, "--watermark", "2", "--output", "points", "-o", "points.jsonl", "-q")

    def ends(name: str) -> list[tuple[str, int]]:
        return sorted((row["query"], row["end"]) for row in rows_of((here / name).read_text()))

    assert ends("sorted.jsonl") == ends("points.jsonl")
    assert ends("points.jsonl")


@pytest.mark.parametrize("form", ["csv", "jsonl", "parquet"])
def test_files_of_late_events_are_those_of_a_single_query(here: Path, form: str) -> None:
    acep(*RUN, "--watermark", "1", "--late", f"late.{form}", "-q")
    acep("run", ONE, "events.csv", "--watermark", "1", "--late", f"alone.{form}", "-q")
    if form == "parquet":
        assert pq.read_table("late.parquet").equals(pq.read_table("alone.parquet"))
    else:
        assert (here / f"late.{form}").read_text() == (here / f"alone.{form}").read_text()


def test_it_says_what_holds_the_watermark_back(here: Path) -> None:
    (here / "events.csv").write_text(f"{HEADER}1,A,0,0,x,1\n2,A,0,0,y,3\n20,B,0,0,x,4\n9,B,0,0,x,2\n")
    for live in ((), END):
        told = acep(*RUN, "--watermark", "1", "--source", "s", *live).stderr
        assert "the watermark came to 1, held back by source 'y'\n" in told
        told = acep(*RUN, "--watermark", "1", "--source", "s", "--idle", "5", *live).stderr
        assert "1 row left out: 1 late; to keep such rows: --late FILE\n" in told
        assert "held back by source 'x'\nidle, and not waited for: 'y'\n" in told
    (here / "times.csv").write_text("ts,type,k,p,s\n2024-01-01T00:00:01Z,A,0,0,x\n2024-01-01T00:00:05Z,B,0,0,y\n")
    (here / "queries" / "pair.acep").write_text("PATTERN SEQ(A a, B b) WITHIN 4 s")
    for name in ("gone", "rises"):
        (here / "queries" / f"{name}.acep").unlink()
    told = acep("run", "--queries", "queries", "times.csv", "--watermark", "1 s", "--source", "s").stderr
    assert "the watermark came to 2024-01-01T00:00:00Z, held back by source 'x'\n" in told


@pytest.mark.parametrize("asked", ASKED, ids=" ".join)
def test_live_input_gives_the_same_also_after_a_stop(here: Path, asked: tuple[str, ...]) -> None:
    expected = acep(*RUN, *asked, "--late", "whole.csv", "-o", "whole.jsonl")
    whole = (here / "events.csv").read_text()
    lines = whole.splitlines(keepends=True)
    kept = ("--checkpoint", "cp", "-o", "found.jsonl", "--late", "late.csv", *END)
    for some in (20, 41):
        (here / "events.csv").write_text("".join(lines[:some]))
        acep(*RUN, *asked, *kept)
    (here / "events.csv").write_text(whole)
    told = acep(*RUN, *asked, *kept, "--finish").stderr
    assert sorted(rows_of((here / "found.jsonl").read_text()), key=str) == sorted(
        rows_of((here / "whole.jsonl").read_text()), key=str
    )
    assert (here / "late.csv").read_text() == (here / "whole.csv").read_text()
    for line in expected.stderr.splitlines():
        if "late;" in line or "watermark" in line:
            assert line.replace("whole.csv", "late.csv") in told


def test_a_checkpoint_of_another_watermark_is_refused(here: Path) -> None:
    kept = ("--checkpoint", "cp", "-o", "found.jsonl", *END)
    acep(*RUN, "--watermark", "2", *kept)
    for other in (("--watermark", "3"), ("--watermark", "2", "--source", "s"), ("--reorder", "2"), ()):
        assert "ACEP-D" in acep(*RUN, *other, *kept, code=4).stderr


def test_a_page_shows_the_matches_of_events_that_came_out_of_order(here: Path) -> None:
    for live in ((), END):
        acep(*RUN, "--watermark", "2", "--late", "late.csv", "--page", "page.html", *live)
        before = (here / "late.csv").read_text()
        assert "late" in (here / "page.html").read_text()
        assert len(before.splitlines()) > 1  # reading the events again writes nothing
    (here / "queries" / "none.acep").write_text("PATTERN SEQ(A a, Z z) WITHIN 4")
    told = acep(*RUN, "--watermark", "2", "--late", "again.csv").stderr
    assert "query without a match: none\n  none: " in told
    assert (here / "again.csv").read_text() == before


@pytest.mark.parametrize(
    ("more", "told"),
    [
        (("--watermark", "2", "--emit", "early"), "ACEP-U064: --emit and --queries do not go together yet"),
        (("--watermark", "2", "--changelog"), "ACEP-U064: --changelog and --queries"),
        (("--op", "op"), "ACEP-U064: --op and --queries"),
        (("--watermark", "2", "--id", "n"), "ACEP-U064: --id and --queries"),
        (("--watermark", "2", "--budget", "20%"), "ACEP-U055: --budget does not go with --watermark"),
        (("--watermark", "2", "--reorder", "2"), "ACEP-U064: --reorder does not go with --watermark"),
        (("--watermark", "2", "--sort"), "ACEP-U055: --sort does not go with --watermark"),
        (("--sequence", "n", "--on-late", "refuse"), "ACEP-U055: --on-late refuse does not go with --sequence"),
        (("--idle", "5"), "ACEP-U055: idle= is about sources"),
        (("--watermark", "soon"), "ACEP-U056"),
        (("--watermark", "2", "--late", "late.txt"), "ACEP-U018"),
        (("--watermark", "2", "--late", "events.csv"), "ACEP-U013"),
        (("--watermark", "2", "--late", "found.csv", "-o", "found.csv"), "ACEP-U017"),
        (("--watermark", "2", "--late", "none/late.csv"), "ACEP-U114"),
        (("--reorder", "2", "--sort", "--late", "late.csv"), "ACEP-U115"),
        (("--late", "late.csv"), "ACEP-U114"),
        (("--late", "late.csv", *END), "ACEP-U114"),
        (("--watermark", "2", "--late", "late.parquet", *END, "--checkpoint", "cp"), "ACEP-U138"),
    ],
)
def test_what_makes_no_sense(here: Path, more: tuple[str, ...], told: str) -> None:
    assert told in acep(*RUN, *more, code=2).stderr


@pytest.mark.parametrize(
    ("more", "told"),
    [
        (("--watermark", "2 s"), "ACEP-D073"),
        (("--watermark", "2", "--source", "z"), "ACEP-D002: there is no column 'z'"),
        (("--sequence", "s"), "ACEP-D074"),
    ],
)
def test_columns_that_do_not_fit(here: Path, more: tuple[str, ...], told: str) -> None:
    for live in ((), END):
        assert told in acep(*RUN, *more, *live, code=4).stderr
