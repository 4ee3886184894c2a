"""The runs of one key, copied: to go back to where they stood, or to go on with them in another engine.

Source: ours. A change in the past of a key is answered by bringing back a copy from before it, and running what came
after it once more (Chandramouli et al., PVLDB 3(1) 2010, section 5.1, keeps a list of matches per event for this).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from acep_approx.arrays import Floats, Ints
from acep_approx.engines.engine import does_not_fit
from acep_approx.kernels.runs import layout, saved
from acep_approx.kernels.runs import lineage as kernel_lineage
from acep_approx.kernels.runs import pools as kp


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
