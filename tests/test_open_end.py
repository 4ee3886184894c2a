"""An input that is a piece of a longer stream: what waits for a window that later events may lie in is not put out.

By brute force: what is put out of a piece are matches of the piece, and of the whole stream too, however it goes on; a
match whose window has closed by the time of the last event is put out; the others are counted.
"""

from __future__ import annotations

import json
from pathlib import Path
from random import Random

import pytest

from acep_approx import QueryError, QuerySet, UnsupportedError, UsageError, compile_query, compile_rules
from tests.cases import cases
from tests.command_line import acep
from tests.match_tables import bindings, counted, per_point
from tests.naive import Binding
from tests.naive_selection import reported_matches
from tests.rich_worlds import RichWorld, rich_world, world_of

WORLDS = cases(6000, 237)
ABSENCE = "PATTERN SEQ(A a, ~(B n)) WHERE [id] WITHIN 10"
CUT = [{"ts": ts, "type": type_, "id": id_} for ts, type_, id_ in [(1, "A", 1), (4, "A", 2), (5, "B", 2), (8, "A", 3)]]
LATER = [{"ts": 13, "type": "B", "id": 3}]
PLACES = ("whole", "set", "watermark", "set with a watermark", "rules", "budget", "pushed")


def beginning(world: RichWorld, number: int) -> RichWorld:
    """The first events of a world."""
    return world_of(world.query, world.rows[:number])


def late_enough(piece: RichWorld, matches: dict[Binding, int], *, by_last: bool) -> set[Binding]:
    """The matches whose first event, or last one, is a window before the last event of all."""
    last, window = piece.rows[-1]["ts"], piece.query.window.amount
    return {bound for bound in matches if last > piece.rows[bound[-by_last][0]]["ts"] + window}


@pytest.mark.filterwarnings("ignore::acep_approx.UnseenTypeWarning")
@pytest.mark.parametrize("chooses", [False, True])
def test_what_later_events_may_change_is_not_put_out(chooses: bool) -> None:
    """A piece of a random stream, and the rest of it as one way to go on."""
    seen = 0
    for seed in range(WORLDS):
        whole = rich_world(Random(seed), chooses)
        try:
            query = compile_query(whole.text)
        except (QueryError, UnsupportedError):
            continue
        if not whole.rows or not (query.plan.walks_maximal or (query.plan.registers and query.plan.registers.waits)):
            continue
        piece = beginning(whole, Random(seed).randint(1, len(whole.rows)))
        all_of_piece, all_of_whole = (reported_matches(it.query, it.rows, it.expected()) for it in (piece, whole))
        matches = query.match(piece.table(), ended=False)
        found = bindings(matches.to_arrow(), piece.query)
        assert found.items() <= all_of_piece.items(), whole
        assert found.items() <= all_of_whole.items(), whole
        assert len(found) + matches.unclosed == len(all_of_piece), whole
        numbers = counted(matches.counts())  # these wait until all matches of their event are known
        assert numbers.items() <= per_point(found).items(), whole
        assert {row for row, _ in numbers} == set(matches.points()["row"].to_pylist()), whole
        if not query.plan.is_count_window:
            assert late_enough(piece, all_of_piece, by_last=chooses) <= found.keys(), whole
            assert {bound[-1][0] for bound in late_enough(piece, all_of_piece, by_last=True)} <= {
                row for row, _ in numbers
            }, whole
        seen += matches.unclosed > 0
    assert seen > WORLDS / 100, "worlds of another kind"


def found_by(place: str, rows: list[dict[str, object]], *, ended: bool) -> tuple[list[object], int]:
    """The keys of the matches of a query, and how many wait, by different programs."""
    query = compile_query(ABSENCE)
    if place == "whole":
        matches = query.match(rows, ended=ended)
        return matches.to_arrow()["id"].to_pylist(), matches.unclosed
    if place == "budget":
        within = query.match_within(rows, "100%", full_work=100, ended=ended)
        return within.to_arrow()["id"].to_pylist(), within.unclosed
    if place.startswith("set"):
        desk = QuerySet(**({"watermark": 3} if "watermark" in place else {}))
        desk.add(ABSENCE, id="q")
        found = desk.match(rows, ended=ended)["q"]
        assert desk.standing_in_match.unclosed == 0 or not ended
        return found["id"].to_pylist(), desk.standing_in_match.unclosed
    if place == "rules":
        run = compile_rules(f"RULE r ON {ABSENCE}").start()
        tables = [run.push(rows)["r"], run.finish(ended=ended)["r"]]
        return [id_ for table in tables if table.num_columns for id_ in table["id"].to_pylist()], run.unclosed
    matcher = query.matcher(watermark=3) if place == "watermark" else query.matcher()
    tables = [matcher.push(rows), matcher.finish(ended=ended)]
    return [id_ for table in tables if table.num_columns for id_ in table["id"].to_pylist()], matcher.unclosed


@pytest.mark.parametrize("place", PLACES)
def test_programs(place: str) -> None:
    """The window of the first A closes before the last event, that of the last A does not."""
    assert found_by(place, CUT, ended=True) == ([1, 3], 0)
    assert found_by(place, CUT, ended=False) == ([], 2)
    assert found_by(place, [*CUT, *LATER], ended=False) == ([1], 0)
    assert found_by(place, [*CUT, {"ts": 30, "type": "C", "id": 9}], ended=False) == ([1, 3], 0)


def test_a_query_that_reads_another_one() -> None:
    """The window of what it reads is over when the last event of the stream has come."""
    for ended, expected in ((True, [3, 1]), (False, [1])):
        desk = QuerySet()
        desk.add(f"{ABSENCE} RETURN a.id AS who", id="base")
        found = desk.match([*CUT, {"ts": 12, "type": "C", "id": 9}], ended=ended)["base"]
        assert sorted(found["who"].to_pylist()) == sorted(expected)


def test_all_matches_of_found_points_are_those_of_a_stream_that_ends() -> None:
    with pytest.raises(UsageError, match="ACEP-U151"):
        compile_query(ABSENCE).match_within(CUT, "9 runs", ended=False).expanded()


@pytest.mark.parametrize("query", ["MAXIMAL", "NON OVERLAP", "FIRST MATCH", "ERRORS 1 MAXIMAL"])
def test_choices(query: str) -> None:
    text = f"PATTERN SEQ(A{{1,9}} a, C c, ~(B n)) WITHIN 10 {query}"
    rows = [{"ts": ts, "type": type_} for ts, type_ in [(1, "A"), (2, "A"), (3, "C"), (20, "A"), (21, "C")]]
    matches = compile_query(text).match(rows, ended=False)
    found, waits = matches.to_arrow(), matches.unclosed
    assert max(found["end"].to_pylist(), default=None) == 3
    assert found.num_rows + waits == compile_query(text).match(rows).to_arrow().num_rows


def test_the_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("cut.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in CUT))
    Path("queries").mkdir()
    Path("queries/q.acep").write_text(ABSENCE)
    Path("r.acep").write_text(f"RULE r ON {ABSENCE}")
    waiting = "2 matches wait for their window to close, since more events may follow (--open-end)"
    for how in (["run", ABSENCE], ["run", "r.acep"], ["run", "--queries", "queries"]):
        done = acep(*how, "cut.jsonl", "--open-end")
        assert done.stdout == ""
        assert waiting in done.stderr
        assert len(acep(*how, "cut.jsonl").stdout.splitlines()) == 2
    for more in (["--watermark", "3"], ["--output", "count"], ["--follow", "--until-idle", "0 s"]):
        assert waiting in acep("run", ABSENCE, "cut.jsonl", "--open-end", *more).stderr
    points = acep("run", ABSENCE, "cut.jsonl", "--open-end", "--output", "points", "--limit", "9")
    assert points.stdout == ""
    assert "2 points wait for their window" in points.stderr
    refused = "--budget 9runs --expand", "--emit early", "--follow --checkpoint c --finish"
    for more in map(str.split, refused):
        assert "ACEP-U151" in acep("run", ABSENCE, "cut.jsonl", "--open-end", *more, code=2).stderr
