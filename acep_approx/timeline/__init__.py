"""Pictures of matches on a line of time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from history.lazy import lazy

if TYPE_CHECKING:
    from acep_approx.timeline.picture import svg
else:
    __getattr__, __dir__ = lazy(
        __name__,
        {
            "acep_approx.timeline.picture": "svg",
        },
        gone={"timeline_html": "acep_approx.pages"},
    )

__all__ = [
    "svg",
]
