"""The obvious evaluator: one row, plain Python, None for NULL. The package never imports it."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from operator import add, eq, ge, gt, le, lt, ne, sub
from typing import Any, Protocol

from acep_approx.query.syntax import (
    Aggregate,
    Apply,
    Attribute,
    Between,
    Binary,
    Constant,
    Expression,
    FunctionCall,
    In,
    IsNull,
    Lasting,
    Read,
    RegisterValue,
    Unary,
)
from tests.naive_functions import call


class Leaves(Protocol):
    """A value for each leaf of an expression."""

    def __getitem__(self, leaf: Any, /) -> Any: ...


def length(written: Lasting) -> timedelta:
    """A length of time, as it is written."""
    seconds = {"us": 1e-6, "ms": 1e-3, "s": 1, "min": 60, "h": 3600, "d": 86_400, "week": 604_800}
    return timedelta(seconds=written.amount * seconds[written.unit])


class OverflowOf64Bits(Exception):
    """A whole number left the range."""


def value_of(expr: Expression, row: Leaves) -> Any:
    """The value of an expression for one row, a dict from attribute, or what is read (the node), to value."""
    match expr:
        case Constant(value=value):
            return clean(value)
        case Attribute() | Aggregate() | Lasting() | Read() | RegisterValue() | FunctionCall():
            return clean(row[expr])
        case Apply(name=name, arguments=arguments):
            return clean(call(name, [value_of(argument, row) for argument in arguments]))
        case Unary(op="NOT", operand=operand):
            return negated(value_of(operand, row))
        case Unary(operand=operand):
            value = value_of(operand, row)
            return None if value is None else clean(-value)
        case Binary(op="AND", left=left, right=right):
            return both(value_of(left, row), value_of(right, row))
        case Binary(op="OR", left=left, right=right):
            return negated(both(negated(value_of(left, row)), negated(value_of(right, row))))
        case Binary(op=op, left=left, right=right):
            return binary(op, value_of(left, row), value_of(right, row))
        case IsNull(operand=operand, negated=is_negated):
            return (value_of(operand, row) is None) != is_negated
        case Between(operand=operand, low=low, high=high, negated=is_negated):
            value = value_of(operand, row)
            found = both(binary("<=", value_of(low, row), value), binary("<=", value, value_of(high, row)))
            return negated(found) if is_negated else found
        case In(operand=operand, values=values, negated=is_negated):
            found = False
            for constant in values:
                equal = binary("=", value_of(operand, row), constant.value)
                found = negated(both(negated(found), negated(equal)))
            return negated(found) if is_negated else found


def both(left: Any, right: Any) -> Any:
    if left is False or right is False:
        return False
    return None if left is None or right is None else True


def negated(value: Any) -> Any:
    return None if value is None else not value


def clean(value: Any) -> Any:
    if isinstance(value, float) and math.isnan(value):
        return None
    if isinstance(value, int) and not isinstance(value, bool) and not -(2**63) <= value < 2**63:
        raise OverflowOf64Bits
    return value


def binary(op: str, left: Any, right: Any) -> Any:
    if left is None or right is None:
        return None
    if isinstance(left, timedelta) or isinstance(right, timedelta):
        return of_durations(op, left, right)
    if isinstance(left, datetime) != isinstance(right, datetime):
        left, right = instant(left), instant(right)
    if op == "-" and isinstance(left, datetime):
        return of_durations(op, left, right)
    if isinstance(left, float) or isinstance(right, float) or op == "/":
        left, right = float(left), float(right)
    match op:
        case "=":
            return left == right
        case "!=":
            return left != right
        case "<":
            return left < right
        case "<=":
            return left <= right
        case ">":
            return left > right
        case ">=":
            return left >= right
        case "+":
            return clean(left + right)
        case "-":
            return clean(left - right)
        case "*":
            return clean(left * right)
        case "/":
            return None if right == 0 else clean(left / right)
        case "%":
            return None if right == 0 else clean(left % right)


def of_durations(op: str, left: Any, right: Any) -> Any:
    """Where times or durations are computed with or compared; parts of a microsecond are cut off."""
    if op not in ("*", "/"):
        return {"+": add, "-": sub, "=": eq, "!=": ne, "<": lt, "<=": le, ">": gt, ">=": ge}[op](left, right)
    if op == "/" and isinstance(right, timedelta):
        return None if not right else left / right
    if isinstance(right, timedelta):
        left, right = right, left
    ticks = left // timedelta(microseconds=1)
    if op == "/":
        return None if right == 0 else timedelta(microseconds=math.trunc(ticks / right))
    return timedelta(microseconds=math.trunc(ticks * right))


def instant(value: Any) -> Any:
    found = datetime.fromisoformat(value) if isinstance(value, str) else value
    return found if found.tzinfo is None else found.astimezone(UTC).replace(tzinfo=None)
