"""Synthetic worlds in which the true values of runs are known: keys of their own rates and pass chances.

Pattern A B C D within 30 slots, 60 keys, of which 9 are productive. In each slot a key has at most one event, of one of
the four letters, each as likely. What a key's productivity lies in is the world's kind:

* ``rates``: productive keys have more events; all of them pass.
* ``conditions``: all keys have events alike, but those of most hardly ever pass.
* ``bursts``: the same with more events, and more than 3 slots after a run's last event the chance to pass is a
  fiftieth. Here the factored model is wrong: it holds the chance for the same whenever an event comes.

With ``drifts``, all of it is drawn again half way.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from history import Feature, Place, Scheme
from rl import Chart

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

KINDS = ("rates", "conditions", "bursts")
KEYS = 60
PRODUCTIVE = 9
WINDOW = 30
LETTERS = ("A", "B", "C", "D")
PLACES = 3
"""Where runs wait: for B, for C, for D."""
BURST = 3
LATE = 0.02
"""Share of the pass chance that is left more than ``BURST`` slots after a run's last event."""


def chart() -> Chart:
    """The automaton of A B C D; the groups of the places at which runs wait are the keys."""
    key = Feature("key", "text", groups={f"key {number}": number for number in range(KEYS)})
    waiting = [Place(" ".join(LETTERS[: place + 1]), 0, (key,)) for place in range(PLACES)]
    scheme = Scheme((Place("start", 0), *waiting, Place(" ".join(LETTERS), 0)), WINDOW)
    steps = np.arange(len(LETTERS))
    ends = np.arange(len(LETTERS) + 1) == len(LETTERS)
    return Chart(scheme, steps, steps + 1, steps, np.zeros(len(LETTERS), np.bool_), ends, ~ends, LETTERS)


@dataclass(frozen=True)
class World:
    """One stream and what made it.

    Parameters
    ----------
    rate : float64 array, shape (2, keys)
        Events per slot, in either half.
    passing : float64 array, shape (2, places, keys)
        Chance that an event that a run waits for passes.
    late : float
        Share of it that is left after a burst.
    letter : int8 array, shape (slots, keys)
        Of the event, -1 for none.
    dice : float32 array, shape (slots, keys)
        Below the pass chance: the event passes.
    """

    rate: Floats
    passing: Floats
    late: float
    letter: npt.NDArray[np.int8]
    dice: npt.NDArray[np.float32]

    @property
    def slots(self) -> int:
        """How long it is."""
        return len(self.letter)

    @cached_property
    def pace(self) -> Floats:
        """Events of each key per slot as they came of late, this slot's too; shape (slots, keys).

        Each counts for a third when a window has passed.
        """
        left = 3 ** (-1 / WINDOW)
        pace, weight, events = np.empty(self.letter.shape), 0.0, np.zeros(KEYS)
        for slot, letters in enumerate(self.letter):
            events, weight = events * left + (letters >= 0), weight * left + 1
            pace[slot] = events / weight
        return pace

    def true_values(self, half: int) -> tuple[Floats, Floats]:
        """Chance and gain of a run, by dynamic programming with the world's own parameters.

        Parameters
        ----------
        half : int
            0 or 1.

        Returns
        -------
        chance, gain : float64 array, shape (places, keys, remaining slots + 1, since)
            Slots since the last event above ``BURST`` are one.
        """
        shape = (PLACES + 1, KEYS, WINDOW + 1, BURST + 2)
        chance, gain = np.zeros(shape), np.zeros(shape)
        chance[PLACES] = 1.0
        later = np.minimum(np.arange(BURST + 2) + 1, BURST + 1)
        hazard = self.rate[half][:, None] / len(LETTERS) * self.passing[half][..., None]
        hazard = hazard * np.where(later > BURST, self.late, 1.0)
        for left in range(1, WINDOW + 1):
            for place in range(PLACES):
                stays = chance[place, :, left - 1][:, later]
                child = chance[place + 1, :, left - 1, :1]
                chance[place, :, left] = stays + hazard[place] * np.maximum(child - stays, 0)
                stays, child = gain[place, :, left - 1][:, later], gain[place + 1, :, left - 1, :1]
                ends = place + 1 == PLACES
                gain[place, :, left] = stays + hazard[place] * (ends + np.maximum(child - stays, 0))
        return chance[:PLACES], gain[:PLACES]


def world(kind: str, seed: int, slots: int, *, drifts: bool) -> World:
    """A world of a kind.

    Parameters
    ----------
    kind : {"rates", "conditions", "bursts"}
    seed : int
        Streams of one kind and seed are the same in the first half, whether or not they drift.
    slots : int
        Even.
    drifts : bool
        Whether the second half has keys of its own.
    """
    dice = np.random.default_rng([KINDS.index(kind), seed])
    halves = [_keys(kind, dice) for _ in range(2)]
    rate, passing = (np.stack(column) for column in zip(*(halves if drifts else halves[:1] * 2), strict=True))
    comes = dice.random((slots, KEYS)) < np.repeat(rate, slots // 2, axis=0)
    letter = np.where(comes, dice.integers(0, len(LETTERS), (slots, KEYS)), -1).astype(np.int8)
    return World(rate, passing, LATE if kind == "bursts" else 1.0, letter, dice.random((slots, KEYS), dtype=np.float32))


def _keys(kind: str, dice: np.random.Generator) -> tuple[Floats, Floats]:
    """Rates and pass chances of all keys."""
    productive = dice.permutation(KEYS) < PRODUCTIVE

    def drawn(shape: tuple[int, ...], low: float, high: float) -> Floats:
        return dice.uniform(low, high, shape)

    if kind == "rates":
        rate = np.where(productive, drawn((KEYS,), 0.6, 1.0), drawn((KEYS,), 0.05, 0.15))
        return rate, np.ones((PLACES, KEYS))
    rate = drawn((KEYS,), 0.6, 1.0) if kind == "bursts" else drawn((KEYS,), 0.3, 0.9)
    shape = (PLACES, KEYS)
    return rate, np.where(productive, drawn(shape, 0.6, 1.0), drawn(shape, 0.02, 0.2))
