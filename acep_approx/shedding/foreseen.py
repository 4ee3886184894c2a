"""How a load budget will be shared, in words, before anything runs: ``explain``. Numbers come from histories alone."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from acep_approx.diagrams.text_layout import one_line
from acep_approx.engines.runs.load_shedder import Results
from acep_approx.events.counts import counted
from acep_approx.kernels.runs.scores import ON_PASSES
from acep_approx.planning.explain import arcs_label
from acep_approx.planning.planner import Plan
from acep_approx.shedding.accounts import Account
from acep_approx.shedding.load import Load
from acep_approx.shedding.purse import Purse
from acep_approx.shedding.shedder import Shedder
from acep_approx.shedding.ways import Ways

SHOWN = 10
"""How many engines are named: those with the largest parts."""
ONE_PRICE = "while it runs, parts move to where a run-step finds most"
FOLLOWS = "while it runs, that is told from the events"


@dataclass(frozen=True)
class Engine:
    """One that will have a part of a budget.

    Attributes
    ----------
    plan : Plan
    known_as : str
        What its history is found by.
    name : str
        For people.
    weight : float
        What a match point of it counts for.
    queries : int
        Of a template: how many it runs; 0: it runs one query.
    points : bool
        Whether match points are all that is asked for.
    """

    plan: Plan
    known_as: str
    name: str
    weight: float = 1.0
    queries: int = 0
    points: bool = False


def of_query(load: Load, plan: Plan, *, points: bool) -> list[str]:
    """How a single query spends a budget; ``points``: match points are all that is asked for.

    Raises
    ------
    UsageError
        As for a run: ``ACEP-U034``, ``ACEP-U032``, ``ACEP-U073``.
    """
    if plan.registers is None:
        return [f"{load.budget}: the cells engine answers exactly, and sheds nothing"]
    load.check(plan)
    if load.budget.is_unlimited:
        return ["100%: nothing is shed"]
    load = replace(load, drops=points)
    spent = _spent(load, load.policy_words, load.steps_per_event, "the exact run", follows=load.law is not None)
    return [*spent, *_ways(load, plan, "points" if points else "matches"), *_promised(load, points)]


def of_engines(purse: Purse, engines: Sequence[Engine], things: str) -> list[str]:
    """How several engines share a budget.

    Parameters
    ----------
    purse : Purse
        Fresh.
    engines : sequence of Engine
    things : str
        What all of them are, for people: ``"queries"``.
    """
    load = purse.load
    if load.budget.is_unlimited:
        return ["100%: nothing is shed"]
    of: dict[Shedder, Engine] = {}
    for one in engines:
        shedder = purse.shedder(one.plan, one.known_as, is_of_pairs=one.queries > 0)
        if shedder is None:
            continue
        shedder.load = replace(shedder.load, drops=one.points)
        purse.join(shedder, one.name, one.weight)
        of[shedder] = one
    purse.settle()
    accounts = [*purse.accounts.values()]
    if not accounts:
        return [f"{load.budget}: the {things} are answered exactly, and nothing is shed"]
    known = [one for one in accounts if one.shedder.load.history is not None]
    full = load.full_work
    if full is None and len(known) == len(accounts):
        full = math.fsum(one.size for one in accounts)
    follows = any(one.shedder.load.law is not None for one in known) and load.full_work is None
    policy, whose = purse.policy_words, f"the exact runs of all {things}"
    return [
        *_spent(replace(load, full_work=full), policy, full, whose, follows=follows),
        *_parts(accounts, of, full, load),
        *([ONE_PRICE] if len(accounts) > 1 else []),
    ]


def _spent(load: Load, policy: str, full: float | None, whose: str, *, follows: bool) -> Iterator[str]:
    """What the budget is, what it is a share of, and what it grants."""
    budget, steps = load.budget, None
    yield f"{budget}{f' of {whose}' if budget.unit == '%' else ''}, policy {policy}, seed {load.seed}"
    if full is None:
        yield f"{whose}: without a history nobody knows the work"
    else:
        source = "as was said" if load.full_work is not None and not follows else "in the past"
        yield f"{whose}: {_number(full)} run-steps per event {source}{f'; {FOLLOWS}' if follows else ''}"
    if budget.unit == "steps/event":
        steps = budget.amount
    elif budget.unit == "%" and full is not None:
        steps = budget.amount / 100 * full
    if steps is not None:
        share = f" ({min(steps / full, 1.0):.0%} of that)" if full and budget.unit != "%" else ""
        yield f"granted: {_number(steps)} run-steps per event{share}"
    audit = load.audit_share if budget.unit != "%" or full is not None else load.audit
    aside = f"{audit:.2g} of it is for the audit, which estimates recall" if audit else "no audit"
    yield f"{aside}; {ON_PASSES:g} for choosing among partial matches" if budget.unit != "runs" else aside


def _ways(load: Load, plan: Plan, results: Results) -> Iterator[str]:
    """Whether results are searched for backwards, and what both ways promise."""
    ways = Ways.of(load, plan, results)
    if ways is None:
        return
    backwards, by_runs = ways.found, ways.prices.recall(load.share_of_listing)
    tests, begins = _number(ways.cost.all_tests), "searching" if ways.searches else "following"
    yield f"searching backwards: {tests} tests per event find all match points of the past, the budget {backwards:.0%}"
    yield f"following partial matches: the budget finds {by_runs:.0%} of them; the run begins by {begins}"
    for path, order in zip(ways.how.paths, ways.how.orders, strict=True):
        names = [arcs_label(plan, arc) for arc in path.arcs]
        yield f"order of the search: {', '.join([names[-1], *(names[position] for position in order)])}"
    if results == "matches":
        yield "of each match point one match is listed first; what is left of the budget lists the others"


def _promised(load: Load, points: bool) -> Iterator[str]:
    """What runs found in the past."""
    known = load.history
    if known is None or known.promises_ is None or not known.promises_.points:
        return
    rows = known.promises_.of("points" if points else "matches")
    some = ", ".join(f"{one.share:.0%} {one.recall:.0%} ({one.low:.0%} to {one.high:.0%})" for one in rows)
    yield f"found of the match points of the past, by budget: {some}"


def _parts(accounts: Sequence[Account], of: dict[Shedder, Engine], full: float | None, load: Load) -> Iterator[str]:
    """Who begins with which part."""
    whole = math.fsum(one.size * one.part for one in accounts)
    rows = sorted(accounts, key=lambda one: -one.size * one.part)
    yield f"{counted(len(rows), 'engine')} share{'s' * (len(rows) == 1)} it, and begin{'s' * (len(rows) == 1)} with"
    for one in rows[:SHOWN]:
        mine = of[one.shedder]
        words = [f"  {one_line(one.name):.60}"]
        if mine.queries:
            words.append(f"{mine.queries:,} queries of a template, where tries to begin a partial match are work, too")
        if mine.weight != 1:
            words.append(f"weight {mine.weight:g}")
        if full is None:
            has_none = one.shedder.load.history is None
            words.append("no history" if has_none else f"{_number(one.size)} run-steps per event")
        else:
            share = one.size * one.part / whole
            known = "" if one.shedder.load.history else " as others take, for want of a history"
            words.append(f"{share:.0%} of it; its exact run takes {_number(one.size)} run-steps per event{known}")
        yield ": ".join([words[0], ", ".join(words[1:])])
    if len(rows) > SHOWN:
        rest = math.fsum(one.size * one.part for one in rows[SHOWN:]) / whole
        yield f"  {counted(len(rows) - SHOWN, 'more engine')}{f': {rest:.0%} of it' if full is not None else ''}"
    if full is None and load.full_work is None:
        yield "as nobody knows the work, parts begin by weight"


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
