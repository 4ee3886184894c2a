"""Why a key has no match, asked without a time: the first match, or the step that none of its events passed."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pytest

from acep_approx import UsageError, compile_query
from acep_approx.query.parser import parse
from acep_approx.why.result import NoMatch, Why
from tests.cases import cases
from tests.command_line import acep
from tests.naive import expected_matches

TEXT = "PATTERN SEQ(A a, B b, C c) WHERE [user] AND c.x > a.x WITHIN 4"
WORLDS = cases(2000, 59)


def stream(dice: Random) -> list[dict[str, Any]]:
    """Up to sixteen events of three users."""
    return [
        {"ts": ts, "type": dice.choice("ABCABCX"), "user": dice.choice("uuvw"), "x": dice.randrange(4)}
        for ts in sorted(dice.randrange(12) for _ in range(dice.randint(1, 16)))
    ]


def furthest(rows: list[dict[str, Any]], user: str) -> int:
    """The most events of the beginnings of the pattern that a user has, by brute force."""
    beginnings = [
        "PATTERN SEQ(A a) WHERE [user] WITHIN 4",
        "PATTERN SEQ(A a, B b) WHERE [user] WITHIN 4",
    ]
    mine = [row for row in rows if row["user"] == user]
    return sum(bool(expected_matches(parse(text), mine)) for text in beginnings)


def test_every_key_of_random_streams() -> None:
    """There is an answer for each; it is about the key alone, and its rows are those of the whole stream."""
    query, kinds = compile_query(TEXT), set()
    for seed in range(WORLDS):
        rows = stream(Random(seed))
        for user in sorted({row["user"] for row in rows}):
            found = {bound for bound in expected_matches(parse(TEXT), rows) if rows[bound[0][0]]["user"] == user}
            answer = query.why(rows, key=user)
            assert getattr(answer, "matched", False) == bool(found), (rows, user)
            shown = answer if isinstance(answer, Why) else answer.furthest
            kinds.add(answer.reason if isinstance(answer, NoMatch) else "matched")
            assert (shown is None) == (not furthest(rows, user)), (rows, user)
            if shown is None:
                continue
            assert {rows[event["row"]]["user"] for event in shown.events} <= {user}
            if isinstance(answer, NoMatch):
                assert user in answer.headline
                assert len(shown.events) >= min(furthest(rows, user), 1), (rows, user)
            else:
                first = min(bound[-1][0] for bound in found)
                assert shown.events[-1]["row"] == first
    assert kinds >= {"matched", "type", "order", "window", "together"}


def test_the_furthest_partial_match() -> None:
    """How far it came, what it waited for, and why it went no further."""
    rows = [(1, "A", "u"), (1, "A", "v"), (2, "B", "v"), (3, "C", "u"), (9, "C", "v")]
    events = [{"ts": ts, "type": type_, "user": user, "x": ts} for ts, type_, user in rows]
    told = str(compile_query(TEXT).why(events, key="v"))
    assert "no match of v: no C (c) comes after a and b of the same user within 4; they take at least 8" in told
    assert "no match of v at 1; the furthest partial match has 2 events" in told
    assert "waited for c (C): none came within the window" in told
    told = str(compile_query(TEXT).why(events, key="u"))
    assert "no match of u: 1 event is A (a), but no event is B (b)" in told


def test_a_query_that_looks_at_all_events_in_between() -> None:
    """What others did would be missing from what is said of one key: only a match is told of."""
    query = compile_query("PATTERN SEQ(A a, B b) WHERE strict_contiguity { [user] } WITHIN 5")
    came = [(1, "A", "u"), (2, "B", "u"), (3, "A", "v")]
    rows = [{"ts": ts, "type": type_, "user": user} for ts, type_, user in came]
    assert query.why(rows, key="u").matched  # type: ignore[union-attr]
    with pytest.raises(UsageError, match="ACEP-U130"):
        query.why(rows, key="v")


def test_the_command(tmp_path: Path) -> None:
    file = tmp_path / "events.csv"
    file.write_text("ts,type,user,host\n1,A,u,1\n2,B,u,2\n3,A,v,1\n4,B,v,1\n")
    query = "PATTERN SEQ(A a, B b) WHERE [user] AND [host] WITHIN 5"
    one = acep("why", query, str(file), "--key", "user=u", "--key", "host=1").stdout
    assert one.startswith("no match of u, 1: 1 event is A (a), but no event is B (b)\n")
    other = acep("why", query, str(file), "--key", "user=v", "--key", "host=1").stdout
    assert other.startswith("there is a match of v, 1 at 4, with 0 errors\n")
    assert "ACEP-U111" in acep("why", query, str(file), "--key", "user=v", code=2).stderr


def test_a_run_that_waits_for_late_events_is_asked_about_sorted_ones(tmp_path: Path) -> None:
    """The command that it prints works where the input is out of order."""
    file = tmp_path / "events.csv"
    file.write_text("ts,type\n5,A\n3,A\n20,B\n")
    said = acep("run", "PATTERN SEQ(A a, B b) WITHIN 5", str(file), "--watermark", "9").stderr
    shown = next(line for line in said.splitlines() if line.startswith("to see more: "))
    assert " --sort --around 5" in shown
    asked = ["PATTERN SEQ(A a, B b) WITHIN 5", str(file), "--around", "5"]
    assert "no match at 5" in acep("why", *asked, "--sort").stdout
    assert "ACEP-D007" in acep("why", *asked, code=4).stderr
