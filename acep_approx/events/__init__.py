"""Events: columnar batches in, with the roles of their columns, checked time and dictionary-encoded strings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from history.lazy import lazy

if TYPE_CHECKING:
    from acep_approx.events.demo import flights
    from acep_approx.events.keys import KeyCodes
    from acep_approx.events.live.source import LiveSource, follow
    from acep_approx.events.roles import Roles, infer_roles
    from acep_approx.events.source import Source, open_source
    from acep_approx.events.stream import EventBatch, read_events
    from acep_approx.events.time import tick_unit, ticks, to_datetime
    from acep_approx.events.time_formats import TimeFormat
else:
    __getattr__, __dir__ = lazy(
        __name__,
        {
            "acep_approx.events.demo": "flights",
            "acep_approx.events.keys": "KeyCodes",
            "acep_approx.events.live.source": "LiveSource follow",
            "acep_approx.events.roles": "Roles infer_roles",
            "acep_approx.events.source": "Source open_source",
            "acep_approx.events.stream": "EventBatch read_events",
            "acep_approx.events.time": "tick_unit ticks to_datetime",
            "acep_approx.events.time_formats": "TimeFormat",
        },
    )

__all__ = [
    "EventBatch",
    "KeyCodes",
    "LiveSource",
    "Roles",
    "Source",
    "TimeFormat",
    "flights",
    "follow",
    "infer_roles",
    "open_source",
    "read_events",
    "tick_unit",
    "ticks",
    "to_datetime",
]
