"""WHEN as conditions on the event that completes a match, with columns in the places of what it reads."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from acep_approx.automaton.letters import unbound
from acep_approx.query.printer import to_text
from acep_approx.query.shape import replaced, walk
from acep_approx.query.syntax import Aggregate, Attribute, Expression, Read
from acep_approx.rules.compiled import CompiledRule, ReadColumn, always_last
from acep_approx.rules.lockstep.conditions import NotATestError


@dataclass(frozen=True)
class When:
    """Conditions over one event, whose attributes name no variable, and the columns that it needs for them."""

    conditions: tuple[Expression, ...]
    reads: tuple[ReadColumn, ...]


def when_of(rule: CompiledRule) -> When:
    """What WHEN asks of the event that completes a match.

    Raises
    ------
    NotATestError
        It asks something of other events.
    """
    last, reads = always_last(rule.plan.query), dict[ReadColumn, None]()
    for condition in rule.conditions:
        for node in walk(condition):
            if isinstance(node, Aggregate) or (isinstance(node, Attribute) and node.variable != last):
                raise NotATestError(f"WHEN asks something of another event than the last one, {to_text(node)}")

    def as_attribute(node: Expression) -> Expression | None:
        if not isinstance(node, Read):
            return None
        column = ReadColumn(node.table, tuple(map(unbound, node.keys)), node.column)
        reads[column] = None
        return Attribute(last, None, column.name)

    conditions = tuple(unbound(replaced(one, as_attribute)) for one in rule.conditions)
    return When(conditions, tuple(reads))


def reads_of_circle(rules: Iterable[CompiledRule]) -> list[ReadColumn]:
    """The columns that the events of some rules get from the store, for WHEN, too."""
    return [*dict.fromkeys(read for rule in rules for read in (*rule.reads, *when_of(rule).reads))]
