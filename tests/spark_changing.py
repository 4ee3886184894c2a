"""A job whose queries come and go, as Spark would run it: with micro-batches that are done again after a crash."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa

from acep_approx import QuerySet
from acep_approx.api.on_spark.pinned import PinnedVersions, PlacedQuery
from acep_approx.spark.streaming.driver import Driver
from acep_approx.spark.streaming.stream import _controlled
from acep_approx.spark.worker.held import keep, taken
from acep_approx.spark.worker.job import Job
from acep_approx.spark.worker.shard import Processed, Shard
from acep_approx.subscriptions.versions import KeptQuery, change
from tests.spark_streamed import END, shards_of

Change = Callable[[Random], None]
Done = tuple[Processed, bytes, int | None]
"""What came of a task, its state, and the watermark that it waits for."""


def set_queries(home: Path, texts: dict[str, str]) -> None:
    """Make a version with these queries: those that are there with the same text stay."""

    def make(before: Any) -> list[KeptQuery]:
        stay = [one for one in before.queries if texts.get(one.id) == one.text]
        there = {one.id for one in stay}
        return [*stay, *(KeptQuery(id_, before.number + 1, text) for id_, text in texts.items() if id_ not in there)]

    change(home, make)


@dataclass
class ChangingJob:
    """A job on its way, with the state of each shard, and what a set here finds with the same queries.

    Parameters
    ----------
    home : Path
        The folder of queries.
    control : Path
    events : pyarrow.Table
    dice : Random
    shards : int
    options : dict
        Of ``spark``.
    output : str
    """

    home: Path
    control: Path
    events: pa.Table
    dice: Random
    shards: int = 2
    options: dict[str, Any] = field(default_factory=dict)
    output: str = "matches"
    states: dict[int, tuple[bytes, int | None]] = field(default_factory=dict)
    found: Counter[str] = field(default_factory=Counter)
    expected: Counter[str] = field(default_factory=Counter)
    sums: Counter[str] = field(default_factory=Counter)
    watermarks: list[int] = field(default_factory=lambda: [0])
    versions: list[int] = field(default_factory=list)
    replayed: int = 0

    def __post_init__(self) -> None:
        self.control.mkdir(parents=True, exist_ok=True)
        self.restart()
        self.here, self.runs = QuerySet(time="ts", output=self.output, bind="id"), dict[str, PlacedQuery]()  # type: ignore[arg-type]
        first, numbers = 0, []
        for part in self.job.parts:
            numbers.append(first + shards_of(part, self.events))
            first += part.shards
        self.shard_of = numbers
        self.waiting = self.events.slice(0, 0)

    def restart(self) -> None:
        """Start the job again, as after a crash of the driver."""
        matcher = QuerySet(time="ts", output=self.output).spark(queries=self.home, id="id", **self.options)  # type: ignore[arg-type]
        told = _controlled(matcher, self.control)
        self.job: Job = told.job(self.events.schema, is_stream=True, shards=self.shards)
        self.driver = Driver(self.job, self.control)

    @property
    def pinned(self) -> PinnedVersions:
        """What the driver noted."""
        return PinnedVersions(str(self.control))

    def run(self, changes: Change, delay: int = 0, most: int = 9, kills: float = 0.3) -> None:
        """Run a stream in random micro-batches; ``changes`` may change the folder at any moment."""
        tick = self.events["ts"].to_numpy()
        arrival = np.argsort(tick + [self.dice.uniform(0, delay) for _ in tick], kind="stable")
        at, latest = 0, 0
        while at < len(arrival):
            piece = arrival[at : at + self.dice.randint(1, most)]
            self.micro_batch(piece, changes, kills)
            at, latest = at + len(piece), max(latest, int(tick[piece].max()))
            self.watermarks.append(max(self.watermarks[-1], latest - delay))
        self.watermarks[-1] = END
        self.micro_batch(arrival[:0], changes, kills)
        self._add_expected(self.here.finish())

    def micro_batch(self, piece: np.ndarray, changes: Change, kills: float = 0.0) -> None:
        """Do a micro-batch; a first attempt may count for nothing, and finds the same."""
        batch = len(self.versions)
        attempts = [self._attempt(batch, piece, changes)]
        while self.dice.random() < kills:
            self.replayed += 1
            if self.dice.random() < 0.5:
                changes(self.dice)
                self.restart()
            attempts.append(self._attempt(batch, piece, changes))
        rows = [Counter(row for one in made.values() for row in rows_of(one[0])) for made in attempts]
        assert all(one == rows[0] for one in rows), f"micro-batch {batch} found other rows when it was done again"
        for number, (processed, state, until) in attempts[-1].items():
            self.states[number] = state, until
            self.sums.update({name: getattr(processed.metrics, name) for name in ("events", "steps", "late")})
        self.found += rows[-1]
        self.versions.append(self.pinned.notes[batch])
        self._run_here(batch, piece)

    def _attempt(self, batch: int, piece: np.ndarray, changes: Change) -> dict[int, Done]:
        self.driver.begin(batch)
        made, watermark = {}, self.watermarks[-1]
        for number in range(self.job.shards):
            changes(self.dice)
            mine = [int(i) for of_part in self.shard_of for i in piece[of_part[piece] == number]]
            state, until = self.states.get(number, (None, None))
            if not mine and (until is None or until > watermark):
                waiting = Shard(self.job, number, state, batch).order.waiting.first
                assert waiting is None or waiting >= watermark, "a shard that is not called has events that are due"
                continue  # Spark does not call it
            self.dice.shuffle(mine)
            is_fresh = self.dice.random() < 0.3
            shard = Shard(self.job, number, state, batch) if is_fresh else taken(self.job, b"", number, state, batch)
            events = self.events.select(self.job.schema.names).take(pa.array(mine, pa.int64()))
            processed = shard.process(events, watermark or None)
            after = shard.to_bytes()
            made[number] = processed, after, shard.waits_until
            keep(shard, b"", after)
        return made

    # --- what is found here -------------------------------------------------------------------------------------------

    def _run_here(self, batch: int, piece: np.ndarray) -> None:
        """Let a set here do the same: queries come and go at the watermark of the micro-batch before."""
        wanted = {one.id: one for one in self.pinned.queries(self.versions[batch])}
        for id_, one in self.runs.items():
            if id_ in self.here and (id_ not in wanted or wanted[id_].since != one.since):
                self.here.remove(id_, cascade=True)
        for id_, one in wanted.items():
            if id_ not in self.here:
                self.here.add(one.text, id=id_)
        self.runs = wanted
        self.waiting = pa.concat_tables([self.waiting, self.events.take(pa.array(piece))])
        watermark = self.watermarks[-1]
        order = self.waiting.sort_by([("ts", "ascending"), ("id", "ascending")])
        due = int(np.searchsorted(order["ts"].to_numpy(), watermark))
        self._add_expected(self.here.push(order.slice(0, due)) if due else None)
        self.waiting = order.slice(due)
        if watermark:
            self._add_expected(self.here.pass_time(watermark))

    def _add_expected(self, found: Any) -> None:
        if found is not None:
            self.expected.update(map(str, found.to_arrow().to_pylist()))


def rows_of(processed: Processed) -> list[str]:
    """The results of a task, in words."""
    return [*map(str, processed.results.to_pylist())]
