"""The trace of a past: what each run led to, when, from where, and at what cost; by brute force and by hand."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given

from acep_approx import compile_query
from acep_approx.engines.runs import event_columns
from acep_approx.events.roles import infer_roles
from acep_approx.events.source import open_source
from acep_approx.events.stream import read_events
from acep_approx.matching import stream_side
from acep_approx.matching.tracing import traced
from acep_approx.query.syntax import QuerySyntax
from acep_approx.training.trace import Tracer
from history.trace import Trace
from tests.cases import examples
from tests.naive_trace import Futures, Seen, rows_of_ticks, spread
from tests.rich_worlds import COLUMNS, RichWorld, rich_worlds
from tests.runs_engine import compiled
from tests.smaller_worlds import holds_for
from tests.traced_past import trace_past

MERGE = "equal,pareto,chain"
PARTS = 8
FAR = 2**40


def table_of(rows: Sequence[dict[str, Any]]) -> pa.Table:
    """Rows of a rich world as columns."""
    return pa.table({name: pa.array([row[name] for row in rows], kind) for name, kind in COLUMNS.items()})


def traced_by(plan: Any, table: pa.Table, merge: str, sizes: Sequence[int] = ()) -> tuple[Tracer, list[Trace]]:
    """The traces of a table, in batches of some sizes; the last batch takes what is left."""
    source = open_source(table)
    tracer = Tracer(plan, source.schema, infer_roles(source.schema), merge)
    found, first = [], 0
    for size in [*sizes, len(table)]:
        part = open_source(table.slice(first, size))
        if len(table.slice(first, size)):
            for batch in read_events(part, tracer.pipeline.roles, columns=tracer.pipeline.columns, first_row=first):
                found += tracer.push(batch)
        first += size
    return tracer, [*found, *tracer.finish()]


def seen_by(query: QuerySyntax, rows: Any, tracer: Tracer, trace: Trace) -> Seen:
    """A trace by rows."""
    return Seen(trace, [errors for _, errors in tracer.remembered.places], rows_of_ticks(query, rows))


# --- against brute force ----------------------------------------------------------------------------------------------


def leads_to_what_it_does(world: RichWorld) -> None:
    """Each visit of each run, of a world with one event a tick, nothing merged."""
    query = compiled(world)
    rows = spread(world.rows)
    if query is None or not rows:
        return
    assert query.plan.registers is not None
    tracer, traces = traced_by(query.plan, table_of(rows), "none")
    futures = Futures(world.query, rows)
    is_exact = not query.plan.registers.needs_filter
    bound, ended = set(), set()
    for trace in traces:
        seen, points = seen_by(world.query, rows, tracer, trace), set(trace.point_row.tolist())
        reached: dict[Any, set[int]] = defaultdict(set)
        for visit in range(len(trace.birth)):
            run, since = seen.run(visit), row_since(world.query, seen, visit)
            assert seen.reached(visit) <= (futures.reached(run, since) if is_exact else points)
            reached[run[0], since] |= seen.reached(visit)
            bound.add(run[0])
        for (mine, since), found in reached.items():  # with more errors some runs can do nothing that others cannot
            expected = set().union(*(futures.reached((mine, k), since) for k in range(world.query.errors + 1)))
            assert expected == found if is_exact else expected <= found
        pairs = zip(trace.end_visit.tolist(), trace.end_point.tolist(), strict=True)
        ended |= {(seen.rows(visit), int(trace.point_row[point])) for visit, point in pairs}
    if is_exact:
        assert bound == {run[0] for run in futures.runs if futures.waiting(run)}
        assert ended == set(futures.completions())


def row_since(query: QuerySyntax, seen: Seen, visit: int) -> int:
    """The row from which on events count for a visit: that of the last event if it was just bound."""
    now, last, is_fresh = seen.visits[visit]
    birth = seen.trace.birth[visit : visit + 1]
    slot = str(seen.trace.slot_names(seen.trace.slot[birth])[0])
    later = (row for (name, tick), row in seen.row_of.items() if name == slot and tick >= now)
    return last if is_fresh else min(later, default=FAR)


@examples(150, shrink=False)
@given(rich_worlds())
def test_runs_lead_to_what_they_do_by_brute_force(world: RichWorld) -> None:
    """Over the whole language: reached points at birth and at each later visit, lineages, completions."""
    holds_for(world, leads_to_what_it_does)


PAIRS = ("A", "B", "C")
QUERIES = (
    "PATTERN SEQ(A a, B b, C c) WHERE b.x >= a.x AND c.x <> b.x WITHIN 9",
    "PATTERN SEQ(A a, B b, C c) WHERE c.x = a.x AND c.y > 0 WITHIN 7 events",
    "PATTERN SEQ(A a, B+ b[], C c) WHERE [g] AND b[i].x >= b[i-1].x WITHIN 12",
    "PATTERN SEQ(A a, (B b | C c), A d) WHERE [g] AND d.x > a.x WITHIN 6 events ERRORS 1",
    "PATTERN SEQ(A a, B b, A c, B d) WHERE d.x + c.x > a.x AND c.x < b.x WITHIN 13 ERRORS 1",
)


def stream(random: Random, length: int = 16) -> tuple[dict[str, Any], ...]:
    """Events of a few types, one a tick."""
    return tuple(
        {"ts": tick, "x": random.randrange(3), "y": random.choice((-1.0, 1.0)), "type": random.choice(PAIRS)}
        | {"s": random.choice("uvw"), "g": random.choice("gh")}
        for tick in range(length)
    )


@pytest.mark.parametrize("text", QUERIES)
def test_when_visits_are_and_what_runs_cost(text: str) -> None:
    """Visits when the part of the window changes, parents at the time, run-steps; by brute force."""
    for seed in range(6):
        rows, query = stream(Random(seed)), compile_query(text, engine="runs")
        tracer, [trace] = traced_by(query.plan, table_of(rows), "none")
        seen, futures = seen_by(query.syntax, rows, tracer, trace), Futures(query.syntax, rows)
        window = query.syntax.window.amount
        for birth, first in enumerate(trace.first_visits().tolist()):
            mine = np.flatnonzero(trace.birth == birth)
            left = range(int(trace.remaining[first]), -1, -1)
            parts = {r: r * PARTS // (window + 1) for r in left}
            assert trace.remaining[mine].tolist() == [r for r in left if r == left[0] or parts[r] != parts[r + 1]]
            assert trace.parent[mine[1:]].tolist() == mine[:-1].tolist()
            parent = int(trace.parent[first])
            if parent >= 0:
                times = [seen.visits[v][0] for v in np.flatnonzero(trace.birth == trace.birth[parent])]
                now = seen.visits[first][0]
                assert seen.visits[parent][0] == max(time for time in times if time <= now)
            for visit in mine.tolist():
                since = row_since(query.syntax, seen, visit) + (visit == first)
                assert trace.cost[visit] in futures.costs(seen.run(visit), since), (seed, visit)


# --- merged, and in pieces --------------------------------------------------------------------------------------------


def births_by_value(seen: Seen) -> dict[Any, list[int]]:
    """Births that merging may make one: of one event, place, partition and memory."""
    found = defaultdict(list)
    trace = seen.trace
    for birth in range(len(trace.place)):
        place, slot, tick = int(trace.place[birth]), int(trace.slot[birth]), int(trace.tick[birth])
        found[place, slot, tick, seen.memory(birth)].append(birth)
    return found


@pytest.mark.parametrize("text", QUERIES)
def test_a_merged_run_stands_for_all_that_are_in_it(text: str) -> None:
    """One birth for all runs of one event that remember the same: the latest start, and all that they reach."""
    for seed in range(8):
        rows, query = stream(Random(seed), 24), compile_query(text, engine="runs")
        apart, merged = (
            seen_by(query.syntax, rows, *_only(traced_by(query.plan, table_of(rows), merge)))
            for merge in ("none", MERGE)
        )
        mine, theirs = births_by_value(merged), births_by_value(apart)
        assert mine.keys() == theirs.keys()
        first, others = merged.trace.first_visits(), apart.trace.first_visits()
        for value, [birth] in mine.items():
            assert merged.trace.start[birth] == apart.trace.start[theirs[value]].max()
            assert merged.reached(first[birth]) == set().union(*(apart.reached(others[b]) for b in theirs[value]))
        assert _ends(merged) == _ends(apart)
        starts, parents = merged.trace.start[merged.trace.birth], merged.trace.parent
        assert (starts[parents[parents >= 0]] == starts[parents >= 0]).all()


def _only(found: tuple[Tracer, list[Trace]]) -> tuple[Tracer, Trace]:
    tracer, [trace] = found
    return tracer, trace


def _ends(seen: Seen) -> set[int]:
    return {int(seen.trace.point_row[point]) for point in seen.trace.end_point}


def in_pieces(world: RichWorld) -> None:
    """The same visits whether they are told at once or piece by piece; with the same costs if nothing is merged.

    Where complete matches are tested, a row counts as a match point as soon as one match is found there.
    """
    query = compiled(world)
    rows = spread(world.rows)
    if query is None or not rows:
        return
    assert query.plan.registers is not None
    is_exact = not query.plan.registers.needs_filter
    for merge, same in (("none", None if is_exact else -2), (MERGE, -1 if is_exact else -2)):
        whole, parts = Counter[Any](), Counter[Any]()
        for found, chunk, sizes in ((whole, 2**30, ()), (parts, 1, [1] * len(rows))):
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(traced, "CHUNK", chunk)
                tracer, traces = traced_by(query.plan, table_of(rows), merge, sizes)
            for trace in traces:
                seen = seen_by(world.query, rows, tracer, trace)
                found.update(seen.flat(visit)[:same] for visit in range(len(trace.birth)))
                found.update(("end", seen.rows(int(visit))) for visit in trace.end_visit if is_exact)
        assert whole == parts, merge


@examples(60, shrink=False)
@given(rich_worlds())
def test_told_in_pieces_or_at_once(world: RichWorld) -> None:
    """Over the whole language, one event at a time."""
    holds_for(world, in_pieces)


def test_how_many_have_a_text_is_not_compared_with_it() -> None:
    """Codes of texts depend on how the past is cut, and numbers of events are no values of theirs."""
    query = compile_query("PATTERN SEQ(A+ a[], B b) WHERE count(a[].s) < b.x AND a[i].s <> b.s WITHIN 9")
    tracer, _ = traced_by(query.plan, pa.table({"ts": [1], "type": ["A"], "s": ["u"], "x": [1]}), MERGE)
    assert "number of a[] that have s" in tracer.remembered.columns
    assert not [name for name in tracer.remembered.columns if name.endswith("ahead of now")]


# --- by hand ----------------------------------------------------------------------------------------------------------


def test_only_the_next_64_match_points_of_the_own_partition_are_told():
    past = [{"ts": 0, "key": key, "type": "A"} for key in "uv"]
    past += [{"ts": i, "key": "uv"[i % 2], "type": "B"} for i in range(1, 201)]
    query = compile_query("PATTERN SEQ(A a, B b) WHERE [key] WITHIN 1000")
    [trace] = trace_past(query.plan, past)
    assert trace.point_slot.tolist() == [0] * 100 + [1] * 100
    assert trace.slot_names(trace.slot).tolist() == ["u", "v"]
    at_birth = trace.first_visits()
    assert trace.first_point[at_birth].tolist() == [0, 100]
    assert trace.mask[at_birth].tolist() == [2**64 - 1] * 2
    assert [trace.texts[code] for code in trace.key] == ["u", "v"]
    assert len(trace.end_visit) == 200
    later = trace.first_point[trace.birth == 0]
    assert trace.point_tick[later[1]] >= 1000 - trace.remaining[trace.birth == 0][1]


def test_few_points_are_left_in_the_last_parts_of_the_window():
    past = [{"ts": 0, "type": "A"}, *({"ts": i, "type": "B"} for i in range(1, 80))]
    [trace] = trace_past(compile_query("PATTERN SEQ(A a, B b) WITHIN 79").plan, past)
    assert trace.remaining.tolist() == [79, 69, 59, 49, 39, 29, 19, 9]
    assert np.bitwise_count(trace.mask).tolist() == [64, 64, 60, 50, 40, 30, 20, 10]
    assert trace.point_tick[trace.first_point].tolist() == [1, 10, 20, 30, 40, 50, 60, 70]
    assert trace.cost.tolist() == [1.0] * 8  # up to the first match


def test_what_runs_remember(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(event_columns, "MANY_TEXTS", 4)
    monkeypatch.setattr(traced, "CHUNK", 40)
    past = [
        {"ts": i, "type": "ABC"[i % 3], "name": None if i % 7 == 0 else f"n{i}", "x": i, "y": i / 2} for i in range(90)
    ]
    table = pa.Table.from_pylist(past)
    query = "PATTERN SEQ(A a, B b, C c) WHERE c.name <> a.name AND c.x > b.x AND b.y >= a.y WITHIN 20"
    tracer, traces = traced_by(compile_query(query).plan, table, MERGE, [10] * 8)
    assert len(traces) > 2
    assert tracer.remembered.places[0][0] == "start"
    births = 0
    for trace in traces:
        kinds = {"name of a": "text", "x of b": "int", "y of a": "float"}
        assert kinds.items() <= dict(zip(trace.columns, trace.kinds, strict=True)).items()
        for birth, tick in enumerate(trace.tick.tolist()):
            births += 1
            values = {name: trace.column(name)[birth] for name in trace.columns}
            if tracer.remembered.places[trace.place[birth]][0] == "a":
                code = int(values["name of a"])
                assert (trace.texts[code] if code >= 0 else None) == past[tick]["name"]
                assert values["y of a"] == past[tick]["y"]
                assert np.isnan(values["x of b"])
            else:
                assert values["x of b"] == tick
                assert np.isnan(values["y of a"])
    assert births > 90


def test_keys_that_fall_silent_keep_their_names(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(stream_side, "SWEEP", 1)
    past = [
        {"ts": 40 * i + j, "key": f"k{i}", "type": "AB"[j], "x": i} for i in range(60) for j in range(2)
    ]
    query = compile_query("PATTERN SEQ(A a, B b, C c) WHERE [key] AND c.x = a.x WITHIN 10")
    for chunk, many in ((8, True), (2**30, False)):
        monkeypatch.setattr(traced, "CHUNK", chunk)
        _, traces = traced_by(query.plan, pa.Table.from_pylist(past), MERGE, [4] * 30)
        assert (len(traces) > 1) == many
        for trace in traces:
            names = [trace.texts[code] for code in trace.key]
            assert names == [f"k{tick // 40}" for tick in trace.tick]
            assert names == trace.slot_names(trace.slot).tolist()


def test_a_match_ends_all_runs_where_none_may_overlap():
    past = [{"ts": tick, "type": kind} for tick, kind in enumerate("AAB....AB")]
    query = compile_query("PATTERN SEQ(A a, B b) WITHIN 15 NON OVERLAP", engine="runs")
    [trace] = trace_past(query.plan, past, merge="none")
    assert [(int(t), int(m)) for t, m in zip(trace.tick, trace.mask[trace.first_visits()], strict=True)] == [
        (0, 1), (1, 1), (7, 1)
    ]  # fmt: skip
    now = trace.tick[trace.birth] + trace.since
    assert now[trace.birth < 2].max() == 2


def test_an_index_leads_to_a_run_in_one_step():
    past = [{"ts": 0, "type": "A", "x": 1}, *({"ts": i, "type": "B", "x": int(i == 9)} for i in range(1, 12))]
    query = compile_query("PATTERN SEQ(A a, B b) WHERE b.x = a.x WITHIN 20")
    for merge, cost in ((MERGE, 1.0), ("none", 9.0)):
        [trace] = trace_past(query.plan, past, merge=merge)
        assert trace.cost[0] == cost


def test_nothing_is_told_of_nothing():
    query = compile_query("PATTERN SEQ(A a, B b) WITHIN 20")
    assert list(trace_past(query.plan, [])) == []
    assert list(trace_past(query.plan, [{"ts": 0, "type": "C"}])) == []
    seen: list[int] = []
    traces = list(trace_past(query.plan, [{"ts": 0, "type": "A"}], on_progress=seen.append))
    assert seen == [1]
    assert [len(trace.place) for trace in traces] == [1]


def costs_of(query: str, text: str, merge: str = MERGE) -> dict[tuple[str, int], float]:
    """Run-steps from birth on, by state and tick; events like ``0 A 5``: tick, type and x."""
    events = [part.split() for part in text.split(",")]
    table = pa.Table.from_pylist([{"ts": int(t), "type": kind, "x": int(x)} for t, kind, x in events])
    tracer, trace = _only(traced_by(compile_query(query, engine="runs").plan, table, merge))
    names = [tracer.remembered.places[place][0] for place in trace.place]
    cost = trace.cost[trace.first_visits()].tolist()
    return {(name, int(tick)): steps for name, tick, steps in zip(names, trace.tick, cost, strict=True)}


def test_what_merged_runs_cost():
    query = "PATTERN SEQ(A a, B b, C c) WHERE b.x >= a.x WITHIN 20"
    one_event = costs_of(query, "0 A 0, 1 A 1, 2 B 5, 3 C 0, 4 C 0")
    assert one_event == {("a", 0): 2.0, ("a", 1): 2.0, ("b", 2): 1.0}
    # the run at 3 takes that at 2 over: the tests after that are its own
    across = costs_of(query, "0 A 0, 1 A 1, 2 B 5, 3 B 5, 4 C 0, 5 C 0")
    assert across == {("a", 0): 1.0, ("a", 1): 1.0, ("b", 2): 0.0, ("b", 3): 1.0}


def test_match_points_far_ahead_are_cut_off_and_do_not_come_back():
    past = [{"ts": 0, "type": "A", "x": 0}, {"ts": 1, "type": "B", "x": 1}, {"ts": 2, "type": "B", "x": 2}]
    past += [{"ts": i, "type": "C", "x": 2 if i == 73 else 1} for i in range(3, 74)]
    [trace] = trace_past(compile_query("PATTERN SEQ(A a, B b, C c) WHERE c.x = b.x WITHIN 100").plan, past)
    found = trace.mask[trace.first_visits()].tolist()
    assert found == [2**64 - 1, 2**64 - 1, 0]
    later = (trace.birth == 2) & (trace.tick[trace.birth] + trace.since > 12)
    assert (trace.mask[later & (trace.remaining > 27)] != 0).all()


@pytest.mark.parametrize("merge", [MERGE, "none"])
def test_a_run_ends_where_it_must_go_on(merge: str):
    past = [{"ts": tick, "type": kind} for tick, kind in enumerate("AZBZZZZZBZZC")]
    query = compile_query("PATTERN SEQ(A a, B b, C c) WHERE skip_till_next_match WITHIN 15")
    [trace] = trace_past(query.plan, past, merge=merge)
    now = trace.tick[trace.birth] + trace.since
    assert trace.tick.tolist() == [0, 2]
    assert now[trace.birth == 0].max() == 2
    assert trace.cost[trace.first_visits()].tolist() == [2.0, 1.0]


def test_neighbours_end_a_run_that_must_be_followed_at_once():
    query = "PATTERN SEQ(A a, B b, C c) WHERE partition_contiguity WITHIN 9"
    assert costs_of(query, "0 A 0, 1 A 0, 2 B 0, 3 B 0, 4 C 0") == {("a", 0): 0.0, ("a", 1): 1.0, ("b", 2): 0.0}


@pytest.mark.parametrize("chunk", [1, 2**30])
def test_what_is_no_match_after_all_counts_for_nothing(monkeypatch: pytest.MonkeyPatch, chunk: int):
    monkeypatch.setattr(traced, "CHUNK", chunk)
    past = [{"ts": tick, "type": kind} for tick, kind in zip((0, 1, 2, 20, 21, 40), "ABCABZ", strict=True)]
    query = compile_query("PATTERN SEQ(A a, B b, ~(C c)) WITHIN 10")
    _, traces = traced_by(query.plan, pa.Table.from_pylist(past), MERGE, [1] * 6)
    assert [row for trace in traces for row in trace.point_row.tolist()] == [4]
    assert [m for trace in traces for m in trace.mask[trace.first_visits()].tolist()] == [0, 1]
    assert len(traces) == (2 if chunk == 1 else 1)


def test_the_traces_of_five_events() -> None:
    past = [{"ts": tick, "type": kind} for tick, kind in enumerate("ABABC")]
    [trace] = trace_past(compile_query("PATTERN SEQ(A a, B b, C c) WITHIN 3").plan, past)
    births = trace.first_visits()
    reached = [(int(tick), int(mask)) for tick, mask in zip(trace.tick, trace.mask[births], strict=True)]
    assert reached == [(0, 0), (1, 0), (2, 1), (3, 1)]
