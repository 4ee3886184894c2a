"""The events of a batch by key, and what is asked of them in that order: laid out once for all who ask for the same."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np

from acep_approx.arrays import Bools, ByKey, Ints
from acep_approx.automaton.letters import LetterReader, Masks
from acep_approx.kernels.runs.vm import NULL
from acep_approx.matching.stream_batch import StreamBatch
from acep_approx.query.syntax import Expression

FIRST_ROOM = 4
"""Columns that there is room for at first."""


class Asking(NamedTuple):
    """An expression, whether whole numbers are wanted as floats, and by which letters, as bits."""

    of: Expression
    as_float: bool
    letters: int


class KeyedEvents:
    """The events of a batch that some letter may hold on.

    Parameters
    ----------
    batch : StreamBatch
    groups : ByKey
        The places of its events, by key.
    masks : uint64, shape (events,)
        The letters that may hold, per event of the batch.

    Attributes
    ----------
    groups : ByKey
        Without the events that no letter holds on. ``groups.order`` is the order of all that follows.
    literal : uint64 array
        The letters.
    """

    def __init__(self, batch: StreamBatch, groups: ByKey, masks: Masks) -> None:
        self._batch = batch
        self.groups = groups.only(masks != 0)
        self.literal: Masks = masks[self.groups.order]
        self._places: dict[Asking, int] = {}
        self._room = np.empty((FIRST_ROOM, len(self.literal)), np.int64)

    @classmethod
    def of(cls, batch: StreamBatch, key_columns: tuple[str, ...], reader: LetterReader) -> KeyedEvents:
        """Those of a batch, the same for all who ask for the same key and letters."""
        known, asked = batch.computed.keyed, (key_columns, reader.letters)
        if asked not in known:
            masks = reader.masks(batch.computed.truths, lambda: batch.slots(key_columns) >= 0)
            known[asked] = cls(batch, batch.by_key(key_columns), masks)
        found = known[asked]
        assert isinstance(found, cls), "nothing else is put there"
        return found

    @property
    def words(self) -> Ints:
        """The columns so far, one after the other."""
        return self._room.reshape(-1)

    @cached_property
    def ticks(self) -> Ints:
        """Of the events."""
        found: Ints = self._batch.ticks[self.groups.order]
        return found

    def columns(self, asked: Sequence[Asking]) -> Ints:
        """Where the values of expressions stand in ``words``, as numbers of columns."""
        return np.array([self._column(one) for one in asked], np.int64)

    def has_letters(self, letters: int) -> Bools:
        """Which events of the batch one of some letters, given as bits, may hold on."""
        found = np.zeros(len(self._batch), np.bool_)
        found[self.groups.order] = (self.literal & np.uint64(letters)) != 0
        return found

    def _column(self, one: Asking) -> int:
        if one in self._places:
            return self._places[one]
        words, place = self._batch.words(one.of, lambda: self.has_letters(one.letters)), len(self._places)
        if place == len(self._room):
            self._room = np.concatenate((self._room, np.empty_like(self._room)))
        self._room[place] = (_as_floats(words) if one.as_float else words)[self.groups.order]
        self._places[one] = place
        return place


def _as_floats(words: Ints) -> Ints:
    """Whole numbers as floats, NULL as NaN."""
    return np.where(words == NULL, np.nan, words.astype(np.float64)).view(np.int64)
