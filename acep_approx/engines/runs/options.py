"""What an engine may be asked for beside its automaton: functions, and what runs keep when merged."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from acep_approx.query.functions import UserFunction


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
