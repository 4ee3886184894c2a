"""Complete matches as columns: what is listed, tested, chosen among and put into tables."""

from __future__ import annotations

from dataclasses import dataclass

from acep_approx.arrays import Ints, Ragged


@dataclass(frozen=True)
class CompletedMatches(Ragged):
    """Matches as columns; match ``m`` binds ``id[offset[m] : offset[m + 1]]`` by the arcs ``arc``, earliest first.

    ``end`` is the row that completes it, ``tick`` that row's tick, ``start`` the tick of its first event (both are
    numbers within the partition in count windows).
    """

    slot: Ints
    end: Ints
    tick: Ints
    start: Ints
    errors: Ints
    final: Ints
    offset: Ints
    id: Ints
    arc: Ints


NO_MATCHES = CompletedMatches.joined([])
