"""The events of a batch by key, and what is asked of them in that order: laid out once for all who ask for the same."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from acep_approx.arrays import ByKey, Ints
from acep_approx.automaton.letters import LetterReader, Masks
from acep_approx.kernels.runs.vm import NULL
from acep_approx.matching.stream_batch import StreamBatch
from acep_approx.query.syntax import Expression

FIRST_ROOM = 4
"""Columns that there is room for at first."""


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
        self._places: dict[tuple[Expression, bool], int] = {}
        self._room = np.empty((FIRST_ROOM, len(self.literal)), np.int64)

    @classmethod
    def of(cls, batch: StreamBatch, key_columns: tuple[str, ...], reader: LetterReader) -> KeyedEvents:
        """Those of a batch, the same for all who ask for the same key and letters."""
        known, asked = batch.computed.keyed, (key_columns, reader.letters)
        if asked not in known:
            masks = reader.masks(batch.computed.truths)
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

    def columns(self, expressions: Sequence[tuple[Expression, bool]]) -> Ints:
        """Where the values of expressions stand in ``words``, as numbers of columns; True: whole numbers as floats."""
        return np.array([self._column(*one) for one in expressions], np.int64)

    def _column(self, expression: Expression, as_float: bool) -> int:
        known = self._places.get((expression, as_float))
        if known is not None:
            return known
        words, place = self._batch.words(expression), len(self._places)
        if place == len(self._room):
            self._room = np.concatenate((self._room, np.empty_like(self._room)))
        self._room[place] = (_as_floats(words) if as_float else words)[self.groups.order]
        self._places[expression, as_float] = place
        return place


def _as_floats(words: Ints) -> Ints:
    """Whole numbers as floats, NULL as NaN."""
    return np.where(words == NULL, np.nan, words.astype(np.float64)).view(np.int64)
