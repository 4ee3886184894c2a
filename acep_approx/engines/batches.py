"""Columns that go into an engine, and matches that come out of one."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from acep_approx.arrays import Ints


@dataclass(frozen=True)
class Grouped:
    """Events of a batch, grouped by key slot: parallel int64 columns.

    ``place``: number of the event within its slot, where it is asked for.
    """

    slot: Ints
    tick: Ints
    cls: Ints
    row: Ints
    place: Ints = field(default_factory=lambda: np.zeros(0, np.int64))


@dataclass(frozen=True)
class Listed:
    """Matches as columns.

    ``hit`` (index into the hits), ``start`` (tick of the first event) and ``offset`` are per match; match ``m`` binds
    the events ``offset[m] .. offset[m+1]`` of ``row`` and ``label``, earliest first.
    """

    hit: Ints
    start: Ints
    offset: Ints
    row: Ints
    label: Ints


@dataclass(frozen=True)
class RunEvents:
    """Events of a batch, grouped by key: parallel int64 columns; ``columns`` has shape (columns, events).

    ``start``: the tick at which runs that begin with an event start.
    """

    slot: Ints
    tick: Ints
    start: Ints
    cls: Ints
    row: Ints
    rank: Ints
    columns: Ints
