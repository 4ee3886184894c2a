"""Streams that change: one that is generated, and three real ones.

Each has a part before the change, a part after it, and more of what comes after, from which a fresh history can be
learned without seeing the part that is measured. Conditions and windows of the queries on real streams are such that
there are some hundred match points.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from experiments.streams import real

Bools = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.int64]

KEYS, PRODUCTIVE = 12, 3
VALUES = 8
WINDOW = 1000
HALF = 24 * WINDOW
"""Events of a generated stream before the change, and after it."""
LETTERS = tuple("ABCDEF")
RATES = ((0.30, 0.15, 0.10, 0.15, 0.15, 0.15), (0.10, 0.15, 0.30, 0.15, 0.15, 0.15))
"""Shares of the letters, before the change and after it."""
TELLING = ((0, 1), (4, 5))
"""Values that what ends a match has, before the change and after it."""
SECOND = 1_000_000
OPENING = 30 * 60 * SECOND
LEAGUE = 60_000
"""Events of the league that are learned from: its last ones."""
DAY = 24 * 60 * 60 * SECOND


@dataclass(frozen=True)
class Drift:
    """A query, and events before and after a change.

    Attributes
    ----------
    name : str
    query : str
    before, after : pyarrow.Table
        Consecutive parts of one stream.
    fresh : pyarrow.Table
        Other events like those after the change.
    unit : str or None
        Unit of the time column, as ``Matcher`` takes it.
    """

    name: str
    query: str
    before: pa.Table
    after: pa.Table
    fresh: pa.Table
    unit: str | None = "us"


def swapped(seed: int, half: int = HALF) -> Drift:
    """A generated stream in which productive keys, rates of letters and selectivities change at once.

    Parameters
    ----------
    seed : int
    half : int
        Events before the change, after it, and to learn afresh from; one a tick.

    Notes
    -----
    Matches are ``A B C D`` of one ``id`` of which ``D`` has the ``z`` of ``A``. Only some keys have ``D`` at all; in
    the others ``E`` comes instead. After the change other keys have it, ``A`` and ``C`` have swapped rates, and ``D``
    has other values of ``z``.
    """
    rng = np.random.default_rng(seed)
    keys = rng.permutation(KEYS) + 1
    of_half = keys[:PRODUCTIVE], keys[PRODUCTIVE : 2 * PRODUCTIVE]
    query = (
        f"PATTERN SEQ(A a, B b, C c, D d) WHERE [id] AND (d.z - a.z) * (d.z - a.z) < 1 AND b.x < c.x WITHIN {WINDOW}"
    )
    before, after, fresh = (_part(rng, number * half, half, of_half[changed], changed) for number, changed in PARTS)
    return Drift("swapped", query, before, after, fresh, None)


PARTS = ((0, 0), (1, 1), (2, 1))
"""Of a generated stream: number, and whether it is like what comes after the change."""


def _part(rng: np.random.Generator, first: int, events: int, productive: Ints, changed: int) -> pa.Table:
    letter = rng.choice(len(LETTERS), events, p=RATES[changed])
    key = rng.integers(1, KEYS + 1, events)
    is_end = letter == LETTERS.index("D")
    letter[is_end & ~np.isin(key, productive)] += 1
    z = np.where(is_end, rng.choice(TELLING[changed], events), rng.integers(0, VALUES, events))
    return pa.table(
        {
            "ts": np.arange(first, first + events),
            "type": np.array(LETTERS)[letter],
            "id": key,
            "x": rng.integers(0, 100, events),
            "z": z,
        }
    )


def zeek(seed: int) -> Drift:
    """Connections of hosts: a quiet net, then a host that floods another with requests.

    The change is the second in which events come most suddenly: see ``jump``. A fresh history is learned from the later
    half of what follows.
    """
    del seed
    stream = real.load("zeek")
    cut = jump(_ticks(stream), SECOND)
    half = (len(stream) - cut) // 2
    query = (
        "PATTERN SEQ(analyzer a, ssl b, analyzer c, ssl d) WHERE [key] AND b.conn = a.conn AND d.conn = c.conn"
        " AND c.conn <> a.conn WITHIN 50 ms"
    )
    return Drift("zeek", query, stream.slice(0, cut), stream.slice(cut, half), stream.slice(cut + half))


def ticks(seed: int) -> Drift:
    """Trades from the close of one day on, into the half hour after the next day's open.

    Open and close are the first and last event of a day that is not marked as out of hours. A fresh history is learned
    from the half hour after the open of the day after.
    """
    del seed
    stream = real.load("ticks")
    tick = _ticks(stream)
    first, last = days(tick, stream.column("ext_hours").to_numpy() == 0)
    ends = np.searchsorted(tick, tick[first] + OPENING)
    query = (
        "PATTERN SEQ(SPY a, SPY b, SPY c, SPY d) WHERE [key] AND a.move = 1 AND b.move <> 1"
        " AND c.price_e4 > a.price_e4 AND d.price_e4 > c.price_e4 AND d.size > a.size + c.size WITHIN 1 s"
    )
    parts = ((last[0] + 1, first[1]), (first[1], ends[1]), (first[2], ends[2]))
    return Drift("ticks", query, *(stream.slice(int(begin), int(end - begin)) for begin, end in parts))


def soccer(seed: int) -> Drift:
    """The last events of a league, then a cup.

    The cup was played earlier; here it is moved in time, to the day after. The change is where ``comp`` changes. The
    first half of its events is measured, the rest is what a fresh history is learned from.
    """
    del seed
    stream = real.load("soccer")
    comp = stream.column("comp").to_numpy(zero_copy_only=False)
    cup = stream.slice(0, int(np.argmax(comp != comp[0])))
    league = stream.slice(len(stream) - LEAGUE)
    moved = _ticks(cup) - _ticks(cup)[0] + _ticks(league)[-1] + DAY
    cup = cup.set_column(cup.schema.get_field_index("ts"), "ts", pa.array(moved))
    half = len(cup) // 2
    query = (
        "PATTERN SEQ(Pass a, Pass b, Pass c, Pass d, Shot s) WHERE [key] AND [team] AND a.accurate = 1"
        " AND b.accurate = 1 AND c.accurate = 1 AND d.accurate = 1 AND a.player <> b.player AND a.player <> c.player"
        " AND a.player <> d.player AND b.player <> c.player AND b.player <> d.player AND c.player <> d.player"
        " AND a.x < b.x AND b.x < c.x AND c.x < d.x WITHIN 60 s"
    )
    return Drift("soccer", query, league, cup.slice(0, half), cup.slice(half))


DRIFTS: dict[str, Callable[[int], Drift]] = {"swapped": swapped, "zeek": zeek, "ticks": ticks, "soccer": soccer}
"""Name: stream by seed; real ones are what they are."""


def jump(tick: Ints, width: int) -> int:
    """The first event of the slot in which events come most suddenly.

    Parameters
    ----------
    tick : int64 array, shape (events,)
        In order.
    width : int
        Ticks of a slot.

    Returns
    -------
    int
        An index of the slot that has most events, as a multiple of those of the slot before (one at least).

    Examples
    --------
    >>> jump(np.array([0, 3, 11, 20, 21, 22, 25, 26, 31, 32, 33, 34, 36, 38, 39]), 10)
    3
    """
    counts = np.bincount((tick - tick[0]) // width)
    slot = 1 + int(np.argmax(counts[1:] / np.maximum(counts[:-1], 1)))
    return int(np.searchsorted(tick, tick[0] + slot * width))


def days(tick: Ints, is_open: Bools) -> tuple[Ints, Ints]:
    """First and last event of each day at which the market is open.

    Parameters
    ----------
    tick : int64 array, shape (events,)
        In microseconds, in order.
    is_open : bool array, shape (events,)

    Returns
    -------
    first, last : int64 arrays, shape (days,)
        Indexes of events.
    """
    chosen = np.flatnonzero(is_open)
    day = tick[chosen] // DAY
    return chosen[np.diff(day, prepend=-(2**62)) > 0], chosen[np.diff(day, append=2**62) > 0]


def _ticks(stream: pa.Table) -> Ints:
    return np.asarray(stream.column("ts").to_numpy(), np.int64)
