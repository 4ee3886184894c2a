"""The order in which matches are reported, by brute force; docs/reference/language.md says it in words. Tests only."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from acep_approx.query.shape import atoms
from acep_approx.query.syntax import QuerySyntax
from tests.naive import Binding, partitions

Rows = Sequence[Mapping[str, Any]]
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
        moment = when(first) + query.window.amount if waits else when(last)
        known = moment
        if is_count:  # numbers of two partitions cannot be compared: the row of the event that ends the window
            part = part_of[last]
            known = part[moment] if moment < len(part) else AT_THE_END
        back = [(-row, place[variable]) for row, variable in reversed(bound)]
        return known, moment, waits, 0 if waits else last, matches[bound], -when(first), last, back

    return sorted(matches, key=key)


def best_matches(query: QuerySyntax, rows: Rows, matches: Mapping[Binding, int]) -> dict[int, Binding]:
    """Per event that completes matches the first of these in their order; no matter whether they wait."""
    best: dict[int, Binding] = {}
    for bound in in_order(query, rows, matches):
        best.setdefault(bound[-1][0], bound)
    return best
