"""How a set shares its budget: which pairs engines get, what is granted in all, and what more run-steps would find."""

from __future__ import annotations

import math
from dataclasses import replace
from random import Random

import numpy as np
import pyarrow as pa
import pytest

from acep_approx import HistoryGraph, compile_query
from acep_approx.budget import RecallEstimate
from acep_approx.budget.budget import Budget
from acep_approx.budget.ledger import Piece
from acep_approx.budget.set_ledger import PartRecord, SetRecord
from acep_approx.kernels.runs.expected import Asked, Law, Seen, Standing, pick_events
from acep_approx.kernels.runs.pools import NEVER
from acep_approx.kernels.runs.saved import SPAN
from acep_approx.shedding.accounts import Account
from acep_approx.shedding.load import Load
from acep_approx.shedding.purse import MOST_EVENTS, OFTEN, PART, Purse
from acep_approx.shedding.shedder import Shedder
from acep_approx.training.pricing import PricePoint, Prices
from experiments.shedding.set_programs import SharingOtherwise
from tests.cases import cases

pytestmark = pytest.mark.filterwarnings("ignore::acep_approx.errors.FewPointsWarning")
PLACES, VARIABLES, WINDOW = 3, 2, 20
STANDS = Piece(tick=0, events=1000, work=1000, bound=1000, live=0, price=0.0, shed=0, points=0)


@pytest.mark.parametrize("seed", range(cases(200, 6)))
def test_pairs_that_an_engine_does_not_get_are_measured_as_all_are(seed: int) -> None:
    """Such pairs meet no run and begin none. The oracle takes all pairs one by one, as the page on budgets says."""
    dice, keys = Random(seed), 5
    slot = np.sort([dice.randrange(keys) for _ in range(40)]).astype(np.int64)
    tick = np.array([dice.randrange(100) for _ in slot], np.int64)
    for key in range(keys):
        tick[slot == key] = np.sort(tick[slot == key])
    cls = np.array([dice.randrange(3) for _ in slot], np.int64)
    binds = np.array([dice.randrange(2) for _ in range(3 * VARIABLES)], np.int64)
    tests = np.array([dice.randrange(3) for _ in range(3 * PLACES)], np.int64)
    counted = np.array([dice.randrange(2) for _ in range(PLACES * VARIABLES)], np.int64)
    factors, powers = np.array([1.0, 0.5, 0.0]), np.array([dice.choice((1.0, 0.5, 0.7)) for _ in range(PLACES)])
    spans = np.array([dice.randrange(2) for _ in range(keys * SPAN)], np.int64)
    standing = Standing(spans, np.zeros(2 * keys), np.array([WINDOW, 9]), np.full(keys, NEVER))
    seen = Seen(np.full(keys, NEVER), np.zeros(keys * VARIABLES))
    picked, steps = np.zeros(len(slot), np.int64), np.zeros(len(slot) + 1)
    law, asked = Law(factors, powers, counted, tests), Asked(binds, VARIABLES, WINDOW)
    many = pick_events(slot, tick, cls, asked, seen, law, standing, picked, steps)

    counts: dict[int, list[float]] = {}
    last: dict[int, int] = {}
    wanted, worth, others, opened = [], [], 0.0, set()
    for place, (key, now, kind) in enumerate(zip(slot.tolist(), tick.tolist(), cls.tolist(), strict=True)):
        since = now - last.get(key, now)
        left = 1.0 if since == 0 else 0.0 if since > WINDOW else math.exp(-since / (WINDOW + 1))
        counts[key] = [count * left for count in counts.get(key, [0.0] * VARIABLES)]
        last[key], mine = now, 0.0
        for at in range(PLACES):
            product = math.prod(counts[key][v] for v in range(VARIABLES) if counted[at * VARIABLES + v])
            mine += factors[at] * tests[kind * PLACES + at] * product ** powers[at]
        counts[key] = [count + binds[kind * VARIABLES + v] for v, count in enumerate(counts[key])]
        if tests[kind * PLACES] > 0:
            opened.add(key)
        if key in opened or spans[key * SPAN + 1] > 0:
            wanted.append(place)
            worth.append(mine)
        else:
            others += mine
    assert picked[:many].tolist() == wanted
    assert steps[:many] == pytest.approx(worth)
    assert steps[-1] == pytest.approx(others)
    assert set(np.flatnonzero(standing.begun > NEVER).tolist()) == opened


# --- what is granted ----------------------------------------------------------------------------------------------

TWO = (
    "PATTERN SEQ(A a, B b, C c) WHERE a.k = :k AND b.x > a.x AND c.x > b.x - 3 WITHIN 60",
    "PATTERN SEQ(D a, B b, C c) WHERE a.k = :k AND b.x > a.x AND c.x > b.x - 3 WITHIN 60",
)


def of_types(types: str, seed: int, rows: int = 1200) -> pa.Table:
    dice = np.random.default_rng(seed)
    type_ = np.array(list(types))[dice.integers(0, len(types), rows)]
    columns = {"ts": np.arange(rows), "type": type_, "k": dice.integers(0, 2, rows), "x": dice.integers(0, 20, rows)}
    return pa.table(columns)


def test_all_grants_together_are_the_share_of_what_is_stated() -> None:
    """Also where one template has ten times the load of its past, and another one a tenth."""
    desk = SharingOtherwise(output="points")
    for number, text in enumerate(TWO):
        desk.add_many(text, [{"k": n % 2, "n": n} for n in range(20)], id=f"t{number}")
    known = desk.train(of_types("AAAAAAAADBC", 1))
    now = of_types("ADDDDDDDDBC", 2)
    record = desk.match_within(now, "20%", history=known).record()
    stated = 0.2 * (record.full_work or 0.0) * len(now)
    assert record.work <= record.allowed <= 1.05 * stated, (record.work, record.allowed, stated)
    assert record.work >= 0.7 * stated


# --- what more run-steps would find -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def account() -> Account:
    query = compile_query("PATTERN SEQ(A a, B b, C c) WHERE b.x > a.x AND c.x > b.x WITHIN 20")
    events = [{"ts": t, "type": "ABC"[t % 3], "x": t * 7 % 10} for t in range(300)]
    known = HistoryGraph(query).fit(events)
    known.prices_ = Prices((PricePoint(0.0, 1000, 50), PricePoint(2.0, 200, 40), PricePoint(8.0, 50, 20)))
    known.work_ = None
    return Account(Shedder(query.plan, Load(Budget.parse("10%"), known)), size=10.0)


def test_parts_move_more_rarely_the_longer_a_stream_is() -> None:
    """After a sixteenth of the events so far at most, and a purse that goes on elsewhere moves at the same events."""
    purse, moves = Purse(Load(Budget(10.0, "%"))), [0]
    while moves[-1] < 100_000:
        length = purse.snapshot()["due"][0]
        assert length <= min(max(moves[-1] / PART, OFTEN), MOST_EVENTS)
        purse.passed(length - 1)
        other = Purse(purse.load)
        other.restore(purse.snapshot())
        purse = other
        purse.passed(1)
        moves.append(moves[-1] + length)
    assert moves[:6] == [0, 64, 192, 448, 960, 1984]
    assert len(moves) < 60


def test_queries_that_count_for_more_are_served_first(account: Account) -> None:
    """So the first run-steps find more than those of queries that count alike, and the last ones less."""
    alike = [account.marginal(share) for share in (0.003, 0.6)]
    account.weigh(np.array([1.0] * 9 + [91.0]))  # ten times as much in the mean
    first, last = (account.marginal(share) / account.weight for share in (0.003, 0.6))
    account.weigh(np.ones(1))
    assert first > 2 * alike[0]
    assert last < alike[1]
    assert [account.marginal(share) for share in (0.003, 0.6)] == alike
    prices = account.shedder.load.history.prices_  # type: ignore[union-attr]
    assert alike == pytest.approx([prices.marginal(share) for share in (0.003, 0.6)], rel=0.1)


def test_what_an_engine_found_is_held_against_what_its_past_expects(account: Account) -> None:
    """Of 10,000 run-steps of the exact run 10% were done: the past leads to expect 267 match points of these."""
    pieces, nothing = account.shedder.metrics.pieces, account.marginal(0.1)

    def with_found(points: int) -> float:
        pieces[:] = [replace(STANDS, points=points)]
        found = account.marginal(0.1)
        pieces.clear()
        return found

    assert with_found(267) == pytest.approx(nothing, rel=0.05)
    assert with_found(600) == pytest.approx(608 / 275 * nothing, rel=0.05)
    assert with_found(2670) == pytest.approx(10 * nothing, rel=0.05)  # the past is of no use
    assert nothing / 2 < with_found(100) < nothing  # bursts
    assert with_found(0) == pytest.approx(nothing / 4, rel=0.05)


def test_recall_of_a_set_lies_between_nothing_and_something_where_that_of_a_part_may_be_nothing() -> None:
    of = [RecallEstimate(None, low, high, 9, 3) for low, high in ((0.0, 0.5), (0.25, 1.0))]
    piece = replace(STANDS, points=50, shed=9)
    parts = [PartRecord(str(number), 1.0, piece, recall=one) for number, one in enumerate(of)]
    recall, low, high = SetRecord("10%", "history", 0, pieces=[STANDS], parts=parts).recall
    assert (recall, low) == (None, 0.0)
    assert high == pytest.approx(100 / (50 / 0.5 + 50 / 1.0))
