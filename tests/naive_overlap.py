"""NON OVERLAP by brute force: whether the matches that were reported may be all that are reported. Tests only.

The language leaves ties in the order of report to the engine, so more than one answer may be right.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from acep_approx.query.syntax import QuerySyntax
from tests.naive import Binding, PartitionSearch, partitions

Rows = Sequence[Mapping[str, Any]]


def may_be_reported(query: QuerySyntax, rows: Rows, matches: dict[Binding, int], reported: Collection[Binding]) -> bool:
    """Whether ``reported`` are what NON OVERLAP can leave of ``matches``, in an order that the language allows.

    True also where it is open when a match is reported: it can be read with a negation at its end, and without.
    """
    chosen = set(reported)
    if len(chosen) < len(reported) or not chosen <= matches.keys():
        return False
    return all(
        follow_one_another(groups, chosen)
        for part in partitions(query, rows)
        for groups in [list(tied_groups(PartitionSearch(query, rows, part), matches))]
        if all(groups)
    )


def follow_one_another(groups: list[list[Binding]], chosen: set[Binding]) -> bool:
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
    """The matches of a partition in their order of report; those of one group in any order.

    An empty group stands for a match of which it is open when it is reported.
    """
    waits: dict[Binding, set[bool]] = {}
    for path in search.paths():
        bound = search.identity(path)
        if bound in matches:
            waits.setdefault(bound, set()).add(bool(path.gaps[-1]))
    if any(len(ways) > 1 for ways in waits.values()):
        yield []
        return
    moments: dict[Binding, int] = {bound: moment(search, bound, True in ways) for bound, ways in waits.items()}
    crowded = {moments[bound] for bound, ways in waits.items() if True in ways}

    def order(bound: Binding) -> tuple[int, int, int]:
        when = moments[bound]
        return (when, 0, 0) if when in crowded else (when, matches[bound], -search.rows[bound[0][0]]["ts"])

    for _, tied in groupby(sorted(moments, key=order), key=order):
        yield list(tied)


def moment(search: PartitionSearch, bound: Binding, waits: bool) -> int:
    """The number of the event with which a match is reported: its last one, or the first after its window."""
    if not waits:
        return search.number[bound[-1][0]]
    later = [row for row in search.part if row > bound[-1][0] and not search.span_fits(bound[0][0], row)]
    return search.number[later[0]] if later else len(search.part)
