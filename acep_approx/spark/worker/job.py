"""What a worker is told about the query that it runs: everything that is known before the first event comes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from acep_approx.budget.budget import Budget
from acep_approx.events.columns import plain_schema
from acep_approx.events.roles import Roles
from acep_approx.events.time import tick_unit
from acep_approx.learning.online import WITHIN, Observer, ShardLearning, learner_file
from acep_approx.learning.training_sample import Shares
from acep_approx.matching.execution import Execution
from acep_approx.matching.outputs.bind import Wide
from acep_approx.matching.outputs.kinds import OutputName
from acep_approx.planning.durations import Duration
from acep_approx.shedding.load import Load
from acep_approx.shedding.shedder import Shedder
from acep_approx.shedding.splitting import Split, shard_budget
from acep_approx.shedding.timing import Overhead
from acep_approx.training.history_graph import newest
from history.store import is_history

if TYPE_CHECKING:
    from acep_approx.planning.compiled import CompiledQuery
    from acep_approx.training.history_graph import HistoryGraph


REASON = "_acep_reason"
"""The column that says why a row is no event, where sources say so; it becomes the ``reason`` of what is left out."""
MESSAGE = "kafka_message"
"""The column that has the text of a message that is no event."""
PLACE = ("kafka_topic", "kafka_partition", "kafka_offset")
"""The columns that say where a message stands."""


@dataclass(frozen=True)
class Spending:
    """A load budget of a whole job, and how it is spent.

    Parameters
    ----------
    budget : Budget
        Of all shards together.
    history : str, optional
        Directory of the history; every micro-batch takes the newest version.
    control : str, optional
        Directory of what the driver tells the workers: how the budget is split, and how closely they are to look;
        default: evenly by events.
    cores : int, default 1
        How many shards are matched at the same time.
    policy, audit, seed, full_work
        As for ``Query.match_within``.
    learns : bool, default False
        Whether the driver refreshes the history by what the shards see. There may be none to begin with.
    """

    budget: Budget
    history: str | None = None
    control: str | None = None
    cores: int = 1
    policy: str | None = None
    audit: float = 0.05
    seed: int = 0
    full_work: float | None = None
    learns: bool = False

    def load(self, budget: Budget, history: HistoryGraph | None, shard: int = 0) -> Load:
        """The load of a part of the job that has this budget; ``shard`` moves the seed."""
        return Load(
            budget, history, policy=self.policy, audit=self.audit, seed=self.seed + shard, full_work=self.full_work
        )

    def newest(self, query: CompiledQuery) -> HistoryGraph | None:
        """The newest version of the history."""
        if self.history is None or (self.learns and not is_history(self.history)):
            return None
        return newest(self.history, query)

    def known_work(self, query: CompiledQuery) -> float | None:
        """Run-steps per event of the exact run, where they are known."""
        return self.load(self.budget, self.newest(query)).steps_per_event


@dataclass(frozen=True)
class Job:
    """One query on events of one schema.

    Parameters
    ----------
    query : CompiledQuery
    schema : pyarrow.Schema
        Of the columns that are carried through Spark, in their order there.
    roles : Roles
    order : tuple of str
        Columns that order events, the time first.
    bind : str, tuple of str, Wide or None
        What stands for a bound event; see ``Execution``.
    output : {"matches", "points", "counts"}
    shards : int
    spending : Spending, optional
        Default: no budget, every match is found.
    key_idle : str or int, optional
        See ``Execution``.
    skips : bool
        Whether events whose time cannot be used are left out, as those without one always are.
    """

    query: CompiledQuery
    schema: pa.Schema
    roles: Roles
    order: tuple[str, ...]
    bind: str | tuple[str, ...] | Wide | None
    output: OutputName
    shards: int
    spending: Spending | None = None
    key_idle: Duration | None = None
    skips: bool = False

    def history(self) -> HistoryGraph | None:
        """The newest version of the history."""
        return self.spending.newest(self.query) if self.spending is not None else None

    def weight(self, shard: int, events: int, batch: int | None = None) -> float:
        """By what the part of a shard of the budget is multiplied, with so many events to match in a micro-batch."""
        if self.spending is None or self.spending.control is None:
            return 1.0
        return Split.load(self.spending.control, self.shards).weight(shard, events, batch)

    def granted(self, shard: int, rows: int, matched: int) -> Budget:
        """The budget less what a micro-batch takes beside its matchers, for so many rows of one shard."""
        assert self.spending is not None
        budget, control = self.spending.budget, self.spending.control
        if control is None or not budget.needs_clock:
            return budget
        known = Overhead.load(control)
        times = known.times_of(shard, max(self.shards, 1))
        return known.granted(budget, round(rows * times), round(matched * times))

    def matcher(
        self,
        shard: int = 0,
        weight: float = 1.0,
        state: bytes | None = None,
        granted: Budget | None = None,
        events: int = 0,
        batch: int | None = None,
    ) -> Execution:
        """The matcher of a shard, ready for its next ``events`` of a micro-batch; see ``Shard``.

        ``granted`` is the budget of the job where it is less.
        """
        spending, plan, shards = self.spending, self.query.plan, max(self.shards, 1)
        shedding: Shedder | None = None
        if spending is not None and plan.registers is not None:
            observer: Observer | None = None
            if spending.learns:
                control = spending.control
                shares = Shares.load(control) if control else None
                observer = Observer(shares, shards)
                if control is not None and events >= WITHIN:
                    observer = ShardLearning(learner_file(control), batch, shares, shards)
            mine = shard_budget(granted or spending.budget, weight, shards, spending.cores)
            # the audited cells of shards are chosen apart
            shedding = Shedder(plan, spending.load(mine, self.history(), shard), observer, may_search=True)
        if state is not None:
            return Execution.from_state(plan, state, shedding=shedding)
        made = Execution(plan, output=self.output, bind=self.bind, key_idle=self.key_idle, shedding=shedding)
        made.bind(self.plain, self.roles)
        return made

    @property
    def ticks_per_millisecond(self) -> int:
        """How many ticks a millisecond of Spark's watermark is: plain ticks are taken for milliseconds."""
        return 1000 if tick_unit(self.schema.field(self.roles.time).type, self.roles.unit) is not None else 1

    @property
    def left_out(self) -> pa.Schema:
        """Columns of the events that were left out; the last one says why."""
        return pa.schema([*(field for field in self.schema if field.name != REASON), ("reason", pa.string())])

    @cached_property
    def plain(self) -> pa.Schema:
        """The schema as the matcher sees it, whatever the encoding."""
        return plain_schema(self.schema, "the events")

    @cached_property
    def results(self) -> pa.Schema:
        """The schema of the results.

        Raises
        ------
        DataError, QueryError
            A column is missing or has the wrong type.
        """
        matcher = Execution(self.query.plan, output=self.output, bind=self.bind)
        return plain_schema(matcher.bind(self.plain, self.roles).nothing().schema, "the matches")

    def __getstate__(self) -> dict[str, Any]:
        """Without what is worked out when it is asked for."""
        return {name: value for name, value in vars(self).items() if name not in ("plain", "results")}
