"""How queries get into a set at work: each as its parts, or with others of its template."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from acep_approx.api.query_texts import Planned
from acep_approx.errors import UsageError
from acep_approx.subscriptions.graph import entries_of
from acep_approx.subscriptions.running import Running
from acep_approx.subscriptions.templates.template import Alike


def add_planned(
    running: Running, query: Planned | Alike, ids: Sequence[str], weights: Sequence[float], output: str
) -> dict[str, int]:
    """Add a query to a set, or many that are alike.

    Parameters
    ----------
    running : Running
    query : Planned or Alike
    ids : sequence of str
        That no query of the set has.
    weights : sequence of float
    output : {"matches", "points", "counts"}

    Returns
    -------
    dict of str to int
        The numbers of the queries by their ids.

    Raises
    ------
    UsageError, QueryError
        As for ``QuerySet.add``. Then the set is as it was.
    """
    added = _added(running, query, ids, output)
    known = zip(added.values(), weights, strict=True)
    running.graph.weights |= {number: weight for number, weight in known if weight != 1}
    return added


def _added(running: Running, query: Planned | Alike, ids: Sequence[str], output: str) -> dict[str, int]:
    if isinstance(query, Alike):
        return dict(zip(ids, running.add_alike(query, [*ids], output), strict=True))
    more: dict[str, Any] = {"id": ids[0], "first": running.graph.next_number, "horizon": query.horizon}
    parts = entries_of(query.plans, query.text, output, **more)
    for number, part in enumerate(parts):
        try:
            running.add(part)
        except UsageError:
            if number:
                running.take_back(part.id)
            raise
    return {ids[0]: parts[-1].number}
