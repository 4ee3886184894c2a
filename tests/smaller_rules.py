"""Shrink a world of rules that fails: leave out events, rules, tables' rows, actions, conditions and clauses."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from acep_approx.errors import AcepError
from acep_approx.query.rules.checks import check_rules
from acep_approx.query.rules.parser import parse_rules
from acep_approx.query.rules.printer import to_text
from acep_approx.query.rules.syntax import Rule, RuleFile, Write
from acep_approx.query.syntax import LISTS_ALL
from tests.rule_worlds import RuleWorld
from tests.smaller_worlds import smaller_queries


def smallest_rules(world: RuleWorld, fails: Callable[[RuleWorld], object]) -> RuleWorld:
    """A world that fails like ``world``, of which nothing can be left out.

    ``fails``: whether a world fails; for example that ``disagreement`` of ``rule_runs`` says something.
    """
    for smaller in smaller_rule_worlds(world):
        try:
            failed = bool(fails(smaller))
        except AcepError:
            continue
        except Exception:  # noqa: BLE001  whatever it is, a smaller world shows it better
            failed = True
        if failed:
            return smallest_rules(smaller, fails)
    return world


def smaller_rule_worlds(world: RuleWorld) -> Iterator[RuleWorld]:
    """Worlds with one thing less, as far as the checks let them be; large parts of the stream come first."""
    size = len(world.rows)
    for length in (size // 2, size // 4, 1):
        for i in range(0, size if length else 0, length or 1):
            cuts = tuple(cut if cut <= i else max(i, cut - length) for cut in world.cuts)
            yield replace(world, rows=(*world.rows[:i], *world.rows[i + length :]), cuts=cuts)
    for i in range(len(world.cuts)):
        yield replace(world, cuts=(*world.cuts[:i], *world.cuts[i + 1 :]))
    for name, rows in world.tables.items():
        for i in range(len(rows)):
            yield replace(world, tables={**world.tables, name: [*rows[:i], *rows[i + 1 :]]})
    for file in smaller_files(world.file):
        try:
            text = to_text(file)
            check_rules(parse_rules(text))
        except AcepError:
            continue
        known = {table.name for table in file.tables}
        yield replace(world, text=text, tables={name: rows for name, rows in world.tables.items() if name in known})


def smaller_files(file: RuleFile) -> Iterator[RuleFile]:
    """Files with one table or one rule less, or a smaller rule."""
    for i in range(len(file.rules)):
        yield replace(file, rules=(*file.rules[:i], *file.rules[i + 1 :]))
    for i in range(len(file.tables)):
        yield replace(file, tables=(*file.tables[:i], *file.tables[i + 1 :]))
    for i, rule in enumerate(file.rules):
        for smaller in smaller_rules(rule):
            yield replace(file, rules=(*file.rules[:i], smaller, *file.rules[i + 1 :]))


def smaller_rules(rule: Rule) -> Iterator[Rule]:
    """Rules with one thing less."""
    for i, action in enumerate(rule.actions):
        yield replace(rule, actions=(*rule.actions[:i], *rule.actions[i + 1 :]))
        sets = action.sets if isinstance(action, Write) else ()
        for j in range(len(sets) if len(sets) > 1 else 0):
            smaller = replace(action, sets=(*sets[:j], *sets[j + 1 :]))  # type: ignore[call-arg]
            yield replace(rule, actions=(*rule.actions[:i], smaller, *rule.actions[i + 1 :]))
    if rule.when is not None:
        yield replace(rule, when=None)
    if rule.each == "point":
        yield replace(rule, each="match")
    for i in range(len(rule.query.outputs)):
        outputs = (*rule.query.outputs[:i], *rule.query.outputs[i + 1 :])
        yield replace(rule, query=replace(rule.query, outputs=outputs))
    if rule.query.errors:
        yield replace(rule, query=replace(rule.query, errors=0, weights=()))
    is_plain = rule.query.selection.is_all and rule.query.strategy == "skip_till_any_match"
    if not is_plain or rule.query.is_simultaneous:
        plain = replace(rule.query, selection=LISTS_ALL, strategy="skip_till_any_match", is_simultaneous=False)
        yield replace(rule, query=plain)
    for query in smaller_queries(rule.query):
        yield replace(rule, query=query)
