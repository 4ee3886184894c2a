"""Why a query may list more matches than anybody reads, and which clause limits them."""

from __future__ import annotations

from acep_approx.planning.planner import Plan
from acep_approx.query.shape import atoms, walk
from acep_approx.query.syntax import DEFAULT_STRATEGY, NON_OVERLAP, QuerySyntax, Repeat, Spaced, Strategy

LARGE = 4
"""A repetition of up to this many events multiplies matches."""
REMEDY = (
    "MAXIMAL lists only matches that no other one contains; --output points (matches.points()) lists the events that "
    "complete one"
)
"""What limits them."""


def why_many(plan: Plan) -> str | None:
    """Say why a query may have many matches for one case; None where its clauses limit them.

    Examples
    --------
    >>> from acep_approx import compile_query
    >>> why_many(compile_query("PATTERN SEQ(A{5,} a, B b) WITHIN 9").plan)
    'n events that fit a[] make up to 2^n matches, because any event may be passed over'
    >>> why_many(compile_query("PATTERN SEQ(A a, B b, C c) WITHIN 9 ERRORS 1").plan)
    'ERRORS 1 lists a complete case once more for each event that may be missing'
    >>> why_many(compile_query("PATTERN SEQ(A a, B b) WITHIN 9").plan) is None
    True
    """
    query, errors = plan.query, plan.automaton.errors
    is_limited = query.selection.maximal or query.selection == NON_OVERLAP
    if plan.cel is not None or query.is_machine or is_limited:
        return None
    reasons = []
    repeats = [node for node in walk(query.pattern) if isinstance(node, Repeat) and (node.most or LARGE) >= LARGE]
    repeats = [node for node in repeats if _between(node, query) == DEFAULT_STRATEGY]
    if repeats:
        names = dict.fromkeys(f"{atom.variable}[]" for node in repeats for atom in atoms(node))
        what = "a repetition" if query.is_regex else " or ".join(names)
        reasons.append(f"n events that fit {what} make up to 2^n matches, because any event may be passed over")
    if errors:
        reasons.append(f"ERRORS {errors} lists a complete case once more for each event that may be missing")
    return ", and ".join(reasons) or None


def _between(node: Repeat, query: QuerySyntax) -> Strategy:
    """The strategy of the gaps between the rounds of a repetition, where its part does not begin with choices."""
    own = node.part.strategy if isinstance(node.part, Spaced) else None
    return node.between or own or query.strategy
