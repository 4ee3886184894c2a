"""What a level of a set runs: one query, or many at once, as one side of its stream."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from acep_approx.arrays import Floats, Ints
from acep_approx.engines.runs.load_shedder import LoadShedder
from acep_approx.events.columns import to_arrow
from acep_approx.matching.choice import PLAIN, Shown
from acep_approx.matching.outputs.bind import Bind, Wide, bound_where_shown
from acep_approx.matching.outputs.kinds import KINDS
from acep_approx.matching.pipeline import Pipeline
from acep_approx.matching.renumber import renumbered
from acep_approx.matching.shared_load import SharedLoad
from acep_approx.matching.stream_side import QuerySide, StreamSide
from acep_approx.planning.planner import Plan
from acep_approx.subscriptions.graph import NUMBER, Entry
from acep_approx.subscriptions.published import Publishing, rows_shown
from acep_approx.subscriptions.stages import COMPLETED_BY, PLACED


class Budgeted(NamedTuple):
    """A load budget that all engines of a set share, and what match points of its queries count for.

    ``weights``: of the queries that have another one than 1, by their numbers.
    """

    load: SharedLoad
    weights: Mapping[int, float]

    def of(self, numbers: Ints) -> Floats:
        """The weights of some queries."""
        return np.array([self.weights.get(number, 1.0) for number in numbers.tolist()])


def plan_within(budget: Budgeted | None, entry: Entry) -> Plan:
    """What is run of an entry, inside a budget if there is one."""
    return entry.plan if budget is None else budget.load.plan_of(entry.plan, entry.horizon)


@dataclass
class Level:
    """Queries that see the same events.

    Attributes
    ----------
    side : StreamSide
    reads : dict of str to int
        How many of its queries name each type of events.
    types : dict of str to pyarrow.DataType
        Of the attributes of the published streams that its queries read, or will read.
    rows : int
        Events so far.
    bind : str, sequence of str, Wide or None
        What stands for events in results, as for ``Execution``.
    budget : Budgeted or None
        What its engines share, if not all is to be done.
    passed : frozenset of str
        The streams whose events are passed on to another set.
    """

    side: StreamSide
    reads: dict[str, int] = field(default_factory=dict)
    rows: int = 0
    types: dict[str, pa.DataType] = field(default_factory=dict)
    bind: Bind = None
    budget: Budgeted | None = None
    passed: frozenset[str] = frozenset()

    def shown_of(self, entry: Entry) -> Shown:
        """What the results of some queries show beside what these ask for."""
        return PLACED if entry.publish in self.passed else PLAIN

    def bind_of(self, entry: Entry) -> tuple[str, ...] | Wide:
        """What stands for events in the results of some queries; those with RETURN, or in CEL, show none."""
        return bound_where_shown(self.bind, entry.plan.query, KINDS[entry.output])


class Member(ABC):
    """One query or many, which take part in the batches of a stream together.

    Parameters
    ----------
    level : Level
        What its queries see.

    Attributes
    ----------
    side : QuerySide
        What takes part.
    columns_of : dict of str to tuple of str, or None
        If they are in CEL: the columns of the streams that they read.
    rows : tuple of str
        Columns of results that hold names of events, where these are more than rows of the stream.
    publishing : Publishing or None
        Makes events of its results, once it takes part.
    """

    side: QuerySide
    columns_of: dict[str, tuple[str, ...]] | None = None
    rows: tuple[str, ...] = ()
    publishing: Publishing | None = None

    def __init__(self, level: Level) -> None:
        self.level = level

    @property
    @abstractmethod
    def numbers(self) -> Ints:
        """The queries whose results it gives."""

    @property
    @abstractmethod
    def is_empty(self) -> bool:
        """Whether it has no query any more."""

    @abstractmethod
    def take(self, entry: Entry) -> Ints:
        """Let the queries of an entry take part from the next batch on; gives their numbers."""

    @abstractmethod
    def remove(self, number: int) -> Iterator[pa.Table]:
        """Let go of a query; gives what of it waited for the end of a window. The last one leaves the stream, too."""

    @property
    @abstractmethod
    def pipeline(self) -> Pipeline:
        """What its events go through."""

    @property
    def shedder(self) -> LoadShedder | None:
        """How it stays inside a load budget; None where it does all of its work."""
        return self.pipeline.engine.load_shedder

    @abstractmethod
    def take_part(self) -> None:
        """Let its engine have a part of the budget, if there is one."""

    def take_log(self) -> None:
        """Take what was written down of runs that were shed, while their keys are known."""
        if self.level.budget is not None and self.shedder is not None:
            self.level.budget.load.take_log(self.shedder, self.pipeline, self.whose)

    @abstractmethod
    def whose(self, slots: Ints) -> Ints:
        """The numbers of the queries of some key slots of its engine; -1 where several share them."""

    def constants(self, numbers: Ints) -> pa.Table:  # noqa: ARG002
        """The constants of some queries, where they have a template."""
        raise AssertionError("it has no template")

    def nothing(self) -> pa.Table:
        """An empty table with the columns of the results."""
        return self.shown(self.side.nothing())

    def shown(self, table: pa.Table) -> pa.Table:
        """Results of its side as those of a set: with the number of the query of each, and rows as users see them."""
        if COMPLETED_BY in table.column_names:
            table = table.drop_columns([COMPLETED_BY])
        return renumbered(table, self.rows, rows_shown) if self.rows and table.num_rows else table


class OneQuery(Member):
    """A query by itself.

    Parameters
    ----------
    level : Level
    entry : Entry
    columns_of : dict of str to tuple of str, optional
        If it is in CEL: the columns of the streams that it reads.

    Raises
    ------
    DataError, QueryError
        A column is missing or has the wrong type.
    """

    side: Pipeline
    is_empty = False

    def __init__(self, level: Level, entry: Entry, columns_of: dict[str, tuple[str, ...]] | None) -> None:
        super().__init__(level)
        self._number, self._id = entry.number, entry.id
        bind, budget = level.bind_of(entry), level.budget
        plan = plan_within(budget, entry)
        shedder = None if budget is None else budget.load.shedder(plan, audits_beside=not entry.level)
        how: dict[str, Any] = {"shedding": shedder, "bind": bind, "joins": False, "columns_of": columns_of}
        self.side = Pipeline(level.side, plan, entry.output, shown=level.shown_of(entry), **how)

    @property
    def pipeline(self) -> Pipeline:
        """What its events go through."""
        return self.side

    def take_part(self) -> None:
        """Let its engine have a part of the budget, if there is one."""
        if self.level.budget is not None and self.shedder is not None:
            load, weights = self.level.budget
            load.join(self.shedder, self._id, weights.get(self._number, 1.0))

    @property
    def numbers(self) -> Ints:
        """Its number."""
        return np.array([self._number])

    def whose(self, slots: Ints) -> Ints:
        """Its number."""
        return np.full(len(slots), self._number)

    def take(self, entry: Entry) -> Ints:  # noqa: ARG002  (it is its own)
        """Take part in the batches from now on; the columns of its streams are those of now, for ever."""
        self.side.join()
        self.take_part()
        self.columns_of = self.side.columns_of
        return self.numbers

    def remove(self, number: int) -> Iterator[pa.Table]:  # noqa: ARG002  (it has no other query)
        """Leave the stream; gives what waited for the end of a window."""
        yield from self.side.finish()
        self.level.side.remove(self.side)
        self.is_empty = True
        if self.level.budget is not None and self.shedder is not None:
            self.level.budget.load.leave(self.shedder)

    def shown(self, table: pa.Table) -> pa.Table:
        """Results of the query with its number."""
        number = to_arrow(np.full(table.num_rows, self._number))
        return super().shown(table).add_column(0, NUMBER, number)
