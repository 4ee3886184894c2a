"""A matcher's state as bytes: a JSON header and plain arrays, never pickle.

Layout: an ``.npz`` archive of int64 arrays, ``header`` (JSON as UTF-8), and the schema, the keys and the recent events
as Arrow IPC streams. ``FORMAT`` changes when the layout does.
"""

from __future__ import annotations

import io
import json
from typing import Any

import numpy as np
import pyarrow as pa

from acep_approx.errors import DataError
from acep_approx.events.keys import KeyCodes
from acep_approx.events.roles import Roles
from acep_approx.matching.matcher import Matcher
from acep_approx.matching.pipeline import Pipeline, Progress
from acep_approx.matching.planner import Plan

FORMAT = 1


def state_bytes(matcher: Matcher) -> bytes:
    """All that ``matcher`` needs to go on in another process.

    Complexity: O(live state): what has left the window is dropped first.
    """
    header: dict[str, Any] = {
        "format": FORMAT,
        "query": matcher.plan.automaton.fingerprint(),
        "window": [matcher.plan.query.window.amount, matcher.plan.query.window.unit],
        "output": matcher.output,
        "state_cap": matcher.state_cap,
        "wanted": matcher.wanted,
        "progress": vars(matcher.progress),
        "last_tick": matcher.last_tick,
        "bound": matcher.pipeline is not None,
    }
    arrays: dict[str, Any] = {}
    if matcher.pipeline is not None:
        _save(matcher.pipeline, header, arrays)
    arrays["header"] = np.frombuffer(json.dumps(header).encode(), np.uint8)
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    return buffer.getvalue()


def matcher_from_state(plan: Plan, state: bytes) -> Matcher:
    """The matcher whose state this is, ready for the next batch.

    Raises
    ------
    DataError
        Not a state, a state of another query, or of another format.
    """
    try:
        arrays = dict(np.load(io.BytesIO(state), allow_pickle=False))
        header = json.loads(arrays.pop("header").tobytes())
    except (ValueError, KeyError, OSError, EOFError) as error:
        raise DataError("these bytes are not the state of a matcher", code="ACEP-D040") from error
    if header["format"] != FORMAT:
        raise DataError(
            f"the state has format {header['format']}, this version reads format {FORMAT}",
            code="ACEP-D041",
            hint="go on with the version that wrote it, or start from the beginning",
        )
    here = [plan.automaton.fingerprint(), [plan.query.window.amount, plan.query.window.unit]]
    if [header["query"], header["window"]] != here:
        raise DataError(
            f"the state is of another query: fingerprint {header['query']}, window {header['window']}; "
            f"this one has fingerprint {here[0]}, window {here[1]}",
            code="ACEP-D042",
            hint="restore a state with the query it was made with",
        )
    matcher = Matcher(plan, output=header["output"], state_cap=header["state_cap"], **header["wanted"])
    if header["bound"]:
        _restore(matcher.bind(_table(arrays["schema"]).schema, Roles(**header["roles"])), header, arrays)
    matcher.progress = Progress(**header["progress"])
    matcher.last_tick = header["last_tick"]
    return matcher


def _save(pipeline: Pipeline, header: dict[str, Any], arrays: dict[str, Any]) -> None:
    preparer, recent = pipeline.preparer, pipeline.recent
    header["roles"] = vars(pipeline.roles)
    header["classes"] = preparer.classes
    header["slots"] = preparer.slots
    header["without_key"] = preparer.without_key
    header["engine"] = pipeline.engine.header()
    arrays["schema"] = _raw(pipeline.schema.empty_table())
    arrays["counters"] = preparer.counters
    arrays["keys"] = _raw(pa.Table.from_batches([preparer.keys.to_state()]))
    arrays["recent_rows"], arrays["recent_ticks"] = recent.rows, recent.ticks
    arrays["recent_data"] = _raw(recent.data)
    arrays.update({f"engine_{name}": array for name, array in pipeline.engine.arrays().items()})


def _restore(pipeline: Pipeline, header: dict[str, Any], arrays: dict[str, Any]) -> None:
    preparer, recent = pipeline.preparer, pipeline.recent
    for mask in header["classes"][1:]:
        preparer.add_class(mask)
    preparer.slots = header["slots"]
    preparer.without_key = header["without_key"]
    preparer.set_counters(arrays["counters"])
    preparer.keys = KeyCodes.from_state(_batch(arrays["keys"]))
    recent.rows, recent.ticks = arrays["recent_rows"], arrays["recent_ticks"]
    recent.data = _table(arrays["recent_data"])
    engine = {name.removeprefix("engine_"): array for name, array in arrays.items() if name.startswith("engine_")}
    pipeline.engine.restore(header["engine"], engine, preparer.classes)


def _raw(table: pa.Table) -> Any:
    """A table as an array of bytes (Arrow IPC stream)."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return np.frombuffer(sink.getvalue(), np.uint8)


def _table(raw: Any) -> pa.Table:
    return pa.ipc.open_stream(pa.py_buffer(raw.tobytes())).read_all()


def _batch(raw: Any) -> pa.RecordBatch:
    table = _table(raw).combine_chunks()
    batches = table.to_batches()
    return batches[0] if batches else pa.RecordBatch.from_pylist([], schema=table.schema)
