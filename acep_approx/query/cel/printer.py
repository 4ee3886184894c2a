"""From the tree of a query in CEL back to text: canonical, with as few brackets as its meaning allows."""

from __future__ import annotations

import re
from dataclasses import replace

from acep_approx.query.cel.syntax import RESERVED, Algebra, CelQuery, Filter, Fold, Next, Select, Star, Stream
from acep_approx.query.printer import output_name, quoted, to_text
from acep_approx.query.shape import replaced
from acep_approx.query.syntax import Attribute, Expression, RegisterValue, ReturnItem

_WORD = re.compile(r"[^\W\d]\w*")


def to_cel(query: CelQuery) -> str:
    """Write a query as text.

    Parameters
    ----------
    query : CelQuery
        As parsed, or with resolved names: decorators are left out where CEL knows none, in SELECT.

    Returns
    -------
    str
        One line for each clause; ``parse_cel(to_cel(query)) == query`` for what was parsed.

    Examples
    --------
    >>> from acep_approx.query import parse_cel
    >>> print(to_cel(parse_cel("select * from (filter{p>3} (Stock)) next{ $1.p≤$2.p } Stock publish Rising within 9")))
    SELECT *
    FROM FILTER{p > 3}(Stock) NEXT{$1.p <= $2.p} Stock
    WITHIN 9
    PUBLISH Rising
    """
    lines = _select(query.select)
    if query.window is not None:
        lines.append(f"WITHIN {to_text(query.window)}")
    if query.errors:
        lines.append(f"ERRORS {query.errors}")
    if query.select.publish is not None:
        lines.append(f"PUBLISH {_name(query.select.publish)}")
    return "\n".join(lines)


def to_algebra(node: Algebra) -> str:
    """Write what stands behind FROM, or a part of it; a subquery stands in brackets.

    Examples
    --------
    >>> to_algebra(Next(Stream("A"), None, Select((Star(),), Stream("B"), publish="C")))
    'A NEXT (SELECT * FROM B PUBLISH C)'
    """
    match node:
        case Stream(name=name):
            return _name(name)
        case Filter(condition=condition, source=source):
            inside = to_algebra(source)
            return f"FILTER{{{expression_text(condition)}}}{inside if isinstance(source, Select) else f'({inside})'}"
        case Next(left=left, condition=condition, right=right):
            test = "" if condition is None else f"{{{expression_text(condition)}}}"
            return f"{to_algebra(left)} NEXT{test} {_right(right)}"
        case Fold(left=left, right=right):
            parts = ["" if one is None else expression_text(one) for one in (node.filter, node.rebind)]
            inside = ", ".join([*parts, ", ".join(map(_item, node.aggregates))])  # what is empty leaves its comma
            return f"{to_algebra(left)} FOLD{{{inside}}} {_right(right)}"
        case Select():
            publish = [] if node.publish is None else [f"PUBLISH {_name(node.publish)}"]
            return f"({' '.join([*_select(node), *publish])})"


def _select(select: Select) -> list[str]:
    def plain(node: Expression) -> Expression | None:
        return replace(node, variable=None) if isinstance(node, Attribute) else None

    def text(one: ReturnItem | Star) -> str:
        return "*" if isinstance(one, Star) else _item(replace(one, value=replaced(one.value, plain)))

    return [f"SELECT {', '.join(map(text, select.items)) or '*'}", f"FROM {to_algebra(select.source)}"]


def _right(node: Algebra) -> str:
    """A right operand: operators are read from the left."""
    text = to_algebra(node)
    return f"({text})" if isinstance(node, (Next, Fold)) else text


def _item(item: ReturnItem) -> str:
    if item.value == Attribute(None, None, item.name):
        return expression_text(item.value)
    return f"{expression_text(item.value)} AS {output_name(item.name)}"


def expression_text(expression: Expression) -> str:
    """Write an expression; an attribute alone is quoted where it has the name of a word of CEL."""

    def change(node: Expression) -> Expression | None:
        if isinstance(node, Attribute) and node.variable is None:
            return RegisterValue(_name(node.name, "`"))  # is written as it stands
        return None

    return to_text(replaced(expression, change))


def _name(name: str, quote: str = "'") -> str:
    return name if _WORD.fullmatch(name) and name.upper() not in RESERVED else quoted(name, quote)
