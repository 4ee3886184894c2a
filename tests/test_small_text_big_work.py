"""Small texts that would make big work: each compiles to tables of a stated size, or is refused while they are made."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from acep_approx import Afa, compile_query, either, event, seq
from acep_approx.automaton.compile import MAX_ARCS
from acep_approx.automaton.substitution import MAX_PARTS, parts_of
from acep_approx.errors import LimitError, QueryError
from tests.cases import cases

SMALL = 2_000


def automaton(arcs: list[str], more: str = "", registers: str = "n = 0, m = 1") -> str:
    return f"PATTERN AUTOMATON (REGISTERS {registers} a -> s0 ON A SET n = 1, m = 2 {' '.join(arcs)}{more}) WITHIN 5"


def in_a_row(count: int, *steps: str) -> str:
    """EPSILON arcs one behind the other; of several steps each is another way."""
    arcs = [f"s{i} -> s{i + 1} EPSILON {step.format(i)}" for i in range(count) for step in steps]
    return automaton([*arcs, f"s{count} -> f ON B WHEN n > m"], " FINAL f")


def selects(count: int, value: str) -> str:
    source = "A"
    for _ in range(count):
        source = f"(SELECT {value} AS x FROM {source})"
    return f"SELECT x FROM {source} PUBLISH T"


REFUSED = {
    "two ways at each step": (in_a_row(12, "WHEN n > {} SET n = n + 1", "WHEN n < {} SET n = n + 2"), "ACEP-Q120"),
    "two conditions at each step": (in_a_row(20, "WHEN n > {}", "WHEN m < {}"), "ACEP-Q911"),
    "n = n + n": (in_a_row(20, "SET n = n + n"), "ACEP-Q120"),
    "n = n + n, and much more often": (in_a_row(45, "SET n = n + n"), "ACEP-Q120"),
    "n = n + n, and tested": (in_a_row(30, "WHEN n + n > 3 SET n = n + n"), "ACEP-Q120"),
    "two registers in turn": (in_a_row(45, "SET n = m, m = n + m"), "ACEP-Q120"),
    "at the end of the window": (
        automaton(
            [*(f"s{i} -> s{i + 1} EPSILON SET n = n + n" for i in range(40)), "s40 -> f TIMEOUT WHEN n > 1"], " FINAL f"
        ),
        "ACEP-Q120",
    ),
    "all states with all": (
        automaton(
            [f"s{i} -> s{j} EPSILON WHEN n > {9 * i + j}" for i in range(6) for j in range(6) if i != j], " FINAL s5"
        ),
        "ACEP-Q903",
    ),
    "a deep value": (in_a_row(3, "SET n = " + "n + " * 60 + "1"), "ACEP-Q120"),
    "SELECT x + x": (selects(30, "x + x"), "ACEP-Q120"),
    "SELECT x + 1 + 1": (selects(20, "x" + " + 1" * 12), "ACEP-Q120"),
    "every pair compared": (
        f"PATTERN SEQ({', '.join(f'A? v{i}' for i in range(14))}, B b) WHERE "
        + " AND ".join(f"v{i}.x < v{j}.x" for i in range(14) for j in range(i))
        + " WITHIN 5",
        "ACEP-Q905",
    ),
    "(a{1000}){1000}": ("(a{1000}){1000} WITHIN 5", "ACEP-Q022"),
    "a{1,1000000000}": ("a{1,1000000000} WITHIN 5", "ACEP-Q022"),
    "many optional letters, repeated": (f"({'a?' * 900})*b WITHIN 5", "ACEP-Q904"),
    "ERRORS 1000000000": ("ab WITHIN 5 ERRORS 1000000000", "ACEP-Q040"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_small_text_is_refused_while_its_tables_are_made(name: str) -> None:
    text, code = REFUSED[name]
    assert len(text) < SMALL
    with pytest.raises(QueryError) as caught:
        compile_query(text)
    assert caught.value.code == code
    assert caught.value.hint
    if isinstance(caught.value, LimitError):
        assert f"{caught.value.limit:,}" in str(caught.value)
        assert caught.value.limit < caught.value.given


def test_steps_without_an_event_that_stay_small_still_compile() -> None:
    assert compile_query(in_a_row(7, "WHEN n > {} SET n = n + 1", "WHEN n < {} SET m = 2")).plan.registers is not None
    events = [{"ts": 0, "type": "A"}, {"ts": 1, "type": "B"}]
    assert len(compile_query(in_a_row(40, "SET n = n + 1")).match(events)) == 1


def test_trees_that_hold_one_part_twice_are_refused_where_they_are_made() -> None:
    def doubled(value: object) -> object:
        for _ in range(60):
            value = value + value  # type: ignore[operator]
        return value

    with pytest.raises(LimitError) as caught:
        Afa(registers={"n": 0}).arc("a", "b", "A", then=lambda e, r: {"n": doubled(r.n)}).machine()
    assert caught.value.code == "ACEP-Q024"
    with pytest.raises(LimitError) as caught:
        grown(60, lambda part, i: either(part, part))
    assert caught.value.code == "ACEP-Q024"


@pytest.mark.parametrize(
    "step",
    [
        lambda part, i: either(seq(part, event("B", f"b{i}")), event("C", f"c{i}")),
        lambda part, i: part.times(1, 2),
    ],
)
def test_patterns_built_in_python_are_no_deeper_than_texts(step: Callable[[Any, int], Any]) -> None:
    with pytest.raises(LimitError) as caught:
        grown(2_000, step)
    assert caught.value.code == "ACEP-Q021"


def grown(steps: int, step: Callable[[Any, int], Any]) -> Any:
    part = event("A", "a")
    for i in range(steps):
        part = step(part, i)
    return part


def nasty_automaton(dice: random.Random) -> str:
    """A random automaton in less than 2 kB, most of whose arcs consume nothing and change registers."""
    states = dice.randint(4, 12)
    registers = ["n", "m", "k"][: dice.randint(1, 3)]
    values = ["{0} + {1}", "{0} * {0}", "{0} + 1", "{1}", "({0} + {1}) * ({0} - {1})", "NULL"]
    text = f"PATTERN AUTOMATON (REGISTERS {', '.join(f'{one} = 0' for one in registers)} a -> s0 ON A"
    text += f" SET {', '.join(f'{one} = 1' for one in registers)}"
    while len(text) < SMALL - 150 and dice.random() < 0.98:
        source = dice.randrange(states - 1)
        target = dice.randrange(source + 1, min(source + 3, states)) if dice.random() < 0.95 else dice.randrange(states)
        one, other = dice.choice(registers), dice.choice(registers)
        text += f" s{source} -> s{target} " + dice.choice(("EPSILON",) * 7 + ("ON A", "ON B"))
        if dice.random() < 0.5:
            text += f" WHEN {one} > {dice.choice(('3', other))} + {other}"
        if dice.random() < 0.7 and target > source:
            text += f" SET {one} = " + dice.choice(values).format(one, other)
    text += "".join(f" s{i} -> s{i + 1} ON B" for i in range(states - 1))
    return text + f" FINAL s{states - 1}) WITHIN 5"


def test_automata_at_random_compile_within_their_limits_or_are_refused() -> None:
    dice = random.Random(5)
    outcomes = Counter[str]()
    for _ in range(cases(200, 25)):
        try:
            found = compile_query(nasty_automaton(dice), engine="runs").plan.registers
        except QueryError as error:
            outcomes[error.code] += 1
            continue
        outcomes["compiled"] += 1
        assert found is not None
        assert len(found.steps) <= MAX_ARCS
        moved = [value for step in found.steps for value in (step.moves or {}).values()]
        assert parts_of((*moved, *(check for step in found.steps for check in step.checks))) <= 3 * MAX_PARTS
    assert {"compiled", "ACEP-Q120"} <= set(outcomes)
