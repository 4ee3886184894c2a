"""What to choose of all that was tried: ERRORS, window and budget, with reasons in words. Its limits are ours."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from acep_approx.budget.ledger import LIGHT

if TYPE_CHECKING:
    from acep_approx.budget.budget import Budget
    from acep_approx.results.tuning import Trial, Tuning

ENOUGH = 0.9
"""Recall that a recommended budget should have."""
WORTH = 0.05
"""By what share match points must grow for one more error, or a longer window, to be recommended."""
EXPLODES = 10.0
"""How many times more matches one more error may bring."""


@dataclass(frozen=True)
class Advice:
    """What to choose, and why.

    Attributes
    ----------
    errors, within, budget : int, str, str, optional
        None: the past does not tell.
    reasons : tuple of str
        Sentences.
    """

    errors: int | None
    within: str | None
    budget: str | None
    reasons: tuple[str, ...]


def advise(tuning: Tuning) -> Advice:
    """Recommend a window, errors and a budget.

    Returns
    -------
    Advice
        The longest window, then the most errors, such that each step on the way there brings 5% more match points, and
        no error ten times more matches; then the budget of the least work with a recall of 90%; none where the exact
        run is so little work that no budget saves time. These limits are ours.

    Examples
    --------
    >>> from acep_approx import Budget
    >>> from acep_approx.results import Trial, Tuning
    >>> trials = [Trial(0, "10 s", 100, 150, steps=18.0, work=(0.2, 0.5), recalls=(0.7, 0.95)),
    ...           Trial(1, "10 s", 102, 900, steps=30.0, work=(0.2, 0.5), recalls=(0.8, 0.92))]
    >>> advice = advise(Tuning((Budget.parse("20%"), Budget.parse("50%")), tuple(trials), 700, 300))
    >>> advice.errors, advice.within, advice.budget
    (0, '10 s', '50%')
    >>> for reason in advice.reasons:
    ...     print(reason)
    ERRORS 0: with 1, match points grow by 2% only (100 to 102), and run-steps per event from 18 to 30
    budget 50%: it is the least work that finds 90% of the match points; it finds 95%
    """
    tried = [trial for trial in tuning.trials if not trial.skipped]
    if not tried:
        return Advice(None, None, None, ("even the least ERRORS and WITHIN are too much load: raise the limit",))
    if not any(trial.points for trial in tried):
        why = "the last part of the past has no match point: there is nothing to choose by"
        return Advice(None, None, None, (why,))
    least = tuning.trials[0].errors
    window, why_window = _furthest([t for t in tuning.trials if t.errors == least], "WITHIN", _within)
    chosen, why_errors = _furthest([t for t in tuning.trials if t.within == window.within], "ERRORS", _errors)
    if chosen.steps < LIGHT:
        load = f"the exact run takes {chosen.steps:,.3g} run-steps per event"
        budget, why_budget = None, [f"no budget: {load}, and below {LIGHT:g} a budget saves no time"]
    else:
        budget, why_budget = _cheapest(chosen, tuning.budgets)
    return Advice(chosen.errors, chosen.within, budget, (*why_window, *why_errors, *why_budget))


def _within(trial: Trial) -> str:
    return trial.within


def _errors(trial: Trial) -> str:
    return str(trial.errors)


def _furthest(trials: Sequence[Trial], what: str, name: Callable[[Trial], str]) -> tuple[Trial, list[str]]:
    """The last choice of a rising row to which each step is worth it, and why not the next one."""
    chosen = trials[0]
    for after in trials[1:]:
        why = _stops(chosen, after, is_error=what == "ERRORS")
        if why:
            return chosen, [f"{what} {name(chosen)}: with {name(after)}, {why}"]
        chosen = after
    if len(trials) > 1:
        grown = f"match points grow from {trials[0].points:,} to {chosen.points:,} on the way there"
        return chosen, [f"{what} {name(chosen)}: {grown}, and run-steps per event {_steps(trials[0], chosen)}"]
    return chosen, []


def _stops(before: Trial, after: Trial, *, is_error: bool) -> str:
    """Why a step is not worth it; empty if it is."""
    if after.skipped:
        return f"it is too much: {after.skipped}"
    if after.points < (1 + WORTH) * before.points:
        share = f"{after.points / before.points - 1:.0%}" if before.points else "0%"
        return (
            f"match points grow by {share} only ({before.points:,} to {after.points:,}), and run-steps per event "
            f"{_steps(before, after)}"
        )
    if is_error and before.matches and after.matches > EXPLODES * before.matches:
        return (
            f"there are {after.matches / before.matches:,.0f} times as many matches ({before.matches:,} to "
            f"{after.matches:,}) at {after.points / before.points:.1f} times the match points"
        )
    return ""


def _steps(before: Trial, after: Trial) -> str:
    return f"from {before.steps:,.3g} to {after.steps:,.3g}"


def _cheapest(chosen: Trial, budgets: Sequence[Budget]) -> tuple[str | None, list[str]]:
    """The budget of the least work whose recall is enough, else that of the most recall."""
    if not chosen.recalls or not chosen.points:
        return None, []
    order = sorted(range(len(budgets)), key=lambda i: (chosen.work[i], i))
    for i in order:
        if chosen.recalls[i] >= ENOUGH:
            why = f"it is the least work that finds {ENOUGH:.0%} of the match points; it finds {chosen.recalls[i]:.0%}"
            return str(budgets[i]), [f"budget {budgets[i]}: {why}"]
    best = max(order, key=lambda i: chosen.recalls[i])
    why = f"none finds {ENOUGH:.0%} of the match points; this one finds most, {chosen.recalls[best]:.0%}"
    return str(budgets[best]), [f"budget {budgets[best]}: {why}"]
