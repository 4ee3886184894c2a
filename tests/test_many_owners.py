"""Queries that differ in constants and windows run as one automaton, whose runs say which query they belong to.

A sketch of what many queries on one stream will stand on: constants become parameters, runs have an owner.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields, is_dataclass, replace
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from acep_approx import compile_query
from acep_approx.automaton.automaton import Letter
from acep_approx.automaton.registers import RegisterAutomaton, Step
from acep_approx.automaton.resolve import Own, Parameter
from acep_approx.engines.runs.options import CLOSED, Owners, RunOptions
from acep_approx.query.syntax import Attribute, Constant
from tests.cases import cases
from tests.engine_driver import Driver

QUERIES = 100
TEMPLATES = (
    "PATTERN SEQ(A a, B b, C c) WHERE [g] AND a.x > {0} AND b.x - a.x > {1} AND c.y = {2} WITHIN {w}",
    "PATTERN SEQ(A a, B b, C c) WHERE skip_till_next_match {{ [g] AND b.x - a.x > {1} AND c.y = {2} }} WITHIN {w}",
    "PATTERN SEQ(A a, B+ b[], C c) WHERE b[i].x - a.x > {1} AND c.y = {2} AND c.x > {0} WITHIN {w} ERRORS 1",
)
MARKS = {9000: "p0", 9001: "p1", 9002: "p2"}
"""Constants of the template, and the parameters that they become."""


def with_parameters(node: Any) -> Any:
    """An expression with parameters in the places of marked constants."""
    if isinstance(node, Constant) and node.value in MARKS:
        return Parameter(MARKS[node.value])
    if not is_dataclass(node):
        return node
    changed = {f.name: with_parameters(getattr(node, f.name)) for f in fields(node) if f.name != "span"}
    return replace(node, **changed)  # type: ignore[type-var]


def own(node: Any) -> Any:
    """A condition of a letter as the check of a step: its attributes are those of the event at hand."""
    if isinstance(node, Attribute):
        return Own(node)
    if not is_dataclass(node):
        return node
    return replace(node, **{f.name: own(getattr(node, f.name)) for f in fields(node) if f.name != "span"})  # type: ignore[type-var]


def template(text: str) -> tuple[Any, RegisterAutomaton]:
    """The query of a template, and its automaton with parameters: conditions that name one leave the letters."""
    marked = list(MARKS)
    query = compile_query(text.format(*marked, w=40), engine="runs")
    registers = query.plan.registers
    letters, moved = [], []
    for letter in registers.letters:
        asks = [c for c in letter.conditions if with_parameters(c) != c]
        kept = tuple(c for c in letter.conditions if c not in asks)
        letters.append(Letter(letter.type, kept, letter.negated))
        moved.append(tuple(own(with_parameters(c)) for c in asks))

    def changed(step: Step) -> Step:
        return replace(step, checks=(*moved[step.letter], *map(with_parameters, step.checks)))

    return query, replace(registers, letters=letters, steps=[changed(step) for step in registers.steps])


def stream(dice: Random, events: int) -> pa.Table:
    """Random events of three types and two keys."""
    rows = [
        {"ts": i, "type": dice.choice("ABC"), "x": dice.randrange(12), "y": dice.randrange(3), "g": dice.choice("uv")}
        for i in range(events)
    ]
    return pa.Table.from_pylist(rows)


def in_short(found: Iterable[tuple[Any, ...]], *, lists: bool) -> list[Any]:
    """Matches in order; where none are listed, per event the least errors, and at that the latest start."""
    if lists:
        return sorted(found)
    best: dict[Any, Any] = {}
    for slot, errors, event, start, _ in found:
        best[slot, event] = min(best.get((slot, event), (errors, -start)), (errors, -start))
    return sorted(best.items())


@pytest.mark.parametrize("text", TEMPLATES)
@pytest.mark.parametrize("lists", [True, False])
def test_one_automaton_for_a_hundred_queries(text: str, lists: bool) -> None:
    """Each finds what it finds alone; one that was closed finds nothing."""
    dice = Random(text)
    query, registers = template(text)
    for _ in range(cases(5) // 5):
        events = stream(dice, 80)
        constants = [(dice.randrange(12), dice.randrange(-6, 9), dice.randrange(3)) for _ in range(QUERIES)]
        windows = [dice.choice((CLOSED, 5, 20, 40)) for _ in range(QUERIES)]
        columns = np.array(constants).T
        parameters = {name: ("int", column) for name, column in zip(MARKS.values(), columns, strict=True)}
        owners = Owners(np.array(windows), parameters)
        together = Driver(query, events, registers, RunOptions(owners), lists=lists)
        half = len(together.grouped.slot) // 2
        found = together.run(range(half)) + together.run(range(half, len(together.grouped.slot)))
        assert found
        for owner, (values, window) in enumerate(zip(constants, windows, strict=True)):
            mine = in_short(((slot, *rest) for slot, of, *rest in found if of == owner), lists=lists)
            if window == CLOSED:
                assert not mine
                continue
            alone = Driver(compile_query(text.format(*values, w=window), engine="runs"), events, lists=lists)
            expected = alone.run(range(len(alone.grouped.slot)))
            assert mine == in_short(((slot, *rest) for slot, _, *rest in expected), lists=lists), (values, window)
