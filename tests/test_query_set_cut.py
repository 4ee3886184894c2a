"""Queries that come and go cut a push: what the others find is the same, however it is asked for."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from acep_approx import QuerySet
from tests.cases import cases

TEMPLATES: list[tuple[str, str, list[dict[str, Any]]]] = [
    ("o", "PATTERN SEQ(S a, S b) WHERE [k] AND a.x > :p AND b.x < a.x WITHIN 5", [{"p": 3}, {"p": 3}, {"p": 1}]),
    ("t", "PATTERN SEQ(S a, S b) WHERE [k] AND b.x > :f * a.x WITHIN 1", [{"f": 2.0}, {"f": 1.0}]),
    ("u", "PATTERN SEQ(S a, T b) WHERE [k] AND a.x = :v WITHIN 4", [{"v": 1}, {"v": 5}]),
]
ALONE = {
    "one": "PATTERN SEQ(S a, T b) WITHIN 3 PUBLISH Pairs",
    "two": "PATTERN SEQ(S a, ~(T b), S c) WHERE [k] WITHIN 4 PUBLISH Pairs",
    "cel": "SELECT x FROM S PUBLISH Cel",
}
OTHER = "PATTERN T a WITHIN 5"


def a_set(output: str) -> QuerySet:
    """All of the above; where only matches can be published nothing is."""
    made = QuerySet(output=output)
    for name, text, rows in TEMPLATES:
        made.add_many(text, rows, id=name)
    for name, text in ALONE.items():
        made.add(text if output == "matches" else text.split(" PUBLISH")[0], id=name)
    return made


def events(dice: Random) -> list[dict[str, Any]]:
    """Some events, a few at one time."""
    ts, rows = 0, []
    for _ in range(dice.randint(3, 12)):
        ts += dice.choice((0, 1, 1, 1, 4))
        rows.append({"ts": ts, "type": dice.choice("SSST"), "k": dice.choice("bbc"), "x": dice.choice((0, 1, 5))})
    return rows


def plain(table: pa.Table) -> list[str]:
    return [repr(row) for row in table.to_pylist()]


@pytest.mark.parametrize("output", ["points", "matches", "counts"])
def test_nothing_is_lost_where_queries_come_and_go(output: str) -> None:
    """Each row is in ``found[id]``, in its order, is told to ``on_match``, and is in ``to_arrow``, as in one run."""
    rows = 0
    for seed in range(cases(60, 5)):
        dice = Random(seed)
        stream = events(dice)
        whole = a_set(output)
        expected = {id_: plain(table) for id_, table in whole.match(stream).items()}
        cut = a_set(output)
        told: dict[str, list[str]] = {}
        listed: dict[str, list[str]] = {}
        lines = 0
        for id_ in [*(f"{name}[{n}]" for name, _, some in TEMPLATES for n in range(len(some))), *ALONE]:
            cut.subscription(id_).on_match(telling(told, id_))
        at, others = 0, 0
        while at < len(stream):
            size = dice.randint(1, 4)
            found = cut.push(stream[at : at + size])
            at += size
            lines += take(found, listed)
            for _ in range(dice.randint(0, 2)):  # without an event between them: they cut the next push
                others += 1
                cut.add(OTHER, id=f"other {others}")
                if dice.random() < 0.5:
                    cut.remove(f"other {others}")
            if dice.random() < 0.3:
                cut.add_many(TEMPLATES[0][1], [{"p": 2}], id=f"more {at}")
        lines += take(cut.finish(), listed)
        mine = {id_: some for id_, some in listed.items() if not id_.startswith(("other", "more"))}
        assert mine == expected, seed
        assert told == expected, seed
        assert lines == sum(map(len, listed.values())), seed
        rows += sum(map(len, expected.values()))
    assert rows > 50


def telling(told: dict[str, list[str]], id_: str) -> Callable[[pa.Table], None]:
    """A function that notes the rows of a query."""
    return lambda table: told.setdefault(id_, []).extend(plain(table))


def take(found: Any, listed: dict[str, list[str]]) -> int:
    """Note the rows of each query; returns how many there are in all."""
    for id_ in found:
        listed.setdefault(id_, []).extend(plain(found[id_]))
    return int(found.to_arrow().num_rows)


def test_nothing_is_lost_where_events_come_in_batches() -> None:
    """Which template puts its points with those of others is another one in each batch."""
    stream = [{"ts": ts, "type": "S", "k": "b", "x": x} for ts, x in enumerate([0, 1, 5, 1, 5, 0, 1, 3, 9])]
    batches = [pa.RecordBatch.from_pylist(stream[at : at + 2]) for at in range(0, len(stream), 2)]
    whole, parts = a_set("points").match(stream), a_set("points").match(pa.Table.from_batches(batches))
    assert {id_: plain(whole[id_]) for id_ in whole} == {id_: plain(parts[id_]) for id_ in parts}
    assert whole.rows == parts.rows == sum(parts[id_].num_rows for id_ in parts)


@pytest.mark.parametrize("restarts", [False, True])
def test_a_stream_has_the_results_of_a_query_that_leaves(restarts: bool) -> None:
    """It saw the epoch that waited when it was removed; what it publishes there is in ``found[stream]``."""
    made = a_set("matches")
    made.push([{"ts": 0, "type": "S", "k": "b", "x": 1}, {"ts": 1, "type": "T", "k": "b", "x": 1}])
    made.remove("one")
    made.remove("cel")
    made = QuerySet.from_state(made.state_bytes()) if restarts else made
    found = made.push([{"ts": ts, "type": "S", "k": "b", "x": 1} for ts in (2, 3, 4)])
    assert found["Pairs"].column("query").to_pylist() == ["one", "two"]
    assert plain(found["one"]) == plain(found["Pairs"].slice(0, 1).select(found["one"].column_names))
