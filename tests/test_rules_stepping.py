"""Circles that are run in turn: which events are run together, and worlds that notice where too many are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from acep_approx import compile_rules
from acep_approx.errors import UnsupportedError
from acep_approx.rules import stepping
from acep_approx.rules.stepping import Ahead, Readers
from tests.rule_runs import Way, expected_of, found_by
from tests.rule_worlds import rule_world

CIRCLE = """
TABLE status (id text, level int DEFAULT 0, KEY (id))
RULE up ON PATTERN SEQ(A a, B b) WHERE [id] AND b.x > a.x AND store.status[b.id].level < 3 WITHIN 50
FOR EACH POINT DO UPDATE status SET level = old.level + 1 AT (b.id) END
RULE down ON PATTERN C c WHERE store.status[c.id].level > 0 WITHIN 1
FOR EACH POINT DO UPDATE status SET level = 0 AT (c.id) END
"""


def stream(events: int, keys: int) -> pa.Table:
    """Events of three types and some keys."""
    dice = np.random.default_rng(3)
    return pa.table(
        {
            "ts": np.arange(events),
            "type": dice.choice(list("ABC"), events),
            "id": [f"k{n}" for n in dice.integers(0, keys, events)],
            "x": dice.integers(0, 9, events),
        }
    )


@pytest.fixture
def sizes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many events were run together, each time."""
    found: list[int] = []
    run = Ahead.run

    def noted(self: Ahead, first: int, last: int) -> Any:
        found.append(last - first)
        return run(self, first, last)

    monkeypatch.setattr(Ahead, "run", noted)
    return found


def test_events_that_name_different_rows_are_run_together(sizes: list[int]) -> None:
    compile_rules(CIRCLE).run(stream(2000, 400))
    assert sum(sizes) == 2000
    assert len(sizes) < 2000 / 15


def test_events_that_name_one_row_are_run_one_after_the_other(sizes: list[int]) -> None:
    compile_rules(CIRCLE).run(stream(200, 1))
    assert sum(sizes) == 200
    assert len(sizes) > 200 / 4  # those that complete nothing go with the next one that may


def test_a_row_that_an_earlier_event_names_stops_behind_each_match(sizes: list[int]) -> None:
    text = CIRCLE.replace("AT (b.id)", "AT (a.id)").replace("[id] AND ", "").replace("POINT", "MATCH")
    given = stream(300, 100)
    assert compile_rules(text).run(given)["up"].num_rows
    completes = sum(kind in "B" for kind in given.column("type").to_pylist())
    assert len(sizes) > completes / 2


@pytest.mark.parametrize(
    ("where", "name", "wrong"),
    [
        (stepping, "last_before", lambda named, at, rows: np.full(len(named), -1)),
        (Ahead, "fresh_before", lambda self, at, written: len(self._events)),
        (Readers, "that_matter", lambda self, rows, batch: []),
        (Ahead, "stops", lambda self, found: np.array([len(self._events)])),
    ],
    ids=["nothing is written before", "letters stay fresh", "no event reads", "nothing stops"],
)
def test_worlds_notice_events_that_are_run_too_far(
    monkeypatch: pytest.MonkeyPatch, where: Any, name: str, wrong: Callable[..., Any]
) -> None:
    monkeypatch.setattr(where, name, wrong)
    assert any(disagrees(seed) for seed in range(400)), "no world is hurt"


def disagrees(seed: int) -> bool:
    """Whether a world, run in turn and at once, does not give what brute force says."""
    world = rule_world(seed)
    try:
        rules = compile_rules(world.text)
    except UnsupportedError:
        return False
    expected, found = expected_of(world), found_by(world, rules, Way("at once", "stepping"))
    return expected.failure is None and (found.matches, found.changes) != (expected.matches, expected.changes)
