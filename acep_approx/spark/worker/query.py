"""One query in a shard: exactly, or inside a load budget; its results are final."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self

import pyarrow as pa

from acep_approx.events.stream import EventBatch, check_order
from acep_approx.events.time import tick_unit
from acep_approx.matching.execution import Execution, check_key_idle
from acep_approx.matching.outputs.bind import Bind, Wide
from acep_approx.matching.outputs.kinds import KINDS
from acep_approx.matching.state import meaning
from acep_approx.planning.durations import Duration
from acep_approx.shedding.shedder import Shedder
from acep_approx.spark.worker import program
from acep_approx.spark.worker.counters import counters_of
from acep_approx.spark.worker.observers import observer_of
from acep_approx.spark.worker.program import AGREE, Named, Numbers, Program, Setting, Split, Turn, Work

if TYPE_CHECKING:
    from acep_approx.events.roles import Roles
    from acep_approx.matching.pipeline import Pipeline
    from acep_approx.planning.compiled import CompiledQuery
    from acep_approx.spark.worker.spending import Spending


@dataclass(frozen=True)
class QueryProgram(Program):
    """One query.

    Parameters
    ----------
    query : CompiledQuery
    bind : str, tuple of str, Wide or None
        What stands for a bound event; see ``Execution``.
    output : {"matches", "points", "counts"}
    key_idle : str or int, optional
        See ``Execution``.
    """

    query: CompiledQuery
    bind: Bind = None
    output: str = "matches"
    key_idle: Duration | None = None

    def __post_init__(self) -> None:
        if self.key_idle is not None:
            check_key_idle(self.query.plan, self.output, self.key_idle)

    @property
    def identity(self) -> dict[str, str]:
        """What must be the same for a checkpoint to be taken up again."""
        same = meaning(self.query.plan)
        shown = str(self.bind) if isinstance(self.bind, str | Wide) else ", ".join(self.bind or ()) or "RETURN"
        return {
            "query": f"{same.pop('fingerprint')} within {same.pop('window')}",
            **same,
            "events shown as": shown,
            "output": self.output,
            "key_idle": str(self.key_idle),
        }

    def decided(self, id: str | None, bind: Bind, schema: pa.Schema, roles: Roles) -> Self:  # noqa: A002
        """Take what was asked for, else the id, else what the query reads of an event."""
        syntax = self.query.syntax
        names_no_events = syntax.is_algebra and KINDS[self.output].binds
        if bind or syntax.outputs or names_no_events:
            return replace(self, bind=replace(bind, id=id) if isinstance(bind, Wide) else bind)
        read = Execution(self.query.plan, output=self.output).bind(schema, roles).columns
        return replace(self, bind=id or read)

    def needs(self, schema: pa.Schema, roles: Roles) -> tuple[str, ...]:
        """The columns of events that workers must have."""
        pipeline = self._bound(schema, roles)
        # a worker checks the query as it was written, also what no result depends on
        return (*pipeline.columns, *pipeline.named)

    def _bound(self, schema: pa.Schema, roles: Roles) -> Pipeline:
        made = Execution(self.query.plan, output=self.output, bind=self.bind, key_idle=self.key_idle)
        return made.bind(schema, roles)

    def split(self, roles: Roles, schema: pa.Schema | None = None) -> Split:
        """By the keys of the query, unless what is next to an event may be of another key."""
        plan = self.query.plan if schema is None else self._bound(schema, roles).plan
        if plan.keys and plan.counted != "stream":
            return Split(tuple(map(roles.column, plan.keys)), AGREE)
        why = "the query has no equivalence, such as [user], to match keys apart by"
        if plan.query.equivalences:
            why = "with strict_contiguity the neighbours of an event may be of any key"
        elif plan.cel is not None:
            why = "not every NEXT and FOLD asks for one key, as in $2.user = $1.user, to match keys apart by"
        return Split((), why)

    def tables(self, schema: pa.Schema, roles: Roles) -> dict[str, pa.Schema]:
        """The one table that comes of it."""
        matcher = Execution(self.query.plan, output=self.output, bind=self.bind)
        return {program.MATCHES: matcher.bind(schema, roles).nothing().schema}

    def begin(self, setting: Setting, turn: Turn, state: bytes | None = None) -> Work:
        """Begin in a shard, or go on from a state."""
        return QueryWork(self._started(setting, turn, state))

    def _started(self, setting: Setting, turn: Turn, state: bytes | None) -> Execution:
        plan, shedding = self.query.plan, self._shedder(setting, turn)
        if state is not None:
            return Execution.from_state(plan, state, shedding=shedding)
        made = Execution(plan, output=self.output, bind=self.bind, key_idle=self.key_idle, shedding=shedding)
        made.bind(setting.schema, setting.roles)
        return made

    def _shedder(self, setting: Setting, turn: Turn) -> Shedder | None:
        spending, plan, shards = setting.spending, self.query.plan, max(setting.shards, 1)
        if spending is None or plan.registers is None:
            return None
        observer = observer_of(spending, turn, shards) if spending.learns else None
        mine = turn.part_of(spending, shards)
        # the audited cells of shards are chosen apart
        load = spending.load(mine, spending.newest(self.query), turn.shard)
        return Shedder(plan, load, observer, audits_beside=observer is None, may_search=True)

    @property
    def sheds(self) -> bool:
        """Whether it keeps partial matches."""
        return self.query.plan.registers is not None

    def check(self, spending: Spending) -> None:  # noqa: ARG002  (whatever the budget is)
        """Refuse a budget where partial matches never end."""
        self.query.plan.refuse_unbounded("a load budget")

    @property
    def single(self) -> CompiledQuery | None:
        """The query."""
        return self.query

    def engines(self, schema: pa.Schema, roles: Roles) -> dict[str, CompiledQuery]:  # noqa: ARG002  (it is known)
        """The query itself."""
        return {"": self.query}

    @property
    def key_words(self) -> str:
        """The keys as the query has them."""
        return ", ".join(f"[{name}]" for name in self.shown_keys) or super().key_words

    @property
    def shown_keys(self) -> tuple[str, ...]:
        """The keys that the query names."""
        return tuple(one.name for one in self.query.syntax.equivalences)

    def known_work(self, spending: Spending) -> float | None:
        """Run-steps per event of the exact run, where they are known."""
        return spending.known_work(self.query)


class QueryWork(Work):
    """One query at work in a shard.

    Parameters
    ----------
    execution : Execution
        One that knows the columns.
    """

    def __init__(self, execution: Execution) -> None:
        self.execution = execution

    @property
    def arrived(self) -> int:
        """How many events there were so far."""
        return self.execution.arrived

    def run(self, events: EventBatch) -> Iterator[Named]:
        """Run a micro-batch as one batch: a budget of time is granted for each."""
        execution = self.execution
        assert execution.pipeline is not None
        roles, batch = execution.pipeline.roles, events.of_columns(execution.columns, execution.arrived)
        check_order(batch, tick_unit(events.data.schema.field(roles.time).type, roles.unit))
        yield from ((program.MATCHES, table) for table in execution.run(batch))

    def pass_time(self, tick: int) -> Iterator[Named]:
        """No event before ``tick`` comes any more."""
        yield program.MATCHES, self.execution.pass_time(tick)

    def finish(self) -> Iterator[Named]:
        """The stream has ended."""
        yield program.MATCHES, self.execution.finish()
        if self._shedder is not None:
            self._shedder.finish()

    def pause(self) -> None:
        """A micro-batch is over: its state is kept, and it may go on elsewhere."""
        if self._shedder is not None:
            self._shedder.pause()

    @property
    def _shedder(self) -> Shedder | None:
        shedder = self.execution.shedding
        return shedder if isinstance(shedder, Shedder) else None

    @property
    def waits_until(self) -> int | None:
        """The tick that time must pass for a match that waits."""
        return self.execution.waits_until

    def state_bytes(self) -> bytes:
        """All that is needed to go on elsewhere."""
        return self.execution.state_bytes()

    def counters(self) -> Numbers:
        """Where its counters stand."""
        progress, shedder = self.execution.progress, self._shedder
        found = {name: getattr(progress, name) for name in ("events", "relevant", "without_key", "steps", "live")}
        return found | ({} if shedder is None else counters_of([shedder], shedder.load.budget))

    def sample(self) -> bytes:
        """What the driver is to learn from."""
        return b"" if self._shedder is None else self._shedder.training_sample()
