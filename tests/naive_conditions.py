"""Conditions over the events of a match, in plain Python: each conjunct, each way to read it. Tests only."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from typing import Any, TypeVar

from acep_approx.query.shape import negated_variables, walk
from acep_approx.query.syntax import Aggregate, Atom, Attribute, Expression, FunctionCall, Lasting, QuerySyntax
from tests.naive_expressions import clean, length, value_of

Row = Mapping[str, Any]
Events = Mapping[str | None, Sequence[Row]]
"""The events of each variable; None: the current event, in DEFINE."""
Bound = tuple[tuple[int, str], ...]
"""Events bound so far, in order: (row number, variable)."""


PLAIN: dict[str, Callable[..., Any]] = {}
"""What the functions of a test's own give for plain values, by their names."""


class Values(dict[Attribute | Aggregate, Any]):
    """The values of attributes and aggregates, computed when asked for: events per variable, and an i per variable."""

    def __init__(self, events: Events, at: Mapping[str | None, int]) -> None:
        super().__init__()
        self.events = events
        self.at = at

    def __missing__(self, leaf: Attribute | Aggregate | Lasting | FunctionCall) -> Any:
        if isinstance(leaf, Lasting):
            return length(leaf)
        if isinstance(leaf, FunctionCall):
            return PLAIN[leaf.name](*(value_of(argument, self) for argument in leaf.arguments))
        events = self.events[leaf.variable]
        if isinstance(leaf, Aggregate):
            return aggregate(leaf, events[: self.at[leaf.variable]] if leaf.prior else events[: leaf.upto])
        match leaf.index:
            case None | "current":
                return events[self.at[leaf.variable]][leaf.name]
            case "previous":
                return events[self.at[leaf.variable] - 1][leaf.name]
            case "first":
                return events[0][leaf.name]
            case int(number):
                return events[number - 1][leaf.name]
        return events[-1][leaf.name]


def aggregate(leaf: Aggregate, events: Sequence[Row]) -> Any:
    """An aggregate as in SQL: NULL does not count, and nothing at all is NULL; first and last are of the events."""
    if leaf.name is None:
        return len(events)
    values = [clean(event[leaf.name]) for event in events]
    if leaf.function in ("first", "last"):
        return (values[0] if leaf.function == "first" else values[-1]) if values else None
    known = [value for value in values if value is not None]
    if leaf.function == "count":
        return len(known)
    if leaf.function == "count distinct":
        return len(set(known))
    if leaf.function == "stddev":
        return statistics.stdev(known) if len(known) > 1 else None
    if not known:
        return None
    if leaf.function in ("min", "max"):
        return min(known) if leaf.function == "min" else max(known)
    return sum(known) if leaf.function == "sum" else sum(known) / len(known)


@dataclass(frozen=True)
class Conjunct:
    """One condition of WHERE, and what it names.

    ``each``: the variables of which it is about each event, with the first index it is about (1 where it looks back).
    ``least``: how many events each variable must have for it to be about something.
    ``whole``: the variables whose last event, or all of whose events, it must know. ``is_plain``: it has no aggregate
    and no index but ``[i]``, so that of one variable it is about each event alone.
    """

    condition: Expression
    names: frozenset[str | None]
    least: tuple[tuple[str | None, int], ...]
    each: tuple[tuple[str | None, int], ...]
    whole: frozenset[str | None]
    is_plain: bool

    def is_about(self, events: Events) -> bool:
        """Whether there are the events that it names; it is void if not."""
        return all(len(events.get(name, ())) >= least for name, least in self.least)

    def is_true(self, events: Events, values: Callable[..., Values] = Values) -> bool:
        """Whether it is TRUE however it is read; there must be an event of each variable it names.

        ``values`` makes the values of its leaves, as ``Values`` does.
        """
        ranges = [range(first, len(events[name])) for name, first in self.each]
        names = [name for name, _ in self.each]
        return all(
            value_of(self.condition, values(events, dict(zip(names, at, strict=True)))) is True
            for at in product(*ranges)
        )


@lru_cache(maxsize=1024)
def conjunct(condition: Expression) -> Conjunct:
    """Read what a condition is about."""
    leaves = [node for node in walk(condition) if isinstance(node, (Attribute, Aggregate))]
    least = {leaf.variable: 1 for leaf in leaves}
    each: dict[str | None, int] = {}
    whole: set[str | None] = set()
    for leaf in leaves:
        if isinstance(leaf, Aggregate):
            looks_back, is_each, is_whole = leaf.prior, leaf.prior, not (leaf.prior or leaf.upto)
            least[leaf.variable] = max(least[leaf.variable], leaf.upto or 1)
        else:
            looks_back = leaf.index == "previous"
            least[leaf.variable] = max(least[leaf.variable], leaf.index if isinstance(leaf.index, int) else 1)
            is_each, is_whole = leaf.index in (None, "current", "previous"), leaf.index == "last"
        if is_each:
            each[leaf.variable] = max(each.get(leaf.variable, 0), int(looks_back))
        if is_whole:
            whole.add(leaf.variable)
    names = frozenset(leaf.variable for leaf in leaves)
    is_plain = all(isinstance(leaf, Attribute) and leaf.index in (None, "current") for leaf in leaves)
    return Conjunct(condition, names, tuple(least.items()), tuple(each.items()), frozenset(whole), is_plain)


MOST_QUERIES = 64
Known = TypeVar("Known")


def once_for_each(make: Callable[[QuerySyntax], Known]) -> Callable[[QuerySyntax], Known]:
    """The same function, which remembers what it made of the last queries: they are known by themselves, not by what
    they say, as to tell whether two of them are equal takes longer than a small stream."""
    found: dict[int, tuple[QuerySyntax, Known]] = {}

    def remembered(query: QuerySyntax) -> Known:
        known = found.get(id(query))  # a query that is kept keeps its number
        if known is None:
            if len(found) == MOST_QUERIES:
                found.clear()
            known = found[id(query)] = query, make(query)
        return known[1]

    return remembered


class Named:
    """The conditions of a query: all, those of no negation, and those of letters; known from one stream to the next."""

    def __init__(self, query: QuerySyntax) -> None:
        negated = negated_variables(query.pattern)
        self.conjuncts = [*map(conjunct, query.predicates)]
        self.positive = [one for one in self.conjuncts if not one.names & negated]
        self.definitions = {definition.letter: definition.condition for definition in query.definitions}


conditions_of = once_for_each(Named)


class Fitting(dict[int, bool]):
    """Whether events are what one atom asks for, by row: found when asked for."""

    def __init__(self, atom: Atom, rows: Sequence[Row], own: list[Conjunct], defined: Expression | None) -> None:
        super().__init__()
        self._atom, self._rows, self._own, self._defined = atom, rows, own, defined

    def __missing__(self, row: int) -> bool:
        atom, event = self._atom, self._rows[row]
        self[row] = found = (
            (atom.type is None or atom.type == event["type"])
            and all(one.is_true({atom.variable: [event]}) for one in self._own)
            and (self._defined is None or value_of(self._defined, Values({None: [event]}, {None: 0})) is True)
        )
        return found


class Conditions:
    """All conditions of a query over the rows of one stream. They hold row numbers; a letter is a variable here."""

    def __init__(self, query: QuerySyntax, rows: Sequence[Row]) -> None:
        self._rows = rows
        known = conditions_of(query)
        self._conjuncts, self._positive, self._definitions = known.conjuncts, known.positive, known.definitions
        self._fitting: dict[Atom, Fitting] = {}
        self._holding: dict[tuple[Bound, frozenset[str]], bool] = {}

    def fits(self, atom: Atom, row: int) -> bool:
        """Whether one event is what an atom asks for: its type, and the conditions about it alone."""
        return self.fitting(atom)[row]

    def fitting(self, atom: Atom) -> Fitting:
        """``fits`` of one atom, by row."""
        found = self._fitting.get(atom)
        if found is None:
            own = [one for one in self._conjuncts if one.is_plain and one.names == {atom.variable}]
            self._fitting[atom] = found = Fitting(atom, self._rows, own, self._definitions.get(atom.variable))
        return found

    def is_about_others(self, atom: Atom) -> bool:
        """Whether a condition compares the events of an atom with others, or with more than one of its own."""
        return any(atom.variable in one.names and not (one.is_plain and len(one.names) == 1) for one in self._conjuncts)

    def hold(self, bound: Bound) -> bool:
        """Whether the conditions hold for a match. One about a variable without event is void, so it holds."""
        events = self._by_variable(bound)
        return all(one.is_true(events) for one in self._positive if one.is_about(events))

    def hold_so_far(self, bound: Bound, still_to_come: frozenset[str]) -> bool:
        """Whether the conditions hold that are determined, though some variables can still get more events."""
        key = (bound, still_to_come)
        if key not in self._holding:
            events = self._by_variable(bound)
            determined = [one for one in self._positive if one.is_about(events) and not one.whole & still_to_come]
            self._holding[key] = all(one.is_true(events) for one in determined)
        return self._holding[key]

    def qualify(self, atoms: Sequence[Atom], rows: Sequence[int], bound: Bound) -> bool:
        """Whether events are those that a negation speaks of, one for each atom, given all events of a match."""
        if not all(map(self.fits, atoms, rows)):
            return False
        names = [atom.variable for atom in atoms]
        events = self._by_variable((*bound, *zip(rows, names, strict=True)))
        named = [one for one in self._conjuncts if one.names & {*names}]
        return all(one.is_about(events) and one.is_true(events) for one in named)

    def _by_variable(self, bound: Bound) -> dict[str | None, list[Row]]:
        events: dict[str | None, list[Row]] = {}
        for row, variable in bound:
            events.setdefault(variable, []).append(self._rows[row])
        return events
