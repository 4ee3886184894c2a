"""Runs of many streams and budgets at once, one lane each: what they find, and what a learner sees of it.

Runs of one key at one place are one: the one with the latest start (what it cannot reach, no other can). At most B of
them are left after each slot, the best by the values of the learner; ties go to those that were there before. Keys of
the cohort are spared for the epoch of the coin and the next one, so that no lineage of the epoch is cut; they are
inside the budget, and exceed it only where they alone are more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from experiments.learning.baselines import Moves
from experiments.learning.keys import BURST, KEYS, LETTERS, PLACES, WINDOW, World
from rl import Chart, Events, Lineages, Tests
from rl.exploration import in_cohort

Bools = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Columns = tuple[npt.NDArray[Any], ...]

NODES = PLACES * KEYS
NEVER = -(10**6)
STICKY = 1e-6
HELD = 2 * WINDOW
"""Slots that are kept until fates are known."""


@dataclass(frozen=True)
class Lane:
    """One stream, one budget.

    Parameters
    ----------
    world : World
    budget : int
        Live runs after each slot at most.
    chance : float, default 0
        Of a key and epoch to be in the cohort.
    seed : int, default 0
        Of the cohort.
    """

    world: World
    budget: int
    chance: float = 0.0
    seed: int = 0


@dataclass(frozen=True)
class Codes:
    """Numbers of where runs stand: ``first[place, key] + cell[remaining, since]``."""

    first: Ints
    cell: Ints

    def of(self, start: Ints, last: Ints, slot: int) -> Ints:
        """Of runs by the slots of their first and last events; anything where there is none. Shape (.., place, key)."""
        remaining = np.clip(start + WINDOW - slot, 0, WINDOW)
        return np.asarray(self.first + self.cell[remaining, np.minimum(slot - last, WINDOW)])


def vertices(chart: Chart) -> Codes:
    """The vertices of a chart of ``keys.chart``."""
    scheme = chart.scheme
    remaining, since = np.meshgrid(np.arange(WINDOW + 1), np.arange(WINDOW + 1), indexing="ij")
    first = (scheme.first_group[1 : PLACES + 1, None] + np.arange(KEYS)) * scheme.cells
    return Codes(first, scheme.encode(0, 0, remaining, since))


def full() -> Codes:
    """Positions in ``World.true_values``."""
    since = np.minimum(np.arange(WINDOW + 1), BURST + 1)
    cell = np.arange(WINDOW + 1)[:, None] * (BURST + 2) + since
    return Codes(np.arange(NODES).reshape(PLACES, KEYS) * (WINDOW + 1) * (BURST + 2), cell)


@dataclass(frozen=True)
class Seen:
    """What one lane showed since the last time."""

    events: Events
    tests: Tests
    cohort: Lineages
    everything: Lineages
    moves: Moves


class Lanes:
    """The live runs of all lanes.

    Parameters
    ----------
    lanes : sequence of Lane
        Of as many slots.
    chart : Chart
        Of ``keys.chart``.
    codes : Codes
        What ``values`` are about.
    values : float64 array, shape (lanes, codes)
        What runs are worth; to be changed at will.
    is_shown : bool
        Whether anything is written down for ``seen``; codes must be vertices then.

    Attributes
    ----------
    found : int64 array, shape (lanes, 2)
        Match points found in either half.
    live : float64 array, shape (lanes,)
        Sum of the live runs after each slot.
    """

    def __init__(self, lanes: Sequence[Lane], chart: Chart, codes: Codes, values: Floats, *, is_shown: bool) -> None:
        self.lanes, self.chart, self.codes, self.values, self.is_shown = lanes, chart, codes, values, is_shown
        worlds = list({id(lane.world): lane.world for lane in lanes}.values())
        place = {id(world): number for number, world in enumerate(worlds)}
        self._stream = np.array([place[id(lane.world)] for lane in lanes])
        self._letter, self._dice, self._passing, self._pace = (
            np.stack([getattr(world, name) for world in worlds]) for name in ("letter", "dice", "passing", "pace")
        )
        self._late = np.array([lane.world.late for lane in lanes])[:, None, None]
        self._budget = np.array([lane.budget for lane in lanes])
        epochs = np.arange(self._letter.shape[1] // WINDOW + 2)[:, None]
        self._coin = np.stack([in_cohort(np.arange(KEYS), epochs, lane.chance, lane.seed) for lane in lanes])
        shape = (len(lanes), PLACES, KEYS)
        self._start, self._last = np.full((2, *shape), NEVER)
        self._at = np.full(shape, -1)
        self._tie = STICKY / 10 * np.random.default_rng(0).random(NODES).reshape(PLACES, KEYS)
        self._held = {name: np.zeros((HELD, *shape), np.bool_) for name in ("kept", "passed", "visited")}
        self._stood = np.zeros((HELD, 2, *shape), np.int64)
        self._tests: list[Columns] = []
        self._moves: list[Columns] = []
        self.found, self.live = np.zeros((len(lanes), 2), np.int64), np.zeros(len(lanes))

    def step(self, slot: int) -> None:
        """One slot: test all runs, make the children, then shed."""
        half = int(slot >= self._letter.shape[1] // 2)
        letter = self._letter[self._stream, slot][:, None]
        is_alive = slot - self._start <= WINDOW
        vertex = self.codes.of(self._start, self._last, slot)
        late = np.where(slot - self._last > BURST, self._late, 1.0)
        is_seen = is_alive & (letter == np.arange(1, PLACES + 1)[:, None])
        chance = self._passing[self._stream, half] * late
        passed = is_seen & (self._dice[self._stream, slot][:, None] < chance)
        self.found[:, half] += passed[:, -1].sum(axis=1)
        if self.is_shown:
            self._note(slot, is_alive, vertex, is_seen, passed)
        born = np.concatenate([letter == 0, passed[:, :-1]], axis=1)
        above = np.concatenate([np.full_like(self._start[:, :1], slot), self._start[:, :-1]], axis=1)
        self._start, self._last = np.where(born, above, self._start), np.where(born, slot, self._last)
        self._shed(slot, born, passed)

    def _shed(self, slot: int, born: Bools, passed: Bools) -> None:
        is_alive = slot - self._start <= WINDOW
        at = self.codes.of(self._start, self._last, slot)
        score = self.values[np.arange(len(self.lanes))[:, None, None], at] + self._tie + STICKY * (self._at >= 0)
        epoch = slot // WINDOW
        spared = (self._coin[:, epoch] | self._coin[:, max(epoch - 1, 0)])[:, None] & is_alive
        score = np.where(spared, np.inf, np.where(is_alive, score, -np.inf)).reshape(len(self.lanes), NODES)
        most = np.clip(np.maximum(self._budget, spared.sum(axis=(1, 2))), 1, NODES)
        least = np.sort(score, axis=1)[np.arange(len(self.lanes)), NODES - most]
        kept = is_alive & (score >= least[:, None]).reshape(is_alive.shape)
        if self.is_shown:
            cells = self.chart.scheme.cells // self.chart.scheme.remaining
            entered = (self._at < 0) | (self._at // cells != at // cells)
            now = slot % HELD
            self._held["visited"][now] = is_alive & (born | entered)
            self._held["kept"][now], self._held["passed"][now] = kept, passed
            self._stood[now] = self._start, self._last
        self._start = np.where(kept, self._start, NEVER)
        self._at = np.where(kept, at, -1)
        self.live += kept.sum(axis=(1, 2))

    def _note(self, slot: int, is_alive: Bools, vertex: Ints, is_seen: Bools, passed: Bools) -> None:
        """Write down tests and moves."""
        lane, place, key = np.nonzero(is_seen)
        group = np.where(passed, self._children(), -1)
        pace = self._pace[self._stream, slot]
        at = (lane, place, key)
        self._tests.append((lane, place + 1, vertex[at], pace[lane, key], passed[at], group[at]))
        before = self._at
        gone = np.nonzero((before >= 0) & (~is_alive | (before != vertex)))
        nothing = np.full(len(gone[0]), -1)
        self._moves.append((gone[0], before[gone], np.where(is_alive, vertex, -1)[gone], nothing, nothing > 0))
        lane, place, key = np.nonzero(passed)
        ends = place == PLACES - 1
        stays = vertex[lane, place, key]
        children = self.codes.first[np.minimum(place + 1, PLACES - 1), key]
        child = children + self.codes.cell[self._start[lane, place, key] + WINDOW - slot, 0]
        self._moves.append((lane, stays, stays, np.where(ends, -1, child), ends))

    def _children(self) -> Ints:
        """Groups of the children of each place's keys, -1 where they do not go on; shape (places, keys)."""
        groups = self.chart.scheme.first_group[2 : PLACES + 1, None] + np.arange(KEYS)
        return np.concatenate([groups, np.full((1, KEYS), -1)])

    def seen(self, slot: int) -> list[Seen]:
        """What each lane showed in the window up to a slot, the last one of its epoch; fates of those before it."""
        tests, moves = self._split(self._tests), self._split(self._moves)
        self._tests, self._moves = [], []
        fates = self._split(self._fates(slot)) if slot >= HELD - 1 else None
        shown = []
        for number, lane in enumerate(self.lanes):
            letters = lane.world.letter[slot + 1 - WINDOW : slot + 1]
            counts = np.bincount(letters[letters >= 0], minlength=len(LETTERS)).astype(np.float64)
            step, vertex, pace, passed, child = tests[number]
            once = np.ones(len(step))
            cohort = everything = Lineages.none()
            if fates is not None:
                tick, stood, points, chosen = fates[number]
                everything = Lineages(tick, stood, points, np.ones(len(tick)))
                weight = np.full(int(chosen.sum()), 1 / max(lane.chance, 1e-9))
                cohort = Lineages(tick[chosen], stood[chosen], points[chosen], weight)
            shown.append(
                Seen(
                    Events(slot, counts, float(counts.sum())),
                    Tests(step, vertex, pace, once, once, passed.astype(np.float64), child),
                    cohort,
                    everything,
                    Moves(*moves[number]),
                )
            )
        return shown

    def _fates(self, slot: int) -> list[Columns]:
        """Fates of all visits in the first of the two windows that are held: one pass backward.

        ``reached`` has bit i where a run that stands there after a slot s leads to a match point at s + 1 + i. What
        takes a run's place goes on for it; where a place is left empty, the run was shed, and leads to nothing more.
        """
        rows: list[Columns] = []
        reached = np.zeros(self._start.shape, np.int64)
        for at in range(slot, slot - HELD, -1):
            kept, passed, visited = (self._held[name][at % HELD] for name in ("kept", "passed", "visited"))
            reached = np.where(kept, reached, 0)
            if at <= slot - WINDOW:
                start, last = self._stood[at % HELD]
                remaining = np.clip(start + WINDOW - at, 0, WINDOW)
                points = np.bitwise_count(reached & ((1 << remaining) - 1)).astype(np.int64)
                lane, _, key = where = np.nonzero(visited)
                vertex = self.codes.of(start, last, at)[where]
                chosen = self._coin[lane, start[where] // WINDOW, key]
                rows.append((lane, np.full(len(lane), at), vertex, points[where], chosen))
            ahead = np.concatenate([reached[:, 1:] << 1, np.ones_like(reached[:, :1])], axis=1)
            reached = (reached << 1) | np.where(passed, ahead, 0)
        return rows

    def _split(self, rows: list[Columns]) -> list[Columns]:
        """Columns of each lane, in the order of the rows; the first column is the lane."""
        lane, *columns = (np.concatenate(column) for column in zip(*rows, strict=True))
        order = np.argsort(lane, kind="stable")
        heads = np.searchsorted(lane[order], np.arange(1, len(self.lanes)))
        parts = [np.split(column[order], heads) for column in columns]
        return list(zip(*parts, strict=True))
