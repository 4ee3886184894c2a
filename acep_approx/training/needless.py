"""Say that a query needs no history."""

from __future__ import annotations

import warnings

from acep_approx.errors import NeedlessHistoryWarning, is_news
from acep_approx.planning.planner import Plan


def warn_of_needless_history(plan: Plan) -> None:
    """Warn, once for a query, that it is matched exactly whatever the budget, so that no history is used."""
    if is_news(plan, "needs no history"):
        message = (
            "this query needs no history, and none is used: the cells engine finds all matches in a few steps per "
            'event and drops no partial matches. To use one all the same, compile the query with engine="runs" '
            "(--engine runs)"
        )
        warnings.warn(message, NeedlessHistoryWarning, stacklevel=3)
