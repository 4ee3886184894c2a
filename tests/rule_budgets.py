"""Rules inside a load budget, held against brute force: what fired, what is certain, and what may have been missed.

What ran must be an exact run of the same rules in which some matches did not fire: the oracle is told which
(``Missed``). What is called certain must be in the exact answer.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from unittest.mock import patch

import pyarrow as pa

from acep_approx import compile_rules
from acep_approx.errors import RuleError, UnsupportedError
from acep_approx.query.rules.syntax import RuleFile
from acep_approx.rules.compiled import HIDDEN
from acep_approx.rules.firing import Firing
from tests.naive_reads import Reading
from tests.naive_rules import Run
from tests.naive_writes import Outcome, Row, RuleMatch
from tests.rule_runs import DRIVERS, expected_change
from tests.rule_worlds import RuleWorld

Name = tuple[Any, ...]
"""What a match binds; or the event that it ends with, where only match points are asked for."""


@dataclass
class Fired:
    """A match that the engine has found: whether it acts, and whether it is called certain."""

    name: Name
    row: int
    acts: bool
    certain: bool


@dataclass
class Noted:
    """What the engine has found, by rule; ``points`` are the rules of which only points are known."""

    matches: dict[str, list[Fired]] = field(default_factory=lambda: defaultdict(list))
    points: set[str] = field(default_factory=set)


@contextmanager
def noting() -> Iterator[Noted]:
    """Note what fires meanwhile."""
    noted, result = Noted(), Firing._result

    def note(firing: Firing, found: Any, acts: Any, certain: Any) -> pa.Table:
        name = firing.rule.name
        if not firing.rule.lists:
            noted.points.add(name)
        names = bindings(found.table) if firing.rule.lists else [(row,) for row in found.end.tolist()]
        columns = zip(names, found.end.tolist(), acts.tolist(), certain.tolist(), strict=True)
        noted.matches[name] += [Fired(*one) for one in columns]
        return result(firing, found, acts, certain)

    with patch.object(Firing, "_result", note):
        yield noted


def bindings(table: pa.Table) -> list[Name]:
    """What matches bind: rows with variables, in order."""
    columns = [name for name in table.column_names if name.startswith(HIDDEN) and not name.startswith(2 * HIDDEN)]
    found = []
    for row in table.select(columns).to_pylist():
        pairs = []
        for name, value in row.items():
            rows = value if isinstance(value, list) else [] if value is None else [value]
            pairs += [(one, name[1:]) for one in rows]
        found.append(tuple(sorted(pairs)))
    return found


class Missed(Run):
    """The oracle in which some matches do not fire: all but those that were noted."""

    def __init__(self, file: RuleFile, tables: Mapping[str, Sequence[Row]], noted: Noted) -> None:
        super().__init__(file, tables)
        self.points = noted.points
        self.kept = {name: {one.name for one in found} for name, found in noted.matches.items()}

    def reported(self, reading: Reading, matches: list[RuleMatch]) -> list[RuleMatch]:
        name = reading.rule.name
        kept = self.kept.get(name, set())
        return super().reported(reading, [match for match in matches if self.name_of(name, match) in kept])

    def name_of(self, rule: str, match: RuleMatch) -> Name:
        return (match.bound[-1][0],) if rule in self.points else tuple(sorted(match.bound))


def missing_of(world: RuleWorld, noted: Noted) -> Outcome:
    """What comes of a world where only what was noted fires."""
    run = Missed(world.file, world.tables, noted)
    run.push(list(world.rows))
    run.finish()
    return run.outcome


def not_as_if_missed(world: RuleWorld, noted: Noted, changes: Mapping[str, list[Row]]) -> str:
    """Why what ran is no exact run in which some matches did not fire; empty where it is one."""
    outcome = missing_of(world, noted)
    for rule in world.file.rules:
        engine = {one.name: one.acts for one in noted.matches[rule.name]}
        oracle: dict[Name, bool] = {}
        for match in outcome.matches[rule.name]:
            name = (match.bound[-1][0],) if rule.name in noted.points else tuple(sorted(match.bound))
            oracle[name] = oracle.get(name, False) or match.fired
        if engine != oracle:
            return f"{rule.name} has {engine}, the oracle {oracle}"
    for table in world.file.tables:
        wanted = [expected_change(world, change) for change in outcome.changes if change.table == table.name]
        if wanted != changes.get(table.name, []):
            return f"{table.name} has changes {changes.get(table.name)}, the oracle {wanted}"
    return ""


def not_certain(world: RuleWorld, noted: Noted) -> str:
    """What is called certain and is not in the exact answer; empty where all is."""
    exact = world.expected
    points = {rule.name for rule in world.file.rules if rule.each == "point"}
    for name, found in noted.matches.items():
        there: dict[Name, bool] = {}
        for match in exact.matches[name]:
            at = (match.bound[-1][0],) if name in points else tuple(sorted(match.bound))
            there[at] = there.get(at, False) or match.fired
        acts: dict[int, bool] = {}
        for one in found:
            acts[one.row] = acts.get(one.row, False) or one.acts
        for one in found:
            at, fired = ((one.row,), acts[one.row]) if name in points else (one.name, one.acts)
            if one.certain and there.get(at) is not fired:
                return f"{name}: {one} is called certain, the exact answer has {there.get(at)}"
    return ""


# --- runs of the engine -----------------------------------------------------------------------------------------------

BUDGETS = ("0.1 steps/event", "0.3 steps/event", "1 steps/event", "1 runs", "3 runs")
"""Each world takes one of them: most run-steps of these small streams are shed by the first."""


@dataclass(frozen=True)
class Budgeted:
    """How a world is run inside a budget; ``cuts``: where its batches end, ``restarts``: after which of them."""

    budget: str
    driver: str = "auto"
    cuts: tuple[int, ...] = ()
    restarts: frozenset[int] = frozenset()
    more: Mapping[str, Any] = field(default_factory=lambda: {"audit": 0.0})


@dataclass
class Found:
    """What came of it: tables of matches and changes as dicts, and what the run says of itself."""

    matches: dict[str, list[Row]]
    changes: dict[str, list[Row]]
    noted: Noted
    record: Any


def run_within(world: RuleWorld, way: Budgeted) -> Found:
    """Run a world inside a budget."""
    rules = compile_rules(world.text)
    outs, batches = [], world.batches(way.cuts)
    with noting() as noted:
        run = rules.start(store=world.store(), driver=way.driver, budget=way.budget, **way.more)
        for number, batch in enumerate(batches):
            outs.append(run.push(batch))
            if number in way.restarts:
                run = rules.from_state(run.state_bytes())
        outs.append(run.finish())
    out = run.joined(outs)
    matches = {name: table.to_pylist() for name, table in out.items()}
    changes = {name: table.to_pylist() for name, table in out.changes.items()}
    return Found(matches, changes, noted, run.record())


def way_of(seed: int, world: RuleWorld) -> Budgeted:
    """How the world of a seed is run."""
    restarts = frozenset(range(len(world.cuts))) if seed % 5 == 0 else frozenset()
    return Budgeted(BUDGETS[seed % len(BUDGETS)], DRIVERS[seed // 3 % 2], world.cuts, restarts)


def wrong_within(world: RuleWorld, way: Budgeted) -> str:
    """What is wrong with a run inside a budget; empty where nothing is, or where the run fails."""
    try:
        found = run_within(world, way)
    except (RuleError, UnsupportedError):
        return ""
    told = not_as_if_missed(world, found.noted, found.changes)
    if not told and world.expected.failure is None:
        told = not_certain(world, found.noted)
    return f"{way}\n{world.text}\n{told}" if told else ""
