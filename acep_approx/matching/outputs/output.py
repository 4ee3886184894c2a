"""What an output is: an engine with its way of putting what it finds into tables.

Which outputs there are, and what each of them is made by, is said in ``matching.choice``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from typing import NamedTuple, NoReturn

import numpy as np
import pyarrow as pa

from acep_approx.arrays import Ints, zeros
from acep_approx.engines.batches import Grouped
from acep_approx.engines.columns import Listed
from acep_approx.engines.engine import NO_WORDS, Engine
from acep_approx.engines.runs.runs import Runs
from acep_approx.events.columns import taken, to_arrow
from acep_approx.events.keys import key_type
from acep_approx.events.stream import EventBatch
from acep_approx.events.time import shown_type, to_datetime
from acep_approx.matching.outputs.bind import BoundEvents, Take
from acep_approx.matching.outputs.known import KnownMatches
from acep_approx.matching.outputs.tables import count_columns
from acep_approx.matching.prepare import Preparer
from acep_approx.matching.stream_batch import StreamBatch
from acep_approx.matching.tick_places import TickPlaces


class Points(NamedTuple):
    """Match points as columns: ``row`` and ``tick`` of the event, the latest ``start`` of the fewest ``errors``."""

    slot: Ints
    row: Ints
    tick: Ints
    start: Ints
    errors: Ints

    def take(self, which: Ints) -> Points:
        """Some of them, in the order given."""
        return Points(*(column[which] for column in self))


class Completed(NamedTuple):
    """Hits as columns: the key slot and the errors of each, and the time of its event as it is shown."""

    slot: Ints
    errors: Ints
    end: Ints

    def errors_of(self, listed: Listed) -> Ints:
        """The errors of the matches of these hits."""
        return self.errors[listed.hit] if self.errors.any() else zeros(len(listed))


NO_POINTS = Points(NO_WORDS, NO_WORDS, NO_WORDS, NO_WORDS, NO_WORDS)


class Output(ABC):
    """Runs grouped events through an engine, and puts what it finds into tables.

    Most of it has a default: that of an output of which nothing waits, and which keeps nothing beside the engine.

    Attributes
    ----------
    engine : Engine
    finder : KnownMatches or None
        What makes matches of what the engine finds, and keeps those that wait.
    tick_places : TickPlaces or None
        Where places count times instead of events.
    forgets : bool
        Whether events are forgotten as windows close; else who brings keys back says which ones he needs no more.
    groups : bool
        Whether all matches of one event must be seen together.
    """

    engine: Engine
    finder: KnownMatches | None = None
    tick_places: TickPlaces | None = None
    forgets = True
    groups = False

    @abstractmethod
    def run(self, events: Grouped, batch: StreamBatch, floors: Ints) -> Iterator[pa.Table]:
        """Run grouped events and give their results, in order of the rows that complete them."""

    @abstractmethod
    def nothing(self) -> pa.Table:
        """An empty table with the columns of the results."""

    # --- what waits for the end of windows ------------------------------------------------------------------

    def pass_time(self, tick: int) -> Iterator[pa.Table]:  # noqa: ARG002
        """What waited for windows that end before ``tick``, which the stream has reached."""
        return iter(())

    @property
    def waits_until(self) -> int | None:
        """The tick that ``pass_time`` must be given for the next match that waits; None where none does."""
        return None

    def finish(self) -> Iterator[pa.Table]:
        """What was still waiting at the end of the stream."""
        return iter(())

    def as_if_ended(self) -> list[pa.Table]:
        """What ``finish`` would give if the stream ended now; it waits on."""
        return []

    def end_keys(self, slots: Ints) -> Iterator[pa.Table]:  # noqa: ARG002
        """What waited in slots of keys whose streams have ended; nothing of them is held any more."""
        return iter(())

    def slots(self) -> Ints:
        """Key slots that something still waits in, though they may have no runs."""
        return NO_WORDS

    def newest(self) -> Ints:
        """Per key slot the latest start of any run; below every tick where there is none."""
        return self.engine.newest()

    def clear(self, slots: Ints) -> None:
        """Forget the runs of some key slots."""
        self.engine.clear(slots)

    # --- what it is told ------------------------------------------------------------------------------------

    def know(self, schema: pa.Schema) -> None:
        """The columns of the events have got wider types; raises what ``MachineMatches.check`` does."""

    def go_by_key(self) -> None:
        """Let what is remembered of times be of each key, so that one key can be brought back without the others."""

    def share_events(self) -> None:
        """An event can be in several key slots: many queries run as one."""

    def give_up_after(self, steps: int) -> None:
        """Let ``run`` raise ``TooManyStepsError`` when the engine has taken so many run-steps."""

    # --- what few of them can -------------------------------------------------------------------------------

    @property
    def points_engine(self) -> Runs | None:
        """The engine that tells match points without a list of matches; None where matches are listed."""
        return None

    def points(self, events: Grouped, batch: StreamBatch, floors: Ints) -> Points:  # noqa: ARG002
        """Run grouped events and give the points that they make, slot by slot; where there is a ``points_engine``."""
        self._cannot()

    def points_table(self, points: Points) -> pa.Table:  # noqa: ARG002
        """Such points as a table."""
        self._cannot()

    def _cannot(self) -> NoReturn:
        raise AssertionError("another output was asked for")

    # --- state ----------------------------------------------------------------------------------------------

    def reachable(self, floors: Ints) -> Ints:
        """All events that something still points to which started at ``floors`` or later."""
        return self.engine.live_places(floors)

    def arrays(self) -> dict[str, Ints]:
        """The state of what is not in the engine, as arrays."""
        return {}

    def restore(self, arrays: dict[str, Ints]) -> None:
        """Take over a state; the engine has its own already, and so have the recent events.

        Raises
        ------
        DamagedError
            It is not as it can have been written.
        """


NO_EVENTS = Grouped.none()
NO_BATCH = EventBatch(0, np.zeros(0, np.int64), pa.RecordBatch.from_pylist([], schema=pa.schema([])))


NO_COLUMNS: Mapping[str, pa.Array] = {}


class Stamps:
    """Puts ticks into columns as what they are: times or integers; key slots as their values; and events."""

    is_raw = False
    """Whether results have numbers in the places of what they stand for."""

    def __init__(self, preparer: Preparer, schema: pa.Schema, events: BoundEvents, *, is_time: bool) -> None:
        self.preparer = preparer
        self.events = events
        self.is_time = is_time
        self.know(schema)

    def know(self, schema: pa.Schema) -> None:
        """Take over the schema of the events."""
        roles = self.events.roles
        self._time = shown_type(schema.field(roles.time).type, roles.time_format) if self.is_time else pa.int64()
        self._empty = {name: pa.nulls(0, key_type(schema.field(name).type)) for name in self.preparer.shown_columns}

    def time(self, ticks: Ints) -> pa.Array:
        """Ticks as timestamps with the zone of the events' times, in microseconds, where they are times."""
        return to_datetime(ticks, self._time) if self.is_time else to_arrow(ticks)

    def keys(self, slots: Ints) -> dict[str, pa.Array]:
        """One column per equivalence attribute."""
        if not self._empty or not len(slots):
            return self._empty
        return dict(zip(self._empty, self.preparer.keys.values(slots), strict=False))

    def keys_of(self, hits: Completed, listed: Listed) -> dict[str, pa.Array]:
        """``keys`` of the matches of hits."""
        return self.keys(hits.slot[listed.hit]) if self._empty else self._empty

    def matches(
        self, hits: Completed, listed: Listed, start: Ints, errors: Ints, described: Mapping[str, pa.Array]
    ) -> pa.Table:
        """Matches of hits as a table: key, errors, start, end, and how they are ``described``."""
        columns = {
            **self.keys_of(hits, listed),
            "errors": to_arrow(errors),
            "start": self.time(start),
            "end": self.time(taken(hits.end, listed.hit)),
        }
        return pa.table({**columns, **described})

    def points(
        self, points: Points, end: pa.Array, ids: Ints, take: Take, more: Mapping[str, pa.Array] = NO_COLUMNS
    ) -> pa.Table:
        """Match points as a table: key, errors, start, ``end``, what stands for the events of these ``ids``, and more.

        In a count window instead of start: span, in events, and position, the number of the event in its partition.
        """
        extent = {"start": self.time(points.start)}
        if self.preparer.is_count:
            position = self.preparer.positions(points.slot, points.tick)
            extent = {"span": to_arrow(points.tick - points.start), "position": to_arrow(position)}
        columns = {**self.keys(points.slot), "errors": to_arrow(points.errors), **extent, "end": end}
        return pa.table({**columns, **self.events.column(ids, take, [*columns, *more]), **more})

    def counts(self, slot: Ints, errors: Ints, end: pa.Array, ids: Ints, take: Take, matches: Ints) -> pa.Table:
        """Numbers of ``matches`` of events as a table: key, errors, ``end``, event, matches, at_least."""
        columns = {**self.keys(slot), "errors": to_arrow(errors), "end": end}
        counted = count_columns(matches)
        return pa.table({**columns, **self.events.column(ids, take, [*columns, *counted]), **counted})


SLOT = " slot"
"""The column of key slots in raw results: no name of the query language has a blank."""


class RawStamps(Stamps):
    """Leaves ticks and key slots as they are: for who holds results against each other before they are put out."""

    is_raw = True

    def time(self, ticks: Ints) -> pa.Array:
        """Ticks as integers."""
        return to_arrow(ticks)

    def keys(self, slots: Ints) -> dict[str, pa.Array]:
        """One column of slots."""
        return {SLOT: to_arrow(slots)}

    def keys_of(self, hits: Completed, listed: Listed) -> dict[str, pa.Array]:
        """The slots of the matches of hits."""
        return self.keys(hits.slot[listed.hit])
