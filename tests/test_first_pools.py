"""The pools of first places that are kept beside a run that sheds are those of the exact run; what comes of them."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from acep_approx import compile_query
from acep_approx.api.matcher import Matcher
from acep_approx.arrays import Ints
from acep_approx.engines.batches import RunEvents
from acep_approx.engines.runs.expected_work import Correction, Done, ExpectedWork, block_after
from acep_approx.engines.runs.first_pools import FirstPools
from acep_approx.engines.runs.lineage import Hits
from acep_approx.engines.runs.load_shedder import FixedLoad
from acep_approx.engines.runs.runs import Runs
from acep_approx.engines.runs.shedding import Shedding
from acep_approx.engines.runs.tables import RunTables
from acep_approx.engines.runs.worth import Allowance
from acep_approx.training.pricing import LISTED, POINTED
from tests.cases import cases

QUERIES = {
    "PATTERN SEQ(A a, B b, C c) WHERE b.x > a.x AND c.x > b.x WITHIN 20": 1,
    "PATTERN SEQ(A a, B b, C c) WHERE [k] AND b.x > a.x AND c.x + a.x > b.x WITHIN 30": 1,
    "PATTERN SEQ(A a, A b, A c) WHERE b.x > a.x AND c.x > b.x WITHIN 12": 1,
    "PATTERN SEQ(A a, B b) WHERE b.t <> a.t AND b.x <> a.x WITHIN 20": 1,
    "PATTERN SEQ(A a, B+ b[], C c) WHERE sum(b[].x) > a.x + c.x WITHIN 9": 1,
    "PATTERN SEQ(A a, ~(B n), C c) WHERE n.x > a.x AND c.x <> a.x WITHIN 15": 1,
    "PATTERN SEQ(A a, B b, C c) WHERE [k] AND b.x > a.x AND c.x > a.x WITHIN 12 EVENTS": 1,
    "PATTERN SEQ(A+ a[], B b) WHERE sum(a[].x) > b.x WITHIN 6": 0,
    "PATTERN SEQ(A a, B b) WHERE a.x = b.x WITHIN 20": 0,
}
"""Queries, and how many first places they have at least: none where runs come back there, or an index finds them."""


class Beside(FixedLoad):
    """Sheds nothing, and looks at all that events would be tested with."""

    def __init__(self) -> None:
        super().__init__(Shedding(None, Allowance()))
        self.bind = self._bind
        self.pools: FirstPools
        self._tables: RunTables
        self.seen: Ints

    def _bind(self, tables: RunTables) -> None:
        self.arena.bind(tables)
        self._tables, self.pools = tables, FirstPools(tables)
        self.seen = np.zeros(len(tables.pools), np.int64)

    def note_hits(self, events: RunEvents, hits: Hits) -> None:
        """Look at these events."""
        at, runs = self.pools.look(events, np.ones(len(events.row)))
        places = range(len(self._tables.pools))
        tests = [[self._tables.tested(mask).count(place) for place in places] for mask in self._tables.classes]
        self.seen += (runs * np.array(tests)[events.cls[at]]).sum(axis=0)


def stream(seed: int, events: int = 160) -> list[dict[str, Any]]:
    """Events, some at the same time."""
    dice, now, found = random.Random(seed), 0, []
    for _ in range(events):
        now += dice.choice([0, 1, 1, 2, 9 if dice.random() < 0.1 else 1])
        row = {"ts": now, "type": dice.choice("ABCD"), "k": dice.randrange(3), "x": dice.randrange(9)}
        found.append({**row, "t": dice.choice(["red", "green", "blue"])})
    return found


@pytest.mark.parametrize("seed", range(cases(200, 4)))
@pytest.mark.parametrize("merge", [LISTED, POINTED])
@pytest.mark.parametrize("text", QUERIES)
def test_first_pools_are_those_of_the_exact_run(text: str, merge: str, seed: int) -> None:
    """What is seen beside is as much as the run tests, however the stream is cut."""
    beside, dice = Beside(), random.Random(seed)
    matcher = Matcher(compile_query(text, engine="runs").plan, output="points", merge=merge, shedding=beside)
    rows = stream(seed)
    while rows:
        size = dice.randrange(1, 40)
        matcher.push(rows[:size])
        rows = rows[size:]
    assert matcher.pipeline is not None
    engine, places = matcher.pipeline.engine, list(beside.pools.places)
    assert isinstance(engine, Runs)
    assert len(places) == QUERIES[text]
    assert beside.seen[places].tolist() == engine.tested[places].tolist()
    assert engine.tested[places].all()
    assert not beside.pools.engine.tested.any(), "it takes no run-step"


def corrected(off: float, events: int) -> tuple[float, float]:
    """What a law of one place is stated to be in all, and in the last block, as shares of what is: it is off."""
    dice, correction = np.random.default_rng(1), Correction(2, (1,), 10.0)
    stated, work, now, done = 0.0, 0.0, 0.0, 0
    while done < events:
        law = [np.zeros(block_after(done)), dice.gamma(2.0, 5.0, block_after(done))]
        true = np.rint(law[1] * off)
        correction.tell(law)
        at = np.flatnonzero(dice.random(len(true)) < correction.chances(law))
        seen = np.stack([np.zeros(len(at)), true[at]], axis=1).astype(np.int64)
        correction.look(seen, [some[at] for some in law])
        now = float((correction.rates[1] * law[1]).sum() / true.sum())
        stated += float((correction.rates[1] * law[1]).sum())
        work += float(true.sum())
        done += len(true)
        correction.end_block(done)
    return stated / work, now


@pytest.mark.parametrize("off", [0.3, 0.8, 1.0, 1.3, 3.0])
def test_a_law_that_is_off_is_corrected_and_made_up_for(off: float) -> None:
    """In the end, and over the whole."""
    stated, now = corrected(off, 60_000)
    assert stated == pytest.approx(1, abs=0.08)
    assert now == pytest.approx(1, abs=0.1)


def stated_by(law: float, blocks: int, whole: range, within: float | None = 1.0) -> float:
    """What a law of so many run-steps per event comes to in the last block, where an event takes one.

    ``whole``: the blocks in which the run has missed nothing; ``within``: what it did then in the past, as a share of
    the exact run, if that is known.
    """
    correction, events, now = Correction(2, (), 10.0, () if within is None else (1.0, within)), 0, 0.0
    for number in range(blocks):
        size = block_after(events)
        correction.tell([np.zeros(size), np.full(size, law)])
        now, events = law * float(correction.rates[1]), events + size
        correction.end_block(events, round((within or 1) * size) if number in whole else None)
    return now


@pytest.mark.parametrize("within", [0.04, 1.0, 2.0])
@pytest.mark.parametrize("law", [0.2, 1.0, 5.0, 100.0])
def test_a_run_that_misses_nothing_says_what_is_to_be_done(law: float, within: float) -> None:
    """It does as much of what the exact run does as it did in the past, when it missed nothing."""
    assert stated_by(law, 100, range(100), within) == pytest.approx(1, rel=0.3)


@pytest.mark.parametrize(("whole", "within"), [(range(0), 1.0), (range(8), 1.0), (range(20), None)])
def test_other_blocks_tell_nothing(whole: range, within: float | None) -> None:
    """Where nothing is missed there is less to do than elsewhere, as a rule; and an old history knows no share."""
    assert 100 * 0.45 < stated_by(100.0, 20, whole, within) <= 100 * 1.25


def test_nothing_was_missed() -> None:
    """A run was shed a window ago, and none in this block; a test that is left out loses what comes of it, too."""
    begun = Done(steps=10, tick=1000, gone=20, lost=700)
    now = begun._replace(tick=1100)
    assert now.missed_nothing(begun, 200)
    assert not now.missed_nothing(begun, 300)
    assert not now._replace(gone=21).missed_nothing(begun, 200)
    assert now.since(begun) == now
    assert not now.since(begun._replace(gone=19)).missed_nothing(now.since(begun._replace(gone=19)), 200)


@pytest.mark.parametrize("events", [0, 1, 63, 64, 1000, 1024, 5000, 8191, 123_456])
def test_blocks_end_at_the_same_events_however_they_come(events: int) -> None:
    """The next end is found from wherever one stands, and is one."""
    end = events + ExpectedWork.most_events(events)
    assert end % block_after(end) == 0
    assert all(between + ExpectedWork.most_events(between) == end for between in range(events, end))
