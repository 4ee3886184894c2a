"""Why a query in CEL has a result around a time, or has none, there or in a whole stream: its runs, and words.

The engine keeps no lineage of such queries. So the automaton is followed here, over whole columns of the events of a
place, one run at a time: which events take it on, and which end it. A run is what its registers hold. Held against the
engine in ``tests/test_cel_why.py``.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from acep_approx.arrays import Bools, Ints
from acep_approx.automaton.algebra import BEGAN, attribute_of
from acep_approx.automaton.automaton import START
from acep_approx.automaton.resolve import Held, Own, Register, Resolved
from acep_approx.automaton.states import Began, Now, Step
from acep_approx.automaton.words import TIMES, cel_text, places, stream_of
from acep_approx.events.time import ticks
from acep_approx.matching.outputs.kinds import BARE
from acep_approx.planning.planner import LARGEST_WINDOW
from acep_approx.query.cel.syntax import SECOND
from acep_approx.query.evaluate import evaluate
from acep_approx.query.shape import replaced
from acep_approx.query.syntax import Attribute, Binary, Expression
from acep_approx.why.place import StreamPlace, span_text
from acep_approx.why.result import NoMatch, Why, text_of
from acep_approx.why.waiting import COMPARISONS, Failed, Miss, distance, shown

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


# --- in words -----------------------------------------------------------------------------------------------------

MOST_EVENTS = 100_000
"""Events that are looked at: chains are followed one by one."""


@dataclass(frozen=True)
class Awaited:
    """What came at a state for one of its edges."""

    edge: str
    stream: str
    came: int
    failed: tuple[Failed, ...]


def explain_algebra(place: StreamPlace) -> Why:
    """Find out why a query in CEL has a result around a time, or has none.

    Parameters
    ----------
    place : StreamPlace
        The events within two windows of the time; where there is no window all events.

    Complexity: see ``Chains.search``.
    """
    return _Answer(place).answer()


class _Answer:
    def __init__(self, place: StreamPlace) -> None:
        self.place = place
        self.chains = Chains(place)
        self.states = places(self.chains.registers)
        self.around = place.when(place.around)

    def answer(self) -> Why:
        found = self.chains.search(self.place.around)
        nothing = f"no result at {self.around}"
        if found.result is not None:
            return self._matched(found.result)
        if found.furthest is not None:
            return self._unmatched(found.furthest, nothing, gave_up=found.gave_up)
        events = np.flatnonzero(self.place.near())
        awaited = tuple(self._awaited(None, step, events) for step in self.chains.first_steps)
        return Why(
            self.around,
            {},
            matched=False,
            awaited=tuple(map(self._plain, awaited)),
            headline=f"{nothing}: no event there {'could begin' if self.chains.end > 1 else 'is'} one",
            lines=tuple(line for one in awaited for line in self._awaited_lines(one)),
        )

    def _matched(self, run: Run) -> Why:
        values = {attribute_of(register): value.as_py() for register, value in run.values.items()}
        shown_ = ", ".join(f"{name} {text_of(value)}" for name, value in values.items() if name not in TIMES)
        began, came = map(self.place.when, (run.began, run.came))
        return Why(
            self.around,
            {},
            matched=True,
            events=self._events(run),
            headline=f"there is a result at {self.around}, from {began} to {came}",
            lines=(f"the result: {shown_}",) if shown_ else (),
        )

    def _unmatched(self, ended: Ended, nothing: str, *, gave_up: bool) -> Why:
        run = ended.run
        first, last = np.searchsorted(self.chains.t1, [run.came, ended.until], side="right").tolist()
        steps = [step for step in self.chains.out_of(run.state) if step.target is not None and not ended.is_done]
        alike: dict[tuple[str, int, tuple[Failed, ...]], list[str]] = {}
        for step in steps:  # edges for which the same came are one: those of FOLD that rebind and that give results
            one = self._awaited(run, step, np.arange(first, last))
            alike.setdefault((one.stream, one.came, one.failed), []).append(one.edge)
        awaited = [Awaited(", ".join(names), *key) for key, names in alike.items()]
        helps: tuple[str, ...] = ()
        if self._reason(ended) == "window closed" and self.place.window:  # a longer one, where that would do
            wider = Chains(self.place, 2 * self.place.window).search(self.place.around).result
            if wider is not None:
                helps = (f"WITHIN {span_text(wider.came - wider.began, is_time=self.place.is_time)}",)
        many = f"; the latest {RUNS:,} runs were looked at" if gave_up else ""
        lines = [
            *self._ending(ended),
            *(line for one in awaited for line in self._awaited_lines(one)),
            *(("it would match with", *(f"  {one}" for one in helps)) if helps else ()),
        ]
        return Why(
            self.around,
            {},
            matched=False,
            events=self._events(run),
            why=self._reason(ended),
            awaited=tuple(map(self._plain, awaited)),
            helps=helps,
            headline=f"{nothing}; the chain that came furthest has {_length(run)}{many}",
            lines=tuple(lines),
        )

    # --- words ----------------------------------------------------------------------------------------------

    def _events(self, run: Run) -> tuple[dict[str, Any], ...]:
        """The events of a run, each with the edge that it took."""
        return tuple({"variable": self._edge(step), **self.place.event(at)} for step, at in run.path)

    def _edge(self, step: Step) -> str:
        """``forward to q1``, ``rebind q1``, ``kill``."""
        if step.target is None:
            return "kill"
        name = self.states[step.target].name
        return f"rebind {name}" if step.target == step.source else f"forward to {name}"

    def _reason(self, ended: Ended) -> str:
        if ended.by:
            return "done" if ended.is_done else "ended"
        return "window closed" if self.place.until > ended.until else "stream ended"

    def _ending(self, ended: Ended) -> Iterator[str]:
        state = self.states[ended.run.state]
        by = " and ".join(map(self.place.named, ended.by))
        if ended.is_done:
            yield f"it ended with a result: {by}"
            return
        gave = ", after it gave results" if ended.gave_results else ""
        yield f"it waited at {state.name} ({state.operator}) for {state.waits_for}{gave}"
        if by:
            yield f"it was ended by what came next and did not go on: {by}"
        elif self._reason(ended) == "window closed":
            yield f"its window closed after {self.place.when(ended.until)}"
        else:
            yield "the stream ended before " + ("its window closed" if self.place.window < LARGEST_WINDOW else "it did")

    def _awaited(self, run: Run | None, step: Step, events: Any) -> Awaited:
        stream = stream_of(self.chains.registers, step)
        mine = events[[self.place.types[at] == stream for at in events]] if len(events) else events
        letter = self.chains.registers.letters[step.letter]
        failing, failed = mine, []
        for check in (*map(Own, letter.conditions), *step.checks):
            if not len(failing):
                break
            true = self.chains.truths(check, failing, run)
            if not true.all():
                failed.append(self._failed(check, failing[~true], run))
            failing = failing[true]
        return Awaited(self._edge(step), stream, len(mine), tuple(failed))

    def _failed(self, check: Resolved, events: Any, run: Run | None) -> Failed:
        side = None if run is None else SECOND
        text = cel_text(check, side)
        comparison = check.value if isinstance(check, Own) else check
        if not isinstance(comparison, Binary) or comparison.op not in COMPARISONS:
            return Failed(text, len(events), Miss(""), int(events[0]))
        wrap = Own if isinstance(check, Own) else lambda node: node
        left, right = (
            self.chains.values(wrap(one), events, run).to_pylist() for one in (comparison.left, comparison.right)
        )
        apart = [distance(one, other) for one, other in zip(left, right, strict=True)]
        near = int(np.argmin(apart))
        miss = Miss(f"{shown(left[near])} {comparison.op} {shown(right[near])}")
        return Failed(text, len(events), miss, int(events[near]))

    def _awaited_lines(self, one: Awaited) -> Iterator[str]:
        yield f"{one.edge}: {one.came or 'none'} of {one.stream} came"
        yield from (f"  {failed.line(self.place)}" for failed in one.failed)

    def _plain(self, one: Awaited) -> dict[str, Any]:
        failed = [each.plain(self.place) for each in one.failed]
        return {"variable": one.edge, "type": one.stream, "came": one.came, "failed": failed}


def _length(run: Run) -> str:
    number = len(run.path)
    return f"{number} event{'s' if number > 1 else ''}"


# --- asked of a whole stream --------------------------------------------------------------------------------


def no_match_of_algebra(place: StreamPlace, *, is_cut: bool) -> NoMatch:
    """Find out how far the chains of a query came that has no results.

    Parameters
    ----------
    place : StreamPlace
        All events, or the first ones.
    is_cut : bool
        Whether there are more.

    Complexity: see ``Chains.search``.
    """
    events = len(place.rows)
    if number := sum(table.num_rows for table in place.run(None, BARE)):
        said = f"there are results, completed by {number:,} events"
        return NoMatch(events, is_cut, "found", said)
    if events > MOST_EVENTS:
        is_cut, kept = True, slice(0, MOST_EVENTS)
        columns = {name: getattr(place, name)[kept] for name in ("rows", "ticks", "is_part")}
        place = replace(place, table=place.table.slice(0, MOST_EVENTS), until=int(place.ticks[kept][-1]), **columns)
    furthest = Chains(place).furthest()
    if furthest is None:  # asked of all events
        answer = explain_algebra(replace(place, around=int(place.ticks[0]), window=LARGEST_WINDOW // 2))
        rest, around, reason = ": no event could begin one", "", "condition"
    else:
        answer = explain_algebra(replace(place, around=furthest.run.came))
        rest, around, reason = ": the chain that came furthest has ", place.when(furthest.run.came), "together"
        rest += _length(furthest.run)
    where = f" in the first {len(place.rows):,} events" if is_cut else ""
    step = tuple(one["variable"] for one in answer.awaited)
    return NoMatch(
        events=len(place.rows),
        is_cut=is_cut,
        reason=reason,
        headline=f"no result{where}{rest}",
        step=step,
        lines=answer.lines,
        helps=answer.helps,
        around=around,
        key={},
    )
