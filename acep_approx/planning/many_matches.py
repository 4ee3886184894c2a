"""Why a query may list more matches than anybody reads, and which clause limits them."""

from __future__ import annotations

from acep_approx.planning.planner import Plan
from acep_approx.query.shape import atoms, walk
from acep_approx.query.syntax import NON_OVERLAP, Repeat

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
    query, errors, registers = plan.query, plan.automaton.errors, plan.registers
    is_limited = query.selection.maximal or query.selection == NON_OVERLAP
    if plan.cel is not None or query.is_machine or is_limited:
        return None
    reasons = []
    is_passive = registers is None or all(map(registers.is_passive, range(len(registers.states))))
    repeats = [node for node in walk(query.pattern) if isinstance(node, Repeat) and (node.most or LARGE) >= LARGE]
    if is_passive and repeats:
        names = dict.fromkeys(f"{atom.variable}[]" for node in repeats for atom in atoms(node))
        what = "a repetition" if query.is_regex else " or ".join(names)
        reasons.append(f"n events that fit {what} make up to 2^n matches, because any event may be passed over")
    if errors:
        reasons.append(f"ERRORS {errors} lists a complete case once more for each event that may be missing")
    return ", and ".join(reasons) or None
