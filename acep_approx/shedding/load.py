"""What a user asks for when a run must not do all of the work, and what that comes to at the start."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass
from numbers import Integral, Real
from types import NoneType
from typing import TYPE_CHECKING

from acep_approx.budget.budget import Budget
from acep_approx.errors import UsageError, expect
from acep_approx.training.policies import LEARNED, no_history, policy_named

if TYPE_CHECKING:
    from acep_approx.planning.planner import Plan
    from acep_approx.training.history_graph import HistoryGraph

UNKNOWN_SHARE = 0.2
"""What share of the full work a budget is taken for where no history knows the full work."""


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
        then a cohort that is matched beside the run (``exact_sample.Cohort``).
    full_work : float, optional
        Run-steps per event of the exact run: what a share is of, where no history knows.
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

    def __post_init__(self) -> None:
        expect("audit", self.audit, Real, "a share from 0 to below 1")
        expect("seed", self.seed, Integral, "a whole number")
        expect("full_work", self.full_work, (Real, NoneType), "a number above 0")
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

    def check(self, plan: Plan) -> None:
        """Refuse, before anything is read, what cannot be begun without a history.

        Raises
        ------
        UsageError
            ``ACEP-U034``: a share of a full work that nobody knows; ``ACEP-U032``: a policy that needs a history;
            ``ACEP-U073``: runs that never end.
        """
        plan.refuse_unbounded("a load budget")
        if self.history is None and plan.registers is not None:
            if self.budget.unit == "%" and not self.budget.is_unlimited and self.full_work is None:
                raise full_work_unknown(self.budget)
            if self.policy_name in LEARNED:
                raise no_history(self.policy_name)

    @property
    def steps_per_event(self) -> float | None:
        """Run-steps per event of the exact run, where they are known."""
        if self.full_work is not None or self.history is None:
            return self.full_work
        return self.history.steps_per_event_

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
                raise full_work_unknown(budget)
            return min(budget.amount / 100, 1.0)
        if budget.unit == "steps/event" and full:
            return min(budget.amount / full, 1.0)
        return UNKNOWN_SHARE

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


def full_work_unknown(budget: Budget) -> UsageError:
    """The error of a share of nobody knows what."""
    return UsageError(
        f"{budget} of the full work: nobody knows the full work without a history",
        code="ACEP-U034",
        hint="learn one with acep train and give it with --history, say the full work, in run-steps per event, with "
        "--full-work (full_work=), or grant '5000 steps/event', '200 runs', '2 ms/batch' or '100k events/s'",
    )
