"""All pairs of small rules on one cell, and all streams of two letters: what comes of them, by a few lines.

A rule finds one or two of the letters A and B; the event of one of them may ask for what the cell holds, 0 or 1; the
rule sets the cell to 0, to 1, or does nothing. Each stream has a key, and so a cell, of its own: one long stream holds
them all. What rules do is known with each event, so shorter streams are beginnings of these.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import product

import pyarrow as pa

TABLE = "TABLE cell (k int, n int DEFAULT 0, KEY (k))"
LENGTH = 6
STREAMS = ["".join(letters) for letters in product("AB", repeat=LENGTH)]
PATTERNS = ("A", "B", "AA", "AB", "BA", "BB")


@dataclass(frozen=True)
class SmallRule:
    """``asks``: which letter of the pattern asks for the cell; None: none does."""

    pattern: str
    asks: int | None
    wanted: int
    sets: int | None

    def text(self, name: str) -> str:
        """The rule as text."""
        parts = ", ".join(f"{letter} {variable}" for letter, variable in zip(self.pattern, "ab", strict=False))
        read = "" if self.asks is None else f" AND store.cell[{'ab'[self.asks]}.k].n = {self.wanted}"
        last = "ab"[len(self.pattern) - 1]
        does = "" if self.sets is None else f" DO UPDATE cell SET n = {self.sets} AT ({last}.k) END"
        return f"RULE {name} ON PATTERN SEQ({parts}) WHERE [k]{read} WITHIN {LENGTH}{does}"

    def mirrored(self) -> SmallRule:
        """The same with the other letters."""
        return replace(self, pattern=self.pattern.translate(str.maketrans("AB", "BA")))

    def fits(self, place: int, letter: str, cell: int) -> bool:
        """Whether an event can be that letter of the pattern."""
        return self.pattern[place] == letter and (self.asks != place or cell == self.wanted)


def small_rules() -> Iterator[SmallRule]:
    """All of them."""
    for pattern, sets in product(PATTERNS, (None, 0, 1)):
        yield SmallRule(pattern, None, 0, sets)
        for asks, wanted in product(range(len(pattern)), (0, 1)):
            yield SmallRule(pattern, asks, wanted, sets)


def small_pairs() -> list[tuple[SmallRule, SmallRule]]:
    """All pairs; of two that only differ in what the letters are called, one."""
    rules = list(small_rules())
    number = {rule: i for i, rule in enumerate(rules)}
    pairs = product(rules, repeat=2)
    return [
        (one, other)
        for one, other in pairs
        if (number[one], number[other]) <= (number[one.mirrored()], number[other.mirrored()])
    ]


@dataclass
class Effects:
    """What comes of a pair: matches of each rule and changes by (row, rule, value), cells that were made."""

    matches: tuple[list[tuple[int, ...]], list[tuple[int, ...]]] = field(default_factory=lambda: ([], []))
    changes: list[tuple[int, str, int]] = field(default_factory=list)
    cells: dict[int, int] = field(default_factory=dict)


def events() -> pa.Table:
    """All streams, side by side: the first event of each, the second of each, and so on."""
    keys = list(range(len(STREAMS)))
    return pa.table(
        {
            "ts": pa.array([tick for tick in range(LENGTH) for _ in keys], pa.int64()),
            "type": pa.array([STREAMS[key][tick] for tick in range(LENGTH) for key in keys], pa.string()),
            "k": pa.array(keys * LENGTH, pa.int64()),
        }
    )


def effects(pair: tuple[SmallRule, SmallRule]) -> Effects:
    """What comes of all streams, one event at a time."""
    found = Effects()
    begun: list[tuple[list[int], list[int]]] = [([], []) for _ in STREAMS]
    for tick in range(LENGTH):
        for key, stream in enumerate(STREAMS):
            row, seen = tick * len(STREAMS) + key, found.cells.get(key, 0)
            for number, rule in enumerate(pair):
                last = len(rule.pattern) - 1
                if rule.fits(last, stream[tick], seen):
                    completed = [(start, row) for start in begun[key][number]] if last else [(row,)]
                    found.matches[number].extend(completed)
                    if rule.sets is not None and completed:
                        found.cells[key] = rule.sets
                        found.changes += [(row, f"r{number}", rule.sets)] * len(completed)
                if last and rule.fits(0, stream[tick], seen):
                    begun[key][number].append(row)
    return found
