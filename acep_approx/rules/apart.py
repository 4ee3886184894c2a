"""By which columns of events rules may be matched apart: each row of a table is then met by events of one key alone.

A column will do where it is a key of every pattern of several events, and where every action and every read names the
row of a table that is written by that column, at one place of its key. Tables that no rule writes are the same
everywhere. Ours; the paper (Wang, Rundensteiner and Ellison, PVLDB 4(10) 2011) runs on one machine.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from acep_approx.events.roles import Roles
from acep_approx.query.shape import walk
from acep_approx.query.syntax import Atom, Attribute, Expression, Read
from acep_approx.rules.compiled import CompiledRule, is_old
from acep_approx.rules.program import Program


class Access(NamedTuple):
    """A row of a table that a rule reads or writes, by the expressions of its key."""

    rule: str
    table: str
    key: Sequence[Expression]


class Apart(NamedTuple):
    """The columns that rules may be matched apart by, and which tables lie apart; where there are none, why."""

    keys: tuple[str, ...]
    why: str = ""


def apart(program: Program, roles: Roles) -> Apart:
    """The columns by which the events of rules may be matched apart.

    Complexity: O(rules · reads and actions).
    """
    candidates: list[str] | None = None
    for rule in program.rules:
        if not _is_of_one_event(rule):
            own = _keys(rule, roles)
            candidates = own if candidates is None else [name for name in candidates if name in own]
            if not candidates:
                what = "has no key, as [user] is" if not own else "has not the key of those before it"
                return Apart((), f"the pattern of the rule {rule.name!r} {what}")
    written = {write.table for rule in program.rules for write in rule.writes}
    accesses = [one for rule in program.rules for one in rows_named(rule) if one.table in written]
    if candidates is None:  # all patterns are of one event: what names rows decides
        candidates = [*dict.fromkeys(name for one in accesses for name in _names(one, roles) if name is not None)]
    for one in accesses:
        at = [name for name in candidates if name in _names(one, roles)]
        if not at:
            return Apart((), f"the rule {one.rule!r} names rows of the table {one.table!r} by no such key")
        candidates = at
    for table in written:
        mine = [_names(one, roles) for one in accesses if one.table == table]
        places = range(len(mine[0]))
        candidates = [name for name in candidates if any(all(one[at] == name for one in mine) for at in places)]
    if not candidates:
        return Apart((), "rules name rows of a table by the same column at different places of its key")
    return Apart(tuple(candidates), _of_tables(program, written))


def _of_tables(program: Program, written: set[str]) -> str:
    """Where the rows of tables lie."""
    named = {one.table for rule in program.rules for one in rows_named(rule)}
    there = [table.name for table in program.file.tables if table.name in named]
    mine, others = ([name for name in there if (name in written) is is_written] for is_written in (True, False))
    words = [f"it names the rows of {', '.join(mine)}"] if mine else []
    words += [f"each task has all rows of {', '.join(others)}, which no rule writes"] if others else []
    return ", and ".join(words)


def _is_of_one_event(rule: CompiledRule) -> bool:
    """Whether each event is a match of its own, or none, whatever other events there are."""
    plan = rule.plan
    is_alone = plan.counted == "nothing" and not plan.looks_to_the_start and plan.query.selection.is_all
    return isinstance(plan.query.pattern, Atom) and is_alone


def _keys(rule: CompiledRule, roles: Roles) -> list[str]:
    return [] if rule.plan.counted == "stream" else [roles.column(name) for name in rule.plan.keys]


def rows_named(rule: CompiledRule) -> Iterator[Access]:
    """The rows that a rule names, also within the keys of others."""
    for write in rule.writes:
        yield Access(rule.name, write.table, write.key)
    for column in rule.reads:
        yield Access(rule.name, column.table, column.keys)
    read = (node for one in (*rule.conditions, *rule.late, *_values(rule)) for node in walk(one))
    for node in read:
        if isinstance(node, Read):
            yield Access(rule.name, node.table, node.keys)


def _values(rule: CompiledRule) -> Iterator[Expression]:
    for write in rule.writes:
        yield from write.key
        yield from (one.value for one in write.sets)


def _names(one: Access, roles: Roles) -> list[str | None]:
    """The columns of events that stand in a key, by their places; None: something else does."""
    return [
        roles.column(part.name) if isinstance(part, Attribute) and part.name and not is_old(part) else None
        for part in one.key
    ]
