"""Plain learners: against naive versions of themselves, and against what they should come to."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiments.learning.baselines import EventRates, MonteCarlo, Moves, TabularTD
from history.vectors import Feature, Place, Scheme
from rl import records
from rl.chart import Chart
from rl.records import Events, Lineages
from rl.values import Hazards, solve

PRICE = Feature("price", "int", edges=(5.0,))
PLACES = (Place("start", 0), Place("a", 0, (PRICE,)), Place("a b", 0))
SCHEME = Scheme(PLACES, window=80, remaining=4, since=(0.0, 0.25))
CHART = Chart(
    SCHEME,
    np.array([0, 1]),
    np.array([1, 2]),
    np.array([0, 1]),
    np.array([False, False]),
    np.array([False, False, True]),
    np.array([True, True, False]),
    ("A", "B"),
)
FIRST, LAST = SCHEME.first[1], SCHEME.first[2]
NO_EVENTS = Events(0, np.zeros(2), 0.0)


def no_tests() -> records.Tests:
    none, nothing = np.zeros(0, np.int64), np.zeros(0)
    return records.Tests(none, none, nothing, nothing, nothing, nothing, none)


def moves(rows: list[tuple[int, int, int, bool]]) -> Moves:
    vertex, after, child, ends = np.array(rows, np.int64).reshape(-1, 4).T
    return Moves(vertex, after, child, ends == 1)


# --- TD(0) ------------------------------------------------------------------------------------------------------

visits = st.integers(int(FIRST), int(LAST) - 1)
row = st.tuples(visits, st.one_of(st.just(-1), visits), st.one_of(st.just(-1), visits), st.booleans())


@given(st.lists(row, max_size=30), st.integers(0, 30))
def test_td_is_the_update_rule_row_by_row(rows, cut):
    """However the rows are cut into observations; a naive version keeps one table of everything."""
    learner = TabularTD(CHART)
    for part in (rows[:cut], rows[cut:]):
        learner.observe(NO_EVENTS, no_tests(), Lineages.none(), moves(part))

    def level(vertex):
        return "level", int(SCHEME.place_of_group[vertex // SCHEME.cells]), vertex % SCHEME.cells // 3

    table, moved = {}, {}

    def read(vertex):
        return (0.0, 0.0) if vertex < 0 else table.get(vertex, table.get(level(vertex), (0.5, 0.5)))

    for vertex, after, child, ends in rows:
        best = np.maximum(read(after), read(child))
        target = max(best[0], ends), best[1] + ends
        own = read(vertex)  # of the level as it was before this row
        for key, old in ((vertex, own), (level(vertex), table.get(level(vertex), (0.5, 0.5)))):
            size = max(0.01, 1 / (10 + moved.get(key, 0)))
            table[key] = tuple(old[n] + size * (target[n] - old[n]) for n in range(2))
            moved[key] = moved.get(key, 0) + 1
    values = learner.values()
    for vertex in range(SCHEME.vertices):
        assert (values.chance[vertex], values.gain[vertex]) == pytest.approx(read(vertex))
    assert (values.cost == 1).all()


def test_td_comes_to_the_chance_of_a_chain_and_follows_it_when_it_changes():
    """From `top` a run goes to `low`, from there a match ends with a chance, else the window closes."""
    dice, learner = np.random.default_rng(5), TabularTD(CHART)
    top, low = int(FIRST) + 9, int(FIRST)
    for chance in (0.3, 0.8):
        rows = []
        for ends in dice.random(2000) < chance:
            rows += [(top, low, -1, False), (low, low, -1, True) if ends else (low, -1, -1, False)]
        learner.observe(NO_EVENTS, no_tests(), Lineages.none(), moves(rows))
        values = learner.values()
        # the spread of a mean with steps of 0.01 is the 0.07th part of that of one row: this is 4 of it
        assert abs(values.chance[low] - chance) < 4 * 0.07 * (chance * (1 - chance)) ** 0.5 + 1e-9
        assert abs(values.chance[top] - chance) < 4 * 0.07 * (chance * (1 - chance)) ** 0.5


def test_td_learns_nothing_from_a_run_that_was_shed():
    """It makes no further move; a mutant that counts it as a failure would say less."""
    honest, mutant = TabularTD(CHART), TabularTD(CHART)
    top, low = int(FIRST) + 9, int(FIRST)
    lives = [(top, low, -1, False), (low, low, -1, True)]
    shed = [(top, low, -1, False)]
    for learner, cut in ((honest, shed), (mutant, [*shed, (low, -1, -1, False)])):
        learner.observe(NO_EVENTS, no_tests(), Lineages.none(), moves((lives + cut) * 300))
    assert honest.values().chance[low] > 0.99
    assert mutant.values().chance[low] < 0.6


# --- Monte Carlo ------------------------------------------------------------------------------------------------


def test_monte_carlo_means_are_shrunk_level_by_level():
    dice = np.random.default_rng(1)
    size = 400
    vertex = dice.choice(np.r_[FIRST : FIRST + 20, LAST + 5], size)
    points = dice.poisson(vertex % 3 / 2)
    fates = Lineages(np.full(size, 90), vertex, points, np.ones(size))
    learner = MonteCarlo(CHART)
    learner.observe(NO_EVENTS, no_tests(), fates)
    group, cell = vertex // SCHEME.cells, vertex % SCHEME.cells
    place, part = SCHEME.place_of_group[group], cell // 3
    values = learner.values()
    for label, found in ((points > 0, values.chance), (points, values.gain)):
        for at in range(SCHEME.vertices):
            its = SCHEME.place_of_group[at // SCHEME.cells]
            mean = 0.5
            for chosen in (
                np.full(size, True),
                place == its,
                (place == its) & (part == at % SCHEME.cells // 3),
                vertex == at,
            ):
                mean = (label[chosen].sum() + 5 * mean) / (chosen.sum() + 5)
            assert found[at] == pytest.approx(mean)


def test_monte_carlo_is_biased_by_what_was_shed_and_forgets():
    ones, at = np.ones(1000), np.full(1000, FIRST)
    shed = np.arange(1000) % 2 == 0
    plain, cut = MonteCarlo(CHART), MonteCarlo(CHART)
    plain.observe(NO_EVENTS, no_tests(), Lineages(at, at, ones.astype(np.int64), ones))
    cut.observe(NO_EVENTS, no_tests(), Lineages(at, at, (~shed).astype(np.int64), ones))
    assert plain.values().chance[FIRST] > 0.99
    assert 0.45 < cut.values().chance[FIRST] < 0.55
    later = at + 20 * 8 * SCHEME.window
    cut.observe(NO_EVENTS, no_tests(), Lineages(later, at, ones.astype(np.int64), ones))
    assert cut.values().chance[FIRST] > 0.99


# --- event rates ------------------------------------------------------------------------------------------------


def test_event_rates_do_not_look_at_what_passed_but_at_rates():
    dice = np.random.default_rng(4)
    size = 3000
    low, high = (np.arange(SCHEME.cells) + FIRST + group * SCHEME.cells for group in range(2))
    vertex = dice.choice(np.r_[low, high], size)
    rate = np.where(vertex < high[0], 0.05, 0.2)
    ones, child = np.ones(size), np.full(size, -1)
    tests = records.Tests(np.ones(size, np.int64), vertex, rate, ones, ones, dice.random(size) < 0.1, child)
    events = Events(100, np.array([3000.0, 1000.0]), 4000.0)
    learner, other = EventRates(CHART), EventRates(CHART)
    learner.observe(events, tests, Lineages.none())
    other.observe(events, replace(tests, passed=ones), Lineages.none())
    values = learner.values()
    assert np.array_equal(values.chance, other.values().chance)
    assert (values.chance[low] < values.chance[high]).all()
    # a quarter of events has the letter, and half of these are taken to pass: the hazard is rate / 8
    hazard = np.repeat([0.0, 0.05 / 8, 0.2 / 8, 0.0], SCHEME.cells)
    exact = solve(CHART, Hazards(hazard, np.zeros(len(hazard)), (np.full((1, 3), 1 / 3), np.ones((3, 1)))))
    assert values.chance[np.r_[low, high]] == pytest.approx(exact.chance[np.r_[low, high]], rel=0.02)


@pytest.mark.parametrize("learner", [TabularTD, MonteCarlo, EventRates])
def test_nothing_seen_gives_values_that_can_be_ranked(learner):
    made = learner(CHART)
    values = made.values()
    for column in (values.gain, values.cost, values.chance):
        assert column.shape == (SCHEME.vertices,)
        assert np.isfinite(column).all()
    assert ((values.chance >= 0) & (values.chance <= 1)).all()
