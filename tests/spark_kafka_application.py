"""Jobs on a topic to be killed: python -m tests.spark_kafka_application FOLDER SOURCE TARGET.

One stream writes what it finds in the topic ``SOURCE`` to ``FOLDER/folder``, another one to the topic ``TARGET``; both
are addresses. Called again they go on, until all messages that are there have been read.
"""

from __future__ import annotations

import sys
from pathlib import Path

from acep_approx import compile_query
from acep_approx.spark import read_topics, session, start
from tests.kafka_runs import QUERY
from tests.spark_application import run

FOLDER, TOPIC = "folder", "topic"
AT_ONCE = 40
DELAY = 1000
"""Ticks that messages may be late by."""


def main(home: Path, source: str, target: str) -> None:
    """Run both."""
    matcher = compile_query(QUERY).spark(id="n", shards=2, watermark=DELAY)
    with session("local[2]") as spark:
        running = {
            name: start(
                matcher,
                read_topics(spark, source, at_once=AT_ONCE),
                to=to,
                checkpoint=home / f"{name}.checkpoint",
                until_done=True,
            )
            for name, to in ((FOLDER, home / FOLDER), (TOPIC, target))
        }
        run(running, home)


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
