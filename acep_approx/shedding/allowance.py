"""What a load comes to at the start: what runs are worth, how much may be done, and where it is audited."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from acep_approx.budget.audit import AuditCells
from acep_approx.engines.runs.worth import Allowance, Worth
from acep_approx.training.policies import LEARNED, policy_named, random_lineages
from acep_approx.training.pricing import first_price

if TYPE_CHECKING:
    from acep_approx.automaton.registers import RegisterAutomaton
    from acep_approx.budget.budget import Budget
    from acep_approx.shedding.load import Load

MOST_RUNS = 2**40
"""No machine has room for as many."""
RESERVE_SHARE = 0.01
"""Share of what was granted so far that is held back for times of higher load."""
RESERVE_EVENTS = 256
LEAST_RESERVE = 256.0
"""Run-steps: where less is granted, an event is tested with more runs than many events are granted for."""
EPOCH_WINDOWS = 4
MOST_AUDITED = 0.5
"""Share of the cells that are audited at most."""
CARRIED = 64
"""Run-steps that may be saved up where less is granted per event: else a small budget would never pay for a test."""


def first_worth(load: Load, automaton: RegisterAutomaton, *, is_random: bool) -> Worth:
    """What runs are worth: by the history; without one at random, or by the policy."""
    if load.history is not None:
        return load.history.worth(load.policy_name)
    if is_random:
        return random_lineages(automaton)
    return policy_named(load.policy_name)(automaton, None, 0.0)


def audited_cells(load: Load, window: int, times: float = 1.0) -> AuditCells | None:
    """Which cells are audited: those that the audit's budget pays for where nothing is saved, or ``times`` as many.

    Returns
    -------
    AuditCells or None
        None: no audit was asked for.
    """
    share = _audit(load)
    if share <= 0:
        return None
    return AuditCells(min(times * share, MOST_AUDITED), _epoch(window), window, load.seed)


def first_allowance(load: Load, worth: Worth, window: int, explores: float, *, marks: bool) -> Allowance:
    """How much may be done: the budget, less the share that a cohort ``explores`` with; ``marks``: runs are audited."""
    budget, known, share = load.budget, load.history, load.share
    is_learned = known is not None and load.policy_name in LEARNED
    base = Allowance(
        price=known.prices_.price(share) if known and is_learned else first_price(worth, share),
        elasticity=known.prices_.elasticity(share) if known and is_learned and known.learned_ is None else 1.0,
        audit=_audit(load) if marks else 0.0,
        audit_share=load.audit if marks else 0.0,
        epoch=_epoch(window),
        seed=load.seed,
    )
    if budget.unit == "runs":
        return replace(base, runs=int(min(budget.amount, MOST_RUNS)))
    if budget.unit == "%":
        full = load.steps_per_event
        assert full is not None
        rate = budget.amount / 100 * full * (1 - explores)
        return replace(base, rate=rate, reserve=max(RESERVE_EVENTS * rate, LEAST_RESERVE), reserve_share=RESERVE_SHARE)
    if budget.unit == "steps/event":
        rate = budget.amount * (1 - explores)
        most = max(budget.amount, CARRIED)
        return replace(base, rate=rate, most=most, reserve=most / 4)
    return replace(base, rate=0.0, reserve=1.0)  # the clock says more when a batch comes


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


def _audit(load: Load) -> float:
    """Share of the runs that the audit's budget protects; those count too that begin a window before a cell."""
    return load.audit * load.share / (1 + 1 / EPOCH_WINDOWS)


def _epoch(window: int) -> int:
    return max(EPOCH_WINDOWS * window, 1)
