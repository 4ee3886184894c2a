"""Events that may still change: with their places in the order of the stream, so that others can come in between."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from acep_approx.arrays import Bools, Ints
from acep_approx.run.events import Events


@dataclass(frozen=True)
class PlacedEvents(Events):
    """Events in the order of the stream, with their places in it.

    ``place`` rises from event to event, with gaps for those that come late; ``slot`` is that of the key, -1 where a
    change of the event changes nothing.
    """

    place: Ints
    slot: Ints

    @classmethod
    def of(cls, events: Events, place: Ints, slot: Ints) -> PlacedEvents:
        """Events that are in order, with their places and slots."""
        return cls(events.tick, events.arrival, events.tie, events.data, place, slot)


def places_between(old: Ints, is_new: Bools, low: int, high: int) -> Ints | None:
    """Places for events that come in between others.

    Parameters
    ----------
    old : int64 array
        In the order of all, without the new ones: the places of the others.
    is_new : bool array, shape (all,)
    low, high : int
        The places before and behind all of them.

    Returns
    -------
    int64 array or None
        Of the new ones, in order; None where there is no room.

    Examples
    --------
    >>> places_between(np.array([100, 200]), np.array([True, False, True, True, False]), 0, 300).tolist()
    [50, 133, 166]
    """
    borders = np.concatenate(([low], old, [high]))
    before = np.cumsum(~is_new)[is_new]  # how many of the others come before each
    first, last = borders[before], borders[before + 1]
    at = np.arange(len(before))
    begins = np.searchsorted(before, before, side="left")
    count = np.searchsorted(before, before, side="right") - begins
    if (last - first <= count).any():
        return None
    found: Ints = first + (last - first) * (at - begins + 1) // (count + 1)
    return found
