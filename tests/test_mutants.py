"""Variants of the engine that are known to be wrong: a suite that does not notice them is too weak.

The real detection kernel is changed line by line and run as plain Python against the oracle. The first three are the
traps found in the published algorithm; the others guard negation, windows and the order of reading and writing.
"""

from __future__ import annotations

import inspect
import random
import textwrap

import numpy as np
import pytest

from acep_approx.automaton.compile import compile_automaton
from acep_approx.engines.cells.cells import Cells
from acep_approx.kernels.cells import detect as kernel_detect
from acep_approx.query.parser import parse
from tests.checked_index import checked
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

GROUPS = """            for g in range(first, last):
                at = group_off + g * GROUP
                f = (g - first) * lanes
                begin"""
WRITE = """                    for e in range(lanes):
                        cells[p + e] = max(cells[p + e], fresh[f + e])"""
CLEAR = """                        cells[p + e] = NEVER"""

MUTANTS = {
    "right": [],
    "one event used twice": [
        (GROUPS, GROUPS.replace("range(first, last)", "[x for _ in range(2) for x in range(first, last)]")),
        (
            "                err = below + tables[at + FINISH]",
            """                for r in range(tables[at + FIRST_ROW], tables[at + GROUP + FIRST_ROW]):
                    for e in range(lanes):
                        q = base + tables[row_off + r] + e
                        cells[q] = max(cells[q], fresh[f + e])
                err = below + tables[at + FINISH]""",
        ),
    ],
    "least error only": [
        (
            WRITE,
            """                    old = [e for e in range(lanes) if cells[p + e] >= t - window]
                    new = [e for e in range(lanes) if fresh[f + e] >= t - window]
                    if new and (not old or new[0] <= old[0]):
                        for e in range(lanes):
                            cells[p + e] = fresh[f + new[0]] if e >= new[0] else NEVER""",
        ),
    ],
    "earliest start": [
        (
            WRITE,
            """                    for e in range(lanes):
                        both = cells[p + e] >= t - window and fresh[f + e] > NEVER // 2
                        cells[p + e] = (min if both else max)(cells[p + e], fresh[f + e])""",
        ),
    ],
    "window one too short": [("            low = t - window", "            low = t - window + 1")],
    "negation ignored": [(CLEAR, "                        pass")],
    "negation breaks what the event itself completes": [
        (
            GROUPS,
            """            for x in range(tables[clear_off + c], tables[clear_off + c + 1]):
                for e in range(lanes):
                    cells[base + tables[clear_row + x] + e] = NEVER
"""
            + GROUPS,
        ),
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
    detect = scope["_detect"](name, kernel_detect.FEW_LANES)
    return lambda *given: detect(*map(checked, given))


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
            out = np.zeros(3 * len(events) + 3, np.int64)
            batch = kernel_detect.Keyed(stream.slot, stream.tick, stream.cls)
            hits = detect(batch, cells.window, cells.tables, cells.cells, np.zeros(64, np.int64), out)
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
