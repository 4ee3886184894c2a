"""Workloads, metrics and comparators of the experiments on load shedding, against naive ones."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pyarrow as pa
import pytest

from acep_approx import HistoryGraph, compile_query
from acep_approx.api.matcher import Matcher
from acep_approx.query.parser import parse
from experiments.shedding import percent
from experiments.shedding.comparators import LEAST_COST, POLICIES, SLOTS, chain, parts, vertices
from experiments.shedding.heavy import HEAVY, HEAVY_REAL, heavy_workloads, load_heavy
from experiments.shedding.metrics import Answer, bundles, exact, precision, recalls, recalls_of_points
from experiments.shedding.workloads import GENERATED, QUERIES, load, workloads
from history.trace import Trace
from history.vectors import Feature, Place, Scheme
from tests.naive import expected_matches
from tests.shed_streams import LISTED, world

# --- workloads ---------------------------------------------------------------------------------------------------


def test_every_workload_compiles() -> None:
    for query in (*QUERIES.values(), *HEAVY.values()):
        assert compile_query(query, engine="runs").plan.registers is not None
    assert (len(workloads()), len(heavy_workloads())) == (len(QUERIES), len(HEAVY))


@pytest.mark.parametrize("name", HEAVY_REAL)
def test_heavy_workloads_lie_on_both_sides_of_the_middle(name: str) -> None:
    some = load_heavy(name)
    assert len(some.train) == len(some.test) == HEAVY_REAL[name][1]
    assert some.train["ts"][-1].as_py() <= some.test["ts"][0].as_py()


@pytest.mark.parametrize("name", GENERATED)
def test_generated_workloads_are_halves_of_one_seeded_stream(name: str) -> None:
    some, same, other = load(name, 3, 500), load(name, 3, 500), load(name, 4, 500)
    assert some.train.equals(same.train)
    assert some.test.equals(same.test)
    assert not some.test.equals(other.test)
    stream = pa.concat_tables([some.train, some.test])
    assert stream.equals(GENERATED[name][0](500, 3))
    assert len(some.train) == 250


def test_generated_streams_are_as_the_paper_says() -> None:
    events = GENERATED["DS1-sum"][0](20_000, 1).to_pandas()
    shares = events["type"].value_counts(normalize=True).to_dict()
    assert shares == pytest.approx(dict.fromkeys("ABCDEFGHIJ", 0.1), abs=0.01)
    for name, least, most in (("id", 1, 10), ("x", -90, 90), ("y", -180, 180), ("v", 1, 3_000_000)):
        assert (events[name].min(), events[name].max()) == pytest.approx((least, most), abs=(most - least) / 1000)
        assert events[name].mean() == pytest.approx((least + most) / 2, abs=(most - least) / 50)
    events = GENERATED["DS2-sum"][0](20_000, 1).to_pandas()
    assert sorted(events["type"].unique()) == list("ABCDEF")
    assert (events["id"].min(), events["id"].max(), events["x"].min(), events["x"].max()) == (1, 25, 1, 100)


# --- metrics -----------------------------------------------------------------------------------------------------


def run(query: str, rows: list[dict[str, object]]) -> tuple[Answer, int]:
    compiled = compile_query(query, engine="runs")
    found = exact(Matcher(compiled.plan), pa.Table.from_pylist(rows), 5)
    return found.answer, found.window


def bindings(found: Answer) -> list[frozenset[tuple[int, int]]]:
    return [
        frozenset(zip(found.id[a:b].tolist(), found.arc[a:b].tolist(), strict=True))
        for a, b in zip(found.offset[:-1].tolist(), found.offset[1:].tolist(), strict=True)
    ]


@pytest.mark.parametrize("seed", [0, 2, 3, 6, 9, 10, 11])
def test_answers_and_recalls_equal_naive_ones(seed: int) -> None:
    rows = world(seed)
    everything, window = run(LISTED, rows)
    names = compile_query(LISTED, engine="runs").plan.automaton.variables
    expected = {frozenset((r, names.index(v)) for r, v in bound) for bound in expected_matches(parse(LISTED), rows)}
    assert set(bindings(everything)) == expected
    assert len(everything) == len(expected)
    assert everything.tick.tolist() == [rows[row]["ts"] for row in everything.point.tolist()]

    dice = np.random.default_rng(seed)
    some = everything.take(np.flatnonzero(dice.random(len(everything)) < 0.3))
    got = recalls(some, everything, window)
    found, found_rows = set(bindings(some)), {max(row for row, _ in one) for one in bindings(some)}
    chains: list[set[int]] = []
    for key in "pq":
        last = None
        for row in sorted({max(row for row, _ in one) for one in expected}):
            if rows[row]["k"] == key:
                tick = int(str(rows[row]["ts"]))
                if last is None or tick - last > window:
                    chains.append(set())
                chains[-1].add(row)
                last = tick
    ends = set().union(*chains)
    assert expected, "another seed is needed"
    assert got.matches == pytest.approx(len(found) / len(expected))
    table = compile_query(LISTED, engine="runs").match(pa.Table.from_pylist(rows)).points()
    assert recalls_of_points(table, np.unique(some.point), window) == pytest.approx((got.points, got.bundles))
    assert got.points == pytest.approx(len(found_rows) / len(ends))
    assert got.bundles == pytest.approx(sum(bool(one & found_rows) for one in chains) / len(chains))
    assert precision(some, everything) == 1.0


def test_a_match_that_is_not_in_the_answer_lowers_precision() -> None:
    def made(*matches: list[tuple[int, int]]) -> Answer:
        flat = [item for match in matches for item in match]
        offset = np.cumsum([0, *map(len, matches)])
        none = np.zeros(len(matches), np.int64)
        return Answer(offset, np.array([r for r, _ in flat]), np.array([v for _, v in flat]), none, none)

    right = made([(0, 0), (1, 1)], [(0, 0), (2, 1), (3, 1)])
    assert precision(made([(0, 0), (1, 1)], [(0, 0), (2, 1)]), right) == 0.5  # a part of a match is none
    assert precision(made([(0, 0), (1, 0)]), right) == 0.0  # the same events, other variables
    assert precision(right.take(np.array([], np.int64)), right) == 1.0


def test_bundles_are_chains_of_their_own_slot() -> None:
    tick, slot = np.array([0, 10, 11, 21, 32]), np.array([0, 1, 0, 0, 0])
    assert bundles(tick, slot, 10).tolist() == [0, 3, 1, 1, 2]
    assert bundles(tick[:0], slot[:0], 10).tolist() == []


# --- comparators -------------------------------------------------------------------------------------------------

SCHEME = Scheme(
    (
        Place("a", 0, (Feature("n", "int", edges=(3.0, 6.0)),)),
        Place("b", 0, (Feature("key", "text", groups={"p": 0, "q": 1}), Feature("n", "int", edges=(5.0,)))),
        Place("c", 0),
    ),
    window=80,
)


def made_trace(seed: int, births: int = 120) -> Trace:
    """A random past: runs with visits, children, points; numbers of visits rise along lineages."""
    rng = np.random.default_rng(seed)
    place, tick, start, values, key = [], [], [], [], []
    birth, remaining, since, parent, cost = [], [], [], [], []
    for number in range(births):
        older = int(rng.integers(0, len(birth))) if birth and rng.random() < 0.6 else -1
        if older >= 0 and remaining[older] > 0 and place[birth[older]] < 2:
            place.append(place[birth[older]] + 1)
            start.append(start[birth[older]])
            now = start[-1] + 80 - int(rng.integers(max(remaining[older] - 9, 0), remaining[older] + 1))
        else:
            older = -1
            place.append(0)
            now = number * 7
            start.append(now)
        tick.append(now)
        values.append(float(rng.integers(0, 9)) if rng.random() < 0.9 else np.nan)
        key.append(int(rng.integers(-1, 3)))
        left, before, limit = start[-1] + 80 - now, older, float(rng.integers(20, 60))
        while left >= 0:
            birth.append(number)
            remaining.append(left)
            since.append(start[-1] + 80 - left - now)
            parent.append(before)
            cost.append(limit)
            before, limit = len(birth) - 1, max(limit - 5.0, 0.0)
            part = int(np.searchsorted(SCHEME.remaining_floors, left, side="right"))
            left = int(SCHEME.remaining_floors[part - 1]) - 1 if part and rng.random() < 0.9 else -1
    mask = rng.integers(0, 8, len(birth)).astype(np.uint64) * (rng.random(len(birth)) < 0.4)
    ends = np.flatnonzero(rng.random(len(birth)) < 0.1)
    none = np.zeros(1, np.int64)
    return Trace(
        place=np.array(place), tick=np.array(tick), start=np.array(start), slot=np.zeros(births, np.int64),
        columns=("n",), kinds=("int",), values=[np.array(values)], key=np.array(key), texts=("p", "q", "r"),
        birth=np.array(birth), remaining=np.array(remaining), since=np.array(since), parent=np.array(parent),
        first_point=np.zeros(len(birth), np.int64), mask=mask.astype(np.uint64), cost=np.array(cost),
        point_row=none, point_tick=none, point_slot=none, end_visit=ends, end_point=np.zeros(len(ends), np.int64),
    )  # fmt: skip


def groups(trace: Trace) -> list[tuple[int, ...]]:
    """Place and buckets of each birth, one at a time."""
    found = []
    for place, n, key in zip(trace.place.tolist(), trace.values[0].tolist(), trace.key.tolist(), strict=True):
        null = n != n
        text = {0: 0, 1: 1}.get(key, 2)
        number = (3 if null else int(n >= 3) + int(n >= 6)) if place == 0 else (2 if null else int(n >= 5))
        found.append({0: (0, number), 1: (1, text, number), 2: (2,)}[place])
    return found


def vertex(place: int, within: int, part: int) -> int:
    return int(SCHEME.first[place]) + (within * 8 + part) * 4


@pytest.mark.parametrize("seed", range(5))
def test_counting_policies_equal_naive_counts(seed: int) -> None:
    trace = made_trace(seed)
    first = {}
    for visit, number in enumerate(trace.birth.tolist()):
        first.setdefault(number, visit)
    led = [int(trace.mask[first[number]]).bit_count() for number in range(len(trace.place))]
    known = groups(trace)
    got = {name: POLICIES[name](trace, SCHEME) for name in ("prefix-sketch", "contribution", "hspice", "most-advanced")}
    for n in range(4):
        at = vertex(0, n, 5)
        expected = sum(count for count, group in zip(led, known, strict=True) if group == (0, n))
        assert got["prefix-sketch"].gain[at] == got["contribution"].gain[at] == expected
    for text, n in product(range(3), range(3)):
        at = vertex(1, text * 3 + n, 2)
        expected = sum(count for count, group in zip(led, known, strict=True) if group == (1, text, n))
        assert got["prefix-sketch"].gain[at] == expected
        expected = sum(count for count, group in zip(led, known, strict=True) if group[:2] == (1, text))
        assert got["contribution"].gain[at] == expected
    for place, part in product(range(3), range(8)):
        mine = [
            visit
            for visit, number in enumerate(trace.birth.tolist())
            if trace.place[number] == place and min(trace.remaining[visit] * 8 // 81, 7) == part
        ]
        expected = sum(bool(trace.mask[visit]) for visit in mine) / len(mine) if mine else 0
        assert got["hspice"].gain[vertex(place, 0, part) + 3] == pytest.approx(expected)
        assert got["most-advanced"].gain[vertex(place, 0, part)] == pytest.approx(2 + place)
    assert all((worth.cost == 1).all() for worth in got.values())


def test_every_policy_has_a_worth_for_every_vertex() -> None:
    trace = made_trace(9)
    for name, policy in POLICIES.items():
        worth, again = policy(trace, SCHEME), policy(trace, SCHEME)
        assert worth.gain.shape == worth.cost.shape == (SCHEME.vertices,), name
        assert np.isfinite(worth.gain).all(), name
        assert (worth.gain >= 0).all(), name
        assert (worth.cost >= LEAST_COST).all(), name
        assert (worth.gain == again.gain).all(), name
    assert len(set(POLICIES["random"](trace, SCHEME).gain.tolist())) == 1
    oldest = POLICIES["oldest"](trace, SCHEME)
    assert (np.diff(oldest.gain[np.argsort(vertices(SCHEME).part, kind="stable")]) >= 0).all()
    assert oldest.gain[vertex(0, 0, 7)] > oldest.gain[vertex(0, 0, 6)]


def flows(births: int, seed: int) -> Trace:
    """Runs that go on at known rates: a to b with 0.02 a tick, b to a match with 0.01; one run-step each two ticks."""
    rng = np.random.default_rng(seed)
    to_b, to_end = 0.02, 0.01
    place, birth, remaining, parent, cost, ends, born = [], [], [], [], [], [], []

    def live(at: int, left: int, before: int, until: int) -> None:
        """Visits of a run from ``left`` down to ``until``."""
        place.append(at)
        born.append(len(birth))
        while left >= until:
            birth.append(len(place) - 1)
            remaining.append(left)
            parent.append(before)
            cost.append((left - until) / 2)
            before = len(birth) - 1
            part = int(np.searchsorted(SCHEME.remaining_floors, left, side="right"))
            left = int(SCHEME.remaining_floors[part - 1]) - 1 if part else -1

    def visit_at(left: int) -> int:
        """The visit in which the run last made is when so much remains."""
        return max(v for v in range(born[-1], len(birth)) if remaining[v] >= left)

    for _ in range(births):
        live(0, 80, -1, 0)
        left = 80 - int(rng.exponential(1 / to_b))
        if left >= 0:
            live(1, left, visit_at(left), 0)
            left -= int(rng.exponential(1 / to_end))
            if left >= 0:
                ends.append(visit_at(left))
    none, many = np.zeros(0, np.int64), len(place)
    zeros = np.zeros(many, np.int64)
    return Trace(
        place=np.array(place), tick=zeros, start=zeros, slot=zeros, columns=("n",), kinds=("int",),
        values=[np.zeros(many)], key=zeros, texts=("p",), birth=np.array(birth), remaining=np.array(remaining),
        since=np.zeros(len(birth), np.int64), parent=np.array(parent), first_point=np.zeros(len(birth), np.int64),
        mask=np.zeros(len(birth), np.uint64), cost=np.array(cost), point_row=none, point_tick=none, point_slot=none,
        end_visit=np.array(ends), end_point=np.zeros(len(ends), np.int64),
    )  # fmt: skip


def test_the_markov_chain_is_learned_from_runs_that_keep_branching() -> None:
    """A run stays when it has a child, so a rate is children per time lived."""
    trace = flows(1500, 1)
    moves, reward = chain(trace, SCHEME)
    lived = np.zeros(3)
    for left, place in zip(trace.remaining[trace.first_visits()].tolist(), trace.place.tolist(), strict=True):
        lived[place] += left + 1
    step = 80 / (8 * SLOTS)
    counts = {(0, 1): int((trace.place == 1).sum()), (1, 3): len(trace.end_visit)}
    for (source, target), count in counts.items():
        assert moves[source, target] == pytest.approx(1 - np.exp(-count / lived[source] * step), rel=1e-6)
    assert moves.sum(axis=1) == pytest.approx(np.ones(4))
    assert (moves[2, 2], moves[3, 3]) == (1, 1)
    assert reward[:2] == pytest.approx(step / 2, rel=0.15)
    worth = POLICIES["markov"](trace, SCHEME)
    steps = 3 * SLOTS + SLOTS // 2
    assert worth.gain[vertex(1, 0, 3)] == pytest.approx(1 - (1 - moves[1, 3]) ** steps)
    naive = sum((1 - moves[0, 1]) ** i * moves[0, 1] * (1 - (1 - moves[1, 3]) ** (steps - 1 - i)) for i in range(steps))
    assert worth.gain[vertex(0, 0, 3)] == pytest.approx(naive)
    gone = (1 - (1 - moves[1, 3]) ** steps) / moves[1, 3]  # steps until it is completed, or the window ends
    assert worth.cost[vertex(1, 0, 3)] == pytest.approx(reward[1] * gone)


def test_a_markov_chain_needs_completions() -> None:
    trace = made_trace(1)
    bare = Trace(**{**vars(trace), "end_visit": np.zeros(0, np.int64), "end_point": np.zeros(0, np.int64)})
    with pytest.raises(ValueError, match="end_visit"):
        POLICIES["markov"](bare, SCHEME)


def test_the_cost_model_tells_good_runs_from_dear_ones() -> None:
    trace = made_trace(2, 600)
    group = groups(trace)
    good = np.array([group[number] in ((0, 0), (1, 1, 0)) for number in trace.birth.tolist()])
    trace = Trace(**{**vars(trace), "mask": np.where(good, 7, 0).astype(np.uint64), "cost": np.where(good, 10.0, 40.0)})
    worth = POLICIES["cost-model"](trace, SCHEME)
    assert (worth.gain[vertex(0, 0, 4)], worth.cost[vertex(0, 0, 4)]) == (3, 10)
    assert (worth.gain[vertex(0, 2, 4)], worth.cost[vertex(0, 2, 4)]) == (0, 40)
    assert worth.gain[vertex(1, 3, 4)] == 3
    assert worth.gain[vertex(1, 0, 4)] == 0


def test_parts_are_those_of_the_scheme() -> None:
    trace = made_trace(4)
    known = SCHEME.encode(trace.place[trace.birth], 0, trace.remaining, trace.since)
    assert (vertices(SCHEME).part[known] == parts(trace, SCHEME)).all()
    assert (vertices(SCHEME).place[known] == trace.place[trace.birth]).all()


# --- percent -----------------------------------------------------------------------------------------------------


def test_a_percentage_is_spent_on_a_generated_workload() -> None:
    """Of both outputs; a line of the table tells where it is not.

    Hundreds of run-steps are saved up when it ends, however long the stream was: too much of a shorter one.
    """
    some = load("DS1-sum", 1)
    query = compile_query(some.query, engine="runs")
    found = list(percent.measure(some, HistoryGraph(query).fit(some.train), query, [10, 50]))
    assert [(one.output, one.percent) for one in found] == list(product(("points", "counts"), (10, 50)))
    assert all(one.is_right and 0.9 < one.stated < 1.1 and one.spent < one.stated + 0.01 for one in found)
    assert found[0].exact < found[2].exact
    table = percent.table_of([*found, replace(found[0], workload="other", spent=1.2)], [10, 50])
    assert [str(cell).endswith("!") for cell in table.columns[5].cells] == [False, False, True]
