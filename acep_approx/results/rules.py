"""What users hold of active rules: outputs, calls, and the tables."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import pyarrow as pa

from acep_approx.arguments import checked
from acep_approx.diagrams.fragments import first_rows, never_raises, tables_view, view
from acep_approx.errors import UsageError
from acep_approx.events.writing.tables import to_pandas
from acep_approx.results.budgeted_set import write_page_of
from acep_approx.results.match import named
from acep_approx.rules.execution import Outcome
from acep_approx.rules.table import TableRows

if TYPE_CHECKING:
    import pandas as pd

    from acep_approx.budget.rules_ledger import RulesRecord

CALL_KEYS = ("name",)
"""Columns of calls that are the key of messages: so those of a function keep their order in a topic."""


@dataclass(frozen=True)
class RuleCall:
    """What a function is called with.

    Attributes
    ----------
    id : str
        Says which rule calls, for which event, and how often before: the same after a restart. A call may come twice
        then; so note the ids of those that were done.
    name, rule : str
    time : datetime or int
        Of the event, or of the end of a window.
    row : int or None
        The event; None where it is the end of a window.
    arguments : tuple
    """

    id: str
    name: str
    rule: str
    time: Any
    row: int | None
    arguments: tuple[Any, ...]

    @classmethod
    def of(cls, table: pa.Table) -> Iterator[RuleCall]:
        """The calls of a table."""
        for one in table.to_pylist():
            yield cls(**{**one, "arguments": tuple(json.loads(one["arguments"]))})


class RuleOutput(Mapping[str, pa.Table]):
    """What came of some events: ``output["warn"]`` are the matches of a rule.

    Attributes
    ----------
    changes : dict of str to pyarrow.Table
        Per table what was written to it, in order: time, row of the event, rule, what was done, and the row afterwards.
    calls : pyarrow.Table
        In order.
    store : StoreView
        The tables.
    record : RulesRecord or None
        Of a whole run inside a load budget: what was done.
    history : Histories or None
        Of a whole run inside a load budget that learns: the histories of the rules as they were learned.
    """

    record: RulesRecord | None = None
    history: Any = None
    _shed: Callable[[], pa.Table] | None = None
    _inputs: Sequence[Path] = ()

    def __init__(self, outcome: Outcome, store: StoreView) -> None:
        self.outcome = outcome
        self.changes = outcome.changes
        self.calls = outcome.calls
        self.store = store

    @checked
    def __getitem__(self, rule: str) -> pa.Table:
        return named(self.outcome.matches, rule, "rule")

    def __iter__(self) -> Iterator[str]:
        return iter(self.outcome.matches)

    def __len__(self) -> int:
        return len(self.outcome.matches)

    def with_record(self, record: RulesRecord | None, shed: Callable[[], pa.Table], inputs: Sequence[Path]) -> Self:
        """Let it tell of the whole run: what was done inside a budget, what was shed, and which files were read."""
        self.record, self._shed, self._inputs = record, shed, inputs
        return self

    def shed(self) -> pa.Table:
        """The partial matches that were dropped, one row each, with the ``rule``; see ``BudgetedMatches.shed``.

        Raises
        ------
        UsageError
            ``ACEP-U039``: they were not asked for with ``log_shed=True``; ``ACEP-U040``: it is not of a whole run
            inside a load budget.
        """
        if self.record is None or self._shed is None:
            raise without_budget("shed()")
        return self._shed()

    @checked
    def report(self, path: str | Path, source: str = "") -> None:
        """Write the record of a whole run as one self-contained HTML page.

        Parameters
        ----------
        path : str or Path
            Where to; a file there is replaced.
        source : str
            Name of the input, for people.

        Raises
        ------
        UsageError
            ``ACEP-U040``: it is not of a whole run inside a load budget; ``ACEP-U012``: it cannot be written;
            ``ACEP-U013``: over a file that was read.
        """
        if self.record is None:
            raise without_budget("report()")
        write_page_of(replace(self.record, source=source), path, self._inputs)

    @never_raises
    def _repr_html_(self) -> str:
        calls = (("calls", self.calls),) if self.calls.num_rows else ()
        return tables_view(repr(self)[1:-1], (*self.items(), *calls))

    def __repr__(self) -> str:
        matches = ", ".join(f"{rule}: {table.num_rows:,}" for rule, table in self.items())
        return f"<RuleOutput of {matches or 'no events'}>"


def without_budget(what: str) -> UsageError:
    """The error that something is about a load budget that rules have not (``ACEP-U040``)."""
    return UsageError(
        f"{what} is about a load budget, and there is none",
        code="ACEP-U040",
        hint="give one: rules.match_within(events, '20%'), or rules.start(budget='20%')",
    )


class TableView:
    """A table as it is now."""

    def __init__(self, rows: TableRows) -> None:
        self._rows = rows

    def to_arrow(self) -> pa.Table:
        """Its rows, in the order of their keys."""
        return self._rows.to_arrow()

    def to_pandas(self) -> pd.DataFrame:
        """The same as a pandas DataFrame."""
        return to_pandas(self.to_arrow())

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """The same as a stream of Arrow: ``polars.DataFrame(run.store["status"])``."""
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def to_pylist(self) -> list[dict[str, Any]]:
        """The same as dicts."""
        rows: list[dict[str, Any]] = self.to_arrow().to_pylist()
        return rows

    def __len__(self) -> int:
        return int(self._rows.present.sum())

    @never_raises
    def _repr_html_(self) -> str:
        return view(first_rows(self, str(self._rows.table.name)))

    def __repr__(self) -> str:
        return f"<table {self._rows.table.name} of {len(self):,} rows>"


class StoreView(Mapping[str, TableView]):
    """The tables of some rules, by name."""

    def __init__(self, tables: Mapping[str, TableRows]) -> None:
        self._tables = tables

    @checked
    def __getitem__(self, name: str) -> TableView:
        return TableView(named(self._tables, name, "table"))

    def __iter__(self) -> Iterator[str]:
        return iter(self._tables)

    def __len__(self) -> int:
        return len(self._tables)

    @never_raises
    def _repr_html_(self) -> str:
        return tables_view("Tables", self.items())

    def __repr__(self) -> str:
        return f"<store of {', '.join(map(repr, self.values()))}>"
