"""What a notebook shows of a matcher whose events may be late or change."""

from __future__ import annotations

from typing import Any

from acep_approx.diagrams.fragments import bounded, plain, soft, tiles, title, view
from acep_approx.timeline.scale import moment_text


def revised_view(matcher: Any) -> str:
    """The query, what became of the rows so far, and how far the watermark is."""
    numbers = [(f"{matcher.rows:,}", "rows so far"), (f"{matcher.held_events:,}", "events held: they may still change")]
    numbers += [(f"{number:,}", name.replace("_", " ")) for name, number in vars(matcher.revisions).items() if number]
    reached = matcher.watermark
    at = None if reached is None else moment_text(reached, is_time=matcher.is_time)
    told = "Nothing has moved the watermark yet." if at is None else f"The watermark is at {at}."
    return view(
        title("Live run of a query whose events may be late or change"),
        plain(bounded(str(matcher.plan.query.text))),
        tiles(numbers),
        soft(told),
    )
