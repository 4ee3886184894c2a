"""Values that never agree: keys that no two variables share, and sides of an equality that have nothing in common."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from acep_approx.arrays import Bools, Ints
from acep_approx.query.printer import to_text
from acep_approx.query.syntax import Attribute, Binary
from acep_approx.why.conditions import shown
from acep_approx.why.no_match.tally import Letters
from acep_approx.why.place import StreamPlace

COMPARED = 100_000
"""Distinct values of each side that are compared by how they are written."""
LIKENESSES: tuple[tuple[str, Callable[[str], str]], ...] = (
    ("blanks around them", str.strip),
    ("upper and lower case", lambda text: text.strip().casefold()),
    ("zeros in front", lambda text: text.strip().casefold().lstrip("0")),
    ("how they are encoded", lambda text: unicodedata.normalize("NFKC", text).strip().casefold()),
    ("signs between letters and digits", lambda text: "".join(c for c in text.casefold() if c.isalnum())),
)
"""Ways in which two texts may mean the same, the most alike first."""


@dataclass(frozen=True)
class Keys:
    """How the variables share the values of the key.

    ``counts`` says per variable how many keys have an event that fits it, ``blocking`` what the keys that came furthest
    lack; it is empty where some key has all that a match needs. ``without_key`` events were left out: theirs is NULL.
    """

    names: tuple[str, ...]
    counts: dict[str, int]
    blocking: tuple[str, ...]
    without_key: int
    likeness: str = ""


def shared_keys(place: StreamPlace, letters: Letters) -> Keys | None:
    """How the variables share the values of the key; None where the query has no key.

    Complexity: O(events x letters), vectorised.
    """
    names = tuple(one.name for one in place.plan.query.equivalences)
    if not names:
        return None
    columns = [place.table.column(place.roles.column(name)).combine_chunks() for name in names]
    codes, size = _coded(columns)
    masks, known = place.masks, codes >= 0
    present = np.zeros(size, np.uint64)
    for number in range(len(place.plan.automaton.letters)):
        bit = np.uint64(1 << number)
        present[np.unique(codes[known & ((masks & bit) != 0)])] |= bit
    counts = {name: int(((present & np.uint64(bits)) != 0).sum()) for name, bits in letters.bits.items()}
    distinct = np.unique(present).tolist()
    if any(letters.accepts(mask) for mask in distinct):
        blocking: tuple[str, ...] = ()
    else:
        best = min(distinct, key=lambda mask: (len(letters.blocking(mask)), -mask.bit_count()), default=0)
        blocking = letters.blocking(best)
    likeness = ""
    if blocking and len(columns) == 1:
        others = [name for name in letters.order if name not in blocking and counts[name]]
        sides = ((masks & np.uint64(letters.bits[name])) != 0 for name in (*others[:1], blocking[0]))
        if others:
            likeness = alike(*(_values(columns[0], side) for side in sides))
    return Keys(names, counts, blocking, int((~known).sum()), likeness)


def disjoint_sides(place: StreamPlace, letters: Letters) -> Iterator[tuple[str, str]]:
    """The conditions ``a.x = b.y`` whose sides have no value in common, with how such values are alike, if they are."""
    masks = place.masks
    for predicate in place.plan.query.predicates:
        match predicate:
            case Binary(op="=", left=Attribute() as one, right=Attribute() as other):
                if one.variable == other.variable or not {one.variable, other.variable} <= letters.bits.keys():
                    continue
                left, right = (
                    _values(
                        place.table.column(place.roles.column(side.name)).combine_chunks(),
                        (masks & np.uint64(letters.bits[str(side.variable)])) != 0,
                    )
                    for side in (one, other)
                )
                if len(left) and len(right) and not set(left) & set(right):
                    is_read = alike(left, right)
                    yield to_text(predicate), is_read or f"values are for example {_example(left, right)}"


def _coded(columns: list[pa.Array]) -> tuple[Ints, int]:
    """A number for each combination of values, -1 where one is NULL; and how many there are."""
    codes, size = np.zeros(len(columns[0]), np.int64), 1
    for column in columns:
        encoded = column if pa.types.is_dictionary(column.type) else pc.dictionary_encode(column)
        own = pc.fill_null(encoded.indices.cast(pa.int64()), -1).to_numpy(zero_copy_only=False)
        paired = np.where((codes < 0) | (own < 0), -1, codes * max(len(encoded.dictionary), 1) + own)
        distinct, inverse = np.unique(paired, return_inverse=True)
        has_null = int(len(distinct) > 0 and distinct[0] < 0)
        codes, size = inverse.astype(np.int64) - has_null, len(distinct) - has_null
    return codes, size


def _values(column: pa.Array, which: Bools) -> list[Any]:
    values: list[Any] = pc.unique(column.filter(pa.array(which))).drop_null().to_pylist()
    return values[:COMPARED]


def alike(one: list[Any], other: list[Any]) -> str:
    """How values that are not the same may mean the same, with an example; empty where they do not look so.

    Examples
    --------
    >>> alike(["U1", "U2"], ["u1"])
    "'U1' and 'u1' differ in upper and lower case"
    >>> alike(["007"], [7])
    "'007' is text and 7 a number"
    >>> alike(["a"], ["b"])
    ''
    """
    for name, folded in LIKENESSES:
        known = {key: value for value in one if (key := folded(str(value)))}
        for value in other:
            mine = known.get(folded(str(value)))
            if mine is None or mine == value:
                continue
            if isinstance(mine, str) != isinstance(value, str):
                texts = (mine, value) if isinstance(mine, str) else (value, mine)
                return f"{shown(texts[0])} is text and {shown(texts[1])} a number"
            return f"{shown(mine)} and {shown(value)} differ in {name}"
    return ""


def _example(one: list[Any], other: list[Any]) -> str:
    return f"{shown(one[0])} on the left, and {shown(other[0])} on the right"
