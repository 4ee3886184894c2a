"""Pools of runs as they are planned, and what an event does to their runs: where steps lead, whether they stay."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from acep_approx.automaton.registers import RegisterAutomaton
from acep_approx.kernels.runs import layout
from acep_approx.kernels.runs.pools import APART


@dataclass(frozen=True)
class Pool:
    """A state with a number of errors, and what becomes of runs that reach it.

    ``merge``: of runs that one event brings here; ``across``: whether runs are merged with those of other events, by an
    index over the registers ``keys``; ``is_probed``: whether events find runs by it; ``front``: which values of each
    register are better (none: all runs are kept); ``in_chain``: whether only runs of one chain of the index
    can be better than one another; ``stays``: whether anything can come after; ``is_end``: whether a match can end
    here; ``alike``: of the ``fields``, how many runs that are merged must agree in; ``waits_for``: the threshold
    that its bounds are about (``runs.step_code``).
    """

    state: int
    errors: int
    merge: int
    fields: int
    across: bool = False
    is_probed: bool = False
    keys: tuple[int, ...] = ()
    front: tuple[int, ...] = ()
    in_chain: bool = False
    stays: bool = True
    is_end: bool = False
    alike: int = 0
    waits_for: int = -1


KILLS = -1
"""In the place of the pool that a step leads to: it only takes runs away."""
Group = list[tuple[int, int]]
"""Steps that are taken together, with the pools they lead to."""


class Reactions:
    """The pools of an automaton under events, which are told by their letters as a mask.

    Parameters
    ----------
    automaton : RegisterAutomaton
    pools : sequence of Pool
    keeps : sequence of bool
        Per step whether the registers that it does not set stay in their columns.
    """

    def __init__(self, automaton: RegisterAutomaton, pools: Sequence[Pool], keeps: Sequence[bool]) -> None:
        self.automaton = automaton
        self.pools = pools
        self._keeps = keeps
        self._number = {(pool.state, pool.errors): i for i, pool in enumerate(pools)}

    def end(self, number: int, errors: int) -> int | None:
        """The pool that a step leads to after ``errors``; None where it would be one error too many."""
        step = self.automaton.steps[number]
        if step.target is None:
            return KILLS
        target = self.automaton.leads_to(step, errors)
        return self._number[target] if target is not None else None

    def how(self, pool: int, mask: int) -> int:
        """What an event of ``mask`` does to the runs of a pool if no step inhibits."""
        ignore = self.automaton.ignores[self.pools[pool].state]
        if pool == 0:
            return layout.STAY
        if not ignore.passes(mask):
            return layout.LEAVE
        return layout.MAY_STAY if ignore.checks else layout.STAY

    def follows(self, pool: int, mask: int) -> bool:
        """Whether a pool must see an event pass, because its runs end where others come between."""
        ignore = self.automaton.ignores[self.pools[pool].state]
        return ignore.needs_neighbours and ignore.passes(mask)

    def target(self, pool: int, mask: int) -> list[int]:
        """The words of a pool that an event of ``mask`` has to do with."""
        ignore = self.automaton.ignores[self.pools[pool].state]
        return [pool, int(ignore.needs_neighbours), self.how(pool, mask)]

    def is_in_place(self, pool: int, number: int, target: int, group: Group, mask: int) -> bool:
        """Whether runs that take a step stay in their pool, alone: the same runs with other registers."""
        here = self.pools[pool]
        goes_on = self.how(pool, mask) == layout.LEAVE or self.automaton.steps[number].inhibits
        is_only_one = sum(end == pool for _, end in group) == 1
        is_free = self._keeps[number] and not self.automaton.is_simultaneous and here.merge == APART and not here.is_end
        return target == pool and is_only_one and goes_on and is_free

    def removes(self, pool: int, group: Group, mask: int) -> bool:
        """Whether runs leave their pool on an event of ``mask``."""
        if pool == 0:
            return False
        if self.how(pool, mask) != layout.STAY:
            return True
        steps = self.automaton.steps
        stays = (self.is_in_place(pool, n, target, group, mask) and not steps[n].guard for n, target in group)
        return any(steps[n].inhibits and not stay for (n, _), stay in zip(group, stays, strict=True))
