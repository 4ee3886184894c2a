"""Rules that share a budget of time: each first has the time that events take in its engine, whatever is shed.

The clock is simulated: an event takes so long in each engine, and so does a run-step.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from acep_approx import RuleHistory, RuleSet, compile_rules
from acep_approx.api.rule_set import RuleRun
from acep_approx.engines.progress import RunProgress
from acep_approx.events.stream import EventBatch
from acep_approx.shedding.shedder import Shedder
from acep_approx.training.few_points import FewPointsWarning

AN_EVENT, A_STEP = 3e-6, 1e-7
EVENTS, BATCHES = 6_000, 3
RULES = """
TABLE seen (id int, n int DEFAULT 0, KEY (id))
RULE count ON PATTERN SEQ(A a, B b, C c, D d)
WHERE [id] AND b.x < c.x AND (d.v - a.v - b.v) * (d.v - a.v - b.v) < 0.000004 WITHIN 1500
DO UPDATE seen SET n = old.n + 1 AT (d.id) END
RULE often ON PATTERN SEQ(A a, C c, D d)
WHERE [id] AND (d.v - a.v * c.v) * (d.v - a.v * c.v) < 0.000004 AND store.seen[d.id].n > 5 WITHIN 1500
"""
RULE_NAMES = ("count", "often")
PRODUCTIVE = 3
"""Of twelve keys: in the others no match is ever completed."""


def stream(seed: int) -> pa.Table:
    dice = np.random.default_rng(seed)
    kind, key = dice.choice(6, EVENTS, p=(0.1, 0.15, 0.3, 0.15, 0.15, 0.15)), dice.integers(0, 12, EVENTS)
    kind[(kind == 3) & (key >= PRODUCTIVE)] = 4
    columns = {"ts": np.arange(EVENTS), "type": np.array(list("ABCDEF"))[kind], "id": key}
    return pa.table(columns | {"x": dice.integers(0, 100, EVENTS), "v": dice.random(EVENTS)})


@pytest.fixture(scope="module")
def rules() -> RuleSet:
    return compile_rules(RULES)


@pytest.fixture(scope="module")
def known(rules: RuleSet) -> RuleHistory:
    with pytest.warns(FewPointsWarning):
        return RuleHistory(rules).fit(stream(1))


@pytest.fixture
def simulated(monkeypatch: pytest.MonkeyPatch) -> None:
    end_piece = Shedder.end_piece

    def end(shedder: Shedder, batch: EventBatch, progress: RunProgress, _: float) -> None:
        steps = progress.steps - shedder._seen[1] + shedder.arena.on_passes - shedder._on_passes
        end_piece(shedder, batch, progress, len(batch) * AN_EVENT + steps * A_STEP)

    monkeypatch.setattr(Shedder, "end_piece", end)


def found(rules: RuleSet, **how: Any) -> tuple[RuleRun, dict[str, int]]:
    """How many match points each rule finds in a stream that is played again and again."""
    run, ends = rules.start(**how), {rule: set[int]() for rule in RULE_NAMES}
    for number in range(BATCHES):
        events = stream(2)
        events = events.set_column(0, "ts", pc.add(events.column("ts"), number * EVENTS))
        for name, table in run.push(events).items():
            ends[name] |= set(table.column("end").to_pylist())
    return run, {name: len(some) for name, some in ends.items()}


@pytest.mark.parametrize("unit", ["ms/batch", "events/s"])
@pytest.mark.usefixtures("simulated")
def test_each_rule_has_time_for_run_steps(rules: RuleSet, known: RuleHistory, unit: str) -> None:
    """Time was divided by the work of the exact run alone: the smaller rule had not even enough for its events."""
    exact = found(rules)[1]
    full = sum(one.steps_per_event_ for one in known.values())
    for share in (0.2, 0.33, 0.5):
        an_event = 2 * AN_EVENT + share * full * A_STEP
        budget = f"{1e3 * EVENTS * an_event:.3f} ms/batch" if unit == "ms/batch" else f"{1 / an_event:.3f} events/s"
        run, by_history = found(rules, budget=budget, history=known)
        at_random = found(rules, budget=budget, history=known, policy="random")[1]
        assert sum(by_history.values()) > 1.3 * sum(at_random.values()), budget
        assert min(by_history[name] / exact[name] for name in exact) > 0.2 * share, budget
        told = [one.shedder.load.budget.amount for one in run.purse.accounts.values()]
        total = sum(told) if unit == "ms/batch" else 1 / sum(1 / amount for amount in told)
        assert total == pytest.approx(run.purse.load.budget.amount)
