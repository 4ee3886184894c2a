"""Numbers of matches as the kernels of both engines add them up: they stop growing at a limit."""

from __future__ import annotations

from acep_approx.jit.marks import inline

MOST = 2**63 - 1
"""Counts stop growing here: it means at least so many."""


@inline
def added_up(ways: int, more: int) -> int:
    """The sum of two counts, at most ``MOST``."""
    return MOST if more > MOST - ways else ways + more
