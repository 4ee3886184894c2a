"""The oracle: obvious brute force over all ways to bind events. Tests only; never import it from the package.

It shares nothing with the engines but the tree of the query: no automaton, no closure, no tables. Slow on purpose.
There are two of them: ``all_matches`` is for what the cells engine runs, ``expected_matches`` for the whole language.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations, pairwise, permutations, product
from typing import Any, NamedTuple

from acep_approx.query.shape import walk
from acep_approx.query.syntax import Absent, AllOf, Atom, Either, Pattern, QuerySyntax, Repeat, Strategy
from acep_approx.query.syntax import Sequence as Seq
from tests.naive_conditions import Conditions, once_for_each
from tests.naive_places import Gap, Place, Step, places_of

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
        if isinstance(tree, Either):
            return {new for option in tree.options for new in step(option, partials)}
        if isinstance(tree, AllOf):
            return {new for parts in permutations(tree.parts) for new in step(Seq(parts), partials)}
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


# --- the whole language -----------------------------------------------------------------------------------------------


def expected_matches(query: QuerySyntax, rows: Sequence[Mapping[str, Any]]) -> dict[Binding, int]:
    """Every match of ``query`` in a stream, with its least err; bindings hold row numbers of the whole stream.

    ``rows`` have ``ts`` (a whole number), ``type`` and attributes, in the order of the stream; the window counts ticks
    or events. Clauses that say which matches are listed are left to ``reported_matches``.
    """
    assert query.window.unit in ("ticks", "events"), "the oracle knows no units of time"
    best: dict[Binding, int] = {}
    for part in partitions(query, rows):
        search = PartitionSearch(query, rows, part)
        for path in search.paths():
            if search.negations_hold(path):
                bound = search.identity(path)
                best[bound] = min(path.err, best.get(bound, path.err))
    return best


def partitions(query: QuerySyntax, rows: Sequence[Mapping[str, Any]]) -> list[list[int]]:
    """The row numbers of each partition; an event with NULL in an attribute of an equivalence is in none."""
    names = [equivalence.name for equivalence in query.equivalences]
    found: dict[tuple[Any, ...], list[int]] = {}
    for i, row in enumerate(rows):
        if is_known(key := tuple(row[name] for name in names)):
            found.setdefault(key, []).append(i)
    return list(found.values())


def partition_of(query: QuerySyntax, rows: Sequence[Mapping[str, Any]], row: int) -> list[int] | None:
    """The one of ``partitions`` that has a row; None if it is in none."""
    names = [equivalence.name for equivalence in query.equivalences]
    keys = [tuple(one[name] for name in names) for one in rows]
    return [i for i, key in enumerate(keys) if key == keys[row]] if is_known(keys[row]) else None


def is_known(key: tuple[Any, ...]) -> bool:
    """Whether all values of a key are some."""
    return not any(value is None or (isinstance(value, float) and math.isnan(value)) for value in key)


class Path(NamedTuple):
    """A way to read some events: what is bound, the place after it, errors, and the gap before each bound event.

    At the end of the pattern there is one more gap, the one after the last event.
    """

    bound: Binding
    place: Place
    err: int = 0
    gaps: tuple[Gap, ...] = ()
    is_done: bool = False


def comes_first(one: Step, other: Step) -> bool:
    """Whether a repetition prefers a step to another one: where it is greedy, another round to what follows."""
    greedy = any(tree.prefers == "GREEDY" for tree in (one.begun - one.over) & (other.over - other.begun))
    reluctant = any(tree.prefers == "RELUCTANT" for tree in (one.over - one.begun) & (other.begun - other.over))
    return greedy or reluctant


class Known:
    """What a search asks of the pattern of a query; it is the same for all streams."""

    def __init__(self, query: QuerySyntax) -> None:
        absent = [part for part in walk(query.pattern) if isinstance(part, Absent)]
        self.places = places_of(query)
        self.since_start = {atom for part in absent if part.since_start for atom in part.options}
        self.within = {atom: part.within.amount for part in absent if part.within for atom in part.options}
        self.prefers = any(isinstance(part, Repeat) and part.prefers for part in walk(query.pattern))


pattern_of = once_for_each(Known)


class PartitionSearch:
    """All paths of one query through one partition: the row numbers ``part`` of ``rows``."""

    def __init__(self, query: QuerySyntax, rows: Sequence[Mapping[str, Any]], part: list[int]) -> None:
        self.query = query
        self.rows = rows
        self.part = part
        self.number = {row: i for i, row in enumerate(part)}
        known = pattern_of(query)
        self.places, self.since_start, self.within = known.places, known.since_start, known.within
        self.prefers = known.prefers
        self.conditions = Conditions(query, rows)

    def paths(self) -> Iterator[Path]:
        """The paths that are matches if their negations hold."""
        seen = {Path((), self.places.start)}
        waiting = list(seen)
        while waiting:
            path = waiting.pop()
            if path.is_done:
                if path.bound and self.conditions.hold(path.bound):
                    yield path
                continue
            more = set(self.continuations(path)) - seen
            seen |= more
            waiting += more

    def identity(self, path: Path) -> Binding:
        """What tells the match of a path from others: the letters of a bare regular expression do not."""
        return tuple((row, "") for row, _ in path.bound) if self.query.is_regex else path.bound

    def continuations(self, path: Path) -> Iterator[Path]:
        """A path with one more bound event, or at its end."""
        last, following = (path.bound[-1][0], self.number[path.bound[-1][0]] + 1) if path.bound else (-1, 0)
        for step in self.places.steps(path.place, self.query.errors - path.err):
            err, gaps = path.err + step.cost, (*path.gaps, step.gap)
            if step.atom is None:
                yield Path(path.bound, step.place, err, gaps, is_done=True)
                continue
            fits, first = self.conditions.fitting(step.atom), path.bound[0][0] if path.bound else None
            for row in self.part[following:]:
                if not fits[row] or not self.is_before(last, row):
                    continue
                if any(self.conditions.fits(atom, row) for atom in step.until):
                    continue
                if self.span_fits(row if first is None else first, row) and self.may_skip(path, step, row):
                    yield Path((*path.bound, (row, step.atom.variable)), step.place, err, gaps)

    def span_fits(self, first: int, last: int) -> bool:
        """Whether one row lies at most the window after another one."""
        if self.query.window.unit == "events":
            return self.number[last] - self.number[first] <= self.query.window.amount
        return bool(self.rows[last]["ts"] - self.rows[first]["ts"] <= self.query.window.amount)

    def time_between(self, first: int, last: int) -> int:
        """The time from one row to another one."""
        return int(self.rows[last]["ts"] - self.rows[first]["ts"])

    def is_before(self, one: int, other: int) -> bool:
        """Whether a row comes before another one; with SIMULTANEOUS only if it is earlier in time."""
        if not self.query.is_simultaneous or one < 0 or other >= len(self.rows):
            return one < other
        return bool(self.rows[one]["ts"] < self.rows[other]["ts"])

    def lies_between(self, first: int, row: int, last: int) -> bool:
        """Whether a row lies between two others; -1 and the number of rows are the ends of the stream."""
        return self.is_before(first, row) and self.is_before(row, last)

    def comes_next(self, last: int, row: int, strategy: Strategy) -> bool:
        """Whether no event lies between two rows: none of the stream, or none of the partition."""
        if strategy == "strict_contiguity":
            return not any(self.lies_between(last, other, row) for other in range(len(self.rows)))
        return not self.between(last, row)

    def between(self, first: int, last: int) -> list[int]:
        """The rows of the partition strictly between two rows."""
        if not self.query.is_simultaneous:
            return self.part[self.number.get(first, -1) + 1 : self.number.get(last, len(self.part))]
        return [row for row in self.part if self.lies_between(first, row, last)]

    # --- strategies ---

    def may_skip(self, path: Path, step: Step, row: int) -> bool:
        """Whether the strategy of the gap before ``row`` lets a step bind it next, and no other step comes first."""
        return self.fits_gap(path, step, row) and not self.comes_late(path, step, row)

    def comes_late(self, path: Path, step: Step, row: int) -> bool:
        """Whether a repetition is greedy or reluctant, and another step could have bound ``row`` or an event before."""
        if not path.bound or not self.prefers:
            return False
        last = path.bound[-1][0]
        others = [other for other in self.places.steps(path.place, 0) if other.atom and comes_first(other, step)]
        for other, one in product(others, [*self.between(last, row), row]):
            is_near = "contiguity" not in other.strategy or self.fits_gap(path, other, one)
            if is_near and self.is_enabled(path, other, one):
                return True
        return False

    def fits_gap(self, path: Path, step: Step, row: int) -> bool:
        """Whether the strategy of the gap before ``row`` lets a step bind it next."""
        if not path.bound or step.strategy == "skip_till_any_match":
            return True
        last = path.bound[-1][0]
        if "contiguity" in step.strategy:
            return self.comes_next(last, row, step.strategy)
        return all(self.is_ignorable(path, skipped) for skipped in self.between(last, row))

    def is_ignorable(self, path: Path, row: int) -> bool:
        """Skip till next match: no step over such a gap could bind this event. Takes come before all other steps."""
        steps = [step for step in self.places.steps(path.place, 0) if step.atom is not None]
        steps = [step for step in steps if step.strategy == "skip_till_next_match"]
        takes = [step for step in steps if step.takes]
        return not any(self.is_enabled(path, step, row) for step in takes or steps)

    def is_enabled(self, path: Path, step: Step, row: int) -> bool:
        """Whether a step could bind an event, as far as that can be known then."""
        assert step.atom is not None
        if not self.conditions.fits(step.atom, row) or any(self.conditions.fits(atom, row) for atom in step.until):
            return False
        bound = (*path.bound, (row, step.atom.variable))
        return self.conditions.hold_so_far(bound, self.places.still_to_come(step.place))

    # --- negation ---

    def negations_hold(self, path: Path) -> bool:
        """Whether no event between the bound ones, before the first, or after the last is one that must not happen."""
        if self.query.at_start and path.bound[0][0] != self.part[0]:
            return False
        ends = [-1, *(row for row, _ in path.bound), len(self.rows)]
        for gap, start, end in zip(path.gaps, ends, ends[1:], strict=False):
            for atoms, directly in gap or ():
                rows = [row for row in self.between(start, end) if self.is_in_reach(row, path, atoms[0], (start, end))]
                rows = [row for row in rows if not directly or self.comes_next(start, row, directly)]
                for some in combinations(rows, len(atoms)):
                    follows = all(self.is_before(*two) for two in pairwise(some))
                    if follows and self.conditions.qualify(atoms, some, path.bound):
                        return False
        return True

    def is_in_reach(self, row: int, path: Path, atom: Atom, gap: tuple[int, int]) -> bool:
        """Whether a row in a gap lies where a negated atom asks: in the windows, or anywhere since the start."""
        if atom in self.since_start:
            return True
        if atom in self.within:
            near = (gap[0], row) if gap[0] >= 0 else (row, gap[1])
            if self.time_between(*near) > self.within[atom]:
                return False
        return self.span_fits(row, path.bound[-1][0]) and self.span_fits(path.bound[0][0], row)
