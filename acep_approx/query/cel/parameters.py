"""Parameters of a template in CEL: which there are, and other expressions in the places of those of a query."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from acep_approx.query.cel.shape import expressions, nodes
from acep_approx.query.cel.syntax import Algebra, CelQuery, Filter, Fold, Next, Select, Star, Stream
from acep_approx.query.parameters import constants_of, window_of
from acep_approx.query.shape import replaced, walk
from acep_approx.query.syntax import Expression, Parameter

Change = Callable[[Expression], Expression | None]


def parameters_in(query: CelQuery) -> Iterator[Parameter]:
    """Wherever a parameter stands in a query, in the order of the tree.

    Examples
    --------
    >>> from acep_approx.query import parse_cel
    >>> query = parse_cel("SELECT x + :plus AS y FROM FILTER{x > :low}(A) NEXT{$2.x > :f * $1.x} B WITHIN :w s")
    >>> [one.name for one in parameters_in(query)]
    ['plus', 'f', 'low', 'w']
    """
    for node in nodes(query.select):
        for expression in expressions(node):
            yield from (part for part in walk(expression) if isinstance(part, Parameter))
    if query.window is not None and query.window.parameter is not None:
        yield query.window.parameter


def with_constants(query: CelQuery, values: Mapping[str, Any]) -> CelQuery:
    """The query with a value in the place of each parameter.

    Parameters
    ----------
    query : CelQuery
    values : mapping of str to int, float, str, bool or None
        By the names of the parameters.

    Examples
    --------
    >>> from acep_approx.query import parse_cel, to_cel
    >>> query = parse_cel("FROM FILTER{x > :low}(A) NEXT B WITHIN :w s")
    >>> print(to_cel(with_constants(query, {"low": 1.5, "w": 9})))
    SELECT *
    FROM FILTER{x > 1.5}(A) NEXT B
    WITHIN 9 s
    """
    change = constants_of(values)
    window = None if query.window is None else window_of(query.window, values)
    return replace(query, select=changed(query.select, change, change), window=window)


def conditions(query: CelQuery) -> list[Expression]:
    """What FILTER, NEXT and FOLD ask, in the order of the tree; what SELECT and FOLD compute is not among it."""
    computed = {*map(id, computed_in(query))}
    return [one for node in nodes(query.select) for one in expressions(node) if id(one) not in computed]


def computed_in(query: CelQuery) -> list[Expression]:
    """What SELECT and FOLD compute, in the order of the tree."""
    return [
        one.value
        for node in nodes(query.select)
        for one in (node.aggregates if isinstance(node, Fold) else node.items if isinstance(node, Select) else ())
        if not isinstance(one, Star)
    ]


def changed(node: Algebra, condition: Change, value: Change | None = None) -> Any:
    """A tree with other expressions; see ``query.shape.replaced``.

    Parameters
    ----------
    node : Algebra
    condition : callable
        Changes what FILTER, NEXT and FOLD ask.
    value : callable, optional
        Changes what SELECT and FOLD compute; by default it stays.
    """

    def asked(one: Any) -> Any:
        return None if one is None else replaced(one, condition)

    def computed(one: Any) -> Any:
        return one if value is None or isinstance(one, Star) else replace(one, value=replaced(one.value, value))

    made: Any = node
    match node:
        case Stream():
            pass
        case Filter():
            made = replace(node, condition=asked(node.condition), source=changed(node.source, condition, value))
        case Select():
            items = tuple(map(computed, node.items))
            made = replace(node, items=items, source=changed(node.source, condition, value))
        case Next() | Fold():
            left, right = (changed(one, condition, value) for one in (node.left, node.right))
            made = replace(node, left=left, right=right)
            if isinstance(node, Next):
                made = replace(made, condition=asked(node.condition))
            else:
                aggregates = tuple(map(computed, node.aggregates))
                made = replace(made, filter=asked(node.filter), rebind=asked(node.rebind), aggregates=aggregates)
    return made
