"""What a matcher keeps between two batches: the stream side, and the side of each query, as scopes of an archive."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from acep_approx.archive import Differences, Kind, Scope, damaged_state, state_of_other_format
from acep_approx.errors import DataError
from acep_approx.events.keys import KeyCodes
from acep_approx.events.roles import UNITS, Roles
from acep_approx.matching.idle_keys import IdleKeys
from acep_approx.matching.stream_side import StreamSide
from acep_approx.planning.planner import Plan
from acep_approx.query.printer import to_text
from acep_approx.ranges import COUNT, TICK, check, number_in


def _of_another(different: Differences) -> DataError:
    had, have = ("; ".join(f"{name} {both[at] or '(none)'}" for name, both in different.items()) for at in (0, 1))
    return DataError(
        f"the state is of another query: {had}; this one has {have}",
        code="ACEP-D042",
        hint="restore a state with the query it was made with; or begin anew, with a checkpoint of another name",
    )


MATCHER = Kind("matcher", lambda: damaged_state("a matcher"), state_of_other_format, _of_another)
"""Archives of one query. They are of its ``meaning``."""
MOST_FREE = 1 << 16
"""Key slots of keys that went away, beyond those that something of a state is about."""


def saved(plan: Plan, caller: dict[str, Any], stream: StreamSide | None) -> Scope:
    """Return everything that is needed to go on in another process.

    Parameters
    ----------
    plan : Plan
        Its meaning is kept, to refuse the state of another query.
    caller : dict
        What the caller wants to keep, as JSON.
    stream : StreamSide or None
        With the query alone; None where no columns have been seen.

    Raises
    ------
    DataError
        ``ACEP-D045``: an error stopped it in the middle of a batch.

    Complexity: O(state).
    """
    scope = Scope({"of": meaning(plan), "caller": caller})
    if stream is not None:
        stream.check_whole()
        (query,) = stream.queries
        save_stream(stream, scope.sub("stream"))
        query.save(scope.sub("query"))
    return scope


def save_stream(stream: StreamSide, scope: Scope) -> None:
    """Save the stream side without its queries."""
    scope.put("schema", stream.schema)
    for number, one in enumerate(stream.key_slots.values()):
        kept = scope.sub(f"keys {number}", {"columns": one.columns, "slots": one.slots, "idle": None})
        kept.head |= {"without_key": one.without_key, "swept": one.swept}
        kept.put("keys", one.keys.to_state())
        if one.idle is not None:
            kept.head["idle"], kept.arrays["last"] = one.idle.save(one.slots)
    scope.head |= {
        "roles": stream.roles.plain,
        "derived": stream.derived,
        "key_idle": stream.key_idle,
        "last_tick": stream.last_tick,
        "texts": stream.texts.values,
    }


def restored_stream(scope: Scope, words: int) -> StreamSide:
    """Return what ``save_stream`` was called on, for the queries to be added to in their order.

    ``words``: how many the whole state has: what it says is no larger than what it holds.

    Raises
    ------
    Exception
        What ``ranges.reading`` takes for damage.
    """
    head, schema = scope.head, scope.table("schema").schema
    derived = {name: schema.field(name).type for name in head["derived"]}
    of_events = pa.schema([field for field in schema if field.name not in derived])
    check("key_idle", good=isinstance(head["key_idle"], str | int | None))
    stream = StreamSide(of_events, roles_of(head["roles"]), derived, head["key_idle"])
    if head["last_tick"] is not None:
        stream.last_tick = scope.number("last_tick", -COUNT, TICK)
    check("texts", good=all(isinstance(text, str) for text in head["texts"]))
    stream.texts.restore(head["texts"])
    check("texts", good=len(stream.texts) == len(head["texts"]))
    for number in range(len(scope.parts)):
        kept = scope.parts[f"keys {number}"]
        check("keys", good=all(name in schema.names for name in kept.head["columns"]))
        one = stream.slots_of(tuple(kept.head["columns"]))
        one.slots = kept.number("slots", 0, words + MOST_FREE)
        one.keys = KeyCodes.from_state(kept.batch("keys"), one.slots)
        one.without_key, one.swept = kept.number("without_key"), kept.number("swept")
        if kept.head["idle"] is not None:
            ticks = number_in("key_idle", stream.idle_ticks, 0, TICK)
            one.idle = IdleKeys.restored(ticks, kept.head["idle"], kept.arrays["last"], one.keys.used())
    return stream


def roles_of(saved: dict[str, Any]) -> Roles:
    """Return the roles that a state names, if they can be some.

    Raises
    ------
    DamagedError
    """
    names = {name: value for name, value in saved.items() if name != "time_format"}
    check("roles", good=isinstance(saved["time"], str) and all(isinstance(v, str | None) for v in names.values()))
    check("unit", good=saved["unit"] is None or saved["unit"] in UNITS)
    return Roles(**saved)


def meaning(plan: Plan) -> dict[str, str]:
    """Return what makes a state useless to another query: what is run, the partitions, the columns that are kept."""
    query = plan.query
    return {
        "fingerprint": plan.fingerprint(),
        "window": f"{query.window.amount} {query.window.unit}",
        "partitions by": ", ".join(equivalence.name for equivalence in query.equivalences),
        "RETURN": ", ".join(f"{to_text(output.value)} AS {output.name}" for output in query.outputs),
    }
