"""The state of a pipeline as bytes: a JSON header and plain arrays, never pickle.

Layout: see ``blob``; int64 arrays, and the schema, the keys and the recent events as Arrow IPC streams. ``FORMAT``
changes when the layout does.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from acep_approx.errors import DataError
from acep_approx.events.ipc import from_ipc, to_ipc
from acep_approx.events.keys import KeyCodes
from acep_approx.events.roles import Roles
from acep_approx.matching.blob import joined, split
from acep_approx.matching.pipeline import Pipeline
from acep_approx.matching.planner import Plan

FORMAT = 4
Header = dict[str, Any]
Arrays = dict[str, Any]


def pack(plan: Plan, header: Header, pipeline: Pipeline | None, last_tick: int) -> bytes:
    """Everything that is needed to go on in another process.

    Parameters
    ----------
    plan : Plan
        Its fingerprint and window are kept, to refuse the state of another query.
    header : dict
        What the caller wants to keep, as JSON.
    pipeline : Pipeline or None
        None where no events have been seen.
    last_tick : int
        Of the last event: what has left its window is not kept.

    Complexity: O(state).
    """
    arrays: Arrays = {}
    saved = {"format": FORMAT, "query": _meaning(plan), "caller": header, "bound": pipeline is not None}
    if pipeline is not None:
        _save(pipeline, saved, arrays, last_tick)
    return joined(saved, arrays)


def unpack(plan: Plan, state: bytes) -> tuple[Header, Header, Arrays]:
    """What ``pack`` put together: the caller's header, and what ``restore`` wants.

    Raises
    ------
    DataError
        Not a state, a state of another query, or of another format.
    """
    try:
        saved, arrays = split(state)
    except ValueError as error:
        raise DataError("these bytes are not the state of a matcher", code="ACEP-D040") from error
    if saved["format"] != FORMAT:
        raise DataError(
            f"the state has format {saved['format']}, this version reads format {FORMAT}",
            code="ACEP-D041",
            hint="go on with the version that wrote it, or start from the beginning",
        )
    here = _meaning(plan)
    if saved["query"] != here:
        (theirs, their_window), (ours, our_window) = saved["query"], here
        raise DataError(
            f"the state is of another query: fingerprint {theirs}, window {their_window}; "
            f"this one has fingerprint {ours}, window {our_window}",
            code="ACEP-D042",
            hint="restore a state with the query it was made with",
        )
    return saved["caller"], saved, arrays


def restore(new: Callable[[pa.Schema, Roles], Pipeline], saved: Header, arrays: Arrays) -> Pipeline | None:
    """The pipeline that was packed, ready for the next batch; None where there was none.

    Parameters
    ----------
    new : callable
        Makes a pipeline for events of a schema.
    saved, arrays
        As ``unpack`` gives them.

    Raises
    ------
    DataError
        ``ACEP-D044``: one of the two is inside a load budget, the other is not.
    """
    if not saved["bound"]:
        return None
    schema = from_ipc(arrays["schema"]).schema
    pipeline = new(schema, Roles(**saved["roles"]))
    preparer, recent = pipeline.preparer, pipeline.recent
    for mask in saved["classes"][1:]:
        preparer.add_class(mask)
    preparer.slots = saved["slots"]
    preparer.without_key = saved["without_key"]
    preparer.set_counters(arrays["counters"], room=max(preparer.slots, 1))
    preparer.keys = KeyCodes.from_state(_batch(arrays["keys"]))
    recent.rows, recent.ticks = arrays["recent_rows"], arrays["recent_ticks"]
    recent.data = from_ipc(arrays["recent_data"])
    pipeline.go_on(saved["pipeline"])
    engine = {name.removeprefix("engine_"): array for name, array in arrays.items() if name.startswith("engine_")}
    pipeline.engine.restore(saved["engine"], engine, preparer.classes)
    pipeline.restore({name.removeprefix("output_"): a for name, a in arrays.items() if name.startswith("output_")})
    return pipeline


def _save(pipeline: Pipeline, saved: Header, arrays: Arrays, last_tick: int) -> None:
    preparer, recent = pipeline.preparer, pipeline.recent
    saved["roles"] = vars(pipeline.roles)
    saved["classes"] = preparer.classes
    saved["slots"] = preparer.slots
    saved["without_key"] = preparer.without_key
    saved["pipeline"] = pipeline.header()
    saved["engine"] = pipeline.engine.header()
    floors = pipeline.floors_after(last_tick)
    arrays["schema"] = _raw(pipeline.schema.empty_table())
    arrays["counters"] = preparer.counters[: preparer.slots * preparer.counts_events]
    arrays["keys"] = _raw(pa.Table.from_batches([preparer.keys.to_state()]))
    arrays["recent_rows"], arrays["recent_ticks"] = recent.rows, recent.ticks
    arrays["recent_data"] = _raw(recent.data)
    arrays.update({f"engine_{name}": array for name, array in pipeline.engine.arrays(floors).items()})
    arrays.update({f"output_{name}": array for name, array in pipeline.arrays().items()})


def _meaning(plan: Plan) -> list[Any]:
    """What makes a state useless to another query, as JSON gives it back."""
    return [plan.fingerprint(), [plan.query.window.amount, plan.query.window.unit]]


def _raw(table: pa.Table) -> Any:
    """A table as an array of bytes."""
    return np.frombuffer(to_ipc(table), np.uint8)


def _batch(raw: Any) -> pa.RecordBatch:
    table = from_ipc(raw).combine_chunks()
    batches = table.to_batches()
    return batches[0] if batches else pa.RecordBatch.from_pylist([], schema=table.schema)
