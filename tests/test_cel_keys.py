"""Queries in CEL whose operators all ask for one value of an attribute: the stream is split by it."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from functools import cache

import pytest

from acep_approx import compile_query
from acep_approx.planning import cel
from tests.cases import cases
from tests.cel_runs import disagreement
from tests.cel_worlds import cel_world, keyed, world_of
from tests.noticing import first_noticed

MANY, WORLDS = cases(2_000, 40), 400


RENAMED = (
    "SELECT * FROM (SELECT g, y AS x FROM A) NEXT{$2.x = $1.x} B",
    "SELECT * FROM (SELECT g, y_1 AS x FROM A NEXT{$2.x = $1.x} B) NEXT{$2.x = $1.x} B",
)
"""What the operators ask for is another attribute of the events before."""


def told(seed: int) -> str:
    """What the engine finds otherwise than brute force, where some operators ask for one value."""
    intervals = seed % 2 == 0
    if seed % 4 > 1:
        return disagreement(seed, world_of(RENAMED[seed % 8 // 4], seed, intervals=intervals))
    world = keyed(cel_world(seed, subqueries=False, intervals=intervals), seed, 0.7)
    return "" if world is None else disagreement(seed, world)


def test_random_queries_that_are_split_are_those_of_the_whole_stream() -> None:
    """Matches, points and counts, in batches and over restarts, with ties, intervals and NULL."""
    split = 0
    for seed in range(MANY):
        world = keyed(cel_world(seed, subqueries=False, intervals=seed % 2 == 0))
        if world is not None:
            split += compile_query(world.text).plan.implied_key is not None
            assert not disagreement(seed, world)
    assert split > MANY / 4


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("SELECT * FROM A NEXT{$2.g = $1.g} B", "g"),
        ("SELECT * FROM A NEXT{$1.g = $2.g AND $2.x > $1.x} B NEXT{$2.g = $1.g_1} A", "g"),
        ("SELECT * FROM A FOLD{$2.g = $.g, $2.x > $.x, $.x + 1 AS c} B", "g"),
        ("SELECT * FROM A FOLD{$2.g = $1.g,} B NEXT{$2.g = $1.g_1 AND $2.x = $1.x} B", "g"),
        ("SELECT * FROM (SELECT g AS h, x AS y FROM A) NEXT{$2.g = $1.h} B", "g"),
        ("SELECT * FROM (SELECT x AS g FROM A) NEXT{$2.g = $1.g} B", None),
        ("SELECT * FROM (SELECT g + 1 AS g FROM A) NEXT{$2.g = $1.g} B", None),
        ("SELECT * FROM A NEXT{$2.g = $1.g} B NEXT A", None),
        ("SELECT * FROM A NEXT{$2.g = $1.g OR $2.x = 1} B", None),
        ("SELECT * FROM A NEXT{$2.g <= $1.g} B", None),
        ("SELECT * FROM A FOLD{, $2.g = $.g, $.x + 1 AS c} B", None),
        ("SELECT * FROM FILTER{g = 'a'}(A)", None),
    ],
)
def test_which_queries_are_split(text: str, key: str | None) -> None:
    assert compile_query(text).plan.implied_key == key


def any_register_holds_it(patch: pytest.MonkeyPatch) -> None:
    """What is computed of an attribute is taken for it."""
    patch.setattr(cel, "_is_of", lambda *_: True)


def what_is_held_stays(patch: pytest.MonkeyPatch) -> None:
    """Registers that are moved from others are taken for the attribute."""
    real = cel._is_of
    patch.setattr(cel, "_is_of", lambda value, *more: isinstance(value, cel.Held) or real(value, *more))


def one_step_asks(patch: pytest.MonkeyPatch) -> None:
    """The other steps may take any event."""

    def first_asked(automaton: cel.RegisterAutomaton) -> str | None:
        asked = [[*cel._equalities(step.checks)] for step in automaton.steps if step.source]
        return next((name for equalities in asked for name, _ in equalities), None)

    patch.setattr(cel, "implied_key", first_asked)


@cache
def nothing_is_noticed() -> bool:
    """Whether the engine itself is right, so that what is noticed is the mutant's: asked before the first of them."""
    return first_noticed(told, 20) < 0


@pytest.mark.parametrize("mutant", [any_register_holds_it, what_is_held_stays, one_step_asks])
def test_wrong_keys_are_noticed(mutant: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch) -> None:
    assert nothing_is_noticed()
    mutant(monkeypatch)
    assert first_noticed(told, WORLDS) >= 0


def test_a_column_that_cannot_be_a_key_splits_nothing() -> None:
    """Nor one of which no value is known yet."""
    query = compile_query("SELECT x_1 AS a, x AS b FROM A NEXT{$2.d = $1.d} A")
    rows = [{"ts": ts, "type": "A", "d": Decimal(ts % 2), "x": ts} for ts in range(4)]
    assert query.match(rows).to_arrow().select(["a", "b"]).to_pylist() == [{"a": 0, "b": 2}, {"a": 1, "b": 3}]
    matcher = query.matcher()
    matcher.push([{"ts": 0, "type": "A", "d": None, "x": 0}])
    found = [matcher.push([row | {"ts": row["ts"] + 1}]).num_rows for row in rows]
    assert found == [0, 0, 1, 1]
