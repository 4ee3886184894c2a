"""Two words of 64 bits for each row of a table, which tell rows apart: sums of mixed words of what stands in them.

And what two tables share, by these words.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from acep_approx.arrays import Bools, Ints
from acep_approx.jit.kernel import kernel
from acep_approx.jit.marks import inline
from acep_approx.kernels.arithmetic import MIX

Words = npt.NDArray[np.uint64]
Letters = npt.NDArray[np.uint8]

FIRST, SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
DIGIT = np.uint64(15)
ZERO, LETTER_A = ord("0"), ord("a")
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


@kernel
def pair_off(high: Words, low: Words, gone: int, first: Ints, following: Ints, stays: Bools) -> None:
    """Of the rows of two tables, of which the first has ``gone``, let those not stay that both have, as often as both.

    Parameters
    ----------
    high, low : uint64
        Two words for each row of both tables.
    gone : int
    first : int64
        As many as a power of two, all -1: gets the first row of each chain of rows of the first table.
    following : int64, shape (gone,)
        Gets the next row of the chain, -1 behind the last.
    stays : bool
        Of each row, all true before.
    """
    last = len(first) - 1
    for row in range(gone - 1, -1, -1):
        at = np.int64(np.uint64(high[row]) >> LONG) & last
        following[row] = first[at]
        first[at] = row
    for row in range(gone, len(high)):
        at = np.int64(np.uint64(high[row]) >> LONG) & last
        before, other = -1, first[at]
        while other >= 0 and (high[other] != high[row] or low[other] != low[row]):
            before, other = other, following[other]
        if other >= 0:
            stays[row] = stays[other] = False
            if before < 0:
                first[at] = following[other]
            else:
                following[before] = following[other]


@kernel
def write_words(high: Words, low: Words, seed: Words, letters: Letters) -> None:
    """Mix two words of each row once more, and write them as 32 hexadecimal digits each."""
    for i in range(len(high)):
        word = mix(np.uint64(high[i]))
        for half in range(2):
            for digit in range(16):
                value = np.int64((word >> np.uint64(60 - 4 * digit)) & DIGIT)
                letters[32 * i + 16 * half + digit] = value + (ZERO if value < 10 else LETTER_A - 10)
            word = mix(np.uint64(low[i]) ^ np.uint64(seed[0]))
