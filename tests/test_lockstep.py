"""The step of detection in a kernel of others: two automata, event by event in one loop."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from acep_approx.automaton.compile import compile_automaton
from acep_approx.engines.cells.cells import Cells
from acep_approx.jit.kernel import kernel
from acep_approx.kernels.cells.detect import CLEARED, FEW_LANES, STRIDE
from acep_approx.kernels.cells.step import part, step
from acep_approx.query.parser import parse

PAIRS = (
    ("ab+c WITHIN 6 ERRORS 1", "PATTERN SEQ(a x, ~(c n), b y, d z) WITHIN 9 ERRORS 2"),
    ("a(b|c)db WITHIN 12 ERRORS 3", "dc WITHIN 3"),
    ("PATTERN SEQ(a x, ~(b n), b y) WITHIN 5", "(ab|ba)*c WITHIN 7"),
)
OFFSETS = CLEARED + 1


@kernel
def run_together(events: Any, rules: Any, windows: Any, words: Any, offsets: Any, cells: Any, fresh: Any, out: Any):
    """Per event and rule; ``events``: slot, tick, class of each rule; ``rules``: where tables and cells begin."""
    found, count = 0, len(windows)
    for i in range(len(events) // (2 + count)):
        at = i * (2 + count)
        slot, tick = events[at], events[at + 1]
        for r in range(count):
            of = part(offsets, r * OFFSETS, rules[2 * r])
            base = rules[2 * r + 1] + slot * offsets[r * OFFSETS + STRIDE]
            low = tick - windows[r]
            err, start = step(FEW_LANES, words, of, cells, base, tick, events[at + 2 + r], low, fresh)
            if err <= of.errors:
                out[4 * found], out[4 * found + 1] = r, i
                out[4 * found + 2], out[4 * found + 3] = err, start
                found += 1
    return found


def begins(parts: list[np.ndarray]) -> np.ndarray:
    """Where each part begins once all are joined."""
    return np.cumsum([0, *(part.size for part in parts)])[:-1]


@pytest.mark.parametrize("texts", PAIRS)
@pytest.mark.parametrize("seed", range(3))
def test_two_automata_in_lockstep_find_what_each_finds_alone(texts: tuple[str, str], seed: int) -> None:
    dice = np.random.default_rng(seed)
    slots, size = 3, 2000
    slot, tick = dice.integers(0, slots, size), np.cumsum(dice.integers(0, 2, size))
    letters = dice.integers(0, 5, size)  # of "abcde"
    alone, columns, engines = [], [slot, tick], []
    for text in texts:
        automaton = compile_automaton(parse(text))
        masks = [sum(1 << j for j, x in enumerate(automaton.letters) if x.type == letter) for letter in "abcde"]
        classes = sorted({0, *masks})
        columns.append(np.array([classes.index(mask) for mask in masks])[letters])
        engine, other = (Cells(automaton, int(parse(text).window.amount)) for _ in range(2))
        for one in (engine, other):
            one.set_classes(classes)
            one.reserve(slots)
        alone.append(other.detect(slot, tick, columns[-1]).copy())
        engines.append(engine)
    tables, cells = [one.tables.words for one in engines], [one.cells for one in engines]
    out = np.zeros(8 * size, np.int64)
    found = run_together(
        np.stack(columns, axis=1).ravel(),
        np.stack((begins(tables), begins(cells)), axis=1).ravel(),
        np.array([one.window for one in engines]),
        np.concatenate(tables),
        np.concatenate([one.tables.offsets for one in engines]),
        np.concatenate(cells),
        np.zeros(256, np.int64),
        out,
    )
    points = out[: 4 * found].reshape(-1, 4)
    assert (np.diff(points[:, 1]) >= 0).all(), "event by event"
    for rule, wanted in enumerate(alone):
        assert len(wanted)
        assert points[points[:, 0] == rule][:, 1:].tolist() == wanted.tolist()
