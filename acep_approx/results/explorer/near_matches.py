"""What nearly matched, some of it, each with the answer of ``why``; and what a budget shed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from acep_approx.arrays import Ints
from acep_approx.errors import AcepError
from acep_approx.events.columns import integers, to_numpy
from acep_approx.events.counts import counted
from acep_approx.events.writing.tables import gathered_table
from acep_approx.matching.outputs.kinds import MATCHES, PARTIAL, OutputKind
from acep_approx.matching.outputs.of_runs import TooManyStepsError
from acep_approx.matching.pipeline import Pipeline
from acep_approx.pages.explorer import NearShown
from acep_approx.results.explorer.explorable import Explorable, PageLabels, keys_of
from acep_approx.results.explorer.listing import errors_of, shown, spread, texts
from acep_approx.why.answer import explain_all
from acep_approx.why.place import tick_text
from acep_approx.why.result import Why

PLACES, FEWEST = 40, 3
"""Places that are asked about: at most, and however much each takes."""
KEPT = 2_000_000
"""Events that are kept for all of them, roughly."""
RUN_STEPS, ANSWER_STEPS = 5_000_000, 200_000
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
        table, is_whole, pipeline = _some_of(found, PARTIAL, lambda table: table)
        if not (is_whole or table.num_rows):
            return NearMatches([], "What nearly matched is not shown: there are too many partial matches.")
        if pipeline is None or not table.num_rows:
            return NearMatches([], "No partial match was left over: nothing came near without a match.")
        apart = table.filter(pa.array(~_covered(table, points, len(keys_of(found)))))
        furthest = apart.filter(pc.equal(apart.column("bound"), pc.max(apart.column("bound"))))
        number = min(number_of_places(found, table, pipeline.window), PLACES if most is None else most)
        reasons = to_numpy(furthest.column("why").combine_chunks().dictionary_encode().indices.cast(pa.int64()))
        asked = furthest.take(pa.array(spread(reasons, number)))  # each reason has its share of the places
        keys = asked.select(range(len(keys_of(found)))).rename_columns(keys_of(found)).to_pylist()
        around = asked.column("end").to_pylist()
        places = [(at, keys[row] if keys else None) for row, at in enumerate(around)]
        roles, sort = found.question.roles, found.question.sort
        answers = explain_all(found.plan, found.source, places, roles, sort=sort, steps=ANSWER_STEPS)
    except AcepError as error:  # of some queries they cannot be had: the page is right without them
        return NearMatches([], f"What nearly matched is not shown: {error.message}.")
    pairs = [(row, why) for row, why in enumerate(answers) if not why.matched and why.events]
    shown_places = [_shown(found, labels, query, asked.slice(row, 1), why) for row, why in pairs]
    return NearMatches(shown_places, _note(len(shown_places), furthest, apart.num_rows, is_whole=is_whole))


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
    of = f"{counted(furthest.num_rows, 'partial match')} that came furthest where no match is"
    so_far = "" if is_whole else " among the first ones, which were all that was looked through"
    others = rows - furthest.num_rows
    less = f"; {others:,} more came less far" if others else ""
    return (
        f"Nearly matched: {counted(places, 'place')}, evenly chosen from {of} "
        f"({events} event{'' if events == 1 else 's'}){so_far}{less}."
    )


def _some_of(
    found: Explorable, kind: OutputKind, kept: Callable[[pa.Table], pa.Table]
) -> tuple[pa.Table, bool, Pipeline | None]:
    """What is kept of the first results, whether these are all, and what found them; None: there are no columns."""
    matcher = found.begun(kind)
    tables, rows, is_whole = list[pa.Table](), 0, True
    if matcher.pipeline is not None:
        matcher.pipeline.results.give_up_after(RUN_STEPS)
    try:
        for table in found.found_by(matcher):
            tables.append(kept(table))
            rows += table.num_rows
            if rows > ROWS:
                is_whole = False
                break
    except TooManyStepsError:
        is_whole = False
    return gathered_table(tables), is_whole, matcher.pipeline


def _covered(table: pa.Table, points: pa.Table, keys: int) -> npt.NDArray[np.bool_]:
    """Whether the last event of a partial match lies within a match of its key, as far as match points tell."""
    covered = np.zeros(table.num_rows, np.bool_)
    if "start" not in points.column_names or not points.num_rows:  # windows of events
        return covered
    codes = _key_codes(table, points, keys)
    mine, theirs = codes[: table.num_rows], codes[table.num_rows :]
    at, start, end = integers(table, "end"), integers(points, "start"), integers(points, "end")
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


def number_of_places(found: Explorable, table: pa.Table, window: int) -> int:
    """How many places can be asked about: each keeps the events of its key within two windows."""
    events = max(found.progress.events, 1)
    if not found.plan.is_count_window:
        ends = integers(table, "end")
        events = int(events * min(1.0, 4 * window / max(int(ends.max() - ends.min()), 1))) + 1
    if keys_of(found) and found.plan.counted != "stream":
        events = events // max(len(pc.unique(table.column(0))), 1) + 1
    return min(PLACES, max(FEWEST, KEPT // events))


def _shown(found: Explorable, labels: PageLabels, query: int, one: pa.Table, why: Why) -> NearShown:
    start, end = (one.column(name).cast(pa.int64())[0].as_py() for name in ("start", "end"))
    names = keys_of(found)
    key = tuple(texts(one.column(at))[0] for at in range(len(names)))
    is_time = pa.types.is_timestamp(one.column("end").type)
    asked = labels.asking(tick_text(end, is_time=is_time), dict(zip(names, key, strict=True)), is_time=is_time)
    lines = why.lines[: len(why.lines) - len(why.helps) - 1] if why.helps else why.lines  # these are told apart
    return NearShown(
        query=query,
        start=start,
        tick=end,
        key=key,
        errors=why.errors,
        events=tuple((event["variable"], event["row"]) for event in why.events),
        why=why.why,
        awaited=tuple(dict.fromkeys(waiting["variable"] for waiting in why.awaited if waiting["variable"])),
        headline=why.headline,
        lines=lines,
        helps=why.helps,
        ask=asked,
    )


# --- what a budget shed -----------------------------------------------------------------------------------------


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
    keys = keys_of(found)
    known = set(_ends(points, len(keys)))

    def missed(table: pa.Table) -> pa.Table:
        is_missed = np.array([end not in known for end in _ends(table, len(keys))], np.bool_)
        return table.filter(pa.array(is_missed))

    try:
        table, is_whole, _ = _some_of(exact, MATCHES, missed)
    except AcepError as error:
        return [], f"What the budget shed is not shown: {error.message}."
    so_far = "" if is_whole else " among the first ones, which were all that was looked through"
    if not table.num_rows:
        return [], f"The budget missed no match point{so_far}."
    some = table.take(pa.array(spread(errors_of(table), most)))
    named = () if found.plan.query.is_algebra else (*found.plan.automaton.shown, "events")
    names = [name for name in named if name in some.column_names]
    is_time = pa.types.is_timestamp(some.column("end").type)
    places = []
    for one in shown(some, 0, some.column_names[: len(keys)], names, ()):
        at = tick_text(one.end, is_time=is_time)
        of = f" of {', '.join(key or '-' for key in one.key)}" if one.key else ""
        without = f", without {', '.join(one.missing)}," if one.missing else ""
        places.append(
            NearShown(
                query=one.query,
                start=one.start,
                tick=one.end,
                key=one.key,
                errors=one.errors,
                events=one.events,
                why="shed",
                awaited=one.missing,
                headline=f"a match{of} at {at}{without} was shed",
                lines=("the exact answer has it; the budget had no room for the run that leads to it",),
                helps=("more budget",),
                ask=labels.asking(at, dict(zip(keys, one.key, strict=True)), is_time=is_time),
            )
        )
    listed = f"{len(places):,} {'is' if len(places) == 1 else 'are'} listed"
    number = counted(table.num_rows, "match")
    return places, f"The budget shed {number} at match points that it missed{so_far}; {listed}."


def _ends(table: pa.Table, keys: int) -> list[tuple[object, ...]]:
    """Where each row ends: the key and the time."""
    ends = table.column("end").cast(pa.int64()).to_pylist()
    return list(zip(ends, *(texts(table.column(at)) for at in range(keys)), strict=True))
