"""The cohort: a few cells of key and time, chosen by a hash, that are matched exactly beside the run, for its budget.

It shows what a run that sheds cannot see: all that the runs of a cell would have led to. Outcomes, counts and match
maps come from here alone, each weighted by one over the chance of its cell; and what the run found of the cells' match
points estimates its recall. Where the budget does not suffice for the current cells they are given up, and counted.

Source: ours; Horvitz and Thompson, JASA 1952, for the weights.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Self

import numpy as np
import pyarrow as pa

from acep_approx.archive import Kind, Scope
from acep_approx.arrays import Ints
from acep_approx.budget.audit import AuditCells, AuditSample, RecallEstimate
from acep_approx.budget.budget import granted_beside
from acep_approx.engines.batches import RunEvents
from acep_approx.engines.runs.shedding import Shedding
from acep_approx.events.keys import KeyCodes
from acep_approx.events.roles import Roles
from acep_approx.events.stream import EventBatch
from acep_approx.matching.outputs.of_runs import TooManyStepsError
from acep_approx.planning.planner import Plan
from acep_approx.ranges import COUNT, Range, check, finite, impossible, number_in
from acep_approx.training.trace import Tracer
from history.checking import check_trace
from history.counting import vertices_of
from history.trace import KEY, Trace
from history.vectors import Scheme
from rl.records import Lineages

COHORT, OUTCOMES = Kind("cohort"), Kind("outcomes")
TEXTS = ("columns", "kinds", "texts", "slots")
NUMBERS = tuple(column.name for column in fields(Trace) if column.name not in (*TEXTS, "values"))
"""Parts of a trace that are arrays of numbers, one beside the other."""


@dataclass(frozen=True)
class Outcomes:
    """Outcomes of a part of a cohort.

    Attributes
    ----------
    traces : sequence of Trace
        Of runs that lie, with their whole window, in a chosen cell.
    weight : float
        One over the chance of that.
    """

    traces: Sequence[Trace] = ()
    weight: float = 1.0

    def lineages(self, scheme: Scheme) -> Lineages:
        """The outcomes as a learner of these vertices takes them: one row for each visit.

        Raises
        ------
        DataError
            ``ACEP-D040``: births of places that there are not, as only a state that was changed has.

        Complexity: O(visits).
        """
        names = {name for place in scheme.places for one in place.features for name in one.of or (one.name,)}
        parts = [Lineages.none()]
        for trace in self.traces:
            if trace.place.max(initial=0) >= len(scheme.places) or names - {*trace.columns, KEY}:
                raise impossible("the outcomes of the cohort are of another query")
            points = np.bitwise_count(trace.mask).astype(np.int64)
            weight = np.full(len(points), self.weight)
            parts.append(Lineages(trace.tick[trace.birth] + trace.since, vertices_of(scheme, trace), points, weight))
        return Lineages.joined(parts)

    def to_bytes(self) -> bytes:
        """As an archive. Complexity: O(visits)."""
        scope = Scope({"weight": self.weight})
        for number, trace in enumerate(map(Trace.compact, self.traces)):
            one = scope.sub(str(number), {name: list(getattr(trace, name)) for name in TEXTS})
            for name in NUMBERS:
                one.put(name, np.ascontiguousarray(getattr(trace, name)).view(np.int64))
            one.put("values", np.array(trace.values, np.float64).reshape(-1))
        return OUTCOMES.pack(scope)

    @classmethod
    def from_bytes(cls, raw: bytes) -> Self:
        """What ``to_bytes`` wrote.

        Raises
        ------
        ValueError
            These are not such bytes.
        """
        scope = OUTCOMES.unpack(raw)
        traces = []
        for one in scope.parts.values():
            texts = {name: one.head[name] for name in TEXTS}
            numbers: dict[str, Any] = {name: one.array(name) for name in NUMBERS}
            numbers["mask"], numbers["cost"] = numbers["mask"].view(np.uint64), numbers["cost"].view(np.float64)
            flat = one.arrays["values"]
            check("values", good=flat.dtype == np.float64)
            values = list(flat.reshape(len(texts["columns"]), len(numbers["place"])))
            traces.append(Trace(**numbers, **texts, values=values))
            check_trace(traces[-1])
        finite("weight", scope.head["weight"])
        return cls(traces, scope.head["weight"])


# --- what is matched ----------------------------------------------------------------------------------------

LOOK_BACK = 1024
"""Links, or events, that are kept until it is looked which windows have closed."""


class Cohort:
    """Matches the events of the chosen cells exactly.

    Parameters
    ----------
    plan : Plan
        With a window of time: in a window that counts events a part of a stream is not like the whole.
    schema : pyarrow.Schema
    roles : Roles
        Of the events.
    cells : AuditCells
        Which cells are chosen.

    Attributes
    ----------
    steps : int
        Run-steps so far.
    given_up : int
        Times that the quota was empty.
    sample : AuditSample
        Match points of the cells, and which of them the run found by itself.
    charges_births : bool
        Whether a try to begin a run is a run-step.
    """

    charges_births = False

    def __init__(self, plan: Plan, schema: pa.Schema, roles: Roles, cells: AuditCells) -> None:
        self.plan, self.schema, self.roles, self.cells = plan, schema, roles, cells
        self.steps = self.given_up = 0
        self.sample = AuditSample.of(np.zeros(0, np.int64), np.zeros(0, np.bool_))
        self._tracer: Tracer | None = None
        self._found = np.zeros(0, np.int64)  # rows of match points of the run
        self._rows = np.zeros(0, np.int64)  # rows in the stream of the events that the tracer was shown
        self._slots: dict[str, int] = {}  # of the run, by key
        self._last = -1  # the last row among these that is known to be a match point

    def push(
        self, batch: EventBatch, slots: Ints, rows: Ints, ticks: Ints, keys: KeyCodes, quota: float
    ) -> list[Trace]:
        """Match those of some events that lie in chosen cells, or up to a window before them.

        Parameters
        ----------
        batch : EventBatch
        slots, rows, ticks : int64 arrays, shape (events,)
            Of those events of the batch that the run looks at: slot of the key, row in the stream, tick.
        keys : KeyCodes
            The keys of the slots; empty where there is one partition.
        quota : float
            Run-steps that may be done.

        Returns
        -------
        list of Trace
            Of runs whose windows have closed.
        """
        chosen = np.flatnonzero(self.cells.protects(slots, ticks))
        chosen = chosen[np.argsort(rows[chosen])]
        if not len(chosen):
            return []
        if not keys.is_empty:
            self.know((keys.text(slot), slot) for slot in np.unique(slots[chosen]).tolist())
        place = rows[chosen] - batch.first_row
        return self.match(batch.ticks[place], batch.data.take(pa.array(place)), rows[chosen], quota)

    def know(self, keys: Iterable[tuple[str, int]]) -> None:
        """These keys have these slots, or other numbers by which cells are chosen."""
        self._slots.update(keys)

    def match(self, ticks: Ints, data: pa.RecordBatch, rows: Ints, quota: float) -> list[Trace]:
        """Match chosen events; see ``push``.

        Parameters
        ----------
        ticks : int64 array
            Of the events, not decreasing.
        data : pyarrow.RecordBatch
            Their columns.
        rows : int64 array
            Rows in the stream, rising.
        quota : float
        """
        tracer = self._traced()
        part = EventBatch(len(self._rows), ticks, data)
        self._rows = np.concatenate((self._rows, rows))
        births = len(ticks) if self.charges_births else 0
        progress, quota = tracer.progress, max(int(quota) - births, 0)
        done = progress.steps
        tracer.output.give_up_after(done + quota)
        try:
            found = list(tracer.push(part))
        except TooManyStepsError:
            self.steps += quota
            self.given_up += 1
            self._tracer, self._rows, self._last = None, self._rows[:0], -1
            return []
        self.steps += progress.steps - done + births
        return found

    def _traced(self) -> Tracer:
        if self._tracer is None:
            self._tracer = Tracer(self.plan, self.schema, self.roles)
            self._tracer.output.chunk = LOOK_BACK
        return self._tracer

    @property
    def columns(self) -> tuple[str, ...]:
        """What must be known of the events."""
        return self._traced().pipeline.columns

    def finish(self) -> Iterator[Trace]:
        """The stream has ended, and all windows with it."""
        if self._tracer is not None:
            yield from self._tracer.finish()

    def note_found(self, rows: Ints) -> None:
        """The run has found match points at these rows."""
        self._found = np.concatenate((self._found, rows))

    def compare(self, trace: Trace) -> None:
        """Add the match points of a trace that lie in chosen cells to the sample; each only once."""
        cells = self.cells.cells(self._slots_of(trace)[trace.point_slot], trace.point_tick)
        new = (cells >= 0) & (trace.point_row > self._last)
        self._last = max(self._last, int(trace.point_row.max(initial=-1)))
        is_found = np.isin(self._rows_of(trace.point_row[new]), self._found)
        self.sample = self.sample.combine(AuditSample.of(cells[new], is_found))

    def whole(self, trace: Trace) -> Trace:
        """What became of the runs of a trace that lie, with their whole window, in one chosen cell.

        Match points have the rows of the stream. Complexity: O(births + visits + match points).
        """
        epoch = self.cells.epoch
        is_one = trace.start // epoch == (trace.start + self.cells.window) // epoch
        is_whole = is_one & (self.cells.cells(self._slots_of(trace)[trace.slot], trace.start) >= 0)
        return replace(trace.of_births(is_whole), point_row=self._rows_of(trace.point_row))

    def _rows_of(self, points: Ints) -> Ints:
        """Rows in the stream of events, given by their rows in the cohort.

        Raises
        ------
        DataError
            ``ACEP-D040``: there are fewer, as only a state that was changed leads to.
        """
        if len(points) and not 0 <= int(points.min()) <= int(points.max()) < len(self._rows):
            raise impossible("the cohort names an event that it was not shown")
        return self._rows[points]

    @property
    def weight(self) -> float:
        """One over the chance that a run lies, with its whole window, in a chosen cell."""
        return self.cells.epoch / (self.cells.epoch - self.cells.window) / self.cells.share

    # --- state ----------------------------------------------------------------------------------------------

    def to_bytes(self) -> bytes:
        """All that it has seen, for ``restore``; an archive. Complexity: O(open windows + match points)."""
        sample, scope = self.sample, Scope()
        scope.arrays |= {
            "found": self._found, "rows": self._rows, "cells": sample.cells, "cells_found": sample.found,
            "points": sample.points,
        }  # fmt: skip
        scope.head |= {
            "steps": self.steps, "given_up": self.given_up, "outside": sample.outside, "slots": self._slots,
            "last": self._last, "share": self.cells.share,
        }  # fmt: skip
        if self._tracer is not None:
            scope.put("tracer", self._tracer.state_bytes())
        return COHORT.pack(scope)

    def restore(self, raw: bytes) -> None:
        """Go on from what ``to_bytes`` gave, with the same plan and columns, and with the share of cells that it had.

        Raises
        ------
        ValueError
            These are not such bytes.
        """
        scope = COHORT.unpack(raw)
        header, arrays = scope.head, scope.arrays
        self.steps, self.given_up = scope.number("steps"), scope.number("given_up")
        self._last = scope.number("last", -1)
        self._slots = {name: number_in("slots", slot, 0, COUNT) for name, slot in header["slots"].items()}
        finite("share", header["share"])
        check("share", good=0 < header["share"] <= 1)
        self.cells = replace(self.cells, share=header["share"])
        self._found, self._rows = scope.array("found", Range(low=0)), scope.array("rows", Range(low=0))
        sample = (arrays[name] for name in ("cells", "cells_found", "points"))
        self.sample = AuditSample.restored(sample, header["outside"])
        if "tracer" in arrays:
            self._tracer = Tracer.from_state(self.plan, arrays["tracer"].tobytes())
            check("rows", good=self._tracer.progress.events == len(self._rows))
            self._tracer.output.chunk = LOOK_BACK

    def _slots_of(self, trace: Trace) -> Ints:
        if not trace.slots:
            return np.zeros(1, np.int64)
        return np.array([self._slots.get(name, -1) for name in trace.slots], np.int64)


class Beside:
    """Matches a cohort beside a run.

    Parameters
    ----------
    arena : Shedding
        Of the engine.
    cohort : Cohort, optional
        None: there is none, and all of this does nothing.
    explores : float, default 0
        Share of the budget that is the cohort's.

    Attributes
    ----------
    quota : float
        Run-steps that it was granted.
    """

    def __init__(self, arena: Shedding, cohort: Cohort | None = None, explores: float = 0.0) -> None:
        self.arena = arena
        self.cohort = cohort
        self.explores = explores
        self.quota = 0.0
        self._traces: list[Trace] = []  # what became of it, that nobody has taken yet

    @property
    def steps(self) -> int:
        """Run-steps that it took."""
        return self.cohort.steps if self.cohort is not None else 0

    def note_found(self, rows: Ints) -> None:
        """The run has found match points at these rows."""
        if self.cohort is not None:
            self.cohort.note_found(rows)

    def recall(self, found: int) -> RecallEstimate | None:
        """Estimated recall of a run that found so many match points; None: there is no cohort to tell."""
        return self.cohort.sample.of_run(found, self.cohort.given_up) if self.cohort is not None else None

    def count(self, events: RunEvents) -> None:
        """These events come, that runs are tested with; a piece may have several such parts."""

    def push(self, batch: EventBatch, events: RunEvents, rate: float, shown: int) -> None:
        """Match the cohort's part of a piece; ``rate`` run-steps are granted to the run per event that it is shown."""
        if self.cohort is None:
            return
        self.quota += granted_beside(rate, shown, self.explores)
        left = self.quota - self.cohort.steps
        self._take(self.cohort.push(batch, events.slot, events.row, events.tick, self.arena.keys_now(), left))

    def finish(self) -> None:
        """The stream has ended."""
        if self.cohort is not None:
            self._take(self.cohort.finish())

    def _take(self, traces: Iterable[Trace]) -> None:
        """Take what became of the cohort, as long as it knows the rows of its events."""
        assert self.cohort is not None
        for trace in traces:
            self.cohort.compare(trace)
            self._traces.append(self.cohort.whole(trace))

    def outcomes(self) -> Outcomes:
        """What became of it since the last call."""
        traces, self._traces = self._traces, []
        return Outcomes(traces, self.cohort.weight if self.cohort is not None else 1.0)

    def full_work(self, events: int) -> float | None:
        """Run-steps per event of the exact run, after so many events; None: the cohort does not tell."""
        if self.cohort is None or not self.cohort.steps or not events:
            return None
        cells = self.cohort.cells
        return self.cohort.steps / (cells.share * (1 + cells.window / cells.epoch)) / events

    def snapshot(self) -> dict[str, Any]:
        """What must be kept to go on elsewhere, as JSON. Complexity: O(open windows + match points of the cohort)."""
        cohort = self.cohort.to_bytes() if self.cohort is not None else b""
        parts = {"outcomes": Outcomes(self._traces).to_bytes(), "cohort": cohort}
        return {"quota": self.quota, **{name: b64encode(part).decode() for name, part in parts.items()}}

    def restore(self, saved: dict[str, Any]) -> None:
        """Go on from what ``snapshot`` gave."""
        finite("quota", saved["quota"])
        self.quota = saved["quota"]
        self._traces = list(Outcomes.from_bytes(b64decode(saved["outcomes"])).traces)
        if self.cohort is not None and saved["cohort"]:
            self.cohort.restore(b64decode(saved["cohort"]))
