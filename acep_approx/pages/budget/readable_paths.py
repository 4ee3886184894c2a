"""Paths of the history as ways that a person can read: states in words, each once, ways that read alike as one."""

from __future__ import annotations

import re
from collections.abc import Sequence

from acep_approx.budget.ledger import HistoryPath, PathStep

_NUMBER = re.compile(r"\W*(?:state\s*)?\d*\W*", re.IGNORECASE)
"""A state that is a number, or has no name."""


def readable_paths(paths: Sequence[HistoryPath]) -> list[HistoryPath]:
    """The ways that paths stand for.

    Parameters
    ----------
    paths : sequence of HistoryPath
        Strongest first. Many differ only in how much of the window is left, or in what registers hold.

    Returns
    -------
    list of HistoryPath
        Strongest first, without details. Empty where states have no names, or all go the same way: that says nothing.

    Examples
    --------
    >>> a, late, b = PathStep("a", 0, "90% left"), PathStep("a", 0, "10% left"), PathStep("b", 0)
    >>> paths = [HistoryPath([a, late, b], 3, 0.3), HistoryPath([a, b], 2, 0.2), HistoryPath([b], 1, 0.1)]
    >>> [("-".join(step.state for step in way.steps), way.count) for way in readable_paths(paths)]
    [('a-b', 5.0), ('b', 1.0)]
    """
    sums: dict[tuple[tuple[str, int], ...], tuple[float, float]] = {}
    for path in paths:
        steps = [(step.state, step.errors) for step in path.steps]
        way = tuple(step for at, step in enumerate(steps) if not at or step != steps[at - 1])
        count, share = sums.get(way, (0.0, 0.0))
        sums[way] = (count + path.count, share + path.share)
    if len(sums) < 2 or any(_NUMBER.fullmatch(state) for way in sums for state, _ in way):
        return []
    found = [HistoryPath([PathStep(*step) for step in way], *both) for way, both in sums.items()]
    return sorted(found, key=lambda way: -way.count)
