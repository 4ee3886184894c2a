"""Why a query in CEL has a result around a time, or has none, there or in a whole stream, in words."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from acep_approx.automaton.algebra import attribute_of
from acep_approx.automaton.algebra_words import TIMES, places, stream_of, words
from acep_approx.automaton.resolve import Own, Resolved
from acep_approx.automaton.states import Step
from acep_approx.events.source import open_source
from acep_approx.events.stream import read_events
from acep_approx.matching.execution import Execution
from acep_approx.planning.planner import LARGEST_WINDOW
from acep_approx.query.cel.syntax import SECOND
from acep_approx.query.syntax import Binary
from acep_approx.why.chains import RUNS, Chains, Ended, Run
from acep_approx.why.conditions import COMPARISONS, distance, shown
from acep_approx.why.place import StreamPlace, WholeStream, span_text, tick_text
from acep_approx.why.result import NoMatch, Why, text_of


@dataclass(frozen=True)
class Failed:
    """A condition that some events failed first, with the values it saw at the nearest of them."""

    condition: str
    events: int
    nearest: str
    at: int


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
        self.around = tick_text(place.around, is_time=place.is_time)

    def answer(self) -> Why:
        """The answer."""
        found = self.chains.search(self.place.around)
        if found.result is not None:
            return self._matched(found.result)
        nothing = f"no result at {self.around}"
        if found.furthest is None:
            return self._nothing_began(nothing)
        return self._unmatched(found.furthest, nothing, gave_up=found.gave_up)

    # --- answers --------------------------------------------------------------------------------------------

    def _matched(self, run: Run) -> Why:
        values = {attribute_of(register): value.as_py() for register, value in run.values.items()}
        shown_ = ", ".join(f"{name} {text_of(value)}" for name, value in values.items() if name not in TIMES)
        began, came = (tick_text(tick, is_time=self.place.is_time) for tick in (run.began, run.came))
        lines = (f"the result: {shown_}",) if shown_ else ()
        return Why(
            self.around,
            {},
            matched=True,
            events=self._events(run),
            headline=f"there is a result at {self.around}, from {began} to {came}",
            lines=lines,
        )

    def _nothing_began(self, nothing: str) -> Why:
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

    def _unmatched(self, ended: Ended, nothing: str, *, gave_up: bool) -> Why:
        run = ended.run
        first, last = np.searchsorted(self.chains.t1, [run.came, ended.until], side="right").tolist()
        steps = [step for step in self.chains.out_of(run.state) if step.target is not None and not ended.is_done]
        awaited = _together([self._awaited(run, step, np.arange(first, last)) for step in steps])
        helps = self._helps(ended)
        many = f"; the latest {RUNS:,} runs were looked at" if gave_up else ""
        lines = [
            *self._ending(ended),
            *(line for one in awaited for line in self._awaited_lines(one)),
            *(("it would match with", *(f"  {one}" for one in helps)) if helps else ()),
        ]
        number = len(run.path)
        return Why(
            self.around,
            {},
            matched=False,
            events=self._events(run),
            why=self._reason(ended),
            awaited=tuple(map(self._plain, awaited)),
            helps=helps,
            headline=f"{nothing}; the chain that came furthest has {number} event{'s' if number > 1 else ''}{many}",
            lines=tuple(lines),
        )

    # --- words ----------------------------------------------------------------------------------------------

    def _events(self, run: Run) -> tuple[dict[str, Any], ...]:
        """The events of a run, each with the edge that it took."""
        types = self.place.types()
        return tuple(
            {
                "variable": self._edge(step),
                "row": int(self.place.rows[at]),
                "time": tick_text(int(self.place.ticks[at]), is_time=self.place.is_time),
                "type": types[at],
                **self.place.values(at),
            }
            for step, at in run.path
        )

    def _edge(self, step: Step) -> str:
        """``forward to q1``, ``rebind q1``, ``kill``."""
        if step.target is None:
            return "kill"
        name = self.states[step.target].name
        return f"rebind {name}" if step.target == step.source else f"forward to {name}"

    def _at(self, at: int) -> str:
        return f"row {self.place.rows[at]}, {tick_text(int(self.place.ticks[at]), is_time=self.place.is_time)}"

    def _reason(self, ended: Ended) -> str:
        if ended.by:
            return "done" if ended.is_done else "ended"
        return "window closed" if self.place.until > ended.until else "stream ended"

    def _ending(self, ended: Ended) -> Iterator[str]:
        """Why it did not go on."""
        state = self.states[ended.run.state]
        by = " and ".join(self._at(at) for at in ended.by)
        if ended.is_done:
            yield f"it ended with a result: {by}"
            return
        gave = ", after it gave results" if ended.gave_results else ""
        yield f"it waited at {state.name} ({state.operator}) for {state.waits_for}{gave}"
        if by:
            yield f"it was ended by what came next and did not go on: {by}"
        elif self._reason(ended) == "window closed":
            yield f"its window closed after {tick_text(ended.until, is_time=self.place.is_time)}"
        else:
            yield "the stream ended before " + ("its window closed" if self.place.window < LARGEST_WINDOW else "it did")

    def _awaited(self, run: Run | None, step: Step, events: Any) -> Awaited:
        """What came for a step while a run waited, and which condition each of these failed first."""
        stream = stream_of(self.chains.registers, step)
        types = self.place.types()
        mine = events[[types[at] == stream for at in events]] if len(events) else events
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
        text = words(check, side)
        comparison = check.value if isinstance(check, Own) else check
        if not isinstance(comparison, Binary) or comparison.op not in COMPARISONS:
            return Failed(text, len(events), "", int(events[0]))
        wrap = Own if isinstance(check, Own) else lambda node: node
        left, right = (
            self.chains.values(wrap(one), events, run).to_pylist() for one in (comparison.left, comparison.right)
        )
        apart = [distance(one, other) for one, other in zip(left, right, strict=True)]
        near = int(np.argmin(apart))
        return Failed(text, len(events), f"{shown(left[near])} {comparison.op} {shown(right[near])}", int(events[near]))

    def _awaited_lines(self, one: Awaited) -> Iterator[str]:
        yield f"{one.edge}: {one.came or 'none'} of {one.stream} came"
        for failed in one.failed:
            fail = "fails" if failed.events == 1 else "fail"
            nearest = f"; nearest: {failed.nearest}" if failed.nearest else ", as the one at"
            yield f"  {failed.events} {fail} {failed.condition}{nearest} ({self._at(failed.at)})"

    def _plain(self, one: Awaited) -> dict[str, Any]:
        """The same as plain values, with rows of the input in place of places."""
        return {
            "variable": one.edge,
            "type": one.stream,
            "came": one.came,
            "failed": [
                {"condition": f.condition, "events": f.events, "nearest": f.nearest, "row": int(self.place.rows[f.at])}
                for f in one.failed
            ],
        }

    def _helps(self, ended: Ended) -> tuple[str, ...]:
        """A longer window, where that would do."""
        if self._reason(ended) != "window closed" or not self.place.window:
            return ()
        wider = Chains(self.place, 2 * self.place.window).search(self.place.around).result
        if wider is None:
            return ()
        return (f"WITHIN {span_text(wider.came - wider.began, is_time=self.place.is_time)}",)


def _together(awaited: list[Awaited]) -> tuple[Awaited, ...]:
    """Edges for which the same came, as one: those of FOLD that rebind and that give results."""
    alike: dict[tuple[str, int, tuple[Failed, ...]], list[str]] = {}
    for one in awaited:
        alike.setdefault((one.stream, one.came, one.failed), []).append(one.edge)
    return tuple(Awaited(", ".join(names), *key) for key, names in alike.items())


MOST_EVENTS = 100_000
"""Events that are looked at: chains are followed one by one."""


def _results(place: StreamPlace) -> int:
    """How many events complete a result."""
    matcher = Execution(place.plan, output="points")
    pipeline = matcher.bind(place.table.schema, place.roles)
    batches = read_events(open_source(place.table), place.roles, columns=pipeline.columns)
    found: int = sum(table.num_rows for batch in batches for table in matcher.run(batch))
    for table in pipeline.finish():
        found += table.num_rows
    return found


def no_match_of_algebra(whole: WholeStream) -> NoMatch:
    """Find out how far the chains of a query came that has no results.

    Parameters
    ----------
    whole : WholeStream

    Complexity: see ``chains.Chains.search``.
    """
    place = whole.place
    events = len(place.rows)
    if number := _results(place):
        said = f"there are results, completed by {number:,} events: this run did not put them out"
        return NoMatch(events, whole.is_cut, "found", said)
    is_cut = whole.is_cut or events > MOST_EVENTS
    if events > MOST_EVENTS:
        kept = slice(0, MOST_EVENTS)
        columns = {name: getattr(place, name)[kept] for name in ("rows", "ticks", "is_part")}
        place = replace(place, table=place.table.slice(0, MOST_EVENTS), until=int(place.ticks[kept][-1]), **columns)
    furthest = Chains(place).furthest()
    if furthest is None:  # asked of all events
        answer = explain_algebra(replace(place, around=int(place.ticks[0]), window=LARGEST_WINDOW // 2))
        headline, around, reason = "no result: no event could begin one", "", "condition"
    else:
        answer = explain_algebra(replace(place, around=furthest.run.came))
        around, reason = tick_text(furthest.run.came, is_time=place.is_time), "together"
        number = len(furthest.run.path)
        headline = f"no result: the chain that came furthest has {number} event{'s' if number > 1 else ''}"
    if is_cut:
        headline = headline.replace("no result", f"no result in the first {len(place.rows):,} events", 1)
    step = tuple(one["variable"] for one in answer.awaited)
    return NoMatch(len(place.rows), is_cut, reason, headline, (), step, answer.lines, answer.helps, around, {})
