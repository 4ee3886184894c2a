"""Queries that share their runs: they differ only in how far a match may reach, and in what they ask of its last event.

A class is run once, with the widest window and the weakest thresholds of its queries. What it completes is then held
against each of them. So a hundred thousand queries on hot constants cost what their classes cost.

Source: Demers et al., CIDR 2007, section 4.3.3 (equal states of automata are merged). Ours in that queries are merged
though they end differently: there each state of an automaton is merged or not. Only where every event of a match point
is as good as any other: match points without errors, of runs that no event takes away.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from acep_approx.archive import Scope, damaged_part
from acep_approx.arrays import Floats, Ints, extended
from acep_approx.automaton.automaton import START
from acep_approx.engines.runs.event_columns import Kind
from acep_approx.kernels import classes as kernel
from acep_approx.kernels.pairs import Letters, Queries
from acep_approx.query.syntax import Expression
from acep_approx.subscriptions.templates.literals import uses
from acep_approx.subscriptions.templates.pairing import ORDERED
from acep_approx.subscriptions.templates.query_table import QueryTable
from acep_approx.subscriptions.templates.template import Template, Test

FEWEST = 64
"""Queries of a template from which on it is looked whether they would share runs."""
NEVER = -(2**62)
Asking = tuple[Letters, Queries]
Kinds = tuple[Callable[[Expression], Kind], Mapping[str, Kind]]


@dataclass(frozen=True)
class Loose:
    """What queries of a class may differ in: tests of the letter that ends all matches, and the window."""

    tests: tuple[Test, ...]
    window: str | None

    @classmethod
    def of(cls, template: Template, tests: tuple[tuple[Test, ...], ...], kinds: Kinds) -> Loose | None:
        """What the queries of a template may differ in; None where all must agree.

        Parameters
        ----------
        template : Template
        tests : tuple of tuple of Test
            By letter, as ``Asked`` has them.
        kinds : Kinds
            Of what tests ask of events; and of the constants.
        """
        plan, registers = template.plan, template.plan.registers
        if registers is None or not all(map(registers.is_passive, range(START + 1, plan.automaton.size))):
            return None
        query = plan.query
        if plan.automaton.errors or not query.selection.is_all or query.is_simultaneous or plan.counted != "nothing":
            return None
        used = uses(template.syntax)
        ending = _ending_letter(template)
        ends = () if ending is None else tests[ending]
        of_event, of_constant = kinds
        ends = tuple(t for t in ends if t.op in ORDERED and of_event(t.own) == of_constant[t.parameter])
        once = tuple(t for t in ends if used[t.parameter] == 1)
        window = template.window if template.window is not None and used[template.window] == 1 else None
        return cls(once, window) if once or window else None

    @property
    def widest(self) -> dict[str, Any]:
        """Per parameter which of several constants lets most pass."""
        found: dict[str, Any] = {test.parameter: np.fmin if test.op in (">", ">=") else np.fmax for test in self.tests}
        return found if self.window is None else found | {self.window: np.fmax}


def _ending_letter(template: Template) -> int | None:
    """The letter of the last event of all matches, if it is the same, and does nothing else."""
    automaton = template.plan.automaton
    last = {final.state for final in automaton.finals}
    letters = {arc.letter for arc in automaton.arcs if arc.target in last}
    others = {arc.letter for arc in automaton.arcs if arc.target not in last or arc.source == START}
    goes_on = any(arc.source in last for arc in automaton.arcs)
    guards = {letter for arc in automaton.arcs for letter in arc.guard}
    return letters.pop() if len(letters) == 1 and not goes_on and not letters & (others | guards) else None


class Classes:
    """The classes of the queries of a table.

    Parameters
    ----------
    loose : Loose
    queries : QueryTable

    Attributes
    ----------
    table : QueryTable
        A row for each class: what its queries have in common, and the weakest of the rest.
    since : int64 array
        Per row of ``queries`` the tick from which on it sees events.
    """

    def __init__(self, loose: Loose, queries: QueryTable) -> None:
        self.loose = loose
        self.queries = queries
        self.table = QueryTable(queries.kinds)
        self.since: Ints = np.zeros(0, np.int64)
        self._class_of: Ints = np.zeros(0, np.int64)
        self._known: dict[bytes, int] = {}
        self._made = 0
        self._first: Ints = np.zeros(1, np.int64)
        self._members: Ints = np.zeros(0, np.int64)

    @classmethod
    def that_pay(cls, loose: Loose | None, queries: QueryTable) -> Classes | None:
        """Classes for the queries that have come first, if they are many, and have another to share with on average.

        So hot constants count as often as they are asked for: what they cost grows with the square of that.
        """
        if loose is None or queries.queries < FEWEST:
            return None
        made = cls(loose, queries)
        _, sizes = np.unique(made._keys(np.flatnonzero(queries.is_there)), return_counts=True)
        return made if (sizes**2).sum() >= 2 * queries.queries else None

    def _keys(self, rows: Ints) -> np.ndarray:
        """What tells the classes of some queries apart, as bytes."""
        strict = [name for name in self.queries.kinds if name not in self.loose.widest]
        columns = [np.asarray(self.queries.values(name))[rows] for name in strict]
        words = [c.view(np.int64) if c.dtype == np.float64 else c.astype(np.int64) for c in columns]
        flat = np.column_stack([*words, np.zeros(len(rows), np.int64)])
        return np.ascontiguousarray(flat).view(np.dtype((np.void, flat.shape[1] * 8))).ravel()

    # --- queries that come and go -----------------------------------------------------------------------------

    def take(self, rows: Ints, since: int) -> None:
        """Take in queries of the table that see events from a tick on. Complexity: O(queries x log queries)."""
        room = self.queries.room
        if room > len(self.since):
            self.since, self._class_of = extended(self.since, room, NEVER), extended(self._class_of, room, -1)
        self.since[rows] = since
        keys, first, which = np.unique(self._keys(rows), return_index=True, return_inverse=True)
        names = [key.tobytes() for key in keys]
        new = np.array([place for place, name in enumerate(names) if name not in self._known], np.int64)
        if len(new):
            like = rows[first[new]]
            columns = {name: self.queries.arrow(name, like) for name in self.queries.kinds}
            made = self.table.add(self._made + np.arange(len(new)), pa.table(columns))
            self._made += len(new)
            self._known.update(zip((names[place] for place in new.tolist()), made.tolist(), strict=True))
        of = np.array([self._known[name] for name in names], np.int64)[which.reshape(-1)]
        self._class_of[rows] = of
        for name, widest in self.loose.widest.items():
            self.table.widen(name, of, self.queries.values(name)[rows], widest)
        self._note_members()

    def leave(self, rows: Ints) -> None:
        """Let queries go whose rows are free; classes without queries go, too."""
        left = np.unique(self._class_of[rows])
        self._class_of[rows] = -1
        self._note_members()
        gone = set(left[np.diff(self._first)[left] == 0].tolist())
        if gone:
            self._known = {name: row for name, row in self._known.items() if row not in gone}
            for row in gone:
                self.table.remove(int(self.table.numbers[row]))

    def added(self, of_queries: Floats) -> Floats:
        """Per class the sum of some numbers of its queries, which stand by rows."""
        there = np.flatnonzero(self.queries.is_there)
        room = self.table.room
        return np.bincount(self._class_of[there], weights=of_queries[there], minlength=room).astype(np.float64)[:room]

    def _note_members(self) -> None:
        """Put the queries in the order of their classes, and in each by what the kernel stops at: the weakest first."""
        there = np.flatnonzero(self.queries.is_there)
        name = self.loose.tests[0].parameter if self.loose.tests else str(self.loose.window)
        values = np.asarray(self.queries.values(name))[there]
        values = values if self.loose.widest[name] is np.fmin else -values
        self._members = there[np.lexsort((values, self._class_of[there]))]
        counts = np.bincount(self._class_of[there], minlength=self.table.room)
        self._first = np.append(0, np.cumsum(counts))

    # --- results ----------------------------------------------------------------------------------------------

    def spread(self, points: kernel.ClassPoints, windows: Ints, asked: Asking) -> tuple[Ints, Ints]:
        """Which point of a class is one of which query.

        Parameters
        ----------
        points : ClassPoints
        windows : int64, shape (rows,)
            Per row of ``queries``, in ticks.
        asked : Asking
            What tests ask of the events of the batch.

        Returns
        -------
        point, row : int64 arrays
        """
        members = kernel.Members(self._first, self._members, windows, self.since)
        letters, queries = asked
        room = len(points.cls)
        while True:
            point, row = np.empty(room, np.int64), np.empty(room, np.int64)
            found = kernel.spread(points, members, letters, queries, point, row)
            if found <= room:
                return point[:found], row[:found]
            room = found

    # --- state ------------------------------------------------------------------------------------------------

    def save(self, scope: Scope) -> None:
        """Save what is not in the table of the queries."""
        there = self.queries.is_there
        scope.put("rows", self.table.to_state())
        scope.put("of", self._class_of[: len(there)][there])
        scope.put("since", self.since[: len(there)][there])

    def restore(self, scope: Scope) -> None:
        """Take over what ``save`` saved, when the table has its queries.

        Raises
        ------
        DataError
            ``ACEP-D040``: a query belongs to no class, or to one that is not like it.
        """
        self.table.restore(scope.table("rows"))
        rows = np.flatnonzero(self.queries.is_there)
        of, since = scope.array("of"), scope.array("since")
        is_one = len(of) == len(since) == len(rows) and ((of >= 0) & (of < self.table.room)).all()
        if not is_one or not self.table.is_there[of].all():
            raise damaged_part("the classes of queries")
        self.since, self._class_of = np.full(self.queries.room, NEVER), np.full(self.queries.room, -1)
        self.since[rows], self._class_of[rows] = since, of
        self._made = int(self.table.numbers.max(initial=-1)) + 1
        keys, first = np.unique(self._keys(rows), return_index=True)
        self._known = {key.tobytes(): int(row) for key, row in zip(keys, of[first], strict=True)}
        self._note_members()
