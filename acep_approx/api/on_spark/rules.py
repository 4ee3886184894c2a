"""Active rules on Spark: their tables lie in the shards, each row where the events of its key are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import TYPE_CHECKING, Self

import pyarrow as pa
import pyarrow.compute as pc

from acep_approx.api.on_spark.options import spending_in
from acep_approx.api.rule_budget import RuleSpending, spending_of
from acep_approx.events.columns import decoded, to_arrow, to_numpy
from acep_approx.events.stream import EventBatch, earliest
from acep_approx.ipc import to_ipc
from acep_approx.matching.outputs.bind import Bind, Wide, as_plain
from acep_approx.rules.apart import apart
from acep_approx.rules.portions import OP, Portion, change_of, fed_with, part_of, portions_of
from acep_approx.rules.program import Program as Rules
from acep_approx.rules.runner import Runner, fingerprint
from acep_approx.run.passing import MAKER, OWN, PassedColumns, Passing
from acep_approx.spark.worker.counters import counters_together
from acep_approx.spark.worker.program import (
    AGREE,
    BEHIND,
    CALLS,
    CHANGES,
    MATCHES,
    ONLY,
    PASSED,
    KeptTable,
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
from acep_approx.subscriptions.results import common_columns, in_types_of

if TYPE_CHECKING:
    from acep_approx.events.roles import Roles
    from acep_approx.rules.compiled import CompiledRule
    from acep_approx.rules.execution import Outcome
    from acep_approx.spark.worker.spending import Spending

RULE = "rule"
"""The column that says whose a match is."""


@dataclass(frozen=True)
class RulesProgram(Program):
    """Rules, and the rows that their tables begin with.

    Parameters
    ----------
    rules : rules.program.Program
    store : mapping of str to pyarrow.Table
        Each shard has all of these rows, and meets those of its own keys alone.
    bind : str, tuple of str, Wide or None
        What stands for events in matches.
    shed : str, optional
        See ``RuleSpending``.
    spends : bool
        Whether there is a load budget: matches then say whether they are ``certain``.
    named : dict of str to pyarrow.Schema
        The tables that come of it, once the columns of the events are known.
    stage : Stage
    given : tuple of str
        Of the second stage: the tables whose changes it is given, by their numbers.
    """

    rules: Rules
    store: Mapping[str, pa.Table] = field(default_factory=dict)
    bind: Bind = None
    shed: str | None = None
    spends: bool = False
    named: dict[str, pa.Schema] = field(default_factory=dict)
    stage: Stage = ONLY
    given: tuple[str, ...] = ()

    @property
    def identity(self) -> dict[str, str]:
        """What must be the same for a checkpoint to be taken up again."""
        rows = sha256(b"".join(to_ipc(self.store[name]) for name in sorted(self.store))).hexdigest()[:16]
        same = {"rules": fingerprint(self.rules), "rows given": rows, "events shown as": str(as_plain(self.bind))}
        return same | {"certain": str(self.spends)}

    def decided(self, id: str | None, bind: Bind, schema: pa.Schema, roles: Roles) -> Self:  # noqa: A002
        """Take what was asked for, else the id, else what the rules read of an event."""
        shown = replace(bind, id=id) if isinstance(bind, Wide) else bind or id
        if shown is None:
            shown = self._begun(schema, roles).columns
        made = replace(self, bind=shown)
        spending = spending_of(self.rules, "100%", {}) if self.spends else None
        return replace(made, named=made._tables(made._begun(schema, roles, spending).execution.nothing()))

    def _begun(self, schema: pa.Schema, roles: Roles, spending: RuleSpending | None = None) -> Runner:
        runner = Runner(self.rules, roles.named, bind=self.bind, spending=spending)
        runner.load(self.store)
        runner.begin(schema)
        return runner

    def _tables(self, nothing: Outcome) -> dict[str, pa.Schema]:
        some = {name: self.shown(name, table) for name, table in nothing.matches.items()}
        found = {MATCHES: pa.schema([(RULE, pa.string()), *common_columns(one.schema for one in some.values())])}
        found |= {CHANGES + name: without_row(one).schema for name, one in nothing.changes.items()}
        return found | ({CALLS: without_row(nothing.calls).schema} if self.rules.call_names else {})

    def shown(self, rule: str, table: pa.Table) -> pa.Table:
        """Matches without the rows of match points, and with another name for a column ``rule`` of their own."""
        if any(one.name == rule and one.each == "point" for one in self.rules.file.rules):
            table = without_row(table)
        return table.rename_columns([f"{name}_" if name == RULE else name for name in table.column_names])

    def needs(self, schema: pa.Schema, roles: Roles) -> tuple[str, ...]:
        """The columns of events that workers must have: those that are named, too, as rules are refused without."""
        runner = self._begun(schema, roles)
        bound = runner.execution.bound
        assert bound is not None, "it has begun"
        named = [name for pipeline in bound.pipelines.values() for name in pipeline.named]
        leaves = [roles.column(leaf.name) for rule in self.rules.rules for leaf in rule.leaves if leaf.name is not None]
        return tuple(name for name in dict.fromkeys([*runner.columns, *named, *leaves]) if name in schema.names)

    def split(self, roles: Roles, schema: pa.Schema | None = None) -> Split:  # noqa: ARG002  (keys are known without)
        """By the columns that name the rows of their tables."""
        if self.stage.is_second:
            own = Rules(self.rules.file, tuple(self._own))
            return Split(apart(own, roles).keys, BEHIND.format("write what they read"))
        found = apart(self.rules, roles)
        return Split(found.keys, ", and ".join((AGREE, *filter(None, (found.why,)))) if found.keys else found.why)

    def divided(self, roles: Roles, shards: int) -> Sequence[RulesProgram]:  # noqa: ARG002  (their number is no matter)
        """Rules that share no table apart, by their own keys; and those that read what others write behind these.

        Inside a budget they stay together: what is certain depends on what was shed elsewhere.
        """
        portions = [] if self.spends else portions_of(self.rules, roles)
        if len(portions) < 2:
            return [self]
        second = [one for one in portions if one.fed]
        passing = self._passing(second)
        written = ({write.table for rule in one.rules for write in rule.writes} for one in portions)
        passes = (bool(tables & passing.streams.keys()) for tables in written)
        stages = stages_of(passing, zip((bool(one.fed) for one in portions), passes, strict=True))
        return [self._of(one, stage, passing) for one, stage in zip(portions, stages, strict=True)]

    def _of(self, portion: Portion, stage: Stage, passing: PassedColumns) -> RulesProgram:
        """Only some of its rules."""
        if stage.is_second:
            return replace(self, rules=fed_with(self.rules, portion), stage=stage, given=tuple(passing.streams))
        return replace(self, rules=part_of(self.rules, portion.rules), stage=stage)

    def _passing(self, second: Sequence[Portion]) -> PassedColumns:
        """What rules of the second stage must be given."""
        types = frozenset[str]().union(*(rule.plan.reads for one in second for rule in one.rules))
        tables = sorted({table for one in second for table in one.fed})
        streams = {name: self._changes(name) for name in tables}
        return PassedColumns(streams, types, tuple(one.keys for one in second), to_all=True)

    def _changes(self, table: str) -> pa.Schema:
        """The columns of the changes of a table under the names that it has for them."""
        known = self.named.get(CHANGES + table)
        if known is None:  # the events are not known yet
            return pa.schema([])
        return pa.schema([*zip(_names_in(self.rules, table), known.types[len(WHEN) :], strict=True)])

    def tables(self, schema: pa.Schema, roles: Roles) -> dict[str, pa.Schema]:  # noqa: ARG002  (they are known)
        """The matches of all rules; the changes of each table; calls, if there can be any."""
        return self.named

    def check(self, spending: Spending) -> None:
        """Refuse a budget that cannot be spent on these rules."""
        self._spending(spending, Turn())

    def _spending(self, spending: Spending, turn: Turn, shards: int = 1) -> RuleSpending:
        given = spending_in(spending, turn, shards)
        more = given | ({} if self.shed is None else {"shed": self.shed})
        made = spending_of(self.rules, more.pop("budget"), more)
        assert made is not None, "there is a budget"
        return made

    def begin(self, setting: Setting, turn: Turn, state: bytes | None = None) -> RulesWork:
        """Begin in a shard, or go on from a state."""
        spending = None if setting.spending is None else self._spending(setting.spending, turn, setting.shards)
        if state is None:
            runner = self._begun(setting.schema, setting.roles, spending)
        else:
            runner = Runner.restored(self.rules, state, spending)
        return RulesWork(runner, setting, self, turn.shard)

    @property
    def kept_tables(self) -> dict[str, KeptTable]:
        """The tables that rules write."""
        runner = Runner(self.rules, {})
        runner.load(self.store)
        rows = {name: kept.to_arrow() for name, kept in runner.execution.tables.items()}
        names = {one.name: tuple(column.name for column in one.values) for one in self.rules.file.tables}
        return {one.name: KeptTable(one.key, names[one.name], rows[one.name]) for one in self.rules.file.tables}

    @property
    def words(self) -> str:
        """How many rules these are, and which."""
        return first_names([rule.name for rule in self._own], "rule", "rules")

    @property
    def _own(self) -> list[CompiledRule]:
        """Its rules without those that apply the changes that it is given."""
        return [rule for rule in self.rules.rules if not rule.name.startswith(OWN)]


class RulesWork(Work):
    """Rules at work in a shard.

    Parameters
    ----------
    runner : Runner
    setting : Setting
    program : RulesProgram
    shard : int
        Its number: calls are known by it, too.
    """

    def __init__(self, runner: Runner, setting: Setting, program: RulesProgram, shard: int) -> None:
        self.runner, self._shard, self._program = runner, shard, program
        self._columns, self._roles = setting.tables[MATCHES], setting.roles
        self._passing = passing_in(program.stage, setting)

    @property
    def arrived(self) -> int:
        """How many events there were so far."""
        return self.runner.arrived

    def run(self, events: EventBatch) -> Iterator[Named]:
        """Run the events of a micro-batch."""
        if self._program.given:
            events = self._with_changes(events)
        if self._passing is not None:
            self._passing.begin(EventBatch(self.runner.arrived, events.ticks, events.data))
        for outcome in self.runner.run(events.of_columns(self.runner.columns, self.runner.arrived)):
            if self._passing is not None:
                self._pass_on(outcome, self._passing)
                yield PASSED, self._passing.take()
            yield from self._named(outcome)

    def _pass_on(self, outcome: Outcome, passing: Passing) -> None:
        """Let the second stage know what was written."""
        for number, name in enumerate(passing.streams):
            changes = outcome.changes.get(name)
            if changes is not None and changes.num_rows:
                rows = to_numpy(changes.column("row").combine_chunks())
                columns = without_row(changes).columns[len(WHEN) :]
                shown = pa.table(columns, names=_names_in(self._program.rules, name))
                passing.results(name, pa.repeat(pa.scalar(number, pa.int64()), len(rows)), shown, rows)

    def _with_changes(self, events: EventBatch) -> EventBatch:
        """Events among which the changes of tables have types of their own."""
        type_ = str(self._roles.type)
        of = [change_of(name) for name in self._program.given]
        maker = to_numpy(events.data.column(MAKER))
        changed = pa.array(of, pa.string()).take(to_arrow(maker.clip(0)))
        data = events.data.set_column(
            events.data.schema.get_field_index(type_),
            type_,
            pc.if_else(pa.array(maker >= 0), changed, decoded(events.data.column(type_))),
        )
        return EventBatch(events.first_row, events.ticks, data)

    def pass_time(self, tick: int) -> Iterator[Named]:
        """No event before ``tick`` comes any more."""
        yield from self._named(self.runner.close(tick))

    def finish(self) -> Iterator[Named]:
        """The stream has ended."""
        yield from self._named(self.runner.close(None))

    def _named(self, outcome: Outcome) -> Iterator[Named]:
        for rule, table in outcome.matches.items():
            if table.num_rows and not rule.startswith(OWN):
                of = pa.array([rule] * table.num_rows, pa.string())
                named = self._program.shown(rule, table).add_column(0, RULE, of)
                yield MATCHES, in_types_of(self._columns, named)
        for name, table in outcome.changes.items():
            if name not in self._program.given:
                yield CHANGES + name, without_row(table)
        if outcome.calls.num_rows:
            calls = without_row(outcome.calls)
            ids = pc.binary_join_element_wise(calls.column("id"), f"shard {self._shard}", "@")
            yield CALLS, calls.set_column(0, "id", ids)

    @property
    def waits_until(self) -> int | None:
        """The tick that time must pass for a match that waits."""
        bound = self.runner.execution.bound
        return None if bound is None else earliest(one.waits_until for one in bound.pipelines.values())

    def state_bytes(self) -> bytes:
        """All that is needed to go on elsewhere."""
        return self.runner.state()

    def counters(self) -> Numbers:
        """Where their counters stand."""
        spending = self.runner.spending
        purse = spending.purse if isinstance(spending, RuleSpending) else None
        return counters_together(self.runner.execution.counters.events, purse)


WHEN = ("time", "rule")
"""The columns of changes that say when one was made, and by what."""


def _names_in(rules: Rules, table: str) -> list[str]:
    """The columns of the changes of a table, behind those that say when and by what."""
    of = rules.file.table(table)
    return [OP, *(column.name for column in (*of.keys, *of.values))]


def without_row(table: pa.Table) -> pa.Table:
    """A table without the numbers of events, which mean nothing on Spark."""
    return table.drop_columns([name for name in ("row",) if name in table.column_names])
