"""Streams of the shape of real ones: the same columns and types, rates that are alike, values without their history.

They show that an experiment works, and roughly what load it is; what is found in them says nothing of the real ones.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Ints = npt.NDArray[np.int64]
SECOND = 1_000_000
HOUR = 60 * 60 * SECOND
DAY = 24 * HOUR
TRADES = 50
"""Of a burst."""
BEGIN = 1_381_132_800 * SECOND
"""Midnight of 7 October 2013."""


def ticks(events: int = 420_000, days: int = 3) -> pa.Table:
    """Trades of four stocks on thirteen markets, in bursts: each price walks, and the open market is the busy time."""
    dice = np.random.default_rng(1)
    bursts = events // days // TRADES
    open_, close = int(DAY * 9.5 / 24), int(DAY * 16 / 24)
    begins = np.where(
        dice.random((days, bursts)) < 0.9,
        dice.integers(open_, close, (days, bursts)),
        dice.integers(4 * HOUR, 20 * HOUR, (days, bursts)),
    )
    of_day = np.repeat(begins, TRADES, axis=1) + dice.integers(0, 60, (days, TRADES * bursts)) * 1000
    of_day = np.sort(of_day // 1000 * 1000, axis=1)
    is_open = (of_day >= open_) & (of_day < close)
    ts = (of_day + BEGIN + np.arange(days)[:, None] * DAY).ravel()
    count = len(ts)
    kind = dice.choice(4, count, p=(0.68, 0.20, 0.07, 0.05))
    kind = np.where(dice.random(count) < 0.3, np.repeat(kind[::TRADES], TRADES), kind)
    move = dice.choice((-1, 0, 1), count, p=(0.15, 0.70, 0.15))
    price = np.zeros(count, np.int64)
    for stock, first in enumerate((1_690_000, 140_000, 480_000, 1_830_000)):
        mine = kind == stock
        price[mine] = first + 100 * np.cumsum(move[mine])
    columns = {
        "price_e4": price.astype(np.int32),
        "size": (100 * np.ceil(dice.pareto(1.3, count) + 0.01)).clip(2, 3_000_000).astype(np.int32),
        "move": move.astype(np.int8),
        "sweep": (dice.random(count) < 0.3).astype(np.int8),
        "ext_hours": (~is_open).ravel().astype(np.int8),
    }
    return _stream(ts, _of("PDQZKTJNYBXCW", dice, count), _named(("SPY", "BAC", "AIG", "IBM"), kind), columns)


def bikes(trips: int = 65_000) -> pa.Table:
    """Trips of bikes, most in the morning: each begins where that bike was left, or where a van took it."""
    dice = np.random.default_rng(2)
    bike = dice.integers(10, 697, trips)
    minute = np.where(dice.random(trips) < 0.5, dice.normal(510, 30, trips), dice.integers(0, 1440, trips))
    start = np.sort(dice.integers(0, 60, trips) * DAY + minute.astype(np.int64) * 60 * SECOND) + BEGIN
    seconds = (60 * dice.lognormal(2.3, 0.8, trips)).astype(np.int64).clip(60, 700_000)
    to = (1 + dice.zipf(1.5, trips) % 71).astype(np.int64)
    order = np.lexsort((start, bike))
    left = np.roll(to[order], 1)
    is_moved = (np.diff(bike[order], prepend=-1) != 0) | (dice.random(trips) < 0.1)
    came = np.empty(trips, np.int64)
    came[order] = np.where(is_moved, dice.integers(2, 72, trips), left)
    is_member = (dice.random(trips) < 0.85).astype(np.int8)
    region = _of(("San Francisco", "San Jose", "Palo Alto", "Mountain View", "Redwood City"), dice, trips)
    end = (start + seconds * SECOND) // (60 * SECOND) * (60 * SECOND)
    both = {
        "trip": np.tile(np.arange(trips), 2).astype(np.int32),
        "station": np.concatenate([came, to]).astype(np.int16),
        "from_station": np.tile(came, 2).astype(np.int16),
        "duration_s": np.concatenate([np.zeros(trips), seconds]).astype(np.int32),
        "subscriber": np.tile(is_member, 2),
        "region": np.tile(region, 2),
    }
    kinds = np.repeat(["start", "end"], trips)
    return _stream(np.concatenate([start, end]), np.tile(bike.astype(str), 2), kinds, both)


def tweets(events: int = 71_784) -> pa.Table:
    """Tweets on stocks, a few of them with words that tell of a rise or a fall."""
    dice = np.random.default_rng(3)
    mask = np.where(dice.random(events) < 0.06, 1 << dice.integers(0, 7, events), 1 << 17)
    words = np.array(("b", "d", "w", "w", "g", "e", "u"))
    kinds = np.where(mask < 1 << 7, words[np.log2(mask).astype(int) % 7], "o")
    is_again = dice.random(events) < 0.3
    columns = {
        "tweet_id": 418_000_000_000_000_000 + np.arange(events),
        "user": dice.integers(1, 24_000, events).astype(np.int32),
        "followers": dice.lognormal(7, 2, events).clip(0, 6_000_000).astype(np.int32),
        "is_rt": is_again.astype(np.int8),
        "rt_of": np.where(is_again, 418_000_000_000_000_000, 0),
        "kw_mask": mask.astype(np.int32),
        **{f"n_{what}": dice.integers(0, 9, events).astype(np.int16) for what in ("cashtags", "urls", "words")},
    }
    return _stream(_busy(dice, events, 515 * DAY), _of(STOCKS, dice, events), kinds, columns)


STOCKS = ("AAPL", "GOOG", "AMZN", "FB", "BAC", "C", "GE", "XOM", *(f"S{number}" for number in range(78)))


def tweets_tokens(events: int = 72_000) -> pa.Table:
    """The letters of tweets: S, a, for some of them a word, E."""
    dice = np.random.default_rng(4)
    words = dice.choice(list("bdwgeu"), events, p=(0.2, 0.1, 0.1, 0.1, 0.4, 0.1))
    word = np.where(dice.random(events) < 0.05, words, "")
    letters = np.stack([np.repeat("S", events), np.repeat("a", events), word, np.repeat("E", events)], axis=1)
    is_there = letters != ""
    ts, keys = _busy(dice, events, 515 * DAY), _of(STOCKS, dice, events)
    rows = np.nonzero(is_there)
    columns = {"tweet_id": 418_000_000_000_000_000 + rows[0], "pos": rows[1].astype(np.int16)}
    return _stream(ts[rows[0]], keys[rows[0]], letters[is_there], columns)


def soccer(matches: int = 170, events: int = 1_640) -> pa.Table:
    """Matches of two teams of eleven, one after the other: first those of a cup, then those of a league."""
    dice = np.random.default_rng(5)
    count = matches * events
    match = np.repeat(np.arange(matches), events)
    ts = np.sort(dice.integers(0, 95 * 60 * SECOND, (matches, events)), axis=1).ravel() + BEGIN + match * DAY
    teams = 1_600 + dice.permuted(np.tile(np.arange(40), (matches, 1)), axis=1)[:, :2]
    holds = (np.cumsum(dice.random(count) < 0.2) + match) % 2  # the ball changes sides after five events, on average
    team = teams[match, holds]
    names = ("Pass", "Duel", "SetPiece", "Shot", "Save", "Touch", "Foul", "Offside", "KeeperOut", "Interruption")
    kind = dice.choice(10, count, p=(0.52, 0.27, 0.058, 0.014, 0.005, 0.076, 0.014, 0.003, 0.002, 0.038))
    place = {name: dice.integers(0, 101, count).astype(np.int8) for name in ("x", "y", "x_to", "y_to")}
    columns = {
        "sub": np.repeat("-", count),
        "comp": np.where(match < matches // 6, "Cup", "League"),
        "period": _of(("1H", "2H"), dice, count),
        "team": team.astype(np.int32),
        "player": (team * 100 + dice.integers(0, 11, count)).astype(np.int32),
        **place,
        "accurate": (dice.random(count) < 0.8).astype(np.int8),
        "duel": dice.integers(-1, 2, count).astype(np.int8),
        "goal": ((kind == names.index("Shot")) & (dice.random(count) < 0.1)).astype(np.int8),
        **{name: (dice.random(count) < 0.02).astype(np.int8) for name in FLAGS},
        "card": np.zeros(count, np.int8),
    }
    return _stream(ts, (1_694_000 + match).astype(str), _named(names, kind), columns)


FLAGS = ("key_pass", "counter", "interception", "danger_loss")


def zeek(events: int = 78_488) -> pa.Table:
    """Logs of a network: a quiet one, then one that a host floods with requests."""
    dice = np.random.default_rng(6)
    quiet = events // 3
    ts = np.concatenate([dice.integers(0, 180, quiet), dice.integers(180, 270, events - quiet)]) * SECOND
    ts = np.sort(ts + dice.integers(0, SECOND, events)) + BEGIN
    is_flood = (np.arange(events) > quiet) & (dice.random(events) < 0.7)
    host = np.where(is_flood, 7, dice.integers(0, 254, events))
    kind = dice.choice(4, events, p=(0.1, 0.35, 0.25, 0.3))
    kind = np.where(is_flood, dice.choice(4, events, p=(0.005, 0.05, 0.1, 0.845)), kind)
    name = dice.integers(0, 40, events)
    columns = {
        "sub": np.repeat("-", events),
        "dst": _named([f"10.0.0.{number}" for number in range(60)], dice.integers(0, 60, events)),
        "port": dice.choice((53, 80, 443, 3389), events).astype(np.int32),
        "ok": (dice.random(events) < 0.7).astype(np.int8),
        "name": _named([f"host-{number}.example" for number in range(40)], name),
        "rtt": dice.exponential(0.05, events).astype(np.float32),
        "conn": (np.arange(events) // 3 + dice.integers(0, 3, events)).astype(np.int32),
    }
    keys = _named([f"10.47.{number}.1" for number in range(254)], host)
    return _stream(ts, keys, _named(("dns", "ssl", "analyzer", "weird"), kind), columns)


MAKERS: dict[str, Callable[[], pa.Table]] = {
    "ticks": ticks,
    "bikes": bikes,
    "tweets": tweets,
    "tweets_tokens": tweets_tokens,
    "soccer": soccer,
    "zeek": zeek,
}
"""Name: what makes a stream of that shape, always the same."""


def _named(names: Any, codes: Ints) -> npt.NDArray[np.str_]:
    return np.array(names)[codes]


def _of(names: Any, dice: np.random.Generator, count: int) -> npt.NDArray[np.str_]:
    """Names at random, the first ones the most often."""
    share = 1 / np.arange(1, len(names) + 1)
    return dice.choice(list(names), count, p=share / share.sum())  # type: ignore[no-any-return]


def _busy(dice: np.random.Generator, events: int, length: int) -> Ints:
    """Times that come in clumps."""
    clumps = dice.integers(0, length, events // 50)
    return np.sort(dice.choice(clumps, events) + dice.integers(0, 3 * HOUR, events)) + BEGIN


def _stream(ts: Ints, keys: Any, kinds: Any, columns: dict[str, Any]) -> pa.Table:
    """A table in the order of time; events at one time stay in the order given."""
    order = np.argsort(ts, kind="stable")
    number = np.arange(len(ts), dtype=np.int32)
    first = {"ts": ts[order], "key": keys[order], "type": kinds[order], "eid": number}
    return pa.table({**first, **{name: values[order] for name, values in columns.items()}})
