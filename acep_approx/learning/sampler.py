"""Take a training sample of an engine: have its arena write tests down, and read them before texts are forgotten."""

from __future__ import annotations

import numpy as np

from acep_approx.arrays import Floats
from acep_approx.engines.batches import RunEvents
from acep_approx.engines.runs.shedding import Shedding
from acep_approx.learning.key_buckets import KEY_BUCKETS, SlotBuckets, packed, unpacked
from acep_approx.learning.sample_size import Shares
from acep_approx.learning.sampling import SampleReader
from acep_approx.learning.training_sample import SampledTests, TrainingSample
from acep_approx.ranges import check, finite
from rl.records import Events


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
        if self._by_key is not None and len(keys):
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
        check("shares", good=len(shares.passed) == places and all(0 < s <= 1 for s in (shares.share, *shares.passed)))
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
