"""The workload of SASE+'s evaluation: its stock stream and its query template.

Source: Agrawal, Diao, Gyllstrom and Immerman, SIGMOD 2008, section 6 and Table 1. The paper leaves open how far a price
moves and what happens at the bounds. Here a move is one unit; a price that rises above 999 starts again at 0, and at 0
it cannot fall. (The paper's range is 1 to 1000; written so, half of the runs would begin at the ceiling, where no
price is ever higher.) With these choices one event in 500 can start a run, and the match lengths of Table 2 and the
shares of merged runs of Table 3 come out.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from acep_approx.jit.kernel import kernel

Ints = npt.NDArray[np.int64]

SYMBOLS = 2
PRICES = 1000
START_EVERY = 500
"""``a[1].price % 500 = 0``."""
VOLUME_BELOW = 150
"""``b.volume < 150``."""

PREDICATES = {
    "p1": "",
    "p2": "a[i].price > a[i-1].price",
    "p3": "a[i].price > min(a[..i-1].price)",
    "p3max": "a[i].price > max(a[..i-1].price)",
    "p3avg": "a[i].price > avg(a[..i-1].price)",
}
"""What the template's ``P`` may be; the paper's ``p3`` without a word is the one with min."""

STRATEGIES = {"s2": "partition_contiguity", "s3": "skip_till_next_match"}


@dataclass(frozen=True)
class StockQuery:
    """One query of the template.

    Attributes
    ----------
    predicate : str
        A key of ``PREDICATES``.
    strategy : str
        A key of ``STRATEGIES``.
    window : int
        Events of one symbol.
    tail : bool
        With a third component ``c``, whose price lies between those of the first and the last ``a`` (the paper's p3*).
    apart : bool
        Only matches that do not overlap.
    """

    predicate: str
    strategy: str
    window: int
    tail: bool = False
    apart: bool = False

    @property
    def name(self) -> str:
        """As the paper's figures call it: ``p3s2``, ``p3*s2``."""
        return f"{self.predicate}{'*' if self.tail else ''}{self.strategy}"

    @property
    def text(self) -> str:
        """In the query language.

        Examples
        --------
        >>> print(StockQuery("p1", "s3", 500).text)
        PATTERN SEQ(STOCK+ a[], STOCK b)
        WHERE skip_till_next_match { [symbol] AND a[1].price % 500 = 0 AND b.volume < 150 }
        WITHIN 500 events
        """
        conditions = ["[symbol]", f"a[1].price % {START_EVERY} = 0"]
        if PREDICATES[self.predicate]:
            conditions.append(PREDICATES[self.predicate])
        conditions.append(f"b.volume < {VOLUME_BELOW}")
        if self.tail:
            conditions += ["c.price > a[1].price", "c.price < a[a.LEN].price"]
        return (
            f"PATTERN SEQ(STOCK+ a[], STOCK b{', STOCK c' if self.tail else ''})\n"
            f"WHERE {STRATEGIES[self.strategy]} {{ {' AND '.join(conditions)} }}\n"
            f"WITHIN {self.window} events{' NON OVERLAP' if self.apart else ''}"
        )


@kernel
def walk(moves: Ints, symbol: Ints, ceiling: int, level: Ints, out: Ints) -> int:
    """Prices from moves: one level per symbol, from ``ceiling`` again to 0, never below 0."""
    for i in range(len(moves)):
        price = max(level[symbol[i]] + moves[i], 0)
        price = 0 if price >= ceiling else price
        level[symbol[i]] = price
        out[i] = price
    return 0


def stock_stream(events: int, rise: float, seed: int) -> pa.Table:
    """Random stock events.

    Parameters
    ----------
    events : int
        Of all symbols together.
    rise : float
        Probability that a symbol's price rises; it falls, or stays, with half of what is left each.
    seed : int

    Returns
    -------
    pyarrow.Table
        ``ts`` (0, 1, 2, ...), ``type``, ``symbol`` (1 or 2), ``price`` (0 to 999), ``volume`` (1 to 1000).
    """
    rng = np.random.default_rng(seed)
    symbol = rng.integers(0, SYMBOLS, events)
    drawn = rng.random(events)
    moves = (drawn < rise).astype(np.int64) - (drawn >= (1 + rise) / 2)
    price = np.empty(events, np.int64)
    walk(moves, symbol, PRICES, rng.integers(0, PRICES, SYMBOLS), price)
    return pa.table(
        {
            "ts": np.arange(events),
            "type": pa.DictionaryArray.from_arrays(np.zeros(events, np.int32), ["STOCK"]),
            "symbol": symbol + 1,
            "price": price,
            "volume": rng.integers(1, 1001, events),
        }
    )
