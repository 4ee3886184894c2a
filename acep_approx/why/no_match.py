"""Why a query found nothing in a whole stream: which step of its pattern no event passed, and what kept them out.

Each question asks for more than the one before: is there an event that fits each variable by itself; has any key all
of them; do they come in order; in time; and do they meet the conditions on several events. The first that nothing
passes is the answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from acep_approx.events.source import Source
from acep_approx.matching.unseen import NEAR, nearest
from acep_approx.planning.planner import MICROSECONDS, Plan
from acep_approx.query.checks import lightest
from acep_approx.query.syntax import QuerySyntax
from acep_approx.why.of_algebra import no_match_of_algebra
from acep_approx.why.place import StreamPlace, WholeStream, span_text, tick_text, whole_stream
from acep_approx.why.result import NoMatch, Step
from acep_approx.why.steps import Blocked, Points, Steps
from acep_approx.why.tally import Keys, Letters, Tally, disjoint_sides, shared_keys, tallies

LONGEST_SPAN = 7
"""Characters of a length of time that is told exactly."""
NAMED = 3
"""Variables that a sentence names before the one that it is about."""


def explain_no_match(
    plan: Plan, source: Source, options: Mapping[str, Any], *, sort: bool = False, most: int | None = 1_000_000
) -> NoMatch:
    """Find out which step of a pattern no event of a whole stream passed.

    Parameters
    ----------
    plan : Plan
        Of a query that found nothing; where it has matches that is the answer.
    source : Source
        Can be read again.
    options : mapping
        ``time``, ``key``, ``type``, ``unit`` and ``start``, as for ``Execution``.
    sort : bool
        Sort the events by time first.
    most : int, optional
        Look at so many events at most; None: at all.

    Complexity: reads the events once, keeps the columns that the query names, and runs over them once for each step of
    the pattern and each condition on several events.
    """
    found = whole_stream(plan, source, options, sort=sort, most=most)
    if found is None:
        return NoMatch(0, False, "no events", "no match: there are no events")
    if plan.query.is_algebra:
        return no_match_of_algebra(found)
    return _Search(found).answer()


@dataclass(frozen=True)
class _Findings:
    """What is known so far; what can be asked about is the event at a place, or so many ticks before it."""

    reason: str
    step: tuple[str, ...]
    sentence: str
    lines: tuple[str, ...] = ()
    at: int | None = None
    back: int = 0


class _Search:
    def __init__(self, whole: WholeStream) -> None:
        self.place: StreamPlace = whole.place
        self.is_cut = whole.is_cut
        self.letters = Letters(self.place.plan)
        self.tallies = tallies(self.place, self.letters)
        self.of = {one.variable: one for one in self.tallies}
        self.steps = Steps(self.place)
        self.passed: dict[str, int | None] = {}

    def answer(self) -> NoMatch:
        """The answer."""
        found = self._alone() or self._of_key() or self._in_order()
        around, key = self._where(found.at, found.back)
        return NoMatch(
            len(self.place.rows),
            self.is_cut,
            found.reason,
            self._headline(found),
            tuple(self._step(one) for one in self.tallies),
            found.step,
            found.lines,
            self._helps(found) if found.reason in ("type", "condition", "order", "window", "together") else (),
            around,
            key,
        )

    def _headline(self, found: _Findings) -> str:
        if found.reason == "found":
            return found.sentence
        where = f" in the first {len(self.place.rows):,} events, which were looked at" if self.is_cut else ""
        return f"no match{where}: {found.sentence}"

    def _step(self, one: Tally) -> Step:
        failed = tuple(asdict(each) for each in one.failed)
        return Step(one.variable, one.type, one.events, one.fitting, self.passed.get(one.variable), failed)

    # --- single events --------------------------------------------------------------------------------------

    def _alone(self) -> _Findings | None:
        """A variable that no event fits by itself."""
        present = sum(1 << n for n in range(len(self.place.plan.automaton.letters)) if self._occurs(n))
        if self.letters.accepts(present):
            return None
        step = self.letters.blocking(present)
        place = self.letters.order.index(step[0]) if step else 0
        before = [self.of[name] for name in self.letters.order[:place] if self.of[name].events][-NAMED:]
        counted = ", ".join(_counted(one, is_first=not i) for i, one in enumerate(before))
        clauses = [self._nothing_fits(self.of[name]) for name in step]
        sentence = (f"{counted}, but " if counted else "") + ", and ".join(clauses)
        is_type = all(not self.of[name].events for name in step)
        passed, _ = self._passed()
        places = [self.of[name].first for name in (*reversed(self.letters.order[:place]), *step)]
        at = _latest(passed)
        at = next((one for one in places if one is not None), None) if at is None else at
        return _Findings("type" if is_type else "condition", step, sentence, (), at)

    def _occurs(self, letter: int) -> bool:
        return bool((self.place.masks & np.uint64(1 << letter)).any())

    def _nothing_fits(self, one: Tally) -> str:
        if not one.events:
            seen = {name for name in self.place.types() if name is not None} - {other.type for other in self.tallies}
            near = nearest(str(one.type), seen, NEAR)
            return f"no event is {_name(one)}" + (f" (did you mean {near!r}?)" if near else "")
        what = _name(one) if one.type is not None else "events"
        none = f"none of the {one.events:,} {what} passes"
        if one.events == 1:
            none = f"the only {_name(one) if one.type is not None else 'event'} does not pass"
        failing = next((each for each in one.failed if each.failing == one.events), None)
        if failing is not None:
            return f"{none} {failing.condition}" + (f" ({failing.nearest})" if failing.nearest else "")
        conditions = _and([each.condition for each in one.failed])
        return f"{none} {conditions} together" if conditions else f"no event fits {one.variable}"

    # --- keys -----------------------------------------------------------------------------------------------

    def _of_key(self) -> _Findings | None:
        """No key that has all that a match needs."""
        keys = shared_keys(self.place, self.letters)
        if keys is None or not keys.blocking:
            return None
        needed = [name for name in self.letters.order if keys.counts[name]]
        names = " and ".join(keys.names)
        if not needed:
            sentence = f"no event has a value for {names}"
            return _Findings("key", keys.blocking, sentence, tuple(self._key_lines(keys)), self._key_place(keys))
        counted = ", ".join(f"{keys.counts[name]:,} with {name}" for name in needed)
        all_of = "both" if len(needed) == 2 else "all of"
        sentence = f"no {names} has {all_of} {_and(needed)}; there are {counted}"
        lines = tuple(self._key_lines(keys))
        return _Findings("key", keys.blocking, sentence, lines, self._key_place(keys))

    def _key_lines(self, keys: Keys) -> Iterable[str]:
        if keys.likeness:
            yield f"values of {keys.names[0]}: {keys.likeness}"
        if keys.without_key:
            have = "has" if keys.without_key == 1 else "have"
            yield f"{_events(keys.without_key)} {have} no value for {' and '.join(keys.names)}"

    def _key_place(self, keys: Keys) -> int | None:
        others = [name for name in self.letters.order if name not in keys.blocking and keys.counts[name]]
        return self.of[(others or self.letters.order)[0]].first

    # --- several events -------------------------------------------------------------------------------------

    def _in_order(self) -> _Findings:
        """The first step that no event passes after those before it."""
        passed, query = self._passed()
        is_known = bool(passed) and passed[-1][1] is not None
        last = passed[-1][1] if is_known else self.steps.matches()
        if last is not None and last.number:
            sentence = f"there are matches, completed by {_events(last.number)}: this run did not put them out"
            return _Findings("found", (), sentence, (), last.first)
        if not is_known:
            return self._furthest()
        step = passed[-1][0]
        before = [names for names, _ in passed[:-1]]
        at = _latest(passed)
        at = self._first_of(step) if at is None else at
        blocked = self.steps.blocked(query)
        if blocked is None:
            sentence = f"no {self._names(step)} passes{self._after(before)}"
            return _Findings("together", step, sentence, (), at)
        return self._kept_out(blocked, step, before, at)

    def _passed(self) -> tuple[list[tuple[tuple[str, ...], Points | None]], QuerySyntax]:
        """The events that pass each step, up to the first that none passes; and its query."""
        passed, query = self.steps.passed()
        for names, points in passed:
            self.passed |= dict.fromkeys(names, None if points is None else points.number)
        return passed, query

    def _kept_out(
        self, blocked: Blocked, step: tuple[str, ...], before: list[tuple[str, ...]], at: int | None
    ) -> _Findings:
        lines = tuple(f"{text}: {how}" for text, how in disjoint_sides(self.place, self.letters))
        after = self._after(before)
        if blocked.kind == "order":
            comes = "comes" if before else "comes as the pattern asks"
            return _Findings("order", step, f"no {self._names(step)} {comes}{after}", lines, at)
        if blocked.kind == "window":
            within = self._within()
            sentence = f"no {self._names(step)} comes{after} {within}; they take at least {self._span(blocked.span)}"
            back = 0 if self.place.plan.is_count_window else blocked.span
            return _Findings("window", step, sentence, lines, blocked.at, back)
        everything = _and([name for names in (*before, step) for name in names])
        if not blocked.relaxed:
            sentence = f"{everything} come in order and in time, but never meet all conditions together"
            return _Findings("together", step, sentence, lines, blocked.at)
        (text, number), *others = blocked.relaxed
        more = tuple(f"without {other}: {many:,}" for other, many in others)
        sentence = f"{_events(number)} would complete {everything} without {text}"
        return _Findings("together", step, sentence, (*more, *lines), blocked.at)

    def _furthest(self) -> _Findings:
        """How far partial matches came, where the pattern has no steps, or they are too many."""
        furthest = self.steps.furthest()
        if furthest is None or furthest.at < 0:
            return _Findings("too much", (), "there are too many partial matches to say which step no event passed")
        next_ = f": after these no {self._names(furthest.awaited)} came that fits" if furthest.awaited else ""
        sentence = f"the furthest partial match has {_events(furthest.bound)}{next_}"
        return _Findings("together", furthest.awaited, sentence, (), furthest.at)

    def _after(self, before: list[tuple[str, ...]]) -> str:
        keys = [one.name for one in self.place.plan.query.equivalences]
        of = f" of the same {' and '.join(keys)}" if keys else ""
        return (f" after {_and([' or '.join(names) for names in before])}" if before else "") + of

    def _names(self, names: tuple[str, ...]) -> str:
        return " or ".join(_name(self.of[name]) if name in self.of else name for name in names)

    def _first_of(self, names: tuple[str, ...]) -> int | None:
        return next((self.of[name].first for name in names if name in self.of and self.of[name].fitting), None)

    def _within(self) -> str:
        window = self.place.plan.query.window
        return f"within {window.amount}{'' if window.unit == 'ticks' else f' {window.unit}'}"

    def _span(self, span: int) -> str:
        if self.place.plan.is_count_window:
            return f"{span} events"
        text = span_text(span, is_time=self.place.is_time)
        if not self.place.is_time or len(text) <= LONGEST_SPAN:
            return text
        unit, size = _unit(span)
        return f"about {span / size:.3g} {unit}"

    def _window(self, span: int) -> str:
        """A window that is long enough, as a query would write it: to the next whole unit, where that is shorter."""
        text = self._span(span)
        if not text.startswith("about"):
            return text
        unit, size = _unit(span)
        return f"{-(-span // size)} {unit}"

    # --- what would help, and where to ask ------------------------------------------------------------------

    def _helps(self, found: _Findings) -> tuple[str, ...]:
        """What makes the whole query match; each was tried."""
        helps = []
        query = self.steps.query
        if found.reason == "window" and (span := self._needed_span()) is not None:
            helps.append(f"WITHIN {self._window(span)}")
        if query.is_machine:
            return tuple(helps)
        errors = query.errors + 1
        has_two = lightest(query.pattern, dict(query.weights)) > errors + 1  # a match of one event says little
        more = self.steps.with_errors(errors) if has_two else None
        if more is not None and more.number:
            helps.append(f"ERRORS {errors} ({more.number:,} match point{'' if more.number == 1 else 's'})")
        return tuple(helps)

    def _needed_span(self) -> int | None:
        """The window in which the whole query has a match, if its window is all that is wrong."""
        widest: Points | None = self.steps.widest()
        return widest.span if widest is not None and widest.number else None

    def _where(self, at: int | None, back: int) -> tuple[str, dict[str, Any] | None]:
        """The time and the key of an event, or the time so many ticks before it."""
        if at is None or at < 0:
            return "", None
        place, names = self.place, [one.name for one in self.place.plan.query.equivalences]
        key = {name: place.table.column(place.roles.column(name))[at].as_py() for name in names}
        if any(value is None for value in key.values()):
            return "", None
        return tick_text(int(place.ticks[at]) - back, is_time=place.is_time), key


def _unit(span: int) -> tuple[str, int]:
    """The largest unit that a time has at least two of, and its ticks."""
    return next(
        (one for one in sorted(MICROSECONDS.items(), key=lambda item: -item[1]) if span >= 2 * one[1]), ("us", 1)
    )


def _latest(passed: list[tuple[tuple[str, ...], Points | None]]) -> int | None:
    """The first event that passes the last step that any passes."""
    return next((points.first for _, points in reversed(passed) if points is not None and points.number), None)


def _name(one: Tally) -> str:
    """``Delivered (d)``; only one of them where they are the same, or there is no type."""
    if one.type is None or one.type == one.variable:
        return one.variable
    return f"{one.type} ({one.variable})"


def _counted(one: Tally, *, is_first: bool) -> str:
    """``12,031 events are Packed (p)``, and of those that follow ``8,220 Loaded (l)``."""
    if one.type is None:
        return f"{one.fitting:,} events fit {one.variable}"
    are = (" event is" if one.events == 1 else " events are") if is_first else ""
    return f"{one.events:,}{are} {_name(one)}"


def _events(number: int) -> str:
    return f"{number:,} event{'' if number == 1 else 's'}"


def _and(names: list[str]) -> str:
    """``a, b and c``."""
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
