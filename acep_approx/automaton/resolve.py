"""Conditions across events: when each can be decided, and what of it an arc sees in the current event and in registers.

A resolved expression is a tree of the query language whose leaves are constants, ``Own`` and ``Held``.

Source: Agrawal et al., SIGMOD 2008, section 3.2 step 2: each conjunct is placed where its last identifier is bound.
Deviation: the paper knows patterns that are one chain of components; here the order of variables depends on the way
through the pattern, so a conjunct is placed on every arc at which it may be decided.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import count
from typing import Any

from acep_approx.automaton.letters import unbound
from acep_approx.query.functions import ACROSS_EVENTS
from acep_approx.query.shape import (
    MIRRORED,
    is_of_each,
    is_static,
    kleene_variables,
    negated_variables,
    operands,
    variables,
    walk,
    with_operands,
)
from acep_approx.query.syntax import Aggregate, Apply, Attribute, Between, Binary, Expression, FunctionCall, QuerySyntax

FILTERED = frozenset({"count distinct", "stddev"})
"""Aggregates that no register holds: complete matches are tested with them."""
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
    def least(self) -> dict[str, int]:
        """How many events each of its variables must have, so that it is about something: 3 for ``a[3].x``."""
        found = dict.fromkeys(self.names, 1)
        for leaf in leaves(self.expression):
            number = leaf.upto if isinstance(leaf, Aggregate) else leaf.index
            if isinstance(number, int):
                found[str(leaf.variable)] = max(found[str(leaf.variable)], number)
        return found

    @cached_property
    def needs(self) -> frozenset[str]:
        """What must be bound: its variables, and the events of them up to those that it names by their numbers."""
        return bound_by(self.least)

    @cached_property
    def each(self) -> frozenset[str]:
        """The Kleene variables of which it must hold for every event: ``a.x``, ``a[i].x``, ``a[i-1].x``."""
        return frozenset(
            str(leaf.variable)
            for leaf in leaves(self.expression)
            if leaf.variable in self.kleene
            and (leaf.prior if isinstance(leaf, Aggregate) else is_of_each(leaf))
        )

    @cached_property
    def whole(self) -> frozenset[str]:
        """The variables of which all events must be known: ``a[a.LEN].x``, ``sum(a[].x)``."""
        return frozenset(
            str(leaf.variable)
            for leaf in leaves(self.expression)
            if (not (leaf.prior or leaf.upto) if isinstance(leaf, Aggregate) else leaf.index == "last")
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
        return self.needs <= bound and not self.whole & to_come

    def bounds(self, variable: str) -> tuple[tuple[str, Expression, Expression], ...]:
        """Comparisons ``(op, own, other)`` that say the same of all events of ``variable``; empty if there are none.

        ``own`` is about one event of ``variable`` alone, ``other`` does not range over its events: then the greatest
        or least ``own`` of the events bound so far decides.
        """
        match self.expression:
            case Binary(op=op, left=left, right=right) if op in FLIPPED:
                for side, other, sign in ((left, right, op), (right, left, FLIPPED[op])):
                    if (
                        is_static(side)
                        and variables(side) == {variable}
                        and variable not in Condition(other, self.kleene).each
                    ):
                        return ((sign, side, other),)
        return ()


Leaf = Attribute | Aggregate


def numbered(variable: str, number: int) -> str:
    """The name of an event of a variable among what is bound.

    Examples
    --------
    >>> numbered("a", 1), numbered("a", 2)
    ('a', 'a[2]')
    """
    return variable if number == 1 else f"{variable}[{number}]"


def bound_by(counts: Mapping[str, int]) -> frozenset[str]:
    """Return the variables of ``counts``, and the events of each from the second to its number, by their names."""
    return frozenset(numbered(name, at) for name, count in counts.items() for at in range(1, count + 1))


def leaves(expression: Expression) -> Iterator[Attribute | Aggregate]:
    """The attributes and aggregates of an expression that name a variable."""
    for node in walk(expression):
        if isinstance(node, (Attribute, Aggregate)) and node.variable is not None:
            yield node


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


@dataclass(frozen=True)
class Register:
    """A value that a run carries.

    ``kind``: ``value`` (of the one event of ``variable``, or of one that is ``numbered``), ``first``, ``last``,
    ``count``, ``counted`` (not NULL), ``sum``, ``min``, ``max`` (they skip NULL, as SQL does), ``least``, ``greatest``
    (NULL once an event has NULL), and ``place`` (of the event bound last). ``of`` is what is taken of each event, its
    variable left out. A register of kind ``computed`` has a name of its own in the place of the variable, and ``holds``
    values that steps give it: ``int``, ``float``, ``truth``, ``time`` or ``text``. Where it does not say so, the
    columns do: it holds what can hold the values of all expressions in ``like``, which are about one event. ``says`` is
    what it holds in the words of the query, where it is no attribute. ``upto``: of so many first events; 0: of all.
    """

    kind: str
    variable: str
    of: Expression | None = None
    holds: str = ""
    like: tuple[Expression, ...] = ()
    says: Expression | None = None
    upto: int = 0


@dataclass(frozen=True)
class Own:
    """A value of the current event, which no register can change."""

    value: Expression


@dataclass(frozen=True)
class Held:
    """The value of a register: before the current event was bound, or after (``updated``)."""

    register: Register
    updated: bool = False


@dataclass(frozen=True)
class Call:
    """What a function gives for registers of the run, values of the event and constants."""

    name: str
    arguments: tuple[Resolved, ...]


Resolved = Any
"""An expression with ``Own`` and ``Held`` in the places of attributes and aggregates; or ``Call``."""


@dataclass(frozen=True)
class Binding:
    """The current event is bound to ``variable`` by a run that has bound ``bound``; None: nothing is bound any more.

    ``bound`` has variables and, as far as conditions to come name them by number, their further events (``numbered``).
    """

    variable: str | None
    bound: frozenset[str]

    @property
    def is_first(self) -> bool:
        """Whether it is the first event of its variable."""
        return self.variable not in self.bound

    @cached_property
    def number(self) -> int:
        """Which event of its variable it is, as far as conditions to come ask for it."""
        return next(at for at in count(1) if numbered(str(self.variable), at) not in self.bound)

    @cached_property
    def binds(self) -> frozenset[str]:
        """What is bound once it is: its variable, and it by its number."""
        return frozenset((str(self.variable), numbered(str(self.variable), self.number)))


def resolve(expression: Expression, binding: Binding) -> Resolved:  # noqa: PLR0911  one for each kind of node
    """``expression`` as an arc with this binding sees it.

    Parameters
    ----------
    expression : Expression
        It must not range over several events that are bound already.
    binding : Binding
    """
    found = list(leaves(expression))
    if found and all(_is_own(leaf, binding) for leaf in found):
        return Own(unbound(expression))
    if is_static(expression):
        (variable,) = variables(expression)
        return Held(Register("value", variable, unbound(expression)))
    if isinstance(expression, Apply) and expression.name not in ACROSS_EVENTS:
        if expression.name != "IN":
            return _of_one_event(expression, binding)
        return Call("IN", tuple(_of_one_event(argument, binding) for argument in expression.arguments))
    if isinstance(expression, FunctionCall):
        return Call(expression.name, tuple(_of_one_event(argument, binding) for argument in expression.arguments))
    if isinstance(expression, Attribute):
        return Held(_register_of(expression, _plain(expression.name)))
    if isinstance(expression, Aggregate):
        return _aggregate(expression, binding)
    return with_operands(expression, lambda part: resolve(part, binding))


def _of_one_event(expression: Expression, binding: Binding) -> Resolved:
    """What is of one event: a value of the current one, or one that a register holds; a constant as it is."""
    events = {replace(leaf, name="") for leaf in leaves(expression) if isinstance(leaf, Attribute)}
    if not events or all(_is_own(event, binding) for event in events) or is_static(expression):
        return resolve(expression, binding)
    (event,) = events
    return Held(_register_of(event, unbound(expression)))


def _register_of(event: Attribute, of: Expression) -> Register:
    if isinstance(event.index, int):
        return Register("value", numbered(str(event.variable), event.index), of)
    kind = "last" if event.index in ("previous", "last") else "first"
    return Register(kind, str(event.variable), of)


def resolve_bound(op: str, own: Expression, other: Expression, variable: str, binding: Binding) -> list[Resolved]:
    """``own op other`` for all events of ``variable``, by the greatest or the least of ``own``."""
    updated = binding.variable == variable
    kinds = {"<": ("greatest",), "<=": ("greatest",), ">": ("least",), ">=": ("least",), "=": ("least", "greatest")}
    right = resolve(other, binding)
    registers = [Register(kind, variable, unbound(own)) for kind in kinds[op]]
    return [Binary(op, Held(register, updated), right) for register in registers]  # type: ignore[arg-type]


def _is_own(leaf: Attribute | Aggregate, binding: Binding) -> bool:
    if leaf.variable != binding.variable:
        return False
    if isinstance(leaf, Attribute):
        is_it = binding.is_first if leaf.index == "first" else leaf.index == binding.number
        return leaf.index in (None, "current", "last") or is_it
    return False


def _aggregate(leaf: Aggregate, binding: Binding) -> Resolved:
    variable, updated = leaf.variable, leaf.variable == binding.variable and not leaf.prior
    if leaf.function in ("first", "last") and not leaf.upto:
        assert leaf.name is not None
        if updated and (leaf.function == "last" or binding.is_first):
            return Own(_plain(leaf.name))
        return Held(Register(leaf.function, variable, _plain(leaf.name)))
    upto = leaf.upto or 0
    if leaf.name is None:
        return Held(Register("count", variable, upto=upto), updated)
    of = _plain(leaf.name)
    counted = Held(Register("counted", variable, of, upto=upto), updated)
    if leaf.function == "count":
        return counted
    if leaf.function == "avg":
        return Binary("/", Held(Register("sum", variable, of, upto=upto), updated), counted)  # type: ignore[arg-type]
    return Held(Register(leaf.function, variable, of, upto=upto), updated)


def _plain(name: str) -> Attribute:
    return Attribute(None, None, name)


def held(resolved: Resolved) -> set[Held]:
    """The register values in a resolved expression."""
    if isinstance(resolved, Held):
        return {resolved}
    if isinstance(resolved, Own):
        return set()
    return {found for part in operands(resolved) for found in held(part)}


def calls(resolved: Resolved) -> bool:
    """Whether something is called in a resolved expression."""
    if isinstance(resolved, Call):
        return True
    return not isinstance(resolved, Own | Held) and any(map(calls, operands(resolved)))


def equality(check: Resolved) -> tuple[Register, Expression] | None:
    """The register that a condition compares for equality with a value of the event, and that value."""
    match check:
        case (
            Binary(op="=", left=Held(register=register, updated=False), right=Own(value=value))
            | Binary(op="=", left=Own(value=value), right=Held(register=register, updated=False))
        ):
            return register, value
    return None


def checks_of(condition: Condition, binding: Binding, again: frozenset[str]) -> list[Resolved] | None:
    """What decides ``condition`` at a binding; None if no registers can.

    Parameters
    ----------
    condition : Condition
        Decided once the event is bound.
    binding : Binding
    again : frozenset of str
        Variables of which the events bound before have not been tested, because something else was not known.
    """
    if binding.variable in condition.looks_back and binding.is_first:
        return []
    if any(isinstance(leaf, Aggregate) and leaf.function in FILTERED for leaf in leaves(condition.expression)):
        return None
    past = (condition.each - {binding.variable}) | (condition.each & again & binding.bound)
    if not past:
        return [resolve(condition.expression, binding)]
    if len(past) == 1:
        (variable,) = past
        for op, own, other in condition.bounds(variable):
            if condition.each <= past | {binding.variable}:
                return resolve_bound(op, own, other, variable, binding)
    return None
