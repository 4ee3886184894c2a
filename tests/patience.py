"""Waiting and counting: no test asserts how long something takes, for another machine is slower, or busy."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

PATIENCE = 300
"""Seconds after which what is awaited is taken to hang. Far more than it takes on any machine, and less than a test may
take (``timeout`` in pyproject.toml)."""


def until(condition: Callable[[], Any], *, pause: float = 0.02, patience: float = PATIENCE) -> Any:
    """Wait for something to become true, and return it; a failure where it never does."""
    deadline = time.monotonic() + patience
    while not (found := condition()):
        assert time.monotonic() < deadline, "what is awaited does not come"
        time.sleep(pause)
    return found


def ended(stream: Any) -> None:
    """Wait for the end of a stream of Spark; one that does not come to it is stopped, and is a failure."""
    try:
        assert stream.awaitTermination(PATIENCE), "the stream does not end"
    finally:
        stream.stop()


def calls(work: Callable[[], Any]) -> int:
    """How many functions ``work`` calls, those of Python's own included: a measure of work that no load changes."""
    seen: Counter[str] = Counter()
    sys.setprofile(lambda _frame, event, _argument: seen.update((event,)))
    try:
        work()
    finally:
        sys.setprofile(None)
    return seen["call"] + seen["c_call"]
