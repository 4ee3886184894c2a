"""Say that a query needs no history, or that none can be learned on the way."""

from __future__ import annotations

import warnings

from acep_approx.diagrams.text_layout import one_line
from acep_approx.errors import NeedlessHistoryWarning, NoLearningWarning, is_news
from acep_approx.planning.planner import Plan

NO_LEARNING = "ACEP-U222"


def warn_of_needless_history(plan: Plan) -> None:
    """Warn, once for a query, that it is matched exactly whatever the budget, so that no history is used."""
    if is_news(plan, "needs no history"):
        message = (
            "this query needs no history, and none is used: the cells engine finds all matches in a few steps per "
            'event and drops no partial matches. To use one all the same, compile the query with engine="runs" '
            "(--engine runs)"
        )
        warnings.warn(message, NeedlessHistoryWarning, stacklevel=3)


def warn_of_no_learning(plan: Plan) -> None:
    """Warn, once for a template, that its queries do not learn on the way: each has a window of its own."""
    if is_news(plan, "does not learn"):
        message = (
            f"{NO_LEARNING}: the template {one_line(str(plan.query.text)):.60} has queries with windows of their own: "
            "they do not learn on the way, and go on as their history says, or by age; hint: learn from the past (acep "
            "train --queries FOLDER PAST -o DIR, --history DIR), or write one window into the template"
        )
        warnings.warn(message, NoLearningWarning, stacklevel=2)
