"""The state of a program under way: where each of its streams and pipelines stands, and its tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from hashlib import sha256
from typing import Any

from acep_approx.archive import Differences, Kind, Scope, damaged_state, state_of_other_format
from acep_approx.errors import DataError
from acep_approx.matching.state import meaning, restore_query, restored_stream, roles_of, save_query, save_stream
from acep_approx.query.rules.printer import to_text
from acep_approx.ranges import COUNT, number_in
from acep_approx.rules.execution import Counters, RuleExecution
from acep_approx.rules.program import Program


def _of_another(_: Differences) -> DataError:
    return DataError(
        "the state is of other rules",
        code="ACEP-D042",
        hint="go on with the rules that it was made with, or start from the beginning",
    )


RULES = Kind("rules", lambda: damaged_state("rules"), state_of_other_format, _of_another)


def fingerprint(program: Program) -> str:
    """Sixteen hex digits that change whenever the rules, or what they are compiled to, do."""
    plans = [meaning(rule.plan) for rule in program.rules]
    return sha256(repr((to_text(program.file), plans)).encode()).hexdigest()[:16]


def pack(execution: RuleExecution, wanted: Mapping[str, Any], *, with_tables: bool = True) -> bytes:
    """Return all that is needed to go on in another process.

    Parameters
    ----------
    execution : RuleExecution
    wanted : mapping of str to str or None
        Columns for roles: see ``Runner``.
    with_tables : bool, default True
        Whether the tables are in it, too; a database may hold them.

    Complexity: O(state).
    """
    scope, bound = Scope(), execution.bound
    scope.head |= {
        "of": {"rules": fingerprint(execution.program)},
        "wanted": wanted,
        "driver": execution.driver,
        "counters": asdict(execution.counters),
    }
    if with_tables:
        tables = scope.sub("tables")
        for rows in execution.tables.values():
            tables.put(rows.table.name, rows.to_arrow())
    if bound is not None:
        mine = scope.sub("bound", {"roles": bound.roles.plain})
        mine.put("schema", bound.schema)
        for number, log in enumerate(bound.logs.values()):
            if log.past is not None:
                log.past.save(mine.sub(f"past {number}"), log.rows)
        for number, side in enumerate(bound.sides):
            save_stream(side, mine.sub(f"stream {number}"))
        for one in bound.pipelines:
            save_query(one, mine.sub(f"rule {one.rule.number}"))
    return RULES.pack(scope)


def unpack(program: Program, state: bytes) -> tuple[RuleExecution, dict[str, Any]]:
    """Return what ``pack`` was called on, and the columns that were wanted.

    Raises
    ------
    DataError
        ``ACEP-D040``: these bytes are no state of rules, or have changed; ``ACEP-D041``: of another format;
        ``ACEP-D042``: of other rules.
    """
    scope = RULES.unpack(state, of={"rules": fingerprint(program)})
    with RULES.reading():
        return _restored(program, scope), scope.head["wanted"]


def _restored(program: Program, scope: Scope) -> RuleExecution:
    execution = RuleExecution(program, scope.head["driver"])
    counters = scope.head["counters"]
    execution.counters = Counters(**{name: number_in(name, counters[name], -COUNT, COUNT) for name in counters})
    if "tables" in scope.parts:
        for name in scope.parts["tables"].arrays:
            execution.tables[name].load(scope.parts["tables"].table(name))
    if "bound" not in scope.parts:
        return execution
    mine, words = scope.parts["bound"], scope.words
    streams = sum(name.startswith("stream ") for name in mine.parts)
    sides = [restored_stream(mine.parts[f"stream {number}"], words) for number in range(streams)]
    bound = execution.bind(mine.table("schema").schema, roles_of(mine.head["roles"]), sides)
    for number, log in enumerate(bound.logs.values()):
        if log.past is not None:
            log.past.restore(mine.parts[f"past {number}"], log.rows)
    for one in bound.pipelines:
        restore_query(one, mine.parts[f"rule {one.rule.number}"])
    return execution
