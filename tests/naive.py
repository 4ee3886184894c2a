"""The oracle: obvious brute force over all ways to bind events. Tests only; never import it from the package.

It shares nothing with the engines but the tree of the query: no automaton, no closure, no tables. Slow on purpose.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from acep_approx.query.syntax import Absent, Atom, Choice, Pattern, QuerySyntax, Repeat
from acep_approx.query.syntax import Sequence as Seq

Binding = tuple[tuple[int, str], ...]
"""Events bound, in order: (index of the event, variable; "" in a bare regular expression)."""


@dataclass(frozen=True)
class Event:
    """One event of a small world."""

    tick: int
    type: str
    values: dict[str, Any] = field(default_factory=dict, hash=False)


@dataclass(frozen=True)
class Partial:
    """Events bound so far, errors so far, negations since the last letter, and whether that letter was bound."""

    bound: Binding = ()
    err: int = 0
    absent: frozenset[Atom] = frozenset()
    fresh: bool = False


Holds = Callable[[Atom, Event], bool]


def type_only(atom: Atom, event: Event) -> bool:
    """What an atom without conditions asks."""
    return atom.type is None or atom.type == event.type


def all_matches(query: QuerySyntax, events: Sequence[Event], holds: Holds = type_only) -> dict[Binding, int]:
    """Every match of ``query`` in one partition, with its least err.

    The window is ``t_last - t_first <= amount`` over ticks, or over the numbers of the events in a count window.
    """
    weights = dict(query.weights)

    def bind(atom: Atom, partial: Partial) -> set[Partial]:
        found = set()
        last = partial.bound[-1][0] if partial.bound else -1
        for i in range(last + 1, len(events)):
            between = events[last + 1 : i]
            broken = partial.fresh and any(holds(no, e) for no in partial.absent for e in between)
            if holds(atom, events[i]) and not broken:
                label = "" if query.is_regex else atom.variable
                found.add(Partial((*partial.bound, (i, label)), partial.err, frozenset(), True))
        err = partial.err + weights.get(atom.variable, 1)
        if err <= query.errors:
            found.add(Partial(partial.bound, err, frozenset(), False))
        return found

    def step(tree: Pattern, partials: set[Partial]) -> set[Partial]:
        if isinstance(tree, Atom):
            return {new for partial in partials for new in bind(tree, partial)}
        if isinstance(tree, Absent):
            return {
                Partial(p.bound, p.err, p.absent | frozenset(tree.options) if p.fresh else p.absent, p.fresh)
                for p in partials
            }
        if isinstance(tree, Seq):
            for part in tree.parts:
                partials = step(part, partials)
            return partials
        if isinstance(tree, Choice):
            return {new for option in tree.options for new in step(option, partials)}
        return repeat(tree, partials)

    def repeat(tree: Repeat, partials: set[Partial]) -> set[Partial]:
        for _ in range(tree.least):
            partials = step(tree.part, partials)
        reached = set(partials)
        rounds = 0
        while partials and (tree.most is None or rounds < tree.most - tree.least):
            partials = step(tree.part, partials) - reached
            reached |= partials
            rounds += 1
        return reached

    best: dict[Binding, int] = {}
    for partial in step(query.pattern, {Partial()}):
        if partial.bound and inside_window(query, events, partial.bound):
            best[partial.bound] = min(partial.err, best.get(partial.bound, partial.err))
    return best


def inside_window(query: QuerySyntax, events: Sequence[Event], bound: Binding) -> bool:
    """Whether the last event lies at most the window after the first."""
    first, last = bound[0][0], bound[-1][0]
    span = last - first if query.window.unit == "events" else events[last].tick - events[first].tick
    return span <= query.window.amount


def match_points(matches: dict[Binding, int]) -> dict[int, int]:
    """Per event that completes a match the least err of these matches."""
    points: dict[int, int] = {}
    for bound, err in matches.items():
        last = bound[-1][0]
        points[last] = min(err, points.get(last, err))
    return points
