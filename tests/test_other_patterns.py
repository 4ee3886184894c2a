"""A pattern need be no tree of the query language: what is asked about it is asked of the automaton."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest

from acep_approx import compile_query
from acep_approx.api.matcher import Matcher
from acep_approx.api.query import Query
from acep_approx.automaton.words import strategy_of
from acep_approx.errors import UnseenTypeWarning
from acep_approx.training.history_graph import HistoryGraph
from tests.machine_runs import bindings
from tests.machine_worlds import MachineWorld, machine_world, stream

PACKAGE = Path(__file__).parents[1] / "acep_approx"
MAY_ASK = {
    "automaton/compile.py": "makes the automaton of a tree",
    "automaton/machine.py": "makes the automaton of one that is written by hand",
    "automaton/resolve.py": "the conditions of a tree, for the compiler",
    "automaton/registers.py": "places them",
    "planning/planner.py": "chooses the compiler, and refuses what no engine can do",
    "planning/growing.py": "asks which variables each match has, and whose events no other one takes",
    "planning/many_matches.py": "asks which repetitions and errors multiply matches",
    "matching/outputs/bind.py": "names the columns that a query asks of each of its variables",
    "planning/explain.py": "writes the text of a query in CEL down, which is its pattern",
    "revisions/request.py": "refuses what asks for the start of a partition",
    "rules/compiled.py": "makes the tree of a rule's query, with columns in the places of reads",
    "rules/apart.py": "asks whether each event is a match of its own",
    "rules/losses.py": "asks for negations: runs that are lost may then have kept others from matching",
    "rules/unsure.py": "asks for what keeps a match from being known: negations, and what may be passed over",
    "rules/lockstep/eligible.py": "asks whether an event can complete several matches",
    "subscriptions/graph.py": "refuses in a set what a set cannot run",
    "subscriptions/templates/template.py": "chooses which queries may share an automaton",
    "why/answer.py": "asks what a query with another pattern, or strategy, would find",
    "why/waiting.py": "asks which negations are of sequences",
    "why/no_match.py": "makes such queries, and asks how many events a match of one with more errors has",
    "profiling/more_queries.py": "makes other queries of the types of the first one",
    "results/explorer/explore.py": "names the variables of a query in the order of its text",
}
"""Who may look into the pattern of a query, or ask for its strategy, beside the language itself."""


def some_world() -> MachineWorld:
    """A random machine that has all there is, and finds something in a longer stream."""
    for seed in range(1000):
        world = machine_world(Random(seed))
        steps, ignores = world.machine.steps, world.machine.ignores
        kills = any(step.target is None for step in steps)
        ends_at_once = any(final.state == 1 for final in world.machine.automaton.finals)
        if kills and not ends_at_once and any(ignore.letters for ignore in ignores) and len(world.expected()) > 2:
            return replace(world, rows=long_stream(Random(seed), 400))
    raise AssertionError("no such machine")


def long_stream(random: Random, length: int) -> tuple[dict[str, Any], ...]:
    """So many events, or some more."""
    rows: list[dict[str, Any]] = []
    while len(rows) < length:
        begin = rows[-1]["ts"] if rows else 0
        rows += [{**row, "ts": begin + row["ts"]} for row in stream(random)]
    return tuple(rows)


def test_who_asks_about_a_pattern_asks_the_automaton() -> None:
    """Only what makes automata of trees, and what makes other trees, looks into the tree."""
    asks = re.compile(r"\bquery\.(pattern|strategy)\b|\bsyntax\.(pattern|strategy)\b")
    found = {
        str(path.relative_to(PACKAGE))
        for path in PACKAGE.rglob("*.py")
        if "query" not in path.relative_to(PACKAGE).parts[:-1] and asks.search(path.read_text())
    }
    assert found == set(MAY_ASK)


def test_a_machine_is_listed_counted_explained_and_drawn() -> None:
    """All that a query can do that needs no text."""
    world = some_world()
    query = Query(world.plan())
    matches = query.match(world.table())
    expected = world.expected()
    assert len(matches) == len(expected)
    assert matches.points().num_rows == len({bound[-1][0] for bound in expected})
    assert sum(row["matches"] for row in matches.counts().to_pylist()) == len(expected)
    text = query.explain()
    assert "ignores" in text
    assert "computed" not in text  # registers have names
    data = json.loads(query.explain("json"))
    assert data["strategy"] is None
    assert len(data["ignores"]) == len(data["states"])
    assert any(arc["target"] is None for arc in data["arcs"])
    for drawing in ("mermaid", "dot"):
        assert "no more" in query.explain(drawing)


def test_runs_of_a_machine_that_complete_nothing_are_told() -> None:
    """Partial matches name the variables that could have come next, by the components of the automaton."""
    world = some_world()
    matcher = Matcher(world.plan(), output="partial")
    told = [*matcher.push(world.table()).to_pylist(), *matcher.finish().to_pylist()]
    names = set(world.machine.automaton.variables)
    assert any(row["awaited"] for row in told)
    assert all(set(row["awaited"]) <= names for row in told)


def test_a_machine_runs_inside_a_budget() -> None:
    """It learns what its runs are worth: half the work finds a part of the matches, all the work all of them."""
    world = some_world()
    query, expected = Query(world.plan()), world.expected()
    history = HistoryGraph(query).fit(world.table())
    part = bindings(query.match_within(world.table(), "50%", history=history).to_arrow())
    assert len(set(part)) == len(part)
    assert 0 < len(part) < len(expected)
    assert set(part) <= expected
    assert set(bindings(query.match_within(world.table(), "100%", policy="oldest").to_arrow())) == expected


def test_types_that_a_machine_asks_for_and_never_come_are_named() -> None:
    """By its components; the text of its pattern is not read."""
    world = some_world()
    components = tuple(replace(one, type="Zzz") for one in world.machine.automaton.components)
    machine = replace(world.machine, automaton=replace(world.machine.automaton, components=components))
    with pytest.warns(UnseenTypeWarning, match="Zzz"):
        len(Query(replace(world, machine=machine).plan()).match(world.table()))


def test_the_pattern_of_a_machine_is_its_text() -> None:
    """Its fingerprint follows its text, and printing the query prints it."""
    world = some_world()
    query = world.machine.query
    other = replace(query, pattern=replace(query.pattern, text="another machine"))
    plans = [replace(world, machine=replace(world.machine, query=one)).plan() for one in (query, other)]
    assert plans[0].fingerprint() != plans[1].fingerprint()
    assert str(Query(plans[1])).startswith("PATTERN another machine\n")


@pytest.mark.parametrize(
    ("strategy", "counted"),
    [
        ("skip_till_any_match", "nothing"),
        ("skip_till_next_match", "nothing"),
        ("partition_contiguity", "partition"),
        ("strict_contiguity", "stream"),
    ],
)
def test_strategies_are_ways_to_fill_what_states_ignore(strategy: str, counted: str) -> None:
    """The automaton itself says which strategy it follows."""
    query = compile_query(f"PATTERN SEQ(A a, B b) WHERE {strategy} {{ b.x > a.x }} WITHIN 5", engine="runs")
    registers = query.plan.registers
    assert registers is not None
    assert strategy_of(registers) == strategy
    assert registers.counted == query.plan.counted == counted
    assert any(step.inhibits for step in registers.steps) == (strategy != "skip_till_any_match")
