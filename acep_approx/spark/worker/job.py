"""What a worker is told of the program that it runs: everything that is known before the first event comes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import pyarrow as pa

from acep_approx.budget.budget import Budget
from acep_approx.events.columns import plain_schema
from acep_approx.events.roles import Roles
from acep_approx.events.time import tick_unit
from acep_approx.shedding.splitting import Split
from acep_approx.shedding.timing import Overhead
from acep_approx.spark.worker.program import MATCHES, Program, Setting, Stage
from acep_approx.spark.worker.spending import Spending

if TYPE_CHECKING:
    from acep_approx.planning.compiled import CompiledQuery


REASON = "_acep_reason"
"""The column that says why a row is no event, where sources say so; it becomes the ``reason`` of what is left out."""
MESSAGE = "kafka_message"
"""The column that has the text of a message that is no event."""
PLACE = ("kafka_topic", "kafka_partition", "kafka_offset")
"""The columns that say where a message stands."""


@dataclass(frozen=True)
class Part:
    """A program whose events are matched apart by some keys, in shards of its own.

    Attributes
    ----------
    program : Program
    keys : tuple of str
        Columns; none: all events are matched together, in one shard.
    shards : int
        0: as many as Spark finds good, in a batch.
    is_copy : bool
        Whether its events are copies of those of another part, which tells of those that are left out.
    why : str
        Why it has these keys, or none.
    """

    program: Program
    keys: tuple[str, ...] = ()
    shards: int = 1
    is_copy: bool = False
    why: str = ""

    @property
    def stage(self) -> Stage:
        """That of its program."""
        return self.program.stage


@dataclass(frozen=True)
class Job:
    """A program on events of one schema.

    Parameters
    ----------
    parts : tuple of Part
        Events go to each of the first stage, which come first. Shards are numbered through all parts.
    schema : pyarrow.Schema
        Of the columns that are carried through Spark, in their order there.
    roles : Roles
    order : tuple of str
        Columns that order events, the time first.
    spending : Spending, optional
        Default: no budget, every match is found.
    skips : bool
        Whether events whose time cannot be used are left out, as those without one always are.
    width : int
        How many shards were asked for: each part with keys has so many, and others are dealt out to so many.
    """

    parts: tuple[Part, ...]
    schema: pa.Schema
    roles: Roles
    order: tuple[str, ...]
    spending: Spending | None = None
    skips: bool = False
    width: int = 1

    @classmethod
    def of(
        cls,
        program: Program,
        schema: pa.Schema,
        roles: Roles,
        order: tuple[str, ...],
        shards: int = 1,
        spending: Spending | None = None,
    ) -> Self:
        """A job of one part."""
        return cls((Part(program, (), shards),), schema, roles, order, spending)

    @property
    def shards(self) -> int:
        """How many there are; 0: as many as Spark finds good."""
        return sum(part.shards for part in self.parts)

    def part_of(self, shard: int) -> Part:
        """What a shard is of."""
        before = 0
        for part in self.parts:
            before += part.shards
            if shard < before:
                return part
        return self.parts[-1]  # of a batch, whose shards nobody counts

    def apart(self) -> Iterator[Job]:
        """A job for each part."""
        for part in self.parts:
            yield replace(self.second if part.stage.is_second else self, parts=(part,))

    @property
    def fed(self) -> tuple[Part, ...]:
        """The parts of the second stage."""
        return tuple(part for part in self.parts if part.stage.is_second)

    @property
    def first_shards(self) -> int:
        """How many shards the first stage has."""
        return self.shards - sum(part.shards for part in self.fed)

    @property
    def passed(self) -> pa.Schema | None:
        """The columns of what the first stage passes on to the second; None where there is none."""
        every = (part.stage.passed(self.plain) for part in self.parts)
        return next((schema for schema in every if schema is not None), None)

    @property
    def second(self) -> Job:
        """The same job as shards of the second stage know it: events are what is passed on."""
        assert self.passed is not None, "it has two stages"
        return replace(self, schema=self.passed, order=(*self.order, *self.fed[0].stage.ties))

    @property
    def key_names(self) -> tuple[str, ...]:
        """The columns of results that have the keys, as far as all results have the same."""
        return self.parts[0].program.shown_keys or self.parts[0].keys if len(self.parts) == 1 else ()

    @property
    def engines(self) -> dict[str, CompiledQuery]:
        """The engines of which the driver learns."""
        found: dict[str, CompiledQuery] = {}
        for part in self.parts:
            found |= part.program.engines(self.plain, self.roles)
        return found

    @property
    def sheds(self) -> bool:
        """Whether there is anything to shed inside a budget."""
        return any(part.program.sheds for part in self.parts)

    def weight(self, shard: int, events: int, batch: int | None = None) -> float:
        """By what the part of a shard of the budget is multiplied, with so many events to match in a micro-batch."""
        if self.spending is None or self.spending.control is None:
            return 1.0
        return Split.load(self.spending.control, self.shards).weight(shard, events, batch)

    def granted(self, shard: int, rows: int, matched: int) -> Budget:
        """The budget less what a micro-batch takes beside its matchers, for so many rows of one shard.

        Of run-steps per event each part has its share, as it gets each event.
        """
        assert self.spending is not None
        budget, control = self.spending.budget, self.spending.control
        if budget.unit == "steps/event" and len(self.parts) > 1:
            budget = replace(budget, amount=budget.amount / len(self.parts))
        if control is None or not budget.needs_clock:
            return budget
        known = Overhead.load(control)
        times = known.times_of(shard, max(self.shards, 1))
        return known.granted(budget, round(rows * times), round(matched * times))

    @property
    def ticks_per_millisecond(self) -> int:
        """How many ticks a millisecond of Spark's watermark is: plain ticks are taken for milliseconds."""
        return 1000 if self.has_real_times else 1

    @property
    def has_real_times(self) -> bool:
        """Whether times are dates and hours, or numbers with a unit, and no plain ticks."""
        return tick_unit(self.schema.field(self.roles.time).type, self.roles.unit) is not None

    @property
    def left_out(self) -> pa.Schema:
        """Columns of the events that were left out; the last one says why."""
        return pa.schema([*(field for field in self.schema if field.name != REASON), ("reason", pa.string())])

    @cached_property
    def plain(self) -> pa.Schema:
        """The schema as the matcher sees it, whatever the encoding."""
        return plain_schema(self.schema, "the events")

    @cached_property
    def tables(self) -> dict[str, pa.Schema]:
        """The schemas of the tables that come of it.

        Raises
        ------
        DataError, QueryError
            A column is missing or has the wrong type.
        """
        found = self.parts[0].program.tables(self.plain, self.roles)
        return {name: plain_schema(schema, "the matches") for name, schema in found.items()}

    @property
    def setting(self) -> Setting:
        """What a program is told of the job."""
        return Setting(self.plain, self.roles, self.order, self.tables, self.shards, len(self.parts), self.spending)

    @property
    def results(self) -> pa.Schema:
        """The schema of the results."""
        return self.tables[MATCHES]

    def __getstate__(self) -> dict[str, Any]:
        """Without what is worked out when it is asked for."""
        return {name: value for name, value in vars(self).items() if name not in ("plain", "tables")}
