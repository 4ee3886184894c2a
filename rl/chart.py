"""What a learner knows of an automaton before it has seen an event: where runs wait, and which steps lead on."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from history.arrays import Bools, Ints
from history.vectors import Scheme


@dataclass(frozen=True)
class Chart:
    """Places, steps between them, and what a step to a place brings.

    Parameters
    ----------
    scheme : history.vectors.Scheme
        The vertices that runs are told apart by; it knows the places and the window. Place 0 is the start, where no
        run waits.
    source, target : int64 array, shape (steps,)
        Places that a step leads from and to.
    letter : int64 array, shape (steps,)
        Number of the letter that it takes.
    leaves : bool array, shape (steps,)
        Whether the run itself ends with the step (skip till next match); else it goes on beside its child.
    ends : bool array, shape (places,)
        Whether each arrival at a place is a match.
    stays : bool array, shape (places,)
        Whether runs that arrive there go on.
    letters : tuple of str
        Names of the letters, for people.
    buckets : int, default 0
        Of keys, for which letters are counted apart; 0: all keys are taken for alike.

    Examples
    --------
    >>> from history import Place
    >>> scheme = Scheme((Place("start", 0), Place("a", 0), Place("a b", 0)), window=80)
    >>> chart = Chart(scheme, np.array([0, 1]), np.array([1, 2]), np.array([0, 1]), np.array([False, False]),
    ...     np.array([False, False, True]), np.array([True, True, False]), ("A", "B"))
    >>> chart.steps, chart.group_of_vertex[40]
    (2, np.int64(1))
    """

    scheme: Scheme
    source: Ints
    target: Ints
    letter: Ints
    leaves: Bools
    ends: Bools
    stays: Bools
    letters: tuple[str, ...]
    buckets: int = 0

    @property
    def steps(self) -> int:
        """How many there are."""
        return len(self.source)

    @cached_property
    def group_of_vertex(self) -> Ints:
        """Number of each vertex's group, over all places; int64, shape (vertices,)."""
        return np.repeat(np.arange(self.scheme.groups), self.scheme.cells)
