"""What a set of queries finds inside a load budget, and its record: of all engines together, of each, of each query."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from acep_approx.arguments import checked
from acep_approx.budget.set_ledger import PartRecord, QueryRecord, SetRecord, SharedRecord
from acep_approx.diagrams.fragments import never_raises
from acep_approx.errors import UsageError
from acep_approx.learning.online import learning_table, summary
from acep_approx.shedding.accounts import Account
from acep_approx.shedding.metrics import shed_by_state
from acep_approx.shedding.purse import LoggedShed, Purse
from acep_approx.subscriptions.members import Member
from acep_approx.subscriptions.results import Found, common_columns, in_types_of
from acep_approx.subscriptions.running import Running

if TYPE_CHECKING:
    from acep_approx.learning.online import OnlineLearning
    from acep_approx.training.histories import Histories


class ShownSetRecord(SetRecord):
    """A record that draws itself in a notebook."""

    @never_raises
    def _repr_html_(self) -> str:
        from acep_approx.results.views import shared_view

        return shared_view(self)


class BudgetedFound(Found):
    """The results of a set that a load budget can buy; see ``Found``, and ``record`` for what they cost.

    Each is one of the exact answer; some may be missing. What reads what others publish sees less of it.
    """

    _run: SetSpending

    @classmethod
    def with_record(cls, found: Found, run: SetSpending) -> BudgetedFound:
        """The same results, with what tells of the run."""
        made = cls.__new__(cls)
        vars(made).update(vars(found), _run=run)
        return made

    def record(self, source: str = "") -> SetRecord:
        """What the run did: work against the bound, in all and by query; what was shed; recall.

        Parameters
        ----------
        source : str
            Name of the input, for people.
        """
        return self._run.record(source)

    def shed(self) -> pa.Table:
        """The runs that were shed, one row each, with the ``query`` or template; see ``BudgetedMatches.shed``.

        Raises
        ------
        UsageError
            ``ACEP-U039``: it was not asked for when the matches were.
        """
        return self._run.shed()

    def refreshed(self) -> Histories | None:
        """The histories as they were learned on the way; those of queries that learned nothing are as they were.

        None where nothing was learned, or ``learn=True`` was not given.
        """
        return purse_of(self._run.running).refreshed()

    def learning(self) -> pa.Table:
        """When runs were scored anew, and by what: one row each time, with the ``query`` or template.

        See ``BudgetedMatches.learning``. Without rows where nothing was learned.
        """
        return self._run.learning()

    @checked
    def report(self, path: str | Path, source: str = "") -> None:
        """Write the record as one self-contained HTML page (``ACEP-U013``: over a file that is read)."""
        self._run.report(path, source)

    def __repr__(self) -> str:
        found = f"{self.rows:,} results of {len(self):,} queries"
        return f"<BudgetedFound {found} inside a budget of {purse_of(self._run.running).load.budget}; see record()>"


@dataclass(frozen=True)
class SetSpending:
    """What tells of a run of a set that has a budget, as it stands now.

    Parameters
    ----------
    running : Running
    seconds : float
        How long it took.
    inputs : sequence of Path
        The files that were read.
    """

    running: Running
    seconds: float = 0.0
    inputs: Sequence[Path] = ()

    def record(self, source: str = "") -> SetRecord:
        """What it did."""
        return record_of(self.running, self.seconds, source)

    def shed(self) -> pa.Table:
        """The runs that it has shed (``ACEP-U039``: they were not written down)."""
        ids = self.running.graph.numbered.id
        return shed_table_of(purse_of(self.running), "query", ids)

    def learning(self) -> pa.Table:
        """When the engines have scored their runs anew."""
        known = dict(purse_of(self.running).learning)
        return learned_by(known, "query", is_time=self.running.standing.is_time)

    def report(self, path: str | Path, source: str = "") -> None:
        """Write the page (``ACEP-U013``: over a file that is read)."""
        write_page_of(self.record(source), path, self.inputs)

    def counts_events(self, id_: str) -> bool:
        """Whether the window of a query is of events (``ACEP-U060``: there is no such query)."""
        graph = self.running.graph
        return graph.numbered.owner(graph.known(id_)[-1]).plan.is_count_window

    def logged(self, id_: str) -> list[LoggedShed]:
        """The runs of a query that were shed, by engine; those that it shares with others are its own, too.

        Raises
        ------
        UsageError
            ``ACEP-U039``: they were not written down; ``ACEP-U060``: there is no such query.
        """
        graph, purse = self.running.graph, purse_of(self.running)
        numbers = graph.known(id_)
        member = _members(self.running).get(graph.numbered.owner(numbers[-1]).number)
        shared = None if member is None else member.shedder
        found = [
            one.where(np.isin(one.whose, numbers) | ((one.whose < 0) & (one.shedder is shared)))
            for one in logged_by(purse)
        ]
        return [one for one in found if one.table.num_rows]


def purse_of(running: Running) -> Purse:
    """The budget of a set that has one."""
    assert isinstance(running.load, Purse), "it was made with a budget"
    return running.load


def learned_by(known: Mapping[str, OnlineLearning], title: str, *, is_time: bool) -> pa.Table:
    """When engines have scored their runs anew, with the name of each in a column with this title."""
    tables = [(name, learning_table(summary(online), is_time=is_time)) for name, online in known.items()]
    tables = tables or [("", learning_table(None, is_time=is_time))]
    return pa.concat_tables(
        table.add_column(0, title, pa.array([name] * table.num_rows, pa.string())) for name, table in tables
    )


def logged_by(purse: Purse) -> list[LoggedShed]:
    """What engines with a common budget have written down (``ACEP-U039``: nothing)."""
    if not purse.load.logs_shed:
        raise UsageError(
            "the runs that are shed were not written down", code="ACEP-U039", hint="ask for them with log_shed=True"
        )
    return purse.logged


def shed_table_of(purse: Purse, thing: str, name: Callable[[int], str | None]) -> pa.Table:
    """The runs that engines with a common budget have shed, with whose they were.

    Parameters
    ----------
    purse : Purse
    thing : str
        What has a run, and so is the first column.
    name : callable
        Gives the name of a number; None where there is none: then the name of the engine stands there.

    Raises
    ------
    UsageError
        ``ACEP-U039``: they were not written down.
    """
    tables = []
    for one in logged_by(purse):
        numbers, places = np.unique(one.whose, return_inverse=True)
        names = pa.array([name(number) or one.name for number in numbers.tolist()], pa.string())
        tables.append(one.table.add_column(0, thing, names.take(pa.array(places))))
    columns = common_columns(table.schema for table in tables)  # times, and rows of windows of events, as text
    return pa.concat_tables([in_types_of(columns, table) for table in tables]) if tables else pa.table({})


def shared_record(purse: Purse) -> dict[str, Any]:
    """What records of all kinds say of a common budget: the arguments of ``SharedRecord``."""
    load, (full, past) = purse.load, purse.exact_work()
    parts = [_part(one) for one in purse.accounts.values()]
    return {
        "budget": str(load.budget),
        "policy": purse.policy_words,
        "seed": load.seed,
        "pieces": purse.pieces_so_far(),
        "parts": sorted(parts, key=lambda part: -part.piece.work),
        "begin": purse.begin,
        "full_work": full,
        "past_work": past,
        "audit_work": purse.audit_work(),
    }


def write_page_of(record: SharedRecord, path: str | Path, inputs: Sequence[Path] = ()) -> None:
    """Write the page of a common budget (``ACEP-U013``: over one of these files)."""
    from acep_approx.events.writing.outfile import refuse_input
    from acep_approx.pages.budget.shared import write_shared_report

    refuse_input(Path(path), "the report", inputs)
    write_shared_report(record, path)


def record_of(running: Running, seconds: float, source: str = "") -> SetRecord:
    """The record of a set that has a budget, as it stands now."""
    purse = purse_of(running)
    return ShownSetRecord(
        **shared_record(purse),
        queries=[*_queries(running, purse.accounts)],
        seconds=seconds or None,
        is_time=running.standing.is_time,
        source=source,
    )


def _part(one: Account) -> PartRecord:
    shedder, piece = one.shedder, one.piece
    shed = () if piece is None else shed_by_state(shedder.arena)
    recall = None if piece is None else shedder.recall()
    return PartRecord(one.name, one.weight, Purse.nothing if piece is None else piece, shed, recall)


def _queries(running: Running, accounts: dict[Any, Account]) -> Iterator[QueryRecord]:
    members = _members(running)
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


def _members(running: Running) -> Mapping[int, Member]:
    return {} if running.levels is None else running.levels.members
