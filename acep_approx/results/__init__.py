"""What a user holds: matches, matches within a budget, tuning."""

from __future__ import annotations

from typing import TYPE_CHECKING

from history.lazy import lazy

if TYPE_CHECKING:
    from acep_approx.results.budgeted import BudgetedMatches
    from acep_approx.results.match import Match
    from acep_approx.results.matched_events import events_at
    from acep_approx.results.matches import Matches
    from acep_approx.results.tuning import Advice, Trial, Tuning
else:
    __getattr__, __dir__ = lazy(
        __name__,
        {
            "acep_approx.results.budgeted": "BudgetedMatches",
            "acep_approx.results.matched_events": "events_at",
            "acep_approx.results.match": "Match",
            "acep_approx.results.matches": "Matches",
            "acep_approx.results.tuning": "Advice Trial Tuning",
        },
    )

__all__ = [
    "Advice",
    "BudgetedMatches",
    "Match",
    "Matches",
    "Trial",
    "Tuning",
    "events_at",
]
