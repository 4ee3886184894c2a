"""Tables and state of the enumeration kernels: the determinised automaton as ``kernels.cells`` wants it."""

from __future__ import annotations

from bisect import insort
from collections.abc import Hashable
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import numpy as np
import numpy.typing as npt

from acep_approx.arrays import Ints, extended, places
from acep_approx.automaton.automaton import START, Automaton
from acep_approx.automaton.determinize import MAX_DETERMINISED, Determinised
from acep_approx.engines.batches import Grouped
from acep_approx.engines.cells.fork import LogsOfKey, Numbering, numbers_in
from acep_approx.engines.engine import Engine, Slots, Snapshot
from acep_approx.engines.order import hits_in_order
from acep_approx.kernels.cells import layout
from acep_approx.kernels.cells.arclog import DONE, GROW, UNKNOWN, compact, update
from acep_approx.kernels.cells.count import count_matches
from acep_approx.kernels.cells.detect import NEVER
from acep_approx.kernels.cells.layout import ENTRY_PLACE, HEAD_COLUMNS, Count, EventArrays, Logs, Tables, Update
from acep_approx.object_cache import ObjectCache
from acep_approx.ranges import COUNT, Range, check, check_arrays, number_in


@dataclass
class _Made:
    """The moves over one class of events that were made so far.

    ``known``: states whose moves these are; ``state`` and ``arc``: the moves; ``passes``: (state, arc, reset log) of
    events that pass and break a guard, by state.
    """

    known: list[int] = field(default_factory=list)
    state: list[int] = field(default_factory=list)
    arc: list[int] = field(default_factory=list)
    passes: list[tuple[int, int, int]] = field(default_factory=list)

    def copied(self) -> _Made:
        """Another one that grows by itself."""
        return _Made(self.known.copy(), self.state.copy(), self.arc.copy(), self.passes.copy())


@dataclass(frozen=True)
class _Built:
    """The tables of an automaton, and what they were made of, after some classes became known one after the other.

    ``most``: moves of a class at most. The rest: as in ``ArcLogs``.
    """

    determinised: Determinised
    arcs: dict[tuple[int, int, int], int]
    resets: dict[int, int]
    in_order: list[tuple[int, list[tuple[int, list[int], int]], int]]
    made: dict[int, _Made]
    rank: Ints
    tables: Tables
    most: int
    keeps_order: bool

    def copied(self) -> _Built:
        """The same, of which nothing that grows is shared."""
        made = {c: one.copied() for c, one in self.made.items()}
        own = self.determinised.copied(), self.arcs.copy(), self.resets.copy(), self.in_order.copy(), made
        return _Built(*own, self.rank, self.tables, self.most, self.keeps_order)


_BUILT: ObjectCache[_Built] = ObjectCache()
MOST_TOLD, MOST_MOVES = 8, 5000
"""How often classes become known, and how many moves there are then, at most, for tables to be kept."""


class ArcLogs(Engine):
    """Keeps what is needed to list all matches, for all keys.

    Parameters
    ----------
    automaton : Automaton
        Without guards at the start or at the end.
    window : int
        In ticks, or in events for a count window.
    cap : int, default MAX_DETERMINISED
        Most determinised states.

    Attributes
    ----------
    arcs : dict
        ``(source, label, target) -> number`` of each arc, which is that of its log; label -1: passing.
    width : int
        Logs that there is room for in each key slot.
    keeps_order : bool
        Whether a walk comes upon matches of one start in order, but for ties: one arc binds all first events, and no
        event has emptied a state.
    """

    def __init__(self, automaton: Automaton, window: int, *, cap: int = MAX_DETERMINISED) -> None:
        self.determinised = Determinised(automaton, cap=cap)
        self.window = window
        self.needed = 0  # key slots that were asked for
        self._states = 0  # room per slot in `latest`
        self.width = 0  # room per slot in `logs`
        self.arcs: dict[tuple[int, int, int], int] = {}  # (source, label, target) -> arc; label -1: passing
        self._resets: dict[int, int] = {}  # guarded state -> its reset log
        self.keeps_order = True
        self._rank = np.zeros(0, np.int64)  # arc -> its place among all arcs
        self._in_order: list[tuple[int, list[tuple[int, list[int], int]], int]] = []  # states by errors, then content
        self._made: dict[int, _Made] = {}  # per class the moves that are in the tables
        self._built = 0  # how many they are
        self._told: tuple[Hashable, ...] | None = (cap,)  # which classes became known; None: more has been made since
        self.latest = np.zeros(0, np.int64)
        self.logs = np.zeros(0, np.int64)
        self.arena = np.zeros(0, np.int64)
        self.used = 0
        self.tables = Tables(np.zeros(0, np.int64), np.zeros(layout.LOGS + 1, np.int64))
        self._pending = np.zeros(2, np.int64)

    # --- tables ---------------------------------------------------------------------------------------------

    def set_classes(self, classes: list[int]) -> None:
        """Take notice of event classes (letter masks) beyond those known."""
        more, automaton = tuple(classes[len(self.determinised.classes) :]), self.determinised.automaton
        self._told = None if self._told is None or len(self._told) > MOST_TOLD else (*self._told, more)
        known = None if self._told is None else _BUILT.get(automaton, self._told)
        if known is not None:
            self._take(known.copied())
            return
        self.determinised.add_classes(more)
        self._build()
        if self._told is not None and self._built <= MOST_MOVES:
            parts = self.determinised, self.arcs, self._resets, self._in_order, self._made
            built = _Built(*parts, self._rank, self.tables, self._pending.size // 2, self.keeps_order)
            _BUILT.put(automaton, self._told, built.copied())

    def _take(self, built: _Built) -> None:
        """Take over tables that were made before."""
        self.determinised, self.arcs, self._resets = built.determinised, built.arcs, built.resets
        self._in_order, self._made, self._built = built.in_order, built.made, len(built.determinised.bound)
        self._rank, self.tables, self.keeps_order = built.rank, built.tables, built.keeps_order
        self._pending = np.zeros(2 * built.most, np.int64)
        self._widen(len(self.determinised), len(self.arcs) + len(self._resets))

    def _arc(self, source: int, label: int, target: int) -> int:
        return self.arcs.setdefault((source, label, target), len(self.arcs) + len(self._resets))

    def _build(self) -> None:
        """Flatten the determinised automaton; arcs and states keep their numbers for ever.

        Complexity: O(new moves x log states) in Python, O(states x classes) in numpy.
        """
        d = self.determinised
        for (state, c), moves in islice(d.bound.items(), self._built, None):
            made = self._made.setdefault(c, _Made())
            made.known.append(state)
            made.state += [state] * len(moves)
            made.arc += [self._arc(state, label, target) for label, target in moves]
            if (state, c) in d.passed:
                left = d.passed[state, c]
                reset = self._resets.setdefault(state, len(self.arcs) + len(self._resets))
                insort(made.passes, (state, self._arc(state, -1, left) if left >= 0 else -1, reset))
        self._built = len(d.bound)
        for state in range(len(self._in_order), len(d)):
            insort(self._in_order, (d.err[state], [(s, sorted(guard), e) for (s, guard), e in d.vectors[state]], state))
        self._flatten([self._made.setdefault(c, _Made()) for c in range(len(d.classes))])

    def _flatten(self, classes: list[_Made]) -> None:
        d = self.determinised
        arcs, into = self._arc_tables()
        counts, parts, moves = [], [], []
        first = 0
        for made in classes:
            unmade = np.ones(len(d), np.bool_)
            unmade[made.known] = False
            unknown = np.flatnonzero(unmade)
            arc = np.array(made.arc, np.int64)
            order = np.argsort(self._rank[arc])  # hits come in this order
            state = np.concatenate([unknown, np.array(made.state, np.int64)[order]])
            kind = np.where(np.arange(state.size) < unknown.size, layout.NOT_MADE, 1)
            parts.append(np.stack([state, first + np.arange(state.size), kind], axis=1).ravel())
            moves += [np.full(unknown.size, layout.NOT_MADE), arc[order]]
            counts.append(state.size)
            first += state.size
        passes = [made.passes for made in classes]
        reset = np.array([self._resets.get(state, -1) for state in range(len(d))])
        tables = [
            _first(counts),
            np.concatenate(parts),
            np.concatenate(moves),
            _first([len(gone) for gone in passes]),
            np.array([x for gone in passes for item in gone for x in item], np.int64),
            arcs.ravel(),
            _first(np.bincount(arcs[into, 1], minlength=len(d))),
            into,
            reset,
        ]
        starts = np.cumsum([0, *(part.size for part in tables)])[:-1]
        self._widen(len(d), len(arcs))
        offsets = np.array([*starts, self._states, self.width], np.int64)
        self.tables = Tables(np.concatenate(tables).astype(np.int64), offsets)
        most = max(count + len(gone) for count, gone in zip(counts, passes, strict=True))
        self._pending = np.zeros(2 * most, np.int64)

    def _arc_tables(self) -> tuple[Ints, Ints]:
        """Per arc source, target, label, err of a match that ends here, whether it keeps a log; and those that do.

        Arcs are ranked by errors, then by what they are, not by when they were made: one order in any split of a
        stream. Those that keep a log are grouped by target.
        """
        d = self.determinised
        logs = len(self.arcs) + len(self._resets)
        rank_of = np.zeros(len(d), np.int64)
        rank_of[[state for *_, state in self._in_order]] = np.arange(len(d))
        source, label, target = np.array(list(self.arcs), np.int64).reshape(-1, 3).T
        number = np.array(list(self.arcs.values()), np.int64)
        in_order = np.lexsort((label, rank_of[source], rank_of[target]))
        self._rank = np.zeros(logs, np.int64)
        self._rank[number[in_order]] = np.arange(number.size)
        keeps = np.array(d.continues)[target]
        self.keeps_order = bool(np.count_nonzero(keeps & (source == START)) < 2 and not self._resets)
        arcs = np.zeros((logs, 5), np.int64)
        err = np.where(label >= 0, np.array(d.err)[target], -1)
        arcs[number] = np.stack([source, target, label, err, keeps], axis=1)
        kept = in_order[keeps[in_order]]
        return arcs, number[kept[np.argsort(target[kept], kind="stable")]]

    # --- room -----------------------------------------------------------------------------------------------

    def _widen(self, states: int, logs: int) -> None:
        """Make room for more states and arcs per slot."""
        if states > self._states:
            wide = np.full((self.slots, _room(states)), NEVER, np.int64)
            wide[:, : self._states] = self.latest.reshape(self.slots, self._states)
            self.latest, self._states = wide.ravel(), wide.shape[1]
        if logs > self.width:
            wider = np.zeros((self.slots, _room(logs) * HEAD_COLUMNS), np.int64)
            wider[:, : self.width * HEAD_COLUMNS] = self.logs.reshape(self.slots, self.width * HEAD_COLUMNS)
            self.logs, self.width = wider.ravel(), wider.shape[1] // HEAD_COLUMNS

    def reserve(self, slots: int) -> None:
        """Make room for key slots ``0 .. slots - 1``."""
        self.needed = max(self.needed, slots)
        if slots > self.slots:
            grown = max(slots, 2 * self.slots)
            self.latest = extended(self.latest, grown * self._states, NEVER)
            self.logs = extended(self.logs, grown * self.width * HEAD_COLUMNS, 0)
            self.slots = grown

    def clear(self, slots: Ints) -> None:
        """Forget the runs of some key slots."""
        self.latest.reshape(self.slots, self._states)[slots] = NEVER
        self.logs.reshape(self.slots, self.width * HEAD_COLUMNS)[slots] = 0

    def newest(self) -> Ints:
        """Per key slot the latest start of any run; below every tick where there is none."""
        result: Ints = self.latest.reshape(self.slots, self._states).max(axis=1, initial=NEVER)
        return result

    def _grow(self, wanted: int, floors: Ints) -> None:
        """Drop what has left the window, and give the arena at least twice the room that the rest takes."""
        live = int(((self.logs[layout.END::HEAD_COLUMNS] - self.logs[layout.FIRST::HEAD_COLUMNS]).clip(0)).sum())
        moved = np.zeros(layout.ENTRY_COLUMNS * max(1024, 8 * live + 2 * wanted), np.int64)
        if self.arena.size > 0:  # not before the first event: a kernel less to compile
            self.used = compact(self.held, self.width, floors, moved)
        self.arena = moved

    # --- keys -----------------------------------------------------------------------------------------------

    def fork(self, slot: int, floor: int = NEVER) -> LogsOfKey:
        """A copy of the logs of a key.

        Parameters
        ----------
        slot : int
        floor : int, optional
            Entries that start before it are left out: no match will ask for them.

        Complexity: O(entries of the key).
        """
        latest, lengths, entries = self.logs_of(np.array([slot]), np.array([floor]))
        return LogsOfKey(latest[0], lengths[0], entries.ravel(), self._numbering())

    def _numbering(self) -> Numbering:
        return Numbering(self.determinised.vectors, self.arcs, self._resets)

    def put(self, slot: int, copy: LogsOfKey) -> None:
        """Bring a key back to where it stood when ``copy`` was made, here or in another engine of the same query.

        Raises
        ------
        DataError
            ``ACEP-D047``: the copy does not fit this engine.

        Complexity: O(entries of the copy).
        """
        if copy.numbering.vectors is self.determinised.vectors:
            copy.check_size()
            states, logs = np.arange(copy.latest.size), np.arange(copy.lengths.size)
        else:
            copy.check(len(self.determinised.automaton.variables))
            states, logs = numbers_in(self._numbering(), self.determinised.add_vector, copy)
            self._told = None
            self._build()
        self.clear(np.array([slot]))
        wanted = int(copy.lengths.sum())
        if layout.ENTRY_COLUMNS * (self.used + wanted) > self.arena.size:
            self._grow(wanted, np.full(self.slots, NEVER))
        at = layout.ENTRY_COLUMNS * self.used
        self.arena[at : at + copy.entries.size] = copy.entries
        filled = np.flatnonzero(copy.lengths)
        heads = self.logs.reshape(self.slots, self.width, HEAD_COLUMNS)[slot]
        heads[logs[filled], layout.OFFSET] = self.used + (np.cumsum(copy.lengths) - copy.lengths)[filled]
        heads[logs[filled], layout.END] = heads[logs[filled], layout.ROOM] = copy.lengths[filled]
        live = np.flatnonzero(copy.latest > NEVER)
        self.latest.reshape(self.slots, self._states)[slot, states[live]] = copy.latest[live]
        self.used += wanted

    def logs_of(self, slots: Ints, floors: Ints) -> tuple[Ints, Ints, Ints]:
        """The latest starts by state, the lengths of the logs, and their entries one after the other, of some keys.

        Complexity: O(entries of the keys).
        """
        heads = self.logs.reshape(self.slots, self.width, HEAD_COLUMNS)[slots, : len(self._numbering())]
        begin = heads[:, :, layout.OFFSET] + heads[:, :, layout.FIRST]
        lengths = heads[:, :, layout.END] - heads[:, :, layout.FIRST]
        entries = self.arena.reshape(-1, layout.ENTRY_COLUMNS)[places(begin.ravel(), lengths.ravel())]
        floor = np.broadcast_to(floors, self.slots)[slots] if len(floors) == 1 else floors[slots]
        kept = entries[:, layout.ENTRY_START] >= np.repeat(np.repeat(floor, lengths.shape[1]), lengths.ravel())
        if not kept.all():
            log = np.repeat(np.arange(lengths.size), lengths.ravel())[kept]
            lengths = np.bincount(log, minlength=lengths.size).reshape(lengths.shape)
            entries = entries[kept]
        return self.latest.reshape(self.slots, self._states)[slots, : len(self.determinised)], lengths, entries

    def put_logs(self, slots: Ints, latest: Ints, lengths: Ints, entries: Ints) -> None:
        """Bring keys, which hold nothing, back to where they stood when ``logs_of`` gave these.

        Complexity: O(entries).
        """
        if layout.ENTRY_COLUMNS * (self.used + len(entries)) > self.arena.size:
            self._grow(len(entries), np.full(self.slots, NEVER))
        first = layout.ENTRY_COLUMNS * self.used
        self.arena[first : first + entries.size] = entries.ravel()
        heads = self.logs.reshape(self.slots, self.width, HEAD_COLUMNS)
        logs = slots[:, None], np.arange(lengths.shape[1])
        heads[(*logs, layout.OFFSET)] = self.used + (np.cumsum(lengths) - lengths.ravel()).reshape(lengths.shape)
        heads[(*logs, layout.END)] = heads[(*logs, layout.ROOM)] = lengths
        self.latest.reshape(self.slots, self._states)[slots, : latest.shape[1]] = latest
        self.used += len(entries)

    def snapshot(self, slots: Ints | None, floors: Ints) -> LogsSnapshot:
        """Where keys stand now."""
        return LogsSnapshot(self, slots, floors)

    # --- state ----------------------------------------------------------------------------------------------

    def header(self) -> dict[str, Any]:
        """What ``restore`` needs beside the arrays: how states, arcs and resets are numbered."""
        vectors = [[[s, sorted(guard), e] for (s, guard), e in vector] for vector in self.determinised.vectors]
        return {
            "slots": self.needed,
            "vectors": vectors,
            "arcs": [[*move, arc] for move, arc in self.arcs.items()],
            "resets": list(self._resets.items()),
        }

    def arrays(self, floors: Ints) -> dict[str, Ints]:
        """The state as arrays: of each log its length, and its entries that start at ``floors`` or later, no room."""
        self._grow(0, np.broadcast_to(floors, self.slots).copy())
        kept = self.needed, len(self.arcs) + len(self._resets)
        heads = self.logs.reshape(self.slots, -1, HEAD_COLUMNS)[: kept[0], : kept[1]]
        offset, lengths = heads[:, :, layout.OFFSET], heads[:, :, layout.END]
        entries = places(offset.ravel(), lengths.ravel())
        latest = self.latest.reshape(self.slots, self._states)[: kept[0], : len(self.determinised)]
        arena = self.arena[: layout.ENTRY_COLUMNS * self.used].reshape(-1, layout.ENTRY_COLUMNS)[entries]
        return {"latest": latest.ravel(), "lengths": lengths.ravel(), "arena": arena.ravel()}

    def restore(self, header: dict[str, Any], arrays: dict[str, Ints], classes: list[int]) -> None:
        """Take over a state and make the tables for its event classes."""
        self._told = None
        for vector in header["vectors"][1:]:
            self.determinised.add_vector(tuple(((s, frozenset(guard)), e) for s, guard, e in vector))
        self.arcs = {(source, label, target): arc for source, label, target, arc in header["arcs"]}
        self._resets = dict(header["resets"])
        self._check(header, arrays)
        self.slots = self.needed = header["slots"]
        self._states, self.width = len(self.determinised), len(self.arcs) + len(self._resets)
        self.latest, self.arena, lengths = arrays["latest"], arrays["arena"], arrays["lengths"]
        self.used = self.arena.size // layout.ENTRY_COLUMNS
        self.logs = np.stack([np.cumsum(lengths) - lengths, np.zeros_like(lengths), lengths, lengths], axis=1).ravel()
        self.set_classes(classes)

    def _check(self, header: dict[str, Any], arrays: dict[str, Ints]) -> None:
        """Refuse a state that this engine cannot have written; nothing of it is an index before.

        Raises
        ------
        DamagedError
        """
        numbering, automaton = self._numbering(), self.determinised.automaton
        nodes = {(state, guard) for vector in numbering.vectors for (state, guard), _ in vector}
        good = all(0 <= state < automaton.size and guard <= automaton.guards for state, guard in nodes)
        costs = (cost for vector in numbering.vectors[1:] for _, cost in vector)
        check("vectors", good=good and all(0 <= cost <= automaton.errors for cost in costs))
        check("vectors", good=len(numbering.vectors) == len(header["vectors"]))
        check("arcs", good=numbering.is_of(len(automaton.variables)))
        check("arcs", good=len(numbering) == len(header["arcs"]) + len(header["resets"]))
        passing = ((set(numbering.vectors[t]), set(numbering.vectors[s])) for s, label, t in self.arcs if label < 0)
        check("arcs", good=all(left < before for left, before in passing))  # whoever goes back comes to an end
        slots, size = number_in("slots", header["slots"], 0, COUNT), arrays["arena"].size
        ranges = {
            "latest": Range(slots * len(numbering.vectors)),
            "lengths": Range(slots * len(numbering), 0, size + 1),
            "arena": Range(layout.ENTRY_COLUMNS * int(arrays["lengths"].sum())),
        }
        check_arrays(arrays, ranges)
        places, starts = arrays["arena"].reshape(-1, layout.ENTRY_COLUMNS).T
        within = np.ones(len(places), np.bool_)
        within[(np.cumsum(arrays["lengths"]) - arrays["lengths"])[arrays["lengths"] > 0]] = False
        grows = (places[1:] > places[:-1]) & (starts[1:] >= starts[:-1])
        check("arena", good=grows[within[1:]].all())

    # --- running --------------------------------------------------------------------------------------------

    def update(self, events: Grouped, floors: Ints) -> Ints:
        """Run a batch of grouped events.

        Parameters
        ----------
        events : Grouped
        floors : int64, shape (slots,) or (1,)
            Entries with a later start may still be asked for while this batch is listed.

        Returns
        -------
        numpy.ndarray of int64, shape (2 h,)
            The hits: (event index, arc) of every way a match is completed, by rows, then by errors.
        """
        if not events.slot.size:
            return events.slot
        header = np.zeros(layout.UPDATE_HEADER, np.int64)
        header[layout.USED], header[layout.SLOT] = self.used, -1
        hits = np.zeros(2 * max(1024, events.slot.size, self._pending.size), np.int64)
        batch, end = self.batch(events), 0
        while True:
            end = max(end, update.end_of_call(int(header[layout.NEXT]), events.slot.size))
            some, at = EventArrays(*(column[:end] for column in batch)), Update(header, self._pending, hits)
            status = update(some, self.window, self.tables, self.latest, self.held, at)
            self.used = int(header[layout.USED])
            if status == DONE:
                if end == events.slot.size:
                    return self._sorted(hits[: 2 * header[layout.HITS]], events)
            elif status == UNKNOWN:
                self._make_moves(int(header[layout.NEXT]), events)
            elif status == GROW:
                self._grow(int(header[layout.ASK]), np.broadcast_to(floors, self.slots).copy())
                header[layout.USED] = self.used
            else:
                hits = extended(hits, 2 * hits.size, 0)

    def _make_moves(self, event: int, events: Grouped) -> None:
        """Make the moves over an event of all states that have runs: the kernel would ask for one after the other."""
        first = int(events.slot[event]) * self._states
        latest = self.latest[first : first + len(self.determinised)]
        alive = np.flatnonzero(latest >= events.tick[event] - self.window)
        self.determinised.make([START, *alive.tolist()], int(events.cls[event]))
        self._told = None
        self._build()

    def _sorted(self, hits: Ints, events: Grouped) -> Ints:
        """Hits by row, then by the rank of their arcs."""
        if hits.size <= 2:
            return hits
        pairs = hits.reshape(-1, 2)
        order = hits_in_order(events.row, pairs[:, 0], self._rank[pairs[:, 1]])
        return hits if order is None else pairs[order].ravel()

    def err(self, hits: Ints) -> Ints:
        """Errors of the matches of each hit."""
        words, offsets = self.tables
        err: Ints = words[offsets[layout.ARC] + layout.ARC_COLUMNS * hits[1::2] + layout.ARC_ERR]
        return err

    def count(self, hits: Ints, events: Grouped) -> Ints:
        """Number of matches of each hit, without listing them; at most ``count.MOST``."""
        logs, states = self.width, len(self.determinised)
        sizes = layout.COUNT_HEADER, 2 * layout.CURSOR * logs, layout.RANGE * logs
        scratch = Count(*(np.zeros(size, np.int64) for size in (*sizes, *(states for _ in range(5)))))
        counts = np.zeros(hits.size // 2, np.int64)
        batch = self.batch(events)
        for part in count_matches.pieces(len(counts)):
            some = hits[2 * part.start : 2 * part.stop]
            scratch.ranges[:] = 0  # hits are numbered from 1 on in each call
            count_matches(batch, some, self.window, self.tables, self.held, scratch, counts[part])
        return counts

    def batch(self, events: Grouped) -> EventArrays:
        """Events as the kernels take them."""
        return EventArrays(events.slot, events.tick, events.cls, events.place)

    @property
    def held(self) -> Logs:
        """All logs, as the kernels take them."""
        return Logs(self.logs, self.arena)

    def live_places(self, floors: Ints) -> Ints:
        """Places of all events that a live run can still point to."""
        self._grow(0, np.broadcast_to(floors, self.slots).copy())
        offset, tail = self.logs[layout.OFFSET::HEAD_COLUMNS], self.logs[layout.END::HEAD_COLUMNS]
        lengths = tail[tail > 0]
        first = np.repeat(offset[tail > 0] - np.concatenate(([0], np.cumsum(lengths)[:-1])), lengths)
        live: Ints = np.unique(self.arena[layout.ENTRY_PLACE::layout.ENTRY_COLUMNS][first + np.arange(lengths.sum())])
        return live


class LogsSnapshot(Snapshot):
    """The arc logs of all keys, or of ``slots``, as they are now.

    Parameters
    ----------
    engine : ArcLogs
    slots : int64 array, optional
    floors : int64 array, shape (slots of the engine,) or (1,)
        Entries that start before are left out: no match will ask for them.
    """

    def __init__(self, engine: ArcLogs, slots: Ints | None, floors: Ints) -> None:
        self._engine = engine
        self._slots = Slots(slots)
        which = np.arange(engine.needed) if slots is None else slots
        self._latest, self._lengths, entries = engine.logs_of(which, floors)
        self._begin = (np.cumsum(self._lengths.ravel()) - self._lengths.ravel()).reshape(self._lengths.shape)
        self._entries = entries
        self._floors = floors

    @property
    def words(self) -> int:
        """How much it holds, in words of 8 bytes."""
        return self._entries.size + self._latest.size + self._lengths.size

    def bring_back(self, slots: Ints) -> None:
        """Let these keys stand where they stood."""
        at = self._slots.places(slots)
        known = at < len(self._latest)
        self._engine.clear(slots)
        at, slots = at[known], slots[known]
        lengths = self._lengths[at]
        entries = self._entries[places(self._begin[at].ravel(), lengths.ravel())]
        self._engine.put_logs(slots, self._latest[at], lengths, entries)

    def renew(self, slots: Ints) -> None:
        """Take over where these keys stand now."""
        latest, lengths, entries = self._engine.logs_of(slots, self._floors)
        shape = max(self._engine.needed, len(self._latest)), latest.shape[1]
        self._latest = _wider(self._latest, shape, NEVER)
        shape = shape[0], lengths.shape[1]
        self._lengths, self._begin = _wider(self._lengths, shape, 0), _wider(self._begin, shape, 0)
        if len(self._entries) > 2 * int(self._lengths.sum()) + 1024:  # most of them are of keys that were renewed
            self._entries = self._entries[places(self._begin.ravel(), self._lengths.ravel())]
            self._begin = (np.cumsum(self._lengths.ravel()) - self._lengths.ravel()).reshape(shape)
        self._latest[slots], self._lengths[slots] = latest, lengths
        self._begin[slots] = len(self._entries) + (np.cumsum(lengths.ravel()) - lengths.ravel()).reshape(lengths.shape)
        self._entries = np.concatenate((self._entries, entries))

    def events_held(self) -> Ints:
        """The places of all events that its entries name."""
        return self._entries[:, ENTRY_PLACE]


def _wider(table: Ints, shape: tuple[int, int], fill: int) -> Ints:
    if table.shape == shape:
        return table
    wider = np.full(shape, fill, np.int64)
    wider[: table.shape[0], : table.shape[1]] = table
    return wider


def _first(counts: npt.ArrayLike) -> Ints:
    """Where each of some lists starts once all are joined; one more at the end."""
    return np.concatenate([[0], np.cumsum(counts, dtype=np.int64)])


def _room(wanted: int) -> int:
    """The power of two that holds ``wanted``: tables that grow by one rarely move all keys."""
    return max(4, 1 << (wanted - 1).bit_length())
