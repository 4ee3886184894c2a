"""What refreshing a history costs while a stream runs, and what it brings when the stream changes.

The streams are those of ``learning.drifts``: in the generated one productive keys, rates and selectivities change at
once; the real ones are run where they lie beside the project. A history of what was before the change is frozen, or
refreshed by what the shards see; one of what came after the change is the yardstick. A stream is refreshed micro-batch
by micro-batch, so it is given ten windows to recover, or four micro-batches, whichever is later.
"""

from __future__ import annotations

import shutil
import statistics
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from acep_approx import HistoryGraph, Query, compile_query
from acep_approx.spark import start
from experiments.learning.drifts import Drift
from experiments.learning.evaluation import WINDOWS
from experiments.on_spark.plans import CORES, Done, Place, done, replay, steady
from experiments.report import Column, Report
from experiments.report import Row as Line

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Ints = npt.NDArray[np.int64]

ID = "eid"
BUDGET = "10%"
COST, RECOVERED = 0.05, 0.8
"""What refreshing may add, as a share of ``TRIGGER``; and the share of the recall of a fresh history that is wanted."""
TRIGGER = 2.0
"""Seconds."""
LONG = 2
"""A micro-batch whose duration is measured has so many times the events that come after the change."""
BATCHES = 4
"""Micro-batches in which a stream is to recover, where ten windows are shorter."""
SOON, LATER = "at first", "later"
SECTIONS = 10
"""Parts of what comes after the change."""
OFF, ON, FRESH = "frozen", "refreshed", "fresh"


@dataclass(frozen=True)
class Ran:
    """A stream that has come to its end: micro-batches, ticks of the match points found, versions of its history."""

    batches: list[Done]
    found: Ints
    versions: int


@dataclass(frozen=True)
class Scene:
    """A stream that changes, its query and what an exact run takes."""

    where: Place
    stream: Drift
    query: Query
    exact: Ints
    steps: float

    @classmethod
    def made(cls, where: Place, stream: Drift) -> Scene:
        """Match all of it exactly."""
        query = compile_query(stream.query, engine="runs")
        events = pa.concat_tables([stream.before, stream.after])
        found = query.match(events, unit=stream.unit)
        ends = _ticks(found.points().column("end"))
        return cls(where, stream, query, ends, found.work.steps / len(events))

    def learned(self, events: pa.Table) -> Path:
        """A history of some events."""
        folder = self.where.new("history")
        HistoryGraph(self.query).fit(events, unit=self.stream.unit).save(folder)
        return folder

    def replayed(self, name: str, events: pa.Table, most: int, repeat: int = 1) -> DataFrame:
        """Some events as a stream, as fast as they can be matched."""
        options = {"speed": "max", "most": str(most), "repeat": str(repeat)}
        return replay(self.where.spark, self.where.written(name, events), time="ts", **options)

    def run(self, events: DataFrame, history: Path, *, learns: bool) -> Ran:
        """Match a stream inside the budget, with a copy of the history."""
        mine, to, checkpoint = (self.where.new(name) for name in ("history", "found", "checkpoint"))
        shutil.copytree(history, mine)
        matcher = self.query.spark(
            time="ts", unit=self.stream.unit, id=ID if ID in self.stream.after.schema.names else None, output="points",
            shards=CORES, watermark="1 millisecond", budget=BUDGET, history=mine, learn=learns, full_work=self.steps,
        )  # fmt: skip
        query = start(matcher, events, to=to, checkpoint=checkpoint, until_done=True)
        query.awaitTermination()
        ends = [_ticks(pq.read_table(file, columns=["end"]).column("end")) for file in to.rglob("*.parquet")]
        batches = done(query)
        versions = max((one.progress.version for one in batches if one.progress is not None), default=0)
        return Ran(batches, np.unique(np.concatenate([np.zeros(0, np.int64), *ends])), versions)


def _ticks(times: pa.ChunkedArray) -> Ints:
    """As numbers, also where Spark wrote them as timestamps."""
    if pa.types.is_timestamp(times.type):
        times = times.cast(pa.timestamp("us", times.type.tz)).cast(pa.int64())
    return times.to_numpy()


def refresh_cost(report: Report, where: Place, stream: Drift, batches: int, repeats: int) -> None:
    """Duration of micro-batches with and without refresh, ``LONG`` times as large as what comes after the change.

    Parameters
    ----------
    report : Report
    where : Place
    stream : Drift
    batches : int
        Micro-batches of a run.
    repeats : int
        Runs of either.
    """
    scene = Scene.made(where, stream)
    known = scene.learned(scene.stream.fresh)
    size = LONG * len(scene.stream.after)
    events = scene.replayed("steady", scene.stream.after, size, LONG * batches)
    found: dict[str, list[float]] = {OFF: [], ON: []}
    versions = 0
    for turn in range(repeats):
        for name in (OFF, ON)[:: -1 if turn % 2 else 1]:
            ran = scene.run(events, known, learns=name == ON)
            found[name].append(statistics.median(one.seconds for one in steady(ran.batches)))
            versions = max(versions, ran.versions)
    added = [on - off for on, off in zip(found[ON], found[OFF], strict=True)]
    line: Line = {
        "events": size,
        "off": statistics.median(found[OFF]),
        "on": statistics.median(found[ON]),
        "added": statistics.median(added),
        "least": min(added),
        "most": max(added),
        "share": statistics.median(added) / TRIGGER,
        "wanted": COST,
        "versions": versions,
    }
    columns = [
        Column("events", "events a batch", ",d"),
        Column("off", "frozen s", ".2f"),
        Column("on", "refreshed s", ".2f"),
        Column("added", "added s", ".3f"),
        Column("least", "least", ".3f"),
        Column("most", "most", ".3f"),
        Column("share", f"of {TRIGGER:g} s", ".1%"),
        Column("wanted", "wanted <=", ".0%"),
        Column("versions", "versions", ",d"),
    ]
    note = f"budget {BUDGET}; medians over runs of {batches} micro-batches, in turns; versions: of the history in a run"
    report.table("refresh_cost", "what refreshing adds to a micro-batch", [line], columns, note)


def refresh_drift(report: Report, where: Place, stream: Drift, batches: int) -> None:
    """Recall after a change.

    Parameters
    ----------
    report : Report
    where : Place
    stream : Drift
    batches : int
        Micro-batches of what comes after the change.
    """
    scene = Scene.made(where, stream)
    before, after = scene.stream.before, scene.stream.after
    each = len(after) // batches
    whole = scene.replayed("whole", pa.concat_tables([before, after]), each)
    old = scene.learned(before)
    runs = {
        OFF: scene.run(whole, old, learns=False),
        ON: scene.run(whole, old, learns=True),
        FRESH: scene.run(scene.replayed("after", after, each), scene.learned(scene.stream.fresh), learns=False),
    }
    ticks = after.column("ts").to_numpy()
    edges = ticks[np.linspace(0, len(ticks) - 1, SECTIONS + 1).astype(np.int64)]
    window = scene.query.plan.window_ticks(scene.stream.unit)
    soon, last = max(ticks[0] + WINDOWS * window, ticks[min(BATCHES * each, len(ticks) - 1)]), ticks[-1] + 1
    sections = [(f"tenth {n + 1}", *edges[n : n + 2]) for n in range(SECTIONS)]
    sections += [(SOON, ticks[0], soon), (LATER, soon, last)]
    lines = [_recall(scene.exact, name, first, end, runs) for name, first, end in sections]
    of_all = lines[-1]
    recovered = of_all[ON] / max(of_all[FRESH], 1e-9)
    columns = [Column("part", "after the change"), Column("points", "points", ",d")]
    columns += [Column(name, name, ".3f") for name in runs]
    note = (
        f"recall of match points, budget {BUDGET}, micro-batches of {each:,} events; {SOON}: {WINDOWS} "
        f"windows or {BATCHES} micro-batches, whichever is later; refreshed / fresh {LATER}: "
        f"{recovered:.2f}, wanted {RECOVERED}; frozen / fresh: {of_all[OFF] / max(of_all[FRESH], 1e-9):.2f}; "
        f"versions: {runs[ON].versions}"
    )
    name = scene.stream.name
    report.table(f"refresh_drift_{name}", f"{name}: after an abrupt change", lines, columns, note)


def _recall(exact: Ints, name: str, first: int, end: int, runs: dict[str, Ran]) -> Line:
    """Recall of all runs between two ticks."""
    wanted = exact[(exact >= first) & (exact < end)]
    shares = [float(np.isin(wanted, run.found).mean()) if len(wanted) else np.nan for run in runs.values()]
    return {"part": name, "points": len(wanted), **dict(zip(runs, shares, strict=True))}
