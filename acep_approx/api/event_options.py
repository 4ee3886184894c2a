"""How events are read, and what their columns mean: arguments of several methods of ``Query``, as one object."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from acep_approx.events.source import Source, open_source
from acep_approx.events.time_formats import TimeFormat


@dataclass(frozen=True, kw_only=True)
class EventOptions:
    """The arguments of ``Query.match`` that are about the events."""

    time: str | None = None
    key: str | None = None
    type: str | None = None
    unit: str | None = None
    start: str | None = None
    time_format: str | TimeFormat | None = None
    format: str | None = None
    on_malformed: str = "refuse"
    rejects: str | Path | None = None
    on_late: str = "refuse"
    late: str | Path | None = None

    @property
    def roles(self) -> dict[str, Any]:
        """What columns mean, as ``Execution`` takes it."""
        named = {"time": self.time, "key": self.key, "type": self.type, "unit": self.unit, "start": self.start}
        return named | TimeFormat.plain(self.time_format)

    def open(self, events: Any) -> Source:
        """The events, opened; nothing is read but the beginning."""
        return open_source(
            events,
            format=self.format,
            on_malformed=self.on_malformed,
            rejects=self.rejects,
            on_late=self.on_late,
            late=self.late,
            time=self.time,
            time_format=self.time_format,
        )
