"""A query run over the events of a place, to answer a question about it."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from acep_approx.events.source import open_source
from acep_approx.events.stream import read_events
from acep_approx.matching.choice import OutputKind
from acep_approx.matching.execution import Execution
from acep_approx.planning.planner import plan
from acep_approx.query.syntax import QuerySyntax
from acep_approx.why.place import StreamPlace


def run_at(place: StreamPlace, query: QuerySyntax, output: OutputKind, steps: int) -> Iterator[pa.Table]:
    """Run a query over the events of a place; rows of the results are places in it.

    Parameters
    ----------
    place : StreamPlace
    query : QuerySyntax
        The query of the place, or one made from it.
    output : str
        As for ``Execution``.
    steps : int
        Run-steps after which it is given up.

    Raises
    ------
    TooManyStepsError
        It takes more.
    QueryError
        It is no query.
    """
    matcher = Execution(plan(query), output=output)
    pipeline = matcher.bind(place.table.schema, place.roles)
    pipeline.results.give_up_after(steps)
    for batch in read_events(open_source(place.table), place.roles, columns=pipeline.columns):
        yield from matcher.run(batch)
    yield from pipeline.finish()
