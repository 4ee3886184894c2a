"""An id that is used again after the watermark has passed its event names another event, however the stream is cut.

``revised_model`` says what it means, from ``docs/reference/disorder.md``: a row means the event of its id that may
still change; what the watermark has passed stays, and an update puts the new event beside it.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from itertools import islice, product
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from acep_approx import compile_query
from acep_approx.errors import AcepError
from acep_approx.events.changes import Op
from acep_approx.revisions.live import LiveEvents
from acep_approx.run.events import Events
from acep_approx.run.watermarks import Watermarks
from tests.cases import FULL, cases
from tests.revised_model import Model
from tests.revised_reuse import holds, reused

ANY = compile_query("PATTERN ANY a WITHIN 3 RETURN a.x AS x")
PAIRS = compile_query("PATTERN SEQ(A a, B b) WITHIN 5")
OPS = {"c": Op.INSERT, "u": Op.UPDATE, "d": Op.DELETE, "-U": Op.BEFORE, "+U": Op.AFTER}
DELAY = 5


def cuts(rows: int) -> list[list[int]]:
    """All ways to cut so many rows into pushes: where each ends."""
    ways = product((False, True), repeat=rows - 1)
    return [[at + 1 for at, cut in enumerate(way) if cut] + [rows] for way in ways]


def resolved(rows: list[dict[str, Any]], ends: list[int]) -> tuple[list[int], list[int]]:
    """The rows that stand, and those left out, by the part of the package that decides it."""
    live, marks = LiveEvents("id", (), 3), Watermarks(DELAY)
    standing, left, begin = set[int](), list[int](), 0
    for end in ends:
        some = rows[begin:end]
        tick, arrival = np.array([row["ts"] for row in some]), np.arange(begin, end)
        ops = np.array([OPS[row["op"]] for row in some], np.int8)
        before = marks.advance(tick)
        here = np.flatnonzero(tick >= before)
        left += (begin + np.flatnonzero(tick < before)).tolist()
        events = Events(tick, arrival, arrival, pa.RecordBatch.from_pylist([{"id": row["id"]} for row in some]))
        found = live.resolve(events.take(here), ops[here], before[here], lambda _: [])
        left += [begin + int(here[row]) for row, _ in found.rejected]
        standing |= set(found.came.arrival.tolist())
        standing -= {row for _, row in found.gone}
        begin = end
    return sorted(standing), sorted(left)


@pytest.mark.parametrize("ops", [("c", "u", "d"), ("c", "-U", "+U"), ("c", "u", "+U")])
def test_all_small_worlds(ops: tuple[str, ...]) -> None:
    """Four rows of one id, each at one of three times: every cut gives what the model says."""
    ways = cuts(4)
    worlds = product(product(ops, (0, 6, 12)), repeat=4)
    for number, world in enumerate(worlds if FULL else islice(worlds, 0, None, 26)):
        rows = [{"op": op, "ts": ts, "id": 7, "type": "A"} for op, ts in world]
        model = Model(DELAY, "final", "id", "op")
        model.push(rows)
        expected = sorted(held.number for held in model.live), [row for row, _ in model.left_out]
        for ends in ways if number % 4 == 0 else (ways[0], ways[-1]):
            assert resolved(rows, ends) == expected, (rows, ends)


def test_whole_runs_in_any_cut() -> None:
    """Final, early and in between, with restarts: the same events, the same rows left out, ids that differ."""
    for seed in range(cases(300, 30)):
        dice = Random(seed)
        ops = dice.choice((("c", "u", "d"), ("c", "d"), ("+I", "-U", "+U", "-D")))
        rows = []
        for at in range(dice.randint(3, 6)):
            ts, number = dice.choice((0, 0, 5, 6, 12, 20)), dice.choice((7, 7, 8))
            rows.append({"op": dice.choice(ops), "ts": ts, "type": "A", "x": at, "id": number})
        delay = dice.choice((0, 5, 10))
        model = Model(delay, "final", "id", "op")
        model.push(rows)
        expected = sorted(held.row["x"] for held in model.live), [row for row, _ in model.left_out]
        emit = dice.choice(("final", "early", 3))
        for ends in (*dice.sample(cuts(len(rows)), 2), [len(rows)], [*range(1, len(rows) + 1)]):
            assert run(rows, ends, delay=delay, emit=emit, restarts=dice.random() < 0.5) == expected, (seed, ends)


def run(
    rows: list[dict[str, Any]], ends: list[int], *, delay: int, emit: Any, restarts: bool
) -> tuple[list[int], list[int]]:
    """What stands in the end, and what was left out; asserts that no two results that stand share an id."""
    matcher: Any = ANY.matcher(op="op", id="id", watermark=delay, emit=emit, changelog=True)
    view: dict[str, int] = {}
    left: list[int] = []
    for begin, end in zip([0, *ends], [*ends, None], strict=True):
        apply((matcher.finish() if end is None else matcher.push(rows[begin:end])), view)
        left += sorted(row["row"] for row in matcher.rejected().to_pylist())
        matcher = ANY.from_state(matcher.state_bytes()) if restarts and end is not None else matcher
    return sorted(view.values()), left


def apply(changes: pa.Table, view: dict[str, int]) -> None:
    """Apply changes as the SQL recipe on the how-to page does."""
    for change in changes.to_pylist():
        if change["op"] == "-D":
            del view[change["match_id"]]
        else:
            assert change["match_id"] not in view
            view[change["match_id"]] = change["x"]


def test_the_whole_language_with_few_ids() -> None:
    """Random queries, disorder, changes and restarts with one to five ids: the net law, and ids that differ."""
    alike = sum(holds(reused(seed, (1, 2, 3, 5)[seed % 4])) > 0 for seed in range(cases(300, 15)))
    assert alike or not FULL  # results that show the same ids of events, and stand side by side


def test_the_recipe_in_sql_takes_both() -> None:
    """A table whose key is the match id: two matches of one id stand in it."""
    rows = [("c", "A", 7, 0, 1), ("c", "B", 8, 50, 0), ("u", "A", 7, 100, 2), ("u", "A", 7, 101, 3)]
    query = compile_query("PATTERN A a WITHIN 5 RETURN a.x AS x")
    for size in (1, 2, 3, 4):
        matcher = query.matcher(id="id", op="op", watermark=10, emit="early")
        db = sqlite3.connect(":memory:")
        db.execute("CREATE TABLE found (match_id TEXT PRIMARY KEY, x INTEGER)")
        for at in range(0, 4, size):
            some = [dict(zip(("op", "type", "id", "ts", "x"), row, strict=True)) for row in rows[at : at + size]]
            changes = matcher.push(some).select(["match_id", "x", "op"]).to_pylist()
            with db:
                db.executemany("DELETE FROM found WHERE match_id = :match_id AND :op = '-D'", changes)
                db.executemany("INSERT INTO found SELECT :match_id, :x WHERE :op = '+I'", changes)
        assert sorted(db.execute("SELECT x FROM found").fetchall()) == [(1,), (3,)]


@pytest.mark.parametrize("emit", ["final", "early"])
@pytest.mark.parametrize("within", ["9", "9 events"])
@pytest.mark.parametrize("ids", [[7, 7, 7, 8], [None, None, None, None], [float("nan")] * 4, ["7", "7", None, None]])
def test_ids_that_nothing_looks_at(emit: str, within: str, ids: list[Any]) -> None:
    """Without a column ``op`` ids may be equal, or missing: of equal times and of others; each match has its own id."""
    query = compile_query(f"PATTERN SEQ(ANY a, ANY b) WITHIN {within} RETURN a.x AS x, b.x AS y")
    table = pa.table({"ts": [1, 1, 1, 4], "type": ["A"] * 4, "x": [0, 1, 2, 3], "id": ids})
    named: list[dict[tuple[int, int], str]] = []
    for ends in ([4], [1, 2, 3, 4], [2, 4]):
        matcher: Any = query.matcher(id="id", op=False, watermark=3, emit=emit, changelog=True)
        found: dict[tuple[int, int], str] = {}
        for begin, end in zip([0, *ends], [*ends, None], strict=True):
            changes = matcher.finish() if end is None else matcher.push(table.slice(begin, end - begin))
            for row in changes.to_pylist():
                if row["op"] == "-D":
                    assert found.pop((row["x"], row["y"])) == row["match_id"]
                else:
                    found[row["x"], row["y"]] = row["match_id"]
            matcher = query.from_state(matcher.state_bytes()) if end is not None else matcher
        assert len(set(found.values())) == len(found) == 6
        named.append(found)
    assert named[0] == named[1] == named[2]


def test_an_id_is_the_same_whatever_type_its_column_has() -> None:
    """Whole numbers become floats or texts where others come: a row still finds its event, and takes its match back."""
    for later in (2.0, "2"):
        matcher = PAIRS.matcher(op="op", id="id", emit="early")
        found = matcher.push([{"op": "c", "id": n, "ts": n, "type": "AB"[n - 1]} for n in (1, 2)]).to_pylist()
        gone = matcher.push([{"op": "d", "id": later, "ts": 2, "type": "B"}]).to_pylist()
        assert [(row["op"], row["match_id"]) for row in gone] == [("-D", found[0]["match_id"])]
    nan = float("nan")
    matcher = PAIRS.matcher(op="op", id="id", emit="early")
    matcher.push([{"op": "c", "id": 1.5, "ts": 1, "type": "A"}, {"op": "c", "id": nan, "ts": 2, "type": "B"}])
    assert matcher.push([{"op": "d", "id": nan, "ts": 2, "type": "B"}]).column("op").to_pylist() == ["-D"]
    ids = pa.array([2**64 - 1, 2**63], pa.uint64())
    big = pa.table({"op": ["c", "c"], "id": ids, "ts": [1, 2], "type": ["A", "B"]})
    assert PAIRS.matcher(op="op", id="id", emit="early").push(big).num_rows == 1


def test_ids_are_single_values() -> None:
    with pytest.raises(AcepError) as caught:
        PAIRS.matcher(op="op", id="id", emit="early").push([{"op": "c", "id": [1], "ts": 1, "type": "A"}])
    assert caught.value.code == "ACEP-D151"


@pytest.mark.parametrize("emit", ["final", "early", 3])
@pytest.mark.parametrize("restarts", [False, True])
def test_what_punctuations_of_all_parts_have_passed_stays(emit: Any, restarts: bool) -> None:
    """Once no letter of the pattern can come before a time, an event before it does not change: no traceback, no -D."""
    matcher: Any = PAIRS.matcher(op="op", id="id", emit=emit, changelog=True)
    rows = [{"op": "c", "id": n, "ts": n, "type": kind} for n, kind in ((1, "Z"), (2, "A"), (3, "B"))]
    net = Counter[str]()

    def push(*some: dict[str, Any]) -> None:
        for row in matcher.push([*some]).to_pylist():
            net[row["match_id"]] += 1 if row["op"] == "+I" else -1

    push(*rows)
    for kind in "AB":
        for row in matcher.punctuate(10, where=f"type = '{kind}'").to_pylist():
            net[row["match_id"]] += 1 if row["op"] == "+I" else -1
    push({"op": "c", "id": 4, "ts": 4, "type": "Z"})
    matcher = PAIRS.from_state(matcher.state_bytes()) if restarts else matcher
    for number in (1, 2, 4):
        push({"op": "d", "id": number, "ts": number, "type": None})
    push({"op": "u", "id": 3, "ts": 30, "type": "A"}, {"op": "d", "id": 3, "ts": 30, "type": None})
    assert sorted(net.values()) in ([1], [0, 1])
    assert [row["row"] for row in matcher.rejected().to_pylist()] == [4, 5, 6]


def test_rows_are_those_that_came_though_one_before_was_taken_back() -> None:
    """Behind an event that is taken back others have the numbers, and the match ids, of their own rows."""
    query = compile_query("PATTERN SEQ(ANY a, ANY b) WHERE strict_contiguity WITHIN 3")
    rows = [("+I", 0), ("+I", 0), ("+I", 5), ("+I", 5), ("-D", 0), ("+I", 0)]
    values = [1, 2, 3, 2, 1, 1]
    for ends in cuts(6):
        matcher, begin = query.matcher(op="op", watermark=5, emit=3), 0
        net = Counter[tuple[int, int]]()
        for end in [*ends, None]:
            told = [{"op": op, "ts": ts, "type": "A", "x": x} for (op, ts), x in zip(rows, values, strict=True)]
            some = told[begin:end]
            for row in (matcher.finish() if end is None else matcher.push(some)).to_pylist():
                net[row["a"], row["b"]] += 1 if row["op"] == "+I" else -1
            begin = end or 0
        assert sorted(net.elements()) == [(1, 5), (2, 3)], ends
