"""The state of a matcher whose events may change, as bytes: where it stands before the tail, and the tail's events."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from acep_approx.arrays import Ints
from acep_approx.errors import DataError
from acep_approx.events.reading.ipc import from_ipc
from acep_approx.matching.execution import Execution
from acep_approx.matching.state import Saved, pack, raw
from acep_approx.planning.planner import Plan
from acep_approx.ranges import HIGHEST, LOWEST, TICK, Range, check, check_arrays, number_in
from acep_approx.revisions.events import Events, PlacedEvents
from acep_approx.revisions.final import FinalRun
from acep_approx.revisions.replay import Replay
from acep_approx.revisions.request import Revisions
from acep_approx.revisions.stream import RevisedStream, RevisionCounts
from acep_approx.revisions.watermarks import Watermarks

FORMAT = 2
COLUMNS = ("tick", "arrival", "tie", "place")


class Packable(Protocol):
    """A matcher whose events may change."""

    plan: Plan
    asked: Revisions
    execution: Execution
    revisions: RevisionCounts
    rows: int
    left_out: list[pa.Table]
    stream: RevisedStream | None


def packed(matcher: Packable) -> bytes:
    """Everything that is needed to go on with a matcher."""
    mine: dict[str, Any] = {
        "format": FORMAT,
        "asked": matcher.asked.header(),
        "options": matcher.execution.options(),
        "counts": asdict(matcher.revisions),
        "rows": matcher.rows,
        "stream": None,
    }
    arrays: dict[str, Any] = {}
    if matcher.left_out:
        arrays["left_out"] = raw(pa.concat_tables(matcher.left_out, promote_options="permissive"))
    stream = matcher.stream
    caller = {"revisions": mine}
    if stream is None:
        return pack([(matcher.plan, caller)], None, arrays)
    stream.pipeline.stream.check_whole()
    run = stream.run
    mine["stream"] = {
        "names": stream.names,
        "op": stream.op,
        "watermarks": stream.watermarks.header(),
        "closed": stream.closed.header(),
        "vacant": stream.live.vacant,
        "run": run.header(),
    }
    _save(arrays, "waiting", Events.joined(stream.waiting.parts) if stream.waiting.parts else stream.no_events())
    _save(arrays, "passed", _joined(run.tail.passed, stream))
    in_tail = [part for segment in run.tail.segments for part in segment.parts]
    _save(arrays, "tail", _joined(in_tail, stream))
    if isinstance(run, FinalRun):
        return pack([(matcher.plan, caller)], stream.pipeline.stream, arrays)
    head = run.go_to_base()
    state = pack([(matcher.plan, caller)], stream.pipeline.stream, arrays)
    head.bring_back(np.arange(stream.pipeline.key_slots.slots))
    return state


def checked(saved: Saved) -> dict[str, Any]:
    """What ``packed`` wrote of a matcher.

    Raises
    ------
    DataError
        ``ACEP-D041``: another version wrote it.
    """
    mine: dict[str, Any] = saved.callers[0]["revisions"]
    if mine["format"] != FORMAT:
        raise DataError(
            f"the state has format {mine['format']}, this version reads format {FORMAT}",
            code="ACEP-D041",
            hint="go on with the version that wrote it, or start from the beginning",
        )
    return mine


def left_out(saved: Saved) -> list[pa.Table]:
    """The rows that were left out and not asked for yet."""
    return [from_ipc(saved.arrays["left_out"])] if "left_out" in saved.arrays else []


def take_up(stream: RevisedStream, saved: Saved, header: dict[str, Any]) -> None:
    """Bring a stream that was set up to where it stood.

    Raises
    ------
    DataError
        ``ACEP-D040``: the parts of the state do not fit together.
    """
    check("op", good=isinstance(header["op"], str | None))
    stream.watermarks = Watermarks.restore(header["watermarks"])
    stream.closed.restore(header["closed"])
    if header["vacant"]:
        tick, tie = header["vacant"]
        stream.live.vacant = number_in("vacant", tick, -TICK, TICK), number_in("vacant", tie, LOWEST, HIGHEST)
    passed, tail, waiting = (_load(saved, name) for name in ("passed", "tail", "waiting"))
    for events in (passed, tail, waiting):
        check("columns", good=events.data.schema.names == list(stream.columns))
    stream.waiting.add(Events(waiting.tick, waiting.arrival, waiting.tie, waiting.data))
    if isinstance(stream.run, Replay):
        stream.run.take_up(header["run"], passed, tail)
    else:
        stream.run.take_up(header["run"], passed)
    if stream.op is not None:
        stream.live.forget_all_but((passed, tail, waiting))


def _joined(parts: list[PlacedEvents], stream: RevisedStream) -> PlacedEvents:
    whole = [part for part in parts if len(part)]
    none = np.zeros(0, np.int64)
    return PlacedEvents.joined(whole) if whole else PlacedEvents.of(stream.no_events(), none, none)


def _save(arrays: dict[str, Any], name: str, events: Events) -> None:
    for column in COLUMNS:
        if hasattr(events, column):
            arrays[f"{name}_{column}"] = getattr(events, column)
    arrays[f"{name}_data"] = raw(pa.Table.from_batches([events.data]))


def _load(saved: Saved, name: str) -> PlacedEvents:
    columns: dict[str, Ints] = {c: saved.arrays[f"{name}_{c}"] for c in COLUMNS if f"{name}_{c}" in saved.arrays}
    table = from_ipc(saved.arrays[f"{name}_data"]).combine_chunks()
    data = table.to_batches()[0] if table.num_rows else pa.RecordBatch.from_pylist([], schema=table.schema)
    place = columns.get("place", columns["tick"])
    events = Events(columns["tick"], columns["arrival"], columns["tie"], data)
    check_arrays(columns, dict.fromkeys(columns, Range()) | {"tick": Range(low=-TICK, end=TICK)})
    in_order = name == "waiting" or (events.tick[1:] >= events.tick[:-1]).all()
    lengths = {len(events.tick), len(events.arrival), len(events.tie), len(place), data.num_rows}
    if len(lengths) > 1 or not in_order or (name != "waiting" and (place[1:] <= place[:-1]).any()):
        raise DataError(
            "the parts of the state do not fit together",
            code="ACEP-D040",
            hint="take a copy that is whole, or start from the beginning",
        )
    return PlacedEvents.of(events, place, np.full(len(events), -1))
