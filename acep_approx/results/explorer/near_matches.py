"""What nearly matched, some of it, each with the answer of ``why``; and what a budget shed."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from acep_approx.arrays import Ints
from acep_approx.errors import AcepError
from acep_approx.events.columns import to_numpy
from acep_approx.matching.outputs.of_runs import TooManyStepsError
from acep_approx.pages.explorer import MatchShown, NearShown
from acep_approx.results.explorer.events import texts
from acep_approx.results.explorer.explorable import Explorable, PageLabels, asking, joined
from acep_approx.results.explorer.listing import errors_of, shown, spread
from acep_approx.why.answer import explain_all
from acep_approx.why.place import tick_text
from acep_approx.why.result import Why

PLACES, FEWEST = 40, 3
"""Places that are asked about: at most, and however much each takes."""
KEPT = 2_000_000
"""Events that are kept for all of them, roughly."""
RUN_STEPS, ANSWER_STEPS = 20_000_000, 200_000
"""Run-steps for all partial matches, or for the exact answer; and for each question."""
ROWS = 200_000
"""Partial matches, or matches of the exact answer, that are looked at."""


@dataclass(frozen=True)
class NearMatches:
    """Places where a match nearly was, and how many of how many they are."""

    places: list[NearShown]
    note: str


def near_matches(
    found: Explorable, labels: PageLabels, points: pa.Table, query: int = 0, most: int | None = None
) -> NearMatches:
    """Find places where a match nearly was, and ask why it was not.

    Parameters
    ----------
    found : Explorable
        By rows.
    labels : PageLabels
    points : pyarrow.Table
        Its match points: where a match is, nobody asks why there is none.
    query : int
        Number of the query on the page.
    most : int, optional
        How many places at most. Default: ``PLACES``.

    Complexity: one pass for the partial matches, one for all questions; both bounded in run-steps.
    """
    try:
        table, is_whole, window = _partial(found)
        if not table.num_rows:
            return NearMatches([], "No partial match was left over: nothing came near without a match.")
        apart = table.filter(pa.array(~_covered(table, points, len(found.plan.query.equivalences))))
        furthest = apart.filter(pc.equal(apart.column("bound"), pc.max(apart.column("bound"))))
        number = min(number_of_places(found, table, window), PLACES if most is None else most)
        asked = furthest.take(pa.array(spread(_reasons(furthest), number)))
        answers = _answers(found, asked)
    except AcepError as error:  # of some queries they cannot be had: the page is right without them
        return NearMatches([], f"What nearly matched is not shown: {error.message}.")
    pairs = [(row, why) for row, why in enumerate(answers) if not why.matched and why.events]
    places = [_shown(found, labels, query, asked, row, why) for row, why in pairs]
    return NearMatches(places, _note(len(places), furthest, apart.num_rows, is_whole=is_whole))


def near_or_shed(plain: Explorable, labels: PageLabels, points: pa.Table) -> NearMatches:
    """The same of matches by rows; within a budget first what it shed, and then what nearly matched without one."""
    exact = plain.exact
    if exact is plain:
        return near_matches(plain, labels, points)
    shed, note = shed_matches(plain, exact, labels, points, PLACES // 2)
    near = near_matches(exact, labels, points, most=PLACES - len(shed))
    return NearMatches([*shed, *near.places], f"{note} {near.note}")


def _note(places: int, furthest: pa.Table, rows: int, *, is_whole: bool) -> str:
    if not places:
        return "Nothing came near but where there is a match, too."
    events = furthest.column("bound")[0].as_py()
    plural = "" if furthest.num_rows == 1 else "es"
    of = f"{furthest.num_rows:,} partial match{plural} that came furthest where no match is"
    so_far = "" if is_whole else " among the first ones, which were all that was looked through"
    others = rows - furthest.num_rows
    less = f"; {others:,} more came less far" if others else ""
    return (
        f"Nearly matched: {places:,} place{'' if places == 1 else 's'}, evenly chosen from {of} "
        f"({events} event{'' if events == 1 else 's'}){so_far}{less}."
    )


def _partial(found: Explorable) -> tuple[pa.Table, bool, int]:
    """Partial matches, whether these are all, and the window."""
    matcher, pipeline = found.source.settle(partial(found._bound, "partial"))
    if pipeline is None:
        return pa.table({}), True, 0
    pipeline.give_up_after(RUN_STEPS)
    tables, rows = [], 0
    try:
        for table in found._through(matcher, pipeline):
            tables.append(table)
            rows += table.num_rows
            if rows > ROWS:
                return joined(tables), False, pipeline.window
    except TooManyStepsError:
        return joined(tables), False, pipeline.window
    return joined(tables), True, pipeline.window


def _covered(table: pa.Table, points: pa.Table, keys: int) -> npt.NDArray[np.bool_]:
    """Whether the last event of a partial match lies within a match of its key, as far as match points tell."""
    covered = np.zeros(table.num_rows, np.bool_)
    if "start" not in points.column_names or not points.num_rows:  # windows of events
        return covered
    codes = _key_codes(table, points, keys)
    mine, theirs = codes[: table.num_rows], codes[table.num_rows :]
    at, start, end = _ticks(table, "end"), _ticks(points, "start"), _ticks(points, "end")
    by_key, by_end = np.argsort(mine, kind="stable"), np.lexsort((end, theirs))
    sorted_, start, end, theirs = mine[by_key], start[by_end], end[by_end], theirs[by_end]
    for code in np.unique(theirs).tolist():
        first, last = np.searchsorted(theirs, [code, code + 1]).tolist()
        some = by_key[slice(*np.searchsorted(sorted_, [code, code + 1]).tolist())]
        earliest = np.minimum.accumulate(start[first:last][::-1])[::-1]  # of the matches that end then or later
        place = np.searchsorted(end[first:last], at[some])
        is_before = place < last - first
        covered[some[is_before]] = earliest[place[is_before]] <= at[some[is_before]]
    return covered


def _key_codes(table: pa.Table, points: pa.Table, keys: int) -> Ints:
    """A number for each key: of the rows of both tables."""
    rows = table.num_rows + points.num_rows
    if not keys:
        return np.zeros(rows, np.int64)
    both = [[*texts(table.column(at)), *texts(points.column(at))] for at in range(keys)]
    numbers: dict[tuple[str | None, ...], int] = {}
    return np.array([numbers.setdefault(key, len(numbers)) for key in zip(*both, strict=True)], np.int64)


def _ticks(table: pa.Table, name: str) -> Ints:
    return to_numpy(table.column(name).combine_chunks().cast(pa.int64()))


def _reasons(table: pa.Table) -> Ints:
    """Why each came no further, as a number: each reason has its share of the places."""
    encoded = table.column("why").combine_chunks().dictionary_encode().indices
    return to_numpy(encoded.cast(pa.int64()))


def number_of_places(found: Explorable, table: pa.Table, window: int) -> int:
    """How many places can be asked about: each keeps the events of its key within two windows."""
    events = max(found.progress.events, 1)
    if not found.plan.is_count_window:
        ends = _ticks(table, "end")
        events = int(events * min(1.0, 4 * window / max(int(ends.max() - ends.min()), 1))) + 1
    keys = len(found.plan.query.equivalences)
    if keys and found.plan.counted != "stream":
        events = events // max(len(pc.unique(table.column(0))), 1) + 1
    return min(PLACES, max(FEWEST, KEPT // events))


def _answers(found: Explorable, asked: pa.Table) -> list[Why]:
    names = [one.name for one in found.plan.query.equivalences]
    keys = [dict(zip(names, row.values(), strict=True)) for row in asked.select(range(len(names))).to_pylist()]
    around = asked.column("end").to_pylist()
    places = [(at, keys[row] if keys else None) for row, at in enumerate(around)]
    roles = {name: found._options[name] for name in ("time", "key", "type", "unit", "start")}
    return explain_all(found.plan, found.source, places, roles, sort=found._sort, steps=ANSWER_STEPS)


def _shown(found: Explorable, labels: PageLabels, query: int, asked: pa.Table, row: int, why: Why) -> NearShown:
    one = asked.slice(row, 1)
    start, end = (one.column(name).cast(pa.int64())[0].as_py() for name in ("start", "end"))
    names = [equivalence.name for equivalence in found.plan.query.equivalences]
    key = tuple(texts(one.column(at))[0] for at in range(len(names)))
    is_time = pa.types.is_timestamp(one.column("end").type)
    place = tick_text(end, is_time=is_time)
    ask = asking(labels, place, dict(zip(names, key, strict=True)), is_time=is_time)
    events = tuple((event["variable"], event["row"]) for event in why.events)
    awaited = tuple(dict.fromkeys(waiting["variable"] for waiting in why.awaited if waiting["variable"]))
    lines = why.lines[: len(why.lines) - len(why.helps) - 1] if why.helps else why.lines  # these are told apart
    return NearShown(query, start, end, key, why.errors, events, why.why, awaited, why.headline, lines, why.helps, ask)


def shed_matches(
    found: Explorable, exact: Explorable, labels: PageLabels, points: pa.Table, most: int
) -> tuple[list[NearShown], str]:
    """Some of the matches at match points that a budget missed.

    Parameters
    ----------
    found, exact : Explorable
        By rows: within the budget, and without one.
    labels : PageLabels
    points : pyarrow.Table
        The match points that were found.
    most : int
        How many matches at most.

    Returns
    -------
    list of NearShown, str
        And how many of how many they are, as a sentence.

    Complexity: one exact pass, bounded in run-steps and in matches.
    """
    try:
        table, is_whole = _missed(exact, points, len(found.plan.query.equivalences))
    except AcepError as error:
        return [], f"What the budget shed is not shown: {error.message}."
    so_far = "" if is_whole else " among the first ones, which were all that was looked through"
    if not table.num_rows:
        return [], f"The budget missed no match point{so_far}."
    some = table.take(pa.array(spread(errors_of(table), most)))
    named = () if found.plan.query.is_algebra else (*found.plan.automaton.shown, "events")
    names = [name for name in named if name in some.column_names]
    keys = some.column_names[: len(found.plan.query.equivalences)]
    is_time = pa.types.is_timestamp(some.column("end").type)
    places = [_place(found, labels, one, is_time=is_time) for one in shown(some, 0, keys, names, ())]
    plural = "match" if table.num_rows == 1 else "matches"
    listed = f"{len(places):,} {'is' if len(places) == 1 else 'are'} listed"
    return places, f"The budget shed {table.num_rows:,} {plural} at match points that it missed{so_far}; {listed}."


def _missed(exact: Explorable, points: pa.Table, keys: int) -> tuple[pa.Table, bool]:
    """The matches that end where no match point was found, and whether these are all."""
    matcher, pipeline = exact.source.settle(partial(exact._bound, "matches"))
    if pipeline is None:
        return pa.table({}), True
    pipeline.give_up_after(RUN_STEPS)
    known = set(_ends(points, keys))
    tables: list[pa.Table] = []
    rows = 0
    try:
        for table in exact._through(matcher, pipeline):
            is_missed = np.array([end not in known for end in _ends(table, keys)], np.bool_)
            tables.append(table.filter(pa.array(is_missed)))
            rows += table.num_rows
            if rows > ROWS:
                return joined(tables), False
    except TooManyStepsError:
        return joined(tables), False
    return joined(tables), True


def _ends(table: pa.Table, keys: int) -> list[tuple[object, ...]]:
    """Where each row ends: the key and the time."""
    ends = table.column("end").cast(pa.int64()).to_pylist()
    return list(zip(ends, *(texts(table.column(at)) for at in range(keys)), strict=True))


def _place(found: Explorable, labels: PageLabels, one: MatchShown, *, is_time: bool) -> NearShown:
    names = [equivalence.name for equivalence in found.plan.query.equivalences]
    at = tick_text(one.end, is_time=is_time)
    of = f" of {', '.join(key or '-' for key in one.key)}" if one.key else ""
    without = f", without {', '.join(one.missing)}" if one.missing else ""
    return NearShown(
        query=one.query,
        start=one.start,
        tick=one.end,
        key=one.key,
        errors=one.errors,
        events=one.events,
        why="shed",
        awaited=one.missing,
        headline=f"a match{of} at {at}{without and without + ','} was shed",
        lines=("the exact answer has it; the budget had no room for the run that leads to it",),
        helps=("more budget",),
        ask=asking(labels, at, dict(zip(names, one.key, strict=True)), is_time=is_time),
    )
