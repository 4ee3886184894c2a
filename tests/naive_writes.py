"""What rules do to tables, for the oracle of rules: statement by statement, and what came of them. Tests only."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from acep_approx.query.rules.syntax import OLD, Call, Rule, Table, Write
from acep_approx.query.syntax import Expression
from tests.naive import Binding
from tests.naive_conditions import Values
from tests.naive_expressions import clean, value_of
from tests.naive_reads import Key, Store, copy_of, fresh

Row = dict[str, Any]


@dataclass(frozen=True)
class RuleMatch:
    """A match of a rule: what is bound, which event completes it (None: the end of its window), whether it acted."""

    rule: str
    bound: Binding
    errors: int
    time: int
    row: int | None
    fired: bool = True
    returned: tuple[Any, ...] = ()


@dataclass(frozen=True)
class Change:
    """What one statement did to one row: insert, update, delete. ``after``: its values then, None if it is deleted."""

    time: int
    row: int | None
    rule: str
    op: str
    table: str
    key: Key
    after: tuple[tuple[str, Any], ...] | None


@dataclass(frozen=True)
class Called:
    """A call. ``number`` is the place among the calls of its rule in its transaction."""

    rule: str
    name: str
    time: int
    row: int | None
    number: int
    arguments: tuple[Any, ...]


@dataclass
class Outcome:
    """All that came of a stream so far. ``failure`` is the row (None: no event) and the rule of what stopped it."""

    store: Store
    matches: dict[str, list[RuleMatch]]
    changes: list[Change] = field(default_factory=list)
    calls: list[Called] = field(default_factory=list)
    conflicts: int = 0
    without_row: int = 0
    failure: tuple[int | None, str] | None = None

    def copied(self) -> Outcome:
        """The same, which what comes next does not change."""
        matches = {rule: list(found) for rule, found in self.matches.items()}
        lists = {"matches": matches, "changes": list(self.changes), "calls": list(self.calls)}
        return replace(self, store=copy_of(self.store), **lists)


class Failed(Exception):
    """An action cannot be done."""


class Transaction:
    """All that one event causes, or the end of a window: statements, one after the other."""

    def __init__(self, tables: Mapping[str, Table], outcome: Outcome, time: int, row: int | None) -> None:
        self.tables, self.outcome, self.time, self.row = tables, outcome, time, row
        self.written: dict[tuple[str, Key, str], list[Any]] = defaultdict(list)
        self.calls: Counter[str] = Counter()

    def act(self, rule: Rule, match: RuleMatch, events: Mapping[str | None, Sequence[Row]]) -> None:
        """Run the actions of one match."""
        for action in rule.actions:
            if isinstance(action, Call):
                arguments = tuple(computed(argument, events) for argument in action.arguments)
                number = self.calls[rule.name]
                self.calls[rule.name] += 1
                self.outcome.calls.append(Called(rule.name, action.name, self.time, self.row, number, arguments))
            else:
                self.write(rule, action, events)

    def write(self, rule: Rule, action: Write, events: Mapping[str | None, Sequence[Row]]) -> None:
        """UPDATE, UPSERT or DELETE of the row that the key names."""
        table, rows = self.tables[action.table], self.outcome.store[action.table]
        key = tuple(computed(part, events) for part in action.key)
        if None in key:
            raise Failed
        if key not in rows and not self.makes(table, action):
            self.outcome.without_row += 1
            return
        op, after = "update" if key in rows else "insert", None
        if action.kind == "delete":
            op = "delete"
            del rows[key]
        else:
            rows[key] = self.after(table, action, key, events)
            after = tuple(rows[key].items())
        self.outcome.changes.append(Change(self.time, self.row, rule.name, op, table.name, key, after))

    def makes(self, table: Table, action: Write) -> bool:
        """Whether a statement makes the row where there is none."""
        return action.kind == "upsert" or (action.kind == "update" and table.is_total)

    def after(self, table: Table, action: Write, key: Key, events: Mapping[str | None, Sequence[Row]]) -> Row:
        """The values of a row after SET, every expression of which sees the row before."""
        before = self.outcome.store[table.name].get(key) or fresh(table)
        known = {**events, OLD: [before | dict(zip(table.key, key, strict=True))]}
        after = dict(before)
        for one in action.sets:
            (column,) = [column for column in table.values if column.name == one.column]
            after[one.column] = value = fitted(computed(one.value, known), column.holds)
            earlier = self.written[table.name, key, one.column]
            self.outcome.conflicts += bool(earlier) and value != earlier[-1]
            earlier.append(value)
        return after


def computed(expression: Expression, events: Mapping[str | None, Sequence[Row]]) -> Any:
    """The value of an expression of an action."""
    return value_of(expression, Values(events, dict.fromkeys(events, 0)))


def fitted(value: Any, holds: str) -> Any:
    """A value as a column holds it."""
    if isinstance(value, float) and holds == "int":
        if not value.is_integer():
            raise Failed
        return clean(int(value))
    return float(value) if holds == "float" and value is not None else value


def loaded(table: Table, rows: Sequence[Mapping[str, Any]]) -> dict[Key, Row]:
    """The rows that a table begins with."""
    return {
        tuple(row[name] for name in table.key): {column.name: row[column.name] for column in table.values}
        for row in rows
    }
