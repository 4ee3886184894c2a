"""Parameters of a template: which there are, their values in their places, or attributes that bring the values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from acep_approx.query.shape import all_expressions, children, replaced, walk, with_expressions, with_operands
from acep_approx.query.syntax import Attribute, Constant, Expression, Machine, Parameter, QuerySyntax, Window, Written

MARK = ":"
"""What the names of the columns begin with that bring the values of parameters: no attribute of a text has it."""


def parameters_of(query: QuerySyntax) -> tuple[str, ...]:
    """The names of the parameters, in the order of the text.

    Examples
    --------
    >>> from acep_approx.query import parse
    >>> parameters_of(parse("PATTERN SEQ(A a, A b) WHERE a.x > :low AND b.x > :f * a.x WITHIN :w"))
    ('low', 'f', 'w')
    """
    return tuple(dict.fromkeys(one.name for one in _found(query)))


def uses_of(query: QuerySyntax) -> Counter[str]:
    """How often each parameter stands in a query.

    Examples
    --------
    >>> from acep_approx.query import parse
    >>> uses_of(parse("PATTERN SEQ(A a, A b) WHERE a.x > :low AND b.x > :low WITHIN :w"))
    Counter({'low': 2, 'w': 1})
    """
    return Counter(one.name for one in _found(query))


def refuse_parameters(query: QuerySyntax) -> None:
    """Refuse a query that asks for values.

    Raises
    ------
    QueryError
        ``ACEP-Q085``.
    """
    refuse_those(_found(query), query)


def refuse_those(parameters: Iterable[Parameter], query: Written) -> None:
    """Refuse parameters of a query that is no template.

    Raises
    ------
    QueryError
        ``ACEP-Q085``.
    """
    for one in parameters:
        hint = "write a constant in its place, or give many queries their values: QuerySet.add_many(template, table)"
        raise query.fault("ACEP-Q085", f"the parameter :{one.name} has no value", one.span, hint)


def with_values(query: QuerySyntax, values: Mapping[str, Any]) -> QuerySyntax:
    """The query with a value in the place of each parameter.

    Parameters
    ----------
    query : QuerySyntax
    values : mapping of str to int, float, str, bool or None
        By the names of the parameters.

    Examples
    --------
    >>> from acep_approx.query import parse, to_text
    >>> print(to_text(with_values(parse("PATTERN SEQ(A a, A b) WHERE b.x > :f * a.x WITHIN :w s"), {"f": 1.5, "w": 9})))
    PATTERN SEQ(A a, A b)
    WHERE b.x > 1.5 * a.x
    WITHIN 9 s
    """
    change = constants_of(values)
    window = window_of(query.window, values)
    return replace(_changed(query, lambda expression: replaced(expression, change)), window=window)


def constants_of(values: Mapping[str, Any]) -> Callable[[Expression], Expression | None]:
    """Changes parameters to constants, for ``query.shape.replaced``."""
    return lambda node: Constant(values[node.name], node.span) if isinstance(node, Parameter) else None


def window_of(window: Window, values: Mapping[str, Any]) -> Window:
    """A window, with a value in the place of its parameter, if it has one."""
    if window.parameter is None:
        return window
    return Window(values[window.parameter.name], window.unit, window.span)


def as_attributes(query: QuerySyntax) -> QuerySyntax | None:
    """The query with an attribute ``:name`` in the place of each parameter in a condition; None where there is none.

    It is an attribute of the event that the nearest attribute is of: ``:f * a.x`` is about ``a`` alone.

    Examples
    --------
    >>> from acep_approx.query import parse
    >>> query = as_attributes(parse("PATTERN SEQ(A a, A b) WHERE b.x > :f * a.x WITHIN 9"))
    >>> query.predicates[0].right.left
    Attribute(variable='a', index=None, name=':f')
    """
    lonely = False

    def of_nearest(expression: Expression, near: Attribute | None) -> Expression:
        nonlocal lonely
        own = next((node for node in _near(expression) if isinstance(node, Attribute)), near)
        if isinstance(expression, Parameter):
            lonely |= own is None
            return expression if own is None else replace(own, name=MARK + expression.name, span=expression.span)
        return with_operands(expression, lambda part: of_nearest(part, own))

    found = _changed(query, lambda expression: of_nearest(expression, None), outputs=False)
    return None if lonely or any(isinstance(n, Parameter) for o in found.outputs for n in walk(o.value)) else found


def _near(expression: Expression) -> Iterator[Any]:
    level: list[Any] = [expression]
    while level:
        yield from level
        level = [part for node in level for part in children(node)]


def _found(query: QuerySyntax) -> Iterator[Parameter]:
    for expression in all_expressions(query):
        yield from (node for node in walk(expression) if isinstance(node, Parameter))
    if query.window.parameter is not None:
        yield query.window.parameter


def _changed(query: QuerySyntax, change: Callable[[Expression], Expression], *, outputs: bool = True) -> QuerySyntax:
    if isinstance(query.pattern, Machine):
        query = replace(query, pattern=with_expressions(query.pattern, change))
    predicates = tuple(map(change, query.predicates))
    changed = tuple(replace(one, value=change(one.value)) for one in query.outputs) if outputs else query.outputs
    return replace(query, predicates=predicates, outputs=changed)
