"""A plan for the columns that a stream has: where a query in CEL finds its attributes, and whether ticks are times."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import TypeGuard

import pyarrow as pa

from acep_approx.automaton.algebra import Shows
from acep_approx.events.columns import plain_type
from acep_approx.events.keys import can_be_key
from acep_approx.events.roles import Roles
from acep_approx.events.time import PER_SECOND, tick_unit
from acep_approx.matching.fitting import kinds_of, with_text
from acep_approx.matching.stream_batch import check_starts
from acep_approx.planning.cel import plan_for
from acep_approx.planning.planner import Plan
from acep_approx.planning.planner import plan as planned
from acep_approx.query.functions import FUNCTIONS
from acep_approx.query.shape import of_expressions, replaced, walk, with_operands
from acep_approx.query.syntax import (
    Aggregate,
    Apply,
    Attribute,
    Between,
    Binary,
    Constant,
    Expression,
    Lasting,
    Moment,
    Unary,
)
from acep_approx.query.types import Kind

Columns = Mapping[str, tuple[str, ...]]
"""The columns of the events of each stream that a query in CEL reads."""


def bound(plan: Plan, schema: pa.Schema, roles: Roles, columns: Columns, shows: Shows) -> Plan:
    """The plan of a query in CEL for the events of a stream; of any other query its plan.

    Parameters
    ----------
    plan : Plan
    schema : pyarrow.Schema
        Of all events.
    roles : Roles
    columns : mapping of str to tuple of str
    shows : {"all", "start", "nothing"}
        What is asked of the results; see ``choice.Way``.

    Raises
    ------
    DataError
        See ``check_starts``.
    QueryError
        See ``plan_for``.
    """
    if plan.cel is None:
        return plan
    check_starts(schema, roles)
    made = plan_for(plan, columns, roles, is_time=has_times(plan, schema, roles), shows=shows)
    return with_usable_key(made, schema, roles)


def with_times(plan: Plan, schema: pa.Schema, roles: Roles) -> Plan:
    """A plan in which the times of the events are times, though they come as numbers of a unit or as texts."""
    known = kinds_of(schema, roles)
    if roles.unit in PER_SECOND and known[roles.time] == "number":  # else they are digits of dates
        change = _of_numbers(known, roles)
    elif roles.unit is None and roles.time_format is None and known[roles.time] == "string":
        change = _of_texts(known, roles)
    else:
        return plan
    found = of_expressions(plan.query, change)
    if found == plan.query:
        return plan
    return replace(planned(found, plan.engine), implied_key=plan.implied_key)


def _of_texts(known: Mapping[str, Kind], roles: Roles) -> Callable[[Expression], Expression]:
    """Read texts as times where a time is asked for, as in ``b.ts - a.ts < 10 s`` or ``hour(a.ts)``, and only there."""
    names = {"ts", roles.time}

    def is_moment(node: Expression) -> bool:
        if isinstance(node, Attribute):
            return known.get(node.name) == "time"
        if isinstance(node, Apply):
            function = FUNCTIONS[node.name]
            return function.result == "time" or (function.result == "same" and any(map(is_moment, node.arguments)))
        if isinstance(node, Binary) and node.op in ("+", "-"):
            return is_moment(node.left) != is_moment(node.right)
        return False

    def read(node: Expression) -> Expression:
        return Apply("to_time", (node,), node.span) if isinstance(node, Attribute) and node.name in names else node

    def finish(node: Expression) -> Expression:
        asks = _is_of_times(node) or (isinstance(node, Binary) and node.op in ("+", "-"))
        return with_operands(node, read) if asks or any(map(is_moment, _compared(node))) else node

    return lambda expression: replaced(expression, lambda _: None, finish)


def _compared(node: Expression) -> tuple[Expression, ...]:
    """The values in a node that are of one kind."""
    match node:
        case Binary(left=left, right=right):
            return left, right
        case Between(operand=operand, low=low, high=high):
            return operand, low, high
        case Apply(name=name, arguments=arguments) if FUNCTIONS[name].result == "same":
            return arguments
    return ()


def _is_of_times(node: Expression) -> TypeGuard[Apply]:
    return isinstance(node, Apply) and FUNCTIONS[node.name].wanted(0) == "time"


def _of_numbers(known: Mapping[str, Kind], roles: Roles) -> Callable[[Expression], Expression]:
    """Make durations beside such numbers numbers of their unit, too: ``b.ts - a.ts < 10 s``.

    They stay durations where a comparison names another column of times. ``hour`` and its kind get the times that the
    numbers stand for.
    """
    per_second, names = PER_SECOND[str(roles.unit)], {"ts", roles.time}

    def as_time(node: Expression) -> Expression | None:
        if _is_of_times(node) and not any(isinstance(getattr(one, "value", None), Moment) for one in walk(node)):
            return replace(node, arguments=tuple(replaced(one, moment) for one in node.arguments))
        return None

    def moment(node: Expression) -> Expression | None:
        if isinstance(node, Attribute | Aggregate) and node.name in names:
            counts = Binary("/", node, Constant(1000)) if roles.unit == "ns" else node
            since = Binary("*", counts, Lasting(1, "us" if roles.unit == "ns" else str(roles.unit)))
            return Binary("+", Constant(Moment("1970-01-01")), since)
        return None

    def count(node: Expression) -> Expression | None:
        if _is_of_times(node):
            return node
        if isinstance(node, Lasting):
            exact = Fraction(node.microseconds * per_second, 10**6)
            return Constant(int(exact) if exact.denominator == 1 else float(exact), node.span)
        return None

    def counted(node: Expression) -> Expression | None:
        if isinstance(node, Unary | Binary) and node.op in ("AND", "OR", "NOT"):
            return None
        named = {one.name for one in walk(node) if isinstance(one, Attribute | Aggregate)}
        is_counted = named & names and not any(name and known.get(name) == "time" for name in named)
        return replaced(node, count) if is_counted else node

    return lambda expression: replaced(replaced(expression, as_time), counted)


def with_usable_key(plan: Plan, schema: pa.Schema, roles: Roles) -> Plan:
    """A plan without its implied key where the column cannot split the stream; the results are the same."""
    key = plan.implied_key
    if key is None or can_be_key(plain_type(schema.field(roles.column(key)).type)):
        return plan
    return replace(plan, implied_key=None)


def has_times(plan: Plan, schema: pa.Schema, roles: Roles) -> bool:
    """Whether ticks are real time; while no event has come to say so, what the window asks for."""
    time = pa.schema([schema.field(roles.time)])
    type_, unit = with_text(time, {roles.time}).field(0).type, roles.unit
    if pa.types.is_null(type_) and unit is None:
        return plan.query.window.unit != "ticks"
    return tick_unit(type_, unit) is not None
