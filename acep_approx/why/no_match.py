"""Why a query found nothing in a whole stream: which step of its pattern no event passed, and what kept them out.

Each question asks for more than the one before: is there an event that fits each variable by itself; has any key all
of them; do they come in order; in time; and do they meet the conditions on several events. The first that nothing
passes is the answer.

It is asked by runs over the whole stream, each of the query changed in one way. Every change asks for less: what
matches the query, or begins a match of it, matches the changed one too. So where a changed query finds nothing, neither
does the query.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from acep_approx.arrays import Ints
from acep_approx.errors import AcepError
from acep_approx.events.counts import counted
from acep_approx.events.keys import as_key
from acep_approx.events.source import Source
from acep_approx.matching.outputs.kinds import BARE, PARTIAL
from acep_approx.matching.outputs.of_runs import TooManyStepsError
from acep_approx.matching.unseen import NEAR, nearest
from acep_approx.planning.planner import LARGEST_WINDOW, Plan
from acep_approx.query.checks import lightest, lightest_match
from acep_approx.query.printer import to_text
from acep_approx.query.shape import (
    atoms,
    choice_of,
    is_static,
    negated_variables,
    passing_less,
    sequence_of,
    variables,
    walk,
    without_gap_words,
)
from acep_approx.query.syntax import (
    DEFAULT_STRATEGY,
    LISTS_ALL,
    MICROSECONDS,
    Absent,
    AllOf,
    Either,
    Pattern,
    QuerySyntax,
    Repeat,
    Sequence,
    Spaced,
)
from acep_approx.why.of_algebra import no_match_of_algebra
from acep_approx.why.place import UNITS, StreamPlace, span_text, whole_stream
from acep_approx.why.result import NoMatch, Step
from acep_approx.why.tally import Letters, Tally, disjoint_sides, shared_keys, tallies

WIDEST = LARGEST_WINDOW // 2
"""A window that nothing leaves, in ticks or events."""
STEPS = 5_000_000
"""Run-steps after which one changed query is given up."""
MOST_STEPS = 100_000_000
"""Run-steps after which it is given up to say whether the query itself has a match: some ten seconds."""


@dataclass(frozen=True)
class Beginning:
    """The first parts of a pattern as a query, and the variables of the last of them."""

    query: QuerySyntax
    names: tuple[str, ...]


def plain(query: QuerySyntax) -> QuerySyntax:
    """The query without what is about the form and the choice of its matches."""
    return replace(query, outputs=(), selection=LISTS_ALL, publish=None)


def beginnings(query: QuerySyntax) -> list[Beginning]:
    """The beginnings of a query, the shortest first; the last one is the query as ``plain`` gives it.

    A beginning whose parts may all be missing is left out: a match need not bind any event of it.
    """
    parts = query.pattern.parts if isinstance(query.pattern, Sequence) else (query.pattern,)
    found = []
    for number, part in enumerate(parts, 1):
        if isinstance(part, Absent):
            continue
        negated = negated_variables(part)
        names = tuple(dict.fromkeys(atom.variable for atom in atoms(part) if atom.variable not in negated))
        is_last = all(isinstance(later, Absent) for later in parts[number:])
        pattern = sequence_of(parts[:number])
        if is_last:
            found.append(Beginning(plain(query), names))
        elif lightest(pattern, dict(query.weights)) > query.errors:
            found.append(Beginning(_beginning(plain(query), pattern), names))
    return found


def _beginning(query: QuerySyntax, pattern: Pattern) -> QuerySyntax:
    """The query of some first parts, with the conditions that are about nothing else."""
    known = {atom.variable for atom in atoms(pattern)}
    lost = {name for one in query.predicates if not variables(one) <= known for name in variables(one)}
    for negation in negations(pattern):
        if lost & {atom.variable for atom in negation.options}:  # without its conditions it would forbid more
            pattern = without_negation(pattern, negation)
    known = {atom.variable for atom in atoms(pattern)}
    return replace(
        query,
        pattern=pattern,
        predicates=tuple(one for one in query.predicates if variables(one) <= known),
        weights=tuple(one for one in query.weights if one[0] in known),
        definitions=tuple(one for one in query.definitions if one.letter in known),
    )


def loose(query: QuerySyntax) -> QuerySyntax:
    """Only what single events are asked for, their key, their order and the window."""
    pattern = query.pattern
    for negation in negations(pattern):
        pattern = without_negation(pattern, negation)
    known = {atom.variable for atom in atoms(pattern)}
    kept = tuple(one for one in query.predicates if is_static(one) and variables(one) <= known)
    found = replace(passing_all(query), pattern=without_gap_words(pattern), predicates=kept)
    return replace(found, is_simultaneous=False, at_start=False)


def passing_all(query: QuerySyntax) -> QuerySyntax:
    """The query with skip_till_any_match in every gap."""
    return replace(query, pattern=without_gap_words(query.pattern), strategy=DEFAULT_STRATEGY)


def wide(query: QuerySyntax) -> QuerySyntax:
    """The same in a window that nothing leaves."""
    return replace(query, window=replace(query.window, amount=WIDEST // MICROSECONDS.get(query.window.unit, 1)))


def relaxations(query: QuerySyntax) -> Iterator[tuple[str, QuerySyntax]]:
    """The query without one thing that is about several events, and what that is: in the words of the query."""
    negated = negated_variables(query.pattern)
    for predicate in query.predicates:
        if not is_static(predicate) and not variables(predicate) & negated:
            kept = tuple(other for other in query.predicates if other is not predicate)
            yield to_text(predicate), replace(query, predicates=kept)
    for negation in negations(query.pattern):
        gone = {atom.variable for atom in negation.options}
        kept = tuple(one for one in query.predicates if not variables(one) & gone)
        yield to_text(negation), replace(query, pattern=without_negation(query.pattern, negation), predicates=kept)
    if found := passing_less(query):
        yield found[0], passing_all(query)
    if query.at_start:
        yield "AT START", replace(query, at_start=False)
    if query.is_simultaneous:
        yield "SIMULTANEOUS", replace(query, is_simultaneous=False)


def negations(pattern: Pattern) -> list[Absent]:
    """What must not come."""
    return [part for part in walk(pattern) if isinstance(part, Absent)]


def without_negation(pattern: Pattern, negation: Absent) -> Pattern:
    """A pattern without one of its negations."""
    match pattern:
        case Sequence(parts=parts):
            return sequence_of([without_negation(part, negation) for part in parts if part != negation])
        case Either(options=options):
            return choice_of([without_negation(option, negation) for option in options])
        case AllOf(parts=parts):
            return replace(pattern, parts=tuple(without_negation(part, negation) for part in parts))
        case Repeat(part=part, until=until) if until == negation:
            return replace(pattern, part=without_negation(part, negation), until=None)
        case Repeat(part=part) | Spaced(part=part):
            return replace(pattern, part=without_negation(part, negation))
    return pattern


@dataclass(frozen=True)
class Points:
    """The events that complete a match of a changed query: how many, the first, and the one with the shortest span."""

    number: int
    first: int = -1
    shortest: int = -1
    span: int = 0


@dataclass(frozen=True)
class Blocked:
    """What kept events from passing a step, and the place of an event to ask about.

    ``kind`` is "order", "window" or "together". ``relaxed`` are the things without which events pass, each with how
    many; ``span`` is the shortest window in which one passes.
    """

    kind: str
    at: int = -1
    span: int = 0
    relaxed: tuple[tuple[str, int], ...] = ()


class Steps:
    """Runs changed queries over a place.

    Parameters
    ----------
    place : StreamPlace
        Of all keys.
    """

    def __init__(self, place: StreamPlace) -> None:
        self.place = place
        self.query = plain(place.plan.query)
        self.has_beginnings = not self.query.is_machine

    def blocked(self, query: QuerySyntax) -> Blocked | None:
        """What keeps events from passing the last step of a beginning; None: it would take too many run-steps."""
        if not self.has_beginnings:
            return None
        free = self.points(wide(loose(query)))
        if free is None:
            return None
        if not free.number:
            return Blocked("order")
        timely = self.points(loose(query))
        if timely is None:
            return None
        if not timely.number:
            return Blocked("window", free.shortest, free.span)
        relaxed = [(text, self.points(changed)) for text, changed in relaxations(query)]
        helpful = sorted(((text, one) for text, one in relaxed if one and one.number), key=lambda it: -it[1].number)
        at = helpful[0][1].first if helpful else timely.first
        return Blocked("together", at, 0, tuple((text, one.number) for text, one in helpful))

    def points(self, query: QuerySyntax, *, is_patient: bool = False) -> Points | None:
        """The match points of a query; None where it takes too many run-steps, or is no query.

        ``is_patient``: it may take longer.
        """
        number, first, shortest, shortest_span = 0, -1, -1, 0
        try:
            for table in self.place.run(query, BARE, MOST_STEPS if is_patient else STEPS):
                if not table.num_rows:
                    continue
                rows, spans = table.column("row").to_numpy(), _spans(table)
                nearest = int(np.argmin(spans))
                first = first if number else int(rows[0])
                if not number or spans[nearest] < shortest_span:
                    shortest, shortest_span = int(rows[nearest]), int(spans[nearest])
                number += len(rows)
        except (TooManyStepsError, AcepError):
            return None
        return Points(number, first, shortest, shortest_span)


def _spans(table: pa.Table) -> Ints:
    if "span" in table.column_names:
        spans: Ints = table.column("span").to_numpy()
        return spans
    columns = [table.column(name) for name in ("end", "start")]
    if pa.types.is_timestamp(columns[0].type):
        columns = [pc.cast(column, pa.timestamp("us", column.type.tz)) for column in columns]
    end, start = (column.cast(pa.int64()).to_numpy() for column in columns)
    found: Ints = end - start
    return found


# --- the answer ---------------------------------------------------------------------------------------------------

LONGEST_SPAN = 7
"""Characters of a length of time that is told exactly."""
NAMED = 3
"""Variables that a sentence names before the one that it is about."""


def explain_no_match(
    plan: Plan,
    source: Source,
    options: Mapping[str, Any],
    *,
    sort: bool = False,
    most: int | None = 1_000_000,
    key: Any = None,
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
    key : str, list or dict, optional
        Look at the events of this key only.

    Complexity: reads the events once, keeps the columns that the query names, and runs over them once for each step of
    the pattern and each condition on several events.
    """
    found = whole_stream(plan, source, options, sort=sort, most=most, key=key)
    if found is None:
        return NoMatch(0, False, "no events", "no match: there are no events")
    place, is_cut = found
    return no_match_of_algebra(place, is_cut=is_cut) if plan.query.is_algebra else _Search(place, is_cut).answer()


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
    def __init__(self, place: StreamPlace, is_cut: bool) -> None:
        self.place, self.is_cut = place, is_cut
        self.letters = Letters(self.place.plan)
        self.tallies = tallies(self.place, self.letters)
        self.of = {one.variable: one for one in self.tallies}
        self.steps = Steps(self.place)
        self.passed: dict[str, int | None] = {}

    def answer(self) -> NoMatch:
        found = self._alone() or self._of_key() or self._in_order()
        around, key = self._where(found.at, found.back)
        of = f" of {', '.join(map(str, self.place.key.values()))}" if self.place.key else ""
        where = of + (f" in the first {len(self.place.rows):,} events, which were looked at" if self.is_cut else "")
        return NoMatch(
            events=len(self.place.rows),
            is_cut=self.is_cut,
            reason=found.reason,
            headline=found.sentence if found.reason == "found" else f"no match{where}: {found.sentence}",
            steps=tuple(
                Step(
                    one.variable,
                    one.type,
                    one.events,
                    one.fitting,
                    self.passed.get(one.variable),
                    tuple(map(asdict, one.failed)),
                )
                for one in self.tallies
            ),
            step=found.step,
            lines=found.lines,
            helps=self._helps(found) if found.reason in ("type", "condition", "order", "window", "together") else (),
            around=around,
            key=key,
        )

    # --- single events --------------------------------------------------------------------------------------

    def _alone(self) -> _Findings | None:
        """A variable that no event fits by itself."""
        present = int(np.bitwise_or.reduce(self.place.masks))
        if self.letters.accepts(present):
            return None
        step = self.letters.blocking(present)
        place = self.letters.order.index(step[0]) if step else 0
        before = [self.of[name] for name in self.letters.order[:place] if self.of[name].events][-NAMED:]
        came: list[str] = []
        for one in before:
            are = "" if came else " event is" if one.events == 1 else " events are"
            of_type = f"{one.events:,}{are} {one.name}"
            came.append(of_type if one.type is not None else f"{one.fitting:,} events fit {one.variable}")
        clauses = [self._nothing_fits(self.of[name]) for name in step]
        sentence = (f"{', '.join(came)}, but " if came else "") + ", and ".join(clauses)
        is_type = all(not self.of[name].events for name in step)
        passed, _ = self._passed()
        places = [self.of[name].first for name in (*reversed(self.letters.order[:place]), *step)]
        at = _latest(passed)
        at = next((one for one in places if one is not None), None) if at is None else at
        return _Findings("type" if is_type else "condition", step, sentence, (), at)

    def _nothing_fits(self, one: Tally) -> str:
        if not one.events:
            seen = {name for name in self.place.types if name is not None} - {other.type for other in self.tallies}
            near = nearest(str(one.type), seen, NEAR)
            return f"no event is {one.name}" + (f" (did you mean {near!r}?)" if near else "")
        what, singular = (one.name, one.name) if one.type is not None else ("events", "event")
        none = f"none of the {one.events:,} {what} passes" if one.events > 1 else f"the only {singular} does not pass"
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
        told = ", ".join(f"{keys.counts[name]:,} with {name}" for name in needed)
        all_of = "both" if len(needed) == 2 else "all of"
        sentence = f"no {names} has {all_of} {_and(needed)}; there are {told}"
        if not needed:
            sentence = f"no event has a value for {names}"
        lines = [f"values of {keys.names[0]}: {keys.likeness}"] if keys.likeness else []
        if keys.without_key:
            have = "has" if keys.without_key == 1 else "have"
            lines.append(f"{counted(keys.without_key, 'event')} {have} no value for {names}")
        others = [name for name in needed if name not in keys.blocking] or self.letters.order
        return _Findings("key", keys.blocking, sentence, tuple(lines), self.of[others[0]].first)

    # --- several events -------------------------------------------------------------------------------------

    def _in_order(self) -> _Findings:
        """The first step that no event passes after those before it."""
        passed, query = self._passed()
        is_known = bool(passed) and passed[-1][1] is not None
        last = passed[-1][1] if is_known else self.steps.points(self.steps.query, is_patient=True)
        if last is not None and last.number:
            sentence = f"there are matches, completed by {counted(last.number, 'event')}"
            return _Findings("found", (), sentence, (), last.first)
        if not is_known:
            return self._furthest()
        step = passed[-1][0]
        before = [names for names, _ in passed[:-1]]
        at = _latest(passed)
        if at is None:
            fitting = (self.of[name].first for name in step if name in self.of and self.of[name].fitting)
            at = next(fitting, None)
        blocked = self.steps.blocked(query)
        keys = [one.name for one in self.place.plan.query.equivalences]
        after = f" after {_and([' or '.join(names) for names in before])}" if before else ""
        after += f" of the same {' and '.join(keys)}" if keys else ""
        if blocked is None:
            return _Findings("together", step, f"no {self._names(step)} passes{after}", (), at)
        return self._kept_out(blocked, step, before, after, at)

    def _passed(self) -> tuple[list[tuple[tuple[str, ...], Points | None]], QuerySyntax]:
        """For each step of the pattern the events that pass it, up to the first step that none passes; its query.

        None: it could not be found out, as it would take too many run-steps.
        """
        found: list[tuple[tuple[str, ...], Points | None]] = []
        query = self.steps.query
        for beginning in beginnings(query) if self.steps.has_beginnings else ():
            query, points = beginning.query, self.steps.points(beginning.query)
            found.append((beginning.names, points))
            self.passed |= dict.fromkeys(beginning.names, None if points is None else points.number)
            if points is not None and not points.number:
                break
        return found, query

    def _kept_out(
        self, blocked: Blocked, step: tuple[str, ...], before: list[tuple[str, ...]], after: str, at: int | None
    ) -> _Findings:
        """What keeps events from passing a step; ``after`` says in words after which others they would come."""
        lines = tuple(f"{text}: {how}" for text, how in disjoint_sides(self.place, self.letters))
        if blocked.kind == "order":
            comes = "comes" if before else "comes as the pattern asks"
            return _Findings("order", step, f"no {self._names(step)} {comes}{after}", lines, at)
        if blocked.kind == "window":
            window = self.place.plan.query.window
            within = f"within {window.amount}{'' if window.unit == 'ticks' else f' {window.unit}'}"
            sentence = f"no {self._names(step)} comes{after} {within}; they take at least {self._span(blocked.span)}"
            back = 0 if self.place.plan.is_count_window else blocked.span
            return _Findings("window", step, sentence, lines, blocked.at, back)
        everything = _and([name for names in (*before, step) for name in names])
        if not blocked.relaxed:
            sentence = f"{everything} come in order and in time, but never meet all conditions together"
            return _Findings("together", step, sentence, lines, blocked.at)
        (text, number), *others = blocked.relaxed
        more = tuple(f"without {other}: {many:,}" for other, many in others)
        sentence = f"{counted(number, 'event')} would complete {everything} without {text}"
        return _Findings("together", step, sentence, (*more, *lines), blocked.at)

    def _furthest(self) -> _Findings:
        """How far partial matches came, where the pattern has no steps, or they are too many."""
        best: dict[str, Any] | None = None
        try:
            tables = self.place.run(self.steps.query, PARTIAL, STEPS)
            rows = (row for table in tables for row in table.to_pylist())
            best = max(rows, key=lambda row: (row["bound"], -row["errors"]), default=None)
        except (TooManyStepsError, AcepError):
            pass
        bound = [best[name] for name in self.place.plan.automaton.shown if best.get(name) is not None] if best else []
        events = [at for one in bound for at in (one if isinstance(one, list) else [one])]
        if best is None or not events:
            return _Findings("too much", (), "there are too many partial matches to say which step no event passed")
        awaited = tuple(best["awaited"])
        next_ = f": after these no {self._names(awaited)} came that fits" if awaited else ""
        sentence = f"the furthest partial match has {counted(best['bound'], 'event')}{next_}"
        return _Findings("together", awaited, sentence, (), max(events))

    def _names(self, names: tuple[str, ...]) -> str:
        return " or ".join(self.of[name].name if name in self.of else name for name in names)

    def _span(self, span: int, *, is_window: bool = False) -> str:
        """A length as a query would write it; one that is long to say about, as a window the next whole unit."""
        if self.place.plan.is_count_window:
            return f"{span} events"
        text = span_text(span, is_time=self.place.is_time)
        if not self.place.is_time or len(text) <= LONGEST_SPAN:
            return text
        unit, size = next((one for one in UNITS if span >= 2 * one[1]), ("us", 1))  # of which it has at least two
        return f"{-(-span // size)} {unit}" if is_window else f"about {span / size:.3g} {unit}"

    # --- what would help, and where to ask ------------------------------------------------------------------

    def _helps(self, found: _Findings) -> tuple[str, ...]:
        helps = []
        query = self.steps.query
        widest = self.steps.points(wide(query)) if found.reason == "window" else None
        if widest is not None and widest.number:  # its window is all that is wrong
            helps.append(f"WITHIN {self._span(widest.span, is_window=True)}")
        if query.is_machine:
            return tuple(helps)
        errors = query.errors + 1
        has_two = lightest_match(query.pattern, dict(query.weights)) > errors + 1  # a match of one event says little
        more = self.steps.points(replace(query, errors=errors)) if has_two else None
        if more is not None and more.number:
            helps.append(f"ERRORS {errors} ({counted(more.number, 'match point')})")
        return tuple(helps)

    def _where(self, at: int | None, back: int) -> tuple[str, dict[str, Any] | None]:
        """The time and the key of an event, or the time so many ticks before it."""
        if at is None or at < 0:
            return "", None
        place, names = self.place, [one.name for one in self.place.plan.query.equivalences]
        key = {name: as_key(place.column(name).slice(at, 1))[0].as_py() for name in names}
        if any(value is None for value in key.values()):
            return "", None
        return place.when(int(place.ticks[at]) - back), key


def _latest(passed: list[tuple[tuple[str, ...], Points | None]]) -> int | None:
    """The first event that passes the last step that any passes."""
    return next((points.first for _, points in reversed(passed) if points is not None and points.number), None)


def _and(names: list[str]) -> str:
    """``a, b and c``."""
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
