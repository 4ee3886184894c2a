"""Small worlds for hypothesis: a random query, as text, and a random stream, with the oracle's view of both.

New constructs of the language are added here, so that every engine meets them.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
from hypothesis import assume
from hypothesis import strategies as st

from acep_approx.query.checks import lightest_match
from acep_approx.query.printer import to_text
from acep_approx.query.syntax import (
    Absent,
    AllOf,
    Atom,
    Attribute,
    Binary,
    Constant,
    Definition,
    Either,
    Equivalence,
    Expression,
    Pattern,
    QuerySyntax,
    Repeat,
    Sequence,
    Window,
)
from tests.naive import Binding, Event, all_matches

TYPES = ("A", "B")
COMPARE: dict[str, Callable[[Any, Any], bool]] = {">": operator.gt, "<=": operator.le, "=": operator.eq}
Condition = tuple[str, int]


@dataclass(frozen=True)
class World:
    """A query, its text, the conditions of its variables, and a stream whose events carry ``x`` and ``g``."""

    query: QuerySyntax
    text: str
    conditions: dict[str, tuple[str | None, Condition | None]]
    events: tuple[Event, ...]

    def holds(self, atom: Atom, event: Event) -> bool:
        """Whether an event is what an atom asks for; NULL satisfies no condition."""
        type_, condition = self.conditions[atom.variable]
        if type_ is not None and event.type != type_:
            return False
        if condition is None:
            return True
        op, bound = condition
        x = event.values["x"]
        return x is not None and COMPARE[op](x, bound)

    def table(self) -> pa.Table:
        """The stream as columns."""
        return pa.table(
            {
                "ts": pa.array([e.tick for e in self.events], pa.int64()),
                "type": pa.array([e.type for e in self.events], pa.string()),
                "x": pa.array([e.values["x"] for e in self.events], pa.int64()),
                "g": pa.array([e.values["g"] for e in self.events], pa.string()),
            }
        )

    def expected(self) -> dict[Binding, int]:
        """Every match by brute force, one partition at a time; bindings hold row numbers of the whole stream."""
        if not self.query.equivalences:
            return all_matches(self.query, self.events, self.holds)
        found: dict[Binding, int] = {}
        for group in {e.values["g"] for e in self.events} - {None}:
            rows = [i for i, e in enumerate(self.events) if e.values["g"] == group]
            part = all_matches(self.query, [self.events[i] for i in rows], self.holds)
            found.update({tuple((rows[i], v) for i, v in bound): err for bound, err in part.items()})
        return found


conditions = st.one_of(st.none(), st.none(), st.tuples(st.sampled_from(sorted(COMPARE)), st.integers(0, 2)))
bounds = st.sampled_from([(0, None), (1, None), (0, 1), (2, 3), (1, 2), (2, None), (0, 2), (2, 2)])


Patterns = st.SearchStrategy[Pattern]


def patterns(leaf: Patterns, negated: Patterns, *, has_names: bool = True) -> Patterns:
    """Patterns with a handful of leaves; negations stand between other parts."""

    def grow(inner: Patterns) -> Patterns:
        several = st.lists(inner, min_size=2, max_size=3)
        sequences = several.map(lambda parts: Sequence(tuple(parts)))
        with_gap = st.tuples(inner, negated, inner).map(Sequence)
        choices = st.lists(inner, min_size=2, max_size=2).map(lambda options: Either(tuple(options)))
        orders = several.map(lambda parts: AllOf(tuple(parts)))
        repeats = st.builds(lambda part, b: Repeat(part, *b), inner, bounds)
        return st.one_of(sequences, sequences, with_gap, choices, repeats, *([orders] if has_names else []))

    return st.recursive(leaf, grow, max_leaves=5)


def renamed(pattern: Pattern, names: list[str]) -> Pattern:
    """Give every atom a variable of its own."""
    if isinstance(pattern, Atom):
        names.append(f"v{len(names)}")
        return replace(pattern, variable=names[-1])
    if isinstance(pattern, Absent):
        return Absent(tuple(renamed(option, names) for option in pattern.options))  # type: ignore[misc]
    if isinstance(pattern, Sequence | AllOf):
        return type(pattern)(tuple(renamed(part, names) for part in pattern.parts))
    if isinstance(pattern, Either):
        return Either(tuple(renamed(option, names) for option in pattern.options))
    return Repeat(renamed(pattern.part, names), pattern.least, pattern.most)


def atoms_of(pattern: Pattern) -> list[Atom]:
    """All atoms, negated ones too, from left to right."""
    if isinstance(pattern, Atom):
        return [pattern]
    if isinstance(pattern, Repeat):
        return atoms_of(pattern.part)
    inner = pattern.parts if isinstance(pattern, Sequence | AllOf) else pattern.options
    return [atom for part in inner for atom in atoms_of(part)]


@st.composite
def streams(draw: st.DrawFn) -> tuple[Event, ...]:
    """Up to eight events with ties in time, missing values, and two keys or none."""
    tick = draw(st.integers(-3, 3))
    events = []
    for _ in range(draw(st.sampled_from([5, 6, 7, 8, 3, 1, 0]))):
        tick += draw(st.sampled_from([1, 0, 2]))
        x, g = draw(st.sampled_from([1, 2, 0, 3, None])), draw(st.sampled_from(["p", "p", "p", "q", None]))
        values = {"x": x, "g": g}
        events.append(Event(tick, draw(st.sampled_from([*TYPES, *TYPES, "C"])), values))
    return tuple(events)


@st.composite
def worlds(draw: st.DrawFn) -> World:
    """A query that the cells engine can run, and a stream."""
    is_regex = draw(st.booleans())
    known: dict[str, tuple[str | None, Condition | None]] = {}
    definitions: list[Definition] = []
    predicates: list[Expression] = []
    if is_regex:
        letters = st.sampled_from("abcd").map(lambda letter: Atom(None, letter))
        pattern = draw(patterns(letters, letters, has_names=False))  # a regular expression has no negation, and no ALL
        for letter in sorted({atom.variable for atom in atoms_of(pattern)}):
            known[letter] = (draw(st.sampled_from([*TYPES, None])), draw(conditions))
            assume(known[letter] != (None, None))
            tests = [Binary("=", Attribute(None, None, "type"), Constant(known[letter][0]))] if known[letter][0] else []
            if known[letter][1]:
                tests.append(Binary(known[letter][1][0], Attribute(None, None, "x"), Constant(known[letter][1][1])))
            definitions.append(Definition(letter, tests[0] if len(tests) == 1 else Binary("AND", *tests)))
    else:
        leaf = st.sampled_from([*TYPES, None]).map(lambda type_: Atom(type_, ""))
        negated = st.lists(leaf, min_size=1, max_size=2).map(lambda options: Absent(tuple(options)))
        pattern = renamed(draw(patterns(leaf, negated)), [])
        for atom in atoms_of(pattern):
            known[atom.variable] = (atom.type, draw(conditions))
            if known[atom.variable][1]:
                op, bound = known[atom.variable][1]
                predicates.append(Binary(op, Attribute(atom.variable, None, "x"), Constant(bound)))
    unit = draw(st.sampled_from(["ticks", "ticks", "events"]))
    absent = {atom.variable for part in walk_absent(pattern) for atom in part.options}
    weighable = sorted(set(known) - absent)
    weights = draw(st.dictionaries(st.sampled_from(weighable), st.integers(2, 3), max_size=2))
    query = QuerySyntax(
        pattern=pattern,
        window=Window(draw(st.sampled_from([5, 8, 3, 2, 1, 0, 20])), unit),
        is_regex=is_regex,
        equivalences=(Equivalence("g"),) if draw(st.booleans()) else (),
        predicates=tuple(predicates),
        errors=min(draw(st.sampled_from([1, 2, 0])), lightest_match(pattern, weights) - 1),
        weights=tuple(sorted(weights.items())),
        definitions=tuple(definitions),
    )
    return World(query, to_text(query), known, draw(streams()))


def walk_absent(pattern: Pattern) -> list[Absent]:
    """All negations in a pattern."""
    if isinstance(pattern, Absent):
        return [pattern]
    if isinstance(pattern, Atom):
        return []
    if isinstance(pattern, Repeat):
        return walk_absent(pattern.part)
    inner = pattern.parts if isinstance(pattern, Sequence | AllOf) else pattern.options
    return [found for part in inner for found in walk_absent(part)]
