"""The explorer of every kind of run: events that come once, that are late or change, that are still being written."""

from __future__ import annotations

import json
import os
import re
import signal

import pyarrow as pa
import pytest

from acep_approx import UsageError, compile_query
from acep_approx.events import kept_events, open_source
from acep_approx.events.live.text import Pace
from acep_approx.results.explorer import near_matches
from tests.command_line import acep, csv_text

LOST = "PATTERN SEQ(Packed p, Loaded l, Delivered d) WHERE [key] WITHIN 3 h ERRORS 1 WEIGHTS (p = 2, d = 2)"
PAIR = "PATTERN SEQ(A a, B b) WITHIN 5"


def data_of(page: str) -> dict:
    """What the script of a page reads."""
    (text,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    return json.loads(text)


def facts_of(page: str) -> dict[str, str]:
    """What the page says of the run, by name."""
    return dict(re.findall(r"<dt>(.*?)</dt><dd>(.*?)</dd>", page))


def bound(page: str) -> list[list]:
    """The variables and rows of each match."""
    return [match[6] for match in data_of(page)["matches"]]


def pairs(number: int) -> list[dict]:
    return [{"ts": at, "type": "AB"[at % 2], "x": at, "note": f"n{at}"} for at in range(number)]


@pytest.fixture(autouse=True)
def few_places(monkeypatch):
    """Each question takes some 50 ms."""
    monkeypatch.setattr(near_matches, "PLACES", 4)


@pytest.fixture
def boxes(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "boxes.csv").write_text(csv_text(), encoding="utf-8")
    (tmp_path / "lost.acep").write_text(LOST, encoding="utf-8")
    (tmp_path / "pair.acep").write_text(PAIR, encoding="utf-8")
    return tmp_path


def page_at(folder, *arguments: str, stdin: bytes = b"", code: int = 0) -> str:
    acep("run", *arguments, "--page", "out.html", "--quiet", "-o", "out.jsonl", stdin=stdin, code=code)
    return (folder / "out.html").read_text(encoding="utf-8")


# --- events that come once ------------------------------------------------------------------------------------


def test_events_that_come_once_make_the_same_page():
    query = compile_query(PAIR)
    rows = pairs(40)
    whole = query.match(rows).page()
    once = query.match(iter(rows))
    assert once.page() == whole
    assert once.to_arrow().num_rows == len(query.match(rows))  # they were kept for all else, too
    batches = pa.Table.from_pylist(rows).to_batches(max_chunksize=7)
    assert data_of(query.match(batches_of(batches)).page()) == data_of(whole)


def batches_of(batches: list[pa.RecordBatch]) -> pa.RecordBatchReader:
    return pa.RecordBatchReader.from_batches(batches[0].schema, batches)


def test_events_that_are_gone_are_refused():
    matches = compile_query(PAIR).match(iter(pairs(4)))
    matches.to_arrow()
    with pytest.raises(UsageError, match="ACEP-U150") as refused:
        matches.page()
    assert "ask for the page first" in str(refused.value.hint)


def test_of_too_many_events_the_latest_are_kept(monkeypatch):
    monkeypatch.setattr(kept_events, "MOST_BYTES", 6_000)
    monkeypatch.setattr(kept_events, "PACKED", 50)
    page = compile_query(PAIR).match(iter(pairs(1000))).page()
    (first, of) = re.search(r"Kept were the last ([\d,]+) of ([\d,]+) events", page).groups()
    rows = [int(row) for row in data_of(page)["events"]]
    assert of == "1,000"
    assert min(rows) >= 1000 - int(first) > 0
    assert max(rows) == 999
    for row, (tick, _, *values) in data_of(page)["events"].items():
        assert (tick, values) == (int(row), [row, f"n{row}"])  # they have the numbers of the whole stream


def test_late_events_of_a_stream_that_comes_once(tmp_path):
    rows = [{"ts": at, "type": "AB"[at % 2]} for at in (0, 1, 4, 2, 5)]
    page = compile_query(PAIR).match(iter(rows), on_late="skip", late=tmp_path / "late.jsonl").page()
    assert facts_of(page)["left out"] == "1 late"
    assert [["a", 2], ["b", 4]] in bound(page)
    assert len((tmp_path / "late.jsonl").read_text().splitlines()) == 1


def test_a_kept_source_knows_where_its_rows_stand():
    source = open_source(iter(pairs(6)))
    source.keep()
    assert [batch.num_rows for batch in source.batches(["ts"])] == [6]
    again = source.again(before=10)
    assert again.schema.names == ["ts", "type", "x", "note"]
    assert [batch.column("x").to_pylist() for batch in again.batches(["x"], 4)] == [[0, 1, 2, 3], [4, 5]]
    matches = compile_query("PATTERN A a WHERE a.x > 3 WITHIN 1").match(again)
    assert [one.values for one in matches] == [{"a": 14}]


def test_standard_input(boxes):
    page = page_at(boxes, "lost.acep", "-", stdin=csv_text().encode())
    whole = page_at(boxes, "lost.acep", "boxes.csv")
    assert data_of(page)["matches"] == data_of(whole)["matches"]
    assert data_of(page)["events"] == data_of(whole)["events"]
    assert "3 matches in standard input" in page
    assert "acep why lost.acep - --around TIME" in page
    assert "give them again" in page
    assert "In Python" not in page


def test_a_run_that_stops_early_says_so(boxes):
    text = "ts,type\n" + "".join(f"{at},{'AB'[at % 2]}\n" for at in range(4000))
    pieces = [text[:200].encode(), text[200:].encode()]
    page = page_at(boxes, "pair.acep", "-", "--limit", "1", stdin=pieces)
    assert "The run stopped before the end of its input" in page


# --- late, changed, taken back --------------------------------------------------------------------------------

CHANGES = """id,ts,type,ticket,op
e1,1,A,7,insert
e2,5,B,7,insert
e3,4,B,7,insert
e4,2,B,7,insert
e2,5,B,7,delete
e5,20,A,8,insert
e6,23,B,8,insert
e7,12,B,8,insert
"""


def test_late_and_changed_events_are_shown_as_they_are_in_the_end(boxes):
    options = ("pair.acep", "-", "--watermark", "6", "--id", "id", "--emit", "early", "--op", "op")
    page = page_at(boxes, *options, stdin=[line.encode() for line in CHANGES.splitlines(keepends=True)])
    assert bound(page) == [[["a", 0], ["b", 3]], [["a", 0], ["b", 2]], [["a", 5], ["b", 6]]]
    assert data_of(page)["events"]["2"] == [4, "B", "e3", "7"]
    facts = facts_of(page)
    assert facts["rows"] == "8: 6 events inserted, 1 retracted"
    assert facts["rows left out"] == "1 late"
    assert facts["results"] == "4 put out, 1 of them taken back; 3 remain"
    assert "acep why" not in page


def test_rows_that_come_out_of_order_stand_in_order_of_time(boxes):
    text = "ts,type\n5,B\n3,A\n30,C\n"
    for arguments, stdin in ((("-",), text.encode()), (("in.csv",), b"")):
        (boxes / "in.csv").write_text(text, encoding="utf-8")
        page = page_at(boxes, "pair.acep", *arguments, "--watermark", "4", "--output", "count", stdin=stdin)
        assert bound(page) == [[["a", 1], ["b", 0]]]


# --- still being written --------------------------------------------------------------------------------------


def test_a_live_run_makes_its_page_at_the_end(boxes):
    page = page_at(boxes, "lost.acep", "boxes.csv", "--follow", "--until-idle", "0 s")
    whole = page_at(boxes, "lost.acep", "boxes.csv")
    assert data_of(page)["matches"] == data_of(whole)["matches"]
    assert data_of(page)["near"] == data_of(whole)["near"]


@pytest.mark.parametrize("more", [(), ("--output", "count"), ("--watermark", "5 min")])
def test_a_live_run_that_is_stopped_makes_its_page(boxes, monkeypatch, more):
    monkeypatch.setattr(Pace, "wait", lambda *_: os.kill(os.getpid(), signal.SIGINT))
    page = page_at(boxes, "lost.acep", "boxes.csv", "--follow", *more, code=130)
    assert [["p", 1], ["d", 4]] in bound(page)


@pytest.mark.parametrize("more", [(), ("--watermark", "0")])
def test_a_live_run_that_goes_on_numbers_events_as_its_results_do(boxes, more):
    live = ("pair.acep", "in.csv", "--follow", "--until-idle", "0 s", "--checkpoint", "kept", *more)
    (boxes / "in.csv").write_text("ts,type\n1,A\n2,B\n", encoding="utf-8")
    page_at(boxes, *live)
    with (boxes / "in.csv").open("a", encoding="utf-8") as file:
        file.write("11,A\n12,B\n")
    assert bound(page_at(boxes, *live)) == [[["a", 2], ["b", 3]]]


@pytest.mark.parametrize("more", [("--budget", "5 steps/event", "-o", "x.jsonl"), ("--watermark", "0 s")])
def test_live_runs_of_other_kinds_have_a_page(boxes, more):
    page = page_at(boxes, "lost.acep", "boxes.csv", "--follow", "--until-idle", "0 s", *more)
    assert [["p", 1], ["d", 4]] in bound(page)


@pytest.mark.parametrize("more", [("--watermark", "5"), ("--follow", "--until-idle", "0 s")])
def test_columns_that_are_bound_are_shown_and_warnings_come_once(boxes, more):
    names = [f"c{number}" for number in range(9)]
    rows = [f"{at},{'AB'[at % 2]},{','.join('0' * 9)}" for at in range(6)]
    (boxes / "wide.csv").write_text("\n".join([f"ts,type,{','.join(names)}", *rows, ""]), encoding="utf-8")
    page = page_at(boxes, "pair.acep", "wide.csv", "--bind", "c8", *more)
    assert data_of(page)["attributes"][0] == "c8"
    query = PAIR.replace("B b", "B b, Z z")
    said = acep("run", query, "wide.csv", *more, "--page", "out.html", "-o", "out.jsonl").stderr
    assert said.count("no event has the type 'Z'") <= 1


def folder_of_queries(folder):
    (folder / "queries").mkdir()
    (folder / "queries" / "lost.acep").write_text(LOST, encoding="utf-8")
    (folder / "queries" / "never.acep").write_text("PATTERN SEQ(Packed p, Lost l) WITHIN 1 h", encoding="utf-8")


RULES = "RULE done ON PATTERN SEQ(Packed p, Delivered d) WHERE [key] WITHIN 3 h DO CALL ring(d.key) END"


@pytest.mark.parametrize("inputs", [("-",), ("boxes.csv", "--follow", "--until-idle", "0 s")])
def test_many_queries_and_rules_over_events_that_come_once(boxes, inputs):
    folder_of_queries(boxes)
    (boxes / "rules.acep").write_text(RULES, encoding="utf-8")
    stdin = csv_text().encode() if inputs == ("-",) else b""
    page = page_at(boxes, "--queries", "queries", *inputs, stdin=stdin)
    assert [["p", 1], ["d", 4]] in bound(page)
    assert {int(row) for row in data_of(page)["events"]} == {0, 1, 2, 3, 4}
    acep("run", "rules.acep", *inputs, "--page", "rules.html", "-o", "found", stdin=stdin)
    page = (boxes / "rules.html").read_text(encoding="utf-8")
    assert bound(page) == [[["p", 0], ["d", 3]], [["p", 1], ["d", 4]]]
    assert len(data_of(page)["events"]) == 4


def test_many_queries_over_events_that_are_put_in_order_or_get_the_time_of_the_clock(boxes):
    (boxes / "queries").mkdir()
    (boxes / "queries" / "pair.acep").write_text(PAIR.replace("5", "5 s"), encoding="utf-8")
    late = "ts,type\n2024-05-01T08:00:03Z,B\n2024-05-01T08:00:01Z,A\n2024-05-01T08:00:30Z,C\n"
    page = page_at(boxes, "--queries", "queries", "-", "--reorder", "5 s", stdin=late.encode())
    assert bound(page) == [[["a", 1], ["b", 0]]]
    assert "put in order on the way" in page
    (boxes / "stamped.jsonl").write_text('{"type": "A"}\n{"type": "B"}\n', encoding="utf-8")
    page = page_at(boxes, "--queries", "queries", "stamped.jsonl", "--stamp", "--limit", "1")
    assert set(data_of(page)["events"]) <= {"0", "1"}


def test_rules_with_a_store_show_what_this_run_found(boxes):
    (boxes / "rules.acep").write_text(RULES, encoding="utf-8")
    run = ("run", "rules.acep", "boxes.csv", "--store", "boxes.db", "-o", "found", "--page", "rules.html")
    (boxes / "boxes.csv").write_text("".join(csv_text().splitlines(keepends=True)[:5]), encoding="utf-8")
    acep(*run)
    (boxes / "boxes.csv").write_text(csv_text(), encoding="utf-8")
    acep(*run)
    page = (boxes / "rules.html").read_text(encoding="utf-8")
    assert bound(page) == [[["p", 1], ["d", 4]]]
    assert set(data_of(page)["events"]) == {"1", "4"}


@pytest.mark.parametrize("inputs", [("late.csv",), ("-",)])
def test_pages_of_many_say_what_was_left_out(boxes, inputs):
    late = "ts,type\n1,A\n3,B\n2,A\n4,A\n5,B\n1,B\n9,C,C\n"
    (boxes / "late.csv").write_text(late, encoding="utf-8")
    (boxes / "queries").mkdir()
    (boxes / "queries" / "pair.acep").write_text(PAIR, encoding="utf-8")
    (boxes / "queries" / "gone.acep").write_text(PAIR.replace("B b", "X x"), encoding="utf-8")
    (boxes / "rules.acep").write_text(f"RULE pair ON {PAIR}", encoding="utf-8")
    stdin = late.encode() if inputs == ("-",) else b""
    skip = ("--on-malformed", "skip", "--page", "many.html")
    queries, rules = ("--queries", "queries", *inputs), ("rules.acep", *inputs)
    for run, number in (
        ((*queries, "--on-late", "skip"), 2),
        ((*queries, "--reorder", "1"), 1),
        ((*rules, "--on-late", "skip"), 2),
    ):
        acep("run", *run, *skip, stdin=stdin)
        page = (boxes / "many.html").read_text(encoding="utf-8")
        assert facts_of(page)["left out"] == f"{number} late, 1 could not be read"


@pytest.mark.parametrize("options", [("boxes.csv", "--output", "count"), ("boxes.csv", "--follow", "--stamp")])
def test_what_does_not_go_with_a_page_is_refused(boxes, options):
    folder_of_queries(boxes)
    assert "ACEP-U152" in acep("run", "--queries", "queries", *options, "--page", "out.html", code=2).stderr


# --- what nearly matched, or was shed -------------------------------------------------------------------------


def test_what_a_budget_shed_is_told_apart_from_what_nearly_matched():
    rows = [{"ts": at, "type": "ABC"[at * at % 3], "x": at * 7 % 11} for at in range(90)]
    query = compile_query("PATTERN SEQ(A a, B b, B c) WHERE b.x > a.x AND c.x > b.x WITHIN 12")
    exact, some = query.match(rows), query.match_within(rows, "1 steps/event", audit=0)
    page = some.page()
    shed = [place for place in data_of(page)["near"] if place["why"] == "shed"]
    near_ones = [place for place in data_of(page)["near"] if place["why"] != "shed"]
    found = {(match.start, match.end) for match in some}
    wanted = {tuple(match.values.items()) for match in exact}
    assert shed
    assert near_ones
    for place in shed:
        assert (place["start"], place["tick"]) not in found
        assert tuple((name, row) for name, row in place["events"]) in wanted
        assert "was shed" in place["headline"]
    for place in near_ones:
        assert not query.why(rows, around=place["tick"]).matched
    missed = len({match.end for match in exact} - {match.end for match in some})
    told = re.search(r"The budget shed ([\d,]+) matches at match points", page)[1]
    assert missed <= int(told) == sum(match.end not in {one.end for one in some} for match in exact)


def test_a_budget_that_sheds_nothing_says_so():
    page = compile_query(PAIR).match_within(pairs(20), "1000 steps/event").page()
    assert "The budget missed no match point" in page
    assert not [place for place in data_of(page)["near"] if place["why"] == "shed"]


def test_of_many_queries_those_are_asked_that_find_the_same_by_themselves(boxes):
    folder_of_queries(boxes)
    (boxes / "queries" / "heavy.cel").write_text("SELECT key FROM FILTER{kg > 8}(Packed) PUBLISH Heavy")
    (boxes / "queries" / "reads.acep").write_text("PATTERN SEQ(Heavy h, Lost l) WITHIN 1 h", encoding="utf-8")
    page = page_at(boxes, "--queries", "queries", "boxes.csv")
    data = data_of(page)
    asked = {data["queries"][place["query"]]["name"] for place in data["near"]}
    assert "never" in asked
    assert "reads" not in asked
    assert "of 2 queries, each run by itself. 2 others not asked: in CEL" in page
    (one, *_) = (place for place in data["near"] if data["queries"][place["query"]]["name"] == "never")
    assert one["awaited"] == ["l"]
    assert len(one["key"]) == len(data["keys"])
    assert str(one["events"][0][1]) in data["events"]
