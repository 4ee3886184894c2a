"""A file of rules, compiled: what does not change while it runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import pyarrow as pa

from acep_approx.events.roles import Roles
from acep_approx.query.evaluate import evaluate
from acep_approx.query.rules.syntax import Call, Holds, RuleFile, Write
from acep_approx.query.syntax import Aggregate, Attribute, Expression
from acep_approx.rules.compiled import CompiledRule, KindOf, TablePrograms, compile_writes, compiled
from acep_approx.rules.firing import Statement
from acep_approx.rules.graph import RuleGraph, Stage

Driver = Literal["auto", "stepping"]


@dataclass(frozen=True)
class Program:
    """The rules of a file, and in which order their parts are run."""

    file: RuleFile
    rules: tuple[CompiledRule, ...]

    @classmethod
    def of(cls, file: RuleFile) -> Program:
        """Compile a file that passed the checks.

        Raises
        ------
        QueryError
            A rule is wrong, or no engine can run it.
        """
        return cls(file, tuple(compiled(number, rule) for number, rule in enumerate(file.rules)))

    @cached_property
    def graph(self) -> RuleGraph:
        """Who waits for whom."""
        return RuleGraph(self.file.tables, self.rules)

    def stages(self, driver: Driver = "auto") -> list[Stage]:
        """The parts of rules in the order in which they are run; with "stepping" all of them in turn."""
        if driver == "auto":
            return self.graph.stages()
        return [Stage(tuple(sorted(self.graph.waits)), is_cycle=True)]

    @cached_property
    def statements(self) -> dict[int, list[Statement]]:
        """Per rule its writing actions, numbered within their tables."""
        counts: dict[str, int] = {}
        found: dict[int, list[Statement]] = {}
        for rule in self.rules:
            found[rule.number] = []
            for action, one in enumerate(rule.rule.actions):
                if isinstance(one, Write):
                    number = counts.get(one.table, 0)
                    counts[one.table] = number + 1
                    found[rule.number].append(Statement(action, one, number))
        return found

    @cached_property
    def writes(self) -> dict[str, list[Write]]:
        """Per table the actions that write it, by number."""
        found: dict[str, list[Write]] = {table.name: [] for table in self.file.tables}
        for some in self.statements.values():
            for one in some:
                found[one.write.table].append(one.write)
        return found

    @property
    def call_names(self) -> list[str]:
        """The names of functions that rules call, each once."""
        actions = [action for rule in self.rules for action in rule.rule.actions]
        return [*dict.fromkeys(action.name for action in actions if isinstance(action, Call))]

    def programs(self, schema: pa.Schema, roles: Roles) -> dict[str, TablePrograms]:
        """Per table the programs of what writes it, for events of these columns."""
        kind_of, text = _kinds(schema, roles), self.file.text
        writes = {name: [(write, kind_of) for write in some] for name, some in self.writes.items()}
        return {table.name: compile_writes(table, writes[table.name], text) for table in self.file.tables}


def _kinds(schema: pa.Schema, roles: Roles) -> KindOf:
    """What expressions over events of these columns give: found by evaluating them without events."""
    empty: Mapping[str, pa.Array] = {field.name: pa.array([], field.type) for field in schema}

    def column(leaf: Attribute | Aggregate) -> pa.Array:
        if isinstance(leaf, Aggregate):
            if leaf.function in ("count", "count distinct"):
                return pa.array([], pa.int64())
            if leaf.function in ("avg", "stddev"):
                return pa.array([], pa.float64())
        assert leaf.name is not None, "only count() has none"
        return empty[roles.column(leaf.name)]

    def kind_of(expression: Expression) -> Holds:
        kind = evaluate(expression, column).type
        if pa.types.is_floating(kind):
            return "float"
        if pa.types.is_integer(kind) or pa.types.is_null(kind):
            return "int"
        return "bool" if pa.types.is_boolean(kind) else "time" if pa.types.is_timestamp(kind) else "text"

    return kind_of
