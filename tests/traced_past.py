"""The traces of some events: what tests of traces begin with."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from acep_approx.events.roles import infer_roles
from acep_approx.events.source import open_source
from acep_approx.events.stream import read_events
from acep_approx.events.time_formats import TimeFormat
from acep_approx.planning.planner import MERGING, Plan
from acep_approx.training.trace import Tracer
from history.trace import Trace


def trace_past(
    plan: Plan,
    events: Any,
    *,
    time: str | None = None,
    key: str | None = None,
    type: str | None = None,  # noqa: A002  (the word of the query language)
    unit: str | None = None,
    time_format: str | TimeFormat | None = None,
    sort: bool = False,
    merge: str = ",".join(MERGING),
    on_progress: Callable[[int], None] | None = None,
) -> Iterator[Trace]:
    """The traces of a past, as ``Tracer`` gives them.

    Parameters
    ----------
    plan : Plan
    events : what ``Query.match`` takes
    time, key, type, unit, time_format, sort, merge
        As for ``Query.match``.
    on_progress : callable, optional
        Called after each batch with the number of events done.

    Examples
    --------
    >>> from acep_approx import compile_query
    >>> past = [{"ts": tick, "type": kind} for tick, kind in enumerate("ABABC")]
    >>> plan = compile_query("PATTERN SEQ(A a, B b, C c) WITHIN 3").plan
    >>> [trace] = trace_past(plan, past)
    >>> births = trace.first_visits()
    >>> [(int(tick), int(mask)) for tick, mask in zip(trace.tick, trace.mask[births])]
    [(0, 0), (1, 0), (2, 1), (3, 1)]
    """
    source = open_source(events, time=time, time_format=time_format)
    if not len(source.schema):
        return
    roles = infer_roles(source.schema, time=time, key=key, type=type, unit=unit, time_format=time_format)
    tracer = Tracer(plan, source.schema, roles, merge)
    pipeline = tracer.pipeline
    for batch in read_events(source, pipeline.roles, columns=pipeline.columns, sort=sort):
        yield from tracer.push(batch)
        if on_progress:
            on_progress(tracer.progress.events)
    yield from tracer.finish()
