"""What users see of the writes and the calls of a batch, as tables."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa

from acep_approx.arrays import Ints
from acep_approx.events.columns import to_arrow
from acep_approx.events.time import to_datetime
from acep_approx.kernels.rules.rows import DELETED
from acep_approx.rules.firing import Calls
from acep_approx.rules.log import Changes, Transactions

EFFECTS = ("", "update", "insert", "delete")
"""What a write did, by its number in ``kernels.rules.rows``."""
CALLS = pa.schema(
    [
        ("id", pa.string()),
        ("rule", pa.string()),
        ("name", pa.string()),
        ("row", pa.int64()),
        ("arguments", pa.string()),
    ]
)
"""The columns of calls, without the time of the transaction; arguments are a JSON list."""


def change_table(changes: Changes, rules: Sequence[str], *, is_time: bool) -> pa.Table:
    """The writes of a table in order: ``time``, ``row`` (of the event; NULL if it is none), ``rule``, ``op``, columns.

    ``op`` is update, insert or delete; of a deleted row the columns beside the key are NULL.
    """
    of = changes.of
    is_deleted = changes.effect == DELETED
    keys = len(changes.values) - changes.beside
    columns = {}
    for number, (name, values) in enumerate(changes.values.items()):
        columns[name] = values if number < keys or not is_deleted.any() else _null_where(values, is_deleted)
    names = pa.array(EFFECTS, pa.string()).take(to_arrow(changes.effect))
    row = to_arrow(of.row, of.row >= 0)
    own = {"time": _times(of, is_time=is_time), "row": row, "rule": _names(changes.rule, rules)}
    return pa.table({**own, "op": names, **{_apart(name, (*own, "op")): array for name, array in columns.items()}})


def _apart(name: str, others: tuple[str, ...]) -> str:
    """A name of a column that none of the others has."""
    while name in others:
        name += "_"
    return name


def _null_where(values: pa.Array, where: Any) -> pa.Array:
    kept = np.where(where, -1, np.arange(len(values)))
    return values.take(to_arrow(kept, kept >= 0))


def _times(of: Transactions, *, is_time: bool) -> pa.Array:
    return to_datetime(of.time) if is_time else to_arrow(of.time)


def _names(numbers: Ints, rules: Sequence[str]) -> pa.Array:
    return pa.array(rules, pa.string()).take(to_arrow(numbers))


@cache
def _no_calls(*, is_time: bool) -> pa.Table:
    kind = pa.timestamp("us", "UTC") if is_time else pa.int64()
    return CALLS.insert(3, pa.field("time", kind)).empty_table()


NO_CALLS = _no_calls(is_time=False)


def called(calls: Sequence[Calls], rules: Sequence[str], *, is_time: bool) -> pa.Table:
    """All calls in order: by transaction, rule, match, action.

    The id says which rule made it, for which event, and how many this rule had made for it before: it stays the same
    however the stream is cut, and after a restart. Of the end of a window it has the time of that and the first event.
    """
    none = _no_calls(is_time=is_time)
    if not calls:
        return none
    of = Transactions.joined([one.of for one in calls])
    rule, action = (np.concatenate([np.full(len(one.of), getattr(one, name)) for one in calls]) for name in OF_CALL)
    match = np.concatenate([one.match for one in calls])
    order = np.lexsort((action, match, rule, of.start, of.tick, of.place))
    of, rule = of.take(order), rule[order]
    names = [name for one in calls for name in [one.name] * len(one.of)]
    arguments = [given for one in calls for given in one.arguments]
    ids, seen, before = [], 0, ("", -1)
    for number, tick, start, row in zip(rule, of.tick, of.start, of.row, strict=True):
        where = str(row) if row >= 0 else f"{start // len(rules)}+{tick}"
        seen = seen + 1 if before == (where, number) else 0
        before = (where, number)
        ids.append(f"{rules[number]}:{where}:{seen}")
    return pa.table(
        {
            "id": pa.array(ids, pa.string()),
            "rule": _names(rule, rules),
            "name": pa.array([names[n] for n in order], pa.string()),
            "time": _times(of, is_time=is_time),
            "row": to_arrow(of.row, of.row >= 0),
            "arguments": pa.array([json.dumps(arguments[n], default=str) for n in order], pa.string()),
        },
        schema=none.schema,
    )


OF_CALL = ("rule", "action")
