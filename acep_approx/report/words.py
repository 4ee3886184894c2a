"""Small things that the books of a run and its report both say."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from acep_approx.budget.learning_ledger import Score


def mean_score(scores: Sequence[Score]) -> float | None:
    """The Brier score of several points of the curve together; None without any.

    Examples
    --------
    >>> from acep_approx.budget.learning_ledger import Score
    >>> mean_score([Score(5, 0.1, 30), Score(9, 0.2, 10)]), mean_score([])
    (0.125, None)
    """
    cases = sum(score.cases for score in scores)
    return sum(score.brier * score.cases for score in scores) / cases if cases else None


def place_words(state: str, errors: int) -> str:
    """A state with a number of errors, for people.

    Examples
    --------
    >>> place_words("a b", 0), place_words("a", 1), place_words("a", 2)
    ('a b', 'a, 1 error', 'a, 2 errors')
    """
    return state + (f", {errors} error{'' if errors == 1 else 's'}" if errors else "")
