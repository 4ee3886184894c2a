"""What a condition is about: the variables it names, whether one event decides it, its parts."""

from __future__ import annotations

from collections.abc import Iterator

from acep_approx.query.shape import walk
from acep_approx.query.syntax import Aggregate, Attribute, Binary, Expression, Read


def naming(expr: Expression) -> Iterator[Attribute | Aggregate]:
    """What names events in an expression: attributes, aggregates, and the events behind AT in reads of tables.

    Parameters
    ----------
    expr : Expression
        Any expression.

    Yields
    ------
    Attribute or Aggregate
        In the order of the text; an event behind AT is an attribute without a name.
    """
    for node in walk(expr):
        if isinstance(node, Attribute | Aggregate):
            yield node
        elif isinstance(node, Read) and node.at is not None:
            yield node.at


MIRRORED = {"=": "=", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
"""What comparisons are with their sides changed."""


def variables(expr: Expression) -> frozenset[str]:
    """The variables an expression names.

    Parameters
    ----------
    expr : Expression
        Any expression.

    Returns
    -------
    frozenset of str
        Unqualified attributes (in DEFINE) add nothing.

    Examples
    --------
    >>> variables(Binary(">", Attribute("a", None, "x"), Attribute("b", None, "x"))) == {"a", "b"}
    True
    """
    return frozenset(node.variable for node in naming(expr) if node.variable is not None)


def is_static(expr: Expression) -> bool:
    """Whether one event alone decides the expression, so that it is evaluated once for each event of a batch.

    Parameters
    ----------
    expr : Expression
        Any expression.

    Returns
    -------
    bool
        True when all attributes are of one variable, without index or with ``[i]``, and there is no
        aggregate. An unqualified attribute (in DEFINE) is of the current event.

    Examples
    --------
    >>> is_static(Attribute("a", "current", "x")), is_static(Attribute("a", "previous", "x"))
    (True, False)
    """
    named = set()
    for node in naming(expr):
        if isinstance(node, Aggregate) or node.index not in (None, "current"):
            return False
        named.add(node.variable)
    return len(named) == 1


def conjuncts(expr: Expression) -> tuple[Expression, ...]:
    """The conditions that all must hold: the parts of an expression between its outermost ANDs.

    Parameters
    ----------
    expr : Expression
        Any expression, however many ANDs it has.

    Returns
    -------
    tuple of Expression
        In the order of the text; none of them is an AND.

    Examples
    --------
    >>> a, b, c = (Attribute("a", None, name) for name in "xyz")
    >>> conjuncts(Binary("AND", Binary("AND", a, b), c)) == (a, b, c)
    True
    """
    found: list[Expression] = []
    waiting = [expr]
    while waiting:
        node = waiting.pop()
        if isinstance(node, Binary) and node.op == "AND":
            waiting += (node.right, node.left)
        else:
            found.append(node)
    return tuple(found)
