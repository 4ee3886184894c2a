"""Columns that go into an engine, and matches that come out of one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from acep_approx.arrays import Ints


@dataclass(frozen=True)
class Grouped:
    """Events of a batch, grouped by key slot: parallel int64 columns.

    ``row`` is the number of an event in the input, by which results are put in order; ``id`` its name, which results
    and what leads to them bear; ``place`` a number that grows within its slot. Nothing else tells of two events of a
    slot which was first, and nothing compares the places of two slots. ``at``: where the event stands in its batch.
    """

    slot: Ints
    tick: Ints
    cls: Ints
    row: Ints
    id: Ints
    place: Ints
    at: Ints

    @classmethod
    def none(cls) -> Grouped:
        """No events."""
        return cls(*[NOTHING] * 7)


NOTHING: Ints = np.zeros(0, np.int64)


@dataclass(frozen=True)
class RunEvents:
    """Events of a batch as in ``Grouped``, and the values that runs ask for: shape (columns, events).

    ``start``: the tick at which runs that begin with an event start.
    """

    slot: Ints
    tick: Ints
    start: Ints
    cls: Ints
    row: Ints
    id: Ints
    place: Ints
    columns: Ints
