"""Learn while the stream runs: what the shedder sees goes to ``rl.Updater``, and what it finds goes back as worth.

The learner decides how much is sampled, when runs are scored anew, and when it is asked anew what tells them apart;
all of it by counting events, tests and run-steps, so that the same stream is always answered in the same way.

Source: ours, a reconstruction of what Li and Ge, PVLDB 2016, name in section 5 (docs/how-it-works/paper.md).
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import asdict, astuple, dataclass, replace
from typing import Any

import numpy as np

from acep_approx.archive import Kind, Scope
from acep_approx.arrays import Floats
from acep_approx.engines.runs.tables import RunTables
from acep_approx.engines.runs.worth import Worth
from acep_approx.learning.cohort import Outcomes
from acep_approx.learning.features import bare_scheme, select_features
from acep_approx.learning.judging import Promise, Ranking, Tally, found_within
from acep_approx.learning.live_graph import LiveGraph, group_shares
from acep_approx.learning.sampling import SampleReader
from acep_approx.learning.training_sample import LEAST_ROWS, SampledTests, SampleSize, TrainingSample, packed, unpacked
from acep_approx.ranges import COUNT, check, finite, number_in, reading
from acep_approx.training.policies import OVERLAP, raised, random_lineages, worth_of
from acep_approx.training.pricing import LEAST_PRICE
from history.checking import scheme_of
from history.graph import Graph
from history.values import Values
from history.vectors import Scheme
from rl.drift import Alarm, Detectors
from rl.model import letters_by_key, letters_of_all
from rl.records import Events, Lineages
from rl.updater import DISCOUNT, Updater

RANKINGS = ("ranking", "known", "history", "latest")
"""Attributes of a learner."""
KEPT_ROWS = 40_000
"""Tests that are kept to be read again, the latest."""
HALF_WINDOWS = 8
"""What was seen counts half after so many windows, or after half of the time that the kept tests are from."""
FIRST: tuple[tuple[int, int], ...] = ((0, 16), (3_000, 3), (10_000, 0))
"""Where nothing is known, or no longer, runs are kept at random until so many events and so many matches were seen:
matches say which of the things that runs remember tell what becomes of them."""
FIRST_KNOWN: tuple[tuple[int, int], ...] = ((2_000, 16), (30_000, 0))
"""The same where a history is there: it ranks them until then."""
FIRST_PIECE, MOST_PIECE = 512, 1 << 18
LOOKS = 4
"""How often it is looked whether a promise holds before what was seen is processed."""
REFIT = 1.5
"""It is asked anew what tells runs apart when so many times as many tests were seen."""
PRICED = 5_000
"""Children of tests that the score threshold is found from."""
PLENTY = 3.0
"""Times of what should be left of the budget that is too much, or too little by the same factor."""
GROWTH, LATER_GROWTH, YOUNG = 1.1, 1.5, 20_000
"""Runs are scored anew when so many times as many events were seen since the beginning or the last change of the
stream; the second holds after so many events."""


@dataclass(frozen=True)
class Moment:
    """How many events and tests were seen by then."""

    events: int
    rows: int


class Learner:
    """Learns what runs are worth from what a shedder sees.

    Parameters
    ----------
    tables : RunTables
        Of the engine.
    graph : Graph, optional
        That of the history that it starts from.
    known : Ranking, optional
        By what this history ranks runs.
    known_worth : Worth, optional
        What runs are worth by it, for the kernel.
    promise : Promise, optional
        What this history promises to find within the budget.
    share : float, default 1
        Of the full work, that the budget is.

    Attributes
    ----------
    updater : rl.Updater
    scheme : Scheme
        The updater's vertices.
    ranking : Ranking or None
        By what runs are ranked now; None: at random.
    known : Ranking or None
        That of the history as long as it ranks them: until what was learned is found to be better.
    history : Ranking or None
        That of the history, also when it has been given up.
    latest : Ranking or None
        What was learned the last time that it was worked out.
    tally : Tally
        What these would have found of the cohort, and what the history would have.
    versions : int
        How often it was worked out what runs are worth.
    refreshes : list of int
        Events after which runs were scored anew.
    alarms : list of rl.Alarm
        Of drift.
    before : dict of int to Ranking or None
        By what runs were ranked before, by the number of the version, where events that met it may be run once more.
    live : LiveGraph
        The history graph, with the outcomes of the cohort; its vertices are those of ``ranking``.
    """

    def __init__(
        self,
        tables: RunTables,
        graph: Graph | None = None,
        known: Ranking | None = None,
        known_worth: Worth | None = None,
        promise: Promise | None = None,
        share: float = 1.0,
    ) -> None:
        self.reader = SampleReader(tables)
        self.ranking = self.known = self.history = known
        self.known_worth = known_worth
        self.promise, self.share = promise or Promise(), share
        self.scheme = known.scheme if known is not None else bare_scheme(self.reader, tables.window)
        half_life = HALF_WINDOWS * max(self.scheme.window, 1)
        self.updater = Updater(self.reader.chart(self.scheme), half_life)
        self.live = LiveGraph(graph or Graph(self.scheme), half_life)
        self.sample_size = SampleSize(passed=np.ones(len(tables.pools)))
        self.latest: Ranking | None = None
        self.before: dict[int, Ranking | None] = {0: known}
        self.tally = Tally()
        self.versions = 0
        self.refreshes: list[int] = []
        self.alarms: list[Alarm] = []
        self._passed_by = 0
        self._kept: list[TrainingSample] = []
        self._whole: SampledTests | None = None
        self._rescored = self._changed = Moment(0, 0)
        self._begun = 0  # events passed by until it was to begin anew
        self._selected_at = 0  # tests seen when it was asked last what tells runs apart

    @property
    def values(self) -> Values | None:
        """What runs are ranked by; None: nothing yet."""
        return self.ranking.values if self.ranking is not None else None

    @property
    def is_random(self) -> bool:
        """Whether runs are kept at random: nothing is known of them, or no longer."""
        return self.values is None or self.values.is_level

    @property
    def most_events(self) -> int:
        """Events until it is to be shown what was seen."""
        return int(np.clip((self._passed_by - self._begun) / 12, FIRST_PIECE, MOST_PIECE))

    @property
    def events_to_look(self) -> int:
        """Events until it is to be asked whether the promise holds; no more than ``most_events``."""
        return int(min(self.most_events, max(-(-self.most_events // LOOKS), FIRST_PIECE, self.promise.ahead)))

    @property
    def relevant_ahead(self) -> int:
        """Events with a letter until then, about."""
        return int(self.most_events * self.sample_size.events / self._passed_by) + 1

    def check_promise(self, waiting: int, found: int, tick: int, runs: int = 1) -> int | None:
        """See whether what was known still holds.

        Parameters
        ----------
        waiting : int
            Events since it was shown what was seen.
        found : int
            Match points so far.
        tick : int
            Of the last event.
        runs : int, default 1
            Over which the events are spread.

        Returns
        -------
        int or None
            The tick up to which it held, if it has just turned out that it does not: what was seen is to be processed
            now, with this tick.
        """
        return self.promise.hold(self._passed_by + waiting, found, tick, runs)

    def take_share(self, share: float, promised: tuple[float, bool] | None, waiting: int) -> None:
        """From here on the budget is this share of the full work.

        Parameters
        ----------
        share : float
        promised : (float, bool), optional
            Match points per event that the history promises within it, and whether these are few.
        waiting : int
            Events since it was shown what was seen.
        """
        self.share = share
        if self.known is not None and promised is not None:
            rate, is_poor = promised
            self.promise.change(rate, self._passed_by + waiting, is_poor=is_poor)

    def takes_over(self, found: int) -> None:
        """Where a promise was broken: runs that were kept by it until now are not from here on.

        ``found``: match points so far. A learner for others is asked for what it has learned only now and then.
        """
        self.promise.begin_to_judge(self._passed_by, found, self.updater.statistics.tick)

    def process(
        self, sample: TrainingSample, outcomes: Outcomes, held_until: int | None = None, *, notices: bool = True
    ) -> None:
        """Learn from a sample of a part of the stream, and from outcomes of the cohort.

        Parameters
        ----------
        sample : TrainingSample
        outcomes : Outcomes
        held_until : int, optional
            Of a promise that has just been broken; runs are to be kept at random from here on.
        notices : bool, default True
            Whether drift begins anything anew: tests also drift where several shards begin to rank runs in ways of
            their own.
        """
        self._passed_by += sample.size
        if held_until is not None:
            self._begin_anew(held_until, sample.events.tick)
        # what was seen counts half after some windows, but not before half of the tests that are kept came
        tick = sample.events.tick
        since = self._kept[0].events.tick if self._kept else tick
        self.updater.statistics.half_life = max(HALF_WINDOWS * self.scheme.window, (tick - since) / 2, 1.0)
        tests = self.reader.nothing() if held_until is not None else self.reader.encode(sample.tests, self.scheme)
        self.updater.observe(sample.events, tests, outcomes.lineages(self.scheme))
        if held_until is None:
            self._kept.append(sample)
            self._whole = None
        held = sum(len(one.tests) for one in self._kept)
        while len(self._kept) > 1 and held - len(self._kept[0].tests) >= KEPT_ROWS:
            held -= len(self._kept.pop(0).tests)
        alarms = self.updater.watch()
        if notices:
            self._notice(alarms)
        self._take_in(outcomes)

    def _begin_anew(self, since: int, now: int) -> None:
        """What ranked the runs has not held ``since``: keep them at random until others are found that do lead on.

        The runs that were kept show nothing of those that were not, and those are what now leads to matches.
        """
        self.alarms.append(Alarm(now, 0, "promise"))
        self.live.forget(since, np.full(len(self.scheme.places), DISCOUNT))
        scheme = self.live.scheme
        level = np.ones(scheme.vertices)
        self.known = self.latest = None
        self.ranking = Ranking(scheme, Values(level, level, level), np.zeros(len(scheme.places)))
        self._kept, self._begun = [], self._passed_by
        self._count_anew()
        self._learn_by(bare_scheme(self.reader, self.scheme.window))
        self.updater.detectors = Detectors()
        self.refreshes.append(self.sample_size.events)

    def add_outcomes(self, outcomes: Outcomes) -> None:
        """Take outcomes of the cohort alone."""
        lineages = outcomes.lineages(self.scheme)
        letters = np.zeros(len(self.reader.tables.automaton.letters))
        nothing = Events(int(lineages.tick.max(initial=self.updater.statistics.tick)), letters, 0.0)
        self.updater.observe(nothing, self.reader.nothing(), lineages)
        self._take_in(outcomes)

    def _take_in(self, outcomes: Outcomes) -> None:
        """Judge what was learned by outcomes that it does not know yet, and add them to the graph."""
        self.live.half_life = self.updater.statistics.half_life
        self.live.pass_time(self.updater.statistics.tick)
        for trace in outcomes.traces:
            if self.history is not None and self.latest is not None:
                new, old = (found_within(trace, ranking, self.share) for ranking in (self.latest, self.history))
                self.tally.add(new, old)
            self.live.add(trace)

    def _notice(self, alarms: Sequence[Alarm]) -> None:
        """Where the stream has changed, begin anew: with what was seen since, and what is seen soon.

        Alarms are about what was learned: a history that goes on ranking runs keeps its counts.
        """
        if not alarms:
            return
        self.alarms += alarms
        since = min(alarm.tick for alarm in alarms)
        if self.known is None:
            left = np.ones(len(self.scheme.places))
            left[[alarm.place for alarm in alarms]] = DISCOUNT
            self.live.forget(since, left)
        self._kept = [sample for sample in self._kept[:-1] if sample.events.tick >= since] + self._kept[-1:]
        self._count_anew()

    def _count_anew(self) -> None:
        self._whole = None
        self.tally = Tally()
        self._changed = Moment(self.sample_size.events, self.sample_size.rows)
        self.sample_size.begin_anew()

    def forget_texts(self) -> None:
        """Let go of texts that none of the tests which are kept points to."""
        texts = self.reader.forget()
        self._kept = [replace(some, tests=self.reader.adopt(some.tests, texts)) for some in self._kept]
        self._whole = None

    @property
    def _tests(self) -> SampledTests:
        if self._whole is None:
            self._whole = SampledTests.joined([sample.tests for sample in self._kept])
        return self._whole

    def is_due(self) -> bool:
        """Whether enough is new for runs to be scored anew."""
        if (self.is_random or not self.versions) and not self._has_seen_enough():
            return False
        begun = self._changed.events
        since, last = self.sample_size.events - begun, max(self._rescored.events - begun, 0)
        is_more = since >= last * (GROWTH if since < YOUNG else LATER_GROWTH)
        return is_more and self.has_news()

    def has_news(self) -> bool:
        """Whether enough tests were seen since runs were scored anew."""
        return self.sample_size.rows >= self._rescored.rows + LEAST_ROWS

    def _has_seen_enough(self) -> bool:
        if not self._kept:
            return False
        events, tests = self.sample_size.events - self._changed.events, self._tests
        first = FIRST if self.known is None or self.promise.is_poor else FIRST_KNOWN
        matches = int((tests.passed > 0)[self.updater.chart.ends[self.reader.target(tests)]].sum())
        return any(events >= least and matches >= wanted for least, wanted in first)

    def rescore(self, price: float, steps: float, spare: float) -> tuple[Worth, float] | None:
        """What runs are worth by now, and from which score on they can be kept; None: all stays as it is.

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
        before = None if self.is_random else self.ranking
        is_new = self.learn()
        if not is_new and spare <= PLENTY:  # a history that leaves the budget unused gets another price
            return None
        if self.ranking is None or not self._kept:
            return None
        worth, tests = self.worth(), self.reader.born(self._tests, PRICED)
        if not len(tests):
            return worth, price
        score, cost = self._scores(tests, self.ranking)
        enough = steps * sum(sample.size for sample in self._kept)
        kept = enough if before is None else float(cost[self._scores(tests, before)[0] >= price].sum())
        if spare > PLENTY:
            kept = max(2 * kept, enough)
        elif spare < 1 / PLENTY:
            kept = min(kept, enough)
        order = np.argsort(-score, kind="stable")
        at = int(np.searchsorted(np.cumsum(cost[order]), kept))
        sides = score[order[[min(max(at - 1, 0), len(order) - 1), min(at, len(order) - 1)]]]
        found = float(np.sqrt(np.prod(np.maximum(sides, LEAST_PRICE))))
        if not is_new:  # few runs are tested at a high price: they do not tell how many there would be at a low one
            found = max(found, price / PLENTY)
        return worth, found

    def learn(self) -> bool:
        """Work out what runs are worth by what was seen; whether they are ranked by that from now on.

        Vertices are other ones where others tell more. As long as a history ranks the runs, what was learned does so
        only if it is found to be better, or the history promises little; and a history ranks them again if what was
        learned is found to be worse.
        """
        if not self._kept:
            return False
        self._rescored = Moment(self.sample_size.events, self.sample_size.rows)
        rows = self.sample_size.rows - self._changed.rows
        is_bare = not any(place.features for place in self.scheme.places)
        if is_bare or not self.versions or rows >= REFIT * max(self._selected_at - self._changed.rows, 0):
            self._select_features()
            self._selected_at = self.sample_size.rows
        self.versions += 1
        self.latest = Ranking(self.scheme, self.updater.values(), np.full(len(self.scheme.places), OVERLAP))
        if self.known is not None and not (self.promise.is_poor or self.tally.says_better()):
            return False
        if self.known is None and self.promise.is_broken:  # what the run itself found says more than the cohort
            is_worse = self.promise.is_in_vain
        else:
            is_worse = self.known is None and self.tally.says_worse()
        self.known = self.history if is_worse else None
        self._rank_by(self.known or self.latest)
        return True

    def _rank_by(self, ranking: Ranking) -> None:
        """Rank runs by this from here on; the graph has its vertices."""
        if self.live.scheme != ranking.scheme:
            self.live.move(ranking.scheme, group_shares(self.reader, self._tests, self.live.scheme, ranking.scheme))
        if self.known is not None:
            self.tally, self.promise.is_poor = Tally(), False  # it has shown that it finds more
            if self.promise.is_broken:  # it was held to what it no longer can promise
                self.promise = Promise()
        self.ranking = ranking
        self.refreshes.append(self.sample_size.events)

    def demand(self) -> tuple[Floats, Floats]:
        """Scores of the children of the tests that are kept, and the run-steps per event that each stands for."""
        assert self.ranking is not None
        score, cost = self._scores(self.reader.born(self._tests, PRICED), self.ranking)
        return score, cost / sum(sample.size for sample in self._kept)

    def _scores(self, tests: SampledTests, ranking: Ranking) -> tuple[Floats, Floats]:
        values = ranking.values
        vertex, cover = self.reader.children(tests, ranking.scheme)
        lost = np.where(cover >= 0, np.minimum(values.gain[cover], values.gain[vertex]), 0.0)
        gain = values.gain[vertex] - ranking.overlap[self.reader.target(tests)] * lost
        return gain / values.cost[vertex] ** ranking.scheme.cost_power, tests.passed * values.cost[vertex]

    def _select_features(self) -> None:
        before = self.scheme if self.versions else bare_scheme(self.reader, self.scheme.window)
        by_key, statistics = None, self.updater.statistics
        if self.reader.buckets:
            by_key = np.asarray(letters_by_key(statistics) / letters_of_all(statistics))
        scheme = select_features(self.reader, self._tests, before, by_key)
        if scheme != self.scheme:
            self._learn_by(scheme)

    def _learn_by(self, scheme: Scheme) -> None:
        """Learn by other vertices from here on: from the tests that are kept."""
        self.scheme = scheme
        updater = Updater(self.reader.chart(scheme), self.updater.statistics.half_life)
        for sample in self._kept:
            updater.observe(sample.events, self.reader.encode(sample.tests, scheme), Lineages.none())
        updater.succeed(self.updater)
        self.updater = updater

    def worth(self) -> Worth:
        """What runs are worth, for the kernel."""
        return self.worth_by(self.ranking)

    def worth_by(self, ranking: Ranking | None) -> Worth:
        """What runs are worth if they are ranked by this."""
        if ranking is None or ranking.values.is_level:
            return random_lineages(self.reader.tables.automaton)
        if ranking is self.history and self.known_worth is not None:
            return self.known_worth
        values = ranking.values
        worth = worth_of(self.reader.tables.automaton, ranking.scheme, raised(values.gain), values.cost, OVERLAP)
        return replace(worth, overlap=ranking.overlap)

    def keep_ranking(self, version: int, kept: Container[int]) -> None:
        """By what runs are ranked now has this number; of earlier ones those of the numbers ``kept`` are asked for."""
        self.before = {number: ranking for number, ranking in self.before.items() if number in kept}
        self.before[version] = self.ranking

    # --- state ----------------------------------------------------------------------------------------------

    def save(self) -> dict[str, Any]:
        """All that it has learned, for ``load``. Complexity: O(tests that are kept + history graph)."""
        rankings = {name: getattr(self, name) for name in RANKINGS}
        return {
            "scheme": self.scheme.to_json(),
            "texts": self.reader.texts,
            "updater": self.updater.to_arrays(),
            "detectors": self.updater.detectors.to_json(),
            **{name: ranking.save() if ranking is not None else None for name, ranking in rankings.items()},
            "before": {str(number): self._save_before(ranking) for number, ranking in self.before.items()},
            "live": self.live.save(),
            "tally": vars(self.tally),
            "promise": vars(self.promise),
            "sample_size": vars(self.sample_size),
            "alarms": [astuple(alarm) for alarm in self.alarms],
            "refreshes": self.refreshes,
            "share": self.share,
            "versions": self.versions,
            "passed_by": self._passed_by,
            "begun": self._begun,
            "selected_at": self._selected_at,
            "rescored": asdict(self._rescored),
            "changed": asdict(self._changed),
            "kept": self._save_kept(),
        }

    def load(self, saved: dict[str, Any]) -> None:
        """Go on from what ``save`` gave, by a new learner of the same query.

        Raises
        ------
        Exception
            What ``ranges.reading`` takes for damage.
        """
        self.scheme = scheme_of(saved["scheme"], self.scheme)
        self.updater = Updater.from_arrays(self.reader.chart(self.scheme), saved["updater"])
        self.updater.detectors.restore(saved["detectors"])
        self.reader.know(saved["texts"])
        for name in RANKINGS:
            setattr(self, name, saved[name] and Ranking.load(saved[name], self.scheme))
        if self.known is not None:
            self.known = self.ranking = self.history
        self.before = self._load_before(saved.get("before", {}))  # states of before have none
        self.live.load(saved["live"])
        self.tally, self.promise = Tally.load(saved["tally"]), Promise.load(saved["promise"])
        self.sample_size = SampleSize.load(saved["sample_size"])
        self.alarms = [Alarm(*alarm) for alarm in saved["alarms"]]
        finite("refreshes", *saved["refreshes"], saved["share"])
        self.refreshes, self.share = saved["refreshes"], saved["share"]
        self.versions, self._passed_by, self._begun, self._selected_at = (
            number_in(name, saved[name], 0, COUNT) for name in ("versions", "passed_by", "begun", "selected_at")
        )
        for name in ("rescored", "changed"):
            finite(name, *saved[name].values())
        self._rescored, self._changed = Moment(**saved["rescored"]), Moment(**saved["changed"])
        self._kept, self._whole = self._load_kept(saved["kept"]), None

    def _save_before(self, ranking: Ranking | None) -> dict[str, Any] | None:
        """A ranking of before; of the history nothing, as it is given again."""
        if ranking is None:
            return None
        return {} if ranking is self.history else ranking.save()

    def _load_before(self, saved: dict[str, Any]) -> dict[int, Ranking | None]:
        def ranking(one: dict[str, Any] | None) -> Ranking | None:
            if one is None:
                return None
            return Ranking.load(one, self.scheme) if one else self.history

        return {int(number): ranking(one) for number, one in saved.items()}

    def _save_kept(self) -> dict[str, Any]:
        """The tests that are kept, with the sizes of the pieces that they came in."""
        if not self._kept:
            return {"samples": []}
        return {
            "samples": [[len(one.tests), one.events.tick, one.events.total, one.size] for one in self._kept],
            "by_key": [packed(one.events.by_key) for one in self._kept],
            "letters": np.array([one.events.counts for one in self._kept]),
            "tests": np.frombuffer(self._tests.to_bytes({}), np.uint8),
        }

    def _load_kept(self, saved: dict[str, Any]) -> list[TrainingSample]:
        if not saved["samples"]:
            return []
        tests, _ = SampledTests.from_bytes(saved["tests"].tobytes())
        self.reader.check(tests)
        for size, *numbers in saved["samples"]:
            number_in("kept", size, 0, len(tests) + 1)
            finite("kept", *numbers)
        ends = np.cumsum([size for size, *_ in saved["samples"]])
        check("kept", good=ends[-1] == len(tests))
        letters, of_query = saved["letters"], len(self.reader.tables.automaton.letters)
        check("letters", good=letters.shape == (len(ends), of_query) and (letters >= 0).all())
        found = []
        for end, counts, by_key, (rows, tick, total, size) in zip(
            ends.tolist(), letters, saved["by_key"], saved["samples"], strict=True
        ):
            events = Events(tick, counts, total, unpacked(by_key, of_query))
            # what they were samples of was used when they came
            part = TrainingSample(tests[end - rows : end], events, size, 0.0, np.zeros(0), 0, self.reader.texts)
            found.append(part)
        return found


# --- as bytes -----------------------------------------------------------------------------------------------------

LEARNER = Kind("learner")


def learner_to_bytes(learner: Learner | None, header: dict[str, Any]) -> bytes:
    """A learner, and what the caller wants to keep, as JSON. Complexity: O(tests that are kept)."""
    scope = Scope({"caller": header})
    if learner is not None:
        scope.parts["learner"] = _scope_of(learner.save())
    return LEARNER.pack(scope)


def learner_of(raw: bytes, learner: Learner | None) -> dict[str, Any]:
    """Restore a new learner to what ``learner_to_bytes`` wrote; returns the caller's header.

    Raises
    ------
    ValueError
        Not such bytes, or those of a learner of another query.
    """
    scope = LEARNER.unpack(raw)
    with reading(lambda: ValueError("these bytes are not those of a learner, or of one of another query")):
        check("learner", good=("learner" in scope.parts) == (learner is not None))
        if learner is not None:
            learner.load(_saved_in(scope.parts["learner"]))
        return dict(scope.head["caller"])


def _scope_of(saved: dict[str, Any]) -> Scope:
    scope = Scope()
    for name, value in saved.items():
        if isinstance(value, dict):
            scope.parts[name] = _scope_of(value)
        elif isinstance(value, np.ndarray):
            scope.arrays[name] = value
        else:
            scope.head[name] = value
    return scope


def _saved_in(scope: Scope) -> dict[str, Any]:
    return {**scope.head, **scope.arrays, **{name: _saved_in(part) for name, part in scope.parts.items()}}
