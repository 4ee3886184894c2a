"""Partial matches by brute force: how far each event came with which a run began and no match. Tests only.

The furthest partial match may not be the only one; which of equals is reported is left to the engine.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from acep_approx.query.shape import atoms
from acep_approx.query.syntax import QuerySyntax
from tests.naive import PartitionSearch, Path, expected_matches, partitions

Rows = Sequence[Mapping[str, Any]]
Report = tuple[int, tuple[tuple[int, str], ...], tuple[str, ...], str]
"""Errors, what is bound, what is awaited, why."""


def expected_partials(query: QuerySyntax, rows: Rows) -> dict[int, set[Report]]:
    """Per event with which a run began and no match, in order: the reports that are right."""
    begun = {bound[0][0] for bound in expected_matches(query, rows)}
    found: dict[int, set[Report]] = {}
    for part in partitions(query, rows):
        search = PartitionSearch(query, rows, part)
        best: dict[int, list[Path]] = {}
        for path in prefixes(search):
            ways = best.setdefault(path.bound[0][0], [path])
            if worth(path) > worth(ways[0]):
                ways.clear()
            if not ways or worth(path) == worth(ways[0]):
                ways.append(path)
        for first, ways in best.items():
            if first not in begun:
                found[first] = {report(search, path) for path in ways}
    return found


def worth(path: Path) -> tuple[int, int, int]:
    """Events bound, then errors, then the last event."""
    return len(path.bound), -path.err, path.bound[-1][0]


def prefixes(search: PartitionSearch) -> Iterator[Path]:
    """The paths of at least one event of which all holds that is known by then."""
    seen = {Path((), search.places.start)}
    waiting = list(seen)
    while waiting:
        path = waiting.pop()
        if path.bound:
            yield path
        more = {onward for onward in search.continuations(path) if not onward.is_done and holds(search, onward)} - seen
        seen |= more
        waiting += more


def holds(search: PartitionSearch, path: Path) -> bool:
    """Whether the conditions hold that are determined, and no simple negation is broken before the last event."""
    if not search.conditions.hold_so_far(path.bound, search.places.still_to_come(path.place)):
        return False
    if len(path.bound) == 1:
        return True  # a negation at the start is about complete matches
    before, last = path.bound[-2][0], path.bound[-1][0]
    for absent, directly in path.gaps[-1] or ():
        is_simple = len(absent) == 1 and not search.conditions.is_about_others(absent[0])
        for row in search.between(before, last) if is_simple else ():
            if search.conditions.fits(absent[0], row) and (not directly or search.comes_next(before, row, directly)):
                return False
    return True


def report(search: PartitionSearch, path: Path) -> Report:
    """What is said of a partial match."""
    steps = search.places.steps(path.place, search.query.errors - path.err)
    costs: dict[str, int] = {}
    for step in steps:
        if step.atom is not None:
            costs[step.atom.variable] = min(step.cost, costs.get(step.atom.variable, step.cost))
    order = list(dict.fromkeys(atom.variable for atom in atoms(search.query.pattern)))
    awaited = sorted(costs, key=lambda name: (costs[name] > 0, order.index(name)))
    accepts = any(step.atom is None for step in steps)
    why = "refused" if accepts else "broken" if is_broken(search, path) else ending(search, path)
    return path.err, search.identity(path), tuple(awaited), why


def is_broken(search: PartitionSearch, path: Path) -> bool:
    """Whether a neighbour came, within the window, where neighbours must follow one another."""
    first, last = path.bound[0][0], path.bound[-1][0]
    steps = search.places.steps(path.place, search.query.errors - path.err)
    strategies = {step.strategy for step in steps if step.atom is not None}
    if strategies and not strategies <= {"strict_contiguity", "partition_contiguity"}:
        return False
    if "strict_contiguity" in (strategies or {search.query.strategy}):
        after = next((row for row in range(len(search.rows)) if search.is_before(last, row)), len(search.rows))
        if after == len(search.rows):
            return False
        if search.query.window.unit == "events":  # an event of another partition counts where it came
            before = sum(row < after for row in search.part)
            return before <= search.number[first] + search.query.window.amount
        return search.span_fits(first, after)
    later = [row for row in search.part if search.is_before(last, row)]
    is_near = "partition_contiguity" in (strategies or {search.query.strategy})
    return is_near and bool(later) and search.span_fits(first, later[0])


def ending(search: PartitionSearch, path: Path) -> str:
    """Whether the window closed before the stream ended."""
    first = path.bound[0][0]
    if search.query.window.unit == "events":
        is_closed = search.number[first] + search.query.window.amount < len(search.part)
    else:
        is_closed = search.rows[-1]["ts"] > search.rows[first]["ts"] + search.query.window.amount
    return "window closed" if is_closed else "stream ended"
