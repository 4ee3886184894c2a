"""Searching backwards in the place of following runs: the engine keeps events, and searches what can end a match.

It finds match points, with one match for each, or all matches. See ``kernels.search.end_search`` and
``docs/how-it-works/look-back.md``.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np

from acep_approx.arrays import Bools, Ints, extended
from acep_approx.automaton.resolve import Register
from acep_approx.engines.batches import RunEvents
from acep_approx.engines.engine import NO_WORDS
from acep_approx.engines.progress import RunProgress
from acep_approx.engines.runs.event_columns import CODED, EventColumns
from acep_approx.engines.runs.programs import Rewording
from acep_approx.engines.runs.runs import Made, Runs
from acep_approx.engines.runs.shedding import OpenEnds, Shedding
from acep_approx.engines.runs.tables import RunTables
from acep_approx.engines.runs.worth import WITHOUT_END
from acep_approx.engines.search.searches import WITHOUT_LIMIT, Searches, SearchTables
from acep_approx.kernels.runs import layout, records
from acep_approx.kernels.runs.pools import NEVER
from acep_approx.kernels.runs.vm import NULL
from acep_approx.kernels.search import end_search as kernel
from acep_approx.kernels.search import kept as kept_events
from acep_approx.ranges import COUNT, TICK, Range, check, check_arrays, finite

AHEAD = 256
"""Events that are granted for at once when a stream begins, before anything could be saved up."""
PLENTY = 1024
"""Where so many events' worth of tests is saved up, ends are searched that are less likely match points, too."""
FOR_OTHERS = 1 << 15
"""The tests of so many events stay for what is to come: what is beyond lists further matches of an end."""
HALF = 0.5
"""What a search gets of all that is granted, as long as runs are followed beside; and what stays for other ends of what
can be saved up, at most."""
FIRST_ROOM = 1 << 12
"""Events that there is room for at first."""
ANSWERED = [layout.HITS, layout.EVENT, layout.LINKS, layout.MADE]
"""Words of the control that are put back after a search where runs give the answer."""
LOOKED_THROUGH = 16
"""Kept events that may be gone through, for each event that came, to count those in the window."""
PLAIN = ("tick", "place", "slot", "cls", "id")
"""What is kept of each event, beside its values: its columns in ``Kept``."""


@dataclass(frozen=True)
class SearchMade(Made):
    """The same with the tables of a search, and what is searched."""

    search_tables: SearchTables
    searches: Searches


class EndSearch(Runs):
    """Searches the events of the window, in the place of keeping runs; takes what ``Runs`` does.

    Parameters
    ----------
    searches : Searches
    *args, **options
        As for ``Runs``.

    Attributes
    ----------
    spent : int64 array
        Tests of each event of the last batch; -1: no match can end with it; -2 and less: none was left for the rest.
    gaps : int64 array
        Of each end how long ago the newest event came that its search would begin with.
    tests, found : int
        All tests of the last batch, and what they have found.
    tries : bool
        Whether ends are searched to see what that takes, while runs answer.
    most_tests : int
        Tests of a batch without a budget, after which ends are left out.
    """

    tries = False
    most_tests = WITHOUT_LIMIT

    def __init__(self, searches: Searches, *args: Any, **options: Any) -> None:
        self.searches = searches
        super().__init__(*args, **options)
        self._search = np.zeros(kernel.WORK, np.int64)
        self._search[kernel.LAST_UNSEARCHED] = NEVER
        self.kept = self._room(FIRST_ROOM)
        self.spent = self.gaps = NO_WORDS
        self.tests = self.found = 0
        self._real = np.zeros(kernel.REAL)
        self._tokens: float | None = None  # tests that are left for the search, where runs are followed beside
        self._open: list[Ints] = []  # what ``left_open`` gives
        self._came = 0  # events since it was looked how many are kept

    def _tables_for(self, columns: EventColumns) -> RunTables:
        self._make_search_tables(columns)
        tables = super()._tables_for(columns)  # which knows further columns: bins come behind all of them
        self.search_tables.set_classes([0])
        readers = tables.scalars.readers
        for value, letters in self.search_tables.readers.items():
            readers[value] = readers.get(value, 0) | letters
        return tables

    def _asked(self) -> tuple[Hashable, ...]:
        return (*super()._asked(), self.searches.orders, self.searches.wanted)

    def _made(self, tables: RunTables, columns: EventColumns) -> Made:
        return SearchMade(tables, columns, self.search_tables.for_stream(columns), self.searches)

    def _take(self, made: Made, columns: EventColumns) -> bool:
        if not isinstance(made, SearchMade) or made.searches.paths is not self.searches.paths:
            return False
        if not super()._take(made, columns):
            return False
        self._use(made.search_tables.for_stream(columns))
        return True

    def _make_search_tables(self, columns: EventColumns) -> None:
        """Make what the kernel reads, for the orders of ``searches``."""
        self._use(SearchTables(self.searches.paths, self.searches.orders, columns, self.searches.trees))

    def _use(self, tables: SearchTables) -> None:
        self.search_tables = tables
        self._frame, self._code = self.search_tables.frame(), self.search_tables.program()
        longest = max(len(path) for path in self.searches.paths)
        sizes = {"bound": longest, "best": longest, "at": longest, "blame": longest, "mask": 1}
        self._at_work = kept_events.Frame(**{name: np.zeros(size, np.int64) for name, size in sizes.items()})

    def set_classes(self, classes: list[int]) -> None:
        """Make the tables for event classes (letter masks)."""
        super().set_classes(classes)
        self.search_tables.set_classes(classes)

    # --- events that are kept -------------------------------------------------------------------------------

    def _room(self, events: int) -> kept_events.Kept:
        """Room for so many events, none of them there yet."""
        search = self.search_tables.searches
        chains, jumps, entries = (
            words.size // size
            for words, size in (
                (search.chains, kept_events.CHAIN),
                (search.jumps, kept_events.JUMP),
                (search.entries, kept_events.ENTRY),
            )
        )  # fmt: skip
        table = 1 << (2 * events * self._valued_chains()).bit_length()
        columns = len(self.columns.expressions) + search.bins.size // kept_events.BIN
        tick, place, slot, cls, id_ = np.zeros((5, events), np.int64)
        return kept_events.Kept(
            tick, place, slot, cls, id_,
            words=np.zeros(columns * events, np.int64),
            before=np.zeros(chains * events, np.int64),
            keys=np.zeros(jumps * events, np.int64),
            jumps=np.zeros(jumps * events, np.int64),
            entered=np.zeros(entries * events, np.int64),
            heads=np.full(chains * max(self.slots, 1), -1),
            table=np.full(table, -1),
            whose=np.zeros(table, np.int64),
            used=np.zeros(1, np.int64),
        )  # fmt: skip

    def _valued_chains(self) -> int:
        """Chains that are entered by values: to put an event into one takes a while."""
        return int((self.search_tables.searches.chains[kept_events.CHAIN_PLAIN :: kept_events.CHAIN] < 0).sum())

    def reserve(self, slots: int) -> None:
        """Make room for key slots ``0 .. slots - 1``."""
        before = self.slots
        super().reserve(slots)
        if self.slots > before:
            heads = self.kept.heads.reshape(-1, max(before, 1))
            more = np.full((len(heads), self.slots), -1)
            more[:, : heads.shape[1]] = heads
            self.kept = self.kept._replace(heads=more.ravel())

    def _columns(self) -> dict[str, Ints]:
        """The events that are kept, column by column."""
        used, room = int(self.kept.used[0]), len(self.kept.tick)
        plain = {name: getattr(self.kept, name)[:used] for name in PLAIN}
        return plain | {"words": self.kept.words.reshape(-1, room)[: len(self.columns.expressions), :used]}

    def _keep_only(self, wanted: Ints) -> None:
        """Keep some of the events, in their order."""
        self._put({name: column[..., wanted] for name, column in self._columns().items()})

    def _make_room_for_events(self, floors: Ints) -> None:
        """Let go of events that have left the window; where that does not help, make twice as much room."""
        kept = self._columns()
        floor = floors[kept["slot"]] if len(floors) > 1 else floors[0]
        self._keep_only(np.flatnonzero(kept["tick"] >= floor))

    def clear(self, slots: Ints) -> None:
        """Forget the events of some key slots."""
        super().clear(slots)
        gone = np.isin(self._columns()["slot"], slots)
        if gone.any():
            self._keep_only(np.flatnonzero(~gone))

    def newest(self) -> Ints:
        """Per key slot the tick of its last event that is kept: a match can begin with it."""
        newest, kept = super().newest(), self._columns()
        np.maximum.at(newest, kept["slot"], kept["tick"])
        return newest

    def ids(self) -> Ints:
        """The events that links point to, and those that matches to come can be made of."""
        return np.concatenate((super().ids(), self._columns()["id"]))

    def report(self, progress: RunProgress) -> None:
        """Write down what was done so far, and how many of the kept events are in the window."""
        super().report(progress)
        used, in_order = int(self.kept.used[0]), self.sheds and not self.is_count
        if not in_order and LOOKED_THROUGH * self._came < used:
            return  # counting goes through all of them: too slow for each of many events that are pushed alone
        self._came = 0
        ticks = self.kept.tick[:used]
        if not used:
            progress.kept = 0
        elif in_order:
            progress.kept = used - int(np.searchsorted(ticks, ticks[-1:].sum() - self.window))
        else:
            slots = self.kept.slot[:used]
            newest = np.full(max(self.slots, 1), NEVER if self.is_count else ticks.max(initial=NEVER))
            if self.is_count:
                np.maximum.at(newest, slots, ticks)
            progress.kept = int(np.count_nonzero(ticks >= newest[slots] - self.window))
        progress.most_kept = max(progress.most_kept, progress.kept)

    # --- running --------------------------------------------------------------------------------------------

    @property
    def _ways(self) -> tuple[bool, bool]:
        """Whether ends are searched (or runs followed), and whether the other way gets ready to take over."""
        ways = None if self.load_shedder is None else self.load_shedder.ways
        return (True, False) if ways is None else (ways.searches, ways.gets_ready)

    def begin(self) -> None:
        """Get ready for the next batch: its hits are other ones. What only the way needs that is given up goes."""
        super().begin()
        searches, gets_ready = self._ways
        if searches and not gets_ready:
            self._let_go_of_runs()
        if not (searches or gets_ready) and self.kept.used[0]:
            self._keep_only(NO_WORDS)

    def _let_go_of_runs(self) -> None:
        """They are not followed any more, and links are those of the matches of one batch."""
        if self.control[layout.LIVE]:
            super().clear(np.arange(self.slots))
        self.control[layout.LINKS] = 0

    def advance(self, events: RunEvents, floors: Ints, deadline: float | None = None) -> bool:
        """Keep the events of a batch, and search those that can end a match, or follow runs; see ``Runs.advance``.

        While the other way gets ready both see the events: what it completes by then is not all, and is left out.
        """
        self.tests = self.found = 0
        self._came += len(events.row)
        if self.shedding is not None:
            self.shedding.open_ends = None
        searches, gets_ready = self._ways
        if self.shedding is not None:
            self._divide(self.shedding, is_shared=searches and gets_ready)
            rate = self.shedding.rate
            self.shedding.rate *= 1.0 if self._tokens is None else HALF
        is_done = (searches and not gets_ready) or super().advance(events, floors, deadline)
        if is_done and (searches or gets_ready):
            self._search_ends(events, floors, searches=searches, gets_ready=gets_ready)
        if self.shedding is not None:
            self.shedding.rate = rate
        return is_done

    def _search_ends(self, events: RunEvents, floors: Ints, *, searches: bool, gets_ready: bool) -> None:
        """Keep the events of a batch, and search ends among them; where runs answer, these have answered before."""
        shedding = self.shedding if searches else None
        answered = self.control[ANSWERED]
        self.control[[layout.EVENT, layout.PHASE]] = 0
        self.control[layout.HITS] *= not searches
        self._search[kernel.KEEPS_ONLY] = not (searches or self.tries)
        if shedding is not None:
            self._begin_budget(shedding)
        before, steps = self._search.copy(), int(self.control[layout.DONE_STEPS])
        self._search_batch(events, floors, shedding)
        self.tests = int(self.control[layout.DONE_STEPS]) - steps
        self.found = int(self.control[layout.HITS]) if searches else int(self.control[layout.HITS] - answered[0])
        if not searches:
            self.control[ANSWERED] = answered
        if shedding is not None:
            self._note(shedding, before, events)
            shedding.open_ends = self._open_ends(events, gets_ready=gets_ready)

    def _divide(self, shedding: Shedding, *, is_shared: bool) -> None:
        """Give a search tokens of its own as long as runs are followed beside: half of what is granted.

        Else how much either may spend would depend on which events come in one batch.
        """
        if is_shared and self._tokens is None:
            self._tokens = shedding.tokens = HALF * shedding.tokens
        elif not is_shared and self._tokens is not None:
            shedding.tokens, self._tokens = shedding.tokens + self._tokens, None

    def _search_batch(self, events: RunEvents, floors: Ints, shedding: Shedding | None) -> None:
        """Run the kernel."""
        control, work = self.control, self._search
        batch = records.Batch(
            events.slot, events.tick, events.tick - self.window_of(events.slot), events.start, events.cls, events.id,
            events.place, events.columns.ravel(),
        )  # fmt: skip
        work[kernel.WANTED], work[kernel.LINKS_KEPT] = self.searches.wanted, self.keeps_lineage
        work[kernel.IS_APART] = self.automaton.is_simultaneous
        self.spent, self.gaps = np.empty((2, len(events.row)), np.int64)
        status, work[kernel.LEFT], of_runs = -1, self.most_tests, 0.0
        if shedding is not None and self._tokens is not None:
            of_runs, shedding.tokens = shedding.tokens, self._tokens
        while status != kernel.DONE:
            arena = None if shedding is None else shedding.record(len(events.row), self.store.pace)
            status = kernel.search_batch(
                control, self._searcher(work), self.kept.words.view(np.float64), batch, self._hits, self.links, arena,
                self.spent, self.gaps, self._real,
            )  # fmt: skip
            if work[kernel.PASSED]:
                self._make_room(layout.TOO_LARGE, floors)
            if status == kernel.FULL_OF_EVENTS:
                self._make_room_for_events(floors)
            elif status == kernel.FULL_OF_HITS:
                self._hits = extended(self._hits, 4 * self._hits.size)
            elif status == kernel.FULL_OF_LINKS:
                self.links = extended(self.links, max(2 * self.links.size, layout.LINK * FIRST_ROOM))
        if shedding is not None and self._tokens is not None:
            self._tokens, shedding.tokens = shedding.tokens, of_runs

    def left_open(self) -> Ints:
        """Events of which a search left open whether a match ends there; see ``Engine.left_open``."""
        found, self._open = np.concatenate([super().left_open(), *self._open]), []
        return found

    def _note(self, shedding: Shedding, before: Ints, events: RunEvents) -> None:
        """Write down what came of a batch."""
        ends, searched = (self._search - before)[[kernel.ENDED, kernel.SEARCHED]].tolist()
        unknown = np.flatnonzero(self.spent < -1)
        if shedding.logs:
            self._open.append(np.stack([column[unknown] for column in (events.slot, events.tick, events.id)], axis=1))
        if ends > searched:
            shedding.untested += ends - searched
            shedding.lost_at = int(self._search[kernel.LAST_UNSEARCHED])
        if self.load_shedder is not None and self.load_shedder.ways is not None:
            known = ends - len(unknown)
            self.load_shedder.ways.note(ends, known, self.tests, known - searched)

    def _searcher(self, work: Ints) -> kernel.Searcher:
        code = self._code._replace(ranks=self.columns.texts.ranks)
        return kernel.Searcher(self.search_tables.searches, code, self.kept, self._frame, self._at_work, work)

    def _open_ends(self, events: RunEvents, *, gets_ready: bool) -> OpenEnds:
        """The ends of the last batch for which there were no tests left."""
        first, number = int(self.kept.used[0]) - len(self.spent), np.flatnonzero(self.spent < -1)
        lows = events.tick - self.window_of(events.slot)
        ended = int(self._search[kernel.ENDED])

        def search(some: Ints, most: int) -> tuple[Bools, int]:
            return self._search_some(first + number[some], lows[number[some]], most)

        return OpenEnds(len(number), int(self.control[layout.DONE_STEPS]) / max(ended, 1), search, gets_ready)

    def _search_some(self, ends: Ints, lows: Ints, most: int) -> tuple[Bools, int]:
        """Search some kept events; returns for the first of them whether a match ends there, and the tests done."""
        work, is_point = self._search.copy(), np.zeros(len(ends), np.bool_)
        work[[kernel.LEFT, kernel.WANTED]] = most, kernel.ANY
        done = kernel.search_some(self._searcher(work), ends, lows, is_point)
        return is_point[:done], most - int(work[kernel.LEFT])

    def _begin_budget(self, shedding: Shedding) -> None:
        """Say what an end is worth; at the beginning grant for the first events."""
        has_begun, self._search[kernel.HAS_BEGUN] = bool(self._search[kernel.HAS_BEGUN]), 1
        self._search[kernel.MOST] = self.searches.most
        self._real[kernel.LEAST_SCORE] = self.searches.least
        self._real[kernel.PLENTY] = max(PLENTY * shedding.rate, 1.0)
        for_others = min(FOR_OTHERS * min(shedding.rate, self.searches.usual), HALF * shedding.allowance.most)
        self._real[kernel.FOR_OTHERS] = for_others if shedding.rate < WITHOUT_END else 0.0
        ahead = min(AHEAD * shedding.rate, shedding.allowance.most)
        if not has_begun and 0 < ahead < WITHOUT_LIMIT:
            self._real[kernel.AHEAD] = ahead
            shedding.tokens += ahead
            shedding.granted += ahead

    # --- texts, wider types, state ----------------------------------------------------------------------------

    def texts_held(self) -> Ints:
        """The codes of the texts that events hold, some more than once."""
        coded = [place for place, one in enumerate(self.columns.expressions) if self.columns.kind(one) in CODED]
        words = self._columns()["words"][coded].ravel()
        return np.concatenate((super().texts_held(), words[words != NULL]))

    def recode_texts(self, codes: Ints) -> None:
        """Give the texts that events hold the new codes ``codes``, per code so far; the others are forgotten."""
        super().recode_texts(codes)
        words = self._columns()["words"]
        for place, one in enumerate(self.columns.expressions):
            if self.columns.kind(one) in CODED and len(codes):
                held = words[place]
                words[place] = np.where(held != NULL, codes[np.where(held != NULL, held, 0)], NULL)
        self._keep_only(np.arange(words.shape[1]))  # chains go by the codes

    def widen(self, columns: EventColumns) -> None:
        """Go on with columns of wider types; see ``Runs.widen``."""
        rewording, expressions = Rewording(self.columns, columns), self.columns.expressions
        kept = self._columns()
        words = {one: rewording.words(kept["words"][place], Register("value", "", one))
                 for place, one in enumerate(expressions)}  # fmt: skip
        super().widen(columns)
        new = np.array([words[one] for one in self.columns.expressions], np.int64)
        self.kept = self._room(len(self.kept.tick))  # chains may be others
        self._put(kept | {"words": new.reshape(len(self.columns.expressions), -1)})

    def arrays(self, floors: Ints) -> dict[str, Ints]:
        """The state as arrays: of links and of events those that start at ``floors`` or later."""
        if self._ways == (True, False):
            self._let_go_of_runs()
        kept = self._columns()
        floor = floors[kept["slot"]] if len(floors) > 1 else floors[0]
        wanted = kept["tick"] >= floor
        held = {f"kept_{name}": column[..., wanted].ravel() for name, column in kept.items()}
        real = self._real[: kernel.FOR_OTHERS].view(np.int64)  # what stays for others is worked out anew
        return super().arrays(floors) | held | {"search": self._search, "real": real}

    def header(self) -> dict[str, Any]:
        """What ``restore`` needs beside the arrays."""
        return super().header() | {"tokens": self._tokens}

    def restore(self, header: dict[str, Any], arrays: dict[str, Ints], classes: list[int]) -> None:
        """Take over a state; see ``Runs.restore``."""
        tokens = header.get("tokens")  # states of before have none
        self._tokens = None if tokens is None else float(tokens)
        finite("tokens", self._tokens or 0.0)
        if "search" not in arrays:  # of a run that only follows runs
            super().restore(header, arrays, classes)
            return
        check_arrays(arrays, {"search": Range(kernel.WORK), "real": Range(kernel.FOR_OTHERS)})
        kept = {name: arrays.pop(f"kept_{name}") for name in (*PLAIN, "words")}
        self._search[:] = arrays.pop("search")
        self._search[kernel.IS_KEPT] = 0
        self._real[: kernel.FOR_OTHERS] = arrays.pop("real").view(np.float64)
        finite("real", float(self._real[kernel.AHEAD]))
        super().restore(header, arrays, classes)
        events, columns = kept["tick"].size, len(self.columns.expressions)
        ranges = {name: Range(events, -TICK, TICK) for name in ("tick", "place")} | {"id": Range(events, 0, COUNT)}
        ranges |= {"slot": Range(events, 0, max(self.slots, 1)), "cls": Range(events, 0, len(classes))}
        check_arrays(kept, ranges | {"words": Range(events * columns)})
        kept["words"] = kept["words"].reshape(columns, events)
        for place, one in enumerate(self.columns.expressions):
            if self.columns.kind(one) in CODED:
                held = kept["words"][place]
                check("words", good=((held == NULL) | ((held >= 0) & (held < len(self.columns.texts)))).all())
        self.kept = self._room(len(self.kept.tick))  # there may be more keys
        self._put(kept)

    def _put(self, columns: dict[str, Ints]) -> None:
        """Keep these events, and no others."""
        events, before = len(columns["tick"]), len(self.kept.tick)
        room = max(before, 2 * events)
        if room > before:
            self.kept = self._room(room)
        else:  # new memory takes several times as long
            self.kept.heads.fill(-1)
            self.kept.table.fill(-1)
        for name in PLAIN:
            getattr(self.kept, name)[:events] = columns[name]
        self.kept.words.reshape(-1, room)[: len(columns["words"]), :events] = columns["words"]
        self.kept.used[0] = events
        kept_events.keep_again(self.search_tables.searches, self.kept, self.kept.words.view(np.float64))
