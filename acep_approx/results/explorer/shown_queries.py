"""Queries as a page shows them: their variables, conditions, and what they read."""

from __future__ import annotations

from dataclasses import dataclass

from acep_approx.arrays import Ints
from acep_approx.pages.explorer.data import Condition, QueryShown
from acep_approx.query.printer import to_text
from acep_approx.query.shape import atoms, expressions_of, negated_variables, walk
from acep_approx.query.syntax import Aggregate, Attribute, Expression, Machine, QuerySyntax, Window
from acep_approx.results.explorer.listing import Listing


@dataclass(frozen=True)
class PointsOf:
    """What a query found: matches by number of errors; of its match points ticks, in order, and errors."""

    counts: dict[int, int]
    ticks: Ints
    errors: Ints


def query_shown(
    query: QuerySyntax, window: int, found: PointsOf, chosen: Listing, *, name: str = "", text: str = ""
) -> QueryShown:
    """A query as a page shows it.

    Parameters
    ----------
    query : QuerySyntax
    window : int
        In ticks, or in events; 0: not known.
    found : PointsOf
    chosen : Listing
        Some of its matches.
    name, text : str
        Empty: it has no name; it is its own text.
    """
    unbounded = query.window.unit == "unbounded"
    return QueryShown(
        name=name,
        text=text or str(query.text).strip() or to_text(query),
        variables=variables(query),
        conditions=_conditions(query),
        uses=uses(query),
        window="" if unbounded else _window(query.window),
        span=0 if query.window.unit == "events" or unbounded else window,
        found=found.counts,
        ticks=found.ticks,
        errors=found.errors,
        listed=len(chosen.matches),
        columns=chosen.columns,
    )


def _window(window: Window) -> str:
    return f"{window.amount:g} {window.unit}"


def variables(query: QuerySyntax) -> tuple[tuple[str, str], ...]:
    """The variables that matches show, in the order of the text, each with its type."""
    if query.is_algebra:
        return ()
    pattern = query.pattern
    parts = pattern.arcs if isinstance(pattern, Machine) else atoms(pattern)
    types = {part.variable: part.type or "" for part in parts if part.variable}
    if query.is_regex:
        return tuple(types.items())
    hidden = negated_variables(pattern)
    return tuple((name, type_) for name, type_ in types.items() if name not in hidden)


def _conditions(query: QuerySyntax) -> tuple[Condition, ...]:
    if query.is_algebra:  # its text says them better
        return ()
    letters = (Condition(f"{one.letter} AS {to_text(one.condition)}") for one in query.definitions)
    return (*(Condition(to_text(one), _reads(one)) for one in query.predicates), *letters)


def _reads(condition: Expression) -> tuple[tuple[str, str], ...]:
    """The (variable, attribute) of single events that a condition reads."""
    leaves = [leaf for leaf in walk(condition) if isinstance(leaf, Attribute)]
    return tuple(dict.fromkeys((leaf.variable or "", leaf.name) for leaf in leaves))


def uses(query: QuerySyntax) -> tuple[tuple[str, str], ...]:
    """The (variable, attribute) that a query reads anywhere; without variable: of any event."""
    trees = [*query.predicates, *(one.value for one in query.outputs), *(one.condition for one in query.definitions)]
    if isinstance(query.pattern, Machine):
        trees += expressions_of(query.pattern)
    leaves = [leaf for tree in trees for leaf in walk(tree) if isinstance(leaf, (Attribute, Aggregate))]
    used = ((leaf.variable or "", leaf.name) for leaf in leaves if leaf.name not in (None, "ts", "type"))
    return tuple(dict.fromkeys(used))
