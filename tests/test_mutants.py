"""Variants of the engine that are known to be wrong: a suite that does not notice them is too weak.

The real detection kernel is changed line by line and run as plain Python against the oracle. The first three are the traps
that were found in the published algorithm; the others guard negation, windows and the order of reading and writing.
"""

from __future__ import annotations

import inspect
import random
import textwrap

import numpy as np
import pytest

from acep_approx.automaton.compile import compile_automaton
from acep_approx.matching import kernel_detect
from acep_approx.matching.cells import Cells
from acep_approx.query.parser import parse
from tests.engines import grouped
from tests.naive import Event, all_matches, match_points

QUERIES = [
    "aa WITHIN 4",
    "a(b|c)db WITHIN 5 ERRORS 2",
    "ab+c WITHIN 4 ERRORS 1",
    "(ab|ba)*c WITHIN 3",
    "abab WITHIN 6 ERRORS 1",
    "PATTERN SEQ(a x, ~(c n), b y, d z) WITHIN 5 ERRORS 1",
    "PATTERN SEQ(a x, ~(b n), b y) WITHIN 5",
]

MUTANTS = {
    "right": [],
    "one event used twice": [
        ("            for g in range(first, last):\n                at = group_off + g * GROUP\n                f = (g - first) * lanes\n                begin",
         "            for g in [x for _ in range(2) for x in range(first, last)]:\n                at = group_off + g * GROUP\n                f = (g - first) * lanes\n                begin"),
        ("                low = t - window",
         "                for r in range(tables[at + 3], tables[at + GROUP + 3]):\n"
         "                    for e in range(lanes):\n"
         "                        q = base + tables[row_off + r] + e\n"
         "                        cells[q] = max(cells[q], fresh[f + e])\n"
         "                low = t - window"),
    ],
    "least error only": [
        ("                    for e in range(lanes):\n                        cells[p + e] = max(cells[p + e], fresh[f + e])",
         "                    old = [e for e in range(lanes) if cells[p + e] >= t - window]\n"
         "                    new = [e for e in range(lanes) if fresh[f + e] >= t - window]\n"
         "                    if new and (not old or new[0] <= old[0]):\n"
         "                        for e in range(lanes):\n"
         "                            cells[p + e] = fresh[f + new[0]] if e >= new[0] else NEVER"),
    ],
    "earliest start": [
        ("cells[p + e] = max(cells[p + e], fresh[f + e])",
         "cells[p + e] = min(cells[p + e], fresh[f + e]) if cells[p + e] >= t - window and fresh[f + e] > NEVER // 2"
         " else max(cells[p + e], fresh[f + e])"),
    ],
    "window one too short": [("low = t - window", "low = t - window + 1")],
    "negation ignored": [("                    cells[p + e] = NEVER", "                    pass")],
    "negation breaks what the event itself completes": [
        ("            for g in range(first, last):\n                at = group_off + g * GROUP\n                f = (g - first) * lanes\n                begin",
         "            for x in range(tables[clear_off + c], tables[clear_off + c + 1]):\n"
         "                for e in range(lanes):\n"
         "                    cells[base + tables[clear_row + x] + e] = NEVER\n"
         "            for g in range(first, last):\n                at = group_off + g * GROUP\n                f = (g - first) * lanes\n                begin"),
    ],
}


def mutated(name: str):
    """The detection kernel as plain Python, with the changes of a mutant; each must fit exactly."""
    source = inspect.getsource(kernel_detect._detect)
    for old, new in MUTANTS[name]:
        assert source.count(old) == 1, f"the kernel has changed: the mutant {name!r} does not fit any more\n{old}"
        source = source.replace(old, new)
    scope = {**vars(kernel_detect), "kernel": lambda function: function}
    exec(textwrap.dedent(source), scope)
    return scope["_detect"](kernel_detect.FEW_LANES)


def mismatches(detect) -> int:
    """Streams on which the match points are not those of brute force."""
    rng = random.Random(7)
    wrong = 0
    for text in QUERIES:
        query = parse(text)
        automaton = compile_automaton(query)
        bit = {letter.type: 1 << j for j, letter in enumerate(automaton.letters)}
        cells = Cells(automaton, int(query.window.amount))
        cells.set_classes(sorted({0, *bit.values()}))
        for _ in range(60):
            tick, events = 0, []
            for _ in range(8):
                tick += rng.choice([0, 1, 1, 2])
                events.append(Event(tick, rng.choice("abcd")))
            cells.cells = np.full(max(cells.stride, 1), kernel_detect.NEVER, np.int64)
            stream = grouped([[(e.tick, bit.get(e.type, 0)) for e in events]], cells.classes)
            out = np.zeros(3 * len(events), np.int64)
            tables, fresh = (cells.tables, cells.offsets), np.zeros(64, np.int64)
            hits = detect(stream.slot, stream.tick, stream.cls, *tables, cells.cells, fresh, cells.window, out)
            points = {int(out[3 * h]): int(out[3 * h + 1]) for h in range(hits)}
            wrong += points != match_points(all_matches(query, events))
    return wrong


def test_the_kernel_itself_is_right() -> None:
    """Without a change the plain kernel agrees everywhere, so a mismatch below is the mutant's."""
    assert mismatches(mutated("right")) == 0


@pytest.mark.parametrize("name", [name for name in MUTANTS if name != "right"])
def test_a_mutant_is_caught(name: str) -> None:
    """The oracle tells a wrong variant from the right one."""
    assert mismatches(mutated(name)) > 0
