"""What a run under a budget did: one page of HTML, and a few lines for the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from history.lazy import lazy, moved

if TYPE_CHECKING:
    from acep_approx.report.lines import summary
else:
    __getattr__, __dir__ = lazy(
        __name__,
        {
            "acep_approx.report.lines": "summary",
        },
    )

__all__ = [
    "summary",
]

moved([f"{__name__}.summary"], __name__)
