"""What a shedder that knows the future would keep: for each match point one match, so that few run-steps are needed.

Every prefix of a chosen match is a run; it must live until the last event that a chosen match needs of it, and each
event that it is tested with until then is a run-step. Prefixes that chosen matches share cost once. To choose the
fewest run-steps is hard (it contains Steiner trees), so this is a greedy choice with exchanges, and no strict upper
bound: a policy that does better may exist. Which points to leave out under a budget is decided by density, points per
run-step: parts of runs are jobs, each after the part that it goes on from, points are their weights, run-steps their
lengths.

Sources: Horn, *Single-machine job sequencing with treelike precedence ordering and linear delay penalties*, SIAM J.
Appl. Math. 1972, for the densities of a forest; the choice of matches is ours.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from experiments.shedding.metrics import LABEL_BITS, Answer

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
SWEEPS = 6
"""Rounds in which every point may change its match."""
ROW_BITS = 40


@dataclass(frozen=True)
class Prefixes:
    """All proper prefixes of some matches, each once, shorter ones first.

    Attributes
    ----------
    parent : int64 array, shape (prefixes,)
        The prefix without its last event; -1: that is empty.
    row, arc : int64 arrays, shape (prefixes,)
        Its last event, and the number of the variable that this is bound to.
    of : int64 array, shape (matches, most events - 1)
        The prefixes of each match, shortest first; -1 where it has no more.
    needs : int64 array, of the same shape
        The row that each of them is needed for.
    """

    parent: Ints
    row: Ints
    arc: Ints
    of: Ints
    needs: Ints

    def __len__(self) -> int:
        return len(self.row)

    def path(self, prefix: int) -> list[tuple[int, int]]:
        """Rows and variables that a prefix binds, earliest first."""
        found = []
        while prefix >= 0:
            found.append((int(self.row[prefix]), int(self.arc[prefix])))
            prefix = int(self.parent[prefix])
        return found[::-1]

    def first_rows(self) -> Ints:
        """Row of the first event of each; int64, shape (prefixes,)."""
        root = np.arange(len(self))
        while (going := np.flatnonzero(self.parent[root] >= 0)).size:
            root[going] = self.parent[root[going]]
        return self.row[root]


def prefixes(matches: Answer) -> Prefixes:
    """The prefixes of some matches. Complexity: O(n log n) in bound events."""
    lengths = np.diff(matches.offset)
    width = max(int(lengths.max(initial=0)) - 1, 0)
    of, needs = np.full((len(matches), width), -1, np.int64), np.zeros((len(matches), width), np.int64)
    parents, lasts = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    before = np.full(len(matches), -1, np.int64)
    count = 0
    for depth in range(width):
        mine = np.flatnonzero(lengths > depth + 1)
        at = matches.offset[mine] + depth
        last = matches.id[at] << LABEL_BITS | matches.arc[at]
        both, number = np.unique(np.stack((before[mine], last), axis=1), axis=0, return_inverse=True)
        of[mine, depth] = before[mine] = number.reshape(-1) + count
        needs[mine, depth] = matches.id[at + 1]
        parents.append(both[:, 0])
        lasts.append(both[:, 1])
        count += len(both)
    last = np.concatenate(lasts)
    return Prefixes(np.concatenate(parents), last >> LABEL_BITS, last & ((1 << LABEL_BITS) - 1), of, needs)


@dataclass(frozen=True)
class Meets:
    """Which events a run is tested with.

    Parameters
    ----------
    group : int64 array, shape (prefixes,)
        Runs of one group are tested with the same events.
    events : int64 array
        For each group and each of its events ``group << ROW_BITS | row``, sorted.
    """

    group: Ints
    events: Ints

    def until(self, prefix: Ints, row: Ints) -> Ints:
        """How many events of its group there are up to and with a row."""
        return np.searchsorted(self.events, self.group[prefix] << ROW_BITS | row, side="right").astype(np.int64)


class Kept(NamedTuple):
    """What to keep.

    Attributes
    ----------
    matches : int64 array
        The chosen matches, one for each match point that is to be found.
    prefix : int64 array
        Their prefixes.
    needed : int64 array
        Of each of these the last row that it is needed for.
    density : float64 array
        Points per run-step of the part of the forest that it begins; never more than that of its parent.
    steps : int
        Run-steps that all of them take.
    """

    matches: Ints
    prefix: Ints
    needed: Ints
    density: Floats
    steps: int


class _Choice:
    """One match for some of the points, and until when each prefix must live for them.

    Times are numbers of tested events. ``own``: when a prefix begins; ``born``: when it is made, in the time of its
    parent; ``until``, per match: when its prefixes are needed; ``held``: until when they are. The prefix behind the
    last stands for none.
    """

    def __init__(self, matches: Answer, trie: Prefixes, meets: Meets) -> None:
        nobody = len(trie)
        self.own = np.append(meets.until(np.arange(nobody), trie.row), 0)
        self.of = np.where(trie.of >= 0, trie.of, nobody)
        self.until = np.where(trie.of >= 0, meets.until(np.maximum(trie.of, 0), trie.needs), 0) if nobody else trie.of
        self.born = meets.until(np.maximum(trie.parent, 0), trie.row)
        self.held = self.own.copy()
        self.users: list[list[int]] = [[] for _ in range(nobody)]
        order = np.argsort(matches.point, kind="stable")
        cut = np.flatnonzero(np.diff(matches.point[order])) + 1
        self.ways = np.split(order, cut) if len(matches) else []
        self.match = np.full(len(self.ways), -1, np.int64)

    @property
    def steps(self) -> int:
        """Run-steps of all that is held."""
        return int((self.held - self.own).sum())

    def cheapest(self, point: int) -> tuple[int, int]:
        """The fewest further run-steps that find a point, and the match."""
        ways = self.ways[point]
        more = np.maximum(self.until[ways] - self.held[self.of[ways]], 0).sum(axis=1)
        best = int(more.argmin())
        return int(more[best]), int(ways[best])

    def take(self, point: int, match: int) -> None:
        """Find a point by a match."""
        self.match[point] = match
        for prefix, until in zip(self.of[match], self.until[match], strict=True):
            if prefix < len(self.users):
                self.users[prefix].append(until)
                self.held[prefix] = max(self.held[prefix], until)

    def leave(self, point: int) -> None:
        """Find a point no more."""
        match = self.match[point]
        self.match[point] = -1
        for prefix, until in zip(self.of[match], self.until[match], strict=True):
            if prefix < len(self.users):
                self.users[prefix].remove(until)
                self.held[prefix] = max(self.users[prefix], default=self.own[prefix])

    def improve(self) -> None:
        """Let every point that is found change its match, until that saves nothing."""
        for _ in range(SWEEPS):
            before = self.steps
            for point in np.flatnonzero(self.match >= 0).tolist():
                self.leave(point)
                self.take(point, self.cheapest(point)[1])
            if self.steps == before:
                return

    def add(self, budget: float) -> None:
        """Find more points while there is room, the cheapest first."""
        while True:
            missing = [(*self.cheapest(point), point) for point in np.flatnonzero(self.match < 0).tolist()]
            fits = False
            for _, _, point in sorted(missing):
                more, match = self.cheapest(point)
                if self.steps + more <= budget:
                    self.take(point, match)
                    fits = True
            if not fits:
                return


def clairvoyant(matches: Answer, trie: Prefixes, meets: Meets, budget: float = float("inf")) -> Kept:
    """Choose which match points to find, and by which match each, within a number of run-steps.

    Parameters
    ----------
    matches : Answer
        The exact answer.
    trie : Prefixes
        Of these matches.
    meets : Meets
        Of these prefixes.
    budget : float, default infinite
        Run-steps in all. Without a bound every match point is found.

    Complexity: O(matches · events of a match) per sweep, O(s log s) for the densities of s parts of runs.
    """
    choice = _Choice(matches, trie, meets)
    choice.add(float("inf"))
    choice.improve()
    if choice.steps > budget:
        density = _densities(choice, trie)
        order = np.lexsort((np.arange(len(choice.match)), -density.point))
        wanted = choice.match[order]
        for point in order.tolist():
            choice.leave(point)
        for point, match in zip(order.tolist(), wanted.tolist(), strict=True):
            more = int(np.maximum(choice.until[match] - choice.held[choice.of[match]], 0).sum())
            if choice.steps + more <= budget:
                choice.take(point, match)
        choice.improve()
        choice.add(budget)
    used = np.flatnonzero([bool(users) for users in choice.users])
    chosen = choice.match[choice.match >= 0]
    needed = np.zeros(len(trie) + 1, np.int64)
    np.maximum.at(needed, choice.of[chosen], trie.needs[chosen])
    return Kept(chosen, used, needed[used], _densities(choice, trie).prefix[used], choice.steps)


class _Densities(NamedTuple):
    """Points per run-step, by point and by prefix."""

    point: Floats
    prefix: Floats


def _densities(choice: _Choice, trie: Prefixes) -> _Densities:
    """The density of each chosen point, and of each prefix, in the best order of the forest."""
    number: dict[tuple[int, int], int] = {}  # parts: a prefix, and until when
    after: list[int] = []
    length: list[int] = []
    for prefix, users in enumerate(choice.users):
        since = int(choice.own[prefix])
        before = number.get((int(trie.parent[prefix]), int(choice.born[prefix])), -1)
        for until in sorted(set(users)):
            number[prefix, until] = len(after)
            after.append(before)
            length.append(until - since)
            before, since = number[prefix, until], until
    weight = [0] * len(after)
    last: dict[int, int] = {}
    for point, match in enumerate(choice.match.tolist()):
        inside = choice.of[match] < len(choice.users)
        if match >= 0 and inside.any():
            end = int(inside.sum()) - 1
            last[point] = number[int(choice.of[match, end]), int(choice.until[match, end])]
            weight[last[point]] += 1
    found = forest_densities(after, weight, length)
    by_point = np.full(len(choice.match), np.inf)
    by_point[list(last)] = found[list(last.values())]
    by_prefix = np.zeros(len(trie))
    for (prefix, _), part in number.items():
        by_prefix[prefix] = max(by_prefix[prefix], found[part])
    return _Densities(by_point, by_prefix)


def forest_densities(after: list[int], weight: list[int], length: list[int]) -> Floats:
    """Weight per length of the block that each job of a forest is done in, in the order of least weighted delay.

    Parameters
    ----------
    after : list of int
        The job that each comes after, of lower number; -1: none.
    weight, length : list of int

    Returns
    -------
    float64 array, shape (jobs,)
        Never more than that of the job before.

    Examples
    --------
    >>> forest_densities([-1, 0, 0], [0, 1, 1], [4, 1, 6]).round(3).tolist()  # the second is worth the first
    [0.2, 0.2, 0.167]
    """
    jobs = len(after)
    weights, lengths = list(map(float, weight)), [max(float(x), 1e-9) for x in length]
    behind: list[list[tuple[float, int]]] = [[] for _ in range(jobs)]
    members = [[job] for job in range(jobs)]
    for job in range(jobs - 1, -1, -1):
        while behind[job] and -behind[job][0][0] > weights[job] / lengths[job]:
            _, block = heapq.heappop(behind[job])
            weights[job] += weights[block]
            lengths[job] += lengths[block]
            members[job] += members[block]
            for item in behind[block]:
                heapq.heappush(behind[job], item)
            members[block] = []
        if after[job] >= 0:
            heapq.heappush(behind[after[job]], (-weights[job] / lengths[job], job))
    density = np.zeros(jobs)
    for job in range(jobs):
        density[members[job]] = weights[job] / lengths[job]
    return density
