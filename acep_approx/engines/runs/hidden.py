"""Columns that runs carry behind their registers: no condition reads them, and merging has rules for them.

Everything that joins, drops, saves or writes down runs goes through this list, so that a further column is a line here.
Some are asked for by ``RunOptions``, what an engine is told beside its automaton.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from acep_approx.kernels.runs.pools import ADD_UP, KEEP_LEAST, KEEP_NEW
from acep_approx.query.syntax import UserFunction


@dataclass(frozen=True)
class RunOptions:
    """What an engine may be asked for beside its automaton; today's queries ask for nothing of it.

    Parameters
    ----------
    functions : mapping of str to UserFunction
        What ``automaton.resolve.Call`` calls.
    keeps_earliest : bool
        Whether runs keep the earliest start of those that were merged into them.
    counts_merged : bool
        Whether hits say how many runs they stand for.
    charges_births : bool
        Whether a try to begin a run is a run-step, and paid by the load budget.
    """

    functions: Mapping[str, UserFunction] = field(default_factory=dict)
    keeps_earliest: bool = False
    counts_merged: bool = False
    charges_births: bool = False


NO_OPTIONS = RunOptions()

NOW, MARK_NOW, START_NOW = range(3)
EVENT_SCALARS = 3
"""Scalars of the event that hidden columns take: its tick, the mark and the start of the runs that begin with it."""


@dataclass(frozen=True)
class HiddenColumn:
    """A column behind the registers.

    Parameters
    ----------
    name : str
    merge : int, optional
        What becomes of it when runs are merged, ``kernels.runs.pools``: KEEP_NEW, KEEP_LEAST or ADD_UP. None: runs are
        merged only if they agree in it.
    scalar : int, optional
        Which scalar of the event it is for a run that begins; None: the run at the start has it.
    constant : int, optional
        What it is for a run that begins, instead of a scalar.
    is_inherited : bool
        Whether a child has that of its run; else that of a run that begins.
    """

    name: str
    merge: int | None
    scalar: int | None = None
    constant: int | None = None
    is_inherited: bool = True


MARK = HiddenColumn("mark", None, MARK_NOW)
"""Whether a budget may shed it; see ``kernels.runs.scores``."""
LAST = HiddenColumn("last", KEEP_NEW, NOW, is_inherited=False)
"""The tick of the event that it bound last; a budget scores runs by it."""
GROUP = HiddenColumn("group", KEEP_NEW, constant=0, is_inherited=False)
"""What a budget takes it for, found out at its birth (``kernels.runs.scores.known_group``); right behind the last
event."""
DOMINATED = HiddenColumn("dominated", KEEP_LEAST, constant=0, is_inherited=False)
"""Whether another run of its pool can do all that it can: such a one is the first to be shed."""
EARLIEST = HiddenColumn("earliest", KEEP_LEAST, START_NOW)
"""The earliest start of the runs that were merged into it; its start is the latest."""
TIMES = HiddenColumn("times", ADD_UP, constant=1)
"""How many runs were merged into it, itself included."""
GONE = HiddenColumn("gone", KEEP_NEW, constant=0, is_inherited=False)
"""Whether it leaves when the tick is over."""


@dataclass(frozen=True)
class HiddenColumns:
    """The hidden columns of one query: those that merged runs agree in, then the others."""

    columns: tuple[HiddenColumn, ...] = ()

    def __iter__(self) -> Iterator[HiddenColumn]:
        return iter(self.columns)

    def __len__(self) -> int:
        return len(self.columns)

    @property
    def alike(self) -> int:
        """In how many of them runs must agree to be merged."""
        return sum(column.merge is None for column in self.columns)

    @property
    def merging(self) -> list[int]:
        """What becomes of each of the others."""
        return [column.merge for column in self.columns if column.merge is not None]

    def behind(self, column: HiddenColumn) -> int:
        """Where a column stands behind those that must agree; -1 where runs do not have it."""
        return self.columns.index(column) - self.alike if column in self.columns else -1


def hidden_columns(
    *,
    sheds: bool = False,
    dominated: bool = False,
    earliest: bool = False,
    times: bool = False,
    gone: bool = False,
) -> HiddenColumns:
    """The hidden columns that are asked for."""
    of_shedding = ((MARK, sheds), (LAST, sheds), (GROUP, sheds), (DOMINATED, dominated))
    asked = (*of_shedding, (EARLIEST, earliest), (TIMES, times), (GONE, gone))
    return HiddenColumns(tuple(column for column, is_asked in asked if is_asked))
