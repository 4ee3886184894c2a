"""Whether a budget is needed: how much work the exact run would be, and how long it would take."""

from __future__ import annotations

from typing import TYPE_CHECKING

from acep_approx.budget.ledger import LIGHT

if TYPE_CHECKING:
    from acep_approx.budget.ledger import RunRecord


def need_words(record: RunRecord) -> str:
    """Work and time of the exact run against those of this one; whether a budget can save time at such a load.

    Parameters
    ----------
    record : RunRecord

    Returns
    -------
    str
        Sentences without a stop at the end. Times only where the run has shown how long a run-step takes.

    Examples
    --------
    >>> from acep_approx.budget import Piece, RunRecord
    >>> done = [Piece(tick=99, events=1000, work=9_000, bound=9_500, live=7, price=0.1, shed=30, points=12)]
    >>> print(need_words(RunRecord("", "", "20%", "", "history", pieces=done, full_work=45.0, seconds=0.5)))
    it takes about 45 run-steps per event, this one took 9 (20%)
    >>> print(need_words(RunRecord("", "", "20%", "", "history", pieces=done, full_work=2.5, seconds=0.5)))
    it takes about 2.5 run-steps per event: below 10 a budget saves no time and may take more; run it exactly
    >>> print(need_words(RunRecord("", "", "9 runs", "", "oldest", pieces=done)))
    unknown: nobody knows the work of the exact run here; a run without a budget, or acep train, says it
    """
    if record.full_work is None or not record.events:
        return work_words(None, 0.0)
    words = work_words(record.full_work, record.work / record.events)
    if record.is_light or record.exact_seconds is None or record.seconds is None:
        return words
    return f"{words}; it would take about {record.exact_seconds:,.2g} s, this one took {record.seconds:,.2g} s"


def work_words(full: float | None, done: float) -> str:
    """Run-steps per event of the exact run, as far as they are known, against those of one within a budget.

    Examples
    --------
    >>> work_words(45.0, 9.0)
    'it takes about 45 run-steps per event, this one took 9 (20%)'
    """
    if full is None:
        return "unknown: nobody knows the work of the exact run here; a run without a budget, or acep train, says it"
    exact = f"it takes about {full:,.3g} run-steps per event"
    if full < LIGHT:
        return f"{exact}: below {LIGHT:g} a budget saves no time and may take more; run it exactly"
    share = f" ({done / full:.0%})" if done < full else ""
    return f"{exact}, this one took {done:,.3g}{share}"
