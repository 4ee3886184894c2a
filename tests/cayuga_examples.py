"""The examples of Demers et al., CIDR 2007, sections 2.2 and 3.1, as text and as cases with events and results.

What had to be mended is said beside them.

The current text lost some decorators of Examples 7 and 9; they are those of the predicates of section 3.1.
"""

from __future__ import annotations

from typing import Any, NamedTuple

STOCK = ("Name", "Price", "Volume")
SCHEMAS = {"Stock": STOCK, "IBMStock": ("IBMPrice",)}

EXAMPLES = {
    "Example 1": """
SELECT *
FROM Stock
PUBLISH MyStock
""",
    "Example 2": """
SELECT Price AS IBMPrice
FROM FILTER{Name='IBM' AND Price > 83}(Stock)
PUBLISH IBMStock
""",
    "Example 3": """
SELECT Price AS IBMPrice
FROM FILTER{Name='IBM'}
  (SELECT *
   FROM FILTER{Price > 83}(Stock))
PUBLISH IBMStock2
""",
    "Example 4": """
SELECT IBMPrice, Price AS MSFTPrice
FROM IBMStock
  NEXT{Name='MSFT'} (Stock)
""",
    "Example 5": """
SELECT IBMPrice, Price, Name
FROM IBMStock
  NEXT{IBMPrice < Price} (Stock)
""",
    "Example 6": """
SELECT Name
FROM (SELECT Price FROM Stock)
     NEXT{ $1.Price = $2.Price } (Stock)
""",
    # It says "at least 10 quotes" and "longer than 1 hour", and tests neither: the text counts.
    "Example 7": """
SELECT *
FROM FILTER{cnt > 10} (
  (SELECT *, 1 AS cnt FROM
   FILTER{Volume > 10000}(Stock))
  FOLD{ $2.Name = $.Name, $2.Price > $.Price,
        $.cnt+1 AS cnt }
  Stock)
""",
    "Example 8": """
SELECT Price_1 AS IBMPrice1, Price AS IBMPrice2
FROM (FILTER{Name='IBM' AND Price > 83}(Stock))
     NEXT{$2.Price > $1.Price}
(FILTER{Name='IBM'}(Stock))
""",
    # Two slips are mended. The paper closes the bracket of the inner SELECT before FOLD: there is no Price_1 there yet,
    # and FOLD's schemas would not fit (F4 of section 3.1 is behind FOLD). And its NEXT has Name on both sides, so by
    # section 2.2 it renames MaxPrice and MinPrice, too.
    "Example 9": """
SELECT Name, MaxPrice_1 AS MaxPrice, MinPrice_1 AS MinPrice, Price AS FinalPrice
FROM
  FILTER{DUR ≥ 10min} (
    (SELECT Name, Price_1 AS MaxPrice, Price AS MinPrice
     FROM FILTER{Volume > 10000}(Stock)
     FOLD{$2.Name = $.Name, $2.Price < $.Price, }
     Stock))
  NEXT{$2.Name = $1.Name AND
       $2.Price > 1.05*$1.MinPrice}
Stock
""",
    # The automaton of Figure 2 tests the price on the edge behind NEXT: it is the query of this text.
    "Figure 2": """
SELECT Name, MaxPrice_1 AS MaxPrice, MinPrice_1 AS MinPrice, Price AS FinalPrice
FROM FILTER{Price > 1.05*MinPrice_1}(
  FILTER{DUR ≥ 10min} (
    (SELECT Name, Price_1 AS MaxPrice, Price AS MinPrice
     FROM FILTER{Volume > 10000}(Stock)
     FOLD{$2.Name = $.Name, $2.Price < $.Price, }
     Stock))
  NEXT{$2.Name = $1.Name}
  Stock)
""",
    "Figure 1": """
SELECT Name FROM (SELECT Name AS N FROM Stock) NEXT{$1.N = $2.Name} Stock
""",
}

Quote = tuple[int, str, int, int]
"""A row of Figure 3: minutes after midnight, Name, Price, Volume."""

FIGURE_3: tuple[Quote, ...] = (
    (550, "IBM", 90, 15000),
    (555, "IBM", 85, 7000),
    (557, "Dell", 40, 11000),
    (561, "IBM", 81, 8000),
    (563, "MSFT", 25, 6000),
    (564, "IBM", 91, 9000),
)
SIMULTANEOUS_E6: Quote = (564, "IBM", 80, 8000)
"""e6' of section 3.2: at the same time as e6, and before it in the queue."""
BETWEEN: Quote = (563, "IBM", 80, 8000)
"""Ours: here the text of Example 9 and the automaton of Figure 2 differ."""
EARLY: tuple[Quote, ...] = (
    (1, "IBM", 84, 1),
    (2, "MSFT", 25, 1),
    (3, "IBM", 85, 1),
    (3, "DELL", 84, 1),
    (5, "MSFT", 90, 1),
    (6, "IBM", 82, 1),
)
"""Ours, for the examples that come without events."""
RISING: tuple[Quote, ...] = tuple(
    quote for t in range(13) for quote in ((t, "IBM", 80 + t, 20_000 if t == 0 else 1), (t, "DELL", 5, 1))
)
"""Ours: 13 rising quotes of IBM, the first of them large."""


class Case(NamedTuple):
    """A query, what it reads that others publish, quotes, and its results in order: begin, end, attributes."""

    name: str
    source: str
    texts: tuple[str, ...]
    quotes: tuple[Quote, ...]
    results: tuple[tuple[Any, ...], ...]


_IBM = ("IBM", 90, 81, 91)
_FOLD = "FROM FILTER{Volume > 10000}(Stock) FOLD{$2.Name = $.Name, $2.Price < $.Price, } Stock"
CASES = (
    Case("Example 1", "2.2", (EXAMPLES["Example 1"],), EARLY[:2], ((1, 1, "IBM", 84, 1), (2, 2, "MSFT", 25, 1))),
    Case("Example 2", "2.2", (EXAMPLES["Example 2"],), EARLY, ((1, 1, 84), (3, 3, 85))),
    Case("Example 3", "2.2", (EXAMPLES["Example 3"],), EARLY, ((1, 1, 84), (3, 3, 85))),
    Case("Example 4", "2.2", (EXAMPLES["Example 2"], EXAMPLES["Example 4"]), EARLY, ((1, 2, 84, 25), (3, 5, 85, 90))),
    Case(
        "Example 5",
        "2.2",
        (EXAMPLES["Example 2"], EXAMPLES["Example 5"]),
        EARLY,
        ((1, 3, 84, 85, "IBM"), (3, 5, 85, 90, "MSFT")),
    ),
    Case("Example 6", "2.2", (EXAMPLES["Example 6"],), EARLY, ((1, 3, "DELL"),)),
    Case(
        "Example 7",
        "2.2: the first of eleven rising quotes is large",
        (EXAMPLES["Example 7"],),
        RISING,
        tuple((0, t, "IBM", 80, 20_000, 1, "IBM", 80 + t, 1, t + 1) for t in (10, 11, 12)),
    ),
    Case("Example 8", "2.2", (EXAMPLES["Example 8"],), EARLY, ((1, 3, 84, 85),)),
    Case("Example 9", "3.1, Figures 3 and 4", (EXAMPLES["Example 9"],), FIGURE_3, ((550, 564, *_IBM),)),
    Case("the automaton", "3.1, Figures 2 to 4", (EXAMPLES["Figure 2"],), FIGURE_3, ((550, 564, *_IBM),)),
    Case("e6'", "3.2", (EXAMPLES["Example 9"],), (*FIGURE_3[:5], SIMULTANEOUS_E6, FIGURE_3[5]), ((550, 564, *_IBM),)),
    Case(
        "the automaton and e6'",
        "3.2",
        (EXAMPLES["Figure 2"],),
        (*FIGURE_3[:5], SIMULTANEOUS_E6, FIGURE_3[5]),
        ((550, 564, *_IBM),),
    ),
    Case(
        "the text of Example 9, where it is not the automaton",
        "ours",
        (EXAMPLES["Example 9"],),
        (*FIGURE_3[:5], BETWEEN, FIGURE_3[5]),
        ((550, 564, "IBM", 90, 80, 91), (550, 564, *_IBM)),
    ),
    Case(
        "the automaton, where it is not the text of Example 9",
        "ours",
        (EXAMPLES["Figure 2"],),
        (*FIGURE_3[:5], BETWEEN, FIGURE_3[5]),
        ((550, 564, "IBM", 90, 80, 91),),
    ),
    Case(
        "state A",
        "Figure 4",
        (f"SELECT Price_1, Price {_FOLD}",),
        FIGURE_3,
        ((550, 555, 90, 85), (550, 561, 90, 81)),
    ),
    Case(
        "state B",
        "Figure 4",
        (f"FROM FILTER{{DUR >= 10 min}}(SELECT Price_1, Price {_FOLD})",),
        FIGURE_3,
        ((550, 561, 90, 81),),
    ),
    Case(
        "Figure 1",
        "3",
        (EXAMPLES["Figure 1"],),
        EARLY,
        ((1, 3, "IBM"), (2, 5, "MSFT"), (3, 6, "IBM")),
    ),
    Case(
        "FOLD ends where its second condition is not true",
        "ours",
        ("SELECT Price FROM FILTER{Price = 90}(Stock) FOLD{, $2.Price < $.Price, } Stock",),
        tuple((t, "IBM", price, 1) for t, price in enumerate((90, 85, 95, 80))),
        ((0, 1, 85),),
    ),
)
