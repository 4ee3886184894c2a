"""From the text of a query, or what a builder made, to what can be run."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from numbers import Integral
from types import NoneType

from acep_approx.api.query import Query
from acep_approx.arguments import checked
from acep_approx.errors import expect
from acep_approx.planning.cel import plan_cel
from acep_approx.planning.changed import changed, changed_cel
from acep_approx.planning.planner import plan
from acep_approx.query.cel.parser import is_cel, parse_cel
from acep_approx.query.clauses import QueryBuilder
from acep_approx.query.parser import parse
from acep_approx.query.syntax import UserFunction

LOG = logging.getLogger("acep_approx.plan")


@checked
def compile_query(
    query: str | QueryBuilder,
    *,
    errors: int | None = None,
    within: str | None = None,
    engine: str = "auto",
    functions: Sequence[UserFunction] = (),
) -> Query:
    """Compile a query.

    Parameters
    ----------
    query : str or QueryBuilder
        In the query language (``docs/reference/language.md``), in CEL (``docs/reference/cel.md``), or made with
        ``seq(...)``.
    errors : int, optional
        Replaces the query's ERRORS; its weights stay.
    within : str, optional
        Replaces the query's WITHIN, e.g. ``"10 s"`` or ``"50 events"``.
    engine : {"auto", "cells", "runs"}, default "auto"
        ``auto`` takes the cells where they can answer exactly, else the runs.
    functions : sequence of functions, optional
        Made by ``afa_function``: what a query written as text calls, beside the functions of the language.

    Returns
    -------
    Query
        Immutable; can be used for any number of inputs.

    Raises
    ------
    QueryError
        The query is wrong; the message shows where and what to do.
    UnsupportedError
        The query is right, but needs an engine that is not there yet.

    Complexity: milliseconds; no code is generated.

    Examples
    --------
    >>> query = compile_query("PATTERN SEQ(A a, B b, C c) WITHIN 5 ERRORS 1")
    >>> events = [{"ts": 1, "type": "A"}, {"ts": 2, "type": "X"}, {"ts": 3, "type": "C"}]
    >>> [(m.errors, m.missing, m.values) for m in query.match(events)]
    [(1, ('b',), {'a': 0, 'b': None, 'c': 2})]
    """
    expect("the query", query, (str, QueryBuilder), "its text (of a file path.read_text()), or what seq(...) makes")
    expect("errors", errors, (Integral, NoneType), "a whole number")
    expect("within", within, (str, NoneType), "a text such as '10 s' or '50 events'")
    if isinstance(query, str) and is_cel(query):
        return _logged(Query(plan_cel(changed_cel(parse_cel(query), errors, within), engine)))
    syntax = query.syntax() if isinstance(query, QueryBuilder) else parse(query, tuple(functions))
    return _logged(Query(plan(changed(syntax, errors, within), engine)))


def _logged(query: Query) -> Query:
    """The query; says in the log how it will be run."""
    if not LOG.isEnabledFor(logging.INFO):
        return query
    found = query.plan
    why = f", because of {', '.join(found.why_runs)}" if found.why_runs else ""
    LOG.info("engine: %s%s; %d states, %d errors at most", found.engine, why, found.automaton.size, found.query.errors)
    LOG.debug("query: %s", " ".join(found.query.text.split()))
    return query
