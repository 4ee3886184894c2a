"""Conditions across events: what each is about, when it can be decided, and what must be remembered to decide it.

Source: Agrawal et al., SIGMOD 2008, section 3.2 step 2: each conjunct is placed where its last identifier is bound.
Deviation: the paper knows patterns that are one chain of components; here the order of variables depends on the way
through the pattern, so a conjunct is placed on every arc at which it may be decided.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from acep_approx.query.predicates import MIRRORED, is_static, variables
from acep_approx.query.shape import kleene_variables, negated_variables, walk
from acep_approx.query.syntax import Aggregate, Attribute, Between, Binary, Expression, QuerySyntax

FLIPPED = {op: other for op, other in MIRRORED.items() if op != "!="}


@dataclass(frozen=True)
class Condition:
    """One conjunct of WHERE that one event alone cannot decide.

    ``kleene`` are the variables of the query that can bind several events; those of negations stand for one each.
    """

    expression: Expression
    kleene: frozenset[str]

    @cached_property
    def names(self) -> frozenset[str]:
        """The variables it names."""
        return variables(self.expression)

    @cached_property
    def each(self) -> frozenset[str]:
        """The Kleene variables of which it must hold for every event: ``a.x``, ``a[i].x``, ``a[i-1].x``."""
        return frozenset(
            str(leaf.variable)
            for leaf in leaves(self.expression)
            if leaf.variable in self.kleene
            and (leaf.prior if isinstance(leaf, Aggregate) else leaf.index in (None, "current", "previous"))
        )

    @cached_property
    def whole(self) -> frozenset[str]:
        """The variables of which all events must be known: ``a[a.LEN].x``, ``sum(a[].x)``."""
        return frozenset(
            str(leaf.variable)
            for leaf in leaves(self.expression)
            if (not leaf.prior if isinstance(leaf, Aggregate) else leaf.index == "last")
        )

    @cached_property
    def looks_back(self) -> frozenset[str]:
        """The variables it compares with their own events before: it says nothing about ``a[1]``."""
        return frozenset(
            str(leaf.variable)
            for leaf in leaves(self.expression)
            if (leaf.prior if isinstance(leaf, Aggregate) else leaf.index == "previous")
        )

    def is_decided(self, bound: frozenset[str], to_come: frozenset[str]) -> bool:
        """Whether it is known once ``bound`` are bound and only ``to_come`` can still be bound."""
        return self.names <= bound and not self.whole & to_come

    def bounds(self, variable: str) -> tuple[tuple[str, Expression, Expression], ...]:
        """Comparisons ``(op, own, other)`` that say the same of all events of ``variable``; empty if there are none.

        ``own`` is about one event of ``variable`` alone, ``other`` does not range over its events: then the greatest
        or least ``own`` of the events bound so far decides.
        """
        match self.expression:
            case Binary(op=op, left=left, right=right) if op in FLIPPED:
                for side, other, sign in ((left, right, op), (right, left, FLIPPED[op])):
                    if _is_own(side, variable) and variable not in Condition(other, self.kleene).each:
                        return ((sign, side, other),)
        return ()


Leaf = Attribute | Aggregate


def leaves(expression: Expression) -> Iterator[Attribute | Aggregate]:
    """The attributes and aggregates of an expression that name a variable."""
    for node in walk(expression):
        if isinstance(node, (Attribute, Aggregate)) and node.variable is not None:
            yield node


def _is_own(expression: Expression, variable: str) -> bool:
    return is_static(expression) and variables(expression) == {variable}


def dynamic_conditions(query: QuerySyntax) -> tuple[Condition, ...]:
    """The conditions of a query that registers must answer: across events, and about no negated variable."""
    negated = negated_variables(query.pattern)
    return tuple(c for c in _all_dynamic(query) if not c.names & negated)


def negation_conditions(query: QuerySyntax) -> dict[str, tuple[Condition, ...]]:
    """Per negated variable the conditions that compare it with other events."""
    negated = negated_variables(query.pattern)
    conditions = [c for c in _all_dynamic(query) if c.names & negated]
    return {name: tuple(c for c in conditions if name in c.names) for name in negated}


def _all_dynamic(query: QuerySyntax) -> Iterator[Condition]:
    kleene = kleene_variables(query.pattern) - negated_variables(query.pattern)
    for predicate in query.predicates:
        if not is_static(predicate):
            for part in _halves(predicate, kleene):
                yield Condition(part, kleene)


def _halves(expression: Expression, kleene: frozenset[str]) -> tuple[Expression, ...]:
    """``x BETWEEN low AND high`` as its two comparisons, where both are about the same events: void together."""
    match expression:
        case Between(operand=operand, low=low, high=high, negated=False, span=span):
            halves = Binary(">=", operand, low, span), Binary("<=", operand, high, span)
            whole = Condition(expression, kleene)
            parts = [Condition(half, kleene) for half in halves]
            if all((p.names, p.looks_back, p.whole) == (whole.names, whole.looks_back, whole.whole) for p in parts):
                return halves
    return (expression,)
