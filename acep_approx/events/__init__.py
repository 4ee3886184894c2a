"""Events: columnar batches in, with the roles of their columns, checked time and dictionary-encoded strings.

Names are loaded on first use, so that importing this package costs nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from acep_approx.events.demo import flights
    from acep_approx.events.keys import KeyCodes
    from acep_approx.events.roles import Roles, infer_roles
    from acep_approx.events.source import Source, open_source
    from acep_approx.events.stream import EventBatch, read_events
    from acep_approx.events.time import tick_unit, ticks, to_datetime

_HOMES = {
    "EventBatch": "stream",
    "KeyCodes": "keys",
    "Roles": "roles",
    "Source": "source",
    "flights": "demo",
    "infer_roles": "roles",
    "open_source": "source",
    "read_events": "stream",
    "tick_unit": "time",
    "ticks": "time",
    "to_datetime": "time",
}

__all__ = [
    "EventBatch",
    "KeyCodes",
    "Roles",
    "Source",
    "flights",
    "infer_roles",
    "open_source",
    "read_events",
    "tick_unit",
    "ticks",
    "to_datetime",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
