"""Active rules on Spark: their tables lie in the shards, each row where the events of its key are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import TYPE_CHECKING, Self

import pyarrow as pa
import pyarrow.compute as pc

from acep_approx.api.on_spark.options import spending_in
from acep_approx.api.rule_budget import RuleSpending, spending_of
from acep_approx.events.stream import EventBatch, earliest
from acep_approx.ipc import to_ipc
from acep_approx.matching.outputs.bind import Bind, Wide, as_plain
from acep_approx.rules.apart import apart
from acep_approx.rules.program import Program as Rules
from acep_approx.rules.runner import Runner, fingerprint
from acep_approx.spark.worker.counters import counters_together
from acep_approx.spark.worker.program import (
    AGREE,
    CALLS,
    CHANGES,
    MATCHES,
    KeptTable,
    Named,
    Numbers,
    Program,
    Setting,
    Split,
    Turn,
    Work,
)
from acep_approx.subscriptions.results import common_columns, in_types_of

if TYPE_CHECKING:
    from acep_approx.events.roles import Roles
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
    """

    rules: Rules
    store: Mapping[str, pa.Table] = field(default_factory=dict)
    bind: Bind = None
    shed: str | None = None
    spends: bool = False
    named: dict[str, pa.Schema] = field(default_factory=dict)

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
        some = {name: _apart(table) for name, table in nothing.matches.items()}
        found = {MATCHES: pa.schema([(RULE, pa.string()), *common_columns(one.schema for one in some.values())])}
        found |= {CHANGES + name: without_row(one).schema for name, one in nothing.changes.items()}
        return found | ({CALLS: without_row(nothing.calls).schema} if self.rules.call_names else {})

    def needs(self, schema: pa.Schema, roles: Roles) -> tuple[str, ...]:
        """The columns of events that workers must have."""
        return self._begun(schema, roles).columns

    def split(self, roles: Roles, schema: pa.Schema | None = None) -> Split:  # noqa: ARG002  (keys are known without)
        """By the columns that name the rows of their tables."""
        found = apart(self.rules, roles)
        return Split(found.keys, ", and ".join((AGREE, *filter(None, (found.why,)))) if found.keys else found.why)

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
        return RulesWork(runner, setting.tables[MATCHES], turn.shard)

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
        """What they are, for people."""
        return "the rules"


class RulesWork(Work):
    """Rules at work in a shard.

    Parameters
    ----------
    runner : Runner
    columns : pyarrow.Schema
        Of the matches of all rules.
    shard : int
        Its number: calls are known by it, too.
    """

    def __init__(self, runner: Runner, columns: pa.Schema, shard: int) -> None:
        self.runner, self._columns, self._shard = runner, columns, shard

    @property
    def arrived(self) -> int:
        """How many events there were so far."""
        return self.runner.arrived

    def run(self, events: EventBatch) -> Iterator[Named]:
        """Run the events of a micro-batch."""
        for outcome in self.runner.run(events.of_columns(self.runner.columns, self.runner.arrived)):
            yield from self._named(outcome)

    def pass_time(self, tick: int) -> Iterator[Named]:
        """No event before ``tick`` comes any more."""
        yield from self._named(self.runner.close(tick))

    def finish(self) -> Iterator[Named]:
        """The stream has ended."""
        yield from self._named(self.runner.close(None))

    def _named(self, outcome: Outcome) -> Iterator[Named]:
        for rule, table in outcome.matches.items():
            if table.num_rows:
                named = _apart(table).add_column(0, RULE, pa.array([rule] * table.num_rows, pa.string()))
                yield MATCHES, in_types_of(self._columns, named)
        for name, table in outcome.changes.items():
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


def _apart(table: pa.Table) -> pa.Table:
    """A table of matches whose own column ``rule`` is not taken for that of all rules."""
    return table.rename_columns([f"{name}_" if name == RULE else name for name in table.column_names])


def without_row(table: pa.Table) -> pa.Table:
    """A table without the numbers of events, which mean nothing on Spark."""
    return table.drop_columns([name for name in ("row",) if name in table.column_names])
