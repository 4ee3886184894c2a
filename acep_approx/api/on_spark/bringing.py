"""How a set at work comes to have the queries of another version."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable

from acep_approx.api.adding import add_planned
from acep_approx.api.query_texts import QueryTexts, weights_in
from acep_approx.subscriptions.running import Running
from acep_approx.subscriptions.versions import weight_of

log = logging.getLogger("acep_approx.spark")


def say_left_out(id: str, why: str) -> None:  # noqa: A002  (what users call it)
    """Say that a query of a version is not run, and why."""
    log.warning("the query %r is not run: it %s", id, why)


class Adding:
    """Adds queries to sets, by their texts.

    Parameters
    ----------
    output : {"matches", "points", "counts"}
    """

    def __init__(self, output: str) -> None:
        self._output, self._texts = output, QueryTexts(output)

    def add(self, running: Running, id: str, text: str) -> None:  # noqa: A002  (what users call it)
        """Add a query.

        Raises
        ------
        QueryError, UsageError
            As for ``QuerySet.add``.
        """
        planned = self._texts.planned(text, running.graph.next_number)
        add_planned(running, planned, [id], weights_in(None, weight_of(text)), self._output)


Wanted = Iterable[tuple[str, int, str]]
"""Queries as they are to be: id, since which version, text."""


def bring_to(
    running: Running, since: dict[str, int], wanted: Wanted, add: Callable[[str, str], None]
) -> dict[str, int]:
    """Remove and add queries so that a set has those of a version.

    Parameters
    ----------
    running : Running
    since : dict of str to int
        The versions that its queries came with.
    wanted : iterable of (str, int, str)
    add : callable
        Is told the ids and the texts of those that come, in their order.

    Returns
    -------
    dict of str to int
        The versions that the queries came with that are wanted.
    """
    wanted = [*wanted]
    after = {id_: version for id_, version, _ in wanted}
    for id_, version in since.items():
        if id_ in running.graph.ids and after.get(id_) != version:
            running.remove(id_, cascade=True)
    for id_, _, text in wanted:
        if id_ not in running.graph.ids:
            add(id_, text)
    return after
