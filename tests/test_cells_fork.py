"""What the cells engine holds of one key, copied and put back: here, in another engine, and of this key alone."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import numpy as np
import pytest

from acep_approx.automaton.automaton import Automaton
from acep_approx.automaton.compile import compile_automaton
from acep_approx.engines.batches import Grouped
from acep_approx.engines.cells.arclogs import ArcLogs
from acep_approx.engines.cells.cells import Cells
from acep_approx.engines.cells.fork import LogsOfKey
from acep_approx.engines.cells.listing import listed as listed_matches
from acep_approx.errors import DataError
from acep_approx.query.parser import parse
from tests.engines import one_list

QUERIES = (
    "ab+c WITHIN 9 ERRORS 1",
    "a(b|c)db WITHIN 12 ERRORS 2",
    "PATTERN SEQ(a x, ~(c n), b y, d z) WITHIN 15 ERRORS 1",
    "PATTERN SEQ(a x, ~(b n), b y) WITHIN 12",
)
SLOTS = 3
Found = list[tuple]


class Engine:
    """Detection and listing by the cells, of events with the letters ``abcd``."""

    def __init__(self, text: str, order: str = "abcd") -> None:
        query = parse(text)
        self.automaton: Automaton = compile_automaton(query)
        self.window = int(query.window.amount)
        self.cells, self.logs = Cells(self.automaton, self.window), ArcLogs(self.automaton, self.window)
        self.classes = [0, *dict.fromkeys(mask for mask in map(self.mask, order) if mask)]
        for one in (self.cells, self.logs):
            one.set_classes(self.classes)
            one.reserve(SLOTS)

    def mask(self, letter: str) -> int:
        """The letters of the automaton that hold on an event of this type."""
        return sum(1 << j for j, one in enumerate(self.automaton.letters) if one.type == letter)

    def run(self, stream: list[tuple[int, int, str]]) -> Found:
        """Points and matches of events (slot, tick, letter), whose ticks are their places."""
        stream = sorted(stream, key=lambda event: event[0])
        slot, tick = (np.array([event[i] for event in stream], np.int64) for i in (0, 1))
        cls = np.array([self.classes.index(self.mask(letter)) for *_, letter in stream], np.int64)
        events = Grouped(slot, tick, cls, tick, tick, tick, tick)
        points = self.cells.detect(slot, tick, cls)
        found: Found = [(int(slot[i]), int(tick[i]), err, start) for i, err, start in points.tolist()]
        hits = self.logs.update(events, tick.min(initial=0) - self.window - np.zeros(1, np.int64))
        counted = self.logs.count(hits, events).sum()
        for listed in listed_matches(self.logs, hits, events, one_list(self.automaton), 100):
            ids = listed.lists[0][1]
            for m, hit in enumerate(listed.hit.tolist()):
                bound = slice(*listed.begin[m : m + 2].tolist())
                found.append((int(slot[hits[2 * hit]]), *ids[bound].tolist(), *listed.labels[bound].tolist()))
        assert counted == len(found) - len(points)
        return sorted(found)

    def fork(self, slot: int, floor: int) -> tuple[np.ndarray, LogsOfKey]:
        """A copy of a key."""
        return self.cells.fork(slot), self.logs.fork(slot, floor)

    def put(self, slot: int, copy: tuple[np.ndarray, LogsOfKey]) -> None:
        """Bring it back."""
        self.cells.put(slot, copy[0])
        self.logs.put(slot, copy[1])


def stream(dice: Random, first: int, events: int) -> list[tuple[int, int, str]]:
    """Random events from a tick on."""
    return [(dice.randrange(SLOTS), first + i, dice.choice("aabbccdde")) for i in range(events)]


@pytest.mark.parametrize("text", QUERIES)
@pytest.mark.parametrize("seed", range(6))
def test_a_key_goes_back_and_the_others_go_on(text: str, seed: int) -> None:
    """What came after the copy is undone for one key; then it goes on as if nothing of it had been."""
    dice = Random(seed)
    before, undone, after = stream(dice, 0, 60), stream(dice, 60, dice.choice((10, 300))), stream(dice, 360, 150)
    after = [(slot, tick - 300 if slot == 1 else tick, letter) for slot, tick, letter in after]
    straight, engine = Engine(text), Engine(text)
    assert straight.run(before) == engine.run(before)
    copy = engine.fork(1, 60 - engine.window)
    straight.run([event for event in undone if event[0] != 1])
    engine.run(undone)
    engine.put(1, copy)
    found = engine.run(after)
    assert found == straight.run(after)
    assert {slot for slot, *_ in found} >= {1}
    engine.put(1, copy)  # a copy can be put back again
    assert engine.run([e for e in after if e[0] == 1]) == [one for one in found if one[0] == 1]


@pytest.mark.parametrize("text", QUERIES)
@pytest.mark.parametrize("seed", range(6))
def test_a_copy_goes_on_in_another_engine(text: str, seed: int) -> None:
    """Though that one has come upon states, arcs and classes in another order."""
    dice = Random(seed)
    before, after = stream(dice, 0, 60), stream(dice, 60, 150)
    engine, other = Engine(text), Engine(text, "dcba")
    other.run(stream(dice, -500, 40))
    engine.run(before)
    other.put(2, engine.fork(1, 60 - engine.window))
    moved = [(2, tick, letter) for slot, tick, letter in after if slot == 1]
    wanted = [(2, *rest) for slot, *rest in engine.run(after) if slot == 1]
    assert wanted
    assert other.run(moved) == wanted


def refused(engine: Engine, copy: tuple[np.ndarray, LogsOfKey]) -> str:
    with pytest.raises(DataError) as caught:
        engine.put(0, copy)
    return caught.value.code


def test_what_does_not_fit_is_refused() -> None:
    engine, other = Engine(QUERIES[2]), Engine(QUERIES[2])
    engine.run(stream(Random(1), 0, 60))
    cells, logs = engine.fork(1, -9)
    padded = cells.copy()
    padded[0] = 3
    for bad in (cells[:-1], np.append(cells, cells), padded):
        assert refused(engine, (bad, logs)) == "ACEP-D047"
    names = logs.numbering
    for bad in (
        replace(logs, entries=logs.entries[:-2]),
        replace(logs, lengths=-logs.lengths),
        replace(logs, lengths=np.append(logs.lengths, 0)),
        replace(logs, latest=np.zeros(len(names.vectors) + 1, np.int64)),
    ):
        assert refused(engine, (cells, bad)) == refused(other, (cells, bad)) == "ACEP-D047"
    (source, label, target), number = next(iter(names.moves.items()))
    rest = {move: log for move, log in names.moves.items() if log != number}
    for move in ((source, 99, target), (len(names.vectors), label, target), (source, label, -1)):
        bad = replace(names, vectors=list(names.vectors), moves={move: number, **rest})
        assert refused(other, (cells, replace(logs, numbering=bad))) == "ACEP-D047"
    assert names.resets
    bad = replace(names, vectors=list(names.vectors), resets=dict.fromkeys(names.resets, 10**6))
    assert refused(other, (cells, replace(logs, numbering=bad))) == "ACEP-D047"
