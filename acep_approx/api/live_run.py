"""A query, or a set of queries, over events that are still being written: results as they come, and checkpoints."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pyarrow as pa

from acep_approx.errors import UsageError
from acep_approx.events.live.kafka_address import PARTITION, is_address, parse_address
from acep_approx.events.live.source import follow, refuse_to_read
from acep_approx.events.live.text import seconds
from acep_approx.events.reading.layout import Layout
from acep_approx.events.source import Source
from acep_approx.live.checkpoint import Checkpoint, CheckpointFolder, Outputs
from acep_approx.revisions.partitions import PartitionFeed
from acep_approx.revisions.request import REVISING
from acep_approx.run.run import Feed, Run

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
    feed : Feed
        Pushes the events into a run.
    checkpointing : Checkpointing
    reading : dict
        Arguments of ``events.follow``.
    asked : dict
        What the run is to do, as JSON: a checkpoint of something else is refused.

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
    feed: Feed
    checkpointing: Checkpointing
    reading: dict[str, Any] = field(repr=False)  # settings of the client of Kafka are among them
    asked: dict[str, Any]
    counts: Callable[[], dict[str, int]] = dict
    on_border: Callable[[], None] | None = None

    def __post_init__(self) -> None:
        self.checkpointing.check()
        self._every = seconds("checkpoint_every", self.checkpointing.checkpoint_every)
        if not is_address(self.place):
            refuse_to_read(Path(self.place), self.feed.late, "late events", "ACEP-U114")
        self.asked = {"input": _input(self.place), **self.asked}
        self._open = ExitStack()
        self._folder: CheckpointFolder | None = None
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
            self._folder.check(_with_input(found, self.place, self.asked["input"]), self.asked)
            if found.state is not None:
                self.feed.take_up(found.state)
        self.goes_on = self.feed.is_bound
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
        self._open.callback(self.feed.close)
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
            finish = self._folder is None or self.checkpointing.finish
            yield from self.feed.results(self.source, finish=finish, opens=self.outputs.opener("late"))
            if self.feed.is_bound:
                self._write(has_ended=self.checkpointing.finish)

    # --- checkpoints ------------------------------------------------------------------------------------------

    def _border(self) -> None:
        """All results so far have been taken."""
        if self._folder is not None and self.feed.is_bound and time.monotonic() - self._written >= self._every:
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
        state = self.feed.run.state_bytes()
        self._folder.write(Checkpoint(self.asked, state, place, lengths, self.counts(), has_ended))


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


def query_feed(query: Any, options: dict[str, Any], late: str | Path | None) -> Feed:
    """What pushes events into a matcher of a query that is made with these options; ``late`` as for ``Feed``."""
    run = query.matcher(**options)

    def bound(schema: pa.Schema) -> tuple[Run, pa.Table] | None:
        if not len(schema):
            return None
        made = query.matcher(**options)
        return made, made.push(schema.empty_table())

    kind = PartitionFeed if options.get("source") == PARTITION else Feed
    return kind(
        run,
        lambda source: source.settle(bound),
        lambda state: query.from_state(state, history=options.get("history")),
        None if late is None else Path(late),
    )


def follow_query(
    query: Any,
    place: str | Path,
    checkpointing: Checkpointing,
    reading: dict[str, Any],
    options: dict[str, Any],
    also_asked: Mapping[str, Any] = MappingProxyType({}),
) -> LiveRun:
    """A query over live events; see ``Query.follow``.

    Of a topic of Kafka each partition is a source of its own, unless ``source=`` says otherwise.
    """
    written = {name: value for name, value in options.items() if name in Layout.__dataclass_fields__ and name != "time"}
    reading = {"time": options.get("time")} | reading | written
    late = reading.pop("late", None)
    options = {name: value for name, value in options.items() if name not in written or name == "time_format"}
    revising = {name for name in REVISING if options.get(name) is not None}
    if revising and is_address(place) and "source" not in revising:
        options = options | {"source": PARTITION}
    if not revising and late is not None:
        raise UsageError(
            "late= is of use where events may be late only",
            code="ACEP-U139",
            hint="say how late: --watermark '10 s' (watermark= in Python)",
        )
    feed = query_feed(query, options, late)
    given = {name: _plain(value) for name, value in sorted(options.items()) if value is not None}
    given |= {"history": True} if "history" in given else {}  # the state tells whether it is the same
    asked = {"options": given, **also_asked}  # the query itself stands in the state
    return LiveRun(place, feed, checkpointing, reading | {"is_in_order": not revising}, asked)


def follow_set(
    desk: Any,
    place: str | Path,
    checkpointing: Checkpointing,
    reading: dict[str, Any],
    asked: dict[str, Any],
    on_schema: Callable[[pa.Schema], None] | None,
) -> LiveRun:
    """A set of queries over live events; see ``QuerySet.follow``."""

    def bind(source: Source) -> tuple[Run, Any] | None:
        if not len(schema := source.schema):
            return None
        if on_schema is not None:
            on_schema(schema)
        return desk, desk.push(schema.empty_table())

    lateness = desk.stage.lateness
    late = None if lateness is None else reading.pop("late", None)
    desk.keeps_whole = late is not None
    by = None if lateness is None else lateness.source
    kind = PartitionFeed if by == PARTITION else Feed
    feed = kind(desk, bind, desk.take_up, None if late is None else Path(late), keeps_rejected=True)
    return LiveRun(place, feed, checkpointing, reading | {"is_in_order": by is None}, asked)


def _plain(value: Any) -> Any:
    return value if isinstance(value, str | int | float | bool) else str(value)
