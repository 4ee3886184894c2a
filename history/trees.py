"""Boosted trees over the context of an event: what the moment says about the runs that are made there.

A vertex knows a run by what it remembers. How busy its key is, the time of day and the numbers of the current event say
more together than one by one. Gradient boosting (Friedman, Ann. Stat. 29, 2001; scikit-learn) foretells from them by
how much the runs of an event succeed more often than others of their places. The forecast is one more number of a run,
cut into buckets like any other. The trees are kept as plain numbers, and are evaluated in the same way here and in the
kernel. To use them so is ours.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from history.arrays import Bools, Floats, Ints

NULL = -1e300
"""What stands for NULL in a tree."""
LEAF = -1
TREES, LEAVES, RATE = 24, 8, 0.15
MOST_NODES = 64
"""Nodes of one tree at most."""
LEAST_ROWS, LEAST_SUCCESSES = 2_000, 30
"""Runs, and such that succeed, without which nothing is learned."""
MOST_ROWS = 50_000
"""Runs that are learned from, at equal distances."""


class Node(NamedTuple):
    """Of a tree: which input is compared with a number, and the nodes behind; a leaf (-1) has a value instead."""

    input: int
    number: float
    left: int = 0
    right: int = 0


@dataclass(frozen=True)
class Trees:
    """A sum of trees.

    Parameters
    ----------
    inputs : tuple of str
        Columns of a trace; the first is the tick.
    day : int
        Ticks of a day, of which the first input is the share that has passed; 0: ticks are no times, it is 0.
    nodes : tuple of Node
        Those of all trees, one after the other.
    roots : tuple of int
        Where each tree begins.

    Examples
    --------
    >>> trees = Trees(("tick", "price"), 0, (Node(1, 10.0, 1, 2), Node(-1, -0.5), Node(-1, 0.5)), (0,))
    >>> trees.values([np.zeros(3), np.array([10.0, 11.0, np.nan])]).tolist()
    [-0.5, 0.5, -0.5]
    """

    inputs: tuple[str, ...]
    day: int
    nodes: tuple[Node, ...]
    roots: tuple[int, ...]

    def values(self, columns: Sequence[Floats]) -> Floats:
        """The forecast for some rows, given their inputs; NaN for NULL.

        Rows that follow one another are mostly of one event: these are looked at once. O(events · trees · depth).
        """
        table = table_of(columns, self.day)
        is_new = np.ones(len(table), np.bool_)
        is_new[1:] = (table[1:] != table[:-1]).any(axis=1)
        inputs = np.ascontiguousarray(table[is_new].T)
        found = np.zeros(inputs.shape[1])
        for root in self.roots:
            self._add(root, np.arange(len(found)), inputs, found)
        return np.asarray(found[np.cumsum(is_new) - 1], np.float64)

    def _add(self, at: int, rows: Ints, inputs: Floats, found: Floats) -> None:
        node = self.nodes[at]
        if node.input == LEAF:
            found[rows] += node.number
            return
        goes_left = inputs[node.input, rows] <= node.number
        self._add(node.left, rows[goes_left], inputs, found)
        self._add(node.right, rows[~goes_left], inputs, found)

    def to_json(self) -> dict[str, Any]:
        """As plain lists, texts and numbers."""
        nodes = [list(node) for node in self.nodes]
        return {"inputs": list(self.inputs), "day": self.day, "nodes": nodes, "roots": list(self.roots)}

    @classmethod
    def from_json(cls, saved: dict[str, Any]) -> Trees:
        """What ``to_json`` wrote.

        Raises
        ------
        ValueError
            They are no trees: an index leads out of them, or back.
        """
        nodes = tuple(Node(*node) for node in saved["nodes"])
        found = cls(tuple(saved["inputs"]), saved["day"], nodes, tuple(saved["roots"]))
        if not _are_trees(found):
            raise ValueError("the trees of the context are not whole")
        return found


def _are_trees(trees: Trees) -> bool:
    """Whether each node lies behind the one that leads to it, within its tree, and all numbers are numbers."""
    whole = (trees.day, *trees.roots, *(word for which, _, left, right in trees.nodes for word in (which, left, right)))
    if not all(type(word) is int for word in whole) or not all(isinstance(name, str) for name in trees.inputs):
        return False
    if trees.day < 0 or trees.roots[:1] != (0,):
        return False
    borders = (*trees.roots, len(trees.nodes))
    return all(low < high <= low + MOST_NODES for low, high in pairwise(borders)) and all(
        _is_node(trees.nodes[at], at, high, len(trees.inputs))
        for low, high in pairwise(borders)
        for at in range(low, high)
    )


def _is_node(node: Node, at: int, end: int, inputs: int) -> bool:
    if type(node.number) not in (int, float) or not np.isfinite(node.number):
        return False
    return node.input == LEAF or (0 <= node.input < inputs and at < node.left < end and at < node.right < end)


def table_of(columns: Sequence[Floats], day: int) -> Floats:
    """Inputs as rows: the tick as a share of the day, numbers as they are."""
    tick, *others = columns
    share = tick.astype(np.int64) % day / day if day else np.zeros(len(tick))
    table = np.stack([share, *others], axis=1)
    return np.where(np.isnan(table), NULL, table)


def fit_trees(
    inputs: Sequence[str], columns: Sequence[Floats], day: int, place: Ints, reached: Bools
) -> Trees | None:
    """Learn from births what the context of an event says about the runs that are made there.

    Parameters
    ----------
    inputs : sequence of str
        Names of the columns; the first is the tick.
    columns : sequence of arrays, shape (births,)
    day : int
        Ticks of a day; 0: ticks are no times.
    place : int64 array, shape (births,)
    reached : bool array, shape (births,)
        Whether a run led to a match point.

    Returns
    -------
    Trees or None
        The logarithm of how many times more often than others of its place a run succeeds; None from fewer than 2,000
        births, or 30 that succeed.

    Complexity: O(births · inputs · trees), of 50,000 births at most.
    """
    if len(place) < LEAST_ROWS or reached.sum() < LEAST_SUCCESSES:
        return None
    from sklearn.ensemble import HistGradientBoostingRegressor  # type: ignore[import-untyped]
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    some = np.arange(0, len(place), -(-len(place) // MOST_ROWS))
    table, place, success = table_of([column[some] for column in columns], day), place[some], reached[some] * 1.0
    mean = np.bincount(place, success) / np.maximum(np.bincount(place), 1)
    known = np.flatnonzero(mean[place] > 0)
    if not len(known):
        return None
    model = HistGradientBoostingRegressor(
        loss="poisson", max_iter=TREES, max_leaf_nodes=LEAVES, learning_rate=RATE, random_state=0,
        min_samples_leaf=max(50, len(known) // 200), early_stopping=False,
    )  # fmt: skip
    expected = mean[place[known]]
    with threadpool_limits(1, "openmp"):  # threads that wait for one another are slow where others work as well
        model.fit(table[known], success[known] / expected, sample_weight=expected)
    nodes: list[Node] = []
    roots = []
    for (tree,) in model._predictors:  # scikit-learn gives the nodes of its trees away nowhere else
        roots.append(len(nodes))
        for node in tree.nodes:
            if node["is_leaf"]:
                nodes.append(Node(LEAF, float(node["value"])))
            else:
                left, right = (int(node[side]) + roots[-1] for side in ("left", "right"))
                nodes.append(Node(int(node["feature_idx"]), float(node["num_threshold"]), left, right))
    return Trees(tuple(inputs), day, tuple(nodes), tuple(roots))
