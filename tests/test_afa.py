"""Automata written by hand give what brute force gives: Definition 2 of the paper, with errors and timeouts."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import replace
from random import Random
from typing import Any

import pytest

from acep_approx import compile_query
from acep_approx.query.parser import parse
from tests.afa_pairs import PAIRS, Pair, stream_of, texts
from tests.afa_runs import OUTPUTS, agrees, agrees_in_any_split, compiled, expected_shown, shown, variables_of
from tests.afa_worlds import AfaWorld, afa_world, constructs
from tests.cases import FULL, cases
from tests.naive import expected_matches
from tests.naive_afa import afa_matches
from tests.runs_engine import MERGES
from tests.smaller_afa import holds_for

WORLDS, CHUNKS = cases(3000, 96), 12
ONE = os.environ.get("ACEP_WORLD")
REFUSED = 0.15
"""No larger share of the worlds may be refused."""

# --- random machines --------------------------------------------------------------------------------------------------


def holds_everywhere(world: AfaWorld, seed: int) -> str:
    """Whole, in any split, restarted, merged or not; why it is refused, or nothing.

    By default a world is merged or not, and gives one output in a split, in turn; all with ``ACEP_CASES=full``.
    """
    query = compiled(world)
    if isinstance(query, str):
        return query
    turn = seed // CHUNKS
    for merge in MERGES[:2] if FULL else [MERGES[turn % 2]]:
        agrees(world, query, merge)
    outputs = OUTPUTS if FULL else [OUTPUTS[turn % 3]]
    agrees_in_any_split(world, seed, query, Random(seed).choice(MERGES), outputs)
    return ""


@pytest.mark.parametrize("part", range(CHUNKS))
def test_listed_counted_and_detected_as_by_brute_force(part: int) -> None:
    """Matches, counts and points of random machines on random streams. ``ACEP_WORLD=7`` repeats one."""
    refused: Counter[str] = Counter()
    seeds = (range(WORLDS) if ONE is None else [int(ONE)])[part::CHUNKS]
    for seed in seeds:
        try:
            holds_for(afa_world(seed), lambda world, seed=seed: refused.update([holds_everywhere(world, seed)]))
        except Exception as error:
            error.add_note(f"repeat it: ACEP_WORLD={seed} pytest tests/test_afa.py")
            raise
    assert refused.total() - refused[""] <= REFUSED * len(seeds), refused


def test_worlds_hold_what_they_should() -> None:
    """Some hundred of them: every construct, matches with errors, and worlds in which several rows are found."""
    seen: Counter[str] = Counter()
    for seed in range(300):
        world = afa_world(seed)
        seen.update(constructs(world.query))
        found = world.expected()
        seen["some"] += len(found) > 1
        seen["with errors"] += any(found.values())
        seen["same events, other values"] += len({row._replace(values=()) for row in found}) < len(found)
    least = {
        "epsilon": 30,
        "timeout": 30,
        "IGNORE": 80,
        "IGNORE ON WHEN": 20,
        "IGNORE by registers": 20,
        "IGNORE OTHERWISE": 60,
        "RETURN": 100,
        "functions": 30,
    }
    least |= {f"{kind} register": 40 for kind in ("int", "float", "text", "truth")}
    least |= {"self-loop": 100, "back to the start": 50, "final goes on": 80, "unnamed": 80, "silent set": 30}
    least |= {"k = 1": 50, "k = 2": 8, "weights": 50, "events": 60, "2 keys": 20, "some": 150, "with errors": 40}
    least |= {"Aggregate": 50, "RegisterValue": 40, "Attribute": 20, "same events, other values": 5}
    assert not {what: (seen[what], times) for what, times in least.items() if seen[what] < times}


# --- a query and the machine that says the same -----------------------------------------------------------------------


@pytest.mark.parametrize("pair", [pytest.param(pair, id=pair.name) for pair in PAIRS])
def test_a_query_and_the_machine_that_says_the_same(pair: Pair) -> None:
    """Two oracles and two ways through the engine: the same rows, but for the order of those that end at one event."""
    query_text, machine_text = texts(pair)
    query, machine = compile_query(query_text), compile_query(machine_text)
    several = 0
    for seed in range(100):
        if seed >= cases(100, 7) and several > 2:
            break
        rows = stream_of(seed, 18)
        world = AfaWorld(parse(machine_text), machine_text, rows)
        one, other = (found.match(world.table()).to_arrow().to_pylist() for found in (query, machine))
        assert Counter(map(as_row, one)) == Counter(map(as_row, other)), (seed, rows)
        assert [row["end"] for row in one] == [row["end"] for row in other]
        assert query.match(world.table()).counts().to_pylist() == machine.match(world.table()).counts().to_pylist()
        assert query.match(world.table()).points().to_pylist() == machine.match(world.table()).points().to_pylist()
        several += len(one) > 1
        if not world.query.selection.depends_on_order:
            agrees(replace(world, rows=rows[:10]), machine)
    assert several > 2


@pytest.mark.parametrize("pair", [pytest.param(pair, id=pair.name) for pair in PAIRS])
def test_both_oracles_agree(pair: Pair) -> None:
    """Brute force over all ways to bind events, and Definition 2."""
    query_text, machine_text = texts(pair)
    query, machine = parse(query_text), parse(machine_text)
    for seed in range(cases(300, 20)):
        rows = stream_of(seed, 10)
        assert afa_matches(machine, rows) == expected_matches(query, rows), (seed, rows)


def as_row(row: dict[str, Any]) -> tuple[tuple[str, Any], ...]:
    """A row of matches that can be counted; of equal ways to miss events either may be told."""
    kept = ((name, value) for name, value in row.items() if name != "missing")
    return tuple(sorted((name, tuple(v) if isinstance(v, list) else v) for name, v in kept))


# --- the examples of the paper ----------------------------------------------------------------------------------------

V_PATTERNS = """PATTERN AUTOMATON (
  REGISTERS level = 0, patterns = 0
  q0 -> q1 ON Tick t WHEN t.change < -0.25
  q1 -> q1 ON Tick t WHEN t.change < 0 SET level = level + 1
  q1 -> q2 ON Tick t WHEN t.change < 0 SET level = level + 1
  q2 -> q2 ON Tick t WHEN t.change > 0 SET level = level - 1
  q2 -> q1 ON Tick t WHEN t.change > 0 AND patterns + 1 < 2 SET level = level - 1, patterns = patterns + 1
  q2 -> q3 ON Tick t WHEN t.change > 0 AND patterns + 1 = 2 AND level = 1 SET level = 0, patterns = 2
  FINAL q3
) WITHIN 6"""
CHANGES = {1: -0.5, 2: -0.1, 3: -0.1, 4: 0.1, 5: 0.1, 6: -0.1, 7: 0.1, 8: 0.1}
"""Figure 2: a large drop, then down, down, up, up, down (e8, which comes last), up (e6), and e7, out of the window."""


def ticks(*times: int) -> list[dict[str, Any]]:
    return [{"ts": t, "type": "Tick", "change": CHANGES[t], "id": t} for t in times]


def test_example_3() -> None:
    """Two V-patterns with as many upticks as downticks: e1 to e5, e8, e6."""
    rows = ticks(*range(1, 9))
    found = compile_query(V_PATTERNS).match(rows).to_arrow().to_pylist()
    assert [row["t"] for row in found] == [[0, 1, 2, 3, 4, 5, 6]]
    (row,) = compile_query(f"{V_PATTERNS} RETURN level, patterns, count(t[]) AS n").match(rows).to_arrow().to_pylist()
    assert (row["level"], row["patterns"], row["n"], row["start"], row["end"]) == (0, 2, 7, 1, 7)
    assert compile_query(V_PATTERNS).match(ticks(1, 2, 3, 4, 5, 7, 8)).to_arrow().num_rows == 0


def test_example_5() -> None:
    """The event e8 comes late, and completes the match at e6, which came before it; taken back, the match goes."""
    matcher = compile_query(V_PATTERNS).matcher(emit="early", id="id", op="op")
    for row in ticks(1, 2, 3, 4, 5, 7, 8):
        assert matcher.push([{**row, "op": "+I"}]).num_rows == 0
    late = ticks(6)[0]
    (found,) = matcher.push([{**late, "op": "+I"}]).to_pylist()
    assert (found["op"], found["t"], found["end"]) == ("+I", [1, 2, 3, 4, 5, 6, 7], 7)
    (gone,) = matcher.push([{**late, "op": "-D"}]).to_pylist()
    assert (gone["op"], gone["t"], gone["match_id"]) == ("-D", found["t"], found["match_id"])
    assert matcher.finish().num_rows == 0


# --- by hand ----------------------------------------------------------------------------------------------------------


def rows_of(text: str) -> list[dict[str, Any]]:
    """Events one tick apart: ``A1 B C0`` are their types and x."""
    return [
        {"ts": ts, "type": word[0], "x": int(word[1:]) if word[1:] else None, "y": None, "s": None, "g": "p"}
        for ts, word in enumerate(text.split())
    ]


@pytest.mark.parametrize(
    ("machine", "clauses", "events", "expected"),
    [
        ("a -> b ON A v  b -> c ON B v  FINAL c", "WITHIN 9", "A B C A C B", {("v", (0, 1))}),
        ("a -> b ON A v  b -> c ON B v  IGNORE b ON C  FINAL c", "WITHIN 9", "A C B A D B", {("v", (0, 2))}),
        ("a -> b ON A v  b -> b ON B  b -> c ON C w  FINAL c", "WITHIN 9", "A B B C", {("v", (0,)), ("w", (3,))}),
        ("a -> b ON A v  b -> c TIMEOUT  IGNORE b  FINAL c", "WITHIN 1", "A B C", {("v", (0,))}),
        ("a -> b ON A v  b -> c TIMEOUT  FINAL c", "WITHIN 1", "A B C", set()),
        (
            "a -> b ON A v  b -> c ON B v WHEN x > 1  IGNORE b OTHERWISE  FINAL c",
            "WITHIN 9",
            "A B C B2 B3",
            {("v", (0, 3))},
        ),
        (
            "a -> b ON A v  b -> c TIMEOUT  b -> c ON B  IGNORE b OTHERWISE  FINAL c",
            "WITHIN 1",
            "A C C A B",
            {("v", (0,)), ("v", (3,))},
        ),
        (
            "a -> b ON A v  b -> c EPSILON  b -> d ON B v  c -> d ON C v  IGNORE b OTHERWISE  FINAL d",
            "WITHIN 9",
            "A D C B C",
            {("v", (0, 2)), ("v", (0, 3))},
        ),
        (
            "a -> b ON A v  b -> c ON B w  c -> d ON C u  FINAL d",
            "WITHIN 9 ERRORS 1",
            "A C",
            {("v", (0,)), ("u", (1,))},
        ),
    ],
)
def test_small_machines(machine: str, clauses: str, events: str, expected: set[Any]) -> None:
    """What the oracle says of them can be seen; the engine says the same."""
    text = f"PATTERN AUTOMATON ({machine}) {clauses}"
    world = AfaWorld(parse(text), text, tuple(rows_of(events)))
    found = world.expected()
    assert {part for row in found for part in row.bound if part[1]} == expected
    query = compile_query(text)
    table = query.match(world.table()).to_arrow()
    assert shown(table, world.query) == expected_shown(found, world.rows, world.query)
    assert set(variables_of(world.query)) <= set(table.column_names)
