"""The runs engine: arrays that grow, keys that come and go, and the kernels that work on them.

Source: Agrawal et al., SIGMOD 2008, section 5. See ``docs/how-it-works/runs.md``.
"""

from __future__ import annotations

import time
from collections.abc import Hashable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any
from weakref import WeakSet

import numpy as np

from acep_approx.arrays import Bools, Ints, extended
from acep_approx.automaton.registers import RegisterAutomaton
from acep_approx.automaton.resolve import Register
from acep_approx.engines.batches import RunEvents
from acep_approx.engines.engine import NO_WORDS, Engine, Slots, Snapshot
from acep_approx.engines.order import hits_in_order
from acep_approx.engines.progress import RunProgress
from acep_approx.engines.runs.event_columns import CODED, EventColumns, Kind
from acep_approx.engines.runs.hidden import NO_OPTIONS, RunOptions
from acep_approx.engines.runs.key_store import (
    KeptRuns,
    KeyStore,
    RunsOfKey,
    check,
    links_of,
    newest_start,
    renumber,
    with_links,
)
from acep_approx.engines.runs.lineage import Hits
from acep_approx.engines.runs.load_shedder import HoldsTexts, LoadShedder
from acep_approx.engines.runs.pool_arena import PoolArena, call_functions
from acep_approx.engines.runs.programs import Rewording, register_kind
from acep_approx.engines.runs.saved_runs import check_saved, take_up
from acep_approx.engines.runs.shedding import LAYOUT
from acep_approx.engines.runs.tables import RunTables
from acep_approx.errors import DataError
from acep_approx.kernels.runs import advance as kernel
from acep_approx.kernels.runs import layout, records, saved
from acep_approx.kernels.runs import lineage as kernel_lineage
from acep_approx.kernels.runs import pools as kp
from acep_approx.kernels.runs.lineage import best_hits
from acep_approx.kernels.runs.vm import BLOCK, NULL
from acep_approx.object_cache import ObjectCache
from acep_approx.query.syntax import Expression

WORK = (layout.DONE_STEPS, layout.MADE, layout.MERGED, layout.PEAK, layout.LIVE, layout.SHED)
OF_BATCH = (
    layout.EVENT, layout.PHASE, layout.SOURCE, layout.OFFSET, layout.HITS, layout.LIMIT, layout.ASK, layout.HASHED_NOW,
    layout.HITS_BEFORE, layout.LOGGED, layout.CALLED,
)  # fmt: skip
"""Words of the header that count into arrays of the current batch: no part of a state, which has not these arrays."""
SLICE = 1 << 14
"""Run-steps between two looks at the clock: about 50 us."""


@dataclass(frozen=True)
class Made:
    """The tables of an automaton for columns of events, to be used again; nothing of them changes."""

    tables: RunTables
    columns: EventColumns


_MADE: ObjectCache[Made] = ObjectCache()


class Runs(Engine):
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
    finds_best : bool, default False
        Whether, inside a budget, of the matches of an event one with the fewest errors and the latest start is enough.
    options : RunOptions, optional
        What else is asked for: functions, what merged runs keep.

    Attributes
    ----------
    limit : int
        Run-steps, counted from the beginning of the stream, after which ``advance`` stops; -1 for none.
    """

    makes_links = True

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
        finds_best: bool = False,
        options: RunOptions = NO_OPTIONS,
    ) -> None:
        self.automaton = automaton
        self.options = options
        self.columns = columns
        self.window = window
        self.keeps_lineage = keeps_lineage
        self.finds_best = finds_best
        self.is_count = is_count
        self.merging = merging
        self.sheds = shedding is not None
        self.load_shedder = shedding
        self.shedding = shedding.arena if shedding is not None else None
        self.tables = self._tables_known(columns)
        if shedding is not None:
            shedding.bind(self.tables)
        self.limit = -1
        self.control = np.zeros(layout.HEADER, np.int64)
        self.control[layout.SLOT] = -1
        self.arena = PoolArena(self.tables)
        self.store = KeyStore(layout.GUARD * len(self.tables.guard_letters))
        self.links = np.zeros(layout.LINK * 1024, np.int64)
        self.owner = np.zeros(1024, np.int64)
        self._is_compact = False  # whether what left the window before this batch has been dropped
        self._number = np.zeros(0, np.int64)
        self._hits = np.zeros(layout.HIT * 1024, np.int64)
        self._shown = np.zeros(len(automaton.shown) * 1024, np.int64)
        self._no_hits = Hits(*[*np.zeros((layout.HIT, 0), np.int64), np.zeros((0, len(automaton.shown)), np.int64)])
        self._copies: WeakSet[RunsOfKey] = WeakSet()
        self._kept: WeakSet[KeptRuns] = WeakSet()
        self._lanes = records.Lanes(*(np.zeros(BLOCK + 1, np.int64) for _ in range(3)))

    def _tables_known(self, columns: EventColumns) -> RunTables:
        """The tables: those of another stream of such events, where no text and nothing of a load budget is in them."""
        if self.sheds or self.options != NO_OPTIONS or columns.expressions:
            return self._tables_for(columns)
        key = (*self._asked(), columns.schema)
        made = _MADE.get(self.automaton, key)
        if made is not None and self._take(made, columns):
            return made.tables.for_stream(columns)
        tables = self._tables_for(columns)
        if not len(columns.texts):
            apart = columns.apart()
            _MADE.put(self.automaton, key, self._made(tables.for_stream(apart), apart))
        return tables

    def _asked(self) -> tuple[Hashable, ...]:
        """What the tables depend on beside automaton and columns."""
        return type(self), self.window, self.merging, self.keeps_lineage, self.is_count, self.finds_best

    def _made(self, tables: RunTables, columns: EventColumns) -> Made:
        """What another stream can use of this one."""
        return Made(tables, columns)

    def _take(self, made: Made, columns: EventColumns) -> bool:
        """Begin with what was made for another stream, if it serves."""
        return columns.like(made.columns)

    def _tables_for(self, columns: EventColumns) -> RunTables:
        keeps = layout.WITH_OWNER if self.is_count else layout.WITHOUT_OWNER
        keeps = keeps if self.keeps_lineage else layout.NO_LINEAGE
        return RunTables(
            self.automaton,
            columns,
            self.window,
            self.merging,
            keeps,
            sheds=self.sheds,
            ranks_dominated=self.shedding is not None and bool(self.shedding.ranks_dominated),
            finds_best=self.finds_best,
            options=self.options,
        )

    def _program(self) -> records.Program:
        tables = self.tables
        return records.Program(tables.tables, tables.shape, self.columns.texts.ranks, 1 if tables.asks_more else None)

    @property
    def expressions(self) -> tuple[Expression, ...]:
        """What it reads of each event."""
        return self.columns.expressions

    def readers(self, expression: Expression) -> int:
        """The letters, as bits, of the events that the value of an expression is read of."""
        return self.tables.readers(expression)

    def is_read(self, expression: Expression) -> Bools:
        """Per class of events whether the value of an expression is read of them."""
        return self.tables.is_read(expression)

    def reserve(self, slots: int) -> None:
        """Make room for key slots ``0 .. slots - 1``."""
        self.store.reserve(slots)
        self.slots = self.store.slots

    def set_classes(self, classes: list[int]) -> None:
        """Make the table for event classes (letter masks)."""
        self.tables.set_classes(classes)

    # --- keys -----------------------------------------------------------------------------------------------

    def put_away(self) -> None:
        """Save the runs of the current key with those of all others."""
        control, slot = self.control, int(self.control[layout.SLOT])
        if slot >= 0:
            self.store.room_for(self.arena.held + saved.SAVED * len(self.tables.pools), control)
            record, counted = (self.arena.record(), self.store.record()), self.arena.rows[1:, kp.COUNTED].sum()
            control[layout.STORED] = saved.put_away(*record, slot, int(control[layout.STORED]))
            # runs that the head of a pool has passed did not count; they are saved with the others, and count again
            control[layout.LIVE] += self.arena.rows[1:, kp.RUNS].sum() - counted
            control[layout.SLOT] = -1

    @contextmanager
    def _all_saved(self) -> Iterator[None]:
        """Have the runs of all keys saved meanwhile; the current key stays current."""
        current, live = self.control[[layout.SLOT, layout.LIVE]]
        self.put_away()
        yield
        self.control[[layout.SLOT, layout.LIVE]] = current, live

    def clear(self, slots: Ints) -> None:
        """Forget the runs of some key slots."""
        self.put_away()
        self.control[layout.LIVE] -= self.runs_saved(slots)
        self.store.clear(slots)

    def newest(self) -> Ints:
        """Per key slot the latest start of any run; below every tick where there is none."""
        self.put_away()
        result: Ints = self.store.rows[:, 2].copy()
        return result

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
        words = None
        if self.control[layout.SLOT] == slot:
            room = np.zeros(self.arena.held + saved.SAVED * len(self.tables.pools), np.int64)
            keys = records.Keys(room, np.zeros(saved.SPAN, np.int64), self.store.guards)
            words = room[: saved.put_away(self.arena.record(), keys, 0, 0)]
        copy = self.store.copy_of(slot, words)
        if for_another:
            return with_links(copy, self.arena.fields, self.links[: layout.LINK * int(self.control[layout.LINKS])])
        self._copies.add(copy)
        return copy

    def keep(self, runs: KeptRuns) -> None:
        """Look after runs that are kept elsewhere, as long as someone holds them: links and words change."""
        self._kept.add(runs)

    def runs_saved(self, slots: Ints) -> int:
        """How many runs some keys have that are not current."""
        return int(saved.runs_of(self.store.record(), slots, self.arena.table))

    def snapshot(self, slots: Ints | None, floors: Ints) -> RunsSnapshot:  # noqa: ARG002  (it keeps the links)
        """Where keys stand now."""
        return RunsSnapshot(self, slots)

    def put(self, slot: int, copy: RunsOfKey) -> None:
        """Bring the runs of a key back to where they were when ``copy`` was made; other keys stay as they are.

        Raises
        ------
        DataError
            ``ACEP-D047``: the copy does not fit this engine.

        Complexity: O(runs of the key, before and after).
        """
        control, fields = self.control, self.arena.fields
        check(copy, fields, int(control[layout.LINKS]), self.store.guards.size // max(self.slots, 1))
        if control[layout.SLOT] == slot:
            control[layout.LIVE] -= int(self.arena.rows[1:, kp.COUNTED].sum())
            control[layout.SLOT] = -1
        else:
            control[layout.LIVE] -= sum(each.runs for each in self.store.pools_of(slot, fields))
        if copy.links is not None:
            copy = self._with_own_links(slot, copy, copy.links)
        control[layout.LIVE] += sum(each.runs for each in copy.pools(fields))
        self.store.put(slot, copy, newest_start(copy, fields), control)

    def _with_own_links(self, slot: int, copy: RunsOfKey, links: Ints) -> RunsOfKey:
        """Take in the links that a copy brings; returns the copy with links of this engine."""
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
        renumber(moved, self.arena.fields, first + np.arange(len(new)))
        return moved

    # --- running --------------------------------------------------------------------------------------------

    @contextmanager
    def unpaid(self) -> Iterator[None]:
        """What is run meanwhile was run before, and was paid for then: it is not counted once more."""
        words = [word for word in WORK if word != layout.LIVE]
        counted = self.control[words]
        with nullcontext() if self.shedding is None else self.shedding.unpaid():
            yield
        self.control[words] = counted

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
        if self.shedding is None and not len(events.row):
            return True
        if self.shedding is not None and self.shedding.has_tables:
            self.shedding.refresh(self.columns.texts.values)
        batch = records.Batch._make((*self._columns_of(events), events.columns.ravel()))
        return self._advanced(batch, self._records(len(events.row)), floors, len(events.row), deadline) is not None

    def advance_to(self, events: RunEvents, ends: Sequence[int], floors: Ints) -> Iterator[None]:
        """Run a batch in parts, up to each of some places: in between somebody looks at the runs.

        As ``begin`` and ``advance`` for each part, which take several times as long where it has few events. Nothing
        may be changed in between, and there is no limit of run-steps.
        """
        columns, arrays, first = self._columns_of(events), self._records(len(events.row)), 0
        for end in ends:
            self.begin()
            own = slice(first, end)
            batch = records.Batch._make((*(column[own] for column in columns), events.columns[:, own].ravel()))
            left = self._advanced(batch, arrays, floors, len(events.row))
            assert left is not None, "nothing stops it"
            arrays = left
            yield
            first = end

    def _advanced(
        self, batch: records.Batch, arrays: tuple[Any, ...], floors: Ints, size: int, deadline: float | None = None
    ) -> tuple[Any, ...] | None:
        """Run events to their end, with what ``_records`` gave for ``size`` of them; gives that as it is by then.

        None: it was stopped.
        """
        control, is_sliced = self.control, deadline is not None or kernel.advance.is_interpreted
        while True:
            control[layout.LIMIT] = self._limit(is_sliced)
            status = kernel.advance(control, batch, *arrays)
            if status == layout.DONE:
                return arrays
            if status == layout.CALL:  # nothing has grown but, perhaps, the texts
                call_functions(self.arena, control)
                arrays = (self._program(), *arrays[1:])
            elif status != layout.STOPPED:
                self._make_room(int(status), floors)
                arrays = self._records(size)
            elif 0 <= self.limit <= control[layout.DONE_STEPS] or (
                deadline is not None and time.perf_counter() >= deadline
            ):
                return None

    def _columns_of(self, events: RunEvents) -> tuple[Ints, ...]:
        """What the kernel takes of events, but for the values that runs ask for."""
        low = events.tick - self.window_of(events.slot)
        return events.slot, events.tick, low, events.start, events.cls, events.id, events.place

    def _records(self, events: int) -> tuple[Any, ...]:
        """What the kernel takes beside so many events; until something has grown."""
        lineage = records.Lineage(self.links, self.owner, self._hits, self._shown)
        shedding = None if self.shedding is None else self.shedding.record(events, self.store.pace)
        return self._program(), self.arena.record(), self._lanes, lineage, self.store.record(), shedding

    def _limit(self, is_sliced: bool) -> int:
        """Where the kernel is to stop, see ``layout``: a slice ends so that nothing differs from one go."""
        slice_end = int(self.control[layout.DONE_STEPS]) + SLICE
        if self.limit >= 0 and (not is_sliced or self.limit < slice_end + BLOCK):
            return self.limit
        return -2 - slice_end if is_sliced else -1

    def _make_room(self, status: int, floors: Ints) -> None:
        asked = int(self.control[layout.ASK])
        if status == layout.GROW_POOL:
            self.arena.grow(asked)
        elif status == layout.GROW_LINKS:
            self._grow_links(asked, floors)
        elif status == layout.GROW_HITS:
            self._hits = extended(self._hits, 4 * (self._hits.size + asked * layout.HIT))
            self._shown = extended(self._shown, self._hits.size // layout.HIT * len(self.automaton.shown))
        elif status == layout.GROW_STORE:
            self.store.room_for(asked, self.control)
        elif status == layout.LOG_FULL and self.shedding is not None:
            self.shedding.empty_log(int(self.control[layout.LOGGED]), asked)
            self.control[layout.LOGGED] = 0
        elif status == layout.SAMPLE_FULL and self.shedding is not None:
            self.shedding.empty_sample(asked)
        elif status == layout.GROW_BUCKETS:
            self.arena.grow_buckets(asked, int(self.control[layout.STAMP]) * len(self.tables.pools))
        else:
            raise DataError(
                "a whole number in a condition passed the range of 64 bits",
                code="ACEP-D201",
                hint="write one number with a fraction, as in a.x * 2.0, to compute with floating point",
            )

    @property
    def tested(self) -> Ints:
        """Run-steps in each pool so far, where nothing is shed."""
        tested: Ints = self.arena.rows[:, kp.TESTED].copy()
        return tested

    def logged(self) -> Ints:
        """What was logged of shedding since the last call; see ``Shedding.take_log``."""
        return NO_WORDS if self.shedding is None else np.concatenate(self.logged_in_parts())

    def logged_in_parts(self) -> list[Ints]:
        """The same in parts; see ``Shedding.take_logs``."""
        assert self.shedding is not None, "something is logged"
        used = int(self.control[layout.LOGGED])
        self.control[layout.LOGGED] = 0
        return self.shedding.take_logs(used)

    def work(self) -> tuple[int, ...]:
        """Run-steps, runs made, runs merged, the most that lived at once, those that live now, and those shed."""
        return tuple(self.control[list(WORK)].tolist())

    def report(self, progress: RunProgress) -> None:
        """Write down what was done so far."""
        progress.take(self.work())

    def begin(self) -> None:
        """Get ready for the next batch: its hits are other ones."""
        self.control[layout.EVENT] = 0
        self.control[layout.HITS] = 0
        self.control[layout.PHASE] = 0
        self._is_compact = False

    def hits(self, events: RunEvents) -> Hits:
        """What the batch has completed."""
        found, width = int(self.control[layout.HITS]), len(self.automaton.shown)
        if not found:  # as after most events that are pushed alone
            return self._no_hits
        table = self._hits[: layout.HIT * found].reshape(-1, layout.HIT)
        shown = self._shown[: width * found].reshape(found, width)
        order = hits_in_order(events.row, table[:, layout.HIT_EVENT], table[:, layout.HIT_ERRORS])
        if order is not None:
            table, shown = table[order], shown[order]
        # copies: the next batch writes to the same room
        return Hits(*[*table.T.copy(), shown.copy()])

    def best_hits(self) -> tuple[Ints, Ints, Ints]:
        """Per event that completes something, in the order they were run: it, its fewest errors, the latest start."""
        count = int(self.control[layout.HITS])
        found = [np.empty(count, np.int64) for _ in range(3)]
        used = best_hits(self._hits, count, *found)
        event, errors, start = (column[:used] for column in found)
        return event, errors, start

    def window_of(self, slot: Ints) -> Ints | int:
        """The window of each key slot, or that of all."""
        return self.window if self.windows is None else self.windows[slot]

    def lows(self, tick: Ints, slot: Ints) -> Ints:
        """Per hit, completed at ``tick`` in a key slot, the earliest start inside the window."""
        return tick - self.window_of(slot)

    def texts_held(self) -> Ints:
        """The codes of the texts that runs hold, some more than once."""
        beside = [other.texts_held() for other in self._beside]
        held: Ints = np.concatenate([np.zeros(0, np.int64), *beside, *(words[at] for words, at in self._texts())])
        with_text: Ints = held[held != NULL]
        return with_text

    def recode_texts(self, codes: Ints) -> None:
        """Give the texts that runs hold the new codes ``codes``, per code so far; the others are forgotten."""
        for words, at in self._texts():
            held = words[at]
            words[at] = np.where(held != NULL, codes[np.where(held != NULL, held, 0)], NULL) if len(codes) else held
        for other in self._beside:
            other.recode_texts(codes)
        if self.shedding is not None:
            self.shedding.forget_texts()

    @property
    def _beside(self) -> Sequence[HoldsTexts]:
        """Engines whose runs hold the same texts."""
        return () if self.load_shedder is None else self.load_shedder.engines_beside

    def _texts(self) -> list[tuple[Ints, slice]]:
        """Where the saved runs of all keys, and their copies, hold texts."""
        self.put_away()
        return [(words, at) for register, words, at in self._held() if self._kind(register) in CODED]

    def _kind(self, register: Register) -> Kind:
        return register_kind(register, self.columns)

    def _held(self) -> Iterator[tuple[Register, Ints, slice]]:
        """Where the saved runs of all keys, and their copies, hold registers."""
        fields, stored = self.arena.fields, self.store.stored
        copies = [(copy.words, copy.pools(fields)) for copy in self._copies]
        copies += [(one.store.stored, one.store.pools(fields)) for one in self._kept]
        for words, pools in [(stored, self.store.pools(fields)), *copies]:
            for each in pools:
                first, runs = each.columns_at + each.runs * kp.COLUMNS, each.runs
                for f, register in enumerate(self.automaton.live[self.tables.pools[each.pool].state]):
                    yield register, words, slice(first + f * runs, first + (f + 1) * runs)

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
        with self._all_saved():
            self.store.pack(self.control)
        tables, rewording = self._tables_for(columns), Rewording(self.columns, columns)
        reworded = [  # all of it, before anything changes
            (words, at, rewording.words(words[at], register))
            for register, words, at in self._held()
        ]
        if self.load_shedder is not None:
            self.load_shedder.rebind(tables)
        for words, at, new in reworded:
            words[at] = new
        before, classes = self.arena.table, list(self.tables.classes)
        self.columns, self.tables, self.arena = columns, tables, PoolArena(tables)
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
            room = max(1024, 4 * self.links.size // layout.LINK, 2 * (used + wanted))
            self.links = extended(self.links[: layout.LINK * used], layout.LINK * room)
            if self.is_count:
                self.owner = extended(self.owner[:used], room)

    def _compact(self, floors: Ints) -> None:
        """Drop the links that have left the window, and point runs and hits to the new places of the others."""
        used = int(self.control[layout.LINKS])
        if self._number.size < used + 1:
            self._number = np.empty(2 * used + 1024, np.int64)
        copies, fields = list(self._copies), self.arena.fields
        needed = np.zeros(used if copies else 0, np.int64)
        for copy in copies:
            needed[links_of(copy, fields)] = 1
        kernel_lineage.mark(self.links, needed)
        kept = kernel_lineage.compact(self.links, used, floors, self.owner, int(self.is_count), needed, self._number)
        self.control[layout.LINKS] = kept
        for copy in copies:
            renumber(copy, fields, self._number)
        for one in self._kept:
            one.renumber(self._number, self.arena.table)
        hits = self._hits[: layout.HIT * int(self.control[layout.HITS])]
        arena, store = self.arena, self.store
        kernel_lineage.renumber(self._number, arena.table, arena.words, store.spans, store.stored, hits)

    def ids(self) -> Ints:
        """The events that links point to."""
        words = self.links[: layout.LINK * int(self.control[layout.LINKS]) : layout.LINK]
        return words[words >= 0] >> layout.ARC_BITS

    # --- state ----------------------------------------------------------------------------------------------

    def header(self) -> dict[str, Any]:
        """What ``restore`` needs beside the arrays."""
        return {"shed": None if self.load_shedder is None else self.load_shedder.snapshot()}

    def arrays(self, floors: Ints) -> dict[str, Ints]:
        """The state as arrays: of links those that start at ``floors`` or later.

        The current key stays current: this engine and the restored one go on alike.
        """
        with self._all_saved():
            if self.keeps_lineage:
                self._compact(floors)
            self.store.pack(self.control)
        control = self.control.copy()
        control[list(OF_BATCH)] = 0
        return {
            "control": control,
            "pools": self.arena.table,
            "links": self.links[: layout.LINK * int(self.control[layout.LINKS])],
            "owner": self.owner[: int(self.control[layout.LINKS]) * self.is_count],
            **self.store.arrays(int(self.control[layout.STORED]), sheds=self.sheds),
        }

    def restore(self, header: dict[str, Any], arrays: dict[str, Ints], classes: list[int]) -> None:
        """Take over a state.

        Raises
        ------
        DataError
            ``ACEP-D044``: one of the two runs is inside a load budget, the other is not. ``ACEP-D041``: both are, and
            the state was written by another version.
        DamagedError
            It is not as this engine can have written it.
        """
        if self.sheds != (header["shed"] is not None):
            raise DataError(
                f"the state is of a run {'without' if self.sheds else 'inside'} a load budget, and this one is not",
                code="ACEP-D044",
                hint="go on as the run began: runs of the two kinds do not know the same",
            )
        if self.sheds and header["shed"].get("layout") != LAYOUT:
            raise DataError(
                "the state is of a run inside a load budget, in the older format: its runs do not know what they must",
                code="ACEP-D041",
                hint="go on with the version that wrote it, or start from the beginning",
            )
        if "search" in arrays:  # who searches has taken it out
            raise DataError(
                "the state is of a run that searches backwards for match points, and this one follows partial matches",
                code="ACEP-D044",
                hint="go on as the run began: with a history that knows what searching takes, and without --policy",
            )
        check_saved(self, arrays)
        self.control = arrays["control"]
        self.control[list(OF_BATCH)] = 0
        self.links, self.owner = arrays["links"], arrays["owner"]
        self.store.restore(arrays, sheds=self.sheds)
        self.slots = self.store.slots
        if self.load_shedder is not None:
            self.load_shedder.restore(header["shed"])
        self.set_classes(classes)
        self._take_up(arrays["pools"])

    def _take_up(self, before: Ints) -> None:
        """Bring the runs of the current key back into the pools, which were ``before``."""
        slot = int(self.control[layout.SLOT])
        if slot >= 0:
            for number, wanted in enumerate(before.reshape(-1, kp.POOL)[:, kp.RUNS].tolist()):
                while self.arena.rows[number, kp.ROOM] < wanted:
                    self.arena.grow(number)
        span = self.store.rows[slot] if slot >= 0 else self.store.spans[:0]
        take_up(before, span, self.store.stored, self.arena.table, self.arena.words)
        self.arena.index_all()


class RunsSnapshot(Snapshot):
    """The runs of all keys, or of ``slots``, as they are now, with their guards and their pace.

    Its links are those of the engine, which gives them new numbers here, too. They stay as long as the floors that the
    engine is given keep them.
    """

    def __init__(self, engine: Runs, slots: Ints | None = None) -> None:
        engine.put_away()
        self._engine = engine
        self._slots = Slots(slots)
        self.store = engine.store.copied(int(engine.control[layout.STORED]), slots)
        self._control = np.zeros(layout.HEADER, np.int64)
        self._control[layout.SLOT], self._control[layout.STORED] = -1, self.store.stored.size
        engine.keep(self)

    @property
    def words(self) -> int:
        """How much it holds, in words of 8 bytes."""
        return int(self._control[layout.STORED]) + self.store.spans.size + self.store.guards.size

    def bring_back(self, slots: Ints) -> None:
        """Let these keys stand where they stood."""
        engine, at = self._engine, self._slots.places(slots)
        engine.put_away()
        self._reserve(int(at.max(initial=-1)) + 1)
        before = engine.runs_saved(slots)
        engine.store.take(slots, self.store, at, engine.control)
        engine.control[layout.LIVE] += engine.runs_saved(slots) - before

    def renew(self, slots: Ints) -> None:
        """Take over where these keys stand now."""
        self._engine.put_away()
        self._reserve(self._engine.store.needed)
        self.store.take(slots, self._engine.store, slots, self._control)

    def renumber(self, number: Ints, pools: Ints) -> None:
        """Links have got new numbers; ``pools``: the words of all pools of the engine."""
        none = np.zeros(0, np.int64)
        empty = pools.copy()
        empty.reshape(-1, kp.POOL)[:, kp.RUNS] = 0
        kernel_lineage.renumber(number, empty, none, self.store.spans, self.store.stored, none)

    def _reserve(self, slots: int) -> None:
        """Make room for keys that came later."""
        if slots > self.store.slots:
            self.store.reserve(slots)
