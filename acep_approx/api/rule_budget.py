"""Rules inside a load budget: one budget for all rules of a file, what each spends of it, and what the past says."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import NoneType
from typing import Any

import numpy as np
import pyarrow as pa

from acep_approx.arguments import checked
from acep_approx.arrays import Ints
from acep_approx.budget.budget import Budget, refuse_without
from acep_approx.budget.rules_ledger import Doubt, RuleShare, RulesRecord
from acep_approx.diagrams.fragments import never_raises
from acep_approx.errors import UsageError, expect
from acep_approx.events.stream import EventBatch
from acep_approx.matching.pipeline import Pipeline
from acep_approx.planning.explain import section
from acep_approx.planning.planner import Plan
from acep_approx.ranges import COUNT, number_in
from acep_approx.results.budgeted_set import learned_by, logged_by, shared_record, shed_table_of, write_page_of
from acep_approx.results.match import named
from acep_approx.results.rules import without_budget
from acep_approx.rules.compiled import CompiledRule
from acep_approx.rules.graph import cell_words
from acep_approx.rules.losses import Taint, cells_read
from acep_approx.rules.program import Program
from acep_approx.rules.runner import Runner
from acep_approx.shedding.foreseen import Engine, of_engines
from acep_approx.shedding.load import OF_RULES, Load, full_work_unknown
from acep_approx.shedding.purse import LoggedShed, Purse
from acep_approx.shedding.shedder import Shedder
from acep_approx.training.histories import Histories, history_needed
from acep_approx.training.history_graph import HistoryGraph
from acep_approx.training.policies import LEARNED, no_history

CREDIT = 0.8
"""Which share of what a match point counts for goes to the writers of what it reads."""
WAYS_TO_SHED = ("protect", "alike")
HOW = ("policy", "audit", "seed", "learns", "full_work")
"""What a load says beside the budget."""
SPENDING = ("history", "policy", "audit", "seed", "learn", "full_work", "shed", "log_shed")
"""Arguments that say how a budget is spent."""


def _of_rule(number: int, slots: Ints) -> Ints:
    return np.full(len(slots), number)


def sheds(rule: CompiledRule) -> bool:
    """Whether a rule sheds inside a budget: the runs engine runs it."""
    return rule.plan.registers is not None


def plans_of(program: Program) -> dict[str, Plan]:
    """The plans of the rules that shed, by name: so their histories are known."""
    return {rule.name: rule.plan for rule in filter(sheds, program.rules)}


class ShownRulesRecord(RulesRecord):
    """A record that draws itself in a notebook."""

    @never_raises
    def _repr_html_(self) -> str:
        from acep_approx.results.views import shared_view

        return shared_view(self)


class RuleSpending:
    """Spends one load budget on all rules of a file.

    Parameters
    ----------
    load : Load
        ``history`` is not looked at.
    histories : Histories
        Known by the names of rules; may have none.
    shed : {"protect", "alike"}
        Whether match points of a rule also count for others that read what it writes.
    """

    def __init__(self, load: Load, histories: Histories, shed: str) -> None:
        self.load, self.histories, self.shed = load, histories, shed
        self._found: dict[str, list[int]] = {}
        self._made: dict[int, Shedder] = {}
        self._protected: set[int] = set()

    def check(self, program: Program) -> None:
        """Refuse what cannot be begun.

        Raises
        ------
        UsageError
            ``ACEP-U034``: a share of a work that nobody knows; ``ACEP-U032``: a policy that needs a history;
            ``ACEP-U001``: no such way to shed.
        """
        load = self.load
        if self.shed not in WAYS_TO_SHED:
            hint = "choose " + ", ".join(WAYS_TO_SHED)
            raise UsageError(f"there is no way {self.shed!r} to shed", code="ACEP-U001", hint=hint)
        if self.histories or not any(map(sheds, program.rules)):
            return
        if load.budget.unit == "%" and not load.budget.is_unlimited and load.full_work is None:
            raise full_work_unknown(load.budget, OF_RULES)
        if load.policy in LEARNED:
            raise no_history(load.policy)

    # --- what a run asks ----------------------------------------------------------------------------------------

    def begin(self, program: Program) -> dict[int, Shedder]:
        """Begin a run: the shedders of the rules that shed, by number."""
        self.purse = purse = Purse(self.load, self.histories)
        self.program, self._taint = program, Taint.of(program.graph)
        self._found = {rule.name: [0, 0] for rule in program.rules}
        read = {cell for rule in program.rules for cell in cells_read(rule, program.graph)}
        self._protected = program.graph.writers_of(read) if self.shed == "protect" else set()
        self._made = {}
        for rule in filter(sheds, program.rules):
            shedder = purse.shedder(rule.plan, rule.name, audits_beside=False)
            assert shedder is not None, "it can shed"
            shedder.looks_at = "reads" if self.load.learns else "nothing"
            self._made[rule.number] = shedder
        weights = self._weights(program)
        for number, shedder in self._made.items():
            purse.join(shedder, program.rules[number].name, weights[number])
        return self._made

    def explained(self, program: Program) -> list[str]:
        """How the rules will share it, in lines."""
        made = self.begin(program)
        accounts = self.purse.accounts
        engines = [
            Engine((rule := program.rules[number]).plan, rule.name, rule.name, accounts[shedder].weight)
            for number, shedder in made.items()
        ]
        lines = of_engines(Purse(self.load, self.histories), engines, "rules")
        if self._protected:
            names = ", ".join(program.rules[number].name for number in sorted(self._protected))
            lines.append(f"these count for more, as others read what they write: {names}")
        return [*section("budget", lines)]

    def _weights(self, program: Program) -> list[float]:
        """What a match point of each rule counts for: its worth; and that of others which read what it writes.

        Each match point of a reader hands on a share of what it counts for to the rules that shed and write what it
        reads, in equal parts for each of their match points: as many as the past had. Not within a circle: there all
        depend on one another.
        """
        worths = [rule.rule.worth for rule in program.rules]
        if self.shed != "protect":
            return worths
        points, writers = [*map(self._points, program.rules)], self._writers_outside(program)
        found = worths
        for _ in program.rules:  # as often as it can be handed on
            more = [0.0] * len(worths)
            for reader, some in enumerate(writers):
                total = sum(points[writer] for writer in some)
                for writer in some:
                    more[writer] += CREDIT * found[reader] * (points[reader] or total) / total
            found = [worth + handed for worth, handed in zip(worths, more, strict=True)]
        return found

    def _points(self, rule: CompiledRule) -> float:
        """The match points of a rule that sheds, in the past; where nobody knows all have as many; 0: of others."""
        if rule.number not in self._made:
            return 0.0
        known = self._made[rule.number].load.history
        return 1.0 if known is None else max(float(known.points_), 1.0)

    def _writers_outside(self, program: Program) -> list[list[int]]:
        """Per rule those that shed and write what it reads, but for those that also read what comes of it."""
        graph = program.graph
        direct = []
        for rule in program.rules:
            read = {one for one in cells_read(rule, graph) if one[1] or not graph.tables[one[0]].is_total}
            direct.append(graph.writers_of(read))
        before = [set(some) for some in direct]  # all that a rule depends on
        for _ in direct:
            before = [some.union(*(before[one] for one in some)) for some in before]
        return [
            sorted(writer for writer in some if writer in self._made and reader not in before[writer])
            for reader, some in enumerate(direct)
        ]

    def pieces(self, batch: EventBatch) -> Iterator[EventBatch]:
        """The parts of a batch between which the budget moves."""
        return self.purse.pieces(batch)

    @property
    def on_reads(self) -> Callable[[str, EventBatch], None] | None:
        """Where it learns: is told, rule by rule, a batch with what its events have read of tables."""
        return self._show if self.load.learns else None

    def _show(self, rule: str, batch: EventBatch) -> None:
        number = next(one.number for one in self.program.rules if one.name == rule)
        if number in self._made:
            self._made[number].show(batch)

    def note(self, rule: str, results: pa.Table) -> None:
        """These results of a rule were put out."""
        count = self._found[rule]
        count[0] += results.num_rows
        certain = results.column("certain")
        count[1] += sum(chunk.true_count for chunk in certain.chunks)

    def done(self) -> None:
        """A batch is done: who runs without end does not remember all match points."""
        for shedder in self._made.values():
            shedder.forget()

    # --- state --------------------------------------------------------------------------------------------------

    def snapshot(self) -> dict[str, Any]:
        """Where the budget stands, as JSON."""
        return {"purse": self.purse.snapshot(), "found": self._found}

    def restore(self, saved: dict[str, Any]) -> None:
        """Go on from what ``snapshot`` gave, once all engines were restored."""
        self.purse.restore(saved["purse"])
        self.purse.restored()
        self._found = {name: [number_in("found", n, 0, COUNT) for n in saved["found"][name]] for name in self._found}

    def options(self) -> dict[str, Any]:
        """What the run was begun with, as JSON."""
        load = self.load
        own = {name: getattr(load, name) for name in HOW}
        own |= {"shed": self.shed, "has_history": bool(self.histories), "log_shed": load.logs_shed}
        return {**own, "budget": str(load.budget)}

    # --- what came of it ----------------------------------------------------------------------------------------

    def take_log(self, pipelines: Mapping[int, Pipeline]) -> None:
        """Take what was written down of runs that were shed, while their keys are known."""
        for number, shedder in self._made.items() if self.load.logs_shed else ():
            self.purse.take_log(shedder, pipelines[number], partial(_of_rule, number))

    def shed_runs(self) -> pa.Table:
        """The runs that were shed, one row each, with their rule (``ACEP-U039``: they were not written down)."""
        return shed_table_of(self._begun, "rule", lambda number: self.program.rules[number].name)

    def logged(self, rule: str) -> list[LoggedShed]:
        """The runs of a rule that were shed.

        Raises
        ------
        UsageError
            ``ACEP-U039``: they were not written down.
        UnknownNameError
            ``ACEP-U160``: there is no such rule.
        """
        number = named({one.name: one.number for one in self.program.rules}, rule, "rule")
        return [one for one in logged_by(self._begun) if (one.whose == number).any()]

    @property
    def _begun(self) -> Purse:
        return self.purse if hasattr(self, "purse") else Purse(self.load)

    def record(self, events: int, source: str = "", *, is_time: bool = False) -> RulesRecord:
        """What the rules did so far."""
        told = shared_record(self._begun) | {"policy": self._policy, "source": source, "is_time": is_time}
        *before, last = told["pieces"]
        told |= {"pieces": [*before, replace(last, events=events)]}
        rules = self.program.rules if hasattr(self, "purse") else ()
        return ShownRulesRecord(**told, rules=tuple(map(self._share, rules)))

    @property
    def _policy(self) -> str:
        return Purse(self.load, self.histories).policy_words

    def _share(self, rule: CompiledRule) -> RuleShare:
        matches, certain = self._found[rule.name]
        protected = rule.number in self._protected and sheds(rule)
        share = RuleShare(rule.name, sheds(rule), rule.rule.worth, protected, matches=matches, certain=certain)
        share = replace(share, doubts=self._doubts(rule))
        shedder = self._made.get(rule.number)
        if shedder is None or not shedder.metrics.pieces:
            return share
        where = shedder.metrics.pieces[-1]
        return replace(
            share,
            work=int(where.work),
            allowed=int(where.bound),
            live=where.live,
            runs_shed=where.shed,
            untested=shedder.arena.untested,
            recall=shedder.recall(),
        )


    def _doubts(self, rule: CompiledRule) -> tuple[Doubt, ...]:
        """What a rule reads that rules write which may have missed matches."""
        graph, names = self.program.graph, [one.name for one in self.program.rules]
        by_writers: dict[tuple[int, ...], list[str]] = {}
        for cell in sorted(cells_read(rule, graph) & self._taint.cells, reverse=True):  # columns before the rows
            writers = tuple(sorted(graph.writers_of({cell}) & self._taint.rules))
            by_writers.setdefault(writers, []).append(cell_words(cell))
        return tuple(Doubt(" and ".join(what), [names[n] for n in some]) for some, what in by_writers.items())


class SpendingRun:
    """The part of ``RuleRun`` that is about load budgets."""

    _runner: Runner

    def record(self, source: str = "") -> RulesRecord | None:
        """What was done inside a load budget: work against the bound, what each rule shed, and how much is certain.

        None without a budget. ``source`` is the name of the input, for people.
        """
        if self._runner.execution.spending is None:
            return None
        execution = self._runner.execution
        is_time = execution.bound is not None and execution.bound.is_time
        return self.spending.record(execution.counters.events, source, is_time=is_time)

    @property
    def spending(self) -> RuleSpending:
        """How the load budget is spent (``ACEP-U040``: there is none)."""
        spending = self._runner.execution.spending
        if not isinstance(spending, RuleSpending):
            raise without_budget("what was shed")
        return spending

    def shed(self) -> pa.Table:
        """The partial matches that were dropped, one row each, with the ``rule``; see ``BudgetedMatches.shed``.

        Raises
        ------
        UsageError
            ``ACEP-U039``: they were not asked for with ``log_shed=True``; ``ACEP-U040``: there is no budget.
        """
        return self.spending.shed_runs()

    @checked
    def report(self, path: str | Path, source: str = "") -> None:
        """Write ``record()`` as one self-contained HTML page.

        Raises
        ------
        UsageError
            ``ACEP-U040``: there is no budget; ``ACEP-U012``: it cannot be written.
        """
        record = self.record(source)
        if record is None:
            raise without_budget("report()")
        write_page_of(record, path)

    def refreshed(self) -> Histories | None:
        """The histories of the rules as they were learned up to now, where ``learn=True`` was given.

        None as long as nothing was learned. ``save`` keeps them; ``start(history=...)`` takes them.
        """
        purse = self.purse
        return None if purse is None else purse.refreshed()

    def learning(self) -> pa.Table:
        """When runs were scored anew, and by what: one row each time, with the ``rule``.

        See ``BudgetedMatches.learning``. Without rows where nothing was learned.
        """
        purse, bound = self.purse, self._runner.execution.bound
        is_time = bound is not None and bound.is_time
        return learned_by({} if purse is None else dict(purse.learning), "rule", is_time=is_time)

    @property
    def purse(self) -> Purse | None:
        """The load budget at work; None without one, and before the first event."""
        spending = self._runner.execution.spending
        return getattr(spending, "purse", None)


Known = Mapping[str, HistoryGraph] | Histories | str | Path | None
"""Histories by rule, or the folder that has them."""


def spending_of(program: Program, budget: str | float | Budget | None, more: dict[str, Any]) -> RuleSpending | None:
    """How a run of rules spends a budget; None without one. What is about that is taken out of ``more``.

    Raises
    ------
    UsageError
        ``ACEP-U030`` to ``ACEP-U050``: not a budget, or how it is spent, without one.
    """
    given = {name: more.pop(name) for name in SPENDING if name in more}
    if budget is None:
        refuse_without(given)
        return None
    history, shed = given.pop("history", None), given.pop("shed", "protect")
    expect("shed", shed, str, ", ".join(WAYS_TO_SHED))
    expect("learn", given.setdefault("learn", False), bool, "True or False")
    given["learns"] = given.pop("learn")
    logs = bool(given.pop("log_shed", False))
    made = RuleSpending(Load(Budget.parse(budget), logs_shed=logs, **given), known_of(history, program), shed)
    made.check(program)
    return made


def known_of(history: Known, program: Program) -> Histories:
    """The histories that were given, or that stand in a folder.

    Raises
    ------
    HistoryError
        No rule has one there (``ACEP-H001``), or one is of another query (``ACEP-H002``).
    """
    expect("history", history, (Mapping, Histories, str, Path, NoneType), "a RuleHistory, or the path of one")
    if isinstance(history, str | Path):
        return Histories(folder=history).read(plans_of(program))
    return history if isinstance(history, Histories) else Histories(history)


def taken_up(program: Program, options: dict[str, Any] | None, history: Known) -> RuleSpending | None:
    """How a run spends its budget that goes on from a state; ``options`` are those of ``RuleSpending.options``.

    Raises
    ------
    DataError
        ``ACEP-D048``: it needs its history.
    """
    if options is None:
        return None
    if options["has_history"] and history is None:
        raise history_needed()
    how = {name: options[name] for name in HOW if name in options}  # states of before do not know all
    how["logs_shed"] = options.get("log_shed", False)
    return RuleSpending(Load(Budget.parse(options["budget"]), **how), known_of(history, program), options["shed"])
