"""Variants of how queries in CEL are compiled and run that are known to be wrong, and the first seed that shows it.

For plain Python, like ``runs_mutants``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from acep_approx.automaton import algebra
from acep_approx.kernels.runs import advance as kernel_advance
from acep_approx.kernels.runs import blocks as kernel_blocks
from acep_approx.kernels.runs import ends as kernel_ends
from acep_approx.kernels.runs import waiting as kernel_waiting
from acep_approx.matching import choice
from acep_approx.planning import cel
from tests.cel_runs import disagreement
from tests.noticing import first_noticed
from tests.runs_mutants import rewritten
from tests.waiting_worlds import set_sizes, strict


def nothing() -> None:
    """The engine itself."""


def no_kill_steps() -> None:
    """FOLD passes over what does not go on."""
    real = algebra._Compiler.fold

    def fold(self: Any, node: Any) -> Any:
        before = list(self.kills)
        found = real(self, node)
        self.kills = [kill for kill in self.kills if kill in before or node.rebind is None]
        return found

    algebra._Compiler.fold = fold  # type: ignore[method-assign]


def forward_steps_do_not_inhibit() -> None:
    """A run stays where it is when it goes on."""
    algebra._Compiler.inhibit = lambda _: None  # type: ignore[method-assign]


def a_filter_above_is_part_of_the_condition() -> None:
    """What FILTER above an operator refuses does not take the run away."""
    algebra._Compiler.kill = lambda *_: None  # type: ignore[method-assign]
    real = algebra._Compiler.enter

    def enter(self: Any, *found: Any) -> Any:
        before = len(self.steps)
        kept = real(self, *found)
        self.steps[before:] = [replace(step, inhibits=step.source > 0) for step in self.steps[before:]]
        return kept

    algebra._Compiler.enter = enter  # type: ignore[method-assign]


def children_are_seen_in_their_epoch() -> None:
    """Events of one time follow one another."""

    def one_by_one(real: Any, query: Any, schemas: Any, syntax: Any, *given: Any, **options: Any) -> Any:
        return real(query, schemas, replace(syntax, is_simultaneous=False), *given, **options)

    _instead(one_by_one)


def runs_leave_at_once() -> None:
    """Only the first event of a time takes a run forward."""
    rewritten(kernel_advance, "try_source", "block.removes and program.shape[at.SIMULTANEOUS]", "False")


def runs_that_leave_stay() -> None:
    """What leaves at the end of a time stays."""
    rewritten(kernel_ends, "leave_gone", "words[gone + run] == 0", "True")


def intervals_do_not_matter() -> None:
    """An event that began before a run came takes it forward."""
    _instead(lambda real, *given, **options: real(*given, **{**options, "has_intervals": False}))


def what_touches_follows() -> None:
    """An event that begins when a run came takes it forward: ``<=`` for ``<`` of intervals."""
    real = algebra._Compiler.seen

    def seen(self: Any, kept: Any, right: Any) -> Any:
        found = real(self, kept, right)
        return (replace(found[0], op="<="), *found[1:]) if self.has_intervals else found

    algebra._Compiler.seen = seen  # type: ignore[method-assign]


def equal_is_not_beyond_a_threshold() -> None:
    """``<`` for ``<=`` where bounds tell which waiting runs an event cannot take."""
    set_sizes(3, 0)
    kernel_waiting.reaches = strict


def merged_runs_are_one() -> None:
    """Equal runs are counted once."""
    rewritten(kernel_blocks, "equal_child", "program.more is not None", "False")


def starts_are_forgotten() -> None:
    """Counts ask for no start, so that runs merge which leave the window at different times."""
    choice.WAYS["algebra", "counts"] = replace(choice.WAYS["algebra", "counts"], shows="nothing")


def first_values_are_last_values() -> None:
    """``$1`` in FOLD is the iteration before."""
    real = algebra.substituted

    def substituted(expression: Any, scope: Any, ticks: Any) -> Any:
        return real(expression, {**scope, "$1": scope.get("$", scope["$1"])}, ticks)

    algebra.substituted = substituted


def _instead(change: Callable[..., Any]) -> None:
    """Compile otherwise for data; ``change`` gets the real function first."""
    real = cel.compile_algebra

    def compile_algebra(*given: Any, **options: Any) -> Any:
        return change(real, *given, **options)

    cel.compile_algebra = compile_algebra


MUTANTS = (
    nothing,
    no_kill_steps,
    forward_steps_do_not_inhibit,
    a_filter_above_is_part_of_the_condition,
    children_are_seen_in_their_epoch,
    runs_leave_at_once,
    runs_that_leave_stay,
    intervals_do_not_matter,
    what_touches_follows,
    equal_is_not_beyond_a_threshold,
    merged_runs_are_one,
    starts_are_forgotten,
    first_values_are_last_values,
)


SHOWN_BY = {"what_touches_follows": 22, "equal_is_not_beyond_a_threshold": 63}
"""Worlds that are looked at first."""


def noticed(mutant: str, worlds: int) -> int:
    """A world that shows that a mutant is wrong; -1 if none does."""
    {change.__name__: change for change in MUTANTS}[mutant]()
    return first_noticed(disagreement, worlds, SHOWN_BY.get(mutant))
