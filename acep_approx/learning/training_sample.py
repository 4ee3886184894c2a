"""A training sample: tests of live runs that were written down, what they are a sample of, and how large it is to be.

It is what a learner learns from, whether it is in the process that matches or elsewhere. The tests themselves travel,
and not sums of them: they are few whatever the rate of events, put together they are what one learner would have seen,
without any rounding, drift is noticed by their times, and they can be asked which features tell. Ours.
"""

from __future__ import annotations

import json
import os
from base64 import b64decode, b64encode
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Self
from zlib import crc32

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from acep_approx.archive import Kind, Scope
from acep_approx.arrays import Floats, Ints
from acep_approx.events.keys import KeyCodes
from acep_approx.ipc import from_ipc, to_ipc
from acep_approx.learning.cohort import Outcomes
from acep_approx.ranges import check, finite
from history.arrays import Columns
from history.checking import check_column
from history.files import JsonFile
from rl.records import Events

KEY_BUCKETS = 256


def buckets_of(texts: Iterable[str]) -> Ints:
    """The buckets of some keys, given as text."""
    return np.fromiter((crc32(text.encode()) % KEY_BUCKETS for text in texts), np.int64)


class SlotBuckets:
    """The buckets of keys by slot; each key is hashed once, as long as no slot is used again."""

    def __init__(self) -> None:
        self._keys = KeyCodes()
        self._of_slot = np.zeros(0, np.int64)

    def of(self, keys: KeyCodes, slots: Ints) -> Ints:
        """The buckets of the keys that have these slots now. Complexity: O(slots + new keys)."""
        if keys.uses_again:
            known, place = np.unique(slots, return_inverse=True)
            return buckets_of(keys.texts_at(known))[place]
        if keys is not self._keys:
            self._keys, self._of_slot = keys, np.zeros(0, np.int64)
        new = range(len(self._of_slot), keys.capacity)
        if new:
            self._of_slot = np.concatenate((self._of_slot, buckets_of(map(keys.text, new))))
        return self._of_slot[slots]


def packed(counts: Floats | None) -> list[list[float]] | None:
    """Counts by bucket and letter as where there are any, and how many: most are 0."""
    if counts is None:
        return None
    at = np.flatnonzero(counts)
    return [at.tolist(), counts.ravel()[at].tolist()]


def unpacked(saved: list[list[float]] | None, letters: int) -> Floats | None:
    """What ``packed`` gave.

    Raises
    ------
    ValueError
        What was saved is of another number of letters, or damaged.
    """
    if saved is None:
        return None
    counts = np.zeros(KEY_BUCKETS * (letters + 1))
    at, found = np.array(saved[0], np.int64), np.array(saved[1], np.float64)
    if at.shape != found.shape or not ((at >= 0) & (at < len(counts)) & (found >= 0)).all():
        raise ValueError("events by bucket of keys are damaged")
    counts[at] = found
    return counts.reshape(KEY_BUCKETS, letters + 1)


# --- samples ------------------------------------------------------------------------------------------------

KEY = b"acep"
SAMPLES = Kind("samples")
NARROW = {"step": pa.int32(), "source": pa.int16(), "outcome": pa.int8(), "key": pa.int32()}
"""Columns that need no 64 bits."""


@dataclass(frozen=True)
class SampledTests(Columns):
    """Tests as they were written down, with what runs and their children remembered: parallel columns.

    Attributes
    ----------
    step, source, outcome : int64 arrays
        Step of the chart, its place, and what came of the test (``kernels.runs.sample``).
    seen, passed : float64 arrays
        One by the chance that the run was sampled when an event came, and that it was when it passed; or 0.
    start, last, tick : int64 arrays
        Of the run's first and last event, and of the current event.
    cover : int64 array
        Start of the latest run that would have covered a child.
    rate : float64 array
        Events of the key per tick, of late.
    key : int64 array
        Position of the key in ``texts``; -1 where there is one partition.
    values, children : float64 arrays, shape (columns, tests)
        What the run remembers, and the child where there is one: as in ``Trace``, texts by position in ``texts``.
    """

    step: Ints
    source: Ints
    outcome: Ints
    seen: Floats
    passed: Floats
    start: Ints
    last: Ints
    tick: Ints
    cover: Ints
    rate: Floats
    key: Ints
    values: Floats
    children: Floats

    def to_bytes(self, header: dict[str, Any]) -> bytes:
        """As an Arrow stream, zstd inside; the header is its metadata. Complexity: O(tests)."""
        columns: dict[str, pa.Array] = {}
        for column in fields(self):
            values = getattr(self, column.name)
            if values.ndim == 1:
                columns[column.name] = pa.array(values).cast(NARROW.get(column.name, pa.array(values[:0]).type))
            else:
                columns |= {f"{column.name}.{number}": pa.array(each) for number, each in enumerate(values)}
        table = pa.table(columns).replace_schema_metadata({KEY: json.dumps(header)})
        return to_ipc(table, compression="zstd")

    @classmethod
    def from_bytes(cls, raw: bytes) -> tuple[Self, dict[str, Any]]:
        """What ``to_bytes`` wrote, and the header."""
        table = from_ipc(raw)
        header: dict[str, Any] = json.loads(table.schema.metadata[KEY])
        found: dict[str, npt.NDArray[Any]] = {}
        for column in fields(cls):
            if column.name in table.column_names:
                values = table.column(column.name).to_numpy()
                found[column.name] = values.astype(np.int64) if values.dtype.kind == "i" else values.copy()
            else:
                parts = [name for name in table.column_names if name.startswith(f"{column.name}.")]
                empty = np.zeros((0, len(table)))
                found[column.name] = np.array([table.column(name).to_numpy() for name in parts]) if parts else empty
        return cls(**found), header


@dataclass(frozen=True)
class TrainingSample:
    """Tests that were sampled in a part of a stream.

    Attributes
    ----------
    tests : SampledTests
        In order of time.
    events : rl.records.Events
        That they may be of.
    size : int
        Events of the part in all.
    population : float
        How many tests there were, about, of which these are a sample.
    passes : float64 array, shape (places,)
        How many of them passed, about, by the place that they lead to.
    points : int
        Match points found in the part.
    texts : sequence of str
        That tests point to.
    outcomes : Outcomes
        Of the cohort.
    """

    tests: SampledTests
    events: Events
    size: int
    population: float
    passes: Floats
    points: int
    texts: Sequence[str]
    outcomes: Outcomes = field(default_factory=Outcomes)

    def to_bytes(self) -> bytes:
        """As an Arrow stream: columns of the tests, the rest as JSON in the metadata. Complexity: O(tests)."""
        header = {
            "tick": self.events.tick, "letters": self.events.counts.tolist(), "relevant": self.events.total,
            "by_key": packed(self.events.by_key),
            "size": self.size, "points": self.points, "tests": self.population, "passes": self.passes.tolist(),
            "texts": list(self.texts), "outcomes": b64encode(self.outcomes.to_bytes()).decode(),
        }  # fmt: skip
        return self.tests.to_bytes(header)

    @classmethod
    def from_bytes(cls, raw: bytes) -> Self:
        """What ``to_bytes`` wrote."""
        tests, header = SampledTests.from_bytes(raw)
        letters = np.array(header["letters"], np.float64)
        return cls(
            tests,
            Events(header["tick"], letters, header["relevant"], unpacked(header["by_key"], len(letters))),
            size=header["size"],
            population=header["tests"],
            passes=np.array(header["passes"], np.float64),
            points=header["points"],
            texts=header["texts"],
            outcomes=Outcomes.from_bytes(b64decode(header["outcomes"])),
        )


def samples_to_bytes(samples: Sequence[TrainingSample]) -> bytes:
    """Samples of parts of a stream, one after the other, under a digest. Complexity: O(tests)."""
    scope = Scope()
    for number, one in enumerate(samples):
        scope.put(str(number), one.to_bytes())
    return SAMPLES.pack(scope)


def samples_from_bytes(raw: bytes) -> list[TrainingSample]:
    """What ``samples_to_bytes`` wrote.

    Raises
    ------
    ValueError
        These are not such bytes.
    """
    return [TrainingSample.from_bytes(one.tobytes()) for one in SAMPLES.unpack(raw).arrays.values()]


# --- how large they are to be -------------------------------------------------------------------------------

FIRST_ROWS, ROWS_PER_ROOT, ROWS_PER_EVENT = 5_000, 40, 0.001
"""Tests that are sampled: so many in any case, this many times the root of the events, and this many per event."""
LEAST_ROWS = 300
"""New tests before runs are scored anew."""


@dataclass(frozen=True)
class Shares(JsonFile):
    """Of which share of the events tests are written down.

    Attributes
    ----------
    share : float
        For any tests.
    passed : tuple of float
        For passed ones, by the place that they lead to.
    """

    FILE = "shares.json"
    share: float
    passed: tuple[float, ...]

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> Self | None:
        """What ``save`` wrote; None where there is none, or it is not whole."""
        made = cls.read(folder, lambda found: cls(float(found["share"]), tuple(map(float, found["passed"]))))
        return made if made is not None and made.are_shares else None

    @property
    def are_shares(self) -> bool:
        """Whether all are above 0, and 1 at most."""
        return all(0 < share <= 1 for share in (self.share, *self.passed))


@dataclass
class SampleSize:
    """How much is sampled: shares of the events, and what they brought of late.

    ``passed`` are the shares for passed tests, by the pool that they lead to; ``rows`` tests were sampled of ``events``
    so far, and ``rows_then`` of ``events_then`` when the stream changed last: from there on as many are wanted as at
    the beginning. ``tests`` and ``passes`` are what an event brings.
    """

    passed: Floats
    share: float = 1.0
    rows: int = 0
    events: int = 0
    rows_then: int = 0
    events_then: int = 0
    tests: float = 0.0
    passes: Floats = field(default_factory=lambda: np.zeros(1))

    @property
    def shares(self) -> Shares:
        """Those for the next events."""
        return Shares(self.share, tuple(self.passed.tolist()))

    def adapt(self, sample: TrainingSample, ahead: int, most: float = np.inf) -> None:
        """Choose shares for the next ``ahead`` events, so that ``most`` tests are sampled, after these were."""
        relevant = int(sample.events.total)
        events = max(relevant, 1)
        self.rows += len(sample.tests)
        self.events += relevant
        then, rows = self.events + ahead - self.events_then, self.rows - self.rows_then
        wanted = FIRST_ROWS + ROWS_PER_ROOT * then**0.5 + ROWS_PER_EVENT * then - rows
        wanted = min(max(wanted, ROWS_PER_EVENT * ahead, LEAST_ROWS), most) / 2
        tests, passes = sample.population / events, sample.passes / events
        if not self.tests:
            self.tests, self.passes = tests, passes
        self.tests, self.passes = (self.tests + tests) / 2, (self.passes + passes) / 2
        self.share = float(np.clip(wanted / max(self.tests * ahead, 1.0), 1e-6, 1.0))
        each = wanted / max(int((self.passes > 0).sum()), 1)
        self.passed = np.clip(each / np.maximum(self.passes * ahead, 1e-300), self.share, 1.0)

    def begin_anew(self) -> None:
        """The stream has changed: look at as many of the tests that come as at the beginning."""
        self.rows_then, self.events_then = self.rows, self.events

    @classmethod
    def load(cls, saved: dict[str, Any]) -> Self:
        """That of which these are the attributes."""
        made = cls(**saved)
        finite("sample size", *(value for name, value in saved.items() if name not in ("passed", "passes")))
        passed = check_column("passed", made.passed, "float64")
        check("shares", good=0 < made.share <= 1 and ((passed > 0) & (passed <= 1)).all())
        check("passes", good=np.isfinite(check_column("passes", made.passes, "float64")).all())
        return made
