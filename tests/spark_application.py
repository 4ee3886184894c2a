"""A job to be killed, with streams of some kinds of programs: python -m tests.spark_application FOLDER KIND ...

All but those inside a budget match the files of ``FOLDER/events``; these match a replay of ``FOLDER/recording.parquet``
at the same time. Each kind has a folder and a checkpoint of its own. Called again it goes on, until all is done.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from acep_approx import QuerySet, compile_query, compile_rules
from acep_approx.spark.setup.session import session
from acep_approx.spark.sources.replay import Replay
from acep_approx.spark.streaming.stream import start

QUERY = compile_query("PATTERN SEQ(A a, B+ b[], ~(C c)) WHERE [g] AND a.x <= b[i].x WITHIN 8 s")
RULES = compile_rules("""
    TABLE seen (g text, n int DEFAULT 0, KEY (g))
    RULE count ON PATTERN B b WITHIN 1 s DO UPSERT seen SET n = old.n + 1 AT (b.g) END
    RULE often ON PATTERN SEQ(A a, B b) WHERE [g] AND store.seen[b.g].n > 3 WITHIN 2 s
      DO CALL note(b.g, b.x); UPDATE seen SET n = 0 AT (b.g) END
    RULE all ON PATTERN SEQ(C a, C b) WHERE store.seen[a.g].n > 1 AND a.x < b.x WITHIN 300 ms DO CALL two(a.g, b.g) END
""")
ID = "number"
SHARDS = 3
PER_BATCH = 40
"""Events in a micro-batch of the replay."""
EXACT, SET, OF_RULES, EARLY, COUNTS = "exact", "set", "rules", "early", "counts"
SHED, LEARNING = "shed", "learning"
TOGETHER = ((EXACT, SET, OF_RULES), (EARLY, COUNTS), (SHED, LEARNING))
"""Kinds that run in one session: with more at once, Python starts too slowly for Spark on a busy machine."""
BUDGET = "5 steps/event"


def desk(**options: Any) -> QuerySet:
    """Queries by key and without one, some that read what those by key publish, and some of a template."""
    made = QuerySet(time="ts", **options)
    made.add("PATTERN SEQ(A a, B b) WHERE [g] AND a.x < b.x WITHIN 2 s", id="by g")
    made.add("PATTERN SEQ(C a, C b) WITHIN 300 ms", id="of all")
    made.add("PATTERN SEQ(B a, C b) WHERE [g] AND a.x > b.x WITHIN 2 s RETURN a.x AS x PUBLISH Down", id="down")
    made.add("PATTERN SEQ(Down a, Down b) WHERE a.x < b.x WITHIN 300 ms", id="downs")
    made.add_many("PATTERN SEQ(A a, C b) WHERE [g] AND a.x = :x WITHIN 2 s", [{"x": x} for x in range(5)])
    return made


def matchers() -> dict[str, Any]:
    """What each stream runs."""
    how = {"id": ID, "shards": SHARDS, "watermark": "2 seconds"}
    return {
        EXACT: QUERY.spark(**how),
        SET: desk().spark(**how),
        OF_RULES: RULES.spark(**how),
        EARLY: QUERY.spark(**how, emit="early"),
        COUNTS: QUERY.spark(**how, output="counts"),
        SHED: QUERY.spark(**how, budget=BUDGET),
        LEARNING: QUERY.spark(**how, budget=BUDGET, learn=True),
    }


def streams(spark: Any, folder: Path, kinds: Sequence[str], *, to: Path) -> dict[str, Any]:
    """Start streams.

    Parameters
    ----------
    spark : SparkSession
    folder : Path
        Of the events.
    kinds : sequence of str
    to : Path
        Folder of results and checkpoints.
    """
    spark.dataSource.register(Replay)
    events = folder / "events"
    schema = spark.read.parquet(str(events)).schema
    files = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(events))
    options = {"path": str(folder / "recording.parquet"), "most": PER_BATCH, "speed": "max"}
    replay = spark.readStream.format("acep_replay").options(**options).load()
    beside: dict[str, dict[str, Path]] = {
        EXACT: {"late": to / "late"},
        OF_RULES: {"changes": to / "changes", "calls": to / "calls"},
    }
    return {
        name: start(
            matcher,
            replay if name in (SHED, LEARNING) else files,
            to=to / name,
            checkpoint=to / f"{name}.checkpoint",
            until_done=True,
            **beside.get(name, {}),
        )
        for name, matcher in matchers().items()
        if name in kinds
    }


def run(running: dict[str, Any], to: Path) -> None:
    """Wait until all streams have ended, and note of each that it has."""
    waiting = dict(running)
    while waiting:
        for name, stream in [*waiting.items()]:
            if stream.awaitTermination(0.2):
                (to / f"{name}.ended").touch()
                del waiting[name]


if __name__ == "__main__":
    place = Path(sys.argv[1])
    with session("local[2]") as spark:
        run(streams(spark, place, sys.argv[2:], to=place), place)
