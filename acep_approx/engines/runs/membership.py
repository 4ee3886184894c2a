"""Tests of ``x IN list`` across events: one of the two is of the current event, the other is held by runs.

Runs hold lists as codes of their texts, each of which is read once, as long as not too many others come.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from acep_approx.arrays import Ints
from acep_approx.engines.runs.event_columns import CODED, Kind
from acep_approx.kernels.runs.vm import NULL

Value = str | int | float | bool | None
NAME = "IN"
HOLDS: Kind = "truth"


class Items(NamedTuple):
    """The values of a list that are known, and whether all of them are."""

    known: frozenset[Value]
    is_complete: bool


def members(items: Ints, kind: Kind, lists: Ints, texts: Sequence[str]) -> Ints:
    """Truth values of ``item IN list``.

    Parameters
    ----------
    items, lists : numpy.ndarray of int64
        Words of the block machine, pair by pair.
    kind : Kind
        Of the items.
    texts : sequence of str
        By code.

    Complexity: O(pairs), and what is in lists that were not read before.
    """
    known = {word: _value(word, kind, texts) for word in set(items.tolist())}
    pairs, are_floats = zip(items.tolist(), lists.tolist(), strict=True), kind == "float"
    found = [NULL if word == NULL else _member(known[item], _items(texts[word], are_floats)) for item, word in pairs]
    return np.array(found, np.int64)


def _value(word: int, kind: Kind, texts: Sequence[str]) -> Value:
    if kind == "float":
        found = float(np.int64(word).view(np.float64))
        return None if math.isnan(found) else found
    if word == NULL:
        return None
    if kind in CODED:
        return texts[word]
    return bool(word) if kind == "truth" else word


def _member(value: Value, items: Items) -> int:
    if value is None:
        return NULL if items.known or not items.is_complete else 0
    if value in items.known:
        return 1
    return 0 if items.is_complete else NULL


@lru_cache(maxsize=1 << 14)
def _items(text: str, are_floats: bool) -> Items:
    """What is in a list, by its text; see ``events.carried``. ``are_floats``: it is compared with floats."""
    values = json.loads(text)
    known = [value for value in values if value is not None and value == value]  # noqa: PLR0124  NaN is NULL
    return Items(frozenset(map(float, known) if are_floats else known), len(known) == len(values))
