"""Why a query matched at some place of the stream, or did not, in words.

The events of one key around a time are run again: for a match, for the furthest partial match, and with one thing
about the query changed at a time, to see what would have helped.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from collections.abc import Sequence as Items
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import pyarrow as pa

from acep_approx.automaton.automaton import START
from acep_approx.errors import AcepError, UnsupportedError, UsageError
from acep_approx.events.reading.widening import one_table
from acep_approx.events.source import Source, open_source
from acep_approx.events.stream import read_events
from acep_approx.matching.execution import Execution
from acep_approx.matching.outputs.kinds import BARE, MATCHES, PARTIAL
from acep_approx.matching.outputs.of_runs import TooManyStepsError
from acep_approx.planning.planner import Plan
from acep_approx.query.printer import to_text
from acep_approx.query.shape import passing_less
from acep_approx.query.syntax import LISTS_ALL, QuerySyntax
from acep_approx.why.no_match import explain_no_match, negations, passing_all, without_negation
from acep_approx.why.of_algebra import explain_algebra
from acep_approx.why.place import StreamPlace, are_of_key, find_places, key_asked, span_text, unified
from acep_approx.why.result import NoMatch, Why, text_of
from acep_approx.why.waiting import Awaited, Bound, Failed, Waiting

STEPS = 2_000_000
"""Run-steps after which a question is given up."""
LISTED = 10_000
"""Matches that are looked at to find the best one."""
MORE_ERRORS = 3
MOST_EVENTS = 10_000_000
"""Events that are looked at."""


def explain(
    wanted: Plan, source: Source, around: Any, key: Any, options: Mapping[str, Any], *, sort: bool = False
) -> Why:
    """Find out why a query matched around a time, or did not.

    Parameters
    ----------
    wanted : Plan
    source : Source
    around : str, int or datetime
        A match is there if it begins at or before this time and ends at or after it.
    key : str, list or dict, optional
        The values of the equivalence attributes: the value of the only one, ``"attr=value"``, several of these, or a
        dict.
    options : mapping
        ``time``, ``key``, ``type``, ``unit``, ``start``, as for ``Execution``.
    sort : bool
        Sort the events by time first.

    Raises
    ------
    UsageError, DataError
        See ``place.find_places``.

    Complexity: reads the events once, and runs those within two windows of the time once per question asked.
    """
    return explain_all(wanted, source, [(around, key)], options, sort=sort)[0]


def explain_all(
    wanted: Plan,
    source: Source,
    asked: Items[tuple[Any, Any]],
    options: Mapping[str, Any],
    *,
    sort: bool = False,
    steps: int = STEPS,
) -> list[Why]:
    """The same for many places at once.

    Parameters
    ----------
    wanted, source, options, sort
        As for ``explain``.
    asked : sequence of (time, key)
        Each as for ``explain``.
    steps : int
        Run-steps after which a question is given up.

    Complexity: reads the events once for all; see ``place.find_places``.
    """
    places = find_places(wanted, source, asked, options, sort=sort)
    if wanted.query.is_algebra:
        return [explain_algebra(place) for place in places]
    return [_Diagnosis(place, steps).answer() for place in places]


_LEFT_OUT = {
    "MAXIMAL": "if another match has all its events, and more",
    "FIRST": "if a match that is reported before begins with the same event",
    "NON": "if a match that is reported before overlaps it",
    "AFTER": "if it starts too early behind the match that is reported before it",
    "CONSUME": "if a match that is reported before has one of its events",
    "EVERY": "if it ends too soon behind the match that is reported before it",
}
"""When a clause, by its first word, keeps a match from being listed."""


@dataclass(frozen=True)
class _Candidate:
    bound: Bound
    errors: int
    missing: tuple[str, ...]
    why: str = ""
    awaited: tuple[str, ...] = ()


class _Diagnosis:
    def __init__(self, place: StreamPlace, steps: int) -> None:
        self.place, self.steps = place, steps
        if not place.plan.automaton.shown and not place.plan.query.is_regex:
            raise UnsupportedError(
                "the answer names the events of a match, and this automaton shows none",
                code="ACEP-Q916",
                hint="give the arcs variables: ON Tick t",
            )
        self.query = replace(place.plan.query, outputs=(), selection=LISTS_ALL)
        self.clock = place.clock
        self.waiting = Waiting(place)
        self.gave_up = False
        self.around = place.when(place.around)

    def answer(self) -> Why:
        if match := self._match(self.query):
            return self._matched(match)
        if not self.place.near().any():
            return self._why(": no event came within a window of it")
        partial = self._partial()
        if partial is not None:
            return self._unmatched(partial)
        if self.gave_up:
            return self._why("; too many partial matches to look through")
        awaited = self.waiting.awaited((), 0, self.waiting.states.at(START, 0)[0])
        return self._why(": no event there could begin one", awaited=awaited)

    # --- answers --------------------------------------------------------------------------------------------

    def _why(
        self,
        rest: str,
        found: _Candidate | None = None,
        refused: tuple[Items[Failed], Items[tuple[str, int]]] = ((), ()),
        awaited: Items[Awaited] | None = None,
        lines: Items[str] = (),
    ) -> Why:
        failed, negated = refused
        is_known, awaited = awaited is not None, awaited or ()
        helps = self._helps([*failed, *(each for one in awaited for each in one.failed)]) if is_known else ()
        said = [
            *lines,
            *(f"  {one.condition} does not hold: {one.nearest.values}" for one in failed),
            *(f"  {variable} came, which must not happen ({self.place.named(at)})" for variable, at in negated),
            *(line for one in awaited for line in self._awaited_lines(one, began=found is not None)),
            *(("it would match with", *(f"  {one}" for one in helps)) if helps else ()),
        ]
        return Why(
            self.around,
            self.place.key,
            matched=False,
            errors=found.errors if found else 0,
            missing=found.missing if found else (),
            events=self._events(found) if found else (),
            why=found.why if found else "",
            awaited=tuple(map(self._plain, awaited)),
            helps=helps,
            headline=f"no match{self._of()} at {self.around}{rest}",
            lines=tuple(said),
        )

    def _matched(self, found: _Candidate) -> Why:
        missing = f", without {', '.join(found.missing)}" if found.missing else ""
        clauses = self.place.plan.query.selection.clauses
        return Why(
            self.around,
            self.place.key,
            matched=True,
            errors=found.errors,
            missing=found.missing,
            events=self._events(found),
            headline=f"there is a match{self._of()} at {self.around}, with {_amount(found.errors, 'error')}{missing}",
            lines=tuple(f"{clause} leaves it out {_LEFT_OUT[clause.split()[0]]}" for clause in clauses),
        )

    def _unmatched(self, found: _Candidate) -> Why:
        asked = found.bound, found.errors, found.awaited
        refused = self.waiting.refused(*asked) if found.why == "refused" else ((), ())
        errors = f", with {_amount(found.errors, 'error')} so far" if found.errors else ""
        rest = f"; the furthest partial match has {_amount(len(found.bound), 'event')}{errors}"
        return self._why(rest, found, refused, self.waiting.awaited(*asked), [self._ending(found)])

    # --- words ----------------------------------------------------------------------------------------------

    def _of(self) -> str:
        values = ", ".join(text_of(value) for value in self.place.key.values())
        return f" of {values}" if values else ""

    def _events(self, found: _Candidate) -> tuple[dict[str, Any], ...]:
        """The events by variable; their time, whatever attribute is called so."""
        times = [self.place.when(int(self.place.ticks[at])) for at, _ in found.bound]
        named = zip(found.bound, times, strict=True)
        return tuple({"variable": name, **self.place.event(at), "time": time} for (at, name), time in named)

    def _ending(self, found: _Candidate) -> str:
        first, last = found.bound[0][0], found.bound[-1][0]
        match found.why:
            case "window closed" if not self.place.plan.is_count_window:
                end = self.place.when(int(self.place.ticks[first]) + self.place.window)
                return f"its window closed after {end}"
            case "window closed":
                return f"its window of {_amount(self.place.window, 'event')} closed"
            case "stream ended":
                return "the stream ended before its window closed"
            case "broken":
                is_of_all = self.place.plan.counted == "stream"
                later = self.place.between(last, len(self.place.rows), of_part=not is_of_all)
                return f"the next event ({self.place.named(later[0])}) did not fit, and it cannot be skipped"
        return "all its events came, but:"

    def _awaited_lines(self, one: Awaited, *, began: bool) -> Iterator[str]:
        type_ = f" ({one.type})" if one.type and one.type != one.variable else ""
        came = f"{one.came} came within the window" if one.came else "none came within the window"
        fits = ", none fits" if one.came and not one.cut else ""
        yield f"waited for {one.variable}{type_}: {came}{fits}"
        if one.before and began and not one.came:
            yield f"  {one.before} came before the last event of the partial match"
        yield from (f"  {failed.line(self.place)}" for failed in one.failed)
        if one.late:
            late, at = one.late
            yield f"  one that fits came too late, by {self._span(late)} ({self.place.named(at)})"
        if one.cut:
            fits_at, by = map(self.place.named, one.cut)
            who = f"{one.cut_by} came" if one.cut_by else "another event, which cannot be skipped, came"
            yield f"  one would fit ({fits_at}), but {who} before it ({by})"

    def _span(self, amount: int) -> str:
        if self.place.plan.is_count_window:
            return f"{amount} events"
        return span_text(amount, is_time=self.place.is_time)

    def _plain(self, one: Awaited) -> dict[str, Any]:
        rows = self.place.rows
        late = {"by": self._span(one.late[0]), "row": int(rows[one.late[1]])} if one.late else None
        cut = None
        if one.cut:
            cut = {"row": int(rows[one.cut[0]]), "by": int(rows[one.cut[1]]), "variable": one.cut_by or None}
        return {
            "variable": one.variable,
            "type": one.type,
            "came": one.came,
            "before": one.before,
            "failed": [failed.plain(self.place) for failed in one.failed],
            "late": late,
            "cut": cut,
        }

    # --- what would have helped -----------------------------------------------------------------------------

    def _helps(self, failed: Items[Failed]) -> tuple[str, ...]:
        query = self.query
        helps: list[str] = []
        wider = replace(query.window, amount=2 * query.window.amount)
        if query.window.amount and (match := self._match(replace(query, window=wider), shortest=True)):
            helps.append(f"WITHIN {self._span(self._length(match))}")
        for errors in range(query.errors + 1, query.errors + 1 + MORE_ERRORS):
            match = self._match(replace(query, errors=errors))
            if match and len(match.bound) > 1:  # one event alone says little
                without = f" (without {', '.join(match.missing)})" if match.missing else ""
                helps.append(f"ERRORS {errors}{without}")
                break
        for predicate in query.predicates:
            kept = tuple(p for p in query.predicates if p is not predicate)
            is_blamed = any(one.condition in to_text(predicate) for one in failed)
            if is_blamed and self._match(replace(query, predicates=kept)):
                helps.append(f"no condition {to_text(predicate)}")
        helps += [
            f"no {to_text(negation)}"
            for negation in negations(query.pattern)
            if self._match(replace(query, pattern=without_negation(query.pattern, negation)))
        ]
        if passing_less(query) and (match := self._match(passing_all(query))):
            events = ", ".join(f"{variable} row {self.place.rows[at]}" for at, variable in match.bound)
            helps.append(f"skip_till_any_match ({events})")
        if query.is_simultaneous and self._match(replace(query, is_simultaneous=False)):
            helps.append("no SIMULTANEOUS")
        return tuple(helps)

    # --- running --------------------------------------------------------------------------------------------

    def _match(self, query: QuerySyntax, *, shortest: bool = False) -> _Candidate | None:
        """A match around the time: with fewest errors, or the shortest."""
        ticks, around = self.place.ticks, self.place.around

        def rank(found: _Candidate) -> tuple[int, int]:
            span = self._length(found)
            return (span, found.errors) if shortest else (found.errors, span)

        best: _Candidate | None = None
        seen = 0
        for table in self._run(query, MATCHES):
            for row in table.to_pylist():
                found = _Candidate(self._bound(row, query), row["errors"], tuple(row.get("missing") or ()))
                first, last = found.bound[0][0], found.bound[-1][0]
                is_there = self.place.is_part[first] and ticks[first] <= around <= ticks[last]
                if is_there and (best is None or rank(found) < rank(best)):
                    best = found
            seen += table.num_rows
            if seen > LISTED:
                break
        return best

    def _length(self, found: _Candidate) -> int:
        return int(self.clock[found.bound[-1][0]] - self.clock[found.bound[0][0]])

    def _partial(self) -> _Candidate | None:
        """The furthest partial match whose window holds the time; else the one that began soonest after it."""
        found = [
            _Candidate(self._bound(row, self.query), row["errors"], (), row["why"], tuple(row["awaited"]))
            for table in self._run(self.query, PARTIAL)
            for row in table.to_pylist()
        ]
        near = self.place.near()
        found = [one for one in found if near[one.bound[0][0]]]
        before = [one for one in found if self.place.ticks[one.bound[0][0]] <= self.place.around]

        def progress(one: _Candidate) -> tuple[int, int, int, int]:
            return len(one.bound), -one.errors, one.bound[-1][0], one.bound[0][0]

        furthest = max(before or found, key=progress, default=None)
        if furthest is None or furthest.why != "stream ended" or self.place.plan.is_count_window:
            return furthest
        closed = self.place.until > self.place.ticks[furthest.bound[0][0]] + self.place.window
        return replace(furthest, why="window closed") if closed else furthest

    def _bound(self, row: dict[str, Any], query: QuerySyntax) -> Bound:
        if query.is_regex:
            return [(at, "") for at in row["events"]]
        bound = []
        for variable in self.place.plan.automaton.shown:
            value = row.get(variable)
            bound += [(at, variable) for at in (value if isinstance(value, list) else [] if value is None else [value])]
        return sorted(bound)

    def _run(self, query: QuerySyntax, output: str) -> Iterator[pa.Table]:
        """Run a query over the events of the place; nothing where it cannot be run, or takes too long."""
        if not len(self.place.rows):
            return
        try:
            yield from self.place.run(query, output, self.steps)
        except TooManyStepsError:
            self.gave_up = True
        except AcepError:
            if query is self.query:
                raise
            return  # changed in this way it is no query


def _amount(number: int, thing: str) -> str:
    return f"{number} {thing}{'' if number == 1 else 's'}"


# --- asked of a whole stream --------------------------------------------------------------------------------


def explain_stream(
    wanted: Plan, source: Source, key: Any, options: Mapping[str, Any], *, sort: bool = False
) -> Why | NoMatch:
    """Find out why a query matched first where it did, or why it matched nowhere.

    Parameters
    ----------
    wanted : Plan
    source : Source
    key : str, list or dict, optional
        Ask of the events of this key, as for ``explain``. Default: of all.
    options : mapping
        ``time``, ``key``, ``type``, ``unit``, ``start``, as for ``Execution``.
    sort : bool
        Sort the events by time first.

    Returns
    -------
    Why or NoMatch
        Of the first match; of all events where there is none, with the furthest partial match.

    Raises
    ------
    UsageError, DataError
        See ``place.whole_stream``.

    Complexity: a run of the query up to its first match; see ``no_match`` where there is none. Events that
    can be read only once are kept.
    """
    if not source.reusable:
        batches = list(source.batches(source.readable.names))
        source = open_source(unified(one_table(batches)) if batches else source.readable.empty_table())
    first = _first_match(wanted, source, key, options, sort=sort)
    if first is not None:
        around, keys = first
        answer = explain(wanted, source, around, keys or None, options, sort=sort)
        of = "the stream" if key is None else "this key"
        with_key = ", with --key VALUE (around= and key= in Python)" if key is None else " (around= in Python)"
        asking = f"this is the first match of {of}; say when to ask about others: --around TIME{with_key}"
        return replace(answer, lines=(*answer.lines, asking))
    if key is not None and wanted.counted == "stream":  # what others do in between plays a role
        raise UsageError(
            "no match of this key; as the query looks at all events in between, a key says little more without a time",
            code="ACEP-U130",
            hint="say when, too: --around TIME (around= in Python)",
        )
    found = explain_no_match(wanted, source, options, sort=sort, most=MOST_EVENTS, key=key)
    if not found.around:
        return found
    furthest = explain(wanted, source, found.around, found.key or key, options, sort=sort)
    lines = () if wanted.cel is not None else found.lines  # those of a chain are said below
    return replace(found, lines=lines, furthest=furthest)


def _first_match(
    wanted: Plan, source: Source, key: Any, options: Mapping[str, Any], *, sort: bool
) -> tuple[Any, dict[str, Any]] | None:
    """When the first match ends, of a key or of all, and its key."""
    if not len(source.schema):
        return None
    matcher = Execution(wanted, output=BARE, **options)
    pipeline = matcher.bind(source.schema)
    keys = [one.name for one in wanted.query.equivalences]
    asked = None if key is None else [*key_asked(wanted, key, pipeline.schema, pipeline.roles).values()]
    batches = read_events(source, pipeline.roles, columns=pipeline.columns, sort=sort)
    running = (table for batch in batches for table in matcher.run(batch))
    for found in chain(running, pipeline.finish()):
        table = found
        if asked is not None:
            columns = [found.column(number).combine_chunks() for number in range(len(keys))]
            table = found.filter(pa.array(are_of_key(columns, asked, found.num_rows)))
        if table.num_rows:
            row = table.slice(0, 1).to_pylist()[0]
            return row["end"], {name: table.column(number)[0].as_py() for number, name in enumerate(keys)}
    return None
