"""Types that a query names and no event has: mostly a word that is spelled otherwise in the data."""

from __future__ import annotations

import difflib
import warnings

from acep_approx.automaton.automaton import Automaton
from acep_approx.errors import UnseenTypeWarning, is_news

NEAR = 0.6
"""How alike two types must be for one to be proposed for the other."""
VERY_NEAR = 0.8
"""How alike, where a type is only negated: that such events never come is as it should be."""
SHOWN = 10
"""Types of the input that a warning lists at most."""


def warn_of_unseen_types(automaton: Automaton, seen: set[str]) -> None:
    """Warn of types that a query names and that are not among those of the whole input.

    Parameters
    ----------
    automaton : Automaton
        Of the query.
    seen : set of str
        Types of the events; of those that the query does not name some may be left out.

    Notes
    -----
    A type that only negations name is told of only where a very similar one was seen. Types that the query names
    elsewhere are proposed for none. Each type is told of once for a query, however many inputs it is asked of, such as
    the groups of a frame.
    """
    types: dict[str, bool] = {}  # in the order of the query, whether only negations name it
    for one in automaton.components:
        if one.type is not None:
            types[one.type] = types.get(one.type, True) and one.is_negated
    told = []
    for name in [name for name in types if name not in seen]:
        near = nearest(name, seen - types.keys(), VERY_NEAR if types[name] else NEAR)
        if (near or not types[name]) and is_news(automaton, name):
            told.append(f"{name!r} (did you mean {near!r}?)" if near else repr(name))
    if told:
        others = f", and {len(seen) - SHOWN:,} more" if len(seen) > SHOWN else ""
        shown = ", ".join(map(repr, sorted(seen)[:SHOWN])) + others if seen else "none"
        message = f"no event has the type {', '.join(told)}; types seen: {shown}"
        warnings.warn(message, UnseenTypeWarning, stacklevel=2)


def nearest(name: str, seen: set[str], cutoff: float) -> str | None:
    """The type that ``name`` was most likely meant to be.

    Examples
    --------
    >>> seen = {"Packed", "Delivered"}
    >>> nearest("Delivrd", seen, NEAR), nearest("PACKED", seen, NEAR), nearest("Lost", seen, NEAR)
    ('Delivered', 'Packed', None)
    """
    folded = {other.casefold().strip(): other for other in sorted(seen)}
    near = difflib.get_close_matches(name.casefold().strip(), list(folded), n=1, cutoff=cutoff)
    return folded[near[0]] if near else None
