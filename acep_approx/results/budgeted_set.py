"""What a set of queries finds inside a load budget, and its record: of all engines together, of each, of each query."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from acep_approx.budget.set_ledger import PartRecord, QueryRecord, SetRecord
from acep_approx.errors import UsageError
from acep_approx.learning.online import learning_table, summary
from acep_approx.shedding.metrics import shed_by_state
from acep_approx.shedding.purse import Account, Purse
from acep_approx.subscriptions.results import Found
from acep_approx.subscriptions.running import Running

if TYPE_CHECKING:
    from acep_approx.learning.online import OnlineLearning
    from acep_approx.training.histories import Histories


class BudgetedFound(Found):
    """The results of a set that a load budget can buy; see ``Found``, and ``record`` for what they cost.

    Each is one of the exact answer; some may be missing. What reads what others publish sees less of it.
    """

    _run: Running
    _seconds: float

    @classmethod
    def of_run(cls, found: Found, run: Running, seconds: float) -> BudgetedFound:
        """The results of a run, with what tells of it."""
        made = cls.__new__(cls)
        vars(made).update(vars(found), _run=run, _seconds=seconds)
        return made

    def record(self) -> SetRecord:
        """What the run did: work against the bound, in all and by query; what was shed; recall."""
        return record_of(self._run, self._seconds)

    def shed(self) -> pa.Table:
        """The runs that were shed, one row each, with the ``query`` or template; see ``BudgetedMatches.shed``.

        Raises
        ------
        UsageError
            ``ACEP-U039``: it was not asked for when the matches were.
        """
        return shed_of(self._run)

    def refreshed(self) -> Histories | None:
        """The histories as they were learned on the way; those of queries that learned nothing are as they were.

        None where nothing was learned, or ``learn=True`` was not given.
        """
        return purse_of(self._run).refreshed()

    def learning(self) -> pa.Table:
        """When runs were scored anew, and by what: one row each time, with the ``query`` or template.

        See ``BudgetedMatches.learning``. Without rows where nothing was learned.
        """
        return learning_of(self._run)


def purse_of(running: Running) -> Purse:
    """The budget of a set that has one."""
    assert isinstance(running.load, Purse), "it was made with a budget"
    return running.load


def learning_of(running: Running) -> pa.Table:
    """When the engines of a set have scored their runs anew."""
    return learned_by(dict(purse_of(running).learning), "query", is_time=running.standing.is_time)


def learned_by(known: Mapping[str, OnlineLearning], title: str, *, is_time: bool) -> pa.Table:
    """When engines have scored their runs anew, with the name of each in a column with this title."""
    tables = [(name, learning_table(summary(online), is_time=is_time)) for name, online in known.items()]
    tables = tables or [("", learning_table(None, is_time=is_time))]
    return pa.concat_tables(
        table.add_column(0, title, pa.array([name] * table.num_rows, pa.string())) for name, table in tables
    )


def record_of(running: Running, seconds: float) -> SetRecord:
    """The record of a set that has a budget, as it stands now."""
    purse = purse_of(running)
    load, accounts = purse.load, purse.accounts
    parts = [_part(one) for one in accounts.values()]
    return SetRecord(
        budget=str(load.budget),
        policy=purse.policy_words,
        seed=load.seed,
        piece=purse.piece(),
        parts=sorted(parts, key=lambda part: -part.piece.work),
        queries=[*_queries(running, accounts)],
        seconds=seconds,
    )


def _part(one: Account) -> PartRecord:
    shedder, piece = one.shedder, one.piece
    shed = () if piece is None else shed_by_state(shedder.arena)
    recall = None if piece is None else shedder.recall()
    return PartRecord(one.name, one.weight, Purse.nothing if piece is None else piece, shed, recall)


def _queries(running: Running, accounts: dict[Any, Account]) -> Iterator[QueryRecord]:
    members = {} if running.levels is None else running.levels.members
    by_query: dict[Any, tuple[dict[int, int], dict[int, Any]]] = {}
    for number, id_, entry in running.graph.numbered:
        if not entry.is_shown:
            continue
        weight, member = running.graph.weights.get(number, 1.0), members.get(entry.number)
        account = None if member is None else accounts.get(member.shedder)
        if account is None:
            yield QueryRecord(id_, None, weight)
            continue
        shedder = account.shedder
        if entry.shared is None:
            yield QueryRecord(id_, account.name, weight, shedder.metrics.found, shedder.recall())
            continue
        if shedder not in by_query:
            samples = {whose: sample.estimate() for whose, sample in shedder.by_query.samples() if len(sample.cells)}
            by_query[shedder] = shedder.by_query.found(), samples
        found, samples = by_query[shedder]
        is_shared = -1 in found
        yield QueryRecord(id_, account.name, weight, None if is_shared else found.get(number, 0), samples.get(number))


def shed_of(running: Running) -> pa.Table:
    """The runs that a set has shed.

    Raises
    ------
    UsageError
        ``ACEP-U039``: they were not written down.
    """
    purse = purse_of(running)
    if not purse.load.logs_shed:
        raise UsageError(
            "the runs that are shed were not written down", code="ACEP-U039", hint="ask for them with log_shed=True"
        )
    tables = [
        table.add_column(0, "query", pa.array([name] * table.num_rows, pa.string())) for name, table in purse.logged
    ]
    return pa.concat_tables(tables, promote_options="permissive") if tables else pa.table({})
