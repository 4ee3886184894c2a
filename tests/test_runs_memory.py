"""Memory of the runs engine is bounded by the window: nothing it keeps grows with the length of the stream."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from acep_approx import compile_query
from acep_approx.api.matcher import Matcher
from acep_approx.engines import order
from acep_approx.engines.runs import event_columns
from acep_approx.engines.runs.runs import Runs
from acep_approx.kernels.runs.layout import LINKS, LIVE
from acep_approx.matching.outputs import completed, of_runs

EVENTS = 300_000
BATCH = 20_000
PAIR = "PATTERN SEQ(A a, B b) WHERE {} b.x > a.x AND b.s != a.s WITHIN {}"
NEGATED = "PATTERN SEQ(~(C m), A a, ~(C n), B b, ~(C o)) WHERE {} n.x > a.x AND b.x > a.x AND b.s != a.s WITHIN {}"
DOUBLED = ("room for links", "stored", "pools")
AFTER = "PATTERN SEQ(A+ a[], B b) WHERE skip_till_next_match {{ {} a[i].x > a[i-1].x AND b.s = a[1].s }} WITHIN {}"


def stream(keys: int, seed: int = 3) -> pa.Table:
    """Few events that can begin a run, so that few runs live; most keys are silent most of the time."""
    dice = np.random.default_rng(seed)
    few, all_keys = (dice.integers(0, most, EVENTS) for most in (max(keys // 100, 1), keys))
    return pa.table(
        {
            "ts": np.cumsum(dice.integers(0, 3, EVENTS)),
            "type": pa.array(np.array(["A", "B", "C", "D"])[np.minimum(dice.integers(0, 40, EVENTS), 3)]),
            "x": dice.integers(0, 100, EVENTS),
            "s": pa.array(np.char.add("s", dice.integers(0, 20, EVENTS).astype(str))),
            "g": np.where(dice.random(EVENTS) < 0.9, few, all_keys),
        }
    )


def sizes(matcher: Matcher) -> dict[str, int]:
    """What a matcher holds, in bytes and in numbers of things."""
    assert matcher.pipeline is not None
    engine = matcher.pipeline.engine
    assert isinstance(engine, Runs)
    return {
        "state": len(matcher.state_bytes()),
        "links": int(engine.control[LINKS]),
        "room for links": engine.links.size,
        "keys": matcher.progress.keys,
        "stored": engine.store.stored.size,
        "pools": engine.arena.words.size,
        "texts": len(engine.columns.texts),
        "recent events": len(matcher.pipeline.recent.ids),
    }


def held(query: str, table: pa.Table, batch: int = BATCH, **options: Any) -> list[dict[str, int]]:
    """The sizes after each batch."""
    matcher = compile_query(query, engine="runs").matcher(**options)
    found = []
    for first in range(0, table.num_rows, batch):
        matcher.push(table.slice(first, batch))
        found.append(sizes(matcher))
    return found


@pytest.mark.parametrize("query", [PAIR, NEGATED, AFTER])
@pytest.mark.parametrize(("keys", "part"), [(1, ""), (60, "[g] AND")])
@pytest.mark.parametrize("window", ["50", "30 events"])
def test_what_is_held_does_not_grow(
    query: str, keys: int, part: str, window: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last batches leave no more behind than the first ones did, give or take two doublings of arrays."""
    monkeypatch.setattr(of_runs, "MANY_ROWS", 1000)
    found = held(query.format(part, window), stream(keys))
    for name in found[0]:
        early, late = (max(size[name] for size in some) for some in (found[:5], found[-5:]))
        assert late <= (4 if name in DOUBLED else 2) * early + 1024, name


def test_keys_that_come_once_are_forgotten() -> None:
    """Each event has a key that was silent before and will be again: keys do not pile up."""
    table = stream(1)
    table = table.set_column(table.column_names.index("g"), "g", pa.array(np.arange(EVENTS) // 3))
    found = held(AFTER.format("[g] AND", 50), table)
    assert max(size["keys"] for size in found) < EVENTS // 6
    assert max(size["stored"] for size in found) < 3 * 16384


@pytest.mark.parametrize("merge", ["none", "equal,pareto,chain"])
def test_texts_that_no_run_holds_are_forgotten(merge: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each event brings new texts: the dictionary stays small, and the matches are those of one that keeps all."""
    n = 6000
    numbers = np.random.default_rng(1).integers(0, 2**60, n)
    table = pa.table(
        {
            "ts": np.arange(n),
            "type": pa.array(np.where(np.arange(n) % 3 == 1, "B", "A")),
            "s": pa.array([f"s{number}" for number in numbers]),
            "t": pa.array([f"s{number}" for number in np.roll(numbers, 2)]),  # that of two events before
            "g": np.arange(n) % 2,
        }
    )
    queries = [
        "PATTERN SEQ(A a, B b) WHERE b.t = a.s AND a.s != 'never' WITHIN 9",
        "PATTERN SEQ(A a, A c, B b) WHERE [g] AND b.s > a.s AND c.t != a.s AND b.s != 'x' WITHIN 15",
        "PATTERN SEQ(A+ a[], B b) WHERE max(a[].s) < b.s AND (b.t = a[1].s OR b.s > 's5') WITHIN 5",
        "PATTERN SEQ(A a, B b) WHERE skip_till_next_match { [g] AND b.s > a.s } WITHIN 9 events",
    ]
    for text in queries:
        query = compile_query(text, engine="runs")
        expected = query.match(table, merge=merge).to_arrow()
        assert expected.num_rows > n // 20
        with monkeypatch.context() as patch:
            patch.setattr(event_columns, "MANY_TEXTS", 100)
            assert query.match(table, merge=merge).to_arrow().equals(expected)
            matcher, parts = query.matcher(merge=merge), []
            for first in range(0, n, 500):
                parts.append(matcher.push(table.slice(first, 500)))
                matcher = query.from_state(matcher.state_bytes())
                assert sizes(matcher)["texts"] < 1200
            assert pa.concat_tables([*parts, matcher.finish()]).equals(expected)


def test_texts_of_a_long_stream() -> None:
    """A new text with every event, beyond what is always kept."""
    table = stream(1)
    texts = pa.array(np.char.add("id", np.arange(EVENTS).astype(str)))
    table = table.set_column(table.column_names.index("s"), "s", texts)
    found = held(PAIR.format("", 50), table, batch=10_000)
    assert max(size["texts"] for size in found) < 2 * event_columns.MANY_TEXTS
    assert max(size["state"] for size in found[-3:]) < 4_000_000


def test_a_large_dictionary_is_not_taken_in_whole() -> None:
    """Of a column with many texts that are not used only those of the events count."""
    codes = pa.DictionaryArray.from_arrays(pa.array([1, 70_000]), pa.array([f"s{i}" for i in range(100_000)]))
    table = pa.table({"ts": [0, 1], "type": ["A", "B"], "x": [1, 2], "s": codes})
    (found,) = held(PAIR.format("", 50), table)
    assert found["texts"] == 2


@pytest.mark.parametrize("window", ["50", "5 events"])
def test_silent_keys_hold_little(window: str) -> None:
    """Of 1,000 keys most are silent: what they hold is what their windows do, whatever has passed elsewhere."""
    found = held(PAIR.format("[g] AND", window), stream(1000))
    assert max(size["state"] for size in found[-5:]) < 800_000
    assert max(size["links"] for size in found[-5:]) < 20_000
    assert max(size["stored"] for size in found[-5:]) < 40_000


def test_matches_are_counted_without_being_listed() -> None:
    """60 rising events before one: listing them would take longer than anybody has."""
    query = compile_query("PATTERN SEQ(A+ a[], B b) WHERE a[i].x > a[i-1].x AND b.x > a[1].x WITHIN 100")
    events = [{"ts": i, "type": "A", "x": i} for i in range(60)] + [{"ts": t, "type": "B", "x": 99} for t in (60, 61)]
    assert query.plan.engine == "runs"
    assert query.match(events).counts()["matches"].to_pylist() == [2**60 - 1, 2**60 - 1]
    in_pieces = query.matcher(output="counts")
    found = [row for event in events for row in in_pieces.push([event]).to_pylist()]
    assert [row["matches"] for row in found] == [2**60 - 1, 2**60 - 1]


def test_counts_of_matches_that_must_be_tested_hold_few_of_them_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    query = compile_query("PATTERN SEQ(A a, ~(N n), B+ b[]) WHERE n.x > b.x WITHIN 100")
    events = [{"ts": 0, "type": "A", "x": 0}, {"ts": 1, "type": "N", "x": 5}]
    events += [{"ts": t, "type": "B", "x": 5 - t % 2 + t % 7} for t in range(2, 14)]
    assert query.plan.registers is not None
    assert query.plan.registers.needs_filter
    rows = [(match.end, match.start) for match in query.match(events)]
    at_once: list[int] = []
    whole = completed.Finder._verified

    def verified(self: completed.Finder, found: completed.CompletedMatches) -> completed.CompletedMatches:
        at_once.append(len(found.id))
        return whole(self, found)

    monkeypatch.setattr(completed, "CHUNK", 64)
    monkeypatch.setattr(order, "MOST", 64)
    monkeypatch.setattr(completed.Finder, "_verified", verified)
    assert query.match(events).count_by_errors() == {0: len(rows)}
    counted = query.match(events).counts()
    assert dict(zip(counted["end"].to_pylist(), counted["matches"].to_pylist(), strict=True)) == Counter(
        end for end, _ in rows
    )
    points = query.match(events).points()
    assert dict(zip(points["end"].to_pylist(), points["start"].to_pylist(), strict=True)) == dict(rows)
    assert [(match.end, match.start) for match in query.match(events)] == rows
    assert max(at_once) < 2_000 < sum(at_once)


def test_runs_are_counted_right_however_often_they_are_put_away():
    """As many runs live as are saved, also where the head of a pool has passed some of them."""
    taken = "skip_till_next_match { sum(b[].x) > 3 AND c.x > a.x }"  # its runs differ, so that pools are large
    query = compile_query(f"PATTERN SEQ(A a, B+ b[], C c) WHERE {taken} WITHIN 100 ERRORS 1")
    dice, matcher = Random(1), query.matcher()
    for at in range(400):
        matcher.push([{"ts": at, "type": dice.choice("AAABC"), "x": dice.randrange(9)}])
        engine = matcher.pipeline.engine
        engine.put_away()
        assert engine.control[LIVE] == engine.runs_saved(np.arange(engine.slots))
