"""Trace the past: run it exactly, and tell of every run what it led to and what it cost.

A history is learned from this. Source: Li and Ge, PVLDB 2016, section 3: match vectors and match maps are about runs of
the past; that an exact run over it supplies them, and how, is ours.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Self

import numpy as np
import pyarrow as pa

from acep_approx.engines.progress import RunProgress
from acep_approx.events.roles import Roles
from acep_approx.events.stream import EventBatch
from acep_approx.events.time import tick_unit
from acep_approx.matching.pipeline import Pipeline
from acep_approx.matching.state import MATCHER, meaning, restored_stream, saved
from acep_approx.matching.stream_side import StreamSide
from acep_approx.matching.tracing.traced import POOL, SLOT, START, TICK, Hindsight, RunTrace
from acep_approx.planning.planner import MERGING, Plan, merging
from acep_approx.training.remembered import Remembered
from history.trace import Trace


class Tracer:
    """Traces a past that comes in batches.

    Parameters
    ----------
    plan : Plan
    schema : pyarrow.Schema
        Of the events.
    roles : Roles
        Which columns are time, key and type.
    merge : str, default "equal,pareto,chain"
        Which lossless mergings are used; with "none" no two runs are one.

    Attributes
    ----------
    remembered : Remembered
        What the numbers of places and columns in the traces mean.
    pipeline : Pipeline
        It knows the window, and the columns that the batches must have.
    has_times : bool
        Whether ticks are times, so that there are days.

    Notes
    -----
    Runs are in the trace of their first event's window: with all that they led to, and their ancestors. Match points
    near the border of two traces are in both.

    What holds: ``mask`` is exact but for match points more than 63 behind ``first_point`` in their partition. Where
    runs were merged, a birth stands for all of them: it reaches what they reach together. Where only complete matches
    can be tested (filters, some negations), a run counts as leading to a match point if it completes anything there.
    ``cost`` is exact where nothing was merged; a child that belongs to the next trace is known only up to the border.
    Visits of merged runs go on with the run of the later start; the other one ends. With skip till next match, a run
    ends with the child that it goes on in; one that a negation breaks is believed to live on.

    Complexity: O(run-steps + links · log(events of a window)); memory O(links of two windows, at least half a million).
    """

    def __init__(self, plan: Plan, schema: pa.Schema, roles: Roles, merge: str = ",".join(MERGING)) -> None:
        self._trace_on(StreamSide(schema, roles), plan, merge)

    def _trace_on(self, stream: StreamSide, plan: Plan, merge: str) -> None:
        self.plan, self.merge = plan, merge
        self.pipeline = Pipeline(stream, plan, "trace", merging=merging(merge))
        assert isinstance(self.pipeline.results, RunTrace), "it is what a trace is made by"
        self.output = self.pipeline.results
        self.remembered = Remembered.by(self.output.engine.tables)
        schema, roles = self.pipeline.schema, self.pipeline.roles
        is_time = tick_unit(schema.field(roles.time).type, roles.unit) is not None
        self.has_times = is_time and not self.pipeline.preparer.is_count

    @property
    def progress(self) -> RunProgress:
        """Events and run-steps so far: the full work of the query on this past."""
        return self.pipeline.progress

    def push(self, batch: EventBatch) -> Iterator[Trace]:
        """Run a batch; gives the runs whose windows have closed, now and then."""
        for _ in self.pipeline.stream.run(batch):
            pass
        yield from map(self._trace, self.output.take())

    def finish(self) -> Iterator[Trace]:
        """The past ends here: gives all other runs."""
        for _ in self.pipeline.finish():
            pass
        yield from map(self._trace, self.output.take())

    def state_bytes(self) -> bytes:
        """The state between two batches, for ``from_state``; see ``matching.state``."""
        return MATCHER.pack(saved(self.plan, {"merge": self.merge}, self.pipeline.stream))

    @classmethod
    def from_state(cls, plan: Plan, state: bytes) -> Self:
        """The tracer that ``state_bytes`` was called on.

        Raises
        ------
        DataError
            These are not such bytes, or those of another query.
        """
        scope, made = MATCHER.unpack(state, of=meaning(plan)), cls.__new__(cls)
        with MATCHER.reading():
            made._trace_on(restored_stream(scope.parts["stream"], scope.words), plan, scope.head["caller"]["merge"])
            made.pipeline.restore(scope.parts["query"])
        return made

    def _trace(self, seen: Hindsight) -> Trace:
        births, visits, texts = seen.births, seen.visits, seen.texts
        key = births[:, SLOT] + len(texts) if seen.keys else np.full(len(births), -1)
        return Trace(
            place=births[:, POOL].copy(),
            tick=births[:, TICK].copy(),
            start=births[:, START].copy(),
            slot=births[:, SLOT].copy(),
            columns=self.remembered.columns,
            kinds=self.remembered.kinds,
            values=self.remembered.values(births),
            key=key,
            texts=[*texts, *seen.keys],
            birth=visits[0],
            remaining=visits[1],
            since=visits[2],
            parent=visits[3],
            first_point=visits[4],
            mask=visits[5].view(np.uint64),
            cost=visits[6].astype(np.float64),
            point_row=seen.points[:, 0].copy(),
            point_tick=seen.points[:, 1].copy(),
            point_slot=seen.points[:, 2].copy(),
            end_visit=seen.ends[:, 0].copy(),
            end_point=seen.ends[:, 1].copy(),
            slots=seen.keys,
        )
