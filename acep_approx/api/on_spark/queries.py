"""A set of queries on Spark: which of them may be matched apart by which keys, and the set at work in a shard."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Self

import pyarrow as pa

from acep_approx.api.budgeted_set import check_budget, new_purse
from acep_approx.api.on_spark.common_part import CommonPart
from acep_approx.api.on_spark.options import spending_in
from acep_approx.api.query_texts import SavedTexts
from acep_approx.archive import Head
from acep_approx.budget.budget import Budget
from acep_approx.errors import DataError
from acep_approx.events.stream import EventBatch, earliest
from acep_approx.matching.outputs.bind import Bind, Wide, as_plain
from acep_approx.planning.compiled import CompiledQuery
from acep_approx.run.passing import PassedColumns, events_in, own_columns
from acep_approx.shedding.load import Load
from acep_approx.shedding.purse import Purse, can_be_observed
from acep_approx.shedding.shedder import Shedder
from acep_approx.spark.worker.counters import counters_together
from acep_approx.spark.worker.observers import observer_of, packed_samples, samples_in
from acep_approx.spark.worker.program import (
    AGREE,
    BEHIND,
    MATCHES,
    ONLY,
    PASSED,
    Named,
    Numbers,
    Program,
    Setting,
    Split,
    Stage,
    Turn,
    Work,
    first_names,
    passing_in,
    stages_of,
)
from acep_approx.subscriptions.apart import Group, groups_of
from acep_approx.subscriptions.results import in_types_of
from acep_approx.subscriptions.stages import columns_of
from acep_approx.subscriptions.state import SET, restored, scope_of
from acep_approx.training.histories import NewestHistories
from history.places import place_of
from history.store import is_history

if TYPE_CHECKING:
    from acep_approx.events.roles import Roles
    from acep_approx.learning.online import Observer
    from acep_approx.spark.worker.spending import Spending
    from acep_approx.subscriptions.running import Misfit, Running


@dataclass(frozen=True)
class SetProgram(Program):
    """A set of queries, or some of one.

    Parameters
    ----------
    state : bytes
        Of the queries, before any event; see ``subscriptions.state``.
    columns : pyarrow.Schema, optional
        Of the results of the whole set, once the columns of the events are known.
    streams : dict of str to pyarrow.Schema
        Likewise, of what queries of level 0 publish for others.
    stage : Stage
    """

    state: bytes
    columns: pa.Schema | None = None
    streams: Mapping[str, pa.Schema] = field(default_factory=dict)
    stage: Stage = ONLY
    in_stages = True
    """Whether queries that feed one another may be matched apart by different keys."""

    @classmethod
    def of(cls, running: Running) -> Self:
        """The queries of a set, before any event."""
        return cls(without_load(running))

    @cached_property
    def running(self) -> Running:
        """The queries, before any event."""
        return opened(self.state)[0]

    def __getstate__(self) -> dict[str, Any]:
        """Without what is made of the state when it is asked for."""
        return {name: value for name, value in vars(self).items() if name != "running"}

    def _begun(self, schema: pa.Schema, roles: Roles, on_misfit: Misfit | None = None) -> Running:
        """The same once the columns of the events are known; for ``on_misfit`` see ``Running``."""
        running = with_roles(self.running.fresh(), roles)
        running.on_misfit = on_misfit
        running.begin(schema)
        return running

    @property
    def identity(self) -> dict[str, str]:
        """What must be the same for a checkpoint to be taken up again."""
        return {"queries": sha256(self.state).hexdigest()[:16]}

    def decided(self, id: str | None, bind: Bind, schema: pa.Schema, roles: Roles) -> Self:  # noqa: A002
        """Take what was asked for, else the id, else what the queries read of an event."""
        running = self._begun(schema, roles)
        shown = replace(bind, id=id) if isinstance(bind, Wide) else bind or id or running.columns
        running = self.running.fresh()
        running.graph.bind = shown
        made = replace(self, state=without_load(running))
        begun = made._begun(schema, roles)
        columns = begun.found(iter(())).table().schema
        return replace(made, columns=columns, streams=_streams(begun))

    def needs(self, schema: pa.Schema, roles: Roles) -> tuple[str, ...]:
        """The columns of events that workers must have: those that are named, too, as queries are refused without."""
        running = self._begun(schema, roles)
        _let_come(running)
        members = () if running.levels is None else dict.fromkeys(running.levels.members.values())
        named = [name for member in members for name in member.pipeline.named if name in schema.names]
        return tuple(dict.fromkeys([*running.columns, *named]))

    def split(self, roles: Roles, schema: pa.Schema | None = None) -> Split:  # noqa: ARG002  (keys are known without)
        """By keys where all of its queries can be matched apart by them."""
        groups = self._groups(roles)
        if self.stage.is_second:
            return Split(groups[0].keys, BEHIND.format("publish what they read"))
        if len(groups) == 1 and groups[0].keys:
            return Split(groups[0].keys, AGREE)
        many = ", and with more shards they are dealt out to more tasks" if len(groups[0].families) > 1 else ""
        return Split((), f"no column is a key of all of its queries, as [user] is{many}")

    def _groups(self, roles: Roles, *, in_stages: bool = False) -> list[Group]:
        return groups_of(self.running.graph, roles, in_stages=in_stages)

    def tables(self, schema: pa.Schema, roles: Roles) -> dict[str, pa.Schema]:  # noqa: ARG002  (they are known)
        """The one table that comes of it."""
        assert self.columns is not None, "the columns of the events are known"
        return {MATCHES: self.columns}

    def divided(self, roles: Roles, shards: int) -> Sequence[SetProgram]:
        """Queries that can be matched apart by the same keys together; those without keys by themselves.

        The latter are dealt out, so that each shard has some of them and gets all events. Those of a second stage come
        behind the others.
        """
        groups = self._groups(roles, in_stages=self.in_stages)
        found = [(group, ids) for group in groups for ids in ([group.ids] if group.keys else group.dealt(shards))]
        if len(found) == 1:
            return [self]
        second = [group for group, _ in found if group.is_second]
        if not second:
            return [self._of(ids) for _, ids in found]
        stages = stages_of(self._passing(second), ((group.is_second, bool(group.passes)) for group, _ in found))
        parts = (self._of(ids, passed=frozenset(group.passes), is_fed=group.is_second) for group, ids in found)
        return [replace(part, stage=stage) for part, stage in zip(parts, stages, strict=True)]

    def _passing(self, second: Sequence[Group]) -> PassedColumns:
        """What queries of a second stage must be given."""
        graph = self.running.graph
        ids = {id_ for group in second for id_ in group.ids}
        readers = {entry for _, id_, entry in graph.numbered if id_ in ids and entry.level}
        reads = frozenset[str]().union(*(entry.reads for entry in readers))
        types = None if any(entry.is_about_all for entry in readers) else reads
        streams = {name: columns for name, columns in self.streams.items() if name in reads}
        return PassedColumns(streams, types, tuple(group.keys for group in second))

    def _of(self, ids: Iterable[str], *, passed: frozenset[str] = frozenset(), is_fed: bool = False) -> SetProgram:
        """Only some of its queries."""
        running, kept = self.running.fresh(), set(ids)
        running.graph.passed, running.graph.is_fed = passed, is_fed
        for one in [one for one in running.graph.ids if one not in kept]:
            if one in running.graph.ids:  # it may have gone with another one
                running.remove(one, cascade=True)
        return replace(self, state=without_load(running))

    def check(self, spending: Spending) -> None:
        """Refuse a budget that cannot be spent on these queries."""
        new_load = new_purse(_spending(spending, Turn()))
        assert new_load is not None, "there is a budget"
        check_budget(self.running.fresh(new_load))

    def begin(self, setting: Setting, turn: Turn, state: bytes | None = None) -> SetWork:
        """Begin in a shard, or go on from a state."""
        assert self.columns is not None, "the columns of the events are known"
        common = common_part(self.state, events_in(setting.schema), setting.roles)
        running, _ = self._started(setting, turn, state, common)
        if state is None:
            _let_come(running)  # as those of the common part did
        if self.stage.passing is not None:
            assert running.levels is not None, "it has begun"
            running.levels.passing = passing_in(self.stage, setting)
            running.kept = setting.schema.names
        elif self.stage.is_second:
            running.kept = [*own_columns(setting.schema)]
        return SetWork(running, self.columns, common)

    def _started(
        self, setting: Setting, turn: Turn, state: bytes | None, common: CommonPart | None = None
    ) -> tuple[Running, Head]:
        """The set in a shard, and what its state says besides."""
        new_load = None
        if setting.spending is not None:
            given = _spending(setting.spending, turn, setting.shards, setting.parts)
            new_load = new_purse(given, self._observers(setting, turn))
        if state is not None:
            running, kept = opened(state, new_load, common)
        else:
            running, kept = with_roles(self.running.fresh(new_load), setting.roles), {}
        running.begin(events_in(setting.schema))
        return running, kept

    def _observers(self, setting: Setting, turn: Turn) -> Callable[[str], Observer] | None:
        """What samples tests for the driver, of the engines of which it learns."""
        spending = setting.spending
        if spending is None or not spending.learns or spending.control is None or self.stage.is_second:
            return None
        return lambda name: observer_of(spending, turn, max(setting.shards, 1), name)

    def engines(self, schema: pa.Schema, roles: Roles) -> dict[str, CompiledQuery]:
        """Its queries that read the stream of events, each by itself."""
        if self.stage.is_second:
            return {}
        purse = Purse(Load(Budget.parse("1 steps/event")))
        running = with_roles(self.running.fresh(lambda: purse), roles)
        running.begin(schema)
        _let_come(running)
        return {one.known_as: CompiledQuery(one.plan) for one in purse.accounts if _is_observed(one)}

    def samples(self, packed: bytes) -> dict[str, bytes]:
        """What a shard gave as its ``sample``, by engines."""
        return samples_in(packed)

    @property
    def words(self) -> str:
        """How many queries these are, and which."""
        return first_names([*self.running.graph.ids], "query", "queries")


def _streams(running: Running) -> dict[str, pa.Schema]:
    """What queries of level 0 publish for others, with the columns of its results."""
    _let_come(running)
    graph, levels, found = running.graph, running.levels, dict[str, pa.Schema]()
    assert levels is not None, "it has begun"
    for name in graph.publishers.keys() & graph.readers.keys():
        entries = [graph.entries[number] for number in graph.publishers[name]]
        members = [levels.members[entry.number] for entry in entries if not entry.level and entry.plan.cel is None]
        attributes = [one for member in members if member.publishing for one in member.publishing.attributes]
        if members:
            found[name] = columns_of([member.nothing().schema for member in members], attributes)
    return found


def _is_observed(one: Shedder) -> bool:
    return can_be_observed(one.plan, one.looks_at)


def _spending(spending: Spending, turn: Turn, shards: int = 1, parts: int = 1) -> dict[str, Any]:
    """The part of a budget that a shard has, with the newest histories that are there."""
    given = spending_in(spending, turn, shards, parts)
    if given["history"] is not None:
        home = place_of(given["history"])
        is_there = not spending.learns or (home.is_dir() and any(map(is_history, home.iterdir())))
        given["history"] = NewestHistories.load(home) if is_there else None
    return given


def with_roles(running: Running, roles: Roles) -> Running:
    """Return a set that has seen no event, told which columns play which roles."""
    running.wanted |= roles.named
    return running


def _let_come(running: Running) -> None:
    """Let the queries of a set that has seen no event come now, and not with the first event."""
    for _ in running.settle():
        pass


def without_load(running: Running) -> bytes:
    """Return the state of the queries of a set before any event, without its load budget."""
    fresh = running.fresh()
    fresh.load, fresh.new_load = None, None
    return _packed(fresh)


def _packed(running: Running, common: CommonPart | None = None) -> bytes:
    scope = scope_of(running, {"bind": as_plain(running.graph.bind)})
    if common is not None:
        common.omit(scope)
    return SET.pack(scope)


@lru_cache(maxsize=8)
def common_part(state: bytes, schema: pa.Schema, roles: Roles) -> CommonPart:
    """Return what the states of the shards of a job have in common, by the state of its queries before any event.

    A worker of Spark is called for one shard after another, and with each micro-batch again.
    """
    running = with_roles(opened(state)[0], roles)
    running.begin(schema)
    _let_come(running)
    return CommonPart.of(scope_of(running, {}))


def opened(
    state: bytes, new_load: Callable[[], Purse] | None = None, common: CommonPart | None = None
) -> tuple[Running, Head]:
    """The queries of a state, ready for the next event, and what ``pack`` was given to keep with them.

    Raises
    ------
    DataError
        ``ACEP-D044``: one of the two is inside a load budget, the other is not; ``ACEP-S011``: the common part is
        another.
    """
    saved = SET.unpack(state)
    with SET.reading():
        if common is not None:
            common.fill(saved)
        if ("load" in saved.head) == (new_load is None):
            was = "is inside a load budget" if new_load is None else "is not inside a load budget"
            raise DataError(
                f"the state of these queries {was}, and the run that goes on from it is otherwise",
                code="ACEP-D044",
                hint="go on in the same way, or start anew with another checkpoint",
            )
        return restored(saved, SavedTexts(), new_load), saved.head["options"]


class SetWork(Work):
    """A set of queries at work in a shard.

    Parameters
    ----------
    running : Running
    columns : pyarrow.Schema
        Of the results of the whole set.
    common : CommonPart, optional
        What its state leaves out; default: nothing.
    """

    def __init__(self, running: Running, columns: pa.Schema, common: CommonPart | None = None) -> None:
        self.running, self._columns, self._common = running, columns, common

    @property
    def arrived(self) -> int:
        """How many events there were so far."""
        return self.running.arrived

    def run(self, events: EventBatch) -> Iterator[Named]:
        """Run the events of a micro-batch."""
        yield from self._shown(self.running.run(events.of_columns(self.running.columns, self.running.arrived)))

    def pass_time(self, tick: int) -> Iterator[Named]:
        """No event before ``tick`` comes any more."""
        yield from self._shown(self.running.pass_time(tick))

    def finish(self) -> Iterator[Named]:
        """The stream has ended."""
        yield from self._shown(self.running.finish())

    def _shown(self, results: Iterator[Any]) -> Iterator[Named]:
        found = self.running.found(results)
        if found.rows:
            yield MATCHES, in_types_of(self._columns, found.table())
        levels = self.running.levels
        if levels is not None and levels.passing is not None:
            yield PASSED, levels.passing.take()

    @property
    def waits_until(self) -> int | None:
        """The tick that time must pass for a match that waits."""
        levels = self.running.levels
        members = () if levels is None else {*levels.members.values()}
        return earliest(member.pipeline.waits_until for member in members)

    def state_bytes(self) -> bytes:
        """All that is needed to go on elsewhere."""
        return _packed(self.running, self._common)

    def sample(self) -> bytes:
        """What the driver is to learn from, of this micro-batch."""
        purse = self.running.load
        engines = purse.accounts if isinstance(purse, Purse) else ()
        return packed_samples({one.known_as: sample for one in engines if (sample := one.training_sample())})

    def counters(self) -> Numbers:
        """Where its counters stand."""
        purse = self.running.load
        return counters_together(self.running.order.passed, purse if isinstance(purse, Purse) else None)
