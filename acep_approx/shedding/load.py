"""What a user asks for when a run must not do all of the work, and what that comes to at the start."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass, replace
from numbers import Integral, Real
from types import NoneType
from typing import TYPE_CHECKING

from acep_approx.budget.audit import AuditCells
from acep_approx.budget.budget import Budget
from acep_approx.engines.runs.worth import Allowance, Worth
from acep_approx.errors import UsageError, expect
from acep_approx.planning.changed import until
from acep_approx.training.policies import LEARNED, no_history, policy_named, random_lineages
from acep_approx.training.pricing import first_price

if TYPE_CHECKING:
    from acep_approx.automaton.registers import RegisterAutomaton
    from acep_approx.engines.runs.expected_work import WorkLaw
    from acep_approx.planning.planner import Plan
    from acep_approx.training.history_graph import HistoryGraph


UNKNOWN_SHARE = 0.2
"""What share of the full work a budget is taken for where no history knows the full work."""


OF_ONE, OF_SET, OF_RULES = "QUERY", "--queries FOLDER", "RULES"
"""How histories are asked for: ``acep train ... PAST``."""


@dataclass(frozen=True)
class Load:
    """What a user asks for when a run must not do all of the work.

    Parameters
    ----------
    budget : Budget
    history : HistoryGraph, optional
        What was learned from the past.
    policy : str, optional
        See ``policies.POLICIES``; default ``history`` where there is one, else ``oldest``.
    audit : float, default 0.05
        Share of the budget that goes to a protected cohort, from which recall is estimated; 0: no estimate.
    seed : int, default 0
        Of the cohort, and of coins.
    logs_shed : bool, default False
        Whether each run that is shed is written down.
    learns : bool, default False
        Whether what runs are worth is learned while the stream runs, from the history on or from nothing. The audit is
        then a cohort that is matched beside the run (``learning.cohort``).
    full_work : float, optional
        Run-steps per event of the exact run: what a share is of, in the place of what the history knows.
    horizon : str, optional
        How long partial matches of a query in CEL without a window are kept, unless all of the work may be done.
    drops : bool, default False
        Whether the exact run of the same output drops runs that can do no more than another: who sheds finds out.
    """

    budget: Budget
    history: HistoryGraph | None = None
    _: KW_ONLY
    policy: str | None = None
    audit: float = 0.05
    seed: int = 0
    logs_shed: bool = False
    learns: bool = False
    full_work: float | None = None
    horizon: str | None = None
    drops: bool = False

    def __post_init__(self) -> None:
        expect("audit", self.audit, Real, "a share from 0 to below 1")
        expect("seed", self.seed, Integral, "a whole number")
        expect("full_work", self.full_work, (Real, NoneType), "a number above 0")
        expect("horizon", self.horizon, (str, NoneType), "a length of time, such as '10 min'")
        expect("policy", self.policy, (str, NoneType), "the name of one")
        if not 0 <= self.audit < 1:
            raise UsageError(
                f"the audit is {self.audit} of the budget", code="ACEP-U033", hint="it lies from 0 to below 1"
            )
        policy_named(self.policy_name)
        if self.learns and self.policy not in (None, "history"):
            raise UsageError(
                f"the policy {self.policy!r} ranks runs by what cannot be learned",
                code="ACEP-U048",
                hint="leave --policy out, or do not learn",
            )
        if self.full_work is not None and not 0 < self.full_work < math.inf:
            raise UsageError(
                f"the full work is {self.full_work} run-steps per event",
                code="ACEP-U050",
                hint="it is a number above 0: what the exact run takes, as acep run says at its end",
            )

    def check(self, plan: Plan, of: str = OF_ONE) -> None:
        """Refuse, before anything is read, what cannot be begun without a history; ``of``: what it would be of.

        Raises
        ------
        UsageError
            ``ACEP-U034``: a share of a full work that nobody knows; ``ACEP-U032``: a policy that needs a history;
            ``ACEP-U073``: runs that never end.
        """
        if not self.budget.is_unlimited:
            plan.refuse_unbounded("a load budget")
        if self.history is None and plan.registers is not None:
            if self.budget.unit == "%" and not self.budget.is_unlimited and self.full_work is None:
                raise full_work_unknown(self.budget, of)
            if self.policy_name in LEARNED:
                raise no_history(self.policy_name)

    def plan_of(self, plan: Plan) -> Plan:
        """What is run of a plan: less than all of the work ends partial matches with the horizon."""
        return plan if self.budget.is_unlimited else until(plan, self.horizon)

    @property
    def steps_per_event(self) -> float | None:
        """Run-steps per event of the exact run, where they are known: as was said, else those of the past."""
        if self.full_work is not None or self.history is None:
            return self.full_work
        return self.history.steps_per_event_ * self.ratio

    @property
    def ratio(self) -> float:
        """The share of the run-steps of listing all matches that the exact run takes, as far as is known.

        Where the work was said, it is that of listing or that of the exact run, by which of the two it is nearer to.
        """
        known = self.history
        if known is None or known.work_ is None or not self.drops:
            return 1.0
        ratio, said, listed = known.work_.ratio, self.full_work, known.steps_per_event_
        is_listing = said is not None and listed > 0 and said > listed * math.sqrt(ratio)
        return 1.0 if is_listing else ratio

    @property
    def law(self) -> WorkLaw | None:
        """How the run-steps of the exact run follow from the events; None where nobody knows, or it was said."""
        work = None if self.history is None or self.full_work is not None else self.history.work_
        return None if work is None else work.law(drops=self.drops)

    @property
    def most_saved(self) -> float:
        """Run-steps that may be saved up."""
        return max(self.budget.amount, CARRIED) if self.budget.unit == "steps/event" else math.inf

    @property
    def share(self) -> float:
        """What share of the full work the budget is, as far as that is known.

        Raises
        ------
        UsageError
            ``ACEP-U034``: of nobody knows what.
        """
        budget, full = self.budget, self.steps_per_event
        if budget.unit == "%":
            if full is None:
                raise full_work_unknown(budget, OF_ONE)
            return min(budget.amount / 100, 1.0)
        if budget.unit == "steps/event" and full:
            return min(budget.amount / full, 1.0)
        return UNKNOWN_SHARE

    @property
    def audit_share(self) -> float:
        """The share of the budget that an audit has which nothing learns from."""
        return self.audit * min(LARGE / self.share, 1.0) if self.budget.unit == "%" else self.audit

    @property
    def share_of_listing(self) -> float:
        """What share the budget is of the work of listing all matches: histories know prices by it."""
        return self.share * self.ratio

    @property
    def policy_name(self) -> str:
        """The policy asked for, or the default."""
        return self.policy or ("history" if self.history is not None else "oldest")

    @property
    def policy_words(self) -> str:
        """The policy, for people."""
        if not self.learns:
            return self.policy_name
        return ("history" if self.history is not None else "random") + ", then what was learned"


def full_work_unknown(budget: Budget, of: str) -> UsageError:
    """The error of a share of nobody knows what; ``of``: what a history would be of."""
    return UsageError(
        f"{budget} of the full work: nobody knows the full work without a history",
        code="ACEP-U034",
        hint=f"learn one with acep train {of} PAST -o DIR and give it with --history DIR, say the full work, in "
        "run-steps per event, with --full-work (full_work=), or grant '5000 steps/event', '200 runs', '2 ms/batch' or "
        "'100k events/s'",
    )


# --- what it comes to at the start --------------------------------------------------------------------------

MOST_RUNS = 2**40
"""No machine has room for as many."""
RESERVE_SHARE = 0.01
"""Share of what was granted so far that is held back for times of higher load."""
RESERVE_EVENTS = 256
LEAST_RESERVE, LEAST_PART = 256.0, 1 / 64
"""Run-steps, or that part of what was granted so far, if it is less: where little is granted for an event, it is tested
with more runs than many events are granted for."""
EPOCH_WINDOWS = 4
MOST_AUDITED = 0.5
"""Share of the cells that are audited at most."""
LARGE = 0.2
"""Share of the exact run's work from which on the audit grows no more: it has all that it needs."""
CARRIED = 64
"""Run-steps that may be saved up where less is granted per event: else a small budget would never pay for a test."""


def first_worth(load: Load, automaton: RegisterAutomaton, *, is_random: bool) -> Worth:
    """What runs are worth: by the history; without one at random, or by the policy."""
    if load.history is not None:
        return load.history.worth(load.policy_name)
    if is_random:
        return random_lineages(automaton)
    return policy_named(load.policy_name)(automaton, None, 0.0)


def audited_cells(load: Load, window: int, audit: float, times: float = 1.0) -> AuditCells | None:
    """Which cells are audited: those that a share of the budget pays for where nothing is saved, or ``times`` as many.

    Returns
    -------
    AuditCells or None
        None: no audit was asked for.
    """
    share = _audit(load, audit)
    if share <= 0:
        return None
    return AuditCells(min(times * share, MOST_AUDITED), epoch_of(window), window, load.seed)


def first_allowance(load: Load, worth: Worth, window: int, explores: float, *, marks: bool) -> Allowance:
    """How much may be done: the budget, less the share that a cohort ``explores`` with; ``marks``: runs are audited."""
    known, price = load.history, learned_price(load)
    is_learned = known is not None and price is not None and known.learned_ is None
    base = Allowance(
        price=first_price(worth, load.share) if price is None else price,
        keeps_all=known.prices_.price(1.0) if known and is_learned else 0.0,
        elasticity=known.prices_.elasticity(load.share_of_listing) if known and is_learned else 1.0,
        audit=_audit(load, load.audit) if marks else 0.0,
        audit_share=load.audit if marks else 0.0,
        epoch=epoch_of(window),
        seed=load.seed,
    )
    return spending(load, base, explores)


def learned_price(load: Load) -> float | None:
    """The price that leaves as much of the work as the budget is; None where no history says."""
    known = load.history
    return known.prices_.price(load.share_of_listing) if known is not None and load.policy_name in LEARNED else None


def spending(load: Load, base: Allowance, explores: float) -> Allowance:
    """The same as ``base``, with as much work as the budget is worth, less the share that a cohort has."""
    budget = load.budget
    if budget.unit == "runs":
        return replace(base, runs=int(min(budget.amount, MOST_RUNS)))
    if budget.unit == "%":
        full = load.steps_per_event
        assert full is not None
        rate = budget.amount / 100 * full * (1 - explores)
        return replace(base, rate=rate, reserve=reserve_for(rate), reserve_share=RESERVE_SHARE)
    if budget.unit == "steps/event":
        rate = budget.amount * (1 - explores)
        return replace(base, rate=rate, most=load.most_saved, reserve=load.most_saved / 4)
    return replace(base, rate=0.0, reserve=1.0)  # the clock says more when a batch comes


def reserve_for(rate: float, granted: float = math.inf) -> float:
    """Run-steps that should be left of a share, by those that events are granted, and those granted so far, if known.

    Examples
    --------
    >>> reserve_for(10.0), reserve_for(0.1), reserve_for(0.1, granted=2000)
    (2560.0, 256.0, 31.25)
    """
    return max(RESERVE_EVENTS * rate, min(LEAST_RESERVE, LEAST_PART * granted))


def bound_in_words(budget: Budget, rate: float) -> str:
    """What the budget comes to, with so many run-steps per event."""
    if budget.is_unlimited:
        return "no limit: nothing is shed"
    if budget.unit == "runs":
        return f"at most {int(budget.amount):,} live runs"
    if budget.unit == "steps/event":
        return f"at most {rate:,.12g} run-steps for an event"
    per_event = f"{rate:,.3g} run-steps per event"
    if budget.unit == "%":
        return f"{per_event}, saved up without end"
    return f"{per_event} at the end, by the clock"


def _audit(load: Load, audit: float) -> float:
    """Share of the runs that such a share of the budget protects; those count too that begin a window before a cell."""
    return audit * load.share / (1 + 1 / EPOCH_WINDOWS)


def epoch_of(window: int) -> int:
    """How long a cell of the audit is, in ticks."""
    return max(EPOCH_WINDOWS * window, 1)
