"""Where keys stood at one moment, kept beside an engine that goes on: what brings them back."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from acep_approx.arrays import Ints


class Snapshot(Protocol):
    """The state of all keys of an engine, or of some.

    Source: ours; it stands in the place of the lists of partial matches of Chandramouli et al., PVLDB 3(1) 2010,
    section 5.1, which have an entry for each event.
    """

    @property
    def words(self) -> int:
        """How much it holds, in words of 8 bytes."""

    def bring_back(self, slots: Ints) -> None:
        """Let these keys of the engine stand where they stood."""

    def renew(self, slots: Ints) -> None:
        """Take over where these keys of the engine stand now; only of a snapshot of all keys."""


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
