"""Partial matches that timed out: how far each event came that began a run and with which no match began.

Runs are not merged here, so that every link of the runs engine is a partial match. What a partial match lacks is read
off the automaton: the arcs that leave its state.

Source: "ended" partial matches as an output are the timed-out patterns of common stream engines; the paper drops them
(Agrawal et al., SIGMOD 2008, section 5.2.1).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from acep_approx.arrays import Ints, extended
from acep_approx.automaton.automaton import Automaton
from acep_approx.automaton.letters import unbound
from acep_approx.automaton.registers import COUNTED
from acep_approx.engines.batches import Grouped
from acep_approx.engines.columns import Listed
from acep_approx.engines.runs.lineage import Hits
from acep_approx.engines.runs.runs import Runs
from acep_approx.errors import QueryError, UsageError
from acep_approx.events.stream import EventBatch
from acep_approx.kernels.runs import partial as kernel_partial
from acep_approx.kernels.runs.layout import (
    ARC_BITS,
    ARC_MASK,
    LINK,
    LINK_BEFORE,
    LINK_HERE,
    LINK_LATEST,
    LINK_START,
    LINKS,
)
from acep_approx.matching.outputs.completed import Finder
from acep_approx.matching.outputs.of_runs import UNKNOWN, RunOutput
from acep_approx.matching.outputs.output import NO_BATCH, Stamps
from acep_approx.matching.outputs.recent import Recent
from acep_approx.matching.outputs.tables import BindingColumns
from acep_approx.matching.stream_batch import StreamBatch
from acep_approx.planning.planner import Plan, plan
from acep_approx.query.shape import is_static, variables
from acep_approx.query.syntax import LISTS_ALL, QuerySyntax
from acep_approx.ranges import Range, check, check_arrays, impossible

END_OF_STREAM = 2**62
CLOSED, ENDED, BROKEN, REFUSED = range(4)
REASONS = ("window closed", "stream ended", "broken", "refused")
"""Why a partial match came no further; the last: all came, but a condition on the whole match or a negation failed."""
TRACED = ("root", "depth", "errors", "furthest")
COLUMNS = ("bound", "awaited", "why")


def partial_plan(wanted: Plan) -> Plan:
    """The plan that partial matches are found with: by the runs engine, whether matches overlap or not.

    Raises
    ------
    QueryError
        ``ACEP-Q901``: a name of the query is that of a column.
    """
    query = wanted.query
    names = {*wanted.automaton.variables, *(e.name for e in query.equivalences), *(o.name for o in query.outputs)}
    if taken := sorted(names & set(COLUMNS)):
        raise QueryError(
            f"the name {taken[0]!r} is taken: partial matches have a column {taken[0]!r} of their own",
            code="ACEP-Q901",
            hint="choose another name; taken are " + ", ".join(COLUMNS),
        )
    if wanted.engine == "runs" and query.selection.is_all:
        return wanted
    return plan(replace(query, selection=LISTS_ALL), "runs")


def refuse_algebra(query: QuerySyntax) -> None:
    """Refuse partial matches of a query in CEL, whose runs hold attributes and name no events.

    Raises
    ------
    UsageError
        ``ACEP-U074``.
    """
    if query.is_algebra:
        raise UsageError(
            "partial matches and a query in CEL do not go together: they are shown by their events, and its results "
            "name none",
            code="ACEP-U074",
            hint="why(events, around=..) (acep why) says how far a chain came; or write it as PATTERN SEQ(..)",
        )


class TracedRuns(Runs):
    """Runs that are never merged, and know of each link where it began and of each beginning how far it came.

    Attributes
    ----------
    costs : numpy.ndarray of int64
        The errors of each arc.
    open : numpy.ndarray of int64
        Links that others keep here; they stay right when links are numbered anew.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.traced = 0
        self.root, self.depth, self.errors, self.furthest, self.open = (np.zeros(0, np.int64) for _ in range(5))
        self.costs = np.array([arc.cost for arc in self.automaton.automaton.arcs] or [0], np.int64)

    def trace(self, links: Ints, events: Grouped, batch: EventBatch) -> int:
        """Take in the links made by a batch, which name events by their rows; returns the first of them."""
        first, used = self.traced, int(self.control[LINKS])
        if used > self.root.size:
            for name in TRACED:
                setattr(self, name, extended(getattr(self, name), 2 * used, 0))
        low = np.zeros(len(batch), np.int64)
        low[events.row - batch.first_row] = events.tick - self.window
        traced = kernel_partial.Roots(self.root, self.depth, self.errors, self.furthest)
        kernel_partial.trace(links, first, used, batch.first_row, low, self.costs, traced)
        self.traced = used
        return first

    def _compact(self, floors: Ints) -> None:
        super()._compact(floors)
        number = self._number
        kept = np.flatnonzero(number[: self.traced] >= 0)
        root, furthest = self.root[kept], self.furthest[kept]  # only what has begun knows its furthest
        self.root, self.furthest = (np.where(link < 0, -1, number[link]) for link in (root, furthest))
        self.depth, self.errors = self.depth[kept], self.errors[kept]
        self.traced = len(kept)
        self.open = number[self.open]

    def event_of(self, link: Ints) -> Ints:
        """The event that each link binds."""
        ids: Ints = self.links[link * LINK] >> ARC_BITS
        return ids

    def start_of(self, link: Ints) -> Ints:
        """The tick (or number) of the event that each link began with."""
        starts: Ints = self.links[link * LINK + 3]
        return starts


class RunPartial(RunOutput):
    """Per event that began a run and no match: key, errors, start, end, bound, awaited, why, then the variables.

    Parameters
    ----------
    engine : TracedRuns
    finder, stamps, recent, bindings
        As for ``RunOutput``.
    """

    engine: TracedRuns

    finder: Finder

    def __init__(
        self, engine: TracedRuns, finder: Finder, stamps: Stamps, recent: Recent, bindings: BindingColumns
    ) -> None:
        super().__init__(engine, finder, stamps, recent, bindings)
        self.slot = np.zeros(0, np.int64)  # of each open beginning
        self.next = np.zeros(0, np.int64)  # when its neighbour came, where neighbours must follow one another
        self.states = States(finder.automaton.query, finder.automaton.automaton)
        self.is_contiguous = finder.automaton.counted != "nothing"
        self._batch = NO_BATCH

    @property
    def _keeps_recent(self) -> bool:
        return True

    @property
    def _needs_neighbours(self) -> bool:
        return self._is_count or self.is_contiguous

    def run(self, events: Grouped, batch: StreamBatch, floors: Ints) -> Iterator[pa.Table]:
        """Run grouped events; gives the beginnings whose window has closed."""
        if not self._is_count:  # links that have left the window may go while this batch is run
            yield from self._closed(int(batch.ticks[0]))
        self._batch = batch
        yield from super().run(events, batch, floors)

    def _results(self, events: Grouped, hits: Hits) -> Iterator[pa.Table]:
        """Note what began, how far all came, and what has begun a match; no results yet."""
        engine = self.engine
        first = engine.trace(self.finder.links(), events, self._batch)
        new = np.arange(first, engine.traced)
        new = new[engine.root[new] == new]
        order = np.argsort(events.id)
        place = order[np.searchsorted(events.id, engine.event_of(new), sorter=order)]
        engine.open = np.concatenate((engine.open, new))
        self.slot = np.concatenate((self.slot, events.slot[place]))
        self.next = np.concatenate((self.next, np.full(len(new), UNKNOWN)))
        if self.finder.automaton.needs_filter:
            for found in self.finder.found(events, hits):
                self._matched(found.id[found.offset[:-1]])
        else:
            self._keep(~np.isin(engine.open, engine.root[hits.link]))
        if self.is_contiguous:
            self._find_next()
        yield from ()

    def _matched(self, ids: Ints) -> None:
        self._keep(~np.isin(self.engine.event_of(self.engine.open), ids))

    def _keep(self, which: npt.NDArray[np.bool_]) -> None:
        self.engine.open, self.slot, self.next = self.engine.open[which], self.slot[which], self.next[which]

    def _find_next(self) -> None:
        """Learn when the neighbour of each last event came."""
        events = self.engine.event_of(self.engine.furthest[self.engine.open])
        last = self.recent.rows_of(events)
        self.next[last >= self._neighbours.first_row] = UNKNOWN  # it came further
        asked = np.flatnonzero(self.next == UNKNOWN)
        if self.finder.is_simultaneous:
            last = self._neighbours.last_at(self.recent.ticks[self.recent.find(events)])
        find = self._neighbours.in_stream if self.is_strict else self._neighbours.in_partition
        self.next[asked] = find(self.slot[asked], last[asked])

    def _closed(self, limit: Ints | int, *, is_end: bool = False) -> Iterator[pa.Table]:
        if self.finder.automaton.has_late_ends:
            found, *_ = self.finder.closed(limit)
            self._matched(found.id[found.offset[:-1]])
        end = self.engine.start_of(self.engine.open) + self.engine.window
        over = end < (limit[self.slot] if isinstance(limit, np.ndarray) else limit)
        ready = np.flatnonzero(over)
        rows = self.recent.rows_of(self.engine.event_of(self.engine.open[ready]))
        # where windows count events, they close with the events of their partition
        closes = isinstance(limit, np.ndarray) and not is_end
        closing = self._neighbours.row_of(self.slot[ready], end[ready]) if closes else rows
        ready = ready[np.lexsort((rows, closing))]
        if len(ready):
            has_ended = is_end or (isinstance(limit, int) and limit == END_OF_STREAM)
            yield self._partials(ready, ENDED if has_ended else CLOSED)
        self._keep(~over)

    def nothing(self) -> pa.Table:
        """An empty table with the columns of the results."""
        return self._partials(np.zeros(0, np.int64), CLOSED)

    def _partials(self, ready: Ints, why: int) -> pa.Table:
        engine = self.engine
        first = engine.open[ready]
        link = engine.furthest[first]
        errors, depth = engine.errors[link], engine.depth[link]
        start, last = engine.start_of(first), engine.event_of(link)
        reasons = np.full(len(link), why)
        reasons[self.next[ready] <= start + engine.window] = BROKEN
        awaited, accepts, passes = self.states.after(engine.links[link * LINK] & ARC_MASK, errors)
        reasons[passes & (reasons == BROKEN)] = why
        reasons[accepts] = REFUSED
        offset = np.concatenate(([0], np.cumsum(depth)))
        ids, arc = np.zeros(offset[-1], np.int64), np.zeros(offset[-1], np.int64)
        if not kernel_partial.spell(engine.links, link, offset, ids, arc):
            raise impossible("links lead to too few events")
        listed = Listed.of(self.bindings.placement, last, start, offset, ids, self.finder.labels[arc])
        ticks = self.recent.ticks
        return pa.table(
            {
                **self.stamps.keys(self.slot[ready]),
                "errors": pa.array(errors),
                "start": self.stamps.time(ticks[self.recent.find(engine.event_of(first))]),
                "end": self.stamps.time(ticks[self.recent.find(last)]),
                "bound": pa.array(depth),
                "awaited": awaited,
                "why": pa.array(REASONS).take(pa.array(reasons)),
                **self.bindings.shown(listed, self.recent, self.finder.machine.values(offset, ids, arc)),
            }
        )

    # --- state ----------------------------------------------------------------------------------------------

    def slots(self) -> Ints:
        """Key slots that results are still to come of."""
        return np.concatenate((super().slots(), self.slot))

    def arrays(self) -> dict[str, Ints]:
        """The state as arrays."""
        traced = {name: getattr(self.engine, name)[: self.engine.traced] for name in TRACED}
        opened = {"open": self.engine.open, "open_slot": self.slot, "open_next": self.next}
        return {**super().arrays(), **traced, **opened}

    def restore(self, arrays: dict[str, Ints]) -> None:
        """Take over a state; the engine has its own already."""
        super().restore(arrays)
        self._check(arrays)
        for name in TRACED:
            setattr(self.engine, name, arrays[name])
        self.engine.traced = len(arrays["root"])
        self.engine.open, self.slot, self.next = arrays["open"], arrays["open_slot"], arrays["open_next"]

    def _check(self, arrays: dict[str, Ints]) -> None:
        """Refuse a state that this cannot have written: each link is one event further than the one before it.

        Raises
        ------
        DamagedError
        """
        engine = self.engine
        used = int(engine.control[LINKS])
        links, opened = engine.links[: LINK * used].reshape(-1, LINK), arrays["open"].size
        ranges = {name: Range(used, -1, used) for name in ("root", "furthest")} | {
            "depth": Range(used, 0, used + 1),
            "errors": Range(used),
            "open": Range(opened, 0, used),
            "open_slot": Range(opened, 0, engine.slots),
            "open_next": Range(opened),
        }
        check_arrays(arrays, ranges)
        root, depth, errors, furthest = (arrays[name] for name in TRACED)
        here, before, start, number = links[:, LINK_HERE], links[:, LINK_BEFORE], links[:, LINK_START], np.arange(used)
        is_first, has_left = before < 0, root < 0
        check("links", good=(here >= 0).all() and (is_first | (start == start[before])).all())
        check("links", good=(links[:, LINK_LATEST] == start).all())
        check("depth", good=(has_left | (depth == np.where(is_first, 0, depth[before]) + 1)).all())
        costs = engine.costs[here & ARC_MASK]
        check("errors", good=(has_left | (errors == np.where(is_first, 0, errors[before]) + costs)).all())
        check("root", good=(has_left | (root == np.where(is_first, root[root], root[before]))).all())
        check("root", good=(has_left | (root <= number)).all() and (root[arrays["open"]] == arrays["open"]).all())
        tops = np.flatnonzero(root == number)
        check("furthest", good=(furthest[tops] >= 0).all() and (root[furthest[tops]] == tops).all())


class States:
    """What can come next at a state of the automaton, by names."""

    def __init__(self, query: QuerySyntax, automaton: Automaton) -> None:
        self._query = query
        self._automaton = automaton
        self._order = tuple(dict.fromkeys(one.variable for one in automaton.components if not one.is_negated))
        self._types = {one.variable: one.type for one in automaton.components}
        self._known: dict[tuple[int, int], tuple[tuple[str, ...], bool, bool]] = {}

    def after(self, arc: Ints, errors: Ints) -> tuple[pa.Array, npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
        """Per partial match, by its last arc: the variables that could have come next, and whether nothing had to.

        Also whether the gap before the next event could have had events in it.
        """
        width = self._automaton.errors + 1
        distinct, codes = np.unique(arc * width + errors, return_inverse=True)
        known = [self.at(self._automaton.arcs[code // width].target, code % width) for code in distinct.tolist()]
        names = pa.array([list(awaited) for awaited, *_ in known], pa.list_(pa.string())).take(pa.array(codes))
        accepts, passes = np.array([flags for _, *flags in known], np.bool_).reshape(-1, 2)[codes].T
        return names, accepts, passes

    def at(self, state: int, errors: int) -> tuple[tuple[str, ...], bool, bool]:
        """Variables without errors, then with errors, in the order of the pattern; whether a match can end here.

        Also whether events may be passed over on the way to some of them.
        """
        if (state, errors) not in self._known:
            left = self._automaton.errors - errors
            cheapest: dict[str, int] = {}
            for arc in self._automaton.arcs:
                if arc.source == state and arc.cost <= left:
                    for name in self.names(arc.label, arc.letter, arc.target):
                        cheapest[name] = min(arc.cost, cheapest.get(name, arc.cost))
            awaited = sorted(cheapest, key=lambda name: (cheapest[name] > 0, self._order.index(name)))
            accepts = any(final.state == state and final.cost <= left for final in self._automaton.finals)
            leaving = (arc for arc in self._automaton.arcs if arc.source == state and arc.cost <= left)
            gaps = {arc.gap or self._query.strategy for arc in leaving}
            self._known[state, errors] = tuple(awaited), accepts, not gaps <= COUNTED.keys()
        return self._known[state, errors]

    def names(self, label: int, letter: int, target: int) -> tuple[str, ...]:
        """What an arc binds: its variable; of a bare regular expression its letter, several if they are alike."""
        if not self._query.is_regex:
            return (self._automaton.variables[label],)
        wanted = self._automaton.letters[letter]
        return tuple(
            name
            for name in self._automaton.names[target].split("|")
            if (self._types[name], self._conditions(name)) == (wanted.type, wanted.conditions)
        )

    def _conditions(self, letter: str) -> tuple[object, ...]:
        defined = (d.condition for d in self._query.definitions if d.letter == letter)
        stated = (unbound(p) for p in self._query.predicates if is_static(p) and letter in variables(p))
        return (*defined, *stated)
