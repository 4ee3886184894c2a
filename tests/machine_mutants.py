"""Variants of what machines made by hand need that are known to be wrong, and the first random machine that shows it.

For plain Python, like ``runs_mutants``.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from acep_approx.automaton.registers import RegisterAutomaton
from acep_approx.automaton.states import Step
from acep_approx.engines.runs.pools import Reactions
from acep_approx.engines.runs.tables import RunTables
from acep_approx.kernels.runs import begin as kernel_begin
from acep_approx.kernels.runs import blocks as kernel_blocks
from tests.machine_runs import disagreement
from tests.noticing import first_noticed
from tests.runs_mutants import rewritten


def conditions_on_what_is_ignored_hold() -> None:
    """What a run may ignore under a condition it always ignores."""
    rewritten(kernel_blocks, "begin_staying", "how == at.MAY_STAY", "False")


def kill_steps_kill_nothing() -> None:
    """A step without a target is no step."""
    real = RunTables._groups

    def groups(self: RunTables, pool: int, mask: int) -> Any:
        return [[(n, to) for n, to in group if to >= 0] for group in real(self, pool, mask)]

    RunTables._groups = groups  # type: ignore[method-assign]


def ignored_events_are_gaps() -> None:
    """A pool does not see the events that its runs ignore."""
    Reactions.follows = lambda *_: False  # type: ignore[method-assign]


def nothing_is_a_gap() -> None:
    """Events that no letter holds on end no run."""
    rewritten(kernel_begin, "begin_pool", "if gap and table", "if False and table")


def everything_is_ignored() -> None:
    """No event ends a run only because it is not ignored."""
    rewritten(kernel_blocks, "begin_staying", "how != at.LEAVE", "1")


def moves_are_those_of_the_kind() -> None:
    """What a step says of a register is not heard."""
    real = Step.computing

    def computing(self: Step, computed: Any) -> Step:
        return real(replace(self, moves={}), computed)

    Step.computing = computing  # type: ignore[method-assign]


def computed_registers_do_not_change() -> None:
    """They stay what they begin as, where no step says otherwise."""
    real = Step.computing

    def computing(self: Step, computed: Any) -> Step:
        return real(self, tuple(replace(one, update=None) for one in computed))

    Step.computing = computing  # type: ignore[method-assign]


def every_state_only_adds() -> None:
    """Runs are dropped and merged across events as if no step took any away."""
    RegisterAutomaton.is_passive = lambda *_: True  # type: ignore[method-assign]


def what_is_ignored_reads_no_register() -> None:
    """Registers are not kept for the conditions on what is ignored, and what they would say is not asked."""
    real = RegisterAutomaton.complete

    def complete(self: RegisterAutomaton) -> None:
        self.ignores = [replace(ignore, checks=()) for ignore in self.ignores]
        real(self)

    RegisterAutomaton.complete = complete  # type: ignore[method-assign]


def nothing() -> None:
    """The engine itself."""


MUTANTS = (
    nothing,
    conditions_on_what_is_ignored_hold,
    kill_steps_kill_nothing,
    ignored_events_are_gaps,
    nothing_is_a_gap,
    everything_is_ignored,
    moves_are_those_of_the_kind,
    computed_registers_do_not_change,
    every_state_only_adds,
    what_is_ignored_reads_no_register,
)


SHOWN_BY = {"ignored_events_are_gaps": 24, "moves_are_those_of_the_kind": 61}
"""Worlds that are looked at first."""


def noticed(mutant: str, worlds: int) -> int:
    """A world that shows that a mutant is wrong; -1 if none does."""
    {change.__name__: change for change in MUTANTS}[mutant]()
    return first_noticed(disagreement, worlds, SHOWN_BY.get(mutant))
