"""What is in somebody's events, what their columns are taken for, and a first query that runs on them; see ``look``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from history.lazy import lazy

if TYPE_CHECKING:
    from acep_approx.profiling.profile import look
    from acep_approx.profiling.seen import Look
else:
    __getattr__, __dir__ = lazy(
        __name__, {"acep_approx.profiling.profile": "look", "acep_approx.profiling.seen": "Look"}
    )

__all__ = ["Look", "look"]
