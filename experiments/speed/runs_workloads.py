"""Queries and streams for ``speed.runs``, and the arrays that the kernel of the runs engine gets of them."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from acep_approx import Matcher, compile_query
from acep_approx.engines.batches import RunEvents
from acep_approx.engines.runs.runs import Runs
from experiments.sase2008.workload import START_EVERY, SYMBOLS, VOLUME_BELOW, StockQuery, stock_stream
from experiments.speed import plain_runs

Ints = npt.NDArray[np.int64]
ByHand = Callable[[bool, plain_runs.Room], int]
RISE = 0.7
SMALL = 0.8
"""``c.x > b.x + SMALL``: few of many runs make a match."""


@dataclass(frozen=True)
class Workload:
    """A query, its events, and the same query written by hand.

    ``by_hand`` takes whether it is to keep lineage and its arrays, and returns the number of hits; ``live`` is what to
    expect as run-steps per event without merging.
    """

    name: str
    query: str
    events: pa.Table
    live: float
    by_hand: ByHand


def stock_workload(every: int, window: int, steps: int) -> Workload:
    """SASE+'s template with rising prices on one symbol; one event in ``every`` begins a run.

    Parameters
    ----------
    every, window : int
    steps : int
        Run-steps that are wanted without merging; the number of events follows.
    """
    live = window / every
    count = int(min(max(steps / live, 20 * window), 1_000_000))
    stream = stock_stream(SYMBOLS * count, RISE, seed=1)
    stream = stream.filter(pc.equal(stream.column("symbol"), 1)).combine_chunks()
    stream = stream.set_column(0, "ts", pa.array(np.arange(len(stream))))
    text = StockQuery("p2", "s3", window).text.replace(f"% {START_EVERY} ", f"% {every} ")
    tick, price, volume = (stream.column(name).to_numpy().copy() for name in ("ts", "price", "volume"))
    begins, ends = (price % every == 0).astype(np.int64), (volume < VOLUME_BELOW).astype(np.int64)

    def by_hand(lineage: bool, room: plain_runs.Room) -> int:
        return plain_runs.stock(
            tick, price, begins, ends, window, lineage,
            room.starts, room.origins, room.prices, room.links, room.hits,
        )  # fmt: skip

    return Workload(f"stocks, {live:g} live", text, stream, live, by_hand)


def letters_stream(events: int, top: float, seed: int) -> pa.Table:
    """Random events of types A, B, C with a number ``x`` in [0, 1); that of C lies below ``top``."""
    rng = np.random.default_rng(seed)
    letter = rng.integers(0, 3, events).astype(np.int32)
    x = rng.random(events) * np.where(letter == 2, top, 1.0)
    return pa.table(
        {"ts": np.arange(events), "type": pa.DictionaryArray.from_arrays(letter, pa.array(list("ABC"))), "x": x}
    )


def _by_letters(loop: Callable[..., int], stream: pa.Table, window: int, *constants: float) -> ByHand:
    tick, value = (stream.column(name).to_numpy().copy() for name in ("ts", "x"))
    letter = stream.column("type").combine_chunks().indices.to_numpy().astype(np.int64)

    def by_hand(lineage: bool, room: plain_runs.Room) -> int:
        return loop(
            tick, letter, value, window, lineage, *constants,
            room.starts, room.origins, room.x, room.y, room.links, room.hits,
        )  # fmt: skip

    return by_hand


def rising_workload(window: int, steps: int) -> Workload:
    """Three steps with two conditions between events; of the parameters see ``stock_workload``."""
    live = window**2 / 108 + window / 9  # a third of the events tests half of all pairs (a, b), a third all a
    stream = letters_stream(int(max(steps / live, 5 * window)), 1.0, seed=2)
    text = f"PATTERN SEQ(A a, B b, C c) WHERE b.x > a.x AND c.x > b.x + {SMALL} WITHIN {window}"
    hand = _by_letters(plain_runs.rising, stream, window, SMALL)
    return Workload(f"rising, W = {window}", text, stream, live, hand)


def sums_workload(window: int, steps: int) -> Workload:
    """Three steps, the last with arithmetic on two registers: no two runs are ever equal."""
    live = window**2 / 54 + window / 9
    stream = letters_stream(int(max(steps / live, 5 * window)), 0.2, seed=3)
    text = f"PATTERN SEQ(A a, B b, C c) WHERE a.x + b.x < c.x WITHIN {window}"
    return Workload(f"sums, W = {window}", text, stream, live, _by_letters(plain_runs.sums, stream, window))


@dataclass(frozen=True)
class Passed:
    """One pass of the kernel: CPU seconds in it, hits, run-steps, the most runs that lived at once."""

    seconds: float
    hits: int
    steps: int
    peak: int


class Prepared:
    """The events of a workload as the kernel gets them, batch by batch, so that it can be timed alone.

    Parameters
    ----------
    workload : Workload
    """

    def __init__(self, workload: Workload) -> None:
        self._schema = workload.events.schema
        self._plan = compile_query(workload.query, engine="runs").plan
        self._calls: list[tuple[RunEvents, Ints]] = []
        matcher = Matcher(self._plan, output="points", merge="none")  # in pieces as they are where nothing is merged
        pipeline = matcher.bind(self._schema)
        assert isinstance(pipeline.engine, Runs)
        pipeline.engine.advance = partial(self._record, pipeline.engine.advance)  # type: ignore[method-assign]
        matcher.push(workload.events)
        self._classes, self._slots = pipeline.preparer.classes, pipeline.key_slots.slots

    def _record(self, advance: Callable[[RunEvents, Ints], bool], events: RunEvents, floors: Ints) -> bool:
        self._calls.append((events, floors))
        return advance(events, floors)

    def run(self, merge: str, *, lineage: bool) -> Passed:
        """One pass of a fresh engine over all events; lists nothing."""
        output = "matches" if lineage else "points"
        pipeline = Matcher(self._plan, output=output, merge=merge).bind(self._schema)  # type: ignore[arg-type]
        engine = pipeline.engine
        assert isinstance(engine, Runs)
        engine.set_classes(self._classes)
        engine.reserve(self._slots)
        hits, seconds = 0, 0.0
        for events, floors in self._calls:
            engine.begin()
            start = time.thread_time()
            engine.advance(events, floors)
            seconds += time.thread_time() - start
            hits += len(engine.hits(events))
        steps, _, _, peak, *_ = engine.work()
        return Passed(seconds, hits, steps, peak)
