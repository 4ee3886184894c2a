"""Learning while the stream runs: what runs are worth, from what a matcher that sheds still sees.

May import ``history``; imports nothing of ``acep_approx``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from history.lazy import lazy

if TYPE_CHECKING:
    from history.values import Values
    from rl.chart import Chart
    from rl.drift import Alarm
    from rl.records import Events, Lineages, Tests
    from rl.updater import Updater
else:
    __getattr__, __dir__ = lazy(
        __name__,
        {
            "rl.chart": "Chart",
            "rl.drift": "Alarm",
            "rl.records": "Events Lineages Tests",
            "rl.updater": "Updater",
            "history.values": "Values",
        },
    )

__distribution__ = "acep-approx"

__all__ = ["Alarm", "Chart", "Events", "Lineages", "Tests", "Updater", "Values"]
