"""Matches of sequences, listed by loops and by the walk: the same, in the same order, in parts of any size."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from random import Random

import numpy as np
import pyarrow as pa
import pytest

from acep_approx import compile_query
from acep_approx.arrays import Ints
from acep_approx.automaton.compile import compile_automaton
from acep_approx.engines.batches import Grouped
from acep_approx.engines.cells import listing
from acep_approx.engines.cells.arclogs import ArcLogs
from acep_approx.engines.columns import Listed, Placement
from acep_approx.kernels.order import DIGITS, Found, Limits, Order, sort_matches
from acep_approx.matching.outputs import completed
from acep_approx.query.parser import parse
from tests.cases import cases

Rows = list[tuple[int, ...]]
SLOTS = 2


def events_of(dice: Random, names: str, size: int) -> Grouped:
    """Random events of a few types, one of which no variable asks for; many have the same time."""
    slot = np.sort(np.array([dice.randrange(SLOTS) for _ in range(size)]))
    steps = [dice.choice((0, 0, 1, 2)) for _ in range(size)]
    tick = np.array(steps).cumsum()
    tick -= np.where(slot > 0, tick[np.argmax(slot)], 0)
    row = np.argsort(np.argsort(tick, kind="stable"), kind="stable")
    cls = np.array([dice.randrange(len(names) + 1) for _ in range(size)])
    return Grouped(slot, tick, cls, row, row, row, row)


def rows_of(parts: Iterator[Listed]) -> Rows:
    """Hit, start and events of each match; -1 ends a list."""
    rows: Rows = []
    for part in parts:
        singles = zip(*(column.tolist() for column in (part.hit, part.start, *part.single)), strict=True)
        lists = [np.split(ids, offsets[1:-1]) for offsets, ids in part.lists]
        rows += [
            (*row, *(x for ids in of for x in (*ids.tolist(), -1))) for row, *of in zip(singles, *lists, strict=True)
        ]
    return rows


SEQUENCES = [
    *(", ".join(f"{name} {name.lower()}" for name in names) for names in ("AB", "ABC", "ABCDE")),
    "A a, B+ b[]",
    "A a, A+ b[]",
    "A a, B+ b[], C c",
    "A a, A+ b[], A c",
    "A a, B b, C+ c[], B d",
    "A a, B+ b[], C+ c[], D d",
    "A a, B+ b[], B+ c[]",
    "A a, A b, B+ c[], C d, B+ e[]",
]


def logs_of(pattern: str, window: int, events: Grouped) -> tuple[ArcLogs, Ints]:
    """The logs of a pattern and its hits; an event of class ``i`` is of the type that the ``i``-th letter names."""
    automaton = compile_automaton(parse(f"PATTERN SEQ({pattern}) WITHIN {window}"))
    logs = ArcLogs(automaton, window)
    asks = [sum(1 << j for j, letter in enumerate(automaton.letters) if letter.type == name) for name in "ABCDEF"]
    logs.set_classes([0, *asks])
    logs.reserve(SLOTS)
    return logs, logs.update(events, np.array([-window]))


@pytest.mark.parametrize("pattern", SEQUENCES)
@pytest.mark.parametrize("seed", range(cases(100)))
def test_loops_and_walk_list_the_same(pattern: str, seed: int) -> None:
    """Whatever the window, the ties, and the room for matches at a time."""
    dice = Random(seed)
    window = dice.randrange(1, 15 if "+" in pattern else 30)
    names = "ABCDE"[: len({word for word in pattern.split() if word[0].isupper()} | {"B"}) + dice.randrange(2)]
    events = events_of(dice, names, 60)
    logs, hits = logs_of(pattern, window, events)
    automaton = logs.determinised.automaton
    placement = Placement.of([name in automaton.kleene for name in automaton.variables])
    chunk = dice.choice((1, 7, 1000))
    sequence = listing._sequence(logs)
    assert (sequence is not None and len(sequence.repeats) == len(automaton.variables)) or not hits.size
    by_loops = rows_of(listing.listed(logs, hits, events, placement, chunk))
    assert rows_of(listing._by_walk(logs, hits, events, placement, 1000)) == by_loops
    if sequence is not None and not sequence.repeats.any():
        assert rows_of(listing._by_loops(logs, sequence, hits, events, placement, chunk)) == by_loops
    if sequence is not None:
        assert rows_of(listing._by_frames(logs, sequence, hits, events, placement, chunk)) == by_loops
    assert len(by_loops) == int(logs.count(hits, events).sum())


def test_the_stack_grows() -> None:
    """The first match of many has all events; nobody waits for the others."""
    cls = np.array([1, *[2] * 100, 3])
    row = np.arange(len(cls))
    events = Grouped(np.zeros(len(cls), np.int64), row, cls, row, row, row, row)
    logs, hits = logs_of("A a, B+ b[], C c", 200, events)
    first = next(listing.listed(logs, hits, events, Placement.of([False, True, False]), 1000))
    offsets, ids = first.lists[0]
    assert ids[: offsets[1]].tolist() == [*range(1, 101)]


@pytest.mark.parametrize(
    "pattern", ["A+ a[], B b", "A a, B* b[], C c", "A a, (B b | C c), D d", "A a, (B b, C c)+, D d"]
)
def test_other_patterns_are_no_sequences(pattern: str) -> None:
    """The walk lists their matches."""
    events = events_of(Random(1), "ABCD", 200)
    logs, hits = logs_of(pattern, 20, events)
    assert hits.size
    assert listing._sequence(logs) is None


@pytest.mark.parametrize("seed", range(cases(200)))
def test_matches_are_sorted(seed: int) -> None:
    """By start, the latest first, then by events from the last one back, the later first; of few and of many."""
    dice = Random(seed)
    count, spread = dice.choice((1, 5, 40, 400)), dice.choice((1, 3, 300, 2**40))
    events = [sorted(dice.sample(range(9), dice.randrange(1, 4))) for _ in range(count)]
    matches = {(dice.randrange(spread) - spread // 2, *bound) for bound in events}
    given = list(matches)
    dice.shuffle(given)
    begin = np.concatenate(([0], np.cumsum([len(match) - 1 for match in given])))
    ids = np.array([event for match in given for event in match[1:]])
    start = np.array([match[0] for match in given])
    found = Found(np.zeros(len(given), np.int64), start, begin, ids, np.zeros(len(ids), np.int64))
    at = Order(np.empty(len(given), np.int64), np.empty(len(given), np.int64), np.zeros(DIGITS, np.int64))
    none = np.zeros(1, np.int64)
    assert sort_matches(found, len(given), none, none, Limits(1 << 18, 1, 0), at) == len(given)
    wanted = sorted(given, key=lambda match: (-match[0], [-event for event in reversed(match[1:])], len(match)))
    assert [given[i] for i in at.order.tolist()] == wanted


@pytest.mark.parametrize("pattern", ["SEQ(A a, B b, C c)", "SEQ(A a, B+ b[], C c)", "SEQ(A+ a[], B* b[], C c)"])
@pytest.mark.parametrize("chunk", [100, 5000, 1 << 20])
def test_columns_have_room_for_what_is_written(pattern: str, chunk: int) -> None:
    """Of all columns, and of labels, however many events the matches have; parts of any size say the same."""
    dice = Random(7)
    automaton = compile_automaton(parse(f"PATTERN {pattern} WITHIN 9 ERRORS 1 WEIGHTS (a = 2)"))
    logs = ArcLogs(automaton, 9)
    logs.set_classes([0, *(1 << j for j in range(len(automaton.letters)))])
    logs.reserve(SLOTS)
    events = events_of(dice, "ABC", 6000)
    hits = logs.update(events, np.array([-9]))
    is_list = [name in automaton.kleene for name in automaton.variables]
    placement = replace(Placement.of(is_list), keeps_labels=True)
    whole = sum(int(part.begin[-1]) for part in listing.listed(logs, hits, events, placement, 1 << 20))
    written = 0
    for part in listing.listed(logs, hits, events, placement, chunk):
        assert len(part.labels) == part.begin[-1]
        bound = sum(int((ids >= 0).sum()) for ids in part.single)
        assert bound + sum(len(ids) for _, ids in part.lists) == part.begin[-1]
        written += len(part.labels)
    assert written == whole > 20_000


RUNS = [
    "PATTERN SEQ(A a, B b, C c) WHERE a.x <= b.x WITHIN 20",
    "PATTERN SEQ(A a, B b, C c) WHERE a.x <= b.x AND [key] WITHIN 20 EVENTS",
    "PATTERN SEQ(A a, B+ b[], C c) WHERE a.x < c.x WITHIN 12",
    "PATTERN SEQ(A a, B b, C c, A d) WHERE a.x < d.x WITHIN 12 ERRORS 1",
    "PATTERN SEQ(A a, B b, C c) WHERE a.x <= b.x WITHIN 20 RETURN a.x AS x, c.x AS last",
]


@pytest.mark.parametrize("text", RUNS)
@pytest.mark.parametrize("chunk", [50, 1 << 18])
def test_runs_list_the_same_by_columns_and_by_matches(text: str, chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a walk writes into columns is what is made of its matches one by one, in parts of any size."""
    rng = np.random.default_rng(5)
    drawn = {name: rng.integers(0, most, 400) for name, most in (("ts", 2), ("type", 4), ("x", 5), ("key", 2))}
    types = pa.array(np.array([*"ABCD"])[drawn["type"]].tolist())
    events = pa.table({**drawn, "ts": drawn["ts"].cumsum(), "type": types})
    query = compile_query(text)
    monkeypatch.setattr(completed, "CHUNK", chunk)
    at_once = query.match(events).to_arrow()
    asked = []
    monkeypatch.setattr(completed.Finder, "lists_alone", property(lambda finder: asked.append(finder)))
    assert query.match(events).to_arrow().equals(at_once)
    assert asked
    assert at_once.num_rows > 100
