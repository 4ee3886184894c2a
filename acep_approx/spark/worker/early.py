"""One query in a shard whose results are put out before they are final, and taken back where late events change them.

Spark's watermark stands in the place of punctuations: the one of a micro-batch is known before its events come. Source:
as ``revisions.matcher``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self

import numpy as np
import pyarrow as pa

from acep_approx.errors import UsageError
from acep_approx.events.stream import EventBatch
from acep_approx.matching.outputs.bind import Bind
from acep_approx.matching.state import MATCHER, meaning
from acep_approx.planning.durations import Duration
from acep_approx.revisions.matcher import RevisedMatcher
from acep_approx.revisions.request import Revisions
from acep_approx.run.events import Events, order_of
from acep_approx.shedding.load import Load
from acep_approx.shedding.shedder import Shedder, shedder
from acep_approx.spark.worker.counters import counters_of
from acep_approx.spark.worker.program import MATCHES, Named, Numbers, Setting, Turn, Work
from acep_approx.spark.worker.query import QueryProgram

if TYPE_CHECKING:
    from acep_approx.events.roles import Roles
    from acep_approx.planning.compiled import CompiledQuery
    from acep_approx.spark.worker.spending import Spending


@dataclass(frozen=True)
class EarlyProgram(QueryProgram):
    """One query, with results that may be taken back.

    Parameters
    ----------
    emit, changelog
        See ``Revisions``.
    id : str, optional
        The column that names events.
    """

    emit: Duration = "early"
    changelog: bool | None = None
    id: str | None = None
    orders = True

    def __post_init__(self) -> None:
        self.asked.check(self.output, {"key_idle": self.key_idle})
        self.asked.check_language(self.query.syntax)

    @property
    def asked(self) -> Revisions:
        """How events may come late."""
        return Revisions(emit=self.emit, id=self.id, op=False, changelog=self.changelog)

    @property
    def identity(self) -> dict[str, str]:
        """What must be the same for a checkpoint to be taken up again."""
        return super().identity | {"emit": str(self.emit), "changelog": str(self.asked.is_changelog)}

    @property
    def single(self) -> CompiledQuery | None:
        """None: of results that may be taken back it is not known which events matter."""
        return None

    def engines(self, schema: pa.Schema, roles: Roles) -> dict[str, CompiledQuery]:  # noqa: ARG002
        """None: shards have no sample of results that may be taken back."""
        return {}

    def check(self, spending: Spending) -> None:
        """Refuse a budget where partial matches never end, and to learn."""
        super().check(spending)
        if spending.learns:
            raise UsageError(
                "learn= and emit= do not go together on Spark: results that are taken back are no sample to learn from",
                code="ACEP-U055",
                hint="leave one of them out",
            )

    def check_plan(self, *, is_stream: bool) -> None:
        """Refuse a batch, whose results are final."""
        if not is_stream:
            raise UsageError(
                "emit= and changelog= are of use with streams only: all results of a batch are final",
                code="ACEP-S071",
                hint="leave them out, or read the events with spark.readStream",
            )

    def decided(self, id: str | None, bind: Bind, schema: pa.Schema, roles: Roles) -> Self:  # noqa: A002
        """The same for events of these columns: it is known what stands for an event, and what names it."""
        return replace(super().decided(id, bind, schema, roles), id=id)

    def needs(self, schema: pa.Schema, roles: Roles) -> tuple[str, ...]:
        """The columns of events that workers must have: also what names them."""
        return (*super().needs(schema, roles), *filter(None, (self.id,)))

    def tables(self, schema: pa.Schema, roles: Roles) -> dict[str, pa.Schema]:
        """The one table that comes of it."""
        made = self._matcher(roles)
        return {MATCHES: made.push(schema.empty_table()).schema}

    def begin(self, setting: Setting, turn: Turn, state: bytes | None = None) -> Work:
        """Begin in a shard, or go on from a state."""
        shedding = self._early_shedder(setting, turn)
        if state is None:
            made = self._matcher(setting.roles, shedding)
            made.push(setting.schema.empty_table())  # time may pass before its first event
            return EarlyWork(made, setting.order)
        saved = MATCHER.unpack(state, of=meaning(self.query.plan))
        with MATCHER.reading():
            asked, options = RevisedMatcher.made_with(saved)
            made = RevisedMatcher(self.query.plan, asked, shedding=shedding, **options)
            made.go_on(saved)
        return EarlyWork(made, setting.order)

    def _matcher(self, roles: Roles, shedding: Shedder | None = None) -> RevisedMatcher:
        more = {"output": self.output, "bind": self.bind, "shedding": shedding, **roles.named}
        return RevisedMatcher(self.query.plan, self.asked, **more)

    def _early_shedder(self, setting: Setting, turn: Turn) -> Shedder | None:
        """What sheds, without an audit: results that are taken back are no sample of those that were found."""
        spending, plan = setting.spending, self.query.plan
        if spending is None or plan.registers is None:
            return None
        mine = turn.part_of(spending, setting.shards)
        load: Load = replace(spending.load(mine, spending.newest(self.query), turn.shard), audit=0.0)
        return shedder(plan, load, in_order=False)


class EarlyWork(Work):
    """Such a query at work in a shard.

    Parameters
    ----------
    matcher : RevisedMatcher
    order : sequence of str
        Columns that order events, the time first.
    """

    def __init__(self, matcher: RevisedMatcher, order: Sequence[str]) -> None:
        self.matcher, self._ties = matcher, order[1:]

    @property
    def arrived(self) -> int:
        """How many events there were so far."""
        return self.matcher.arrived

    def run(self, events: EventBatch) -> Iterator[Named]:
        """Take in the events of a micro-batch, in the order that does not depend on how Spark moves rows."""
        numbers = np.arange(len(events))
        order = order_of(Events(events.ticks, numbers, numbers, events.data), self._ties)
        yield MATCHES, self.matcher.push(pa.Table.from_batches([events.data.take(pa.array(order))]))

    def pass_time(self, tick: int) -> Iterator[Named]:
        """No event before ``tick`` comes any more."""
        yield MATCHES, self.matcher.punctuate(tick)

    def finish(self) -> Iterator[Named]:
        """The stream has ended."""
        yield MATCHES, self.matcher.finish()

    @property
    def waits_until(self) -> int | None:
        """The next tick, as long as events are held: they are let go of, or run, as time passes.

        Before Spark knows of a watermark it is 0.
        """
        reached = self.matcher.watermark
        return max(reached or 0, 0) + 1 if self.matcher.held_events else None

    def state_bytes(self) -> bytes:
        """All that is needed to go on elsewhere."""
        return self.matcher.state_bytes()

    def counters(self) -> Numbers:
        """Where its counters stand."""
        progress, sheds = self.matcher.execution.progress, self.matcher.execution.shedding
        found = {name: getattr(progress, name) for name in ("relevant", "without_key", "steps", "live")}
        found["events"] = self.matcher.changes["inserted"]
        return found | (counters_of([sheds], sheds.load.budget) if isinstance(sheds, Shedder) else {})

    @property
    def held(self) -> int:
        """Events that it keeps, as they may still change."""
        return self.matcher.held_events

    def rejected(self) -> pa.Table:
        """The events that came too late since the last call."""
        return self.matcher.rejected()
