"""Conditions that a match satisfies if a smaller match does: MAXIMAL tests them on maximal matches alone.

Without such a condition let M be the maximal matches. A match that satisfies it lies in one of M, which has all its
events and more, and so satisfies it, too. The maximal matches with the condition are those of M that satisfy it.
"""

from __future__ import annotations

from acep_approx.query.rules.named_events import can_be_missing, certain
from acep_approx.query.shape import MIRRORED, atoms, negated_variables
from acep_approx.query.syntax import Aggregate, Binary, Constant, Expression, QuerySyntax

GROWS = {"count": (">", ">="), "count distinct": (">", ">="), "max": (">", ">="), "min": ("<", "<=")}
"""Aggregates, and the comparisons with a constant that hold of more events if they hold of some."""


def only_grows(query: QuerySyntax, predicate: Expression) -> bool:
    """Return whether a condition that holds for a match also holds for each match that contains all its events.

    Each match must have events of its variable, and no other variable may bind these.

    Parameters
    ----------
    query : QuerySyntax
    predicate : Expression
        A conjunct of WHERE.

    Examples
    --------
    >>> from acep_approx.query import parse
    >>> def grows(pattern, condition):
    ...     query = parse(f"PATTERN SEQ({pattern}) WHERE {condition} WITHIN 5")
    ...     return only_grows(query, query.predicates[0])
    >>> grows("A+ a[], B b", "count(DISTINCT a[].x) >= 3"), grows("A+ a[], B b", "3 < max(a[].x)")
    (True, True)
    >>> grows("A+ a[], B b", "count(a[]) <= 3"), grows("A+ a[], A b", "count(a[]) > 3")
    (False, False)
    """
    match predicate:
        case Binary(op=op, left=Aggregate() as aggregate, right=Constant()):
            pass
        case Binary(op=op, left=Constant(), right=Aggregate() as aggregate):
            op = MIRRORED.get(op, op)
        case _:
            return False
    if aggregate.prior or op not in GROWS.get(aggregate.function, ()):
        return False
    variable, negated = aggregate.variable, negated_variables(query.pattern)
    if variable not in certain(query.pattern) or can_be_missing(query, variable):
        return False
    bound = [atom for atom in atoms(query.pattern) if atom.variable not in negated]
    own = {atom.type for atom in bound if atom.variable == variable}
    return None not in own and not any(atom.type in (None, *own) for atom in bound if atom.variable != variable)
