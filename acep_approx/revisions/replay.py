"""A query over a stream that may still change: it runs what comes, and runs again what a change may have touched.

Source: Chandramouli, Goldstein, Maier, PVLDB 3(1) 2010, sections 5.1, C and C.1: an insertion or a deletion takes away
the partial matches that span it, and makes new ones from those before it. Deviations, which are ours: instead of a list
of partial matches for each event there is a snapshot of all keys for each segment of the stream; the keys that a change
touches are brought back to it and run once more; what was put out is remembered, and held against what comes now.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np
import pyarrow as pa

from acep_approx.archive import Scope
from acep_approx.arrays import Bools, Ints
from acep_approx.events.source import BATCH_ROWS
from acep_approx.matching.pipeline import Pipeline
from acep_approx.matching.snapshots import QuerySnapshot
from acep_approx.matching.stream_batch import StreamBatch
from acep_approx.ranges import COUNT, TICK, number_in
from acep_approx.revisions.changelog import Changed, Changelog
from acep_approx.revisions.segments import PlacedEvents, Segment, Tail, slots_in
from acep_approx.run.events import Events, order_of
from acep_approx.run.watermarks import ENDED, NEVER

PIECE, LEAST_PIECE = 1 << 15, 1 << 10
"""Most and fewest events that a segment begins with where many come at once. The last one has as many as changes lately
reached back: a segment has a price, and so has going back too far."""
MORE, PER_KEY = 4, 1
"""All keys are run once more where so many times as many events come as would be, and so many change for each key."""
DECAY = 0.9
"""How much of a distance is remembered from one change to the next."""
WORDS_PER_EVENT = 16
"""Words of a snapshot that may be copied for each event: about 10 ns, a fifth of what the fastest queries take to run
one. It bounds the memory of snapshots, too."""


class Replay:
    """Runs one query over the tail of a stream.

    Parameters
    ----------
    pipeline : Pipeline
        A raw one, which has run nothing.
    changelog : Changelog
        Puts results out.
    id : str, optional
        The column that orders events of one time.
    """

    runs_all_again = True
    """Whether keys that have not changed may be run again with the others."""

    def __init__(self, pipeline: Pipeline, changelog: Changelog, id: str | None = None) -> None:  # noqa: A002
        self.pipeline = pipeline
        self._changelog = changelog
        self.tail = Tail()
        self.head = NEVER  # the tick of the last event in order
        self._id = id
        self._before = 0  # events of the stream at the head
        self._depth = 0.0  # events that changes lately reached back
        self._since = 0  # events since the last snapshot
        self._count = 0  # the same, where events are run again
        self._kept = 0  # events that were kept when it was last looked which ones are needed
        self._waiting: list[pa.Table] = []  # what was put out as if the stream ended there
        automaton = pipeline.plan.registers
        self._lets_wait = automaton is not None and automaton.waits
        self._is_whole = pipeline.plan.counted == "stream"  # a change touches all keys
        stops = not pipeline.preparer.is_count and pipeline.plan.query.selection.is_all
        waits = self._lets_wait and pipeline.results.groups
        self._reach = pipeline.window * (2 if waits else 1) if stops else ENDED
        self._skips = pipeline.plan.counted == "nothing" and not pipeline.preparer.is_count
        pipeline.keep_from(NEVER, pipeline.preparer.counters * 0)

    def _late(self, events: Events) -> int:
        """How many of some events, in order, come before one that was run."""
        late, tied = (int(n) for n in np.searchsorted(events.tick, [self.head, self.head + 1]))
        if tied == late or not self.tail.segments:
            return late
        old = self.tail.segments[-1].events  # those of this time come behind the others, or between them
        old, new = old.where(old.tick == self.head), events.slice(late, tied - late)
        both = Events.joined([old.plain(), new])
        order = order_of(both, () if self._id is None else (self._id,))
        return late if (order[1:] > order[:-1]).all() else tied

    def take(self, due: Sequence[Events], gone: tuple[Ints, Ints], _watermark: int) -> list[pa.Table]:
        """Run events that are due, in order, and take back those that have gone; gives what changes of the results."""
        whole = Events.joined(due)
        if not len(whole) and not len(gone[1]):
            return []
        return [self._changelog.table(self.change(whole, gone), self.tail)]

    # --- changes --------------------------------------------------------------------------------------------

    def change(self, events: Events, removed: tuple[Ints, Ints]) -> Changed:
        """Take in a change of the stream.

        Parameters
        ----------
        events : Events
            That come, in order.
        removed : (int64 array, int64 array)
            Ticks and rows of the events that are taken back.

        Returns
        -------
        Changed
        """
        stream = self.pipeline.stream
        stream.check_whole()
        stream.is_within = True
        changed = Changed()
        late = self._late(events)
        came = changed.came if self._lets_wait else changed.new
        self.tail.removed = []
        if not late and not len(removed[1]):
            self._append_all(events, came)
        elif (number := self._begins_again(events, late, removed)) is not None:
            self._append_again(number, events, late, removed, changed)
        else:
            place = np.zeros(len(events), np.int64)
            prepared = self._prepared(events, place, 0)
            touched = self._insert(events.slice(0, late), prepared[1][:late])
            self._remove(*removed, touched)
            if touched:
                self._note_depth(events.tick[:late], removed[0])
                self._run_again(touched, changed)
            prepared[0].first_row = self._before - late
            place[late:] = self._places(events.arrival[late:])
            new = PlacedEvents.of(events, place, prepared[1]).slice(late, len(events) - late)
            self._forward(new, prepared[0].piece(late, len(new)), self._borders(len(new)), came)
        waiting = self.pipeline.results.as_if_ended()
        changed.gone += self._waiting
        changed.came += waiting
        self._waiting = waiting
        stream.is_within = False
        self.pipeline.done()
        return changed

    def _append_all(self, events: Events, came: list[pa.Table]) -> None:
        """Run events that come behind all others, in batches that are no longer than those of a plain run."""
        borders, first = self._borders(len(events)), 0
        while first < len(events):
            number = max(bisect_right(borders, first + BATCH_ROWS), 1)
            last = borders[number - 1]
            part = events if last - first == len(events) else events.slice(first, last - first)
            places = self._places(part.arrival)
            batch, slot = self._prepared(part, places, 0)
            batch.first_row = self._before
            new = PlacedEvents.of(part, places, slot)
            self._forward(new, batch, [border - first for border in borders[:number]], came)
            borders, first = borders[number:], last

    def _places(self, arrival: Ints) -> Ints:
        """The places of events, of these rows, that come behind all others."""
        places = self.tail.next_places(len(arrival))
        self.tail.note_order(self.tail.last_place, arrival)
        return places

    def _begins_again(self, events: Events, late: int, removed: tuple[Ints, Ints]) -> int | None:
        """The segment from which on all is run once more, together with the events that come behind.

        None where that costs more than to run single keys again: these events are not many more, or few keys change.
        """
        changes = late + len(removed[1])
        if not self.runs_all_again or changes < PER_KEY * self.pipeline.key_slots.slots:
            return None
        first = min(int(ticks.min()) for ticks in (events.tick[:late], removed[0]) if len(ticks))
        number = int(self.tail.segment_of(np.array([first]))[0])
        again = sum(map(len, self.tail.segments[number:]))
        return number if MORE * again <= len(events) - late else None

    def _append_again(
        self, number: int, events: Events, late: int, removed: tuple[Ints, Ints], changed: Changed
    ) -> None:
        """Bring all keys back to where a segment begins, and run what came since, the change and what comes."""
        self._insert(events.slice(0, late), np.zeros(late, np.int64))
        self._remove(*removed, {})
        self._note_depth(events.tick[:late], removed[0])
        segment, *behind = self.tail.segments[number:]
        segment.snapshot.bring_back(np.arange(self.pipeline.key_slots.slots))
        old = PlacedEvents.joined([one.events for one in (segment, *behind)])
        changed.gone += [table for one in (segment, *behind) for table in one.results]
        segment.parts, segment.results = [], []
        del self.tail.segments[number + 1 :]
        self._before, self._since = segment.before, 0
        whole = Events.joined([old.plain(), events.slice(late, len(events) - late)])
        place = np.concatenate((old.place, self._places(whole.arrival[len(old) :])))
        batch, slot = self._prepared(whole, place, 0)
        batch.first_row = self._before
        self._forward(PlacedEvents.of(whole, place, slot), batch, self._borders(len(whole)), changed.came)
        segment.parts = segment.parts or [old.slice(0, 0)]

    def _note_depth(self, *ticks: Ints) -> None:
        """Remember how many events back a change reaches."""
        first = min(int(some.min()) for some in ticks if len(some))
        number = int(self.tail.segment_of(np.array([first]))[0])
        here = self.tail.segments[number].events
        depth = len(here) - int(np.searchsorted(here.tick, first)) + sum(map(len, self.tail.segments[number + 1 :]))
        self._depth = max(float(depth), DECAY * self._depth)

    def _insert(self, late: Events, slot: Ints) -> dict[int, list[PlacedEvents]]:
        """Put late events into their segments; returns what each segment got."""
        touched: dict[int, list[PlacedEvents]] = {}
        number, first = self.tail.segment_of(late.tick), 0
        while first < len(number):  # they are in order, and so are the segments
            one = int(number[first])
            last = int(np.searchsorted(number, one, side="right"))
            some, slots = late.slice(first, last - first), slot[first:last]
            placed = self.tail.insert(one, some, slots, self._id)
            if placed is None:
                self._place_anew(one, last - first + 1)
                placed = self.tail.insert(one, some, slots, self._id)
            assert placed is not None
            touched.setdefault(one, []).append(placed)
            first = last
        return touched

    def _remove(self, tick: Ints, arrival: Ints, touched: dict[int, list[PlacedEvents]]) -> None:
        number = self.tail.segment_of(tick)
        for one in np.unique(number).tolist():
            gone = self.tail.remove(one, arrival[number == one])
            self.pipeline.recent.remove(gone.place)
            touched.setdefault(one, []).append(gone)

    def _place_anew(self, first: int, gap: int) -> None:
        """Make room between events, from a segment on: give them places anew, so far apart, and run them once more."""
        segments = self.tail.segments
        everything = np.arange(self.pipeline.key_slots.slots)
        segments[first].snapshot.bring_back(everything)
        for number in range(first, len(segments)):
            segment = segments[number]
            events = segment.events
            self.pipeline.recent.remove(events.place)  # others may get these places
            self._move(segment, self.tail.next_places(len(events), gap))
            if number > first:
                segment.before = self._count if self._is_whole else segment.before
                segment.snapshot = self._snapshot(segment.since)
            segment.results = []
            segment.add_results(self._run_segment(number, segment.events))
        if self._is_whole:
            self._before = self._count
        self._waiting = self.pipeline.results.as_if_ended()

    def _move(self, segment: Segment, places: Ints) -> None:
        """Give the events of a segment other places."""
        segment.parts = [PlacedEvents.of(segment.events, places, segment.events.slot)]

    def _run_again(self, touched: dict[int, list[PlacedEvents]], changed: Changed) -> None:
        """Bring the keys that changed back, and run what came since, as far as the change may reach."""
        segments, slots = self.tail.segments, self.pipeline.key_slots.slots
        all_touched = self._slots_of([events for some in touched.values() for events in some])
        if not len(all_touched):
            return
        head = self._snapshot(NEVER, all_touched)
        active, until = np.zeros(slots, np.bool_), np.full(slots, NEVER)
        last = max(touched)
        for number in range(min(touched), len(segments)):
            segment = segments[number]
            is_past = active & (until < segment.since - self._reach)  # what comes now has not seen the change
            if is_past.any():
                head.bring_back(np.flatnonzero(is_past))
                active &= ~is_past
            if active.any():
                segment.snapshot.renew(np.flatnonzero(active))
                segment.before = self._count if self._is_whole else segment.before
            for events in touched.get(number, []):
                mine = self._slots_of([events])
                segment.snapshot.bring_back(mine[~active[mine]])
                active[mine] = True
                until[mine] = np.maximum(until[mine], int(events.tick.max(initial=NEVER)))
            if active.any():
                self._run_active(number, active, changed)
            elif number >= last:
                break
        if self._is_whole and active.any():
            self._before = self._count

    def _run_active(self, number: int, active: Bools, changed: Changed) -> None:
        """Run the events of some keys of a segment, and put their results in the place of those before."""
        segment = self.tail.segments[number]
        left = []
        for table in segment.results:
            is_theirs = active[slots_in(table)]
            if is_theirs.all():
                changed.gone.append(table)
            elif is_theirs.any():
                changed.gone.append(table.filter(pa.array(is_theirs)))
                left.append(table.filter(pa.array(~is_theirs)))
            else:
                left.append(table)
        segment.results = [table for table in left if table.num_rows]
        events = segment.events
        mine = events if self._is_whole else events.where((events.slot >= 0) & active[events.slot])
        tables = self._run_segment(number, mine)
        segment.add_results(tables)
        changed.came += tables

    def _slots_of(self, parts: Sequence[PlacedEvents]) -> Ints:
        """The keys that a change of some events touches, ascending."""
        if self._is_whole:
            return np.arange(self.pipeline.key_slots.slots) if any(map(len, parts)) else np.zeros(0, np.int64)
        slots = np.unique(np.concatenate([part.slot for part in parts]))
        return slots[slots >= 0]

    # --- running --------------------------------------------------------------------------------------------

    def _forward(
        self, new: PlacedEvents, batch: StreamBatch, borders: Sequence[int], came: list[pa.Table]
    ) -> None:
        """Run events that come behind all others; segments begin where a snapshot is worth it."""
        first = 0
        for border in borders:
            last = border
            if last < len(new):  # a border lies between two times
                last = int(np.searchsorted(new.tick, new.tick[last - 1], side="right"))
            if last <= first:
                continue
            is_all = last - first == len(new)
            piece = new if is_all else new.slice(first, last - first)
            if self._is_due(int(piece.tick[0])):
                came += self._begin_segment(int(piece.tick[0]))
            tables = self._run_new(piece, batch if is_all else batch.piece(first, len(piece)))
            segment = self.tail.segments[-1]
            segment.add(piece)
            segment.add_results(tables)
            came += tables
            self.head = int(piece.tick[-1])
            self._before += len(piece)
            self._since += len(piece)
            first = last

    def _run_new(self, events: PlacedEvents, batch: StreamBatch) -> list[pa.Table]:  # noqa: ARG002  (others note them)
        """Run events, which were prepared as ``batch``, for the first time; returns their results."""
        return list(self.pipeline.run(batch))

    @property
    def _least(self) -> int:
        """Fewest events that a segment begins with."""
        return LEAST_PIECE

    def _borders(self, events: int) -> list[int]:
        """Where pieces of so many events end: the last one is as long as changes lately reached back."""
        borders, at = [events], events
        size = min(max(int(self._depth), self._least), PIECE) if self._depth else PIECE
        while at > size:
            at -= size
            borders.append(at)
            size = PIECE
        return borders[::-1]

    def _is_due(self, tick: int) -> bool:
        segments = self.tail.segments
        if not segments:
            return True
        words = segments[-1].snapshot.words
        return tick > self.head and self._since >= self._least // 2 and self._since * WORDS_PER_EVENT >= words

    def _begin_segment(self, tick: int) -> list[pa.Table]:
        """Begin a segment; returns what no event from this time on can change any more of the one before."""
        closed = list(self.pipeline.pass_time(tick)) if self._lets_wait and self.tail.segments else []
        if closed:
            self.tail.segments[-1].add_results(closed)
        since = tick if self.tail.segments else NEVER
        self.tail.segments.append(Segment(since, self._snapshot(since), self._before))
        self._since = 0
        return closed

    def _snapshot(self, since: int, slots: Ints | None = None) -> QuerySnapshot:
        """Where all keys stand, or some: what matches from the tick ``since`` on may still ask for."""
        is_bounded = since > NEVER and not self.pipeline.preparer.is_count
        floors = self.pipeline.floors_after(since) if is_bounded else np.array([NEVER])
        return QuerySnapshot(self.pipeline, floors, slots)

    def _run_segment(self, number: int, events: PlacedEvents) -> list[pa.Table]:
        """Run events of a segment, all or those of some keys; returns the results up to the next one."""
        segments = self.tail.segments
        self._count = segments[number].before + len(events)
        tables: list[pa.Table] = []
        if len(events):
            batch, _ = self._prepared(events, events.place, segments[number].before)
            tables += self._run_old(events, batch)
        if self._lets_wait and number + 1 < len(segments):
            tables += self.pipeline.pass_time(segments[number + 1].since)
        return tables

    def _run_old(self, events: PlacedEvents, batch: StreamBatch) -> list[pa.Table]:  # noqa: ARG002  (others look)
        """Run events, which were prepared as ``batch``, once more; returns their results."""
        return list(self.pipeline.run(batch))

    def _prepared(self, events: Events, place: Ints, before: int) -> tuple[StreamBatch, Ints]:
        """Events as the pipeline takes them, and the keys that a change of each touches, -1 for none."""
        pipeline = self.pipeline
        batch = pipeline.stream.batch(events.batch(pipeline.columns, before, place))
        pipeline.prepare(batch)
        slot = batch.slots(pipeline.preparer.key_columns)
        if self._is_whole:
            return batch, np.zeros(len(events), np.int64)
        return batch, np.where(pipeline.preparer.is_relevant(batch), slot, -1) if self._skips else slot.copy()

    # --- state ----------------------------------------------------------------------------------------------

    def save(self, scope: Scope) -> None:
        """Save what ``header`` has not; here nothing: what may change is found once more in the events."""

    def load(self, scope: Scope) -> None:
        """Take over what ``save`` saved, before ``take_up``."""

    @contextmanager
    def at_base(self) -> Iterator[None]:
        """While the state is saved the pipeline stands before the tail."""
        everything = np.arange(self.pipeline.key_slots.slots)
        head = self._snapshot(NEVER, everything)
        if self.tail.segments:
            self.tail.segments[0].snapshot.bring_back(everything)
            self.pipeline.stream.last_tick = self.tail.segments[0].since
        yield
        head.bring_back(everything)

    def header(self) -> dict[str, int]:
        """What ``take_up`` needs beside the events."""
        tail = self.tail
        base = tail.segments[0] if tail.segments else None
        return {
            "since": base.since if base else NEVER,
            "before": base.before if base else self._before,
            "base_place": tail.base_place,
            "last_place": tail.last_place,
        }

    def take_up(self, header: dict[str, int], passed: PlacedEvents, events: PlacedEvents) -> None:
        """Go on from a state: the pipeline stands before the tail, whose events are run once more."""
        tail, pipeline = self.tail, self.pipeline
        tail.passed = [passed] if len(passed) else []
        tail.base_place = number_in("base_place", header["base_place"], -COUNT, COUNT)
        tail.last_place = number_in("last_place", header["last_place"], -COUNT, COUNT)
        self._before = number_in("before", header["before"], 0, COUNT)
        since = number_in("since", header["since"], NEVER, TICK)
        pipeline.keep_from(since, pipeline.preparer.counters.copy())
        if len(events):
            tail.segments = [Segment(since, self._snapshot(NEVER), self._before, [events.slice(0, 0)])]
            batch, slot = self._prepared(events, events.place, self._before)
            self._forward(PlacedEvents.of(events, events.place, slot), batch, self._borders(len(events)), [])
        self._waiting = self.pipeline.results.as_if_ended()

    # --- letting go -----------------------------------------------------------------------------------------

    def finish(self) -> list[pa.Table]:
        """Nothing: results come with the events, and what may change is put out as it changes."""
        return []

    def settle(self, watermark: int) -> None:
        """No event before ``watermark`` will come or go: let go of what only they would have needed."""
        segments = self.tail.segments
        passed = sum(segment.since <= watermark for segment in segments) - 1
        if passed <= 0:
            return
        self.tail.pass_segments(passed)
        base, pipeline = segments[0], self.pipeline
        pipeline.keep_from(base.since, base.snapshot.counters)
        if not pipeline.preparer.is_count:
            floor = base.since - (2 * pipeline.window if self._lets_wait else pipeline.window)
            self.tail.forget(floor)
            pipeline.recent.drop_before(floor)
            self._forget_keys(base.since)
        elif sum(map(len, self.tail.passed)) > 2 * self._kept + PIECE:
            in_tail = [part.place for segment in segments for part in segment.parts]
            others = np.concatenate([*in_tail, *(segment.snapshot.events_held() for segment in segments)])
            self.tail.keep_only(pipeline.forget_all_but(others))
            self._kept = sum(map(len, self.tail.passed))

    def _forget_keys(self, since: int) -> None:
        """Free the slots of keys that have nothing in the tail, nor in the window before it."""
        keys = self.pipeline.key_slots
        if not keys.is_due:
            return
        is_used = np.zeros(keys.slots + 1, np.bool_)
        for segment in self.tail.segments:
            for part in segment.parts:
                is_used[part.slot] = True
            for table in segment.results:
                is_used[slots_in(table)] = True
        self.pipeline.stream.sweep(since, np.flatnonzero(is_used))
