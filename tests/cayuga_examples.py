"""The examples of Demers et al., CIDR 2007, sections 2.2 and 3.1, as text; what had to be mended is said beside them.

The text at hand lost some decorators of Examples 7 and 9; they are those of the predicates of section 3.1.
"""

from __future__ import annotations

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
