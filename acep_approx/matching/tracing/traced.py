"""An exact run that keeps its whole lineage until windows have closed, and then tells what every run led to.

See ``kernels.runs.trace`` for how, and ``training.trace`` for what becomes of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from acep_approx.arrays import Bools, Ints, extended
from acep_approx.automaton.states import NO_EVENT
from acep_approx.engines.batches import Grouped
from acep_approx.engines.runs.event_columns import CODED
from acep_approx.engines.runs.lineage import Hits
from acep_approx.engines.runs.load_shedder import FixedLoad
from acep_approx.engines.runs.programs import register_kind
from acep_approx.engines.runs.runs import Runs
from acep_approx.engines.runs.shedding import Shedding
from acep_approx.engines.runs.tables import RunTables
from acep_approx.engines.runs.worth import Allowance
from acep_approx.kernels.runs import layout
from acep_approx.kernels.runs import scores as kernel_scores
from acep_approx.kernels.runs import trace as kernel_trace
from acep_approx.kernels.runs.vm import NULL
from acep_approx.matching.outputs.completed import Finder
from acep_approx.matching.outputs.matches import CompletedMatches
from acep_approx.matching.outputs.of_runs import RunOutput
from acep_approx.matching.outputs.output import Stamps
from acep_approx.matching.outputs.recent import Recent
from acep_approx.matching.stream_batch import StreamBatch
from acep_approx.planning.planner import Plan, plan
from acep_approx.ranges import COUNT, Range, check_arrays, check_range

END = 2**62
PARTS = 8
"""Equal parts of the window: a run is visited when it enters one."""
CHUNK = 1 << 19
"""Links, or events, that are kept until windows that have closed are looked at."""
POOL, TICK, SLOT, START, LINK, PACE, REGISTERS = range(7)
"""Words of a birth."""
LOGGED = [
    kernel_scores.LOG_POOL, kernel_scores.LOG_TICK, kernel_scores.LOG_SLOT, kernel_scores.LOG_START,
    kernel_scores.LOG_LINK, kernel_scores.LOG_PACE,
]  # fmt: skip
"""Where the words before the registers stand in a log entry."""

NOTHING_KEPT = {
    "events": np.zeros((0, 5), np.int64), "hits": np.zeros((0, 3), np.int64), "found": np.zeros(0, np.int64),
}  # fmt: skip
"""What is kept of events, hits and matches as long as there is none."""


@dataclass(frozen=True)
class Hindsight:
    """Runs whose window has closed, with what they led to.

    Attributes
    ----------
    births : numpy.ndarray of int64, shape (births, 6 + registers + columns)
        Pool, tick, slot, start, link (of no use any more), pace of the key, the registers that are live in the pool,
        and the columns of the event: floats by their bits, texts as codes.
    visits : numpy.ndarray of int64, shape (7, visits)
        See ``kernels.runs.trace.VISIT``; masks by their bits.
    points : numpy.ndarray of int64, shape (points, 3)
        Row, tick and slot of match points, sorted by slot, then by row.
    ends : numpy.ndarray of int64, shape (ends, 2)
        Visit and match point of direct completions.
    texts : list of str
        By code.
    keys : list of str
        By slot; empty where there is one partition.
    """

    births: Ints
    visits: Ints
    points: Ints
    ends: Ints
    texts: list[str]
    keys: list[str]


def traced_plan(wanted: Plan) -> Plan:
    """The plan that a past is traced with: by the runs engine."""
    return wanted if wanted.registers is not None else plan(wanted.query, "runs")


class Traced(Runs):
    """Runs that keep all links until they are told to let go, and note each birth.

    Attributes
    ----------
    births : numpy.ndarray of int64
        See ``Hindsight``; their links stay right when links are numbered anew, and their codes when texts are.
    events_of_links : numpy.ndarray of int64
        The event that made each link.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        noting = Shedding(None, Allowance(), logs_births=True)
        super().__init__(*args, **options, shedding=FixedLoad(noting))
        self.births = np.zeros((0, REGISTERS + noting.entry - kernel_scores.LOG), np.int64)
        self.events_of_links = np.zeros(0, np.int64)
        self.noted = 0  # links so far whose events are known

    @property
    def used(self) -> int:
        """Links that are kept."""
        return int(self.control[layout.LINKS])

    def note(self) -> None:
        """Take in the links and births of a batch."""
        if self.used > self.events_of_links.size:
            self.events_of_links = extended(self.events_of_links, 2 * self.used)
        new = self.links[layout.LINK * self.noted : layout.LINK * self.used].reshape(-1, layout.LINK)
        made = self.events_of_links[self.noted : self.used]
        made[:] = new[:, layout.LINK_HERE] >> layout.ARC_BITS
        unions = np.flatnonzero(new[:, layout.LINK_HERE] < 0)
        joined = self.links[new[unions, layout.LINK_BEFORE] * layout.LINK + layout.LINK_HERE]  # has just been born
        made[unions] = joined >> layout.ARC_BITS
        self.noted = self.used
        logs = self.logged_in_parts()
        wanted = [*LOGGED, *range(kernel_scores.LOG, logs[0].shape[1])]
        self.births = np.concatenate((self.births, *(log[:, wanted] for log in logs)))

    def _compact(self, floors: Ints) -> None:
        """No link goes before ``let_go`` says so."""

    def let_go(self, floors: Ints) -> None:
        """Drop the links, and births, that started before ``floors`` (per slot, or for all)."""
        super()._compact(floors)
        self.events_of_links = self.events_of_links[: self.noted][self._number[: self.noted] >= 0]
        self.noted = self.used
        number = self._number[self.births[:, LINK]]
        self.births = self.births[number >= 0]
        self.births[:, LINK] = number[number >= 0]

    def number_now(self, link: Ints) -> Ints:
        """The numbers of links since ``let_go`` was last called; -1: gone."""
        return self._number[link]

    def arrays(self, floors: Ints) -> dict[str, Ints]:
        """The state as arrays; all links are in it."""
        born = {"births": self.births.ravel(), "events_of_links": self.events_of_links[: self.noted]}
        return {**super().arrays(floors), **born}

    def restore(self, header: dict[str, Any], arrays: dict[str, Ints], classes: list[int]) -> None:
        """Take over a state."""
        super().restore(header, arrays, classes)
        check_arrays(arrays, {"births": Range(), "events_of_links": Range(self.used, 0, COUNT)})
        births = arrays["births"].reshape(-1, self.births.shape[1])
        check_range("births", births[:, POOL], 0, len(self.tables.pools))
        check_range("births", births[:, SLOT], 0, self.slots)
        check_range("births", births[:, LINK], -1, self.used)
        self.births = births
        for mine, column in self._born_with_texts():
            check_range("births", births[mine, column], 0, len(self.columns.texts))
        self.events_of_links = arrays["events_of_links"]
        self.noted = self.events_of_links.size

    def texts_held(self) -> Ints:
        """Also those of runs that have been born, whether they live or not."""
        born = [self.births[mine, column] for mine, column in self._born_with_texts()]
        return np.concatenate((super().texts_held(), *born))

    def recode_texts(self, codes: Ints) -> None:
        """Also those of runs that have been born."""
        super().recode_texts(codes)
        for mine, column in self._born_with_texts():
            self.births[mine, column] = codes[self.births[mine, column]]

    def _born_with_texts(self) -> Iterator[tuple[Ints, int]]:
        """The births that hold a text in a column, and the column."""
        for pool, number in enumerate(self.tables.pools):
            mine = np.flatnonzero(self.births[:, POOL] == pool)
            for column, register in enumerate(self.automaton.live[number.state], REGISTERS):
                if len(mine) and register_kind(register, self.columns) in CODED:
                    yield mine[self.births[mine, column] != NULL], column


class RunTrace(RunOutput):
    """Gives no tables; ``take`` gives what is known of runs whose windows have closed.

    Attributes
    ----------
    chunk : int
        Links, or events, that are kept at least until windows that have closed are looked at.
    """

    engine: Traced

    def __init__(self, engine: Traced, finder: Finder, stamps: Stamps, recent: Recent) -> None:
        super().__init__(engine, finder, stamps, recent)
        self.chunk = CHUNK
        self._done: list[Hindsight] = []
        self._events: list[Ints] = []  # slot, row, tick, class and id of relevant events
        self._hits: list[Ints] = []  # link, event, slot
        self._found: list[Ints] = []  # match points, where hits alone do not tell
        self._held, self._seen = 0, 0

    def run(self, events: Grouped, batch: StreamBatch, floors: Ints) -> Iterator[pa.Table]:
        """Run grouped events; there are no tables."""
        yield from super().run(events, batch, floors)
        if max(self.engine.used, self._seen) >= max(self.chunk, 2 * self._held):
            self._look_back(self._now(batch))

    def finish(self) -> Iterator[pa.Table]:
        """The stream has ended, and all windows with it."""
        yield from super().finish()
        if self._events:
            self._look_back(END)

    def take(self) -> list[Hindsight]:
        """What became known since the last call."""
        done, self._done = self._done, []
        return done

    def arrays(self) -> dict[str, Ints]:
        """The state as arrays, when all that is known was taken."""
        kept = {name: np.concatenate([none, *getattr(self, f"_{name}")]).ravel() for name, none in NOTHING_KEPT.items()}
        return {**super().arrays(), **kept, "sizes": np.array([self.chunk, self._held, self._seen])}

    def restore(self, arrays: dict[str, Ints]) -> None:
        """Take over a state."""
        super().restore(arrays)
        check_arrays(arrays, {**dict.fromkeys(NOTHING_KEPT, Range()), "sizes": Range(3, 0, COUNT)})
        events, hits = (arrays[name].reshape(-1, NOTHING_KEPT[name].shape[1]) for name in ("events", "hits"))
        check_range("events", events[:, 0], 0, self.engine.slots)
        check_range("events", events[:, 3], 0, len(self.stamps.preparer.classes))
        check_range("hits", hits[:, 0], -1, self.engine.used)
        check_range("hits", hits[:, 2], 0, self.engine.slots)
        for name, none in NOTHING_KEPT.items():
            found = arrays[name].reshape(-1, *none.shape[1:])
            setattr(self, f"_{name}", [found] if found.size else [])
        self.chunk, self._held, self._seen = arrays["sizes"].tolist()

    def slots(self) -> Ints:
        """Key slots that runs are still kept of."""
        return np.concatenate((super().slots(), self.engine.births[:, SLOT], *(hits[:, 2] for hits in self._hits)))

    def _results(self, events: Grouped, hits: Hits) -> Iterator[pa.Table]:
        self.engine.note()
        self._events.append(np.stack((events.slot, events.row, events.tick, events.cls, events.id), axis=1))
        self._hits.append(np.stack((hits.link, events.id[hits.event], events.slot[hits.event]), axis=1))
        self._seen += len(events.row)
        if self.finder.automaton.needs_filter:
            self._found += [self.recent.ids_of(found.end) for found in self.finder.found(events, hits)]
        yield from ()

    def _closed(self, limit: Ints | int, *, is_end: bool = False) -> Iterator[pa.Table]:  # noqa: ARG002
        if self.finder.automaton.waits:
            found, *_ = self.finder.closed(limit)
            self._found.append(self.recent.ids_of(found.end))
        yield from ()

    def _look_back(self, now: Ints | int) -> None:
        """Tell what became of runs whose window ends before ``now`` (per slot, or for all), and let them go."""
        engine = self.engine
        births, window = engine.births, engine.window
        events, hits = np.concatenate(self._events), np.concatenate(self._hits)
        found = np.unique(np.concatenate([hits[:0, 0], *self._found]))
        good = hits[np.isin(hits[:, 1], found)] if self.finder.automaton.needs_filter else hits
        ends = births[:, START] + window
        is_closed = ends < (now[births[:, SLOT]] if isinstance(now, np.ndarray) else now)
        if is_closed.any():
            past = TracedLinks(engine, events, good)
            visits, completed = past.visits(is_closed)
            keys = self.stamps.preparer.keys.texts() if self.stamps.preparer.key_columns else []
            texts = engine.columns.texts.values
            self._done.append(Hindsight(births[is_closed], visits, past.points(), completed, texts, keys))
        if isinstance(now, int) and now == END:
            return
        floors = self._oldest(now)
        engine.let_go(floors)
        live = events[:, 2] >= (floors[events[:, 0]] if self._is_count else floors[0])
        self._events = [events[live]]
        hits[:, 0] = engine.number_now(hits[:, 0])
        self._hits = [hits[hits[:, 0] >= 0]]
        self._found = [found[np.isin(found, events[live, 4])]]
        self._seen = int(live.sum())
        self._held = max(engine.used, self._seen)

    def _oldest(self, now: Ints | int) -> Ints:
        """The earliest start of a run that may still go on; per slot or for all."""
        if isinstance(now, int):
            return np.array([now - self.engine.window])
        floors = np.zeros(self.engine.slots, np.int64)
        known = min(self.engine.slots, now.size)
        floors[:known] = now[:known] - self.engine.window
        return floors

    def _table(self, found: CompletedMatches, known: Ints) -> pa.Table:  # noqa: ARG002
        return pa.table({})


class TracedLinks:
    """The links of an engine with the events and hits that belong to them.

    Parameters
    ----------
    engine : Traced
    events : numpy.ndarray of int64, shape (events, 5)
        Slot, row, tick, class and id.
    hits : numpy.ndarray of int64, shape (hits, 3)
        Link, event and slot.
    """

    def __init__(self, engine: Traced, events: Ints, hits: Ints) -> None:
        self.engine = engine
        self.events = events[np.lexsort((events[:, 1], events[:, 0]))]
        self._by_id = np.argsort(self.events[:, 4])
        self._ids = self.events[self._by_id, 4]
        is_point = np.zeros(len(events) + 1, np.bool_)
        is_point[self._place(hits[:, 1])] = True
        self.point_places = np.flatnonzero(is_point)
        self.point_at = np.concatenate(([0], np.cumsum(is_point[:-1])))
        self.is_hit = np.zeros(engine.used, np.bool_)
        self.is_hit[hits[:, 0]] = True

    def _place(self, ids: Ints) -> Ints:
        return self._by_id[np.searchsorted(self._ids, ids)]

    def points(self) -> Ints:
        """Row, tick and slot of the match points."""
        return self.events[self.point_places][:, [1, 2, 0]]

    def visits(self, is_closed: Bools) -> tuple[Ints, Ints]:
        """The visits of some births, renumbered, and direct completions.

        Complexity: O(links · log(events of a window)).
        """
        engine, window = self.engine, self.engine.window
        links, used = engine.links, engine.used
        births, tables = engine.births, engine.tables
        ticks, slot = np.ascontiguousarray(self.events[:, 2]), np.ascontiguousarray(self.events[:, 0])
        slot_end = np.searchsorted(slot, slot, side="right")
        phases = np.zeros((used, kernel_trace.PHASE), np.int64)
        phases[:, kernel_trace.AT] = self._place(engine.events_of_links[:used])
        after = np.arange(1, len(ticks) + 1)
        if tables.is_simultaneous:
            is_last = np.append((slot[1:] != slot[:-1]) | (ticks[1:] != ticks[:-1]), True)
            after = (np.flatnonzero(is_last) + 1)[np.cumsum(is_last) - is_last]
            joined = links[layout.LINK_HERE : used * layout.LINK : layout.LINK] < 0  # when the time is over
            phases[joined, kernel_trace.AT] = after[phases[joined, kernel_trace.AT]] - 1
        phases[:, [kernel_trace.BIRTH, kernel_trace.CHILD]] = -1
        phases[births[:, LINK], kernel_trace.BIRTH] = np.arange(len(births))
        flat = phases.ravel()
        forest = kernel_trace.Forest(links, flat)
        stream = kernel_trace.Stream(ticks, slot_end, after, self.point_at, self.point_places, self.is_hit)
        ends_all = int(tables.shape[layout.NON_OVERLAP])
        kernel_trace.mark_phases(forest, stream, _arcs(tables), ends_all, window)
        floors = np.array([-(-part * (window + 1) // PARTS) for part in range(PARTS + 1)], np.int64)
        solid = np.concatenate(([0], np.cumsum(np.diff(floors) > 0)))
        count = np.zeros(2, np.int64)
        ends = np.empty((int(self.is_hit.sum()), 2), np.int64)
        span = kernel_trace.Span(floors, solid, window)
        kernel_trace.place_visits(forest, stream, span, is_closed, ends.ravel(), count)
        tested, row = _tested(tables, self.events[:, 3])
        out = np.empty((kernel_trace.VISIT, int(count[0])), np.int64)
        work = kernel_trace.Work(tested.ravel(), row[births[:, POOL]] * tested.shape[1])
        kernel_trace.look_back(forest, stream, work, span, out.ravel())
        out[0] = (np.cumsum(is_closed) - 1)[out[0]]
        return out, ends[: int(count[1])]


def _arcs(tables: RunTables) -> kernel_trace.Arcs:
    """Per arc what becomes of the runs that take it.

    Where gaps of several kinds can follow, the runs are taken to stay as long as any of them. Runs that a kill step
    ends, or an event that only some states ignore, leave no link that tells of it: they are taken to stay.
    """
    automaton = tables.automaton
    in_place, leaves, ends, stays = np.zeros((4, max(len(automaton.automaton.arcs), 1)), np.bool_)
    steps = tables.tables[tables.shape[layout.STEPS] : tables.shape[layout.STATES]].reshape(-1, layout.STEP)
    in_place[steps[steps[:, layout.STEP_IN_PLACE] != 0, layout.STEP_ARC]] = True
    for step in automaton.steps:
        if step.arc is not None and step.target is not None:
            leaves[step.arc] |= step.inhibits
            ends[step.arc] |= automaton.ignores[step.target] == NO_EVENT
            stays[step.arc] |= automaton.ignores[step.target] != NO_EVENT
    return kernel_trace.Arcs(in_place, leaves, ends & ~stays)


def _tested(tables: RunTables, cls: Ints) -> tuple[Ints, Ints]:
    """How many of the first n events the runs of some pools are tested with, n = 0, 1, ...; and each pool's row."""
    shape, words = tables.shape, tables.tables
    first = words[shape[layout.CLASS_FIRST] : shape[layout.SOURCES]]
    sources = words[shape[layout.SOURCES] : shape[layout.TARGETS_FIRST]].reshape(-1, layout.SOURCE_WORDS)
    kind = np.repeat(np.arange(len(first) - 1), np.diff(first))
    goes_through = sources[:, 3] < 0  # the others are found by an index
    is_tested = np.zeros((len(tables.pools), len(first) - 1), np.int64)
    is_tested[sources[goes_through, 0], kind[goes_through]] = 1
    distinct, row = np.unique(is_tested, axis=0, return_inverse=True)
    tested = np.zeros((len(distinct), len(cls) + 1), np.int64)
    np.cumsum(distinct[:, cls], axis=1, out=tested[:, 1:])
    return tested, row.ravel()
