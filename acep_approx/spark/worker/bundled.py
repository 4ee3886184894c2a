"""Match bundles of one query in a shard: each is put out once no further match point can belong to it.

Source: Li and Ge, PVLDB 10(4) 2016, Definition 3; see ``results.bundles``. A chain of match points is kept as one row
until time has passed its last point by the window. A match that waits for its window to close may still become an
earlier match point, one window before at most.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np
import pyarrow as pa

from acep_approx.archive import Kind, Scope
from acep_approx.arrays import Bools
from acep_approx.events.stream import EventBatch, earliest
from acep_approx.matching.execution import Execution
from acep_approx.matching.outputs.bind import Bind
from acep_approx.matching.outputs.kinds import BARE
from acep_approx.results.bundles import TO, bundles, by_key, chains, check_bundles, joined, shown
from acep_approx.spark.worker import program
from acep_approx.spark.worker.program import Named, Setting, Turn
from acep_approx.spark.worker.query import QueryProgram, QueryWork

if TYPE_CHECKING:
    from acep_approx.events.roles import Roles
    from acep_approx.matching.pipeline import Pipeline

BUNDLED = Kind("bundles")
"""Archives of a query at work and the chains of match points that it keeps."""


@dataclass(frozen=True)
class BundlesProgram(QueryProgram):
    """One query, of which match bundles are asked."""

    output: str = BARE

    def __post_init__(self) -> None:
        super().__post_init__()
        check_bundles(self.query.plan, self.key_idle)

    @property
    def identity(self) -> dict[str, str]:
        """What must be the same for a checkpoint to be taken up again."""
        return super().identity | {"output": "bundles"}

    def decided(self, id: str | None, bind: Bind, schema: pa.Schema, roles: Roles) -> Self:  # noqa: A002, ARG002
        """The same: bundles show no events."""
        return self

    def tables(self, schema: pa.Schema, roles: Roles) -> dict[str, pa.Schema]:
        """The one table that comes of it."""
        pipeline = self._bound(schema, roles)
        return {program.MATCHES: bundles(pipeline.nothing(), pipeline.preparer.shown_columns, 0).schema}

    def begin(self, setting: Setting, turn: Turn, state: bytes | None = None) -> BundlesWork:
        """Begin in a shard, or go on from a state."""
        if state is None:
            return BundlesWork(self._started(setting, turn, None))
        saved = BUNDLED.unpack(state)
        with BUNDLED.reading():
            matcher, held = saved.arrays["matcher"].tobytes(), saved.table("held")
        return BundlesWork(self._started(setting, turn, matcher), held)


class BundlesWork(QueryWork):
    """Such a query at work in a shard.

    Parameters
    ----------
    execution : Execution
        Of match points; one that knows the columns.
    held : pyarrow.Table, optional
        Chains that may still grow; see ``results.bundles``.
    """

    def __init__(self, execution: Execution, held: pa.Table | None = None) -> None:
        super().__init__(execution)
        pipeline = self._pipeline
        self._keys = pipeline.preparer.shown_columns
        self._held = chains(pipeline.nothing(), self._keys) if held is None else held

    @property
    def _pipeline(self) -> Pipeline:
        assert self.execution.pipeline is not None, "it knows the columns"
        return self.execution.pipeline

    def run(self, events: EventBatch) -> Iterator[Named]:
        """Run a micro-batch as one batch."""
        yield from self._closed(super().run(events), int(events.ticks[-1]))

    def pass_time(self, tick: int) -> Iterator[Named]:
        """No event before ``tick`` comes any more."""
        yield from self._closed(super().pass_time(tick), tick)

    def finish(self) -> Iterator[Named]:
        """The stream has ended."""
        self._take(super().finish())
        yield from self._put_out(np.ones(len(self._held), np.bool_))

    def _closed(self, found: Iterable[Named], tick: int) -> Iterator[Named]:
        """The bundles that are whole, once match points were found and time has passed."""
        self._take(found)
        window, waits = self._pipeline.window, self.execution.waits_until
        if self._is_counted:  # only a later match point tells how many events there were of its key
            self._held, code = by_key(self._held, len(self._keys))
            last, latest = self._held.column(TO).to_numpy(), np.zeros(len(code), np.int64)
            np.maximum.at(latest, code, last)
            yield from self._put_out(last < latest[code] - 2 * window)
        else:
            known = tick if waits is None else min(tick, waits - window - 1)
            yield from self._put_out(self._held.column(TO).to_numpy() < known - window)

    @property
    def _is_counted(self) -> bool:
        return self.execution.plan.is_count_window

    def _take(self, found: Iterable[Named]) -> None:
        new = [chains(points, self._keys) for _, points in found if len(points)]
        if new:
            self._held = joined(pa.concat_tables([self._held, *new]), self._keys, self._pipeline.window)

    def _put_out(self, is_whole: Bools) -> Iterator[Named]:
        if is_whole.any():
            whole = self._held.filter(pa.array(is_whole))
            self._held = self._held.filter(pa.array(~is_whole))
            yield program.MATCHES, shown(whole, self._keys)

    @property
    def waits_until(self) -> int | None:
        """The tick that time must pass for a match that waits, or for the first bundle that is whole then."""
        waits, last, window = super().waits_until, self._held.column(TO), self._pipeline.window
        if self._is_counted or not len(last):
            return waits
        first = int(last.to_numpy().min()) + window + 1
        return waits if waits is not None and waits - window - 1 < first else earliest((waits, first))

    def state_bytes(self) -> bytes:
        """All that is needed to go on elsewhere."""
        scope = Scope()
        scope.put("matcher", super().state_bytes())
        scope.put("held", self._held)
        return BUNDLED.pack(scope)
