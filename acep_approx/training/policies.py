"""Policies: what runs are worth, by name, and which runs take away what others are worth.

The default asks the history; the others are what people try without one. Two sources say how much of what runs of one
group reach a run of another reaches as well: runs counted side by side (``history.counting``), and match maps
(``history.coverage.groups``).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from acep_approx.arrays import Floats, Ints
from acep_approx.automaton.registers import RegisterAutomaton
from acep_approx.automaton.resolve import Register, equality
from acep_approx.engines.runs.worth import RunFeature, Worth
from acep_approx.errors import UsageError
from acep_approx.kernels.runs.scores import JOIN_WORDS
from acep_approx.query.syntax import Expression
from acep_approx.training.trace import AHEAD, PACE_NAME, context_names, numbers_of, register_names
from history.coverage.group_covers import GroupCovers
from history.coverage.groups import covers_by_maps
from history.graph import Graph
from history.trace import KEY
from history.trees import Trees
from history.values import fit_values, stopping_index
from history.vectors import Feature, Scheme

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


def joins(automaton: RegisterAutomaton) -> Ints | None:
    """In which registers runs must agree that one covers the other; None where no later event must be equal to any.

    A run covers another if whatever comes can do for it what it can do for the other. An event that must be equal to a
    register does so only for runs that have the same there.

    Returns
    -------
    int64 array or None
        Shape (places, places, ``JOIN_WORDS``): of a run and what covers it.
    """
    wanted = [_equalled(automaton, state) for state, _ in automaton.places]
    if not any(wanted):
        return None
    found = np.full((len(wanted), len(wanted), JOIN_WORDS), -1, np.int64)
    for place, (state, _) in enumerate(automaton.places):
        live = automaton.live[state]
        for other, registers in enumerate(wanted):
            if registers <= set(live) and len(registers) < JOIN_WORDS:
                columns = sorted(live.index(register) for register in registers)
                found[place, other, : len(columns) + 1] = [len(columns), *columns]
    return found


def _equalled(automaton: RegisterAutomaton, state: int) -> set[Register]:
    """The registers of a state that events to come must be equal to."""
    reached, waiting, found = {state}, [state], set[Register]()
    while waiting:
        for step in automaton.leaving(waiting.pop()):
            found |= {known[0] for check in step.checks if (known := equality(check)) is not None}
            if step.target is not None and step.target not in reached:
                reached.add(step.target)
                waiting.append(step.target)
    return found & set(automaton.live[state])


# --- what runs are worth ------------------------------------------------------------------------------------

PARTS = 16
"""Parts of the window where no history says how many there are."""
MEASURED, BY_RUNS, BY_MAPS = -1.0, -2.0, -3.0
"""In the place of an overlap: that of each place as it was in the past; that of each pair of groups, counted run by
run; the same by their match maps."""
AGREE = 1.0
"""An overlap of this and a share: that share, beside runs that agree in what later events must be equal to."""
OVERLAP = 0.95
"""Share of its match points that a run is taken to lose beside a later one, where no past says: most pasts say this."""
LEAST_GAIN, NO_GAIN = 1e-3, 1e-6
"""Gain at least, as a share of the mean one and in match points."""
RANDOM_SPREAD = 1e-3
"""Spread of the coin where it alone decides: scores lie between this and 1."""


def history(automaton: RegisterAutomaton, graph: Graph | None, overlap: float) -> Worth:
    """Gain per run-step as the history has it, less what runs that are kept reach as well.

    ``overlap`` as in ``worth_of``, or ``MEASURED``, ``BY_RUNS``, ``BY_MAPS``; above ``AGREE`` that much less.
    """
    if graph is None:
        raise no_history("history")
    gain, cost = gains_and_costs(graph)
    if overlap > AGREE:
        worth = worth_of(automaton, graph.scheme, raised(gain), cost, overlap - AGREE)
        return replace(worth, joins=joins(automaton))
    worth = worth_of(automaton, graph.scheme, raised(gain), cost, abs(overlap))
    return beside_others(worth, automaton, graph, overlap)


def gains_and_costs(graph: Graph) -> tuple[Floats, Floats]:
    """What runs of each vertex are ranked by: their gain over their cost, or the index alone."""
    if graph.scheme.values == "index":
        index = stopping_index(graph)
        return index, np.ones_like(index)
    values = fit_values(graph)
    return values.gain, values.cost


def beside_others(worth: Worth, automaton: RegisterAutomaton, graph: Graph, overlap: float) -> Worth:
    """The same worth, with what runs take from one another as a history has recorded it; see ``history``."""
    if overlap >= 0:
        return worth
    by_group = {BY_RUNS: covers_by_runs, BY_MAPS: covers_by_match_maps}.get(overlap)
    found = by_group(automaton, graph) if by_group else None
    return replace(worth, overlap=measured_overlaps(graph), by_group=found)


def coverage(automaton: RegisterAutomaton, graph: Graph | None, overlap: float) -> Worth:  # noqa: ARG001
    """What a run adds to those that are kept, by the match maps of the groups they are in.

    A history without match maps has nothing to compare; each group then covers itself alone.
    """
    return history(automaton, graph, BY_MAPS)


def raised(gain: Floats) -> Floats:
    """Gains, none of them quite nothing: what never led to anything may have been seen too seldom."""
    return np.maximum(gain, LEAST_GAIN * float(gain.mean()) + NO_GAIN)


def scores(automaton: RegisterAutomaton, graph: Graph | None, overlap: float) -> Worth:  # noqa: ARG001
    """As ``history``, each run by itself: no run takes away from what another is worth."""
    return replace(history(automaton, graph, 0.0), dominated=1.0)


def random(automaton: RegisterAutomaton, graph: Graph | None, overlap: float) -> Worth:  # noqa: ARG001
    """At random: a coin per run, tossed once."""
    return replace(random_lineages(automaton), coin_per_run=True)


def random_lineages(automaton: RegisterAutomaton) -> Worth:
    """At random, one coin for all runs that began with one event: whole lineages stay or go, some get to their end."""
    return _plain(automaton, lambda _depth, _part: np.ones(1), RANDOM_SPREAD)


def oldest(automaton: RegisterAutomaton, graph: Graph | None, overlap: float) -> Worth:  # noqa: ARG001
    """The runs that started first are shed first."""
    return _plain(automaton, lambda _depth, part: 1.0 + part)


def most_advanced(automaton: RegisterAutomaton, graph: Graph | None, overlap: float) -> Worth:  # noqa: ARG001
    """The runs stay that have come the furthest."""
    return _plain(automaton, lambda depth, _part: 1.0 + depth)


Policy = Callable[[RegisterAutomaton, "Graph | None", float], Worth]
POLICIES: dict[str, Policy] = {
    "history": history,
    "coverage": coverage,
    "scores": scores,
    "random": random,
    "oldest": oldest,
    "most-advanced": most_advanced,
}
"""By name; each gets the automaton, the history graph (None: there is none) and the overlap to read it with."""
LEARNED = frozenset({"history", "coverage", "scores"})
"""Those that need a history."""


def policy_named(name: str) -> Policy:
    """The policy of a name.

    Raises
    ------
    UsageError
        ``ACEP-U031``: there is none.
    """
    if name not in POLICIES:
        raise UsageError(f"there is no policy {name!r}", code="ACEP-U031", hint="choose " + ", ".join(POLICIES))
    return POLICIES[name]


def worth_of(automaton: RegisterAutomaton, scheme: Scheme, gain: Floats, cost: Floats, overlap: float = 0.0) -> Worth:
    """What a history knows, for the kernel.

    Parameters
    ----------
    automaton : RegisterAutomaton
    scheme : Scheme
        Its places are the pools of the automaton, in their order.
    gain, cost : float64 arrays, shape (vertices,)
        Match points to come, and run-steps.
    overlap : float, default 0
        Share of its match points that a run loses beside a later one of its place, or of one further on; 0: coverage
        is off.
    """
    names = register_names(automaton)
    features = []
    for (state, _), place in zip(automaton.places, scheme.places, strict=True):
        columns = {names[r]: number for number, r in enumerate(automaton.live[state]) if r in names}
        features.append([_feature(feature, columns, automaton, state) for feature in place.features])
    return Worth(
        features=features,
        remaining=scheme.remaining,
        since=tuple(scheme.since_limits.tolist()),
        gain=gain,
        cost=cost**scheme.cost_power,
        overlap=np.full(len(scheme.places), overlap),
        covers=covering(automaton) if overlap > 0 else [()] * len(scheme.places),
        scheme=scheme,
    )


def _feature(known: Feature, columns: dict[str, int], automaton: RegisterAutomaton, state: int) -> RunFeature:
    rest = known.buckets, known.edges, known.groups
    if known.name == KEY:
        return RunFeature("key", -1, *rest)
    if known.name == PACE_NAME:
        return RunFeature("pace", -1, *rest)
    if known.trees is not None:
        return RunFeature("context", -1, *rest, trees=known.trees, inputs=_inputs(known.trees, automaton))
    if known.name.endswith(AHEAD):
        column = columns[known.name.removesuffix(AHEAD)]
        return RunFeature("ahead", column, *rest, of=automaton.live[state][column].of)
    if known.kind in ("difference", "sum"):
        one, other = (columns[name] for name in known.of)
        return RunFeature(known.kind, one, *rest, other=other)
    return RunFeature(known.kind, columns[known.name], *rest)


def _inputs(trees: Trees, automaton: RegisterAutomaton) -> tuple[Expression, ...]:
    """What the trees ask of the current event; before that come its tick and the pace of its key."""
    numbers = numbers_of(automaton)
    names = dict(zip(context_names(numbers), (None, None, *numbers), strict=True))
    found = [names[name] for name in trees.inputs]
    if found[:2] != [None, None] or None in found[2:]:
        raise ValueError("the trees of the context look at something else")
    return tuple(of for of in found if of is not None)


def no_history(policy: str) -> UsageError:
    """The error of a policy that has nothing to rank runs by."""
    return UsageError(
        f"the policy {policy!r} ranks runs by a history, and there is none",
        code="ACEP-U032",
        hint="learn one with acep train and give it with --history, or choose --policy random or oldest",
    )


def _plain(
    automaton: RegisterAutomaton,
    gain: Callable[[Floats, Floats], Floats],
    spread: float = 10.0,
) -> Worth:
    """Worth by depth of the place and part of the window alone."""
    depth = depths(automaton).astype(np.float64)
    gains = gain(depth[:, None], np.arange(PARTS, dtype=np.float64)[None, :])
    table = np.broadcast_to(gains, (len(depth), PARTS)).ravel()
    return Worth(
        features=[()] * len(depth),
        remaining=PARTS,
        since=(),
        gain=table,
        cost=np.ones(len(table)),
        overlap=np.zeros(len(depth)),
        covers=[()] * len(depth),
        spread=spread,
    )
