"""The state of the queries on a stream as bytes: a JSON header and plain arrays, never pickle.

The stream side is packed once, and each query's side beside it; the state of one query is the case of one.

Layout: see ``blob``, which refuses bytes that have changed; int64 arrays, and the schema, the keys and the recent
events as Arrow IPC streams. ``FORMAT`` changes when the layout does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from acep_approx.errors import DataError
from acep_approx.events.keys import KeyCodes
from acep_approx.events.reading.ipc import from_ipc, to_ipc
from acep_approx.events.roles import UNITS, Roles
from acep_approx.matching.blob import joined, split
from acep_approx.matching.idle_keys import IdleKeys
from acep_approx.matching.pipeline import Pipeline
from acep_approx.matching.sealed import OlderBytesError
from acep_approx.matching.stream_side import StreamSide
from acep_approx.planning.planner import Plan
from acep_approx.query.printer import to_text
from acep_approx.ranges import COUNT, TICK, Range, check, check_arrays, number_in, reading

FORMAT = 10
Header = dict[str, Any]
Arrays = dict[str, Any]
MOST_FREE = 1 << 16
"""Key slots of keys that went away, beyond those that something of a state is about."""


def pack(
    queries: Sequence[tuple[Plan, Header]], stream: StreamSide | None, more: Mapping[str, Any] | None = None
) -> bytes:
    """Everything that is needed to go on in another process: the stream side once, and each query's side beside it.

    Parameters
    ----------
    queries : sequence of (Plan, dict)
        In the order of the stream. Of the plan its fingerprint and window are kept, to refuse the state of another
        query; the dict is what the caller wants to keep of it, as JSON.
    stream : StreamSide or None
        None where no columns have been seen.
    more : mapping of str to array, optional
        What the caller wants to keep beside it.

    Raises
    ------
    DataError
        ``ACEP-D045``: an error stopped it in the middle of a batch.

    Complexity: O(state).
    """
    arrays: Arrays = dict(more or {})
    of_queries: list[Header] = [{"query": meaning(plan), "caller": caller} for plan, caller in queries]
    saved: Header = {"format": FORMAT, "queries": of_queries, "stream": None}
    if stream is not None:
        stream.check_whole()
        saved["stream"] = save_stream(stream, arrays)
        for number, pipeline in enumerate(stream.queries):
            assert isinstance(pipeline, Pipeline)
            of_queries[number] |= save_query(pipeline, f"{number}_", arrays)
    return joined(saved, arrays)


def unpack(plans: Sequence[Plan], state: bytes) -> Saved:
    """What ``pack`` put together, of the same queries in the same order.

    Raises
    ------
    DataError
        Not a state (ACEP-D040), a state of another format (ACEP-D041), or of other queries (ACEP-D042).
    """
    try:
        saved, arrays = split(state)
        format_, theirs = saved["format"], saved["queries"] if "queries" in saved else [saved["query"]]
    except OlderBytesError as error:
        raise _other_format(f"less than {FORMAT}", is_older=True) from error
    except (ValueError, LookupError, TypeError) as error:
        raise damaged() from error
    if format_ != FORMAT:
        raise _other_format(format_, is_older=isinstance(format_, int) and format_ < FORMAT)
    if len(theirs) != len(plans):
        raise _other_query(f"{len(theirs)} queries", f"there are {len(plans)}")
    with reading(damaged):
        for plan, saved_query in zip(plans, theirs, strict=True):
            ours, their = meaning(plan), saved_query["query"]
            check("caller", good=isinstance(saved_query["caller"], dict))
            if their != ours:
                other = [name for name in ours if their[name] != ours[name]]
                had, have = ("; ".join(f"{name} {one[name] or '(none)'}" for name in other) for one in (their, ours))
                raise _other_query(f"another query: {had}", f"this one has {have}")
    return Saved(saved, arrays)


def damaged() -> DataError:
    """The error that bytes are no state, or not as they were written (``ACEP-D040``)."""
    return DataError(
        "these bytes are not the state of a matcher, or not all as they were written",
        code="ACEP-D040",
        hint="take a copy that is whole, or start from the beginning",
    )


@dataclass(frozen=True)
class Saved:
    """A state that was unpacked: the header, and the arrays by name."""

    header: Header
    arrays: Arrays

    @property
    def callers(self) -> list[Header]:
        """What the callers wanted to keep, by query."""
        return [query["caller"] for query in self.header["queries"]]

    def stream(self) -> StreamSide | None:
        """The stream side, for the queries to be added to in their order; None where no columns had been seen.

        Raises
        ------
        DataError
            ``ACEP-D040``: it is not as it was written.
        """
        with reading(damaged):
            saved = self.header["stream"]
            return None if saved is None else saved_stream(saved, self.arrays, words_of(self.arrays))

    def restore(self, pipelines: Sequence[Pipeline]) -> None:
        """Give each query its side; they are fresh ones on ``stream()``.

        Raises
        ------
        DataError
            ``ACEP-D044``: one of the two is inside a load budget, the other is not; ``ACEP-D040``: it is not as it was
            written.
        """
        with reading(damaged):
            for number, (header, pipeline) in enumerate(zip(self.header["queries"], pipelines, strict=True)):
                begin = f"{number}_"
                mine = {name.removeprefix(begin): a for name, a in self.arrays.items() if name.startswith(begin)}
                restore_query(pipeline, header, mine)


def save_stream(stream: StreamSide, arrays: Arrays, begin: str = "") -> Header:
    """The stream side without its queries; names of its arrays begin with ``begin``."""
    keys = []
    for number, one in enumerate(stream.key_slots.values()):
        idle = None
        if one.idle is not None:
            idle, arrays[f"{begin}last_{number}"] = one.idle.save(one.slots)
        keys.append([one.columns, one.slots, one.without_key, one.swept, idle])
        arrays[f"{begin}keys_{number}"] = raw(pa.Table.from_batches([one.keys.to_state()]))
    arrays[f"{begin}schema"] = raw(stream.schema.empty_table())
    return {
        "roles": stream.roles.plain,
        "derived": stream.derived,
        "key_idle": stream.key_idle,
        "last_tick": stream.last_tick,
        "texts": stream.texts.values,
        "keys": keys,
    }


def words_of(arrays: Arrays) -> int:
    """How many words the arrays of a state have, those of parts of it too."""
    return int(sum(words_of(array) if isinstance(array, dict) else array.nbytes // 8 for array in arrays.values()))


def saved_stream(saved: Header, arrays: Arrays, words: int, begin: str = "") -> StreamSide:
    """What ``save_stream`` was called on, for the queries to be added to in their order.

    ``words``: how many the whole state has: what it says is no larger than what it holds.

    Raises
    ------
    Exception
        What ``ranges.reading`` takes for damage.
    """
    schema = from_ipc(arrays[f"{begin}schema"]).schema
    derived = {name: schema.field(name).type for name in saved["derived"]}
    of_events = pa.schema([field for field in schema if field.name not in derived])
    check("key_idle", good=isinstance(saved["key_idle"], str | int | None))
    stream = StreamSide(of_events, roles_of(saved["roles"]), derived, saved["key_idle"])
    if saved["last_tick"] is not None:
        stream.last_tick = number_in("last_tick", saved["last_tick"], -COUNT, TICK)
    check("texts", good=all(isinstance(text, str) for text in saved["texts"]))
    stream.texts.restore(saved["texts"])
    check("texts", good=len(stream.texts) == len(saved["texts"]))
    for number, (columns, slots, without_key, swept, idle) in enumerate(saved["keys"]):
        check("keys", good=all(name in schema.names for name in columns))
        one = stream.slots_of(tuple(columns))
        one.slots = number_in("slots", slots, 0, words + MOST_FREE)
        one.keys = KeyCodes.from_state(_batch(arrays[f"{begin}keys_{number}"]), slots)
        one.without_key, one.swept = (number_in("keys", count, 0, COUNT) for count in (without_key, swept))
        if idle is not None:
            ticks = number_in("key_idle", stream.idle_ticks, 0, TICK)
            one.idle = IdleKeys.restored(ticks, idle, arrays[f"{begin}last_{number}"], one.keys.used())
    return stream


def roles_of(saved: Header) -> Roles:
    """The roles that a state names, if they can be some.

    Raises
    ------
    DamagedError
    """
    names = {name: value for name, value in saved.items() if name != "time_format"}
    check("roles", good=isinstance(saved["time"], str) and all(isinstance(v, str | None) for v in names.values()))
    check("unit", good=saved["unit"] is None or saved["unit"] in UNITS)
    return Roles(**saved)


def save_query(pipeline: Pipeline, begin: str, arrays: Arrays) -> Header:
    """The side of one query; names of its arrays begin with ``begin``."""
    preparer, recent = pipeline.preparer, pipeline.recent
    mine: Arrays = {
        "counters": preparer.counters[: pipeline.key_slots.slots * preparer.counts_events],
        "began": preparer.began[: pipeline.key_slots.slots],
        "recent_ids": recent.ids,
        "recent_ticks": recent.ticks,
        "recent_rows": recent.rows,
        "recent_data": raw(recent.data),
    }
    floors = pipeline.floors_after(pipeline.stream.last_tick or 0)
    mine |= {f"engine_{name}": array for name, array in pipeline.engine.arrays(floors).items()}
    mine |= {f"output_{name}": array for name, array in pipeline.arrays().items()}
    arrays |= {begin + name: array for name, array in mine.items()}
    return {"classes": preparer.classes, "pipeline": pipeline.header(), "engine": pipeline.engine.header()}


def restore_query(pipeline: Pipeline, saved: Header, arrays: Arrays) -> None:
    """Give a fresh side of a query what ``save_query`` has put together; names of arrays without their beginning.

    Raises
    ------
    Exception
        What ``ranges.reading`` takes for damage.
    """
    preparer, recent = pipeline.preparer, pipeline.recent
    for mask in saved["classes"][1:]:
        preparer.add_class(number_in("classes", mask, 0, 1 << len(pipeline.plan.letters)))
    slots = pipeline.key_slots.slots
    check_arrays(arrays, {"counters": Range(min(arrays["counters"].size, slots), 0, COUNT)})
    preparer.began = arrays["began"]
    check_arrays(arrays, {"began": Range(min(preparer.began.size, slots) * preparer.is_count, 0, COUNT)})
    preparer.set_counters(arrays["counters"], room=max(slots, 1))
    ids, ticks, rows = (arrays[f"recent_{name}"] for name in ("ids", "ticks", "rows"))
    recent.restore(ids, rows, ticks, from_ipc(arrays["recent_data"]))
    engine = {name.removeprefix("engine_"): array for name, array in arrays.items() if name.startswith("engine_")}
    pipeline.engine.restore(saved["engine"], engine, preparer.classes)
    output = {name.removeprefix("output_"): array for name, array in arrays.items() if name.startswith("output_")}
    pipeline.restore(saved["pipeline"], output)


def _other_format(theirs: object, *, is_older: bool) -> DataError:
    return DataError(
        f"the state has {'the older format' if is_older else 'format'} {theirs}, this version reads format {FORMAT}",
        code="ACEP-D041",
        hint="go on with the version that wrote it, or start from the beginning",
    )


def _other_query(theirs: str, ours: str) -> DataError:
    return DataError(
        f"the state is of {theirs}; {ours}",
        code="ACEP-D042",
        hint="restore a state with the query it was made with; or begin anew, with a checkpoint of another name",
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


def raw(table: pa.Table) -> Any:
    """A table as an array of bytes."""
    return np.frombuffer(to_ipc(table), np.uint8)


def _batch(raw: Any) -> pa.RecordBatch:
    table = from_ipc(raw).combine_chunks()
    batches = table.to_batches()
    return batches[0] if batches else pa.RecordBatch.from_pylist([], schema=table.schema)
