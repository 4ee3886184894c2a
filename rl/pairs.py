"""Numbers of the things that are counted: pairs of a step and a vertex it leads from, and of what its children are."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from history.arrays import Ints
from rl.chart import Chart


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
        """How many there are."""
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

    def vertices_of(self, place: int) -> slice:
        """The vertices of a place."""
        low = int(self.chart.scheme.first[place])
        return slice(low, low + int(self.groups[place]) * self.chart.scheme.cells)

    def groups_of(self, place: int) -> slice:
        """The groups of a place."""
        low = int(self.chart.scheme.first_group[place])
        return slice(low, low + int(self.groups[place]))

    @cached_property
    def _shift(self) -> Ints:
        return np.asarray(self.first - self.chart.scheme.first[self.chart.source], np.int64)
