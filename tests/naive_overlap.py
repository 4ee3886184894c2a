"""NON OVERLAP by brute force: whether the matches that were reported may be all that are reported. Tests only.

The language leaves ties in the order of report to the engine, so more than one answer may be right.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any

from acep_approx.query.syntax import QuerySyntax
from tests.naive import Binding, PartitionSearch, partitions

Rows = Sequence[Mapping[str, Any]]


def may_be_reported(query: QuerySyntax, rows: Rows, matches: dict[Binding, int], reported: Collection[Binding]) -> bool:
    """Whether ``reported`` are what NON OVERLAP can leave of ``matches``, in an order that the language allows."""
    chosen = set(reported)
    if len(chosen) < len(reported) or not chosen <= matches.keys():
        return False
    return all(
        follow_one_another(tied_groups(PartitionSearch(query, rows, part), matches), chosen)
        for part in partitions(query, rows)
    )


def follow_one_another(groups: Iterable[list[Binding]], chosen: set[Binding]) -> bool:
    """Whether the chosen ones are those that begin after the one before, for some order within each group."""
    last = -1
    for group in groups:
        for bound in sorted(group):
            if bound in chosen:
                if bound[0][0] <= last:
                    return False
                last = bound[-1][0]
        if any(bound[0][0] > last for bound in group):  # nothing was in its way
            return False
    return True


def tied_groups(search: PartitionSearch, matches: dict[Binding, int]) -> Iterator[list[Binding]]:
    """The matches of a partition in their order of report; those of one group in any order."""
    waiting = waiting_matches(search)
    moments = {bound: moment(search, bound, bound in waiting) for bound in matches if bound[0][0] in search.number}
    crowded = {moments[bound] for bound in moments.keys() & waiting}

    def order(bound: Binding) -> tuple[int, int, int]:
        when = moments[bound]
        return (when, 0, 0) if when in crowded else (when, matches[bound], -search.rows[bound[0][0]]["ts"])

    for _, tied in groupby(sorted(moments, key=order), key=order):
        yield list(tied)


def waiting_matches(search: PartitionSearch) -> set[Binding]:
    """The matches that wait for the end of their window: only with a negation at the end can they have so few errors.

    Whatever comes after its last event plays no role: that is not known when it begins to wait.
    """
    least: dict[Binding, tuple[int, bool]] = {}
    for path in search.paths():
        if search.negations_hold(replace(path, gaps=path.gaps[:-1])):
            bound, way = search.identity(path), (path.err, bool(path.gaps[-1]))
            least[bound] = min(way, least.get(bound, way))
    return {bound for bound, (_, waits) in least.items() if waits}


def moment(search: PartitionSearch, bound: Binding, waits: bool) -> int:
    """The number of the event with which a match is reported: its last one, or the first after its window."""
    if not waits:
        return search.number[bound[-1][0]]
    later = [row for row in search.part if row > bound[-1][0] and not search.span_fits(bound[0][0], row)]
    return search.number[later[0]] if later else len(search.part)
