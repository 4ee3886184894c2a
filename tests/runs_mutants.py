"""Variants of the runs engine that are known to be wrong, and the first random world that shows it.

For plain Python, where kernels can be changed line by line like any other code.
"""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import replace
from random import Random
from typing import Any

import numpy as np

from acep_approx.automaton import registers
from acep_approx.automaton.automaton import START
from acep_approx.automaton.resolve import dynamic_conditions
from acep_approx.engines.runs import runs, tables
from acep_approx.kernels.runs import advance as kernel_advance
from acep_approx.kernels.runs import begin as kernel_begin
from acep_approx.kernels.runs import blocks as kernel_blocks
from acep_approx.kernels.runs import ends as kernel_ends
from acep_approx.kernels.runs import few as kernel_few
from acep_approx.kernels.runs import fronts as kernel_fronts
from acep_approx.kernels.runs import pools as kernel_pools
from acep_approx.matching import tick_places
from acep_approx.matching.outputs import completed
from acep_approx.matching.outputs.guard_log import GuardLog
from acep_approx.matching.outputs.known import FAR
from acep_approx.matching.outputs.matches import CompletedMatches
from tests.noticing import first_noticed
from tests.numbered_worlds import numbered_world
from tests.runs_engine import agrees
from tests.tied_worlds import tied_world


def rewritten(module: Any, function: str, old: str, new: str) -> None:
    """Change a line of a kernel, wherever its module's own and other kernels call it; it must fit exactly."""
    source = inspect.getsource(getattr(module, function))
    assert source.count(old) == 1, f"{function} has changed: the mutant does not fit any more\n{old}"
    scope = vars(module)
    changed = dict(scope, **dict.fromkeys(("inline", "called", "block_kernel"), lambda kernel: kernel))
    exec(textwrap.dedent(source.replace(old, new)), changed)
    ends = kernel_pools, kernel_fronts, kernel_ends
    for other in (*ends, kernel_blocks, kernel_begin, kernel_few, kernel_advance, runs.kernel):
        if hasattr(other, function):
            setattr(other, function, changed[function])


def inhibiting(rule: Callable[[registers._Compiler, registers.Step], bool]) -> None:
    """Another rule for the steps that keep an event from being skipped, where the strategy has any."""
    real = registers._Compiler._step

    def step(self: registers._Compiler, *args: Any) -> registers.Step:
        right = real(self, *args)
        arc = self.automaton.arcs[right.arc]
        has_any = self.query.strategy != "skip_till_any_match" and arc.source != START
        return replace(right, inhibits=has_any and rule(self, right))

    registers._Compiler._step = step  # type: ignore[method-assign]


def missing_letters_inhibit() -> None:
    """Under skip till next match moves past a missing letter keep events from being skipped, too."""

    def inhibits(self: registers._Compiler, step: registers.Step) -> bool:
        arc = self.automaton.arcs[step.arc]
        return (arc.source, arc.gap) not in self.is_taken or step.inhibits

    inhibiting(inhibits)


def proceed_inhibits_beside_take() -> None:
    """A move out of a repetition keeps events from being skipped where another round would."""
    inhibiting(lambda self, step: self.automaton.arcs[step.arc].cost == 0)


def every_step_is_ignorable() -> None:
    """Skip till next match is skip till any match."""
    inhibiting(lambda *_: False)


def a_condition_on_a_missing_variable_is_false() -> None:
    """Instead of void."""
    real = completed.Finder.found

    def all_bound(self: completed.Finder, events: Any, hits: Any) -> Iterator[CompletedMatches]:
        names = [c.names for c in dynamic_conditions(self.automaton.query)]
        for part in real(self, events, hits):
            variables = np.array(self.automaton.automaton.variables or ("",))[self.labels[part.arc]]
            bound = [set(variables[i:j]) for i, j in zip(part.offset[:-1], part.offset[1:], strict=True)]
            yield part.take(np.flatnonzero([all(some <= one for some in names) for one in bound]))

    completed.Finder.found = all_bound  # type: ignore[method-assign]


def the_window_is_exclusive() -> None:
    """Shorter by one tick."""
    real = runs.Runs.__init__

    def shorter(self: runs.Runs, automaton: Any, columns: Any, window: int, *args: Any, **options: Any) -> None:
        real(self, automaton, columns, window - 1, *args, **options)

    runs.Runs.__init__ = shorter  # type: ignore[method-assign]


def expired_runs_match() -> None:
    """The window is not looked at when a match is complete, only when runs are swept."""
    rewritten(kernel_blocks, "test_step", "pools.words[block.starts + j] >= event.low", "1")
    rewritten(kernel_few, "choose_few", "pools.words[block.starts + j] >= low", "1")


def merging_ignores_a_register() -> None:
    """Runs that differ in their last register only are taken for equal."""
    for function in ("hash_registers", "same_registers"):
        rewritten(kernel_pools, function, "for f in range(fields):", "for f in range(fields - 1):")


def the_wrong_runs_are_dominated() -> None:
    """Of two runs the one that can do more is dropped."""
    real = tables.preferences
    other = {"low": "high", "high": "low", "equal": "equal"}
    tables.preferences = lambda automaton: [tuple(other[b] for b in state) for state in real(automaton)]  # type: ignore[misc, assignment]


def a_later_start_does_not_count() -> None:
    """A run that started earlier may take the place of one that started later."""
    old = "began >= start if dominate else began <= start"
    rewritten(kernel_fronts, "of_those", old, "began >= NEVER")


def merged_runs_have_the_earliest_start() -> None:
    """Instead of the latest: matches leave the window too early."""
    old = "words[base + child] = max(words[base + child], start)"
    rewritten(kernel_blocks, "equal_child", old, old.replace("max", "min"))


def alternatives_are_joined_by_overwriting() -> None:
    """Merging across events writes into a chain of alternatives instead of making a link over both."""
    old = "words[base + room + other] = used\n                used += 1"
    new = """child_link = words[base + room + child]
                links[child_link * 5 + 2] = words[base + room + other]
                links[child_link * 5 + 4] = words[base + other]
                words[base + room + other] = child_link"""
    rewritten(kernel_pools, "across_events", old, new)


def neighbours_need_not_be_neighbours() -> None:
    """Contiguity lets runs of any event before go on."""
    rewritten(kernel_begin, "begin_pool", "table[p + LAST_PLACE] != event.place - 1", "False")


def a_guard_passes() -> None:
    """A negation between two events is not looked at."""
    real = registers._Compiler._step

    def step(self: registers._Compiler, *args: Any) -> registers.Step:
        return replace(real(self, *args), guard=frozenset())

    registers._Compiler._step = step  # type: ignore[method-assign]


def a_late_guard_looks_past_the_gap() -> None:
    """A negation with conditions excludes events up to the end of the window, not only between its neighbours."""
    real = GuardLog.between

    def wider(self: GuardLog, letter: int, slot: Any, rows: Any, ticks: Any) -> Any:
        return real(self, letter, slot, (rows[0], np.full_like(rows[1], FAR)), ticks)

    GuardLog.between = wider  # type: ignore[method-assign]


def an_event_is_used_twice() -> None:
    """Children of an event are runs before it is done."""
    old = "is_charged = table[p + CHILDREN],"
    rewritten(kernel_advance, "try_source", old, "is_charged = table[p + RUNS],")
    rewritten(kernel_few, "try_few", "table[p + CHILDREN] - head", "table[p + RUNS] - head")


def children_are_seen_at_their_time() -> None:
    """With SIMULTANEOUS: what one event has made is there for the others of its time."""
    rewritten(kernel_begin, "end_tick", "if table[p + LAST_PLACE] == event.place:", "if False:")


def runs_that_went_on_stay() -> None:
    """With SIMULTANEOUS: no run leaves when its time is over."""
    rewritten(kernel_advance, "note_gone", "1 - lanes.stay[j]", "0")


def only_the_last_event_of_a_time_takes_runs_away() -> None:
    """With SIMULTANEOUS: what earlier events of a time have taken away comes back."""
    rewritten(kernel_advance, "note_gone", "|=", "=")


def runs_pass_over_neighbours_of_no_use() -> None:
    """With SIMULTANEOUS: under contiguity only an event that runs are tested with takes them away."""
    rewritten(kernel_begin, "begin_pool_again", "stays == at.LEAVE", "False")


def a_guard_of_the_same_time_counts() -> None:
    """With SIMULTANEOUS: a negated event excludes what comes at its own time."""
    rewritten(kernel_begin, "write_scalars", "is_of_tick = shape[at.SIMULTANEOUS] and", "is_of_tick = False and")


def a_late_guard_of_the_same_time_counts() -> None:
    """With SIMULTANEOUS: the same, where complete matches are tested."""
    real = completed.Finder._gaps

    def gaps(self: completed.Finder, found: Any, letter: int) -> Any:
        match, low, high, since, _ = real(self, found, letter)
        return match, low, high, since, np.full(len(match), FAR)

    completed.Finder._gaps = gaps  # type: ignore[method-assign]


def places_count_events() -> None:
    """With SIMULTANEOUS: events at one time have places of their own."""
    tick_places.TickPlaces.of = lambda self, slot, ticks: np.arange(len(ticks))  # type: ignore[method-assign]


def nothing() -> None:
    """The engine itself."""


MUTANTS = (
    nothing,
    missing_letters_inhibit,
    proceed_inhibits_beside_take,
    every_step_is_ignorable,
    a_condition_on_a_missing_variable_is_false,
    the_window_is_exclusive,
    expired_runs_match,
    merging_ignores_a_register,
    the_wrong_runs_are_dominated,
    a_later_start_does_not_count,
    merged_runs_have_the_earliest_start,
    alternatives_are_joined_by_overwriting,
    neighbours_need_not_be_neighbours,
    a_guard_passes,
    a_late_guard_looks_past_the_gap,
    an_event_is_used_twice,
)


TIED_MUTANTS = (
    children_are_seen_at_their_time,
    runs_that_went_on_stay,
    only_the_last_event_of_a_time_takes_runs_away,
    runs_pass_over_neighbours_of_no_use,
    a_guard_of_the_same_time_counts,
    a_late_guard_of_the_same_time_counts,
    places_count_events,
)
"""Those that only worlds with SIMULTANEOUS can tell."""


SHOWN_BY = {
    "missing_letters_inhibit": 50,
    "proceed_inhibits_beside_take": 208,
    "every_step_is_ignorable": 50,
    "expired_runs_match": 109,
    "merged_runs_have_the_earliest_start": 63,
    "neighbours_need_not_be_neighbours": 138,
    "a_guard_passes": 202,
    "a_late_guard_looks_past_the_gap": 188,
    "runs_that_went_on_stay": 25,
    "only_the_last_event_of_a_time_takes_runs_away": 72,
    "runs_pass_over_neighbours_of_no_use": 131,
    "a_guard_of_the_same_time_counts": 383,
    "a_late_guard_of_the_same_time_counts": 125,
}
"""Worlds that are looked at first."""


def noticed(mutant: str, worlds: int) -> int:
    """A world that shows that a mutant is wrong; -1 if none does."""
    change = {change.__name__: change for change in (*MUTANTS, *TIED_MUTANTS)}[mutant]
    change()
    world_of = (lambda seed: tied_world(Random(seed))) if change in TIED_MUTANTS else numbered_world
    return first_noticed(lambda seed: agrees(world_of(seed)), worlds, SHOWN_BY.get(mutant))
