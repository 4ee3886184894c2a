"""The events of results in CEL, which name none: the query is followed anew around some of them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa

from acep_approx.automaton.algebra import attribute_of
from acep_approx.errors import AcepError
from acep_approx.pages.explorer.data import MatchShown
from acep_approx.results.explorer.events import texts
from acep_approx.results.explorer.explorable import Explorable
from acep_approx.results.explorer.listing import Listing, bounded
from acep_approx.results.explorer.sampling import spread
from acep_approx.why.chains import Chains, Run
from acep_approx.why.place import StreamPlace, find_places, tick_text

RUNS = 100
"""Runs that are followed for each result."""


def with_events(found: Explorable, chosen: Listing, most: int, *, is_time: bool) -> Listing:
    """The results with the events that they were derived from, as far as they are found.

    Parameters
    ----------
    found : Explorable
        Of a query in CEL.
    chosen : Listing
    most : int
        Results whose events are looked for, evenly over all.
    is_time : bool
        Whether ticks are real time.

    Complexity: reads the events once; of each result those within two windows are kept, and ``RUNS`` runs followed.
    """
    numbers = spread(np.zeros(len(chosen.matches), np.int64), min(most, len(chosen.matches))).tolist()
    ends = [chosen.matches[number].end for number in numbers]
    asked = [(tick_text(end, is_time=True) if is_time else end, None) for end in ends]
    roles = {name: found._options[name] for name in ("time", "key", "type", "unit", "start")}
    try:
        places = find_places(found.plan, found.source, asked, roles, sort=found._sort)
    except AcepError:  # the page is right without them
        return chosen
    matches = list(chosen.matches)
    for number, place in zip(numbers, places, strict=True):
        matches[number] = _with_events(place, matches[number], chosen.columns)
    known = sum(bool(match.events) for match in matches)
    told = "" if known == len(matches) else f"The events of {known:,} of {len(matches):,} results are shown."
    return replace(chosen, matches=matches, note=" ".join(filter(None, (chosen.note, told))))


def _with_events(place: StreamPlace, match: MatchShown, columns: tuple[str, ...]) -> MatchShown:
    chains = Chains(place)
    chains.left = RUNS
    runs = [*chains.results(match.start, match.end)]
    run = next((one for one in runs if _values(one, columns) == match.values), None)
    if run is None:
        return match
    rows = [("", int(place.rows[at])) for at in dict.fromkeys(at for _, at in run.path)]
    events, hidden = bounded(rows)
    return replace(match, events=events, hidden=hidden)


def _values(run: Run, columns: tuple[str, ...]) -> tuple[str | None, ...]:
    """The values of a result as a page shows them."""
    held = {attribute_of(register): value for register, value in run.values.items()}
    return tuple(texts(pa.chunked_array([pa.array([held[name].as_py()], held[name].type)]))[0] for name in columns)
