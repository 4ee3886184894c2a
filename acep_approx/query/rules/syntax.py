"""The tree of a file of rules: tables, and rules whose patterns read them and whose actions write them.

Expressions are those of the whole language (``query.syntax``) with ``Read``, the value of a table. ``old.level`` in
``SET`` is an attribute of the variable ``old``: the row before this action.

Source: Wang, Rundensteiner and Ellison, PVLDB 4(10) 2011, Definition 5 and section 3. The paper writes the actions in
SQL; ours are ``UPDATE``, ``UPSERT``, ``DELETE`` of the one row that a key names, and ``CALL``.
"""
# ruff: noqa: RUF009  `span_field()` makes a dataclass field, which must be called once for each class

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from acep_approx.query.syntax import Constant, Expression, QuerySyntax, Span, Written, span_field

Holds = Literal["int", "float", "text", "bool", "time"]
"""What a column of a table holds."""
OLD = "old"
"""The variable that is the row which an action writes, as it was before."""
Places = tuple[tuple[str, Span], ...]
"""Where something stands that is no node of its own: ``("name", (6, 12))``."""


def places_field() -> Places:
    """A field for such places, which play no role where nodes are compared."""
    return field(default=(), compare=False, repr=False)


def place(node: Table | Write | Rule, name: str) -> Span:
    """Where a piece of a node stands; the whole node where that is not known.

    Parameters
    ----------
    node : Table, Write or Rule
    name : str
        ``"name"``; of tables also ``"KEY"``, ``"KEY hcw"``; of actions ``"table"``, ``"SET level"``, ``"AT"``.
    """
    return dict(node.places).get(name, node.span)


@dataclass(frozen=True)
class Column:
    """``level text DEFAULT 'safe'``; ``default`` is None where the text gives none: such values begin as NULL."""

    name: str
    holds: Holds
    default: Constant | None = None
    span: Span = span_field()


@dataclass(frozen=True)
class Table:
    """``TABLE status (hcw text, level text DEFAULT 'safe', KEY (hcw))``; ``STATIC``: no rule writes it."""

    name: str
    columns: tuple[Column, ...]
    key: tuple[str, ...]
    is_static: bool = False
    span: Span = span_field()
    places: Places = places_field()

    @property
    def keys(self) -> tuple[Column, ...]:
        """The columns of the key, in its order."""
        by_name = {column.name: column for column in self.columns}
        return tuple(by_name[name] for name in self.key)

    @property
    def values(self) -> tuple[Column, ...]:
        """All other columns, in the order of the text."""
        return tuple(column for column in self.columns if column.name not in self.key)

    def column(self, name: str) -> Column | None:
        """The column of that name, of the key or not; None where there is none."""
        return next((column for column in self.columns if column.name == name), None)

    @property
    def is_total(self) -> bool:
        """Whether every key has a row: there are columns beside the key, and all of them have defaults."""
        return bool(self.values) and all(column.default is not None for column in self.values)


@dataclass(frozen=True)
class Assign:
    """``level = 'warning'`` after SET."""

    column: str
    value: Expression
    span: Span = span_field()


@dataclass(frozen=True)
class Write:
    """``UPDATE status SET level = 'warning' AT (b.hcw)``, ``UPSERT ...``; ``DELETE status AT (b.hcw)`` without SET."""

    kind: Literal["update", "upsert", "delete"]
    table: str
    key: tuple[Expression, ...]
    sets: tuple[Assign, ...] = ()
    span: Span = span_field()
    places: Places = places_field()


@dataclass(frozen=True)
class Call:
    """``CALL badge``, ``CALL badge(b.hcw, 'red')``: a Python function, for effects outside."""

    name: str
    arguments: tuple[Expression, ...] = ()
    span: Span = span_field()


Action = Write | Call


def expressions(action: Action) -> tuple[Expression, ...]:
    """All expressions of an action, in the order of the text.

    Parameters
    ----------
    action : Write or Call
    """
    if isinstance(action, Call):
        return action.arguments
    return (*(one.value for one in action.sets), *action.key)


@dataclass(frozen=True)
class Rule:
    """``RULE name WORTH 5 ON PATTERN ... WHEN ... FOR EACH MATCH DO ... END``.

    ``when`` says for which matches the actions are run; ``each`` whether they are run for every match of an event, or
    once for an event that completes some. A rule without actions is a query that reads the store. ``worth`` is what a
    match of it counts where rules share a load budget.
    """

    name: str
    query: QuerySyntax
    when: Expression | None = None
    each: Literal["match", "point"] = "match"
    actions: tuple[Action, ...] = ()
    worth: float = 1.0
    span: Span = span_field()
    places: Places = places_field()


@dataclass(frozen=True)
class RuleFile(Written):
    """All tables and rules of a text, in its order."""

    tables: tuple[Table, ...]
    rules: tuple[Rule, ...]
    text: str = field(default="", compare=False, repr=False)

    def table(self, name: str) -> Table:
        """The table of that name, which must be there: in a file that passed the checks all that are named are."""
        return next(table for table in self.tables if table.name == name)
