"""A query that can list more matches than anybody reads says so before it lists them, and what limits it."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pytest

from acep_approx import ManyMatchesWarning, QuerySet, compile_query, compile_rules
from acep_approx.planning.many_matches import why_many
from acep_approx.results import beginning
from acep_approx.results.beginning import much
from tests.command_line import acep

LOGINS = "PATTERN SEQ(Failed{5,} f, Accepted s) WITHIN 10 h"
WHY = "n events that fit f[] make up to 2^n matches, because any event may be passed over"
DELIVERIES = "PATTERN SEQ(A a, B b, C c, D d, E e) WHERE [box] WITHIN 9 ERRORS 1"


@pytest.fixture(autouse=True)
def _whatever_else_runs_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(beginning, "MOST_SECONDS", 60)


def logins(failed: int) -> list[dict]:
    """Failed logins, one a second, and one that is accepted."""
    rows = [{"ts": f"2024-05-01T08:{at // 60:02}:{at % 60:02}", "type": "Failed"} for at in range(failed)]
    return [*rows, {"ts": "2024-05-01T09:00:00", "type": "Accepted"}]


def deliveries(boxes: int) -> list[dict]:
    return [{"ts": 10 * box + at, "type": "ABCDE"[at], "box": box} for box in range(boxes) for at in range(5)]


@pytest.mark.parametrize(
    ("query", "reasons"),
    [
        (LOGINS, [WHY]),
        ("PATTERN SEQ(A a, B+ b[], C c) WITHIN 9", ["fit b[] make"]),
        ("PATTERN SEQ((A a, B b)+, C{2,9} c[]) WITHIN 9", ["fit a[] or b[] or c[] make"]),
        ("PATTERN SEQ(A a, B{4} b[]) WHERE b[1].x > a.x WITHIN 9", ["fit b[] make"]),
        ("ab+ WITHIN 9", ["fit a repetition make"]),
        (DELIVERIES, ["ERRORS 1 lists a complete case once more for each event that may be missing"]),
        ("PATTERN SEQ(A+ a[], B b, C c) WITHIN 9 ERRORS 2", ["fit a[] make", "ERRORS 2 lists"]),
        ("PATTERN SEQ(A a, B? b, C{2} c[]) WITHIN 9", None),
        (f"{LOGINS} NON OVERLAP", None),
        ("PATTERN SEQ(A+ a[], B b) WHERE skip_till_next_match {a[i].x > a[i-1].x} WITHIN 9", None),
        ("PATTERN SEQ(A+ a[], B b) WHERE partition_contiguity {[x]} WITHIN 9", None),
        ("SELECT * FROM FILTER{x > 3}(A)", None),
    ],
)
def test_the_reason_stands_in_the_query(query, reasons):
    why = why_many(compile_query(query).plan)
    assert (why is None) == (reasons is None)
    assert all(reason in why for reason in reasons or [])


def test_listing_warns_once_with_the_number():
    few = compile_query(LOGINS).match(logins(14))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(few.to_arrow()) == 2**14 - sum((1, 14, 91, 364, 1001))
    found = compile_query(LOGINS).match(logins(24), limit=None)
    number = 2**24 - sum((1, 24, 276, 2024, 10626))
    words = rf"the 25 events have {number:,} matches, and 1 event completes one"
    with pytest.warns(ManyMatchesWarning, match=words) as caught:
        next(iter(found.tables()))
    assert WHY in str(caught[0].message)
    assert "MAXIMAL" in str(caught[0].message)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        next(iter(found.tables()))
        assert found.points().num_rows == 1
        assert found.head(0).to_arrow().num_rows == 0


def test_more_than_can_be_counted_is_said_so():
    found = much(compile_query(LOGINS).match(logins(200)))
    assert str(found) == "the 201 events have more than 9.2e18 matches, and 1 event completes one"


def test_missing_events_are_named_where_they_repeat_cases():
    found = much(compile_query(DELIVERIES).match(deliveries(400)))
    assert (found.matches, found.points, found.is_all) == (400 * 6, 800, True)
    assert much(compile_query(DELIVERIES).match(deliveries(100))) is None  # somebody reads 600
    assert much(compile_query(DELIVERIES.replace("ERRORS 1", "")).match(deliveries(400))) is None


def test_a_long_input_is_counted_at_its_beginning_only():
    found = much(compile_query(DELIVERIES).match(deliveries(20_000)))
    assert not found.is_all
    assert found.events <= 60_000
    assert str(found).startswith(f"the first {found.events:,} events have {found.matches:,} matches")


def test_what_was_looked_at_is_read_again_as_if_nothing_had_been():
    rows = deliveries(400)
    plain = compile_query(DELIVERIES).match(rows)
    with pytest.warns(ManyMatchesWarning):
        assert plain.to_arrow().num_rows == 400 * 6
    assert plain.progress.events == len(rows)
    once = compile_query(DELIVERIES).match(iter(rows))
    assert once.to_arrow().num_rows == 400 * 6  # events that can be read once are not looked at
    late = [*rows, {"ts": 0, "type": "A", "box": 1}]
    skipping = compile_query(DELIVERIES).match(late, on_late="skip")
    with pytest.warns(ManyMatchesWarning):
        skipping.to_arrow()
    assert skipping.source.late.count == 1


def test_a_display_lists_no_matches_where_there_are_too_many():
    shown = compile_query(LOGINS).match(logins(200))._repr_html_()
    assert "the first match points" in shown
    assert "the first matches" in compile_query(LOGINS).match(logins(8))._repr_html_()


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    lines = (",".join(row.values()) for row in logins(200))
    Path("logins.csv").write_text("\n".join(["ts,type", *lines]))
    lines = (f"{row['ts']},{row['type']},{row['box']}" for row in deliveries(400))
    Path("boxes.csv").write_text("\n".join(["ts,type,box", *lines]))
    return "logins.csv"


def test_check_and_explain_say_it(file):
    checked = acep("check", LOGINS, "--input", file).stdout
    assert f"warning    {WHY}: MAXIMAL lists only" in checked
    assert "matches    the 201 events have more than 9.2e18 matches" in checked
    assert f"advice   {WHY}: MAXIMAL lists only" in acep("explain", LOGINS).stdout
    assert "warning" not in acep("check", "PATTERN SEQ(A a, B b) WITHIN 5").stdout


def test_a_run_says_it_before_it_lists(file):
    done = acep("run", DELIVERIES, "boxes.csv", "--format", "csv")
    assert done.stderr.startswith("warning the 2,000 events have 2,400 matches, and 800 events complete one: ERRORS")
    assert len(done.stdout.splitlines()) == 1 + 2400
    for output in ("points", "count"):
        assert "warning" not in acep("run", DELIVERIES, "boxes.csv", "--output", output).stderr


def test_rules_that_act_on_matches_get_the_same_warning(file):
    text = """TABLE seen (id text, n int DEFAULT 0, KEY (id))
RULE alarm ON PATTERN SEQ(Failed{5,} f, Accepted s) WITHIN 10 h EACH DO UPDATE seen SET n = old.n + 1 AT (s.user) END"""
    each = text.replace(" EACH", "")
    assert list(compile_rules(each).many_matches) == ["alarm"]
    assert "FOR EACH POINT acts once" in compile_rules(each).explain()
    assert not compile_rules(text.replace("EACH", "FOR EACH POINT")).many_matches
    Path("alarm.rules").write_text(each)
    assert f"warning    alarm: {WHY}: FOR EACH POINT" in acep("check", "alarm.rules").stdout


def test_a_stream_that_passes_once_is_counted_on_its_way(file):
    once = compile_query(DELIVERIES).match(iter(deliveries(400)))
    with pytest.warns(ManyMatchesWarning, match="the first 2,000 events have 2,400 matches, and 800 events complete"):
        assert once.to_arrow().num_rows == 400 * 6
    done = acep("run", DELIVERIES, "-", "--output", "matches", stdin=Path("boxes.csv").read_bytes())
    assert done.stderr.startswith("warning the first 2,000 events have 2,400 matches, and 800 events complete one: ERR")
    assert len(done.stdout.splitlines()) == 2400
    for options in (["--output", "points"], ["--limit", "3"]):
        assert "warning" not in acep("run", DELIVERIES, "-", *options, stdin=Path("boxes.csv").read_bytes()).stderr


@pytest.mark.parametrize("size", [1, 7, 3000])
def test_what_is_pushed_is_counted_until_it_is_too_much(size):
    rows = deliveries(400)
    matcher = compile_query(DELIVERIES).matcher()
    with pytest.warns(ManyMatchesWarning, match=r"the first [\d,]+ events have [\d,]+ matches") as caught:
        found = [matcher.push(rows[at : at + size]).num_rows for at in range(0, len(rows), size)]
    assert len(caught) == 1
    assert sum(found) + matcher.finish().num_rows == 400 * 6
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        few = compile_query(DELIVERIES).matcher()
        few.push(rows[:500])
        points = compile_query(DELIVERIES).matcher(output="points")
        points.push(rows)
        compile_query(DELIVERIES.replace("ERRORS 1", "ERRORS 1 MAXIMAL")).matcher().push(rows)


def push_all(matcher: Any, rows: list[dict]) -> None:
    """Some dozen at a time."""
    for first in range(0, len(rows), 70):
        matcher.push(rows[first : first + 70])
    matcher.finish()


@pytest.mark.parametrize("more", [{"watermark": 10}, {"emit": "early"}, {"op": "op"}])
def test_what_may_be_late_or_taken_back_is_counted(more: dict[str, Any]) -> None:
    """The events as they are run, so after they have waited."""
    matcher = compile_query(DELIVERIES).matcher(**more)
    rows = [row | ({"op": "insert"} if "op" in more else {}) for row in deliveries(300)]
    with pytest.warns(ManyMatchesWarning, match="events have 1,[0-9]{3} matches, and [0-9]{3} events complete"):
        push_all(matcher, rows)


def test_of_a_set_some_queries_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Once for each input; of many queries not all are looked at."""
    desk = QuerySet()
    desk.add(DELIVERIES, id="lost")
    desk.add(DELIVERIES.replace("ERRORS 1", "ERRORS 1 MAXIMAL"), id="maximal")
    for _ in range(beginning.MOST_QUERIES + 1):
        with pytest.warns(ManyMatchesWarning) as told:
            desk.match(deliveries(400))
        assert [str(one.message)[:30] for one in told] == ["lost: the first 2,000 events h"]
    monkeypatch.setattr(beginning, "MOST_QUERIES", 1)
    desk = QuerySet()
    desk.add(DELIVERIES, id="lost")
    desk.add(DELIVERIES.replace("E e", "E+ e[]"), id="lost, too")
    with pytest.warns(ManyMatchesWarning) as told:
        push_all(desk, deliveries(400))
    assert [str(one.message)[:5] for one in told] == ["lost:"]


def test_a_file_that_is_followed_is_counted_on_its_way(file):
    Path("boxes.csv").write_text(Path("boxes.csv").read_text() + "\n")  # a line without an end may go on
    options = ["--follow", "--until-idle", "0 s", "--output", "matches"]
    done = acep("run", DELIVERIES, "boxes.csv", *options)
    assert "warning the first 2,000 events have 2,400 matches" in done.stderr
    assert len(done.stdout.splitlines()) == 2400


def test_a_run_of_rules_says_it_when_a_rule_has_that_many(file):
    text = """TABLE seen (id int, n int DEFAULT 0, KEY (id))
RULE lost ON PATTERN SEQ(A a, B b, C c, D d, E e) WHERE [box] WITHIN 9 ERRORS 1 WEIGHTS (e = 2)
DO UPDATE seen SET n = old.n + 1 AT (e.box) END"""
    Path("lost.rules").write_text(text)
    said = acep("run", "lost.rules", "boxes.csv").stderr
    assert said.count("warning lost has 1,995 matches so far: ERRORS 1 lists a complete case once more") == 1
    assert "FOR EACH POINT acts once" in said
    Path("few.csv").write_text("".join(Path("boxes.csv").read_text().splitlines(keepends=True)[:500]))
    assert "so far" not in acep("run", "lost.rules", "few.csv").stderr
