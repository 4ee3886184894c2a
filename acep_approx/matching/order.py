"""The order in which matches are put out, whatever found them: by what completes them, errors, start, later events.

The walks of both engines give the matches of one event in whatever order they come upon them. Here the matches of an
event with as many errors are gathered and sorted; more than ``MOST`` of them in parts of so many, so that memory stays
bounded.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from acep_approx.matching import kernel_order
from acep_approx.matching.arrays import Ragged

Ints = npt.NDArray[np.int64]
MOST = 1 << 18
"""Matches of one event, with as many errors, that are sorted together."""


class Walked(Ragged):
    """Matches of hits as a walk gives them: per match its hit and start, per event its row and what bound it."""

    hit: Ints
    start: Ints


Some = TypeVar("Some", bound=Walked)


def in_order(parts: Iterator[Some], group: Ints, labels: Ints) -> Iterator[Some]:
    """The same matches, those of each group in order.

    Parameters
    ----------
    parts : iterator of Walked
        Matches in the order of their hits.
    group : int64
        Per hit a number that rises with the event, then with the errors.
    labels : int64
        The variable of each number in the last column of ``PER_EVENT``.

    Complexity: O(m log m) for the matches of one event, O(m) where they come in order.
    """
    held: Some | None = None
    for part in parts:
        known = part if held is None else type(part).joined([held, part])
        ids = group[known.hit]
        first = int(np.searchsorted(ids, ids[-1]))
        whole = first + (len(known) - first) // MOST * MOST  # the last group may go on
        if whole:
            yield _sorted(known.between(0, whole), ids[:whole], labels)
        held = known.between(whole, len(known))
    if held is not None and len(held):
        yield _sorted(held, group[held.hit], labels)


def _sorted(known: Some, ids: Ints, labels: Ints) -> Some:
    if len(known) > MOST:  # no group of more
        ids = ids * (len(known) // MOST + 1) + (np.arange(len(known)) - np.searchsorted(ids, ids)) // MOST
    order, spare = np.arange(len(known)), np.empty(len(known), np.int64)
    row, bound_by = (getattr(known, name) for name in known.PER_EVENT)
    if not kernel_order.sort_groups(ids, known.start, known.offset, row, bound_by, labels, order, spare):
        return known
    return known.take(order)
