"""NON OVERLAP by brute force: which matches are reported. Tests only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from acep_approx.query.syntax import QuerySyntax
from tests.naive import Binding, PartitionSearch, partitions
from tests.naive_order import apart, in_order

Rows = Sequence[Mapping[str, Any]]


def reported_matches(query: QuerySyntax, rows: Rows, matches: Mapping[Binding, int]) -> dict[Binding, int]:
    """What NON OVERLAP leaves of ``matches``: in each partition those that follow one another, as they are reported."""
    searches = [PartitionSearch(query, rows, part) for part in partitions(query, rows)]
    waiting = {bound for search in searches for bound in waiting_matches(search)}
    ordered = in_order(query, rows, matches, waiting)
    kept = {
        bound
        for part in (set(search.part) for search in searches)
        for bound in apart(bound for bound in ordered if bound[0][0] in part)
    }
    return {bound: matches[bound] for bound in ordered if bound in kept}


def waiting_matches(search: PartitionSearch) -> set[Binding]:
    """The matches that wait for the end of their window: only with a negation at the end can they have so few errors.

    Whatever comes after its last event plays no role: that is not known when it begins to wait.
    """
    least: dict[Binding, tuple[int, bool]] = {}
    for path in search.paths():
        if search.negations_hold(path._replace(gaps=path.gaps[:-1])):
            bound, way = search.identity(path), (path.err, bool(path.gaps[-1]))
            least[bound] = min(way, least.get(bound, way))
    return {bound for bound, (_, waits) in least.items() if waits}
