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


@dataclass(frozen=True)
class Pairs:
    """All pairs of a step and a vertex of the place that it leads from, step by step; and the same for children.

    A step leads from one place only: to count all steps at all vertices would be mostly zeros.

    Parameters
    ----------
    chart : Chart
        Places and steps.

    Examples
    --------
    >>> from history import Place, Scheme
    >>> scheme = Scheme((Place("start", 0), Place("a", 0), Place("a b", 0)), window=80)
    >>> chart = Chart(scheme, np.array([1]), np.array([2]), np.array([0]), np.array([False]),
    ...     np.array([False, False, True]), np.array([True, True, False]), ("B",))
    >>> pairs = Pairs(chart)
    >>> len(pairs), pairs.vertex[[0, -1]].tolist(), pairs.of(np.array([0]), np.array([40])).tolist()
    (32, [32, 63], [8])
    """

    chart: Chart

    def __len__(self) -> int:
        return int(self.sizes.sum())

    @cached_property
    def groups(self) -> Ints:
        """Groups of each place; int64, shape (places,)."""
        return np.array([place.groups for place in self.chart.scheme.places], np.int64)

    @cached_property
    def sizes(self) -> Ints:
        """Pairs of each step; int64, shape (steps,)."""
        return np.asarray(self.groups[self.chart.source] * self.chart.scheme.cells, np.int64)

    @cached_property
    def first(self) -> Ints:
        """Each step's first pair; int64, shape (steps,)."""
        return np.cumsum(self.sizes) - self.sizes

    @cached_property
    def step(self) -> Ints:
        """Step of each pair; int64, shape (pairs,)."""
        return np.repeat(np.arange(self.chart.steps), self.sizes)

    @cached_property
    def vertex(self) -> Ints:
        """Vertex of each pair; int64, shape (pairs,)."""
        return np.arange(len(self)) - self._shift[self.step]

    @cached_property
    def kind(self) -> Ints:
        """Step and group of each pair as one number, step * groups + group; int64, shape (pairs,)."""
        return np.asarray(self.step * self.chart.scheme.groups + self.chart.group_of_vertex[self.vertex], np.int64)

    @cached_property
    def families(self) -> Ints:
        """Numbers of children (source group, target group) of each step; int64, shape (steps,)."""
        return np.asarray(self.groups[self.chart.source] * self.groups[self.chart.target], np.int64)

    def of(self, step: Ints, vertex: Ints) -> Ints:
        """Numbers of some pairs; a vertex must be one of the step's source. O(rows)."""
        return np.asarray(vertex + self._shift[step], np.int64)

    def of_child(self, step: Ints, group: Ints, child: Ints) -> Ints:
        """Numbers of some children: step, group of the parent and of the child, over all places. O(rows)."""
        target, first = self.chart.target[step], self.chart.scheme.first_group
        own = group - first[self.chart.source[step]]
        ahead = own * self.groups[target] + child - first[target]
        return np.asarray((np.cumsum(self.families) - self.families)[step] + ahead, np.int64)

    def groups_of(self, place: int) -> slice:
        """The groups of a place."""
        low = int(self.chart.scheme.first_group[place])
        return slice(low, low + int(self.groups[place]))

    @cached_property
    def _shift(self) -> Ints:
        return np.asarray(self.first - self.chart.scheme.first[self.chart.source], np.int64)
