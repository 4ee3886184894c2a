"""Runs of a query in CEL, one at a time: which events take them on, and which end them.

The engine keeps no lineage of such queries. So the automaton is followed here, over whole columns of the events of a
place: a run is what its registers hold. Held against the engine in ``tests/test_cel_why.py``.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from acep_approx.arrays import Bools, Ints
from acep_approx.automaton.algebra import BEGAN, attribute_of
from acep_approx.automaton.automaton import START
from acep_approx.automaton.resolve import Held, Own, Register, Resolved
from acep_approx.automaton.states import Began, Now, Step
from acep_approx.events.time import ticks
from acep_approx.query.evaluate import evaluate
from acep_approx.query.shape import replaced
from acep_approx.query.syntax import Attribute, Expression
from acep_approx.why.place import StreamPlace

BLOCK = 1024
"""Events that are looked at first for the next one of a run; then twice as many, and so on."""
RUNS = 5_000
"""Runs that are followed at most for one question."""
NEVER = -(2**62)
_T0, _T1 = Attribute(None, None, " t0"), Attribute(None, None, " t1")  # no column has such a name


@dataclass(frozen=True)
class Run:
    """A run that came to a state, or a result.

    ``path`` are the steps that it took, each with the place of its event.
    """

    state: int
    began: int
    came: int
    values: dict[Register, pa.Scalar]
    path: tuple[tuple[Step, int], ...]


@dataclass(frozen=True)
class Ended:
    """A run that did not go on: the events that ended it (none: its window, or the stream), and the last tick it saw.

    ``is_done``: these are the events of its results; ``gave_results``: it had some before.
    """

    run: Run
    by: tuple[int, ...]
    until: int
    gave_results: bool
    is_done: bool


@dataclass(frozen=True)
class Search:
    """A result around a time, or the run that came furthest; ``gave_up``: not all runs were looked at."""

    result: Run | None = None
    furthest: Ended | None = None
    gave_up: bool = False


class Chains:
    """Follows the automaton of a query over the events of a place.

    Parameters
    ----------
    place : StreamPlace
    window : int, optional
        In ticks; default: that of the query.
    """

    def __init__(self, place: StreamPlace, window: int | None = None) -> None:
        registers = place.plan.registers
        assert registers is not None, "the runs engine has them"
        self.registers = registers
        self.place = place
        self.window = place.window if window is None else window
        self.end = len(registers.states) - 1
        self.t0 = self.t1 = place.ticks
        if place.roles.start is not None:
            began = place.table.column(place.roles.start).combine_chunks()
            self.t0 = ticks(began, place.roles.unit, format=place.roles.time_format)
        self.left = RUNS
        self.first_steps = self.out_of(START)

    def out_of(self, state: int) -> list[Step]:
        """The steps out of a state."""
        return [step for step in self.registers.steps if step.source == state]

    def search(self, around: int) -> Search:
        """Look for a result that begins at or before a time and ends at or after it, the latest beginning first.

        Complexity: O(runs x events between two of their steps), of ``RUNS`` runs at most.
        """
        begun = sorted(self._begun(np.arange(len(self.t1))), key=lambda one: (self.t0[one[1]], one[1]))
        before = [one for one in begun if self.t0[one[1]] <= around <= self.t0[one[1]] + self.window]
        ended: list[Ended] = []
        for step, at in reversed(before) if before else begun[:1]:  # whose window is open then; else the first after it
            result = self._follow(self.taken(None, step, at), around, ended)
            if result is not None:
                return Search(result)
            if self.left <= 0:
                break

        def progress(one: Ended) -> tuple[bool, int, int]:
            return one.run.began <= around <= one.until, len(one.run.path), one.run.came

        return Search(None, max(ended, key=progress, default=None), self.left <= 0)

    def results(self, began: int, came: int) -> Iterator[Run]:
        """The results from one time to another.

        Complexity: as for ``search``, of the runs that begin then.
        """
        waiting = deque(self.taken(None, step, at) for step, at in self._begun(np.flatnonzero(self.t0 == began)))
        while waiting and self.left > 0:
            run = waiting.popleft()
            if run.state == self.end:
                if run.came == came:
                    yield run
                continue
            self.left -= 1
            waiting.extend(self.taken(run, step, at) for step, at in self.after(run)[0] if self.t1[at] <= came)

    def furthest(self) -> Ended | None:
        """The run of the whole place that took the most events, and of those the first; None: nothing began.

        Complexity: as for ``search``, the earliest beginning first.
        """
        ended: list[Ended] = []
        for step, at in self._begun(np.arange(len(self.t1))):
            if self.left > 0:
                self._follow(self.taken(None, step, at), NEVER, ended)
        return max(ended, key=lambda one: len(one.run.path), default=None)

    def _begun(self, events: Ints) -> list[tuple[Step, int]]:
        """The steps that begin runs, each with those of some events that it is open to."""
        return [(step, at) for step in self.first_steps for at in events[self.holds(step, events, None)].tolist()]

    def _follow(self, first: Run, around: int, ended: list[Ended]) -> Run | None:
        """A result that is there; else the runs that did not go on are noted."""
        waiting = deque([first])
        while waiting and self.left > 0:
            run = waiting.popleft()
            if run.state == self.end:
                if run.began <= around <= run.came:
                    return run
                continue
            self.left -= 1
            taken, by, until = self.after(run)
            going_on = [self.taken(run, step, at) for step, at in taken]
            waiting.extend(going_on)
            if all(one.state == self.end for one in going_on):
                has_rebound = any(step.source == step.target for step, _ in run.path)
                ended.append(Ended(run, by, until, has_rebound, bool(going_on)))
        return None

    def after(self, run: Run) -> tuple[list[tuple[Step, int]], tuple[int, ...], int]:
        """The next steps of a run with their events, the events that end it where it is, and until when it stays."""
        last = run.began + self.window
        first, end = np.searchsorted(self.t1, [run.came, last], side="right").tolist()
        steps, size = self.out_of(run.state), BLOCK
        taken: list[tuple[Step, int]] = []
        while first < end:
            stop = min(int(np.searchsorted(self.t1, self.t1[min(first + size, end) - 1], side="right")), end)
            events = np.arange(first, stop)
            held = [(step, events[self.holds(step, events, run)]) for step in steps]
            over = min((int(self.t1[at[0]]) for step, at in held if step.inhibits and len(at)), default=None)
            good = [(step, int(at)) for step, some in held for at in some if over is None or self.t1[at] <= over]
            taken += [(step, at) for step, at in good if step.target is not None]
            if over is not None:
                by = {at for step, at in good if step.inhibits and self.t1[at] == over}
                return sorted(taken, key=lambda one: one[1]), tuple(sorted(by)), over
            first, size = stop, 2 * size
        return taken, (), last

    # --- conditions -----------------------------------------------------------------------------------------

    def holds(self, step: Step, events: Ints, run: Run | None) -> Bools:
        """On which of some events a step is open to a run."""
        open_: Bools = (self.place.masks[events] >> np.uint64(step.letter)) & np.uint64(1) == 1
        for check in step.checks:
            if open_.any():
                open_[open_] = self.truths(check, events[open_], run)
        return open_

    def truths(self, check: Resolved, events: Ints, run: Run | None) -> Bools:
        """On which of some events a condition is TRUE."""
        values = self.values(check, events, run)
        found: Bools = np.array([value is True for value in values.to_pylist()], np.bool_)
        return found

    def values(self, node: Resolved, events: Ints, run: Run | None) -> pa.Array:
        """What a resolved expression is for a run and each of some events."""
        held: dict[str, pa.Scalar] = {}

        def change(part: Resolved) -> Expression | None:
            match part:
                case Own(value=value):
                    own: Expression = value
                    return own
                case Held(register=register):
                    assert run is not None, "nothing is held at the start"
                    held[f" {register.variable}"] = run.values[register]
                    return Attribute(None, None, f" {register.variable}")
                case Now():
                    return _T1
                case Began():
                    return _T0
            return None

        def column(leaf: Attribute) -> pa.Array:
            if leaf in (_T0, _T1):
                return pa.array((self.t0 if leaf == _T0 else self.t1)[events])
            if leaf.name in held:
                return pa.repeat(held[leaf.name], len(events))
            return self.place.table.column(self.place.roles.column(leaf.name)).take(pa.array(events)).combine_chunks()

        found = evaluate(replaced(node, change), column)
        return pa.repeat(found, len(events)) if isinstance(found, pa.Scalar) else found

    def taken(self, run: Run | None, step: Step, at: int) -> Run:
        """The run behind a step."""
        assert step.target is not None, "it goes on"
        event, live = np.array([at]), self.registers.live[step.target]
        asked = {one: value for one, value in step.moves.items() if one in live or attribute_of(one) == BEGAN}
        values = {register: self.values(value, event, run)[0] for register, value in asked.items()}
        began = next(value.as_py() for register, value in values.items() if attribute_of(register) == BEGAN)
        return Run(step.target, began, int(self.t1[at]), values, (*(run.path if run else ()), (step, at)))
