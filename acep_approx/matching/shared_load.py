"""A load budget that the engines of a run share: what sets of queries and rules ask of it.

What shares it stands above (``shedding.purse``), as it knows of histories.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from acep_approx.arrays import Floats, Ints
from acep_approx.engines.batches import Grouped
from acep_approx.engines.runs.load_shedder import LoadShedder
from acep_approx.engines.runs.runs import Runs
from acep_approx.events.stream import EventBatch
from acep_approx.matching.stream_batch import StreamBatch

if TYPE_CHECKING:
    from acep_approx.matching.pipeline import Pipeline
    from acep_approx.planning.planner import Plan


class Picked(NamedTuple):
    """The pairs that an engine must get, by their places, and for how many usual events each is granted."""

    at: Ints
    worth: Floats

    def take(self, order: Ints) -> Picked:
        """The same in another order."""
        return Picked(self.at[order], self.worth[order])


class PairsShown(NamedTuple):
    """Pairs that an engine gets: as it takes them, as columns of what they ask of events, and what they are worth."""

    events: Grouped
    columns: StreamBatch
    worth: Floats


class EngineShedder(LoadShedder, Protocol):
    """Sheds load for one of several engines.

    Where an engine runs pairs of events and queries, ``begin_pairs`` stands for ``begin_piece``.
    """

    def pick(self, slot: Ints, tick: Ints, cls: Ints, engine: Runs) -> Picked:
        """The pairs that an engine must get, of those that come next: the others meet no run, and begin none.

        Those of a slot stand together, in the order of time.
        """

    def begin_pairs(self, events: int, whose: Ints, pairs: PairsShown | None = None) -> None:
        """So many events of the stream come, as picked pairs that are ``whose``: each is granted for once."""

    def begun(self, slots: Ints) -> Ints | None:
        """The tick of the last event that begins a run of each slot if none is shed; None where nobody asks for it."""

    def know_window(self, window: int) -> None:
        """The longest window of the queries that are keys, in ticks, is known now."""

    def weigh_keys(self, weights: Floats) -> None:
        """What a match point counts for, by the slot of its key; the last one is that of all further slots."""


class SharedLoad(Protocol):
    """Shares a load budget among engines that come and go."""

    def shedder(
        self, plan: Plan, known_as: str | None = None, *, audits_beside: bool = True, is_of_pairs: bool = False
    ) -> EngineShedder | None:
        """What the engine of a plan sheds with; None where it keeps no partial matches.

        Parameters
        ----------
        plan : Plan
        known_as : str, optional
            What its history is found by; default: as ``Plan.known_as``.
        audits_beside : bool, default True
            Whether the audit may match some parts of the stream beside the run.
        is_of_pairs : bool, default False
            Whether the keys of the engine are queries of a template, too: then a try to begin a run is a run-step.
        """

    def plan_of(self, plan: Plan, horizon: str | None) -> Plan:
        """What is run of the plan of a query that may have a horizon: see ``Load.plan_of``."""

    def join(self, shedder: Any, name: str = "", weight: float | Floats = 1.0, instead_of: Any = None) -> None:
        """Let an engine have a part of the budget, before its next event; perhaps that of another one.

        ``weight``: what a match point of it counts for; of many queries that of each.
        """

    def leave(self, shedder: Any) -> None:
        """Let an engine have no part any more."""

    def pieces(self, batch: EventBatch) -> Iterator[EventBatch]:
        """The parts of a batch between which budgets move, each to be run before the next is asked for."""

    def snapshot(self) -> dict[str, Any]:
        """What must be kept to go on elsewhere, as JSON; the rest is in the states of the engines."""

    def restore(self, saved: dict[str, Any]) -> None:
        """Go on from what ``snapshot`` gave: engines that join until ``restored`` have what their states say."""

    def restored(self) -> None:
        """All engines are there again."""

    def finish(self) -> None:
        """The stream has ended."""

    def take_log(self, shedder: Any, pipeline: Pipeline, whose: Callable[[Ints], Ints]) -> None:
        """Take what was written down of runs that were shed; ``whose`` gives the numbers of the queries of key slots.

        To be called while their keys are known.
        """
