"""What a partial match waited for and what came instead: conditions, the values they see, how near they are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise, product
from typing import Any

import numpy as np
import pyarrow as pa

from acep_approx.automaton.automaton import START, Arc
from acep_approx.automaton.resolve import Condition, Leaf, bound_by, dynamic_conditions, negation_conditions
from acep_approx.matching.outputs.aggregates import aggregate
from acep_approx.matching.tracing.partial import States
from acep_approx.query.evaluate import evaluate
from acep_approx.query.printer import to_text
from acep_approx.query.shape import is_static, negated_sequences, variables, walk
from acep_approx.query.syntax import Aggregate, Attribute, Binary, Expression
from acep_approx.why.place import StreamPlace

COMPARISONS = ("=", "!=", "<", "<=", ">", ">=")
Binding = Mapping[str, Sequence[int]]
"""Places of the events of each variable; of the variable "" that of the current event, in DEFINE."""


@dataclass(frozen=True)
class Miss:
    """A condition that does not hold: the values it saw, and how far they are apart (for numbers)."""

    values: str
    distance: float = field(default=float("inf"), compare=False)


@dataclass(frozen=True)
class Failed:
    """A condition that some events failed, with the values that it saw at the nearest of them."""

    condition: str
    events: int
    nearest: Miss
    at: int

    def line(self, place: StreamPlace) -> str:
        """The same in words."""
        fail = "fails" if self.events == 1 else "fail"
        nearest = f"; nearest: {self.nearest.values}" if self.nearest.values else ", as the one at"
        return f"{self.events} {fail} {self.condition}{nearest} ({place.named(self.at)})"

    def plain(self, place: StreamPlace) -> dict[str, Any]:
        """The same as plain values, with the row of the input in place of the place."""
        row = int(place.rows[self.at])
        return {"condition": self.condition, "events": self.events, "nearest": self.nearest.values, "row": row}


@dataclass(frozen=True)
class _Instance:
    """One way to read a condition: a binding, and one event of each variable that it ranges over."""

    binding: Binding
    at: Mapping[str, int]


class Tester:
    """Tests conditions on the events of a place."""

    def __init__(self, place: StreamPlace) -> None:
        self._place = place

    def miss(self, condition: Condition, binding: Binding, only: str | None = None) -> Miss | None:
        """How a condition fails for a binding: its nearest failure; None where it holds.

        Parameters
        ----------
        condition : Condition
            All its variables are bound.
        binding : mapping
        only : str, optional
            Of this variable only the last event counts: the others have been tested.
        """
        each, ranges = sorted(condition.each), []
        for name in each:
            count, first = len(binding[name]), int(name in condition.looks_back)
            ranges.append(range(max(first, count - 1) if name == only else first, count))
        units = [_Instance(binding, dict(zip(each, at, strict=True))) for at in product(*ranges)]
        if not units:
            return None
        holds = self._values(condition.expression, units)
        failing = (unit for unit, one in zip(units, holds, strict=True) if one is not True)
        misses = [self._miss(condition.expression, unit) for unit in failing]
        return min(misses, key=lambda miss: miss.distance) if misses else None

    def _miss(self, expression: Expression, unit: _Instance) -> Miss:
        match expression:
            case Binary(op=op, left=left, right=right) if op in COMPARISONS:
                (one,), (other,) = self._values(left, [unit]), self._values(right, [unit])
                return Miss(f"{shown(one)} {op} {shown(other)}", distance(one, other))
        named = dict.fromkeys(leaf for leaf in walk(expression) if isinstance(leaf, (Attribute, Aggregate)))
        values = [f"{to_text(leaf)} is {shown(self._values(leaf, [unit])[0])}" for leaf in named]
        return Miss(", ".join(values))

    def _values(self, expression: Expression, units: list[_Instance]) -> list[Any]:
        value = evaluate(expression, lambda leaf: self._column(leaf, units))
        return [value.as_py()] * len(units) if isinstance(value, pa.Scalar) else value.to_pylist()

    def _column(self, leaf: Leaf, units: list[_Instance]) -> pa.Array:
        if isinstance(leaf, Attribute):
            return self._take(leaf.name, [_event(leaf, unit) for unit in units])
        of_variable = [(unit.binding[leaf.variable], unit.at) for unit in units]
        events = [some[: at[leaf.variable]] if leaf.prior else some[: leaf.upto] for some, at in of_variable]
        if leaf.name is None:
            return pa.array([len(some) for some in events], pa.int64())
        if leaf.function in ("first", "last"):
            return self._take(leaf.name, [some[0 if leaf.function == "first" else -1] for some in events])
        flat = self._take(leaf.name, [event for some in events for event in some])
        values = evaluate(Attribute(None, None, leaf.name), lambda _: flat)
        return aggregate(leaf.function, values, np.array([len(some) for some in events]))

    def _take(self, name: str, events: Sequence[int]) -> pa.Array:
        column = self._place.table.column(self._place.roles.column(name))
        return column.take(pa.array(events, pa.int64())).combine_chunks()


def _bound(binding: Binding) -> frozenset[str]:
    return bound_by({name: len(events) for name, events in binding.items()})


def _event(leaf: Attribute, unit: _Instance) -> int:
    events = unit.binding[leaf.variable or ""]
    if leaf.index == "first":
        return events[0]
    if isinstance(leaf.index, int):
        return events[leaf.index - 1]
    if leaf.index == "last" or leaf.variable not in unit.at:
        return events[-1]
    return events[unit.at[str(leaf.variable)] - (leaf.index == "previous")]


def distance(one: Any, other: Any) -> float:
    """How far two values are apart: numbers and times; infinity for what has no distance."""
    try:
        gap = abs(one - other)
        return float(gap.total_seconds() if hasattr(gap, "total_seconds") else gap)
    except TypeError:  # NULL, text
        return float("inf")


def shown(value: Any) -> str:
    """A value as a query would write it.

    Examples
    --------
    >>> shown(12.0), shown(None), shown("u")
    ('12.0', 'NULL', "'u'")
    """
    if value is None:
        return "NULL"
    if hasattr(value, "isoformat"):
        return str(value.isoformat())
    return repr(round(value, 6) if isinstance(value, float) else value)


# --- what came for a variable -------------------------------------------------------------------------------------

Bound = Sequence[tuple[int, str]]
"""Events of a partial match by their places, with their variables, in order."""


@dataclass
class Awaited:
    """What came for one variable, after the last event of a partial match.

    ``came`` events of its type within the window, ``before`` between the first and the last bound event. ``late``: by
    how much the first one that fits missed the window, and its place. ``cut``: one that fits, and the event that kept
    it out: a negation (``cut_by`` names its variable) or a neighbour ("").
    """

    variable: str
    type: str | None
    came: int = 0
    before: int = 0
    failed: list[Failed] = field(default_factory=list)
    late: tuple[int, int] | None = None
    cut: tuple[int, int] | None = None
    cut_by: str = ""


class Waiting:
    """Looks at what came at a place.

    Parameters
    ----------
    place : StreamPlace
    """

    def __init__(self, place: StreamPlace) -> None:
        query = place.plan.query
        self.place = place
        self.query = query
        self.automaton = place.plan.automaton
        self.states = States(query, self.automaton)
        self.tester = Tester(place)
        self.clock = place.clock
        self.components = {one.variable: one for one in self.automaton.components if not one.is_negated}
        self.dynamic = dynamic_conditions(query)
        self.sequences = {names[-1]: names[:-1] for names in negated_sequences(query.pattern)}
        self.spans = place.plan.negation_ticks("us" if place.is_time else None)
        self.to_come = self._variables_to_come()
        self.kleene = self.automaton.kleene - self.automaton.negated

    # --- variables that did not come ------------------------------------------------------------------------

    def awaited(self, bound: Bound, errors: int, names: Sequence[str]) -> list[Awaited]:
        """What came for each of the variables that could have come next; without events, for those that can begin."""
        way = self.way(bound, errors, tuple(names))
        state = way[-1].target if way else START
        return [self._awaited(bound, name, self._arcs(state, errors, name)) for name in names]

    def way(self, bound: Bound, errors: int, names: tuple[str, ...]) -> tuple[Arc, ...]:
        """The arcs that bind these events with so many errors and then wait for these variables."""
        ways: list[tuple[tuple[Arc, ...], int, int]] = [((), START, 0)]
        for event, variable in bound:
            ways = [
                ((*way, arc), arc.target, paid + arc.cost)
                for way, state, paid in ways
                for arc in self.automaton.arcs
                if arc.source == state and paid + arc.cost <= errors and self.place.masks[event] >> arc.letter & 1
                if self.query.is_regex or self.automaton.variables[arc.label] == variable
            ]
            ways = list({(state, paid): (way, state, paid) for way, state, paid in reversed(ways)}.values())
        fitting = [way for way, state, paid in ways if paid == errors and self.states.at(state, paid)[0] == names]
        return min(fitting, key=lambda way: sum(len(arc.guard) for arc in way), default=())

    def _arcs(self, state: int, errors: int, name: str) -> list[Arc]:
        left = self.automaton.errors - errors
        found = [
            arc
            for arc in self.automaton.arcs
            if arc.source == state and arc.cost <= left and name in self.states.names(arc.label, arc.letter, arc.target)
        ]
        return sorted(found, key=lambda arc: (arc.cost, len(arc.guard)))

    def _awaited(self, bound: Bound, name: str, arcs: list[Arc]) -> Awaited:
        atom = self.components[name]
        result = Awaited(name, atom.type)
        first, last = (bound[0][0], bound[-1][0]) if bound else (-1, -1)
        part = np.flatnonzero(self.place.is_part).tolist()
        typed = [i for i in part if atom.type is None or self.place.types[i] == atom.type]
        if bound:
            result.before = len(set(self.place.between(first, last)) & set(typed))
            end = self.clock[first] + self.place.window
        else:
            near = self.place.near()
            typed = [i for i in typed if near[i]]
            end = self.clock[-1]
        to_come = self.to_come[arcs[0].target] if arcs else frozenset()
        fitting = []
        for i in typed:
            if not self.place.is_before(last, i):
                continue
            is_inside = self.clock[i] <= end
            result.came += int(is_inside)
            if not self._fails((*bound, (i, name)), to_come, result.failed if is_inside else None):
                fitting.append(i)
        late = [i for i in fitting if self.clock[i] > end]
        inside = [i for i in fitting if self.clock[i] <= end]
        if inside and bound and arcs:
            result.cut, result.cut_by = self._cut(last, inside[0], arcs[0])
        elif late:
            result.late = int(self.clock[late[0]] - end), late[0]
        return result

    def _variables_to_come(self) -> list[frozenset[str]]:
        found = [frozenset[str]()] * self.automaton.size
        while True:
            new = list(found)
            for arc in self.automaton.arcs:
                new[arc.source] |= found[arc.target] | {self.automaton.variables[arc.label]}
            if new == found:
                return found
            found = new

    def _fails(self, bound: Bound, to_come: frozenset[str], failed: list[Failed] | None) -> bool:
        """Whether the last event, as the next one, fails a condition; notes which ones."""
        event, name = bound[-1]
        binding = self.binding(bound)
        is_failing = False
        stated = [p for p in self.query.predicates if is_static(p) and variables(p) == {name}]
        defined = [d.condition for d in self.query.definitions if d.letter == name]
        decided = [c for c in self.dynamic if name in c.names and c.is_decided(_bound(binding), to_come)]
        for condition in (*(Condition(expression, self.kleene) for expression in (*defined, *stated)), *decided):
            if (miss := self.tester.miss(condition, binding, only=name)) is not None:
                is_failing = True
                if failed is not None:
                    _note(failed, to_text(condition.expression), miss, event)
        return is_failing

    @staticmethod
    def binding(bound: Bound) -> Binding:
        """Events by variable."""
        found: dict[str, list[int]] = {"": [bound[-1][0]]} if bound else {}
        for event, variable in bound:
            found.setdefault(variable, []).append(event)
        return found

    def _cut(self, last: int, event: int, arc: Arc) -> tuple[tuple[int, int] | None, str]:
        """The event that keeps one that fits out: one that a negation forbids, or a neighbour."""
        between = self.place.between(last, event)
        for letter in sorted(arc.guard):
            for i in between:
                name = self._negated(letter)
                is_near = self.place.masks[i] >> letter & 1 and self._is_near(name, last, i, event)
                if is_near and name not in self.sequences:
                    return (event, i), name
        nearest = self.place.between(last, event, of_part=self.place.plan.counted != "stream")[:1]
        for letter, i in product(sorted(arc.near), nearest):
            if self.place.masks[i] >> letter & 1:
                return (event, i), self._negated(letter)
        registers = self.place.plan.registers
        if registers is not None and registers.strategy_of(arc.gap) == "strict_contiguity":
            between = self.place.between(last, event, of_part=False)
        return ((event, between[0]), "") if between else (None, "")

    def _is_near(self, name: str, after: int, event: int, before: int) -> bool:
        """Whether an event between two others lies in the window of its negation, where that has one of its own."""
        if name not in self.spans:
            return True
        length = self.clock[event] - self.clock[after] if after >= 0 else self.clock[before] - self.clock[event]
        return bool(length <= self.spans[name])

    def _negated(self, letter: int) -> str:
        wanted = self.automaton.letters[letter]
        if wanted.negated:
            return wanted.negated
        absent = (one.variable for one in self.automaton.components if one.is_negated and one.type == wanted.type)
        return next(absent, "")

    # --- a binding that was refused -------------------------------------------------------------------------

    def refused(
        self, bound: Bound, errors: int, names: Sequence[str]
    ) -> tuple[list[Failed], list[tuple[str, int]]]:
        """What speaks against a match of exactly these events: failed conditions, and events that must not have come.

        The latter by the variable of the negation, with their places.
        """
        binding, failed = self.binding(bound), list[Failed]()
        for condition in self.dynamic:
            if condition.needs <= _bound(binding) and (miss := self.tester.miss(condition, binding)) is not None:
                _note(failed, to_text(condition.expression), miss, bound[-1][0])
        way = self.way(bound, errors, tuple(names))
        first, last = bound[0][0], bound[-1][0]
        events = [event for event, _ in bound]
        low, high = self.clock[last] - self.place.window, self.clock[first] + self.place.window
        gaps = [(arc.guard, before, event) for arc, before, event in zip(way, [-1, *events], events, strict=False)]
        finals = [f for f in self.automaton.finals if way and f.state == way[-1].target]
        gaps += [(min((f.guard for f in finals), key=len), last, len(self.place.rows))] if finals else []
        negated: list[tuple[str, int]] = []
        for guard, after, before in gaps:
            inside = [i for i in self.place.between(after, before) if low <= self.clock[i] <= high]
            for letter in sorted(guard):
                name = self._negated(letter)
                near = [i for i in inside if self._is_near(name, after, i, before)]
                negated += self._forbidden(letter, name, near, binding)
        return failed, negated

    def _forbidden(
        self, letter: int, name: str, near: Sequence[int], binding: Binding
    ) -> Iterator[tuple[str, int]]:
        """The events among some that a negation excludes, as its variable; of a sequence those that end one."""
        known = negation_conditions(self.query)
        number = {one.negated: j for j, one in enumerate(self.automaton.letters)}
        names = (*self.sequences.get(name, ()), name)
        conditions = dict.fromkeys(one for variable in names for one in known.get(variable, ()))
        masks = self.place.masks
        of_letter = [[i for i in near if masks[i] >> number[one] & 1] for one in names[:-1]]
        for i in (i for i in near if masks[i] >> letter & 1):
            for some in (events for events in product(*of_letter, [i]) if self._follow(events)):
                extended = {**binding, **{one: [event] for one, event in zip(names, some, strict=True)}}
                if all(c.names <= extended.keys() and self.tester.miss(c, extended) is None for c in conditions):
                    yield name, i
                    break

    def _follow(self, events: Sequence[int]) -> bool:
        """Whether events come one after the other."""
        return all(self.place.is_before(*two) for two in pairwise(events))


def _note(failed: list[Failed], condition: str, miss: Miss, event: int) -> None:
    for number, known in enumerate(failed):
        if known.condition == condition:
            is_nearer = miss.distance < known.nearest.distance
            nearest, at = (miss, event) if is_nearer else (known.nearest, known.at)
            failed[number] = Failed(condition, known.events + 1, nearest, at)
            return
    failed.append(Failed(condition, 1, miss, event))
