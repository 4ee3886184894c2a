"""Learning while the stream runs: what runs are worth, from what a matcher that sheds still sees.

May import ``history``; imports nothing of ``acep_approx``.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rl.chart import Chart
    from rl.drift import Alarm
    from rl.records import Events, Lineages, Tests
    from rl.updater import Updater
    from rl.values import Values

__distribution__ = "acep-approx"

__all__ = ["Alarm", "Chart", "Events", "Lineages", "Tests", "Updater", "Values"]

_HOME = {
    **dict.fromkeys(("Events", "Lineages", "Tests"), "rl.records"),
    "Alarm": "rl.drift",
    "Chart": "rl.chart",
    "Updater": "rl.updater",
    "Values": "rl.values",
}


def __getattr__(name: str) -> Any:
    """Load a public name when it is first used: importing the package stays cheap."""
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
