"""The step of a pattern that no event passed: runs over the whole stream, each of the query changed in one way.

Every change here asks for less: what matches the query, or begins a match of it, matches the changed one too. So where
a changed query finds nothing, neither does the query.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from acep_approx.arrays import Ints
from acep_approx.errors import AcepError
from acep_approx.matching.outputs.kinds import PARTIAL, POINTS
from acep_approx.matching.outputs.of_runs import TooManyStepsError
from acep_approx.planning.planner import LARGEST_WINDOW, MICROSECONDS
from acep_approx.query.checks import lightest
from acep_approx.query.printer import to_text
from acep_approx.query.shape import atoms, choice_of, is_static, negated_variables, sequence_of, variables, walk
from acep_approx.query.syntax import (
    DEFAULT_STRATEGY,
    Absent,
    Either,
    Pattern,
    QuerySyntax,
    Repeat,
    Sequence,
)
from acep_approx.why.place import StreamPlace

WIDEST = LARGEST_WINDOW // 2
"""A window that nothing leaves, in ticks or events."""
STEPS = 5_000_000
"""Run-steps after which one changed query is given up."""
MOST_STEPS = 100_000_000
"""Run-steps after which it is given up to say whether the query itself has a match: some ten seconds."""


@dataclass(frozen=True)
class Beginning:
    """The first parts of a pattern as a query, and the variables of the last of them."""

    query: QuerySyntax
    names: tuple[str, ...]


def plain(query: QuerySyntax) -> QuerySyntax:
    """The query without what is about the form and the choice of its matches."""
    return replace(query, outputs=(), non_overlap=False, publish=None)


def beginnings(query: QuerySyntax) -> list[Beginning]:
    """The beginnings of a query, the shortest first; the last one is the query as ``plain`` gives it.

    Left out are those that can be missing as a whole: a match need not bind any event of them.
    """
    parts = query.pattern.parts if isinstance(query.pattern, Sequence) else (query.pattern,)
    found = []
    for number, part in enumerate(parts, 1):
        if isinstance(part, Absent):
            continue
        negated = negated_variables(part)
        names = tuple(dict.fromkeys(atom.variable for atom in atoms(part) if atom.variable not in negated))
        is_last = all(isinstance(later, Absent) for later in parts[number:])
        pattern = sequence_of(parts[:number])
        if is_last:
            found.append(Beginning(plain(query), names))
        elif lightest(pattern, dict(query.weights)) > query.errors:
            found.append(Beginning(_beginning(plain(query), pattern), names))
    return found


def _beginning(query: QuerySyntax, pattern: Pattern) -> QuerySyntax:
    """The query of some first parts, with the conditions that are about nothing else."""
    known = {atom.variable for atom in atoms(pattern)}
    lost = {name for one in query.predicates if not variables(one) <= known for name in variables(one)}
    for negation in negations(pattern):
        if lost & {atom.variable for atom in negation.options}:  # without its conditions it would forbid more
            pattern = without_negation(pattern, negation)
    known = {atom.variable for atom in atoms(pattern)}
    return replace(
        query,
        pattern=pattern,
        predicates=tuple(one for one in query.predicates if variables(one) <= known),
        weights=tuple(one for one in query.weights if one[0] in known),
        definitions=tuple(one for one in query.definitions if one.letter in known),
    )


def loose(query: QuerySyntax) -> QuerySyntax:
    """Only what single events are asked for, their key, their order and the window."""
    pattern = query.pattern
    for negation in negations(pattern):
        pattern = without_negation(pattern, negation)
    known = {atom.variable for atom in atoms(pattern)}
    kept = tuple(one for one in query.predicates if is_static(one) and variables(one) <= known)
    return replace(query, pattern=pattern, predicates=kept, strategy=DEFAULT_STRATEGY, is_simultaneous=False)


def wide(query: QuerySyntax) -> QuerySyntax:
    """The same in a window that nothing leaves."""
    return replace(query, window=replace(query.window, amount=WIDEST // MICROSECONDS.get(query.window.unit, 1)))


def relaxations(query: QuerySyntax) -> Iterator[tuple[str, QuerySyntax]]:
    """The query without one thing that is about several events, and what that is: in the words of the query."""
    negated = negated_variables(query.pattern)
    for predicate in query.predicates:
        if not is_static(predicate) and not variables(predicate) & negated:
            kept = tuple(other for other in query.predicates if other is not predicate)
            yield to_text(predicate), replace(query, predicates=kept)
    for negation in negations(query.pattern):
        gone = {atom.variable for atom in negation.options}
        kept = tuple(one for one in query.predicates if not variables(one) & gone)
        yield to_text(negation), replace(query, pattern=without_negation(query.pattern, negation), predicates=kept)
    if query.strategy != DEFAULT_STRATEGY:
        yield query.strategy, replace(query, strategy=DEFAULT_STRATEGY)
    if query.is_simultaneous:
        yield "SIMULTANEOUS", replace(query, is_simultaneous=False)


def negations(pattern: Pattern) -> list[Absent]:
    """What must not come."""
    return [part for part in walk(pattern) if isinstance(part, Absent)]


def without_negation(pattern: Pattern, negation: Absent) -> Pattern:
    """A pattern without one of its negations."""
    match pattern:
        case Sequence(parts=parts):
            return sequence_of([without_negation(part, negation) for part in parts if part != negation])
        case Either(options=options):
            return choice_of([without_negation(option, negation) for option in options])
        case Repeat(part=part):
            return replace(pattern, part=without_negation(part, negation))
    return pattern


@dataclass(frozen=True)
class Points:
    """The events that complete a match of a changed query: how many, the first, and the one with the shortest span."""

    number: int
    first: int = -1
    shortest: int = -1
    span: int = 0


@dataclass(frozen=True)
class Blocked:
    """What kept events from passing a step, and the place of an event to ask about.

    ``kind`` is "order", "window" or "together". ``relaxed`` are the things without which events pass, each with how
    many; ``span`` is the shortest window in which one passes.
    """

    kind: str
    at: int = -1
    span: int = 0
    relaxed: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True)
class Furthest:
    """The partial match that came furthest: its number of events, what could have come next, and its last event."""

    bound: int
    awaited: tuple[str, ...]
    at: int


class Steps:
    """Runs changed queries over a place.

    Parameters
    ----------
    place : StreamPlace
        Of all keys.
    """

    def __init__(self, place: StreamPlace) -> None:
        self.place = place
        self.query = plain(place.plan.query)
        self.has_beginnings = not self.query.is_machine

    def passed(self) -> tuple[list[tuple[tuple[str, ...], Points | None]], QuerySyntax]:
        """For each step of the pattern the events that pass it, up to the first step that none passes; its query.

        None: it could not be found out, as it would take too many run-steps.
        """
        found: list[tuple[tuple[str, ...], Points | None]] = []
        query = self.query
        for beginning in beginnings(self.query) if self.has_beginnings else ():
            query, points = beginning.query, self.points(beginning.query)
            found.append((beginning.names, points))
            if points is not None and not points.number:
                break
        return found, query

    def blocked(self, query: QuerySyntax) -> Blocked | None:
        """What keeps events from passing the last step of a beginning; None: it would take too many run-steps."""
        if not self.has_beginnings:
            return None
        free = self.points(wide(loose(query)))
        if free is None:
            return None
        if not free.number:
            return Blocked("order")
        timely = self.points(loose(query))
        if timely is None:
            return None
        if not timely.number:
            return Blocked("window", free.shortest, free.span)
        relaxed = [(text, self.points(changed)) for text, changed in relaxations(query)]
        helpful = sorted(((text, one) for text, one in relaxed if one and one.number), key=lambda it: -it[1].number)
        at = helpful[0][1].first if helpful else timely.first
        return Blocked("together", at, 0, tuple((text, one.number) for text, one in helpful))

    def furthest(self) -> Furthest | None:
        """The partial match that came furthest; None where there is none, or it would take too many run-steps."""
        try:
            tables = self.place.run(self.query, PARTIAL, STEPS)
            rows = (row for table in tables for row in table.to_pylist())
            best: dict[str, Any] | None = max(rows, key=lambda row: (row["bound"], -row["errors"]), default=None)
        except (TooManyStepsError, AcepError):
            return None
        if best is None:
            return None
        bound = [best[name] for name in self.place.plan.automaton.shown if best.get(name) is not None]
        events = [at for one in bound for at in (one if isinstance(one, list) else [one])]
        return Furthest(best["bound"], tuple(best["awaited"]), max(events, default=-1))

    def points(self, query: QuerySyntax, *, is_patient: bool = False) -> Points | None:
        """The match points of a query; None where it takes too many run-steps, or is no query.

        ``is_patient``: it may take longer.
        """
        number, first, shortest, shortest_span = 0, -1, -1, 0
        try:
            for table in self.place.run(query, POINTS, MOST_STEPS if is_patient else STEPS):
                if not table.num_rows:
                    continue
                rows, spans = table.column("row").to_numpy(), _spans(table)
                nearest = int(np.argmin(spans))
                first = first if number else int(rows[0])
                if not number or spans[nearest] < shortest_span:
                    shortest, shortest_span = int(rows[nearest]), int(spans[nearest])
                number += len(rows)
        except (TooManyStepsError, AcepError):
            return None
        return Points(number, first, shortest, shortest_span)


def _spans(table: pa.Table) -> Ints:
    """How long each match is, in what the window counts."""
    if "span" in table.column_names:
        spans: Ints = table.column("span").to_numpy()
        return spans
    columns = [table.column(name) for name in ("end", "start")]
    if pa.types.is_timestamp(columns[0].type):
        columns = [pc.cast(column, pa.timestamp("us", column.type.tz)) for column in columns]
    end, start = (column.cast(pa.int64()).to_numpy() for column in columns)
    found: Ints = end - start
    return found
