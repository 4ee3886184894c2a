"""Every output says the same, on streams long enough for pools to grow and for runs to leave their windows.

Brute force cannot follow here. What it can check, small worlds, is in ``test_runs_oracle``; here outputs and ways to
merge are held against each other, and what a budget finds against what there is.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from acep_approx import Query, compile_query
from acep_approx.errors import AcepError
from acep_approx.query.parser import parse
from acep_approx.query.printer import to_text
from acep_approx.query.syntax import Window
from tests.cases import FULL
from tests.match_tables import bindings, counted, least, per_point
from tests.naive import match_points
from tests.rich_worlds import Dice, pattern_query
from tests.runs_engine import MERGES, pushed

MOST = 20_000
"""Matches of a world; those that have more are left out."""
COMPARED = ("<>", "<>", ">", "<", ">=", "<=", "=")


def stream(dice: Random, events: int) -> pa.Table:
    """Some ticks apart or at one time; a few types, more of the first ones; values that are equal now and then."""
    ticks = sorted(dice.randrange(2 * events) for _ in range(events))
    rows = [
        {
            "ts": tick,
            "type": dice.choice("AAAABBBCCD"),
            "x": dice.choice((None, *range(30))),
            "y": dice.choice((float("nan"), 0.5, 1.0, 2.5, 7.0)),
            "s": dice.choice(("u", "v", "w", None)),
            "g": dice.choice("ppq"),
        }
        for tick in ticks
    ]
    kinds = {"ts": pa.int64(), "type": pa.string(), "x": pa.int64(), "y": pa.float64(), "s": pa.string()}
    return pa.Table.from_pylist(rows, pa.schema([*kinds.items(), ("g", pa.string())]))


def comparing(dice: Random) -> str:
    """A sequence whose events are compared with each other, as fronts of runs, and indexes, are made for."""
    length = dice.choice((2, 3, 4, 5))
    names = "abcde"[:length]
    parts = [f"{kind} {name}" for name, kind in zip(names, sorted(dice.choices("AABBCD", k=length)), strict=True)]
    if dice.randrange(4) == 0:
        parts.insert(dice.randrange(1, length), "~(D n)")
    conditions = []
    for _ in range(dice.choice((0, 1, 2, 3, 4))):
        one, other = dice.sample(names, 2)
        right = f"{other}.x" if dice.randrange(4) else f"{other}.x + {dice.choice(names.replace(one, ''))}.y"
        conditions.append(f"{one}.x {dice.choice(COMPARED)} {right}")
    before = dice.sample(names[:-1], min(dice.choice((0, 0, 1, 2)), length - 1))
    conditions += [f"{names[-1]}.x {dice.choice('<>')} {other}.x" for other in before]
    conditions += ["[g]"] * (not conditions or dice.randrange(4) == 0)
    window = f"{dice.choice((20, 60, 150, 300))}{dice.choice(('', '', ' events'))}"
    errors = dice.choice(("", "", " ERRORS 1")) if length > 2 else ""
    return f"PATTERN SEQ({', '.join(parts)}) WHERE {' AND '.join(conditions)} WITHIN {window}{errors}"


def tied(text: str) -> str:
    """The same query with SIMULTANEOUS, in a quarter of its window."""
    query = parse(text)
    window = Window(max(query.window.amount // 4, 1), "ticks")
    return to_text(replace(query, is_simultaneous=True, window=window))


def world(seed: int, *, is_tied: bool = False) -> tuple[Query, pa.Table] | None:
    """A query with a long stream; None: it has too many matches, or the runs engine cannot run it."""
    dice = Random(seed)
    if dice.randrange(3):
        text = comparing(dice)
    else:
        tree = pattern_query(Dice(dice), chooses=False)
        if tree is None:
            return None
        text = to_text(tree)
    try:
        query = compile_query(tied(text) if is_tied else text, engine="runs")
    except AcepError:
        return None
    events = stream(dice, dice.choice((60, 200, 500)))
    if is_tied:  # two events at most times
        events = events.set_column(0, "ts", pa.array([tick // 4 for tick in events["ts"].to_pylist()]))
    if query.match(events, limit=MOST + 1).to_arrow().num_rows > MOST:
        return None
    return query, events


def rows_of(table: pa.Table) -> list[dict[str, Any]]:
    """The rows; not a number as a text, which is equal to itself."""
    return [{name: str(value) for name, value in row.items()} for row in table.to_pylist()]


Best = dict[int, tuple[int, int, list[str]]]


def best_listed(matches: pa.Table, expected: dict[Any, int]) -> Best:
    """Per match point the least err, the latest start at that, and what is missing of the first such match."""
    found: Best = {}
    for bound, match in zip(expected, matches.to_pylist(), strict=True):
        row, mine = bound[-1][0], (expected[bound], -match["start"], match["missing"])
        if row not in found or mine[:2] < found[row][:2]:
            found[row] = mine
    return found


def best(points: pa.Table) -> Best:
    """What ``best_listed`` must give."""
    return {row["row"]: (row["errors"], -row["start"], row["missing"]) for row in points.to_pylist()}


def outputs_agree(seed: int, *, is_tied: bool = False) -> int:
    """All outputs of a world; returns how many matches there are, -1 where the world is left out."""
    made = world(seed, is_tied=is_tied)
    if made is None:
        return -1
    query, events = made
    dice = Random(seed)
    whole = query.match(events).to_arrow()
    expected = bindings(whole, query.syntax)
    for merge in MERGES:
        matches = query.match(events, merge=merge)
        assert rows_of(matches.to_arrow()) == rows_of(whole), merge
        points = matches.points()
        assert least(points) == match_points(expected), merge
        if query.syntax.window.unit == "ticks":
            assert best(points) == best_listed(whole, expected), merge
        assert counted(matches.counts()) == per_point(expected), merge
    if not query.plan.registers.needs_filter:
        spelled = query.match(events).compressed().expand()
        if not query.plan.registers.has_late_ends:
            assert rows_of(spelled) == rows_of(whole)
    merge, output = dice.choice(MERGES), dice.choice(("matches", "points", "counts"))
    cuts = sorted(dice.randint(0, len(events)) for _ in range(dice.randrange(6)))
    batches = [events.slice(i, j - i) for i, j in zip([0, *cuts], [*cuts, len(events)], strict=True)]
    parts = pushed(query, batches, output, merge, dice)
    assert rows_of(parts) == rows_of(pushed(query, [events], output, merge, None))
    budgeted_are_true(query, events, expected, dice)
    return len(expected)


def budgeted_are_true(query: Query, events: pa.Table, expected: dict[Any, int], dice: Random) -> None:
    """What a budget buys are matches, match points and counts of the exact answer."""
    budget = f"{dice.choice((1, 3, 10, 40))} {dice.choice(('runs', 'steps/event'))}"
    policy, audit = dice.choice(("random", "oldest", "most-advanced")), dice.choice((0, 0.05))
    some = query.match_within(events, budget, policy=policy, audit=audit, seed=dice.randrange(9))
    points = match_points(expected)
    assert bindings(some.to_arrow(), query.syntax).keys() <= expected.keys(), budget
    assert least(some.points()).keys() <= points.keys(), budget
    exact = per_point(expected)
    per_row = {row: sum(n for (at, _), n in exact.items() if at == row) for row in points}
    for row in some.counts().to_pylist():
        assert row["matches"] <= per_row[row["row"]], budget


SEEDS = range(240) if FULL else range(8, 16)
"""Most of the few have many matches."""


@pytest.mark.parametrize("part", range(4))
def test_all_outputs_agree_on_long_streams(part: int) -> None:
    """Lists, points, counts and compressed matches; merged in any way, in any split; inside a budget none is false."""
    seen = [outputs_agree(seed) for seed in SEEDS[part::4]]
    assert sum(matches > 50 for matches in seen) >= max(len(seen) // 4, 1)


@pytest.mark.parametrize("part", range(2))
def test_all_outputs_agree_where_events_at_one_time_do_not_follow_one_another(part: int) -> None:
    """The same with SIMULTANEOUS: pools grow, runs leave and batches end within a time."""
    seen = [outputs_agree(seed, is_tied=True) for seed in SEEDS[part::2]]
    assert sum(matches > 50 for matches in seen) >= max(len(seen) // 4, 1)
