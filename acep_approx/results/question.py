"""What is asked: a query, how the events are read that it is asked of, and how much of the answer is wanted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from numbers import Integral
from pathlib import Path
from types import NoneType
from typing import Any

import pyarrow as pa

from acep_approx.engines.runs.load_shedder import LoadShedder
from acep_approx.errors import UsageError, expect
from acep_approx.events.columns import readable
from acep_approx.events.source import Source, open_source
from acep_approx.events.time_formats import TimeFormat
from acep_approx.matching.execution import Execution, check_key_idle
from acep_approx.matching.outputs.bind import Bind, bound_names
from acep_approx.matching.outputs.kinds import MATCHES, OutputKind
from acep_approx.planning.durations import Duration
from acep_approx.planning.planner import MERGING, Plan, merging
from acep_approx.results.matched_events import ROW


@dataclass(frozen=True, kw_only=True)
class Reading:
    """How events are read, and what their columns mean: arguments of several methods of ``Query``."""

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


@dataclass(frozen=True, kw_only=True)
class Question:
    """A query that is asked of events, and how; of which events its matches say.

    Attributes
    ----------
    plan : Plan
    roles : dict
        Which columns are time, key and type, and the unit: as for ``Execution``.
    merge, bind, key_idle
        As for ``Execution``.
    sort : bool
        Sort the input by time first (needs memory for all of it).
    limit : int, optional
        List at most so many matches.
    on_progress : callable, optional
        Called after each batch with the number of events done so far.
    ended : bool
        Whether the stream ends with these events: see ``Execution.finish``.
    shows_rows : bool
        Whether matches show whole events, with all their columns behind ``matched_events.ROW``.

    Raises
    ------
    UsageError
        What does not go together, or is wrong by itself.
    """

    plan: Plan
    roles: dict[str, Any]
    merge: str = ",".join(MERGING)
    bind: Bind = None
    key_idle: Duration | None = None
    sort: bool = False
    limit: int | None = None
    on_progress: Callable[[int], None] | None = None
    ended: bool = True
    shows_rows: bool = False

    def __post_init__(self) -> None:
        merging(self.merge)  # a wrong name is told before anything is read
        bound_names(self.bind, self.plan.query)
        if self.key_idle is not None:
            check_key_idle(self.plan, MATCHES, self.key_idle)
        expect("limit", self.limit, (Integral, NoneType), "a whole number")
        expect("on_progress", self.on_progress, (Callable, NoneType), "a function of the number of events done")  # type: ignore[arg-type]
        if self.limit is not None and self.limit < 0:
            raise UsageError(f"limit is {self.limit}", code="ACEP-U002", hint="it cannot be negative")

    @property
    def options(self) -> dict[str, Any]:
        """What ``Execution`` is told, beside plan and output."""
        return {"merge": self.merge, "bind": self.bind, "key_idle": self.key_idle, **self.roles}

    def execution(self, output: OutputKind, shedding: LoadShedder | None = None) -> Execution:
        """What runs the query once."""
        made = Execution(self.plan, output=output, shedding=shedding, **self.options)
        made.row_column, made.may_search = ROW if self.shows_rows else None, True
        return made

    def of_columns(self, schema: pa.Schema) -> Question:
        """The same, asked of events of these columns."""
        return replace(self, bind=[ROW, *readable(schema).names]) if self.shows_rows else self
