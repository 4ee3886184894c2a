"""The workloads on which other engines were measured: their streams, made from a seed, and their queries.

W2: sequences of four letters among ``N``. W2K: a letter, one or more of another, a third one; every choice of those in
between is a match. W1: rising prices of a stock, the query template of SASE+ (Agrawal et al., SIGMOD 2008). W3: three
rising peaks of one stock within three minutes, the documented example of OpenCEP; its bars are made up, with as many
matches per event as the real ones have.

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

RISING = "GOOG"
"""The stock of W3 whose peaks are looked at."""

QUADRUPLES = f"PATTERN SEQ(A a, B b, C c, D d) WITHIN {LETTERS_APART}"
CLOSURES = f"PATTERN SEQ(A a, B+ b[], C c) WITHIN {LETTERS_APART}"
PEAKS = f"PATTERN SEQ({RISING} a, {RISING} b, {RISING} c) WHERE b.peak > a.peak AND c.peak > b.peak WITHIN {BARS_APART}"


def stock_query(strategy: str) -> str:
    """W1 with one strategy."""
    return (
        f"PATTERN SEQ(Stock+ a[], Stock b) WHERE {strategy} {{ [symbol] AND a[1].price % {START_EVERY} = 0 "
        f"AND a[i].price > a[i-1].price AND b.volume < {VOLUME_BELOW} }} WITHIN {STOCK_APART}"
    )


@cache
def letters(events: int, alphabet: int) -> pa.Table:
    """Letters drawn evenly: ``ts`` and ``type``, of which there are ``alphabet``, the first ones A, B, C and D."""
    names = np.array([chr(ord("A") + i) if i < 26 else f"L{i}" for i in range(alphabet)])
    drawn = np.random.default_rng(1).integers(0, alphabet, events)
    return pa.table({"ts": np.arange(events), "type": pa.array(names[drawn])})


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
    target : float
        What is asked of us, ns per event.
    variables : tuple of str
        The columns of a match that hold its events, in the order of the pattern; none where matches are only counted.
    """

    title: str
    text: str
    stream: Callable[[int], pa.Table]
    events: int
    target: float
    variables: tuple[str, ...] = ()


WORKLOADS = {
    "W2-20": Workload(
        "W2, 20 letters, listed", QUADRUPLES, partial(letters, alphabet=20), 1_000_000, 70, ("a", "b", "c", "d")
    ),
    "W2-10": Workload(
        "W2, 10 letters, listed", QUADRUPLES, partial(letters, alphabet=10), 200_000, 600, ("a", "b", "c", "d")
    ),
    "W2-50": Workload(
        "W2, 50 letters, listed", QUADRUPLES, partial(letters, alphabet=50), 1_000_000, 35, ("a", "b", "c", "d")
    ),
    "W2-10-count": Workload("W2, 10 letters, counted", QUADRUPLES, partial(letters, alphabet=10), 200_000, 150),
    "W2K": Workload("W2K, listed", CLOSURES, partial(letters, alphabet=20), 500_000, 300, ("a", "b", "c")),
    "W2K-count": Workload("W2K, counted", CLOSURES, partial(letters, alphabet=20), 500_000, 90),
    "W1-contiguity": Workload(
        "W1, contiguity, listed", stock_query("partition_contiguity"), stock, 1_000_000, 80, ("a", "b")
    ),
    "W1-next": Workload(
        "W1, skip till next, listed", stock_query("skip_till_next_match"), stock, 1_000_000, 150, ("a", "b")
    ),
    "W3": Workload("W3, listed", PEAKS, bars, 300_000, 90, ("a", "b", "c")),
}
"""By the name that the command line takes."""
