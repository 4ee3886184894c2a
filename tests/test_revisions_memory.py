"""What is held is bounded by what came after the watermark: nothing grows, however long the stream.

In order and with events that come late and are taken back; for cells and runs; one key, and many that come and go.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from acep_approx import compile_query
from tests.cases import FULL

PUSHES, EVENTS, DELAY = 60 if FULL else 24, 200, 50
"""Pushes, events of each, and how many ticks an event may come late; one event is made at each tick."""

QUERIES = {
    "cells": "PATTERN SEQ(A a, B b, C c) WHERE [g] WITHIN 12 ERRORS 1",
    "cells, negation": "PATTERN SEQ(A a, ~(B b), C c) WHERE [g] WITHIN 12",
    "runs": "PATTERN SEQ(A a, B b, C c) WHERE [g] AND b.x > a.x AND c.x > b.x WITHIN 12",
    "runs, next": "PATTERN SEQ(A+ a[], B b) WHERE skip_till_next_match { [g] AND a[i].x >= a[i-1].x } WITHIN 12",
    "runs, negation at the end": "PATTERN SEQ(A a, B b, ~(C c)) WHERE [g] AND b.x > a.x WITHIN 12",
    "runs, no overlap": "PATTERN SEQ(A a, B b) WHERE [g] AND b.x > a.x WITHIN 12 NON OVERLAP",
}
COUNTING = "PATTERN SEQ(A a, B b) WHERE [g] AND b.x > a.x WITHIN 6 events"
KEYS = ("one", "in turn")


def key_at(keys: str, tick: int, dice: Random) -> str:
    """Keys that come "in turn", three at a time, are silent for long, and come again; others come "once"."""
    if keys == "once":
        return f"k{int(tick / 2.5)}"
    return f"k{tick // 150 % 10}-{dice.randrange(3)}" if keys == "in turn" else "k"


def stream(events: int, *, late: float, keys: str, retracts: bool) -> Iterator[pa.Table]:
    """Pushes of so many events."""
    table = whole_stream(events, late, keys, retracts)
    yield from (table.slice(first, events) for first in range(0, PUSHES * events, events))


@cache
def whole_stream(events: int, late: float, keys: str, retracts: bool) -> pa.Table:
    """Some events come late, but none too late; some are taken back a little later."""
    dice = Random(7)
    rows: list[tuple[float, dict[str, Any]]] = []
    for tick in range(PUSHES * events):
        comes = tick + (dice.random() * (DELAY - 2) if dice.random() < late else 0)
        values = {"type": dice.choice("AABC"), "x": dice.randrange(8), "g": key_at(keys, tick, dice)}
        row = {"id": tick, "ts": tick} | values
        rows.append((comes, {"op": "+I"} | row))
        if retracts and dice.random() < 0.02:
            rows.append((comes + 0.5, {"op": "-D"} | row))
    rows.sort(key=lambda one: one[0])
    return pa.Table.from_pylist([row for _, row in rows])


def followed(text: str, batches: Iterator[pa.Table]) -> tuple[list[int], list[int]]:
    """The bytes of the state, and the events held, after each push."""
    matcher = compile_query(text).matcher(watermark=DELAY, emit="early", id="id", op="op")
    sizes, held, found = [], [], 0
    for events in batches:
        found += matcher.push(events).num_rows
        sizes.append(len(matcher.state_bytes()))
        held.append(matcher.held_events)
    assert found > 10, "too few matches to tell"
    assert matcher.rejected().num_rows == 0
    return sizes, held


def does_not_grow(values: list[int]) -> None:
    """The last is not much more than the largest of the first third, nor is any between."""
    most = max(values[: len(values) // 3])
    assert values[-1] <= 1.5 * most, values
    assert max(values) <= 2 * most, values


@pytest.mark.parametrize("late", [0.0, 0.05])
@pytest.mark.parametrize("keys", KEYS)
@pytest.mark.parametrize("name", QUERIES)
def test_nothing_grows(name: str, keys: str, late: float) -> None:
    """The saved state, and the events held, are at the end what they were when the windows had filled."""
    assert compile_query(QUERIES[name]).plan.engine == name.split(",", maxsplit=1)[0]
    sizes, held = followed(QUERIES[name], stream(EVENTS, late=late, keys=keys, retracts=late > 0))
    does_not_grow(sizes)
    does_not_grow(held)


@pytest.mark.parametrize("name", ["cells", "runs"])
def test_keys_that_come_once_leave_nothing_behind(name: str) -> None:
    """Room of silent keys is given back once there are some thousands, which they are in the first third."""
    sizes, held = followed(QUERIES[name], stream(5 * EVENTS, late=0.05, keys="once", retracts=True))
    does_not_grow(sizes)
    does_not_grow(held)


@pytest.mark.parametrize("keys", KEYS)
def test_windows_of_events(keys: str) -> None:
    """It is seldom looked which events runs can still reach; there are enough of them in the first third."""
    sizes, held = followed(COUNTING, stream((5 if FULL else 12) * EVENTS, late=0.05, keys=keys, retracts=True))
    does_not_grow(sizes)
    does_not_grow(held)


@pytest.mark.parametrize("emit", ["final", "early", 20])
@pytest.mark.parametrize("name", ["cells", "runs"])
def test_punctuations_let_go_too(name: str, emit: str | int) -> None:
    """Where only they say how far the stream is."""
    matcher = compile_query(QUERIES[name]).matcher(emit=emit, id="id")
    sizes, held = [], []
    for number, events in enumerate(stream(EVENTS, late=0, keys="in turn", retracts=False)):
        matcher.push(events.drop_columns(["op"]))
        assert matcher.held_events >= EVENTS
        matcher.punctuate((number + 1) * EVENTS)
        sizes.append(len(matcher.state_bytes()))
        held.append(matcher.held_events)
    does_not_grow(sizes)
    does_not_grow(held)
