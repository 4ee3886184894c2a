"""Learn while the stream runs: what the shedder sees goes to ``rl.Updater``, and what it finds goes back as worth.

The learner decides how much is looked at, when runs are revalued, and when it is asked anew what tells them apart;
all of it by counting events, tests and run-steps, so that the same stream is always answered in the same way.

Source: ours, a reconstruction of what Li and Ge, PVLDB 2016, name in section 5 (docs/paper.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np
import numpy.typing as npt

from acep_approx.engines.runs.tables import RunTables
from acep_approx.engines.runs.worth import Worth
from acep_approx.events.keys import KeyCodes
from acep_approx.learning.features import bare_scheme, telling_scheme
from acep_approx.learning.rows import Rows
from acep_approx.learning.sampling import Reader
from acep_approx.training.policies import OVERLAP, raised, worth_of
from history.bundles import of_trace
from history.trace import Trace
from history.vectors import Scheme
from rl.drift import Alarm
from rl.exploration import CohortCounts
from rl.records import Events, Lineages
from rl.updater import Updater
from rl.values import Values

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
FIRST_ROWS, ROWS_PER_ROOT, ROWS_PER_EVENT = 5_000, 40, 0.001
"""Tests that are looked at: so many in any case, this many times the root of the events, and this many per event."""
KEPT_ROWS = 40_000
"""Tests that are kept to be read again, the latest."""
HALF_WINDOWS = 8
"""What was seen counts half after so many windows, or after half of the time that the kept tests are from."""
FIRST: tuple[tuple[int, int], ...] = ((0, 16), (3_000, 3), (10_000, 0))
"""Where nothing is known, runs are kept by lot until so many events and so many matches were seen: matches say which of
the things that runs remember tell what becomes of them."""
FIRST_KNOWN: tuple[tuple[int, int], ...] = ((2_000, 16), (30_000, 0))
"""The same where a history is there: it ranks them until then. If it finds less than half of what it promised, it is
not waited for longer than if nothing were known."""
SURPRISE = 12
"""Match points that must have been promised before their absence says anything."""
LEAST_ROWS = 300
"""New tests before runs are revalued."""
FIRST_PIECE, MOST_PIECE = 512, 1 << 18
LEAST_PRICE = 1e-9
REFIT = 1.5
"""It is asked anew what tells runs apart when so many times as many tests were seen."""
PRICED = 5_000
"""Children that are looked at to find a price."""
PLENTY = 3.0
"""Times of what should be left of the budget that is too much, or too little by the same factor."""
GROWTH, LATER_GROWTH, YOUNG = 1.1, 1.5, 20_000
"""Runs are revalued when so many times as many events were seen since the beginning or the last change of the stream;
the second holds after so many events."""


@dataclass(frozen=True)
class Seen:
    """Tests that were looked at in a piece of the stream, those of its events that they may be of, and its length."""

    rows: Rows
    events: Events
    size: int


@dataclass(frozen=True)
class Moment:
    """How many events and tests were seen by then."""

    events: int
    rows: int


@dataclass(frozen=True)
class Brought:
    """What some events brought: tests that were looked at, and how many there were of all, passed ones by place."""

    rows: int
    events: int
    tests: float
    passes: Floats

    @classmethod
    def by(cls, rows: Rows, target: Ints, events: int, share: float, passed: Floats) -> Self:
        """That of tests which were looked at with these shares."""
        passes = np.bincount(target[rows.passed > 0], minlength=len(passed)) / passed
        return cls(len(rows), events, float((rows.seen > 0).sum() / share), passes)


@dataclass
class Looking:
    """How much is looked at: shares of the events, and what they brought of late.

    ``passed`` are the shares for passed tests, by the pool that they lead to; ``rows`` were seen of ``events`` so far;
    ``tests`` and ``passes`` are what an event brings; ``more`` tests are looked at because the stream has changed.
    """

    passed: Floats
    share: float = 1.0
    rows: int = 0
    events: int = 0
    more: int = 0
    tests: float = 0.0
    passes: Floats = field(default_factory=lambda: np.zeros(1))

    def adapt(self, brought: Brought, ahead: int, most: float = np.inf) -> None:
        """Choose shares for the next ``ahead`` events, so that ``most`` tests are looked at, after these were."""
        events = max(brought.events, 1)
        self.rows += brought.rows
        self.events += brought.events
        then = self.events + ahead
        wanted = FIRST_ROWS + self.more + ROWS_PER_ROOT * then**0.5 + ROWS_PER_EVENT * then - self.rows
        wanted = min(max(wanted, ROWS_PER_EVENT * ahead, LEAST_ROWS), most) / 2
        tests, passes = brought.tests / events, brought.passes / events
        if not self.tests:
            self.tests, self.passes = tests, passes
        self.tests, self.passes = (self.tests + tests) / 2, (self.passes + passes) / 2
        self.share = float(np.clip(wanted / max(self.tests * ahead, 1.0), 1e-6, 1.0))
        each = wanted / max(int((self.passes > 0).sum()), 1)
        self.passed = np.clip(each / np.maximum(self.passes * ahead, 1e-300), self.share, 1.0)


class Learner:
    """Learns what runs are worth from what a shedder sees.

    Parameters
    ----------
    tables : RunTables
        Of the engine.
    scheme : Scheme, optional
        Vertices of the history that it starts from; default: without features, until it is found out which tell.
    known : Values, optional
        What this history holds runs for.
    overlap : float64 array, shape (places,), optional
        Share of its match points that a run is taken to lose beside a later one, by this history.
    promise : float, default 0
        Match points per event that this history finds within the budget.

    Attributes
    ----------
    updater : rl.Updater
    scheme : Scheme
    values : Values or None
        As of the last time that runs were revalued.
    refreshes : list of int
        Events after which they were.
    alarms : list of rl.Alarm
        Of drift.
    cohort : rl.CohortCounts
        What the fates of the cohort say about all runs.
    """

    def __init__(
        self,
        tables: RunTables,
        scheme: Scheme | None = None,
        known: Values | None = None,
        overlap: Floats | None = None,
        promise: float = 0.0,
    ) -> None:
        self.reader = Reader(tables)
        self.known = known
        self.promise = promise
        self.overlap = np.full(len(tables.pools), OVERLAP) if overlap is None else overlap
        self.scheme = scheme or bare_scheme(self.reader, tables.window)
        self.updater = Updater(self.reader.chart(self.scheme), HALF_WINDOWS * max(self.scheme.window, 1))
        self.cohort = CohortCounts(self.scheme.vertices, HALF_WINDOWS * max(self.scheme.window, 1))
        self.looking = Looking(passed=np.ones(len(tables.pools)))
        self.values: Values | None = known
        self.refreshes: list[int] = []
        self.alarms: list[Alarm] = []
        self._letters = np.zeros(len(tables.automaton.letters))
        self._relevant = self._passed_by = 0
        self._is_broken = False  # the promise of the history
        self._kept_until = 0, 0  # events and match points so far, when it was last held to its promise
        self._kept: list[Seen] = []
        self._whole: Rows | None = None
        self._revalued = self._changed = Moment(0, 0)
        self._told = 0  # tests seen when it was asked last what tells runs apart

    @property
    def most_events(self) -> int:
        """Events until it is to be shown what was seen."""
        return int(np.clip(self._passed_by / 12, FIRST_PIECE, MOST_PIECE))

    def count(self, cls: Ints) -> None:
        """Some events came that runs are tested with."""
        self._letters += self.reader.letters(self.reader.tables.classes, cls)
        self._relevant += len(cls)

    def look(self, sample: Ints, keys: KeyCodes, events: int, tick: int, fates: Lineages, found: int) -> None:
        """Take what was seen of a piece of so many events up to ``tick``, and fates of the cohort.

        ``found`` are the match points of the run so far.
        """
        looking = self.looking
        rows = self.reader.read(sample, looking.share, looking.passed, keys)
        records = Events(tick, self._letters, float(self._relevant))
        self._letters, self._relevant = np.zeros_like(self._letters), 0
        self.take(Seen(rows, records, events), fates, found)
        brought = Brought.by(rows, self.reader.target(rows), int(records.total), looking.share, looking.passed)
        looking.adapt(brought, int(self.most_events * looking.events / self._passed_by) + 1)

    def take(self, seen: Seen, fates: Lineages, found: int) -> None:
        """Take tests that were read elsewhere, and fates of the cohort; ``found`` as for ``look``."""
        self._passed_by += seen.size
        self._hold_to_promise(found)
        self._set_half_life(seen.events.tick)
        self.updater.observe(seen.events, self.reader.tests(seen.rows, self.scheme), fates)
        self._kept.append(seen)
        self._whole = None
        self._forget()
        self._notice(self.updater.watch())
        self.cohort.add(fates)

    def _hold_to_promise(self, found: int) -> None:
        """Whenever enough match points have been promised, see whether half of them came."""
        passed_by, before = self._kept_until
        promised = self.promise * (self._passed_by - passed_by)
        if promised >= SURPRISE:
            self._is_broken |= found - before < promised / 2
            self._kept_until = self._passed_by, found

    def add_fates(self, fates: Lineages) -> None:
        """Take fates of the cohort alone."""
        nothing = Events(int(fates.tick.max(initial=self.updater.statistics.tick)), np.zeros_like(self._letters), 0.0)
        self.updater.observe(nothing, self.reader.nothing(), fates)
        self.cohort.add(fates)

    def reach(self, trace: Trace, visits: Ints, vertex: Ints) -> None:
        """Note to which match points visits of the cohort led, in the match maps of their vertices."""
        led = np.flatnonzero(trace.mask[visits])
        if not len(led):
            return
        bundles, position = of_trace(trace, -1, self.cohort.most_bundles)
        mask, first = trace.mask[visits[led]], trace.first_point[visits[led]]
        of, bit = np.nonzero((mask[:, None] >> np.arange(64, dtype=np.uint64)) & np.uint64(1))
        place = position[first[of] + bit]
        kept = place >= 0
        self.cohort.reach(bundles, vertex[led[of[kept]]], place[kept])

    def _notice(self, alarms: Sequence[Alarm]) -> None:
        """Where the stream has changed, begin anew: with what was seen since, and what is seen soon."""
        if not alarms:
            return
        self.alarms += alarms
        since = min(alarm.tick for alarm in alarms)
        self._kept = [seen for seen in self._kept[:-1] if seen.events.tick >= since] + self._kept[-1:]
        self._whole = None
        self.cohort.drop_before(since)
        self._changed = Moment(self.looking.events, self.looking.rows)
        self.looking.more += FIRST_ROWS

    def _set_half_life(self, tick: int) -> None:
        """Let what was seen count half after some windows, but not before half of the tests that are kept came."""
        since = self._kept[0].events.tick if self._kept else tick
        self.updater.statistics.half_life = max(HALF_WINDOWS * self.scheme.window, (tick - since) / 2, 1.0)

    def _forget(self) -> None:
        """Let go of tests that are too many to be kept."""
        held = sum(len(seen.rows) for seen in self._kept)
        while len(self._kept) > 1 and held - len(self._kept[0].rows) >= KEPT_ROWS:
            held -= len(self._kept.pop(0).rows)

    def forget_texts(self) -> None:
        """Let go of texts that none of the tests which are kept points to."""
        texts = self.reader.forget()
        self._kept = [replace(seen, rows=self.reader.adopt(seen.rows, texts)) for seen in self._kept]
        self._whole = None

    @property
    def _rows(self) -> Rows:
        """All tests that are kept."""
        if self._whole is None:
            self._whole = Rows.joined([seen.rows for seen in self._kept])
        return self._whole

    def is_due(self) -> bool:
        """Whether enough is new for runs to be revalued."""
        if not self.refreshes and not self._has_seen_enough():
            return False
        begun = self._changed.events
        since, last = self.looking.events - begun, max(self._revalued.events - begun, 0)
        is_more = since >= last * (GROWTH if since < YOUNG else LATER_GROWTH)
        return is_more and self.has_news()

    def has_news(self) -> bool:
        """Whether enough tests were seen since runs were revalued."""
        return self.looking.rows >= self._revalued.rows + LEAST_ROWS

    def _has_seen_enough(self) -> bool:
        """Whether runs can be ranked by what was seen, rather than by lot, or by what was known before."""
        events, rows = self.looking.events, self._rows
        first = FIRST if self.known is None or self._is_broken else FIRST_KNOWN
        matches = int((rows.passed > 0)[self.updater.chart.ends[self.reader.target(rows)]].sum())
        return any(events >= least and matches >= wanted for least, wanted in first)

    def revalue(self, price: float, steps: float, spare: float) -> tuple[Worth, float]:
        """What runs are worth by now, and from which score on they can be kept.

        Parameters
        ----------
        price : float
            Score from which on they were kept up to now.
        steps : float
            Run-steps that may be done per event.
        spare : float
            How much of the budget is left over, as a multiple of what should be.

        Notes
        -----
        Of the tests that are kept, those that passed tell which runs would be born, and what they would take. As much
        is to be kept as before; or, where much more or less of the budget is left than should be, and before runs were
        valued for the first time, what the run-steps suffice for.
        """
        scheme, values = self.scheme, self.values
        worth = self.learn()
        assert self.values is not None
        rows = self.reader.born(self._rows, PRICED)
        if not len(rows):
            return worth, price
        score, cost = self._scores(rows, self.scheme, self.values)
        enough = steps * sum(seen.size for seen in self._kept)
        kept = enough if values is None else float(cost[self._scores(rows, scheme, values)[0] >= price].sum())
        if spare > PLENTY:
            kept = max(2 * kept, enough)
        elif spare < 1 / PLENTY:
            kept = min(kept, enough)
        order = np.argsort(-score, kind="stable")
        at = int(np.searchsorted(np.cumsum(cost[order]), kept))
        sides = score[order[[min(max(at - 1, 0), len(order) - 1), min(at, len(order) - 1)]]]
        return worth, float(np.sqrt(np.prod(np.maximum(sides, LEAST_PRICE))))

    def learn(self) -> Worth:
        """What runs are worth by now; vertices are other ones where others tell more."""
        if self.known is not None:
            self.known, self.overlap = None, np.full(len(self.overlap), OVERLAP)
        self._revalued = Moment(self.looking.events, self.looking.rows)
        rows = self.looking.rows - self._changed.rows
        is_bare = not any(place.features for place in self.scheme.places)
        if is_bare or not self.refreshes or rows >= REFIT * max(self._told - self._changed.rows, 0):
            self._tell_apart()
            self._told = self.looking.rows
        self.refreshes.append(self.looking.events)
        self.values = self.updater.values()
        return self.worth()

    def demand(self) -> tuple[Floats, Floats]:
        """Scores of the children of the tests that are kept, and the run-steps per event that each stands for."""
        assert self.values is not None
        score, cost = self._scores(self.reader.born(self._rows, PRICED), self.scheme, self.values)
        return score, cost / sum(seen.size for seen in self._kept)

    def _scores(self, rows: Rows, scheme: Scheme, values: Values) -> tuple[Floats, Floats]:
        """Scores of the children of some tests, and their run-steps by what is known now."""
        vertex, cover = self.reader.children(rows, scheme)
        lost = np.where(cover >= 0, np.minimum(values.gain[cover], values.gain[vertex]), 0.0)
        gain = values.gain[vertex] - self.overlap[self.reader.target(rows)] * lost
        return gain / values.cost[vertex], rows.passed * values.cost[vertex]

    def _tell_apart(self) -> None:
        """Ask which features tell what becomes of runs; sums are made again from the tests that are kept."""
        before = self.scheme if self.refreshes else bare_scheme(self.reader, self.scheme.window)
        scheme = telling_scheme(self.reader, self._rows, before)
        if scheme == self.scheme:
            return
        self.scheme = scheme
        updater = Updater(self.reader.chart(scheme), self.updater.statistics.half_life)
        for seen in self._kept:
            updater.observe(seen.events, self.reader.tests(seen.rows, scheme), Lineages.none())
        updater.succeed(self.updater)
        self.updater = updater
        self.cohort = CohortCounts(scheme.vertices, self.cohort.half_life)

    def worth(self) -> Worth:
        """What runs are worth, for the kernel."""
        assert self.values is not None
        gain, cost = raised(self.values.gain), self.values.cost
        worth = worth_of(self.reader.tables.automaton, self.scheme, gain, cost, OVERLAP)
        return replace(worth, overlap=self.overlap)
