"""Rules inside a load budget: one budget for all rules of a file, what each spends of it, and what the past says."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import NoneType
from typing import Any

import pyarrow as pa

from acep_approx.budget.audit import RecallEstimate
from acep_approx.budget.budget import Budget, refuse_without
from acep_approx.errors import DataError, UsageError, expect
from acep_approx.events.stream import EventBatch
from acep_approx.planning.compiled import CompiledQuery
from acep_approx.ranges import COUNT, number_in
from acep_approx.rules.compiled import CompiledRule
from acep_approx.rules.losses import cells_read
from acep_approx.rules.program import Program
from acep_approx.shedding.load import Load, full_work_unknown
from acep_approx.shedding.purse import Purse
from acep_approx.shedding.shedder import Shedder
from acep_approx.training.histories import Histories
from acep_approx.training.history_graph import HistoryGraph
from acep_approx.training.policies import LEARNED, no_history
from history.store import is_history

PROTECTED = 1000.0
"""What a match point counts for, beside those of others, of a rule that writes what some rule reads."""
WAYS_TO_SHED = ("protect", "alike")
HOW = ("policy", "audit", "seed", "learns", "full_work")
"""What a load says beside the budget."""
SPENDING = ("history", "policy", "audit", "seed", "learn", "full_work", "shed")
"""Arguments that say how a budget is spent."""


def sheds(rule: CompiledRule) -> bool:
    """Whether a rule sheds inside a budget: the runs engine runs it."""
    return rule.plan.registers is not None


@dataclass(frozen=True)
class RuleShare:
    """What one rule did inside a budget.

    Attributes
    ----------
    name : str
    sheds : bool
        False: it is answered without runs, and sheds nothing.
    worth : float
        What a match of it counts.
    protected : bool
        Whether it gets of the budget what it needs before others do.
    work, allowed, live, runs_shed, untested : int
        Run-steps done and allowed, live runs, runs shed, and tests left out.
    matches, certain : int
        Rows of its results, and those called certain.
    recall : RecallEstimate or None
        Of its match points, with the tables as they stood in this run; None without an audit.
    """

    name: str
    sheds: bool
    worth: float
    protected: bool
    work: int = 0
    allowed: int = 0
    live: int = 0
    runs_shed: int = 0
    untested: int = 0
    matches: int = 0
    certain: int = 0
    recall: RecallEstimate | None = None


@dataclass(frozen=True)
class RulesRecord:
    """What rules did inside a budget.

    Attributes
    ----------
    budget, policy : str
    events : int
    work, allowed : int
        Run-steps done and allowed, of all rules together.
    rules : tuple of RuleShare
        In the order of the file.
    """

    budget: str
    policy: str
    events: int
    work: int
    allowed: int
    rules: tuple[RuleShare, ...]

    @property
    def runs_shed(self) -> int:
        """Runs shed, of all rules."""
        return sum(one.runs_shed for one in self.rules)

    @property
    def certain(self) -> float | None:
        """Share of the matches that are certain; None where there are none."""
        matches = sum(one.matches for one in self.rules)
        return sum(one.certain for one in self.rules) / matches if matches else None

    def __repr__(self) -> str:
        share = "" if self.certain is None else f", {self.certain:.0%} of the matches are certain"
        work = f"{self.work:,} of {self.allowed:,} run-steps, {self.runs_shed:,} runs shed"
        return f"<RulesRecord under a budget of {self.budget}: {work}{share}>"


class RuleSpending:
    """Spends one load budget on all rules of a file.

    Parameters
    ----------
    load : Load
        ``history`` is not looked at.
    histories : mapping of str to HistoryGraph
        By rule; may have none.
    shed : {"protect", "alike"}
        Whether rules that write what some rule reads get first what they need.

    Attributes
    ----------
    purse : Purse or None
        Shares the budget; None before a run begins.
    """

    def __init__(self, load: Load, histories: Mapping[str, HistoryGraph], shed: str) -> None:
        self.load, self.histories, self.shed = load, histories, shed
        self.purse: Purse | None = None
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
            raise full_work_unknown(load.budget)
        if load.policy in LEARNED:
            raise no_history(load.policy)

    # --- what a run asks ----------------------------------------------------------------------------------------

    def begin(self, program: Program) -> dict[int, Shedder]:
        """Begin a run: the shedders of the rules that shed, by number."""
        self.purse = purse = Purse(self.load, Histories(self.histories))
        self.program = program
        self._found = {rule.name: [0, 0] for rule in program.rules}
        self._protected = self._to_spare(program)
        self._made = {}
        for rule in filter(sheds, program.rules):
            shedder = purse.shedder(rule.plan, rule.name, audits_beside=False)
            assert shedder is not None, "it can shed"
            shedder.looks_at = "reads" if self.load.learns else "nothing"
            self._made[rule.number] = shedder
        for number, shedder in self._made.items():
            first = PROTECTED if number in self._protected else 1.0
            purse.join(shedder, program.rules[number].name, program.rules[number].rule.worth * first)
        return self._made

    def _to_spare(self, program: Program) -> set[int]:
        """The rules that write what some rule reads, if these are to be spared."""
        if self.shed != "protect":
            return set()
        read = {cell for rule in program.rules for cell in cells_read(rule, program.graph)}
        return program.graph.writers_of(read)

    def pieces(self, batch: EventBatch) -> Iterator[EventBatch]:
        """The parts of a batch between which the budget moves."""
        assert self.purse is not None, "it has begun"
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
        assert self.purse is not None, "it has begun"
        return {"purse": self.purse.snapshot(), "found": self._found}

    def restore(self, saved: dict[str, Any]) -> None:
        """Go on from what ``snapshot`` gave, once all engines were restored."""
        assert self.purse is not None, "it has begun"
        self.purse.restore(saved["purse"])
        self.purse.restored()
        self._found = {name: [number_in("found", n, 0, COUNT) for n in saved["found"][name]] for name in self._found}

    def options(self) -> dict[str, Any]:
        """What the run was begun with, as JSON."""
        load = self.load
        own = {name: getattr(load, name) for name in HOW}
        return {**own, "budget": str(load.budget), "shed": self.shed, "has_history": bool(self.histories)}

    # --- what came of it ----------------------------------------------------------------------------------------

    def record(self, events: int) -> RulesRecord:
        """What the rules did so far."""
        if self.purse is None:
            return RulesRecord(str(self.load.budget), self._policy, events, 0, 0, ())
        where = self.purse.piece() if self._made else None
        shares = tuple(self._share(rule) for rule in self.program.rules)
        work, allowed = (0, 0) if where is None else (where.work, where.bound)
        return RulesRecord(str(self.load.budget), self._policy, events, work, allowed, shares)

    @property
    def _policy(self) -> str:
        return Purse(self.load, Histories(self.histories)).policy_words

    def _share(self, rule: CompiledRule) -> RuleShare:
        matches, certain = self._found[rule.name]
        protected = rule.number in self._protected and sheds(rule)
        share = RuleShare(rule.name, sheds(rule), rule.rule.worth, protected, matches=matches, certain=certain)
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
    made = RuleSpending(Load(Budget.parse(budget), **given), known_of(history, program), shed)
    made.check(program)
    return made


def known_of(history: Known, program: Program) -> Mapping[str, HistoryGraph]:
    """The histories that were given, or that stand in a folder.

    Raises
    ------
    HistoryError
        No rule has one there (``ACEP-H001``), or one is of another query (``ACEP-H002``).
    """
    expect("history", history, (Mapping, Histories, str, Path, NoneType), "a RuleHistory, or the path of one")
    if isinstance(history, Histories):
        found = {rule.name: history.of(rule.plan, rule.name) for rule in filter(sheds, program.rules)}
        return {name: known for name, known in found.items() if known is not None}
    if isinstance(history, str | Path):
        own = [(one, Path(history) / one.name) for one in filter(sheds, program.rules)]
        there = [pair for pair in own if is_history(pair[1])] or own[:1]
        return {one.name: HistoryGraph.load(place, CompiledQuery(one.plan)) for one, place in there}
    return history or {}


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
        raise DataError(
            "the state is of a run with a history, which is not in it",
            code="ACEP-D048",
            hint="give the history too: from_state(state, history=...); a later version of it will do",
        )
    how = {name: options[name] for name in HOW if name in options}  # states of before do not know all
    return RuleSpending(Load(Budget.parse(options["budget"]), **how), known_of(history, program), options["shed"])
