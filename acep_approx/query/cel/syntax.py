"""The tree of a CEL query: streams, FILTER, NEXT, FOLD, SELECT.

Expressions are those of the whole language (``query.syntax``). An attribute says which stream it is of in the place of
its variable: ``$1`` (the first input of an operator, or its only one), ``$2`` (the second), ``$`` (FOLD: the last
iteration), None where the text does not say it. ``names.resolved`` fills it in wherever it was left out, and expands
``*``: behind it every attribute is decorated and stands in the schema of its side.

Source: Demers et al., CIDR 2007, section 2.2. It is the system paper: the formal semantics stand in a paper (EDBT 2006)
that we do not have.
"""
# ruff: noqa: RUF009  `span_field()` makes a dataclass field, which must be called once for each class

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from acep_approx.query.limits import MAX_DEPTH
from acep_approx.query.parameters import constants_of, window_of
from acep_approx.query.shape import operands, replaced, walk, with_operands
from acep_approx.query.syntax import Expression, Parameter, ReturnItem, Span, Window, Written, span_field

FIRST, SECOND, LAST = "$1", "$2", "$"
"""Decorators: in the place of the variable of an attribute."""
DURATION = "DUR"
"""The attribute of a filtered event that is its duration, ``t1 - t0``, in ticks."""
INTERNAL = "$"
"""What the names of streams begin with that no text can say."""
CLAUSES = ("SELECT", "FROM", "WITHIN", "ERRORS", "PUBLISH")
OPERATORS = ("FILTER", "NEXT", "FOLD")
RESERVED = frozenset((*CLAUSES, *OPERATORS, "AS", "AND", "OR", "NOT", "IN", "BETWEEN", "IS", "NULL", "TRUE", "FALSE"))
"""Words that cannot name a stream or an attribute unless they are quoted."""


@dataclass(frozen=True)
class Stream:
    """The events of a stream: those of a type in the data, or what another query publishes."""

    name: str
    span: Span = span_field()


@dataclass(frozen=True)
class Filter:
    """``FILTER{condition}(source)``; the condition may name ``DUR``."""

    condition: Expression
    source: Algebra
    span: Span = span_field()


@dataclass(frozen=True)
class Next:
    """``left NEXT{condition} right``; without a condition every event of ``right`` will do."""

    left: Algebra
    condition: Expression | None
    right: Algebra
    span: Span = span_field()


@dataclass(frozen=True)
class Fold:
    """``left FOLD{filter, rebind, aggregates} right``; each of the three may be left out.

    ``filter`` says which events of ``right`` are looked at, ``rebind`` which of these go on: another one ends the
    iteration. ``aggregates`` are computed at each iteration.
    """

    left: Algebra
    filter: Expression | None
    rebind: Expression | None
    aggregates: tuple[ReturnItem, ...]
    right: Algebra
    span: Span = span_field()


@dataclass(frozen=True)
class Star:
    """``*``: all attributes."""

    span: Span = span_field()


@dataclass(frozen=True)
class Select:
    """``SELECT items FROM source PUBLISH publish``: a query, or a subquery in brackets.

    ``items`` are ``Star`` and ``value AS name``; an attribute alone is ``value AS`` its own name. Without SELECT it is
    ``*``. ``publish`` is None where the results have no name.
    """

    items: tuple[ReturnItem | Star, ...]
    source: Algebra
    publish: str | None = None
    span: Span = span_field()


Algebra = Stream | Filter | Next | Fold | Select


@dataclass(frozen=True)
class CelQuery(Written):
    """A whole query in CEL.

    ``window`` (``WITHIN 10 min`` behind FROM; None: unbounded) and ``errors`` (``ERRORS k``, for chains of NEXT) are
    ours.
    """

    select: Select
    window: Window | None = None
    errors: int = 0
    text: str = field(default="", compare=False, repr=False)


def inputs(node: Algebra) -> tuple[Algebra, ...]:
    """The streams that a node reads, in the order of the text.

    Examples
    --------
    >>> from acep_approx.query import parse_cel
    >>> inputs(parse_cel("FROM A NEXT B").select.source)
    (Stream(name='A'), Stream(name='B'))
    """
    return tuple(one for one in operands(node) if isinstance(one, Algebra))


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
    stand = [one for one in operands(node) if not isinstance(one, Algebra | Star)]
    return tuple(one.value if isinstance(one, ReturnItem) else one for one in stand)


def refuse_deep(query: CelQuery) -> None:
    """Refuse a tree of more than `MAX_DEPTH` levels.

    Raises
    ------
    LimitError
        ACEP-Q021.
    """
    level, depth = list[Algebra]([query.select]), 0
    while level:
        depth += 1
        if depth > MAX_DEPTH:
            message = f"operators are nested more than {MAX_DEPTH} levels deep"
            hint = "publish a part of the query, and read the stream of that name"
            raise query.too_large("ACEP-Q021", message, depth, MAX_DEPTH, level[0].span, hint)
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
    stand = [one for node in nodes(query.select) for one in operands(node)]
    return [one for one in stand if not isinstance(one, Algebra | Star | ReturnItem)]


def computed_in(query: CelQuery) -> list[Expression]:
    """What SELECT and FOLD compute, in the order of the tree."""
    return [one.value for node in nodes(query.select) for one in operands(node) if isinstance(one, ReturnItem)]


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

    def part(one: Any) -> Any:
        if isinstance(one, Algebra):
            return changed(one, condition, value)
        if isinstance(one, ReturnItem):
            return one if value is None else replace(one, value=replaced(one.value, value))
        return one if isinstance(one, Star) else replaced(one, condition)

    return with_operands(node, part)
