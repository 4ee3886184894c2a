"""What runs of the past led to, by brute force: all continuations of all partial matches. Tests only.

``Seen`` reads a trace as people would: which events a run had bound, and which it completes a match at.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

from acep_approx.query.syntax import QuerySyntax
from history.trace import Trace
from tests.naive import PartitionSearch, Path, partitions
from tests.naive_partial import holds, prefixes

Rows = Sequence[Mapping[str, Any]]
Run = tuple[tuple[int, ...], int]
"""Rows bound, and errors."""


class Futures:
    """All runs of a query in a stream, and the match points that each reaches."""

    def __init__(self, query: QuerySyntax, rows: Rows) -> None:
        self.runs: dict[Run, list[tuple[PartitionSearch, Path]]] = {}
        self.query = query
        self._known: dict[tuple[int, Path], set[tuple[int, int]]] = {}
        for part in partitions(query, rows):
            search = PartitionSearch(query, rows, part)
            for path in prefixes(search):
                self.runs.setdefault((tuple(row for row, _ in path.bound), path.err), []).append((search, path))

    def waiting(self, run: Run) -> list[tuple[PartitionSearch, Path]]:
        """The ways to bind some events after which anything can come."""
        k = self.query.errors
        return [
            (search, path)
            for search, path in self.runs.get(run, ())
            if any(step.atom is not None for step in search.places.steps(path.place, k - path.err))
        ]

    def reached(self, run: Run, since: int) -> set[int]:
        """Match points that a run completes, at its own last event or with events, from row ``since`` on."""
        found = set()
        for search, path in self.waiting(run):
            last = path.bound[-1][0]
            found |= {row for row, after in self._ends(search, path) if (last if after is None else after) >= since}
        return found

    def costs(self, run: Run, since: int) -> set[int]:
        """Run-steps from a row on: which of several children of one event comes first is left to the engine."""
        return {cost for search, path in self.waiting(run) for cost in self._costs(search, path, since)}

    def _costs(self, search: PartitionSearch, path: Path, since: int) -> set[int]:
        steps = search.places.steps(path.place, self.query.errors - path.err)
        children = [more for more in search.continuations(path) if not more.is_done and holds(search, more)]
        seen = [row for row in search.part if row >= since and search.span_fits(path.bound[0][0], row)]
        tests = [row for row in seen if any(step.atom and search.conditions.fits(step.atom, row) for step in steps)]
        for row in seen:
            born = [more for more in children if more.bound[-1][0] == row]
            if born:
                last = max(other for other in seen if not search.is_before(row, other))
                own = sum(other <= last for other in tests)
                return {own + cost for more in born for cost in self._costs(search, more, last + 1)}
        return {len(tests)}

    def _ends(self, search: PartitionSearch, path: Path) -> set[tuple[int, int | None]]:
        """Match points of a path, each with the next event on the way there."""
        key = id(search), path
        if key not in self._known:
            found = set()
            for more in search.continuations(path):
                if not more.is_done:
                    found |= {(row, more.bound[-1][0]) for row, _ in self._ends(search, more)}
                elif search.conditions.hold(more.bound) and search.negations_hold(more):
                    found.add((more.bound[-1][0], None))
            self._known[key] = found
        return self._known[key]

    def completions(self) -> Iterator[tuple[tuple[int, ...], int]]:
        """Rows of a run, and the match point that its next event made."""
        for (rows, _), paths in self.runs.items():
            if len(rows) > 1 and any((rows[-1], None) in self._ends(*path) for path in paths):
                yield rows[:-1], rows[-1]


class Seen:
    """A trace by rows of the stream; ``row_of`` gives the row of a tick of a slot."""

    def __init__(self, trace: Trace, errors: Sequence[int], row_of: Mapping[tuple[str, int], int]) -> None:
        self.trace = trace
        self.errors = errors
        self.row_of = row_of

    @cached_property
    def visits(self) -> list[tuple[int, int, bool]]:
        """Per visit: tick, row of the last event bound, whether it is just bound."""
        trace, found = self.trace, []
        for visit, birth in enumerate(trace.birth.tolist()):
            slot = str(trace.slot_names(trace.slot[birth : birth + 1])[0])
            window = self.window(birth)
            now = int(trace.start[birth]) + window - int(trace.remaining[visit])
            last = now - int(trace.since[visit])
            found.append((now, self.row_of[slot, last], bool(trace.since[visit] == 0)))
        return found

    def window(self, birth: int) -> int:
        """What a first visit tells of the window."""
        first = int(self.trace.first_visits()[birth])
        return int(self.trace.remaining[first] + self.trace.tick[birth] - self.trace.start[birth])

    def rows(self, visit: int) -> tuple[int, ...]:
        """Rows that the run of a visit has bound."""
        found: list[int] = []
        while visit >= 0:
            if self.visits[visit][2]:
                found.append(self.visits[visit][1])
            visit = int(self.trace.parent[visit])
        return tuple(reversed(found))

    def run(self, visit: int) -> Run:
        """Rows and errors of the run of a visit."""
        return self.rows(visit), self.errors[int(self.trace.place[self.trace.birth[visit]])]

    def reached(self, visit: int) -> set[int]:
        """Rows of the match points that a visit leads to."""
        trace = self.trace
        first, mask = int(trace.first_point[visit]), int(trace.mask[visit])
        return {int(trace.point_row[first + bit]) for bit in range(64) if mask >> bit & 1}

    def memory(self, birth: int) -> tuple[str, ...]:
        """What a run remembers at its birth."""
        trace = self.trace
        pairs = zip(trace.kinds, (float(column[birth]) for column in trace.values), strict=True)
        return tuple(trace.texts[int(v)] if kind == "text" and v >= 0 else repr(v) for kind, v in pairs)

    def flat(self, visit: int) -> tuple[Any, ...]:
        """A visit without numbers that depend on where the trace was cut; last what it reached, and its cost."""
        trace, birth, parent = self.trace, int(self.trace.birth[visit]), int(self.trace.parent[visit])
        born = tuple(int(column[birth]) for column in (trace.place, trace.tick, trace.start))
        before = None if parent < 0 else (int(trace.place[trace.birth[parent]]), *self.visits[parent])
        known = (*born, self.memory(birth), *self.visits[visit], before)
        return (*known, tuple(sorted(self.reached(visit))), float(trace.cost[visit]))


def spread(rows: Rows) -> tuple[dict[str, Any], ...]:
    """A stream with the same events, one a tick."""
    return tuple({**row, "ts": tick} for tick, row in enumerate(rows))


def rows_of_ticks(query: QuerySyntax, rows: Rows) -> dict[tuple[str, int], int]:
    """The row of each tick of each slot; in count windows, of each number."""
    found = {}
    for part in partitions(query, rows):
        names = [str(rows[part[0]][equivalence.name]) for equivalence in query.equivalences]
        slot = " | ".join(names) if names else "0"
        for number, row in enumerate(part):
            found[slot, number if query.window.unit == "events" else rows[row]["ts"]] = row
    return found
