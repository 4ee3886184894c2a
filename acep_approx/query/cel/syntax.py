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

from dataclasses import dataclass, field

from acep_approx.query.syntax import Expression, ReturnItem, Span, Window, Written, span_field

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
