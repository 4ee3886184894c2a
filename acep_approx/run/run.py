"""A run: the events of a source go through a stage, batch by batch, in order of time.

    source -> order -> stage -> answer

What is pushed, a whole input, and what is still being written go this one way. A *stage* is what a kind of program does
with a batch: one query (``matching.execution``), a set of them (``subscriptions.running``), rules (``rules.runner``).
Who holds a run (a matcher, a set, a run of rules) makes an answer of the parts that it gives.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol, TypeVar

import pyarrow as pa

from acep_approx.events.reading.malformed import PushedRows
from acep_approx.events.reading.memory import DICTS_PER_CHUNK
from acep_approx.events.reading.python_objects import open_object
from acep_approx.events.roles import Roles
from acep_approx.events.source import BATCH_ROWS, Source, Times, open_source
from acep_approx.events.stream import EventBatch, as_they_come, read_events
from acep_approx.events.usable_rows import pushed
from acep_approx.events.writing.outfile import GrowingFile, OutFile
from acep_approx.run.few import FewEvents
from acep_approx.run.left_out import LATE, written
from acep_approx.run.order import Order
from acep_approx.run.watermarks import NEVER, Held

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
    source: Source | EventBatch,
    *,
    sort: bool = False,
    skips: bool = False,
    on_batch: Callable[[int], None] | None = None,
) -> Iterator[Part]:
    """Run the events of a source through a stage: what comes of them, as it is made.

    Parameters
    ----------
    stage : Stage
    source : Source or EventBatch
        A batch goes on as it is: the stage has begun for its columns.
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
    if isinstance(source, EventBatch):
        yield from stage.run(source)
        if on_batch is not None:
            on_batch(stage.arrived)
        return
    source.late.check(sort=sort)
    if not len(schema := source.schema):  # no columns, no events: an empty list
        return
    if stage.roles is None:
        source.settle(stage.begin)
    else:
        stage.begin(schema)
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
    for batch in batches:
        done = min(max(first - batch.first_row, 0), len(batch))
        if done < len(batch):
            yield batch.slice(done, len(batch) - done) if done else batch


class Run(ABC):
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

    @property
    @abstractmethod
    def stage(self) -> Stage[Any]:
        """What the events go through."""

    @property
    def arrived(self) -> int:
        """How many events were pushed so far, also by the runs before."""
        return self.stage.arrived

    @abstractmethod
    def push(self, events: Any) -> Any:
        """Run more events; gives their results."""

    @abstractmethod
    def finish(self, *, ended: bool = True) -> Any:
        """The stream has ended; gives what waited for that, or with ``ended=False`` what later events cannot change."""

    @abstractmethod
    def state_bytes(self) -> bytes:
        """Where it stands."""

    def use(self, source: Source) -> None:
        """Tell an input which column is the time, once the columns are known."""
        if self.stage.roles is not None:
            source.use(self.stage.roles.read_in(self.stage.columns))

    def reads(self, names: Sequence[str]) -> list[str]:
        """Which columns of an input are read, once they are known: of these names, by default all."""
        return list(names)

    def rejected(self) -> pa.Table:
        """The rows that came late, and were left out since the last call."""
        return pa.table({})

    @cached_property
    def _few(self) -> FewEvents:
        return FewEvents()

    def _at_hand(self, events: Any) -> Source | EventBatch:
        """What is pushed, to be read; a batch that the stage has begun for, where that can be made at once."""
        stage = self.stage
        roles = stage.roles
        if roles is None or (shape := self._few.shape(events, roles)) is None:
            return self._opened(events)
        stage.begin(shape.schema)
        batch = self._few.batch(shape, events, roles, stage.columns, stage.arrived)
        return self._opened(events) if batch is None else batch

    def _opened(self, events: Any) -> Source:
        if isinstance(events, Source):
            return events
        roles = self.stage.roles
        if isinstance(events, list) and len(events) <= DICTS_PER_CHUNK and roles is not None:
            # they are read here and now: columns are made once, and nothing that a file could need is looked at
            return Source(open_object(iter(events), self.malformed), self.malformed, times=Times(roles.time))
        time = self.stage.wanted.get("time") if roles is None else roles.time
        source = open_source(events, time=time, on_malformed=self.malformed.policy)
        source.count_in(self.malformed)
        return source


class OrderedRun(Run):
    """A run before which an order stands: events may come late, and those that come too late are left out."""

    @property
    @abstractmethod
    def _order(self) -> Order:
        """What holds events until those before them have come."""

    @property
    def watermark(self) -> int | None:
        """The tick before which no event is taken in any more; None where nothing has moved it yet."""
        order = self._order
        reached = order.floor if order.wait is None else order.wait.watermarks.current
        return None if reached == NEVER else reached

    @property
    def holding(self) -> Held:
        """What holds the watermark back: of several sources those that are furthest behind, and those that are idle."""
        return Held() if self._order.wait is None else self._order.wait.watermarks.holding()

    @property
    def late_count(self) -> int:
        """How many events that were pushed came too late."""
        return self._order.left_out.counts[LATE]

    def rejected(self) -> pa.Table:
        """The events that came too late, since the last call: ``reason``, ``row``, and the columns read."""
        return self._order.left_out.take()

    def late(self) -> pa.Table:
        """The same without the reason."""
        rows = self.rejected()
        return rows.drop_columns(rows.column_names[0]) if rows.num_rows else pa.table({})


@dataclass
class Feed:
    """Pushes the batches of a source into a run, and writes the rows that the run leaves out to a file.

    Parameters
    ----------
    run : Run
        One that has run nothing.
    bind : callable
        Prepares a run for the columns of a source, and returns it with an empty result; None if there are no columns.
    resumed : callable
        Restores a run from a saved state.
    late : Path, optional
        The file that gets the rows left out; all columns are read then.
    keeps_rejected : bool
        Whether the run keeps these rows for ``rejected`` where there is no such file.
    ended : bool
        Whether no event can come behind the end of the source.

    Attributes
    ----------
    is_bound : bool
        Whether the columns are known.
    waits : list
        The rows at which the run began, or ceased, to wait for a part of the input; ascending.
    """

    run: Run
    bind: Callable[[Any], tuple[Run, Any] | None]
    resumed: Callable[[bytes], Run]
    late: Path | None = None
    keeps_rejected: bool = False
    ended: bool = True
    is_bound: bool = False
    waits: list[Any] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._open = ExitStack()

    def take_up(self, state: bytes) -> None:
        """Go on from a state."""
        self.run, self.is_bound = self.resumed(state), True

    def results(
        self, source: Source, *, finish: bool = True, opens: Callable[[Path], OutFile | GrowingFile] = OutFile
    ) -> Iterator[Any]:
        """Yield the results of each batch, also empty ones; a run that begins yields an empty result first.

        Parameters
        ----------
        source : Source
        finish : bool, default True
            Whether the end of the source is that of the stream.
        opens : callable
            Makes the file for rows that are left out; it is whole after ``close``.
        """
        if not self.is_bound:
            found = self.bind(source)
            if found is None:  # no columns, no events
                return
            self.run, nothing = found
            self.is_bound = True
            yield nothing
        run, names = self.run, source.schema.names
        run.use(source)
        take = self._open.enter_context(written(self.late, source.schema, run.rejected, opens))
        for batch in source.batches(run.reads(names) if self.late is None else names):
            results = pushed(lambda rows: self.push(rows, source), batch, source, run.arrived)
            if self.late is not None or not self.keeps_rejected:
                take()
            yield results
        if finish:
            yield run.finish(ended=self.ended)

    def push(self, batch: pa.RecordBatch, source: Source) -> Any:  # noqa: ARG002  (some have news of the source)
        """Push a batch of a source; returns its results."""
        return self.run.push(batch)

    def close(self) -> None:
        """Close the file of the rows that were left out."""
        self._open.close()
