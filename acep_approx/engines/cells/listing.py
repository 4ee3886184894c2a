"""Lists the matches of hits from arc logs: as a walk over any automaton, or as loops where it is a plain sequence."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from acep_approx.arrays import Ints, extended
from acep_approx.automaton.automaton import START
from acep_approx.engines.batches import Grouped
from acep_approx.engines.cells.arclogs import ArcLogs
from acep_approx.engines.columns import Listed, Placement
from acep_approx.engines.order import MOST, room_for, scratch
from acep_approx.kernels.cells import chains, layout
from acep_approx.kernels.cells import enumerate as walks
from acep_approx.kernels.columns import WRITTEN
from acep_approx.kernels.order import Found

IN_CACHE = 1 << 12
"""Bound events that the walk writes before they are put in order and into columns."""
DEEPENED = "frames", "cursors", "path"
"""What a walk has of arrays that grow with its depth."""


def listed(logs: ArcLogs, hits: Ints, events: Grouped, placement: Placement, chunk: int) -> Iterator[Listed]:
    """The matches of hits, in order, at most about ``chunk`` bound events at a time.

    Parameters
    ----------
    logs : ArcLogs
    hits : int64
        As ``logs.update`` gave them for ``events``.
    events : Grouped
    placement : Placement
        Where the events of a match go, by places in the place of ids.
    chunk : int

    Yields
    ------
    Listed
        The hit of a match is the first with its event and errors.

    Complexity: O(length of the output); see ``kernels.cells.enumerate`` and ``chains``.
    """
    chain = _chain(logs)
    if len(chain) and not (placement.lists or placement.keeps_labels):
        yield from _by_loops(logs, chain, hits, events, placement, chunk)
    else:
        yield from _by_walk(logs, hits, events, placement, chunk)


def _chain(logs: ArcLogs) -> Ints:
    """The logs of a plain sequence, in its order, but for the last event, which has none; empty where it is none."""
    none, names = np.zeros(0, np.int64), len(logs.determinised.automaton.variables)
    if names < 2 or len(logs.arcs) != names:
        return none
    arcs = sorted(logs.arcs, key=lambda arc: arc[1])
    sources, labels, targets = np.array(arcs, np.int64).reshape(-1, 3).T
    if labels.tolist() != list(range(names)) or sources.tolist() != [START, *targets[:-1].tolist()]:
        return none
    numbers = np.array([logs.arcs[arc] for arc in arcs])
    words, offsets = logs.tables
    at = offsets[layout.ARC] + layout.ARC_COLUMNS * numbers
    is_last = np.arange(names) == names - 1
    ends, goes_on = words[at + layout.ARC_ERR] >= 0, words[at + layout.ARC_KEEPS] == 1
    return numbers[:-1] if (ends == is_last).all() and (goes_on != is_last).all() else none


def _by_loops(
    logs: ArcLogs, chain: Ints, hits: Ints, events: Grouped, placement: Placement, chunk: int
) -> Iterator[Listed]:
    names, room, status = len(chain) + 1, 2 * hits.size, chains.COLUMNS_FULL
    sizes = chains.CHAIN_HEADER, chains.LEVEL_COLUMNS * names, names, layout.RANGE * logs.width
    header, levels, path, ranges = (np.zeros(size, np.int64) for size in sizes)
    at = chains.Chain(hits, header, chain, levels, path, ranges)
    while status != chains.DONE:
        room = min(max(chunk // names, 1), 4 * room)
        columns = placement.room(room, 0)
        status = chains.list_chains(logs.batch(events), logs.window, logs.width, logs.held, at, columns)
        if columns.header[WRITTEN]:
            yield Listed.written(columns)


def _by_walk(logs: ArcLogs, hits: Ints, events: Grouped, placement: Placement, chunk: int) -> Iterator[Listed]:
    sizes = layout.WALK_HEADER, 64 * layout.FRAME, layout.CURSOR * (logs.width + 64), layout.RANGE * logs.width, 128
    at = layout.Walk(hits, *(np.zeros(size, np.int64) for size in sizes))
    found, status = room_for(min(chunk, IN_CACHE, 8 * hits.size)), walks.OUT_FULL
    group, labels = np.arange(hits.size // 2), np.arange(len(placement.column))  # matches bear the first of their hits
    listing = layout.Listing(group, MOST, int(logs.keeps_order), scratch(found.hit.size), labels, placement.column)
    walking = logs.batch(events), logs.window, logs.tables, logs.held
    matches = values = found.hit.size  # at first, to learn how many there are to so many events
    while status != walks.DONE:
        columns = placement.room(matches, values)
        at.header[layout.EVENTS_OUT] = 0
        while (status := walks.list_matches(*walking, at, found, listing, columns)) == walks.DEEPER:
            at = at._replace(**{name: extended(getattr(at, name), 2 * getattr(at, name).size, 0) for name in DEEPENED})
        if status == walks.OUT_FULL:
            found = Found(*(extended(column, 2 * column.size) for column in found))
            listing = listing._replace(order=scratch(found.hit.size))
        written, events_out = int(columns.header[WRITTEN]), int(at.header[layout.EVENTS_OUT])
        if written:
            matches = min(8 * matches, chunk * written // events_out)
            part = Listed.written(columns)
            most = events_out if placement.keeps_labels else max((len(ids) for _, ids in part.lists), default=0)
            values = 11 * matches * most // (10 * written)
            yield part
        matches, values = max(matches, found.hit.size), values + found.id.size
