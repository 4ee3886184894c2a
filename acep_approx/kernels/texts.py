"""Texts as codes: the number of each one's first occurrence among distinct texts.

Types and keys are short texts that come again and again. So its first and its last seven bytes are two
numbers, by which it is found; only what is longer than both is compared as a whole.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from acep_approx.arrays import Ints
from acep_approx.jit.kernel import kernel
from acep_approx.jit.marks import inline
from acep_approx.kernels.arithmetic import hashed

Codes = npt.NDArray[np.int32]
Bytes = npt.NDArray[np.uint8]

AT_ONCE = 7
"""Bytes in a number: the eighth has how many there are, up to ``MANY``."""
LENGTH, MANY = 56, 126


@inline
def bytes_at(words: Ints, data: Bytes, first: int, length: int) -> int:
    """Up to ``AT_ONCE`` bytes as a number, the first one lowest.

    ``words`` has the same bytes, eight in each, up to the last that is whole.
    """
    word, place, shift = 0, first >> 3, 8 * (first & 7)
    if place + 1 < len(words):
        whole = 2 * ((1 << (63 - shift)) - 1) + 1  # a negative number is shifted in with ones
        word = ((words[place] >> shift) & whole) | ((words[place + 1] << 1) << (63 - shift))
    else:
        for i in range(length):
            word |= data[first + i] << (8 * i)
    return word & ((1 << (8 * length)) - 1)


@inline
def same_bytes(words: Ints, data: Bytes, one: int, other: int, length: int) -> bool:
    """Whether two texts are the same."""
    for i in range(0, length, AT_ONCE):
        n = min(AT_ONCE, length - i)
        if bytes_at(words, data, one + i, n) != bytes_at(words, data, other + i, n):
            return False
    return True


@kernel
def code_texts(
    ends: Codes, words: Ints, data: Bytes, begins: Ints, last: Ints, code_at: Ints, first_row: Ints, codes: Codes
) -> int:
    """Number the distinct texts of a column in the order in which they come.

    Parameters
    ----------
    ends : array of int32, shape (texts + 1,)
        Text ``i`` has the bytes from ``ends[i]`` to ``ends[i + 1]``.
    words, data : arrays
        All bytes: eight at a time, and one by one.
    begins, last, code_at : arrays, each at least twice as long as ``first_row``, a power of two
        An open hash table: how texts begin, and how long they are, their last bytes, and their codes; ``begins`` is 0
        where a place is free.
    first_row : array
        Is given the row of the first text of each code.
    codes : array of int32, shape (texts,)
        Is given the code of each text.

    Returns
    -------
    int
        How many distinct texts there are; -1: more than ``first_row`` has room for, or a text lies outside of ``data``.
    """
    size, distinct = len(begins), 0
    for i in range(len(codes)):
        first, length = ends[i], ends[i + 1] - ends[i]
        if first < 0 or length < 0 or first + length > len(data):
            return -1
        begin = bytes_at(words, data, first, min(length, AT_ONCE)) | ((min(length, MANY) + 1) << LENGTH)
        end = bytes_at(words, data, first + length - AT_ONCE, AT_ONCE) if length > AT_ONCE else 0
        mixed = begin ^ (end >> 3) ^ (end << 5)
        place = hashed(mixed ^ (mixed >> 29), size)  # which goes by the lower half alone
        while begins[place] != 0:
            if begins[place] == begin and last[place] == end:
                if length <= 2 * AT_ONCE:
                    break
                row = first_row[code_at[place]]
                if ends[row + 1] - ends[row] == length and same_bytes(words, data, first, ends[row], length):
                    break
            place = (place + 1) & (size - 1)
        if begins[place] == 0:
            if distinct == len(first_row):
                return -1
            begins[place], last[place], code_at[place], first_row[distinct] = begin, end, distinct, i
            distinct += 1
        codes[i] = code_at[place]
    return distinct
