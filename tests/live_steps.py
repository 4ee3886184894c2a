"""Live inputs in tests: what is written to them is written while the run waits, one step each time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa


class Steps:
    """What happens while a live input waits: a step each time nothing more is there; after the last one it ends.

    Parameters
    ----------
    source : LiveSource
    steps : sequence of callable
    """

    def __init__(self, source: Any, steps: Sequence[Callable[[], object]]) -> None:
        self._steps = [*steps]
        self._source = source
        source.pace.wait = self.next

    def next(self, seconds: float = 0) -> None:
        """Do the next step."""
        if self._steps:
            self._steps.pop(0)()
        else:
            self._source.stop()


def rows(source: Any, *steps: Callable[[], object]) -> list[dict[str, Any]]:
    """All events of a live input into which steps write while it waits."""
    Steps(source, steps)
    source.settle(lambda schema: schema)
    return [row for batch in source.batches() for row in batch.to_pylist()]


def appends(path: Any, text: str) -> Callable[[], object]:
    """A step that writes text behind what is there."""

    def step() -> None:
        with path.open("a", encoding="utf-8", newline="") as file:
            file.write(text)

    return step


def replaces(path: Any, text: str, old: str = ".1") -> Callable[[], object]:
    """A step that renames a file and writes a new one under its name."""

    def step() -> None:
        path.rename(path.with_name(path.name + old))
        path.write_text(text, encoding="utf-8")

    return step


def lines(tables: list[pa.Table]) -> list[dict[str, Any]]:
    """The rows of tables."""
    return [row for table in tables for row in table.to_pylist()]
