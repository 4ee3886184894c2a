"""Rules through the engine, in any split and over restarts, held against brute force.

What the engine calls its columns and counters is said here, once.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field
from itertools import groupby
from random import Random
from typing import Any

import pyarrow as pa

from acep_approx import RuleSet, compile_rules
from acep_approx.errors import RuleError, UnsupportedError
from acep_approx.query.rules.named_events import is_late, reads_of_query
from acep_approx.query.rules.syntax import Call, Rule, Table
from acep_approx.query.shape import atoms, kleene_variables, negated_variables
from tests.naive_writes import Called, Change, Outcome, RuleMatch
from tests.rule_worlds import RuleWorld

DRIVERS = ("auto", "stepping")
Row = dict[str, Any]


@dataclass
class Found:
    """What came of a run, in plain Python: matches, changes and calls in their order, the tables in that of keys."""

    matches: dict[str, list[Row]] = field(default_factory=dict)
    changes: dict[str, list[Row]] = field(default_factory=dict)
    calls: list[Row] = field(default_factory=list)
    store: dict[str, list[Row]] = field(default_factory=dict)
    counters: dict[str, int] = field(default_factory=dict)
    failure: tuple[int | None, str] | None = None
    ids: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Way:
    """How a world is run: where its batches end, by which driver, and over restarts if there are dice."""

    name: str
    driver: str
    cuts: tuple[int, ...] = ()
    dice: Random | None = None


# --- the engine -------------------------------------------------------------------------------------------------------


class RunUnderTest:
    """A run of the engine that gets batches, and is taken up from its state now and then if there are dice."""

    def __init__(self, world: RuleWorld, rules: RuleSet, way: Way) -> None:
        self.world, self.rules, self.dice = world, rules, way.dice
        self.made: list[tuple[Any, ...]] = []
        actions = [action for rule in world.file.rules for action in rule.actions]
        self.calls = {action.name: self.make for action in actions if isinstance(action, Call)}
        self.run = rules.start(store=world.store(), calls=self.calls, driver=way.driver)
        self.found = Found(
            {rule.name: [] for rule in world.file.rules}, {table.name: [] for table in world.file.tables}
        )

    def make(self, call: Any) -> None:
        """What CALL does."""
        self.made.append((call.rule, call.name, call.time, call.row, list(call.arguments)))

    def push(self, batch: pa.Table) -> None:
        """One more batch."""
        self.take(self.run.push(batch))
        if self.dice is not None and self.dice.random() < 0.4:
            self.run = self.rules.from_state(self.run.state_bytes(), calls=self.calls)

    def finish(self) -> None:
        """The end of the stream."""
        self.take(self.run.finish())

    def take(self, out: Any) -> None:
        """Keep what a push gave."""
        for rule in self.world.file.rules:
            if rule.name in out:
                self.found.matches[rule.name] += match_rows(out[rule.name], rule)
        for name, changes in out.changes.items():
            self.found.changes[name] += changes.to_pylist()
        for call in out.calls.to_pylist():
            self.found.ids.append(call.pop("id"))
            self.found.calls.append(call | {"arguments": json.loads(call["arguments"])})

    def end(self) -> Found:
        """What came of it all."""
        for table in self.world.file.tables:
            self.found.store[table.name] = in_order(table, self.run.store[table.name].to_arrow().to_pylist())
        self.found.counters = {name: self.run.counters[name] for name in ("conflicts", "without_row")}
        assert self.made == [tuple(call.values()) for call in self.found.calls], "calls are made as they are listed"
        return self.found


def found_by(world: RuleWorld, rules: RuleSet, way: Way) -> Found:
    """What the engine gives for some batches and the end."""
    test = RunUnderTest(world, rules, way)
    try:
        for batch in world.batches(way.cuts):
            test.push(batch)
        test.finish()
    except RuleError as error:
        test.take(error.outcome)
        test.found.failure = (error.row, error.rule)
    return test.end()


def in_order(table: Table, rows: list[Row]) -> list[Row]:
    """Rows in the order of their keys."""
    return sorted(rows, key=lambda row: [row[name] for name in table.key])


def match_rows(table: pa.Table, rule: Rule) -> list[Row]:
    """Matches without what only names their partition and what is missing."""
    others = {"missing", "span", "position", *(equivalence.name for equivalence in rule.query.equivalences)}
    names = {output.name for output in rule.query.outputs} or variables(rule)
    if rule.each == "point":
        names, others = {"row"}, {*others, *(("start",) if rule.query.window.unit == "events" else ())}
    kept = [name for name in table.column_names if name in names or name not in others]
    return [{name: without_nan(row[name]) for name in kept} for row in table.to_pylist()]


def without_nan(value: Any) -> Any:
    """NULL for what is no number."""
    return None if isinstance(value, float) and math.isnan(value) else value


def variables(rule: Rule) -> set[str]:
    """The variables that bind events."""
    return {atom.variable for atom in atoms(rule.query.pattern)} - negated_variables(rule.query.pattern)


# --- the oracle -------------------------------------------------------------------------------------------------------


def expected_of(world: RuleWorld) -> Found:
    """What the oracle says, as the engine writes it."""
    outcome: Outcome = world.expected
    rules = {rule.name: rule for rule in world.file.rules}
    tables = {table.name: table for table in world.file.tables}
    found = Found(failure=outcome.failure)
    for name, matches in outcome.matches.items():
        made = expected_points if rules[name].each == "point" else expected_matches
        found.matches[name] = made(world, rules[name], matches)
    for name, table in tables.items():
        rows = [dict(zip(table.key, key, strict=True)) | row for key, row in outcome.store[name].items()]
        found.store[name] = in_order(table, rows)
        found.changes[name] = [expected_change(world, change) for change in outcome.changes if change.table == name]
    found.calls = [expected_call(call) for call in outcome.calls]
    found.counters = {"conflicts": outcome.conflicts, "without_row": outcome.without_row}
    return found


def expected_matches(world: RuleWorld, rule: Rule, matches: list[RuleMatch]) -> list[Row]:
    """Matches as rows."""
    found = []
    for match in matches:
        row = expected_match(world, rule, match)
        if rule.query.outputs:
            row |= dict(zip([output.name for output in rule.query.outputs], match.returned, strict=True))
        for variable in () if rule.query.outputs else variables(rule):
            events = [event for event, one in match.bound if one == variable]
            row[variable] = events if variable in kleene_variables(rule.query.pattern) else (events or [None])[0]
        found.append(row)
    return found


def expected_points(world: RuleWorld, rule: Rule, matches: list[RuleMatch]) -> list[Row]:
    """The events that complete matches: each with the match that acts for it, or the first one if none does."""
    found = []
    for row, group in groupby(matches, key=lambda match: match.row):
        of_row = sorted(group, key=lambda match: (not match.fired, match.errors, -world.rows[match.bound[0][0]]["ts"]))
        found.append(expected_match(world, rule, of_row[0]) | {"row": row})
        if rule.query.window.unit == "events":  # points of such windows may say how many events ago they start
            del found[-1]["start"]
    return found


def expected_match(world: RuleWorld, rule: Rule, match: RuleMatch) -> Row:
    """What a match and a point both say."""
    start, end = (world.rows[match.bound[place][0]]["ts"] for place in (0, -1))
    fired = {"fired": match.fired} if rule.when is not None else {}
    return {"errors": match.errors, "start": start, "end": end} | fired


def expected_change(world: RuleWorld, change: Change) -> Row:
    """A change as a row."""
    (table,) = [table for table in world.file.tables if table.name == change.table]
    after = dict.fromkeys([column.name for column in table.values]) if change.after is None else dict(change.after)
    key = dict(zip(table.key, change.key, strict=True))
    return {"time": change.time, "row": change.row, "rule": change.rule, "op": change.op} | key | after


def expected_call(call: Called) -> Row:
    """A call as a row, without its id."""
    return {
        "rule": call.rule,
        "name": call.name,
        "time": call.time,
        "row": call.row,
        "arguments": list(call.arguments),
    }


# --- both -------------------------------------------------------------------------------------------------------------


def ways(world: RuleWorld, seed: int) -> list[Way]:
    """At once by one driver; in batches and over restarts by the other; event by event now and then."""
    driver, other = DRIVERS[seed % 2], DRIVERS[1 - seed % 2]
    found = [Way("at once", driver), Way("in batches", other, world.cuts, Random(seed))]
    if seed % 8 < 2:
        found.append(Way("one by one", driver, tuple(range(1, len(world.rows)))))
    return found


def disagreement(world: RuleWorld, seed: int = 0) -> str:
    """What the engine does otherwise than brute force says, however it is run; empty if nothing."""
    try:
        rules = compile_rules(world.text)
    except UnsupportedError as error:
        return "" if error.code == "ACEP-Q900" and may_be_refused(world) else f"{world.text}\n{error}"
    expected, ids = expected_of(world), None
    for way in ways(world, seed):
        found = found_by(world, rules, way)
        for what in ("failure", "store", "counters", "matches", "changes", "calls"):
            here, there = getattr(found, what), getattr(expected, what)
            if here != there:
                return told(world, way, what, here, there)
        ids = found.ids if ids is None else ids
        if len(set(ids)) != len(ids) or found.ids != ids:
            return told(world, way, "ids of calls", found.ids, ids)
    return ""


def may_be_refused(world: RuleWorld) -> bool:
    """Whether something in a world need not be understood: what queries need not, or a read as of another event."""
    queries = [rule.query for rule in world.file.rules]
    late = any(is_late(read, query) for query in queries for read in reads_of_query(query))
    return late or any(query.strategy == "skip_till_next_match" for query in queries)


def told(world: RuleWorld, way: Way, what: str, found: Any, expected: Any) -> str:
    """A world that fails, and how."""
    rows = "\n".join(map(str, world.rows))
    return f"{world.text}\n{rows}\n{dict(world.tables)}\n{way}: {what}\n{found}\nnot\n{expected}"
