"""Policies: what runs are worth, by name. The default asks the history; the others are what people try without one."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from acep_approx.automaton.registers import RegisterAutomaton
from acep_approx.automaton.words import register_text
from acep_approx.errors import UsageError
from acep_approx.matching.run_tables import places
from acep_approx.matching.shedding import Feature, Worth
from history.values import Values, fit_values

if TYPE_CHECKING:
    from history.graph import Graph
    from history.vectors import Scheme

Floats = npt.NDArray[np.float64]
PARTS = 16
"""Parts of the window where no history says how many there are."""
BY_LOT = 1e-3
"""Spread of the coin where it alone decides: scores lie between this and 1."""


def history(automaton: RegisterAutomaton, graph: Graph | None, window: int) -> Worth:  # noqa: ARG001
    """Gain per run-step as the history has it, less what runs that are kept reach as well."""
    known = _known(graph)
    return worth_of(automaton, known.scheme, fit_values(known, depths(automaton)))


def scores(automaton: RegisterAutomaton, graph: Graph | None, window: int) -> Worth:  # noqa: ARG001
    """As ``history``, each run by itself: no run takes away from what another is worth."""
    known = _known(graph)
    return worth_of(automaton, known.scheme, fit_values(known, depths(automaton), coverage=False))


def random(automaton: RegisterAutomaton, graph: Graph | None, window: int) -> Worth:  # noqa: ARG001
    """By lot: a coin per run, tossed once."""
    return _plain(automaton, lambda depth, part: np.ones(np.broadcast(depth, part).shape), BY_LOT, coin_per_run=True)


def oldest(automaton: RegisterAutomaton, graph: Graph | None, window: int) -> Worth:  # noqa: ARG001
    """The runs that started first are shed first."""
    return _plain(automaton, lambda depth, part: 1.0 + part + 0.0 * depth)


def most_advanced(automaton: RegisterAutomaton, graph: Graph | None, window: int) -> Worth:  # noqa: ARG001
    """The runs stay that have come the furthest."""
    return _plain(automaton, lambda depth, part: 1.0 + depth + 0.0 * part)


Policy = Callable[[RegisterAutomaton, "Graph | None", int], Worth]
POLICIES: dict[str, Policy] = {
    "history": history,
    "scores": scores,
    "random": random,
    "oldest": oldest,
    "most-advanced": most_advanced,
}
"""By name; each gets the automaton, the history (None: there is none) and the window in ticks."""
LEARNED = frozenset({"history", "scores"})
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


def worth_of(automaton: RegisterAutomaton, scheme: Scheme, values: Values) -> Worth:
    """What a history knows, for the kernel.

    Parameters
    ----------
    automaton : RegisterAutomaton
    scheme : Scheme
        Its places are the pools of the automaton, in their order.
    values : Values
    """
    features = []
    for (state, _), place in zip(places(automaton), scheme.places, strict=True):
        columns = {register_text(register): number for number, register in enumerate(automaton.live[state])}
        features.append(
            [
                Feature("key" if f.name == "key" else f.kind, columns.get(f.name, -1), f.buckets, f.edges, f.groups)
                for f in place.features
            ]
        )
    return Worth(
        features=features,
        remaining=scheme.remaining,
        since=tuple(scheme.since_limits.tolist()),
        gain=values.gain,
        cost=values.cost,
        overlap=values.overlap,
        covers=[row[row >= 0].tolist() for row in values.covers],
    )


def depths(automaton: RegisterAutomaton) -> npt.NDArray[np.int64]:
    """Per place the fewest arcs that lead there: how far its runs have come."""
    pools = places(automaton)
    arcs = automaton.automaton.arcs
    depth = {pools[0]: 0}
    for state, errors in pools:  # breadth first, as they are numbered
        for step in automaton.steps:
            target = step.target, errors + arcs[step.arc].cost
            if step.source == state and target in pools:
                depth.setdefault(target, depth[state, errors] + 1)
    return np.array([depth[pool] for pool in pools], np.int64)


def _known(graph: Graph | None) -> Graph:
    if graph is None:
        raise no_history("history")
    return graph


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
    *,
    coin_per_run: bool = False,
) -> Worth:
    """Worth by depth of the place and part of the window alone."""
    depth = depths(automaton).astype(np.float64)
    table = gain(depth[:, None], np.arange(PARTS, dtype=np.float64)[None, :]).ravel()
    return Worth(
        features=[()] * len(depth),
        remaining=PARTS,
        since=(),
        gain=table,
        cost=np.ones(len(table)),
        overlap=np.zeros(len(depth)),
        covers=[()] * len(depth),
        spread=spread,
        coin_per_run=coin_per_run,
    )
