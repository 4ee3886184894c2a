"""The workloads on which other engines were measured: their streams, made from a seed, and their queries.

W2: sequences of four letters among ``N``; with conditions across events, too, on an ``x`` of 0 to 9. W2K: a letter, one
or more of another, a third one; every choice of those in between is a match. W1: rising prices of a stock, the query
template of SASE+ (Agrawal et al., SIGMOD 2008). W3: three rising peaks of one stock within three minutes, as documented
by OpenCEP; its bars are made up, with as many matches per event as the real ones have.

The time of an event is its row, but for W3, where it is in seconds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial

import numpy as np
import pyarrow as pa

LETTERS_APART = 99
"""``WITHIN`` of W2 and W2K: a hundred events at most, with the first and the last one."""

STOCK_APART = 500
"""``WITHIN`` of W1: events of all symbols."""

BARS_APART = 180
"""``WITHIN`` of W3: seconds."""

START_EVERY = 500
"""W1: ``a[1].price % 500 = 0``."""

VOLUME_BELOW = 150
"""W1: ``b.volume < 150``."""

SYMBOLS = (1, 2)
"""The stocks of W1."""

VALUES = 10
"""How many different ``x`` the letters have, where they have one."""

RISING = "GOOG"
"""The stock of W3 whose peaks are looked at."""

QUADRUPLES = f"PATTERN SEQ(A a, B b, C c, D d) WITHIN {LETTERS_APART}"
CLOSURES = f"PATTERN SEQ(A a, B+ b[], C c) WITHIN {LETTERS_APART}"
PEAKS = f"PATTERN SEQ({RISING} a, {RISING} b, {RISING} c) WHERE b.peak > a.peak AND c.peak > b.peak WITHIN {BARS_APART}"


def compared(condition: str) -> str:
    """W2 with a condition across events."""
    return QUADRUPLES.replace(" WITHIN", f" WHERE {condition} WITHIN")


def stock_query(strategy: str) -> str:
    """W1 with one strategy."""
    return (
        f"PATTERN SEQ(Stock+ a[], Stock b) WHERE {strategy} {{ [symbol] AND a[1].price % {START_EVERY} = 0 "
        f"AND a[i].price > a[i-1].price AND b.volume < {VOLUME_BELOW} }} WITHIN {STOCK_APART}"
    )


@cache
def letters(events: int, alphabet: int) -> pa.Table:
    """Letters drawn evenly: ``ts`` and ``type``, of which there are ``alphabet``, the first ones A, B, C and D."""
    return with_values(events, alphabet).drop_columns("x")


@cache
def with_values(events: int, alphabet: int) -> pa.Table:
    """The same letters, and an ``x`` drawn evenly behind all of them: one from the seed anew would be the letter."""
    names = np.array([chr(ord("A") + i) if i < 26 else f"L{i}" for i in range(alphabet)])
    rng = np.random.default_rng(1)
    drawn, x = rng.integers(0, alphabet, events), rng.integers(0, VALUES, events)
    return pa.table({"ts": np.arange(events), "type": pa.array(names[drawn]), "x": x})


@cache
def stock(events: int) -> pa.Table:
    """Two stocks whose prices walk: up by 1 to 3 with 0.7, down with 0.15; from 999 on again from 0."""
    rng = np.random.default_rng(1)
    symbol, drawn, step = rng.integers(1, 3, events), rng.random(events), rng.integers(1, 4, events)
    moves = np.where(drawn < 0.7, step, np.where(drawn < 0.85, -step, 0))
    price = np.zeros(events, np.int64)
    for one in SYMBOLS:
        price[symbol == one] = np.cumsum(moves[symbol == one]) + 500
    return pa.table(
        {
            "ts": np.arange(events),
            "type": pa.array(np.full(events, "Stock")),
            "symbol": symbol,
            "price": price % 1000,
            "volume": rng.integers(1, 1001, events),
        }
    )


@cache
def bars(events: int) -> pa.Table:
    """Bars of three stocks, one a minute each: the price walks, and the peak of a bar lies up to 1 above it."""
    rng = np.random.default_rng(1)
    names = np.array(["AAPL", "AMZN", RISING])
    minutes = events // len(names)
    shape = (minutes, len(names))
    price = np.round(100 + np.cumsum(rng.normal(0, 0.3, shape), 0), 2)
    peak = price + np.round(rng.random(shape), 2)
    ts = np.repeat(np.arange(minutes), len(names)) * 60
    return pa.table({"ts": ts, "type": pa.array(np.tile(names, minutes)), "peak": peak.ravel()})


@dataclass(frozen=True)
class Published:
    """What others need for a workload, in ns per event, both on one machine.

    Attributes
    ----------
    engine : float
        The fastest other engine that is published.
    loop : float
        A loop in C++ for this one query, which does what the one in ``loops`` does.
    """

    engine: float
    loop: float

    def here(self, loop: float) -> float:
        """What the engine would need where the loop needs ``loop``."""
        return self.engine * loop / self.loop


@dataclass(frozen=True)
class Workload:
    """A query on a stream.

    Attributes
    ----------
    title : str
        For people.
    text : str
        The query.
    stream : callable
        Makes a stream of so many events.
    events : int
        How many events are measured.
    target : float or Published
        What is asked of us, ns per event: so much, or no more than the other engine needs.
    variables : tuple of str
        The columns of a match that hold its events, in the order of the pattern; none where matches are only counted.
    """

    title: str
    text: str
    stream: Callable[[int], pa.Table]
    events: int
    target: float | Published
    variables: tuple[str, ...] = ()


FOUR, THREE = ("a", "b", "c", "d"), ("a", "b", "c")

WORKLOADS = {
    "W2-20": Workload(
        "W2, 20 letters, listed", QUADRUPLES, partial(letters, alphabet=20), 1_000_000, Published(74, 8.8), FOUR
    ),
    "W2-10": Workload(
        "W2, 10 letters, listed", QUADRUPLES, partial(letters, alphabet=10), 200_000, Published(768, 40), FOUR
    ),
    "W2-50": Workload(
        "W2, 50 letters, listed", QUADRUPLES, partial(letters, alphabet=50), 1_000_000, Published(21, 2.4), FOUR
    ),
    "W2-10-equal": Workload(
        "W2-10, a.x = b.x", compared("a.x = b.x"), partial(with_values, alphabet=10), 200_000, 107, FOUR
    ),
    "W2-10-less": Workload(
        "W2-10, a.x < b.x", compared("a.x < b.x"), partial(with_values, alphabet=10), 200_000, 300, FOUR
    ),
    "W2-10-both": Workload(
        "W2-10, a.x = b.x, c.x < d.x",
        compared("a.x = b.x AND c.x < d.x"),
        partial(with_values, alphabet=10),
        200_000,
        87,
        FOUR,
    ),
    "W2-10-count": Workload("W2, 10 letters, counted", QUADRUPLES, partial(letters, alphabet=10), 200_000, 150),
    "W2K": Workload("W2K, listed", CLOSURES, partial(letters, alphabet=20), 500_000, 300, THREE),
    "W2K-count": Workload("W2K, counted", CLOSURES, partial(letters, alphabet=20), 500_000, 90),
    "W1-contiguity": Workload(
        "W1, contiguity, listed", stock_query("partition_contiguity"), stock, 1_000_000, 80, ("a", "b")
    ),
    "W1-next": Workload(
        "W1, skip till next, listed", stock_query("skip_till_next_match"), stock, 1_000_000, 150, ("a", "b")
    ),
    "W3": Workload("W3, listed", PEAKS, bars, 300_000, Published(61, 4.0), THREE),
    "W3-short": Workload("W3, 27,300 bars, listed", PEAKS, bars, 27_300, Published(61, 2.0), THREE),
}
"""By the name that the command line takes."""
