"""The order in which matches are reported, by brute force; docs/reference/language.md says it in words. Tests only."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping
from collections.abc import Sequence as Listed
from typing import Any

from acep_approx.query.shape import atoms
from acep_approx.query.syntax import Absent, AllOf, Either, Pattern, QuerySyntax, Repeat, Sequence, Spaced
from tests.naive import Binding, partitions

Rows = Listed[Mapping[str, Any]]
AT_THE_END = 2**62


def in_order(
    query: QuerySyntax, rows: Rows, matches: Mapping[Binding, int], waiting: Collection[Binding] = ()
) -> list[Binding]:
    """Matches in their order of report.

    Parameters
    ----------
    query, rows
        As for ``expected_matches``.
    matches : mapping of Binding to int
        With their errors.
    waiting : collection of Binding
        Those that wait for the end of their window.
    """
    place = {"": 0} | {atom.variable: i for i, atom in enumerate(atoms(query.pattern))}
    parts = partitions(query, rows)
    number = {row: i for part in parts for i, row in enumerate(part)}
    part_of = {row: part for part in parts for row in part}
    is_count = query.window.unit == "events"

    def when(row: int) -> int:
        return number[row] if is_count else int(rows[row]["ts"])

    def key(bound: Binding) -> tuple[Any, ...]:
        first, last = bound[0][0], bound[-1][0]
        waits = bound in waiting
        moment = min(when(first) + query.window.amount, when(last) + waits_for(query)) if waits else when(last)
        known = moment
        if is_count:  # numbers of two partitions cannot be compared: the row of the event that ends the window
            part = part_of[last]
            known = part[moment] if moment < len(part) else AT_THE_END
        back = [(-row, place[variable]) for row, variable in reversed(bound)]
        return known, moment, waits, 0 if waits else last, matches[bound], -when(first), last, back

    return sorted(matches, key=key)


def waits_for(query: QuerySyntax) -> float:
    """How long after its last event a match waits, if negations with windows of their own say it."""
    ends = [*last_negations(query.pattern)]
    if query.selection.maximal or not ends or not all(absent.within for absent in ends):
        return math.inf
    return max(absent.within.amount for absent in ends if absent.within)


def last_negations(tree: Pattern) -> Iterator[Absent]:
    """The negations that a match may end with."""
    match tree:
        case Absent():
            yield tree
        case Sequence(parts=parts):
            for part in reversed(parts):
                yield from last_negations(part)
                if not can_be_empty(part):
                    return
        case Either(options=options) | AllOf(parts=options):
            for option in options:
                yield from last_negations(option)
        case Repeat(part=part) | Spaced(part=part):
            yield from last_negations(part)


def can_be_empty(tree: Pattern) -> bool:
    """Whether a part of a pattern can be there without an event."""
    match tree:
        case Absent():
            return True
        case Sequence(parts=parts) | AllOf(parts=parts):
            return all(map(can_be_empty, parts))
        case Spaced(part=part):
            return can_be_empty(part)
        case Either(options=options):
            return any(map(can_be_empty, options))
        case Repeat(part=part, least=least):
            return least == 0 or can_be_empty(part)
    return False


def best_matches(query: QuerySyntax, rows: Rows, matches: Mapping[Binding, int]) -> dict[int, Binding]:
    """Per event that completes matches the first of these in their order; no matter whether they wait."""
    best: dict[int, Binding] = {}
    for bound in in_order(query, rows, matches):
        best.setdefault(bound[-1][0], bound)
    return best
