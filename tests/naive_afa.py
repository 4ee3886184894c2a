"""The oracle for automata written by hand: Definition 2 of the paper, in plain Python. Slow on purpose.

Source: Chandramouli, Goldstein and Maier, PVLDB 3(1) 2010. Every configuration by itself, event by event: no merging,
no folding of silent arcs, no tables. It shares with the package only the tree of the query.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from acep_approx.query.syntax import (
    Aggregate,
    Assignment,
    Attribute,
    FunctionCall,
    IgnoreRule,
    Machine,
    MachineArc,
    QuerySyntax,
    RegisterValue,
)
from tests.naive_expressions import binary, clean, value_of

Row = Mapping[str, Any]
Values = tuple[Any, ...]
Functions = Mapping[str, Callable[..., Any]]
"""Functions of the user's, over plain values: None is NULL."""
Binding = tuple[tuple[int, str], ...]
Bound = tuple[tuple[str, tuple[int, ...]], ...]


class TooMany(Exception):
    """More configurations than were asked for: the stream is too long for brute force."""


class AfaRow(NamedTuple):
    """What tells a row of output from others: its rows are numbers in the stream.

    ``bound`` has each variable of the machine with the rows that it binds, ``values`` those of RETURN.
    """

    key: Values
    first: int
    last: int
    bound: Bound
    values: Values


@dataclass(frozen=True)
class Configuration:
    """Where a run stands, its registers, the events bound with their variables, and the first and last consumed."""

    state: str
    registers: Values
    bound: Binding = ()
    errors: int = 0
    first: int = -1
    last: int = -1


def afa_rows(
    query: QuerySyntax, rows: Sequence[Row], functions: Functions | None = None, most: float = math.inf
) -> dict[AfaRow, int]:
    """The rows of output, each with its least errors.

    Parameters
    ----------
    query : QuerySyntax
        Its pattern is a ``Machine``; the window counts ticks or events.
    rows : sequence of dict
        With ``ts`` (a whole number), ``type`` and attributes, in the order of the stream.
    functions : mapping, optional
        What the machine calls, by name.
    most : int, optional
        As many configurations at once are too many.
    """
    found: dict[AfaRow, int] = {}
    for key, part in partitions(query, rows).items():
        operator = Operator(query, rows, part, functions or {}, most)
        for ended in operator.matches():
            row = AfaRow(key, ended.first, ended.last, operator.per_variable(ended), operator.returned(ended))
            found[row] = min(ended.errors, found.get(row, ended.errors))
    return found


def afa_matches(query: QuerySyntax, rows: Sequence[Row], functions: Functions | None = None) -> dict[Binding, int]:
    """The matches as the oracle of queries gives them: the events bound, with their variables, and the least errors."""
    found: dict[Binding, int] = {}
    for row, errors in afa_rows(query, rows, functions).items():
        bound = tuple(sorted((event, name) for name, events in row.bound for event in events))
        found[bound] = min(errors, found.get(bound, errors))
    return found


def afa_points(query: QuerySyntax, found: Mapping[AfaRow, int], rows: Sequence[Row]) -> dict[int, tuple[int, int]]:
    """Per row that a match ends at the least errors, and how short a match with these is, in the unit of the window."""
    place = {row: number for part in partitions(query, rows).values() for number, row in enumerate(part)}
    of_row = place if query.window.unit == "events" else {number: row["ts"] for number, row in enumerate(rows)}
    points: dict[int, tuple[int, int]] = {}
    for row, errors in found.items():
        point = errors, of_row[row.last] - of_row[row.first]
        points[row.last] = min(point, points.get(row.last, point))
    return points


def afa_counts(found: Mapping[AfaRow, int]) -> Counter[tuple[int, int]]:
    """How many rows of output end at a row of the stream with so many errors."""
    return Counter((row.last, errors) for row, errors in found.items())


def partitions(query: QuerySyntax, rows: Sequence[Row]) -> dict[Values, list[int]]:
    """The rows of each key; an event with NULL in the key is in none."""
    found: dict[Values, list[int]] = {}
    for number, row in enumerate(rows):
        key = tuple(clean(row[equivalence.name]) for equivalence in query.equivalences)
        if None not in key:
            found.setdefault(key, []).append(number)
    return found


class Operator:
    """One machine on one partition: the row numbers ``part`` of ``rows``."""

    def __init__(
        self, query: QuerySyntax, rows: Sequence[Row], part: list[int], functions: Functions, most: float
    ) -> None:
        assert isinstance(query.pattern, Machine)
        assert query.window.unit in ("ticks", "events"), "the oracle knows no units of time"
        self.query, self.machine = query, query.pattern
        self.rows, self.part, self.functions, self.most = rows, part, functions, most
        self.place = {row: place for place, row in enumerate(part)}
        self.weights = dict(query.weights)
        self.registers = [register.name for register in self.machine.registers]

    def matches(self) -> Iterator[Configuration]:
        """The configurations in which matches end."""
        begin = Configuration(self.machine.start, tuple(clean(one.initial.value) for one in self.machine.registers))
        live: set[Configuration] = set()
        for row in self.part:
            yield from self.timed_out(one for one in live if not self.is_inside(one, row))
            live = {one for one in live if self.is_inside(one, row)}
            consumed = {after for one in live | self.moved({begin}) for after in self.consuming(one, row)}
            consumed, ignored = self.moved(consumed), {one for one in live if self.ignores(one, row)}
            yield from (one for one in consumed if one.state in self.machine.finals)
            live = self.moved(consumed | ignored)
            if len(live) > self.most:
                raise TooMany
        yield from self.timed_out(live)

    def is_inside(self, one: Configuration, row: int) -> bool:
        """Whether an event lies in the window that the first consumed event opened."""
        if self.query.window.unit == "events":
            return self.place[row] - self.place[one.first] <= self.query.window.amount
        return bool(self.rows[row]["ts"] - self.rows[one.first]["ts"] <= self.query.window.amount)

    # --- the next-ID relation ---

    def moved(self, some: set[Configuration]) -> set[Configuration]:
        """Some configurations, and those that they get to without consuming an event."""
        found, waiting = set(some), list(some)
        while waiting:
            one = waiting.pop()
            more = {after for arc in self.machine.arcs for after in self.without_event(one, arc)} - found
            found |= more
            waiting += more
        return found

    def without_event(self, one: Configuration, arc: MachineArc) -> Iterator[Configuration]:
        """An EPSILON arc moves and sets; an arc ON an event may be skipped for its weight."""
        if arc.source != one.state:
            return
        if arc.kind == "epsilon" and self.holds(arc.when, one, None):
            yield replace(one, state=arc.target, registers=self.set(arc.sets, one, None))
        errors = one.errors + (self.weights.get(arc.variable, 1) if arc.variable else 1)
        if arc.kind == "on" and errors <= self.query.errors:
            yield replace(one, state=arc.target, errors=errors)

    def consuming(self, one: Configuration, row: int) -> Iterator[Configuration]:
        """What becomes of a configuration on the arcs that consume an event."""
        for arc in self.machine.arcs:
            if arc.kind == "on" and arc.source == one.state and self.is_asked(arc, one, row):
                yield Configuration(
                    arc.target,
                    self.set(arc.sets, one, row),
                    (*one.bound, (row, arc.variable)) if arc.variable else one.bound,
                    one.errors,
                    row if one.first < 0 else one.first,
                    row,
                )

    def ignores(self, one: Configuration, row: int) -> bool:
        """Whether a configuration may stay as it is at an event."""
        return any(one.state in rule.states and self.is_ignored(rule, one, row) for rule in self.machine.ignores)

    def is_ignored(self, rule: IgnoreRule, one: Configuration, row: int) -> bool:
        """Whether a rule lets an event pass: one that it asks for, or one that no arc consumes."""
        return self.is_asked(rule, one, row) if not rule.otherwise else not any(self.consuming(one, row))

    def is_asked(self, part: MachineArc | IgnoreRule, one: Configuration, row: int) -> bool:
        """Whether an event is what an arc or a rule asks for."""
        return part.type in (None, self.rows[row]["type"]) and self.holds(part.when, one, row)

    def timed_out(self, some: Iterable[Configuration]) -> Iterator[Configuration]:
        """What the arcs TIMEOUT make of configurations that are left when their window has closed."""
        for one in some:
            for arc in self.machine.arcs:
                if arc.kind == "timeout" and arc.source == one.state and self.holds(arc.when, one, None):
                    yield replace(one, state=arc.target, registers=self.set(arc.sets, one, None))

    # --- expressions ---

    def holds(self, condition: Any, one: Configuration, row: int | None) -> bool:
        """Whether a condition is TRUE; none always is."""
        return condition is None or self.value(condition, one, row) is True

    def set(self, sets: Sequence[Assignment], one: Configuration, row: int | None) -> Values:
        """The registers after an arc; each value is computed with what they were before."""
        made = {assignment.register: self.value(assignment.value, one, row) for assignment in sets}
        after = []
        for register, before in zip(self.machine.registers, one.registers, strict=True):
            value = made.get(register.name, before)
            after.append(float(value) if register.holds == "float" and value is not None else value)
        return tuple(after)

    def value(self, expression: Any, one: Configuration, row: int | None) -> Any:
        """The value of an expression, for a configuration and an event."""
        return value_of(expression, Leaves(self, one, row))

    # --- output ---

    def per_variable(self, one: Configuration) -> Bound:
        """The rows that each variable of the machine binds."""
        names = dict.fromkeys(arc.variable for arc in self.machine.arcs if arc.variable)
        return tuple((name, tuple(row for row, variable in one.bound if variable == name)) for name in names)

    def returned(self, one: Configuration) -> Values:
        """The values of RETURN."""
        return tuple(self.value(output.value, one, None) for output in self.query.outputs)

    def over_bound(self, node: Attribute | Aggregate, one: Configuration) -> Any:
        """An attribute of a bound event, or an aggregate over those of a variable."""
        values = [
            clean(self.rows[row][node.name]) if node.name else row for row, name in one.bound if name == node.variable
        ]
        if isinstance(node, Attribute):
            return values[0 if node.index == "first" else -1] if values else None
        known = [value for value in values if value is not None]
        match node.function:
            case "first" | "last":
                return values[0 if node.function == "first" else -1] if values else None
            case "count":
                return len(known)
            case "avg":
                return binary("/", clean(sum(known)), len(known)) if known else None
        return clean({"sum": sum, "min": min, "max": max}[node.function](known)) if known else None


class Leaves:
    """All that expressions read of a configuration and an event, the values of functions included."""

    def __init__(self, operator: Operator, one: Configuration, row: int | None) -> None:
        self.operator, self.one, self.row = operator, one, row

    def __getitem__(self, leaf: Any) -> Any:
        operator, one, row = self.operator, self.one, self.row
        match leaf:
            case RegisterValue(name=name):
                return one.registers[operator.registers.index(name)]
            case Attribute(name=name) if row is not None:
                return operator.rows[row][name]
            case FunctionCall(name=name, arguments=arguments):
                return operator.functions[name](*(value_of(part, self) for part in arguments))
        return operator.over_bound(leaf, one)
