"""The runs engine: arrays that grow, keys that come and go, and the kernels that work on them.

Source: Agrawal et al., SIGMOD 2008, section 5. See ``docs/runs.md``.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any
from weakref import WeakSet

import numpy as np

from acep_approx.arrays import Ints, extended
from acep_approx.automaton.registers import RegisterAutomaton
from acep_approx.automaton.resolve import Register
from acep_approx.engines.batches import RunEvents
from acep_approx.engines.runs.calls import call_functions
from acep_approx.engines.runs.event_columns import EventColumns, Kind
from acep_approx.engines.runs.fork import RunsOfKey, check, links_of, renumber, saved_pools, with_links
from acep_approx.engines.runs.lineage import Hits
from acep_approx.engines.runs.load_shedder import FixedLoad, LoadShedder
from acep_approx.engines.runs.options import NO_OPTIONS, RunOptions
from acep_approx.engines.runs.programs import register_kind
from acep_approx.engines.runs.resume import make_room, take_up
from acep_approx.engines.runs.rewording import Rewording
from acep_approx.engines.runs.shedding import Shedding
from acep_approx.engines.runs.tables import RunTables
from acep_approx.engines.runs.worth import Allowance
from acep_approx.errors import DataError
from acep_approx.kernels.runs import advance as kernel
from acep_approx.kernels.runs import layout, records, saved
from acep_approx.kernels.runs import lineage as kernel_lineage
from acep_approx.kernels.runs import pools as kp
from acep_approx.kernels.runs.vm import BLOCK, NULL

FIRST_ROOM = 64
WORK = (layout.DONE_STEPS, layout.MADE, layout.MERGED, layout.PEAK, layout.LIVE, layout.SHED)
OF_BATCH = (
    layout.EVENT, layout.PHASE, layout.SOURCE, layout.OFFSET, layout.HITS, layout.LIMIT, layout.ASK, layout.HASHED_NOW,
    layout.HITS_BEFORE, layout.LOGGED,
)  # fmt: skip
"""Words of the header that count into arrays of the batch at hand: no part of a state, which has not these arrays."""
SLICE = 1 << 14
"""Run-steps between two looks at the clock: about 50 us."""


class Runs:
    """Keeps the runs of all keys.

    Parameters
    ----------
    automaton : RegisterAutomaton
    columns : EventColumns
        Of the schema of the events.
    window : int
        In ticks, or in events for a count window.
    merging : frozenset of str
        Which runs are merged; see ``planner.MERGING``.
    keeps_lineage : bool
        False where matches are never listed.
    is_count : bool
        Whether the window counts events: then keys differ in what has left their windows.
    shedding : LoadShedder, optional
        How to stay inside a load budget; default: nothing is shed.
    options : RunOptions, optional
        What else is asked for: owners, functions, what merged runs keep.

    Attributes
    ----------
    limit : int
        Run-steps, counted from the beginning of the stream, after which ``advance`` stops; -1 for none.
    """

    def __init__(
        self,
        automaton: RegisterAutomaton,
        columns: EventColumns,
        window: int,
        merging: frozenset[str],
        *,
        keeps_lineage: bool = True,
        is_count: bool = False,
        shedding: LoadShedder | None = None,
        options: RunOptions = NO_OPTIONS,
    ) -> None:
        self.automaton = automaton
        self.options = options
        self.columns = columns
        self.window = window
        self.keeps_lineage = keeps_lineage
        self.is_count = is_count
        self.merging = merging
        self.sheds = shedding is not None
        self.tables = self._tables_for(columns)
        self.load_shedder = shedding or FixedLoad(Shedding(None, Allowance()))
        self.load_shedder.bind(self.tables)
        self.limit = -1
        self.slots = self.needed = 0  # key slots that there is room for, and those that were asked for
        self.control = np.zeros(layout.HEADER, np.int64)
        self.control[layout.SLOT] = -1
        self.pools = self._first_pools()
        self.words = np.zeros(int(self._end_of_pools()), np.int64)
        self._write_constants()
        self.links = np.zeros(layout.LINK * 1024, np.int64)
        self.owner = np.zeros(1024, np.int64)
        self.stored = np.zeros(1024, np.int64)
        self.places = np.zeros(0, np.int64)
        self.guards = np.zeros(0, np.int64)
        self.pace = np.zeros(0)
        self.index = np.zeros(0, np.int64)
        self._is_compact = False  # whether what left the window before this batch has been dropped
        self._number = np.zeros(0, np.int64)
        self._hits = np.zeros(layout.HIT * 1024, np.int64)
        self._buckets = np.full(2 * 4096, -1, np.int64)
        self._copies: WeakSet[RunsOfKey] = WeakSet()
        self._lanes = records.Lanes(*(np.zeros(BLOCK + 1, np.int64) for _ in range(3)))
        self._index_pools()

    def _tables_for(self, columns: EventColumns) -> RunTables:
        keeps = layout.WITH_OWNER if self.is_count else layout.WITHOUT_OWNER
        keeps = keeps if self.keeps_lineage else layout.NO_LINEAGE
        return RunTables(
            self.automaton, columns, self.window, self.merging, keeps, sheds=self.sheds, options=self.options
        )

    def _program(self) -> records.Program:
        return records.Program(self.tables.tables, self.tables.shape, self.columns.texts.ranks)

    def _pools(self) -> records.Pools:
        return records.Pools(self.pools, self.words, self.words.view(np.float64), self.index, self._buckets)

    def _keys(self) -> records.Keys:
        return records.Keys(self.stored, self.places, self.guards)

    @property
    def shedding(self) -> Shedding:
        """What the kernel sheds by."""
        return self.load_shedder.arena

    # --- room -----------------------------------------------------------------------------------------------

    def _first_pools(self) -> Ints:
        pools = np.zeros((len(self.tables.pools), kp.POOL), np.int64)
        owners = self.options.owners
        begun = len(owners) if owners is not None else 1  # runs that have bound nothing: one per owner
        at = self.tables.pools_at
        for number, pool in enumerate(self.tables.pools):
            room = FIRST_ROOM if number else begun
            pools[number, kp.BASE], pools[number, kp.ROOM] = at, room
            pools[number, kp.MERGE], pools[number, kp.FIELDS] = pool.merge, pool.fields
            pools[number, kp.ALIKE] = pool.alike
            pools[number, kp.OLDEST] = -kp.NEVER
            pools[number, kp.IS_PROBED] = pool.is_probed
            pools[number, kp.KEYS] = len(pool.keys)
            pools[number, kp.KEY : kp.KEY + len(pool.keys)] = pool.keys
            at += room * (kp.COLUMNS + pool.fields)
        pools[0, [kp.RUNS, kp.CHILDREN]] = begun
        return pools.ravel()

    def _end_of_pools(self) -> int:
        last = self.pools.reshape(-1, kp.POOL)[-1]
        return int(last[kp.BASE] + last[kp.ROOM] * (kp.COLUMNS + last[kp.FIELDS]))

    def _write_constants(self) -> None:
        constants = self.tables.scalars.constants
        self.words[self.tables.constants_at : self.tables.constants_at + len(constants)] = constants
        start, room = self.pools[[kp.BASE, kp.ROOM]]
        self.words[start + room : start + 2 * room] = -1  # no lineage
        if self.options.owners is not None:
            words = self.options.owners.words
            self.words[self.tables.scalars.owners_at :][: words.size] = words
            self.words[start + kp.COLUMNS * room :][:room] = np.arange(room)

    def _grow_pool(self, number: int) -> None:
        """Double the room of a pool."""
        moved = self.pools.copy().reshape(-1, kp.POOL)
        moved[number, kp.ROOM] *= 2
        widths = moved[:, kp.ROOM] * (kp.COLUMNS + moved[:, kp.FIELDS])
        moved[:, kp.BASE] = self.tables.pools_at + np.concatenate(([0], np.cumsum(widths)[:-1]))
        words = np.zeros(int(self.tables.pools_at + widths.sum()), np.int64)
        words[: self.tables.pools_at] = self.words[: self.tables.pools_at]
        kp.grow_pool(self.pools, moved.ravel(), self.words, words)
        self.pools, self.words = moved.ravel(), words
        self._index_pools()

    def _index_pools(self) -> None:
        """Make indexes with room for all runs that the pools can hold."""
        table = self.pools.reshape(-1, kp.POOL)
        at = 0
        for number, pool in enumerate(self.tables.pools):
            room = int(table[number, kp.ROOM])
            table[number, kp.INDEX], table[number, kp.INDEX_SIZE] = at, 2 * room if pool.across else 0
            at += 3 * room if pool.across else 0
        self.index = np.zeros(max(at, 1), np.int64)
        for number, pool in enumerate(self.tables.pools):
            if pool.across:
                kp.index_again(self._pools(), number)

    def reserve(self, slots: int) -> None:
        """Make room for key slots ``0 .. slots - 1``."""
        self.needed = max(self.needed, slots)
        if slots > self.slots:
            grown = max(slots, 2 * self.slots)
            letters = len(self.tables.guard_letters)
            self.places = extended(self.places, grown * saved.PLACE, 0)
            self.places.reshape(-1, saved.PLACE)[self.slots :, 2] = kp.NEVER
            self.guards = extended(self.guards, grown * letters * layout.GUARD, -1)
            self.pace = np.concatenate((self.pace, np.zeros(2 * grown - self.pace.size)))
            self.slots = grown

    def set_classes(self, classes: list[int]) -> None:
        """Make the table for event classes (letter masks)."""
        self.tables.set_classes(classes)

    # --- keys -----------------------------------------------------------------------------------------------

    def put_away(self) -> None:
        """Save the runs of the key at hand with those of all others."""
        slot = int(self.control[layout.SLOT])
        if slot < 0:
            return
        table = self.pools.reshape(-1, kp.POOL)
        needed = int(((kp.COLUMNS + table[1:, kp.FIELDS]) * table[1:, kp.RUNS]).sum()) + saved.SAVED * len(table)
        self._grow_store(needed)
        self.control[layout.STORED] = saved.put_away(
            self._pools(), self._keys(), slot, int(self.control[layout.STORED])
        )
        self.control[layout.SLOT] = -1

    def _grow_store(self, wanted: int) -> None:
        used = int(self.control[layout.STORED])
        if used + wanted <= self.stored.size:
            return
        table = self.places.reshape(-1, saved.PLACE)
        if self.control[layout.SLOT] >= 0:
            table[self.control[layout.SLOT], 1] = 0  # what was saved of the key at hand is outdated
        live = int(table[:, 1].sum())
        moved = np.zeros(max(1024, 3 * live + 2 * wanted), np.int64)
        self.control[layout.STORED] = saved.pack_stored(self._keys(), moved)
        self.stored = moved

    def clear(self, slots: Ints) -> None:
        """Forget the runs of some key slots."""
        self.put_away()
        self.places.reshape(-1, saved.PLACE)[slots] = 0, 0, kp.NEVER
        self.guards.reshape(self.slots, len(self.tables.guard_letters) * layout.GUARD)[slots] = -1
        self.pace.reshape(-1, 2)[slots] = 0

    def newest(self) -> Ints:
        """Per key slot the latest start of any run; below every tick where there is none."""
        self.put_away()
        result: Ints = self.places.reshape(-1, saved.PLACE)[:, 2].copy()
        return result

    def _fields(self) -> Ints:
        fields: Ints = self.pools.reshape(-1, kp.POOL)[:, kp.FIELDS]
        return fields

    def fork(self, slot: int, *, for_another: bool = False) -> RunsOfKey:
        """A copy of the runs of a key, with its guards and its pace.

        Parameters
        ----------
        slot : int
        for_another : bool, default False
            Whether it brings the links that its runs lead to, to be put into another engine of the same query. Else
            the links of this engine stay as long as the copy is held.

        Complexity: O(runs of the key); for another engine O(links held).
        """
        if self.control[layout.SLOT] == slot:
            table = self.pools.reshape(-1, kp.POOL)
            widths = (kp.COLUMNS + table[1:, kp.FIELDS]) * table[1:, kp.RUNS]
            room = np.zeros(int(widths.sum()) + saved.SAVED * len(table), np.int64)
            place = np.zeros(saved.PLACE, np.int64)
            words = room[: saved.put_away(self._pools(), records.Keys(room, place, self.guards), 0, 0)]
        else:
            begin, length, _ = self.places[saved.PLACE * slot : saved.PLACE * (slot + 1)].tolist()
            words = self.stored[begin : begin + length].copy()
        guards = self.guards.reshape(self.slots, -1)[slot].copy()
        copy = RunsOfKey(words, guards, self.pace.reshape(-1, 2)[slot].copy())
        if for_another:
            return with_links(copy, self._fields(), self.links[: layout.LINK * int(self.control[layout.LINKS])])
        self._copies.add(copy)
        return copy

    def put(self, slot: int, copy: RunsOfKey) -> None:
        """Bring the runs of a key back to where they were when ``copy`` was made; other keys stay as they are.

        Raises
        ------
        DataError
            ``ACEP-D046``: the copy does not fit this engine.

        Complexity: O(runs of the key, before and after).
        """
        fields, used = self._fields(), int(self.control[layout.LINKS])
        check(copy, fields, used, self.guards.size // max(self.slots, 1))
        if self.control[layout.SLOT] == slot:
            self.control[layout.LIVE] -= int(self.pools.reshape(-1, kp.POOL)[1:, kp.COUNTED].sum())
            self.control[layout.SLOT] = -1
        else:
            begin, length, _ = self.places[saved.PLACE * slot : saved.PLACE * (slot + 1)].tolist()
            held = saved_pools(self.stored, begin, begin + length, fields)
            self.control[layout.LIVE] -= sum(each.runs for each in held)
        words = copy.words
        if copy.links is not None:
            words = self._take_links(slot, copy, copy.links)
        self.places[saved.PLACE * slot + 1] = 0
        self._grow_store(words.size)
        at, newest = int(self.control[layout.STORED]), kp.NEVER
        self.stored[at : at + words.size] = words
        for each in saved_pools(words, 0, words.size, fields):
            newest = max(newest, int(words[each.columns_at : each.columns_at + each.runs].max(initial=kp.NEVER)))
            self.control[layout.LIVE] += each.runs
        self.control[layout.STORED] = at + words.size
        self.places[saved.PLACE * slot : saved.PLACE * (slot + 1)] = at, words.size, newest
        self.guards.reshape(self.slots, -1)[slot] = copy.guards
        self.pace.reshape(-1, 2)[slot] = copy.pace

    def _take_links(self, slot: int, copy: RunsOfKey, links: Ints) -> Ints:
        """Append the links that a copy brings; returns its words, which lead to them."""
        first, new = int(self.control[layout.LINKS]), links.reshape(-1, layout.LINK).copy()
        for word in (layout.LINK_BEFORE, layout.LINK_OTHER):
            new[:, word] += np.where(new[:, word] >= 0, first, 0)
        used = layout.LINK * first
        if used + new.size > self.links.size:
            self.links = extended(self.links[:used], 2 * (used + new.size))
        self.links[used : used + new.size] = new.ravel()
        if self.is_count:
            self.owner = extended(self.owner[:first], self.links.size // layout.LINK)
            self.owner[first : first + len(new)] = slot
        self.control[layout.LINKS] = first + len(new)
        moved = RunsOfKey(copy.words.copy(), copy.guards, copy.pace)
        renumber(moved, self._fields(), first + np.arange(len(new)))
        return moved.words

    # --- running --------------------------------------------------------------------------------------------

    def advance(self, events: RunEvents, floors: Ints, deadline: float | None = None) -> bool:
        """Run a batch of grouped events; go on with it after a stop.

        Parameters
        ----------
        events : RunEvents
        floors : int64, shape (slots,) or (1,)
            Starts from which on links may still be asked for while this batch is listed.
        deadline : float, optional
            A time of ``time.perf_counter`` to stop at; it is looked at every ``SLICE`` run-steps.

        Returns
        -------
        bool
            False if ``limit`` or the deadline stopped it: call again with the same events to go on.

        Raises
        ------
        DataError
            ACEP-D201: a whole number in a condition passed 64 bits.
        """
        control, shedding = self.control, self.shedding
        if shedding.has_tables:
            shedding.refresh(self.columns.texts.values)
        batch = records.Batch(
            events.slot, events.tick, events.start, events.cls, events.id, events.place, events.columns.ravel()
        )  # fmt: skip
        while True:
            slice_end = int(control[layout.DONE_STEPS]) + SLICE
            most = [steps for steps in (self.limit, slice_end if deadline is not None else -1) if steps >= 0]
            control[layout.LIMIT] = min(most, default=-1)
            status = kernel.advance(
                control, batch, self._program(), self._pools(), self._lanes,
                records.Lineage(self.links, self.owner, self._hits), self._keys(),
                shedding.record(self.pace) if self.sheds else None,
            )  # fmt: skip
            if status == layout.DONE:
                return True
            if status != layout.STOPPED:
                self._make_room(int(status), floors)
            elif deadline is None or 0 <= self.limit <= control[layout.DONE_STEPS] or time.perf_counter() >= deadline:
                return False

    def _make_room(self, status: int, floors: Ints) -> None:
        asked = int(self.control[layout.ASK])
        if status == layout.GROW_POOL:
            self._grow_pool(asked)
        elif status == layout.GROW_LINKS:
            self._grow_links(asked, floors)
        elif status == layout.GROW_HITS:
            self._hits = extended(self._hits, 2 * (self._hits.size + asked * layout.HIT), 0)
        elif status == layout.GROW_STORE:
            self._grow_store(asked)
        elif status == layout.LOG_FULL:
            self.shedding.empty_log(int(self.control[layout.LOGGED]), asked)
            self.control[layout.LOGGED] = 0
        elif status == layout.SAMPLE_FULL:
            self.shedding.empty_sample(asked)
        elif status == layout.CALL:
            call_functions(self.tables, self.control, self.pools, self.words)
        elif status == layout.GROW_BUCKETS:
            self._buckets = np.full(2 * _power_of_two(2 * asked), -1, np.int64)
            first = int(self.control[layout.STAMP]) * len(self.tables.pools)
            kp.hash_again(self._pools(), first)
        else:
            raise DataError(
                "a whole number in a condition passed the range of 64 bits",
                code="ACEP-D201",
                hint="write one number with a fraction, as in a.x * 2.0, to compute with floating point",
            )

    def logged(self) -> Ints:
        """What was logged of shedding since the last call; see ``Shedding.take_log``."""
        used = int(self.control[layout.LOGGED])
        self.control[layout.LOGGED] = 0
        return self.shedding.take_log(used)

    def work(self) -> tuple[int, ...]:
        """Run-steps, runs made, runs merged, the most that lived at once, those that live now, and those shed."""
        return tuple(self.control[list(WORK)].tolist())

    def begin(self) -> None:
        """Get ready for the next batch, before its columns are made: its hits are other ones."""
        if self.columns.texts.has_many:
            self._forget_texts()
        self.control[layout.EVENT] = 0
        self.control[layout.HITS] = 0
        self.control[layout.PHASE] = 0
        self._is_compact = False

    def hits(self, events: RunEvents) -> Hits:
        """What the batch has completed."""
        table = self._hits[: layout.HIT * int(self.control[layout.HITS])].reshape(-1, layout.HIT)
        order = np.lexsort((table[:, layout.HIT_ERRORS], events.row[table[:, layout.HIT_EVENT]]))
        return Hits(*(np.ascontiguousarray(table[order, i]) for i in range(layout.HIT)))

    def lows(self, tick: Ints, hits: Hits) -> Ints:
        """Per hit, completed at ``tick``, the earliest start inside the window: that of its owner, where there are."""
        owners = self.options.owners
        return tick - (self.window if owners is None else owners.windows[hits.owner])

    def _forget_texts(self) -> None:
        """Let go of the texts that no run holds, and give the others new codes."""
        self.put_away()
        held = [np.arange(at.start, at.stop) for register, at in self._held() if self._kind(register) == "text"]
        columns = np.concatenate([np.zeros(0, np.int64), *held])
        codes = self.stored[columns]
        columns, codes = columns[codes != NULL], codes[codes != NULL]
        self.stored[columns] = self.columns.texts.keep(codes)[codes]
        self.shedding.forget_texts()

    def _kind(self, register: Register) -> Kind:
        return register_kind(register, self.columns)

    def _held(self) -> Iterator[tuple[Register, slice]]:
        """Where the saved runs of all keys hold registers."""
        for begin, length, _ in self.places.reshape(-1, saved.PLACE).tolist():
            for each in saved_pools(self.stored, begin, begin + length, self._fields()):
                first, runs = each.columns_at + each.runs * kp.COLUMNS, each.runs
                for f, register in enumerate(self.automaton.live[self.tables.pools[each.pool].state]):
                    yield register, slice(first + f * runs, first + (f + 1) * runs)

    def widen(self, columns: EventColumns) -> None:
        """Go on with columns of wider types: programs are made anew, and what runs hold is put into other words.

        Raises
        ------
        pyarrow.ArrowInvalid
            What a run holds cannot be held exactly.
        DataError
            ``ACEP-D024``: what was learned, or written down, depends on the types.

        Complexity: O(runs of all keys).
        """
        hand = self.control[layout.SLOT]
        self.put_away()
        self._pack_store()
        self.control[layout.SLOT] = hand
        tables, stored = self._tables_for(columns), self.stored.copy()
        rewording = Rewording(self.columns, columns)
        for register, at in self._held():
            stored[at] = rewording.words(stored[at], self._kind(register), register_kind(register, columns))
        self.load_shedder.rebind(tables)
        before, classes = self.pools, list(self.tables.classes)
        self.columns, self.tables, self.stored = columns, tables, stored
        self.pools = self._first_pools()
        self.words = np.zeros(int(self._end_of_pools()), np.int64)
        self._write_constants()
        self.set_classes(classes)
        self._take_up(before)

    # --- lineage --------------------------------------------------------------------------------------------

    def _grow_links(self, wanted: int, floors: Ints) -> None:
        """Drop the links that have left the window; where that does not help, make at least as much room again."""
        if not self._is_compact:
            self._compact(floors)
            self._is_compact = True
        used = int(self.control[layout.LINKS])
        if 2 * (used + wanted) * layout.LINK > self.links.size:
            room = max(1024, 2 * self.links.size // layout.LINK, 2 * (used + wanted))
            self.links = extended(self.links[: layout.LINK * used], layout.LINK * room)
            if self.is_count:
                self.owner = extended(self.owner[:used], room)

    def _compact(self, floors: Ints) -> None:
        """Drop the links that have left the window, and point runs and hits to the new places of the others."""
        used = int(self.control[layout.LINKS])
        if self._number.size < used + 1:
            self._number = np.empty(2 * used + 1024, np.int64)
        copies, fields = [copy for copy in self._copies if copy.links is None], self._fields()
        needed = np.zeros(used if copies else 0, np.int64)
        for copy in copies:
            needed[links_of(copy, fields)] = 1
        kernel_lineage.mark(self.links, needed)
        kept = kernel_lineage.compact(self.links, used, floors, self.owner, int(self.is_count), needed, self._number)
        self.control[layout.LINKS] = kept
        for copy in copies:
            renumber(copy, fields, self._number)
        hits = self._hits[: layout.HIT * int(self.control[layout.HITS])]
        kernel_lineage.renumber(self._number, self.pools, self.words, self.places, self.stored, hits)

    def ids(self) -> Ints:
        """The events that links point to."""
        words = self.links[: layout.LINK * int(self.control[layout.LINKS]) : layout.LINK]
        return words[words >= 0] >> layout.ARC_BITS

    # --- state ----------------------------------------------------------------------------------------------

    def header(self) -> dict[str, Any]:
        """What ``restore`` needs beside the arrays."""
        return {"texts": self.columns.texts.values, "shed": self.load_shedder.snapshot() if self.sheds else None}

    def arrays(self, floors: Ints) -> dict[str, Ints]:
        """The state as arrays: of links those that start at ``floors`` or later.

        The key at hand stays at hand: this engine and the restored one go on alike.
        """
        hand = self.control[layout.SLOT]
        self.put_away()
        if self.keeps_lineage:
            self._compact(floors)
        self._pack_store()
        self.control[layout.SLOT] = hand
        control = self.control.copy()
        control[list(OF_BATCH)] = 0
        return {
            "control": control,
            "pools": self.pools,
            "links": self.links[: layout.LINK * int(self.control[layout.LINKS])],
            "owner": self.owner[: int(self.control[layout.LINKS]) * self.is_count],
            "stored": self.stored[: int(self.control[layout.STORED])],
            "places": self.places[: saved.PLACE * self.needed],
            "guards": self.guards[: len(self.tables.guard_letters) * layout.GUARD * self.needed],
            "pace": self.pace.view(np.int64)[: 2 * self.needed * self.sheds],
        }

    def _pack_store(self) -> None:
        """Let go of what was saved of keys before they were saved again."""
        live = int(self.places.reshape(-1, saved.PLACE)[:, 1].sum())
        if live < self.control[layout.STORED]:
            moved = np.zeros(live, np.int64)
            self.control[layout.STORED] = saved.pack_stored(self._keys(), moved)
            self.stored = moved

    def restore(self, header: dict[str, Any], arrays: dict[str, Ints], classes: list[int]) -> None:
        """Take over a state.

        Raises
        ------
        DataError
            ``ACEP-D044``: one of the two runs is inside a load budget, the other is not.
        """
        if self.sheds != (header["shed"] is not None):
            raise DataError(
                f"the state is of a run {'without' if self.sheds else 'inside'} a load budget, and this one is not",
                code="ACEP-D044",
                hint="go on as the run began: runs of the two kinds do not know the same",
            )
        self.columns.texts.restore(header["texts"])
        self.control = arrays["control"]
        self.links, self.owner = arrays["links"], arrays["owner"]
        self.stored, self.places, self.guards = arrays["stored"], arrays["places"], arrays["guards"]
        self.slots = self.needed = self.places.size // saved.PLACE
        self.pace = arrays["pace"].view(np.float64) if self.sheds else np.zeros(2 * self.slots)
        if self.sheds:
            self.load_shedder.restore(header["shed"])
        self.set_classes(classes)
        self._take_up(arrays["pools"])

    def _take_up(self, before: Ints) -> None:
        """Bring the runs of the key at hand back into the pools, which were ``before``."""
        slot = int(self.control[layout.SLOT])
        place = self.places[saved.PLACE * slot : saved.PLACE * (slot + 1)] if slot >= 0 else self.places[:0]
        if len(place):
            make_room(before.reshape(-1, kp.POOL)[:, kp.RUNS], lambda: self.pools, self._grow_pool)
        take_up(before, place, self.stored, self.pools, self.words)
        self._index_pools()


def _power_of_two(least: int) -> int:
    return 1 << max(least - 1, 1).bit_length()
