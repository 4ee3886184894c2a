"""A query, or a set of queries, over events that are still being written: results as they come, and checkpoints."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa

from acep_approx.api.matcher import Matcher
from acep_approx.errors import UsageError
from acep_approx.events.live.kafka_address import PARTITION, is_address, parse_address
from acep_approx.events.live.source import LiveSource, follow, refuse_to_read
from acep_approx.events.live.text import seconds
from acep_approx.events.reading.layout import Layout
from acep_approx.events.source import Source
from acep_approx.events.usable_rows import pushed
from acep_approx.live.checkpoint import Checkpoint, CheckpointFolder, Outputs
from acep_approx.revisions.matcher import PROGRESSED, RevisedMatcher
from acep_approx.revisions.partitions import Partitions
from acep_approx.revisions.request import REVISING
from acep_approx.run.left_out import written

EVERY = "10 s"
"""Between two checkpoints."""


@dataclass(frozen=True)
class Checkpointing:
    """How a run lasts.

    Parameters
    ----------
    checkpoint : str or Path, optional
        The folder that keeps where it stands. Default: nowhere.
    checkpoint_every : str or float
        How often that is written; at the end, too.
    finish : bool
        With a checkpoint: when the input has ended no more events will come, so what waits for the end of a window is
        decided. Without a checkpoint that is so in any case.
    """

    checkpoint: str | Path | None = None
    checkpoint_every: str | float = EVERY
    finish: bool = False

    def check(self) -> None:
        """Refuse what makes no sense (``ACEP-U139``, ``ACEP-U142``)."""
        seconds("checkpoint_every", self.checkpoint_every)
        if self.finish and self.checkpoint is None:
            raise UsageError(
                "finish= is of use with checkpoint= only",
                code="ACEP-U139",
                hint="leave it out: without a checkpoint the end of the run is the end of the stream",
            )


class LiveTarget(Protocol):
    """What is run over the events: a query, or a set of them."""

    def asked(self) -> dict[str, Any]:
        """What it is to do, as JSON: a checkpoint of something else is refused."""
        ...

    def taken_up(self, state: bytes) -> None:
        """Go on from a state."""
        ...

    def bind(self, source: LiveSource) -> Any:
        """Get ready for the columns of the events; the results of none of them. None where there are no columns."""
        ...

    def columns(self, names: Sequence[str]) -> list[str]:
        """Which of the columns are read."""
        ...

    def use(self, source: LiveSource) -> None:
        """Tell the input which column is the time; after ``bind`` or ``taken_up``."""
        ...

    @property
    def arrived(self) -> int:
        """How many events were pushed, also by the runs before."""
        ...

    def push(self, batch: pa.RecordBatch) -> Any:
        """The results of more events."""
        ...

    def finish(self) -> Any:
        """The stream has ended."""
        ...

    def state(self) -> bytes:
        """Where it stands."""
        ...

    @property
    def rejected(self) -> Callable[[], pa.Table] | None:
        """Gives the rows that were left out since it was asked last, if there may be such."""
        ...


@dataclass
class LiveRun:
    """A run over events that are still being written; made by ``Query.follow`` and ``QuerySet.follow``.

    Iterate over it to run it. The results of a batch are taken to be dealt with when the next ones are asked for: a
    checkpoint that is written after that has them. So after a stop results may come once more that were put out since
    the last checkpoint, and none is lost; ``outputs`` keeps files that have each exactly once.

    Parameters
    ----------
    place : str or Path
        See ``events.follow``.
    runs : LiveTarget
    checkpointing : Checkpointing
    reading : dict
        Arguments of ``events.follow``.
    also_asked : dict
        What else must be the same for a run to go on, as JSON.

    Attributes
    ----------
    source : LiveSource
        The input.
    outputs : Outputs
        Files that grow, which are cut back to the last checkpoint.
    goes_on : bool
        Whether it goes on from a checkpoint.
    before : dict of str to int
        Numbers of the runs before, as ``counts`` gave them.
    counts : callable
        Gives numbers to be kept in checkpoints.
    on_border : callable or None
        Called between batches, and while nothing comes.
    """

    place: str | Path
    runs: LiveTarget
    checkpointing: Checkpointing
    reading: dict[str, Any] = field(repr=False)  # settings of the client of Kafka are among them
    also_asked: dict[str, Any] = field(default_factory=dict)
    counts: Callable[[], dict[str, int]] = dict
    on_border: Callable[[], None] | None = None

    def __post_init__(self) -> None:
        self.checkpointing.check()
        self._every = seconds("checkpoint_every", self.checkpointing.checkpoint_every)
        self._late: str | Path | None = self.reading.pop("late", None) if self.runs.rejected is not None else None
        if not is_address(self.place):
            late = None if self._late is None else Path(self._late)
            refuse_to_read(Path(self.place), late, "late events", "ACEP-U114")
        self._asked = {"input": _input(self.place), **self.runs.asked(), **self.also_asked}
        self._open = ExitStack()
        self._folder: CheckpointFolder | None = None
        self._is_bound = False
        self._written = time.monotonic()
        self._last: dict[str, Any] | None = None
        try:
            self._begin()
        except BaseException:
            self._open.close()
            raise

    def _begin(self) -> None:
        found: Checkpoint | None = None
        if self.checkpointing.checkpoint is not None:
            self._folder = self._open.enter_context(CheckpointFolder(Path(self.checkpointing.checkpoint)))
            found = self._folder.read()
        if found is not None and self._folder is not None:
            self._folder.check(_with_input(found, self.place, self._asked["input"]), self._asked)
            if found.state is not None:
                self.runs.taken_up(found.state)
                self._is_bound = True
        self.goes_on = self._is_bound
        self.before = {} if found is None else found.counts
        self.outputs = Outputs(None if found is None else found.outputs)
        self._open.callback(self.outputs.close)
        place = None if found is None else found.place
        opens: dict[str, Any] = {} if self._folder is None else {"opens": self.outputs.opener("rejects")}
        try:
            self.source = follow(self.place, resumed=place, **self.reading, **opens)
        except ValueError as error:
            if self._folder is None:
                raise
            raise self._folder.damaged() from error
        self._open.callback(self.source.close)
        self.source.pace.on_border = self._border

    def stop(self) -> None:
        """Let the run end at the next border, with a checkpoint; may be called from a handler, or another thread."""
        self.source.stop()

    def close(self) -> None:
        """Let go of the input, the files and the checkpoint; needed only where it is not iterated over."""
        self._open.close()

    def __iter__(self) -> Iterator[Any]:
        for results in self.results():
            if len(results):
                yield results

    def results(self) -> Iterator[Any]:
        """The results of each batch, also where there are none; of a run that begins those of no events come first."""
        with self._open:
            if not self._is_bound:
                nothing = self.runs.bind(self.source)
                if nothing is None:  # the input has ended before the first event
                    return
                self._is_bound = True
                yield nothing
            self.runs.use(self.source)
            with self._taking() as take:
                for batch in self.source.batches(self.runs.columns(self.source.schema.names)):
                    found = pushed(self.runs.push, batch, self.source, self.runs.arrived)
                    take()
                    yield found
                if self._folder is None or self.checkpointing.finish:
                    yield self.runs.finish()
                    take()
                self._write(has_ended=self.checkpointing.finish)

    def _taking(self) -> AbstractContextManager[Callable[[], None]]:
        """What takes the rows that were left out."""
        rejected = self.runs.rejected
        if rejected is None:
            return nullcontext(lambda: None)
        return written(self._late, self.source.schema, rejected, self.outputs.opener("late"))

    # --- checkpoints ------------------------------------------------------------------------------------------

    def _border(self) -> None:
        """All results so far have been taken."""
        if self._folder is not None and self._is_bound and time.monotonic() - self._written >= self._every:
            self._write()
        if self.on_border is not None:
            self.on_border()

    def _write(self, *, has_ended: bool = False) -> None:
        if self._folder is None:
            return
        self._written = time.monotonic()
        place = self.source.place()
        if place is None or (place == self._last and not has_ended):
            return
        self._last = place
        lengths = self.outputs.lengths()  # before the checkpoint: what it counts must be there for good
        self._folder.write(Checkpoint(self._asked, self.runs.state(), place, lengths, self.counts(), has_ended))


def _input(place: str | Path) -> str:
    """What names an input, wherever its brokers are."""
    if not is_address(place):
        return str(place)
    address = parse_address(str(place))
    return f"topic {address.topic}" + (f", partitions {address.partitions}" if address.partitions else "")


def _with_input(found: Checkpoint, place: str | Path, named: str) -> Checkpoint:
    """A checkpoint as if it were of an input that names those partitions which it has read of a whole topic.

    So a run can go on without partitions that were added.
    """
    if not is_address(place) or found.place is None:
        return found
    address = parse_address(str(place))
    offsets = found.place.get("place", {}).get("offsets", {})
    is_whole = found.asked.get("input") == f"topic {address.topic}"
    if not is_whole or {str(number) for number in address.partitions} != set(offsets):
        return found
    return replace(found, asked=found.asked | {"input": named})


@dataclass
class LiveQuery:
    """One query over live events.

    Parameters
    ----------
    query : Query
    options : dict
        Of ``Query.matcher``.
    keeps_whole : bool
        Whether all columns are read, since rows that are left out are written.

    Attributes
    ----------
    partitions : Partitions or None
        Those of a topic for which the watermark waits, where events may be late.
    """

    query: Any
    options: dict[str, Any]
    keeps_whole: bool = False

    def __post_init__(self) -> None:
        self.matcher = self._fresh()
        self.partitions: Partitions | None = None

    def _fresh(self) -> Matcher | RevisedMatcher:
        made: Matcher | RevisedMatcher = self.query.matcher(**self.options)
        return made

    def asked(self) -> dict[str, Any]:
        """What was asked for; the query itself stands in the state."""
        given = {name: value for name, value in self.options.items() if value is not None}
        return {"options": {name: _plain(value) for name, value in sorted(given.items())}}

    def taken_up(self, state: bytes) -> None:
        """Go on from a state."""
        self.matcher = self.query.from_state(state, history=self.options.get("history"))

    def bind(self, source: LiveSource) -> pa.Table | None:
        """Get ready for the columns of the events."""

        def bound(schema: pa.Schema) -> tuple[Matcher | RevisedMatcher, pa.Table] | None:
            if not len(schema):
                return None
            matcher = self._fresh()
            return matcher, matcher.push(schema.empty_table())

        found = source.settle(bound)
        if found is None:
            return None
        self.matcher, nothing = found
        return nothing

    def columns(self, names: Sequence[str]) -> list[str]:
        """Those that the query reads."""
        return list(names) if self.keeps_whole else columns_read(self.matcher, names)

    def use(self, source: LiveSource) -> None:
        """Tell the input which column is the time."""
        use_times(self.matcher, source)
        if isinstance(self.matcher, RevisedMatcher):
            self.partitions = Partitions(self.matcher, source)

    @property
    def arrived(self) -> int:
        """How many events were pushed, also by the runs before."""
        matcher = self.matcher
        return matcher.rows if isinstance(matcher, RevisedMatcher) else matcher.progress.events

    def push(self, batch: pa.RecordBatch) -> pa.Table:
        """The results of more events."""
        return (self.partitions or self.matcher).push(batch)

    def finish(self) -> pa.Table:
        """The stream has ended."""
        return self.matcher.finish()

    def state(self) -> bytes:
        """Where it stands."""
        return self.matcher.state_bytes()

    @property
    def rejected(self) -> Callable[[], pa.Table] | None:
        """Gives the rows that were left out since it was asked last."""
        return None if isinstance(self.matcher, Matcher) else self.matcher.rejected


def follow_query(
    query: Any,
    place: str | Path,
    checkpointing: Checkpointing,
    reading: dict[str, Any],
    options: dict[str, Any],
    **more: Any,
) -> LiveRun:
    """A query over live events; see ``Query.follow``.

    Of a topic of Kafka each partition is a source of its own, unless ``source=`` says otherwise.
    """
    written = {name: value for name, value in options.items() if name in Layout.__dataclass_fields__ and name != "time"}
    reading = {"time": options.get("time")} | reading | written
    options = {name: value for name, value in options.items() if name not in written or name == "time_format"}
    revising = {name for name in REVISING if options.get(name) is not None}
    if revising and is_address(place) and "source" not in revising:
        options = options | {"source": PARTITION}
    if not revising and reading.get("late") is not None:
        raise UsageError(
            "late= is of use where events may be late only",
            code="ACEP-U139",
            hint="say how late: --watermark '10 s' (watermark= in Python)",
        )
    runs = LiveQuery(query, options, keeps_whole=reading.get("late") is not None)
    return LiveRun(place, runs, checkpointing, {**reading, "is_in_order": not revising}, **more)


def use_times(matcher: Matcher | RevisedMatcher, source: Source) -> None:
    """Tell an input which column is the time for a matcher that knows the columns."""
    pipeline = matcher.execution.pipeline if isinstance(matcher, RevisedMatcher) else matcher.pipeline
    assert pipeline is not None, "there are columns"
    source.use(pipeline.roles.read_in(pipeline.columns))


def columns_read(matcher: Matcher | RevisedMatcher, names: Sequence[str]) -> list[str]:
    """Which columns of an input a matcher reads that knows them: all only where rows are taken back by their content.

    Parameters
    ----------
    matcher : Matcher or RevisedMatcher
    names : sequence of str
        The columns that there are.
    """
    if isinstance(matcher, RevisedMatcher):
        stream, asked = matcher.stream, matcher.asked
        assert stream is not None, "there are columns"
        if stream.is_by_content:
            return list(names)
        wanted = {*stream.columns, stream.op, asked.source, asked.sequence, *PROGRESSED}
    else:
        assert matcher.pipeline is not None, "there are columns"
        wanted = {*matcher.pipeline.columns, matcher.pipeline.roles.time}
    return [name for name in names if name in wanted]


def _plain(value: Any) -> Any:
    return value if isinstance(value, str | int | float | bool) else str(value)


class SteppedSet(Protocol):
    """What a set of queries does, as far as a live run asks for it."""

    @property
    def arrived(self) -> int:
        """How many events were pushed."""
        ...

    def push(self, events: Any) -> Any:
        """The results of more events."""
        ...

    def use(self, source: LiveSource, *, keeps_whole: bool) -> None:
        """Tell an input which column is the time, and whether events that are left out are wanted whole."""
        ...

    def finish(self) -> Any:
        """The stream has ended."""
        ...

    def state_bytes(self) -> bytes:
        """Where it stands."""
        ...

    def take_up(self, state: bytes) -> None:
        """Go on from a state of the same queries."""
        ...

    def fresh_state(self) -> bytes:
        """Where it stands before any event: which queries there are, and how they read events."""
        ...

    def rejected(self) -> pa.Table:
        """The rows that were left out since the last call, with the reason."""
        ...


@dataclass
class LiveQuerySet:
    """A set over live events.

    Parameters
    ----------
    desk : QuerySet
    on_schema : callable, optional
        Told of the columns before the first event is pushed.
    keeps_whole : bool
        Whether events that come late are written, with all their columns.
    """

    desk: SteppedSet
    on_schema: Callable[[pa.Schema], None] | None = None
    keeps_whole: bool = False

    @property
    def rejected(self) -> Callable[[], pa.Table] | None:
        """Gives the rows that were left out since it was asked last, if they are to be written."""
        return self.desk.rejected if self.keeps_whole else None

    def asked(self) -> dict[str, Any]:
        """Which queries there are."""
        return {"queries": hashlib.sha256(self.desk.fresh_state()).hexdigest()[:16]}

    def taken_up(self, state: bytes) -> None:
        """Go on from a state."""
        self.desk.take_up(state)

    def bind(self, source: LiveSource) -> Any:
        """Get ready for the columns of the events."""
        schema = source.schema
        if not len(schema):
            return None
        if self.on_schema is not None:
            self.on_schema(schema)
        return self.desk.push(schema.empty_table())

    def columns(self, names: Sequence[str]) -> list[str]:
        """All of them: queries may come that read others."""
        return list(names)

    def use(self, source: LiveSource) -> None:
        """Tell the input which column is the time."""
        self.desk.use(source, keeps_whole=self.keeps_whole)

    @property
    def arrived(self) -> int:
        """How many events were pushed, also by the runs before."""
        return self.desk.arrived

    def push(self, batch: pa.RecordBatch) -> Any:
        """The results of more events."""
        return self.desk.push(batch)

    def finish(self) -> Any:
        """The stream has ended."""
        return self.desk.finish()

    def state(self) -> bytes:
        """Where it stands."""
        return self.desk.state_bytes()
