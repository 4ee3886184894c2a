"""Load budgets of a set of queries: one for all of them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from acep_approx.arguments import checked, refuse_unknown
from acep_approx.budget.budget import Budget, refuse_without
from acep_approx.errors import UsageError, expect

if TYPE_CHECKING:
    from acep_approx.budget.set_ledger import SetRecord
    from acep_approx.learning.online import Observer
    from acep_approx.results.budgeted_set import BudgetedFound, SetSpending
    from acep_approx.shedding.foreseen import Engine
    from acep_approx.shedding.purse import Purse
    from acep_approx.subscriptions.graph import Entry, Graph
    from acep_approx.subscriptions.members import Member
    from acep_approx.subscriptions.results import Found
    from acep_approx.subscriptions.running import Running
    from acep_approx.training.histories import Histories

SPENDING = ("budget", "history", "policy", "audit", "seed", "learn", "full_work", "log_shed")
"""Arguments that say how much may be done, and how it is spent."""
NewPurse = Callable[[], "Purse"]
Result = tuple["Member", pa.Table]


def new_purse(
    spending: Mapping[str, Any], observers: Callable[[str], Observer] | None = None
) -> NewPurse | None:
    """What makes the budget of a set for each of its runs; None where it has none.

    Parameters
    ----------
    spending : mapping
        Those of ``SPENDING`` that were given.
    observers : callable, optional
        See ``Purse``.

    Raises
    ------
    UsageError
        ``ACEP-U040``: how a budget is spent, where there is none; not a budget or a policy; as of ``Load``.
    """
    given = {name: value for name, value in spending.items() if value is not None}
    if given.get("budget") is None:
        refuse_without(given)
        return None
    from acep_approx.shedding.load import Load
    from acep_approx.shedding.purse import Purse
    from acep_approx.training.histories import known_histories

    histories = known_histories(given.pop("history", None))
    learns = given.pop("learn", False)
    expect("learn", learns, bool, "True or False")
    load = Load(Budget.parse(given.pop("budget")), logs_shed=bool(given.pop("log_shed", False)), learns=learns, **given)
    return lambda: Purse(load, histories, observers)


def plain(spending: Mapping[str, Any]) -> dict[str, Any]:
    """What a budget was asked for with, as JSON; of histories only whether there are any."""
    given = {name: value for name, value in spending.items() if value is not None}
    return given | {"budget": str(Budget.parse(given["budget"]))} | ({"history": True} if "history" in given else {})


def from_plain(saved: dict[str, Any], history: Any) -> dict[str, Any]:
    """The arguments of a set that goes on from a state.

    Raises
    ------
    DataError
        ``ACEP-D048``: it needs its histories.
    """
    spending = saved.pop("spending", None)
    if spending is None:
        return saved
    if spending.pop("history", False) and history is None:
        from acep_approx.training.histories import history_needed

        raise history_needed()
    return {**saved, **spending, "history": history}


class BudgetedSet:
    """The part of ``QuerySet`` that is about load budgets."""

    _running: Running
    _matched: Running | None = None  # what ``match`` or ``batches`` ran last
    _seconds = 0.0
    _inputs: Sequence[Path] = ()  # files that were read last

    if TYPE_CHECKING:

        def _batches(self, running: Running, events: Any, **reading: Any) -> Iterator[list[Result]]: ...

        def _notified(self, running: Running, results: Iterator[Result]) -> Found: ...

    @checked
    def match_within(
        self,
        events: Any,
        budget: str | float | Budget,
        *,
        history: Histories | str | Path | None = None,
        policy: str | None = None,
        audit: float = 0.05,
        seed: int = 0,
        log_shed: bool = False,
        learn: bool = False,
        full_work: float | None = None,
        **reading: Any,
    ) -> BudgetedFound:
        """Find the results of all queries that one load budget can buy.

        Parameters
        ----------
        events
            As for ``match``.
        budget : str or Budget
            As for ``Query.match_within``, for all queries together: ``"20%"`` is of the work of the whole set.
        history : Histories or path, optional
            What was learned from the past: see ``Histories``.
        policy, audit, seed, log_shed, learn
            As for ``Query.match_within``; ``refreshed()`` gives the histories as they were learned.
        full_work : float, optional
            Run-steps per event of the exact run of the whole set: what a share is of, where no history knows it.
        **reading
            As for ``match``.

        Returns
        -------
        BudgetedFound
            ``Found`` with ``record()``, ``shed()``, ``refreshed()`` and ``learning()``. Each result is one of the exact
            answer.

        Raises
        ------
        UsageError, HistoryError
            Not a budget or a policy; ``ACEP-U034``: a share of nobody knows what; ``ACEP-U073``: a query whose partial
            matches never end.

        Examples
        --------
        >>> from acep_approx import QuerySet
        >>> desk = QuerySet()
        >>> low = desk.add("PATTERN SEQ(A a, A b, B c) WHERE b.x > a.x AND c.x > b.x WITHIN 40", id="low")
        >>> high = desk.add("PATTERN SEQ(A a, B b, B c) WHERE b.x > a.x AND c.x <> b.x WITHIN 40", id="high", weight=9)
        >>> events = [{"ts": t, "type": "AAB"[t % 3], "x": t * 7 % 11} for t in range(600)]
        >>> some = desk.match_within(events, "4 steps/event", audit=0)
        >>> some.rows < desk.match(events).rows, some.record().work <= 4 * 600
        (True, True)
        """
        spending = {"budget": budget, "history": history, "policy": policy, "audit": audit, "seed": seed}
        made = new_purse(spending | {"log_shed": log_shed, "learn": learn, "full_work": full_work})
        assert made is not None, "there is a budget"
        return self._within(self._running.fresh(made), events, reading)

    def _within(self, running: Running, events: Any, reading: dict[str, Any]) -> BudgetedFound:
        from acep_approx.results.budgeted_set import BudgetedFound, SetSpending

        begun = time.perf_counter()
        check_budget(running)
        found = self._notified(running, chain.from_iterable(self._batches(running, events, **reading)))
        return BudgetedFound.with_record(found, SetSpending(running, time.perf_counter() - begun, self._inputs))

    def _fresh(self) -> Running:
        """The same queries before any event, with a budget of their own if the set has one."""
        self._matched = running = self._running.fresh()
        check_budget(running)
        return running

    def _pushed(self, running: Running, results: Iterator[Result]) -> Found:
        """The results of what was pushed inside the budget."""
        from acep_approx.results.budgeted_set import purse_of

        begun = time.perf_counter()
        if not running.arrived:
            check_budget(running)
        found = self._notified(running, results)
        purse_of(running).forget()
        self._seconds += time.perf_counter() - begun
        return found

    @checked
    def record(self, source: str = "") -> SetRecord:
        """What a set that was made with a budget did: see ``BudgetedFound.record``.

        It is about what was pushed, or, where nothing was, about the last ``match`` or ``batches``.

        Raises
        ------
        UsageError
            ``ACEP-U040``: it has none.
        """
        return self.spending.record(source)

    @checked
    def explain(self, budget: str | float | Budget, **spending: Any) -> str:
        """How a budget will be shared: who begins with which part, what the exact runs are expected to take.

        Parameters
        ----------
        budget : str or Budget
        **spending
            ``history``, ``policy``, ``audit``, ``seed``, ``learn`` and ``full_work``, as for ``match_within``. Numbers
            are told where histories have them.

        Raises
        ------
        UsageError, HistoryError
            As for ``match_within``.

        Examples
        --------
        >>> from acep_approx import QuerySet
        >>> desk = QuerySet(output="points")
        >>> first = desk.add("PATTERN SEQ(A a, A b, B c) WHERE b.x > a.x AND c.x > b.x WITHIN 40", id="first", weight=3)
        >>> print(desk.explain("5 steps/event").splitlines()[0])
        budget   5 steps/event, policy oldest, seed 0
        """
        from acep_approx.planning.explain import section
        from acep_approx.shedding.foreseen import of_engines

        refuse_unknown("explain", spending, SPENDING)
        made = new_purse({"budget": budget, **spending})
        assert made is not None, "there is a budget"
        purse, graph = made(), self._running.graph
        purse.check(purse.plan_of(entry.plan, entry.horizon) for entry in graph)
        return "\n".join(section("budget", of_engines(purse, [*_engines(graph, purse)], "queries")))

    def shed(self) -> pa.Table:
        """The runs that were shed, one row each, where ``log_shed=True`` was given; of the same as ``record``.

        Raises
        ------
        UsageError
            ``ACEP-U039``: it was not; ``ACEP-U040``: there is no budget.
        """
        return self.spending.shed()

    @checked
    def report(self, path: str | Path, source: str = "") -> None:
        """Write the record as one self-contained HTML page.

        Raises
        ------
        UsageError
            ``ACEP-U040``: there is no budget; ``ACEP-U012``, ``ACEP-U013``: it cannot be written there.
        """
        self.spending.report(path, source)

    def refreshed(self) -> Histories | None:
        """The histories as they were learned up to now, where ``learn=True`` was given; of the same as ``record``.

        None as long as nothing was learned.

        Raises
        ------
        UsageError
            ``ACEP-U040``: there is no budget.
        """
        return self.purse.refreshed()

    def learning(self) -> pa.Table:
        """When runs were scored anew, and by what: see ``BudgetedFound.learning``; of the same as ``record``.

        Raises
        ------
        UsageError
            ``ACEP-U040``: there is no budget.
        """
        return self.spending.learning()

    @property
    def purse(self) -> Purse:
        """The budget of the set at work; of the same as ``record``."""
        from acep_approx.results.budgeted_set import purse_of

        return purse_of(self._told_of)

    @property
    def spending(self) -> SetSpending:
        """What tells how the budget was spent (``ACEP-U040``: there is none)."""
        from acep_approx.results.budgeted_set import SetSpending

        return SetSpending(self._told_of, self._seconds, self._inputs)

    @property
    def _told_of(self) -> Running:
        if self._running.load is None:
            raise UsageError(
                "there is no load budget to tell of: this set has none",
                code="ACEP-U040",
                hint="make the set with one: QuerySet(budget='20%', ...), or call match_within(events, '20%')",
            )
        return self._running if self._running.arrived or self._matched is None else self._matched


def check_budget(running: Running, entries: Iterable[Entry] | None = None) -> None:
    """Refuse, before anything is read, what the budget of a set cannot be spent on; of some of its entries, or of all.

    Raises
    ------
    UsageError
        ``ACEP-U034``: a share of nobody knows what; ``ACEP-U073``: partial matches of a query that never end.
    """
    from acep_approx.results.budgeted_set import purse_of

    if running.load is not None:
        purse = purse_of(running)
        purse.check(purse.plan_of(entry.plan, entry.horizon) for entry in entries or running.graph)


def _engines(graph: Graph, purse: Purse) -> Iterator[Engine]:
    """What will share a budget, as far as it can be told before columns are known: queries by themselves, templates."""
    from acep_approx.shedding.foreseen import Engine
    from acep_approx.subscriptions.templates.literals import filled, plans_of
    from acep_approx.subscriptions.templates.pair_runs import by_query

    together: dict[int, list[tuple[int, str, Entry]]] = {}
    for number, id_, entry in graph.numbered:
        which = number if entry.shared is None else -id(entry.shared.template)
        together.setdefault(which, []).append((number, id_, entry))
    for some in together.values():
        number, name, entry = some[0]
        weight = sum(graph.weights.get(one, 1.0) for one, _, _ in some) / len(some)
        plan, queries = entry.plan, 0
        if entry.shared is not None and len(some) > 1:
            plan, name, queries = entry.shared.template.plan, entry.shared.template.text, len(some)
        elif entry.shared is not None and len(waiting := entry.shared.waiting()[1].to_pylist()):
            plan = plans_of(filled(entry.shared.template.syntax, waiting[0]), number)[-1]
        plan, points = purse.plan_of(plan, entry.horizon), entry.output == "points"
        run = by_query(plan) if queries else plan
        yield Engine(run, plan.known_as, name, weight, queries=queries, points=points)
