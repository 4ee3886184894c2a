"""The cohort: cells of key and time that are matched exactly beside the run. Its match points and fates are exact."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from acep_approx import Query, compile_query
from acep_approx.api.matcher import Matcher
from acep_approx.budget.audit import AuditCells, AuditSample
from acep_approx.engines.runs.load_shedder import FixedLoad
from acep_approx.engines.runs.shedding import Shedding
from acep_approx.engines.runs.worth import Allowance
from acep_approx.learning import cohort
from acep_approx.learning.cohort import Cohort, Outcomes
from acep_approx.matching import stream_side
from history.counting import vertices_of
from history.trace import Trace
from history.vectors import Feature, Place, Scheme
from rl.records import Lineages
from tests.cases import cases, examples
from tests.rich_worlds import RichWorld, rich_worlds
from tests.runs_engine import compiled
from tests.smaller_worlds import holds_for
from tests.traced_past import trace_past

Ints = npt.NDArray[np.int64]

KEYED = "PATTERN SEQ(A a, B b, C c) WHERE [id] AND a.x + b.x < c.x WITHIN 60"
FREE = "PATTERN SEQ(A a, B b, C c) WHERE a.x + b.x < c.x WITHIN 30"
BETWEEN = "PATTERN SEQ(A a, ~(C c), B b) WHERE a.x < b.x AND c.x > a.x WITHIN 30"
EVENTS = 3000


def stream(events: int, seed: int, keys: int = 4) -> pa.Table:
    """Ties in time, and gaps."""
    rng = np.random.default_rng(seed)
    letter, x = rng.choice(3, events, p=[0.4, 0.4, 0.2]), rng.integers(0, 100, events)
    ticks, key = np.cumsum(rng.integers(0, 3, events)), rng.integers(0, keys, events)
    return pa.table({"ts": ticks, "type": np.array(list("ABC"))[letter], "x": x, "id": key})


class Beside(FixedLoad):
    """An exact run with a cohort beside it, as ``Shedder`` has it.

    Parameters
    ----------
    plan : Plan
    cells : AuditCells
    quota : float
        Run-steps of the cohort, all at once.
    notes : int
        Every so manieth match point of the run counts as found.
    """

    cohort: Cohort

    def __init__(self, plan: Any, cells: AuditCells, quota: float = 1e15, notes: int = 1) -> None:
        super().__init__(Shedding(None, Allowance()))
        self.plan, self.cells, self.quota, self.notes = plan, cells, quota, notes
        self.traces: list[Trace] = []
        self.found: set[int] = set()
        self.shown: Any = None

    def begin_stream(self, schema: pa.Schema, roles: Any) -> None:
        self.cohort = Cohort(self.plan, schema, roles, self.cells)

    def note_hits(self, events: Any, hits: Any) -> None:
        self.shown = events
        rows = np.unique(events.row[hits.event])
        rows = rows[rows % self.notes == 0]
        self.cohort.note_found(rows)
        self.found.update(rows.tolist())

    def end_piece(self, batch: Any, progress: Any, seconds: float) -> None:
        seen = self.shown
        left = self.quota - self.cohort.steps
        self.take(self.cohort.push(batch, seen.slot, seen.row, seen.tick, self.arena.keys_now(), left))

    def take(self, traces: Iterable[Trace]) -> None:
        for trace in traces:
            self.cohort.compare(trace)
            self.traces.append(self.cohort.whole(trace))

    def outcomes(self, traces: Iterable[Trace], scheme: Scheme) -> Lineages:
        """Of the cohort."""
        return Outcomes([*traces], self.cohort.weight).lineages(scheme)

    @property
    def slot_of(self) -> dict[str, int]:
        """By key."""
        return {text: slot for slot, text in enumerate(self.arena.keys_now().texts())}


def beside(query: Query, table: pa.Table, cells: AuditCells, size: int = 250, **more: Any) -> Beside:
    """Run over a table in batches."""
    shedding = Beside(query.plan, cells, **more)
    matcher = Matcher(query.plan, shedding=shedding)
    matcher.bind(table.schema)
    for first in range(0, len(table), size):
        matcher.push(table.slice(first, size))
    matcher.finish()
    shedding.take(shedding.cohort.finish())
    return shedding


def exact_rows(query: Query, table: pa.Table) -> Ints:
    """Match points of the exact run."""
    return np.unique(query.match(table).points()["row"].to_numpy()) if len(table) else np.zeros(0, np.int64)


def expected_sample(query: Query, table: pa.Table, done: Beside) -> AuditSample:
    """What the cohort should have seen: exact match points in chosen cells, and which of them the run found."""
    rows = exact_rows(query, table)
    slots = np.zeros(len(rows), np.int64)
    if "[id]" in str(query):
        slots = np.array([done.slot_of[str(key)] for key in table["id"].to_numpy()[rows]])
    cells = done.cells.cells(slots, table["ts"].to_numpy()[rows])
    found = np.isin(rows, sorted(done.found))
    return AuditSample.of(cells[cells >= 0], found[cells >= 0])


def scheme_of(window: int) -> Scheme:
    """Places with the first register of each; enough of them for all pools."""
    feature = Feature("x of a", "int", (20.0, 60.0))
    return Scheme((Place("start", 0), *(Place(f"{n}", 0, (feature,) if n == 1 else ()) for n in range(1, 6))), window)


def as_counter(fates: Lineages) -> Counter[tuple[int, ...]]:
    """Fates in any order."""
    return Counter(zip(fates.tick.tolist(), fates.vertex.tolist(), fates.points.tolist(), strict=True))


# --- match points ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", [KEYED, FREE, BETWEEN])
@pytest.mark.parametrize("look", [1, 64, 10**6])
def test_its_match_points_are_the_exact_ones_of_its_cells(text: str, look: int, monkeypatch: Any) -> None:
    """Each once, whenever it is looked; also where it is known only a window later that there is a match."""
    monkeypatch.setattr(cohort, "LOOK_BACK", look)
    query = compile_query(text, engine="runs")
    window = int(text.rsplit(maxsplit=1)[-1])
    for seed in range(3):
        table = stream(EVENTS, seed)
        done = beside(query, table, AuditCells(0.3, 4 * window, window, seed), notes=2)
        got, wanted = done.cohort.sample, expected_sample(query, table, done)
        assert got.cells.tolist() == wanted.cells.tolist()
        assert got.points.tolist() == wanted.points.tolist()
        assert got.found.tolist() == wanted.found.tolist()
        assert 20 < wanted.points.sum() < 0.6 * len(exact_rows(query, table))
        assert done.cohort.given_up == 0


@examples(150, shrink=False)
@given(rich_worlds(), st.sampled_from((1, 3, 100)))
def test_where_all_cells_are_chosen_it_finds_all(world: RichWorld, size: int) -> None:
    """Over the whole language, but for what has no cohort: neighbours, and matches that are certain only later.

    Nor are there matches of one event: they need no run, and are not seen where there is none.
    """

    def check(world: RichWorld) -> None:
        query, expected = compiled(world), world.expected()
        window = int(world.query.window.amount)
        if query is None or not world.rows or world.query.window.unit == "events":
            return
        if "contiguity" in world.query.strategy or min(map(len, expected), default=2) < 2:
            return
        assert query.plan.registers is not None
        if query.plan.registers.has_late_ends or query.plan.registers.needs_filter:
            return
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(cohort, "LOOK_BACK", 1)
            done = beside(query, world.table(), AuditCells(1.0, max(2 * window, 1), window), size)
        assert done.cohort.sample.points.sum() == len({bound[-1][0] for bound in expected})

    holds_for(world, check)


NEIGHBOURS = "PATTERN SEQ(A a, B b, A c) WHERE {} {{ [id] AND c.x > a.x }} WITHIN 60"
LATE = "PATTERN SEQ(A a, B b, ~(C c)) WHERE [id] AND a.x < b.x WITHIN 30"


@pytest.mark.parametrize(
    "text", [NEIGHBOURS.format("partition_contiguity"), NEIGHBOURS.format("strict_contiguity"), LATE]
)
def test_where_a_cell_does_not_know_its_matches_it_finds_them_all_the_same_or_there_is_none(text: str) -> None:
    """Events between others, or after a match, may lie outside of the cell."""
    query = compile_query(text, engine="runs")
    table = stream(EVENTS, 4)
    some = query.match_within(table, "30 steps/event", learn=True, audit=0.6)
    some.to_arrow()
    rows = exact_rows(query, table)
    assert len(rows) > 5
    assert some.shedder is not None
    found = some.shedder.online.beside.cohort
    if found is not None:
        slot = {text: number for number, text in enumerate(some.shedder.arena.keys_now().texts())}
        slots = np.array([slot[str(key)] for key in table["id"].to_numpy()[rows]])
        cells = found.cells.cells(slots, table["ts"].to_numpy()[rows])
        assert found.sample.points.sum() == (cells >= 0).sum()


def test_keys_that_fall_silent_and_come_back_are_still_told_apart(monkeypatch: Any) -> None:
    """A slot that is freed goes to another key, and the key that had it gets another slot."""
    monkeypatch.setattr(stream_side, "SWEEP", 1)
    monkeypatch.setattr(cohort, "LOOK_BACK", 1)
    query = compile_query(KEYED.replace("WITHIN 60", "WITHIN 9"), engine="runs")
    rng = np.random.default_rng(1)
    keys = [f"k{n}" for _ in range(8) for n in rng.permutation(30).tolist() for _ in range(6)]
    events = [
        {"ts": 3 * tick, "type": "ABCABC"[tick % 6], "x": 9 if tick % 3 == 2 else 1, "id": key}
        for tick, key in enumerate(keys)
    ]
    table = pa.Table.from_pylist(events)
    done = beside(query, table, AuditCells(1.0, 36, 9), size=6)
    assert done.arena.keys_now().capacity < 30
    assert done.cohort.sample.points.sum() == len(exact_rows(query, table)) > 400


# --- fates ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", [KEYED, FREE, BETWEEN])
def test_its_fates_are_those_of_a_trace_of_everything(text: str) -> None:
    """Of runs that lie, with their whole window, in one chosen cell; vertices and match points as well."""
    query = compile_query(text, engine="runs")
    window = int(text.rsplit(maxsplit=1)[-1])
    scheme = scheme_of(window)
    for seed in range(3):
        table = stream(EVENTS, seed)
        done = beside(query, table, AuditCells(0.3, 4 * window, window, seed))
        ours = as_counter(done.outcomes(done.traces, scheme))
        theirs: Counter[tuple[int, ...]] = Counter()
        for trace in trace_past(query.plan, table):
            slots = np.array([done.slot_of[name] for name in trace.slots] if trace.slots else [0])
            start = trace.start[trace.birth]
            first, last = (done.cells.cells(slots[trace.slot[trace.birth]], t) for t in (start, start + window))
            whole = (first >= 0) & (first == last) & (start // (4 * window) == (start + window) // (4 * window))
            tick, points = trace.tick[trace.birth] + trace.since, np.bitwise_count(trace.mask)
            columns = (tick[whole], vertices_of(scheme, trace)[whole], points[whole])
            theirs.update(zip(*(column.tolist() for column in columns), strict=True))
        assert ours == theirs
        assert theirs.total() > 500


def test_weighted_fates_stand_for_all_visits() -> None:
    """Over 80 streams and cohorts the mean of each estimate is within four standard errors of the mean of the truth."""
    query, window = compile_query(KEYED, engine="runs"), 60
    scheme = scheme_of(window)
    errors = []
    for seed in range(80):
        table = stream(1200, seed, keys=6)
        done = beside(query, table, AuditCells(0.25, 4 * window, window, seed), size=1200)
        estimate, truth = np.zeros((2, 3, 6))
        fates = done.outcomes(done.traces, scheme)
        place = scheme.place_of_group[fates.vertex // scheme.cells]
        ones = np.ones(len(place), np.int64)
        for number, each in enumerate((ones, (fates.points > 0).astype(np.int64), fates.points)):
            estimate[number] = np.bincount(place, fates.weight * each, 6)
        for trace in trace_past(query.plan, table):
            place = trace.place[trace.birth]
            points = np.bitwise_count(trace.mask)
            for number, each in enumerate((np.ones(len(place)), points > 0, points)):
                truth[number] += np.bincount(place, each, 6)
        errors.append((estimate - truth) / np.maximum(truth, 1))
    mean, deviation = np.mean(errors, axis=0), np.std(errors, axis=0) / 80**0.5
    seen = deviation > 0
    assert seen.sum() == 6  # both states, all three sums
    assert (np.abs(mean[seen]) < 4 * deviation[seen]).all()
    assert deviation[seen].max() < 0.1


# --- the quota ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", [KEYED, FREE])
@pytest.mark.parametrize("share", [0.0, 0.02, 0.3, 0.9])
def test_a_quota_that_is_too_small_is_never_overdrawn(text: str, share: float) -> None:
    """AuditCells are given up then, and counted; what it has seen until then is still true."""
    query, table = compile_query(text, engine="runs"), stream(EVENTS, 5)
    window = int(text.rsplit(maxsplit=1)[-1])
    cells = AuditCells(0.4, 4 * window, window, 5)
    enough = beside(query, table, cells)
    quota = share * enough.cohort.steps
    done = beside(query, table, cells, quota=quota)
    assert done.cohort.steps <= quota
    assert done.cohort.given_up > 0
    exact = expected_sample(query, table, done)
    at_most = dict(zip(exact.cells.tolist(), exact.points.tolist(), strict=True))
    got = zip(done.cohort.sample.cells.tolist(), done.cohort.sample.points.tolist(), strict=True)
    assert all(points <= at_most[cell] for cell, points in got)
    whole = as_counter(enough.outcomes(enough.traces, scheme_of(window)))
    assert as_counter(done.outcomes(done.traces, scheme_of(window))) <= whole


def test_a_quota_that_just_suffices_does() -> None:
    query, table = compile_query(KEYED, engine="runs"), stream(EVENTS, 6)
    cells = AuditCells(0.3, 240, 60, 6)
    enough = beside(query, table, cells).cohort
    again = beside(query, table, cells, quota=enough.steps + 1).cohort
    assert (again.steps, again.given_up) == (enough.steps, 0)
    assert again.sample.points.tolist() == enough.sample.points.tolist()


# --- inside a run that learns ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", [KEYED, FREE])
def test_the_recall_of_the_run_is_estimated(text: str) -> None:
    """With a large cohort, some seeds: the interval holds the truth in four of five, the mean error is below 0.1."""
    query = compile_query(text, engine="runs")
    held, errors = [], []
    seeds = cases(20, 8)
    for seed in range(seeds):
        table = stream(6000, seed, keys=12)
        exact = query.match(table)
        truth = set(exact.to_arrow()["c"].to_pylist())
        work = exact.work.steps / len(table)
        some = query.match_within(table, "40%", learn=True, full_work=work, audit=0.9, seed=seed)
        found = set(some.to_arrow()["c"].to_pylist())
        estimate = some.record().recall
        assert estimate is not None
        if estimate.low is None:
            continue
        assert estimate.high is not None
        sample = some.shedder.online.beside.cohort.sample
        assert estimate.points + estimate.outside >= len(found)
        held.append(estimate.low <= len(found) / len(truth) <= estimate.high)
        errors.append(sample.found.sum() / sample.points.sum() - len(found) / len(truth))
    assert len(held) >= 0.75 * seeds
    assert np.mean(held) >= 0.8
    assert abs(np.mean(errors)) < 0.1


def test_what_the_run_finds_is_the_same_as_what_it_says_of_its_cells() -> None:
    """The sample of a run that sheds: found are those of its own match points that lie in cells."""
    query, table = compile_query(KEYED, engine="runs"), stream(6000, 3)
    exact = query.match(table)
    rows = np.unique(exact.to_arrow()["c"].to_numpy())
    some = query.match_within(table, "40%", learn=True, full_work=exact.work.steps / len(table), audit=0.5, seed=2)
    found = np.unique(some.to_arrow()["c"].to_numpy())
    shedder = some.shedder
    assert shedder is not None
    assert shedder.online.beside.cohort is not None
    assert shedder.online.beside.cohort.given_up == 0
    slot = {text: number for number, text in enumerate(shedder.arena.keys_now().texts())}
    slots = np.array([slot[str(key)] for key in table["id"].to_numpy()[rows]])
    cells = shedder.online.beside.cohort.cells.cells(slots, table["ts"].to_numpy()[rows])
    wanted = AuditSample.of(cells[cells >= 0], np.isin(rows[cells >= 0], found))
    got = shedder.online.beside.cohort.sample
    assert got.points.tolist() == wanted.points.tolist()
    assert got.found.tolist() == wanted.found.tolist()
    assert 0 < got.found.sum() < got.points.sum()
