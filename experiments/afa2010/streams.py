"""Streams and queries for ``afa2010``: the stock workload of Chandramouli, Goldstein and Maier, and machines as text.

Source: PVLDB 3(1) 2010, section 6.1; Q1 is their figure 3, Q2 their example 1 in words. A window of W events is
``WITHIN W - 1``: ``ts`` counts events, and ours holds both ends.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from acep_approx.arrays import Ints

DROP = 0.25
"""Their delta, in dollars."""
REAL_DROP = 0.05
TRADES_PER_TICK = 350
"""Every so-many-th trade of SPY is a tick of the real stream: about as many ticks as there were openings of YHOO."""

Ignoring = Literal["nothing", "ignore", "loop"]
"""Of events without a change of the price: they end a run, IGNORE passes over them, or an arc consumes them."""


def as_events(change: np.ndarray) -> pa.Table:
    """Ticks of these changes of the price: one event per tick of time, numbered from 1."""
    events = len(change)
    return pa.table(
        {
            "ts": np.arange(events),
            "type": pa.array(["Tick"] * events).dictionary_encode(),
            "n": np.arange(1, events + 1),
            "change": change,
            "price": 100 + np.cumsum(change),
        }
    )


def stock(events: int, *, rises: float, ignorable: float = 0.0, seed: int = 7) -> pa.Table:
    """A random walk: a share of ticks rises, by N(0.70, 0.30) cut off at 0; ignorable ones change nothing."""
    dice = np.random.default_rng(seed)
    size = dice.normal(0.7, 0.3, events)
    while (size <= 0).any():
        size[size <= 0] = dice.normal(0.7, 0.3, int((size <= 0).sum()))
    change = size * np.where(dice.random(events) < rises, 1, -1)
    return as_events(np.where(dice.random(events) < ignorable, 0.0, change))


def real(folder: Path, events: int) -> pa.Table | None:
    """Changes of the price of SPY from one tick to the next, over and over; None where the file is absent.

    In the place of YHOO's opening prices of 1996 to 2009, which the authors repeated in the same way.
    """
    path = folder / "ticks.parquet"
    if not path.exists():
        return None
    trades = pq.read_table(path, columns=["type", "price_e4"])
    price = trades.filter(pc.equal(trades.column("type"), "SPY")).column("price_e4").to_numpy()
    change = np.diff(price[::TRADES_PER_TICK]) / 1e4
    return as_events(np.resize(change[change != 0], events))


@dataclass(frozen=True)
class Late:
    """A stream, and the order in which its events arrive: a share of them up to ``most`` events late."""

    events: pa.Table
    arrival: Ints

    @classmethod
    def made(cls, events: pa.Table, *, share: float, most: int, seed: int = 3) -> Late:
        """Take out a share of the events, and put them back later."""
        dice = np.random.default_rng(seed)
        count = events.num_rows
        delay = np.where(dice.random(count) < share, dice.integers(1, most + 1, count), 0)
        return cls(events, np.argsort(np.arange(count) + delay, kind="stable"))

    @property
    def arriving(self) -> pa.Table:
        """The events as they arrive."""
        return self.events.take(pa.array(self.arrival))

    def punctuations(self, every: int) -> list[tuple[int, int]]:
        """After so many arrivals each: how many have come, and the earliest time that is still to come."""
        count = len(self.arrival)
        earliest = np.minimum.accumulate(self.arrival[::-1])[::-1]
        return [(at, int(earliest[at])) for at in range(every, count, every)]


# --- queries ----------------------------------------------------------------------------------------------------------


def machine(registers: str, statements: list[str], *, window: int, shown: str) -> str:
    """The text of a machine."""
    lines = "\n  ".join([*([f"REGISTERS {registers}"] if registers else []), *statements])
    return f"PATTERN AUTOMATON (\n  {lines}\n) WITHIN {window - 1}" + (f" RETURN {shown}" if shown else "")


def passing(states: str, ignoring: Ignoring) -> list[str]:
    """What runs at these states do with events that are ignorable."""
    if ignoring == "nothing":
        return []
    if ignoring == "ignore":
        return [f"IGNORE {states} WHEN change = 0"]
    return [f"{state} -> {state} ON Tick WHEN change = 0" for state in states.split(", ")]


def q1(k: int, drop: float, window: int, ignoring: Ignoring = "nothing") -> str:
    """Figure 3: a large drop, then k V-patterns with as many ticks up as down."""
    last = f"patterns + 1 = {k} AND level = 1"
    statements = [
        f"q0 -> q1 ON Tick WHEN change < {-drop}",
        "q1 -> q1 ON Tick WHEN change < 0 SET level = level + 1",
        "q1 -> q2 ON Tick WHEN change < 0 SET level = level + 1",
        "q2 -> q2 ON Tick WHEN change > 0 SET level = level - 1",
        f"q2 -> q1 ON Tick WHEN change > 0 AND patterns + 1 < {k} SET level = level - 1, patterns = patterns + 1",
        f"q2 -> done ON Tick WHEN change > 0 AND {last} SET level = level - 1, patterns = patterns + 1",
        *passing("q1, q2", ignoring),
        "FINAL done",
    ]
    return machine("level = 0, patterns = 0", statements, window=window, shown="patterns")


def q1_in_one_state(k: int, drop: float, window: int) -> str:
    """Q1 as in figure 4, what they call CAN: one state, whose loops look up the state of figure 3 in a register."""
    down, up, more = "change < 0", "change > 0", f"patterns + 1 < {k}"
    last, closed = f"patterns + 1 = {k} AND level = 1", "level = level - 1, patterns = patterns + 1"
    statements = [
        f"run -> run ON Tick WHEN state = 0 AND change < {-drop} SET state = 1",
        f"run -> run ON Tick WHEN state = 1 AND {down} SET level = level + 1",
        f"run -> run ON Tick WHEN state = 1 AND {down} SET state = 2, level = level + 1",
        f"run -> run ON Tick WHEN state = 2 AND {up} SET level = level - 1",
        f"run -> run ON Tick WHEN state = 2 AND {up} AND {more} SET state = 1, {closed}",
        f"run -> done ON Tick WHEN state = 2 AND {up} AND {last} SET {closed}",
        "IGNORE run WHEN change = 0",
        "FINAL done",
    ]
    return machine("state = 0, level = 0, patterns = 0", statements, window=window, shown="patterns")


def q2(drop: float, window: int, ignoring: Ignoring = "nothing") -> str:
    """Example 1: a large drop, then V-patterns until the price is back; how many of them."""
    statements = [
        f"q0 -> q1 ON Tick WHEN change < {-drop} SET top = price - change",
        "q1 -> q1 ON Tick WHEN change < 0",
        "q1 -> q2 ON Tick WHEN change > 0 AND price < top",
        "q1 -> done ON Tick WHEN change > 0 AND price >= top SET patterns = patterns + 1",
        "q2 -> q2 ON Tick WHEN change > 0 AND price < top",
        "q2 -> q1 ON Tick WHEN change < 0 SET patterns = patterns + 1",
        "q2 -> done ON Tick WHEN change > 0 AND price >= top SET patterns = patterns + 1",
        *passing("q1, q2", ignoring),
        "FINAL done",
    ]
    return machine("top = 0.0, patterns = 0", statements, window=window, shown="patterns")


def q3(window: int, seed: int = 5) -> str:
    """Eight ticks, each up or down by lot; no registers."""
    signs = np.where(np.random.default_rng(seed).random(8) < 0.5, "<", ">")
    arcs = [f"q{n} -> q{n + 1} ON Tick WHEN change {sign} 0" for n, sign in enumerate(signs)]
    return machine("", [*arcs, "FINAL q8"], window=window, shown="")


def v_patterns(window: int) -> str:
    """The first machine of figure 5: every V-pattern, with its ticks down less those up, and its lowest tick."""
    statements = [
        "v0 -> v1 ON Tick WHEN change < 0 SET level = 1, low = ts",
        "v1 -> v1 ON Tick WHEN change < 0 SET level = level + 1, low = ts",
        "v1 -> v2 ON Tick WHEN change > 0 SET level = level - 1",
        "v2 -> v2 ON Tick WHEN change > 0 SET level = level - 1",
        "FINAL v2",
    ]
    return machine("level = 0, low = 0", statements, window=window, shown="level, low")


def chained(k: int, window: int) -> str:
    """The second machine of figure 5: a drop, then k V-patterns, each beginning right behind what was before it.

    At ``w`` a run has seen a V-pattern that begins where it must, and looks at longer ones of the same lowest tick.
    """
    fits = "since = next AND patterns + 1"
    further = "SET next = ts + 1, patterns = patterns + 1, level = level + rise"
    last = f"{fits} = {k} AND level + rise = 0 SET patterns = patterns + 1"
    return machine(
        "next = 0, lowest = 0, level = 0, patterns = 0",
        [
            "q0 -> q1 ON Drop SET next = ts + 1",
            *(f"{state} -> q1 ON V WHEN {fits} < {k} {further}" for state in ("q1", "w")),
            *(f"{state} -> done ON V WHEN {last}" for state in ("q1", "w")),
            "q1 -> w ON V WHEN since = next SET lowest = low",
            "IGNORE q1, w ON Drop",
            "IGNORE q1 ON V WHEN since < next",
            "IGNORE w ON V WHEN low = lowest",
            "FINAL done",
        ],
        window=window,
        shown="patterns",
    )
