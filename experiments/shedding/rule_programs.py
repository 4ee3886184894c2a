"""What rules inside one load budget find on real streams, and how much of it is certain.

    python -m experiments.shedding.rule_programs [--quick] [--only NAME,...] [--events N] [--causes] [--out FILE]

Each file of rules (``shedding.rule_workloads``) learns from the events before the middle of a stream, and runs on those
behind it, as users run it: ``RuleHistory.fit``, ``RuleSet.match_within``. Said are, budget by budget: the share of
the runs that were shed, the share of the matches that are ``certain``, certain matches that the exact run has not (0 by
law), work as a share of that of the exact run, and the recall of match points: by one shared budget, by equal shares
for the rules, by chance. Last, the same weighted by ``WORTH`` for rules with and without it.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pyarrow.compute as pc
from rich.console import Console
from rich.table import Table

from acep_approx import RuleHistory, RuleSet, compile_rules
from acep_approx.api.rule_budget import RuleSpending, sheds
from acep_approx.api.rule_set import RuleOutput, RuleRun
from acep_approx.arrays import Bools
from acep_approx.budget.budget import Budget
from acep_approx.events.stream import EventBatch
from acep_approx.query.shape import atoms
from acep_approx.rules.losses import Watch
from acep_approx.rules.matched import Matched
from acep_approx.rules.program import Program
from acep_approx.shedding.load import Load
from acep_approx.shedding.shedder import Shedder
from experiments.shedding.rule_workloads import EVENTS, RULE_WORKLOADS, RuleWorkload

RECALLS = (0.05, 0.10, 0.20)
"""Budgets by which recall is compared."""
BUDGETS = (*RECALLS, 0.5, 0.8, 0.9)
"""In percent, as users say them: what is spent is held against the true work of the exact run."""
SHED = (0.02, 0.10, 0.30)
LEAST, MOST, TRIES, NEAR = 0.05, 2000.0, 10, 0.25
"""Such shares of the runs are shed by budgets in run-steps per event, which save up nothing: also with many times the
true work some are, in bursts. They are looked for among such multiples of it, in so many tries, until one is near."""
WANTED = dict(zip(SHED, (0.85, 0.55, 0.30), strict=True))
"""Share of matches that should be certain at least, where such a share of the runs is shed."""
SHARED, ALIKE, BY_WORTH, EQUAL, RANDOM = "one budget", "alike", "by WORTH", "equal shares", "random"
"""In ``one budget`` match points also count for those that read what a rule writes; with ``alike`` and what follows
they do not."""
UNIT = {"unit": "us"}


@dataclass(frozen=True)
class Result:
    """One run inside a budget, held against the exact one; ``weighted``: recall with match points by their worth."""

    workload: str
    policy: str
    budget: float
    shed: float
    certain: float
    wrong: int
    work: float
    recall: float
    weighted: float


class Causes:
    """Why matches are not certain: by rule how many there are, and of these how many take an event that is unsure.

    An event is unsure where what it reads of a table is in doubt, and matters.
    """

    def __init__(self) -> None:
        self.by_rule: dict[str, list[int]] = {}

    @contextmanager
    def noting(self) -> Iterator[None]:
        """Note what is asked meanwhile."""
        asked = Watch.is_certain

        def note(watch: Watch, found: Matched) -> Bools:
            certain = asked(watch, found)
            told = watch.guarded(found) if len(found) else None
            of = self.by_rule.setdefault(watch.rule.name, [0, 0, 0])
            of[0] += len(found)
            of[1] += int((~certain).sum())
            of[2] += 0 if told is None else int((~certain & (told.values > 0)).sum())
            return certain

        with patch.object(Watch, "is_certain", note):
            yield


class EqualShares(RuleSpending):
    """Gives each rule the same part of the budget, whatever the others need: what one purse is held against."""

    def begin(self, program: Program) -> dict[int, Shedder]:
        """Begin a run: a shedder by itself for each rule that sheds."""
        super().begin(program)
        mine = [rule for rule in program.rules if sheds(rule)]
        part = Budget(self.load.budget.amount / len(mine), self.load.budget.unit)
        self._made = {
            rule.number: Shedder(rule.plan, Load(part, self.histories.get(rule.name), audit=0.0)) for rule in mine
        }
        for shedder in self._made.values():
            shedder.keeps_metrics = True
        return self._made

    def pieces(self, batch: EventBatch) -> Iterator[EventBatch]:
        """Nothing moves between the rules."""
        yield batch


@dataclass(frozen=True)
class Ran:
    """What came of a run: its output; runs made, run-steps with those spent on looking over runs, and runs shed."""

    out: RuleOutput
    made: int
    steps: int
    shed: int


class Measured:
    """A file of rules with its exact answer, and what was learned from the past."""

    def __init__(self, workload: RuleWorkload, events: int = EVENTS) -> None:
        self.workload = workload
        self.past, self.today = workload.halves(events)
        self.rules = {weighted: compile_rules(workload.rules(weighted=weighted)) for weighted in (False, True)}
        self.known = RuleHistory(self.rules[False]).fit(self.past, **UNIT)
        self.exact = self._ran(self.rules[False])
        self.points = {name: points_of(self.rules[False], name, table) for name, table in self.exact.out.items()}
        self.matches = {name: matches_of(table) for name, table in self.exact.out.items()}

    def _ran(self, rules: RuleSet, spending: RuleSpending | None = None, **how: Any) -> Ran:
        run: RuleRun = rules.start(**UNIT, **how)
        execution = run.stage.execution
        if spending is not None:
            execution.spending = spending
        out = run.joined([run.push(self.today), run.finish()])
        assert execution.bound is not None, "it has been pushed"
        made, steps, shed = (
            sum(getattr(one.progress, name) for one in execution.bound.pipelines.values())
            for name in ("made", "steps", "shed")
        )
        record = run.record()
        return Ran(out, made, steps if record is None else sum(one.work for one in record.rules), shed)

    def run(self, policy: str, budget: float, *, weighted: bool = False, in_steps: bool = False) -> Result:
        """One run inside a share of the exact run's work; ``in_steps``: in run-steps per event of its true work."""
        rules = self.rules[weighted]
        steps = f"{budget * self.exact.steps / len(self.today)} steps/event"
        how: dict[str, Any] = {"budget": steps if in_steps else f"{100 * budget:g}%", "history": self.known}
        how["audit"] = 0.0
        if policy in (ALIKE, BY_WORTH, RANDOM):
            how["shed"] = "alike"
        if policy == RANDOM:
            how["policy"] = "random"
        spending = None
        if policy == EQUAL:
            spending = EqualShares(Load(Budget.parse(steps), audit=0.0), self.known, "alike")
        return self._judged(policy, budget, self._ran(rules, spending, **how))

    def _judged(self, policy: str, budget: float, ran: Ran) -> Result:
        matches = sum(table.num_rows for table in ran.out.values())
        certain = sum(pc.sum(table["certain"]).as_py() or 0 for table in ran.out.values())
        wrong = 0
        for name, table in ran.out.items():
            wrong += len(matches_of(table.filter(table["certain"])) - self.matches[name])
        found = {name: points_of(self.rules[False], name, table) for name, table in ran.out.items()}
        return Result(
            self.workload.name,
            policy,
            budget,
            ran.shed / max(ran.made, 1),
            certain / max(matches, 1),
            wrong,
            ran.steps / max(self.exact.steps, 1),
            self._recall(found, {}),
            self._recall(found, self.workload.worth),
        )

    def _recall(self, found: Mapping[str, set[int]], worth: Mapping[str, float]) -> float:
        """Of the rules that shed: others are exact, but for what they read."""
        names = self.known.names
        there = sum(worth.get(name, 1.0) * len(self.points[name] & found[name]) for name in names)
        return there / max(sum(worth.get(name, 1.0) * len(self.points[name]) for name in names), 1e-9)


def points_of(rules: RuleSet, name: str, table: pa.Table) -> set[int]:
    """The rows of the events that complete matches of a rule."""
    if "row" in table.column_names:
        return set(table["row"].to_pylist())
    own = next(rule for rule in rules.program.rules if rule.name == name)
    last = [atom.variable for atom in atoms(own.plan.query.pattern)][-1]
    return set(table[last].to_pylist())


def matches_of(table: pa.Table) -> set[tuple[Any, ...]]:
    """What matches bind, without the errors and starts that the exact run may have others of."""
    kept = [name for name in table.column_names if name not in ("certain", "errors", "start")]
    return set(zip(*(map(str, table[name].to_pylist()) for name in kept), strict=True))


def at_shed(measured: Measured, tries: int = TRIES) -> list[Result]:
    """For each of the shares the run in which about so much of the runs is shed, of all that were tried for any."""
    tried: list[Result] = []
    for shed in SHED:
        for _ in range(tries):
            if any(abs(one.shed - shed) <= NEAR * shed for one in tried):
                break
            low = max((one.budget for one in tried if one.shed > shed), default=LEAST)
            high = min((one.budget for one in tried if one.shed <= shed), default=MOST)
            tried.append(measured.run(SHARED, math.sqrt(low * high), in_steps=True))
    return [min(tried, key=lambda one: abs(one.shed - shed)) for shed in SHED]


def measure(measured: Measured, budgets: Sequence[float] = BUDGETS) -> Iterator[Result]:
    """Run a file of rules in all ways."""
    for budget in budgets:
        yield measured.run(SHARED, budget)
        if budget in RECALLS:
            for policy in (ALIKE, BY_WORTH, EQUAL, RANDOM):
                yield measured.run(policy, budget, weighted=policy == BY_WORTH)


def causes(workload: RuleWorkload, events: int) -> Table:
    """By rule why matches are not certain, with half of the work."""
    told = Causes()
    with told.noting():
        Measured(workload, events).run(ALIKE, 0.5)
    title = f"{workload.name}: half of the work"
    shown = Table("rule", "matches", "not certain", "by the last event alone", title=title)
    for rule, (matches, unsure, by_last) in told.by_rule.items():
        shown.add_row(rule, f"{matches:,}", f"{unsure:,}", f"{by_last:,}")
    return shown


def main() -> None:
    """Measure, print the tables, and keep the numbers."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="800 events, two budgets, few tries")
    parser.add_argument("--only", default="", help="names of files of rules, with commas")
    parser.add_argument("--events", type=int, default=EVENTS)
    parser.add_argument("--out", type=Path, help="write all numbers here, as JSON lines, as they come")
    parser.add_argument("--causes", action="store_true", help="why matches are not certain, rule by rule; nothing else")
    asked = parser.parse_args()
    names = asked.only.split(",") if asked.only else [one.name for one in RULE_WORKLOADS]
    events, budgets, tries = (800, (0.1, 0.9), 2) if asked.quick else (asked.events, BUDGETS, TRIES)
    console = Console(width=120)
    some = [one for one in RULE_WORKLOADS if one.name in names]
    told = tables(some, events, budgets, asked.out, tries)
    for table in (causes(one, events) for one in some) if asked.causes else told:
        console.print(table)


def tables(
    workloads: Iterable[RuleWorkload],
    events: int,
    budgets: Sequence[float] = BUDGETS,
    out: Path | None = None,
    tries: int = TRIES,
) -> Iterator[Table]:
    """What was done inside each budget, and how much was certain where so many runs were shed; to ``out``, too."""
    shown, summary = _shown(), _summary()
    for workload in workloads:
        measured = Measured(workload, events)
        results = [*measure(measured, budgets)]
        for one in results:
            shown.add_row(*_row(one))
        shown.add_section()
        shares = at_shed(measured, tries)
        results += shares
        if out is not None:
            with out.open("a", encoding="utf-8") as file:
                file.writelines(json.dumps({"part": "rules"} | asdict(one)) + "\n" for one in results)
        told = [f"{one.certain:.0%} ({one.shed:.1%} shed)" for one in shares]
        summary.add_row(workload.name, *told, str(sum(one.wrong for one in results)))
    yield shown
    yield summary


def _shown() -> Table:
    columns = ("rules", "budget", "spent by", "work", "runs shed", "certain", "wrong", "recall", "by worth")
    return Table(*columns, title="inside a budget")


def _row(one: Result) -> list[str]:
    shares = [f"{share:.1%}" for share in (one.work, one.shed, one.certain)]
    return [one.workload, f"{one.budget:.0%}", one.policy, *shares, str(one.wrong), f"{one.recall:.2f}",
            f"{one.weighted:.2f}"]  # fmt: skip


def _summary() -> Table:
    wanted = (f"{share:.0%} shed (wanted {WANTED[share]:.0%})" for share in SHED)
    return Table("rules", *wanted, "wrong", title="certain matches, where such a share of the runs is shed")


if __name__ == "__main__":
    main()
