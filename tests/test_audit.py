"""The recall estimate: the cohort audits every match point with the same chance, and the interval holds the truth."""

from __future__ import annotations

from collections import defaultdict
from math import comb

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from acep_approx.budget.audit import AuditCells, AuditSample

POINTS = st.lists(st.tuples(st.integers(0, 5), st.booleans()), max_size=12)


def sample(points: list[tuple[int, bool]], outside: int = 0) -> AuditSample:
    return AuditSample.of(np.array([c for c, _ in points], np.int64), np.array([f for _, f in points], bool), outside)


def as_lists(one: AuditSample) -> tuple[list[int], list[int], list[int], int]:
    return one.cells.tolist(), one.found.tolist(), one.points.tolist(), one.outside


# --- the cohort -------------------------------------------------------------------------------------------


@given(st.integers(0, 2**40), st.integers(-(2**40), 2**40), st.integers(0, 50), st.integers(0, 5), st.integers(0, 9))
def test_every_run_that_may_reach_an_audited_point_is_protected(key, tick, window, longer, seed):
    cohort = AuditCells(0.5, max(1, window + longer), window, seed)
    starts = np.arange(tick - window, tick + 1)
    if cohort.cells(np.array([key]), np.array([tick]))[0] >= 0:
        assert cohort.protects(np.full(len(starts), key), starts).all()


def test_no_run_is_protected_that_can_reach_no_audited_point():
    cohort = AuditCells(0.1, 40, 25, seed=3)
    starts = np.arange(20_000)
    keys = np.zeros_like(starts)
    audited = cohort.cells(keys, np.arange(20_000 + 25 + 1)[: len(starts)]) >= 0
    later = cohort.cells(np.zeros(25, np.int64), np.arange(20_000, 20_025)) >= 0
    audited = np.concatenate([audited, later])
    reaches = np.array([audited[start : start + 26].any() for start in starts[:-1]])
    np.testing.assert_array_equal(cohort.protects(keys, starts)[:-1], reaches)


@given(st.integers(0, 2**20), st.integers(1, 60), st.integers(1, 400), st.integers(0, 50), st.integers(0, 9))
def test_events_in_cells_and_before_them_are_found_however_many_cells_there_are(dice, keys, events, window, seed):
    """Few cells are asked each once, many by event: the same comes out."""
    rng = np.random.default_rng(dice)
    cells = AuditCells(0.3, window + 5, window, seed)
    slots, ticks = rng.integers(0, keys, events), np.sort(rng.integers(-200, 2000, events))
    is_now, is_ahead = cells.now_or_ahead(slots, ticks)
    assert is_now.tolist() == (cells.cells(slots, ticks) >= 0).tolist()
    assert is_ahead.tolist() == (cells.cells(slots, ticks + window) >= 0).tolist()
    assert cells.protects(slots[:0], ticks[:0]).tolist() == []


def test_the_share_is_that_of_the_points_and_neighbours_are_independent():
    """Over keys, over epochs, and for pairs of neighbours; five standard deviations."""
    share, epochs, keys = 0.05, 400, 400
    ticks = np.arange(epochs) * 10 - 1000
    grid = np.stack([AuditCells(share, 10, 10).cells(np.full(epochs, key), ticks) >= 0 for key in range(keys)])
    for chosen, expected in (
        (grid, share),
        (grid[:, 1:] & grid[:, :-1], share**2),
        (grid[1:] & grid[:-1], share**2),
    ):
        assert abs(chosen.mean() - expected) < 5 * np.sqrt(expected * (1 - expected) / chosen.size)
    other = AuditCells(share, 10, 10, seed=1).cells(np.zeros(epochs, np.int64), ticks) >= 0
    assert (other != grid[0]).any()


def test_cells_are_one_for_each_key_and_epoch():
    keys, ticks = np.repeat(np.arange(30), 100), np.tile(np.arange(-50, 50), 30)
    cells = AuditCells(1.0, 7, 5).cells(keys, ticks)
    ids = defaultdict(set)
    for key, tick, cell in zip(keys.tolist(), ticks.tolist(), cells.tolist(), strict=True):
        ids[key, tick // 7].add(cell)
    assert {len(found) for found in ids.values()} == {1}
    assert len(set().union(*ids.values())) == len(ids)
    assert (AuditCells(0.0, 7, 5).cells(keys, ticks) == -1).all()


@pytest.mark.parametrize(("share", "epoch", "window"), [(-0.1, 5, 5), (1.5, 5, 5), (0.1, 4, 5), (0.1, 0, 0)])
def test_a_cohort_that_makes_no_sense_is_refused(share, epoch, window):
    with pytest.raises(ValueError, match=r"share|shorter"):
        AuditCells(share, epoch, window)


# --- samples ----------------------------------------------------------------------------------------------


@given(POINTS, POINTS, POINTS, st.integers(0, 9))
def test_samples_combine_in_any_order(a, b, c, outside):
    one, two, three = sample(a, outside), sample(b, 1), sample(c)
    whole = as_lists(sample(a + b + c, outside + 1))
    assert as_lists(one.combine(two).combine(three)) == whole
    assert as_lists(one.combine(two.combine(three))) == whole
    assert as_lists(three.combine(two).combine(one)) == whole


@given(POINTS)
def test_sums_are_those_of_a_dictionary(points):
    sums = defaultdict(lambda: [0, 0])
    for cell, found in points:
        sums[cell][0] += found
        sums[cell][1] += 1
    got = sample(points)
    assert {c: [f, n] for c, f, n in zip(*as_lists(got)[:3], strict=True)} == dict(sums)


def test_without_audited_points_it_says_so():
    estimate = sample([], outside=40).estimate()
    assert (estimate.recall, estimate.low, estimate.high, estimate.total) == (None, None, None, None)
    assert "no match point" in estimate.reason
    assert estimate.outside == 40


def test_one_cell_tells_nothing_about_the_others():
    estimate = sample([(3, True)] * 50).estimate()
    assert (estimate.recall, estimate.low, estimate.high) == (None, None, None)
    assert "all in one cell" in estimate.reason


def test_below_thirty_points_there_is_an_interval_and_no_estimate():
    few, enough = (sample([(c, c % 3 > 0) for c in range(points)], outside=90) for points in (29, 30))
    estimate = few.estimate()
    assert (estimate.recall, estimate.total) == (None, None)
    assert "29 match points audited, too few" in estimate.reason
    assert 0 < estimate.low < 2 / 3 < estimate.high < 1
    least, most = estimate.totals
    assert least < 29 + 90 / (2 / 3) < most
    assert enough.estimate().recall == pytest.approx(2 / 3)
    assert enough.estimate().total == 165


@given(POINTS.filter(bool))
def test_the_interval_holds_the_estimate_and_grows_with_its_level(points):
    wide, narrow = sample(points).estimate(0.99), sample(points).estimate(0.8)
    if narrow.low is None:
        return
    share = sum(f for _, f in points) / len(points)
    assert 0 <= wide.low <= narrow.low <= share <= narrow.high <= wide.high <= 1
    assert narrow.recall in (None, share)


def test_points_that_share_their_fate_count_as_one():
    """Half of the cells found, half lost: as sure as with one point a cell, not as with twenty."""
    alone = sample([(c, c % 2 == 0) for c in range(40)]).estimate()
    together = sample([(c, c % 2 == 0) for c in range(40) for _ in range(20)]).estimate()
    mixed = sample([(c, i % 2 == 0) for c in range(40) for i in range(20)]).estimate()
    assert together.high - together.low == pytest.approx(alone.high - alone.low, abs=0.01)
    assert mixed.high - mixed.low < 0.3 * (alone.high - alone.low)


def test_independent_points_give_the_exact_interval():
    """One point a cell, many cells: at its ends 900 of 1,000, or more, or fewer, has a chance of 2.5%."""
    estimate = sample([(c, c % 10 > 0) for c in range(1000)]).estimate()
    from scipy.stats import binom  # takes a second

    assert binom.sf(899, 1000, estimate.low) == pytest.approx(0.025, abs=1e-3)
    assert binom.cdf(900, 1000, estimate.high) == pytest.approx(0.025, abs=1e-3)


def test_one_lost_point_of_few_leaves_room_for_nearly_all():
    """One of 107 is lost, and eleven were audited: nine seeds in a hundred see it, and must not rule out 106 of 107."""
    estimate = sample([(c, c > 0) for c in range(11)]).estimate()
    assert estimate.high > 106 / 107


# --- simulated worlds -------------------------------------------------------------------------------------


def simulate(worlds: int, cells: int, recall: float, likeness: float, spread: float) -> tuple[int, int, list[float]]:
    """How many intervals of the nominal 95% there were, how many held the truth, and the errors of the estimates.

    A world has cells of random size, whose points are found with a chance that differs from cell to cell
    (``likeness`` is the correlation of two points of a cell); a cohort audits some of them.
    """
    rng = np.random.default_rng(5)
    held, errors = [], []
    for world in range(worlds):
        sizes = rng.poisson(3 * rng.gamma(1 / spread, spread, cells))
        beta = 1 / likeness - 1
        found = rng.binomial(sizes, rng.beta(recall * beta, (1 - recall) * beta, cells))
        ids = AuditCells(0.05, 10, 10, seed=world).cells(np.arange(cells), np.zeros(cells, np.int64))
        chosen = (ids >= 0) & (sizes > 0)
        estimate = AuditSample(np.sort(ids[chosen]), found[chosen], sizes[chosen]).estimate()
        if estimate.low is None:
            continue
        truth = found.sum() / sizes.sum()
        held.append(estimate.low <= truth <= estimate.high)
        if estimate.recall is not None:
            errors.append(estimate.recall - truth)
    assert len(held) > 0.4 * worlds
    return len(held), sum(held), errors


def refutes(level: float, number: int, held: int) -> bool:
    """Whether so few of ``number`` intervals hold the truth that their level cannot be true: 1 in 10,000 by chance."""
    return sum(comb(number, k) * level**k * (1 - level) ** (number - k) for k in range(held + 1)) < 1e-4


@pytest.mark.parametrize("cells", [60, 200, 500, 2000])
@pytest.mark.parametrize("recall", [0.05, 0.3, 0.95, 0.99])
@pytest.mark.parametrize(("likeness", "spread"), [(0.01, 0.1), (0.3, 1.0), (0.6, 3.0)])
def test_the_interval_holds_at_its_level_and_the_estimate_is_unbiased(cells, recall, likeness, spread):
    """Also where cells are few, of very different sizes, and their points share their fate."""
    number, held, errors = simulate(300, cells, recall, likeness, spread)
    assert not refutes(0.95, number, held), (number, held)
    if cells == 2000:
        assert abs(np.mean(errors)) < 4 * np.std(errors) / np.sqrt(len(errors))


def test_intervals_that_are_too_narrow_are_noticed():
    """88 of 100 is what the interval of Wilson with the design effect alone gave in some of these worlds."""
    assert refutes(0.95, 300, 264)
    assert not refutes(0.95, 300, 276)


def test_points_with_many_starts_are_audited_no_more_often_than_others():
    """What a cohort of starts gets wrong: half of the points have starts in two epochs, and only those are found."""
    rng = np.random.default_rng(2)
    ticks = rng.integers(0, 2_000_000, 60_000)
    found = ticks % 100 < 50  # early in their epoch, so that starts of the epoch before lead there too
    cells = AuditCells(0.05, 100, 50).cells(np.zeros(len(ticks), np.int64), ticks)
    estimate = AuditSample.of(cells[cells >= 0], found[cells >= 0], int(found[cells < 0].sum())).estimate()
    assert estimate.low <= 0.5 <= estimate.high
    assert estimate.high - estimate.low < 0.05
    true_total = (cells >= 0).sum() + (cells < 0).sum()
    assert abs(estimate.total / true_total - 1) < 0.05
