"""The state of a pipeline as bytes: a JSON header and plain arrays, never pickle.

Layout: see ``blob``, which refuses bytes that have changed; int64 arrays, and the schema, the keys and the recent
events as Arrow IPC streams. ``FORMAT`` changes when the layout does.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from acep_approx.errors import DataError
from acep_approx.events.keys import KeyCodes
from acep_approx.events.reading.ipc import from_ipc, to_ipc
from acep_approx.events.roles import Roles
from acep_approx.matching.blob import joined, split
from acep_approx.matching.pipeline import Pipeline
from acep_approx.matching.sealed import OlderBytesError
from acep_approx.planning.planner import Plan
from acep_approx.query.printer import to_text

FORMAT = 5
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
    saved = {"format": FORMAT, "query": meaning(plan), "caller": header, "bound": pipeline is not None}
    if pipeline is not None:
        _save(pipeline, saved, arrays, last_tick)
    return joined(saved, arrays)


def unpack(plan: Plan, state: bytes) -> tuple[Header, Header, Arrays]:
    """What ``pack`` put together: the caller's header, and what ``restore`` wants.

    Raises
    ------
    DataError
        Not a state (ACEP-D040), a state of another format (ACEP-D041), or of another query (ACEP-D042).
    """
    try:
        saved, arrays = split(state)
        format_, theirs = saved["format"], saved["query"]
    except OlderBytesError as error:
        raise _other_format(f"less than {FORMAT}") from error
    except (ValueError, KeyError) as error:
        raise DataError(
            "these bytes are not the state of a matcher, or not all as they were written",
            code="ACEP-D040",
            hint="take a copy that is whole, or start from the beginning",
        ) from error
    if format_ != FORMAT:
        raise _other_format(format_)
    ours = meaning(plan)
    if theirs != ours:
        other = [name for name in ours if theirs[name] != ours[name]]
        had, have = ("; ".join(f"{name} {one[name] or '(none)'}" for name in other) for one in (theirs, ours))
        raise DataError(
            f"the state is of another query: {had}; this one has {have}",
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
    recent.ids, recent.ticks, recent.rows = (arrays[f"recent_{name}"] for name in ("ids", "ticks", "rows"))
    recent.data = from_ipc(arrays["recent_data"])
    pipeline.restore_counters(saved["pipeline"])
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
    saved["pipeline"] = pipeline.counters()
    saved["engine"] = pipeline.engine.header()
    floors = pipeline.floors_after(last_tick)
    arrays["schema"] = _raw(pipeline.schema.empty_table())
    arrays["counters"] = preparer.counters[: preparer.slots * preparer.counts_events]
    arrays["keys"] = _raw(pa.Table.from_batches([preparer.keys.to_state()]))
    arrays["recent_ids"], arrays["recent_ticks"], arrays["recent_rows"] = recent.ids, recent.ticks, recent.rows
    arrays["recent_data"] = _raw(recent.data)
    arrays.update({f"engine_{name}": array for name, array in pipeline.engine.arrays(floors).items()})
    arrays.update({f"output_{name}": array for name, array in pipeline.arrays().items()})


def _other_format(theirs: object) -> DataError:
    return DataError(
        f"the state has format {theirs}, this version reads format {FORMAT}",
        code="ACEP-D041",
        hint="go on with the version that wrote it, or start from the beginning",
    )


def meaning(plan: Plan) -> dict[str, str]:
    """What makes a state useless to another query: what is run, on which partitions, and which columns are kept."""
    query = plan.query
    return {
        "fingerprint": plan.fingerprint(),
        "window": f"{query.window.amount} {query.window.unit}",
        "partitions by": ", ".join(equivalence.name for equivalence in query.equivalences),
        "RETURN": ", ".join(f"{to_text(output.value)} AS {output.name}" for output in query.outputs),
    }


def _raw(table: pa.Table) -> Any:
    """A table as an array of bytes."""
    return np.frombuffer(to_ipc(table), np.uint8)


def _batch(raw: Any) -> pa.RecordBatch:
    table = from_ipc(raw).combine_chunks()
    batches = table.to_batches()
    return batches[0] if batches else pa.RecordBatch.from_pylist([], schema=table.schema)
