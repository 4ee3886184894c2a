"""What an engine may be asked for beside its automaton: many owners, functions, and what runs keep when merged."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from acep_approx.arrays import Ints
from acep_approx.engines.runs.event_columns import Kind
from acep_approx.query.functions import UserFunction

CLOSED = -1
"""The window of an owner that takes no more steps."""


@dataclass(frozen=True)
class Owners:
    """Queries that differ in constants and windows, run as one automaton: each run belongs to one of them.

    Parameters
    ----------
    windows : int64 array, shape (owners,)
        In ticks; ``CLOSED`` for an owner that has been removed.
    parameters : mapping of str to (kind, int64 array of shape (owners,))
        What ``automaton.resolve.Parameter`` stands for, as words of the block machine.
    """

    windows: Ints
    parameters: Mapping[str, tuple[Kind, Ints]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.windows)

    @property
    def words(self) -> Ints:
        """All of it, one column after the other: the windows come first."""
        return np.concatenate([self.windows, *(column for _, column in self.parameters.values())])

    def column(self, name: str) -> tuple[Kind, int]:
        """The kind of a parameter, and where its column begins in ``words``."""
        return self.parameters[name][0], (1 + list(self.parameters).index(name)) * len(self)


@dataclass(frozen=True)
class RunOptions:
    """What an engine may be asked for beside its automaton; today's queries ask for nothing of it.

    Parameters
    ----------
    owners : Owners, optional
        Default: all runs belong to one query.
    functions : mapping of str to UserFunction
        What ``automaton.resolve.Call`` calls.
    keeps_earliest : bool
        Whether runs keep the earliest start of those that were merged into them.
    counts_merged : bool
        Whether hits say how many runs they stand for.
    charges_births : bool
        Whether a try to begin a run is a run-step, and paid by the load budget.
    """

    owners: Owners | None = None
    functions: Mapping[str, UserFunction] = field(default_factory=dict)
    keeps_earliest: bool = False
    counts_merged: bool = False
    charges_births: bool = False


NO_OPTIONS = RunOptions()
