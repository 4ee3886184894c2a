"""The audit of ends: some events that may end a match, and that the run did not report, are tried one by one.

Whether a match ends with an event is seen by reading the events before it backwards (``query.backwards``): one run for
each end, where an exact run has all runs of the window. So a share of a budget that pays for a few cells often pays for
hundreds of ends. They are drawn at random from all that are open, so they speak for the others. Not open is what no run
can end, by the least and the greatest numbers of all runs that there may be (``LostRuns``): often that is nearly
everything but match points.

Events are kept for a window, and as long as ends wait to be tried. Ends wait until enough have come: what is granted
for few of them varies too much.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from acep_approx.arrays import Bools, Ints
from acep_approx.automaton.registers import RegisterAutomaton
from acep_approx.budget.evidence import EndSample
from acep_approx.engines.batches import RunEvents
from acep_approx.engines.runs.lost import LostRuns, Shown
from acep_approx.events.columns import to_arrow
from acep_approx.events.reading.widening import one_table
from acep_approx.events.roles import Roles
from acep_approx.events.stream import EventBatch
from acep_approx.ipc import from_ipc, to_ipc
from acep_approx.kernels.rules.lost import MAY_END, MAY_STEP
from acep_approx.matching.execution import Execution
from acep_approx.matching.outputs.kinds import BARE
from acep_approx.matching.outputs.of_runs import TooManyStepsError
from acep_approx.matching.stream_batch import ColumnOf
from acep_approx.planning.planner import Plan, plan
from acep_approx.query.backwards import backwards
from acep_approx.query.shape import walk
from acep_approx.query.syntax import Attribute
from acep_approx.ranges import COUNT, TICK, Range, check, check_arrays, finite, number_in

END = "acep_end"
"""The column by which events read backwards belong to the end that they are read for."""
AT_ONCE, MOST_WAITING = 1 << 12, 1 << 15
"""Events after which ends are tried if enough is saved up, and after which they are tried with what there is."""
PLENTY = 1 << 12
"""Run-steps that are enough for the first ones: nobody knows yet what they take."""
SAVED = 32
"""How many ends there should be run-steps for: what they take differs much, and with less many would be given up."""
MOST_KEPT = 1 << 18
"""Events of a window beyond which ends are not tried."""
KNOWN, AT_A_TIME = 8, 0.25
"""Ends that are tried one by one, to see what they cost; then such a part of those that there are run-steps for: where
they are given up, few are."""
LEAST = 0.125
"""Of those that were tried now; for fewer it is not worth another call, and what is left is saved up."""
AT_MOST = 0.5
"""Share of what is left that ends which are tried together may take: one may be far dearer than all others."""
ENOUGH = 1.5
"""How many times what ends have cost so far must be there for those that are tried."""
FIRST, FEW, MORE = 4, 8, 3
"""Events that are read first for each end, as if there were so many ends at least, and how many times as many next:
most ends that complete a match do so with events that are near."""
HEAVY, READ = 500, 0.5
"""Run-steps per event of the exact run from which on about so many events, at most, are read backwards for each that
comes: to read one takes as long as dozens of run-steps, and such a load is shed to save time."""
DEAR = 1.25
"""Of the exact run's work for an end: where trying one costs more, cells of the stream are matched instead."""


class LookBack:
    """Tells which events end a match, by the events before them.

    Parameters
    ----------
    turned : Plan
        Of the query that reads backwards.
    schema : pyarrow.Schema
    roles : Roles
        Of the events.
    window : int
        In ticks.
    """

    def __init__(self, turned: Plan, schema: pa.Schema, roles: Roles, window: int) -> None:
        self.plan, self.roles, self.window = turned, roles, window
        self.schema = schema
        self._execution: Execution | None = None
        self._known = schema
        self._next = (0, 0, 0)  # row, end and tick at which it goes on

    @classmethod
    def of(cls, query_plan: Plan, schema: pa.Schema, roles: Roles, window: int) -> LookBack | None:
        """That of a plan; None where its matches cannot be found backwards."""
        query = query_plan.query
        turned = backwards(query, END)
        names = (node.name for condition in query.predicates for node in walk(condition) if isinstance(node, Attribute))
        if turned is None or any(roles.column(name) == roles.time for name in names) or END in schema.names:
            return None  # times are read backwards, too
        found = plan(turned, "runs")
        assert found.registers is not None
        if found.registers.needs_filter or found.registers.waits:
            return None
        return cls(found, schema, roles, window)

    def spans(self, kept: Kept, ends: Ints) -> Spans:
        """Find the events that a match may have which ends with each of some events, given by their places in ``kept``.

        Complexity: O(events log events).
        """
        slots, ticks = kept.slots, kept.ticks
        order = np.argsort(slots, kind="stable")
        place = np.empty(len(order), np.int64)
        place[order] = np.arange(len(order))
        first_tick, last_tick = (int(ticks[0]), int(ticks[-1])) if len(ticks) else (0, 0)
        size = last_tick - first_tick + self.window + 2
        rising = slots[order] * size + (ticks[order] - first_tick) + self.window
        least = slots[ends] * size + (ticks[ends] - first_tick)
        return Spans(order, ends, np.searchsorted(rising, least), place[ends])

    def completes(self, kept: Kept, spans: Spans, most_steps: int) -> tuple[Bools, int]:
        """Which of some events end a match, and the run-steps that it took to see.

        Parameters
        ----------
        kept : Kept
            Of one batch.
        spans : Spans
            Of one end at least.
        most_steps : int

        Raises
        ------
        TooManyStepsError
            It takes more run-steps.
        """
        ends, sizes = spans.ends, spans.sizes
        of_end = np.repeat(np.arange(len(ends)), sizes)
        begun = np.cumsum(sizes) - sizes
        rows = spans.order[spans.last[of_end] - (np.arange(len(of_end)) - begun[of_end])]
        ago = kept.ticks[ends][of_end] - kept.ticks[rows]
        by_time = np.argsort(ago, kind="stable")
        of_end, rows, ago = of_end[by_time], rows[by_time], ago[by_time]
        execution = self._bound(kept.data[0].schema)
        assert execution.pipeline is not None
        first_row, first_end, first_tick = self._next
        done = execution.progress.steps
        execution.pipeline.results.give_up_after(done + most_steps)
        completed = np.zeros(len(ends), np.bool_)
        for some in _stages(len(rows), len(ends)):
            at = np.arange(len(rows))[some]
            at = at[~completed[of_end[at]]]  # of an end that completes a match nothing more is asked
            if not len(at):
                continue
            part = kept.data[0].take(to_arrow(rows[at])).append_column(END, to_arrow(first_end + of_end[at]))
            try:
                for table in execution.run(EventBatch(first_row, first_tick + ago[at], part)):
                    completed[of_end[at[table.column("row").to_numpy() - first_row]]] = True
            except TooManyStepsError:
                self._execution = None
                raise
            first_row += len(at)
        self._next = first_row, first_end + len(ends), first_tick + int(ago[-1]) + self.window + 1
        return completed, execution.progress.steps - done

    def _bound(self, known: pa.Schema) -> Execution:
        """What ends are run in, one portion after the other, each a window later than the last one."""
        if self._execution is None or known != self._known:
            self._execution, self._known, self._next = Execution(self.plan, output=BARE, is_raw=True), known, (0, 0, 0)
            wider = {field.name: field for field in known}  # types may be wider by now
            fields = [wider.get(field.name, field) for field in self.schema]
            self._execution.bind(pa.schema([*fields, pa.field(END, pa.int64())]), self.roles)
        return self._execution


def _stages(events: int, ends: int) -> Iterator[slice]:
    """Parts of events that are read one after the other, each several times as long as all before."""
    done, size = 0, FIRST * max(ends, FEW)
    while done < events:
        yield slice(done, done + size)
        done, size = done + size, MORE * size


def one_batch(table: pa.Table) -> pa.RecordBatch:
    """All rows of a table, of which there are some, as one batch."""
    return table.combine_chunks().to_batches()[0]


def ending_letters(automaton: RegisterAutomaton) -> int:
    """A mask of the letters on which a match can end.

    Examples
    --------
    >>> from acep_approx import compile_query
    >>> automaton = compile_query("PATTERN SEQ(A a, B b) WITHIN 5", engine="runs").plan.registers
    >>> [letter.type for n, letter in enumerate(automaton.letters) if ending_letters(automaton) >> n & 1]
    ['B']
    """
    mask = 0
    for step in automaton.steps:
        if step.target is not None and automaton.finals[step.target]:
            mask |= 1 << step.letter
    return mask


@dataclass
class Kept:
    """Events that may still be read, in the order of the stream.

    Attributes
    ----------
    slots, ticks : int64 arrays
    is_open : bool array
        Whether each may end a match, was not reported, and waits to be tried.
    data : list of pyarrow.RecordBatch
    """

    slots: Ints
    ticks: Ints
    is_open: Bools
    data: list[pa.RecordBatch]

    @classmethod
    def joined(cls, parts: Sequence[Kept]) -> Kept:
        """Parts of a stream as one, with at most one batch."""
        none = cls(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, np.bool_), [])
        slots, ticks, is_open = (
            np.concatenate([getattr(part, name) for part in (none, *parts)]) for name in ("slots", "ticks", "is_open")
        )
        data = [batch for part in parts for batch in part.data if len(batch)]
        return cls(slots, ticks, is_open, [one_batch(one_table(data))] if data else [])

    def where(self, is_wanted: Bools) -> Kept:
        """Some of them."""
        if is_wanted.all():
            return self
        data = [batch.filter(pa.array(is_wanted)) for batch in self.data]
        return Kept(self.slots[is_wanted], self.ticks[is_wanted], self.is_open[is_wanted], data)

    def since(self, tick: int) -> Kept:
        """Those from a tick on; none waits to be tried any more. Of one batch, or none."""
        first = int(np.searchsorted(self.ticks, tick))
        left = [batch.slice(first) for batch in self.data]
        return Kept(self.slots[first:], self.ticks[first:], np.zeros(len(self.ticks) - first, np.bool_), left)


@dataclass(frozen=True)
class Spans:
    """The events that matches of some ends may have.

    Attributes
    ----------
    order : int64 array
        Places of events, by the slot of their key and then as they came.
    ends : int64 array
        Places of the ends.
    first, last : int64 arrays
        Where in that order the events of each end begin, and the end stands.
    """

    order: Ints
    ends: Ints
    first: Ints
    last: Ints

    @property
    def sizes(self) -> Ints:
        """For each end the number of events that its match may have, the end included."""
        return self.last - self.first + 1

    def part(self, first: int, number: int) -> Spans:
        """Those of so many of the ends."""
        return self.take(slice(first, first + number))

    def take(self, some: slice | Ints) -> Spans:
        """Those of some of the ends."""
        return Spans(self.order, self.ends[some], self.first[some], self.last[some])


class ExactEnds:
    """Tries ends of matches that a run has not reported.

    Parameters
    ----------
    look : LookBack
    ending : int
        See ``ending_letters``.
    seed : int
        Another one draws other ends.
    full_work : float
        Run-steps per event of an exact run, as far as is known; 0: it is not.
    runs : LostRuns, optional
        Follows all runs that there may be.

    Attributes
    ----------
    quota, steps : float, int
        Run-steps granted, and done, so far.
    sample : EndSample
    is_dear : bool
        Whether trying ends costs more than matching parts of the stream.
    """

    def __init__(
        self, look: LookBack, ending: int, seed: int, full_work: float, runs: LostRuns | None = None
    ) -> None:
        self.look, self.ending, self.full_work, self.runs = look, ending, full_work, runs
        self.quota, self.steps = 0.0, 0
        self.sample = EndSample()
        self.is_dear = False
        self._seed, self._seen = seed, 0  # events
        self._parts: list[Kept] = []
        self._waiting = 0  # events since ends were tried last
        self._begun = 0  # ends that were tried, or given up
        self._read = 0  # events, for these ends

    def add(
        self, batch: EventBatch, events: RunEvents, classes: Sequence[int], known: Ints, *, is_certain: bool = False
    ) -> None:
        """These events came; ``classes``: letters of each class of events; ``known``: rows that need not be tried.

        ``is_certain``: the run has found all match points, so that no other event ends a match.
        """
        order = np.argsort(events.row)
        rows = events.row[order]
        data = batch.data.take(to_arrow(rows - batch.first_row))
        came = Kept(events.slot[order], events.tick[order], np.zeros(len(rows), np.bool_), [data])
        may = self._may(came, classes, events.cls[order])
        came.is_open = (may & MAY_END > 0) & ~np.isin(rows, known) & (not is_certain)
        self.sample = self.sample.combine(EndSample(int(came.is_open.sum())))
        self._seen += len(batch)
        if self.is_dear:
            return
        self._parts.append(came.where(may & MAY_STEP > 0))
        self._waiting += len(rows)

    def _may(self, came: Kept, masks: Sequence[int], classes: Ints) -> Ints:
        """What events of these classes may do to some run; ``masks``: the letters of each class."""
        if self.runs is None:
            can_end = np.array([mask & self.ending != 0 for mask in masks], np.bool_)[classes]
            return np.where(can_end, MAY_STEP | MAY_END, MAY_STEP)
        letters = np.array(masks, np.int64)[classes]
        return self.runs.follow(Shown(came.slots, came.ticks, letters, ColumnOf(came.data[0], self.look.roles)))

    @property
    def keeps_events(self) -> bool:
        """Whether there are events to be read."""
        return bool(self._parts)

    def forget(self) -> None:
        """Let go of all events: others are searched now."""
        self._parts, self._waiting = [], 0

    @property
    def is_full(self) -> bool:
        """Whether enough events have come for ends to be tried."""
        return not self.is_dear and self._waiting >= AT_ONCE

    def is_due(self) -> bool:
        """Whether enough events have come for ends to be tried, and enough is granted, so that few are given up."""
        if not self.is_full:
            return False
        left = self.quota - self.steps
        return left >= (SAVED * self._each if self._begun else PLENTY) or self._waiting >= MOST_WAITING

    def pass_over(self, events: int) -> None:
        """So many events have come that no run is tested with: what is drawn must not hang on how batches are cut."""
        self._seen += events

    def try_some(self, *, is_last: bool = False) -> None:
        """Try as many of the open ends as there are run-steps for, drawn at random; then forget old events.

        What an end takes rises with the events that are read for it: those with few are drawn more often, by the square
        root (Neyman's allocation for units of unlike cost). The draws are those with the lowest of random numbers
        ("bottom k"; Cohen and Kaplan, PODC 2007): by the lowest one that was not tried each had its chance.

        ``is_last``: no more ends will come.
        """
        kept = Kept.joined(self._parts)
        spans = self.look.spans(kept, np.flatnonzero(kept.is_open))
        dice = np.random.default_rng((self._seed % 2**64, self._seen))  # seeds may be below 0
        rank = dice.exponential(size=len(spans.ends)) * np.sqrt(spans.sizes)
        order = np.argsort(rank, kind="stable")
        rank, spans = rank[order], spans.take(order)
        points, sizes = [np.zeros(0, np.bool_)], [np.zeros(0, np.int64)]
        given_up = 0
        for some in self._portions(spans):
            has_any = self.sample.tried or len(points) > 1
            most = int((self.quota - self.steps) * (AT_MOST if has_any or not is_last else 1))
            self._begun += len(some.ends)
            self._read += int(some.sizes.sum())
            try:
                is_point, steps = self.look.completes(kept, some, most)
            except TooManyStepsError:
                self.steps, given_up = self.steps + most, given_up + len(some.ends)
                continue
            self.steps += steps
            points.append(is_point)
            sizes.append(some.sizes)
        read = np.concatenate(sizes)
        begun = len(read) + given_up
        least = rank[begun] if begun < len(rank) else np.inf
        chances = -np.expm1(-least / np.sqrt(read))
        portion = EndSample.drawn(len(rank), chances, np.concatenate(points), given_up)
        self.sample = self.sample.combine(replace(portion, open=0))  # they were counted when they came
        # the same run-steps may show more of the stream by matching parts of it
        self.is_dear = self._each * self.sample.open > DEAR * self.full_work * self._seen > 0
        last = int(kept.ticks[-1]) if len(kept.ticks) else 0
        self._parts, self._waiting = [kept.since(last - self.look.window)], 0
        if self.is_dear or len(self._parts[0].ticks) > MOST_KEPT:
            self.is_dear, self._parts = True, []

    def _portions(self, spans: Spans) -> Iterator[Spans]:
        """Ends that may be tried together, as long as there are run-steps for them."""
        sizes, done = spans.sizes, 0
        while done < len(sizes):
            left = self.quota - self.steps
            enough = int(left / (ENOUGH * max(self._each, 1e-9))) if self._begun else 1
            if self.full_work >= HEAVY:  # by what ends take on average: which of them are tried is left to chance
                enough = min(enough, int((READ * self._seen - self._read) / sizes.mean()))
            room = int(np.searchsorted(np.cumsum(sizes[done:]), MOST_KEPT, side="right"))
            few = int(max(AT_A_TIME * enough, LEAST * done)) if self._begun >= KNOWN else 0
            # most ends may take no run-step and some many: no more are given up at once than were tried before
            number = min(max(few, 1), max(self._begun, 1), enough, max(room, 1), len(sizes) - done)
            if number <= 0 or left < 1 or enough < LEAST * done:
                return
            yield spans.part(done, number)
            done += number

    @property
    def _each(self) -> float:
        """Run-steps that an end takes, as far as is known, and not too few; 0 before any was tried."""
        return (self.steps + 1) / self._begun if self._begun else 0.0

    # --- state ----------------------------------------------------------------------------------------------

    def snapshot(self) -> dict[str, Any]:
        """What must be kept to go on elsewhere, as JSON. Complexity: O(events of a window)."""
        kept = Kept.joined(self._parts)
        data = [_text(pa.Table.from_batches([batch])) for batch in kept.data]
        return {
            "counts": [self.quota, self.steps, self._seen, self._waiting, self._begun, self._read],
            "is_dear": self.is_dear,
            "sample": list(vars(self.sample).values()),
            "runs": None if self.runs is None else [_text(pa.table({"words": words})) for words in self.runs.kept],
            "events": [kept.slots.tolist(), kept.ticks.tolist(), kept.is_open.tolist()],
            "data": data,
        }

    def restore(self, saved: dict[str, Any]) -> None:
        """Go on from what ``snapshot`` gave."""
        self.quota, *counts = saved["counts"]
        finite("counts", self.quota)
        numbers = [number_in("counts", count, 0, COUNT) for count in counts]
        self.steps, self._seen, self._waiting, self._begun, self._read = numbers
        self.is_dear = bool(saved["is_dear"])
        self.sample = EndSample.restored(saved["sample"])
        if self.runs is not None and saved.get("runs") is None:  # of a state of before: nobody knows what there may be
            self.runs = None
        if self.runs is not None:
            self.runs.take_over(*(_table(text).column("words").to_numpy().copy() for text in saved["runs"]))
        data = [one_batch(_table(text)) for text in saved["data"]]
        slots, ticks, is_open = saved["events"]
        kept = Kept(np.array(slots, np.int64), np.array(ticks, np.int64), np.array(is_open, np.bool_), data)
        length = sum(map(len, data))
        check_arrays(vars(kept), {"slots": Range(length, 0, COUNT), "ticks": Range(length, -TICK, TICK)})
        check("events", good=len(kept.is_open) == length and len(data) < 2)
        self._parts = [kept]


def _text(table: pa.Table) -> str:
    """A table in JSON."""
    return b64encode(to_ipc(table, "zstd")).decode()


def _table(text: str) -> pa.Table:
    return from_ipc(b64decode(text))
