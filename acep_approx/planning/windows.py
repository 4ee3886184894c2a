"""Whether anything ends what a query remembers: queries in CEL may have no window."""

from __future__ import annotations

from acep_approx.errors import UsageError
from acep_approx.planning.planner import UNBOUNDED, Plan
from acep_approx.query.cel.shape import nodes
from acep_approx.query.cel.syntax import Fold, Next


def is_unbounded(plan: Plan) -> bool:
    """Whether a run may stay for ever: a NEXT or FOLD waits, and no window says for how long.

    Examples
    --------
    >>> from acep_approx import compile_query
    >>> texts = "FROM A NEXT A", "FROM A NEXT A WITHIN 5", "FROM FILTER{DUR <= 5}(A NEXT A)", "FROM A"
    >>> [is_unbounded(compile_query(text).plan) for text in texts]
    [True, False, False, False]
    """
    waits = plan.cel is not None and any(isinstance(node, Next | Fold) for node in nodes(plan.cel.select))
    return waits and plan.query.window.unit == UNBOUNDED


def refuse_unbounded(plan: Plan, what: str) -> None:
    """Refuse what weighs runs by what they can still lead to, where they never end.

    Raises
    ------
    UsageError
        ``ACEP-U073``.
    """
    if is_unbounded(plan):
        raise UsageError(
            f"{what} and a query in CEL without a window do not go together: what it waits for has no end",
            code="ACEP-U073",
            hint="say how long a result may last: WITHIN 10 min behind FROM (--within), or FILTER{DUR <= 10 min}",
        )
