"""How regularly the values of one column follow one another within the values of another: what types and keys do."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from acep_approx.arrays import Bools, Floats, Ints

SAMPLE = 20_000
"""Events that are looked at for each key."""
FEW = 8
"""Pairs of events that tell half of what many tell."""
SHUFFLES = 2
"""Other orders that the order of the events is compared with."""


@dataclass(frozen=True)
class Regularity:
    """What the order of events tells of two columns as type and key.

    Attributes
    ----------
    order : float
        How much less uncertain the next type is for who knows the one before, in the order of the events, than in any
        other order of the same events of each key: 0 (not at all) to 1.
    several : float
        Share of the keys of several events that hold several types.
    recurring : float
        In what share of the keys a type occurs, on average over the events.
    repeats : float
        Share of the events that are of the type of the one before, within a key.
    pairs : int
        Events that follow one of the same key.
    """

    order: float
    several: float
    recurring: float
    repeats: float
    pairs: int

    @property
    def strength(self) -> float:
        """How much this speaks for the two columns, 0 to 1; little of few events."""
        order = max(self.order, 0.0) * (1 - self.repeats) * self.several * self.recurring
        return order * self.pairs / (self.pairs + FEW)


class KeyOrder:
    """The events of each value of a column, in order of time; of many events those of some values.

    Parameters
    ----------
    codes : numpy.ndarray of int64
        The value of each event, in order of time; -1: none.
    """

    def __init__(self, codes: Ints) -> None:
        rows = np.flatnonzero(codes >= 0)
        if len(rows) > SAMPLE:
            rows = rows[_is_sampled(codes[rows])][:SAMPLE]
        rows = rows[np.argsort(codes[rows], kind="stable")]
        self._rows, self._keys = rows, codes[rows]
        self._is_next = self._keys[1:] == self._keys[:-1]
        random = np.random.default_rng(17)
        self._others = [np.lexsort((random.random(len(rows)), self._keys)) for _ in range(SHUFFLES)]

    def regularity(self, codes: Ints) -> Regularity | None:
        """How regularly the values of another column follow one another; None where no event follows another.

        Events without a value count as one more type.
        """
        types = codes[self._rows] + 1
        if not self._is_next.any():
            return None
        entropy, width = _entropy(np.bincount(types)), int(types.max()) + 1
        other = np.mean([self._certainty(types[order]) for order in self._others])
        _, of_keys = np.unique(self._keys, return_inverse=True)
        sizes = np.bincount(of_keys)
        held = np.unique(of_keys * width + types)
        kinds = np.bincount(held // width, minlength=len(sizes))
        keys_of_type = np.bincount(held % width, minlength=width)
        return Regularity(
            order=float(self._certainty(types) - other) / entropy if entropy else 0.0,
            several=float((kinds > 1)[sizes > 1].mean()),
            recurring=float(keys_of_type[types].mean()) / len(sizes),
            repeats=float((types[1:] == types[:-1])[self._is_next].mean()),
            pairs=int(self._is_next.sum()),
        )

    def _certainty(self, types: Ints) -> float:
        """The mutual information of a type and the next one, in bits."""
        before, after = types[:-1][self._is_next], types[1:][self._is_next]
        _, pairs = np.unique(before * (int(types.max()) + 1) + after, return_counts=True)
        return _entropy(np.bincount(before)) + _entropy(np.bincount(after)) - _entropy(pairs)


def _is_sampled(codes: Ints) -> Bools:
    """Whether the value of an event is one of those that are looked at: any, as long as they have few events."""
    counts = np.bincount(codes)
    order = np.random.default_rng(17).permutation(len(counts))
    before = np.cumsum(counts[order]) - counts[order]
    return np.isin(codes, order[before < SAMPLE])


def _entropy(counts: Ints) -> float:
    shares: Floats = counts[counts > 0] / counts.sum()
    return float(-(shares * np.log2(shares)).sum())
