"""Who sheds load beside the runs engine: which calls it gets, and in which order.

The kernel sheds by the arena (``Shedding``). A load shedder fills it, and may change it between pieces of the stream.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

    from acep_approx.arrays import Ints
    from acep_approx.engines.batches import Grouped, RunEvents
    from acep_approx.engines.progress import RunProgress
    from acep_approx.engines.runs.lineage import Hits
    from acep_approx.engines.runs.shedding import Shedding
    from acep_approx.engines.runs.tables import RunTables
    from acep_approx.engines.search.searches import Searches
    from acep_approx.events.roles import Roles
    from acep_approx.events.stream import EventBatch

Results = Literal["points", "matches"]
"""What a search of the ends of matches can give."""
STEPS = ("begin_stream", "bind", "begin_batch")
"""Calls that others wait for, in their order."""
WAITS_FOR = {
    "bind": 1,
    "rebind": 2,
    "restore": 2,
    "snapshot": 2,
    "begin_batch": 2,
    "begin_piece": 3,
    "note_hits": 3,
    "end_piece": 3,
}
"""How many of the steps must have been made before each call."""
WHOLE_BATCH = 1 << 30
MOST_AT_ONCE = 1 << 14
"""Events that are run at once, at most, where runs are shed: which are kept is planned anew for each piece."""


class HoldsTexts(Protocol):
    """An engine whose runs hold texts by their codes; see ``Engine``."""

    def texts_held(self) -> Ints:
        """The codes of these."""

    def recode_texts(self, codes: Ints) -> None:
        """Per code so far its new one."""


class SearchesOrRuns(Protocol):
    """Whether ends of matches are searched, or runs followed; and whether the other way gets ready to take over."""

    searches: bool
    gets_ready: bool

    def note(self, ends: int, known: int, tests: int, unlisted: int) -> None:
        """Add what came of a batch.

        ``ends``: events that can end a match; ``known``: those of them for which it is known whether they do;
        ``tests``: how many tests that took; ``unlisted``: ends that may have more matches than were listed.
        """


class LoadShedder(Protocol):
    """Sheds load beside the runs engine.

    The calls come in this order: ``begin_stream``, ``bind``, and ``restore`` where a saved run goes on. Then for each
    batch ``begin_batch``; for each of its pieces ``begin_piece``, ``note_hits`` (not where no event of the piece has a
    letter) and ``end_piece``. Between two batches ``rebind`` may come, ``grant_late`` and ``snapshot``. Where
    ``arena.notes.again`` is set a batch is run once more: nothing is granted for it, and nothing of it is learned.
    """

    charges_births: bool
    """Whether a try to begin a run is a run-step."""

    @property
    def ways(self) -> SearchesOrRuns | None:
        """Whether ends are searched now, or runs followed; None: what may be."""

    def search_for(self, results: Results) -> Searches | None:
        """Say, before the engine is made, how it searches ends for such results; None: it only follows runs."""

    @property
    def arena(self) -> Shedding:
        """What the kernel sheds by."""

    @property
    def most_events(self) -> int:
        """A batch is run in pieces of at most so many events."""

    @property
    def keeps_order(self) -> bool:
        """Whether the engine gets the events of a piece as they came, not key by key."""

    @property
    def engines_beside(self) -> Sequence[HoldsTexts]:
        """Engines that get the same events, with the codes of texts that the shedding one knows."""

    def begin_stream(self, schema: pa.Schema, roles: Roles) -> None:
        """Events of these columns are to come."""

    def bind(self, tables: RunTables) -> None:
        """Get ready for the pools of a query, and bind the arena."""

    def rebind(self, tables: RunTables) -> None:
        """Go on with the same pools, whose columns have got wider types; see ``Shedding.rebind``."""

    def begin_batch(self, events: int) -> None:
        """A batch of so many events comes."""

    def begin_piece(self, batch: EventBatch, events: Grouped) -> None:
        """A piece of the stream comes, of which the engine gets these events, in this order."""

    def note_hits(self, events: RunEvents, hits: Hits) -> None:
        """These runs were completed; where conditions on complete matches are still to come, not all are matches."""

    def end_piece(self, batch: EventBatch, progress: RunProgress, seconds: float) -> None:
        """A piece of the stream is done."""

    def grant_late(self, events: int, gone: int) -> None:
        """So many events come between others, and so many go; what came behind them is run once more."""

    def snapshot(self) -> dict[str, Any]:
        """What must be kept to go on elsewhere, as JSON."""

    def restore(self, saved: dict[str, Any]) -> None:
        """Go on from what ``snapshot`` gave."""


class FixedLoad:
    """Sheds by an arena that nobody changes while the stream runs.

    Parameters
    ----------
    arena : Shedding
    """

    most_events = MOST_AT_ONCE
    charges_births = keeps_order = False
    ways: SearchesOrRuns | None = None
    engines_beside: Sequence[HoldsTexts] = ()

    def __init__(self, arena: Shedding) -> None:
        self.arena = arena
        self.bind, self.rebind = arena.bind, arena.rebind
        self.snapshot, self.restore = arena.snapshot, arena.restore

    def search_for(self, results: Results) -> Searches | None:  # noqa: ARG002
        """Runs are followed."""
        return None

    def begin_stream(self, schema: pa.Schema, roles: Roles) -> None:
        """Nothing depends on the columns."""

    def begin_batch(self, events: int) -> None:
        """Nothing depends on the batch."""

    def begin_piece(self, batch: EventBatch, events: Grouped) -> None:
        """Only events that the engine gets are granted for."""

    def grant_late(self, events: int, gone: int) -> None:
        """Nothing is granted."""

    def note_hits(self, events: RunEvents, hits: Hits) -> None:
        """Nothing is written down."""

    def end_piece(self, batch: EventBatch, progress: RunProgress, seconds: float) -> None:
        """Nothing is written down."""


class OutOfOrderError(RuntimeError):
    """A load shedder was called before it could know what it needs."""


class CallOrder:
    """Holds the calls of a load shedder to their order."""

    def __init__(self) -> None:
        self._made = 0  # steps

    def check(self, call: str) -> None:
        """A call comes.

        Raises
        ------
        OutOfOrderError
            It comes too early.
        """
        if self._made < WAITS_FOR.get(call, 0):
            raise OutOfOrderError(f"{call} was called before {STEPS[self._made]}: the order is {', '.join(STEPS)}")
        if call in STEPS:
            self._made = max(self._made, STEPS.index(call) + 1)
