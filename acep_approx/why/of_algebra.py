"""Why a query in CEL has a result around a time, or has none, there or in a whole stream, in words."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from acep_approx.automaton.algebra import attribute_of
from acep_approx.automaton.resolve import Own, Resolved
from acep_approx.automaton.states import Step
from acep_approx.automaton.words import TIMES, cel_text, places, stream_of
from acep_approx.matching.outputs.kinds import POINTS
from acep_approx.planning.planner import LARGEST_WINDOW
from acep_approx.query.cel.syntax import SECOND
from acep_approx.query.syntax import Binary
from acep_approx.why.chains import RUNS, Chains, Ended, Run
from acep_approx.why.conditions import COMPARISONS, Failed, Miss, distance, shown
from acep_approx.why.place import StreamPlace, span_text
from acep_approx.why.result import NoMatch, Why, text_of

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

    Complexity: see ``chains.Chains.search``.
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
        """Why it did not go on."""
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
        """What came for a step while a run waited, and which condition each of these failed first."""
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
        """How a condition fails, at the event that is nearest to it."""
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
        """The same as plain values, with rows of the input in place of places."""
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

    Complexity: see ``chains.Chains.search``.
    """
    events = len(place.rows)
    if number := sum(table.num_rows for table in place.run(None, POINTS)):
        said = f"there are results, completed by {number:,} events: this run did not put them out"
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
