"""A budget that several engines of one run share: one price for all of them, and never more than all of it.

What the stream grants at an event is divided among the engines when it comes; each stays inside its part, so that the
work of all of them is at every event at most what was granted. Between pieces of the stream parts move towards one
price, in match points per run-step times the weight of an engine (``splitting``, where engines are shards), and what is
saved up is shared out again. So what one engine leaves unused comes to those that run short.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pyarrow as pa

from acep_approx.arrays import Bools, Floats, Ints
from acep_approx.budget.budget import Budget
from acep_approx.budget.ledger import Piece
from acep_approx.events.stream import EventBatch
from acep_approx.kernels.runs.scores import LOG_SLOT
from acep_approx.planning.changed import until
from acep_approx.ranges import COUNT, TICK, finite, number_in
from acep_approx.shedding.accounts import Account
from acep_approx.shedding.load import OF_SET, Load, full_work_unknown
from acep_approx.shedding.metrics import shed_table, windows_of_slots
from acep_approx.shedding.refreshed import refreshed
from acep_approx.shedding.shedder import Shedder
from acep_approx.shedding.splitting import ALMOST_ALL, ROOM, Need, towards_one_price
from acep_approx.training.histories import Histories, check_same

if TYPE_CHECKING:
    from acep_approx.learning.online import Observer, OnlineLearning
    from acep_approx.matching.pipeline import Pipeline
    from acep_approx.planning.planner import Plan
    from acep_approx.training.history_graph import HistoryGraph

FIRST_MOVE, OFTEN, PART, MOST_EVENTS = 64, 1024, 16, 8192
"""Events after which parts move for the first time, and then twice as many each time: up to ``OFTEN``, or a part of all
so far, if that is more, and never more than ``MOST_EVENTS``. Each move takes about a millisecond for each engine."""
STEPS_AHEAD = 30
"""Moves that are made before the first event, as far as histories know the prices."""
LEAST_TIMES, MOST_TIMES = 0.125, 2.0
"""By how much all parts are multiplied at least, and at most, so that no more is granted than is stated."""
MORE_STEPS = 4
"""Moves that are made at once where the past says how match points grow with the work."""
MOST_PIECES = 512
"""Pieces of the stream that are remembered; where there are more, every other one."""
SHORT = 4
"""A last piece that has so many times fewer events than others have is a part of the one before it."""
LEAST_PART = 0.1
"""Of what its own work is entitled to, that each engine has in any case: so it is seen when it finds more."""
LEAST_AMOUNT = 1e-9
"""What an engine has at least of a budget: none is nothing."""


@dataclass(frozen=True, eq=False)
class LoggedShed:
    """Runs of an engine that were shed, as they were written down.

    Attributes
    ----------
    shedder : Shedder
    name : str
        The engine, for people.
    weight : float
        What a match point of the engine counts for.
    table : pyarrow.Table
        See ``metrics.shed_table``.
    windows : int64 array
        Of the query of each run, in ticks.
    whose : int64 array
        The number of the query, or rule, of each run; -1 where several share it.
    """

    shedder: Shedder
    name: str
    weight: float
    table: pa.Table
    windows: Ints
    whose: Ints

    def where(self, is_wanted: Bools) -> Self:
        """Some of the runs."""
        rows = np.flatnonzero(is_wanted)
        table = self.table.take(pa.array(rows))
        return replace(self, table=table, windows=self.windows[rows], whose=self.whose[rows])


class Purse:
    """Shares a load budget among the engines of a run, which come and go.

    Parameters
    ----------
    load : Load
        The budget of all of them, and how it is spent; ``history`` is not looked at, as each engine has its own.
    histories : Histories, optional
        What was learned from the past of each engine.
    observers : callable, optional
        Gives what samples the tests of an engine, told what it is known by, for a learner that is elsewhere. Engines
        that cannot be observed learn by themselves: see ``can_be_observed``.

    Attributes
    ----------
    accounts : dict of Shedder to Account
        Of the engines that take part now.
    logged : list of LoggedShed
        Runs that were shed, where they are written down.
    begin : int or None
        Tick of the first event.

    Examples
    --------
    >>> from acep_approx import compile_query
    >>> purse = Purse(Load(Budget.parse("100 steps/event")))
    >>> plan = compile_query("PATTERN SEQ(A a, B b) WHERE b.x > a.x WITHIN 9").plan
    >>> some, others = purse.shedder(plan), purse.shedder(plan)
    >>> purse.join(some, "some")
    >>> purse.join(others, "others", weight=3.0)
    >>> purse.settle()
    >>> [str(one.load.budget) for one in purse.accounts]
    ['25 steps/event', '75 steps/event']
    """

    shedder_of = Shedder
    nothing = Piece(0, 0, 0, 0, 0, 0.0, 0, 0)
    """Where an engine stands before its first event."""

    def __init__(
        self, load: Load, histories: Histories | None = None, observers: Callable[[str], Observer] | None = None
    ) -> None:
        self.load, self.histories, self._observers = load, histories, observers
        self.logged: list[LoggedShed] = []
        self.begin: int | None = None
        self.accounts: dict[Shedder, Account] = {}
        self._left = self.nothing  # what engines have done that are gone
        self._due, self._next = FIRST_MOVE, FIRST_MOVE
        self._passed = 0  # events so far
        self._pieces: list[Piece] = []
        self._between, self._since = 1, 0  # events between two pieces that are remembered, and since the last one
        self._is_restored = self._is_changed = self._will_change = False
        self._times_owed = 1.0  # by which all parts are multiplied, so that what is granted is what is stated
        self._coming = 0  # events that run next
        self._share_in_time: float | None = None  # what a budget of time is of the work of all engines
        self._histories: dict[str, Any] = {}  # those of the state that it goes on from

    # --- engines --------------------------------------------------------------------------------------------

    def check(self, plans: Iterable[Plan]) -> None:
        """Refuse, before anything is read, what the budget cannot be spent on.

        Raises
        ------
        UsageError
            ``ACEP-U034``: a share of a full work that nobody knows; ``ACEP-U032``: a policy that needs a history;
            ``ACEP-U073``: runs that never end.
        """
        knows = self.load.full_work is not None or self.histories is not None
        known = {name.partition("-")[0] for name in self.histories or ()}  # each query of a template has its window
        for plan in plans:
            is_known = plan.fingerprint() in known
            own = replace(self.load, full_work=1.0) if knows else self.load
            self._refuse_unbounded(plan)
            if not is_known:
                own.check(plan, OF_SET)

    def plan_of(self, plan: Plan, horizon: str | None) -> Plan:
        """What is run of the plan of a query that may have a horizon: see ``Load.plan_of``."""
        return plan if self.is_exact else until(plan, horizon)

    def _refuse_unbounded(self, plan: Plan) -> None:
        if not self.is_exact:
            plan.refuse_unbounded("a load budget")

    @property
    def is_exact(self) -> bool:
        """Whether all of the work is done, also for partial matches that never end."""
        return self.load.budget.is_unlimited

    def shedder(
        self, plan: Plan, known_as: str | None = None, *, audits_beside: bool = True, is_of_pairs: bool = False
    ) -> Shedder | None:
        """What the engine of a plan sheds with; it has a part of the budget from ``join`` on.

        See ``SharedLoad.shedder``.

        Raises
        ------
        UsageError
            ``ACEP-U073``: runs that never end.
        """
        if plan.registers is None:
            return None
        self._refuse_unbounded(plan)
        name = known_as or plan.known_as
        history = None if self.histories is None else self.histories.of(plan, name)
        own = replace(self.load, history=history, full_work=None)
        if own.budget.unit == "%" and history is None:
            own = replace(own, full_work=1.0)  # it is told more when it joins
        looks_at = "pairs" if is_of_pairs else "events" if audits_beside else "nothing"
        if self._observers is not None and can_be_observed(plan, looks_at):
            made = Shedder(plan, replace(own, learns=False), self._observers(name))
        else:
            made = self.shedder_of(plan, own, audits_beside=audits_beside)
        made.known_as, made.looks_at = name, looks_at
        made.charges_births, made.keeps_metrics, made.before_batch = is_of_pairs, True, self.settle
        return made

    def join(
        self, shedder: Shedder, name: str = "", weight: float | Floats = 1.0, instead_of: Shedder | None = None
    ) -> None:
        """Let an engine have a part of the budget, before its next event; or change what its match points count for.

        Parameters
        ----------
        shedder : Shedder
        name : str
            For people.
        weight : float or float64 array, default 1
            What a match point of it counts for, beside those of other engines; of many queries that of each.
        instead_of : Shedder, optional
            An engine whose part it gets; that one leaves.

        Raises
        ------
        UsageError
            ``ACEP-U034``: a share of a full work that no history knows of any engine.
        """
        weights = np.atleast_1d(np.asarray(weight, np.float64))
        if shedder in self.accounts:
            self.accounts[shedder].weigh(weights)
            return
        budget = self.load.budget
        if budget.unit == "%" and not budget.is_unlimited and self.load.full_work is None and not self.histories:
            raise full_work_unknown(budget, OF_SET)  # of some is enough: for others it is about the same
        self._is_changed = not self._is_restored
        if instead_of is not None and instead_of in self.accounts:
            shedder.part = instead_of.part
            shedder.take(instead_of.load.budget, instead_of.load.full_work)
            self.leave(instead_of)
        self.accounts[shedder] = Account(shedder, name, weights, shedder.part)
        if self._is_restored:
            self._check_history(self.accounts[shedder])

    def settle(self) -> None:
        """Tell all engines their parts, if some have come or gone; engines ask for that before each batch."""
        if not self._is_changed:
            return
        self._is_changed = False
        self._know_sizes()
        if not any(one.metrics.pieces for one in self.accounts):
            self._foresee()
        self._tell()

    def leave(self, shedder: Shedder) -> None:
        """Let an engine have no part any more; what it saved up is for the others."""
        gone = self.accounts.pop(shedder, None)
        if gone is None or self._is_restored:
            return
        if gone.piece is not None:
            shedder.finish()
            self._left = added([self._left, replace(gone.piece, live=0)])
        if self._shares_tokens and self.accounts:
            spare = max(shedder.arena.tokens, 0.0)
            shedder.arena.hand_over(spare)
            self._left = replace(self._left, bound=self._left.bound - math.ceil(spare))
            rest = math.floor(spare) / len(self.accounts)
            for one in self.accounts:
                one.arena.hand_over(-rest)
        self._is_changed = True

    # --- the stream -----------------------------------------------------------------------------------------

    def pieces(self, batch: EventBatch) -> Iterator[EventBatch]:
        """The parts of a batch between which budgets move, each to be run before the next is asked for.

        A part ends with the last event of a time. Where they are cut depends on the stream, not on its batches.
        """
        first = 0
        while first < len(batch):
            last = len(batch)
            if self._is_cut and self._due < last - first:
                tick = batch.ticks[first + self._due - 1]
                last = first + int(np.searchsorted(batch.ticks[first:], tick, side="right"))
            part = batch.slice(first, last - first)
            if self.load.budget.needs_clock:
                self._coming = len(part)
                self.settle()
                self._tell()
            yield part
            self._note(part)
            self.passed(last - first)
            first = last

    @property
    def _is_cut(self) -> bool:
        """Whether batches are cut: not where a budget is one of each batch, or of one engine."""
        return len(self.accounts) > 1 and self.load.budget.unit != "ms/batch"

    def _note(self, part: EventBatch) -> None:
        """Remember where all engines together stand behind a part of the stream, unless that was done just before."""
        if self.begin is None:
            self.begin = int(part.ticks[0])
        self._since += len(part)
        if self._since < self._between:
            return
        self._since = 0
        self._pieces.append(replace(self.piece(), tick=int(part.ticks[-1])))
        if len(self._pieces) > MOST_PIECES:
            self._pieces, self._between = self._pieces[1::2], 2 * max(self._between, len(part))

    def passed(self, events: int) -> None:
        """So many events have passed: let parts move where it is time."""
        self._due -= events
        self._passed += events
        if self._due <= 0:
            self._next = min(2 * self._next, max(self._passed // PART, OFTEN), MOST_EVENTS)
            self._due = self._next
            self.move()

    def move(self) -> None:
        """Move the parts a step towards one price, and share out what is saved up."""
        accounts = self._in_order()
        if len(accounts) > 1 and not self.load.budget.is_unlimited:
            self._know_sizes()
            self._move(accounts, [self._need(one) for one in accounts])
            self._look_ahead(accounts, MORE_STEPS)
            if self._shares_tokens:
                self._square()
            self._tell()
            if self._shares_tokens:
                self._share_tokens(accounts)
        for one in accounts:
            one.shedder.stood = self._stands(one)

    def _in_order(self) -> list[Account]:
        """The accounts in an order that does not depend on who came first, as sums of fractions do."""
        return sorted(self.accounts.values(), key=lambda one: (one.shedder.plan.fingerprint(), one.weight, one.part))

    def _stands(self, one: Account) -> tuple[float, float, int]:
        piece = one.piece
        return (0.0, 0.0, 0) if piece is None else (piece.work, piece.bound, piece.shed)

    def _need(self, one: Account) -> Need:
        """What came of an engine since parts moved last; where prices are not learned, by its weight alone."""
        (work, granted, shed), (work_then, granted_then, shed_then) = self._stands(one), one.shedder.stood
        price = one.weight / one.part
        if self._all_learned:  # before all have histories, prices are what was learned on the way
            price = one.weight * one.shedder.arena.usual_price
            if self._have_histories:
                price = one.marginal(_share_taken(one))
        done, bound = work - work_then, granted - granted_then
        price *= shed > shed_then or ROOM * done > bound  # pairs are not even tried where nothing is left
        return Need(one.size, one.part, done, bound, price)

    def _move(self, accounts: Sequence[Account], needs: Sequence[Need]) -> None:
        sizes = _sizes(accounts)
        parts = towards_one_price([one.part for one in accounts], needs, sizes, LEAST_PART)
        if self._share is not None:
            parts = at_most(ALMOST_ALL / 100 / self._share, parts, sizes)
        for one, part in zip(accounts, parts.tolist(), strict=True):
            one.part = one.shedder.part = part

    def _foresee(self) -> None:
        """Let parts begin where histories say that prices are one; where nobody knows, by weights."""
        accounts = self._in_order()
        if not accounts:
            return
        mean = math.fsum(one.weight * one.size for one in accounts) / math.fsum(one.size for one in accounts)
        for one in accounts:
            one.part = one.shedder.part = one.weight / mean
        self._look_ahead(accounts, STEPS_AHEAD)

    def _look_ahead(self, accounts: Sequence[Account], moves: int) -> None:
        """Make some moves by what histories say of parts, where all engines have one."""
        share = self._share
        if share is None or not (self._all_learned and self._have_histories):
            return
        for _ in range(moves):
            self._move(accounts, [_foreseen(one, share) for one in accounts])

    @property
    def _all_learned(self) -> bool:
        """Whether all prices are in match points per run-step."""
        return all(one.price_is_learned for one in self.accounts)

    @property
    def _have_histories(self) -> bool:
        return all(one.load.history is not None for one in self.accounts)

    # --- parts ----------------------------------------------------------------------------------------------

    @property
    def _share(self) -> float | None:
        """What share of the work of all engines the budget is; None where nobody knows."""
        budget, total = self.load.budget, _total(self.accounts.values())
        if budget.needs_clock:
            return self._share_in_time
        if budget.unit == "%":
            return min(budget.amount / 100, 1.0)
        return min(budget.amount / total, 1.0) if budget.unit == "steps/event" and total else None

    def _know_sizes(self) -> None:
        """Find out what exact runs take: as events tell, or histories, or as was given for all; else all are alike."""
        accounts, given = list(self.accounts.values()), self.load.full_work
        found = [one for one in accounts if one.shedder.load.history is not None]
        for one in found:
            one.size = max(one.expected or 0.0, LEAST_AMOUNT)
        others = [one for one in accounts if one.shedder.load.history is None]
        rest = math.fsum(one.size for one in found) / len(found) if found else 1.0
        for one in others:
            one.size = rest
        if given is not None and accounts:
            times = given / math.fsum(one.size for one in accounts)
            for one in accounts:
                one.size *= times

    def _tell(self) -> None:
        """Tell each engine its part of the budget."""
        accounts = self._in_order()
        if self.load.budget.is_unlimited or not accounts:
            return
        shares = _sizes(accounts) * [one.part for one in accounts]
        shares /= math.fsum(shares)
        amounts = self._amounts(accounts, shares)
        for one, amount in zip(accounts, amounts, strict=True):
            is_known = self.load.full_work is None and one.shedder.load.history is not None
            full_work = one.size if self.load.budget.unit == "%" and not is_known else None
            one.shedder.take(Budget(max(amount, LEAST_AMOUNT), self.load.budget.unit), full_work)

    def _amounts(self, accounts: Sequence[Account], shares: Floats) -> list[float]:
        amount, unit = self.load.budget.amount, self.load.budget.unit
        if unit == "%":
            amount *= self._times_owed
            return [min(amount * one.part, ALMOST_ALL) for one in accounts]
        if self.load.budget.needs_clock:
            return self._times(accounts, shares)
        if unit == "runs":
            return self._runs(accounts, np.floor(amount * shares))
        return [amount * share for share in shares.tolist()]

    def _times(self, accounts: Sequence[Account], shares: Floats) -> list[float]:
        """Of a time: first what events take in each engine, whatever is shed there. No engine can do without that.

        What is left of it is for run-steps, and is divided. Were all of it, engines with small parts would have none
        for a single run-step, and what others have beyond their work would be lost.
        """
        budget, events = self.load.budget, self._coming
        seconds = budget.amount / 1e3
        if budget.unit == "events/s":
            seconds, events = 1 / budget.amount, 1
        clocks = [one.shedder.clock for one in accounts]
        in_any_case = events * np.array([clock.event_seconds for clock in clocks])
        a_step = np.array([clock.step_seconds for clock in clocks])
        taken = float(in_any_case.sum())
        if taken < seconds:
            work = events * float(_sizes(accounts) @ a_step)
            self._share_in_time = min((seconds - taken) / work, 1.0) if work > 0 else None
            parts = in_any_case + (seconds - taken) * shares * a_step / float(shares @ a_step)
        else:
            parts = in_any_case * (seconds / taken)
        amounts: Floats = parts * 1e3 if budget.unit == "ms/batch" else 1 / np.maximum(parts, LEAST_AMOUNT)
        told: list[float] = amounts.tolist()
        return told

    def _runs(self, accounts: Sequence[Account], wanted: Floats) -> list[float]:
        """Of live runs nobody gets those that another one still has."""
        live = np.array([0 if one.piece is None else one.piece.live for one in accounts])
        before = np.array([one.shedder.load.budget.amount if one.piece else math.inf for one in accounts])
        held = np.maximum(wanted, np.minimum(live, before))
        spare = max(self.load.budget.amount - held[wanted <= before].sum(), 0.0)
        raised = wanted > before
        times = min(spare / max(float(wanted[raised].sum()), 1.0), 1.0)
        return [float(v) for v in np.where(raised, np.maximum(np.floor(times * wanted), 0.0), wanted)]

    @property
    def _shares_tokens(self) -> bool:
        budget = self.load.budget
        return budget.unit in ("%", "steps/event") and not budget.is_unlimited

    def _square(self) -> None:
        """Let all that was granted be the share of the exact run that is stated now, as far as may be.

        Parts are told by what engines are taken to do: where one has another load, others get too much, or too little.
        Of what is too much as much is taken back as nobody has spent; the rest is not granted in the time to come.
        """
        self._times_owed = 1.0
        exact, accounts = self.exact_work()[0], [*self.accounts.values()]
        rates = math.fsum(one.shedder.arena.allowance.rate for one in accounts)
        if exact is None or self.load.budget.unit != "%" or rates <= 0:
            return
        piece, share = self.piece(), self.load.budget.amount / 100
        lacks = share * exact * piece.events - piece.bound
        if lacks < 0:
            left = [max(one.shedder.arena.tokens, 0.0) for one in accounts]
            each = [min(-lacks / max(math.fsum(left), 1e-9), 1.0) * mine for mine in left]
        else:
            each = [-lacks * one.shedder.arena.allowance.rate / rates for one in accounts]
        for one, steps in zip(accounts, each, strict=True):
            one.shedder.arena.hand_over(steps)
        owed = max(-lacks - math.fsum(each), 0.0) / max(share * exact * self._next, 1e-9)
        present = [one.present for one in accounts]
        told = math.fsum(one.part * mine for one, mine in zip(accounts, present, strict=True))
        times = math.fsum(present) / told if told > 0 else 1.0
        self._times_owed = min(max(times * (1 - owed), LEAST_TIMES), MOST_TIMES)

    def _share_tokens(self, accounts: Sequence[Account]) -> None:
        """Share out, in proportion to what engines are granted, what they have saved up beyond what they hold back."""
        arenas = [one.shedder.arena for one in accounts]
        spare = [max(arena.tokens - arena.held_back, 0.0) for arena in arenas]
        rates = [arena.allowance.rate for arena in arenas]
        saved, total = math.fsum(spare), math.fsum(rates)
        if saved <= 0 or total <= 0:
            return
        for arena, more, rate in zip(arenas, spare, rates, strict=True):
            room = max(arena.allowance.most - (arena.tokens - more), 0.0)
            if more > 0 or rate > 0:
                arena.hand_over(more - min(saved * rate / total, room))

    # --- what came of it ------------------------------------------------------------------------------------

    @property
    def policy_words(self) -> str:
        """The policy, for people."""
        known = self.load.policy or ("history" if self.histories else self.load.policy_name)
        if not self.load.learns:
            return known
        return ("history" if self.histories else "random") + ", then what was learned"

    def take_log(self, shedder: Shedder, pipeline: Pipeline, whose: Callable[[Ints], Ints]) -> None:
        """Take what was written down of runs that were shed; ``whose`` gives the numbers of the queries of key slots.

        To be called while their keys are known.
        """
        if not (self.load.logs_shed and len(log := pipeline.engine.logged())):
            return
        account, slots = self.accounts[shedder], log[:, LOG_SLOT]
        table, windows = shed_table(log, pipeline), windows_of_slots(pipeline, slots)
        self.logged.append(LoggedShed(shedder, account.name, account.weight, table, windows, whose(slots)))

    def finish(self) -> None:
        """The stream has ended."""
        for one in self.accounts:
            one.finish()

    def forget(self) -> None:
        """A run without end does not remember all of its match points; see ``Metrics.forget``."""
        for one in self.accounts:
            one.forget()

    def piece(self) -> Piece:
        """Where all engines together stand, with those that have left."""
        return added([self._left, *(one.piece for one in self.accounts.values() if one.piece is not None)])

    def refreshed(self) -> Histories | None:
        """The histories as they were learned up to now; None as long as no engine has learned anything.

        Those of engines that have learned nothing are as they were.
        """
        learned: dict[str, HistoryGraph] = {}
        before: dict[str, HistoryGraph] = {}
        for one in self.accounts:
            name, known = one.known_as, None if one.known_as in learned else refreshed(one)
            if known is not None:
                learned[name] = known
            elif one.load.history is not None:
                before.setdefault(name, one.load.history)
        return Histories(before | learned, unchanged=before.keys() - learned.keys()) if learned else None

    @property
    def learning(self) -> Iterator[tuple[str, OnlineLearning]]:
        """What is learned on the way, by the names of engines."""
        return ((account.name, one.online) for one, account in self.accounts.items() if one.online is not None)

    def pieces_so_far(self) -> list[Piece]:
        """Where all engines together stood over time; the last one is now."""
        now, before = self.piece(), self._pieces.copy()
        if before:
            now = replace(now, tick=max(now.tick, before[-1].tick))
        while before and len(before) * (now.events - before[-1].events) * SHORT < now.events:
            before.pop()  # of few events, as behind a batch: with the work of the end they would seem to be the hardest
        return [*before, now]

    def exact_work(self) -> tuple[float | None, float | None]:
        """Run-steps per event of the exact run of all engines, and what it took in the past where events tell it anew.

        Each is None where nobody knows it of some engine.
        """
        if self.load.full_work is not None:
            return self.load.full_work, None
        engines, is_share = [*self.accounts], self.load.budget.unit == "%"
        unknown = [one for one in engines if is_share and one.load.history is None]  # a share of what others take
        told = [(one.full_work(), one) for one in engines if one.metrics.pieces]
        if self._left.work or unknown or not told:
            return None, None
        events = max(self.piece().events, 1)

        def per_event(some: Sequence[tuple[float | None, Shedder]]) -> float | None:
            known = [work * one.metrics.pieces[-1].events for work, one in some if work is not None]
            return math.fsum(known) / events if len(known) == len(some) else None

        follows = any(one.exact_work is not None for one in engines)
        past = [(one.load.steps_per_event, one) for _, one in told]
        return per_event(told), per_event(past) if follows else None

    def audit_work(self) -> int | None:
        """Run-steps that the audit of all engines took; None where no engine tells them apart."""
        told = [one.audit_work for one in self.accounts if one.audit_work is not None]
        return sum(told) if told else None

    # --- state ----------------------------------------------------------------------------------------------

    def snapshot(self) -> dict[str, Any]:
        """What must be kept to go on elsewhere, as JSON; parts are in the states of the engines."""
        histories = {one.shedder.known_as: one.history for one in self.accounts.values() if one.history is not None}
        where = {"left": vars(self._left), "due": [self._due, self._next, self._passed], "is_changed": self._is_changed}
        return where | {"histories": histories, "begin": self.begin}

    def restore(self, saved: dict[str, Any]) -> None:
        """Go on from what ``snapshot`` gave: engines that join until ``restored`` have what their states say.

        Raises
        ------
        DataError
            ``ACEP-D048``: an engine, also one that joins until then, had another history.
        """
        self._left = Piece(**saved["left"])
        finite("left", *vars(self._left).values())
        due, following, *passed = saved["due"]
        self._due, self._next = (number_in("due", number, 1, COUNT) for number in (due, following))
        self._passed = number_in("due", passed[0] if passed else 0, 0, COUNT)  # states of before do not know it
        if saved.get("begin") is not None:  # states of before do not know it
            self.begin = number_in("begin", saved["begin"], -TICK, TICK)
        self._is_restored, self._will_change = True, bool(saved["is_changed"])
        self._histories = saved["histories"]
        for one in self.accounts.values():
            self._check_history(one)

    def _check_history(self, one: Account) -> None:
        if one.shedder.observer is None:  # else its history is refreshed while it runs
            check_same(self._histories.get(one.shedder.known_as), one.shedder.load.history, one.name)

    def restored(self) -> None:
        """All engines are there again."""
        self._is_restored, self._is_changed = False, self._will_change
        for one in self.accounts.values():
            one.part = one.shedder.part
        self._know_sizes()


def can_be_observed(plan: Plan, looks_at: str) -> bool:
    """Whether an engine can be learned of elsewhere: it gets the events of the stream, and nothing else."""
    return looks_at == "events" and plan.cel is None


def at_most(most: float, parts: Floats, sizes: Floats) -> Floats:
    """Parts of which none is more than all of an engine's work; what is over goes to the others, as they are.

    Examples
    --------
    >>> at_most(2.0, np.array([4.0, 0.5, 0.5]), np.array([1.0, 2.0, 4.0])).round(2).tolist()
    [2.0, 0.83, 0.83]
    """
    parts, is_full = parts.copy(), np.zeros(len(parts), np.bool_)
    while (more := ~is_full & (parts > most)).any() and not (is_full | more).all():
        is_full |= more
        rest = sizes.sum() - most * sizes[is_full].sum()
        parts[~is_full] *= rest / (sizes * parts)[~is_full].sum()
        parts[is_full] = most
    return np.minimum(parts, most)


def added(pieces: Sequence[Piece]) -> Piece:
    """Several engines at one time as one: events and ticks are those of the one that has come furthest."""
    return Piece(
        tick=max(one.tick for one in pieces),
        events=max(one.events for one in pieces),
        work=sum(one.work for one in pieces),
        bound=sum(one.bound for one in pieces),
        live=sum(one.live for one in pieces),
        price=max(one.price for one in pieces),
        shed=sum(one.shed for one in pieces),
        points=sum(one.points for one in pieces),
    )


def _foreseen(one: Account, share: float) -> Need:
    """What would come of an engine with its part: a price, or less than was granted where it need not shed."""
    mine = share * one.part
    price = one.marginal(mine) if mine < 1 else 0.0
    return Need(one.size, one.part, 1.0, max(mine, 1.0), price)


def _share_taken(one: Account) -> float:
    """The share of its exact run that an engine has done."""
    piece = one.piece
    return 0.0 if piece is None else min(piece.work / max(piece.events, 1) / one.size, 1.0)


def _sizes(accounts: Sequence[Account]) -> Floats:
    return np.array([one.size for one in accounts])


def _total(accounts: Any) -> float | None:
    """Run-steps per event of the exact run of all engines, where each of them has a history."""
    every = list(accounts)
    known = [one.size for one in every if one.shedder.load.history is not None]
    return math.fsum(known) if known and len(known) == len(every) else None
