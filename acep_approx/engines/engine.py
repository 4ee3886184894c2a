"""What an engine is: it keeps the runs of all keys, gives copies of where keys stand, and is saved.

There are three. ``Cells`` detects, ``ArcLogs`` lists and counts what needs no conditions across events, and ``Runs``
does all the rest. Nobody asks which one he has: what an engine has not got, such as texts, it answers with nothing.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from acep_approx.arrays import Bools, Ints
from acep_approx.engines.progress import RunProgress
from acep_approx.errors import DataError
from acep_approx.query.syntax import Expression

if TYPE_CHECKING:
    from acep_approx.engines.runs.event_columns import EventColumns
    from acep_approx.engines.runs.load_shedder import LoadShedder
    from acep_approx.engines.runs.shedding import Shedding

NO_WORDS: Ints = np.zeros(0, np.int64)


class Snapshot(ABC):
    """Where all keys stood at one moment, or some, kept beside what goes on: it brings them back.

    Source: ours; it stands in the place of the lists of partial matches of Chandramouli et al., PVLDB 3(1) 2010,
    section 5.1, which have an entry for each event.
    """

    @property
    @abstractmethod
    def words(self) -> int:
        """How much it holds, in words of 8 bytes."""

    @abstractmethod
    def bring_back(self, slots: Ints) -> None:
        """Let these keys stand where they stood; keys that had not come then hold nothing."""

    @abstractmethod
    def renew(self, slots: Ints) -> None:
        """Take over where these keys stand now; only of a snapshot of all keys."""

    def events_held(self) -> Ints:
        """Events that it names itself, in windows of events; by the links of an engine others may be named."""
        return NO_WORDS


class Slots:
    """Which keys a snapshot has, and where: all from slot 0 on, or some in order of their slots.

    Parameters
    ----------
    slots : int64 array, optional
        Ascending. Default: all.
    """

    def __init__(self, slots: Ints | None) -> None:
        self._slots = slots

    def places(self, slots: Ints) -> Ints:
        """Where some keys stand; each of them is there."""
        return slots if self._slots is None else np.searchsorted(self._slots, slots)


class Engine(ABC):
    """Keeps the runs of all keys, each of which has a slot.

    Attributes
    ----------
    window : int
        In ticks, or in events for a count window.
    windows : int64 array, optional
        The window of each slot, where they differ; none is longer than ``window``. Only runs ask for it.
    slots : int
        Key slots that there is room for.
    makes_links : bool
        Whether what is listed of a batch is kept as links until it is done: then large batches are run in pieces.
    load_shedder : LoadShedder or None
        What keeps it inside a load budget; None: nothing is shed.
    shedding : Shedding or None
        What the kernel sheds by; None: nothing is shed.
    """

    window: int
    windows: Ints | None = None
    slots: int = 0
    makes_links = False
    load_shedder: LoadShedder | None = None
    shedding: Shedding | None = None

    @property
    def most_events(self) -> int:
        """A batch is run in pieces of at most so many events."""
        return 1 << 30

    # --- keys -----------------------------------------------------------------------------------------------

    @abstractmethod
    def set_classes(self, classes: list[int]) -> None:
        """Take notice of event classes (letter masks) beyond those known."""

    @abstractmethod
    def reserve(self, slots: int) -> None:
        """Make room for key slots ``0 .. slots - 1``."""

    @abstractmethod
    def clear(self, slots: Ints) -> None:
        """Forget the runs of some key slots."""

    @abstractmethod
    def newest(self) -> Ints:
        """Per key slot the latest start of any run; below every tick where there is none."""

    def live_places(self, floors: Ints) -> Ints:  # noqa: ARG002
        """Places of all events that a run can still point to which starts at ``floors`` or later."""
        return NO_WORDS

    @contextmanager
    def unpaid(self) -> Iterator[None]:
        """What is run meanwhile was run before, and is not counted once more; only runs count."""
        yield

    # --- what is read of events -----------------------------------------------------------------------------

    @property
    def expressions(self) -> Sequence[Expression]:
        """What it reads of each event; see ``readers`` for which events."""
        return ()

    def readers(self, expression: Expression) -> int:  # noqa: ARG002
        """The letters, as bits: the value of an expression is read of the events that one of them holds on."""
        return 0

    def is_read(self, expression: Expression) -> Bools:  # noqa: ARG002
        """Per class of events whether the value of an expression is read of them."""
        return np.zeros(0, np.bool_)

    def widen(self, columns: EventColumns) -> None:
        """Go on with columns of wider types.

        Raises
        ------
        pyarrow.ArrowInvalid
            What is held cannot be held exactly.
        DataError
            ``ACEP-D024``: what was learned, or written down, depends on the types.
        """

    def texts_held(self) -> Ints:
        """The codes of the texts that it holds, some more than once."""
        return NO_WORDS

    def recode_texts(self, codes: Ints) -> None:
        """Give the texts that it holds the new codes ``codes``, per code so far; the others are forgotten."""

    # --- what it tells --------------------------------------------------------------------------------------

    def report(self, progress: RunProgress) -> None:
        """Write down what was done so far."""

    def logged(self) -> Ints:
        """What was logged of shedding since the last call; see ``Shedding.take_log``."""
        return NO_WORDS

    def left_open(self) -> Ints:
        """Events of which a search left open whether a match ends there: key slot, tick and id of each, shape (n, 3).

        Of those since the last call, if what is shed is logged.
        """
        return NO_WORDS.reshape(0, 3)

    # --- copies of keys -------------------------------------------------------------------------------------

    @abstractmethod
    def fork(self, slot: int) -> Any:
        """A copy of a key, for ``put``."""

    @abstractmethod
    def put(self, slot: int, copy: Any) -> None:
        """Bring a key back to where it stood when a copy was made, here or in another engine of the same query.

        Raises
        ------
        DataError
            ``ACEP-D047``: the copy does not fit this engine.
        """

    @abstractmethod
    def snapshot(self, slots: Ints | None, floors: Ints) -> Snapshot:
        """Where keys stand now.

        Parameters
        ----------
        slots : int64 array or None
            Ascending; None: all.
        floors : int64 array, shape (slots of the engine,) or (1,)
            What started before is not asked for any more.
        """

    # --- state ----------------------------------------------------------------------------------------------

    @abstractmethod
    def header(self) -> dict[str, Any]:
        """What ``restore`` needs beside the arrays."""

    @abstractmethod
    def arrays(self, floors: Ints) -> dict[str, Ints]:
        """The state as arrays, without what started before ``floors``."""

    @abstractmethod
    def restore(self, header: dict[str, Any], arrays: dict[str, Ints], classes: list[int]) -> None:
        """Take over a state and make the tables for its event classes.

        Raises
        ------
        DamagedError
            It is not as this engine can have written it.
        """


def does_not_fit(what: str) -> DataError:
    """The error of a copy of the ``what`` of a key that is of another query, or is not as it was made."""
    return DataError(
        f"this copy of the {what} of a key is of another query, or was changed",
        code="ACEP-D047",
        hint="put back only what the engine of the same query gave",
    )
