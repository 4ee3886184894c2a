"""A streaming job to be killed: python -m tests.spark_application FOLDER.

It matches the files of ``FOLDER/events`` exactly and, at the same time, a replay of ``FOLDER/recording.parquet`` within
a budget; each goes to a folder of its own with its own checkpoint. Called again it goes on, until all is done.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from acep_approx import compile_query
from acep_approx.spark.setup.session import session
from acep_approx.spark.sources.replay import Replay
from acep_approx.spark.streaming.stream import start

QUERY = compile_query("PATTERN SEQ(A a, B+ b[], ~(C c)) WHERE [g] AND a.x <= b[i].x WITHIN 8 s")
ID = "number"
SHARDS = 3
PER_BATCH = 40
"""Events in a micro-batch of the replay."""
EXACT, SHED = "exact", "shed"


def streams(spark: Any, folder: Path, *, to: Path) -> list[Any]:
    """Start both queries.

    Parameters
    ----------
    spark : SparkSession
    folder : Path
        Of the events.
    to : Path
        Folder of results and checkpoints.
    """
    spark.dataSource.register(Replay)
    events = folder / "events"
    schema = spark.read.parquet(str(events)).schema
    files = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(events))
    options = {"path": str(folder / "recording.parquet"), "most": PER_BATCH, "speed": "max"}
    replay = spark.readStream.format("acep_replay").options(**options).load()
    watermarked = {"id": ID, "shards": SHARDS, "watermark": "2 seconds"}
    return [
        start(
            QUERY.spark(**watermarked),
            files,
            to=to / EXACT,
            late=to / "late",
            checkpoint=to / f"{EXACT}.checkpoint",
            until_done=True,
        ),
        start(
            QUERY.spark(**watermarked, budget="5 steps/event"),
            replay,
            to=to / SHED,
            checkpoint=to / f"{SHED}.checkpoint",
            until_done=True,
        ),
    ]


if __name__ == "__main__":
    place = Path(sys.argv[1])
    with session("local[2]") as running:
        for stream in streams(running, place, to=place):
            stream.awaitTermination()
