"""Calls of functions that the grammar lets pass: wrong numbers of arguments, patterns that are none, several events."""

from __future__ import annotations

from acep_approx.query.functions import ACROSS_EVENTS, FUNCTIONS, MOST_DIGITS, Function
from acep_approx.query.printer import to_text
from acep_approx.query.shape import naming, walk
from acep_approx.query.syntax import (
    Aggregate,
    Apply,
    Attribute,
    Constant,
    Expression,
    FunctionCall,
    Index,
    RegisterValue,
    Written,
)


def check_functions(query: Written, expression: Expression, *, is_condition: bool) -> None:
    """Check the calls in an expression.

    Parameters
    ----------
    query : Written
        What it belongs to.
    expression : Expression
    is_condition : bool
        Whether it is tested while events come, and not only computed of complete matches.

    Raises
    ------
    QueryError
        ACEP-Q170 (events of several variables), Q171 (number of arguments), Q172 (an argument that is no constant, or
        out of range), Q174 (a pattern that is none).
    """
    for node in walk(expression):
        if isinstance(node, Apply):
            function = FUNCTIONS[node.name]
            _check_number(query, node, function)
            _check_constants(query, node, function)
            if is_condition and node.name == "IN":
                check_arguments(query, node)
            elif is_condition and node.name not in ACROSS_EVENTS:
                _check_events(query, node)


def _check_number(query: Written, call: Apply, function: Function) -> None:
    given, most = len(call.arguments), len(function.arguments)
    least = most - function.optional
    if given < least or (given > most and not function.repeats):
        several = f"{least} or {most}" if least < most else f"{most}{' or more' if function.repeats else ''}"
        message = f"{call.name} has {several} argument{'s' if several != '1' else ''}, and not {given}"
        query.fail("ACEP-Q171", message, call.span, f"write {usage(function)}")


def usage(function: Function) -> str:
    """How a function is called.

    Examples
    --------
    >>> usage(FUNCTIONS["substr"]), usage(FUNCTIONS["least"]), usage(FUNCTIONS["matches"])
    ('substr(a.name, 1, 1)', 'least(a.x, a.y)', "matches(a.name, 'text')")
    """
    if function.name in ("LIKE", "ILIKE"):
        return f"a.name {function.name} '%text%'"
    if function.name == "IN":
        return "a.ip IN b.ips"
    if function.repeats:
        return f"{function.name}(a.x, a.y)"
    shown = {"string": ("a.name", "'text'"), "number": ("a.x", "1"), "time": ("a.ts", "'2013-01-31'")}
    given = (shown[kind][function.is_constant(place)] for place, kind in enumerate(function.arguments))
    return f"{function.name}({', '.join(given)})"


def _check_constants(query: Written, call: Apply, function: Function) -> None:
    for place, argument in enumerate(call.arguments):
        if not function.is_constant(place):
            continue
        wanted = str if function.wanted(place) == "string" else int
        value = argument.value if isinstance(argument, Constant) else None
        if not isinstance(value, wanted) or isinstance(value, bool):
            kind = "text in quotes" if wanted is str else "whole number"
            hint = f"write {usage(function)}"
            query.fail("ACEP-Q172", f"{call.name} needs a constant {kind} here", argument.span, hint)
        if isinstance(value, str):
            _check_pattern(query, call, value, argument)
        else:
            _check_range(query, call, int(value), place, argument)


def _check_range(query: Written, call: Apply, value: int, place: int, argument: Expression) -> None:
    least, most = (0, MOST_DIGITS) if call.name == "round" else (1 if place == 1 else 0, 2**31 - 1)
    if not least <= value <= most:
        hint = "substr(a.name, 1, 3) are the first three characters"
        if call.name == "round":
            hint = f"it is the number of digits behind the point, 0 to {MOST_DIGITS}"
        query.fail("ACEP-Q172", f"{value} is out of range for {call.name}", argument.span, hint)


def _check_pattern(query: Written, call: Apply, pattern: str, argument: Expression) -> None:
    if call.name in ("LIKE", "ILIKE"):
        ahead = len(pattern) - len(pattern.rstrip("\\"))
        if ahead % 2:
            hint = r"a backslash stands before %, _ or \ that is meant itself: write \\ at the end"
            query.fail("ACEP-Q174", "the pattern ends with a backslash that stands before nothing", argument.span, hint)
    if call.name == "matches":
        import pyarrow as pa
        import pyarrow.compute as pc

        try:
            pc.match_substring_regex(pa.array([""]), pattern)
        except pa.ArrowInvalid as error:
            hint = "it is a regular expression of RE2, which has no look-around and no back references"
            message = f"the regular expression cannot be read: {str(error).rpartition('regular expression: ')[2]}"
            query.fail("ACEP-Q174", message, argument.span, hint)


def check_arguments(query: Written, call: Apply | FunctionCall) -> None:
    """Refuse arguments that are not of one event: runs keep one value of each.

    Raises
    ------
    QueryError
        ``ACEP-Q177``.
    """
    for part in call.arguments:
        of = {(node.variable, node.index) for node in naming(part) if isinstance(node, Attribute)}
        several = [node for node in walk(part) if isinstance(node, Aggregate | RegisterValue)]
        if several or len(of) > 1 or not (of or isinstance(part, Constant)):
            hint = f"an argument of {call.name} is of one event, or a constant: {call.name}(a.x, b.y)"
            if call.name == "IN":
                hint = "look for an attribute of one event, or a constant, in a list of one event: b.ip IN a.ips"
            query.fail("ACEP-Q177", f"{to_text(part)} is not of one event", part.span, hint)


def _check_events(query: Written, call: Apply) -> None:
    """A function of texts reads one event, so that it is computed once for it, and not for each pair of events."""
    seen: set[tuple[str | None, Index | None]] = set()
    for node in walk(call):
        if isinstance(node, Aggregate | RegisterValue):
            hint = f"{call.name} reads an attribute of one event; RETURN can call it of aggregates"
            if isinstance(node, RegisterValue) and call.name.islower():
                hint = f"call it where the register is set: SET {node.name} = {call.name}(t.x)"
            query.fail("ACEP-Q170", f"{call.name} of {to_text(node)} in a condition", call.span, hint)
    for node in naming(call):
        index = None if isinstance(node, Aggregate) or node.index == "current" else node.index
        seen.add((node.variable, index))
    if len(seen) > 1:
        hint = f"call {call.name} once for each event, and compare what it gives: lower(a.name) = lower(b.name)"
        query.fail("ACEP-Q170", f"{call.name} names several events", call.span, hint)
