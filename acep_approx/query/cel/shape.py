"""Walks over trees of CEL that do not recurse, what stands in their nodes, and other expressions in these places."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from acep_approx.errors import LimitError
from acep_approx.query.cel.syntax import Algebra, CelQuery, Filter, Fold, Next, Select, Star, Stream
from acep_approx.query.limits import MAX_DEPTH
from acep_approx.query.parameters import constants_of, window_of
from acep_approx.query.shape import replaced, walk
from acep_approx.query.syntax import Expression, Parameter


def inputs(node: Algebra) -> tuple[Algebra, ...]:
    """The streams that a node reads, in the order of the text.

    Examples
    --------
    >>> inputs(Next(Stream("A"), None, Stream("B")))
    (Stream(name='A'), Stream(name='B'))
    """
    match node:
        case Stream():
            return ()
        case Filter(source=source) | Select(source=source):
            return (source,)
        case Next(left=left, right=right) | Fold(left=left, right=right):
            return (left, right)


def nodes(node: Algebra) -> Iterator[Algebra]:
    """Every node of a tree, each before what it reads, in the order of the text."""
    waiting = [node]
    while waiting:
        found = waiting.pop()
        yield found
        waiting.extend(reversed(inputs(found)))


def streams(node: Algebra) -> tuple[str, ...]:
    """The names of the streams that a tree reads, each once, in the order of the text."""
    return tuple(dict.fromkeys(one.name for one in nodes(node) if isinstance(one, Stream)))


def expressions(node: Algebra) -> tuple[Expression, ...]:
    """The conditions and values that stand in a node itself."""
    match node:
        case Stream():
            return ()
        case Filter(condition=condition):
            return (condition,)
        case Next(condition=condition):
            return () if condition is None else (condition,)
        case Fold():
            conditions = tuple(one for one in (node.filter, node.rebind) if one is not None)
            return (*conditions, *(one.value for one in node.aggregates))
        case Select(items=items):
            return tuple(one.value for one in items if not isinstance(one, Star))


def refuse_deep(node: Algebra, text: str) -> None:
    """Refuse a tree of more than `MAX_DEPTH` levels.

    Raises
    ------
    LimitError
        ACEP-Q021.
    """
    level, depth = [node], 0
    while level:
        depth += 1
        if depth > MAX_DEPTH:
            raise LimitError(
                f"operators are nested more than {MAX_DEPTH} levels deep",
                code="ACEP-Q021",
                given=depth,
                limit=MAX_DEPTH,
                hint="publish a part of the query, and read the stream of that name",
                text=text,
                start=level[0].span[0],
                end=level[0].span[1],
            )
        level = [one for node in level for one in inputs(node)]


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
