"""Why a query matched, or did not, asked of a whole stream: of its first match, or of where it came furthest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pyarrow as pa

from acep_approx.errors import UsageError
from acep_approx.events.reading.widening import one_table
from acep_approx.events.source import Source, open_source
from acep_approx.events.stream import read_events
from acep_approx.matching.execution import Execution
from acep_approx.planning.planner import Plan
from acep_approx.why.answer import explain
from acep_approx.why.no_match.result import NoMatch
from acep_approx.why.no_match.search import explain_no_match
from acep_approx.why.place import unified
from acep_approx.why.result import Why

MOST_EVENTS = 10_000_000
"""Events that are looked at."""


def explain_stream(
    wanted: Plan, source: Source, key: Any, options: Mapping[str, Any], *, sort: bool = False
) -> Why | NoMatch:
    """Find out why a query matched first where it did, or why it matched nowhere.

    Parameters
    ----------
    wanted : Plan
    source : Source
    key : any
        Must be None: what is asked about is the whole stream.
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
    UsageError
        ``ACEP-U130``: a key without a time.

    Complexity: a run of the query up to its first match; see ``no_match.search`` where there is none. Events that
    can be read only once are kept.
    """
    if key is not None:
        raise UsageError(
            "a key says little without a time",
            code="ACEP-U130",
            hint="say when, too (around=, on the command line --around); or leave both out, to ask of the whole stream",
        )
    if not source.reusable:
        source = open_source(_kept(source))
    first = _first_match(wanted, source, options, sort=sort)
    if first is not None:
        around, keys = first
        answer = explain(wanted, source, around, keys or None, options, sort=sort)
        asking = (
            "this is the first match of the stream; say when to ask about others: --around TIME, with --key VALUE "
            "(around= and key= in Python)"
        )
        return replace(answer, lines=(*answer.lines, asking))
    found = explain_no_match(wanted, source, options, sort=sort, most=MOST_EVENTS)
    if not found.around:
        return found
    furthest = explain(wanted, source, found.around, found.key or None, options, sort=sort)
    lines = () if wanted.cel is not None else found.lines  # those of a chain are said below
    return replace(found, lines=lines, furthest=furthest)


def _kept(source: Source) -> pa.Table:
    """All events of a source that can be read only once."""
    batches = list(source.batches(source.readable.names))
    return unified(one_table(batches)) if batches else source.readable.empty_table()


def _first_match(
    wanted: Plan, source: Source, options: Mapping[str, Any], *, sort: bool
) -> tuple[Any, dict[str, Any]] | None:
    """When the first match ends, and its key."""
    if not len(source.schema):
        return None
    matcher = Execution(wanted, output="points", **options)
    pipeline = matcher.bind(source.schema)
    keys = [one.name for one in wanted.query.equivalences]

    def results() -> Any:
        for batch in read_events(source, pipeline.roles, columns=pipeline.columns, sort=sort):
            yield from matcher.run(batch)
        yield from pipeline.finish()

    for table in results():
        if table.num_rows:
            row = table.slice(0, 1).to_pylist()[0]
            return row["end"], {name: table.column(number)[0].as_py() for number, name in enumerate(keys)}
    return None
