"""What a plain query finds in the events that the model says are live: the answer that revisions must add up to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from acep_approx import Query
from acep_approx.query.shape import atoms, negated_variables
from acep_approx.query.syntax import Machine
from tests.revised_model import Model, Schedule, frozen

Found = Counter[tuple[Any, ...]]


def shown(query: Query, output: str, events: pa.Table, until: int | None) -> pa.Table:
    """What the plain query gives for events in order; ``until``: at this time, with nothing said of what comes."""
    if until is not None:
        matcher = query.matcher(output=output)
        return pa.concat_tables([matcher.push(events), matcher.pass_time(until)])
    matches = query.match(events)
    return {"matches": matches.to_arrow, "points": matches.points, "counts": matches.counts}[output]()


def plain(asked: Schedule, query: Query, model: Model, *, is_over: bool) -> tuple[list[str], Found]:
    """The columns, and the rows with ids, or numbers in order of arrival, for their events."""
    held = model.ordered(float("inf") if is_over else model.horizon)
    if not held:
        return [], Counter()
    events = asked.table([one.row for one in held], has_op=False)
    until = model.watermark if model.emit == "final" and not is_over else None
    table = shown(query, asked.output, events, until)
    names = [name for name in table.column_names if name != "position"]
    bound = {"row"} if asked.output != "matches" else bound_columns(query)
    labels = [model.label(one) for one in held]
    rows = [tuple(named(row[n], labels) if n in bound else row[n] for n in names) for row in table.to_pylist()]
    columns = [asked.id if name == "row" and asked.id and asked.output != "matches" else name for name in names]
    return columns, Counter(frozen(row) for row in rows)


def bound_columns(query: Query) -> set[str]:
    """The columns of matches that hold numbers of rows."""
    if query.syntax.outputs:
        return set()
    pattern = query.syntax.pattern
    if isinstance(pattern, Machine):
        return {str(arc.variable) for arc in pattern.arcs if arc.variable is not None}
    names = {atom.variable for atom in atoms(pattern)} - negated_variables(pattern)
    return {"events"} if query.syntax.is_regex else names


def named(numbers: Any, labels: Sequence[Any]) -> Any:
    """A number of a row, or a list of them, as what stands for these events."""
    if isinstance(numbers, list):
        return [labels[number] for number in numbers]
    return None if numbers is None else labels[numbers]
