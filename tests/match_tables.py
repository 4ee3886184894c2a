"""Tables of matches, points and counts, as the oracle writes them."""

from __future__ import annotations

from collections import Counter, defaultdict

import pyarrow as pa

from acep_approx.query.shape import atoms, negated_variables
from acep_approx.query.syntax import QuerySyntax
from tests.naive import Binding
from tests.naive_partial import Report


def bindings(table: pa.Table, query: QuerySyntax) -> dict[Binding, int]:
    """The rows of a table of matches as the oracle writes them; asserts that no match is listed twice.

    Where no event came there may be no columns.
    """
    negated = negated_variables(query.pattern)
    variables = [atom.variable for atom in atoms(query.pattern) if atom.variable not in negated]
    found: dict[Binding, int] = {}
    for row in table.to_pylist():
        if query.is_regex:
            bound = tuple((event, "") for event in row["events"])
        else:
            pairs = []
            for variable in variables:
                events = row[variable]
                events = events if isinstance(events, list) else [] if events is None else [events]
                pairs += [(event, variable) for event in events]
            bound = tuple(sorted(pairs))
        assert bound not in found, f"{bound} was listed twice"
        found[bound] = row["errors"]
    return found


def least(points: pa.Table) -> dict[int, int]:
    """Per match point the least err. One row has several points where its matches are reported at several times."""
    found: dict[int, int] = {}
    for point in points.to_pylist():
        found[point["row"]] = min(point["errors"], found.get(point["row"], point["errors"]))
    return found


def counted(counts: pa.Table) -> dict[tuple[int, int], int]:
    """The number of matches per match point and err."""
    found: dict[tuple[int, int], int] = defaultdict(int)
    for row in counts.to_pylist():
        found[row["row"], row["errors"]] += row["matches"]
    return dict(found)


def per_point(matches: dict[Binding, int]) -> Counter[tuple[int, int]]:
    """What ``counted`` must give."""
    return Counter((bound[-1][0], err) for bound, err in matches.items())


def reports(table: pa.Table, query: QuerySyntax) -> dict[int, Report]:
    """Partial matches as the oracle writes them, by their first event."""
    negated = negated_variables(query.pattern)
    variables = [atom.variable for atom in atoms(query.pattern) if atom.variable not in negated]
    found: dict[int, Report] = {}
    for row in table.to_pylist():
        if query.is_regex:
            bound = tuple((event, "") for event in row["events"])
        else:
            events = {v: row[v] if isinstance(row[v], list) else [row[v]] for v in variables}
            bound = tuple(sorted((event, v) for v, some in events.items() for event in some if event is not None))
        assert bound[0][0] not in found, "an event was reported twice"
        assert len(bound) == row["bound"]
        found[bound[0][0]] = row["errors"], bound, tuple(row["awaited"]), row["why"]
    return found
