"""Which matches of rules are certain inside a load budget, and what may be missing.

A run that is shed may have led to a match. So of each rule and key the latest start of such a run is kept, its
*shadow*: as long as that is in the window, an event that can complete a match may complete one that is missed. What a
missed match would write is in *doubt* (``doubt.TableDoubt``). An event that reads a row in doubt is *unsure*: it may
begin a match of the exact run, or lead one on, so it casts a shadow as well; and a match that takes it may be none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from acep_approx.archive import Scope
from acep_approx.arrays import Bools, Ints, extended
from acep_approx.engines.runs.load_shedder import LoadShedder
from acep_approx.engines.runs.lost import LostRuns, Shown, can_follow
from acep_approx.engines.runs.shedding import Shedding
from acep_approx.events.columns import to_numpy
from acep_approx.events.stream import EventBatch
from acep_approx.kernels.rules.doubt import Seen, follow
from acep_approx.kernels.rules.lost import MAY_END
from acep_approx.kernels.runs.pools import NEVER
from acep_approx.matching.pipeline import Pipeline
from acep_approx.matching.stream_batch import StreamBatch
from acep_approx.query.shape import negated_variables, passing_less
from acep_approx.query.syntax import Atom, Read
from acep_approx.ranges import HIGHEST, LOWEST, TICK, Range
from acep_approx.rules.compiled import CompiledRule, ReadColumn
from acep_approx.rules.domains import domains_of
from acep_approx.rules.doubt import NO_PLACE, Guard, TableDoubt
from acep_approx.rules.firing import Firing, OfBatch, OfEvents, Statement
from acep_approx.rules.graph import Cell, RuleGraph, cell
from acep_approx.rules.log import TableLog, Transactions, places_of_events
from acep_approx.rules.matched import LEAF, Matched
from acep_approx.rules.program import Program
from acep_approx.rules.unsure import Readings, Unsure, is_of

NO_ROWS = np.zeros(0, np.int64)
ALWAYS = -1
"""In the place of a window: what was lost once may always be missed."""


@dataclass(frozen=True)
class Taint:
    """Which rules may miss matches, or have some that the exact run has not, and what they write.

    Attributes
    ----------
    rules : set of int
        Those that shed, or read what such rules write.
    tables : set of str
        Tables that these write and some rule reads.
    """

    rules: frozenset[int]
    cells: frozenset[Cell]
    tables: frozenset[str]

    @classmethod
    def of(cls, graph: RuleGraph) -> Taint:
        """That of rules inside a budget: those on the runs engine shed."""
        rules = {rule.number for rule in graph.rules if rule.plan.registers is not None}
        while True:
            cells = {one for rule in graph.rules if rule.number in rules for one in graph.written(rule)}
            more = {rule.number for rule in graph.rules if cells_read(rule, graph) & cells} - rules
            if not more:
                break
            rules |= more
        read = {one for rule in graph.rules for one in cells_read(rule, graph)}
        return cls(frozenset(rules), frozenset(cells), frozenset(table for table, _ in cells & read))


def cells_read(rule: CompiledRule, graph: RuleGraph) -> set[Cell]:
    """All that a rule reads, with what that is computed from."""
    reads: list[ReadColumn | Read] = [*rule.reads, *rule.when_reads, *rule.late_reads]
    return {one for read in reads for one in graph.cells_of(*_table_and_column(cell(read)))}


def _table_and_column(one: Cell) -> tuple[str, str | None]:
    return one[0], one[1] or None


@dataclass
class UnsureEvents:
    """Events that read what was in doubt, in order: key slots, rows in the stream, ticks."""

    slot: Ints = field(default_factory=lambda: NO_ROWS)
    row: Ints = field(default_factory=lambda: NO_ROWS)
    tick: Ints = field(default_factory=lambda: NO_ROWS)

    def add(self, slot: Ints, row: Ints, tick: Ints) -> None:
        """Take in more of them."""
        for name, more in (("slot", slot), ("row", row), ("tick", tick)):
            setattr(self, name, np.concatenate((getattr(self, name), more)))

    def forget(self, tick: int) -> None:
        """Let go of those before a tick."""
        first = int(np.searchsorted(self.tick, tick))
        if 2 * first > len(self.tick):
            self.slot, self.row, self.tick = self.slot[first:], self.row[first:], self.tick[first:]

    def latest(self, slots: Ints | None, rows: Ints) -> Ints:
        """The tick of the last of them up to some rows, of the same slots (None: of any); ``NEVER`` where none is."""
        if not len(self.row):
            return np.full(len(rows), NEVER)
        of = np.zeros(len(self.row), np.int64) if slots is None else self.slot
        asked = np.zeros(len(rows), np.int64) if slots is None else slots
        order = np.lexsort((self.row, of))
        first, span = int(self.row[0]), int(self.row[-1]) - int(self.row[0]) + 2
        known = of[order] * span + self.row[order] - first
        at = np.searchsorted(known, asked * span + np.clip(rows - first, -1, span - 2), side="right") - 1
        found = order[np.maximum(at, 0)]
        return np.where((at >= 0) & (of[found] == asked), self.tick[found], NEVER)


@dataclass(frozen=True)
class Guarded:
    """For which values of which row a rule acts at some events, as bits; 0: something else matters, too."""

    values: Ints
    rows: Ints


class Watch:
    """What a rule may have missed so far, and which of its matches are certain.

    Parameters
    ----------
    rule : CompiledRule
    pipeline : Pipeline
    arena : Shedding, optional
        Of its engine, where that sheds.
    firing : Firing
    doubts : mapping of str to TableDoubt
        Of the tables that may be in doubt and are read by some rule.
    """

    def __init__(
        self,
        rule: CompiledRule,
        pipeline: Pipeline,
        arena: Shedding | None,
        firing: Firing,
        doubts: Mapping[str, TableDoubt],
    ) -> None:
        query = rule.plan.query
        self.rule, self.pipeline, self.firing = rule, pipeline, firing
        self._arena = arena
        if arena is not None:
            arena.notes_lost = True
        self._lost_runs: LostRuns | None = None
        self._doubts = doubts
        self.readings = Readings(rule, doubts)
        self._late = {read.table for read in rule.late_reads} & doubts.keys()
        self.writes = [one for one in firing.statements if one.write.table in doubts]
        self._chooses = not query.selection.is_all or (bool(self.readings.reads) and query.at_start)
        self._passes_all = passing_less(query) is None and not negated_variables(query.pattern) and not rule.is_late
        is_always = self._chooses or rule.plan.is_count_window
        self._window = ALWAYS if is_always else pipeline.window
        if arena is not None and not is_always and not rule.is_late and can_follow(rule.plan.registers):
            self._lost_runs = LostRuns(arena, self._window)
        self._ends = {letter.type for n, letter in enumerate(rule.plan.letters) if rule.last_letters >> n & 1}
        self._shadow, self._first = NO_ROWS, NO_ROWS
        self._unsure = UnsureEvents()
        self._open = NO_ROWS, np.zeros(0, np.bool_)  # of the last events: rows, whether something may be missed there
        self._last = Unsure.none(0)  # of the last events
        self._slots = NO_ROWS
        is_told = rule.rule.when is None and not rule.late and rule.is_same and self._window != ALWAYS
        self._guard = self.readings.guard if is_told else None
        self._is_alone = isinstance(query.pattern, Atom)
        if self._window == ALWAYS or arena is not None or self.readings.reads:
            pipeline.lost_from = self.shadows

    # --- events ------------------------------------------------------------------------------------------------

    def shadows(self, slots: Ints) -> Ints:
        """Per key slot the latest start of a run that was lost."""
        self._fit()
        found: Ints = self._shadow[slots]
        return np.where(found > NEVER, HIGHEST, NEVER) if self._window == ALWAYS else found

    def _fit(self) -> None:
        wanted = max(self.pipeline.key_slots.slots, 1)
        if len(self._shadow) < wanted:
            self._shadow = extended(self._shadow, 2 * wanted, NEVER)
            self._first = extended(self._first, 2 * wanted, NO_PLACE)

    def unsure(self, batch: StreamBatch, rows: Mapping[str, Ints]) -> Unsure:
        """Of which events something in doubt matters; ``rows`` are what they name, by read. Before they are run."""
        return self.readings.unsure(batch, rows, transactions_of(batch))

    def may_complete(self, batch: StreamBatch, classes: Ints, unsure: Bools) -> Bools:
        """The events that may be the last of a match, here or in the exact run."""
        completes = np.array([bool(mask & self.rule.last_letters) for mask in self.pipeline.preparer.classes])
        found: Bools = completes[classes]
        return found | (unsure & is_of(self._ends, batch)) if unsure.any() else found

    def take(self, batch: StreamBatch, classes: Ints, some: Unsure, of: OfBatch) -> None:
        """Events were run: note what may be missed from here on, and what missed matches may have written."""
        self._fit()
        rows = batch.first_row + np.arange(len(batch))
        lost, told = np.full(len(batch), NEVER), None if self._arena is None else self._arena.take_lost()
        if told is not None:
            lost[told.rows - batch.first_row] = told.starts.max(axis=1)
        slots = batch.slots(self.pipeline.preparer.key_columns)
        unsure = some.any & (slots >= 0)
        leads = unsure if self._window == ALWAYS or self.rule.is_late else some.leads & (slots >= 0)
        is_open = np.zeros(len(batch), np.bool_)
        ticks = np.require(batch.ticks, requirements="W")
        masks, ends = self.pipeline.preparer.classes, np.zeros(len(batch), np.bool_)
        if self.rule.ending_letters and self._window != ALWAYS:
            ending, later = self.rule.ending_letters, self.rule.later_letters  # what it leads on goes on
            ends = np.array([bool(mask & ending) and not mask & later for mask in masks])[classes] & ~unsure
        follow(Seen(slots, ticks, rows, lost, leads, ends), self._window, NEVER, self._shadow, self._first, is_open)
        if self._lost_runs is not None and told is not None:
            shown = Shown(slots, ticks, np.array(masks, np.int64)[classes], batch.values)
            told = told._replace(rows=told.rows - batch.first_row)
            is_open = self._lost_runs.follow(shown, told, leads, ends) & MAY_END > 0
        is_open |= unsure
        self._open, self._slots, self._last = (rows, is_open), slots, some
        at = np.flatnonzero(leads)
        self._unsure.add(slots[at], rows[at], ticks[at])
        if self._window != ALWAYS:
            self._unsure.forget(int(ticks[0]) - 3 * self._window - 1)
        starts = np.maximum(lost, np.where(unsure, ticks, NEVER))
        if self.rule.is_late:
            at = np.flatnonzero(starts > NEVER)
            always = np.full(len(at), NO_PLACE)
            until = always if self._window == ALWAYS else starts[at] + self._window
            self._missed_until(transactions_of(batch).take(at), until)
            return
        self._missed(np.flatnonzero(is_open & (slots >= 0) & self.may_complete(batch, classes, unsure)), batch, of)

    def _missed(self, at: Ints, batch: StreamBatch, of: OfBatch) -> None:
        transactions = transactions_of(batch).take(at)
        for one in self.writes if len(at) else ():
            rows = self.firing.row_of(one, OfEvents(of, at)) if self.rule.names_row(one.write) else None
            self.may_be_written(one, transactions, rows, self._guards(at) if self._is_alone else None)

    def may_be_written(self, one: Statement, of: Transactions, rows: Ints | None, guard: Guarded | None = None) -> None:
        """A statement may have been run by the exact run alone, or here alone, in some transactions.

        ``guard``: in which of them it was run just where a value was one of some.
        """
        doubt, is_if = self._doubts[one.write.table], np.zeros(len(of), np.bool_)
        if guard is not None and rows is not None and self._guard is not None and guard.values.any():
            is_if = (guard.values > 0) & (guard.rows == rows) & (self._guard.table == one.write.table)
            at = np.flatnonzero(is_if)
            doubt.is_written_if(of.take(at), rows[at], one.number, Guard(self._guard.column, guard.values[at]))
        at = np.flatnonzero(~is_if)
        own = None if rows is None else rows[at]
        doubt.may_be_written(of.take(at), own, one.number, is_same=self.rule.is_same)

    def _guards(self, at: Ints) -> Guarded:
        """Of some of the last events, of which nothing else is in doubt."""
        some = self._last
        is_told = some.ends[at] & ~some.leads[at] & (self._guard is not None)
        return Guarded(np.where(is_told, some.guard[at], 0), some.rows[at])

    def guarded(self, found: Matched) -> Guarded | None:
        """Of matches of the last events that are not certain: where they are there but for what the last one reads."""
        known = self._open[0]
        if self._guard is None or not len(known) or not self._last.ends.any():
            return None
        found_rows = np.where(found.of.row >= 0, found.of.row, (found.of.place - 2) // 2)
        some = self._guards(found.end - known[0])
        is_told = ~self._takes_unsure(found, self._slots_of(found.end), found_rows)
        return Guarded(np.where(is_told, some.values, 0), some.rows)

    def _missed_until(self, transactions: Transactions, until: Ints) -> None:
        for one in self.writes:
            self._doubts[one.write.table].may_be_written(transactions, None, one.number, until)

    # --- matches -----------------------------------------------------------------------------------------------

    def is_certain(self, found: Matched) -> Bools:
        """Which matches are in the exact answer, as far as events say it."""
        certain = np.ones(len(found), np.bool_)
        rows = np.where(found.of.row >= 0, found.of.row, (found.of.place - 2) // 2)
        slots = None if self.rule.is_late else self._slots_of(found.end)
        if self._chooses:
            self._fit()
            first = self._first[slots] if slots is not None else np.full(len(found), self._first.min(initial=NO_PLACE))
            certain &= first > rows
        if len(self._unsure.row):
            certain &= ~self._takes_unsure(found, slots, rows)
        if self._last.ends.any() and not self.rule.is_late:
            certain &= ~self._last.ends[found.end - self._open[0][0]]
        for table in self._late:
            certain &= found.of.place < self._doubts[table].since
        return certain

    def _slots_of(self, rows: Ints) -> Ints:
        known = self._open[0]
        found: Ints = self._slots[rows - known[0]] if len(known) else np.zeros(len(rows), np.int64)
        return found

    def _takes_unsure(self, found: Matched, slots: Ints | None, rows: Ints) -> Bools:
        """Which matches take an unsure event that leads on; or, where others in between matter, have one near them."""
        if not len(self._unsure.row):
            return np.zeros(len(found), np.bool_)
        if self._passes_all and self.rule.lists:
            taken = np.zeros(len(found), np.bool_)
            for name in found.table.column_names:
                if name.startswith(LEAF[0]) and not name.startswith(LEAF):
                    taken |= _any_of(found.table.column(name).combine_chunks(), self._unsure.row)
            return taken
        if self.rule.plan.is_count_window:  # it says how many events ago it starts
            return self._unsure.latest(slots, rows) > NEVER
        start = to_numpy(found.table.column("start").combine_chunks().cast(pa.int64()))
        reach = 0 if self._passes_all else self._window if self._window != ALWAYS else HIGHEST // 2
        return self._unsure.latest(slots, rows) >= start - reach

    def is_open_at(self, rows: Ints) -> Bools:
        """Whether a match may be missed at some of the last events."""
        known, is_open = self._open
        found: Bools = is_open[rows - known[0]] if len(known) else np.zeros(len(rows), np.bool_)
        return found

    # --- state -------------------------------------------------------------------------------------------------

    def save(self, scope: Scope) -> None:
        """Save what is known at the end of a batch."""
        self._fit()
        one = self._unsure
        scope.arrays |= {"shadow": self._shadow, "first": self._first}
        scope.arrays |= {"slot": one.slot, "row": one.row, "tick": one.tick}
        if self._lost_runs is not None:
            self._lost_runs.save(scope.sub("lost"))

    def restore(self, scope: Scope) -> None:
        """Take over what ``save`` saved."""
        self._shadow = scope.array("shadow", Range(None, LOWEST, HIGHEST + 1))
        self._first = scope.array("first", Range(len(self._shadow), 0, NO_PLACE + 1))
        size = len(scope.arrays["slot"])
        self._unsure = UnsureEvents(
            scope.array("slot", Range(size, 0, NO_PLACE)),
            scope.array("row", Range(size, 0, NO_PLACE)),
            scope.array("tick", Range(size, -TICK, TICK)),
        )
        self._fit()
        if self._lost_runs is not None:
            self._lost_runs.restore(scope.parts["lost"])


def _any_of(rows: pa.Array, wanted: Ints) -> Bools:
    """Which matches bind one of some rows to a variable."""
    if not pa.types.is_list(rows.type):
        found: Bools = np.isin(to_numpy(pc.fill_null(rows, -1)), wanted)
        return found
    offsets = np.asarray(to_numpy(rows.offsets), np.int64)
    hits = np.concatenate(([0], np.cumsum(np.isin(to_numpy(rows.values), wanted))))
    return hits[offsets[1:]] > hits[offsets[:-1]]


def transactions_of(batch: EventBatch) -> Transactions:
    """Those of the events of a batch."""
    place = places_of_events(batch.first_row, len(batch))
    none = np.zeros(len(batch), np.int64)
    return Transactions(place, none, none, np.asarray(batch.ticks, np.int64), place // 2)


class Spending(Protocol):
    """Spends a load budget on some rules."""

    def begin(self, program: Program) -> Mapping[int, LoadShedder]:
        """Begin a run: the shedders of the rules that shed, by number."""

    def pieces(self, batch: EventBatch) -> Iterator[EventBatch]:
        """The parts of a batch between which the budget moves."""

    @property
    def on_reads(self) -> Callable[[str, EventBatch], None] | None:
        """Is told, rule by rule, a batch with the columns that its events have read of tables; None: is not."""

    def note(self, rule: str, results: pa.Table) -> None:
        """These results of a rule were put out."""

    def take_log(self, pipelines: Mapping[int, Pipeline]) -> None:
        """Take what was written down of runs that were shed, while their keys are known; pipelines by rule."""

    def done(self) -> None:
        """A batch is done."""

    def snapshot(self) -> dict[str, Any]:
        """Where the budget stands, as JSON."""

    def restore(self, saved: dict[str, Any]) -> None:
        """Go on from what ``snapshot`` gave, once all engines were restored."""

    def options(self) -> dict[str, Any]:
        """What the run was begun with, as JSON."""


class Losses:
    """What some rules may miss inside a load budget: who sheds, who watches, and what is in doubt.

    Parameters
    ----------
    program : Program
    logs : mapping of str to TableLog
        By table.
    shedders : mapping of int to LoadShedder
        Of the rules that shed.

    Attributes
    ----------
    taint : Taint
    doubts : dict of str to TableDoubt
        By table.
    watches : dict of int to Watch
        By rule.
    """

    def __init__(
        self, program: Program, logs: Mapping[str, TableLog], shedders: Mapping[int, LoadShedder]
    ) -> None:
        self.taint = Taint.of(program.graph)
        self.shedders = shedders
        domains = domains_of(program.file, program.rules)
        once: dict[str, list[int]] = {}
        for rule in program.rules:
            for one in program.statements[rule.number] if rule.acts_once else ():
                once.setdefault(one.write.table, []).append(one.number)
        self.doubts = {
            name: TableDoubt(logs[name], program.writes[name], domains[name], once.get(name, ()))
            for name in sorted(self.taint.tables)
        }
        self.watches: dict[int, Watch] = {}

    def watch(self, rule: CompiledRule, pipeline: Pipeline, firing: Firing) -> Watch | None:
        """Who watches a rule, and lets it know which matches are certain; None where all are."""
        if rule.number not in self.taint.rules:
            return None
        shedder = self.shedders.get(rule.number)
        watch = Watch(rule, pipeline, None if shedder is None else shedder.arena, firing, self.doubts)
        firing.judge = self.watches[rule.number] = watch
        return watch

    def save(self, scope: Scope) -> None:
        """Save what is in doubt, and what was lost."""
        for name, doubt in self.doubts.items():
            doubt.save(scope.sub(f"table {name}"))
        for number, watch in self.watches.items():
            watch.save(scope.sub(f"rule {number}"))

    def restore(self, scope: Scope) -> None:
        """Take over what ``save`` saved."""
        for name, doubt in self.doubts.items():
            doubt.restore(scope.parts[f"table {name}"])
        for number, watch in self.watches.items():
            watch.restore(scope.parts[f"rule {number}"])
