"""From what the kernel wrote down of tests to what a learner reads: steps, vertices, weights, children.

Sampled tests keep what runs remembered, so that they can be read again when it is found out what tells runs apart.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from acep_approx.arrays import Floats, Ints
from acep_approx.engines.batches import RunEvents
from acep_approx.engines.runs.shedding import Shedding
from acep_approx.engines.runs.tables import RunTables
from acep_approx.events.keys import KeyCodes
from acep_approx.kernels.runs import sample as kernel
from acep_approx.kernels.runs.sample import FAILED, LEFT_OUT, ONLY_PASSED, PASSED, SAMPLE_WORDS
from acep_approx.learning.training_sample import (
    KEY_BUCKETS,
    SampledTests,
    Shares,
    SlotBuckets,
    TrainingSample,
    buckets_of,
    packed,
    unpacked,
)
from acep_approx.matching.tracing.traced import PACE, POOL, REGISTERS, TICK
from acep_approx.ranges import TICK as LATEST
from acep_approx.ranges import Range, check, check_arrays, finite
from acep_approx.training.trace import Remembered
from history.trace import KEY
from history.vectors import Place, Scheme
from rl.chart import Chart
from rl.records import Events, Tests

SPARE_PACE = 0.5
"""How many events of a key are taken for seen before the first one; the current event is not one of them."""


class SampleReader:
    """Reads the tests of one engine.

    Parameters
    ----------
    tables : RunTables
        Of the engine.

    Attributes
    ----------
    remembered : Remembered
        Places and columns.
    texts : list of str
        All texts and keys that tests point to.
    buckets : int
        Of keys, for which letters are counted apart; 0 where there is one partition.
    """

    def __init__(self, tables: RunTables) -> None:
        self.tables = tables
        self.remembered = Remembered.by(tables)
        self.texts: list[str] = []
        self._codes: dict[str, int] = {}
        self.buckets = KEY_BUCKETS if tables.automaton.query.equivalences else 0
        self._steps = _steps(tables)
        arcs = max(len(tables.automaton.automaton.arcs), 1)
        # the steps of one letter are taken together: one run-step for all of them
        together = self._steps[:, 0] * (self._steps[:, 3].max(initial=0) + 1) + self._steps[:, 3]
        self._is_first = np.zeros(len(self._steps), np.bool_)
        self._is_first[np.unique(together, return_index=True)[1]] = True
        self._step_of = np.full((len(self.tables.pools), arcs), -1, np.int64)
        self._step_of[self._steps[:, 0], self._steps[:, 2]] = np.arange(len(self._steps))

    def chart(self, scheme: Scheme) -> Chart:
        """What the learner knows of the automaton."""
        pools = self.tables.pools
        source, target, _, letter, leaves = self._steps.T
        return Chart(
            scheme=scheme,
            source=source.copy(),
            target=target.copy(),
            letter=letter.copy(),
            leaves=leaves.astype(np.bool_),
            ends=np.array([pool.is_end for pool in pools]),
            stays=np.array([pool.stays for pool in pools]),
            letters=tuple(str(number) for number in range(len(self.tables.automaton.letters))),
            buckets=self.buckets,
        )

    def letters(self, classes: Sequence[int], cls: Ints) -> Floats:
        """How many of some events, given their classes, have each letter."""
        of_class = np.bincount(cls, minlength=len(classes)).astype(np.float64)
        return np.asarray(of_class @ self._has_letter(classes))

    def letters_by_key(self, classes: Sequence[int], cls: Ints, bucket: Ints) -> Floats:
        """The same by bucket of keys, and last how many there are in all; shape (buckets, letters + 1)."""
        size = len(classes)
        of_class = np.bincount(bucket * size + cls, minlength=self.buckets * size).reshape(self.buckets, size)
        return np.hstack((of_class @ self._has_letter(classes), of_class.sum(axis=1, keepdims=True)))

    def _has_letter(self, classes: Sequence[int]) -> Floats:
        letters = range(len(self.tables.automaton.letters))
        return np.array([[int(mask) >> letter & 1 for letter in letters] for mask in classes], np.float64)

    def buckets_of(self, key: Ints) -> Ints:
        """The buckets of some keys, given by their positions in ``texts``; -1 where there is none."""
        known, place = np.unique(key, return_inverse=True)
        bucket = buckets_of(self.texts[code] for code in known[known >= 0].tolist())
        return np.concatenate((np.full(len(known) - len(bucket), -1), bucket))[place]

    def read(self, sample: Ints, share: float, of_passed: Floats, keys: KeyCodes) -> SampledTests:
        """Read what ``Shedding.take_sample`` gave.

        Parameters
        ----------
        sample : int64 array, shape (entries, words)
        share : float
        of_passed : float64 array, shape (pools,)
            As they were given to ``Shedding.sample_tests``.
        keys : KeyCodes
            Of the slots; empty where there is one partition.
        """
        registers = (sample.shape[1] - SAMPLE_WORDS - self.remembered.event_columns) // 2
        words = sample[:, :SAMPLE_WORDS].T.copy()
        source, target, arc = words[kernel.TEST_POOL], words[kernel.TEST_TARGET], words[kernel.TEST_ARC]
        outcome = words[kernel.TEST_OUTCOME]
        pace = words[kernel.TEST_PACE].view(np.float64)
        births = self._births(sample, kernel.TEST_POOL, SAMPLE_WORDS, registers)
        has_passed = (outcome == PASSED) | (outcome == ONLY_PASSED)
        passed = np.flatnonzero(has_passed)
        later = self._births(sample[passed], kernel.TEST_TARGET, SAMPLE_WORDS + registers, registers)
        values = np.array(self.remembered.values(births))
        children = np.full_like(values, np.nan)
        children[:, passed] = np.array(self.remembered.values(later))
        for number, kind in enumerate(self.remembered.kinds):
            if kind == "text":
                texts = self.tables.scalars.columns.texts.values
                values[number] = self._kept(values[number], texts.__getitem__)
                children[number] = self._kept(children[number], texts.__getitem__)
        slot = words[kernel.TEST_SLOT].astype(np.float64)
        key = self._kept(slot, keys.text) if not keys.is_empty else np.full(len(sample), -1.0)
        return SampledTests(
            step=self._step_of[source, arc],
            source=source,
            outcome=outcome,
            seen=np.where(outcome != ONLY_PASSED, words[kernel.TEST_WEIGHT] / share, 0.0),
            passed=np.where(has_passed, words[kernel.TEST_PASSED_WEIGHT] / of_passed[target], 0.0),
            start=words[kernel.TEST_START],
            last=words[kernel.TEST_LAST],
            tick=words[kernel.TEST_TICK],
            cover=words[kernel.TEST_COVER],
            rate=np.maximum(pace - 1 + SPARE_PACE, SPARE_PACE) / (self.tables.window + 1),
            key=key.astype(np.int64),
            values=values,
            children=children,
        )

    @staticmethod
    def _births(sample: Ints, pool: int, first: int, registers: int) -> Ints:
        births = np.zeros((len(sample), REGISTERS), np.int64)
        births[:, POOL], births[:, TICK] = sample[:, pool], sample[:, kernel.TEST_TICK]
        births[:, PACE] = sample[:, kernel.TEST_PACE]
        return np.hstack((births, sample[:, first : first + registers], sample[:, SAMPLE_WORDS + 2 * registers :]))

    def adopt(self, tests: SampledTests, texts: Sequence[str]) -> SampledTests:
        """Tests that another reader of the same query has read, or this one before ``forget``; ``texts`` are theirs."""
        values, children = tests.values.copy(), tests.children.copy()
        for number, kind in enumerate(self.remembered.kinds):
            if kind == "text":
                for columns in (values, children):
                    columns[number] = self._kept(columns[number], texts.__getitem__)
        key = self._kept(tests.key.astype(np.float64), texts.__getitem__).astype(np.int64)
        return replace(tests, values=values, children=children, key=key)

    def check(self, tests: SampledTests) -> None:
        """Refuse tests of a state that cannot have been written down of these tables, by a reader of these texts.

        Raises
        ------
        DamagedError

        Complexity: O(tests).
        """
        size, columns, end = len(tests), len(self.remembered.kinds), len(self.texts)
        numbers = Range(size, -2 * LATEST, 2 * LATEST)
        ranges = dict.fromkeys(("start", "last", "tick", "cover"), numbers) | {
            "step": Range(size, 0, len(self._steps)),
            "source": Range(size, 0, len(self.tables.pools)),
            "outcome": Range(size, FAILED, ONLY_PASSED + 1),
            "key": Range(size, -1, end),
        }
        check_arrays(vars(tests), ranges)
        check("source", good=(self._steps[tests.step, 0] == tests.source).all())
        for name in ("seen", "passed", "rate"):
            column = getattr(tests, name)
            check(name, good=column.shape == (size,) and (column >= 0).all() and np.isfinite(column).all())
        for values in (tests.values, tests.children):
            check("values", good=values.shape == (columns, size) and not np.isinf(values).any())
            for column, kind in zip(values, self.remembered.kinds, strict=True):
                codes = column[~np.isnan(column)]
                check("values", good=kind != "text" or ((codes >= -1) & (codes < end)).all())

    def know(self, texts: Sequence[str]) -> None:
        """Give texts the codes that they have by their order; for a reader that has read nothing yet."""
        check("texts", good=all(isinstance(text, str) for text in texts))
        self.texts, self._codes = list(texts), {text: code for code, text in enumerate(texts)}

    def forget(self) -> list[str]:
        """Forget all texts, and give them back: tests that are kept must be adopted anew."""
        texts, self.texts, self._codes = self.texts, [], {}
        return texts

    def _kept(self, codes: Floats, text_of: Callable[[int], str]) -> Floats:
        """Codes of texts as they are here, where none is ever forgotten."""
        known, place = np.unique(np.where(np.isnan(codes), -1, codes).astype(np.int64), return_inverse=True)
        mine = np.full(len(known), -1.0)
        for number, code in enumerate(known.tolist()):
            if code >= 0:
                text = text_of(code)
                if text not in self._codes:
                    self._codes[text] = len(self.texts)
                    self.texts.append(text)
                mine[number] = self._codes[text]
        return mine[place]

    @staticmethod
    def nothing() -> Tests:
        """No test."""
        none, floats = np.zeros(0, np.int64), np.zeros(0)
        return Tests(none, none, floats, floats, floats, floats, none)

    def target(self, tests: SampledTests) -> Ints:
        """The place that the step of each test leads to."""
        return np.asarray(self._steps[tests.step, 1], np.int64)

    def encode(self, tests: SampledTests, scheme: Scheme) -> Tests:
        """The tests as a learner of these vertices takes them."""
        vertex = scheme.encode(
            tests.source,
            self.groups(tests.key, tests.values, tests.source, scheme),
            tests.start + scheme.window - tests.tick,
            tests.tick - tests.last,
        )
        target = self.target(tests)
        child = np.full(len(tests), -1, np.int64)
        stays = np.array([pool.stays for pool in self.tables.pools])
        goes_on = np.flatnonzero((tests.passed > 0) & stays[target])
        at = target[goes_on]
        group = self.groups(tests.key[goes_on], tests.children[:, goes_on], at, scheme)
        child[goes_on] = scheme.first_group[at] + group
        is_indexed = np.zeros(len(self._steps), np.bool_)
        is_indexed[tests.step[tests.outcome == LEFT_OUT]] = True
        seen = np.where(is_indexed[tests.step], tests.outcome == LEFT_OUT, True)  # those before the index
        return Tests(
            step=tests.step,
            vertex=vertex,
            rate=tests.rate,
            seen=tests.seen * seen,
            tested=tests.seen * ((tests.outcome != LEFT_OUT) & (self._is_first | is_indexed)[tests.step]),
            passed=tests.passed,
            child=child,
            tick=tests.tick,
            key=self.buckets_of(tests.key) if self.buckets else None,
        )

    def born(self, tests: SampledTests, most: int) -> SampledTests:
        """Those of some tests that made a child which goes on; about ``most`` of them, weighted so as to stand for all.

        Complexity: O(tests).
        """
        stays = np.array([pool.stays for pool in self.tables.pools])
        some = np.flatnonzero((tests.passed > 0) & stays[self.target(tests)])
        apart = max(len(some) // most, 1)
        found = tests[some[::apart]]
        return replace(found, passed=found.passed * apart)

    def children(self, tests: SampledTests, scheme: Scheme) -> tuple[Ints, Ints]:
        """The vertex of the child that each of some tests made, and that which it would have as its cover.

        Where the window of the cover is over, the last is -1.
        """
        place = self.target(tests)
        start = np.where(tests.source == 0, tests.tick, tests.start)
        group = self.groups(tests.key, tests.children, place, scheme)
        vertex = scheme.encode(place, group, start + scheme.window - tests.tick, 0)
        is_covered = tests.cover >= tests.tick - scheme.window
        of_cover = scheme.encode(place, group, np.where(is_covered, tests.cover + scheme.window - tests.tick, 0), 0)
        return vertex, np.where(is_covered, of_cover, -1)

    def groups(self, key: Ints, values: Floats, at: Ints, scheme: Scheme) -> Ints:
        """The group of runs, or children, within the place that each is ``at``."""
        return scheme.groups_at(at, partial(self.column, key, values), self.texts)

    def group(self, key: Ints, values: Floats, place: Place, here: Ints) -> Ints:
        """The group of those runs, or children, which are ``here``, all of one place."""
        columns = [feature.values(lambda name: self.column(key, values, name)[here]) for feature in place.features]
        return Scheme((place,), self.tables.window).group(0, columns, self.texts, len(here))

    def column(self, key: Ints, values: Floats, name: str) -> Floats | Ints:
        """What runs remember under a name; ``"key"`` is the partition key."""
        return key if name == KEY else values[self.remembered.columns.index(name)]


def _steps(tables: RunTables) -> Ints:
    """Steps between pools: source, target, arc, letter, and whether the run itself ends with it."""
    number = {(pool.state, pool.errors): at for at, pool in enumerate(tables.pools)}
    automaton = tables.automaton
    found = []
    for at, pool in enumerate(tables.pools):
        for step in map(automaton.steps.__getitem__, automaton.steps_from[pool.state]):
            target = automaton.leads_to(step, pool.errors)
            if target is not None:
                leaves = step.inhibits or not automaton.ignores[pool.state].passes(1 << step.letter)
                found.append((at, number[target], step.arc, step.letter, int(leaves and at > 0)))
    return np.array(found, np.int64).reshape(-1, 5)


# --- taking a sample ----------------------------------------------------------------------------------------


class Sampler:
    """Samples the tests of an engine.

    Parameters
    ----------
    arena : Shedding
        Of the engine; bound.
    reader : SampleReader
    """

    def __init__(self, arena: Shedding, reader: SampleReader) -> None:
        self.arena = arena
        self.reader = reader
        self._shares = Shares(1.0, ())
        self._tests: list[SampledTests] = []
        self._letters = np.zeros(len(arena.tables.automaton.letters))
        self._by_key = self._no_letters()
        self._slots = SlotBuckets()
        self._relevant = 0

    def sample(self, shares: Shares) -> None:
        """Sample tests of these shares of the events from here on; first take what was written down before."""
        self._shares = shares
        self.arena.sample_tests(shares.share, np.array(shares.passed))

    def count(self, events: RunEvents) -> None:
        """These events came, that runs are tested with."""
        classes, keys = self.arena.tables.classes, self.arena.keys_now()
        self._letters += self.reader.letters(classes, events.cls)
        if self._by_key is not None and not keys.is_empty:
            self._by_key += self.reader.letters_by_key(classes, events.cls, self._slots.of(keys, events.slot))
        self._relevant += len(events.cls)

    def to_bytes(self) -> bytes:
        """What was written down since the last ``take``, for ``restore``: with the texts of the reader."""
        self.read()
        header = {
            "letters": self._letters.tolist(), "relevant": self._relevant,
            "share": self._shares.share, "passed": list(self._shares.passed),
            "by_key": packed(self._by_key),
        }  # fmt: skip
        return SampledTests.joined(self._tests).to_bytes(header)

    def restore(self, raw: bytes) -> None:
        """Go on from what ``to_bytes`` gave, by a reader that knows the same texts.

        Raises
        ------
        Exception
            What ``ranges.reading`` takes for damage.
        """
        tests, header = SampledTests.from_bytes(raw)
        self.reader.check(tests)
        letters = np.array(header["letters"], np.float64)
        check("letters", good=letters.shape == self._letters.shape and (letters >= 0).all())
        finite("shares", header["share"], *header["passed"], header["relevant"])
        shares = Shares(header["share"], tuple(header["passed"]))
        places = len(self.arena.tables.pools)
        check("shares", good=len(shares.passed) == places and shares.are_shares)
        self._tests, self._letters, self._relevant = [tests], letters, header["relevant"]
        self._by_key = unpacked(header["by_key"], len(letters)) if self.reader.buckets else None
        self.sample(shares)

    def read(self) -> None:
        """Read what was written down, as long as its texts and keys are known."""
        shares = self._shares
        words = self.arena.take_sample()
        self._tests.append(self.reader.read(words, shares.share, np.array(shares.passed), self.arena.keys_now()))

    def take(self, size: int, tick: int, points: int) -> TrainingSample:
        """The sample of what came since the last call.

        Parameters
        ----------
        size, tick, points : int
            How many events came, the tick of the last one, and how many match points were found.

        Complexity: O(tests that were written down).
        """
        self.read()
        tests, passed = SampledTests.joined(self._tests), np.array(self._shares.passed)
        target = self.reader.target(tests)[tests.passed > 0]
        sample = TrainingSample(
            tests,
            Events(tick, self._letters, float(self._relevant), self._by_key),
            size=size,
            population=float((tests.seen > 0).sum() / self._shares.share),
            passes=np.bincount(target, minlength=len(passed)) / passed,
            points=points,
            texts=self.reader.texts,
        )
        self._tests, self._letters, self._relevant = [], np.zeros_like(self._letters), 0
        self._by_key = self._no_letters()
        return sample

    def _no_letters(self) -> Floats | None:
        """No event yet, by bucket of keys; None where there is one partition."""
        return np.zeros((KEY_BUCKETS, len(self._letters) + 1)) if self.reader.buckets else None
