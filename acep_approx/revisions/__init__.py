"""Streams that are late, revised and taken back: what was put out follows every change of the events."""

from __future__ import annotations

from typing import TYPE_CHECKING

from history.lazy import lazy

if TYPE_CHECKING:
    from acep_approx.revisions.matcher import RevisedMatcher
    from acep_approx.revisions.request import Revisions
    from acep_approx.revisions.stream import RevisionCounts
    from acep_approx.run.watermarks import Held, Holder
else:
    __getattr__, __dir__ = lazy(
        __name__,
        {
            "acep_approx.revisions.matcher": "RevisedMatcher",
            "acep_approx.revisions.request": "Revisions",
            "acep_approx.revisions.stream": "RevisionCounts",
            "acep_approx.run.watermarks": "Held Holder",
        },
    )

__all__ = ["Held", "Holder", "RevisedMatcher", "RevisionCounts", "Revisions"]
