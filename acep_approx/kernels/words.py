"""Two words of 64 bits for each row of a table, which tell rows apart: sums of mixed words of what stands in them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from acep_approx.arrays import Ints
from acep_approx.jit.kernel import kernel
from acep_approx.jit.marks import inline
from acep_approx.kernels.arithmetic import MIX

Words = npt.NDArray[np.uint64]

FIRST, SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
LONG, MIDDLE, SHORT = np.uint64(31), np.uint64(30), np.uint64(27)


@inline
def mix(word: np.uint64) -> np.uint64:
    """A word with all bits mixed (Steele, Lea, Flood, OOPSLA 2014: SplitMix64)."""
    word = (word ^ (word >> MIDDLE)) * FIRST
    word = (word ^ (word >> SHORT)) * SECOND
    return word ^ (word >> LONG)


@kernel
def words_of_numbers(value: Ints, high: Words, low: Words) -> None:
    """Write two words for each whole number."""
    for i in range(len(value)):
        word = np.uint64(np.int64(value[i]))
        high[i] = mix(word)
        low[i] = mix(word ^ MIX)


@kernel
def add_words(high: Words, low: Words, row: Ints, salt: Words, sum_high: Words, sum_low: Words) -> None:
    """Add words to the sums of their rows, each mixed with the ``salt`` of its column."""
    for i in range(len(row)):
        to, more = row[i], np.uint64(salt[i])
        sum_high[to] = np.uint64(sum_high[to]) + mix(np.uint64(high[i]) + more)
        sum_low[to] = np.uint64(sum_low[to]) + mix(np.uint64(low[i]) + more)


@kernel
def fold_numbers(value: Ints, seed: Words, high: Words, low: Words) -> None:
    """Take one whole number of each row into its two words, which depend on the order in which that is done."""
    for i in range(len(value)):
        word = np.uint64(np.int64(value[i]))
        high[i] = mix(np.uint64(high[i]) + mix(word ^ np.uint64(seed[0])))
        low[i] = mix(np.uint64(low[i]) + mix(word ^ np.uint64(seed[1])))
