"""A run: the events of a source go through a stage, batch by batch, in order of time.

    source -> order -> stage -> answer

What is pushed, a whole input, and what is still being written go this one way. A *stage* is what a kind of program does
with a batch: one query (``matching.execution``), a set of them (``subscriptions.running``), rules (``rules.runner``).
Who holds a run (a matcher, a set, a run of rules) makes an answer of the parts that it gives.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any, Protocol, TypeVar

import pyarrow as pa

from acep_approx.events.reading.malformed import PushedRows
from acep_approx.events.reading.memory import DICTS_PER_CHUNK
from acep_approx.events.roles import Roles
from acep_approx.events.source import BATCH_ROWS, Source, open_source
from acep_approx.events.stream import EventBatch, as_they_come, read_events

Part = TypeVar("Part", covariant=True)  # noqa: PLC0105


class Stage(Protocol[Part]):
    """What the batches of a stream go through.

    Attributes
    ----------
    wanted : mapping of str to str or None
        Columns for the roles ``time``, ``key``, ``type``, and the ``unit``: as for ``infer_roles``.
    """

    wanted: dict[str, Any]

    @property
    def roles(self) -> Roles | None:
        """Which columns are time, key and type; None before the columns of the events are known."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that must be read."""

    @property
    def arrived(self) -> int:
        """How many events there were so far."""

    @property
    def waits(self) -> bool:
        """Whether events may come in any order."""

    def begin(self, schema: pa.Schema) -> object:
        """Get ready for events of these columns; all stays as it was where they do not fit."""

    def run(self, batch: EventBatch) -> Iterator[Part]:
        """Run a batch: what comes of it, as it is made; all must be taken before the next batch."""


def parts_of(
    stage: Stage[Part],
    source: Source,
    *,
    sort: bool = False,
    skips: bool = False,
    on_batch: Callable[[int], None] | None = None,
) -> Iterator[Part]:
    """Run the events of a source through a stage: what comes of them, as it is made.

    Parameters
    ----------
    stage : Stage
    source : Source
    sort : bool, default False
        Sort the whole input first.
    skips : bool, default False
        Whether the source has the whole stream, of which events that were run are left out.
    on_batch : callable, optional
        Is told the number of events so far, when all of a batch has been taken.

    Raises
    ------
    DataError
        Columns do not fit, rows cannot be read, or time runs backwards; what is wrong with a row says where it stands.
    """
    source.late.check(sort=sort)
    if not len(source.schema):  # no columns, no events: an empty list
        return
    if stage.roles is None:
        source.settle(stage.begin)
    else:
        stage.begin(source.schema)
    source.expect(stage.columns)
    with source.locating():
        for batch in _batches(stage, source, sort=sort, skips=skips):
            yield from stage.run(batch)
            if on_batch is not None:
                on_batch(stage.arrived + source.late.count)


def _batches(stage: Stage[Any], source: Source, *, sort: bool, skips: bool) -> Iterator[EventBatch]:
    roles, first = stage.roles, stage.arrived
    assert roles is not None, "it has begun"
    if stage.waits and not sort:
        came = as_they_come(source, roles, list(stage.columns), BATCH_ROWS, 0 if skips else first)
        return _from(first, came) if skips else came
    if not skips:
        return read_events(source, roles, columns=stage.columns, sort=sort, first_row=first)
    return _from(first, read_events(source, roles, columns=stage.columns, sort=sort))


def _from(first: int, batches: Iterator[EventBatch]) -> Iterator[EventBatch]:
    """The events from a row on."""
    for batch in batches:
        done = min(max(first - batch.first_row, 0), len(batch))
        if done < len(batch):
            yield batch.slice(done, len(batch) - done) if done else batch


class Run:
    """What events are pushed into.

    Attributes
    ----------
    malformed : PushedRows
        What happens to rows that cannot be used, and how many were left out.
    """

    @cached_property
    def malformed(self) -> PushedRows:
        """What happens to rows that cannot be used, and how many were left out."""
        return PushedRows()

    def _opened(self, events: Any, stage: Stage[Any]) -> Source:
        """Events that are pushed, as a source."""
        if isinstance(events, Source):
            return events
        if isinstance(events, list) and len(events) <= DICTS_PER_CHUNK and stage.roles is not None:
            events = iter(events)  # they are read here and now: columns are made once
        time = stage.wanted.get("time") if stage.roles is None else stage.roles.time
        source = open_source(events, time=time, on_malformed=self.malformed.policy)
        source.count_in(self.malformed)
        return source
