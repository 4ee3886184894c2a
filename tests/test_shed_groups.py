"""The group that a run is born in stays its group, also where it depends on the event that made it."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pytest

from acep_approx import compile_query
from acep_approx.api.matcher import Matcher
from acep_approx.engines.runs.load_shedder import FixedLoad
from acep_approx.engines.runs.runs import Runs
from acep_approx.engines.runs.shedding import Shedding
from acep_approx.engines.runs.worth import Allowance, Worth
from acep_approx.events.keys import NO_KEY, KeyCodes
from acep_approx.kernels.runs import scores
from acep_approx.subscriptions.templates.pair_runs import PairKeys
from acep_approx.training.policies import worth_of
from acep_approx.training.trace import AHEAD, PACE_NAME
from history import Feature, Place, Scheme
from history.trace import KEY

QUERY = compile_query("PATTERN SEQ(A a, B b, C c, D d) WHERE [k] AND d.x > a.x AND c.x <> b.x WITHIN 80")
FEATURES = {
    "ahead": Feature(f"x of a{AHEAD}", "int", edges=(-5.0, 0.0, 5.0)),
    "pace": Feature(PACE_NAME, "float", edges=(2.0, 4.0)),
}


def stream(events: int = 600) -> pa.Table:
    rng = np.random.default_rng(4)
    letter = np.array(list("ABCD"))[rng.choice(4, events, p=[0.3, 0.3, 0.3, 0.1])]
    return pa.table(
        {"ts": np.arange(events), "type": letter, "k": rng.integers(0, 2, events), "x": rng.integers(0, 20, events)}
    )


def worth_by(feature: Feature) -> Worth:
    """Runs are told apart at the second state, by one feature; what they are worth is arbitrary."""
    automaton = QUERY.plan.registers
    assert automaton is not None
    places = (Place(state, errors, (feature,) if state == "b" else ()) for state, errors in places_of())
    scheme = Scheme(tuple(places), 80)
    rng = np.random.default_rng(1)
    return worth_of(automaton, scheme, rng.exponential(size=scheme.vertices), np.ones(scheme.vertices), 0.5)


def places_of() -> list[tuple[str, int]]:
    automaton = QUERY.plan.registers
    assert automaton is not None
    names = ["start", "a", "b", "c", "d"]
    return [(names[state], errors) for state, errors in automaton.places]


@pytest.mark.parametrize("name", FEATURES)
def test_a_run_that_is_shed_later_has_the_group_it_was_born_in(name: str) -> None:
    shedding = Shedding(
        worth_by(FEATURES[name]), Allowance(rate=3.0, price=0.05, reserve=3.0), logs_births=True, logs_shed=True
    )
    matcher = Matcher(QUERY.plan, merge="none", shedding=FixedLoad(shedding))
    matcher.push(stream())
    assert matcher.pipeline is not None
    engine = matcher.pipeline.engine
    assert isinstance(engine, Runs)
    log = engine.logged()
    born = log[:, scores.LOG_REASON] == scores.BORN
    known = {_run(row): row[scores.LOG_GROUP] for row in log[born].tolist()}
    later = [row for row in log[~born].tolist() if row[scores.LOG_TICK] > row[scores.LOG_LAST] and _run(row) in known]
    assert len({row[scores.LOG_GROUP] for row in later}) > 3
    for row in later:
        assert known[_run(row)] == row[scores.LOG_GROUP]


def _run(row: list[int]) -> tuple[int, ...]:
    """State, key, and the events that a run began and went on with, as far as that tells it from others."""
    at = (scores.LOG_POOL, scores.LOG_SLOT, scores.LOG_START, scores.LOG_LAST, scores.LOG)
    return tuple(row[word] for word in at)


def test_tables_of_texts_and_keys_are_those_made_at_once() -> None:
    """Only what has come since is looked up, also where slots get other keys."""
    query = compile_query("PATTERN SEQ(A a, B b, C c) WHERE [k] AND b.t <> a.t AND c.t <> b.t WITHIN 80")
    automaton = query.plan.registers
    assert automaton is not None
    groups = {name: {str(value): value % 3 for value in range(0, 40, 2)} for name in (KEY, "t of a")}
    features = tuple(Feature(name, "text", groups=groups[name]) for name in groups)
    names = ["start", "a", "b", "c"]
    places = (Place(names[state], errors, features if state == 1 else ()) for state, errors in automaton.places)
    scheme = Scheme(tuple(places), 80)
    ones = np.ones(scheme.vertices)
    shedding = Shedding(worth_of(automaton, scheme, ones, ones, 0.5), Allowance())
    matcher = Matcher(query.plan, shedding=FixedLoad(shedding))
    matcher.push(pa.table({"ts": [1], "type": ["A"], "k": ["0"], "t": ["0"]}))
    dice, keys, texts = Random(3), KeyCodes(), list[str]()
    shedding.keys_now = lambda: keys
    shedding.forget_texts()
    for _ in range(60):
        keys.encode([pa.array([str(dice.randrange(40)) for _ in range(3)])])
        texts += [str(dice.randrange(40)) for _ in range(dice.randrange(3))]
        shedding.refresh(texts)
        wanted = {KEY: keys.texts(), "t of a": texts}
        told = [wanted[name] for name in groups]
        got = np.split(shedding.lookup[:-1], [len(told[0])])
        for values, found, feature in zip(told, got, features, strict=True):
            last = max(feature.groups.values()) + 1
            assert [feature.groups.get(value, last) for value in values if value] == [
                group for value, group in zip(values, found.tolist(), strict=True) if value
            ]
        used = [slot for slot, text in enumerate(keys.texts()) if text]
        keys.release([slot for slot in used if dice.random() < 0.2])
    assert keys.uses_again


def changes_told(keys: KeyCodes, change: Callable[[], None]) -> int:
    """How often a slot got another key, where each time its identity has changed; free slots have none."""
    changes, before, texts = 0, keys.identities(), keys.texts()
    for _ in range(80):
        change()
        now, names = keys.identities(), [keys.text(slot) for slot in range(len(keys.identities()))]
        for slot, (old, new) in enumerate(zip(texts, names, strict=False)):
            if now[slot] != NO_KEY and old != new:
                assert before[slot] != now[slot]
                changes += before[slot] != NO_KEY
        before, texts = now, names
    return changes


def test_slots_that_get_another_key_are_told_apart() -> None:
    dice, keys = Random(5), KeyCodes()

    def change() -> None:
        keys.release([slot for slot, text in enumerate(keys.texts()) if text and dice.random() < 0.1])
        keys.encode([pa.array([str(dice.randrange(20)) for _ in range(2)])])

    assert changes_told(keys, change) > 5


def test_slots_that_get_another_pair_are_told_apart() -> None:
    dice, outer = Random(5), KeyCodes()
    outer.encode([pa.array(list("abcdef"))])
    pairing = SimpleNamespace(slots=9, row_of=np.full(16, -1), key_of=np.full(16, -1))
    table, columns = SimpleNamespace(numbers=np.array([7, 3, 12])), SimpleNamespace(columns=("k",), keys=outer)
    pairs = PairKeys(cast("Any", table), cast("Any", pairing), cast("Any", columns))

    def change() -> None:
        slot = dice.randrange(9)
        pairing.row_of[slot], pairing.key_of[slot] = dice.randrange(-1, 3), dice.randrange(6)
        gone = dice.randrange(6)  # a key of the stream goes, and another one gets its slot
        outer.release([gone])
        outer.encode([pa.array([f"{dice.randrange(10**9)}"])])
        assert outer.text(gone)

    assert changes_told(pairs, change) > 5
    outer.release([0])
    pairing.row_of[:], pairing.key_of[:] = -1, 0
    assert (pairs.identities() == NO_KEY).all()
