"""Expressions of CEL over what a run holds and the current event, and what kind of values they give."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from acep_approx.automaton.resolve import Held, Own, Resolved
from acep_approx.automaton.transfers import Began, Now
from acep_approx.query.cel.syntax import FIRST, SECOND
from acep_approx.query.shape import PARTS, is_node, replaced, walk
from acep_approx.query.syntax import Attribute, Binary, Constant, Expression, Lasting, Parameter, Unary

Values = Mapping[str, Resolved]
"""What attributes are, by their names."""
_ARITHMETIC = ("+", "-", "*", "%")


def leaves(node: Resolved) -> Iterator[Resolved]:
    """What a node reads of a run and an event: ``Own``, ``Held``, ``Now`` and ``Began``, in the order of the text."""
    if isinstance(node, Own | Held | Now | Began):
        yield node
        return
    for part in operands(node):
        yield from leaves(part)


@dataclass(frozen=True, eq=False)
class Ticks(Constant):
    """A length of time in ticks, with how the query writes it."""

    written: Lasting | None = None


def substituted(expression: Expression, scope: Mapping[str, Values], ticks: Callable[[Lasting], int]) -> Resolved:
    """An expression with what attributes are in their places.

    Parameters
    ----------
    expression : Expression
        Its attributes are decorated.
    scope : mapping of str to Values
        By decorator what its attributes are.
    ticks : callable
        Gives the ticks of a length of time.

    Returns
    -------
    Resolved
        What is about the current event alone is one ``Own``.
    """
    match expression:
        case Attribute(variable=side, name=name):
            return scope[str(side)][name]
        case Lasting():
            return Ticks(ticks(expression), written=expression)
        case Parameter(name=name):  # a column of the current event, which its query brings
            return Own(Attribute(None, None, f":{name}"))
    return gathered(_with_parts(expression, lambda part: substituted(part, scope, ticks)))


def with_bounds(conditions: Sequence[Expression]) -> tuple[tuple[Expression, ...], dict[str, Expression]]:
    """Conditions of NEXT in which what is computed of the first input and compared with the second has a name.

    So it is computed once, when a run comes to wait, and runs wait for an event beyond it. Only numbers with fractions
    are: whole ones may pass 64 bits, which is told when they are compared.

    Parameters
    ----------
    conditions : sequence of Expression
        Their attributes are decorated.

    Returns
    -------
    conditions : tuple of Expression
    bounds : dict of str to Expression
        What the names stand for; no attribute can have them.
    """
    bounds: dict[str, Expression] = {}

    def named(one: Expression, other: Expression) -> Expression:
        has_fraction = any(isinstance(node, Constant) and isinstance(node.value, float) for node in walk(one))
        if not isinstance(one, Binary) or not has_fraction or _sides(one) != {FIRST} or _sides(other) != {SECOND}:
            return one
        name = f"$bound{len(bounds)}"
        bounds[name] = one
        return Attribute(FIRST, None, name, span=one.span)

    found: list[Expression] = []
    for condition in conditions:
        if isinstance(condition, Binary) and condition.op in ("<", "<=", ">", ">="):
            left, right = condition.left, condition.right
            found.append(replace(condition, left=named(left, right), right=named(right, left)))
        else:
            found.append(condition)
    return tuple(found), bounds


def _sides(expression: Expression) -> set[str | None]:
    return {node.variable for node in walk(expression) if isinstance(node, Attribute)}


def rewritten(node: Resolved, change: Callable[[Resolved], Any]) -> Any:
    """A node in which ``change`` replaces what it knows; it gives None for the rest, whose parts are looked at."""
    found = change(node)
    return _with_parts(node, lambda part: rewritten(part, change)) if found is None else found


def of_one_event(expression: Expression, scope: Mapping[str, Values]) -> Expression:
    """An expression with values of one event in the places of attributes, which are of the kinds that these have."""

    def change(node: Expression) -> Expression | None:
        if not isinstance(node, Attribute):
            return None
        return replace(like(scope[str(node.variable)][node.name])[0], span=node.span)

    return replaced(expression, change)


def gathered(node: Resolved) -> Resolved:
    """A node as one value of the current event, if all that it reads is one."""
    parts = operands(node)
    if not any(isinstance(part, Own) for part in parts) or not all(isinstance(part, Own | Constant) for part in parts):
        return node
    return Own(_with_parts(node, lambda part: part.value if isinstance(part, Own) else part))


def like(node: Resolved) -> tuple[Expression, ...]:  # noqa: PLR0911  one for each kind of node
    """Expressions on single events whose values are of the kind that ``node`` has: the widest of them.

    Examples
    --------
    >>> price, half = Own(Attribute(None, None, "price")), Constant(0.5)
    >>> like(Binary("*", price, half)) == (price.value, half)
    True
    """
    match node:
        case Own(value=value):
            return (value,)
        case Held(register=register):
            return register.like or (Constant(0),)
        case Constant():
            return (node,)
        case Now() | Began():
            return (Constant(0),)
        case Unary(op="-", operand=operand):
            return like(operand)
        case Binary(op=op, left=left, right=right) if op in _ARITHMETIC:
            return tuple(dict.fromkeys((*like(left), *like(right))))
        case Binary(op="/"):
            return (Constant(0.5),)
    return (Constant(value=True),)


def operands(node: Resolved) -> list[Resolved]:
    """The operands of a node, those in tuples too."""
    found: list[Resolved] = []
    for name in PARTS[type(node)]:
        value = getattr(node, name)
        if isinstance(value, tuple):
            found += filter(is_node, value)
        elif is_node(value):
            found.append(value)
    return found


def _with_parts(node: Any, change: Callable[[Any], Any]) -> Any:
    """A node with other operands."""
    changed: dict[str, Any] = {}
    for name in PARTS[type(node)]:
        value = getattr(node, name)
        if isinstance(value, tuple) and any(map(is_node, value)):
            changed[name] = tuple(change(one) for one in value)
        elif is_node(value):
            changed[name] = change(value)
    return replace(node, **changed) if changed else node
