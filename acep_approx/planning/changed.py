"""A query with another number of errors, or another window, as text or as a plan."""

from __future__ import annotations

from dataclasses import replace

from acep_approx.errors import UsageError
from acep_approx.planning.cel import plan_cel, plan_unbound
from acep_approx.planning.planner import Plan, plan
from acep_approx.query.cel.parser import parse_cel
from acep_approx.query.cel.syntax import CelQuery
from acep_approx.query.parser import parse_window
from acep_approx.query.printer import to_text
from acep_approx.query.syntax import QuerySyntax


def changed(query: QuerySyntax, errors: int | None, within: str | None) -> QuerySyntax:
    """Return the query with these clauses; None: as they are."""
    if errors is not None:
        query = replace(query, errors=errors)
    return query if within is None else replace(query, window=parse_window(within))


def changed_cel(query: CelQuery, errors: int | None, within: str | None) -> CelQuery:
    """Return a query in CEL with these clauses; None: as they are."""
    if errors is not None:
        query = replace(query, errors=errors)
    if within is None:
        return query
    window = to_text(parse_window(within))  # which may be none of CEL: of events, or negative
    return replace(query, window=parse_cel(f"FROM any WITHIN {window}").window)


def replanned(planned: Plan, errors: int | None, within: str | None, engine: str) -> Plan:
    """Return the plan of a query with these clauses, for an engine."""
    if planned.cel is not None:
        return plan_cel(changed_cel(planned.cel, errors, within), engine)
    return plan(changed(planned.query, errors, within), engine)


def until(planned: Plan, horizon: str | None) -> Plan:
    """The plan of a query in CEL without a window whose partial matches end with the horizon; any other as it is."""
    if horizon is None or planned.cel is None or not planned.is_unbounded:
        return planned
    return plan_unbound(changed_cel(planned.cel, None, horizon), allows_parameters=True)


def check_horizon(planned: Plan, horizon: str) -> None:
    """Refuse a horizon where it says nothing, or that is no length of time.

    Raises
    ------
    UsageError
        ``ACEP-U221``: partial matches of the query end without it.
    QueryError
        It is no window that a query in CEL can have.
    """
    if not planned.is_unbounded:
        raise UsageError(
            "horizon= (--horizon) is for queries in CEL without a window, and partial matches of this one end anyway",
            code="ACEP-U221",
            hint="leave it out; another window is said with WITHIN (within=, --within)",
        )
    until(planned, horizon)
