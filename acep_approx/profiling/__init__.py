"""What is in somebody's events, what their columns are taken for, and a first query that runs on them; see ``look``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from history.lazy import lazy

if TYPE_CHECKING:
    from acep_approx.profiling.profile import Look, look
else:
    __getattr__, __dir__ = lazy(__name__, {"acep_approx.profiling.profile": "Look look"})

__all__ = ["Look", "look"]
