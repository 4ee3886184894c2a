"""The synthetic worlds of the learners: runs, fates and true values, against plain loops over single events."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from experiments.learning.keys import BURST, KEYS, KINDS, LATE, PLACES, WINDOW, World, chart, world
from experiments.learning.lanes import HELD, NODES, Lane, Lanes, Seen, full, vertices
from experiments.learning.world import (
    BASELINES,
    BUDGETS,
    EXPLORED,
    HALVED,
    LEARNERS,
    OURS,
    REFERENCES,
    TRUE,
    Result,
    main,
    run,
    true_values,
    verdicts,
)

CHART = chart()
CODES = vertices(CHART)


def shown(lanes: list[Lane], values: np.ndarray) -> tuple[Lanes, list[list[Seen]]]:
    """All slots of some lanes, and what was seen after each window."""
    done = Lanes(lanes, CHART, CODES, values, is_shown=True)
    seen = []
    for slot in range(lanes[0].world.slots):
        done.step(slot)
        if (slot + 1) % WINDOW == 0:
            seen.append(done.seen(slot))
    return done, seen


def by_depth(lanes: int) -> np.ndarray:
    """Values that rank runs by how far on they are, then by key."""
    group = np.arange(CHART.scheme.vertices) // CHART.scheme.cells
    return np.repeat((CHART.scheme.place_of_group[group] + group / 1000.0)[None], lanes, axis=0)


def passing(stream: World, key: int, slot: int) -> int:
    """Which letter passes at a slot, where all runs pass alike; -1 if none."""
    letter, half = int(stream.letter[slot, key]), int(slot >= stream.slots // 2)
    if letter > 0 and stream.dice[slot, key] >= stream.passing[half, letter - 1, key]:
        return -1
    return letter


def reached(stream: World, key: int, start: int) -> list[int]:
    """Slots of the match points that a run which begins at a slot leads to: brute force over chains of events."""
    slots = range(start + 1, min(start + WINDOW, stream.slots - 1) + 1)
    letters = {slot: passing(stream, key, slot) for slot in slots}
    at = {letter: [slot for slot in slots if letters[slot] == letter] for letter in (1, 2, 3)}
    return [d for d in at[3] if any(b < c < d for b, c in product(at[1], at[2]))]


# --- runs -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["rates", "conditions"])
def test_without_a_budget_all_match_points_are_found_and_all_fates_are_true(kind: str) -> None:
    """One run for each key and place is as good as all of them: against every run by itself."""
    stream = world(kind, 3, 6 * WINDOW, drifts=True)
    done, seen = shown([Lane(stream, NODES, 0.3, seed=1)], by_depth(1))
    points, fates = set(), {}
    for key, start in product(range(KEYS), range(stream.slots)):
        if stream.letter[start, key] == 0:
            found = reached(stream, key, start)
            points |= {(key, slot) for slot in found}
            fates[key, start] = len(found)
    halves = [sum((slot >= stream.slots // 2) == half for _, slot in points) for half in (False, True)]
    assert done.found[0].tolist() == halves
    assert min(halves) > 10
    told = 0
    for (part,) in seen:
        every = part.everything
        group, cell = np.divmod(every.vertex, CHART.scheme.cells)
        begins = (CHART.scheme.place_of_group[group] == 1) & (cell == CODES.cell[WINDOW, 0])
        for tick, key, reach in zip(every.tick[begins], group[begins] - 1, every.points[begins], strict=True):
            assert fates[int(key), int(tick)] == reach
            told += 1
    assert told == sum(start <= stream.slots - WINDOW - 1 for _, start in fates)


def test_a_budget_is_kept_and_only_loses_match_points() -> None:
    stream = world("conditions", 1, 8 * WINDOW, drifts=False)
    budgets = (0, 1, 5, 20, 60, NODES)
    done = Lanes([Lane(stream, budget) for budget in budgets], CHART, CODES, by_depth(6), is_shown=False)
    before = np.zeros(6)
    for slot in range(stream.slots):
        done.step(slot)
        assert (done.live - before <= np.maximum(budgets, 1)).all()
        before = done.live.copy()
    found = done.found.sum(axis=1)
    assert (found <= found[-1]).all()
    assert 0 < found[2] < found[-1]
    assert found[4] > found[2]


def test_the_cohort_is_spared_and_its_fates_are_those_without_a_budget() -> None:
    """Also where the budget has room for two runs only; what is shed besides has worse fates than it had."""
    stream = world("rates", 2, 8 * WINDOW, drifts=False)
    worthless = np.zeros((1, CHART.scheme.vertices))
    _, seen = shown([Lane(stream, 2, 0.2, seed=5)], worthless)
    spared, shed, all_cut = 0, 0, 0
    for (part,) in seen:
        assert (part.cohort.weight == 5).all()
        rows = set(zip(part.cohort.tick.tolist(), part.cohort.vertex.tolist(), strict=True))
        for tick, vertex, points in zip(
            part.everything.tick.tolist(), part.everything.vertex.tolist(), part.everything.points.tolist(), strict=True
        ):
            group, cell = divmod(vertex, CHART.scheme.cells)
            if CHART.scheme.place_of_group[group] != 1 or cell != CODES.cell[WINDOW, 0]:
                continue
            truth = len(reached(stream, group - 1, tick))
            if (tick, vertex) in rows:
                assert points == truth
                spared += truth
            else:
                assert points <= truth
                shed, all_cut = shed + truth, all_cut + truth - points
    assert spared > 20
    assert all_cut > 0.5 * shed > 0


@pytest.mark.parametrize("budget", [8, NODES])
def test_fates_of_all_visits_are_what_a_walk_forward_finds(budget: int) -> None:
    """From event to event, until what stands at a place has been shed; what takes a run's place goes on for it."""
    stream = world("rates", 6, 7 * WINDOW, drifts=False)
    done = Lanes([Lane(stream, budget)], CHART, CODES, by_depth(1), is_shown=True)
    begun, kept, every = [], [], []
    for slot in range(stream.slots):
        done.step(slot)
        begun.append(done._stood[slot % HELD, 0, 0].copy())
        kept.append(done._start[0] >= 0)
        if (slot + 1) % WINDOW == 0:
            every.append(done.seen(slot)[0].everything)

    def walk(place: int, key: int, slot: int, end: int) -> set[int]:
        found: set[int] = set()
        while kept[slot][place, key] and slot < end:
            slot += 1
            if passing(stream, key, slot) == place + 1:
                found |= {slot} if place == PLACES - 1 else walk(place + 1, key, slot, end)
        return found

    rows, led = 0, 0
    for fates in every:
        columns = (fates.tick.tolist(), fates.vertex.tolist(), fates.points.tolist())
        for tick, vertex, points in zip(*columns, strict=True):
            group = vertex // CHART.scheme.cells
            place = int(CHART.scheme.place_of_group[group]) - 1
            key = (group - 1) % (KEYS + 1)
            assert points == len(walk(place, key, tick, int(begun[tick][place, key]) + WINDOW))
            rows, led = rows + 1, led + (points > 0)
    assert 100 < led < rows


def test_what_is_seen_tells_of_the_world() -> None:
    """Shares of tests that pass, the mean interval of events, and children of the same key."""
    stream = world("bursts", 4, 40 * WINDOW, drifts=False)
    _, seen = shown([Lane(stream, NODES)], by_depth(1))
    tests, names = [part.tests for (part,) in seen], ("step", "vertex", "rate", "passed", "child")
    step, vertex, pace, passed, child = (np.concatenate([getattr(part, name) for part in tests]) for name in names)
    group = vertex // CHART.scheme.cells
    place, key = CHART.scheme.place_of_group[group], (group - 1) % (KEYS + 1)
    assert (place == step).all()
    goes_on = (passed > 0) & (step < PLACES)
    assert (child[goes_on] == group[goes_on] + KEYS + 1).all()
    assert (child[~goes_on] == -1).all()
    age = vertex % (len(CHART.scheme.since) + 1)
    for bucket, share in ((1, 1.0), (3, LATE)):  # one slot; more than seven
        here = age == bucket
        expected = share * stream.passing[0][place - 1, key][here].sum()
        assert abs(passed[here].sum() - expected) < 4 * expected**0.5
    for number in range(0, KEYS, 7):
        mean = 1 / np.mean(1 / pace[key == number])
        assert mean == pytest.approx(stream.rate[0, number], rel=0.15)


def test_moves_follow_runs() -> None:
    """A run leaves each vertex that it entered, later or never to be back, and matches are those that were found."""
    stream = world("rates", 7, 6 * WINDOW, drifts=False)
    done, seen = shown([Lane(stream, NODES)], by_depth(1))
    vertex, after, child, ends = (
        np.concatenate([getattr(part.moves, name) for (part,) in seen]) for name in ("vertex", "after", "child", "ends")
    )
    assert ends.sum() == done.found.sum() > 0
    cells, ages = CHART.scheme.cells, len(CHART.scheme.since) + 1
    goes_on, born = after >= 0, child >= 0
    assert (after[goes_on] // cells == vertex[goes_on] // cells).all()
    before, now = (np.divmod(column % cells, ages) for column in (vertex[goes_on], after[goes_on]))
    assert (now[0] <= before[0]).all()
    assert (now[1] >= before[1]).all()
    assert (vertex[~goes_on] % cells // ages == 0).all()  # the window closes in its last part only
    assert (child[born] // cells == vertex[born] // cells + KEYS + 1).all()
    assert (child[born] % cells // ages == vertex[born] % cells // ages).all()
    assert (child[born] % ages == 0).all()
    assert not (born & ends).any()


# --- true values ------------------------------------------------------------------------------------------------


def test_true_values_are_those_of_a_plain_recursion() -> None:
    """Over what happens in the next slot, for one run, its child, and the time since its last event."""
    stream = world("bursts", 2, 2, drifts=True)
    for half in range(2):
        chance, gain = stream.true_values(half)
        for key in (0, 17):

            def worth(place: int, left: int, since: int, half: int = half, key: int = key) -> tuple[float, float]:
                if left == 0:
                    return 0.0, 0.0
                late = stream.late if since + 1 > BURST else 1.0
                hazard = stream.rate[half, key] / 4 * stream.passing[half, place, key] * late
                stays = worth(place, left - 1, since + 1)
                if place == PLACES - 1:
                    passes = 1.0, 1 + stays[1]
                else:
                    child = worth(place + 1, left - 1, 0)
                    passes = max(stays[0], child[0]), max(stays[1], child[1])
                return tuple(hazard * passes[n] + (1 - hazard) * stays[n] for n in range(2))

            for place, since, left in product(range(PLACES), range(BURST + 2), (1, 2, 7)):
                found = chance[place, key, left, since], gain[place, key, left, since]
                assert found == pytest.approx(worth(place, left, since))


@pytest.mark.parametrize("rank", ["chance", "gain"])
def test_the_second_reference_halves_the_chances_to_pass(rank: str) -> None:
    """So what is worth half as much where one event decides, and a quarter where it takes two of them in a row."""
    shape = (PLACES, KEYS, WINDOW + 1, BURST + 2)
    stream = world("conditions", 3, 2, drifts=True)
    for half in range(2):
        tables = [true_values(stream, half, rank, REFERENCES[name]).reshape(shape) for name in (TRUE, HALVED)]
        np.testing.assert_allclose(tables[1][2, :, 1], tables[0][2, :, 1] / 2)
        np.testing.assert_allclose(tables[1][1, :, 2], tables[0][1, :, 2] / 4)
        assert (tables[0][1, :, 2] > 0).all()


@pytest.mark.parametrize("kind", ["rates", "conditions"])
def test_true_values_are_what_runs_lead_to(kind: str) -> None:
    """Of all births of a run without a budget: the sum of chances and gains, within 5 per cent of what came."""
    stream = world(kind, 5, 80 * WINDOW, drifts=False)
    _, seen = shown([Lane(stream, NODES)], by_depth(1))
    chance, gain = (table.ravel() for table in stream.true_values(0))
    born, labels = [], []
    for (part,) in seen:
        every = part.everything
        group, cell = np.divmod(every.vertex, CHART.scheme.cells)
        begins = (CHART.scheme.place_of_group[group] == 1) & (cell == CODES.cell[WINDOW, 0])
        born.append(full().first[0, group[begins] - 1] + full().cell[WINDOW, 0])
        labels.append(every.points[begins])
    points, at = np.concatenate(labels), np.concatenate(born)
    assert (points > 0).sum() == pytest.approx(chance[at].sum(), rel=0.05)
    assert points.sum() == pytest.approx(gain[at].sum(), rel=0.05)


def test_the_true_values_find_more_than_depth_and_change_with_the_world() -> None:
    worlds = [world("conditions", seed, 20 * WINDOW, drifts=True) for seed in range(3)]
    lanes = [Lane(stream, 12) for stream in worlds]
    best = run(lanes, TRUE, "chance").found
    plain = Lanes(lanes, CHART, CODES, by_depth(3), is_shown=False)
    for slot in range(20 * WINDOW):
        plain.step(slot)
    assert (best.sum(axis=0) > 1.5 * plain.found.sum(axis=0)).all()


# --- the table --------------------------------------------------------------------------------------------------


def test_quick_prints_tables_and_verdicts(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--quick"]) in (0, 1)
    printed = capsys.readouterr().out
    for kind, what in product(KINDS, ("stationary", "drift")):
        assert f"{kind}, {what}" in printed
    for learner in (*REFERENCES, *LEARNERS):
        rows = [line for line in printed.splitlines() if line.startswith("│") and line.split("│")[1].strip() == learner]
        assert len(rows) == 2 * len(KINDS)
    assert f"{OURS} less the best baseline" in printed
    assert EXPLORED == 0.05


def test_verdicts_say_where_ours_is_worst_and_who_locked_in() -> None:
    recalls = {OURS: [0.5, 0.5], "factored": [0.9, 0.9], "TD(0)": [0.9, 0.1], "Monte Carlo": [0.2, 0.2]}
    recalls["event rates"] = [0.51, 0.51]
    found = [
        Result("rates", False, learner, BUDGETS[0], seed, recall)
        for learner, some in recalls.items()
        for seed, recall in enumerate(some)
    ]
    (close, words), (free, _), (_, others) = verdicts(found)
    assert close
    assert free
    assert "-0.010" in words
    assert "event rates" in words
    assert "TD(0) 1" in others
    worse = [replace(each, recall=each.seed * 0.6) if each.learner == OURS else each for each in found]
    (close, _), (free, ours), _ = verdicts(worse)
    assert not close
    assert not free
    assert f"{OURS}: 1 seeds" in ours
    assert set(BASELINES) < set(LEARNERS)
