"""The state of a set of queries, with the budget that it has."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from acep_approx.api.budgeted_set import from_plain as from_spending
from acep_approx.api.query_texts import SavedTexts
from acep_approx.archive import Scope
from acep_approx.errors import expect
from acep_approx.matching.outputs.bind import from_plain
from acep_approx.ranges import finite
from acep_approx.subscriptions.running import Running
from acep_approx.subscriptions.state import SET, pack, restored

if TYPE_CHECKING:
    from acep_approx.training.histories import Histories


class SavedSet:
    """The part of ``QuerySet`` that is about its state."""

    _running: Running
    _made_with: dict[str, Any]
    _seconds: float

    if TYPE_CHECKING:

        def __init__(self, **options: Any) -> None: ...

    def state_bytes(self) -> bytes:
        """Everything as bytes, to go on later or elsewhere: queries, what waits, where each of them stands.

        Functions that are told of results are not in it.

        Raises
        ------
        DataError
            ``ACEP-D045``: an error stopped it in the middle of a batch.
        """
        spent = {} if self._running.load is None else {"seconds": self._seconds}
        return pack(self._running, self._made_with | spent)

    @classmethod
    def from_state(cls, state: bytes, *, history: Histories | str | Path | None = None) -> Self:
        """The set that ``state_bytes`` was called on, ready for the next events.

        ``history``: that of a run inside a load budget, which is not in its state; a later version will do.

        Raises
        ------
        DataError
            ``ACEP-D040``: not the state of a set; ``ACEP-D041``: of another format; ``ACEP-D042``: a query means
            something else now; ``ACEP-D048``: a history is missing, or another one.
        """
        expect("the state", state, (bytes, bytearray, memoryview), "the bytes that state_bytes() gave")
        saved = SET.unpack(state)
        with SET.reading():
            options = from_spending(dict(saved.head["options"]), history)
            options.pop("seconds", None)
            made = cls(**options | {"bind": from_plain(options.get("bind"))})
            made._go_on(saved)
        return made

    def take_up(self, state: bytes) -> Self:
        """Go on from a state of a set of the same queries, added in the same order; gives this set."""
        saved = SET.unpack(state)
        with SET.reading():
            self._go_on(saved)
        return self

    def _go_on(self, saved: Scope) -> None:
        self._seconds = saved.head["options"].get("seconds", 0.0)
        finite("seconds", self._seconds)
        running = restored(saved, SavedTexts(), self._running.new_load)
        running.lateness, self._running = self._running.lateness, running
