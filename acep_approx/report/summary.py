"""What a run under a budget did, in a few lines for the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from acep_approx.report.drawing import percent

if TYPE_CHECKING:
    from acep_approx.budget.audit import RecallEstimate
    from acep_approx.budget.ledger import RunRecord


def summary(record: RunRecord) -> list[str]:
    """Work used against the bound, what was shed, the estimated recall, and the events that were not matched.

    Parameters
    ----------
    record : RunRecord

    Returns
    -------
    list of str
        Lines without line ends.

    Examples
    --------
    >>> from acep_approx.budget.audit import RecallEstimate
    >>> from acep_approx.budget.ledger import Piece, RunRecord, Shed
    >>> record = RunRecord(
    ...     "SEQ(A a, B b) WITHIN 5", "x.csv", "20%", "at most 9 run-steps per event", "history",
    ...     pieces=[Piece(tick=99, events=100, work=850, bound=900, live=7, price=0.1, shed=30, points=12)],
    ...     shed=[Shed("a", "at birth", 20), Shed("a", "in a pass", 10)],
    ...     recall=RecallEstimate(0.9, 0.84, 0.94, points=40, cells=11, outside=100),
    ... )
    >>> for line in summary(record):
    ...     print(line)
    work: 850 run-steps of 900 allowed (94.4%), 8.5 per event; at most 9 run-steps per event
    shed: 30 runs
      a: 20 at birth, 10 in a pass
    estimated recall: 90% (84% to 94% with 95% confidence; 40 match points audited in 11 cells)
    """
    return [_work(record), *_shed(record), f"estimated recall: {recall_words(record.recall)}", *_left_out(record)]


def recall_words(estimate: RecallEstimate | None) -> str:
    """The estimate with its interval, or why there is none."""
    if estimate is None:
        return "unknown: there was no audit"
    if estimate.recall is None or estimate.low is None or estimate.high is None:
        return f"unknown: {estimate.reason}"
    cells = f"{estimate.cells:,} cell{'' if estimate.cells == 1 else 's'}"
    points = f"{estimate.points:,} match point{'' if estimate.points == 1 else 's'}"
    return (
        f"{percent(estimate.recall)} ({percent(estimate.low)} to {percent(estimate.high)} with "
        f"{percent(estimate.level)} confidence; {points} audited in {cells})"
    )


def _work(record: RunRecord) -> str:
    if not record.events:
        return f"work: none, there were no events; {record.bound}"
    used = f" ({percent(record.work / record.allowed)})" if record.allowed else ""
    return (
        f"work: {record.work:,} run-steps of {record.allowed:,} allowed{used}, "
        f"{record.work / record.events:,.1f} per event; {record.bound}"
    )


def _shed(record: RunRecord) -> list[str]:
    """A line a state, the largest first."""
    by_state: dict[str, dict[str, int]] = {}
    for shed in record.shed:
        reasons = by_state.setdefault(shed.state, {})
        reasons[shed.reason] = reasons.get(shed.reason, 0) + shed.runs
    lines = [f"shed: {record.shed_runs:,} run{'' if record.shed_runs == 1 else 's'}"]
    for state, reasons in sorted(by_state.items(), key=lambda item: (-sum(item[1].values()), item[0])):
        ranked = sorted(reasons.items(), key=lambda item: (-item[1], item[0]))
        lines.append(f"  {state}: " + ", ".join(f"{runs:,} {reason}" for reason, runs in ranked))
    return lines


def _left_out(record: RunRecord) -> list[str]:
    """Events that were not matched, if there are any."""
    counts = (("late", record.late), ("malformed", record.malformed), ("without key", record.without_key))
    said = [f"{number:,} {name}" for name, number in counts if number]
    return [f"events not matched: {', '.join(said)}"] if said else []
