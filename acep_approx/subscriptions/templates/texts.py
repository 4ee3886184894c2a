"""The texts of templates and of their queries, in PATTERN or in CEL: what is asked of both languages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from acep_approx.planning.cel import plans_of_parts
from acep_approx.planning.planner import Plan, plan
from acep_approx.query.cel.parser import is_cel, parse_cel
from acep_approx.query.cel.printer import to_cel
from acep_approx.query.cel.shape import parameters_in, with_constants
from acep_approx.query.cel.syntax import CelQuery
from acep_approx.query.parameters import refuse_parameters, refuse_those, uses_of, with_values
from acep_approx.query.parser import parse
from acep_approx.query.printer import to_text
from acep_approx.query.syntax import QuerySyntax

Syntax = QuerySyntax | CelQuery


def tree_of(text: str) -> Syntax:
    """The tree of a text.

    Raises
    ------
    QueryError, LimitError
        As ``parse`` and ``parse_cel``.
    """
    return parse_cel(text) if is_cel(text) else parse(text)


def refuse_parameters_of(syntax: Syntax) -> None:
    """Refuse a text that asks for values.

    Raises
    ------
    QueryError
        ``ACEP-Q085``.
    """
    if isinstance(syntax, CelQuery):
        refuse_those(parameters_in(syntax), syntax)
    else:
        refuse_parameters(syntax)


def text_of(syntax: Syntax) -> str:
    """A text of which the tree can be made again."""
    return to_cel(syntax) if isinstance(syntax, CelQuery) else to_text(syntax)


def uses(syntax: Syntax) -> Counter[str]:
    """How often each parameter stands in a tree, in the order of the text."""
    if isinstance(syntax, CelQuery):
        return Counter(one.name for one in parameters_in(syntax))
    return uses_of(syntax)


def filled(syntax: Syntax, constants: Mapping[str, Any]) -> Syntax:
    """The tree with constants in the places of its parameters."""
    return with_constants(syntax, constants) if isinstance(syntax, CelQuery) else with_values(syntax, constants)


def plans_of(syntax: Syntax, mark: int) -> list[Plan]:
    """The plans of the automata that a query needs, its own last.

    Parameters
    ----------
    syntax : QuerySyntax or CelQuery
        Without parameters.
    mark : int
        Tells its hidden streams apart from those of other queries, if it is in CEL.

    Raises
    ------
    QueryError, UnsupportedError, LimitError
        The query is wrong.
    """
    return plans_of_parts(syntax, f".{mark}") if isinstance(syntax, CelQuery) else [plan(syntax)]
