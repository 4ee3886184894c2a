"""The runs of keys that are not current, saved one after the other; and copies of single keys.

A copy is there to go back to where a key stood, or to go on with it in another engine. Source: ours. A change in the
past of a key is answered by bringing back a copy from before it, and running what came after it once more
(Chandramouli et al., PVLDB 3(1) 2010, section 5.1, keeps a list of matches per event for this).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from acep_approx.arrays import Floats, Ints, extended, places
from acep_approx.engines.engine import does_not_fit
from acep_approx.kernels.runs import layout, records, saved
from acep_approx.kernels.runs import lineage as kernel_lineage
from acep_approx.kernels.runs import pools as kp
from acep_approx.kernels.runs.pools import NEVER

CHANGES, MOST_SPARE = 32, 1 << 16
"""Changes of key, of keys with as many runs, that there is room for beside what is needed, and words at most: what was
saved before a key was saved again is swept out when it is full, and that takes as long as dozens of changes."""


class SavedPool(NamedTuple):
    """Where a pool stands among saved words: its number, its runs, its first column."""

    pool: int
    runs: int
    columns_at: int

    @property
    def links(self) -> slice:
        """Where its runs have their links."""
        return slice(self.columns_at + self.runs, self.columns_at + 2 * self.runs)


@dataclass(eq=False)
class RunsOfKey:
    """A copy of the runs of one key, with its guards and its pace; ``Runs.fork`` makes it, ``Runs.put`` brings it back.

    ``links``: those that the runs lead to, numbered on their own, where the copy is for another engine. Else its links
    are those of the engine, which keeps them as long as the copy is held.
    """

    words: Ints
    guards: Ints
    pace: Floats
    links: Ints | None = None

    def pools(self, fields: Ints) -> Iterator[SavedPool]:
        """Its pools; ``fields``: per pool its columns behind start and link."""
        return saved_pools(self.words, 0, self.words.size, fields)


def saved_pools(words: Ints, begin: int, end: int, fields: Ints) -> Iterator[SavedPool]:
    """The pools in saved words; ``fields``: per pool its columns behind start and link."""
    at = begin
    while at < end:
        pool, runs = int(words[at]) & saved.POOL_MASK, int(words[at + 1])
        yield SavedPool(pool, runs, at + saved.SAVED)
        at += saved.SAVED + runs * (kp.COLUMNS + int(fields[pool]))


def links_of(copy: RunsOfKey, fields: Ints) -> Ints:
    """The links of the runs of a copy, without those that have none."""
    columns = [copy.words[each.links] for each in copy.pools(fields)]
    links: Ints = np.concatenate([np.zeros(0, np.int64), *columns])
    return links[links >= 0]


def renumber(copy: RunsOfKey, fields: Ints, number: Ints) -> None:
    """Give the links of a copy their new numbers."""
    for each in copy.pools(fields):
        links = copy.words[each.links]
        copy.words[each.links] = np.where(links >= 0, number[links], links)


def newest_start(copy: RunsOfKey, fields: Ints) -> int:
    """The latest start of its runs; below every tick where there are none."""
    starts = [int(copy.words[each.columns_at :][: each.runs].max()) for each in copy.pools(fields)]
    return max(starts, default=kp.NEVER)


def with_links(copy: RunsOfKey, fields: Ints, links: Ints) -> RunsOfKey:
    """A copy that brings all links which its runs lead to."""
    table = links.reshape(-1, layout.LINK)
    needed = np.zeros(len(table), np.int64)
    needed[links_of(copy, fields)] = 1
    kernel_lineage.mark(links, needed)
    kept = np.flatnonzero(needed)
    number = np.full(len(table), -1, np.int64)
    number[kept] = np.arange(len(kept))
    taken = table[kept]
    for word in (layout.LINK_BEFORE, layout.LINK_OTHER):
        taken[:, word] = np.where(taken[:, word] >= 0, number[taken[:, word]], taken[:, word])
    moved = RunsOfKey(copy.words.copy(), copy.guards, copy.pace, taken.ravel())
    renumber(moved, fields, number)
    return moved


def check(copy: RunsOfKey, fields: Ints, used: int, guards: int) -> None:
    """Refuse a copy that does not fit: nothing of it is an index before it was looked at.

    Parameters
    ----------
    copy : RunsOfKey
    fields : int64 array, shape (pools,)
    used : int
        Links that there are.
    guards : int
        Words of guards that a key has.

    Raises
    ------
    DataError
        ``ACEP-D047``

    Complexity: O(words of the copy).
    """
    end, words, fits = copy.words.size, copy.words, copy.guards.size == guards and copy.pace.size == 2
    at = 0
    while fits and at < end:
        fits = at + saved.SAVED <= end
        pool = int(words[at]) & saved.POOL_MASK
        fits = fits and 0 < pool < len(fields) and 0 <= int(words[at]) >> saved.PENDING <= words[at + 1]
        if fits:
            at += saved.SAVED + int(words[at + 1]) * (kp.COLUMNS + int(fields[pool]))
    if copy.links is not None:
        used, to = copy.links.size // layout.LINK, copy.links.reshape(-1, layout.LINK)
        before = to[:, [layout.LINK_BEFORE, layout.LINK_OTHER]]
        fits = fits and bool(np.all(before < np.arange(used)[:, None]))
    if not fits or at != end or links_of(copy, fields).max(initial=-1) >= used:
        raise does_not_fit("runs")


class KeptRuns(Protocol):
    """Runs of many keys that are kept beside an engine, whose links they share."""

    store: KeyStore

    def renumber(self, number: Ints, pools: Ints) -> None:
        """Links have got new numbers; ``pools``: the words of all pools of the engine."""


class KeyStore:
    """What is kept per key slot; ``used`` words of ``stored`` are.

    Parameters
    ----------
    guard_words : int
        Per key.

    Attributes
    ----------
    slots, needed : int
        Key slots that there is room for, and those that were asked for.
    """

    def __init__(self, guard_words: int) -> None:
        self._guard_words = guard_words
        self.slots = self.needed = 0
        self.stored = np.zeros(1024, np.int64)
        self.spans = np.zeros(0, np.int64)
        self.guards = np.zeros(0, np.int64)
        self.pace: Floats = np.zeros(0)

    def record(self) -> records.Keys:
        """What kernels take."""
        return records.Keys(self.stored, self.spans, self.guards)

    @property
    def rows(self) -> Ints:
        """Per slot where its runs are saved, how many words they take, and their latest start."""
        return self.spans.reshape(-1, saved.SPAN)

    def reserve(self, slots: int) -> None:
        """Make room for key slots ``0 .. slots - 1``."""
        self.needed = max(self.needed, slots)
        if slots > self.slots:
            grown = max(slots, 2 * self.slots)
            self.spans = extended(self.spans, grown * saved.SPAN, 0)
            self.rows[self.slots :, 2] = NEVER
            self.guards = extended(self.guards, grown * self._guard_words, -1)
            self.pace = np.concatenate((self.pace, np.zeros(2 * grown - self.pace.size)))
            self.slots = grown

    def room_for(self, wanted: int, control: Ints) -> None:
        """Make room for so many words more."""
        if control[layout.STORED] + wanted <= self.stored.size:
            return
        if control[layout.SLOT] >= 0:
            self.rows[control[layout.SLOT], 1] = 0  # what was saved of the current key is outdated
        spare = min(CHANGES * wanted, MOST_SPARE)
        self._move(max(1024, 3 * int(self.rows[:, 1].sum()) + 2 * wanted + spare), control)

    def pack(self, control: Ints) -> None:
        """Let go of what was saved of keys before they were saved again."""
        live = int(self.rows[:, 1].sum())
        if live < control[layout.STORED]:
            self._move(live, control)

    def _move(self, size: int, control: Ints) -> None:
        moved = np.zeros(size, np.int64)
        control[layout.STORED] = saved.pack_stored(self.record(), moved)
        self.stored = moved

    def clear(self, slots: Ints) -> None:
        """Forget some keys."""
        self.rows[slots] = 0, 0, NEVER
        self.guards.reshape(self.slots, -1)[slots] = -1
        self.pace.reshape(-1, 2)[slots] = 0

    def pools_of(self, slot: int, fields: Ints) -> Iterator[SavedPool]:
        """Where the saved runs of a key stand in ``stored``."""
        begin, length, _ = self.rows[slot].tolist()
        return saved_pools(self.stored, begin, begin + length, fields)

    def pools(self, fields: Ints) -> Iterator[SavedPool]:
        """Where the saved runs of all keys stand in ``stored``."""
        for begin, length, _ in self.rows.tolist():
            yield from saved_pools(self.stored, begin, begin + length, fields)

    def copy_of(self, slot: int, words: Ints | None) -> RunsOfKey:
        """A copy of a key whose runs are ``words``; None: those that are saved."""
        begin, length, _ = self.rows[slot].tolist()
        runs = self.stored[begin : begin + length].copy() if words is None else words
        return RunsOfKey(runs, self.guards.reshape(self.slots, -1)[slot].copy(), self.pace.reshape(-1, 2)[slot].copy())

    def put(self, slot: int, copy: RunsOfKey, newest: int, control: Ints) -> None:
        """Take in a copy whose latest start is ``newest``."""
        self.rows[slot, 1] = 0
        self.room_for(copy.words.size, control)
        at = int(control[layout.STORED])
        self.stored[at : at + copy.words.size] = copy.words
        self.rows[slot] = at, copy.words.size, newest
        control[layout.STORED] = at + copy.words.size
        self.guards.reshape(self.slots, -1)[slot] = copy.guards
        self.pace.reshape(-1, 2)[slot] = copy.pace

    def copied(self, used: int, slots: Ints | None = None) -> KeyStore:
        """A store of its own with all keys, or with some, whose runs are packed."""
        copy = KeyStore(self._guard_words)
        keys = np.arange(self.needed) if slots is None else slots
        copy.slots = copy.needed = len(keys)
        copy.spans = self.rows[keys].ravel()
        copy.guards = self.guards.reshape(self.slots, self._guard_words)[keys].ravel()
        copy.pace = self.pace.reshape(self.slots, 2)[keys].ravel()
        begin, length, _ = copy.rows.T
        copy.stored = self.stored[:used][places(begin, length)]
        copy.rows[:, 0] = np.cumsum(length) - length
        return copy

    def take(self, slots: Ints, other: KeyStore, theirs: Ints, control: Ints) -> None:
        """Let keys stand where those of the slots ``theirs`` stand in another store.

        Complexity: O(runs of these keys), if there is room.
        """
        begin, length, _ = other.rows[theirs].T
        self.rows[slots, 1] = 0
        self.room_for(int(length.sum()), control)
        at = int(control[layout.STORED])
        ends = at + np.cumsum(length)
        self.stored[at : ends[-1] if len(ends) else at] = other.stored[places(begin, length)]
        self.rows[slots] = other.rows[theirs]
        self.rows[slots, 0] = ends - length
        control[layout.STORED] = ends[-1] if len(ends) else at
        shape = self.slots, self._guard_words
        guards = other.guards.reshape(other.slots, self._guard_words)
        self.guards.reshape(shape)[slots] = guards[theirs]
        self.pace.reshape(-1, 2)[slots] = other.pace.reshape(-1, 2)[theirs]

    def arrays(self, used: int, *, sheds: bool) -> dict[str, Ints]:
        """The state as arrays, packed before."""
        return {
            "stored": self.stored[:used],
            "spans": self.spans[: saved.SPAN * self.needed],
            "guards": self.guards[: self._guard_words * self.needed],
            "pace": self.pace.view(np.int64)[: 2 * self.needed * sheds],
        }

    def restore(self, arrays: dict[str, Ints], *, sheds: bool) -> None:
        """Take over what ``arrays`` gave."""
        self.stored, self.spans, self.guards = arrays["stored"], arrays["spans"], arrays["guards"]
        self.slots = self.needed = self.spans.size // saved.SPAN
        self.pace = arrays["pace"].view(np.float64) if sheds else np.zeros(2 * self.slots)
