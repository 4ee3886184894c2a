"""Rules of a file that can be run apart: by tables that they share, and in two stages by those that they read alone.

Rules that neither read nor write a table which another one writes have nothing to do with one another. Others can be
cut in two: some rules write tables, the others read these and write other ones. Then the second stage gets the changes
of these tables in the order of the events that made them, and keeps their rows beside its own: ``applying`` are rules
that do so.

Ours; the paper (Wang, Rundensteiner and Ellison, PVLDB 4(10) 2011) runs on one machine.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from acep_approx.query.parser import parse
from acep_approx.query.rules.syntax import Assign, Rule, RuleFile, Table, Write
from acep_approx.query.syntax import Attribute
from acep_approx.rules.apart import apart, rows_named
from acep_approx.rules.program import Program
from acep_approx.run.passing import OWN, column_of

if TYPE_CHECKING:
    from acep_approx.events.roles import Roles
    from acep_approx.rules.compiled import CompiledRule

OP = "what was done"
"""The name of a column of changes that no table has, as it has blanks."""


@dataclass
class Portion:
    """Some rules of a file.

    Attributes
    ----------
    rules : list of CompiledRule
    keys : tuple of str
        The columns by which they can be matched apart; none: all events must be matched together.
    fed : frozenset of str
        The tables whose changes rules of other portions make: it is of the second stage.
    """

    rules: list[CompiledRule]
    keys: tuple[str, ...]
    fed: frozenset[str] = frozenset()


def portions_of(program: Program, roles: Roles) -> list[Portion]:
    """The rules of a program as portions: those of the first stage come first; of one that cannot be cut it is one.

    Portions of one stage whose rules have the same keys are one, and so are those without keys.

    Complexity: O(rules² + rules · accesses).
    """
    links = _Links(program, roles)
    first: list[CompiledRule] = []
    second: list[Portion] = []
    for linked in links.linked(program.rules):
        cut = links.best_cut(linked)
        first += cut or linked
        others = [rule for rule in linked if rule not in cut] if cut else []
        fed = links.written(cut)
        second += [Portion(mine, links.keys(mine), fed & links.named(mine)) for mine in links.linked(others)]
    ones = [Portion(mine, links.keys(mine)) for mine in links.linked(first)]
    return [*links.merged(ones), *links.merged(second)]


def part_of(program: Program, rules: Iterable[CompiledRule]) -> Program:
    """The program of some of its rules, with all tables."""
    return _program(program, [rule.rule for rule in rules])


def fed_with(program: Program, portion: Portion) -> Program:
    """The program of a portion of the second stage: it applies the changes that others make, each as of its event."""
    more = [rule for table in program.file.tables if table.name in portion.fed for rule in applying(table)]
    window = program.file.rules[0].query.window  # of one event any will do, and this is in the unit of the times
    made = [replace(rule, query=replace(rule.query, window=window)) for rule in more]
    return _program(program, [*made, *(rule.rule for rule in portion.rules)])


def applying(table: Table) -> tuple[Rule, ...]:
    """Rules that do to a table what events of the type ``change_of`` say."""

    def said(name: str) -> Attribute:
        return Attribute("c", None, column_of(table.name, name))

    key = tuple(said(column.name) for column in table.keys)
    put = tuple(Assign(column.name, said(column.name)) for column in table.values)
    actions = {"!=": Write("upsert", table.name, key, put), "=": Write("delete", table.name, key)}
    made = []
    for op, action in actions.items():
        on = f"PATTERN '{change_of(table.name)}' c WHERE c.`{column_of(table.name, OP)}` {op} 'delete' WITHIN 1"
        name = f"{OWN}{action.kind} {table.name}"
        made.append(Rule(name, parse(on), actions=(action,)))
    return tuple(made)


def change_of(table: str) -> str:
    """The type of the events that changes of a table are in the second stage."""
    return f"{OWN}{table}"


def _program(program: Program, rules: Sequence[Rule]) -> Program:
    return Program.of(RuleFile(program.file.tables, tuple(rules), text=program.file.text))


class _Links:
    """How rules have to do with one another.

    Parameters
    ----------
    program : Program
    roles : Roles
    """

    def __init__(self, program: Program, roles: Roles) -> None:
        self._program, self._roles = program, roles
        self._named = {rule.number: {one.table for one in rows_named(rule)} for rule in program.rules}
        self._written = {rule.number: {write.table for write in rule.writes} for rule in program.rules}

    def named(self, rules: Iterable[CompiledRule]) -> frozenset[str]:
        """The tables that some rules read or write."""
        return frozenset[str]().union(*(self._named[rule.number] for rule in rules))

    def written(self, rules: Iterable[CompiledRule]) -> frozenset[str]:
        """The tables that some rules write."""
        return frozenset[str]().union(*(self._written[rule.number] for rule in rules))

    def keys(self, rules: Iterable[CompiledRule]) -> tuple[str, ...]:
        """The columns by which some rules can be matched apart."""
        return apart(Program(self._program.file, tuple(rules)), self._roles).keys

    def linked(self, rules: Sequence[CompiledRule]) -> Iterator[list[CompiledRule]]:
        """Some rules, those together that name tables which one of them writes."""
        written, left = self.written(rules), [*rules]
        while left:
            mine = [left.pop(0)]
            while more := [rule for rule in left if written & self.named(mine) & self.named([rule])]:
                mine += more
                left = [rule for rule in left if rule not in more]
            yield sorted(mine, key=lambda rule: rule.number)

    def best_cut(self, rules: list[CompiledRule]) -> list[CompiledRule]:
        """The rules that can be a first stage so that most rules have keys; none where that is of no use."""
        if self.keys(rules) or self._roles.type is None:
            return []
        level, most = self._levels(rules), 0
        best: list[CompiledRule] = []
        for height in range(1, max(level.values()) + 1):
            cut = [rule for rule in rules if level[rule.number] < height]
            others = [rule for rule in rules if level[rule.number] >= height]
            if any(rule.is_late and rule.writes for rule in cut) or any(map(_is_about_all, others)):
                continue
            keyed = [one for side in (cut, others) for mine in self.linked(side) if self.keys(mine) for one in mine]
            if len(keyed) > most:
                best, most = cut, len(keyed)
        for rule in sorted(rules if best else [], key=lambda rule: level[rule.number]):
            if rule not in best and self._goes_with(best, rule, rules):
                best.append(rule)
        return best

    def _goes_with(self, cut: list[CompiledRule], rule: CompiledRule, rules: list[CompiledRule]) -> bool:
        """Whether a rule can be in the first stage, too: it waits for no other, and has the keys of those there."""
        others = [one for one in rules if one is not rule and one not in cut]
        mine = next(some for some in self.linked([*cut, rule]) if rule in some)
        waits = self.named([rule]) & self.written(others) or (rule.is_late and rule.writes)
        return not waits and bool(self.keys(mine))

    def _levels(self, rules: Sequence[CompiledRule]) -> dict[int, int]:
        """How many others a rule comes after; rules that write one table, or form a circle, are at the same place."""
        after = {
            rule.number: {one.number for one in rules if self.written([one]) & self.named([rule])} for rule in rules
        }
        while True:  # all that come before, however far
            before = {number: mine.union(*(after[one] for one in mine)) for number, mine in after.items()}
            if before == after:
                break
            after = before
        alike = {number: {number} | {one for one in mine if number in after[one]} for number, mine in after.items()}
        level: dict[int, int] = {}
        for number in sorted(after, key=lambda one: len(after[one] | alike[one])):
            below = [level[one] for one in after[number] - alike[number]]
            level[number] = 1 + max(below, default=-1)
        return level

    def merged(self, portions: Sequence[Portion]) -> list[Portion]:
        """Portions of one stage, those together that then still have a key."""
        found: list[Portion] = []
        for one in sorted(portions, key=lambda one: (not one.keys, len(one.keys), one.rules[0].number)):
            for other in found:
                keys = self.keys([*other.rules, *one.rules]) if one.keys and other.keys else ()
                if keys or not (one.keys or other.keys):
                    other.rules = sorted([*other.rules, *one.rules], key=lambda rule: rule.number)
                    other.keys, other.fed = keys, other.fed | one.fed
                    break
            else:
                found.append(one)
        return found


def _is_about_all(rule: CompiledRule) -> bool:
    """Whether events of types that it does not name matter to it."""
    plan = rule.plan
    return plan.is_count_window or plan.counted != "nothing" or any(one.type is None for one in plan.letters)
