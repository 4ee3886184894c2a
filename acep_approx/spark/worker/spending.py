"""A load budget of a whole job, as workers are told of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from acep_approx.budget.budget import Budget
from acep_approx.shedding.load import Load
from acep_approx.training.history_graph import newest
from history.store import is_history

if TYPE_CHECKING:
    from acep_approx.planning.compiled import CompiledQuery
    from acep_approx.training.history_graph import HistoryGraph


@dataclass(frozen=True)
class Spending:
    """A load budget of a whole job, and how it is spent.

    Parameters
    ----------
    budget : Budget
        Of all shards together.
    history : str, optional
        Directory of the history; every micro-batch takes the newest version.
    control : str, optional
        Directory of what the driver tells the workers: how the budget is split, and how closely they are to look;
        default: evenly by events.
    cores : int, default 1
        How many shards are matched at the same time.
    policy, audit, seed, full_work
        As for ``Query.match_within``.
    learns : bool, default False
        Whether the driver refreshes the history by what the shards see. There may be none to begin with.
    """

    budget: Budget
    history: str | None = None
    control: str | None = None
    cores: int = 1
    policy: str | None = None
    audit: float = 0.05
    seed: int = 0
    full_work: float | None = None
    learns: bool = False

    def load(self, budget: Budget, history: HistoryGraph | None, shard: int = 0) -> Load:
        """The load of a part of the job that has this budget; ``shard`` moves the seed."""
        return Load(
            budget, history, policy=self.policy, audit=self.audit, seed=self.seed + shard, full_work=self.full_work
        )

    def newest(self, query: CompiledQuery) -> HistoryGraph | None:
        """The newest version of the history."""
        if self.history is None or (self.learns and not is_history(self.history)):
            return None
        return newest(self.history, query)

    def known_work(self, query: CompiledQuery) -> float | None:
        """Run-steps per event of the exact run, where they are known."""
        return self.load(self.budget, self.newest(query)).steps_per_event
