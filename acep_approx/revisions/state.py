"""The state of a matcher whose events may change: where it stands before the tail, and the tail's events."""

from __future__ import annotations

import numpy as np

from acep_approx.archive import Scope
from acep_approx.arrays import Ints
from acep_approx.matching.state import MATCHER, saved
from acep_approx.matching.stream_side import StreamSide
from acep_approx.planning.planner import Plan
from acep_approx.ranges import HIGHEST, LOWEST, TICK, Range, check, number_in
from acep_approx.revisions.segments import PlacedEvents
from acep_approx.revisions.stream import RevisedStream
from acep_approx.run.events import Events
from acep_approx.run.watermarks import Watermarks

COLUMNS = ("tick", "arrival", "tie", "place")


def packed(plan: Plan, mine: Scope, stream: RevisedStream | None) -> bytes:
    """Return the state of a matcher, of which ``mine`` says all but where its stream stands."""
    if stream is None:
        return _packed(plan, None, mine)
    side, run = stream.pipeline.stream, stream.run
    side.check_whole()
    events = mine.sub("stream")
    events.head |= {
        "names": stream.names,
        "op": stream.op,
        "watermarks": stream.watermarks.header(),
        "closed": stream.closed.header(),
        "vacant": stream.live.vacant,
        "run": run.header(),
    }
    in_tail = [part for segment in run.tail.segments for part in segment.parts]
    _save(events, "waiting", Events.joined(stream.waiting.parts or [stream.none]))
    _save(events, "passed", _joined(run.tail.passed, stream))
    _save(events, "tail", _joined(in_tail, stream))
    with run.at_base():
        return _packed(plan, side, mine)


def take_up(stream: RevisedStream, scope: Scope) -> None:
    """Bring a stream that was set up to where it stood; ``scope`` is that of its events.

    Raises
    ------
    DamagedError, DataError
        The parts of the state do not fit together.
    """
    head = scope.head
    check("op", good=isinstance(head["op"], str | None))
    stream.watermarks = Watermarks.restore(head["watermarks"])
    stream.closed.restore(head["closed"])
    if head["vacant"]:
        tick, tie = head["vacant"]
        stream.live.vacant = number_in("vacant", tick, -TICK, TICK), number_in("vacant", tie, LOWEST, HIGHEST)
    passed, tail, waiting = (_load(scope, name) for name in ("passed", "tail", "waiting"))
    for events in (passed, tail, waiting):
        check("columns", good=events.data.schema.names == list(stream.columns))
    stream.waiting.add(Events(waiting.tick, waiting.arrival, waiting.tie, waiting.data))
    stream.run.take_up(head["run"], passed, tail)
    if stream.op is not None:
        stream.live.forget_all_but((passed, tail, waiting))


def _packed(plan: Plan, side: StreamSide | None, mine: Scope) -> bytes:
    scope = saved(plan, {}, side)
    scope.parts["revisions"] = mine
    return MATCHER.pack(scope)


def _joined(parts: list[PlacedEvents], stream: RevisedStream) -> PlacedEvents:
    whole = [part for part in parts if len(part)]
    none = np.zeros(0, np.int64)
    return PlacedEvents.joined(whole) if whole else PlacedEvents.of(stream.none, none, none)


def _save(scope: Scope, name: str, events: Events) -> None:
    columns = {column: getattr(events, column) for column in COLUMNS if hasattr(events, column)}
    scope.sub(name, arrays=columns).put("data", events.data)


def _load(scope: Scope, name: str) -> PlacedEvents:
    kept = scope.parts[name]
    columns: dict[str, Ints] = {column: kept.array(column) for column in COLUMNS if column in kept.arrays}
    data, place = kept.batch("data"), columns.get("place", columns["tick"])
    events = Events(kept.array("tick", Range(low=-TICK, end=TICK)), columns["arrival"], columns["tie"], data)
    check("columns", good={len(events.tick), len(events.arrival), len(events.tie), len(place)} == {data.num_rows})
    if name != "waiting":
        check("order", good=(events.tick[1:] >= events.tick[:-1]).all() and (place[1:] > place[:-1]).all())
    return PlacedEvents.of(events, place, np.full(len(events), -1))
