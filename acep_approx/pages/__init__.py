"""Pages of HTML that need no network, made of plain data: what runs found, what a budget did, what tuning says."""

from __future__ import annotations

from typing import TYPE_CHECKING

from history.lazy import lazy

if TYPE_CHECKING:
    from acep_approx.pages.budget.lines import summary
    from acep_approx.pages.over_time import timeline_html
else:
    __getattr__, __dir__ = lazy(
        __name__,
        {
            "acep_approx.pages.budget.lines": "summary",
            "acep_approx.pages.over_time": "timeline_html",
        },
    )

__all__ = [
    "summary",
    "timeline_html",
]
