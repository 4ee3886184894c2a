"""Load budgets over streams that are late, revised and taken back: what must hold after every step of a schedule.

All that was put out is part of the exact answer, and nothing is taken back that was not put out; no more run-steps were
taken than granted, counted where the kernel takes them. With a budget of 100% both are what they are without one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from random import Random
from typing import Any
from unittest.mock import patch

import pyarrow as pa

from acep_approx import compile_query
from acep_approx.engines.runs.runs import Runs
from acep_approx.errors import AcepError
from acep_approx.kernels.runs import layout
from tests.hasty import hasty
from tests.revised_answers import plain
from tests.revised_model import Ledger, Model, Schedule
from tests.revised_small import small
from tests.revised_streams import schedule

STEPS = ("0.1 steps/event", "0.3 steps/event", "1 steps/event", "4 steps/event")
BUDGETS = (*STEPS, "1 runs", "4 runs", "10%", "30%", "80%")
POLICIES = ("oldest", "random", "most-advanced")
FULL_WORK = 8.0
APART = 100_003
"""From a schedule that is of no use to the next one."""

Rows = Counter[tuple[Any, ...]]


@dataclass(frozen=True)
class Case:
    """A schedule, and how a budget is spent on it; ``is_small``: with short segments."""

    asked: Schedule
    how: dict[str, Any]
    is_small: bool

    @classmethod
    def of(cls, seed: int, budget: str | None = None, *, learns: bool = False) -> Case:
        """The case of a seed; ``learns``: what runs are worth is learned on the way, from few tests."""
        dice, asked = Random(seed), schedule(seed)
        while not is_shed(asked):
            seed += APART
            asked = schedule(seed)
        how: dict[str, Any] = {"budget": budget or dice.choice(BUDGETS), "policy": dice.choice(POLICIES)}
        full = {"full_work": FULL_WORK} if how["budget"].endswith("%") else {}
        if learns:
            how |= {"policy": None, "learn": True}
        return cls(replace(asked, engine="runs"), how | full | {"seed": dice.randrange(9)}, dice.random() < 0.5)

    def check(self) -> Counter[str]:
        """See ``holds``."""
        with small() if self.is_small else nullcontext(), hasty(2) if "learn" in self.how else nullcontext():
            return holds(self)


def is_shed(asked: Schedule) -> bool:
    """Whether runs answer, and which of the matches are listed does not depend on others."""
    try:
        return compile_query(asked.text, engine="runs").plan.query.selection.is_all
    except AcepError:  # runs do not answer it
        return False


# --- what is paid -----------------------------------------------------------------------------------------------------


@dataclass
class Meter:
    """Run-steps of a matcher, as the kernel takes them."""

    steps: int = 0

    @contextmanager
    def running(self) -> Iterator[None]:
        """Count what is done meanwhile."""
        advance = Runs.advance

        def counted(engine: Runs, *some: Any, **more: Any) -> bool:
            before = int(engine.control[layout.DONE_STEPS])
            try:
                return advance(engine, *some, **more)
            finally:
                self.steps += int(engine.control[layout.DONE_STEPS]) - before

        with patch.object(Runs, "advance", counted):
            yield

    def check(self, matcher: Any) -> None:
        """The budget covers it, and the record says it."""
        shedder, pipeline = matcher.shedder, matcher.execution.pipeline
        if shedder is None or pipeline is None:
            return
        work = self.steps + shedder.arena.on_passes
        allowed = shedder.granted + shedder._aside.quota if shedder._rate > 0 else work
        assert work <= allowed + 1e-6, f"{work} run-steps of {allowed}"
        events = matcher.revisions.inserted if matcher.asked.emit == "early" else None
        assert events is None or shedder.arena.granted <= shedder._rate * events * (1 + 1e-9) or shedder._rate == 0
        said = pipeline.progress.steps + (shedder.audit_work or 0)
        assert self.steps == said, f"{self.steps} run-steps, and {said} are written down"


# --- what is found ----------------------------------------------------------------------------------------------------


def compared(found: Rows, columns: list[str], asked: Schedule) -> Rows:
    """What is held against the exact answer: of points the event, of counts how many, of matches what they bind.

    The errors of a match are the least of the ways to it that were found.
    """
    if not columns:
        return Counter()
    result: Rows = Counter()
    if asked.output == "matches":
        kept = [place for place, name in enumerate(columns) if name not in ("errors", "missing")]
    else:
        kept = [columns.index(asked.id or "row")]
    times = columns.index("matches") if asked.output == "counts" else None
    for row, number in found.items():
        result[tuple(row[place] for place in kept)] += number * (1 if times is None else row[times])
    return result if asked.output != "points" else Counter(dict.fromkeys(+result, 1))


def taken(matcher: Any, model: Model, step: Any, asked: Schedule) -> pa.Table | None:
    """What a step gives; None where the model says that it is refused."""
    if step is None:
        return matcher.finish()
    if step.tick is not None:
        return matcher.punctuate(step.tick) if model.punctuate(step.tick) else None
    table = matcher.push(asked.table(step.rows))
    model.push(step.rows)
    return table


def in_turn(table: pa.Table) -> tuple[list[str], list[str]]:
    """The rows that come, in their order, and those that are taken back: a restart may change the order of these."""
    rows = table.to_pylist()
    gone = sorted(str(row) for row in rows if row.get("op") == "-D")
    return [str(row) for row in rows if row.get("op") != "-D"], gone


def holds(case: Case) -> Counter[str]:
    """Run a schedule inside a budget, and check after each step; gives how much was found, and what happened."""
    asked, query = case.asked, compile_query(case.asked.text, engine=case.asked.engine)
    matcher, model, meter = query.matcher(**asked.options(), **case.how), asked.model(), Meter()
    exact = query.matcher(**asked.options()) if case.how["budget"] == "100%" else None
    ledger, beside, seen = Ledger(has_ids=False, is_telling=False), asked.model(), Counter[str]()
    for number, step in enumerate([*asked.steps, None]):
        if step is not None and step.tick is None and step.rows is None:
            matcher = query.from_state(matcher.state_bytes())
            exact = None if exact is None else query.from_state(exact.state_bytes())
            seen["restart"] += 1
            continue
        with meter.running():
            table = taken(matcher, model, step, asked)
        if table is None:
            continue
        matcher.rejected()
        ledger.take(table)
        if exact is not None:
            same = taken(exact, beside, step, asked)
            assert in_turn(table) == in_turn(same), f"step {number}: not the rows of the exact run"
        columns, expected = plain(asked, query, model, is_over=step is None)
        assert all(count > 0 for count in ledger.net.values()), f"step {number}: {ledger.net}"
        net, wanted = compared(ledger.net, ledger.columns, asked), compared(expected, columns, asked)
        assert not net - wanted, f"step {number}, too much: {net - wanted}"
        assert exact is None or not wanted - net, f"step {number}, missing: {wanted - net}"
        meter.check(matcher)
        seen["found"] += net.total()
        seen["missing"] += (wanted - net).total()
    seen["taken back"] += sum(sign < 0 for sign, _ in model.changes)
    seen["rescored"] += len(matcher.learning())
    return seen
