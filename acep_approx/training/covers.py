"""Which runs take away what others are worth: places behind one another, and groups by what the history has recorded.

Two sources say how much of what runs of one group reach a run of another reaches as well: runs counted side by side
(``history.overlap``), and match maps (``history.coverage.groups``).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from acep_approx.arrays import Floats
from acep_approx.automaton.registers import RegisterAutomaton
from history.coverage.group_covers import GroupCovers
from history.coverage.groups import covers_by_maps
from history.graph import Graph

FEW = 20
"""Match points that the mean of all places counts for where one place, or pair of groups, has seen few."""
MOST_COVERS = 16
"""Groups that may cover one."""


def covering(automaton: RegisterAutomaton) -> list[list[int]]:
    """Per place those whose runs can stand for its own: itself, and all further on that its runs can get to.

    A repetition leads back as well; what has yet to come again that far stands for nothing.
    """
    pools = automaton.places
    number = {pool: n for n, pool in enumerate(pools)}
    after = [
        {
            number[target]
            for step in automaton.steps
            if step.source == state and (target := automaton.leads_to(step, errors)) is not None
        }
        for state, errors in pools
    ]
    depth = depths(automaton)
    found = []
    for place in range(len(pools)):
        reached = [place]
        for other in reached:  # grows while it runs
            reached += sorted(after[other] - set(reached))
        found.append([other for other in reached if depth[other] >= depth[place]])
    return found


def depths(automaton: RegisterAutomaton) -> npt.NDArray[np.int64]:
    """Per place the fewest arcs that lead there: how far its runs have come."""
    pools = automaton.places
    depth = {pools[0]: 0}
    for state, errors in pools:  # breadth first, as they are numbered
        for step in automaton.steps:
            target = automaton.leads_to(step, errors)
            if step.source == state and target is not None:
                depth.setdefault(target, depth[state, errors] + 1)
    return np.array([depth[pool] for pool in pools], np.int64)


def measured_overlaps(graph: Graph) -> Floats:
    """Per place, which share of the points that a run could still reach one with a later start reached as well."""
    counts, place = graph.counts, graph.scheme.place_of_group
    shares = np.zeros(len(graph.scheme.places))
    ours = place[counts.covered] == place[counts.cover]
    everything = counts.shared[ours].sum() / max(counts.shareable[ours].sum(), 1)
    for number in range(len(shares)):
        mine = ours & (place[counts.covered] == number)
        shares[number] = (counts.shared[mine].sum() + FEW * everything) / (counts.shareable[mine].sum() + FEW)
    return shares


def group_overlaps(graph: Graph) -> Floats:
    """Per group, which share of the points that a run could still reach a later one of the group reached as well."""
    counts, own = graph.counts, graph.counts.covered == graph.counts.cover
    shared, shareable = np.zeros((2, graph.scheme.groups))
    shared[counts.covered[own]], shareable[counts.covered[own]] = counts.shared[own], counts.shareable[own]
    of_place = measured_overlaps(graph)[graph.scheme.place_of_group]
    return np.asarray((shared + FEW * of_place) / (shareable + FEW))


def covers_by_runs(automaton: RegisterAutomaton, graph: Graph) -> GroupCovers:
    """Which groups cover which, as counted run by run.

    The share of a pair of groups that were seldom seen together is near that of their places. Each group has the 16
    covers that have reached most of its match points; groups that never covered one another do not.
    """
    counts, scheme = graph.counts, graph.scheme
    place, places = scheme.place_of_group, len(scheme.places)
    pair = place[counts.covered] * places + place[counts.cover]
    shared, shareable = (np.bincount(pair, column, places**2) for column in (counts.shared, counts.shareable))
    of_pair = (shared + FEW * np.repeat(measured_overlaps(graph), places)) / (shareable + FEW)
    share = (counts.shared + FEW * of_pair[pair]) / (counts.shareable + FEW)
    allowed, own = covering(automaton), group_overlaps(graph)
    lists: list[list[tuple[int, float, float]]] = [[(group, float(own[group]), 0.0)] for group in range(scheme.groups)]
    for row in np.lexsort((counts.cover, -counts.shared)).tolist():
        group, cover = int(counts.covered[row]), int(counts.cover[row])
        is_new = cover != group and int(place[cover]) in allowed[int(place[group])] and counts.shared[row] > 0
        if is_new and len(lists[group]) < MOST_COVERS:
            lists[group].append((cover, float(share[row]), 0.0))
    return GroupCovers.of(lists)


def covers_by_match_maps(automaton: RegisterAutomaton, graph: Graph) -> GroupCovers:
    """Which groups cover which, by their match maps.

    A map says what *some* run of a group reached. The chance that the one run at hand reaches it too is taken from runs
    of the group counted side by side.
    """
    found = covers_by_maps(graph, covering(automaton), MOST_COVERS)
    reaches = group_overlaps(graph)[found.cover]
    return replace(found, share=found.share * reaches, more=found.more * reaches)
