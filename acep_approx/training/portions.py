"""Portions of a past: all events of some keys, so that each can be run on its own, here or elsewhere.

What a run cost is known only up to the end of the chunk that it is looked at in, and chunks end where enough events
have come. So counts depend a little on which events are run together; portions lay that down. Source: ours.
"""

from __future__ import annotations

from collections.abc import Sequence
from zlib import crc32

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from acep_approx.arrays import Ints
from acep_approx.events.columns import encode_text, plain_type, text_codes, to_numpy
from acep_approx.planning.planner import Plan

PORTION = 1 << 17
"""Events of a portion, as a rule; at most twice as many."""
BITS = 16
"""Of a hash; so many portions at most, by their logarithm."""
SPREAD = 40_503
"""Knuth's multiplier for 16 bits, 2**16 over the golden ratio: it parts keys that differ in few bits."""
AGAIN = 31
"""What the hash of the columns before is multiplied with."""
EXACT = 2.0**53
"""Floating point keys are taken by their whole part below this size; all others are one."""


def portions(plan: Plan, events: int, each: int = PORTION) -> int:
    """How many portions a past is cut into: a power of two, by its number of events alone.

    Parameters
    ----------
    plan : Plan
    events : int
        Of the whole past.
    each : int, default 131,072
        Events of a portion, at least, if keys were of one size.

    Returns
    -------
    int
        1 where the query has no key, or asks which events follow one another in the whole stream.

    Examples
    --------
    >>> from acep_approx import compile_query
    >>> plan = compile_query("PATTERN SEQ(A a, B b) WHERE [key] WITHIN 5").plan
    >>> [portions(plan, events) for events in (0, 262_143, 262_144, 10_000_000)]
    [1, 1, 2, 64]
    """
    if not plan.query.equivalences or plan.counted == "stream":
        return 1
    return int(1 << min(max((events // each).bit_length() - 1, 0), BITS))


def portion_of(columns: Sequence[pa.Array], number: int) -> Ints:
    """The portion of each event, by a hash of its key that is the same in every process.

    Parameters
    ----------
    columns : sequence of pyarrow.Array
        The columns of the key.
    number : int
        Of portions.

    Returns
    -------
    int64 array
        From 0; 0 where any of the columns is null.

    Complexity: O(events), and a checksum for each distinct text.

    Examples
    --------
    >>> portion_of([pa.array(["ann", "bob", None, "ann"])], 8).tolist()
    [2, 4, 0, 2]
    """
    found = np.zeros(len(columns[0]), np.uint64)
    known = np.ones(len(columns[0]), np.bool_)
    for column in columns:
        words = _words(column)
        for by in (32, 16):
            words = words ^ (words >> np.uint64(by))
        found = (found * np.uint64(AGAIN) + (words & np.uint64(2**BITS - 1))) & np.uint64(2**BITS - 1)
        known &= to_numpy(column.is_valid())
    spread = (found * np.uint64(SPREAD)) & np.uint64(2**BITS - 1)
    return np.where(known, (spread * np.uint64(number)) >> np.uint64(BITS), np.uint64(0)).astype(np.int64)


def _words(column: pa.Array) -> npt.NDArray[np.uint64]:
    """64 bits for each value: checksums of texts, whole numbers as they are; anything where there is none."""
    type_ = plain_type(column.type)
    if pa.types.is_null(type_):
        return np.zeros(len(column), np.uint64)
    if pa.types.is_string(type_):
        coded = encode_text(column)
        sums = [crc32(text.encode()) for text in coded.dictionary.to_pylist()]
        return np.array([*sums, 0], np.uint64)[text_codes(coded)]
    plain = column.dictionary_decode() if pa.types.is_dictionary(column.type) else column
    if pa.types.is_floating(type_):
        values = to_numpy(pc.fill_null(plain.cast(pa.float64()), 0.0))
        is_whole = np.abs(values) < EXACT
        return np.where(is_whole, np.floor(np.where(is_whole, values, 0.0)), 0.0).astype(np.int64).view(np.uint64)
    if pa.types.is_timestamp(type_):
        plain = plain.cast(pa.timestamp("us", tz=type_.tz), safe=False)
    elif pa.types.is_date(type_):
        plain = plain.cast(pa.date32()).cast(pa.int32())
    whole = to_numpy(pc.fill_null(plain.cast(pa.int64(), safe=False), 0))
    return whole.astype(np.int64).view(np.uint64)
