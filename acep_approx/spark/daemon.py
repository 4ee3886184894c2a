"""The process that Spark forks its Python workers from, with the matcher and its kernels loaded before the first fork.

Named by ``spark.python.daemon.module``; Spark runs it with ``python -m``.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

EVENTS = [{"ts": 1, "type": "A", "key": 1, "x": 1.0}, {"ts": 2, "type": "B", "key": 1, "x": 2.0}]
QUERIES = (
    "PATTERN SEQ(A a, B b) WHERE [key] WITHIN 10",
    "PATTERN SEQ(A a, B b) WHERE [key] AND a.x < b.x WITHIN 10",
)
"""One for each engine."""


def preload() -> None:
    """Load the matcher and its kernels, where they have been compiled before; else see to it that they are."""
    from acep_approx.events.source import open_source
    from acep_approx.jit.tiers import load_at_once
    from acep_approx.matching.execution import Execution
    from acep_approx.planning.planner import plan
    from acep_approx.query.parser import parse
    from acep_approx.run.run import parts_of

    load_at_once()
    for query in QUERIES:
        execution = Execution(plan(parse(query)))
        list(parts_of(execution, open_source(EVENTS)))
        execution.finish()


def unless_nobody_listens(serve: Callable[..., int]) -> Callable[..., int]:
    """What serves a task, without a trace where Spark has given the task up: a stream that is stopped does that."""

    def quietly(*args: object) -> int:
        try:
            return serve(*args)
        except ConnectionError:
            return 1

    return quietly


if __name__ == "__main__":
    from pyspark import daemon

    daemon.worker = unless_nobody_listens(daemon.worker)
    with suppress(Exception):  # it will happen again in a worker, where Spark can tell
        preload()
    daemon.manager()
