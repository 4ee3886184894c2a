"""Matches that a budget shed: they are in the exact answer, as far as that was looked through, and were not found."""

from __future__ import annotations

from functools import partial

import numpy as np
import pyarrow as pa

from acep_approx.errors import AcepError
from acep_approx.matching.outputs.of_runs import TooManyStepsError
from acep_approx.pages.explorer.data import MatchShown, NearShown
from acep_approx.results.explorer.asking import asking
from acep_approx.results.explorer.events import texts
from acep_approx.results.explorer.explorable import Explorable, PageLabels, joined
from acep_approx.results.explorer.listing import errors_of, shown
from acep_approx.results.explorer.sampling import spread
from acep_approx.why.place import tick_text

RUN_STEPS, ROWS = 20_000_000, 200_000
"""Run-steps that the exact answer may take, and matches of it that are looked at."""


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
    pipeline.results.give_up_after(RUN_STEPS)
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
