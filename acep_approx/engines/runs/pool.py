"""A pool of runs, as it is planned."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Pool:
    """A state with a number of errors, and what becomes of runs that reach it.

    ``merge``: of runs that one event brings here; ``across``: whether runs are merged with those of other events, by an
    index over the registers ``keys``; ``is_probed``: whether events find runs by it; ``front``: which values of each
    register are better (none: all runs are kept); ``in_chain``: whether only runs of one chain of the index
    can be better than one another; ``stays``: whether anything can come after; ``is_end``: whether a match can end
    here; ``alike``: of the ``fields``, how many runs that are merged must agree in; ``waits_for``: the threshold
    that its bounds are about (``runs.waiting``).
    """

    state: int
    errors: int
    merge: int
    fields: int
    across: bool = False
    is_probed: bool = False
    keys: tuple[int, ...] = ()
    front: tuple[int, ...] = ()
    in_chain: bool = False
    stays: bool = True
    is_end: bool = False
    alike: int = 0
    waits_for: int = -1
