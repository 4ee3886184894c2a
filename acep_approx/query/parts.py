"""Parts of a pattern that have a window of their own: ``(A a, B b) WITHIN 5 min``, in the conditions that say so.

The events that a part binds lie within its window if each event lies within it of the first event of each variable.
"""

from __future__ import annotations

from collections.abc import Iterator

from acep_approx.query.shape import atoms, kleene_variables, negated_variables, walk
from acep_approx.query.syntax import AllOf, Attribute, Binary, Constant, Expression, Lasting, Pattern, Window, Written


def lasting_conditions(query: Written, pattern: Pattern, part: Pattern, window: Window) -> Iterator[Expression]:
    """The conditions of a part of a pattern that has a window of its own.

    Parameters
    ----------
    query : Written
        What errors point into.
    pattern, part : Pattern
    window : Window

    Yields
    ------
    Expression
        Such as ``b.ts - a.ts <= 5 min``; void, as all conditions, without an event of ``a`` or of ``b``.

    Raises
    ------
    QueryError
        ``ACEP-Q089``: the window is no length of time; ``ACEP-Q090``: the part is repeated.
    """
    check_length(query, window)
    kleene, negated = kleene_variables(part), negated_variables(part)
    names = [atom.variable for atom in atoms(part) if atom.variable not in negated]
    if not kleene_variables(pattern) & set(names) <= kleene:
        hint = "give the window to all rounds together, ((A a, B b)+) WITHIN 5 min, or to the query"
        raise query.fault("ACEP-Q090", "a part that is repeated has no window of its own", part.span, hint)
    length: Expression = Constant(window.amount, window.span)
    if window.unit != "ticks":
        length = Lasting(window.amount, window.unit, window.span)
    is_in_order = not any(isinstance(node, AllOf) for node in walk(part))
    for i, first in enumerate(names):
        for j, last in enumerate(names):
            if i < j or {first, last} <= kleene or (i > j and not is_in_order):
                end = Attribute(last, "current" if last in kleene else None, "ts", window.span)
                start = Attribute(first, "first" if first in kleene else None, "ts", window.span)
                yield Binary("<=", Binary("-", end, start, window.span), length, window.span)


def check_length(query: Written, window: Window) -> None:
    """Refuse a window of a part or a negation that is no length of time.

    Raises
    ------
    QueryError
        ``ACEP-Q089``.
    """
    if window.unit == "events" or window.parameter is not None:
        hint = "write a length of time: ~(B b) WITHIN 5 min, or WITHIN 5 in the units of the time column"
        raise query.fault("ACEP-Q089", "the window of a part or of a negation is a length of time", window.span, hint)
