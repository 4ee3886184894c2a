"""Runs the JSON of an automaton of a query in CEL (``explain("air")``) over events: all that it means is in it.

It shares with the engine only the parser of conditions, and how they are evaluated.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from itertools import groupby
from typing import Any

import pyarrow as pa

from acep_approx.query.cel.parser import parse_cel
from acep_approx.query.cel.syntax import Filter
from acep_approx.query.evaluate import evaluate
from acep_approx.query.shape import replaced
from acep_approx.query.syntax import Attribute, Binary, Constant, Expression, Lasting

Row = Mapping[str, Any]
LAST = "$."


@dataclass(frozen=True)
class Run:
    """A run at a state: what it holds, when it began, and when it came."""

    state: str
    values: tuple[tuple[str, Any], ...]
    began: int
    came: int


@cache
def expression(text: str) -> Expression:
    """An expression as AIR writes it."""
    source = parse_cel(f"FROM FILTER{{({text}) = 0}}(any)").select.source
    assert isinstance(source, Filter)
    assert isinstance(source.condition, Binary)
    in_ticks: Expression = replaced(
        source.condition.left, lambda node: Constant(node.amount) if isinstance(node, Lasting) else None
    )
    return in_ticks


class AirMachine:
    """An automaton as data, and the types of the columns that it reads."""

    def __init__(self, air: dict[str, Any], types: pa.Schema) -> None:
        self.states = {state["name"]: state for state in air["states"]}
        self.window = None if air["window"] is None else air["window"]["amount"]
        self.types = {field.name: field.type for field in types}

    def results(self, events: list[dict[str, Any]]) -> Counter[tuple[Any, ...]]:
        """The results: start, end and attributes, each as often as it is found."""
        found: Counter[tuple[Any, ...]] = Counter()
        runs: list[Run] = []
        for tick, some in groupby(events, key=lambda event: event["ts"]):
            now = list(some)
            runs = [run for run in runs if self.window is None or tick - run.began <= self.window]
            stay, born = [], list[Run]()
            for run in runs:
                gone = False
                for event in now:
                    gone |= self.step(run, event, born)
                stay += [] if gone else [run]
            for event in now:
                self.step(Run("start", (), event["start"], -(2**60)), event, born)
            for run in born:
                if run.state == "end":
                    found[run.began, run.came, tuple(sorted(run.values))] += 1
            runs = stay + [run for run in born if run.state != "end"]
        return found

    def step(self, run: Run, event: dict[str, Any], born: list[Run]) -> bool:
        """What an event makes of a run; whether it is gone then."""
        state = self.states[run.state]
        if event["type"] != state["input"]:
            return False
        gone = False
        for edge in state["edges"]:
            true = self.all_true(edge["conditions"], run, event)
            if edge["kind"] == "filter":
                gone |= self.all_true(edge["unless"], run, event)
            elif edge["kind"] == "kill":
                gone |= true and not self.all_true(edge["unless"], run, event)
            elif true:
                values = tuple((name, self.value(text, run, event)) for name, text in edge["sets"].items())
                born.append(Run(edge["target"], values, run.began, event["ts"]))
        return gone

    def all_true(self, conditions: list[str], run: Run, event: Row) -> bool:
        return all(self.value(one, run, event) is True for one in conditions)

    def value(self, text: str, run: Run, event: Row) -> Any:
        held, is_first = dict(run.values), run.state == "start"

        def column(leaf: Attribute) -> pa.Array:
            if leaf.name == "DUR" and leaf.variable is None:
                return pa.array([event["ts"] - run.began])
            if leaf.name in ("t0", "t1"):
                mine = {"t0": run.began, "t1": run.came}
                return pa.array(
                    [
                        {"t0": event["start"], "t1": event["ts"]}[leaf.name]
                        if self.of_event(leaf, is_first)
                        else mine[leaf.name]
                    ]
                )
            if self.of_event(leaf, is_first):
                return pa.array([event[leaf.name]], self.types[leaf.name])
            return pa.array([held[LAST + leaf.name if leaf.variable == "$" else leaf.name]])

        found = evaluate(expression(text), column)
        return found.as_py() if isinstance(found, pa.Scalar) else found[0].as_py()

    @staticmethod
    def of_event(leaf: Attribute, is_first: bool) -> bool:
        return is_first or leaf.variable == "$2"
