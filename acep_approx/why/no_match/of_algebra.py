"""Why a query in CEL found nothing in a whole stream: how far its chains came."""

from __future__ import annotations

from dataclasses import replace

from acep_approx.events.source import open_source
from acep_approx.events.stream import read_events
from acep_approx.matching.execution import Execution
from acep_approx.planning.planner import LARGEST_WINDOW
from acep_approx.why.chains import Chains
from acep_approx.why.no_match.result import NoMatch
from acep_approx.why.no_match.whole_stream import WholeStream
from acep_approx.why.of_algebra import explain_algebra
from acep_approx.why.place import StreamPlace, tick_text

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
