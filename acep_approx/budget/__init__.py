"""A load budget as plain data: what is asked for, and what came of it; ``shedding`` is the budget at work."""

from __future__ import annotations

from typing import TYPE_CHECKING

from history.lazy import lazy

if TYPE_CHECKING:
    from acep_approx.budget.audit import RecallEstimate
    from acep_approx.budget.budget import Budget
    from acep_approx.budget.ledger import Learning, Piece, RunRecord, Score, Shed
else:
    __getattr__, __dir__ = lazy(
        __name__,
        {
            "acep_approx.budget.audit": "RecallEstimate",
            "acep_approx.budget.budget": "Budget",
            "acep_approx.budget.ledger": "Learning Piece RunRecord Score Shed",
        },
    )

__all__ = [
    "Budget",
    "Learning",
    "Piece",
    "RecallEstimate",
    "RunRecord",
    "Score",
    "Shed",
]
